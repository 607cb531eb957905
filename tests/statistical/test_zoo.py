"""The zoo's mechanisms against their stated truth, by seeded simulation.

False alarms: every comparison uses a two-sided normal or exact binomial bound at 1e-7 or less; with
about 500 comparisons in this file, a right zoo fails it with probability below 1e-4.
"""

import functools
import math

import numpy as np
import pytest
from scipy import stats

from hushed import zoo
from hushed.zoo import _flags, _laplace, _local, _selection

pytestmark = pytest.mark.slow

ALL = zoo.specimens(0.1)
NAMES = [s.name for s in ALL]
STANDARD_ERRORS = 5.4  # two-sided normal tail 7e-8
DRAWS = 1_000_000  # a truth that is 8.5 standard errors off is seen with .999
# Whose event is optimal at the claimed epsilon, so that it must reach the curve itself.
OPTIMAL = {
    "noisy max value, laplace",
    "noisy max value, exponential",
    "sparse vector, too little noise",
    "sparse vector, shows the value",
    "sparse vector, noise ignores the cut-off",
    "sparse vector, no query noise",
    "leaky truncated geometric",
    "count above a threshold, strict",
    "count above a threshold, non-strict",
    "Gaussian, classic constant",
    "Gaussian, classic constant above 1",
    "Gaussian on a Poisson sample",
}


def patterns(k):
    """Return the eight pattern pairs of Ding et al., CCS 2018, for k answers that may all move."""
    ones, half = np.ones(k), k // 2
    first = ones.copy()
    first[0] = 0.0
    return [
        (ones, first),
        (ones, 2 - first),
        (ones, np.r_[2.0, np.zeros(k - 1)]),
        (ones, np.r_[0.0, np.full(k - 1, 2.0)]),
        (ones, np.r_[np.full(half, 2.0), np.zeros(k - half)]),
        (ones, np.full(k, 2.0)),
        (ones, np.zeros(k)),
        (np.r_[np.ones(half), np.zeros(k - half)], np.r_[np.zeros(half), np.ones(k - half)]),
    ]


def neighbours(specimen):
    """Return the pairs of patterns that the specimen's relation allows."""
    if specimen.relation == "one-row" or "geometric" in specimen.name:
        return specimen.pairs
    k = specimen.pairs[0][0].size
    if k == 1:
        return [(np.ones(1), np.zeros(1)), (np.ones(1), np.full(1, 2.0))]
    return patterns(k)[:2] if specimen.relation == "one-answer" else patterns(k)


def codes(outputs, flagged):
    """One integer for an output: exact for indices and flags, coarse for values."""
    table = np.asarray(outputs, dtype=np.float64).reshape(len(outputs), -1)[:, :12]
    if flagged:
        k = table.shape[1] if table.shape[1] <= 10 and table.max() <= 1 else table.shape[1] // 2
        return ((table[:, :k] + 1) @ 3.0 ** np.arange(k)).astype(np.int64)
    step = 0.5 if np.abs(np.nan_to_num(table)).max() <= 30 else 10.0
    bins = np.clip(np.floor(np.nan_to_num(table, nan=-99.0) / step), -2, 2)
    return ((bins[:, :6] + 2) @ 5.0 ** np.arange(min(6, table.shape[1]))).astype(np.int64)


@functools.lru_cache(maxsize=len(ALL))
def share_of_event(name):
    """How often the event happens on each table of the first pair, for both tests that ask."""
    specimen = ALL[NAMES.index(name)]
    rng = np.random.default_rng(31)
    return tuple(
        float(specimen.event(specimen.mechanism(rows, rng, DRAWS)).mean())
        for rows in specimen.pairs[0]
    )


@pytest.mark.parametrize("specimen", ALL, ids=NAMES)
def test_event_reaches_the_curve(specimen):
    """The event's excess stays below the curve; where the event is optimal it equals it."""
    if specimen.event is None or specimen.delta is None:
        pytest.skip("no event, or no curve, is stated")
    p, q = share_of_event(specimen.name)
    factor = math.exp(specimen.claim.epsilon)
    error = STANDARD_ERRORS * math.sqrt(
        max(p * (1 - p) + factor**2 * q * (1 - q), factor**2 / DRAWS) / DRAWS
    )
    true = specimen.delta(specimen.claim.epsilon)
    assert p - factor * q <= true + error
    if specimen.name in OPTIMAL:
        assert p - factor * q >= true - error


@pytest.mark.parametrize("specimen", ALL, ids=NAMES)
def test_loss_of_the_event_never_exceeds_the_truth(specimen):
    """P(E) is at most exp(epsilon) Q(E) at the stated finite loss of the pair."""
    if specimen.event is None or specimen.epsilon is None or math.isinf(specimen.epsilon):
        pytest.skip("no finite loss, or no event, is stated")
    p, q = share_of_event(specimen.name)
    factor = math.exp(specimen.epsilon)
    error = math.sqrt(max(p * (1 - p) + factor**2 * q * (1 - q), factor**2 / DRAWS) / DRAWS)
    assert p - factor * q <= STANDARD_ERRORS * error


