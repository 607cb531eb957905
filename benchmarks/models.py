"""Private models beside those of diffprivlib, on three data sets of scikit-learn.

Run with ``python -m benchmarks models``. The objective route and diffprivlib fit four fifths of the
rows, and score on one fifth; the sampled route fits two fifths, and has two fifths for its public
population. Of a few penalties and lengths of rows each method is shown with its best, by the
scores themselves: that is as optimistic for one as for the other. diffprivlib runs in
``.venv-peers``, which ``make bench-peers`` makes; without it its column is empty.

Predicted: at epsilon = 10 both within .05 of the fit without noise on breast cancer, at 1 within
.15, and at 0.1 near the share of the larger class; digits useful at 10 alone, and hushed ahead
there (one joint fit instead of ten); diabetes below 0 at 0.1 for both.
Got (5 cuts, one of digits): breast cancer .73, .84 and .92 by the objective, .65, .89 and .92
sampled, .74, .82 and .93 by diffprivlib, of .96; digits .86 at 10, and .34 by diffprivlib;
diabetes -.95, .20 and .41, sampled .05, .28 and .39, of .42, and far below 0 by diffprivlib.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

from benchmarks.peers import model_cases as cases
from benchmarks.peers.comparison import ENVIRONMENT, ROOT, peers_python
from hushed.errors import HushedError
from hushed.sklearn import PrivateEstimator


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--peers", type=Path, default=ENVIRONMENT, help="where diffprivlib is")
    parser.add_argument("--runs", type=int, default=10, help="cuts of each data set")


def estimator(case: cases.Case, penalty: float) -> Any:
    if case.span is not None:
        return Ridge(alpha=penalty)
    return LogisticRegression(C=1 / penalty, max_iter=1000, tol=1e-8)


def labels(case: cases.Case) -> Any:
    return case.span if case.span is not None else np.unique(case.y).tolist()


def penalties(case: cases.Case) -> list[float]:
    return sorted({penalty for penalty, _ in case.settings()})


def exact(case: cases.Case, one: np.ndarray, two: np.ndarray, epsilon: float) -> Iterator[Any]:  # noqa: ARG001
    train = np.append(one, two)
    for penalty in penalties(case):
        yield estimator(case, penalty).fit(case.scaled()[train], case.y[train])


def objective(case: cases.Case, one: np.ndarray, two: np.ndarray, epsilon: float) -> Iterator[Any]:
    train, features = np.append(one, two), case.X.shape[1]
    for penalty, share in case.settings():
        model = PrivateEstimator(
            estimator(case, penalty),
            epsilon=epsilon,
            route="objective",
            bounds=(-1, 1),
            labels=labels(case),
            clip=2 * share * math.sqrt(features),
        )
        yield model.fit(case.scaled()[train], case.y[train])


def sampled(case: cases.Case, one: np.ndarray, two: np.ndarray, epsilon: float) -> Iterator[Any]:
    block = len(two) // 19 - 1  # 19 pairs of block + 1 public rows
    kept = one[: len(one) // block * block]
    rows = case.scaled()
    for penalty in penalties(case):
        model = PrivateEstimator(
            estimator(case, penalty),
            (rows[two], case.y[two]),
            epsilon=epsilon,
            bounds=(-1, 1),
            labels=labels(case),
            block_rows=block,
            calibration="marginal",
            workers=1,
        )
        yield model.fit(rows[kept], case.y[kept])


def best(case: cases.Case, fits: Any, epsilon: float, runs: int) -> list[float]:
    """Scores of the setting with the best mean; empty where it cannot be fitted."""
    found = []
    for seed in range(runs):
        one, two, test = cases.cut(case, seed)
        try:
            models = list(fits(case, one, two, epsilon))
        except HushedError:  # all blocks of few rows lack a class, say: there is nothing to release
            return []
        rows = case.scaled()[test]
        found.append([float(model.score(rows, case.y[test])) for model in models])
    scores = np.array(found)
    return list(scores[:, scores.mean(axis=0).argmax()])


def ask_diffprivlib(environment: Path, runs: int) -> dict[str, Any]:
    """Scores by diffprivlib, from a process in its environment; none without one."""
    python = peers_python(environment)
    if not python.exists():
        return {"version": f"not measured, for {environment.name} is not there", "scores": {}}
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [str(python), "-m", "benchmarks.peers.models_with_diffprivlib", str(runs)],
        cwd=ROOT,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return {"version": "not measured, it failed", "scores": {}}
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def show(scores: list[float]) -> str:
    return f"{np.mean(scores):.2f} ({np.std(scores):.2f})" if scores else "-"


def main(quick: bool, peers: Path = ENVIRONMENT, runs: int = 10) -> None:
    warnings.simplefilter("ignore")
    runs = 1 if quick else runs
    other = ask_diffprivlib(peers, runs) if not quick else {"version": "not asked", "scores": {}}
    print(f"diffprivlib {other['version']}; mean and standard deviation of {runs} cuts")
    print("| data set | epsilon | without noise | objective | sampled | diffprivlib |")
    print("|---|--:|--:|--:|--:|--:|")
    for case in cases.load():
        if quick and case.name == "digits":
            continue
        plain = show(best(case, exact, 0.0, runs))
        for epsilon in cases.EPSILONS[-1:] if quick else cases.EPSILONS:
            own = [show(best(case, each, epsilon, runs)) for each in (objective, sampled)]
            theirs = show(other["scores"].get(f"{case.name} {epsilon}", []))
            print(
                f"| {case.name} | {epsilon} | {plain} | {own[0]} | {own[1]} | {theirs} |",
                flush=True,
            )
