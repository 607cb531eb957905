"""What can be checked of a certificate, and what cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Literal, overload

from hushed._ground.calls import called_as
from hushed._ground.notebook import Shown
from hushed._ground.printing import name_missing
from hushed.engines._choice import Workers
from hushed.errors import NotFound, ParameterError
from hushed.ledger import Ledger
from hushed.ledger._answers import was_answer
from hushed.ledger._together import reading
from hushed.mechanisms import Mechanism
from hushed.populations import Population
from hushed.releasing import Certificate, Verification
from hushed.releasing import verify as verify_release
from hushed.releasing._agreement import LABELS
from hushed.runs import Keep
from hushed.sensitivity import Update
from hushed.statements._certifying import find_entry, is_same_record
from hushed.statements._kinds import kind_of_record, read_record
from hushed.statements._releases import RELEASES
from hushed.statements._signing import is_signed, key_id, open_signed, read_unchecked
from hushed.statements._statement import LedgerEntry, Statement, is_statement

_CONTEXT = "data set, remark, person, versions and time: anybody may have written them"
_UNASKED = "its signature: no key was given to check it by"
_FOUND = {
    "bits": "holds as far as it was checked",
    "rounding": "not bit for bit, but within rounding, as far as it was checked",
}
_A = {
    "answer": "an answer",
    "above-threshold": "a search above a threshold",
    "population-check": "a check of a population",
    "movement-check": "a check of movements",
    "audit": "an audit",
    "study": "a study",
    "budget": "a budget",
}
_TRIED = "that the function was tried just before the release: its maker wrote it"
_NO_LEDGER = "that it was charged: no ledger was given to look at"
_COVERED = (
    "the signature covers the whole text of the certificate, and nothing else; that the rows were "
    "read as it says is the word of whoever has the key"
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StatementCheck(Shown):
    """What was checked of a certificate.

    Parameters
    ----------
    kind : str
        Kind of what was released.
    agreement : {"bits", "rounding", "different"}
        Whether all that was checked holds; or a sampling that was run again differs by no more than
        computers round differently; or neither.
    checked : tuple of str
        What holds, in words.
    differences : tuple of str
        What does not.
    unchecked : tuple of str
        What nothing here speaks for.
    sampling : Verification, optional
        Of a release: what its own certificate gave, `Certificate`.
    signature : bool, default False
        Whether a signature was checked, by a key.
    ledger : bool, optional
        Whether a ledger was looked at; None of a kind that is of no ledger.
    """

    kind: str
    agreement: Literal["bits", "rounding", "different"]
    checked: tuple[str, ...]
    differences: tuple[str, ...]
    unchecked: tuple[str, ...]
    sampling: Verification | None = field(default=None, repr=False)
    signature: bool = False
    ledger: bool | None = None

    def _brief(self) -> str:
        return f"Check of a certificate of the kind {self.kind}: {self.agreement}"

    @property
    def reproduced(self) -> bool:
        """Whether all that was checked holds."""
        return self.agreement == "bits"

    def explain(self) -> str:
        """Say in a few lines what holds, what does not, and what was not checked.

        Returns
        -------
        str
            Plain words.
        """
        lines = [self._headline(), *[_COVERED] * self.signature]
        for name, found in (
            ("does not hold", self.differences),
            ("holds", self.checked),
            ("not checked", self.unchecked),
        ):
            lines += [f"{name}: {each}" for each in found]
        return "\n".join(lines)

    def _headline(self) -> str:
        """Say in one line what was found, and what nobody looked at."""
        if self.agreement == "different":
            return "does NOT hold"
        seen = ["signature"] * self.signature + ["record"] + ["ledger"] * bool(self.ledger)
        missed = ["that it was released and charged"] * (self.ledger is False)
        missed += ["who wrote it"] * (not self.signature)
        rest = f"not checked: {', '.join(missed)}, and more, said below"
        rest = rest if missed else "what was not checked is said below"
        return f"{_FOUND[self.agreement]} ({', '.join(seen)}); {rest}"


@overload
def verify(
    certificate: Certificate,
    f: Callable[[Any], Any] | None = ...,
    *,
    population: Population | None = ...,
    mechanism: type[Mechanism] | None = ...,
    update: Update | None = ...,
    workers: Workers = ...,
    progress: bool = ...,
    keep: str | PathLike[str] | Keep | None = ...,
    ledger: Ledger | None = ...,
    key: bytes | None = ...,
) -> Verification: ...


@overload
def verify(
    certificate: Statement | str | bytes | PathLike[str],
    f: Callable[[Any], Any] | None = ...,
    *,
    population: Population | None = ...,
    mechanism: type[Mechanism] | None = ...,
    update: Update | None = ...,
    workers: Workers = ...,
    progress: bool = ...,
    keep: str | PathLike[str] | Keep | None = ...,
    ledger: Ledger | None = ...,
    key: bytes | None = ...,
) -> Verification | StatementCheck: ...


@called_as("hs.verify(certificate, f)")
def verify(
    certificate: Certificate | Statement | str | bytes | PathLike[str],
    f: Callable[[Any], Any] | None = None,
    *,
    population: Population | None = None,
    mechanism: type[Mechanism] | None = None,
    update: Update | None = None,
    workers: Workers = None,
    progress: bool = False,
    keep: str | PathLike[str] | Keep | None = None,
    ledger: Ledger | None = None,
    key: bytes | None = None,
) -> Verification | StatementCheck:
    """Check a certificate: whatever follows from its record, and the ledger if it is at hand.

    A sampled sensitivity is sampled again, which takes the function; for a proven one, and for the
    answer of a query, the numbers are followed from what was asked. No private row is needed.

    Parameters
    ----------
    certificate : Certificate, Statement, str, bytes or path
        The certificate, or its JSON, signed or not; or the `pathlib.Path` of a file with that.
    f : callable, optional
        The function that was released, if its sensitivity was sampled.
    population : Population, optional
        The public table or simulator, which the certificate names but does not contain.
    mechanism : type, optional
        The class of the mechanism, if it is not one of hushed.
    update : callable, optional
        What updated the answers where the sensitivity was sampled with ``update``.
    workers : int, str, Engine or distributed.Client, optional
        Worker processes, or a cluster, as for `hushed.sample_sensitivity`.
    progress : bool, default False
        Show a progress bar in a terminal or a notebook.
    keep : str, path or hushed.runs.Keep, optional
        Where finished trials are kept, as by `hushed.sample_sensitivity`.
    ledger : Ledger, optional
        The ledger that was charged: is the entry in it, for this answer? Of a `Statement` only.
    key : bytes, optional
        Public key of whoever has to have signed it, in PEM; needs the extra ``hushed[sign]``.

    Returns
    -------
    Verification or StatementCheck
        Of a `Certificate` whether sensitivity, movements, scale and guarantee come out bit for bit.
        Of a `Statement` what holds, what does not, and what nothing here speaks for. Neither shows
        who wrote it, unless it is signed and a key is given.

    Raises
    ------
    ParameterError
        If it is not a certificate or contradicts itself, the function or the population is missing,
        the sampling it is about would take too long, or no signature of the key fits.
    NotFound
        If there is no file at a path.
    """
    known, signed, unsigned = read_certificate(certificate, key)
    asked: dict[str, Any] = {
        "population": population,
        "mechanism": mechanism,
        "update": update,
        "workers": workers,
        "progress": progress,
        "keep": keep,
    }
    if not isinstance(known, Statement):
        _refuse_ledger(ledger)
        return verify_release(known, f, **asked)
    sampling = None
    if known.kind == "release":
        sampling = verify_release(known.subject.certificate, f, **asked)
    else:
        _refuse_unused(known.kind, f=f, population=population, mechanism=mechanism, update=update)
    return _check(known, sampling, signed, unsigned, ledger=ledger, signature=key is not None)


def check_alone(
    certificate: str | bytes, missing: str, *, ledger: Ledger | None, key: bytes | None
) -> StatementCheck:
    """Check what can be checked of a release whose sampling cannot be run again here."""
    known, signed, unsigned = read_certificate(certificate, key)
    inner = known.subject.certificate if isinstance(known, Statement) else known
    unsigned = [f"its sampling and its numbers: {missing}", *LABELS * bool(inner.labels), *unsigned]
    if isinstance(known, Statement):
        return _check(known, None, signed, unsigned, ledger=ledger, signature=key is not None)
    _refuse_ledger(ledger)
    return StatementCheck(
        kind="release",
        agreement="bits",
        checked=("what it says of itself agrees",),
        differences=(),
        unchecked=(*RELEASES.unchecked, *unsigned, _TRIED, _CONTEXT),
    )


def _refuse_ledger(ledger: Ledger | None) -> None:
    if ledger is not None:
        raise ParameterError(
            "a Certificate names no entry of a ledger: give the certificate of hs.certify",
            parameter="ledger",
        )


def _check(
    known: Statement,
    sampling: Verification | None,
    signed: list[str],
    unsigned: list[str],
    *,
    ledger: Ledger | None,
    signature: bool,
) -> StatementCheck:
    """Say what holds of a statement, and what does not."""
    kind = kind_of_record(known.record)
    checked, unchecked = [*signed, kind.checked], [*kind.unchecked, *unsigned]
    differences: list[str] = []
    if kind.name == "release" and known.subject.certificate.sampling is not None:
        unchecked.append(_TRIED)  # no other function is tried
    if sampling is not None:
        told = checked if sampling.reproduced else differences
        told.append(f"its own certificate: {sampling.explain()}")
    looked_up = kind.charged or kind.compare is not None
    if ledger is not None and not looked_up:
        raise ParameterError(
            f"the certificate of {_A[kind.name]} is of no ledger: leave ledger out"
        )
    if ledger is None:
        unchecked += [*kind.without_ledger, _NO_LEDGER] if looked_up else []
    else:
        found = _compare_with_ledger(known, ledger)
        differences += found
        if not found:
            checked.append("the ledger has what was charged, and what it paid for")
            if kind.since is not None:
                checked.append(kind.since(read_record(known.record), ledger))
        else:
            unchecked += kind.without_ledger
    apart = bool(differences) and (sampling is None or len(differences) > (not sampling.reproduced))
    return StatementCheck(
        kind=kind.name,
        agreement="different" if apart else "bits" if sampling is None else sampling.agreement,
        checked=tuple(checked),
        differences=tuple(differences),
        unchecked=tuple(unchecked),
        sampling=sampling,
        signature=signature,
        ledger=ledger is not None if looked_up else None,
    )


def _refuse_unused(kind: str, **given: object) -> None:
    """Refuse what nothing is asked of: whoever gave it would take it for checked."""
    unused = [name for name, value in given.items() if value is not None]
    if unused:
        raise ParameterError(
            f"the certificate of {_A[kind]} has no function to run: leave {' and '.join(unused)} "
            "out",
            parameter=unused[0],
        )


def read_certificate(
    certificate: Certificate | Statement | str | bytes | PathLike[str], key: bytes | None
) -> tuple[Certificate | Statement, list[str], list[str]]:
    """Read a certificate of any form, and say what its signature shows, and what nothing does."""
    if isinstance(certificate, PathLike):
        path = Path(certificate)
        if not path.exists() or path.is_dir():  # a pipe may be read
            raise NotFound(f"there is no file {name_missing(path)}")
        certificate = path.read_bytes()
    if isinstance(certificate, str) and not {"{", "\n"} & set(certificate):
        raise ParameterError(
            "not a hushed certificate: the text is no JSON object. A text is taken for the "
            "certificate itself; to read a file, give its path as pathlib.Path('FILE')"
        )
    if not isinstance(certificate, Certificate | Statement | str | bytes):
        raise ParameterError(
            "verify takes a certificate, its JSON text or the path of a file, got "
            f"{type(certificate).__name__}; of a release give its certificate, and of "
            "anything else that of hs.certify"
        )
    if isinstance(certificate, str | bytes) and is_signed(certificate):
        if key is None:
            return read_unchecked(certificate), [], [_UNASKED, _CONTEXT]
        told = f"it was signed by the key {key_id(key)}, also data set, remark, person and time"
        return open_signed(certificate, key), [told], []
    if key is not None:
        raise ParameterError(
            "the certificate is not signed: leave key out, or ask for a signed one"
        )
    if isinstance(certificate, Certificate | Statement):
        return certificate, [], [_CONTEXT]
    if is_statement(certificate):
        return Statement.from_json(certificate), [], [_CONTEXT]
    return Certificate.from_json(certificate), [], []


def _compare_with_ledger(known: Statement, ledger: Ledger) -> list[str]:
    """Compare the entry with that of a ledger, and the record with the answer that it stores."""
    compare = kind_of_record(known.record).compare
    if compare is not None:
        return compare(read_record(known.record), ledger)
    if known.entry is None:
        return ["the certificate names no entry of a ledger"]
    budget, number = known.entry.budget, known.entry.number
    try:
        there = find_entry(ledger, budget, number)
        promise = ledger.entries(budget)[number - 1].guarantee
        other = _find_other(ledger, known.entry, known.record)
    except (NotFound, ParameterError) as problem:
        return [f"the ledger does not have the charge: {problem}"]
    found = []
    if there != known.entry:
        found.append(f"entry {number} of budget {budget!r} is another one in this ledger")
    if promise != known.guarantee:
        found.append("the ledger was charged for another promise")
    return [*found, other] if other else found


def _find_other(ledger: Ledger, entry: LedgerEntry, record: str) -> str:
    """Say what a ledger has for a charge in place of a record; nothing where it has the record."""
    try:
        stored = ledger.answer(entry.budget, entry.number)
    except NotFound:  # a server has deleted its text, and keeps its digest
        texts = record, kind_of_record(record).write_again(read_record(record))
        with reading(ledger) as connection:
            if any(was_answer(connection, entry.budget, entry.number, each) for each in texts):
                return ""
        return "the ledger has deleted the answer of this charge, whose digest is of another text"
    if stored is None or not is_same_record(stored, record):
        return "the ledger stores another answer for this charge, or none"
    return ""
