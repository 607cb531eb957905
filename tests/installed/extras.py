"""What the usual extras add; `package.py` runs it in an environment that has them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from sklearn.linear_model import LogisticRegression

import hushed as hs
from hushed.plots import movement_figure, save_figure
from hushed.sklearn import PrivateEstimator

CITIES = ["Oslo", "Rome"]


def check_queries() -> None:
    """A file and two kinds of frames are counted by group; the ledger is charged for each."""
    frame = pd.read_csv("visits.csv")
    with hs.Ledger("sqlite:///budget.db") as ledger:
        limit = hs.Guarantee(epsilon=3.0, neighbours="add-remove", unit="user")
        ledger.open_budget("visits", limit)
        for source in ("visits.csv", frame, pa.Table.from_pandas(frame)):
            visits = hs.table(source, user="who").bound_contributions(max_rows_per_user=2)
            query = visits.group_by("city", keys=CITIES)
            answer = query.count().release(epsilon=1.0, ledger=ledger, budget="visits")
            assert [row["city"] for row in answer.rows()] == CITIES
            for row, count in zip(answer.rows(), (1, 3), strict=True):
                assert abs(row["count"] - count) < 100  # scale 2; false alarms: exp(-50)
        assert len(ledger.entries("visits")) == 3


def check_figures() -> None:
    """The figure of a certificate is written as a picture."""
    uniform = hs.populations.Uniform(low=0, high=1)
    sensitivity = hs.sample_sensitivity(np.mean, uniform, rows=20, gamma=0.1)
    released = hs.release(np.mean, np.full(20, 0.5), hs.Laplace(sensitivity, epsilon=1.0))
    save_figure(movement_figure(released.certificate), Path("movements.png"))
    assert Path("movements.png").read_bytes().startswith(b"\x89PNG")


def check_estimators() -> None:
    """A private estimator fits rows that noise cannot hide at this level."""
    features = np.random.default_rng(3).uniform(-0.5, 0.5, size=(2000, 2))
    labels = (features[:, 0] > 0).astype(int)
    options = {"epsilon": 50.0, "route": "objective", "bounds": (-0.5, 0.5), "labels": [0, 1]}
    model = PrivateEstimator(LogisticRegression(), **options).fit(features, labels)
    assert model.score(features, labels) > 0.9


if __name__ == "__main__":
    assert Path(sys.prefix) in Path(hs.__file__).parents, hs.__file__
    check_queries()
    check_figures()
    check_estimators()
