"""What the person at the machine does with functions: register, try, and take away.

Here, and nowhere else of a server, is code named.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from hushed._ground.printing import brief, format_up, name_count
from hushed.errors import BadFunction, NotFound, ParameterError
from hushed.ledger import Ledger
from hushed.ledger._admission import check_promise
from hushed.ledger._together import find_budget
from hushed.releasing._mechanisms import admit_mechanism
from hushed.releasing._population_words import describe_source
from hushed.releasing._pricing import foresee
from hushed.server._audit import telling
from hushed.server._config import DatasetSettings, Limits, Settings, explain, most_epsilon
from hushed.server._datasets import Dataset, find_source, open_dataset, require_dataset
from hushed.server._disk import make_private_folder
from hushed.server._functions import (
    PLACE,
    Function,
    Record,
    digest_file,
    forget_function,
    open_functions,
    record_file,
    register_function,
    sampled_file,
    write_private,
)
from hushed.server._judging import MOST_ANSWERED
from hushed.server._opening import open_own
from hushed.server._people import MACHINE
from hushed.server._problems import Problem
from hushed.server._refusing import why_no_gamma
from hushed.server._sampled import calibrate, finds_people
from hushed.server._sources import Source, fingerprint
from hushed.server._workers import Unforeseen, Workers
from hushed.statements._releases import tell_outsider

if TYPE_CHECKING:
    from hushed._rows._containers import Layout
    from hushed.guarantee import Guarantee
    from hushed.sensitivity import Sampling, Sensitivity
    from hushed.tables import Table

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_LEAST_DELTA = 1e-12  # where a price with Gaussian noise is only foreseen
_NUMBERS = ("int", "float", "bool")
_WITHOUT_ESTIMATES = (
    "; it was registered by an older version, so that nobody hears before asking that a share has "
    "no gamma left for it: register it again with hushed serve add-function --replace"
)


def add_function(
    folder: Path,
    name: str,
    dataset: str,
    source: str,
    sensitivity: Sensitivity,
    columns: Sequence[str],
    terms: Mapping[str, Any],
    *,
    replace: bool = False,
) -> tuple[Record, list[str]]:
    """Register a function with what was sampled of it, for the releases of a data set.

    It is tried once more in a process as those of the server, on public rows; no row is read.
    Told are also the columns of which a missing cell makes it fail.
    """
    _require_name(folder, name, replace=replace)
    settings, ledger, _ = open_own(folder)
    found = require_dataset(settings, dataset)
    with ledger:
        table = open_dataset(folder, found)
        _require_columns(columns, found, table)
        sampling = _check_fits(sensitivity, columns, found, table)
        facts = _foresee(sensitivity, terms, found, settings.limits, ledger)
        path = Path(source.rpartition(":")[0])
        within = os.path.relpath(path.resolve(), folder.resolve())
        make_private_folder(folder / PLACE)
        sampled = sampled_file(folder, name)
        fresh = sampled.with_name(f"{sampled.name}.tried")
        write_private(fresh, _pack(sensitivity))
        told: dict[str, Any] = {
            "dataset": dataset,
            "source": f"{within}:{source.rpartition(':')[2]}",
            "code": digest_file(path),
            "sampled": digest_file(fresh),
            "columns": tuple(columns),
            "numbers": max(1, math.prod(sampling.shape)),
            "rows": sampling.sizes,
        }
        try:
            record = Record.model_validate(told | facts | dict(terms))
            function = Function(id=name, folder=folder, record=record)
            opened = find_source(folder, found), fingerprint(table)
            why, failing = _rehearse(function, found, opened, settings, sampled=fresh)
            if why:
                raise BadFunction(f"{why}; it was not registered")
            fresh.replace(sampled)
        except ValidationError as error:
            raise ParameterError(explain(error)) from None
        finally:
            fresh.unlink(missing_ok=True)
        write_private(record_file(folder, name), record.model_dump_json(indent=1).encode())
        with telling(ledger) as connection:
            register_function(connection, name, record, MACHINE)
    return record, failing


def check_wanted(
    folder: Path,
    name: str,
    dataset: str,
    columns: Sequence[str],
    terms: Mapping[str, Any],
    *,
    gamma: float | None,
    symmetric: bool,
    replace: bool,
) -> None:
    """Refuse what needs no sample to be refused: to sample may take hours. No row is read."""
    _require_name(folder, name, replace=replace)
    settings, ledger, _ = open_own(folder)
    found = require_dataset(settings, dataset)
    with ledger:
        table = open_dataset(folder, found)
        _require_columns(columns, found, table)
        _require_order(found, table, symmetric=symmetric)
        _require_delta(terms["noise"], found)
        _require_gamma(ledger, found.budget, gamma or 0.0)


def _require_name(folder: Path, name: str, *, replace: bool) -> None:
    if not _NAME.fullmatch(name):
        raise ParameterError(
            "a function has a name of letters, digits, _, . and -", parameter="name"
        )
    if record_file(folder, name).exists() and not replace:
        raise ParameterError(
            f"there is a function {name!r} already: --replace puts this one in its place"
        )


def _require_columns(columns: Sequence[str], found: DatasetSettings, table: Table) -> None:
    """Refuse columns that the table does not have, or among which nobody is named."""
    if not columns:
        people = f", {found.user!r} of the people among them" if found.user is not None else ""
        raise ParameterError(
            "name the columns of the table that the function is given, by --column, in their "
            f"order{people}: the population names none before it is drawn",
            parameter="column",
        )
    for name in columns:
        if name not in table.columns:
            raise ParameterError(f"the table has no column {brief(name)}", parameter="column")
    if found.user is not None and found.user not in columns:
        raise ParameterError(
            f"the function needs the column of the people, {found.user!r}, among its columns"
        )


def _require_order(found: DatasetSettings, table: Table, *, symmetric: bool) -> None:
    if table.connection.in_database and found.user is None and not symmetric:
        raise ParameterError(
            "rows of a database have no order: a function of them is sampled with --symmetric"
        )


def _require_delta(noise: str, found: DatasetSettings) -> None:
    if noise == "gaussian" and not found.max_delta:
        raise ParameterError("Gaussian noise takes a delta: max_delta of the data set is 0")


def remove_function(folder: Path, name: str) -> None:
    """Take a function away; a server that runs has it until its next start."""
    _, ledger, _ = open_own(folder)
    with ledger:
        record, sampled = record_file(folder, name), sampled_file(folder, name)
        if not _NAME.fullmatch(name) or not record.exists():
            raise NotFound(f"there is no function {brief(name)} in {folder / PLACE}")
        with telling(ledger) as connection:
            forget_function(connection, name, MACHINE)
        for each in (sampled, record):  # it is there for as long as its record is
            each.unlink(missing_ok=True)


def _pack(sensitivity: Sensitivity) -> bytes:
    import cloudpickle  # noqa: PLC0415

    return bytes(cloudpickle.dumps(sensitivity))


def _check_fits(
    sensitivity: Sensitivity, columns: Sequence[str], found: DatasetSettings, table: Table
) -> Sampling:
    """Refuse what was sampled for other tables than this one; no row decides it."""
    sampling = sensitivity.sampling
    if sampling is None:
        raise ParameterError("a registered function has a sampled sensitivity")
    layout = sampling.layout
    if layout.container == "list" or layout.inner[1:]:
        raise ParameterError("a served function takes an array or a frame of columns")
    if math.prod(sampling.shape) > MOST_ANSWERED:
        raise ParameterError(f"an answer has at most {MOST_ANSWERED} numbers")
    if len(columns) != max(1, len(layout.columns)):
        raise ParameterError(
            f"the function was sampled on {name_count(max(1, len(layout.columns)), 'column')}, and "
            f"{len(columns)} are named: name them by --column, in their order",
            parameter="column",
        )
    kinds = dict(table.columns)
    array = layout.container == "array"
    for name, kind in zip(columns, layout.kinds or ("number",) * len(columns), strict=False):
        number = kinds[name] in _NUMBERS
        if name != found.user and number != (array or kind == "number"):
            raise ParameterError(
                f"column {name!r} of the table is of type {kinds[name]}, and was sampled as "
                f"{'numbers' if array or kind == 'number' else 'something else'}"
            )
    _check_order(sensitivity, layout, columns, found)
    _require_order(found, table, symmetric=sampling.symmetric)
    return sampling


def _check_order(
    sensitivity: Sensitivity, layout: Layout, columns: Sequence[str], found: DatasetSettings
) -> None:
    """Refuse columns in another order: people would be found in the wrong one, or no release."""
    sampled = list(map(str, layout.columns))
    if layout.container != "array" and list(columns) != sampled:
        raise ParameterError(
            "a frame has its columns by name, in the order in which they were sampled: "
            f"{', '.join(map(brief, sampled))}",
            parameter="column",
        )
    if not finds_people(sensitivity, columns, found.user):
        raise ParameterError(
            f"people were sampled by another column than {found.user!r}, which names them in the "
            "data set: name the columns in the order in which they were sampled",
            parameter="column",
        )


def _foresee(
    sensitivity: Sensitivity,
    terms: Mapping[str, Any],
    found: DatasetSettings,
    limits: Limits,
    ledger: Ledger,
) -> dict[str, Any]:
    """Tell what a release promises, in data and in words; refuse what the budget never takes."""
    most = min(terms.get("max_epsilon") or math.inf, most_epsilon(found, limits))
    noise = terms["noise"]
    delta = _delta(noise, found)
    _require_delta(noise, found)
    admitted = admit_mechanism(calibrate(sensitivity, noise, {"epsilon": most, "delta": delta}))
    promise = admitted.guarantee
    _require_budget(ledger, found.budget, promise)
    certificate = foresee(admitted)
    if certificate.sampling is None:
        raise ParameterError("a registered function has a sampled sensitivity")
    return {
        "neighbours": promise.neighbours,
        "unit": promise.unit,
        "protect": promise.protect,
        "gamma": promise.gamma,
        "estimates": promise.estimates,
        "population": describe_source(certificate.sampling),
        "words": sensitivity.explain(),
        "outsider": f"At epsilon {format_up(most)}: {tell_outsider(certificate)}",
    }


def _require_budget(ledger: Ledger, name: str, promise: Guarantee) -> None:
    """Refuse a promise that the budget never takes, whatever is left of it."""
    check_promise(find_budget(ledger, name), promise, None)
    _require_gamma(ledger, name, promise.gamma)


def _require_gamma(ledger: Ledger, name: str, gamma: float) -> None:
    limit = find_budget(ledger, name).limit.gamma
    if gamma > limit:
        raise ParameterError(
            f"the budget {name!r} allows gamma {limit!r}, and what is sampled has gamma "
            f"{gamma!r}. A limit is never changed: add a data set with a larger --gamma, or "
            "sample with a smaller one"
        )


def _rehearse(
    function: Function,
    found: DatasetSettings,
    opened: tuple[Source, str],
    settings: Settings,
    sampled: Path | None = None,
) -> tuple[str, list[str]]:
    """Have it judged as a request is: in a new process it must be the same function.

    What keeps it from that, in words for the machine; empty if nothing does. And the columns of
    which a missing cell makes it fail.
    """
    limits, record = settings.limits, function.require_record()
    told = function.told() | ({} if sampled is None else {"sampled": str(sampled)})
    most = min(record.max_epsilon or math.inf, most_epsilon(found, limits))
    asked = {"epsilon": most, "delta": _delta(record.noise, found)}
    question = {
        "do": "check",
        "source": asdict(opened[0]),
        "fingerprint": opened[1],
        "asked": asked,
        "function": told,
        "run_seconds": limits.run_seconds,
        "check_seconds": limits.run_seconds,
        "check_memory": limits.run_memory,
        "aloud": True,
    }
    workers = Workers(1)
    try:
        try:
            told = workers.ask(MACHINE, question | {"gaps": True})
        except (Problem, Unforeseen):  # with a missing cell it may end its process, or never end
            told = workers.ask(MACHINE, question)
            others = [each for each in record.columns if each != found.user]
            told["fails_on_missing"] = others
    except (Problem, Unforeseen) as error:
        why = error.detail if isinstance(error, Problem) and error.detail else str(error)
        return f"in a process of the server it is not a function as it was sampled: {why}", []
    finally:
        workers.processes.close()
    return "", list(told.get("fails_on_missing", ()))


def say_failing(columns: Sequence[str]) -> str:
    """Say of which columns a missing cell makes a function fail."""
    named = " or ".join(map(brief, columns))
    return (
        f"a cell of {named} that is missing makes it fail, as tried on public rows: then each "
        "release fails, paid, and tells that there is one. Have the function take such cells, as "
        "by leaving them out, unless none can be missing"
    )


def _delta(noise: str, found: DatasetSettings) -> float:
    """Choose a delta where a price is only tried."""
    return 0.0 if noise == "laplace" else max(found.max_delta, _LEAST_DELTA)


def check_functions(
    folder: Path, settings: Settings, ledger: Ledger, datasets: Mapping[str, Dataset]
) -> tuple[list[str], list[str]]:
    """Try the functions on public rows: those that can be asked, and those that cannot."""
    facts, problems = [], []
    for each in open_functions(folder, settings, ledger).values():
        dataset, why = datasets.get(each.dataset), each.stale
        failing: list[str] = []
        if not why and dataset is not None and not dataset.stale:
            why = why_no_gamma(ledger, dataset.settings.budget, None, each.require_record())
            if not why:
                why, failing = _rehearse(
                    each, dataset.settings, (dataset.source, dataset.known), settings
                )
        if why:
            problems.append(f"function {each.id}: {why}")
        else:
            record = each.require_record()
            rows = record.say_rows()
            more = f"; its promise is for {rows}" if rows else ""
            more += "" if record.estimates is not None or not record.gamma else _WITHOUT_ESTIMATES
            facts.append(f"function {each.id}: can be asked, of {each.dataset}{more}")
            if failing:
                facts.append(f"function {each.id}: {say_failing(failing)}")
    return facts, problems
