"""Privacy filters: when a sequence of releases chosen along the way has to stop.

An analyst chooses the next mechanism, and how much it may lose, after seeing the answers so far.
A filter adds up one number per release and stops before the sum passes a capacity fixed in
advance; then the whole interaction keeps the limit. Theorems that hold in this fully adaptive
setting:

* ``basic``: sums of epsilon and of delta. Rogers, Roth, Ullman and Vadhan, *Privacy Odometers and
  Filters*, NeurIPS 2016, Theorem 3.6.
* ``zcdp``: sum of rho. Feldman and Zrnic, *Individual Privacy Accounting via a Renyi Filter*,
  NeurIPS 2021; Whitehouse, Ramdas, Rogers and Wu, *Fully-Adaptive Composition in Differential
  Privacy*, ICML 2023.
* ``renyi``: sum of Renyi divergences of one order fixed in advance. Feldman and Zrnic, as above.
* ``gaussian``: sum of squared ratios. Smith and Thakurta, *Fully Adaptive Composition for
  Gaussian Differential Privacy*, 2022.

A release that keeps its loss with probability ``1 - d`` only is a mixture with weight ``1 - d`` of
one that always does. On every path the weights multiply to at least one minus the sum of the d,
so a second sum, of the d, is held below a share of delta that is set aside for it, the slack.

Several filters may run side by side and a release go through if any of them lets it: on the event
that filter j still holds at the end the interaction equals one that j alone governs, so the deltas
of all filters add. Hence delta is divided among them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, get_args

from hushed._ground.checks import require_one_of
from hushed._ground.decimals import decimal_of, lower_double, read, stated_below, upper_double
from hushed._ground.numeric import (
    first_true_near,
    float_above,
    last_true_near,
    round_down,
    round_up,
)
from hushed.accounting._pure import at_least_some, pure_gaussian, pure_renyi, pure_zcdp
from hushed.accounting._theorems import renyi_conversion
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.privacy_loss import PrivacyProfile, gaussian_delta
from hushed.privacy_loss._discrete import DiscretePLD
from hushed.privacy_loss._families import BoundedRangePLD, Family, LaplacePLD
from hushed.privacy_loss._gaussian import GaussianPLD

FilterName = Literal["basic", "zcdp", "renyi", "gaussian", "pld"]
FilterMethod = Literal["adaptive", "basic", "zcdp", "renyi", "gaussian", "pld"]

_LEAST, _MOST = 1e-100, 1e100  # of limits whose capacity has to be searched for
# What method "adaptive" runs side by side, with shares of delta.
ADAPTIVE: dict[FilterName, float] = {"basic": 0.5, "zcdp": 0.25, "gaussian": 0.25}
_LEAST_REACH, _LARGEST_ORDER = 1e-14, 1e150  # of orders: above 1, and finite for a rho near 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyFilter:
    """A stopping rule: two sums and what they may reach."""

    # What is added up: epsilons, rhos, Renyi divergences, squared ratios; or whole distributions of
    # the loss.
    name: FilterName
    capacity: float  # Largest sum; rounded down. For ``pld`` the limit on epsilon.
    slack: float  # Largest sum of the releases' own deltas. For ``pld`` the limit on delta.
    order: float = 0.0  # order of the divergence, for ``renyi``
    conversion: float = 0.0  # share of delta that turns a full capacity into the limit on epsilon

    def epsilon(self, amount: float) -> float:
        """Epsilon that a sum keeps, rounded up."""
        if amount == 0.0 or self.name in ("basic", "pld") or math.isinf(amount):
            return amount
        amount, target = upper_double(amount), lower_double(self.conversion)
        if self.name == "renyi":
            return round_up(max(0.0, renyi_conversion([self.order], [amount], target)))
        if self.name == "zcdp":
            return round_up(_zcdp_epsilon(amount, target))
        ratio = round_up(math.sqrt(amount))

        def kept(level: float) -> bool:
            return bool(gaussian_delta(ratio, lower_double(level)) <= target)

        return 0.0 if kept(0.0) else first_true_near(kept, 1.0, tolerance=1e-12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one release adds to the sums of a filter."""

    amount: float  # to the first sum; 0 or more, rounded up, may be infinite
    delta: float  # to the sum of own deltas; in [0, 1], rounded up


