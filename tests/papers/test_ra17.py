"""Figures of Rubinstein and Alda: numbers against references, verdicts against made-up data."""

import math

import numpy as np
import pytest

import hushed as hs
import papers
from hushed.errors import ParameterError
from papers import Effort
from papers.ra17 import classifiers, densities, inside, means, protection, ranks, svm
from papers.ra17.ranks import METHODS

DKW, CONDITIONAL, MARGINAL = METHODS.values()

# An independent implementation of the closed forms of Table 1 gave these.
REFERENCE = {0.5: (0.08396822, 8), 0.33: (0.04613996, 20), 0.2: (0.023533, 61),
             0.1: (0.009744612, 285), 0.05: (0.00418287, 1305), 0.01: (0.0006361227, 41971),
             0.001: (4.786e-05, 5486187)}  # fmt: skip
EXACT = {0.5: (4, 1), 0.33: (8, 3), 0.2: (18, 4), 0.1: (46, 9), 0.05: (112, 19),
         0.01: (760, 99), 0.001: (10228, 999)}  # fmt: skip


def data(figure, **changes):
    """Rows of a figure with some settings changed."""
    experiment = papers.find("ra17", figure)
    settings = {**experiment.settings(True), **changes}
    effort = Effort()
    return [r for _, rows in experiment.pieces(settings, effort) for r in rows]


def test_table_1_holds_the_reference_values():
    """Row 1 has rho and m, and the ranks of rows 2 and 3."""
    rows = data("table-1", steps=20_000)
    first = {r["gamma"]: r for r in rows if r["budget"] == "gamma"}
    for gamma, (rho, pairs) in REFERENCE.items():
        assert first[gamma]["rho"] == pytest.approx(rho, rel=1e-4)
        assert first[gamma]["pairs"] == first[gamma]["rank"] == pairs
    others = [(r["pairs"], r["rank"]) for r in rows if r["budget"] != "gamma"]
    assert others == [(1500, 1500), (1500, 1496), (50_000, 47_961)]
    (row,) = (r for r in rows if r["budget"] == "m")
    assert row["gamma"] == pytest.approx(0.04689906, abs=1e-8)


def test_table_1_disagrees_when_a_search_finds_fewer_pairs():
    """A table that asks for more pairs than needed is found out, and so is a wrong rank."""
    rows = data("table-1", steps=2_000_000, gamma=[0.2, 0.05])
    assert ranks.TABLE.verdict(rows).agrees
    more = [{**r, "pairs": r["pairs"] + 5, "rank": r["rank"] + 5} for r in rows]
    assert not ranks.TABLE.verdict(more).agrees
    below = [{**r, "rank": r["rank"] - 1} for r in rows]
    assert not ranks.TABLE.verdict(below).agrees


def test_figure_2_holds_the_reference_values():
    """Pairs by all three calibrations."""
    rows = data("2", gamma=list(REFERENCE))
    found = {(r["gamma"], r["method"]): r["pairs"] for r in rows}
    for gamma in REFERENCE:
        assert found[gamma, DKW] == REFERENCE[gamma][1]
        assert (found[gamma, CONDITIONAL], found[gamma, MARGINAL]) == EXACT[gamma]
    verdict = ranks.EFFORT.verdict(rows)
    assert verdict.agrees
    assert "112 or 19 instead of 1,305" in verdict.better


def test_figure_2_disagrees_with_another_rate():
    """Effort that grows like 1/gamma^3 does not have the rate."""
    rows = data("2", gamma=list(REFERENCE))
    steep = [{**r, "pairs": math.ceil(r["gamma"] ** -3)} for r in rows]
    assert not ranks.EFFORT.verdict(steep).agrees


def test_figure_3_at_the_known_ranks():
    """Ranks at m = 1500 and gamma = 0.05 are the reference ones; the verdict follows the data."""
    rows = data("3", m=[1500], gamma=[0.05])
    assert {r["method"]: r["rank"] for r in rows} == {DKW: 1496, CONDITIONAL: 1452, MARGINAL: 1426}
    rows = data("3", m=[100, 1000], gamma=[0.05, 0.1, 0.2, 0.4])
    assert not [r for r in rows if r["method"] == DKW and r["pairs"] == 100 and r["gamma"] < 0.15]
    assert ranks.RANKS.verdict(rows).agrees
    rising = [{**r, "share": r["gamma"]} for r in rows]
    assert not ranks.RANKS.verdict(rising).agrees


