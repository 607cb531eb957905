"""Cells that hold several values are looked into, in bounded time."""

import numpy as np
import pytest

from hushed.sensitivity._cells import open_cells


def count(opened):
    return sum(len(column) for table in opened for column in table)


@pytest.mark.slow
def test_very_long_cells_are_looked_into_here_and_there():
    """100,000 values in each of 12 rows: not all are taken, the first ones are, and the sizes."""
    tables = [[[tuple(range(at, at + 100_000)) for at in range(4)]] for _ in range(3)]
    opened = open_cells(tables)
    assert 10_000 < count(opened) <= 1_000_000 + 12
    assert list(opened[0][0]) == [100_000] * 4
    assert list(opened[2][1]) == [0, 1, 2, 3]


def test_many_rows_are_looked_at_here_and_there():
    """From the first to the last of them."""
    ((_, values),) = open_cells([[[(each,) for each in range(50_000)]]])
    assert len(values) <= 1000
    assert values[0] == 0
    assert values[-1] > 49_000


def test_tables_without_rows_have_no_cells():
    """Neither lists nor arrays."""
    assert open_cells([[[]], [[]]]) == [[[]], [[]]]
    assert len(open_cells([[np.empty((0, 2))]])[0]) == 1
