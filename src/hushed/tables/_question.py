"""A query as data: frozen, versioned, written to files and read back, without the table."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError

from hushed._ground.calls import called_as
from hushed._ground.json_text import drop_mark
from hushed._ground.notebook import Card, Shown
from hushed._ground.printing import brief
from hushed._ground.types import StoredType
from hushed.errors import ParameterError
from hushed.tables._export import CsvLines, write_command, write_notebook, write_python
from hushed.tables._question_errors import explain_query
from hushed.tables._question_parts import (
    AnyAggregate,
    AnyStep,
    AtLeastOne,
    Groups,
    Named,
    Part,
    Several,
)

if TYPE_CHECKING:
    from hushed.tables._plan import NoiseName
    from hushed.tables._table import Table

_LONGEST_FILE = 10_000_000  # characters of a question: a million public keys
MOST_STEPS, _MOST_AGGREGATES = 100, 100  # a table takes no more; of used steps, fewer
_MOST_DOTS = 50  # in one name of TOML, whose parser takes the square of their number
_QUOTED = re.compile(  # strings and comments of TOML
    r'"""(?:[^"\\]|\\[\s\S]|"{1,2}(?!"))*+"{3,5}|"(?:[^"\\\n]|\\.)*+"'
    r"|'''(?:[^']|'{1,2}(?!'))*+'{3,5}|'[^'\n]*+'|#[^\n]*+"
)


