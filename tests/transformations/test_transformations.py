"""Chaining, messages, membership, known values, and functions of the caller."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hushed as hs
from hushed import transformations as t
from hushed.errors import BadFunction, BadRows, ParameterError, SpaceMismatch
from hushed.spaces import (
    ABSOLUTE,
    CHANGE_ONE,
    L1,
    SYMMETRIC,
    USERS,
    Cell,
    Column,
    Distance,
    Metric,
    Numbers,
    Opaque,
    Space,
    Table,
    Vectors,
)
from hushed.transformations import _arithmetic

PEOPLE = Table.of({"age": Cell(missing=True), "town": Cell(type="string"), "id": Cell(type="int")})
ROWS = Space(domain=PEOPLE, metric=SYMMETRIC)
DATA = {"age": [20.0, math.nan, 150.0], "town": ["x", "y", "x"], "id": [1, 2, 3], "left": [0, 0, 0]}
FLOATS = Space(domain=Column(cell=Cell()), metric=SYMMETRIC)
UNIT = Space(domain=Column(cell=Cell(low=0, high=1), size=10), metric=CHANGE_ONE)

AGES = t.select("age") >> t.impute(40.0) >> t.clip(0, 100)


class TestChains:
    def test_functions_and_maps_compose(self):
        """A chain computes step after step, and its map is that of its last step."""
        chain = ROWS >> AGES >> t.mean()
        assert float(chain(DATA)) == pytest.approx((20 + 40 + 100) / 3)
        assert chain.map(1).value == pytest.approx(50, rel=1e-12)
        assert [step.name.partition("(")[0] for step in chain.steps] == [
            "select", "impute", "clip", "mean",
        ]  # fmt: skip

    def test_grouping_of_steps_does_not_matter(self):
        """(a >> b) >> c and a >> (b >> c) are the same chain."""
        one = (ROWS >> AGES) >> t.sum_of()
        other = ROWS >> (AGES >> t.sum_of())
        built = (ROWS >> AGES) >> ((ROWS >> AGES).target >> t.sum_of())
        for chain in (other, built):
            assert chain.name == one.name
            assert chain.map(3) == one.map(3)
            assert chain(DATA) == one(DATA)

    @pytest.mark.parametrize("container", [dict, pd.DataFrame, pl.DataFrame])
    def test_frames(self, container):
        """The same answer from a dict of columns, a pandas and a Polars frame."""
        chain = ROWS >> AGES >> t.sum_of()
        assert float(chain(container(DATA))) == 160

    def test_rows_are_not_changed(self):
        """Clipping and imputing work on a copy."""
        ages = np.array([20.0, math.nan, 150.0])
        (ROWS >> AGES >> t.sum_of())({**DATA, "age": ages})
        assert np.array_equal(ages, [20.0, math.nan, 150.0], equal_nan=True)


class TestMismatch:
    """A message names both sides and what would convert one into the other."""

    @pytest.mark.parametrize(
        ("space", "step", "advice"),
        [
            (ROWS, t.sum_of(), "select(column)"),
            (ROWS, t.select("town") >> t.clip(0, 1), "cast('float')"),
            (
                ROWS,
                t.select("town") >> t.sum_of(),
                "cast('float') >> impute(value) >> clip(low, hi",
            ),
            (ROWS, t.select("age") >> t.sum_of(), "impute(value) >> clip(low, high)"),
            (FLOATS, t.sum_of(), "put clip(low, high) before"),
            (FLOATS, t.to_change_one(), "resize(size)"),
            (FLOATS, t.vector_sum(), "stack(columns)"),
            (Space(domain=Vectors(dims=2), metric=SYMMETRIC), t.vector_sum(), "clip_norm("),
            (ROWS, t.select("town") >> t.cast("int"), "cast('float') >> impute(value)"),
            (ROWS, t.each(t.count()), "group_by(column, keys)"),
            (ROWS, t.limit_rows(2), "a keyed table under users"),
            (ROWS, t.limit_rows(2), "key=COLUMN), metric=hushed.spaces.USERS)"),
        ],
    )
    def test_a_step_on_a_space_that_does_not_suit(self, space, step, advice):
        """The step says what it takes, what it was given and what to put before it."""
        with pytest.raises(SpaceMismatch) as caught:
            _ = space >> step
        assert advice in str(caught.value)
        assert "is given" in str(caught.value)

    def test_what_is_no_step_is_told_how_to_come_in(self):
        """A plain function and a mechanism, where a TypeError would say nothing."""
        chain = UNIT >> t.mean()
        with pytest.raises(SpaceMismatch, match=r"declared\(\.\.\.\) or from_sensitivity"):
            _ = chain >> np.median
        sensitivity = hs.proven_sensitivity(0.1, argument="ten values in [0, 1]")
        with pytest.raises(SpaceMismatch, match=r"mechanism Laplace, .* measurements\.laplace"):
            _ = chain >> hs.Laplace(sensitivity, epsilon=1.0)
        with pytest.raises(TypeError):
            _ = chain >> 3

    @pytest.mark.parametrize(
        ("left", "right", "advice"),
        [
            (Cell(missing=True), Cell(low=0, high=1), "put impute(value) >> clip(0, 1) between"),
            (Cell(type="string"), Cell(), "put cast('float') >> impute(value) between"),
            (Cell(low=0, high=2), Cell(low=0, high=1), "put clip(0, 1) between"),
        ],
    )
    def test_two_transformations(self, left, right, advice):
        """Both spaces are shown, and the steps between them."""
        one, other = (Space(domain=Column(cell=c), metric=SYMMETRIC) for c in (left, right))
        with pytest.raises(SpaceMismatch) as caught:
            _ = (one >> t.filter_rows(bool)) >> (other >> t.count())
        assert advice in str(caught.value)
        assert str(one) in str(caught.value)
        assert str(other) in str(caught.value)

    def test_metrics_and_sizes(self):
        """Other metrics and sizes are named, with their conversion."""
        sized = Column(cell=Cell(), size=5)
        change = Space(domain=sized, metric=CHANGE_ONE)
        both = Space(domain=sized, metric=SYMMETRIC)
        cases = [
            (FLOATS >> t.map_rows(abs, Cell()), change, "put resize(5) between"),
            (FLOATS >> t.map_rows(abs, Cell()), both, "put resize(5) >> to_symmetric() between"),
            (both >> t.map_rows(abs, Cell()), change, "put to_change_one() between"),
            (change >> t.map_rows(abs, Cell()), both, "put to_symmetric() between"),
        ]
        for left, space, advice in cases:
            with pytest.raises(SpaceMismatch) as caught:
                _ = left >> (space >> t.count())
            assert advice in str(caught.value)
        rows = FLOATS >> t.resize(5, 0.0) >> t.count()
        assert rows.map(1).value == 0

    def test_the_advice_works(self):
        """What the message says to put between two spaces does convert one into the other."""
        left = Space(domain=Column(cell=Cell(missing=True)), metric=SYMMETRIC)
        right = UNIT >> t.mean()
        with pytest.raises(SpaceMismatch, match="put ") as caught:
            _ = (left >> t.map_rows(float, Cell(missing=True))) >> right
        advice = str(caught.value).partition("put ")[2].partition(" between")[0]
        assert advice == "impute(value) >> clip(0, 1) >> resize(10)"
        repaired = left >> t.impute(0.5) >> t.clip(0, 1) >> t.resize(10, 0.5) >> right
        assert repaired.map(1).value == pytest.approx(0.1)

    def test_near_names(self):
        """An unknown column is refused with the names that exist."""
        with pytest.raises(ParameterError, match="'age', 'town', 'id'"):
            _ = ROWS >> t.select("agee")


class TestMembership:
    """Data outside the declared domain is refused before anything is computed."""

    @pytest.mark.parametrize(
        ("domain", "data"),
        [
            (Column(cell=Cell()), [1.0, math.nan]),
            (Column(cell=Cell()), [1.0, None]),
            (Column(cell=Cell(low=0, high=1)), [0.5, 987654.321]),
            (Column(cell=Cell(low=0, high=1)), [math.inf]),
            (Column(cell=Cell()), ["Wilhelmina-Quux"]),
            (Column(cell=Cell()), [[1.0]]),
            (Column(cell=Cell()), [[1.0], [1.0, 987654.0]]),
            (Column(cell=Cell()), [1 + 2j]),
            (Column(cell=Cell()), np.array([2**53 + 1])),
            (Column(cell=Cell(type="int")), [0.5]),
            (Column(cell=Cell(type="int")), np.array([2**63], dtype=np.uint64)),
            (Column(cell=Cell(type="string")), ["Wilhelmina-Quux", None]),
            (Column(cell=Cell(type="string")), ["a", 987654]),
            (Column(cell=Cell(), size=3), [1.0]),
            (PEOPLE, {"age": [1.0]}),
            (PEOPLE, {"age": [1.0, 2.0], "town": ["x"], "id": [1]}),
            (PEOPLE, [987654.0]),
            (Vectors(dims=2), [[1.0, math.inf]]),
            (Vectors(dims=2), [[1.0]]),
            (Vectors(dims=2, norm="l2", bound=5.0), [[3.0, 4.0000001]]),
            (Numbers(), [987654.0]),
            (Numbers(dims=2), [1.0, math.nan]),
            (Opaque(size=2), [987654.0]),
        ],
    )
    def test_refused_in_silence(self, domain, data, assert_silent):
        """The message says what was declared and shows no value."""
        with pytest.raises(BadRows) as caught:
            domain.check(data)
        assert_silent(caught.value)

    @pytest.mark.parametrize(
        ("domain", "data"),
        [
            (Column(cell=Cell(missing=True)), [1, None, math.nan, True]),
            (Column(cell=Cell(low=0, high=1)), [0, 1, -0.0]),
            (Column(cell=Cell(type="int", low=0, high=1)), [True, False]),
            (Column(cell=Cell(type="string", missing=True)), pd.Series(["a", None, pd.NA])),
            (Vectors(dims=2, norm="l2", bound=5.0), [[3.0, 4.0], [0, 0]]),
            (Column(cell=Cell()), []),
            (Column(cell=Cell(type="int")), []),
            (Opaque(), [1, 2]),
        ],
    )
    def test_accepted(self, domain, data):
        """Members of the domain are read."""
        assert len(domain.check(data)) == len(data)

    def test_a_chain_checks_its_input(self):
        """A chain refuses what is out of the declared bounds, where OpenDP would go on."""
        with pytest.raises(BadRows, match="out of bounds"):
            (UNIT >> t.mean())([0.5] * 9 + [7.0])

    def test_what_a_function_gives_is_moved_into_its_cell(self):
        """A row out of the declared bounds does not tell of itself by an error."""
        chain = FLOATS >> t.map_rows(lambda x: x * x, Cell(low=0, high=50)) >> t.sum_of()
        assert float(chain([1.0, 2.0])) == 5
        assert float(chain([1.0, 2.0, 9.0])) == 55
        assert chain.map(1).value == pytest.approx(50, rel=1e-6)

    @pytest.mark.parametrize(
        ("cell", "expected"),
        [
            (Cell(low=-1, high=1), [1.0, -1.0, -1.0, 0.5]),
            (Cell(missing=True), [2.0, math.nan, math.nan, 0.5]),
            (Cell(type="int"), [2, 0, 0, 0]),
            (Cell(type="string"), ["", "", "word", ""]),
            (Cell(type="string", missing=True), [None, None, "word", None]),
        ],
        ids=str,
    )
    def test_no_row_makes_a_step_fail(self, cell, expected):
        """Where a function raises or gives something else, its own row alone gets the constant."""

        def odd(value):
            if value == 1.0:
                raise SystemExit
            return {0.0: 2, 2.0: "word", 3.0: 0.5}[value]

        found = (FLOATS >> t.map_rows(odd, cell))([0.0, 1.0, 2.0, 3.0])
        assert found.tolist() == pytest.approx(expected, nan_ok=True)

    def test_rows_on_which_a_condition_fails_are_left_out(self):
        """Of neighbours, one with a row that no condition can be asked about, both answer."""

        def keep(value):
            return 1 / value > 0 if value != 3.0 else np.array([True, False])

        kept = FLOATS >> t.filter_rows(keep)
        assert kept([1.0, -1.0, 2.0]).tolist() == [1.0, 2.0]
        assert kept([1.0, -1.0, 0.0, 2.0, 3.0]).tolist() == [1.0, 2.0]

    def test_a_failing_function_shows_nothing(self, private, assert_silent):
        """The text of an exception on a whole private table is withheld."""

        def fail(rows):
            raise ValueError(f"cannot use {rows}")

        step = t.declared(fail, source=FLOATS, target=FLOATS, stability=1, argument="none")
        with pytest.raises(BadFunction) as caught:
            step(private)
        assert_silent(caught.value)


class TestKnownValues:
    def test_the_table_of_sensitivities(self):
        """Chains give the table's values, with less than a millionth for the arithmetic."""
        column = Column(cell=Cell(low=-1, high=3))
        free = Space(domain=column, metric=SYMMETRIC)
        sized = Space(domain=Column(cell=column.cell, size=8), metric=SYMMETRIC)
        for step, without, known in [
            (t.count(), 4, 0),
            (t.sum_of(), 12, 8),
            (t.mean(), 4, 1),
            (t.variance(), 4, 3),  # 2 of 8 rows: 2 * 6 / 64 * 16
            (t.histogram([0.0, 1.0, 2.0]), 4, 4),
            (t.histogram([0.0, 1.0, 2.0], norm="l2"), 4, math.sqrt(8)),
            (t.histogram([0.0, 1.0, 2.0], norm="sup"), 4, 2),
            (t.quantile_scores([0.0, 1.0], 0.25), 3, 2),
        ]:
            for space, wanted in ((free, without), (sized, known)):
                found = (space >> step).map(4).value
                assert wanted <= found <= wanted * (1 + 1e-6)

    def test_conversion(self):
        """Two rows added and removed are one replaced, and back."""
        both = Space(domain=Column(cell=Cell(), size=4), metric=SYMMETRIC)
        there = both >> t.to_change_one()
        assert there.map(2).value == 1
        assert (there >> t.to_symmetric()).map(2).value == 2
        assert FLOATS.neighbours == "add-remove"
        assert both.neighbours == there.target.neighbours == "replace-one"

    def test_users(self):
        """Three rows of a user stay, so a user moves a sum by three times the bound."""
        table = Table.of({"who": Cell(type="string"), "x": Cell(low=0, high=5)}, key="who")
        users = Space(domain=table, metric=USERS)
        assert Metric(name="symmetric", unit="user") == USERS
        with pytest.raises(SpaceMismatch, match=r"metric=hushed\.spaces\.USERS"):
            _ = Space(domain=table, metric=SYMMETRIC) >> t.limit_rows(3)  # keyed, but rows count
        chain = users >> t.limit_rows(3) >> t.select("x") >> t.sum_of()
        assert chain.map(1).value == pytest.approx(15, rel=1e-6)
        data = {"who": ["a"] * 10 + ["b"], "x": [5.0] * 10 + [1.0]}
        assert float(chain(data)) == 16
        with pytest.raises(SpaceMismatch, match=r"limit_rows\(most\)"):
            _ = users >> t.select("x")

    def test_the_column_that_does_not_hold_is_named(self):
        """Of several columns the refused one is told by its public name, without its values."""
        cells = {
            "age": Cell(low=0, high=120),
            "visits": Cell(type="int"),
            "ward": Cell(type="string"),
        }
        chain = Space(domain=Table.of(cells), metric=SYMMETRIC) >> t.select("age") >> t.sum_of()
        good = {"age": [1.0, 2.0], "visits": [1, 2], "ward": ["a", "b"]}
        assert float(chain(good)) == 3
        for name, bad, reason in [
            ("visits", [1.5, 98765.25], "does not hold int"),
            ("age", [1.0, 98765.25], "out of bounds"),
            ("age", [1.0, math.nan], "missing values"),
        ]:
            with pytest.raises(BadRows, match=f"^column '{name}' .*{reason}") as caught:
                chain(good | {name: bad})
            assert "98765" not in str(caught.value)

    def test_equal_numbers_are_one_user(self):
        """Zero is one user with either sign, and rows without a user are those of one."""
        table = Table.of({"who": Cell(missing=True), "x": Cell(low=0, high=5)}, key="who")
        users = Space(domain=table, metric=Metric(name="symmetric", unit="user"))
        data = {"who": [0.0, -0.0, 1.0, math.nan, None, -0.0], "x": [5.0] * 6}
        assert float((users >> t.limit_rows(1) >> t.select("x") >> t.sum_of())(data)) == 15

    @pytest.mark.slow
    def test_resizing_samples(self):
        """Surplus rows stay with equal chance: 4000 draws of 2 from 4, false alarm below 1e-6."""
        chain = FLOATS >> t.resize(2, 0.0)
        draws = np.concatenate([chain([1.0, 2.0, 3.0, 4.0]) for _ in range(4000)])
        counts = np.array([(draws == x).sum() for x in (1.0, 2.0, 3.0, 4.0)])
        # Each is binomial(4000, 1/2); 5.5 standard deviations of 31.6 each side, four of them.
        assert (np.abs(counts - 2000) <= 174).all()
        assert sorted(chain([7.0]).tolist()) == [0.0, 7.0]

    def test_histograms_and_scores(self):
        """Bins are half open, NaN falls in none; scores are those of the definition."""
        space = Space(domain=Column(cell=Cell(missing=True)), metric=SYMMETRIC)
        rows = [0.0, 0.5, 1.0, 2.0, math.nan, -1.0, math.inf]
        assert (space >> t.histogram([0.0, 1.0, 2.0]))(rows).tolist() == [2, 1]
        scores = (space >> t.quantile_scores([0.5], 0.25))(rows)
        assert scores.tolist() == [-abs(0.75 * 2 - 0.25 * 3)]

    def test_vectors(self):
        """Columns become vectors, are shrunk to the norm and added up."""
        table = Table.of({"x": Cell(low=-9, high=9), "y": Cell(low=-9, high=9)})
        chain = Space(domain=table, metric=SYMMETRIC) >> t.stack("x", "y") >> t.clip_norm(1.0)
        total = (chain >> t.vector_sum())({"x": [3.0, 0.0], "y": [4.0, 0.5]})
        assert total.tolist() == pytest.approx([0.6, 1.3])
        assert (chain >> t.vector_sum()).map(2).value == pytest.approx(2.0, rel=1e-6)

    def test_sums_are_held_where_the_size_is_not_public(self):
        """A sum stays within 2^32 times the largest row, so that its rounding is bounded."""
        space = Space(domain=Column(cell=Cell(type="int", low=0, high=2**53)), metric=SYMMETRIC)
        assert int((space >> t.sum_of())([2**53, 2**53])) == 2**53
        limit = _arithmetic.rounded_sum_error(2.0**32)
        unit = Space(domain=Column(cell=Cell(low=0, high=1)), metric=SYMMETRIC) >> t.sum_of()
        assert unit.map(1).value == 1 + 2 * limit


