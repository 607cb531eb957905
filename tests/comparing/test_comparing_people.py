"""Routes in the unit of users: all rows of one are protected, and counts are of users."""

import numpy as np
import pytest

import hushed as hs
from hushed.errors import ParameterError
from hushed.populations import Uniform, Users

PEOPLE = Users(Uniform(low=0, high=1), sizes={1: 0.6, 5: 0.4})


def total_each(rows):
    """Mean over users of what each has in all, at most 2."""
    who = rows[:, 0].astype(np.int64)
    _, places = np.unique(who, return_inverse=True)
    return float(np.minimum(np.bincount(places, weights=rows[:, 1]), 2).mean())


@pytest.fixture(scope="module")
def compared():
    """Blocks and sampling for 200 users."""
    asked = {"epsilon": 1.0, "low": 0, "high": 2, "trials": 3, "delta": 1e-6, "workers": 1}
    return hs.compare(total_each, PEOPLE, rows=200, user=0, **asked)


def test_every_route_for_people_protects_all_rows_of_a_user(compared):
    """Sampling and blocks do; a public guess of rows is left out, with the reason."""
    assert {each.name for each in compared.routes} == {
        "sampled, Laplace",
        "sampled, Gaussian",
        "blocks",
    }
    assert {each.guarantee.unit for each in compared.routes} == {"user"}
    reasons = {each.name: each.reason for each in compared.left_out}
    assert reasons["blocks, public guess"] == (
        "a public guess is made for rows, and here users are protected"
    )


def test_errors_for_people_are_those_of_what_is_sampled_for_people(compared):
    """The error in 95 % of releases is what Laplace noise of the users' sensitivity gives."""
    found = hs.sample_sensitivity(total_each, PEOPLE, rows=200, gamma=0.05, user=0, seed=0)
    route = next(each for each in compared.routes if each.name == "sampled, Laplace")
    assert route.error_95 == pytest.approx(hs.Laplace(found, epsilon=1.0).accuracy(0.05))
    rows = hs.sample_sensitivity(
        lambda rows: float(rows.sum() / 200), Uniform(low=0, high=1), rows=440, gamma=0.05
    )
    assert route.error_95 > 1.5 * hs.Laplace(rows, epsilon=1.0).accuracy(0.05)


def test_words_are_about_users(compared):
    """Of 200 users, one of whom is replaced with all rows; blocks say whose."""
    text = str(compared)
    assert "total_each of 200 users" in text
    assert "such users" in text
    assert "every table, one user, with all rows, replaced" in text
    assert "user=0" in next(each for each in compared.routes if each.name == "blocks").how


def test_what_is_no_question_about_people_is_refused():
    """A law of users without its column, a statistic, another column, and no column at all."""
    with pytest.raises(ParameterError, match="say user=0"):
        hs.compare(total_each, PEOPLE, rows=20)
    statistic = hs.statistics.median(rows=20, low=0, high=1)
    with pytest.raises(ParameterError, match="compare a function of all rows"):
        hs.compare(statistic, PEOPLE, user=0)
    with pytest.raises(ParameterError, match="say user=0"):
        hs.compare(total_each, PEOPLE, rows=20, user=1)
    with pytest.raises(ParameterError, match="name or the position"):
        hs.compare(total_each, PEOPLE, rows=20, user=1.5)
