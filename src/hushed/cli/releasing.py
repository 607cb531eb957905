"""The commands of the main job: sensitivity, release, verify."""

from __future__ import annotations

from dataclasses import asdict
from json import loads
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import hushed as hs
from hushed.calibrate import NORM_OF, MechanismName, calibrated
from hushed.cli.inputs import read_function, read_population, read_table
from hushed.cli.options import (
    CalibrationOption,
    DependentOption,
    FrameOption,
    FunctionArgument,
    GammaOption,
    JsonOption,
    PairsOption,
    PopulationOption,
    ProtectOption,
    SeedOption,
    SymmetricOption,
    WorkersOption,
)
from hushed.cli.outcome import REFUSED, finish, note, say
from hushed.errors import BadRows, NotFound
from hushed.spaces import Norm

__all__ = ["register", "release", "sensitivity", "verify"]


def sensitivity(
    function: FunctionArgument,
    population: PopulationOption,
    rows: Annotated[int, typer.Option(help="Rows in the private table.")],
    gamma: GammaOption = None,
    norm: Annotated[Norm, typer.Option(help="Norm of the movement.")] = "l1",
    calibration: CalibrationOption = "training-conditional",
    pairs: PairsOption = None,
    protect: ProtectOption = "record",
    frame: FrameOption = "numpy",
    symmetric: SymmetricOption = False,
    seed: SeedOption = 0,
    workers: WorkersOption = None,
    json: JsonOption = False,
) -> None:
    """Measure how far a function moves between neighbouring tables."""
    with finish(json=json) as result:
        f = read_function(function)
        source, _ = read_population(population, frame)
        s = hs.sample_sensitivity(
            f,
            source,
            rows=rows,
            norm=norm,
            gamma=gamma,
            calibration=calibration,
            pairs=pairs,
            protect=protect,
            symmetric=symmetric,
            seed=seed,
            workers=workers,
            progress=True,
        )
        result.update(
            sensitivity=s.value,
            norm=s.norm,
            gamma=s.gamma,
            pairs=s.pairs,
            rank=s.rank,
            calibration=calibration,
            protect=protect,
            rows=rows,
            seed=seed,
            population=source.describe(),
        )
        if not json:
            say(
                f"sensitivity {s.value:.6g} in the {s.norm} norm: movement {s.rank} of {s.pairs}; "
                f"gamma = {s.gamma:.4g} ({protect}, {calibration})"
            )


def release(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The private rows: CSV or Parquet.")],
    function: FunctionArgument,
    population: PopulationOption,
    epsilon: Annotated[float, typer.Option(help="Privacy loss, in nats.")],
    gamma: GammaOption = None,
    mechanism: Annotated[MechanismName, typer.Option(help="What adds the noise.")] = "laplace",
    delta: Annotated[float | None, typer.Option(help="Slack, for the Gaussian.")] = None,
    calibration: CalibrationOption = "training-conditional",
    pairs: PairsOption = None,
    protect: ProtectOption = "record",
    frame: FrameOption = "numpy",
    symmetric: SymmetricOption = False,
    data_dependent: DependentOption = False,
    seed: SeedOption = 0,
    workers: WorkersOption = None,
    out: Annotated[Path | None, typer.Option(help="Write the certificate as JSON.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write the certificate as a page.")] = None,
    json: JsonOption = False,
) -> None:
    """Release a private answer and its certificate."""
    with finish(json=json) as result:
        f = read_function(function)
        options: dict[str, Any] = {"epsilon": epsilon} | (
            {"delta": delta} if delta is not None else {}
        )
        _check_options(mechanism, options)
        table = read_table(data, frame)
        source, columns = read_population(population, frame)
        if columns and table.columns and columns != table.columns:
            raise BadRows(
                f"the public table has columns {', '.join(columns)}, "
                f"the private one {', '.join(table.columns)}"
            )
        s = hs.sample_sensitivity(
            f,
            source,
            rows=len(table.rows),
            norm=NORM_OF[mechanism],
            gamma=gamma,
            calibration=calibration,
            pairs=pairs,
            protect=protect,
            symmetric=symmetric,
            data_dependent=data_dependent,
            seed=seed,
            workers=workers,
            progress=True,
        )
        released = hs.release(f, table.rows, calibrated(mechanism, s, options))
        value = (
            released.value.tolist() if isinstance(released.value, np.ndarray) else released.value
        )
        if mechanism == "bernstein":
            value = released.value.coefficients.tolist()
        result.update(value=value, certificate=_plain(released.certificate))
        if out is not None:
            out.write_text(released.certificate.to_json() + "\n", encoding="utf-8")
            note(f"certificate written to {out}")
        if html is not None:
            from hushed.plots import certificate_page  # noqa: PLC0415

            html.write_text(certificate_page(released.certificate), encoding="utf-8")
            note(f"page written to {html}")
        if not json:
            say(f"released: {value}")
            say("")
            say(released.certificate.explain())


def verify(
    certificate: Annotated[
        Path, typer.Argument(metavar="CERTIFICATE", help="JSON written by release --out.")
    ],
    function: FunctionArgument,
    population: Annotated[
        str | None, typer.Option(help="The public file or simulator, if the certificate names one.")
    ] = None,
    frame: FrameOption = "numpy",
    workers: WorkersOption = None,
    json: JsonOption = False,
) -> None:
    """Run the sampling of a certificate again and compare bit for bit."""
    with finish(json=json) as result:
        if not certificate.is_file():
            raise NotFound(f"there is no file {certificate}")
        f = read_function(function)
        source = read_population(population, frame)[0] if population else None
        found = hs.verify(
            certificate.read_text(encoding="utf-8"),
            f,
            population=source,
            workers=workers,
            progress=True,
        )
        result.update(asdict(found))
        result["exit_code"] = 0 if found.reproduced else REFUSED
        if not json:
            say(found.explain())


def _check_options(mechanism: MechanismName, options: dict[str, Any]) -> None:
    """Find bad parameters of a mechanism before the long sampling starts."""
    stand_in = hs.proven_sensitivity(1.0, NORM_OF[mechanism], argument="stand-in")
    calibrated(mechanism, stand_in, options)


def _plain(certificate: hs.Certificate) -> Any:
    return loads(certificate.to_json())


def register(app: typer.Typer) -> None:
    """Add the commands of this module.

    Parameters
    ----------
    app : typer.Typer
        The command line.
    """
    for command in (sensitivity, release, verify):
        app.command()(command)
