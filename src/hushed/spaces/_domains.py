"""Domains: what a table, a column or an answer may be, and the check that it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hushed._ground.calls import called_as
from hushed._ground.checks import require_count, require_one_of
from hushed._ground.exact import moved_by_rounding
from hushed._rows._containers import take_plain
from hushed.errors import BadRows, ParameterError
from hushed.spaces._bound import size as size_in
from hushed.spaces._cells import LARGEST_FLOAT, Cell, read_numbers
from hushed.spaces._sizes import check_least, check_size, describe_size, refuse_size


class _Readable:
    """What all domains have in common."""

    __slots__ = ()

    def check(self, data: Any) -> Any:
        """Read data and refuse what is not in the domain.

        Parameters
        ----------
        data : array_like, mapping or frame
            The rows, or an answer.

        Returns
        -------
        ndarray, or dict of ndarray by column or key
            A copy.

        Raises
        ------
        BadRows
            If it is not in the domain; no value is shown.
        """
        raise NotImplementedError


@called_as("hs.spaces.Column(cell=hs.spaces.Cell())")
@dataclass(frozen=True, slots=True, kw_only=True)
class Column(_Readable):
    """A column of cells.

    Parameters
    ----------
    cell : Cell
        What each row holds.
    size : int, optional
        Number of rows, if public.
    least : int, optional
        Rows that there are at least, if that much is public and the number is not. A table of
        fewer rows is refused, and nobody is hidden in it: promises are about pairs of tables that
        both have them.
    """

    cell: Cell
    size: int | None = None
    least: int | None = None

    def __post_init__(self) -> None:
        check_size(self.size)
        check_least(self.least, self.size)

    def __str__(self) -> str:
        """Words for messages."""
        return f"a column of {self.cell}, {describe_size(self.size, self.least)}"

    def check(self, data: Any) -> NDArray[Any]:
        """Read a column and refuse what is not in the domain."""
        refuse_unread(data, "one column: an array, a list or a series")
        read = self.cell.check(data)
        refuse_size(len(read), self.size, self.least)
        return read


@called_as('hs.spaces.Table.of({"cost": hs.spaces.Cell(low=0, high=100)})')
@dataclass(frozen=True, slots=True, kw_only=True)
class Table(_Readable):
    """Named columns of equal length.

    Parameters
    ----------
    columns : tuple of (str, Cell)
        Public names and what they hold; `of` takes a mapping. Other columns of the data are not
        looked at.
    size : int, optional
        Number of rows, if public.
    least : int, optional
        Rows that there are at least, if that much is public and the number is not. A table of
        fewer rows is refused, and nobody is hidden in it: promises are about pairs of tables that
        both have them.
    key : str, optional
        Column that says whose row it is.

    Raises
    ------
    ParameterError
        If there are no columns, or the key is none of them.
    """

    columns: tuple[tuple[str, Cell], ...]
    size: int | None = None
    least: int | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        check_size(self.size)
        check_least(self.least, self.size)
        if isinstance(self.columns, Mapping):
            raise ParameterError("columns are pairs of a name and a Cell; Table.of takes a mapping")
        if not self.columns:
            raise ParameterError("a table needs at least one column")
        wrong = [type(cell).__name__ for _, cell in self.columns if not isinstance(cell, Cell)]
        if wrong:
            raise ParameterError(f"a column holds a Cell, got {wrong[0]}", parameter="columns")
        if self.key is not None and self.key not in dict(self.columns):
            raise ParameterError(f"the key {self.key!r} is not a column; {self._names()}")

    @classmethod
    @called_as('hs.spaces.Table.of({"cost": hs.spaces.Cell(low=0, high=100)})')
    def of(
        cls,
        columns: Mapping[str, Cell],
        *,
        size: int | None = None,
        least: int | None = None,
        key: str | None = None,
    ) -> Table:
        """Make a table from columns by name.

        Parameters
        ----------
        columns : mapping of str to Cell
            What each column holds.
        size : int, optional
            Number of rows, if public.
        least : int, optional
            Rows that there are at least, if that much is public.
        key : str, optional
            Column that says whose row it is.

        Returns
        -------
        Table
            The domain.
        """
        return cls(columns=tuple(columns.items()), size=size, least=least, key=key)

    def __str__(self) -> str:
        """Words for messages."""
        held = ", ".join(f"{name}: {cell}" for name, cell in self.columns)
        key = "" if self.key is None else f", keyed by {self.key}"
        return f"a table ({held}){key}, {describe_size(self.size, self.least)}"

    def _names(self) -> str:
        return "there are " + ", ".join(repr(name) for name, _ in self.columns)

    @called_as('table.cell("cost")')
    def cell(self, name: str) -> Cell:
        """Look up what a column holds.

        Parameters
        ----------
        name : str
            Name of a column.

        Returns
        -------
        Cell
            Its cells.

        Raises
        ------
        ParameterError
            If there is no such column.
        """
        found = dict(self.columns).get(name)
        if found is None:
            raise ParameterError(f"there is no column {name!r}; {self._names()}")
        return found

    def check(self, data: Any) -> dict[str, NDArray[Any]]:
        """Read the declared columns and refuse what is not in the domain."""
        refuse_columns(self, data)
        read = {name: cell.check(data[name], name=name) for name, cell in self.columns}
        lengths = {len(values) for values in read.values()}
        if len(lengths) != 1:
            raise BadRows("the columns differ in length")
        refuse_size(lengths.pop(), self.size, self.least)
        return read


_READ_BY = {  # by module and class, what makes rows in memory that a chain reads
    ("pyarrow", "Table"): "say to_pandas()",
    ("pyarrow", "RecordBatch"): "say to_pandas()",
    ("duckdb", "DuckDBPyRelation"): "say df()",
    ("duckdb", "DuckDBPyConnection"): "say sql('SELECT ...').df()",
    ("polars", "LazyFrame"): "say collect()",
    ("pyspark", "DataFrame"): "say toPandas()",
    ("hushed", "Table"): "an hs.table is asked by its own methods, such as count() and sum()",
}


def refuse_unread(data: Any, taken: str) -> None:
    """Refuse a container that a chain does not read, by its type, which is public."""
    kind = type(data)
    found = (str(kind.__module__).partition(".")[0].lstrip("_"), kind.__name__)
    if found in _READ_BY:
        raise BadRows(f"a chain takes {taken}, got {'.'.join(found)}: {_READ_BY[found]}")


def refuse_columns(table: Table, data: Any) -> None:
    """Refuse data without the declared columns, which is public; no cell is looked at."""
    refuse_unread(data, "a mapping of columns, or a pandas or Polars frame")
    if not hasattr(data, "keys") and not hasattr(data, "columns"):
        raise BadRows(f"expected columns by name, a mapping or a frame: {table}")
    names = list(data.columns if hasattr(data, "columns") else data.keys())
    absent = [name for name, _ in table.columns if name not in names]
    if absent:
        raise BadRows(f"the table has no column {absent[0]!r}, which was declared")


@called_as('hs.spaces.Vectors(dims=3, norm="l2", bound=1.0)')
@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors(_Readable):
    """Rows that are vectors of floats.

    Parameters
    ----------
    dims : int
        Numbers in a row; 1 or more.
    norm : {"l1", "l2", "sup"}, optional
        Norm in which the rows are bounded.
    bound : float, optional
        Largest norm of a row, as `hushed.spaces.size` computes it; from ``2**-970`` to
        ``2**970``. Goes with ``norm``.
    size : int, optional
        Number of rows, if public.
    least : int, optional
        Rows that there are at least, if that much is public and the number is not. A table of
        fewer rows is refused, and nobody is hidden in it: promises are about pairs of tables that
        both have them.

    Raises
    ------
    ParameterError
        If a parameter leaves its range.
    """

    dims: int
    norm: Literal["l1", "l2", "sup"] | None = None
    bound: float | None = None
    size: int | None = None
    least: int | None = None

    def __post_init__(self) -> None:
        check_size(self.size)
        check_least(self.least, self.size)
        require_count("dims", self.dims, plain=True)
        if (self.norm is None) != (self.bound is None):
            raise ParameterError("give norm and bound together")
        if self.norm is not None:
            require_one_of("norm", self.norm, ("l1", "l2", "sup"))
        if self.bound is not None and not 1 / LARGEST_FLOAT <= self.bound <= LARGEST_FLOAT:
            raise ParameterError(
                f"bound must lie within [{1 / LARGEST_FLOAT:g}, {LARGEST_FLOAT:g}], "
                f"got {self.bound}",
                parameter="bound",
            )

    def __str__(self) -> str:
        """Words for messages."""
        held = "" if self.norm is None else f" of {self.norm} norm at most {self.bound:g}"
        return f"vectors of {self.dims} floats{held}, {describe_size(self.size, self.least)}"

    def check(self, data: Any) -> NDArray[np.float64]:
        """Read rows of vectors and refuse what is not in the domain."""
        read = read_numbers(data, "float")
        if read is None or read.ndim != 2 or read.shape[1] != self.dims:
            raise BadRows(f"the data is not {self}: other types of values or dimensions")
        if not np.isfinite(read).all():
            raise BadRows(f"the data is not {self}: NaN or infinity")
        if self.norm is not None and self.bound is not None and len(read):
            too_long = size_in(read, self.norm) > self.bound
        else:
            too_long = np.zeros(0, dtype=np.bool_)
        if too_long.any():
            raise BadRows(f"the data is not {self}: a row is longer; clip it with clip_norm")
        refuse_size(len(read), self.size, self.least)
        return read


@called_as("hs.spaces.Groups(keys=('Bonn', 'Ulm'), table=hs.spaces.Table.of(columns))")
@dataclass(frozen=True, slots=True, kw_only=True)
class Groups(_Readable):
    """A table split into disjoint parts by public keys.

    Parameters
    ----------
    keys : tuple
        Public keys, one for each part.
    table : Table
        What each part is.
    """

    keys: tuple[Any, ...]
    table: Table

    @property
    def size(self) -> int | None:
        """Number of rows over all parts: not public."""
        return None

    def __str__(self) -> str:
        """Words for messages."""
        return f"{len(self.keys)} groups, each {self.table}"

    def check(self, data: Any) -> dict[Any, Any]:
        """Read the parts and refuse what is not in the domain."""
        if not isinstance(data, Mapping) or set(data) != set(self.keys):
            raise BadRows("expected one table for each public key")
        return {key: self.table.check(data[key]) for key in self.keys}


@called_as('hs.spaces.Numbers(type="float", dims=3)')
@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers(_Readable):
    """Answers: one number, or a vector of them.

    Parameters
    ----------
    type : {"float", "int"}, default "float"
        Type of the numbers.
    dims : int, optional
        Length of the vector; None for a single number.
    """

    type: Literal["float", "int"] = "float"
    dims: int | None = None

    @property
    def size(self) -> int | None:
        """Answers have no rows."""
        return None

    def __str__(self) -> str:
        """Words for messages."""
        return f"one {self.type}" if self.dims is None else f"a vector of {self.dims} {self.type}s"

    def check(self, data: Any) -> NDArray[Any]:
        """Read an answer and refuse what is not in the domain."""
        read = read_numbers(data, self.type)
        shape = () if self.dims is None else (self.dims,)
        if read is None or read.shape != shape or not np.isfinite(read).all():
            raise BadRows(f"the answer is not {self}, all finite")
        if moved_by_rounding(data, np.asarray(data)):
            raise BadRows("the answer holds integers beyond 2**53: doubles would move them")
        return read


@called_as("hs.spaces.Opaque(size=1000)")
@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque(_Readable):
    """Rows in any container, of which no more than their number is looked at.

    Parameters
    ----------
    size : int, optional
        Number of rows, if public.
    name : str, default "rows"
        What they are, for messages.
    """

    size: int | None = None
    name: str = "rows"

    def __post_init__(self) -> None:
        check_size(self.size)

    def __str__(self) -> str:
        """Words for messages."""
        return f"{self.name} in any container, {describe_size(self.size)}"

    def check(self, data: Any) -> Any:
        """Refuse another number of rows than is public."""
        if self.size is not None and not hasattr(type(data), "__len__"):
            raise ParameterError(
                f"the rows must have a number, as a list or an array, got {type(data).__name__}"
            )
        if self.size is not None:
            refuse_size(len(take_plain(data)), self.size)
        return data


Domain = Column | Table | Vectors | Groups | Numbers | Opaque
