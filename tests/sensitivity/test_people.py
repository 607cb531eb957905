"""People with several rows: sampled, released and certified as a whole."""

import dataclasses
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hushed as hs
from hushed.errors import BadRows
from hushed.populations import PublicTable, Simulator, Uniform, Users

LAW = {1: 0.7, 2: 0.2, 30: 0.1}


def write(container, owners, values):
    """One table of people in each container, and how its column of users is named."""
    names = [f"p{each}" for each in owners]
    if container == "array":
        return np.column_stack([owners, values]).astype(float), 0
    if container == "objects":
        table = np.empty((len(names), 2), dtype=object)
        table[:, 0], table[:, 1] = names, values
        return table, 0
    if container == "fields":
        table = np.empty(len(names), dtype=[("who", "U9"), ("cost", float)])
        table["who"], table["cost"] = names, values
        return table, "who"
    if container == "tuples":
        return list(zip(names, values.tolist(), strict=True)), 0
    if container == "dicts":
        return [{"who": a, "cost": b} for a, b in zip(names, values.tolist(), strict=True)], "who"
    return {"pandas": pd, "polars": pl}[container].DataFrame({"who": names, "cost": values}), "who"


def read(table):
    """Owners and values of such a table."""
    if isinstance(table, list):
        cells = [list(row.values()) if isinstance(row, dict) else row for row in table]
        return np.array([each[0] for each in cells]), np.array([each[1] for each in cells])
    if isinstance(table, np.ndarray) and table.dtype.names:
        return table["who"], table["cost"]
    if isinstance(table, np.ndarray):
        owners = np.array(table[:, 0].tolist())
        owners = owners.astype(int) if owners.dtype.kind == "f" else owners
        return owners, table[:, 1].astype(float)
    return table["who"].to_numpy(), table["cost"].to_numpy()


def middle_total(rows):
    """Median over people of the sum of their values; fails where people are not 0, 1, 2, ..."""
    owners, values = read(rows)
    assert owners.dtype.kind == "i"
    assert owners.tolist() == sorted(owners.tolist())
    assert set(owners.tolist()) == set(range(9))
    return float(np.median(np.bincount(owners, weights=values)))


def people(rng, count, start=0):
    """Owners and values of so many people with 1 to 5 rows, in no order."""
    owners = np.repeat(rng.permutation(10 * count)[:count] + start, rng.integers(1, 6, count))
    places = rng.permutation(len(owners))
    return owners[places], rng.normal(size=len(owners))


CONTAINERS = ["array", "objects", "fields", "tuples", "dicts", "pandas", "polars"]


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_the_same_movements(container):
    """Whatever holds the rows, the same people are exchanged; a release finds them by any name."""
    rng = np.random.default_rng(1)
    owners, values = people(rng, 10 * 12)
    population, user = write(container, owners, values)
    s = hs.sample_sensitivity(
        middle_total, PublicTable(population), rows=9, pairs=12, calibration="marginal", user=user
    )
    plain = write("array", owners, values)[0]
    wanted = hs.sample_sensitivity(
        middle_total, PublicTable(plain), rows=9, pairs=12, calibration="marginal", user=0
    )
    np.testing.assert_array_equal(s.draws, wanted.draws)
    assert wanted.value > 0
    private, _ = write(container, *people(rng, 9, start=5000))
    released = hs.release(middle_total, private, hs.Laplace(s, epsilon=1e6))
    owners, values = read(private)
    _, codes = np.unique(owners.astype(str), return_inverse=True)
    exact = np.median(np.bincount(codes, weights=values))
    assert released.value == pytest.approx(exact, abs=1e-3)


def whole_person(rng):
    """One person with three rows that are all equal: 0 or 1."""
    return np.full(3, float(rng.integers(2)))


def test_all_rows_of_a_person_are_replaced_and_no_other():
    """A sum of people whose three rows are equal moves by 3 or not at all, never by 1 or 2."""
    s = hs.sample_sensitivity(
        lambda rows: rows[:, 1].sum(), Users(whole_person), rows=8, pairs=60, user=0
    )
    assert set(s.draws.tolist()) == {0.0, 3.0}
    assert (s.unit, s.guarantee(1.0).unit) == ("user", "user")


