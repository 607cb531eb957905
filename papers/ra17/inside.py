"""What the proofs rest on: inside the sampler and the branches of Lambert's W, figures 1 and 8."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import lambertw
from scipy.stats import binom

import hushed as hs
from papers.charts import lines
from papers.experiment import Effort, Experiment, Point, Row, Settings, Verdict
from papers.internals import choose_rank
from papers.ra17.ranks import SOURCE

__all__ = ["BRANCHES", "SAMPLER"]

Floats = NDArray[np.float64]
_RARE = 1e-6  # chance at which a share of samplers is no accident any more
_LARGEST_RHO = 0.28457  # of the secondary branch, as the paper prints it


def _mean(tables: Floats) -> Floats:
    """Mean over the rows of each table."""
    return np.asarray(tables.mean(axis=1))


def _true_share(movements: Floats, rows: int) -> Floats:
    """Share of pairs that move less: rows of rate 1 differ by an exponential number of rate 1."""
    return np.asarray(-np.expm1(-rows * movements))


def _draws(settings: Settings, effort: Effort, number: int) -> Floats:
    found = hs.sample_sensitivity(
        _mean,
        hs.populations.Exponential(rate=1.0),
        rows=settings["rows"],
        pairs=settings["m"],
        calibration="marginal",
        batch=True,
        symmetric=True,
        seed=effort.seed_for("ra17 figure 1", number),
        workers=1,
    )
    return found.draws


def _sampler(settings: Settings, point: Point, effort: Effort) -> list[Row]:
    """Samplers one after the other: where each keeps a movement; of the first, all of them."""
    pairs, gamma, n = settings["m"], settings["gamma"], settings["rows"]
    rank = choose_rank("dkw", gamma=gamma, pairs=pairs)
    rho = float(rank.sampling_error)
    band = math.sqrt(math.log(1 / rho) / (2 * pairs))
    common = {"gamma": gamma, "rho": rho, "band": band, "pairs": pairs, "rank": rank.rank}
    rows: list[Row] = []
    for number in range(point["from"], point["to"]):
        draws = _draws(settings, effort, number)
        share = _true_share(draws, n)
        excess = float((np.arange(1, pairs + 1) / pairs - share).max())
        kept = {"kept": float(draws[rank.rank - 1]), "true share": float(share[rank.rank - 1])}
        rows.append(common | kept | {"sampler": number, "excess": excess, "movement": None})
        if number == 0:
            rows += [
                {**common, "sampler": 0, "movement": float(g), "below": (i + 1) / pairs}
                | {"true share": float(share[i])}
                for i, g in enumerate(draws)
            ]
    return rows


def _verdict_sampler(rows: list[Row]) -> Verdict:
    samplers = [row for row in rows if row["movement"] is None]
    one, count = samplers[0], len(samplers)
    rho, gamma, band = one["rho"], one["gamma"], one["band"]
    level = 1 - gamma + rho
    outside = sum(row["excess"] > band for row in samplers)
    low = sum(row["true share"] < level for row in samplers)
    mean = float(np.mean([row["true share"] for row in samplers]))
    allowed = int(binom.isf(_RARE, count, rho))
    return Verdict(
        claim="inverting the empirical distribution of the movements at 1 - γ + ρ + ρ' keeps one "
        "that at least 1 - γ + ρ of all pairs stay below, except with probability ρ: the empirical "
        "curve lies nowhere above the true one by more than ρ' (figure 1, Theorem 15)",
        criterion="among many samplers the share whose curve leaves the band, and the share whose "
        f"kept movement is too small, exceed ρ by no more than chance allows once in "
        f"{1 / _RARE:,.0f} cases, and the true share of the kept movement is 1 - γ or "
        "more in the mean",
        measured=f"{count:,} samplers of {one['pairs']:,} pairs, γ = {gamma:g}, ρ = {rho:.4f}, "
        f"ρ' = {band:.4f}: {outside / count:.4f} leave the band, {low / count:.4f} keep too "
        f"little; true share of the kept movement {mean:.4f} in the mean",
        agrees=outside <= allowed and low <= allowed and mean >= 1 - gamma,
        better=f"the kept rank {one['rank']:,} pays for the whole curve, and the mean share is "
        f"{mean - (1 - gamma):.4f} above 1 - γ. The exact marginal rank, "
        f"{choose_rank('marginal', gamma=gamma, pairs=one['pairs']).rank:,}, needs no band",
        notes=("the text does not name the function of the figure; here the mean of exponential "
               "rows (Example 6), whose movements have a known law",),
    )  # fmt: skip


def _plot_sampler(rows: list[Row]) -> Any:
    drawn = [row for row in rows if row["movement"] is not None]
    one = rows[0]
    level = 1 - one["gamma"] + one["rho"] + one["band"]
    curves = [("true distribution", "true share"), ("empirical distribution", "below")]
    long: list[Row] = [
        {"x": row["movement"], "y": row[column], "curve": name}
        for name, column in curves
        for row in drawn
    ]
    long += [
        {"x": x, "y": y, "curve": "inverted at 1 - γ + ρ + ρ'"}
        for x, y in ((drawn[0]["movement"], level), (one["kept"], level), (one["kept"], 0.0))
    ]
    return lines(
        long,
        x="x",
        y="y",
        by="curve",
        labels=("movement of the mean (unit of the rows)", "share of pairs (probability)", "curve"),
        title="Inside the sampler",
        caption=f"Figure 1 of {SOURCE}; mean of exponential rows, m = {one['pairs']:,}",
        points=False,
    )


def _branches(settings: Settings, point: Point, effort: Effort) -> list[Row]:
    """One branch at ascending arguments, with what the paper says of it there."""
    branch = point["branch"]
    # Dense at the branch point, where both curves are steep.
    depths = np.linspace(0.0, 1.0, settings["steps"] + 2)[1:-1] ** 2
    arguments = -math.exp(-1) * (1 - depths)
    if branch == 0:
        arguments = np.concatenate([arguments, np.linspace(0.0, 1.0, settings["steps"])])
    values = lambertw(arguments, branch).real
    return [
        {"branch": branch, "argument": float(z), "value": float(w)}
        for z, w in zip(arguments, values, strict=True)
    ]


def _bounds(argument: float) -> tuple[float, float]:
    """Chatzigeorgiou's bounds of the secondary branch: the paper's footnote 2."""
    u = -math.log(-argument) - 1
    root = -1 - math.sqrt(2 * u)
    return root - u, root - 2 * u / 3


def _rho(value: float) -> float:
    return math.exp(value + 0.5)


def _verdict_branches(rows: list[Row]) -> Verdict:
    first = {r["argument"]: r["value"] for r in rows if r["branch"] == 0}
    second = {r["argument"]: r["value"] for r in rows if r["branch"] == -1}
    used = [z for z in second if z > -1 / (2 * math.sqrt(math.e))]
    inverse = max(abs(r["value"] * math.exp(r["value"]) - r["argument"]) for r in rows)
    ranges = all(w > -1 for w in first.values()) and all(w < -1 for w in second.values())
    bounded = [z for z, w in second.items() if _bounds(z)[0] < w < _bounds(z)[1]]
    rho = [_rho(second[z]) for z in used]
    primary = [_rho(first[z]) for z in used]
    feasible = max(rho) <= _LARGEST_RHO + 1e-5 and min(primary) > 0.5
    return Verdict(
        claim="W₀ maps [-1/e, ∞) to [-1, ∞) and W₋₁ maps [-1/e, 0) to (-∞, -1]; at -γ/(2√e) the "
        "primary branch gives a ρ above 1/2, which is not allowed, and the secondary one a ρ in "
        "(0, 0.28457...) (figure 8); footnote 2 encloses W₋₁",
        criterion="W exp(W) gives every argument back to 1e-12, the branches keep to their ranges "
        "and ρ to its own, and both bounds of footnote 2 hold at every argument",
        measured=f"largest error of the inverse {inverse:.1e}; ranges kept: {ranges}; ρ from "
        f"{min(rho):.2g} to {max(rho):.5f} by W₋₁ and from {min(primary):.4f} up by W₀; footnote 2 "
        f"holds at {len(bounded)} of {len(second)} arguments",
        agrees=inverse <= 1e-12 and ranges and feasible and len(bounded) == len(second),
        better="an exact rank needs no ρ, and no branch of W (figure 2)",
        notes=(
            "the paper writes that the primary branch gives a ρ in (-exp(-0.5), exp(0.5)); there "
            "it lies in (-0.5, 0), and ρ in (1, 1.6487): not feasible, either",
        ),
    )


def _plot_branches(rows: list[Row]) -> Any:
    names = {0: "primary W₀", -1: "secondary W₋₁"}
    return lines(
        [{**row, "curve": names[row["branch"]]} for row in rows if row["value"] > -6],
        x="argument",
        y="value",
        by="curve",
        labels=("argument z (no unit)", "W(z) (no unit)", "branch"),
        title="Branches of the Lambert W function",
        caption=f"Figure 8 of {SOURCE}",
        points=False,
    )


SAMPLER = Experiment(
    paper="ra17",
    figure="figure-1",
    title="Inside the sampler",
    runs=("algorithm 1", "theorem 15", "example 6"),
    settings=lambda quick: {
        "rows": 100,
        "m": 300,
        "gamma": 0.2,
        "samplers": 250 if quick else 10_000,
        "piece": 250,
    },
    points=lambda settings: [
        {"from": at, "to": at + settings["piece"]}
        for at in range(0, settings["samplers"], settings["piece"])
    ],
    measure=_sampler,
    plot=_plot_sampler,
    verdict=_verdict_sampler,
)
BRANCHES = Experiment(
    paper="ra17",
    figure="figure-8",
    title="Branches of the Lambert W function",
    runs=("corollary 20", "footnote 2"),
    settings=lambda quick: {"steps": 400},
    points=lambda settings: [{"branch": 0}, {"branch": -1}],
    measure=_branches,
    plot=_plot_branches,
    verdict=_verdict_branches,
)
