"""Dask's modules draw from a generator of their own."""

import random
import sys
import types

import hushed as hs
from hushed.engines import Done, run_span

UNIT = hs.populations.Uniform(low=0, high=1)


class Here:
    """An engine in this process."""

    name = "an engine in this process"

    def slots(self):
        return 1

    def map_spans(self, task, spans):
        for span in spans:
            found = run_span(task.payload, task.digest, task.seed, *span)
            assert isinstance(found, Done)
            yield span, found


def test_what_dask_draws_leaves_the_generator_of_all_alone(monkeypatch):
    """Before a span runs its modules are given a copy, with all that was there."""
    theirs, ours = types.ModuleType("dask.made_up"), types.ModuleType("made_up")
    theirs.random = ours.random = random
    monkeypatch.setitem(sys.modules, "dask.made_up", theirs)
    monkeypatch.setitem(sys.modules, "made_up", ours)
    hs.sample_sensitivity(lambda rows: rows.mean(), UNIT, rows=5, pairs=30, workers=Here())
    before = random.getstate()
    theirs.random.sample(range(10), 3)
    theirs.random.seed(1)
    assert random.getstate() == before
    assert ours.random is random
    assert theirs.random.Random(5).random() == random.Random(5).random()