@pytest.mark.slow
def test_figure_4_stands_on_the_analytic_sensitivity():
    """Marginal estimates have the mean of an exponential order statistic, a sum of 1/i.

    The k-th smallest of m exponentials has mean sum over i of 1/(m - i + 1); 40 repeats of 200
    pairs leave a standard error below 2 %, so 8 % fails by chance in fewer than 1e-4 runs, and
    the seed is fixed.
    """
    rows = data("4", m=[200], repeats=40, gamma=[0.1, 0.5])
    for gamma in (0.1, 0.5):
        (row,) = (r for r in rows if r["method"] == MARGINAL and r["gamma"] == gamma)
        rank = math.ceil(round((1 - gamma) * 201, 9))
        mean = sum(1 / (200 - i) for i in range(rank)) / 100
        assert row["sensitivity"] == pytest.approx(mean, rel=0.08)
        assert row["analytic"] == pytest.approx(-math.log(gamma) / 100)


def test_figure_4_follows_the_data():
    """An excess that shrinks with the budget agrees, one that grows does not."""
    rows = [
        {"pairs": m, "gamma": g, "method": name, "analytic": 1.0, "sensitivity": 1 + 1 / m + extra}
        for m, g0 in ((100, 0.1), (1000, 0.05))
        for g in (0.05, 0.1, 0.2)
        if g >= g0
        for name, extra in ((DKW, 0.0), (CONDITIONAL, -0.001), (MARGINAL, -0.002))
    ]
    assert means.EXPONENTIAL.verdict(rows).agrees
    growing = [{**r, "sensitivity": 1 + r["pairs"] / 1e4} for r in rows]
    assert not means.EXPONENTIAL.verdict(growing).agrees


def test_figure_9_is_below_the_global_bound_and_follows_the_data():
    """Movements of a mean in the unit cube never reach d/n; the verdict needs the factor two."""
    rows = data("9", dims=[1, 16], gamma=[0.5, 0.2])
    assert all(0 < r["sensitivity"] < r["dims"] / 500 for r in rows)
    good = [{**r, "sensitivity": 0.4 * r["global"]} for r in rows]
    assert means.BOUNDED.verdict(good).agrees
    assert not means.BOUNDED.verdict([{**r, "sensitivity": 0.9 * r["global"]} for r in rows]).agrees
    assert not means.BOUNDED.verdict([{**r, "sensitivity": r["global"]} for r in rows]).agrees


def test_the_global_bound_of_the_machine():
    """19.07 at C = 3, d = 8, n = 1000."""
    assert svm.global_bound(8, 1000) == pytest.approx(19.0666, abs=1e-4)


def test_the_machine_solves_its_own_problem():
    """No small step in any direction lowers the objective 1/2 |w|^2 + C/n sum of hinge losses."""
    rows = svm.draw_classes(np.random.default_rng(0), 60, dims=2)
    fitted = svm.fit_machine(rows)

    def objective(wb):
        margins = rows[:, -1] * (rows[:, :-1] @ wb[:-1] + wb[-1])
        return wb[:-1] @ wb[:-1] / 2 + 3 / len(rows) * np.maximum(0, 1 - margins).sum()

    least = objective(fitted)
    rng = np.random.default_rng(1)
    for _ in range(200):
        assert objective(fitted + 1e-3 * rng.standard_normal(3)) >= least - 1e-5


def sensitivities(value, moved=1.0):
    return [
        {"dims": d, "gamma": g, "method": name, "pairs": 1500, "rank": 1, "moved": moved}
        | {"sensitivity": value(d, g), "global": svm.global_bound(d, 1000)}
        for d in (8, 64)
        for g in (0.05, 0.2)
        for name in METHODS.values()
    ]


def test_figure_5_follows_the_data():
    """Small, flat and rising with d agrees; what depends on gamma, is large or falls does not."""

    def agrees(law, moved=0.5):
        return svm.SENSITIVITY.verdict(sensitivities(law, moved=moved)).agrees

    assert agrees(lambda d, g: 0.01 if d == 8 else 0.02)
    assert not agrees(lambda d, g: 0.01)
    assert not agrees(lambda d, g: 0.02 if d == 8 else 0.01)
    assert not agrees(lambda d, g: (0.01 if d == 8 else 0.02) * (1 if g < 0.2 else 0.4))
    assert not agrees(lambda d, g: 0.1 * (0.3 if d == 8 else 0.5))  # nearer to 0.1
    assert not agrees(lambda d, g: 0.5)
    still = {8: 0.01, 64: 0.02}  # most pairs do not move at all
    assert agrees(lambda d, g: still[d] if g < 0.2 else 0.0, moved=0.15)
    assert agrees(lambda d, g: still[d] if g < 0.2 else 1e-5, moved=0.15)


