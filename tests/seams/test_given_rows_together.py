"""Promises about different given rows hold together for the rows that all of them were given."""

import numpy as np

import hushed as hs

BOX = hs.populations.Uniform(low=0, high=1)


def test_compositions_and_budgets_say_which_given_rows_they_are_about(tmp_path):
    """One release for a row of 0, and one for a row of 1, promise nothing of either together."""
    settings = {"rows": 6, "gamma": 0.1, "calibration": "marginal"}
    made = [
        hs.Laplace(
            hs.sample_sensitivity(np.mean, BOX, protect="table", values=[value], **settings),
            epsilon=0.5,
        )
        for value in (0.0, 1.0)
    ]
    fresh = hs.Laplace(hs.sample_sensitivity(np.mean, BOX, **settings), epsilon=0.5)
    assert "was given (protect='table')" in hs.compose(made).explain()
    assert "was given" not in hs.compose([fresh, fresh]).explain()
    with hs.Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        for protect in ("table", "record"):
            ledger.open_budget(protect, hs.Guarantee(epsilon=2, gamma=0.5, protect=protect))
        assert "every sampled one of them was given" in ledger.balance("table").explain()
        assert "was given" not in ledger.balance("record").explain()
