"""Noisy max with its gap: exact losses by enumeration, the rule for ties, draws, release."""

import itertools
import json
import math

import numpy as np
import pytest
from scipy import integrate, stats
from tests.commands import ended
from tests.frequencies import pvalue_of_two_samples
from tests.sparse_vector_laws import two_sided

import hushed as hs
from hushed.errors import ParameterError
from hushed.mechanisms import _noisy_max as noisy_max

REACH = 12  # gaps that are enumerated


def counted(value=1.0, norm="sup", neighbours="add-remove"):
    return hs.proven_sensitivity(value, norm, neighbours=neighbours, argument="by assumption")


def law(scores, scale):
    """Log probability of every index with every gap up to REACH, on integers.

    The level to reach is the largest of the others, one more for those that come first.
    """
    at, mass = two_sided(scale)
    below = np.cumsum(mass)
    levels = np.arange(at[0] - 10, at[-1] + 10)

    def cdf(score):  # P(score + noise <= level)
        place = levels - score - at[0]
        inside = np.clip(place, 0, at.size - 1)
        return np.where(place < 0, 0.0, np.where(place >= at.size, 1.0, below[inside]))

    found = []
    for i, own in enumerate(scores):
        others = np.ones(levels.size)
        for j, score in enumerate(scores):
            if j != i:
                others = others * cdf(score + (j < i))
        level = np.diff(others, prepend=0.0)
        for gap in range(REACH):
            chance = np.tanh(1 / (2 * scale)) * np.exp(-np.abs(levels + gap - own) / scale)
            found.append((level * chance).sum())
    return np.log(np.array(found))


CASES = {
    "sup": (counted(neighbours="replace-one"), False, (-1, 0, 1)),
    "monotone": (counted(), True, (0, 1)),
}


@pytest.mark.slow_cases("3-0.999-sup")
@pytest.mark.parametrize("case", list(CASES))
@pytest.mark.parametrize(("count", "near"), [(2, 0.85), (3, 0.999)])
def test_index_and_gap_lose_epsilon_and_no_more(monkeypatch, case, count, near):
    """All scores of 0 to 2, all movements, gaps up to 12: at most epsilon, and nearly all of it."""
    monkeypatch.setattr(noisy_max, "NOISY_MAX_BITS", 0)
    sensitivity, monotone, moves = CASES[case]
    scale = float(hs.NoisyMax(sensitivity, epsilon=1.0, monotone=monotone).noise_scale)
    worst = 0.0
    for scores in itertools.product(range(3), repeat=count):
        one = law(scores, scale)
        for shift in itertools.product(moves, repeat=count):
            other = law([a + b for a, b in zip(scores, shift, strict=True)], scale)
            worst = max(worst, np.abs(one - other).max())
    assert near < worst <= 1 + 1e-9


def test_for_two_candidates_all_pairs_of_noise_give_the_same_law():
    """Summed over both draws, the second is ahead by g as often as it has the gap g - 1."""
    plain = {}
    for scores in ((0, 0), (1, -1)):
        at, mass = two_sided(2.0)
        joint = mass[:, None] * mass[None, :]
        gap = (scores[1] + at[None, :]) - (scores[0] + at[:, None])
        plain[scores] = [joint[gap == g].sum() for g in range(1, 6)]  # the second is ahead by g
    with_step = law((0, 0), 2.0)[REACH : REACH + 5] - law((1, -1), 2.0)[REACH : REACH + 5]
    told = np.log(plain[0, 0]) - np.log(plain[1, -1])
    assert np.allclose(told, with_step)  # ahead by g is a gap of g - 1 for the second
    assert np.abs(with_step).max() <= 1 + 1e-12


