"""How Spark is asked, with a session that is made up; `make spark` asks the real one."""

import signal
import sys
import threading
import types

import numpy as np
import pytest

import hushed as hs
from hushed._functions._trials import run_trials
from hushed.errors import EngineUnavailable, ParameterError

pa = pytest.importorskip("pyarrow", reason="needs the extra tables")


def draws(generators):
    return np.array([g.random(2) for g in generators])


class Broadcast:
    """What a context has sent to its executors."""

    def __init__(self, value):
        self.value, self.destroyed = value, False

    def destroy(self):
        self.destroyed = True


class Context:
    """A context that sends what it is given, or fails; its tags are noted."""

    defaultParallelism = 2

    def __init__(self, fails=None):
        self.fails, self.sent, self.tags, self.cancelled = fails, [], [], []

    def broadcast(self, value):
        if self.fails:
            raise self.fails
        self.sent.append(Broadcast(value))
        return self.sent[-1]

    def addJobTag(self, tag):
        self.tags.append((tag, threading.get_ident()))

    def cancelJobsWithTag(self, tag):
        self.cancelled.append(tag)


class Session:
    """A session that runs waves in this process; without a context it is one of Spark Connect."""

    def __init__(self, context=None):
        self.context, self.tags, self.cancelled, self.jobs = context, [], [], []
        self.stopped, self.held = False, None
        self.conf = types.SimpleNamespace(get=self.answer)

    @property
    def sparkContext(self):
        if self.context is None:
            raise NotImplementedError("as of Spark Connect")
        return self.context

    def answer(self, *_):
        if self.stopped:
            raise RuntimeError("stopped")

    def range(self, first, stop=None, step=1, parts=1):
        self.answer()
        frame = types.SimpleNamespace(schema="id bigint")
        frame.mapInArrow = lambda run, _: types.SimpleNamespace(
            collect=lambda: self.collect(run, parts)
        )
        return frame

    def collect(self, run, count):
        self.jobs.append(threading.get_ident())
        if self.held is not None:
            self.held()
        batches = (pa.RecordBatch.from_pydict({"id": [number]}) for number in range(count))
        rows = [batch.to_pylist()[0] for batch in run(batches)]
        return [(row["number"], row["answer"]) for row in rows]

    def addTag(self, tag):
        self.tags.append((tag, threading.get_ident()))

    def interruptTag(self, tag):
        self.cancelled.append(tag)


@pytest.fixture
def run(monkeypatch):
    """Run trials in such a session."""
    made_up = types.ModuleType("pyspark")
    made_up.inheritable_thread_target = lambda given: given if callable(given) else _same
    monkeypatch.setitem(sys.modules, "pyspark", made_up)

    def call(session, evaluate=draws, trials=60, **settings):
        engine = hs.engines.Spark(session, **settings)
        return run_trials(evaluate, trials, seed=3, workers=engine)

    return call


def _same(call):
    return call


@pytest.fixture
def expected():
    """Give what one process finds."""
    return run_trials(draws, 60, seed=3, workers=1)


def test_the_work_is_sent_to_each_executor_once(run, expected):
    """Not with each wave; and it is taken away from them at the end."""
    session = Session(Context())
    assert np.array_equal(run(session), expected)
    assert len(session.jobs) > 1
    (sent,) = session.context.sent
    assert sent.destroyed


@pytest.mark.parametrize("context", [None, Context(fails=PermissionError("shared clusters"))])
def test_where_nothing_is_broadcast_the_work_goes_with_each_wave(run, expected, context):
    """As in Spark Connect, and on clusters that are shared."""
    assert np.array_equal(run(Session(context), slots=2), expected)


def test_a_session_that_ends_before_the_work_is_sent_is_named(run):
    """What fails first is not taken for a cluster to which nothing is broadcast."""
    session = Session(Context(fails=RuntimeError("of Java")))
    session.stopped = True
    with pytest.raises(EngineUnavailable, match="is stopped, or its driver is gone"):
        run(session, slots=2)
    assert not session.jobs


def test_a_session_that_does_not_say_how_much_runs_at_once_must_be_told(run, expected):
    """The error has what to write; then as many spans are sent as it says."""
    with pytest.raises(ParameterError, match=r"give hs.engines.Spark\(session, slots=N\)"):
        run(Session())
    for slots, waves in ((1, 3), (30, 1)):  # waves of four spans for each slot
        session = Session()
        assert np.array_equal(run(session, slots=slots), expected)
        assert (len(session.jobs) >= waves) if slots == 1 else (len(session.jobs) == waves)


def test_how_much_runs_at_once_is_asked_for_once_a_second(monkeypatch):
    """A cluster grows and shrinks, and is not asked for each span."""
    from hushed.engines import _spark

    now, context, found = [0.0], Context(), []
    monkeypatch.setattr(_spark, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    engine = hs.engines.Spark(Session(context))
    for now[0], context.defaultParallelism in ((0.0, 2), (0.9, 3), (1.1, 4), (2.0, 5), (2.2, 6)):
        found.append(engine.slots())
    assert found == [2, 2, 4, 4, 6]


@pytest.mark.parametrize("connect", [False, True])
def test_a_stop_takes_jobs_back_by_their_tag(run, connect):
    """Spark is asked in another thread: Ctrl-C ends the waiting, and is no error of the session."""
    release, main = threading.Event(), threading.main_thread()
    session = Session(None if connect else Context())

    def hold():
        signal.pthread_kill(main.ident, signal.SIGINT)
        release.wait(60)

    session.held = hold
    try:
        with pytest.raises(KeyboardInterrupt):
            run(session, slots=2)
    finally:
        release.set()
    asked = session if connect else session.context
    ((tag, thread),), (job,), taken = asked.tags, session.jobs, asked.cancelled
    assert taken == [tag]
    assert thread == job != main.ident  # a tag is of one thread
