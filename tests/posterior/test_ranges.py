"""Ranges of log likelihoods: of known families by brute force, sampled, and of chains."""

import math
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import mpmath
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import hushed as hs
from hushed.errors import BadFunction, BadRows, ParameterError

RELATIONS = ["replace-one", "add-remove"]
COINS = hs.populations.Simulator(
    lambda rng, count: rng.integers(0, 2, count).astype(float), name="coins"
)
GRID = np.arange(1, 10) / 10


def coin(row, p):
    return np.where(row == 1, np.log(p), np.log1p(-p))


def families(neighbours):
    """Each with its exact log likelihood, and the rows it may meet."""
    points = np.array([0.05, 0.2, 0.6])
    yield (
        hs.posterior.bernoulli(points, epsilon=1.0, neighbours=neighbours),
        lambda x: stats.bernoulli(points).logpmf(x),
        [0.0, 1.0],
    )
    means = np.array([-1.0, 0.5, 4.0])
    yield (
        hs.posterior.normal_mean(
            means, epsilon=1.0, std=2.0, low=-3.0, high=7.0, neighbours=neighbours
        ),
        lambda x: stats.norm(means, 2.0).logpdf(x),
        np.linspace(-3, 7, 41).tolist(),
    )
    rates = np.array([0.5, 2.0, 9.0])
    yield (
        hs.posterior.poisson(rates, epsilon=1.0, high=12, neighbours=neighbours),
        lambda x: stats.poisson(rates).logpmf(x),
        [float(x) for x in range(13)],
    )


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_the_range_of_each_family_is_that_of_brute_force(neighbours):
    """Largest range over all rows, or pairs of rows, by the laws of SciPy."""
    for mechanism, law, rows in families(neighbours):
        vectors = [law(x) for x in rows]
        if neighbours == "replace-one":
            widest = max(np.ptp(a - b) for a in vectors for b in vectors)
        else:
            widest = max(np.ptp(a) for a in vectors)
        assert widest <= mechanism.mechanism.sensitivity.value <= widest * (1 + 1e-6)
        assert mechanism.guarantee == hs.Guarantee(epsilon=1.0, neighbours=neighbours)


def test_the_odds_of_each_family_are_those_of_its_law():
    """Tempered products of SciPy's probabilities, with conjugate priors."""
    for mechanism, law, rows in families("replace-one"):
        table = np.array(rows)
        logs = mechanism.weight * sum(law(x) for x in rows)
        expected = np.exp(logs - logs.max())
        assert mechanism.chances_on(table) == pytest.approx(expected / expected.sum(), rel=1e-4)
    priors = [
        (hs.posterior.bernoulli(GRID, epsilon=1.0, prior=(3, 2)), stats.beta(3, 2)),
        (
            hs.posterior.normal_mean(GRID, epsilon=1.0, std=1, low=0, high=1, prior=(0.3, 0.2)),
            stats.norm(0.3, 0.2),
        ),
        (hs.posterior.poisson(GRID, epsilon=1.0, high=3, prior=(2, 4)), stats.gamma(2, scale=0.25)),
    ]
    for mechanism, prior in priors:
        density = prior.pdf(GRID)
        weights = np.array(mechanism.prior)
        assert weights / weights.sum() == pytest.approx(density / density.sum(), rel=1e-9)


@pytest.mark.parametrize("cell", [math.nan, math.inf, -math.inf, 1e308, -5.0])
def test_any_number_in_a_row_keeps_the_range(cell):
    """Rows are moved into the range, and missing ones to its low end; nothing fails."""
    for mechanism, _, rows in families("replace-one"):
        base = np.array([rows[0], rows[-1], rows[-1]])
        other = np.array([cell, rows[-1], rows[-1]])
        one, two = (mechanism.scores(each).tolist() for each in (base, other))
        moved = [Fraction(a) - Fraction(b) for a, b in zip(one, two, strict=True)]
        assert max(moved) - min(moved) <= Fraction(mechanism.mechanism.sensitivity.value)
    released = hs.release(mechanism.log_likelihood, [["no number"], [None], 3.0, "7"], mechanism)
    assert released.value in (0.5, 2.0, 9.0)


