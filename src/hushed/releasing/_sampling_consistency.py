"""Whether the record of a sampling agrees with itself; nothing is sampled."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from hushed import populations
from hushed._rows._ranges import Range
from hushed.errors import HushedError
from hushed.releasing._record_checks import CLOSE, is_near
from hushed.sensitivity._declarations import declared_rounding
from hushed.sensitivity._designs import count_needed, is_given_the_rest
from hushed.sensitivity._origin import describe_sampling, shift_gamma
from hushed.sensitivity._plan import plan
from hushed.sensitivity._ranks import Rank
from hushed.sensitivity._record import BATCH_ROWS, MOST_BATCH_ROWS
from hushed.sensitivity._remarks import list_kept_ranks

if TYPE_CHECKING:
    from hushed.releasing._certificate import Certificate, SamplingRecord

# Gamma is split where the split matters least, so that its place moves by far more than a bit.
SAME_SPLIT = 1e-3
_PROMISE_OF = {"disjoint": "population", "given-the-rest": "given-the-rest", "resampled": "table"}


def list_wrong_sampling(certificate: Certificate, sampling: SamplingRecord) -> list[str]:
    """List what does not fit; only of numbers that make sense one by one is it asked."""
    return _of_sampling(sampling) or [
        *_of_rank(sampling),
        *_of_rows(sampling),
        *_of_movements(certificate, sampling),
    ]


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
        "sampling.names must be distinct, one for each number of a public sampling": (
            not sampling.names
            or (
                sampling.population_is_public
                and len(set(sampling.names)) == len(sampling.names) == math.prod(sampling.shape)
                and not sampling.batch
            )
        ),
        "sampling.shift must be 0 or more": sampling.shift >= 0,
        "sampling.movements must be sorted and not negative": _is_sorted(sampling.movements),
        "sampling.elsewhere must count some of sampling.pairs": all(
            1 <= count <= sampling.pairs for count in sampling.elsewhere.values()
        ),
        "sampling.asked_anew goes with what is in sampling.unwatched": bool(sampling.unwatched)
        or sampling.asked_anew is None,
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
    declared = sampling.batch + sampling.symmetric + sampling.monotone + sampling.updated
    rounding = declared_rounding(sampling.dtype, sampling.largest, sampling.shape, certificate.norm)
    if moved[-1] > 2 * (places * sampling.largest + declared * rounding) * (1 + CLOSE):
        found.append("sampling.largest is too small for answers that move so far")
    return found


def _is_rising(sizes: tuple[int, ...], most: int) -> bool:
    return bool(sizes) and sizes[0] >= 2 and sizes[-1] == most and sizes == tuple(sorted({*sizes}))


def _is_sorted(movements: tuple[float, ...]) -> bool:
    return list(movements) == sorted(movements) and all(each >= 0 for each in movements[:1])
