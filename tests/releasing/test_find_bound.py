"""The private search for a clipping bound: exact losses, overshoot, errors, charge."""

import dataclasses
import itertools
import math
import re
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from tests.sparse_vector_laws import log_law, one_sided, one_sided_tail

import hushed as hs
from hushed.errors import BadFunction, BadRows, KeyInUse, Overspent, ParameterError
from hushed.mechanisms import _bound_search as bounds
from hushed.mechanisms import _sparse_vector as sparse
from hushed.releasing import _find_bound as find_bound_module

COUNT = hs.proven_sensitivity(1.0, argument="by assumption")


def law_of_index(rows, plan, candidates):
    """Log probability of each candidate, on integers: the first with few rows above it."""
    inner = plan.plan
    answers = tuple(-sum(row > each for row in rows) for each in candidates)
    found = log_law(
        answers,
        positives=1,
        bar=one_sided(float(inner.scales.threshold)),
        query_tail=one_sided_tail(float(inner.scales.query)),
        threshold=round(inner.threshold),
    )
    others = (0,) * (len(candidates) - 1)
    last = np.logaddexp(found.pop((*others, 0)), found.pop((*others, 1)))
    return np.array([*found.values(), last])


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_every_small_table_keeps_epsilon(monkeypatch, neighbours, epsilon):
    """All tables of up to five rows, one of them missing or infinite: epsilon, and all of it."""
    monkeypatch.setattr(sparse, "_GRID_BITS", 0)
    plan = bounds.BoundSearch(COUNT, epsilon=epsilon, above=3.0)
    candidates, cells = (1, 2, 4), (math.nan, 1.5, 3.0, math.inf)
    worst = 0.0
    for n in range(5):
        for rows in itertools.combinations_with_replacement(cells, n):
            if neighbours == "add-remove":
                others = [(*rows, each) for each in cells]
            else:
                others = [(*rows[:i], each, *rows[i + 1 :]) for i in range(n) for each in cells]
            one = law_of_index(rows, plan, candidates)
            for other in others:
                worst = max(worst, np.abs(one - law_of_index(other, plan, candidates)).max())
    assert worst == pytest.approx(epsilon, rel=1e-12)


BAGS = [(), (math.nan,), (-1.5,), (0.5, -1.5), (-1.5, -9.0), (2.0, -3.0)]


@pytest.mark.parametrize("side", ["high", "low"])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_every_small_table_of_users_keeps_epsilon(monkeypatch, neighbours, side):
    """Three users with up to two rows, one of them exchanged, added or removed: all of epsilon."""
    monkeypatch.setattr(sparse, "_GRID_BITS", 0)
    plan = bounds.BoundSearch(COUNT, epsilon=1.0, above=1.0, side=side)
    candidates, worst = (1, 2, 4), 0.0

    def law(bags):
        rows = [(user, cell) for user, bag in bags.items() for cell in bag][::-1]
        cells, ids = [cell for _, cell in rows], [user for user, _ in rows]
        if side == "high":
            cells = [-cell for cell in cells]
        counted = find_bound_module._count_from(cells, ids, side)
        return law_of_index(counted.tolist(), plan, candidates)

    for bags in itertools.product(BAGS[1:], repeat=2):
        table = dict(zip(("ann", 7), bags, strict=True))
        one = law(table)
        for bag in BAGS:
            if neighbours == "add-remove":
                others = [table | {"new": bag}]
            else:
                others = [table | {"ann": bag}, {7: table[7], "new": bag}]
            for other in others:
                worst = max(worst, np.abs(one - law(other)).max())
    assert worst == pytest.approx(1.0, rel=1e-12)


def test_a_low_end_is_found_below_zero():
    """The mirror image: missing values are beyond no bound, and rows above it neither."""
    rows = [-900.0, 3.0, math.nan, None] * 300
    assert hs.find_bound(rows, epsilon=100.0, above=50, side="low").value == -1024.0
    assert hs.find_bound(rows, epsilon=100.0, above=50).value == 4.0
    # Without a row below zero the first candidate has none beyond it.
    above = hs.find_bound([5.0] * 100, epsilon=100.0, above=50, side="low", smallest=1.0)
    assert above.value == -1.0
    assert above.certificate.mechanism.parameters["side"] == "low"
    assert hs.verify(above.certificate.to_json()).reproduced


