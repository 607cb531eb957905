"""What errors quote of what was given: a word, and nothing of a table that was meant elsewhere."""

import numpy as np
import pyarrow as pa
import pytest

import hushed as hs
from hushed.errors import HushedError

ROWS = "name;cost\nAnna;725\nBob;31"
TABLE = hs.table(pa.table({"a": [1, 2, 3]}))


@pytest.mark.parametrize(
    "call",
    [
        lambda: hs.table(ROWS),
        lambda: TABLE.filter(ROWS),
        lambda: TABLE.derive("b", ROWS),
        lambda: TABLE.sum(ROWS, low=0, high=1),
        lambda: TABLE.group_by(ROWS, keys=[1]),
        lambda: TABLE.count().quote(epsilon=1.0, noise=ROWS),
        lambda: hs.Guarantee(epsilon=1.0, neighbours=ROWS),
    ],
)
def test_a_text_of_several_lines_is_measured_and_not_quoted(call):
    """It is shorter than what would be cut, and may be a file of private rows."""
    with pytest.raises(HushedError) as caught:
        call()
    said = str(caught.value)
    assert "Anna" not in said
    assert "name;cost" not in said
    assert f"a text of {len(ROWS)} characters in 3 lines" in said


def test_a_word_is_quoted():
    """It is mostly misspelt."""
    with pytest.raises(HushedError, match="'replace-two'"):
        hs.Guarantee(epsilon=1.0, neighbours="replace-two")
    with pytest.raises(HushedError, match="cannot read the expression 'a >'"):
        TABLE.filter("a >")


@pytest.mark.parametrize(
    "claim",
    [
        lambda given: hs.ZeroConcentrated(rho=given),
        lambda given: hs.Renyi(order=given, epsilon=1.0),
        lambda given: hs.Renyi(order=2.0, epsilon=given),
    ],
)
def test_the_number_of_an_array_is_not_quoted(claim):
    """An array without dimensions may be a cell of the private rows."""
    with pytest.raises(HushedError, match="something of type ndarray"):
        claim(np.array(-7.25))
    with pytest.raises(HushedError, match=r"-7\.25"):
        claim(-7.25)
