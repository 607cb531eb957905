"""How a command ended can be told from its exit code, and from the kind of error in its JSON."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.commands import ended

import hushed
from hushed.cli import COMMANDS, exit_codes, load

CANARY = "31337.125"
SOURCE = str(Path(hushed.__file__).parent.parent)
MAIN = "from hushed.cli import main; main()"
FULL = Path("/dev/full")

FUNCTIONS = """
import asyncio
import ctypes
import os
import sys
import numpy as np
def mean(rows): return rows.mean()
def other(rows): return 2 * rows.mean()
def breaks(rows): raise ValueError("31337.125")
def leaves(rows): sys.exit(0)
def vanishes(rows): os._exit(0)
def vanishes_in_c(rows, *rest, **named): ctypes.CDLL(None).exit(0)
def slow(rows):
    import pathlib, time
    pathlib.Path("begun").touch()
    time.sleep(60)
    return rows.mean()
def flat(row, points): return [0.0] * len(points)
def flat_vanishes(row, points): os._exit(0)
def flat_vanishes_once(row, points): return os._exit(0) if np.any(row == 0.2) else 0 * points
def enough(rows, rng, size): return np.round(np.sum(rows) + rng.laplace(scale=1, size=size))
def too_little(rows, rng, size): return np.round(np.sum(rows) + rng.laplace(scale=0.1, size=size))
def fails(rows, rng, size): raise ValueError("31337.125")
def ends(rows, rng, size): sys.exit(0)
def kills(rows, rng, size): os._exit(1)
def kills_late(rows, rng, size):
    if size > 1000: os._exit(1)
    return enough(rows, rng, size)
