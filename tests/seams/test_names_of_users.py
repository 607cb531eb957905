"""No name of a user is more than one user, whatever class it is of, and none ends a release."""

import enum
import itertools
import uuid
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import hushed as hs
from hushed.cli._private_tables import _read_csv as read_csv

COUNTER = itertools.count()


class Liar:
    """A name that equals the others sometimes, and prints another text each time."""

    def __eq__(self, other):
        return next(COUNTER) % 2 == 0

    def __hash__(self):
        return 1

    def __repr__(self):
        return str(next(COUNTER))


class Raiser(Liar):
    """A name that cannot be compared with another one, but with itself."""

    def __eq__(self, other):
        if other is not self:
            raise RuntimeError("secret")
        return True

    __hash__ = Liar.__hash__


class Stopper(Liar):
    """A name that ends the program when it is asked for its hash."""

    def __hash__(self):
        raise SystemExit


class Zone(tzinfo):
    """A time zone that fails, or gives another offset each time."""

    def utcoffset(self, moment):
        return timedelta(minutes=next(COUNTER) % 100)


class Row(tuple):
    """A row that looks like a stop by the user when it is asked whose it is."""

    __slots__ = ()

    def __getitem__(self, place):
        raise KeyboardInterrupt


class NAType(Liar):
    """A name of the class of pandas' missing value, which it is not."""


def deep():
    """Nest tuples deeper than Python can follow."""
    found = ()
    for _ in range(3_000):
        found = (found,)
    return found


MAKERS = {
    "lies": Liar,
    "raises": Raiser,
    "stops": Stopper,
    "within a tuple": lambda: ("a", Raiser()),
    "an odd time zone": lambda: datetime(2020, 1, 1, tzinfo=Zone()),
    "not missing": NAType,
    "a deep tuple": deep,
}
MANY = hs.Blocks(low=0, high=1, epsilon=30.0, blocks=12, user=0)


@pytest.mark.slow_cases("a deep tuple")
@pytest.mark.parametrize("kind", MAKERS)
def test_odd_names_are_in_no_part_and_end_nothing(kind):
    """A failure after the charge would tell of one row."""
    made = MAKERS[kind]
    rows = [(made(), 5) for _ in range(40)] + [("ann", 1)] * 30
    parts = MANY.split(rows)
    assert sorted(map(len, parts))[-2:] == [0, 30]


@pytest.mark.slow_cases("a deep tuple")
@pytest.mark.parametrize("kind", MAKERS)
def test_odd_names_are_one_user_of_a_bound(kind):
    """Counted once for each row, one person would move every count as far as they like."""
    made = MAKERS[kind]
    column, users = [5.0] * 500 + [1e6] * 120, [*range(500), *(made() for _ in range(120))]
    assert hs.find_bound(column, users=users, epsilon=100.0, above=20).value == 8.0


def test_a_row_is_asked_by_what_it_is():
    """And not by what its class makes of it."""
    assert sorted(map(len, MANY.split([Row(("ann", 1))] * 20 + [("ann", 1)] * 30)))[-2:] == [0, 50]


class Colour(enum.Enum):
    """Plain members."""

    RED = 1
    BLUE = 2


NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)
SAME = {
    "numbers": (7, 7.0, True + 6, Decimal("7.0"), Fraction(7), np.float32(7), np.longdouble(7)),
    "texts": ("ann", np.str_("ann")),
    "bytes": (b"ann", bytearray(b"ann")),
    "moments": (NOON, NOON.astimezone(timezone.max), pd.Timestamp(NOON)),
    "days": (date(2020, 1, 1), date(2020, 1, 1)),
    "members": (Colour.RED, Colour.RED),
    "uuids": (uuid.UUID(int=5), uuid.UUID(int=5)),
    "tuples": (("a", 1, None), ("a", 1.0, float("nan"))),
}


@pytest.mark.parametrize("kind", SAME)
def test_equal_names_are_one_user_and_others_are_not(kind):
    """Of every type that is known, in blocks as in a search for a bound."""
    names = list(itertools.islice(itertools.cycle(SAME[kind]), 60))
    assert sorted(map(len, MANY.split([(name, 0) for name in names])))[-2:] == [0, 60]
    ask = {"epsilon": 100.0, "above": 5}
    column = [5.0] * 500 + [1e6] * 60
    assert hs.find_bound(column, users=[*range(1000, 1500), *names], **ask).value == 8.0
    others = [first for first, *_ in SAME.values()]
    found = hs.find_bound([9.0] * 8, users=others, epsilon=100.0, above=5.5)
    assert found.value == 16.0  # eight users, not one


@pytest.mark.parametrize("rows_between", [0, 400_000])
def test_a_byte_that_is_no_text_is_not_the_user_that_it_is_written_as(rows_between, tmp_path):
    """One user is the byte 0x80, one the character U+EF80; each keeps all of its rows."""
    path = tmp_path / "t.csv"
    broken, written = b"\x80,1\n" * 3, "\uef80,1\n".encode() * 3
    path.write_bytes(b"who,cost\n" + broken + b"ada,1234567\n" * rows_between + written)
    table = hs.table(path, user="who").filter("who != 'ada'")
    bounded = table.bound_contributions(max_rows_per_user=3).count()
    assert bounded.release(epsilon=1e5).value("count") == 6


def test_a_frame_keeps_them_apart_too():
    """Half of a pair of surrogates is three bytes that are no text."""
    frame = pd.DataFrame({"who": ["\udc80"] * 3 + ["\uefed\uefb2\uef80"] * 3}, dtype=object)
    table = hs.table(frame, user="who").bound_contributions(max_rows_per_user=3).count()
    assert table.release(epsilon=1e5).value("count") == 6


def test_a_command_keeps_them_apart_too(tmp_path):
    """A file of private rows, read as a command reads it."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"who\n\x80\n" + "\uef80\n".encode())
    _, rows = read_csv(path, header=True)
    assert rows[0] != rows[1]
