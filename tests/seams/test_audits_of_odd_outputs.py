"""Outputs may be anything: those that cannot be read are outcomes, too."""

import json

import pytest

import hushed as hs
from hushed.auditing._outputs import read_object


class FailsOnRepr:
    def __repr__(self):
        raise RuntimeError("no text")


class FailsOnLength:
    def __len__(self):
        raise RuntimeError("no length")


class FailsOnFloat(float):
    def __float__(self):
        raise RuntimeError("no number")


class Hostile:
    pass


Hostile.__name__ = "\x1b[31mred\n"


def nested(depth):
    found = []
    for _ in range(depth):
        found = [found]
    return found


def holds_itself():
    found = []
    found.append(found)
    return found


ODD = {
    "no text": FailsOnRepr(),
    "no length": FailsOnLength(),
    "no number": FailsOnFloat(1.0),
    "itself": holds_itself(),
    "deep": nested(3000),
    "controls": Hostile(),
    "half a character": "\ud800",
    "beyond doubles": 10**400,
}


DEAR = ("itself", "deep")  # seconds each


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=pytest.mark.slow) if each in DEAR else each for each in ODD],
)
@pytest.mark.parametrize("sequential", [False, True])
def test_an_output_that_cannot_be_read_is_an_outcome(name, sequential):
    """One that is as good as certain on one table alone is caught, and told in one line."""

    def tells(rows, rng):
        return ODD[name] if (rng.random() < 0.95) == bool(rows[0]) else 0.5

    found = hs.audit(
        tells,
        [([1.0], [0.0])],
        claim=hs.Guarantee(epsilon=1.0),
        samples=3000 if sequential else 400,
        sequential=sequential,
        workers=1,
    )
    assert found.verdict == "violated"
    assert 1 < found.epsilon_low < 3
    assert found.witness.event.isprintable()
    json.loads(found.to_json())
    assert all(line.isprintable() for line in found.explain().split("\n"))


@pytest.mark.slow_cases("deep")
@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=pytest.mark.slow) if each == "itself" else each for each in ODD],
)
def test_no_private_mechanism_is_accused_for_odd_outputs(name):
    """Whatever it returns: it loses half of what is claimed."""

    def keeps(rows, rng):
        return ODD[name] if rng.random() < 0.5 + 0.1 * rows[0] else None

    found = hs.audit(
        keeps, [([1.0], [0.0])], claim=hs.Guarantee(epsilon=1.0), samples=400, workers=1
    )
    assert found.verdict == "not refuted"


def test_what_is_deep_is_read_until_fifty_parts_lie_within_each_other():
    """The same output is read alike, however much of the stack is in use."""
    for depth, numbers in ((50, [2.5]), (51, [])):
        held = 2.5
        for _ in range(depth):
            held = [held]
        assert read_object(held)[2] == numbers
