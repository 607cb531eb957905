"""Estimates of delta from runs of a mechanism: both directions, bins, every kind of output."""

import json

import numpy as np
import pytest
from scipy import stats
from tests.commands import ended

import hushed as hs
from hushed.auditing import Pair
from hushed.errors import BadFunction, ParameterError

ROWS = (np.array([1.0, 0.0]), np.array([0.0, 0.0]))


def laplace(rows, rng, size):
    return rows.sum() + rng.laplace(size=size)


def rare(rows, rng):
    """One output of 1 in 10 on the first table alone; the other direction has the rest."""
    return "seen" if rows[0] and rng.random() < 0.1 else "usual"


def test_continuous_outputs_are_estimated_in_bins():
    """Laplace noise: within 4.5 standard errors, and what 50 bins lose, of the closed form."""
    levels = [0.0, 0.5, 0.9]
    found = hs.estimate_privacy(laplace, ROWS, levels, samples=200_000, batch=True)
    assert (found.binned, found.outcomes) == (True, 50)
    truth = -np.expm1((np.array(levels) - 1) / 2)
    for side in (found.rows_exceed, found.neighbour_exceeds):
        assert side.values == pytest.approx(truth, abs=0.012)
    assert np.array_equal(
        found.delta, np.maximum(found.rows_exceed.values, found.neighbour_exceeds.values)
    )


@pytest.mark.slow
@pytest.mark.parametrize("refusal", [np.inf, None, "refused"])
def test_what_repeats_is_told_apart_from_noise_that_does_not(refusal):
    """Six of ten answers refused: delta is that of the noise, 4 in 10 times, and 0 at its epsilon.

    Counted as outcomes, numbers that are seen once would all differ: delta 0.25 at epsilon 1.
    """

    def guarded(rows, rng):
        noisy = rows.sum() + rng.laplace()
        return refusal if rng.random() < 0.6 else noisy

    found = hs.estimate_privacy(guarded, ROWS, [0.0, 1.0], samples=10_000)
    assert found.binned
    for side in (found.rows_exceed, found.neighbour_exceeds):
        assert side.values == pytest.approx([0.4 * -np.expm1(-0.5), 0.0], abs=0.03)


def test_a_few_refusals_do_not_make_vectors_of_noise_outcomes():
    """Six of ten answers repeat, but the others are two numbers each: no bins are known."""

    def guarded(rows, rng):
        return None if rng.random() < 0.6 else tuple(rows + rng.normal(size=2))

    with pytest.raises(ParameterError, match="hardly ever repeat"):
        hs.estimate_privacy(guarded, ROWS, 0.5, samples=200)


def test_the_range_says_what_many_rare_outcomes_leave_open():
    """5,000 outcomes and a delta of 5 in 10,000: the estimate is far off, the range is not."""

    def spread(rows, rng, size):
        drawn = rng.integers(5000, size=size).astype(float)
        return np.where(rng.random(size) < 5e-4 * rows[0], -1.0, drawn)

    found = hs.estimate_privacy(spread, ROWS, 0.0, samples=10_000, batch=True)
    assert float(found.delta) > 0.01
    assert float(found.low) <= 5e-4 <= float(found.high)
    assert (float(found.low), float(found.high)) == (
        max(float(found.rows_exceed.low), float(found.neighbour_exceeds.low)),
        max(float(found.rows_exceed.high), float(found.neighbour_exceeds.high)),
    )


@pytest.mark.slow
def test_both_directions_are_told_apart():
    """[p - e q]+ is 0.1 at any epsilon, and the other one 1 - 0.9 e, which is 0 from 0.106 on."""
    found = hs.estimate_privacy(rare, ROWS, 0.05, samples=20_000, method="plug-in")
    assert (found.binned, found.outcomes) == (False, 2)
    assert float(found.rows_exceed) == pytest.approx(0.1, abs=0.01)
    assert float(found.neighbour_exceeds) == pytest.approx(1 - 0.9 * np.exp(0.05), abs=0.01)
    assert "rows over neighbour: estimate of delta at epsilon 0.05: 0.1" in str(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    "give",
    [
        lambda x: x,
        bool,
        lambda x: ("a", x),
        lambda x: {"answer": [x, None]},
        lambda x: np.array([x, np.nan]),
        lambda x: None if x else 3,
    ],
)
def test_outcomes_of_any_kind_are_counted(give):
    """Randomised response keeps its delta, whatever object stands for its answer."""

    def respond(rows, rng):
        return give(int(rows[0]) ^ int(rng.random() < 0.25))

    found = hs.estimate_privacy(respond, ROWS, 0.5, samples=10_000)
    assert found.outcomes == 2
    assert float(found.delta) == pytest.approx(0.75 - np.exp(0.5) * 0.25, abs=0.03)


