"""`compare`: each route tried on the same public tables, and one of them recommended."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from hushed._functions._trials import seed_from
from hushed._ground.calls import called_as
from hushed._ground.checks import read_epsilon, require_count, require_positive, require_probability
from hushed._ground.decimals import read
from hushed._ground.numeric import kept_to
from hushed._ground.printing import as_given, flat, format_exactly
from hushed._ground.progress import read_progress, show_stages
from hushed._ground.types import Floats
from hushed.blocks import Blocks
from hushed.blocks._tried import note_trial
from hushed.comparing._laws import estimate_spread
from hushed.comparing._levels import find_price
from hushed.comparing._offers import Offer, Priced, plan_at, price_together
from hushed.comparing._question import (
    Question,
    check_population,
    check_user,
    check_within,
    read_rows,
)
from hushed.comparing._recommending import recommend
from hushed.comparing._record import ComparedRoute, Comparison, LeftOut
from hushed.comparing._routes import Route, routes_of
from hushed.engines._choice import Workers, opens_engine
from hushed.errors import ParameterError
from hushed.populations import Population
from hushed.populations._drawing import count_public, say_shared
from hushed.populations._sources import description
from hushed.runs import Keep
from hushed.runs._journal import check_place
from hushed.sensitivity import Blockwise
from hushed.statistics import Mode, Numeric, Statistic
from hushed.statistics._mode import Category
from hushed.statistics._record import read_candidates
from hushed.statistics._values import check_range

_BETA = 0.05
_LARGEST = 1e300  # of a candidate


@called_as("hs.compare(f, population, rows=100, epsilon=1.0)")
@opens_engine
def compare(
    asked: Statistic | Callable[[Any], Any],
    population: Population,
    *,
    rows: int | None = None,
    user: str | int | None = None,
    epsilon: float | None = None,
    error: float | None = None,
    delta: float = 0.0,
    gamma: float = 0.05,
    low: float | None = None,
    high: float | None = None,
    candidates: Sequence[Any] | None = None,
    labels: bool | None = None,
    centre: Sequence[float] | None = None,
    radius: float | None = None,
    blocks: int | None = None,
    worth: float = 2.0,
    trials: int = 200,
    seed: int = 0,
    workers: Workers = None,
    keep: str | PathLike[str] | Keep | None = None,
    progress: bool | Callable[[str], None] = False,
) -> Comparison:
    """Compare every way to release an answer: promise, error and calls of the function.

    Nothing private is needed or seen. All routes are tried on the same tables, which are drawn from
    a public population.

    Parameters
    ----------
    asked : Statistic or callable
        What is to be released: from `hushed.statistics`, or any function of the rows that gives a
        number, an array of numbers, or a label.
    population : Population
        Public source of rows like the private ones; see `hushed.populations`. Rows that are public
        are said to be so by ``PublicTable(rows)``. Never the private rows, nor anything fitted to
        them.
    rows : int, optional
        Rows in a table. May be left out for a statistic that states it.
    user : str or int, optional
        Column that says whose a row is, for a function: routes then protect users with all their
        rows, and `rows` counts users. The population gives all rows of each, as for
        `hushed.sample_sensitivity`.
    epsilon : float, optional
        Privacy loss of the release, in nats, at which errors are compared; 1 by default.
    error : float, optional
        Instead of epsilon: each route gets the smallest epsilon of three digits, 0.001 to 99.9,
        at which its error is at most this in 95 % of releases; of labels, at which the share of
        wrong ones is at most this. It is searched as if errors fell
        with epsilon, and seen to keep to the error where the level below does not; of blocks,
        whose number changes with epsilon, a smaller one may, too.
    delta : float, default 0
        Slack; in [0, 1). Above 0, routes that need it are compared, too.
    gamma : float, default 0.05
        Share of pairs of rows that a sampled sensitivity may fail to cover; in (0, 1).
    low, high : float, optional
        Public range of the answer of a function, for the routes that need one: `hushed.Blocks`. A
        statistic has its own.
    candidates : sequence of float, or of labels, optional
        Public values to choose from, for the routes that choose. Texts, or truth values, are the
        labels that a function may answer with: give all of them. Then the error is the share of
        releases with another label than that of the whole table, a refusal counted as one.
    labels : bool, optional
        Whether the candidates are labels, none of which is nearer to one than to another. By
        default they are where one of them is a text or a truth value; say True for numbers that
        only name something, such as the candidates 1, 2 and 3 of a vote.
    centre : sequence of float, optional
        Public centre of a ball that holds the answer of a function with several numbers: as many
        as these. With `radius` and a delta above 0, blocks of vectors are compared, too.
    radius : float, optional
        Public radius of that ball, above 0.
    blocks : int, optional
        Number of blocks of the ways by blocks; by default as many as `hushed.Blocks` chooses.
    worth : float, default 2
        How many times as large an error the stronger one of two promises may have, and still be
        recommended; 1 or more.
    trials : int, default 200
        Tables to simulate; 2 or more. Blocks, which call the function often, get 50 at most.
    seed : int, default 0
        Seed of the tables and of the sampler. No noise is drawn: its law is known. The result is
        the same for any number of workers, if a function draws no random numbers of its own.
    workers : int, str, Engine or distributed.Client, optional
        Worker processes, or a cluster: ``"dask://HOST:8786"``, ``"ray"``, a session of Spark;
        see `hushed.engines.engine_of`.
    keep : str, path or hushed.runs.Keep, optional
        Folder, or address of an object store, in which what is measured is kept: the same call
        goes on where an earlier one was interrupted.
    progress : bool or callable, default False
        Show in a terminal or a notebook what is done, and how long the rest of it may take: whole
        tables, a sampling, then the ways on public tables. A function is called with these words.

    Returns
    -------
    Comparison
        A record; printed, it is a table with a recommendation.

    Raises
    ------
    ParameterError
        If a parameter leaves its range, or both epsilon and error are given.
    BadFunction, BadRows
        If the function or the population fails.

    Notes
    -----
    The errors are quantiles of a mixture: over simulated tables, each with the law of the noise on
    it as it is known in closed form. Tail and smoothing of smooth noise are chosen on other tables,
    by `hushed.Smooth.for_population`. So what is left to chance is the choice of tables; the
    standard error for it is in the record.

    Examples
    --------
    >>> import hushed as hs
    >>> s = hs.statistics.median(rows=500, low=0, high=100)
    >>> found = hs.compare(s, hs.populations.Uniform(low=0, high=100), epsilon=1.0, trials=20)
    >>> found.recommended
    'inverse sensitivity'
    """
    known = read_rows(asked, rows)
    check_population(population)
    check_user(asked, population, user)
    if keep is not None:
        check_place(keep, private=False)
    if epsilon is not None and error is not None:
        raise ParameterError("give epsilon or error, not both", parameter="error")
    level = read_epsilon(1.0 if epsilon is None else epsilon)
    most = None if error is None else require_positive("error", error)
    if not isinstance(worth, int | float) or not 1 <= worth < math.inf:
        raise ParameterError(f"worth must be 1 or more, got {as_given(worth)}", parameter="worth")
    shown = read_progress(progress)
    known_labels = _read_labels(asked, candidates, labels)
    question = Question(
        asked=asked,
        population=population,
        rows=known,
        gamma=require_probability("gamma", gamma),
        delta=_read_delta(delta),
        candidates=None if known_labels is not None else _read_candidates(asked, candidates),
        labels=known_labels,
        span=_read_span(asked, low, high, labelled=known_labels is not None),
        trials=require_count("trials", trials, least=2),
        seed=seed_from(seed),
        workers=workers,
        keep=keep,
        user=user,
        blocks=None if blocks is None else require_count("blocks", blocks),
        ball=_read_ball(asked, centre, radius, labelled=known_labels is not None),
    )
    with show_stages(shown) as stages:
        question = replace(question, shown=stages or False)
        if not isinstance(asked, Statistic):
            question = replace(question, numbers=question.answers().shape[1])
            _check_ball(question)
        routes = routes_of(question)
        if most is None:
            found = _price_at(routes, question, level)
        else:
            found = _search(routes, question, most)
    if any(isinstance(each, ComparedRoute) and each.name.startswith("blocks") for each in found):
        note_trial(asked)  # here, for workers may have asked
    spread = _measure_spread(question.answers(), question.labels is not None)
    if not spread[1]:  # which need not be because the rows are alike
        check_within(question)
    comparison = _assemble(question, level, most, float(worth), spread, found)
    name, advice = recommend(comparison)
    shared = say_shared(count_public(question.drawn), known, question.trials)
    return replace(comparison, recommended=name, advice=f"{advice} {shared}".strip())


def _read_span(asked: Any, low: Any, high: Any, *, labelled: bool) -> tuple[float, float] | None:
    """Read the public range of a function's answer, if it was given."""
    if low is None and high is None:
        return None
    if labelled:
        raise ParameterError("labels have no range: leave low and high out", parameter="low")
    if isinstance(asked, Numeric | Mode):
        raise ParameterError(
            "a statistic has its own range: leave low and high out", parameter="low"
        )
    if low is None or high is None:
        raise ParameterError("give both ends of the range, low and high", parameter="low")
    return check_range(low, high)


