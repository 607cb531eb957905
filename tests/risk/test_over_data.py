"""The risk over data and noise, against simulation and quadrature."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

import hushed as hs
from hushed import risk
from hushed.errors import ParameterError

N = 20
ROWS = hs.populations.Exponential(1.0)


def mean(rows):
    return rows.mean()


def several(rows):
    return np.array([rows.mean(), np.minimum(rows, 1).mean()])


def sampled(pairs=2000, seed=0, f=mean, norm="l1", **more):
    return hs.sample_sensitivity(
        f, ROWS, rows=N, pairs=pairs, gamma=0.1, norm=norm, seed=seed, progress=False, **more
    )


@pytest.fixture(scope="module")
def sensitivity():
    return sampled()


def truth(scale, level):
    """Pr(|loss| > level) for two exponential rows and Laplace noise, by quadrature of its law."""

    def beyond(gap):  # the difference of two exponential rows is exponential
        most = gap / N / scale
        if most <= level:
            return 0.0
        inside = stats.laplace.cdf([(most + level) / 2, (most - level) / 2])
        return (1 - inside[0] + inside[1]) * math.exp(-gap)

    return integrate.quad(beyond, level * N * scale, 60, limit=200)[0]


@pytest.mark.slow_cases("0.0")
@pytest.mark.parametrize("level", [0.0, 0.3, 0.7, 1.0, 1.5])
def test_the_laplace_risk_is_that_of_quadrature(sensitivity, level):
    """The mean over 2,000 pairs is within 4.5 standard errors of it, and the bound above it."""
    mechanism = hs.Laplace(sensitivity, epsilon=1.0)
    found, exact = risk.over_data(mechanism, level), min(1, truth(mechanism.scale, level))
    assert found.mean_exceeds == pytest.approx(exact, abs=4.5 * 0.5 / math.sqrt(2000))
    assert exact <= found.exceeds <= found.mean_exceeds + math.sqrt(math.log(20) / 4000) * 1.0001
    assert found.mean_delta <= found.delta


def test_the_mean_of_the_sampled_pairs_is_no_estimate_for_others():
    """No pair moves further than the largest, for which the noise is: others lose more."""
    few = hs.sample_sensitivity(
        mean, ROWS, rows=N, gamma=0.1, calibration="marginal", symmetric=True, seed=0
    )
    assert few.rank == few.pairs
    mechanism = hs.Laplace(few, epsilon=1.0)
    found = risk.over_data(mechanism, 1.0)
    assert found.mean_exceeds == found.mean_delta == 0 < truth(mechanism.scale, 1.0)
    assert "for which the noise was made" in found._repr_html_()
    assert "unbiased" not in type(found).__doc__


@pytest.mark.slow_cases("l2")
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_simulated_losses_are_beyond_the_level_as_often(norm):
    """200,000 fresh pairs with noise, for Laplace and for Gaussian noise on two numbers."""
    rng = np.random.default_rng(1)
    old, new = rng.exponential(size=(2, 200_000))
    if norm == "l1":
        mechanism, level = hs.Laplace(sampled(norm=norm), epsilon=2.0), 0.8
        moved = (old - new)[:, None] / N
        noise = rng.laplace(scale=mechanism.scale, size=moved.shape)
        loss = (np.abs(noise + moved) - np.abs(noise)).sum(axis=1) / mechanism.scale
    else:
        s = sampled(f=several, norm=norm)
        mechanism, level = hs.Gaussian(s, epsilon=1.0, delta=1e-5), 0.15
        moved = np.stack([old - new, np.minimum(old, 1) - np.minimum(new, 1)], axis=1) / N
        noise = rng.normal(scale=mechanism.scale, size=moved.shape)
        loss = (((noise + moved) ** 2 - noise**2).sum(axis=1)) / (2 * mechanism.scale**2)
    found, seen = risk.over_data(mechanism, level), np.mean(np.abs(loss) > level)
    assert 0.05 < seen < 0.95
    assert found.mean_exceeds == pytest.approx(seen, abs=4.5 * 0.5 * math.sqrt(1 / 2000 + 1 / 2e5))
    ideal = np.maximum(0, -np.expm1(level - loss)).mean()  # the mean delta, by its definition
    assert found.mean_delta == pytest.approx(ideal, abs=4.5 * 0.5 * math.sqrt(1 / 2000 + 1 / 2e5))


@pytest.mark.slow
def test_the_bound_holds_as_often_as_it_says():
    """In 100 samplings of 60 pairs the bound is below the truth in at most 5 %, the mean in half.

    A binomial test at 1e-6 each; the second one says that the first can fail: a bound that is below
    the truth in a third of the samplings is seen with .999.
    """
    bounds, means = [], []
    for seed in range(100):
        mechanism = hs.Laplace(sampled(pairs=60, seed=seed), epsilon=1.0)
        found, exact = risk.over_data(mechanism, 0.4), truth(mechanism.scale, 0.4)
        bounds.append(found.exceeds < exact)
        means.append(found.mean_exceeds < exact)
    assert stats.binomtest(sum(bounds), 100, 0.05, alternative="greater").pvalue > 1e-6
    assert stats.binomtest(sum(means), 100, 0.05, alternative="greater").pvalue < 1e-6


def test_many_movements_are_merged_upwards(monkeypatch, sensitivity):
    """With fewer levels than movements both numbers only grow, and little."""
    mechanism = hs.Laplace(sensitivity, epsilon=1.0)
    exact = risk.over_data(mechanism, 0.5)
    monkeypatch.setattr("hushed.risk._over_data._MOST_LEVELS", 50)
    merged = risk.over_data(mechanism, 0.5)
    for field in ("exceeds", "mean_exceeds", "delta", "mean_delta"):
        assert 0 <= getattr(merged, field) - getattr(exact, field) < 0.03


@pytest.mark.slow
def test_the_published_number_is_theorem_6(sensitivity):
    """Share, samples and dimensions are those of the sampling; above the level there is none."""
    mechanism = hs.Laplace(sensitivity, epsilon=1.0)
    share = sensitivity.rank / sensitivity.pairs
    assert risk.over_data(mechanism, 0.5, rho=0.05).published == risk.combined_confidence(
        0.5, 1.0, share=share, rho=0.05, samples=2000
    )
    assert risk.over_data(mechanism, 1.5).published is None
    assert (
        risk.over_data(hs.Gaussian(sampled(norm="l2"), epsilon=1.0, delta=1e-5), 0.5).published
        is None
    )


@pytest.mark.slow
def test_it_says_what_it_is_not(sensitivity):
    """Words give bounds rounded up, and that an average is no differential privacy."""
    found = risk.over_data(hs.Laplace(sensitivity, epsilon=1.0), 0.5)
    assert "no differential privacy" in found.explain()
    assert "from 2000 sampled pairs" in found.explain()
    vector = hs.Laplace(sampled(f=several), epsilon=1.0)
    assert risk.over_data(vector, 0.5).exceeds is None
    assert not risk.over_data(vector, 0.5).explain().startswith("The loss")


def test_what_it_does_not_hold_for_is_refused(sensitivity):
    """Proven and shifted sensitivities, other things, other numbers."""
    laplace = hs.Laplace(sensitivity, epsilon=1.0)
    proven = hs.proven_sensitivity(1.0, argument="counts")
    for wrong, said in [
        (hs.Laplace(proven, epsilon=1.0), "got Laplace without one or another one"),
        (hs.Laplace(sensitivity.shifted(1e-6), epsilon=1.0), "use the original one"),
        (hs.Exponential(sampled(norm="sup"), epsilon=1.0), "got Exponential"),
        (3, "got int"),
    ]:
        with pytest.raises(ParameterError, match=said):
            risk.over_data(wrong, 0.5)
    for more in ({"confidence": 0.4}, {"confidence": 1.0}, {"epsilon": -1}, {"epsilon": math.nan}):
        with pytest.raises(ParameterError):
            risk.over_data(laplace, **{"epsilon": 0.5, **more})
