"""How often private pairs move further: what is counted, what it costs, how sure the bounds are."""

import numpy as np
import pytest
from scipy import stats

import hushed as hs
from hushed.errors import BadFunction, BadRows, KeyInUse, Overspent, ParameterError
from hushed.fitting._moving_report import NoisyCount

SURE = 1e6  # so much epsilon that there is no noise to speak of
UNIT = hs.populations.Uniform(low=0, high=1)


def largest(rows):
    return float(np.max(rows))


def picky(rows):
    if rows.max() > 2:
        raise ValueError(rows.max())
    return float(rows.mean())


@pytest.fixture(scope="module")
def sampled():
    return hs.sample_sensitivity(largest, UNIT, rows=10, workers=1, symmetric=True)


@pytest.mark.slow
def test_pairs_that_move_further_are_counted(sampled):
    """None of equal rows; those with a lonely 1 as one of the two exchanged rows; bounds around."""
    still = hs.check_movement(largest, np.full(1100, 0.5), sampled, epsilon=SURE)
    assert (still.pairs, still.rows, round(still.moved)) == (100, 10, 0)
    # One time in twenty noise above 0 is held for a part of a pair: no bound is that of one pair.
    assert 0 <= still.share_at_least < stats.beta.ppf(0.05, 1, 100)
    # Noise below 0 and noise above 0 are told apart: within the bounds for 5 % and for 10 %.
    assert stats.beta.ppf(0.9, 1, 100) - 1e-6 < still.share_at_most
    assert still.share_at_most < stats.beta.ppf(0.95, 1, 100) + 1e-6
    lonely = np.zeros(1100)
    lonely[:50] = 1
    found = 0
    for seed in range(12):  # each 1 is one of the two with chance 2 in 11, and mostly alone
        made = hs.check_movement(largest, lonely, sampled, epsilon=SURE, seed=seed)
        assert made.moved == pytest.approx(round(made.moved), abs=1e-3)
        found += round(made.moved)
    # A pair moves if one of the two is 1, the other and the nine that stay are 0.
    share = 2 * stats.hypergeom.pmf(1, 1100, 50, 11) / 11
    low, high = stats.poisson.interval(1 - 1e-6, 1200 * share)
    assert low <= found <= high


@pytest.mark.slow
def test_a_replaced_row_moves_the_count_by_one_at_most(sampled):
    """Every row of a table of three pairs, and of two that are in none, replaced by a 1."""
    rows = np.zeros(35)
    before = round(hs.check_movement(largest, rows, sampled, epsilon=SURE).moved)
    seen = []
    for place in range(35):
        other = rows.copy()
        other[place] = 1.0
        after = round(hs.check_movement(largest, other, sampled, epsilon=SURE).moved)
        seen.append(after - before)
    assert sorted(seen) == [0] * 29 + [1] * 6


def test_pairs_on_which_the_function_fails_move_further():
    """Nobody learns from the kind of an answer that there is such a row."""
    s = hs.sample_sensitivity(picky, UNIT, rows=10, workers=1)
    rows = np.full(110, 0.5)
    rows[0] = 9.0
    made = hs.check_movement(picky, rows, s, epsilon=SURE, outside="allow")
    assert round(made.moved) == 1
    assert round(hs.check_movement(picky, rows, s, epsilon=SURE).moved) in (0, 1)


@pytest.mark.slow
def test_rows_that_move_more_than_gamma_allows_contradict(sampled):
    """Rows of 0 and 1 make a maximum jump; words, figures and the trip through JSON."""
    rows = (np.random.default_rng(2).random(55_000) < 0.1).astype(float)
    made = hs.check_movement(largest, rows, sampled, epsilon=1.0)
    assert made.verdict == "contradicted"
    assert made.p_value < 0.05 < made.share_at_least < 0.07 < made.share_at_most + 0.005
    text = made.explain()
    assert text.startswith("contradicted (p = ")
    assert "tables of 10 rows, and of no other size" in text
    assert hs.MovementCheck.from_json(made.to_json()) == made
    with pytest.raises(ParameterError, match="not a movement check"):
        hs.MovementCheck.from_json("[]")


