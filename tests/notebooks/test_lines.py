"""What stands for a value in a terminal, a list or a traceback, without a notebook."""

import numpy as np
import pandas as pd
import pytest

import hushed as hs
from hushed.sensitivity import Sampling
from hushed.tables import Query


def test_a_ledger_tells_its_file_and_no_secret(tmp_path):
    """Closed, too, when no database can be asked; a server is not named."""
    with hs.Ledger(f"sqlite:///{tmp_path}/of-the-clinic.db") as ledger:
        ledger.open_budget("study", hs.Guarantee(epsilon=2.0))
        assert repr(ledger) == "<Ledger on SQLite, of-the-clinic.db>"
    assert str(ledger) == "<Ledger on SQLite, of-the-clinic.db>"


def test_records_of_a_ledger_are_short(tmp_path):
    """Sums of filters and links of the chain stay out."""
    with hs.Ledger(f"sqlite:///{tmp_path}/b.db") as ledger:
        budget = ledger.open_budget("study", hs.Guarantee(epsilon=2.0, delta=1e-6))
        entry = ledger.charge("study", hs.Guarantee(epsilon=0.5))
        line = repr(ledger.balance("study"))
    assert line.startswith("<Budget study: charges 1, used 25")
    for each in (budget, entry):
        assert "Cost(" not in repr(each)
        assert "PrivacyFilter" not in repr(each)
        assert len(repr(each)) < 300


def test_a_sampling_and_a_public_table_show_no_rows():
    """They are public, but a page of them helps nobody."""
    public = hs.populations.PublicTable(pd.DataFrame({"x": np.arange(900.0)}), name="pilot")
    f = hs.Blockwise(lambda rows: rows["x"].mean(), rows=5)
    s = hs.sample_sensitivity(f, public, rows=10, gamma=0.5, symmetric=True)
    assert repr(public).startswith("<Public table pilot: rows 900, columns x, held as pandas")
    assert "\n" not in repr(public)
    assert isinstance(s.sampling, Sampling)
    assert repr(s.sampling) == (
        f"<Sampling of {f.function.__qualname__}: number {s.rank} of {s.pairs} movements, "
        "gamma 0.5 (record), 10 rows>"
    )
    assert repr(f) == f"Blockwise({f.function.__qualname__}, rows=5)"


def test_a_table_and_a_query_say_what_is_asked():
    """A query as the file that asks it; a table as what it protects and of which columns."""
    asked = hs.table(pd.DataFrame({"age": [30, 40]})).count()
    assert repr(asked) == (
        "<Query of a private table: asked count, protected is one row, columns age (int)>"
    )
    query = Query.of(asked)
    assert Query.from_toml(str(query)) == query


def test_long_or_hostile_texts_fill_no_line():
    """A name of a stranger is cut, and turns no terminal around."""
    name = "\x1b[31m\u202e" + "x" * 500
    public = hs.populations.PublicTable(pd.DataFrame({"x": [1.0]}), name=name)
    assert len(repr(public)) < 260
    assert repr(public).isprintable()


@pytest.mark.parametrize("kind", [hs.Release, hs.Certificate, hs.Statement, hs.Quote, hs.Ledger])
def test_what_is_half_made_can_be_shown(kind):
    """A debugger stops in the middle of __init__, and a traceback shows what is there."""
    assert repr(object.__new__(kind)) == f"<{kind.__name__}>"
