"""Numbers for Prometheus and lines of the log tell how the server does, and nothing of anybody."""

from __future__ import annotations

import json
import logging
import re
import socket
import subprocess
import sys
import threading
from io import StringIO
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from pydantic import ValidationError
from tests.server.conftest import QUERY, make_folder, open_team

from hushed.server import _metrics
from hushed.server._config import parse_settings
from hushed.server._log import Log, hearing_libraries
from hushed.server._metrics import telling_metrics, write_metrics

# The text format, by its published grammar; label values here have nothing to be escaped.
LINE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="[^"\\\n]*",?)+)\})? (-?[0-9][0-9.e+]*)')
LOGGED = {
    "at": r"[0-9T:.+-]+",
    "event": r"[a-z ]+",
    "method": r"[A-Z]+|-",
    "route": r"/[a-z0-9_{}/.]*|-",
    "status": r"[0-9]+",
    "request": r"[0-9a-f-]{36}",
    "person": r"[0-9a-f-]{36}",
    "dataset": r"stays",
    "error": r"[A-Za-z]+",
}


def read(text):
    """Read the format with a reader of our own."""
    found, kinds = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kinds[name] = line.split(" ")
        elif not line.startswith("# HELP "):
            name, labels, value = LINE.fullmatch(line).groups()
            assert kinds[name] in ("counter", "gauge")
            assert (kinds[name] == "counter") == name.endswith("_total")
            assert (name, labels) not in found
            found[name, labels] = float(value)
    return found


def ask_with_secrets(team):
    step = {"filter": "ward == 'secretward'"}
    made = team.ask(team.ana, "secretkey", query=QUERY | {"steps": [step]}, note="secretnote")
    assert made.status_code in (201, 202)
    team.send("GET", "/v1/secretpath", team.ana)
    team.send("GET", "/v1/requests/secretid", team.bo)
    team.client.request("SECRET", "/livez")
    return made.json()["id"]


@pytest.mark.slow
def test_numbers_tell_states_and_answers_and_no_secret(team):
    """The fourth thing that was asked was refused at the door, and has no route."""
    made = ask_with_secrets(team)
    text = write_metrics(team.desk)
    found = read(text)
    assert found["hushed_requests", 'state="answered"'] == 1
    assert found["hushed_ledger_up", None] == 1
    post = 'method="POST",route="/v1/datasets/{dataset}/requests",status="201"'
    assert found["hushed_http_responses_total", post] == 1
    assert found["hushed_http_responses_total", 'method="GET",route="-",status="404"'] == 1
    for secret in ("secret", "SECRET", "ana", "stays", team.ana[4:30], QUERY["user"], made):
        assert secret not in text


@pytest.mark.slow
def test_the_end_of_a_run_is_not_told_before_its_answer_may_be_seen(tmp_path):
    """How long a run took tells of rows: what is stored already still counts as charged."""
    tokens = make_folder(tmp_path, settings="answer_grid = 3600.0")
    for team in open_team(tmp_path / "stats", tokens):
        before = write_metrics(team.desk)
        made = team.ask(team.ana, "one", wait=0).json()["id"]
        future = team.desk.queue.find(made)
        if future is not None:
            future.result(30)
        assert team.desk.ledger.answer("stays", 1) is not None
        found = read(write_metrics(team.desk))
        assert found["hushed_requests", 'state="charged"'] == 1
        assert ("hushed_requests", 'state="answered"') not in found
        faults = {name: value for name, value in found.items() if "faults" in name[0]}
        assert faults == {n: v for n, v in read(before).items() if "faults" in n[0]}


@pytest.mark.slow
def test_a_ledger_that_was_set_back_shows(team):
    """The mark names an event that the trail does not have."""
    with team.desk._marking():  # and no run that is ending just now writes another one over it
        team.desk.mark.write_text(f"99:{'0' * 64}\n")
    found = read(write_metrics(team.desk))
    assert found["hushed_ledger_up", None] == 0
    assert not any(name == "hushed_requests" for name, _ in found)


def test_large_numbers_are_told_to_their_last_digit(quiet, monkeypatch):
    """Six digits of a time are off by an hour, and a counter would stand still."""
    monkeypatch.setattr(_metrics, "_STARTED", 1_795_860_405.25)
    monkeypatch.setitem(quiet.desk.log._counts, ("http", "GET", "/livez", "200"), 12_345_678)
    found = read(write_metrics(quiet.desk))
    assert found["process_start_time_seconds", None] == 1_795_860_405
    livez = 'method="GET",route="/livez",status="200"'
    assert found["hushed_http_responses_total", livez] == 12_345_678


@pytest.mark.slow
def test_they_are_told_on_a_port_of_this_computer(team):
    """To no page that calls the computer by another name, and on no other address."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/metrics"
        with telling_metrics(team.desk, listening):
            with urlopen(url, timeout=30) as found:
                assert found.headers["content-type"].startswith("text/plain; version=0.0.4")
                assert read(found.read().decode())["hushed_ledger_up", None] == 1
            with pytest.raises(HTTPError, match="421"):
                urlopen(Request(url, headers={"Host": "evil.example"}), timeout=30)
    assert team.send("GET", "/metrics").status_code == 404
    for odd in ("0.0.0.0:8643", "8643", "evil.example:1", "127.0.0.1:"):
        with pytest.raises(ValidationError, match="metrics is 127"):
            parse_settings(f'[server]\nmetrics = "{odd}"')


@pytest.mark.slow
def test_lines_of_the_log_have_known_parts(team):
    """Every part is an id, or a word that stands in the source."""
    ask_with_secrets(team)
    lines = [json.loads(line) for line in team.logged.getvalue().splitlines()]
    assert {line["event"] for line in lines} >= {"http", "charged", "answered"}
    for line in lines:
        for name, value in line.items():
            assert re.fullmatch(LOGGED[name], str(value)), (name, value)


def test_what_libraries_say_is_a_line_of_the_log_without_their_words(capsys):
    """Uvicorn, at whoever speaks no HTTP; and a thread that ends by an error."""
    stream = StringIO()

    def fail():
        raise ValueError("secret")

    with hearing_libraries(Log(stream)):
        logging.getLogger("uvicorn.error").warning("Invalid %s", "secret")
        logging.getLogger("asyncio").error("Task exception", exc_info=ValueError("secret"))
        logging.getLogger("uvicorn.error").info("told to nobody")
        stopped = threading.Thread(target=fail)
        stopped.start()
        stopped.join()
    told = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [each["event"] for each in told] == ["library", "library", "thread stopped"]
    assert [each.get("name") for each in told] == ["uvicorn.error", "asyncio", None]
    assert "secret" not in stream.getvalue() + "".join(capsys.readouterr())


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["serve_program('nowhere', 1)", "main('', 0, line, 0)"])
def test_what_libraries_say_when_a_process_has_ended_is_no_line_of_the_log(tmp_path, ends):
    """Python's last words are of libraries: one lists the objects that were left, in C."""
    program = f"""
import atexit, os
atexit.register(os.write, 2, b"leaked 28 instances")
from hushed.server._serving import serve_program
from hushed.server._web_process import main
line, other = os.pipe()
os.close(other)
try:
    {ends}
except Exception:
    os.write(2, b"ended")
"""
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert found.stderr == b"ended"
