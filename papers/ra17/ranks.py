"""How many pairs, which rank: the paper's figures 2 and 3 and Table 1."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

import hushed as hs
from hushed.errors import ParameterError, TooFewPairs
from papers.charts import lines
from papers.experiment import Effort, Experiment, Point, Row, Settings, Verdict
from papers.internals import Calibration, choose_rank

__all__ = ["EFFORT", "METHODS", "RANKS", "SOURCE", "TABLE", "recalibrated", "supported_ranks"]

SOURCE = "Rubinstein, Aldà, Pain-Free Random Differential Privacy, ICML 2017"
METHODS: dict[Calibration, str] = {
    "dkw": "as published (DKW)",
    "training-conditional": "exact, training-conditional",
    "marginal": "exact, marginal",
}
"""Names of the calibrations in figures and data."""
_GAMMAS = (0.5, 0.33, 0.2, 0.1, 0.05, 0.01, 0.001)


def recalibrated(found: hs.Sensitivity, calibration: Calibration, gamma: float) -> hs.Sensitivity:
    """Keep another movement of the same draws: what sampling again with one seed would give.

    It must have been sampled with ``protect="record"``, and its pairs must support gamma.
    """
    sampling = found.sampling
    if sampling is None or sampling.protect != "record":
        raise ParameterError("another rank can be kept of movements sampled for one record only")
    rank = choose_rank(calibration, gamma=gamma, pairs=sampling.pairs)
    changed = replace(
        sampling,
        calibration=calibration,
        rank=rank.rank,
        gamma=gamma,
        tail_mass=rank.tail_mass,
        sampling_error=rank.sampling_error,
        requested_gamma=gamma,
        asked_pairs=sampling.pairs,
    )
    return replace(
        found,
        value=float(sampling.draws[rank.rank - 1]),
        argument=f"sampled: movement {rank.rank} of {rank.pairs}, {calibration} calibration",
        sampling=changed,
    )


def supported_ranks(pairs: int, gammas: list[float]) -> dict[tuple[Calibration, float], int]:
    """Find the rank of each calibration at each gamma that so many pairs support."""
    found = {}
    for calibration in METHODS:
        for gamma in gammas:
            with suppress(TooFewPairs):
                found[calibration, gamma] = choose_rank(calibration, gamma=gamma, pairs=pairs).rank
    return found


def _pairs(settings: Settings, point: Point, effort: Effort) -> list[Row]:
    """Pairs that a gamma needs, by calibration."""
    gamma = point["gamma"]
    rows: list[Row] = []
    for calibration, name in METHODS.items():
        rank = choose_rank(calibration, gamma=gamma)
        rows.append(
            {"gamma": gamma, "method": name, "pairs": rank.pairs, "rank": rank.rank}
            | {"rho": rank.sampling_error if calibration == "dkw" else None}
        )
    return rows


def _by_gamma(rows: list[Row], method: Calibration, column: str) -> dict[float, Any]:
    return {r["gamma"]: r[column] for r in rows if r["method"] == METHODS[method]}


def _verdict_pairs(rows: list[Row]) -> Verdict:
    dkw, exact, marginal = (_by_gamma(rows, m, "pairs") for m in METHODS)
    gammas = sorted(dkw, reverse=True)
    rate = [dkw[g] * g * g / math.log(1 / g) for g in gammas]
    small = [r for g, r in zip(gammas, rate, strict=True) if g <= 0.1]
    falling = all(a >= 0.98 * b for a, b in pairwise(small))
    least = gammas[-1]
    return Verdict(
        claim="the effort m grows like log(1/γ)/γ² as γ shrinks (figure 2 and Corollary 20)",
        criterion="m γ²/log(1/γ) is largest at the largest γ, and from γ = 0.1 down it falls along "
        "the curve (2 % are left for rounding m up)",
        measured=f"the ratio falls from {rate[0]:.3f} at γ = {gammas[0]:g} to {rate[-1]:.3f} at "
        f"γ = {least:g}, where m = {dkw[least]:,}",
        agrees=max(rate) == rate[0] and falling,
        better=f"exact order statistics need {exact[least]:,} pairs (training-conditional) or "
        f"{marginal[least]:,} (marginal) at γ = {least:g}; at γ = 0.05 it is {exact[0.05]} or "
        f"{marginal[0.05]} instead of {dkw[0.05]:,}",
        notes=(
            "the paper writes o(...); since ρ < γ, m exceeds log(1/γ)/(2γ²), so the ratio never "
            "falls below 1/2 and the rate is O(...)",
        ),
    )


def _plot_pairs(rows: list[Row]) -> Any:
    return lines(
        rows,
        x="gamma",
        y="pairs",
        by="method",
        labels=("confidence level γ (probability)", "sampled pairs m", "calibration"),
        title="Sampler effort for a target γ",
        caption=f"Figure 2 of {SOURCE}; exact order statistics added",
        log="xy",
        points=False,
    )


def _shares(settings: Settings, point: Point, effort: Effort) -> list[Row]:
    """Rank over pairs against gamma, where the pairs support it."""
    pairs = point["pairs"]
    return [
        {"pairs": pairs, "panel": f"m = {pairs:,}", "method": METHODS[calibration], "gamma": gamma}
        | {"rank": rank, "share": rank / pairs}
        for (calibration, gamma), rank in supported_ranks(pairs, settings["gamma"]).items()
    ]


def _verdict_shares(rows: list[Row]) -> Verdict:
    sizes = sorted({row["pairs"] for row in rows})
    share = {
        (m, pairs): {
            r["gamma"]: r["share"]
            for r in rows
            if r["pairs"] == pairs and r["method"] == METHODS[m]
        }
        for m in METHODS
        for pairs in sizes
    }
    falls = all(
        all(curve[a] >= curve[b] for a, b in zip(sorted(curve), sorted(curve)[1:], strict=False))
        for (m, _), curve in share.items()
        if m == "dkw"
    )
    least = [min(share["dkw", pairs]) for pairs in sizes]
    reach = all(a > b for a, b in pairwise(least))
    middle = sizes[len(sizes) // 2]
    common = sorted(set(share["dkw", middle]) & set(share["marginal", middle]))
    at = common[len(common) // 2]
    shares = ", ".join(f"{METHODS[m]} {share[m, middle][at]:.4f}" for m in METHODS)
    ahead = all(
        share["marginal", m][g] <= share["training-conditional", m][g] <= share["dkw", m][g]
        for m in sizes
        for g in share["dkw", m]
    )
    return Verdict(
        claim="at a fixed m, a larger γ allows a smaller k/m, and a larger m allows a smaller γ "
        "(figure 3)",
        criterion="k/m never rises with γ, and the smallest γ reached falls with m",
        measured=f"k/m falls: {falls}; smallest γ on the grid: "
        + ", ".join(f"{g:g} at m = {m:,}" for g, m in zip(least, sizes, strict=True)),
        agrees=falls and reach,
        better=f"at m = {middle:,}, γ = {at:g} k/m is: {shares}. Exact ranks are never above the "
        f"published one: {ahead}",
    )


def _plot_shares(rows: list[Row]) -> Any:
    return lines(
        rows,
        x="gamma",
        y="share",
        by="method",
        labels=("confidence level γ (probability)", "k/m", "calibration"),
        title="Rank of the kept movement against γ",
        caption=f"Figure 3 of {SOURCE}; exact order statistics added",
        panels="panel",
        points=False,
    )


def _least_by_search(gamma: float, steps: int) -> int:
    """Fewest pairs over a grid of rho, each by the condition of Theorem 15.

    The optimum in closed form is in the library's `choose_rank`; this search checks it.
    """
    rho = gamma * np.arange(1, steps) / steps
    needed = np.log(1 / rho) / (2 * (gamma - rho) ** 2)
    return int(np.ceil(needed[rho <= 0.5].min()))


def _table(settings: Settings, point: Point, effort: Effort) -> list[Row]:
    """First row of the table by gamma, second and third row by m."""
    if "gamma" in point:
        gamma = point["gamma"]
        rank = choose_rank("dkw", gamma=gamma)
        row: Row = {
            "budget": "gamma",
            "least by search": _least_by_search(gamma, settings["steps"]),
        }
    else:
        pairs, gamma = point.get("m and gamma") or (point["m"], None)
        rank = choose_rank("dkw", pairs=pairs, gamma=gamma)
        row = {"budget": "m" if gamma is None else "m and gamma", "least by search": None}
    return [
        row
        | {"gamma": rank.gamma, "rho": rank.sampling_error, "pairs": rank.pairs, "rank": rank.rank}
    ]


def _verdict_table(rows: list[Row]) -> Verdict:
    first = [row for row in rows if row["budget"] == "gamma"]
    gaps = [row["pairs"] - row["least by search"] for row in first]
    full = all(row["rank"] == row["pairs"] for row in first)
    pairs = ", ".join(f"{row['pairs']:,} at γ = {row['gamma']:g}" for row in first)
    second = [row for row in rows if row["budget"] != "gamma"]
    return Verdict(
        claim="the ρ of row 1 minimises m for a given γ; with that m, k = m (Table 1)",
        criterion="no ρ of a fine grid needs fewer pairs by Theorem 15, the table no more than the "
        "grid, and k = m throughout row 1",
        measured=f"m = {pairs}; difference from the search: {min(gaps)} to {max(gaps)}; k = m: "
        f"{full}; rows 2 and 3: "
        + ", ".join(f"γ = {r['gamma']:.4g}, m = {r['pairs']:,}, k = {r['rank']:,}" for r in second),
        agrees=full and max(gaps) <= 0 and min(gaps) >= -max(2, 1e-6 * first[-1]["pairs"]),
        better="the whole table bounds a distribution function to learn one quantile; exact order "
        "statistics (figure 2) need no ρ",
    )


def _plot_table(rows: list[Row]) -> Any:
    return lines(
        [
            {**row, "point": "row 1: given γ, fewest pairs"}
            for row in rows
            if row["budget"] == "gamma"
        ],
        x="gamma",
        y="rho",
        by="point",
        labels=("confidence level γ (probability)", "optimal ρ (probability)", "operating point"),
        title="The free parameter ρ of the published bound",
        caption=f"Table 1 of {SOURCE}",
        log="xy",
    )


def _grid() -> list[float]:
    fine = [float(f"{0.5 * 500 ** (-i / 40):.3g}") for i in range(41)]
    return sorted({*fine, *_GAMMAS}, reverse=True)


EFFORT = Experiment(
    paper="ra17",
    figure="figure-2",
    title="Sampled pairs against gamma",
    runs=("corollary 16", "corollary 20"),
    settings=lambda quick: {"gamma": _grid()},
    points=lambda settings: [{"gamma": gamma} for gamma in settings["gamma"]],
    measure=_pairs,
    plot=_plot_pairs,
    verdict=_verdict_pairs,
)
RANKS = Experiment(
    paper="ra17",
    figure="figure-3",
    title="Rank of the kept movement against gamma",
    runs=("theorem 15", "corollary 21"),
    settings=lambda quick: {
        "m": [100, 1_000, 10_000],
        "gamma": [round(0.01 + 0.0125 * i, 6) for i in range(40)],
    },
    points=lambda settings: [{"pairs": m} for m in settings["m"]],
    measure=_shares,
    plot=_plot_shares,
    verdict=_verdict_shares,
)
TABLE = Experiment(
    paper="ra17",
    figure="table-1",
    title="Optimal operating points of the published bound",
    runs=("theorem 15", "corollary 20", "corollary 21", "corollary 22"),
    settings=lambda quick: {
        "gamma": list(_GAMMAS),
        "m": [1_500],
        "m and gamma": [[1_500, 0.05], [50_000, 0.05]],
        "steps": 2_000_000,
    },
    points=lambda settings: [
        {name: value} for name in ("gamma", "m", "m and gamma") for value in settings[name]
    ],
    measure=_table,
    plot=_plot_table,
    verdict=_verdict_table,
)
