"""Releases in threads: nothing that a private call says is heard, and all else is."""

import contextlib
import io
import logging
import os
import random
import re
import sys
import threading
import time
import traceback
import warnings
from fractions import Fraction
from functools import partial
from pathlib import Path

import mpmath
import numpy as np
import pytest

import hushed as hs
from hushed import transformations as t
from hushed._functions import _silence as silence
from hushed._functions._calls import answer
from hushed._functions._gate import guard_step
from hushed.noise._selection import _key_bounds
from hushed.noise._thresholds import Uniform
from hushed.privacy_loss._gaussian import released_delta
from hushed.sensitivity._memory import _Apart
from hushed.spaces import SYMMETRIC, Cell, Column, Space
from hushed.tables._selection import exposure_probability

PROVEN = hs.Laplace(hs.proven_sensitivity(1.0, argument="a constant"), epsilon=1.0)
SECRET = "Wilhelmina"


def state():
    """What belongs to the process, and must be as it was."""
    return (
        sys.stdout,
        sys.stderr,
        warnings.showwarning,
        getattr(warnings, "_showwarnmsg", None),
        list(warnings.filters),
        logging.Logger.handle,
        logging.Handler.handle,
        threading.Thread.start,
        threading.excepthook,
        sys.unraisablehook,
    )


class Around(logging.Logger):
    """Hands records to its handlers itself."""

    def handle(self, record):
        self.callHandlers(record)


class Last:
    """Fails when nobody needs it any more."""

    def __del__(self):
        raise ValueError(SECRET)


def say_everything(rows):
    """All ordinary ways to say something."""
    print(SECRET, rows[0])
    print(SECRET, rows[0], file=sys.stderr)
    sys.stdout.write(SECRET)
    sys.stdout.writelines([SECRET, SECRET])
    with contextlib.suppress(AttributeError):
        sys.stdout.buffer.write(SECRET.encode())
    with contextlib.suppress(OSError, AttributeError):
        os.write(sys.stdout.fileno(), SECRET.encode())
    os.write(1, SECRET.encode())
    os.write(2, SECRET.encode())
    print(SECRET, file=sys.__stdout__, flush=True)
    print(SECRET, file=sys.__stderr__)
    warnings.warn(SECRET, stacklevel=1)
    logging.getLogger("study").error("%s %s", SECRET, rows[0])
    logging.getLogger().warning(SECRET)
    around = Around("around")
    around.handlers = logging.getLogger().handlers
    around.error(SECRET)
    Last()
    with contextlib.suppress(EOFError, OSError):
        input(SECRET)
    try:
        {}[SECRET]
    except KeyError:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stdout.close()
    return 1.0


@pytest.fixture
def heard(capfd):
    """Everything that leaves the process, and log handlers that hold the streams of before."""
    kept = io.StringIO()
    handler = logging.StreamHandler(kept)
    logging.getLogger().addHandler(handler)
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        yield lambda: "\n".join(
            [*capfd.readouterr(), kept.getvalue(), *(str(each.message) for each in log)]
        )
    logging.getLogger().removeHandler(handler)


def run(*targets):
    """Run each in a thread of its own, and fail if one failed."""
    failed = []

    def guarded(target):
        try:
            target()
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=guarded, args=(each,)) for each in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert failed == []


def test_overlapping_releases(heard):
    """The first ends while the second still runs, and says something afterwards."""
    before = state()
    first, second = threading.Event(), threading.Event()

    def early(rows):
        second.wait(30)
        return say_everything(rows)

    def late(rows):
        second.set()
        first.wait(30)
        return say_everything(rows)

    def one():
        hs.release(early, [12345, 2], PROVEN)
        first.set()

    run(one, lambda: hs.release(late, [12345, 2], PROVEN))
    assert state() == before
    said = heard()
    assert SECRET not in said
    assert "12345" not in said


