"""Error bars that include what contribution bounds leave out, by a public guess."""

from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hushed as hs
from hushed.errors import KeyInUse, NotFeasible, ParameterError
from hushed.populations import PublicTable
from hushed.tables import Answer
from hushed.tables._left_out import LeftOut, add_missing, read_left_out, widen
from hushed.tables._requests import Aggregate

VALUES = (-1.0, 0.5, 2.0)  # with both ends of the bounds


def asked(kind):
    """An aggregate of a column between -1 and 2."""
    return Aggregate(kind=kind, name="a", column="x", low=-1.0, high=2.0)


def open_rows(**columns):
    """Sixty rows of ten users, who have from 1 to 11 of them."""
    user = [who for who in range(10) for _ in range(1 + who * who % 12)]
    cells = [float(i % 7) for i in range(len(user))]
    return hs.table(pa.table({"u": user, "x": cells, **columns}), user="u"), user, cells


def most_left_out(rows, most_rows, most_groups):
    """Most rows that one user can lose: every way to lie in groups, and every way to keep them."""
    worst = 0
    for groups in product(range(min(rows, 4)), repeat=rows):
        there = sorted(set(groups))
        kept = min(len(there), most_groups)
        for chosen in combinations(there, kept):
            left = sum(group in chosen for group in groups)
            worst = max(worst, rows - min(left, most_rows))
    return worst


@pytest.mark.parametrize(("most_rows", "most_groups"), [(2, 9), (9, 2), (3, 1), (1, 3), (2, 2)])
def test_no_way_to_choose_leaves_out_more(most_rows, most_groups):
    """One user with up to 4 rows, in all ways over groups: the bound is reached, never passed."""
    table, _, _ = open_rows()
    query = table.group_by("u", select_partitions=True).bound_contributions(
        max_rows_per_user=most_rows, max_groups_per_user=most_groups
    )
    for rows in (1, 2, 3, 4):
        worst = most_left_out(rows, most_rows, most_groups)
        assert read_left_out([rows], query.query) == LeftOut(worst, int(worst > 0))
    assert read_left_out({4: 3}, query.query).rows == 3 * worst


@pytest.mark.parametrize(
    ("kind", "statistic"),
    [("count", len), ("sum", np.sum), ("mean", np.mean), ("variance", np.var)],
)
def test_whatever_is_missing_the_truth_lies_within(kind, statistic):
    """All tables of 1 to 3 kept rows and up to 2 missing ones, of values between the bounds."""
    ends = {"count": 0.0, "sum": 0.0, "mean": 0.0, "variance": np.inf}
    slack = 1e-12
    for size in (1, 2, 3):
        for kept in combinations_with_replacement(VALUES, size):
            held = float(statistic(kept))
            low, high = widen(asked(kind), (held, held), float(size), 2)
            truths = [
                float(statistic([*kept, *missing]))
                for count in (0, 1, 2)
                for missing in combinations_with_replacement(VALUES, count)
            ]
            assert low - slack <= min(truths)
            assert max(truths) <= high + slack
            if ends[kind] == 0.0:  # these are as narrow as can be
                assert abs(low - min(truths)) < slack
                assert abs(high - max(truths)) < slack


@pytest.mark.slow
def test_the_answer_holds_what_is_there_without_bounds():
    """At an epsilon without noise, against the statistics of all rows, in every group."""
    table, user, cells = open_rows()
    city = ["Rome" if i % 3 else "Oslo" for i in range(len(user))]
    table, _, _ = open_rows(city=city)
    query = table.bound_contributions(max_rows_per_user=2).group_by("city", keys=["Rome", "Oslo"])
    query = query.count().count_users().sum("x", low=0, high=6).mean("x", low=0, high=6)
    query = query.variance("x", low=0, high=6).histogram("x", low=0, high=6, bins=2)
    query = query.quantiles("x", [0.25], low=0, high=6, candidates=7)
    guess = np.bincount(user)
    bare = query.release(epsilon=5000.0)
    wide = query.release(epsilon=5000.0, rows_per_user=guess)
    frame = pd.DataFrame({"u": user, "x": cells, "city": city})
    for i, where in enumerate(["Rome", "Oslo"]):
        x = frame.x[frame.city == where]
        truth = {"count": len(x), "sum_x": x.sum(), "mean_x": x.mean(), "variance_x": x.var(ddof=0)}
        truth["users"] = frame.u[frame.city == where].nunique()
        for name, exact in truth.items():
            assert wide.low[name][i] <= exact <= wide.high[name][i], name
        assert bare.high["count"][i] < truth["count"]  # what the noise alone says is too low
        bins = np.histogram(x, bins=2, range=(0, 6))[0]
        assert all(bins <= np.array(wide.high["histogram_x"][i]))
        rank, below = 0.25 * len(x), wide.values["quantiles_x"][i]
        missed = max(sum(x < below) - rank, rank - sum(x <= below))
        assert missed <= wide.rank_error["quantiles_x"]


