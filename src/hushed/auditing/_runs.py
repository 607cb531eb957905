"""Runs of a mechanism on a pair: every stage on streams of its own, whatever the workers."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed._functions._trials import may_round_otherwise, run_trials
from hushed.auditing._independence import require_independent
from hushed.auditing._keeping import (
    Keeping,
    Place,
    describe_mechanism,
    refuse_global_generators,
)
from hushed.auditing._mechanisms import BatchRaised, Source
from hushed.auditing._outputs import Encoder, choose_encoder
from hushed.auditing._pairs import Pair
from hushed.auditing._programs import Raised
from hushed.auditing._reading import read_object
from hushed.auditing._scores import Event
from hushed.engines._choice import Workers
from hushed.errors import BadFunction
from hushed.runs._journal import open_journal

Floats = NDArray[np.float64]
Progress = Callable[[str], None]

_BATCH_CELLS = 2**19
_BATCH, _SCALAR = 2**16, 2**8
_PROBES = {"batch": 512, "scalar": 64}
_TRIED = 32  # first runs on a table, of which one has to give an answer
_REPEATED = 32  # first runs that are made again from the same seed
_TRIED_SILENT = 2048  # on all tables, where those were silent: what tests first may rarely answer
_NUMBERS = (float, np.float64, np.float32, np.ndarray)


@dataclass(slots=True)
class Tally:
    """How many runs were made, on both tables together, and how many of them failed."""

    made: int = 0
    failed: int = 0

    def add(self, made: int, failed: int) -> None:
        """Add the runs of one stage."""
        self.made += made
        self.failed += failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """A mechanism ready to be run on pairs.

    Each stage and pair has streams of its own under the seed. `progress` is called with
    words on how far the audit is; `bits` says whether events may look at the bit patterns of
    doubles, `seeded` whether the first runs gave the same again. The clock was at `begun` when
    the audit began. `span` is where the work stands before
    and after these runs, as shares of the whole: an audit of many pairs has a part for each.
    """

    source: Source
    encoder: Encoder
    seed: int
    workers: Workers
    progress: Progress
    bits: bool = True
    seeded: bool = True
    keeping: Keeping | None = None
    begun: float = field(default_factory=time.perf_counter)
    span: tuple[float, float] = (0.0, 1.0)
    tally: Tally = field(default_factory=Tally)

    def report(self, words: str, done: float) -> None:
        """Report progress: words, the share of the runs that are made, and the time left at most.

        The time is in proportion to the runs, so mostly too long: learning takes time, too, and is
        over before the last runs.
        """
        start, end = self.span
        share = start + (end - start) * done
        left = (time.perf_counter() - self.begun) * (1 - share) / max(share, 1e-9)
        self.progress(
            f"{words}; {100 * share:.0f} % of the runs made, about {left:.0f} s left at most"
        )

    def sample(self, pair: Pair, runs: int, stage: str) -> tuple[Floats, Floats]:
        """Draw encoded outputs on both tables; the runs are rounded down to whole chunks.

        They lie column by column in memory, as they are read.
        """
        source, encoder = self.source, self.encoder
        chunks, size = self._divide_runs(runs)

        def evaluate(generators: Iterator[np.random.Generator]) -> Floats:
            return np.stack(
                [
                    [encoder.encode(source.stream(side, rng, size)) for side in _list_sides(pair)]
                    for rng in generators
                ]
            )

        found = self._run_trials(evaluate, (chunks, size), stage, pair)
        sides = found.transpose(1, 3, 0, 2).reshape(2, encoder.columns, chunks * size)
        one, other = sides[0].T, sides[1].T
        self.tally.add(2 * len(one), encoder.count_failed(one) + encoder.count_failed(other))
        return one, other

    def count(
        self, pair: Pair, event: Event, edges: Floats, runs: int, stage: str
    ) -> NDArray[np.int64]:
        """Count outputs on both tables by their score; nothing else is kept.

        `edges` are those of bins of the score, with the sign that makes the event the large ones;
        sorted, and a bin holds its lower edge. The runs are rounded down to whole chunks.
        """
        source, encoder, bins = self.source, self.encoder, len(edges) + 1
        chunks, size = self._divide_runs(runs)

        def count_in_bins(rows: Any, rng: np.random.Generator) -> NDArray[np.int64]:
            # Column by column in memory, as scores read it.
            encoded = np.asfortranarray(encoder.encode(source.stream(rows, rng, size)))
            scores = event.sign * event.score.evaluate(encoded)
            found = np.bincount(np.searchsorted(edges, scores, side="right"), minlength=bins)
            return np.append(found, encoder.count_failed(encoded))

        def evaluate(generators: Iterator[np.random.Generator]) -> Floats:
            return np.array(
                [[count_in_bins(side, rng) for side in _list_sides(pair)] for rng in generators],
                dtype=float,
            )

        counted = (event, edges)
        found = self._run_trials(evaluate, (chunks, size), stage, pair, counted).sum(axis=0)
        self.tally.add(2 * chunks * size, int(found[:, -1].sum()))
        return np.asarray(found[:, :-1].astype(np.int64))

    def _run_trials(
        self,
        evaluate: Any,
        divided: tuple[int, int],
        stage: str,
        pair: Pair,
        counted: tuple[Event, Floats] | None = None,
    ) -> Floats:
        """Run so many chunks of one size, but those that are kept."""
        chunks, size = divided
        seed = stage_seed(self.seed, stage, pair.name)
        run = partial(run_trials, evaluate, chunks, seed=seed, workers=self.workers)
        if self.keeping is None:
            return run()
        told = self.keeping.describe_run(
            stage=stage,
            pair=pair,
            seed=seed,
            chunks=chunks,
            size=size,
            encoder=self.encoder,
            counted=counted,
        )
        told = replace(told, other_bits=may_round_otherwise(self.workers))
        with open_journal(self.keeping.place, told) as journal:
            if journal.count():
                self.progress(f"{stage}, {pair.name}{journal.describe_kept()}")
            return run(kept=journal)

    def _divide_runs(self, runs: int) -> tuple[int, int]:
        """Divide work into pieces that do not depend on the workers: their number and size."""
        most = _SCALAR
        if self.source.kind == "batch":
            most = max(1, min(_BATCH, _BATCH_CELLS // max(1, self.encoder.columns)))
        chunks = max(1, math.ceil(runs / most))
        return chunks, max(1, runs // chunks)


def _list_sides(pair: Pair) -> tuple[Any, Any]:
    return pair.rows, pair.neighbour


def stage_seed(seed: int, *parts: str) -> int:
    """Derive the seed of one stage of a run: 128 bits that differ between stages."""
    text = "\0".join((str(seed), *parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")


def stage_generator(seed: int, *parts: str) -> np.random.Generator:
    """Make the generator of one stage of a run."""
    bits = np.random.SeedSequence(stage_seed(seed, *parts))
    return np.random.Generator(np.random.PCG64DXSM(bits))


def prepare_runs(
    source: Source,
    pairs: list[Pair],
    *,
    seed: int,
    workers: Workers,
    progress: Progress,
    remark: Progress | None = None,
    bits: bool = True,
    keep: Place | None = None,
    name: str = "",
    private: bool = False,
) -> Runs:
    """Run a mechanism a few times on every table, to learn what it returns.

    A batch mechanism that raised is run one call at a time from here on, so that a failed run is
    one outcome. Refused are a batch mechanism that gives the same outputs whatever generator it
    gets, though they vary within a batch, one whose runs depend on each other within a batch, and
    one whose first runs all fail on all tables: a verdict would be one on the failure.
    """
    with refuse_global_generators() if keep is not None else nullcontext():
        source, probes, seeded = _learn(source, pairs, seed, remark or progress)
        encoder = choose_encoder(probes)
        alike = stage_generator(seed, "independence")
        require_independent(source, encoder, pairs[0].rows, alike)
    keeping = None
    if keep is not None:
        keeping = describe_mechanism(keep, source, name, private=private)
    return Runs(
        source=source,
        encoder=encoder,
        seed=seed,
        workers=workers,
        progress=progress,
        bits=bits,
        seeded=seeded,
        keeping=keeping,
    )


def _learn(
    source: Source, pairs: list[Pair], seed: int, remark: Progress
) -> tuple[Source, list[Any], bool]:
    """Run a mechanism on every table: as it can be run, its outputs, whether a seed fixes them."""
    try:
        probes, seeded = _probe(source, pairs, seed)
    except BatchRaised as cause:
        remark(f"the batch mechanism raised {cause.name}: running it one call at a time")
        source = source.one_at_a_time()
        probes, seeded = _probe(source, pairs, seed)
    _tell_failures(probes, remark)
    return source, probes, seeded


def _probe(source: Source, pairs: list[Pair], seed: int) -> tuple[list[Any], bool]:
    _require_an_answer(source, pairs, seed)
    probes = _draw_probes(source, pairs, seed)
    return probes, _is_seeded(source, pairs[0], seed, probes[0])


def _is_seeded(source: Source, pair: Pair, seed: int, probe: Any) -> bool:
    """Whether the same generator gives the first outputs again.

    Noise of the system, a global generator and a count that goes on from call to call do not, but
    where there are few outputs, of which one is likely, they may by chance.
    """
    runs = len(probe) if source.kind == "batch" else _REPEATED
    again = source.draw(pair.rows, stage_generator(seed, "probe", "0"), runs)
    pairs = zip(probe, again, strict=False)
    return all(read_object(one)[0] == read_object(other)[0] for one, other in pairs)


def _tell_failures(probes: list[Any], remark: Progress) -> None:
    """Tell of runs that failed: an outcome like others, but maybe not what the auditor meant."""
    outputs = [output for part in probes if not isinstance(part, np.ndarray) for output in part]
    failed = [each for each in outputs if isinstance(each, Raised)]
    if failed:
        kinds = " and ".join(sorted({each.name for each in failed}))
        remark(
            f"of the first {len(outputs)} runs {len(failed)} ended in {kinds}: "
            "a run that fails is an outcome, too"
        )


def _draw_probes(source: Source, pairs: list[Pair], seed: int) -> list[Any]:
    size = _PROBES[source.kind]
    probes = []
    for number, pair in enumerate(pairs):
        rng = stage_generator(seed, "probe", str(number))
        for side in _list_sides(pair):
            probes.append(source.draw(side, rng, size))
            if number == 0:
                _require_fresh(probes[-1], source.draw(side, rng, size))
    return probes


def _require_an_answer(source: Source, pairs: list[Pair], seed: int) -> None:
    """Refuse what only fails, or answers nothing: its runs are alike, and nothing is refuted.

    An answer of NaN alone is none, as ``None`` is. What answers seldom, as a release behind a test
    that mostly fails, is run longer before it is refused; a function that always raises is not.
    """
    silent = _draw_silent(source, pairs, seed, "answers", _TRIED)
    if silent and not any(isinstance(each, Raised) for each in silent):
        more = -(-_TRIED_SILENT // (2 * len(pairs)))
        silent = _draw_silent(source, pairs, seed, "rare answers", more)
    if not silent:
        return
    failed = [each for each in silent if isinstance(each, Raised)]
    if failed and len(failed) < len(silent):
        return  # whether it fails or is silent may depend on the rows
    said, doubt = "returned None", "does it lack a return, or refuse every one of these tables?"
    if any(each is not None for each in silent):
        said, doubt = "returned NaN", "does one missing cell, or an empty table, make NaN of all?"
    if failed:
        reason = f" ({failed[0].reason})" if failed[0].reason else ""
        said, doubt = f"ended in {failed[0].name}{reason}", "is the pair what it takes?"
    raise BadFunction(
        f"all of the first {len(silent)} runs, on every table, {said}: "
        f"there is no answer to judge. Call the mechanism once by hand; {doubt}"
    )


def _draw_silent(source: Source, pairs: list[Pair], seed: int, stage: str, tried: int) -> list[Any]:
    """Run a mechanism on every table; gives its outputs if none is an answer, else nothing."""
    silent: list[Any] = []
    for number, pair in enumerate(pairs):
        rng = stage_generator(seed, stage, str(number))
        for side in _list_sides(pair):
            outputs = source.draw(side, rng, tried)
            if not all(isinstance(each, Raised) or _is_nothing(each) for each in outputs):
                return []
            silent += list(outputs)
    return silent


def _is_nothing(output: Any) -> bool:
    """Whether an answer is None, or numbers none of which is one; other types are not asked."""
    if type(output) not in _NUMBERS or np.asarray(output).dtype.kind not in "fc":
        return output is None
    return bool(np.size(output)) and bool(np.isnan(output).all())


def _require_fresh(one: Any, other: Any) -> None:
    """Refuse two batches that agree in everything, though their runs differ: the same numbers."""
    both = one, other
    numbers = all(isinstance(each, np.ndarray) and each.dtype.kind in "biuf" for each in both)
    if numbers and not np.array_equal(one, other, equal_nan=True):
        return  # the quick way out, and the usual one
    first, second = ([read_object(output)[0] for output in list(each)] for each in both)
    if first == second and len(set(first)) > len(first) // 2 > 4:
        raise BadFunction(
            "the mechanism draws the same numbers at every call: it seeds a generator of its own; "
            "use the generator it is given, or fresh entropy"
        )