def _read_ball(
    asked: Any, centre: Any, radius: Any, *, labelled: bool
) -> tuple[tuple[float, ...], float] | None:
    """Read the public ball that holds several numbers, if it was given."""
    if centre is None and radius is None:
        return None
    if isinstance(asked, Statistic) or labelled:
        what = "a statistic has" if isinstance(asked, Statistic) else "labels have"
        raise ParameterError(
            f"a ball is for a function that answers with several numbers, and {what} none: leave "
            "centre and radius out",
            parameter="centre",
        )
    if centre is None or radius is None:
        raise ParameterError("give both centre and radius of the ball", parameter="centre")
    made = Blocks(aggregate="vector", centre=centre, radius=radius, delta=0.5)
    return tuple(made.centre or ()), float(made.radius or 0.0)


def _check_ball(question: Question) -> None:
    """Refuse a centre that is no answer of the function."""
    if question.ball is not None and len(question.ball[0]) != question.numbers:
        given = f"{len(question.ball[0])} number{'s' * (len(question.ball[0]) != 1)}"
        raise ParameterError(
            f"the centre has {given}, and the function answers with {question.numbers}: give as "
            "many",
            parameter="centre",
        )


def _assemble(
    question: Question,
    epsilon: float,
    error: float | None,
    worth: float,
    spread: tuple[float, float],
    found: Sequence[ComparedRoute | LeftOut],
) -> Comparison:
    """Put what was found into a record, the best routes first."""
    routes = [each for each in found if isinstance(each, ComparedRoute)]
    routes.sort(key=lambda each: each.error_95 if error is None else each.guarantee.epsilon)
    return Comparison(
        asked=_describe(question.asked, question.rows, question.user),
        categories=isinstance(question.asked, Mode),
        labels=question.labels is not None,
        neighbours=question.neighbours,
        population=description(question.drawn),
        rows=question.rows,
        epsilon=epsilon if error is None else None,
        error=error,
        gamma=question.gamma,
        delta=question.delta,
        worth=worth,
        trials=question.trials,
        seed=question.seed,
        spread_50=spread[0],
        spread_95=spread[1],
        routes=tuple(routes),
        left_out=tuple(each for each in found if isinstance(each, LeftOut)),
        recommended="",
        advice="",
    )


