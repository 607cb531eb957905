"""The cases by diffprivlib. It draws one value at a call, so vectors are loops."""

from __future__ import annotations

import warnings
from importlib.metadata import version

from diffprivlib import BudgetAccountant, tools
from diffprivlib.mechanisms import GaussianAnalytic, GaussianDiscrete, Geometric, Laplace

from benchmarks.peers import cases


def composed() -> float:
    accountant = BudgetAccountant(slack=cases.DELTA)
    for _ in range(cases.RELEASES):
        accountant.spend(cases.LEVEL, 0)
    return float(accountant.total()[0])


def jobs() -> cases.Jobs:
    warnings.simplefilter("ignore")
    one = {"epsilon": 1.0, "sensitivity": 1}
    laplace, gaussian = Laplace(**one), GaussianAnalytic(delta=cases.DELTA, **one)
    integer, discrete = Geometric(**one), GaussianDiscrete(delta=cases.DELTA, **one)
    many = range(cases.VECTOR)
    rows, middling = cases.numbers(), cases.middling()
    return {
        "laplace one": lambda: laplace.randomise(5.0),
        "gaussian one": lambda: gaussian.randomise(5.0),
        "laplace integer one": lambda: integer.randomise(5),
        "gaussian integer one": lambda: discrete.randomise(5),
        "laplace vector": lambda: [laplace.randomise(0.0) for _ in many],
        "gaussian vector": lambda: [gaussian.randomise(0.0) for _ in many],
        "laplace integer vector": lambda: [integer.randomise(0) for _ in many],
        "gaussian integer vector": lambda: [discrete.randomise(0) for _ in many],
        "compose laplace": composed,
        "mean": lambda: tools.mean(rows, epsilon=cases.EPSILON, bounds=(0, 1)),
        "histogram": lambda: tools.histogram(rows, epsilon=cases.EPSILON, bins=100, range=(0, 1))[
            0
        ],
        "median": lambda: tools.median(middling, epsilon=cases.EPSILON, bounds=(0, 100)),
    }


if __name__ == "__main__":
    cases.answer("diffprivlib", version("diffprivlib"), jobs())
