"""The samplers fed with recorded words, against exact arithmetic; nothing here is sampled."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from hushed.noise import _thresholds as thresholds
from hushed.noise._scales import scale_of, single_scale
from hushed.noise._singles import (
    _propose_gaussian,
    exponential_draw,
    gaussian_draw,
    laplace_draw,
)
from hushed.noise._thresholds import Uniform, below, below_exp, exp_bounds, floor_exponential
from hushed.noise._vectors import gaussian_draws, laplace_draws

WORD = 1 << 64
PREFIX = 1 << 63


class Exhausted(Exception):
    """The recorded words are used up."""


class Recorded:
    """Words written down in advance; then `rest` for ever, or the end."""

    def __init__(self, words: list[int], rest: int | None = None) -> None:
        self.left = list(words)
        self.rest = rest
        self.used = 0

    def word(self) -> int:
        """Give the next word."""
        self.used += 1
        if self.left:
            return self.left.pop(0)
        if self.rest is None:
            raise Exhausted
        return self.rest

    def take(self, count: int) -> np.ndarray:
        """Give the next words."""
        return np.array([self.word() for _ in range(count)], dtype=np.uint64)


def floor_exp(exponent: Fraction, bits: int) -> int:
    """Floor of 2**bits * exp(-exponent), by mpmath at plenty of digits."""
    with mpmath.workprec(bits + 200):
        value = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
        return int(mpmath.floor(mpmath.ldexp(value, bits)))


def count_true(decide: Callable[[int], bool], bits: int) -> int:
    """How many of the numbers below 2**bits satisfy a condition that holds up to a threshold."""
    low, high = 0, 1 << bits
    while low < high:
        middle = (low + high) // 2
        if decide(middle):
            low = middle + 1
        else:
            high = middle
    return low


EXPONENTS = [Fraction(0), Fraction(1, 10**9), Fraction(1, 7), Fraction(2, 3), Fraction(1)]
EXPONENTS += [Fraction(355, 113), Fraction(41, 5), Fraction(30), Fraction(10**6)]


@pytest.mark.parametrize("bits", [1, 12, 63, 64, 127, 300])
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_the_integer_enclosure_of_exp_holds_the_true_value(exponent: Fraction, bits: int) -> None:
    """exp_bounds holds 2**bits exp(-x) and is at most two units wide."""
    lower, upper = exp_bounds(exponent, bits)
    with mpmath.workprec(bits + 400):
        true = mpmath.ldexp(
            mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator), bits
        )
        assert lower <= true <= upper
    assert 0 <= upper - lower <= 2


def check_all_words(exponent: Fraction, width: int = 10, more: int = 6) -> None:
    """Every prefix of a reduced width, and every continuation, must give the exact answer."""
    hits = 0
    refined = 0
    threshold = floor_exp(exponent, width + 64)
    for prefix in range(1 << width):
        for continuation in range(1 << more):
            words = Recorded([continuation << (64 - more)], rest=1)
            answer = below_exp(Uniform(prefix, width, words), exponent)
            number = (prefix << 64) + (continuation << (64 - more))
            assert answer == (number < threshold)
            hits += answer
            refined += words.used
    true = floor_exp(exponent, width + more)
    # The share of accepted words is the probability, cut off after width + more digits.
    assert hits in (true, true + 1)
    assert refined <= 2 << more


@pytest.mark.slow_cases(
    "exponent0",
    "exponent1",
    "exponent2",
    "exponent3",
    "exponent4",
    "exponent5",
    "exponent6",
)
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_below_exp_is_exact_over_all_words_of_a_reduced_width(exponent: Fraction) -> None:
    """Summed over all words, below_exp says yes with probability exp(-x)."""
    check_all_words(exponent)


@pytest.mark.parametrize("unit", [-1, 1])
def test_a_threshold_off_by_one_unit_is_caught(monkeypatch: pytest.MonkeyPatch, unit: int) -> None:
    """The exhaustive check fails when every threshold is moved by one unit."""

    def biased(exponent: Fraction, bits: int) -> tuple[int, int]:
        lower, upper = exp_bounds(exponent, bits)
        return lower + unit, upper + unit

    monkeypatch.setattr(thresholds, "exp_bounds", biased)
    with pytest.raises(AssertionError):
        check_all_words(Fraction(2, 3))


@pytest.mark.parametrize("probability", [Fraction(0), Fraction(1), Fraction(1, 3), Fraction(5, 8)])
def test_below_is_exact_over_all_words_of_a_reduced_width(probability: Fraction) -> None:
    """Summed over all words, below says yes with the rational probability asked for."""
    width, hits, refined = 10, 0, 0
    for prefix in range(1 << width):
        words = Recorded([0], rest=0)
        hits += below(Uniform(prefix, width, words), probability)
        refined += words.used
    assert hits == math.ceil(probability * (1 << width))  # continued with zeros
    assert refined <= 1


@pytest.mark.parametrize(
    "scale", [Fraction(1, 1000), Fraction(2, 3), Fraction(10, 3), Fraction(500)]
)
def test_floor_exponential_is_exact_over_all_words_of_a_reduced_width(scale: Fraction) -> None:
    """Each word leads to the floor of -scale log(u), computed independently."""
    width = 8
    for prefix in range(1 << width):
        for continuation in (0, 1, 12345678901234567890, WORD - 1):
            words = Recorded([continuation, WORD // 3], rest=WORD // 5)
            drawn = floor_exponential(Uniform(prefix, width, words), scale)
            digits = [continuation, WORD // 3] + [WORD // 5] * 4
            number = prefix
            for word in digits:
                number = number << 64 | word
            with mpmath.workprec(600):
                real = -mpmath.log(mpmath.ldexp(mpmath.mpf(number), -width - 64 * 6))
                expected = int(mpmath.floor(real * scale.numerator / scale.denominator))
            assert drawn == expected


def magnitude(sampler: str, scale: float | Fraction, raw: int, more: int) -> int:
    """High part drawn from one word whose digits continue with `more`, then with zeros."""
    if sampler == "single":
        return laplace_draw(Recorded([raw, more], rest=0), single_scale(scale))
    draws = laplace_draws(Recorded([raw, more], rest=0), scale_of(scale), 1)
    return int(draws.values[0])


def implied_tail(sampler: str, scale: float | Fraction, value: int) -> Fraction:
    """Probability of a magnitude of `value` or more that the thresholds imply, to 127 digits."""

    def reaches(raw: int, more: int) -> bool:
        return magnitude(sampler, scale, raw, more) >= value

    sure = count_true(lambda raw: reaches(raw, WORD - 1), 63)
    if sure == PREFIX:
        return Fraction(1)
    tie = count_true(lambda more: reaches(sure, more), 64)
    return Fraction(sure, PREFIX) + Fraction(tie, PREFIX * WORD)


@pytest.mark.parametrize("sampler", ["single", "vector"])
@pytest.mark.parametrize("scale", [0.125, 1.0, Fraction(10, 3)])
def test_the_thresholds_of_the_laplace_sampler_imply_its_law(
    sampler: str, scale: float | Fraction
) -> None:
    """Summed in rational arithmetic, words and ties give exp(-|x|/scale) (1-q)/(1+q)."""
    top = 6
    tails = [implied_tail(sampler, scale, value) for value in range(top + 2)]
    assert tails[0] == 1
    magnitudes = [tails[value] - tails[value + 1] for value in range(top + 1)]
    kept = 1 - magnitudes[0] / 2  # a negative zero is drawn again
    with mpmath.workdps(80):
        q = mpmath.exp(-1 / (mpmath.mpf(Fraction(scale).numerator) / Fraction(scale).denominator))
        for value, share in enumerate(magnitudes):
            implied = share / 2 / kept
            law = (1 - q) / (1 + q) * q**value
            error = mpmath.mpf(implied.numerator) / implied.denominator - law
            assert abs(error) < mpmath.mpf(2) ** -120


@pytest.mark.parametrize("scale", [0.125, 1.0, Fraction(10, 3), 4000.0])
def test_the_thresholds_of_the_one_sided_sampler_imply_its_law(scale: float | Fraction) -> None:
    """Words and ties give P(draw >= v) = exp(-v / scale) to 120 digits, whatever the first bit."""
    split = single_scale(scale)
    assert split.low_bits == 0

    def drawn(raw: int, more: int) -> int:
        found = exponential_draw(Recorded([raw, more], rest=0), split)
        assert found == exponential_draw(Recorded([raw | PREFIX, more], rest=0), split)
        return found

    for value in (1, 2, 5):
        sure = count_true(lambda raw, v=value: drawn(raw, WORD - 1) >= v, 63)
        tie = count_true(lambda more, v=value, s=sure: drawn(s, more) >= v, 64)
        implied = Fraction(sure, PREFIX) + Fraction(tie, PREFIX * WORD)
        with mpmath.workdps(80):
            law = mpmath.exp(-value / (mpmath.mpf(split.exact.numerator) / split.exact.denominator))
            error = mpmath.mpf(implied.numerator) / implied.denominator - law
            assert abs(error) < mpmath.mpf(2) ** -120


@pytest.mark.parametrize("high", [0, 3])
def test_low_digits_of_a_wide_scale_are_kept_with_their_weight(high: int) -> None:
    """Scale 2^40: low digits follow, kept if a uniform number is below exp(-x)."""
    split = single_scale(Fraction(2**40))
    raw = math.floor(math.exp(-(high + 0.5) / split.high) * PREFIX)
    for low in (0, 1 << 20, (1 << split.low_bits) - 1):
        kept = exponential_draw(Recorded([raw, low], rest=0), split)
        assert kept == (high << split.low_bits) + low
        refused = WORD - (1 << split.low_bits) + low  # all ones: above exp(-x) unless x is 0
        again = exponential_draw(Recorded([raw, refused, raw, 7], rest=0), split)
        assert again == (high << split.low_bits) + (low if low == 0 else 7)


def implied_acceptance(sigma: float, raw: int) -> Fraction:
    """Probability, to 117 digits, with which the Gaussian sampler keeps the proposal of a word."""

    def keeps(prefix: int, more: int) -> bool:
        words = Recorded([raw, prefix << 11, more], rest=0)
        return _propose_gaussian(words, single_scale(sigma)) is not None

    sure = count_true(lambda prefix: keeps(prefix, WORD - 1), 53)
    if sure == 1 << 53:
        return Fraction(1)
    tie = count_true(lambda more: keeps(sure, more), 64)
    return Fraction(sure, 1 << 53) + Fraction(tie, WORD << 53)


@pytest.mark.parametrize("sigma", [0.25, 1.0, 2.5])
def test_the_thresholds_of_the_gaussian_sampler_imply_its_law(sigma: float) -> None:
    """Proposal times acceptance, in rational arithmetic, is proportional to exp(-x^2/2s^2)."""
    tilt = single_scale(sigma).tilt
    shares = []
    for value in range(5):
        with mpmath.workdps(40):
            middle = mpmath.exp(-(value + 0.5) * tilt / sigma)
        raw = int(mpmath.ldexp(middle, 63))
        with mpmath.workdps(80):
            q = mpmath.exp(-mpmath.mpf(tilt) / sigma)
            accepted = implied_acceptance(sigma, raw)
            shares.append(q**value * mpmath.mpf(accepted.numerator) / accepted.denominator)
    with mpmath.workdps(80):
        for value, share in enumerate(shares):
            law = mpmath.exp(-(mpmath.mpf(value) ** 2) / (2 * mpmath.mpf(sigma) ** 2))
            # An acceptance known to 2**-117, divided by the share of zero.
            assert abs(share / shares[0] - law) < mpmath.mpf(2) ** -112


def reference(law: str, scale: Fraction, words: list[int]) -> int:
    """Draw by the documented algorithm in 1000-digit arithmetic, from endless digits."""
    low_bits = max(math.frexp(float(scale))[1] - 13, 0)
    high_scale = scale / (1 << low_bits)
    exponent = math.frexp(float(high_scale))[1]
    tilt = Fraction(2) ** min(exponent // 2, 0) if law == "gaussian" else Fraction(1)
    with mpmath.workdps(200):
        position = 0
        while True:
            raw = words[position]
            uniform = mpmath.mpf(2 * (raw % PREFIX) + 1) / WORD
            ratio = high_scale / tilt
            high = int(mpmath.floor(-mpmath.log(uniform) * ratio.numerator / ratio.denominator))
            second, low = words[position + 1], 0
            if law == "gaussian" or low_bits:
                low = second % (1 << low_bits)
            share = Fraction(low, 1 << low_bits)
            if law == "gaussian":
                size = (high + share) / high_scale
                x = size**2 / 2 - tilt * high / high_scale + tilt**2 / 2
            else:
                x = share / high_scale
            dropped = max(low_bits, 11)
            number = mpmath.mpf((second >> dropped) + 0.5) / (1 << (64 - dropped))
            used_second = law == "gaussian" or low_bits > 0
            accepted = number < mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator)
            position += 2 if used_second else 1
            size_int = (high << low_bits) + low
            if (accepted or not used_second) and (size_int or raw < PREFIX):
                return -size_int if raw >= PREFIX else size_int


ALL_SCALES = [1e-3, 0.3, 0.5, 1.0, Fraction(10, 3), 4097.5, 8192.0, 1e6 / 3, 1e12, 2.0**55]


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", ALL_SCALES)
def test_vectors_singles_and_high_precision_agree_word_by_word(
    law: str, scale: float | Fraction
) -> None:
    """From the same words, doubles with margins give what 200-digit arithmetic gives."""
    one, many = {
        "laplace": (laplace_draw, laplace_draws),
        "gaussian": (gaussian_draw, gaussian_draws),
    }[law]
    rng = np.random.default_rng(20240)
    for _ in range(60):
        words = [int(word) for word in rng.integers(0, WORD, size=80, dtype=np.uint64)]
        single = one(Recorded(words), single_scale(scale))
        vector = many(Recorded(words), scale_of(scale), 1)
        assert single == int(vector.values[0])
        assert single == reference(law, Fraction(scale), words)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 5000.0, 1e12])
def test_words_next_to_a_threshold_are_settled_exactly(scale: float) -> None:
    """Within one unit of a threshold, vectors and singles both side with exact arithmetic."""
    high_scale = single_scale(scale).exact
    low_bits = single_scale(scale).low_bits
    for value in (1, 2, 3, 1000):
        threshold = floor_exp(value / high_scale, 63)
        for raw in range(max(threshold - 2, 0), threshold + 3):
            for more in (1,) if low_bits else (1, WORD - 1):
                # A second word of 1 has low digits 0...01 and is accepted.
                single = laplace_draw(Recorded([raw, more], rest=1), single_scale(scale))
                vector = laplace_draws(Recorded([raw, more], rest=1), scale_of(scale), 1)
                assert single == (vector.wide[0] if vector.wide else int(vector.values[0]))
                if raw < threshold:
                    assert single >> low_bits >= value
                if raw > threshold:
                    assert single >> low_bits < value


def test_a_draw_beyond_64_bits_is_kept_whole() -> None:
    """A run of zero words makes a magnitude of 2**62 or more; vectors report it apart."""
    zeros, scale = [0] * 8, 2.0**55
    single = laplace_draw(Recorded(zeros, rest=1), single_scale(scale))
    vector = laplace_draws(Recorded(zeros, rest=1), scale_of(scale), 1)
    negative = laplace_draws(Recorded([PREFIX, *zeros[1:]], rest=1), scale_of(scale), 1)
    assert single > 2**62
    assert vector.wide == {0: single}
    assert negative.wide == {0: -single}
    assert vector.values[0] == negative.values[0] == 0


@pytest.mark.slow
def test_doubles_keep_within_the_margins_of_the_proof() -> None:
    """Log and exp of numpy and math are log and exp thirty times better than the proofs assume."""
    rng = np.random.default_rng(7)
    real = rng.random(3000) ** rng.integers(1, 20, size=3000)
    real = real[real > 2.0**-21]
    exponent = rng.random(3000) * rng.choice([1e-9, 1e-3, 1, 30, 90], size=3000)
    logs, exps = np.log(real), np.exp(-exponent)
    with mpmath.workdps(40):
        for u, found in zip(real, logs, strict=True):
            true = mpmath.log(mpmath.mpf(float(u)))
            assert abs(float(found) - true) <= abs(true) * mpmath.mpf(2) ** -50
            assert abs(math.log(u) - true) <= abs(true) * mpmath.mpf(2) ** -50
        for x, found in zip(exponent, exps, strict=True):
            true = mpmath.exp(-mpmath.mpf(float(x)))
            assert abs(float(found) - true) <= true * mpmath.mpf(2) ** -50
            assert abs(math.exp(-x) - true) <= true * mpmath.mpf(2) ** -50
