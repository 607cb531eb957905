"""Models of diffprivlib on the cases: mean scores of each setting, as JSON."""

from __future__ import annotations

import json
import sys
import warnings
from importlib.metadata import version

import numpy as np
from diffprivlib.models import LinearRegression, LogisticRegression

from benchmarks.peers import model_cases as cases


def fit(case: cases.Case, train: np.ndarray, epsilon: float, setting: tuple[float, float]):
    X = case.scaled()[train]
    if case.span is not None:
        model = LinearRegression(
            epsilon=epsilon, bounds_X=(-1.0, 1.0), bounds_y=case.span, fit_intercept=True
        )
        return model.fit(X, case.y[train])
    penalty, share = setting
    model = LogisticRegression(
        epsilon=epsilon, C=1 / penalty, data_norm=share * np.sqrt(X.shape[1]), max_iter=1000
    )
    return model.fit(X, case.y[train])


def main() -> None:
    warnings.simplefilter("ignore")
    runs = int(sys.argv[1])
    found: dict[str, list[float]] = {}
    for case in cases.load():
        for epsilon in cases.EPSILONS:
            best: list[float] = []
            for setting in case.settings()[: None if case.span is None else 1]:
                scores = []
                for seed in range(runs):
                    one, two, test = cases.cut(case, seed)
                    model = fit(case, np.append(one, two), epsilon, setting)
                    scores.append(float(model.score(case.scaled()[test], case.y[test])))
                best = max(best, scores, key=lambda each: np.mean(each) if each else -np.inf)
            found[f"{case.name} {epsilon}"] = best
    json.dump({"version": version("diffprivlib"), "scores": found}, sys.stdout)


if __name__ == "__main__":
    main()
