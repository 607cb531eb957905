"""The commands ``hushed ledger open``, ``show``, ``charge`` and ``export``, and the group."""

from __future__ import annotations

from dataclasses import asdict
from json import loads
from pathlib import Path
from typing import Annotated, Any

import typer

import hushed as hs
from hushed._ground.numerals import is_whole_number
from hushed._ground.printing import flat, format_up
from hushed._ground.whole_files import write_whole
from hushed.accounting._filters import FilterMethod, check_limit
from hushed.cli._kept import answer
from hushed.cli._options import (
    BudgetArgument,
    DependentOption,
    JsonOption,
    LedgerArgument,
    ProtectOption,
)
from hushed.cli._outcome import finish, print_line, print_note
from hushed.cli._safekeeping import backup, roles, verify
from hushed.cli._written import check_figure, check_targets, files_of
from hushed.errors import ParameterError
from hushed.guarantee import Neighbours, Protect, Unit
from hushed.ledger import Balance, Entry
from hushed.ledger._anchors import anchor
from hushed.ledger._notes import default_note

MaybeName = Annotated[
    str | None, typer.Argument(metavar="[BUDGET]", help="One budget; all by default.")
]
Remark = Annotated[str, typer.Option("--note", help="Remark, written down with it.")]
_STOPPED = "stopped; look at the ledger before trying again"


def open_budget(
    ledger: LedgerArgument,
    budget: BudgetArgument,
    epsilon: Annotated[float, typer.Option(help="Limit on epsilon, in nats.")],
    delta: Annotated[float, typer.Option(help="Limit on delta.")] = 0.0,
    gamma: Annotated[float, typer.Option(help="Limit on gamma, all estimates together.")] = 0.0,
    neighbours: Annotated[
        Neighbours,
        typer.Option(help="Relation of the promises: queries need add-remove."),
    ] = "replace-one",
    unit: Annotated[Unit, typer.Option(help="What the promises protect: a row or a user.")] = (
        "row"
    ),
    protect: ProtectOption = "record",
    distance: Annotated[
        int, typer.Option(help="Rows or users replaced at once, that the promises are for.")
    ] = 1,
    data_dependent: Annotated[
        bool,
        typer.Option(
            "--data-dependent",
            help="Take charges whose population was made from private rows, too: the limit is then "
            "nominal, and is marked.",
        ),
    ] = False,
    method: Annotated[FilterMethod, typer.Option(help="Rule that stops the spending.")] = (
        "adaptive"
    ),
    slack: Annotated[
        float, typer.Option(help="Share of delta set aside for the charges' own deltas.")
    ] = 0.5,
    order: Annotated[float | None, typer.Option(help="Order, for the method renyi.")] = None,
    remark: Remark = "",
    json: JsonOption = False,
) -> None:
    """Open a budget; the ledger is made if there is none.

    One that hushed query can charge needs --neighbours add-remove, and with --user also --unit
    user; the default is for hushed release, statistic and blocks. A limit is never changed.
    """
    with finish(json=json, stopped=_STOPPED) as result:
        check_limit(epsilon, delta)
        limit = hs.Guarantee(
            epsilon=epsilon,
            delta=delta,
            gamma=gamma,
            neighbours=neighbours,
            unit=unit,
            protect=protect,
            distance=distance,
            data_dependent=data_dependent,
        )
        with hs.Ledger(ledger) as book:
            book.open_budget(budget, limit, method=method, slack=slack, order=order, note=remark)
            found = book.balance(budget)
        result.update(_record(found))
        if neighbours == "replace-one":
            print_note(_tell_queries_apart(unit))
        if not json:
            print_line(found.explain())


def _tell_queries_apart(unit: Unit) -> str:
    """Say before the first refusal that queries need a budget of another kind."""
    whose, of = "rows", "hushed release, statistic and blocks"
    more = ", and --unit user if you query with --user"
    if unit == "user":
        whose, of, more = "users", "releases with --user", " --unit user"
    return (
        f"a budget for {whose} with replace-one neighbours takes {of}, and no charge of hushed "
        "query; for queries open one with hushed ledger open LEDGER NAME --epsilon EPSILON "
        f"--neighbours add-remove{more}"
    )


