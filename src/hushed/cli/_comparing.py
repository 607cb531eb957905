"""The command ``hushed compare``."""

from __future__ import annotations

from json import loads
from pathlib import Path
from typing import Annotated, Any

import typer

import hushed as hs
from hushed._functions._loading import read_function
from hushed._ground.progress import tell_or_show
from hushed._ground.whole_files import write_whole
from hushed.cli import _options as shared
from hushed.cli._block_options import Parts, read_candidates
from hushed.cli._inputs import find_user, in_blocks
from hushed.cli._next_command import Compared, next_command
from hushed.cli._options import option
from hushed.cli._outcome import REFUSED, finish, print_line, print_note
from hushed.cli._panels import NOISE, OUTPUT, SAMPLING
from hushed.cli._records import Source, take_records
from hushed.cli._statistic_options import Described, read_statistic, read_statistic_population
from hushed.cli._written import check_comparison_page, check_figure
from hushed.errors import ParameterError


@take_records
def compare(
    asked: Annotated[
        str,
        typer.Argument(
            metavar="STATISTIC|FILE.py:FUNCTION",
            help="median, quantile, minimum, maximum, mean, trimmed-mean, interquartile-range or "
            "mode; or a function of the rows.",
        ),
    ],
    public: Source,
    described: Described,
    parts: Parts,
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
    unit: shared.UnitOption = "row",
    user: shared.UserOption = None,
    trials: Annotated[int, option("Tables to simulate.", SAMPLING)] = 200,
    seed: shared.SeedOption = 0,
    workers: shared.WorkersOption = None,
    keep: shared.KeepOption = None,
    plot: shared.PlotOption = None,
    html: Annotated[Path | None, option("Write the comparison as a page.", OUTPUT)] = None,
    json: shared.JsonOption = False,
) -> None:
    """Compare every way to release an answer, on public rows: promise, error and calls."""
    with finish(json=json) as result:
        check_figure(plot)
        check_comparison_page(html)
        if ".py:" in asked:
            what = _read_function(asked, public, described, user, parts)
        else:
            what = _read_statistic(asked, public, described, rows, user, unit, parts)
        found = hs.compare(
            **what,
            rows=rows,
            epsilon=epsilon,
            error=error,
            delta=delta,
            gamma=0.05 if gamma is None else gamma,
            worth=worth,
            trials=trials,
            seed=seed,
            workers=workers,
            keep=shared.read_keep(keep, private=False),
            progress=tell_or_show(print_note),
        )
        told = Compared(
            asked=asked, public=public, described=described, parts=parts, unit=unit, user=user
        )
        command = next_command(told, found)
        result.update(comparison=loads(found.to_json()), exit_code=0 if found.routes else REFUSED)
        result.update({"next": command} if command else {})
        _draw(found, plot, html)
        if not json:
            print_line(found.explain())
            if command:
                print_line(f"\nNext, on the private rows: {command}")


def _draw(found: hs.Comparison, plot: Path | None, html: Path | None) -> None:
    """Write the figure and the page that were asked for."""
    if plot is not None:
        from hushed.plots import comparison_figure, save_figure  # noqa: PLC0415

        save_figure(comparison_figure(found), plot)
        print_note(f"written to {plot}")
    if html is not None:
        from hushed.plots import comparison_page  # noqa: PLC0415

        write_whole(html, comparison_page(found))
        print_note(f"page written to {html}")


def _read_function(
    asked: str, public: Source, described: Described, user: str | None, parts: Parts
) -> dict[str, Any]:
    """Read a function of the rows, and the population that it is compared on."""
    _refuse_for_function(
        q=described.q,
        trim=described.trim,
        column=described.column,
        private_count=described.private_count or None,
    )
    function = read_function(asked)
    source, columns = public.read(user)
    whose = find_user(user, public.frame, columns, source)
    function = in_blocks(function, parts.block_rows, whose)
    ball = {"centre": parts.centre or None, "radius": parts.radius, "blocks": parts.blocks}
    ends = {"low": described.low, "high": described.high}
    labels = read_candidates(described.category, "votes") if described.category else None
    named = {"candidates": labels, "labels": True} if labels else {}
    return {"asked": function, "population": source, "user": whose, **named, **ends, **ball}


def _read_statistic(
    asked: str,
    public: Source,
    described: Described,
    rows: int,
    user: str | None,
    unit: Any,
    parts: Parts,
) -> dict[str, Any]:
    """Read a statistic, and the population of its column."""
    if public.bounds:
        raise ParameterError("--bounds is for a function; a statistic has --low and --high")
    own = {"block-rows": parts.block_rows, "radius": parts.radius, "centre": parts.centre or None}
    for name, value in own.items():
        if value is not None:
            raise ParameterError(f"--{name} is for a function, not for a statistic")
    statistic = read_statistic(asked, rows, described, unit)
    # A user is refused by the comparison: a statistic has one row for each unit.
    source = read_statistic_population(described, public)
    return {"asked": statistic, "population": source, "user": user, "blocks": parts.blocks}


def _refuse_for_function(**given: object) -> None:
    """Refuse options that describe a statistic."""
    for name, value in given.items():
        if value is not None:
            raise ParameterError(
                f"--{name.replace('_', '-')} is for a statistic, not for a function"
            )
