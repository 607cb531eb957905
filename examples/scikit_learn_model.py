"""A private logistic regression with scikit-learn: who goes to the doctor at all in a year?

The public pilot is smaller than the private table, so that the model is fitted on blocks of 200
rows, and the average of its coefficients is released.

Needs scikit-learn and statsmodels, which holds the rows (RAND Health Insurance Experiment). Adapt
it: put your own columns into ``features`` and ``label``, your model into ``coefficients``, and your
public table into ``load``.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import hushed as hs

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

Rows = NDArray[np.float64]


def features(rows: Rows) -> Rows:
    """Scale the columns by constants that are public, so that no scale leaks."""
    return np.column_stack([rows[:, 1] / 4.62, rows[:, 5], rows[:, 6] / 20])


def label(rows: Rows) -> NDArray[np.bool_]:
    return rows[:, 0] > 0


def coefficients(rows: Rows) -> Rows:
    """Three weights and the intercept: everything that leaves the private side."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1.0, tol=1e-8).fit(features(rows), label(rows))
    return np.append(model.coef_[0], model.intercept_)


def model_from(released: Rows) -> LogisticRegression:
    """A fitted scikit-learn model with the released numbers in it."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression()
    model.classes_ = np.array([False, True])
    model.coef_, model.intercept_ = released[None, :-1], released[-1:]
    return model


def ranking(truth: NDArray[np.bool_], chance: Rows) -> float:
    """Share of pairs of a goer and a non-goer that the model puts the right way round."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth, chance))


def load() -> tuple[Rows, Rows]:
    """Split the table into a public pilot, a fifth of the rows, and a private rest."""
    from statsmodels.datasets import randhie

    table = randhie.load_pandas().data.to_numpy(dtype=np.float64)
    pilot = (np.arange(len(table)) // 500) % 5 == 0
    return table[pilot], table[~pilot]


def main(block: int = 200) -> None:
    public, private = load()
    population = hs.populations.PublicTable(public, name="RAND HIE, pilot fifth")
    averaged = hs.Blockwise(coefficients, rows=block)
    s = hs.sample_sensitivity(
        averaged,
        population,
        rows=len(private),
        gamma=0.05,
        calibration="marginal",  # 19 pairs, each of block + 1 public rows that no other one has
        symmetric=True,  # the order of the rows does not matter, which is tried
    )
    mechanism = hs.Laplace(s, epsilon=0.5)
    error = mechanism.accuracy(beta=0.05, dims=4)
    print(f"{s.pairs} pairs, l1 sensitivity {s.value:.5f}")
    print(f"with probability 95 % every coefficient is within {error:.4f} of the average")

    released = hs.release(averaged, private, mechanism)
    print("released:", np.round(released.value, 3))

    # Tested on the public pilot: a score on the private rows would be one more release. Counting
    # right answers would say little, since most people go; the score is how well it ranks them.
    chance = model_from(released.value).predict_proba(features(public))[:, 1]
    print(f"ranks a goer above a non-goer of the pilot in {ranking(label(public), chance):.1%}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
