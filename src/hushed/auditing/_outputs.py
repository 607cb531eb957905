"""Outputs of any shape as rows of numbers: values, lengths, types, exceptions, bits of doubles."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed.auditing._mechanisms import Raised
from hushed.errors import BadFunction

__all__ = ["LOWEST_BIT", "STRUCTURE", "Encoder", "encoder_for", "lowest_bit"]

LOWEST_BIT = "the exponent of the lowest set bit of "

Floats = NDArray[np.float64]

STRUCTURE = ("type", "length", "types of the parts", "whole output")
_WIDEST = 64
_NAMED = 4096
_NO_BIT = 2000.0
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """How outputs become rows of numbers; fixed before the samples that are scored.

    Parameters
    ----------
    width : int
        Numbers kept of each output.
    objects : bool
        True if outputs are Python objects, whose first columns are `STRUCTURE`; False if they
        come as one numeric array.
    names : mapping of float to str
        Words for codes seen so far.
    """

    width: int
    objects: bool
    names: Mapping[float, str] = field(default_factory=dict)

    @property
    def columns(self) -> int:
        """Columns of an encoded output."""
        return self.width + len(STRUCTURE) * self.objects

    def encode(self, outputs: Any) -> Floats:
        """Encode outputs.

        Parameters
        ----------
        outputs : ndarray or list
            What the mechanism gave, one entry per run.

        Returns
        -------
        ndarray of float, shape (runs, columns)
            NaN stands for what is no number.

        Raises
        ------
        BadFunction
            If an array changes its shape from one batch to the next.
        """
        if self.objects:
            return np.array([_row(output, self.width) for output in outputs]).reshape(
                len(outputs), self.columns
            )
        flat = _flat(outputs)
        if flat is None or flat.shape[1] != self.width:
            raise BadFunction(
                "the mechanism returned arrays of different shapes in different batches; return a "
                "list of outputs if their lengths vary"
            )
        return flat

    def values(self, encoded: Floats) -> Floats:
        """Columns that hold the numbers of the output.

        Parameters
        ----------
        encoded : ndarray, shape (runs, columns)
            Encoded outputs.

        Returns
        -------
        ndarray, shape (runs, width)
            The numbers.
        """
        return encoded[:, len(STRUCTURE) * self.objects :]


def encoder_for(probes: Iterable[Any]) -> Encoder:
    """Choose an encoding from a few outputs on every table.

    Parameters
    ----------
    probes : iterable of ndarray or list
        Outputs of several calls.

    Returns
    -------
    Encoder
        Numeric arrays of one shape stay arrays; anything else is read part by part, up to 64
        parts. What is not kept can only make a bound smaller.
    """
    seen = list(probes)
    arrays = [_flat(outputs) for outputs in seen]
    widths = {each.shape[1] for each in arrays if each is not None}
    if len(widths) == 1 and all(each is not None for each in arrays):
        return Encoder(width=widths.pop(), objects=False)
    outputs = [output for part in seen for output in part]
    names: dict[float, str] = {}
    widest = 1
    for output in outputs:
        kinds, leaves = _leaves(output)
        widest = max(widest, len(leaves))
        if len(names) < _NAMED:
            names[_code(_type_name(output))] = _type_name(output)
            names[_code(",".join(kinds))] = _shortened(",".join(kinds))
            names[_code(_text(output))] = _shortened(_text(output))
    return Encoder(width=min(widest, _WIDEST), objects=True, names=names)


def _flat(outputs: Any) -> Floats | None:
    """Numeric array as one row per run; None for anything else."""
    if not isinstance(outputs, np.ndarray) or outputs.dtype.kind not in "biufc":
        return None
    flat = outputs.reshape(len(outputs), -1)
    if flat.dtype.kind == "c":
        flat = np.concatenate([flat.real, flat.imag], axis=1)
    return flat.astype(np.float64)


def _row(output: Any, width: int) -> list[float]:
    kinds, leaves = _leaves(output)
    scalar = isinstance(output, np.ndarray) and not output.ndim  # Sized, but without a length
    length = float(len(output)) if isinstance(output, Sized) and not scalar else -1.0
    head = [_code(_type_name(output)), length, _code(",".join(kinds)), _code(_text(output))]
    return head + leaves[:width] + [np.nan] * (width - len(leaves))


def _leaves(output: Any) -> tuple[list[str], list[float]]:
    """Types and numbers of the parts of an output, read from left to right."""
    kinds: list[str] = []
    leaves: list[float] = []
    for part in _parts(output):
        kinds.append(_type_name(part))
        leaves.append(_number(part))
    return kinds, leaves


def _parts(output: Any) -> Iterable[Any]:
    if isinstance(output, Mapping):
        items = sorted(output.items(), key=lambda item: repr(item[0]))
        return (leaf for item in items for part in item for leaf in _parts(part))
    if isinstance(output, set | frozenset):
        return (leaf for part in sorted(output, key=repr) for leaf in _parts(part))
    if isinstance(output, np.ndarray) and output.ndim:
        return (leaf for part in output.tolist() for leaf in _parts(part))
    if isinstance(output, list | tuple):
        return (leaf for part in output for leaf in _parts(part))
    return (output.item(),) if isinstance(output, np.ndarray) else (output,)


def _number(part: Any) -> float:
    if isinstance(part, bool | int | float | np.bool_ | np.integer | np.floating):
        try:
            return float(part)
        except OverflowError:
            return np.inf if part > 0 else -np.inf
    if isinstance(part, str | bytes):
        return _code(part if isinstance(part, str) else repr(part))
    return np.nan


def _type_name(output: Any) -> str:
    if isinstance(output, Raised):
        return f"exception {output.name}"
    return "None" if output is None else type(output).__name__


def _text(output: Any) -> str:
    """Canonical text: equal for equal outputs, whatever can be hashed."""
    if isinstance(output, np.ndarray):
        return f"array {output.tolist()!r}"
    if isinstance(output, Mapping | set | frozenset):
        return f"{_type_name(output)} {list(map(_text, _parts(output)))!r}"
    if isinstance(output, np.generic):
        return repr(output.item())
    return _ADDRESS.sub("", repr(output))  # where an object lies in memory is no output


def _code(text: str) -> float:
    """Code a text in 49 bits, so that a double holds it; equal codes can only merge events."""
    content = text.encode("utf-8", "surrogatepass")
    return float(zlib.crc32(content) * 2**17 + zlib.adler32(content) % 2**17)


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def lowest_bit(values: Floats) -> Floats:
    """Exponent of the lowest set bit of a double: x is a multiple of 2**k up to this k.

    Parameters
    ----------
    values : ndarray of float
        Any doubles.

    Returns
    -------
    ndarray of float
        At least -1074; 2000 for zero, infinity and NaN.

    Notes
    -----
    The set of doubles that a sampler can reach differs between tables: Mironov, *On significance
    of the least significant bits for differential privacy*, CCS 2012.
    """
    regular = np.isfinite(values) & (values != 0)
    mantissa, exponent = np.frexp(np.where(regular, values, 1.0))
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    _, zeros = np.frexp((whole & -whole).astype(np.float64))
    return np.where(regular, exponent + zeros - 54.0, _NO_BIT)
