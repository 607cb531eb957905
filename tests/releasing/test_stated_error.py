"""The error of a release as a number, with its level and its unit."""

import json
from dataclasses import asdict

import numpy as np
import pytest

import hushed as hs
from hushed.mechanisms._registry import CERTIFIED
from hushed.plots import certificate_page
from hushed.releasing import _stated_error

ROWS = np.random.default_rng(0).random(200)
MEDIAN = hs.statistics.median(rows=200, low=0, high=1)
MOVED = hs.proven_sensitivity(1.0, argument="by assumption")
SUP = hs.proven_sensitivity(1.0, "sup", argument="by assumption")


def total(rows):
    """Sum them up."""
    return rows.sum()


def scores(rows):
    """Score three candidates."""
    return np.array([rows.sum(), 0.0, 1.0])


CASES = {
    "numbers": (total, hs.Laplace(MOVED, epsilon=1.0), "that of the answer"),
    "a choice": (scores, hs.Exponential(SUP, epsilon=1.0), "score"),
    "rows": (MEDIAN, hs.InverseSensitivity(MEDIAN, epsilon=1.0), "changed rows"),
    "what is private": (MEDIAN, hs.Smooth(MEDIAN, epsilon=1.0), "smooth sensitivity"),
    "a test": (
        MEDIAN,
        hs.ProposeTest(MEDIAN, bound=0.2, epsilon=1.0, delta=1e-6),
        "if it is not refused",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_a_number_with_a_level_and_a_unit(case):
    """The number is the one of the certificate; it stands in the text and on the card."""
    f, mechanism, unit = CASES[case]
    released = hs.release(f, ROWS, mechanism)
    error = released.error
    assert error == released.certificate.error
    assert error.value == released.certificate.mechanism.accuracy
    assert error.level == 0.95
    assert unit in error.unit
    assert f"error: {error}" in str(released).split("\n\n")[0]
    for shown in (released, released.certificate):
        assert f"<th>error</th><td>{error}</td>" in shown._repr_html_()
    assert json.loads(json.dumps(asdict(error))) == {
        "value": error.value,
        "level": 0.95,
        "unit": error.unit,
        "margin": "",
    }


def vote(rows):
    """The category of most rows, as blocks answer it."""
    return "a"


@pytest.mark.parametrize(
    ("f", "rows", "mechanism", "said"),
    [
        (
            hs.statistics.mode(rows=501, categories=["a", "b"]),
            ["a"] * 500 + ["b"],
            lambda f: hs.StableMode(f, epsilon=1.0, delta=1e-6),
            "none, unless it is refused: with probability 5 % at most where",
        ),
        (
            vote,
            np.zeros(3000),
            lambda _: hs.Blocks(["a", "b"], epsilon=9.0, delta=1e-3, blocks=9, aggregate="stable"),
            "none beside that of the blocks, unless it is refused",
        ),
    ],
    ids=["mode", "blocks"],
)
def test_what_is_told_or_refused_has_no_error_where_it_is_told(by_value, f, rows, mechanism, said):
    """Its number is a margin: from so much on it is told. ``At most 16 rows`` would be false."""
    error = hs.release(f, rows, mechanism(f)).error
    assert str(error).startswith(said)
    assert f"{error.value:g}" in str(error)
    assert "at most" not in str(error).replace("5 % at most", "")


def test_a_search_is_about_rows_or_users():
    """By whom it counts."""
    assert "rows beyond the bound" in hs.find_bound([1.0] * 9, epsilon=1.0).error.unit
    of_users = hs.find_bound([1.0] * 9, epsilon=1.0, users=list(range(9)))
    assert "users beyond the bound" in of_users.error.unit


def test_every_mechanism_that_chooses_or_counts_has_a_unit_of_its_own():
    """The others add noise to numbers."""
    assert set(CERTIFIED) - set(_stated_error._UNITS) == {"laplace", "gaussian"}


def test_what_is_not_stated_says_so():
    """As of a mechanism of the caller's own."""
    assert str(_stated_error.StatedError(value=None)) == "not stated"


def test_what_is_told_above_a_threshold_has_noise_beside_a_right_answer():
    """That an answer is surely above says nothing of the value that is told with it."""
    search = hs.AboveThreshold(threshold=0, epsilon=2.0, values=0.5)
    told = search.certificate.error.explain()
    assert told.startswith("none in whether an answer is above, with probability 95 %, where it is")
    assert told.endswith("gaps and values have noise of their own")
    values = [
        found.value
        for found in (hs.AboveThreshold(0, 2.0, values=0.5).ask(1e6) for _ in range(20))
        if found
    ]
    assert max(np.abs(np.array(values) - 1e6)) > 0.01  # of a scale of 2


def test_the_error_of_a_function_on_the_cube_is_that_of_its_noise():
    """A polynomial is off where the function is steep, also without noise."""

    def steep(rows):
        return lambda points: (np.ravel(points) > 0.55) * rows.mean()

    mechanism = hs.Bernstein(SUP, epsilon=1e6, lattice=8)
    released = hs.release(hs.on_lattice(steep, lattice=8), ROWS, mechanism)
    points = np.linspace(0, 1, 101)[:, None]
    off = np.abs(np.ravel(released.value(points)) - steep(ROWS)(points)).max()
    assert off > 10 * released.error.value
    assert released.error.unit == "that of the answer, anywhere, by the noise alone"


@pytest.mark.parametrize("user", [None, 0])
def test_noise_on_an_average_over_blocks_is_told_as_that_everywhere(user):
    """The answer of the whole table is another one, and nobody knows how far away it is."""

    def f(rows):
        return float(np.max(rows[:, 1]))

    rows = np.random.default_rng(3).random((200, 2))
    rows[:, 0] = np.arange(200)
    people = hs.populations.Users(hs.populations.Uniform(0, 1), sizes=1)
    plain = hs.populations.Uniform(0, 1)
    f, rows = (f, rows) if user == 0 else (np.max, rows[:, 1])
    of_blocks = hs.Blockwise(f, rows=20, user=user)
    s = hs.sample_sensitivity(
        of_blocks,
        plain if user is None else people,
        rows=200,
        gamma=0.1,
        user=user,
        calibration="marginal",
    )
    released = hs.release(of_blocks, rows, hs.Laplace(s, epsilon=5.0))
    certificate = hs.Certificate.from_json(released.certificate.to_json())
    what = "rows" if user is None else "people"
    average = f"the average over blocks of 20 {what}"
    unknown = f"how far that is from the function's answer on all {what} is not known here"
    assert f"of {average}: {unknown}." in certificate.explain()
    assert "exact answer" not in certificate.explain()
    assert certificate.error.unit == (f"that of the answer, counted from {average}; {unknown}")
    assert f"from {average}</td>" in certificate_page(certificate).replace("\n", " ")


def test_scores_that_are_averages_over_blocks_are_told_as_such():
    """A candidate that is best on average need not be best on the table."""
    of_blocks = hs.Blockwise(lambda rows: np.array([rows.max(), 0.9]), rows=20, relative=True)
    s = hs.sample_sensitivity(
        of_blocks,
        hs.populations.Uniform(0, 1),
        rows=200,
        gamma=0.1,
        norm="range",
        calibration="marginal",
    )
    error = hs.release(of_blocks, ROWS, hs.Exponential(s, epsilon=5.0))
    assert "Scores are those of the average over blocks of 20 rows" in str(error)
    assert "score below the best, by the average over blocks of 20 rows" in error.error.unit


@pytest.mark.slow_cases("101-False")
@pytest.mark.parametrize(("blocks", "vague"), [(31, True), (101, False)])
def test_an_error_of_nearly_all_blocks_is_said_to_say_nothing(blocks, vague):
    """15.23 of 31 blocks is any answer of a block; the number alone looked like a bound."""
    mechanism = hs.Blocks(low=0, high=1, epsilon=1.0, blocks=blocks)
    released = hs.release(np.mean, np.linspace(0, 1, 3 * blocks), mechanism)
    told = released.error.explain()
    assert f"misses their median, of {blocks}" in told
    assert ("anywhere in all answers of blocks" in told) == vague
    assert ("anywhere among the answers of blocks" in released.certificate.explain()) == vague
