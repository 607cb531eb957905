"""What a client does when it is not let in, and when it is told to come later."""

from __future__ import annotations

import copy
import json
import pickle
import ssl
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from tests.server.test_deployment import make_certificate

from hushed.client import connect
from hushed.client._pending import Pending, list_pending, write_pending
from hushed.client._sending import Line, NotReached, open_line
from hushed.errors import (
    HushedWarning,
    KeyInUse,
    LedgerUnavailable,
    NotFound,
    ParameterError,
    Refusal,
)
from hushed.server._callers import Callers
from hushed.statements._signing import make_key

ADDRESS = "http://127.0.0.1:8642"
PUBLIC = make_key()[1]
LAYOUT = {"id": "stays", "user": None, "columns": [{"name": "cost", "kind": "float"}]}


class Door:
    """A server that takes no question while it is shut, and counts those that it was sent."""

    def __init__(self, status, code):
        told = {"code": code, "title": "Shut."} if code else []  # a proxy knows no code
        self.refusal = status, {}, json.dumps(told).encode()
        self.shut, self.asked = True, []

    def __call__(self, method, path, headers, body):
        if method == "POST":
            self.asked.append(headers["idempotency-key"])
            assert self.shut, "nobody asked for this"
            return self.refusal
        told = {"/v1/me": {"id": "ana"}, "/v1/datasets/stays": LAYOUT}
        told |= {"/v1/keys": {"keys": [{"pem": PUBLIC.decode()}]}}
        told |= {"/v1/requests?most=100": {"items": []}}
        return 200, {}, json.dumps(told[path]).encode()


def client_to(send, token="hsh_token"):
    made = connect(ADDRESS, token, key=PUBLIC, send=send)
    object.__setattr__(made.line, "pause", lambda seconds: None)
    return made


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (429, "too_many"),
        (401, "not_authenticated"),
        (403, "forbidden"),
        (421, "wrong_host"),
        (500, "unforeseen"),
        (403, ""),
        (502, ""),
    ],
)
def test_what_was_refused_at_the_door_is_not_asked_anew_by_recovering(
    tmp_path, monkeypatch, status, code
):
    """Whoever recovers asks nothing; the refusal names the key, under which it is paid once."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    door = Door(status, code)
    client = client_to(door)
    asked = client.table("stays").count()
    with pytest.raises(Refusal) as refused:
        asked.release(epsilon=0.1, timeout=0)
    (left,) = list_pending(client.pending)
    assert left.unseen
    assert f"with key={left.key!r}" in str(refused.value)
    assert ".;" not in str(refused.value)
    assert "client.recover() reads its answer if it was charged" in str(refused.value)
    sent, door.shut = len(door.asked), False
    assert client.recover() == []
    assert len(door.asked) == sent
    door.shut = True
    with pytest.raises(Refusal):  # asked again on purpose, it is the same request
        asked.release(epsilon=0.1, key=left.key, timeout=0)
    assert set(door.asked) == {left.key}
    assert list_pending(client.pending) == [left]


@pytest.mark.slow
def test_recovering_after_too_many_requests_charges_nothing(team, tmp_path, monkeypatch):
    """One was charged before it was refused, and is read; one never arrived, and is not asked."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    full = []

    def send(method, path, headers, body):
        found = team.client.request(method, path, headers=dict(headers), content=body)
        if cut and method == "POST":
            cut.pop()
            full.append("from now on")
            raise NotReached  # it was charged, and the next attempt is refused
        return found.status_code, found.headers, found.content

    cut = ["once"]
    client = client_to(send, team.ana)
    monkeypatch.setattr(Callers, "count", lambda *_: not full)
    object.__setattr__(client, "key", connect(ADDRESS, team.ana, send=send).key)
    asked = client.table("stays").bound_contributions(max_rows_per_user=1).count()
    for key in ("paid", "never"):
        with pytest.raises(Refusal, match="Too many requests"):
            asked.release(epsilon=0.1, key=key, timeout=40)
    assert team.charges() == 1
    assert client.recover() == []  # nor is it forgotten while there are too many
    full.clear()
    assert [each.entry for each in client.recover()] == [1]
    assert [each.key for each in list_pending(client.pending)] == ["never"]
    assert asked.release(epsilon=0.1, key="never").entry == 2
    assert list_pending(client.pending) == []


