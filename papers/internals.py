"""What the papers need of the library and users cannot reach, in one place.

Everything else comes from `hushed` as users have it. The import contract in ``pyproject.toml``
checks that no other module here reaches further.
"""

from __future__ import annotations

from fractions import Fraction

from hushed._functions._run_facts import digest_sources
from hushed.guarantee import Protect
from hushed.ledger._files import is_ledger
from hushed.plots import COLOURS, check_suffix, save_figure
from hushed.sensitivity import Calibration, Rank
from hushed.sensitivity import choose_rank as _choose_rank

__all__ = [
    "COLOURS",
    "Calibration",
    "Protect",
    "Rank",
    "check_suffix",
    "choose_rank",
    "digest_sources",
    "is_ledger",
    "save_figure",
]


def choose_rank(
    calibration: Calibration, *, gamma: float | Fraction | None = None, pairs: int | None = None
) -> Rank:
    """Choose pairs and rank from a target gamma, a number of pairs, or both.

    Parameters
    ----------
    calibration : {"dkw", "training-conditional", "marginal"}
        As published, or by exact order statistics.
    gamma : float or Fraction, optional
        A float stands for the decimal number that it is printed as.
    pairs : int, optional
        Sampled pairs.

    Returns
    -------
    Rank
        See `hushed.sensitivity.choose_rank`.
    """
    exact = Fraction(repr(gamma)) if isinstance(gamma, float) else gamma
    return _choose_rank(calibration, gamma=exact, pairs=pairs)
