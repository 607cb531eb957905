"""A public table says no more than its rows can.

Coverage is counted against the law that public and private rows come from, never against the table.
A failure count is compared with its binomial tail at `FALSE_ALARM`, with fixed seeds.
"""

import json
import math
import re
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from typer.testing import CliRunner

import hushed as hs
from hushed.auditing._population import draw_pairs
from hushed.cli import app
from hushed.errors import BadFunction, BadRows, ParameterError, PrivateRowsAsPopulation, TooFewRows
from hushed.sensitivity._blockwise import bound_average

FALSE_ALARM = 1e-6
RUNS = 310
Table = hs.populations.PublicTable


def law(rng, count):
    """Lognormal rows: skewed, and no two are equal."""
    return rng.lognormal(size=count)


def mean(rows):
    return float(rows.mean())


def sum_if_distinct(rows):
    """Zero on any table with a repeated row: what resampling gets most wrong."""
    return float(rows.sum()) if len(np.unique(rows)) == len(rows) else 0.0


def gated_sum(rows):
    """A sum behind a gate that a single row may open."""
    return float(rows.sum()) if np.sin(40 * rows).sum() > 0 else 0.0


FUNCTIONS = [mean, sum_if_distinct, gated_sum]


def replaced(table, places, fresh):
    """Movable copies of a table: one for each place, with a fresh row there."""
    for place, row in zip(places, fresh, strict=True):
        other = table.copy()
        other[place] = row
        yield other


def real_movement(f, rng, rows, protect="record", arrange=lambda table: table):
    """How far the answer moves on private rows from the law: of one record, or of the worst."""
    table = arrange(law(rng, rows))
    places = [int(rng.integers(rows))] if protect == "record" else range(rows)
    base = f(table)
    return max(abs(base - f(x)) for x in replaced(table, places, law(rng, len(places))))


def failures(f, public_rows, runs, *, rows, promise="population", moved=real_movement, **settings):
    """How often the real movement exceeds the sampled sensitivity, over tables and samplers."""
    protect = settings.get("protect", "record")
    found = 0
    for run in range(runs):
        rng = np.random.default_rng([run, public_rows])
        population = Table(law(rng, public_rows), promise=promise)
        s = hs.sample_sensitivity(f, population, rows=rows, seed=run, workers=1, **settings)
        found += moved(f, rng, rows, protect) > s.value
    return found


def believable(count, runs, gamma):
    """Whether so many failures may come from a probability of gamma at most."""
    return stats.binom.sf(count - 1, runs, gamma) > FALSE_ALARM


