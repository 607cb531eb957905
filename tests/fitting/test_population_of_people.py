"""Does a population of people fit: users summed up, one user one row, and words about users."""

import collections
import math
import statistics

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import hushed as hs
from hushed._rows._people import bundle_rows
from hushed.errors import BadRows, ParameterError
from hushed.fitting import _public
from hushed.fitting._people import choose_summaries
from hushed.fitting._tests import choose_tests
from hushed.populations import Normal, PublicTable, Uniform, Users

SIZES = {1: 0.6, 2: 0.3, 9: 0.1}
PEOPLE = Users(Uniform(low=0, high=100), sizes=SIZES)


@pytest.fixture
def crude(monkeypatch):
    """Public shares from few users: the p-value is as exact, and a test takes no time."""
    monkeypatch.setattr(_public, "_FEW", 300)
    monkeypatch.setattr(_public, "_REFERENCE", 1)
    monkeypatch.setattr(_public, "_CHOSEN_FROM", 100)


def visits(seed, users):
    """Make a frame of visits: who, what it cost (now and then unknown), and where."""
    rng = np.random.default_rng(seed)
    who = np.arange(users).repeat(rng.choice([1, 2, 9], size=users))
    cost = rng.normal(size=len(who)).round(1)
    cost[rng.random(len(who)) < 0.05] = np.nan
    ward = rng.choice(["a", "b", "c"], size=len(who))
    frame = pd.DataFrame({"who": [f"p{each}" for each in who], "cost": cost, "ward": ward})
    return frame.sample(frac=1, random_state=seed).reset_index(drop=True)


def sum_up(rows):
    """Sum up the rows of one user without NumPy."""
    cost, ward = rows["cost"].tolist(), rows["ward"].tolist()
    known = sorted(each for each in cost if not math.isnan(each))
    known += [math.nan] * (len(cost) - len(known))
    often = collections.Counter(ward)
    most = min(each for each in often if often[each] == max(often.values()))
    return [len(rows), known[0], statistics.median_low(range(len(known))), known, most, len(often)]


def test_a_user_is_summed_up_by_the_rows_of_one_alone():
    """Number of rows, least, median and largest number, and the most frequent text, by hand."""
    frame = visits(1, 60)
    table = bundle_rows(frame, "who")
    found = choose_summaries(table)
    columns = found.sum_up(table)
    assert len(columns) == len(found.names) == 6
    for place, (_, rows) in enumerate(frame.groupby("who", sort=False)):
        many, least, middle, known, most, texts = sum_up(rows)
        wanted = [many, least, known[middle], known[-1], most, texts]
        cells = [column[place] for column in columns]
        assert str(cells) == str([type(a)(b) for a, b in zip(cells, wanted, strict=True)])


def test_a_replaced_user_moves_each_number_of_users_by_one_at_most():
    """One with a single row goes, another with nine comes: the argument of the certificate."""
    tests = choose_tests(bundle_rows(visits(2, 200), "who"), "pairs")
    for seed in range(8):
        frame, other = visits(10 + seed, 30), visits(50 + seed, 1).assign(who="new")
        left = frame[frame["who"] != f"p{seed}"]
        one, two = (
            tests.count(bundle_rows(each, "who"))
            for each in (frame, pd.concat([other, left], ignore_index=True))
        )
        assert np.abs(one - two).max() == 1


@pytest.mark.slow
def test_a_population_of_people_that_fits_is_contradicted_as_often_as_the_level_says(crude):
    """Exact by exchangeability, though users have 1 to 9 rows: 5 % of 120 runs, within 1e-6."""
    rng = np.random.default_rng(3)
    found = sum(
        hs.check_population(
            PEOPLE.draw(rng, 25), PEOPLE, epsilon=2.0, tables=19, seed=seed, user=0, tests="pairs"
        ).verdict
        == "contradicted"
        for seed in range(120)
    )
    assert stats.binom.ppf(1e-6, 120, 0.05) <= found <= stats.binom.ppf(1 - 1e-6, 120, 0.05)


