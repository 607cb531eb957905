"""What goes wrong on a population that was made from the private rows tells nothing of them."""

import numpy as np
import pytest

import hushed as hs
from hushed.errors import BadFunction

SECRET = 4321
ROWS = np.r_[np.arange(50.0), SECRET]


def _draw(rng, count):
    return rng.choice(ROWS, count)


def _telling(rows):
    return np.zeros(int(rows.max()))


def _telling_stack(tables):
    return np.zeros((int(tables.max()), 1)) if tables.shape[0] > 1 else np.zeros((1, 1))


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("function", "named"),
    [
        (_telling, {}),
        (_telling_stack, {"batch": True}),
        (_telling, {"update": lambda answer, rows, places, new: np.zeros((len(places), 49))}),
        (
            lambda rows: rows.mean(),
            {"update": lambda answer, rows, places, new: np.zeros(int(rows.max()))},
        ),
    ],
    ids=["answer", "stack", "updated", "update"],
)
def test_shapes_that_hold_a_value_are_not_told(function, named, workers):
    """A function may answer with as many numbers as a row says; an error does not say how many."""
    people = hs.populations.Simulator(_draw)
    with pytest.raises(BadFunction) as caught:
        hs.sample_sensitivity(
            function,
            people,
            rows=40,
            pairs=100,
            data_dependent=True,
            workers=workers,
            **named,
        )
    assert not [each for each in str(caught.value) if each.isdigit()]