class TestCoverage:
    """What gamma says, for the law itself.

    `RUNS` tell a gamma of 0.2 from twice as much, which is what a rank one too low makes of it for
    the mean, with a probability of 0.999.
    """

    @pytest.mark.slow
    @pytest.mark.parametrize("f", FUNCTIONS)
    def test_disjoint_tables_are_exact(self, f):
        """The least number of rows that is accepted keeps gamma, and does not overshoot it."""
        found = failures(f, 20, RUNS, rows=4, gamma=0.2, calibration="marginal")
        assert believable(found, RUNS, 0.2)
        if f is mean:  # no ties: the probability is gamma itself
            assert stats.binom.cdf(found, RUNS, 0.2) > FALSE_ALARM

    @pytest.mark.slow
    def test_movements_below_the_largest_are_kept_as_exactly(self):
        """Of more pairs than are needed, it is not the largest movement that counts."""
        settings = {"rows": 4, "gamma": 0.2, "calibration": "marginal", "pairs": 9}
        found = failures(mean, 45, RUNS, **settings)
        assert believable(found, RUNS, 0.2)
        assert stats.binom.cdf(found, RUNS, 0.2) > FALSE_ALARM

    @pytest.mark.parametrize("f", [mean, sum_if_distinct])
    @pytest.mark.slow
    def test_drawing_with_replacement_fails_this_very_test(self, f):
        """Resampled tables, where the same gamma is asked of the same law, break it."""
        settings = {"rows": 20, "gamma": 0.05, "calibration": "marginal"}
        found = failures(f, 5, 100, promise="table", **settings)
        assert not believable(found, 100, 0.05)

    def test_a_function_that_was_fitted_to_the_public_rows_is_not_covered(self):
        """The error of a model is small on the rows that it was fitted to; words say so."""
        rng = np.random.default_rng(1)
        public = rng.normal(size=2400)

        def error(rows):  # of a rule that gives 0.01 x where it learned the row, and x elsewhere
            known = np.isin(rows, public)
            return float(np.where(known, 0.01 * rows, rows).mean())

        s = hs.sample_sensitivity(
            error, Table(public), rows=20, gamma=0.05, symmetric=True, workers=1
        )
        fresh = rng.normal(size=(200, 21))
        moves = [abs(error(each[:20]) - error(each[1:])) for each in fresh]
        assert np.mean(np.array(moves) > s.value) > 0.5
        released = hs.release(error, fresh[0, :20], hs.Laplace(s, epsilon=1.0))
        assert "chosen without looking at these public" in released.certificate.explain()

    @pytest.mark.slow
    def test_luck_of_the_sampler(self):
        """At most the stated sampling error of the samples covers less than a share of pairs.

        The mean of n exponential rows moves by an exponential variable of mean 1 / n. Under a rank
        one too low 22 % of the samples are unlucky in place of 5 %, which 150 show with 0.999.
        """
        runs, rows, unlucky = 150, 4, 0
        for run in range(runs):
            public = np.random.default_rng(run).exponential(size=95)
            s = hs.sample_sensitivity(
                mean, Table(public), rows=rows, gamma=0.2, seed=run, workers=1
            )
            unlucky += math.exp(-rows * s.value) > s.sampling.tail_mass
        assert believable(unlucky, runs, s.sampling.sampling_error)
        assert unlucky > 0
        assert (1 - s.sampling.tail_mass) * (1 - s.sampling.sampling_error) >= 0.8

    @pytest.mark.slow
    @pytest.mark.parametrize("f", [mean, sum_if_distinct])
    @pytest.mark.parametrize(("protect", "public_rows"), [("everyone", 96), ("simultaneous", 33)])
    def test_all_records_at_once(self, f, protect, public_rows):
        """Both ways to protect everyone keep gamma for the worst of all n records."""
        settings = {"rows": 4, "gamma": 0.2, "calibration": "marginal", "protect": protect}
        assert believable(failures(f, public_rows, RUNS, **settings), RUNS, 0.2)

    @pytest.mark.slow
    def test_everyone_resampled_collapses(self):
        """As many public rows as private ones cannot protect 20 people at once."""
        settings = {"rows": 20, "gamma": 0.2, "calibration": "marginal", "protect": "everyone"}
        found = failures(mean, 20, 60, promise="table", **settings)
        assert not believable(found, 60, 0.2)
        with pytest.raises(TooFewRows):
            failures(mean, 20, 1, **settings)

    @pytest.mark.parametrize("gamma", ["0.1", "0.05"])
    @pytest.mark.parametrize("f", FUNCTIONS)
    @pytest.mark.soak
    def test_smaller_gammas_are_covered_and_not_at_one_rank_lower(self, f, gamma):
        """With the least rows that are accepted; 1,000 and 2,000 runs tell twice as many failures.

        By their law alone, with a probability of 0.9999: the mean has no ties.
        """
        share, counted = float(gamma), np.zeros(2, dtype=int)
        pairs, runs = round(1 / share) - 1, round(100 / share)
        for run in range(runs):
            rng = np.random.default_rng([run, pairs])
            s = hs.sample_sensitivity(
                f,
                Table(law(rng, 5 * pairs)),
                rows=4,
                gamma=share,
                calibration="marginal",
                seed=run,
                workers=1,
            )
            assert (s.pairs, s.rank) == (pairs, pairs)
            counted += real_movement(f, rng, 4) > s.draws[[-1, -2]]
        assert believable(counted[0], runs, share)
        if f is mean:
            assert stats.binom.cdf(counted[0], runs, share) > FALSE_ALARM
            assert not believable(counted[1], runs, share)

    @pytest.mark.parametrize(
        "arrange",
        [
            pytest.param(np.sort, marks=pytest.mark.slow),
            pytest.param(np.asarray, marks=pytest.mark.soak),
        ],
    )
    @pytest.mark.parametrize("f", [mean, sum_if_distinct])
    @pytest.mark.parametrize(
        ("protect", "public_rows", "rows"),
        [("record", 21, 40), ("everyone", 196, 8), ("simultaneous", 73, 8)],
    )
    def test_blocks(self, f, protect, public_rows, rows, arrange):
        """Averages over blocks are covered with fewer public rows than private ones.

        The private rows are sorted, too: blocks that were cut, and not dealt, would be more alike.
        """

        def moved(function, rng, rows, protect):
            return real_movement(function, rng, rows, protect, arrange)

        settings = {"rows": rows, "gamma": 0.2, "protect": protect, "calibration": "marginal"}
        blockwise = hs.Blockwise(f, rows=4)
        found = failures(blockwise, public_rows, RUNS, moved=moved, **settings)
        assert believable(found, RUNS, 0.2)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("f", "public_rows"), [(mean, 30), (mean, 15), (sum_if_distinct, 30), (gated_sum, 15)]
    )
    def test_given_the_rest(self, f, public_rows):
        """The weaker promise holds for what it says: a fresh record among the given others."""
        rows, found = 12, 0
        for run in range(RUNS):
            rng = np.random.default_rng([run, public_rows])
            public = law(rng, public_rows)
            s = hs.sample_sensitivity(
                f,
                Table(public, promise="given-the-rest"),
                rows=rows,
                gamma=0.2,
                calibration="marginal",
                seed=run,
                workers=1,
            )
            rest = public[s.sampling.design.dealt[2 * 4 :]]
            assert len(rest) == public_rows - 8
            table = rng.choice(rest, size=rows, replace=len(rest) < rows)
            own = law(rng, 2)
            first, second = replaced(table, [int(rng.integers(rows))] * 2, own)
            found += abs(f(first) - f(second)) > s.value
        assert believable(found, RUNS, 0.2)


CONTAINERS = {
    "array": lambda x: np.column_stack([x, -x]),
    "scalars": lambda x: x,
    "list": lambda x: x.tolist(),
    "pandas": lambda x: pd.DataFrame({"x": x}),
    "polars": lambda x: pl.DataFrame({"x": x}),
}


def numbers(table):
    """First column, whatever holds it."""
    values = np.asarray(table)
    return values if values.ndim == 1 else values[:, 0]


