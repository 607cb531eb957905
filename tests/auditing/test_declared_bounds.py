"""Declared sensitivities on a population: shares, verdicts, the worst pair."""

import json

import numpy as np
import pytest
from scipy import stats
from tests.commands import ended

import hushed as hs
from hushed.errors import BadFunction, ParameterError, RandomFunction

UNIT = hs.populations.Uniform(low=0, high=1)


def movements_of(rows, pairs, seed=0):
    """Movements of a sum, found apart from the test."""
    seen = []

    def note(table):
        seen.append(table.sum())
        return table.sum()

    hs.test_sensitivity(note, UNIT, rows, bound=9.0, pairs=pairs, seed=seed)
    drawn = np.array(seen[: 2 * pairs]).reshape(-1, 2)  # the worst pair is asked once more
    return np.sort(np.abs(np.diff(drawn, axis=1)).ravel())


@pytest.mark.slow
def test_three_of_a_thousand_are_the_published_interval():
    """Clopper and Pearson: 3 of 1,000 is a share between 0.00062 and 0.00874 at 95 % in all."""
    between = movements_of(3, 1000)[-4:-2].mean()
    found = hs.test_sensitivity(np.sum, UNIT, 3, bound=between, pairs=1000, confidence=0.975)
    assert found.violations == 3
    assert found.share_low == pytest.approx(0.00062, abs=5e-6)
    assert found.share_high == pytest.approx(0.00874, abs=5e-6)
    assert found.verdict == "refuted"


@pytest.mark.slow_cases("0.001-0.95-2995")
@pytest.mark.parametrize(
    ("gamma", "confidence", "pairs"),
    [(0.05, 0.95, 59), (0.05, 0.99, 90), (0.01, 0.95, 299), (0.001, 0.95, 2995)],
)
def test_the_fewest_pairs_that_bound_a_share(gamma, confidence, pairs):
    """Without a violation 59 pairs bound the share by 0.05, and 58 do not."""
    for drawn, enough in ((pairs, True), (pairs - 1, False)):
        found = hs.test_sensitivity(np.sum, UNIT, 2, bound=1.0, pairs=drawn, confidence=confidence)
        assert found.violations == 0
        assert found.verdict == "not refuted"
        assert (found.share_high <= gamma) is enough
        assert "not verified" in found.explain()


@pytest.mark.slow
def test_bounds_on_the_share_hold_as_often_as_said():
    """A sum moves by more than 1/2 with probability 1/4; each bound misses it in 5 % at most."""
    tests = 120
    found = [
        hs.test_sensitivity(np.sum, UNIT, 2, bound=0.5, pairs=40, seed=i) for i in range(tests)
    ]
    often = stats.binom.ppf(1 - 1e-6, tests, 0.05)
    assert sum(each.share_low > 0.25 for each in found) <= often
    assert sum(each.share_high < 0.25 for each in found) <= often
    few = sum(each.share_low > 0.20 for each in found)  # so that a bound of 0 would not pass
    assert few > 0
    assert sum(each.violations for each in found) / (40 * tests) == pytest.approx(0.25, abs=0.04)


@pytest.mark.slow
def test_a_share_is_refuted_only_where_the_bound_exceeds_it():
    """60 of 1,000 contradicts a share of 0.04 and not one of 0.05; one pair contradicts 0."""
    between = movements_of(3, 1000)[-61:-59].mean()
    found = [
        hs.test_sensitivity(
            np.sum, UNIT, 3, bound=between, pairs=1000, gamma=gamma, confidence=0.975
        )
        for gamma in (0.0, 0.04, 0.05)
    ]
    assert [each.verdict for each in found] == ["refuted", "refuted", "not refuted"]
    for each in found:
        assert each.violations == 60
        ends = each.share_low, each.share_high
        assert ends == pytest.approx((0.0461, 0.0766), abs=5e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("odd", "most"), [(1e-6, 0.051), (1e-5, 0.060), (5e-5, 0.099), (1e-4, 0.145), (1e-3, 0.683)]
)
def test_a_few_odd_rows_enlarge_gamma_as_the_page_says(odd, most):
    """A sum that moves further wherever one of n + 1 rows is odd comes close to the bound.

    False alarms: bounds that hold with 1 - 1e-6 each.
    """
    gamma, rows = 0.05, 1000
    far = 1 - gamma**0.5  # two uniform rows lie further apart with probability gamma
    assert most == pytest.approx(gamma + 1 - (1 - odd) ** (rows + 1), abs=6e-4)

    def jumpy(table):
        return float(table.sum() * (1e6 if table.max() > 1 else 1.0))

    mixed = hs.populations.Contaminated(UNIT, hs.populations.Uniform(low=2, high=3), share=odd)
    found = hs.test_sensitivity(
        jumpy, mixed, rows, bound=far, pairs=1000, gamma=gamma, confidence=1 - 1e-6
    )
    none = (1 - odd) ** (rows + 1)
    assert found.share_low <= most
    assert found.share_low <= 1 - none + none * gamma <= found.share_high


