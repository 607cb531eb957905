"""Many releases on the same rows: what they promise together, and by which theorem."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Literal, Protocol, get_args, runtime_checkable

import numpy as np

from hushed import privacy_loss
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee, Protect, union_gamma
from hushed.privacy_loss import Bracket, LossCurve

__all__ = [
    "Composition",
    "Method",
    "Promises",
    "Releasable",
    "advanced_epsilon",
    "at_risk_epsilon",
    "compose",
    "epsilon_for_advantage",
    "optimal_epsilon",
    "parallel",
]

Method = Literal["basic", "advanced", "optimal", "zcdp", "renyi", "loss-distribution", "at-risk"]

_THEOREMS: dict[str, str] = {
    "basic": "sum of the promises (Dwork, Kenthapadi, McSherry, Mironov, Naor, EUROCRYPT 2006)",
    "advanced": "advanced composition (Dwork, Rothblum, Vadhan, FOCS 2010; Dwork and Roth 2014, "
    "Theorem 3.20)",
    "optimal": "optimal composition of equal (epsilon, delta) promises (Kairouz, Oh, Viswanath, "
    "ICML 2015, Theorem 3.3)",
    "optimal-bound": "bound on the composition of unequal (epsilon, delta) promises (Kairouz, Oh, "
    "Viswanath, ICML 2015, Theorem 3.5)",
    "zcdp": "zero-concentrated privacy (Bun, Steinke, TCC 2016), converted by Canonne, Kamath, "
    "Steinke, NeurIPS 2020, Proposition 12",
    "renyi": "Renyi divergences (Mironov, CSF 2017), converted by Canonne, Kamath, Steinke, "
    "NeurIPS 2020, Proposition 12",
    "loss-distribution": "distribution of the privacy loss (Zhu, Dong, Wang, AISTATS 2022, "
    "Theorem 10), upper end of a proven bracket",
    "at-risk": "composition of Laplace mechanisms at risk (Dandekar, Basu, Bressan, PoPETs 2021, "
    "Theorem 3.1)",
}


@runtime_checkable
class Promises(Protocol):
    """Anything that carries a guarantee: a certificate, for one."""

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, and for whom."""


