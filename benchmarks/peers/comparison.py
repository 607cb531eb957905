"""Compare with other libraries: ``python -m benchmarks peers [--quick] [--page FILE]``.

The peers live in an environment of their own, ``.venv-peers``, made from
``requirements/peers.txt`` one line at a time. Every library runs in a process of its own. One that
cannot be installed, imported or run is reported in the table, with what it said, and stops nothing.

Predicted before the first run: vectors of doubles 100 to 300 times OpenDP and 30 times diffprivlib;
one double 5 times OpenDP and as fast as diffprivlib; accounting 2 to 10 times dp-accounting at the
same tightness, 6 % tighter than OpenDP's Gaussian composition and 8 % than its Laplace one; a whole
release slower than both (checks and a certificate), at the same error.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.peers.cases import CASES
from benchmarks.peers.table import page_with, report

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".venv-peers"
RESULTS = ROOT / "benchmarks" / "results"
OWN = ("hushed", "numpy")
PEERS = ("opendp", "dp_accounting", "autodp", "diffprivlib")
LIMIT = 600


@dataclass
class Outcome:
    """What came of one library: its answer, or why there is none."""

    name: str
    version: str = ""
    cases: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed: str = ""


def peers_python(environment: Path = ENVIRONMENT) -> Path:
    """Path of the interpreter that the peers run in."""
    return environment / "bin" / "python"


def install(environment: Path = ENVIRONMENT) -> list[str]:
    """Make the environment if it is not there, and give what could not be installed."""
    wanted = ROOT / "requirements" / "peers.txt"
    stamp = environment / ".installed"
    if stamp.is_file() and stamp.read_text() == wanted.read_text():
        return []
    python = peers_python(environment)
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    failed = []
    for line in wanted.read_text().splitlines():
        packages = line.partition("#")[0].split()
        if not packages:
            continue
        print(f"installing {' '.join(packages)}", file=sys.stderr)
        command = [str(python), "-m", "pip", "install", "--quiet", "numpy", *packages]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            failed.append(packages[0])
    if not failed:
        stamp.write_text(wanted.read_text())
    return failed


def last_line(text: str) -> str:
    """Last line of what a process said, shortened and without folders."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    words = (lines[-1] if lines else "no message").split()
    return " ".join("(...)" if "/" in w and len(w) > 20 else w for w in words)[:160]


def asked(name: str, python: Path, options: list[str]) -> Outcome:
    """Run one library's cases in a process of its own."""
    path = os.pathsep.join(p for p in (str(ROOT / "src"), os.environ.get("PYTHONPATH", "")) if p)
    environment = dict(os.environ)
    environment.pop("PYTHONPATH", None)
    if python == Path(sys.executable):
        environment["PYTHONPATH"] = path
    try:
        done = subprocess.run(
            [str(python), "-m", f"benchmarks.peers.with_{name}", *options],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except FileNotFoundError:
        return Outcome(name, failed="its environment could not be made")
    except subprocess.TimeoutExpired:
        return Outcome(name, failed=f"no answer within {LIMIT} s")
    if done.returncode:
        return Outcome(name, failed=last_line(done.stderr))
    try:
        found = json.loads(done.stdout.splitlines()[-1])
        return Outcome(found["name"], found["version"], found["cases"])
    except (ValueError, IndexError, KeyError, TypeError):
        return Outcome(name, failed=f"not an answer: {last_line(done.stdout)}")


def machine() -> str:
    """Name processor, cores, system and Python; nothing that tells one machine from another."""
    model = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.is_file():
        named = [x for x in information.read_text().splitlines() if x.startswith("model name")]
        model = named[0].partition(":")[2].strip() if named else model
    return (
        f"{model}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}, {date.today().isoformat()}"
    )


def compare(options: list[str], *, peers: tuple[str, ...] = PEERS) -> list[Outcome]:
    """Ask every library, our own first."""
    found = []
    for name in (*OWN, *peers):
        print(f"asking {name}", file=sys.stderr)
        python = Path(sys.executable) if name in OWN else peers_python()
        found.append(asked(name, python, options))
    return found


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "cases",
        nargs="*",
        choices=[[], *CASES],
        metavar="CASE",
        help=f"{', '.join(CASES)}; all by default",
    )
    parser.add_argument("--page", type=Path, help="also write the table into this page")


def main(*, quick: bool, cases: list[str], page: Path | None) -> None:
    """Install, ask, write."""
    missing = install()
    outcomes = compare([*cases, *(["--quick"] if quick else [])])
    text = report(outcomes, machine(), missing)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "peers.md").write_text(text)
    (RESULTS / "peers.json").write_text(json.dumps([vars(o) for o in outcomes], indent=1))
    print(text)
    if page:
        page.write_text(page_with(page.read_text(), text))
    if outcomes[0].failed:
        sys.exit(outcomes[0].failed)
