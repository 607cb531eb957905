"""Many releases on the same rows: what they promise together, and by which theorem."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np

from hushed import privacy_loss
from hushed._ground.calls import called_as, given_by
from hushed._ground.checks import read_list, require_one_of, require_within
from hushed._ground.decimals import (
    decimal_of,
    lower_double,
    read,
    stated_above,
    stated_below,
    total_of,
)
from hushed._ground.notebook import Shown
from hushed._ground.numeric import LIBRARY, round_up, sum_of_levels
from hushed._ground.printing import format_down, format_up
from hushed._ground.weak_promises import NOMINAL
from hushed.accounting._explained import explains, find_priced_law
from hushed.accounting._promises import Promises, Releasable, joined
from hushed.accounting._theorems import (
    advanced_epsilon,
    at_risk_mean,
    optimal_bound_epsilon,
    optimal_epsilon,
    renyi_conversion,
)
from hushed.errors import ParameterError
from hushed.guarantee import CHOSEN_FIRST, SAME_EVENT, Guarantee, Neighbours, Unit
from hushed.privacy_loss import Bracket, PrivacyProfile

# What every theorem here rests on; the filters of a ledger do not.
FIXED = (
    "This holds if the number of releases, and how much each may lose, was fixed before the first "
    "answer. If answers decided it, a budget covers it, and no sum afterwards."
)


def say_of_gamma(promise: Guarantee | None) -> str:
    """Say what the sum of several gammas rests on; nothing where there is none."""
    if promise is None or not promise.gamma:
        return ""
    return f"{CHOSEN_FIRST} {say_once(promise)}".strip()


def say_once(promise: Guarantee | None) -> str:
    """Say when a sampled sensitivity counts its gamma once; nothing where none is shared."""
    if promise is None or not promise.estimates:
        return ""
    return (
        "A sampled sensitivity counts its gamma once; this is right if all releases are of "
        f"{SAME_EVENT[promise.unit]}."
    )


Method = Literal["basic", "advanced", "optimal", "zcdp", "renyi", "pld", "at-risk"]


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
    "pld": "distribution of the privacy loss (Zhu, Dong, Wang, AISTATS 2022, "
    "Theorem 10), upper end of a proven bracket",
    "at-risk": "composition of Laplace mechanisms at risk (Dandekar, Basu, Bressan, PoPETs 2021, "
    "Theorem 3.1)",
}


@given_by("hs.compose([hs.Guarantee(epsilon=0.5), hs.Guarantee(epsilon=0.5)])")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Composition(Shown):
    """What several releases promise together.

    Parameters
    ----------
    epsilon : float
        Joint epsilon, in nats, rounded up.
    delta : float
        Joint delta.
    guarantee : Guarantee, optional
        The joint promise; safe to state. None for bare curves of which the caller did not say
        between which neighbours they hold: the numbers then hold for the curves' own relation.
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

    epsilon: float
    delta: float
    guarantee: Guarantee | None
    method: str
    theorem: str
    releases: int
    exact: Bracket
    warnings: tuple[str, ...] = ()

    def _brief(self) -> str:
        g = self.guarantee
        gamma = f", gamma {format_up(g.gamma)}" if g is not None and g.gamma else ""
        nominal = "; not a privacy guarantee" if g is not None and g.data_dependent else ""
        return (
            f"Composition of {self.releases} releases: epsilon {format_up(self.epsilon)}, delta "
            f"{format_up(self.delta)}{gamma}{nominal}"
        )

    @property
    def relative_gap(self) -> float:
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
        whom = (
            "relation: the curves' own (no promise until neighbours= says which)"
            if g is None
            else f"gamma {format_up(g.gamma)}, neighbours {g.neighbours}, unit {g.unit}"
            + f", {g.distance} at once" * (g.distance > 1)
        )
        number = "1 release" if self.releases == 1 else f"{self.releases} releases together"
        lines = [
            f"{number}: epsilon {format_up(self.epsilon)} at delta "
            f"{format_up(self.delta)}, {whom}.",
            f"By: {self.theorem}.",
            f"The smallest possible epsilon lies in [{format_down(self.exact.low)}, "
            f"{format_up(self.exact.high)}].",
        ]
        if self.releases > 1:
            lines.append(FIXED)
            lines += [say_of_gamma(g)] * bool(say_of_gamma(g))
        if g is not None and g.protect == "table" and self.releases > 1:
            lines.append(
                "Together they are about those new rows only that every sampled one of them was "
                "given (protect='table')."
            )
        if g is not None and g.data_dependent:
            lines.insert(0, f"WARNING: {NOMINAL}.")
        return "\n".join([*lines, *(f"Note: {text}" for text in self.warnings)])