def retire(
    ledger: LedgerArgument,
    budget: BudgetArgument,
    remark: Remark = "",
    json: JsonOption = False,
) -> None:
    """End a budget to which nothing was charged, such as one of a wrong limit; its name stays."""
    with finish(json=json, stopped=_STOPPED) as result:
        with hs.Ledger(ledger, create=False) as book:
            book.retire_budget(budget, remark)
            found = book.balance(budget)
        result.update(_record(found))
        if not json:
            print_line(found.explain())


def show(
    ledger: LedgerArgument,
    budget: MaybeName = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Figure of one budget: .svg, .png or .html.")
    ] = None,
    entries: Annotated[
        str, typer.Option(metavar="N|all", help="How many of the last charges to list.")
    ] = "10",
    json: JsonOption = False,
) -> None:
    """Show where budgets stand, and the last charges."""
    with finish(json=json, stopped=_STOPPED) as result:
        most = _number_of(entries)
        if plot is not None and budget is None:
            raise ParameterError("--plot draws one budget: name it")
        check_figure(plot)
        with hs.Ledger(ledger, create=False) as book:
            names = [each.name for each in book.budgets()] if budget is None else [budget]
            found = [book.balance(each) for each in names]
            whole = [book.entries(each) for each in names]
            listed = [_last(each, most) for each in whole]
            if plot is not None and budget is not None:
                from hushed.plots import budget_figure, save_figure  # noqa: PLC0415

                save_figure(budget_figure(book, budget), plot)
                print_note(f"written to {plot}")
        heads = [_head(each, of) for each, of in zip(found, whole, strict=True)]
        each_one = list(zip(found, listed, heads, strict=True))
        result.update(
            budgets=[
                _record(each) | {"charges": [*map(_charge, last)], "head": head}
                for each, last, head in each_one
            ]
        )
        if not json:
            texts = [
                "\n".join(
                    [
                        each.explain(),
                        f"Keep this outside the ledger, to notice lost entries: {head}",
                        *_lines(last),
                    ]
                )
                for each, last, head in each_one
            ]
            print_line("\n\n".join(texts) or "no budget was opened yet")


def charge(
    ledger: LedgerArgument,
    budget: BudgetArgument,
    epsilon: Annotated[float, typer.Option(help="Epsilon of the promise, in nats.")],
    delta: Annotated[float, typer.Option(help="Delta of the promise.")] = 0.0,
    gamma: Annotated[float, typer.Option(help="Gamma of the promise, stated by hand.")] = 0.0,
    neighbours: Annotated[Neighbours | None, typer.Option(help="By default the budget's.")] = None,
    unit: Annotated[Unit | None, typer.Option(help="By default the budget's.")] = None,
    protect: Annotated[Protect | None, typer.Option(help="By default the budget's.")] = None,
    distance: Annotated[int | None, typer.Option(help="By default the budget's.")] = None,
    data_dependent: DependentOption = False,
    loss: Annotated[
        str | None,
        typer.Option(
            help="Law behind the promise, as for compose: laplace:0.1, gaussian:0.05, ..."
        ),
    ] = None,
    remark: Remark = "",
    json: JsonOption = False,
) -> None:
    """Charge a budget for a release made elsewhere, before it is made."""
    with finish(json=json, stopped=_STOPPED) as result:
        with hs.Ledger(ledger, create=False) as book:
            limit = book.balance(budget).budget.limit
            promise = hs.Guarantee(
                epsilon=epsilon,
                delta=delta,
                gamma=gamma,
                neighbours=neighbours or limit.neighbours,
                unit=unit or limit.unit,
                protect=protect or limit.protect,
                distance=limit.distance if distance is None else distance,
                data_dependent=data_dependent,
            )
            entry = book.charge(budget, promise, remark, loss=_loss(loss))
            found = book.balance(budget)
        result.update(_record(found), charged=entry.number)
        result["kept"] = f"the charge stands as entry {entry.number} of budget {budget!r}"
        if not json:
            print_line(f"charged as entry {entry.number}")
            print_line(found.explain())


