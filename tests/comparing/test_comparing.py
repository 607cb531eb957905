"""Comparisons: errors against closed forms and hand counts, refusals, seeds and the record."""

from __future__ import annotations

import json
import math
import re

import joblib
import numpy as np
import pyarrow as pa
import pytest

import hushed as hs
from hushed.comparing import _routes as routes
from hushed.errors import BadFunction, BadRows, ParameterError
from hushed.populations._drawing import draw_shown

VALUES = [1.0, 2.0, 4.0, 7.0, 11.0, 16.0, 22.0]
"""The table of docs/worst-case.md, whose lengths and smooth sensitivities are known by hand."""
UNIT = hs.populations.Uniform(low=0, high=1)


def always(rng, count):
    """Give one table, and rows of it where more are asked for."""
    return rng.permutation(np.resize(np.array(VALUES), count))


SAME = hs.populations.Simulator(always)
SEVEN = hs.statistics.median(rows=7, low=0, high=30)


def route_of(found, name):
    (route,) = [each for each in found.routes if each.name == name]
    return route


def reason_of(found, name):
    (left,) = [each for each in found.left_out if each.name == name]
    return left.reason


class TestErrors:
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
    def test_global_route_has_the_quantiles_of_laplace_noise(self, epsilon):
        """Half of the errors are below log(2) scales, 95 % below log(20)."""
        found = hs.compare(SEVEN, SAME, epsilon=epsilon, trials=2)
        route = route_of(found, "global sensitivity")
        assert route.error_50 == pytest.approx(30 / epsilon * math.log(2), rel=1e-6)
        assert route.error_95 == pytest.approx(30 / epsilon * math.log(20), rel=1e-6)
        assert route.spread == 0

    @pytest.mark.parametrize(
        ("epsilon", "half", "most"),
        # Rounded to the nearest candidate the median is each of them after 2, 1, 0, 1, 3 changes.
        # At 1 the chances are .131 .216 .357 .216 .080, at 2 .070 .192 .521 .192 .026.
        [(1.0, 2.0, 23.0), (2.0, 0.0, 7.0)],
    )
    def test_inverse_route_has_the_chances_counted_by_hand(self, epsilon, half, most):
        """Five candidates on a table of seven rows."""
        found = hs.compare(SEVEN, SAME, epsilon=epsilon, candidates=[0, 5, 7, 11, 30], trials=3)
        route = route_of(found, "inverse sensitivity")
        assert (route.error_50, route.error_95) == (half, most)

    @pytest.mark.parametrize(
        ("name", "chosen", "factor", "smooth", "draw"),
        [
            # At epsilon 2; the factors by the theorems of docs/worst-case.md.
            (
                "smooth, lomax",
                "noise='lomax', tail=3",
                1.5414940825,
                2 / 3,
                lambda u: u ** (-1 / 3) - 1,
            ),
            (
                "smooth, t2",
                "noise='t2', smoothing=0.6",
                0.5095126506,
                0.6,
                lambda u: math.sqrt(2) * (1 - u) / np.sqrt(u * (2 - u)),
            ),
        ],
    )
    def test_smooth_routes_have_the_errors_of_drawn_noise(self, name, chosen, factor, smooth, draw):
        """400,000 draws of the law, moved into the range, have the quantiles that are stated."""
        padded = [0.0, *VALUES, 30.0]
        moved = max(
            (padded[j] - padded[i]) * math.exp(-smooth * (j - i - 1))
            for i in range(5)
            for j in range(max(4, i + 1), 9)
        )
        rng = np.random.default_rng(5)
        sizes = factor * moved * draw(rng.random(400_000))
        off = np.abs(np.clip(7 + sizes * rng.choice([-1, 1], size=sizes.size), 0, 30) - 7)
        route = route_of(hs.compare(SEVEN, SAME, epsilon=2.0, trials=2), name)
        assert route.how == f"hs.Smooth(s, epsilon=2, {chosen})"
        for level, error in ((0.5, route.error_50), (0.05, route.error_95)):
            assert np.mean(off > error * 1.0005) <= level + 0.004
            assert np.mean(off > error * 0.9995) >= level - 0.004

    @pytest.mark.slow
    def test_smooth_noise_is_chosen_on_other_tables_than_its_errors_are_of(self, monkeypatch):
        """No table is used twice, and what is written is what was chosen: better than a default."""
        drawn = {False: [], True: []}
        choosing = [False]

        def incomes(rng, count):
            made = np.clip(rng.lognormal(math.log(45_000), 0.8, count), 1, 1e6)
            drawn[choosing[0]].append(made.tobytes())
            return made

        choose = routes.measure_choices

        def noted(*args, **known):
            choosing[0] = True
            try:
                return choose(*args, **known)
            finally:
                choosing[0] = False

        monkeypatch.setattr(routes, "measure_choices", noted)
        s = hs.statistics.trimmed_mean(0.1, rows=1000, low=1, high=1e6)
        public = hs.populations.Simulator(incomes)
        found = hs.compare(s, public, epsilon=1.0, trials=20, workers=1)
        assert len(drawn[True]) == len(set(drawn[True])) == 50  # for both laws together
        assert not set(drawn[True]) & set(drawn[False])
        seed = int(np.random.SeedSequence([0, 2]).generate_state(1, np.uint64)[0])
        known = {"epsilon": 1.0, "rows": 1000, "seed": seed}
        made = [hs.Smooth.for_population(s, public, noise=law, **known) for law in ("t2", "lomax")]
        rng = np.random.default_rng(9)
        tables = [np.clip(rng.lognormal(math.log(45_000), 0.8, 1000), 1, 1e6) for _ in range(20)]
        for chosen in made:
            route = route_of(found, f"smooth, {chosen.noise}")
            assert eval(route.how, {"hs": hs, "s": s}) == chosen
            standard = hs.Smooth(s, epsilon=1.0, noise=chosen.noise)
            assert route.error_95 < 0.9 * np.mean([standard.error_on(each) for each in tables])

    @pytest.mark.slow
    def test_routes_share_the_tables_that_they_are_tried_on(self, monkeypatch):
        """A table is drawn twice at most: for most routes, and for those that try fewer tables."""
        drawn = []

        def counted(*given):
            drawn.append(draw_shown(*given))
            return drawn[-1]

        monkeypatch.setattr("hushed.comparing._simulated.draw_shown", counted)
        s = hs.statistics.median(rows=300, low=0, high=1)
        found = hs.compare(s, UNIT, trials=60, workers=1, delta=1e-6)
        assert len(found.routes) > 7
        assert len(drawn) == 60 + 50
        assert len({each.tobytes() for each in drawn}) == 60

    def test_smooth_routes_count_the_rounding_of_the_answer(self):
        """With next to no noise the error is half a step of the grid, 2**-46 to 2**-47 of 30."""
        found = hs.compare(SEVEN, SAME, epsilon=1e4, trials=2)
        for name in ("smooth, lomax", "smooth, t2"):
            assert 30 * 2.0**-48 < route_of(found, name).error_95 < 30 * 2.0**-45

    @pytest.mark.slow
    def test_errors_whose_squares_exceed_all_doubles_have_a_spread(self):
        """Relative to the error it is that of the same question on a smaller scale."""
        rng = np.random.default_rng(1)
        rows = rng.uniform(0, 8e299, 40)
        found = []
        for unit in (1.0, 2.0**-800):
            public = hs.populations.PublicTable(rows * unit, promise="table")
            s = hs.statistics.median(rows=9, low=0, high=8e299 * unit)
            route = route_of(hs.compare(s, public, epsilon=1.0, trials=20), "smooth, t2")
            found.append(route.spread / route.error_95)
        assert found[0] == pytest.approx(found[1], rel=1e-6)
        assert 0 < found[0] < 1

    def test_table_route_has_the_chances_of_its_ranks(self):
        """Odds fall by e^epsilon with each rank off; each value counts as the nearest candidate."""
        found = hs.compare(SEVEN, SAME, epsilon=2.0, trials=2)
        points = [0.0] + [30 * 10 ** (6 * (k / 1998 - 1)) for k in range(1999)]
        near = [min(range(2000), key=lambda i: abs(points[i] - v)) for v in VALUES]
        weights = []
        for i in range(2000):
            below, upto = sum(j < i for j in near), sum(j <= i for j in near)
            weights.append(math.exp(-2 * max(below - 3.5, 3.5 - upto, 0)))
        off = [abs(p - 7) for p in points]
        route = route_of(found, "table query")
        for beta, error in ((0.5, route.error_50), (0.05, route.error_95)):
            beyond = sum(w for w, e in zip(weights, off, strict=True) if e > error + 1e-9)
            reached = sum(w for w, e in zip(weights, off, strict=True) if e > error - 1e-9)
            assert beyond <= beta * sum(weights) < reached

    @pytest.mark.slow
    @pytest.mark.parametrize(("low", "high"), [(0, 365), (1, 1e6), (-50, 50)])
    def test_table_route_is_as_exact_as_a_query(self, low, high):
        """Of 200 answers with default candidates half are within its error, and half are not."""
        values = np.random.default_rng(3).lognormal(3, 1, 400)
        s = hs.statistics.median(rows=400, low=low, high=high)
        constant = hs.populations.Simulator(
            lambda rng, count: rng.permutation(np.resize(values, count))
        )
        error = route_of(hs.compare(s, constant, epsilon=1.0, trials=2), "table query").error_50
        groups = [f"{k}" for k in range(200)]
        rows = pa.table({"x": np.tile(values, 200), "group": np.repeat(groups, 400)})
        query = hs.table(rows).group_by("group", keys=groups)
        answers = query.quantiles("x", [0.5], low=low, high=high).release(epsilon=1.0).rows()
        off = [abs(each["quantiles_x"] - np.sort(values)[199]) for each in answers]
        # 4.2 standard deviations of 200 fair coins
        assert sum(each <= error * (1 + 1e-9) for each in off) >= 70
        assert sum(each >= error * (1 - 1e-9) for each in off) >= 70

    def test_table_route_finds_the_candidate_of_equal_rows(self):
        """Its rows hold the wanted rank; all others are off by half of the rows: odds of e^-42."""
        rows = hs.populations.Uniform(low=7.0, high=7.0 + 1e-9)
        found = hs.compare(SEVEN, rows, epsilon=12.0, trials=2)
        points = [0.0, *(30 * 10 ** (-6 * k / 1998) for k in range(1999))]
        nearest = min(abs(p - 7) for p in points)
        assert route_of(found, "table query").error_95 == pytest.approx(nearest, rel=1e-6)

    def test_errors_of_a_mode_count_rows(self):
        """Of two categories with 5 and 3 rows, the second one wins when two rows are replaced."""
        s = hs.statistics.mode(["a", "b"], rows=8)
        rows = hs.populations.Simulator(lambda rng, n: (["a", "a", "b", "a", "b"] * n)[:n])
        found = hs.compare(s, rows, epsilon=1.0, trials=2)
        names = ["top k", "noisy max", "inverse sensitivity", "table query"]
        assert [each.name for each in found.routes] == names
        assert found.categories
        for route in found.routes:  # of the first e^-1 / (1 + e^-1) = 0.27 for the second one
            assert (route.error_50, route.error_95) == (0.0, 2.0)
        assert "it would be the most frequent category if 2 rows changed" in found.advice
        sure = hs.compare(s, rows, epsilon=3.0, trials=2)  # e^-3 / (1 + e^-3) = 0.047
        assert "it is the most frequent category" in sure.advice

    def test_sampled_route_has_the_noise_of_its_sensitivity(self):
        """Its error is that of Laplace noise of the sensitivity that the sampler gives."""
        found = hs.compare(np.mean, UNIT, rows=100, epsilon=1.0, trials=2)
        s = hs.sample_sensitivity(np.mean, UNIT, rows=100, gamma=0.05, seed=0)
        route = route_of(found, "sampled, Laplace")
        assert route.error_95 == pytest.approx(s.value * math.log(20), rel=1e-6)
        assert route.guarantee.gamma == s.gamma
        assert route.calls == 2 * s.pairs + 1

    @pytest.mark.slow
    def test_real_releases_have_the_stated_errors(self):
        """5 % of real draws on fresh tables exceed the stated error, on each route that draws."""
        s = hs.statistics.median(rows=200, low=1, high=1e6)
        draws = 4000
        rng = np.random.default_rng(3)
        tables = [np.clip(rng.lognormal(10, 0.8, 200), 1, 1e6) for _ in range(draws)]
        incomes = hs.populations.Simulator(
            lambda rng, n: np.clip(rng.lognormal(10, 0.8, n), 1, 1e6)
        )
        found = hs.compare(s, incomes, epsilon=1.0, trials=2000)
        for name in ("inverse sensitivity", "smooth, t2", "smooth, lomax"):
            mechanism = eval(route_of(found, name).how, {"hs": hs, "s": s})
            off = [abs(mechanism.draw(each) - float(s.value(each))) for each in tables]
            route = route_of(found, name)
            for level, error in ((0.5, route.error_50), (0.05, route.error_95)):
                beyond = np.mean(np.array(off) > error)
                # Five deviations of a share of draws, and as much again for the tables.
                assert abs(beyond - level) < 10 * math.sqrt(level * (1 - level) / draws), name


