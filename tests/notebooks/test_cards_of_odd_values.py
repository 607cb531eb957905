"""A notebook shows an answer without groups to show, and numbers near the largest double."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import hushed as hs
from hushed._ground.notebook import draw_bound, draw_interval

HUGE = 1.5e308


def test_an_answer_without_groups_is_shown():
    """No key was selected: a table of names alone, in the words of the answer, and no picture."""
    table = hs.table(pa.table({"city": ["a", "b"]}))
    query = table.group_by("city", select_partitions=True).count()
    answer = query.release(epsilon=0.01, delta=1e-12)
    assert len(answer) == 0
    bundle = answer._repr_mimebundle_()
    assert bundle["text/plain"] == str(answer)
    assert "<th>city</th><th>count</th>" in bundle["text/html"]
    assert "<svg" not in bundle["text/html"]


def test_a_sensitivity_near_the_largest_double_is_drawn():
    """Forty times a movement is no double any more; the histogram has bars."""
    draw = hs.populations.Simulator(lambda rng, count: rng.uniform(size=count))
    sensitivity = hs.sample_sensitivity(
        lambda rows: HUGE * float(np.mean(rows)), draw, rows=3, pairs=30, gamma=0.5
    )
    assert sensitivity.value > 5e306
    assert "<rect" in sensitivity._repr_html_()


@pytest.mark.parametrize(
    "picture",
    [draw_interval(0.0, 1.2e308, HUGE, (0.0, HUGE)), draw_bound(1e308, HUGE, "a bound")],
    ids=["interval", "bound"],
)
def test_pictures_of_huge_numbers_have_ends(picture):
    """A length of "inf" would not be drawn."""
    assert "inf" not in picture
    assert "nan" not in picture


def test_a_chosen_category_sends_no_control_to_a_terminal():
    """The plain words of a card are printed as they are, so a category stays on one line."""
    categories = ["plain", "red\x1b[31m\nline"]
    mechanism = hs.StableMode(
        hs.statistics.mode(rows=50, categories=categories), epsilon=5.0, delta=1e-3
    )
    release = hs.release(mechanism.statistic, [categories[1]] * 50, mechanism)
    assert release.value == categories[1]
    bundle = release._repr_mimebundle_()
    assert "value: red [31m line\n" in bundle["text/plain"]
    assert "\x1b" not in bundle["text/plain"] + bundle["text/html"]
