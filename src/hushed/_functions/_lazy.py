"""What a plan of Polars holds: frames, columns and functions. It is read, and not run."""

from __future__ import annotations

from typing import Any

_MOST_STEPS = 10_000

# Steps of a plan whose expressions and inputs are all that they hold.
_STEPS = {
    "Cache",
    "DataFrameScan",
    "Distinct",
    "Filter",
    "GroupBy",
    "HConcat",
    "HStack",
    "Join",
    "MapFunction",  # of Polars' own: those of a user are refused by the reader
    "MergeSorted",
    "Projection",
    "PythonScan",
    "Scan",  # of files
    "Select",
    "SimpleProjection",
    "Slice",
    "Sort",
    "Union",
}
# Fields of expressions that are numbers of other expressions.
_PARTS = {
    "Agg": ("arguments",),
    "BinaryExpr": ("left", "right"),
    "Cast": ("expr",),
    "Column": (),
    "Filter": ("input", "by"),
    "Function": ("input",),
    "Gather": ("expr", "idx"),
    "Len": (),
    "Literal": (),
    "Slice": ("input", "offset", "length"),
    "Sort": ("expr",),
    "SortBy": ("expr", "by"),
    "Ternary": ("predicate", "truthy", "falsy"),
    "Window": ("function", "partition_by", "order_by"),
}


class _Unknown(Exception):
    """A step of which nobody knows what it holds."""


def is_planned(value: Any) -> bool:
    """Tell whether an object is a lazy frame or an expression of Polars."""
    return any(
        each.__name__ in ("LazyFrame", "Expr") and each.__module__.partition(".")[0] == "polars"
        for each in type(value).__mro__
    )


def list_planned(plan: Any) -> tuple[list[Any], bool]:
    """List what a lazy frame or an expression holds, and tell whether that is all.

    It is not where a function of the user's is called on the way, or a step is unknown.
    """
    import polars  # noqa: PLC0415

    found: list[Any] = []
    try:
        _read_step(_open(plan), found)
    except (Exception, polars.exceptions.PanicException):  # of a reader that knows few steps
        return found, False
    # A column may be a copy that the reader made, as where it is cast.
    return found, not any(type(each) is polars.Series for each in found)


def _open(plan: Any) -> Any:
    """Open a plan for reading; an expression as one on columns of any type that suits it."""
    import polars  # noqa: PLC0415

    if issubclass(type(plan), polars.LazyFrame):
        return _as_written(plan)
    failed: Exception = _Unknown()
    for kind in (polars.Null, polars.Float64, polars.String):
        schema = dict.fromkeys(plan.meta.root_names(), kind)
        try:
            return _as_written(polars.LazyFrame(schema=schema).select(plan))
        except Exception as cause:
            failed = cause
    raise failed


def _as_written(plan: Any) -> Any:
    """Open a plan that was not optimised, which would copy columns in it."""
    import polars  # noqa: PLC0415

    return plan._ldf.with_optimizations(polars.QueryOptFlags.none()._pyoptflags).visit()


def _read_step(reader: Any, found: list[Any]) -> None:
    """Note what a step and all before it hold."""
    steps = [reader.get_node()]
    expressions: set[int] = set()
    for count, step in enumerate(steps):
        reader.set_node(step)
        node = reader.view_current_node()
        kind = type(node).__name__
        if kind not in _STEPS or count == _MOST_STEPS:
            raise _Unknown
        if kind == "DataFrameScan":
            found.append(_as_frame(node.df))
        if kind == "PythonScan":
            found.append(node.options)
        for each in reader.get_exprs():
            _read_expression(reader, each.node, found, expressions)
        steps += reader.get_inputs()


def _read_expression(reader: Any, first: int, found: list[Any], seen: set[int]) -> None:
    """Note the columns that an expression holds."""
    left = [first]
    for place in left:
        if place in seen:
            continue
        seen.add(place)
        held = reader.view_expression(place)
        for name in _PARTS[type(held).__name__]:
            part = getattr(held, name)
            left += part if isinstance(part, list) else [] if part is None else [part]
        if type(held).__name__ == "Literal":
            found.append(_as_literal(held.value))


def _as_frame(held: Any) -> Any:
    import polars  # noqa: PLC0415

    return polars.DataFrame._from_pydf(held)


def _as_literal(held: Any) -> Any:
    import polars  # noqa: PLC0415

    if held is None or type(held) is list:  # which the reader copied
        raise _Unknown
    of_polars = type(held).__name__ == "PySeries"
    return polars.Series._from_pyseries(held) if of_polars else held
