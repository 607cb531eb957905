"""The command ``hushed estimate``."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from hushed._ground.printing import format_down, format_up
from hushed.auditing import PrivacyEstimate, estimate_privacy
from hushed.auditing._pairs import pattern_pairs
from hushed.cli._audit_options import Inputs, Runs
from hushed.cli._audit_pairs import choose_pairs
from hushed.cli._options import JsonOption, option
from hushed.cli._outcome import finish, print_line, print_note, print_table
from hushed.cli._panels import AUDIT
from hushed.cli._records import take_records
from hushed.divergences import DeltaEstimate
from hushed.divergences._estimate import Method


@take_records
def estimate(
    mechanism: Annotated[
        str,
        typer.Argument(
            metavar="FILE.py:FUNCTION",
            help="The mechanism (rows, rng) -> output; or, with --command, a program that reads "
            "and writes lines.",
        ),
    ],
    asked: Inputs,
    runs: Runs,
    epsilon: Annotated[
        list[float], option("Level to estimate delta at, in nats; may be repeated.", AUDIT)
    ],
    samples: Annotated[int, option("Runs on each side of a pair.", AUDIT)] = 100_000,
    bins: Annotated[int, option("Bins for outputs that hardly ever repeat.", AUDIT)] = 50,
    method: Annotated[Method, option("Estimator.", AUDIT)] = "empirical-bayes",
    json: JsonOption = False,
) -> None:
    """Estimate the delta of a mechanism on pairs of tables, in both directions: no verdict."""
    with finish(json=json) as result:
        differ = asked.relation or "replace-one"
        chosen = choose_pairs(asked, differ)
        if isinstance(chosen, str):
            chosen, differ = pattern_pairs(chosen, asked.count), "answers"
        run = runs.read(mechanism)
        found = [
            estimate_privacy(
                run,
                pair,
                sorted(set(epsilon)),
                samples=samples,
                bins=bins,
                method=method,
                batch=runs.batch,
                relation=differ,
                **runs.settings(),
            )
            for pair in chosen
        ]
        result["pairs"] = [_to_dict(each) for each in found]
        if not json:
            _show(found)


def _to_dict(found: PrivacyEstimate) -> dict[str, Any]:
    return {
        "pair": found.pair,
        "outcomes": found.outcomes,
        "binned": found.binned,
        "epsilon": found.epsilon.tolist(),
        "delta": found.delta.tolist(),
        "rows_exceed": _side(found.rows_exceed),
        "neighbour_exceeds": _side(found.neighbour_exceeds),
    }


def _side(found: DeltaEstimate) -> dict[str, Any]:
    errors = [None if np.isnan(each) else each for each in found.standard_error.tolist()]
    ends = {"low": found.low.tolist(), "high": found.high.tolist()}
    return {"delta": found.values.tolist(), "standard_error": errors} | ends


def _show(found: list[PrivacyEstimate]) -> None:
    made = int(found[0].rows_exceed.samples[0] or 0)  # whole batches: a few less than asked for
    print_table(
        f"Estimates of delta ± standard error (range with the bias), from {made} runs a table",
        ["pair", "outcomes", "epsilon", "rows over neighbour", "neighbour over rows"],
        [
            [
                one.pair,
                f"{one.outcomes}{' bins' if one.binned else ''}",
                format_up(level),
                _cell(one.rows_exceed, i),
                _cell(one.neighbour_exceeds, i),
            ]
            for one in found
            for i, level in enumerate(one.epsilon)
        ],
    )
    worst = max(found, key=lambda one: float(one.delta.max()))
    level = int(worst.delta.argmax())
    print_line(
        f"Largest estimate of delta: {worst.delta[level]:.4g} at epsilon "
        f"{format_up(worst.epsilon[level])}, on {worst.pair}; delta may lie anywhere from "
        f"{_range(worst.low[level], worst.high[level])}."
    )
    print_note("estimates are no certificates: hushed audit gives a verdict with a confidence")


def _cell(side: DeltaEstimate, level: int) -> str:
    ends = _range(side.low[level], side.high[level])
    return f"{side.values[level]:.4g} ± {side.standard_error[level]:.2g} ({ends})"


def _range(low: float, high: float) -> str:
    """Print a range no narrower than it is."""
    return f"{format_down(float(low), 2)} to {format_up(float(high), 2)}"
