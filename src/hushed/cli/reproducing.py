"""The command ``hushed reproduce``."""

from __future__ import annotations

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
        for each in papers.reproduce(
            paper, figure, out=out, quick=quick, seed=seed, workers=workers, tell=note
        ):
            result["figures"].append(_record(each))
            if not as_json:
                _show(each)


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