class TestOwnFunctions:
    def test_declared(self):
        """A declared factor carries distances, and its output is checked."""
        chain = t.declared(
            lambda values: np.sort(values)[-1],
            source=UNIT,
            target=Space(domain=Numbers(), metric=ABSOLUTE),
            stability=1.0,
            argument="a maximum of numbers in [0, 1]",
        )
        assert float(chain([0.25] * 10)) == 0.25
        assert chain.map(2) == Distance(2.0)
        assert "maximum of numbers" in chain.name

    @pytest.mark.parametrize("exact", [Fraction(1, 3), 2**53 + 1, Decimal(1) / 3])
    def test_no_declared_bound_is_rounded_down(self, exact):
        """As a double it was the nearest one, and so less than what had been declared."""
        answer = Space(domain=Numbers(), metric=ABSOLUTE)
        chain = t.declared(len, source=UNIT, target=answer, stability=exact, argument="proof")
        assert Fraction(chain.map(1).value) >= Fraction(exact)
        assert chain.map(1).value == hs.proven_sensitivity(exact, argument="proof").value

    @pytest.mark.parametrize("stability", [-1.0, math.nan, math.inf, True, Fraction(-1, 3), "1"])
    def test_declared_nonsense(self, stability):
        """A stability that is none is refused."""
        with pytest.raises(ParameterError):
            t.declared(abs, source=UNIT, target=UNIT, stability=stability, argument="?")
        with pytest.raises(ParameterError):
            t.declared(abs, source=UNIT, target=UNIT, stability=1.0, argument=" ")

    @pytest.mark.slow
    def test_a_declared_map_is_checked_by_sampling(self):
        """check_sensitivity finds a pair against a wrong map and none against a right one."""
        right = UNIT >> t.mean()
        wrong = t.declared(
            right.function,
            source=UNIT,
            target=right.target,
            stability=0.09,
            argument="wrong",
        )
        for chain, exceeded in ((right, False), (wrong, True)):
            stated = hs.measurements.chain_sensitivity(chain)
            found = hs.check_sensitivity(chain, stated, low=0, high=1, rows=10, tries=200)
            assert found.exceeded == exceeded

    def test_a_proven_sensitivity(self):
        """A proven sensitivity is multiplied by the distance."""
        s = hs.proven_sensitivity(0.1, argument="mean of 10 numbers in [0, 1]")
        chain = t.from_sensitivity(np.mean, s, source=UNIT)
        assert chain.map(3).value == pytest.approx(0.3)
        assert chain.map(3).gamma == 0
        assert Fraction(chain.map(3).value) >= 3 * Fraction(0.1)


