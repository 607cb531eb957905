"""What is released rests on the movements that were sampled, of the very function released."""

import dataclasses

import numpy as np
import pytest
from scipy import special
from scipy.special import expit

import hushed as hs
from hushed.errors import BadFunction, ParameterError

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
