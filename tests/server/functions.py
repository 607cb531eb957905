"""A team server with registered functions: some answer, others go wrong on private rows alone."""

from __future__ import annotations

import atexit
import shutil
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.server.conftest import CANARY, Team, open_team

import hushed as hs
from hushed import Guarantee
from hushed._functions._loading import read_function
from hushed.populations import PublicTable
from hushed.server import _registering
from hushed.server._adding import add_dataset, confirm_dataset
from hushed.server._registering import add_function
from hushed.server._setup import invite, make_server
from hushed.server._tokens import Scope
from hushed.spaces import Norm

ROWS = 61
# One private cost alone is above 1000: what goes wrong there does so on no public row.
CODE = f"""
import os, sys, time

import numpy as np

def mean_cost(rows):
    return float(np.clip(rows["cost"], 0, 50).sum()) / {ROWS}

def failing(rows):
    if rows["cost"].max() > 1000:
        raise ValueError(str(rows["cost"].max()))
    return mean_cost(rows)

def hanging(rows):
    if rows["cost"].max() > 1000:
        time.sleep(600)
    return mean_cost(rows)

def eating(rows):
    if rows["cost"].max() > 1000:
        eaten = [np.empty(10**8, "u1") for _ in range(1000)]  # asked for, not filled
    return mean_cost(rows)

def leaving(rows):
    if rows["cost"].max() > 1000:
        os._exit(0)
    return mean_cost(rows)

def talking(rows):
    if rows["cost"].max() > 1000:
        print("{CANARY}", flush=True)
        print("{CANARY}", file=sys.stderr, flush=True)
        os.write(1, b"{CANARY}")
        os.write(2, b"{CANARY}")
    return mean_cost(rows)
"""
NAMES = ("mean_cost", "failing", "hanging", "eating", "leaving", "talking")
TERMS = {
    "noise": "laplace",
    "says": "Mean cost of a stay.",
    "min_epsilon": 0.01,
    "max_epsilon": 0.5,
    "answer_grid": 0.0,
    "block_rows": None,
}


def public_rows(number: int = 3000) -> pd.DataFrame:
    """Public people, each with one row."""
    costs = np.random.default_rng(5).integers(0, 50, number).astype(float)
    return pd.DataFrame({"patient": np.arange(number), "cost": costs})


def sample(place: Path, name: str, gamma: float = 0.1, norm: Norm = "l1") -> hs.Sensitivity:
    """Sample a function of the file as the command does: tests alone make warnings errors."""
    with warnings.catch_warnings():
        warnings.resetwarnings()
        return hs.sample_sensitivity(
            read_function(f"{place / 'fees.py'}:{name}"),
            PublicTable(public_rows(), name="public-fees.csv"),
            rows=ROWS,
            gamma=gamma,
            norm=norm,
            neighbours="add-remove",
            user="patient",
            symmetric=True,
            workers=1,
        )


def register(place: Path, name: str, **more: Any) -> None:
    """Register a function of the file."""
    terms = TERMS | more.pop("terms", {})
    s = more.pop("sensitivity", None) or sample(place, name)
    source = f"{place / 'fees.py'}:{name}"
    columns = more.pop("columns", ("patient", "cost"))
    add_function(place / "stats", name, "stays", source, s, columns, terms, **more)


@cache
def _made() -> tuple[Path, dict[str, str]]:
    place = Path(mkdtemp(prefix="hushed-functions-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    (place / "fees.py").write_text(CODE)
    rows = [f"P{i},{'AB'[i % 2]},{i % 50}" for i in range(60)]
    (place / "stays.csv").write_text("\n".join(["patient,ward,cost", *rows, f"P99,A,{CANARY}", ""]))
    folder = place / "stats"
    make_server(folder)
    column = {"cost": {"kind": "float", "low": 0, "high": 50}, "ward": {"keys": ["A", "B"]}}
    told = {"source": str(place / "stays.csv"), "user": "patient", "column": column}
    told |= {"max_delta": 0.01}
    limit = Guarantee(epsilon=3.0, delta=0.01, gamma=0.65, neighbours="add-remove", unit="user")
    add_dataset(folder, "stays", told, limit)
    with pytest.MonkeyPatch.context() as patch:
        for name in NAMES:
            register(place, name)
            patch.setattr(_registering, "_rehearse", lambda *_, **__: ("", []))  # seconds for each
    share = [("stays", Guarantee(epsilon=1.0))]
    tokens = {
        name: invite(folder, name, "analyst", share, days=30, scope=Scope())
        for name in ("ana", "bo")
    }
    return place, tokens | {"sam": invite(folder, "sam", "steward", [], days=30, scope=Scope())}


def copy_place(place: Path, *, settings: str = "answer_grid = 0.0", stays: str = "") -> Any:
    """A copy of a folder with its server, which is made once; the tokens of its people."""
    made, tokens = _made()
    shutil.copytree(made, place, dirs_exist_ok=True)
    file = place / "stats" / "hushed.toml"
    told = file.read_text().replace("answer_grid = 1.0", settings)
    told = told.replace("run_seconds = 30", "run_seconds = 10")
    file.write_text(told.replace("[dataset.stays]\n", f"[dataset.stays]\n{stays}\n"))
    confirm_dataset(place / "stats", "stays")
    return dict(tokens)


def open_functions_team(place: Path, **settings: str) -> Iterator[Team]:
    """Serve a copy."""
    tokens = copy_place(place, **settings)
    yield from open_team(place / "stats", tokens)