@pytest.mark.parametrize("kind", [list, np.array, "pandas", "polars"])
def test_users_are_counted_and_not_their_rows(kind):
    """One user with 900 large rows is one; ten others keep the bound where theirs lie."""
    frames = pytest.importorskip(kind) if isinstance(kind, str) else None
    make = frames.Series if frames else kind
    cells, ids = [5.0] * 60 + [1e6] * 900, [*range(60), *[999] * 900]
    assert hs.find_bound(make(cells), epsilon=100.0, above=20).value == 2.0**20
    found = hs.find_bound(make(cells), epsilon=100.0, above=20, users=make(ids))
    assert found.value == 8.0
    assert found.certificate.guarantee.unit == "user"
    text = found.certificate.explain()
    assert "users lie beyond the bound that was found" in text
    assert "with any number of rows" in text
    assert hs.verify(found.certificate).reproduced


def test_rows_without_a_user_are_users_of_their_own():
    """And users that equal each other are one, whatever their type."""
    pandas = pytest.importorskip("pandas")
    missing = [None, math.nan, pandas.NA, pandas.NaT] * 20
    ask = {"epsilon": 100.0, "above": 20}
    assert hs.find_bound([9.0] * 80, users=missing, **ask).value == 16.0
    for same in ("ann", 3, (1, 2), np.int64(4), pandas.Timestamp("2020-01-01")):
        assert hs.find_bound([9.0] * 80, users=[same] * 80, **ask).value < 1e-3


class Word(str):
    """A text of a class of somebody's own, as the members of some enumerations are."""

    __slots__ = ()


NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "ids",
    [
        (Decimal(7), Decimal("7.0"), Decimal("7.00"), Fraction(7), 7, 7.0, np.float32(7)),
        ("ann", Word("ann"), np.str_("ann")),
        (b"ann", bytearray(b"ann"), np.bytes_(b"ann")),
        (NOON, NOON.astimezone(timezone(timedelta(hours=1))), NOON.astimezone(timezone.max)),
        ((1, "a"), (1.0, Word("a")), (Decimal("1.0"), "a"), (True, np.str_("a"))),
    ],
)
def test_ids_that_equal_each_other_are_one_user(ids):
    """However a column holds them: a user with many rows counts once."""
    assert len(set(map(bytes, ids) if isinstance(ids[0], bytes) else ids)) == 1
    column, users = [5.0] * 500 + [1e6] * 400, [*range(1000, 1500), *(ids * 400)[:400]]
    assert hs.find_bound(column, epsilon=100.0, above=1.5, users=users).value == 8.0


class Unspeakable:
    """An object that cannot be printed or compared."""

    def __repr__(self):
        raise ValueError("secret")

    __eq__ = __hash__ = None


def test_users_are_refused_by_their_number_and_container_only(tmp_path):
    """Nothing is charged, and no cell is looked at."""
    with hs.Ledger(f"sqlite:///{tmp_path}/b.db") as book:
        book.open_budget("b", hs.Guarantee(epsilon=1.0, unit="user"))
        ask = {"epsilon": 1.0, "ledger": book, "budget": "b"}
        with pytest.raises(BadRows, match="one user for each row"):
            hs.find_bound([1.0, 2.0], users=["a"], **ask)
        with pytest.raises(BadRows, match="the users must be one list"):
            hs.find_bound([1.0, 2.0], users="ab", **ask)
        with pytest.raises(ParameterError, match="leave unit= out"):
            hs.find_bound([1.0], users=["a"], unit="person", **ask)
        with pytest.raises(ParameterError, match="side must be"):
            hs.find_bound([1.0], side="left", **ask)
        assert not book.entries("b")
        hs.find_bound([1.0] * 2, users=[Unspeakable(), "a"], **ask)
        (entry,) = book.entries("b")
        assert entry.guarantee.unit == "user"


def test_the_counts_are_compared_as_the_law_says(monkeypatch):
    """With noise written down: the first candidate whose count and noise reach the threshold."""
    draws = [2 * 2**20, 0, 2**20, 3 * 2**20]  # threshold -3 + 2 = -1
    scales = []
    monkeypatch.setattr(
        bounds, "discrete_exponential", lambda scale: (scales.append(scale), draws.pop(0))[1]
    )
    plan = bounds.BoundSearch(COUNT, epsilon=1.0)
    assert plan.search(np.array([9, 4, 4, 4])) == 2
    assert scales == [Fraction(2**22, 3), 2**22, 2**22, 2**22]
    assert plan.above == 3.0