def test_a_question_is_the_same_under_another_note(tmp_path):
    """Else it is asked under another key, and paid twice."""
    for body in ({"epsilon": 0.1, "note": "first"}, {"epsilon": 0.1, "note": ""}):
        write_pending(tmp_path, Pending(key="mine", dataset="stays", body=body))
    with pytest.raises(KeyInUse):
        write_pending(tmp_path, Pending(key="mine", dataset="stays", body={"epsilon": 0.2}))


def test_a_client_comes_again_when_it_is_told_to():
    """A server that counts by the minute says 60 seconds: it is not asked before; nor an hour."""
    pauses, told = [], iter(["60", "7", "3600", None, "soon"])

    def send(*_):
        after = next(told)
        return 429, {} if after is None else {"retry-after": after}, b"{}"

    with pytest.raises(StopIteration):
        Line(send=send, token="t", pause=pauses.append).ask("GET", "/v1/me")
    added = [each - after for each, after in zip(pauses, (60, 7, 60, 1, 1), strict=True)]
    for attempt, each in enumerate(added):  # never before, and not all in the same moment
        assert 2.0**attempt / 8 <= each <= 2.0**attempt / 4


def test_nobody_waits_for_a_busy_server_beyond_the_end():
    """Who gives a request a second is refused at once, and does not sleep for a minute."""
    pauses = []
    line = Line(send=lambda *_: (429, {"retry-after": "60"}, b"{}"), token="t", pause=pauses.append)
    with pytest.raises(Refusal):
        line.ask("POST", "/v1/x", ends=time.monotonic() + 1)
    assert pauses == []


@pytest.mark.parametrize("answer", [(503, {"retry-after": "5"}, b'{"code": "busy"}'), None])
def test_what_has_an_end_is_asked_until_then(monkeypatch, recwarn, answer):
    """A thousand who ask at once wait for some minutes; six attempts were over before."""
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    warnings.simplefilter("always", HushedWarning)
    clock, pauses = [1000.0], []

    def send(*_):
        if answer is None:
            raise NotReached
        return answer

    def pause(seconds):
        pauses.append(seconds)
        clock[0] += seconds

    line = Line(send=send, token="t", pause=pause)
    with pytest.raises(Refusal):
        line.ask("POST", "/v1/x", ends=1600.0)
    least, most = (5, 20) if answer else (0, 15)
    assert 1600 - least - 0.001 <= clock[0] <= 1600
    assert all(least < each <= most for each in pauses)
    assert max(pauses[:4]) < min(pauses[8:-1])  # they grow
    assert len(set(pauses[8:])) == len(pauses[8:])  # and differ
    told = [str(each.message) for each in recwarn]
    assert 1 <= len(told) <= 3
    assert all(" s at most" in each and "times more" not in each for each in told)


