"""What the price of a query is asked for: an epsilon, or errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hushed._ground.printing import as_given, flat, shown
from hushed.errors import ParameterError


def read_errors(
    epsilon: float | None,
    errors: Mapping[str, float] | None,
    error: float | None,
    names: Sequence[str],
) -> Mapping[str, float] | None:
    """Read the errors that are wanted, of the outputs of these names; None if it is an epsilon."""
    given = [each is not None for each in (epsilon, errors, error)]
    if not any(given):
        raise ParameterError(
            "a price needs epsilon=..., or the errors that are wanted, such as "
            f"{_show_errors(names)}",
            parameter="epsilon",
        )
    if epsilon is not None and sum(given) > 1:
        raise ParameterError(
            "epsilon decides the errors, and errors decide epsilon: give one of the two",
            parameter="epsilon",
        )
    return None if epsilon is not None else read_wanted(errors, error, names)


def read_wanted(
    errors: Mapping[str, float] | None, error: float | None, names: Sequence[str]
) -> Mapping[str, float]:
    """Read the errors that are wanted, of the outputs of these names."""
    if errors is None and error is None:
        raise ParameterError(
            f"the errors that are wanted must be given, such as {_show_errors(names)}",
            parameter="errors",
        )
    if error is None:
        return errors or {}
    if errors is not None or len(names) != 1:
        raise ParameterError(
            f"error is that of the only output: give {_show_errors(names)}", parameter="error"
        )
    return {names[0]: error}


def no_output(name: object, known: Iterable[str]) -> str:
    """Say that there is no output of a name, and which there are."""
    known = list(known)
    renamed = name == "count_users" and "users" in known
    hint = "; that of count_users is called users" if renamed else ""
    return f"there is no output {as_given(name)}{hint}; there are {', '.join(map(shown, known))}"


def _show_errors(names: Sequence[str]) -> str:
    """Show how errors are given, for these outputs."""
    return "errors={" + ", ".join(f"{flat(repr(name))}: ..." for name in names) + "}"
