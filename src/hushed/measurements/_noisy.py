"""Measurements that add noise to an answer, or choose by it: Laplace, Gaussian, exponential.

Noise is drawn by `hushed.noise`, which rounds an answer to a public grid first. What that rounding
costs is counted exactly, at every distance and not only at the one the noise was made for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed import noise, privacy_loss
from hushed._decimals import decimal_of, stated_above
from hushed._numeric import finite_above, root_above
from hushed.accounting._pure import pure_zcdp
from hushed.errors import ParameterError
from hushed.measurements._losses import ProfileLoss
from hushed.measurements._record import Measurement
from hushed.privacy_loss import PrivacyProfile
from hushed.spaces import PRIVACY_PROFILE, PURE, ZCDP, Distance, Numbers, Space
from hushed.transformations._chain import Step
from hushed.transformations._matching import refuse

_MOST_DIMS = 2**20  # that the lemma on discrete noise is used for

# Largest minus smallest change of a score, for each unit of distance.
_SPREADS = {"sup": 2, "one-sided": 1, "l1": 1}


def laplace(scale: float) -> Step[Measurement]:
    """Add Laplace noise to every number of an answer.

    Parameters
    ----------
    scale : float
        Scale b of the noise, in the units of the answer; finite, above 0.

    Returns
    -------
    Step
        From one number, or a vector in the l1 norm, to a noisy one. A distance d loses
        ``epsilon = d / scale``, with what rounding to the grid adds, below ``dims 2**-45``.

    Raises
    ------
    ParameterError
        If the scale is not finite and above 0.

    Notes
    -----
    Dwork, McSherry, Nissim, Smith, TCC 2006.
    """
    _positive(scale)

    def build(space: Space) -> Measurement:
        dims = _dims(space, "laplace", "l1", "norm='l1'")
        grid = noise.laplace_grid(sensitivity=scale, epsilon=1.0, dims=dims)

        def epsilon(moved: float) -> Fraction:
            return (_steps(moved, grid) + dims) / Fraction(grid.scale)

        return Measurement(
            name=f"laplace({scale:g})",
            source=space,
            measure=PURE,
            draw=lambda value: _plain(noise.add_laplace(value, sensitivity=scale, epsilon=1.0)),
            known=_pure(epsilon, privacy_loss.laplace),
            settings=("laplace", scale),
        )

    return Step("laplace", build)


def gaussian(scale: float) -> Step[Measurement]:
    """Add Gaussian noise to every number of an answer.

    Parameters
    ----------
    scale : float
        Standard deviation sigma of the noise, in the units of the answer; finite, above 0.

    Returns
    -------
    Step
        From one number, or a vector in the l2 norm, to a noisy one. A distance d loses
        ``rho = d**2 / (2 scale**2)``, and the curve of the Gaussian mechanism, with what the grid
        adds.

    Raises
    ------
    ParameterError
        If the scale is not finite and above 0.

    Notes
    -----
    Bun and Steinke, TCC 2016; for the discrete law that is drawn, Canonne, Kamath, Steinke,
    NeurIPS 2020, Theorem 14. Curve: Balle and Wang, ICML 2018.
    """
    _positive(scale)

    def build(space: Space) -> Measurement:
        dims = _dims(space, "gaussian", "l2", "norm='l2'")
        _check_dims(dims)
        grid = noise.gaussian_grid(sensitivity=scale, sigma=scale, dims=dims)

        def known(d_in: Distance) -> dict[Any, Any]:
            if not d_in.value or math.isinf(d_in.value):
                rho = d_in.value
                return {ZCDP: rho, PRIVACY_PROFILE: ProfileLoss(curve=privacy_loss.gaussian(rho))}
            ratio = (_steps(d_in.value, grid) + root_above(dims)) / Fraction(grid.scale)
            curve = privacy_loss.gaussian(finite_above(ratio))
            return {
                ZCDP: stated_above(ratio * ratio / 2),
                PRIVACY_PROFILE: ProfileLoss(curve=curve),
            }

        return Measurement(
            name=f"gaussian({scale:g})",
            source=space,
            measure=ZCDP,
            draw=lambda value: _plain(noise.add_gaussian(value, sensitivity=scale, sigma=scale)),
            known=known,
            settings=("gaussian", scale),
        )

    return Step("gaussian", build)


def exponential(scale: float) -> Step[Measurement]:
    """Choose a candidate with probability proportional to ``exp(score / scale)``.

    Parameters
    ----------
    scale : float
        Temperature, in the units of the scores; finite, above 0.

    Returns
    -------
    Step
        From a vector of scores to the index of one. A distance d loses ``epsilon = 2 d / scale``
        in the sup norm, and ``d / scale`` in the one-sided distance or the l1 norm, with what
        rounding to the grid adds.

    Raises
    ------
    ParameterError
        If the scale is not finite and above 0.

    Notes
    -----
    McSherry and Talwar, FOCS 2007; curve: Dong, Durfee, Rogers, ICML 2020, for losses of bounded
    range. A candidate has weight ``exp(u_i / scale)``, so its chance changes by the factor
    ``exp((u_i - u'_i) / scale) Z' / Z``. The sum Z of weights changes by a factor between those of
    the largest rise and the largest fall of a score, so the loss is at most the largest minus the
    smallest change, over the scale (Durfee and Rogers, NeurIPS 2019): 2 d for scores that move by
    d in any direction. Where one row added moves all scores up, or all down, by at most 1
    (``norm="one-sided"``, as counts do), each row added or removed is one step that costs
    ``1 / scale``. A row added and another one removed may raise one score and lower another; those
    are two steps, and steps add up, because the one-sided distance is a norm. A replaced row is two
    steps as well: nothing is saved against the sup norm, and nothing lost. What is drawn is the
    exponential mechanism itself, not permute-and-flip.
    """
    _positive(scale)

    def build(space: Space) -> Measurement:
        spread = _SPREADS.get(space.metric.name)
        if not isinstance(space.domain, Numbers) or spread is None:
            wanted = "scores in the sup norm, the one-sided distance or the l1 norm"
            fix = "quantile_scores(...), or counts with norm='one-sided',"
            raise refuse("exponential", space, wanted, fix)
        if space.domain.dims is None:
            raise refuse("exponential", space, "a vector of scores", "quantile_scores(...)")

        def epsilon(moved: float) -> Fraction:
            return noise.selection_loss(width=scale, epsilon=1.0, moved=spread * moved)

        pure = _pure(epsilon, privacy_loss.bounded_range)

        return Measurement(
            name=f"exponential({scale:g})",
            source=space,
            measure=PURE,
            draw=lambda scores: noise.select(scores, width=scale, epsilon=1.0),
            known=lambda d_in: _ranged(pure(d_in)),
            settings=("exponential", scale),
        )

    return Step("exponential", build)


def _pure(
    epsilon: Callable[[float], Fraction],
    curve: Callable[[float], PrivacyProfile],
) -> Callable[[Distance], dict[Any, Any]]:
    """Epsilon of a distance and the curve of that mechanism; nothing is lost if nothing moves."""

    def known(d_in: Distance) -> dict[Any, Any]:
        moved = d_in.value
        level = stated_above(epsilon(moved)) if 0 < moved < math.inf else moved
        if not 0 < level < math.inf:
            return {
                PURE: level,
                PRIVACY_PROFILE: ProfileLoss(curve=privacy_loss.approximate(level, 0.0)),
            }
        return {PURE: level, PRIVACY_PROFILE: ProfileLoss(curve=curve(level))}

    return known


def _ranged(known: dict[Any, Any]) -> dict[Any, Any]:
    """Add rho to a loss whose values lie in a range of epsilon.

    For the logarithm ``f(t)`` of the mean of ``exp(t loss)`` under the second law f(0) = f(1) = 0
    and ``f''(t) <= epsilon**2 / 4``, a variance on an interval of that length. So
    ``f(t) - t (t - 1) epsilon**2 / 8`` is concave, and at most 0 beyond 1: rho is
    ``epsilon**2 / 8`` (Cesar and Rogers, ALT 2021).
    """
    epsilon = known[PURE]
    if not 0 < epsilon < math.inf:
        return known
    rho = pure_zcdp(epsilon)
    exact = decimal_of(epsilon) ** 2 / 8
    return {**known, ZCDP: stated_above(exact) if exact < decimal_of(rho) else rho}


def _plain(released: NDArray[np.float64]) -> float | NDArray[np.float64]:
    return released if released.ndim else float(released)


def _steps(moved: float, grid: noise.Grid) -> Fraction:
    return Fraction(moved) / Fraction(2) ** grid.exponent


def _dims(space: Space, step: str, norm: str, advice: str) -> int:
    """Count the coordinates of an answer measured in a norm that the noise can use."""
    if not isinstance(space.domain, Numbers) or space.metric.name not in ("absolute", norm):
        raise refuse(
            step, space, f"one number, or a vector in the {norm} norm", f"an answer with {advice}"
        )
    return space.domain.dims or 1


def _check_dims(dims: int) -> None:
    if dims > _MOST_DIMS:
        raise ParameterError(f"gaussian releases at most {_MOST_DIMS} numbers at once, got {dims}")


def _positive(scale: float) -> None:
    if isinstance(scale, bool) or not 0 < scale < math.inf:
        raise ParameterError(f"scale must be finite and above 0, got {scale!r}")
