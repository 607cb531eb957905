"""What an audit found, in words; `AuditReport` is beside it."""

from __future__ import annotations

import math
from collections.abc import Sized
from typing import TYPE_CHECKING, Any

import numpy as np

from hushed._ground.decimals import decimal_of
from hushed._ground.printing import (
    Spelling,
    describe_uncertainty,
    flat,
    format_down,
    format_up,
    percent_up,
)
from hushed.auditing._claims import read_distance
from hushed.auditing._goal import adapt_claim
from hushed.auditing._outputs import LOWEST_BIT
from hushed.auditing._pairs import Pair

if TYPE_CHECKING:
    from hushed.auditing._report import AuditReport, Witness

_MOST_SHOWN = 80  # letters of the inputs of a pair


def explain_report(report: AuditReport, spell: Spelling) -> str:
    """Say a verdict in words: the paragraphs of `AuditReport.explain`."""
    private = getattr(report.claim, "data_dependent", False)  # its pairs may be those rows
    pair = flat(report.witness.pair.name) if private else show_pair(report.witness.pair)
    return "\n\n".join(
        part
        for part in (
            f"{_describe_verdict(report)}: the claim {describe_claim(report)}.",
            _describe_inputs(report),
            _describe_certified(report),
            _describe_draws(report),
            f"Evidence. {tell_witness(report.witness, pair)}.",
            _describe_failed(report),
            _describe_bits(report, spell),
            _describe_chance(report),
            _describe_power(report),
            _describe_unseen(report),
            _describe_estimate(report),
            f"{report.samples:,} runs on each side over "
            f"{len(report.tried)} {'pair' if len(report.tried) == 1 else 'pairs'}, seed "
            f"{report.seed}, {report.seconds:.1f} s.{_describe_spent(report)}",
            _describe_seed(report),
        )
        if part
    )


def describe_claim(report: AuditReport) -> str:
    """Words for the claim, and for the neighbours on which it was judged."""
    whom = (
        "for neighbours that are query answers, all of which may move by at most 1"
        if report.relation == "answers"
        else f"for {report.relation} neighbours"
    )
    return f"{adapt_claim(report.claim).describe()} {whom}"


def _describe_verdict(report: AuditReport) -> str:
    return report.verdict.upper() + (" for this sensitivity" if report.population else "")


def _describe_certified(report: AuditReport) -> str:
    head = f"Certified with confidence {format_down(report.confidence)}:"
    claim = adapt_claim(report.claim)
    both = (
        f"epsilon is at least {format_down(report.epsilon_low)} "
        f"at delta = {format_down(claim.delta)}; "
        f"delta is at least {format_down(report.delta_low)} "
        f"at epsilon = {format_down(claim.epsilon)}"
    )
    if report.population is not None:
        p = report.population
        return (
            f"Tests of {p.caught} of {p.drawn} pairs drawn from the population contradict the "
            f"claimed epsilon and delta, each by itself, and {p.needed} contradict gamma. "
            f"{head} the share of pairs that violate them is at least "
            f"{format_down(p.share_low, 4)}. On more than a share gamma of pairs {both}."
        )
    return f"{head} {claim.describe_measured(report.measured)}{both}.{_name_pairs(report)}"


def _describe_draws(report: AuditReport) -> str:
    """Say how drawn pairs differ, and what their share is about."""
    if report.population is None:
        return ""
    done = "taken away" if report.relation == "add-remove" else "replaced"
    where = "a row at a random position"
    if report.population.position == "last":
        where = "the last row, for the order of rows was declared to have no effect,"
    return (
        f"In each pair {where} is {done}. The share is that under the one sensitivity at hand: "
        "a sampled promise counts into gamma the chance that its sample was unlucky, and with "
        "that chance a right one is called violated here. A gamma calibrated as 'marginal' is "
        "an average over samples, which the share of one does not contradict."
    )


def _name_pairs(report: AuditReport) -> str:
    if report.mode != "sequential" or report.verdict != "violated" or len(report.tried) == 1:
        return ""
    if not report.named:
        return " Some pair of those tried violates; the one below shows most, uncertified."
    return f" Certified by name: {flat(', '.join(report.named))}."


