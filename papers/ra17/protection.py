"""Equal gamma, other calibrations and scopes: what the paper does not compare."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import hushed as hs
from papers.experiment import Row, Settings, Verdict
from papers.internals import Calibration, Protect, choose_rank
from papers.ra17.ranks import METHODS, recalibrated

__all__ = ["Plan", "at_equal_gamma", "compared_verdict", "reached", "scopes"]

Plan = tuple[Calibration, Protect, int | None, int]
"""Calibration, scope of gamma, pairs if they are given, and evaluations of the function."""


def scopes(settings: Settings) -> dict[str, Plan]:
    """Name what is compared at equal gamma: calibration, scope, pairs and evaluations.

    Protecting all n people takes the pairs that marginal calibration needs.
    """
    n, m = settings["rows"], settings["m"]
    gamma = Fraction(repr(settings["gamma"]))
    every = choose_rank("marginal", gamma=gamma / n).pairs
    tables = choose_rank("marginal", gamma=gamma).pairs
    found: dict[str, Plan] = {
        name: (calibration, "record", m, 2 * m) for calibration, name in METHODS.items()
    }
    found["all n people (everyone)"] = ("marginal", "everyone", None, 2 * every)
    found["all n people (simultaneous)"] = ("marginal", "simultaneous", None, tables * (n + 1))
    return found


def at_equal_gamma(
    plans: dict[str, Plan], gamma: float, sample: Callable[[str], hs.Sensitivity]
) -> dict[str, hs.Sensitivity]:
    """Sample what is compared, by name, and only once what shares its draws."""
    record = sample(METHODS["dkw"])
    return {
        name: recalibrated(record, calibration, gamma) if protect == "record" else sample(name)
        for name, (calibration, protect, _, _) in plans.items()
    }


def reached(rows: list[Row], method: str, target: float) -> float:
    """Find the smallest epsilon from which on a method's error stays at a target, or infinity."""
    found = math.inf
    for row in sorted(rows, key=lambda r: -float(r["epsilon"])):
        if row["method"] == method:
            if row["error"] > target:
                break
            found = row["epsilon"]
    return found


def compared_verdict(rows: list[Row], what: str, tolerance: float) -> Verdict:
    """Say what exact calibration gains, and what protecting all n people costs.

    The tolerance is the error allowed above the non-private one. The paper claims nothing here.
    """
    value = {r["method"]: r["sensitivity"] for r in rows}
    cost = {r["method"]: r["evaluations"] for r in rows}
    dkw = METHODS["dkw"]
    plain = min(r["error"] for r in rows if r["method"] == "not private")
    level = {name: reached(rows, name, plain + tolerance) for name in value}
    left = {name: 1 - value[name] / value[dkw] for name in METHODS.values() if name != dkw}
    whole = [name for name in value if name.startswith("all n")]
    return Verdict(
        claim=f"none: the paper does not make this comparison ({what})",
        criterion="not applicable",
        measured="at equal γ and pairs, less noise than as published: "
        + ", ".join(f"{left[name]:.1%} ({name})" for name in left)
        + "; protecting all n people takes "
        + ", ".join(
            f"{value[n] / value[METHODS['marginal']]:.2f} times the noise of the exact marginal "
            f"rank ({n})"
            for n in whole
        ),
        agrees=None,
        better=f"error within {tolerance:g} of the non-private one from "
        + ", ".join(f"ε = {level[n]:g} ({n})" for n in value if n != "not private"),
        notes=(
            f"n = {rows[0]['rows']:,}; evaluations of the function: "
            + ", ".join(f"{cost[name]:,} ({name})" for name in cost if cost[name]),
            "γ per record leaves up to γ n people outside in expectation; the last two methods "
            "keep all n inside except with probability γ",
        ),
    )