@pytest.fixture(scope="module")
def sampled():
    pop = hs.populations.Uniform(low=0, high=1)
    return hs.sample_sensitivity(np.mean, pop, rows=10, gamma=0.1, workers=1)


class TestSampled:
    def test_gamma_travels(self, sampled):
        """Replacing t rows costs t times the movement and t times gamma, rounded up."""
        chain = t.from_sensitivity(np.mean, sampled)
        for rows in (1, 2, 9):
            found = chain.map(rows)
            assert Fraction(found.value) >= rows * Fraction(sampled.value)
            assert found.value == pytest.approx(rows * sampled.value)
            assert Fraction(str(found.gamma)) >= rows * Fraction(str(sampled.gamma))
            assert found.gamma == pytest.approx(rows * sampled.gamma)
        assert chain.map(0) == Distance(0.0)
        with pytest.raises(ParameterError, match="nothing is promised"):
            chain.map(10)

    def test_refused_under_rows_added_and_removed(self, sampled):
        """A sampled sensitivity says nothing of rows added or removed, nor of other sizes."""
        for space in (
            FLOATS,
            Space(domain=Column(cell=Cell(low=0, high=1), size=10), metric=SYMMETRIC),
            Space(domain=Column(cell=Cell(low=0, high=1), size=11), metric=CHANGE_ONE),
        ):
            with pytest.raises(ParameterError):
                t.from_sensitivity(np.mean, sampled, source=space)

    @pytest.mark.parametrize("rows", ["sampled", "proven"])
    def test_refused_for_users(self, sampled, rows):
        """How far one replaced row moves an answer is not how far all rows of a user do."""
        proven = hs.proven_sensitivity(0.1, argument="mean of 10 numbers in [0, 1]")
        s = sampled if rows == "sampled" else proven
        table = Table.of({"x": Cell(low=0, high=1), "u": Cell(type="int")}, size=10, key="u")
        users = Space(domain=table, metric=Metric(name="change-one", unit="user"))
        with pytest.raises(ParameterError, match="all rows of a user"):
            t.from_sensitivity(np.mean, s, source=users)

    def test_no_user_is_added_to_a_table_of_a_public_number_of_rows(self):
        """There is no such pair of tables, and a promise about none would be read as one."""
        table = Table.of({"x": Cell(low=0, high=1), "u": Cell(type="int")}, key="u", size=100)
        with pytest.raises(ParameterError, match="no two tables of 100 rows differ by one"):
            Space(domain=table, metric=USERS)
        replaced = Space(domain=table, metric=Metric(name="change-one", unit="user"))
        assert replaced.neighbours == "replace-one"

    def test_a_sensitivity_proven_for_users(self):
        """It goes with users and with nothing else."""
        s = hs.proven_sensitivity(1.0, unit="user", argument="a user moves it by at most 1")
        table = Table.of({"x": Cell(low=0, high=1), "u": Cell(type="int")}, key="u")
        users = Space(domain=table, metric=Metric(name="change-one", unit="user"))
        assert t.from_sensitivity(len, s, source=users).map(2).value == 2
        for source in (None, Space(domain=table, metric=CHANGE_ONE)):
            with pytest.raises(ParameterError, match="counts users"):
                t.from_sensitivity(len, s, source=source)

    def test_another_function_is_refused(self, sampled):
        """The sensitivity of one function is none of another."""
        with pytest.raises(BadFunction, match="another function"):
            t.from_sensitivity(np.median, sampled)

    def test_a_function_that_changed_is_refused(self):
        """Another value of a global makes another function, when the chain is made and when run."""
        room = {"SCALE": 1.0, "__name__": "notebook"}
        exec("def f(rows):\n    return rows.mean() * SCALE\n", room)
        unit = hs.populations.Uniform(low=0, high=1)
        found = hs.sample_sensitivity(room["f"], unit, rows=10, pairs=10)
        chain = t.from_sensitivity(room["f"], found)
        assert 0 <= float(chain(np.full(10, 0.5))) <= 1
        room["SCALE"] = 1e9
        with pytest.raises(BadFunction, match="SCALE, which changed"):
            chain(np.full(10, 0.5))
        with pytest.raises(BadFunction, match="SCALE, which changed"):
            t.from_sensitivity(room["f"], found)

    def test_protection_of_everyone_is_for_single_rows(self):
        """The union over n rows does not cover pairs of rows; a fixed pair of rows it would."""
        unit = hs.populations.Uniform(low=0, high=1)
        found = hs.sample_sensitivity(np.mean, unit, rows=10, gamma=0.2, protect="everyone")
        chain = t.from_sensitivity(np.mean, found)
        assert chain.map(1).gamma == found.gamma
        with pytest.raises(ParameterError, match="protect='record'"):
            chain.map(2)

    def test_in_a_chain(self, sampled):
        """Rows that a step has changed are not those that were sampled: only their relation may."""
        space = Space(domain=Column(cell=Cell(low=0, high=1)), metric=SYMMETRIC)
        sized = space >> t.resize(10, 0.5)
        with pytest.raises(SpaceMismatch, match="sample the composed function instead"):
            sized >> t.from_sensitivity(np.mean, sampled, source=sized.target)
        fixed = Column(cell=Cell(low=0, high=1), size=10)
        same = Space(domain=fixed, metric=SYMMETRIC) >> t.to_change_one()
        chain = same >> t.from_sensitivity(np.mean, sampled, source=same.target)
        assert chain.map(2).gamma == sampled.gamma
        assert 0 <= float(chain([0.3] * 10)) <= 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: Cell(low=1, high=0),
        lambda: Cell(low=0),
        lambda: Cell(low=math.nan, high=1),
        lambda: Cell(low=0, high=math.inf),
        lambda: Cell(low=0, high=2.0**971),
        lambda: Cell(type="int", low=0.5, high=1),
        lambda: Cell(type="int", missing=True),
        lambda: Cell(type="string", low=0, high=1),
        lambda: t.cast("text"),
        lambda: Cell(type="date"),
        lambda: Column(cell=Cell(), size=0),
        lambda: Column(cell=Cell(), size=True),
        lambda: Table.of({}),
        lambda: Table.of({"a": Cell()}, key="b"),
        lambda: Vectors(dims=0),
        lambda: Vectors(dims=2, norm="l2"),
        lambda: Vectors(dims=2, norm="l2", bound=0.0),
        lambda: Metric(name="hamming"),
        lambda: Metric(name="l1", unit="user"),
        lambda: Space(domain=Numbers(), metric=SYMMETRIC),
        lambda: Space(domain=Numbers(dims=2), metric=ABSOLUTE),
        lambda: Space(domain=Column(cell=Cell()), metric=L1),
        lambda: Space(domain=PEOPLE, metric=Metric(name="symmetric", unit="user")),
        lambda: Space(domain=Table.of({"who": Cell()}, key="who", size=9), metric=USERS),
        lambda: Distance(math.nan),
        lambda: Distance(-1),
        lambda: UNIT >> t.clip(1, 0),
        lambda: FLOATS >> t.histogram([1.0, 1.0]),
        lambda: FLOATS >> t.histogram([1.0]),
        lambda: FLOATS >> t.histogram([2.0, 1.0]),
        lambda: FLOATS >> t.histogram([1.0, 2.0], norm="range"),
        lambda: FLOATS >> t.quantile_scores([1.0], 1.5),
        lambda: FLOATS >> t.quantile_scores([math.nan], 0.5),
        lambda: FLOATS >> t.resize(0, 0.0),
        lambda: FLOATS >> t.clip(0, 1) >> t.resize(3, 2.0),
        lambda: FLOATS >> t.impute("a"),
        lambda: ROWS >> t.group_by("age", [1.0]),
        lambda: ROWS >> t.group_by("town", ["x", "x"]),
        lambda: ROWS >> t.group_by("town", []),
        lambda: ROWS >> t.group_by("town", ["x"]) >> t.each(t.select("age")),
        lambda: (UNIT >> t.mean()).map(1.5),
        lambda: (UNIT >> t.mean()).map(-1),
        lambda: (UNIT >> t.mean()).map(math.nan),
    ],
)
def test_what_is_refused(make):
    """Swapped bounds, NaN, unknown kinds and impossible numbers are refused when they are made."""
    with pytest.raises(hs.errors.HushedError):
        make()


