"""The command ``hushed reproduce``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushed.cli.options import JsonOption, WorkersOption
from hushed.cli.outcome import finish, note, say

if TYPE_CHECKING:
    from hushed.papers import Reproduction

__all__ = ["reproduce"]


def reproduce(
    *,
    paper: Annotated[str, typer.Argument(help="ra17, dbb20 or lo19.")],
    figure: Annotated[
        str | None, typer.Argument(help="One figure, by name or number; all by default.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for data, figures and verdicts.")] = Path(
        "reproduced"
    ),
    quick: Annotated[
        bool, typer.Option("--quick", help="Small settings: about a minute for a paper.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of all but the release noise.")] = 0,
    workers: WorkersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reproduce the figures of a paper, and say whether they agree with it."""
    from hushed import papers  # noqa: PLC0415

    stopped = "stopped; finished points are kept, run the same command again to go on"
    with finish(json=as_json, stopped=stopped) as result:
        result.update(paper=paper, quick=quick, seed=seed, figures=[])
        done: list[Reproduction] = []
        for each in papers.reproduce(
            paper, figure, out=out, quick=quick, seed=seed, workers=workers, tell=note
        ):
            done.append(each)
            result["figures"].append(_record(each))
            if not as_json:
                _show(each)
        result["summary"] = {word: len(names) for word, names in _by_word(done).items()}
        if not as_json:
            say(_summary(done))


def _record(found: Reproduction) -> dict[str, Any]:
    from dataclasses import asdict  # noqa: PLC0415

    stem = found.experiment.figure
    return {
        "figure": stem,
        "title": found.experiment.title,
        "verdict": {**asdict(found.verdict), "word": found.verdict.word},
        "files": [str(found.folder / f"{stem}{end}") for end in (".csv", ".svg", ".png", ".txt")],
        "seconds": found.seconds,
        "reused": found.reused,
    }


def _show(found: Reproduction) -> None:
    time = "finished before" if found.reused else f"{found.seconds:.1f} s"
    say(f"{found.experiment.name}: {found.experiment.title} ({time})")
    say("\n".join(f"  {line}" for line in found.verdict.text().splitlines()))
    stem = found.experiment.figure
    say(f"  Files: {found.folder / stem}.csv, .svg, .png, .txt\n")


def _by_word(done: Sequence[Reproduction]) -> dict[str, list[str]]:
    """Names of the figures under each word of a verdict."""
    found: dict[str, list[str]] = {"agrees": [], "disagrees": [], "no claim": []}
    for each in done:
        found[each.verdict.word].append(each.experiment.figure)
    return found


def _summary(done: Sequence[Reproduction]) -> str:
    """Count the verdicts in one line, and say which are against the paper and where the files are.

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
