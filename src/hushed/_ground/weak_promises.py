"""Remarks on promises that protect hardly anybody, or nobody."""

from __future__ import annotations

from hushed._ground.printing import format_up

_LARGE = 10.0  # from here on odds may grow by 22,000
NOMINAL = (
    "NOT A PRIVACY GUARANTEE: the population was made from the private rows, as was admitted, and "
    "the numbers are nominal"
)


def epsilon_warnings(epsilon: float, unit: str) -> tuple[str, ...]:
    """Warn of an epsilon of 10 or more; nothing below."""
    if epsilon < _LARGE:
        return ()
    return (
        f"epsilon {format_up(epsilon)} keeps hardly anything private: one {unit} may make answers "
        f"e^{format_up(epsilon)} times as likely.",
    )
