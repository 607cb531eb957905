"""Whether the numbers of a certificate agree with each other; nothing is sampled."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from hushed import populations
from hushed._rows._ranges import Range
from hushed.blocks import Blocks
from hushed.errors import HushedError, ParameterError
from hushed.guarantee import Guarantee
from hushed.mechanisms._registry import CERTIFIED, SEARCHES, STATISTIC_MECHANISMS, calibrate
from hushed.releasing._blocks import list_wrong_blocks
from hushed.releasing._mechanisms import Admitted, admit_mechanism, is_free_name
from hushed.releasing._record_checks import CLOSE, is_near
from hushed.releasing._statistics import list_contradictions
from hushed.sensitivity import Sensitivity
from hushed.sensitivity._designs import count_needed, is_given_the_rest
from hushed.sensitivity._origin import describe_sampling, is_proof, shift_gamma
from hushed.sensitivity._plan import plan
from hushed.sensitivity._ranks import Rank
from hushed.sensitivity._record import BATCH_ROWS, MOST_BATCH_ROWS
from hushed.sensitivity._remarks import list_kept_ranks

if TYPE_CHECKING:
    from hushed.releasing._certificate import Certificate, MechanismRecord, SamplingRecord


_FOLLOW = ("epsilon", "delta", "neighbours")
# Gamma is split where the split matters least, so that its place moves by far more than a bit.
SAME_SPLIT = 1e-3
_PROMISE_OF = {"disjoint": "population", "given-the-rest": "given-the-rest", "resampled": "table"}


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
    elif certificate.statistic is not None or certificate.mechanism.name in STATISTIC_MECHANISMS:
        wrong = list_contradictions(certificate)
    else:
        wrong = _list_wrong(certificate)
    if wrong:
        raise ParameterError(f"the certificate contradicts itself: {'; '.join(wrong)}")


def _list_wrong(certificate: Certificate) -> list[str]:
    """List what does not fit of a proven or sampled sensitivity."""
    wrong = [*_of_mechanism(certificate), *_of_gamma(certificate), *_of_words(certificate)]
    sampling = certificate.sampling
    if sampling is not None:
        # Only of numbers that make sense one by one is it asked whether they fit.
        wrong += _of_sampling(sampling) or [
            *_of_rank(sampling),
            *_of_rows(sampling),
            *_of_movements(certificate, sampling),
        ]
    return wrong


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
    said = [(name, getattr(promise, name), getattr(fresh, name)) for name in _FOLLOW]
    return found + [
        f"guarantee.{name} {stated!r} does not follow from the mechanism ({right!r} does)"
        for name, stated, right in said
        if stated != right
    ]


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
    """Whether gamma counts for each release anew; `_of_sampling` speaks of what makes no sense."""
    try:
        return sampling.reach().is_reordered(symmetric=sampling.symmetric)
    except (HushedError, ZeroDivisionError):
        return False


def _of_words(certificate: Certificate) -> list[str]:
    """Compare what is said of rows, people and users."""
    unit, found = certificate.guarantee.unit, []
    if certificate.sampling is not None and certificate.mechanism.name in SEARCHES:
        found.append(f"{certificate.mechanism.name} takes no sampled sensitivity")
    if certificate.person and unit != "row":
        found.append("each row is one person, or a user has several: not both")
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


def _of_sampling(sampling: SamplingRecord) -> list[str]:
    """List what no sampler writes."""
    asked = (sampling.requested_gamma, sampling.asked_pairs)
    columns = [each[0] for each in sampling.support]
    added = sampling.neighbours == "add-remove"
    try:
        sampling.reach()
    except (HushedError, ZeroDivisionError) as problem:
        return [f"sampling.rows, blocks, neighbours, distance, position, protect: {problem}"]
    try:
        json.dumps(sampling.population, allow_nan=False)
    except (TypeError, ValueError):
        return ["sampling.population holds what is not a number, text or list of them"]
    rules = {
        "sampling.rank must lie between 1 and sampling.pairs": 1 <= sampling.rank <= sampling.pairs,
        "sampling.gamma must lie in (0, 1)": 0 < sampling.gamma < 1,
        "sampling.rows must be 1 or more": sampling.rows >= 1,
        "sampling.blocks must divide sampling.rows": sampling.blocks >= 1
        and sampling.rows % sampling.blocks == 0,
        "sampling.sizes must go up to sampling.rows where a row is added or removed": (
            not sampling.sizes if not added else _is_rising(sampling.sizes, sampling.rows)
        ),
        "sampling.values and monotone go with protect='table', which needs values": (
            bool(sampling.values) == (sampling.protect == "table")
            and (sampling.protect == "table" or not sampling.monotone)
        ),
        "sampling.shift must be 0 or more": sampling.shift >= 0,
        "sampling.movements must be sorted and not negative": _is_sorted(sampling.movements),
        "sampling.elsewhere must count some of sampling.pairs": all(
            1 <= count <= sampling.pairs for count in sampling.elsewhere.values()
        ),
        "sampling.pairs is not the number asked for": asked[1] in (None, sampling.pairs),
        "sampling.gamma is not the gamma asked for": sampling.shift > 0
        or asked[0] in (None, sampling.gamma),
        "sampling asked for neither gamma nor pairs": asked != (None, None),
        "sampling.tail_mass and sampling.sampling_error must lie in [0, 1]": 0
        <= sampling.tail_mass
        <= 1
        and 0 <= sampling.sampling_error <= 1,
        "sampling.seed, largest, public_rows, tables must be 0 or more": min(
            sampling.seed,
            sampling.largest,
            sampling.public_rows,
            sampling.tables,
            *sampling.shape,
        )
        >= 0,
        "sampling.batch_rows is for stacked tables, and has limits": 1
        <= sampling.batch_rows
        <= (MOST_BATCH_ROWS if sampling.batch else BATCH_ROWS)
        and (sampling.batch or sampling.batch_rows == BATCH_ROWS),
        "sampling.support must hold one range for each of its columns": len(set(columns))
        == len(columns)
        and all(
            (low, high) != (None, None) and (low is None or high is None or low <= high)
            for _, low, high, _ in sampling.support
        ),
        "sampling.values must be rows of one length in the ranges of sampling.support": len(
            {len(row) for row in sampling.values}
        )
        <= 1
        and all(_is_inside(row, sampling) for row in sampling.values),
    }
    return [text for text, holds in rules.items() if not holds]


def _is_inside(row: tuple[Any, ...], sampling: SamplingRecord) -> bool:
    """Whether a given row keeps to the ranges of the columns whose places are known."""
    listed = sampling.population.get("columns")
    names = list(listed) if isinstance(listed, list) and listed else []
    places = {name: place for place, name in enumerate(names)} or {
        **{str(place): place for place in range(len(row))},
        **({"": 0} if len(row) == 1 else {}),
    }
    return all(
        _is_cell_of(row[places[column]], low, high, missing=missing)
        for column, low, high, missing in sampling.support
        if places.get(column, len(row)) < len(row)
    )


def _is_cell_of(cell: Any, low: float | None, high: float | None, *, missing: bool) -> bool:
    if cell is None:
        return missing
    if isinstance(cell, str):
        return False
    return (low is None or low <= cell) and (high is None or cell <= high)


def _of_rank(sampling: SamplingRecord) -> list[str]:
    """Compare gamma with what so many pairs and that rank support."""
    try:
        rank, gamma = _plan(sampling, sampling.asked_pairs)
        if rank.pairs != sampling.pairs:  # more than are needed do no harm
            rank, gamma = _plan(sampling, sampling.pairs)
        gamma = shift_gamma(gamma, sampling.shift, sampling.reach().involved)
    except (HushedError, OverflowError, ValueError):
        return ["sampling.pairs do not support sampling.gamma under that calibration"]
    found = []
    if sampling.rank < rank.rank:
        found.append(f"sampling.rank is below {rank.rank}, which sampling.gamma takes")
    if not is_near(sampling.gamma, gamma):
        found.append(f"sampling.gamma does not follow from pairs and shift ({gamma!r} does)")
    return found + [
        f"sampling.{name} does not follow from pairs and gamma ({right!r} does)"
        for name, right in (
            ("tail_mass", rank.tail_mass),
            ("sampling_error", rank.sampling_error),
        )
        if not math.isclose(getattr(sampling, name), right, rel_tol=SAME_SPLIT)
    ]


def _plan(sampling: SamplingRecord, pairs: int | None) -> tuple[Rank, float]:
    return plan(sampling.calibration, sampling.reach(), gamma=sampling.requested_gamma, pairs=pairs)


def _of_rows(sampling: SamplingRecord) -> list[str]:
    """Compare the route with the population and its number of rows."""
    known, route = sampling.public_rows, sampling.route
    if not sampling.population_is_public:
        empty = (known, sampling.tables, len(sampling.support), len(sampling.movements))
        right = not any(empty) and not sampling.largest and route in ("independent", "resampled")
        wrong = "a population made from private rows may state only its kind and name"
        return [] if right else [wrong]
    said = sampling.population
    if said.get("user") != sampling.user:
        return ["sampling.user is not the column of users that sampling.population names"]
    if (said.get("kind") == "public table") != (route != "independent"):
        return ["sampling.route contradicts sampling.population"]
    if route == "independent":
        if known or sampling.tables:
            return ["sampling.public_rows without a public table"]
        return _of_support(sampling)
    size = said.get("rows" if sampling.user is None else "users")
    count = sampling.reach().drawn
    needed = count_needed(route, sampling.pairs, count)
    rules = {
        "sampling.route is not the promise of the public table": said.get("promise")
        == _PROMISE_OF[route],
        "sampling.public_rows is not the size of the public table": size == known,
        "sampling.tables does not follow from sampling.public_rows": sampling.tables
        == known // count,
        "sampling.public_rows are too few for that route": known >= needed,
        "sampling is about more than one replaced record, though the rest is given": route
        != "given-the-rest"
        or is_given_the_rest(sampling.reach()),
    }
    return [text for text, holds in rules.items() if not holds]


def _of_support(sampling: SamplingRecord) -> list[str]:
    """Compare the ranges with those of a law that is known by its name."""
    try:
        law = populations.from_description(sampling.population)
    except (HushedError, TypeError, ValueError, OverflowError):
        return ["sampling.population has numbers that make no law of that kind"]
    if law is None or not sampling.support:  # a caller's own class may describe itself so
        return []
    ranges: tuple[Range, ...] = getattr(law, "support", tuple)()
    kept = tuple((each.column, each.low, each.high, each.missing) for each in ranges)
    said = tuple(
        (column, -math.inf if low is None else low, math.inf if high is None else high, missing)
        for column, low, high, missing in sampling.support
    )
    return [] if kept == said else ["sampling.support is not that of sampling.population"]


def _of_movements(certificate: Certificate, sampling: SamplingRecord) -> list[str]:
    """Compare the sensitivity with the movement of its rank, and the answer with its numbers."""
    kept = (sampling.rank, sampling.pairs, sampling.calibration, sampling.blocks)
    found = ["argument is not that of the sampling"] * (
        certificate.argument != describe_sampling(*kept)
    )
    if math.prod(sampling.shape) != certificate.mechanism.values:
        found.append("mechanism.values is not the size of sampling.shape")
    if not sampling.population_is_public:
        return found
    moved, ranks = sampling.movements, list_kept_ranks(sampling.pairs)
    if len(moved) != len(ranks):
        return [*found, f"sampling.movements must be {len(ranks)}"]
    below = int(np.searchsorted(ranks, sampling.rank - 1, side="right")) - 1
    above = int(np.searchsorted(ranks, sampling.rank - 1, side="left"))
    if not moved[below] <= certificate.sensitivity <= moved[above]:
        found.append("sensitivity is not the movement of sampling.rank")
    # Two answers differ by twice the largest number in each place, at most; the range by two such.
    places = 2 if certificate.norm == "range" else max(1, min(certificate.mechanism.values, 2**53))
    if moved[-1] > 2 * places * sampling.largest * (1 + CLOSE):
        found.append("sampling.largest is too small for answers that move so far")
    return found


def _is_rising(sizes: tuple[int, ...], most: int) -> bool:
    return bool(sizes) and sizes[0] >= 2 and sizes[-1] == most and sizes == tuple(sorted({*sizes}))


def _is_sorted(movements: tuple[float, ...]) -> bool:
    return list(movements) == sorted(movements) and all(each >= 0 for each in movements[:1])