class TestLevels:
    @pytest.mark.slow
    def test_an_error_gives_the_smallest_level_of_three_digits(self):
        """For Laplace noise it is 30 log(20) / error, rounded up; one step less is too little."""
        found = hs.compare(SEVEN, SAME, error=5.0, trials=2)
        route = route_of(found, "global sensitivity")
        exact = 30 * math.log(20) / 5  # 17.97...
        assert route.guarantee.epsilon == pytest.approx(math.ceil(10 * exact) / 10, rel=1e-12)
        assert found.epsilon is None
        for each in found.routes:
            assert each.error_95 <= 5.0
        levels = [each.guarantee.epsilon for each in found.routes]
        assert levels == sorted(levels)
        for name in ("inverse sensitivity", "smooth, t2"):
            level = route_of(found, name).guarantee.epsilon
            step = 10.0 ** (math.floor(math.log10(level)) - 2)
            less = hs.compare(SEVEN, SAME, epsilon=round(level - step, 6), trials=2)
            assert route_of(less, name).error_95 > 5.0

    @pytest.mark.slow
    def test_an_error_out_of_reach_is_said(self):
        """The grid of a table query is too coarse for a small error at any epsilon."""
        found = hs.compare(SEVEN, SAME, error=0.01, trials=2)
        assert "not reached at any epsilon up to 99.9" in reason_of(found, "table query")
        assert found.recommended in [each.name for each in found.routes]

    @pytest.mark.slow
    def test_an_error_that_is_large_needs_the_least_level(self):
        """No level below the ladder is promised."""
        found = hs.compare(SEVEN, SAME, error=1e9, trials=2)
        levels = {each.name: each.guarantee.epsilon for each in found.routes}
        assert {level for name, level in levels.items() if "blocks" not in name} == {0.001}
        assert levels["blocks"] > 2  # seven rows are seven blocks at most


