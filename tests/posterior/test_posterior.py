"""The posterior sampler: exact odds, exact losses by enumeration, doubles that do no harm."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from tests.frequencies import pvalue_of_counts

import hushed as hs
from hushed.errors import BadFunction, BadRows, ParameterError, WrongNorm, ZeroSensitivity

GRID = np.arange(1, 10) / 10
LONGEST = math.log(9)  # what a coin tells apart at most on this grid, on either side


def coin(row, p):
    return np.where(row == 1, np.log(p), np.log1p(-p))


def odds_of(ones, zeros, weight, prior=None):
    """Exact odds of a tempered Beta-Bernoulli posterior, from its formula."""
    weights = [
        (1.0 if prior is None else prior[i]) * (p**ones * (1 - p) ** zeros) ** weight
        for i, p in enumerate(GRID.tolist())
    ]
    return np.array(weights) / math.fsum(weights)


def largest_loss(chances, tables):
    """Largest log ratio of two laws over all pairs of tables given as (one, other)."""
    return max(
        float(np.abs(np.log(chances(one)) - np.log(chances(other))).max()) for one, other in tables
    )


def coins(ones, count):
    return np.array([1.0] * ones + [0.0] * (count - ones))


def test_the_odds_are_those_of_the_tempered_posterior():
    """Prior times likelihood to the power epsilon / range, from the formula of the family."""
    prior = (np.arange(1, 10) / 45).tolist()
    mechanism = hs.Posterior(coin, GRID, epsilon=1.5, clip=LONGEST, prior=prior)
    assert mechanism.weight == pytest.approx(1.5 / (2 * LONGEST), rel=1e-6)
    expected = odds_of(7, 5, 1.5 / (2 * LONGEST), prior)
    assert mechanism.chances_on(coins(7, 12)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_draws_follow_the_exact_probabilities():
    """5,000 draws against the formula, false alarm 1e-6; another exponent is seen at 1e-20."""
    mechanism = hs.Posterior(coin, GRID, epsilon=4.0, clip=LONGEST)
    table, draw = coins(4, 6), mechanism.mechanism
    scores = mechanism.scores(table)
    seen = [draw.draw(scores) for _ in range(5_000)]
    expected = odds_of(4, 2, 4.0 / (2 * LONGEST)) * len(seen)
    counts = [sum(value == p for value in seen) for p in GRID.tolist()]
    assert sum(counts) == len(seen)
    assert pvalue_of_counts(counts, expected) > 1e-6
    wrong = odds_of(4, 2, 2.4 / (2 * LONGEST)) * len(seen)  # the test would see that
    assert pvalue_of_counts(counts, wrong) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_exact_loss_attains_epsilon_and_never_exceeds_it(epsilon):
    """All tables of 40 coins, and of 6 rows that speak for two of three candidates."""
    mechanism = hs.Posterior(coin, GRID, epsilon=epsilon, clip=LONGEST)
    law = [mechanism.chances_on(coins(ones, 40)) for ones in range(41)]
    loss = largest_loss(lambda ones: law[ones], [(i, i + 1) for i in range(40)])
    assert loss <= epsilon * (1 + 1e-12)
    small = hs.Posterior(lopsided, range(3), epsilon=epsilon, clip=1.0)
    tables = list(product("ab", repeat=6))
    laws = {table: small.chances_on(list(table)) for table in tables}
    pairs = [
        (one, (*one[:i], new, *one[i + 1 :])) for one in tables for new in "ab" for i in range(6)
    ]
    attained = largest_loss(laws.__getitem__, pairs)
    assert attained <= epsilon * (1 + 1e-12)
    assert attained == pytest.approx(EXACT[epsilon], rel=1e-6)


def lopsided(row, candidates):
    """One kind of row speaks for candidate 0 alone, the other one for candidate 1 alone."""
    return {"a": [0.0, -1.0, -1.0], "b": [-1.0, 0.0, -1.0]}[row[0]]


def exact_loss(epsilon, count):
    """Loss of the same by whole powers of q = exp(epsilon / 2): no code of the library."""
    q = math.exp(epsilon / 2)

    def law(a, b):
        weights = [q**a, q**b, 1.0]
        return [w / math.fsum(weights) for w in weights]

    return max(
        abs(math.log(x / y))
        for a in range(count)
        for x, y in zip(law(a, count - a), law(a + 1, count - a - 1), strict=True)
    )


EXACT = {epsilon: exact_loss(epsilon, 6) for epsilon in (0.5, 1.0, 3.0)}


def test_many_rows_attain_epsilon_to_a_millionth():
    """With many rows the normaliser stands still, and nothing of epsilon is left unused."""
    rows = 60
    table = lambda a: ["a"] * a + ["b"] * (rows - a)  # noqa: E731
    mechanism = hs.Posterior(lopsided, range(3), epsilon=1.0, clip=1.0)
    loss = largest_loss(lambda a: mechanism.chances_on(table(a)), [(0, 1), (rows - 1, rows)])
    assert 1 - 1e-6 < loss <= 1 + 1e-12


def test_clipping_counts_twice_for_a_replaced_row_and_once_for_a_removed_one():
    """Two rows that speak for different candidates: the range is 2 clip (1 clip if removed)."""
    law = {}
    for neighbours in ("replace-one", "add-remove"):
        mechanism = hs.Posterior(lopsided, range(3), epsilon=1.0, clip=1.0, neighbours=neighbours)
        assert mechanism.guarantee.neighbours == neighbours
        law[neighbours] = lambda table, m=mechanism: m.chances_on(list(table))
        assert mechanism.weight == pytest.approx(0.5 if neighbours == "replace-one" else 1.0)
    replaced = [("a" * 30 + one, "a" * 30 + other) for one, other in product("ab", repeat=2)]
    assert largest_loss(law["add-remove"], replaced) > 1.5  # so the relation matters
    removed = [
        ("a" * n + "b" * m, "a" * n + "b" * (m + 1)) for n in (1, 2, 8) for m in (0, 1, 2, 29)
    ]
    loss = largest_loss(law["add-remove"], removed)
    assert 1 - 1e-6 < loss <= 1 + 1e-12


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_the_weight_of_a_removed_row_loses_twice_epsilon_where_rows_are_replaced(neighbours):
    """With epsilon / clip, one row of 2,000 candidates loses 1.9988 of 1, three coins 1.638.

    Likelihoods are clipped at log 10 for coins that are heads with a chance of .1 or .9. By whole
    powers of e: 1 + log((q + 1999) / (1 + 1999 q)), q = 1/e; and the law of two candidates.
    """
    other = neighbours == "add-remove"

    def told(row, candidates):
        return np.where((np.arange(len(candidates)) == 0) == (row[0] == 0), 0.0, -1.0)

    # The weight epsilon / clip is that of removed rows at 1, and that of replaced ones at 2.
    options = {"epsilon": 1.0 if other else 2.0, "neighbours": neighbours}
    many = hs.Posterior(told, range(2000), clip=1.0, **options)
    coins_of = hs.Posterior(coin, [0.1, 0.9], clip=math.log(10), **options)
    assert many.weight == pytest.approx(1.0, rel=1e-6)
    assert coins_of.weight == pytest.approx(1 / math.log(10), rel=1e-6)
    q = math.exp(-1)
    exact = 1 + math.log((q + 1999) / (1 + 1999 * q))
    assert exact == pytest.approx(1.9988, abs=5e-5)
    loss = largest_loss(many.chances_on, [([0.0], [1.0])])
    assert loss == pytest.approx(exact, rel=1e-6)
    odds = [9 ** (tails / math.log(10)) for tails in (1, 3)]  # of .1 to .9, for one tail more
    exact = math.log((1 + odds[1]) / (1 + odds[0]))
    assert exact == pytest.approx(1.638, abs=5e-4)
    loss = largest_loss(coins_of.chances_on, [(coins(3, 3), coins(2, 3))])
    assert loss == pytest.approx(exact, rel=1e-6)
    # So no replaced row may have it: a promise of replaced rows has half of the weight.
    right = hs.Posterior(told, range(2000), epsilon=1.0, clip=1.0)
    assert largest_loss(right.chances_on, [([0.0], [1.0])]) <= 1.0


@pytest.mark.slow
def test_figures_of_the_literature():
    """Untempered, and at the weights of two papers, for coins on .1, ..., .9 and many rows.

    Wang, Fienberg and Smola take epsilon / (4 B) with B = log 10, the bound on a log likelihood;
    Dimitrakakis et al. bound an untempered draw by 2 Delta, here 2 log 9.
    """
    published = [(1.0, 50, 4.391), (0.25 / math.log(10), 1000, 0.477), (1 / LONGEST, 200, 2.0)]
    for weight, count, figure in published:
        mechanism = hs.Posterior(coin, GRID, epsilon=weight * 2 * LONGEST, clip=LONGEST)
        pairs = [(coins(a, count), coins(a + 1, count)) for a in (0, count - 1)]
        loss = largest_loss(mechanism.chances_on, pairs)
        assert loss == pytest.approx(figure, abs=5e-4)
        assert loss <= mechanism.guarantee.epsilon


def test_the_order_of_the_rows_changes_no_bit():
    """Sums of doubles would differ: 0.1, 0.2 and 1e8 in any order give the same scores."""

    def spread(row, candidates):
        return -float(row[0]) * candidates

    rows = np.array([0.1, 0.2, 1e8, 0.3, 1e-9, 0.7, 3e7] * 9)
    mechanism = hs.Posterior(spread, [0.1, 0.3, 1.7], epsilon=1.0, clip=1e9)
    plain = np.array([sum(float(x) * -p for x in order) for order in (rows, rows[::-1])
                      for p in (1.7,)])  # fmt: skip
    assert plain[0] != plain[1]
    rng = np.random.default_rng(0)
    scores = {mechanism.scores(rng.permutation(rows)).tobytes() for _ in range(9)}
    assert len(scores) == 1


@pytest.mark.slow
def test_no_pair_of_doubles_moves_the_scores_further_than_counted():
    """Rows made to round badly: exact fractions of the scores, on many pairs."""
    rng = np.random.default_rng(1)

    def jagged(row, candidates):
        return np.sin(row[0] * candidates) * 10 ** (row[0] % 3) + 1e12 * row[0]

    points = np.arange(1.0, 8)
    mechanism = hs.Posterior(jagged, points, epsilon=1.0, clip=math.pi)
    width = Fraction(mechanism.mechanism.sensitivity.value)
    largest = Fraction(0)
    for _ in range(60):
        table = rng.normal(size=30) * 100
        other = table.copy()
        other[rng.integers(30)] = rng.normal() * 100
        one, two = (mechanism.scores(each).tolist() for each in (table, other))
        moved = [Fraction(a) - Fraction(b) for a, b in zip(one, two, strict=True)]
        largest = max(largest, max(moved) - min(moved))
    assert width / 2 < largest <= width
    assert width >= 2 * Fraction(math.pi)


def test_rows_that_fail_say_nothing():
    """Whatever the function does with a row, the others count, and nothing is told."""

    def touchy(row, p):
        if row[0] > 1:
            raise ValueError(row[0])
        return coin(row, p) if row[0] >= 0 else [math.nan] * 9

    mechanism = hs.Posterior(touchy, GRID, epsilon=1.0, clip=LONGEST)
    good = coins(3, 4)
    scores = mechanism.scores(np.append(good, [5.0, -1.0, math.nan]))
    assert np.array_equal(scores, mechanism.scores(np.append(good, [5.0, -1.0, -2.0])))
    assert scores == pytest.approx(mechanism.scores(good), abs=1e-6)
    released = hs.release(touchy, np.append(good, 5.0), mechanism)
    assert released.value in GRID.tolist()
    with pytest.raises(BadFunction, match="1 of 5 rows say nothing: ValueError"):
        mechanism.chances_on(np.append(good, 5.0))


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, BaseException, KeyboardInterrupt])
def test_no_error_of_a_row_is_heard(error, press_ctrl_c):
    """Nor what is no Exception: sys.exit, panics of Polars, and what only looks like Ctrl-C."""

    def leaving(row, p):
        if row[0] >= 1:  # as in the first row that is made up, where it is tried
            raise error(row[0])
        return coin(row, p)

    rows = np.append(coins(0, 4), 5.0)
    mechanism = hs.Posterior(leaving, GRID, epsilon=1.0, clip=LONGEST)
    assert hs.release(leaving, rows, mechanism).value in GRID.tolist()
    stopping = hs.Posterior(lambda row, p: press_ctrl_c(), GRID, epsilon=1.0, clip=LONGEST)
    with pytest.raises(KeyboardInterrupt):
        stopping.draw(rows)


def number_of_category(row):
    return row["c"].cat.codes.iloc[0]


@pytest.mark.parametrize(
    ("tells", "tables"),
    [
        (
            number_of_category,
            [pd.DataFrame({"c": pd.Categorical([first] + ["b"] * 50)}) for first in "ac"],
        ),
        (
            lambda row: row["c"].cat.categories.size > 1,
            [pd.DataFrame({"c": pd.Categorical([first] + ["b"] * 50)}) for first in "bc"],
        ),
        (lambda row: row.dtype.itemsize > 4, [np.array([t] + ["b"] * 50) for t in ("a", "long")]),
    ],
)
def test_a_row_by_itself_brings_nothing_of_the_others(tells, tables):
    """Categories of pandas and widths of texts follow from all rows: one would move each score."""

    def told(row, p):
        return np.log(p) if tells(row) else np.log1p(-p)

    mechanism = hs.Posterior(told, GRID, epsilon=1.0, clip=LONGEST)
    moved = np.subtract(*map(mechanism.scores, tables))
    assert np.ptp(moved) <= mechanism.mechanism.sensitivity.value


def test_a_row_that_is_changed_changes_no_other_one():
    """Not even where the rows of a list, or the cells of a column, are one object."""

    def doubling(row, p):
        held = row[0] if isinstance(row, list) else row["c"].iloc[0]
        held["x"] *= 2
        return p * held["x"]

    mechanism = hs.Posterior(doubling, GRID, epsilon=1.0, clip=LONGEST)
    one = {"x": 0.1}
    for make in (list, lambda cells: pd.DataFrame({"c": cells})):
        alike, apart = make([one] * 8), make([{"x": 0.1} for _ in range(8)])
        assert np.array_equal(mechanism.scores(alike), mechanism.scores(apart))


def test_minus_infinity_is_a_likelihood_and_is_clipped():
    """A candidate that a row rules out stays possible, at the clip."""

    def strict(row, candidates):
        with np.errstate(divide="ignore"):
            return np.log((candidates == row[0]).astype(float))

    mechanism = hs.Posterior(strict, [0.0, 1.0, 2.0], epsilon=2.0, clip=1.0)
    e = math.e
    expected = np.array([e**3, e, 1]) / (e**3 + e + 1)  # 3, 1 and 0 rows, at weight 1
    assert mechanism.weight == pytest.approx(1.0)
    assert mechanism.chances_on(np.array([0.0, 0, 0, 1])) == pytest.approx(expected, rel=1e-6)


def test_users_are_clipped_as_a_whole():
    """Ten rows of one user move the scores no further than one, and rows of nobody not at all."""
    mechanism = hs.Posterior(
        lambda row, candidates: lopsided([row[0]["x"]], candidates),
        range(3), epsilon=1.0, clip=1.0, user="who",
    )  # fmt: skip
    table = lambda *rows: [{"who": who, "x": x} for who, x in rows]  # noqa: E731
    base = [("ann", "a"), ("bob", "b"), ("cy", "a")]
    few, many = table(*base, ("dee", "a")), table(*base, *[("dee", "a")] * 10)
    assert np.array_equal(mechanism.scores(few), mechanism.scores(many))
    assert np.array_equal(mechanism.scores(few), mechanism.scores([*few, {"who": None, "x": "b"}]))
    assert mechanism.guarantee.unit == "user"
    kinds = [[], ["a"], ["b"], ["a", "b"], ["b"] * 7]
    tables = [
        table(*[("bob", x) for x in bob], *[(f"u{i}", "a") for i in range(20)],
              *[("dee", x) for x in dee])
        for bob, dee in product(kinds, repeat=2)
    ]  # fmt: skip
    pairs = [(i, j) for i in range(25) for j in range(25) if i // 5 == j // 5]
    law = [np.log(mechanism.chances_on(each)) for each in tables]
    assert max(np.abs(law[i] - law[j]).max() for i, j in pairs) <= 1 + 1e-12
    with pytest.raises(BadRows, match="who"):
        hs.release(mechanism.log_likelihood, np.zeros((3, 2)), mechanism)


def test_a_claimed_range_is_enlarged_by_the_rounding():
    """It stands on the certificate with its argument; rounding to whole steps is counted."""
    claim = hs.proven_sensitivity(2 * LONGEST, "range", argument="two coins on this grid")
    mechanism = hs.Posterior(coin, GRID, epsilon=1.0, sensitivity=claim)
    counted = mechanism.mechanism.sensitivity
    assert 2 * LONGEST < counted.value < 2 * LONGEST * (1 + 1e-6)
    assert counted.argument.startswith("two coins on this grid; rounded to multiples of 2^-")
    expected = odds_of(7, 5, 1.0 / (2 * LONGEST))
    assert mechanism.chances_on(coins(7, 12)) == pytest.approx(expected, rel=1e-5)
    steps = mechanism.scores(coins(7, 12)) / 2.0**-24
    assert np.array_equal(steps, np.rint(steps))


@pytest.mark.parametrize("unit", ["row", "person"])
def test_a_release_is_charged_certified_and_verified(tmp_path, unit):
    """Ledger, certificate and verify, as for any release; asked again it costs nothing."""
    mechanism = hs.Posterior(coin, GRID, epsilon=0.5, clip=LONGEST, unit=unit)
    rows = coins(30, 50)
    with hs.Ledger(f"sqlite:///{tmp_path}/b.db") as ledger:
        ledger.open_budget("b", hs.Guarantee(epsilon=1.0))
        first = hs.release(coin, rows, mechanism, ledger, budget="b", key="k")
        again = hs.release(coin, rows, mechanism, ledger, budget="b", key="k")
        assert first.value == again.value
        hs.release(coin, rows, mechanism, ledger, budget="b")
        with pytest.raises(hs.errors.Overspent):
            hs.release(coin, rows, mechanism, ledger, budget="b")
    known = hs.Certificate.from_json(first.certificate.to_json())
    assert known.guarantee == hs.Guarantee(epsilon=0.5)
    assert known.person is (unit == "person")
    assert hs.verify(known).reproduced
    text = known.explain()
    assert "no mean of the posterior" in text
    assert "keeps nothing of a row" in text


def test_a_draw_without_a_release_tells_no_private_value(capsys):
    """Neither in an error, where the range is a claim, nor on the screen."""

    def telling(row, p):
        print("secret", row[0])
        raise ValueError(f"secret {row[0]}")

    proven = hs.proven_sensitivity(1.0, "range", argument="a proof")
    with pytest.raises(BadFunction) as caught:
        hs.Posterior(telling, GRID, epsilon=1.0, sensitivity=proven).draw(coins(1, 1))
    assert "secret" not in f"{caught.value}{caught.value.__context__}{caught.value.__cause__}"
    hs.Posterior(telling, GRID, epsilon=1.0, clip=LONGEST).draw(coins(1, 1))
    assert "secret" not in "".join(capsys.readouterr())


def test_another_fingerprint_is_named_as_unchecked():
    """Nothing speaks for the candidates, of which a certificate has a digest alone."""
    mechanism = hs.Posterior(coin, GRID, epsilon=1.0, clip=LONGEST)
    text = hs.release(coin, coins(1, 1), mechanism).certificate.to_json()
    forged = text.replace(mechanism.mechanism.fingerprint, "0" * 64)
    assert forged != text
    assert "the candidates and the prior" in " ".join(hs.verify(forged).unchecked)


def test_several_coordinates_are_drawn_together():
    """A grid of two parameters: the draw is one of its rows."""
    points = [(m, s) for m in (0.0, 1.0) for s in (1.0, 2.0)]

    def normal(row, grid):
        return -((row[0] - grid[:, 0]) ** 2) / (2 * grid[:, 1] ** 2) - np.log(grid[:, 1])

    mechanism = hs.Posterior(normal, points, epsilon=50.0, clip=5.0)
    drawn = hs.release(normal, np.full(400, 1.0), mechanism)
    assert drawn.value.tolist() == [1.0, 1.0]
    assert hs.verify(drawn.certificate).reproduced


@pytest.mark.slow
def test_several_draws_cost_so_much_each():
    """Two draws compose, below the sum of what single numbers say; an audit refutes less."""
    mechanism = hs.Posterior(lopsided, range(3), epsilon=1.0, clip=1.0)
    both = hs.compose([mechanism.loss, mechanism.loss], delta=1e-6)
    assert 1 < both.epsilon <= 2

    def draws(rows, rng, size):
        return rng.choice(3, size=size, p=mechanism.chances_on(rows))

    pair = (["a", "a"], ["b", "a"])  # which loses 0.593
    told = [
        hs.audit(draws, [pair], claim=hs.Guarantee(epsilon=e), batch=True, samples=100_000).verdict
        for e in (0.6, 0.5)
    ]
    assert told == ["not refuted", "violated"]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({}, ParameterError),
        ({"clip": 0.0}, ParameterError),
        ({"clip": math.inf}, ParameterError),
        ({"clip": 1.0, "epsilon": 0.0}, ParameterError),
        ({"clip": 1.0, "prior": [1.0, 0.0, 1.0]}, ParameterError),
        ({"clip": 1.0, "prior": [1.0, 1e-300, 1.0], "epsilon": 1e-6}, ParameterError),
        ({"clip": 1.0, "candidates": [1.0, 1.0]}, ParameterError),
        ({"clip": 1.0, "candidates": [1.0]}, ParameterError),
        ({"clip": 1.0, "candidates": [1.0, math.nan]}, ParameterError),
        ({"clip": 1.0, "user": 1.5}, ParameterError),
        ({"clip": 1.0, "user": "who", "unit": "person"}, ParameterError),
        ({"sensitivity": hs.proven_sensitivity(1.0, "sup", argument="x")}, WrongNorm),
        ({"sensitivity": hs.proven_sensitivity(0.0, "range", argument="x")}, ZeroSensitivity),
        ({"sensitivity": 1.0}, ParameterError),
        (
            {"sensitivity": hs.proven_sensitivity(1.0, "range", argument="x", unit="user")},
            ParameterError,
        ),
    ],
)
def test_what_makes_no_posterior_is_refused(wrong, error):
    """Before a row is seen."""
    options = {"log_likelihood": lopsided, "candidates": range(3), "epsilon": 1.0} | wrong
    with pytest.raises(error):
        hs.Posterior(**options)


@pytest.mark.parametrize("wrong", [lambda row: 0.0, lambda: 0.0, lambda row, p, prior: p])
def test_a_function_of_other_arguments_is_refused_when_the_posterior_is_made(wrong):
    """It would fail on every row in silence, and the draw would be paid and say nothing."""
    with pytest.raises(ParameterError, match="called with a row and all candidates"):
        hs.Posterior(wrong, GRID, epsilon=1.0, clip=1.0)


def test_other_functions_and_carried_rows_are_refused_unpaid(tmp_path):
    """The function of the posterior alone, and none that has the rows with it."""
    rows = coins(3, 30)
    mechanism = hs.Posterior(coin, GRID, epsilon=0.5, clip=LONGEST)

    def knowing(row, p):
        return coin(row, p) * rows.mean()

    with hs.Ledger(f"sqlite:///{tmp_path}/b.db") as ledger:
        ledger.open_budget("b", hs.Guarantee(epsilon=1.0))
        with pytest.raises(ParameterError, match="another function"):
            hs.release(lopsided, rows, mechanism, ledger, budget="b")
        other = hs.Posterior(knowing, GRID, epsilon=0.5, clip=LONGEST)
        with pytest.raises(BadFunction, match="carries the private rows"):
            hs.release(knowing, rows, other, ledger, budget="b")
        assert not ledger.entries("b")


def test_a_forged_share_of_the_prior_is_seen():
    """Without a prior the least share is one over the number of candidates."""
    mechanism = hs.Posterior(coin, GRID, epsilon=0.5, clip=LONGEST)
    text = hs.release(coin, coins(3, 30), mechanism).certificate.to_json()
    assert '"least": 0.1111111111111111' in text
    with pytest.raises(ParameterError, match="share"):
        hs.Certificate.from_json(text.replace('"least": 0.1111111111111111', '"least": 0.05'))


def test_the_stated_error_is_of_clipped_log_likelihoods():
    """Where the clip binds, the log likelihood itself is farther off, nearly always."""
    rows, grid = np.array([1.0] * 18 + [0.0] * 42), np.arange(1, 10) / 10

    def coin(row, p):
        return np.where(np.asarray(row) == 1, np.log(p), np.log1p(-p))

    mechanism = hs.Posterior(coin, grid, epsilon=1.0, clip=0.5)
    certificate = hs.release(coin, rows, mechanism).certificate
    bare = np.array([coin(row, grid) for row in rows])
    clipped = np.maximum(bare, bare.max(axis=1, keepdims=True) - 0.5).sum(axis=0)
    chances = mechanism.chances_on(rows)
    near = {
        name: chances[scores.max() - scores <= certificate.mechanism.accuracy].sum()
        for name, scores in (("clipped", clipped), ("bare", bare.sum(axis=0)))
    }
    assert near["clipped"] >= 0.95
    assert near["bare"] < 0.1
    assert "(its log likelihood, as clipped where there is a clip, or" in certificate.explain()
