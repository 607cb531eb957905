"""A row ends nothing: what raises as Ctrl-C does is a failure, and no cell is refused unpaid."""

import signal
import threading
import traceback
from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hushed as hs
from hushed._ground.stops import raise_stops
from hushed.errors import BadFunction

ROWS = [1.0, 0.0] * 20
PROVEN = hs.Laplace(hs.proven_sensitivity(1.0, argument="a count"), epsilon=1.0)
GRID = [0.2, 0.8]
MEDIAN = hs.statistics.median(rows=40, low=0, high=1)


@pytest.fixture
def book(tmp_path):
    with hs.Ledger(f"sqlite:///{tmp_path}/budget.db") as opened:
        opened.open_budget("b", hs.Guarantee(epsilon=1000.0))
        yield opened


def stop(rows):
    raise KeyboardInterrupt("31337")


class Answer:
    """An answer that stops whoever reads it."""

    def __array__(self, dtype=None, copy=None):
        raise KeyboardInterrupt("31337")


class Stopping:
    """A cell that stops whoever copies it."""

    def __deepcopy__(self, memo):
        raise KeyboardInterrupt("31337")

    def __reduce__(self):
        raise KeyboardInterrupt("31337")


FAILING = {"raised": stop, "an answer": lambda rows: Answer(), "a thread": stop}


@pytest.mark.parametrize("way", FAILING)
def test_what_raises_as_ctrl_c_does_is_an_answer_as_other_failures_are(way, book):
    """It is stored; otherwise one charge would pay for as many questions as anybody asks."""
    failures = []

    def ask():
        with pytest.raises(BadFunction, match="KeyboardInterrupt") as caught:
            hs.release(FAILING[way], ROWS, PROVEN, book, budget="b", key="k")
        failures.append(str(caught.value))

    for _ in range(2):
        if way == "a thread":
            thread = threading.Thread(target=ask)
            thread.start()
            thread.join(30)
        else:
            ask()
    assert len(failures) == 2
    assert failures[0] == failures[1]
    assert "31337" not in failures[0]
    assert book.answer("b", "k") is not None
    assert book.balance("b").entries == 1


def test_ctrl_c_is_a_stop_within_the_calls_of_rows(book, tmp_path, press_ctrl_c):
    """Within a watch, as within the function that it is for; a new charge is not needed after."""
    pressed = tmp_path / "pressed"

    def likelihood(row, points):
        if not pressed.exists():
            pressed.touch()
            press_ctrl_c()
        return np.log(points)

    mechanism = hs.Posterior(likelihood, GRID, epsilon=1.0, clip=1.0)
    with pytest.raises(KeyboardInterrupt, match="at no cost"):
        hs.release(likelihood, ROWS, mechanism, book, budget="b", key="k")
    again = hs.release(likelihood, ROWS, mechanism, book, budget="b", key="k")
    assert again.value in GRID
    assert book.balance("b").entries == 1


def test_what_catches_ctrl_c_is_answered_and_later_stops_are_none(press_ctrl_c):
    """A watch ends with its call: the handlers are those from before."""

    def careful(rows):
        try:
            press_ctrl_c()
        except KeyboardInterrupt:
            return 1.0

    assert abs(hs.release(careful, ROWS, PROVEN).value - 1) < 60
    with pytest.raises(BadFunction, match="KeyboardInterrupt"):
        hs.release(stop, ROWS, PROVEN)
    with pytest.raises(KeyboardInterrupt):
        press_ctrl_c()


def test_a_watch_that_was_cut_short_is_not_heard_afterwards(press_ctrl_c):
    """A signal may come while handlers are put back: what it noted is no stop of later calls."""
    left = None

    def keeping(rows):
        nonlocal left
        left = signal.getsignal(signal.SIGINT)
        return 1.0

    hs.release(keeping, ROWS, PROVEN)
    signal.signal(signal.SIGINT, left)
    with pytest.raises(KeyboardInterrupt):
        press_ctrl_c()
    with pytest.raises(BadFunction, match="KeyboardInterrupt"):
        hs.release(stop, ROWS, PROVEN)


class Unique:
    """A cell that can be neither copied nor sent."""

    def __init__(self):
        self.lock = threading.Lock()