@pytest.mark.parametrize(
    ("noise", "index", "gap"),
    [
        ([0, 0, 0], 1, 4),
        ([5, 0, 0], 0, 0),
        ([6, 0, 0], 0, 1),
        ([4, 0, 1], 1, 0),
        ([0, -5, 5], 2, 4),
    ],
)
def test_ties_go_to_the_first_and_count_in_the_gap(monkeypatch, noise, index, gap):
    """Scores 0, 5, 0 in steps: a later candidate has to be ahead by one step."""
    mechanism = hs.NoisyMax(counted(), epsilon=1.0, monotone=True)
    monkeypatch.setattr(
        noisy_max, "add_noise", lambda steps, scale: steps + np.array(noise, dtype=np.int64)
    )
    step = 2.0**mechanism.grid
    told = mechanism.draw([0.0, 5 * step, 0.0])
    assert (told.index, told.gap / step) == (index, gap)


@pytest.mark.slow
def test_draws_follow_the_law():
    """4,000 draws with noise of 2 units: the index, and the gap."""
    mechanism = hs.NoisyMax(counted(), epsilon=0.5, monotone=True)
    scores = np.array([0.0, 1.0, -1.0])
    told = [mechanism.draw(scores) for _ in range(4000)]
    rng = np.random.default_rng(4)
    other = np.sort(scores + rng.laplace(scale=2.0, size=(400_000, 3)), axis=1)
    gaps = other[:, 2] - other[:, 1]
    assert stats.ks_2samp([each.gap for each in told], gaps, method="asymp").pvalue > 1e-6
    first = (scores + rng.laplace(scale=2.0, size=(400_000, 3))).argmax(axis=1)
    counts = np.bincount([each.index for each in told], minlength=3)
    assert pvalue_of_two_samples(counts, np.bincount(first, minlength=3)) > 1e-6


def test_wide_noise_is_added_in_whole_numbers(monkeypatch):
    """A draw beyond 64 bits is not cut off."""
    from hushed.noise._vectors import Draws

    wide = Draws(values=np.zeros(3, dtype=np.int64), wide={1: 1 << 70})
    monkeypatch.setattr(noisy_max, "laplace_draws", lambda words, scale, count: wide)
    assert noisy_max.add_noise(np.array([1, 2, 3]), noisy_max.Fraction(1)).tolist() == [
        1,
        2 + 2**70,
        3,
    ]


@pytest.mark.parametrize("ahead", [1e12, 1e14, 1e300])
def test_a_gap_of_any_size_is_told(ahead):
    """The noise exceeds 100 with a chance of e**-50."""
    told = hs.NoisyMax(counted(), epsilon=1.0).draw([0.0, ahead, 1.0])
    assert told.index == 1
    assert told.gap == pytest.approx(ahead, abs=100, rel=1e-15)


@pytest.mark.parametrize("scores", [[1.0], [math.nan, 1.0], [[1.0, 2.0]], ["a", "b"]])
def test_scores_that_cannot_be_used_are_refused(scores):
    """Too few, not finite, of another shape or kind."""
    with pytest.raises(ParameterError):
        hs.NoisyMax(counted(), epsilon=1.0).draw(scores)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0.0},
        {"epsilon": 1e-20},
        {"monotone": True, "sensitivity": counted(norm="range")},
    ],
)
def test_parameters_that_cannot_be_used_are_refused(wrong):
    """One wrong parameter each."""
    with pytest.raises(ParameterError):
        hs.NoisyMax(**{"sensitivity": counted(), "epsilon": 1.0} | wrong)


