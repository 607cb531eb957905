"""The default estimator: plug-in far from the kink, a fitted mixture of symbols near it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

# Chosen on the tuning grid of benchmarks/divergences.py, tested on another one.
_WINDOW = 6.0  # standard deviations from the kink beyond which the plug-in scores
_MARGIN = 2.5  # how much farther the candidates reach
_FEW = 8  # at most this many observations: the rate of the symbol is a candidate too
_OCTAVES = 3.0  # symbols whose totals lie within 2**3 of each other share a mixture
_STEP = 0.35  # spacing of candidates, in standard deviations
_SIDE = 40  # at most this many candidates on each side of the kink
_START = 0.05  # weight of the kink before the fit: what stays where counts say nothing
_START_FEW = 0.3  # the same for symbols seen up to _FEW times
_PULL = 0.15  # weight of the kink itself, in symbols
_ROUNDS = 100  # of expectation maximisation; stopping early also smooths
_ROWS = 150  # more distinct rows than this are put into cells
_CELL = 0.2  # width of a cell, in standard deviations
_RATES = np.array([0.2, 1.0, 2.0, 3.5, 6.0, 10.0])
_LEANING = 0.9  # share of a symbol that is seen on one side, mostly
_UNLIKELY = -5.0  # log chance below which symbols are not thought to lean so
_EXTREME = 1e10  # ratios beyond this, or below its inverse, leave no window in doubles


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rows:
    """Symbols of one stratum: counts of p and q (means, when put into cells), and how many."""

    p: _Floats
    q: _Floats
    weight: _Floats

    @property
    def total(self) -> _Floats:
        return self.p + self.q


def estimate_total(p: _Floats, q: _Floats, weight: _Floats, ratio: float, *, rates: bool) -> float:
    """Estimated sum of ``[E q - ratio E p]+`` over symbols, in counts of q.

    Notes
    -----
    Given the total m of a symbol, its count of q is binomial (Poisson counts; nearly so for
    fixed sizes), with a share s that sits at ``ratio / (1 + ratio)`` on the kink. Symbols far
    from the kink score ``[q - ratio p]+``. The others are grouped by total; in each group the
    distribution of s is fitted by maximum likelihood (Kiefer and Wolfowitz, *Annals of
    Mathematical Statistics* 27, 1956, by expectation maximisation, Laird 1978), and a symbol
    scores the posterior mean of ``m [s - ratio (1 - s)]+``: Robbins' empirical Bayes. One
    symbol alone is its own distribution, and scores as in the plug-in, but for a pull towards
    the kink worth a sixth of a symbol; many symbols show how much of their scatter is noise.
    Groups so small that, on the kink, one side is expected less than once score as in the
    plug-in; so do groups in which symbols were seen again and again, but none on both sides.
    """
    total = p + q
    plain = np.maximum(q - ratio * p, 0.0)
    if not 1 / _EXTREME < ratio < _EXTREME:
        return float(weight @ plain)
    place = (q - ratio * p) / np.sqrt(ratio * total)
    near = np.abs(place) <= _WINDOW
    result = float(weight[~near] @ plain[~near])
    octave = np.log2(total / _FEW)
    stratum = np.where((total <= _FEW) & rates, -math.inf, np.floor(octave / _OCTAVES))
    for level in np.unique(stratum[near]):
        here = near & (stratum == level)
        rows = _Rows(p=p[here], q=q[here], weight=weight[here])
        seen = float(rows.weight @ rows.total)
        if min(seen, ratio * seen) < 1 + ratio:  # at the kink, one side would not be seen at all
            result += float(rows.weight @ plain[here])
            continue
        if _are_apart(rows):
            result += float(rows.weight @ plain[here])
            continue
        if len(rows.p) > _ROWS:
            rows = _cells(rows, place[here], octave[here])
        result += _fitted_total(rows, ratio, by_rate=level == -math.inf)
    return result


def _are_apart(rows: _Rows) -> bool:
    """Whether no symbol was seen on both sides, though symbols that lean nine to one would be.

    All shares are then 0 or 1 by maximum likelihood, which expectation maximisation reaches only
    in the limit.
    """
    if np.any((rows.p > 0) & (rows.q > 0)):
        return False
    unmixed = np.logaddexp(rows.total * math.log(_LEANING), rows.total * math.log1p(-_LEANING))
    return float(rows.weight @ unmixed) <= _UNLIKELY


def _cells(rows: _Rows, place: _Floats, octave: _Floats) -> _Rows:
    """Put rows with nearly the same place and total together."""
    column = np.round(place / _CELL).astype(np.int64)
    line = np.round(2 * octave).astype(np.int64)
    column -= column.min()
    line -= line.min()
    cell = column * (int(line.max()) + 1) + line
    weight = np.bincount(cell, rows.weight)
    kept = weight > 0
    p, q = (
        np.bincount(cell, rows.weight * count)[kept] / weight[kept] for count in (rows.p, rows.q)
    )
    return _Rows(p=p, q=q, weight=np.asarray(weight[kept], dtype=np.float64))


def _fitted_total(rows: _Rows, ratio: float, *, by_rate: bool) -> float:
    """Sum of posterior means of ``m [s - ratio (1 - s)]+`` under the fitted mixture."""
    kink = math.atan(math.sqrt(ratio))
    total = rows.total
    offset = _candidates(kink, float(total.min()), float(total.max()))
    # s = sin(angle)**2; the difference of two sines, written so that it keeps its digits.
    gain = (1 + ratio) * np.sin(offset) * np.sin(offset + 2 * kink)
    gain = np.where(offset > 0, gain, 0.0)
    sine, cosine = np.sin(kink + offset) ** 2, np.cos(kink + offset) ** 2
    with np.errstate(divide="ignore"):
        log_share = np.where(sine < 0.5, np.log(sine), np.log1p(-cosine))
        log_rest = np.where(cosine < 0.5, np.log(cosine), np.log1p(-sine))
    fit = rows.q[:, None] * np.maximum(log_share, -700) + rows.p[:, None] * np.maximum(
        log_rest, -700
    )
    likelihood = np.exp(fit - fit.max(axis=1, keepdims=True))
    at_kink = offset == 0
    if by_rate:
        seen = _seen_given_rate(total)
        likelihood = (seen[:, :, None] * likelihood[:, None, :]).reshape(len(total), -1)
        gain, at_kink = np.tile(gain, len(_RATES)), np.tile(at_kink, len(_RATES))
    start = _START_FEW if by_rate else _START
    mixture = _mixture(likelihood, rows.weight, at_kink, start)
    means = (likelihood @ (mixture * gain)) / (likelihood @ mixture)
    return float((rows.weight * total) @ means)


def _candidates(kink: float, smallest: float, largest: float) -> _Floats:
    """Angles measured from the kink; the kink itself is one, and so are 0 and 90 degrees."""
    step = _STEP / (2 * math.sqrt(largest))
    reach = (_WINDOW + _MARGIN) / (2 * math.sqrt(smallest))
    low, high = min(kink, reach), min(math.pi / 2 - kink, reach)
    below, above = (min(max(1, math.ceil(span / step)), _SIDE) for span in (low, high))
    return np.concatenate(
        [np.linspace(-low, 0.0, below + 1)[:-1], np.linspace(0.0, high, above + 1)]
    )


def _seen_given_rate(total: _Floats) -> _Floats:
    """Chance of each total given each rate, among symbols seen 1 to ``_FEW`` times."""
    times = np.arange(1, _FEW + 1)
    factorials = np.array([math.lgamma(t + 1) for t in times])
    chance = np.exp(times[:, None] * np.log(_RATES) - _RATES - factorials[:, None])
    return np.asarray((chance / chance.sum(axis=0))[total.astype(np.int64) - 1])


def _mixture(
    likelihood: _Floats, weight: _Floats, at_kink: NDArray[np.bool_], start: float
) -> _Floats:
    """Mixing weights by expectation maximisation, with ``_PULL`` more symbols at the kink."""
    mixture = np.where(at_kink, start / at_kink.sum(), (1 - start) / (~at_kink).sum())
    everyone = float(weight.sum()) + _PULL
    kinks = np.flatnonzero(at_kink)
    for _ in range(_ROUNDS):
        mixture *= (weight / (likelihood @ mixture)) @ likelihood
        mixture[kinks] *= 1 + _PULL / max(float(mixture[kinks].sum()), 1e-300)
        mixture /= everyone
    return np.asarray(mixture)