def test_both_tables_of_a_pair_differ_in_one_person_alone():
    """The vector of the sums of all people moves in one place, by that person's own values."""
    values = Users(Uniform(low=0, high=1), sizes=LAW)

    def totals(rows):
        return np.bincount(rows[:, 0].astype(int), weights=rows[:, 1], minlength=7)

    ones = hs.sample_sensitivity(totals, values, rows=7, pairs=80, user=0, norm="l1")
    largest = hs.sample_sensitivity(totals, values, rows=7, pairs=80, user=0, norm="sup")
    np.testing.assert_allclose(ones.draws, largest.draws, rtol=1e-9)
    assert ones.draws[-1] > 5  # somebody with thirty rows


@pytest.mark.parametrize("protect", ["record", "everyone", "simultaneous"])
def test_no_two_tables_share_a_person(protect):
    """A finite table of people is dealt: each of them is in one pair at most."""
    rng = np.random.default_rng(3)
    owners = np.repeat(np.arange(400), rng.integers(1, 6, 400))
    table = np.column_stack([owners, owners * 1.0])
    s = hs.sample_sensitivity(
        lambda rows: float(np.median(rows[:, 1])),
        PublicTable(table),
        rows=5,
        pairs=30,
        calibration="marginal",
        protect=protect,
        user=0,
    )
    design = s.sampling.design
    drawn = [set(design.draw(rng, trial).rows[:, 1].tolist()) for trial in range(30)]
    assert all(len(each) == design.count for each in drawn)
    assert len(set.union(*drawn)) == 30 * design.count


def test_too_few_people_are_counted_as_people():
    """It says how many users are needed, which gamma the given ones support, and what to do."""
    owners, values = people(np.random.default_rng(4), 300)
    table, user = write("pandas", owners, values)
    with pytest.raises(hs.errors.TooFewRows, match="101 users of their own") as few:
        hs.sample_sensitivity(
            lambda rows: rows["cost"].mean(), PublicTable(table), rows=100, gamma=0.1, user=user
        )
    assert (few.value.given, few.value.needed) == (300, 46 * 101)
    assert "hs.Blockwise(f, rows=5, user='who')" in str(few.value)


def cost_mean(rows):
    """Mean over all rows."""
    return rows["cost"].mean()


@pytest.mark.slow
def test_blocks_of_people_are_averaged():
    """A person is in one block, so that the average over four moves by a quarter."""
    owners, values = people(np.random.default_rng(5), 400)
    table, user = write("pandas", owners, values)
    blockwise = hs.Blockwise(cost_mean, rows=10, user=user)
    given = {"gamma": 0.1, "calibration": "marginal", "user": user}
    s = hs.sample_sensitivity(blockwise, PublicTable(table), rows=40, **given)
    whole = hs.sample_sensitivity(cost_mean, PublicTable(table), rows=10, **given)
    assert s.value == pytest.approx(whole.value / 4, rel=1e-2)
    private, _ = write("pandas", *people(np.random.default_rng(6), 40))
    released = hs.release(blockwise, private, hs.Laplace(s, epsilon=1e6))
    assert abs(released.value) < 5
    assert hs.verify(released.certificate, blockwise, population=PublicTable(table)).reproduced
    with pytest.raises(hs.errors.ParameterError, match="the blocks are of rows"):
        hs.sample_sensitivity(
            hs.Blockwise(cost_mean, rows=10), PublicTable(table), rows=40, **given
        )


COSTS = Users(Uniform(low=0, high=1), sizes=LAW)


def capped_mean(rows):
    """Mean over people of their sums, each at most 5."""
    return np.minimum(np.bincount(rows[:, 0].astype(int), weights=rows[:, 1]), 5).mean()


@pytest.fixture(scope="module")
def sampled():
    """Twenty people of a law."""
    return hs.sample_sensitivity(capped_mean, COSTS, rows=20, gamma=0.1, user=0)


@pytest.fixture
def private():
    """Twenty people with odd names."""
    rows = COSTS.draw(np.random.default_rng(7), 20)
    rows[:, 0] = np.random.default_rng(8).permutation(10_000)[:20][rows[:, 0].astype(int)]
    return rows[np.random.default_rng(9).permutation(len(rows))]


