"""Certificates of statistics whose sensitivity is known on every table: no population, no gamma."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Literal

from hushed import noise
from hushed._functions._fingerprints import look
from hushed.errors import HushedError, ParameterError
from hushed.measurements._statistics import end_in
from hushed.mechanisms import InverseSensitivity, ProposeTest, Smooth, StableMode
from hushed.mechanisms._inverse import WIDTH, rows_astray
from hushed.mechanisms._registry import STATISTIC_MECHANISMS, StatisticMechanism
from hushed.releasing._record_checks import (
    CLOSE,
    FINGERPRINT,
    Drawn,
    list_wrong_draw,
    list_wrong_types,
)
from hushed.spaces import Norm
from hushed.statistics import Numeric, Statistic, from_description
from hushed.transformations._chain import describe_chain, least_distance

if TYPE_CHECKING:
    from hushed.releasing._certificate import Certificate
    from hushed.transformations import Transformation

_LAWS = {"lomax": "two-sided Lomax noise", "t2": "Student noise of 2 degrees"}


def describe_draw(mechanism: StatisticMechanism) -> Drawn:
    """Scale, grid, number of values and accuracy, as the record of a mechanism states them."""
    if isinstance(mechanism, Smooth):
        grid = noise.range_grid(*mechanism.statistic.span)
        return mechanism.factor, grid, 1, mechanism.accuracy(0.05)
    if isinstance(mechanism, ProposeTest):
        return mechanism.scale, mechanism.grid, 1, mechanism.accuracy(0.05)
    if isinstance(mechanism, StableMode):
        return mechanism.scale, 0, len(mechanism.statistic.categories), mechanism.accuracy(0.05)
    return _choice(mechanism.epsilon, mechanism.least, mechanism.count)


def _choice(epsilon: float, least: float, count: int) -> Drawn:
    scale, grid = noise.selection_scale(width=WIDTH, epsilon=epsilon)
    return scale, grid, count, rows_astray(epsilon, least, 0.05)


def describe_movement(mechanism: StatisticMechanism) -> tuple[float, Norm, str]:
    """Say how far what moves between neighbours, in which norm, and by which argument."""
    if isinstance(mechanism, Smooth):
        moved = mechanism.statistic.global_sensitivity
        return moved, "l1", f"smooth sensitivity, {_LAWS[mechanism.noise]}"
    if isinstance(mechanism, ProposeTest):
        return mechanism.bound, "l1", "distance from larger movements (propose-test-release)"
    if isinstance(mechanism, StableMode):
        return 1.0, "sup", "distance to instability"
    return 1.0, "sup", "inverse sensitivity"


def describe_outside(statistic: Statistic) -> Literal["clamp", "no range"]:
    """Say what was done with rows outside of the range."""
    return "clamp" if isinstance(statistic, Numeric) else "no range"


def digest_question(mechanism: StatisticMechanism, chain: Transformation | None = None) -> str:
    """Digest what a release asks; the same for the same script in another process."""
    facts: list[Any] = [mechanism.name, mechanism.statistic.description(), mechanism.parameters]
    if chain is not None:
        facts += [describe_chain(chain), sorted(look(chain).marks.items())]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def check_chain(chain: Transformation, mechanism: StatisticMechanism) -> None:
    """Refuse steps that do not fit, or after which one row is not one row any more."""
    chain >> end_in(mechanism)  # refuses another column, size or relation
    source, name = chain.source, mechanism.name.replace("-", "_")
    advice = f"end the chain with measurements.{name}(...), and charge its guarantee()"
    if source.metric.unit == "user" or getattr(source.domain, "least", None) is not None:
        raise ParameterError(
            "a statistic is certified for every table and for one row of it; the chain takes "
            f"{source}: {advice}"
        )
    if source.neighbours != mechanism.statistic.neighbours:
        raise ParameterError(
            f"the statistic is for {mechanism.statistic.neighbours} neighbours, the chain takes "
            f"{source}: {advice}"
        )
    moved = chain.map(least_distance(source))
    if moved.value != 1 or moved.terms:
        raise ParameterError(
            f"one row changes up to {moved.value:g} rows of what {chain.name} gives, and a "
            f"statistic is certified for one: {advice}, which counts them all"
        )


def is_rebuilt(certificate: Certificate) -> bool:
    """Whether the certificate alone says all; given candidates have only a fingerprint in it."""
    stated = certificate.mechanism.parameters
    return stated.get("spacing") != "given" and not stated.get("prior", False)


def rebuild(certificate: Certificate) -> StatisticMechanism:
    """Build statistic and mechanism again; given candidates are replaced by the default ones."""
    statistic: Any = from_description(certificate.statistic or {})
    stated, name = certificate.mechanism.parameters, certificate.mechanism.name
    if name not in STATISTIC_MECHANISMS:
        raise ParameterError(f"{name} releases no statistic")
    if name == InverseSensitivity.name:
        return InverseSensitivity(statistic, epsilon=float(stated["epsilon"]))
    options: dict[str, Any] = dict(stated)
    return STATISTIC_MECHANISMS[name](statistic, **options)


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
        *list_wrong_draw(certificate, wanted, "statistic and parameters"),
        *_of_promise(certificate, mechanism),
    ]


def _of_parameters(certificate: Certificate, mechanism: StatisticMechanism) -> list[str]:
    """Compare names and kinds of all that is stated; given candidates have no more than those."""
    stated, fresh = certificate.mechanism.parameters, mechanism.parameters
    found = list_wrong_types(stated, fresh)
    if set(stated) != set(fresh):
        return found
    if isinstance(mechanism, InverseSensitivity) and not found:
        chosen = stated["spacing"] == "given" and isinstance(mechanism.statistic, Numeric)
        most, count = int(fresh["candidates"]), int(stated["candidates"])
        all_there = count == most or (stated["prior"] and count < most)  # but those of no weight
        if not (chosen or (stated["spacing"] == fresh["spacing"] and all_there)):
            found.append("mechanism.parameters.spacing and candidates are not of that statistic")
        if not FINGERPRINT.fullmatch(str(stated["fingerprint"])):
            found.append("mechanism.parameters.fingerprint is none")
        elif is_rebuilt(certificate) and stated["least"] != fresh["least"]:
            found.append("mechanism.parameters.least is not that of so many candidates")
    if certificate.statistic != mechanism.statistic.description():
        found.append("statistic is not described in full")
    return found


def _stated_choice(certificate: Certificate) -> Drawn:
    """Follow the numbers of a choice among given candidates from what is stated of them."""
    stated = certificate.mechanism.parameters
    least, count = float(stated["least"]), int(stated["candidates"])
    even = 1 / count if count > 0 else 0.0
    if not 0 < least <= even * (1 + CLOSE) or (not stated["prior"] and least != even):
        raise ParameterError("least is no share of so many candidates")
    return _choice(float(stated["epsilon"]), least, count)


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
        "outside, confirmed, unsearched and sampling are not those of a statistic": (
            certificate.outside,
            certificate.confirmed,
            certificate.unsearched,
            certificate.sampling,
        )
        == (describe_outside(mechanism.statistic), "", (), None),
    }
    return [text for text, holds in rules.items() if not holds]