class TestDealing:
    """Which rows the trials see."""

    @pytest.mark.slow_cases("simultaneous-pandas")
    @pytest.mark.parametrize("held", CONTAINERS)
    @pytest.mark.parametrize("protect", ["record", "simultaneous"])
    def test_no_two_trials_share_a_row(self, held, protect):
        """Every row reaches one trial at most, in a shuffled order that follows from the seed."""
        population = Table(CONTAINERS[held](np.arange(120.0)))
        f = lambda rows: float(numbers(rows).mean())  # noqa: E731
        settings = {"rows": 5, "pairs": 12, "calibration": "marginal", "protect": protect}
        design = hs.sample_sensitivity(f, population, **settings).sampling.design
        drawn = [numbers(design.draw(np.random.default_rng(), i)) for i in range(12)]
        size = 6 if protect == "record" else 10
        assert {len(each) for each in drawn} == {size}
        assert len(set(np.concatenate(drawn))) == 12 * size
        other = hs.sample_sensitivity(f, population, **settings, seed=1).sampling.design
        assert not np.array_equal(other.dealt, design.dealt)
        assert not np.array_equal(np.sort(design.dealt), design.dealt)

    @pytest.mark.slow
    def test_the_function_sees_what_was_dealt(self):
        """Rows that the function is shown in different trials are different rows."""
        seen = []

        def noting(rows):
            seen.append(rows.copy())
            return float(rows.mean())

        s = hs.sample_sensitivity(
            noting, Table(np.arange(114.0)), rows=5, calibration="marginal", workers=1
        )
        pairs = seen[3:][: 2 * s.pairs]  # after three looks at the first table
        for i in range(s.pairs):
            assert np.count_nonzero(pairs[2 * i] != pairs[2 * i + 1]) == 1
        rows = [set(pairs[2 * i]) | set(pairs[2 * i + 1]) for i in range(s.pairs)]
        assert [len(each) for each in rows] == [6] * 19
        assert len(set.union(*rows)) == 114

    @pytest.mark.slow
    def test_exchanged_rows_are_used_once_given_the_rest(self):
        """The two rows of a pair are no other's, and the others never take part in an exchange."""
        seen = []

        def noting(rows):
            seen.append(rows.copy())
            return float(rows.mean())

        s = hs.sample_sensitivity(
            noting,
            Table(np.arange(60.0), promise="given-the-rest"),
            rows=5,
            calibration="marginal",
            workers=1,
        )
        exchanged, others = [], set()
        pairs = seen[3:][:38]  # after three looks at the first table
        for first, second in zip(pairs[::2], pairs[1::2], strict=True):
            differ = first != second
            assert differ.sum() == 1
            exchanged += [first[differ][0], second[differ][0]]
            others |= set(first[~differ])
            assert len(set(first)) == 5  # without repetition: there are enough
        assert len(set(exchanged)) == 2 * s.pairs
        assert not others & set(exchanged)

    @pytest.mark.parametrize("promise", ["population", "given-the-rest", "table"])
    @pytest.mark.parametrize("batch", [False, True])
    def test_the_same_for_any_number_of_workers(self, promise, batch):
        """Movements follow from the seed alone, at once or one by one, here or in workers."""
        public = np.random.default_rng(0).random((6000, 2))
        f = (lambda t: t[:, :, 0].mean(axis=1)) if batch else (lambda t: t[:, 0].mean())
        draws = [
            hs.sample_sensitivity(
                f, Table(public, promise=promise), rows=20, pairs=200, batch=batch, workers=workers
            ).draws
            for workers in (1, 2)
        ]
        assert np.array_equal(*draws)
        assert (draws[0] > 0).all()

    @pytest.mark.parametrize("promise", ["population", "given-the-rest"])
    def test_batches_deal_the_same_rows(self, promise):
        """A block of pairs sees the pairs that single trials see; the last ones are cut off."""
        public = Table(np.arange(9000.0) ** 1.5, promise=promise)
        settings = {"rows": 29, "pairs": 300, "symmetric": True}
        one = hs.sample_sensitivity(lambda t: t.mean(), public, **settings)
        many = hs.sample_sensitivity(lambda t: t.mean(axis=1), public, **settings, batch=True)
        assert many.draws == pytest.approx(one.draws, rel=1e-9)

    @pytest.mark.slow
    def test_the_position_is_random_unless_symmetric(self):
        """A function of one row moves when its place is drawn: one time in the number of rows."""
        public = np.random.default_rng(0).random(30_000)
        for promise in ("population", "given-the-rest"):
            for batch in (False, True):
                f = (lambda t: t[:, 2]) if batch else (lambda t: t[2])
                table = Table(public, promise=promise)
                s = hs.sample_sensitivity(f, table, rows=5, pairs=4000, batch=batch)
                moved = np.count_nonzero(s.draws)
                assert abs(moved - 800) < 5 * math.sqrt(4000 * 0.2 * 0.8), (promise, batch)

    def test_given_the_rest_of_few_rows_repeats_them(self):
        """A rest smaller than the table is drawn from with repetition, and said to be."""
        table = Table(np.random.default_rng(0).random(40), promise="given-the-rest")
        s = hs.sample_sensitivity(mean, table, rows=50, calibration="marginal")
        data = np.random.default_rng(1).random(50)
        words = hs.release(mean, data, hs.Laplace(s, epsilon=1)).certificate.explain()
        assert "from the same 2 public rows for every pair, with repetition" in words

    @pytest.mark.slow
    def test_nominal_tables_are_resampled(self):
        """A table that the caller admits to be private is drawn from as it is, for no promise."""
        private = np.random.default_rng(0).random(30)
        s = hs.sample_sensitivity(mean, Table(private), rows=30, data_dependent=True)
        assert s.sampling.design.route == "resampled"
        certificate = hs.release(mean, private, hs.Laplace(s, epsilon=1)).certificate
        assert certificate.explain().startswith("WARNING")
        assert (certificate.sampling.public_rows, certificate.sampling.tables) == (0, 0)

    def test_other_populations_draw_as_ever(self):
        """Ranges, laws and simulators are asked in each trial's own stream."""
        s = hs.sample_sensitivity(mean, hs.populations.Uniform(low=0, high=1), rows=20)
        assert s.sampling.design.route == "independent"
        assert s.value == 0.047255297497481696


def asked(population, **settings):
    return hs.sample_sensitivity(mean, population, **{"rows": 10, "workers": 1, **settings})


