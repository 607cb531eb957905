"""The commands of the main job: sensitivity, release, verify."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from json import loads
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import hushed as hs
from hushed.calibrate import MechanismName
from hushed.cli.calibration import Target, numbers_of
from hushed.cli.inputs import read_function, read_population
from hushed.cli.ledgers import open_named
from hushed.cli.options import (
    CalibrationOption,
    DependentOption,
    FrameOption,
    FunctionArgument,
    GammaOption,
    HeaderOption,
    JsonOption,
    PairsOption,
    PopulationOption,
    ProtectOption,
    SeedOption,
    SymmetricOption,
    WorkersOption,
)
from hushed.cli.outcome import REFUSED, finish, note, say
from hushed.cli.tables import check_columns, read_table
from hushed.cli.written import check_targets, inputs_of
from hushed.errors import NotFound, ParameterError
from hushed.guarantee import shown_above
from hushed.mechanisms.bernstein import BernsteinPolynomial
from hushed.spaces import Norm

__all__ = ["release", "sensitivity", "verify"]


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
    header: HeaderOption = None,
    symmetric: SymmetricOption = False,
    seed: SeedOption = 0,
    workers: WorkersOption = None,
    json: JsonOption = False,
) -> None:
    """Measure how far a function moves between neighbouring tables."""
    with finish(json=json) as result:
        f = read_function(function)
        source, _ = read_population(population, frame, header=header)
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
                f"sensitivity {shown_above(s.value)} in the {s.norm} norm: "
                f"movement {s.rank} of {s.pairs}; "
                f"gamma = {shown_above(s.gamma)} ({protect}, {calibration})"
            )


def release(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The private rows: CSV or Parquet.")],
    function: FunctionArgument,
    population: PopulationOption,
    epsilon: Annotated[
        float | None, typer.Option(help="Privacy loss, in nats. This or --error.")
    ] = None,
    error: Annotated[
        float | None,
        typer.Option(help="Error you can live with, for the smallest epsilon that keeps to it."),
    ] = None,
    beta: Annotated[
        float | None, typer.Option(help="Chance of a larger error; 0.05 by default.")
    ] = None,
    gamma: GammaOption = None,
    mechanism: Annotated[MechanismName, typer.Option(help="What adds the noise.")] = "laplace",
    delta: Annotated[float | None, typer.Option(help="Slack, for the Gaussian.")] = None,
    norm: Annotated[
        Norm | None, typer.Option(help="For the exponential mechanism: sup (default) or range.")
    ] = None,
    lattice: Annotated[
        int | None, typer.Option(help="Bernstein: intervals along each axis; 10 by default.")
    ] = None,
    dims: Annotated[
        int | None, typer.Option(help="Bernstein: dimension of the cube; 1 by default.")
    ] = None,
    order: Annotated[
        int | None, typer.Option(help="Bernstein: order of the operator; 1 by default.")
    ] = None,
    calibration: CalibrationOption = "training-conditional",
    pairs: PairsOption = None,
    protect: ProtectOption = "record",
    frame: FrameOption = "numpy",
    header: HeaderOption = None,
    symmetric: SymmetricOption = False,
    data_dependent: DependentOption = False,
    seed: SeedOption = 0,
    workers: WorkersOption = None,
    ledger: Annotated[
        str | None, typer.Option(help="Ledger to charge first: sqlite:///FILE or postgresql://...")
    ] = None,
    budget: Annotated[str | None, typer.Option(help="Budget in the ledger.")] = None,
    remark: Annotated[str, typer.Option("--note", help="Remark for the ledger.")] = "",
    out: Annotated[Path | None, typer.Option(help="Write the certificate as JSON.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write the certificate as a page.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace files that are no former certificates.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Release a private answer and its certificate."""
    with finish(json=json) as result:
        _check_files(out, html, inputs_of(data, function, population), force=force)
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
        charged = open_named(ledger, budget)
        f = target.numeric(read_function(function))
        source, columns = read_population(population, frame, header=header)
        table = read_table(data, frame, header=header, known=columns or ())
        check_columns(columns, table.columns)
        s = hs.sample_sensitivity(
            f,
            source,
            rows=len(table.rows),
            norm=target.measured,
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
        calibrated = target.calibrated(s)
        released = hs.release(f, table.rows, calibrated, charged, budget=budget, note=remark)
        value = released.value
        if isinstance(value, BernsteinPolynomial):
            value = value.coefficients
        if isinstance(value, np.ndarray):
            value = value.tolist()
        certificate = released.certificate
        result.update(value=value, certificate=_plain(certificate))
        if not json:
            say(f"released: {value}")
            say("")
            say(certificate.explain())
    # Standard output is complete: what goes wrong from here on is told on standard error.
    with finish(json=False, stopped="stopped; the answer was released, its files may be missing"):
        _write_files(certificate, out, html)


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
        str | None, typer.Option(help="The public file or simulator, if the certificate names one.")
    ] = None,
    frame: FrameOption = "numpy",
    header: HeaderOption = None,
    workers: WorkersOption = None,
    json: JsonOption = False,
) -> None:
    """Run the sampling of a certificate again and compare bit for bit.

    For a proven sensitivity, whose proof is not checked, the numbers that follow from it.
    """
    with finish(json=json) as result:
        known = _certificate(certificate)
        f = None if function is None else read_function(function)
        if known.mechanism.name == "bernstein" and f is not None:
            shape = known.mechanism.parameters
            f = numbers_of(f, lattice=int(shape["lattice"]), dims=int(shape["dims"]))
        source = read_population(population, frame, header=header)[0] if population else None
        found = hs.verify(known, f, population=source, workers=workers, progress=True)
        result.update(asdict(found))
        result["exit_code"] = 0 if found.reproduced else REFUSED
        if not json:
            say(found.explain())


def _check_files(
    out: Path | None, html: Path | None, inputs: Sequence[Path], *, force: bool
) -> None:
    """Find whatever would keep the certificate from being written before anything runs."""
    check_targets({"--out": out, "--html": html}, inputs, force=force)
    if html is not None:
        from hushed.plots.figures import altair_or_refuse  # noqa: PLC0415

        altair_or_refuse()


def _write_files(certificate: hs.Certificate, out: Path | None, html: Path | None) -> None:
    if out is not None:
        out.write_text(certificate.to_json() + "\n", encoding="utf-8")
        note(f"certificate written to {out}")
    if html is not None:
        from hushed.plots import certificate_page  # noqa: PLC0415

        html.write_text(certificate_page(certificate), encoding="utf-8")
        note(f"page written to {html}")


def _certificate(path: Path) -> hs.Certificate:
    if not path.is_file():
        raise NotFound(f"there is no file {path}")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ParameterError(f"{path.name} is no certificate: not text in UTF-8") from None
    return hs.Certificate.from_json(text)


def _plain(certificate: hs.Certificate) -> Any:
    return loads(certificate.to_json())
