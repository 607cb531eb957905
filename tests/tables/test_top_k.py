"""The most frequent keys of a table: the exact loss on small tables, every engine, what is kept."""

import datetime
import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from tests.engines import ENGINES

import hushed as hs
from hushed.errors import ParameterError

KEYS = ["a", "b", "c"]
EPSILON = 0.8


def frame(pairs):
    """Rows of (user, key); a table without rows has the same columns."""
    users, keys = ([pair[i] for pair in pairs] for i in (0, 1))
    return pa.table({"who": pa.array(users, pa.int64()), "drug": pa.array(keys, pa.string())})


def ask(pairs, k, most=None):
    """Query for the k most frequent drugs; most rows of a user, or of no users if None."""
    if most is None:
        return hs.table(frame(pairs)).top_k("drug", k=k, keys=KEYS)
    users = hs.table(frame(pairs), user="who").bound_contributions(max_rows_per_user=most)
    return users.top_k("drug", k=k, keys=KEYS)


@pytest.fixture
def drawn(monkeypatch):
    """What each draw is given: counts, number of places and temperature; the last are returned."""
    calls = []

    def draw(self, scores):
        calls.append((list(scores), self.k, self.scale))
        return np.arange(self.k)[::-1]

    monkeypatch.setattr(hs.TopK, "draw", draw)
    return calls


def law(counts, k, scale):
    """Logarithm of the chance of every sequence of keys, by the definition: its worst place."""
    best = sorted(counts, reverse=True)
    powers = [
        -max(b - counts[i] for b, i in zip(best, chosen, strict=False)) / scale
        for chosen in itertools.permutations(range(len(counts)), k)
    ]
    return np.array(powers) - np.logaddexp.reduce(powers)


def worst_loss(pairs):
    """Largest log-ratio over all pairs of laws."""
    return max(float(np.abs(one - other).max()) for one, other in pairs)


@pytest.mark.parametrize(
    "most", [pytest.param(2, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.soak)]
)
@pytest.mark.parametrize("k", [1, 2])
def test_no_row_can_lose_more_than_epsilon(k, most, drawn):
    """Every table of so few rows, and the same less any one row; 45 % of epsilon is reached."""
    laws = {}
    for size in range(most + 1):
        for rows in itertools.combinations_with_replacement(KEYS, size):
            ask([(0, key) for key in rows], k).release(epsilon=EPSILON)
            assert drawn[-1][0] == [rows.count(key) for key in KEYS]
            laws[rows] = law(*drawn[-1])
    near = [(laws[r], laws[r[:i] + r[i + 1 :]]) for r in laws for i in range(len(r))]
    assert 0.45 * EPSILON < worst_loss(near) <= EPSILON * (1 + 1e-12)


@pytest.mark.parametrize(
    "k", [pytest.param(2, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.soak)]
)
def test_no_user_can_lose_more_than_epsilon(k, drawn):
    """Two users of up to 2 rows each, and either of them gone; 45 % of epsilon is reached."""
    users = [u for n in (0, 1, 2) for u in itertools.combinations_with_replacement(KEYS, n)]
    laws = {}
    for pair in itertools.combinations_with_replacement(users, 2):
        rows = [(who, key) for who, keys in enumerate(pair) for key in keys]
        ask(rows, k, most=2).release(epsilon=EPSILON)
        laws[pair] = law(*drawn[-1])
    alone = {user: each for (none, user), each in laws.items() if none == ()}
    near = [(laws[pair], alone[user]) for pair in laws for user in pair]
    assert 0.45 * EPSILON < worst_loss(near) <= EPSILON * (1 + 1e-12)


