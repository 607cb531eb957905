"""All that was released under a budget, as one kind of record: its chain, and its answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from hushed._ground.decimals import decimal_of
from hushed._ground.json_text import load_once
from hushed._ground.printing import cut_text, flat, format_up, name_changed, percent_up
from hushed.accounting._filters import ADAPTIVE
from hushed.errors import (
    BadFunction,
    DamagedLedger,
    HushedError,
    NotFound,
    ParameterError,
    QueryFailed,
)
from hushed.ledger import Balance, Entry, Ledger, Moment
from hushed.ledger._admission import check_promise
from hushed.ledger._anchors import anchor
from hushed.ledger._answers import was_answer
from hushed.ledger._balance import SAMPLER_TOO, assumption, list_left, name_part
from hushed.ledger._entries import (
    Budget,
    read_budget,
    read_entry,
    write_budget,
    write_entry,
)
from hushed.ledger._failures import raise_failure
from hushed.ledger._laws import write_law
from hushed.ledger._running import price_entry, start_balance
from hushed.ledger._together import reading
from hushed.ledger._walks import choose_moments, moment_after
from hushed.statements._answers import ANSWERS
from hushed.statements._fits import MOVEMENT_CHECKS, POPULATION_CHECKS
from hushed.statements._limits import choose_read, find_smaller, require_priced_soon
from hushed.statements._published import name_joined_of
from hushed.statements._readings import Kind, Reading, Table, canonical
from hushed.statements._releases import RELEASES
from hushed.statements._searches import SEARCHES
from hushed.statements._words import assume_same_person, describe_outsider

_SCHEMA, _VERSION = "hushed report", 1
_MOST_LINES, _MOST_CELL = 40, 2_000  # of which a page shows the beginning, and the rest if asked
_MOST_NAMED = 10
_POINTS, _FEW_POINTS = 200, 10  # of the curve of the budget; one takes half a second with ``pld``
_UNREAD = "an answer, which was not read here: there are many later ones, or it is long"
_MUCH = 0.01  # share of epsilon by which a law may be smaller without a word: grids of noise
_ROUNDED = 1 - 1e-9  # another mathematical library
_STORED = {
    each.schema: each for each in (ANSWERS, RELEASES, SEARCHES, POPULATION_CHECKS, MOVEMENT_CHECKS)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetReport:
    """A budget, its charges, and the answers that they paid for."""

    budget: Budget
    entries: tuple[Entry, ...] = field(repr=False)
    answers: dict[int, str] = field(repr=False)  # as stored, by number
    balance: Balance
    history: tuple[Moment, ...] = field(repr=False)

    @property
    def head(self) -> str:
        """End of the chain, as ``hushed ledger verify --expect`` takes it."""
        last = self.entries[-1].digest if self.entries else self.budget.digest
        return anchor((len(self.entries), last))


def write_report(ledger: Ledger, budget: str) -> str:
    """Write a budget with its charges and answers as a record."""
    (found,) = json.loads(ledger.export(budget))["budgets"]
    # Of one that a server has deleted the text is not there to be shown.
    found["answers"] = {n: each for n, each in found["answers"].items() if each is not None}
    return canonical({"schema": _SCHEMA, "version": _VERSION, **found})


def _write_again(report: BudgetReport) -> str:
    """Write what was read, as a ledger writes it out."""
    entries = [json.loads(write_entry(each)) | {"digest": each.digest} for each in report.entries]
    found = {
        "budget": json.loads(write_budget(report.budget)),
        "digest": report.budget.digest,
        "entries": entries,
        "answers": {str(number): text for number, text in report.answers.items()},
    }
    return canonical({"schema": _SCHEMA, "version": _VERSION} | found)


def _read_report(text: str) -> BudgetReport:
    """Read a record, follow its chain from end to end, and add up again what was spent."""
    told = json.loads(text)
    if (told["schema"], told["version"]) != (_SCHEMA, _VERSION):
        raise ParameterError("the record is no report of this version")
    with _refusing_damage():
        budget = read_budget(canonical(told["budget"]), told["digest"])
        require_priced_soon(told["entries"])
        entries = tuple(_follow_chain(budget, told["entries"]))
    answers = {int(number): str(each) for number, each in told["answers"].items()}
    if not answers.keys() <= {each.number for each in entries}:
        raise ParameterError("an answer of the report belongs to none of its charges")
    running = start_balance(budget)
    history = [Moment(at=budget.opened, number=0, used=0.0, note="opened")]
    _check_filters(budget)
    shown = choose_moments(len(entries), _FEW_POINTS if budget.method == "pld" else _POINTS)
    for entry in entries:
        check_promise(budget, entry.guarantee, None)
        with _refusing_damage():
            _check_costs(budget, entry)
            running.add(entry)
        if entry.number in shown:
            history.append(moment_after(entry, running))
    if not running.keeps_limit():
        raise ParameterError("the charges of the budget are more than its limit")
    return BudgetReport(
        budget=budget,
        entries=entries,
        answers=answers,
        balance=running.balance(),
        history=tuple(history),
    )


@contextmanager
def _refusing_damage() -> Iterator[None]:
    """Refuse charges that no ledger has made, as damage of the record that holds them."""
    try:
        yield
    except DamagedLedger as problem:
        raise ParameterError(
            f"the charges are not those of a ledger: {problem}. Whoever sees a part of a ledger "
            "only cannot certify a budget"
        ) from None


def _check_filters(budget: Budget) -> None:
    """Refuse a rule that lets through more than the limit: its chain was written anew."""
    limit = budget.limit
    names = [each.name for each in budget.filters]
    known = [list(ADAPTIVE)[: len(names)]] if budget.method == "adaptive" else [[budget.method]]
    shares = [decimal_of(each.slack) + decimal_of(each.conversion) for each in budget.filters]
    kept = names in known and sum(shares) <= decimal_of(limit.delta)
    for each in budget.filters:
        amounts = (each.capacity, each.slack, each.conversion, each.order)
        kept = kept and all(amount >= 0 for amount in amounts)
        kept = kept and each.epsilon(each.capacity) * _ROUNDED <= limit.epsilon
    if not kept:
        raise ParameterError(
            "the limit of the budget is smaller than what its charges may add up to"
        )


def _check_costs(budget: Budget, entry: Entry) -> None:
    """Refuse a charge that is added up as less than it promises, beyond rounding."""
    if price_entry(budget, entry) != entry.costs:
        raise ParameterError(
            f"entry {entry.number} of the budget is added up as less than it promises"
        )


def _follow_chain(budget: Budget, told: list[dict[str, Any]]) -> Iterator[Entry]:
    before = budget.digest
    for number, each in enumerate(told, 1):
        link = each["digest"]
        body = canonical({name: part for name, part in each.items() if name != "digest"})
        yield read_entry(body, link, before, number, budget.name)
        before = link


def _read(text: str) -> Reading:
    report = _read_report(text)
    balance = report.balance
    # A gamma is as much an average over the sampler as those of the charges are.
    marginal = report.budget.limit.marginal or balance.spent.marginal
    limit = replace(report.budget.limit, marginal=marginal)
    return Reading(
        title="all releases under a budget",
        subject=report,
        guarantee=limit,
        facts=_list_facts(report),
        rows=(
            ("budget", flat(report.budget.name)),
            ("opened", report.budget.opened[:16].replace("T", " ") + " UTC"),
            ("epsilon, limit", format_up(limit.epsilon)),
            ("delta, limit", format_up(limit.delta)),
            ("gamma, limit", format_up(limit.gamma)),
            ("neighbours", f"{limit.neighbours}, {name_changed(limit.unit, limit.distance)}"),
            ("used", f"{percent_up(balance.used)} %{name_part(balance)}"),
            ("charges", str(len(report.entries))),
            *list_left(balance),
            ("end of the chain", report.head),
        ),
        tables=(_list_charges(report),),
        outsider=describe_outsider(
            limit,
            _list_published(report),
            "what each release promised when it was charged, and on what that rests"
            f"{', and on a plan that no answer changed' * (report.budget.method == 'pld')}",
        ),
        paragraphs=(
            ("What is promised", _describe_budget(report)),
            (
                "What is assumed",
                "Everything that was released from these rows was charged to this budget, before "
                "it was released; nothing here shows that the list is complete. What was charged "
                "for a release elsewhere stands in the list without an answer. Whatever the "
                "certificate of a release assumes is assumed here, too."
                f"{_assume_joined(report.answers)}"
                f"{assume_same_person(limit, _list_users(report.answers))}"
                f"{_name_smaller(report.entries)}",
            ),
        ),
    )


def _describe_budget(report: BudgetReport) -> str:
    limit = report.budget.limit
    return (
        f"All charges together keep epsilon = {format_up(limit.epsilon)}, delta = "
        f"{format_up(limit.delta)} and gamma = {format_up(limit.gamma)}, whatever is still charged "
        f"to this budget: what does not fit is refused (method {report.budget.method}). "
        f"{assumption(report.budget)}{SAMPLER_TOO * report.balance.spent.marginal}"
    )


def _list_published(report: BudgetReport) -> str:
    """List what the file tells without noise: its charges, and what its answers are answers to."""
    parts = ["notes and times of the charges"]
    if report.answers:
        parts.append("what each stored answer was asked, as its certificate lists it")
    parts += [f"all of {each}" for each in name_joined_of(report.answers)]
    return ", ".join(parts)


def _assume_joined(answers: dict[int, str]) -> str:
    """Say that the tables that queries joined are assumed to be public."""
    return "".join(
        f" {each[:1].upper()}{each[1:]} is public: the file holds all of it, and no noise "
        "protects it."
        for each in name_joined_of(answers)
    )


def _list_users(answers: dict[int, str]) -> Iterator[str]:
    """List the columns by which the stored answers of queries know people."""
    for text in answers.values():
        with suppress(Exception):  # whoever may append may have stored anything
            yield str(json.loads(text)["asked"]["query"]["user"])


def _name_smaller(entries: tuple[Entry, ...]) -> str:
    """Name the charges of which less is counted than they promise: nobody can check why."""
    found, unknown = find_smaller(entries, _MUCH)
    told = ""
    if found:
        told += (
            " Whoever made these charges said that less is lost than they promise, and the smaller "
            f"loss was counted: {_name_entries(found)}."
        )
    if unknown:
        told += (
            " Of these charges it was not worked out whether less was counted than they promise, "
            f"for their laws have several parts: {_name_entries(unknown)}."
        )
    return told


def _name_entries(numbers: list[int]) -> str:
    first = ", ".join(map(str, numbers[:_MOST_NAMED]))
    more = f" and {len(numbers) - _MOST_NAMED} more" if len(numbers) > _MOST_NAMED else ""
    return f"entry {first}{more}"


def _list_facts(report: BudgetReport) -> dict[str, Any]:
    balance = report.balance
    return {
        "head": report.head,
        "charges": len(report.entries),
        "answers": len(report.answers),
        "used": balance.used,
        "epsilon_spent": balance.spent.epsilon,
        "delta_spent": balance.spent.delta,
        "gamma_spent": balance.spent.gamma,
        "epsilon_left": balance.epsilon_left,
    }


def _list_charges(report: BudgetReport) -> Table:
    """List the charges, the last ones first, with what each released."""
    lines: list[tuple[str, ...]] = [
        ("entry", "time (UTC)", "epsilon", "delta", "gamma", "note", "released")
    ]
    chosen = choose_read(report.answers)
    for each in reversed(report.entries):
        g, stored = each.guarantee, report.answers.get(each.number)
        known = stored is None or each.number in chosen
        lines.append(
            (
                str(each.number),
                each.at[:16].replace("T", " "),
                *map(format_up, (g.epsilon, g.delta, g.gamma)),
                _cut(flat(each.note)),
                describe_stored(stored, report.budget, each) if known else _UNREAD,
            )
        )
    return Table(name="What was charged and released", lines=tuple(lines), most=_MOST_LINES)


def describe_stored(text: str | None, budget: Budget, entry: Entry) -> str:
    """Say in a few words what a charge has paid for; whatever may have been stored."""
    if text is None:
        return "no answer is stored"
    try:
        raise_failure(text)
        kind = _STORED[load_once(text, "the answer")["schema"]]
        reading = kind.read(text)
        (table,) = reading.tables
    except (BadFunction, QueryFailed):
        return "it failed, which is an answer, too"
    except Exception:  # whoever may append may have stored anything
        return "an answer of another kind"
    if reading.guarantee != entry.guarantee or _loses_more(reading, budget, entry):
        return "an answer of another promise than was charged"
    return _cut(flat(reading.short)) or _describe_table(table)


def _loses_more(reading: Reading, budget: Budget, entry: Entry) -> bool:
    """Whether an answer loses more than was charged for it by the law of its loss."""
    if reading.loss is None or entry.law is None:
        return False
    released = replace(entry, law=write_law(reading.loss))
    return price_entry(budget, released) != entry.costs


def _describe_table(table: Table) -> str:
    """Say in a few words what a table shows."""
    names, *lines = table.lines
    if len(lines) != 1:
        told = "; ".join(" ".join(each) for each in lines[:_MOST_LINES])
        if len(lines) > _MOST_LINES:
            told += f"; {len(lines) - _MOST_LINES} more are in the file"
        if names == ("name", "value"):
            return _cut(f"{len(lines)} numbers: {told}")
        return _cut(f"{len(lines)} groups, {', '.join(names)}: {told}")
    if names == ("value",):
        return _cut(lines[0][0])
    return _cut(", ".join(f"{n} {cell}" for n, cell in zip(names, lines[0], strict=True)))


def _cut(text: str) -> str:
    return cut_text(text, _MOST_CELL)


def _compare(reading: Reading, ledger: Ledger) -> list[str]:
    """Compare with a ledger, which may have gone on since."""
    report: BudgetReport = reading.subject
    name = report.budget.name
    try:
        ledger.verify(name, report.head)
        wrong = [
            number
            for number in (each.number for each in report.entries)
            if not _is_stored(ledger, name, number, report.answers.get(number))
        ]
    except HushedError as problem:
        return [f"the ledger does not have these charges: {problem}"]
    if not wrong:
        return []
    return [
        "the ledger stores other answers than the certificate for these charges, or stores some "
        f"where it has none: {_name_entries(wrong)}"
    ]


def _count_later(reading: Reading, ledger: Ledger) -> str:
    """Say how many charges a ledger has after those of a report, which may be old, or cut short."""
    report: BudgetReport = reading.subject
    later = len(ledger.entries(report.budget.name)) - len(report.entries)
    if not later:
        return "the ledger has no charge after these"
    many = "a charge" if later == 1 else f"{later} charges"
    return f"the ledger has {many} after these, which the certificate does not show"


def _is_stored(ledger: Ledger, budget: str, number: int, text: str | None) -> bool:
    """Whether an answer of a report is that of a ledger; of one that was deleted, by its digest."""
    try:
        return ledger.answer(budget, number) == text
    except NotFound:
        with reading(ledger) as connection:
            return text is None or was_answer(connection, budget, number, text)


BUDGETS = Kind(
    name="budget",
    schema=_SCHEMA,
    takes=(BudgetReport,),
    write=_write_again,
    read=_read,
    write_again=lambda reading: _write_again(reading.subject),
    compare=_compare,
    since=_count_later,
    checked="digests; the chain of the charges, and what they add up to",
    unchecked=(
        "that everything was charged that was released from these rows",
        "where no answer is stored: that the law behind a charge is that of what was released",
    ),
    without_ledger=(
        "that no charge was taken off the end, or the whole chain written anew",
        "that the answers are those that were paid for, and all of them",
    ),
)
