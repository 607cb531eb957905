"""The Laplace mechanism: norm, scale, accuracy both ways, law of the noise, grid."""

import math

import numpy as np
import pytest
from scipy import stats

import hushed as hs
from hushed import noise
from hushed.errors import ParameterError, WrongNorm, ZeroSensitivity

FALSE_ALARM = 1e-6
ONE = hs.proven_sensitivity(0.7, "l1", argument="by assumption")


def test_scale_and_guarantee():
    """B = Delta / epsilon, and the promise is epsilon under the sensitivity's neighbours."""
    m = hs.Laplace(ONE, epsilon=0.35)
    assert m.scale == pytest.approx(2.0)
    assert m.guarantee == hs.Guarantee(epsilon=0.35)
    sampled = hs.sample_sensitivity(np.mean, hs.populations.Uniform(low=0, high=1), rows=9)
    promise = hs.Laplace(sampled, epsilon=1).guarantee
    assert (promise.gamma, promise.estimates) == (0.05, ((sampled.fingerprint, 0.05),))


@pytest.mark.parametrize(
    "epsilon", [0, -1, float("nan"), float("inf"), -0.0, True, "1", None, 1j, np.nan]
)
def test_epsilon_out_of_range(epsilon):
    """Zero, negative, NaN, infinite epsilon and what is not a number are refused."""
    with pytest.raises(ParameterError, match="epsilon"):
        hs.Laplace(ONE, epsilon=epsilon)


@pytest.mark.parametrize(
    ("norm", "right"),
    [("l2", "Gaussian"), ("sup", "Exponential or Bernstein"), ("range", "Exponential")],
)
def test_a_wrong_norm_names_the_right_one(norm, right):
    """The message names the norm that Laplace needs and the mechanism that fits."""
    s = hs.proven_sensitivity(1.0, norm, argument="x")
    with pytest.raises(WrongNorm, match=f"'l1'.*{norm}.*{right}"):
        hs.Laplace(s, epsilon=1)


def test_zero_sensitivity_is_refused():
    """Noise of scale 0 would publish the exact answer, sampled or proven."""
    constant = hs.sample_sensitivity(
        lambda r: 3.0, hs.populations.Uniform(low=0, high=1), rows=9, workers=1
    )
    for s in (constant, hs.proven_sensitivity(0, argument="constant")):
        with pytest.raises(ZeroSensitivity, match="exact answer"):
            hs.Laplace(s, epsilon=1)
        with pytest.raises(ZeroSensitivity):
            hs.Laplace.for_accuracy(s, error=1)


def test_what_is_no_sensitivity_is_refused():
    """A bare number must be declared by hs.proven_sensitivity."""
    with pytest.raises(ParameterError, match="proven_sensitivity"):
        hs.Laplace(1.0, epsilon=1)


@pytest.mark.parametrize("dims", [1, 2, 17])
@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-9])
def test_accuracy_inverts(dims, beta):
    """for_accuracy reaches the error, and a slightly smaller epsilon does not."""
    for error in (1e-3, 1.0, 1e6):
        m = hs.Laplace.for_accuracy(ONE, error=error, beta=beta, dims=dims)
        assert m.accuracy(beta, dims) <= error
        less = hs.Laplace(ONE, epsilon=m.epsilon * (1 - 1e-9))
        assert less.accuracy(beta, dims) > error


@pytest.mark.parametrize("dims", [1, 2, 50])
def test_accuracy_against_the_exact_tail(dims):
    """The stated error has tail beta by SciPy's law of the maximum, up to rounding upwards."""
    m = hs.Laplace(ONE, epsilon=0.1)
    for beta in (0.3, 0.05, 1e-6):
        tail = -np.expm1(
            dims * np.log1p(-2 * stats.laplace.sf(m.accuracy(beta, dims), scale=m.scale))
        )
        assert tail <= beta * (1 + 1e-9)
        assert tail >= beta * (1 - 1e-9)
        assert m.accuracy(beta, dims) <= m.scale * math.log(dims / beta) * (1 + 1e-9)


@pytest.mark.parametrize(
    "bad", [{"beta": 0}, {"beta": 1}, {"beta": float("nan")}, {"dims": 0}, {"dims": 1.5}]
)
def test_accuracy_out_of_range(bad):
    """Beta outside (0, 1) and no coordinates are refused."""
    with pytest.raises(ParameterError):
        hs.Laplace(ONE, epsilon=1).accuracy(**bad)
    with pytest.raises(ParameterError):
        hs.Laplace.for_accuracy(ONE, error=1, **bad)


@pytest.mark.parametrize("error", [0, -1, float("nan"), float("inf")])
def test_error_out_of_range(error):
    """An error of 0, NaN or infinity cannot be asked for."""
    with pytest.raises(ParameterError, match="error"):
        hs.Laplace.for_accuracy(ONE, error=error)


@pytest.mark.parametrize("value", [0.0, 1.0, 1e6, -0.1])
def test_noise_has_the_stated_law(value):
    """30,000 draws pass Kolmogorov-Smirnov at a false-alarm rate of 1e-6."""
    m = hs.Laplace(ONE, epsilon=0.5)
    noisy = m.draw(np.full(30_000, value))
    assert stats.kstest(noisy - value, stats.laplace(scale=m.scale).cdf).pvalue > FALSE_ALARM


def test_errors_exceed_the_accuracy_as_often_as_stated():
    """Of 60,000 draws in one, and in three, coordinates 5 % are further off, two-sided at 1e-6."""
    m = hs.Laplace(ONE, epsilon=2.0)
    for dims in (1, 3):
        worst = np.abs(m.draw(np.zeros(20_000 * 3))).reshape(-1, dims).max(axis=1)
        beyond = int((worst > m.accuracy(0.05, dims)).sum())
        assert stats.binomtest(beyond, worst.size, 0.05).pvalue > FALSE_ALARM


def test_released_values_lie_on_one_grid():
    """Inputs 0, 1 and 0.1 give multiples of the same public power of two."""
    m = hs.Laplace(ONE, epsilon=1.0)
    exponent = noise.laplace_grid(sensitivity=0.7, epsilon=1.0, dims=1).exponent
    for value in (0.0, 1.0, 0.1, -1e9, 1e-300):
        released = [m.draw(value) for _ in range(50)]
        steps = [r * 2.0**-exponent for r in released]
        assert all(step == int(step) for step in steps)
        if abs(value) < 2:  # no coarser grid for any such input
            assert len({int(step) % 16 for step in steps}) > 4


def test_shapes_and_types():
    """A number gives a float, an array an array of its shape; the input is left alone."""
    m = hs.Laplace(ONE, epsilon=1.0)
    assert type(m.draw(3)) is float
    given = np.arange(6).reshape(2, 3)
    assert m.draw(given).shape == (2, 3)
    assert given.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert m.draw(0.0) != m.draw(0.0)


@pytest.mark.parametrize("bad", [np.nan, [1.0, np.inf], "987654.321", ["987654.321"], None, [], 1j])
def test_draw_refuses_what_is_no_answer_without_showing_it(bad, assert_silent):
    """NaN, text and nothing are refused; the message holds no value."""
    with pytest.raises(ParameterError) as caught:
        hs.Laplace(ONE, epsilon=1.0).draw(bad)
    assert_silent(caught.value)
