"""Runs in an object store are as those in a folder."""

import uuid

import numpy as np
import pytest

import hushed as hs
from hushed.errors import HushedWarning
from hushed.runs import _stores as stores

pytest.importorskip("fsspec")
UNIT = hs.populations.Uniform(low=0, high=1)


def sample(keep, pairs=100, f=np.mean, **named):
    return hs.sample_sensitivity(f, UNIT, rows=5, pairs=pairs, workers=1, keep=keep, **named)


def draws(sensitivity):
    return sensitivity.sampling.draws.tobytes()


@pytest.fixture
def memory():
    return f"memory://{uuid.uuid4().hex}/runs"


@pytest.fixture
def bucket():
    """Give a bucket of moto's server, on loopback."""
    server = pytest.importorskip("moto.server", reason="needs moto, which the default tests lack")
    s3fs = pytest.importorskip("s3fs")
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    client = {"endpoint_url": f"http://{host}:{port}"}
    secrets = {"key": "testing", "secret": "testing"}
    config = __import__("fsspec").config.conf
    before = config.get("s3")
    config["s3"] = secrets | {"client_kwargs": client}
    try:
        s3fs.S3FileSystem(**config["s3"]).mkdir("kept")
        yield "s3://kept/runs"
    finally:
        config.pop("s3")
        if before:
            config["s3"] = before
        running.stop()


def check_store(place):
    """A run goes on, is listed and removed."""
    expected = draws(sample(None, 300))
    sample(place, 100)
    (run,) = hs.runs.list_runs(place)
    assert (run.kept, run.trials, run.done, run.unreadable) == (100, 100, True, 0)
    assert run.size > 100 * 16
    assert draws(sample(place, 300)) == expected
    (run,) = hs.runs.list_runs(place)
    assert run.kept == 300
    assert hs.runs.remove_runs(place) == [run.key]
    assert hs.runs.list_runs(place) == []
    assert draws(sample(place, 300)) == expected


def test_a_run_goes_on_in_a_store(memory):
    """As in a folder."""
    check_store(memory)


def test_what_is_no_run_stays_in_a_store(memory):
    """Other objects called run.json are left alone, with what lies beside them."""
    files, root = pytest.importorskip("fsspec.core").url_to_fs(memory)
    files.pipe_file(f"{root}/my/project/run.json", b"\xff{}")
    assert hs.runs.list_runs(memory) == hs.runs.remove_runs(memory) == []
    assert files.exists(f"{root}/my/project/run.json")


def test_a_file_address_is_a_folder(tmp_path):
    """With the rights of one: it is made for its owner alone."""
    check_store(f"file://{tmp_path}/kept")
    assert (tmp_path / "kept").stat().st_mode & 0o077 == 0


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_run_goes_on_in_a_bucket(bucket):
    """As in a folder, over HTTP."""
    check_store(bucket)


def test_records_are_put_once_a_minute_and_at_the_end(memory, monkeypatch):
    """Each put is an object of its own, so that none is ever seen half."""
    import fsspec

    def names():
        files, root = fsspec.core.url_to_fs(memory)
        return sorted(files.glob(f"{root}/*/*/*.part"))

    sample(memory, 100)
    assert len(names()) == 1
    monkeypatch.setattr(stores, "_PUT_SECONDS", 0.0)
    sample(memory, 200)
    writers = {name.rpartition("-")[0] for name in names()}
    assert len(writers) == 2
    assert len(names()) > 3


def test_what_is_private_is_in_no_store(memory):
    """Who may read there is not known here."""
    keep = hs.runs.Keep(memory, private=True)
    with pytest.raises(hs.errors.ParameterError, match="who may read an object store"):
        sample(keep, data_dependent=True)


def test_a_store_that_fails_ends_the_keeping_and_not_the_run(memory, monkeypatch):
    """Whatever class of error it raises, once."""
    from fsspec.implementations.memory import MemoryFileSystem

    sample(memory, 50)
    put = MemoryFileSystem.pipe_file

    def refuse(self, path, *rest, **named):
        if path.endswith(".part"):
            raise LookupError("the bucket is gone")
        return put(self, path, *rest, **named)

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", refuse)
    with pytest.warns(HushedWarning, match="raised LookupError.*the run goes on"):
        found = sample(memory, 200)
    assert draws(found) == draws(sample(None, 200))


@pytest.mark.parametrize("url", ["nothing://here", "s3a4://x/y"])
def test_an_unknown_store_is_refused(url):
    """Before anything is run."""
    with pytest.raises((hs.errors.ParameterError, hs.errors.MissingExtra), match="store"):
        sample(url)


@pytest.mark.parametrize("url", ["local://{}/kept", "x://kept"])
def test_a_store_that_is_a_folder_is_named_as_one(url, tmp_path):
    """As an object store nobody would look at who may write there."""
    with pytest.raises(hs.errors.ParameterError, match="leads to this computer"):
        sample(url.format(tmp_path))


def test_without_fsspec_the_extra_is_named(monkeypatch):
    """The message says what to install."""
    monkeypatch.setitem(__import__("sys").modules, "fsspec.core", None)
    with pytest.raises(hs.errors.MissingExtra, match=r"hushed\[s3\]"):
        sample("s3://kept/runs")
