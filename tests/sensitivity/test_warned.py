"""Where the order of the rows may matter, sampling itself says whom gamma may leave out."""

import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import hushed as hs
from hushed.cli import app
from hushed.errors import BadFunction, HushedWarning, PlacesLeftOut

BOX = hs.populations.Uniform(low=0, high=1)
FEW = {"gamma": 0.2, "calibration": "marginal", "workers": 1}


def uneven(rows):
    """The first row counts more."""
    return float(rows.mean() + 3 * rows[0])


def sample(f=uneven, rows=5, **named):
    return hs.sample_sensitivity(f, BOX, rows=rows, **(FEW | named))


@pytest.fixture
def strict():
    """Make every warning of the library an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", HushedWarning)
        yield


def test_it_stands_at_the_line_that_called():
    """With whom is left out, and what to do."""
    with pytest.warns(
        PlacesLeftOut, match="the first row.*symmetric=True.*position='worst'"
    ) as seen:
        sample()
    assert [each.filename for each in seen] == [__file__]
    assert "leaves room for 1 whole place among 5" in sample().explain()


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize(
    "settings",
    [
        {"f": np.mean, "symmetric": True},
        {"position": "worst"},
        {"protect": "simultaneous"},
        {"protect": "table", "values": [0, 1]},
        {"protect": "everyone"},
        {"rows": 4},  # 0.8 of a place
        {"distance": 2},  # each place is in two of five pairs, more than may fail
        {"neighbours": "add-remove", "rows": [3, 4]},
    ],
    ids=["symmetric", "worst", "simultaneous", "table", "everyone", "few", "two", "add-remove"],
)
def test_nothing_is_said_where_nobody_is_left_out(settings):
    """Because of the declaration, the promise, or a gamma that has no room for a place."""
    assert "whole place" not in sample(**settings).explain()


@pytest.mark.usefixtures("strict")
def test_people_come_in_a_random_order():
    """Nobody stands at a place."""
    people = hs.populations.Users(BOX, sizes={1: 0.5, 3: 0.5})
    hs.sample_sensitivity(lambda t: float(t[:, 1].sum()), people, rows=9, user=0, **FEW)


def test_a_loop_says_it_once():
    """By the filters that Python starts with, whatever the numbers are."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for rows, gamma in ((5, 0.2), (6, 0.2), (10, 0.25), (40, 0.25)):
            sample(rows=rows, gamma=gamma)
    assert [each.category for each in seen] == [PlacesLeftOut]


@pytest.mark.usefixtures("strict")
def test_it_comes_before_the_long_run():
    """After the first look at the function, which may refuse it, and no later."""
    asked = []

    def counting(rows):
        asked.append(len(rows))
        return uneven(rows)

    with pytest.raises(PlacesLeftOut):
        sample(counting)
    assert len(asked) < 5
    with pytest.raises(BadFunction):
        sample(lambda rows: "text")


@pytest.mark.parametrize(
    ("settings", "words", "followed"),
    [
        ({}, "position='worst' or", [{"position": "worst"}, {"protect": "simultaneous"}]),
        (
            {"distance": 2, "rows": 10},  # of five places each is in two of five pairs
            "distance=1, and position='worst' or",
            [{"distance": 1, "position": "worst"}, {"distance": 1, "protect": "simultaneous"}],
        ),
        (
            {"f": hs.Blockwise(uneven, rows=5), "rows": 10},
            "sample with protect='simultaneous'",
            [{"protect": "simultaneous"}],
        ),
    ],
)
def test_advice_can_be_followed(settings, words, followed):
    """What is advised is admitted, and ends the warning; the report gives the same advice."""
    with pytest.warns(PlacesLeftOut, match=words):
        s = sample(**settings)
    assert words in s.explain()
    with warnings.catch_warnings():
        warnings.simplefilter("error", HushedWarning)
        for change in followed:
            sample(**(settings | change))


@pytest.mark.usefixtures("strict")
def test_other_parts_of_the_library_say_it_themselves(tmp_path, monkeypatch):
    """Verification, comparisons and the command write it where they write the rest."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlacesLeftOut)
        s = sample()
    released = hs.release(uneven, np.full(5, 0.5), hs.Laplace(s, epsilon=1.0))
    assert "whole place" in released.certificate.explain()
    assert hs.verify(released.certificate, uneven).reproduced
    hs.compare(uneven, BOX, rows=5, gamma=0.2, candidates=[0.0, 1.0])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text("def uneven(rows):\n    return rows.mean() + 3 * rows[0]\n")
    words = ["sensitivity", "f.py:uneven", "--population", "uniform:0,1", "--rows", "5"]
    done = CliRunner().invoke(app, [*words, "--gamma", "0.2", "--calibration", "marginal"])
    assert done.exit_code == 0, done.output
    assert "whole place among 5" in done.output
    assert "PlacesLeftOut" not in done.output


def test_one_category_silences_all_that_the_library_warns_of():
    """`HushedWarning` is a `UserWarning`, and holds the others."""
    assert issubclass(PlacesLeftOut, HushedWarning)
    assert issubclass(HushedWarning, UserWarning)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", HushedWarning)
        sample()
    assert not seen