@pytest.mark.filterwarnings("error")
class TestNumbersOfNumpy:
    """They are those of Python: as distances they were refused, as scales their sums overflowed."""

    def test_distances(self):
        chain = ROWS >> AGES >> t.sum_of()
        assert chain.map(np.int64(2)) == chain.map(2)
        assert type(Distance(np.int64(2)).value) is int
        with pytest.raises(ParameterError, match="integers"):
            chain.map(np.float64(2))

    @pytest.mark.parametrize("law", ["laplace", "gaussian"])
    @pytest.mark.parametrize("kind", [np.int64, np.uint8, np.float32])
    def test_scales(self, law, kind):
        chain = UNIT >> t.sum_of()
        ours, theirs = (chain >> hs.measurements.noisy(law, each) for each in (3, kind(3)))
        assert theirs.map(1) == ours.map(1)

    def test_a_sampled_chain_is_named_by_its_steps(self):
        """Its certificate called it Transformation."""
        drawn = hs.populations.Uniform(low=0, high=1)
        how = {"rows": 10, "gamma": 0.5, "symmetric": True, "workers": 1}
        found = hs.sample_sensitivity(UNIT >> t.clip(0.1, 0.9) >> t.mean(), drawn, **how)
        assert found.sampling.function == "clip(0.1, 0.9) >> mean()"
        released = hs.release(
            UNIT >> t.clip(0.1, 0.9) >> t.mean(), np.full(10, 0.5), hs.Laplace(found, epsilon=1.0)
        )
        text = released.certificate.to_json()
        assert hs.Certificate.from_json(text).sampling.function == "clip(0.1, 0.9) >> mean()"
