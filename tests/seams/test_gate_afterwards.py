"""What a private call leaves behind: a copy of the process, threads below Python's, and garbage."""

import _thread
import asyncio
import contextlib
import fractions
import gc
import logging
import os
import sys
import threading
import time

import numpy as np
import pytest

import hushed as hs
from hushed import transformations as t
from hushed.errors import BadFunction, BadRows, ParameterError
from hushed.spaces import ABSOLUTE, SYMMETRIC, Cell, Column, Numbers, Space, Table

PROVEN = hs.Laplace(hs.proven_sensitivity(1.0, argument="a constant"), epsilon=1.0)
SECRET = "Wilhelmina"
ROWS = [12345, 2]

SPACE = Space(domain=Column(cell=Cell(low=0, high=9)), metric=SYMMETRIC)


def declare(f):
    """Make a step of a chain."""
    return t.declared(
        f, source=SPACE, target=Space(domain=Numbers(), metric=ABSOLUTE), stability=1, argument="x"
    )


def double(ends):
    """Make a function that copies its process, waits for the copy, and notes how that ended."""

    def f(rows):
        child = os.fork()
        if child:
            ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        return 1.0

    return f


def double_and_fail(ends):
    """Make one whose copy fails."""

    def f(rows):
        child = os.fork()
        if not child:
            sys.exit(0)
        ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        return 1.0

    return f


