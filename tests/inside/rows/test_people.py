"""Tables of users: what stays true of every container, and of a table without rows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from hushed._rows._people import bundle_rows, number_users, show_rows

EMPTY = {
    "array": (np.empty((0, 2)), 0),
    "objects": (np.empty((0, 2), dtype=object), 0),
    "list": ([], 0),
    "pandas numbers": (pd.DataFrame({"w": np.empty(0), "v": np.empty(0)}), "w"),
    "pandas texts": (pd.DataFrame({"w": np.empty(0, dtype=object), "v": np.empty(0)}), "w"),
    "polars numbers": (pl.DataFrame(schema={"w": pl.Int64, "v": pl.Float64}), "w"),
    "polars texts": (pl.DataFrame(schema={"w": pl.String, "v": pl.Float64}), "w"),
}


@pytest.mark.parametrize("kind", EMPTY)
def test_a_table_without_rows_has_no_users(kind):
    """Not one user without rows, which a function would be told of."""
    rows, user = EMPTY[kind]
    table = number_users(bundle_rows(rows, user))
    assert (len(table), len(show_rows(table))) == (0, 0)


@pytest.mark.parametrize("order", ["sorted", "mixed"])
@pytest.mark.parametrize("kind", ["float", "int", "text"])
def test_users_are_numbered_as_they_come_up(order, kind):
    """The first row is of user 0, whatever the name; rows of one lie together, in their order."""
    owners = np.array([3, 3, 7, 7, 9] if order == "sorted" else [7, 3, 9, 3, 7])
    names = owners.astype({"float": float, "int": int, "text": str}[kind])
    table = bundle_rows(pd.DataFrame({"who": names, "at": np.arange(5)}), "who")
    shown = show_rows(table)
    assert shown["who"].tolist() == [0, 0, 1, 1, 2]
    assert shown["at"].tolist() == ([0, 1, 2, 3, 4] if order == "sorted" else [0, 4, 1, 3, 2])


def test_small_integers_that_cannot_count_the_users_are_refused():
    """An array of int8 holds 127 places at most."""
    rows = np.zeros((200, 2), dtype=np.int8)
    rows[:, 0] = np.arange(200) % 128
    with pytest.raises(ValueError, match="cannot hold the places of so many users"):
        number_users(bundle_rows(rows, 0))
