"""Calls in processes of their own: what they are given, what they give, what is refused."""

import os
import signal
import sys
import tempfile
import threading
import types

import numpy as np
import pytest

from hushed._functions import _limits
from hushed._functions._isolation import Isolation, Limits, call_isolated
from hushed._functions._limits import count_waiting, count_workers
from hushed.errors import BadFunction, ParameterError, Refusal, WorkerLost


class TestAnswers:
    @pytest.mark.slow
    def test_they_stand_in_the_order_of_the_parts(self):
        """Parts of any length, of none as well, each with its answer, the slowest first."""

        def size(rows):
            import time

            time.sleep(0.5 if len(rows) == 3 else 0)
            return len(rows)

        answers = call_isolated(size, [np.zeros(3), np.zeros(0)], workers=2)
        assert answers.tolist() == [3.0, 0.0]
        assert answers.dtype == np.float64

    def test_large_ones_and_large_parts_fit_through(self):
        """Neither a part nor an answer has to fit into the buffer of a pipe."""
        part = np.random.default_rng(1).random((300, 1000))
        (answer,) = call_isolated(lambda rows: rows + 1, [part], shape=part.shape)
        assert np.array_equal(answer, part + 1)

    def test_without_parts_there_are_none(self):
        """No part, no process, an empty array of the right shape."""
        assert call_isolated(len, [], shape=(2, 3)).shape == (0, 2, 3)

    @pytest.mark.slow
    def test_arrays_arrive_as_they_are(self):
        """Types of numbers and of other cells, both byte orders, any shape, any order in memory."""
        parts = [
            np.array([1.5, -0.0, np.nan, np.inf]),
            np.array([True, False]),
            np.array(7, dtype="i2"),
            np.zeros((3, 0, 2), dtype=np.float32),
            np.array([1 + 2j, 3j], dtype=np.complex64),
            np.array([1, 2, 3], dtype=">i4"),
            np.arange(6.0).reshape(2, 3).T,
            np.arange(10)[::3],
            np.array(["a", "bc"]),
            np.array(["2020-01-01", "NaT"], dtype="M8[D]"),
            np.random.default_rng(1).random(8192 - 8),  # around the length that is read at once
            np.random.default_rng(1).random(8192),
        ]
        wanted = [(each.dtype.str, each.shape, np.asarray(each).tobytes("A")) for each in parts]

        def is_same(rows):
            found = rows.dtype.str, rows.shape, rows.tobytes("A")
            order = rows.flags.f_contiguous, rows.flags.c_contiguous
            held = (found, order) in [(each, (f, c)) for each, f, c in expected]
            changes = rows.flags.writeable and rows.flags.aligned and not rows.ctypes.data % 8
            return [held, changes]

        flags = [(each.flags.f_contiguous, each.flags.c_contiguous) for each in parts]
        flags[7] = (True, True)  # of a part alone: what lay between is left out
        expected = [(each, *both) for each, both in zip(wanted, flags, strict=True)]
        found = call_isolated(is_same, parts, shape=(2,))
        assert found.tolist() == [[1.0, 1.0]] * len(parts)

    @pytest.mark.slow
    def test_labels_are_numbered(self):
        """What equals a label counts as its number, whatever else fails."""

        def choose(rows):
            return rows[0] if rows else object()

        answers = call_isolated(choose, [["b"], ["a"], ["c"]], labels=["a", "b"])
        assert answers[:2].tolist() == [1.0, 0.0]
        assert np.isnan(answers[2])

    @pytest.mark.slow
    def test_what_is_masked_is_no_answer(self):
        """A masked number is none, alone or among others; what has no mask is as it is."""

        def hide(rows):
            return np.ma.masked_array([1.0, 2.0], mask=[rows[0] > 1, False])

        found = call_isolated(hide, [[1], [2]], shape=(2,))
        assert found[0].tolist() == [1.0, 2.0]
        assert np.isnan(found[1]).all()

    def test_a_call_loads_nothing_that_numpy_loads_late(self):
        """A median loads masked arrays, and a draw the generators: both are there beforehand."""

        def loads(rows):
            before = set(sys.modules)
            np.median(rows), np.random.random()
            return len(set(sys.modules) - before)

        assert call_isolated(loads, [np.arange(3.0)]).tolist() == [0.0]

    @pytest.mark.slow
    def test_a_part_that_cannot_be_sent_fails_alone(self):
        """As any other failure of a call."""
        answers = call_isolated(len, [[(each for each in ())], [lambda: 0]])
        assert np.isnan(answers[0])
        assert answers[1] == 1.0

    @pytest.mark.slow
    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_frames(self, library):
        """A frame arrives as a frame, also one without rows."""
        frame = pytest.importorskip(library).DataFrame({"a": [1.0, 2.0, 4.0]})

        def total(rows):
            return float(rows["a"].sum()) + rows.shape[0]

        assert call_isolated(total, [frame, frame[:0]]).tolist() == [10.0, 0.0]

    @pytest.mark.slow
    def test_structured_arrays_and_objects(self):
        """Named fields, and cells that hold objects."""
        named = np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")])
        held = np.array([{"x": 2}, None], dtype=object)

        def read(rows):
            return rows["b"][0] if rows.dtype.names else rows[0]["x"]

        assert call_isolated(read, [named, held]).tolist() == [2.5, 2.0]


