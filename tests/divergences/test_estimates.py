"""`estimate_delta` on counts whose answer is known, and on input that must be refused."""

import math
from fractions import Fraction

import numpy as np
import pytest

from hushed.divergences import count_outcomes, estimate_delta
from hushed.errors import HushedError, ParameterError

UNIFORM = np.full(100, 0.01)
POWER = np.arange(1.0, 101) ** 0.6 / (np.arange(1.0, 101) ** 0.6).sum()
HALF = np.where(np.arange(100) < 50, 0.02, 0.0)


def delta(p, q, epsilon):
    return float(np.maximum(np.asarray(q) - math.exp(epsilon) * np.asarray(p), 0).sum())


class TestDirection:
    @pytest.mark.parametrize("method", ["plug-in", "minimax", "empirical-bayes"])
    @pytest.mark.parametrize(
        ("q", "there", "back"), [(POWER, 0.005232, 0.084377), (HALF, 0.254088, 0.5)]
    )
    def test_q_exceeds_p(self, method, q, there, back):
        """With 1e13 exact samples, both directions of instances A and E have their values."""
        n = 10**13
        p_counts, q_counts = np.round(n * UNIFORM), np.round(n * q)
        forth = estimate_delta(p_counts, q_counts, 0.4, samples=n + 100, method=method)
        reverse = estimate_delta(q_counts, p_counts, 0.4, samples=n + 100, method=method)
        assert float(forth) == pytest.approx(there, abs=2e-6)
        assert float(reverse) == pytest.approx(back, abs=2e-6)

    @pytest.mark.parametrize("method", ["plug-in", "minimax", "empirical-bayes"])
    def test_known_sides(self, method):
        """A known p or a known q gives both directions of instance A from the other's samples."""
        rng = np.random.default_rng(4)
        n = 10**7
        q_counts, p_counts = rng.multinomial(n, POWER), rng.multinomial(n, UNIFORM)
        for estimate, truth in (
            (estimate_delta(None, q_counts, 0.4, p=UNIFORM, method=method), 0.005232),
            (estimate_delta(p_counts, None, 0.4, q=POWER, method=method), 0.005232),
            (estimate_delta(None, p_counts, 0.4, p=POWER, method=method), 0.084377),
            (estimate_delta(q_counts, None, 0.4, q=UNIFORM, method=method), 0.084377),
        ):
            assert float(estimate) == pytest.approx(
                truth, abs=6 * float(estimate.standard_error) + 1e-4
            )


