"""A private CSV file has the same rows and cells for a query as for every other command."""

import random

import pytest

import hushed as hs
from hushed.cli._private_tables import read_private_table
from hushed.errors import BadRows
from hushed.tables._scan import prepare, run_scan

# A line of two columns, and its cells: what is not wholly in quotation marks is as it is written.
LINES = {
    "a,b": ("a", "b"),
    '"a","b"': ("a", "b"),
    '"a,b",c': ("a,b", "c"),
    '"a ""b""",c': ('a "b"', "c"),
    '"x"y,z': ('"x"y', "z"),
    '"x"y"z",w': ('"x"y"z"', "w"),
    '"a"",b': ('"a""', "b"),
    '"a,b': ('"a', "b"),
    'a"b,c"d': ('a"b', 'c"d'),
    'a,"': ("a", '"'),
    '"""",""': ('"', ""),
    ' "a",b': (' "a"', "b"),
    "a\rb,c": ("a\rb", "c"),
    "a,b\r": ("a", "b"),
    "a": ("a", ""),
    "a,b,c": ("a", "b"),
}


def scan(query):
    """What a query measures, before noise."""
    return list(run_scan(prepare(query.connection, query.query, 7)).values)


def read_texts(path, columns):
    """The cells of the other commands, column by column."""
    rows = read_private_table(path, "pandas", header=True, texts=columns).rows
    return [["" if cell != cell else cell for cell in rows[name]] for name in columns]  # noqa: PLR0124


def test_cells_are_those_that_are_written(tmp_path):
    """By both readers, whatever stands in quotation marks, or after them."""
    path = tmp_path / "t.csv"
    path.write_bytes("\n".join(["p,q", *LINES]).encode())
    for name, cells, told in zip(
        "pq", zip(*LINES.values(), strict=True), read_texts(path, ("p", "q")), strict=True
    ):
        assert told == list(cells)
        keys = [*dict.fromkeys(filter(None, cells)), "other"]  # an empty cell is a missing value
        found = scan(hs.table(path).group_by(name, keys=keys).count())[0]
        assert found == [cells.count(key) for key in keys]


@pytest.mark.parametrize("width", [1, 2])
def test_whatever_the_lines_both_have_as_many_rows(tmp_path, width):
    """Of any bytes: a query without conditions counts the rows that others are given."""
    draw, path = random.Random(width), tmp_path / "t.csv"
    columns = tuple("pq"[:width])
    body = "".join(draw.choice('"",\r\n\nab') for _ in range(3_000))
    path.write_bytes(f"{','.join(columns)}\n{body}".encode())
    held = read_texts(path, columns)
    assert scan(hs.table(path).count()) == [[len(held[0])]]
    assert scan(hs.table(path).group_by("p", keys=["a"]).count()) == [[held[0].count("a")]]


def test_an_empty_line_of_one_column_is_a_row(tmp_path):
    """Whose cell is missing: it counts, and has no value. Of two columns it is no row."""
    for names, rows in (("p", 4), ("p,q", 2)):
        path = tmp_path / f"{rows}.csv"
        path.write_text(f"{names}\n5\n\n\n5\n")
        query = hs.table(path, types={"p": "float"}).count().sum("p", low=0, high=10)
        found = scan(query)
        assert [found[0], query.query.measured[1].step * found[1][0]] == [[rows], 10.0]


@pytest.mark.parametrize("text", ["p,q\ra,b\rc,d\r", "p,q\ra,b"])
def test_carriage_returns_alone_end_no_line(tmp_path, text):
    """A file of them would be one row, or none: it is refused by all."""
    path = tmp_path / "old.csv"
    path.write_bytes(text.encode())
    with pytest.raises(BadRows, match="carriage returns in place of ends of lines"):
        read_private_table(path, header=True)
    with pytest.raises(BadRows, match="carriage returns in place of ends of lines"):
        hs.table(path)
