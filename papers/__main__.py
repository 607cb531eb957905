"""Reproduce the figures of a paper, and say whether they agree with it: ``python -m papers``."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hushed.errors import HushedError, PlacesLeftOut
from papers.reproduction import PAPERS, Reproduction, experiments, find_all, reproduce
from papers.store import RESULTS

__all__ = ["main", "parser"]

_WORDS = ("agrees", "disagrees", "no claim")


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    made = argparse.ArgumentParser(prog="python -m papers", description=__doc__.partition(":")[0])
    made.add_argument("paper", nargs="?", help=f"{', '.join(PAPERS)}; all by default")
    made.add_argument(
        "name",
        nargs="*",
        help="a figure, by name or number, or what it is about, by the paper's number: "
        "5, figure 5, table 1, algorithm 2, theorem 15; all figures by default",
    )
    made.add_argument("--list", action="store_true", help="list what there is, and run nothing")
    made.add_argument("--quick", action="store_true", help="small settings: a minute for a paper")
    made.add_argument("--out", type=Path, default=Path("reproduced"), help="folder for the files")
    made.add_argument("--seed", type=int, default=0, help="seed of all but the release noise")
    made.add_argument("--workers", type=int, help="worker processes; they change no result")
    made.add_argument("--json", action="store_true", help="print one JSON object")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process by default.

    Returns
    -------
    int
        Exit code: 0 done, whatever the verdicts; 2 an unknown name, or something is missing or
        cannot be written; 130 stopped, and what is finished is kept.
    """
    asked = parser().parse_args(arguments)
    try:
        if asked.list:
            _list(asked.paper, " ".join(asked.name))
        else:
            with warnings.catch_warnings():  # the papers' promises are about a random place
                warnings.simplefilter("ignore", PlacesLeftOut)
                _reproduce(asked)
    except KeyboardInterrupt:
        return _fail(
            "stopped", "finished points are kept, run the same command again to go on", 130
        )
    except (HushedError, OSError) as error:
        return _fail(type(error).__name__, str(error), 2, as_json=asked.json)
    return 0


def _fail(kind: str, message: str, code: int, *, as_json: bool = False) -> int:
    print(f"{kind}: {message}", file=sys.stderr)
    if as_json:
        print(json.dumps({"error": {"type": kind, "message": message}}))
    return code


def _chosen(paper: str | None, name: str) -> dict[str, tuple[str, ...]]:
    """Names of the figures that are asked for, by paper; unknown ones are refused."""
    papers = PAPERS if paper is None else (paper,)
    found = {key: find_all(key, name) if name else experiments(key) for key in papers}
    return {key: tuple(each.figure for each in every) for key, every in found.items()}


def _list(paper: str | None, name: str) -> None:
    """Print each figure with its title and the numbers of the paper that it stands for."""
    for key, figures in _chosen(paper, name).items():
        print(sys.modules[f"papers.{key}"].__doc__)
        for each in experiments(key):
            if each.figure in figures:
                print(f"  {each.figure:12}  {each.title}")
                if each.runs:
                    print(f"  {'':12}  about {', '.join(each.runs)}")


def _reproduce(asked: argparse.Namespace) -> None:
    """Reproduce what is asked for, and print it."""
    options = {key: getattr(asked, key) for key in ("out", "quick", "seed", "workers")}
    done: list[Reproduction] = []
    for paper in _chosen(asked.paper, " ".join(asked.name)):
        own: list[Reproduction] = []
        for each in reproduce(paper, " ".join(asked.name) or None, report=_report, **options):
            own.append(each)
            if not asked.json:
                _print(each)
        if not asked.json:
            print(summary(own))
        done += own
    if asked.json:
        counts = {word: len(names) for word, names in _by_word(done).items()}
        record = {"quick": asked.quick, "seed": asked.seed, "summary": counts}
        print(json.dumps(record | {"figures": [*map(_record, done)]}, sort_keys=True))


def _report(progress: str) -> None:
    print(progress, file=sys.stderr)


def _record(found: Reproduction) -> dict[str, Any]:
    stem = found.experiment.figure
    return {
        "paper": found.experiment.paper,
        "figure": stem,
        "title": found.experiment.title,
        "verdict": {**asdict(found.verdict), "word": found.verdict.word},
        "files": [str(found.folder / f"{stem}{end}") for end in RESULTS],
        "seconds": found.seconds,
        "reused": found.reused,
    }


def _print(found: Reproduction) -> None:
    time = "finished before" if found.reused else f"{found.seconds:.1f} s"
    print(f"{found.experiment.name}: {found.experiment.title} ({time})")
    print("\n".join(f"  {line}" for line in found.verdict.text().splitlines()))
    stem = found.folder / found.experiment.figure
    print(f"  Files: {stem}{', '.join(RESULTS)}\n", flush=True)


def _by_word(done: Sequence[Reproduction]) -> dict[str, list[str]]:
    """Names of the figures under each word of a verdict."""
    return {
        word: [each.experiment.figure for each in done if each.verdict.word == word]
        for word in _WORDS
    }


def summary(done: Sequence[Reproduction]) -> str:
    """Count the verdicts in one line, and name the figures that disagree with the paper.

    A figure on which the paper claims nothing has no verdict.
    """
    agree, against, silent = _by_word(done).values()
    count = len(agree) + len(against)
    line = f"{count} verdict{'' if count == 1 else 's'}"
    if count:
        line += (
            f": {len(agree)} {'agrees' if len(agree) == 1 else 'agree'}, "
            f"{len(against)} {'does' if len(against) == 1 else 'do'} not"
        )
    if against:
        line += f" ({', '.join(against)})"
    if silent:
        line += f"; {len(silent)} figure{'' if len(silent) == 1 else 's'} without a claim"
    return f"{line}. Files are in {done[0].folder}"


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: workers end, too
    sys.exit(main())
