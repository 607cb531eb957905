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

from hushed._ground.types import ColumnType
from hushed.tables._engine.clock import Clock

Backend = Any  # the connection of Ibis to an engine


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedQuery:
    """A query that the engine has planned."""

    query: Any  # the query, for engines that take no SQL
    sql: str  # its SQL, for the other engines
    names: tuple[str, ...]  # columns of the answer


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedHash:
    """The engine's own hash of a value and of another hash, to 64 bits."""

    # Its names for integers, for doubles and for strings.
    whole: str
    real: str
    text: str
    type: str  # type of a hash
    # Whether the value is the first argument, and the other hash the second.
    value_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dialect:
    """An engine: everything that is different from one to another."""

    name: str  # its name, which is also its name in Ibis; part of the digest of a query
    schemes: tuple[str, ...] = field(repr=False)  # what its addresses begin with, before ``://``
    example: str = field(repr=False)  # an address, as a message shows it
    # Address in; connection of Ibis and home out. The home says where the table is, without user
    # and password, for the digest of a query. Reasons of a failure are given in our own words.
    connect: Callable[[str], tuple[Backend, str]] = field(repr=False)
    # Address in; the file that queries read, which must not change. None by default.
    find_file: Callable[[str], Path | None] = field(default=lambda _: None, repr=False)
    # Its exceptions, and those of the connection to it.
    errors: Callable[[], tuple[type[Exception], ...]] = field(repr=False)
    # Connection and name of a table in: refuses one that Ibis would misread. Nothing by default.
    check_table: Callable[[Backend, str], None] = field(default=lambda *_: None, repr=False)
    # Connection, place and name in: the table of Ibis.
    find_table: Callable[[Backend, str, str], Any] = field(
        default=lambda backend, place, name: backend.table(name, database=place or None), repr=False
    )
    # Names of tables, for a message about a wrong name; empty if they cannot be listed.
    list_tables: Callable[[Backend], str] = field(repr=False)
    # Connection, place and name in: warnings of a view, of row-level security.
    warnings: Callable[[Backend, str, str], tuple[str, ...]] = field(repr=False)
    # The stored table in: whether this login may change it, too.
    may_change: Callable[[Any], bool] = field(default=lambda _: False, repr=False)
    # The stored table in: what names it whatever its address; empty where nothing does.
    identity: Callable[[Any], str] = field(default=lambda _: "", repr=False)
    # Table in; what it is and the type of each column out, where these change under a connection.
    describe: Callable[[Any], Mapping[str, str]] = field(default=lambda _: {}, repr=False)
    # Connection and bytes of memory in: keeps it, for good, from whatever is not open already, in a
    # process that serves people who may see no row. Nothing where the login decides that. With
    # ``ordered=True`` rows come in the order in which they are stored.
    confine: Callable[..., None] = field(default=lambda *_, **__: None, repr=False)
    # Whether rows come in the order in which they are stored, where it was confined to that.
    keeps_order: bool = field(default=False, repr=False)
    # Lock that a query on a new connection holds.
    lock: Callable[[], Any] = field(default=RLock, repr=False)
    # For each kind of column a total cast in its SQL: it fails on no value.
    forms: Mapping[str, str] = field(repr=False)
    # SQL that reads a value as a declared type; None where types cannot be declared.
    readings: Mapping[ColumnType, str] | None = field(default=None, repr=False)
    # SQL of a string and its declared type in, SQL that reads it out: where types can be declared.
    read_spelling: Callable[[str, ColumnType], str] = field(
        default=lambda text, _: text, repr=False
    )
    # Quoted name and type of a column in, SQL without a value on which a cast fails out.
    read_stored: Callable[[str, Any], str] = field(default=lambda quoted, _: quoted, repr=False)
    # Quoted name and type of an integer column in, the same as SQL out.
    read_whole: Callable[[str, Any], str] = field(default=lambda quoted, _: quoted, repr=False)
    # Whether it optimises across a subquery, unless that has a LIMIT.
    barrier: bool = field(repr=False)
    # Type that integers are cast to before they are summed; None if its sum cannot overflow.
    wide: str | None = field(default=None, repr=False)
    hash: KeyedHash = field(repr=False)  # its fast hash
    # Whether it ranks the rows of small hashes first: it has to compute once what is used twice.
    ranks_small_first: bool = field(default=False, repr=False)
    # String in, SHA-256 of its bytes in hexadecimal digits out.
    sha256: Callable[[Any], Any] = field(repr=False)
    # String in, what is fetched in its place out; and the string of it. An engine may hold strings
    # that it does not hand out.
    send_text: Callable[[Any], Any] = field(default=lambda text: text, repr=False)
    read_text: Callable[[str], str] = field(default=lambda text: text, repr=False)
    # Connection and clock in: what holds while it is queried, such as settings and a time limit.
    session: Callable[[Backend, Clock], AbstractContextManager[None]] = field(repr=False)
    stoppable: bool = field(default=True, repr=False)  # whether a query can have a time limit
    # Whether copies of bounded rows are kept, because its tables change only as files that are
    # watched, and a table of its session is in this process: see `copies.py`.
    copies: bool = field(default=False, repr=False)
    # Connection and SQL in: plans a query, checks names, types and rights, reads no row.
    plan: Callable[[Backend, str], None] = field(repr=False)
    # Connection and planned query in, rows out.
    fetch: Callable[[Backend, PlannedQuery], Sequence[tuple[Any, ...]]] = field(repr=False)
    # Whether an exception says that the engine is not available, before a query.
    is_lost: Callable[[Exception], bool] = field(repr=False)
    # Whether an exception says that the connection is lost, or the query taken back, for a reason
    # that is none of its rows.
    is_gone: Callable[[Exception], bool] = field(repr=False)
    # Whether a connection is closed, as far as is known without asking.
    is_closed: Callable[[Backend], bool] = field(default=lambda _: False, repr=False)
    # What the names of its exceptions mean while a query is planned; public.
    reasons: Mapping[str, str] = field(default_factory=dict, repr=False)
    # Names of its exceptions for a right, a table or a column that is missing, and may be back.
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
