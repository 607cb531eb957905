"""Mixed populations, and several at once: covered, and not with one rank lower."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import hushed as hs
from hushed.populations import Contaminated, Exponential, Normal, Uniform
from hushed.sensitivity import choose_rank

pytestmark = pytest.mark.slow

ROWS, FALSE_ALARM = 5, 1e-6
LEVELS = [("0.05", 19), ("0.1", 9), ("0.25", 3)]
SHARE = 0.04


def weighted(rows):
    """Not symmetric in the rows, and moved by outliers."""
    return float(rows.max() + rows @ np.arange(1.0, len(rows) + 1))


POPULATIONS = {
    "mixed": Contaminated(Exponential(rate=1.0), Uniform(low=20, high=40), share=SHARE),
    "base": Exponential(rate=1.0),
    "narrow": Normal(mean=1, std=0.3),
}


# Of 2,000 samplers a rank one lower, with twice the failures, is seen with .9999.
@pytest.fixture(scope="module", params=[2_000, pytest.param(10_000, marks=pytest.mark.soak)])
def samplers(request):
    return request.param


@pytest.fixture(scope="module")
def drawn(samplers):
    """Sampled movements, a line for each sampler; independent draws in an order of no meaning."""
    found = {}
    for seed, (name, law) in enumerate(POPULATIONS.items()):
        s = hs.sample_sensitivity(
            weighted, law, rows=ROWS, pairs=19 * samplers, seed=seed, workers=1
        )
        found[name] = np.random.default_rng([42, seed]).permutation(s.draws).reshape(samplers, 19)
    return found


def real_movements(draw, count):
    """Movements of pairs whose rows are drawn by hand."""
    rng = np.random.default_rng(41)
    tables, fresh = draw(rng, (count, ROWS)), draw(rng, (count,))
    others = tables.copy()
    others[np.arange(count), rng.integers(ROWS, size=count)] = fresh
    weights = np.arange(1.0, ROWS + 1)
    answers = [each.max(axis=1) + each @ weights for each in (tables, others)]
    return np.abs(answers[0] - answers[1])


def exponential(rng, shape):
    return rng.exponential(size=shape)


def narrow(rng, shape):
    return rng.normal(1, 0.3, size=shape)


def contaminated(rng, shape):
    """Exponential rows, and with a probability of 0.04 each a far one."""
    far = 20 + 20 * rng.random(shape)
    return np.where(rng.random(shape) < SHARE, far, exponential(rng, shape))


def kept(movements, gamma, pairs):
    """What each sampler of so many pairs keeps, and what it would keep with one rank lower."""
    rank = choose_rank("marginal", gamma=Fraction(gamma), pairs=pairs).rank
    return np.sort(movements[:, :pairs], axis=1)[:, [rank - 1, rank - 2]].T


def is_more(failed, gamma):
    """Whether so many samplers fail, of those that are looked at, as gamma does not explain."""
    return stats.binom.sf(int(failed.sum()) - 1, failed.size, float(gamma)) < FALSE_ALARM


@pytest.mark.parametrize(("gamma", "pairs"), LEVELS)
def test_a_contaminated_population_is_covered(drawn, gamma, pairs):
    """As often as gamma says; and its base alone as often as the page on populations says."""
    most, lower = kept(drawn["mixed"], gamma, pairs)
    moved = real_movements(contaminated, len(most))
    failed = moved > most
    assert stats.binomtest(int(failed.sum()), failed.size, float(gamma)).pvalue > FALSE_ALARM
    assert is_more(moved > lower, gamma)
    enlarged = float(gamma) / (1 - SHARE) ** (ROWS + 1)
    assert not is_more(real_movements(exponential, len(most)) > most, enlarged)


@pytest.mark.parametrize(("gamma", "pairs"), LEVELS[:2])
def test_outliers_break_the_promise_of_the_base_alone(drawn, gamma, pairs):
    """What is sampled without outliers fails among them more often: the mixture is needed.

    An outlier is exchanged in 8 % of the pairs, which is much beside 0.05 and 0.1, not beside 0.25.
    """
    most, _ = kept(drawn["base"], gamma, pairs)
    assert is_more(real_movements(contaminated, len(most)) > most, gamma)


@pytest.mark.parametrize(("gamma", "pairs"), LEVELS)
def test_each_of_several_populations_is_covered(drawn, gamma, pairs):
    """The largest kept movement covers both; at one rank lower the one that moves more is not."""
    both = [kept(drawn[name], gamma, pairs) for name in ("base", "narrow")]
    most, lower = np.maximum(*both)
    moved = real_movements(exponential, len(most))
    assert not is_more(moved > most, gamma)
    assert is_more(moved > lower, gamma)
    assert not is_more(real_movements(narrow, len(most)) > most, gamma)


@pytest.mark.parametrize(("gamma", "pairs"), LEVELS)
def test_rows_of_a_nearby_law_are_covered_as_a_shift_says(drawn, gamma, pairs):
    """Longer exponential rows fail more often than gamma, and no more often than it is enlarged."""
    rate = 0.6
    tau = rate - 1 - np.log(rate)  # KL(P || Q) of exponential laws of rates 1 and 0.6
    s = hs.sample_sensitivity(
        weighted,
        POPULATIONS["base"],
        rows=ROWS,
        gamma=float(gamma),
        calibration="marginal",
        workers=1,
    )
    most, _ = kept(drawn["base"], gamma, pairs)
    failed = real_movements(lambda rng, shape: rng.exponential(1 / rate, shape), len(most)) > most
    assert is_more(failed, gamma)
    assert not is_more(failed, min(s.shifted(tau).gamma, 1.0))
