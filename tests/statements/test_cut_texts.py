"""Texts that a report cuts: a number is left out whole, for a part of it is another number."""

import pytest

from hushed._ground.printing import cut_text

_MOST_CELL = 90


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("short 12345", "short 12345"),
        ("word " * 17 + "123456789", "word " * 17 + "..."),
        ("1" * 200, "..."),
        ("a" * 82 + "1,234,567,890", "a" * 82 + " ..."),
        ("note " + "9" * 200, "note ..."),
        ("a " + "b" * 95, "a " + "b" * (_MOST_CELL - 6) + " ..."),
    ],
)
def test_no_number_is_cut_in_the_middle(text, kept):
    assert cut_text(text, _MOST_CELL) == kept
    assert len(cut_text(text, _MOST_CELL)) <= _MOST_CELL
