"""There is one gate: no other module calls a function on private rows."""

import ast
import re
from functools import cache
from pathlib import Path

import hushed

SOURCE = Path(hushed.__file__).parent
# Where the call is made, the gate itself, and a function of a released answer.
CALLERS = {
    "_functions/_calls.py",
    "measurements/_record.py",
    "posterior/_mechanism.py",  # a draw outside of a release
    "releasing/_find_bound.py",  # a column, which becomes a list or an array
    "sklearn/_examples.py",  # rows with labels become numbers, each row by itself
}
# Sampling calls on drawn rows, private ones where the population was made of such.
ANSWERS = {
    "_functions/_calls.py",
    "_functions/_gate.py",
    "sensitivity/_pairs.py",
    "sensitivity/_timing.py",
    "sensitivity/_updates.py",
    "sensitivity/_canary.py",
    "sensitivity/_declarations.py",
    "sensitivity/_memory.py",
    "auditing/_sensitivity.py",
    "sklearn/_routes.py",  # one fit on public rows, which tells why fits fail
    "sensitivity/_blockwise.py",  # within the function that the gate calls
    "cli/_kept.py",  # from here on: a stored answer of a ledger
    "cli/_asked.py",
    "cli/_records.py",
    "ledger/_payments.py",
    "client/_client.py",
    "server/_life.py",
    "server/_reading.py",  # a query that was prepared and paid, in the process that reads rows
    "server/_seen.py",
    "server/_worker.py",
    "statements/_budgets.py",
    "statements/_certifying.py",
    "statements/_verification.py",
    "tables/_table.py",
    "workbench/_pages/answer.py",
    "workbench/_releases.py",
    "workbench/_views/recent.py",
}
# Public rows: simulations and comparisons say so in the call itself.
OPEN = {
    "auditing/_declared_bounds.py",
    "auditing/_vacuous.py",
    "blocks/_calls.py",
    "blocks/_simulation.py",
    "comparing/_block_routes.py",
    "comparing/_question.py",
    "comparing/_vector_routes.py",
    "server/_sampled.py",  # the first sampled table, with a missing cell
}


@cache
def users(name):
    """Modules that call a function by its name."""
    texts = {path: path.read_text() for path in SOURCE.rglob("*.py")}
    return {
        path.relative_to(SOURCE).as_posix()
        for path, text in texts.items()
        if f"{name}(" in text  # parsing all would take seconds
        and any(
            name == getattr(node.func, "id", getattr(node.func, "attr", ""))
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Call)
        )
    }


def test_private_calls_are_made_in_the_gate():
    """Elsewhere, a new one must come through it."""
    assert users("call_privately") == CALLERS
    assert users("read_privately") == {"_functions/_calls.py", "_functions/_gate.py"}
    assert users("answer") <= ANSWERS | OPEN
    for module in OPEN:
        text = (SOURCE / module).read_text()
        assert len(re.findall(r"(?<!_)\banswer\(", text)) == text.count("private=False)") > 0
    # Blocks are asked by processes of their own: private ones behind the gate, public ones.
    # A pool opens them before there are rows, and lends them to the release alone.
    pool, simulation = "blocks/_pool.py", "blocks/_simulation.py"
    assert users("open_calls") == {"releasing/_blocks_release.py", simulation, pool}
    assert users("lend") == {"releasing/_blocks_release.py"}
    assert "releasing/_blocks_release.py" in users("admit_rows")


def test_nothing_is_redirected_for_the_whole_process():
    """Standard output and warnings belong to all threads.

    What worker processes run has its process to itself. While a client of
    Dask connects, its own warning of versions is held back: the handshake compares them.
    """
    for name in ("redirect_stdout", "redirect_stderr"):
        assert users(name) == set()
    for name in ("catch_warnings", "simplefilter"):
        there = {"_functions/_sent.py", "engines/_dask.py"} if name == "catch_warnings" else set()
        assert users(name) == there
