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
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from hushed._printing import brief, shown
from hushed.errors import ParameterError

Kind = Literal["whole", "real", "text", "truth", "day", "moment", "other"]

_NAMED, _COMPARED, _LONGEST_NAME = 50, 1000, 200  # columns told, compared; characters compared
_NUMBERS = ("whole", "real")
_TIMES = ("day", "moment")
_FUNCTIONS = {"abs": "real", "floor": "whole", "year": "whole", "month": "whole"}
_LONGEST, _MOST_PARTS, _DEEPEST = 10_000, 500, 60
_TOO_LARGE = (
    f"an expression may have at most {_LONGEST} characters, {_MOST_PARTS} parts, and {_DEEPEST} "
    "parts within each other; derive a column first"
)
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
    """Find a column by its name."""
    known = list(columns)
    if name in known:
        return name
    written = str(name).lower()[:_LONGEST_NAME]
    near = difflib.get_close_matches(written, {k.lower(): k for k in known[:_COMPARED]}, n=3)
    names = [k for k in known if k.lower() in near]
    hint = f"; did you mean {' or '.join(map(repr, names))}?" if names else ""
    listed = ", ".join(map(shown, known[:_NAMED]))
    more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    raise ParameterError(
        f"there is no column {brief(str(name))}{hint or ';'} columns: {listed}{more}"
    )


def parse(text: str, columns: Mapping[str, Kind]) -> Expression:
    """Read and check an expression.

    Notes
    -----
    Takes time in proportion to the length of the text: the kind of each part is found once.
    """
    if not isinstance(text, str):
        raise ParameterError(f"an expression is a text, got {type(text).__name__}")
    found = None
    if len(text) <= _LONGEST:
        with suppress(
            RecursionError, MemoryError
        ):  # Python's own limits, which depend on the caller
            found = _parsed(text, columns)
    if found is None:
        raise ParameterError(_TOO_LARGE)
    return found


def _parsed(text: str, columns: Mapping[str, Kind]) -> Expression:
    tree = _tree(text)
    if tree is None:
        doubled = _SINGLE.sub("==", text)
        hint = "; equal is written ==" if doubled != text and _tree(doubled) else ""
        raise ParameterError(f"cannot read the expression {brief(text)}{hint}; {_GRAMMAR}")
    _require_small(tree)
    return Expression(text=text, tree=tree, kind=_Checker(text, columns).kind(tree))


def _tree(text: str) -> ast.expr | None:
    """Syntax tree of an expression; None if it has none."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _require_small(tree: ast.expr) -> None:
    """Refuse what is too large; without recursion, level by level."""
    parts, level = 0, [tree]
    for _ in range(_DEEPEST):
        parts += len(level)
        level = [
            child
            for node in level
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.expr)
        ]
        if parts + len(level) > _MOST_PARTS:
            break
        if not level:
            return
    raise ParameterError(_TOO_LARGE)


@dataclass(frozen=True, slots=True)
class _Checker:
    """Finds the kind of each part, or refuses it."""

    text: str
    columns: Mapping[str, Kind]
    known: dict[ast.expr, Kind] = field(default_factory=dict)

    def refuse(self, why: str, **fields: str) -> ParameterError:
        return ParameterError(f"in {brief(self.text)}: {why}; {_GRAMMAR}", **fields)

    def kind(self, node: ast.expr) -> Kind:
        """Kind of a part, found once."""
        if node not in self.known:
            self.known[node] = self.found(node)
        return self.known[node]

    def found(self, node: ast.expr) -> Kind:  # noqa: PLR0911  (one for each kind of node)
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
            raise self.refuse(f"column {brief(name)} is of a type that cannot be asked")
        return found

    def constant(self, value: object) -> Kind:
        if isinstance(value, bool):
            return "truth"
        if isinstance(value, int) and abs(value) < 2**63:
            return "whole"
        if isinstance(value, float) and math.isfinite(value):
            return "real"
        if isinstance(value, str) and is_text(value):
            return "text"
        raise self.refuse("a constant must be a finite number, a text, True or False")

    def need(self, node: ast.expr, *kinds: str) -> None:
        found = self.kind(node)
        if found not in kinds:
            raise self.refuse(
                f"{_written(node)} is of kind {found}, here {' or '.join(kinds)} is needed",
                **advice_on(found),
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
                if right is not node.comparators[-1] and self.is_condition(right):
                    raise self.refuse("in a == b == c, b is read twice: derive a condition first")
            left = right
        return "truth"

    def is_condition(self, node: ast.expr) -> bool:
        plain = column_of(node) is not None or constant_of(node) is not None
        return not plain and self.kind(node) == "truth"

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
            f"{_written(left)} is of kind {kinds[0]} and {_written(right)} of kind "
            f"{kinds[1]}: they do not compare (write a date as 'YYYY-MM-DD')",
            **advice_on(*kinds),
        )


def is_text(value: str) -> bool:
    """Whether a text can be sent to a database at all: no zero bytes, no halves of characters."""
    return "\x00" not in value and not any("\ud800" <= each <= "\udfff" for each in value)


def _written(node: ast.expr) -> str:
    """Show part of an expression, cut if it is long."""
    text = ast.unparse(node)
    return text if len(text) <= _LONGEST_NAME and text.isprintable() else brief(text)


def advice_on(*kinds: str) -> dict[str, str]:
    """Fields of an error that advise, where a text may be meant as something else."""
    if "text" not in kinds:
        return {}
    hint = "to read a text as a number, declare its column: types={'COLUMN': 'real'}"
    return {"parameter": "types", "hint": hint}


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
    """Read an ISO date or time, in UTC if it has a zone."""
    found = datetime.datetime.fromisoformat(text)
    return found if found.tzinfo is None else found.astimezone(datetime.UTC).replace(tzinfo=None)


def _is_time(text: object) -> bool:
    try:
        read_time(str(text))
    except (ValueError, OverflowError):
        return False
    return isinstance(text, str)
