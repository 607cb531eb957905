"""Records that people meet in a notebook are sentences there, and no lists of all fields."""

import numpy as np
import pandas as pd
import pytest

import hushed as hs


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Give one of each, as a user comes by it."""
    ledger = hs.Ledger(f"sqlite:///{tmp_path_factory.mktemp('l')}/l.db")
    ledger.open_budget("clinic", hs.Guarantee(epsilon=9.0, neighbours="add-remove"))
    table = hs.table(pd.DataFrame({"x": [1.0, 2.0, 3.0]}))
    table.count().release(epsilon=1.0, ledger=ledger, budget="clinic", note="yearly")
    known = hs.certify(1, ledger=ledger, budget="clinic")
    box = hs.populations.Uniform(low=0, high=1)
    s = hs.sample_sensitivity(np.mean, box, rows=9, gamma=0.2, progress=False)
    certificate = hs.release(np.mean, np.full(9, 0.5), hs.Laplace(s, epsilon=1.0)).certificate
    search = hs.AboveThreshold(50, 5.0, positives=1, values=2.0)
    crossed, below = search.ask(10_000), hs.releasing.Crossing(above=False)
    step = table.count().quote(epsilon=1.0).distances[0]
    report = hs.certify_budget(ledger, "clinic").subject
    return {
        "Entry 1 of budget clinic": known.entry,
        "Budget clinic: epsilon 9": ledger.balance("clinic").budget,
        "after charge 1 (yearly)": report.history[-1],
        "sampled on": certificate.sampling,
        "laplace, 1 value: noise of scale": certificate.mechanism,
        "Above the threshold, by": crossed,
        "Below the threshold": below,
        "1 question, 1 found above the threshold: number 1": search.transcript,
        "count: one row ->": step,
        "the number of rows moves by 1": step.steps[-1],
    }


def test_each_is_a_sentence(records):
    """Printed, in one line of a list, and on a card."""
    for words, record in records.items():
        assert words in str(record), str(record)
        assert words.split(" ")[0] in repr(record)
        assert f"{type(record).__name__}(" not in repr(record)
        assert len(repr(record)) < 260
        assert "<div" in record._repr_html_()