@dataclass(frozen=True, slots=True)
class _Item:
    guarantee: Guarantee | None
    loss: PrivacyProfile
    epsilon: float
    delta: float


@called_as("hs.compose([hs.Guarantee(epsilon=0.5), hs.Guarantee(epsilon=0.5)])")
def compose(
    releases: Sequence[object],
    *,
    delta: float = 1e-6,
    method: Method = "pld",
    confidence_levels: Sequence[float] | None = None,
    neighbours: Neighbours | None = None,
    unit: Unit = "row",
) -> Composition:
    """Join the promises of several releases on the same rows.

    Parameters
    ----------
    releases : sequence
        Mechanisms, certificates, guarantees, privacy profiles; repeats allowed, a million at most
        (of one mechanism more with `PrivacyProfile.compose`). Of a bare guarantee
        only (epsilon, delta) is known, so the worst mechanism with that promise is assumed. A
        curve does not say between which tables it holds: see ``neighbours``.
    delta : float, default 1e-6
        Joint delta, sensitivity sampling (gamma) apart; in [0, 1]. With ``method="basic"`` the
        deltas add up and this is not used.
    method : str, default "pld"
        ``basic``, ``advanced``, ``optimal``, ``zcdp``, ``renyi``, ``pld`` or
        ``at-risk``.
    confidence_levels : sequence of float, optional
        For ``at-risk`` alone: the stronger level claimed for each release; by default
        ``epsilon0 / sqrt(3)``, which minimises the bound for small epsilon0.
    neighbours : {"replace-one", "add-remove"}, optional
        Between which neighbours the bare curves hold. Needed where they are joined with promises;
        with curves alone and none given the result makes no promise.
    unit : {"row", "user"}, default "row"
        What differs between those neighbours.

    Returns
    -------
    Composition
        Joint guarantee, theorem, and the exact value beside it.

    Raises
    ------
    ParameterError
        If there is nothing to compose, delta is out of range or not reachable, the neighbour
        relations or the units differ or are not known, a curve is one-sided, gamma adds up to 1,
        or the method does not apply.

    Notes
    -----
    All methods but ``at-risk`` also cover an adversary who chooses what each release asks after
    seeing the ones before; but not how many there are, nor how much each may lose. Whoever chooses
    that by the answers is covered by the filters of a `hushed.Ledger` alone. A sampled sensitivity
    that is used several times counts its gamma once, which is right for the same table with its
    rows in the same order (for a symmetric function that is no average over blocks, in any order).
    """
    delta = read("delta", delta, up=False)
    require_within("delta", delta, 0, 1)
    require_one_of("method", method, get_args(Method))
    items = [read_item(one) for one in read_sequence(releases)]
    if not items:
        raise ParameterError("there is nothing to compose: give at least one release")
    relation = (
        None if neighbours is None else Guarantee(epsilon=0.0, neighbours=neighbours, unit=unit)
    )
    _check_relation(items, relation)
    total = privacy_loss.compose([item.loss for item in items])
    theorem = _THEOREMS[method]
    warnings: list[str] = []
    if method == "basic":
        epsilon = _sum(item.epsilon for item in items)
        delta = min(1.0, _sum(item.delta for item in items))
    elif method == "pld":
        epsilon = total.epsilon(delta)
    elif method == "optimal":
        epsilon, theorem = _optimal(items, delta)
    elif method == "advanced":
        epsilon = _advanced(items, delta)
    elif method in ("zcdp", "renyi"):
        epsilon = _concentrated(total, delta, method)
    else:
        epsilon, warnings = _at_risk(items, delta, confidence_levels)
    exact = _bracket(total, delta, math.inf if method == "at-risk" else epsilon)
    if not math.isfinite(epsilon):
        raise ParameterError(_unreachable(items, total, delta, method))
    return Composition(
        epsilon=epsilon,
        delta=delta,
        guarantee=_joint(items, relation, epsilon, delta),
        method=method,
        theorem=theorem,
        releases=len(items),
        exact=exact,
        warnings=tuple(warnings),
    )