@runtime_checkable
class Releasable(Promises, Protocol):
    """A guarantee together with the curve behind it: a mechanism."""

    @property
    def loss(self) -> LossCurve:
        """Privacy loss at every level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """What several releases promise together.

    Parameters
    ----------
    guarantee : Guarantee
        The joint promise; safe to state.
    method : str
        How it was computed.
    theorem : str
        The theorem behind it, with its source.
    releases : int
        Number of releases.
    exact : Bracket
        Where the smallest possible epsilon at this delta lies, given what is known of the
        releases.
    warnings : tuple of str
        What to know before relying on the numbers.
    """

    guarantee: Guarantee
    method: str
    theorem: str
    releases: int
    exact: Bracket
    warnings: tuple[str, ...] = ()

    @property
    def epsilon(self) -> float:
        """Joint epsilon, in nats, rounded up."""
        return self.guarantee.epsilon

    @property
    def delta(self) -> float:
        """Joint delta."""
        return self.guarantee.delta

    @property
    def looseness(self) -> float:
        """How far the promise lies above the smallest possible one: at most this share of it."""
        if self.exact.low <= 0.0:
            return 0.0 if self.epsilon <= 0.0 else math.inf
        return self.epsilon / self.exact.low - 1.0 if math.isfinite(self.epsilon) else math.inf

    def explain(self) -> str:
        """Say in a few lines what was composed, by which theorem, and how tight it is.

        Returns
        -------
        str
            Plain text.
        """
        g = self.guarantee
        lines = [
            f"{self.releases} releases together: epsilon {g.epsilon:.6g} at delta {g.delta:g}, "
            f"gamma {g.gamma:g}, neighbours {g.neighbours}.",
            f"By: {self.theorem}.",
            f"The smallest possible epsilon lies in [{self.exact.low:.6g}, {self.exact.high:.6g}].",
        ]
        return "\n".join([*lines, *(f"Note: {text}" for text in self.warnings)])


@dataclass(frozen=True, slots=True)
class _Item:
    guarantee: Guarantee | None
    loss: LossCurve
    epsilon: float
    delta: float


def compose(
    releases: Sequence[object],
    *,
    delta: float = 1e-6,
    method: Method = "loss-distribution",
    confidence_levels: Sequence[float] | None = None,
) -> Composition:
    """Join the promises of several releases on the same rows.

    Parameters
    ----------
    releases : sequence
        Mechanisms, certificates, guarantees or loss curves; repeats allowed. Of a bare guarantee
        only (epsilon, delta) is known, so the worst mechanism with that promise is assumed.
    delta : float, default 1e-6
        Joint delta, sensitivity sampling (gamma) apart; in [0, 1]. With ``method="basic"`` the
        deltas add up and this is not used.
    method : str, default "loss-distribution"
        ``basic``, ``advanced``, ``optimal``, ``zcdp``, ``renyi``, ``loss-distribution`` or
        ``at-risk``.
    confidence_levels : sequence of float, optional
        For ``at-risk`` alone: the stronger level claimed for each release; by default
        ``epsilon0 / sqrt(3)``, which minimises the bound for small epsilon0.

    Returns
    -------
    Composition
        Joint guarantee, theorem, and the exact value beside it.

    Raises
    ------
    ParameterError
        If there is nothing to compose, delta is out of range or not reachable, the neighbour
        relations differ, gamma adds up to 1, or the method does not apply.

    Notes
    -----
    All methods but ``at-risk`` also cover an adversary who chooses each release after seeing the
    ones before. A sampled sensitivity that is used several times counts its gamma once.
    """
    if not 0 <= delta <= 1:
        raise ParameterError(f"delta must lie in [0, 1], got {delta}")
    if method not in get_args(Method):
        raise ParameterError(f"method must be one of {get_args(Method)}, got {method!r}")
    items = [_item(one) for one in releases]
    if not items:
        raise ParameterError("there is nothing to compose: give at least one release")
    total = privacy_loss.compose([item.loss for item in items])
    theorem = _THEOREMS[method]
    warnings: list[str] = []
    if method == "basic":
        epsilon = _up(math.fsum(item.epsilon for item in items), len(items))
        delta = min(1.0, _up(math.fsum(item.delta for item in items), len(items)))
    elif method == "loss-distribution":
        epsilon = total.epsilon(delta)
    elif method == "optimal":
        epsilon, theorem = _optimal(items, delta)
    elif method == "advanced":
        epsilon = _advanced(items, delta)
    elif method in ("zcdp", "renyi"):
        epsilon = _concentrated(total, delta, method)
    else:
        epsilon, warnings = _at_risk(items, delta, confidence_levels)
    exact = total.epsilon_bracket(delta)
    if not math.isfinite(epsilon):
        raise ParameterError(_unreachable(items, total, delta, method))
    return Composition(
        guarantee=_joint(items, epsilon, delta),
        method=method,
        theorem=theorem,
        releases=len(items),
        exact=exact,
        warnings=tuple(warnings + _too_low(epsilon, exact)),
    )


def _item(release: object) -> _Item:
    """Gather what is known of one release."""
    if isinstance(release, LossCurve):
        end = release.supremum
        return _Item(None, release, end, 0.0)
    if isinstance(release, Guarantee):
        return _Item(release, _worst(release), release.epsilon, release.delta)
    if isinstance(release, Releasable) and isinstance(release.loss, LossCurve):
        promise = release.guarantee
        return _Item(promise, release.loss, promise.epsilon, promise.delta)
    if isinstance(release, Promises):
        promise = release.guarantee
        return _Item(promise, _worst(promise), promise.epsilon, promise.delta)
    raise ParameterError(
        "a release must be a mechanism, a certificate, a Guarantee or a loss curve, got "
        f"{type(release).__name__}"
    )


def _worst(promise: Guarantee) -> LossCurve:
    return _worst_curve(promise.epsilon, promise.delta)


@lru_cache(maxsize=1024)
def _worst_curve(epsilon: float, delta: float) -> LossCurve:
    return privacy_loss.approximate(epsilon, delta)


def _joint(items: Sequence[_Item], epsilon: float, delta: float) -> Guarantee:
    """Joint guarantee; refuses what cannot be joined."""
    promises = [item.guarantee for item in items if item.guarantee is not None]
    if not promises:
        return Guarantee(epsilon=epsilon, delta=delta)
    return _carry(promises, epsilon, delta)


def _carry(promises: Sequence[Guarantee], epsilon: float, delta: float) -> Guarantee:
    relations = {promise.neighbours for promise in promises}
    if len(relations) > 1:
        raise ParameterError(
            f"promises for different neighbour relations cannot be joined: {sorted(relations)}; "
            "state all of them for one relation"
        )
    gamma = union_gamma(promises)
    if gamma >= 1:
        raise ParameterError(
            f"the gammas add up to {gamma:.6g}: nothing is promised any more; use fewer different "
            "sampled sensitivities, or a smaller gamma for each"
        )
    sampled = {promise.protect for promise in promises if promise.gamma > 0}
    events: dict[str, float] = {}
    for promise in promises:
        for fingerprint, share in promise.estimates:
            events[fingerprint] = max(share, events.get(fingerprint, 0.0))
    by_hand = any(promise.gamma > 0 and not promise.estimates for promise in promises)
    return Guarantee(
        epsilon=epsilon,
        delta=delta,
        gamma=gamma,
        neighbours=promises[0].neighbours,
        protect=_weakest(sampled or {promise.protect for promise in promises}),
        data_dependent=any(promise.data_dependent for promise in promises),
        # A gamma stated by hand has no fingerprint; the joint gamma then stands by itself.
        estimates=() if by_hand else tuple(sorted(events.items())),
    )


def _weakest(found: set[Protect]) -> Protect:
    """Weakest of the scopes: one record, then all records by whichever argument."""
    if "record" in found:
        return "record"
    return "everyone" if "everyone" in found else "simultaneous"


def _too_low(epsilon: float, exact: Bracket) -> list[str]:
    if epsilon >= exact.low * (1 - 1e-9):
        return []
    return [
        f"this epsilon, {epsilon:.6g}, lies below the smallest possible one, {exact.low:.6g}: it "
        "is not a guarantee"
    ]


def _unreachable(items: Sequence[_Item], total: LossCurve, delta: float, method: str) -> str:
    if total.infinite > delta:
        return (
            f"delta={delta:g} cannot be reached: the releases lose everything with probability "
            f"{total.infinite:.6g}; ask for a larger delta"
        )
    unbounded = sum(math.isinf(item.loss.supremum) for item in items)
    if delta == 0 and unbounded:
        return (
            f"{unbounded} of the releases have no finite epsilon at delta = 0 (Gaussian noise, "
            "for one); give delta above 0"
        )
    return (
        f"method {method!r} gives no finite epsilon at delta={delta:g}; use "
        "method='loss-distribution'"
    )


def _up(value: float, terms: int) -> float:
    return value if terms == 1 else value * (1 + terms * 2.0**-52)


def _split(items: Sequence[_Item], delta: float, method: str) -> tuple[list[_Item], float]:
    """Items with finite promises, and the delta that their own deltas leave over."""
    bare = [
        item
        if math.isfinite(item.epsilon)
        else _Item(
            item.guarantee,
            item.loss,
            item.loss.epsilon(delta / (2 * len(items))),
            delta / (2 * len(items)),
        )
        for item in items
    ]
    spent = math.fsum(item.delta for item in bare)
    if spent >= delta:
        raise ParameterError(
            f"method {method!r} needs a joint delta above the sum of the releases' own, "
            f"{spent:.6g}, got {delta:g}; ask for a larger delta or use "
            "method='loss-distribution'"
        )
    return bare, delta - spent


def advanced_epsilon(epsilons: Iterable[float], delta: float) -> float:
    """Epsilon of advanced composition of pure promises.

    Parameters
    ----------
    epsilons : iterable of float
        Levels of the releases, in nats; 0 or more.
    delta : float
        Slack of the theorem; in (0, 1).

    Returns
    -------
    float
        ``sqrt(2 log(1/delta) sum(e^2)) + sum(e (exp(e) - 1))``, rounded up; infinite where the
        exponential overflows.

    Raises
    ------
    ParameterError
        If ``delta`` lies outside (0, 1).

    Notes
    -----
    Dwork and Roth, *The Algorithmic Foundations of Differential Privacy*, 2014, Theorem 3.20,
    for equal levels; the same proof adds up different ones.
    """
    if not 0 < delta < 1:
        raise ParameterError(f"delta must lie in (0, 1), got {delta}")
    levels = np.fromiter(epsilons, dtype=float)
    with np.errstate(over="ignore"):
        drift = math.fsum(levels * np.expm1(levels))
    swing = math.sqrt(2 * math.log(1 / delta) * math.fsum(levels**2))
    return (swing + drift) * (1 + 1e-14)


def _advanced(items: Sequence[_Item], delta: float) -> float:
    bare, left = _split(items, delta, "advanced")
    if left <= 0 or left >= 1:
        return math.fsum(item.epsilon for item in bare)
    return advanced_epsilon([item.epsilon for item in bare], left)


def optimal_epsilon(epsilon: float, delta: float, count: int, joint_delta: float) -> float:
    """Smallest joint epsilon of equal releases of which only (epsilon, delta) is known.

    Parameters
    ----------
    epsilon : float
        Level of each release, in nats; 0 or more.
    delta : float
        Slack of each release; in [0, 1].
    count : int
        Number of releases; 1 or more.
    joint_delta : float
        Joint slack; in [0, 1].

    Returns
    -------
    float
        Joint level, rounded up; infinite where ``1 - (1 - delta)^count`` exceeds the slack.

    Notes
    -----
    Kairouz, Oh and Viswanath, *The Composition Theorem for Differential Privacy*, ICML 2015,
    Theorem 3.3, between its levels ``(count - 2 i) epsilon`` too, where the same pair of
    distributions is the worst case. Summed in logarithms, rounded up by 1e-9 relatively.
    """
    lost = -math.expm1(count * math.log1p(-delta)) if delta < 1 else 1.0
    if joint_delta >= 1:
        return 0.0
    left = (joint_delta - lost) / (1 - lost) if lost < 1 else -1.0
    if left < 0 or (left == 0 and lost > 0):
        return math.inf
    if left == 0 or epsilon == 0:
        return count * epsilon
    from scipy.special import gammaln  # noqa: PLC0415

    hits = np.arange(count + 1)
    log_choose = gammaln(count + 1) - gammaln(hits + 1) - gammaln(count - hits + 1)
    log_mass = log_choose - count * np.logaddexp(0.0, -epsilon) - (count - hits) * epsilon
    masses, losses = np.exp(log_mass) * (1 + 1e-9), (2 * hits - count) * epsilon
    # delta(e) = sum of mass (1 - exp(e - loss)) is linear in exp(e) between two losses.
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        here = masses[middle:] @ -np.expm1(losses[middle] - losses[middle:])
        low, high = (low, middle) if here <= left else (middle, high)
    above = float(masses[high:].sum())
    fading = float(masses[high:] @ np.exp(losses[high] - losses[high:]))
    if above <= left:
        return 0.0
    return max(0.0, float(losses[high]) + math.log((above - left) / fading)) * (1 + 1e-14)


def _optimal(items: Sequence[_Item], delta: float) -> tuple[float, str]:
    if any(math.isinf(item.epsilon) for item in items):
        raise ParameterError(
            "method 'optimal' needs an (epsilon, delta) promise for every release; a bare loss "
            "curve without a largest loss has none: use method='loss-distribution'"
        )
    first = items[0]
    if all((item.epsilon, item.delta) == (first.epsilon, first.delta) for item in items):
        found = optimal_epsilon(first.epsilon, first.delta, len(items), delta)
        return found, _THEOREMS["optimal"]
    return _optimal_bound(items, delta), _THEOREMS["optimal-bound"]


def _optimal_bound(items: Sequence[_Item], delta: float) -> float:
    """Kairouz, Oh and Viswanath's Theorem 3.5, for unequal promises."""
    levels = np.array([item.epsilon for item in items])
    log_kept = math.fsum(math.log1p(-item.delta) for item in items if item.delta < 1)
    if any(item.delta >= 1 for item in items):
        return math.inf
    slack = 1 - (1 - delta) * math.exp(-log_kept)
    total = math.fsum(levels)
    if slack <= 0:
        return total if slack == 0 and delta == 0 else math.inf
    squares = math.fsum(levels**2)
    drift = math.fsum(levels * np.tanh(levels / 2))
    if squares == 0 or slack >= 1:
        return 0.0
    swing = 2 * squares
    one = drift + math.sqrt(swing * math.log(math.e + math.sqrt(squares) / slack))
    other = drift + math.sqrt(swing * math.log(1 / slack))
    return min(total, one, other) * (1 + 1e-14)


