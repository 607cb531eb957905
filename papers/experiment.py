"""One figure of a paper as data, a picture and a verdict that is computed from the data."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushed.errors import ParameterError

__all__ = ["Effort", "Experiment", "Point", "Row", "Settings", "Verdict", "canonical"]

Settings = dict[str, Any]
"""What an experiment was run with: plain values that fit into JSON."""
Point = dict[str, Any]
"""One piece of work that is saved when it is done: plain values that fit into JSON."""
Row = dict[str, Any]
"""One line of the data file: column to text or number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How the work is done; the number of workers changes no result.

    Parameters
    ----------
    seed : int, default 0
        Seed of everything that is drawn except release noise, which cannot be seeded.
    workers : int, optional
        Worker processes for sampling.
    """

    seed: int = 0
    workers: int | None = None

    def stream(self, *words: str | float) -> np.random.Generator:
        """Make a generator that depends on the seed and on what it is for.

        Parameters
        ----------
        *words : str or float
            What it is for.

        Returns
        -------
        numpy.random.Generator
            The same one for the same words.
        """
        return np.random.default_rng([self.seed, zlib.crc32(repr(words).encode())])

    def seed_for(self, *words: str | float) -> int:
        """Make a seed that depends on the seed and on what it is for.

        Parameters
        ----------
        *words : str or float
            What it is for.

        Returns
        -------
        int
            In [0, 2**63).
        """
        return int(self.stream(*words).integers(2**63))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of one claim.

    Parameters
    ----------
    claim : str
        What the paper says.
    criterion : str
        When the data agree with it.
    measured : str
        What was found, with numbers.
    agrees : bool or None
        Whether the criterion is met; None where the paper claims nothing.
    better : str
        Where the exact value, or a better method, stands.
    notes : tuple of str, default ()
        What differs from the paper, and what it leaves open.
    """

    claim: str
    criterion: str
    measured: str
    agrees: bool | None
    better: str
    notes: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """One word or two: agrees, disagrees, or no claim."""
        return {True: "agrees", False: "disagrees", None: "no claim"}[self.agrees]

    def text(self) -> str:
        """Write the verdict out, one paragraph for each part.

        Returns
        -------
        str
            The paragraphs, one on each line.
        """
        parts = [
            f"Claim: {self.claim}",
            f"Agrees if: {self.criterion}",
            f"Measured: {self.measured}",
            f"Verdict: {self.word}.",
            f"Better: {self.better}",
        ]
        return "\n".join([*parts, *(f"Note: {text}" for text in self.notes)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One figure or table of a paper.

    Parameters
    ----------
    paper : str
        Key of the paper.
    figure : str
        Name of the figure within the paper.
    title : str
        What it shows.
    runs : tuple of str, default ()
        Algorithms, theorems and other statements of the paper that it runs or checks, by their
        numbers there: ``("algorithm 2", "corollary 10")``.
    settings : callable
        Takes ``quick``, gives the settings.
    points : callable
        Takes the settings, gives the pieces of work in order.
    measure : callable
        Takes settings, one point and the effort, gives the rows of that point.
    plot : callable
        Takes all rows, gives an altair chart; computes nothing.
    verdict : callable
        Takes all rows, gives the verdict.
    """

    paper: str
    figure: str
    title: str
    runs: tuple[str, ...] = ()
    settings: Callable[[bool], Settings]
    points: Callable[[Settings], list[Point]]
    measure: Callable[[Settings, Point, Effort], list[Row]]
    plot: Callable[[list[Row]], Any]
    verdict: Callable[[list[Row]], Verdict]

    @property
    def name(self) -> str:
        """Paper and figure."""
        return f"{self.paper} {self.figure}"

    def is_called(self, name: str) -> bool:
        """Tell whether a name stands for this figure.

        Parameters
        ----------
        name : str
            A name, a bare number or a number of the paper.

        Returns
        -------
        bool
            True if so.
        """
        names = {canonical(each) for each in (self.figure, *self.runs)}
        return bool(names & {canonical(name), canonical(f"figure {name}")})

    def pieces(
        self, settings: Settings, effort: Effort, *, known: Mapping[str, list[Row]] | None = None
    ) -> Iterator[tuple[str, list[Row]]]:
        """Do the work piece by piece.

        Parameters
        ----------
        settings : dict
            What `settings` gave.
        effort : Effort
            Seed and workers.
        known : mapping from str to list of rows, optional
            Pieces that an earlier run finished, by their keys; they are passed on as they are.

        Yields
        ------
        key : str
            Name of the piece.
        rows : list of dict
            Its rows.

        Raises
        ------
        ParameterError
            If two points have the same key.
        """
        points = self.points(settings)
        keys = [json.dumps(point, sort_keys=True) for point in points]
        if len(set(keys)) != len(keys):
            raise ParameterError(f"{self.name} has the same point twice; points must differ")
        for key, point in zip(keys, points, strict=True):
            found = (known or {}).get(key)
            yield key, self.measure(settings, point, effort) if found is None else found

    def run(self, *, quick: bool = False, seed: int = 0, workers: int | None = None) -> list[Row]:
        """Run the whole experiment in memory and give its data.

        Parameters
        ----------
        quick : bool, default False
            With the small settings.
        seed : int, default 0
            Equal seeds give equal data.
        workers : int, optional
            Processes; as many as there are processors unless given.

        Returns
        -------
        list of Row
            The data, point by point.
        """
        effort = Effort(seed=seed, workers=workers)
        return [row for _, rows in self.pieces(self.settings(quick), effort) for row in rows]


def canonical(name: str) -> str:
    """Spell a name one way: ``Fig. 5``, ``figure 5`` and ``figure-5`` are the same figure."""
    return "-".join(name.lower().replace("fig.", "figure ").replace("-", " ").split())