class TestForms:
    def test_mappings_and_raw_outcomes(self):
        """Mappings are aligned by key, and counting raw outcomes gives the same as an array."""
        left, right = ["a"] * 30 + ["b"] * 70, ["b"] * 50 + ["c"] * 40 + ["a"] * 10
        by_array = estimate_delta([30, 70, 0], [10, 50, 40], 0.2, method="plug-in")
        by_key = estimate_delta(count_outcomes(left), count_outcomes(right), 0.2, method="plug-in")
        assert by_key.value == by_array.value == pytest.approx(0.4)
        assert by_key.symbols == 3

    def test_count_outcomes(self):
        """Outcomes of mixed types are counted, all NaN together, arrays included."""
        assert count_outcomes([1, None, "x", (2, 3), 1]) == {1: 2, None: 1, "x": 1, (2, 3): 1}
        counted = count_outcomes([float("nan"), np.float64("nan"), 0.5])
        assert sorted(counted.values()) == [1, 2]
        assert count_outcomes(np.array([3, 3, 4])) == {3: 2, 4: 1}

    @pytest.mark.parametrize("outcomes", [[[1], [2]], np.eye(3)])
    def test_unhashable_outcomes(self, outcomes):
        """Outcomes that cannot be keys are refused with the remedy."""
        with pytest.raises(ParameterError, match="tuples"):
            count_outcomes(outcomes)

    @pytest.mark.parametrize("method", ["plug-in", "minimax", "empirical-bayes"])
    def test_whole_curve(self, method):
        """An array of epsilons gives what single calls give, in its shape, made to fall."""
        rng = np.random.default_rng(1)
        p, q = rng.multinomial(3000, UNIFORM), rng.multinomial(2000, POWER)
        epsilons = np.array([[0.0, 0.3], [1.0, 3.0]])
        curve = estimate_delta(p, q, epsilons, method=method)
        single = [
            [float(estimate_delta(p, q, e, method=method).unclipped) for e in row]
            for row in epsilons
        ]
        assert curve.unclipped == pytest.approx(np.array(single), abs=1e-15)
        assert curve.standard_error.shape == (2, 2)
        with pytest.raises(ParameterError, match="curve"):
            float(curve)

    def test_says_what_it_is(self):
        """The text names estimate, standard error, bias, samples and model, and no certificate."""
        text = str(estimate_delta([40, 60], [55, 45], 0.1, method="plug-in"))
        for words in ("estimate of delta", "standard error", "bias upward", "fixed samples", "100"):
            assert words in text
        assert "not a certificate" in text

    @pytest.mark.parametrize("symbols", [2, 30, 5000])
    @pytest.mark.parametrize("samples", [300, 10_000])
    @pytest.mark.parametrize("epsilon", [0.0, 0.4, 2.0])
    def test_the_range_holds_delta_also_where_outcomes_are_rare(self, symbols, samples, epsilon):
        """One outcome of 5 in 10,000 beside many that are alike: in the range of 19 of 20 draws.

        At 2 standard deviations a draw misses with probability 0.05 at most: more than 4 of 20
        would be seen once in 380 times, and the seed is fixed.
        """
        p = np.append(np.full(symbols - 1, 1 / (symbols - 1)), 0.0)
        q = np.append(p[:-1] * (1 - 5e-4), 5e-4)
        truth, rng, missed = delta(p, q, epsilon), np.random.default_rng(8), 0
        for _ in range(20):
            counts = (rng.multinomial(samples, each) for each in (p, q))
            found = estimate_delta(*counts, epsilon)
            missed += not found.low <= truth <= found.high
        assert missed <= 4
        assert f"from {found.low:.2g} to {found.high:.2g}" in str(found)

    @pytest.mark.parametrize("swapped", [False, True])
    def test_the_range_is_narrow_where_samples_tell(self, swapped):
        """Two outcomes far from the kink: as wide as the scatter, and no wider."""
        sides = ([90_000, 10_000], [40_000, 60_000])
        found = estimate_delta(*(reversed(sides) if swapped else sides), 0.0)
        assert found.low < 0.5 < found.high
        assert found.high - found.low < 0.015

    def test_poisson_and_unequal_sizes(self):
        """Under Poisson sampling shares are counts over the expected size, not over the total."""
        plug_in = estimate_delta(
            [40, 50], [150, 30], 0.0, samples=(100, 200), model="poisson", method="plug-in"
        )
        assert plug_in.value == pytest.approx(150 / 200 - 40 / 100)
        assert plug_in.samples == (100.0, 200.0)
        assert plug_in.model == "poisson"