def _describe_inputs(report: AuditReport) -> str:
    if report.relation != "answers":
        if report.population is not None or not read_distance(report.claim)[0]:
            return ""
        return "Whose rows they are in which a pair differs was taken on your word."
    return (
        "The inputs were query answers. A mechanism whose input is a table has other "
        "neighbours: audit it on pairs of tables."
    )


def _describe_failed(report: AuditReport) -> str:
    """Say how many runs failed, and what the claim is about then."""
    if not report.failed:
        return ""
    share = percent_up(report.failed / report.made)
    return (
        f"Failed runs. {report.failed:,} of {report.made:,} runs on both inputs, {share} %, raised "
        "an exception or ended without an answer. Whoever uses the mechanism sees that, so a "
        "failure is an outcome like any other: verdict and bounds are about the mechanism "
        "with its failures, and hardly about the answers that these runs did not give. If it "
        "should not fail so often, mend it, or its inputs, and audit it again."
    )


def _describe_bits(report: AuditReport, spell: Spelling) -> str:
    """Say how to judge values alone, where low bits are the evidence."""
    if report.verdict != "violated" or LOWEST_BIT not in report.witness.event:
        return ""
    return (
        "The event looks at the low bits of doubles, by which noise that is drawn in floating "
        "point gives the answer away, also where its scale is right: a leak of the program, "
        f"not of the formula. {spell('bits', False)} judges the values alone."
    )


def _describe_chance(report: AuditReport) -> str:
    """Say how often a right mechanism gets this verdict, where pairs are given."""
    if report.verdict != "violated" or report.population is not None:
        return ""
    chance = format_up(float(1 - decimal_of(report.confidence)), 3)
    return (
        "With a fresh seed a mechanism that keeps its claim in independent runs gets this verdict "
        f"with probability at most {chance}. Where a bound is hardly above the claim, repeat the "
        "audit with another seed."
    )


def _describe_power(report: AuditReport) -> str:
    """Say what would have been caught, where nothing was."""
    if report.verdict == "violated":
        return ""
    if not math.isfinite(report.minimum_detectable):
        return (
            "Not refuted is not private. An event as frequent as the one above shows no "
            "violation of this claim, however large. Try more samples and other pairs."
        )
    about = "about " if report.mode == "sequential" else ""
    where = " on that pair" if report.population is not None else ""
    return (
        f"Not refuted is not private. {adapt_claim(report.claim).quantity} of {about}"
        f"{format_up(report.minimum_detectable)} or more would have been caught{where} with "
        "probability 0.95 if it showed in an event as rare as the one above. A smaller one, or "
        "one that shows only in other events or on other pairs, may have been missed."
    )


def _describe_unseen(report: AuditReport) -> str:
    """Say how many pairs of the population can be bad enough to be caught."""
    if report.population is None:
        return ""
    return (
        f"With confidence {format_down(report.confidence)} by itself, at most a share "
        f"{format_up(report.population.share_high, 3)} of all pairs has a violation that so many "
        "runs catch with probability 0.95; nothing is said of pairs that the population does "
        "not yield."
    )


def _describe_spent(report: AuditReport) -> str:
    """Say why fewer runs are counted for the event than were made."""
    if report.mode != "fixed":
        return ""
    chosen = "event" if len(report.tried) == 1 else "pair and event"
    return (
        f" {report.witness.counts.samples:,} of them judged the event; the others came before, "
        f"and chose the {chosen}."
    )


def _describe_seed(report: AuditReport) -> str:
    """Say that the seed does not repeat the audit, where it does not."""
    if report.seeded:
        return ""
    return (
        "The seed does not repeat this audit: the mechanism takes randomness from elsewhere "
        "(the system, a global generator, or a state of its own), not from the generator it is "
        "given alone. So the same call may give other numbers, and another verdict."
    )


def _describe_estimate(report: AuditReport) -> str:
    if report.estimate is None:
        return ""
    grid = report.estimate.epsilon
    index = int(abs(grid - adapt_claim(report.claim).epsilon).argmin())
    return (
        f"Estimate, not a certificate: delta at epsilon = {grid[index]:.6g} is about "
        f"{report.estimate.values[index]:.4g} "
        f"({describe_uncertainty(report.estimate.standard_error[index])})."
    )


def tell_witness(witness: Witness, pair: str) -> str:
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


def show_pair(pair: Pair) -> str:
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