CAME_BACK = 77
DOORS = {
    "a release": lambda f: hs.release(f, ROWS, PROVEN),
    "a step of a chain": lambda f: declare(f)(np.array([1.0, 2.0])),
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("make", [double, double_and_fail])
@pytest.mark.parametrize("door", DOORS)
def test_a_function_that_doubles_its_process_is_answered_once(door, make):
    """Two draws for one charge would halve the noise: the copy ends where the call ends."""
    here, ends = os.getpid(), []
    try:
        DOORS[door](make(ends))
    finally:
        if os.getpid() != here:
            os._exit(CAME_BACK)
    assert ends == [1]


class Parting:
    """Says something when it is removed; if it holds itself, only the collector does that."""

    def __init__(self, word, *, around):
        self.word, self.held = word, self if around else None

    def __del__(self):
        print(SECRET, self.word)
        logging.getLogger("study").error(SECRET)


def leave_a_cycle(rows):
    """Leave garbage."""
    Parting(rows[0], around=True)
    return 1.0


def leave_an_old_cycle(rows):
    """Leave what was searched for garbage before it was some."""
    held = [Parting(rows[0], around=True)]
    for _ in range(15):
        kept = [[each] for each in range(3000)]
        del kept[0]
    held.clear()
    return 1.0


def leave_a_task(rows):
    """Leave a task of asyncio that failed, and whose error nobody asked for."""

    async def fails():
        raise ValueError(f"{SECRET} {rows[0]}")

    async def begins():
        task = asyncio.ensure_future(fails())
        await asyncio.sleep(0)
        held = [task]
        held.append(held)

    asyncio.run(begins())
    return 1.0


def fail_with_it(rows):
    """Hold it while failing."""
    kept = Parting(rows[0], around=False)
    raise ValueError(kept)


LEAVING = [leave_a_cycle, leave_an_old_cycle, leave_a_task, fail_with_it]


@pytest.fixture
def heard(capfd, caplog):
    """What was said, once everything that can be removed was."""

    def collected():
        gc.collect()
        found = "".join([*capfd.readouterr(), caplog.text])
        caplog.clear()
        return found

    return collected


@pytest.mark.parametrize("leave", LEAVING)
def test_what_is_said_as_a_call_is_cleared_away_is_not_heard(leave, heard):
    """Python removes it when it likes, as a rule in the next call of something else."""
    with contextlib.suppress(BadFunction):
        hs.release(leave, ROWS, PROVEN)
    assert SECRET not in heard()


STEPS = {
    "a step of one's own": declare,
    "a function of one row": lambda f: (
        SPACE >> t.map_rows(lambda row: f([row]), Cell(low=0, high=1))
    ),
}


@pytest.mark.slow_cases(
    "a function of one row-leave_a_cycle", "a function of one row-leave_an_old_cycle"
)
@pytest.mark.parametrize("leave", LEAVING)
@pytest.mark.parametrize("step", STEPS)
def test_nor_is_what_a_step_of_a_chain_leaves(step, leave, heard):
    """Each step is a private call by itself."""
    chain = STEPS[step](leave)
    heard()  # it is tried on public cells
    with contextlib.suppress(BadFunction):
        chain(np.array([1.0, 2.0]))
    assert SECRET not in heard()


def test_a_thread_without_an_object_is_not_heard(heard):
    """Nor is one that this one starts; and in the end all is as it was."""
    before, done = (_thread.start_new_thread, _thread.start_new), []

    def f(rows):
        def speak(step, *, loud):
            print(SECRET, rows[0])
            logging.getLogger("study").error(SECRET)
            if loud and step:
                _thread.start_new(speak, (step - 1,), {"loud": True})
            done.append(step)

        _thread.start_new_thread(speak, (2,), {"loud": True})
        while len(done) < 3:
            time.sleep(0.001)
        return 1.0

    hs.release(f, ROWS, PROVEN)
    assert SECRET not in heard()
    hs.release(lambda rows: 1.0, [1], PROVEN)
    assert (_thread.start_new_thread, _thread.start_new) == before


class Talks:
    """Says what it holds, however it is read."""

    def __array__(self, dtype=None, copy=None):
        print(SECRET)
        raise ValueError(SECRET)


class Lists(list):
    """Says what it holds when it is asked for its length or its parts, and then fails."""

    def __len__(self):
        print(SECRET)
        return super().__len__()

    def __iter__(self):
        print(SECRET)
        raise ValueError(SECRET)


@pytest.mark.parametrize("column", [Talks(), Lists([1.0, 2.0])], ids=["an array", "a list"])
@pytest.mark.parametrize("users", [False, True])
def test_a_column_that_speaks_as_it_is_read_is_not_heard(column, users, heard, ledger):
    """The search for a bound takes columns and no tables, and so has a door of its own."""
    given = {"column": [1.0, 2.0], "users": column} if users else {"column": column}
    with pytest.raises(BadRows) as caught:
        hs.find_bound(**given, epsilon=1.0, ledger=ledger, budget="b")
    told = [str(caught.value), str(caught.value.__context__), str(caught.value.__cause__), heard()]
    assert SECRET not in "".join(told)
    assert not ledger.log


class Speaking:
    """An answer that says something whatever is done with it."""

    def __del__(self):
        print(SECRET)

    def __float__(self):
        print(SECRET)
        raise ValueError(SECRET)

    __len__ = __iter__ = __int__ = __index__ = __float__

    def __array__(self, dtype=None, copy=None):
        print(SECRET)
        raise ValueError(SECRET)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("within", [False, True])
def test_an_answer_that_speaks_as_it_is_read_or_goes_is_not_heard(door, within, heard):
    """It is read, and removed, before the private call ends; so is what an error holds of it."""
    with pytest.raises((BadFunction, BadRows)) as caught:
        DOORS[door](lambda rows: [Speaking()] if within else Speaking())
    assert SECRET not in heard()
    del caught
    assert SECRET not in heard()


class Claiming(float):
    """A number that fails when it is read."""

    def as_integer_ratio(self):
        print(SECRET)
        raise ValueError(SECRET)


class Endless(fractions.Fraction):
    """One that is a quotient by 0."""

    denominator = 0


@pytest.mark.parametrize("answer", [Claiming(12345.0), Endless(12345)], ids=["fails", "by 0"])
def test_an_answer_to_a_threshold_that_fails_as_it_is_read_is_not_shown(answer, heard):
    """The object is asked by numbers; of those of other classes nobody knows what they do."""
    search = hs.AboveThreshold(threshold=0, epsilon=1.0)
    with pytest.raises(ParameterError, match="cannot be read as a number") as caught:
        search.ask(answer)
    assert caught.value.__context__ is None
    said = heard() + str(caught.value)
    assert SECRET not in said
    assert "12345" not in said
    assert search.left == 1


class Bent:
    """An answer that raises the rows as it is looked at."""

    @property
    def shape(self):
        raise ValueError(SECRET)

    dtype = columns = __array__ = shape


def test_what_the_answer_of_a_step_raises_is_withheld():
    """It is looked at outside of the function, and told a row as it failed."""
    table = Space(domain=Table.of({"a": Cell(low=0, high=9)}), metric=SYMMETRIC)
    bent = t.declared(lambda rows: Bent(), source=SPACE, target=table, stability=1, argument="none")
    with pytest.raises(BadFunction, match="withheld") as caught:
        bent(np.array([1.0, 2.0]))
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_stop_while_garbage_is_removed_leaves_nobody_mute(monkeypatch, capsys):
    """Ctrl-C met the collection: print, warnings and logs were dropped from then on."""

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("hushed._functions._silence.collect", stop)
    with pytest.raises(KeyboardInterrupt):
        hs.release(lambda rows: 1.0, ROWS, PROVEN)
    monkeypatch.undo()
    print("heard again")
    assert "heard again" in capsys.readouterr().out
    assert hs.release(lambda rows: 1.0, ROWS, PROVEN).certificate is not None


@pytest.mark.parametrize("name", ["trace", "profile"])
@pytest.mark.parametrize("whose", [sys, threading], ids=["this thread", "threads that begin"])
def test_what_watches_steps_of_python_does_not_speak_afterwards(whose, name, capsys):
    """A function may have each following step of Python call it; it ends with the private call."""
    before = getattr(whose, f"get{name}")()

    def watch(*told):
        print(SECRET)
        return watch

    def speaks(rows):
        getattr(whose, f"set{name}")(watch)
        return 1.0

    hs.release(speaks, ROWS, PROVEN)
    after = getattr(whose, f"get{name}")()
    getattr(whose, f"set{name}")(before)
    assert after is before
    assert SECRET not in capsys.readouterr().out
