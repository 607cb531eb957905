"""The ledger and the budget that a command charges."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import hushed as hs
from hushed.errors import ParameterError


@contextmanager
def open_named(url: str | None, budget: str | None) -> Iterator[hs.Ledger | None]:
    """Open the ledger of a command, look its budget up before anything runs, and close it."""
    if url is None and budget is None:
        yield None
        return
    if url is None or budget is None:
        given, lacking = ("--ledger", "--budget NAME"), ("--budget", "--ledger sqlite:///FILE")
        one, other = given if budget is None else lacking
        raise ParameterError(f"{one} was given without {other}: both belong together")
    with hs.Ledger(url, create=False) as found:
        found.balance(budget)
        yield found
