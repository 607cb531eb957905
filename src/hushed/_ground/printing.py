"""What is printed: numbers rounded to a side; texts of others, on one line, without passwords."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, localcontext
from difflib import get_close_matches
from itertools import islice
from numbers import Number
from typing import Any

ROUNDED, WRITTEN_OUT = 1e5, 1e15  # between them, numbers are printed without an exponent
_LONGEST = 100
_MOST_BITS = 300  # of an integer that is told in full
_COMPARED, _LONGEST_NAME = 1000, 200  # names that are compared, and their characters
_MONEY_DIGITS = 400  # no double has more
# What a spreadsheet runs begins so; also in full width, or small.
_RUN = "=+-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b"
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:[\d.]+)?\+00:00$")
SPREADSHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
SAVE_AS_CSV = "Excel files and other spreadsheets are not read: save the sheet as CSV UTF-8"
_MAY_BE_SECRET = re.compile(r"[@?&]|://|(pass|pwd|token|secret|key)\w*\s*[=:]", re.IGNORECASE)
_OF_LEDGERS = (".db", ".sqlite", ".sqlite3")  # how files of ledgers end, mostly
_LEDGER = re.compile(r"sqlite:/", re.IGNORECASE)
_DATABASE = re.compile(r"postgres(ql)?:/", re.IGNORECASE)

Spelling = Callable[[str, object], str]  # how an argument is written, from its name and value


def spell_argument(name: str, value: object) -> str:
    """Write an argument as in Python."""
    return f"{name}={value!r}"


def format_up(level: float, digits: int = 6) -> str:
    """Print what is promised or spent: a number that is not below it.

    It is the nearest one of so many digits if that is not below the decimal that the level stands
    for, and otherwise the next one up. So 0.1 stays ``0.1``, and 1.0000004 becomes ``1.00001``.
    """
    return _shown(level, digits, up=True)


def format_down(level: float, digits: int = 6) -> str:
    """Print what is left, or what holds at least: a number that is not above it."""
    return _shown(level, digits, up=False)


def percent_up(share: float) -> str:
    """Format a share, read as its shortest decimal, in percent of three digits, rounded up."""
    with own_decimals():
        return format_up(float(Decimal(repr(float(share))) * 100), 3)


def format_exactly(number: float, digits: int = 10) -> str:
    """Print a number of which nothing may be lost, as the end of a range: no other double."""
    short = f"{number:.{digits}g}"
    return short if float(short) == number else repr(number)


def format_number(value: float) -> str:
    """Format a released number with six digits; a large one without an exponent, to the unit."""
    if isinstance(value, int):
        return str(value)
    return f"{value:.0f}" if ROUNDED <= abs(value) < WRITTEN_OUT else f"{value:.6g}"


def _shown(level: float, digits: int, *, up: bool) -> str:
    nearest, exact = f"{level:.{digits}g}", Decimal(repr(float(level)))
    # Of decimals, not of doubles: below 1e-307 several decimals are one double.
    if not math.isinf(level) and (Decimal(nearest) < exact if up else Decimal(nearest) > exact):
        with own_decimals(digits, ROUND_CEILING if up else ROUND_FLOOR):
            rounded = (+exact).normalize()
        nearest = f"{float(rounded):.{digits}g}"
        if Decimal(nearest) != rounded:
            nearest = f"{rounded:.{digits}g}"
    long = "e+" in nearest and abs(float(nearest)) < WRITTEN_OUT
    return f"{float(nearest):.0f}" if long else nearest


def own_decimals(
    digits: int = _MONEY_DIGITS, rounding: str = ROUND_HALF_EVEN
) -> AbstractContextManager[Context]:
    """Compute with so many digits, whatever the caller has set for decimals, and trap nothing."""
    return localcontext(Context(prec=digits, rounding=rounding, traps=[]))


def money_above(amount: float) -> str:
    """Print what something may cost: cents, not below the amount."""
    return _money(amount, ROUND_CEILING)


def money_below(amount: float) -> str:
    """Print what may be spent: cents, not above the amount."""
    return _money(amount, ROUND_FLOOR)


def _money(amount: float, rounding: str) -> str:
    if math.isinf(amount):
        return f"{amount}"
    with own_decimals(_MONEY_DIGITS, rounding):
        return f"{Decimal(repr(float(amount))).quantize(Decimal('0.01')):,}"


def name_count(number: int | str, unit: str) -> str:
    """Print a number, or its text, with its unit: ``1 row``, ``2 rows``."""
    return f"{number} {unit}" if str(number) == "1" else f"{number} {unit}s"


def name_changed(unit: str, distance: int = 1) -> str:
    """Name what two neighbours differ in."""
    return f"one {unit}" if distance == 1 else f"{distance} {unit}s at once"


def describe_uncertainty(error: float) -> str:
    """Say a standard error, or that there is none."""
    if math.isnan(error):
        return "standard error not known: no single draw changes it"
    return f"standard error {error:.2g}"


def flat(text: object) -> str:
    """Show what a stranger may have written, in one line."""
    told = str(text)
    if told.isprintable():
        return told
    return "".join(each if each.isprintable() else " " for each in told)


def show_time(at: str) -> str:
    """Show a time to the minute, if it is one in UTC."""
    found = _TIME.match(at)
    return f"{found[1]} {found[2]} UTC" if found else flat(at)


def tame_cell(text: str) -> str:
    """Write an apostrophe before a text that a spreadsheet would run, also after blanks."""
    begins = text.lstrip()[:1]
    return f"'{text}" if (begins and begins in _RUN) or text[:1] in ("\t", "\r") else text


def list_problems(found: Iterable[Mapping[str, Any]]) -> str:
    """List in one line what a parser of records refused, each with its field if it has one."""
    told = []
    for each in found:
        place, said = ".".join(map(str, each["loc"])), str(each["msg"])
        told.append(f"{place}: " * bool(place) + said.removeprefix("Value error, "))
    return flat("; ".join(told))


def shown(text: str) -> str:
    """Show a name or a key: on one line, and such that it cannot pass for anything else.

    It is the text itself if that is plain. One with characters that are not printed (ends of lines,
    controls of the terminal or of the direction of writing), with blanks that could be taken for
    those between columns, or with marks around it is quoted, and those are spelled out. A long one
    is cut, and its length told.
    """
    odd = (
        not text.isprintable() or "  " in text or text != text.strip() or text[:1] in ("", "'", '"')
    )
    if len(text) > _LONGEST:
        return f"{text[: _LONGEST - 3]!r}... ({len(text)} characters)"
    return repr(text) if odd else text


def as_given(value: object) -> str:
    """Tell what was given for an option, if it is a number, a word or nothing; else its type.

    It may be a table that was meant for another argument, and its rows may be private: a text of
    several lines is no option, and may be a table as CSV.
    """
    if isinstance(value, str) and (len(value) > _LONGEST or len(value.splitlines()) > 1):
        return _measure_text(value)
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"an integer of {value.bit_length()} bits"
    plain = value is None or isinstance(value, Number | str)
    return repr(value)[:_LONGEST] if plain else f"something of type {type(value).__name__}"


def brief(text: str) -> str:
    """Quote what somebody wrote, in a message: on one line, and nothing of what may be a table.

    A text of several lines may be one; of a long one the beginning is quoted.
    """
    if len(text.strip().splitlines()) > 1:
        return _measure_text(text)
    return repr(text) if len(text) <= _LONGEST else shown(text)


def _measure_text(text: str) -> str:
    """Tell how long a text is, and nothing of what it says."""
    lines = len(text.splitlines())
    return f"a text of {len(text)} characters{f' in {lines} lines' if lines > 1 else ''}"


def plain_path(path: object, show: Callable[[str], str] = shown) -> str:
    """Show the path of a file that is not there, unless it may be an address with a password."""
    text = str(path)
    if len(text.splitlines()) > 1:  # the content of a file in place of its name
        return f"named by {_measure_text(text)}"
    if _MAY_BE_SECRET.search(text):
        return "of that name (not shown, for it may be an address: postgresql://USER@HOST/DATABASE)"
    return show(text)


def suggest(name: object, known: Iterable[str]) -> str:
    """Ask whether a known name was meant that is nearly the same; nothing if there is none."""
    spelled = {each.lower(): each for each in islice(known, _COMPARED)}
    near = get_close_matches(str(name).lower()[:_LONGEST_NAME], spelled, n=2)
    names = " or ".join(repr(spelled[each]) for each in near)
    return f"; did you mean {names}?" if names else ""


def name_missing(path: object) -> str:
    """Name a file that is not there, and what is: a folder, an address, or nearly the same name."""
    named = plain_path(path)
    if os.path.isdir(str(path)):
        return f"{named}, for that is a folder: name a file in it"
    if _LEDGER.match(str(path)):  # one slash less is left of it in a path
        return (
            f"{named}, for that is the address of a ledger: hushed ledger show and report read one"
        )
    if _DATABASE.match(str(path)):
        return (
            f"{named}, for that is the address of a database: hushed query reads a table in one, "
            "hushed ledger show and report a ledger"
        )
    return named + suggest_path(path)


def suggest_path(path: object) -> str:
    """Ask whether a file was meant that is there; nothing of what may be an address."""
    folder, name = os.path.split(str(path))
    if _MAY_BE_SECRET.search(str(path)):
        return ""
    beside: list[str] = []
    with suppress(OSError, ValueError), os.scandir(folder or ".") as there:
        names = (each.name for each in islice(there, _COMPARED))
        beside = [each for each in names if each != name and not _MAY_BE_SECRET.search(each)]
    if not name.lower().endswith(_OF_LEDGERS):  # then no table is meant by it
        beside = [each for each in beside if not each.lower().endswith(_OF_LEDGERS)]
    return suggest(name, sorted(beside))


class KeptNote(str):
    """What an error that ends a run says of what is kept."""

    __slots__ = ()


def list_kept(error: BaseException) -> list[str]:
    """List what an error says of what is kept."""
    notes = getattr(error, "__notes__", ())
    return [str(each) for each in notes if type(each) is KeptNote]


def tell_seconds(seconds: float) -> str:
    """Say a time in words that people use."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def cut_text(text: str, most: int) -> str:
    """Cut a long text, and no number in the middle: it would be another one."""
    if len(text) <= most:
        return text
    cut = text[: most - 4]
    kept = cut.rpartition(" ")[0]
    if 2 * len(kept) <= len(cut):  # one long word
        kept = cut.rstrip("0123456789.,_:'eE+-").rstrip()
    return f"{kept} ...".lstrip()
