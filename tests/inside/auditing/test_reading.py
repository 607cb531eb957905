"""What is read of an output, within bounds: audits read many thousands of them."""

import hashlib
import math
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from types import SimpleNamespace
from uuid import UUID

import numpy as np
import pytest

from hushed.auditing import _keeping, _reading
from hushed.auditing._outputs import choose_encoder
from hushed.auditing._programs import parse_line
from hushed.auditing._reading import read_object

TEXT = "cost 1.5 " * 130


def test_letters_behind_the_first_are_not_split(monkeypatch):
    """What is split is what takes time: of 256 texts, 10,000 letters and no more."""
    split = []
    number = _reading._NUMBER
    monkeypatch.setattr(
        _reading,
        "_NUMBER",
        SimpleNamespace(split=lambda text: split.append(len(text)) or number.split(text)),
    )
    read_object([TEXT] * 256)
    assert sum(split) == 10_000


def test_letters_are_counted_over_all_parts_of_an_output():
    """The numbers of a dict's texts, too, are noted up to 10,000 letters, and those alone."""
    texts = {f"{key:03}": "cost 1.5 " + "x" * 4_991 for key in range(4)}
    (_, kinds, _), _, leaves = read_object(texts)
    assert leaves.count(1.5) == 2
    assert kinds.count("cost #") == 2


def test_an_output_keeps_its_first_256_numbers():
    """Each text is a number, too, by which it is known: so are 86 texts with two numbers each."""
    output = [f"{place} of 300" for place in range(300)]
    _, _, leaves = read_object(output)
    assert leaves[1:256:3] == list(map(float, range(85)))
    assert choose_encoder([[output]]).width == 256


@pytest.mark.parametrize("kind", ["?", "i1", "u8", "f2", "f4", ">f8", "g"])
def test_numbers_of_an_array_are_those_of_its_cells(kind):
    """Whatever their type, order in memory and shape: as Python's own float reads each one."""
    array = np.arange(600).reshape(20, 30).astype(kind)[::-1, ::2].T
    _, _, leaves = read_object(array)
    assert leaves == [float(cell) for cell in array.flatten()[:256]]
    assert all(type(each) is float for each in leaves)


def test_numbers_beyond_doubles_are_infinite():
    assert read_object(np.array([np.longdouble("1e4000"), -1]))[2] == [math.inf, -1.0]


KINDS = [
    [1.5, -0.0, 2**70, True, None, "cost 1.5", b"2", 1j],
    {"b": [], "a": (Decimal("1.50"), Fraction(1, 3))},
    np.array([[1, 2**60]]),
    np.array([("a", 1.0)], dtype=[("name", "U1"), ("cost", "f8")]),
    SimpleNamespace(value=np.float32(0.5), kind=int),
    parse_line('{"a":1.50}'),
    [datetime(2020, 1, 1, tzinfo=UTC), PurePosixPath("a/1.5"), UUID(int=2**70 + 1)],
]


def test_what_is_read_in_another_way_is_not_joined_to_kept_runs():
    """If this fails: raise `_ENCODING`, so that kept runs are made anew, and write both here."""
    read = repr([read_object(each) for each in KINDS])
    found = hashlib.sha256(read.encode()).hexdigest()[:16]
    assert (_keeping._ENCODING, found) == (6, "86723066f8994e77")
