"""One certificate for every kind of record: what was released, where it is charged, who says so."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from hushed._ground.calls import called_as, given_by
from hushed._ground.checks import is_whole
from hushed._ground.json_text import drop_mark, load_once
from hushed._ground.notebook import Card, Shown
from hushed._ground.printing import flat, show_time
from hushed.errors import DoesNotHold, ParameterError
from hushed.guarantee import Guarantee
from hushed.privacy_loss import PrivacyProfile
from hushed.statements._kinds import kind_of_record, names_kind, read_record
from hushed.statements._readings import canonical, is_near

_SCHEMA, _VERSION = "hushed statement", 1
_LONGEST = 50_000_000  # characters of a file
_LONGEST_TEXT = 10_000
REGISTERED = "function "  # among the versions: the name that a team server gave it follows
ASKED = "asked as"  # among them, too: the request of a team server that it answers
_COMPUTED = ("facts", "guarantee")  # mathematical libraries differ in the last digits
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LedgerEntry(Shown):
    """The charge behind a release, as its ledger has it.

    Parameters
    ----------
    budget : str
        Name of the budget.
    number : int
        Place among its entries, from 1.
    at : str
        Time, ISO 8601 in UTC: of the charge, or of the writing where no entry is named.
    note : str
        Remark of whoever charged.
    question : str
        Digest of what was asked; empty if it was not told.
    digest : str
        Link of the ledger's chain.
    terms : str
        What the budget promises, in words.
    """

    budget: str
    number: int
    at: str
    note: str
    question: str
    digest: str
    terms: str

    def __post_init__(self) -> None:
        for each in fields(self):
            if each.name != "number":
                check_line(f"entry.{each.name}", getattr(self, each.name))
        if not is_whole(self.number) or self.number < 1:
            raise ParameterError("entry.number must be a whole number of 1 or more")
        if not _DIGEST.fullmatch(self.digest):
            raise ParameterError("entry.digest must be 64 hexadecimal digits")

    def __str__(self) -> str:
        noted = f": {flat(self.note)}" if self.note else ""
        return f"Entry {self.number} of budget {flat(self.budget)}, {show_time(self.at)}{noted}"


@given_by('hs.certify(answer, data="stays of 2024")')
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Statement(Shown):
    """A certificate of anything that was released; made by `certify`.

    What it promises follows from the record of what was released, and is worked out again whenever
    it is read: a certificate that contradicts itself cannot be made or loaded.

    Parameters
    ----------
    record : str
        What was released and on which terms, as JSON: a table answer, a release with its
        `Certificate`, what an `AboveThreshold` told, a check of a population or of movements, an
        audit, a study, or all of a budget.
    data : str, default ""
        Name of the data set, as its keepers call it.
    note : str, default ""
        What it was released for.
    actor : str, default ""
        Who released it.
    entry : LedgerEntry, optional
        The charge behind it.
    versions : dict of str
        Software that wrote it; of a function that a team server has registered, as ``"function
        NAME"``, the digest of what was registered; of the answer of a team server, as ``"asked
        as"``, a digest of the id and the key of the request.
    created : str
        Time, ISO 8601 in UTC.

    Raises
    ------
    ParameterError
        If the record contradicts itself, or a text cannot be written.
    """

    record: str = field(repr=False)
    data: str = ""
    note: str = ""
    actor: str = ""
    entry: LedgerEntry | None = None
    versions: dict[str, str] = field(default_factory=dict, repr=False)
    created: str = ""

    def _brief(self) -> str:
        named = f", of {self.data}" if self.data else ""
        return f"Certificate of the kind {self.kind}{named}, {self.created}"

    def __post_init__(self) -> None:
        if not isinstance(self.record, str):
            raise ParameterError(f"record must be JSON text, got {type(self.record).__name__}")
        for name in ("data", "note", "actor", "created"):
            check_line(name, getattr(self, name))
        if not isinstance(self.entry, LedgerEntry | None):
            raise ParameterError(f"entry must be a LedgerEntry, got {type(self.entry).__name__}")
        if not isinstance(self.versions, dict):
            raise ParameterError("versions must be a dict of texts")
        for package, version in self.versions.items():
            check_line("versions", package)
            check_line("versions", version)
        kind = kind_of_record(self.record)
        if self.entry is not None and not kind.charged:
            raise ParameterError(
                f"a record of the kind {kind.name} is charged by no single entry: leave entry out"
            )
        record = canonical(json.loads(self.record))
        read_record(record)  # as it is written: it is read once, for it is remembered
        object.__setattr__(self, "record", record)

    @property
    def kind(self) -> str:
        """Kind of the record: answer, release, above-threshold, population-check and so on."""
        return kind_of_record(self.record).name

    @property
    def subject(self) -> Any:
        """What was released, read from the record."""
        return read_record(self.record).subject

    @property
    def guarantee(self) -> Guarantee | None:
        """What is promised; None of an audit, which promises nothing."""
        return read_record(self.record).guarantee

    @property
    def loss(self) -> PrivacyProfile | None:
        """Privacy profile behind the promise, where it is known."""
        return read_record(self.record).loss

    @property
    def record_digest(self) -> str:
        """SHA-256 of the canonical JSON of what was released."""
        return digest_of(json.loads(self.record))

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of what was stated, by which a page names its file."""
        return digest_of(self._stated())

    def _stated(self) -> dict[str, Any]:
        """Give what was stated: nothing that follows from it."""
        return {
            "schema": _SCHEMA,
            "version": _VERSION,
            "record": json.loads(self.record),
            "data": self.data,
            "note": self.note,
            "actor": self.actor,
            "entry": None if self.entry is None else asdict(self.entry),
            "versions": self.versions,
            "created": self.created,
        }

    def _content(self) -> dict[str, Any]:
        """Give what was stated and what follows."""
        reading = read_record(self.record)
        return self._stated() | {
            "kind": self.kind,
            "record_digest": self.record_digest,
            "guarantee": None if reading.guarantee is None else asdict(reading.guarantee),
            "facts": reading.facts,
            "digest": self.digest,
        }

    def to_json(self) -> str:
        """Write as JSON, every number exact.

        Returns
        -------
        str
            One object: the record, what follows from it, and two digests.
        """
        return json.dumps(self._content(), indent=2, sort_keys=True)

    @classmethod
    @called_as("hs.Statement.from_json(statement.to_json())")
    def from_json(cls, text: str | bytes) -> Statement:
        """Read what `to_json` wrote.

        Parameters
        ----------
        text : str or bytes
            One JSON object.

        Returns
        -------
        Statement
            The same certificate.

        Raises
        ------
        ParameterError
            If it is none of this version.
        DoesNotHold
            If it is one, and contradicts itself: it was changed.
        """
        told = _load(text)
        if not isinstance(told, dict) or told.get("schema") != _SCHEMA:
            raise ParameterError(f"this is no {_SCHEMA}{_say_instead(told)}")
        if told.get("version") != _VERSION or not is_whole(told["version"]):
            raise ParameterError(f"a {_SCHEMA} of version {_VERSION} is wanted")
        try:
            return cls._read(told)
        except ParameterError as problem:
            if not names_kind(told.get("record")):
                raise
            raise DoesNotHold(f"the certificate does not hold: {problem.message}") from None

    @classmethod
    def _read(cls, told: dict[str, Any]) -> Statement:
        """Read the fields of a certificate; refuse what does not follow from the others."""
        missing = sorted({each.name for each in fields(cls)} - told.keys())
        if missing:
            raise ParameterError(f"the certificate lacks {', '.join(missing)}")
        found = cls(
            record=canonical(told["record"]),
            data=told["data"],
            note=told["note"],
            actor=told["actor"],
            entry=_read_entry(told["entry"]),
            versions=told["versions"],
            created=told["created"],
        )
        again = json.loads(found.to_json())
        wrong = [name for name in sorted({*told, *again}) if not _is_same(told, again, name)]
        if wrong:
            raise ParameterError(
                f"it was changed: {flat(', '.join(wrong))} does not follow from the rest of it"
            )
        return found

    def _card(self) -> Card:
        """Show what its page shows: what it is about, what was released, and the words."""
        reading = read_record(self.record)
        warned = [("warning", each) for each in reading.warnings]
        words = [f"{head}: {text}" if head else text for head, text in reading.paragraphs]
        facts = (*warned, *list_context(self), *reading.rows)
        return Card(
            title=f"Certificate of {reading.title}",
            text=self.explain(),
            facts=tuple((name, flat(value)) for name, value in facts),
            lines=reading.tables[0].lines if reading.tables else (),
            words="\n\n".join([f"What an outsider could still learn: {reading.outsider}", *words]),
        )

    def explain(self) -> str:
        """Say in plain words what was released and promised, and what an outsider could learn.

        Returns
        -------
        str
            A few paragraphs.
        """
        reading = read_record(self.record)
        lines = [f"Certificate of {reading.title}."]
        lines += [f"{name}: {flat(value)}" for name, value in (*list_context(self), *reading.rows)]
        parts = ["\n".join(lines), *reading.warnings]
        parts += [
            f"{each.name}:\n" + "\n".join("  ".join(line) for line in each.lines)
            for each in reading.tables
        ]
        parts += [f"{head}: {text}" if head else text for head, text in reading.paragraphs]
        return "\n\n".join([*parts, f"What an outsider could still learn: {reading.outsider}"])


