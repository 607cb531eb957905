"""Privacy losses in the terms of a measure, and what one measure says in the terms of another."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hushed import privacy_loss
from hushed._ground.decimals import stated_above, total_of
from hushed._ground.numeric import round_up
from hushed.accounting._pure import pure_renyi, pure_zcdp
from hushed.accounting._theorems import renyi_conversion
from hushed.errors import ParameterError
from hushed.mechanisms._law import Known
from hushed.privacy_loss import PrivacyProfile
from hushed.spaces import PRIVACY_PROFILE, PURE, RENYI, ZCDP, Measure

_ORDERS = 1.0 + np.geomspace(1e-3, 1e5, 400)


RenyiBound = Callable[[float], float]
Loss = float | PrivacyProfile | RenyiBound


def losses_of(known: Known) -> dict[Measure, Loss]:
    """State what a law says of its loss as measures do; a pure loss bounds rho, too."""
    found: dict[Measure, Any] = dict(known)
    if PURE in found and ZCDP in found:
        found[ZCDP] = min(found[ZCDP], pure_zcdp(found[PURE]))
    return found


def refuse_half(known: Mapping[Measure, Loss]) -> None:
    """Refuse a curve of one of two neighbours against the other only."""
    curve = known.get(PRIVACY_PROFILE)
    if isinstance(curve, PrivacyProfile) and curve.one_sided:
        raise ParameterError(
            "a one-sided curve is half of a guarantee; use hs.privacy_loss.pair(p, q)"
        )


def pure_curve(epsilon: float) -> PrivacyProfile:
    """Worst privacy profile of a pure promise."""
    return privacy_loss.approximate(epsilon, 0.0)


def restated(known: Mapping[Measure, Loss], measure: Measure) -> Loss:
    """State a loss in the terms of a measure.

    The loss; never smaller than the real one.

    Notes
    -----
    A pure promise is that of randomised response at worst (Kairouz, Oh and Viswanath, ICML 2015),
    whose curve gives the other measures.
    """
    refuse_half(known)
    if measure in known:
        return known[measure]
    found: Loss | None = None
    curve = known.get(PRIVACY_PROFILE)
    if isinstance(curve, PrivacyProfile):
        found = _of_curve(curve, measure)
    if ZCDP in known and measure == RENYI:
        return _concentrated_or(found, _number(known[ZCDP]))
    if found is None and PURE in known:
        found = _of_pure(_number(known[PURE]), measure)
    if found is None:
        names = [each.constant for each in known]
        raise ParameterError(
            f"a loss known as {' and '.join(names)} says nothing in terms of {measure.constant}: "
            f"ask for {' or '.join(names)} of hushed.spaces, as in map(1, "
            f"hushed.spaces.{names[0]}), or for epsilon at a delta, guarantee(delta=1e-6)"
        )
    return found


def _concentrated_or(bound: Loss | None, rho: float) -> RenyiBound:
    """Smaller one of ``rho order`` and what else is known of every order."""
    if not callable(bound):
        return lambda order: round_up(rho * order)
    return lambda order: min(bound(order), round_up(rho * order))


def _number(loss: Loss) -> float:
    if not isinstance(loss, int | float):
        raise ParameterError(f"expected a number, got {type(loss).__name__}")
    return float(loss)


def _of_pure(epsilon: float, measure: Measure) -> Loss | None:
    """Loss of randomised response; rho and divergences in closed form, to the last digits."""
    if measure == RENYI:
        return lambda order: pure_renyi(epsilon, order)
    if measure == ZCDP:
        return pure_zcdp(epsilon) if math.isfinite(epsilon) else None
    return _of_curve(pure_curve(epsilon), measure)


def _of_curve(loss: PrivacyProfile, measure: Measure) -> Loss | None:
    if measure == PRIVACY_PROFILE:
        return loss
    if measure == RENYI:
        return loss.renyi
    number = loss.zcdp() if measure == ZCDP else loss.supremum
    return number if math.isfinite(number) else None


def epsilon_at(known: Mapping[Measure, Loss], delta: float) -> float:
    """Smallest level that what is known of a loss gives at a slack.

    Level in nats, rounded up; infinite where none is known.
    """
    refuse_half(known)
    found = [math.inf]
    if PURE in known:
        found.append(_number(known[PURE]))
    if delta:
        if PRIVACY_PROFILE in known or PURE in known:
            loss = restated(known, PRIVACY_PROFILE)
            if isinstance(loss, PrivacyProfile):
                found.append(loss.epsilon(delta))
        if not {PRIVACY_PROFILE, PURE} & set(known) and delta < 1:
            found.append(_concentrated(known, delta))
    return min(found)


def _concentrated(known: Mapping[Measure, Loss], delta: float) -> float:
    bound = restated(known, RENYI)
    if not callable(bound):
        return math.inf
    divergences = [bound(order) for order in _ORDERS.tolist()]
    return max(0.0, renyi_conversion(_ORDERS, divergences, delta))


def added(losses: Sequence[Loss], measure: Measure) -> Loss:
    """Loss of several releases on the same rows, in one measure: losses add up.

    The joint loss, rounded up.

    Notes
    -----
    Epsilon: Dwork et al., EUROCRYPT 2006. Rho: Bun and Steinke, TCC 2016, Lemma 1.7. Renyi:
    Mironov, CSF 2017, Proposition 1. Curves: Zhu, Dong, Wang, AISTATS 2022, Theorem 10.
    """
    if measure == PRIVACY_PROFILE:
        return privacy_loss.compose([x for x in losses if isinstance(x, PrivacyProfile)])
    if measure == RENYI:
        bounds = [loss for loss in losses if callable(loss)]
        return lambda order: round_up(
            math.fsum(bound(order) for bound in bounds), 4.0 * len(bounds)
        )
    numbers = [_number(loss) for loss in losses]
    if not all(map(math.isfinite, numbers)):
        return math.inf
    return stated_above(total_of(numbers))