def privacy_filters(
    epsilon: float,
    delta: float,
    *,
    method: FilterMethod = "adaptive",
    slack: float = 0.5,
    order: float | None = None,
) -> tuple[PrivacyFilter, ...]:
    """Choose filters under which a whole interaction keeps (epsilon, delta).

    With capacities rounded down.
    """
    epsilon, delta = read("epsilon", epsilon, up=False), read("delta", delta, up=False)
    check_limit(epsilon, delta)
    require_one_of("method", method, get_args(FilterMethod))
    slack = read("slack", slack, up=False)
    order = None if order is None else read("order", order, up=False)
    if not 0 <= slack < 1:
        raise ParameterError(f"slack must lie in [0, 1), got {slack}", parameter="slack")
    if order is not None and (method != "renyi" or not 1 < order < math.inf):
        raise ParameterError(
            f"order is for method 'renyi', finite and above 1; got {order}", parameter="order"
        )
    if method in ("basic", "pld") or (method == "adaptive" and delta == 0):
        name: FilterName = "pld" if method == "pld" else "basic"
        return (PrivacyFilter(name=name, capacity=epsilon, slack=delta),)
    if delta == 0:
        raise ParameterError(
            f"method {method!r} needs a limit on delta above 0; use method='basic' for delta = 0",
            parameter="method",
        )
    if method == "adaptive":
        return tuple(
            _filter(name, epsilon, _share_of(share, delta), slack, None)
            for name, share in ADAPTIVE.items()
        )
    return (_filter(method, epsilon, delta, slack, order),)


def check_limit(epsilon: float, delta: float) -> None:
    """Refuse numbers that limit nothing."""
    if not 0 < epsilon < math.inf:
        raise ParameterError(f"a limit on epsilon must be finite and above 0, got {epsilon}")
    if not 0 <= delta < 1:
        raise ParameterError(f"a limit on delta must lie in [0, 1), got {delta}")


def _filter(
    name: FilterName, epsilon: float, delta: float, slack: float, order: float | None
) -> PrivacyFilter:
    """One filter for its share of delta."""
    if name == "basic":
        return PrivacyFilter(name=name, capacity=epsilon, slack=delta)
    if not _LEAST <= epsilon <= _MOST:
        raise ParameterError(
            f"a limit of epsilon = {epsilon:g} is too small or too large for the rule {name!r}, "
            f"which takes {_LEAST:g} to {_MOST:g}; use method='basic'"
        )
    own = _share_of(slack, delta)
    left = stated_below(decimal_of(delta) - decimal_of(own))
    if left <= 0:
        raise ParameterError("the limit on delta is too small for a double: use method='basic'")
    if name == "gaussian":
        return PrivacyFilter(
            name=name, capacity=gaussian_capacity(epsilon, left), slack=own, conversion=left
        )
    level, small = lower_double(epsilon), lower_double(left)
    rho = last_true_near(lambda x: _zcdp_epsilon(x, small) <= level, epsilon, tolerance=1e-12)
    rho = round_down(rho)
    if name == "zcdp":
        return PrivacyFilter(name=name, capacity=rho, slack=own, conversion=left)
    chosen = _zcdp_order(rho, left) if order is None else order
    capacity = round_down(level - renyi_conversion([chosen], [0.0], small), 64)
    if capacity <= 0:
        raise ParameterError(
            f"order {chosen:g} leaves nothing of epsilon={epsilon:g} at delta={left:.3g}; "
            "use a larger order",
            parameter="order",
        )
    return PrivacyFilter(name=name, capacity=capacity, slack=own, order=chosen, conversion=left)


def _share_of(share: float, delta: float) -> float:
    """Largest float that stands for no more than a share: a half is exactly half."""
    return stated_below(decimal_of(share) * decimal_of(delta))


def _zcdp_order(rho: float, delta: float) -> float:
    """Finite order near the best to turn rho into epsilon: ``1 + sqrt(log(1/delta) / rho)``."""
    reach = math.sqrt(max(-math.log(delta), 1e-3) / rho)
    return 1.0 + min(max(reach, _LEAST_REACH), _LARGEST_ORDER)


def _zcdp_epsilon(rho: float, delta: float) -> float:
    """Epsilon of zero-concentrated privacy, over orders around the best one; rounded up."""
    reach = _zcdp_order(rho, delta) - 1.0
    orders = [1.0 + reach * 1.02**step for step in range(-60, 61)]
    return max(0.0, renyi_conversion(orders, [rho * order for order in orders], delta))


def gaussian_capacity(epsilon: float, delta: float) -> float:
    """Largest sum of squared ratios that keeps (epsilon, delta), rounded down."""
    level, slack = lower_double(epsilon), lower_double(delta)
    ratio = last_true_near(lambda x: gaussian_delta(x, level) <= slack, 1.0, tolerance=1e-12)
    return round_down(ratio * ratio)


