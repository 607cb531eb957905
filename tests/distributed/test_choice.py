"""What `workers` may be, and what is said of anything else."""

import socket
import subprocess
import sys

import pytest
from tests.clusters import SOURCE, needs_dask

import hushed as hs
from hushed.engines import Task, _spark, _stub
from hushed.errors import EngineUnavailable, ParameterError

UNIT = hs.populations.Uniform(low=0, high=1)


@pytest.mark.parametrize("workers", ["4", "rays", "dask:host", 0, 2.5, object(), True])
def test_anything_else_is_refused_before_the_function_is_asked(workers):
    """With the name of the parameter and what it may be."""

    def never(rows):
        raise AssertionError

    with pytest.raises(ParameterError, match="workers must be an integer of 1 or more"):
        hs.sample_sensitivity(never, UNIT, rows=5, workers=workers)


def test_numbers_and_none_stay_what_they_are():
    """They mean processes of this machine."""
    assert hs.engines.engine_of(None) is None
    assert hs.engines.engine_of(3) == 3


def test_nothing_of_a_cluster_is_imported_before_it_is_asked_for():
    """The library, with workers, loads neither Dask nor Ray nor Spark."""
    words = "import sys, hushed as hs; hs.engines.engine_of(2); "
    words += "print(sorted({'dask', 'distributed', 'ray', 'pyspark'} & set(sys.modules)))"
    found = subprocess.run(
        [sys.executable, "-c", words],
        env={"PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "[]"


@needs_dask
@pytest.mark.slow
def test_an_address_without_a_scheduler_is_said_to_have_none():
    """The error has the address."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(EngineUnavailable, match=f"no Dask scheduler at tcp://{address} "):
            hs.engines.Dask(f"dask://{address}", patience=1)


@pytest.mark.parametrize("kind", [hs.engines.Dask, hs.engines.Ray, hs.engines.Spark])
def test_work_that_is_too_large_is_refused_before_it_is_sent(kind, monkeypatch):
    """With its size; nothing is asked of the cluster, of which there is none here."""
    monkeypatch.setattr(_stub, "_MOST_BYTES", 2_000_000)
    monkeypatch.setattr(kind, "name", "a cluster")
    work = Task(bytes(3_000_000), "", 0)
    with pytest.raises(ParameterError, match="holds 3 MB, more than can be sent to a cluster"):
        next(object.__new__(kind).map_spans(work, iter([(0, 1)])))


def test_a_session_is_stopped_by_whom_it_was_made(monkeypatch):
    """A session of Spark that was made for a run ends with it; the one of a caller stays."""
    stopped = []

    class Session:
        def stop(self):
            stopped.append(self)

    for session, own in ((Session(), False), (Session(), True)):
        monkeypatch.setattr(_spark, "_find_session", lambda found=(session, own): found)
        with hs.engines._choice.open_engine("spark") as engine:
            assert engine._session is session
        assert stopped == [session] * own
    with hs.engines._choice.open_engine(hs.engines.Spark(Session())):
        pass
    assert stopped == [session]
