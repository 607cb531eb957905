"""Tables of people of which many are drawn from one stream: the same wherever a run is cut."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import hushed as hs
from hushed._functions._streams import streams
from hushed._rows._containers import signature, take_tables
from hushed._rows._people import bundle_rows, show_rows
from hushed._rows._variations import swap_user
from hushed.populations import by_user
from hushed.sensitivity._designs import choose_design
from hushed.sensitivity._neighbourhood import Neighbourhood
from hushed.sensitivity._pairs import PairTrial
from hushed.sensitivity._ranks import choose_rank

SIZES = {1: 0.5, 3: 0.3, 40: 0.2}
LAW = hs.populations.Users(hs.populations.Uniform(low=0, high=1), sizes=SIZES)


def weighted(rows):
    """Moved by whose a row is, by how many there are, and by their order."""
    return float((rows[:, 0] * rows[:, 1]).sum() + len(rows) * rows[0, 1])


def held(number, rng):
    """People of 1 to 5 rows in lists, and the table of them, a bundle for each."""
    people = [rng.normal(size=rng.integers(1, 6)).tolist() for _ in range(number)]
    owners = np.repeat(np.arange(number), [len(values) for values in people])
    return people, np.column_stack([owners, np.concatenate(people)])


def written(people):
    """Rows of people in the order of a list, numbered."""
    return [[place, value] for place, values in enumerate(people) for value in values]


def make_trial(population, pairs, *, symmetric=False):
    """A trial as the sampler makes it, of tables of six people."""
    reach = Neighbourhood(rows=6, user=0)
    rank = choose_rank("marginal", pairs=pairs)
    design = choose_design(
        by_user(population, 0),
        reach,
        rank=rank,
        gamma=rank.gamma,
        calibration="marginal",
        seed=8,
        nominal=False,
    )
    like = signature(design.draw(np.random.default_rng(0), 0))
    return PairTrial(
        function=weighted,
        design=design,
        norm="l1",
        reach=reach,
        values=(),
        symmetric=symmetric,
        at_once=1,
        like=like,
        shape=(),
        fresh=False,
        private=False,
    )


def public(promise):
    """A public table of 3,000 people."""
    return hs.populations.PublicTable(held(3000, np.random.default_rng(3))[1], promise=promise)


@pytest.mark.parametrize(
    "population", [LAW, public("table"), public("population")], ids=["law", "resampled", "dealt"]
)
def test_a_run_that_is_cut_anywhere_finds_the_same(population):
    """Pairs of one block are the same whether all of it was asked for or a part of it."""
    trial = make_trial(population, 400)
    assert trial.design.together > 1
    stop = 2 * trial.design.together + 3 if population is LAW else 400
    whole = trial(streams(5, 0, stop))
    assert len(np.unique(whole[:, 0])) > 0.99 * stop
    rng = np.random.default_rng(6)
    for _ in range(4):
        cuts = [0, *np.sort(rng.integers(stop, size=3)).tolist(), stop]
        parts = [trial(streams(5, low, high)) for low, high in pairwise(cuts) if low < high]
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_a_symmetric_function_sees_the_last_place_replaced():
    """Sums of people move in the last one alone."""
    trial = make_trial(LAW, 50, symmetric=True)
    seen = []

    def noted(rows):
        seen.append(rows.copy())
        return 0.0

    replace(trial, function=noted)(streams(5, 0, 20))
    for first, second in zip(seen[::2], seen[1::2], strict=True):
        np.testing.assert_array_equal(first[first[:, 0] < 5], second[second[:, 0] < 5])
        assert not np.array_equal(first[first[:, 0] == 5], second[second[:, 0] == 5])


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, lambda t: list(map(tuple, t.tolist()))])
def test_tables_are_those_of_the_people_asked_for(make):
    """Whoever is asked for comes with all rows, as often as asked for, numbered in each table."""
    rng = np.random.default_rng(7)
    people, table = held(40, rng)
    users = rng.integers(40, size=(5, 9))
    bundles = bundle_rows(make(table), 0)
    for line, found in zip(users, take_tables(bundles, users), strict=True):
        shown = np.asarray(show_rows(found), dtype=float)
        assert shown.tolist() == written([people[each] for each in line])


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, pd.DataFrame])
def test_a_person_takes_the_place_of_another_with_all_rows(make, fresh):
    """Of more rows, as many or fewer, in the first place, the last one or between."""
    rng = np.random.default_rng(8)
    for place in (0, 3, 6, 6, *rng.integers(7, size=30)):
        people, table = held(8, rng)
        drawn = next(take_tables(bundle_rows(make(table), 0), np.arange(8)[None]))
        if make is np.asfortranarray:
            drawn = replace(drawn, rows=np.asfortranarray(drawn.rows))
        first, second = (np.array(each) for each in swap_user(drawn, int(place), fresh=fresh))
        assert first.tolist() == written(people[:7])
        people[place] = people[7]
        assert second.tolist() == written(people[:7])
