"""How Ray is reached, with a Ray that is made up; `make engines` asks the real one."""

import itertools
import os
import socket
import sys
import time
import types

import pytest

import hushed as hs
from hushed.engines import Task, _ray
from hushed.errors import EngineUnavailable, ParameterError, WorkerLost

SERVER = "ray://127.0.0.1:10001"


@pytest.fixture
def connect(monkeypatch):
    """Connect where these errors come first; how often Ray was asked, and the error at the end."""

    def call(address, *errors):
        left, asked = list(errors), []
        monkeypatch.delenv("RAY_USAGE_STATS_ENABLED", raising=False)

        def init(*given, **named):
            asked.append(given)
            assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"  # Ray tells nobody
            if left:
                raise left.pop(0)

        made_up = types.ModuleType("ray")
        made_up.init, made_up.is_initialized = init, lambda: False
        monkeypatch.setitem(sys.modules, "ray", made_up)
        monkeypatch.setattr(_ray, "_PAUSE_SECONDS", 0.0)
        try:
            hs.engines.Ray(address)
        except EngineUnavailable as error:
            return len(asked), error
        return len(asked), None

    return call


@pytest.mark.parametrize("times", [0, 1, 2])
def test_a_server_that_breaks_off_while_it_starts_is_asked_again(connect, times):
    """Ray forks a process for each client, and now and then that one does not live to begin."""
    assert connect(SERVER, *[ConnectionAbortedError()] * times) == (times + 1, None)


def test_a_server_that_breaks_off_again_and_again_is_given_up(connect):
    """After three tries; the error has the address, and the one of Ray is its cause."""
    asked, error = connect(SERVER, *[ConnectionAbortedError()] * 9)
    assert asked == 3
    assert (
        f"no Ray cluster could be reached at {SERVER} (ConnectionAbortedError in 3 tries)"
        in str(error)
    )
    assert isinstance(error.__cause__, ConnectionAbortedError)


@pytest.mark.parametrize("error", [ConnectionError(), RuntimeError("another version of Ray")])
def test_what_another_try_does_not_mend_is_said_at_once(connect, error):
    """Nobody at the address, or another version there."""
    asked, found = connect(SERVER, error)
    assert (asked, found.__cause__) == (1, error)


def test_a_cluster_without_a_server_of_clients_is_asked_once(connect):
    """There no process is forked, and what fails would fail again."""
    assert connect("ray", ConnectionAbortedError())[0] == 1


class MadeUp(types.ModuleType):
    """A Ray of which no task is ever done; it has processors as often as it is told."""

    def __init__(self, looks=0):
        super().__init__("ray")
        self.looks = iter([{"CPU": 2.0}] * looks + [{}] * 50)  # then it fails: a test must end
        self.put = bytes
        self.exceptions = types.SimpleNamespace(RayError=BrokenPipeError)
        self.sent, self.cancelled, numbers = [], [], itertools.count()

        def send(*given):
            self.sent.append(next(numbers))
            return self.sent[-1]

        self.address = ""
        self.remote = lambda **_: lambda function: types.SimpleNamespace(remote=send)

    def is_initialized(self):
        return True

    def cluster_resources(self):
        return next(self.looks)

    def get_runtime_context(self):
        if not self.address:
            raise AttributeError("as of a client")
        return types.SimpleNamespace(gcs_address=self.address)

    def wait(self, refs, **_):
        time.sleep(0.01)
        return [], refs

    def cancel(self, ref, force):
        self.cancelled.append(ref)


@pytest.fixture
def made_up(monkeypatch):
    """Connect to such a Ray, and be patient for a fifth of a second."""

    def connect(looks=0):
        ray = MadeUp(looks)
        monkeypatch.setitem(sys.modules, "ray", ray)
        monkeypatch.setattr(_ray, "_LOOK_SECONDS", 0.0)
        return ray, hs.engines.Ray(patience=0.2)

    return connect


def test_a_cluster_without_processors_is_not_waited_for(made_up):
    """As one that has started no worker yet."""
    ray, engine = made_up()
    with pytest.raises(EngineUnavailable, match="had no processor for 0 seconds: start some"):
        next(engine.map_spans(Task(b"", "", 0), iter([(0, 1)])))
    assert not ray.sent


def test_a_cluster_that_loses_its_processors_is_given_up(made_up):
    """No task would ever be done; what is on its way is taken back."""
    ray, engine = made_up(looks=9)
    with pytest.raises(WorkerLost, match="has had no processor for 0 seconds"):
        next(engine.map_spans(Task(b"", "", 0), iter([(0, 1), (1, 2)])))
    assert ray.cancelled == ray.sent == [0, 1]


def test_a_connected_program_is_not_connected_to_another_cluster(made_up):
    """Ray has one connection for a program; the word means that one."""
    made_up()
    with pytest.raises(ParameterError, match="connected to a Ray cluster already"):
        hs.engines.Ray(SERVER)


@pytest.fixture
def nobody():
    """Address at which nobody takes connections."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen
        yield f"127.0.0.1:{bound.getsockname()[1]}"


def test_a_head_that_is_gone_is_not_asked_for_ever(made_up, monkeypatch, nobody):
    """Ray itself would wait for a minute, and then end this program."""
    ray, engine = made_up()
    ray.address, ray.cluster_resources = nobody, lambda: time.sleep(10) or {"CPU": 2.0}
    monkeypatch.setattr(_ray, "_LOST_SECONDS", 0.1)
    with pytest.raises(EngineUnavailable, match="lost the Ray cluster"):
        engine.slots()


def test_what_fails_without_a_head_is_a_lost_cluster(made_up, nobody):
    """No worker died, and the function is not to blame; nor is Ray asked to take tasks back."""
    ray, engine = made_up(looks=9)

    def wait(refs, **_):
        ray.address = nobody
        return refs[:1], refs[1:]

    def get(ref):
        raise ray.exceptions.RayError

    ray.wait, ray.get = wait, get
    with pytest.raises(EngineUnavailable, match="lost the Ray cluster"):
        next(engine.map_spans(Task(b"", "", 0), iter([(0, 1), (1, 2)])))
    assert (ray.sent, ray.cancelled) == ([0, 1], [])


def test_a_head_that_does_not_come_back_is_a_lost_cluster(made_up, monkeypatch, nobody):
    """It is looked for while tasks are waited for."""
    ray, engine = made_up(looks=9)

    def wait(refs, **_):
        ray.address = nobody
        monkeypatch.setattr(_ray, "_LOST_SECONDS", 0.1)  # before, a busy machine may need more
        return [], refs

    ray.wait = wait
    with pytest.raises(EngineUnavailable, match="lost the Ray cluster"):
        next(engine.map_spans(Task(b"", "", 0), iter([(0, 1)])))
    assert len(list(ray.looks)) == 50 + 9 - 3  # the processors were not asked for again


def test_errors_of_ray_while_work_is_sent_are_a_lost_cluster(made_up):
    """No class of Ray's comes out."""
    ray, engine = made_up(looks=9)

    def put(payload):
        raise ray.exceptions.RayError

    ray.put = put
    with pytest.raises(EngineUnavailable, match="lost the Ray cluster"):
        next(engine.map_spans(Task(b"", "", 0), iter([(0, 1)])))
