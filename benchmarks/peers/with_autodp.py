"""The accounting cases by autodp, through the Renyi divergence, its default."""

from __future__ import annotations

from importlib.metadata import version

from autodp import mechanism_zoo as zoo
from autodp.transformer_zoo import ComposeGaussian, Composition

from benchmarks.peers import cases


def mixed() -> float:
    parts = [zoo.LaplaceMechanism(b=b) for b in cases.SCALES]
    parts += [zoo.ExactGaussianMechanism(sigma=s) for s in cases.SIGMAS]
    return float(Composition()(parts, [1] * len(parts)).get_approxDP(cases.DELTA))


def jobs() -> cases.Jobs:
    return {
        "compose gaussian": lambda: ComposeGaussian()(
            [zoo.ExactGaussianMechanism(sigma=cases.SIGMA)], [cases.RELEASES]
        ).get_approxDP(cases.DELTA),
        "compose laplace": lambda: Composition()(
            [zoo.LaplaceMechanism(b=1 / cases.LEVEL)], [cases.RELEASES]
        ).get_approxDP(cases.DELTA),
        "compose mixed": mixed,
    }


if __name__ == "__main__":
    cases.answer("autodp", version("autodp"), jobs())
