"""How many rows there are: publicly so many, at least so many, or nobody knows."""

from __future__ import annotations

from hushed._ground.checks import is_plain_int
from hushed._ground.printing import as_given
from hushed.errors import BadRows, ParameterError

MOST_ROWS: int = 1 << 50


def check_size(size: int | None, name: str = "size") -> None:
    """Refuse a public number of rows that cannot be one."""
    if size is not None and not (is_plain_int(size) and 1 <= size <= MOST_ROWS):
        raise ParameterError(
            f"{name} must be an integer from 1 to 2**50, got {as_given(size)}", parameter=name
        )


def check_least(least: int | None, size: int | None) -> None:
    """Refuse a least number of rows that cannot be one, or that stands beside the number itself."""
    check_size(least, "least")
    if least is not None and size is not None:
        raise ParameterError(
            f"size={size} says how many rows there are: leave least={least} out", parameter="least"
        )


def refuse_size(found: int, wanted: int | None, least: int | None = None) -> None:
    """Refuse data whose number of rows is not the public one, or below the least one."""
    if wanted is not None and found != wanted:
        raise BadRows(f"the number of rows is not the public one, {wanted}; use resize first")
    if least is not None and found < least:
        raise BadRows(
            f"there are fewer rows than the least={least} that was declared; use resize first, or "
            "mean(least=...), which takes any table"
        )


def describe_size(size: int | None, least: int | None = None) -> str:
    """Say how many rows there are."""
    if size is not None:
        return f"{size} rows"
    return "of unknown number" if least is None else f"at least {least} rows"
