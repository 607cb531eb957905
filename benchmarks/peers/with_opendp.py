"""The cases by OpenDP."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np
import opendp.prelude as dp

from benchmarks.peers import cases


def noise_jobs() -> cases.Jobs:
    found = {}
    for kind, cell, start in (("", float, 5.0), (" integer", int, 5)):
        atom = dp.atom_domain(T=float, nan=False) if cell is float else dp.atom_domain(T=int)
        vector = dp.vector_domain(atom, size=cases.VECTOR)
        zeros = np.zeros(cases.VECTOR, dtype=np.float64 if cell is float else np.int32)
        one = (atom, dp.absolute_distance(T=cell))
        laplace = dp.m.make_laplace(*one, scale=1.0)
        gaussian = dp.m.make_gaussian(*one, scale=5.0)
        laplaces = dp.m.make_laplace(vector, dp.l1_distance(T=cell), scale=1.0)
        gaussians = dp.m.make_gaussian(vector, dp.l2_distance(T=float), scale=5.0)
        found |= {
            f"laplace{kind} one": lambda m=laplace, v=start: m(v),
            f"gaussian{kind} one": lambda m=gaussian, v=start: m(v),
            f"laplace{kind} vector": lambda m=laplaces, v=zeros: m(v),
            f"gaussian{kind} vector": lambda m=gaussians, v=zeros: m(v),
        }
    return found


def at_delta(measurement: dp.Measurement) -> float:
    approximate = dp.c.make_zCDP_to_approxDP(measurement)
    return float(dp.c.make_fix_delta(approximate, cases.DELTA).map(1.0)[0])


def composed_gaussian() -> float:
    one = dp.m.make_gaussian(
        dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=cases.SIGMA
    )
    return at_delta(dp.c.make_composition([one] * cases.RELEASES))


def composed_laplace() -> float:
    one = dp.m.make_laplace(
        dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=1 / cases.LEVEL
    )
    return at_delta(dp.c.make_composition([dp.c.make_pureDP_to_zCDP(one)] * cases.RELEASES))


def composed_mixed() -> float:
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    parts = [dp.c.make_pureDP_to_zCDP(dp.m.make_laplace(*space, scale=b)) for b in cases.SCALES]
    parts += [dp.m.make_gaussian(*space, scale=s) for s in cases.SIGMAS]
    return at_delta(dp.c.make_composition(parts))


def release_jobs() -> cases.Jobs:
    rows, middling = cases.numbers(), cases.middling()
    unit = dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0), nan=False), size=len(rows))
    mean = (unit, dp.symmetric_distance()) >> dp.t.then_mean() >> dp.m.then_laplace(scale=1e-4)
    bins = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    histogram = (
        bins
        >> dp.t.then_count_by_categories(categories=list(range(100)), null_category=False)
        >> dp.m.then_laplace(scale=1.0)
    )
    wide = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(middling))
    candidates = [float(c) for c in np.linspace(0, 100, 1001)]
    chosen = dp.binary_search_chain(
        lambda s: (
            (wide, dp.symmetric_distance())
            >> dp.t.then_quantile_score_candidates(candidates, alpha=0.5)
            >> dp.m.then_noisy_max(dp.max_divergence(), scale=s, negate=True)
        ),
        d_in=2,
        d_out=cases.EPSILON,
    )
    return {
        "mean": lambda: mean(rows),
        "histogram": lambda: histogram(np.minimum((rows * 100).astype(np.int32), 99)),
        "median": lambda: candidates[chosen(middling)],
    }


def jobs() -> cases.Jobs:
    dp.enable_features("contrib")
    return {
        **noise_jobs(),
        "compose gaussian": composed_gaussian,
        "compose laplace": composed_laplace,
        "compose mixed": composed_mixed,
        **release_jobs(),
    }


if __name__ == "__main__":
    cases.answer("OpenDP", version("opendp"), jobs())