def _concentrated(total: LossCurve, delta: float, method: str) -> float:
    """Best conversion over the orders; any order gives a valid bound."""
    if delta >= 1.0:
        return 0.0
    if delta == 0.0:
        return total.supremum
    size = min(max(total.family.scale, 1e-150), 1e150)
    reach = np.geomspace(1e-3, 1e5, 600) / min(size, 1e4)
    orders = 1.0 + reach
    if method == "zcdp":
        divergence = total.zcdp() * orders
    else:
        divergence = np.array([total.renyi(float(order)) for order in orders])
    bound = divergence + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / reach
    return min(max(0.0, float(bound.min())) * (1 + 1e-12), total.supremum)


def at_risk_epsilon(
    epsilon0: float, level: float, count: int, delta: float, *, confidence: float
) -> float:
    """Joint epsilon of equal Laplace releases at risk, as published.

    Parameters
    ----------
    epsilon0 : float
        Level that the noise was calibrated to, in nats; above 0.
    level : float
        Stronger level claimed with ``confidence``, in nats; in [0, epsilon0].
    count : int
        Number of releases.
    delta : float
        Joint slack; in (0, 1).
    confidence : float
        Confidence of the stronger level; in [0, 1].

    Returns
    -------
    float
        ``epsilon0 sqrt(2 k log(1/delta)) + k mu`` with ``mu = c e (exp(e) - 1) + (1 - c) e0
        (exp(e0) - 1)``.

    Raises
    ------
    ParameterError
        If ``level`` exceeds ``epsilon0``, or a number is out of range.

    Notes
    -----
    Dandekar, Basu and Bressan, *Differential Privacy at Risk*, PoPETs 2021, Theorem 3.1; with
    confidence 0 it is Theorem 3.20 of Dwork and Roth. Hoeffding's inequality makes it a
    guarantee for Laplace noise where mu is at least the mean loss ``e0 - 1 + exp(-e0)``.
    """
    if not 0 < delta < 1:
        raise ParameterError(f"delta must lie in (0, 1), got {delta}")
    if not 0 <= level <= epsilon0:
        raise ParameterError(f"level must lie in [0, epsilon0={epsilon0}], got {level}")
    if not 0 <= confidence <= 1:
        raise ParameterError(f"confidence must lie in [0, 1], got {confidence}")
    swing = epsilon0 * math.sqrt(2 * count * math.log(1 / delta))
    return swing + count * _risk_mean(epsilon0, level, confidence)