def test_other_threads_are_heard(heard):
    """What a thread outside says in the meantime arrives, in order and whole."""
    inside, outside = threading.Event(), threading.Event()

    def f(rows):
        inside.set()
        outside.wait(30)
        return say_everything(rows)

    def speaker():
        inside.wait(30)
        print("public word")
        print("public error", file=sys.stderr)
        warnings.warn("public warning", stacklevel=1)
        logging.getLogger("other").error("public record")
        outside.set()

    run(lambda: hs.release(f, [1], PROVEN), speaker)
    said = heard()
    for word in ("public word", "public error", "public warning", "public record"):
        assert word in said
    assert SECRET not in said


def test_threads_of_the_function(heard):
    """A thread that the function starts is as silent, and so is one that this one starts."""
    before = state()

    def f(rows):
        def child():
            say_everything(rows)
            grand = threading.Thread(target=say_everything, args=(rows,))
            grand.start()
            grand.join()

        thread = threading.Thread(target=child)
        thread.start()
        thread.join()
        return 1.0

    hs.release(f, [12345, 2], PROVEN)
    assert SECRET not in heard()
    assert state() == before


def test_a_thread_that_outlives_the_call(heard):
    """It is not heard afterwards either; others are; and in the end all is as it was."""
    before, go, threads = state(), threading.Event(), []

    def f(rows):
        def late():
            go.wait(30)
            say_everything(rows)
            raise ValueError(SECRET)

        threads.append(threading.Thread(target=late))
        threads[0].start()
        return 1.0

    hs.release(f, [12345, 2], PROVEN)
    print("public word")
    go.set()
    threads[0].join()
    said = heard()
    assert SECRET not in said
    assert "public word" in said
    hs.release(lambda rows: 1.0, [1], PROVEN)
    assert state() == before


def test_a_recorder_of_warnings_in_another_thread(heard):
    """`catch_warnings(record=True)` elsewhere gets no warning of a private call."""
    inside, outside, log = threading.Event(), threading.Event(), []

    def f(rows):
        inside.set()
        outside.wait(30)
        return say_everything(rows)

    def recorder():
        inside.wait(30)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            outside.set()
            release.join(30)
            warnings.warn("public", stacklevel=1)
            log.extend(str(each.message) for each in found)

    release = threading.Thread(target=lambda: hs.release(f, [1], PROVEN))
    release.start()
    run(recorder)
    assert log == ["public"]
    assert SECRET not in heard()


def test_releases_that_wait_for_each_other():
    """Only releases of one function take turns: one that waits for another one is answered."""

    def f(rows):
        inner = threading.Thread(target=lambda: hs.release(len, [1, 2], PROVEN))
        inner.start()
        inner.join(30)
        assert not inner.is_alive()
        return hs.release(lambda rows: 2.0, [1], PROVEN).value * 0 + 1.0

    hs.release(f, [1], PROVEN)
    inside = threading.Barrier(2, timeout=30)
    run(*[lambda: hs.release(lambda rows: inside.wait() * 0.0, [1], PROVEN)] * 2)


class Keeps:
    """An object that keeps the rows it works on, as a model does while it is fitted."""

    def __call__(self, rows):
        """Look at them again, with time for another thread in between."""
        self.rows = rows
        time.sleep(0.01)
        return float(np.mean(self.rows))

    def mean(self, rows):
        """Do the same, in a method."""
        return self(rows)


def method_of(held):
    return held.mean


