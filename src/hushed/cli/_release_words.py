"""What a command says of a release: its value and promise, and how it is read again."""

from __future__ import annotations

from shlex import quote
from typing import Any

import numpy as np

import hushed as hs
from hushed.mechanisms._bernstein import BernsteinPolynomial
from hushed.releasing._names import list_named, name_value


def plain_value(value: Any) -> Any:
    """Give a released value as JSON holds it."""
    if isinstance(value, BernsteinPolynomial):
        value = value.coefficients
    if isinstance(value, hs.Winner):
        return {"index": value.index, "gap": value.gap}
    return value.tolist() if isinstance(value, np.ndarray) else value


def describe_release(value: Any, certificate: hs.Certificate) -> str:
    """Say what was released and under which promise."""
    plain = plain_value(value)
    shown = "nothing, it was refused" if plain is None else plain
    named = "".join(f"\n  {name}: {each}" for name, each in list_named(value, certificate))
    if not named and (what := name_value(certificate)) != "value":
        shown = f"{shown} ({what})"
    error = "" if plain is None else f"\nerror: {certificate.error.explain()}"
    return f"released: {shown}{named}{error}\n\n{certificate.explain()}"


def read_again(ledger: str | None, budget: str | None, name: str | int | None) -> str:
    """Say how a stored answer is read again, for the case that it cannot be printed."""
    if ledger is None or budget is None or name is None:
        return ""
    address = ledger if ledger.startswith("sqlite:") else "LEDGER"
    words = " ".join(quote(each) for each in (address, budget, str(name)))
    if str(name).startswith("-") or budget.startswith("-"):  # names, and no options
        words = f"-- {words}"
    return f"the answer is kept, and read again at no cost by: hushed ledger answer {words}"
