"""Which neighbours are compared: against plain code; what is said of it, and what is refused."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hushed as hs
from hushed._functions._streams import streams
from hushed.errors import BadFunction, ParameterError

UNIT = hs.populations.Uniform(low=0, high=1)
N, PAIRS = 6, 4


def uneven(rows):
    """Not symmetric, not linear, and of any number of rows."""
    rows = np.asarray(rows, float).ravel()
    return float(rows.max() + (rows * np.arange(1, len(rows) + 1)).mean() + rows[0] ** 2)


def sample(f=uneven, population=UNIT, **settings):
    given = {"rows": N, "gamma": 0.2, "calibration": "marginal", "workers": 1} | settings
    return hs.sample_sensitivity(f, population, **given)


def put(rows, place, row):
    changed = rows.copy()
    changed[place] = row
    return changed


def neighbours_of(kind, drawn):
    """Table and neighbours of one trial, from its drawn rows."""
    x, new = drawn[:N], drawn[N:]
    every = range(N)
    return x, {
        "three rows": lambda: [np.r_[x[:3], new]],
        "worst place": lambda: [put(x, i, new[0]) for i in every],
        "simultaneous": lambda: [put(x, i, new[i]) for i in every],
        "table": lambda: [put(x, i, v) for i in every for v in (0.0, 0.5, 1.0)],
        "monotone": lambda: [put(x, i, v) for i in every for v in (0.0, 1.0)],
        "add-remove": lambda: [np.r_[x, new], x[:-1]],
        "add-remove, worst": lambda: (
            [np.insert(x, i, new[0]) for i in range(N + 1)] + [np.delete(x, i) for i in every]
        ),
        "add-remove, table": lambda: (
            [np.insert(x, i, v) for i in range(N + 1) for v in (0.0, 1.0)]
            + [np.delete(x, i) for i in every]
        ),
    }[kind]()


def level(rows):
    """Symmetric, so that the places of the changed rows are the last ones."""
    rows = np.sort(np.asarray(rows, float).ravel())
    return float(rows[-1] + rows.mean() + (rows**2).mean())


SETTINGS = {
    "three rows": {"distance": 3, "symmetric": True, "f": level},
    "worst place": {"position": "worst"},
    "simultaneous": {"protect": "simultaneous"},
    "table": {"protect": "table", "values": [0.0, 0.5, 1.0]},
    "monotone": {"protect": "table", "monotone": True},
    "add-remove": {"neighbours": "add-remove", "symmetric": True, "f": level},
    "add-remove, worst": {"neighbours": "add-remove", "position": "worst"},
    "add-remove, table": {"neighbours": "add-remove", "protect": "table", "values": [0, 1]},
}
FRESH = {"three rows": 3, "simultaneous": N, "table": 0, "monotone": 0, "add-remove, table": 0}


@pytest.mark.parametrize("kind", SETTINGS)
def test_movements_are_those_of_plain_code(kind):
    """The draws equal a recomputation from copied tables, and the largest neighbour counts."""
    s = sample(seed=5, **SETTINGS[kind])
    f, expected = SETTINGS[kind].get("f", uneven), []
    for rng in streams(5, 0, PAIRS):
        x, others = neighbours_of(kind, UNIT.draw(rng, N + FRESH.get(kind, 1)))
        expected.append(max(abs(f(x) - f(y)) for y in others))
    assert s.draws == pytest.approx(np.sort(expected), rel=1e-12)


@pytest.mark.parametrize("kind", SETTINGS)
def test_stacked_tables_move_as_far_as_single_ones(kind):
    """In batch mode, with as many trials as make a block of one, the movements are the same."""
    settings = SETTINGS[kind] | {"gamma": 0.5}
    f = settings.pop("f", uneven)
    single = sample(f, seed=3, **settings)
    stacked = sample(lambda t: np.array([f(rows) for rows in t]), seed=3, batch=True, **settings)
    assert stacked.pairs == 1
    assert stacked.value == pytest.approx(single.value, rel=1e-12)


@pytest.fixture
def asked_here_alone(monkeypatch):
    """A function that notes its calls is not asked again in a new process, which takes seconds."""
    monkeypatch.setattr("hushed.sensitivity._sampler.check_anew", lambda *_: None)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.usefixtures("asked_here_alone")
def test_random_places_change_what_is_said(batch):
    """Three places of a table change at once; one row more at any place; one less at any place."""
    calls = []

    def noting(rows):
        calls.append(np.array(rows if batch else [rows]))
        found = np.array([uneven(each) for each in calls[-1]])
        return found if batch else found[0]

    places = {"changed": set(), "added": set(), "left out": set()}
    for settings in ({"distance": 3}, {"neighbours": "add-remove"}):
        calls.clear()
        sample(noting, pairs=40, gamma=None, batch=batch, **settings)
        for first, second in [(a, b) for i in (1, 2) for a, b in zip(calls, calls[i:])]:  # noqa: B905
            if first.shape[1] != N or len(first) != len(second):
                continue
            for x, y in zip(first, second, strict=True):
                if len(y) == N and settings == {"distance": 3} and 0 < (x != y).sum() < N:
                    assert (x != y).sum() == 3
                    places["changed"] |= set(np.flatnonzero(x != y))
                if len(y) == N + 1:
                    places["added"] |= {i for i in range(N + 1) if (np.delete(y, i) == x).all()}
                if len(y) == N - 1:
                    places["left out"] |= {i for i in range(N) if (np.delete(x, i) == y).all()}
    assert places == {
        "changed": set(range(N)),
        "added": set(range(N + 1)),
        "left out": set(range(N)),
    }


def as_list(rng, count):
    return [float(v) for v in rng.random(count)]


KINDS = {
    "list": (as_list, [0.0, 1.0]),
    "rows of a list": (lambda rng, k: [(float(v), "a") for v in rng.random(k)], [[0.0, "a"]]),
    "pandas": (lambda rng, k: pd.DataFrame({"v": rng.random(k), "k": "a"}), [[0.0, "a"]]),
    "polars": (lambda rng, k: pl.DataFrame({"v": rng.random(k), "k": "a"}), [[0.0, "a"]]),
    "objects": (lambda rng, k: rng.random(k).astype(object), [0.0]),
    "columns": (lambda rng, k: rng.random((k, 2)), [[0.0, 1.0]]),
}


def first_column(rows):
    if isinstance(rows, pd.DataFrame | pl.DataFrame):
        return uneven(rows["v"].to_numpy())
    if isinstance(rows, list):
        return uneven([row[0] if isinstance(row, tuple) else row for row in rows])
    return uneven(rows[:, 0] if rows.ndim > 1 else rows)


@pytest.mark.slow_cases("add-remove, worst-pandas", "table-pandas", "three rows-pandas")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("promise", ["three rows", "add-remove, worst", "table"])
def test_all_containers_give_the_same_movements(kind, promise):
    """Rows in lists and frames are replaced, added and left out as in an array, and verified."""
    draw, values = KINDS[kind]
    settings = {k: v for k, v in SETTINGS[promise].items() if k not in ("f", "symmetric")}
    if promise == "table":
        settings["values"] = values
    population = hs.populations.Simulator(draw, name="rows")
    s = sample(first_column, population, seed=2, **settings)
    if promise != "table" and kind not in ("columns",):
        plain = hs.populations.Simulator(lambda rng, k: rng.random(k), name="plain")
        assert s.draws == pytest.approx(sample(seed=2, population=plain, **settings).draws)
    data = draw(np.random.default_rng(77), N)
    certificate = hs.release(first_column, data, hs.Laplace(s, epsilon=1.0)).certificate
    read = hs.Certificate.from_json(certificate.to_json())
    assert hs.verify(read, first_column, population=population).reproduced


class TestAddedAndRemoved:
    """The number of rows is private, and the promise is for the stated numbers alone."""

    def test_a_count_of_rows_moves_by_exactly_one(self):
        """The exact sensitivity of the number of rows, and of its square at several sizes."""
        assert sample(len, neighbours="add-remove").value == 1.0
        s = sample(lambda r: len(r) ** 2, rows=[5, 9, 7], neighbours="add-remove")
        assert s.value == 2 * 9 + 1
        assert s.sampling.sizes == (5, 7, 9)

    @pytest.mark.slow_cases("allow-pandas", "clamp-pandas")
    @pytest.mark.parametrize("kind", ["list", "pandas", "polars", "objects", "columns"])
    @pytest.mark.parametrize("outside", ["clamp", "allow"])
    def test_an_empty_table_is_a_table(self, kind, outside):
        """Of any kind; whether a table is empty is not told by a refusal."""
        draw, _ = KINDS[kind]
        bounds = {"v": (0, 1)} if kind in ("pandas", "polars") else None
        source = hs.populations.Simulator(draw, name="rows", bounds=bounds)
        s = sample(len, source, neighbours="add-remove")
        empty = draw(np.random.default_rng(0), 5)[:0]
        found = hs.release(len, empty, hs.Laplace(s, epsilon=1.0), outside=outside)
        assert abs(found.value) < 40

    @pytest.mark.parametrize("rows", [0, 1, 5, 6, 7, 500])
    def test_no_release_is_refused_for_its_number_of_rows(self, rows, ledger):
        """Whatever the private number of rows is, the same is charged and the same is said."""
        s = sample(len, rows=[5, 6], neighbours="add-remove")
        released = hs.release(len, np.zeros(rows), hs.Laplace(s, epsilon=1.0), ledger, budget="b")
        assert abs(released.value - rows) < 40
        words = released.certificate.explain()
        assert "THE PROMISE IS FOR TABLES OF 5 or 6 ROWS" in words
        assert "with one row added or removed" in words
        assert released.certificate.guarantee.neighbours == "add-remove"

    def test_a_function_of_one_size_is_refused_on_public_rows(self):
        """What fails on another number of rows never gets to the private ones."""

        def strict(rows):
            if len(rows) != N:
                raise ValueError("six rows")
            return rows.sum()

        with pytest.raises(BadFunction):
            sample(strict, neighbours="add-remove")
        with pytest.raises(BadFunction, match="changes shape"):
            sample(lambda r: r, neighbours="add-remove")

    def test_it_is_charged_to_its_own_kind_of_budget(self, tmp_path):
        """A budget for replaced rows takes no charge for added ones, and the other way round."""
        book = hs.Ledger(f"sqlite:///{tmp_path / 'l.db'}")
        for name, kind in (("swap", "replace-one"), ("add", "add-remove")):
            book.open_budget(name, hs.Guarantee(epsilon=9.0, gamma=0.5, neighbours=kind))
        m = hs.Laplace(sample(len, neighbours="add-remove"), epsilon=1.0)
        hs.release(len, np.zeros(3), m, book, budget="add")
        with pytest.raises(ParameterError, match="for replace-one neighbours"):
            hs.release(len, np.zeros(3), m, book, budget="swap")
        assert book.balance("add").spent.gamma == 0.2

    def test_no_chain_and_no_blocks(self):
        """What rests on a known number of rows refuses them."""
        s = sample(len, neighbours="add-remove")
        with pytest.raises(ParameterError, match="added and removed"):
            hs.transformations.from_sensitivity(len, s)
        with pytest.raises(ParameterError, match="average over blocks"):
            sample(hs.Blockwise(len, rows=3), neighbours="add-remove")


class TestSeveralRowsAtOnce:
    """Epsilon is for so many rows together, and is never mixed with that of one."""

    def test_the_guarantee_says_how_many(self):
        """It says so in its fields and in words."""
        s = sample(distance=3)
        assert s.guarantee(1.0).distance == 3
        words = hs.release(uneven, np.zeros(N), hs.Laplace(s, epsilon=1.0)).certificate.explain()
        assert "with 3 rows at once replaced by others" in words
        assert "fewer or more replaced rows" in words

    def test_promises_for_different_numbers_do_not_join(self, tmp_path):
        """Neither composition nor a budget adds them up; a budget of its own takes them."""
        one, three = (sample(distance=t).guarantee(1.0) for t in (1, 3))
        with pytest.raises(ParameterError, match="replaced at once"):
            hs.compose([one, three], method="basic", delta=0.0)
        with pytest.raises(ParameterError, match="several rows"):
            hs.parallel([three, three], membership="public")
        with pytest.raises(ParameterError, match="3 rows: release"):
            hs.transformations.from_sensitivity(uneven, sample(distance=3))
        book = hs.Ledger(f"sqlite:///{tmp_path / 'l.db'}")
        book.open_budget("one", hs.Guarantee(epsilon=9.0, gamma=0.9))
        book.open_budget("three", hs.Guarantee(epsilon=9.0, gamma=0.9, distance=3))
        with pytest.raises(ParameterError, match=r"1 row\(s\) replaced at once, the charge for 3"):
            book.charge("one", three)
        with pytest.raises(ParameterError, match="distance=1"):
            book.charge("three", one)
        book.charge("three", three)
        again = hs.Ledger(f"sqlite:///{tmp_path / 'l.db'}", create=False)
        assert [each.guarantee.distance for each in again.entries("three")] == [3]
        assert again.balance("three").spent.distance == 3


@pytest.mark.parametrize(
    "promise",
    [
        {"distance": 3},
        {"distance": 3, "delta": 0.1, "gamma": 0.1, "estimates": (("a.b", 0.1),)},
        {"protect": "table", "gamma": 0.1},
    ],
)
def test_postgres_takes_and_gives_back_what_a_charge_is_for(promise, postgres_url):
    """Its check of the written form knows distances, and given replacements."""
    limit = {k: v for k, v in promise.items() if k in ("distance", "protect")}
    with hs.Ledger(postgres_url) as book:
        book.open_budget("b", hs.Guarantee(epsilon=9.0, delta=0.5, gamma=0.5, **limit))
        charged = hs.Guarantee(epsilon=1.0, **promise)
        book.charge("b", charged)
        assert [each.guarantee for each in book.entries("b")] == [charged]


class TestGivenReplacements:
    """Every neighbour of a typical table whose new row is given, and no second one."""

    def test_the_largest_value_has_its_exact_movement(self):
        """Of the largest of n rows, the ends 0 and 1 move it to 1, or to the second largest."""
        s = sample(np.max, protect="table", monotone=True)
        tables = [np.sort(UNIT.draw(rng, N)) for rng in streams(0, 0, PAIRS)]
        assert s.value == max(max(1 - x[-1], x[-1] - x[-2]) for x in tables)

    def test_words_and_joining(self):
        """The certificate names the values; promises against fresh draws are not joined to it."""
        s = sample(protect="table", values=[0, 1])
        certificate = hs.release(uneven, np.zeros(N), hs.Laplace(s, epsilon=1.0)).certificate
        assert certificate.sampling.values == ((0.0,), (1.0,))
        assert "one of the 2 rows that were given" in certificate.explain()
        assert "there is no group privacy" in certificate.explain()
        assert "costs epsilon again" not in certificate.explain()
        with pytest.raises(ParameterError, match="given replacements"):
            hs.compose([s.guarantee(1.0), sample().guarantee(1.0)], method="basic", delta=0.0)

    @pytest.mark.parametrize(("limit", "charge"), [("table", "record"), ("everyone", "table")])
    def test_budgets_take_one_kind(self, limit, charge, tmp_path):
        """A budget about fresh draws takes no charge about given rows, nor the other way round."""
        book = hs.Ledger(f"sqlite:///{tmp_path / 'l.db'}")
        book.open_budget("b", hs.Guarantee(epsilon=9.0, gamma=0.5, protect=limit))
        with pytest.raises(ParameterError, match="given replacements only"):
            book.charge("b", hs.Guarantee(epsilon=1.0, gamma=0.1, protect=charge))
        book.charge("b", hs.Guarantee(epsilon=1.0, gamma=0.1, protect=limit))
        book.charge("b", hs.Guarantee(epsilon=1.0))  # without gamma it is for every pair

    @pytest.mark.parametrize("batch", [False, True])
    def test_a_function_that_is_not_monotone_is_found_out(self, batch):
        """An answer that is largest inside of the range is refused where the ends are to do."""

        def bump(rows):
            return np.sin(np.pi * rows).sum(axis=-1)

        with pytest.raises(BadFunction, match="declared monotone"):
            sample(bump, protect="table", monotone=True, batch=batch)
        assert sample(bump, protect="table", values=[0.0, 0.5, 1.0], batch=batch).value > 0.5

    def test_ends_are_not_enough_for_several_numbers_of_several_columns(self):
        """Two monotone numbers may move further together inside; so l1 is refused, and sup not."""
        box = hs.populations.Uniform(low=[0, 0], high=[1, 1])

        def staircase(rows):
            first, second = rows[:, 0], rows[:, 1]
            up, down = np.minimum(2 * first, 1), np.minimum(2 - 2 * first, 1)
            return np.array([(second * up).sum(), (second * down).sum()])

        base = np.zeros((N, 2))
        moves = [np.abs(staircase(put(base, 0, z))).sum() for z in ((0, 1), (1, 1), (0.5, 1))]
        assert moves == [1.0, 1.0, 2.0]
        with pytest.raises(ParameterError, match="norm='sup'"):
            sample(staircase, box, protect="table", monotone=True)
        assert sample(staircase, box, protect="table", monotone=True, norm="sup").value <= 1.0
        normal = hs.populations.Normal(mean=0, std=1)
        with pytest.raises(ParameterError, match="public range of every column"):
            sample(np.max, normal, protect="table", monotone=True)


class TestCertificates:
    """What was compared is on the certificate, and cannot be changed on it."""

    @pytest.mark.parametrize(
        ("kind", "field", "value"),
        [
            ("three rows", "distance", 2),
            ("three rows", "neighbours", "add-remove"),
            ("worst place", "protect", "table"),
            ("add-remove", "sizes", [5]),
            ("add-remove", "sizes", []),
            ("add-remove", "neighbours", "replace-one"),
            ("table", "values", []),
            ("worst place", "values", [[1.0]]),
            ("worst place", "monotone", True),
            ("three rows", "position", "worst"),
        ],
    )
    def test_a_changed_promise_is_refused(self, kind, field, value):
        """A certificate that says another neighbourhood contradicts itself."""
        settings = dict(SETTINGS[kind])
        s = sample(settings.pop("f", uneven), seed=1, **settings)
        text = hs.release(s.sampling.called, np.full(N, 0.5), hs.Laplace(s, epsilon=1.0))
        record = json.loads(text.certificate.to_json())
        assert hs.Certificate.from_json(json.dumps(record))
        record["sampling"][field] = value
        with pytest.raises(ParameterError, match="contradicts itself"):
            hs.Certificate.from_json(json.dumps(record))

    @pytest.mark.parametrize(
        ("kind", "field", "value"),
        [("worst place", "position", "random"), ("table", "values", [[0.0], [0.5], [0.9]])],
    )
    def test_another_promise_is_not_reproduced(self, kind, field, value):
        """Where the numbers may fit, sampling again gives others."""
        s = sample(seed=1, **SETTINGS[kind])
        text = hs.release(uneven, np.full(N, 0.5), hs.Laplace(s, epsilon=1.0)).certificate.to_json()
        assert hs.verify(text, uneven).reproduced
        record = json.loads(text)
        record["sampling"][field] = value
        assert not hs.verify(json.dumps(record), uneven).reproduced


def test_shifts_count_the_rows_that_the_promise_is_about():
    """Pinsker's step grows with the root of the number of random rows."""
    tau, involved = 1e-8, {"three rows": 9, "worst place": 7, "table": 6, "add-remove": 7}
    for kind, rows in involved.items():
        settings = dict(SETTINGS[kind])
        s = sample(settings.pop("f", uneven), **settings)
        assert s.shifted(tau).gamma - s.gamma == pytest.approx((rows * tau / 2) ** 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SETTINGS)