@pytest.mark.parametrize("far", [10.0, 100.0, 1e3, 3e3, 1e4, 1e5])
def test_candidates_that_are_accepted_are_released(far):
    """However far from the rows: what is refused is refused before it is paid for."""
    try:
        mechanism = hs.posterior.normal_mean([-far, 0.0, far], epsilon=1.0, std=1, low=0, high=1)
    except ParameterError:
        assert far > 1e3
        return
    for row in (-math.inf, 0.0, 0.5, 1.0, math.inf):
        released = hs.release(mechanism.log_likelihood, np.full(3, row), mechanism)
        assert released.value in (-far, 0.0, far)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: hs.posterior.bernoulli([0.0, 0.5], epsilon=1.0),
        lambda: hs.posterior.bernoulli(GRID, epsilon=1.0, prior=(0, 1)),
        lambda: hs.posterior.normal_mean(GRID, epsilon=1.0, std=0, low=0, high=1),
        lambda: hs.posterior.normal_mean(GRID, epsilon=1.0, std=1, low=1, high=1),
        lambda: hs.posterior.poisson([0.0, 1.0], epsilon=1.0, high=3),
        lambda: hs.posterior.poisson(GRID, epsilon=1.0, high=math.inf),
        lambda: hs.posterior.poisson(GRID, epsilon=1.0, high=3, prior=2),
        lambda: hs.posterior.normal_mean(GRID, epsilon=1.0, std=1e200, low=0, high=1),
        lambda: hs.posterior.normal_mean(GRID, epsilon=1.0, std=1e-200, low=0, high=1),
        lambda: hs.posterior.poisson([1.0, 1e6], epsilon=1.0, high=3),
        lambda: hs.posterior.normal_mean([-2e4, 0.0, 2e4], epsilon=1.0, std=1, low=0, high=1),
    ],
)
def test_parameters_of_families_are_checked(wrong):
    """Before a row is seen."""
    with pytest.raises(ParameterError):
        wrong()


def test_a_sampled_range_is_the_true_one_and_covers_all_rows():
    """Coins differ by 2 log 9; gamma is for all 5 rows, each pair held to a fifth of it."""
    s = hs.sample_likelihood_range(coin, GRID, COINS, rows=5, gamma=0.1, workers=1)
    assert s.value * 5 == pytest.approx(2 * math.log(9), rel=2e-3)
    assert s.value * 5 >= 2 * math.log(9)
    assert (s.gamma, s.sampling.protect) == (0.1, "everyone")
    holds = (1 - s.sampling.tail_mass) * (1 - s.sampling.sampling_error)
    assert 1 - holds <= 0.1 / 5 * (1 + 1e-9)
    rows = np.array([1.0, 1, 0, 1, 0])
    prior = np.arange(1, 10.0)
    mechanism = hs.Posterior(coin, GRID, epsilon=2.0, sensitivity=s, prior=prior)
    weight = mechanism.weight
    assert weight == pytest.approx(2.0 / (2 * math.log(9)), rel=2e-3)
    logs = weight * (3 * np.log(GRID) + 2 * np.log1p(-GRID)) + np.log(prior)
    assert mechanism.chances_on(rows) == pytest.approx(np.exp(logs) / np.exp(logs).sum(), rel=1e-3)
    released = hs.release(coin, rows, mechanism)
    assert released.certificate.guarantee.gamma == 0.1
    assert released.certificate.confirmed == "bits"
    assert hs.verify(released.certificate, mechanism.scores, population=COINS).reproduced
    with pytest.raises(hs.errors.BadRows, match="sampled for 5 rows"):
        hs.release(coin, np.append(rows, 1.0), mechanism)


