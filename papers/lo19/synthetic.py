"""Error of the estimators of delta on known distributions: against n and against S."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import hushed as hs
from papers.charts import lines
from papers.experiment import Effort, Experiment, Point, Row, Settings, Verdict

__all__ = ["SOURCE", "SYNTHETIC"]

Floats = NDArray[np.float64]
Method = Literal["empirical-bayes", "minimax", "plug-in"]
SOURCE = "Liu, Oh, Minimax Rates of Estimating Approximate Differential Privacy, NeurIPS 2019"
_INSTANCES = {
    "A": "A: uniform against i^0.6, ε = 0.4",
    "D": "D: uniform against uniform, ε = 0",
    "E": "E: uniform against uniform on half, ε = 0.4",
}
_FLOOR = 1e-4  # errors below it count as equal
_PUBLISHED, _TWICE = "minimax, as published (two halves, 2n)", "plug-in, 2n"
_SHARED, _PLAIN, _BLEND = "minimax, one sample (n)", "plug-in, n", "blend, 2n (our default)"


def _instance(name: str, symbols: int) -> tuple[Floats, Floats, float]:
    """Distributions p and q, and epsilon."""
    uniform = np.full(symbols, 1 / symbols)
    if name == "A":
        rising = np.arange(1.0, symbols + 1) ** 0.6
        return uniform, rising / rising.sum(), 0.4
    if name == "D":
        return uniform, uniform, 0.0
    half = (np.arange(symbols) < symbols // 2).astype(float)
    return uniform, half / half.sum(), 0.4


def _truth(p: Floats, q: Floats, epsilon: float) -> float:
    return float(np.maximum(q - math.exp(epsilon) * p, 0.0).sum())


def _estimates(
    p: Floats, q: Floats, epsilon: float, n: int, rng: np.random.Generator, *, known: bool
) -> dict[str, float]:
    """One estimate by each method; the sizes are those of each side, and fixed."""

    def estimate(size: int, method: Method, *, halves: bool = False) -> float:
        drawn = rng.multinomial(size, q)
        if known:
            return float(hs.estimate_delta(None, drawn, epsilon, p=p, method=method))
        other = rng.multinomial(size, p)
        roles: Literal["split", "shared"] = "split" if halves else "shared"
        return float(hs.estimate_delta(other, drawn, epsilon, method=method, roles=roles, rng=rng))

    found = {
        _PLAIN: estimate(n, "plug-in"),
        _TWICE: estimate(2 * n, "plug-in"),
        _SHARED: estimate(n, "minimax"),
        _BLEND: estimate(2 * n, "empirical-bayes"),
    }
    if not known:
        found[_PUBLISHED] = estimate(2 * n, "minimax", halves=True)
    return found


def _measure(settings: Settings, point: Point, effort: Effort) -> list[Row]:
    """Root mean squared error of each method at one size and alphabet."""
    name, n, symbols = point["instance"], point["n"], point["symbols"]
    p, q, epsilon = _instance(name, symbols)
    truth = _truth(p, q, epsilon)
    known = settings["known"]
    rng = effort.stream("lo19", name, n, symbols, int(known))
    errors: dict[str, list[float]] = {}
    for _ in range(settings["repeats"]):
        for method, value in _estimates(p, q, epsilon, n, rng, known=known).items():
            errors.setdefault(method, []).append((value - truth) ** 2)
    return [
        {"instance": _INSTANCES[name], "n": n, "symbols": symbols, "method": method}
        | {"truth": truth, "error": math.sqrt(np.mean(squares))}
        | {"deviation": float(np.std(squares) / math.sqrt(len(squares)))}
        for method, squares in errors.items()
    ]


def _ratios(rows: list[Row], one: str, other: str) -> dict[tuple[str, int, int], float]:
    """Error of one method over that of another, by instance, n and S."""
    found: dict[tuple[str, int, int], dict[str, float]] = {}
    for row in rows:
        key = (row["instance"], row["n"], row["symbols"])
        found.setdefault(key, {})[row["method"]] = row["error"]
    return {
        key: max(each[one], _FLOOR) / max(each[other], _FLOOR)
        for key, each in found.items()
        if one in each and other in each
    }


def _doubt(rows: list[Row], one: str, other: str) -> dict[tuple[str, int, int], float]:
    """Relative standard error of the ratio of two errors, by instance, n and S."""
    found: dict[tuple[str, int, int], float] = {}
    for row in rows:
        if row["method"] in (one, other):
            key = (row["instance"], row["n"], row["symbols"])
            own = row["deviation"] / (2 * max(row["error"], _FLOOR) ** 2)
            found[key] = math.hypot(found.get(key, 0.0), own)
    return found


def _listed(ratios: dict[tuple[str, int, int], float], column: int) -> str:
    name = "n" if column == 1 else "S"
    return ", ".join(f"{value:.2f} ({name} = {key[column]:,})" for key, value in ratios.items())


def _verdict(rows: list[Row], column: int) -> Verdict:
    """Compare as published, and at an equal budget."""
    published = any(row["method"] == _PUBLISHED for row in rows)
    minimax = _PUBLISHED if published else _SHARED
    first = {k: v for k, v in _ratios(rows, minimax, _PLAIN).items() if k[0] == _INSTANCES["A"]}
    equal = _ratios(rows, minimax, _TWICE if published else _PLAIN)
    blend = _ratios(rows, _BLEND, _TWICE)
    doubt = _doubt(rows, minimax, _PLAIN)
    inside = [value <= 1 + 2 * doubt[key] for key, value in first.items()]
    lost = [f"{k[0][0]} at n = {k[1]:,}, S = {k[2]:,}" for k, v in equal.items() if v > 1]
    return Verdict(
        claim="the minimax estimator improves on the plug-in estimator in the synthetic example "
        "(uniform against i^0.6, ε = 0.4): with n samples it is as good as the plug-in with "
        "n log n",
        criterion="on that example its root mean squared error, as published, is above that of "
        "the plug-in with n samples by more than two standard errors at no size drawn, and at most "
        "half of it at one size",
        measured=f"error of '{minimax}' over '{_PLAIN}': {_listed(first, column)} (errors below "
        f"{_FLOOR:g} count as {_FLOOR:g})",
        agrees=all(inside) and min(first.values()) <= 0.5,
        better=f"at an equal budget ('{minimax}' against '{_TWICE if published else _PLAIN}') it "
        f"loses at {len(lost)} of {len(equal)} settings"
        + (f" ({'; '.join(lost[:4])}{'; ...' if len(lost) > 4 else ''})" if lost else "")
        + f"; the blend with the same 2n samples is {min(blend.values()):.2f} to "
        f"{max(blend.values()):.2f} times the plug-in's error, mean "
        f"{math.exp(np.mean(np.log(list(blend.values())))):.2f}",
        notes=(
            "sizes are per side and fixed, not Poisson; as published the minimax estimator gets "
            "two samples of n a side and the plug-in one"
            if published
            else "with p known one sample of q serves both roles, so the budget is n",
            "D and E are not in the paper: they show where polynomials do not pay",
        ),
    )


def _plot(rows: list[Row], x: str, known: bool) -> Any:
    what = "P known" if known else "both sampled"
    against = "sample size n per side" if x == "n" else "alphabet size S"
    fixed = {row["symbols" if x == "n" else "n"] for row in rows}
    held = f"{'S' if x == 'n' else 'n'} = {min(fixed):,}"
    drawn = [{**row, "error": max(row["error"], _FLOOR)} for row in rows]
    return lines(
        [row for name in _INSTANCES.values() for row in drawn if row["instance"] == name],
        x=x,
        y="error",
        by="method",
        labels=(f"{against} (count)", "root mean squared error of δ", "estimator"),
        title=f"Error against {'n' if x == 'n' else 'S'}, {what}, {held}",
        caption=[
            f"Synthetic comparison of {SOURCE}; D and E added",
            f"errors below {_FLOOR:g} are drawn there",
        ],
        log="xy",
        panels="instance",
        columns=3,
    )


def _experiment(*, known: bool, against: Literal["n", "s"]) -> Experiment:
    column, x = (1, "n") if against == "n" else (2, "symbols")
    what = "P known" if known else "both distributions sampled"

    def settings(quick: bool) -> Settings:
        sizes = [100, 1_000, 10_000] if quick else [100, 316, 1_000, 3_162, 10_000, 31_622, 100_000]
        alphabets = [10, 100, 1_000] if quick else [10, 31, 100, 316, 1_000, 3_162, 10_000]
        return {
            "known": known,
            "instances": list(_INSTANCES),
            "n": sizes if against == "n" else [3_000],
            "symbols": [100] if against == "n" else alphabets,
            "repeats": 30 if quick else 100,
        }

    def points(chosen: Settings) -> list[Point]:
        return [
            {"instance": i, "n": n, "symbols": s}
            for i in chosen["instances"]
            for n in chosen["n"]
            for s in chosen["symbols"]
        ]

    return Experiment(
        paper="lo19",
        figure=f"{'known' if known else 'unknown'}-{against}",
        runs=("algorithm 1", "theorem 3") if known else ("algorithm 2",),
        title=f"Error of the estimators against {'n' if against == 'n' else 'S'}, {what}",
        settings=settings,
        points=points,
        measure=_measure,
        plot=lambda rows: _plot(rows, x, known),
        verdict=lambda rows: _verdict(rows, column),
    )


SYNTHETIC = (
    _experiment(known=True, against="n"),
    _experiment(known=True, against="s"),
    _experiment(known=False, against="n"),
    _experiment(known=False, against="s"),
)