def test_a_certificate_says_people_and_is_reproduced(sampled, private):
    """Words speak of people, the record names the column, and the sampling is run again from it."""
    released = hs.release(capped_mean, private, hs.Laplace(sampled, epsilon=1.0))
    certificate = hs.Certificate.from_json(released.certificate.to_json())
    text = certificate.explain()
    assert certificate == released.certificate
    assert (certificate.guarantee.unit, certificate.sampling.user) == ("user", 0)
    assert "all rows of one person replaced by all rows of another" in text
    assert "Among the 20 people of the table" in text
    assert "somebody with several is protected less" not in text
    assert hs.verify(certificate, capped_mean).reproduced


@pytest.mark.parametrize(
    ("part", "changed"),
    [
        ("guarantee", {"unit": "row"}),
        ("sampling", {"user": None}),
        ("sampling", {"user": 1}),
        ("sampling", {"population": {"kind": "simulator", "name": "people"}, "support": []}),
    ],
)
def test_a_certificate_that_mixes_rows_and_people_is_refused(sampled, private, part, changed):
    """Unit, column and population have to agree."""
    released = hs.release(capped_mean, private, hs.Laplace(sampled, epsilon=1.0))
    stated = json.loads(released.certificate.to_json())
    hs.Certificate.from_json(json.dumps(stated))
    stated[part] |= changed
    with pytest.raises(hs.errors.ParameterError, match="user"):
        hs.Certificate.from_json(json.dumps(stated))


def test_a_sensitivity_of_people_is_not_made_one_of_rows(sampled):
    """Its unit is that of the pairs that were sampled."""
    with pytest.raises(hs.errors.ParameterError, match="all rows of one user"):
        dataclasses.replace(sampled, unit="row")


@pytest.mark.parametrize("kind", ["table", "simulator"])
def test_a_range_of_names_is_left_out(private, kind):
    """Bounds may be given for all columns: places in the column of people are moved by none."""
    fresh = COSTS.draw(np.random.default_rng(14), 500)
    fresh[:, 0] += 1000
    bounds = [(1000, 2000), (0, 1)]
    population = PublicTable(fresh, bounds=bounds)
    if kind == "simulator":
        shifted = np.array([1000.0, 0.0])
        population = Simulator(lambda rng, count: COSTS.draw(rng, count) + shifted, bounds=bounds)
    s = hs.sample_sensitivity(
        capped_mean, population, rows=20, pairs=20, calibration="marginal", user=0
    )
    assert [each.column for each in s.sampling.support] == ["1"]
    private[:, 1] = 5.0  # beyond the range
    released = hs.release(capped_mean, private, hs.Laplace(s, epsilon=1e6))
    _, sizes = np.unique(private[:, 0], return_counts=True)
    assert released.value == pytest.approx(np.minimum(sizes, 5).mean(), abs=1e-3)


def test_people_are_charged_to_a_budget_of_people_only(sampled, private, tmp_path):
    """A budget of rows refuses the charge and keeps all of its balance; one of users takes it."""
    mechanism = hs.Laplace(sampled, epsilon=0.5)
    with hs.Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        for unit in ("row", "user"):
            limit = hs.Guarantee(epsilon=1.0, gamma=0.2, unit=unit)
            ledger.open_budget(unit, limit)
        with pytest.raises(hs.errors.HushedError, match="one row, the charge one user"):
            hs.release(capped_mean, private, mechanism, ledger, budget="row")
        assert not ledger.entries("row")
        hs.release(capped_mean, private, mechanism, ledger, budget="user")
        assert len(ledger.entries("user")) == 1


def test_another_number_of_people_is_refused_before_the_charge(sampled, private, tmp_path):
    """As with rows: the number of people is public, and nothing is charged."""
    with hs.Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        ledger.open_budget("b", hs.Guarantee(epsilon=1.0, gamma=0.2, unit="user"))
        fewer = private[private[:, 0] != private[0, 0]]
        with pytest.raises(hs.errors.BadRows, match="for 20 users, the table has 19"):
            hs.release(capped_mean, fewer, hs.Laplace(sampled, epsilon=1), ledger, budget="b")
        assert not ledger.entries("b")


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_rows_of_nobody_are_refused_without_a_word_of_them(missing, tmp_path):
    """One missing name refuses the table before the charge; neither names nor places are told."""
    owners, values = people(np.random.default_rng(10), 200)
    table, user = write("pandas", owners, values)
    s = hs.sample_sensitivity(
        cost_mean, PublicTable(table), rows=9, calibration="marginal", pairs=12, user=user
    )
    private, _ = write("pandas", *people(np.random.default_rng(11), 9, start=70_000))
    private.loc[3, "who"] = missing
    with hs.Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        ledger.open_budget("b", hs.Guarantee(epsilon=1.0, gamma=0.2, unit="user"))
        with pytest.raises(hs.errors.BadRows, match="nobody knows whose") as refused:
            hs.release(cost_mean, private, hs.Laplace(s, epsilon=1), ledger, budget="b")
        assert not any(name in str(refused.value) for name in private["who"].dropna())
        assert not ledger.entries("b")


