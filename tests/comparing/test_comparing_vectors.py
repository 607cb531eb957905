"""Functions with several numbers: blocks of vectors, their errors, sizes and progress."""

import sys

import numpy as np
import pytest
from scipy.stats import norm

import hushed as hs
from hushed.comparing._laws import Chosen, Shifted
from hushed.comparing._mean_routes import _spread_counts
from hushed.errors import ParameterError

UNIT = hs.populations.Uniform(low=0, high=1)
PLAIN = {"rows": 400, "delta": 1e-6, "trials": 20, "workers": 1}
BALL = {"centre": [0.5, 0.5], "radius": 0.6}


def quartiles(rows):
    return np.quantile(rows, [0.25, 0.75])


def route_of(found, name):
    (route,) = [each for each in found.routes if each.name == name]
    return route


def reason_of(found, name):
    (left,) = [each for each in found.left_out if each.name == name]
    return left.reason


class TestErrors:
    @pytest.mark.slow
    def test_they_are_those_of_a_simulation_with_drawn_noise(self):
        """Of Blocks.simulate: of one number the length of the error is its size."""
        wide = {"centre": [0.5], "radius": 0.6}
        found = hs.compare(lambda rows: [rows.mean()], UNIT, **PLAIN | {"trials": 50}, **wide)
        route = route_of(found, "blocks, vectors")
        made = hs.Blocks(aggregate="vector", epsilon=1.0, delta=1e-6, **wide)
        tried = made.simulate(lambda rows: [rows.mean()], UNIT, 400, trials=50, isolated=False)
        assert route.error_50 == pytest.approx(tried.error_50, rel=0.05)
        assert route.error_95 == pytest.approx(tried.error_95, rel=0.05)
        assert route.calls == made.blocks == tried.blocks
        assert (route.guarantee.epsilon, route.guarantee.delta) == (1.0, 1e-6)
        assert not route.guarantee.gamma

    def test_the_largest_of_several_errors_is_meant(self):
        """Of numbers without any offset it is what the mechanism says itself."""
        made = hs.Blocks(aggregate="vector", epsilon=1.0, delta=1e-6, **BALL)
        scale = made.aggregation.describe_draw()[0]
        law = Shifted(np.zeros((3, 2)), scale, 0.0)
        assert law.quantile(0.05) == pytest.approx(made.accuracy(0.05), rel=1e-3)
        far = Shifted(np.array([[5.0, 0.0]]), 1.0, 0.0)
        assert far.quantile(0.05) == pytest.approx(5 + norm.isf(0.05), rel=1e-6)
        assert Shifted(np.zeros((1, 2)), 1.0, 0.5).quantile(0.05) == pytest.approx(
            law.quantile(0.05) / scale + 0.5
        )

    @pytest.mark.slow
    def test_an_error_finds_its_level(self):
        found = hs.compare(quartiles, UNIT, error=0.2, **PLAIN, **BALL, blocks=40)
        route = route_of(found, "blocks, vectors")
        assert route.error_95 <= 0.2
        assert "blocks=40" in route.how


