"""How near a population can be proved to be: sampling and noise over bins, simulated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hushed import noise

BINS = 20
SIZES = {"1,000 rows": (1000, 1.0), "100,000 rows": (100_000, 0.1)}
# Slacks of section "What could be bounded from above" of docs/population.md, and of noise in each
# bin, as they were computed in advance: each with what may exceed it.
SAMPLING = {"1,000 rows": 0.094, "100,000 rows": 0.0094}
PER_BIN = {"1,000 rows": 0.134, "100,000 rows": 0.0134}


def distances(rng, chances, rows, tables):
    """Total variation between the shares of so many rows and the law that they are drawn from."""
    counts = rng.multinomial(rows, chances, size=tables)
    return np.abs(counts / rows - chances).sum(axis=1) / 2


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("law", ["even", "skewed"])
def test_sampling_alone_keeps_to_its_slack_and_is_of_that_order(law, name):
    """Even the right law is some 0.05 away over 20 bins at 1,000 rows: no proof is finer."""
    rows = SIZES[name][0]
    chances = np.full(BINS, 1 / BINS) if law == "even" else 0.7 ** np.arange(BINS)
    chances = chances / chances.sum()
    found = distances(np.random.default_rng(3), chances, rows, 4000)
    slack = math.sqrt((BINS * math.log(2) + math.log(20)) / (2 * rows))
    assert slack < SAMPLING[name]  # that one is for a chance of 1/40, in place of 1/20
    assert np.mean(found > SAMPLING[name]) <= 1 / 40
    assert np.mean(found > slack) <= 1 / 20
    assert np.median(found) > 0.4 * SAMPLING[name]
    # What gamma needs at 1,000 rows is near 1e-5: three orders of magnitude finer.
    assert np.median(found) > 500 * 1e-5 * (1000 / rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_noise_in_each_bin_is_larger_than_on_the_distance_itself(name):
    """Noise of 2 / epsilon rows in all of 20 bins keeps to the union bound, and is large.

    One row moves the distance itself by 1 / n at most: noise on that adds log(20) / (n epsilon).
    """
    rows, epsilon = SIZES[name]
    draws = 2000
    one = np.asarray(noise.discrete_laplace(2000.0, size=(draws, BINS)), dtype=float)
    found = np.abs(one).sum(axis=1) / 2 / (1000 * epsilon * rows)
    bound = BINS * math.log(BINS * 40) / (rows * epsilon)
    assert bound == pytest.approx(PER_BIN[name], abs=0.0005 * PER_BIN[name] / 0.134)
    assert np.mean(found > PER_BIN[name]) <= 1 / 40
    assert np.median(found) > BINS / (rows * epsilon) * 0.8
    whole = np.asarray(noise.discrete_laplace(1000.0, size=draws), dtype=float)
    whole /= 1000 * epsilon * rows  # drawn in thousandths of a scale
    far = math.log(20) / (rows * epsilon)
    assert np.mean(whole > far) <= 1 / 20
    assert np.median(found) > 4 * far
    assert np.mean(whole > far / 4) > 1 / 20  # a quarter of it would not do