def test_the_remark_stands_beside_the_number():
    """In the head of the column, in text, card and certificate; with a guess it is gone."""
    table, user, _ = open_rows()
    query = table.bound_contributions(max_rows_per_user=2).count().sum("x", low=0, high=6)
    bare, wide = query.release(epsilon=5.0), query.release(epsilon=5.0, rows_per_user={1: 4, 9: 2})
    assert str(bare).startswith("count [noise alone]")
    said = str(bare)
    assert "adding or removing one user (all rows with one value of " in said
    assert "does not include values moved into their bounds (clipping) and rows left out of" in said
    assert "sum_x [values clipped]" in str(wide)
    assert "noise alone" not in str(wide)
    assert "14 rows of 2 users at most, by a public guess" in str(wide)
    for answer, said in ((bare, "count [noise alone]"), (wide, "sum_x [values clipped]")):
        assert said in answer._repr_html_()
        certificate = hs.certify(answer)
        assert said in certificate.explain()
        assert hs.verify(certificate).agreement == "bits"
    rows = hs.table(pa.table({"x": [1.0, 2.0]})).count().release(epsilon=5.0)
    assert str(rows).startswith("count\n")  # a row counts whole: nothing is left out
    assert len(user) > 14


def test_what_is_left_out_is_said_where_it_is():
    """Of a mean in other words than of a count; not where no row is lost, nor with a guess."""
    table, _, _ = open_rows()
    table = table.bound_contributions(max_rows_per_user=2, max_groups_per_user=1)
    counted, averaged = table.count(), table.mean("x", low=0, high=6)
    assert "each user counts with 2 rows in 1 group at most" in counted.quote(epsilon=1).explain()
    assert "counts are too low, and sums off, by an" in counted.release(epsilon=1).explain()
    assert "how far that moves the numbers is unknown" in averaged.quote(epsilon=1).explain()
    for query, guess in ((table.count_users(), None), (counted, [1])):
        terms = {"epsilon": 1, "rows_per_user": guess}
        assert "are left out" not in query.quote(**terms).explain()
        assert "are left out" not in query.release(**terms).explain()


def test_a_stored_answer_keeps_its_guess_and_a_forged_bar_is_refused():
    """Through JSON, and against the question when it is verified."""
    table, _, _ = open_rows()
    query = table.bound_contributions(max_rows_per_user=2).mean("x", low=0, high=6).count()
    answer = query.release(epsilon=5.0, rows_per_user={5: 3})
    text = answer.to_json()
    assert Answer.from_json(text) == answer
    assert '"rows": 9, "users": 3' in text
    forged = Answer.from_json(text.replace('"rows": 9', '"rows": 8'))
    with pytest.raises(ParameterError, match="error bar"):
        hs.certify(forged)


def test_another_guess_is_another_question(tmp_path):
    """A stored answer is not told for a question with other error bars."""
    table, _, _ = open_rows()
    query = table.bound_contributions(max_rows_per_user=2).count()
    with hs.Ledger(f"sqlite:///{tmp_path / 'a.db'}") as ledger:
        ledger.open_budget("b", hs.Guarantee(epsilon=9.0, neighbours="add-remove", unit="user"))
        paid = {"ledger": ledger, "budget": "b", "key": "first", "epsilon": 1.0}
        first = query.release(rows_per_user={5: 3}, **paid)
        assert query.release(rows_per_user=[5, 5, 5], **paid) == first
        with pytest.raises(KeyInUse):
            query.release(**paid)


