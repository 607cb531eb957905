"""How a query's budget is split, and the noise that each part gets; no data is touched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from hushed import noise
from hushed._checks import read_epsilon
from hushed._decimals import decimal_of, read, stated_above, stated_below
from hushed._numeric import float_above, root_above
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.mechanisms import Gaussian
from hushed.privacy_loss import PrivacyProfile, gaussian
from hushed.sensitivity import proven_sensitivity
from hushed.tables._measurements import Influence, Measurement
from hushed.tables._requests import Aggregate
from hushed.tables._selection import threshold

NoiseName = Literal["laplace", "gaussian"]
_LARGEST_SCALE = Fraction(2**55)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceNoise:
    """Discrete Laplace noise on whole steps.

    Parameters
    ----------
    scale : Fraction
        l1 sensitivity over epsilon, in steps; exact.
    """

    scale: Fraction

    def error(self, beta: float) -> float:
        """Smallest whole number of steps that the noise exceeds with chance at most beta.

        ``P(|X| > m) = 2 q**(m+1) / (1 + q)`` with ``q = exp(-1/scale)``, rounded up.
        """
        inverse = 1 / float(self.scale)
        odds = math.log(2) - math.log(beta) - math.log1p(math.exp(-inverse))
        found = odds / inverse - 1
        return float(max(0, math.ceil(found * (1 + 1e-12))))


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalNoise:
    """Discrete Gaussian noise on a grid much finer than sigma.

    Parameters
    ----------
    sensitivity : float
        l2 sensitivity in steps, rounded up.
    sigma : float
        Standard deviation in steps, before the enlargement for rounding; rounded up.
    """

    sensitivity: float
    sigma: float

    def grid(self, dims: int) -> noise.Grid:
        """Grid of the noise for so many numbers at once."""
        return noise.gaussian_grid(sensitivity=self.sensitivity, sigma=self.sigma, dims=dims)

    def error(self, beta: float) -> float:
        """Give the number of steps that the noise exceeds with chance beta at most; rounded up."""
        from scipy.special import ndtri  # noqa: PLC0415  (scipy costs 0.3 s)

        grid = self.grid(noise_dims())
        tail = -float(ndtri(beta / 2)) * self.sigma * grid.enlargement
        return tail * (1 + 1e-12) + math.ldexp(1.0, grid.exponent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The exponential mechanism over the candidates of a quantile.

    Parameters
    ----------
    epsilon : float
        Privacy loss of the choices of all groups together, in nats; rounded down.
    probability : Fraction
        Which quantile; scores are counted in parts of its denominator, as whole numbers.
    width : int
        Largest minus smallest change of a score between neighbours, in the same parts.
    """

    epsilon: float
    probability: Fraction
    width: int

    def score(self, below: int, rows: int) -> int:
        """Score of a candidate: minus the distance of its rank from the wanted one; exact."""
        return -abs(self.probability.denominator * below - self.probability.numerator * rows)

    def error(self, beta: float, candidates: int) -> float:
        """Ranks by which the choice may miss the best candidate, but with chance beta.

        McSherry and Talwar, FOCS 2007, Theorem 6.
        """
        ranks = self.width / self.probability.denominator
        return ranks / self.epsilon * (math.log(candidates) - math.log(beta))


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which private keys are named.

    Parameters
    ----------
    noise : LaplaceNoise
        On the number of users of each key.
    threshold : int
        Noisy number of users from which on a key is named.
    epsilon, delta : float
        What the selection costs.
    """

    noise: LaplaceNoise
    threshold: int
    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A measurement and what protects it.

    Parameters
    ----------
    measurement : Measurement
        What is measured.
    noise : LaplaceNoise, NormalNoise or Choice
        What is drawn.
    share : float
        Its share of the budget.
    """

    measurement: Measurement
    noise: LaplaceNoise | NormalNoise | Choice
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All the noise of a query, and what it promises together.

    Parameters
    ----------
    guarantee : Guarantee
        For adding or removing one unit of privacy.
    unit : {"user", "row"}
        What the unit is.
    parts : tuple of Part
        In the order of the scan.
    selection : Selection, optional
        For private keys.
    rule : str
        How the budget was split, in words.
    loss : PrivacyProfile, optional
        Law of the privacy loss, where all parts are Gaussian: a ledger then counts it exactly.
    """

    guarantee: Guarantee
    unit: Literal["user", "row"]
    parts: tuple[Part, ...]
    selection: Selection | None
    rule: str
    loss: PrivacyProfile | None = None


def noise_dims() -> int:
    """Numbers that one Gaussian query may release: the lemma on discrete noise is used for them."""
    return 2**20


def gaussian_numbers(parts: Sequence[Part], groups: int) -> int:
    """Numbers with Gaussian noise in an answer for so many groups: coordinates of one vector."""
    normal = [part.measurement for part in parts if isinstance(part.noise, NormalNoise)]
    return groups * sum(
        each.feature.bins if each.role == "bins" and each.feature else 1 for each in normal
    )


def lay(
    aggregates: Sequence[Aggregate],
    measured: Sequence[Measurement],
    *,
    touched: Influence,
    unit: Literal["user", "row"],
    private_keys: bool,
    epsilon: float,
    delta: float,
    noise_name: NoiseName,
) -> Plan:
    """Split a budget over the parts of a query.

    Notes
    -----
    Every aggregate gets a share of epsilon by its weight, the selection of keys one of weight 1;
    within an aggregate the measurements share alike. With Laplace noise the epsilons add up
    exactly (rational arithmetic), and an answer on disjoint groups costs what one group costs,
    because the sensitivity counts all groups a unit can touch. Gaussian parts are one Gaussian
    mechanism: each coordinate is divided by its sensitivity and multiplied by the root of its
    share, so that the whole vector moves by at most 1 (Balle and Wang, ICML 2018, Theorem 8).
    """
    epsilon, delta = read_epsilon(epsilon), read("delta", delta, up=False)
    _check_delta(delta, private_keys=private_keys, noise_name=noise_name)
    shares, select = _shares(aggregates, measured, private_keys=private_keys)
    whole = decimal_of(epsilon)
    part = stated_below(decimal_of(delta) / 2)
    half = private_keys and noise_name == "gaussian"
    selection = None
    if private_keys:
        selection = _selection(whole * select, touched, part if half else delta)
    normal = [i for i, m in enumerate(measured) if noise_name == "gaussian" and m.role != "rank"]
    together = sum((shares[i] for i in normal), Fraction(0))
    multiplier = 0.0
    if normal:
        multiplier = _multiplier(stated_below(whole * together), part if half else delta)
    parts = []
    for i, each in enumerate(measured):
        if i in normal:
            drawn: LaplaceNoise | NormalNoise | Choice = _normal(
                each, multiplier, shares[i] / together
            )
        elif each.role == "rank":
            drawn = _choice(each, whole * shares[i])
        else:
            drawn = LaplaceNoise(scale=_scale(Fraction(each.l1), whole * shares[i]))
        parts.append(Part(measurement=each, noise=drawn, share=float(shares[i])))
    return Plan(
        guarantee=Guarantee(epsilon=epsilon, delta=delta, neighbours="add-remove", unit=unit),
        unit=unit,
        parts=tuple(parts),
        selection=selection,
        rule=_rule(len(aggregates), private_keys=private_keys, normal=bool(normal)),
        loss=_loss(multiplier) if len(normal) == len(measured) and not private_keys else None,
    )


def _check_delta(delta: float, *, private_keys: bool, noise_name: str) -> None:
    if noise_name not in ("laplace", "gaussian"):
        raise ParameterError(f"noise must be 'laplace' or 'gaussian', got {noise_name!r}")
    if not 0 <= delta < 1:
        raise ParameterError(f"delta must lie in [0, 1), got {delta!r}")
    if delta == 0 and (private_keys or noise_name == "gaussian"):
        why = "keys selected privately" if private_keys else "Gaussian noise"
        raise ParameterError(
            f"{why} cannot be had with a delta of 0; give one far below 1 / number of users, such "
            "as 1e-8",
            parameter="delta",
        )
    if delta > 0 and not private_keys and noise_name == "laplace":
        raise ParameterError(
            "with public keys and Laplace noise no delta is spent",
            parameter="noise",
            hint="leave delta out, or ask for noise='gaussian'",
        )


def _shares(
    aggregates: Sequence[Aggregate], measured: Sequence[Measurement], *, private_keys: bool
) -> tuple[list[Fraction], Fraction]:
    """Share of each measurement, and of the selection of keys; they add up to 1 exactly."""
    weights = {each.name: Fraction(each.weight) for each in aggregates}
    whole = sum(weights.values(), Fraction(1 if private_keys else 0))
    parts = {name: sum(1 for m in measured if m.output == name) for name in weights}
    shares = [weights[m.output] / parts[m.output] / whole for m in measured]
    return shares, Fraction(1 if private_keys else 0) / whole


def _scale(sensitivity: Fraction, epsilon: Fraction) -> Fraction:
    scale = sensitivity / epsilon
    if scale > _LARGEST_SCALE:
        raise ParameterError(
            f"epsilon {float(epsilon):.3g} for one part of the query is too small for a "
            "sensitivity of this size: ask for fewer aggregates, fewer rows per user, or a larger "
            "epsilon"
        )
    return scale


def _selection(epsilon: Fraction, touched: Influence, delta: float) -> Selection:
    scale = _scale(Fraction(touched.groups), epsilon)
    return Selection(
        noise=LaplaceNoise(scale=scale),
        threshold=threshold(scale=scale, groups=touched.groups, delta=delta),
        epsilon=stated_above(epsilon),
        delta=delta,
    )


def _multiplier(epsilon: float, delta: float) -> float:
    """Noise over sensitivity of all Gaussian parts together."""
    unit = proven_sensitivity(
        1.0, "l2", neighbours="add-remove", argument="parts scaled by their shares"
    )
    return Gaussian(unit, epsilon=epsilon, delta=delta).scale


def _loss(multiplier: float) -> PrivacyProfile:
    """Curve of all Gaussian parts together: one release of a vector that moves by 1; rounded up."""
    return gaussian(math.nextafter(1 / multiplier, math.inf))


def _normal(measurement: Measurement, multiplier: float, share: Fraction) -> NormalNoise:
    sensitivity = float_above(root_above(measurement.l2_squared))
    sigma = sensitivity * multiplier / math.sqrt(share) * (1 + 2.0**-48)
    return NormalNoise(sensitivity=sensitivity, sigma=sigma)


def _choice(measurement: Measurement, epsilon: Fraction) -> Choice:
    """Scores -|#(x < c) - p N|: a row added moves those below it by p and those above by 1 - p.

    Both may raise one score and lower another, so that the spread of the changes is at most twice
    the larger one. A unit may add all its rows to one group, or share them out; either way the
    spreads of all groups add up to at most that of its rows.
    """
    p = Fraction(measurement.probability).limit_denominator(10_000)
    width = 2 * max(p.numerator, p.denominator - p.numerator) * measurement.l1
    return Choice(epsilon=stated_below(epsilon), probability=p, width=width)


def _rule(aggregates: int, *, private_keys: bool, normal: bool) -> str:
    selected = " and the selection of keys" if private_keys else ""
    many = "1 aggregate" if aggregates == 1 else f"{aggregates} aggregates"
    rule = f"epsilon is split over {many}{selected} by weight"
    if aggregates == 1 and not private_keys:
        rule = "all of epsilon is for the one aggregate"
    if not normal:
        return rule
    halves = ", delta in halves over selection and noise" if private_keys else ""
    return f"{rule}; Gaussian parts are composed exactly, as one mechanism{halves}"
