"""Release of any function by blocks: charged, asked apart, certified, verified, stored."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import hushed as hs
from hushed.errors import BadFunction, BadRows, HushedError, KeyInUse, Overspent, ParameterError

pytestmark = pytest.mark.usefixtures("by_value")

ROWS = np.arange(40.0)
FEW = hs.Blocks([0.0, 20.0, 40.0], epsilon=20.0, blocks=2)


def middle(rows):
    """Middle of the rows."""
    return float(np.median(rows))


def word(rows):
    """Text of their size."""
    return "many" if len(rows) > 3 else "few"


def both(rows):
    """Two numbers."""
    return np.array([rows.mean(), rows.std()])


MADE = {
    "exponential": (middle, FEW),
    "range": (middle, hs.Blocks(low=0, high=40, epsilon=20.0)),
    "range, geometric": (middle, hs.Blocks(low=0, high=40, epsilon=20.0, spacing="geometric")),
    "prior": (middle, hs.Blocks([0.0, 20.0, 40.0], epsilon=20.0, prior=[1, 5, 0])),
    "votes": (word, hs.Blocks(["few", "many"], epsilon=20.0, aggregate="votes")),
    "mean": (middle, hs.Blocks(low=0, high=40, epsilon=20.0, blocks=2, aggregate="mean")),
    "vector": (
        both,
        hs.Blocks(
            aggregate="vector", centre=[20, 10], radius=20, epsilon=20.0, delta=1e-6, blocks=2
        ),
    ),
    "people": (middle, hs.Blocks(low=0, high=40, epsilon=20.0, unit="person")),
    "add-remove": (middle, hs.Blocks(low=0, high=40, epsilon=20.0, neighbours="add-remove")),
    "user": (np.size, hs.Blocks([0, 40, 80], epsilon=20.0, user=1)),
}


@pytest.fixture
def ledger(tmp_path):
    """Give a ledger with a budget of epsilon 45."""
    with hs.Ledger(f"sqlite:///{tmp_path}/budget.db") as opened:
        opened.open_budget("b", hs.Guarantee(epsilon=45.0))
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize(
    "which", ["exponential", *(pytest.param(x, marks=pytest.mark.slow) for x in list(MADE)[1:])]
)
def test_every_way_of_putting_answers_together_is_released(which):
    """The certificate comes back from JSON, is verified, and says whom it protects."""
    function, mechanism = MADE[which]
    rows = np.c_[ROWS, ROWS // 4] if which == "user" else ROWS
    released = hs.release(function, rows, mechanism)
    certificate = released.certificate
    if mechanism.values:
        assert released.value in mechanism.values
    assert certificate.guarantee == mechanism.guarantee
    assert certificate.guarantee.gamma == 0
    text = certificate.to_json()
    assert hs.Certificate.from_json(text) == certificate
    found = hs.verify(text)
    assert found.reproduced
    assert "docs/blocks.md" in found.explain()
    assert "the rows were dealt, and this function was asked, as it says" in found.explain()
    words = certificate.explain()
    assert "this holds for every table, every" in words
    assert "every function; no population is assumed" in words
    several = "s" * (mechanism.blocks > 1)
    assert f"asked about {mechanism.blocks} block{several} of" in words
    assert ("each row is one person" in words) is (which == "people")
    assert ("by the column '1'" in words) is (which == "user")


@pytest.mark.slow
def test_the_answer_is_near_that_of_the_function():
    """With an epsilon at which the noise is next to nothing."""
    sharp = hs.Blocks(np.linspace(0, 40, 41), epsilon=200.0, blocks=4)
    assert abs(hs.release(middle, ROWS, sharp).value - 19.5) < 15
    frame = pd.DataFrame({"x": ROWS, "label": ["a", "b", "b", "b"] * 10})
    voted = hs.release(
        lambda part: part["label"].mode()[0],
        frame,
        hs.Blocks(["a", "b"], epsilon=200.0, blocks=2, aggregate="votes"),
    )
    assert voted.value == "b"


@pytest.mark.slow
def test_a_release_is_charged_once_and_stored(ledger):
    """The same question under its key costs nothing, and another one under it is refused."""
    ask = {"ledger": ledger, "budget": "b", "key": "k"}
    first = hs.release(middle, ROWS, FEW, **ask)
    again = hs.release(middle, ROWS, FEW, **ask)
    assert (again.value, again.certificate) == (first.value, first.certificate)
    with pytest.raises(KeyInUse):
        hs.release(np.max, ROWS, FEW, **ask)
    with pytest.raises(KeyInUse):
        hs.release(middle, ROWS, hs.Blocks([0.0, 20.0, 41.0], epsilon=20.0, blocks=2), **ask)
    assert ledger.balance("b").entries == 1
    hs.release(middle, ROWS, FEW, ledger, budget="b")
    with pytest.raises(Overspent):
        hs.release(middle, ROWS, FEW, ledger, budget="b")


@pytest.mark.slow
def test_bad_use_costs_nothing(ledger):
    """No function, too few rows, another relation, what cannot be sent: refused and unpaid."""
    import threading

    lock = threading.Lock()

    def locked(rows):
        with lock:
            return 0.0

    def ask(f=middle, rows=ROWS, mechanism=FEW, **more):
        return hs.release(f, rows, mechanism, ledger, budget="b", **more)

    with pytest.raises(ParameterError, match="must be a function, got float"):
        ask(5.0)
    with pytest.raises(ParameterError, match="InverseSensitivity and hs"):
        ask(hs.statistics.median(rows=40, low=0, high=1))
    with pytest.raises(BadFunction, match="cannot be sent to a fresh process"):
        ask(locked)
    with pytest.raises(BadRows, match="need as many rows, the table has 1"):
        ask(rows=ROWS[:1])
    with pytest.raises(BadRows, match="rows must be"):
        ask(rows="text")
    with pytest.raises(ParameterError, match="leave outside= out"):
        ask(outside="allow")
    with pytest.raises(ParameterError, match="add-remove"):
        ask(mechanism=MADE["add-remove"][1])
    with pytest.raises(BadRows, match="user='id' must be"):
        ask(mechanism=hs.Blocks(low=0, high=1, epsilon=20.0, user="id"))
    assert ledger.balance("b").entries == 0


@pytest.mark.slow
def test_a_function_that_fails_on_some_rows_answers_in_silence(capfd):
    """Nobody can tell that it failed, or where: it counts as the lowest candidate."""

    def fails(rows):
        print("secret", rows)
        raise ValueError("secret")

    sharp = hs.Blocks([0.0, 20.0, 40.0], epsilon=200.0, blocks=2)
    assert hs.release(fails, ROWS, sharp).value == 0.0
    assert hs.release(lambda rows: "text", ROWS, sharp).value == 0.0
    assert hs.release(lambda rows: [1.0, 2.0], ROWS, sharp).value == 0.0
    assert "secret" not in "".join(capfd.readouterr())


@pytest.mark.slow
def test_calls_share_nothing():
    """A function that keeps the rows it has seen starts anew for each block."""
    seen = []

    def remembers(rows):
        seen.append(len(rows))
        return 20.0 * len(seen)

    sharp = hs.Blocks([0.0, 20.0, 40.0, 60.0], epsilon=200.0, blocks=3)
    assert hs.release(remembers, ROWS, sharp).value == 20.0
    assert not seen


def test_a_subclass_is_none_of_ours():
    """It may draw anything, and is not released under that name."""

    class Own(hs.Blocks):
        """One that draws nothing."""

    with pytest.raises(ParameterError, match="only a mechanism"):
        hs.release(middle, ROWS, Own(low=0, high=1))


@pytest.mark.slow_cases("add-remove", "people", "range")
@pytest.mark.parametrize("which", MADE)
def test_an_altered_certificate_contradicts_itself(which):
    """Every number that follows from others, every name and every type."""
    from hushed.releasing._certifying import certify_blocks

    loaded = json.loads(certify_blocks(MADE[which][1], "f").to_json())
    assert hs.verify(json.dumps(loaded)).reproduced

    def refused(**changes):
        with pytest.raises(HushedError):
            pytest.fail(f"{hs.Certificate.from_json(json.dumps(loaded | changes))}")

    record = loaded["mechanism"]
    for name, value in {"scale": 0.5, "grid": 3, "values": 999, "accuracy": 1e-9}.items():
        refused(mechanism=record | {name: value})
        refused(mechanism=record | {name: 10**400})
    for name, value in {"epsilon": 0.5, "gamma": 0.1, "unit": "user?"}.items():
        refused(guarantee=loaded["guarantee"] | {name: value})
    refused(argument="one record is in one of 5000 blocks, and moves one answer")
    refused(sensitivity=loaded["sensitivity"] / 2)
    refused(norm="range")
    refused(outside="clamp")
    refused(confirmed="bits")
    stated = record["parameters"]
    for name, value in stated.items():
        others = [None, [1]] + ([True] if type(value) is not bool else [1])
        others += [5] if isinstance(value, str) else ["x"]
        for other in others:
            refused(mechanism=record | {"parameters": stated | {name: other}})
        refused(mechanism=record | {"parameters": {k: v for k, v in stated.items() if k != name}})
    refused(mechanism=record | {"parameters": stated | {"more": 1}})
    refused(mechanism=record | {"parameters": stated | {"epsilon": 0.25}})
    if "candidates" in stated:
        refused(mechanism=record | {"parameters": stated | {"candidates": 10**15}})


def half(rows):
    """Answer between two candidates."""
    return 0.52


@pytest.mark.slow
def test_what_is_said_of_the_answer_holds_between_candidates_and_without_a_weight():
    """The drawn candidate is not among answers between two of them, nor is one that cannot win."""
    able = "of those to which the prior gives a weight"
    drawn = hs.release(half, ROWS, hs.Blocks([0.1, 0.5, 0.9], epsilon=20.0, blocks=2))
    words = drawn.certificate.explain()
    moved = "in ascending order, each moved to the nearest of these values: anywhere among the"
    assert moved in words  # of two answers the error says no more
    assert able not in words
    votes = hs.Blocks(
        ["a", "b", "many"], epsilon=20.0, blocks=2, aggregate="votes", prior=[1, 1, 0]
    )
    assert able in hs.release(word, ROWS, votes).certificate.explain()


@pytest.mark.slow
def test_limits_are_said_in_units_that_can_be_read_aloud():
    """Exactly, and in bytes only where there is no larger unit without a fraction."""
    limits = hs.blocks.Limits(memory=2**31)
    limited = hs.Blocks([0.0, 40.0], epsilon=20.0, blocks=1, limits=limits)
    released = hs.release(half, ROWS, limited).certificate
    assert "2 GiB of memory" in released.explain()
    loaded = json.loads(released.to_json())
    for size, said in ((2**30 + 2**20, "1025 MiB of"), (2**31 + 1, "2147483649 bytes of")):
        loaded["mechanism"]["parameters"]["memory"] = size
        assert said in hs.Certificate.from_json(json.dumps(loaded)).explain()


@pytest.mark.slow
def test_a_certificate_without_a_loss_is_refused_in_words():
    """Of a prior there is nothing to build again; what is stated of it is read as carefully."""
    which = MADE["prior"]
    loaded = json.loads(hs.release(which[0], ROWS, which[1]).certificate.to_json())
    loaded["mechanism"]["parameters"]["epsilon"] = 0.0
    with pytest.raises(ParameterError, match="epsilon"):
        hs.Certificate.from_json(json.dumps(loaded))
