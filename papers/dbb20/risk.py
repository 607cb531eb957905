"""Risk against the level, and the number of samples: the paper's figures 1, 2 and 4."""

from __future__ import annotations

import math
from itertools import pairwise

import hushed as hs
from papers.charts import lines
from papers.experiment import Effort, Experiment, Point, Row, Settings, Verdict
from papers.internals import choose_rank

__all__ = ["DIMENSIONS", "LEVELS", "SAMPLES", "SOURCE"]

SOURCE = "Dandekar, Basu, Bressan, Differential Privacy at Risk, PoPETs 2021"
_STEP = 0.025


def _risks(settings: Settings, point: Point, effort: Effort) -> list[Row]:
    """List published risk and exact quantities at levels up to epsilon0."""
    top, dims = point["epsilon0"], point["dims"]
    rows: list[Row] = []
    for i in range(round(top / settings["step"]) + 1):
        level = round(i * settings["step"], 12)
        found = hs.risk.assess(level, top, dims=dims)
        rows.append(
            {
                "epsilon0": top,
                "dims": dims,
                "epsilon": found.epsilon,
                "published risk": found.published_risk,
                "exact delta": found.delta,
                "loss exceeds": found.loss_exceeds,
            }
        )
    return rows


def _long(rows: list[Row], named: str) -> list[Row]:
    """One row for each curve: the published risk by what varies, and the exact delta."""
    long: list[Row] = []
    seen: set[float] = set()
    for row in rows:
        curve = f"published risk, {named.format(**row)}"
        long.append({"x": row["epsilon"], "y": row["published risk"], "curve": curve})
    tops = sorted({row["epsilon0"] for row in rows})
    for top in tops:
        for row in rows:
            if row["epsilon0"] == top and row["epsilon"] not in seen:
                curve = f"exact delta, ε₀ = {top:g}"
                long.append({"x": row["epsilon"], "y": row["exact delta"], "curve": curve})
                seen.add(row["epsilon"])
        seen.clear()
    return long


def _falls(values: list[float]) -> bool:
    return all(a >= b - 1e-12 for a, b in pairwise(values))


def _over_promised(rows: list[Row]) -> list[Row]:
    """Rows whose published risk is below the exact delta."""
    return [r for r in rows if r["published risk"] < r["exact delta"] * (1 - 1e-12) - 1e-15]


