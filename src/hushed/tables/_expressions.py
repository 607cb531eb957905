"""Conditions and derived columns, written as text and checked against the columns.

The language is small on purpose. Everything works on one row at a time, so what happens to a row
never depends on another row; and nothing can fail on a private value. A missing value is NULL or
NaN. Arithmetic is done in doubles between -1e100 and 1e100; a division by zero is missing.
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
from types import MappingProxyType
from typing import get_args

from hushed._ground.printing import as_given, brief, shown, suggest
from hushed._ground.types import ColumnType, StoredType
from hushed.errors import ParameterError
from hushed.tables._expression_parts import (
    column_of,
    constant_of,
    excerpt,
    is_time,
    order_advice,
    say_no_time,
    type_advice,
)

_NAMED = 50  # columns that a message lists
_SHORT = 60  # letters of an expression that is quoted
_NUMBERS: tuple[ColumnType, ...] = ("int", "float")
_TIMES: tuple[ColumnType, ...] = ("date", "timestamp")
_NO_DAYS = (
    "; differences of dates are not in the language: make a column of days where the table is made"
)
FUNCTIONS: Mapping[str, tuple[ColumnType, ...]] = MappingProxyType(  # and the types that they take
    {
        "is_null": get_args(ColumnType),
        "abs": _NUMBERS,
        "floor": _NUMBERS,
        "year": _TIMES,
        "month": _TIMES,
    }
)
ARITHMETIC: Mapping[type[ast.operator], str] = MappingProxyType(
    {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
)
COMPARISONS: Mapping[type[ast.cmpop], str] = MappingProxyType(
    {
        ast.Eq: "==",
        ast.NotEq: "!=",
        ast.Lt: "<",
        ast.LtE: "<=",
        ast.Gt: ">",
        ast.GtE: ">=",
        ast.In: "in",
        ast.NotIn: "not in",
    }
)
_LONGEST, _MOST_PARTS, _DEEPEST = 10_000, 500, 60
_TOO_LARGE = (
    f"an expression may have at most {_LONGEST} characters, {_MOST_PARTS} parts, and {_DEEPEST} "
    "parts within each other; derive a column first"
)
_CAPITALS = re.compile(r"\b(?:AND|OR|NOT|IN)\b")
_BARE_DAY = re.compile(r"(?<!['\"\w-])[0-9]{4}-[0-9]{2}-[0-9]{2}(?!['\"\w-])")
_SINGLE = re.compile(r"(?<![<>=!])=(?!=)")
_GRAMMAR = (
    "allowed are columns, numbers, strings, dates as 'YYYY-MM-DD', True, False, "
    f"{' '.join(ARITHMETIC.values())}, comparisons, in [...], and, or, not, "
    f"{', '.join(f'{name}(x)' for name in FUNCTIONS)} and column('a name')"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A checked expression on one row."""

    text: str  # as it was written
    # Its syntax tree; only nodes that `parse` allows.
    tree: ast.expr = field(repr=False, compare=False)  # the text says the same
    type: ColumnType  # type of its values


def find_column(name: str, columns: Iterable[str]) -> str:
    """Find a column by its name."""
    known = list(columns)
    if name in known:
        return name
    hint = suggest(name, known)
    listed = ", ".join(map(shown, known[:_NAMED]))
    more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    computed = ""
    if set(name) & set("+-*/()<>=") and len(name) <= _SHORT:
        computed = (
            ". To compute a column, derive it first, and name the new one: "
            f"derive('NAME', {name!r}), or --derive \"NAME={name}\""
        )
    raise ParameterError(
        f"there is no column {as_given(name)}{hint or ';'} columns: {listed}{more}{computed}"
    )


def parse(text: str, columns: Mapping[str, StoredType]) -> Expression:
    """Read and check an expression.

    Notes
    -----
    The time is proportional to the length of the text: the type of each part is found once.
    """
    if not isinstance(text, str):
        raise ParameterError(f"an expression must be a string, got {type(text).__name__}")
    found = None
    if len(text) <= _LONGEST:
        with suppress(
            RecursionError, MemoryError
        ):  # Python's own limits, which depend on the caller
            found = _parse(text, columns)
    if found is None:
        raise ParameterError(_TOO_LARGE)
    return found


def _parse(text: str, columns: Mapping[str, StoredType]) -> Expression:
    tree = _tree(text)
    if tree is None:
        raise ParameterError(f"cannot read the expression {brief(text)}{_hint(text)}; {_GRAMMAR}")
    _require_small(tree)
    return Expression(text=text, tree=tree, type=_Checker(text, columns).type_of(tree))