def test_it_releases_stores_and_certifies(tmp_path):
    """Index and gap come back from the ledger; the certificate is read and verified."""
    mechanism = hs.NoisyMax(counted(), epsilon=0.8, monotone=True)

    def visits(rows):
        return np.bincount(rows.astype(np.int64), minlength=6).astype(np.float64)

    rows = np.repeat([4.0, 1.0, 0.0], [900, 500, 100])
    with hs.Ledger(f"sqlite:///{tmp_path}/b.db") as book:
        book.open_budget("b", hs.Guarantee(epsilon=1.0, neighbours="add-remove"), method="basic")
        first = hs.release(visits, rows, mechanism, book, budget="b", key="top")
        again = hs.release(visits, rows, mechanism, book, budget="b", key="top")
        told = ended(
            "ledger", "answer", f"sqlite:///{tmp_path}/b.db", "b", "top", "--json", cwd=tmp_path
        )
    assert first.value == again.value
    assert json.loads(told.stdout)["value"] == {
        "index": first.value.index,
        "gap": first.value.gap,
    }
    assert first.value.index == 4
    assert abs(first.value.gap - 400) < 100
    known = first.certificate
    assert hs.Certificate.from_json(known.to_json()) == known
    assert hs.verify(known).reproduced
    assert "Laplace noise of scale" in known.explain()


def test_accuracy_is_an_upper_bound():
    """A candidate further behind than the bound is chosen in at most 5 % of 300 draws."""
    mechanism = hs.NoisyMax(counted(), epsilon=1.0, monotone=True)
    scores = np.zeros(20)
    scores[7] = mechanism.accuracy(0.05, 20)
    wrong = sum(mechanism.draw(scores).index != 7 for _ in range(300))
    assert stats.binomtest(wrong, 300, 0.05, alternative="greater").pvalue > 1e-6


@pytest.mark.parametrize("beta", [0.4, 0.05, 1e-6, 1e-300])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 30.0])
def test_accuracy_of_two_is_that_of_the_law_of_the_noise(epsilon, beta):
    """The chance of a lead that large, integrated over the Laplace law of SciPy."""
    mechanism = hs.NoisyMax(counted(), epsilon=epsilon)
    lead = (mechanism.accuracy(beta, 2) - 2.0**mechanism.grid) / mechanism.scale
    noise = stats.laplace

    def chance(x: float) -> float:
        return math.exp(noise.logpdf(x) + noise.logsf(lead + x) - math.log(beta))

    found = integrate.quad(chance, -lead - 40, 40, points=[-lead, 0.0], limit=500)[0]
    assert 1 - 1e-4 < found <= 1


@pytest.mark.slow
def test_accuracy_is_met_by_one_candidate_that_far_behind():
    """Two candidates: the worse one wins in 5 % of draws, not in 2 %, and not in 10 %."""
    mechanism = hs.NoisyMax(counted(), epsilon=1.0)
    scores = [0.0, mechanism.accuracy(0.05, 2)]
    wrong = sum(mechanism.draw(scores).index == 0 for _ in range(4000))
    assert stats.binomtest(wrong, 4000, 0.05).pvalue > 1e-6


@pytest.mark.parametrize("candidates", [2, 7, 1000])
@pytest.mark.parametrize("beta", [0.4, 0.05, 1e-9])
@pytest.mark.parametrize(("norm", "monotone"), [("sup", False), ("sup", True), ("range", False)])
def test_the_error_that_is_asked_for_is_kept_and_no_epsilon_is_wasted(
    candidates, beta, norm, monotone
):
    """for_accuracy reaches the error, and a little less of epsilon does not."""
    moved = counted(2.5, norm)
    ask = {"beta": beta, "dims": candidates, "monotone": monotone}
    for error in (1e-4, 1.0, 1e5):
        made = hs.NoisyMax.for_accuracy(moved, error=error, **ask)
        assert made.accuracy(beta, candidates) <= error
        less = hs.NoisyMax(moved, epsilon=made.epsilon * (1 - 1e-5), monotone=monotone)
        assert less.accuracy(beta, candidates) > error


def test_the_smallest_epsilon_that_can_be_drawn_is_found():
    """A huge error asks for less epsilon than the noise reaches; what is drawn is better."""
    made = hs.NoisyMax.for_accuracy(counted(), error=1e300)
    assert made.epsilon < 1e-9
    assert made.accuracy(0.05, 2) <= 1e300
    with pytest.raises(ParameterError, match="error must be"):
        hs.NoisyMax.for_accuracy(counted(), error=0.0)
