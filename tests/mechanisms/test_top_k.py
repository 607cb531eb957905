"""Top k by the joint exponential mechanism: law, loss, exact coins, release."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats
from tests.frequencies import pvalue_of_counts
from tests.noise.test_exact import Recorded

import hushed as hs
from hushed.errors import BadFunction, ParameterError, WrongNorm, ZeroSensitivity
from hushed.mechanisms import _top_k as top
from hushed.noise import _joint as joint

FALSE_ALARM = 1e-6


def counted(value=1.0, norm="sup", neighbours="add-remove"):
    return hs.proven_sensitivity(value, norm, neighbours=neighbours, argument="by assumption")


def law(scores, k, rate):
    """Log probability of every choice: enumerated, the worst place decides."""
    best = sorted(scores, reverse=True)
    choices = list(itertools.permutations(range(len(scores)), k))
    logs = np.array([-rate * max(best[i] - scores[c[i]] for i in range(k)) for c in choices])
    return choices, logs - np.logaddexp.reduce(logs)


MECHANISMS = {
    "monotone": lambda k: hs.TopK(k, counted(), epsilon=1.0, monotone=True),
    "sup": lambda k: hs.TopK(k, counted(neighbours="replace-one"), epsilon=1.0),
    "range": lambda k: hs.TopK(k, counted(2.0, "range"), epsilon=1.0),
}
SHIFTS = {"monotone": (0, 1), "sup": (-1, 0, 1), "range": (-1, 0, 1)}


@pytest.mark.parametrize("kind", list(MECHANISMS))
@pytest.mark.parametrize("k", [1, 2, 3])
def test_all_small_score_lists_keep_epsilon(kind, k):
    """Four scores of 0 to 3, all movements: never above epsilon; and near it for some."""
    rate = 1 / MECHANISMS[kind](k).scale
    vectors = list(itertools.product(range(4), repeat=4))
    worst, laws = 0.0, {}

    def known(scores):
        if scores not in laws:
            laws[scores] = law(scores, k, rate)[1]
        return laws[scores]

    for scores in vectors[::3]:
        for shift in itertools.product(SHIFTS[kind], repeat=4):
            other = tuple(a + b for a, b in zip(scores, shift, strict=True))
            worst = max(worst, np.abs(known(scores) - known(other)).max())
    assert worst <= 1 + 1e-12
    assert worst > 0.5


@pytest.mark.parametrize(("k", "factor"), [(1, 1), (2, 2), (5, 2)])
def test_rates_follow_the_range_of_the_loss(k, factor):
    """Scores within r move one place by r, several by 2 r; monotone counts have r = D."""
    assert MECHANISMS["monotone"](k).rate * factor * 2**30 == 1
    assert MECHANISMS["sup"](k).rate * factor * 2**31 == 1
    assert MECHANISMS["range"](k).rate * factor * (2**30 + 1) == 1
    assert hs.TopK(1, counted(), epsilon=1.0).scale == hs.Exponential(counted(), epsilon=1.0).scale


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("scores", [[3.0, 5.0, 4.0, 1.0], [2.0, 2.0, 2.0, 2.0], [0.0, 9.0, 9, 8.5]])
def test_choices_follow_the_enumerated_law(k, scores):
    """2,000 choices against the law, ties among them, at a false alarm of 1e-6."""
    mechanism = hs.TopK(k, counted(), epsilon=2.0, monotone=True)
    choices, logs = law(scores, k, 1 / mechanism.scale)
    place = {choice: i for i, choice in enumerate(choices)}
    found = np.bincount(
        [place[tuple(mechanism.draw(scores).tolist())] for _ in range(2000)], minlength=len(choices)
    )
    expected = 2000 * np.exp(logs)
    assert pvalue_of_counts(found, expected) > FALSE_ALARM


def random_ladder(rng, k, n, spread):
    return joint.list_losses(-np.sort(-rng.integers(0, spread, n)), k)


@pytest.mark.parametrize("spread", [3, 50, 2**40])
@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(1, 2**31), Fraction(7)])
def test_shares_lie_above_the_weights(spread, rate):
    """Every weight is below its share: no coin needs a probability above 1."""
    rng = np.random.default_rng(5)
    for k, n in ((1, 4), (3, 7), (20, 40)):
        ladder = random_ladder(rng, k, n, spread)
        shift, shares = joint._list_shares(ladder, float(rate))
        losses = [*ladder.losses.tolist(), None]
        with mpmath.workdps(60):
            for level in range(ladder.losses.size):
                count = math.prod(int(m) - i for i, m in enumerate(ladder.within[:, level]))
                first, last = (
                    mpmath.mpf(0)
                    if loss is None
                    else mpmath.exp(-mpmath.mpf(loss) * rate.numerator / rate.denominator)
                    for loss in losses[level : level + 2]
                )
                ceiling = mpmath.ldexp(int(shares[level]), shift - 36)
                assert count * (first - last) <= ceiling


def test_coins_have_the_exact_probability():
    """The prefixes that accept a level are as many as its weight over its ceiling, to 64 digits."""
    ladder = joint.list_losses(np.array([9, 7, 7, 2, 0]), 2)
    rate = Fraction(1, 3)
    shift, shares = joint._list_shares(ladder, float(rate))
    for level in range(ladder.losses.size):
        ceiling = Fraction(int(shares[level])) * Fraction(2) ** (shift - 36)

        def accepts(prefix, level=level, ceiling=ceiling):
            words = Recorded([prefix], rest=0)
            return joint._accept(words, ladder, level, rate, ceiling)

        low, high = 0, 1 << 64
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if accepts(middle) else (low, middle)
        loss, last = int(ladder.losses[level]), level + 1 == ladder.losses.size
        with mpmath.workdps(60):
            weight = mpmath.exp(-mpmath.mpf(loss) / 3)
            weight -= 0 if last else mpmath.exp(-mpmath.mpf(int(ladder.losses[level + 1])) / 3)
            count = math.prod(int(m) - i for i, m in enumerate(ladder.within[:, level]))
            true = count * weight * ceiling.denominator / ceiling.numerator
            assert abs(mpmath.ldexp(true, 64) - low) <= 1


def test_counts_of_choices_are_those_of_an_enumeration():
    """N(t) is the number of choices that lose t or less."""
    scores = [9, 7, 7, 2, 0]
    for k in (1, 2, 3, 5):
        ladder = joint.list_losses(np.array(scores), k)
        lost = [
            max(scores[i] - scores[c[i]] for i in range(k))
            for c in itertools.permutations(range(5), k)
        ]
        for level, loss in enumerate(ladder.losses.tolist()):
            count = math.prod(int(m) - i for i, m in enumerate(ladder.within[:, level]))
            assert count == sum(each <= loss for each in lost)


def test_it_beats_choosing_one_after_the_other():
    """Ten of 1,000 counts at epsilon 0.2: the worst place is nearer than with ten choices."""
    counts = np.floor(1e4 / np.arange(1, 1001))
    together = hs.TopK(10, counted(), epsilon=0.2, monotone=True)
    single = hs.Exponential(counted(), epsilon=0.02, monotone=True)
    worst = {"together": [], "one by one": []}
    for _ in range(40):
        worst["together"].append(max(counts[:10] - counts[together.draw(counts)]))
        left = counts.copy()
        chosen = []
        for _ in range(10):
            index = single.draw(left)
            chosen.append(index)
            left[index] = -1e9
        worst["one by one"].append(max(counts[:10] - counts[chosen]))
    assert np.mean(worst["together"]) < 0.5 * np.mean(worst["one by one"])


def test_accuracy_holds():
    """The shortfall exceeds the bound in at most 20 % of 200 draws, at a false alarm of 1e-6."""
    mechanism = hs.TopK(3, counted(), epsilon=1.0, monotone=True)
    scores = np.zeros(50)
    scores[:3] = mechanism.accuracy(0.2, 50) + 1
    wrong = sum(set(mechanism.draw(scores).tolist()) != {0, 1, 2} for _ in range(200))
    assert stats.binomtest(wrong, 200, 0.2, alternative="greater").pvalue > 1e-6


def test_far_and_huge_scores():
    """Scores at the ends of the doubles are chosen from as others are."""
    mechanism = hs.TopK(2, counted(1e-300), epsilon=1.0)
    assert sorted(mechanism.draw([1e308, -1e308, 1e307, 0.0]).tolist()) == [0, 2]
    assert hs.TopK(2, counted(1e300), epsilon=1.0).draw([1.7e308, -1.7e308, 1e308]).size == 2


def test_steps_are_counted_from_the_best_score_exactly():
    """A common shift of any size cancels, and no difference is cut."""
    near = np.array([0.0, 3.0, 1.0, -2.0])
    for shift in (0.0, 2.0**40, 2.0**52, 2.0**60):
        wanted = np.floor((near + shift) * 2)
        assert top.list_steps(near + shift, -1).tolist() == (wanted - wanted.max()).tolist()
    huge = np.array([2.0**900, 2.0**900 * (1 - 2.0**-53), -(2.0**900)])
    for grid in (840, 837):
        far = 2 ** (901 - grid)
        assert top.list_steps(huge, grid).tolist() == [0, -(2 ** (847 - grid)), -far]


@pytest.mark.parametrize("factor", [1.0, 1e5, 1e290])
def test_scores_that_are_far_ahead_keep_their_order(factor):
    """Those beyond 2**31 sensitivities from the last place, too."""
    scores = np.array([3e9, 4e9, 5e9, 0.0, -1.0]) * factor
    for k, wanted in ((1, [2]), (2, [2, 1]), (4, [2, 1, 0, 3])):
        best = hs.TopK(k, counted(), epsilon=100.0)
        assert all(best.draw(scores).tolist() == wanted for _ in range(8))


def test_losses_are_cut_at_a_constant():
    """A loss beyond 2**61 steps counts as that many, in 64 bits."""
    ladder = joint.list_losses(np.array([1 << 80, 5, 0], dtype=object), 2)
    assert ladder.losses.tolist() == [0, 5, 1 << 61]
    assert ladder.within.tolist() == [[1, 1, 3], [2, 3, 3]]


@pytest.mark.parametrize(
    "scores", [[1.0], [math.nan, 1.0, 2.0], [[1.0, 2.0], [3.0, 4.0]], ["a", "b"], []]
)
def test_scores_that_cannot_be_used_are_refused(scores):
    """Too few, not finite, of another shape or kind."""
    with pytest.raises(ParameterError):
        hs.TopK(2, counted(), epsilon=1.0).draw(scores)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"k": 0}, {"k": 1.5}, {"k": 2**15}, {"epsilon": 0.0}, {"epsilon": 1e-70}),
        {"monotone": 1},
        {"sensitivity": counted(neighbours="replace-one"), "monotone": True},
        {"sensitivity": counted(norm="range"), "monotone": True},
    ],
)
def test_parameters_that_cannot_be_used_are_refused(wrong):
    """One wrong parameter each."""
    with pytest.raises(ParameterError):
        hs.TopK(**{"k": 2, "sensitivity": counted(), "epsilon": 1.0} | wrong)


def test_norms_and_zero():
    """As for the exponential mechanism."""
    with pytest.raises(WrongNorm):
        hs.TopK(2, counted(norm="l1"), epsilon=1.0)
    with pytest.raises(ZeroSensitivity):
        hs.TopK(2, counted(0.0), epsilon=1.0)


def visits(rows):
    return np.bincount(rows.astype(np.int64), minlength=6).astype(np.float64)


def test_it_releases_stores_and_certifies(tmp_path):
    """Indices come back from the ledger as they were; the certificate is read and verified."""
    rows = np.repeat([4.0, 1.0, 0.0], [900, 500, 100])
    with hs.Ledger(f"sqlite:///{tmp_path}/b.db") as book:
        book.open_budget("b", hs.Guarantee(epsilon=1.0, neighbours="add-remove"), method="basic")
        mechanism = hs.TopK(2, counted(), epsilon=0.8, monotone=True)
        first = hs.release(visits, rows, mechanism, book, budget="b", key="top")
        again = hs.release(visits, rows, mechanism, book, budget="b", key="top")
    assert first.value.dtype == np.int64
    assert first.value.tolist() == again.value.tolist() == [4, 1]
    known = first.certificate
    assert hs.Certificate.from_json(known.to_json()) == known
    assert hs.verify(known).reproduced
    assert "each chosen candidate's score is within" in known.explain()
    assert mechanism.loss.delta(0.8) == 0


def test_too_few_candidates_are_refused_before_the_charge_where_that_is_public():
    """A sampled function tells how many numbers it answers with."""
    sampled = hs.sample_sensitivity(
        lambda rows: [rows.sum(), 1.0],
        hs.populations.Uniform(low=0, high=1),
        rows=5,
        norm="sup",
        seed=1,
    )
    with pytest.raises(ParameterError, match="3 candidates or more"):
        hs.release(sampled.sampling.called, np.zeros(5), hs.TopK(3, sampled, epsilon=1.0))
    with pytest.raises(BadFunction):
        hs.release(visits, np.zeros(5), hs.TopK(9, counted(), epsilon=1.0))


@pytest.mark.parametrize(("k", "candidates"), [(1, 2), (3, 3), (5, 1000)])
@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-9])
@pytest.mark.parametrize(("norm", "monotone"), [("sup", False), ("sup", True), ("range", False)])
def test_the_error_that_is_asked_for_is_kept_and_no_epsilon_is_wasted(
    k, candidates, beta, norm, monotone
):
    """for_accuracy reaches the error, and a hair less of epsilon does not."""
    moved = counted(2.5, norm)
    ask = {"beta": beta, "dims": candidates, "monotone": monotone}
    for error in (1e-4, 1.0, 1e5):
        made = hs.TopK.for_accuracy(k, moved, error=error, **ask)
        assert (made.k, made.monotone) == (k, monotone)
        assert made.accuracy(beta, candidates) <= error
        less = hs.TopK(k, moved, epsilon=made.epsilon * (1 - 1e-9), monotone=monotone)
        assert less.accuracy(beta, candidates) > error


def test_an_error_below_the_step_of_the_grid_is_refused():
    """Scores closer than a step are not told apart."""
    with pytest.raises(ParameterError, match="no epsilon reaches"):
        hs.TopK.for_accuracy(2, counted(), error=2.0**-31)


@pytest.mark.parametrize("kind", list(MECHANISMS))
@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_error_of_choosing_one_by_one(kind, k):
    """That of a choice of one at epsilon / k, which keeps its bound in all rounds together."""
    together = MECHANISMS[kind](k)
    one = MECHANISMS[kind](1)
    one = hs.TopK(1, one.sensitivity, epsilon=1.0 / k, monotone=one.monotone)
    for beta, dims in ((0.05, 10), (0.01, 2000)):
        found = together.accuracy_one_by_one(beta, dims)
        assert found == pytest.approx(one.accuracy(beta / k, dims), rel=1e-6)
        if k == 1:
            assert found == pytest.approx(together.accuracy(beta, dims), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "gap", "together", "one_by_one"), [(5, 60, 0.5, 4.5), (2, 25, 0.5, 1.7)]
)
def test_on_a_flat_tail_one_by_one_is_better(k, gap, together, one_by_one):
    """As the pages say: of the candidates that are ahead, one way finds few, the other most."""
    scores = np.r_[np.full(k, 500.0 + gap), np.full(2000 - k, 500.0)]
    joint = hs.TopK(k, counted(), epsilon=1.0, monotone=True)
    single = hs.TopK(1, counted(), epsilon=1.0 / k, monotone=True)
    found = [0, 0]
    for _ in range(40):
        found[0] += (joint.draw(scores) < k).sum()
        left = np.arange(2000)
        for _ in range(k):
            place = single.draw(scores[left])[0]
            found[1] += left[place] < k
            left = np.delete(left, place)
    assert found[0] / 40 < together
    assert found[1] / 40 > one_by_one
    assert joint.accuracy_one_by_one(dims=2000) < joint.accuracy(dims=2000)
