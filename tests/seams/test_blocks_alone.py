"""Blocks: what one row can do to the other parts, to the release, and to this process."""

from __future__ import annotations

import copy
import os
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hushed as hs
from hushed._functions import _isolation
from hushed._functions._carried import carries_rows
from hushed._functions._isolated_process import _remove
from hushed._functions._isolation import call_isolated
from hushed.errors import BadFunction

pytestmark = pytest.mark.usefixtures("by_value")

EVEN = hs.Blocks(low=0, high=1, epsilon=30.0, blocks=2)
LABELS = hs.Blocks(["a", "b"], aggregate="votes", epsilon=30.0, blocks=2)


def say_a_number(number):
    """Make a function that sends its own answer if it has a certain row."""

    def speak(rows):
        if (rows == 7).any():
            for place in map(int, os.listdir("/proc/self/fd")):
                try:
                    os.write(place, struct.pack("=d", number))
                except OSError:
                    continue
        return "a"

    return speak


def go_deep(rows):
    """Leave a folder that no recursion comes to the end of, if it has a certain row."""
    if (rows == 7).any():
        for _ in range(3000):
            os.mkdir("d")
            os.chdir("d")
    return "a"


@pytest.mark.parametrize("number", [-1.0, 2.0, 1e300])
def test_a_place_of_no_label_is_no_vote(number):
    """Answers of processes are numbers, and need not be those of the labels."""
    draw = LABELS.aggregation.draw
    assert {draw(np.array([number, 1.0])) for _ in range(20)} == {"b"}
    assert {draw(np.array([0.0, number])) for _ in range(20)} == {"a"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [
        say_a_number(-1.0),
        pytest.param(go_deep, marks=pytest.mark.slow),
        pytest.param(say_a_number(1e300), marks=pytest.mark.slow),
    ],
)
def test_no_row_keeps_a_release_from_ending(function):
    """An error would tell of one row with certainty."""
    assert hs.release(function, np.array([7.0, 7.0, 1.0, 1.0]), LABELS).value in ("a", "b")


def fail(rows):
    """Fail on every part."""
    raise ValueError(rows)


@pytest.mark.slow
def test_calls_that_fail_use_up_no_files(monkeypatch):
    """A call that fails holds no memory, but files of its parent until it is cleared away."""
    monkeypatch.setattr(_isolation, "_MOST_ENDED", 5)
    old = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 30, old[1])
    )
    try:
        found = call_isolated(fail, [np.zeros(1)] * 20, workers=2)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, old)
    assert np.isnan(found).all()


@pytest.fixture
def open_folder():
    """Give a folder that every user may write to; that of pytest is for its own user."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o777)
        yield place


@pytest.mark.parametrize("locked", ["x/inner", "x"])
def test_a_locked_folder_is_removed_and_nothing_beside_it(open_folder, locked):
    """Links lead nowhere; the folder around it and what is linked keep their modes."""
    text = f"""
        import os
        from hushed._functions._isolated_process import _remove
        if not os.geteuid():
            os.setuid(65534)  # nothing is locked for root
        os.chdir({open_folder!r})
        os.makedirs("around/x/inner")
        os.mkdir("outside")
        open("outside/kept", "w").close()
        os.symlink("../../../outside", "around/x/inner/link")
        os.link("outside/kept", "around/x/inner/hard")
        os.chmod("around", 0o733)
        os.chmod("outside/kept", 0o640)
        os.chmod("around/{locked}", 0)
        _remove(os.path.abspath("around/x"))
        for each in ("around", "outside", "outside/kept"):
            print(oct(os.stat(each).st_mode & 0o777))
        os.chmod("around", 0o755)
        print(os.listdir("around"), os.listdir("outside"))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        env={**os.environ, "PYTHONPATH": str(Path(hs.__file__).parents[1])},
        capture_output=True,
        text=True,
        umask=0o022,
        check=False,
    )
    told = ["0o733", "0o755", "0o640", "[] ['kept']"]
    assert done.stdout.splitlines() == told, done.stderr


