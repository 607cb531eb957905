"""The comparison that every sampler rests on: a uniform real number with exp(-x).

A uniform number is a prefix of binary digits that can be made longer without end. It is compared
with an integer enclosure of ``exp(-x)`` at the same number of digits; when the prefix alone does
not decide, it grows by one word. The answer is that of an infinitely long number, so that no
probability is rounded.
"""

from __future__ import annotations

import math
from fractions import Fraction

from hushed.noise._entropy import Words

_WORD_BITS = 64
_GUARD_BITS = 16
_PREFIX_BITS = 60


class Uniform:
    """A uniform real number in [0, 1), known to finitely many binary digits so far.

    They are the integer ``prefix``, of ``length`` digits.
    """

    __slots__ = ("_words", "length", "prefix")

    def __init__(self, prefix: int, length: int, words: Words) -> None:
        self.prefix = prefix
        self.length = length
        self._words = words

    def refine(self) -> None:
        """Draw one more word of digits."""
        self.prefix = self.prefix << _WORD_BITS | self._words.word()
        self.length += _WORD_BITS


def exp_bounds(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Enclose ``exp(-exponent)`` between two neighbouring multiples of ``2**-bits``.

    ``(lower, upper)`` with ``lower <= 2**bits * exp(-exponent) <= upper`` and ``upper - lower <=
    2``.

    Notes
    -----
    Integer arithmetic only. With ``y = exponent / 2**m <= 1/16``, the alternating series of
    ``exp(-y)`` is summed in fixed point. Truncating ``y`` moves the sum by less than one unit,
    every term is short by less than two, and the remainder is below the first omitted term,
    hence the margin. The enclosure is then squared ``m`` times, rounding outwards; each squaring
    doubles the relative width at most (plus one unit), which the ``m + 16`` guard digits absorb.
    """
    if exponent >= bits:
        return (1 << bits, 1 << bits) if exponent == 0 else (0, 1)
    squarings = int(exponent).bit_length() + 4
    digits = bits + squarings + _GUARD_BITS
    argument = (exponent.numerator << (digits - squarings)) // exponent.denominator
    total = term = 1 << digits
    terms = 0
    while term:
        terms += 1
        term = (term * argument >> digits) // terms
        total += -term if terms % 2 else term
    margin = 2 * terms + 6 if exponent else 0
    lower, upper = total - margin, total + margin
    for _ in range(squarings):
        lower = lower * lower >> digits
        upper = -(-upper * upper >> digits)
    shift = squarings + _GUARD_BITS
    return lower >> shift, -(-upper >> shift)


def below_exp(number: Uniform, exponent: Fraction) -> bool:
    """Decide whether a uniform number is below ``exp(-exponent)``.

    True with probability exactly ``exp(-exponent)``.
    """
    while True:
        lower, upper = exp_bounds(exponent, number.length)
        if number.prefix < lower:
            return True
        if number.prefix >= upper:
            return False
        number.refine()


def below(number: Uniform, probability: Fraction) -> bool:
    """Decide whether a uniform number is below a rational number.

    True with exactly this probability.
    """
    while True:
        scaled = probability.numerator << number.length
        lower = scaled // probability.denominator
        if number.prefix < lower:
            return True
        if number.prefix > lower or lower * probability.denominator == scaled:
            return False
        number.refine()


def floor_exponential(number: Uniform, scale: Fraction) -> int:
    """Round ``-scale * log(number)`` down: a geometric variable by exact inversion.

    ``v`` with probability ``exp(-v/scale) - exp(-(v+1)/scale)`` exactly; 0 or more.

    Notes
    -----
    With 60 leading digits or more, the double-precision estimate is wrong by far less than 1/2,
    so the answer is its nearest integer ``n`` or ``n - 1``: the former if and only if
    ``number < exp(-n/scale)``.
    """
    while number.prefix.bit_length() < _PREFIX_BITS:
        number.refine()
    logarithm = number.length * math.log(2) - math.log(number.prefix)
    nearest = round(float(scale) * max(logarithm, 0.0))
    if nearest == 0 or below_exp(number, nearest / scale):
        return nearest
    return nearest - 1
