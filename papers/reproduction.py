"""Run figures of a paper, keep what is done, and go on where an interrupted run stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from hushed.errors import NotFound
from papers.experiment import Effort, Experiment, Row, Verdict
from papers.internals import check_suffix
from papers.store import RunStore, run_digest

__all__ = ["PAPERS", "Reproduction", "experiments", "find", "find_all", "reproduce"]

_PAUSE = 1.0  # seconds between two reports on progress
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
    seconds: float = 0.0
    reused: bool = False


def experiments(paper: str) -> tuple[Experiment, ...]:
    """List the figures of a paper.

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
        If the key is another one, or a package is missing.
    """
    if paper not in PAPERS:
        raise NotFound(f"there is no paper {paper!r}; there are {', '.join(PAPERS)}")
    try:
        found: tuple[Experiment, ...] = import_module(f"papers.{paper}").EXPERIMENTS
    except ModuleNotFoundError as error:
        raise NotFound(
            f"{paper} needs the package {error.name}: pip install '.[plot]' --group papers, "
            "in the root of the repository"
        ) from None
    return found


def find_all(paper: str, name: str) -> tuple[Experiment, ...]:
    """Find the figures of a paper that a name stands for.

    Parameters
    ----------
    paper : str
        Key of the paper.
    name : str
        Name or number of a figure; or an algorithm, theorem, table ... by its number in the paper,
        which may stand for several figures.

    Returns
    -------
    tuple of Experiment
        At least one, in the order of the paper.

    Raises
    ------
    NotFound
        If there is none; the message lists those that are.
    """
    every = experiments(paper)
    found = tuple(each for each in every if each.is_called(name))
    if not found:
        figures = ", ".join(each.figure for each in every)
        others = ", ".join(dict.fromkeys(each for one in every for each in one.runs))
        raise NotFound(f"{paper} has no figure {name!r} here; it has {figures}; {others}")
    return found


def find(paper: str, figure: str) -> Experiment:
    """Find one figure of a paper, by name or number.

    Parameters
    ----------
    paper : str
        Key of the paper.
    figure : str
        What `find_all` takes.

    Returns
    -------
    Experiment
        The first that is found.
    """
    return find_all(paper, figure)[0]


def reproduce(
    paper: str,
    figure: str | None = None,
    *,
    out: str | Path,
    quick: bool = False,
    seed: int = 0,
    workers: int | None = None,
    report: Callable[[str], object] = lambda _: None,
) -> Iterator[Reproduction]:
    """Reproduce the figures of a paper, one after the other.

    Parameters
    ----------
    paper : {"ra17", "dbb20", "lo19"}
        Key of the paper.
    figure : str, optional
        What `find_all` takes; all figures by default.
    out : str or Path
        Folder; the files go into ``PAPER`` or ``PAPER-quick`` below it, so that a quick run never
        replaces a full one.
    quick : bool, default False
        Use the small settings.
    seed : int, default 0
        Seed of everything but release noise.
    workers : int, optional
        Worker processes for sampling.
    report : callable, optional
        Takes progress in words.

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
    chosen = experiments(paper) if figure is None else find_all(paper, figure)
    check_suffix(Path("figure.svg"))  # packages for figures are missed before the run, not after it
    folder = Path(out) / (f"{paper}-quick" if quick else paper)
    for each in chosen:
        yield _run(each, folder, Effort(seed=seed, workers=workers), report, quick=quick)


def _run(
    experiment: Experiment,
    folder: Path,
    effort: Effort,
    report: Callable[[str], object],
    *,
    quick: bool,
) -> Reproduction:
    """Run one figure, or find that it is done."""
    settings = experiment.settings(quick)
    digest = run_digest(experiment, settings, effort.seed)
    store = RunStore(folder=folder, figure=experiment.figure, run=digest)
    verdict = store.load_verdict()
    if verdict is not None:
        report(f"{experiment.name}: finished before")
        return Reproduction(experiment=experiment, verdict=verdict, folder=folder, reused=True)
    begun = reported = time.monotonic()
    known = store.load_points()
    total = len(experiment.points(settings))
    if known:
        report(f"{experiment.name}: {len(known)} of {total} points were kept")
    rows: list[Row] = []
    for i, (key, piece) in enumerate(experiment.pieces(settings, effort, known=known), start=1):
        if key not in known:
            store.append_point(key, piece)
        rows += piece
        now = time.monotonic()
        if i == total or now - reported >= _PAUSE:
            report(f"{experiment.name}: point {i} of {total}, {now - begun:.0f} s")
            reported = now
    verdict = store.finish(experiment, settings, effort.seed, rows)
    seconds = time.monotonic() - begun
    return Reproduction(experiment=experiment, verdict=verdict, folder=folder, seconds=seconds)