def _risk_mean(epsilon0: float, level: float, confidence: float) -> float:
    if epsilon0 > 700:
        return math.inf
    strong, weak = level * math.expm1(level), epsilon0 * math.expm1(epsilon0)
    return confidence * strong + (1 - confidence) * weak


def _at_risk(
    items: Sequence[_Item], delta: float, levels: Sequence[float] | None
) -> tuple[float, list[str]]:
    """Theorem 3.1 for different levels: squares and means add up."""
    from hushed.privacy_loss.families import LaplaceLoss  # noqa: PLC0415

    laws = [item.loss.family for item in items]
    bounds = [law.bound for law in laws if isinstance(law, LaplaceLoss)]
    if len(bounds) != len(items):
        raise ParameterError("method 'at-risk' is proved for Laplace mechanisms alone")
    if not 0 < delta < 1:
        raise ParameterError(f"method 'at-risk' needs delta in (0, 1), got {delta}")
    chosen = [b / math.sqrt(3) for b in bounds] if levels is None else list(levels)
    if len(chosen) != len(bounds):
        raise ParameterError(
            f"give one confidence level per release: {len(bounds)} wanted, {len(chosen)} given"
        )
    drift, mean = [], []
    for bound, level in zip(bounds, chosen, strict=True):
        if not 0 <= level <= bound:
            raise ParameterError(f"a level must lie in [0, epsilon0={bound}], got {level}")
        confidence = math.expm1(-level) / math.expm1(-bound)
        drift.append(_risk_mean(bound, level, confidence))
        mean.append(bound + math.expm1(-bound))
    swing = math.sqrt(2 * math.log(1 / delta) * math.fsum(b * b for b in bounds))
    notes = ["the stronger level holds with a published confidence, not with a proved one"]
    if math.fsum(drift) < math.fsum(mean):
        notes.append(
            f"the published mean loss, {math.fsum(drift):.6g}, is below the true one, "
            f"{math.fsum(mean):.6g}: the theorem does not apply and this is not a guarantee"
        )
    return swing + math.fsum(drift), notes


