"""Run figures of a paper, keep what is done, and go on where an interrupted run stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from hushed.errors import NotFound
from hushed.papers.experiment import Effort, Experiment, Row, Verdict
from hushed.papers.store import Shelf, run_digest
from hushed.plots.figures import altair_or_refuse

__all__ = ["PAPERS", "Reproduction", "experiments", "find", "reproduce"]

_PAUSE = 1.0  # seconds between two words on progress
PAPERS = ("ra17", "dbb20", "lo19")
"""Keys of the papers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """What became of one figure.

    Parameters
    ----------
    experiment : Experiment
        The figure.
    verdict : Verdict
        Computed from the data.
    folder : Path
        Where its files are.
    seconds : float
        Time of this run; 0 if nothing had to be done.
    reused : bool
        True if an earlier run had finished it.
    """

    experiment: Experiment
    verdict: Verdict
    folder: Path
    seconds: float
    reused: bool


def experiments(paper: str) -> tuple[Experiment, ...]:
    """All figures of a paper.

    Parameters
    ----------
    paper : {"ra17", "dbb20", "lo19"}
        Key of the paper.

    Returns
    -------
    tuple of Experiment
        In the order of the paper.

    Raises
    ------
    NotFound
        If the key is another one.
    """
    if paper not in PAPERS:
        raise NotFound(f"there is no paper {paper!r}; there are {', '.join(PAPERS)}")
    found: tuple[Experiment, ...] = import_module(f"hushed.papers.{paper}").EXPERIMENTS
    return found


def find(paper: str, figure: str) -> Experiment:
    """One figure of a paper.

    Parameters
    ----------
    paper : str
        Key of the paper.
    figure : str
        Name of the figure, or its bare number.

    Returns
    -------
    Experiment
        The figure.

    Raises
    ------
    NotFound
        If there is none; the message lists those that are.
    """
    known = {each.figure: each for each in experiments(paper)}
    for name in (figure, f"figure-{figure}"):
        if name in known:
            return known[name]
    raise NotFound(f"{paper} has no figure {figure!r} here; it has {', '.join(known)}")


def reproduce(
    paper: str,
    figure: str | None = None,
    *,
    out: str | Path,
    quick: bool = False,
    seed: int = 0,
    workers: int | None = None,
    tell: Callable[[str], None] | None = None,
) -> Iterator[Reproduction]:
    """Reproduce the figures of a paper, one after the other.

    Parameters
    ----------
    paper : {"ra17", "dbb20", "lo19"}
        Key of the paper.
    figure : str, optional
        One figure alone.
    out : str or Path
        Folder; the files go into ``PAPER`` or ``PAPER-quick`` below it, so that a quick run never
        replaces a full one.
    quick : bool, default False
        Use the small settings.
    seed : int, default 0
        Seed of everything but release noise.
    workers : int, optional
        Worker processes for sampling.
    tell : callable, optional
        Told of progress in words.

    Yields
    ------
    Reproduction
        One for each figure, as it is finished. Figures that an earlier run with the same settings,
        seed and code finished are not run again; of an interrupted one, finished points are kept.

    Raises
    ------
    NotFound
        If paper or figure are unknown, or a package is missing.
    """
    chosen = experiments(paper) if figure is None else (find(paper, figure),)
    altair_or_refuse()  # before the long run, not after it
    folder = Path(out) / (f"{paper}-quick" if quick else paper)
    effort = Effort(seed=seed, workers=workers)
    for each in chosen:
        yield _one(each, folder, effort, tell or (lambda _: None), quick=quick)


def _one(
    experiment: Experiment,
    folder: Path,
    effort: Effort,
    tell: Callable[[str], None],
    *,
    quick: bool,
) -> Reproduction:
    """Reproduce one figure, or find that it is done."""
    settings = experiment.settings(quick)
    run = run_digest(experiment, settings, effort.seed)
    shelf = Shelf(folder=folder, figure=experiment.figure, run=run)
    done = shelf.finished()
    if done is not None:
        tell(f"{experiment.name}: finished before")
        return Reproduction(
            experiment=experiment, verdict=done, folder=folder, seconds=0.0, reused=True
        )
    begun = time.monotonic()
    known = shelf.pieces()
    total = len(experiment.points(settings))
    if known:
        tell(f"{experiment.name}: {len(known)} of {total} points were kept")
    told = begun
    rows: list[Row] = []
    for i, (key, piece) in enumerate(experiment.pieces(settings, effort, known=known), start=1):
        if key not in known:
            shelf.keep(key, piece)
        rows += piece
        now = time.monotonic()
        if i == total or now - told >= _PAUSE:
            tell(f"{experiment.name}: point {i} of {total}, {now - begun:.0f} s")
            told = now
    verdict = shelf.finish(experiment, settings, effort.seed, rows)
    return Reproduction(
        experiment=experiment,
        verdict=verdict,
        folder=folder,
        seconds=time.monotonic() - begun,
        reused=False,
    )
