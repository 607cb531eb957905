"""Tables are safe from threads and forks: no charge without its answer, no answer mixed up."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import ibis
import pyarrow as pa
import pytest
from tests.nasty_tables import to_postgres

import hushed as hs
from hushed.errors import EngineUnavailable

PROGRAM = Path(__file__).parent / "threads_and_forks.py"


@pytest.fixture(params=["frame", "postgres"])
def source(request):
    if request.param == "frame":
        return "frame"
    url = request.getfixturevalue("postgres_url")
    to_postgres(pa.table({"x": [1.0] * 1000, "u": list(range(1000))}), url, "t")
    return url


def ran(job, source, seconds):
    """Run the program in a process of its own: threads that hang cannot hang the tests."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), job, source, str(seconds)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def all_answered(found):
    assert found == {"each": True, "unanswered": 0, "problems": [], "wrong": []}


class TestThreads:
    @pytest.mark.slow
    def test_eight_threads_are_all_answered(self, source):
        """Nothing is charged without an answer, and none is delivered to another query."""
        all_answered(ran("threads", source, 2))

    @pytest.mark.slow
    def test_tables_of_their_own_write_at_the_same_time(self):
        """Each thread has its table; a setting of Ibis that all share is as it was in the end."""
        before = ibis.options.sql.fuse_selects
        problems = []

        def ask(i):
            table = hs.table(pa.table({"x": [float(i)] * 100}))
            for _ in range(5):
                value = table.sum("x", low=0, high=9).release(epsilon=500.0).value("sum_x")
                if abs(value - 100 * i) > 5:
                    problems.append(value)

        running = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
        for each in running:
            each.start()
        for each in running:
            each.join()
        assert problems == []
        assert ibis.options.sql.fuse_selects is before

    def test_a_thread_that_waits_too_long_is_refused_unpaid(self, ledger):
        """Behind another query, with a limit of time."""
        table = hs.table(pa.table({"x": [1.0]})).count()
        charged, go_on, told = threading.Event(), threading.Event(), []

        class Slow:
            def charge(self, *_, **__):
                charged.set()
                go_on.wait(60)

        first = threading.Thread(
            target=lambda: told.append(table.release(epsilon=1.0, ledger=Slow(), budget="b"))
        )
        first.start()
        assert charged.wait(60)
        with pytest.raises(EngineUnavailable, match=r"other queries .* nothing was charged"):
            table.release(epsilon=1.0, ledger=ledger, budget="b", timeout=0.1)
        assert ledger.log == []
        go_on.set()
        first.join()
        assert len(told) == 1
        table.release(epsilon=1.0, ledger=ledger, budget="b", timeout=60)

    def test_a_query_that_fails_lets_the_next_one_in(self, ledger, refusing_ledger):
        """Refused by the ledger, by the plan, or after the charge."""
        table = hs.table(pa.table({"x": [1.0]})).count()
        for _ in range(2):
            with pytest.raises(PermissionError):
                table.release(epsilon=1.0, ledger=refusing_ledger, budget="b")
        done = []
        other = threading.Thread(
            target=lambda: done.append(
                table.release(epsilon=1.0, ledger=ledger, budget="b", timeout=60)
            )
        )
        other.start()
        other.join()
        assert len(done) == len(ledger.log) == 1


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
class TestForks:
    def test_a_forked_child_is_refused_or_opens_its_own(self, source):
        """Even while another thread asks; the connection of the parent outlives the child."""
        assert ran("fork", source, 0) == {"children": [0, 0, 0], "parent": 1}
