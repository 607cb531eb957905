"""The Gaussian mechanism: (epsilon, delta) by numerical integration, minimality, accuracy, law."""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

import hushed as hs
from hushed import noise
from hushed.errors import ParameterError, WrongNorm, ZeroSensitivity

FALSE_ALARM = 1e-6
ONE = hs.proven_sensitivity(0.7, "l2", argument="by assumption")
TARGETS = [(e, d) for e in (0.01, 0.5, 1.0, 4.0, 20.0) for d in (0.1, 1e-5, 1e-10)]


def hockey_stick(sensitivity, sigma, epsilon):
    """Integral of [p - e^eps q]+ for two normal densities a sensitivity apart."""
    with mpmath.workdps(30):
        s, mu, e = mpmath.mpf(sigma), mpmath.mpf(sensitivity), mpmath.mpf(epsilon)
        start = e * s**2 / mu + mu / 2  # there the two densities are equal
        gap = lambda x: mpmath.npdf(x, mu, s) - mpmath.exp(e) * mpmath.npdf(x, 0, s)  # noqa: E731
        return mpmath.quad(gap, [start + s * t for t in (0, 0.5, 1, 2, 4, 8, 16, 40)])


@pytest.mark.slow_cases(*(f"{e}-{d}" for e, d in TARGETS if e in (0.5, 4.0) or d == 1e-5))
@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_analytic_keeps_its_promise_and_is_smallest(epsilon, delta):
    """The integral stays within delta, and with 0.1 % less noise it does not."""
    m = hs.Gaussian(ONE, epsilon=epsilon, delta=delta)
    assert hockey_stick(0.7, m.scale, epsilon) <= delta
    assert hockey_stick(0.7, m.scale * 0.999, epsilon) > delta


@pytest.mark.parametrize("variant", ["analytic", "classic"])
def test_no_delta_is_too_small_for_the_grid(variant):
    """What discrete noise may cost is a share of delta, so a tiny delta is kept, too."""
    m = hs.Gaussian(ONE, epsilon=1.0, delta=1e-40, variant=variant)
    assert hockey_stick(0.7, m.scale, 1.0) <= 1e-40


def test_classic_is_the_textbook_constant():
    """Sigma = Delta sqrt(2 log(1.25/delta)) / epsilon, and it holds by integration."""
    m = hs.Gaussian(ONE, epsilon=0.8, delta=1e-6, variant="classic")
    assert m.scale == pytest.approx(0.7 * math.sqrt(2 * math.log(1.25e6)) / 0.8, rel=1e-12)
    assert hockey_stick(0.7, m.scale, 0.8) < 1e-6
    assert m.scale > hs.Gaussian(ONE, epsilon=0.8, delta=1e-6).scale


@pytest.mark.parametrize("delta", [0.9, 0.5, 0.1, 1e-12])
@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 1.0])
def test_classic_holds_wherever_it_is_allowed(epsilon, delta):
    """The textbook constant keeps (epsilon, delta) up to epsilon = 1, by integration."""
    m = hs.Gaussian(ONE, epsilon=epsilon, delta=delta, variant="classic")
    assert hockey_stick(0.7, m.scale, epsilon) <= delta


def test_classic_refuses_large_epsilon():
    """Above 1 the textbook constant is not proved."""
    assert hs.Gaussian(ONE, epsilon=1.0, delta=1e-5, variant="classic").epsilon == 1
    with pytest.raises(ParameterError, match="analytic"):
        hs.Gaussian(ONE, epsilon=1.0000001, delta=1e-5, variant="classic")
    with pytest.raises(ParameterError, match="variant"):
        hs.Gaussian(ONE, epsilon=1.0, delta=1e-5, variant="exact")


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, float("nan"), None, "0.1", True])
def test_delta_out_of_range(delta):
    """Delta 0 and 1, NaN and what is not a number are refused."""
    with pytest.raises(ParameterError, match="delta"):
        hs.Gaussian(ONE, epsilon=1, delta=delta)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "1", None])
def test_epsilon_out_of_range(epsilon):
    """Epsilon 0, NaN and infinity are refused."""
    with pytest.raises(ParameterError, match="epsilon"):
        hs.Gaussian(ONE, epsilon=epsilon, delta=0.1)


