"""Privacy at risk as published: confidence in a stronger level, from noise and from data."""

from __future__ import annotations

import math

import numpy as np

from hushed._ground.calls import called_as
from hushed._ground.checks import (
    read_count,
    require_least,
    require_positive,
    require_probability,
    require_within,
)
from hushed._ground.decimals import read
from hushed._ground.numeric import first_true
from hushed.errors import ParameterError

_MOST_DIMS = 100_000


def check_levels(epsilon: float, epsilon0: float) -> tuple[float, float]:
    """Read both levels, each to the side that costs more."""
    epsilon, epsilon0 = read("epsilon", epsilon, up=False), read("epsilon0", epsilon0, up=True)
    require_positive("epsilon0", epsilon0)
    require_least("epsilon", epsilon)
    if epsilon > epsilon0:
        raise ParameterError(
            f"epsilon={epsilon} exceeds epsilon0={epsilon0}: the mechanism keeps every level from "
            "epsilon0 up with certainty; ask for a level of at most epsilon0"
        )
    return epsilon, epsilon0


def _noise_gap_cdf(t: float, dims: int) -> float:
    """``Pr(|A - B| <= t)`` for independent Gamma(dims, 1): a mixture of Gamma distributions."""
    from scipy import special  # noqa: PLC0415

    j = np.arange(dims)
    log_weight = (
        special.gammaln(dims + j)
        - special.gammaln(dims)
        - special.gammaln(j + 1)
        - (dims - 1 + j) * math.log(2.0)
    )
    return float(np.dot(np.exp(log_weight), special.gammainc(dims - j, t)))


@called_as("hs.risk.published_confidence(0.5, 1.0)")
def published_confidence(epsilon: float, epsilon0: float, dims: int = 1) -> float:
    """Confidence in a stronger level, as published.

    Parameters
    ----------
    epsilon : float
        Stronger level, in nats; in [0, epsilon0].
    epsilon0 : float
        Level that the noise was calibrated to, in nats; above 0, finite.
    dims : int, default 1
        Number of coordinates of the answer; 1 to 100,000.

    Returns
    -------
    float
        ``Pr(T <= epsilon) / Pr(T <= epsilon0)``, in [0, 1]. The published risk is 1 minus it.

    Raises
    ------
    ParameterError
        If a number is out of range or NaN.

    Notes
    -----
    Dandekar, Basu and Bressan, PoPETs 2021, Theorem 4.1. T is the distance of two independent
    Gamma(dims, 1) variables. Its density is ``2**(3/2-k) t**(k-1/2) K_{k-1/2}(t) / (sqrt(pi)
    Gamma(k))``; half-integer Bessel functions are finite sums, which makes T a mixture of
    Gamma(k - j, 1) with weights ``C(k-1+j, j) 2**-(k-1+j)``.

    This is not the probability that the loss stays below ``epsilon``: see `loss_exceeds`.
    """
    epsilon, epsilon0 = check_levels(epsilon, epsilon0)
    dims = read_count("dims", dims, 1, _MOST_DIMS)
    if dims == 1:
        return min(1.0, math.expm1(-epsilon) / math.expm1(-epsilon0))
    return min(1.0, _noise_gap_cdf(epsilon, dims) / _noise_gap_cdf(epsilon0, dims))


@called_as("hs.risk.published_epsilon(0.9, 1.0)")
def published_epsilon(confidence: float, epsilon0: float, dims: int = 1) -> float:
    """Stronger level that has a published confidence.

    Parameters
    ----------
    confidence : float
        Wanted published confidence; in [0, 1].
    epsilon0 : float
        Level that the noise was calibrated to, in nats; above 0, finite.
    dims : int, default 1
        Number of coordinates of the answer.

    Returns
    -------
    float
        Smallest level found whose published confidence is at least the wanted one, in nats;
        rounded up, by bisection to adjacent numbers.

    Raises
    ------
    ParameterError
        If a number is out of range or NaN.

    Notes
    -----
    For one dimension it is ``log(1 / (1 - c (1 - exp(-epsilon0))))``, the inverse of Theorem 4.1
    of Dandekar, Basu and Bressan, PoPETs 2021.
    """
    confidence = read("confidence", confidence, up=True)
    require_within("confidence", confidence, 0, 1)
    _, epsilon0 = check_levels(0.0, epsilon0)
    if published_confidence(0.0, epsilon0, dims) >= confidence:
        return 0.0
    return first_true(
        lambda level: published_confidence(level, epsilon0, dims) >= confidence, 0.0, epsilon0
    )