class TestRoutes:
    def test_functions_have_the_sampled_route_alone_without_a_delta(self):
        """What is for statistics says so; Gaussian noise comes with a delta."""
        found = hs.compare(np.mean, UNIT, rows=50, trials=2)
        assert [each.name for each in found.routes] == ["sampled, Laplace"]
        assert "low= and high=" in reason_of(found, "blocks")
        assert "statistics alone" in reason_of(found, "inverse sensitivity")
        assert "proven_sensitivity" in reason_of(found, "global sensitivity")
        assert "delta" in reason_of(found, "sampled, Gaussian")
        more = hs.compare(np.mean, UNIT, rows=50, trials=2, delta=1e-6)
        assert route_of(more, "sampled, Gaussian").guarantee.delta == pytest.approx(1e-6)

    def test_a_random_function_is_compared_by_blocks(self):
        """Sampling refuses it with its reason; blocks take it, and no record is lost for it."""

        def shaken(rows):
            return float(np.mean(rows) + np.random.default_rng().normal(0, 0.01))

        found = hs.compare(shaken, UNIT, rows=200, low=0, high=1, trials=2, delta=1e-6)
        assert {each.name for each in found.routes} == {"blocks", "blocks, public guess"}
        for name in ("sampled, Laplace", "sampled, Gaussian"):
            assert "two answers on the same rows" in reason_of(found, name)

    @pytest.mark.slow
    def test_propose_test_needs_a_delta_and_a_far_table(self):
        """The bound that it proposes is one of the halvings of the range; all are refused here."""
        assert "delta" in reason_of(hs.compare(SEVEN, SAME, trials=2), "propose-test")
        found = hs.compare(SEVEN, SAME, trials=2, delta=1e-6)
        assert "refuse" in reason_of(found, "propose-test")
        s = hs.statistics.median(rows=3000, low=0, high=100)
        wide = hs.populations.Uniform(low=0, high=100)
        route = route_of(hs.compare(s, wide, trials=4, delta=1e-6), "propose-test")
        assert (route.guarantee.delta, route.guarantee.gamma) == (1e-6, 0)
        bound = float(route.how.partition("bound=")[2].partition(",")[0])
        assert math.log2(100 / bound) == pytest.approx(round(math.log2(100 / bound)), abs=0.01)
        # Half of epsilon is for the noise, of 2.5 % of the tables none is promised.
        scale = 2 * bound
        assert scale * math.log(20) * 0.99 < route.error_95 < scale * math.log(40) * 1.01

    def test_the_error_of_propose_test_ends_where_its_range_does(self):
        """Its noise is moved into the range; real releases are off by the stated error."""
        s = hs.statistics.quantile(0.9, rows=100, low=0, high=100)
        wide = hs.populations.Uniform(low=0, high=100)
        route = route_of(hs.compare(s, wide, delta=1e-6), "propose-test")
        assert route.error_95 <= 100
        mechanism = eval(route.how, {"hs": hs, "s": s})
        rng, draws = np.random.default_rng(0), 1000
        tables = [rng.uniform(0, 100, 100) for _ in range(draws)]
        drawn = [mechanism.draw(each) for each in tables]
        off = [
            math.inf if value is None else abs(value - float(s.value(each)))  # refused
            for value, each in zip(drawn, tables, strict=True)
        ]
        for level, error in ((0.5, route.error_50), (0.05, route.error_95)):
            # Five deviations of a share of draws, and as much again for the tables.
            beyond = np.mean(np.array(off) > error)
            assert abs(beyond - level) < 10 * math.sqrt(level * (1 - level) / draws)

    def test_a_stable_mode_is_exact_where_it_answers(self):
        """With a clear lead it is told without noise; with none it would be refused."""
        s = hs.statistics.mode(["a", "b"], rows=200)
        for share, said in ((0.9, True), (0.52, False)):
            rows = hs.populations.Simulator(
                lambda rng, n, share=share: ["a" if u < share else "b" for u in rng.random(n)]
            )
            found = hs.compare(s, rows, trials=10, delta=1e-6)
            assert ("propose-test" in [each.name for each in found.routes]) == said
            if said:
                assert route_of(found, "propose-test").error_95 == 0

    def test_blocks_need_a_range_or_candidates(self):
        """Of a function that never moves every block says the same: the draw is right but for 2 %.

        15 blocks are what two candidates need; the wrong one has a score of -7.5.
        """
        found = hs.compare(lambda _: 1.0, UNIT, rows=100, candidates=[0, 1], trials=2)
        route = route_of(found, "blocks")
        assert math.exp(-7.5 / 2) / (1 + math.exp(-7.5 / 2)) < 0.05
        assert (route.error_50, route.error_95, route.calls) == (0.0, 0.0, 15)
        assert route.guarantee == hs.Guarantee(epsilon=1.0)
        ranged = hs.compare(np.mean, UNIT, rows=100, low=0, high=1, trials=2)
        assert route_of(ranged, "blocks").calls == 31  # of 101 candidates
        assert route_of(ranged, "blocks, public guess").calls < 231

    def test_blocks_need_rows_and_one_number(self):
        """Fewer rows than blocks, and several numbers, are reasons."""
        few = hs.compare(np.mean, UNIT, rows=20, low=0, high=1, trials=2)
        assert "31 blocks" in reason_of(few, "blocks")
        two = hs.populations.Uniform(low=[0, 0], high=[1, 1])
        found = hs.compare(lambda t: t.mean(axis=0), two, rows=100, low=0, high=1, trials=2)
        assert "by vectors" in reason_of(found, "blocks")
        assert "centre= and radius=" in reason_of(found, "blocks, vectors")

    @pytest.mark.slow
    def test_a_range_means_the_candidates_that_blocks_take(self):
        """Even ones from 0 on for a function; those of a statistic are spaced as its own."""
        ask = {"rows": 100, "trials": 2}
        by_range = hs.compare(np.mean, UNIT, low=0, high=1, **ask)
        given = hs.compare(np.mean, UNIT, candidates=np.linspace(0, 1, 101), **ask)
        assert route_of(by_range, "blocks").error_95 == route_of(given, "blocks").error_95
        s = hs.statistics.median(rows=100, low=0, high=1)
        own = hs.compare(s, UNIT, trials=2)
        spaced = hs.Blocks(low=0, high=1, spacing="geometric").values
        given = hs.compare(s, UNIT, candidates=spaced, trials=2)
        assert route_of(own, "blocks").error_95 == route_of(given, "blocks").error_95

    @pytest.mark.slow
    def test_blocks_have_the_errors_of_their_own_simulation(self, monkeypatch):
        """`hs.Blocks` draws noise where this uses its law: the errors agree."""
        monkeypatch.setattr("hushed.comparing._block_routes.MOST_TABLES", 500)
        found = hs.compare(np.median, UNIT, rows=400, low=0, high=1, trials=500)
        made = hs.Blocks(low=0, high=1, epsilon=1.0)
        other = made.simulate(np.median, UNIT, 400, trials=500, isolated=False)
        route = route_of(found, "blocks")
        assert route.error_50 == pytest.approx(other.error_50, rel=0.1)
        assert route.error_95 == pytest.approx(other.error_95, rel=0.1)

    def test_several_numbers_have_the_error_of_the_largest(self):
        """Two means: the larger one of two Laplace errors."""
        found = hs.compare(
            lambda rows: rows.mean(axis=0),
            hs.populations.Uniform(low=[0, 0], high=[1, 1]),
            rows=100,
            trials=2,
        )
        one = route_of(found, "sampled, Laplace")
        both = 1 - math.sqrt(0.95)  # each exceeds it with this chance
        scale = one.error_50 / -math.log(1 - math.sqrt(0.5))
        assert one.error_95 == pytest.approx(-math.log(both) * scale, rel=1e-6)

    @pytest.mark.slow
    def test_a_private_number_of_rows_leaves_the_sampler_out(self):
        """Sampling replaces rows; the other promises are about a row more or less."""
        s = hs.statistics.median(low=0, high=1)
        found = hs.compare(s, UNIT, rows=50, trials=2)
        assert "number of rows must be public" in reason_of(found, "sampled, Laplace")
        assert {each.guarantee.neighbours for each in found.routes} == {"add-remove"}
        s = hs.statistics.interquartile_range(low=0, high=1)
        found = hs.compare(s, UNIT, rows=50, trials=2)
        assert "public number of rows" in reason_of(found, "inverse sensitivity")

    def test_what_never_moves_has_no_sampled_route(self):
        """A constant population gives a sensitivity of 0, which is no route but a reason."""
        constant = hs.populations.Simulator(lambda rng, n: np.full(n, 3.0))
        found = hs.compare(SEVEN, constant, trials=2)
        assert reason_of(found, "sampled, Laplace")
        assert found.spread_95 == 0

    def test_too_few_public_rows_are_a_reason(self):
        """A public table that is too small for the sampler leaves the other routes alone."""
        table = hs.populations.PublicTable(np.linspace(0, 1, 300))
        s = hs.statistics.median(rows=100, low=0, high=1)
        found = hs.compare(s, table, trials=2)
        assert "rows" in reason_of(found, "sampled, Laplace")
        assert found.recommended == "inverse sensitivity"
        assert found.population["kind"] == "public table"

    def test_people_are_named_if_rows_are_people(self):
        """A statistic of people promises to people."""
        s = hs.statistics.median(rows=50, low=0, high=1, unit="person")
        found = hs.compare(s, UNIT, trials=2)
        assert all("person" in each.promise or "people" in each.promise for each in found.routes)