def export(
    ledger: LedgerArgument,
    budget: MaybeName = None,
    out: Annotated[Path | None, typer.Option(help="Write to a file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file.")] = False,
    json: JsonOption = False,
) -> None:
    """Write budgets and entries as JSON, with the digests that chain them."""
    with finish(json=json, stopped=_STOPPED) as result:
        check_targets({"--out": out}, files_of(ledger), force=force, former=None)
        with hs.Ledger(ledger, create=False) as book:
            text = book.export(budget)
        if out is not None:
            write_whole(out, text + "\n")
            print_note(f"written to {out}")
        if json:
            result.update(loads(text))
        elif out is None:
            print_line(text)


def _number_of(entries: str) -> int | None:
    """How many entries to list; None for all."""
    if entries == "all":
        return None
    if not is_whole_number(entries):
        raise ParameterError(f"--entries takes a whole number of 0 or more, or all; got {entries}")
    return int(entries)


def _head(balance: Balance, entries: tuple[Entry, ...]) -> str:
    """End of the chain, as ``hushed ledger verify --expect`` takes it."""
    return anchor((len(entries), entries[-1].digest if entries else balance.budget.digest))


def _last(found: tuple[Entry, ...], most: int | None) -> tuple[Entry, ...]:
    return found if most is None else found[max(0, len(found) - most) :]


def _charge(entry: Entry) -> dict[str, Any]:
    """One charge for JSON; its numbers, read as doubles, are those of the ledger."""
    promise = entry.guarantee
    return {
        "number": entry.number,
        "at": entry.at,
        "epsilon": promise.epsilon,
        "delta": promise.delta,
        "gamma": promise.gamma,
        "note": entry.note,
        "key": entry.key,
        "question": entry.question,
        "digest": entry.digest,
    }


def _lines(entries: tuple[Entry, ...]) -> list[str]:
    """Charges as lines; a note by somebody else cannot steer the terminal."""
    if not entries:
        return []
    table: list[tuple[str, ...]] = [("entry", "time (UTC)", "epsilon", "delta", "gamma", "note")]
    for each in entries:
        promise = each.guarantee
        levels = [format_up(x) for x in (promise.epsilon, promise.delta, promise.gamma)]
        moment = each.at[:19].replace("T", " ")
        table.append((str(each.number), moment, *levels, _remark(each)))
    widths = [max(len(row[i]) for row in table) for i in range(5)]
    lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[5]])
        for row in table
    ]
    if entries[0].number > 1:
        lines.insert(1, f"({entries[0].number - 1} earlier: --entries all)")
    return ["", *(line.rstrip() for line in lines)]


def _remark(entry: Entry) -> str:
    return default_note(entry.note) + ("" if entry.key is None else f" [key {flat(entry.key)}]")


def _loss(text: str | None) -> hs.privacy_loss.PrivacyProfile | None:
    if text is None:
        return None
    from hushed.cli._composing import read_release  # noqa: PLC0415

    found, count = read_release(text)
    if not isinstance(found, hs.privacy_loss.PrivacyProfile):
        raise ParameterError("--loss describes a law; a guarantee is what --epsilon states")
    return found.compose(count) if count > 1 else found


def _record(balance: Balance) -> dict[str, Any]:
    return {
        "budget": balance.budget.name,
        "limit": asdict(balance.budget.limit),
        "method": balance.budget.method,
        "filters": [asdict(each) for each in balance.budget.filters],
        "entries": balance.entries,
        "spent": asdict(balance.spent),
        "used": balance.used,
        "epsilon_used": balance.epsilon_used,
        "delta_used": balance.delta_used,
        "gamma_used": balance.gamma_used,
        "epsilon_left": balance.epsilon_left,
        "delta_left": balance.delta_left,
        "gamma_left": balance.gamma_left,
        "retired": balance.retired,
    }


ledger = typer.Typer(
    no_args_is_help=True,
    help="Budgets that cannot be overspent.",
    pretty_exceptions_show_locals=False,
    add_completion=False,
)
ledger.command("open")(open_budget)
ledger.command("show")(show)
ledger.command("charge")(charge)
ledger.command("retire")(retire)
ledger.command("export")(export)
ledger.command("answer")(answer)
ledger.command("verify")(verify)
ledger.command("backup")(backup)
ledger.command("roles")(roles)
