"""What is released rests on the movements that were sampled, of the very function released."""

import dataclasses

import numpy as np
import pytest
from scipy import special
from scipy.special import expit

import hushed as hs
from hushed import transformations as t
from hushed.errors import BadFunction, ParameterError
from hushed.measurements import chain_sensitivity
from hushed.spaces import SYMMETRIC, Cell, Column, Space

UNIT = hs.populations.Uniform(low=0, high=1)


class Total(hs.Blockwise):
    """Adds where its parent averages."""

    def __call__(self, table):
        return float(np.sum([super(Total, self).__call__(table) for _ in range(self.parts(table))]))

    def parts(self, table):
        return len(table) // self.rows


class Ends(hs.Blockwise):
    """Counts its blocks in its own way."""

    def __call__(self, table):
        return self.function(table[: self.rows])

    def blocks(self, rows):
        return 1000


@pytest.mark.slow_cases("Total")
@pytest.mark.parametrize("kind", [Total, Ends])
def test_what_only_looks_like_an_average_over_blocks_is_taken_whole(kind):
    """Its movement was divided by the number of blocks, though its answer is no average."""
    f = kind(np.mean, 10)
    s = hs.sample_sensitivity(f, UNIT, rows=100, workers=1, pairs=40)
    plain = hs.sample_sensitivity(f.__call__, UNIT, rows=100, workers=1, pairs=40)
    assert s.sampling.blocks == 1
    assert s.value == plain.value
    made = hs.release(f, np.linspace(0, 1, 100), hs.Laplace(s, epsilon=1.0)).certificate
    assert hs.verify(made.to_json(), f).reproduced


def test_a_smaller_value_is_no_sampled_one():
    """The certificate would name a movement that was not drawn."""
    s = hs.sample_sensitivity(np.mean, UNIT, rows=20, workers=1, pairs=40)
    for value in (s.value / 2, s.value * 2, 0.0):
        with pytest.raises(ParameterError, match="proven_sensitivity"):
            dataclasses.replace(s, value=value)
    assert dataclasses.replace(s, person=True).person


THRESHOLD = 2.0


def test_what_hides_a_function_is_said():
    """NumPy makes a ufunc of a function and shows nothing of it: it passed for installed code."""
    hidden = np.frompyfunc(lambda x: 1e6 * (x > THRESHOLD), 1, 1)

    def f(rows):
        return float(rows.mean()) + float(hidden(rows[0]))

    s = hs.sample_sensitivity(f, UNIT, rows=20, workers=1, pairs=40)
    other = hs.sample_sensitivity(f, UNIT, rows=20, workers=1, pairs=40)
    assert s.sampling.unwatched == ("hidden",)
    assert s.fingerprint != other.fingerprint
    made = hs.release(f, np.linspace(0, 1, 20), hs.Laplace(s, epsilon=1.0)).certificate
    assert "hidden" in made.explain()


def test_functions_of_installed_code_are_seen():
    """However they were imported."""

    def f(rows):
        return float(expit(rows).mean() + np.exp(rows).mean() + special.gammaln(1 + rows).sum())

    s = hs.sample_sensitivity(f, UNIT, rows=20, workers=1, pairs=40)
    assert s.sampling.unwatched == ()
    assert s.fingerprint == hs.sample_sensitivity(f, UNIT, rows=20, workers=1, pairs=40).fingerprint


@pytest.mark.parametrize(
    "special",
    [
        lambda rows: rows.flags.writeable,
        lambda rows: rows.flags.owndata,
        lambda rows: rows.base is None,
    ],
)
def test_what_looks_at_the_memory_of_its_rows_is_refused(special):
    """Tables are sampled as parts of larger arrays, and private rows are an array of their own."""

    def f(rows):
        return rows.mean() * (1e6 if special(rows) else 1.0)

    with pytest.raises(BadFunction, match="values alone"):
        hs.sample_sensitivity(f, UNIT, rows=10, pairs=20, workers=1)


def test_no_chain_is_released_with_the_movement_of_another():
    """One that moves a thousand times as far was taken, and the certificate named the other one."""
    column = Space(domain=Column(cell=Cell(low=0, high=1)), metric=SYMMETRIC)
    small = column >> t.sum_of()
    wide = Cell(low=0, high=1000)
    large = column >> t.map_rows(lambda x: 1000 * x, wide) >> t.sum_of()
    same_name = column >> t.map_rows(lambda x: x, Cell(low=0, high=1)) >> t.sum_of()
    rows = np.full(30, 0.5)
    for own, others in (
        (small, (large, np.sum, lambda rows: 1e6 * rows.sum())),
        (same_name, (large, small)),
    ):
        noisy = hs.Laplace(chain_sensitivity(own), epsilon=1.0)
        hs.release(own, rows, noisy)
        for other in others:
            with pytest.raises(ParameterError, match="bounds nothing else"):
                hs.release(other, rows, noisy)
    with pytest.raises(ParameterError, match="bounds nothing else"):
        t.from_sensitivity(np.sum, chain_sensitivity(small))
    again = Space(domain=Column(cell=Cell(low=0, high=1)), metric=SYMMETRIC) >> t.sum_of()
    hs.release(again, rows, hs.Laplace(chain_sensitivity(small), epsilon=1.0))  # built anew


def test_the_draw_of_a_posterior_is_for_its_own_scores():
    """Its certificate says that log likelihoods were clipped, whatever the function was."""

    def coin(row, p):
        return np.where(row == 1, np.log(p), np.log1p(-p))

    posterior = hs.Posterior(coin, [0.25, 0.75], epsilon=1.0, clip=2.0)
    with pytest.raises(ParameterError, match=r"give the hs\.Posterior itself"):
        hs.release(lambda rows: np.array([0.0, 1e9]), np.ones(9), posterior.mechanism)
    assert hs.release(coin, np.ones(9), posterior).value in (0.25, 0.75)
