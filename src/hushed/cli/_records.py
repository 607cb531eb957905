"""Records of options: what several commands take together, and the command that takes records."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import hushed as hs
from hushed._ground.printing import brief
from hushed.cli import _options as options
from hushed.cli._inputs import read_bounds, read_population, read_values
from hushed.cli._options import option
from hushed.cli._outcome import print_note
from hushed.cli._panels import LEDGER, OUTPUT
from hushed.errors import ParameterError
from hushed.ledger._payments import STORED_BEFORE
from hushed.populations import Population, by_user
from hushed.sensitivity._sampling import read_reach
from hushed.sensitivity._timing import Expected, expect_time
from hushed.spaces import Norm


def take_records(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of its records, one for each field, and make the records.

    A parameter of a dataclass stands for the fields of that class, which are options as the
    parameters of a command are: annotated, with the default of the field. One that is not given
    when the record is made (``init=False``) is no option.
    """
    hints = get_type_hints(command, include_extras=True)
    records = {
        name: hints[name] for name in signature(command).parameters if is_dataclass(hints[name])
    }
    parameters: list[Parameter] = []
    for name, each in signature(command).parameters.items():
        if name in records:
            parameters += _list_fields(records[name])
        else:
            parameters.append(each.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]))

    @wraps(command)
    def expanded(**given: Any) -> None:
        made = {
            name: record(
                **{each.name: given.pop(each.name) for each in fields(record) if each.init}
            )
            for name, record in records.items()
        }
        command(**given, **made)

    expanded.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    expanded.__annotations__ = {each.name: each.annotation for each in parameters}
    return expanded


def _list_fields(record: Any) -> list[Parameter]:
    """List the fields of a record as parameters of a command."""
    hints = get_type_hints(record, include_extras=True)
    return [
        Parameter(
            each.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if each.default is MISSING else each.default,
            annotation=hints[each.name],
        )
        for each in fields(record)
        if each.init
    ]


@dataclass(frozen=True, kw_only=True)
class Account:
    """What is charged, and under which name the answer is stored."""

    ledger: options.LedgerOption = None
    budget: options.BudgetOption = None
    remark: Annotated[str, option("Remark for the ledger.", LEDGER, "--note")] = ""
    key: options.KeyOption = None

    def charge(self, ledger: Any) -> dict[str, Any]:
        """Say to a release what it charges, and under which name; tell of an answer under it."""
        if ledger is None:
            print_note("no budget is charged: name one by --ledger and --budget")
        named = self.key if ledger is not None and self.budget is not None else None
        if named and ledger.answer(self.budget, named) is not None:
            print_note(
                f"an answer is stored under the key {brief(named)}: to the same question it is "
                "given again, and nothing is charged; another question is refused"
            )
            warnings.filterwarnings("ignore", message=STORED_BEFORE)  # it is said
        return {"ledger": ledger, "budget": self.budget, "note": self.remark, "key": self.key}


@dataclass(frozen=True, kw_only=True)
class Output:
    """Where an answer and its certificate go."""

    out: Annotated[Path | None, option("Write the certificate as JSON.", OUTPUT)] = None
    html: Annotated[Path | None, option("Write the certificate as a page.", OUTPUT)] = None
    force: Annotated[
        bool, option("Replace files that are not earlier certificates.", OUTPUT, "--force")
    ] = False
    json: options.JsonOption = False


@dataclass(frozen=True, kw_only=True)
class Container:
    """How a file of rows is read."""

    frame: options.FrameOption = "numpy"
    header: options.HeaderOption = None
    missing: options.MissingOption = None


@dataclass(frozen=True, kw_only=True)
class Public(Container):
    """Where public rows come from."""

    population: options.PopulationOption
    bounds: options.BoundsOption = None

    def read(
        self, user: str | None = None, **more: Any
    ) -> tuple[Population, tuple[str, ...] | None]:
        """Read the population, and its columns where it has them."""
        return read_population(
            self.population,
            self.frame,
            header=self.header,
            missing=self.missing,
            bounds=read_bounds(self.bounds),
            user=user,
            **more,
        )


@dataclass(frozen=True, kw_only=True)
class Source(Public):
    """Where public rows come from, and what is promised of a file of them."""

    promise: options.PromiseOption = None

    def read(
        self, user: str | None = None, **more: Any
    ) -> tuple[Population, tuple[str, ...] | None]:
        """Read the population, and its columns where it has them."""
        return super().read(user, promise=self.promise, **more)


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """How pairs of neighbouring tables are drawn."""

    gamma: options.GammaOption = None
    calibration: options.CalibrationOption = "training-conditional"
    pairs: options.PairsOption = None
    symmetric: options.SymmetricOption = False
    seed: options.SeedOption = 0
    workers: options.WorkersOption = None

    def sample(
        self, f: Any, source: Population, *, rows: Any, norm: Norm, unit: Any, **more: Any
    ) -> hs.Sensitivity:
        """Sample a sensitivity as these options say, and show the progress."""
        return hs.sample_sensitivity(
            f,
            source,
            rows=rows,
            norm=norm,
            unit=unit,
            gamma=self.gamma,
            calibration=self.calibration,
            pairs=self.pairs,
            symmetric=self.symmetric,
            seed=self.seed,
            workers=self.workers,
            progress=True,
            **more,
        )


@dataclass(frozen=True, kw_only=True)
class Sampling(Pairs):
    """What neighbours are, for a function whose sensitivity is sampled, and who is protected."""

    rows: options.RowsOption = None
    protect: options.ProtectOption = "record"
    neighbours: options.NeighboursOption = "replace-one"
    distance: options.DistanceOption = 1
    position: options.PositionOption = "random"
    values: options.ValuesOption = None
    monotone: options.MonotoneOption = False
    block_rows: options.BlockOption = None
    unit: options.UnitOption = "row"
    user: options.UserOption = None
    keep: options.KeepOption = None

    def measure(
        self, f: Any, source: Population, *, keep_private: bool = False, **more: Any
    ) -> hs.Sensitivity:
        """Sample the sensitivity of a function."""
        return self.sample(
            f,
            source,
            unit=self.unit,
            protect=self.protect,
            neighbours=self.neighbours,
            distance=self.distance,
            position=self.position,
            values=read_values(self.values),
            monotone=self.monotone,
            keep=options.read_keep(self.keep, private=keep_private),
            **more,
        )

    def expect(self, f: Any, source: Population, *, rows: Any, norm: Norm, user: Any) -> Expected:
        """Tell how long the same sampling may take, by a few calls of the function."""
        if self.protect == "table":
            raise ParameterError(
                "no time is told with --protect table: leave one of the two out", parameter="trial"
            )
        reach = read_reach(
            f,
            rows,
            neighbours=self.neighbours,
            distance=self.distance,
            position=self.position,
            protect=self.protect,
            user=user,
            norm=norm,
            batch=False,
        )
        return expect_time(
            f,
            source if user is None else by_user(source, user),
            reach=reach,
            calibration=self.calibration,
            gamma=self.gamma,
            pairs=self.pairs,
            symmetric=self.symmetric,
            seed=self.seed,
        )
