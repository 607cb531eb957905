"""Long checks of queries: the auditor, the frequency of error bars, the law of private keys."""

import math

import numpy as np
import pyarrow as pa
import pytest

import hushed as hs
from hushed.tables._noise import add_noise, select_partitions
from hushed.tables._outputs import evaluate
from hushed.tables._release import plan_query
from hushed.tables._scan import prepare, run_scan

pytestmark = pytest.mark.slow

SURE = 1 - 1e-6  # the noise cannot be seeded, so a false alarm must be rare

FRAME = pa.table(
    {"u": [1, 1, 2, 3, 3, 4], "x": [1.0, 9.0, 4.0, 5.0, 0.0, 10.0], "g": list("abaabb")}
)
SMALLER = FRAME.slice(2)  # without user 1


def prepared(frame, ask, **target):
    """Plan and exact cells of a query, to draw from many times without asking the database."""
    query = ask(
        hs.table(frame, user="u").bound_contributions(max_rows_per_user=2, max_groups_per_user=2)
    )
    plan = plan_query(query.query, **{"delta": 0.0, "noise_name": "laplace", **target})
    return plan, run_scan(prepare(query.connection, query.query, 99))


def drawing(ask, **target):
    """A mechanism on lists of users, of whom the auditor takes one away."""
    ready = {len(f["u"].unique()): prepared(f, ask, **target) for f in (FRAME, SMALLER)}

    def mechanism(users):
        plan, cells = ready[len(users)]
        pairs = zip(plan.parts, cells.values, strict=True)
        return [number for part, exact in pairs for number in add_noise(part, exact)]

    return mechanism


PAIR = [(np.array([2.0, 3.0, 4.0, 1.0]), np.array([2.0, 3.0, 4.0]))]


class TestAudit:
    @pytest.mark.parametrize("noise_name", ["laplace", "gaussian"])
    def test_a_grouped_query_is_not_refuted(self, noise_name):
        """Neighbours that differ in user 1, who has rows in both groups: the claim stands."""
        delta = 1e-3 if noise_name == "gaussian" else 0.0
        mechanism = drawing(
            lambda t: t.group_by("g", keys=["a", "b"]).count().sum("x", low=0, high=10),
            epsilon=1.0,
            delta=delta,
            noise_name=noise_name,
        )
        claim = hs.Guarantee(epsilon=1.0, delta=delta, neighbours="add-remove")
        report = hs.audit(mechanism, PAIR, claim=claim, samples=20_000, confidence=SURE, workers=1)
        assert report.verdict == "not refuted"

    def test_a_third_of_the_promise_is_refuted(self):
        """The same audit sees it when the query of epsilon 3 claims 1."""
        mechanism = drawing(lambda t: t.count(), epsilon=3.0)
        claim = hs.Guarantee(epsilon=1.0, neighbours="add-remove")
        report = hs.audit(mechanism, PAIR, claim=claim, samples=20_000, confidence=SURE, workers=1)
        assert report.verdict == "violated"


class TestFrequencies:
    def test_a_key_of_one_user_appears_as_often_as_delta(self):
        """At delta = 0.02 the frequency over 40,000 draws is delta, up to 5 sigma and one step."""
        frame = pa.table({"u": [1], "g": ["only"]})
        query = (
            hs.table(frame, user="u")
            .bound_contributions(max_groups_per_user=1)
            .group_by("g", select_partitions=True)
        )
        plan = plan_query(query.count_users().query, epsilon=4.0, delta=0.02, noise_name="laplace")
        draws = 40_000
        found = len(select_partitions(plan.selection, list(range(draws)), [1] * draws)) / draws
        sigma = math.sqrt(0.02 / draws)
        step = math.exp(-2.0)  # half of epsilon 4: what one step of the threshold changes
        assert 0.02 * step - 5 * sigma < found < 0.02 + 5 * sigma

    @pytest.mark.parametrize("noise_name", ["laplace", "gaussian"])
    def test_error_bars_cover_the_truth(self, noise_name):
        """Bars of 95 % cover count, sum and mean in at least 95 % of 2,000 draws, up to 5 sigma."""
        values = np.random.default_rng(0).uniform(0, 10, 400)
        frame = pa.table({"u": np.arange(400), "x": values})
        query = hs.table(frame, user="u").bound_contributions(max_rows_per_user=1)
        query = query.count().sum("x", low=0, high=10).mean("x", low=0, high=10)
        delta = 1e-6 if noise_name == "gaussian" else 0.0
        plan = plan_query(query.query, epsilon=0.5, delta=delta, noise_name=noise_name)
        cells = run_scan(prepare(query.connection, query.query, 1))
        truth = {"count": 400, "sum_x": values.sum(), "mean_x": values.mean()}
        runs = 2000
        covered = dict.fromkeys(truth, 0)
        for _ in range(runs):
            pairs = zip(plan.parts, cells.values, strict=True)
            noisy = [add_noise(part, exact) for part, exact in pairs]
            _, low, high = evaluate(query.aggregates, plan.parts, noisy, 0.05)
            for name, exact in truth.items():
                covered[name] += low[name][0] - 1e-4 <= exact <= high[name][0] + 1e-4
        slack = 5 * math.sqrt(0.05 * 0.95 / runs)
        assert all(count / runs >= 0.95 - slack for count in covered.values()), covered
