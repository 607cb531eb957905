"""What a sparse vector has told, as a value, and as text that a ledger stores."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hushed._ground.calls import given_by
from hushed._ground.notebook import Shown
from hushed._ground.printing import format_number, name_count
from hushed.errors import ParameterError
from hushed.releasing._certificate import Certificate

SCHEMA, _VERSION = "hushed above-threshold", 1
_NAME = "above-threshold"


@given_by("hs.AboveThreshold(100, epsilon=1.0).ask(105)")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Crossing(Shown):
    """What is told of one question; true if its answer was found above the threshold.

    Parameters
    ----------
    above : bool
        Whether the noisy answer reached the noisy threshold.
    gap : float, optional
        By how much, the noise of both included; None if it did not. It costs nothing more.
    value : float, optional
        The answer with Laplace noise of its own, where ``values`` pays for it; None otherwise.
    """

    above: bool
    gap: float | None = None
    value: float | None = None

    def __bool__(self) -> bool:
        return self.above

    def __str__(self) -> str:
        if not self.above:
            return "Below the threshold"
        by = "" if self.gap is None else f", by {format_number(self.gap)} with the noise of both"
        told = "" if self.value is None else f"; the answer is about {format_number(self.value)}"
        return f"Above the threshold{by}{told}"


@given_by("hs.AboveThreshold(100, epsilon=1.0).transcript")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Transcript(Shown):
    """All that an `AboveThreshold` has told so far; every other answer was found below.

    Parameters
    ----------
    asked : int
        How many questions were answered.
    found : dict of int to Crossing
        What was told of those found above, by the number of the question, from 1.
    certificate : Certificate
        What all answers together promise.
    """

    asked: int
    found: dict[int, Crossing]
    certificate: Certificate

    def __str__(self) -> str:
        which = f": number {', '.join(map(str, self.found))}" if self.found else ""
        asked = name_count(self.asked, "question")
        return f"{asked}, {len(self.found)} found above the threshold{which}"


def write_transcript(transcript: Transcript) -> str:
    """Write a transcript as JSON, every double exact."""
    found = [
        {"question": number, "gap": each.gap, "value": each.value}
        for number, each in transcript.found.items()
    ]
    told = {"schema": SCHEMA, "version": _VERSION, "asked": transcript.asked, "found": found}
    return json.dumps(told | {"certificate": json.loads(transcript.certificate.to_json())})


def read_transcript(text: str) -> Transcript:
    """Read what `write_transcript` wrote, and refuse what no `AboveThreshold` tells."""
    told = json.loads(text)
    if (told["schema"], told["version"]) != (SCHEMA, _VERSION):
        raise ParameterError("the record is no transcript of this version")
    found = {
        each["question"]: Crossing(above=True, gap=each["gap"], value=each["value"])
        for each in told["found"]
    }
    transcript = Transcript(
        asked=told["asked"],
        found=found,
        certificate=Certificate.from_json(json.dumps(told["certificate"])),
    )
    for wrong, holds in _rules(transcript).items():
        if not holds:
            raise ParameterError(f"no AboveThreshold tells this: {wrong}")
    return transcript


def _rules(transcript: Transcript) -> dict[str, bool]:
    """Compare what was told with the parameters on the certificate."""
    made, asked, found = transcript.certificate.mechanism, transcript.asked, transcript.found
    if made.name != _NAME or made.stated:
        return {"its certificate is of another mechanism": False}
    stated: dict[str, Any] = dict(made.parameters)
    numbers, positives = list(found), stated["positives"]
    grid, paid = made.grid or 0, stated["values"] > 0
    return {
        "the number of questions is none": type(asked) is int and asked >= 0,
        "the questions found above are not in order": all(type(each) is int for each in numbers)
        and numbers == sorted(numbers),
        "a question was found above that was not asked": not numbers
        or 1 <= numbers[0] <= numbers[-1] <= asked,
        "more were found above than its certificate allows": len(found) <= positives,
        "it went on after the last one that may be found above": len(found) < positives
        or numbers[-1] == asked,
        "a gap is below 0, or not on its grid": all(
            _is_on_grid(each.gap, grid) and each.gap is not None and each.gap >= 0
            for each in found.values()
        ),
        "values are told without being paid for, or the other way round, or not on their grid": all(
            _is_on_grid(each.value, grid) if paid else each.value is None for each in found.values()
        ),
    }


def _is_on_grid(number: Any, grid: int) -> bool:
    """Whether a number is a double that such a grid gives."""
    if type(number) is not float or not math.isfinite(number):
        return False
    return Fraction(number) % Fraction(2) ** grid == 0
