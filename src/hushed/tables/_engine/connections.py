"""Open a table of an engine; no row is read, and no message of an engine is shown."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import RLock
from types import MappingProxyType
from typing import Any, NoReturn

from hushed._ground.printing import as_given, brief, plain_path
from hushed._ground.types import ColumnType, StoredType
from hushed.errors import EngineUnavailable, HushedError, ParameterError
from hushed.tables._engine.databases import missing_table
from hushed.tables._engine.dialect import Dialect
from hushed.tables._engine.normalisation import (
    COLUMN_TYPES,
    ColumnCast,
    choose_cast,
    describe_held,
    say_no_type,
)
from hushed.tables._engine.parts import state_of
from hushed.tables._expressions import find_column

OF_A_FRAME = "a frame"  # the place of rows that have no address


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A table in a database, not read yet."""

    engine: Dialect  # engine that answers
    # The stored table. Queries read it through `normalise_columns` only.
    rows: Any = field(repr=False, compare=False)
    casts: Mapping[str, ColumnCast] = field(repr=False)  # total cast of each column
    # Stored name of each column; empty if the column is left out.
    stored: Mapping[str, str] = field(repr=False)
    # Address and name of the table, for the digest of a query; without a password.
    place: str = field(default="", repr=False)
    # What is said of a view, or of a table whose rows cannot be checked: none is copied.
    warnings: tuple[str, ...] = field(default=(), repr=False)
    delimiter: str = field(default="", repr=False)  # of a CSV file, as its header tells
    # What is said of a file from its header and the declared types: how cells are read.
    remarks: tuple[str, ...] = field(default=(), repr=False)
    # Public lists of what columns hold, where they were declared beside the table.
    listed: Mapping[str, tuple[Any, ...]] = field(
        default_factory=lambda: MappingProxyType({}), repr=False, compare=False
    )
    # Held from the plan of a query to its last answer: one thread queries at a time.
    lock: Any = field(default_factory=RLock, repr=False, compare=False)
    # The copies of bounded rows that are filled, that of the last query last; changed under the
    # lock only. None where none are kept.
    copies: list[Any] | None = field(default=None, repr=False, compare=False)
    # The plans of the last questions, where copies are kept: see `plans.py`. Changed under the lock
    # only, and never shared with a connection of other columns or other joined tables.
    plans: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    # The process that opened it. Only this process may query: a forked one would share the
    # connection, and receive answers of the other.
    process: int = field(default_factory=os.getpid, repr=False, compare=False)
    # Whether it is a table of a database, of which others can be joined; and those that are joined,
    # by their names.
    in_database: bool = False
    others: Mapping[str, Connection] = field(
        default_factory=lambda: MappingProxyType({}), repr=False, compare=False
    )
    # What the table was, and the type of each column, when a database was asked for them: the casts
    # are chosen for these, and fail on no value of these alone.
    described: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType({}), repr=False, compare=False
    )
    # Weak reference to the frame that was opened, if it was one.
    frame: Any = field(default=None, repr=False, compare=False)
    # A file that queries read, and not only opening does; or several, as a folder or a pattern.
    file: Path | None = field(default=None, repr=False, compare=False)
    # Inode, size and time of that file when it was opened, or of each.
    state: tuple[Any, ...] | None = field(default=None, repr=False, compare=False)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(
            "a table is neither pickled nor copied, for it holds a connection that only this "
            "process may use: open it with hs.table(...) where it is needed, and ask there what is "
            "asked here, hs.Query.of(table), which can be pickled: hs.table(...).ask(query)"
        )

    @property
    def has_address(self) -> bool:
        """Whether the place tells the table from others: one frame has the place of any other."""
        return not self.place.startswith(f"{OF_A_FRAME} ")

    @property
    def columns(self) -> Mapping[str, StoredType]:
        """Type of each column; public."""
        return MappingProxyType({name: cast.type for name, cast in self.casts.items()})

    @property
    def told(self) -> tuple[str, ...]:
        """All that whoever opens it, asks a price or an answer is told; public."""
        joined = (text for other in self.others.values() for text in other.warnings)
        return (*dict.fromkeys((*self.warnings, *self.remarks, *joined)),)

    @property
    def changed(self) -> bool:
        """Whether the file differs from the one that was opened."""
        return self.file is not None and state_of(self.file) != self.state

    def was_described_otherwise(self) -> bool:
        """Whether the table of a database is another kind of table, or a column of another type.

        One that is not there any more is refused by the engine, in words of its own.
        """
        now = self.engine.describe(self.rows) if self.described else {}
        return any(now.get(name, told) != told for name, told in self.described.items())