class TestRefusals:
    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"epsilon": 0}, "epsilon"),
            ({"epsilon": 1, "error": 1}, "not both"),
            ({"error": -1}, "error"),
            ({"gamma": 1}, "gamma"),
            ({"delta": 1}, "delta"),
            ({"worth": 0.5}, "worth"),
            ({"trials": 1}, "trials"),
            ({"seed": -1}, "seed"),
            ({"rows": 8}, "for 7 rows"),
            ({"candidates": [31]}, "candidate"),
            ({"low": 0, "high": 1}, "own range"),
        ],
    )
    def test_parameters_out_of_range(self, given, said):
        """Each is refused with its name."""
        with pytest.raises(ParameterError, match=said):
            hs.compare(SEVEN, SAME, **given)

    @pytest.mark.parametrize("asked", [3, "median", np.ndarray, None])
    def test_what_is_neither_statistic_nor_function(self, asked):
        """It is refused, with what is allowed."""
        with pytest.raises(ParameterError, match="statistic such as"):
            hs.compare(asked, UNIT, rows=10)

    @pytest.mark.parametrize("given", [{"low": 0}, {"low": 1, "high": 0}, {"candidates": []}])
    def test_a_range_of_a_function_has_two_ends(self, given):
        """And the lower one is below the other."""
        with pytest.raises(ParameterError):
            hs.compare(np.mean, UNIT, rows=10, **given)

    def test_rows_are_no_population(self):
        """Nobody said that they are public; the message says how to."""
        with pytest.raises(ParameterError, match="PublicTable"):
            hs.compare(SEVEN, np.arange(7.0))

    def test_a_function_needs_a_number_of_rows(self):
        """It states none itself."""
        with pytest.raises(ParameterError, match="rows"):
            hs.compare(np.mean, UNIT)

    def test_a_table_with_too_few_rows(self):
        """Tables of more rows than there are cannot be drawn."""
        with pytest.raises(BadRows, match="promise='table'"):
            hs.compare(SEVEN, hs.populations.PublicTable(np.arange(5.0)))

    def test_populations_and_functions_that_fail(self):
        """Their errors are told; a population of the wrong size is one."""
        with pytest.raises(BadFunction, match="ZeroDivisionError"):
            hs.compare(lambda _: 1 / 0, UNIT, rows=10, trials=2)
        short = hs.populations.Simulator(lambda rng, n: rng.random(n - 1))
        with pytest.raises(BadRows, match=r"asked for 7 rows and gave 6$"):
            hs.compare(SEVEN, short, trials=2)
        broken = hs.populations.Simulator(lambda rng, n: rng.nothing(n))
        with pytest.raises(BadRows, match="AttributeError"):
            hs.compare(SEVEN, broken, trials=2)

    def test_categories_are_no_candidates(self):
        """A mode has its own."""
        with pytest.raises(ParameterError, match="categories"):
            hs.compare(hs.statistics.mode([1, 2], rows=7), SAME, candidates=[1, 2])


