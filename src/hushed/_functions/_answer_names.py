"""Names that an answer gives its numbers: labels of a Series, keys of a dict."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Any

from hushed.errors import BadFunction

MOST_NAMES = 10_000  # which a certificate lists


def split_names(raw: Any) -> tuple[Any, tuple[str, ...]]:
    """Split an answer into numbers and their names, of which there are none if they name nothing.

    Labels that are no texts, as positions are, or that are not all distinct, name nothing. Only of
    a dict they have to be names, for it has no other order.
    """
    if type(raw) is dict:
        return list(raw.values()), _read_keys(raw)
    series: Any = getattr(sys.modules.get("pandas"), "Series", None)
    if series is not None and isinstance(raw, series):
        return raw, _read_labels(raw.index if raw.index.nlevels == 1 else ())
    return raw, ()


def refuse_other_names(found: tuple[str, ...], wanted: tuple[str, ...], *, private: bool) -> None:
    """Refuse an answer whose numbers have other names; they are not told if they may be private."""
    if found == wanted:
        return
    places = zip((*found, None), (*wanted, None), strict=False)
    one, other = next(pair for pair in places if pair[0] != pair[1])
    shown = "" if private else f" ({other!r} and {one!r} at one place)"
    raise BadFunction(
        f"the function's answer has other names, or in another order, on some tables{shown}: "
        "numbers are measured and released by their place. Answer with all names in one order (a "
        "Series: .reindex(NAMES, fill_value=0)), or with none (.to_numpy())"
    )


def _read_keys(raw: dict[Any, Any]) -> tuple[str, ...]:
    names = _read_labels(raw)
    if raw and not names:
        raise BadFunction(
            "the function returned a dict whose keys are not texts, or are more than "
            f"{MOST_NAMES:,}; they must name the numbers that it holds"
        )
    return names


def _read_labels(labels: Collection[Any]) -> tuple[str, ...]:
    """Read labels as names; none if one is no text that can be written down, or comes twice."""
    found = [] if len(labels) > MOST_NAMES else list(labels)
    if not all(isinstance(each, str) for each in found):
        return ()
    names = tuple(map(str.__str__, found))
    distinct = len(set(names)) == len(names)
    return names if distinct and not any(map(_is_broken, names)) else ()


def _is_broken(name: str) -> bool:
    """Whether a text holds half of a pair of surrogates, which no certificate can state."""
    return any("\ud800" <= each <= "\udfff" for each in name)
