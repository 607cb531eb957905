"""A key that stands for a question: an answer of other rows is never given without a word."""

import warnings

import numpy as np
import pandas as pd
import pytest

import hushed as hs
from hushed.errors import HushedWarning

SAID = "stored before under the key 'f'.*other"


@pytest.fixture
def ledger(tmp_path):
    with hs.Ledger(f"sqlite:///{tmp_path / 'l.db'}") as opened:
        opened.open_budget("b", hs.Guarantee(epsilon=9.0, neighbours="add-remove"))
        opened.open_budget("replaced", hs.Guarantee(epsilon=9.0))
        yield opened


def count(table, ledger):
    return hs.table(table).count().release(epsilon=1.0, ledger=ledger, budget="b", key="f")


def test_a_stored_answer_under_the_key_of_another_frame_is_told(ledger):
    """The first release says nothing; the second gives the first answer, and says that it does."""
    few, many = (pd.DataFrame({"x": range(rows)}) for rows in (10, 5000))
    first = count(few, ledger)
    with pytest.warns(HushedWarning, match=SAID):
        again = count(many, ledger)
    assert again == first
    assert ledger.balance("b").entries == 1


def test_a_stored_answer_is_not_lost_where_warnings_are_errors(ledger, capsys):
    """Then it is printed."""
    frame = pd.DataFrame({"x": range(10)})
    first = count(frame, ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("error", HushedWarning)
        assert count(frame, ledger) == first
    assert "stored before under the key 'f'" in capsys.readouterr().err


def test_a_file_is_told_apart_by_its_address(ledger, tmp_path):
    """Nothing is said of the same file, and another one is refused."""
    for name in ("one.csv", "two.csv"):
        (tmp_path / name).write_text("x\n1\n2\n")
    first = count(tmp_path / "one.csv", ledger)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert count(tmp_path / "one.csv", ledger) == first
    assert not [each for each in told if issubclass(each.category, HushedWarning)]
    with pytest.raises(hs.errors.KeyInUse):
        count(tmp_path / "two.csv", ledger)


def test_a_stored_release_of_other_rows_is_told(ledger):
    """So it is for any rows that are given in Python."""
    bound = hs.proven_sensitivity(1.0, norm="l1", argument="a sum of numbers in 0 to 1")
    laplace = hs.Laplace(bound, epsilon=1.0)
    terms = {"ledger": ledger, "budget": "replaced", "key": "f"}
    first = hs.release(np.sum, np.zeros(10), laplace, **terms)
    with pytest.warns(HushedWarning, match=SAID):
        assert hs.release(np.sum, np.ones(10), laplace, **terms) == first
