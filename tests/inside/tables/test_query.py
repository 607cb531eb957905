"""What is asked of a table is plain data: it can be compared, copied and digested without rows."""

import pickle

import pyarrow as pa
import pytest

import hushed as hs
from hushed.tables._query import digest_question

FRAME = pa.table({"u": [1, 2], "x": [1.0, 2.0], "k": ["a", "b"]})
PLACE = ("duckdb", "a frame rows")


def ask(frame=FRAME, *, low=0, condition="x > 0", keys=("a", "b"), rows=2, weight=1):
    """One query with a part of every kind, from the same or another table."""
    query = hs.table(frame, user="u").bound_contributions(max_rows_per_user=rows)
    query = query.filter(condition).derive("y", "x * 2").group_by("k", keys=keys)
    return query.sum("y", low=low, high=9, weight=weight).count()


class TestQuery:
    def test_the_same_question_is_equal_on_any_rows(self):
        """Two tables with the same columns: equal queries, one hash, one digest, equal copies."""
        one, other = ask().query, ask(FRAME.slice(1), low=0.0, weight=1.0).query
        assert one == other
        assert hash(one) == hash(other)
        assert digest_question(one, PLACE, {}) == digest_question(other, PLACE, {})
        copy = pickle.loads(pickle.dumps(one))
        assert copy == one
        assert digest_question(copy, PLACE, {}) == digest_question(one, PLACE, {})

    @pytest.mark.parametrize(
        "change",
        [
            {"low": 1},
            {"condition": "x > 1"},
            {"keys": ("b", "a")},
            {"rows": 3},
            {"weight": 2},
            {"frame": FRAME.set_column(1, "x", pa.array([1, 2]))},  # integers
        ],
        ids=lambda change: next(iter(change)),
    )
    def test_another_question_differs(self, change):
        """Whatever part of the question changes, the queries differ, and so do their digests."""
        one, other = ask().query, ask(**change).query
        assert one != other
        assert digest_question(one, PLACE, {}) != digest_question(other, PLACE, {})

    def test_a_column_that_is_not_used_changes_no_digest(self):
        """A file with one more column, or another type declared for it, asks the same."""
        wider = ask(FRAME.append_column("z", pa.array([1, 2]))).query
        assert digest_question(wider, PLACE, {}) == digest_question(ask().query, PLACE, {})

    def test_a_table_shows_the_parts_of_its_query(self):
        """The attributes that a table has always had are those of its query."""
        table = ask()
        for name in ("user", "steps", "keys", "contribution_bounds", "aggregates", "unit"):
            assert getattr(table, name) == getattr(table.query, name)
        assert table.columns == {"u": "int", "x": "float", "k": "string", "y": "float"}
        assert table.unit == "user"
        assert [each.name for each in table.aggregates] == ["sum_y", "count"]
