"""A practice workspace: a clinic of made-up people, a public table, and budgets to spend."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from hushed._ground.whole_files import write_whole
from hushed.errors import BudgetExists
from hushed.guarantee import Guarantee
from hushed.workbench._bench import Workbench
from hushed.workbench._drafts import Draft

WARDS = ("emergency", "heart", "maternity", "surgery")
_FUNCTION = '''"""A function to make private: a mean without the largest and smallest tenths."""

import numpy as np


def trimmed_mean(rows):
    """Mean cost, without the tenth of the rows at each end."""
    costs = np.sort(rows[:, 0])
    cut = len(costs) // 10
    return costs[cut : len(costs) - cut].mean()
'''
_DESCRIBED = {
    "where": "file",
    "file": "stays.csv",
    "protect": "person",
    "user": "patient",
    "max_rows": "5",
    "rows": "2000",
    "budget": "stays",
    "public": "public-stays.csv",
    "col.0.name": "patient",
    "col.1.name": "ward",
    "col.1.kind": "string",
    "col.1.keys": "\n".join(WARDS),
    "col.2.name": "age",
    "col.2.kind": "int",
    "col.2.low": "0",
    "col.2.high": "100",
    "col.3.name": "nights",
    "col.3.kind": "int",
    "col.3.low": "0",
    "col.3.high": "30",
    "col.4.name": "cost",
    "col.4.kind": "float",
    "col.4.low": "0",
    "col.4.high": "5000",
}
_SAMPLED = {
    "do.function": "fees.py:trimmed_mean",
    "do.population": "file",
    "do.population_file": "public-fees.csv",
    "do.data": "fees.csv",
    "do.rows": "400",
    "do.one_in": "20",
    "do.symmetric": "yes",
}


def make_practice(bench: Workbench) -> Draft:
    """Make the practice workspace if it is not there, and a draft on its table."""
    folder = bench.workspace.folder
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _write_stays(folder / "stays.csv", patients=700, seed=1)
    _write_stays(folder / "public-stays.csv", patients=300, seed=2)
    _write_costs(folder / "fees.csv", rows=400, seed=3)
    # Enough for the pairs of tables that a promise takes which fails for 1 in 20.
    _write_costs(folder / "public-fees.csv", rows=50_000, seed=4)
    _write_new(folder / "fees.py", _FUNCTION)
    ledger = bench.ledger(create=True)
    for name, limit in {
        "stays": Guarantee(epsilon=3, delta=1e-5, neighbours="add-remove", unit="user"),
        "fees": Guarantee(epsilon=3, delta=1e-5, gamma=0.2),
    }.items():
        with suppress(BudgetExists):
            ledger.open_budget(name, limit, note="practice")
    if not bench.drafts.list("function"):
        bench.drafts.create("function", "Fees of the example clinic", _SAMPLED)
    fields = {f"data.{name}": text for name, text in _DESCRIBED.items()}
    return bench.drafts.create("table", "Stays at the example clinic", fields)


def _write_stays(path: Path, *, patients: int, seed: int) -> None:
    """Write stays of made-up people."""
    draw = np.random.default_rng(seed)
    lines = []
    for patient in range(patients):
        age = int(np.clip(draw.normal(55, 18), 0, 99))
        for _ in range(1 + draw.poisson(1.8)):
            nights = int(min(30, draw.poisson(1 + age / 25)))
            cost = round(float(min(5000, 180 + 190 * nights + draw.gamma(2, 160))), 2)
            lines.append((f"P{patient:04d}", WARDS[draw.integers(4)], age, nights, cost))
    _write_rows(path, ("patient", "ward", "age", "nights", "cost"), lines)


def _write_costs(path: Path, *, rows: int, seed: int) -> None:
    """Write costs alone, one a person, for functions on rows of numbers."""
    draw = np.random.default_rng(seed)
    costs = np.minimum(5000, 180 + draw.gamma(3, 250, rows)).round(2)
    _write_rows(path, ("cost",), [(float(each),) for each in costs])


def _write_rows(path: Path, names: tuple[str, ...], lines: Sequence[tuple[object, ...]]) -> None:
    text = "\n".join(",".join(map(str, each)) for each in (names, *lines))
    _write_new(path, text + "\n")


def _write_new(path: Path, text: str) -> None:
    """Write a file that is not there; one that is there stays, for a draft may describe it."""
    if not path.exists():
        write_whole(path, text)
