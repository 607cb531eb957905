"""What a certificate takes for granted of rows, function and questions, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushed._ground.printing import format_down, format_up
from hushed.mechanisms._posterior_draw import PosteriorDraw
from hushed.releasing._neighbour_words import ROWS_ALONE, list_numbers
from hushed.releasing._population_words import (
    describe_comparison,
    describe_drawing,
    describe_search,
    describe_trust,
    name_exchanged,
)

if TYPE_CHECKING:
    from hushed.releasing._certificate import Certificate, MechanismRecord, SamplingRecord


def explain_assumed(certificate: Certificate) -> str:
    """Say what is assumed, one line each."""
    sampling = certificate.sampling
    lines = _of_release(certificate)
    if sampling is not None:
        lines = [*_of_population(sampling), *lines, *_of_declarations(sampling)]
    return "What is assumed:\n" + "\n".join(f"  - {line}" for line in lines)


def _of_release(certificate: Certificate) -> list[str]:
    """Say what every release takes for granted, and what its mechanism does."""
    sampling, record = certificate.sampling, certificate.mechanism
    lines = [
        _of_questions(certificate)
        if record.name == "above-threshold"
        else "the number of released values does not depend on the rows"
        if sampling is None or not sampling.names
        else "the number of released values, and how they are called, do not depend on the rows: "
        "the names are those of public answers",
        "the released answer is the function's only output: not its running time, its messages or "
        "whether it fails",
        "the function and all settings were chosen without looking at the private rows",
        *([ROWS_ALONE] if record.name != "above-threshold" else []),
    ]
    if _is_monotone(record) and record.name != "above-threshold":
        lines.append(
            "for any two neighbouring tables all scores move the same way, as declared: epsilon "
            "rests on it"
        )
    if record.name == PosteriorDraw.name:
        lines += [
            "log_likelihood keeps nothing of a row for its call on another one"
            + (
                ", and does not look at the rows beside it, as declared (tried on some)"
                if sampling is not None and sampling.batch
                else ""
            ),
            *(
                [describe_search("what it", certificate.unsearched)]
                if certificate.unsearched
                else []
            ),
            "one draw was released, which is no mean of the posterior: it has the spread of the "
            "posterior tempered by epsilon, and each further draw costs as much again",
        ]
    return lines


def _of_population(sampling: SamplingRecord) -> list[str]:
    """Say what a sampled sensitivity takes for granted of rows, population and function."""
    drawn = describe_drawing(sampling)
    whose, one = "the private rows", "row"
    if sampling.user is not None:
        whose, one = "the people in the private table, each with all rows,", "person"
    return [
        f"{whose} are independent draws from {drawn[0]}"
        if not sampling.shift
        else f"{whose} are independent draws from a distribution Q with KL(P || Q) of at most "
        f"{format_down(sampling.shift)} per {one}, where P is {drawn[0]}",
        *drawn[1:],
        *describe_trust(sampling),
        f"the population is public{describe_comparison(sampling)}"
        if sampling.population_is_public
        else "the population was made from the private rows, so none of this protects them",
        "the sampler's seed was fixed in advance: trying several and keeping the smallest "
        "sensitivity voids gamma",
        "no earlier answer about these rows decided which function was sampled, or how: gamma does "
        "not hold for one that an answer led to",
        "the function is deterministic, and keeps nothing of the rows for its next call (what "
        "it keeps in files, databases or other processes, in modules of installed packages, in "
        "the subclasses, registered classes or declared fields of a class, or under names that "
        "it computes, is not seen)",
    ]


def _of_declarations(sampling: SamplingRecord) -> list[str]:
    """Say what was declared of the table and the function."""
    lines = []
    if sampling.sizes:
        lines.append(
            f"the private table has {list_numbers(sampling.sizes)} {name_exchanged(sampling)}"
        )
    if sampling.monotone:
        lines.append(
            "each number of the answer goes only up or only down with each cell of a row, as "
            f"declared (tried on a few rows, up to {_name_let_pass(sampling)})"
        )
    if sampling.symmetric:
        lines.append(
            f"the order of the {name_exchanged(sampling)} does not change the answer, as "
            f"declared (tried on a few orders, up to {_name_let_pass(sampling)})"
        )
    elif not sampling.reach().whole and sampling.user is None:
        lines.append("the record in question sits at a random position of the table")
    if sampling.updated:
        lines.append(
            "a replaced row changes the answer as the caller's update of it says, as declared "
            f"(tried on some neighbours, up to {_name_let_pass(sampling)})"
        )
    if sampling.batch:
        lines.append(
            "the tables that are answered together do not change each other's answers, as declared "
            f"(tried on some tables, up to {_name_let_pass(sampling)})"
        )
    return lines


def _name_let_pass(sampling: SamplingRecord) -> str:
    """Name what a declared function may be off by, where it was tried."""
    if sampling.dtype == "float64":
        return "a millionth of the sensitivity"
    return f"what rounding does in {sampling.dtype}, which was added to the sensitivity"


def _is_monotone(record: MechanismRecord) -> bool:
    """Whether a caller declared that all answers move the same way, which nothing here checks."""
    return record.parameters.get("monotone") is True and not record.stated


def _of_questions(certificate: Certificate) -> str:
    """Say what is left to who asks of a sparse vector."""
    same = _is_monotone(certificate.mechanism)
    return (
        f"every answer that was asked moves by at most {format_up(certificate.sensitivity)}, also "
        "where the question followed from earlier answers, and none fails to be a number"
        + (", and for any two neighbouring tables all of them move the same way" if same else "")
    )
