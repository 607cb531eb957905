"""`estimate_privacy`: the delta of a mechanism on one pair, estimated in both directions."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushed._functions._trials import seed_from
from hushed._ground.calls import called_as, given_by
from hushed._ground.checks import read_count
from hushed._ground.notebook import Shown
from hushed.auditing._keeping import check_keepable
from hushed.auditing._mechanisms import adapt_mechanism, name_mechanism
from hushed.auditing._outputs import STRUCTURE, Floats
from hushed.auditing._pairs import Pair, Relation, read_pairs
from hushed.auditing._runs import Runs, prepare_runs
from hushed.auditing._scores.bins import find_places
from hushed.divergences import DeltaEstimate, estimate_delta
from hushed.divergences._estimate import Method
from hushed.engines._choice import Workers, opens_engine
from hushed.errors import ParameterError
from hushed.runs import Keep

_PILOT = 4096  # runs a table that decide how outputs become outcomes; not used again
_BINS = 50
_ONCE = 1 / 200  # share of these whose outcome is seen once, beyond which they need bins
_ONCE_UNBINNED = 0.2  # the same of outputs that no bins are known for: then they are refused
_LEAST, _MOST = 100, 2**30


@given_by("hs.estimate_privacy(mechanism, ([0.0], [1.0]), 0.5)")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PrivacyEstimate(Shown):
    """Estimates of delta on one pair of tables; no bounds: certificates come from `hs.audit`.

    Parameters
    ----------
    rows_exceed : DeltaEstimate
        How far the outputs on ``rows`` exceed ``exp(epsilon)`` times those on ``neighbour``.
    neighbour_exceeds : DeltaEstimate
        The other direction.
    outcomes : int
        Distinct outcomes, and bins, that were seen.
    binned : bool
        Whether outputs that hardly ever repeat were put into bins, which can only lower delta.
    pair : str
        Words for the pair.
    """

    rows_exceed: DeltaEstimate
    neighbour_exceeds: DeltaEstimate
    outcomes: int
    binned: bool
    pair: str

    @property
    def epsilon(self) -> NDArray[np.float64]:
        """Privacy losses, in nats; shape (...)."""
        return self.rows_exceed.epsilon

    @property
    def delta(self) -> NDArray[np.float64]:
        """The larger of both directions, shape (...): a mechanism has to hold in both."""
        return np.maximum(self.rows_exceed.values, self.neighbour_exceeds.values)

    @property
    def low(self) -> NDArray[np.float64]:
        """Where delta plausibly begins, with the bias of the estimate; shape (...)."""
        return np.maximum(self.rows_exceed.low, self.neighbour_exceeds.low)

    @property
    def high(self) -> NDArray[np.float64]:
        """Where delta plausibly ends, but for what bins lose; shape (...)."""
        return np.maximum(self.rows_exceed.high, self.neighbour_exceeds.high)

    def __str__(self) -> str:
        what = f"{self.outcomes} bins" if self.binned else f"{self.outcomes} outcomes"
        sides = zip(
            ("rows over neighbour", "neighbour over rows"),
            (self.rows_exceed, self.neighbour_exceeds),
            strict=True,
        )
        return "\n".join([f"{self.pair}, {what}", *(f"{name}: {each}" for name, each in sides)])


@called_as("hs.estimate_privacy(mechanism, ([0.0], [1.0]), 0.5)")
@opens_engine
def estimate_privacy(
    mechanism: Any,
    pair: Pair | tuple[Any, Any],
    epsilon: ArrayLike,
    *,
    samples: int = 100_000,
    bins: int = _BINS,
    method: Method = "empirical-bayes",
    batch: bool = False,
    relation: Relation = "replace-one",
    seed: int | np.random.Generator | None = 0,
    workers: Workers = None,
    keep: str | PathLike[str] | Keep | None = None,
) -> PrivacyEstimate:
    """Estimate the delta of a mechanism on a pair of tables, in both directions.

    Parameters
    ----------
    mechanism : callable, Command, object with a method draw, or OpenDP measurement
        As `audit` takes it: ``mechanism(rows, rng) -> output``.
    pair : Pair or (rows, neighbour)
        Two neighbouring tables.
    epsilon : float or array-like of float, shape (...)
        Privacy losses, in nats; in [0, 200]. An array gives whole curves.
    samples : int, default 100_000
        Runs on each of the two tables; 100 or more. Another 4,096 decide on bins.
    bins : int, default 50
        Bins for outputs that hardly ever repeat; 2 to 10,000. Their edges come from runs of their
        own, about as many of them in each bin. What repeats stays an outcome of its own.
    method : {"empirical-bayes", "minimax", "plug-in"}, default "empirical-bayes"
        Estimator; see `estimate_delta`.
    batch : bool, default False
        Whether one call gives many outputs: ``mechanism(rows, rng, size) -> outputs``.
    relation : {"replace-one", "add-remove", "answers"}, default "replace-one"
        How the tables may differ; with ``"answers"`` they are query answers that move by 1.
    seed : int, Generator or None, default 0
        Seed of every stream; None for fresh entropy.
    workers : int, str, Engine or distributed.Client, optional
        Worker processes, or a cluster: ``"dask://HOST:8786"``, ``"ray"``, a session of Spark;
        see `hushed.engines.engine_of`.
    keep : str, path or hushed.runs.Keep, optional
        Where outputs are kept, so that an interrupted call goes on; see `audit`.

    Returns
    -------
    PrivacyEstimate
        Both directions, with standard errors; no certificate.

    Raises
    ------
    ParameterError
        If a number is out of range, the tables are no neighbours, or outputs of several numbers
        hardly ever repeat: let the mechanism return one number then, or round them.
    BadFunction
        If the mechanism cannot be run; with ``keep`` also if it has a generator of its own.
    DamagedRun
        If what is kept contradicts itself.

    Examples
    --------
    >>> def respond(rows, rng):
    ...     return bool(rows[0]) ^ (rng.random() < 0.25)
    >>> found = estimate_privacy(respond, ([1], [0]), [0.0, 0.5], samples=20_000)
    >>> found.outcomes, found.delta.round(1).tolist()  # truth: 0.5 and 0.338
    (2, [0.5, 0.3])
    """
    number = read_count("samples", samples, _LEAST, _MOST)
    most = read_count("bins", bins, 2, 10_000)
    if not isinstance(pair, Pair) and not (isinstance(pair, tuple | list) and len(pair) == 2):
        raise ParameterError("pair must be (rows, neighbour), two tables", parameter="pair")
    if keep is not None:
        check_keepable(keep, mechanism, private=False)
    (chosen,) = read_pairs([pair], relation=relation, answers=1)
    runs = prepare_runs(
        adapt_mechanism(mechanism, batch=batch, workers=workers),
        [chosen],
        seed=seed_from(seed),
        workers=workers,
        progress=_ignore,
        keep=keep,
        name=name_mechanism(mechanism),
    )
    chosen_bins = _choose_bins(runs, chosen, most)
    counts = _count(runs, runs.sample(chosen, number, "estimate"), chosen_bins)
    return PrivacyEstimate(
        rows_exceed=estimate_delta(counts[1], counts[0], epsilon, method=method),
        neighbour_exceeds=estimate_delta(counts[0], counts[1], epsilon, method=method),
        outcomes=int(np.count_nonzero(counts.sum(axis=0))),
        binned=chosen_bins is not None,
        pair=chosen.name,
    )


def _ignore(_: str) -> None:
    """Tell nobody how far it is."""


def _find_outcomes(runs: Runs, encoded: Floats) -> Floats:
    """Columns by which two outputs are the same outcome: of an object its canonical text."""
    whole = len(STRUCTURE) - 1
    found = encoded[:, [whole]] if runs.encoder.objects else encoded
    return np.where(np.isnan(found), np.finfo(float).max, found + 0.0)  # -0.0 is 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Bins:
    """Outcomes that repeat, sorted, each by itself; inner edges of bins for all other numbers."""

    repeated: Floats
    edges: Floats

    def assign(self, outcomes: Floats, values: Floats) -> NDArray[np.int64]:
        """Place of each output: its bin (NaN has the last one), or beyond them its outcome."""
        places = np.searchsorted(self.edges, values, side="right")
        places = np.where(np.isnan(values), len(self.edges) + 1, places)
        at = find_places(outcomes, self.repeated)
        return np.where(at < len(self.repeated), len(self.edges) + 2 + at, places)


def _choose_bins(runs: Runs, pair: Pair, bins: int) -> _Bins | None:
    """Bins for outputs that do not repeat, from runs of their own; None where most outputs do.

    Notes
    -----
    The share of runs whose outcome was seen once estimates the probability of all outcomes not seen
    (Good, Biometrika 40, 1953). Counted as outcomes these would all differ between the two tables,
    and delta would come out too large by about as much.
    """
    drawn = np.concatenate(runs.sample(pair, _PILOT, "bins"))
    distinct, at, counts = np.unique(
        _find_outcomes(runs, drawn), axis=0, return_inverse=True, return_counts=True
    )
    once = counts[at.ravel()] == 1
    if once.mean() <= _ONCE:
        return None
    values = runs.encoder.values(drawn)
    if values.shape[1] == 1 and np.isnan(values[once]).mean() <= 0.5:
        shares = np.linspace(0, 1, bins + 1)[1:-1]
        found = np.nanquantile(values[once, 0], shares, method="inverted_cdf")
        return _Bins(repeated=distinct[counts > 1, 0], edges=np.unique(found))
    if once.mean() <= _ONCE_UNBINNED:
        return None
    raise ParameterError(
        "outputs hardly ever repeat and are not one number each, so that they cannot be put "
        "into bins: let the mechanism return one number, or round what it returns",
        parameter="mechanism",
    )


def _count(runs: Runs, sides: tuple[Floats, Floats], bins: _Bins | None) -> NDArray[np.int64]:
    """Count the outcomes, or bins, on both tables; shape (2, outcomes)."""
    together = np.concatenate(sides)
    outcomes = _find_outcomes(runs, together)
    if bins is None:
        _, places = np.unique(outcomes, axis=0, return_inverse=True)
    else:
        places = bins.assign(outcomes[:, 0], runs.encoder.values(together)[:, 0])
    places, size = places.ravel(), int(places.max()) + 1
    first, second = np.split(places, [len(sides[0])])
    return np.stack([np.bincount(each, minlength=size) for each in (first, second)])