def open_stored(
    engine: Dialect, url: str, name: str, types: Mapping[str, ColumnType]
) -> Connection:
    """Open a table of a database."""
    if types and engine.readings is None:
        raise ParameterError(
            "types is for files and frames; in this database, cast the column in a view",
            parameter="types",
        )
    file = engine.find_file(url)
    state = None if file is None else state_of(file)
    backend, home = engine.connect(url)
    engine.check_table(backend, name)
    place, _, short = name.rpartition(".")
    rows = _find_rows(engine, backend, name, place, short)
    stored = {column: column for column in rows.schema()}
    warnings = engine.warnings(backend, place, short)
    return Connection(
        engine=engine,
        rows=rows,
        place=f"{home} {_name_whole(rows, name)}",
        warnings=warnings,
        described=_describe(engine, rows),
        copies=[] if engine.copies and not warnings else None,
        in_database=True,
        casts=_choose_casts(engine, rows, stored, types),
        stored=MappingProxyType(stored),
        lock=engine.lock(),
        file=file,
        state=state,
    )


def _describe(engine: Dialect, rows: Any) -> Mapping[str, str]:
    """Ask what a table is, and the type of each column; no row is read."""
    reason = ""
    try:
        return MappingProxyType(dict(engine.describe(rows)))
    except engine.errors() as error:
        reason = type(error).__name__
    raise EngineUnavailable(f"{engine} does not answer ({reason}); no row was read")


def _name_whole(rows: Any, name: str) -> str:
    """Name of a table with its schema: the same name is another table in another search path."""
    parts = (rows.op().namespace.catalog, rows.op().namespace.database, rows.op().name)
    return ".".join(map(str, filter(None, parts))) or name


def open_beside(connection: Connection, name: str) -> Connection:
    """Open another table of the same database, through the same connection."""
    if not connection.in_database:
        raise ParameterError(
            "only tables of one database can be joined by their users: put both into one, such as "
            "a DuckDB file",
            parameter="table",
        )
    if os.getpid() != connection.process:
        raise EngineUnavailable(
            "the table was opened by the process that this one was forked from; open it again here"
        )
    engine, backend = connection.engine, connection.rows.get_backend()
    with connection.lock:
        engine.check_table(backend, name)
        place, _, short = name.rpartition(".")
        rows = _find_rows(engine, backend, name, place, short)
        warnings = engine.warnings(backend, place, short)
        described = _describe(engine, rows)
    stored = {column: column for column in rows.schema()}
    return replace(
        connection,
        rows=rows,
        place=_name_whole(rows, name),
        warnings=warnings,
        described=described,
        casts=_choose_casts(engine, rows, stored, {}),
        stored=MappingProxyType(stored),
        others=MappingProxyType({}),
        plans={},
    )


def add_other(connection: Connection, name: str, other: Connection) -> Connection:
    """Add a table that is joined; of views, which may read what is outside, no copy is kept."""
    return replace(
        connection,
        others=MappingProxyType({**connection.others, name: other}),
        copies=None if other.warnings else connection.copies,
        plans={},
    )


def open_own(
    engine: Dialect,
    backend: Any,
    name: str,
    types: Mapping[str, ColumnType],
    stored: Mapping[str, str | None],
    home: str,
    zoned: Collection[str] = (),
) -> Connection:
    """Open a table that was made of a file or a frame.

    `stored` gives the stored name of each column, None where it is left out, `home` where the
    rows come from, and `zoned` the columns whose times had a zone.
    """
    rows = _find_rows(engine, backend, name, "", name)
    return Connection(
        engine=engine,
        rows=rows,
        place=f"{home} {name}",
        casts=_choose_casts(engine, rows, stored, types, zoned),
        stored=MappingProxyType({column: inside or "" for column, inside in stored.items()}),
        lock=engine.lock(),
        copies=[] if engine.copies else None,
    )


