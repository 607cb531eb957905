"""One constructor of a privacy profile per mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction

from numpy.typing import ArrayLike

from hushed._ground.calls import called_as
from hushed._ground.checks import read_count, read_list, require_least
from hushed._ground.decimals import lower_double, read, upper_double
from hushed._ground.numeric import float_above
from hushed._ground.printing import as_given
from hushed.errors import ParameterError
from hushed.privacy_loss import _discrete as discrete
from hushed.privacy_loss._envelope import worst_of_both
from hushed.privacy_loss._families import BoundedRangePLD, LaplacePLD
from hushed.privacy_loss._gaussian import GaussianPLD
from hushed.privacy_loss._profile import NON_PRIVATE, PERFECT, PrivacyProfile, combine


@called_as("hs.privacy_loss.compose([hs.privacy_loss.laplace(0.5), hs.privacy_loss.laplace(0.5)])")
def compose(curves: Iterable[PrivacyProfile]) -> PrivacyProfile:
    """Curve of several releases on the same rows.

    Parameters
    ----------
    curves : iterable of PrivacyProfile
        One per release; repeats allowed, order without meaning. A million at most.

    Returns
    -------
    PrivacyProfile
        Their composition. Gaussian releases are merged exactly into one.
    """
    given = read_list("curves", curves, of="[hs.privacy_loss.laplace(0.1)]")
    if not all(isinstance(curve, PrivacyProfile) for curve in given):
        raise ParameterError(
            "curves must be a list of privacy profiles, such as hs.privacy_loss.laplace(0.1); to "
            "join mechanisms or guarantees use hs.compose",
            parameter="curves",
        )
    return combine([(curve, 1) for curve in given])


def _level(name: str, value: float) -> float:
    """Read a level: a decimal of 0 or more."""
    level = read(name, value, up=True)
    require_least(name, level)
    return level


@called_as("hs.privacy_loss.laplace(0.5)")
def laplace(epsilon0: float) -> PrivacyProfile:
    """Curve of Laplace noise of scale sensitivity over ``epsilon0``.

    Parameters
    ----------
    epsilon0 : float
        L1 sensitivity divided by the scale of the noise; 0 or more, may be infinite.

    Returns
    -------
    PrivacyProfile
        Exact for one coordinate that moves by the full sensitivity.

    Raises
    ------
    ParameterError
        If ``epsilon0`` is negative or NaN.
    """
    level = _level("epsilon0", epsilon0)
    return _edge(level) or PrivacyProfile(LaplacePLD(level))


@called_as("hs.privacy_loss.gaussian(0.5)")
def gaussian(
    ratio: float | None = None, *, sigma: float | None = None, sensitivity: float | None = None
) -> PrivacyProfile:
    """Curve of Gaussian noise.

    Parameters
    ----------
    ratio : float, optional
        L2 sensitivity divided by the standard deviation of the noise; 0 or more.
    sigma : float, optional
        Standard deviation, instead of ``ratio``; above 0.
    sensitivity : float, optional
        L2 sensitivity that goes with ``sigma``; 1 if left out.

    Returns
    -------
    PrivacyProfile
        Exact.

    Raises
    ------
    ParameterError
        If not exactly one of ``ratio`` and ``sigma`` is given, or one is out of range.
    """
    if (ratio is None) == (sigma is None):
        raise ParameterError("give either ratio, or sigma with its sensitivity")
    if ratio is None:
        moved = read("sensitivity", 1.0 if sensitivity is None else sensitivity, up=True)
        sigma = read("sigma", sigma, up=False)
        if not sigma > 0 or not moved >= 0:
            raise ParameterError(
                f"sigma must be above 0 and sensitivity 0 or more, got {sigma} and {moved}"
            )
        ratio = _quotient_above(moved, sigma)
    ratio = read("ratio", ratio, up=True)
    require_least("ratio", ratio)
    return _edge(ratio) or PrivacyProfile(GaussianPLD(upper_double(ratio)))


def _quotient_above(moved: float, sigma: float) -> float:
    """Divide, on the side that costs more, whether numbers are doubles or decimals."""
    if math.isinf(moved) or math.isinf(sigma):
        return moved / sigma
    return float_above(Fraction(upper_double(moved)) / Fraction(lower_double(sigma)))


@called_as("hs.privacy_loss.bounded_range(1.0)")
def bounded_range(epsilon: float) -> PrivacyProfile:
    """Curve that covers every mechanism of bounded range, the exponential mechanism among them.

    Parameters
    ----------
    epsilon : float
        Range of the loss over the outcomes, in nats: the epsilon of the exponential mechanism;
        0 or more, may be infinite.

    Returns
    -------
    PrivacyProfile
        Smallest curve above all of them.

    Raises
    ------
    ParameterError
        If ``epsilon`` is negative or NaN.
    """
    level = _level("epsilon", epsilon)
    return _edge(level) or PrivacyProfile(BoundedRangePLD(level))


@called_as("hs.privacy_loss.randomised_response(1.0)")
def randomised_response(epsilon: float, categories: int = 2) -> PrivacyProfile:
    """Curve of answering truthfully with odds ``exp(epsilon)`` against each other category.

    Parameters
    ----------
    epsilon : float
        Log odds; 0 or more, may be infinite.
    categories : int, default 2
        Number of answers; 2 or more.

    Returns
    -------
    PrivacyProfile
        Exact.

    Raises
    ------
    ParameterError
        If ``epsilon`` is negative or NaN, or there are fewer than 2 categories.
    """
    level = _level("epsilon", epsilon)
    categories = read_count("categories", categories, 2)
    edge = _edge(level)
    if edge is not None:
        return edge
    return PrivacyProfile(discrete.randomised_response_atoms(level, categories))


@called_as("hs.privacy_loss.discrete_laplace(2.0)")
def discrete_laplace(scale: float, sensitivity: int = 1) -> PrivacyProfile:
    """Curve of two-sided geometric noise on whole numbers.

    Parameters
    ----------
    scale : float
        The noise y has mass proportional to ``exp(-|y|/scale)``; above 0.
    sensitivity : int, default 1
        How far the answer moves; 0 to 1 million.

    Returns
    -------
    PrivacyProfile
        Exact.

    Raises
    ------
    ParameterError
        If ``scale`` is not above 0, or ``sensitivity`` is not a whole number in range.
    """
    scale, sensitivity = _steps("scale", scale, sensitivity)
    if sensitivity == 0 or math.isinf(scale):
        return PrivacyProfile(PERFECT)
    return PrivacyProfile(discrete.discrete_laplace_atoms(scale, sensitivity))


@called_as("hs.privacy_loss.discrete_gaussian(2.0)")
def discrete_gaussian(sigma: float, sensitivity: int = 1) -> PrivacyProfile:
    """Curve of discrete Gaussian noise on whole numbers.

    Parameters
    ----------
    sigma : float
        The noise y has mass proportional to ``exp(-y**2 / (2 sigma**2))``; above 0, at most 1e5.
    sensitivity : int, default 1
        How far the answer moves; 0 to 1 million.

    Returns
    -------
    PrivacyProfile
        Exact, but for noise beyond 37 sigma, which counts as an infinite loss.

    Raises
    ------
    ParameterError
        If ``sigma`` or ``sensitivity`` is out of range.
    """
    sigma, sensitivity = _steps("sigma", sigma, sensitivity)
    if sensitivity == 0:
        return PrivacyProfile(PERFECT)
    return PrivacyProfile(discrete.discrete_gaussian_atoms(sigma, sensitivity))


def _steps(name: str, value: float, sensitivity: int) -> tuple[float, int]:
    """Read the scale of discrete noise, and how far a whole number moves."""
    spread = read(name, value, up=False)
    if not spread > 0:
        raise ParameterError(f"{name} must be above 0, got {as_given(value)}", parameter=name)
    return spread, read_count("sensitivity", sensitivity, 0, 1_000_000)


@called_as("hs.privacy_loss.pair([0.7, 0.3], [0.3, 0.7])")
def pair(p: ArrayLike, q: ArrayLike) -> PrivacyProfile:
    """Curve of a mechanism with finitely many outcomes, in the worse of both directions.

    Parameters
    ----------
    p : array_like of float, shape (n,)
        Probabilities of the outcomes for one table.
    q : array_like of float, shape (n,)
        Probabilities of the same outcomes for its neighbour.

    Returns
    -------
    PrivacyProfile
        Larger of the curves of p against q and of q against p; safe under composition.

    Raises
    ------
    ParameterError
        If the arrays are not two distributions of equal length.
    """
    return PrivacyProfile(worst_of_both(p, q))


@called_as("hs.privacy_loss.one_sided([0.7, 0.3], [0.3, 0.7])")
def one_sided(p: ArrayLike, q: ArrayLike) -> PrivacyProfile:
    """Curve of p against q alone: half of a guarantee.

    Parameters
    ----------
    p : array_like of float, shape (n,)
        Probabilities of the outcomes under P.
    q : array_like of float, shape (n,)
        Probabilities of the same outcomes under Q.

    Returns
    -------
    PrivacyProfile
        Exact for this direction, and marked as such, also when composed: neither `hushed.compose`
        nor a ledger makes a promise of it. Use `pair` for that.

    Raises
    ------
    ParameterError
        If the arrays are not two distributions of equal length.
    """
    return PrivacyProfile(discrete.pair_atoms(p, q), one_sided=True)


@called_as("hs.privacy_loss.approximate(1.0, delta=1e-6)")
def approximate(epsilon: float, delta: float = 0.0) -> PrivacyProfile:
    """Worst curve of a mechanism of which only (epsilon, delta) is known.

    Parameters
    ----------
    epsilon : float
        Promised level, in nats; 0 or more, may be infinite.
    delta : float, default 0
        Promised slack; in [0, 1].

    Returns
    -------
    PrivacyProfile
        Kairouz, Oh and Viswanath's least favourable pair.

    Raises
    ------
    ParameterError
        If a number is out of range or NaN.
    """
    level, slack = _level("epsilon", epsilon), read("delta", delta, up=True)
    if not 0 <= slack <= 1:
        raise ParameterError(f"delta must lie in [0, 1], got {delta}", parameter="delta")
    if math.isinf(level) or slack == 1.0:
        return PrivacyProfile(NON_PRIVATE)
    return PrivacyProfile(discrete.approximate_atoms(level, slack))


@called_as("hs.privacy_loss.profile(lambda epsilon: 1e-6)")
def profile(delta: Callable[[float], float]) -> PrivacyProfile:
    """Worst curve of a mechanism of which only a bound on delta at every level is known.

    Parameters
    ----------
    delta : callable
        Takes a level of 0 or more, in nats, and gives a bound on delta there that holds for
        neighbours in both orders; 1 says nothing.

    Returns
    -------
    PrivacyProfile
        Never below the real one; between 4096 levels it is the chord, so that it lies above the
        bound by about the square of their distance.

    Raises
    ------
    ParameterError
        If the bound is no real number of 0 or more somewhere.
    """
    if not callable(delta):
        raise ParameterError(
            f"delta must be a function of a level, epsilon, got {type(delta).__name__}",
            parameter="delta",
        )
    return PrivacyProfile(discrete.profile_atoms(delta))


def _edge(size: float) -> PrivacyProfile | None:
    """Curve of a loss that is always 0 or always infinite."""
    if size == 0.0:
        return PrivacyProfile(PERFECT)
    return PrivacyProfile(NON_PRIVATE) if math.isinf(size) else None
