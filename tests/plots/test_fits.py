"""Figures of checks hold what was found, and what it is held against."""

import numpy as np

import hushed as hs
from hushed.plots import moved_figure, population_figure


def test_the_private_table_lies_among_the_public_ones():
    """All noisy statistics, the private one, and what would be caught."""
    rows = np.linspace(0, 1, 60)
    made = hs.check_population(rows, hs.populations.Uniform(low=0, high=1), epsilon=2.0, tables=19)
    drawn = population_figure(made).to_dict()
    bars, lines = (layer["data"]["values"] for layer in drawn["layer"])
    assert sum(each["tables"] for each in bars) == len(made.deviations)
    for each in bars:  # the last one holds its right end, too
        inside = [e for e in made.deviations if each["low"] <= e < each["high"]]
        assert len(inside) <= each["tables"] <= len(inside) + (each is bars[-1])
    axis = drawn["layer"][0]["encoding"]["x"]
    assert "bin" not in axis  # whose ticks end left of the lines
    assert drawn["layer"][0]["encoding"]["y2"] == {"datum": 0}  # bars, and no dashes
    assert [each["at"] for each in lines] == [made.statistic, made.caught]
    assert drawn["title"]["text"].startswith(made.verdict)


def test_the_share_of_pairs_lies_beside_gamma():
    """Bounds as a bar, the noisy share within [0, 1], gamma as a line."""
    box = hs.populations.Uniform(low=0, high=1)
    s = hs.sample_sensitivity(np.max, box, rows=5)
    made = hs.check_movement(np.max, np.linspace(0, 1, 600), s, epsilon=2.0)
    drawn = moved_figure(made).to_dict()
    bar, point, rule, *_ = (layer["data"]["values"][0] for layer in drawn["layer"])
    assert (bar["low"], bar["high"]) == (made.share_at_least, made.share_at_most)
    assert point["share"] == max(0.0, made.moved / made.pairs)
    assert rule["at"] == made.gamma
    assert "bar: its bounds, each with confidence 0.95" in drawn["title"]["subtitle"][1]
    assert drawn["title"]["text"].startswith(made.verdict)
