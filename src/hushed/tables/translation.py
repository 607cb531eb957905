"""Checked expressions as expressions of the engine; missing stays missing."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

from hushed.tables import engine
from hushed.tables.expressions import Expression, Kind, column_of, constant_of

__all__ = ["translate"]

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
}
_EXACT = float(2**53)


def translate(expression: Expression, rows: Any) -> Any:
    """Turn a checked expression into one on the columns of a table.

    Parameters
    ----------
    expression : Expression
        From `parse`.
    rows : ibis.Table
        A table with the columns that it was checked against.

    Returns
    -------
    ibis.Value
        One value a row; never fails on a value.
    """
    return _value(expression.tree, rows)


def _value(node: ast.expr, rows: Any) -> Any:  # noqa: PLR0911  (one for each kind of node)
    name, value = column_of(node), constant_of(node)
    if name is not None:
        return _column(rows[name])
    if value is not None:
        return engine.constant(value, _kind_of(value))
    match node:
        case ast.BoolOp(op=op, values=values):
            join = operator.and_ if isinstance(op, ast.And) else operator.or_
            return reduce(join, [_value(each, rows) for each in values])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ~_value(operand, rows)
        case ast.UnaryOp(operand=operand):
            return -_real(operand, rows)
        case ast.BinOp(left=left, op=op, right=right):
            return _arithmetic(op, _real(left, rows), _real(right, rows))
        case ast.Compare():
            return _comparison(node, rows)
        case ast.Call(func=ast.Name(id=function), args=[one]):
            return _call(function, one, rows)
    raise NotImplementedError(type(node).__name__)  # parse lets nothing else pass


def _kind_of(value: object) -> Kind:
    kinds: dict[type, Kind] = {bool: "truth", int: "whole", float: "real", str: "text"}
    return kinds[type(value)]


def _column(column: Any) -> Any:
    dtype = column.type()
    if dtype.is_floating() or dtype.is_decimal():
        return engine.number(column)
    return column.cast("string") if dtype.is_uuid() else column


def _real(node: ast.expr, rows: Any) -> Any:
    return engine.tame(engine.number(_value(node, rows)))


def _arithmetic(op: ast.operator, left: Any, right: Any) -> Any:
    if isinstance(op, ast.Div):
        divisor = engine.cases((right == 0.0, engine.missing("real")), otherwise=right)
        return engine.tame(left / divisor)
    return engine.tame(_ARITHMETIC[type(op)](left, right))


def _call(function: str, one: ast.expr, rows: Any) -> Any:
    value = _value(one, rows)
    if function == "is_null":
        return value.isnull()
    if function in ("year", "month"):
        return getattr(value, function)().cast("int64")
    size = engine.tame(engine.number(value))
    if function == "abs":
        return engine.cases((size < 0.0, -size), otherwise=size)
    return (
        engine.cases((size > _EXACT, _EXACT), (size < -_EXACT, -_EXACT), otherwise=size)
        .floor()
        .cast("int64")
    )


def _comparison(node: ast.Compare, rows: Any) -> Any:
    parts, left = [], node.left
    for op, right in zip(node.ops, node.comparators, strict=True):
        if isinstance(op, ast.In | ast.NotIn) and isinstance(right, ast.List | ast.Tuple):
            found = _among(_value(left, rows), right.elts)
            parts.append(found if isinstance(op, ast.In) else ~found)
        else:
            parts.append(_COMPARISONS[type(op)](*_pair(left, right, rows)))
        left = right
    return reduce(operator.and_, parts)


def _pair(left: ast.expr, right: ast.expr, rows: Any) -> tuple[Any, Any]:
    """Both sides; a text beside a time is a time."""
    values = [_value(left, rows), _value(right, rows)]
    for here, there in ((0, 1), (1, 0)):
        text = constant_of((left, right)[there])
        dtype = values[here].type()
        if isinstance(text, str) and (dtype.is_date() or dtype.is_timestamp()):
            values[there] = engine.constant(text, "day" if dtype.is_date() else "moment")
    return values[0], values[1]


def _among(value: Any, elements: list[ast.expr]) -> Any:
    known = [constant_of(each) for each in elements]
    dtype = value.type()
    if dtype.is_date() or dtype.is_timestamp():
        kind: Kind = "day" if dtype.is_date() else "moment"
        return reduce(operator.or_, [value == engine.constant(each, kind) for each in known])
    return value.isin([engine.constant(each, _kind_of(each)) for each in known])