def sizes_of(rows):
    """How many rows people have, sorted."""
    return np.sort(np.bincount([row[0] for row in rows])).astype(float)


def test_names_are_compared_as_blocks_compare_them():
    """1, 1.0 and True name one person; the text '1' names another, in cells of objects."""
    names = (1, "1", 1.0, (2, "b"), True, "1", (2, "b"))
    s = hs.sample_sensitivity(
        sizes_of,
        Simulator(
            lambda rng, count: [
                (person, float(rng.random()))
                for person in range(count)
                for _ in range(rng.integers(1, 4))
            ]
        ),
        rows=3,
        pairs=12,
        calibration="marginal",
        user=0,
    )
    private = [(name, 0.5) for name in names]
    released = hs.release(sizes_of, private, hs.Laplace(s, epsilon=1e6))
    np.testing.assert_allclose(released.value, [2, 2, 3], atol=1e-3)
    parts = hs.Blocks(low=0, high=1, epsilon=10.0, blocks=40, user=0).split(private)
    assert {len([row for row in part if row[0] == 1]) for part in parts} == {0, 3}


def first_value(rows):
    """Value of the person who comes first: nothing but order."""
    return rows[0, 1]


@pytest.mark.slow
def test_private_people_come_in_a_random_order(private):
    """Nobody's place follows from the table: each of three people comes first now and then."""
    s = hs.sample_sensitivity(
        first_value, Users(Uniform(low=0, high=100), sizes=2), rows=3, pairs=30, user=0
    )
    table = np.array([[7.0, 10], [7, 10], [5, 50], [6, 90], [5, 50], [6, 90]])
    mechanism = hs.Laplace(s, epsilon=1e5)
    found = {round(hs.release(first_value, table, mechanism).value) for _ in range(60)}
    assert found == {10, 50, 90}  # misses one with chance 3 * (2/3)**60


@pytest.mark.parametrize("part", [slice(None), slice(5, None)])
def test_the_private_table_itself_is_no_population_of_people(private, part):
    """That people are sampled hides neither the table nor its memory; others are let be."""
    fresh = COSTS.draw(np.random.default_rng(12), 300)
    for table, refused in ((private[part], True), (fresh, False)):
        population = PublicTable(table, promise="table")
        s = hs.sample_sensitivity(capped_mean, population, rows=20, pairs=60, user=0)
        mechanism = hs.Laplace(s, epsilon=1.0)
        if refused:
            with pytest.raises(hs.errors.PrivateRowsAsPopulation):
                hs.release(capped_mean, private, mechanism)
        else:
            assert np.isfinite(hs.release(capped_mean, private, mechanism).value)


def test_private_values_are_moved_into_the_range_and_names_are_not(sampled, private):
    """A value of 10^9 counts as the 1 that the law ends with; a name of 10^4 does no harm."""
    private[:, 1] = 1e9
    released = hs.release(capped_mean, private, hs.Laplace(sampled, epsilon=1e6))
    _, sizes = np.unique(private[:, 0], return_counts=True)
    assert released.value == pytest.approx(np.minimum(sizes, 5).mean(), abs=1e-3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"batch": True, "user": 0}, "different numbers of rows"),
        ({"unit": "person", "user": 0}, "not both"),
        ({}, "say user=0"),
        ({"user": 1}, "say user=0"),
        ({"user": -1}, "name or the position"),
        ({"user": True}, "name or the position"),
    ],
)
def test_what_does_not_go_with_people_is_refused(given, said):
    """Each refusal says what to do."""
    with pytest.raises(hs.errors.ParameterError, match=said):
        hs.sample_sensitivity(capped_mean, COSTS, rows=20, **given)


