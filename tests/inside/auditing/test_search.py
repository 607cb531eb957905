"""Search: trees learn from much only if they do well after little; progress says what is left."""

import re
import time
from dataclasses import replace

import numpy as np
import pytest

from hushed import populations
from hushed.auditing import PopulationPairs, _search, audit
from hushed.auditing._mechanisms import adapt_mechanism
from hushed.auditing._pairs import read_pairs
from hushed.auditing._runs import prepare_runs
from hushed.guarantee import Guarantee

pytest.importorskip("sklearn")

LITTLE = 2000  # numbers that trees are tried on, instead of many more


def checkerboard(rows, rng, size):
    """A place on a board of 2 by 2 fields, mostly a white one if rows[0] is 1.

    A wide number between the two hides them from sums and differences.
    """
    places = rng.integers(0, 2, (size, 2))
    white = rng.random(size) < 0.5 + 0.4 * rows[0]
    places[:, 1] ^= (places.sum(axis=1) + white) & 1
    first, second = (places + rng.random((size, 2))).T
    return np.stack([first, rng.uniform(-1000, 1000, size), 10 + second], axis=1)


def two_sums(rows, rng, size):
    """The answer with noise, twice: all that can be told is in the numbers one by one."""
    return rows[0] + rng.laplace(scale=4, size=(size, 2))


def audit_with_trees(mechanism, monkeypatch):
    """Rows of every fit of trees in an audit, and the report."""
    fits, fit = [], _search.fit_trees

    def fit_and_note(encoder, first, second, *, beside):
        fits.append(len(first))
        return fit(encoder, first, second, beside=beside)

    monkeypatch.setattr(_search, "fit_trees", fit_and_note)
    monkeypatch.setattr(_search, "_PILOT_CELLS", LITTLE)
    report = audit(
        mechanism,
        "one below",
        answers=1,
        claim=Guarantee(epsilon=0.5),
        samples=40_000,
        batch=True,
        bits=False,
        workers=1,
    )
    return fits, report


class TestTrees:
    @pytest.mark.slow
    def test_what_only_trees_see_is_learnt_from_all_runs(self, monkeypatch):
        """Colours of a board: trees do better after few runs, get them all, and give the event."""
        fits, report = audit_with_trees(checkerboard, monkeypatch)
        assert len(fits) == 2
        assert fits[0] < fits[1] == 6000
        assert "boosted trees" in report.witness.event
        assert report.verdict == "violated"

    @pytest.mark.slow
    def test_what_counts_see_as_well_costs_one_small_fit(self, monkeypatch):
        """Independent numbers: after a few runs trees are behind, and no more is spent on them."""
        fits, report = audit_with_trees(two_sums, monkeypatch)
        assert fits == [LITTLE // 2]
        assert "boosted trees" not in report.witness.event


class TestProgress:
    def test_time_left_is_in_proportion(self):
        """30 s for three quarters of the runs leave 10 s; for half of the second half, the same."""
        told = []
        runs = prepare_runs(
            adapt_mechanism(two_sums, batch=True, workers=1),
            read_pairs("one below", relation="answers", answers=1),
            seed=0,
            workers=1,
            progress=told.append,
        )
        begun = replace(runs, begun=time.perf_counter() - 30)
        begun.report("a", 0.75)
        replace(begun, span=(0.5, 1.0)).report("b", 0.5)
        assert told == [f"{a}; 75 % of the runs made, about 10 s left at most" for a in "ab"]

    @pytest.mark.slow_cases("families", "population")
    @pytest.mark.parametrize("kind", ["one pair", "families", "population", "sequential"])
    def test_shares_grow_to_what_the_final_split_leaves(self, kind):
        """Each line tells a larger share of the runs than the one before, and not too much."""
        told = []
        unit = populations.Uniform(low=0, high=1)
        pairs = {
            "one pair": "one below",
            "families": "patterns",
            "population": PopulationPairs(population=unit, rows=1, count=5),
            "sequential": "one below",
        }[kind]
        audit(
            two_sums,
            pairs,
            claim=Guarantee(epsilon=2.0, gamma=0.2 if kind == "population" else 0.0),
            answers=4,
            samples=6000,
            batch=True,
            bits=False,
            workers=1,
            sequential=kind == "sequential",
            progress=told.append,
        )
        shares = [float(re.search(r"(\d+) % of the runs", words)[1]) for words in told]
        assert shares == sorted(shares)
        last = {"one pair": 30, "families": 40, "population": 100, "sequential": 100}[kind]
        assert shares[-1] == pytest.approx(last, abs=6)