def parallel(
    parts: Sequence[object], *, membership: Literal["private", "public"] = "private"
) -> Composition:
    """Join releases on disjoint parts of the rows.

    Parameters
    ----------
    parts : sequence
        One release per part: mechanisms, certificates or guarantees.
    membership : {"private", "public"}, default "private"
        Whether which row lies in which part may itself depend on the row. Public membership
        never changes between neighbours.

    Returns
    -------
    Composition
        The largest epsilon and the largest delta. Gammas are added: which part a record lies in
        may depend on the record.

    Raises
    ------
    ParameterError
        If there are no parts, or the relation is replace-one with private membership: a replaced
        row may leave one part and enter another, which no replace-one promise covers.

    Notes
    -----
    McSherry, *Privacy Integrated Queries*, SIGMOD 2009, Theorem 4: for adding or removing one
    record. It changes one part only.
    """
    items = [_item(one) for one in parts]
    promises = [item.guarantee for item in items if item.guarantee is not None]
    if not items or len(promises) != len(items):
        raise ParameterError(
            "parallel composition needs mechanisms, certificates or guarantees: the neighbour "
            "relation must be known"
        )
    if membership not in ("private", "public"):
        raise ParameterError(f"membership must be 'private' or 'public', got {membership!r}")
    if membership == "private" and promises[0].neighbours == "replace-one":
        raise ParameterError(
            "under replace-one a replaced row may leave one part and enter another, so the largest "
            "promise does not cover it; state the promises for add-remove, say "
            "membership='public' if no row can change its part, or use compose"
        )
    epsilon = max(promise.epsilon for promise in promises)
    delta = max(promise.delta for promise in promises)
    return Composition(
        guarantee=_carry(promises, epsilon, delta),
        method="parallel",
        theorem="disjoint parts (McSherry, SIGMOD 2009, Theorem 4)",
        releases=len(items),
        exact=Bracket(low=max(item.loss.epsilon(delta) for item in items), high=epsilon),
    )


