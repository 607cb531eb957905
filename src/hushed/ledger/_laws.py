"""Laws of the privacy loss as text, and back, bit for bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hushed.errors import DamagedLedger, ParameterError
from hushed.privacy_loss import PrivacyProfile
from hushed.privacy_loss._composed import ComposedPLD
from hushed.privacy_loss._discrete import DiscretePLD
from hushed.privacy_loss._families import BoundedRangePLD, Family, GaussianPLD, LaplacePLD

_OFF = 1e-6  # rounding of masses and losses
MOST_ATOMS = 4096  # point masses of a finite law that are still written down

Part = dict[str, Any]


def write_law(curve: PrivacyProfile) -> list[Part] | None:
    """Describe a privacy profile by the laws that it is the sum of."""
    parts: list[Part] = []
    for family, count in curve.parts:
        if isinstance(family, DiscretePLD) and family.losses.size > MOST_ATOMS:
            return None
        parts.append({**_numbers(family), "count": int(count)})
    return parts


def _numbers(family: Family) -> Part:
    if isinstance(family, LaplacePLD):
        return {"law": "laplace", "bound": family.bound.hex()}
    if isinstance(family, BoundedRangePLD):
        return {"law": "bounded-range", "bound": family.bound.hex()}
    if isinstance(family, GaussianPLD):
        return {"law": "gaussian", "ratio": family.ratio.hex(), "releases": family.releases}
    if isinstance(family, DiscretePLD):
        return {
            "law": "finite",
            "losses": [float(x).hex() for x in family.losses],
            "masses": [float(x).hex() for x in family.masses],
            "infinite": float(family.infinite).hex(),
            "concentrated": float(family.concentrated).hex(),
            "end": None if family.end is None else float(family.end).hex(),
        }
    raise ParameterError(
        f"a ledger cannot write down the law {type(family).__name__}; charge the guarantee alone"
    )


def read_law(parts: list[Part]) -> PrivacyProfile:
    """Build the privacy profile that `write_law` described."""
    try:
        laws = tuple((_family(part), int(part["count"])) for part in parts)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise DamagedLedger("an entry describes no law that this version knows") from None
    if not laws or min(count for _, count in laws) < 1:
        raise DamagedLedger("an entry describes a law that occurs less than once")
    return PrivacyProfile(laws[0][0] if laws[0][1] == len(laws) == 1 else ComposedPLD(laws))


def _family(part: Part) -> Family:
    kind = part["law"]
    if kind == "laplace":
        return LaplacePLD(float.fromhex(part["bound"]))
    if kind == "bounded-range":
        return BoundedRangePLD(float.fromhex(part["bound"]))
    if kind == "gaussian":
        return GaussianPLD(float.fromhex(part["ratio"]), int(part["releases"]))
    if kind == "finite":
        return _check_masses(
            DiscretePLD(
                np.array([float.fromhex(x) for x in part["losses"]]),
                np.array([float.fromhex(x) for x in part["masses"]]),
                float.fromhex(part["infinite"]),
                float.fromhex(part["concentrated"]),
                None if part["end"] is None else float.fromhex(part["end"]),
            )
        )
    raise ValueError(kind)


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
