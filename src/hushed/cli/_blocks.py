"""The command ``hushed blocks``."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import hushed as hs
from hushed._functions._loading import read_function
from hushed._ground.checks import require_count
from hushed._ground.printing import format_up, name_count, percent_up
from hushed.blocks import Simulation
from hushed.cli._block_options import Aggregation, CallLimits, Trial
from hushed.cli._delivery import deliver
from hushed.cli._inputs import find_user, read_population
from hushed.cli._open_ledger import open_named
from hushed.cli._options import (
    ColumnsOption,
    DataArgument,
    FunctionArgument,
    TextOption,
    read_keep,
)
from hushed.cli._outcome import print_line, print_table
from hushed.cli._private_tables import read_private_table
from hushed.cli._public_cells import MISSING_ALONE, Missing
from hushed.cli._records import Account, Container, Output, take_records
from hushed.cli._tables import Table, check_columns, name_user_column
from hushed.cli._written import inputs_of
from hushed.errors import ParameterError
from hushed.populations import Promise


@take_records
def blocks(
    data: DataArgument,
    function: FunctionArgument,
    asked: Aggregation,
    container: Container,
    trial: Trial,
    limits: CallLimits,
    account: Account,
    output: Output,
    columns: ColumnsOption = None,
    text: TextOption = None,
) -> None:
    """Release the answer of any function for any table: from its answers on blocks of rows."""
    inputs = inputs_of(data, function, trial.prior_population, trial.simulate)
    with deliver(inputs, account, output) as delivery:
        _check(asked, trial, account, output, container.missing)
        made = asked.make(limits, guessed=bool(trial.prior_population))
        if trial.prior_population and not made.values:
            raise ParameterError("--prior-population is for candidates and for votes")
        with open_named(account.ledger, account.budget) as charged:
            f = read_function(function)
            # A simulation with a guess of the number of rows looks at no private one.
            table = None
            if not (trial.simulate and trial.rows):
                table = read_private_table(
                    data,
                    container.frame,
                    header=container.header,
                    columns=columns,
                    texts=text or (),
                    user=asked.user,
                )
            public = _Public(data, container, trial.promise, table)
            count = trial.rows or len(table.rows if table else ())
            if trial.prior_population:
                made = _guess(made, f, public, asked, trial, count)
            if trial.simulate:
                found = _simulate(made, f, public, asked.user, trial, count)
                delivery.result.update(simulation=asdict(found))
                if not output.json:
                    _print_simulation(found)
                return
            held, names = (table.rows, table.columns) if table else ((), ())
            made = replace(made, user=name_user_column(asked.user, data, held, names))
            delivery.released = hs.release(f, held, made, **account.charge(charged))


def _check(
    asked: Aggregation, trial: Trial, account: Account, output: Output, missing: Missing | None
) -> None:
    """Refuse options that do not go together."""
    if trial.simulate is not None:
        _refuse_with_simulation(ledger=account.ledger, out=output.out, html=output.html)
    elif trial.workers is not None or trial.keep is not None:
        raise ParameterError(
            "--workers and --keep go with --simulate: a release asks about private rows, which "
            "stay on this machine and are not kept"
        )
    public_count = not asked.private_count and asked.user is None
    wanted = trial.simulate or trial.prior_population
    if missing is not None and not wanted:
        raise ParameterError(MISSING_ALONE.format("--simulate or --prior-population"))
    _check_rows(trial.rows, wanted=wanted, public_count=public_count)


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


@dataclass(frozen=True)
class _Public:
    """How public rows are read: with the columns of the private rows, and not from their file."""

    data: Path
    container: Container
    promise: Promise | None
    private: Table | None

    def read(
        self, spec: str, user: str | None
    ) -> tuple[hs.populations.Population, tuple[str, ...]]:
        """Read a public population."""
        source, columns = read_population(
            spec,
            self.container.frame,
            header=self.container.header,
            missing=self.container.missing,
            promise=self.promise,
            user=user,
            private=self.data,
        )
        if self.private is not None:
            check_columns(columns, self.private.columns)
        return source, columns or ()


def _guess(
    made: hs.Blocks, f: Any, public: _Public, asked: Aggregation, trial: Trial, rows: int
) -> hs.Blocks:
    """Give the candidates the weights that a public population gives them."""
    source, columns = public.read(str(trial.prior_population), asked.user)
    prior = hs.public_prior(
        f,
        source,
        rows=rows,
        blocks=asked.blocks or made.blocks or 1,
        candidates=made.values,
        seed=trial.seed,
        progress=True,
        user=find_user(asked.user, public.container.frame, columns, source),
    )
    return replace(made, prior=prior, blocks=asked.blocks)


def _simulate(
    made: hs.Blocks, f: Any, public: _Public, user: str | None, trial: Trial, rows: int
) -> Simulation:
    """Simulate releases on tables of a public population."""
    source, columns = public.read(str(trial.simulate), user)
    named = find_user(user, public.container.frame, columns, source)
    return replace(made, user=named).simulate(
        f,
        source,
        rows,
        trials=trial.trials,
        seed=trial.seed,
        isolated=not trial.in_process,
        workers=1 if trial.workers is None else trial.workers,
        progress=True,
        keep=read_keep(trial.keep, private=False),
    )


def _print_simulation(found: Simulation) -> None:
    """Print the errors, and what may hide behind them."""
    print_table(
        f"{found.trials} public tables of {found.rows} {found.unit}s in {found.blocks} blocks; "
        "nothing was released",
        ("", "error"),
        [
            ("half of the releases are within", format_up(found.error_50, 3)),
            ("95 % of the releases are within", format_up(found.error_95, 3)),
            ("blocks alone, without noise (median)", format_up(found.error_of_blocks, 3)),
        ],
    )
    where = "" if found.isolated else "; in one process: what it keeps between calls is not seen"
    print_line(f"{percent_up(found.failed)} % of {name_count(found.calls, 'call')} failed{where}")
    if found.remark:
        print_line(found.remark)