@pytest.mark.parametrize(
    "other",
    [
        Users(Uniform(low=0, high=100), sizes={1: 0.2, 2: 0.7, 9: 0.1}),
        Users(lambda rng: np.full((2, 1), rng.uniform(0, 100)), bounds=[(0, 100)]),
    ],
    ids=["more rows each", "rows of one person alike"],
)
def test_what_differs_between_people_and_not_between_rows_is_caught(other, crude):
    """Each row by itself has the law of the population; people have not."""
    private = other.draw(np.random.default_rng(4), 300)
    found = hs.check_population(private, PEOPLE, epsilon=1.0, tables=99, user=0)
    rows = hs.check_population(private[:, 1], PEOPLE.rows, epsilon=50.0, tables=99, level=0.01)
    assert found.verdict == "contradicted"
    assert found.tv_at_least > 0
    assert rows.tv_at_least == 0


def test_people_in_words_certificate_and_ledger(tmp_path, crude):
    """The promise is for all rows of a user; a budget of users pays, and JSON keeps it all."""
    ledger = hs.Ledger(f"sqlite:///{tmp_path}/fit.db")
    ledger.open_budget("wards", hs.Guarantee(epsilon=1.0, unit="user"))
    public = PublicTable(visits(5, 500))
    found = hs.check_population(
        visits(6, 20), public, epsilon=0.5, tables=19, user="who", ledger=ledger, budget="wards"
    )
    assert found.guarantee == hs.Guarantee(epsilon=0.5, unit="user")
    assert found.null == "disjoint"
    assert found.rows == 20
    assert "19 tables of 20 users" in found.explain()
    assert "of all rows of a user." in found.explain()
    assert "all rows of one user" in found.certificate.explain()
    assert hs.PopulationCheck.from_json(found.to_json()).user == "who"
    assert ledger.balance("wards").spent.epsilon == 0.5


def test_what_is_refused_of_people_is_unpaid(tmp_path):
    """A law of users without their column, persons and users at once, and rows of nobody."""
    ledger = hs.Ledger(f"sqlite:///{tmp_path}/fit.db")
    ledger.open_budget("wards", hs.Guarantee(epsilon=1.0, unit="user"))
    paid = {"epsilon": 0.5, "ledger": ledger, "budget": "wards"}
    rows = PEOPLE.draw(np.random.default_rng(7), 30)
    with pytest.raises(ParameterError, match="say user=0"):
        hs.check_population(rows, PEOPLE, **paid)
    with pytest.raises(ParameterError, match="does not go with user="):
        hs.check_population(rows, PEOPLE, user=0, unit="person", **paid)
    with pytest.raises(ParameterError, match="say user=0"):
        hs.check_population(rows, PEOPLE, user=1, **paid)
    with pytest.raises(BadRows, match="2 users or more"):
        hs.check_population(rows[:1], PEOPLE, user=0, **paid)
    nobody = np.where(np.arange(len(rows))[:, None] == 3, [np.nan, 1.0], rows)
    with pytest.raises(BadRows, match="nobody knows whose"):
        hs.check_population(nobody, PEOPLE, user=0, **paid)
    assert ledger.balance("wards").spent.epsilon == 0


def test_a_column_of_people_that_is_no_number_and_no_text_is_refused():
    """Of a public column of other objects nothing would be tested."""
    frame = visits(8, 50).assign(ward=[object()] * len(visits(8, 50)))
    with pytest.raises(BadRows, match="'ward' of the population holds neither"):
        hs.check_population(visits(9, 20), PublicTable(frame), epsilon=1.0, user="who")


def test_a_row_for_each_person_is_no_table_of_users():
    """Without user= one row is one person, as before."""
    private = np.random.default_rng(10).normal(size=200)
    found = hs.check_population(private, Normal(), epsilon=1.0, unit="person")
    assert found.user is None
    assert "users" not in found.explain()