def test_the_worst_pair_is_the_witness():
    """It moves the answer as far as stated, and differs in one row."""
    found = hs.test_sensitivity(np.max, UNIT, 5, bound=0.01, pairs=50)
    moved = abs(found.worst.rows.max() - found.worst.neighbour.max())
    assert moved == found.largest
    assert (found.worst.rows != found.worst.neighbour).sum() == 1
    assert found.worst.name in found.explain()


@pytest.mark.parametrize(("norm", "bound"), [("l1", 2), ("l2", 2**0.5), ("sup", 1), ("range", 2)])
def test_every_norm_has_its_own_movement(norm, bound):
    """A row that moves one number up and another down, in each of the norms."""
    source = hs.populations.Simulator(
        lambda rng, count: rng.integers(0, 2, count).astype(float), name="coins"
    )

    def both(rows):
        return np.array([rows.sum(), -rows.sum()])

    found = hs.test_sensitivity(both, source, 4, bound=bound, norm=norm, pairs=60, tolerance=1e-12)
    assert (found.violations, found.largest) == (0, pytest.approx(bound))
    less = hs.test_sensitivity(both, source, 4, bound=0.99 * bound, norm=norm, pairs=60)
    assert less.verdict == "refuted"


def test_an_answer_that_fails_on_one_side_moves_infinitely_far():
    """A failure shows in the output; a function that always fails is none."""

    def shy(rows):
        if rows.max() > 0.9:
            raise ValueError
        return 0.0

    found = hs.test_sensitivity(shy, UNIT, 3, bound=5.0, pairs=100)
    assert found.verdict == "refuted"
    assert found.largest == np.inf
    assert found.to_dict()["largest"] is None
    with pytest.raises(BadFunction):
        hs.test_sensitivity(lambda rows: rows[9], UNIT, 3, bound=1.0, pairs=5)


def test_pairs_without_any_answer_are_told():
    """A function that fails on both tables of most pairs has been tested on the others alone."""

    def rarely(rows):
        if rows[0] > 0.2:
            raise ValueError
        return rows.mean()

    found = hs.test_sensitivity(rarely, UNIT, 5, bound=1e9, gamma=0.5)
    assert 600 < found.unanswered < 1000
    assert found.to_dict()["unanswered"] == found.unanswered
    assert f"On {found.unanswered} of the pairs the function failed" in found.explain()
    assert "failed" not in hs.test_sensitivity(np.mean, UNIT, 5, bound=1.0, pairs=20).explain()


def test_a_function_with_noise_of_its_own_is_not_accused():
    """Its movement is that of its noise, and no pair is a fact; with a fixed seed it has one."""

    def noisy(rows):
        return rows.mean() + np.random.rand()

    with pytest.raises(RandomFunction, match="two answers"):
        hs.test_sensitivity(noisy, UNIT, 5, bound=0.2, pairs=20)
    with pytest.raises(RandomFunction, match="two answers"):
        hs.check_sensitivity(noisy, 0.2, low=0, high=1, rows=5, tries=20)
    assert not hs.test_sensitivity(hs.fixed_seed(noisy), UNIT, 5, bound=0.21, pairs=20).violations


def test_a_sampled_bound_brings_its_gamma():
    """A right bound for all but 0.4 of pairs is not refuted by those that it leaves out."""
    sampled = hs.sample_sensitivity(np.mean, UNIT, rows=5, gamma=0.4)
    found = hs.test_sensitivity(np.mean, UNIT, 5, bound=sampled, pairs=500)
    assert found.violations > 0
    assert (found.verdict, found.gamma) == ("not refuted", sampled.gamma)
    number = hs.test_sensitivity(np.mean, UNIT, 5, bound=sampled.value, pairs=500)
    assert (number.verdict, number.gamma) == ("refuted", 0.0)
    with pytest.raises(ParameterError, match=r"hs\.test_sensitivity"):
        hs.check_sensitivity(np.mean, sampled, low=0, high=1, rows=5)


@pytest.mark.parametrize(
    ("rows", "options", "match"),
    [
        (4, {}, "tables of 5 rows"),
        (5, {"distance": 2}, "2 rows that change at once"),
        (5, {"calibration": "marginal"}, "marginal"),
        (7, {"rows": [5, 6], "neighbours": "add-remove"}, "tables of 5 or 6 rows"),
        (5, {"user": 0}, "all rows of one user"),
    ],
)
def test_a_bound_on_other_pairs_is_refused(rows, options, match):
    """Pairs that differ in one row would accuse a right one, or pass a wrong one."""
    users = hs.populations.Users(UNIT, sizes={1: 0.5, 3: 0.5})
    sampled = hs.sample_sensitivity(
        lambda table: table.ravel()[-1] / 5,
        users if "user" in options else UNIT,
        **{"rows": 5, "gamma": 0.5, **options},
    )
    with pytest.raises(ParameterError, match=match):
        hs.test_sensitivity(np.mean, UNIT, rows, bound=sampled, gamma=0.5)


