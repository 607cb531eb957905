"""Studies as one kind of record: several certificates of the same rows, and their joint promise."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hushed._ground.printing import flat, format_down, format_up
from hushed.accounting import Composition, compose
from hushed.accounting._joint import FIXED, say_of_gamma
from hushed.errors import DamagedLedger, ParameterError
from hushed.guarantee import Guarantee
from hushed.ledger._entries import read_promise, write_promise
from hushed.ledger._laws import read_law, write_law
from hushed.privacy_loss import PrivacyProfile
from hushed.statements._readings import Kind, Reading, Table, canonical
from hushed.statements._words import (
    IF_PEOPLE,
    assume_same_person,
    describe_outsider,
    describe_promise,
    name_unit,
)

_SCHEMA, _VERSION = "hushed study", 1
_MOST_LINES = 40
_ROUNDING = 1e-6
_MOST_LAWS, _MOST_MASSES = 256, 65_536  # of all parts: some seconds of work, and not hours
_DIGEST = re.compile("[0-9a-f]{64}")
_PARTS = (  # kinds that promise something
    *("answer", "release", "study", "budget"),
    *("above-threshold", "population-check", "movement-check"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPart:
    """One of the certificates."""

    digest: str  # of the certificate
    kind: str
    data: str
    note: str
    guarantee: Guarantee
    law: list[dict[str, Any]] | None = field(repr=False)  # of the loss, where it is known
    person: bool = False  # whether each row was declared to be one person

    def __post_init__(self) -> None:
        if not _DIGEST.fullmatch(self.digest) or self.kind not in _PARTS:
            raise ParameterError("a part of the study is of no certificate that promises something")
        if self.law is not None and is_stronger(read_law(self.law), self.guarantee):
            raise ParameterError(
                "a part of the study promises one thing, and is added up as if it promised more"
            )

    @property
    def loss(self) -> PrivacyProfile | None:
        """Privacy profile behind the promise, where it is known."""
        return None if self.law is None else read_law(self.law)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Certificates of the same rows, and what they promise together."""

    parts: tuple[StudyPart, ...]
    composition: Composition


def find_law(loss: PrivacyProfile | None, promise: Guarantee) -> list[dict[str, Any]] | None:
    """Describe the loss behind a promise, unless it is unknown, or smaller than was promised."""
    return None if loss is None or is_stronger(loss, promise) else write_law(loss)


def is_stronger(loss: PrivacyProfile, promise: Guarantee, share: float = _ROUNDING) -> bool:
    """Whether a law promises more than the promise that it is to be behind, by a share or more."""
    return loss.epsilon(promise.delta) < promise.epsilon * (1 - share)


def compose_study(parts: Sequence[StudyPart], delta: float) -> Study:
    """Work out what several certificates promise together."""
    digests = [each.digest for each in parts]
    if not parts or len(set(digests)) < len(digests):
        raise ParameterError(
            "a study is of one certificate or more, each once; two releases that gave the same are "
            "told apart by their notes"
        )
    _require_short([each.law for each in parts])
    return Study(parts=tuple(parts), composition=compose(parts, delta=delta))


def _require_short(laws: Sequence[list[dict[str, Any]] | None]) -> None:
    """Refuse what would take too long to be added up: many laws of point masses, or long ones.

    A promise without a law is added up as a law of a few point masses.
    """
    masses = [
        len(each["losses"])
        for law in laws
        for each in law or ()
        if isinstance(each.get("losses"), list)
    ]
    laws_of_masses = len(masses) + sum(law is None for law in laws)
    if laws_of_masses > _MOST_LAWS or sum(masses) > _MOST_MASSES:
        raise ParameterError(
            f"a study adds up at most {_MOST_LAWS} laws of point masses, with {_MOST_MASSES:,} "
            f"together (a promise without a law is one), got {laws_of_masses} with "
            f"{sum(masses):,}: charge the releases to one budget, and certify that"
        )


def write_study(study: Study) -> str:
    """Write a study as a record: what its parts promise, and not what follows."""
    parts = [
        {
            "digest": each.digest,
            "kind": each.kind,
            "data": each.data,
            "note": each.note,
            "guarantee": write_promise(each.guarantee),
            "law": each.law,
            **({"person": True} if each.person else {}),  # older ones do not say it
        }
        for each in study.parts
    ]
    found = {"schema": _SCHEMA, "version": _VERSION, "parts": parts}
    return canonical(found | {"delta": study.composition.delta})