def test_workers_and_seeds_decide_what_they_should():
    """The same answer from two processes; another one from another seed."""
    one = hs.estimate_privacy(laplace, ROWS, 0.5, samples=2_000, batch=True)
    two = hs.estimate_privacy(laplace, ROWS, 0.5, samples=2_000, batch=True, workers=2)
    other = hs.estimate_privacy(laplace, ROWS, 0.5, samples=2_000, batch=True, seed=1)
    assert float(one.rows_exceed) == float(two.rows_exceed) != float(other.rows_exceed)


def test_what_cannot_be_estimated_is_refused():
    """Many numbers that never repeat, tables that are no neighbours, and what only raises."""

    def vector(rows, rng):
        return rows + rng.normal(size=2)

    def broken(rows, rng):
        raise ValueError("no")

    with pytest.raises(ParameterError, match="hardly ever repeat"):
        hs.estimate_privacy(vector, ROWS, 0.5, samples=200)
    with pytest.raises(ParameterError, match="two tables"):
        hs.estimate_privacy(laplace, ROWS[0][:1], 0.5)
    far = Pair(rows=np.zeros(2), neighbour=np.ones(2), name="far")
    with pytest.raises(hs.errors.HushedError, match="neighbour"):
        hs.estimate_privacy(laplace, far, 0.5, batch=True)
    with pytest.raises(BadFunction):
        hs.estimate_privacy(broken, ROWS, 0.5, samples=200)
    for wrong in ({"samples": 5}, {"bins": 1}, {"epsilon": -1.0}, {"method": "best"}):
        with pytest.raises(ParameterError):
            hs.estimate_privacy(laplace, ROWS, batch=True, **{"epsilon": 0.5, **wrong})


@pytest.mark.slow
def test_bins_never_raise_the_plug_in_beyond_its_noise():
    """Of Gaussian noise at 1.5 million runs each the estimate is at most the truth and 4 errors."""

    def gauss(rows, rng, size):
        return rows.sum() + rng.normal(size=size)

    found = hs.estimate_privacy(gauss, ROWS, 0.3, samples=1_500_000, batch=True, method="plug-in")
    truth = stats.norm.cdf(0.5 - 0.3) - np.exp(0.3) * stats.norm.cdf(-0.5 - 0.3)
    for side in (found.rows_exceed, found.neighbour_exceeds):
        assert truth - 0.01 < float(side) < truth + 4 * float(side.standard_error)


def test_the_command_shows_every_pair(tmp_path):
    """Text and JSON hold the same numbers; a family of answers needs no domain."""
    (tmp_path / "m.py").write_text(
        "def f(x, rng, size):\n    return x.sum() + rng.laplace(size=size)\n"
    )
    options = [
        "m.py:f",
        "--epsilon",
        "0.5",
        "--epsilon",
        "0",
        "--batch",
        "--pairs",
    ]
    ends = ["extremes", "--low", "0", "--high", "1", "--samples", "2000", "--json"]
    shown = json.loads(ended("estimate", *options, *ends, cwd=tmp_path).stdout)["pairs"]
    assert len(shown) == 6
    assert shown[0]["epsilon"] == [0.0, 0.5]
    assert shown[0]["delta"][0] == pytest.approx(0.393, abs=0.06)
    more = ["histogram", "--answers", "2", "--samples", "70001"]
    text = ended("estimate", *options, *more, cwd=tmp_path).stdout
    assert "Largest estimate of delta" in text
    assert "from 70000 runs a table" in " ".join(text.split())  # two batches of one size
    wrong = ended("estimate", *options[:-1], cwd=tmp_path)
    assert wrong.returncode == 2
    assert "--pairs is needed" in wrong.stderr