def cancelled(rows, rng, size): raise asyncio.CancelledError("31337.125")
"""
SAMPLED = ("--population", "uniform:0,1", "--gamma", "0.3")
RELEASE = ("release", "rows.csv", "f.py:mean", *SAMPLED, "--epsilon", "1", "--header")
MEASURE = ("sensitivity", "f.py:slow", *SAMPLED, "--rows", "5")
RESAMPLED = ("--promise", "table")
AUDIT = ("--claim-epsilon", "1", "--batch", "--samples", "4000", "--pairs", "extremes")
ENDS = ("--low", "0", "--high", "1")
ESTIMATE = ("--epsilon", "1", "--batch", "--samples", "1000", "--pairs", "extremes", *ENDS)
QUERY = ("query", "rows.csv", "--header", "x", "--count", "--epsilon", "1")
COMPARE = (
    *("compare", "median", "--population", "uniform:0,1", "--rows", "9", *ENDS),
    *("--epsilon", "1", "--trials", "10"),
)
STATISTIC = ("statistic", "median", "rows.csv", "--header", *ENDS, "--epsilon", "1")
BLOCKS = (
    *("blocks", "rows.csv", "f.py:mean", "--header", *ENDS),
    *("--epsilon", "9", "--beta", "0.3"),
)
POSTERIOR = (
    "posterior",
    "rows.csv",
    "f.py:flat",
    "--header",
    "--grid",
    "0:1:3",
    "--clip",
    "1",
    "--epsilon",
    "9",
)
TEST = ("test-sensitivity", "f.py:mean", "--population", "uniform:0,1", "--rows", "5")
FIND_BOUND = ("find-bound", "rows.csv", "--header", "--epsilon", "1")
BUDGET = ("sqlite:///b.db", "clinic")
CHECK = (
    "check-population",
    "rows.csv",
    "--epsilon",
    "1000000",
    "--header",
    "--tables",
    "19",
    "--population",
)
MOVE = (
    *("check-movement", "rows.csv", "f.py:mean", "--header", "--rows", "2", "--pairs", "40"),
    *("--symmetric", "--epsilon", "1000", "--population"),
)
VERIFY = ("verify", "c.json")
COST = ("cost", "--error", "2", "--beta", "0.05", "--per-person", "5500", "--people", "100")

# Command, exit code, and the kind of its error; None where it is an answer.
ENDINGS = {
    "certify": [
        (("certify", "a.json"), 0, None),
        (("certify", "rows.csv"), 2, "bad-use"),
    ],
    "study": [
        (("study", "s.json"), 0, None),
        (("study", "rows.csv"), 2, "bad-use"),
    ],
    "report": [
        (("report", BUDGET[0], "paid"), 0, None),
        (("report", BUDGET[0], "nobody"), 2, "bad-use"),
    ],
    "keys": [
        (("keys", "new", "k"), 0, None),
        (("keys", "show", "rows.csv"), 2, "bad-use"),
    ],
    "runs": [
        (("runs", "list", "kept"), 0, None),
        (("runs", "remove", "kept", "--all"), 0, None),
        (("runs", "remove", "kept"), 2, "bad-use"),
        (("runs", "remove", "kept", "0123456789"), 2, "bad-use"),
        (("runs", "list", "nothing://kept"), 2, "bad-use"),
    ],
    "sensitivity": [
        (("sensitivity", "f.py:mean", *SAMPLED, "--rows", "5"), 0, None),
        (("sensitivity", "f.py:breaks", *SAMPLED, "--rows", "5"), 1, "refused"),
        (("sensitivity", "f.py:leaves", *SAMPLED, "--rows", "5"), 1, "refused"),
        (("sensitivity", "f.py:vanishes", *SAMPLED, "--rows", "5"), 1, "refused"),
        (("sensitivity", "f.py:mean", *SAMPLED, "--rows", "0"), 2, "bad-use"),
    ],
    "release": [
        (RELEASE, 0, None),
        (
            (
                "release",
                "rows.csv",
                "f.py:mean",
                "--population",
                "rows.csv",
                *RELEASE[5:],
                *RESAMPLED,
            ),
            1,
            "refused",
        ),
        ((*RELEASE, "--mechanism", "exponential", "--out", "no/c.json"), 2, "bad-use"),
        (("release", "rows.csv", "f.py:nobody", *RELEASE[3:]), 2, "bad-use"),
        (("release", "rows.csv", "f.py:vanishes", *RELEASE[3:]), 1, "refused"),
    ],
    "verify": [
        ((*VERIFY, "f.py:mean"), 0, None),
        ((*VERIFY, "f.py:other"), 1, None),
        ((*VERIFY, "f.py:breaks"), 2, "refused"),
        ((*VERIFY, "f.py:vanishes"), 2, "refused"),
        (("verify", "changed.json"), 1, "does-not-hold"),
        (("verify", "c.json", "vanishes.py:f"), 2, "bad-use"),
        (("verify", "f.py", "f.py:mean"), 2, "bad-use"),
    ],
    "risk": [
        (("risk", "--epsilon0", "2", "--epsilon", "1.9"), 0, None),
        (("risk", "--epsilon0", "1", "--epsilon", "2"), 2, "bad-use"),
    ],
    "cost": [
        ((*COST, "--budget", "300000"), 0, None),
        ((*COST, "--budget", "inf"), 0, None),
        ((*COST, "--budget", "40000"), 1, None),
        ((*COST, "--budget", "-1"), 2, "bad-use"),
    ],
    "compose": [
        (("compose", "laplace:0.1x20"), 0, None),
        (("compose", "laplace:-1"), 2, "bad-use"),
    ],
    "estimate": [
        (("estimate", "f.py:enough", *ESTIMATE), 0, None),
        (("estimate", "f.py:fails", *ESTIMATE), 1, "refused"),
        (("estimate", "f.py:kills", *ESTIMATE), 1, "refused"),
        (("estimate", "f.py:enough", *ESTIMATE[:4], "0", *ESTIMATE[5:]), 2, "bad-use"),
    ],
    "audit": [
        (("audit", "f.py:enough", *AUDIT, *ENDS), 0, None),
        (("audit", "f.py:too_little", *AUDIT, *ENDS), 1, None),
        (("audit", "f.py:fails", *AUDIT, *ENDS), 2, "refused"),
        (("audit", "f.py:ends", *AUDIT, *ENDS), 2, "refused"),
        (("audit", "f.py:kills", *AUDIT, *ENDS), 2, "refused"),
        (("audit", "f.py:kills_late", *AUDIT, *ENDS, "--workers", "1"), 2, "refused"),
        (("audit", "f.py:cancelled", *AUDIT, *ENDS), 2, "refused"),
        (("audit", "kills.py:f", *AUDIT, *ENDS), 2, "bad-use"),
        (("audit", "f.py:enough", *AUDIT), 2, "bad-use"),
        (("audit", "f.py:too_little", *AUDIT, *ENDS, "--html", "no/page.html"), 2, "bad-use"),
    ],
    "compare": [
        (COMPARE, 0, None),
        (("compare", "f.py:breaks", *COMPARE[2:]), 1, "refused"),
        (("compare", "f.py:vanishes", *COMPARE[2:]), 1, "refused"),
        (("compare", "nobody", *COMPARE[2:]), 2, "bad-use"),
    ],
    "statistic": [
        (STATISTIC, 0, None),
        (
            (*STATISTIC, "--private-count", "--ledger", BUDGET[0], "--budget", "spent"),
            1,
            "refused",
        ),
        ((*STATISTIC, "--column", "nobody"), 2, "bad-use"),
        ((*STATISTIC[:-1], "-1"), 2, "bad-use"),
    ],
    "blocks": [
        (BLOCKS, 0, None),
        ((*BLOCKS[:2], "f.py:vanishes", *BLOCKS[3:]), 0, None),  # a failure is told to nobody
        ((*BLOCKS, "--ledger", BUDGET[0], "--budget", "clinic"), 1, "refused"),
        ((*BLOCKS[:2], "f.py:leaves", *BLOCKS[3:], "--simulate", "uniform:0,1"), 1, "refused"),
        ((*BLOCKS, "--blocks", "1"), 2, "bad-use"),
        ((*BLOCKS, "--out", "no/c.json"), 2, "bad-use"),
    ],
    "posterior": [
        (POSTERIOR, 0, None),
        # On every row: that is seen on rows that are made up. On some, it is told to nobody.
        ((*POSTERIOR[:2], "f.py:flat_vanishes", *POSTERIOR[3:]), 1, "refused"),
        ((*POSTERIOR[:2], "f.py:flat_vanishes_once", *POSTERIOR[3:]), 0, None),
        ((*POSTERIOR, "--ledger", BUDGET[0], "--budget", "clinic"), 1, "refused"),
        ((*POSTERIOR[:4], "--grid", "0:1", *POSTERIOR[6:]), 2, "bad-use"),
        ((*POSTERIOR, "--out", "no/c.json"), 2, "bad-use"),
    ],
    "test-sensitivity": [
        ((*TEST, "--bound", "0.25", "--pairs", "20"), 0, None),
        ((*TEST, "--bound", "0.01", "--pairs", "20"), 1, None),
        ((*TEST[:1], "f.py:breaks", *TEST[2:], "--bound", "1", "--pairs", "20"), 2, "refused"),
        ((*TEST[:1], "f.py:vanishes", *TEST[2:], "--bound", "1", "--pairs", "20"), 2, "refused"),
        ((*TEST, "--bound", "-1"), 2, "bad-use"),
    ],
    "find-bound": [
        (FIND_BOUND, 0, None),
        (
            (*FIND_BOUND, "--private-count", "--ledger", BUDGET[0], "--budget", "spent"),
            1,
            "refused",
        ),
        ((*FIND_BOUND, "--user", "nobody"), 2, "bad-use"),
        ((*FIND_BOUND, "--growth", "1"), 2, "bad-use"),
    ],
    "check-population": [
        ((*CHECK, "uniform:0.1,0.3"), 0, None),
        ((*CHECK, "uniform:5,6"), 1, None),
        ((*CHECK, "uniform:0.1,0.3", "--ledger", BUDGET[0], "--budget", "clinic"), 2, "refused"),
        ((*CHECK[:6], "5", CHECK[-1], "uniform:0,1"), 2, "bad-use"),
    ],
    "check-movement": [
        ((*MOVE, "uniform:0.1,0.3"), 0, None),
        ((*MOVE, "normal:0,0.00001", "--outside", "allow"), 1, None),
        ((*MOVE, "uniform:0.1,0.3", "--ledger", BUDGET[0], "--budget", "clinic"), 2, "refused"),
        ((*MOVE[:2], "f.py:vanishes", *MOVE[3:], "uniform:0.1,0.3"), 2, "refused"),
        ((*MOVE[:7], "0", *MOVE[8:], "uniform:0.1,0.3"), 2, "bad-use"),
    ],
    "query": [
        (QUERY, 0, None),
        ((*QUERY, "--ledger", BUDGET[0], "--budget", "spent"), 1, "refused"),
        ((*QUERY, "--where", "nobody > 1"), 2, "bad-use"),
    ],
    "serve": [
        (("serve", "check", "--folder", "team"), 0, None),
        (("serve", "check", "--folder", "nowhere"), 2, "bad-use"),
        (("serve", "init", "team"), 2, "bad-use"),
    ],
    "ledger": [
        (("ledger", "show", *BUDGET), 0, None),
        (("ledger", "charge", *BUDGET, "--epsilon", "9"), 1, "refused"),
        (("ledger", "show", "sqlite:///f.py"), 1, "refused"),
        (("ledger", "open", *BUDGET, "--epsilon", "1"), 2, "bad-use"),
    ],
}
CASES = [
    pytest.param(*case, id=f"{name}-{number}")
    for name, cases in ENDINGS.items()
    for number, case in enumerate(cases)
]
COST_ENDS = [case for case in ENDINGS["cost"] if "inf" not in case[0]]
FINE = {name: cases[0][0] for name, cases in ENDINGS.items()}


def ran(*words, program=MAIN, cwd, **options):
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, words)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": SOURCE} | options.pop("env", {}),
        encoding="utf-8",
        timeout=300,
        check=False,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options,
    )


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ends")
    (folder / "f.py").write_text(FUNCTIONS)
    (folder / "vanishes.py").write_text("import os\nos._exit(0)\n", encoding="utf-8")
    (folder / "kills.py").write_text("import os\nos._exit(1)\n", encoding="utf-8")
    (folder / "rows.csv").write_text("x\n" + "\n".join(f"0.{i}" for i in range(11, 31)) + "\n")
    assert ended(*RELEASE, "--out", "c.json", cwd=folder).returncode == 0
    known = json.loads((folder / "c.json").read_text())
    known["guarantee"]["epsilon"] /= 2
    (folder / "changed.json").write_text(json.dumps(known))
    opening = ("ledger", "open", BUDGET[0])
    add_remove = ("--neighbours", "add-remove")
    assert ended(*opening, "clinic", "--epsilon", "1", cwd=folder).returncode == 0
    assert ended(*opening, "spent", "--epsilon", "0.1", *add_remove, cwd=folder).returncode == 0
    assert ended(*opening, "open", "--epsilon", "9", *add_remove, cwd=folder).returncode == 0
    assert ended(*opening, "paid", "--epsilon", "9", *add_remove, cwd=folder).returncode == 0
    paid = ("--ledger", BUDGET[0], "--budget", "paid", "--out", "a.json")
    assert ended(*QUERY, *paid, cwd=folder).returncode == 0
    assert ended("serve", "init", "team", cwd=folder).returncode == 0
    assert ended("certify", "a.json", "--out", "s.json", cwd=folder).returncode == 0
    return folder


@pytest.fixture
def folder(prepared, tmp_path):
    shutil.copytree(prepared, tmp_path / "here")
    return tmp_path / "here"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="C takes nothing back there")
def test_exit_of_c_is_no_verdict(folder):
    """A function that ends the process in C ends it with words, and the code of no verdict."""
    ends = "f.py:vanishes_in_c"
    done = ran(*VERIFY, ends, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "by exit() of C" in done.stderr
    done = ran("audit", ends, *AUDIT, *ENDS, "--json", cwd=folder)
    assert (done.returncode, json.loads(done.stdout)["error"]["kind"]) == (2, "system")


def test_every_command_is_here():
    """A new command comes with its endings."""
    assert {*ENDINGS, "workbench"} == set(COMMANDS)


def test_the_workbench_ends_before_it_serves(tmp_path):
    """It prints no JSON, and goes on until it is stopped, where nothing is wrong."""
    for words, code, told in (
        (("--host", "0.0.0.0"), 2, "127.0.0.1"),
        (("--port", "70000"), 2, "port"),
        (("nobody",), 2, "nobody"),
    ):
        done = ended("workbench", "--no-browser", *words, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        assert told in done.stderr.lower()


@pytest.mark.slow_cases("blocks-1")
@pytest.mark.slow_cases(
    "blocks-0",
    "blocks-2",
    "blocks-3",
    "certify-0",
    "certify-1",
    "cost-2",
    "process-0",
    "process-1",
    "process-2",
)
@pytest.mark.parametrize(
    ("words", "code", "kind", "run"),
    [pytest.param(*case.values, ended, id=case.id) for case in CASES]
    + [pytest.param(*case, ran, id=f"process-{case[1]}") for case in COST_ENDS],
)
def test_endings(folder, words, code, kind, run):
    """The exit code is as documented; an error says its kind, an answer has none."""
    done = run(*words, "--json", cwd=folder)
    assert done.returncode == code, done.stderr
    told = json.loads(done.stdout)
    assert told.get("error", {}).get("kind") == kind
    assert "Traceback" not in done.stderr


LONG = "9" * 400


@pytest.mark.slow_cases("words3---pairs must be")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((*RELEASE[:1], LONG, *RELEASE[2:]), "name too long"),
        ((*RELEASE[:3], "--population", LONG, *RELEASE[5:]), "name too long"),
        ((*STATISTIC[:2], LONG, *STATISTIC[3:]), "name too long"),
        (("sensitivity", "f.py:mean", *SAMPLED, "--rows", "5", "--pairs", LONG), "--pairs must be"),
        (("estimate", "f.py:enough", *ESTIMATE, "--rows", LONG), "--rows must be"),
        (("estimate", "f.py:enough", *ESTIMATE, "--rows", str(10**17)), "not enough memory"),
        (("test-sensitivity", "f.py:mean", *TEST[2:4], "--rows", LONG, "--bound", "1"), "--rows"),
        ((*QUERY, "--key", ""), "there is no ledger"),
    ],
)
def test_what_is_too_long_is_told_as_it_is(folder, words, told):
    """A name or number that is too long is bad use, and no failure to write the answer."""
    done = ended(*words, "--json", cwd=folder)
    assert done.returncode == 2
    assert told.lower() in json.loads(done.stdout)["error"]["message"].lower()
    assert "standard output" not in done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_help_lists_the_codes(name):
    """Each command and each of a group says in its help how it may end."""
    loaded = load(name)
    for command in loaded.registered_commands:
        assert command.epilog.endswith(exit_codes(name))
    codes = re.findall(r"(\d+) \w", exit_codes(name))
    assert codes == ["0", "1", "2", "3", "130"]
    for _, code, _ in ENDINGS.get(name, ()):
        assert str(code) in codes


UNFORESEEN = [(FINE[name], "RuntimeError") for name in FINE]
UNFORESEEN += [(FINE["risk"], "RecursionError"), (FINE["risk"], "SystemExit")]
ALL_FAIL = """
import builtins, contextlib, io, json, sys
import hushed.cli._outcome as outcome
real = outcome.finish
@contextlib.contextmanager
def finish(**options):
    with real(**options) as result:
        raise getattr(builtins, kind)(canary)
        yield result
