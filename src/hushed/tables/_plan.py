"""How the budget of a query is split, and the noise of each part; no row is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

import numpy as np

from hushed._ground.checks import read_epsilon
from hushed._ground.decimals import decimal_of, read, stated_above, stated_below
from hushed._ground.numeric import LIBRARY, float_above, root_above, round_down, round_up
from hushed._ground.printing import as_given
from hushed._ground.types import Floats
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.mechanisms import Gaussian
from hushed.mechanisms._exponential import ExponentialChoice
from hushed.mechanisms._gaussian import MOST_NUMBERS, profile_of
from hushed.mechanisms._gaussian import GaussianNoise as GaussianNoise  # noqa: PLC0414  (shown)
from hushed.mechanisms._laplace import LaplaceNoise as LaplaceNoise  # noqa: PLC0414  (shown)
from hushed.privacy_loss import PrivacyProfile
from hushed.sensitivity import proven_sensitivity
from hushed.tables._grid import MOST_STEPS
from hushed.tables._measurements import Measurement, UnitContribution
from hushed.tables._requests import Aggregate
from hushed.tables._searching import Search, SearchPart, plan_search
from hushed.tables._selection import tau_threshold
from hushed.tables._top import TopChoice, plan_top
from hushed.transformations._aggregates import exact_scores_movement

NoiseName = Literal["laplace", "gaussian"]
_LARGEST_SCALE = Fraction(2**55)
_LEAST_SHARE = Fraction(1, 2**200)  # far above the doubles whose last bits are lost
_CHOSEN = ("rank", "top", "top users")  # roles that a choice answers, and no noise on numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The exponential mechanism over the candidates of a quantile."""

    epsilon: float  # privacy loss of this quantile in all groups together, in nats; rounded down
    probability: Fraction  # which quantile; scores are integers, in units of 1 over its denominator
    width: int  # largest minus smallest change of a score between neighbours, in the same units

    @property
    def law(self) -> ExponentialChoice:
        """Law of the choice, by scores in these units."""
        return ExponentialChoice(float(self.width), self.epsilon)

    def scores(self, rows: Sequence[int]) -> Floats:
        """Score each candidate, given the rows nearest to it: minus the ranks that it misses by.

        A candidate misses by nothing if the wanted rank is among its rows, or between them and
        those of the next one. Exact.
        """
        near = np.asarray(rows, dtype=np.int64)
        upto = np.cumsum(near)
        ranks = self.probability.denominator * upto
        wanted = self.probability.numerator * int(upto[-1])
        above = ranks - self.probability.denominator * near - wanted
        return np.asarray(-np.maximum(np.maximum(above, wanted - ranks), 0), dtype=np.float64)

    def error(self, beta: float, candidates: int) -> float:
        """Ranks by which the chosen candidate misses, except with probability beta.

        What rounding the scores to a grid adds is counted.
        """
        return round_up(self.law.error(beta, candidates) / self.probability.denominator)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSelection:
    """Private partition selection by tau-thresholding."""

    noise: LaplaceNoise  # on the number of users of each key
    threshold: int  # tau: a key is released if its noisy number of users is at least this
    # Cost of the selection.
    epsilon: float
    delta: float


PartNoise = LaplaceNoise | GaussianNoise | Choice | TopChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A measurement and its noise."""

    measurement: Measurement  # the measurement
    noise: PartNoise  # its noise
    share: float  # its share of the budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All the noise of a query, and the guarantee of all parts together."""

    guarantee: Guarantee  # for adding or removing one unit of privacy
    unit: Literal["user", "row"]  # what the unit is
    parts: tuple[Part, ...]  # in the order of the scan
    selection: PartitionSelection | None  # partition selection, if the keys are private
    rule: str  # how the budget was split, in words
    noise_name: NoiseName  # which noise was asked for
    searches: tuple[SearchPart, ...] = ()  # bounds that are found before anything else is measured
    # Privacy profile, if all parts are Gaussian or a top is chosen: a ledger then counts it
    # exactly.
    loss: PrivacyProfile | None = None


def noise_dims() -> int:
    """Most numbers that one Gaussian query may release: the lemma on discrete noise needs one."""
    return MOST_NUMBERS


def gaussian_numbers(parts: Sequence[Part], groups: int) -> int:
    """Count the numbers with Gaussian noise in an answer for this many groups."""
    return count_numbers([p for p in parts if isinstance(p.noise, GaussianNoise)], groups)


def count_numbers(parts: Sequence[Part], groups: int) -> int:
    """Count the numbers that are read from the rows of this many groups.

    Candidates are never written out for all groups at once: ten of them count as one number.
    """
    measured = [part.measurement for part in parts]
    return groups * sum(map(_count_cells, measured))


