"""What an engine has to say of itself: one record, with everything in which engines differ.

Each engine fills it in one file: `duckdb.py`, `postgres.py`, `spark.py`. The rest of this package
asks the record and never the name of an engine. `engines.py` lists them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import RLock
from typing import Any

from hushed._types import ColumnType
from hushed.tables._engine.clock import Clock

Backend = Any  # the connection of Ibis to an engine


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedQuery:
    """A query that the engine has planned.

    Parameters
    ----------
    query : ibis.Table
        The query, for engines that take no SQL.
    sql : str
        Its SQL, for the other engines.
    names : tuple of str
        Columns of the answer.
    """

    query: Any
    sql: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedHash:
    """The engine's own hash of a value and of another hash, to 64 bits.

    Parameters
    ----------
    whole, text : str
        Its names for integers and for strings.
    type : str
        Type of a hash.
    value_first : bool
        Whether the value is the first argument, and the other hash the second.
    """

    whole: str
    text: str
    type: str
    value_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dialect:
    """An engine: everything that is different from one to another.

    Parameters
    ----------
    name : str
        Its name, which is also its name in Ibis; part of the digest of a query.
    schemes : tuple of str
        What its addresses begin with, before ``://``.
    example : str
        An address, as a message shows it.
    connect : callable
        Address in; connection of Ibis and home out. The home says where the table is, without user
        and password, for the digest of a query. Reasons of a failure are given in our own words.
    find_file : callable
        Address in; the file that queries read, which must not change. None by default.
    errors : callable
        Its exceptions, and those of the connection to it.
    check_table : callable
        Connection and name of a table in: refuses one that Ibis would misread. Nothing by default.
    list_tables : callable
        Names of tables, for a message about a wrong name; empty if they cannot be listed.
    warnings : callable
        Connection, place and name in: warnings of a view, of row-level security.
    lock : callable
        Lock that a query on a new connection holds.
    forms : mapping of str to str
        For each kind of column a total cast in its SQL: it fails on no value.
    readings : mapping of str to str, optional
        SQL that reads a string as a declared type; None where types cannot be declared.
    read_whole : callable
        Quoted name and type of an integer column in, the same as SQL out.
    barrier : bool
        Whether it optimises across a subquery, unless that has a LIMIT.
    wide : str, optional
        Type that integers are cast to before they are summed; None if its sum cannot overflow.
    hash : KeyedHash
        Its fast hash.
    sha256 : callable
        String in, SHA-256 of its bytes in hexadecimal digits out.
    session : callable
        Connection and clock in: what holds while it is queried, such as settings and a time limit.
    stoppable : bool
        Whether a query can have a time limit.
    plan : callable
        Connection and SQL in: plans a query, checks names, types and rights, reads no row.
    fetch : callable
        Connection and planned query in, rows out.
    is_lost : callable
        Whether an exception says that the engine is not available, before a query.
    is_gone : callable
        Whether an exception says that the connection is lost, during a query.
    reasons : mapping of str to str
        What the names of its exceptions mean while a query is planned; public.
    denials : frozenset of str
        Names of its exceptions for a right that is missing.
    """

    name: str
    schemes: tuple[str, ...] = field(repr=False)
    example: str = field(repr=False)
    connect: Callable[[str], tuple[Backend, str]] = field(repr=False)
    find_file: Callable[[str], Path | None] = field(default=lambda _: None, repr=False)
    errors: Callable[[], tuple[type[Exception], ...]] = field(repr=False)
    check_table: Callable[[Backend, str], None] = field(default=lambda *_: None, repr=False)
    list_tables: Callable[[Backend], str] = field(repr=False)
    warnings: Callable[[Backend, str, str], tuple[str, ...]] = field(repr=False)
    lock: Callable[[], Any] = field(default=RLock, repr=False)
    forms: Mapping[str, str] = field(repr=False)
    readings: Mapping[ColumnType, str] | None = field(default=None, repr=False)
    read_whole: Callable[[str, Any], str] = field(default=lambda quoted, _: quoted, repr=False)
    barrier: bool = field(repr=False)
    wide: str | None = field(default=None, repr=False)
    hash: KeyedHash = field(repr=False)
    sha256: Callable[[Any], Any] = field(repr=False)
    session: Callable[[Backend, Clock], AbstractContextManager[None]] = field(repr=False)
    stoppable: bool = field(default=True, repr=False)
    plan: Callable[[Backend, str], None] = field(repr=False)
    fetch: Callable[[Backend, PlannedQuery], Sequence[tuple[Any, ...]]] = field(repr=False)
    is_lost: Callable[[Exception], bool] = field(repr=False)
    is_gone: Callable[[Exception], bool] = field(repr=False)
    reasons: Mapping[str, str] = field(default_factory=dict, repr=False)
    denials: frozenset[str] = field(default=frozenset(), repr=False)

    def __str__(self) -> str:
        return self.name


def common_errors() -> tuple[type[Exception], ...]:
    """Exceptions of Ibis, Arrow and Python, whichever the engine."""
    import pyarrow as pa  # noqa: PLC0415
    from ibis.common.exceptions import IbisError, TableNotFound  # noqa: PLC0415

    return (
        IbisError,
        TableNotFound,  # no IbisError
        pa.ArrowException,
        OSError,
        MemoryError,
        UnicodeError,
    )


@lru_cache(maxsize=32)
def builtin_function(name: str, takes: tuple[str, ...], gives: str) -> Any:
    """Give a function of the engine that Ibis does not know."""
    import ibis  # noqa: PLC0415
    import ibis.expr.datatypes as dt  # noqa: PLC0415

    def stand(*arguments: Any) -> Any:
        """Stand for the engine's own function."""
        raise NotImplementedError(arguments)

    parameters = [
        inspect.Parameter(f"a{i}", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for i in range(len(takes))
    ]
    stand.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    signature = (tuple(map(dt.dtype, takes)), dt.dtype(gives))
    return ibis.udf.scalar.builtin(stand, name=name, signature=signature)
