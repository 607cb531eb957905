"""Certificates of statistics that are released with their global sensitivity: a theorem of ours."""

import json

import numpy as np
import pytest

import hushed as hs
from hushed.errors import ParameterError

ROWS = np.arange(100) % 10 * 1.0


def released(statistic):
    return hs.release(statistic, ROWS, hs.Laplace(hs.global_sensitivity(statistic), epsilon=1.0))


def mean(**more):
    return hs.statistics.mean(rows=100, low=0, high=10, **more)


@pytest.mark.parametrize(
    ("statistic", "name"),
    [
        (mean(), "mean"),
        (hs.statistics.median(rows=100, low=0, high=10), "median"),
        (hs.statistics.trimmed_mean(0.1, rows=100, low=0, high=10), "trimmed mean"),
        (hs.statistics.median(low=0, high=10), "median"),
    ],
)
def test_the_promise_holds_for_every_table_and_says_so(statistic, name):
    """Nobody's word is needed: the certificate names the statistic, and is checked against it."""
    known = released(statistic).certificate
    words = known.explain()
    assert "this holds for every table and every row; no population is assumed" in words
    assert f"Released was the {name}" in words
    assert "as far as this reason holds" not in words
    assert "stands as it was given" not in words
    assert "This holds for every such pair of tables." in words
    assert hs.Certificate.from_json(known.to_json()) == known
    found = hs.verify(known)
    assert found.reproduced
    assert f"from the {name} and the public choices" in found.explain()
    assert "the sensitivity and its argument" not in found.unchecked


def test_rows_that_are_people_are_named_as_such():
    words = released(mean(unit="person")).certificate.explain()
    assert "this holds for every table and every person" in words
    assert "declared, and not checked" in words


def test_a_bound_that_somebody_states_is_still_their_word():
    stated = hs.proven_sensitivity(0.1, argument="global sensitivity of the mean of rows that are")
    words = hs.release(mean(), ROWS, hs.Laplace(stated, epsilon=1.0)).certificate.explain()
    assert "stands as it was given" in words
    assert "no population is assumed" not in words


@pytest.mark.parametrize(
    "change",
    [
        {"sensitivity": 0.05},
        {"argument": "global sensitivity of the mean of rows that are moved into [0, 5]"},
        {"statistic": {"kind": "mode", "categories": ["a", "b"], "rows": 100, "unit": "row"}},
        {"person": True},
        {"neighbours": "add-remove"},
    ],
)
def test_a_certificate_that_names_a_statistic_has_its_bound(change):
    """Less noise for the same words, or the words of another statistic, contradict it."""
    told = json.loads(released(mean()).certificate.to_json()) | change
    with pytest.raises(ParameterError, match="contradicts itself"):
        hs.Certificate.from_json(json.dumps(told))


def test_a_promise_for_rows_is_none_for_users():
    told = json.loads(released(mean()).certificate.to_json())
    told["guarantee"]["unit"] = "user"
    with pytest.raises(ParameterError, match="unit is not that of the global sensitivity"):
        hs.Certificate.from_json(json.dumps(told))


def test_less_noise_does_not_follow_from_a_statistic_of_more_rows():
    """The record of a million rows beside the sensitivity of a hundred."""
    told = json.loads(released(mean()).certificate.to_json())
    told["statistic"]["rows"] = 10**6
    with pytest.raises(ParameterError, match="sensitivity is not that of the global sensitivity"):
        hs.Certificate.from_json(json.dumps(told))