outcome.finish = finish
from hushed.cli import main
canary, cases = json.loads(sys.argv[1])
told = []
for words, kind in cases:
    out, err, code = io.StringIO(), io.StringIO(), None
    sys.argv = ["hushed", *words, "--json"]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code
    told.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(told))
"""


@pytest.mark.slow
def test_what_nobody_foresaw(folder):
    """A defect of ours, wherever it lies, ends with 3 and shows no message."""
    done = ran(json.dumps([CANARY, UNFORESEEN]), program=ALL_FAIL, cwd=folder)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [code for code, _, _ in told] == [3] * len(UNFORESEEN), told
    for _, out, err in told:
        assert "not foreseen" in err
        assert CANARY not in out + err
        assert "Traceback" not in err


@pytest.mark.slow
def test_a_failure_outside_of_any_command(folder):
    """A module of a command that cannot be loaded is a failure, not an answer."""
    program = (
        "import hushed.cli\n"
        f"def load(name): raise ImportError({CANARY!r})\n"
        f"hushed.cli.load = load\n{MAIN}"
    )
    done = ran("audit", "f.py:enough", *AUDIT, *ENDS, program=program, cwd=folder)
    assert done.returncode == 3
    assert "not foreseen" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "number"),
    [(RELEASE, signal.SIGINT), (MEASURE, signal.SIGTERM)],
)
def test_stopped(folder, words, number):
    """Ctrl-C and SIGTERM end with 130, with --json in one object."""
    words = [word.replace("mean", "slow") for word in words]
    # In the background Ctrl-C is ignored, and by what is started there, too.
    heeds = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    with subprocess.Popen(
        [sys.executable, "-c", heeds + MAIN, *words, "--workers", "1", "--json"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": SOURCE},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        until = time.monotonic() + 60
        while not (folder / "begun").exists() and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert json.loads(out)["error"]["kind"] == "stopped"


@pytest.mark.slow_cases("blocks")
@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("words", FINE.values(), ids=FINE)
def test_output_that_cannot_be_written(folder, words):
    """A full device ends every command with 2 and one line that says so."""
    done = ended(*words, cwd=folder, stdout=FULL)
    assert done.returncode == 2, done.stderr
    assert "standard output was not written: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [FINE["risk"], FINE["cost"], FINE["ledger"], FINE["compose"]])
def test_output_that_nobody_reads(folder, words):
    """A reader who has left, too: a library that draws tables would end the program with 1."""
    reader, writer = os.pipe()
    os.close(reader)
    done = ended(*words, cwd=folder, stdout=writer)
    assert done.returncode == 2, done.stderr
    assert "standard output was not written: Broken pipe" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("words", [FINE["risk"], (*FINE["risk"], "--json"), (*RELEASE, "--json")])
def test_a_process_whose_output_cannot_be_written(folder, words):
    """Python, too, says nothing more at its end: text, an object, an answer that was paid for."""
    with FULL.open("w") as full:
        done = ran(*words, cwd=folder, stdout=full)
    assert done.returncode == 2, done.stderr
    assert "standard output was not written: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("form", [("--json",), ()], ids=["json", "text"])
@pytest.mark.slow
def test_an_answer_of_a_query_that_cannot_be_written_is_kept(folder, form):
    """The line says how to read it again, and that reads it."""
    ledger = ("--ledger", "sqlite:///rows.db", "--budget", "rows")
    opened = ("ledger", "open", ledger[1], ledger[3], "--epsilon", "2", "--neighbours")
    assert ended(*opened, "add-remove", cwd=folder).returncode == 0
    done = ended(*QUERY, *ledger, *form, cwd=folder, stdout=FULL)
    assert done.returncode == 2
    words = done.stderr.partition("at no cost by: hushed ")[2].split()
    assert words == ["ledger", "answer", ledger[1], ledger[3], "1"]
    assert "count" in ended(*words, cwd=folder).stdout


@pytest.mark.slow
@pytest.mark.parametrize("form", [("--json",), ()], ids=["json", "text"])
def test_an_error_that_cannot_be_written(folder, form):
    """A reader who has left, a refusal and a full standard error change no exit code."""
    refused = ("ledger", "charge", *BUDGET, "--epsilon", "9", *form)
    if FULL.exists():
        assert ended(*refused, cwd=folder, stdout=FULL).returncode == 1
        with FULL.open("w") as full:
            assert ran(*refused, cwd=folder, stderr=full).returncode == 1
    shown = ("ledger", "show", *BUDGET, *form)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone:
        done = ran(*shown, cwd=folder, stdout=gone)
    assert done.returncode == 2
    assert "Broken pipe" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("words", [("--help",), ("audit", "--help")])
def test_help_that_cannot_be_written(folder, words):
    """What is printed outside of any command is held to the same."""
    with FULL.open("w") as full:
        done = ran(*words, cwd=folder, stdout=full)
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("form", [("--json",), ()], ids=["json", "text"])
def test_a_closed_output_is_refused_before_anything_is_paid(folder, form):
    """A command that cannot answer does not charge."""
    program = f"import sys; sys.stdout = None\n{MAIN}"
    paid = ("--ledger", BUDGET[0], "--budget", "open")
    done = ran(*QUERY, *paid, *form, program=program, cwd=folder)
    assert done.returncode == 2
    assert "standard output is closed" in done.stderr
    shown = json.loads(ended("ledger", "show", *BUDGET[:1], "open", "--json", cwd=folder).stdout)
    assert shown["budgets"][0]["entries"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_letters_that_the_terminal_has_not(folder, encoding):
    """An answer is spelt out rather than lost; ASCII is taken for a mistake, and not kept to."""
    (folder / "city.csv").write_text("city\n東京\n", encoding="utf-8")
    asked = ("query", "city.csv", "--by", "city", "--keys", "東京", "--count", "--epsilon", "5")
    paid = ("--ledger", BUDGET[0], "--budget", "open")
    done = ran(*asked, *paid, cwd=folder, env={"PYTHONIOENCODING": encoding})
    assert done.returncode == 0, done.stderr
    assert ("東京" if encoding == "ascii" else "\\u6771\\u4eac") in done.stdout


@pytest.mark.slow
def test_a_page_speaks_the_words_of_its_command(folder):
    """The page of an audit names options where its text on the terminal does."""
    (folder / "low.py").write_text(
        "import numpy as np\n"
        "def low_bits(rows, rng, size):\n"
        "    return rng.integers(1, 2**20, size) / 2**20 + rows[0] * 2.0**-45\n"
    )
    words = ("audit", "low.py:low_bits", *AUDIT, *ENDS, "--rows", "1", "--html", "page.html")
    done = ended(*words, cwd=folder)
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert done.returncode == 1, done.stderr
    for told in (done.stdout, page):
        assert "--no-bits judges the values alone" in told
        assert "bits=False" not in told


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "code"), [("enough", 0), ("too_little", 1)])
def test_a_page_does_not_change_the_verdict(folder, mechanism, code):
    """With and without a page the exit code is that of the verdict."""
    words = ("audit", f"f.py:{mechanism}", *AUDIT, *ENDS, "--html", "page.html", "--json")
    done = ended(*words, cwd=folder)
    assert done.returncode == code, done.stderr
    assert (json.loads(done.stdout)["verdict"] == "violated") == (code == 1)
    assert (folder / "page.html").exists()