def test_another_function_than_the_sampled_one_is_refused():
    """Or one on other candidates: nothing was measured of it."""
    s = hs.sample_likelihood_range(coin, GRID, COINS, rows=4, pairs=300, workers=1)

    def bold(row, p):
        return 5 * coin(row, p)

    with pytest.raises(BadFunction):
        hs.release(bold, np.ones(4), hs.Posterior(bold, GRID, epsilon=1.0, sensitivity=s))
    wider = np.arange(1, 100) / 100
    with pytest.raises(BadFunction):
        hs.release(coin, np.ones(4), hs.Posterior(coin, wider, epsilon=1.0, sensitivity=s))
    plain = hs.sample_sensitivity(np.mean, COINS, rows=4, norm="l1", pairs=300)
    with pytest.raises(hs.errors.HushedError):
        hs.Posterior(coin, GRID, epsilon=1.0, sensitivity=plain)


def stays(rows, means):
    return -rows[:, None] / means - np.log(means)


def test_many_rows_at_once_are_sampled_and_released_alike():
    """The range of x (1/m - 1/m') is that of the drawn rows; the odds follow from the formula."""
    means, source = np.array([0.5, 1.0, 5.0]), hs.populations.Uniform(low=0, high=3)
    s = hs.sample_likelihood_range(stays, means, source, rows=400, gamma=0.2, batch=True)
    assert 0.99 * 3 * 1.8 < s.value * 400 <= 3 * 1.8 * (1 + 2**-9)
    rows = np.random.default_rng(0).uniform(0, 3, size=400)
    mechanism = hs.Posterior(stays, means, epsilon=0.5, sensitivity=s)
    logs = mechanism.weight * sum(-x / means - np.log(means) for x in rows)
    expected = np.exp(logs - logs.max())
    drawn = mechanism.mechanism.compute_chances(mechanism.scores(rows[None])[0])
    assert drawn == pytest.approx(expected / expected.sum(), rel=1e-6)
    assert mechanism.chances_on(rows) == pytest.approx(drawn, rel=1e-12)
    released = hs.release(stays, rows, mechanism)
    assert released.value in means.tolist()
    assert hs.verify(released.certificate, mechanism.scores).reproduced
    assert "does not look at the rows beside it" in released.certificate.explain()


def test_a_likelihood_that_looks_at_other_rows_is_refused():
    """One that adds the mean of all rows it is given: tried on tables alone and together."""

    def leaky(rows, means):
        return stays(rows, means) + rows.mean() * means

    with pytest.raises(BadFunction, match="beside"):
        hs.sample_likelihood_range(
            leaky, [1.0, 2.0], hs.populations.Exponential(rate=1), rows=9, gamma=0.3, batch=True
        )


@pytest.mark.slow
def test_gamma_holds_for_all_rows_at_once():
    """Normal rows, whose likelihoods have no bound: 400 samplings of 3 rows at gamma 0.3."""
    means = np.array([-1.0, 0.0, 1.0])

    def normal(row, grid):
        return -((row[0] - grid) ** 2) / 2

    source = hs.populations.Normal(mean=0.0, std=1.0)
    rng = np.random.default_rng(5)
    failures = lower = 0.0
    for seed in range(400):
        s = hs.sample_likelihood_range(
            normal, means, source, rows=3, gamma=0.3, calibration="marginal", seed=seed, workers=1
        )
        moved = 2 * np.abs(rng.normal(size=(50, 3)) - rng.normal(size=(50, 3)))  # range of x - x'
        failures += np.mean(moved.max(axis=1) > 3 * s.value)
        lower += np.mean(moved.max(axis=1) > 3 * s.draws[s.rank - 2])
    share = failures / 400
    assert share <= 0.3
    assert share > 0.15  # gamma for one row only would be seen
    assert lower / 400 > 0.35  # and so would a rank lower
    assert s.sampling.rank == s.sampling.pairs or s.sampling.pairs > 9


