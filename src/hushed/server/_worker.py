"""Program of a process that judges questions, or reads rows for those that are paid.

It has its own connection to a table, which opens nothing else any more, and neither the ledger nor
the key of the certificates. Its server ends it when a question takes too long, and starts another
one; it ends when its server is gone, in the middle of a scan, too. Both speak JSON, so that nothing
that it sends is ever run. One process judges only or reads only: how long rows take delays no
price and no charge.
"""

from __future__ import annotations

import errno
import importlib
import json
import math
import os
import select
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hushed._ground.printing import spell_argument
from hushed.errors import (
    EngineUnavailable,
    HushedError,
    NotFeasible,
    NotFound,
    ParameterError,
)
from hushed.ledger._laws import write_law
from hushed.server._config import DUCKDB
from hushed.server._sources import Source, fingerprint
from hushed.tables import Query
from hushed.tables._plan import count_numbers
from hushed.tables._release import known_keys, plan_query

if TYPE_CHECKING:
    from hushed.guarantee import Guarantee
    from hushed.privacy_loss import PrivacyProfile
    from hushed.tables import Quote, Table
    from hushed.tables._plan import Plan
    from hushed.tables._prepared import Prepared
    from hushed.tables._query import Query as TypedQuery

READY, BEGUN = b"ready", b"begun"
PLACE = "HUSHED_PLACE"  # variable that names the folder of a process
BETA = 0.05
_GONE = ("dataset_unavailable", "interrupted")
_MOST_NUMBERS = 1_000_000  # about 100 MB and six seconds of noise
_LEAST_MEMORY = 32_000_000  # bytes of an engine
_MOST_TABLES = 20  # that one process keeps open


