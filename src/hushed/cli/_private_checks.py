"""What ``check-population`` and ``check-movement`` share: two tables read, a verdict told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from json import loads
from pathlib import Path
from typing import Any

import hushed as hs
from hushed.cli._inputs import check_named
from hushed.cli._outcome import BAD_USE, finish, print_line, print_note
from hushed.cli._private_tables import read_table_like
from hushed.cli._records import Account, Public
from hushed.cli._release_words import read_again
from hushed.cli._tables import Table, check_columns
from hushed.cli._written import check_figure
from hushed.errors import ParameterError
from hushed.populations import Population


@contextmanager
def finish_check(plot: Path | None, account: Account, *, json: bool) -> Iterator[dict[str, Any]]:
    """Refuse what can be before anything is read; 1 says that the check contradicts."""
    charged_first = (
        "" if account.ledger is None else "; if the budget was charged, the charge stays"
    )
    stopped = f"stopped; nothing was told{charged_first}"
    with finish(json=json, stopped=stopped, refused=BAD_USE) as result:
        check_figure(plot)
        if account.key is not None and account.ledger is None:
            raise ParameterError("--key is the name of an answer in a ledger: --ledger URL, too")
        yield result


def read_public_and_private(
    public: Public, data: Path, user: str | None = None
) -> tuple[Population, Table]:
    """Read a population, and private rows with the same columns."""
    source, columns = public.read(user, private=data)
    check_named(user, source)
    table = read_table_like(
        data, source, public.frame, header=public.header, columns=columns, user=user
    )
    check_columns(columns, table.columns)
    return source, table


def tell_check(
    result: dict[str, Any],
    found: hs.PopulationCheck | hs.MovementCheck,
    account: Account,
    plot: Path | None,
    *,
    json: bool,
) -> None:
    """Tell the verdict, and how it is read again; draw its figure."""
    result.update(loads(found.to_json()), verdict=found.verdict, entry=found.entry)
    result["kept"] = read_again(account.ledger, account.budget, account.key or found.entry)
    result["exit_code"] = int(found.verdict == "contradicted")
    if not json:
        print_line(found.explain())
    if plot is not None:
        from hushed import plots  # noqa: PLC0415

        figure = (
            plots.moved_figure(found)
            if isinstance(found, hs.MovementCheck)
            else plots.population_figure(found)
        )
        plots.save_figure(figure, plot)
        print_note(f"written to {plot}")
