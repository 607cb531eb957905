"""The Bernstein mechanism: polynomial, iterated operator, amplification, shapes, refusals."""

import functools
import math

import numpy as np
import pytest
from scipy import stats

import hushed as hs
from hushed.errors import BadFunction, ParameterError, WrongNorm, ZeroSensitivity
from hushed.mechanisms import BernsteinPolynomial

TINY = hs.proven_sensitivity(1e-12, "sup", argument="so that noise hardly matters")
ONE = hs.proven_sensitivity(1.0, "sup", argument="by assumption")


def matrix(k):
    """The Bernstein operator on lattice values, from binomial coefficients."""
    at = [i / k for i in range(k + 1)]
    return np.array(
        [[math.comb(k, v) * x**v * (1 - x) ** (k - v) for v in range(k + 1)] for x in at]
    )


def iterated(k, dims, order):
    """Coefficients from values: sum of (I - B)^j, j < h, as one dense matrix."""
    b = functools.reduce(np.kron, [matrix(k)] * dims)
    rest = np.eye(len(b)) - b
    return sum(np.linalg.matrix_power(rest, j) for j in range(order))


@pytest.mark.parametrize("k", [1, 2, 5, 20, 60])
def test_one_dimension_against_the_binomial_law(k):
    """The polynomial is sum f(v/k) Pr(Binomial(k, x) = v), by SciPy."""
    coefficients = np.random.default_rng(k).standard_normal(k + 1)
    x = np.concatenate([[0.0, 1.0], np.random.default_rng(1).random(50)])
    expected = [stats.binom.pmf(np.arange(k + 1), k, each) @ coefficients for each in x]
    assert BernsteinPolynomial(coefficients)(x) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("k", "dims"), [(1, 2), (4, 2), (3, 3), (2, 4)])
def test_more_dimensions_against_a_plain_sum(k, dims):
    """In l dimensions it is the sum over the lattice of products of binomial terms."""
    rng = np.random.default_rng(k)
    coefficients = rng.standard_normal((k + 1,) * dims)
    points = rng.random((20, dims))
    found = BernsteinPolynomial(coefficients)(points)
    for point, value in zip(points, found, strict=True):
        expected = 0.0
        for v in np.ndindex(*coefficients.shape):
            term = coefficients[v]
            for x, i in zip(point, v, strict=True):
                term *= math.comb(k, i) * x**i * (1 - x) ** (k - i)
            expected += term
        assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize(("k", "dims"), [(1, 1), (10, 1), (4, 2), (2, 3)])
def test_order_against_dense_matrix_algebra(k, dims, order):
    """Almost without noise the coefficients are the Kronecker matrix times the values."""
    m = hs.Bernstein(TINY, epsilon=1.0, lattice=k, dims=dims, order=order)
    values = np.random.default_rng(k).standard_normal((k + 1) ** dims)
    found = m.draw(values).coefficients.ravel()
    assert found == pytest.approx(iterated(k, dims, order) @ values, abs=1e-6)


def test_the_iterated_operator_is_one_minus_a_power():
    """At the lattice points the released polynomial is (I - (I - B)^h) of the values."""
    k, order = 6, 3
    values = np.sin(np.arange(k + 1.0))
    released = hs.Bernstein(TINY, epsilon=1.0, lattice=k, order=order).draw(values)
    power = np.linalg.matrix_power(np.eye(k + 1) - matrix(k), order)
    assert released(np.arange(k + 1) / k) == pytest.approx(values - power @ values, abs=1e-6)


def test_the_axes_keep_their_places():
    """A function that rises along one axis only is released rising along that one."""
    m = hs.Bernstein(TINY, epsilon=1.0, lattice=3, dims=2)
    released = m.draw(lambda points: points[:, 0])
    assert released([0.25, 0.9]) == pytest.approx(0.25, abs=1e-6)
    assert released([[0.9, 0.25], [1.0, 0.0]]) == pytest.approx([0.9, 1.0], abs=1e-6)


