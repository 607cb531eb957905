"""How a cell of a file is written: SQL of DuckDB that reads a string as a declared type.

DuckDB reads more than people mean, and another version of it reads other things: ``1_0`` is ten,
``+-1`` minus one, ``24-01-05`` in the year 24, ``01:30 PM`` in the night, and the ``+02:00`` of a
time is dropped. So only what is written as here is read, and all else is missing. Numbers are those
of `hushed._ground.numerals.read_cell`: every command reads a file alike.
"""

from __future__ import annotations

from collections.abc import Mapping

from hushed._ground.numerals import LONGEST
from hushed._ground.printing import shown
from hushed._ground.types import ColumnType

_NAMED = 10  # columns named in a remark, which each price and answer repeats
_BLANK = r"[ \t\r\n]*"
_SIGN = "[-+]?"
_NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|(?i:inf|infinity|nan)"
_WHOLE = r"[0-9]+(?:\.0*)?"
_POWER = r"[0-9]+(?:\.[0-9]*)?[eE]\+?[0-9]+"
_EXACT = 18  # characters of a number with an exponent: 15 digits with a fraction, exact in doubles
_DAY = "[0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2}"
_CLOCK = r"[ T][0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]*)?)?"
_ZONE = "(?:Z|[-+][0-9]{2}(?::?[0-9]{2})?)"


def read_spelling(text: str, declared: ColumnType) -> str:
    """Write SQL that reads a string as a type; what is not written so is missing."""
    if declared == "string":
        return text
    if declared == "bool":
        true, false = (_is(text, f"(?i:{w})") for w in ("true|t|yes|y|1", "false|f|no|n|0"))
        return f"CASE WHEN {true} THEN TRUE WHEN {false} THEN FALSE END"
    if declared in ("int", "float"):
        return _read_whole(text) if declared == "int" else _read_double(text)
    day = f"TRY_CAST({_take(text, f'{_DAY}(?:{_CLOCK})?')} AS TIMESTAMP)"
    # The type without a zone drops the zone, or does not, as the version has it.
    zoned = (
        f"make_timestamp(epoch_us(TRY_CAST({_take(text, _DAY + _CLOCK + _ZONE)} AS TIMESTAMPTZ)))"
    )
    found = f"coalesce({day}, {zoned})"
    return f"TRY_CAST({found} AS DATE)" if declared == "date" else found


def say_how_read(delimiter: str, declared: Mapping[str, ColumnType]) -> tuple[str, ...]:
    """Say how numbers and dates must be written, where the header makes another way likely.

    Programs write a semicolon between cells where numbers have a decimal comma. The header and the
    declared types alone decide: what the cells hold is private.
    """
    read = [name for name, each in declared.items() if each in ("float", "date", "timestamp")]
    if delimiter != ";" or not read:
        return ()
    more = f" and {len(read) - _NAMED} more" if len(read) > _NAMED else ""
    named = ", ".join(map(shown, read[:_NAMED])) + more
    return (
        "The cells of this file are separated by semicolons, as where numbers have a decimal comma "
        f"(1234,50) and dates begin with the day (20.05.2025). Of {named}, numbers are "
        "read as 1234.50 and dates as 2025-05-20 alone: any other cell is missing, 1.234 is a "
        "little more than 1, and answers are about the rest. If they are written in another way, "
        "convert the file first: docs/tables.md.",
    )


def _read_double(text: str) -> str:
    number = f"{_is(text, f'{_SIGN}(?:{_NUMBER})')} AND strlen({text}) <= {LONGEST}"
    return f"CASE WHEN {number} THEN TRY_CAST({text} AS DOUBLE) END"


def _read_whole(text: str) -> str:
    """Read what is a whole number as it is written; nothing is rounded."""
    plain = f"{_is(text, _SIGN + _WHOLE)} AND strlen({text}) <= {LONGEST}"
    double = f"TRY_CAST({text} AS DOUBLE)"
    power = f"{_is(text, _SIGN + _POWER)} AND strlen(trim({text}, ' \t\r\n')) <= {_EXACT}"
    whole = f"TRY_CAST({text} AS BIGINT)"
    return (
        f"CASE WHEN {plain} THEN {whole} "
        f"WHEN {power} AND {double} = floor({double}) THEN {whole} END"
    )


def _is(text: str, pattern: str) -> str:
    return f"regexp_full_match({text}, '{_BLANK}(?:{pattern}){_BLANK}')"


def _take(text: str, pattern: str) -> str:
    """Give what stands between blanks if it is so written, else an empty string."""
    return rf"regexp_extract({text}, '\A{_BLANK}({pattern}){_BLANK}\z', 1)"
