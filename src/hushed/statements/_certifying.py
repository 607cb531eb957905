"""From what was released to its certificate."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from hushed._functions._environment import version
from hushed._ground.calls import called_as
from hushed._ground.checks import read_list
from hushed._ground.printing import flat
from hushed.errors import DamagedLedger, NotFound, ParameterError
from hushed.ledger import Ledger
from hushed.ledger._balance import terms_of
from hushed.releasing import Release
from hushed.statements._budgets import write_report
from hushed.statements._kinds import kind_of_object
from hushed.statements._readings import canonical
from hushed.statements._statement import LedgerEntry, Statement
from hushed.statements._studies import Study, StudyPart, compose_study, find_law, write_study


@called_as('hs.certify(answer, data="stays of 2024")')
def certify(
    subject: Any,
    *,
    data: str = "",
    note: str = "",
    actor: str = "",
    ledger: Ledger | None = None,
    budget: str | None = None,
) -> Statement:
    """Certify what was released: value, promise, data set, person, charge, in one file and page.

    Nothing is read or charged.

    Parameters
    ----------
    subject : object, int or str
        What was released, with its value, which is public: `Answer`, `Release`, `AboveThreshold`,
        `PopulationCheck`, `MovementCheck`, an `AuditReport`, or a fitted private estimator of
        `hushed.sklearn`; or the number, or the key, of an entry whose answer the ledger stores. An
        `AboveThreshold` is certified as far as it has told; with a ledger it has to be at its end,
        for only then its answers are stored.
    data : str, default ""
        Name of the data set, as its keepers call it; best no path.
    note : str, default ""
        What it was released for; by default the note of the ledger's entry.
    actor : str, default ""
        Who released it.
    ledger : Ledger, optional
        Where it was charged: the entry goes into the certificate, and has to hold this answer.
    budget : str, optional
        Name of the budget in the ledger; required with one.

    Returns
    -------
    Statement
        The certificate; holds no private value. Two certificates of one entry are equal if the same
        is said of it by the same version, because both tell the time of the charge.

    Raises
    ------
    ParameterError
        If nothing of the kind can be certified, or the ledger's entry is about something else.
    DamagedLedger
        If the time of the entry is none.

    See Also
    --------
    verify : What of it can be checked.
    hushed.plots.certificate_page : Its page.
    """
    entry, subject = None, _take_release(subject)
    if (ledger is None) != (budget is None):
        raise ParameterError("ledger and budget go together: give both, or none of them")
    if isinstance(subject, int | str) and (ledger is None or budget is None):
        raise ParameterError(
            "the number, or the key, of an entry needs its ledger and budget", parameter="ledger"
        )
    if ledger is not None and budget is not None:
        entry, record = _find_stored(subject, ledger, budget)
    else:
        record = kind_of_object(subject).write(subject)
    remark = note or ("" if entry is None else flat(entry.note))
    return certify_record(record, data=data, note=remark, actor=actor, entry=entry)


@called_as('hs.certify_budget(ledger, "stays")')
def certify_budget(
    ledger: Ledger, budget: str, *, data: str = "", note: str = "", actor: str = ""
) -> Statement:
    """Certify everything that was released under a budget: charges, answers, and what is left.

    Nothing is charged.

    Parameters
    ----------
    ledger : Ledger
        The ledger, as seen by somebody who may read all of its entries.
    budget : str
        Name of the budget.
    data : str, default ""
        Name of the data set, as its keepers call it.
    note : str, default ""
        What the report is for.
    actor : str, default ""
        Who made it.

    Returns
    -------
    Statement
        The certificate: the chain of the ledger with the stored answers, which are public.

    Raises
    ------
    NotFound
        If there is no such budget.
    ParameterError
        If a part of the entries only can be seen.
    """
    return certify_record(write_report(ledger, budget), data=data, note=note, actor=actor)


@called_as("hs.certify_study([first, second])")
def certify_study(
    certificates: Sequence[Statement],
    *,
    delta: float = 1e-6,
    data: str = "",
    note: str = "",
    actor: str = "",
) -> Statement:
    """Certify what several releases from the same rows promise together.

    Parameters
    ----------
    certificates : sequence of Statement
        Those of the releases, each once.
    delta : float, default 1e-6
        Joint delta; in [0, 1].
    data : str, default ""
        Name of the data set; by default that of the parts, if they have one.
    note : str, default ""
        What the study is for.
    actor : str, default ""
        Who made it.

    Returns
    -------
    Statement
        The certificate: promise and digest of each part, and their composition.

    Raises
    ------
    ParameterError
        If one of them promises nothing, or they cannot be composed, as for `hushed.compose`; or
        their laws are so many, or so long, that nobody could check the sum soon.
    """
    parts = [_read_part(each) for each in read_list("certificates", certificates, of="[a, b]")]
    named = {each.data for each in parts}
    study = compose_study(parts, delta)
    shared = data or (named.pop() if len(named) == 1 else "")
    return certify_record(write_study(study), data=shared, note=note, actor=actor)


def _take_release(subject: Any) -> Any:
    """Take what a fitted private estimator has released, which it keeps as its own."""
    found = vars(subject).get("release_") if hasattr(subject, "__dict__") else None
    return found if isinstance(found, Release) else subject


def _is_of_people(subject: object) -> bool:
    """Whether each row was declared to be one person, by whoever made what is certified."""
    if isinstance(subject, Study):
        return all(each.person for each in subject.parts)
    return bool(getattr(getattr(subject, "certificate", None), "person", False))


def _read_part(part: object) -> StudyPart:
    if not isinstance(part, Statement):
        raise ParameterError(
            f"a study is of what hs.certify(released) returns, got {type(part).__name__}: certify "
            "the release itself, not its .certificate",
            parameter="certificates",
        )
    if part.guarantee is None:
        raise ParameterError(f"a certificate of an {part.kind} promises nothing: leave it out")
    return StudyPart(
        digest=part.digest,
        kind=part.kind,
        data=part.data,
        note=part.note,
        guarantee=part.guarantee,
        law=find_law(part.loss, part.guarantee),
        person=_is_of_people(part.subject),
    )


def certify_record(
    record: str,
    *,
    data: str = "",
    note: str = "",
    actor: str = "",
    entry: LedgerEntry | None = None,
    software: Mapping[str, str] | None = None,
) -> Statement:
    """Certify a record, by whoever says so: as of its charge, or of now if there is none.

    The certificate of an entry does not tell when it was made, nor how long the rows took.
    """
    at = datetime.now(UTC) if entry is None else _read_time(entry.at)
    return Statement(
        record=record,
        data=data,
        note=note,
        actor=actor,
        entry=entry,
        versions={
            "hushed": version("hushed"),
            "python": platform.python_version(),
            **(software or {}),
        },
        created=at.isoformat(timespec="seconds"),
    )


def _read_time(at: str) -> datetime:
    """Read the time of an entry, in UTC; somebody may have written it by hand."""
    found = None
    with suppress(ValueError):
        found = datetime.fromisoformat(at)
    if found is None:
        raise DamagedLedger("the time of this entry cannot be read: it was not written by a ledger")
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def find_entry(ledger: Ledger, budget: str, number: int | None) -> LedgerEntry:
    """Find the charge behind a release."""
    if number is None:
        raise ParameterError(
            "this was charged to no ledger that stores answers: leave ledger and budget out",
            parameter="ledger",
        )
    entries = ledger.entries(budget)
    if not 0 < number <= len(entries):
        raise ParameterError(f"budget {budget!r} has no entry {number}: it is of another ledger")
    found = entries[number - 1]
    return LedgerEntry(
        budget=budget,
        number=found.number,
        at=found.at,
        note=found.note,
        question=found.question,
        digest=found.digest,
        terms=terms_of(ledger.balance(budget).budget, found.number),
    )


def _find_stored(subject: Any, ledger: Ledger, budget: str) -> tuple[LedgerEntry, str]:
    """Find the charge and the answer that it paid for, which has to be this one."""
    if isinstance(subject, int | str):
        number = _number_of(subject, ledger, budget)
        stored = ledger.answer(budget, number)
        if stored is None:
            raise NotFound(f"no answer is stored in budget {budget!r} under {subject!r}")
        return find_entry(ledger, budget, number), stored
    record = kind_of_object(subject).write(subject)
    canonical(json.loads(record))  # what no certificate can hold is told as that
    entry = find_entry(ledger, budget, getattr(subject, "entry", None))
    stored = ledger.answer(budget, entry.number)
    if stored is None:
        raise ParameterError(
            f"budget {budget!r} stores no answer under entry {entry.number}; what an "
            "AboveThreshold told is stored when it has found all, or is closed: close()"
        )
    if not is_same_record(stored, record):
        raise ParameterError(
            f"entry {entry.number} of budget {budget!r} paid for another answer than this one"
        )
    return entry, record


def _number_of(name: int | str, ledger: Ledger, budget: str) -> int:
    """Find the number of an entry by its key."""
    if isinstance(name, int):
        return name
    for each in ledger.entries(budget):
        if each.key == name:
            return each.number
    raise NotFound(f"no entry of budget {budget!r} has the key {name!r}")


def is_same_record(one: str, other: str) -> bool:
    """Whether two texts are the same record."""
    try:
        return canonical(json.loads(one)) == canonical(json.loads(other))
    except (ValueError, RecursionError, ParameterError):
        return False
