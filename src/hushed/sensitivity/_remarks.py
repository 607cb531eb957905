"""What the sampled movements themselves say against relying on the one that was kept."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed._ground.decimals import decimal_of
from hushed._ground.printing import format_up
from hushed._ground.tensors import Precision, epsilon_of
from hushed._ground.types import Floats
from hushed.errors import PlacesLeftOut
from hushed.populations._fitted import CHECK, MISFIT, find_model
from hushed.sensitivity._neighbourhood import Neighbourhood

_QUANTILES = 201
_TINY = 1e-3  # of the largest movement
_JUMP = 10.0  # times the kept movement
_SAME = 1e-12  # of logarithms
_RESOLVED = 1000.0  # times the distance between two neighbouring numbers
_ELSE = (
    "Look at the rows that do it; cut them off in the function, keep a larger movement "
    "(protect='everyone', or protect='table' with the worst values), or take a mechanism that "
    "needs no population (hs.InverseSensitivity, hs.Smooth, hs.Blocks)"
)
_NOTHING = (
    "Nothing moves: none of the {pairs} sampled movements is above 0, so that there is nothing to "
    "calibrate noise to, and every mechanism refuses such a sensitivity. The function may ignore "
    "its rows, round its answer, or react to rarer rows than were drawn: a smaller gamma, or "
    "protect='everyone', draws more"
)


def list_kept_ranks(pairs: int) -> NDArray[np.int64]:
    """Ranks, counted from 0, of the movements that a certificate keeps."""
    if pairs <= _QUANTILES:
        return np.arange(pairs)
    return np.round(np.linspace(0, float(min(pairs, 2**53) - 1), _QUANTILES)).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Movements:
    """Sampled movements, sorted upwards, of which only some may be known.

    Parameters
    ----------
    known : sequence of float
        Those that are known.
    ranks : ndarray of int
        Their ranks, counted from 0.
    pairs : int
        How many there were.
    kept : float
        The one that was kept, undivided among blocks as the others are.
    """

    known: Sequence[float] | Floats
    ranks: NDArray[np.int64]
    pairs: int
    kept: float

    def count_up_to(self, size: float) -> int:
        """Count the movements that are surely no larger."""
        place = int(np.searchsorted(self.known, size, side="right"))
        return 0 if not place else int(self.ranks[place - 1]) + 1


def list_remarks(movements: Movements) -> list[str]:
    """Say if nothing or little moves, or if the kept movement is far below one that was seen."""
    known, pairs, kept = movements.known, movements.pairs, movements.kept
    largest = float(known[-1]) if len(known) else 0.0
    if not largest > 0:
        return [_NOTHING.format(pairs=pairs)] if len(known) and not kept else []
    found = []
    still, zero = movements.count_up_to(largest * _TINY), movements.count_up_to(0.0)
    if 2 * still > pairs:
        none = f" ({zero} are 0)" if zero else ""
        found.append(
            f"Little moves: at least {still} of the {pairs} sampled movements{none} are below a "
            f"thousandth of the largest, {format_up(largest, 3)}, so that rare rows decide how far "
            f"the answer can move, and few of them were seen"
        )
    if largest > _JUMP * kept:
        over = pairs - movements.count_up_to(_JUMP * kept)
        found.append(
            f"A jump was seen beyond what the noise covers: up to {over} of the {pairs} sampled "
            f"movements are more than {_JUMP:g} times the kept one, {format_up(kept, 3)}; the "
            f"largest is {format_up(largest, 3)}. Against rows that move the answer so far the "
            f"noise hides next to nothing"
        )
    if found:
        found[-1] += f". {_ELSE}"
    return found


def describe_model(population: Mapping[str, Any]) -> list[str]:
    """Say that a fitted model is not the law of the rows that it was fitted to."""
    model = find_model(population)
    if not model:
        return []
    return [
        f"The population is a model that was fitted to public rows ({model}): gamma holds for rows "
        f"of the model, and not for the law of those rows. {MISFIT[0].upper()}{MISFIT[1:]}. To ask "
        f"private rows whether they contradict it: {CHECK}"
    ]


def count_places(reach: Neighbourhood, gamma: float, *, symmetric: bool) -> int:
    """Count the places that a promise at a random place may leave out altogether.

    Notes
    -----
    Some of k places is in all pairs but a share ``(1 - k/n) (1 - k/(n-1)) ...``, with a factor for
    each row that changes at once: all of these pairs have to fail.
    """
    if symmetric or reach.whole or reach.protect != "record" or reach.user is not None:
        return 0  # users are shown in a random order, so that nobody stands at a place
    most = math.floor(decimal_of(gamma) * reach.size)
    if reach.distance == 1:
        return most
    others = reach.size - np.arange(reach.distance)

    def is_too_many(places: int) -> bool:
        if places >= others[-1]:
            return True
        return bool(np.log1p(-places / others).sum() < math.log1p(-gamma) - _SAME)

    return bisect_left(range(1, most + 1), True, key=is_too_many)


def describe_places(reach: Neighbourhood, gamma: float, *, symmetric: bool) -> list[str]:
    """Say whom a promise at a random place leaves out, where the order of the rows may matter."""
    left = count_places(reach, gamma, symmetric=symmetric)
    if not left:
        return []
    each = " of each block" if reach.blocks > 1 else ""
    return [
        f"The place of the changed row was random: gamma = {format_up(gamma)} leaves room for "
        f"{left} whole place{'s' * (left > 1)} among {reach.size}{each}, and whoever stands there "
        f"{_advise(reach, 'it symmetric')}"
    ]


def warn_of_places(reach: Neighbourhood, gamma: float, *, symmetric: bool) -> PlacesLeftOut | None:
    """Say the same in words that are equal for all numbers, so that a loop says it once."""
    if not count_places(reach, gamma, symmetric=symmetric):
        return None
    return PlacesLeftOut(
        "the function was not declared symmetric, and gamma is then an average over the place of "
        "the changed row: it leaves room for up to gamma * rows whole places, and whoever stands "
        f"there {_advise(reach, 'symmetric=True')}. Sensitivity.explain() counts the places"
    )


def _advise(reach: Neighbourhood, declared: str) -> str:
    first, other = "the first row", "position='worst' or "
    if reach.blocks > 1:  # which are dealt by an order that everybody can work out
        first, other = "the first row of a block", ""
    elif reach.distance > 1:
        other = "distance=1, and position='worst' or "
    return (
        f"(as in {first}, if the function treats it in its own way) may never be covered. If the "
        f"order of the rows does not matter, declare {declared}; if it does, "
        f"sample with {other}protect='simultaneous'"
    )


def describe_resolution(kept: float, largest: float, dtype: Precision) -> list[str]:
    """Say that a movement was kept that such numbers can hardly tell; none do it in doubles."""
    finest = epsilon_of(dtype) * largest
    if dtype == "float64" or not kept < _RESOLVED * finest:
        return []
    return [
        f"The answer moves by less than its own resolution: it comes in {dtype}, where answers of "
        f"{format_up(largest, 3)} are told apart from {format_up(finest, 3)} on, and the kept "
        f"movement, {format_up(kept, 3)}, is below {_RESOLVED:g} times that. What was measured is "
        "in part rounding, which another computer or device does otherwise. Let the function "
        "compute and answer in float64 (in JAX, set jax_enable_x64)"
    ]