def test_rows_beyond_the_bound_of_a_user_do_not_count(drawn):
    """One user with 50 rows counts as 3, in 2 groups at most."""
    rows = [(7, key) for key in KEYS for _ in range(50)]
    table = hs.table(frame(rows), user="who")
    bounded = table.bound_contributions(max_rows_per_user=3, max_groups_per_user=2)
    bounded.top_k("drug", k=2, keys=KEYS).release(epsilon=EPSILON)
    counts, _, scale = drawn[-1]
    assert sum(counts) == 3
    assert sum(map(bool, counts)) <= 2
    assert scale == pytest.approx(2 * 3 / EPSILON, rel=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_most_frequent_keys_are_found_in_their_order(engine, placed):
    """At a large epsilon; rows of other keys, without a key or filtered out do not count."""
    days = [datetime.date(2024, 3, day) for day in (1, 2, 3, 4)]
    counted = dict(zip(days, (40, 90, 5, 70), strict=True))
    rows = [(day, True) for day, n in counted.items() for _ in range(n)]
    rows += [(None, True)] * 200 + [(datetime.date(2020, 1, 1), True)] * 300
    rows += [(days[2], False)] * 500
    columns = {"day": pa.array([r[0] for r in rows]), "kept": pa.array([r[1] for r in rows])}
    table = hs.table(*placed(engine, pa.table(columns))).filter("kept")
    answer = table.top_k("day", k=3, keys=days).release(epsilon=100.0)
    assert answer.keys == {"day": (days[1], days[3], days[0])}
    assert answer.to_dict() == {"day": [days[1], days[3], days[0]], "rank": [1, 2, 3]}


def test_keys_of_several_columns_and_an_absent_key():
    """Every combination is a candidate; one without rows counts 0."""
    rows = pa.table({"x": [1, 1, 1, 2] * 30, "y": ["u", "u", "v", "v"] * 30})
    query = hs.table(rows).top_k("x", "y", k=3, keys={"x": [1, 2, 9], "y": ["u", "v"]}, name="nth")
    answer = query.release(epsilon=100.0)
    first, *others = zip(answer.keys["x"], answer.keys["y"], strict=True)
    assert (first, set(others)) == ((1, "u"), {(1, "v"), (2, "v")})
    assert answer.values == {"nth": (1, 2, 3)}


def test_the_curve_of_a_choice_is_charged():
    """A ledger is given losses in a range of epsilon, which compose to less than a pure promise."""

    class Noting:
        """Keeps what it is charged."""

        def charge(self, budget, guarantee, note="", *, loss=None):
            self.charged = budget, guarantee.epsilon, note, loss

    ledger = Noting()
    ask([(1, "a")], 2).release(epsilon=EPSILON, ledger=ledger, budget="b")
    *rest, loss = ledger.charged
    assert rest == ["b", EPSILON, "query: top by drug"]
    assert (loss.delta(EPSILON), loss.supremum) == (0.0, EPSILON)
    assert loss.delta(0.0) == pytest.approx(math.tanh(EPSILON / 4), rel=1e-9)


def test_gaussian_noise_is_refused_because_it_would_spend_delta_for_nothing():
    """Keys are chosen, and no number gets noise."""
    with pytest.raises(ParameterError, match="leave noise and delta out"):
        ask([], 1).quote(epsilon=1.0, delta=1e-6, noise="gaussian")


def test_the_answer_is_charged_stored_and_read_again(tmp_path):
    """Epsilon is charged, the same key gives the same answer, and dates stay dates."""
    days = [datetime.date(2024, 3, day) for day in (1, 2, 3)]
    rows = pa.table({"day": pa.array([days[0]] * 9 + [days[1]] * 5)})
    query = hs.table(rows).top_k("day", k=2, keys=days)
    other = hs.table(rows).top_k("day", k=1, keys=days)
    quoted = query.quote(epsilon=0.25).accuracy("rank")
    with hs.Ledger(f"sqlite:///{tmp_path}/l.db") as ledger:
        ledger.open_budget("b", hs.Guarantee(epsilon=1.0, neighbours="add-remove"))
        first = query.release(epsilon=0.25, ledger=ledger, budget="b", key="one")
        again = query.release(epsilon=0.25, ledger=ledger, budget="b", key="one")
        assert first == again
        assert (first.shortfall, again.shortfall) == ({"rank": quoted}, {"rank": quoted})
        assert type(first.keys["day"][0]) is datetime.date
        assert (
            ledger.quote("b", hs.Guarantee(epsilon=0.75, neighbours="add-remove")).epsilon_left == 0
        )
        with pytest.raises(hs.errors.KeyInUse):
            other.release(epsilon=0.25, ledger=ledger, budget="b", key="one")


def test_the_quote_and_the_answer_state_the_same_shortfall():
    """It is that of the mechanism for all keys, and the words say what is counted."""
    query = ask([(who, "b") for who in range(40)], 2, most=4)
    quote = query.quote(epsilon=EPSILON)
    answer = query.release(epsilon=EPSILON)
    assert quote.accuracy("rank") == answer.shortfall["rank"]
    # 6 ordered pairs of 3 keys; each is e times less likely for 2 * 4 / epsilon rows
    assert quote.accuracy("rank") == pytest.approx(8 / EPSILON * math.log(6 / 0.05), rel=1e-5)
    assert "rows of the best key for each place; 100 % of epsilon" in quote.explain()
    (output,) = quote.outputs
    # k queries at epsilon / k: each of 3 keys is e times less likely for 2 * 4 / epsilon rows
    assert output.one_by_one == pytest.approx(8 / EPSILON * math.log(2 * 3 / 0.05), rel=1e-5)
    assert "by queries for one key each, which leave out the keys before" in quote.explain()
    assert ask([], 1, most=4).quote(epsilon=EPSILON).outputs[0].one_by_one is None
    assert "moves by 4 or less, all the same way -> joint exponential" in quote.explain()
    text = str(answer)
    assert "less than the best one for its place, with probability 95 %." in text
    assert "error bar" not in text
    assert "group" not in text


REFUSED = {
    "no keys": (lambda t: t.top_k("drug", k=1, keys=None), "chooses among public keys"),
    "k of 0": (lambda t: t.top_k("drug", k=0, keys=KEYS), "between 1 and the number of keys, 3"),
    "k too large": (lambda t: t.top_k("drug", k=4, keys=KEYS), "number of keys, 3, got 4"),
    "k of no type": (lambda t: t.top_k("drug", k=1.0, keys=KEYS), "k must be an integer"),
    "too many": (
        lambda t: t.top_k("who", k=3000, keys=range(3000)),
        "k times the number of keys",
    ),
    "grouped": (
        lambda t: t.group_by("who", keys=[1]).top_k("drug", k=1, keys=KEYS),
        "without group_by",
    ),
    "counted": (lambda t: t.count().top_k("drug", k=1, keys=KEYS), "without other aggregates"),
    "counted later": (lambda t: t.top_k("drug", k=1, keys=KEYS).count(), "in a second query"),
    "grouped later": (
        lambda t: t.top_k("drug", k=1, keys=KEYS).group_by("who", keys=[1]),
        "ask for group_by in a second query",
    ),
    "a name in use": (
        lambda t: t.top_k("drug", k=1, keys=KEYS, name="drug"),
        "has a column 'drug' already",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_asked_is_refused_at_once(name):
    """Before any row is read, with words for what is allowed."""
    asked, text = REFUSED[name]
    with pytest.raises(ParameterError, match=text):
        asked(hs.table(frame([(1, "a")])))


def test_users_without_a_bound_are_refused():
    """A user may have any number of rows, and then nothing bounds how far a count moves."""
    table = hs.table(frame([(1, "a")]), user="who").bound_contributions(max_groups_per_user=1)
    with pytest.raises(ParameterError, match="needs a contribution bound"):
        table.top_k("drug", k=1, keys=KEYS).quote(epsilon=1.0)


def of_users(pairs, k):
    """Query for the k drugs with the most users; nothing bounds the rows of one."""
    return hs.table(frame(pairs), user="who").top_k("drug", k=k, keys=KEYS, of="users")


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2])
def test_no_user_can_lose_more_than_epsilon_where_users_are_counted(k, drawn):
    """Every set of keys for each of two users, however often, and either gone; 45 % is reached."""
    users = [u for n in range(4) for u in itertools.combinations(KEYS, n)]
    laws = {}
    for pair in itertools.combinations_with_replacement(users, 2):
        rows = [(who, key) for who, keys in enumerate(pair) for key in keys for _ in range(3)]
        of_users(rows, k).release(epsilon=EPSILON)
        assert drawn[-1][0] == [sum(key in keys for keys in pair) for key in KEYS]
        laws[pair] = law(*drawn[-1])
    alone = {user: each for (none, user), each in laws.items() if none == ()}
    near = [(laws[pair], alone[user]) for pair in laws for user in pair]
    assert 0.45 * EPSILON < worst_loss(near) <= EPSILON * (1 + 1e-12)


def test_one_user_moves_a_number_of_users_by_one(drawn):
    """The temperature is that of one row, in however many rows and keys a user is."""
    of_users([(who, key) for who in range(3) for key in KEYS * 4], 2).release(epsilon=EPSILON)
    assert drawn[-1] == ([3, 3, 3], 2, pytest.approx(2 / EPSILON, rel=1e-6))


def test_a_user_with_many_rows_counts_once():
    """Ten users outweigh one with 500 rows; a row counts, and the quote says what."""
    rows = [(0, "a")] * 500 + [(who, "b") for who in range(1, 11)]
    answer = of_users(rows, 1).release(epsilon=50.0)
    assert answer.keys == {"drug": ("b",)}
    text = of_users(rows, 1).quote(epsilon=1.0).explain(distances=True)
    assert "the number of users of each key moves by 1 or less, all the same way" in text
    assert "users of the best key for each place" in text
    assert "rows" not in text
    bounded = hs.table(frame(rows), user="who").bound_contributions(max_rows_per_user=500)
    assert bounded.top_k("drug", k=1, keys=KEYS).release(epsilon=1e5).keys == {"drug": ("a",)}


@pytest.mark.parametrize(
    ("of", "text"), [("people", "one of .'rows', 'users'"), ("users", "no user column")]
)
def test_what_cannot_be_counted_is_refused(of, text):
    """Anything but rows and users, and users where no column tells them."""
    with pytest.raises(ParameterError, match=text):
        hs.table(frame([(1, "a")])).top_k("drug", k=1, keys=KEYS, of=of)


@pytest.mark.slow
def test_another_count_under_the_same_key_is_refused(tmp_path):
    """Rows and users are two questions."""
    rows = [(1, "a"), (2, "b")]
    bounded = hs.table(frame(rows), user="who").bound_contributions(max_rows_per_user=1)
    with hs.Ledger(f"sqlite:///{tmp_path}/l.db") as ledger:
        ledger.open_budget("b", hs.Guarantee(epsilon=1, neighbours="add-remove", unit="user"))
        how = {"epsilon": 0.25, "ledger": ledger, "budget": "b", "key": "one"}
        bounded.top_k("drug", k=1, keys=KEYS).release(**how)
        with pytest.raises(hs.errors.KeyInUse):
            bounded.top_k("drug", k=1, keys=KEYS, of="users").release(**how)