class _Columns(dict[str, StoredType]):
    """Types of columns that stay as they are: whoever changed them would change the query."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("a query is frozen: make another one of other columns")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return _Columns, (dict(self),)


def _name_columns(value: dict[str, StoredType]) -> dict[str, StoredType]:
    return _Columns(sorted(value.items()))  # in one order, so that equal queries are written alike


@called_as("hs.Query.of(table)")
class Query(Part, Shown):
    """What is asked of a private table, as frozen data: no table, no rows, no price.

    It is written to a file and read back, compared, digested, and exported as Python, as a command
    or as a notebook; whatever is exported asks the same query.

    Parameters
    ----------
    format : {"hushed query 1"}
        Version of this form.
    user : str, optional
        User column; without it the unit of privacy is a row.
    max_rows_per_user, max_groups_per_user : int, optional
        Contribution bounds, as for `Table.bound_contributions`.
    groups : optional
        ``{"columns": [...], "keys": [[...], ...]}``, with the public keys of each column; without
        ``keys`` they are found by private partition selection.
    steps : tuple
        Filters, derived columns and joins with public tables in their order, as
        ``{"filter": CONDITION}``, ``{"derive": NAME, "expression": EXPRESSION}`` and
        ``{"join": COLUMN, "keys": [...], "columns": {NAME: [...]}, "default": {NAME: VALUE}}``;
        and joins with private ones, ``{"join_users": TABLE, "user": COLUMN, "columns": {NAME:
        TYPE}, "default": {NAME: VALUE}}``. Without ``default`` rows that match nothing are left
        out.
    aggregates : tuple
        Each with its ``kind`` (count, count_users, sum, mean, variance, quantiles, histogram,
        top_k) and the parameters of the method of `Table` of that name. What is left out is filled
        in, so that queries are equal if they ask the same.
    columns : dict of str to {"int", "float", "string", "bool", "date", "timestamp", "other"}
        Types of the columns that the query uses. A table with other types is refused; for a CSV
        file they are the declared types. Columns that are left out are not compared.

    Raises
    ------
    ParameterError
        If a part is missing, unknown or of a wrong type; the message names it.

    See Also
    --------
    Table.ask : Ask it of a table.

    Examples
    --------
    >>> query = Query(
    ...     columns={"age": "int"},
    ...     steps=[{"filter": "age >= 18"}],
    ...     aggregates=[{"kind": "count"}],
    ... )
    >>> print(query.to_toml())
    format = "hushed query 1"
    steps = [
        { filter = "age >= 18" },
    ]
    aggregates = [
        { kind = "count", name = "count", weight = 1.0 },
    ]
    <BLANKLINE>
    [columns]
    age = "int"
    <BLANKLINE>
    >>> Query.from_toml(query.to_toml()) == query
    True
    """

    format: Literal["hushed query 1"] = "hushed query 1"
    user: str | None = None
    max_rows_per_user: AtLeastOne | None = None
    max_groups_per_user: AtLeastOne | None = None
    groups: Groups | None = None
    steps: Several[AnyStep] = Field(default=(), max_length=MOST_STEPS)
    aggregates: Several[AnyAggregate] = Field(default=(), max_length=_MOST_AGGREGATES)
    columns: Annotated[Named[StoredType], AfterValidator(_name_columns)] = Field(
        default_factory=dict
    )

    def __init__(  # what a class of pydantic takes, said so that pages can show it
        self,
        /,
        *,
        format: Any = "hushed query 1",  # noqa: A002  (a part of the data)
        user: Any = None,
        max_rows_per_user: Any = None,
        max_groups_per_user: Any = None,
        groups: Any = None,
        steps: Any = (),
        aggregates: Any = (),
        columns: Any = None,
        **unknown: Any,
    ) -> None:
        parts: dict[str, Any] = {
            "format": format,
            "user": user,
            "max_rows_per_user": max_rows_per_user,
            "max_groups_per_user": max_groups_per_user,
            "groups": groups,
            "steps": steps,
            "aggregates": aggregates,
            "columns": {} if columns is None else columns,
        }
        try:
            super().__init__(**parts, **unknown)
        except ValidationError as error:
            said = explain_query(error, Query, parts | unknown)
            raise ParameterError(f"this is no query: {said}") from None

    def __eq__(self, other: object) -> bool:  # True is no 1
        return self.digest() == other.digest() if isinstance(other, Query) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest())

    @classmethod
    def of(cls, table: Table) -> Query:
        """Give what is asked of a table, as data.

        Parameters
        ----------
        table : Table
            A table with its filters, groups and aggregates.

        Returns
        -------
        Query
            The query; ``table`` as it was opened, asked this query, is ``table`` again.
        """
        from hushed.tables._asking import describe  # noqa: PLC0415  (it reads this module)

        if not hasattr(table, "query"):
            raise ParameterError(
                f"of takes a table with what is asked of it, got {type(table).__name__}",
                parameter="table",
            )
        return describe(table.query)

    @classmethod
    def from_json(cls, text: str) -> Query:
        """Read a query from JSON.

        Parameters
        ----------
        text : str
            What `to_json` gave, or the same written by hand.

        Returns
        -------
        Query
            The query.

        Raises
        ------
        ParameterError
            If it is not JSON, or not a query.
        """
        return cls(**_read_object(text, json.loads, "JSON"))

    @classmethod
    def from_toml(cls, text: str) -> Query:
        """Read a query from TOML.

        Parameters
        ----------
        text : str
            What `to_toml` gave, or the same written by hand.

        Returns
        -------
        Query
            The query.

        Raises
        ------
        ParameterError
            If it is not TOML, or not a query.
        """
        return cls(**_read_object(text, _load_toml, "TOML"))

    def to_json(self) -> str:
        """Write the query as JSON, with all that was filled in.

        Returns
        -------
        str
            One object; its schema is ``Query.model_json_schema()``.
        """
        return json.dumps(self._content(), indent=2, ensure_ascii=False)

    __repr__ = Shown.__repr__

    def _brief(self) -> str:
        names = ", ".join(each.name for each in self.aggregates)
        by = f" by {', '.join(self.groups.columns)}" if self.groups else ""
        return f"Query: {names or 'nothing yet'}{by}"

    def _card(self) -> Card:
        return Card(title="Query", text=str(self))

    def __str__(self) -> str:
        """Write the query as TOML, as people read it."""
        return self.to_toml()

    def to_toml(self) -> str:
        """Write the query as TOML, for a file that people read and change.

        Returns
        -------
        str
            The document.
        """
        import tomli_w  # noqa: PLC0415

        return tomli_w.dumps(self._content())

    def digest(self) -> str:
        """Digest the query: equal for equal queries, in every process.

        Conditions and expressions count as they are written, blanks included.

        Returns
        -------
        str
            SHA-256 of its canonical JSON, in hexadecimal.
        """
        canonical = json.dumps(self._content(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    @called_as('query.to_python("stays.csv")')
    def to_python(
        self,
        source: str,
        name: str | None = None,
        *,
        header: str | None = None,
        newlines_in_values: bool = False,
    ) -> str:
        """Write Python that asks the query.

        Parameters
        ----------
        source : str
            Address or path of the table, as for `table`.
        name : str, optional
            Name of the table in a database. Left out, ``TABLE`` stands in its place, for whoever
            runs it to fill in.
        header : str, optional
            For a CSV file without a line of column names: that line, as for `table`.
        newlines_in_values : bool, default False
            For a CSV file whose cells hold ends of lines, as for `table`.

        Returns
        -------
        str
            A program that ends with ``query``, a `Table` to be quoted or released.
        """
        lines = CsvLines(header=header, newlines_in_values=newlines_in_values)
        return write_python(self, source, name, lines)

    @called_as('query.to_cli("stays.csv", epsilon=1.0)')
    def to_cli(
        self,
        source: str,
        name: str | None = None,
        *,
        epsilon: float,
        delta: float = 0.0,
        noise: NoiseName = "laplace",
        header: str | None = None,
        newlines_in_values: bool = False,
    ) -> str:
        """Write a command that asks the query, for a POSIX shell.

        Parameters
        ----------
        source : str
            Address or path of the table, as for `table`.
        name : str, optional
            Name of the table in a database. Left out, ``TABLE`` stands in its place, for whoever
            runs it to fill in.
        epsilon : float
            Privacy loss of the whole query, in nats.
        delta : float, default 0
            Slack, as for `Table.release`.
        noise : {"laplace", "gaussian"}, default "laplace"
            The noise of counts and sums.
        header : str, optional
            For a CSV file without a line of column names: that line, as for `table`.
        newlines_in_values : bool, default False
            For a CSV file whose cells hold ends of lines, as for `table`.

        Returns
        -------
        str
            ``hushed query ...``: with options, or with the whole query in JSON where it asks what
            no option can say, such as weights, names of outputs, and keys with commas.
        """
        lines = CsvLines(header=header, newlines_in_values=newlines_in_values)
        return write_command(self, source, name, (epsilon, delta, noise), lines)

    @called_as('query.to_notebook("stays.csv", epsilon=1.0)')
    def to_notebook(
        self,
        source: str,
        name: str | None = None,
        *,
        epsilon: float,
        delta: float = 0.0,
        noise: NoiseName = "laplace",
        header: str | None = None,
        newlines_in_values: bool = False,
    ) -> str:
        """Write a notebook that asks the query.

        Parameters
        ----------
        source : str
            Address or path of the table, as for `table`.
        name : str, optional
            Name of the table in a database. Left out, ``TABLE`` stands in its place, for whoever
            runs it to fill in.
        epsilon : float
            Privacy loss of the whole query, in nats.
        delta : float, default 0
            Slack, as for `Table.release`.
        noise : {"laplace", "gaussian"}, default "laplace"
            The noise of counts and sums.
        header : str, optional
            For a CSV file without a line of column names: that line, as for `table`.
        newlines_in_values : bool, default False
            For a CSV file whose cells hold ends of lines, as for `table`.

        Returns
        -------
        str
            A Jupyter notebook of format 4, as JSON: the query, its price, its release.
        """
        lines = CsvLines(header=header, newlines_in_values=newlines_in_values)
        return write_notebook(self, source, name, (epsilon, delta, noise), lines)

    def _content(self) -> dict[str, Any]:
        """Give the parts that say something, as plain values."""
        found = self.model_dump(mode="json", exclude_none=True)
        found["aggregates"] = [{"kind": each["kind"], **each} for each in found["aggregates"]]
        return {name: value for name, value in found.items() if value not in ([], {})}


def _read_object(text: str, load: Any, form: str) -> dict[str, Any]:
    if not isinstance(text, str) or len(text) > _LONGEST_FILE:
        raise ParameterError(f"a query in {form} is text of at most {_LONGEST_FILE} characters")
    try:
        found = load(drop_mark(text))
    except (ValueError, RecursionError) as error:  # what both parsers raise is a ValueError
        reason = str(error) if isinstance(error, ValueError) else "too many brackets"
        raise ParameterError(f"this is not {form}: {brief(reason)}") from None
    if not isinstance(found, dict):
        raise ParameterError(f"a query in {form} is an object of parts, not {type(found).__name__}")
    return found


def _load_toml(text: str) -> Any:
    """Parse TOML; names of very many parts, over which the parser hangs, are refused."""
    plain = re.sub(r"[ \t]+", "", _QUOTED.sub("s", text))
    if any(name.count(".") > _MOST_DOTS for name in re.split(r"[\n=\[\]{},]", plain)):
        raise ValueError("a name has too many dots")
    return tomllib.loads(text)