class TestRefusals:
    """Too few rows: how many would be enough, and what these ones support."""

    @pytest.mark.slow_cases("given-the-rest-dkw")
    @pytest.mark.parametrize("calibration", ["marginal", "training-conditional", "dkw"])
    @pytest.mark.parametrize("promise", ["population", "given-the-rest"])
    def test_rows_that_would_do_and_gamma_that_these_support(self, calibration, promise):
        """Both numbers are exact: what they name passes, one row less or a smaller gamma fails."""
        gamma = 0.04
        settings = {"gamma": gamma, "calibration": calibration}
        rng = np.random.default_rng(0)
        with pytest.raises(TooFewRows) as caught:
            asked(Table(rng.random(40), promise=promise), **settings)
        needed, supported = caught.value.needed, caught.value.supported
        assert caught.value.given == 40
        assert str(needed) in str(caught.value)
        assert asked(Table(rng.random(needed), promise=promise), **settings).gamma == gamma
        with pytest.raises(TooFewRows):
            asked(Table(rng.random(needed - 1), promise=promise), **settings)
        if supported is None:
            assert "no gamma below 1" in str(caught.value)
            return
        few = Table(rng.random(40), promise=promise)
        assert asked(few, gamma=supported, calibration=calibration).gamma == supported
        with pytest.raises((TooFewRows, ParameterError)):
            asked(few, gamma=supported * 0.9, calibration=calibration)

    @pytest.mark.parametrize("protect", ["everyone", "simultaneous"])
    def test_protecting_all_takes_more(self, protect):
        """Under the same gamma, all ten records take 10 times the pairs, or 2 n rows a table."""
        count = {"everyone": 99 * 11, "simultaneous": 9 * 20}[protect]
        settings = {"gamma": 0.1, "calibration": "marginal", "protect": protect}
        rng = np.random.default_rng(0)
        assert asked(Table(rng.random(count)), **settings).gamma == 0.1
        with pytest.raises(TooFewRows) as caught:
            asked(Table(rng.random(count - 1)), **settings)
        assert caught.value.needed == count
        assert caught.value.supported > 0.1
        with pytest.raises(ParameterError, match="one replaced record among given others"):
            asked(Table(rng.random(count), promise="given-the-rest"), **settings)

    def test_a_calibration_that_would_do_is_named_as_it_is_asked_for(self):
        """In Python and on the command line; what it costs is said, too."""
        public = Table(np.random.default_rng(0).random(19 * 11))
        with pytest.raises(TooFewRows) as caught:
            asked(public, gamma=0.05)
        told = "calibration='marginal' (--calibration marginal on the command line), which"
        assert told in str(caught.value)
        assert "an unlucky sample is a part" in str(caught.value)
        assert asked(public, gamma=0.05, calibration="marginal").gamma == 0.05

    def test_pairs_are_limited_too(self):
        """More pairs than the rows make are refused also where no gamma was asked for."""
        assert asked(Table(np.arange(55.0)), pairs=5).pairs == 5
        with pytest.raises(TooFewRows) as caught:
            asked(Table(np.arange(54.0)), pairs=5)
        assert caught.value.needed == 55

    def test_the_advice_works(self):
        """The block size that the message names is accepted, and so is the weaker promise."""
        public = np.random.default_rng(0).random(300)
        with pytest.raises(TooFewRows) as caught:
            asked(Table(public), rows=100)
        told = r"hs.Blockwise\(f, rows=10\) \(--block-rows 10 .*\) and calibration=.marginal."
        assert re.search(told, str(caught.value))  # no block of two rows fits the other one
        where = "PublicTable(..., promise='given-the-rest') (--promise given-the-rest"
        assert where in str(caught.value)
        with pytest.raises(TooFewRows, match=r"hs.Blockwise\(f, rows=10\)") as caught:
            asked(Table(public), rows=100, calibration="marginal")
        assert "leave" not in str(caught.value)
        words = r"blocks of 14 rows \(of 98 rows: leave 3 out.*hs.Blockwise\(f, rows=14\)"
        with pytest.raises(TooFewRows, match=words):  # no size divides a prime
            asked(Table(public), rows=101, calibration="marginal")
        found = hs.sample_sensitivity(
            hs.Blockwise(mean, rows=10), Table(public), rows=100, calibration="marginal"
        )
        assert found.gamma == 0.05
        assert asked(Table(public, promise="given-the-rest"), rows=100).gamma == 0.05

    @pytest.mark.parametrize(("count", "helps"), [(2_298, False), (2_299, True)])
    def test_a_calibration_that_would_be_refused_too_is_not_advised(self, count, helps):
        """Nineteen pairs of 121 rows are the fewest; of one row less there are eighteen."""
        public = np.random.default_rng(0).random(count)
        with pytest.raises(TooFewRows) as caught:
            asked(Table(public), rows=120)
        assert ("marginal" in str(caught.value)) == helps
        if helps:
            assert asked(Table(public), rows=120, calibration="marginal").gamma == 0.05

    def test_errors_survive_a_trip(self):
        """The error can be pickled, as workers need."""
        import pickle

        with pytest.raises(TooFewRows) as caught:
            asked(Table(np.arange(9.0)))
        again = pickle.loads(pickle.dumps(caught.value))
        assert (str(again), again.needed) == (str(caught.value), caught.value.needed)

    def test_the_private_table_is_no_way_out(self):
        """Under a weaker promise, too, the private rows are recognised."""
        private = np.random.default_rng(0).random(250)
        for promise in ("given-the-rest", "table"):
            s = asked(Table(private, promise=promise), rows=250)
            with pytest.raises(PrivateRowsAsPopulation):
                hs.release(mean, private, hs.Laplace(s, epsilon=1))

    def test_a_table_in_disguise(self):
        """What passes a public table on, description and all, is not taken for a simulator."""

        class Disguised:
            table = Table(np.random.default_rng(0).random(60))

            def draw(self, rng, count):
                return self.table.draw(rng, count)

            def describe(self):
                return self.table.describe()

        with pytest.raises(ParameterError, match="Give it a kind of its own"):
            asked(Disguised())

        class Derived(Table):
            pass

        with pytest.raises(TooFewRows):
            asked(Derived(np.random.default_rng(0).random(60)))

    def test_unknown_promises_and_sizes(self):
        """What no table can promise is refused at once."""
        with pytest.raises(ParameterError, match="promise must be one of"):
            Table(np.arange(9.0), promise="law")
        with pytest.raises(BadRows, match="10 rows were asked of a public table of 9"):
            Table(np.arange(9.0)).draw(np.random.default_rng(), 10)

    @pytest.mark.parametrize("rows", [2, 3, 10, 60])
    @pytest.mark.parametrize("gamma", [0.01, 0.1, 0.3, 0.6])
    def test_sharing_rows_would_prove_nothing_more(self, rows, gamma):
        """Where disjoint tables are too few, the correction for shared rows is not enough either.

        Pairs of rows of their own among shared others: N_R = N - 2 m rows make K independent
        sets of n - 1, and a sample of k-th rank m covers too little with probability at most
        exp(-2 K u^2) + Pr(Bin(m, 1 - gamma + u) >= k), for every u.
        """
        for tables in (1, 2, 5, 20, 100):
            public_rows = tables * (rows + 1) + rows  # one short of another table
            disjoint = (1 - gamma) ** tables
            for pairs in {1, 2, tables, 2 * tables, 10 * tables, public_rows // 2}:
                sets = (public_rows - 2 * pairs) // (rows - 1)
                if sets < 1:
                    continue
                slack = np.linspace(0, gamma, 101)
                shared = np.exp(-2 * sets * slack**2) + (1 - gamma + slack) ** pairs
                assert shared.min() >= disjoint


def certificate(f, population, rows=100, **settings):
    s = hs.sample_sensitivity(f, population, rows=rows, **settings)
    return hs.release(f, law(np.random.default_rng(9), rows), hs.Laplace(s, epsilon=1)).certificate


ROUTES = {
    "disjoint": (Table(law(np.random.default_rng(0), 11_400), name="survey"), mean),
    "given-the-rest": (
        Table(law(np.random.default_rng(0), 400), name="survey", promise="given-the-rest"),
        mean,
    ),
    "resampled": (
        Table(law(np.random.default_rng(0), 400), name="survey", promise="table"),
        mean,
    ),
    "blocks": (
        Table(law(np.random.default_rng(0), 700), name="survey"),
        hs.Blockwise(mean, rows=5),
    ),
}


class TestCertificates:
    """The route and its assumption are always stated."""

    @pytest.mark.parametrize(
        ("route", "said", "unsaid"),
        [
            (
                "disjoint",
                [
                    "11400 public rows were shuffled and dealt",
                    "no two pairs share a row (they make 112 at most)",
                    "the law that the public rows were drawn from",
                    "none was left out for being equal to another",
                    "no person of the private table is in the public one",
                    "chosen without looking at these public rows: one that was fitted to them",
                ],
                ["WEAKER", "ONLY", "average of"],
            ),
            (
                "given-the-rest",
                [
                    "THE PROMISE IS A WEAKER ONE",
                    "the other 99 were drawn from the same 176 public rows for every pair, without",
                    "Nothing is promised for a table whose other rows look different",
                    "no person of the private table is in the public one",
                    "chosen without looking at these public rows: one that was fitted to them",
                    "of somebody with several, one alone is covered",
                ],
                ["dealt", "average of", "gamma again"],
            ),
            (
                "resampled",
                [
                    "THE PROMISE IS ABOUT THE 400 PUBLIC ROWS ONLY",
                    "no gamma is established",
                    "draws from the rows of the public table",
                ],
                ["shuffled", "WEAKER", "chosen without looking at these public rows"],
            ),
            (
                "blocks",
                [
                    "the average of the function over 20 blocks of 5 rows",
                    "pairs of tables of 5 rows",
                    "no two pairs share a row (they make 116 at most)",
                    "one block moves the average by 1 / 20 of that",
                ],
                ["WEAKER", "ONLY"],
            ),
        ],
    )
    def test_words(self, route, said, unsaid):
        """Each route is told in its own words, and in no other's."""
        population, f = ROUTES[route]
        words = certificate(f, population).explain()
        for each in said:
            assert each in words
        for each in unsaid:
            assert each not in words

    @pytest.mark.parametrize("made", ["mixture", "mixture of a mixture", "people"])
    def test_words_of_what_draws_from_the_rows_again(self, made):
        """A mixture or a law of people says no more of the law behind public rows than they do."""
        again = Table(law(np.random.default_rng(2), 40), promise="table")
        mixed = hs.populations.Contaminated(again, hs.populations.Exponential(), share=0.1)
        population, user = {
            "mixture": (mixed, None),
            "mixture of a mixture": (hs.populations.Contaminated(mixed, mixed, share=0.5), None),
            "people": (hs.populations.Users(mixed, sizes=2), 0),
        }[made]
        known = 80 if made == "mixture of a mixture" else 40
        f = mean if user is None else (lambda rows: float(rows[:, 1].mean()))
        s = hs.sample_sensitivity(f, population, rows=5, gamma=0.2, user=user, workers=1)
        rows = population.draw(np.random.default_rng(3), 5)
        words = hs.release(f, rows, hs.Laplace(s, epsilon=1)).certificate.explain()
        assert f"NOTHING IS PROMISED OF THE LAW BEHIND THE {known} PUBLIC ROWS" in words
        assert f"where rows are drawn from {known} public ones, each as likely" in words
        assert f"NOTHING IS PROMISED OF THE LAW BEHIND THE {known} PUBLIC ROWS" in s.explain()
        if made == "mixture":
            assert "a mixture of the public table 'public table' of 40 rows and, with" in words
            found = hs.compare(mean, population, rows=5, epsilon=1, gamma=0.2, trials=2, workers=1)
            (sampled,) = (each for each in found.routes if each.name == "sampled, Laplace")
            assert sampled.promise.endswith("of such rows, made of public rows")
            assert found.recommended == "sampled, Laplace"
            assert "Of the law behind the 40 public rows" in found.advice

    def test_words_of_a_model_are_not_those_of_rows_drawn_again(self):
        """A model draws rows of its own; a mixture of laws has no public rows at all."""
        model = hs.populations.fitted(Table(np.random.default_rng(2).normal(size=(40, 1))))
        for population in (model, hs.populations.Contaminated(model, model, share=0.1)):
            s = hs.sample_sensitivity(mean, population, rows=5, gamma=0.2, workers=1)
            assert "NOTHING IS PROMISED" not in s.explain()

    @pytest.mark.parametrize("route", ROUTES)
    def test_verified_from_the_rows_alone(self, route):
        """Rows and function reproduce it; the promise is on the certificate."""
        population, f = ROUTES[route]
        text = certificate(f, population).to_json()
        assert hs.Certificate.from_json(text).to_json() == text
        told = json.loads(text)["sampling"]
        assert told["route"] == ("disjoint" if route == "blocks" else route)
        assert told["public_rows"] == len(population.frame)
        assert told["blocks"] == (20 if route == "blocks" else 1)
        rows = Table(population.frame, name="survey")
        assert hs.verify(text, f, population=rows).reproduced
        shuffled = Table(population.frame[::-1].copy(), name="survey")
        assert not hs.verify(text, f, population=shuffled).reproduced

    def test_another_route_on_the_certificate_is_seen(self):
        """A certificate that claims the stronger promise for the weaker numbers is refuted."""
        population, f = ROUTES["given-the-rest"]
        told = json.loads(certificate(f, population).to_json())
        told["sampling"]["route"] = "disjoint"
        with pytest.raises(ParameterError, match="route is not the promise"):
            hs.verify(json.dumps(told), f, population=population)
        told["sampling"]["population"]["promise"] = "population"
        with pytest.raises(ParameterError, match="public_rows are too few"):
            hs.verify(json.dumps(told), f, population=population)

    def test_blocks_belong_to_the_function(self):
        """Verifying averages takes the function that averages, and the other way round."""
        population, f = ROUTES["blocks"]
        text = certificate(f, population).to_json()
        with pytest.raises(ParameterError, match=r"hs.Blockwise\(f, rows=5\)"):
            hs.verify(text, mean, population=population)
        whole = certificate(*reversed(ROUTES["disjoint"])).to_json()
        with pytest.raises(ParameterError, match="over 20"):
            hs.verify(whole, hs.Blockwise(mean, rows=5), population=ROUTES["disjoint"][0])

    def test_promises_are_different_estimates(self):
        """Gamma is spent once for one estimate; another route is another estimate."""
        public = law(np.random.default_rng(0), 11_400)
        found = [
            hs.sample_sensitivity(mean, Table(public, promise=promise), rows=100)
            for promise in ("population", "given-the-rest", "table")
        ]
        assert len({s.fingerprint for s in found}) == 3


class TestBlocks:
    """What `Blockwise` does with its rows."""

    @pytest.mark.parametrize("held", CONTAINERS)
    def test_the_average_of_all_blocks(self, held):
        """Every row is in one block of the right size, and the average is that of the answers."""
        seen = []

        def noting(rows):
            seen.append(numbers(rows).copy())
            return [float(numbers(rows).sum()), 1]

        table = CONTAINERS[held](np.arange(60.0))
        value = hs.Blockwise(noting, rows=12)(table)
        assert sorted(np.concatenate(seen)) == list(range(60))
        assert {len(each) for each in seen} == {12}
        assert value == pytest.approx([59 * 60 / 2 / 5, 1])
        assert any(np.ptp(each) > 12 for each in seen)  # dealt, not cut in order

    def test_one_record_moves_one_block(self):
        """Whichever row is replaced, one block's answer changes, in an order fixed for all."""
        seen = []
        f = hs.Blockwise(lambda rows: seen.append(rows.copy()) or 0.0, rows=4)
        table = np.arange(20.0)
        f(table)
        for place in range(20):
            other = table.copy()
            other[place] = -1
            f(other)
            changed = [not np.array_equal(a, b) for a, b in zip(seen[:5], seen[-5:], strict=True)]
            assert sum(changed) == 1

    def test_sampled_and_released(self):
        """The movement of a block is divided by their number, and the average is released."""
        public, private = (law(np.random.default_rng(i), n) for i, n in ((0, 700), (1, 400)))
        f = hs.Blockwise(np.median, rows=5)
        s = hs.sample_sensitivity(f, Table(public), rows=400)
        block = hs.sample_sensitivity(np.median, Table(public), rows=5)
        assert s.draws == pytest.approx(block.draws / 80, rel=2e-3)
        assert s.value == s.draws[s.rank - 1] > block.value / 80
        assert s.sampling.function == "median"
        value = hs.release(f, private, hs.Laplace(s, epsilon=1e9)).value
        assert value == pytest.approx(f(private), rel=1e-6)
        again = hs.Blockwise(np.median, rows=5)  # an equal one is the same function
        hs.release(again, private, hs.Laplace(s, epsilon=1))
        for other in (np.median, hs.Blockwise(np.median, rows=10), hs.Blockwise(np.mean, rows=5)):
            with pytest.raises(BadFunction, match="another function"):
                hs.release(other, private, hs.Laplace(s, epsilon=1))

    def test_gamma_is_divided_among_blocks(self):
        """Everyone: all n rows count. Simultaneous: a block is one event, and so is each other."""
        settings = {"rows": 8, "gamma": 0.2, "calibration": "marginal"}
        public = Table(law(np.random.default_rng(0), 500))
        for protect, pairs in (("record", 4), ("everyone", 39), ("simultaneous", 9)):
            f = hs.Blockwise(mean, rows=4)
            s = hs.sample_sensitivity(f, public, protect=protect, **settings)
            assert s.pairs == pairs
            words = hs.release(
                f, law(np.random.default_rng(1), 8), hs.Laplace(s, epsilon=1)
            ).certificate.explain()
            assert ("each block held to gamma / 2" in words) == (protect == "simultaneous")

    @pytest.mark.parametrize("mechanism", ["gaussian", "exponential"])
    def test_vectors(self, mechanism):
        """Vectors are averaged by coordinate, whatever adds the noise."""
        f = hs.Blockwise(lambda rows: np.array([rows.mean(), rows.max(), 3.0]), rows=5)
        norm = {"gaussian": "l2", "exponential": "sup"}[mechanism]
        s = hs.sample_sensitivity(f, Table(law(np.random.default_rng(0), 700)), rows=50, norm=norm)
        data = law(np.random.default_rng(1), 50)
        if mechanism == "gaussian":
            value = hs.release(f, data, hs.Gaussian(s, epsilon=10, delta=1e-4)).value
            assert value == pytest.approx(f(data), abs=6 * s.value)
        else:
            assert hs.release(f, data, hs.Exponential(s, epsilon=1e3)).value == int(
                f(data).argmax()
            )

    def test_rounding_is_covered(self):
        """Averages too large for doubles are refused in public, and held in private."""
        public, data = (law(np.random.default_rng(i), n) for i, n in ((0, 700), (1, 50)))

        def huge(rows):  # doubles near 1e17 are 16 apart
            return 1e17 + 16 * float(rows.mean() > 3)

        with pytest.raises(BadFunction, match="public constant"):
            hs.sample_sensitivity(hs.Blockwise(huge, rows=5), Table(public), rows=50)

        def sometimes(rows):
            return 1e30 if rows.max() > 1e6 else float(rows.mean())

        f = hs.Blockwise(sometimes, rows=5)
        s = hs.sample_sensitivity(f, Table(public), rows=50)
        data[0] = 1e7
        value = hs.release(f, data, hs.Laplace(s, epsilon=1)).value
        assert value == pytest.approx(s.value * 2**40, rel=1e-6)

    @pytest.mark.parametrize("sign", [1, -1])
    def test_sums_beyond_the_doubles_have_an_average(self, sign):
        """No table makes the average fail where no block's answer does: its size is no secret."""
        public = law(np.random.default_rng(0), 700)
        most = sign * sys.float_info.max

        def sometimes(rows):
            return most if rows.max() > 1e6 else float(rows.mean())

        f = hs.Blockwise(sometimes, rows=5)
        s = hs.sample_sensitivity(f, Table(public), rows=50)
        value = hs.release(f, np.full(50, 1e7), hs.Laplace(s, epsilon=1)).value
        assert value == pytest.approx(sign * s.value * 2**40, rel=1e-6)
        given = [most, most, most, -most, 1.0]
        numbers = iter(given)
        mixed = hs.Blockwise(lambda _: next(numbers), rows=5)(np.zeros(25))
        assert mixed == pytest.approx(float(sum(map(Fraction, given)) / 5), rel=1e-15)

    @pytest.mark.parametrize("steps", [1, 2, 3, 5, 6, 7, 11, 1000])
    def test_averages_of_the_smallest_numbers_move_no_further(self, steps):
        """Rounded to the smallest double, an average moves by more than its part."""
        smallest = math.ulp(0.0)
        part = bound_average(np.array([0.0, steps * smallest]), 4)
        assert part[0] == 0
        most = Fraction(0)
        for start in range(8):
            ends = [float(Fraction(start + k, 4) * Fraction(smallest)) for k in (0, steps)]
            most = max(most, abs(Fraction(ends[1]) - Fraction(ends[0])))
        assert most <= Fraction(part[1])

    def test_failures_on_private_rows_stay_silent(self):
        """A block that fails tells nothing of its rows."""
        public, data = (law(np.random.default_rng(i), n) for i, n in ((0, 700), (1, 50)))

        def failing(rows):
            if rows.max() > 9e5:
                raise ValueError(f"bad value {rows.max()}")
            return float(rows.mean())

        f = hs.Blockwise(failing, rows=5)
        s = hs.sample_sensitivity(f, Table(public), rows=50)
        data[7] = 987654.321
        with pytest.raises(BadFunction) as caught:
            hs.release(f, data, hs.Laplace(s, epsilon=1))
        error = caught.value
        while error is not None:
            assert "987654" not in repr(error)
            error = error.__context__ or error.__cause__

    def test_sizes_that_do_not_divide(self):
        """Every block is full; the message names sizes that divide."""
        with pytest.raises(ParameterError, match="Sizes that divide: 2, 4, 5, 10"):
            hs.sample_sensitivity(
                hs.Blockwise(mean, rows=7), hs.populations.Uniform(low=0, high=1), rows=100
            )
        for rows, words in (
            (100, "leave 2 of the rows out, .* 98 rows are 14 such blocks"),
            (1009, "divide: 1009. Or leave 1 of the rows out, .* 1008 rows are 144 such blocks"),
        ):
            with pytest.raises(ParameterError, match=words):
                hs.Blockwise(mean, rows=7).blocks(rows)
        with pytest.raises(ParameterError) as told:
            hs.Blockwise(mean, rows=7).blocks(6)
        assert "leave" not in str(told.value)
        for bad in (-1, 0, 2.5, True, "5"):
            with pytest.raises(ParameterError, match="1 or more"):
                hs.Blockwise(mean, rows=bad)
        with pytest.raises(ParameterError, match="takes a function"):
            hs.Blockwise(3, rows=5)
        with pytest.raises(ParameterError, match="takes a function"):
            hs.Blockwise(hs.Blockwise(mean, rows=5), rows=5)
        with pytest.raises(ParameterError, match="batch"):
            hs.sample_sensitivity(
                hs.Blockwise(mean, rows=5), Table(np.arange(900.0)), rows=10, batch=True
            )


class TestAudits:
    """Pairs of an audit are independent pairs, too."""

    def test_drawn_pairs_share_no_row(self):
        """An audit of a public table deals its rows, or says how many it needs."""
        public = Table(np.arange(60.0))
        source = hs.PopulationPairs(population=public, rows=4, count=12)
        pairs = draw_pairs(source, "replace-one", 0)
        rows = [set(pair.rows) | set(pair.neighbour) for pair in pairs]
        assert len(set.union(*rows)) == 60
        more = hs.PopulationPairs(population=public, rows=4, count=13)
        with pytest.raises(ParameterError, match="65 public rows"):
            draw_pairs(more, "replace-one", 0)
        few = Table(np.arange(9.0), promise="table")
        again = hs.PopulationPairs(population=few, rows=4, count=13)
        assert len(draw_pairs(again, "replace-one", 0)) == 13


FUNCTION_FILE = """
def mean(rows):
    return rows[:, 0].mean()
"""


class TestCommandLine:
    """The same routes by name."""

    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "f.py").write_text(FUNCTION_FILE)
        rng = np.random.default_rng(0)
        for name, count in (("public.csv", 300), ("private.csv", 200)):
            text = "\n".join(f"{x:.6f},1" for x in law(rng, count))
            (tmp_path / name).write_text("x,y\n" + text + "\n")
        return tmp_path

    @pytest.mark.parametrize(
        ("options", "route", "blocks"),
        [
            (["--promise", "given-the-rest"], "given-the-rest", 1),
            (["--promise", "table"], "resampled", 1),
            (["--block-rows", "10", "--calibration", "marginal"], "disjoint", 20),
        ],
    )
    def test_released_and_verified(self, folder, options, route, blocks):
        """The option is on the certificate, and verification takes it from there."""
        words = ["release", "private.csv", "f.py:mean", "--population", "public.csv"]
        words += ["--epsilon", "1", "--out", "c.json", "--json", *options]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.stderr
        told = json.loads(done.stdout)["certificate"]["sampling"]
        assert (told["route"], told["blocks"], told["public_rows"]) == (route, blocks, 300)
        words = ["verify", "c.json", "f.py:mean", "--population", "public.csv"]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.stdout + done.stderr

    def test_refused_without(self, folder):
        """The default is the strong promise, or a refusal that says what would do."""
        words = ["sensitivity", "f.py:mean", "--population", "public.csv", "--rows", "200"]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 1  # a refusal, and no mistake in the options
        assert "TooFewRows" in done.stderr
        words[3] = "uniform:0,1"
        done = CliRunner().invoke(app, [*words, "--promise", "table"])
        assert done.exit_code == 2
        assert "--promise goes with a file" in done.stderr