@pytest.mark.parametrize(
    "specimen",
    [s for s in ALL if "law" in getattr(s.mechanism, "keywords", {}) and s.epsilon is not None],
    ids=lambda s: s.name,
)
def test_flags_follow_their_enumerated_law(specimen):
    """Drawn flags pass a chi-squared test at 1e-7 against the law by quadrature."""
    law = specimen.mechanism.keywords["law"]
    for seed, rows in enumerate(specimen.pairs[0]):
        outcomes, chances = _flags.enumerate_flags(rows, law)
        drawn = specimen.mechanism(rows, np.random.default_rng(40 + seed), 500_000)
        weights = 3.0 ** np.arange(rows.size)
        keys = (outcomes + 1) @ weights
        order = np.argsort(keys)
        seen = (drawn[:, : rows.size] + 1) @ weights
        places = np.searchsorted(keys[order], seen)
        counts = np.bincount(order[places], minlength=chances.size)
        assert counts.sum() == 500_000
        assert counts[chances < 1e-15].sum() == 0
        kept = chances * 500_000 >= 10
        observed = np.append(counts[kept], counts[~kept].sum())
        expected = np.append(chances[kept], chances[~kept].sum()) * 500_000
        used = expected > 1e-6
        statistic = ((observed - expected)[used] ** 2 / expected[used]).sum()
        assert stats.chi2.sf(statistic, used.sum() - 1) > 1e-7


@pytest.mark.parametrize("noise", ["laplace", "exponential"])
def test_indices_follow_their_law(noise):
    """Drawn indices pass a chi-squared test at 1e-7 against the law by quadrature."""
    specimen = _selection.noisy_max_index(0.5, 5, noise)
    for seed, rows in enumerate(specimen.pairs[0]):
        drawn = specimen.mechanism(rows, np.random.default_rng(80 + seed), 1_000_000)
        chances = _selection.index_probabilities(rows, 4.0, noise)
        expected = chances / chances.sum() * 1_000_000
        assert stats.chisquare(np.bincount(drawn, minlength=5), expected).pvalue > 1e-7


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        ("Laplace", 10.0),
        ("histogram", 10.0),
        ("NoisyHist2", 0.1),
        ("LaplaceParallel", 200.0),
        ("PrefixSum", 10.0),
        ("Laplace on doubles (faulty)", 10.0),
        ("Laplace on doubles (corrected)", 10.0),
    ],
)
def test_noise_has_its_stated_scale(name, scale):
    """Outputs less the rows pass a Kolmogorov-Smirnov test at 1e-7 against the stated Laplace."""
    specimen = zoo.find(name)
    for seed, rows in enumerate(specimen.pairs[0]):
        drawn = specimen.mechanism(rows, np.random.default_rng(60 + seed), 100_000)
        drawn = drawn.reshape(100_000, -1)
        if name == "PrefixSum":
            drawn = np.diff(drawn, axis=1, prepend=0.0)
        noise = (drawn - rows).ravel()
        assert stats.kstest(noise, stats.laplace(scale=scale).cdf).pvalue > 1e-7


def test_reports_of_many_days_follow_their_law():
    """Days on which a bit was 1 pass a chi-squared test at 1e-7 against the law of a mixture."""
    specimen = zoo.find("daily RAPPOR")
    value = specimen.pairs[0][0]
    drawn = specimen.mechanism(value, np.random.default_rng(70), 200_000)
    true = _local.bloom_bits(int(value[0]), 4, 20)
    for bit in (int(np.argmax(true)), int(np.argmin(true))):
        counts = np.bincount(drawn[:, bit].astype(int), minlength=8)
        keep = 0.625 if true[bit] else 0.375
        law = keep * stats.binom.pmf(range(8), 7, 0.55)
        law += (1 - keep) * stats.binom.pmf(range(8), 7, 0.45)
        assert stats.chisquare(counts, law * counts.sum()).pvalue > 1e-7
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1]) < 5.4 / math.sqrt(200_000)


@pytest.mark.parametrize(
    "specimen",
    [s for s in ALL if s.private],
    ids=lambda s: s.name,
)
def test_private_specimens_keep_their_claim_on_the_patterns(specimen):
    """On all eight patterns, both ways, events chosen on one half hold up on the other."""
    flagged = "flags" in specimen.output
    draws, factor = 200_000, math.exp(specimen.claim.epsilon)
    tried = 0
    for i, pair in enumerate(neighbours(specimen)):
        rng = np.random.default_rng(500 + i)
        drawn = [codes(specimen.mechanism(x, rng, 2 * draws), flagged) for x in pair]
        for p, q in (drawn, drawn[::-1]):
            top = int(max(p.max(), q.max())) + 1
            train = [np.bincount(x[:draws], minlength=top) for x in (p, q)]
            event = train[0] > factor * train[1]
            hits = [int(event[x[draws:]].sum()) for x in (p, q)]
            low = stats.beta.ppf(1e-7, hits[0], draws - hits[0] + 1) if hits[0] else 0.0
            high = stats.beta.ppf(1 - 1e-7, hits[1] + 1, draws - hits[1]) if hits[1] < draws else 1
            assert low <= factor * high + specimen.claim.delta
            tried += 1
    assert tried >= 2


def test_wrong_specimens_would_fail_the_test_above():
    """The same split catches a histogram with the wrong scale: the test has power."""
    specimen = _laplace.histogram_wrong_scale(0.1, 1)
    rng = np.random.default_rng(9)
    p, q = (specimen.mechanism(x, rng, 100_000)[:, 0] for x in specimen.pairs[0])
    assert (p >= 2).mean() > math.exp(0.1) * stats.beta.ppf(1 - 1e-7, (q >= 2).sum() + 1, 99_000)
