"""What an output holds, part by part: an audit that merged what it cannot see would pass all of it.

Every part is read, also of frames, tensors and objects of any class. An output that hides parts,
as a generator or a function does, is refused when an audit starts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sized
from enum import Enum
from typing import Any, NoReturn

import numpy as np

from hushed.auditing._digits import EXCEPTION, list_lower, list_numbers, list_written
from hushed.auditing._opening import Hidden, list_attributes, open_parts, require_importable
from hushed.auditing._programs import NUMBER, Raised, Written
from hushed.errors import BadFunction

UNREADABLE = "unreadable"
_DEEPEST = 50  # parts within parts; what holds itself has no end
_LEAVES = 256  # numbers of an output that are kept
_PLAIN = frozenset({bool, int, float, complex, str, bytes, bytearray, type(None), type(...), range})
_QUICK = _PLAIN | {np.bool_, np.str_, np.float64, np.float32, np.int64, np.int32}
_BASES = (bool, int, float, complex, str, bytes, bytearray)
# Whose objects are told by their texts.
_TOLD_BY_TEXT = frozenset(
    {"datetime", "decimal", "fractions", "ipaddress", "pandas", "pathlib", "uuid", "zoneinfo"}
)
_NUMBER = NUMBER
_LONGEST = 10_000  # letters of the texts of an output that are looked through for numbers
_SIMPLE_ARRAYS = frozenset("biufcSUmM")
_COMMON_TYPES = frozenset({"float64", "int64", "bool", "object"})


@dataclasses.dataclass(frozen=True, slots=True)
class _Found:
    """Types of the parts, and their numbers, from left to right; letters that were looked through.

    What doubles leave out of wide numbers comes after all of them, for only some may be wide. The
    letters are one number in a list, so that parts of a dict go on where those before ended.
    """

    kinds: list[str] = dataclasses.field(default_factory=list)
    leaves: list[float] = dataclasses.field(default_factory=list)
    lower: list[float] = dataclasses.field(default_factory=list)
    letters: list[int] = dataclasses.field(default_factory=lambda: [0])


def read_object(output: Any) -> tuple[tuple[str, str, str], float, list[float]]:
    """Type, types of the parts and whole output as texts; its length; the numbers in it.

    What cannot be read, because it holds itself, is more than 50 parts deep, hides a part, or fails
    when it is looked at, is known by its type alone: that merges outputs, which can only make a
    bound smaller.
    """
    found, form = _Found(), ""
    if isinstance(output, Written):
        form, output = output.form, output.value
        found.kinds.append(f"written {form!r}")
    kind = _name_type(output)
    try:
        whole = _write(output, 0, found) + form
    except Exception:  # whatever its own methods raise
        return (kind, UNREADABLE, f"{UNREADABLE} {kind}"), -1.0, []
    return (kind, ",".join(found.kinds), whole), _measure(output), found.leaves + found.lower


def require_open(outputs: Iterable[Any]) -> None:
    """Refuse outputs that hide a part, or of which none can be read: nothing would be refuted.

    Raises
    ------
    BadFunction
        Naming what cannot be looked into.
    """
    bare = [each.value if isinstance(each, Written) else each for each in outputs]
    answers = [each for each in bare if not isinstance(each, Raised)]
    closed: list[str] = []
    for each in answers:
        try:
            _write(each, 0, _Found())
        except Hidden as hidden:
            _refuse(f"a {hidden}")
        except RecursionError:
            closed.append("parts within parts without end")
        except Exception as cause:
            closed.append(f"a {_name_type(each)} that raises {type(cause).__name__}")
    if closed and len(closed) == len(answers):
        _refuse(closed[0])


def _refuse(closed: str) -> NoReturn:
    raise BadFunction(
        f"what the mechanism returned holds {closed}: an audit cannot look into it, and would take "
        "all such outputs for one and the same. Return numbers, texts, arrays, frames, or lists "
        "and dicts of these"
    )


def _measure(output: Any) -> float:
    """Length of an output; -1 if it has none."""
    try:
        return float(len(output)) if isinstance(output, Sized) else -1.0
    except Exception:  # an array without dimensions, or a class of somebody's own
        return -1.0


def _write(value: Any, depth: int, found: _Found) -> str:
    """Write a text that is equal for equal values only, and note the parts on the way."""
    if depth > _DEEPEST:
        raise RecursionError
    text = _write_single(value)
    if text is not None:
        _note(value, found)
        zone = getattr(value, "tzinfo", None)
        if zone is not None:
            text += f" in {_write(zone, depth + 1, found)}"
        plain = type(value) in _PLAIN or not isinstance(value, _BASES)
        return text if plain else text + _write_attributes(value, depth, found)
    if isinstance(value, np.ndarray):
        return _write_array(value, depth, found)
    return _write_parts(value, depth, found)


def _write_single(value: Any) -> str | None:
    """Write what has no parts; None of what may have some."""
    if type(value) in _PLAIN or isinstance(value, Raised):
        return repr(value)
    if isinstance(value, Enum):
        return f"<{type(value).__name__}.{value.name}: {value.value!r}>"
    if isinstance(value, type):
        require_importable(value)
        return repr(value)
    if isinstance(value, np.generic):
        return _write_generic(value)
    # Of a class of somebody's own, which may write itself as it likes.
    base = next((each for each in _BASES if isinstance(value, each)), None)
    if base is not None:
        return base.__repr__(value)
    return repr(value) if _is_told_by_text(value) else None


def _write_generic(value: Any) -> str | None:
    """Write a number of NumPy as Python's, and with the unit that Python's moments have not."""
    if isinstance(value, np.void) and value.dtype.names:
        return None
    return f"{value.dtype} {value.item()!r}" if value.dtype.kind in "mM" else repr(value.item())


def _write_array(value: Any, depth: int, found: _Found) -> str:
    """Write all of an array; of long ones with numbers only, the first are noted as parts."""
    name = str(value.dtype) + _describe_layout(value)
    head = "array" if name in _COMMON_TYPES else f"array of {name}"
    head += f" of shape {value.shape}" if not value.size and value.ndim > 1 else ""
    if isinstance(value, np.ma.MaskedArray):
        both = [np.asarray(value.data), np.ma.getmaskarray(value)]  # also what the mask hides
        return f"masked {_write(both, depth + 1, found)}" + _write_attributes(value, depth, found)
    if not value.ndim:
        held = value[()] if value.dtype.names else value.item()
        return _write(held, depth + 1, found) + _write_attributes(value, depth, found)
    held = value.tolist()
    if value.dtype.names:  # fields in the order of exact numbers tell of them, as keys do
        found.kinds.append(name)
    if value.dtype.kind not in _SIMPLE_ARRAYS:
        return f"{head} {_write(held, depth + 1, found)}" + _write_attributes(value, depth, found)
    found.kinds.append(f"{name} {value.shape}")
    _note_cells(value, held, found)
    return f"{head} {held!r}" + _write_attributes(value, depth, found)


def _describe_layout(value: Any) -> str:
    """Say what a file of an array has besides its type and cells."""
    by_columns = value.flags.f_contiguous and not value.flags.c_contiguous
    metadata = f" with {dict(value.dtype.metadata)!r}" if value.dtype.metadata else ""
    return f"{metadata}{' by columns' * by_columns}"


def _note_cells(value: Any, held: Any, found: _Found) -> None:
    """Note the first numbers of an array without objects; real ones at once, for that is quick."""
    kind = value.dtype.kind
    if kind in "biuf":
        first = np.asarray(value).ravel()[:_LEAVES]
        with np.errstate(all="ignore"):  # of wider numbers some are infinite as doubles
            found.leaves.extend(first.astype(np.float64).tolist())
        if value.dtype.itemsize >= 8 and value.dtype != np.float64:
            found.lower.extend(each for cell in first for each in list_lower(cell))
        return
    for cell in value.ravel()[:_LEAVES] if kind in "mM" else _flatten(held):
        if kind in "SU":
            _note(cell, found)
        else:
            found.leaves.extend(list_numbers(cell))
            found.lower.extend(list_lower(cell))


def _flatten(held: Any) -> list[Any]:
    """First cells of lists within lists."""
    while held and isinstance(held[0], list):
        held = [cell for part in held[:_LEAVES] for cell in part][:_LEAVES]
    return list(held[:_LEAVES])


def _write_parts(value: Any, depth: int, found: _Found) -> str:
    """Write what holds others: a container, a frame, a tensor, or an object by its attributes."""
    below = depth + 1
    kind = type(value).__name__
    if depth and isinstance(value, Mapping | set | frozenset | list | tuple):
        _note_size(value, found)
    if isinstance(value, Mapping):
        inner = _write_sorted(value.items(), depth, found, ordered=True)
        return f"{kind} {{{inner}}}" + _write_attributes(value, depth, found)
    if isinstance(value, set | frozenset):
        inner = _write_sorted(((part,) for part in value), depth, found, ordered=False)
        return f"{kind} {{{inner}}}" + _write_attributes(value, depth, found)
    if isinstance(value, list | tuple):
        return _write_sequence(value, depth, found)
    parts = open_parts(value)
    found.kinds.append(f"{kind} of {' '.join(parts)}")  # the same numbers may have other names
    texts = [f"{name}={_write(part, below, found)}" for name, part in parts.items()]
    return f"{kind}({', '.join(texts)})"


def _note_size(value: Any, found: _Found) -> None:
    """Note which container lies within another one: an empty one holds no part that would tell."""
    found.kinds.append(f"{type(value).__name__} of {len(value)}")


def _write_sequence(value: Any, depth: int, found: _Found) -> str:
    kind = type(value)
    if kind in (list, tuple) and depth < _DEEPEST and _QUICK.issuperset(map(type, value)):
        for cell in value[:_LEAVES]:
            _note(cell, found)
        return repr(value)
    inner = ", ".join([_write(part, depth + 1, found) for part in value])
    if kind is list:
        return f"[{inner}]"
    if kind is tuple:
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    fields = getattr(kind, "_fields", None)  # of a named tuple
    if isinstance(fields, tuple):
        found.kinds.append(f"{kind.__name__} of {' '.join(map(str, fields))}")
        inner = f"{' '.join(map(str, fields))}: {inner}"
    return f"{kind.__name__}({inner})" + _write_attributes(value, depth, found)


def _write_sorted(
    parts: Iterable[tuple[Any, ...]], depth: int, found: _Found, *, ordered: bool
) -> str:
    """Write parts, keys with their values, in an order that runs share.

    The order that they come in is noted beside, where they have one: keys of a dict that are
    sorted by exact numbers tell of them, whatever noise the numbers have.
    """
    written = []
    for place, part in enumerate(parts):
        own = _Found(letters=found.letters)
        written.append((": ".join([_write(each, depth + 1, own) for each in part]), own, place))
    written.sort(key=lambda each: each[0])
    for _, own, _ in written:
        found.kinds.extend(own.kinds)
        found.leaves.extend(own.leaves)
        found.lower.extend(own.lower)
    inner = ", ".join(text for text, _, _ in written)
    places = [place for _, _, place in written]
    if not ordered or places == sorted(places):
        return inner
    order = f"in the order {' '.join(map(str, places))}"
    found.kinds.append(order)
    return f"{inner} {order}"


def _write_attributes(value: Any, depth: int, found: _Found) -> str:
    """Write what an object of a class of somebody's own holds besides."""
    held = list_attributes(value)
    return f" {_write(held, depth + 1, found)}" if held else ""