class TestChains:
    """A chain carries what was sampled, and no more."""

    def test_several_rows_take_the_law(self):
        """Given the rest, one row may be replaced; with the law behind the table, several."""
        for promise, rows in (("population", 12_000), ("given-the-rest", 12_000)):
            table = Table(law(np.random.default_rng(0), rows), promise=promise)
            s = hs.sample_sensitivity(mean, table, rows=100)
            step = hs.transformations.from_sensitivity(mean, s)
            assert step.map(1).value >= s.value
            if promise == "population":
                assert step.map(2).value >= 2 * s.value
                continue
            with pytest.raises(ParameterError, match="one replaced row"):
                step.map(2)

    def test_averages_are_held_in_chains_too(self):
        """A private average far beyond what doubles add up exactly is cut off there as well."""
        f = hs.Blockwise(lambda rows: 1e30 if rows.max() > 1e6 else mean(rows), rows=5)
        s = hs.sample_sensitivity(f, Table(law(np.random.default_rng(0), 700)), rows=50)
        data = law(np.random.default_rng(1), 50)
        step = hs.transformations.from_sensitivity(f, s)
        assert float(step(data)) == pytest.approx(f(data))
        data[0] = 1e7
        assert float(step(data)) == s.sampling.limit


@pytest.mark.parametrize("promise", ["population", "given-the-rest", "table"])
def test_people_made_of_the_rows_of_a_table_share_none_unknown(promise):
    """Drawn tables would share rows, as if a few public ones could support any gamma."""
    rows = Table(np.random.default_rng(0).random((30, 1)), promise=promise)
    if promise != "table":
        with pytest.raises(ParameterError, match="say promise='table'"):
            hs.populations.Users(rows, sizes=1)
        return
    people = hs.populations.Users(rows, sizes={1: 0.5, 2: 0.5})
    s = hs.sample_sensitivity(lambda t: t[:, 1].mean(), people, rows=10, gamma=0.1, user=0)
    assert s.sampling.population["rows"]["promise"] == "table"
