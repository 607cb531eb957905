"""The law of a sum of independent losses: which window answers which question."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from hushed._ground.decimals import decimal_of, lower_double, stated_above, upper_double
from hushed._ground.numeric import ARITHMETIC, COARSE, LIBRARY, SERIES, round_down, round_up
from hushed._ground.types import Floats
from hushed.errors import ParameterError
from hushed.privacy_loss._composition import (
    LADDER,
    Faded,
    Parts,
    Window,
    log_mgf,
    spread,
    summed,
    window,
)
from hushed.privacy_loss._discrete import DiscretePLD
from hushed.privacy_loss._families import Family

_SMALLEST = 2**13  # grid points
_LARGEST = 2**20
_WORK = 2**24  # grid points times different laws in the largest attempt


@lru_cache(maxsize=64)
def _ladder(parts: Parts) -> tuple[Floats, Floats]:
    """Tilts to choose from, and the logarithm of the best bound each gives on delta(0).

    ``delta(e) <= E[exp(t (S - e))] t**t / (1 + t)**(1 + t)``: Canonne, Kamath and Steinke, *The
    Discrete Gaussian for Differential Privacy*, NeurIPS 2020, Proposition 12.
    """
    with np.errstate(all="ignore"):  # losses that no grid takes: refused later
        tilts = LADDER / spread(parts)
        best = tilts * np.log1p(1.0 / tilts) + np.log1p(tilts)
    return tilts, log_mgf(parts, tilts) - best


@dataclass(frozen=True, slots=True)
class ComposedPLD:
    """Sum of independent losses."""

    parts: Parts  # laws, each once, and how often each occurs; not all of them always 0

    @property
    def supremum(self) -> float:
        """Sum of the largest losses: of their decimals, exactly, then the next decimal above."""
        if any(math.isinf(family.supremum) for family, _ in self.parts):
            return math.inf
        ends = (decimal_of(family.supremum) * count for family, count in self.parts)
        return stated_above(sum(ends, Fraction(0)))

    @property
    def infinite(self) -> float:
        """Probability that any loss is infinite, rounded up; never above the sum of all."""
        lossy = [(family, count) for family, count in self.parts if family.infinite > 0]
        if not lossy or (len(lossy) == 1 and lossy[0][1] == 1):
            return lossy[0][0].infinite if lossy else 0.0
        logs = [count * math.log1p(-f.infinite) for f, count in self.parts if f.infinite < 1]
        if len(logs) < len(self.parts):
            return 1.0
        found = round_up(-math.expm1(math.fsum(logs)), LIBRARY, ceiling=1.0)
        together = sum((decimal_of(f.infinite) * count for f, count in lossy), Fraction(0))
        return min(found, stated_above(together))

    @property
    def _surely_infinite(self) -> float:
        """The same, rounded down; equal to it where it is one decimal, 0 for a tail cut off."""
        lossy = [(family, count) for family, count in self.parts if family.infinite > 0]
        if any(is_cut(family) for family, _ in lossy):
            return 0.0
        number = sum(count for _, count in lossy)
        return self.infinite if number < 2 else round_down(self.infinite, SERIES)

    def _finite_end(self) -> float:
        """Sum of the largest finite losses, rounded up to a decimal; infinite if one has none."""
        ends = [(_largest(family), count) for family, count in self.parts]
        if any(math.isinf(end) for end, _ in ends):
            return math.inf
        return stated_above(sum((decimal_of(end) * count for end, count in ends), Fraction(0)))

    @property
    def blur(self) -> float:
        """Sum over the releases."""
        return summed([count * family.blur for family, count in self.parts])

    def _reach(self) -> float:
        """Sum of the sizes of the losses that are decimals, which the computed laws exceed."""
        ends = (count * family.supremum for family, count in self.parts)
        return min(1e300, summed([end for end in ends if math.isfinite(end)]))

    @property
    def scale(self) -> float:
        """Root of the summed squares of the scales."""
        return spread(self.parts)

    def log_mgf(self, order: Floats) -> Floats:
        """Sum over the laws."""
        return log_mgf(self.parts, order)

    def moment(self, order: int) -> float:
        """From the cumulants, which add."""
        if order > 0 and self.infinite > 0:
            return math.inf
        cumulants = [0.0] * (order + 1)
        for family, count in self.parts:
            raw = [family.moment(n) for n in range(order + 1)]
            for n, value in enumerate(_cumulants(raw)):
                cumulants[n] += count * value
        moments = [1.0]
        for n in range(1, order + 1):
            terms = (math.comb(n - 1, j) * cumulants[j + 1] * moments[n - 1 - j] for j in range(n))
            moments.append(math.fsum(terms))
        return moments[order]

    def delta(self, epsilon: float) -> float:
        """Upper end of the bracket."""
        return self.delta_bracket(epsilon)[1]

    def delta_bracket(self, epsilon: float, relative: float = 1e-3) -> tuple[float, float]:
        """Lower and upper bound of the exact delta.

        Lower and upper bound, each in [0, 1].
        """
        lost = self.infinite
        if lost >= 1.0 or epsilon == -math.inf:
            return (self._surely_infinite, 1.0) if epsilon > -math.inf else (1.0, 1.0)
        if epsilon >= self._finite_end():
            return self._surely_infinite, lost
        if not spread(self.parts):  # all finite losses are 0
            found = lost - (1.0 - lost) * math.expm1(min(0.0, epsilon))
            return round_down(found, SERIES), round_up(found, SERIES, ceiling=1.0)
        blur = self.blur
        if blur > 1:
            return 0.0, 1.0
        tilts, logs = _ladder(self.parts)
        level = math.nextafter(lower_double(epsilon) - 2 * blur, -math.inf)
        chernoff = logs - tilts * level + 1e-13 * (np.abs(logs) + np.abs(tilts * level))
        best = int(np.argmin(chernoff))
        order = [float(t) for t in tilts[best::-6]] if chernoff[best] < 0 else []

        def ask(found: Window) -> tuple[float, float]:
            past = epsilon + 2.0**-50 * (self._reach() + abs(epsilon))
            return found.delta(past)[0], found.delta(level)[1]

        cap = math.exp(min(0.0, float(chernoff[best])))
        peak, end = self._peak()
        short = epsilon - end + 1e-13 * (abs(epsilon) + end) if peak > 0 else 0.0
        floor = round_down(-peak * math.expm1(min(0.0, short)), COARSE)
        low, high = _refine(self.parts, [*order, 0.0], ask, relative, (floor, cap))
        # With infinite losses the finite masses sum to less than 1; the two parts add.
        if high == 0.0:  # below all doubles, but above 0: the level is below the largest sum
            return self._surely_infinite, math.nextafter(lost, 1.0)
        high = round_up(lost + high * (1 + 2 * blur), ARITHMETIC, ceiling=1.0)
        return min(1.0, round_down(lost, SERIES) + low), high

    def epsilon_bracket(self, delta: float, relative: float = 2e-4) -> tuple[float, float]:
        """Lower and upper bound of the smallest epsilon at ``delta``.

        Lower and upper bound, 0 or more; infinite where no epsilon suffices.
        """
        lost, end = self.infinite, self._finite_end()
        if delta >= 1.0:
            return 0.0, 0.0
        blur = self.blur
        left = round_down(lower_double(delta) - upper_double(lost), ARITHMETIC)
        left = left / (1 + 2 * blur) if blur <= 1 else 0.0
        if left <= 0.0:
            return self._without_slack(delta, lost, end)
        if not spread(self.parts):  # all finite losses are 0
            return (0.0, 0.0) if delta >= self.infinite else (math.inf, math.inf)
        tilts, logs = _ladder(self.parts)
        with np.errstate(over="ignore"):  # tilts of the largest losses
            chernoff = (logs - math.log(left)) / tilts
        best = int(np.argmin(chernoff))

        def ask(found: Window) -> tuple[float, float]:
            low, high = found.epsilon(math.log(left))
            low -= 2.0**-50 * self._reach()
            return max(0.0, low), max(0.0, high + 2 * blur)

        cap = min(end, max(0.0, float(chernoff[best]) + 2 * blur))
        order = [*(float(t) for t in tilts[best::-6]), 0.0]
        peak, top = self._peak()
        # All releases at their largest loss at once already need this much.
        floor = (
            max(0.0, round_down(top, LIBRARY) + math.log1p(-left / peak)) if left < peak else 0.0
        )
        floor = max(floor, self._near_top(left))
        low, high = _refine(self.parts, order, ask, relative, (floor, cap))
        high = min(end, round_up(high, ARITHMETIC))
        return min(low, high), high

    def _without_slack(self, delta: float, lost: float, end: float) -> tuple[float, float]:
        """Bracket where nothing is left of delta for the finite losses: their largest sum."""
        if delta < self._surely_infinite:
            return math.inf, math.inf
        if lost == 0.0:
            return end, end
        if delta == 0.0:
            return math.inf, math.inf
        known = lost == self._surely_infinite and math.isfinite(end)
        return round_down(end, 64) if known else 0.0, end if delta >= lost else math.inf

    def _near_top(self, delta: float) -> float:
        """Level just below the sum of the largest losses at which ``delta`` is still exceeded.

        When every loss is within ``x/(2n)`` of its largest, the sum is within ``x/2`` of the end,
        so delta at ``end - x`` is at least the product of the tails times ``1 - exp(-x/2)``.
        """
        end = self.supremum
        if not math.isfinite(end):
            return 0.0
        number = sum(count for _, count in self.parts)
        for share in (1e-9, 1e-7, 1e-5, 1e-4):
            gap = share * end
            tails = [(f.tail(f.supremum - gap / (2 * number)), count) for f, count in self.parts]
            if all(tail > 0 for tail, _ in tails):
                log = math.fsum(count * math.log(tail) for tail, count in tails)
                if log + math.log(-math.expm1(-gap / 2)) > math.log(delta) + 1e-6:
                    return round_down(end, LIBRARY) - gap
        return 0.0

    def _peak(self) -> tuple[float, float]:
        """Probability of the largest finite loss, rounded down, and that loss."""
        if any(family.top <= 0.0 for family, _ in self.parts):
            return 0.0, math.inf
        log = math.fsum(count * math.log(family.top) for family, count in self.parts)
        return round_down(math.exp(log), COARSE), math.fsum(
            count * _largest(family) for family, count in self.parts
        )

    def tail(self, loss: float) -> float:
        """Probability of a loss above ``loss``, rounded up by the rounding to the grid."""
        if self.infinite >= 1.0:
            return 1.0
        points, above = self._above()
        i = int(np.searchsorted(points, loss, side="right")) - 1
        if i < 0:
            return 1.0
        return min(1.0, self.infinite + float(above[i]))

    def _above(self) -> tuple[Floats, Floats]:
        found = window(self.parts, 0.0, 2**15)
        number = sum(count for _, count in self.parts)
        drift = found.step * math.sqrt(number * 40 / 2)  # passed with probability exp(-40)
        points = (found.first + np.arange(found.above.size, dtype=np.float64)) * found.step + drift
        return points, found.above + found.unsure + math.exp(-40)

    def profile(self) -> tuple[Floats, Floats]:
        """Levels on a grid and an upper bound of delta at each, untilted."""
        found = window(self.parts, 0.0, 2**15)
        steps = found.first + np.arange(found.curve.size, dtype=np.float64)
        points = steps * found.step + found.slide
        return points, np.minimum(1.0, found.curve + found.budget + self.infinite)


def is_cut(family: Family) -> bool:
    """Tell whether an infinite loss stands for a far tail that was cut off."""
    return isinstance(family, DiscretePLD) and family.cut


def _largest(family: Family) -> float:
    if not isinstance(family, DiscretePLD):
        return family.supremum
    return float(family.losses[-1]) if family.end is None else family.end


def _refine(
    parts: Parts,
    tilts: list[float],
    ask: Callable[[Window], tuple[float, float]],
    relative: float,
    known: tuple[float, float],
) -> tuple[float, float]:
    """Bracket from the first tilt whose window answers, on finer and finer grids.

    For more losses than the largest grid has room for, it is the one that is `known`.
    """
    low, high = known
    number = sum(count for _, count in parts)
    # The rounding of `number` losses must stay well below the width of the window.
    least = max(_SMALLEST, 2 ** math.ceil(math.log2(64 * math.sqrt(number))))
    if least > _LARGEST:
        return low, high
    most = max(least, min(_LARGEST, 2 ** int(math.log2(_WORK / len(parts)))))
    size = least
    while True:
        tried = (_asked(parts, tilt, size, ask) for tilt in tilts)
        found = next((one for one in tried if math.isfinite(one[1])), (0.0, math.inf))
        low, high = max(low, found[0]), min(high, found[1])
        width = high - low
        if width <= relative * high or size >= most:
            return float(low), float(high)
        wanted = math.sqrt(min(width / (relative * high), 256.0))
        size = min(most, size * 2 ** max(1, math.ceil(math.log2(wanted))))


def _asked(
    parts: Parts, tilt: float, size: int, ask: Callable[[Window], tuple[float, float]]
) -> tuple[float, float]:
    """Answer of one window, if it has one; losses that leave the doubles on the way are refused."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return ask(window(parts, tilt, size))
    except Faded:
        return 0.0, math.inf
    except ParameterError:
        raise
    except (OverflowError, ValueError):  # an end of the window is infinite or NaN
        raise ParameterError(
            f"losses of {spread(parts):g} nats cannot be composed in doubles"
        ) from None


def _cumulants(raw: list[float]) -> list[float]:
    """Cumulants 0, 1, 2, ... from raw moments 0, 1, 2, ..."""
    found = [0.0]
    for n in range(1, len(raw)):
        lower = (math.comb(n - 1, j - 1) * found[j] * raw[n - j] for j in range(1, n))
        found.append(raw[n] - math.fsum(lower))
    return found
