"""Statistics on the command line: the options that describe one, and what is made of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import hushed as hs
from hushed._ground.numerals import read_number
from hushed._ground.printing import plain_path, suggest
from hushed.cli._inputs import read_population
from hushed.cli._options import PrivateCountOption, option
from hushed.cli._panels import ROWS, STATISTICS
from hushed.cli._public_cells import name_rows
from hushed.cli._records import Source
from hushed.cli._tables import read_column
from hushed.errors import ParameterError
from hushed.guarantee import RowUnit
from hushed.statistics import Statistic

StatisticName = Literal[
    "median",
    "quantile",
    "minimum",
    "maximum",
    "mean",
    "trimmed-mean",
    "interquartile-range",
    "mode",
]

ColumnOption = Annotated[
    str | None,
    option("Column of the file, by name, or by place from 1; needed if there are several.", ROWS),
]


@dataclass(frozen=True, kw_only=True)
class Described:
    """A statistic as the options of a command describe it."""

    low: Annotated[
        float | None,
        option(
            "Low end of the public range: rows are moved into it. Of a function that is compared, "
            "of its answer.",
            STATISTICS,
        ),
    ] = None
    high: Annotated[float | None, option("High end of the public range.", STATISTICS)] = None
    q: Annotated[float | None, option("Which quantile, in [0, 1].", STATISTICS, "--q")] = None
    trim: Annotated[
        float | None,
        option("Share of rows that a trimmed mean drops at each end; 0.1 by default.", STATISTICS),
    ] = None
    category: Annotated[
        list[str] | None,
        option(
            "A public category of a mode, or a label that a compared function may answer with, "
            "a number if all of them are numbers; give all of them.",
            STATISTICS,
        ),
    ] = None
    private_count: PrivateCountOption = False
    column: ColumnOption = None

    @property
    def holds_text(self) -> bool:
        """Whether the rows are texts: where one of the categories is no number."""
        try:
            for each in self.category or ():
                read_number(each.strip())
        except ValueError:
            return True
        return False


def read_statistic(name: str, rows: int, given: Described, unit: RowUnit) -> Statistic:
    """Make the statistic that the options of a command describe."""
    if name not in get_args(StatisticName):
        raise ParameterError(
            f"there is no statistic {plain_path(name)}{suggest(name, _names()) or ';'} "
            f"there are {', '.join(_names())}"
        )
    low, high, known_rows = given.low, given.high, None if given.private_count else rows
    _check_belonging(name, {"--q": given.q, "--trim": given.trim, "--category": given.category})
    if name == "mode":
        if low is not None or high is not None:
            raise ParameterError("--low and --high are for numbers; a mode has --category")
        return hs.statistics.mode(_read_categories(given), rows=known_rows, unit=unit)
    if low is None or high is None:
        raise ParameterError(f"the {name} needs a public range: give --low and --high")
    known: dict[str, Any] = {"rows": known_rows, "low": low, "high": high, "unit": unit}
    if name == "quantile":
        if given.q is None:
            raise ParameterError("give --q, such as --q 0.9: which quantile")
        return hs.statistics.quantile(given.q, **known)
    if name in ("mean", "trimmed-mean") and known_rows is None:
        raise ParameterError("--private-count: the divisor of a mean moves with it")
    if name == "trimmed-mean":
        return hs.statistics.trimmed_mean(0.1 if given.trim is None else given.trim, **known)
    made: Statistic = getattr(hs.statistics, name.replace("-", "_"))(**known)
    return made


def _names() -> tuple[str, ...]:
    return get_args(StatisticName)


def _check_belonging(name: str, given: dict[str, Any]) -> None:
    """Refuse options of another statistic."""
    wanted = {"--q": "quantile", "--trim": "trimmed-mean", "--category": "mode"}
    for each, value in given.items():
        if value and name != wanted[each]:
            raise ParameterError(f"{each} is for {wanted[each]}, not for {name}")


def _read_categories(given: Described) -> list[Any]:
    """Read categories as numbers, if all of them are numbers."""
    if not given.category:
        raise ParameterError("a mode needs its public categories: give --category for each")
    return (
        list(given.category)
        if given.holds_text
        else [read_number(each.strip()) for each in given.category]
    )


def read_statistic_population(given: Described, public: Source) -> hs.populations.Population:
    """Read the population of a statistic: of a file one column."""
    spec = public.population
    kind = spec.partition(":")[0]
    made = kind in ("uniform", "normal", "exponential") or ".py:" in spec
    if made or not Path(spec).is_file():
        if made and given.column is not None:
            raise ParameterError("--column goes with a file")
        return read_population(
            spec, header=public.header, missing=public.missing, promise=public.promise
        )[0]
    path = Path(spec)
    rows = read_column(
        path, given.column, header=public.header, text=given.holds_text, missing=public.missing
    )
    return hs.populations.PublicTable(
        rows, name=name_rows(path, public.missing), promise=public.promise or "population"
    )