def test_what_cannot_be_read_after_the_charge_says_so(tmp_path, monkeypatch):
    """The refusal of a limit read as if nothing had been asked."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    door = Door(200, "")
    charged = {"id": "0f0e8e5c-0000-4000-8000-000000000000", "state": "answered"}

    def send(method, path, *rest):
        if method == "POST":
            return 201, {}, json.dumps(charged).encode()
        if path.endswith("/answer"):
            return 429, {"retry-after": "60"}, b'{"code": "too_many", "title": "Too many."}'
        return door(method, path, *rest)

    client = client_to(send)
    with pytest.raises(Refusal, match=r"Too many.*client\.recover\(\).*'mine': you pay once"):
        client.table("stays").count().release(epsilon=0.1, key="mine", timeout=5)
    assert [each.key for each in list_pending(client.pending)] == ["mine"]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((503, {"retry-after": "5"}, b'{"code": "busy"}'), "the server is busy. "),
        ((429, {"retry-after": "60"}, b'{"code": "too_many"}'), "no more requests of yours"),
        ((502, {"retry-after": "5"}, b"<html>"), "or what stands before it, answered 502"),
        ((503, {"retry-after": "5"}, b'{"code": ["busy"]}'), "answered 503"),
    ],
)
def test_a_wait_for_a_busy_server_is_told_once(answer, why):
    """A notebook that says nothing for minutes looks like one that hangs."""
    door = Door(200, "")
    client = client_to(lambda method, *rest: answer if method == "POST" else door(method, *rest))
    question = client.table("stays").count()
    with pytest.warns(HushedWarning, match="asked again by itself") as told, pytest.raises(Refusal):
        question.quote_for(errors={"count": 50})
    (only,) = told
    assert why in str(only.message)
    assert f"next in {answer[1]['retry-after']} s, 5 times more at most" in str(only.message)
    assert "pay" not in str(only.message)  # a price costs nothing
    assert only.filename == __file__


def test_a_wait_of_a_release_says_that_it_is_paid_once(tmp_path, monkeypatch):
    """Whoever stops it has to know whether it may be asked again."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    door = Door(503, "busy")
    door.refusal = 503, {"retry-after": "5"}, door.refusal[2]
    client = client_to(door)

    def stop(_):
        raise KeyboardInterrupt

    object.__setattr__(client.line, "pause", stop)
    words = r"Ctrl-C ends the wait; client\.recover\(\) goes on, .* you pay once"
    with pytest.warns(HushedWarning, match=words), pytest.raises(KeyboardInterrupt):
        client.table("stays").count().release(epsilon=0.1, key="mine")
    with pytest.warns(HushedWarning, match=words), pytest.raises(KeyboardInterrupt):
        client.recover()
    assert door.asked == ["mine"] * 2


class Slow(Door):
    """A server that charges at once, and answers not before so many looks of so many seconds."""

    def __init__(self, looks, clock):
        super().__init__(200, "")
        self.looks, self.clock, self.waits = looks, clock, []

    def __call__(self, method, path, headers, body):
        if method != "POST":
            return super().__call__(method, path, headers, body)
        self.waits.append(int(headers["prefer"].removeprefix("wait=")))
        self.clock[0] += self.waits[-1]
        self.looks -= 1
        told = {"id": "r1", "state": "charged" if self.looks else "declined"}
        return 202, {}, json.dumps(told).encode()


@pytest.mark.parametrize(("looks", "said"), [(1, 0), (2, 1), (4, 1), (5, 2), (20, 2)])
def test_a_wait_for_an_answer_is_told_once_and_then_rarely(
    tmp_path, monkeypatch, recwarn, looks, said
):
    """Who waits hears after some seconds that it is charged, and how to come back at no cost."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    warnings.simplefilter("always", HushedWarning)
    clock = [0.0]
    client = client_to(door := Slow(looks, clock))
    with pytest.raises(Refusal, match="declined"):
        client.table("stays").count().release(epsilon=0.1, key="mine", timeout=1000)
    assert door.waits == ([5] + [20] * (looks - 1))
    told = [str(each.message) for each in recwarn]
    assert len(set(told)) == said  # equal words of one line are shown once
    assert all("is charged" in each and "with key='mine'" in each for each in told)


def test_what_is_over_says_the_key(tmp_path, monkeypatch):
    """Nobody who gave no key knows what it is paid under."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    clock = [0.0]
    client = client_to(Slow(9, clock))
    with pytest.raises(LedgerUnavailable, match="is charged, and there is no answer yet") as over:
        client.table("stays").count().release(epsilon=0.1, timeout=3)
    (left,) = list_pending(client.pending)
    assert f"with key={left.key!r}: you pay once" in str(over.value)