def _verdict_levels(rows: list[Row]) -> Verdict:
    tops = sorted({row["epsilon0"] for row in rows})
    curves = {t: {r["epsilon"]: r for r in rows if r["epsilon0"] == t} for t in tops}
    shared = [level for level in curves[tops[0]] if 0 < level < tops[0]]
    risks = {t: {x: row["published risk"] for x, row in curves[t].items()} for t in tops}
    ordered = all(_falls([-risks[t][level] for t in tops]) for level in shared)
    falls = all(_falls(list(risks[t].values())) for t in tops)
    wrong = _over_promised(rows)
    first = {t: [r["epsilon"] for r in wrong if r["epsilon0"] == t] for t in tops}
    where = "; ".join(f"ε₀ = {t:g} from ε = {min(v):g} up" for t, v in first.items() if v)
    middle = shared[len(shared) // 2]
    one = curves[tops[0]][middle]
    return Verdict(
        claim="for a given level ε the risk grows with ε₀, and for a given ε₀ it falls as the "
        "level rises (figure 1 and the remarks on it)",
        criterion="every published curve falls in ε, and at every level below the smallest ε₀ the "
        "risk rises from each ε₀ to the next",
        measured=f"curves fall: {falls}; ordered in ε₀: {ordered}; at ε = {middle:g} the risk is "
        + ", ".join(f"{risks[t][middle]:.4f} (ε₀ = {t:g})" for t in tops),
        agrees=falls and ordered,
        better=f"the published risk is below the exact delta at {len(wrong)} of {len(rows)} points "
        f"({where or 'nowhere'}): there it promises more than the mechanism keeps. Exact: "
        "delta = 1 - exp(-(ε₀ - ε)/2)",
        notes=(
            f"at ε₀ = {tops[0]:g}, ε = {middle:g} the loss exceeds the level with probability "
            f"{one['loss exceeds']:.4f}, not the published {one['published risk']:.4f}",
            "the text at hand does not name the values of ε₀; those drawn are ours",
        ),
    )


def _verdict_dims(rows: list[Row]) -> Verdict:
    dims = sorted({row["dims"] for row in rows})
    top = rows[0]["epsilon0"]
    by_dims = [
        {row["epsilon"]: row["published risk"] for row in rows if row["dims"] == k} for k in dims
    ]
    inner = [level for level in by_dims[0] if 0 < level < top]
    rises = all(_falls([-values[level] for values in by_dims]) for level in inner)
    middle = min(inner, key=lambda level: abs(level - top / 2))
    values = ", ".join(f"{v[middle]:.4f} (k = {k})" for k, v in zip(dims, by_dims, strict=True))
    return Verdict(
        claim="for a given level the risk grows with the number k of coordinates (figure 2)",
        criterion="at every level strictly inside (0, ε₀) the published risk rises with k",
        measured=f"at ε₀ = {top:g}, ε = {middle:g}: {values}",
        agrees=rises,
        better=f"the exact delta of the worst pair does not depend on k: "
        f"{hs.risk.delta(middle, top):.4f} at this level. The rise with k is a property of the "
        "published quantity, not of the mechanism",
        notes=("the text at hand does not name the values of k; those drawn are ours",),
    )


def _plot_levels(rows: list[Row]) -> object:
    return lines(
        _long(rows, "ε₀ = {epsilon0:g}"),
        x="x",
        y="y",
        by="curve",
        labels=("level ε (nats)", "risk or delta (probability)", "quantity"),
        title="Privacy at risk of the Laplace mechanism, one coordinate",
        caption=f"Figure 1 of {SOURCE}, Theorem 4.1; exact delta added",
        points=False,
    )


def _plot_dims(rows: list[Row]) -> object:
    return lines(
        _long(rows, "k = {dims}"),
        x="x",
        y="y",
        by="curve",
        labels=("level ε (nats)", "risk or delta (probability)", "quantity"),
        title=f"Privacy at risk for k coordinates, ε₀ = {rows[0]['epsilon0']:g}",
        caption=f"Figure 2 of {SOURCE}, Theorem 4.1; exact delta added",
        points=False,
    )


def _sizes(settings: Settings, point: Point, effort: Effort) -> list[Row]:
    """Count the samples that Theorem 5 asks for at a risk, beside the exact order statistics."""
    level = point["risk"]
    rows: list[Row] = [
        {"risk": level, "method": f"Theorem 5, ρ = {rho:g}", "rho": rho}
        | {"samples": hs.risk.samples_for_accuracy(1.0 - level, rho=rho)}
        for rho in settings["rho"]
    ]
    for name in ("training-conditional", "marginal"):
        pairs = choose_rank(name, gamma=level).pairs
        rows.append({"risk": level, "method": f"exact, {name}", "rho": 0.0, "samples": pairs})
    return rows


def _verdict_sizes(rows: list[Row]) -> Verdict:
    methods = list(dict.fromkeys(r["method"] for r in rows if r["rho"] > 0))
    series = {m: [r["samples"] for r in rows if r["method"] == m] for m in methods}
    falls = all(_falls(values) for values in series.values())
    rhos = {r["rho"]: r["samples"] for r in rows if r["rho"] > 0 and r["risk"] == rows[0]["risk"]}
    finer = _falls([rhos[rho] for rho in sorted(rhos)])
    at = min({r["risk"] for r in rows}, key=lambda level: abs(level - 0.05))
    samples = {r["method"]: r["samples"] for r in rows if r["risk"] == at}
    return Verdict(
        claim="the number of samples falls as the accepted risk grows, and rises as the error "
        "parameter ρ shrinks (figure 4)",
        criterion="every curve falls in the risk, and at the smallest risk a smaller ρ needs more",
        measured=f"curves fall: {falls}; ordered in ρ: {finer}; at risk {at:g}: "
        + ", ".join(f"{samples[m]:,} ({m})" for m in methods),
        agrees=falls and finer,
        better=f"order statistics need no band around the whole distribution: at gamma = {at:g} "
        f"{samples['exact, training-conditional']} pairs give the training-conditional promise and "
        f"{samples['exact, marginal']} the marginal one",
        notes=(
            "log(2/risk)/(2ρ²) samples: 1/ρ² is the price of a uniform band, which a single "
            "order statistic does not need",
            "where a large ρ asks for fewer pairs than the exact ranks, the error ρ that it leaves "
            "in the distribution is not paid for",
            "the text at hand does not name the values of ρ; those drawn are ours",
        ),
    )


def _plot_sizes(rows: list[Row]) -> object:
    return lines(
        rows,
        x="risk",
        y="samples",
        by="method",
        labels=("privacy at risk γ (probability)", "sampled pairs", "method"),
        title="Sampled pairs against the accepted risk",
        caption=f"Figure 4 of {SOURCE}, Theorem 5; exact order statistics added",
        log="xy",
        points=False,
    )


LEVELS = Experiment(
    paper="dbb20",
    figure="figure-1",
    title="Risk against level for several ε₀",
    runs=("theorem 4.1", "figure 3"),
    settings=lambda quick: {"epsilon0": [1.0, 1.5, 2.0, 2.5], "step": _STEP},
    points=lambda settings: [{"epsilon0": e, "dims": 1} for e in settings["epsilon0"]],
    measure=_risks,
    plot=_plot_levels,
    verdict=_verdict_levels,
)
DIMENSIONS = Experiment(
    paper="dbb20",
    figure="figure-2",
    title="Risk against level for several numbers of coordinates",
    runs=("theorem 4.1", "figure 3"),
    settings=lambda quick: {"epsilon0": 1.0, "dims": [1, 2, 3, 10], "step": _STEP},
    points=lambda settings: [
        {"epsilon0": settings["epsilon0"], "dims": k} for k in settings["dims"]
    ],
    measure=_risks,
    plot=_plot_dims,
    verdict=_verdict_dims,
)
SAMPLES = Experiment(
    paper="dbb20",
    figure="figure-4",
    title="Number of samples against risk",
    runs=("theorem 5",),
    settings=lambda quick: {
        "rho": [0.001, 0.01, 0.1],
        "risk": sorted({0.05, *(round(math.pow(10, -3 + 3 * i / 15) * 0.9, 6) for i in range(16))}),
    },
    points=lambda settings: [{"risk": level} for level in settings["risk"]],
    measure=_sizes,
    plot=_plot_sizes,
    verdict=_verdict_sizes,
)
