"""What is said to be kept is kept, wherever in the keeping Ctrl-C comes."""

import itertools
import os
import re
import sys
import uuid

import numpy as np
import pytest

import hushed as hs
from hushed.runs import _stores as stores
from hushed.runs._folders import FileWriter
from hushed.runs._journal import Journal, Run, open_journal

RUN = Run(facts={}, name="a run", trials=100, shape=(2,))
KEEPING = {
    each.__code__
    for each in (Journal.add, *vars(FileWriter).values(), *vars(stores.ObjectWriter).values())
    if hasattr(each, "__code__")
}


class Interrupt:
    """Raise what Ctrl-C raises before one step of the interpreter, of those that keep trials."""

    def __init__(self, step):
        self.left = step

    def __call__(self, frame, event, _):
        if frame.f_code not in KEEPING:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
        return self


def keep_and_interrupt(place, step):
    """Keep 3 trials, and 4 more but for Ctrl-C at a step; what is said of it, if it came."""
    before = sys.gettrace()
    try:
        with open_journal(place, RUN) as journal:
            journal.add(0, np.ones((3, 2)))
            sys.settrace(Interrupt(step))
            journal.add(3, np.ones((4, 2)))
            sys.settrace(before)
    except KeyboardInterrupt as stop:
        return "".join(stop.__notes__)
    finally:
        sys.settrace(before)
    return None


@pytest.mark.parametrize("kind", ["folder", "store"])
def test_words_on_what_is_kept_are_true_wherever_an_interrupt_comes(kind, tmp_path, monkeypatch):
    """At every step, from before a record is written to after it is on the disk."""
    if kind == "store":
        pytest.importorskip("fsspec")
    monkeypatch.setattr(stores, "_PUT_SECONDS", 0.0)  # each record at once
    monkeypatch.setattr(os, "fsync", lambda _: None)  # hundreds of them would take a minute
    told = []
    for step in itertools.count():
        place = tmp_path / str(step) if kind == "folder" else f"memory://{uuid.uuid4().hex}"
        words = keep_and_interrupt(place, step)
        (run,) = hs.runs.list_runs(place)
        if words is None:
            assert run.kept == 7
            break
        assert re.match(r"(\d+) of 100 trials are kept", words)[1] == str(run.kept)
        told.append(run.kept)
    assert set(told) == {3, 7}
    assert told == sorted(told)