@pytest.mark.parametrize(
    ("k", "dims", "order"), [(4, 1, 1), (10, 1, 3), (3, 2, 2), (2, 3, 3), (8, 1, 6)]
)
def test_amplification_bounds_the_growth_of_noise(k, dims, order):
    """The exact norm of the map from noise to coefficients never exceeds the one used."""
    plain = hs.Bernstein(ONE, epsilon=1.0, lattice=k, dims=dims)
    m = hs.Bernstein(ONE, epsilon=1.0, lattice=k, dims=dims, order=order)
    used = m.accuracy() / plain.accuracy()
    exact = np.abs(iterated(k, dims, order)).sum(axis=1).max()
    assert used >= exact * (1 - 1e-12)
    if dims == 1:
        assert used <= exact * (1 + 1e-9)


def test_scale_counts_every_lattice_point():
    """B = Delta (k+1)^l / epsilon, rounded up."""
    m = hs.Bernstein(ONE, epsilon=0.5, lattice=9, dims=2)
    assert m.points == 100
    assert 200 <= m.scale <= 200 * (1 + 1e-15)
    assert m.guarantee == hs.Guarantee(epsilon=0.5)


def test_lattice_noise_has_the_stated_law():
    """With order 1 the coefficients minus the values are Laplace, at a false-alarm rate of 1e-6."""
    m = hs.Bernstein(ONE, epsilon=1.0, lattice=140, dims=2)
    values = np.linspace(0, 1, m.points)
    added = m.draw(values).coefficients.ravel() - values
    assert stats.kstest(added, stats.laplace(scale=m.scale).cdf).pvalue > 1e-6


@pytest.mark.parametrize(("k", "dims", "order"), [(5, 1, 1), (10, 1, 3), (3, 2, 2)])
def test_accuracy_holds_over_actual_draws(k, dims, order):
    """In 400 draws the noise leaves the bound no oftener than beta allows, at 1e-6."""
    m = hs.Bernstein(ONE, epsilon=1.0, lattice=k, dims=dims, order=order)
    grid = np.random.default_rng(0).random((60, dims)) if dims > 1 else np.linspace(0, 1, 60)
    zero = np.zeros(m.points)
    beyond = sum(np.abs(m.draw(zero)(grid)).max() > m.accuracy(0.2) for _ in range(400))
    assert stats.binomtest(beyond, 400, 0.2, alternative="greater").pvalue > 1e-6


@pytest.mark.parametrize(("k", "dims", "order"), [(5, 1, 1), (10, 1, 3), (3, 2, 2)])
def test_accuracy_inverts(k, dims, order):
    """for_accuracy reaches the error, and a slightly smaller epsilon does not."""
    shape = {"lattice": k, "dims": dims, "order": order}
    for error in (1e-3, 10.0):
        m = hs.Bernstein.for_accuracy(ONE, error=error, beta=0.1, **shape)
        assert m.accuracy(0.1) <= error
        assert hs.Bernstein(ONE, epsilon=m.epsilon * (1 - 1e-9), **shape).accuracy(0.1) > error


def test_lattice_points_run_with_the_last_axis_fastest():
    """Points agree with itertools.product, and one dimension is a plain vector."""
    import itertools

    expected = list(itertools.product([0.0, 0.5, 1.0], repeat=2))
    assert hs.lattice_points(2, 2).tolist() == [list(p) for p in expected]
    assert hs.lattice_points(4).tolist() == [0, 0.25, 0.5, 0.75, 1]


def test_on_lattice_gives_numbers_to_measure():
    """A learner of functions is sampled and released through its lattice values."""
    learn = hs.on_lattice(lambda rows: lambda x: x[:, 0] * rows.mean() + x[:, 1], lattice=2, dims=2)
    unit = hs.populations.Uniform(low=0, high=1)
    s = hs.sample_sensitivity(learn, unit, rows=10, norm="sup", workers=1)
    plain = hs.sample_sensitivity(np.mean, unit, rows=10, workers=1)
    assert s.value == pytest.approx(plain.value, rel=1e-9)
    m = hs.Bernstein(s, epsilon=1e9, lattice=2, dims=2)
    data = np.random.default_rng(3).random(10)
    released = hs.release(learn, data, m).value
    assert released([0.5, 0.25]) == pytest.approx(0.5 * data.mean() + 0.25, abs=1e-5)