@pytest.mark.usefixtures("asked_here_alone")
def test_calls_are_counted(kind):
    """Ten more trials ask the function as many times more as is said."""
    counted, calls = [], []

    def counting(rows):
        counted.append(1)
        return level(rows)

    settings = {k: v for k, v in SETTINGS[kind].items() if k != "f"}
    for pairs in (12, 22):
        before = len(counted)
        s = sample(counting, pairs=pairs, gamma=None, **settings)
        calls.append((s.calls, len(counted) - before))
    assert calls[1][0] - calls[0][0] == calls[1][1] - calls[0][1] > 0


def test_all_removals_share_gamma():
    """Under protect="everyone" each of the n pairs is held to gamma / n, removed rows, too."""
    s = sample(neighbours="add-remove", protect="everyone")
    assert s.pairs == 5 * N - 1
    assert "for all rows of the table, each removed" in _words(s)


def _words(s):
    return hs.release(uneven, np.zeros(N), hs.Laplace(s, epsilon=1.0)).certificate.explain()


class TestRemarks:
    """What speaks against relying on the kept movement is said, with figures."""

    def test_little_moves(self):
        """Three in four movements are 0, and a few are large."""
        s = sample(lambda r: float(r[0] > 0.9), rows=4, pairs=200, gamma=0.3)
        zero = int((s.draws == 0).sum())
        assert f"at least {zero} of the 200 sampled movements ({zero} are 0)" in s.explain()
        assert "Little moves" not in sample().explain()

    def test_nothing_moves(self):
        """A function that reacts to rarer rows than were drawn: said before a mechanism refuses."""
        s = sample(lambda r: float(r.max() > 1 - 1e-9), rows=4, pairs=30, gamma=0.3)
        assert s.value == s.draws[-1] == 0
        assert "Nothing moves: none of the 30 sampled movements is above 0" in s.explain()
        with pytest.raises(hs.errors.ZeroSensitivity):
            hs.Laplace(s, epsilon=1.0)
        assert "Nothing moves" not in sample().explain()

    def test_a_jump_that_was_not_kept(self):
        """One movement in a hundred is far beyond the kept one; where it is kept, nothing is."""
        jumpy = lambda r: 50.0 * (r.max() > 0.999) + r.mean()  # noqa: E731
        s = sample(jumpy, rows=10, pairs=400, gamma=0.2, symmetric=True)
        over = int((s.draws > 10 * s.value).sum())
        assert over > 0
        said = f"up to {over} of the 400 sampled movements are more than 10 times"
        assert said in s.explain()
        data = np.full(10, 0.5)
        words = hs.release(jumpy, data, hs.Laplace(s, epsilon=1.0)).certificate.explain()
        assert "sampled movements are more than 10 times" in words
        assert "A jump" not in sample(jumpy, rows=10, pairs=99, gamma=0.01).explain()

    def test_the_advice_on_places_works_for_blocks(self):
        """Averages over blocks do not go with position='worst', and a place is one of a block."""
        f = hs.Blockwise(lambda rows: rows[0] * 3 + rows.mean(), rows=4)
        s = hs.sample_sensitivity(f, UNIT, rows=8, gamma=0.4)
        assert "1 whole place among 4 of each block" in s.explain()
        assert "position='worst'" not in s.explain()

    @pytest.mark.parametrize(
        ("settings", "said"),
        [
            ({"rows": 5}, True),
            ({"rows": 4}, False),
            ({"rows": 50, "symmetric": True, "f": level}, False),
            ({"rows": 50, "position": "worst"}, False),
            ({"rows": 50, "protect": "simultaneous"}, False),
            ({"rows": 5, "neighbours": "add-remove"}, True),
        ],
    )
    def test_whole_places_left_out(self, settings, said):
        """From n = 1 / gamma on, a place may be left out, unless order or place is covered."""
        s = sample(**settings)
        assert ("leaves room for 1 whole place among 5" in s.explain()) == said
        assert ("whole place" in s.explain()) == said
        data = np.full(settings["rows"], 0.5)
        f = settings.get("f", uneven)
        words = hs.release(f, data, hs.Laplace(s, epsilon=1.0)).certificate.explain()
        assert ("whole place" in words) == said
