"""Maps against every pair of small tables: least numbers of rows, people by group, truth values."""

import itertools
import math
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

from hushed import errors
from hushed import transformations as t
from hushed.spaces import CHANGE_ONE, SYMMETRIC, USERS, Cell, Column, Metric, Space, Table
from hushed.transformations import _resizing as resizing

NORMS = ["l1", "l2", "sup", "one-sided"]
LOW, HIGH = -3.0, 2.0
LEVELS = (LOW, -0.5, HIGH)
USERS_REPLACED = Metric(name="change-one", unit="user")


def all_tables(values, sizes):
    """All multisets of values of these sizes."""
    return [each for n in sizes for each in itertools.combinations_with_replacement(values, n)]


def rows_apart(tables, metric):
    """Distances of all pairs of tables of rows: added and removed, or replaced (-1 if none)."""
    values = sorted({row for table in tables for row in table})
    counts = np.array([[table.count(value) for value in values] for table in tables])
    changed = np.abs(counts[:, None] - counts[None]).sum(axis=2)
    if metric == SYMMETRIC:
        return changed
    sizes = counts.sum(axis=1)
    return np.where(sizes[:, None] == sizes[None], changed // 2, -1)


def movements(answers, norm):
    """Sizes of the differences of all pairs of answers; those of l2 squared."""
    found = np.array(answers, dtype=float).reshape(len(answers), -1)
    moved = found[:, None] - found[None]
    if norm == "one-sided":
        return np.maximum(moved, 0).max(axis=2) + np.maximum(-moved, 0).max(axis=2)
    if norm == "l2":
        return (moved**2).sum(axis=2)
    return np.abs(moved).sum(axis=2) if norm == "l1" else np.abs(moved).max(axis=2)


def check_map(chain, answers, apart, norm, distances, *, tight=True):
    """No pair moves farther than the map says, and where it is tight one comes up to it."""
    moved = movements(answers, norm)
    for d_in in distances:
        worst = moved[(apart >= 0) & (apart <= d_in)].max()
        claimed = chain.map(d_in).value ** (2 if norm == "l2" else 1)
        assert worst <= claimed * (1 + 1e-15 * (norm == "l2")), (d_in, worst, claimed)
        if tight is True or (tight and tight(d_in)):
            assert worst >= claimed * (1 - 1e-9), (d_in, worst, claimed)


class TestLeastRows:
    """At least N rows, in the domain or made up."""

    @pytest.mark.parametrize("metric", [SYMMETRIC, CHANGE_ONE])
    @pytest.mark.parametrize("least", [1, 2, 3, 4])
    def test_mean(self, least, metric):
        """The mean of tables of N rows or more; reached, but for odd distances above N."""
        column = Column(cell=Cell(low=LOW, high=HIGH), least=least)
        chain = Space(domain=column, metric=metric) >> t.mean()
        tables = all_tables(LEVELS, range(least, least + 5))
        answers = [chain(list(table)) for table in tables]
        odd = metric == SYMMETRIC
        check_map(
            chain, answers, rows_apart(tables, metric), "l1", range(1, 5),
            tight=lambda d: not odd or d <= least or d % 2 == 0 or d >= 2 * least,
        )  # fmt: skip

    @pytest.mark.parametrize("metric", [SYMMETRIC, CHANGE_ONE])
    @pytest.mark.parametrize("least", [1, 2, 3, 4])
    def test_mean_of_any_table(self, least, metric):
        """The mean that fills tables up, of every table, the empty one included; always reached."""
        column = Column(cell=Cell(low=LOW, high=HIGH))
        chain = Space(domain=column, metric=metric) >> t.mean(least=least)
        tables = all_tables(LEVELS, range(least + 5))
        answers = [chain(list(table)) for table in tables]
        check_map(chain, answers, rows_apart(tables, metric), "l1", range(1, 5))

    @pytest.mark.parametrize("metric", [SYMMETRIC, CHANGE_ONE])
    @pytest.mark.parametrize("least", [1, 2, 3, 4, 5])
    def test_variance(self, least, metric):
        """The variance of tables of N rows or more."""
        column = Column(cell=Cell(low=LOW, high=HIGH), least=least)
        chain = Space(domain=column, metric=metric) >> t.variance()
        tables = all_tables(LEVELS, range(least, least + 4))
        answers = [chain(list(table)) for table in tables]
        check_map(chain, answers, rows_apart(tables, metric), "l1", range(1, 4))

    def test_the_descriptor_is_what_makes_it_small(self):
        """A private mean of a thousand rows moves by a thousandth, not by a half of the width."""
        cell = Cell(low=0, high=1)
        free = Space(domain=Column(cell=cell), metric=SYMMETRIC)
        known = Space(domain=Column(cell=cell, least=999), metric=SYMMETRIC)
        assert (free >> t.mean()).map(1).value == pytest.approx(1 / 2)
        for chain in (known >> t.mean(), free >> t.mean(least=999), known >> t.mean(least=10)):
            assert chain.map(1).value == pytest.approx(1 / 1000, rel=1e-12)
            assert chain.map(1).value > 1 / 1000

    def test_missing_rows_are_middles(self):
        """Two rows of five: the other three are middles of the bounds; of five nothing is added."""
        free = Space(domain=Column(cell=Cell(type="int", low=0, high=9)), metric=SYMMETRIC)
        chain = free >> t.mean(least=5)
        assert float(chain([9, 8])) == (9 + 8 + 3 * 4.5) / 5
        assert float(chain([])) == 4.5
        assert float(chain([1, 2, 3, 4, 9])) == 19 / 5

    def test_rounding_of_filled_tables(self):
        """At a large offset the answers in doubles move by no more than the map, either."""
        low, high = 1e9, 1e9 + 1 + 2.0**-23
        column = Column(cell=Cell(low=low, high=high))
        chain = Space(domain=column, metric=SYMMETRIC) >> t.mean(least=3)
        values = (low, low + 2.0**-23, low + 1 / 3, high)
        tables = all_tables(values, range(6))
        apart = rows_apart(tables, SYMMETRIC)
        exact = [Fraction(float(chain(list(table)))) for table in tables]
        for d_in, bound in ((1, Fraction(1, 4)), (2, Fraction(2, 5))):
            worst = max(
                abs(exact[i] - exact[j]) for i, j in zip(*np.nonzero(apart <= d_in), strict=True)
            )
            assert worst <= Fraction(chain.map(d_in).value)
            assert worst >= bound  # of a width of one


def held_by(users):
    """Table of users: each with rows of some groups, the first of them twice."""
    rows = [
        (user, group)
        for user, groups in users.items()
        for group in (*groups, *groups[:1])
    ]  # fmt: skip
    return {"who": [user for user, _ in rows], "ward": [group for _, group in rows]}


class TestPeopleByGroup:
    """Each user once in a group, over all tables of three users and three groups."""

    KEYS = ("x", "y", "z")
    TABLE = Table.of({"who": Cell(type="string"), "ward": Cell(type="string")}, key="who")
    GROUPS = ((), *((x,) for x in "xyz"), ("x", "y"), ("x", "z"), ("y", "z"), tuple("xyz"))

    def answers(self, chain, choices):
        """Answers under one salt; absent users have no rows, other wards are in no group."""
        with mock.patch.object(resizing.os, "urandom", lambda count: b"s" * count):
            return [
                chain(
                    held_by(
                        {
                            user: groups or ("other",)
                            for user, groups in zip("abc", choice, strict=True)
                            if groups is not None
                        }
                    )
                )
                for choice in choices
            ]

    @pytest.mark.parametrize("norm", NORMS)
    @pytest.mark.parametrize("groups", [1, 2, 3, None])
    def test_users_added_and_removed(self, groups, norm):
        """A user who is in k groups at most moves counts by k, sqrt(k), 1; d of them d times."""
        chain = Space(domain=self.TABLE, metric=USERS) >> t.count_users(
            "ward", self.KEYS, groups=groups, norm=norm
        )
        states = (None, *self.GROUPS[1:])
        choices = list(itertools.product(states, repeat=3))
        places = np.array([[states.index(state) for state in each] for each in choices])
        differ = places[:, None] != places[None]
        absent = (places[:, None] == 0) | (places[None] == 0)
        apart = (differ * np.where(absent, 1, 2)).sum(axis=2)  # other rows: removed and added
        check_map(chain, self.answers(chain, choices), apart, norm, [1, 2, 3])

    @pytest.mark.parametrize("norm", NORMS)
    @pytest.mark.parametrize("groups", [1, 2, 3])
    def test_users_replaced(self, groups, norm):
        """A replaced user leaves k groups and enters k others, where there are so many."""
        chain = Space(domain=self.TABLE, metric=USERS_REPLACED) >> t.count_users(
            "ward", self.KEYS, groups=groups, norm=norm
        )
        choices = list(itertools.product(self.GROUPS, repeat=3))
        places = np.array([[self.GROUPS.index(state) for state in each] for each in choices])
        apart = (places[:, None] != places[None]).sum(axis=2)
        check_map(chain, self.answers(chain, choices), apart, norm, [1, 2, 3])

    def test_counting_rows_would_move_farther(self):
        """Nine rows of one user in one of nine wards move counts of rows by nine, people by one."""
        wards = [str(i) for i in range(9)]
        people = Space(domain=self.TABLE, metric=USERS)
        rows = people >> t.limit_rows(9) >> t.select("ward") >> t.histogram(wards, norm="l2")
        assert rows.map(1).value == 9
        assert (people >> t.count_users("ward", wards)).map(1).value == pytest.approx(3)
        data = {"who": ["a"] * 9, "ward": ["0"] * 9}
        assert rows(data)[0] == 9
        assert (people >> t.count_users("ward", wards))(data).tolist() == [1] + [0] * 8

    @pytest.mark.slow
    def test_groups_are_drawn_evenly(self):
        """Of three groups of a user each stays with chance 1/3; false alarm below 1e-6."""
        chain = Space(domain=self.TABLE, metric=USERS) >> t.count_users("ward", self.KEYS, groups=1)
        drawn = sum(chain(held_by({"a": self.KEYS})) for _ in range(3000))
        assert drawn.sum() == 3000
        # Binomial(3000, 1/3): 5.5 standard deviations of 25.8 each side, three of them.
        assert (np.abs(drawn - 1000) <= 142).all()

    def test_users_need_a_space_of_users(self):
        """Where rows are counted the message says how to declare users."""
        rows = Space(domain=self.TABLE, metric=SYMMETRIC)
        with pytest.raises(errors.SpaceMismatch, match=r"metric=hushed\.spaces\.USERS"):
            _ = rows >> t.count_users("ward", self.KEYS)
        people = Space(domain=self.TABLE, metric=USERS)
        for bad in ({"groups": 0}, {"groups": True}, {"norm": "range"}):
            with pytest.raises(errors.ParameterError):
                _ = people >> t.count_users("ward", self.KEYS, **bad)


class TestSeveralColumns:
    """Groups by two columns."""

    TABLE = Table.of({"ward": Cell(type="string"), "old": Cell(type="bool")})
    KEYS = tuple(itertools.product(("x", "y"), (False, True)))

    @staticmethod
    def held(table):
        return {"ward": [row[0] for row in table], "old": [row[1] for row in table]}

    @pytest.mark.parametrize("norm", NORMS)
    @pytest.mark.parametrize("metric", [SYMMETRIC, CHANGE_ONE])
    def test_every_pair(self, metric, norm):
        """Counts by both columns are those of the rows, and move as far as the map says."""
        grouped = Space(domain=self.TABLE, metric=metric) >> t.group_by(["ward", "old"], self.KEYS)
        chain = grouped >> t.each(t.count(), norm=norm)
        tables = all_tables([*self.KEYS, ("z", True)], range(4))
        answers = [chain(self.held(table)) for table in tables]
        for table, answer in zip(tables, answers, strict=True):
            assert answer.tolist() == [table.count(key) for key in self.KEYS]
        loose = metric == CHANGE_ONE and norm in ("l2", "sup")  # out of one group, into another
        check_map(
            chain, answers, rows_apart(tables, metric), norm, [1, 2, 3], tight=not loose
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("columns", "keys", "message"),
        [
            (["ward", "old"], ["x", "y"], "tuples of 2"),
            (["ward", "old"], [("x",)], "tuples of 2"),
            (["ward", "ward"], [("x", "x")], "distinct"),
            ([], [()], "distinct"),
            (["ward", "none"], [("x", "x")], "no column 'none'"),
        ],
    )
    def test_columns_and_keys_that_do_not_fit(self, columns, keys, message):
        """Keys of several columns are tuples, one entry for each."""
        with pytest.raises(errors.ParameterError, match=message):
            _ = Space(domain=self.TABLE, metric=SYMMETRIC) >> t.group_by(columns, keys)

    def test_a_key_of_another_type(self):
        """A key that no row can have is refused, with the column that it is for."""
        with pytest.raises(errors.BadRows, match="'old'"):
            _ = Space(domain=self.TABLE, metric=SYMMETRIC) >> t.group_by(
                ["ward", "old"], [("x", "yes")]
            )


class TestTruthValues:
    """Cells that are true or false."""

    @pytest.mark.parametrize(
        ("step", "norm"),
        [
            (t.count(), "l1"),
            (t.cast("int") >> t.sum_of(), "l1"),
            (t.cast("float") >> t.mean(least=2), "l1"),
            (t.histogram([False, True], norm="l2"), "l2"),
            (t.histogram([False, True], norm="sup"), "sup"),
            (t.filter_rows(bool) >> t.count(), "l1"),
            (t.map_rows(lambda x: not x, Cell(type="bool")) >> t.histogram([True]), "l1"),
            (t.cast("string") >> t.histogram(["true"]), "l1"),
        ],
    )
    def test_every_pair(self, step, norm):
        """Steps on truth values move as far as the same on numbers 0 and 1."""
        chain = Space(domain=Column(cell=Cell(type="bool")), metric=SYMMETRIC) >> step
        tables = all_tables([False, True], range(6))
        answers = [chain(list(table)) for table in tables]
        check_map(chain, answers, rows_apart(tables, SYMMETRIC), norm, [1, 2, 3])

    def test_what_is_a_truth_value(self):
        """Python's, NumPy's and those in objects are; numbers, strings and missing ones are not."""
        column = Column(cell=Cell(type="bool"))
        for data in ([True, False], np.array([True, False]), np.array([True, False], object)):
            assert column.check(data).tolist() == [True, False]
        assert column.check([]).tolist() == []
        for bad in ([1, 0], [True, 1], [1.0], ["true"], [True, None], [[True]]):
            with pytest.raises(errors.BadRows, match="does not hold bool"):
                column.check(bad)

    def test_the_nearest_truth_value(self):
        """Numbers are false or true as they are nearer to 0 or 1; nothing fails."""
        cell = Cell(type="bool")
        given = [True, np.bool_(True), 1, 0.9, 7, math.inf, "yes", None, math.nan, 0, -3, 0.4]
        assert [cell.nearest(each) for each in given] == [True] * 6 + [False] * 6
        assert all(type(cell.nearest(each)) is bool for each in given)

    def test_sums_need_numbers(self):
        """A sum of truth values says which step makes numbers of them, and that step suffices."""
        space = Space(domain=Column(cell=Cell(type="bool")), metric=SYMMETRIC)
        for step in (t.sum_of(), t.mean(), t.variance(), t.clip(0, 1)):
            with pytest.raises(errors.SpaceMismatch, match=r"put cast\('int'\) before it"):
                _ = space >> step
        assert int((space >> t.cast("int") >> t.sum_of())([True, True, False])) == 2
        for bad in ({"missing": True}, {"low": 0, "high": 1}):
            with pytest.raises(errors.ParameterError, match="truth values"):
                Cell(type="bool", **bad)


class TestDeclaredLeast:
    """The descriptor: who may hold it, which steps keep it, and what is refused."""

    def test_steps_keep_it_or_lose_it(self):
        """Steps of one row for one row keep it; what leaves rows out loses it."""
        table = Table.of({"w": Cell(type="string"), "x": Cell(low=0, high=1)}, least=5, key="w")
        space = Space(domain=table, metric=SYMMETRIC)
        x = t.select("x")
        for step in (
            x, x >> t.clip(0, 1), x >> t.impute(0.5), x >> t.cast("int"), x >> t.cast("string"),
            t.stack("x"), t.map_rows(lambda row: row["x"], Cell(low=0, high=1)),
        ):  # fmt: skip
            assert (space >> step).target.domain.least == 5
        for step in (x >> t.drop_missing(), t.filter_rows(bool), x >> t.filter_rows(bool)):
            assert (space >> step).target.domain.least is None
        assert (space >> t.group_by("w", ["a"])).target.domain.table.least is None
        assert (space >> x >> t.resize(3, 0.0)).target.domain.least is None
        people = Space(domain=table, metric=USERS)
        assert (people >> t.limit_rows(1)).target.domain.least is None

    def test_a_table_of_fewer_rows_is_refused(self):
        """It is refused in silence about the number, for every container."""
        column = Column(cell=Cell(low=0, high=1), least=5)
        table = Table.of({"x": column.cell}, least=5)
        for domain, rows in ((column, [0.0] * 4), (table, {"x": [0.0] * 4})):
            with pytest.raises(errors.BadRows, match="fewer rows than the least=5") as caught:
                domain.check(rows)
            assert "4" not in str(caught.value)
        assert len(column.check([0.0] * 5)) == 5
        assert "at least 5 rows" in str(column)

    @pytest.mark.parametrize(
        "make",
        [
            lambda: Column(cell=Cell(), least=0),
            lambda: Column(cell=Cell(), least=True),
            lambda: Column(cell=Cell(), least=5, size=5),
            lambda: t.mean(least=0),
            lambda: t.mean(least=2.0),
            lambda: (
                Space(domain=Column(cell=Cell(low=0, high=1), size=3), metric=CHANGE_ONE)
                >> t.mean(least=3)
            ),
        ],
    )
    def test_numbers_that_are_none(self, make):
        """No number of rows, or one beside the public number of rows."""
        with pytest.raises(errors.ParameterError, match="least"):
            make()