def test_a_folder_that_became_a_link_leads_nowhere(tmp_path):
    """A call may put a link in the place of its own folder."""
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir(mode=0o711)
    (outside / "kept").write_text("kept")
    folder.symlink_to(outside)
    _remove(str(folder))
    assert not folder.is_symlink()
    assert (outside / "kept").read_text() == "kept"
    assert outside.stat().st_mode & 0o777 == 0o711


def test_categories_of_a_part_are_its_own():
    """One row with a new category would give another number to those of all other rows."""
    held = pd.DataFrame({"c": pd.Categorical(["b", "c"] * 100)})
    new = pd.DataFrame({"c": pd.Categorical(["a", *held["c"][1:]], ["c", "a", "b"])})
    parts = [*EVEN.split(held), *EVEN.split(new)]
    seen = [tuple(part["c"].cat.categories) for part in parts]
    assert sorted(seen) == [("a", "b", "c"), *[("b", "c")] * 3]
    assert sorted(each for part in parts for each in part["c"]) == sorted([*held["c"], *new["c"]])


def test_an_order_of_categories_is_kept():
    """Who gives an order means it."""
    held = pd.Categorical(["low", "high"] * 50, ["low", "mid", "high"], ordered=True)
    part = EVEN.split(pd.DataFrame({"c": held}))[0]["c"]
    assert part.cat.ordered
    assert part.cat.categories.tolist() == ["low", "high"]


class Unsorted:
    """A category that cannot be compared or printed."""

    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return self.number

    def __eq__(self, other):
        return type(other) is Unsorted and self.number == other.number

    def __lt__(self, other):
        raise ValueError

    __repr__ = __lt__


def test_categories_that_cannot_be_sorted_end_nothing():
    """A failure after the charge would tell that there are two of them in a part."""
    held = pd.Categorical.from_codes([0, 1] * 20, [Unsorted(1), Unsorted(2)])
    parts = EVEN.split(pd.DataFrame({"c": held}))
    assert sorted(each.number for part in parts for each in part["c"]) == [1] * 20 + [2] * 20
    assert {part["c"].dtype for part in parts} == {np.dtype(object)}


def test_sets_as_categories_come_in_an_order_of_their_own():
    """Neither of two is smaller: sorting would leave them as the rows of the table come."""
    one, two = frozenset("ab"), frozenset("cd")
    orders = set()
    for given in ([one, two], [two, one]):
        column = pd.Categorical.from_codes([0, 1] * 40, pd.Index(given, tupleize_cols=False))
        parts = EVEN.split(pd.DataFrame({"c": column}))
        orders |= {tuple(part["c"].cat.categories) for part in parts}
    assert len(orders) == 1


def test_no_user_is_in_two_parts_whatever_the_name():
    """A tuple with NaN is equal to no other one, and still the same person's."""
    many = hs.Blocks(low=0, high=1, epsilon=2.0, user=0)
    rows = [(("name", float("nan")), place) for place in range(100)]
    assert sorted(map(len, many.split(rows)))[-2:] == [0, 100]
    known = [(("name", 1), place) for place in range(100)]
    assert sorted(map(len, many.split(known)))[-2:] == [0, 100]


TABLE = pd.DataFrame({"x": np.arange(40.0), "y": np.arange(40.0) ** 2})


ROWS = TABLE.to_numpy().tolist()


def use(held):
    """Make a function that carries something with it."""
    return lambda rows: float(len(rows) > 0) if held is None else float(np.size(held) > 0)


@pytest.mark.parametrize(
    ("rows", "held"),
    [
        (TABLE, TABLE),
        (TABLE, TABLE["y"]),
        (TABLE["x"].to_numpy(), TABLE["x"].to_numpy()[3:5]),
        (ROWS, {"kept": [ROWS]}),
    ],
    ids=["itself", "a column", "a view", "a list"],
)
def test_a_function_that_carries_the_private_rows_is_refused(tmp_path, rows, held):
    """Every block would see all of them; nothing is charged."""
    with hs.Ledger(f"sqlite:///{tmp_path}/budget.db") as ledger:
        ledger.open_budget("b", hs.Guarantee(epsilon=99.0))
        with pytest.raises(BadFunction, match="carries the private rows"):
            hs.release(use(held), rows, EVEN, ledger=ledger, budget="b")
        assert ledger.balance("b").entries == 0