def test_candidates_are_powers_up_to_the_end_of_the_doubles():
    """With growth 2 they are exact; the last one is the largest below infinity."""
    ladder = bounds.list_candidates(2.0**-20, 2.0)
    assert ladder.tolist() == [2.0**i for i in range(-20, 1024)]
    slow = bounds.list_candidates(1.0, 1.3)
    assert math.log(slow[-1]) + math.log(1.3) > 1024 * math.log(2)
    assert np.all(np.diff(slow) > 0)


@pytest.mark.slow
def test_overshooting_is_as_rare_as_the_formula_says():
    """All values below the first candidate: it passes m of them with 0.105 / binomial(m + 3, 3)."""
    runs = 6000
    plan = bounds.BoundSearch(COUNT, epsilon=1.0)
    nothing = np.zeros(200, dtype=np.int64)
    passed = np.array([plan.search(nothing) for _ in range(runs)])
    for m in (1, 2, 5):
        chance = math.exp(-2.25) / math.comb(m + 3, 3)
        assert stats.binomtest(int((passed >= m).sum()), runs, chance).pvalue > 1e-6


@pytest.mark.slow
def test_the_rows_above_are_as_few_as_the_accuracy_says():
    """Of 400 searches those that leave more rows above are at most 5 % (false alarm 1e-6)."""
    plan = bounds.BoundSearch(COUNT, epsilon=1.0)
    counts = np.arange(300, -1, -1)
    most = plan.accuracy(0.05)
    left = np.array([counts[plan.search(counts)] for _ in range(400)])
    wrong = int((left > most).sum())
    assert stats.binomtest(wrong, 400, 0.05, alternative="greater").pvalue > 1e-6


@pytest.mark.slow_cases("incomes-0.2-5", "lognormal-1.0-3.7", "lognormal-0.2-12")
@pytest.mark.parametrize(
    ("name", "epsilon", "noted"),
    [("lognormal", 1.0, 3.7), ("incomes", 1.0, 1.3), ("lognormal", 0.2, 12), ("incomes", 0.2, 5)],
)
def test_errors_of_sums_without_a_range(name, epsilon, noted):
    """Half for the search, half for the sum: median near the noted one, and few are far off."""
    rng = np.random.default_rng(11)
    rows = {
        "lognormal": rng.lognormal(4, 1.5, 2000),
        "incomes": 45_000 * rng.lognormal(0, 0.8, 1000),
    }[name]
    plan = bounds.BoundSearch(COUNT, epsilon=epsilon / 2)
    ladder, errors = plan.candidates, []
    counts = np.array([(rows > each).sum() for each in ladder])
    for _ in range(1000):  # at 1.5 times the noted one are 59 % or more: the median fails at 1e-8
        bound = ladder[plan.search(counts)]
        noisy = np.minimum(rows, bound).sum() + rng.laplace(scale=2 * bound / epsilon)
        errors.append(100 * abs(noisy / rows.sum() - 1))
    assert np.median(errors) < 1.5 * noted
    far = sum(each > 60 for each in errors)
    assert stats.binomtest(far, 1000, 0.02, alternative="greater").pvalue > 1e-6


@pytest.mark.parametrize(
    "column",
    [
        [1.0, 3.0, 900.0] * 300,
        np.array([1, 3, 900] * 300),
        np.array([1, 3, 900] * 300, dtype=np.float32),
        [1.0, 3.0, 900.0, None] * 300,
        [-5.0, 900.0, math.nan, -math.inf] * 300,
    ],
)
def test_a_column_comes_in_any_container(column):
    """With 50 rows to spare, any other power than the next one comes less often than e^-3000."""
    found = hs.find_bound(column, epsilon=100.0, above=50)
    assert found.value == 1024.0
    assert found.certificate.guarantee == hs.Guarantee(epsilon=100.0)


