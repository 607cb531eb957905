"""What an audit found: the verdict, its evidence, and what it could not have seen."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from hushed._ground.calls import given_by
from hushed._ground.notebook import Card, Shown, draw_bound, draw_pairs
from hushed._ground.printing import (
    Spelling,
    format_down,
    spell_argument,
)
from hushed._ground.read_only import read_state
from hushed.auditing._bounds import Counts
from hushed.auditing._claims import Claim
from hushed.auditing._goal import adapt_claim
from hushed.auditing._outcomes import find_event
from hushed.auditing._pairs import Pair, Relation
from hushed.auditing._report_words import describe_claim, explain_report, show_pair, tell_witness
from hushed.divergences import DeltaEstimate
from hushed.guarantee import Guarantee

Verdict = Literal["violated", "not refuted"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Witness(Shown):
    """The pair and the event that were judged.

    Parameters
    ----------
    pair : Pair
        The two inputs.
    relation : {"replace-one", "add-remove", "answers"}
        How the two may differ.
    likelier : {"rows", "answers", "neighbour"}
        The input on which the event is the likelier one; the first one is called by what it holds.
    event : str
        The event in words.
    counts : Counts
        How often it happened on the final split, which had no part in choosing it.
    """

    pair: Pair
    relation: Relation
    likelier: Literal["rows", "answers", "neighbour"]
    event: str
    counts: Counts

    @property
    def sides(self) -> tuple[str, str]:
        """Which input the event is likelier on, and which is the other one."""
        first = "answers" if self.relation == "answers" else "rows"
        return self.likelier, first if self.likelier == "neighbour" else "neighbour"

    def __str__(self) -> str:
        return tell_witness(self, show_pair(self.pair))


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationCount:
    """Pairs drawn from a population, and how many were caught.

    Parameters
    ----------
    drawn : int
        Independent pairs.
    caught : int
        Pairs whose own tests contradict the claimed epsilon and delta; a few may do so by chance,
        which the other numbers allow for.
    needed : int
        Pairs that have to be caught before the share gamma is contradicted.
    share_low : float
        Certified lower bound on the share of pairs that violate epsilon and delta.
    share_high : float
        Upper bound on the share of pairs that an audit of so many runs would catch with probability
        0.95. It has the confidence by itself, not together with the certified numbers.
    position : {"random", "last"}
        Which row of a table was changed: ``"last"`` where the order of rows was declared to have
        no effect.
    """

    drawn: int
    caught: int
    needed: int
    share_low: float
    share_high: float
    position: Literal["random", "last"]


@given_by("hs.audit(mechanism, [([0.0], [1.0])], claim=hs.Guarantee(epsilon=1.0))")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class AuditReport(Shown):
    """Verdict on a claim, with the confidence it was asked for.

    Parameters
    ----------
    verdict : {"violated", "not refuted"}
        ``"violated"`` is certified; ``"not refuted"`` never means private.
    claim : Guarantee, ZeroConcentrated or Renyi
        What was claimed.
    confidence : float
        Probability with which every certified number holds, together.
    mode : {"fixed", "sequential", "population"}
        How the samples were used.
    epsilon_low : float
        Certified: the mechanism loses at least this epsilon at the claimed delta (at delta = 0
        for a claim about divergences).
    delta_low : float
        Certified: at the claimed epsilon it needs at least this delta (at epsilon = 0 for a
        claim about divergences).
    measured : float
        Certified lower bound on what the claim bounds: epsilon, rho or the divergence.
    witness : Witness
        The evidence; with ``"not refuted"`` the most telling event that was tried.
    minimum_detectable : float
        Minimum detectable epsilon (rho, divergence): the smallest one that an event as rare as the
        one judged could have had and been caught with probability 0.95; infinite if there is none.
        A mechanism may be worse on other pairs and events.
    estimate : DeltaEstimate or None
        Point estimates of the delta curve on the witness's pair, in the direction of its event:
        no certificate. None in the modes that have none.
    samples : int
        Runs per table, all pairs and stages together.
    tried : tuple of str
        Pairs tried.
    seconds : float
        Time spent.
    seed : int
        Seed of the audit.
    population : PopulationCount or None, default None
        Counts of pairs for a claim with gamma above 0.
    named : tuple of str, default ()
        Pairs that are certified to violate the claim, all of them together. A sequential audit
        may know that some pair does before it can say which: then it is empty.
    weight : float, optional
        Weight of the test that judged the event, chosen before its runs were made: with it the
        certified numbers follow from the counts. None where no such test was used.
    outcomes : tuple of (tuple of int, tuple of int), optional
        Runs of the final split in at most 49 groups of outcomes, those that speak most for the
        witness's likelier input last: counts on that input, then on the other one. The last groups
        make up the event. For a picture, and no certificate; None in the modes that have none.
    failed : int, default 0
        Runs that raised an exception or ended without an answer, on both inputs together.
    made : int, default 0
        Runs among which these were counted, those of all stages on both inputs; 0 if none failed.
    seeded : bool, default True
        Whether the first runs gave the same outputs again from the same seed. False if the
        mechanism takes randomness from elsewhere, so that the same call may end otherwise.
    """

    verdict: Verdict
    claim: Claim
    confidence: float
    mode: Literal["fixed", "sequential", "population"]
    epsilon_low: float
    delta_low: float
    measured: float
    witness: Witness
    minimum_detectable: float
    estimate: DeltaEstimate | None
    samples: int
    tried: tuple[str, ...]
    seconds: float
    seed: int
    population: PopulationCount | None = None
    named: tuple[str, ...] = ()
    weight: float | None = None
    outcomes: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    failed: int = 0
    made: int = 0
    seeded: bool = True

    def __setstate__(self, state: Sequence[Any]) -> None:
        """Read one that was pickled before the last fields were there."""
        read_state(self, state)

    def _card(self) -> Card:
        picture = ""
        if isinstance(self.claim, Guarantee):
            label = f"epsilon is at least {format_down(self.epsilon_low)}, certified"
            picture = draw_bound(self.epsilon_low, self.claim.epsilon, label)
        return Card(
            title=f"Audit: {self.verdict}",
            text=self.explain(),
            facts=(
                ("claim", describe_claim(self)),
                ("epsilon at least", format_down(self.epsilon_low)),
                ("confidence", format_down(self.confidence)),
                ("runs on each side", f"{self.samples:,}"),
                *list_failed(self),
            ),
            pictures=(picture, self._draw_outcomes()),
        )

    def _draw_outcomes(self) -> str:
        """Draw how often outcomes came up on both inputs, with a line where the event begins."""
        if self.outcomes is None:
            return ""
        counts, (likelier, other) = self.witness.counts, self.witness.sides
        groups = [each for each in zip(*self.outcomes, strict=True) if any(each)]
        shares = [(a / counts.samples, b / counts.other_samples) for a, b in groups]
        start = find_event(groups, int(counts.hits), int(counts.other_hits))
        label = f"share of runs by outcome: bars {likelier}, dots {other}"
        return draw_pairs(shares, start, (label, "right of the broken line: the event"))

    @property
    def relation(self) -> Relation:
        """How the two inputs of a pair may differ: by a row, or in every query answer by 1."""
        return self.witness.relation

    def explain(self, spell: Spelling = spell_argument) -> str:
        """Say it in words.

        Parameters
        ----------
        spell : callable, default as in Python
            Words for an argument that is advised, from its name and its value.

        Returns
        -------
        str
            Paragraphs: the verdict, the certificate, the evidence, with ``"not refuted"`` what
            could not be seen, and the estimate, apart.
        """
        return explain_report(self, spell)

    def __str__(self) -> str:
        return self.explain()

    def to_dict(self) -> dict[str, Any]:
        """Plain record.

        Returns
        -------
        dict
            What JSON can hold; infinity and a standard error that is not known are None. The inputs
            of the pair are left out.
        """
        c, w = self.witness.counts, self.witness
        record: dict[str, Any] = {
            "verdict": self.verdict,
            "claim": describe_claim(self),
            "relation": self.relation,
            "confidence": self.confidence,
            "mode": self.mode,
            "certified": {
                "epsilon_low": self.epsilon_low,
                "delta_low": self.delta_low,
                "measured": self.measured,
            },
            "minimum_detectable": self.minimum_detectable
            if math.isfinite(self.minimum_detectable)
            else None,
            "witness": {
                "pair": w.pair.name,
                "likelier": w.likelier,
                "event": w.event,
                "hits": c.hits,
                "samples": c.samples,
                "other_hits": c.other_hits,
                "other_samples": c.other_samples,
            },
            "samples": self.samples,
            "tried": list(self.tried),
            "named": list(self.named),
            "seconds": self.seconds,
            "seed": self.seed,
            "estimate": None if self.estimate is None else _write_estimate(self.estimate),
            "population": None if self.population is None else asdict(self.population),
        }
        if self.failed:
            record["failed"] = {"runs": self.made, "failed": self.failed}
        if not self.seeded:
            record["seeded"] = False
        if self.outcomes is not None:
            likelier, other = map(list, self.outcomes)
            record["outcomes"] = {"likelier": likelier, "other": other}
        return record

    def to_json(self) -> str:
        """Record as canonical JSON.

        Returns
        -------
        str
            Keys sorted, no NaN or infinity.
        """
        return json.dumps(self.to_dict(), sort_keys=True, allow_nan=False)


def _write_estimate(estimate: DeltaEstimate) -> dict[str, Any]:
    """Write estimates as what JSON can hold; a standard error that is not known is None."""
    errors = estimate.standard_error.tolist()
    return {
        "epsilon": estimate.epsilon.tolist(),
        "delta": estimate.values.tolist(),
        "standard_error": [None if math.isnan(each) else each for each in errors],
        "note": "point estimates, not a certificate",
    }


def list_failed(report: AuditReport) -> tuple[tuple[str, str], ...]:
    """List how many runs failed, if some did."""
    told = f"{report.failed:,} of {report.made:,}, on both inputs"
    return (("runs that failed", told),) * bool(report.failed)


def list_bounds(report: AuditReport) -> tuple[tuple[str, str], ...]:
    """List the certified bounds, each with where it holds: a claim may be about neither."""
    claim = adapt_claim(report.claim)
    epsilon, delta = format_down(claim.epsilon), format_down(claim.delta)
    return (
        ("epsilon, at least", f"{format_down(report.epsilon_low)} at delta = {delta}"),
        ("delta, at least", f"{format_down(report.delta_low)} at epsilon = {epsilon}"),
    )