TYPES = {
    "texts": ["a", None, "bb", "c"] * 10,
    "masked": pd.array([1, None] * 20, dtype="Int64"),
    "numbers of Arrow": pd.array([1, None] * 20, dtype="int64[pyarrow]"),
    "texts of Arrow": pd.array(["a", None] * 20, dtype="string[pyarrow]"),
    "lists of Arrow": pd.array([[1], [2, 3]] * 20, dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
    "days": pd.date_range("2020-01-01", periods=40),
    "categories": pd.Categorical(["a", "b"] * 20),
}


@pytest.mark.parametrize("which", TYPES)
def test_a_column_that_a_function_carries_is_recognised_whatever_its_type(which):
    """A series, a slice and a column of another frame of the same memory; copies are not."""
    table = pd.DataFrame({"a": TYPES[which]})
    assert carries_rows(use(table["a"]), table)
    assert carries_rows(use(table.iloc[5:9]), table)
    assert not carries_rows(use(table["a"].iloc[:20]), table.iloc[20:])
    assert not carries_rows(use(table.take(range(39, -1, -1))), table)


@pytest.mark.parametrize("rows", [TABLE, ROWS, TABLE.to_numpy()], ids=["frame", "list", "array"])
def test_no_guess_of_the_whole_table_is_confirmed(rows):
    """Who knows all rows but one and tries the last: no refusal, and no charge, may tell."""
    assert not carries_rows(use(copy.deepcopy(rows)), rows)


@pytest.mark.parametrize("held", [None, np.arange(40.0) + 1, TABLE.iloc[::-1], [1.0, 2.0]])
def test_what_else_a_function_carries_is_let_through(held):
    """Public weights are no private rows."""
    assert not carries_rows(use(held), TABLE.copy())
    assert carries_rows(use([held, TABLE]), TABLE)


class Raising:
    """A cell that raises when it is pickled, or stops the process as Ctrl-C does."""

    def __init__(self, kind):
        self.kind = kind

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        if self.kind is signal.SIGINT:
            signal.raise_signal(self.kind)
        raise self.kind


def count(rows):
    """Count rows."""
    return float(len(rows))


@pytest.mark.slow
@pytest.mark.parametrize("least", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_what_one_call_takes_up_keeps_no_other_from_its_answer(monkeypatch, least):
    """Where no process can be started beside it, the next one waits for its end."""
    start, opened = _isolation.Process, []

    def scarce(*given):
        if sum(each.is_alive() for each in opened) >= least:
            raise BlockingIOError("Resource temporarily unavailable")
        opened.append(start(*given))
        return opened[-1]

    monkeypatch.setattr(_isolation, "Process", scarce)
    assert call_isolated(count, [[1.0] * 3, [1.0], []], workers=3).tolist() == [3.0, 1.0, 0.0]


def test_where_nothing_can_be_started_it_says_so(monkeypatch):
    """There is nothing to wait for."""

    def failing(*given):
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(_isolation, "Process", failing)
    with pytest.raises(BlockingIOError):
        call_isolated(count, [[1.0]])


@pytest.mark.slow
def test_a_cell_that_raises_what_a_stop_raises_stops_nothing():
    """Its part alone has no answer: an end of the release would tell of one row."""
    odd = [[Raising(kind)] for kind in (KeyboardInterrupt, SystemExit)]
    found = call_isolated(count, [[1.0], *odd, [1.0, 2.0]])
    assert np.array_equal(found, [1.0, np.nan, np.nan, 2.0], equal_nan=True)


@pytest.mark.slow
def test_ctrl_c_still_stops_while_cells_are_pickled():
    """A signal is a stop wherever it comes, and is handled as before from then on."""
    kept = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    try:
        with pytest.raises(KeyboardInterrupt):
            call_isolated(count, [[1.0], [Raising(signal.SIGINT)]])
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, kept)