def _bracket(total: PrivacyProfile, delta: float, proven: float) -> Bracket:
    """Bracket of the curve, too coarse near the smallest doubles: what is proven bounds it."""
    found = total.epsilon_bracket(delta)
    return Bracket(low=min(found.low, proven), high=min(found.high, proven))


def read_sequence(releases: object) -> list[object]:
    return read_list("the releases", releases, of="[first, second]")


def read_item(release: object) -> _Item:
    """Gather what is known of one release."""
    if not isinstance(release, Promises):  # of a release its certificate says it
        release = getattr(release, "certificate", release)
    loss = release.loss if isinstance(release, Releasable) else release
    if isinstance(loss, PrivacyProfile) and loss.one_sided:
        raise ParameterError(
            "a one-sided curve is half of a guarantee: it says nothing of the other order of "
            "the two tables; compose hs.privacy_loss.pair(p, q), the larger of both"
        )
    if isinstance(release, PrivacyProfile):
        end = release.supremum
        return _Item(None, release, end, 0.0)
    if isinstance(release, Guarantee):
        return _Item(release, _worst(release), release.epsilon, release.delta)
    if isinstance(release, Releasable) and isinstance(release.loss, PrivacyProfile):
        return _read_both(release.guarantee, release.loss, type(release).__name__)
    if isinstance(release, Promises) and isinstance(release.guarantee, Guarantee):
        promise = release.guarantee
        return _Item(promise, _worst(promise), promise.epsilon, promise.delta)
    raise ParameterError(
        "what is composed must be a mechanism, a release, a certificate, the answer of a query, a "
        "Guarantee or a privacy profile (of a chain its guarantee(), for an epsilon alone "
        f"Guarantee(epsilon=...)), got {type(release).__name__}"
    )


def _read_both(promise: Guarantee, loss: PrivacyProfile, kind: str) -> _Item:
    """Compare a promise and a law, which are an author's word; a smaller law counts for nothing."""
    if not explains(loss, promise.epsilon, promise.delta):
        raise ParameterError(
            f"the loss of {kind} needs more than delta {format_down(promise.delta, 4)} at epsilon "
            f"{format_down(promise.epsilon)}, which its guarantee says, or cannot be shown to keep "
            "it: they are not of the same release. Compose one of them alone"
        )
    known = find_priced_law(promise, loss) or _worst(promise)
    return _Item(promise, known, promise.epsilon, promise.delta)


def _worst(promise: Guarantee) -> PrivacyProfile:
    return _worst_curve(promise.epsilon, promise.delta)


@lru_cache(maxsize=1024)
def _worst_curve(epsilon: float, delta: float) -> PrivacyProfile:
    return privacy_loss.approximate(epsilon, delta)


def _check_relation(items: Sequence[_Item], relation: Guarantee | None) -> None:
    """Refuse to guess between which neighbours a bare curve holds."""
    bare = sum(item.guarantee is None for item in items)
    if relation is None and 0 < bare < len(items):
        raise ParameterError(
            f"{bare} of the releases are bare privacy profiles, which do not say between which "
            "neighbours they hold: give neighbours= (and unit=), or compose mechanisms"
        )


def _joint(
    items: Sequence[_Item], relation: Guarantee | None, epsilon: float, delta: float
) -> Guarantee | None:
    """Joint guarantee, if there is one; refuses what cannot be joined."""
    promises = [item.guarantee for item in items if item.guarantee is not None]
    if relation is not None:
        promises.append(relation)
    return joined(promises, epsilon, delta) if promises else None


def _unreachable(items: Sequence[_Item], total: PrivacyProfile, delta: float, method: str) -> str:
    if total.infinite > 0 and total.infinite >= delta:
        short = "is all used up" if total.infinite == delta else "cannot be reached"
        return (
            f"delta={delta!r} {short}: the releases lose everything with probability "
            f"{format_up(total.infinite, 12)}, and nothing is left for the other losses; ask for "
            "a larger delta"
        )
    unbounded = sum(math.isinf(item.loss.supremum) for item in items)
    if delta == 0 and unbounded:
        return (
            f"{unbounded} of the releases have no finite epsilon at delta = 0 (Gaussian noise, "
            "for one); give delta above 0"
        )
    return f"method {method!r} gives no finite epsilon at delta={delta!r}; use method='pld'"


