"""Audits: what is judged, how it stands, and what the verdict rests on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hushed import zoo
from hushed._ground.printing import format_down, format_up
from hushed.auditing._outcomes import find_event
from hushed.workbench._jobs import CERTIFICATE, KEPT
from hushed.workbench._views.reading import Words
from hushed.workbench._views.sources import Defined, as_argument

EFFORTS = {"quick": 20_000, "usual": 100_000, "thorough": 1_000_000}
CONFIDENCES = ("0.95", "0.99", "0.999")
_SHARE = re.compile(r"(\d+) % of the runs made")
_BOUND = re.compile(r"epsilon is at least ([0-9.e+-]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A mechanism of the zoo, as a list shows it.

    Parameters
    ----------
    name : str
        Its name.
    broken : bool
        Whether its claim is known to be false.
    claim : str
        What it claims, rounded up.
    source : str
        Where it was published.
    """

    name: str
    broken: bool
    claim: str
    source: str


@lru_cache(maxsize=1)
def list_zoo() -> tuple[Shown, ...]:
    """List the mechanisms of known verdict, the broken ones first."""
    found = (
        Shown(
            name=each.name,
            broken=not each.private,
            claim=_tell_claim(each.claim.epsilon, each.claim.delta),
            source=each.source,
        )
        for each in zoo.specimens()
    )
    return tuple(sorted(found, key=lambda each: not each.broken))


def _tell_claim(epsilon: float, delta: float) -> str:
    slack = f", delta {format_up(delta, 3)}" if delta else ""
    return f"epsilon {format_up(epsilon, 3)}{slack}"


def read_audit(
    typed: Mapping[str, str], functions: list[Defined]
) -> tuple[list[str], dict[str, str]]:
    """Read what is to be judged: the words of the command, and problems by field."""
    form = Words(typed)
    words = ["audit"]
    if form.choose("of", ("zoo", "file")) == "zoo":
        names = [each.name for each in list_zoo()]
        words += [f"zoo:{form.choose('specimen', names, needed='Choose a mechanism.')}"]
    else:
        words += _read_own(form, functions)
    effort = form.choose("effort", tuple(EFFORTS))
    words += ["--samples", str(EFFORTS.get(effort, 0))]
    words += ["--confidence", form.choose("confidence", CONFIDENCES)]
    words += ["--sequential"] if form.is_ticked("sequential") else []
    words += ["--workers", form.say_whole("workers", least=1, most=256, default="1")]
    return [*words, "--keep", KEPT, "--out", CERTIFICATE, "--json"], form.errors


def _read_own(form: Words, functions: list[Defined]) -> list[str]:
    """Read a mechanism of a file, its claim, and the pairs of tables to run it on."""
    specs = [each.spec for each in functions]
    spec = form.choose("mechanism", specs, needed="Choose the mechanism.")
    words = [as_argument(spec)]
    words += ["--claim-epsilon", form.say_number("claim_epsilon", above=0.0)]
    if form.text("claim_delta"):
        words += ["--claim-delta", form.say_number("claim_delta", above=0.0)]
    if form.choose("inputs", ("tables", "answers")) == "answers":
        words += ["--pairs", "patterns"]
    else:
        low, high = form.say_number("low"), form.say_number("high")
        words += ["--pairs", "extremes", f"--low={low}", f"--high={high}"]
        words += ["--rows", form.say_whole("rows", least=1, most=10_000, default="4")]
        words += ["--neighbours", form.choose("neighbours", ("replace-one", "add-remove"))]
    return words + (["--batch"] if form.is_ticked("batch") else [])


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """How far an audit is, from its last remarks.

    Parameters
    ----------
    words : str
        The last one.
    percent : int or None
        Share of the runs that are made.
    bound : str
        Largest epsilon that is certified so far; empty where none is told.
    """

    words: str
    percent: int | None
    bound: str


def read_stand(notes: tuple[str, ...]) -> Stand:
    """Read how far an audit is."""
    last = next((each for each in reversed(notes) if _SHARE.search(each)), "")
    share, bound = _SHARE.search(last), _BOUND.search(last)
    return Stand(
        words=last or (notes[-1] if notes else ""),
        percent=int(share[1]) if share else None,
        bound=bound[1] if bound else "",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A verdict, ready to be shown.

    Parameters
    ----------
    verdict : {"violated", "not refuted"}
        The verdict.
    headline : str
        The verdict in a sentence that cannot be taken for a proof of privacy.
    claim : str
        What was claimed.
    bounds : tuple of (str, str)
        Names and values of what is certified.
    pair, event : str
        The witness.
    sides : tuple of (str, int, int)
        Whose outcomes, how often the event was seen, and in how many runs.
    outcomes : tuple of (int, int)
        Runs in groups of outcomes, on either side, those that speak most for the first one last.
    event_from : int
        The first group of the event.
    curve : tuple of (float, float)
        Estimated delta at epsilons: no certificate.
    runs : str
        How many runs, on how many pairs, with which seed.
    """

    verdict: str
    headline: str
    claim: str
    bounds: tuple[tuple[str, str], ...]
    pair: str
    event: str
    sides: tuple[tuple[str, int, int], ...]
    outcomes: tuple[tuple[int, int], ...]
    event_from: int
    curve: tuple[tuple[float, float], ...]
    runs: str


def describe_verdict(found: Mapping[str, Any]) -> Judged:
    """Describe what an audit printed."""
    certified, seen = found["certified"], found["witness"]
    first = "answers" if found["relation"] == "answers" else "rows"
    other = first if seen["likelier"] == "neighbour" else "neighbour"
    estimate = found.get("estimate") or {"epsilon": [], "delta": []}
    confidence = format_down(found["confidence"])
    groups = found.get("outcomes") or {"likelier": [], "other": []}
    drawn = zip(groups["likelier"], groups["other"], strict=True)
    outcomes = tuple(each for each in drawn if any(each))
    return Judged(
        verdict=found["verdict"],
        headline=_tell_headline(found),
        claim=found["claim"],
        bounds=(
            ("epsilon is at least", format_down(certified["epsilon_low"])),
            ("delta is at least", format_down(certified["delta_low"])),
            ("with confidence", confidence),
        ),
        pair=seen["pair"],
        event=seen["event"],
        sides=(
            (seen["likelier"], seen["hits"], seen["samples"]),
            (other, seen["other_hits"], seen["other_samples"]),
        ),
        outcomes=outcomes,
        event_from=find_event(outcomes, seen["hits"], seen["other_hits"]),
        curve=tuple(zip(estimate["epsilon"], estimate["delta"], strict=True)),
        runs=f"{found['samples']:,} runs on each side, pairs tried: {len(found['tried'])}, seed "
        f"{found['seed']}, {found['seconds']:.1f} s",
    )


def _tell_headline(found: Mapping[str, Any]) -> str:
    if found["verdict"] == "violated":
        return "Violated: the mechanism does not keep its word, and below is the evidence."
    least = found["minimum_detectable"]
    if least is None:
        return (
            "Not refuted, which is not private: an event as frequent as the one below shows no "
            "violation of this claim. Try more runs and other pairs."
        )
    return (
        f"Not refuted, which is not private: a violation of at least {format_up(least)} would have "
        "been caught, with probability 0.95, if it shows in an event as rare as the one below."
    )
