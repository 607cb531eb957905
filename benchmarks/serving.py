"""What a team server does: answers a second from many analysts at once, and how long each waits.

Predicted: the scan and the plan are the cost, about 80 ms of a processor for an answer from 6,000
rows of CSV, so 20 answers a second on two cores; a stored answer is read in a few milliseconds,
and ``/livez`` answers in a tenth of a second whatever else goes on. A charge does not grow dearer
with the length of the ledger.

A second web process, on PostgreSQL, was predicted to answer 1.8 times as many cheap requests on two
free processors, and to take a tenth more of a processor for each.

A server in a process of its own, its ledger on SQLite unless another is given, is asked over HTTP
by threads of this one, each an analyst with a token and a connection of its own who waits for one
answer before asking the next. All ask the same question, of which processes keep the plan, but for
one round of questions that are all new. Client and server share the processors.

Analysts wait as `hs.connect` does: they ask with ``Prefer: wait=10``, and again under the same key
after as long as ``Retry-After`` says. Others are told 202 first, and wait after that; others yet
look every quarter of a second, whatever they are told: 200 of them send 800 requests a second that
tell nothing new, which was all that this benchmark measured while it knew no other analysts.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from benchmarks._bars import Bar, require
from hushed import Guarantee
from hushed.server._adding import add_dataset
from hushed.server._config import read_settings
from hushed.server._giving import set_quota
from hushed.server._people import add_person, add_token
from hushed.server._setup import make_server, open_server
from hushed.server._tokens import Scope

ROWS = 6000
QUERY = {
    "user": "patient",
    "columns": {"cost": "float", "ward": "string"},
    "max_rows_per_user": 1,
    "steps": [{"filter": "cost > 10"}],
    "aggregates": [{"kind": "count"}],
}
WAIT = 10  # seconds, of `hs.connect`
LOOK = 0.25  # seconds between two looks of those who do not wait
HOW = {
    "waiting": "who wait for each answer",
    "new": "who ask what nobody asked before, and wait",
    "told 202": "who are told 202, and wait then",
    "looking": "who look every quarter of a second",
}
MAKER = "benchmark"
PATH = "/v1/datasets/stays"
ASKED = f"{PATH}/requests"
BARS = (
    Bar("answers of 200 who wait", least=30, unit="a second"),
    Bar("answered, 95th of 100", most=8, unit="s"),
    Bar("told that it is charged, 95th", most=0.5, unit="s"),
    Bar("stored answer, 95th", most=0.15, unit="s"),
    Bar("price, 95th", most=0.2, unit="s"),
    Bar("/livez while they wait, 99th", most=0.1, unit="s"),
    Bar("faults", most=0),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--analysts", type=int, default=200, help="How many ask at once.")
    parser.add_argument("--each", type=int, default=5, help="Questions of each of them.")
    parser.add_argument("--ledger", help="Address of an empty database on PostgreSQL.")
    parser.add_argument("--web", type=int, default=1, help="Web processes; 2 need PostgreSQL.")
    parser.add_argument("--seconds", type=float, default=10.0, help="For each cheap request.")
    parser.add_argument("--check", action="store_true", help="Fail if a bar is missed.")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def make_folder(place, analysts, ledger=None):
    """Make a server with so many analysts; port and tokens."""
    source, folder, port = place / "stays.csv", place / "stats", free_port()
    rows = (f"P{i},{'ABCDEF'[i % 6]},{i % 50}" for i in range(ROWS))
    source.write_text("\n".join(["patient,ward,cost", *rows, ""]))
    make_server(folder, ledger)
    column = {"cost": {"kind": "float", "low": 0, "high": 50}}
    told = {"source": str(source), "user": "patient", "column": column}
    add_dataset(
        folder, "stays", told, Guarantee(epsilon=1000, unit="user", neighbours="add-remove")
    )
    _, ledger = open_server(folder)
    with ledger:
        tokens = []
        for i in range(analysts):
            person = add_person(ledger, f"analyst{i}", "analyst", actor="benchmark")
            set_quota(
                ledger, person, "stays", Guarantee(epsilon=10), above="stays", actor="benchmark"
            )
            made = add_token(ledger, person, days=1, scope=Scope(), actor="benchmark")
            tokens.append(made[1])
    file = folder / "hushed.toml"
    text = file.read_text().replace("127.0.0.1:8642", f"127.0.0.1:{port}")
    file.write_text(text.replace("requests_per_minute = 120", "requests_per_minute = 100000"))
    assert read_settings(folder).limits.requests_per_minute == 100_000
    return folder, port, tokens


def start(folder, port, web=1, source=None):
    """Start the server, of another version if its folder is named; how long until it was ready."""
    named = {} if source is None else {"PYTHONPATH": source}
    begun = time.perf_counter()
    with (folder.parent / "log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "hushed", "serve", "--folder", str(folder), "--web", str(web)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=os.environ | named,
        )
    line = Line(port)
    while process.poll() is None:
        try:
            if line.request("GET", "/readyz").status == 200:
                return process, time.perf_counter() - begun
        except OSError:
            time.sleep(0.02)
    sys.exit((folder.parent / "log").read_text()[-2000:])


@dataclass
class Told:
    """An answer."""

    status: int
    headers: dict[str, str]
    data: bytes


class Line:
    """One connection that is kept. One that speaks all of HTTP would cost more than the server."""

    def __init__(self, port):
        self.port, self.connection = port, None

    def request(self, method, path, body=None, headers=None):
        if self.connection is None:
            self.connection = socket.create_connection(("127.0.0.1", self.port), timeout=120)
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        content = (body or "").encode()
        told = {"Host": f"127.0.0.1:{self.port}", **(headers or {})}
        if body is not None:
            told["Content-Length"] = str(len(content))
        lines = "".join(f"{name}: {value}\r\n" for name, value in told.items())
        try:
            self.connection.sendall(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + content)
            return self.hear()
        except OSError:
            self.close()
            raise

    def hear(self):
        found = b""
        while b"\r\n\r\n" not in found:
            found += self.more()
        head, _, data = found.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value for name, _, value in (each.partition(": ") for each in lines)
        }
        while len(data) < int(headers["content-length"]):
            data += self.more()
        if headers.get("connection") == "close":
            self.close()
        return Told(int(first.split()[1]), headers, data)

    def more(self):
        found = self.connection.recv(65536)
        if not found:
            raise ConnectionError("the server has closed the connection")
        return found

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    __del__ = close


class Analyst:
    """Asks, and keeps the seconds that each thing took."""

    def __init__(self, port, token, number):
        self.line = Line(port)
        self.headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        self.number, self.faults, self.told_to_wait, self.made = number, 0, 0, []
        self.dropped, self.after = 0, 0.0
        self.forget()

    def forget(self):
        """Begin to keep seconds anew."""
        kinds = ("first", "charge", "look", "answer", "stored", "quote")
        self.seconds = {kind: [] for kind in kinds}

    def send(self, method, path, body=None, **headers):
        """Send again, under the same key, what met the end of an idle connection, as clients do."""
        for last in (False, False, True):
            try:
                return self.line.request(method, path, body=body, headers=self.headers | headers)
            except ConnectionError:
                self.dropped += 1
                if last:
                    raise
        return None

    def ask(self, kind, method, path, body=None, **headers):
        begun = time.perf_counter()
        content = None if body is None else json.dumps(body)
        found = self.send(method, path, content, **headers)
        self.seconds[kind].append(time.perf_counter() - begun)
        self.after = float(found.headers.get("retry-after", 0))
        if found.status in (429, 503):  # it is told to wait, and does
            self.seconds[kind].pop()
            self.told_to_wait += 1
            time.sleep(self.after)
            return self.ask(kind, method, path, body, **headers)
        self.faults += found.status >= 400
        return json.loads(found.data)

    def release(self, turn, how="waiting"):
        """Ask a question, and wait for its answer, or look for it, until it is there."""
        begun, body = time.perf_counter(), {"query": QUERY, "epsilon": 0.001}
        key = {"Idempotency-Key": f"{self.number} {how} {turn}"}
        if how == "new":
            how, condition = "waiting", f"cost > {self.number}.{turn:03d}5"
            body["query"] = QUERY | {"steps": [{"filter": condition}]}
        waits = key | {"Prefer": f"wait={WAIT}"}
        first = waits if how == "waiting" else key
        made = self.ask("first" if how == "waiting" else "charge", "POST", ASKED, body, **first)
        while made["state"] == "charged":
            if how == "looking":
                time.sleep(LOOK)
                made = self.ask("look", "GET", f"/v1/requests/{made['id']}")
                continue
            if how == "waiting":
                time.sleep(self.after)
            how = "waiting"
            made = self.ask("look", "POST", ASKED, body, **waits)
        self.faults += made["state"] != "answered"
        self.made.append(made["id"])
        self.seconds["answer"].append(time.perf_counter() - begun)

    def charge(self, turn):
        """Ask, and wait for nothing but to be told that it is charged."""
        key = {"Idempotency-Key": f"{self.number} charge {turn}"}
        self.ask("charge", "POST", ASKED, {"query": QUERY, "epsilon": 0.001}, **key)

    def read(self):
        for each in self.made:
            self.ask("stored", "GET", f"/v1/requests/{each}/answer")

    def quote(self):
        self.ask("quote", "POST", f"{PATH}/quote", {"query": QUERY, "epsilon": 0.001})


def together(analysts, work):
    """Let all of them work at once; the seconds until the last is done."""
    begun = time.perf_counter()
    with ThreadPoolExecutor(len(analysts)) as pool:
        list(pool.map(work, analysts))
    return time.perf_counter() - begun


def high(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def all_of(analysts, kind):
    return [each for one in analysts for each in one.seconds[kind]]


def watch(port, stop, found):
    """Ask whether the server lives, twenty times a second; tell at the end when, and how long."""
    line, seconds = Line(port), []
    while not stop.wait(0.05):
        begun = time.monotonic()
        line.request("GET", "/livez")
        seconds.append((begun, time.monotonic() - begun))
    found.put(seconds)


def resident(pid):
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


def children(process):
    """Processes that judge and read; threads start them."""
    tasks = Path(f"/proc/{process.pid}/task").glob("*/children")
    return [int(each) for task in tasks for each in task.read_text().split()]


def processor(process):
    """Seconds of a processor that a server and those it has started took: web processes, too."""
    return sum(map(processor_of, [process.pid, *children(process)]))


def processor_of(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def ask_often(process, analysts, what, path, seconds):
    """Ask one thing as often as it is answered, from all analysts at once; print how often."""
    stop, count = time.perf_counter() + seconds, [0] * len(analysts)

    def go_on(place):
        one, asked = analysts[place], path(analysts[place])
        while time.perf_counter() < stop:
            found = one.line.request("GET", asked, headers=one.headers)
            one.faults += found.status != 200
            count[place] += 1

    begun, spent = time.perf_counter(), processor(process)
    with ThreadPoolExecutor(len(analysts)) as pool:
        list(pool.map(go_on, range(len(analysts))))
    seconds, spent = time.perf_counter() - begun, processor(process) - spent
    print(
        f"{what:24}  {sum(count) / seconds:8.0f} a second, {1e3 * spent / sum(count):.2f} ms of a "
        "processor each"
    )


def ask_cheaply(process, port, analysts, seconds):
    """Ask what costs no scan and no judging."""
    some = [one for one in analysts if one.made][:16]
    for one in some:
        one.line = Line(port)
    ask_often(process, some, "/livez", lambda _: "/livez", seconds)
    ask_often(process, some, "/v1/me", lambda _: "/v1/me", seconds)
    ask_often(process, some, "one request", lambda one: f"/v1/requests/{one.made[0]}", seconds)
    path = "/v1/requests/{}/answer"
    ask_often(process, some, "stored answer", lambda one: path.format(one.made[0]), seconds)


def ask_all(process, analysts, each, how):
    """Let all of them ask so many questions, one after the other; print how that went.

    Answers a second, and the seconds of 95 of 100 until they are answered, and told.
    """
    for one in analysts:
        one.forget()
    spent, own = processor(process), processor_of(process.pid)
    taken = together(analysts, lambda one: [one.release(turn, how) for turn in range(each)])
    spent, own = processor(process) - spent, processor_of(process.pid) - own
    charges, answers = all_of(analysts, "charge"), all_of(analysts, "answer")
    number = len(answers)
    print(f"{len(analysts)} analysts {HOW[how]}, {each} each: {number / taken:.1f} answers/s")
    if charges:
        print(f"charged, 95th of 100      {1e3 * high(charges, 0.95):8.0f} ms")
    print(f"answered, 95th of 100     {1e3 * high(answers, 0.95):8.0f} ms")
    print(
        f"processor for an answer   {1e3 * own / number:8.1f} ms, of all {1e3 * spent / number:.1f}"
    )
    looks = len(all_of(analysts, "look"))
    print(f"asked again               {looks / number:8.1f} times for an answer")
    return number / taken, high(answers, 0.95), high(charges, 0.95) if charges else None


def measure(process, port, tokens, each, turns, seconds):
    """Ask, read and price; print how long it took, and give the figures that have a bar."""
    analysts = [Analyst(port, token, i) for i, token in enumerate(tokens)]
    # In a process of its own: here it would wait for two hundred threads, not for the server.
    spawned = get_context("spawn")
    stop, heard = spawned.Event(), spawned.SimpleQueue()
    watching = spawned.Process(target=watch, args=(port, stop, heard))
    watching.start()
    rate, answered, _ = ask_all(process, analysts, each, "waiting")
    waited = time.monotonic()
    told_after = {
        how: ask_all(process, analysts, 1, how)[2] for how in ("new", "told 202", "looking")
    }
    together(analysts, Analyst.read)
    stored = high(all_of(analysts, "stored"), 0.95)
    print(f"stored answer, 95th       {1e3 * stored:8.0f} ms")
    some = analysts[:50]
    together(some, Analyst.quote)
    priced = high(all_of(some, "quote"), 0.95)
    print(f"price, {len(some)} at once, 95th {1e3 * priced:8.0f} ms")
    stop.set()
    alive = heard.get()
    watching.join()
    lived = high([took for begun, took in alive if begun < waited] or [0.0], 0.99)
    print(f"/livez, 99th of 100       {1e3 * lived:8.0f} ms, of who waits")
    rest = high([took for begun, took in alive if begun >= waited] or [0.0], 0.99)
    print(f"/livez, 99th of 100       {1e3 * rest:8.0f} ms, of all that was asked then")
    ask_cheaply(process, port, analysts, seconds)
    alone = Analyst(port, tokens[0], "alone")
    for turn in range(turns):
        alone.release(turn, "told 202")
    print(f"one alone, charged        {1e3 * statistics.median(alone.seconds['charge']):8.0f} ms")
    print(f"one alone, answered       {1e3 * statistics.median(alone.seconds['answer']):8.0f} ms")
    told = sum(one.told_to_wait for one in (*analysts, alone))
    print(f"told to come back later   {told:8d} times")
    faults = sum(one.faults for one in (*analysts, alone))
    found = (rate, answered, told_after["told 202"], stored, priced, lived, faults)
    return dict(zip((bar.name for bar in BARS), found, strict=True))


def main(
    *,
    quick: bool,
    analysts: int,
    each: int,
    ledger: str | None = None,
    web: int = 1,
    seconds: float = 10.0,
    check: bool = False,
) -> None:
    """Serve, ask, and start again; a quick run does not."""
    if quick:
        analysts, each, seconds = min(analysts, 2), min(each, 2), 0.2
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load of others {load:.1f}, {ROWS} rows, {web} web processes")
    with tempfile.TemporaryDirectory() as name:
        folder, port, tokens = make_folder(Path(name), analysts, ledger)
        process, ready = start(folder, port, web)
        try:
            before = resident(process.pid)
            figures = measure(process, port, tokens, each, 2 if quick else 10, seconds)
            after = resident(process.pid)
            print(f"memory                    {before:8.0f} MB, then {after:.0f} MB")
            others = [resident(each) for each in children(process)]
            print(f"memory of {len(others)} others        {sum(others):8.0f} MB")
            begun = time.perf_counter()
            process.send_signal(signal.SIGTERM)
            process.wait(60)
            print(f"stopped in                {time.perf_counter() - begun:8.1f} s")
            print(f"ready in                  {ready:8.1f} s")
            if not quick:
                process, again = start(folder, port, web)
                print(f"and again in              {again:8.1f} s")
        finally:
            process.kill()
            process.wait()
    print(f"faults                    {figures['faults']:8d}")
    if check:
        require(BARS, figures)
