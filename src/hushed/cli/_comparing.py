"""The command ``hushed compare``."""

from __future__ import annotations

from json import loads
from typing import Annotated

import typer

import hushed as hs
from hushed.cli import _options as shared
from hushed.cli import _statistic_options as described
from hushed.cli._inputs import read_bounds, read_function, read_population
from hushed.cli._options import option
from hushed.cli._outcome import REFUSED, finish, print_line, print_note
from hushed.cli._panels import NOISE, SAMPLING
from hushed.cli._statistic_options import holds_text, read_statistic, read_statistic_population
from hushed.cli._written import check_figure
from hushed.errors import ParameterError


def compare(
    asked: Annotated[
        str,
        typer.Argument(
            metavar="STATISTIC|FILE.py:FUNCTION",
            help="median, quantile, minimum, maximum, trimmed-mean, interquartile-range or mode; "
            "or a function of the rows.",
        ),
    ],
    population: shared.PopulationOption,
    rows: Annotated[int, typer.Option(help="Rows in the private table.")],
    epsilon: Annotated[float | None, option("Privacy loss, in nats; 1 by default.", NOISE)] = None,
    error: Annotated[
        float | None,
        option("Instead: find the smallest epsilon for this error in 95 % of releases.", NOISE),
    ] = None,
    delta: Annotated[float, option("Slack, for the ways that need it.", NOISE)] = 0.0,
    gamma: shared.GammaOption = None,
    worth: Annotated[
        float, option("How many times as large an error a stronger promise may have.", NOISE)
    ] = 2.0,
    low: described.LowOption = None,
    high: described.HighOption = None,
    q: described.QOption = None,
    trim: described.TrimOption = None,
    category: described.CategoryOption = None,
    private_count: described.PrivateRowsOption = False,
    column: described.ColumnOption = None,
    promise: shared.PromiseOption = None,
    frame: shared.FrameOption = "numpy",
    header: shared.HeaderOption = None,
    bounds: shared.BoundsOption = None,
    unit: shared.UnitOption = "row",
    trials: Annotated[int, option("Tables to simulate.", SAMPLING)] = 200,
    seed: shared.SeedOption = 0,
    workers: shared.WorkersOption = None,
    plot: shared.PlotOption = None,
    json: shared.JsonOption = False,
) -> None:
    """Compare every way to release an answer, on public rows: promise, error and calls."""
    with finish(json=json) as result:
        check_figure(plot)
        what: hs.statistics.Statistic | object
        of_rows = ".py:" in asked  # a function of them
        if of_rows:
            _refuse_for_function(
                q=q,
                trim=trim,
                category=category,
                column=column,
                private_count=private_count or None,
            )
            what = read_function(asked)
            source, _ = read_population(
                population, frame, header=header, promise=promise, bounds=read_bounds(bounds)
            )
        else:
            if bounds:
                raise ParameterError("--bounds is for a function; a statistic has --low and --high")
            what = read_statistic(
                asked,
                None if private_count else rows,
                low=low,
                high=high,
                q=q,
                trim=trim,
                category=category,
                unit=unit,
            )
            source = read_statistic_population(
                population, text=holds_text(category), column=column, header=header, promise=promise
            )
        found = hs.compare(
            what,  # type: ignore[arg-type]
            source,
            rows=rows,
            epsilon=epsilon,
            error=error,
            delta=delta,
            gamma=0.05 if gamma is None else gamma,
            low=low if of_rows else None,
            high=high if of_rows else None,
            worth=worth,
            trials=trials,
            seed=seed,
            workers=workers,
        )
        result.update(comparison=loads(found.to_json()), exit_code=0 if found.routes else REFUSED)
        if plot is not None:
            from hushed.plots import comparison_figure, save_figure  # noqa: PLC0415

            save_figure(comparison_figure(found), plot)
            print_note(f"written to {plot}")
        if not json:
            print_line(found.explain())


def _refuse_for_function(**given: object) -> None:
    """Refuse options that describe a statistic."""
    for name, value in given.items():
        if value is not None:
            raise ParameterError(
                f"--{name.replace('_', '-')} is for a statistic, not for a function"
            )