def read_rate(name: str, value: float, *, up: bool = False) -> float:
    value = read(name, value, up=up)
    require_probability(name, value)
    return value


@called_as("hs.risk.data_confidence(0.05, rho=0.01, samples=1000)")
def data_confidence(share: float, *, rho: float, samples: int) -> float:
    """Confidence from the randomness of the data, sensitivity being sampled.

    Parameters
    ----------
    share : float
        Share of the sampled sensitivities at or below the one used; in (0, 1).
    rho : float
        Accuracy asked of the empirical distribution; in (0, 1).
    samples : int
        Number of sampled pairs; 1 or more.

    Returns
    -------
    float
        ``share (1 - 2 exp(-2 rho^2 samples))``, or 0 where that is negative.

    Raises
    ------
    ParameterError
        If a number is out of range or NaN.

    Notes
    -----
    Dandekar, Basu and Bressan, PoPETs 2021, Theorem 5, with the constant of Massart, *Annals of
    Probability* 18(3), 1990.
    """
    share, rho = read_rate("share", share), read_rate("rho", rho)
    samples = read_count("samples", samples, 1)
    return max(0.0, share * (1.0 - 2.0 * math.exp(-2.0 * rho * rho * samples)))


@called_as("hs.risk.samples_for_accuracy(0.1, rho=0.01)")
def samples_for_accuracy(accuracy: float, *, rho: float) -> int:
    """Count the sampled pairs needed for an accuracy of the empirical distribution.

    Parameters
    ----------
    accuracy : float
        Wanted probability that the empirical distribution is off by at most ``rho``; in (0, 1).
    rho : float
        Distance allowed; in (0, 1).

    Returns
    -------
    int
        ``log(2 / (1 - accuracy)) / (2 rho^2)``, rounded up.

    Raises
    ------
    ParameterError
        If a number is out of range or NaN.
    """
    accuracy, rho = read_rate("accuracy", accuracy, up=True), read_rate("rho", rho)
    return math.ceil(math.log(2.0 / (1.0 - accuracy)) / (2.0 * rho * rho))


@called_as("hs.risk.combined_confidence(0.5, 1.0, share=0.05, rho=0.01, samples=1000)")
def combined_confidence(
    epsilon: float,
    epsilon0: float,
    *,
    share: float,
    rho: float,
    samples: int,
    eta: float = 1.0,
    dims: int = 1,
) -> float:
    """Confidence from both sources of randomness, as published.

    Parameters
    ----------
    epsilon : float
        Stronger level, in nats; in [0, epsilon0].
    epsilon0 : float
        Level that the noise was calibrated to with the sampled sensitivity, in nats.
    share : float
        Share of the sampled sensitivities at or below the one used; in (0, 1).
    rho : float
        Accuracy asked of the empirical distribution; in (0, 1).
    samples : int
        Number of sampled pairs; 1 or more.
    eta : float, default 1
        True over sampled sensitivity; above 0. The published code takes ``1 + 2 rho`` over the
        sampled sensitivity.
    dims : int, default 1
        Number of coordinates of the answer.

    Returns
    -------
    float
        ``Pr(T <= epsilon) / Pr(T <= eta epsilon0) share (1 - 2 exp(-2 rho^2 samples))``.

    Raises
    ------
    ParameterError
        If a number is out of range or NaN, or ``epsilon`` exceeds ``eta * epsilon0``.

    Notes
    -----
    Dandekar, Basu and Bressan, PoPETs 2021, Theorem 6 and equation 7.
    """
    epsilon, epsilon0 = check_levels(epsilon, epsilon0)
    eta = read("eta", eta, up=True)
    if not eta > 0 or math.isinf(eta):
        raise ParameterError(f"eta must be above 0 and finite, got {eta}", parameter="eta")
    noise = published_confidence(epsilon, eta * epsilon0, dims)
    return noise * data_confidence(share, rho=rho, samples=samples)
