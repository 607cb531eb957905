"""Statistics on the command line: the options that describe one, and what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import hushed as hs
from hushed._printing import plain_path
from hushed.cli._inputs import read_population
from hushed.cli._options import option
from hushed.cli._panels import ROWS, STATISTICS
from hushed.cli._tables import read_column
from hushed.errors import ParameterError
from hushed.guarantee import RowUnit
from hushed.populations import Promise
from hushed.statistics import Statistic

StatisticName = Literal[
    "median", "quantile", "minimum", "maximum", "trimmed-mean", "interquartile-range", "mode"
]

LowOption = Annotated[
    float | None,
    option(
        "Low end of the public range: rows are moved into it. Of a function that is compared, "
        "of its answer.",
        STATISTICS,
    ),
]
HighOption = Annotated[float | None, option("High end of the public range.", STATISTICS)]
QOption = Annotated[float | None, option("Which quantile, in [0, 1].", STATISTICS, "--q")]
TrimOption = Annotated[
    float | None,
    option("Share of rows that a trimmed mean drops at each end; 0.1 by default.", STATISTICS),
]
CategoryOption = Annotated[
    list[str] | None, option("A public category of a mode; give all of them.", STATISTICS)
]
ColumnOption = Annotated[
    str | None,
    option("Column of the file, by name, or by place from 1; needed if there are several.", ROWS),
]
PrivateRowsOption = Annotated[
    bool,
    option(
        "The number of rows is private, too: neighbours have one row more or less.",
        STATISTICS,
        "--private-count",
    ),
]


def read_statistic(
    name: str,
    rows: int | None,
    *,
    low: float | None,
    high: float | None,
    q: float | None,
    trim: float | None,
    category: Sequence[str] | None,
    unit: RowUnit,
) -> Statistic:
    """Make the statistic that the options of a command describe."""
    if name not in get_args(StatisticName):
        raise ParameterError(
            f"there is no statistic {plain_path(name)}; there are {', '.join(_names())}"
        )
    _check_belonging(name, {"--q": q, "--trim": trim, "--category": category})
    if name == "mode":
        if low is not None or high is not None:
            raise ParameterError("--low and --high are for numbers; a mode has --category")
        return hs.statistics.mode(_read_categories(category), rows=rows, unit=unit)
    if low is None or high is None:
        raise ParameterError(f"the {name} needs a public range: give --low and --high")
    known: dict[str, Any] = {"rows": rows, "low": low, "high": high, "unit": unit}
    if name == "quantile":
        if q is None:
            raise ParameterError("give --q, such as --q 0.9: which quantile")
        return hs.statistics.quantile(q, **known)
    if name == "trimmed-mean":
        if rows is None:
            raise ParameterError("--private-count: the divisor of a trimmed mean moves with it")
        return hs.statistics.trimmed_mean(0.1 if trim is None else trim, **known)
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


def _read_categories(category: Sequence[str] | None) -> list[Any]:
    """Read categories as numbers, if all of them are numbers."""
    if not category:
        raise ParameterError("a mode needs its public categories: give --category for each")
    return list(category) if holds_text(category) else [float(each) for each in category]


def holds_text(category: Sequence[str] | None) -> bool:
    """Tell whether the rows are texts: where one of the categories is no number."""
    try:
        for each in category or ():
            float(each)
    except ValueError:
        return True
    return False


def read_statistic_population(
    spec: str, *, text: bool, column: str | None, header: bool | None, promise: Promise | None
) -> hs.populations.Population:
    """Read the population of a statistic: of a file one column."""
    kind = spec.partition(":")[0]
    if kind in ("uniform", "normal", "exponential") or ".py:" in spec or not Path(spec).is_file():
        if column is not None:
            raise ParameterError("--column goes with a file")
        return read_population(spec, header=header, promise=promise)[0]
    rows = read_column(Path(spec), column, header=header, text=text)
    return hs.populations.PublicTable(rows, name=Path(spec).name, promise=promise or "population")
