"""Which of m sampled movements to keep, so that it covers all but a gamma share of pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeVar, get_args

from hushed._ground.calls import called_as
from hushed._ground.checks import require_one_of
from hushed._ground.decimals import stated_above
from hushed._ground.numeric import ARITHMETIC, first_whole, round_down
from hushed.errors import ParameterError, TooFewPairs

_LEAST_GAMMA = Fraction(1, 10**12)  # doubles tell the coverage of so many pairs from 1
Calibration = Literal["training-conditional", "marginal", "dkw"]

# The incomplete beta function of SciPy is good to a few 1e-14; a share of pairs must exceed its
# target by this much before the search believes it.
_BETA_ERROR = 1e-12
_DIGITS = 50
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """How many pairs to draw, which of their sorted movements to keep, and what that buys.

    Parameters
    ----------
    pairs : int
        Independent pairs m; 1 or more.
    rank : int
        One-based rank k into the movements sorted upwards; at most ``pairs``.
    gamma : float
        Probability, over the sampler and one fresh pair, that the pair moves further; rounded up.
    tail_mass : float
        Share gamma0 of pairs that may move further, save for the sampling error. Equal to
        ``gamma`` for the marginal calibration, which counts no sampling error separately.
    sampling_error : float
        Probability, over the sampler, that the tail mass is larger; 0 for ``"marginal"``.
    """

    pairs: int
    rank: int
    gamma: float
    tail_mass: float
    sampling_error: float


@called_as('hs.sensitivity.choose_rank("training-conditional", gamma=0.05)')
def choose_rank(
    calibration: Calibration, *, gamma: Fraction | None = None, pairs: int | None = None
) -> Rank:
    """Choose pairs and rank from a target gamma, a number of pairs, or both.

    Parameters
    ----------
    calibration : {"training-conditional", "marginal", "dkw"}
        ``"marginal"``: exact, over pair and sampler together. ``"training-conditional"``: the
        same gamma split into a tail mass and the sampling error of the one sample drawn; the
        split is the best one. ``"dkw"``: as published, by the Dvoretzky-Kiefer-Wolfowitz bound.
    gamma : Fraction, optional
        Largest probability that a fresh pair moves further than the kept movement; in (0, 1).
        Given alone, the number of pairs is the smallest that suffices.
    pairs : int, optional
        Number of pairs; 1 or more. Given alone, gamma is the smallest it supports.

    Returns
    -------
    Rank
        Pairs, rank and gamma; the rank is rounded up, so the error is on the private side.

    Raises
    ------
    ParameterError
        If neither is given, or one leaves its range.
    TooFewPairs
        If no rank among ``pairs`` reaches ``gamma``; ``needed`` holds a number that does.

    Notes
    -----
    The m movements and that of the real pair are exchangeable, so the k-th smallest is exceeded
    with probability at most ``1 - k/(m+1)``, with equality when there are no ties: the argument
    of conformal prediction (Vovk, Gammerman, Shafer 2005), applied to the estimator of
    Rubinstein and Alda, ICML 2017, Algorithm 1. DKW: their Theorem 15 and Table 1.
    """
    require_one_of("calibration", calibration, get_args(Calibration))
    if gamma is None and pairs is None:
        raise ParameterError("give gamma, pairs or both; got neither")
    if gamma is not None and not 0 < gamma < 1:
        raise ParameterError(f"gamma must lie in (0, 1), got {float(gamma)}", parameter="gamma")
    if gamma is not None and gamma < _LEAST_GAMMA:
        raise ParameterError(
            f"gamma comes to {float(gamma):.3g} for a single pair of tables (with protect="
            "'everyone' or blocks it is divided), and can only be had from more than a million "
            "million sampled pairs; ask for a larger gamma",
            parameter="gamma",
        )
    if pairs is not None and pairs < 1:
        raise ParameterError(f"pairs must be 1 or more, got {pairs}", parameter="pairs")
    if pairs is not None and pairs > 1 / _LEAST_GAMMA:
        raise ParameterError("pairs must be a million million or less", parameter="pairs")
    rule = {"marginal": _marginal, "training-conditional": _conditional, "dkw": _dkw}[calibration]
    return rule(gamma, pairs)


def _marginal(gamma: Fraction | None, pairs: int | None) -> Rank:
    if gamma is None:
        m = _require_given(pairs)
        return _all_kept(m, stated_above(Fraction(1, m + 1)), 0.0)
    needed = math.ceil(1 / gamma) - 1
    m = needed if pairs is None else pairs
    # In doubles, ceil((1 - gamma)(m + 1)) is off by one at gamma = 0.18, m = 149.
    rank = m + 1 - math.floor(gamma * (m + 1))
    if rank > m:
        raise TooFewPairs(given=m, needed=needed, gamma=float(gamma), calibration="marginal")
    return Rank(
        pairs=m,
        rank=rank,
        gamma=stated_above(gamma),
        tail_mass=stated_above(gamma),
        sampling_error=0.0,
    )


def _conditional(gamma: Fraction | None, pairs: int | None) -> Rank:
    if gamma is None:
        m = _require_given(pairs)
        tail_mass, covered = _best_split_of_maximum(m)
        return _all_kept(m, stated_above(1 - Fraction(covered)), tail_mass)
    target = 1 - gamma
    needed = first_whole(lambda m: Fraction(_best_split_of_maximum(m)[1]) >= target)
    m = needed if pairs is None else pairs
    if m < needed:
        raise TooFewPairs(
            given=m, needed=needed, gamma=float(gamma), calibration="training-conditional"
        )
    goal = float(target) + _BETA_ERROR
    rank = min(m, first_whole(lambda k: k >= m or _best_split(m, k, float(target))[1] >= goal))
    if rank == m:
        tail_mass = _best_split_of_maximum(m)[0]
        sampling_error = math.exp(m * math.log1p(-tail_mass))
    else:
        covered_share, covered = _best_split(m, rank, float(target))
        tail_mass, sampling_error = 1 - covered_share, 1 - covered / covered_share
    return Rank(
        pairs=m,
        rank=rank,
        gamma=stated_above(gamma),
        tail_mass=tail_mass,
        sampling_error=sampling_error,
    )


def _best_split_of_maximum(m: int) -> tuple[float, float]:
    """Share gamma0 and guaranteed coverage when the largest of m movements is kept.

    The coverage q (1 - q^m) is largest at q = (m + 1)^(-1/m); it is rounded down.
    """
    logarithm = -math.log1p(m) / m
    covered = math.exp(logarithm) * (m / (m + 1))
    return -math.expm1(logarithm), round_down(covered, ARITHMETIC)


def _best_split(m: int, k: int, low: float) -> tuple[float, float]:
    """Covered share q in (low, 1) and the coverage q Pr(Beta(k, m - k + 1) > q), at its largest.

    Any q gives a valid statement, so stopping the search early errs on the private side. The
    product of two log-concave functions has one maximum: golden-section search finds it.
    """
    from scipy.special import betaincc  # noqa: PLC0415  (scipy costs 0.3 s)

    def coverage(q: float) -> float:
        return q * float(betaincc(k, m - k + 1, q))

    ratio = (math.sqrt(5) - 1) / 2
    left, right = low, 1.0
    inner, outer = right - ratio * (right - left), left + ratio * (right - left)
    at_inner, at_outer = coverage(inner), coverage(outer)
    for _ in range(60):
        if at_inner >= at_outer:
            right, outer, at_outer = outer, inner, at_inner
            inner = right - ratio * (right - left)
            at_inner = coverage(inner)
        else:
            left, inner, at_inner = inner, outer, at_outer
            outer = left + ratio * (right - left)
            at_outer = coverage(outer)
    return (inner, at_inner) if at_inner >= at_outer else (outer, at_outer)


def _dkw(gamma: Fraction | None, pairs: int | None) -> Rank:
    from hushed._ground.precise import mp  # noqa: PLC0415

    with mp.workdps(_DIGITS):
        if pairs is None:
            level = mp.mpf(_require_given(gamma).numerator) / _require_given(gamma).denominator
            rho = mp.exp(mp.lambertw(-level / (2 * mp.exp(0.5)), -1).real + mp.mpf(1) / 2)
            m = int(mp.ceil(mp.log(1 / rho) / (2 * (level - rho) ** 2)))
        else:
            m = pairs
            rho = mp.exp(mp.lambertw(-mp.mpf(1) / (4 * m), -1).real / 2)
        slack = mp.sqrt(mp.log(1 / rho) / (2 * m))
        if gamma is None:
            reached = math.nextafter(float(rho + slack), math.inf)
            if not reached < 1:
                raise ParameterError(
                    f"the 'dkw' calibration supports no gamma below 1 with pairs={m}; draw more"
                )
            return Rank(
                pairs=m, rank=m, gamma=reached, tail_mass=float(slack), sampling_error=float(rho)
            )
        level = mp.mpf(gamma.numerator) / gamma.denominator
        rank = int(mp.ceil(m * (1 - level + rho + slack)))
        if rank > m or not rho < level:
            needed = _dkw(gamma, None).pairs
            raise TooFewPairs(given=m, needed=needed, gamma=float(gamma), calibration="dkw")
        return Rank(
            pairs=m,
            rank=rank,
            gamma=stated_above(gamma),
            tail_mass=float(level - rho),
            sampling_error=float(rho),
        )


def _all_kept(m: int, gamma: float, tail_mass: float) -> Rank:
    if not gamma < 1:
        raise ParameterError(f"pairs={m} supports no gamma below 1; draw more pairs")
    sampling_error = math.exp(m * math.log1p(-tail_mass)) if tail_mass else 0.0
    return Rank(
        pairs=m, rank=m, gamma=gamma, tail_mass=tail_mass or gamma, sampling_error=sampling_error
    )


def _require_given(value: _T | None) -> _T:
    if value is None:
        raise ParameterError("give gamma, pairs or both; got neither")
    return value