def _count_cells(measurement: Measurement) -> int:
    cells = measurement.feature.bins if measurement.feature else 1
    return {"bins": cells, "rank": -(-cells // 10)}.get(measurement.role, 1)


def plan_noise(
    aggregates: Sequence[Aggregate],
    measured: Sequence[Measurement],
    *,
    contribution: UnitContribution,
    unit: Literal["user", "row"],
    select_partitions: bool,
    epsilon: float,
    delta: float,
    noise_name: NoiseName,
    searched: Sequence[Search] = (),
) -> Plan:
    """Split the budget over the parts of a query, and choose the noise of each part.

    Notes
    -----
    Every aggregate gets a share of epsilon by its weight, partition selection one of weight 1;
    within an aggregate, all measurements and searches get the same share. With Laplace noise the
    epsilons add up exactly (rational arithmetic), and an answer on disjoint groups costs what one
    group costs, because the sensitivity counts all groups of a unit. Gaussian parts are one
    mechanism: each coordinate is divided by its sensitivity and multiplied by the root of its
    share, so that the whole vector moves by at most 1 (Balle and Wang, ICML 2018, Theorem 8).
    """
    epsilon, delta = read_epsilon(epsilon), read("delta", delta, up=False)
    _check_delta(delta, select_partitions=select_partitions, noise_name=noise_name)
    shares, select = _shares(
        aggregates, [*measured, *searched], select_partitions=select_partitions
    )
    whole = decimal_of(epsilon)
    part = stated_below(decimal_of(delta) / 2)
    half = select_partitions and noise_name == "gaussian"
    selection = None
    if select_partitions:
        selection = _plan_selection(whole * select, contribution, part if half else delta)
    normal = _choose_gaussian(measured, noise_name)
    together = sum((shares[i] for i in normal), Fraction(0))
    multiplier = 0.0
    if normal:
        multiplier = _multiplier(stated_below(whole * together), part if half else delta)
    others = bool(searched) or select_partitions
    parts = []
    for i, each in enumerate(measured):
        own = shares[i] / together if i in normal else Fraction(0)
        planned = (
            _plan_gaussian(each, multiplier, own)
            if i in normal
            else _plan_pure(each, whole * shares[i], aggregates, unit)
        )
        if any(each.output == search.output for search in searched):
            _check_any_bound(whole * shares[i], multiplier, own)
        parts.append(Part(measurement=each, noise=planned, share=float(shares[i])))
    return Plan(
        guarantee=Guarantee(epsilon=epsilon, delta=delta, neighbours="add-remove", unit=unit),
        unit=unit,
        parts=tuple(parts),
        selection=selection,
        rule=_explain_split(
            len(aggregates), select_partitions=select_partitions, normal=bool(normal)
        ),
        noise_name=noise_name,
        searches=tuple(
            plan_search(each, whole * share, float(share))
            for each, share in zip(searched, shares[len(measured) :], strict=True)
        ),
        loss=None if others else _loss(parts, multiplier),
    )


def _choose_gaussian(measured: Sequence[Measurement], noise_name: NoiseName) -> list[int]:
    """Say which measurements get Gaussian noise; refuse it where none would."""
    if noise_name != "gaussian":
        return []
    normal = [i for i, each in enumerate(measured) if each.role not in _CHOSEN]
    if not normal:
        raise ParameterError(
            "no answer of this query gets Gaussian noise: quantiles are chosen, and bounds are "
            "searched for, with noise of their own",
            parameter="noise",
            hint="leave noise out, and delta as well unless groups are selected by it",
        )
    return normal


def _plan_pure(
    each: Measurement,
    epsilon: Fraction,
    aggregates: Sequence[Aggregate],
    unit: Literal["user", "row"],
) -> PartNoise:
    """Choose the noise of a measurement that gets an epsilon of its own."""
    if each.role == "rank":
        return _plan_quantile(each, epsilon)
    if each.role in ("top", "top users"):
        places = next(asked.k for asked in aggregates if asked.name == each.output)
        moved = each.l1 if each.role == "top" else 1  # a user counts once for each key
        return plan_top(places, moved, epsilon, unit)
    return _of_steps(Fraction(each.l1), epsilon)


def _check_delta(delta: float, *, select_partitions: bool, noise_name: str) -> None:
    if noise_name not in get_args(NoiseName):
        raise ParameterError(
            f"noise must be 'laplace' or 'gaussian', got {as_given(noise_name)}", parameter="noise"
        )
    if not 0 <= delta < 1:
        raise ParameterError(f"delta must lie in [0, 1), got {as_given(delta)}", parameter="delta")
    if delta == 0 and (select_partitions or noise_name == "gaussian"):
        feature = "partition selection" if select_partitions else "Gaussian noise"
        raise ParameterError(
            f"{feature} needs a delta above 0; give one far below 1 / number of users, "
            "such as 1e-8",
            parameter="delta",
        )
    if delta > 0 and not select_partitions and noise_name == "laplace":
        raise ParameterError(
            "public keys and Laplace noise spend no delta",
            parameter="noise",
            hint="leave delta out, or choose noise='gaussian'",
        )


def _shares(
    aggregates: Sequence[Aggregate],
    measured: Sequence[Measurement | Search],
    *,
    select_partitions: bool,
) -> tuple[list[Fraction], Fraction]:
    """Share of each measurement or search, and of partition selection; they add up to 1 exactly."""
    weights = {each.name: Fraction(each.weight) for each in aggregates}
    whole = sum(weights.values(), Fraction(1 if select_partitions else 0))
    parts = {name: sum(1 for m in measured if m.output == name) for name in weights}
    shares = [weights[m.output] / parts[m.output] / whole for m in measured]
    return shares, Fraction(1 if select_partitions else 0) / whole


def _of_steps(sensitivity: Fraction, epsilon: Fraction) -> LaplaceNoise:
    law = LaplaceNoise.of_steps(sensitivity, epsilon)
    if law.scale > _LARGEST_SCALE:
        raise _too_small(f"epsilon {float(epsilon):.3g}")
    return law


def _too_small(part: str) -> ParameterError:
    return ParameterError(
        f"{part} for one part of the query is too small for a sensitivity of this size: use fewer "
        "aggregates, weights that are nearer to each other, smaller contribution bounds, or a "
        "larger epsilon",
        parameter="epsilon",
    )


def _root_of(share: Fraction) -> float:
    """Root of a share of Gaussian noise; below 2**-200 it takes more noise than any grid allows."""
    if share < _LEAST_SHARE:
        raise _too_small(f"a share of {float(share):.3g} of epsilon")
    return math.sqrt(share)


def _check_any_bound(epsilon: Fraction, multiplier: float, own: Fraction) -> None:
    """Refuse now what the noise for some bound would refuse after the search.

    Nothing here depends on the bounds, so that they are refused before the search or never. Of
    Gaussian noise, which has an ``own`` share above 0, rounding asks for the largest scale where
    sigma is just below a power of two.
    """
    if own:
        sigma = math.nextafter(1.0, 0.0)
        moved = round_down(sigma * _root_of(own) / multiplier, LIBRARY)
        GaussianNoise(moved, sigma, whole=True).grid(noise_dims())
    else:
        _of_steps(Fraction(MOST_STEPS), epsilon)


def _plan_selection(
    epsilon: Fraction, contribution: UnitContribution, delta: float
) -> PartitionSelection:
    groups = contribution.groups
    law = _of_steps(Fraction(groups), epsilon)
    return PartitionSelection(
        noise=law,
        threshold=tau_threshold(scale=law.scale, groups=groups, delta=delta),
        epsilon=stated_above(epsilon),
        delta=delta,
    )


def _multiplier(epsilon: float, delta: float) -> float:
    """Noise over sensitivity of all Gaussian parts together."""
    unit = proven_sensitivity(
        1.0, "l2", neighbours="add-remove", argument="parts scaled by their shares"
    )
    return Gaussian(unit, epsilon=epsilon, delta=delta).scale


def _loss(parts: Sequence[Part], multiplier: float) -> PrivacyProfile | None:
    """Privacy profile of Gaussian parts, one vector of l2 sensitivity 1, or of a top; rounded up.

    None for all other parts.
    """
    laws = [part.noise for part in parts]
    if all(isinstance(law, GaussianNoise) for law in laws):
        return profile_of(1.0, multiplier)
    only = laws[0] if len(laws) == 1 else None
    return only.mechanism.loss if isinstance(only, TopChoice) else None


def _plan_gaussian(measurement: Measurement, multiplier: float, share: Fraction) -> GaussianNoise:
    sensitivity = float_above(root_above(measurement.l2_squared))
    sigma = round_up(sensitivity * multiplier / _root_of(share), 16.0)
    return GaussianNoise(sensitivity, sigma, whole=True)


def _plan_quantile(measurement: Measurement, epsilon: Fraction) -> Choice:
    """Scores -max(0, L - p N, p N - U), where L and U rows lie below, and up to, a candidate.

    An added row moves L - p N and p N - U by p or 1 - p, either way, and so the larger one of them
    and 0 by at most the larger one. It may raise one score and lower another, so the spread of the
    changes is at most twice that. A unit may add all its rows to one group or to several; either
    way the spreads of all groups add up to at most the spread of its rows.
    """
    p = Fraction(measurement.probability).limit_denominator(10_000)
    moved = exact_scores_movement(measurement.l1, p) * p.denominator
    width = 2 * moved.numerator  # a whole number
    return Choice(epsilon=stated_below(epsilon), probability=p, width=width)


def _explain_split(aggregates: int, *, select_partitions: bool, normal: bool) -> str:
    selected = " and partition selection" if select_partitions else ""
    many = "1 aggregate" if aggregates == 1 else f"{aggregates} aggregates"
    rule = f"epsilon is split over {many}{selected} by weight"
    if aggregates == 1 and not select_partitions:
        rule = "the only aggregate of the query uses all of epsilon"
    if not normal:
        return rule
    halves = (
        "; half of delta is for partition selection, half for noise" if select_partitions else ""
    )
    return f"{rule}; Gaussian parts are composed exactly, as one mechanism{halves}"
