"""Whatever an engine does with spans, the results are those of one process."""

import contextlib
import random
import resource
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushed._functions import _trials
from hushed._functions._spans import Spans
from hushed._functions._trials import run_trials
from hushed.engines import Done, Lacks, run_span
from hushed.errors import EngineUnavailable, WorkerLost


@pytest.fixture
def five_first(monkeypatch):
    """Let five trials run here, however long a busy machine takes for them."""
    monkeypatch.setattr(_trials, "_FIRST_SECONDS", 600.0)


def draws(generators):
    return np.array([g.random(2) for g in generators])


class Unruly:
    """Runs spans in this process; gives some twice, all in any order, and loses some."""

    name = "an unruly engine"

    def __init__(self, seed=0, *, slots=3, twice=0.0, lost=0.0, seconds=None):
        self.random, self.count = random.Random(seed), slots
        self.twice, self.lost, self.seconds = twice, lost, seconds
        self.lengths = []

    def slots(self):
        return self.count

    def map_spans(self, task, spans):
        waiting = []
        for span in spans:
            self.lengths.append(span[1] - span[0])
            waiting.append(span)
            if len(waiting) >= 2 * self.count:
                yield from self.give(task, waiting)
        while waiting:
            yield from self.give(task, waiting)

    def give(self, task, waiting):
        span = waiting.pop(self.random.randrange(len(waiting)))
        if self.random.random() < self.lost:
            return
        outcome = run_span(task.payload, task.digest, task.seed, *span)
        if self.seconds is not None:
            outcome = Done(outcome.values, self.seconds(span), outcome.place)
        yield span, outcome
        if self.random.random() < self.twice:
            yield span, outcome


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(0, 300),
    st.integers(1, 40),
    st.floats(0, 0.5),
)
def test_an_engine_that_reorders_and_repeats_changes_no_bit(seed, trials, slots, twice):
    """Outcomes count once, in whatever order they come."""
    engine = Unruly(seed, slots=slots, twice=twice)
    told = []
    found = run_trials(draws, trials, seed=3, workers=engine, report=told.append)
    assert np.array_equal(found, run_trials(draws, trials, seed=3, workers=1))
    assert sum(told) == trials


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_what_an_engine_loses_is_run_again_or_given_up(seed):
    """Never is a hole left in the results."""
    engine = Unruly(seed, lost=0.1, twice=0.2)
    with contextlib.suppress(WorkerLost):
        found = run_trials(draws, 60, seed=3, workers=engine)
        assert np.array_equal(found, run_trials(draws, 60, seed=3, workers=1))


@pytest.mark.usefixtures("five_first")
def test_an_engine_that_loses_all_is_given_up():
    """The error names the trials."""
    with pytest.raises(WorkerLost, match=r"an unruly engine lost .* 3 times.*trials 5 to"):
        run_trials(draws, 60, seed=3, workers=Unruly(lost=1.0))


@pytest.mark.usefixtures("five_first")
def test_a_worker_that_lacks_something_ends_the_run():
    """What it lacks is said, with the place."""

    class Poor(Unruly):
        def give(self, task, waiting):
            yield waiting.pop(), Lacks("it has no module statsmodels", "there")

    with pytest.raises(EngineUnavailable, match="there: it has no module statsmodels; 5 of 60"):
        run_trials(draws, 60, seed=3, workers=Poor())


def simulate_slowing(trials, seconds, *, slow, after):
    """Time that two simulated workers take, one of which becomes slow; overdue spans run twice."""
    now = [0.0]
    spans = Spans([(0, trials)], lambda: 2, 1, repeats=True, clock=lambda: now[0])
    busy = [None, None]  # when a worker is done, with what, and how long that took
    while spans.lost():
        for number in range(2):
            if busy[number] is not None and busy[number][0] <= now[0]:
                spans.take_back(*busy[number][1:])
                busy[number] = None
            span = next(spans, None) if busy[number] is None else None
            if span is not None:
                drag = slow if number and now[0] >= after else 1.0
                taken = (span[1] - span[0]) * seconds * drag
                busy[number] = (now[0] + taken, span, taken)
        now[0] += 0.001
    return now[0]


def test_a_worker_that_slows_down_costs_little():
    """Ten times slower after a second: within 1.5 of the time that both could have had."""
    ideal = 1 + (300 * 0.02 - 2) / 1.1
    assert ideal < simulate_slowing(300, 0.02, slow=10.0, after=1.0) <= 1.5 * ideal


