"""Certificates of statistics whose sensitivity is known on every table: no population, no gamma."""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
from typing import TYPE_CHECKING, Any, Literal

from hushed import noise
from hushed._printing import format_down, format_exactly, format_up
from hushed.errors import HushedError, ParameterError
from hushed.mechanisms import InverseSensitivity, Smooth
from hushed.mechanisms._inverse import WIDTH, rows_astray
from hushed.spaces import Norm
from hushed.statistics import Mode, Numeric, Statistic, from_description

if TYPE_CHECKING:
    from hushed.releasing._certificate import Certificate

StatisticMechanism = InverseSensitivity | Smooth
STATISTIC_MECHANISMS = (InverseSensitivity.name, Smooth.name)
Drawn = tuple[float, int, int, float]  # scale, grid, values and accuracy of a mechanism's record

_FINGERPRINT = re.compile("[0-9a-f]{64}")
_CLOSE = 1e-9  # mathematical libraries differ in the last digits
_LAWS = {"lomax": "two-sided Lomax noise", "t2": "Student noise of 2 degrees"}


def describe_draw(mechanism: StatisticMechanism) -> Drawn:
    """Scale, grid, number of values and accuracy, as the record of a mechanism states them."""
    if isinstance(mechanism, Smooth):
        grid = noise.range_grid(*mechanism.statistic.span)
        return mechanism.factor, grid, 1, mechanism.accuracy(0.05)
    return _choice(mechanism.epsilon, mechanism.least, len(mechanism.values))


def _choice(epsilon: float, least: float, count: int) -> Drawn:
    scale, grid = noise.selection_scale(width=WIDTH, epsilon=epsilon)
    return scale, grid, count, rows_astray(epsilon, least, 0.05)


def describe_movement(mechanism: StatisticMechanism) -> tuple[float, Norm, str]:
    """Say how far what moves between neighbours, in which norm, and by which argument."""
    if isinstance(mechanism, Smooth):
        moved = mechanism.statistic.global_sensitivity
        return moved, "l1", f"smooth sensitivity, {_LAWS[mechanism.noise]}"
    return 1.0, "sup", "inverse sensitivity"


def describe_outside(statistic: Statistic) -> Literal["clamp", "no range"]:
    """Say what was done with rows outside of the range."""
    return "clamp" if isinstance(statistic, Numeric) else "no range"


def digest_question(mechanism: StatisticMechanism) -> str:
    """Digest what a release asks; the same for the same script in another process."""
    facts = [mechanism.name, mechanism.statistic.description(), mechanism.parameters]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def is_rebuilt(certificate: Certificate) -> bool:
    """Whether the certificate alone says all; given candidates have only a fingerprint in it."""
    stated = certificate.mechanism.parameters
    return stated.get("spacing") != "given" and not stated.get("prior", False)


def rebuild(certificate: Certificate) -> StatisticMechanism:
    """Build statistic and mechanism again; given candidates are replaced by the default ones."""
    statistic = from_description(certificate.statistic or {})
    stated = certificate.mechanism.parameters
    if certificate.mechanism.name == "smooth":
        options: dict[str, Any] = dict(stated)
        return Smooth(_numeric(statistic), **options)
    if certificate.mechanism.name != "inverse-sensitivity":
        raise ParameterError(f"{certificate.mechanism.name} releases no statistic")
    return InverseSensitivity(statistic, epsilon=float(stated["epsilon"]))


def _numeric(statistic: Statistic) -> Numeric:
    if isinstance(statistic, Mode):
        raise ParameterError("a mode has no smooth sensitivity")
    return statistic


def list_contradictions(certificate: Certificate) -> list[str]:
    """List what does not follow from statistic and parameters."""
    try:
        mechanism = rebuild(certificate)
        wanted = describe_draw(mechanism)
        if not is_rebuilt(certificate):
            wanted = _stated_choice(certificate)
    except (HushedError, KeyError, TypeError, ValueError, OverflowError) as problem:
        return [f"statistic and parameters make no mechanism ({problem})"]
    return [
        *_of_parameters(certificate, mechanism),
        *_of_record(certificate, wanted),
        *_of_promise(certificate, mechanism),
    ]


def _of_parameters(certificate: Certificate, mechanism: StatisticMechanism) -> list[str]:
    """Compare names and kinds of all that is stated; given candidates have no more than those."""
    stated, fresh = certificate.mechanism.parameters, mechanism.parameters
    if set(stated) != set(fresh):
        return [f"mechanism.parameters must be {', '.join(fresh)}"]
    found = [
        f"mechanism.parameters.{name} is of another type"
        for name, value in fresh.items()
        if not _alike(stated[name], value)
    ]
    if isinstance(mechanism, InverseSensitivity) and not found:
        chosen = stated["spacing"] == "given" and isinstance(mechanism.statistic, Numeric)
        same = (stated["spacing"], stated["candidates"]) == (fresh["spacing"], fresh["candidates"])
        if not (chosen or same):
            found.append("mechanism.parameters.spacing and candidates are not of that statistic")
        if not _FINGERPRINT.fullmatch(str(stated["fingerprint"])):
            found.append("mechanism.parameters.fingerprint is none")
    if certificate.statistic != mechanism.statistic.description():
        found.append("statistic is not described in full")
    return found


