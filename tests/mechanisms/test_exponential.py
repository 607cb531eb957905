"""The exponential mechanism: chosen frequencies, widths, the monotone rule, regret."""

import math

import numpy as np
import pytest
from tests.frequencies import pvalue_of_counts

import hushed as hs
from hushed.errors import ParameterError, WrongNorm, ZeroSensitivity

FALSE_ALARM = 1e-6
SCORES = np.array([0.0, 1.0, 2.5, 2.5, -3.0])


def proven(norm="sup", neighbours="replace-one", value=1.0):
    return hs.proven_sensitivity(value, norm, neighbours=neighbours, argument="by assumption")


@pytest.mark.parametrize(
    ("mechanism", "rate"),
    [
        (hs.Exponential(proven(), epsilon=1.0), 0.5),
        (hs.Exponential(proven("range"), epsilon=1.0), 1.0),
        (hs.Exponential(proven("sup", "add-remove"), epsilon=1.0), 0.5),
        (hs.Exponential(proven("sup", "add-remove"), epsilon=1.0, monotone=True), 1.0),
        (hs.Exponential(proven(value=4.0), epsilon=2.0), 0.25),
    ],
)
def test_frequencies_follow_the_softmax(mechanism, rate):
    """1,000 choices pass a test against exp(rate s) / sum at a false-alarm rate of 1e-6.

    Twice the rate, which is the break to be seen, is seen with .9999, half of it with .95 or more.
    """
    law = np.exp(rate * SCORES) / np.exp(rate * SCORES).sum()
    counts = np.bincount([mechanism.draw(SCORES) for _ in range(1000)], minlength=5)
    assert pvalue_of_counts(counts, 1000 * law) > FALSE_ALARM
    assert mechanism.scale == pytest.approx(1 / rate)


def test_a_sampled_range_replaces_twice_the_sup():
    """Scores that move together have a small range, and the mechanism uses it without factor 2."""
    unit = hs.populations.Uniform(low=0, high=1)
    together = lambda r: r.sum() + np.arange(4.0) * r.mean()  # noqa: E731
    settings = {"rows": 10, "seed": 2, "workers": 1}
    by_sup = hs.sample_sensitivity(together, unit, norm="sup", **settings)
    by_range = hs.sample_sensitivity(together, unit, norm="range", **settings)
    assert by_range.value <= 2 * by_sup.value
    assert (
        hs.Exponential(by_range, epsilon=1.0).scale < hs.Exponential(by_sup, epsilon=1.0).scale / 4
    )


@pytest.mark.parametrize("sensitivity", [proven(), proven("range"), proven("range", "add-remove")])
def test_monotone_needs_sup_and_add_remove(sensitivity):
    """Replacing a record can raise one score and lower another: no halving there."""
    with pytest.raises(ParameterError, match="add-remove"):
        hs.Exponential(sensitivity, epsilon=1.0, monotone=True)
    sampled = hs.sample_sensitivity(
        lambda r: [r.sum(), 1.0], hs.populations.Uniform(low=0, high=1), rows=5, norm="sup"
    )
    with pytest.raises(ParameterError, match="add-remove"):
        hs.Exponential(sampled, epsilon=1.0, monotone=True)


def test_losing_privacy_by_halving_under_replacement():
    """Counts (3, 3) to (2, 4) lose 1.434 at epsilon = 1 without the factor 2, and less with it."""

    def loss(rate):
        one, two = np.exp(rate * np.array([3.0, 3.0])), np.exp(rate * np.array([2.0, 4.0]))
        return np.abs(np.log(one / one.sum()) - np.log(two / two.sum())).max()

    assert loss(1.0) == pytest.approx(1.434, abs=5e-4)
    assert loss(1 / hs.Exponential(proven(), epsilon=1.0).scale) <= 1.0


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_wrong_norm_and_zero(norm):
    """The right norms are named, and a zero sensitivity refused."""
    with pytest.raises(WrongNorm, match="'sup' or 'range'"):
        hs.Exponential(proven(norm), epsilon=1.0)
    for each in ("sup", "range"):
        with pytest.raises(ZeroSensitivity):
            hs.Exponential(proven(each, value=0), epsilon=1.0)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "1"])
def test_epsilon_out_of_range(epsilon):
    """Epsilon 0, NaN and infinity are refused."""
    with pytest.raises(ParameterError, match="epsilon"):
        hs.Exponential(proven(), epsilon=epsilon)


@pytest.mark.parametrize("candidates", [2, 7, 1000])
@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-9])
def test_accuracy_inverts(candidates, beta):
    """for_accuracy reaches the error, and a slightly smaller epsilon does not."""
    for error in (1e-4, 1.0, 1e5):
        m = hs.Exponential.for_accuracy(proven(), error=error, beta=beta, dims=candidates)
        assert m.accuracy(beta, candidates) <= error
        less = hs.Exponential(proven(), epsilon=m.epsilon * (1 - 1e-9))
        assert less.accuracy(beta, candidates) > error


@pytest.mark.parametrize("candidates", [2, 10, 500])
def test_regret_bound_holds_exactly(candidates):
    """The exact probability of a regret at the bound is at most beta in the worst case."""
    m = hs.Exponential(proven(), epsilon=0.7)
    for beta in (0.5, 0.05, 1e-4):
        bound = m.accuracy(beta, candidates)
        for depth in (bound, bound * 1.01, bound * 2):
            scores = np.full(candidates, -depth)
            scores[0] = 0.0
            weights = np.exp(scores / m.scale)
            assert weights[1:].sum() / weights.sum() <= beta


@pytest.mark.parametrize("bad", [{"beta": 0}, {"beta": float("nan")}, {"dims": 0}])
def test_accuracy_out_of_range(bad):
    """Beta outside (0, 1) and no candidates are refused."""
    with pytest.raises(ParameterError):
        hs.Exponential(proven(), epsilon=1).accuracy(**bad)


@pytest.mark.parametrize(
    "bad",
    [[], [[1.0, 987654.321]], [1.0, np.nan], [987654.321, np.inf], 987654.321, ["987654.321"]],
)
def test_draw_refuses_what_are_no_scores_without_showing_them(bad, assert_silent):
    """Nothing, a matrix, NaN, infinity, one number or text are refused silently."""
    with pytest.raises(ParameterError) as caught:
        hs.Exponential(proven(), epsilon=1).draw(bad)
    assert_silent(caught.value)


def test_draw_gives_a_plain_index():
    """The choice is an int in range; one candidate leaves none; a far better one wins."""
    m = hs.Exponential(proven(), epsilon=1.0)
    assert type(m.draw([1.0, 2.0])) is int
    assert m.draw([-5.0]) == 0
    assert {m.draw([0.0, 200.0, 0.0]) for _ in range(50)} == {1}
    assert math.isfinite(m.accuracy())