class TestScores:
    @pytest.mark.parametrize("method", ["minimax", "empirical-bayes"])
    def test_far_from_the_kink_all_agree(self, method):
        """Symbols far on either side of the kink score as in the plug-in."""
        p, q = [90_000, 10_000], [10_000, 90_000]
        plain = estimate_delta(p, q, 0.5, method="plug-in")
        assert float(estimate_delta(p, q, 0.5, method=method)) == pytest.approx(
            float(plain), abs=1e-12
        )

    def test_minimax_uses_the_model(self):
        """Fixed and Poisson sizes have different unbiased estimates near the kink."""
        p = q = np.full(20, 50)
        fixed = estimate_delta(p, q, 0.0, method="minimax")
        poisson = estimate_delta(p, q, 0.0, method="minimax", samples=1000, model="poisson")
        assert float(fixed.unclipped) != pytest.approx(float(poisson.unclipped), rel=1e-3)

    @pytest.mark.parametrize("symbols", [1000, 10_000])
    def test_equal_distributions(self, symbols):
        """Where p = q with ten samples a symbol, the default is below half the plug-in's error."""
        rng = np.random.default_rng(6)
        share = np.full(symbols, 1 / symbols)
        p, q = rng.multinomial(10 * symbols, share), rng.multinomial(10 * symbols, share)
        plain = float(estimate_delta(p, q, 0.0, method="plug-in"))
        assert plain > 0.15
        assert float(estimate_delta(p, q, 0.0)) < plain / 2
        assert float(estimate_delta(p, q, 0.0, method="minimax")) < plain / 2

    @pytest.mark.parametrize(
        ("q", "back", "tolerance"), [(HALF, False, 0.05), (HALF, True, 0.05), (POWER, True, 0.04)]
    )
    def test_empirical_bayes_near_the_kink(self, q, back, tolerance):
        """At 40 samples a symbol the default is near the truth on both sides of the kink.

        Tolerances are three standard deviations or more, seen over 200 seeds.
        """
        rng = np.random.default_rng(9)
        sides = (q, UNIFORM) if back else (UNIFORM, q)
        counts = [rng.multinomial(4000, side) for side in sides]
        assert float(estimate_delta(*counts, 0.4)) == pytest.approx(
            delta(*sides, 0.4), abs=tolerance
        )

    def test_supports_that_never_meet(self):
        """Outcomes seen again and again, none on both sides: delta is 1 for all."""
        rng = np.random.default_rng(3)
        counts = rng.multinomial(300, np.full(150, 1 / 150)), np.zeros(150, dtype=int)
        p, q = np.concatenate(counts), np.concatenate(counts[::-1])
        assert float(estimate_delta(p, q, 0.4)) == 1.0
        once = np.ones(30, dtype=int), np.zeros(30, dtype=int)  # nothing repeats: no evidence
        p, q = np.concatenate(once), np.concatenate(once[::-1])
        assert float(estimate_delta(p, q, 0.4)) < 0.9

    @pytest.mark.parametrize("epsilon", [5.0, 12.0, 50.0, 200.0])
    @pytest.mark.parametrize("method", ["plug-in", "minimax", "empirical-bayes"])
    def test_extreme_epsilons(self, method, epsilon):
        """Outcomes that p never shows count in full at any epsilon; nothing overflows."""
        estimate = estimate_delta([1000, 0], [900, 100], epsilon, method=method)
        assert float(estimate) == pytest.approx(0.1, abs=0.05)

    @pytest.mark.parametrize("samples", [1, 2, 3, 5, 8])
    @pytest.mark.parametrize("method", ["plug-in", "minimax", "empirical-bayes"])
    @pytest.mark.parametrize("model", ["fixed", "poisson"])
    def test_tiny_samples(self, method, samples, model):
        """A handful of observations gives a number in [0, 1], not an error."""
        estimate = estimate_delta(
            [samples, 0], [0, samples], 0.3, samples=samples, method=method, model=model
        )
        assert 0 <= float(estimate) <= 1


class TestRoles:
    def test_halves_are_reproducible(self):
        """Splits follow the seed, and the averaged estimate lies between its two halves."""
        rng = np.random.default_rng(2)
        p, q = rng.multinomial(2001, UNIFORM), rng.multinomial(1001, POWER)
        options = {"method": "minimax", "roles": "averaged"}
        first = estimate_delta(p, q, 0.4, rng=5, **options)
        assert first.value == estimate_delta(p, q, 0.4, rng=5, **options).value
        assert first.value != estimate_delta(p, q, 0.4, rng=6, **options).value

    @pytest.mark.parametrize("model", ["fixed", "poisson"])
    def test_split_is_fair(self, model):
        """Over seeds the split estimate agrees with the whole sample, to four standard errors."""
        p, q = [9000, 1000], [1000, 9000]
        values = [
            float(
                estimate_delta(
                    p,
                    q,
                    0.3,
                    samples=10_000,
                    model=model,
                    method="minimax",
                    roles="split",
                    rng=seed,
                )
            )
            for seed in range(200)
        ]
        whole = float(estimate_delta(p, q, 0.3, method="plug-in"))
        assert abs(np.mean(values) - whole) < 4 * np.std(values) / math.sqrt(200)


class TestStandardError:
    @pytest.mark.parametrize("model", ["fixed", "poisson"])
    def test_linear_scores(self, model):
        """Away from the kink the jackknife is the exact error of a difference of shares."""
        p, q, n = np.array([100, 300, 600]), np.array([700, 250, 50]), 1000
        estimate = estimate_delta(p, q, 0.0, samples=n, model=model, method="plug-in")
        shares = Fraction(1, 10), Fraction(7, 10)
        variance = sum(s * (1 - s) if model == "fixed" else s for s in shares) / n
        assert float(estimate.standard_error) == pytest.approx(math.sqrt(variance), rel=1e-9)

    def test_bootstrap_agrees(self):
        """The bootstrap gives the same error there, to 15 % (four sigma at 400 redraws)."""
        p, q = [100, 300, 600], [700, 250, 50]
        jackknife = estimate_delta(p, q, 0.0, method="plug-in")
        bootstrap = estimate_delta(p, q, 0.0, method="plug-in", bootstrap=400, rng=3)
        assert bootstrap.standard_error == pytest.approx(float(jackknife.standard_error), rel=0.15)
        assert "bootstrap of 400" in str(bootstrap)

    def test_known_side_adds_none(self):
        """A known side has no sampling error: the rest is that of one share."""
        estimate = estimate_delta([250, 750], None, 0.0, q=[0.9, 0.1], method="plug-in")
        assert float(estimate.standard_error) == pytest.approx(
            math.sqrt(0.25 * 0.75 / 1000), rel=1e-9
        )