def list_context(statement: Statement) -> list[tuple[str, str]]:
    """List what its maker said, and where it is charged."""
    kind, entry = kind_of_record(statement.record), statement.entry
    found = [
        (kind.about, statement.data or _name_missing(statement)),
        ("released for", statement.note or "not said"),
        ("released by", statement.actor or "not said"),
        ("digest of the record", statement.record_digest),
        *((f"registered {name}", f"with digest {at}") for name, at in list_registered(statement)),
    ]
    if entry is not None:
        at = show_time(entry.at)
        limit = [("counts towards", entry.terms.partition(". ")[0])] * bool(entry.terms)
        found[3:3] = [("ledger entry", f"{entry.number} of budget {entry.budget}, {at}"), *limit]
        return found
    found.insert(3, ("certified", show_time(statement.created)))
    if kind.charged:
        found.insert(3, ("ledger entry", "none is named"))
    return found


def list_registered(statement: Statement) -> list[tuple[str, str]]:
    """List the registered function, as the server named it, and the digest of its record."""
    return [each for each in statement.versions.items() if each[0].startswith(REGISTERED)]


def digest_asked(request: str, key: str) -> str:
    """Digest which request of a team server is answered: of ids and keys it tells nothing."""
    return hashlib.sha256(f"{request}\n{key}".encode()).hexdigest()