def test_chains_refuse_people_and_say_what_releases_them(sampled):
    """No chain splits a table by its people."""
    with pytest.raises(hs.errors.ParameterError, match=r"release the function by hs\.release"):
        hs.transformations.from_sensitivity(capped_mean, sampled)


def test_every_worker_finds_the_same_people(sampled):
    """Movements do not depend on the number of workers."""
    again = hs.sample_sensitivity(capped_mean, COSTS, rows=20, gamma=0.1, user=0, workers=2)
    np.testing.assert_array_equal(again.draws, sampled.draws)


def test_a_simulator_must_give_as_many_people_as_it_is_asked_for():
    """One that gives rows is told of it."""
    rows = Simulator(
        lambda rng, count: np.column_stack([rng.integers(3, size=count), rng.random(count)])
    )
    with pytest.raises(hs.errors.BadRows, match="asked for 9 users"):
        hs.sample_sensitivity(capped_mean, rows, rows=8, user=0)


def test_a_function_of_the_order_of_people_is_not_symmetric():
    """The declaration is tried on people, not on rows."""
    with pytest.raises(hs.errors.BadFunction, match="declared symmetric"):
        hs.sample_sensitivity(first_value, COSTS, rows=20, pairs=20, user=0, symmetric=True)
    latest = Users(lambda rng: np.sort(rng.random(int(rng.integers(1, 4)))))

    def last_values(rows):  # the order of a person's own rows may matter
        ends = np.append(np.flatnonzero(np.diff(rows[:, 0])), len(rows) - 1)
        return rows[ends, 1].mean()

    hs.sample_sensitivity(last_values, latest, rows=20, pairs=20, user=0, symmetric=True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"rows": Uniform(low=0, high=1)}, "sizes="),
        ({"rows": whole_person, "sizes": 2}, "leave sizes= out"),
        ({"rows": Uniform(low=0, high=1), "sizes": 0}, "sizes must be"),
        ({"rows": Uniform(low=0, high=1), "sizes": {1: -1.0, 2: 2.0}}, "probabilities"),
        ({"rows": Uniform(low=0, high=1), "sizes": 1, "user": 1.5}, "user must be"),
        ({"rows": 3, "sizes": 1}, "population, or from a function"),
    ],
)
def test_laws_of_people_that_make_no_sense_are_refused(arguments, said):
    """When they are made, not when they are drawn from."""
    with pytest.raises(hs.errors.ParameterError, match=said):
        Users(**arguments)


def test_sizes_follow_their_probabilities():
    """Counts of 20,000 people against their probabilities, within five standard deviations."""
    rows = COSTS.draw(np.random.default_rng(13), 20_000)
    sizes = np.bincount(rows[:, 0].astype(int))
    for size, share in LAW.items():
        off = (sizes == size).sum() - 20_000 * share
        assert abs(off) < 5 * np.sqrt(20_000 * share * (1 - share))
    assert len(sizes) == 20_000


@pytest.mark.parametrize("more", [{}, {"neighbours": "add-remove", "rows": [20, 21]}])
def test_nobody_of_several_rows_stands_at_a_place(more):
    """Users are shown in a random order: no place is left out, as one of rows may be."""
    law = Users(Uniform(low=0, high=1), sizes={1: 0.5, 9: 0.5})
    asked = {"rows": 20, "gamma": 0.05, "calibration": "marginal", **more}
    of_people = hs.sample_sensitivity(np.sum, law, user=0, **asked)
    of_rows = hs.sample_sensitivity(lambda rows: rows[0] * 2, Uniform(low=0, high=1), **asked)
    assert "may never be covered" not in of_people.explain()
    assert "may never be covered" in of_rows.explain()


@pytest.mark.parametrize(
    ("user", "rows", "said"),
    [
        ("name", pd.DataFrame({"who": [1, 2], "cost": [1.0, 2.0]}), "one of the columns, spelled"),
        (0, pd.DataFrame({"who": [1, 2], "cost": [1.0, 2.0]}), "have names .*--frame pandas"),
        (2, np.zeros((4, 2)), "one of 2 columns, counted from 0"),
        (0, np.zeros(4), "such rows have none"),
    ],
)
def test_a_column_of_people_that_is_not_there_is_refused(user, rows, said):
    """Each refusal says what may be named."""
    with pytest.raises(hs.errors.BadRows, match=said):
        hs.sample_sensitivity(capped_mean, PublicTable(rows), rows=2, user=user)


