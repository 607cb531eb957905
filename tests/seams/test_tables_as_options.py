"""A table handed in for an option: the error names its type, and shows no cell of it."""

from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest

import hushed as hs
from hushed.errors import HushedError
from hushed.spaces import Distance

SECRET = 987654.25
CLAIM = hs.Guarantee(epsilon=1.0)
UNIT = hs.populations.Uniform(low=0, high=1)
BOUND = hs.proven_sensitivity(0.5, argument="a proof")
TABLES = {
    "frame": pd.DataFrame({"cost": [SECRET] * 4}),
    "series": pd.Series([SECRET] * 4),
    "array": np.full((4, 1), SECRET),
    "one cell": np.full(1, SECRET),
    "list": [SECRET] * 4,
    "words": ["Wilhelmina 987654"] * 4,
    "text of a file": "name,cost\n" + "Wilhelmina,987654\n" * 20,
}
SAMPLED = (
    "rows gamma pairs norm unit user seed workers protect neighbours calibration distance position"
)
ASKED = {"rows": 20, "gamma": 0.2, "symmetric": True}


def sample(**option):
    return hs.sample_sensitivity(np.mean, UNIT, **ASKED | option)


def _hashed(table):
    return tuple(table) if isinstance(table, list) else table


ONE = pd.DataFrame({"x": [1]})
USED = pd.DataFrame({"u": [1, 2]})
LAPLACE = hs.Laplace(BOUND, epsilon=1.0)
COLUMNS = ("sum", "mean", "variance", "median", "histogram")


def look_up(table, ask):
    """Ask a new ledger, which has one budget."""
    with TemporaryDirectory() as folder, hs.Ledger(f"sqlite:///{folder}/l.db") as ledger:
        ledger.open_budget("b", hs.Guarantee(epsilon=1.0), method="basic")
        return ask(ledger, table)


CALLS = {
    **{
        f"column of {name}": lambda table, name=name: getattr(hs.table(ONE), name)(
            table, low=0, high=3
        )
        for name in COLUMNS
    },
    **{
        f"{name} without a ledger": lambda table, name=name: hs.release(
            np.mean, [0.5, 0.5], LAPLACE, **{name: table}
        )
        for name in ("budget", "key")
    },
    "budget above": lambda table: hs.AboveThreshold(1.0, 1.0, budget=table),
    "name of a table": lambda table: hs.table(ONE, table),
    "user of a table": lambda table: hs.table(ONE, user=table),
    "probabilities": lambda table: hs.table(ONE).quantiles("x", table, low=0, high=3),
    "rows of each user": lambda table: (
        hs.table(USED, user="u")
        .bound_contributions(max_rows_per_user=2)
        .count()
        .quote(epsilon=1.0, rows_per_user=table)
    ),
    "anchor": lambda table: look_up(table, lambda ledger, given: ledger.verify("b", given)),
    **{
        f"{name} of a budget": lambda table, name=name: look_up(
            table,
            lambda ledger, given: ledger.open_budget(
                "other", hs.Guarantee(epsilon=1.0, delta=0.1), **{name: given}
            ),
        )
        for name in ("slack", "order")
    },
    "output of an answer": lambda table: (
        hs.table(ONE).count().release(epsilon=1.0).value(_hashed(table))
    ),
    "output of a price": lambda table: hs.table(ONE).count().quote_for(errors={_hashed(table): 1}),
    "name of a budget": lambda table: look_up(table, lambda ledger, given: ledger.entries(given)),
    **{
        f"sample {name}": lambda table, name=name: sample(**{name: table})
        for name in SAMPLED.split()
    },
    **{
        f"blocks {name}": lambda table, name=name: hs.Blocks(**{"low": 0, "high": 1, name: table})
        for name in ("blocks", "beta", "user", "epsilon", "low", "aggregate", "spacing", "unit")
    },
    "blockwise": lambda table: hs.Blockwise(np.mean, rows=table),
    "laplace epsilon": lambda table: hs.Laplace(BOUND, epsilon=table),
    "laplace sensitivity": lambda table: hs.Laplace(table, epsilon=1.0),
    "gaussian delta": lambda table: hs.Gaussian(BOUND, epsilon=1.0, delta=table),
    "accuracy": lambda table: hs.Laplace(BOUND, epsilon=1.0).accuracy(table),
    "proven": lambda table: hs.proven_sensitivity(table, argument="a proof"),
    "argument": lambda table: hs.proven_sensitivity(0.5, argument=table),
    "median rows": lambda table: hs.statistics.median(rows=table, low=0, high=1),
    "median low": lambda table: hs.statistics.median(rows=5, low=table, high=1),
    "guarantee": lambda table: hs.Guarantee(epsilon=table),
    "guarantee marginal": lambda table: hs.Guarantee(epsilon=1.0, marginal=table),
    "sum low": lambda table: hs.table(ONE).sum("x", low=table, high=3),
    "timeout": lambda table: hs.table(ONE).count().release(epsilon=1.0, timeout=table),
    "keys": lambda table: hs.table(ONE).group_by("x", keys=[table]),
    "distance": Distance,
    "guarantee neighbours": lambda table: hs.Guarantee(epsilon=1.0, neighbours=table),
    "guarantee distance": lambda table: hs.Guarantee(epsilon=1.0, distance=table),
    "compare": lambda table: hs.compare(np.mean, UNIT, rows=table, epsilon=1.0),
    "compare epsilon": lambda table: hs.compare(np.mean, UNIT, rows=20, epsilon=table),
    "compose": hs.compose,
    "compose delta": lambda table: hs.compose([hs.Guarantee(epsilon=1.0)], delta=table),
    "audit": lambda table: hs.audit(
        np.mean, [(1, 0)], claim=hs.Guarantee(epsilon=1), samples=table
    ),
    "audit claim": lambda table: hs.audit(np.mean, [(1, 0)], claim=table),
    "simulate": lambda table: hs.Blocks(low=0, high=1).simulate(np.mean, UNIT, table),
    "verify": hs.verify,
    "simulator": hs.populations.Simulator,
    "check": lambda table: hs.check_population([0.5] * 20, UNIT, epsilon=table),
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("call", CALLS)
def test_no_cell_is_shown(call, kind):
    try:
        CALLS[call](TABLES[kind])
    except (HushedError, TypeError, ValueError) as told:
        error: BaseException | None = told
        while error is not None:
            assert "987654" not in str(error)
            error = error.__cause__ if error.__suppress_context__ else error.__context__
