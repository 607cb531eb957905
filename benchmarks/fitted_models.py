"""What gamma is met on real rows where the population is a model fitted to public ones.

Run with ``python -m benchmarks fitted_models``. Some rows of a real table are public, a model
is fitted to them (`hs.populations.fitted`), and a sensitivity is sampled from it at gamma = 0.05,
with marginal calibration, which keeps gamma exactly where rows come from the population. Then pairs
of tables of the other rows are drawn, and those are counted whose answers move farther.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

import hushed as hs

GAMMA, PAIRS, TRIALS = 0.05, 199, 300
TABLES = 10
Rows = np.ndarray


def squares(rows: Rows) -> Rows:
    """Coefficients of least squares."""
    ones = np.column_stack([np.ones(len(rows)), rows[:, 1:]])
    return np.linalg.lstsq(ones, rows[:, 0], rcond=None)[0]


def ridge(rows: Rows) -> Rows:
    """Coefficients of a ridge on columns that are scaled by the rows themselves."""
    z = (rows - rows.mean(axis=0)) / (rows.std(axis=0) + 1e-9)
    x = z[:, 1:]
    return np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ z[:, 0])


def product(rows: Rows) -> Rows:
    """Mean of a product of three columns."""
    return np.atleast_1d((rows[:, 0] * rows[:, 2] * rows[:, 3]).mean())


def trimmed(rows: Rows) -> Rows:
    """Mean of a column without its five smallest and largest values."""
    return np.atleast_1d(np.sort(rows[:, 0])[5:-5].mean())


def real_tables() -> dict[str, tuple[Rows, int, int]]:
    """Give real rows, how many of them are public, and the rows of a private table."""
    import statsmodels.api as sm
    from sklearn import datasets

    visits = sm.datasets.randhie.load_pandas().data
    diabetes = datasets.load_diabetes(scaled=False)
    return {
        "RAND": (visits[["mdvis", "lncoins", "physlm", "disea", "lpi"]].to_numpy(float), 1000, 100),
        "breast cancer": (datasets.load_breast_cancer().data[:, [0, 1, 4, 7, 3]], 200, 50),
        "diabetes": (
            np.column_stack([diabetes.data[:, [0, 2, 3, 8]], diabetes.target]),
            150,
            50,
        ),
    }


def share_beyond(f: Callable[[Rows], Rows], rows: Rows, public: int, size: int, seed: int) -> float:
    """Count the pairs of real rows that move farther than what was sampled from the model."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(rows))
    model = hs.populations.fitted(hs.populations.PublicTable(rows[order[:public]]))
    s = hs.sample_sensitivity(
        f,
        model,
        rows=size,
        norm="l2",
        gamma=GAMMA,
        pairs=PAIRS,
        calibration="marginal",
        symmetric=True,
        seed=seed,
    )
    others, beyond = rows[order[public:]], 0
    for _ in range(TRIALS):
        drawn = others[rng.choice(len(others), size + 1, replace=False)]
        neighbour = drawn[:-1].copy()
        neighbour[0] = drawn[-1]
        beyond += bool(np.linalg.norm(f(drawn[:-1]) - f(neighbour)) > s.value)
    return beyond / TRIALS


def main(*, quick: bool) -> None:
    """Print a line for each table and function."""
    warnings.simplefilter("ignore")
    print("| table | function | mean | smallest | largest |\n|---|---|---|---|---|")
    for name, (rows, public, size) in real_tables().items():
        for f in (squares, ridge, product, trimmed):
            shares = [
                share_beyond(f, rows, public, size, seed) for seed in range(1 if quick else TABLES)
            ]
            ends = f"{min(shares):.3f} | {max(shares):.3f}"
            print(f"| {name} | {f.__name__} | {np.mean(shares):.3f} | {ends} |", flush=True)