@pytest.mark.parametrize(
    ("law", "said"),
    [
        (Users(lambda rng: rng.random(3)), "all rows of one come from the function '<lambda>'"),
        (
            Users(Uniform(low=0, high=1), sizes={1: 0.75, 5: 0.25}),
            "rows come from the uniform population (low 0.0, high 1.0); how many one has, with the "
            "probability of it: 1 (0.75), 5 (0.25)",
        ),
        (
            Users(Uniform(low=0, high=1), sizes=dict.fromkeys(range(1, 17), 1 / 16)),
            "7 (0.0625), 8 (0.0625), ...",
        ),
    ],
)
def test_a_certificate_says_in_words_where_people_come_from(law, said):
    """No records of the program's own: sources and numbers are named."""
    s = hs.sample_sensitivity(capped_mean, law, rows=9, calibration="marginal", pairs=9, user=0)
    private = law.draw(np.random.default_rng(3), 9)
    text = hs.release(capped_mean, private, hs.Laplace(s, epsilon=1.0)).certificate.explain()
    assert "drawn from a law of people (" in text
    assert f"{said}), and the noise" in text
    assert "{" not in text


def test_one_table_that_is_filled_again_for_each_person_is_as_good_as_new_ones():
    """What a function of a law of people gives is kept before it is asked for the next person."""
    filled = np.empty((2, 1))

    def again(rng):
        filled[:] = rng.random((2, 1))
        return filled

    def total(table):
        return table[:, 1].sum()

    each = [
        hs.sample_sensitivity(total, Users(rows), rows=5, user=0, gamma=0.2, workers=1).draws
        for rows in (again, lambda rng: rng.random((2, 1)))
    ]
    assert np.array_equal(*each)
    assert each[0].max() > 0.5


def test_people_who_have_one_number_in_common_are_refused():
    """A table of one column besides that of people is looked at, as one of several is."""
    common = Simulator(lambda rng, n: np.c_[np.arange(n), np.full(n, rng.random())])
    with pytest.raises(hs.errors.BadRows, match="more alike"):
        hs.sample_sensitivity(lambda t: t[:, 1].mean(), common, rows=8, user=0, gamma=0.2)


@pytest.mark.parametrize(
    ("promise", "words"),
    [
        ("population", "(calibration 'marginal')."),
        ("given-the-rest", "nothing is promised for a table whose other rows look different."),
        ("table", "for rows of the law behind them no gamma is established."),
    ],
)
def test_a_sensitivity_says_of_which_people_and_rows_its_promise_is(promise, words):
    """A weaker one is not told as one about the population."""
    rows = np.column_stack([np.arange(60), np.random.default_rng(0).random(60)])
    s = hs.sample_sensitivity(
        lambda t: float(t[:, 1].sum()),
        hs.populations.PublicTable(rows, promise=promise),
        rows=5,
        gamma=0.1,
        calibration="marginal",
        user=0,
        workers=1,
    )
    assert (
        "9 pairs of neighbouring tables, which differ in all rows of one person, drawn"
        in s.explain()
    )
    assert s.explain().endswith(words)
    assert ("THE PROMISE IS" in s.explain()) == (promise != "population")


@pytest.mark.parametrize("kind", [PublicTable, lambda rows: Simulator(lambda rng, count: rows)])
def test_a_column_of_users_that_was_meant_is_named(kind):
    """Of public rows; that of private ones may have a name that nobody else knows."""
    public = pd.DataFrame({"patient": np.arange(40) // 2, "cost": np.linspace(0, 1, 40)})
    asked = {"rows": 5, "gamma": 0.5, "symmetric": True}
    with pytest.raises(BadRows, match="did you mean 'patient'"):
        hs.sample_sensitivity(len, kind(public), user="Patients", **asked)
    blocks = hs.Blocks(low=0, high=1, user="patients")
    with pytest.raises(BadRows) as told:
        hs.release(len, public, blocks)
    assert "'patient'" not in str(told.value)