@pytest.mark.slow_cases("guess1")
@pytest.mark.parametrize(
    "guess",
    [
        [3, 3, 1],
        {3: 2, 1: 1},
        np.array([1, 3, 3]),
        {"u": ["a", "b", "b", None, "b", "c", "c", "c"]},
        pd.DataFrame({"u": [1, 2, 2, 2, 3, 3, 3, None]}),
        PublicTable(pd.DataFrame({"u": [1, 2, 2, 2, 3, 3, 3]})),
    ],
)
def test_numbers_and_public_tables_are_guesses(guess):
    """Two users with three rows, one with one; rows of nobody do not count."""
    table, _, _ = open_rows()
    query = table.bound_contributions(max_rows_per_user=2).count().count_users()
    assert read_left_out(guess, query.query) == LeftOut(2, 2)
    assert "2 rows of 2 users" in query.quote(epsilon=1.0, rows_per_user=guess).explain()


@pytest.mark.slow_cases("guess7")
@pytest.mark.parametrize("guess", [3, "3", [-1], [1.5], {"v": [1]}, {3: -1}, [True], [None]])
def test_what_is_no_guess_is_refused(guess):
    """Before anything is charged, with the forms that are taken."""
    table, _, _ = open_rows()
    with pytest.raises(ParameterError, match="rows_per_user"):
        table.bound_contributions(max_rows_per_user=2).count().release(
            epsilon=1.0, rows_per_user=guess
        )


def test_the_private_table_is_no_public_guess():
    """Nor is there anything to guess where no user column is."""
    frame = pa.table({"u": [1, 1, 2]})
    query = hs.table(frame, user="u").bound_contributions(max_rows_per_user=1).count()
    with pytest.raises(ParameterError, match="private table itself"):
        query.quote(epsilon=1.0, rows_per_user=frame)
    with pytest.raises(ParameterError, match="without a user column"):
        hs.table(frame).count().quote(epsilon=1.0, rows_per_user=[1])


