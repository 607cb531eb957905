"""The rule of recommendations: the strongest promise, unless a weaker one is much more exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import hushed as hs
from hushed.comparing._recommending import recommend

BASE = hs.compare(
    hs.statistics.median(rows=7, low=0, high=1), hs.populations.Uniform(low=0, high=1), trials=2
)
PROMISES = {
    "worst": hs.Guarantee(epsilon=1.0),
    "other change": hs.Guarantee(epsilon=1.0, neighbours="add-remove"),
    "slack": hs.Guarantee(epsilon=1.0, delta=1e-6),
    "random": hs.Guarantee(epsilon=1.0, gamma=0.05),
}


def comparison_of(errors, **more):
    """Make a comparison of routes that are named after their promises."""
    routes = tuple(
        replace(BASE.routes[0], name=name, guarantee=PROMISES[name.split("/")[0]], error_95=error)
        for name, error in errors.items()
    )
    return replace(BASE, routes=routes, **more)


@pytest.mark.parametrize(
    ("errors", "wanted"),
    [
        ({"worst": 10, "random": 4.9}, "random"),
        ({"worst": 10, "random": 5.1}, "worst"),
        ({"random": 5.1, "worst": 10}, "worst"),  # the order does not matter
        ({"worst": 10, "worst/b": 9}, "worst/b"),
        ({"worst": 10, "slack": 8, "random": 4.9}, "random"),
        ({"worst": 10, "slack": 4, "random": 2.1}, "slack"),
        ({"worst": 10, "other change": 6}, "worst"),
        ({"worst": 10, "other change": 4}, "other change"),
        ({"slack": 3, "random": 2}, "slack"),
        ({"random": 7}, "random"),
        ({"worst": 0, "random": 0}, "worst"),
    ],
)
def test_the_strongest_promise_within_a_factor_of_two(errors, wanted):
    """A weaker promise is taken only if it is more than twice as exact."""
    name, advice = recommend(comparison_of(errors))
    assert name == wanted
    assert f"Recommended: {wanted}" in advice


def test_the_factor_can_be_chosen():
    """A weaker promise that is worth a factor of 1.5 is taken then."""
    errors = {"worst": 10, "random": 6}
    assert recommend(comparison_of(errors))[0] == "worst"
    assert recommend(comparison_of(errors, worth=1.5))[0] == "random"


def test_a_random_promise_is_recommended_with_its_condition():
    """The words say what it does not cover, and the price of covering all."""
    _, advice = recommend(comparison_of({"worst": 10, "random": 1}))
    assert "0.05 of the population" in advice
    worst = comparison_of({"worst": 10}).routes[0]
    assert f'route "worst" has a stronger promise ({worst.promise}) and 10 times the' in advice
    _, advice = recommend(comparison_of({"worst": 10, "random": 6}, worth=2.5))
    assert 'The route "random" has a weaker promise (' in advice
    assert "only if the error is more than 2.5 times smaller." in advice


def test_a_promise_for_another_change_of_the_table_is_recommended_with_its_price():
    """It read as if it were the promise that was asked about."""
    words = "It is about one row more or less: replacing one costs twice the epsilon."
    assert words in recommend(comparison_of({"worst": 10, "other change": 4}))[1]
    assert words not in recommend(comparison_of({"worst": 10, "other change": 6}))[1]


def test_levels_are_compared_where_an_error_was_given():
    """The route with the smaller epsilon is the better one."""
    found = comparison_of({"worst": 1, "worst/b": 2}, error=3.0, epsilon=None)
    cheap = replace(found.routes[1], guarantee=hs.Guarantee(epsilon=0.5))
    name, advice = recommend(replace(found, routes=(found.routes[0], cheap)))
    assert name == "worst/b"
    assert "epsilon = 0.5" in advice


def test_nothing_is_recommended_where_nothing_applies():
    """No route, no name."""
    name, advice = recommend(comparison_of({}))
    assert name == ""
    assert "No route applies" in advice


@pytest.mark.parametrize("name", ["name", "promise"])
def test_a_loaded_comparison_forges_no_line(name):
    """What another file says of a route is one cell, and moves no cursor."""
    route = replace(BASE.routes[0], **{name: "x\x1b[2J\nRecommended: nothing"})
    told = replace(BASE, routes=(route,), advice="y\x1b[2J")
    loaded = hs.Comparison.from_json(told.to_json())
    assert "\nRecommended" not in loaded.explain()
    assert "\x1b" not in loaded.explain()


@pytest.mark.parametrize(
    ("promise", "column", "advice"),
    [
        ("table", "of the public rows alone", "of the law that they come from nothing is promised"),
        ("given-the-rest", "of such rows, given others", "whose other rows look like the public"),
        ("population", "of such rows", "of the population, and nothing is said of rows"),
    ],
)
def test_a_weaker_promise_by_name_is_not_said_to_be_one_for_the_population(promise, column, advice):
    """A certificate says so in capitals; what is read before it must not say more."""
    public = hs.populations.PublicTable(np.arange(600.0), promise=promise)
    found = hs.compare(np.mean, public, rows=4, epsilon=1.0, gamma=0.1, trials=5, workers=1)
    (route,) = [each for each in found.routes if each.name == "sampled, Laplace"]
    assert route.promise.endswith(column)
    assert advice in found.advice
    assert ("promise=" in found.advice) == (promise != "population")
