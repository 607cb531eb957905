"""What an audit found: the verdict, its evidence, and what it could not have seen."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hushed._ground.calls import given_by
from hushed._ground.decimals import decimal_of
from hushed._ground.notebook import Card, Shown, draw_bound, draw_pairs
from hushed._ground.printing import (
    Spelling,
    describe_uncertainty,
    flat,
    format_down,
    format_up,
    percent_up,
    spell_argument,
)
from hushed._ground.read_only import read_state
from hushed.auditing._bounds import Counts
from hushed.auditing._claims import Claim, read_distance
from hushed.auditing._goal import adapt_claim
from hushed.auditing._outcomes import find_event
from hushed.auditing._outputs import LOWEST_BIT
from hushed.auditing._pairs import Pair, Relation
from hushed.divergences import DeltaEstimate
from hushed.guarantee import Guarantee

Verdict = Literal["violated", "not refuted"]

_MOST_SHOWN = 80  # letters of the inputs of a pair


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
        return _tell_witness(self, _show_pair(self.pair))


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
                ("claim", self._describe_claim()),
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
        private = getattr(self.claim, "data_dependent", False)  # its pairs may be those rows
        pair = flat(self.witness.pair.name) if private else _show_pair(self.witness.pair)
        return "\n\n".join(
            part
            for part in (
                f"{self._describe_verdict()}: the claim {self._describe_claim()}.",
                self._describe_inputs(),
                self._describe_certified(),
                self._describe_draws(),
                f"Evidence. {_tell_witness(self.witness, pair)}.",
                self._describe_failed(),
                self._describe_bits(spell),
                self._describe_chance(),
                self._describe_power(),
                self._describe_unseen(),
                self._describe_estimate(),
                f"{self.samples:,} runs on each side over "
                f"{len(self.tried)} {'pair' if len(self.tried) == 1 else 'pairs'}, seed "
                f"{self.seed}, {self.seconds:.1f} s.{self._describe_spent()}",
                self._describe_seed(),
            )
            if part
        )

    def __str__(self) -> str:
        return self.explain()

    def _describe_claim(self) -> str:
        """Words for the claim, and for the neighbours on which it was judged."""
        whom = (
            "for neighbours that are query answers, all of which may move by at most 1"
            if self.relation == "answers"
            else f"for {self.relation} neighbours"
        )
        return f"{adapt_claim(self.claim).describe()} {whom}"

    def _describe_verdict(self) -> str:
        return self.verdict.upper() + (" for this sensitivity" if self.population else "")

    def _describe_certified(self) -> str:
        head = f"Certified with confidence {format_down(self.confidence)}:"
        claim = adapt_claim(self.claim)
        both = (
            f"epsilon is at least {format_down(self.epsilon_low)} "
            f"at delta = {format_down(claim.delta)}; "
            f"delta is at least {format_down(self.delta_low)} "
            f"at epsilon = {format_down(claim.epsilon)}"
        )
        if self.population is not None:
            p = self.population
            return (
                f"Tests of {p.caught} of {p.drawn} pairs drawn from the population contradict the "
                f"claimed epsilon and delta, each by itself, and {p.needed} contradict gamma. "
                f"{head} the share of pairs that violate them is at least "
                f"{format_down(p.share_low, 4)}. On more than a share gamma of pairs {both}."
            )
        return f"{head} {claim.describe_measured(self.measured)}{both}.{self._name_pairs()}"

    def _describe_draws(self) -> str:
        """Say how drawn pairs differ, and what their share is about."""
        if self.population is None:
            return ""
        done = "taken away" if self.relation == "add-remove" else "replaced"
        where = "a row at a random position"
        if self.population.position == "last":
            where = "the last row, for the order of rows was declared to have no effect,"
        return (
            f"In each pair {where} is {done}. The share is that under the one sensitivity at hand: "
            "a sampled promise counts into gamma the chance that its sample was unlucky, and with "
            "that chance a right one is called violated here. A gamma calibrated as 'marginal' is "
            "an average over samples, which the share of one does not contradict."
        )

    def _name_pairs(self) -> str:
        if self.mode != "sequential" or self.verdict != "violated" or len(self.tried) == 1:
            return ""
        if not self.named:
            return " Some pair of those tried violates; the one below shows most, uncertified."
        return f" Certified by name: {flat(', '.join(self.named))}."

    def _describe_inputs(self) -> str:
        if self.relation != "answers":
            if self.population is not None or not read_distance(self.claim)[0]:
                return ""
            return "Whose rows they are in which a pair differs was taken on your word."
        return (
            "The inputs were query answers. A mechanism whose input is a table has other "
            "neighbours: audit it on pairs of tables."
        )

    def _describe_failed(self) -> str:
        """Say how many runs failed, and what the claim is about then."""
        if not self.failed:
            return ""
        share = percent_up(self.failed / self.made)
        return (
            f"Failed runs. {self.failed:,} of {self.made:,} runs on both inputs, {share} %, raised "
            "an exception or ended without an answer. Whoever uses the mechanism sees that, so a "
            "failure is an outcome like any other: verdict and bounds are about the mechanism "
            "with its failures, and hardly about the answers that these runs did not give. If it "
            "should not fail so often, mend it, or its inputs, and audit it again."
        )

    def _describe_bits(self, spell: Spelling) -> str:
        """Say how to judge values alone, where low bits are the evidence."""
        if self.verdict != "violated" or LOWEST_BIT not in self.witness.event:
            return ""
        return (
            "The event looks at the low bits of doubles, by which noise that is drawn in floating "
            "point gives the answer away, also where its scale is right: a leak of the program, "
            f"not of the formula. {spell('bits', False)} judges the values alone."
        )

    def _describe_chance(self) -> str:
        """Say how often a right mechanism gets this verdict, where pairs are given."""
        if self.verdict != "violated" or self.population is not None:
            return ""
        chance = format_up(float(1 - decimal_of(self.confidence)), 3)
        return (
            "With a fresh seed a mechanism that keeps its claim gets this verdict with probability "
            f"at most {chance}. Where a bound is hardly above the claim, repeat the audit with "
            "another seed."
        )

    def _describe_power(self) -> str:
        """Say what would have been caught, where nothing was."""
        if self.verdict == "violated":
            return ""
        if not math.isfinite(self.minimum_detectable):
            return (
                "Not refuted is not private. An event as frequent as the one above shows no "
                "violation of this claim, however large. Try more samples and other pairs."
            )
        about = "about " if self.mode == "sequential" else ""
        where = " on that pair" if self.population is not None else ""
        return (
            f"Not refuted is not private. {adapt_claim(self.claim).quantity} of {about}"
            f"{format_up(self.minimum_detectable)} or more would have been caught{where} with "
            "probability 0.95 if it showed in an event as rare as the one above. A smaller one, or "
            "one that shows only in other events or on other pairs, may have been missed."
        )

    def _describe_unseen(self) -> str:
        """Say how many pairs of the population can be bad enough to be caught."""
        if self.population is None:
            return ""
        return (
            f"With confidence {format_down(self.confidence)} by itself, at most a share "
            f"{format_up(self.population.share_high, 3)} of all pairs has a violation that so many "
            "runs catch with probability 0.95; nothing is said of pairs that the population does "
            "not yield."
        )

    def _describe_spent(self) -> str:
        """Say why fewer runs are counted for the event than were made."""
        if self.mode != "fixed":
            return ""
        chosen = "event" if len(self.tried) == 1 else "pair and event"
        return (
            f" {self.witness.counts.samples:,} of them judged the event; the others came before, "
            f"and chose the {chosen}."
        )

    def _describe_seed(self) -> str:
        """Say that the seed does not repeat the audit, where it does not."""
        if self.seeded:
            return ""
        return (
            "The seed does not repeat this audit: the mechanism takes randomness from elsewhere "
            "(the system, a global generator, or a state of its own), not from the generator it is "
            "given alone. So the same call may give other numbers, and another verdict."
        )

    def _describe_estimate(self) -> str:
        if self.estimate is None:
            return ""
        grid = self.estimate.epsilon
        index = int(abs(grid - adapt_claim(self.claim).epsilon).argmin())
        return (
            f"Estimate, not a certificate: delta at epsilon = {grid[index]:.6g} is about "
            f"{self.estimate.values[index]:.4g} "
            f"({describe_uncertainty(self.estimate.standard_error[index])})."
        )

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
            "claim": self._describe_claim(),
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
            "estimate": None,
            "population": None,
        }
        if self.estimate is not None:
            record["estimate"] = {
                "epsilon": self.estimate.epsilon.tolist(),
                "delta": self.estimate.values.tolist(),
                "standard_error": [
                    None if math.isnan(each) else each
                    for each in self.estimate.standard_error.tolist()
                ],
                "note": "point estimates, not a certificate",
            }
        if self.failed:
            record["failed"] = {"runs": self.made, "failed": self.failed}
        if not self.seeded:
            record["seeded"] = False
        if self.outcomes is not None:
            likelier, other = map(list, self.outcomes)
            record["outcomes"] = {"likelier": likelier, "other": other}
        if self.population is not None:
            p = self.population
            record["population"] = {
                "drawn": p.drawn,
                "caught": p.caught,
                "needed": p.needed,
                "share_low": p.share_low,
                "share_high": p.share_high,
                "position": p.position,
            }
        return record

    def to_json(self) -> str:
        """Record as canonical JSON.

        Returns
        -------
        str
            Keys sorted, no NaN or infinity.
        """
        return json.dumps(self.to_dict(), sort_keys=True, allow_nan=False)


def _tell_witness(witness: Witness, pair: str) -> str:
    likelier, other = witness.sides
    c = witness.counts
    return (
        f"pair: {pair}{_describe_moved(witness)}; event: {flat(witness.event)}; "
        f"seen {c.hits:,} times in {c.samples:,} on the {likelier}, {c.other_hits:,} times in "
        f"{c.other_samples:,} on the {other}"
    )


def _describe_moved(witness: Witness) -> str:
    """How many answers move, in words; nothing for tables of rows."""
    if witness.relation != "answers":
        return ""
    one, other = np.asarray(witness.pair.rows), np.asarray(witness.pair.neighbour)
    count = int(np.count_nonzero(one != other))
    return f" ({count} of {one.size} query answers {'moves' if count == 1 else 'move'})"


def _show_pair(pair: Pair) -> str:
    """Name a pair, and show its inputs if they were listed and are short: they are the caller's."""
    name, sides = flat(pair.name), (pair.rows, pair.neighbour)
    if not name.startswith("pair ") or any(map(_is_long, sides)):
        return name
    plain = [each.tolist() if isinstance(each, np.ndarray) else each for each in sides]
    if not all(type(each) in (list, tuple, int, float, str) for each in plain):
        return name
    shown = flat(" and ".join(map(repr, plain)))
    return f"{name}, {shown}" if len(shown) <= _MOST_SHOWN else name


def _is_long(rows: Any) -> bool:
    """Whether rows are more than is shown; an array without dimensions is not."""
    size = (
        rows.size if isinstance(rows, np.ndarray) else len(rows) if isinstance(rows, Sized) else 1
    )
    return bool(size > _MOST_SHOWN)


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