def _hint(text: str) -> str:
    """Say what of SQL is written otherwise, where that alone keeps it from being read."""
    if found := _BARE_DAY.search(text):
        return f"; a date is written in quotation marks: '{found[0]}'"
    doubled = _SINGLE.sub("==", text)
    small = doubled if _tree(doubled) else _CAPITALS.sub(lambda found: found[0].lower(), doubled)
    if _tree(small) is None:
        return ""
    said = "; equal is written ==" if doubled != text else ""
    capitals = [*dict.fromkeys(_CAPITALS.findall(doubled))] if small != doubled else []
    return said + "".join(f"; {each} is written {each.lower()}" for each in capitals)


def _tree(text: str) -> ast.expr | None:
    """Syntax tree of an expression; None if it has none."""
    written = text.strip()
    try:
        tree = ast.parse(written, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if not written.isascii():  # Python reads a micro sign as a mu, which names another column
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                node.id = ast.get_source_segment(written, node) or node.id
    return tree


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
    """Finds the type of each part, or refuses it."""

    text: str
    columns: Mapping[str, StoredType]
    known: dict[ast.expr, ColumnType] = field(default_factory=dict)

    def refuse(self, why: str, **fields: str) -> ParameterError:
        return ParameterError(f"in {brief(self.text)}: {why}; {_GRAMMAR}", **fields)

    def type_of(self, node: ast.expr) -> ColumnType:
        """Type of a part, found once."""
        if node not in self.known:
            self.known[node] = self.infer(node)
        return self.known[node]

    def infer(self, node: ast.expr) -> ColumnType:  # noqa: PLR0911  (one for each kind of node)
        name = column_of(node)
        if name is not None:
            return self.infer_column(name)
        match node:
            case ast.Constant(value=value):
                return self.infer_constant(value)
            case ast.BoolOp(values=values):
                for each in values:
                    self.require(each, "bool")
                return "bool"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.require(operand, "bool")
                return "bool"
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.infer_negative(constant_of(node), operand)
            case ast.BinOp(op=operator) if type(operator) in ARITHMETIC:
                self.require_numbers(node)
                return "float"
            case ast.Compare():
                return self.infer_comparison(node)
            case ast.Call(func=ast.Name(id=function), args=[one], keywords=[]):
                return self.infer_call(function, one)
        raise self.refuse("this is not part of the language")

    def infer_negative(self, value: object, operand: ast.expr) -> ColumnType:
        if type(value) is int and value == -(2**63):  # without its sign it has more than 64 bits
            return "int"
        self.require(operand, *_NUMBERS)
        return self.type_of(operand) if isinstance(operand, ast.Constant) else "float"

    def infer_column(self, name: str) -> ColumnType:
        found = self.columns[find_column(name, self.columns)]
        if found == "other":
            raise self.refuse(f"column {brief(name)} is of a type that cannot be queried")
        return found

    def infer_constant(self, value: object) -> ColumnType:
        if isinstance(value, bool):
            return "bool"
        if isinstance(value, int) and abs(value) < 2**63:
            return "int"
        if isinstance(value, float) and math.isfinite(value):
            return "float"
        if isinstance(value, str) and is_sendable(value):
            return "string"
        if isinstance(value, int):
            raise self.refuse(
                "a whole number in an expression is from -2**63 to 2**63 - 1 = "
                f"{2**63 - 1}; with a decimal point it is a double, and longer ones of a column "
                "that is declared string are compared as strings"
            )
        raise self.refuse("a constant must be a finite number, a string, True or False")

    def require(self, node: ast.expr, *types: ColumnType) -> None:
        found = self.type_of(node)
        if found not in types:
            advice: dict[str, str] = {}
            if found == "string" and types != ("bool",):
                advice = type_advice(node, kind="date" if types == _TIMES else "float")
            days = _NO_DAYS if found in _TIMES and types == _NUMBERS else ""
            raise self.refuse(
                f"{excerpt(node)} is of type {found}, and {' or '.join(types)} is needed here"
                + days,
                **advice,
            )

    def require_numbers(self, node: ast.BinOp) -> None:
        both = node.left, node.right
        # Dates in a file may be strings, and read as numbers all of them would be missing.
        if isinstance(node.op, ast.Sub) and {*map(self.type_of, both)} == {"string"}:
            raise self.refuse(
                "a string is not subtracted from a string: the type of a column of numbers is "
                f"declared as float{_NO_DAYS}"
            )
        for each in both:
            self.require(each, *_NUMBERS)

    def infer_call(self, function: str, one: ast.expr) -> ColumnType:
        found = self.type_of(one)
        if function not in FUNCTIONS:
            near = difflib.get_close_matches(function, [*FUNCTIONS, "column"], n=1)
            hint = f", did you mean {near[0]}?" if near else ""
            if function in (*_TIMES, "datetime"):
                hint = ": a date or time is written as a string, 'YYYY-MM-DD' or 'YYYY-MM-DD HH:MM'"
            raise self.refuse(f"there is no function {function!r}{hint}")
        self.require(one, *FUNCTIONS[function])
        if function == "is_null":
            return "bool"
        if function == "abs":
            return "int" if found == "int" and isinstance(one, ast.Constant) else "float"
        return "int"

    def infer_comparison(self, node: ast.Compare) -> ColumnType:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(operator, ast.In | ast.NotIn):
                if not isinstance(right, ast.List | ast.Tuple) or not right.elts:
                    raise self.refuse("write in ['a', 'b'] with at least one value")
                for each in right.elts:
                    if constant_of(each) is None:
                        raise self.refuse("a list may hold constants only")
                    self.require_comparable(left, each, ast.Eq())
            elif isinstance(operator, ast.Is | ast.IsNot):
                raise self.refuse("write is_null(x), or == and !=")
            else:
                self.require_comparable(left, right, operator)
                if right is not node.comparators[-1] and self.is_condition(right):
                    raise self.refuse("a == b == c reads b twice: derive a condition first")
            left = right
        return "bool"

    def is_condition(self, node: ast.expr) -> bool:
        plain = column_of(node) is not None or constant_of(node) is not None
        return not plain and self.type_of(node) == "bool"

    def require_comparable(self, left: ast.expr, right: ast.expr, operator: ast.cmpop) -> None:
        types = self.type_of(left), self.type_of(right)
        if all(each in _NUMBERS for each in types):
            return
        equality = isinstance(operator, ast.Eq | ast.NotEq)
        if types[0] == types[1] and (types[0] in _TIMES or types[0] in ("string", "bool")):
            if types[0] in ("string", "bool") and not equality:
                raise self.refuse(
                    "string and bool are compared with == and != only: engines order strings "
                    "differently",
                    **order_advice(left, right),
                )
            return
        for here, there, other in ((*types, right), (*types[::-1], left)):
            if here in _TIMES and there == "string" and is_time(constant_of(other)):
                if here == "date":
                    self._require_day(other)
                return
            if here in _TIMES and isinstance(text := constant_of(other), str):
                raise self.refuse(say_no_time(text, here))
        texts = [each for each in (left, right) if self.type_of(each) == "string"]
        raise self.refuse(
            f"{excerpt(left)} is of type {types[0]} and {excerpt(right)} of type {types[1]}: "
            "they cannot be compared (write a date as 'YYYY-MM-DD')",
            **type_advice(*texts, kind="date" if {*types} & {*_TIMES} else "float"),
        )

    def _require_day(self, constant: ast.expr) -> None:
        """Refuse a time of day beside a date: '<' would leave out what its day holds before it."""
        text = str(constant_of(constant))
        found = datetime.datetime.fromisoformat(text)
        if found.tzinfo is not None or found.time() != datetime.time.min:
            raise self.refuse(
                f"{excerpt(constant)} has a time of day, and what it is compared with is a date: "
                "write 'YYYY-MM-DD'"
            )


def is_sendable(value: str) -> bool:
    """Whether a string can be sent to a database: no zero bytes, no lone surrogates."""
    return "\x00" not in value and not any("\ud800" <= each <= "\udfff" for each in value)


def columns_in(node: ast.expr) -> set[str]:
    """Names of all columns that an expression reads."""
    name = column_of(node)
    if name is not None:
        return {name}
    below = node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
    return {each for child in below if isinstance(child, ast.expr) for each in columns_in(child)}


def names_in(text: str) -> set[str]:
    """Names of the columns in the text of an expression; none where it is no expression."""
    with suppress(RecursionError, MemoryError, ParameterError):
        tree = _tree(text) if len(text) <= _LONGEST else None
        if tree is not None:
            _require_small(tree)
            return columns_in(tree)
    return set()