def _find_rows(engine: Dialect, backend: Any, name: str, place: str, short: str) -> Any:
    """Find a table, and read the types of its columns.

    Ibis does not know some types, and an engine may lack the extension for a type.
    """
    reason = ""
    unknown = warned = lost = False
    try:
        return engine.find_table(backend, place, short)
    except HushedError:
        raise
    except engine.errors() as error:
        reason, lost = type(error).__name__, engine.is_lost(error)
        unknown = reason in ("IbisTypeError", "IOException", "HTTPException")
    except Exception as error:  # Ibis fails on a name: of a type, or of the table itself
        reason = type(error).__name__
        unknown, warned = reason not in ("ParseError", "TokenError"), isinstance(error, Warning)
    if warned:
        raise ParameterError(
            f"Ibis warns ({reason}), and warnings are errors here, so that the table cannot be "
            f"opened: let this one pass, such as by warnings.simplefilter('default', {reason})"
        )
    if unknown:
        raise ParameterError(
            f"a column of the table {plain_path(name, brief)} is of a type that cannot even "
            "be left out; query a view without it"
        )
    if lost:
        raise EngineUnavailable(f"{engine} does not answer ({reason}); no row was read")
    raise missing_table(name, engine.list_tables(backend), reason)


def _choose_casts(
    engine: Dialect,
    rows: Any,
    stored: Mapping[str, str | None],
    types: Mapping[str, ColumnType],
    zoned: Collection[str] = (),
) -> Mapping[str, ColumnCast]:
    """Choose the total cast of each column."""
    import ibis.expr.datatypes as dt  # noqa: PLC0415

    schema, backend = rows.schema(), rows.get_backend()
    declared = check_types(types, stored)
    casts = {
        column: choose_cast(
            engine,
            _quote_identifier(backend, inside or "nothing"),
            schema[inside] if inside else dt.null,
            name=column,
            declared=declared.get(column),
        )
        for column, inside in stored.items()
    }
    for column, inside in stored.items():
        if inside:
            known, one = column in zoned, casts[column]
            casts[column] = replace(one, held=describe_held(schema[inside], one.type, zoned=known))
    return MappingProxyType(casts)


def check_types(types: Mapping[str, ColumnType], names: Iterable[str]) -> dict[str, ColumnType]:
    """Check the declared types of columns."""
    known = list(names)
    if not isinstance(types, Mapping):
        raise ParameterError(
            f"types must be a mapping such as {{'age': 'int'}}, got {as_given(types)}",
            parameter="types",
        )
    for column, declared in types.items():
        find_column(column, known)
        if declared not in COLUMN_TYPES:
            raise ParameterError(say_no_type(column, declared))
    return dict(types)


def _quote_identifier(backend: Any, name: str) -> str:
    import sqlglot  # noqa: PLC0415

    return str(sqlglot.to_identifier(name, quoted=True).sql(backend.dialect))


def normalise_columns(connection: Connection, names: Mapping[str, str]) -> Any:
    """Give the normalised columns of a table: every query starts here."""
    import ibis  # noqa: PLC0415

    backend = connection.rows.get_backend()
    casts = {short: connection.casts[name] for name, short in names.items()}
    chosen = ", ".join(f"{cast.sql} AS {short}" for short, cast in casts.items()) or "1 AS nothing"
    schema = {short: cast.dtype for short, cast in casts.items()} or {"nothing": "int64"}
    needed = dict.fromkeys(connection.stored[name] for name in names)
    rows = connection.rows.select(*needed) if needed else connection.rows.select(n=ibis.literal(1))
    query = f"SELECT {chosen} FROM ({backend.compile(rows)}) AS stored"  # noqa: S608
    return backend.sql(query, schema=schema)