class TestRecord:
    @pytest.mark.slow
    def test_equal_seeds_give_equal_records(self):
        """The same seed gives the same record, another one another."""
        s = hs.statistics.median(rows=30, low=0, high=1)
        first, again, other = (hs.compare(s, UNIT, trials=10, seed=seed) for seed in (1, 1, 2))
        assert first == again
        assert first.routes != other.routes

    @pytest.mark.slow
    def test_any_number_of_workers_gives_the_same(self):
        """Here, and in two threads."""
        s = hs.statistics.median(rows=30, low=0, high=1)
        here = hs.compare(s, UNIT, trials=10, workers=1)
        with joblib.parallel_config("threading", n_jobs=2):
            assert hs.compare(s, UNIT, trials=10) == here

    @pytest.mark.slow
    def test_worker_processes_give_the_same(self):
        """In processes of their own, too."""
        s = hs.statistics.median(rows=30, low=0, high=1)
        here = hs.compare(s, UNIT, trials=10, workers=1)
        assert hs.compare(s, UNIT, trials=10, workers=2) == here

    @pytest.mark.slow
    def test_it_survives_a_trip_through_json(self):
        """All fields come back; what is no comparison is refused."""
        found = hs.compare(SEVEN, SAME, error=10.0, trials=3)
        assert hs.Comparison.from_json(found.to_json()) == found
        record = json.loads(found.to_json())
        assert record["schema_version"] == 1
        for wrong in ("{}", "[]", "3", json.dumps({**record, "more": 1})):
            with pytest.raises(ParameterError, match="not a hushed comparison"):
                hs.Comparison.from_json(wrong)

    @pytest.mark.slow
    def test_it_prints_a_table_that_fits(self):
        """At most 100 columns: all routes, the best first, the reasons, the recommendation."""
        s = hs.statistics.median(rows=100, low=1, high=1e6, unit="person")
        incomes = hs.populations.Simulator(
            lambda rng, n: np.clip(rng.lognormal(10, 0.8, n), 1, 1e6), name="incomes"
        )
        for given in ({"epsilon": 0.01}, {"error": 10_000.0}):
            found = hs.compare(s, incomes, trials=5, **given)
            text = str(found)
            assert max(map(len, text.splitlines())) <= 100
            places = [text.index(f"\n{each.name}") for each in found.routes]
            assert places == sorted(places)
            assert all(each.reason[:30] in text for each in found.left_out)
            assert f"Recommended: {found.recommended}" in text
            assert "incomes" in text

    def test_the_spread_is_that_of_the_answers(self):
        """The median of 101 uniform numbers has a standard deviation of 0.05, so 95 % is 0.097."""
        found = hs.compare(np.median, UNIT, rows=101, trials=400)
        assert found.spread_50 == pytest.approx(0.033, rel=0.15)
        assert found.spread_95 == pytest.approx(0.097, rel=0.15)

    @pytest.mark.slow
    def test_the_stated_standard_error_is_that_of_other_seeds(self):
        """Over seeds, an error deviates by about as much as each record states."""
        s = hs.statistics.median(rows=40, low=0, high=1)
        found = [
            route_of(hs.compare(s, UNIT, trials=30, seed=seed), "smooth, lomax")
            for seed in range(10)
        ]
        seen = np.std([each.error_95 for each in found], ddof=1)
        stated = np.median([each.spread for each in found])
        assert 0.4 < stated / seen < 2.5