HELD = {
    "list": list,
    "array": lambda cells: np.array(cells, dtype=object),
    "pandas": lambda cells: pd.DataFrame({"x": pd.Series(cells, dtype=object)}),
    "polars": lambda cells: pl.DataFrame([pl.Series("x", cells, dtype=pl.Object)]),
}


def count(rows):
    return float(len(rows))


def likelihood(row, points):
    return np.log(np.array(points)) * len(row)


@pytest.mark.filterwarnings("ignore:the column holds objects")
@pytest.mark.parametrize("cell", [Unique, Stopping])
@pytest.mark.parametrize("held", HELD)
def test_a_cell_that_cannot_be_copied_refuses_nothing(held, cell, book):
    """A refusal before the charge would tell, at no cost, that a row holds such a thing."""
    rows = HELD[held]([cell(), *ROWS[1:]])
    posterior = hs.Posterior(likelihood, GRID, epsilon=1.0, clip=1.0)
    coins = hs.posterior.bernoulli(GRID, epsilon=1.0)  # which counts what is no number as 0
    asked = [(count, PROVEN), (likelihood, posterior), (coins.log_likelihood, coins)]
    if held in ("list", "array"):
        asked.append((MEDIAN, hs.Smooth(MEDIAN, epsilon=1.0)))
    for place, (f, mechanism) in enumerate(asked, start=1):
        assert hs.release(f, rows, mechanism, book, budget="b").value is not None
        assert book.balance("b").entries == place


@dataclass(frozen=True)
class Measured:
    """A row that some values keep from being copied."""

    value: float

    def __deepcopy__(self, memo):
        return self.value[0] if self.value < 0 else Measured(self.value)


@pytest.mark.slow
def test_a_count_of_pairs_goes_on_where_a_row_cannot_be_copied(book):
    """Its pair is counted as any other; a check that fails would tell of one row."""

    def mean(rows):
        return float(np.mean([row.value for row in rows]))

    law = hs.populations.Simulator(lambda rng, n: list(map(Measured, rng.random(n).tolist())))
    s = hs.sample_sensitivity(mean, law, rows=3, gamma=0.2, pairs=100, workers=1)
    private = [Measured(0.5) for _ in range(99)] + [Measured(-0.1)]
    found = hs.check_movement(mean, private, s, epsilon=20.0, ledger=book, budget="b")
    assert found.pairs == 25
    assert abs(found.moved) < 3  # of equal rows no pair moves, but that one may


@pytest.mark.slow
@pytest.mark.parametrize("held", ["list", pytest.param("pandas", marks=pytest.mark.slow)])
def test_blocks_of_such_cells_fail_alone(held, by_value):
    """The part that cannot be sent has no answer, and the release has one."""
    rows = HELD[held]([Unique(), *ROWS[1:]])
    blocks = hs.Blocks(low=0, high=40, epsilon=50.0, blocks=2, aggregate="mean")
    found = hs.release(count, rows, blocks).value
    assert abs(found - 10) < 5  # 20 rows in one block, and nothing of the other


def test_what_a_function_gets_is_its_own_wherever_it_can_be_copied():
    """One cell that cannot be copied leaves the others as they were."""
    rows = [[1.0], Unique(), [2.0]]

    def writing(given):
        given[0].append(5.0)
        return float(len(given))

    hs.release(writing, rows, PROVEN)
    assert rows[0] == [1.0]


@pytest.mark.parametrize("raised", [KeyboardInterrupt, GeneratorExit, BaseException, ValueError])
def test_an_object_in_a_frame_cannot_end_the_opening_of_its_table(raised):
    """Its cell is missing, and what it says is not shown; whether one is there is not told."""

    class Cell:
        def __str__(self):
            raise raised("secret")

    table = hs.table(pd.DataFrame({"word": ["a", Cell(), "a"]}))
    answer = table.group_by("word", keys=["a"]).count().release(epsilon=100)
    assert round(answer.values["count"][0]) == 2


def test_what_failed_after_a_signal_is_not_shown_with_the_stop():
    """An error of a driver, which may quote a cell, was printed as what the stop came from."""

    @raise_stops()
    def fail():
        signal.raise_signal(signal.SIGTERM)
        raise ValueError("no number: Ada")

    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        with pytest.raises(KeyboardInterrupt) as stopped:
            fail()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert "Ada" not in "".join(traceback.format_exception(stopped.value))
