"""The error that a certificate states, as a number with its unit and how sure it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hushed._ground.notebook import Card, Shown, card_of_facts
from hushed._ground.printing import format_up
from hushed.blocks import Blocks
from hushed.mechanisms import (
    Bernstein,
    Exponential,
    InverseSensitivity,
    NoisyMax,
    ProposeTest,
    Smooth,
    StableMode,
    TopK,
)
from hushed.mechanisms._bound_search import BoundSearch
from hushed.mechanisms._objective_draw import ObjectiveDraw
from hushed.mechanisms._posterior_draw import PosteriorDraw
from hushed.mechanisms._sparse_vector import SparseVector
from hushed.releasing._neighbour_words import doubt_average, name_average

if TYPE_CHECKING:
    from hushed.releasing._certificate import Certificate, MechanismRecord

_ANSWER = "that of the answer"
_OF_SCORES = "score below the best"
_UNITS = {
    Exponential.name: _OF_SCORES,
    NoisyMax.name: _OF_SCORES,
    TopK.name: _OF_SCORES,
    PosteriorDraw.name: _OF_SCORES,
    InverseSensitivity.name: "changed {rows} that explain the answer",
    Smooth.name: "the smooth sensitivity of the {rows}, which is private",
    StableMode.name: "{rows} that can change and leave the category",
    SparseVector.name: "distance from the threshold",
    ProposeTest.name: f"{_ANSWER}, if it is not refused",
    BoundSearch.name: "{rows} beyond the bound, on the worst column",
    Bernstein.name: f"{_ANSWER}, anywhere, by the noise alone",
    ObjectiveDraw.name: "coefficients of scaled features and labels, on the worst table",
}
_OF_BLOCKS = {
    "exponential": "blocks by which the answer misses their median",
    "votes": "votes fewer than the label with most of them",
    "stable": "blocks that can answer otherwise and leave the label",
}
# What is told is no number with an error: from so much on it is told, or right.
_MARGINS = {
    StableMode.name: "none, unless it is refused: with probability {chance} at most where {value} "
    "{rows} or more can change and leave the category",
    Blocks.name: "none beside that of the blocks, unless it is refused: with probability {chance} "
    "at most where {value} blocks or more can answer otherwise and leave the label",
    SparseVector.name: "none in whether an answer is above, with probability {sure}, where it is "
    "{value} or more away from the threshold; gaps and values have noise of their own",
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StatedError(Shown):
    """Error of a released answer, as its certificate states it.

    Parameters
    ----------
    value : float or None
        What the error of an answer is at most, but with probability ``1 - level``; of several
        numbers that of each one, all together. None where a caller's own mechanism states none.
    level : float
        How sure that is: 0.95.
    unit : str
        What `value` counts: the unit of the answer, or something else, as rows or scores.
    margin : str
        Of an answer that has no error where it is told: from which distance on that is so. Then
        `value` is this distance. Otherwise empty.
    """

    value: float | None
    level: float = 0.95
    unit: str = _ANSWER
    margin: str = ""

    def _card(self) -> Card:
        return card_of_facts("Error", (("error", self.explain()),))

    def _brief(self) -> str:
        return f"Error: {self.explain()}"

    def __str__(self) -> str:
        return self.explain()

    def explain(self) -> str:
        """Say it in one line.

        Returns
        -------
        str
            Rounded up, with the level and the unit.
        """
        if self.value is None:
            return "not stated"
        if self.margin:
            return self.margin
        return (
            f"at most {format_up(self.value, 4)} with probability {100 * self.level:g} %; unit: "
            f"{self.unit}"
        )


def state_error(certificate: Certificate) -> StatedError:
    """Read the error of a certificate, and name its unit."""
    record = certificate.mechanism
    rows = "users" if certificate.guarantee.unit == "user" else "rows"
    rows = "people" if certificate.person else rows
    unit = _name_unit(record).format(rows=rows)
    sampling = certificate.sampling
    if sampling is not None and (average := name_average(sampling)):
        how = "counted from" if unit == _ANSWER else "by"
        unit = f"{unit}, {how} {average}; {doubt_average(sampling)}"
    if unit == _OF_BLOCKS["exponential"]:
        unit += _doubt_blocks(record)
    return StatedError(value=record.accuracy, unit=unit, margin=_say_margin(record, rows))


def _doubt_blocks(record: MechanismRecord) -> str:
    """Say of how many blocks, and where so large an error is any answer at all."""
    blocks = int(record.parameters["blocks"])
    lowest = math.ceil(blocks / 2 - (record.accuracy or 0.0))
    among = {0: "the whole range", 1: "all answers of blocks"}.get(max(lowest, 0))
    return f", of {blocks}" + f": it may be anywhere in {among}, no more is known" * bool(among)


def _say_margin(record: MechanismRecord, rows: str) -> str:
    stable = record.name != Blocks.name or record.parameters["aggregate"] == "stable"
    if record.stated or record.accuracy is None or record.name not in _MARGINS or not stable:
        return ""
    far = format_up(record.accuracy, 4)
    return _MARGINS[record.name].format(value=far, rows=rows, chance="5 %", sure="95 %")


def name_unit(mechanism: str) -> str:
    """Name the unit of the error of a mechanism that is no noise on numbers; empty for those."""
    unit = _UNITS.get(mechanism, "").format(rows="rows")
    return "" if unit.startswith(_ANSWER) else unit


def _name_unit(record: MechanismRecord) -> str:
    if record.stated:
        return _ANSWER
    if record.name == Blocks.name:
        aggregate = str(record.parameters["aggregate"])
        return _OF_BLOCKS.get(aggregate, f"{_ANSWER}, by the noise alone")
    return _UNITS.get(record.name, _ANSWER)