def test_a_confidence_below_1_is_not_told_as_1(sampled):
    """Rounded down."""
    rows = np.random.default_rng(1).uniform(size=110)
    told = hs.check_movement(largest, rows, sampled, epsilon=1.0, confidence=1 - 1e-9).explain()
    assert "with confidence 0.999999." in told


def test_rows_of_the_population_do_not_contradict(sampled):
    """At 500 pairs the share is bounded near gamma."""
    rows = np.random.default_rng(2).uniform(size=5500)
    made = hs.check_movement(largest, rows, sampled, epsilon=1.0)
    assert made.verdict == "not contradicted"
    assert made.share_at_most < 0.1
    assert hs.verify(made.certificate).reproduced
    assert made.guarantee == hs.Guarantee(epsilon=1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("pairs", "share", "scale"), [(20, 0.5, 3.0), (40, 0.05, 0.3)])
def test_the_bounds_of_the_share_hold_as_often_as_they_say(pairs, share, scale):
    """Counts and noise drawn by another library: each bound fails 1 time in 10 at most."""
    rng = np.random.default_rng(9)
    law = NoisyCount(pairs=pairs, scale=scale, step=2.0**-40)
    seen = rng.binomial(pairs, share, size=60) + rng.laplace(scale=scale, size=60)
    above = sum(law.share_at_most(float(each), 0.1) < share for each in seen)
    below = sum(law.share_at_least(float(each), 0.1) > share for each in seen)
    high = stats.binom.ppf(1 - 1e-6, 60, 0.1)
    assert 1 <= above <= high  # nor is it never wrong
    assert 1 <= below <= high


@pytest.mark.parametrize("scale", [0.3, 2.0, 9.0])
def test_probabilities_are_those_of_the_noise_on_its_grid_a_step_aside(scale):
    """All terms of binomial law and discrete Laplace noise, added: never below, hardly above."""
    law = NoisyCount(pairs=8, scale=scale, step=1.0)
    grid = np.arange(-400, 401)
    noise = np.tanh(1 / (2 * scale)) * np.exp(-np.abs(grid) / scale)
    whole = np.convolve(stats.binom.pmf(np.arange(9), 8, 0.3), noise)  # from -400 to 408
    for seen in range(-20, 30):
        below, above = whole[: seen + 401].sum(), whole[seen + 400 :].sum()
        assert below <= law.at_most(seen, 0.3) + 1e-12
        assert law.at_most(seen, 0.3) <= whole[: seen + 402].sum() + 1e-12
        assert above <= law.at_least(seen, 0.3) + 1e-12
        assert law.at_least(seen, 0.3) <= whole[seen + 399 :].sum() + 1e-12


@pytest.mark.parametrize("seen", [0, 3, 20])
def test_without_noise_the_bounds_are_those_of_clopper_and_pearson(seen):
    """Quantiles of the beta law."""
    law = NoisyCount(pairs=20, scale=1e-4, step=1e-12)
    above = stats.beta.ppf(0.95, seen + 1, 20 - seen) if seen < 20 else 1.0
    below = stats.beta.ppf(0.05, seen, 21 - seen) if seen else 0.0
    assert law.share_at_most(seen + 0.01, 0.05) == pytest.approx(above, abs=1e-6)
    assert law.share_at_least(seen - 0.01, 0.05) == pytest.approx(below, abs=1e-6)


@pytest.fixture
def books(tmp_path):
    """A ledger with a budget of epsilon 1."""
    made = hs.Ledger(f"sqlite:///{tmp_path}/books.db")
    made.open_budget("b", hs.Guarantee(epsilon=1.0))
    yield made
    made.close()