class TestSeeds:
    @pytest.mark.slow
    def test_each_part_has_its_own_by_its_place(self):
        """The global generators of both libraries start from the seed, by default the number."""

        def draw(rows):
            import random

            return [random.random(), np.random.random()]

        found = call_isolated(draw, [[1], [2]], shape=(2,), seeds=[7, 1])
        again = call_isolated(draw, [[3], [4]], shape=(2,))
        with Isolation(draw, calls=3, shape=(2,), workers=1) as pool:  # set to 0, 1 and 2 before
            later = [pool.call([[5]], seeds=[each])[0] for each in (1, 1, 7)]
        assert found[0, 1] == np.random.RandomState(7).random_sample()
        assert again[1].tolist() == found[1].tolist()
        assert again[0].tolist() != found[0].tolist()
        assert [each.tolist() for each in later] == found[[1, 1, 0]].tolist()

    @pytest.mark.parametrize("seeds", [[1], [1, -1], [1, 2**32], [1, 0.5], [True, 1]])
    def test_others_are_refused(self, seeds):
        """One for each part, from 0 to 2**32 - 1."""
        with pytest.raises(ParameterError, match="seed"):
            call_isolated(len, [[1], [2]], seeds=seeds)


class TestPool:
    @pytest.mark.slow
    def test_processes_wait_before_the_rows_are_there(self):
        """They have loaded the function by then, serve one call each, and more are started."""

        def number(rows):
            return os.getpid()

        with Isolation(number, calls=2, workers=2) as pool:
            warm = {process._child.pid for process in pool._idle}
            first = pool.call([[1]])
            second = pool.call([[1], [2]])
        assert len(warm) == 2
        assert len({*first, *second}) == 3
        assert {*first, *second} > warm

    @pytest.mark.slow
    def test_one_that_died_while_it_waited_is_replaced(self):
        """No rows were given to it, so that nothing depends on them."""
        with Isolation(len, calls=1) as pool:
            (process,) = pool._idle
            os.kill(process._child.pid, signal.SIGKILL)
            process._child.wait()
            assert pool.call([[1, 2]]).tolist() == [2.0]

    @pytest.mark.slow
    def test_what_has_ended_holds_no_more_than_one_call_may(self):
        """Processes that were halted are ended as soon as they hold more memory than a limit."""

        def take(rows):
            take.kept = np.ones(5 * 2**20)
            return 1.0

        def holding(memory):
            with Isolation(take, calls=0, workers=1, limits=Limits(memory=memory)) as pool:
                pool.call([[1], [2]])
                return len(pool._ended)

        assert holding(2**30) == 2
        assert holding(90 * 2**20) < 2


class TestRefusals:
    def test_a_function_that_cannot_be_sent(self):
        """A lock, say."""
        lock = threading.Lock()
        with pytest.raises(BadFunction, match="cannot be sent"):
            call_isolated(lambda rows: lock.locked(), [[1]])

    def test_no_function(self):
        """A number is none."""
        with pytest.raises(BadFunction, match="expected a function"):
            call_isolated(3, [[1]])

    def test_a_function_that_a_fresh_process_cannot_load(self, monkeypatch):
        """One of a module that is there in this process only: said before any row is sent."""
        module = types.ModuleType("hushed_absent")
        exec("def call(rows): return 1.0", vars(module))
        monkeypatch.setitem(sys.modules, module.__name__, module)
        with pytest.raises(BadFunction, match="loaded in a fresh process: that raised ModuleNotF"):
            Isolation(module.call, calls=1).__enter__()

    @pytest.mark.slow
    def test_a_function_whose_loading_ends_the_process(self, tmp_path, monkeypatch):
        """After three processes it is given up, and nothing is left."""
        (tmp_path / "hushed_ending.py").write_text(
            "import os\nif os.environ['HOME'] == os.getcwd(): os._exit(0)\n"
            "def call(rows): return 1.0\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        place = tmp_path / "place"
        place.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(place))
        import hushed_ending

        with pytest.raises(WorkerLost, match="3 fresh processes"):
            call_isolated(hushed_ending.call, [[1]])
        assert os.listdir(place) == []

    def test_labels_have_no_shape(self):
        """One label is one answer."""
        with pytest.raises(ParameterError, match="shape"):
            call_isolated(len, [[1]], shape=(2,), labels=[1])

    @pytest.mark.parametrize("platform", ["win32", "darwin"])
    def test_systems_without_the_limits(self, monkeypatch, platform):
        """No limit is silently left out."""
        monkeypatch.setattr(_limits.sys, "platform", platform)
        with pytest.raises(Refusal, match="need Linux"):
            call_isolated(len, [[1]])

    @pytest.mark.parametrize(
        "wrong",
        [{"cpu_seconds": 0}, {"idle_seconds": float("nan")}, {"memory": 1.5}, {"disk": 0}],
    )
    def test_limits(self, wrong):
        """Each is a number above 0, bytes are whole ones."""
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            Limits(**wrong)


def test_calls_at_the_same_time_fit_into_memory():
    """Beside this process, with a quarter, and calls that have answered, with the memory of one."""
    memory = _limits._read_memory()
    assert count_workers(Limits(memory=memory // 8), 8) == 5
    assert count_workers(Limits(memory=memory // 4), 8) == 2
    assert count_workers(Limits(memory=memory // 2), 8) == 1
    assert count_workers(Limits(memory=2**60), 8) == 1
    assert count_workers(Limits(memory=2**20), 3) == 3


@pytest.mark.parametrize("parts", [5, 8, 13, 100])
def test_all_that_may_be_taken_up_at_once_leaves_an_eighth_for_this_process(parts):
    """Calls, the one that has ended, and processes that wait, each holding a hundredth."""
    memory = _limits._read_memory()
    limits = Limits(memory=memory // parts)
    calls = count_workers(limits, 200) + 1
    waiting = count_waiting(memory // 100, 200)
    assert calls * limits.memory + waiting * (memory // 100) <= memory - memory // 8
    assert waiting == 12
    assert count_waiting(memory, 3) == 1
    assert count_waiting(1, 3) == 3