PARTS = {
    "a column": lambda f: f[["u"]],
    "a series": lambda f: {"u": f["u"]},
    "an array": lambda f: {"u": f["u"].to_numpy()},
    "rows": lambda f: f.iloc[1:],
    "as public": lambda f: hs.populations.PublicTable(f[["u"]]),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_the_private_frame_is_no_public_guess(part):
    """Nor may it be joined; what has the same values, but memory of its own, cannot be known."""
    private = pd.DataFrame({"u": np.arange(40) // 3, "x": 0.5})
    table = hs.table(private, user="u").bound_contributions(max_rows_per_user=1).count()
    with pytest.raises(ParameterError, match="or a part of it"):
        table.quote(epsilon=1.0, rows_per_user=PARTS[part](private))
    with pytest.raises(ParameterError, match="or a part of it"):
        hs.table(private).join(private[["u"]], on="u")
    other = pd.DataFrame({"u": np.arange(40) // 3})
    assert table.quote(epsilon=1.0, rows_per_user=other)


def asked_of_all(table):
    """Every kind of output that has an error."""
    query = table.count().count_users().sum("x", low=-1, high=6).mean("x", low=0, high=6)
    query = query.variance("x", low=0, high=6).histogram("x", low=0, high=6, bins=2)
    return query.quantiles("x", [0.25], low=0, high=6, candidates=7)


@pytest.mark.slow
def test_the_quote_states_the_errors_of_the_answer():
    """Without noise to speak of: the distance of the ends of each bar, and of nothing shorter."""
    table, user, _ = open_rows()
    table = table.bound_contributions(max_rows_per_user=2)
    guess = np.bincount(user)
    left = int(np.maximum(guess - 2, 0).sum())
    terms = {"epsilon": 5000.0, "rows_per_user": guess}
    query = asked_of_all(table)
    quote, answer = query.quote(rows=len(user), **terms), query.release(**terms)
    for name in ("count", "users", "sum_x", "mean_x", "variance_x"):
        value = answer.value(name)
        above, below = answer.high[name][0] - value, value - answer.low[name][0]
        assert quote.accuracy(name) >= max(above, below) - 0.1, name
    assert quote.accuracy("count") == pytest.approx(left, abs=0.1)
    assert quote.accuracy("users") < 0.1  # one row of every user is kept
    assert quote.accuracy("sum_x") == pytest.approx(6 * left, abs=0.5)
    assert quote.accuracy("mean_x") == pytest.approx(6 * left / len(user), abs=0.1)
    assert quote.accuracy("histogram_x") == pytest.approx(left, abs=0.1)
    assert quote.accuracy("quantiles_x") == answer.rank_error["quantiles_x"]
    assert quote == query.prepare(**terms).quote(rows=len(user))
    bare = query.quote(rows=len(user), epsilon=5000.0)
    assert query.quote(rows=len(user), epsilon=5000.0, rows_per_user=[1, 2]).outputs == bare.outputs


@pytest.mark.parametrize("kind", ["mean", "variance"])
def test_no_rows_that_are_left_out_move_a_ratio_further(kind):
    """All tables of 4 rows between the bounds, all choices of missing ones: the bound is kept."""
    statistic = {"mean": np.mean, "variance": np.var}[kind]
    for missing in (1, 2, 3):
        most = add_missing(asked(kind), 0.0, missing, 4)
        for rows in product(VALUES, repeat=4):
            for count in range(missing + 1):
                assert abs(statistic(rows) - statistic(rows[count:])) <= most + 1e-12


def test_an_epsilon_for_errors_counts_what_is_left_out():
    """The epsilon is that of the rest of the error; where nothing is left of it, there is none."""
    table, user, _ = open_rows()
    query = table.bound_contributions(max_rows_per_user=2).count()
    guess = np.bincount(user)
    left = int(np.maximum(guess - 2, 0).sum())
    bare = query.quote_for(errors={"count": 20})
    found = query.quote_for(errors={"count": 20 + left}, rows_per_user=guess)
    assert found.epsilon == pytest.approx(bare.epsilon, rel=1e-3)
    assert found.quote.accuracy("count") <= 20 + left
    assert found.quote.left_out.rows == left
    with pytest.raises(NotFeasible, match=rf"leave out up to {left} rows of .* users at any eps"):
        query.quote_for(errors={"count": left - 1}, rows_per_user=guess)


@pytest.mark.parametrize(("low", "high"), [(0.0, 500.0), (345.37, 512.0), (-7.1, -7.0)])
def test_a_bar_with_a_guess_stays_where_means_and_variances_are_and_is_certified(low, high):
    """Of a group without rows all is noise, and what is left out moves each end to its farthest."""
    table, user, _ = open_rows(city=["Oslo"] * 43)
    query = table.group_by("city", keys=["Oslo", "Rome"]).bound_contributions(max_rows_per_user=2)
    query = query.mean("x", low=low, high=high).variance("x", low=low, high=high)
    for _ in range(10):
        answer = query.release(epsilon=0.5, rows_per_user=np.bincount(user))
        for bottom, top in zip(answer.low["mean_x"], answer.high["mean_x"], strict=True):
            assert low <= bottom <= top <= high
        columns = (each["variance_x"] for each in (answer.low, answer.values, answer.high))
        for bottom, value, top in zip(*columns, strict=True):
            assert 0 <= bottom <= value <= top
        assert hs.verify(hs.certify(answer)).reproduced


def test_a_large_sum_with_a_guess_is_certified():
    """Its ends are rounded as the sum is, which is far larger than what they are apart by."""
    users = np.arange(100_000) // 2
    table = hs.table(pa.table({"u": users, "x": np.full(users.size, 1e6)}), user="u")
    query = table.bound_contributions(max_rows_per_user=2).sum("x", low=0.1, high=1e6).count()
    query = query.histogram("x", low=0, high=3e6, bins=2)
    for _ in range(5):
        answer = query.release(epsilon=600.0, rows_per_user={2: 50_000, 3: 1})
        assert hs.verify(hs.certify(answer)).reproduced
