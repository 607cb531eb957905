"""How exact a released answer is, in words, and what it is near."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hushed._ground.printing import format_down, format_up
from hushed.mechanisms._bound_search import BoundSearch
from hushed.mechanisms._objective_draw import ObjectiveDraw
from hushed.mechanisms._registry import CERTIFIED
from hushed.releasing._consistency import rebuild_mechanism
from hushed.releasing._neighbour_words import doubt_average, name_average

if TYPE_CHECKING:
    from hushed.releasing._certificate import Certificate, MechanismRecord


def explain_drawn_accuracy(certificate: Certificate) -> str:
    """Say how exact an answer with noise is, and what it is near."""
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