@pytest.mark.parametrize(
    ("norm", "right"), [("l1", "Laplace"), ("sup", "Exponential"), ("range", "Exponential")]
)
def test_wrong_norm_and_zero(norm, right):
    """The right norm is named, and a zero sensitivity refused."""
    with pytest.raises(WrongNorm, match=f"'l2'.*{right}"):
        hs.Gaussian(hs.proven_sensitivity(1.0, norm, argument="x"), epsilon=1, delta=0.1)
    with pytest.raises(ZeroSensitivity):
        hs.Gaussian(hs.proven_sensitivity(0, "l2", argument="x"), epsilon=1, delta=0.1)


def test_guarantee():
    """The promise is the (epsilon, delta) asked for."""
    assert hs.Gaussian(ONE, epsilon=2, delta=1e-5).guarantee == hs.Guarantee(epsilon=2, delta=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "beta", "dims"),
    [
        (1.0, 0.3, 1),
        (30.0, 0.3, 5),
        (30.0, 0.05, 1),
        (1.0, 0.05, 5),
        (1.0, 1e-8, 1),
        (30.0, 1e-8, 5),
    ],
)
def test_accuracy_inverts(error, beta, dims):
    """for_accuracy reaches the error, and a slightly smaller epsilon does not."""
    m = hs.Gaussian.for_accuracy(ONE, error=error, delta=1e-6, beta=beta, dims=dims)
    assert m.accuracy(beta, dims) <= error
    less = hs.Gaussian(ONE, epsilon=m.epsilon * (1 - 1e-9), delta=1e-6)
    assert less.accuracy(beta, dims) > error


@pytest.mark.parametrize("dims", [1, 2, 50])
def test_accuracy_against_the_exact_tail(dims):
    """The stated error has tail beta by SciPy's normal law, and is below the union bound."""
    m = hs.Gaussian(ONE, epsilon=0.3, delta=1e-6)
    for beta in (0.3, 0.05, 1e-6):
        single = 2 * stats.norm.sf(m.accuracy(beta, dims), scale=m.scale)
        assert -np.expm1(dims * np.log1p(-single)) == pytest.approx(beta, rel=1e-8)
        assert m.accuracy(beta, dims) <= m.scale * math.sqrt(2 * math.log(2 * dims / beta))


def test_too_many_numbers_are_refused_before_they_are_drawn():
    """The reserve is made for 2^20 numbers; accuracy and draw refuse more."""
    m = hs.Gaussian(ONE, epsilon=1, delta=1e-6)
    with pytest.raises(ParameterError, match="1048576"):
        m.accuracy(0.05, 2**20 + 1)
    with pytest.raises(ParameterError, match="1048576"):
        m.draw(np.zeros(2**20 + 1))


@pytest.mark.parametrize("value", [0.0, 1.0, -1e5])
def test_noise_has_the_stated_law(value):
    """30,000 draws pass Kolmogorov-Smirnov at a false-alarm rate of 1e-6."""
    m = hs.Gaussian(ONE, epsilon=0.5, delta=1e-6)
    noisy = m.draw(np.full(30_000, value))
    assert stats.kstest(noisy - value, stats.norm(scale=m.scale).cdf).pvalue > FALSE_ALARM


def test_errors_exceed_the_accuracy_as_often_as_stated():
    """Of 60,000 draws in one, and in three, coordinates 5 % are further off, two-sided at 1e-6."""
    m = hs.Gaussian(ONE, epsilon=2.0, delta=1e-6)
    for dims in (1, 3):
        worst = np.abs(m.draw(np.zeros(20_000 * 3))).reshape(-1, dims).max(axis=1)
        beyond = int((worst > m.accuracy(0.05, dims)).sum())
        assert stats.binomtest(beyond, worst.size, 0.05).pvalue > FALSE_ALARM


def test_released_values_lie_on_one_grid():
    """Inputs 0, 1 and 0.1 give multiples of the same public power of two."""
    m = hs.Gaussian(ONE, epsilon=1.0, delta=1e-6)
    exponent = noise.gaussian_grid(sensitivity=0.7, sigma=m.scale, dims=1).exponent
    for value in (0.0, 1.0, 0.1, -1e9):
        steps = [m.draw(value) * 2.0**-exponent for _ in range(50)]
        assert all(step == int(step) for step in steps)
        if abs(value) < 2:  # no coarser grid for any such input
            assert len({int(step) % 16 for step in steps}) > 4


def test_shapes_and_types():
    """A number gives a float, an array an array of its shape."""
    m = hs.Gaussian(ONE, epsilon=1.0, delta=1e-6)
    assert type(m.draw(3)) is float
    assert m.draw([[1, 2]]).shape == (1, 2)
