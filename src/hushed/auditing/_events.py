"""Events: which outputs to count, and what the selection split says of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushed.auditing._scores import Score

__all__ = ["Event", "Pick"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Event:
    """A set of outputs: those whose score passes a threshold.

    Parameters
    ----------
    score : Score
        Fitted on training samples.
    threshold : float
        Outputs with this score are inside: ties are never split.
    first : bool
        True if the event is the likelier one on the first table (score at least the threshold),
        False if on its neighbour (score at most the threshold).
    """

    score: Score
    threshold: float
    first: bool

    def holds(self, encoded: Floats) -> NDArray[np.bool_]:
        """Tell which outputs are inside.

        Parameters
        ----------
        encoded : ndarray, shape (runs, columns)
            Encoded outputs.

        Returns
        -------
        ndarray of bool, shape (runs,)
            True inside.
        """
        scores = self.score.of(encoded)
        return scores >= self.threshold if self.first else scores <= self.threshold

    def words(self) -> str:
        """Words for the event.

        Returns
        -------
        str
            Such as ``"the output lies in [-inf, 0.5)"``.
        """
        return self.score.words(self.threshold, first=self.first)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pick:
    """An event with what the selection split says of it.

    Parameters
    ----------
    event : Event
        The event.
    predicted : float
        Bound that the final split can be expected to certify.
    merit : tuple of float
        What picks are ordered by: rank, bound or excess, margin.
    share, other_share : float
        Shares of the outputs inside on the likelier table and on the other one, on the selection
        split: estimates, biased by the selection.
    """

    event: Event
    predicted: float
    merit: tuple[float, float, float]
    share: float
    other_share: float
