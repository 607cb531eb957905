"""What a team server does in the long run: minutes at a steady pace, and a ledger of many requests.

Predicted: at five questions a second two cores are a fifth busy, so that 95 of 100 answers come
within the grid of one second and 0.2 s, and the memory does not grow. A charge costs the same in a
ledger of ten thousand requests as in a new one, because it adds to sums that are kept; a start
reads every entry once, at some 30 microseconds each.

The server is the one of ``serving``. The ledger is filled by the server's own functions, in this
process: charge, answer, certificate and mark of each request are written as the server does it,
but one question is judged once, and one answer is stored again and again. Then the server is
started on that ledger, and asked over HTTP.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import signal
import statistics
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks._bars import Bar, require
from benchmarks.serving import QUERY, Analyst, all_of, children, high, make_folder, resident, start
from hushed.ledger._together import charge_each
from hushed.server._app import open_desk
from hushed.server._judging import Ask, judge, tell_run
from hushed.server._life import keep_answer, wish_for
from hushed.server._log import Log
from hushed.server._people import find_caller, list_grants

BARS = (
    Bar("answered, 95th of 100", most=1.2, unit="s"),
    Bar("memory of the server at the end", most=1.05, unit="times that of a tenth of the time"),
    Bar("memory of its processes at the end", most=1.05, unit="times that of a tenth of the time"),
    Bar("a charge, last hundred", most=1.5, unit="times the first hundred, 95th"),
    Bar("ready again", most=5, unit="s"),
    Bar("faults", most=0),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=int, default=600, help="How long it is asked.")
    parser.add_argument("--rate", type=float, default=5.0, help="Questions a second.")
    parser.add_argument("--requests", type=int, default=10_000, help="In the ledger.")
    parser.add_argument("--check", action="store_true", help="Fail if a bar is missed.")


def ask_steadily(analysts, rate, seconds):
    """Ask on the clock, however long answers take; how many questions ended by an error."""
    begun, count, asked = time.perf_counter(), int(rate * seconds), []
    with ThreadPoolExecutor(min(200, len(analysts))) as pool:
        for turn in range(count):
            time.sleep(max(0.0, begun + turn / rate - time.perf_counter()))
            asked.append(pool.submit(analysts[turn % len(analysts)].release, turn, "told 202"))
        late = time.perf_counter() - begun - (count - 1) / rate
    errors = [type(each.exception()).__name__ for each in asked if each.exception()]
    print(f"{count} questions, {rate:g} a second, the last one sent {late:.1f} s late")
    print(f"all came after            {time.perf_counter() - begun:8.0f} s")
    print(f"lost                      {len(errors):8d} {sorted({*errors})}")
    return len(errors)


def of_server(process):
    """Memory of the server and of its processes, in MB."""
    return resident(process.pid), sum(map(resident, children(process)))


def hold_out(folder, port, tokens, rate, seconds):
    """Ask at a steady pace, and compare the memory after a tenth of the time with the end."""
    process, _ = start(folder, port)
    analysts = [Analyst(port, token, i) for i, token in enumerate(tokens)]
    found = []
    early = threading.Timer(seconds / 10, lambda: found.append(of_server(process)))
    early.start()
    try:
        lost = ask_steadily(analysts, rate, seconds)
        early.join()
        found.append(of_server(process))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    (before, others), (after, others_after) = found
    charges, answers = all_of(analysts, "charge"), all_of(analysts, "answer")
    print(f"answers                   {len(answers):8d}")
    print(f"charged, 95th of 100      {1e3 * high(charges, 0.95):8.0f} ms")
    print(f"answered, 50th of 100     {1e3 * high(answers, 0.50):8.0f} ms")
    print(f"answered, 95th of 100     {1e3 * high(answers, 0.95):8.0f} ms")
    print(f"memory                    {before:8.0f} MB, then {after:.0f} MB")
    print(f"memory of its processes   {others:8.0f} MB, then {others_after:.0f} MB")
    print(f"told to wait              {sum(each.told_to_wait for each in analysts):8d} times")
    print(f"sent again                {sum(each.dropped for each in analysts):8d} times")
    faults = lost + sum(each.faults for each in analysts)
    return {
        "answered, 95th of 100": high(answers, 0.95),
        "memory of the server at the end": after / before,
        "memory of its processes at the end": others_after / others if others else math.nan,
        "faults": faults,
    }


def fill(folder, tokens, count):
    """Write so many requests with their answers; seconds of clock and processor of each charge."""
    desk = open_desk(folder, Log(io.StringIO()))
    asked = Ask(query=QUERY, epsilon=0.001)
    dataset, seconds = desk.datasets["stays"], []
    try:
        desk.serve_alone()
        callers = [find_caller(desk.ledger, each, "") for each in tokens]
        shares = {each.id: list_grants(desk.ledger, each.id)[0] for each in callers}
        judged = judge(desk, callers[0].id, dataset, asked)
        text = desk.runners.answer(tell_run(desk, dataset, asked, judged.digest))
        for turn in range(count):
            caller = callers[turn % len(callers)]
            begun, worked = time.perf_counter(), time.thread_time()
            share, key = shares[caller.id], f"filled {turn}"
            wish, made = wish_for(desk, caller, share, key, asked, judged)
            charge_each(desk.ledger, wish.charges, wish.within, wish.before)
            seconds.append((time.perf_counter() - begun, time.thread_time() - worked))
            desk.move_mark()
            keep_answer(desk, made[-1], text)
    finally:
        desk.close()
    return seconds


def grow(folder, port, tokens, count):
    """Fill a ledger, and see what a charge and a start take then."""
    file = folder / "hushed.toml"
    file.write_text(file.read_text().replace("answer_grid = 1.0", "answer_grid = 0.0"))
    seconds = fill(folder, tokens, count)
    size = file.with_name("hushed.db").stat().st_size
    print(f"{len(seconds)} requests, ledger of {size:,} bytes")
    part, grown = min(100, len(seconds) // 2), {}
    for what, taken in zip(("clock", "processor"), zip(*seconds, strict=True), strict=True):
        first, last = (high(each, 0.95) for each in (taken[:part], taken[-part:]))
        grown[what] = last / first
        print(
            f"a charge, {what:16}95th of the first {part}: {1e3 * first:.1f} ms, of the last: "
            f"{1e3 * last:.1f} ms, which is {last / first:.2f} times as much"
        )
    process, ready = start(folder, port)
    try:
        one = Analyst(port, tokens[0], "afterwards")
        for turn in range(min(20, count)):
            one.release(turn, "told 202")
        print(f"restarted, ready in       {ready:8.1f} s, {resident(process.pid):.0f} MB")
        print(f"charged then, median      {1e3 * statistics.median(one.seconds['charge']):8.0f} ms")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    charge = grown["processor"]  # by the clock it tells of others, too
    return {"a charge, last hundred": charge, "ready again": ready, "faults": one.faults}


def main(*, quick: bool, seconds: int, rate: float, requests: int, check: bool = False) -> None:
    """Ask for minutes, and fill a ledger; each on a server of its own."""
    seconds, requests = (2, 20) if quick else (seconds, requests)
    print(f"{os.cpu_count()} cores, load of others {os.getloadavg()[0]:.1f}, SQLite")
    faults, figures = 0, {}
    for work, told in ((hold_out, (rate, seconds)), (grow, (requests,))):
        if not told[-1]:  # nothing of this
            continue
        with tempfile.TemporaryDirectory() as name:
            folder, port, tokens = make_folder(Path(name), 2 if quick else 200)
            found = work(folder, port, tokens, *told)
            faults += found["faults"]
            figures |= found
    print(f"faults                    {faults:8d}")
    if check:
        require(BARS, figures | {"faults": faults})
