"""A certificate in plain words: what was promised, to whom, and what is assumed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hushed._functions._environment import differences, packages_in
from hushed._functions._settings import list_unwatched
from hushed._ground.calls import called_as
from hushed._ground.printing import flat, format_down, format_up
from hushed._ground.tensors import devices_in
from hushed.errors import ParameterError
from hushed.mechanisms._bound_search import ARGUMENTS, BoundSearch
from hushed.mechanisms._objective_draw import ObjectiveDraw
from hushed.mechanisms._posterior_draw import PosteriorDraw
from hushed.mechanisms._registry import CERTIFIED, SEARCHES, STATISTIC_MECHANISMS
from hushed.releasing._blocks import (
    explain_blocks_accuracy,
    explain_blocks_assumptions,
    explain_blocks_reach,
)
from hushed.releasing._consistency import rebuild_mechanism
from hushed.releasing._factor_words import describe_factor
from hushed.releasing._neighbour_words import (
    ROWS_ALONE,
    describe_change,
    describe_reach,
    doubt_average,
    list_numbers,
    name_average,
    name_trials,
    name_units,
)
from hushed.releasing._population_words import (
    describe_comparison,
    describe_drawing,
    describe_range,
    describe_route,
    describe_search,
    describe_source,
    describe_trust,
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
    from hushed.releasing._certificate import Certificate, MechanismRecord, SamplingRecord

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
            _accuracy(certificate),
            _reach(certificate),
            *_describe_watch(certificate),
            _assumptions(certificate),
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


def _accuracy(certificate: Certificate) -> str:
    m = certificate.mechanism
    if m.accuracy is None:
        return f"How exact the answer is: not stated of {m.name}."
    error = format_up(m.accuracy, 4)
    kind = CERTIFIED.get(m.name)
    law = kind.law_name or m.name if kind else m.name
    if kind and kind.outcome:
        rows = "users" if certificate.guarantee.unit == "user" else "rows"
        rows = "people" if certificate.person else rows
        what = kind.outcome.format(error=error, values=m.values, rows=rows)
    elif m.values == 1:
        of = name_average(certificate.sampling) or "the exact answer"
        what = f"the released number is within {error} of {of}"
    else:
        of = name_average(certificate.sampling) or "the exact ones"
        what = f"all {m.values} released numbers are within {error} of {of}"
    scale = "" if m.scale is None else f" of scale {format_down(m.scale, 4)}"
    by = ", as its author states," if m.stated else ""
    grid = "" if m.grid is None else f", on a grid of 2^{m.grid}"
    head = f"How exact the answer is: {_name_fit(m)}{law} noise{scale}{grid}"
    return (
        f"{head}. With probability 95 %{by} {what}"
        f"{_describe_average(certificate)}."
        f"{_describe_usual(certificate)}{_describe_penalty(certificate)}{_describe_values(m)}"
    )


def _name_fit(record: MechanismRecord) -> str:
    """Name the fit that noise stood in the objective of: all of it follows from its parameters."""
    if record.name != ObjectiveDraw.name or record.stated:
        return ""
    stated = record.parameters
    penalty = float(stated["penalty"])
    names = "coef_ and intercept_" if stated["intercept"] else "coef_"
    if stated["family"] == "huber":
        fit = f"Ridge with the Huber loss, alpha = {penalty:.6g}"
    else:
        fit = f"LogisticRegression for {stated['classes']} classes, C = {1 / penalty:.6g}"
    return f"released were {names} of {fit}, by "


def _describe_average(certificate: Certificate) -> str:
    """Say that an average over blocks is another answer than that of the whole table."""
    sampling, kind = certificate.sampling, CERTIFIED.get(certificate.mechanism.name)
    average = name_average(sampling)
    if sampling is None or not average:
        return ""
    head = f". Scores are those of {average}" if kind and kind.outcome else ""
    return f"{head}: {doubt_average(sampling)}"


def _describe_values(record: MechanismRecord) -> str:
    """Say how exact the values are that a sparse vector tells."""
    scale = record.value_scale
    if scale is None:
        return ""
    far = scale * math.log(20) + 2.0 ** ((record.grid or 0) + 1)
    return (
        " The value of each one found above is told, too, with Laplace noise of its own of scale "
        f"{format_down(scale, 4)}: with probability 95 % it is within {format_up(far, 4)} of the "
        "exact answer."
    )


def _describe_penalty(certificate: Certificate) -> str:
    """Say which fit a private one is near, where the penalty that was asked for is too small."""
    if certificate.mechanism.name != ObjectiveDraw.name:
        return ""
    made = rebuild_mechanism(certificate).mechanism
    if made.used_penalty == made.penalty:
        return ""
    return (
        f" Both fits have a penalty of {format_up(made.used_penalty, 4)} in place of the "
        f"{format_up(made.penalty, 4)} that was asked for: at this epsilon a smaller one is not "
        "allowed."
    )


def _describe_usual(certificate: Certificate) -> str:
    """Say what is met by most columns, where the stated error is one for the worst of them."""
    if certificate.mechanism.name != BoundSearch.name:
        return ""
    search = rebuild_mechanism(certificate).mechanism
    rows = "users" if certificate.guarantee.unit == "user" else "rows"
    rows = "people" if certificate.person else rows
    half, most = (format_up(search.usual_accuracy(beta), 4) for beta in (0.5, 0.05))
    enough = format_up(2 * search.accuracy(), 4)
    # Beyond a larger one lie no more rows, so that what is said of the smallest one holds.
    first = "-" * (search.side == "low") + format_up(search.smallest, 4)
    return (
        f" That is for the worst column. It is less, at most {half} {rows} in half of the searches "
        f"and {most} in 95 %, for a column in which {enough} {rows} or more lie beyond the first "
        f"candidate, {first}, and the number beyond a candidate, once it is below that, falls at "
        "least as fast as the square root of the candidate grows (a Pareto tail of index 1/2 or "
        "more). Zeros and missing values lie beyond none."
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


def _assumptions(certificate: Certificate) -> str:
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
