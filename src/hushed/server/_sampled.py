"""A registered function where it is judged and where it sees rows: in a process of its own.

It is loaded anew for each question, and the process does nothing else afterwards: whatever the
function has kept, changed or left running meets no other question, and no rows of another one.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import cycle, islice
from pathlib import Path
from time import process_time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

import hushed as hs
from hushed._functions._calls import answer
from hushed._functions._environment import compute_alone
from hushed._functions._gate import admit_rows
from hushed._functions._loading import read_function
from hushed._ground.printing import brief
from hushed.errors import (
    BadFunction,
    EngineUnavailable,
    HushedError,
    NotFeasible,
    ParameterError,
    QueryFailed,
)
from hushed.releasing._mechanisms import admit_mechanism
from hushed.releasing._pricing import foresee, price_release
from hushed.sensitivity import Blockwise
from hushed.sensitivity._canary import first_table, shown
from hushed.server._functions import digest_file
from hushed.server._worker import BETA, tell_price, tell_unavailable
from hushed.statements._releases import tell_outsider
from hushed.tables._engine import ConnectionLost
from hushed.tables._whole import read_columns

if TYPE_CHECKING:
    from hushed.guarantee import Guarantee
    from hushed.mechanisms import Mechanism
    from hushed.privacy_loss import PrivacyProfile
    from hushed.releasing import Certificate
    from hushed.sensitivity import Sampling
    from hushed.tables import Table

_CHANGED = {"problem": "function_changed"}
# Cells that a column of a table may hold, whatever it holds now.
_HARDEST: Mapping[str, tuple[Any, ...]] = {
    "int": (None, -(2**63), 2**63 - 1),
    "float": (None, float("inf"), -1.7e308, 5e-324),
    "bool": (None, True),
    "string": (None, "", "any text"),
    "date": (None, date.min, date.max),
    "timestamp": (None, datetime.min, datetime.max),
}
_UNSIGNED = (None, 0, 2**64 - 1)


class Changed(Exception):
    """The function is not there, or not as it was registered, or not one for this table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A function and what was sampled of it."""

    function: Any
    sensitivity: hs.Sensitivity


def load(told: Mapping[str, Any]) -> Loaded:
    """Load a function as it was registered; its own words are not told."""
    file = str(told["source"]).rpartition(":")[0]
    if digest_file(file) != told["code"] or digest_file(told["sampled"]) != told["digest"]:
        raise Changed("its file, or what was sampled, is another one")
    try:
        f = read_function(told["source"])
        found = pickle.loads(Path(told["sampled"]).read_bytes())  # noqa: S301  (by its digest)
    except Exception as error:
        raise Changed(f"it cannot be loaded ({type(error).__name__}: {error})") from None
    if told["block_rows"] is not None:
        f = Blockwise(f, rows=told["block_rows"], user=found.sampling.user)
    return Loaded(function=f, sensitivity=found)


def finds_people(sensitivity: hs.Sensitivity, columns: Sequence[str], user: str | None) -> bool:
    """Whether people were sampled by the column that names them in the data set.

    Of a function that was sampled for rows, or of rows, the budget refuses the unit.
    """
    sampling = sensitivity.sampling
    place = None if sampling is None else _find_users(sampling)
    return place is None or user is None or columns[place] == user


def _find_users(sampling: Sampling) -> int | None:
    """Find the place of the column of users that was sampled; None if rows were."""
    layout, place = sampling.layout, sampling.user
    if isinstance(place, int) and layout.container == "array":
        return place
    return None if place is None else list(map(str, layout.columns)).index(str(place))


def require_every_cell(sensitivity: hs.Sensitivity, columns: Sequence[str], table: Table) -> None:
    """Refuse types that do not take every cell of a column: one would make each release fail.

    It would fail after the charge, and tell of the row of one person to everybody who asks.
    """
    if gone := [name for name in columns if name not in table.connection.casts]:
        raise Changed(f"the table has no column {brief(gone[0])}, or of no type that is read")
    try:
        cells = {name: _list_hardest(table, name) for name in columns}
        admit_rows(make_rows(cells, sensitivity), sensitivity.sampling)
    except Exception:
        taken = False
    else:
        taken = True
    if not taken:
        raise Changed(
            "what was sampled does not take every cell that these columns may hold, such as a "
            "missing one among whole numbers in pandas, another category, or a number beyond a "
            "narrow type: sample numbers as float64, times as datetime64[us], and texts as texts"
        )


def list_failing(
    loaded: Loaded, columns: Sequence[str], user: str | None, ends: float
) -> list[str]:
    """List the columns of which one missing cell makes the function fail, on public rows.

    There a release fails after the charge. No more of them are tried after the end, a moment of
    `time.process_time`.
    """
    sampling = loaded.sensitivity.sampling
    if sampling is None or sampling.batch:
        return []
    drawn = first_table(sampling.design, private=False, seed=sampling.seed)
    rows = shown(drawn, sampling.design.rows, batch=False)
    cells = {name: _list_cells(rows, place) for place, name in enumerate(columns)}

    def fails(more: dict[str, list[Any]]) -> bool:
        try:
            given = make_rows(cells | more, loaded.sensitivity)
            found = compute_alone(lambda: answer(loaded.function, given, private=False))
        except Exception:
            return True
        return found.shape != sampling.answer.shape

    if fails({}):  # it is not the missing cell
        return []
    return [
        name
        for name in columns
        if name != user and process_time() < ends and fails({name: [None, *cells[name][1:]]})
    ]


def _list_cells(rows: Any, place: int) -> list[Any]:
    """List the cells of a column of what a function is given."""
    if isinstance(rows, np.ndarray):
        return list((rows if rows.ndim == 1 else rows[:, place]).tolist())
    return list(rows[rows.columns[place]].to_list())


def _list_hardest(table: Table, name: str) -> list[Any]:
    """List the cells of a column that are hardest to take; nobody is no person."""
    cast = table.connection.casts[name]
    hardest = _UNSIGNED if cast.dtype.startswith("decimal") else _HARDEST[cast.type]
    kept = [each for each in hardest if each is not None or name != table.user]
    return list(islice(cycle(kept), 12))


def calibrate(sensitivity: hs.Sensitivity, noise: str, asked: Mapping[str, Any]) -> Mechanism:
    """Calibrate the noise that the steward has chosen to an epsilon, or to an error."""
    epsilon, error, delta = asked["epsilon"], asked.get("error"), asked["delta"]
    more = {"delta": delta} if noise == "gaussian" else {}
    if delta and not more:
        raise ParameterError("this function is released with Laplace noise: leave delta out")
    kind = hs.Gaussian if more else hs.Laplace
    if error is not None:
        return kind.for_accuracy(sensitivity, error=error, beta=BETA, **more)
    return kind(sensitivity, epsilon=epsilon, **more)


def _load_for(told: Mapping[str, Any]) -> Loaded:
    """Load a function for a data set, whose people may be named by another column now."""
    loaded = load(told["function"])
    if not finds_people(loaded.sensitivity, told["function"]["columns"], told["source"]["user"]):
        raise Changed("its people were sampled by another column than that of the data set")
    return loaded


def judge_function(table: Table, told: dict[str, Any]) -> dict[str, Any]:
    """Judge what is asked of a function, or price it; it is tried on public rows alone."""
    wanted, began = told["function"], process_time()
    try:
        loaded = _load_for(told)
        require_every_cell(loaded.sensitivity, wanted["columns"], table)
        mechanism = calibrate(loaded.sensitivity, wanted["noise"], told["asked"])
        if told["do"] == "price":
            admitted = admit_mechanism(mechanism)
            quote = tell_quote(foresee(admitted))
            return tell_price(admitted.guarantee, admitted.loss) | {"quote": quote}
        priced = price_release(loaded.function, mechanism)
    except (Changed, BadFunction) as error:  # why it is, is for the person at the machine alone
        return _CHANGED | ({"detail": str(error)} if told.get("aloud") else {})
    except (ParameterError, NotFeasible) as error:
        return {"problem": "bad_value", "detail": error.message}
    found = tell_price(priced.guarantee, priced.loss) | {"digest": priced.question}
    seconds = told["run_seconds"]
    if told.get("gaps") and wanted["block_rows"] is None and process_time() - began < seconds / 8:
        gaps = list_failing(loaded, wanted["columns"], table.user, began + seconds / 2)
        found["fails_on_missing"] = gaps
    return found


def tell_quote(found: Certificate) -> dict[str, Any]:
    """Tell a price by the certificate that a release would have."""
    promise, made = found.guarantee, found.mechanism
    return {
        "epsilon": promise.epsilon,
        "delta": promise.delta,
        "gamma": promise.gamma,
        "neighbours": promise.neighbours,
        "unit": promise.unit,
        "level": 1 - BETA,
        "threshold": None,
        "outputs": [{"name": "value", "error": made.accuracy, "share": 1.0}],
        "words": found.explain(),
        "outsider": tell_outsider(found),
    }


class _Paid:
    """The charge that the server has made, as `hushed.release` sees it: it pays for one question.

    What is released, or that it failed, is kept as a text.
    """

    def __init__(self, told: Mapping[str, Any]) -> None:
        self._told = told
        self.kept = ""

    def charge(
        self,
        budget: str,  # noqa: ARG002
        guarantee: Guarantee,  # noqa: ARG002
        note: str = "",  # noqa: ARG002
        *,
        loss: PrivacyProfile | None = None,  # noqa: ARG002
        key: str | None = None,  # noqa: ARG002
        question: str = "",
    ) -> SimpleNamespace:
        """Take the charge for the question that it was made for, and for no other one."""
        if question != self._told["question"]:
            raise ParameterError("another question was charged")
        return SimpleNamespace(number=1, terms=self._told["terms"])

    def keep_answer(self, budget: str, entry: Any, text: str) -> str:  # noqa: ARG002
        """Keep what the server is going to store, as of the charge: rows were read meanwhile."""
        told = json.loads(text)
        if "certificate" in told:
            told["certificate"]["created"] = self._told["created"]
        self.kept = json.dumps(told, sort_keys=True)
        return self.kept


def release_function(table: Table, told: dict[str, Any]) -> dict[str, Any]:
    """Release a function that was charged; what fails is told by a word of a fixed list.

    Until the rows are read nothing that fails depends on them: then it waits for the steward.
    """
    wanted = told["function"]
    try:
        loaded = _load_for(told)
        mechanism = calibrate(loaded.sensitivity, wanted["noise"], told["asked"])
        priced = price_release(loaded.function, mechanism)
    except (Changed, HushedError):
        return _CHANGED
    if priced.question != told["question"]:
        return {"problem": "unknown"}
    try:
        columns = read_columns(table, wanted["columns"], told["run_seconds"])
    except (EngineUnavailable, ParameterError, KeyError) as error:  # as a column that is gone
        return tell_unavailable(error)
    except ConnectionLost:
        return {"problem": "interrupted"}
    except QueryFailed:
        return {"problem": "rows"}
    return _release(loaded, mechanism, columns, told)


def _release(
    loaded: Loaded, mechanism: Mechanism, columns: dict[str, list[Any]], told: dict[str, Any]
) -> dict[str, Any]:
    """Release by the one verb; whatever fails from here on may depend on the rows."""
    paid = _Paid(told)
    try:
        rows = make_rows(columns, loaded.sensitivity)
        columns.clear()
        hs.release(loaded.function, rows, mechanism, ledger=paid, budget="served")
    except Exception:
        return {"problem": "rows"}
    return {"answer": paid.kept}


def make_rows(columns: Mapping[str, Sequence[Any]], sensitivity: hs.Sensitivity) -> Any:
    """Put columns into the kind of table that was sampled, in its types."""
    sampling = sensitivity.sampling
    if sampling is None:
        raise ParameterError("a registered function has a sampled sensitivity")
    layout, users = sampling.layout, _find_users(sampling)
    columns = {
        name: _number_users(each) if place == users else each
        for place, (name, each) in enumerate(columns.items())
    }
    if layout.container == "array":
        found = [_floats(each) for each in columns.values()]
        return np.column_stack(found) if layout.columns else found[0]
    types = dict(zip(layout.columns, layout.types, strict=True))
    if layout.container == "pandas":
        import pandas as pd  # noqa: PLC0415

        return pd.DataFrame(
            {name: _cells(each, types[name].dtype, pd.Series) for name, each in columns.items()}
        )
    import polars as pl  # noqa: PLC0415

    return pl.DataFrame(
        {name: _cells(each, types[name].dtype, pl.Series) for name, each in columns.items()}
    )


def _number_users(values: Sequence[Any]) -> list[int]:
    """Give users numbers as they come up: dates, texts and large numbers have no sampled type.

    What was sampled has numbers there, too, and as doubles two users might round to one.
    """
    known: dict[Any, int] = {}
    return [known.setdefault(each, len(known)) for each in values]


def _floats(values: Sequence[Any]) -> Any:
    return np.array([np.nan if each is None else each for each in values], dtype=np.float64)


def _cells(values: Sequence[Any], dtype: Any, series: Any) -> Any:
    """Make a column of the sampled type."""
    if str(dtype).lower().startswith("float"):
        return _floats(values)
    return series(values, dtype=dtype)