@pytest.mark.parametrize(
    ("points", "shape"), [(0.5, ()), ([0.5], (1,)), ([0.1, 0.2], (2,)), ([[0.1], [0.2]], (2,))]
)
def test_shapes_in_one_dimension(points, shape):
    """A number gives a number, a vector a vector; columns of one are points."""
    assert BernsteinPolynomial(np.array([0.0, 1.0]))(points).shape == shape


@pytest.mark.parametrize("points", [-0.001, 1.001, np.nan, [0.5, np.inf]])
def test_points_outside_the_cube_are_refused(points):
    """The polynomial promises nothing outside [0, 1]."""
    with pytest.raises(ParameterError, match="unit cube"):
        BernsteinPolynomial(np.array([0.0, 1.0]))(points)


def test_points_of_the_wrong_dimension_are_refused():
    """Three coordinates are no point of the square."""
    with pytest.raises(ParameterError, match="2 coordinates"):
        BernsteinPolynomial(np.zeros((2, 2)))(np.zeros((4, 3)))


@pytest.mark.parametrize(
    "bad",
    [
        {"lattice": 0},
        {"lattice": 2.5},
        {"dims": 0},
        {"order": 0},
        {"order": 1.5},
        {"lattice": 100, "dims": 4},
        {"epsilon": 0},
        {"epsilon": float("nan")},
    ],
)
def test_parameters_out_of_range(bad):
    """No lattice, no dimension, no order, too many points or no epsilon."""
    with pytest.raises(ParameterError):
        hs.Bernstein(ONE, **({"epsilon": 1.0} | bad))


def test_wrong_norm_and_zero():
    """The right norm is named, and a zero sensitivity refused."""
    with pytest.raises(WrongNorm, match="'sup'"):
        hs.Bernstein(hs.proven_sensitivity(1.0, "l1", argument="x"), epsilon=1.0)
    with pytest.raises(ZeroSensitivity):
        hs.Bernstein(hs.proven_sensitivity(0, "sup", argument="x"), epsilon=1.0)


def test_wrong_values_are_refused_without_showing_them(assert_silent):
    """A wrong number of lattice values, NaN, or a function of single points only."""
    m = hs.Bernstein(ONE, epsilon=1.0, lattice=2)
    for bad in ([1.0, 987654.321], [987654.321, np.nan, 1.0]):
        with pytest.raises(ParameterError) as caught:
            m.draw(bad)
        assert_silent(caught.value)
    with pytest.raises(BadFunction, match="3 points"):
        m.draw(lambda x: 987654.321)
    with pytest.raises(BadFunction, match="expected a function"):
        hs.on_lattice(lambda rows: 987654.321)(np.zeros(3))
    with pytest.raises(ParameterError, match="dims"):
        m.accuracy(0.05, dims=2)


@pytest.mark.slow
@pytest.mark.parametrize("proven", [False, True])
def test_a_lattice_of_as_many_points_is_another_lattice(proven):
    """Corners of a square are not coefficients on a line: refused before anything is drawn."""
    asked = []

    def learn(rows):
        asked.append(len(rows))
        return lambda x: np.reshape(x, (len(x), -1)).sum(axis=1) * rows.mean()

    square = hs.on_lattice(learn, lattice=1, dims=2)
    uniform = hs.populations.Uniform(low=0, high=1)
    s = hs.sample_sensitivity(square, uniform, rows=20, norm="sup", gamma=0.3, workers=1)
    if proven:
        s = hs.proven_sensitivity(0.1, norm="sup", argument="a mean")
    rows = np.linspace(0, 1, 20)
    with pytest.raises(ParameterError, match="lattice=3 and dims=1, and the function was put on"):
        hs.release(square, rows, hs.Bernstein(s, epsilon=1.0, lattice=3, dims=1))
    released = hs.release(square, rows, hs.Bernstein(s, epsilon=1e6, lattice=1, dims=2))
    assert released.value([[0.5, 0.5]]) == pytest.approx([0.5], abs=1e-3)