BAD = [
    (([1, -1], [1, 1], 0.1), {}, "counts_p must lie in"),
    (([1, 1], [0.5, 1], 0.1), {}, "counts_q must be whole"),
    (([1, float("nan")], [1, 1], 0.1), {}, "not be NaN"),
    (([], [], 0.1), {}, "at least one symbol"),
    (([[1, 2]], [[1, 2]], 0.1), {}, "one-dimensional"),
    (([[1], [1, 2]], [1, 2], 0.1), {}, "ragged"),
    ((["a"], ["b"], 0.1), {}, "real numbers"),
    (([True, False], [True, True], 0.1), {}, "real numbers"),
    (([1, 2], [1, 2, 3], 0.1), {}, "2 symbols and q has 3"),
    (({"a": 1}, [1], 0.1), {}, "both as mappings"),
    (([0, 0], [1, 2], 0.1), {}, "samples of p must be a number"),
    (([5, 6], [1, 2], 0.1), {"samples": 10}, "more than the 10 samples of p"),
    (([5, 6], [1, 2], 0.1), {"samples": 11.5}, "whole number"),
    (([5, 6], [1, 2], 0.1), {"samples": math.nan}, "samples of p"),
    (([5, 6], [1, 2], 0.1), {"samples": math.inf}, "samples of p"),
    (([5, 6], [1, 2], 0.1), {"samples": "many"}, "samples of p"),
    (([5, 6], [1, 2], 0.1), {"samples": (11, 3, 4)}, "got 3 numbers"),
    (([5, 6], [1, 2], 0.1), {"model": "poisson"}, "give samples="),
    (([5, 6], [1, 2], 0.1), {"model": "binomial"}, "model must be one of"),
    (([1, 1], [1, 1], math.nan), {}, "epsilon must lie in"),
    (([1, 1], [1, 1], -0.1), {}, "epsilon must lie in"),
    (([1, 1], [1, 1], math.inf), {}, "epsilon must lie in"),
    (([1, 1], [1, 1], [0.1, math.nan]), {}, "epsilon must lie in"),
    (([1, 1], [1, 1], []), {}, "not empty"),
    (([1, 1], [1, 1], "one"), {}, "epsilon must be"),
    (([1, 1], [1, 1], 0.1), {"method": "best"}, "method must be one of"),
    (([1, 1], [1, 1], 0.1), {"roles": "halves", "method": "minimax"}, "roles must be one of"),
    (([1, 1], [1, 1], 0.1), {"roles": "split"}, "method='minimax'"),
    (([1, 0], [1, 1], 0.1), {"roles": "split", "method": "minimax"}, "at least 2 samples"),
    (([1, 1], [1, 1], 0.1), {"product": "sum", "method": "minimax"}, "product must be one of"),
    (([1, 1], [1, 1], 0.1), {"bootstrap": 1}, "bootstrap must be"),
    (([1, 1], [1, 1], 0.1), {"p": [0.5, 0.5]}, "either counts_p or"),
    ((None, [1, 1], 0.1), {}, "either counts_p or"),
    ((None, None, 0.1), {"p": [0.5, 0.5], "q": [0.5, 0.5]}, "both sides are known"),
    ((None, [1, 1], 0.1), {"p": [0.7, 0.5]}, "p must be probabilities"),
    ((None, [1, 1], 0.1), {"p": [0.5, math.nan]}, "p must be probabilities"),
    (([1, 1], None, 0.1), {"q": [-0.1, 0.5]}, "q must be probabilities"),
]


@pytest.mark.parametrize(("arguments", "options", "message"), BAD)
def test_bad_input(arguments, options, message):
    """Bad input is refused by a message that says what was met and what is allowed."""
    with pytest.raises(ParameterError, match=message) as caught:
        estimate_delta(*arguments, **options)
    assert isinstance(caught.value, HushedError)


@pytest.mark.filterwarnings("error")
def test_a_known_side_brings_no_warnings():
    """A known side counts as a huge sample: chances below all doubles are taken as logarithms."""
    for epsilon in np.linspace(0, 3, 31):
        assert 0 <= float(estimate_delta(None, [2, 3, 0], float(epsilon), p=[0.2, 0.3, 0.5])) <= 1