def curves(levels, **middles):
    """Errors that fall from a half to 0.02 at a given epsilon, for each method."""
    return [
        {"method": name, "epsilon": e, "error": 0.5 if e < start else 0.02, "rows": 9, "gamma": 0.1}
        | {"standard error": 0.001, "evaluations": 4, "bandwidth": 0.1}
        | {"sensitivity": 0.0 if name == "not private" else start}
        for name, start in middles.items()
        for e in levels
    ]


LEVELS = (0.01, 0.1, 1.0, 10.0, 100.0)


def test_figure_6_follows_the_data():
    """A sampled machine two decades ahead agrees; one that is level, or never arrives, does not."""
    verdict = classifiers.ACCURACY.verdict
    ahead = curves(LEVELS, **{"not private": 0.0, DKW: 1.0, "global bound": 100.0})
    level = curves(LEVELS, **{"not private": 0.0, DKW: 1.0, "global bound": 1.0})
    never = curves(LEVELS, **{"not private": 0.0, DKW: 1e9, "global bound": 1e9})
    early = curves(LEVELS, **{"not private": 0.0, DKW: 0.01, "global bound": 1.0})
    assert verdict(ahead).agrees
    assert not verdict(level).agrees
    assert not verdict(never).agrees
    assert not verdict(early).agrees  # at the smallest epsilon they must be equally poor


def test_reached_is_the_level_from_which_on_the_target_holds():
    """A lucky dip before does not count."""
    errors = {1.0: 0.5, 2.0: 0.01, 3.0: 0.5, 4.0: 0.01, 5.0: 0.01}
    rows = [{"method": "m", "epsilon": e, "error": v} for e, v in errors.items()]
    assert protection.reached(rows, "m", 0.02) == 4.0
    assert math.isinf(protection.reached(rows, "m", 0.001))


def test_scopes_ask_for_the_reference_numbers_of_pairs():
    """Everyone at n = 1000: 19999 pairs; simultaneous: 19 tables of n + 1 evaluations."""
    plans = protection.scopes({"rows": 1000, "m": 1500, "gamma": 0.05})
    assert plans["all n people (everyone)"] == ("marginal", "everyone", None, 2 * 19_999)
    assert plans["all n people (simultaneous)"] == ("marginal", "simultaneous", None, 19 * 1001)
    assert plans[DKW] == ("dkw", "record", 1500, 3000)


def test_a_comparison_beyond_the_paper_claims_nothing_but_tells_the_ratios():
    """Noise saved and noise paid are those of the sensitivities."""
    whole = "all n people (everyone)"
    rows = curves(
        LEVELS, **{"not private": 0.0, DKW: 1.0, CONDITIONAL: 0.8, MARGINAL: 0.5, whole: 3.0}
    )
    verdict = classifiers.PROTECTION.verdict(rows)
    assert verdict.agrees is None
    assert f"20.0% ({CONDITIONAL})" in verdict.measured
    assert f"50.0% ({MARGINAL})" in verdict.measured
    assert f"6.00 times the noise of the exact marginal rank ({whole})" in verdict.measured


def test_the_density_is_one_in_all_and_moves_less_than_its_bound():
    """The estimate integrates to 1; replacing a row moves it by at most the proven height."""
    rng = np.random.default_rng(0)
    rows = densities._mixture(rng, 50)
    grid = np.linspace(-2, 3, 5001)
    kernels = densities._Kernels(bandwidth=0.1, at=tuple(grid))
    assert np.trapezoid(kernels(rows), grid) == pytest.approx(1.0, abs=1e-6)
    moved = rows.copy()
    moved[-1] = 5.0
    bound = densities._height(50, 0.1).value
    movement = np.abs(kernels(rows) - kernels(moved)).max()
    assert movement == pytest.approx(bound, rel=1e-4)
    assert movement <= bound * (1 + 1e-12)