def _is_told_by_text(value: Any) -> bool:
    """Whether an object is one of those of which its library writes all that there is."""
    if hasattr(value, "__dict__") or isinstance(value, Sized):
        return False
    return type(value).__module__.partition(".")[0] in _TOLD_BY_TEXT


def _note(part: Any, found: _Found) -> None:
    """Note type and numbers of a part; of a text also those written in it, and what is around them.

    Each may be another one by noise, so that the words around are told apart without them.
    """
    if type(part) is float:
        found.kinds.append("float")
        found.leaves.append(part)
        return
    bare = _is_told_by_text(part) and np.isnan(list_numbers(part)).all()
    parts = _split_text(repr(part) if bare else part, found)
    words = f" {'#'.join(parts[::2])!r}" if len(parts) > 1 or bare else ""
    told = f" {part.__qualname__}" if isinstance(part, type) else ""
    told += " again" if getattr(part, "fold", 0) else ""  # an hour that a clock shows twice
    unit = f" {part.dtype}" if isinstance(part, np.datetime64 | np.timedelta64) else ""
    found.kinds.append(_name_type(part) + told + unit + words)
    room = _LEAVES - len(found.leaves)
    if room > 0:
        held = part.value if isinstance(part, Enum) else part
        written = parts[1 : 2 * room : 2]
        found.leaves.extend(list_numbers(held))
        found.leaves.extend(map(float, written))
        found.lower.extend(list_lower(held))
        found.lower.extend(each for number in written for each in list_written(number))


def _split_text(part: Any, found: _Found) -> list[str]:
    """Split a text, or bytes, at its numbers, which have the odd places; nothing of other parts.

    Only so many letters of an output are split, for it takes time.
    """
    room = _LONGEST - found.letters[0]
    if room <= 0 or not isinstance(part, str | bytes | bytearray):
        return []
    first = str.__str__(part)[:room] if isinstance(part, str) else part[:room].decode("latin-1")
    found.letters[0] += len(first)
    return _NUMBER.split(first)


def _name_type(output: Any) -> str:
    if isinstance(output, Raised):
        return f"{EXCEPTION}{output.name}"
    return "None" if output is None else type(output).__name__