def test_a_check_is_charged_and_stored(sampled, books):
    """Asked again under its key it is the same, for nothing; beyond the budget nothing is asked."""
    rows = np.random.default_rng(2).uniform(size=220)
    asked = {"epsilon": 0.6, "ledger": books, "budget": "b"}
    first = hs.check_movement(largest, rows, sampled, key="moves", **asked)
    assert hs.check_movement(largest, rows, sampled, key="moves", **asked) == first
    with pytest.raises(KeyInUse):  # another gamma
        hs.check_movement(largest, rows, sampled.shifted(1e-6), key="moves", **asked)
    assert books.balance("b").spent.epsilon == 0.6
    with pytest.raises(Overspent):
        hs.check_movement(largest, rows, sampled, **asked)


def test_what_is_refused_is_unpaid(sampled, books):
    """Another function, a promise that is about no single pair, too few rows."""
    rows = np.random.default_rng(2).uniform(size=220)
    asked = {"epsilon": 0.6, "ledger": books, "budget": "b"}
    with pytest.raises(BadFunction, match="another function"):
        hs.check_movement(picky, rows, sampled, **asked)
    with pytest.raises(BadRows, match="a pair takes 11"):
        hs.check_movement(largest, rows[:10], sampled, **asked)

    def carrying(part):
        return largest(part) + rows[0]

    carried = hs.sample_sensitivity(carrying, UNIT, rows=10, workers=1)
    with pytest.raises(BadFunction, match="carries the private rows"):
        hs.check_movement(carrying, rows, carried, **asked)
    proven = hs.proven_sensitivity(1.0, argument="one row in [0, 1]")
    with pytest.raises(ParameterError, match="a proven one"):
        hs.check_movement(largest, rows, proven, **asked)
    for options, cure in (
        ({"calibration": "marginal"}, "training-conditional"),
        ({"protect": "everyone"}, "protect='record'"),
        ({"position": "worst"}, "position='random'"),
        ({"distance": 2}, "one replaced row"),
    ):
        s = hs.sample_sensitivity(largest, UNIT, rows=10, workers=1, **options)
        with pytest.raises(ParameterError, match=cure):
            hs.check_movement(largest, rows, s, **asked)
    assert books.balance("b").spent.epsilon == 0


@pytest.mark.parametrize("promise", ["table", "given-the-rest"])
def test_what_is_promised_of_public_rows_alone_is_not_said_to_fail(promise):
    """Private rows say whether such a promise may be carried over to them; the record keeps it."""
    public = np.random.default_rng(0).uniform(size=4000)
    table = hs.populations.PublicTable(public, promise=promise)
    s = hs.sample_sensitivity(np.std, table, rows=8, gamma=0.2, symmetric=True)
    found = hs.check_movement(np.std, public[::-1].copy(), s, epsilon=5.0)
    assert found.promise == promise
    assert "not whether it holds" in " ".join(found.explain().split())
    assert hs.MovementCheck.from_json(found.to_json()) == found


def test_a_mixture_of_public_rows_is_not_said_to_fail():
    """It draws from them again and again: so do the words of its certificate say."""
    public = hs.populations.PublicTable(np.random.default_rng(2).normal(size=40), promise="table")
    mixed = hs.populations.Contaminated(public, hs.populations.Exponential(), share=0.1)
    model = hs.populations.fitted(hs.populations.PublicTable(np.ones((40, 1))))
    for population, promise in ((mixed, "table"), (model, "population")):
        s = hs.sample_sensitivity(np.mean, population, rows=5, gamma=0.2, workers=1)
        rows = population.draw(np.random.default_rng(3), 600)
        found = hs.check_movement(np.mean, rows, s, epsilon=SURE)
        assert found.promise == promise
        assert ("public ones that are drawn again and again" in found.explain()) == (
            promise == "table"
        )
        assert hs.MovementCheck.from_json(found.to_json()) == found