def test_rounding_is_told_apart():
    """A mean of doubles exceeds its bound by some units in the last place."""
    source = hs.populations.Simulator(
        lambda rng, count: rng.integers(0, 2, count) * 1e6, name="far coins"
    )
    told = [
        hs.test_sensitivity(lambda r: r.sum() / 7 + 1e9, source, 7, bound=bound, pairs=60)
        for bound in (1e6 / 7, 0.9e6 / 7)
    ]
    assert [each.rounding for each in told] == [True, False]
    assert "tolerance=1e-9" in told[0].explain()


@pytest.mark.parametrize(
    "wrong",
    [
        {"gamma": 1.0},
        {"bound": -1.0},
        {"pairs": 0},
        {"confidence": 1.0},
        {"confidence": "0.9"},
        {"rows": 1},
    ],
)
def test_numbers_out_of_range_are_refused(wrong):
    """Before anything is drawn."""
    with pytest.raises(ParameterError):
        hs.test_sensitivity(np.sum, UNIT, **({"rows": 3, "bound": 1.0} | wrong))


@pytest.mark.parametrize("wrong", [None, True, "1", UNIT, -1.0])
def test_a_bound_that_is_none_is_refused_by_its_name(wrong):
    """As the caller wrote it; `hs.check_sensitivity` calls the same thing `declared`."""
    with pytest.raises(ParameterError) as refused:
        hs.test_sensitivity(np.sum, UNIT, 3, bound=wrong)
    assert refused.value.parameter == "bound"
    with pytest.raises(ParameterError) as refused:
        hs.check_sensitivity(np.sum, wrong, low=0, high=1, rows=3)
    assert refused.value.parameter == "declared"


def test_pairs_of_a_public_table_share_no_row():
    """Or else they are no independent pairs: too few rows are refused."""
    table = hs.populations.PublicTable(np.arange(100.0), name="numbers")
    assert hs.test_sensitivity(np.sum, table, 9, bound=100.0, pairs=10).violations == 0
    with pytest.raises(ParameterError, match="public rows"):
        hs.test_sensitivity(np.sum, table, 9, bound=100.0, pairs=11)


def test_people_move_with_all_their_rows():
    """A count moves by the rows of one user: by 0, 1 or 2 where users have 1, 2 or 3."""
    people = hs.populations.Users(UNIT, sizes={1: 1, 2: 1, 3: 1})
    found = hs.test_sensitivity(len, people, 20, bound=1.0, gamma=0.1, pairs=300, user=0)
    assert found.largest == 2
    assert found.verdict == "refuted"
    # Two users in nine differ by 2; binomial tails of 1e-6 each.
    assert (
        stats.binom.ppf(1e-6, 300, 2 / 9) <= found.violations <= stats.binom.isf(1e-6, 300, 2 / 9)
    )
    assert "(user " in found.worst.name
    assert set(found.worst.neighbour[:, 0]) == set(range(20))
    removed = hs.test_sensitivity(
        len, people, 20, bound=3.0, pairs=100, user=0, neighbours="add-remove"
    )
    assert removed.largest == 3
    assert not removed.violations
    sampled = hs.sample_sensitivity(len, people, rows=20, pairs=100, user=0)
    assert hs.test_sensitivity(len, people, 20, bound=sampled, pairs=100, user=0).violations == 0
    for user, bound in (
        (None, 3.0),
        (None, sampled),
        (0, hs.sample_sensitivity(np.sum, UNIT, rows=20)),
    ):
        with pytest.raises(ParameterError, match="user"):
            hs.test_sensitivity(len, people, 20, bound=bound, user=user)


def test_the_command_says_what_the_function_does(tmp_path):
    """Exit code 1 if refuted, with the same record as in Python."""
    (tmp_path / "f.py").write_text("def total(rows):\n    return rows.sum()\n")
    words = ("--population", "uniform:0,1", "--rows", "4", "--pairs", "50", "--json")
    done = ended("test-sensitivity", "f.py:total", *words, "--bound", "0.5", cwd=tmp_path)
    assert done.returncode == 1
    found = hs.test_sensitivity(np.sum, UNIT, 4, bound=0.5, pairs=50)
    assert json.loads(done.stdout) == json.loads(json.dumps(found.to_dict()))
