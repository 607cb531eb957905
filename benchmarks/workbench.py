"""What the workbench takes: from a key press to the new number, and from the command to its page.

Predicted: a key press with Laplace noise costs the server about 10 ms of a processor, most of it
for the form and the templates; with Gaussian noise and private keys the quotes at the ends of the
slider cost more, once. The first page is ready after a second of a processor, most of it for
loading. Got, with a load of 10 on two cores: 14 ms, and 43 ms at every key, for each moves the
quotes; of the first page twice the processor time of loading NumPy and `scipy.stats`, 3.5 s there.

The page waits 120 ms for the next key before it asks. That wait, and what the browser does with the
answer, are not in these numbers: `tests/workbench/browser` prints the whole way.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import urllib3
from starlette.testclient import TestClient

from hushed import Guarantee, Ledger
from hushed.workbench import create_app
from hushed.workbench._drafts import Drafts

PORT = 8000
ORIGIN = f"http://127.0.0.1:{PORT}"
PART = {"origin": ORIGIN, "sec-fetch-site": "same-origin", "hx-request": "true"}
DATA = {
    "where": "file",
    "file": "stays.csv",
    "protect": "person",
    "user": "patient",
    "max_rows": "5",
    "rows": "3000",
    "budget": "stays",
    "col.1.name": "ward",
    "col.1.kind": "string",
    "col.1.keys": "A, B, C",
    "col.2.name": "cost",
    "col.2.kind": "float",
    "col.2.low": "0",
    "col.2.high": "5000",
}
QUESTION = {
    "group": "ward",
    "stat.1.kind": "count",
    "stat.2.kind": "mean",
    "stat.2.column": "cost",
    "error_of": "mean_cost",
    "moved": "epsilon",
}
KINDS = {
    "Laplace noise": {},
    "Gaussian noise, private keys": {
        "keys": "private",
        "noise": "gaussian",
        "delta": "1e-6",
        "max_groups": "1",
    },
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keys", type=int, default=200, help="How many keys are pressed.")


def make_folder(folder):
    """Make a table that is described, and a budget; the address of its question."""
    rows = (f"P{i % 900},{'ABC'[i % 3]},{i % 4000}" for i in range(3000))
    (folder / "stays.csv").write_text("\n".join(["patient,ward,cost", *rows, ""]))
    limit = Guarantee(epsilon=3.0, delta=1e-5, neighbours="add-remove", unit="user")
    with Ledger(f"sqlite:///{folder / 'ledger.db'}") as book:
        book.open_budget("stays", limit)
    fields = {f"data.{name}": text for name, text in DATA.items()}
    draft = Drafts(folder / ".hushed" / "drafts.db").create("table", "Stays", fields)
    return f"/tables/{draft.id}/question"


def press_keys(folder, question, keys):
    """Print what the server takes for each of some key presses, of a processor and of a clock."""
    app = create_app(folder, port=PORT)
    with TestClient(app, base_url=ORIGIN, headers=PART) as client:
        client.get(app.address)
        for kind, more in KINDS.items():
            spent, waited, first = [], [], 0.0
            for i in range(keys + 1):
                form = QUESTION | more | {"epsilon": f"{0.2 + 2.5 * i / keys:.4f}"}
                begun, at = time.process_time(), time.perf_counter()
                found = client.post(f"{question}/live", data=form)
                took = time.process_time() - begun
                if found.headers.get("hx-trigger") != "priced":
                    sys.exit(f"there is no new number: {found.text[:500]}")
                if i == 0:
                    first = took
                    continue
                spent.append(took)
                waited.append(time.perf_counter() - at)
            told = " ".join(f"{1e3 * high(spent, part):7.0f}" for part in (0.5, 0.95, 1.0))
            clock = 1e3 * high(waited, 0.95)
            print(f"{kind:30}{told} ms of a processor; 95th by the clock {clock:.0f} ms;", end="")
            print(f" the first {1e3 * first:.0f} ms")


def high(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def open_first_page(folder):
    """Print what it takes from the command to the first page, and how large that is."""
    before, begun = used_by_children(), time.perf_counter()
    words = [sys.executable, "-m", "hushed", "workbench", str(folder), "--no-browser"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=unbuffered()) as process:
        try:
            address = next(found[0] for line in process.stdout if (found := ADDRESS.search(line)))
            pool = urllib3.PoolManager()
            key = pool.request("GET", address, redirect=False)
            cookie = {"cookie": key.headers["set-cookie"].partition(";")[0]}
            home = address.partition("?")[0]
            page = pool.request("GET", home, headers=cookie)
            seconds = time.perf_counter() - begun
            text = page.data.decode()
            files = re.findall(r'(?:src|href)="(/static/[^"]+)"', text)
            sizes = [len(pool.request("GET", home[:-1] + f, headers=cookie).data) for f in files]
        finally:
            process.send_signal(signal.SIGINT)
    spent = used_by_children() - before
    size = len(page.data) + sum(sizes)
    print(f"first page: {seconds:.2f} s, {spent:.2f} s of processors with the end of the process;")
    print(f"first page: {size / 1e3:.0f} kB in {1 + len(files)} files")


ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\?key=\S+")


def unbuffered():
    return {**os.environ, "PYTHONUNBUFFERED": "1"}


def used_by_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(*, quick: bool, keys: int) -> None:
    """Press keys, and open the first page."""
    keys = 10 if quick else keys
    print(f"load of this machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        question = make_folder(folder)
        print(f"key presses: {'median':>18}    95th     all")
        press_keys(folder, question, keys)
        open_first_page(folder)
