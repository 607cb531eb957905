"""Long runs of the actual noise: laws, accuracies and privacy loss on neighbouring inputs."""

import numpy as np
import pytest
from scipy import stats
from tests.frequencies import pvalue_of_counts

import hushed as hs

pytestmark = pytest.mark.slow

FALSE_ALARM = 1e-6
DRAWS = 400_000


def mechanism(name):
    one = {
        norm: hs.proven_sensitivity(1.0, norm, argument="by assumption")
        for norm in ("l1", "l2", "sup")
    }
    return {
        "laplace": lambda: hs.Laplace(one["l1"], epsilon=1.0),
        "gaussian": lambda: hs.Gaussian(one["l2"], epsilon=1.0, delta=1e-3),
        "exponential": lambda: hs.Exponential(one["sup"], epsilon=1.0),
    }[name]()


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_noise_has_the_stated_law(name, value):
    """Kolmogorov-Smirnov and the far tails on 400,000 draws, false alarm 1e-6."""
    m = mechanism(name)
    law = {"laplace": stats.laplace, "gaussian": stats.norm}[name](scale=m.scale)
    noise = m.draw(np.full(DRAWS, value)) - value
    assert stats.kstest(noise, law.cdf).pvalue > FALSE_ALARM
    for level in (0.1, 1e-3, 1e-4):
        for beyond in (noise > law.isf(level), noise < law.ppf(level)):
            assert stats.binomtest(int(beyond.sum()), DRAWS, level).pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_successive_draws_are_independent(name):
    """Neither draws nor their sizes correlate with the next ones (5 sigma)."""
    noise = mechanism(name).draw(np.zeros(DRAWS))
    for series in (noise, np.abs(noise)):
        centred = (series - series.mean()) / series.std()
        assert abs((centred[1:] * centred[:-1]).mean()) < 5 / np.sqrt(DRAWS)


def test_laplace_events_keep_epsilon():
    """For neighbours 0 and 1 every half-line's two counts are compatible with e^epsilon."""
    m = mechanism("laplace")
    zero, one = m.draw(np.zeros(DRAWS)), m.draw(np.ones(DRAWS))
    for threshold in np.linspace(-4, 5, 19):
        above, below = int((one > threshold).sum()), int((zero > threshold).sum())
        # Given the sum, the share of the first is at most e / (1 + e) when counts are rare,
        # and in general P <= e Q: test by two binomial bounds at half the false alarm each.
        low = stats.beta.ppf(FALSE_ALARM / 2, above, DRAWS - above + 1) if above else 0.0
        high = stats.beta.isf(FALSE_ALARM / 2, below + 1, DRAWS - below)
        assert low <= np.e * high


def test_gaussian_delta_is_nearly_reached_and_not_exceeded():
    """The best event's excess P - e^epsilon Q is delta = 1e-3, within sampling error."""
    m = mechanism("gaussian")
    start = 1.0 * m.scale**2 + 0.5  # densities cross at epsilon sigma^2 / Delta + Delta / 2
    excess = (m.draw(np.ones(DRAWS)) > start).mean() - np.e * (
        m.draw(np.zeros(DRAWS)) > start
    ).mean()
    spread = np.sqrt((0.01 + np.e**2 * 0.01) / DRAWS)
    assert abs(excess - 1e-3) < 5 * spread


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize("dims", [1, 4])
@pytest.mark.parametrize("beta", [0.3, 0.05, 0.002])
def test_accuracy_is_met_with_the_stated_probability(name, dims, beta):
    """The largest of the coordinates leaves the accuracy with probability beta, two-sided."""
    m = mechanism(name)
    worst = np.abs(m.draw(np.zeros(DRAWS))).reshape(-1, dims).max(axis=1)
    beyond = int((worst > m.accuracy(beta, dims)).sum())
    assert stats.binomtest(beyond, worst.size, beta).pvalue > FALSE_ALARM


def test_exponential_choices_follow_the_softmax():
    """40,000 choices among 12 candidates pass a test at a false-alarm rate of 1e-6."""
    m = mechanism("exponential")
    scores = np.linspace(-3, 4, 12) ** 2 / 3
    law = np.exp(scores / 2) / np.exp(scores / 2).sum()
    counts = np.bincount([m.draw(scores) for _ in range(40_000)], minlength=12)
    assert pvalue_of_counts(counts, 40_000 * law) > FALSE_ALARM
    regret = scores.max() - scores
    for beta in (0.5, 0.05):
        beyond = int(counts[regret >= m.accuracy(beta, 12)].sum())
        assert stats.binom.sf(beyond - 1, 40_000, beta) > FALSE_ALARM


@pytest.mark.parametrize("order", [1, 3])
def test_bernstein_accuracy_over_draws(order):
    """3,000 released functions stay within the accuracy but for beta, false alarm 1e-6."""
    s = hs.proven_sensitivity(1.0, "sup", argument="by assumption")
    m = hs.Bernstein(s, epsilon=1.0, lattice=6, order=order)
    grid, zero = np.linspace(0, 1, 41), np.zeros(7)
    beyond = sum(np.abs(m.draw(zero)(grid)).max() > m.accuracy(0.1) for _ in range(3000))
    assert stats.binom.sf(beyond - 1, 3000, 0.1) > FALSE_ALARM