def main(place: str) -> None:
    """Do what comes over standard input, a socket, until it ends.

    The place is a folder of this process alone: rows that do not fit into the memory go there. Its
    server removes it, or, when the server is gone, this process.
    """
    import resource  # noqa: PLC0415  (not on all systems)

    line = Connection(os.dup(0))
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # no copy of what was asked on the disk
    tempfile.tempdir = place
    watching = threading.Thread(target=_end_with_server, args=(line.fileno(), place), daemon=True)
    watching.start()
    tables: dict[str, Table] = {}
    # The first question would wait for it, longer than for all else: nearly all tables need it.
    importlib.import_module("ibis.backends.duckdb")
    try:
        line.send_bytes(READY)
        while True:
            told = json.loads(line.recv_bytes())
            line.send_bytes(json.dumps(_serve(line, told, tables)).encode())
    except (EOFError, ConnectionError):  # the server is gone; whoever watches may be slower
        _end(place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _end_with_server(line: int, place: str) -> None:
    """End at once when the other end of the line is closed, whatever is under way."""
    watched = select.poll()
    watched.register(line, 0)  # that nobody is there any more is told without being asked for
    watched.poll()
    _end(place)


def _end(place: str) -> None:
    """Leave no row, neither on the disk nor in what a function has started: that is a group."""
    shutil.rmtree(place, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)


def _serve(line: Connection, told: dict[str, Any], tables: dict[str, Table]) -> dict[str, Any]:
    """Open the table, which is not limited, and then judge or read, which is."""
    known = json.dumps(told["source"], sort_keys=True)
    try:
        table = _find_table(tables, known, told)
    except HushedError as error:
        line.send_bytes(BEGUN)
        return tell_unavailable(error)
    if told.get("asked", {}).get("noise") == "gaussian":
        importlib.import_module("scipy.special")  # half a second: no part of what is asked
    line.send_bytes(BEGUN)
    found = _work(table, told)
    if table.connection.changed or found.get("problem") in _GONE:
        tables.pop(known, None)  # a database may be there again, and this connection is lost
    return found


def _work(table: Table, told: dict[str, Any]) -> dict[str, Any]:
    try:
        if told["do"] == "run":
            from hushed.server._reading import answer  # noqa: PLC0415

            with _limits(told["run_memory"]):
                return answer(table, told)
        with _limits(told["check_memory"], told["check_seconds"]):
            return judge(table, told)
    except Exception as error:  # its text may be of an engine
        if _lacked_memory(error):
            return {"problem": "too_much"}
        return {"error": type(error).__name__}


def _lacked_memory(error: BaseException | None) -> bool:
    """Whether something failed because memory was not granted, whatever Python made of it.

    An import ends in an ImportError then, and a thread that does not start in a RuntimeError.
    """
    while error is not None:
        if isinstance(error, MemoryError | SystemError | ImportError):
            return True
        if isinstance(error, OSError) and error.errno == errno.ENOMEM:
            return True
        if isinstance(error, RuntimeError) and "start new thread" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _find_table(tables: dict[str, Table], known: str, told: dict[str, Any]) -> Table:
    """Give the table that the server has opened; one that differs from it is opened again."""
    found = tables.get(known)
    if found is None or fingerprint(found) != told["fingerprint"]:
        source = Source(**told["source"])
        _close_file(tables, source.address)
        while len(tables) >= _MOST_TABLES:
            tables.pop(next(iter(tables)))
        found = source.open()
        # Half of the memory for what the engine sorts and groups; the rest is for what it returns.
        most = (told["run_memory"] if told["do"] == "run" else told["check_memory"]) // 2
        with found.connection.lock:
            backend = found.connection.rows.get_backend()
            # Of a function that depends on their order, one long row would move all others.
            ordered = "function" in told
            found.connection.engine.confine(backend, max(most, _LEAST_MEMORY), ordered=ordered)
        tables[known] = found
    if fingerprint(found) != told["fingerprint"]:
        raise EngineUnavailable("the file was changed")
    return found


def _close_file(tables: dict[str, Table], address: str) -> None:
    """Close what is open of a DuckDB file: it is confined, and no second table of it is set up."""
    if not address.startswith(DUCKDB):
        return
    file = Path(address.removeprefix(DUCKDB)).resolve()
    for known in [name for name, each in tables.items() if each.connection.file == file]:
        tables.pop(known).connection.rows.get_backend().disconnect()


@contextmanager
def _limits(memory: int, seconds: float = 0.0) -> Iterator[None]:
    """Have the kernel watch memory of a question and, above zero, its processor time.

    The signal of the timer, which counts all threads, ends a process that does not ask for it.
    Where a system knows no such limit, the server's own clock is left.
    """
    import resource  # noqa: PLC0415  (not on all systems)

    before = resource.getrlimit(resource.RLIMIT_AS)
    with suppress(ValueError, OSError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, before)


def judge(table: Table, told: dict[str, Any]) -> dict[str, Any]:
    """Judge a question, or price it; what the library refuses is told in its own words.

    No text of an engine is among them: `hushed.errors` has none.
    """
    try:
        if "function" in told:
            from hushed.server._sampled import judge_function  # noqa: PLC0415

            return judge_function(table, told)
        asked = told["asked"]
        query = Query.model_validate(asked["query"])
        if told["do"] == "check":
            return _check(table, query, asked, told["run_seconds"])
        return _price(table, query, asked)
    except EngineUnavailable as error:
        return tell_unavailable(error)
    except (ParameterError, NotFound, NotFeasible) as error:
        return {"problem": "bad_query", "detail": error.message}
    except HushedError:
        return {"problem": "bad_query"}


def tell_unavailable(error: Exception) -> dict[str, Any]:
    """Tell that a table cannot be asked, and why, for the log: in words of our own, or by type."""
    why = error.message if isinstance(error, EngineUnavailable) else ""
    return {"problem": "dataset_unavailable", "why": f"{type(error).__name__}: {why}".strip(": ")}


def prepare(table: Table, query: Query, asked: dict[str, Any], seconds: float) -> Prepared:
    """Do all that no row decides, for a question on its terms."""
    return table.ask(query).prepare(
        epsilon=asked["epsilon"],
        delta=asked["delta"],
        noise=asked["noise"],
        beta=BETA,
        timeout=seconds,
    )


def _check(table: Table, query: Query, asked: dict[str, Any], seconds: float) -> dict[str, Any]:
    prepared = prepare(table, query, asked, seconds)
    _require_few(table, prepared.proposal.query, prepared.proposal.plan)
    return tell_price(prepared.guarantee, prepared.loss) | {"digest": prepared.digest}


def _price(table: Table, asked: Query, terms: dict[str, Any]) -> dict[str, Any]:
    """Find a quote; for an epsilon, or for the errors that are wanted."""
    query = table.ask(asked)
    told: dict[str, Any] = {"delta": terms["delta"], "noise": terms["noise"], "beta": BETA}
    if terms["errors"] is not None:
        solved = query.quote_for(errors=terms["errors"], rows=terms["rows"], **told)
        query, found = solved.table, solved.quote
    else:
        found = query.quote(epsilon=terms["epsilon"], rows=terms["rows"], **told)
    plan = plan_query(
        query.query,
        epsilon=found.guarantee.epsilon,
        delta=terms["delta"],
        noise_name=terms["noise"],
    )
    _require_few(query, query.query, plan)
    return tell_price(plan.guarantee, plan.loss) | {"quote": _tell_quote(found)}


def _require_few(table: Table, query: TypedQuery, plan: Plan) -> None:
    """Refuse what takes much memory and time where rows are read, before it is paid."""
    found = count_numbers(plan.parts, math.prod(map(len, known_keys(table.connection, query))))
    if found > _MOST_NUMBERS:
        raise ParameterError(
            f"a question to a server reads at most {_MOST_NUMBERS} numbers (every bin, and every "
            f"ten candidates of a quantile, of every group), and this one would read {found}: use "
            "fewer keys, bins, candidates or aggregates"
        )


def tell_price(guarantee: Guarantee, loss: PrivacyProfile | None) -> dict[str, Any]:
    """Write down what a ledger charges, bit for bit."""
    law = None if loss is None else write_law(loss)
    return {"guarantee": asdict(guarantee), "law": law}


def _tell_quote(found: Quote) -> dict[str, Any]:
    promise = found.guarantee
    return {
        "epsilon": promise.epsilon,
        "delta": promise.delta,
        "neighbours": promise.neighbours,
        "unit": found.unit,
        "level": found.level,
        "threshold": found.threshold,
        "outputs": [
            {"name": each.name, "error": each.accuracy, "share": each.share}
            for each in found.outputs
        ],
        "words": found.explain(_spell),
    }


def _spell(name: str, value: object) -> str:
    """Spell what a price advises; a server takes no guess of the rows of each user."""
    return "" if name == "rows_per_user" else spell_argument(name, value)


if __name__ == "__main__":
    main(os.environ.pop(PLACE))
