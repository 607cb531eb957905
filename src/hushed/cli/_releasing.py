"""The commands of the main job: sensitivity, release, verify."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

import hushed as hs
from hushed._printing import format_up, plain_path
from hushed._rows._people import count_units
from hushed.cli import _release_options as options
from hushed.cli._calibration import Target
from hushed.cli._delivery import deliver
from hushed.cli._inputs import (
    check_named,
    find_user,
    in_blocks,
    read_bounds,
    read_function,
    read_population,
    read_values,
)
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
    KeepOption,
    KeepPrivateOption,
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
    UserOption,
    ValuesOption,
    WorkersOption,
    option,
    read_keep,
)
from hushed.cli._outcome import BAD_USE, REFUSED, finish, print_line, print_notes
from hushed.cli._panels import NOISE, ROWS
from hushed.cli._private_tables import read_table_like
from hushed.cli._tables import Frame, check_columns
from hushed.cli._written import inputs_of
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
    user: UserOption = None,
    seed: SeedOption = 0,
    workers: WorkersOption = None,
    keep: KeepOption = None,
    json: JsonOption = False,
) -> None:
    """Measure how far a function moves between neighbouring tables."""
    with finish(json=json) as result:
        source, columns = read_population(
            population, frame, header=header, promise=promise, bounds=read_bounds(bounds), user=user
        )
        whose = find_user(user, frame, columns, source)
        f = in_blocks(read_function(function), block_rows, whose)
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
            user=whose,
            seed=seed,
            workers=workers,
            progress=True,
            keep=read_keep(keep, private=False),
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
            unit=unit if user is None else "user",
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
    user: UserOption = None,
    seed: SeedOption = 0,
    workers: WorkersOption = None,
    keep: KeepOption = None,
    keep_private: KeepPrivateOption = False,
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
    inputs = inputs_of(data, function, population)
    with deliver(inputs, ledger, budget, key, out, html, force=force, json=json) as delivery:
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
        with open_named(ledger, budget) as charged:
            source, columns = read_population(
                population,
                frame,
                header=header,
                promise=promise,
                bounds=read_bounds(bounds),
                user=user,
                private=None if data_dependent else data,
                admission=", or admit it by --data-dependent, which marks the certificate",
            )
            check_named(user, source)
            table = read_table_like(data, source, frame, header=header, columns=columns, user=user)
            check_columns(columns, table.columns)
            whose = find_user(user, frame, columns or table.columns, source)
            f = in_blocks(target.numeric(read_function(function)), block_rows, whose)
            s = hs.sample_sensitivity(
                f,
                source,
                rows=_count_rows(rows, count_units(table.rows, whose), neighbours),
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
                user=whose,
                seed=seed,
                workers=workers,
                progress=True,
                keep=read_keep(keep, private=keep_private),
            )
            calibrated = target.calibrate(s)
            delivery.released = hs.release(
                f,
                table.rows,
                calibrated,
                charged,
                budget=budget,
                note=remark,
                key=key,
                outside=outside,
            )


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
    keep: KeepOption = None,
    keep_private: KeepPrivateOption = False,
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
            size = known.sampling.rows // known.sampling.blocks
            f = in_blocks(f, size, known.sampling.user)
        source = _read_named(population, known, frame, header) if population else None
        found = hs.verify(
            known,
            f,
            population=source,
            workers=workers,
            progress=True,
            keep=read_keep(keep, private=keep_private),
        )
        result.update(asdict(found))
        accepted = ("bits", "rounding") if accept_rounding else ("bits",)
        result["exit_code"] = 0 if found.agreement in accepted else REFUSED
        if not json:
            print_line(found.explain())


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
    whose = None if known.sampling is None else known.sampling.user
    user = whose if whose is None or isinstance(whose, str) else str(whose + 1)
    source, _ = read_population(spec, frame, header=header, user=user)
    if known.sampling is None or not isinstance(source, PublicTable | Simulator):
        return source
    ends = {
        column: (-math.inf if low is None else low, math.inf if high is None else high)
        for column, low, high, _ in known.sampling.support
    }
    return replace(source, bounds=ends or None)
