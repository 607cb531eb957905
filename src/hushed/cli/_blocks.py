"""The command ``hushed blocks``."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import hushed as hs
from hushed._checks import require_count
from hushed.blocks import Limits, Simulation
from hushed.cli import _block_options as options
from hushed.cli import _release_options as files
from hushed.cli._delivery import deliver
from hushed.cli._inputs import read_function, read_population
from hushed.cli._ledgers import open_named
from hushed.cli._options import (
    BudgetOption,
    FrameOption,
    FunctionArgument,
    HeaderOption,
    JsonOption,
    KeyOption,
    LedgerOption,
    SeedOption,
    TextOption,
    UnitOption,
)
from hushed.cli._outcome import print_line, print_table
from hushed.cli._private_tables import read_private_table
from hushed.cli._tables import Frame, Table, check_columns, name_user_column
from hushed.cli._written import inputs_of
from hushed.errors import ParameterError
from hushed.populations import Promise
from hushed.populations._drawing import draw_rows


def blocks(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The private rows: CSV or Parquet.")],
    function: FunctionArgument,
    epsilon: options.Epsilon,
    delta: options.Delta = None,
    aggregate: options.Aggregate = "exponential",
    blocks: options.BlocksNumber = None,
    beta: options.Beta = 0.05,
    low: options.Low = None,
    high: options.High = None,
    spacing: options.Spacing = None,
    candidates: options.Candidates = None,
    centre: options.Centre = None,
    radius: options.Radius = None,
    private_count: options.PrivateCount = False,
    user: options.User = None,
    frame: FrameOption = "numpy",
    header: HeaderOption = None,
    text: TextOption = None,
    unit: UnitOption = "row",
    prior_population: options.PriorPopulation = None,
    simulate: options.Simulate = None,
    promise: options.Promises = None,
    rows: options.AboutRows = None,
    trials: options.Trials = 10,
    in_process: options.InProcess = False,
    seed: SeedOption = 0,
    cpu_seconds: options.CpuSeconds = options.LIMITS.cpu_seconds,
    idle_seconds: options.IdleSeconds = options.LIMITS.idle_seconds,
    memory: options.Memory = options.LIMITS.memory,
    disk: options.Disk = options.LIMITS.disk,
    ledger: LedgerOption = None,
    budget: BudgetOption = None,
    remark: files.Remark = "",
    key: KeyOption = None,
    out: files.Out = None,
    html: files.Html = None,
    force: files.Force = False,
    json: JsonOption = False,
) -> None:
    """Release the answer of any function for any table: from its answers on blocks of rows."""
    inputs = inputs_of(data, function, prior_population, simulate)
    with deliver(inputs, ledger, budget, key, out, html, force=force, json=json) as delivery:
        if simulate is not None:
            _refuse_with_simulation(ledger=ledger, out=out, html=html)
        public_count = not private_count and user is None
        _check_rows(rows, wanted=simulate or prior_population, public_count=public_count)
        made = hs.Blocks(  # which refuses what it can before any row is read
            options.read_candidates(candidates, aggregate),
            low=low,
            high=high,
            spacing=spacing,
            epsilon=epsilon,
            delta=delta,
            blocks=None if prior_population else blocks,
            aggregate=aggregate,
            centre=centre,
            radius=radius,
            beta=beta,
            neighbours="add-remove" if private_count else "replace-one",
            unit=unit,
            user=user,
            limits=Limits(
                cpu_seconds=cpu_seconds, idle_seconds=idle_seconds, memory=memory, disk=disk
            ),
        )
        if prior_population and not made.values:
            raise ParameterError("--prior-population is for candidates and for votes")
        with open_named(ledger, budget) as charged:
            f = read_function(function)
            # A simulation with a guess of the number of rows looks at no private one.
            looked = not (simulate and rows)
            table = None
            if looked:
                table = read_private_table(data, frame, header=header, texts=text or (), user=user)
            read = partial(
                _read_public, data=data, frame=frame, header=header, promise=promise, private=table
            )
            count = rows or len(table.rows if table else ())
            if prior_population:
                public, _ = read(prior_population)
                made = _guess(made, f, public, rows=count, blocks=blocks, seed=seed)
            if simulate:
                source, columns = read(simulate)
                drawn = draw_rows(source, np.random.default_rng(seed), 1)
                made = replace(made, user=name_user_column(user, Path(simulate), drawn, columns))
                found = made.simulate(
                    f,
                    source,
                    count,
                    trials=trials,
                    seed=seed,
                    isolated=not in_process,
                    progress=True,
                )
                delivery.result.update(simulation=asdict(found))
                if not json:
                    _print_simulation(found)
                return
            held, names = (table.rows, table.columns) if table else ((), ())
            made = replace(made, user=name_user_column(user, data, held, names))
            delivery.released = hs.release(
                f, held, made, charged, budget=budget, note=remark, key=key
            )


def _refuse_with_simulation(**given: object) -> None:
    """Refuse options of a release."""
    for name, value in given.items():
        if value is not None:
            raise ParameterError(f"--simulate releases and charges nothing: leave --{name} out")


def _check_rows(rows: int | None, *, wanted: str | None, public_count: bool) -> None:
    """Ask for a public guess of a private number of rows, of which nothing may follow."""
    if rows is not None and not wanted:
        raise ParameterError("--rows goes with --simulate or --prior-population")
    if rows is not None:
        require_count("rows", rows)
    elif wanted and not public_count:
        raise ParameterError(
            "the number of rows is private, so --simulate and --prior-population need a public "
            "guess of it: give --rows"
        )


def _read_public(
    spec: str,
    *,
    data: Path,
    frame: Frame,
    header: bool | None,
    promise: Promise | None,
    private: Table | None,
) -> tuple[hs.populations.Population, tuple[str, ...]]:
    """Read a public population: the columns of the private rows, and not their file."""
    source, columns = read_population(spec, frame, header=header, promise=promise, private=data)
    if private is not None:
        check_columns(columns, private.columns)
    return source, columns or ()


def _guess(
    made: hs.Blocks,
    f: Any,
    source: hs.populations.Population,
    *,
    rows: int,
    blocks: int | None,
    seed: int,
) -> hs.Blocks:
    """Give the candidates the weights that a public population gives them."""
    prior = hs.public_prior(
        f,
        source,
        rows=rows,
        blocks=blocks or made.blocks or 1,
        candidates=made.values,
        seed=seed,
    )
    return replace(made, prior=prior, blocks=blocks)


def _print_simulation(found: Simulation) -> None:
    """Print the errors, and what may hide behind them."""
    print_table(
        f"{found.trials} public tables of {found.rows} rows in {found.blocks} blocks; nothing was "
        "released",
        ("", "error"),
        [
            ("half of the releases are within", f"{found.error_50:.3g}"),
            ("95 % of the releases are within", f"{found.error_95:.3g}"),
            ("blocks alone, without noise (median)", f"{found.error_of_blocks:.3g}"),
        ],
    )
    where = "" if found.isolated else "; in one process: what it keeps between calls is not seen"
    print_line(f"{found.failed:.1%} of {found.calls} calls failed{where}")