def _read_labels(asked: Any, candidates: Any, said: bool | None) -> tuple[Category, ...] | None:
    """Read what a function may answer with, if it is labels: as said, else texts, truth values."""
    if said is not None and not isinstance(said, bool):
        raise ParameterError(
            f"labels must be True or False, got {as_given(said)}", parameter="labels"
        )
    listed = isinstance(candidates, Collection)
    if isinstance(asked, Statistic) or not listed:
        if said:
            raise ParameterError(
                "labels=True is about what a function answers with: give a function, and all of "
                "its labels as candidates; a vote is hs.statistics.mode, which has its categories",
                parameter="labels",
            )
        return None
    named = any(isinstance(each, str | bool | np.bool_) for each in candidates)
    if said is False and named:
        raise ParameterError(
            "a text or a truth value among the candidates is a label: leave labels=False out, or "
            "give numbers",
            parameter="labels",
        )
    if not (said or named):
        return None
    found: tuple[Category, ...] = Blocks(candidates, aggregate="votes").values
    return found


def _read_candidates(asked: Any, candidates: Sequence[float] | None) -> tuple[float, ...] | None:
    """Read public values to choose from; those of a statistic lie in its range."""
    if candidates is None:
        return None
    if isinstance(asked, Mode):
        raise ParameterError(
            "a mode is chosen from its categories: leave candidates out", parameter="candidates"
        )
    span = asked.span if isinstance(asked, Numeric) else (-_LARGEST, _LARGEST)
    return tuple(read_candidates(candidates, span).tolist())


