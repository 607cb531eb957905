"""How Ray is reached, with a Ray that is made up; `make engines` asks the real one."""

import sys
import types

import pytest

import hushed as hs
from hushed.engines import _ray
from hushed.errors import EngineUnavailable

SERVER = "ray://127.0.0.1:10001"


@pytest.fixture
def connect(monkeypatch):
    """Connect where these errors come first; how often Ray was asked, and the error at the end."""

    def call(address, *errors):
        left, asked = list(errors), []

        def init(*given, **named):
            asked.append(given)
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
