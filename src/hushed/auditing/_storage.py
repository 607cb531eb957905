"""Reports as text, and back; what is certified is worked out again from the counts."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, astuple, replace
from typing import Any, get_args

import numpy as np

from hushed.auditing._audit import allowed_error
from hushed.auditing._bounds import Counts
from hushed.auditing._claims import Claim, Renyi, ZeroConcentrated
from hushed.auditing._fixed import compute_minimum_detectable, plan_samples
from hushed.auditing._goal import adapt_claim
from hushed.auditing._outcomes import are_of, estimate_curve, read_outcomes
from hushed.auditing._pairs import Pair, Relation
from hushed.auditing._population import DRAWN, allow_slip, count_pairs
from hushed.auditing._report import AuditReport, PopulationCount, Verdict, Witness
from hushed.auditing._sequential import detect_by_bets
from hushed.errors import HushedError, ParameterError
from hushed.guarantee import Guarantee

SCHEMA, _VERSION = "hushed audit", 1
_CLAIMS: dict[str, type[Any]] = {
    "epsilon-delta": Guarantee,
    "zero-concentrated": ZeroConcentrated,
    "renyi": Renyi,
}
_MODES = ("fixed", "sequential", "population")


def write_report(report: AuditReport) -> str:
    """Write a report as JSON, every number exact; without inputs.

    The estimated curve is left out, for it follows from the outcomes.
    """
    record = replace(report, estimate=None).to_dict()
    claim = next(name for name, kind in _CLAIMS.items() if type(report.claim) is kind)
    first, other = (
        np.asarray(each) for each in (report.witness.pair.rows, report.witness.pair.neighbour)
    )
    answers = report.relation == "answers"
    return json.dumps(
        {
            "schema": SCHEMA,
            "version": _VERSION,
            **record,
            "stated": {"kind": claim, **asdict(report.claim)},
            "weight": report.weight,
            "moved": [int(np.count_nonzero(first != other)), int(first.size)] if answers else None,
        }
    )


def read_report(text: str) -> AuditReport:
    """Read what `write_report` wrote, and refuse what does not follow from its counts."""
    try:
        report = _add_curve(_read(json.loads(text)))
        problems = [
            f"{name} does not follow" for name, holds in _rules(report).items() if not holds
        ]
        report.explain()
    except (HushedError, KeyError, TypeError, ValueError, AttributeError, OverflowError) as bad:
        raise ParameterError(
            f"the record is no audit of this version ({type(bad).__name__})"
        ) from None
    if problems:
        raise ParameterError(f"the audit contradicts its own counts: {problems[0]}")
    return report


def _read(told: dict[str, Any]) -> AuditReport:
    if (told["schema"], told["version"]) != (SCHEMA, _VERSION):
        raise KeyError("schema")
    seen, mode, verdict = told["witness"], told["mode"], told["verdict"]
    _require(mode, _MODES)
    _require(verdict, get_args(Verdict))
    _require(told["relation"], get_args(Relation))
    _require(seen["likelier"], ("rows", "answers", "neighbour"))
    caught = told["minimum_detectable"]
    relation: Relation = told["relation"]
    population = told["population"]
    failed = told.get("failed", {"runs": 0, "failed": 0})
    return AuditReport(
        verdict=verdict,
        claim=_read_claim(told["stated"]),
        confidence=told["confidence"],
        mode=mode,
        epsilon_low=told["certified"]["epsilon_low"],
        delta_low=told["certified"]["delta_low"],
        measured=told["certified"]["measured"],
        witness=Witness(
            pair=_stand_in(seen["pair"], told["moved"]),
            relation=relation,
            likelier=seen["likelier"],
            event=seen["event"],
            counts=Counts(
                hits=seen["hits"],
                samples=seen["samples"],
                other_hits=seen["other_hits"],
                other_samples=seen["other_samples"],
            ),
        ),
        minimum_detectable=math.inf if caught is None else caught,
        estimate=None,
        samples=told["samples"],
        tried=tuple(told["tried"]),
        seconds=told["seconds"],
        seed=told["seed"],
        population=None if population is None else PopulationCount(**population),
        named=tuple(told["named"]),
        weight=told["weight"],
        outcomes=read_outcomes(told.get("outcomes")),
        failed=failed["failed"],
        made=failed["runs"],
        seeded=told.get("seeded", True),
    )


def _add_curve(report: AuditReport) -> AuditReport:
    """Work the estimated curve out again from the outcomes; without them there is none."""
    if report.outcomes is None or not are_of(report.outcomes, report.witness.counts):
        return report
    claim = adapt_claim(report.claim)
    bins = np.array(report.outcomes, dtype=np.int64)
    return replace(report, estimate=estimate_curve(bins, claim, report.epsilon_low))


def _require(value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise KeyError(value)


class _Unwritten(list[int]):
    """Answers in place of those that are not written down: no words show them."""


def _stand_in(name: str, moved: list[int] | None) -> Pair:
    """Make a pair that differs in as many places: the inputs themselves are not written down."""
    if moved is None:
        return Pair(rows=None, neighbour=None, name=name)
    count, size = moved
    if not 0 < count <= size <= _MOST_ANSWERS:
        raise ValueError("moved")
    rows, neighbour = [0] * size, [1] * count + [0] * (size - count)
    return Pair(rows=_Unwritten(rows), neighbour=_Unwritten(neighbour), name=name)


_MOST_ANSWERS, _MOST_RUNS = 10_000_000, 10**12  # beyond 2**53 SciPy's quantiles do not end


def _read_claim(told: dict[str, Any]) -> Claim:
    stated = dict(told)
    kind = _CLAIMS[stated.pop("kind")]
    if kind is Guarantee:
        stated["estimates"] = tuple((name, gamma) for name, gamma in stated["estimates"])
    found: Claim = kind(**stated)
    return found


def _rules(report: AuditReport) -> dict[str, bool]:
    """Compare what is certified with what the counts certify."""
    alpha, seen = allowed_error(report.confidence), report.witness.counts
    violated = report.verdict == "violated"
    rules = {
        "samples": _is_count(report.samples)
        and all(_is_count(each) for each in astuple(seen))
        and 0 < max(seen.samples, seen.other_samples) <= report.samples <= _MOST_RUNS,
        "failed": _is_count(report.failed)
        and _is_count(report.made)
        and report.failed <= report.made <= 2 * report.samples
        and (report.failed > 0) == (report.made > 0)
        and report.made >= (report.failed > 0) * (seen.samples + seen.other_samples),
        "seed": _is_count(report.seed) and isinstance(report.seeded, bool),
        "seconds": isinstance(report.seconds, float) and 0 <= report.seconds < math.inf,
        "names": all(isinstance(each, str) for each in (*report.tried, report.witness.event))
        and len(set(report.named)) == len(report.named),
        "relation": report.relation in ("answers", report.claim.neighbours),
        "witness": report.witness.pair.name in report.tried,
        "named": set(report.named) <= set(report.tried) and (violated or not report.named),
        "bounds": report.epsilon_low >= 0 and 0 <= report.delta_low <= 1 and report.measured >= 0,
        "population": {report.population is not None, adapt_claim(report.claim).gamma > 0}
        == {report.mode == "population"},
        "weight": report.weight is None
        or (
            (report.mode, type(report.weight)) == ("fixed", float) and 0 <= report.weight < math.inf
        ),
        "outcomes": report.outcomes is None
        or (report.mode == "fixed" and are_of(report.outcomes, seen)),
    }
    more = {"fixed": _rules_of_fixed, "sequential": _rules_of_bets, "population": _rules_of_drawn}
    return rules | more[report.mode](report, alpha) if all(rules.values()) else rules


def _rules_of_fixed(report: AuditReport, alpha: float) -> dict[str, bool]:
    """Compare all that follows from the counts of the event, and how many runs it was left."""
    claim, seen = adapt_claim(report.claim), report.witness.counts
    certified = claim.certify(claim.test(seen, alpha, report.weight))
    least = compute_minimum_detectable(
        claim, seen.other_share, int(seen.samples), alpha, report.weight
    )
    return {
        "verdict": certified.violated == (report.verdict == "violated"),
        "epsilon": _near(report.epsilon_low, certified.epsilon_low),
        "delta": _near(report.delta_low, certified.delta_low),
        "measured": _near(report.measured, certified.measured),
        "minimum_detectable": _near(report.minimum_detectable, least),
        "number of runs": _are_left(report, 1, alpha),
        "named": report.named == (report.witness.pair.name,) * certified.violated,
    }


def _rules_of_bets(report: AuditReport, alpha: float) -> dict[str, bool]:
    """Compare what does not take all runs of a sequential audit."""
    claim, seen, pairs = adapt_claim(report.claim), report.witness.counts, len(report.tried)
    beaten = [(report.epsilon_low, claim.epsilon), (report.delta_low, claim.delta)]
    return {
        "verdict": report.verdict == "violated" or all(low < at or low == 0 for low, at in beaten),
        "measured": report.measured == report.epsilon_low,
        "number of runs": report.samples % pairs == 0
        and seen.samples == seen.other_samples <= report.samples // pairs,
        "minimum_detectable": _near(
            report.minimum_detectable, detect_by_bets(claim, seen, alpha, pairs)
        ),
    }


def _rules_of_drawn(report: AuditReport, alpha: float) -> dict[str, bool]:
    """Compare what follows from how many pairs of a population were caught."""
    told, claim, pairs = report.population, adapt_claim(report.claim), len(report.tried)
    if told is None or not _is_count(told.caught) or told.caught > pairs:
        return {"population": False}
    again = count_pairs(told.caught, pairs, claim.gamma, alpha, told.position)
    return {
        "verdict": (told.caught >= told.needed) == (report.verdict == "violated")
        and (report.verdict == "violated") == (report.epsilon_low > claim.epsilon),
        "measured": report.measured == report.epsilon_low,
        "named": not report.named,
        "names of the drawn pairs": _are_drawn(report),
        "number of runs": _are_left(report, pairs, allow_slip(claim.gamma, alpha)),
        "population": (told.drawn, told.needed, told.position in ("random", "last"))
        == (pairs, again.needed, True)
        and _near(told.share_low, again.share_low)
        and _near(told.share_high, again.share_high),
    }


def _are_drawn(report: AuditReport) -> bool:
    """Whether pairs of a population are called as such are: numbered, of one size, one row apart.

    Where the row stands is drawn; it is the last one where the order does not matter.
    """
    found = [DRAWN.fullmatch(each) for each in report.tried]
    told = [each.groups() for each in found if each is not None]
    if len(told) != len(report.tried) or report.population is None:
        return False
    numbers, units, places, sizes, done = zip(*told, strict=True)
    size, last = int(sizes[0]), report.population.position == "last"
    removed = report.relation == "add-remove"
    return (
        list(map(int, numbers)) == list(range(1, len(told) + 1))
        and len(set(units)) == len(set(sizes)) == 1
        and set(done) == {"taken away" if removed else "replaced"}
        and all(int(each) == size if last else int(each) <= size for each in places)
    )


def _are_left(report: AuditReport, audits: int, alpha: float) -> bool:
    """Whether as many runs may have been left for the event; they are rounded down to pieces."""
    seen, each = report.witness.counts, len(report.tried) // audits
    left = plan_samples(report.samples // audits, each, adapt_claim(report.claim), alpha).final
    return left < 2 * seen.samples and seen.samples == seen.other_samples


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _near(one: float, other: float) -> bool:
    """Whether two numbers agree, up to what mathematical libraries differ by."""
    return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-12)
