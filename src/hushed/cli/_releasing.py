"""The commands of the main job: sensitivity, release, verify."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from json import loads
from pathlib import Path
from typing import Annotated, Any

import typer

import hushed as hs
from hushed._printing import format_up, plain_path
from hushed.cli import _release_options as options
from hushed.cli._calibration import Target
from hushed.cli._inputs import in_blocks, read_bounds, read_function, read_population, read_values
from hushed.cli._kept import describe_release, plain_value, read_again
from hushed.cli._ledgers import open_named
from hushed.cli._options import (
    BlockOption,
    BoundsOption,
    BudgetOption,
    CalibrationOption,
    DependentOption,
    DistanceOption,
    FrameOption,
    FunctionArgument,
    GammaOption,
    HeaderOption,
    JsonOption,
    KeyOption,
    LedgerOption,
    MonotoneOption,
    NeighboursOption,
    PairsOption,
    PopulationOption,
    PositionOption,
    PromiseOption,
    ProtectOption,
    RowsOption,
    SeedOption,
    SymmetricOption,
    UnitOption,
    ValuesOption,
    WorkersOption,
    option,
)
from hushed.cli._outcome import BAD_USE, REFUSED, finish, print_line, print_note, print_notes
from hushed.cli._panels import NOISE, ROWS
from hushed.cli._tables import Frame, check_columns, read_table
from hushed.cli._written import check_targets, files_of, inputs_of
from hushed.errors import NotFound, ParameterError
from hushed.guarantee import Neighbours
from hushed.mechanisms._calibrated import answers_of
from hushed.mechanisms._registry import MECHANISMS
from hushed.populations import PublicTable, Simulator
from hushed.spaces import Norm


def sensitivity(
    function: FunctionArgument,
    population: PopulationOption,
    rows: RowsOption = None,
    gamma: GammaOption = None,
    norm: Annotated[Norm, option("Norm of the movement.", NOISE)] = "l1",
    calibration: CalibrationOption = "training-conditional",
    pairs: PairsOption = None,
    protect: ProtectOption = "record",
    neighbours: NeighboursOption = "replace-one",
    distance: DistanceOption = 1,
    position: PositionOption = "random",
    values: ValuesOption = None,
    monotone: MonotoneOption = False,
    promise: PromiseOption = None,
    block_rows: BlockOption = None,
    frame: FrameOption = "numpy",
    header: HeaderOption = None,
    symmetric: SymmetricOption = False,
    bounds: BoundsOption = None,
    unit: UnitOption = "row",
    seed: SeedOption = 0,
    workers: WorkersOption = None,
    json: JsonOption = False,
) -> None:
    """Measure how far a function moves between neighbouring tables."""
    with finish(json=json) as result:
        f = in_blocks(read_function(function), block_rows)
        source, _ = read_population(
            population, frame, header=header, promise=promise, bounds=read_bounds(bounds)
        )
        s = hs.sample_sensitivity(
            f,
            source,
            rows=_read_rows(rows),
            neighbours=neighbours,
            distance=distance,
            position=position,
            values=read_values(values),
            monotone=monotone,
            norm=norm,
            gamma=gamma,
            calibration=calibration,
            pairs=pairs,
            protect=protect,
            symmetric=symmetric,
            unit=unit,
            seed=seed,
            workers=workers,
            progress=True,
        )
        remarks = s.explain().split("\n\n")[1:]
        result.update(
            _describe(s),
            remarks=remarks,
            calibration=calibration,
            protect=protect,
            rows=_read_rows(rows),
            neighbours=neighbours,
            distance=distance,
            position=position,
            unit=unit,
            seed=seed,
            population=source.describe(),
            block_rows=block_rows,
        )
        if not json:
            print_line(
                f"sensitivity {format_up(s.value)} in the {s.norm} norm: "
                f"movement {s.rank} of {s.pairs}; "
                f"gamma = {format_up(s.gamma)} ({protect}, {calibration})"
            )
            print_notes(remarks)


def _read_rows(rows: list[int] | None) -> int | list[int]:
    """Read a number of rows, or several."""
    if not rows:
        raise ParameterError("give the number of rows of the private table", parameter="rows")
    return rows[0] if len(rows) == 1 else rows


def _count_rows(rows: list[int] | None, private: int, neighbours: Neighbours) -> int | list[int]:
    """Choose the number of rows to sample for: the private one only where it is public."""
    if neighbours == "add-remove":
        if not rows:
            raise ParameterError(
                "with --neighbours add-remove the number of rows is private: give public numbers "
                "that the promise is to be for, each with --rows",
                parameter="rows",
            )
        return _read_rows(rows)
    if rows:
        raise ParameterError(
            "--rows goes with --neighbours add-remove: else the table itself tells the number"
        )
    return private


def _describe(s: hs.Sensitivity) -> dict[str, Any]:
    return {
        "sensitivity": s.value,
        "norm": s.norm,
        "gamma": s.gamma,
        "pairs": s.pairs,
        "rank": s.rank,
        "route": s.sampling.design.route if s.sampling else "",
    }


def release(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The private rows: CSV or Parquet.")],
    function: FunctionArgument,
    population: PopulationOption,
    epsilon: options.Epsilon = None,
    error: options.Error = None,
    beta: options.Beta = None,
    gamma: GammaOption = None,
    rows: RowsOption = None,
    mechanism: options.Mechanism = "laplace",
    delta: options.Delta = None,
    norm: options.Norm = None,
    lattice: options.Lattice = None,
    dims: options.Dims = None,
    order: options.Order = None,
    calibration: CalibrationOption = "training-conditional",
    pairs: PairsOption = None,
    protect: ProtectOption = "record",
    neighbours: NeighboursOption = "replace-one",
    distance: DistanceOption = 1,
    position: PositionOption = "random",
    values: ValuesOption = None,
    monotone: MonotoneOption = False,
    promise: PromiseOption = None,
    block_rows: BlockOption = None,
    frame: FrameOption = "numpy",
    header: HeaderOption = None,
    symmetric: SymmetricOption = False,
    data_dependent: DependentOption = False,
    bounds: BoundsOption = None,
    outside: options.Outside = "clamp",
    unit: UnitOption = "row",
    seed: SeedOption = 0,
    workers: WorkersOption = None,
    ledger: LedgerOption = None,
    budget: BudgetOption = None,
    remark: options.Remark = "",
    key: KeyOption = None,
    out: options.Out = None,
    html: options.Html = None,
    force: options.Force = False,
    json: JsonOption = False,
) -> None:
    """Release a private answer and its certificate."""
    charged_first = "" if ledger is None else "; if the budget was charged, the charge stays"
    with finish(json=json, stopped=f"stopped; nothing was released{charged_first}") as result:
        inputs = inputs_of(data, function, population) + files_of(ledger)
        check_files(out, html, inputs, force=force)
        given = {"delta": delta, "lattice": lattice, "dims": dims, "order": order}
        target = Target(
            name=mechanism,
            epsilon=epsilon,
            error=error,
            beta=beta,
            norm=norm,
            options={name: value for name, value in given.items() if value is not None},
        )
        target.check()
        if key is not None and ledger is None:
            raise ParameterError("--key is the name of an answer in a ledger: --ledger URL, too")
        with open_named(ledger, budget) as charged:
            f = in_blocks(target.numeric(read_function(function)), block_rows)
            source, columns = read_population(
                population, frame, header=header, promise=promise, bounds=read_bounds(bounds)
            )
            table = read_table(data, frame, header=header, known=columns or ())
            check_columns(columns, table.columns)
            s = hs.sample_sensitivity(
                f,
                source,
                rows=_count_rows(rows, len(table.rows), neighbours),
                neighbours=neighbours,
                distance=distance,
                position=position,
                values=read_values(values),
                monotone=monotone,
                norm=target.measured,
                gamma=gamma,
                calibration=calibration,
                pairs=pairs,
                protect=protect,
                symmetric=symmetric,
                data_dependent=data_dependent,
                unit=unit,
                seed=seed,
                workers=workers,
                progress=True,
            )
            calibrated = target.calibrate(s)
            released = hs.release(
                f,
                table.rows,
                calibrated,
                charged,
                budget=budget,
                note=remark,
                key=key,
                outside=outside,
            )
        certificate = released.certificate
        value = plain_value(released.value)
        result.update(value=value, entry=released.entry, certificate=loads(certificate.to_json()))
        result["kept"] = read_again(ledger, budget, key or released.entry)
        if not json:
            print_line(describe_release(value, certificate))
    # Standard output is complete: what goes wrong from here on is told on standard error.
    with finish(json=False, stopped="stopped; the answer was released, its files may be missing"):
        write_files(certificate, out, html)


def verify(
    certificate: Annotated[
        Path, typer.Argument(metavar="CERTIFICATE", help="JSON written by release --out.")
    ],
    function: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE.py:NAME]",
            help="The function that was released; not needed if the sensitivity was proven.",
        ),
    ] = None,
    population: Annotated[
        str | None,
        option("The public file or simulator, if the certificate names one.", ROWS),
    ] = None,
    frame: FrameOption = "numpy",
    header: HeaderOption = None,
    accept_rounding: Annotated[
        bool,
        typer.Option(
            "--accept-rounding",
            help="Exit with 0 also if movements differ by rounding, as between two computers.",
        ),
    ] = False,
    workers: WorkersOption = None,
    json: JsonOption = False,
) -> None:
    """Run the sampling of a certificate again and compare bit for bit.

    For a proven sensitivity, whose proof is not checked, the numbers that follow from it.
    """
    # 1 says that it was not reproduced: whatever keeps the sampling from running is a 2.
    with finish(json=json, refused=BAD_USE) as result:
        known = _certificate(certificate)
        f = None if function is None else read_function(function)
        if f is not None and known.mechanism.name in MECHANISMS:
            f = answers_of(MECHANISMS[known.mechanism.name], f, known.mechanism.parameters)
        if f is not None and known.sampling is not None and known.sampling.blocks > 1:
            f = in_blocks(f, known.sampling.rows // known.sampling.blocks)
        source = _read_named(population, known, frame, header) if population else None
        found = hs.verify(known, f, population=source, workers=workers, progress=True)
        result.update(asdict(found))
        accepted = ("bits", "rounding") if accept_rounding else ("bits",)
        result["exit_code"] = 0 if found.agreement in accepted else REFUSED
        if not json:
            print_line(found.explain())


def check_files(
    out: Path | None, html: Path | None, inputs: Sequence[Path], *, force: bool
) -> None:
    """Find whatever would keep the certificate from being written before anything runs."""
    check_targets({"--out": out, "--html": html}, inputs, force=force)
    if html is not None:
        from hushed.plots._figures import altair_or_refuse  # noqa: PLC0415

        altair_or_refuse()


def write_files(certificate: hs.Certificate, out: Path | None, html: Path | None) -> None:
    """Write a certificate as JSON and as a page, where it was asked for."""
    if out is not None:
        out.write_text(certificate.to_json() + "\n", encoding="utf-8")
        print_note(f"certificate written to {out}")
    if html is not None:
        from hushed.plots import certificate_page  # noqa: PLC0415

        html.write_text(certificate_page(certificate), encoding="utf-8")
        print_note(f"page written to {html}")


def _certificate(path: Path) -> hs.Certificate:
    if not path.is_file():
        raise NotFound(f"there is no file {plain_path(path)}")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ParameterError(f"{path.name} is not a certificate: not text in UTF-8") from None
    return hs.Certificate.from_json(text)


def _read_named(
    spec: str, known: hs.Certificate, frame: Frame, header: bool | None
) -> hs.populations.Population:
    """Read a population that a certificate names, with the ranges that it states."""
    source, _ = read_population(spec, frame, header=header)
    if known.sampling is None or not isinstance(source, PublicTable | Simulator):
        return source
    ends = {
        column: (-math.inf if low is None else low, math.inf if high is None else high)
        for column, low, high, _ in known.sampling.support
    }
    return replace(source, bounds=ends or None)
