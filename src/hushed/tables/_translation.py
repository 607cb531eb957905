"""Translate checked expressions to expressions of the engine; missing stays missing.

Every result of arithmetic becomes a temporary column: written in place, nested cases would grow
exponentially.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from hushed._ground.types import ColumnType
from hushed.tables._engine import operations
from hushed.tables._expression_parts import column_of, constant_of
from hushed.tables._expressions import Expression
from hushed.tables._grid import FARTHEST, NEAREST

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_EXACT = float(2**53)


def translate(expression: Expression, rows: Any, name: str, columns: Mapping[str, str]) -> Any:
    """Add the value of a checked expression as a column.

    It never fails on a value.
    """
    translator = _Translator(rows, columns)
    value = translator.value(expression.tree)
    kept = [translator.rows[each] for each in rows.columns]
    return operations.materialise(translator.rows.select(*kept, value.name(name)))


class _Translator:
    """A table that gets a column for every result of arithmetic."""

    __slots__ = ("_columns", "_results", "made", "rows")

    def __init__(self, rows: Any, columns: Mapping[str, str]) -> None:
        self.rows = rows
        self.made: list[str] = []
        self._columns = columns
        self._results: dict[ast.expr, str] = {}

    def value(self, node: ast.expr) -> Any:
        """Translate a node, after adding the columns that it needs."""
        for each in find_arithmetic(node):
            if each is node:
                return self._compute(each)
            self._add(each, self._compute(each))
        return self._read(node)

    def _add(self, node: ast.expr, value: Any) -> None:
        """Add a value as a temporary column."""
        column = f"part{len(self.made)}"
        self.rows = operations.materialise(self.rows.mutate(value.name(column)))
        self.made.append(column)
        self._results[node] = column

    def _compute(self, node: ast.expr) -> Any:
        match node:
            case ast.UnaryOp(operand=operand):
                return -self._operand(operand)
            case ast.BinOp(left=left, op=op, right=right):
                sides = [self._operand(left), self._operand(right)]
                if isinstance(op, ast.Div):
                    zero = sides[1] == 0.0
                    sides[1] = operations.cases(
                        (zero, operations.null("float")), otherwise=sides[1]
                    )
                return operations.normalise(_ARITHMETIC[type(op)](*sides))
            case ast.Call(func=ast.Name(id="abs"), args=[one]):
                size = self._operand(one)
                return operations.cases((size < 0.0, -size), otherwise=size)
            case ast.Call(args=[one]):  # floor
                size = self._operand(one)
                near = operations.cases(
                    (size > _EXACT, _EXACT), (size < -_EXACT, -_EXACT), otherwise=size
                )
                return near.floor().cast("int64")
        raise NotImplementedError(type(node).__name__)  # parse lets nothing else pass

    def _operand(self, node: ast.expr) -> Any:
        """Operand of arithmetic: a double that is 0 or between 1e-100 and 1e100.

        What `floor` gives is whole, and an engine would multiply two of these as integers, which
        fails where the product has more than 64 bits.
        """
        if node in self._results:
            return operations.as_double(self.rows[self._results[node]])
        value = constant_of(node)
        if value is not None:
            return operations.constant(_normalise(float(value)), "float")
        read = self._read(node)
        if not read.type().is_floating():  # 64-bit integers and bools are in that range
            return operations.as_double(read)
        self._add(node, operations.normalise(read))
        return self.rows[self._results[node]]

    def _read(self, node: ast.expr) -> Any:  # noqa: PLR0911  (one for each kind of node)
        name, value = column_of(node), constant_of(node)
        if node in self._results:
            return self.rows[self._results[node]]
        if name is not None:
            return self.rows[self._columns[name]]
        if value is not None:
            return operations.constant(value, _type_of(value))
        match node:
            case ast.BoolOp(op=op, values=values):
                join = operator.and_ if isinstance(op, ast.And) else operator.or_
                return reduce(join, [self._read(each) for each in values])
            case ast.UnaryOp(operand=operand):
                return _negate(self._read(operand))
            case ast.Compare():
                return self._comparison(node)
        return self._call(node)

    def _call(self, node: ast.expr) -> Any:
        match node:
            case ast.Call(func=ast.Name(id="is_null"), args=[one]):
                return self._read(one).isnull()
            case ast.Call(func=ast.Name(id="year" | "month" as part), args=[one]):
                return getattr(self._read(one), part)().cast("int64")
        raise NotImplementedError(type(node).__name__)  # parse lets nothing else pass

    def _comparison(self, node: ast.Compare) -> Any:
        parts, left = [], node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(op, ast.In | ast.NotIn) and isinstance(right, ast.List | ast.Tuple):
                found = _is_among(self._read(left), right.elts)
                parts.append(found if isinstance(op, ast.In) else _negate(found))
            else:
                parts.append(_COMPARISONS[type(op)](*self._pair(left, right)))
            left = right
        return reduce(operator.and_, parts)

    def _pair(self, left: ast.expr, right: ast.expr) -> tuple[Any, Any]:
        """Translate both sides; a string compared with a time is a time."""
        values = [self._read(left), self._read(right)]
        for here, there in ((0, 1), (1, 0)):
            text, dtype = constant_of((left, right)[there]), values[here].type()
            if isinstance(text, str) and (dtype.is_date() or dtype.is_timestamp()):
                values[there] = operations.constant(
                    text, "date" if dtype.is_date() else "timestamp"
                )
        return values[0], values[1]


def find_arithmetic(node: ast.expr) -> list[ast.expr]:
    """Find the parts that are results of arithmetic."""
    if constant_of(node) is not None:
        return []
    found = [
        each
        for child in ast.iter_child_nodes(node)
        if isinstance(child, ast.expr)
        for each in find_arithmetic(child)
    ]
    match node:
        case ast.BinOp() | ast.UnaryOp(op=ast.USub()) | ast.Call(func=ast.Name(id="abs" | "floor")):
            found.append(node)
    return found


def _normalise(value: float) -> float:
    """Normalise a constant as `operations.normalise` does columns."""
    return 0.0 if abs(value) <= NEAREST else min(max(value, -FARTHEST), FARTHEST)


def _type_of(value: object) -> ColumnType:
    types: dict[type, ColumnType] = {bool: "bool", int: "int", float: "float", str: "string"}
    return types[type(value)]


def _negate(value: Any) -> Any:
    """Negate a condition as a number, because Ibis writes no brackets around a condition.

    ``NOT x`` before ``IS NULL`` would be read as NOT (x IS NULL); ``x IN (1) = FALSE`` is no SQL of
    Spark.
    """
    return value.cast("int32") == 0


def _is_among(value: Any, elements: list[ast.expr]) -> Any:
    known = [constant_of(each) for each in elements]
    dtype = value.type()
    if dtype.is_boolean():  # DuckDB would write a list out, with the value once for each constant
        if len(set(known)) == 1:
            return value if known[0] else _negate(value)
        return operations.cases((value.isnull(), operations.null("bool")), otherwise=True)
    if dtype.is_date() or dtype.is_timestamp():
        column_type: ColumnType = "date" if dtype.is_date() else "timestamp"
        return reduce(
            operator.or_, [value == operations.constant(each, column_type) for each in known]
        )
    return value.isin([operations.constant(each, _type_of(each)) for each in known])
