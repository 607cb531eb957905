"""Divergences and curves where doubles run out of digits or of range, against exact arithmetic."""

from __future__ import annotations

import itertools
import math
import random
import warnings
from fractions import Fraction

import mpmath
import pytest

from hushed import privacy_loss
from hushed.errors import ParameterError
from hushed.privacy_loss._discrete import DiscretePLD

NEAR_ONE = (1 + 2.0**-52, 1 + 1e-12, 1 + 1e-8, 1.0001, 1.01, 1.9)
FAR = (2.0, 30.0, 1e4, 1e9, 2.0**60, 1e200, 1.7e308)


def _laplace(bound: float, order: float) -> mpmath.mpf:
    """Mironov, CSF 2017, Proposition 6, in many digits."""
    b, a = mpmath.mpf(bound), mpmath.mpf(order)
    up = a / (2 * a - 1) * mpmath.exp((a - 1) * b)
    return mpmath.log(up + (a - 1) / (2 * a - 1) * mpmath.exp(-a * b)) / (a - 1)


def _bounded_range(bound: float, order: float) -> mpmath.mpf:
    """Integral of ``exp(t x)`` under the density ``exp(x/2) / (4 sinh(b/2))`` on ``[-b, b]``."""
    b, t = mpmath.mpf(bound), mpmath.mpf(order) - 1
    s = t + mpmath.mpf(1) / 2
    whole = (mpmath.exp(s * b) - mpmath.exp(-s * b)) / s / (4 * mpmath.sinh(b / 2))
    return mpmath.log(whole) / t


def _finite(p: list[Fraction], q: list[Fraction], order: float) -> mpmath.mpf:
    """Renyi divergence from its definition."""
    pairs = [(_big(a), _big(b)) for a, b in zip(p, q, strict=True) if a]
    if order == 1:
        return sum(a * mpmath.log(a / b) for a, b in pairs)
    alpha = mpmath.mpf(order)
    return mpmath.log(sum(a**alpha * b ** (1 - alpha) for a, b in pairs)) / (alpha - 1)


def _big(number: Fraction) -> mpmath.mpf:
    return mpmath.mpf(number.numerator) / number.denominator


def _distribution(weights: list[float]) -> list[Fraction]:
    """Multiples of ``2**-45`` that sum to exactly 1."""
    total = math.fsum(weights)
    parts = [Fraction(round(w / total * 2**45), 2**45) for w in weights]
    return [1 - sum(parts[1:], Fraction(0)), *parts[1:]]


class TestNearOneAndFar:
    """Renyi divergences of laws with a density."""

    @pytest.mark.parametrize("bound", [1e-20, 1e-4, 0.3, 0.9999, 1.0, 3.0, 100.0, 800.0, 1e6])
    @pytest.mark.parametrize("law", ["laplace", "bounded_range"])
    def test_never_below(self, law: str, bound: float) -> None:
        """No order, however close to 1 or large, gives less than the truth, or 3e-13 more."""
        exact = {"laplace": _laplace, "bounded_range": _bounded_range}[law]
        curve = getattr(privacy_loss, law)(bound)
        with mpmath.workdps(120), warnings.catch_warnings():
            warnings.simplefilter("error")
            for order in (*NEAR_ONE, *FAR, 1e4 * (1 + 1 / bound)):
                truth, found = exact(bound, order), mpmath.mpf(curve.renyi(order))
                assert truth <= found <= truth * (1 + mpmath.mpf("3e-13")), order

    @pytest.mark.parametrize("law", ["laplace", "bounded_range", "randomised_response"])
    @pytest.mark.parametrize("bound", [1e300, 1.7e308])
    def test_near_the_largest_double(self, law: str, bound: float) -> None:
        """The divergence of a huge loss is huge, never 0 and never NaN."""
        curve = getattr(privacy_loss, law)(bound)
        for order in (1.5, 10.0, 1e10, 1e300):
            assert bound / 3 <= curve.renyi(order) <= bound * (1 + 1e-13)
        assert bound / 3 <= curve.zcdp() <= bound * (1 + 1e-3)

    def test_smallest(self) -> None:
        """A divergence below all doubles counts as the smallest one, not as nothing."""
        assert privacy_loss.bounded_range(1e-300).renyi(2) > 0
        assert privacy_loss.compose([]).renyi(2) == 0