def _sum(values: Iterable[float]) -> float:
    """Sum of parameters: exact, then the next float above."""
    found = list(values)
    return math.inf if math.inf in found else stated_above(total_of(found))


def _split(items: Sequence[_Item], delta: float, method: str) -> tuple[list[_Item], float]:
    """Items with finite promises, and the delta that their own deltas leave over."""
    share = stated_below(decimal_of(delta) / (2 * len(items)))
    bare = [
        item
        if math.isfinite(item.epsilon)
        else _Item(item.guarantee, item.loss, item.loss.epsilon(share), share)
        for item in items
    ]
    spent = total_of(item.delta for item in bare)
    if spent >= decimal_of(delta):
        raise ParameterError(
            f"method {method!r} needs a joint delta above the sum of the releases' own, "
            f"{format_up(stated_above(spent), 12)}, got {delta!r}; ask for a larger delta or use "
            "method='pld'",
            parameter="method",
        )
    return bare, stated_below(decimal_of(delta) - spent)


def _advanced(items: Sequence[_Item], delta: float) -> float:
    bare, left = _split(items, delta, "advanced")
    if left <= 0 or left >= 1:
        return _sum(item.epsilon for item in bare)
    return advanced_epsilon([item.epsilon for item in bare], left)


def _optimal(items: Sequence[_Item], delta: float) -> tuple[float, str]:
    if any(math.isinf(item.epsilon) for item in items):
        raise ParameterError(
            "method 'optimal' needs an (epsilon, delta) promise for every release; a bare loss "
            "curve without a largest loss has none: use method='pld'",
            parameter="method",
        )
    first = items[0]
    if all((item.epsilon, item.delta) == (first.epsilon, first.delta) for item in items):
        found = optimal_epsilon(first.epsilon, first.delta, len(items), delta)
        return found, _THEOREMS["optimal"]
    levels = [x.epsilon for x in items]
    found = optimal_bound_epsilon(levels, [x.delta for x in items], delta)
    return found, _THEOREMS["optimal-bound"]


def _concentrated(total: PrivacyProfile, delta: float, method: str) -> float:
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
    return min(max(0.0, renyi_conversion(orders, divergence, delta)), total.supremum)


def _at_risk(
    items: Sequence[_Item], delta: float, levels: Sequence[float] | None
) -> tuple[float, list[str]]:
    """Theorem 3.1 for different levels: squares and means add up.

    Its published mean is at least 1.23 times the mean loss, whatever the levels: for small epsilons
    their ratio is ``2 (1 - x + x**3)`` at a level of ``x epsilon``, and it grows with epsilon.
    """
    from hushed.privacy_loss._families import LaplacePLD  # noqa: PLC0415

    laws = [item.loss.family for item in items]
    bounds = [law.wide for law in laws if isinstance(law, LaplacePLD)]
    if len(bounds) != len(items):
        raise ParameterError(
            "method 'at-risk' is proved for Laplace mechanisms alone", parameter="method"
        )
    if not 0 < delta < 1:
        raise ParameterError(
            f"method 'at-risk' needs delta in (0, 1), got {delta}", parameter="method"
        )
    chosen = [b / math.sqrt(3) for b in bounds]
    if levels is not None:
        chosen = [read("a confidence level", level, up=True) for level in read_sequence(levels)]
    if len(chosen) != len(bounds):
        raise ParameterError(
            f"give one confidence level per release: {len(bounds)} wanted, {len(chosen)} given"
        )
    drift = []
    for bound, level in zip(bounds, chosen, strict=True):
        if not 0 <= level <= bound:
            raise ParameterError(f"a level must lie in [0, epsilon0={bound}], got {level}")
        confidence = math.expm1(-level) / math.expm1(-bound)
        drift.append(at_risk_mean(bound, level, confidence))
    squares = sum_of_levels(b * b for b in bounds)
    swing = math.sqrt(2 * math.log(1 / lower_double(delta)) * squares)
    notes = ["the stronger level holds with a published confidence, not with a proved one"]
    return round_up(swing + sum_of_levels(drift), LIBRARY), notes