@pytest.mark.parametrize(
    "spelled", [lambda f: f, method_of, partial], ids=["object", "method", "partial"]
)
@pytest.mark.parametrize("sampled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_no_release_is_answered_from_the_rows_of_another(spelled, sampled):
    """One object is the function of several threads, each of which has rows of its own."""
    held, bound = Keeps(), hs.proven_sensitivity(0.1, argument="a constant")
    if sampled:
        unit = hs.populations.Uniform(low=0, high=1)
        settings = {"pairs": 9, "symmetric": True, "workers": 1}
        bound = hs.sample_sensitivity(spelled(held), unit, rows=5, **settings)
    exact, found = hs.Laplace(bound, epsilon=1e6), {}

    def release(value):
        found[value] = hs.release(spelled(held), np.full(5, value), exact).value

    run(*[lambda value=value: release(value) for value in (0.1, 0.5, 0.9)])
    assert found == {value: pytest.approx(value, abs=1e-3) for value in found}


@pytest.mark.parametrize(
    "wrap",
    [
        lambda f: _Apart(f, np.zeros(5)),  # as a sampling asks it, to see what it keeps
        lambda f: hs.Blockwise(f, rows=5),
        lambda f: _Apart(hs.fixed_seed(f), np.zeros(5)),
    ],
)
def test_nor_by_a_wrapper_of_it(wrap):
    """A sampling in another thread asks the same object, within something of the library's."""
    held, found = Keeps(), {}

    def ask(value, function):
        found[value] = float(answer(function, np.full(5, value), private=False))

    run(lambda: ask(0.1, held), *[lambda v=v: ask(v, wrap(held)) for v in (0.5, 0.9)])
    assert found == {value: pytest.approx(value) for value in found}


def test_nor_is_a_step_of_a_chain():
    """A chain asks it itself, as one step of several."""
    step, found = guard_step(Keeps()), {}

    def ask(value):
        found[value] = step(np.full(5, value))

    run(*[lambda value=value: ask(value) for value in (0.1, 0.5, 0.9)])
    assert found == {value: pytest.approx(value) for value in found}


class Parser:
    """An object that keeps a row while it works on it, and forgets it then."""

    row = None

    def score(self, row, points=0.0):
        """Look at the row again, with time for another thread in between."""
        self.row = row
        try:
            time.sleep(0.001)
            return -50 * np.abs(np.asarray(self.row).reshape(-1)[0] - points)
        finally:
            self.row = None

    def high(self, row):
        """Say whether it is."""
        return self.score(row) < -25


def test_nor_is_a_row_of_chains_that_ask_one_object():
    """Each chain has a step of its own, and all steps ask one object about their rows."""
    parser, found = Parser(), {}
    space = Space(domain=Column(cell=Cell(low=0, high=1)), metric=SYMMETRIC)
    scored = t.map_rows(parser.score, Cell(low=-50, high=0)) >> t.sum_of()

    def ask(value, chain):
        found[value] = float(chain([value] * 9))

    chains = [space >> scored, space >> scored, space >> t.filter_rows(parser.high) >> t.count()]
    run(*[lambda value=v, c=c: ask(value, c) for v, c in zip((0.1, 0.9, 0.8), chains, strict=True)])
    assert found == {0.1: pytest.approx(-45), 0.9: pytest.approx(-405), 0.8: 9}


def test_nor_is_a_row_of_a_posterior():
    """A draw, the chances on public rows, and the trial of a release ask one object about rows."""
    parser, ends = Parser(), np.array([0.0, 1.0])
    drawn = hs.Posterior(parser.score, ends, epsilon=50.0, clip=3.0)
    zeros, ones, found = np.zeros(20), np.ones(20), {}
    run(
        lambda: found.setdefault("draw", drawn.draw(zeros)),
        lambda: found.setdefault("release", hs.release(parser.score, ones, drawn).value),
        lambda: found.setdefault("chances", drawn.chances_on(ones)[1]),
    )
    assert found == {"draw": 0.0, "release": 1.0, "chances": pytest.approx(1.0)}


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_call_that_fails_leaves_everything_as_it_was(error):
    """Streams, hooks and filters are back, and the thread is heard again."""
    before = state()

    def f(rows):
        raise error(SECRET)

    with pytest.raises((hs.errors.BadFunction, KeyboardInterrupt)):
        hs.release(f, [1], PROVEN)
    assert state() == before
    assert not silence._is_unheard()


def stress(seconds):
    """Eight threads, some of which release, seed, print, redirect and warn."""
    together = threading.Barrier(8, timeout=60)
    words = [0] * 8

    def turns():
        together.wait()
        ends = time.monotonic() + seconds
        yield
        while time.monotonic() < ends:
            yield

    def releasing(number):
        def job():
            rng = random.Random(number)
            steady = hs.fixed_seed(lambda rows: say_everything(rows) + np.random.random() * 1e-9)
            for _ in turns():
                f = steady if rng.random() < 0.3 else say_everything
                value = hs.release(f, [12345, number], PROVEN).value
                assert -60 < value < 60

        return job

    def speaking(number):
        def job():
            for _ in turns():
                stream = sys.stdout if number == 6 else sys.stderr
                stream.write(f"public {number} {words[number]}\n")
                words[number] += 1
                time.sleep(0.0005)

        return job

    run(*[releasing(i) for i in range(6)], *[speaking(i) for i in (6, 7)])
    return words


@pytest.mark.slow
def test_eight_threads(heard):
    """No private word gets out, no public one is lost, and the process is as it was."""
    before = state()
    words = stress(2)
    said = heard()
    assert SECRET not in said
    for number in (6, 7):
        assert words[number]
        assert [f"public {number} {i}" for i in range(words[number])] == [
            line for line in said.splitlines() if line.startswith(f"public {number} ")
        ]
    assert state() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("where", ["the lock", "the seeds"])
def test_a_fork_while_another_thread_is_in_a_private_call(where):
    """What that thread held is free in the child, which is heard, and releases."""
    inside, outside = threading.Event(), threading.Event()

    def f(rows):
        inside.set()
        outside.wait(60)
        return 1.0

    busy = threading.Thread(
        target=lambda: hs.release(hs.fixed_seed(f) if where == "the seeds" else f, [1], PROVEN)
    )
    busy.start()
    inside.wait(30)
    held = silence._WATCH.lock if where == "the lock" else contextlib.nullcontext()
    with held:
        child = os.fork()
        if child == 0:
            hs.release(hs.fixed_seed(lambda rows: 1.0), [1], PROVEN)
            os._exit(3 if silence._is_unheard() or isinstance(sys.stdout, silence._Quiet) else 0)
    deadline = time.monotonic() + 30
    while (found := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    outside.set()
    busy.join()
    if found[0] == 0:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert found[0] == child
    assert os.waitstatus_to_exitcode(found[1]) == 0


def test_threads_compute_with_their_own_digits():
    """One that leaves a precision of mpmath sets it for all others, a user's among them.

    Thresholds and noise were then computed with too few digits, and the user's stayed changed.
    """
    ours = [
        lambda: exposure_probability(400, scale=Fraction(20), groups=3),
        lambda: released_delta(1e-3, 0.5),
        lambda: _key_bounds(Uniform(1 << 199, 200, None), Fraction(1, 3)),
    ]
    known, wrong, before = [each() for each in ours], [], mpmath.mp.prec
    before_switch = sys.getswitchinterval()

    def compute(place):
        wrong.extend(place for _ in range(200) if ours[place]() != known[place])

    def user():
        for _ in range(2000):
            with mpmath.workprec(20):
                if +mpmath.mpf(1) / 3 != Fraction(699051, 2**21):
                    wrong.append("user")

    threads = [threading.Thread(target=compute, args=(place,)) for place in (0, 1, 2, 0, 1, 2)]
    threads.append(threading.Thread(target=user))
    sys.setswitchinterval(1e-6)
    try:
        [each.start() for each in threads]
        [each.join() for each in threads]
    finally:
        sys.setswitchinterval(before_switch)
    assert not wrong
    assert mpmath.mp.prec == before


def test_nothing_computes_with_the_digits_of_the_user():
    sources = Path(hs.__file__).parent
    found = [
        each.relative_to(sources).as_posix()
        for each in sources.rglob("*.py")
        if re.search(r"^\s*(import|from) mpmath", each.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert found == ["_ground/precise.py"]
