"""The parts of a query as data: steps, groups and aggregates, with what each may hold."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from hushed._ground.types import StoredType
from hushed.statistics._candidates import Spacing
from hushed.tables._requests import Counted, read_candidates

_FEW = 20


def _write_date(value: Any) -> Any:
    """Write a date, which TOML has and JSON has not, as text."""
    return value.isoformat() if hasattr(value, "isoformat") else value


def read_named(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """Read many parts one by one, so that the first one that is wrong ends it, as in a list."""
    if isinstance(value, dict) and len(value) > _FEW:
        for name, each in value.items():
            read({name: each})
    return read(value)


def _read_bound(value: Any) -> Any:
    """Leave numbers and the word search; a number in quotes is neither."""
    if isinstance(value, str) and value != "search":
        raise ValueError("must be a finite number or the word search")
    return value


Item = TypeVar("Item")
# The first part that is wrong is told: thousands of others would take seconds to find and to list.
Several = Annotated[tuple[Item, ...], Field(fail_fast=True)]
Named = Annotated[dict[str, Item], WrapValidator(read_named)]
Number = Annotated[float, Field(allow_inf_nan=False), AfterValidator(lambda value: value + 0.0)]
Limit = Annotated[Number | Literal["search"], BeforeValidator(_read_bound)]
Whole = Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]  # of more digits none can be written
Key = Annotated[StrictBool | Whole | StrictStr, BeforeValidator(_write_date)]
Real = Annotated[StrictFloat, Field(allow_inf_nan=False)]
Cell = StrictBool | Whole | Real | StrictStr
AtLeastOne = Annotated[Whole, Field(ge=1)]


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Filter(Part):
    """A condition that rows must fulfil, as for `Table.filter`."""

    filter: str


class Derive(Part):
    """A column computed row by row, as for `Table.derive`."""

    derive: str
    expression: str


class Join(Part):
    """The columns of a public table, as for `Table.join`."""

    join: str
    keys: Several[Key] = Field(min_length=1)
    columns: Named[Several[Cell]] = Field(min_length=1)
    default: Named[Cell] | None = None

    @model_validator(mode="after")
    def _put_in_order(self) -> Self:
        """Write equal tables alike: in order of their keys, and with one type in a column."""
        if any(len(values) != len(self.keys) for values in self.columns.values()):
            raise ValueError("columns must have a cell for each key")
        order = sorted(range(len(self.keys)), key=lambda i: (str(type(self.keys[i])), self.keys[i]))
        columns, default = {}, dict(self.default or {})
        for name, values in sorted(self.columns.items()):
            cells = [*values, *([default[name]] if name in default else [])]
            if {type(each) for each in cells} == {int, float}:
                cells = [float(each) for each in cells]
            columns[name] = tuple(cells[i] for i in order)
            default |= {name: cells[-1]} if name in default else {}
        object.__setattr__(self, "keys", tuple(self.keys[i] for i in order))
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "default", None if self.default is None else default)
        return self


class JoinUsers(Part):
    """Columns of another private table of the same users, as for `Table.join_users`."""

    join_users: str
    user: str
    columns: Named[StoredType] = Field(min_length=1)
    default: Named[Cell] | None = None

    @model_validator(mode="after")
    def _put_in_order(self) -> Self:
        """Write equal steps alike."""
        default = dict(self.default or {})
        for name, kind in self.columns.items():
            if kind == "float" and type(default.get(name)) is int:
                default[name] = float(default[name])
        object.__setattr__(self, "columns", dict(sorted(self.columns.items())))
        object.__setattr__(self, "default", None if self.default is None else default)
        return self


AnyStep = Filter | Derive | Join | JoinUsers


class Groups(Part):
    """Grouping columns and their public keys; without keys they are found by partition selection.

    The order of the columns is the order of the keys in the answer.
    """

    columns: Several[str] = Field(min_length=1)
    keys: Several[Several[Key]] | None = None

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        if self.keys is not None and len(self.keys) != len(self.columns):
            raise ValueError("keys must list the public keys of each column, in their order")
        return self

    def named_keys(self) -> dict[str, list[Any]] | None:
        """Give the keys of each column by its name."""
        if self.keys is None:
            return None
        return {column: list(keys) for column, keys in zip(self.columns, self.keys, strict=True)}


class _Aggregate(Part):
    called: ClassVar[str]  # how its default name begins
    name: str = ""
    weight: Annotated[Number, Field(gt=0)] = 1.0

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, given: Any) -> Any:
        """Say what is left out, so that two queries that ask the same are equal."""
        if isinstance(given, dict):
            column = given.get("column")
            name = cls.called if column is None else f"{cls.called}_{column}"
            return {"name": name, **cls._complete(given)}
        return given

    @classmethod
    def _complete(cls, given: dict[str, Any]) -> dict[str, Any]:
        return given


class Count(_Aggregate):
    """Number of rows."""

    called = "count"
    kind: Literal["count"] = "count"


class CountUsers(_Aggregate):
    """Number of users."""

    called = "users"
    kind: Literal["count_users"] = "count_users"


class _Bounded(_Aggregate):
    column: str
    low: Limit
    high: Limit


class Sum(_Bounded):
    """Sum of a column."""

    called = "sum"
    kind: Literal["sum"] = "sum"


class Mean(_Bounded):
    """Mean of a column."""

    called = "mean"
    kind: Literal["mean"] = "mean"


class Variance(_Bounded):
    """Variance of a column."""

    called = "variance"
    kind: Literal["variance"] = "variance"


class Quantiles(_Aggregate):
    """Quantiles of a column, among public candidates."""

    called = "quantiles"
    kind: Literal["quantiles"] = "quantiles"
    column: str
    probabilities: Several[Number]
    low: Number
    high: Number
    candidates: Whole
    spacing: Spacing

    @classmethod
    def _complete(cls, given: dict[str, Any]) -> dict[str, Any]:
        if given.get("candidates") is None or given.get("spacing") is None:
            low = given.get("low", 0.0)
            offered, spacing = read_candidates(given.get("candidates"), given.get("spacing"), low)
            return {**given, "candidates": offered, "spacing": spacing}
        return given


class Histogram(_Aggregate):
    """Number of rows in equally wide bins."""

    called = "histogram"
    kind: Literal["histogram"] = "histogram"
    column: str
    low: Number
    high: Number
    bins: Whole = 10


class TopKeys(_Aggregate):
    """The k groups with the most rows, or users; alone in its query, with public keys."""

    called = "rank"
    kind: Literal["top_k"] = "top_k"
    k: AtLeastOne
    of: Counted = "rows"


AnyAggregate = Annotated[
    Count | CountUsers | Sum | Mean | Variance | Quantiles | Histogram | TopKeys,
    Field(discriminator="kind"),
]
