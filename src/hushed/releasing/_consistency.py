"""Whether the numbers of a certificate agree with each other; nothing is sampled."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from hushed.blocks import Blocks
from hushed.errors import HushedError, ParameterError
from hushed.guarantee import Guarantee
from hushed.mechanisms._bound_search import ARGUMENTS, BoundSearch
from hushed.mechanisms._objective_draw import ObjectiveDraw
from hushed.mechanisms._posterior_draw import PosteriorDraw
from hushed.mechanisms._registry import CERTIFIED, SEARCHES, STATISTIC_MECHANISMS, calibrate
from hushed.mechanisms._sparse_vector import SparseVector
from hushed.releasing._blocks import list_wrong_blocks
from hushed.releasing._mechanisms import Admitted, admit_mechanism, is_free_name
from hushed.releasing._record_checks import is_near
from hushed.releasing._sampling_consistency import list_wrong_sampling
from hushed.releasing._statistics import list_contradictions
from hushed.sensitivity import Sensitivity, global_sensitivity
from hushed.sensitivity._origin import is_proof
from hushed.statistics import from_description

if TYPE_CHECKING:
    from hushed.releasing._certificate import Certificate, MechanismRecord, SamplingRecord


_FOLLOW = ("epsilon", "delta", "neighbours")


def rebuild_mechanism(certificate: Certificate, kind: type[Any] | None = None) -> Admitted:
    """Build the mechanism again from the stated sensitivity and parameters."""
    stated = Sensitivity(
        value=certificate.sensitivity,
        norm=certificate.norm,
        neighbours=certificate.neighbours,
        unit=certificate.guarantee.unit,
        argument="the value on the certificate",
    )
    return build_mechanism(certificate.mechanism, stated, kind)


def build_mechanism(
    record: MechanismRecord, sensitivity: Sensitivity, kind: type[Any] | None
) -> Admitted:
    """Build a recorded mechanism on a sensitivity."""
    if kind is None:
        return admit_mechanism(calibrate(record.name, sensitivity, record.parameters))
    try:
        return admit_mechanism(kind(sensitivity, **record.parameters))
    except TypeError as cause:
        raise ParameterError(f"{kind.__name__} takes other parameters: {cause}") from None


def check_agreement(certificate: Certificate) -> None:
    """Refuse a certificate whose numbers contradict each other."""
    if certificate.mechanism.name == Blocks.name:
        wrong = list_wrong_blocks(certificate)
    elif certificate.mechanism.name in STATISTIC_MECHANISMS:
        wrong = list_contradictions(certificate)
    else:
        wrong = _list_wrong(certificate)
    wrong += _of_told_values(certificate.mechanism)
    if certificate.chain and certificate.mechanism.name not in STATISTIC_MECHANISMS:
        wrong.append("chain is for a statistic: of any other function it stands in the argument")
    if certificate.labels and not _are_labels(certificate):
        wrong.append("labels must be distinct, one for each released number")
    if wrong:
        raise ParameterError(f"the certificate contradicts itself: {'; '.join(wrong)}")


def _are_labels(certificate: Certificate) -> bool:
    """Whether there is one label for each number, and none twice."""
    labels, count = certificate.labels, certificate.mechanism.values
    return len(set(labels)) == len(labels) == count and all(map(str.strip, labels))


def _list_wrong(certificate: Certificate) -> list[str]:
    """List what does not fit of a proven or sampled sensitivity."""
    wrong = [
        *_of_mechanism(certificate),
        *_of_gamma(certificate),
        *_of_words(certificate),
        *_of_statistic(certificate),
    ]
    sampling = certificate.sampling
    if sampling is not None:
        wrong += list_wrong_sampling(certificate, sampling)
    return wrong


def _of_statistic(certificate: Certificate) -> list[str]:
    """Compare with the global sensitivity of the statistic that is named, if one is."""
    if certificate.statistic is None:
        return []
    try:
        statistic: Any = from_description(certificate.statistic)
        bound = global_sensitivity(statistic, certificate.norm)
    except (HushedError, KeyError, TypeError, ValueError, OverflowError) as problem:
        return [f"statistic has no global sensitivity ({problem})"]
    said = {
        "sensitivity": (certificate.sensitivity, bound.value),
        "argument": (certificate.argument, bound.argument),
        "neighbours": (certificate.neighbours, bound.neighbours),
        "unit": (certificate.guarantee.unit, bound.unit),
        "person": (certificate.person, bound.person),
        "statistic": (certificate.statistic, statistic.description()),
        "sampling": (certificate.sampling, None),
    }
    return [
        f"{name} is not that of the global sensitivity of the statistic"
        for name, (stated, right) in said.items()
        if stated != right
    ]


def _of_mechanism(certificate: Certificate) -> list[str]:
    """Compare with the mechanism that sensitivity and parameters make."""
    record, promise = certificate.mechanism, certificate.guarantee
    if record.values < 1:
        return ["mechanism.values must be 1 or more"]
    if record.stated:
        return _of_stated(certificate)
    if record.name not in CERTIFIED:
        return [f"mechanism.name must be one of {tuple(CERTIFIED)}, got {record.name!r}"]
    try:
        mechanism = rebuild_mechanism(certificate)
        if mechanism.values_of((record.values,)) != record.values:
            return [f"{record.name} does not release {record.values} values"]
        scale, grid = mechanism.drawn(record.values)
        fresh, accuracy = mechanism.guarantee, mechanism.error(record.values)
    except (HushedError, TypeError, ValueError, OverflowError, ZeroDivisionError) as problem:
        return [f"sensitivity and parameters make no mechanism ({problem})"]
    found = []
    if not is_near(record.scale, scale) or record.grid != grid:
        found.append(
            f"mechanism.scale {record.scale!r} on grid {record.grid} does not follow from "
            f"sensitivity and parameters ({scale!r} on {grid} does)"
        )
    if not is_near(record.accuracy, accuracy):
        found.append(f"mechanism.accuracy {record.accuracy!r} does not follow ({accuracy!r} does)")
    if not is_near(record.value_scale, mechanism.value_scale):
        found.append(
            f"mechanism.value_scale {record.value_scale!r} does not follow "
            f"({mechanism.value_scale!r} does)"
        )
    said = [(name, getattr(promise, name), getattr(fresh, name)) for name in _FOLLOW]
    return found + [
        f"guarantee.{name} {stated!r} does not follow from the mechanism ({right!r} does)"
        for name, stated, right in said
        if stated != right
    ]


def _of_told_values(record: MechanismRecord) -> list[str]:
    """Refuse noise on values of a mechanism that tells none."""
    tells = record.name == SparseVector.name and not record.stated
    return [] if tells or record.value_scale is None else ["mechanism.value_scale of one without"]


def _of_stated(certificate: Certificate) -> list[str]:
    """Refuse what no mechanism of a caller may state; that it keeps its word is not known."""
    record, promise = certificate.mechanism, certificate.guarantee
    sizes = [each for each in (record.scale, record.accuracy) if each is not None]
    rules = {
        f"mechanism.name {record.name!r} is not one that a caller's own mechanism may have": (
            is_free_name(record.name)
        ),
        "mechanism.scale and mechanism.accuracy must be 0 or more": all(x >= 0 for x in sizes),
        "mechanism.grid of a mechanism that is not hushed's own": record.grid is None,
        "sensitivity must be above 0": certificate.sensitivity > 0,
        "guarantee.neighbours is not that of the sensitivity": promise.neighbours
        == certificate.neighbours,
        "guarantee.epsilon must be finite, delta below 1, and not both 0": promise.delta < 1
        and 0 < promise.epsilon + promise.delta < math.inf,
    }
    return [text for text, holds in rules.items() if not holds]


def _of_gamma(certificate: Certificate) -> list[str]:
    """Compare what the guarantee says of gamma with where it comes from."""
    promise, sampling = certificate.guarantee, certificate.sampling
    if sampling is None:
        sure = Guarantee(
            epsilon=promise.epsilon,
            delta=promise.delta,
            neighbours=promise.neighbours,
            unit=promise.unit,
        )
        return [] if promise == sure else ["a proven sensitivity has no gamma and no estimate"]
    found = []
    shares = [sampling.gamma] * (not _is_reordered(sampling))
    if promise.gamma != sampling.gamma or [g for _, g in promise.estimates] != shares:
        found.append(
            f"guarantee.gamma {promise.gamma!r} and its estimates are not sampling.gamma "
            f"{sampling.gamma!r}"
        )
    if (promise.protect, promise.distance) != (sampling.protect, sampling.distance):
        found.append("guarantee.protect and distance are not those of the sampling")
    if promise.marginal != (sampling.calibration == "marginal"):
        found.append("guarantee.marginal contradicts sampling.calibration")
    hidden = not sampling.population_is_public and not sampling.support  # made from private rows
    if not hidden and (certificate.outside == "no range") == bool(sampling.support):
        found.append("outside contradicts sampling.support")
    if promise.data_dependent == sampling.population_is_public:
        found.append("guarantee.data_dependent contradicts sampling.population_is_public")
    return found


def _is_reordered(sampling: SamplingRecord) -> bool:
    """Whether gamma counts for each release anew; what makes no sense is told elsewhere."""
    try:
        return sampling.reach().is_reordered(symmetric=sampling.symmetric)
    except (HushedError, ZeroDivisionError):
        return False


def _is_for_unit(certificate: Certificate) -> bool:
    """Whether a proof of ours, which explanations repeat, is for the unit of the promise."""
    name, unit = certificate.mechanism.name, certificate.guarantee.unit
    if name == ObjectiveDraw.name:  # of rows alone, each of them shortened
        return unit == "row"
    known = name == BoundSearch.name and certificate.argument in ARGUMENTS.values()
    return not known or certificate.argument == ARGUMENTS[unit]


def _of_words(certificate: Certificate) -> list[str]:
    """Compare what is said of rows, people and users."""
    unit, found = certificate.guarantee.unit, []
    if certificate.unsearched and certificate.mechanism.name != PosteriorDraw.name:
        found.append("unsearched is for blocks and posteriors: a sampling states its own")
    if certificate.sampling is not None and certificate.mechanism.name in SEARCHES:
        found.append(f"{certificate.mechanism.name} takes no sampled sensitivity")
    if certificate.person and unit != "row":
        found.append("each row is one person, or a user has several: not both")
    if not _is_for_unit(certificate):
        found.append(f"guarantee.unit {unit!r} is not what was protected: its proof is for another")
    if certificate.sampling is None:
        if not is_proof(certificate.argument):
            found.append("argument of a proven sensitivity must say why it holds, not of samples")
        if certificate.confirmed or certificate.outside != "no range":
            found.append(
                "confirmed and outside are about a sampled sensitivity, this one is proven"
            )
    elif (certificate.neighbours, unit) != (
        certificate.sampling.neighbours,
        "row" if certificate.sampling.user is None else "user",
    ):
        found.append(
            "neighbours are not those of the sampling, or its unit is not one row, or one user "
            "where it names a column"
        )
    return found
