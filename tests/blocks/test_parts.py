"""Rows dealt to blocks: each in one part, by chance alone, and no part knows of the others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.frequencies import pvalue_of_counts

import hushed as hs
from hushed.errors import BadRows

FALSE_ALARM = 1e-9
EVEN = hs.Blocks(low=0, high=1, blocks=31)
PRIVATE = hs.Blocks(low=0, high=1, blocks=31, neighbours="add-remove")
USERS = hs.Blocks(low=0, high=1, blocks=31, user="who")


def test_every_row_is_in_one_part():
    """Parts of a public number of rows differ in size by 1 at most, in any order of the rows."""
    rows = np.arange(100.0)
    parts = EVEN.split(rows)
    assert sorted(np.concatenate(parts)) == rows.tolist()
    assert {len(part) for part in parts} == {3, 4}
    labelled = PRIVATE.split(rows)
    assert len(labelled) == 31
    assert sorted(np.concatenate(labelled)) == rows.tolist()
    assert len({len(part) for part in labelled}) > 2
    assert [len(part) for part in PRIVATE.split(rows[:0])] == [0] * 31


@pytest.mark.slow
@pytest.mark.parametrize("made", [EVEN, PRIVATE], ids=["even", "labels"])
def test_each_row_is_equally_likely_in_each_part(made):
    """Frequencies of the part of the first row, and of the place of the second beside it."""
    places = []
    for _ in range(1500):
        parts = made.split(np.arange(62))
        places.append(next(i for i, part in enumerate(parts) if 0 in part))
    counts = np.bincount(places, minlength=31)
    assert pvalue_of_counts(counts, np.ones(31)) > FALSE_ALARM


def test_all_rows_of_a_user_are_in_one_part():
    """Whatever holds them; rows of nobody are in none."""
    names = ["a", "b", "c", None, float("nan")] * 20
    frame = pd.DataFrame({"who": names, "x": np.arange(100.0)})
    tables = {
        "pandas": frame,
        "polars": pl.DataFrame({"who": [n if n in ("a", "b", "c") else None for n in names]}),
        "list": [{"who": name} for name in names] + [{"else": 1}, 5, {"who": [1]}],
    }
    for rows in tables.values():
        parts = [
            [row["who"] for row in part] if isinstance(part, list) else part["who"].to_list()
            for part in USERS.split(rows)
        ]
        kept = [name for part in parts for name in part]
        assert sorted(kept) == sorted(["a", "b", "c"] * 20)
        assert sum(bool(part) for part in parts) <= 3
        for name in "abc":
            assert sum(name in part for part in parts) == 1


def test_the_column_of_users_must_be_there():
    """Its name is public, and so is whether it exists."""
    with pytest.raises(BadRows, match="user='who' must be one of the columns"):
        USERS.check(pd.DataFrame({"x": [1.0]}))
    with pytest.raises(BadRows, match="one of 2 columns"):
        hs.Blocks(low=0, high=1, user=2).check(np.zeros((5, 2)))
    with pytest.raises(BadRows, match="numbers its texts"):
        PRIVATE.check(pl.DataFrame({"x": ["a"]}, schema={"x": pl.Categorical}))


def test_a_text_of_one_row_widens_no_other_part():
    """The type of an array of texts tells the longest of all rows."""
    few, long = np.array(["ab"] * 200), np.array(["ab"] * 199 + ["x" * 50])
    table = np.zeros(200, dtype=[("t", "U50"), ("v", "f8", (2,))])
    table["t"] = long
    assert {part.dtype for part in EVEN.split(few)} == {np.dtype("U2")}
    widths = [part.dtype for part in EVEN.split(long)]
    assert widths.count(np.dtype("U2")) == 30
    assert sum(part.dtype["t"] == np.dtype("U2") for part in EVEN.split(table)) == 30
    assert all(part["v"].shape[1:] == (2,) for part in EVEN.split(table))


def test_a_part_holds_no_memory_of_other_rows():
    """Texts of Polars are views of a memory, which in a part holds its own texts alone."""
    texts = ["short"] * 62 + ["a long text that is stored apart from its column " * 100]
    parts = EVEN.split(pl.DataFrame({"t": texts}))
    sizes = sorted(part.to_arrow().get_total_buffer_size() for part in parts)
    assert sizes[0] < 1000 < sizes[-1]
    assert sizes[-2] < 1000
    arrays = EVEN.split(np.arange(100.0))
    assert all(part.base is None for part in arrays)