def epsilon_for_advantage(
    advantage: float,
    *,
    releases: int = 1,
    family: Literal["laplace", "bounded-range", "gaussian"] = "laplace",
) -> float:
    """Largest level per release that keeps every attacker's joint advantage small.

    Parameters
    ----------
    advantage : float
        Wanted bound on true positive minus false positive rate of any attacker who guesses
        between two neighbours from all releases; in (0, 1).
    releases : int, default 1
        Number of equal releases; 1 or more.
    family : {"laplace", "bounded-range", "gaussian"}, default "laplace"
        Mechanism. For Gaussian noise the result is the ratio sensitivity over sigma.

    Returns
    -------
    float
        Level in nats (or ratio), rounded down; within 0.01 % of the largest for one release or
        Gaussian noise, 0.1 % otherwise.

    Raises
    ------
    ParameterError
        If ``advantage`` lies outside (0, 1) or ``releases`` is below 1.
    """
    if not 0 < advantage < 1:
        raise ParameterError(f"advantage must lie in (0, 1), got {advantage}")
    if releases < 1:
        raise ParameterError(f"releases must be 1 or more, got {releases}")
    makers = {
        "laplace": privacy_loss.laplace,
        "bounded-range": privacy_loss.bounded_range,
        "gaussian": privacy_loss.gaussian,
    }
    if family not in makers:
        raise ParameterError(f"family must be one of {tuple(makers)}, got {family!r}")

    def joint(level: float) -> float:
        return makers[family](level).compose(releases).advantage()

    # Many small losses look Gaussian, with a ratio of about the level times sqrt(releases).
    guess = 2 * NormalDist().inv_cdf((1 + advantage) / 2) / math.sqrt(releases)
    low, high = guess, guess
    while joint(low) > advantage:
        low, high = 0.7 * low, low
    at_high = joint(high)
    while at_high <= advantage:
        low, high = high, 1.5 * high
        at_high = joint(high)
    at_low = joint(low)
    # False position, kept honest by a bisection step whenever it moves one end too little.
    for turn in range(200):
        if high - low < 1e-5 * low:
            break
        share = (advantage - at_low) / (at_high - at_low)
        middle = low + (high - low) * (min(max(share, 0.02), 0.98) if turn % 3 < 2 else 0.5)
        value = joint(middle)
        if value <= advantage:
            low, at_low = middle, value
        else:
            high, at_high = middle, value
    return low
