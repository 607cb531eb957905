"""The ways to release an answer: one entry each, with what it needs, promises and costs.

A new way is one function that makes an offer, or says why it cannot, and one line in `ROUTES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, Literal

import numpy as np

from hushed import noise
from hushed._ground.decimals import decimal_of
from hushed._ground.printing import format_exactly, percent_up
from hushed._ground.types import Floats
from hushed.comparing._block_routes import offer_blocks
from hushed.comparing._label_routes import offer_stable, offer_votes
from hushed.comparing._laws import Chosen, Fixed, Scaled
from hushed.comparing._mean_routes import offer_mean, takes_mean
from hushed.comparing._mode_routes import offer_nearest, offer_top, offer_top_key, offer_winner
from hushed.comparing._offers import (
    MOST_TABLES,
    Offer,
    Plan,
    Priced,
    say_promise,
    say_unit,
)
from hushed.comparing._question import Question
from hushed.comparing._simulated import Table, find_rooms
from hushed.comparing._test_routes import offer_propose_test
from hushed.comparing._vector_routes import offer_vector
from hushed.errors import RandomFunction, TooFewPairs, TooFewRows, ZeroSensitivity
from hushed.guarantee import Guarantee
from hushed.mechanisms import (
    Gaussian,
    InverseSensitivity,
    Laplace,
    Smooth,
)
from hushed.mechanisms._smooth import list_choices, measure_choices
from hushed.populations._fitted import count_table_rows
from hushed.sensitivity import global_sensitivity, sample_sensitivity
from hushed.statistics import Mode, Numeric, Quantile
from hushed.statistics._candidates import CANDIDATES, choose_spacing, space_candidates
from hushed.transformations._aggregates import quantile_scores_sensitivity


@dataclass(frozen=True, slots=True)
class Route:
    """One way to release an answer; `offer` gives an `Offer`, or the reason why there is none."""

    name: str
    offer: Callable[[Question], Offer | str]


def _offer_global(question: Question) -> Offer | str:
    statistic = question.numeric
    if isinstance(question.statistic, Mode):
        return "a category is no number; top k and noisy max use that of the numbers of rows"
    if statistic is None:
        return (
            "nobody knows how far one row can move any function; if you can prove a bound, state "
            "it with hs.proven_sensitivity"
        )
    bound = global_sensitivity(statistic)

    def plan(epsilon: float) -> Plan:
        made = Laplace(bound, epsilon=epsilon)
        how = f"hs.Laplace(hs.global_sensitivity(s), epsilon={format_exactly(epsilon)})"
        priced = Priced(guarantee=made.guarantee, errors=Fixed(made.accuracy), how=how)
        return Plan(price=lambda _: priced)

    return Offer(promise=say_promise(question), at=plan)


def _offer_inverse(question: Question) -> Offer | str:
    statistic = question.statistic
    if statistic is None:
        return "known for the statistics of hs.statistics alone"
    if not statistic.invertible:
        return f"not known for the {statistic.kind} without a public number of rows"
    if isinstance(statistic, Mode):
        return offer_nearest(statistic, question)
    given = question.candidates

    def plan(epsilon: float) -> Plan:
        made = InverseSensitivity(statistic, epsilon=epsilon, candidates=given)
        more = ", candidates=..." if given else ""
        how = f"hs.InverseSensitivity(s, epsilon={format_exactly(epsilon)}{more})"

        def price(drawn: Floats) -> Priced:
            return Priced(guarantee=made.guarantee, errors=Chosen.of_rows(drawn), how=how)

        return Plan(measure=partial(_measure_inverse, made, statistic), price=price)

    return Offer(promise=say_promise(question), at=plan)


def _measure_inverse(made: InverseSensitivity, statistic: Numeric, table: Table) -> Floats:
    """Error of each candidate; then the chances."""
    rows = table.read(statistic)
    errors = np.abs(np.array(made.values) - float(statistic.value(rows)))
    return np.concatenate([errors, made.chances_on(rows)])


def _offer_smooth(law: Literal["t2", "lomax"], question: Question) -> Offer | str:
    statistic = question.numeric
    if isinstance(question.statistic, Mode):
        return "categories are no numbers that noise could be added to"
    if statistic is None:
        return "known for the statistics of hs.statistics alone"

    def plan(epsilon: float) -> Plan:
        made = _choose_smooth(law, statistic, question, epsilon)
        # The smoothing of Lomax noise is what its tail allows, and is not written: rounded to a
        # double it might exceed that.
        shape = f"tail={made.tail}"
        if law == "t2" and made.smoothing is not None:
            shape = f"smoothing={format_exactly(made.smoothing)}"
        how = f"hs.Smooth(s, epsilon={format_exactly(epsilon)}, noise={law!r}, {shape})"

        def price(found: Floats) -> Priced:
            scales, rooms = found[:, 0], found[:, 1:]
            answered = np.zeros(len(found))
            errors = Scaled(scales, rooms, made.exceeds, made.rounding, refused=answered)
            return Priced(guarantee=made.guarantee, errors=errors, how=how)

        return Plan(measure=partial(_measure_smooth, made), price=price)

    return Offer(promise=say_promise(question), at=plan)


def _choose_smooth(
    law: Literal["t2", "lomax"], statistic: Numeric, question: Question, epsilon: float
) -> Smooth:
    """Choose tail and smoothing on tables of their own, so that the errors are those of others.

    The tables are drawn once for both laws; each law has the choice of `Smooth.for_population`.
    """
    name = ("smooth", epsilon)
    if name not in question.known:
        made = list_choices(statistic, epsilon, None)
        tried = {"rows": question.rows, "tables": MOST_TABLES, "seed": question.seed_of(2)}
        errors = measure_choices(made, question.drawn, **tried, beta=0.05)
        question.known[name] = list(zip(errors.tolist(), made, strict=True))
    pairs = [(error, each) for error, each in question.known[name] if each.noise == law]
    chosen: Smooth = min(pairs, key=itemgetter(0))[1]
    return chosen


def _measure_smooth(made: Smooth, table: Table) -> Floats:
    """Smooth sensitivity, and how far the answer is from the two ends of its range."""
    rows = table.read(made.statistic)
    return np.append(
        made.statistic.smooth_sensitivity(rows, made.beta), find_rooms(made.statistic, rows)
    )


def _offer_table(question: Question) -> Offer | str:
    statistic = question.numeric
    if isinstance(question.statistic, Mode):
        return offer_top_key(question.statistic, question)
    if statistic is not None and takes_mean(statistic):
        return offer_mean(statistic, question, searched=False)
    if not isinstance(statistic, Quantile):
        return "hs.table has medians, quantiles, means and modes; this is none of them"
    if not 0 < statistic.q < 1:
        return "hs.table offers quantiles strictly between the smallest and the largest value"
    spacing = choose_spacing(statistic.low)  # what `hs.table(...).quantiles` does by default
    points = space_candidates(statistic.low, statistic.high, CANDIDATES, spacing)
    width = 2 * quantile_scores_sensitivity(1, alpha=statistic.q)

    def plan(epsilon: float) -> Plan:
        promised = Guarantee(epsilon=epsilon, neighbours="add-remove")
        asked = f"quantiles(COLUMN, [{format_exactly(statistic.q)}], ...)"
        how = f"hs.table(...).{asked}.release(epsilon={format_exactly(epsilon)})"

        def price(drawn: Floats) -> Priced:
            return Priced(guarantee=promised, errors=Chosen.of_rows(drawn), how=how)

        measure = partial(_measure_table, statistic, points, width, epsilon)
        return Plan(measure=measure, price=price)

    return Offer(promise=f"every table, one {say_unit(question)} more or less", at=plan)


def _measure_table(
    statistic: Quantile, points: Floats, width: float, epsilon: float, table: Table
) -> Floats:
    """Error of each candidate, then its chance: the less, the farther its rank is off.

    As in a query every value counts as the candidate nearest to it.
    """
    read = table.read(statistic)
    values, exact = read.values, float(statistic.value(read))
    upto = np.searchsorted(values, (points[1:] + points[:-1]) / 2, side="right")
    ranks = np.concatenate([[0], upto, [values.size]])
    wanted = float(decimal_of(statistic.q) * values.size)
    scores = -np.maximum(np.maximum(ranks[:-1] - wanted, wanted - ranks[1:]), 0)
    reach = noise.selection_scale(width=width, epsilon=epsilon)[0]
    weights = np.exp((scores - scores.max()) / reach)
    return np.concatenate([np.abs(points - exact), weights / weights.sum()])


def _offer_sampled(law: Literal["laplace", "gaussian"], question: Question) -> Offer | str:
    if law == "gaussian" and not question.delta:
        return "Gaussian noise needs a delta above 0"
    if isinstance(question.statistic, Mode):
        return "categories are no numbers that noise could be added to"
    if question.neighbours != "replace-one":
        return (
            "sampling replaces a row, so the number of rows must be public: give the statistic "
            "rows=NUMBER"
        )
    try:
        found = sample_sensitivity(
            question.function,
            question.population,
            rows=question.rows,
            norm="l1" if law == "laplace" else "l2",
            gamma=question.gamma,
            unit=question.unit,
            user=question.user,
            seed=question.seed,
            keep=question.keep,
            workers=question.workers,
            progress=question.shown,  # type: ignore[arg-type]
        )
        _calibrated(law, found, 1.0, question.delta)
    except (RandomFunction, TooFewRows, TooFewPairs, ZeroSensitivity) as refusal:
        return str(refusal)
    if found.sampling is None:  # it was sampled just now
        return "not sampled"
    pairs = found.sampling.pairs

    def plan(epsilon: float) -> Plan:
        made = _calibrated(law, found, epsilon, question.delta)
        name = "Laplace" if law == "laplace" else "Gaussian"
        slack = "" if law == "laplace" else f", delta={format_exactly(question.delta)}"
        priced = Priced(
            guarantee=made.guarantee,
            errors=Fixed(lambda beta: made.accuracy(beta, question.numbers)),
            how=f"hs.{name}(hs.sample_sensitivity(f, ...), "
            f"epsilon={format_exactly(epsilon)}{slack})",
            calls=2 * pairs + 1,
        )
        return Plan(price=lambda _: priced)

    who = "people" if question.unit == "person" else "rows"
    who = who if question.user is None else "users"
    share = percent_up(found.gamma)
    weaker = {"resampled": f"the public {who} alone", "given-the-rest": f"such {who}, given others"}
    made = f", made of public {who}" * bool(count_table_rows(found.sampling.population))
    route = found.sampling.design.route
    whose = weaker.get(route, f"such {who}{made * (route == 'independent')}")
    return Offer(
        promise=f"random: all but {share} % of {whose}",
        at=plan,
    )


def _calibrated(law: str, found: Any, epsilon: float, delta: float) -> Laplace | Gaussian:
    if law == "laplace":
        return Laplace(found, epsilon=epsilon)
    return Gaussian(found, epsilon=epsilon, delta=delta)


ROUTES: tuple[Route, ...] = (
    Route("inverse sensitivity", _offer_inverse),
    Route("smooth, t2", partial(_offer_smooth, "t2")),
    Route("smooth, lomax", partial(_offer_smooth, "lomax")),
    Route("global sensitivity", _offer_global),
    Route("table query", _offer_table),
    Route("propose-test", offer_propose_test),
    Route("blocks", partial(offer_blocks, False)),
    Route("blocks, public guess", partial(offer_blocks, True)),
    Route("sampled, Laplace", partial(_offer_sampled, "laplace")),
    Route("sampled, Gaussian", partial(_offer_sampled, "gaussian")),
)
"""All routes, in the order in which they are shown where nothing else orders them."""

SEARCHED = "table query, range searched"

LABEL_ROUTES: tuple[Route, ...] = (
    Route("blocks, votes", partial(offer_votes, False)),
    Route("blocks, votes, public guess", partial(offer_votes, True)),
    Route("blocks, stable label", offer_stable),
)
"""The routes of a function that answers with labels."""


def routes_of(question: Question) -> tuple[Route, ...]:
    """List the routes that may apply to what is asked."""
    if question.labels is not None:
        return LABEL_ROUTES
    if isinstance(question.statistic, Mode):
        choices = {"top k": offer_top, "noisy max": offer_winner}
        mode = question.statistic
        return (*(Route(name, partial(offer, mode)) for name, offer in choices.items()), *ROUTES)
    statistic = question.numeric
    if question.statistic is None and (question.numbers > 1 or question.ball):
        return (*ROUTES, Route("blocks, vectors", offer_vector))
    if statistic is None or not takes_mean(statistic):
        return ROUTES
    return (*ROUTES, Route(SEARCHED, lambda _: offer_mean(statistic, question, searched=True)))
