"""Runs of a mechanism on a pair: every stage on streams of its own, whatever the workers."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed.auditing._events import Event
from hushed.auditing._mechanisms import BatchRaised, Raised, Source
from hushed.auditing._outputs import Encoder, encoder_for
from hushed.auditing._pairs import Pair
from hushed.errors import BadFunction
from hushed.trials import run_trials

__all__ = ["Runs", "Tell", "prepare", "stage_seed"]

Floats = NDArray[np.float64]
Tell = Callable[[str], None]

_BATCH_CELLS = 2**19
_BATCH, _SCALAR = 2**16, 2**8
_PROBES = {"batch": 512, "scalar": 64}
_TRIED = 32  # first runs on a table, of which one has to give an answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """A mechanism ready to be run on pairs.

    Parameters
    ----------
    source : Source
        The mechanism.
    encoder : Encoder
        How its outputs become numbers.
    seed : int
        Seed of the audit; each stage and pair has streams of its own under it.
    workers : int or None
        Worker processes.
    tell : callable
        Told in words how far the audit is.
    bits : bool, default True
        Whether events may look at the bit patterns of doubles.
    """

    source: Source
    encoder: Encoder
    seed: int
    workers: int | None
    tell: Tell
    bits: bool = True

    def sample(self, pair: Pair, runs: int, stage: str) -> tuple[Floats, Floats]:
        """Draw encoded outputs on both tables.

        Parameters
        ----------
        pair : Pair
            Where to run.
        runs : int
            Runs on each table; rounded down to whole chunks.
        stage : str
            Name of the stage, which chooses the streams.

        Returns
        -------
        tuple of ndarray, shape (runs, columns)
            Outputs on ``rows`` and on ``neighbour``.
        """
        source, encoder = self.source, self.encoder
        chunks, size = self._chunks(runs)

        def evaluate(generators: Iterator[np.random.Generator]) -> Floats:
            return np.stack(
                [
                    [encoder.encode(source.draw(side, rng, size)) for side in _sides(pair)]
                    for rng in generators
                ]
            )

        found = self._trials(evaluate, chunks, stage, pair)
        sides = found.transpose(1, 0, 2, 3).reshape(2, chunks * size, encoder.columns)
        return sides[0], sides[1]

    def count(
        self, pair: Pair, event: Event, edges: Floats, runs: int, stage: str
    ) -> NDArray[np.int64]:
        """Count outputs by their score; nothing else is kept.

        Parameters
        ----------
        pair : Pair
            Where to run.
        event : Event
            Whose score is taken, with the sign that makes the event the large scores.
        edges : ndarray, shape (bins - 1,)
            Edges of the bins of the signed score, sorted; a bin holds its lower edge.
        runs : int
            Runs on each table; rounded down to whole chunks.
        stage : str
            Name of the stage, which chooses the streams.

        Returns
        -------
        ndarray of int, shape (2, bins)
            Counts on ``rows`` and on ``neighbour``.
        """
        source, encoder, bins = self.source, self.encoder, len(edges) + 1
        chunks, size = self._chunks(runs)
        sign = 1.0 if event.first else -1.0

        def binned(rows: Any, rng: np.random.Generator) -> NDArray[np.int64]:
            scores = sign * event.score.of(encoder.encode(source.draw(rows, rng, size)))
            return np.bincount(np.searchsorted(edges, scores, side="right"), minlength=bins)

        def evaluate(generators: Iterator[np.random.Generator]) -> Floats:
            return np.array(
                [[binned(side, rng) for side in _sides(pair)] for rng in generators], dtype=float
            )

        found = self._trials(evaluate, chunks, stage, pair).sum(axis=0)
        return np.asarray(found.astype(np.int64))

    def _trials(self, evaluate: Any, chunks: int, stage: str, pair: Pair) -> Floats:
        seed = stage_seed(self.seed, stage, pair.name)
        return run_trials(evaluate, chunks, seed=seed, workers=self.workers)

    def _chunks(self, runs: int) -> tuple[int, int]:
        """Divide work into pieces that do not depend on the workers: their number and size."""
        most = _SCALAR
        if self.source.kind == "batch":
            most = max(1, min(_BATCH, _BATCH_CELLS // max(1, self.encoder.columns)))
        chunks = max(1, math.ceil(runs / most))
        return chunks, max(1, runs // chunks)


def _sides(pair: Pair) -> tuple[Any, Any]:
    return pair.rows, pair.neighbour


def stage_seed(seed: int, *parts: str) -> int:
    """Seed of one stage of a run.

    Parameters
    ----------
    seed : int
        Seed of the run.
    *parts : str
        Names of the stage.

    Returns
    -------
    int
        128 bits that differ between stages.
    """
    text = "\0".join((str(seed), *parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")


def prepare(
    source: Source,
    pairs: list[Pair],
    *,
    seed: int,
    workers: int | None,
    tell: Tell,
    bits: bool = True,
) -> Runs:
    """Run a mechanism a few times on every table, to learn what it returns.

    Parameters
    ----------
    source : Source
        The mechanism.
    pairs : list of Pair
        Pairs to be tried.
    seed : int
        Seed of the audit.
    workers : int or None
        Worker processes.
    tell : callable
        Told in words how far the audit is.
    bits : bool, default True
        Whether events may look at the bit patterns of doubles.

    Returns
    -------
    Runs
        The mechanism, ready; a batch mechanism that raised is run one call at a time from here
        on, so that a failed run is one outcome.

    Raises
    ------
    BadFunction
        If a batch mechanism gives the same outputs whatever generator it gets, though they vary
        within a batch; or if all first runs on all tables fail, for then a verdict would be one
        on the failure.
    """
    try:
        _require_an_answer(source, pairs, seed)
        probes = _probes(source, pairs, seed)
    except BatchRaised as cause:
        tell(f"the batch mechanism raised {cause.name}: running it one call at a time")
        source = source.one_at_a_time()
        _require_an_answer(source, pairs, seed)
        probes = _probes(source, pairs, seed)
    return Runs(
        source=source,
        encoder=encoder_for(probes),
        seed=seed,
        workers=workers,
        tell=tell,
        bits=bits,
    )


def _probes(source: Source, pairs: list[Pair], seed: int) -> list[Any]:
    size = _PROBES[source.kind]
    probes = []
    for number, pair in enumerate(pairs):
        bits = np.random.SeedSequence(stage_seed(seed, "probe", str(number)))
        rng = np.random.Generator(np.random.PCG64DXSM(bits))
        for side in _sides(pair):
            probes.append(source.draw(side, rng, size))
            if number == 0:
                _check_fresh(probes[-1], source.draw(side, rng, size))
    return probes


def _require_an_answer(source: Source, pairs: list[Pair], seed: int) -> None:
    """Refuse what only fails: its runs are alike on all tables, and nothing would be refuted."""
    failed: list[Raised] = []
    for number, pair in enumerate(pairs):
        bits = np.random.SeedSequence(stage_seed(seed, "answers", str(number)))
        rng = np.random.Generator(np.random.PCG64DXSM(bits))
        for side in _sides(pair):
            outputs = source.draw(side, rng, _TRIED)
            found = [] if isinstance(outputs, np.ndarray) else outputs
            raised = [each for each in found if isinstance(each, Raised)]
            if len(raised) < _TRIED:
                return
            failed += raised
    first = failed[0]
    reason = f" ({first.reason})" if first.reason else ""
    raise BadFunction(
        f"all of the first {len(failed)} runs, on every table, ended in {first.name}{reason}: "
        "there is no answer to judge. Call the mechanism once by hand; is the pair what it takes?"
    )


def _check_fresh(one: Any, other: Any) -> None:
    """Two batches that agree in everything, though their runs differ, use the same numbers."""
    first, second = _texts(one), _texts(other)
    if first == second and len(set(first)) > len(first) // 2 > 4:
        raise BadFunction(
            "the mechanism draws the same numbers at every call: it seeds a generator of its own; "
            "use the generator it is given, or fresh entropy"
        )


def _texts(outputs: Any) -> list[str]:
    return [repr(output) for output in list(outputs)]