def _read(text: str) -> Reading:
    """Read a study, and compose it again."""
    told = json.loads(text)
    if (told["schema"], told["version"]) != (_SCHEMA, _VERSION):
        raise ParameterError("the record is no study of this version")
    _require_short([each["law"] for each in told["parts"]])
    try:
        parts = [
            StudyPart(
                **{name: str(each[name]) for name in ("digest", "kind", "data", "note")},
                guarantee=read_promise(each["guarantee"]),
                law=each["law"],
                person=_read_person(each),
            )
            for each in told["parts"]
        ]
        study = compose_study(parts, told["delta"])
    except DamagedLedger:
        raise ParameterError("a part of the study holds no promise, or no law") from None
    found = study.composition
    promise, person = found.guarantee, all(each.person for each in study.parts)
    if promise is None:
        raise ParameterError("a part of the study promises nothing")
    return Reading(
        title="a study",
        subject=study,
        guarantee=promise,
        facts={
            "releases": found.releases,
            "method": found.method,
            "theorem": found.theorem,
            "smallest_epsilon": [found.exact.low, found.exact.high],
        },
        rows=(
            ("epsilon, together", format_up(promise.epsilon)),
            ("delta, together", format_up(promise.delta)),
            ("gamma, together", format_up(promise.gamma)),
            ("neighbours", f"{promise.neighbours}, {name_unit(promise, person=person)}"),
            ("smallest possible", f"epsilon {format_down(found.exact.low)} at this delta"),
            ("by the promises alone", _add_promises(study)),
        ),
        tables=(_list_parts(study),),
        outsider=describe_outsider(
            promise,
            "which releases belong to the study",
            "what each of the certificates assumes" + ", and the plan" * (len(study.parts) > 1),
            person=person,
        ),
        paragraphs=(
            ("What is promised", describe_promise(promise, person=person)),
            ("How it was added up", f"{found.theorem}. {' '.join(found.warnings)}".strip()),
            ("What is assumed", _assume(study)),
        ),
    )


def _read_person(told: dict[str, Any]) -> bool:
    """Whether each row is one person, which a study says where it is so."""
    if told.get("person", True) is not True:
        raise ParameterError("a part of the study says of people what is no answer")
    return "person" in told


def _add_promises(study: Study) -> str:
    """Say what the promises make without the laws of the losses, which nothing here can check."""
    try:
        found = compose([each.guarantee for each in study.parts], delta=study.composition.delta)
    except ParameterError:
        return "nothing at this delta"
    if found.guarantee is None:
        return "nothing at this delta"
    return f"epsilon {format_up(found.guarantee.epsilon)} at this delta"


def _list_parts(study: Study) -> Table:
    lines: list[tuple[str, ...]] = [
        ("certificate", "kind", "data set", "released for", "epsilon", "delta", "gamma")
    ]
    for each in study.parts:
        g = each.guarantee
        numbers = map(format_up, (g.epsilon, g.delta, g.gamma))
        lines.append((each.digest[:16], each.kind, flat(each.data), flat(each.note), *numbers))
    return Table(name="What the study released", lines=tuple(lines), most=_MOST_LINES)


def _assume(study: Study) -> str:
    named = sorted({flat(each.data) for each in study.parts if each.data})
    told = (
        "All releases are of the same rows; what was released from them and is not listed here "
        "adds to it. Whatever one of the certificates assumes is assumed here, too: they are "
        "checked one by one, and named by their digests."
    )
    if len(study.parts) > 1:
        sampled = say_of_gamma(study.composition.guarantee)
        told += f" {FIXED}{' ' * bool(sampled)}{sampled}"
        told += f"{assume_same_person(study.parts[0].guarantee)}"
    if len(named) > 1:
        told += f" Their data sets have different names: {', '.join(named)}."
    return told


STUDIES = Kind(
    name="study",
    schema=_SCHEMA,
    takes=(Study,),
    write=write_study,
    read=_read,
    write_again=lambda reading: write_study(reading.subject),
    checked="digests; the joint promise follows from those of the parts",
    unchecked=(
        "that the parts promise, and lose, what stands here: check the certificate of each",
        "that all releases of the study are listed, and that no answer decided how many there are, "
        "or how much one may lose",
        IF_PEOPLE,
    ),
)