def _alike(one: object, other: object) -> bool:
    """Whether both are numbers, texts or truth values; a whole number must stay one."""
    if type(other) is float:
        return type(one) in (int, float)
    return type(one) is type(other)


def _stated_choice(certificate: Certificate) -> Drawn:
    """Follow the numbers of a choice among given candidates from what is stated of them."""
    stated = certificate.mechanism.parameters
    least, count = float(stated["least"]), int(stated["candidates"])
    if not 0 < least <= 1 or count < 1 or (not stated["prior"] and least != 1 / count):
        raise ParameterError("least is no share of so many candidates")
    return _choice(float(stated["epsilon"]), least, count)


def _of_record(certificate: Certificate, wanted: Drawn) -> list[str]:
    """Compare scale, grid, number of values and accuracy."""
    record = certificate.mechanism
    stated = (record.scale, record.grid, record.values, record.accuracy)
    return [
        f"mechanism.{name} {one!r} does not follow from statistic and parameters ({other!r} does)"
        for name, one, other in zip(
            ("scale", "grid", "values", "accuracy"), stated, wanted, strict=True
        )
        if one is None or not _near(one, other)
    ]


def _near(one: float, other: float) -> bool:
    """Whether a stated number is the one that follows; whole numbers are compared exactly."""
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    return abs(one) <= sys.float_info.max and math.isclose(one, other, rel_tol=_CLOSE)


def _of_promise(certificate: Certificate, mechanism: StatisticMechanism) -> list[str]:
    """Compare the promise, and what it is said to rest on."""
    moved, norm, argument = describe_movement(mechanism)
    rules = {
        "guarantee does not follow from the mechanism": certificate.guarantee
        == mechanism.guarantee,
        "neighbours are not those of the statistic": certificate.neighbours
        == mechanism.statistic.neighbours,
        "sensitivity, norm or argument are not those of the mechanism": (
            certificate.sensitivity,
            certificate.norm,
            certificate.argument,
        )
        == (moved, norm, argument),
        "mechanism.stated is for a mechanism of the caller's own": not certificate.mechanism.stated,
        "person contradicts the unit of the statistic": certificate.person
        == (mechanism.statistic.unit == "person"),
        "outside, confirmed and sampling are not those of a statistic": (
            certificate.outside,
            certificate.confirmed,
            certificate.sampling,
        )
        == (describe_outside(mechanism.statistic), "", None),
    }
    return [text for text, holds in rules.items() if not holds]


def explain_accuracy(certificate: Certificate, rows: str) -> str:
    """Say how exact the answer is, as far as that is public."""
    record = certificate.mechanism
    scale, accuracy = float(record.scale or 0), float(record.accuracy or 0)
    if record.name == "smooth":
        return (
            "How exact the answer is: the noise has the scale of the answer's smooth sensitivity "
            f"on these rows, times {format_down(scale, 4)}. That sensitivity is private, "
            "and so is the error; with probability 95 % it is at most "
            f"{format_up(accuracy, 4)} times as large. "
            f"What was drawn was rounded to a multiple of 2^{record.grid} and moved into the range."
        )
    return (
        f"How exact the answer is: it is one of {record.values} public values. With probability "
        f"95 % it is what the table would have answered with {math.ceil(accuracy)} {rows} "
        "changed, or fewer, beyond those that the best of these values needs."
    )


def explain_reach(certificate: Certificate) -> str:
    """Say whom the promise covers, and why."""
    statistic = certificate.statistic or {}
    known = statistic.get("rows")
    number = "is private, too" if known is None else f"is public: {known}"
    what = {
        "smooth": "the scale of the noise changes little from neighbour to neighbour, and hides "
        "how far the answer moves there",
        "inverse-sensitivity": "one row changes by at most 1 how many rows must change before a "
        "value is the answer, whatever the table",
    }[certificate.mechanism.name]
    person = "every person" if certificate.person else "every row"
    range_words = ""
    if "low" in statistic:
        range_words = (
            f" Each row was moved into [{format_exactly(statistic['low'])}, "
            f"{format_exactly(statistic['high'])}] by itself; what is not a "
            "number counted as the low end."
        )
    share = next(
        (f" ({each} {statistic[each]!r})" for each in ("q", "trim") if each in statistic), ""
    )
    return (
        f"Whom it protects: this holds for every table and {person}; no population is assumed. "
        f"Released was the {statistic.get('kind')}{share}, by its {certificate.argument}: {what}. "
        f"The number of rows {number}.{range_words}"
    )


def explain_assumptions() -> str:
    """Say what is assumed."""
    lines = [
        "the range, the candidates and all settings were chosen without looking at the private "
        "rows",
        "the released answer is the only output: not the running time",
    ]
    return "What is assumed:\n" + "\n".join(f"  - {line}" for line in lines)