def test_blocks_are_named_with_their_relation_and_what_they_take():
    """Blocks release functions, by default with a public number of rows."""
    maximum = hs.statistics.maximum(low=0, high=1000)
    normal = hs.populations.Normal(mean=50, std=3)
    found = hs.compare(maximum, normal, rows=500, trials=2, candidates=range(0, 1000, 10))
    how = next(each.how for each in found.routes if each.name == "blocks")
    assert how == (
        "hs.Blocks(candidates, epsilon=1, neighbours='add-remove') of a function that computes it"
    )


def test_what_is_written_in_python_states_the_very_numbers():
    """A sensitivity rounded down, or an epsilon rounded up, would promise less than is said."""
    level, change = 0.12345678, 1e-6 / 3
    mean = hs.statistics.trimmed_mean(rows=30, low=0, high=100, trim=0.1)
    normal = hs.populations.Normal(mean=50, std=3)
    found = hs.compare(mean, normal, epsilon=level, delta=change, trials=2)
    numbers = {each.name: re.findall(r"\b(\w+)=([0-9.e+-]+)", each.how) for each in found.routes}
    assert len(numbers) > 4
    for stated in numbers.values():
        assert float(dict(stated)["epsilon"]) == level
        assert float(dict(stated).get("delta", change)) == change
    how = next(each.how for each in found.routes if each.name == "global sensitivity")
    made = eval(how, {"hs": hs, "s": mean})  # it can be copied as it is
    assert made.sensitivity.value >= mean.global_sensitivity


