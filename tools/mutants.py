"""Mutants: small faults put into a copy of the code, one at a time; does a test see each of them?

Run by ``make mutants``. A seeded sample is drawn over the areas below, evenly over areas and kinds
of change. Each mutant is put into a copy of the checkout, and the tests that concern its area run
there, first the quick ones, then for a survivor the slow ones, too. A test that fails, or does not
end in time, has seen it. What no test saw is listed with file, line and difference; docs/mutants.md
says of each what came of it.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

ROOT = Path(__file__).resolve().parent.parent
QUICK = ["-m", "not slow and not spark and not engines"]
SLOW = ["-m", "not spark"]
REPORT = ROOT / "build" / "mutants.md"


@dataclass(frozen=True, kw_only=True)
class Area:
    """Files that are changed, the tests that concern them, and those that only a survivor meets."""

    files: str
    near: tuple[str, ...]
    far: tuple[str, ...] = ()


AREAS = {
    "noise": Area(
        files="src/hushed/noise/*.py",
        near=(
            "tests/noise/test_*.py",
            "tests/inside/noise/test_*.py",
            "tests/tables/test_noise.py",
        ),
        far=("tests/statistical/test_noise_laws.py", "tests/seams/test_decimals.py"),
    ),
    "sensitivity": Area(
        files="src/hushed/sensitivity/*.py",
        near=(
            "tests/sensitivity/test_sensitivity.py",
            "tests/sensitivity/test_ranks.py",
            "tests/auditing/test_sensitivity.py",
            "tests/seams/test_declarations.py",
            "tests/seams/test_what_was_sampled_only.py",
        ),
        far=(
            "tests/releasing/test_certificate.py",
            "tests/seams/test_canary.py",
            "tests/seams/test_same_for_any_workers.py",
        ),
    ),
    "mechanisms": Area(
        files="src/hushed/mechanisms/*.py",
        near=("tests/mechanisms/test_*.py",),
        far=("tests/seams/test_discreteness.py", "tests/releasing/test_release.py"),
    ),
    "ledger": Area(
        files="src/hushed/ledger/*.py",
        near=("tests/ledger/test_ledger.py", "tests/ledger/test_extremes.py",
              "tests/accounting/test_filters.py",
              "tests/seams/test_laws_of_charges.py", "tests/property/test_ledger_model.py"),
        far=("tests/seams/test_ledger_file.py", "tests/cli/test_ledgers.py"),
    ),
    "accounting": Area(
        files="src/hushed/accounting/*.py",
        near=("tests/accounting/test_filters.py", "tests/accounting/test_compose.py"),
        far=("tests/seams/test_extremes_of_accounting.py", "tests/ledger/test_extremes.py"),
    ),
    "privacy_loss": Area(
        files="src/hushed/privacy_loss/*.py",
        near=("tests/privacy_loss/test_extremes.py", "tests/privacy_loss/test_profile.py",
              "tests/privacy_loss/test_privacy_loss.py",
              "tests/property/test_privacy_loss_properties.py"),
        far=("tests/mechanisms/test_gaussian.py", "tests/accounting/test_compose.py"),
    ),
    "gate": Area(
        files="src/hushed/_functions/_gate.py",
        near=("tests/inside/functions/test_functions.py", "tests/seams/test_gate_*.py"),
        far=("tests/releasing/test_release.py",),
    ),
}  # fmt: skip
# Asks a server, which not every machine has; its tests are skipped there, and would see nothing.
LEFT_ALONE = {"src/hushed/ledger/_postgres.py"}


class Place(Protocol):
    """One thing that can be changed in a file."""

    file: str
    line: int
    kind: str

    def mutated(self, source: str) -> str | None: ...


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A fault, with the text that has it."""

    area: str
    file: str
    line: int
    kind: str
    before: str
    after: str

    @property
    def difference(self) -> str:
        sides = self.before.splitlines(keepends=True), self.after.splitlines(keepends=True)
        return "".join(list(difflib.unified_diff(*sides, n=1))[2:])


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a mutant: by what it was seen, or that it was not."""

    mutant: Mutant
    seen_by: str
    seconds: float

    def line(self) -> str:
        one = self.mutant
        told = f"killed by {self.seen_by}" if self.seen_by else "SURVIVED"
        return f"{one.area:13}{one.file}:{one.line} ({one.kind}): {told}, {self.seconds:.0f} s"


def draw_sample(
    places: Sequence[Place], sources: dict[str, str], area: str, count: int, rng: random.Random
) -> list[Mutant]:
    """Draw mutants evenly over the kinds of change, none twice; fewer where there are no more."""
    by_kind: dict[str, list[Place]] = defaultdict(list)
    for place in places:
        by_kind[place.kind].append(place)
    kinds = sorted(by_kind)
    for kind in kinds:
        rng.shuffle(by_kind[kind])
    rng.shuffle(kinds)
    found: list[Mutant] = []
    while kinds and len(found) < count:
        kind = kinds.pop(0)
        place = by_kind[kind].pop()
        if by_kind[kind]:
            kinds.append(kind)
        text = place.mutated(sources[place.file])
        if text is not None:
            found.append(
                Mutant(area=area, file=place.file, line=place.line, kind=kind,
                       before=sources[place.file], after=text)
            )  # fmt: skip
    return found


@contextlib.contextmanager
def copied(root: Path) -> Iterator[Path]:
    """Give a copy of a checkout, with what git does not track yet; it is removed afterwards."""
    asked = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    told = subprocess.run(asked, cwd=root, capture_output=True, text=True, check=True).stdout
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder) / root.name
        for name in filter(None, told.split("\0")):
            if (root / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, copy / name)
        yield copy


def run_tests(
    copy: Path, python: str, options: Sequence[str], patterns: Sequence[str], limit: float
) -> str:
    """Run tests in the copy up to the first that fails; name it, or the time, or nothing.

    No compiled file is written: one of a mutant could outlive it.
    """
    files = [str(p.relative_to(copy)) for each in patterns for p in sorted(copy.glob(each))]
    command = [python, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *options]
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryFile("w+") as told:
        running = subprocess.Popen(
            [*command, *dict.fromkeys(files)], cwd=copy, env=environment, stdout=told,
            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            code = running.wait(limit)
        except subprocess.TimeoutExpired:
            return f"the limit of {limit:.0f} s"
        finally:
            # Workers that a test started belong to the same group, and end with it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            running.wait()
        if code == 0:
            return ""
        told.seek(0)
        lines = told.read().splitlines()
    failed = [x.split(" ")[1] for x in lines if x.startswith(("FAILED ", "ERROR "))]
    return failed[0] if failed else f"pytest's code {code}: {(lines or ['nothing said'])[-1]}"


def measure_clean(
    copy: Path, python: str, options: Sequence[str], patterns: Sequence[str], limit: float
) -> float:
    """Run tests without any mutant, which they must pass, and give the time that one gets."""
    subprocess.run([python, "-m", "compileall", "-q", copy / "src"], check=True)
    start = time.monotonic()
    broken = run_tests(copy, python, options, patterns, limit)
    if broken:
        sys.exit(f"The tests fail without a mutant: {broken}")
    return min(limit, 30 + 5 * (time.monotonic() - start))


def judge(sample: Sequence[Mutant], copy: Path, python: str, limit: float) -> Iterator[Outcome]:
    """Put mutants into the copy one at a time, run what concerns them, and take them out."""
    area = AREAS[sample[0].area]
    limits: dict[str, float] = {}
    for mutant in sample:
        start, seen_by, file = time.monotonic(), "", copy / mutant.file
        for name, options, patterns in (("near", QUICK, area.near), ("far", SLOW, area.far)):
            if seen_by or not patterns:
                continue
            if name not in limits:
                limits[name] = measure_clean(copy, python, options, patterns, limit)
            for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
                compiled.unlink()
            file.write_text(mutant.after)
            try:
                seen_by = run_tests(copy, python, options, patterns, limits[name])
            finally:
                file.write_text(mutant.before)
        yield Outcome(mutant=mutant, seen_by=seen_by, seconds=time.monotonic() - start)


def report(outcomes: Sequence[Outcome], seed: int) -> str:
    """What no test saw, each with its difference, below a count by area."""
    lines = [f"Seed {seed}.", "", "| area | mutants | killed | survived |", "|---|--:|--:|--:|"]
    for area in dict.fromkeys(each.mutant.area for each in outcomes):
        here = [each for each in outcomes if each.mutant.area == area]
        killed = sum(bool(each.seen_by) for each in here)
        lines.append(f"| {area} | {len(here)} | {killed} | {len(here) - killed} |")
    for each in (each for each in outcomes if not each.seen_by):
        where = f"{each.mutant.file}:{each.mutant.line}"
        lines += ["", f"{where} ({each.mutant.kind})", "", "```diff"]
        lines.append(each.mutant.difference + "```")
    return "\n".join(lines) + "\n"


def all_places(root: Path, pattern: str, only: str) -> tuple[list[Place], dict[str, str]]:
    """Places of the files of an area, and the text of each file."""
    from mutations import places

    found: list[Place] = []
    sources: dict[str, str] = {}
    for path in sorted(root.glob(pattern)):
        name = str(path.relative_to(root))
        if name not in LEFT_ALONE and only in name:
            sources[name] = path.read_text()
            found += places(name, sources[name])
    return found, sources


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="mutants", description=__doc__)
    made.add_argument("areas", nargs="*", metavar="AREA", help=", ".join(AREAS))
    made.add_argument("--seed", type=int, default=0, help="draws the sample (0)")
    made.add_argument("--count", type=int, default=6, help="mutants an area (6)")
    made.add_argument("--file", default="", help="only files with this in their path")
    made.add_argument("--line", type=int, help="only this line")
    made.add_argument("--limit", type=float, default=600, help="seconds of one run of tests (600)")
    made.add_argument("--python", default=sys.executable, help="interpreter of the tests")
    made.add_argument("--list", action="store_true", help="list the sample and run nothing")
    return made


def main(words: Sequence[str] | None = None) -> int:
    """Draw, judge, report. Code 1 says that a mutant survived."""
    asked = parser().parse_args(words)
    unknown = set(asked.areas) - set(AREAS)
    if unknown:
        sys.exit(f"There is no area {min(unknown)!r}; there are {', '.join(AREAS)}.")
    outcomes: list[Outcome] = []
    # Asked to end, it takes the tests and the copy with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with copied(ROOT) as copy:
        for area in asked.areas or AREAS:
            found, sources = all_places(copy, AREAS[area].files, asked.file)
            chosen = [p for p in found if asked.line in (None, p.line)]
            rng = random.Random(f"{asked.seed} {area}")
            sample = draw_sample(chosen, sources, area, asked.count, rng)
            print(f"{area}: {len(sample)} of {len(chosen)} possible changes", flush=True)
            if asked.list or not sample:
                for each in sample:
                    print(f"{each.file}:{each.line} ({each.kind})\n{each.difference}")
                continue
            for outcome in judge(sample, copy, asked.python, asked.limit):
                outcomes.append(outcome)
                print(outcome.line(), flush=True)
                if not outcome.seen_by:
                    print(outcome.mutant.difference, flush=True)
    if outcomes:
        REPORT.parent.mkdir(exist_ok=True)
        REPORT.write_text(report(outcomes, asked.seed))
        print(report(outcomes, asked.seed))
    return 1 if any(not each.seen_by for each in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
