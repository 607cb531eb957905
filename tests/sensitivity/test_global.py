"""Laplace noise for a statistic: the bound on its movement, against all pairs of small tables."""

import itertools

import numpy as np
import pytest

import hushed as hs
from hushed.errors import BadRows, ParameterError, ZeroSensitivity

FAR = 1e16  # where doubles are 2 apart: a mean that is rounded to one moves further than the mean


def movements(s, values, sizes):
    """Every movement of the statistic as it is computed, between neighbours of these sizes."""
    for size in sizes:
        for table in itertools.product(values, repeat=size):
            for place, value in itertools.product(range(size), values):
                if s.rows is None:
                    other = table[:place] + table[place + 1 :]
                else:
                    other = (*table[:place], value, *table[place + 1 :])
                yield abs(s(list(table)) - s(list(other)))


@pytest.mark.parametrize(
    "s",
    [
        hs.statistics.mean(rows=3, low=0, high=4),
        hs.statistics.trimmed_mean(0.25, rows=4, low=-2, high=4),
        hs.statistics.median(rows=3, low=0, high=4),
        hs.statistics.quantile(0.8, low=0, high=4),
        hs.statistics.interquartile_range(rows=4, low=0, high=4),
        hs.statistics.interquartile_range(low=0, high=4),
    ],
    ids=str,
)
def test_no_neighbours_of_any_small_table_move_a_statistic_further(s):
    """The bound is kept and, to rounding, reached."""
    sizes = (1, 2, 3, 4) if s.rows is None else (s.rows,)
    bound = hs.global_sensitivity(s)
    most = max(movements(s, (s.low, 0.5, 1.25, s.high), sizes))
    assert most <= bound.value <= most * (1 + 1e-12)
    assert (bound.neighbours, bound.unit) == (s.neighbours, s.unit)


def test_the_rounding_of_the_answer_is_part_of_the_bound():
    """The mean of 3 rows moves by 4/3, and rounded to doubles that are 2 apart by 2."""
    s = hs.statistics.mean(rows=3, low=FAR, high=FAR + 4)
    most = max(movements(s, (FAR, FAR + 2, FAR + 4), (3,)))
    assert most == 2 > s.global_sensitivity
    assert most <= hs.global_sensitivity(s).value <= 4 / 3 + 2 + 1e-9


def test_a_mean_is_released_with_laplace_noise_and_verified():
    """A statistic is a function of the rows, and its sensitivity is that of the statistic."""
    s = hs.statistics.mean(rows=500, low=0, high=10, unit="person")
    released = hs.release(s, np.full(500, 4.0), hs.Laplace(hs.global_sensitivity(s), epsilon=100.0))
    assert released.value == pytest.approx(4, abs=0.01)
    assert "Released was the mean, and one row moves it" in released.certificate.explain()
    assert hs.verify(released.certificate).reproduced


def test_a_table_of_another_size_spends_nothing(tmp_path):
    """The number of rows is public: it is compared before the charge."""
    s = hs.statistics.mean(rows=5, low=0, high=10)
    with hs.Ledger(f"sqlite:///{tmp_path}/b.db") as ledger:
        ledger.open_budget("b", hs.Guarantee(epsilon=1.0))
        with pytest.raises(BadRows, match="for 5 rows, the table has 4"):
            hs.release(
                s,
                np.zeros(4),
                hs.Laplace(hs.global_sensitivity(s), epsilon=1.0),
                ledger,
                budget="b",
            )
        assert ledger.balance("b").spent.epsilon == 0


def test_a_statistic_that_never_moves_is_not_said_to_be_sampled_as_0():
    """What was stated is told from what was sampled; and a statistic from its sensitivity."""
    with pytest.raises(ZeroSensitivity, match="was stated to be 0"):
        hs.Laplace(hs.proven_sensitivity(0.0, argument="none"), epsilon=1.0)
    public = hs.populations.Uniform(low=0, high=1)
    still = hs.sample_sensitivity(lambda rows: 1.0, public, rows=5, gamma=0.1, symmetric=True)
    with pytest.raises(ZeroSensitivity, match="the pairs it rests on did not move"):
        hs.Laplace(still, epsilon=1.0)
    with pytest.raises(ParameterError, match=r"hs\.global_sensitivity\(s\)"):
        hs.Laplace(hs.statistics.mean(rows=5, low=0, high=1), epsilon=1.0)


def test_a_statistic_is_sampled_like_any_other_function():
    """Random differential privacy of a mean: far below the range of its rows."""
    s = hs.statistics.mean(rows=40, low=0, high=100)
    public = hs.populations.Uniform(low=0, high=1)
    sampled = hs.sample_sensitivity(s, public, rows=40, gamma=0.1, symmetric=True)
    assert 0 < sampled.value <= 1 / 40


@pytest.mark.parametrize(
    "other",
    [
        np.mean,
        hs.statistics.mean(rows=5, low=0, high=10),
        hs.statistics.median(rows=5, low=0, high=1),
    ],
    ids=["a function", "another range", "another statistic"],
)
def test_the_bound_of_a_statistic_releases_nothing_else(other, tmp_path):
    """It was certified for a function that moves no row into the range; in a chain, too."""
    s = hs.global_sensitivity(hs.statistics.mean(rows=5, low=0, high=1))
    with hs.Ledger(f"sqlite:///{tmp_path}/b.db") as ledger:
        ledger.open_budget("b", hs.Guarantee(epsilon=1.0))
        with pytest.raises(ParameterError, match="bounds no other function"):
            hs.release(other, np.arange(5.0), hs.Laplace(s, epsilon=0.5), ledger, budget="b")
        assert ledger.entries("b") == ()
    with pytest.raises(ParameterError, match="bounds no other function"):
        hs.transformations.from_sensitivity(other, s)


@pytest.mark.parametrize("given", [np.mean, ["a", "b"], 1.0, None])
def test_what_is_no_statistic_is_refused(given):
    """The message says what to do."""
    with pytest.raises(ParameterError, match="takes a statistic such as"):
        hs.global_sensitivity(given)


def test_blocks_take_a_function_of_however_many_rows():
    """A statistic of 500 rows would fail in every block, in silence."""
    s, public = hs.statistics.mean(rows=500, low=0, high=1), hs.populations.Uniform(low=0, high=1)
    with pytest.raises(ParameterError, match="however many rows"):
        hs.Blocks(low=0, high=1).simulate(s, public, rows=500)
    with pytest.raises(ParameterError, match="however many rows"):
        hs.public_prior(s, public, rows=500, blocks=31, candidates=[0, 1])


class Hundredfold(hs.statistics.TrimmedMean):
    """Computes something else, and inherits the bound."""

    def _value(self, values):
        return 100 * hs.statistics.TrimmedMean._value(self, values)


def test_a_subclass_of_a_statistic_has_no_known_bound():
    """The certificate stated the sensitivity of the mean for it, as proven."""
    with pytest.raises(ParameterError, match="got Hundredfold"):
        hs.global_sensitivity(Hundredfold(trim=0.0, rows=3, low=0, high=1))