def filter_cost(found: PrivacyFilter, promise: Guarantee, loss: PrivacyProfile | None) -> Cost:
    """Price a release in the units of a filter.

    Rounded up. For ``pld`` that of the Gaussian filter, which bounds it.
    """
    bare = _bare(found, promise)
    if loss is None or found.name == "basic":
        return bare
    known = _of_curve(found, loss)
    return known if known.amount <= bare.amount else bare


def _bare(found: PrivacyFilter, promise: Guarantee) -> Cost:
    """Cost of a promise of which nothing else is known."""
    level, own = promise.epsilon, promise.delta
    if found.name == "basic":
        return Cost(amount=level, delta=own)
    if found.name == "zcdp":
        return Cost(amount=pure_zcdp(level), delta=own)
    if found.name == "renyi":
        return Cost(amount=pure_renyi(level, found.order), delta=own)
    return Cost(amount=_square(pure_gaussian(level)), delta=own)


def _of_curve(found: PrivacyFilter, loss: PrivacyProfile) -> Cost:
    """Cost of a known law: sums over its parts, added exactly and rounded up once."""
    amounts = [(_of_family(found, family), count) for family, count in loss.parts]
    if any(math.isinf(amount) for amount, _ in amounts):
        return Cost(amount=math.inf, delta=0.0)
    if [count for _, count in amounts] == [1]:  # one number needs no exact sum
        total = amounts[0][0]
    else:
        exact = sum((decimal_of(amount) * count for amount, count in amounts), Fraction(0))
        total = float_above(exact)
    grid = found.name in ("gaussian", "pld")
    return Cost(amount=round_up(total), delta=_on_grid(loss) if grid else 0.0)


def _on_grid(loss: PrivacyProfile) -> float:
    """Delta that Gaussian noise on its grid may cost beyond its squared ratio, rounded up.

    ``exp(k) d(e - 2 k)`` is at most ``d(e) + 4 k`` for k below 1/8, because d falls by at most 1
    for each nat (docs/noise/grid.md). Rho and Renyi divergences hold on the grid as they stand, and
    the squared ratio of any other law is that of its largest loss, which holds, too.
    """
    blurs = (count * f.blur for f, count in loss.parts if isinstance(f, GaussianPLD))
    return round_up(4 * math.fsum(blurs), ceiling=1.0)


def _of_family(found: PrivacyFilter, family: Family) -> float:
    """Amount of one law in the units of a filter."""
    if found.name == "zcdp":
        return _family_zcdp(family)
    if found.name == "renyi":
        return _family_renyi(family, found.order)
    return _family_squares(family)


def _square(ratio: float) -> float:
    return at_least_some(round_up(ratio * ratio), ratio)


@lru_cache(maxsize=4096)
def _family_zcdp(family: Family) -> float:
    """Rho of one law, rounded up.

    Gaussian: Bun and Steinke 2016, Proposition 1.6, and for the discrete one Canonne, Kamath and
    Steinke, NeurIPS 2020, Theorem 4. Laplace: ``epsilon + exp(-epsilon) - 1`` (Harrison and
    Manurangsi, *Exact zCDP Characterizations for Fundamental Differentially Private Mechanisms*,
    2025), with the error of the cancellation added.
    """
    if isinstance(family, GaussianPLD):
        return at_least_some(round_up(family.ratio * family.ratio / 2), family.ratio)
    if isinstance(family, LaplacePLD):
        b = family.wide
        exact = round_up(round_up(b + math.expm1(-b)) + b * 2.0**-50)
        return at_least_some(min(pure_zcdp(family.bound), exact), b)
    if isinstance(family, DiscretePLD):
        pure = pure_zcdp(family.supremum) if family.infinite == 0 else math.inf
        return at_least_some(min(family.concentrated, pure), family.supremum)
    curve = PrivacyProfile(family)
    return at_least_some(min(curve.zcdp(), pure_zcdp(family.supremum)), family.supremum)


@lru_cache(maxsize=4096)
def _family_renyi(family: Family, order: float) -> float:
    """Renyi divergence of one law, rounded up with room for the error of its logarithm."""
    if isinstance(family, GaussianPLD):
        return at_least_some(round_up(order * family.ratio * family.ratio / 2, 8), family.ratio)
    rho = _family_zcdp(family) * order
    if not isinstance(family, LaplacePLD | BoundedRangePLD):
        return rho
    return at_least_some(min(rho, PrivacyProfile(family).renyi(order) * (1 + 1e-9)), family.bound)


def _family_squares(family: Family) -> float:
    """Squared ratio of a Gaussian pair that is worse than one law, rounded up."""
    if isinstance(family, GaussianPLD):
        return _square(family.ratio)
    if family.infinite > 0:
        return math.inf
    return _square(pure_gaussian(family.supremum))
