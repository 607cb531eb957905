"""Averages over blocks that are held to a limit keep a bound on the range of their changes."""

import numpy as np
import pytest

import hushed as hs
from hushed._functions._gate import answer_private_rows
from hushed.errors import ParameterError

SMALL = hs.populations.Simulator(lambda rng, count: rng.uniform(0, 1, count), name="small")


def both(rows):
    """Two scores that rise together, by far where no drawn row is, and differ by 0.3 x."""
    common = max(0.0, float(rows[0]) - 2) * 2.0**40
    return np.array([common, common + 0.3 * float(rows[0])])


@pytest.mark.parametrize("above", [-0.4, -0.2, 0.0, 0.2, 1e9])
def test_scores_at_the_limit_move_no_further_apart(above):
    """The change of both scores is nearly the same, and stays so where only one would be cut."""
    f = hs.Blockwise(both, rows=1, relative=True)
    s = hs.sample_sensitivity(f, SMALL, rows=2, norm="range", gamma=0.1, workers=1)
    place = 2 + 2 * (s.value * 2.0**39 + above) / 2.0**40
    step = 2 / 2.0**40  # raises the average of both scores by 1
    tables = [np.array([0.5, place]), np.array([0.5, place + step])]
    exact = [sum(both(row) for row in table[:, None]) / 2 for table in tables]
    assert np.ptp(exact[1] - exact[0]) < 0.01 * s.value
    one, other = (answer_private_rows(f, table, s.sampling) for table in tables)
    assert np.ptp(other - one) <= s.value
    assert np.ptp(one) == pytest.approx(0.15 * (0.5 + place), rel=1e-3)  # what tells them apart


def test_other_averages_are_refused_in_that_norm():
    """Where one score is held to the limit and another not, a common change moves them apart."""
    with pytest.raises(ParameterError, match="relative=True"):
        hs.sample_sensitivity(
            hs.Blockwise(both, rows=1), SMALL, rows=2, norm="range", gamma=0.1, workers=1
        )
    both_rise = hs.Blockwise(both, rows=1)
    assert hs.sample_sensitivity(both_rise, SMALL, rows=2, norm="sup", gamma=0.1).value > 0


def test_relative_scores_are_counted_from_the_best_of_each_block():
    """By hand: blocks (1, 3) and (4, 2) become (-2, 0) and (0, -2), on average (-1, -1)."""
    table = np.array([[1.0, 3.0], [4.0, 2.0]])
    f = hs.Blockwise(lambda rows: rows[0], rows=1, relative=True)
    assert f(table).tolist() == [-1.0, -1.0]
    many = hs.Blockwise(lambda stack: stack[:, 0], rows=1, batch=True, relative=True)
    assert many(table[None]).tolist() == [[-1.0, -1.0]]
    assert many(table[:, None]).tolist() == [[-2.0, 0.0], [0.0, -2.0]]