def test_a_chain_is_charged_for_its_distance():
    """Delta is (1 + e^epsilon) eta, rounded up, against 50 digits."""
    for epsilon, eta in ((1.0, 1e-9), (0.1, 1e-12), (3.0, 1e-6), (20.0, 1e-12)):
        found = hs.posterior.chain_guarantee(epsilon, total_variation=eta, argument="proof")
        with mpmath.workdps(50):
            exact = (1 + mpmath.exp(mpmath.mpf(str(epsilon)))) * mpmath.mpf(str(eta))
            assert exact <= mpmath.mpf(found.delta) <= exact * (1 + mpmath.mpf(2) ** -50)
        assert found.epsilon == epsilon


def test_that_delta_is_attained_by_a_chain_that_is_so_far_off():
    """Two laws of ratio e^epsilon, each moved by eta the worst way: the exact hockey stick."""
    epsilon, eta = 1.0, 0.01
    p, q = np.array([0.5, 0.5]), np.array([0.5 * math.exp(-epsilon), 1 - 0.5 * math.exp(-epsilon)])
    off = np.array([eta, -eta])
    worst_p, worst_q = p + off, q - off
    delta = np.maximum(worst_p - math.exp(epsilon) * worst_q, 0).sum()
    found = hs.posterior.chain_guarantee(epsilon, total_variation=eta, argument="proof")
    assert found.delta == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"total_variation": 1e-9},
        {"total_variation": 1e-9, "argument": "  "},
        {"total_variation": -1e-9, "argument": "proof"},
        {"total_variation": 0.5, "argument": "proof"},
        {"total_variation": math.nan, "argument": "proof"},
    ],
)
def test_a_chain_without_a_proof_is_refused(wrong):
    """Convergence diagnostics prove nothing, and a delta of 1 promises nothing."""
    with pytest.raises(ParameterError):
        hs.posterior.chain_guarantee(1.0, **wrong)


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(
    ("draw", "reason"),
    [
        (lambda rng, count: np.linspace(0.0, 1.0, count), "did not use rng"),
        (lambda rng, count: np.full(count, rng.random()), "more alike"),
    ],
)
def test_pairs_of_rows_come_from_a_population_of_independent_rows(draw, reason, batch):
    """Of tables of two rows it is seen, too, that all are one, or that two rows are."""

    def nearness(row, p):
        return -((row[:, None] - p) ** 2) if batch else -((row[0] - p) ** 2)

    with pytest.raises(BadRows, match=reason):
        hs.sample_likelihood_range(
            nearness, GRID, hs.populations.Simulator(draw), rows=5, gamma=0.5, batch=batch
        )


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "pairs"), [(100, "21,992"), (200, "47,029"), (1000, "270,127")])
def test_the_page_tells_how_many_pairs_are_drawn(rows, pairs):
    """As many as gamma = 0.05 for all rows at once takes."""
    found = hs.sample_likelihood_range(
        lambda row, p: coin(row[:, None], p), GRID, COINS, rows=rows, batch=True, workers=1
    )
    assert f"{found.pairs:,}" == pairs
    assert pairs in (Path(__file__).parents[2] / "docs" / "posterior.md").read_text()


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"patient": [7, 8], "x": [0.0, 1.0]}),
        np.zeros((2, 2)),
        np.zeros(2, dtype=[("patient", "f8"), ("x", "f8")]),
    ],
    ids=["frame", "array", "structured"],
)
def test_a_family_takes_one_column_and_not_the_first_of_several(table):
    """How many there are is public; a frame of one, and a list, are taken."""
    coins = hs.posterior.bernoulli(GRID, epsilon=1.0)
    charged = []
    ledger = SimpleNamespace(charge=lambda *given, **more: charged.append(given))
    with pytest.raises(BadFunction, match="one number a row, not 2"):
        hs.release(coins.log_likelihood, table, coins, ledger, budget="b")
    assert not charged
    for one in (pd.DataFrame({"x": [0.0, 1.0]}), np.zeros((2, 1)), [0.0, (1.0, 2.0)]):
        assert hs.release(coins.log_likelihood, one, coins).value in GRID