class TestPairs:
    """Finite pairs, against exact rational arithmetic."""

    def test_both_ways(self) -> None:
        """The envelope of both orders is above each, and its masses are those of a law."""
        draw = random.Random(5)
        for _ in range(60):
            size, spread = draw.choice([2, 3, 5]), 10 ** draw.uniform(-13, -0.1)
            weights = [0.01 + draw.random() for _ in range(size)]
            p = _distribution(weights)
            q = _distribution([w * (1 + spread * draw.uniform(-1, 1)) for w in weights])
            curve = privacy_loss.pair([float(x) for x in p], [float(x) for x in q])
            law = curve.family
            assert isinstance(law, DiscretePLD)
            assert math.fsum(law.masses) == pytest.approx(1, abs=1e-15)
            with mpmath.workdps(60):
                for order in (1.0, 1 + 2.0**-40, 2.0, 1e6):
                    truth = max(_finite(p, q, order), _finite(q, p, order))
                    assert mpmath.mpf(curve.renyi(order)) >= truth
                for level in (0.0, curve.supremum * 0.9, curve.supremum * (1 - 1e-12)):
                    factor = mpmath.exp(level)
                    pairs = [(_big(a), _big(b)) for a, b in zip(p, q, strict=True)]
                    there = sum(max(0, a - factor * b) for a, b in pairs)
                    back = sum(max(0, b - factor * a) for a, b in pairs)
                    assert mpmath.mpf(curve.delta(level)) >= max(there, back)

    def test_one_order(self) -> None:
        """Losses of nearly equal chances keep their digits."""
        p, q = [0.5 + 2.0**-40, 0.5 - 2.0**-40], [0.5, 0.5]
        exact = [[Fraction(x) for x in each] for each in (p, q)]
        with mpmath.workdps(60):
            for order in (1.0, 2.0, 1e15):
                truth = _finite(*exact, order)
                found = mpmath.mpf(privacy_loss.one_sided(p, q).renyi(order))
                assert truth <= found <= truth * (1 + mpmath.mpf("1e-2"))

    def test_ordinary_pair(self) -> None:
        """Two coins of 57.5 and 50 percent: no divergence is made up or lost."""
        curve = privacy_loss.pair([0.575, 0.425], [0.5, 0.5])
        there = 0.575 * math.log(1.15) + 0.425 * math.log(0.85)
        back = -0.5 * math.log(1.15) - 0.5 * math.log(0.85)
        assert max(there, back) <= curve.renyi(1) <= 1.1 * max(there, back)


class TestVeryDifferentLaws:
    """Laws of very different sizes in one composition."""

    @pytest.mark.parametrize("ratio", [1e-6, 1e-10, 1e-14, 1e-20, 1e-60])
    def test_a_narrow_gaussian_beside_a_wide_law(self, ratio: float) -> None:
        """It adds less than its own delta, and all of its mass is there on the grid."""
        wide = privacy_loss.laplace(1.0)
        both = privacy_loss.compose([wide, privacy_loss.gaussian(ratio), wide])
        alone = wide.compose(2)
        for level in (0.0, 0.7, 1.9):
            low, high = alone.delta_bracket(level).low, alone.delta_bracket(level).high
            found = both.delta_bracket(level)
            assert found.high >= low
            assert found.low <= high + ratio

    @pytest.mark.parametrize("ratio", [1e-3, 1e-8, 1e-13, 1e-40])
    @pytest.mark.parametrize("step", [1e-4, 0.3])
    def test_masses_of_a_narrow_gaussian(self, ratio: float, step: float) -> None:
        """The bins on both sides of 0 hold what the normal distribution says, to 1e-13."""
        mass, _ = privacy_loss.gaussian(ratio).family.bins(-40, 80, step)  # type: ignore[union-attr]
        with mpmath.workdps(40):
            r = mpmath.mpf(ratio)
            below = mpmath.ncdf((0 - r * r / 2) / r) - mpmath.ncdf((-40 * step - r * r / 2) / r)
            above = mpmath.ncdf((40 * step - r * r / 2) / r) - mpmath.ncdf((0 - r * r / 2) / r)
        assert math.fsum(mass[:40]) == pytest.approx(float(below), rel=1e-13)
        assert math.fsum(mass[40:]) == pytest.approx(float(above), rel=1e-13)

    @pytest.mark.parametrize("level", [-3.0, -0.1, 0.0, 0.5])
    def test_nothing_or_everything(self, level: float) -> None:
        """Outcomes that tell nothing, or all, compose at levels below 0, too."""
        told = 1 - 0.75**3
        found = privacy_loss.pair([0.75, 0.25], [1.0, 0.0]).compose(3).delta(level)
        truth = told + (1 - told) * max(0.0, 1 - math.exp(level))
        assert found == pytest.approx(truth, rel=1e-12)
        assert found >= truth * (1 - 1e-15)
        assert privacy_loss.pair([0.75, 0.25], [1.0, 0.0]).compose(3).epsilon(0.9) == 0.0