class TestWhatIsGiven:
    @pytest.mark.parametrize(
        ("more", "said"),
        [
            ({}, "a public ball"),
            ({"delta": 0.0, **BALL}, "delta above 0"),
            ({"blocks": 401, **BALL}, "401 blocks, and there are fewer rows"),
        ],
    )
    def test_what_it_lacks_is_said(self, more, said):
        found = hs.compare(quartiles, UNIT, **PLAIN | more)
        assert said in reason_of(found, "blocks, vectors")

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            ({"centre": [0.5, 0.5]}, "both centre and radius"),
            ({"centre": [0.5], "radius": 1.0}, "centre has 1 number, and the function answers"),
            ({"centre": [0.5, 0.5], "radius": -1.0}, "radius"),
            ({"blocks": 0}, "blocks must be"),
        ],
    )
    def test_bad_use_is_refused(self, more, said):
        with pytest.raises(ParameterError, match=said):
            hs.compare(quartiles, UNIT, **PLAIN | more)

    def test_a_table_of_numbers_is_no_list(self):
        found = hs.compare(lambda rows: [quartiles(rows)], UNIT, **PLAIN, **BALL)
        assert "one list of 2 numbers" in reason_of(found, "blocks, vectors")

    def test_statistics_and_labels_have_no_ball(self):
        s = hs.statistics.median(rows=100, low=0, high=1)
        with pytest.raises(ParameterError, match="a statistic has none"):
            hs.compare(s, UNIT, **BALL)
        with pytest.raises(ParameterError, match="labels have none"):
            hs.compare(quartiles, UNIT, rows=100, candidates=["a", "b"], **BALL)

    def test_the_number_of_blocks_may_be_said(self):
        """Of every way by blocks."""
        found = hs.compare(np.median, UNIT, **PLAIN, low=0, high=1, blocks=50)
        assert route_of(found, "blocks").calls == 50
        assert "blocks=50" in route_of(found, "blocks").how
        labels = {"candidates": ["low", "high"], "blocks": 51}
        voted = hs.compare(
            lambda rows: ["low", "high"][int(rows.mean() > 0.4)], UNIT, **PLAIN, **labels
        )
        assert {each.calls for each in voted.routes} == {51, 251}

    def test_an_average_over_blocks_is_not_dealt_to_blocks_again(self):
        """Every call failed, and the lowest candidate came out."""
        f = hs.Blockwise(np.mean, rows=100)
        found = hs.compare(f, UNIT, **PLAIN, low=0, high=1)
        assert "compare its function alone" in reason_of(found, "blocks")
        assert found.asked == "Blockwise(mean, rows=100) of 400 rows"


def test_progress_is_told_in_words(monkeypatch):
    """Whole tables first, then the ways, each with the time that is left."""
    monkeypatch.setattr("hushed._ground.progress._LONG", 0.0)
    heard = []
    hs.compare(quartiles, UNIT, **PLAIN, **BALL, progress=heard.append)
    stages = list(dict.fromkeys(each.partition(":")[0] for each in heard))
    assert stages == [
        "asking about whole public tables",
        "measuring movement",
        "trying the ways on public tables",
    ]
    assert all(each.endswith(" s left") for each in heard)
    with pytest.raises(ParameterError, match="progress must be"):
        hs.compare(quartiles, UNIT, **PLAIN, progress="yes")


def test_one_bar_shows_all_stages_in_a_terminal(monkeypatch, capsys):
    """Two bars at once would be an error of the program that draws them."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    hs.compare(np.median, UNIT, **PLAIN, low=0, high=1, progress=True)
    shown = capsys.readouterr().err
    assert "trying the ways on public tables" in shown


class TestCheap:
    def test_a_cell_is_counted_by_one_call(self):
        """Comparing 10,000 categories took a minute, most of it for a dozen calls a cell."""
        s = hs.statistics.mode([str(n) for n in range(10_000)])
        calls = []
        sys.setprofile(lambda _, event, __: calls.append(event) if event == "call" else None)
        try:
            counts = s.count([str(n % 7) for n in range(5_000)])
        finally:
            sys.setprofile(None)
        assert counts[:7].sum() == 5_000
        assert len(calls) < 1.1 * 5_000

    def test_equal_errors_of_a_table_are_one(self):
        found = Chosen.of_rows(np.array([[3.0, 0, 3, 0.2, 0.5, 0.3], [0, 3, 3, 0.1, 0.4, 0.5]]))
        assert found.errors.tolist() == [0, 0, 3, 3]
        assert found.owners.tolist() == [0, 1, 0, 1]
        assert found.chances == pytest.approx([0.5, 0.1, 0.5, 0.9])

    def test_equal_noise_on_a_count_is_one(self):
        noise, shares = _spread_counts(0.5)
        assert len(noise) < 25
        assert shares.sum() == pytest.approx(1)
        assert noise @ shares == pytest.approx(0, abs=1e-12)
