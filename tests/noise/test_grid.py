"""Real-valued release: the grid, its guarantee in rational arithmetic, and attacks on low bits."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushed.errors import ParameterError
from hushed.noise import (
    GRID_BITS,
    add_gaussian,
    add_laplace,
    gaussian_grid,
    laplace_grid,
)
from hushed.noise._entropy import operating_system_words
from hushed.noise._grid import Grid, _release_few, _release_many, _steps
from hushed.noise._scales import single_scale
from hushed.noise._singles import laplace_draw
from hushed.noise._vectors import Draws, laplace_draws

positive = st.floats(1e-290, 1e290)
value = st.floats(-1e300, 1e300)


def no_draws(words: object, scale: object, count: int) -> Draws:
    """Draws that are all zero."""
    return Draws(values=np.zeros(count, dtype=np.int64), wide={})


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    left=st.lists(value, min_size=1, max_size=6),
    moves=st.lists(st.floats(-1, 1), min_size=6, max_size=6),
    sensitivity=positive,
    epsilon=st.floats(1e-3, 1e3),
)
def test_epsilon_holds_exactly_on_the_grid(
    left: list[float], moves: list[float], sensitivity: float, epsilon: float
) -> None:
    """Integer L1 distance over integer scale is at most epsilon, in rational arithmetic."""
    dims = len(left)
    right = [a + move * sensitivity / dims for a, move in zip(left, moves, strict=False)]
    true = sum(abs(Fraction(a) - Fraction(b)) for a, b in zip(left, right, strict=True))
    try:
        grid = laplace_grid(sensitivity=sensitivity, epsilon=epsilon, dims=dims)
    except ParameterError:
        return  # the noise would not fit into doubles
    if true > Fraction(sensitivity) * (1 + Fraction(dims + 4, 1 << 52)):
        return  # rounding of the sum made this no pair of neighbours
    distance = sum(
        abs(_steps(a, grid.exponent) - _steps(b, grid.exponent))
        for a, b in zip(left, right, strict=True)
    )
    assert distance <= Fraction(epsilon) * Fraction(grid.scale)


def test_epsilon_would_break_without_the_enlargement() -> None:
    """Two values half a step beyond the sensitivity are a whole step apart on the grid."""
    grid = laplace_grid(sensitivity=1.0, epsilon=1.0, dims=1)
    step = 2.0**grid.exponent
    left, right = 0.5 * step + step, 1 + 1.5 * step
    moved = _steps(right + step / 4, grid.exponent) - _steps(left - step / 4, grid.exponent)
    nominal = Fraction(1) / Fraction(2) ** grid.exponent
    assert moved > nominal
    assert moved <= Fraction(grid.scale)


@pytest.mark.parametrize("dims", [1, 2, 7, 1000])
@pytest.mark.parametrize(("sensitivity", "sigma"), [(1.0, 1.0), (1e-3, 20.0), (7.5, 1e-4)])
def test_the_gaussian_grid_keeps_the_ratio(dims: int, sensitivity: float, sigma: float) -> None:
    """The largest L2 distance after rounding, over integer sigma, is at most sensitivity/sigma."""
    grid = gaussian_grid(sensitivity=sensitivity, sigma=sigma, dims=dims)
    with mpmath.workdps(60):
        step = mpmath.mpf(2) ** grid.exponent
        widened = mpmath.mpf(sensitivity) * (1 + mpmath.mpf(dims + 4) / 2**52)
        distance = widened / step + mpmath.sqrt(dims)
        ratio = distance / mpmath.mpf(grid.scale)
        nominal = mpmath.mpf(sensitivity) / mpmath.mpf(sigma)
        assert ratio <= nominal
        assert ratio >= nominal * (1 - mpmath.mpf(2) ** -38)  # and no more noise than needed
        assert (
            mpmath.mpf(grid.enlargement)
            >= widened / sensitivity + mpmath.sqrt(dims) * step / sensitivity
        )


def test_the_grid_has_the_stated_size() -> None:
    """The grid step is the power of two 45 places below the nominal scale; enlargement is small."""
    grid = laplace_grid(sensitivity=3.0, epsilon=0.5, dims=2)
    assert grid.exponent == 2 - GRID_BITS
    assert 6 * 2.0**43 < grid.scale < 6 * 2.0**43 * (1 + 1e-12)
    assert 1 < grid.enlargement < 1 + 1e-12


@pytest.mark.parametrize("s", [1.0, 1.5, 2.0, 4.0, 8.0])
def test_the_discrete_gaussian_is_as_near_to_the_continuous_one_as_stated(s: float) -> None:
    """Total variation to the rounded continuous law is at most 1/(16 s^2), and not much less."""
    with mpmath.workdps(40):
        sigma = mpmath.mpf(s)
        reach = int(14 * s) + 2
        weights = [mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * sigma**2)) for k in range(reach)]
        whole = 2 * mpmath.fsum(weights) - 1
        half = mpmath.mpf(1) / 2
        variation = mpmath.mpf(0)
        for k, weight in enumerate(weights):
            rounded = mpmath.ncdf((k + half) / sigma) - mpmath.ncdf((k - half) / sigma)
            variation += abs(weight / whole - rounded) * (half if k == 0 else 1)
        assert variation <= 1 / (16 * sigma**2)
        assert variation >= 1 / (64 * sigma**2)


# Attacks -------------------------------------------------------------------------------------


def textbook(values: np.ndarray) -> np.ndarray:
    """Add Laplace noise by inversion in doubles: the sampler that Mironov broke."""
    rng = np.random.default_rng(11)
    u = rng.random(values.size) - 0.5
    return values - np.sign(u) * np.log1p(-2 * np.abs(u))


def ours_laplace(values: np.ndarray) -> np.ndarray:
    return add_laplace(values, sensitivity=1.0, epsilon=1.0)


def ours_gaussian(values: np.ndarray) -> np.ndarray:
    return add_gaussian(values, sensitivity=1.0, sigma=1.0)


def off_grid(outputs: np.ndarray, exponent: int) -> float:
    """Share of outputs that are no multiple of 2**exponent."""
    return float(np.mean(np.ldexp(outputs, -exponent) % 1 != 0))


PAIRS = [
    (0.0, 1.0),
    (1 / 3, 1 / 3 + 1),
    (2.0**30, 2.0**30 + 1),
    (1.0, np.nextafter(1.0, 2.0)),
    (0.1, np.nextafter(0.1, 0.0)),
    (5e-324, 1 - 2.0**-53),
]


@pytest.mark.parametrize("mechanism", [ours_laplace, ours_gaussian])
@pytest.mark.parametrize("pair", PAIRS)
def test_the_output_is_a_grid_point_whatever_the_input(mechanism, pair) -> None:
    """No output of either neighbour is off the public grid, so membership tells nothing."""
    for point in pair:
        assert off_grid(mechanism(np.full(4000, point)), -GRID_BITS) == 0


def test_textbook_noise_fails_the_grid_test() -> None:
    """The same test finds most outputs of a double-precision Laplace off the grid."""
    assert off_grid(textbook(np.full(4000, 0.0)), -GRID_BITS) > 0.9


def leak(mechanism, left: float, right: float) -> float:
    """Tell neighbours apart by the divisibility of outputs near zero by 2**-53."""
    shares = []
    for point in (left, right):
        outputs = mechanism(np.full(40000, point))
        near = outputs[np.abs(outputs) < 0.25]
        shares.append(off_grid(near, -53))
    return abs(shares[0] - shares[1])


def test_low_order_bits_tell_neighbours_apart_in_textbook_noise_only() -> None:
    """Outputs of 0 and 1 near zero differ in their low bits for textbook noise, not for ours."""
    assert leak(textbook, 0.0, 1.0) > 0.2
    assert leak(ours_laplace, 0.0, 1.0) == 0
    assert leak(ours_gaussian, 0.0, 1.0) == 0


# Ends of the range ---------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5),
    exponent=st.integers(-1074, 970),
)
def test_one_by_one_and_in_vectors_values_reach_the_same_grid_point(
    values: list[float], exponent: int
) -> None:
    """Without noise, both releases give the nearest grid point, by rational arithmetic."""
    grid = Grid(exponent=exponent, scale=1.0, enlargement=1.0)
    flat = np.array(values)
    many = _release_many(operating_system_words(), flat, grid, no_draws)
    few = _release_few(operating_system_words(), flat, grid, lambda words, scale: 0)
    step = Fraction(2) ** exponent
    for point, a, b in zip(values, many.tolist(), few.tolist(), strict=True):
        nearest = round(Fraction(point) / step) * step
        assert a == b
        assert Fraction(a) == nearest or nearest > Fraction(np.finfo(float).max)
        assert math.copysign(1, a) == 1 or a != 0


def test_results_beyond_the_doubles_become_the_largest_grid_point() -> None:
    """Overflow saturates: always finite, always on the grid."""
    for size in (3, 300):
        for sensitivity in (1e308, 1e304):
            values = np.full(size, np.finfo(float).max)
            released = add_laplace(values, sensitivity=sensitivity, epsilon=1.0)
            grid = laplace_grid(sensitivity=sensitivity, epsilon=1.0, dims=size)
            assert np.isfinite(released).all()
            assert all(Fraction(x) % Fraction(2) ** grid.exponent == 0 for x in released.tolist())


def test_huge_values_and_tiny_noise_are_added_exactly() -> None:
    """A value beyond 2**62 steps is a grid point already and comes back near itself."""
    for size in (2, 40):
        released = add_laplace(np.full(size, -1e300), sensitivity=1e-200, epsilon=1.0)
        assert (released == -1e300).all()


def test_subnormal_noise_lives_on_the_finest_grid() -> None:
    """Below the smallest grid of doubles the step is 2**-1074 and the enlargement is honest."""
    grid = laplace_grid(sensitivity=5e-324, epsilon=1.0, dims=2)
    assert grid.exponent == -1074
    assert grid.scale >= 3
    assert grid.enlargement >= 3
    released = add_laplace(np.zeros(50), sensitivity=5e-324, epsilon=1.0)
    assert (np.abs(released) < 1e-320).all()
    with pytest.raises(ParameterError, match="2\\*\\*-1029"):
        gaussian_grid(sensitivity=5e-324, sigma=5e-324, dims=1)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (5, 1, 7), (2, 0, 3)])
def test_shapes_are_kept_and_zero_is_positive(shape: tuple[int, ...]) -> None:
    """Any shape comes back; no output is a negative zero."""
    for release in (ours_laplace, ours_gaussian):
        released = release(np.full(shape, -0.0))
        assert released.shape == shape
        assert released.dtype == np.float64
        assert not np.signbit(released[released == 0]).any()


def test_blocks_are_joined_seamlessly() -> None:
    """A vector of several blocks is noised everywhere around its own values."""
    values = np.repeat([0.0, 1e6], 50_000)
    released = add_laplace(values, sensitivity=1.0, epsilon=1.0)
    assert np.abs(released - values).max() < 100  # a chance excess: 1e5 exp(-100)
    assert len(np.unique(released)) > 99_900


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused_unseen(bad: float) -> None:
    """The message names no value."""
    with pytest.raises(ParameterError, match="finite") as caught:
        add_laplace(np.array([12345.678, bad]), sensitivity=1.0, epsilon=1.0)
    assert "12345" not in str(caught.value)


@pytest.mark.parametrize("values", [np.array(["31337"]), np.array([1j]), np.array([2**53 + 1])])
def test_values_that_doubles_cannot_hold_are_refused_unseen(values: np.ndarray) -> None:
    """Text, complex numbers and huge integers are refused without being shown."""
    with pytest.raises(ParameterError) as caught:
        add_gaussian(values, sensitivity=1.0, sigma=1.0)
    assert "31337" not in str(caught.value)
    assert "9007199254740993" not in str(caught.value)


@pytest.mark.parametrize("sign", [1, -1])
def test_integers_are_released_up_to_the_last_that_doubles_hold(sign: int) -> None:
    """2**53 itself is released, on either side of zero; the next integer is refused."""
    last = np.array([sign * 2**53])
    released = add_laplace(last, sensitivity=1.0, epsilon=1.0)
    assert abs(released[0] - last[0]) < 1000  # a chance excess: exp(-1000)
    with pytest.raises(ParameterError, match=r"within 2\*\*53"):
        add_laplace(last + sign, sensitivity=1.0, epsilon=1.0)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_parameters_out_of_range_are_refused(bad: float) -> None:
    """sensitivity, epsilon and sigma must be positive and finite; dims 1 or more."""
    with pytest.raises(ParameterError, match="sensitivity"):
        laplace_grid(sensitivity=bad, epsilon=1.0, dims=1)
    with pytest.raises(ParameterError, match="epsilon"):
        laplace_grid(sensitivity=1.0, epsilon=bad, dims=1)
    with pytest.raises(ParameterError, match="sigma"):
        gaussian_grid(sensitivity=1.0, sigma=bad, dims=1)
    with pytest.raises(ParameterError, match="dims"):
        laplace_grid(sensitivity=1.0, epsilon=1.0, dims=0)


def test_grids_that_would_drown_the_answer_are_refused() -> None:
    """When rounding would multiply the noise beyond 2**55 steps, or leave the doubles."""
    with pytest.raises(ParameterError, match="multiply the noise"):
        laplace_grid(sensitivity=1.0, epsilon=1e-15, dims=10**6)
    with pytest.raises(ParameterError, match="exceed every double"):
        laplace_grid(sensitivity=1e300, epsilon=1e-100, dims=1)


def test_a_wide_draw_is_added_in_integer_arithmetic() -> None:
    """A draw of 2**62 steps or more reaches the output exactly, in vectors too."""
    grid = Grid(exponent=-40, scale=2.0**55, enlargement=1.0)

    class Zeros:
        """Eight words of zeros, then ones."""

        left = 8

        def word(self) -> int:
            self.left -= 1
            return int(self.left < 0)

        def take(self, count: int) -> np.ndarray:
            return np.array([self.word() for _ in range(count)], dtype=np.uint64)

    draw = laplace_draw(Zeros(), single_scale(2.0**55))
    assert draw > 2**62
    for released in (
        _release_many(Zeros(), np.array([0.5]), grid, laplace_draws),
        _release_few(Zeros(), np.array([0.5]), grid, laplace_draw),
    ):
        assert released[0] == (draw + 2**39) / 2**40
