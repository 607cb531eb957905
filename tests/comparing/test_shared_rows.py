"""Tables that are drawn from a public table share rows; a comparison counts that, and says it."""

import math

import numpy as np
import pytest

import hushed as hs
from hushed.comparing._laws import Chosen, estimate_spread

ROWS = 30
REMARK = "enough for 2 tables of this size without a row in common"
MADE = hs.Blocks(epsilon=2.0, candidates=np.linspace(0, 10, 5), blocks=10)


def _draw_means(rng, share, tables):
    """Means of tables drawn from one public table, each row at most once."""
    public = rng.normal(size=round(ROWS / share))
    return np.array([rng.choice(public, ROWS, replace=False).mean() for _ in range(tables)])


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_the_standard_error_is_that_of_other_public_tables(share):
    """Errors spread about the mean of each table have about the mean of all means as median.

    Over seeds the ratio is 1.0 to 1.1 with a standard deviation of at most 0.14; if shared rows
    are not counted, it is 0.45 and 0.06.
    """
    rng, noise = np.random.default_rng(7), np.linspace(-1, 1, 50)
    seen, stated = [], []
    for _ in range(60):
        errors = 100 + _draw_means(rng, share, 40)[:, None] + noise
        law = Chosen.of_rows(np.hstack([errors, np.full(errors.shape, 1 / 50)]))
        seen.append(law.quantile(0.5))
        stated.append(estimate_spread(law, 0.5, share))
    assert 0.6 < math.sqrt(np.mean(np.square(stated))) / np.std(seen) < 1.6


@pytest.mark.slow
def test_of_the_whole_public_table_nothing_is_known():
    """Each simulated table is the same one: how others differ was not seen."""
    public = hs.populations.PublicTable(np.arange(20.0))
    s = hs.statistics.median(rows=20, low=0, high=20)
    found = hs.compare(s, public, trials=3)
    route = next(each for each in found.routes if each.name == "inverse sensitivity")
    assert route.spread == math.inf
    assert "enough for one table of this size" in found.advice
    assert hs.Comparison.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    ("promise", "known", "shared"),
    [("population", 40, True), ("population", 60, False), ("table", 40, False)],
)
def test_it_is_said_where_rows_are_shared(promise, known, shared):
    """Three tables of 20 rows are apart in 60; drawn with replacement they always are."""
    public = hs.populations.PublicTable(np.arange(float(known)), promise=promise)
    found = hs.compare(np.median, public, rows=20, trials=3)
    tried = MADE.simulate(np.median, public, 20, trials=3, isolated=False)
    assert (REMARK in found.explain().replace("\n", " ")) is shared
    assert (REMARK in str(tried)) is shared
