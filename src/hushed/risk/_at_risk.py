"""Privacy at risk: the published confidence in a stronger level, and the exact numbers.

A Laplace mechanism calibrated to ``epsilon0`` is said to keep a stronger level ``epsilon`` with
some confidence (Dandekar, Basu and Bressan, *Differential Privacy at Risk*, PoPETs 2021). The
published confidence compares two draws of noise; it is not a statement about the privacy loss, and
for ``epsilon0 > log 3`` its risk falls below the delta that is needed. Everything here that
decides uses the exact quantities of one coordinate that moves by its full sensitivity. For delta
that is the worst case: an l1 movement spread over several coordinates needs no more (see
`hushed.mechanisms.Laplace`). For the probability that the loss exceeds a level no such order is
claimed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hushed import privacy_loss
from hushed._checks import (
    read_count,
    require_least,
    require_positive,
    require_probability,
    require_within,
)
from hushed._decimals import lower_double, read, upper_double
from hushed._numeric import ARITHMETIC, first_true, round_up
from hushed._printing import format_up
from hushed.errors import ParameterError

_MOST_DIMS = 100_000


def _check(epsilon: float, epsilon0: float) -> tuple[float, float]:
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
    epsilon, epsilon0 = _check(epsilon, epsilon0)
    dims = read_count("dims", dims, 1, _MOST_DIMS)
    if dims == 1:
        return min(1.0, math.expm1(-epsilon) / math.expm1(-epsilon0))
    return min(1.0, _noise_gap_cdf(epsilon, dims) / _noise_gap_cdf(epsilon0, dims))


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
    _, epsilon0 = _check(0.0, epsilon0)
    if published_confidence(0.0, epsilon0, dims) >= confidence:
        return 0.0
    return first_true(
        lambda level: published_confidence(level, epsilon0, dims) >= confidence, 0.0, epsilon0
    )


def delta(epsilon: float, epsilon0: float) -> float:
    """Exact delta at a stronger level: what (epsilon, delta)-privacy of the mechanism needs.

    Parameters
    ----------
    epsilon : float
        Stronger level, in nats; in [0, epsilon0].
    epsilon0 : float
        Level that the noise was calibrated to, in nats; above 0, finite.

    Returns
    -------
    float
        ``1 - exp(-(epsilon0 - epsilon)/2)``, rounded up.

    Raises
    ------
    ParameterError
        If a number is out of range or NaN.
    """
    epsilon, epsilon0 = _check(epsilon, epsilon0)
    return privacy_loss.laplace(epsilon0).delta(epsilon)


def epsilon(delta: float, epsilon0: float) -> float:
    """Exact stronger level at a delta; the inverse of `delta`.

    Parameters
    ----------
    delta : float
        Slack; in [0, 1].
    epsilon0 : float
        Level that the noise was calibrated to, in nats; above 0, finite.

    Returns
    -------
    float
        Smallest level, in nats, rounded up; 0 where ``delta`` is large enough.

    Raises
    ------
    ParameterError
        If a number is out of range or NaN.
    """
    _, epsilon0 = _check(0.0, epsilon0)
    return privacy_loss.laplace(epsilon0).epsilon(delta)


def loss_exceeds(epsilon: float, epsilon0: float) -> float:
    """Exact probability that the privacy loss leaves ``[-epsilon, epsilon]``.

    Parameters
    ----------
    epsilon : float
        Stronger level, in nats; in [0, epsilon0].
    epsilon0 : float
        Level that the noise was calibrated to, in nats; above 0, finite.

    Returns
    -------
    float
        ``1 - exp(-epsilon0/2) sinh(epsilon/2)`` below ``epsilon0`` and 0 at it.

    Raises
    ------
    ParameterError
        If a number is out of range or NaN.

    Notes
    -----
    This is the risk in the sense of probabilistic differential privacy (Machanavajjhala, Kifer,
    Abowd, Gehrke and Vilhuber, ICDE 2008). Half of all outputs lose the full ``epsilon0``.
    """
    epsilon, epsilon0 = _check(epsilon, epsilon0)
    if epsilon == epsilon0:
        return 0.0
    low, high = lower_double(epsilon), upper_double(epsilon0)
    kept = 0.5 * (math.exp((low - high) / 2) - math.exp(-(low + high) / 2))
    return round_up(1.0 - kept, ceiling=1.0)


def crossing(epsilon0: float) -> float | None:
    """Level from which on the published risk is below the exact delta.

    Parameters
    ----------
    epsilon0 : float
        Level that the noise was calibrated to, in nats; above 0, finite.

    Returns
    -------
    float or None
        Level in [0, epsilon0), in nats: above it and below ``epsilon0`` the published risk
        over-promises. None when ``epsilon0 <= log 3``, where it never does.

    Raises
    ------
    ParameterError
        If ``epsilon0`` is out of range or NaN.

    Notes
    -----
    With ``x = exp(-epsilon/2)`` and ``y = exp(-epsilon0/2)`` the risk is ``(x^2 - y^2)/(1 - y^2)``
    and delta is ``1 - y/x``; they cross, besides at ``x = y``, where ``x (x + y) = 1 - y^2``.
    """
    _, epsilon0 = _check(0.0, epsilon0)
    if epsilon0 <= math.log(3.0):
        return None
    y = math.exp(-epsilon0 / 2)
    x = (math.sqrt(y * y + 4 * (1 - y * y)) - y) / 2
    found = max(0.0, -2 * math.log(min(x, 1.0)))
    return found if found < epsilon0 else None


def _rate(name: str, value: float, *, up: bool = False) -> float:
    value = read(name, value, up=up)
    require_probability(name, value)
    return value


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
    share, rho = _rate("share", share), _rate("rho", rho)
    samples = read_count("samples", samples, 1)
    return max(0.0, share * (1.0 - 2.0 * math.exp(-2.0 * rho * rho * samples)))


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
    accuracy, rho = _rate("accuracy", accuracy, up=True), _rate("rho", rho)
    return math.ceil(math.log(2.0 / (1.0 - accuracy)) / (2.0 * rho * rho))


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
    epsilon, epsilon0 = _check(epsilon, epsilon0)
    eta = read("eta", eta, up=True)
    if not eta > 0 or math.isinf(eta):
        raise ParameterError(f"eta must be above 0 and finite, got {eta}", parameter="eta")
    noise = published_confidence(epsilon, eta * epsilon0, dims)
    return noise * data_confidence(share, rho=rho, samples=samples)


def belief(epsilon: float, prior: float = 0.5) -> float:
    """Largest probability that anyone can come to give to a fact about one record.

    Parameters
    ----------
    epsilon : float
        Level of the release, in nats; 0 or more.
    prior : float, default 0.5
        Probability given to the fact before the release; in (0, 1).

    Returns
    -------
    float
        ``prior e^epsilon / (1 - prior + prior e^epsilon)``, rounded up.

    Raises
    ------
    ParameterError
        If a number is out of range or NaN.

    Notes
    -----
    Bayes' rule with the likelihood ratio bounded by ``e^epsilon``: Wasserman and Zhou, *A
    Statistical Framework for Differential Privacy*, JASA 105, 2010.
    """
    epsilon, prior = read("epsilon", epsilon, up=True), _rate("prior", prior, up=True)
    require_least("epsilon", epsilon)
    wide = upper_double(epsilon)
    return round_up(prior / (prior + (1.0 - prior) * math.exp(-wide)), ARITHMETIC, ceiling=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """Every number there is about one stronger level.

    Parameters
    ----------
    epsilon : float
        Stronger level, in nats.
    epsilon0 : float
        Level that the noise was calibrated to, in nats.
    dims : int
        Coordinates of the answer; the exact numbers are those of a record that moves one
        coordinate by the full sensitivity, for delta the worst case.
    published_confidence : float
        Theorem 4.1 of Dandekar, Basu and Bressan.
    published_risk : float
        One minus it.
    delta : float
        Exact delta: use this one to decide.
    loss_exceeds : float
        Exact probability that the loss leaves the level.
    warnings : tuple of str
        Why the published number may over-promise, with the numbers.
    """

    epsilon: float
    epsilon0: float
    dims: int
    published_confidence: float
    published_risk: float
    delta: float
    loss_exceeds: float
    warnings: tuple[str, ...]


def assess(epsilon: float, epsilon0: float, *, dims: int = 1) -> Assessment:
    """Assess one stronger level: published and exact numbers, side by side.

    Parameters
    ----------
    epsilon : float
        Stronger level, in nats; in [0, epsilon0].
    epsilon0 : float
        Level that the noise was calibrated to, in nats; above 0, finite.
    dims : int, default 1
        Number of coordinates of the answer.

    Returns
    -------
    Assessment
        The numbers, and warnings where the published one over-promises.

    Raises
    ------
    ParameterError
        If a number is out of range or NaN.
    """
    epsilon, epsilon0 = _check(epsilon, epsilon0)
    confidence = published_confidence(epsilon, epsilon0, dims)
    needed, beyond = delta(epsilon, epsilon0), loss_exceeds(epsilon, epsilon0)
    published = 1.0 - confidence
    warnings = []
    if published < needed * (1 - 1e-12):
        warnings.append(
            f"the published risk {format_up(published, 4)} is below the exact delta "
            f"{format_up(needed, 4)}: a release "
            f"certified by it would promise more than it keeps"
        )
    if published < beyond:
        warnings.append(
            f"the published risk {format_up(published, 4)} is not the probability of losing "
            f"more than {format_up(epsilon)}: that is {format_up(beyond, 4)}"
        )
    return Assessment(
        epsilon=epsilon,
        epsilon0=epsilon0,
        dims=dims,
        published_confidence=confidence,
        published_risk=published,
        delta=needed,
        loss_exceeds=beyond,
        warnings=tuple(warnings),
    )