def test_a_population_of_people_is_refused_with_what_takes_it():
    """Rows are not split by people unless that is asked; the message says how."""
    people = hs.populations.Users(hs.populations.Uniform(low=0, high=1), sizes=3)
    with pytest.raises(ParameterError, match="draws users: say user=0"):
        hs.compare(np.mean, people, rows=20)


@pytest.mark.filterwarnings("ignore:the column holds objects")
@pytest.mark.parametrize(
    "cells", [[np.nan] * 40, ["a", "b"] * 20, [7.0, 9.0] * 20], ids=["nan", "texts", "outside"]
)
def test_a_population_without_a_number_in_the_range_is_refused(cells):
    """All rows would count as one end of the range, and every way would have no error."""
    public = hs.populations.PublicTable(np.array(cells, dtype=object), promise="table")
    asked = hs.statistics.median(low=0, high=5)
    with pytest.raises(ParameterError, match="number from 0 to 5"):
        hs.compare(asked, public, rows=9, epsilon=1.0, trials=5)


def test_a_population_of_one_number_in_the_range_is_compared():
    """Equal rows are rows all the same."""
    public = hs.populations.PublicTable(np.full(40, 5.0), promise="table")
    assert hs.compare(
        hs.statistics.median(low=0, high=5), public, rows=9, epsilon=1.0, trials=5
    ).routes