def simulate(slots, trials, seconds, *, size=1, slow=1.0):
    """Time that a run takes on simulated workers, half of which are slower."""
    spans = Spans([(0, trials)], lambda: slots, size)
    free = [(0.0, number, None) for number in range(slots)]
    end = 0.0
    while free:
        free.sort(key=lambda each: each[0])
        now, number, back = free.pop(0)
        if back is not None:
            spans.take_back(*back)
        span = next(spans, None)
        if span is not None:
            taken = (span[1] - span[0]) * seconds * (slow if number % 2 else 1.0)
            free.append((now + taken, number, (span, taken)))
            end = max(end, now + taken)
    return end


@pytest.mark.parametrize("size", [1, 20_000])
def test_a_wrong_first_rate_costs_little(size):
    """Told a rate a hundred times too high, or nothing, two workers come near the ideal."""
    assert simulate(2, 400, 0.02, size=size) <= 1.5 * 4.0


def test_slow_workers_do_not_make_all_wait():
    """Half of 300 workers four times slower, spans of up to 3 seconds: within 1.2 of the ideal."""
    ideal = 60_000 * 0.05 / (150 + 150 / 4)
    assert simulate(300, 60_000, 0.05, slow=4.0) <= 1.2 * ideal


class Stuck(Unruly):
    """Keeps the last span, unless it is given once more: and for two minutes."""

    repeats = True

    def map_spans(self, task, spans):
        kept, end = None, time.monotonic() + 120
        while time.monotonic() < end:
            span = next(spans, None)
            if span is None and kept is not None:
                time.sleep(0.02)
            elif span is not None and span[1] == 60 and kept is None:
                kept = span
            elif span is not None:
                yield from self.give(task, [span])


def test_a_span_that_is_stuck_is_run_by_another_worker():
    """Once nothing else is left; the run ends without the one that is stuck."""
    found = run_trials(draws, 60, seed=3, workers=Stuck())
    assert np.array_equal(found, run_trials(draws, 60, seed=3, workers=1))


def test_a_repetition_that_does_not_come_back_is_repeated_ever_more_seldom():
    """It may have gone to the worker that is silent: after 10 seconds, then 20, then 40."""
    now, given = [0.0], []
    spans = Spans([(0, 2)], lambda: 1, 1, repeats=True, clock=lambda: now[0])
    first, second = next(spans), next(spans)
    spans.take_back(first, 1.0)
    for quarter in range(1, 320):
        now[0] = quarter / 4
        if (span := next(spans, None)) is not None:
            assert span == second
            given.append(now[0])
    assert given == [3.25, 13.5, 33.75, 74.0]


def test_only_what_is_overdue_is_repeated_and_once():
    """Three times as long as other spans take, and nothing before the last span is handed out."""
    now = [0.0]
    spans = Spans([(0, 4)], lambda: 2, 1, repeats=True, clock=lambda: now[0])
    first, second = next(spans), next(spans)
    now[0] = 1.0
    spans.take_back(first, 1.0)
    now[0] = 100.0
    third, fourth = next(spans), next(spans)
    assert (third, fourth) == ((2, 3), (3, 4))
    assert next(spans) == second
    assert next(spans, None) is None
    now[0] = 102.9
    assert next(spans, None) is None
    now[0] = 103.1
    assert [next(spans), next(spans), next(spans, None)] == [third, fourth, None]
    for each in (second, third, fourth):
        assert not spans.waits_in_vain
        assert spans.take_back(each, 1.0)
    assert spans.waits_in_vain
    assert not spans.take_back(second, 1.0)
    never = Spans([(0, 1)], lambda: 2, 1, clock=lambda: now[0])
    next(never)
    now[0] = 1e9
    assert next(never, None) is None


@pytest.mark.slow
def test_many_trials_take_little_memory_and_time():
    """300,000 results on a fast engine: three times what they take here, and 60 MB more."""

    def one(generators):
        return np.array([[g.random()] for g in generators])

    def spend(workers):
        begun = time.process_time()
        assert len(run_trials(one, 300_000, seed=3, workers=workers)) == 300_000
        return time.process_time() - begun

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert spend(Unruly(slots=8)) < 3 * spend(1) + 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000
