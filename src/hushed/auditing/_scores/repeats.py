"""Scores for whole outputs that repeat among others that hardly do: a failure, a zero, None."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushed.auditing._naming import RARE, name_outputs, name_type, say_outputs, say_types
from hushed.auditing._outputs import STRUCTURE, Encoder
from hushed.auditing._scores.bins import find_places

Floats = NDArray[np.float64]

_LEAST = 3  # times that an output was seen, on both tables together
_MOST = 64  # outputs that stand apart, those that differ most
_PRIOR = 3.0  # runs on either table, which a count is shrunk by
_SHOWN = 6
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_WHOLE_BITS = np.uint64(11)  # left out, so that a double holds the others


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Repeats:
    """Log ratio of the outputs that repeat; 0 for all others.

    `keys` are sorted codes: of whole outputs, or with `types` of their types. `names` are words for
    them.

    Notes
    -----
    Chosen on training runs, as every score is. An output that comes up in one of a thousand runs is
    no quantile of numbers that never repeat, but what tells the tables apart if it comes up on one.
    """

    encoder: Encoder
    keys: Floats
    ratios: Floats
    names: tuple[str, ...]
    types: bool

    def evaluate(self, encoded: Floats) -> Floats:
        """Score each output."""
        codes = _encode_wholes(self.encoder, encoded, types=self.types)
        return np.append(self.ratios, 0.0).take(find_places(codes, self.keys))

    def describe(self, threshold: float, *, first: bool) -> str:
        """Name the outputs of an event, or those outside of it if it is nearly all of them."""
        inside = self.ratios >= threshold if first else self.ratios <= threshold
        others = threshold <= 0.0 if first else threshold >= 0.0
        told = np.flatnonzero(~inside if others else inside)
        order = told[np.argsort(-np.abs(self.ratios[told]), kind="stable")]
        names = list(dict.fromkeys(self.names[at] for at in order if self.names[at] != RARE))
        rare = sum(self.names[at] == RARE for at in order)
        shown = [*names[:_SHOWN], *[f"{len(names) - _SHOWN} more"] * (len(names) > _SHOWN)]
        shown += [RARE if rare == 1 else f"one of {rare} rare outputs"] * (rare > 0)
        if not shown:
            return "any output" if others else "nothing"
        words = say_types(shown) if self.types else say_outputs(shown)
        return f"all but this: {words}" if others else words


def fit_repeats(encoder: Encoder, first: Floats, second: Floats) -> list[Repeats]:
    """Count whole outputs that repeat, and types; those of which none repeats are left out."""
    kinds = (False, True) if encoder.objects else (False,)
    found = (_fit_codes(encoder, first, second, types=types) for types in kinds)
    return [each for each in found if each is not None]


def _fit_codes(encoder: Encoder, first: Floats, second: Floats, *, types: bool) -> Repeats | None:
    codes = [_encode_wholes(encoder, each, types=types) for each in (first, second)]
    both = np.sort(np.concatenate(codes))
    again = np.unique(both[_LEAST - 1 :][both[_LEAST - 1 :] == both[: len(both) - _LEAST + 1]])
    if not len(again) or (types and len(again) == 1 and both[0] == both[-1]):
        return None
    counts = [_count(each, again) for each in codes]
    totals = [max(1, len(each)) for each in codes]
    scaled = counts[1] * (totals[0] / totals[1])
    apart = np.abs(counts[0] - scaled) / np.sqrt(counts[0] + scaled)
    kept = np.sort(np.argsort(-apart, kind="stable")[:_MOST])
    keys = again[kept]
    ratios = np.log((counts[0][kept] + _PRIOR) / (scaled[kept] + _PRIOR))
    names = _name_keys(encoder, keys, zip((first, second), codes, strict=True), types=types)
    return Repeats(encoder=encoder, keys=keys, ratios=ratios, names=names, types=types)


def _count(codes: Floats, keys: Floats) -> Floats:
    found = np.bincount(find_places(codes, keys), minlength=len(keys) + 1)[:-1]
    return found.astype(np.float64)


def _name_keys(
    encoder: Encoder, keys: Floats, sides: Iterable[tuple[Floats, Floats]], *, types: bool
) -> tuple[str, ...]:
    if types:
        return tuple(name_type(encoder, float(code)) for code in keys)
    rows: dict[float, Floats] = {}
    for encoded, codes in sides:
        at = np.flatnonzero(np.isin(codes, keys))
        found, where = np.unique(codes[at], return_index=True)
        rows |= {float(code): encoded[at[i]] for code, i in zip(found, where, strict=True)}
    return name_outputs(encoder, np.stack([rows[float(code)] for code in keys]))


def _encode_wholes(encoder: Encoder, encoded: Floats, *, types: bool) -> Floats:
    """Code whole outputs: by their texts, and rows of an array by a hash of all of their bits.

    Equal codes of outputs that differ can only merge events.
    """
    if encoder.objects:
        return encoded[:, 0 if types else len(STRUCTURE) - 1]
    codes = np.zeros(len(encoded), dtype=np.uint64)
    for column in encoded.T:
        cells = np.where(np.isnan(column), np.nan, column).view(np.uint64)  # one NaN for all
        codes = (codes ^ cells) * _FACTOR
        codes ^= codes >> np.uint64(29)
    return (codes >> _WHOLE_BITS).astype(np.float64)
