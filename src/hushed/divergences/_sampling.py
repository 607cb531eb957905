"""Two sides of an estimate: what was counted, what is known, and how to draw it again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hushed.divergences._counts import (
    Column,
    Counts,
    Model,
    Tuples,
    align,
    read_sizes,
    shares,
    whole,
)
from hushed.divergences._minimax import Score
from hushed.errors import ParameterError

_CANCELLED = 1e-12  # of a sum of squares: what rounding leaves of equal differences


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """Counts, or known probabilities, of both distributions."""

    # Counts of a sampled side; probabilities of a known one.
    p: Column
    q: Column
    # Sample sizes; 1 for a known side, so that dividing by them gives shares.
    sizes: tuple[float, float]
    known: tuple[bool, bool]  # which sides are known; not both
    model: Model  # how the sample sizes came about

    @property
    def sampled_sizes(self) -> tuple[float, float]:
        """Sample sizes, with the sampled side's in place of the known side's."""
        n_p, n_q = self.sizes
        return (n_q if self.known[0] else n_p, n_p if self.known[1] else n_q)


def read_sample(
    counts: tuple[Counts | None, Counts | None],
    known: tuple[Counts | None, Counts | None],
    samples: float | tuple[float, float] | None,
    model: Model,
) -> Sample:
    """Check and align what the user gave."""
    given: list[Counts] = []
    for count, probability, side in zip(counts, known, "pq", strict=True):
        if count is not None and probability is None:
            given.append(count)
        elif probability is not None and count is None:
            given.append(probability)
        else:
            raise ParameterError(
                f"give either counts_{side} or known probabilities {side}=, and None for the other"
            )
    is_known = (known[0] is not None, known[1] is not None)
    if all(is_known):
        raise ParameterError("both sides are known: nothing is left to estimate from samples")
    columns: list[Column] = []
    for values, exact, side in zip(align(given[0], given[1]), is_known, "pq", strict=True):
        columns.append(shares(values, side) if exact else whole(values, f"counts_{side}"))
    p, q = columns
    if len(p) != len(q):
        raise ParameterError(
            f"p has {len(p)} symbols and q has {len(q)}: give both over one alphabet, or as "
            "mappings from outcome to number"
        )
    totals = (0 if is_known[0] else int(p.sum()), 0 if is_known[1] else int(q.sum()))
    sizes = read_sizes(samples, totals, is_known, model)
    return Sample(p=p, q=q, sizes=sizes, known=is_known, model=model)


def halves(sample: Sample, rng: np.random.Generator) -> tuple[Sample, Sample]:
    """Split a sample at random into two independent halves."""
    first: list[Column] = []
    sizes: list[float] = []
    for column, size in zip((sample.p, sample.q), sample.sizes, strict=True):
        counts = column.astype(np.int64)
        if sample.model == "poisson":
            first.append(rng.binomial(counts, 0.5))
            sizes.append(size / 2)
        else:
            take = -(-int(size) // 2)
            sizes.append(float(take))
            first.append(_without_replacement(counts, int(size), take, rng))
    one = replace(sample, p=first[0], q=first[1], sizes=(sizes[0], sizes[1]))
    rest = (sample.sizes[0] - sizes[0], sample.sizes[1] - sizes[1])
    other = replace(sample, p=sample.p - first[0], q=sample.q - first[1], sizes=rest)
    return one, other


def _without_replacement(
    counts: NDArray[np.int64], size: int, take: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the counts in a random part of a sample."""
    if size < 10**9:
        padded = np.append(counts, size - counts.sum())
        return np.asarray(rng.multivariate_hypergeometric(padded, take, method="marginals")[:-1])
    raise ParameterError(
        f"samples of {size} are too many to split in fixed halves; use roles='shared'"
    )


def resampled(sample: Sample, rng: np.random.Generator) -> Sample:
    """Draw a sample again from the observed shares."""
    drawn: list[Column] = []
    for column, size, known in zip((sample.p, sample.q), sample.sizes, sample.known, strict=True):
        if known:
            drawn.append(column)
        elif sample.model == "poisson":
            drawn.append(rng.poisson(column))
        else:
            shares_of_all = np.append(column, size - column.sum()) / size
            drawn.append(rng.multinomial(int(size), shares_of_all)[:-1])
    return replace(sample, p=drawn[0], q=drawn[1])


def jackknife(sample: Sample, tuples: Tuples, score: Score) -> float:
    """Estimate the standard error of a sum of scores, leaving out one observation at a time.

    Standard error. On average at least the true one for Poisson counts, whatever the score: ``Var
    s(N) <= E N (s(N) - s(N-1))**2`` (the Efron-Stein inequality; Efron and Stein, *Annals of
    Statistics* 9, 1981). For fixed sizes the differences are centred; 0 if all of them are alike.
    """
    p, q = tuples.columns
    here = score(p, q, p, q)
    variance = 0.0
    for side, (size, known) in enumerate(zip(sample.sizes, sample.known, strict=True)):
        if known:
            continue
        column = tuples.columns[side]
        seen = column > 0
        left, right = p[seen] - (side == 0), q[seen] - (side == 1)
        change = here[seen] - score(left, right, left, right)
        weight = (tuples.multiplicity * column)[seen]
        raw = float(weight @ change**2)
        centred = raw - (float(weight @ change) ** 2 / size if sample.model == "fixed" else 0.0)
        variance += centred if centred > _CANCELLED * raw else 0.0
    return float(np.sqrt(max(variance, 0.0)))
