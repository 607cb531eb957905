"""Releases of functions, statistics and blocks, as one kind of record, with their certificates."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from hushed._ground.printing import (
    flat,
    format_down,
    format_number,
    format_up,
    name_count,
    show_time,
)
from hushed.errors import DamagedLedger, HushedError, ParameterError
from hushed.mechanisms import InverseSensitivity, Winner
from hushed.mechanisms._bernstein import BernsteinPolynomial
from hushed.mechanisms._bound_search import BoundSearch
from hushed.mechanisms._registry import STATISTIC_MECHANISMS
from hushed.releasing import Certificate, Release
from hushed.releasing._blocks import rebuild_blocks
from hushed.releasing._certificate import MechanismRecord
from hushed.releasing._consistency import rebuild_mechanism
from hushed.releasing._names import list_named, name_chosen, name_numbers, name_value
from hushed.releasing._neighbour_words import name_average
from hushed.releasing._statistics import rebuild
from hushed.releasing._stored import read_release, write_release
from hushed.releasing._words import holds_always
from hushed.statements._readings import Kind, Reading, Table
from hushed.statements._words import describe_outsider, name_unit

_MOST_NUMBERS = 20
_UNITS = {
    "inverse-sensitivity": "row",
    "stable-mode": "row",
    "smooth": "smooth",
}
_TYPES = {
    "laplace": "as many floats as it says",
    "gaussian": "as many floats as it says",
    "exponential": "the number of a candidate",
    "noisy-max": "the number of a candidate, with a gap",
    "top-k": "as many numbers of candidates as it says, each once",
}
_OF_BLOCKS = {"exponential": "block", "votes": "vote", "stable": "block"}


def _read(text: str) -> Reading:
    """Read a released value with its certificate, which checks itself."""
    try:
        value, certificate = read_release(text)
    except DamagedLedger:
        raise ParameterError("the record is no release of this version") from None
    _check_value(value, certificate)
    return Reading(
        title="a private release",
        subject=Release(value=value, certificate=certificate),
        guarantee=certificate.guarantee,
        loss=find_loss(certificate),
        facts={"mechanism": certificate.mechanism.name, "values": certificate.mechanism.values},
        rows=list_numbers_of(certificate),
        tables=(Table(name="What was released", lines=_list_values(value, certificate)),),
        outsider=tell_outsider(certificate),
        paragraphs=tuple(split_paragraph(each) for each in certificate.explain().split("\n\n")),
    )


def tell_outsider(certificate: Certificate) -> str:
    """Say what an outsider could learn of a release with this certificate, made or not yet."""
    return describe_outsider(
        certificate.guarantee,
        _name_public(certificate),
        _name_ground(certificate),
        person=certificate.person,
    )


def _name_public(certificate: Certificate) -> str:
    """Name what is told without any limit: a replaced unit leaves the number of them as it is."""
    promise = certificate.guarantee
    people = certificate.person or promise.unit == "user"
    asked = "statistic" if certificate.statistic is not None else "function"
    found = [f"the {asked}", "its settings"]
    if certificate.sampling is not None:
        found.append("the public population")
    if promise.neighbours == "replace-one":
        found.append(f"the number of {'people' if people else 'rows'}")
    return f"{', '.join(found[:-1])} and {found[-1]}"


def _name_ground(certificate: Certificate) -> str:
    """Name what a promise rests on that was stated, and neither proven nor sampled."""
    if certificate.mechanism.stated:
        return "the word of the author of the mechanism"
    if certificate.chain:
        return "what the steps before the statistic say of themselves"
    proven = certificate.sampling or holds_always(certificate)
    return "" if proven else "the reason that was given for the sensitivity"


def _check_value(value: Any, certificate: Certificate) -> None:
    """Refuse a value that is not of the size and the type that the certificate speaks of."""
    made = certificate.mechanism
    wanted = None if made.stated else _TYPES.get(made.name)
    if wanted is not None and not _fits(value, made):
        raise ParameterError(
            f"the release is no value of the mechanism {made.name}, which its certificate names: "
            f"that gives {wanted}"
        )
    if made.name == BoundSearch.name and not _is_candidate(value, certificate):
        raise ParameterError("the release is none of the bounds that the search chose from")
    if not _is_in_range(value, certificate):
        raise ParameterError("the release is no value of the range that its certificate names")
    if not _is_offered(value, certificate):
        raise ParameterError("the release is none of the public values that were chosen from")
    if isinstance(value, BernsteinPolynomial):
        value = value.coefficients
    if not isinstance(value, np.ndarray):
        return
    if value.dtype == np.float64 and value.size != certificate.mechanism.values:
        raise ParameterError(
            f"the release has {name_count(value.size, 'number')}, and its certificate speaks of "
            f"{certificate.mechanism.values}"
        )


def _is_in_range(value: Any, certificate: Certificate) -> bool:
    """Whether a value lies in the public range, or among the categories, where there are some.

    Noise for a global sensitivity may carry it out of the range.
    """
    made = certificate.mechanism
    if made.name not in STATISTIC_MECHANISMS and made.name != "blocks":
        return True
    asked = made.parameters if made.name == "blocks" else certificate.statistic or {}
    named = dict[str, Any](asked)
    if value is None or not {"categories", "low"} & set(named):
        return True
    if "categories" in named:
        return any(type(value) is type(each) and value == each for each in named["categories"])
    low, high = float(named["low"]), float(named["high"])
    spare = math.ulp(max(abs(low), abs(high)))  # ends of a ladder are rounded
    return type(value) is float and low - spare <= value <= high + spare


def _is_offered(value: Any, certificate: Certificate) -> bool:
    """Whether a number is one of those that were chosen from, where the certificate says them all.

    Other mathematical libraries make ladders that differ in the last digits.
    """
    made = certificate.mechanism
    rebuilt: dict[str, Any] = {"blocks": rebuild_blocks, InverseSensitivity.name: rebuild}
    again = rebuilt.get(made.name)
    known = made.parameters.get("spacing") in ("even", "geometric")
    if type(value) is not float or again is None or not known:
        return True
    offered = np.array(again(certificate).values, dtype=np.float64)
    return bool(np.isclose(offered, value, rtol=1e-9, atol=1e-12 * np.abs(offered).max()).any())


def _is_candidate(value: Any, certificate: Certificate) -> bool:
    """Whether a number is one of the bounds that a search chooses from, with the sign of its side.

    Other mathematical libraries make ladders that differ in the last digits.
    """
    search = rebuild_mechanism(certificate).mechanism
    if type(value) is not float:
        return False
    size = value if search.side == "high" else -value
    return bool(np.isclose(search.candidates, size, rtol=1e-9, atol=0).any())


def _fits(value: Any, made: MechanismRecord) -> bool:
    """Whether a mechanism of hushed could have given a value."""
    name, values = made.name, made.values
    if name in ("laplace", "gaussian"):
        whole = isinstance(value, np.ndarray) and value.dtype == np.float64
        return whole or (type(value) is float and values == 1)
    if name == "exponential":
        return type(value) is int and 0 <= value < values
    if isinstance(value, Winner) or name == "noisy-max":
        return isinstance(value, Winner) and name == "noisy-max" and _is_winner(value, values)
    chosen = value.tolist() if isinstance(value, np.ndarray) and value.dtype == np.int64 else []
    whole = len(chosen) == len(set(chosen)) == made.parameters.get("k")
    return whole and all(0 <= each < values for each in chosen)


def _is_winner(value: Winner, values: int) -> bool:
    """Whether it is the number of a candidate, with a finite gap that is not below 0."""
    index, gap = value.index, value.gap
    whole = type(index) is int and 0 <= index < values
    return whole and type(gap) is float and 0 <= gap < math.inf


def find_loss(certificate: Certificate) -> Any:
    """Find the curve behind a promise, where certificate and parameters make the mechanism."""
    try:
        return rebuild_mechanism(certificate).loss
    except (HushedError, TypeError, ValueError, KeyError, AttributeError):
        return None


def list_numbers_of(certificate: Certificate) -> tuple[tuple[str, str], ...]:
    """List the numbers of a certificate, for a page; promises are not printed smaller."""
    g, made = certificate.guarantee, certificate.mechanism
    whose = ", the caller's own" if made.stated else ""
    unit = _UNITS.get(made.name, "")
    if made.name == "blocks":
        unit = _OF_BLOCKS.get(str(made.parameters["aggregate"]), "")
    scale = "not stated" if made.scale is None else format_down(made.scale)
    accuracy = "not stated" if made.accuracy is None else format_up(made.accuracy)
    average = name_average(certificate.sampling)
    of = f", from {average}" if average else ""
    return (
        ("epsilon", format_up(g.epsilon)),
        ("delta", format_up(g.delta)),
        ("gamma", f"{format_up(g.gamma)} ({g.protect})"),
        ("neighbours", f"{g.neighbours}, {_name_change(certificate)}"),
        ("sensitivity", f"{format_up(certificate.sensitivity)} ({certificate.norm})"),
        ("mechanism", f"{made.name}{whose}, scale {_measure(scale, unit)}"),
        (
            f"{'margin' if certificate.error.margin else 'accuracy'} at 95 %",
            f"{_measure(accuracy, unit)}{of}",
        ),
        ("created", show_time(certificate.created)),
    )


def _measure(size: str, unit: str) -> str:
    """Say a scale or an error in its unit, if it has one."""
    if unit == "smooth":
        return f"{size} smooth sensitivities (private)"
    return name_count(size, unit) if unit else size


def _name_change(certificate: Certificate) -> str:
    """Name what two neighbours differ in."""
    return name_unit(certificate.guarantee, person=certificate.person)


def split_paragraph(text: str) -> tuple[str, str]:
    """Split a paragraph of a certificate into its heading and the rest; a warning has none."""
    head, found, rest = text.partition(":")
    plain = found and head[:1].isupper() and not head.isupper() and not {"\n", "."} & {*head}
    if not plain or len(head) > _LONGEST_HEAD:
        return "", text
    told = rest.strip(" ")
    return head, told[:1].upper() + told[1:]


_LONGEST_HEAD = 60


def _list_values(value: Any, certificate: Certificate) -> tuple[tuple[str, ...], ...]:
    """List a released value as text, the first numbers of a long one."""
    what, named = name_value(certificate), list_named(value, certificate)
    if isinstance(value, Winner):
        who = map(flat, name_chosen(value, certificate) or [value.index])
        first = "chosen candidate" if named else what
        return ((first, "gap"), (*who, format_number(value.gap)))
    if named:
        head = ("name", "value") if name_numbers(value, certificate) else ("candidate", "name")
        more = len(named) - _MOST_NUMBERS
        last = [(f"and {more} more", "in the file")] if more > 0 else []
        return (head, *named[:_MOST_NUMBERS], *last)
    if isinstance(value, BernsteinPolynomial):
        value = value.coefficients
    if value is None:
        return (("value",), ("nothing: the release was refused, which is an answer, too",))
    if not isinstance(value, np.ndarray):
        return ((what,), (format_number(value) if type(value) is float else flat(value),))
    numbers = value.ravel().tolist()
    shown = [format_number(each) for each in numbers[:_MOST_NUMBERS]]
    more = len(numbers) - len(shown)
    rest = f" and {more} more, in the file" if more > 0 else ""
    what = name_count(len(numbers), "number") if what == "value" else what
    return ((what,), (", ".join(shown) + rest,))


def _write(release: Release) -> str:
    return json.dumps(json.loads(write_release(release.value, release.certificate)))


RELEASES = Kind(
    name="release",
    schema="hushed release",
    takes=(Release,),
    write=_write,
    read=_read,
    charged=True,
    write_again=lambda reading: _write(reading.subject),
    checked="digests; the value is of the size and type that its certificate speaks of",
    unchecked=(
        "the name of the function, the terms of a budget, and whether each row is one person: its "
        "maker wrote them",
    ),
    without_ledger=("that this value was released, and not changed since",),
)
