"""The page on pricing says what the library does."""

import doctest
from pathlib import Path


def test_every_snippet_runs():
    """Every snippet of docs/pricing.md gives the output printed beside it."""
    page = Path(__file__).parent.parent / "docs" / "pricing.md"
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted > 20
    assert result.failed == 0
