"""Adding or removing a whole user moves the exact cells by no more than their sensitivity."""

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import hushed as hs
from hushed.tables._release import plan_query
from hushed.tables._scan import prepare, run_scan

ROW = st.tuples(
    st.integers(0, 4),
    st.sampled_from(["a", "b", "c", None]),
    st.one_of(st.none(), st.floats(width=64), st.sampled_from([0.0, 5e-324, 1e308, 7.0])),
)


def cells(rows, groups, limit, secret, *, by_user=True):
    """Cells of a query with every kind of measurement, for rows (user, key, value)."""
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    frame = pa.table(
        {
            "u": pa.array(columns[0], pa.int64()),
            "g": pa.array(columns[1], pa.string()),
            "x": pa.array(columns[2], pa.float64(), from_pandas=False),
        }
    )
    table = hs.table(frame, user="u" if by_user else None)
    query = table.group_by("g", keys=["a", "b"])
    if by_user:
        query = query.bound_contributions(
            max_rows_per_user=limit, max_groups_per_user=groups
        ).count_users()
    query = query.sum("x", low=-2, high=7).variance("x", low=-2, high=7)
    query = query.histogram("x", low=-2, high=7, bins=3)
    plan = plan_query(query.query, epsilon=1.0, delta=0.0, noise_name="laplace")
    return plan, run_scan(prepare(query.connection, query.query, secret))


def flat(column):
    """Numbers of all groups, and of all bins."""
    return [n for cell in column for n in (cell if isinstance(cell, list) else [cell])]


def check(plan, here, there):
    """Every measurement moves within its l1 and l2 sensitivity."""
    for part, one, two in zip(plan.parts, here.values, there.values, strict=True):
        moved = [abs(a - b) for a, b in zip(flat(one), flat(two), strict=True)]
        assert sum(moved) <= part.measurement.l1
        assert sum(m * m for m in moved) <= part.measurement.l2_squared


USERS = given(
    st.lists(ROW, max_size=14), st.integers(1, 2), st.integers(1, 4), st.integers(0, 2**63 - 1)
)


@pytest.mark.slow
@settings(max_examples=12)
@USERS
@example([(0, "ab"[i % 2], 7.0) for i in range(9)] + [(1, "b", 1.0)], 1, 2, 5)
def test_one_user_moves_no_cell_beyond_its_sensitivity(rows, groups, limit, secret):
    """Whatever the other rows, the limits and the key, removing user 0 stays within the bound."""
    plan, here = cells(rows, groups, limit, secret)
    _, there = cells([row for row in rows if row[0] != 0], groups, limit, secret)
    check(plan, here, there)


@pytest.mark.slow
@settings(max_examples=4)
@given(st.lists(ROW, min_size=1, max_size=8))
def test_one_row_moves_no_cell_beyond_its_sensitivity(rows):
    """Without a user column the unit is a row."""
    plan, here = cells(rows, 1, 1, 5, by_user=False)
    _, there = cells(rows[1:], 1, 1, 5, by_user=False)
    check(plan, here, there)
