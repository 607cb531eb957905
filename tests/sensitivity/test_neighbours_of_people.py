"""Other neighbours of tables of people: whole persons are added, left out, and replaced."""

import numpy as np
import pytest

import hushed as hs
from hushed._functions._streams import streams
from hushed.populations import Uniform, Users

COSTS = Users(Uniform(low=0, high=1), sizes={1: 0.7, 2: 0.2, 30: 0.1})
N = 6


def total(rows):
    return float(rows[:, 1].sum())


def people(rows):
    return len(np.unique(rows[:, 0]))


def sample(f, rows=N, **settings):
    return hs.sample_sensitivity(
        f, COSTS, rows=rows, user=0, gamma=0.2, calibration="marginal", workers=1, **settings
    )


def sums(trial, count):
    """Total of each drawn person of a trial."""
    drawn = [COSTS.draw(rng, count) for rng in streams(0, 0, trial + 1)][-1]
    return np.bincount(drawn[:, 0].astype(int), weights=drawn[:, 1], minlength=count)


@pytest.mark.parametrize(
    ("settings", "count", "moved"),
    [
        ({"distance": 3, "symmetric": True}, N + 3, lambda t: abs(t[3:6].sum() - t[6:].sum())),
        ({"neighbours": "add-remove", "symmetric": True}, N + 1, lambda t: max(t[5], t[6])),
        ({"neighbours": "add-remove", "position": "worst"}, N + 1, lambda t: t.max()),
        ({"position": "worst"}, N + 1, lambda t: np.abs(t[:N] - t[N]).max()),
    ],
)
def test_movements_are_those_of_whole_persons(settings, count, moved):
    """A sum moves by the sums of the persons that come and go."""
    expected = [moved(sums(trial, count)) for trial in range(4)]
    assert sample(total, **settings).draws == pytest.approx(np.sort(expected), rel=1e-9)


def test_a_count_of_people_moves_by_one():
    """However many rows they have."""
    s = sample(people, rows=[5, 6], neighbours="add-remove")
    assert s.value == 1.0
    assert (s.guarantee(1.0).unit, s.guarantee(1.0).neighbours) == ("user", "add-remove")


@pytest.mark.parametrize("outside", ["clamp", "allow"])
@pytest.mark.parametrize("number", [0, 1, 6, 200])
def test_no_release_is_refused_for_its_number_of_people(number, outside):
    """Not even that of an empty table."""
    s = sample(people, neighbours="add-remove")
    data = np.column_stack([np.repeat(np.arange(number), 2), np.full(2 * number, 0.5)])
    released = hs.release(people, data, hs.Laplace(s, epsilon=1.0), outside=outside)
    assert abs(released.value - number) < 40
    assert "TABLES OF 6 PEOPLE" in released.certificate.explain()


def test_people_come_in_a_random_order_so_that_no_place_is_left_out():
    """The remark on places is for rows, whose order the function sees."""
    assert "whole place" not in sample(total).explain()
    rows = hs.sample_sensitivity(lambda r: r[0], Uniform(low=0, high=1), rows=N, gamma=0.2)
    assert "whole place" in rows.explain()