def _name_missing(statement: Statement) -> str:
    """Say that nobody named what it is about, whose place is private; a budget may tell."""
    entry = statement.entry
    return "not named by who certified it" + (f"; its budget is {entry.budget}" if entry else "")


def digest_of(content: Any) -> str:
    """Digest plain values: SHA-256 of their canonical JSON."""
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def check_line(name: str, text: object) -> None:
    """Refuse what is no text, what nobody could read again, and what is too long."""
    if not isinstance(text, str):
        raise ParameterError(f"{name} must be a text, got {type(text).__name__}", parameter=name)
    if len(text) > _LONGEST_TEXT:
        raise ParameterError(f"{name} has at most {_LONGEST_TEXT} characters", parameter=name)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ParameterError(f"{name} holds half of a pair of surrogates") from None


def _load(text: str | bytes) -> Any:
    """Parse JSON that gives no field twice."""
    if not isinstance(text, str | bytes) or len(text) > _LONGEST:
        raise ParameterError(f"a certificate is text of at most {_LONGEST} characters")
    try:
        return load_once(text, "the certificate")
    except ParameterError:
        raise
    except (ValueError, RecursionError):
        raise ParameterError("a certificate is JSON, and this is not") from None


def _read_entry(told: Any) -> LedgerEntry | None:
    if told is None:
        return None
    if not isinstance(told, dict) or {*told} != {each.name for each in fields(LedgerEntry)}:
        raise ParameterError("entry must have the fields of a LedgerEntry, and no others")
    return LedgerEntry(**told)


def _is_same(told: dict[str, Any], again: dict[str, Any], name: str) -> bool:
    """Compare a part with what it should be; what was computed, up to the last digits."""
    if name not in told or name not in again:
        return False
    if name in _COMPUTED:
        return is_near(told[name], again[name])
    return canonical(told[name]) == canonical(again[name])


def _say_instead(told: Any) -> str:
    """Say what a record is instead, and how to read it, or make of it what is wanted."""
    if not isinstance(told, dict):
        return ""
    if "payloadType" in told:
        return ": it is signed, and hushed.statements.open_signed reads it with the public key"
    if "guarantee" in told and "mechanism" in told:
        return (
            ": it is the plain certificate of a release, of release.certificate.to_json(); "
            "hs.certify(released) makes a statement of the release"
        )
    return ""


def is_statement(text: str | bytes) -> bool:
    """Whether a text says of itself that it is a certificate of this form."""
    try:
        told = json.loads(drop_mark(text))
    except (ValueError, RecursionError):
        return False
    return isinstance(told, dict) and told.get("schema") == _SCHEMA