def test_laws_too_different_to_compose_are_refused_in_words():
    """One loss of 1e69 nats beside tiny ones: asked for a level or a delta, it says why not."""
    laws = [privacy_loss.gaussian(1e-99), privacy_loss.laplace(1e69), privacy_loss.laplace(1e-173)]
    joint = privacy_loss.compose(laws)
    for ask in (lambda: joint.epsilon(1e-6), lambda: joint.delta(1.0)):
        with pytest.raises(ParameterError, match=r"1e\+69 nats cannot be composed in doubles"):
            ask()


def _gaussian_delta(ratio: Fraction, epsilon: Fraction) -> mpmath.mpf:
    """Balle and Wang, ICML 2018, Theorem 8, in many digits."""
    r, e = _big(ratio), _big(epsilon)
    return mpmath.ncdf(r / 2 - e / r) - mpmath.exp(e) * mpmath.ncdf(-r / 2 - e / r)


@pytest.mark.parametrize("given", ["ratio", "sigma"])
def test_no_gaussian_curve_lies_below_that_of_its_parameters(given):
    """As decimals or as doubles: the quotient of two was rounded to the nearest double."""
    rng = random.Random(5)
    for _ in range(300):
        moved, spread, level = (round(rng.uniform(0.1, 5), 2) for _ in range(3))
        if given == "ratio":
            curve = privacy_loss.gaussian(moved)
            ratios = [Fraction(repr(moved)), Fraction(moved)]
        else:
            curve = privacy_loss.gaussian(sigma=spread, sensitivity=moved)
            ratios = [f(moved) / f(spread) for f in (Fraction, lambda x: Fraction(repr(x)))]
        with mpmath.workdps(80):
            exact = [_gaussian_delta(each, Fraction(repr(level))) for each in ratios]
            assert curve.delta(level) >= max(exact)


def test_no_movement_is_too_small_to_be_one():
    """A quotient below all doubles was 0, and its curve that of no movement at all."""
    curve = privacy_loss.gaussian(sigma=1e300, sensitivity=5e-324)
    assert curve.supremum == math.inf


ONE_SIDED = [  # the second one's losses reach from -17.3 to 1.4
    (
        [0.27631222976684755, 0.24344252336893818, 0.48024524686421427],
        [5.937090110153884e-09, 2.8234502114929187e-12, 0.9999999940600864],
    ),
    (
        [1.4938025924849738e-08, 1.6120958318939284e-05, 0.9999838641036551],
        [0.4717974660409653, 0.2916208660986826, 0.23658166786035206],
    ),
    (
        [4.6750368775666374e-05, 3.07006622721913e-07, 0.9999529426246015],
        [1.5328771617816765e-22, 0.3056198304884176, 0.6943801695115823],
    ),
]


@pytest.mark.parametrize("level", [0.0, 5.0, 20.0, 30.0, 40.0, 45.0, 50.0, 60.0])
def test_a_sum_of_one_sided_losses_keeps_those_far_below_zero(level):
    """Losses that reach farther below 0 than above it are added up as well."""
    together = privacy_loss.compose([privacy_loss.one_sided(p, q) for p, q in ONE_SIDED])
    found = together.delta_bracket(level)
    with mpmath.workdps(50):
        exact = mpmath.mpf(0)
        for outcome in itertools.product(*(zip(p, q, strict=True) for p, q in ONE_SIDED)):
            here, there = (
                mpmath.fprod(map(mpmath.mpf, side)) for side in zip(*outcome, strict=True)
            )
            exact += max(here - mpmath.exp(level) * there, 0)
    assert found.low * (1 - 1e-12) <= exact <= found.high * (1 + 1e-12)


def test_both_ends_hold_below_all_finite_losses_beside_infinite_ones():
    """Their masses sum to less than 1 then; the ends were taken as if they summed to 1."""
    far, lost = 2.0**-18, 2.0**-9
    composed = privacy_loss.compose(
        [
            privacy_loss.one_sided([1.0, 0.0], [far, 1 - far]),
            privacy_loss.one_sided([lost, lost, 1 - 2 * lost], [0.5, 0.0, 0.5]),
        ]
    )
    scale = math.exp(1.0) * far
    exact = 1 - min(lost, scale / 2) - min(1 - 2 * lost, scale / 2)
    found = composed.delta_bracket(1.0)
    assert found.low <= exact <= found.high
