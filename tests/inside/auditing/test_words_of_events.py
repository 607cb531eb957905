"""Words of events where outputs are of several types: they name the types, and say it once."""

import numpy as np
import pytest

import hushed as hs
from hushed.auditing._outputs import Encoder
from hushed.auditing._scores.histogram import _describe_intervals
from hushed.auditing._scores.pattern import Mixture

HOW = {"samples": 4_000, "workers": 1, "bits": False, "progress": False, "seed": 1}


def positive_or_low(rows, rng):
    noisy = rows[0] + rng.laplace()
    return noisy if noisy > 0 else "low"


def number_or_text(rows, rng):
    noisy = round(rows[0] + rng.laplace())
    return (noisy,) if noisy % 2 else str(noisy)


@pytest.mark.parametrize(
    ("mechanism", "said"),
    [
        (positive_or_low, "the output is of the type float, and the log ratios of which values"),
        (number_or_text, " or a rare output"),
    ],
)
def test_types_are_named(mechanism, said):
    """Those that are in the event; and outputs that have no words are named once."""
    claim = hs.Guarantee(epsilon=0.2)
    event = hs.audit(mechanism, [([0], [1])], claim=claim, **HOW).witness.event
    assert said in event
    assert event.count("rare output") <= 1
    if mechanism is number_or_text:  # larger on the second table, odd ones in a tuple
        named = event.removeprefix("the output is ").removesuffix(said).split(" or ")
        assert sorted(named) == ["'2'", "'4'", "(1,)", "(3,)", "(5,)"]


@pytest.mark.parametrize(
    ("threshold", "first", "said"),
    [
        (0.2, True, "the output is of the type float (rare outputs aside)"),
        (-0.1, False, "the output is of the type str (rare outputs aside)"),
        (0.7, True, "the output is of the type float, and the log ratios of "),
        (-2.0, True, "the log ratios of which values repeat"),
    ],
)
def test_a_type_is_inside_wholly_or_in_part(threshold, first, said):
    """Floats score 0.5 or 0.9 by their number, texts -0.5."""
    encoder = Encoder(width=1, objects=True, names={1.0: "float", 2.0: "str"})
    none = np.zeros(0)
    score = Mixture(
        encoder=encoder,
        atoms=(np.array([1.0, 2.0]), none, none, none),  # type, length, types of the parts, number
        patterns=np.array([2 * 8.0, 3 * 8.0 + 1]),  # a float with any number, a text without one
        ratios=np.array([0.5, -0.5, 0.0]),
        free=(((3, np.array([0.0]), np.array([0.0, 0.4, -9.0])),), ()),
    )
    assert score.describe(threshold, first=first).startswith(said)


def test_a_number_of_numpy_is_the_same_outcome_as_that_of_python():
    """The page on audits says so: whoever reads it sees no difference; a text is another."""

    def number(rows, rng):
        value = float(rng.integers(3))
        return np.float64(value) if rows[0] else value

    def text(rows, rng):
        value = float(rng.integers(3))
        return str(value) if rows[0] else value

    claim = hs.Guarantee(epsilon=0.2)
    found = [hs.audit(each, [([0], [1])], claim=claim, **HOW).verdict for each in (number, text)]
    assert found == ["not refuted", "violated"]


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [(0, 0.0, "0.0"), (True, 1, "1"), (np.int64(1), np.float64(1), "1.0"), (0, 1, None)],
)
def test_equal_numbers_of_two_types_are_told_apart_and_the_words_say_why(one, other, told):
    """A type that is another one on one table tells the tables apart, and shows."""

    def answering(rows, rng):
        return other if rows[0] else one

    report = hs.audit(answering, [([0], [1])], claim=hs.Guarantee(epsilon=1.0), **HOW)
    assert report.verdict == "violated"
    said = f"(and not {told}, an equal number of another type"
    assert (said in report.explain().replace("\n", " ")) == (told is not None)


@pytest.mark.parametrize(
    ("edges", "inside", "said"),
    [
        ([1.0, 2.0], [0, 0, 1, 0], "lies in [2, inf]"),  # its last bin holds what is infinite
        ([1.0, np.inf], [0, 1, 0, 0], "lies in [1, inf)"),
        ([1.0, np.inf], [0, 0, 1, 0], "is inf"),
        ([np.finfo(float).max], [0, 1, 0], "lies in [1.79769e+308, inf]"),
        ([1.0, 1.0000001], [0, 1, 0, 0], "lies in [1.0, 1.0000001)"),
        ([1.0, 2.0], [1, 1, 1, 1], "lies in [-inf, inf] or is NaN"),
    ],
)
def test_intervals_hold_what_they_are_said_to_hold(edges, inside, said):
    """An infinite output was counted in an interval that was written without it."""
    assert _describe_intervals(np.array(edges), np.array(inside, dtype=bool)) == said
