"""Laws of the privacy loss as text, and back, bit for bit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hushed.errors import DamagedLedger, ParameterError
from hushed.privacy_loss import PrivacyProfile
from hushed.privacy_loss._composed import ComposedPLD
from hushed.privacy_loss._discrete import DiscretePLD
from hushed.privacy_loss._families import BoundedRangePLD, Family, LaplacePLD
from hushed.privacy_loss._gaussian import GaussianPLD

_OFF = 1e-6  # rounding of masses and losses
MOST_ATOMS = 4096  # point masses of a finite law that are still written down
_MOST_TOGETHER = 4 * MOST_ATOMS  # point masses, and laws that have none, of all parts of a law
MOST_PARTS = 64  # laws of different kinds or sizes in one: whoever reads an entry prices each

Part = dict[str, Any]
Form = Literal["amount", "count", "number", "number or null", "numbers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """How a law is written down: which numbers of it, and in which form each."""

    kind: type[Any]
    fields: Mapping[str, Form]


# Every law that a ledger takes; PostgreSQL reads this list, too.
LAWS: Mapping[str, Law] = {
    "laplace": Law(kind=LaplacePLD, fields={"bound": "amount"}),
    "bounded-range": Law(kind=BoundedRangePLD, fields={"bound": "amount"}),
    "gaussian": Law(kind=GaussianPLD, fields={"ratio": "amount", "releases": "count"}),
    "finite": Law(
        kind=DiscretePLD,
        fields={
            "losses": "numbers",
            "masses": "numbers",
            "infinite": "number",
            "concentrated": "number",
            "end": "number or null",
        },
    ),
}


def _write_number(value: float) -> str:
    return float(value).hex()


def _read_number(text: str) -> float:
    return float.fromhex(text)


def _read_amount(text: str) -> float:
    """Read an amount of loss; one below 0 would be subtracted from what others have spent."""
    amount = _read_number(text)
    if not amount > 0:
        raise ValueError("no amount")
    return amount


def _read_count(count: Any) -> int:
    if type(count) is not int or count < 1:
        raise ValueError("no count")
    return count


# How to write each form, and how to read it.
_FORMS: Mapping[Form, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "amount": (_write_number, _read_amount),
    "count": (int, _read_count),
    "number": (_write_number, _read_number),
    "number or null": (
        lambda value: None if value is None else _write_number(value),
        lambda text: None if text is None else _read_number(text),
    ),
    "numbers": (
        lambda values: [_write_number(each) for each in values],
        lambda texts: np.array([_read_number(each) for each in texts]),
    ),
}


def write_law(curve: PrivacyProfile) -> list[Part] | None:
    """Describe a privacy profile by the laws that it is the sum of; None if that is too long."""
    if len(curve.parts) > MOST_PARTS:
        return None
    parts: list[Part] = []
    together = 0
    for family, count in curve.parts:
        atoms = family.losses.size if isinstance(family, DiscretePLD) else 1
        together += atoms
        if atoms > MOST_ATOMS or together > _MOST_TOGETHER:
            return None
        parts.append({**_numbers(family), "count": int(count)})
    return parts


def _numbers(family: Family) -> Part:
    for name, law in LAWS.items():
        if isinstance(family, law.kind):
            fields = {field: _FORMS[form][0] for field, form in law.fields.items()}
            return {
                "law": name,
                **{field: write(getattr(family, field)) for field, write in fields.items()},
            }
    raise ParameterError(
        f"a ledger cannot write down the law {type(family).__name__}; charge the guarantee alone"
    )


def read_law(parts: list[Part]) -> PrivacyProfile:
    """Build the privacy profile that `write_law` described."""
    if isinstance(parts, list) and len(parts) > MOST_PARTS:
        raise DamagedLedger(f"an entry describes a law of more than {MOST_PARTS} parts")
    try:
        laws = tuple((_family(part), _read_count(part["count"])) for part in parts)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise DamagedLedger("an entry describes no law that this version knows") from None
    if not laws:
        raise DamagedLedger("an entry describes no law at all")
    return PrivacyProfile(laws[0][0] if laws[0][1] == len(laws) == 1 else ComposedPLD(laws))


def _family(part: Part) -> Family:
    law = LAWS[part["law"]]
    found: Family = law.kind(
        **{field: _FORMS[form][1](part[field]) for field, form in law.fields.items()}
    )
    return _check_masses(found) if isinstance(found, DiscretePLD) else found


def _check_masses(law: DiscretePLD) -> DiscretePLD:
    """Refuse point masses that are those of no two distributions.

    With them the charges of others would count for less: masses that are missing shrink every sum,
    and losses below 0 of too much mass are subtracted from those of the others.
    """
    losses, masses = law.losses, law.masses
    if not 0 < losses.size <= MOST_ATOMS:  # more are never written, and would slow all others
        raise ValueError("no losses, or too many")
    end = losses[-1] if law.end is None else law.end
    with np.errstate(over="ignore", invalid="ignore"):
        whole = (
            losses.shape == masses.shape
            and np.isfinite(losses).all()
            and (np.diff(losses) > 0).all()
            and (masses > 0).all()
            and 0 <= law.infinite <= 1
            and abs(masses.sum() + law.infinite - 1) <= _OFF
            and (masses * np.exp(-losses)).sum() <= 1 + _OFF
            and losses[-1] - _OFF * abs(losses[-1]) <= end < math.inf
            and law.concentrated >= 0
        )
    if not whole:
        raise ValueError("no law")
    return law
