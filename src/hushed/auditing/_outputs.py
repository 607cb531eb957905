"""Outputs of any shape as rows of numbers, and the feature maps by which scores look at them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hushed._ground.printing import flat
from hushed.auditing._digits import FAILED, WHOLE, hash_text
from hushed.auditing._reading import read_object, require_open
from hushed.errors import BadFunction

Floats = NDArray[np.float64]
FeatureMap = Literal["values", "increments", "summaries", "bits", "structure"]

LOWEST_BIT = "the exponent of the lowest set bit of "
STRUCTURE = ("type", "length", "types of the parts", "whole output")
SUMMARIES = ("the sum", "the smallest", "the largest", "the place of the largest", "the gaps")
_WIDEST = 256
_NAMED = 4096
NO_BIT = 2000.0  # of zero; beyond all exponents
_LEAST = 5e-324


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """How outputs become rows of numbers; fixed before the samples that are scored.

    An output that is a Python object (`objects`) has the columns `STRUCTURE` before its `width`
    numbers; an output that is part of a numeric array has its numbers alone, and `form` says what
    the arrays are of. `names` has words for the codes seen so far.
    """

    width: int
    objects: bool
    form: str = ""
    names: Mapping[float, str] = field(default_factory=dict)

    @property
    def columns(self) -> int:
        """Columns of an encoded output."""
        return self.width + len(STRUCTURE) * self.objects

    def encode(self, outputs: Any) -> Floats:
        """Encode outputs, one row each; NaN stands for what is not a number.

        Zero with a minus, which shows, becomes the number below zero.
        """
        if self.objects:
            rows = [_encode_object(output, self.width) for output in outputs]
            encoded = np.array(rows).reshape(len(rows), self.columns)
        elif _describe_form(outputs) == self.form:
            encoded = _flatten_array(outputs)
        else:
            raise BadFunction(
                "the mechanism returned arrays of different shapes or types in different batches; "
                "return a list of outputs if these vary"
            )
        below = np.signbit(encoded) & (encoded == 0)
        return np.where(below, -_LEAST, encoded) if below.any() else encoded

    def count_failed(self, encoded: Floats) -> int:
        """Count the encoded outputs that are runs that failed."""
        return int((encoded[:, 0] >= FAILED).sum()) if self.objects else 0

    def values(self, encoded: Floats) -> Floats:
        """Columns of encoded outputs that hold their numbers."""
        return encoded[:, len(STRUCTURE) * self.objects :]


def choose_encoder(probes: Iterable[Any]) -> Encoder:
    """Choose an encoding from a few outputs on every table.

    Numeric arrays of one shape stay arrays; anything else is read part by part, up to 256 numbers.
    What is not kept can only make a bound smaller.

    Raises
    ------
    BadFunction
        If an output hides what it holds.
    """
    seen = list(probes)
    forms = {_describe_form(outputs) for outputs in seen}
    if len(forms) == 1 and all(forms) and all(map(_is_exact, seen)):
        return Encoder(width=_flatten_array(seen[0]).shape[1], objects=False, form=forms.pop())
    outputs = [output for part in seen for output in part]
    require_open(outputs)
    names: dict[float, str] = {}
    widest = 1
    for output in outputs:
        texts, _, leaves = read_object(output)
        widest = max(widest, len(leaves))
        if len(names) < _NAMED:
            names |= {hash_text(text): _shorten(flat(text)) for text in texts}
    return Encoder(width=min(widest, _WIDEST), objects=True, names=names)


def _describe_form(outputs: Any) -> str:
    """Say what each output of a numeric array is; nothing of anything else, as one with a mask."""
    plain = isinstance(outputs, np.ndarray) and not isinstance(outputs, np.ma.MaskedArray)
    kind = outputs.dtype.kind if plain else ""
    return f"{outputs.dtype} of shape {outputs.shape[1:]}" if kind and kind in "biufc" else ""


def _flatten_array(outputs: Any) -> Floats:
    """Numeric array as one row per run."""
    flat = outputs.reshape(len(outputs), -1)
    if flat.dtype.kind == "c":
        flat = np.concatenate([flat.real, flat.imag], axis=1)
    return np.array(flat, dtype=np.float64)  # a copy: the array may be used again


def _is_exact(outputs: Any) -> bool:
    """Whether doubles tell the numbers of an array apart, as far as it shows."""
    if outputs.dtype.kind in "iu" and outputs.size:
        return bool(outputs.max() <= WHOLE and outputs.min() >= -WHOLE)
    return bool(outputs.dtype.itemsize <= (16 if outputs.dtype.kind == "c" else 8))


def _encode_object(output: Any, width: int) -> list[float]:
    (kind, kinds, whole), length, leaves = read_object(output)
    head = [hash_text(kind), length, hash_text(kinds), hash_text(whole)]
    return head + leaves[:width] + [np.nan] * (width - len(leaves))


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def find_lowest_bit(values: Floats) -> Floats:
    """Exponent of the lowest set bit of a double: x is a multiple of 2**k up to this k.

    At least -1074; 2000 for zero, and NaN for infinity and for what is no number: that a run
    failed, or gave none, tells nothing of bits.

    Notes
    -----
    The set of doubles that a sampler can reach differs between tables: Mironov, *On significance
    of the least significant bits for differential privacy*, CCS 2012.
    """
    regular = np.isfinite(values) & (values != 0)
    mantissa, exponent = np.frexp(np.where(regular, values, 1.0))
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    # n & -n keeps the lowest set bit alone; frexp of a power of two gives its place plus one.
    _, zeros = np.frexp((whole & -whole).astype(np.float64))
    return np.where(regular, exponent + zeros - 54.0, np.where(values == 0, NO_BIT, np.nan))


def apply_feature_map(encoder: Encoder, encoded: Floats, name: FeatureMap) -> Floats:
    """Columns of one feature map, for every run.

    The numbers themselves; differences of neighbouring numbers, the first one kept; sum, least,
    largest and position of the largest; exponents of lowest set bits; types and lengths.
    """
    if name == "structure":
        return encoded[:, : (len(STRUCTURE) - 1) * encoder.objects]
    values = encoder.values(encoded)
    if name == "increments":
        with np.errstate(invalid="ignore"):
            return np.asarray(np.diff(values, axis=1, prepend=0.0))
    if name == "bits":
        return find_lowest_bit(values)
    if name == "summaries":
        return _summarise(values)
    return values


def _summarise(values: Floats) -> Floats:
    """Sum, least, largest, place of the largest, and gaps of each output, column after column."""
    found = np.zeros((len(SUMMARIES), len(values)))
    total, least, largest, place, gaps = found
    for at, cells in enumerate(values.T):
        missing = np.isnan(cells)
        column = np.where(missing, 0.0, cells) if missing.any() else cells
        gaps += missing
        total += column
        if not at:
            least[:], largest[:] = column, column
            continue
        np.putmask(place, column > largest, at)
        np.minimum(least, column, out=least)
        np.maximum(largest, column, out=largest)
    return found.T


def iterate_columns(
    encoder: Encoder,
    encoded: Floats,
    maps: tuple[FeatureMap, ...],
    kept: tuple[int, ...] | None = None,
) -> Iterator[Floats]:
    """Columns of several feature maps, one after the other; only those `kept`, if given."""
    start = 0
    for name in maps:
        places = range(len(name_columns(encoder, name)))
        wanted = [at for at in places if kept is None or start + at in kept]
        start += len(places)
        if wanted:
            yield from _read_columns(encoder, encoded, name, wanted)


def _read_columns(
    encoder: Encoder, encoded: Floats, name: FeatureMap, places: Iterable[int]
) -> Iterator[Floats]:
    """Compute some columns of a feature map, each by itself where that is possible."""
    values = encoder.values(encoded)
    if name == "bits":
        yield from (find_lowest_bit(values[:, at]) for at in places)
    elif name == "increments":
        yield from (
            _subtract(values[:, at], values[:, at - 1]) if at else values[:, 0] for at in places
        )
    elif name == "values":
        yield from (values[:, at] for at in places)
    else:
        every = apply_feature_map(encoder, encoded, name)
        yield from (every[:, at] for at in places)


def _subtract(one: Floats, other: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.asarray(one - other)


def name_columns(encoder: Encoder, name: FeatureMap) -> list[str]:
    """Words for the columns of a feature map."""
    if name == "structure":
        return [f"the {part} of the output" for part in STRUCTURE[:-1]] * encoder.objects
    if name == "summaries":
        return list(SUMMARIES)
    prefix = {"bits": LOWEST_BIT, "increments": "the increment to "}
    parts = [f"number {i + 1}" for i in range(encoder.width)]
    return [
        prefix.get(name, "") + part for part in (parts if encoder.width > 1 else ["the output"])
    ]