@pytest.mark.parametrize(
    ("answer", "pauses"),
    [((503, {"retry-after": "1"}, b"{}"), [1.25]), (None, [0.25, 0.5, 1.0])],
)
def test_a_wait_of_a_moment_is_not_told(answer, pauses):
    """Of two seconds nobody needs to hear."""
    made, told = [], iter([answer] * len(pauses) + [(200, {}, b"{}")])

    def send(*_):
        found = next(told)
        if found is None:
            raise NotReached
        return found

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Line(send=send, token="t", pause=made.append).ask("GET", "/v1/me") == (200, b"{}")
    assert all(each / 2 <= found <= each for each, found in zip(pauses, made, strict=True))


def test_a_wait_goes_on_where_warnings_are_errors(capsys):
    """Else the question would be lost to a filter of whoever asks."""
    told = iter([(503, {"retry-after": "5"}, b'{"code": "busy"}'), (200, {}, b"{}")])
    line = Line(send=lambda *_: next(told), token="t", pause=lambda _: None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert line.ask("GET", "/v1/me") == (200, b"{}")
    assert "the server is busy" in capsys.readouterr().err


class Echo(BaseHTTPRequestHandler):
    """Says what it was sent, after a moment."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        time.sleep(0.002)
        told = json.dumps({"path": self.path, "body": json.loads(body)}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *_): ...


def test_ten_threads_share_a_line_and_each_gets_what_it_asked():
    """Over real connections, which are given back and taken again."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        try:
            send = open_line(f"http://127.0.0.1:{server.server_port}")
            line = Line(send=send, token="t")

            def ask(number):
                _, found = line.ask("POST", f"/{number}", {"number": number})
                return json.loads(found) == {"path": f"/{number}", "body": {"number": number}}

            with ThreadPoolExecutor(10) as pool:
                assert all(pool.map(ask, range(100)))
        finally:
            server.shutdown()
            serving.join()


@pytest.mark.slow
def test_ten_threads_share_a_client(team, tmp_path, monkeypatch):
    """Each pays for its own question, reads its own answer, and leaves nothing behind."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def send(method, path, headers, body):
        found = team.client.request(method, path, headers=dict(headers), content=body)
        return found.status_code, found.headers, found.content

    client = connect(ADDRESS, team.ana, send=send)
    object.__setattr__(client.line, "pause", lambda seconds: time.sleep(seconds / 5))

    def ask(number):
        asked = client.table("stays").bound_contributions(max_rows_per_user=1)
        return asked.count(name=f"n{number}").release(epsilon=0.05)

    with ThreadPoolExecutor(10) as pool:
        found = list(pool.map(ask, range(10)))
    assert [next(iter(each.to_dict())) for each in found] == [f"n{i}" for i in range(10)]
    assert sorted(each.entry for each in found) == [*range(1, 11)]
    assert team.charges() == 10
    assert list_pending(client.pending) == []


def test_what_was_not_sent_for_want_of_the_key_is_not_asked_by_recovering(tmp_path, monkeypatch):
    """Whoever asks it again would have paid twice."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    door = Door(200, "")

    def send(method, path, headers, body):
        if path == "/v1/keys":
            raise NotReached
        return door(method, path, headers, body)

    client = client_to(send)
    with pytest.raises(LedgerUnavailable, match="was not reached"):
        client.table("stays").count().release(epsilon=0.1)
    assert (door.asked, list_pending(client.pending)) == ([], [])


@pytest.mark.parametrize(
    ("trusted", "said"),
    [(None, "no TLS could be agreed"), (False, "does not trust the certificate")],
)
def test_it_is_said_why_no_tls_could_be_agreed(tmp_path, trusted, said):
    """A server without TLS, and one whose certificate nobody here knows."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        if trusted is not None:
            make_certificate(tmp_path)
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(tmp_path / "localhost.pem", tmp_path / "key.pem")
            server.socket = context.wrap_socket(server.socket, server_side=True)
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        try:
            send = open_line(f"https://127.0.0.1:{server.server_port}")
            with pytest.raises(LedgerUnavailable, match=said):
                Line(send=send, token="t", pause=lambda _: None).ask("GET", "/v1/me")
        finally:
            server.shutdown()
            serving.join()


def test_an_address_that_is_none_is_refused_in_words():
    """Without a scheme, and with a path that the steward did not name."""
    with pytest.raises(ParameterError, match="begins with https://, or on this computer http://"):
        connect("127.0.0.1:8642", "hsh_token")
    missing = json.dumps({"code": "not_found", "title": "There is no such thing here."}).encode()
    with pytest.raises(NotFound, match="without /v1 or /pages"):
        connect(f"{ADDRESS}/v1", "hsh_token", send=lambda *_: (404, {}, missing))


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        *(({"key": each}, "key must be") for each in ("ü", "a\nb", " a", "", "k" * 201, 7, b"k")),
        *(({"epsilon": each}, "epsilon must be") for each in ("1", None, True, 0, float("nan"))),
        *(({"delta": each}, "delta must be") for each in (None, "0", -0.1, 1)),
        *(({"note": each}, "note must be") for each in (None, 7, "n" * 501)),
        *(({"noise": each}, "noise must be") for each in (None, "gauss", [])),
        *(({"timeout": each}, "timeout must be") for each in (None, "5", float("nan"))),
    ],
)
def test_what_cannot_be_sent_is_refused_before_it_is_written(tmp_path, monkeypatch, terms, said):
    """An error of HTTP or JSON was told, and the file of the request stayed behind."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    client = client_to(door := Door(200, ""))
    with pytest.raises(ParameterError, match=said):
        client.table("stays").count().release(**{"epsilon": 0.1} | terms)
    assert (door.asked, list(tmp_path.rglob("*"))) == ([], [])


def test_numbers_of_other_types_are_sent_as_what_they_are(tmp_path, monkeypatch):
    """A number of NumPy or a decimal is none to JSON."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    door, sent = Door(200, ""), []

    def send(method, *rest):
        if method != "POST":
            return door(method, *rest)
        sent.append(json.loads(rest[-1]))
        return 403, {}, b"{}"

    client = client_to(send)
    table = client.table("stays").count()
    for ask in (table.quote, table.release):
        with pytest.raises(Refusal):
            ask(epsilon=np.float32(0.5), delta=Decimal("0.25"))
    with pytest.raises(Refusal):
        table.quote(error=np.int64(5), rows=np.int64(100))
    assert [(each["epsilon"], each["delta"]) for each in sent[:2]] == [(0.5, 0.25)] * 2
    assert (sent[2]["errors"], sent[2]["rows"]) == ({"count": 5.0}, 100)


@pytest.mark.parametrize("timeout", [Decimal(5), 10**400])
def test_a_timeout_of_another_type_is_a_number_of_seconds(tmp_path, monkeypatch, timeout):
    """It was an error of Python, and what was never asked stayed behind to be asked later."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    door = Door(409, "conflict")
    with pytest.raises(Refusal, match="Shut"):
        client_to(door).table("stays").count().release(epsilon=0.1, timeout=timeout)
    assert len(door.asked) == 1


def plain_send(method, path, headers, body):
    """A function that pickle knows by its name."""
    return Door(200, "")(method, path, headers, body)


def test_nothing_that_holds_the_token_is_pickled_but_all_of_it_is_copied():
    """A file of a notebook, or of a worker, would hold it."""
    client = client_to(plain_send)
    for each in (client, client.table("stays").count(), client.line):
        for protocol in (0, pickle.HIGHEST_PROTOCOL):
            with pytest.raises(TypeError, match="holds your token"):
                pickle.dumps(each, protocol)
        for made in (copy.copy(each), copy.deepcopy(each), copy.deepcopy([each])[0]):
            assert made == each
    assert copy.deepcopy(client).line.token == client.line.token