def test_series_of_pandas_and_polars():
    """Columns of frames, with missing cells."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for column in (pandas.Series([1, None, 900] * 300), polars.Series([1, None, 900] * 300)):
        assert hs.find_bound(column, epsilon=100.0, above=50).value == 1024.0


@pytest.mark.parametrize(
    "column",
    [
        np.array(["secret"]),
        np.ones((2, 1)),
        3.0,
        np.array([1j]),
        np.array(["2020-01-01"], dtype="datetime64[s]"),
        {"a": 1},
        (each for each in [1.0]),
        memoryview(b"12"),
        None,
    ],
    ids=lambda column: type(column).__name__,
)
def test_what_is_no_column_is_refused_and_not_shown(column, tmp_path):
    """By type and shape alone: nothing is charged, and no value is in the message."""
    with hs.Ledger(f"sqlite:///{tmp_path}/b.db") as book:
        book.open_budget("b", hs.Guarantee(epsilon=1.0))
        with pytest.raises(BadRows, match=r"list of real|column of numbers") as refused:
            hs.find_bound(column, epsilon=1.0, ledger=book, budget="b")
        assert "secret" not in str(refused.value)
        assert refused.value.__context__ is None
        assert list(book.entries("b")) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0.0},
        {"growth": 1.0},
        {"growth": math.inf},
        {"smallest": 0.0},
        {"smallest": 2.0**-1023, "growth": 1.01},
        {"above": -1.0},
        {"unit": "user"},
        {"neighbours": "both"},
        {"key": "k"},
    ],
)
def test_what_cannot_be_used_is_refused(wrong):
    """One wrong parameter each."""
    with pytest.raises(ParameterError):
        hs.find_bound([1.0, 2.0], **{"epsilon": 1.0} | wrong)


def test_it_is_charged_once_and_kept_under_its_key(tmp_path):
    """The same key tells the same bound; another question under it is refused."""
    with hs.Ledger(f"sqlite:///{tmp_path}/b.db") as book:
        book.open_budget("b", hs.Guarantee(epsilon=1.0, neighbours="add-remove"), method="basic")
        ask = {"ledger": book, "budget": "b", "neighbours": "add-remove", "key": "costs"}
        first = hs.find_bound([5.0] * 100, epsilon=0.6, **ask)
        again = hs.find_bound([7e9], epsilon=0.6, **ask)
        assert (first.value, first.entry, first.certificate) == (
            again.value,
            again.entry,
            again.certificate,
        )
        assert [each.guarantee.epsilon for each in book.entries("b")] == [0.6]
        with pytest.raises(KeyInUse):
            hs.find_bound([5.0], epsilon=0.6, growth=3.0, **ask)
        with pytest.raises(KeyInUse):
            hs.find_bound([5.0], epsilon=0.6, unit="person", **ask)
        with pytest.raises(KeyInUse):
            hs.find_bound([5.0], epsilon=0.6, side="low", **ask)
        with pytest.raises(Overspent):
            hs.find_bound([5.0], epsilon=0.6, **ask | {"key": None})


def test_a_table_is_refused_with_its_dimensions():
    """Whoever hands in a whole table is told what was met."""
    with pytest.raises(BadRows, match=r"got ndarray of 2 dimensions; nothing was charged"):
        hs.find_bound(np.ones((3, 3)), epsilon=1.0)


def test_a_search_that_fails_after_its_charge_is_kept_and_shows_no_value(tmp_path, monkeypatch):
    """The failure is the answer under the key, as that of any release is."""

    def fails(self, counts):
        raise MemoryError(f"counts {counts.tolist()}")

    monkeypatch.setattr(bounds.BoundSearch, "search", fails)
    with hs.Ledger(f"sqlite:///{tmp_path}/b.db") as book:
        book.open_budget("b", hs.Guarantee(epsilon=1.0))
        ask = {"epsilon": 0.6, "ledger": book, "budget": "b", "key": "costs"}
        for _ in range(2):
            with pytest.raises(BadFunction) as failed:
                hs.find_bound([5.0] * 12345, **ask)
            assert "the charge stays" in str(failed.value)
            assert "12345" not in str(failed.value)
        assert len(book.entries("b")) == 1


def test_the_certificate_is_read_verified_and_says_what_is_left_above():
    """JSON and back; the proof is ours, so that no word of the caller is in it."""
    known = hs.find_bound([1.0] * 50, epsilon=1.0, unit="person").certificate
    assert hs.Certificate.from_json(known.to_json()) == known
    assert hs.verify(known).reproduced
    text = known.explain()
    assert "people lie beyond the bound that was found" in text
    assert "all of them in the same direction" in text
    assert "who asked" not in text
    assert "This holds for every such pair of tables." in text
    assert "this holds for every table and every person; no population is assumed" in text
    other = dataclasses.replace(known, argument="trust me").explain()
    assert "every table and" not in other
    assert "nothing was sampled to check it" in other
    both = hs.find_bound([1.0] * 50, epsilon=1.0, users=[1, 2] * 25).certificate
    assert "every table and every user; no population is assumed" in both.explain()


class Same:
    """A user with a new object in each row, equal to the others, which prints where it lies."""

    def __eq__(self, other):
        return isinstance(other, Same)

    def __hash__(self):
        return 1


class Nameless(Same):
    """A user that cannot be printed."""

    def __repr__(self):
        raise ValueError


@pytest.mark.parametrize("kind", [Same, Nameless])
def test_a_user_that_cannot_be_told_is_not_many_users(kind):
    """Counted once for each row, one person would move every count as far as they like."""
    column, users = [5.0] * 500 + [1e6] * 400, [*range(500), *(kind() for _ in range(400))]
    assert hs.find_bound(column, epsilon=100.0, above=50, users=users).value == 8.0


@pytest.mark.slow
def test_candidates_grow_from_the_smallest_one_that_is_allowed():
    """With any growth; among doubles that are smaller still, they would stay where they are."""
    found = hs.find_bound([5.0] * 1000, epsilon=20.0, growth=1.01, smallest=2.0**-1022)
    assert 4.5 < found.value < 6


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "growth"), [(0.1, 2.0), (1.0, 2.0), (10.0, 2.0), (1.0, 1.1)])
def test_the_usual_error_is_met_on_a_falling_tail(epsilon, growth):
    """Of as few rows, falling as slowly, as it is stated for: 500 searches, false alarm 1e-6."""
    plan = bounds.BoundSearch(COUNT, epsilon=epsilon, growth=growth)
    ranks, rows = np.arange(plan.candidates.size), math.ceil(2 * plan.accuracy())
    flat = ranks.size // 3  # candidates below the smallest value: all rows are beyond them
    ideal = rows * growth ** (-np.maximum(ranks - flat, 0) / 2)
    counts = np.floor(ideal).astype(int)
    left = np.array([counts[plan.search(counts)] for _ in range(500)])
    for beta, most in ((0.5, 0.62), (0.05, 0.11)):
        assert np.mean(left > plan.usual_accuracy(beta)) <= most
        assert np.mean(left >= plan.usual_accuracy(beta) / 2) >= beta / 5  # it is no loose bound
    assert plan.usual_accuracy() < plan.accuracy() / 2


def test_a_certificate_says_what_a_search_leaves_as_a_rule():
    """Beside the number for the worst column, which is several times as large."""
    found = hs.find_bound([1.0, 2.0, 3.0] * 50, epsilon=1.0)
    plan = bounds.BoundSearch(COUNT, epsilon=1.0)
    text = found.certificate.explain()
    assert "That is for the worst column." in text
    half, most = (f"{plan.usual_accuracy(beta):g}" for beta in (0.5, 0.05))
    assert f"less, at most {half} rows in half of the searches and {most} in 95 %, for" in text
    enough = re.search(
        r"in which (\S+) rows or more lie beyond the first candidate, (\S+), and", text
    )
    assert float(enough[1]) >= 2 * plan.accuracy()
    assert plan.smallest <= float(enough[2]) <= 1.001 * plan.smallest  # upwards, in few digits
    assert len(enough[2]) < 10


@pytest.mark.parametrize("rest", [0.0, -5.0, math.nan])
def test_rows_beyond_no_candidate_do_not_make_a_column_long(rest):
    """Beside 20,000 zeros, as of people without costs, few others are left out as if alone."""
    costs = np.concatenate([[rest] * 20_000, np.arange(12) + 50.0])
    plan = bounds.BoundSearch(COUNT, epsilon=1.0)
    left = [(costs > hs.find_bound(costs, epsilon=1.0).value).sum() for _ in range(40)]
    assert np.mean(np.array(left) > plan.usual_accuracy(0.5)) > 0.5
    assert costs.size > 2 * plan.accuracy()
