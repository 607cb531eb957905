"""Conditions and derived columns, written as text and checked against the columns.

The language is small on purpose: everything works on one row at a time, so that a filter or a
derived column never makes a row's fate depend on another row; and nothing in it can fail on a
private value. A missing value is NULL or NaN. Arithmetic is done in doubles between -1e100 and
1e100; a division by zero is missing.
"""

from __future__ import annotations

import ast
import datetime
import difflib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hushed.errors import ParameterError

__all__ = [
    "Expression",
    "Kind",
    "advice_on",
    "column_of",
    "columns_in",
    "constant_of",
    "find_column",
    "parse",
    "read_time",
]

Kind = Literal["whole", "real", "text", "truth", "day", "moment", "other"]

_NUMBERS = ("whole", "real")
_TIMES = ("day", "moment")
_FUNCTIONS = {"abs": "real", "floor": "whole", "year": "whole", "month": "whole"}
_SINGLE = re.compile(r"(?<![<>=!])=(?!=)")
_GRAMMAR = (
    "allowed are columns, numbers, texts, True, False, + - * /, comparisons, in [...], "
    "and, or, not, is_null(x), abs(x), floor(x), year(x), month(x) and column('a name')"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A checked expression on one row.

    Parameters
    ----------
    text : str
        As it was written.
    tree : ast.expr
        Its syntax tree; only nodes that `parse` allows.
    kind : str
        What it yields: whole, real, text, truth, day, moment or other.
    """

    text: str
    tree: ast.expr
    kind: Kind


def find_column(name: str, columns: Iterable[str]) -> str:
    """Find a column by its name.

    Parameters
    ----------
    name : str
        The name.
    columns : iterable of str
        Names that exist.

    Returns
    -------
    str
        The name.

    Raises
    ------
    ParameterError
        If it does not exist; near names are suggested.
    """
    known = list(columns)
    if name in known:
        return name
    near = difflib.get_close_matches(str(name).lower(), {k.lower(): k for k in known}, n=3)
    names = [k for k in known if k.lower() in near]
    hint = f"; did you mean {' or '.join(map(repr, names))}?" if names else ""
    raise ParameterError(f"there is no column {name!r}{hint or ';'} columns: {', '.join(known)}")


def parse(text: str, columns: Mapping[str, Kind]) -> Expression:
    """Read and check an expression.

    Parameters
    ----------
    text : str
        Such as ``"age >= 18 and city in ['Rome', 'Oslo']"``.
    columns : mapping of str to str
        Kind of every column.

    Returns
    -------
    Expression
        The checked expression.

    Raises
    ------
    ParameterError
        If it does not parse, names an unknown column, or mixes kinds.
    """
    if not isinstance(text, str):
        raise ParameterError(f"an expression is a text, got {type(text).__name__}")
    tree = _tree(text)
    if tree is None:
        doubled = _SINGLE.sub("==", text)
        hint = "; equal is written ==" if doubled != text and _tree(doubled) else ""
        raise ParameterError(f"cannot read the expression {text!r}{hint}; {_GRAMMAR}")
    if sum(1 for _ in ast.walk(tree)) > 500:
        raise ParameterError("an expression may have at most 500 parts; derive a column first")
    return Expression(text=text, tree=tree, kind=_Checker(text, columns).kind(tree))


def _tree(text: str) -> ast.expr | None:
    """Syntax tree of an expression; None if it has none."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class _Checker:
    """Finds the kind of each part, or refuses it."""

    text: str
    columns: Mapping[str, Kind]

    def refuse(self, why: str) -> ParameterError:
        return ParameterError(f"in {self.text!r}: {why}; {_GRAMMAR}")

    def kind(self, node: ast.expr) -> Kind:  # noqa: PLR0911  (one for each kind of node)
        name = column_of(node)
        if name is not None:
            return self.column(name)
        match node:
            case ast.Constant(value=value):
                return self.constant(value)
            case ast.BoolOp(values=values):
                for each in values:
                    self.need(each, "truth")
                return "truth"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.need(operand, "truth")
                return "truth"
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                self.need(operand, *_NUMBERS)
                return self.kind(operand) if isinstance(operand, ast.Constant) else "real"
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
                self.need(node.left, *_NUMBERS)
                self.need(node.right, *_NUMBERS)
                return "real"
            case ast.Compare():
                return self.comparison(node)
            case ast.Call(func=ast.Name(id=function), args=[one], keywords=[]):
                return self.call(function, one)
        raise self.refuse("this is not part of the language")

    def column(self, name: str) -> Kind:
        found = self.columns[find_column(name, self.columns)]
        if found == "other":
            raise self.refuse(f"column {name!r} is of a type that cannot be asked")
        return found

    def constant(self, value: object) -> Kind:
        if isinstance(value, bool):
            return "truth"
        if isinstance(value, int) and abs(value) < 2**63:
            return "whole"
        if isinstance(value, float) and math.isfinite(value):
            return "real"
        if isinstance(value, str) and "\x00" not in value:
            return "text"
        raise self.refuse("a constant must be a finite number, a text, True or False")

    def need(self, node: ast.expr, *kinds: str) -> None:
        found = self.kind(node)
        if found not in kinds:
            raise self.refuse(
                f"{ast.unparse(node)} is of kind {found}, here {' or '.join(kinds)} is needed"
                f"{advice_on(found)}"
            )

    def call(self, function: str, one: ast.expr) -> Kind:
        found = self.kind(one)
        if function == "is_null":
            return "truth"
        if function not in _FUNCTIONS:
            near = difflib.get_close_matches(function, [*_FUNCTIONS, "is_null", "column"], n=1)
            hint = f", did you mean {near[0]}?" if near else ""
            raise self.refuse(f"there is no function {function!r}{hint}")
        self.need(one, *(_TIMES if function in ("year", "month") else _NUMBERS))
        if function == "abs":
            return "whole" if found == "whole" and isinstance(one, ast.Constant) else "real"
        return "whole"

    def comparison(self, node: ast.Compare) -> Kind:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(operator, ast.In | ast.NotIn):
                if not isinstance(right, ast.List | ast.Tuple) or not right.elts:
                    raise self.refuse("write in ['a', 'b'] with at least one value")
                for each in right.elts:
                    if constant_of(each) is None:
                        raise self.refuse("a list holds constants only")
                    self.comparable(left, each, ast.Eq())
            elif isinstance(operator, ast.Is | ast.IsNot):
                raise self.refuse("write is_null(x), or == and !=")
            else:
                self.comparable(left, right, operator)
            left = right
        return "truth"

    def comparable(self, left: ast.expr, right: ast.expr, operator: ast.cmpop) -> None:
        kinds = self.kind(left), self.kind(right)
        if all(kind in _NUMBERS for kind in kinds):
            return
        equality = isinstance(operator, ast.Eq | ast.NotEq)
        if kinds[0] == kinds[1] and (kinds[0] in _TIMES or kinds[0] in ("text", "truth")):
            if kinds[0] in ("text", "truth") and not equality:
                raise self.refuse(
                    "texts and truths are compared with == and != only: engines order texts "
                    "differently"
                )
            return
        for here, there, other in ((*kinds, right), (*kinds[::-1], left)):
            if here in _TIMES and there == "text" and _is_time(constant_of(other)):
                return
        raise self.refuse(
            f"{ast.unparse(left)} is of kind {kinds[0]} and {ast.unparse(right)} of kind "
            f"{kinds[1]}: they do not compare (write a date as 'YYYY-MM-DD'){advice_on(*kinds)}"
        )


def advice_on(*kinds: str) -> str:
    """Advice where a text may be meant as something else."""
    if "text" not in kinds:
        return ""
    return " (to read a text as a number, declare its column: types={'COLUMN': 'real'})"


def column_of(node: ast.expr) -> str | None:
    """Name of the column that a node stands for, if it is one."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Call(
            func=ast.Name(id="column"), args=[ast.Constant(value=str() as name)], keywords=[]
        ):
            return name
    return None


def constant_of(node: ast.expr) -> Any:
    """Value of a constant, with its sign; None for anything else."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
    return None


def columns_in(node: ast.expr) -> set[str]:
    """Names of all columns that an expression reads."""
    name = column_of(node)
    if name is not None:
        return {name}
    below = node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
    return {each for child in below if isinstance(child, ast.expr) for each in columns_in(child)}


def read_time(text: str) -> datetime.datetime:
    """Read an ISO date or time, in UTC if it has a zone.

    Parameters
    ----------
    text : str
        Such as ``"2024-02-29"`` or ``"2024-02-29T12:00:00+01:00"``.

    Returns
    -------
    datetime.datetime
        Without a zone, in the years 1 to 9999: the moments that every column can hold.

    Raises
    ------
    ValueError
        If it is none.
    OverflowError
        If it leaves those years in UTC.
    """
    found = datetime.datetime.fromisoformat(text)
    return found if found.tzinfo is None else found.astimezone(datetime.UTC).replace(tzinfo=None)


def _is_time(text: object) -> bool:
    try:
        read_time(str(text))
    except (ValueError, OverflowError):
        return False
    return isinstance(text, str)
