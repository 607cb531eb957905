"""Best polynomials and tensor expansions against alternation, dense grids and quoted values."""

import numpy as np
import pytest
from numpy.polynomial import chebyshev

from hushed.divergences._approximation import (
    best_absolute_value,
    root_difference,
    root_sum,
    tensor_product,
)
from hushed.errors import ParameterError

GRID = np.cos(np.linspace(0, np.pi, 40_001))


class TestBestAbsoluteValue:
    @pytest.mark.parametrize(
        ("degree", "error"),
        [(2, 0.125), (4, 0.0676209), (6, 0.0459291), (8, 0.0346897), (10, 0.0278451)],
    )
    def test_quoted_errors(self, degree, error):
        """The errors are those of Varga and Carpenter, to the digits quoted."""
        assert best_absolute_value(degree).error == pytest.approx(error, abs=5e-8)

    def test_bernstein_limit(self):
        """Degree times error approaches 0.2801694990: 2e-4 away at degree 60."""
        assert 60 * best_absolute_value(60).error == pytest.approx(0.2801694990, abs=2e-4)

    @pytest.mark.parametrize("degree", [1, 2, 3, 7, 12, 20, 33, 47, 60])
    @pytest.mark.parametrize("kink", [0.0, 0.3, -0.9, 0.999])
    def test_error_alternates(self, degree, kink):
        """The largest error recurs degree + 2 times with alternating sign: so it is the best."""
        best = best_absolute_value(degree, kink)
        points = np.sort(np.append(GRID, kink))
        error = chebyshev.chebval(points, best.coefficients) - np.abs(points - kink)

        largest = np.abs(error) >= best.error * (1 - 1e-4)
        assert 1 + np.count_nonzero(np.diff(np.sign(error[largest]))) >= degree + 2
        assert np.abs(error).max() == pytest.approx(best.error, rel=1e-4)

    def test_taylor_is_the_polynomial(self):
        """The expansion around a point gives the polynomial elsewhere."""
        best = best_absolute_value(9, 0.2)
        terms = best.taylor(np.array([0.4]))[:, 0]
        there = np.polynomial.polynomial.polyval(0.7 - 0.4, terms)
        assert there == pytest.approx(chebyshev.chebval(0.7, best.coefficients), abs=1e-12)

    @pytest.mark.parametrize("kink", [1.0, -1.0, 1 - 1e-8, 1e-14, 1e-300])
    def test_kinks_at_the_ends_and_next_to_the_middle(self, kink):
        """Kinks where the exchange would degenerate still get a polynomial as good as stated."""
        best = best_absolute_value(8, kink)
        error = chebyshev.chebval(GRID, best.coefficients) - np.abs(GRID - kink)
        assert np.abs(error).max() <= best.error * (1 + 1e-6) + 1e-15

    @pytest.mark.parametrize(("degree", "kink"), [(-1, 0.0), (61, 0.0), (4, 1.5), (4, np.nan)])
    def test_refuses(self, degree, kink):
        """Degrees above 60 and kinks outside [-1, 1] are refused."""
        with pytest.raises(ParameterError, match="must lie in"):
            best_absolute_value(degree, kink)

    def test_results_cannot_be_changed(self):
        """The cached arrays are read-only."""
        with pytest.raises(ValueError, match="read-only"):
            best_absolute_value(4).coefficients[0] = 1.0


class TestTensorExpansions:
    def test_quoted_coefficients(self):
        """The first coefficients of [sqrt y - sqrt x]+ have their quoted values."""
        quoted = [
            [0.17396336, -0.24434589, 0.09216615],
            [0.18014251, -0.21619655, 0.03089618],
            [0.00720826, 0.03089618, -0.05151187],
        ]
        assert root_difference(2) == pytest.approx(np.array(quoted), abs=5e-9)

    def test_high_degree_comes_close(self):
        """At degree 40 the two expansions are within 0.02 of their functions everywhere."""
        at = np.linspace(0, 1, 60)
        y, x = np.meshgrid(at, at, indexing="ij")
        u = chebyshev.chebval2d(2 * y - 1, 2 * x - 1, root_difference(40))
        v = chebyshev.chebval2d(2 * y - 1, 2 * x - 1, root_sum(40))
        assert np.abs(u - np.maximum(np.sqrt(y) - np.sqrt(x), 0)).max() < 0.02
        assert np.abs(v - np.sqrt(x) - np.sqrt(y)).max() < 0.02

    def test_product_is_the_product(self):
        """The product of two expansions has the product of their values."""
        rng = np.random.default_rng(3)
        first, second = rng.standard_normal((2, 6, 6))
        x, y = rng.uniform(-1, 1, (2, 50))
        product = chebyshev.chebval2d(x, y, tensor_product(first, second))
        expected = chebyshev.chebval2d(x, y, first) * chebyshev.chebval2d(x, y, second)
        assert product == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("degree", [2, 3, 4, 5, 8])
def test_a_kink_near_an_end_has_a_polynomial(degree):
    """Estimates with a known side put kinks anywhere: none of them stops the search."""
    for distance in np.geomspace(1e-7, 1e-4, 60):
        kink = float(distance) - 1
        best = best_absolute_value(degree, kink)
        at = np.append(np.linspace(-1, 1, 400), kink)
        off = np.abs(chebyshev.chebval(at, best.coefficients) - np.abs(at - kink)).max()
        assert off <= best.error * (1 + 1e-6) + 1e-15
