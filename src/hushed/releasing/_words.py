"""A certificate in plain words: what was promised, to whom, and what is assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushed._functions._environment import differences, packages_in
from hushed._functions._settings import list_unwatched
from hushed._ground.calls import called_as
from hushed._ground.printing import flat, format_up
from hushed._ground.tensors import devices_in
from hushed.errors import ParameterError
from hushed.mechanisms._bound_search import ARGUMENTS, BoundSearch
from hushed.mechanisms._objective_draw import ObjectiveDraw
from hushed.mechanisms._posterior_draw import PosteriorDraw
from hushed.mechanisms._registry import SEARCHES, STATISTIC_MECHANISMS
from hushed.releasing._accuracy_words import explain_drawn_accuracy
from hushed.releasing._assumption_words import explain_assumed
from hushed.releasing._blocks import (
    explain_blocks_accuracy,
    explain_blocks_assumptions,
    explain_blocks_reach,
)
from hushed.releasing._factor_words import describe_factor
from hushed.releasing._neighbour_words import (
    describe_change,
    describe_reach,
    name_trials,
    name_units,
)
from hushed.releasing._population_words import (
    describe_range,
    describe_route,
    describe_search,
    describe_source,
    name_exchanged,
    plain_words,
)
from hushed.releasing._statistic_words import (
    explain_accuracy,
    explain_assumptions,
    explain_bound,
    explain_reach,
)
from hushed.sensitivity._remarks import (
    Movements,
    describe_places,
    describe_resolution,
    list_kept_ranks,
    list_remarks,
)

if TYPE_CHECKING:
    from hushed.releasing._certificate import Certificate, SamplingRecord

_ANEW = {
    True: "In a new process, which never saw the neighbours of some tables, it answered them alike",
    False: "It could not be asked in a new process, which never saw the neighbours of a table "
    "(none starts, or it cannot be sent there, fails or does not end there, or is another function "
    "there): nobody tried whether it keeps answers under a part of the rows, as under the first "
    "row, which would hide how far it moves",
}


@called_as("hs.releasing.explain_certificate(certificate)")
def explain_certificate(certificate: Certificate) -> str:
    """Explain a certificate.

    Parameters
    ----------
    certificate : Certificate
        What to explain.

    Returns
    -------
    str
        Paragraphs separated by blank lines.
    """
    if not hasattr(certificate, "mechanism"):
        raise ParameterError(f"a certificate is needed, got {type(certificate).__name__}")
    if certificate.mechanism.name in STATISTIC_MECHANISMS:
        parts = [
            _promise(certificate),
            explain_accuracy(certificate, "people" if certificate.person else "rows"),
            explain_reach(certificate) + _person_words(certificate),
            explain_assumptions(),
        ]
    elif certificate.mechanism.name == "blocks":
        by_user = certificate.guarantee.unit == "user"
        parts = [
            _promise(certificate),
            explain_blocks_accuracy(certificate),
            explain_blocks_reach(certificate) + ("" if by_user else _person_words(certificate)),
            explain_blocks_assumptions(certificate),
        ]
    else:
        parts = [
            _promise(certificate),
            explain_drawn_accuracy(certificate),
            _reach(certificate),
            *_describe_watch(certificate),
            explain_assumed(certificate),
        ]
    if certificate.charged:
        parts.append(f"What it was charged to: {flat(certificate.charged)}")
    if certificate.mechanism.stated:
        parts.insert(0, _describe_author(certificate.mechanism.name))
    if certificate.guarantee.data_dependent:
        parts.insert(0, _warning())
    return "\n\n".join(parts)


def _warning() -> str:
    return (
        "WARNING: NOT A PRIVACY GUARANTEE. The population was made from the private rows, as the "
        "caller admitted. The sensitivity itself then leaks about them, and the numbers below are "
        "nominal: they say what would hold had the population been public."
    )


def _promise(certificate: Certificate) -> str:
    g = certificate.guarantee
    row = "the row of one person" if certificate.person else "one row"
    whose = row if g.unit == "row" else "all rows of one user"
    others = "another row" if g.unit == "row" else "others"
    if certificate.sampling is not None and certificate.sampling.user is not None:
        whose, others = "all rows of one person", "all rows of another"
    pair = {
        "replace-one": f"with {whose} replaced by {others}",
        "add-remove": f"with {whose} added or removed",
    }[g.neighbours]
    if certificate.sampling is not None and (g.distance > 1 or g.protect == "table"):
        pair = describe_change(certificate.sampling)
    stated = certificate.mechanism.stated
    who = "its author promises" if stated else "is promised"
    covered = " This holds for every such pair of tables" + (
        "." if holds_always(certificate) else " of which the reason given below holds."
    )
    return (
        f"What {who}: epsilon = {format_up(g.epsilon)}, "
        f"delta = {format_up(g.delta)}, gamma = {format_up(g.gamma)}. "
        f"{describe_factor(g, 'the released answer', pair, '' if g.gamma or stated else covered)}"
    )


def holds_always(certificate: Certificate) -> bool:
    """Whether hushed itself proved it for every table; a stated reason may leave tables out."""
    proven = ("blocks", ObjectiveDraw.name)
    return (
        (_is_of_statistic(certificate) and not certificate.chain)
        or certificate.mechanism.name in proven
        or _counts_beyond(certificate)
    )


def _is_of_statistic(certificate: Certificate) -> bool:
    """Whether a statistic was released: a search is given answers, whatever bounds them."""
    return certificate.statistic is not None and certificate.mechanism.name not in SEARCHES


def _counts_beyond(certificate: Certificate) -> bool:
    """Whether it is a search for a bound, whose sensitivity is 1 by a proof of this library."""
    return (
        certificate.mechanism.name == BoundSearch.name
        and certificate.sensitivity == 1
        and certificate.argument in ARGUMENTS.values()
    )


def _describe_author(name: str) -> str:
    return (
        f"THE PROMISE RESTS ON THE WORD OF AN AUTHOR. {name} is not a mechanism of hushed, but one "
        "of the caller's own. That it keeps the numbers below when the answer moves by the "
        "sensitivity was stated by its author, and neither proven nor checked. Nor is it known how "
        "it draws its noise: unless it takes it from hushed.noise, the last digits of the answer "
        "may tell the exact one, whatever epsilon says."
    )


def _reach(certificate: Certificate) -> str:
    sampling = certificate.sampling
    moved = format_up(certificate.sensitivity)
    if certificate.mechanism.name == ObjectiveDraw.name:
        return (
            f"Whom it protects: {_everyone(certificate)}, in every table; no population is "
            "assumed. The sum of the gradients of all rows moves by at most "
            f"{moved} in the l1 norm, at any coefficients, for each feature is scaled from a "
            "public range to [-1, 1], each row is shortened to a public length, and the slope of "
            "the loss is bounded. What is outside of its range counts as an end of it, what is "
            f"missing as its middle{_say_labels(certificate)}. "
            "Noise for that movement stood in the objective; what its curvature "
            "tells, and how far the computed minimum may be from the exact one, is paid from the "
            f"same epsilon.{_person_words(certificate)}"
        )
    if _counts_beyond(certificate):
        who = "user" if certificate.guarantee.unit == "user" else "row"
        return (
            f"Whom it protects: this holds for every table and every "
            f"{'person' if certificate.person else who}; no population is assumed. Numbers of "
            f"{who}s beyond public candidates were compared: {certificate.argument}. What is "
            "missing or no number lies beyond none."
            f"{_person_words(certificate)}"
        )
    if _is_of_statistic(certificate):
        return explain_bound(certificate, moved) + _person_words(certificate)
    if sampling is None:
        return (
            f"Whom it protects: {_everyone(certificate)}, as far as this reason holds. The answer "
            f"was stated to move by at most {moved} in the {certificate.norm} norm, "
            f"because: {flat(certificate.argument)}. This reason stands as it "
            f"was given: nothing was sampled to check it.{_describe_held(certificate)}"
            f"{_person_words(certificate)}"
        )
    n, gamma = sampling.rows, certificate.guarantee.gamma
    size, blocks = n // sampling.blocks, sampling.blocks
    unit = name_units(sampling)[size > 1]
    of = f" of {size} {unit}" if blocks > 1 else ""
    part = f"; one block moves the average by 1 / {blocks} of that" if blocks > 1 else ""
    kept = (
        f"the answer's movement was measured on {sampling.pairs} "
        f"{'tables' if name_trials(sampling) == 'tables' else 'pairs of tables'}{of} drawn from "
        f"{describe_source(sampling)}, and the noise covers {_name_rank(sampling)}{part}: "
        f"{moved} in the {certificate.norm} norm"
    )
    rows = "people" if certificate.person else name_exchanged(sampling)
    words = [kept, *describe_route(sampling, size)]
    remarks = "".join(f" {each}." for each in _list_remarks(certificate, sampling))
    return (
        f"Whom it protects: {'. '.join(words)}. {describe_reach(sampling, gamma, rows)}{remarks} "
        f"{describe_range(certificate)}{_person_words(certificate)}"
    )


def _name_rank(sampling: SamplingRecord) -> str:
    """Say how many of the measured movements are no larger than what the noise is made for."""
    if sampling.rank == sampling.pairs:
        return f"the largest of these {sampling.pairs} movements"
    return f"number {sampling.rank} of these {sampling.pairs} movements in ascending order"


def _say_labels(certificate: Certificate) -> str:
    """Say what becomes of odd labels of a fit; those that are numbers have a range, too."""
    if certificate.mechanism.parameters.get("family") == "huber":
        return ", also of labels"
    return ", and a label that is none of the public ones as the first"


def _list_remarks(certificate: Certificate, sampling: SamplingRecord) -> list[str]:
    """Say what speaks against relying on the kept movement."""
    seen = Movements(
        known=sampling.movements,
        ranks=list_kept_ranks(sampling.pairs),
        pairs=sampling.pairs,
        kept=certificate.sensitivity,
    )
    return [
        *list_remarks(seen),
        *describe_places(sampling.reach(), sampling.gamma, symmetric=sampling.symmetric),
        *describe_resolution(
            certificate.sensitivity * sampling.blocks, sampling.largest, sampling.dtype
        ),
    ]


def _describe_watch(certificate: Certificate) -> list[str]:
    """Say whether the released function was the sampled one, and what could not be watched."""
    sampling, how = certificate.sampling, certificate.confirmed
    if sampling is None:
        return []
    lines = []
    if how:
        lines.append(
            "Just before the release the function answered the first sampled table again, and "
            + (
                "gave the same answer bit for bit"
                if how == "bits"
                else "gave the same answer within rounding, for the computer differs: "
                + plain_words(differences(sampling.environment, certificate.versions))
                + ". What rounding adds to a movement is below a millionth of the sensitivity, and "
                "not counted"
            )
        )
    devices = differences(devices_in(sampling.environment), devices_in(certificate.versions))
    if devices and how == "bits":
        lines.append(
            f"It was sampled and released on different devices, which may round differently: "
            f"{plain_words(devices)}"
        )
    lines += [
        f"{count} of the {sampling.pairs} movements were measured by a worker process of which was "
        f"noted: {plain_words((note,))}"
        for note, count in sorted(sampling.elsewhere.items())
    ]
    if sampling.unwatched:
        lines.append(
            "What it uses was watched for changes, but for these, which have no readable content "
            f"or changed by themselves: {plain_words(sampling.unwatched)}. If they hold something "
            "of the rows of a former call, the promise does not hold"
        )
    if sampling.asked_anew is not None:
        lines.append(_ANEW[sampling.asked_anew])
    if sampling.unsearched:
        lines.append(describe_search("What it or the population", sampling.unsearched))
    if others := list_unwatched(packages_in(sampling.environment)):
        lines.append(
            f"Not watched are settings of {plain_words(others)}: they must be the same at the "
            "release as when it was sampled"
        )
    text = ". ".join(lines)
    return [f"Whether it is the sampled function: {text}."] if lines else []


def _describe_held(certificate: Certificate) -> str:
    """Say what a stated reason leaves out; searches are given answers, and ask no function."""
    if certificate.mechanism.name in {PosteriorDraw.name, *SEARCHES}:
        return ""
    return " It covers no private rows that a function holds beside those that it is given."


def _everyone(certificate: Certificate) -> str:
    if certificate.guarantee.unit == "user":
        return "each user in the table"
    return "each person in the table" if certificate.person else "each row of the table"


def _covers_one(sampling: SamplingRecord) -> bool:
    """Whether a second changed row would start from a table that the promise is not about."""
    given = sampling.route == "given-the-rest"
    return bool(sampling.sizes) or sampling.protect == "table" or given


def _person_words(certificate: Certificate) -> str:
    if certificate.person:
        return " That each row is one person was declared, and not checked."
    if certificate.guarantee.unit == "user":
        return ""
    sampling = certificate.sampling
    if sampling is not None and _covers_one(sampling):
        return " The promise is for rows: of somebody with several, one alone is covered."
    if sampling is not None and sampling.distance > 1:
        return f" The promise is for rows: of somebody with more than {sampling.distance}, no more."
    promise = certificate.guarantee
    cost = "epsilon and gamma again" if promise.gamma else "epsilon again"
    more = ", and more than delta" if promise.delta else ""
    return (
        " The promise is for rows: somebody with several is protected less, for each of them "
        f"costs {cost}{more}."
    )