def _read_delta(delta: float) -> float:
    known = read("delta", delta, up=False)
    if not 0 <= known < 1:
        raise ParameterError(f"delta must lie in [0, 1), got {as_given(delta)}", parameter="delta")
    return known


def _measure_spread(answers: Floats, labels: bool) -> tuple[float, float]:
    """How far the answers of simulated tables are from their median, without any noise.

    Of labels the share of tables that have another one than most.
    """
    if labels:
        most = int(np.unique(answers, return_counts=True)[1].max())
        share = (len(answers) - most) / len(answers)
        return share, share
    off: Floats = np.abs(answers - np.median(answers, axis=0)).max(axis=1)
    return kept_to(off, 0.5), kept_to(off, 0.95)


def _search(
    routes: Sequence[Route], question: Question, most: float
) -> list[ComparedRoute | LeftOut]:
    """Price each route at the smallest epsilon that keeps to an error."""
    found = []
    for number, route in enumerate(routes, 1):
        offer, what = route.offer(question), f"way {number} of {len(routes)}, {route.name}, on"
        priced = offer if isinstance(offer, str) else find_price(offer, question, most, _BETA, what)
        found.append(_conclude(route.name, offer, priced, question))
    return found


def _price_at(
    routes: Sequence[Route], question: Question, epsilon: float
) -> list[ComparedRoute | LeftOut]:
    """Price all routes at an epsilon, on tables that are drawn once for all of them."""
    offers, plans = [], []
    for route in routes:
        offers.append(route.offer(question))
        plans.append(plan_at(offers[-1], epsilon))
    priced = price_together(plans, question)
    names = [each.name for each in routes]
    return [_conclude(*each, question) for each in zip(names, offers, priced, strict=True)]


def _conclude(
    name: str, offer: Offer | str, priced: Priced | str, question: Question
) -> ComparedRoute | LeftOut:
    """Record a route by its price, or by the reason why it has none."""
    if isinstance(offer, str) or isinstance(priced, str):
        return LeftOut(name=name, reason=flat(str(priced)))
    return ComparedRoute(
        name=name,
        promise=offer.promise,
        guarantee=priced.guarantee,
        error_50=priced.errors.quantile(0.5),
        error_95=priced.errors.quantile(_BETA),
        spread=estimate_spread(priced.errors, _BETA, question.share),
        calls=priced.calls,
        how=priced.how,
        labels=question.labels is not None,
    )


def _describe(asked: Any, rows: int, user: object) -> str:
    """Name what is asked, in words."""
    kind, units = getattr(asked, "kind", None), "rows" if user is None else "users"
    if kind is None:
        other = repr(asked) if isinstance(asked, Blockwise) else type(asked).__name__
        return f"{flat(getattr(asked, '__qualname__', other))} of {rows:,} {units}"
    stated = asked.description()
    if kind == "quantile":
        named = {0.0: "minimum", 0.5: "median", 1.0: "maximum"}
        kind = named.get(stated["q"], f"quantile {stated['q']:g}")
    if kind == "trimmed mean":
        kind = f"mean without {100 * stated['trim']:g} % at each end" if stated["trim"] else "mean"
    private = "" if stated["rows"] else " (a private number)"
    if "low" not in stated:
        return f"{kind} of {rows:,} rows{private}"
    ends = f"[{format_exactly(stated['low'])}, {format_exactly(stated['high'])}]"
    return f"{kind} of {rows:,} rows{private} in {ends}"