def test_the_mixture_has_the_published_moments():
    """Mean 0.65 and variance 0.026: the second numbers of N(0.5, 0.02) are variances.

    4e5 rows leave standard errors of 2.6e-4 and about 7e-5; five of them fail once in a million.
    """
    rows = densities._mixture(np.random.default_rng(5), 400_000)
    mean = 0.4 * 0.5 + 0.6 * 0.75
    variance = 0.4 * (0.02 + 0.25) + 0.6 * (0.005 + 0.5625) - mean**2
    assert rows.mean() == pytest.approx(mean, abs=1.3e-3)
    assert rows.var() == pytest.approx(variance, abs=3.5e-4)


def test_figure_7_follows_the_data():
    """A clear gain and common ends agree; no gain, or an end far off, does not."""
    name = f"{DKW}, γ = 0.05"

    def rows(sampled, end):
        return [
            {"bandwidth": 0.1, "rows": 5, "method": m, "epsilon": e, "error": v}
            | {"standard error": 0.01, "sensitivity": s, "evaluations": 0}
            for m, s, values in (
                ("not private", 0.0, (0.1, 0.1)),
                ("global bound", 2.0, (1.0, 0.1)),
                (name, 1.0, (sampled, end)),
            )
            for e, v in zip((0.01, 10.0), values, strict=True)
        ]

    verdict = densities.ACCURACY.verdict
    assert verdict(rows(0.5, 0.1)).agrees
    assert not verdict(rows(0.99, 0.1)).agrees
    assert not verdict(rows(0.5, 0.2)).agrees
    assert "0.500" in verdict(rows(0.5, 0.1)).better


def test_another_rank_of_the_same_draws_is_what_sampling_again_gives():
    """Value, rank and guarantee are those of a run of its own with the same seed."""
    options = {"rows": 20, "pairs": 60, "gamma": 0.2, "seed": 4}
    coin = hs.populations.Uniform(low=0, high=1)
    first = hs.sample_sensitivity(np.mean, coin, calibration="dkw", **{**options, "gamma": 0.3})
    for calibration in METHODS:
        gamma = 0.3 if calibration == "dkw" else 0.2
        again = hs.sample_sensitivity(
            np.mean, coin, calibration=calibration, **{**options, "gamma": gamma}
        )
        kept = ranks.recalibrated(first, calibration, gamma)
        assert (kept.value, kept.rank, kept.argument) == (again.value, again.rank, again.argument)
        assert kept.sampling == again.sampling
        assert kept.guarantee(1.0) == again.guarantee(1.0)
    with pytest.raises(ParameterError, match="one record"):
        ranks.recalibrated(hs.proven_sensitivity(1.0, argument="x"), "dkw", 0.1)


def test_figure_1_follows_the_data():
    """Samplers within the band agree; too many outside, or kept movements too small, do not."""

    def rows(outside, low):
        common = {"gamma": 0.2, "rho": 0.01, "band": 0.09, "pairs": 300, "rank": 270, "kept": 0.02}
        return [
            {**common, "sampler": i, "movement": None}
            | {"excess": 0.1 if i < outside else 0.02, "true share": 0.8 if i < low else 0.9}
            for i in range(1000)
        ]

    verdict = inside.SAMPLER.verdict
    assert verdict(rows(10, 0)).agrees
    assert not verdict(rows(40, 0)).agrees  # binomial(1000, 0.01) exceeds 31 with chance 1e-7
    assert not verdict(rows(0, 40)).agrees
    assert not verdict([{**row, "true share": 0.799} for row in rows(0, 0)]).agrees


def test_figure_1_knows_the_law_of_the_movements():
    """Two rows of rate one differ by less than x with probability 1 - exp(-x), by simulation."""
    rng = np.random.default_rng(3)
    apart = np.abs(np.diff(rng.exponential(size=(200_000, 2)))) / 100
    for x in (0.002, 0.01, 0.03):
        found = float(inside._true_share(np.array([x]), 100)[0])
        assert found == pytest.approx(float(np.mean(apart <= x)), abs=5.5 * 0.5 / 447)


def test_figure_8_follows_the_data():
    """The branches agree; a branch that is off, or out of its range, does not."""
    rows = inside.BRANCHES.run(quick=True)
    assert inside.BRANCHES.verdict(rows).agrees
    off = [{**r, "value": r["value"] * (1 + 1e-9)} for r in rows]
    assert not inside.BRANCHES.verdict(off).agrees
    mixed = [{**r, "branch": -1 - r["branch"]} for r in rows if r["argument"] < 0]
    assert not inside.BRANCHES.verdict(mixed).agrees
