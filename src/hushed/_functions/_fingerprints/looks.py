"""Whether a function is still what it was: its code, and whatever its code uses."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hushed._functions._fingerprints.code import is_library
from hushed._functions._fingerprints.walk import Marks, Walk, digest_bytes

_CACHE = "the cache of "


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a look at a function has found."""

    # Digests of code and data, by name; of installed code its name, behind an equals sign.
    marks: dict[str, str]
    # What has no digest, by name: locks, open files, caches and other things without a content that
    # could be read.
    unseen: dict[str, Any] = field(repr=False)
    packages: frozenset[str]  # installed packages that it uses


def look(function: Any, kinds: Iterable[type] = ()) -> Look:
    """Look at the code of a function and all that it uses, and at classes of what is in rows."""
    walk = Walk()
    walk.visit("", function)
    walk.visit_late()
    found = look_at_kinds(kinds)
    return Look(
        marks=walk.marks | found.marks,
        unseen=walk.unseen | found.unseen,
        packages=frozenset(walk.packages) | found.packages,
    )


def look_at_kinds(kinds: Iterable[type]) -> Look:
    """Look at classes, each by itself, but for those of installed code."""
    marks, packages = Marks(), set()
    unseen: dict[str, Any] = {}
    for kind in kinds:
        if not is_library(kind.__module__):
            walk = Walk()
            walk.visit(f"rows' {kind.__qualname__}", kind)
            walk.visit_late()
            for name, mark in walk.marks.items():
                marks[name] = mark
            unseen |= walk.unseen
            packages |= walk.packages
    return Look(marks=marks, unseen=unseen, packages=frozenset(packages))


def content(value: Any) -> str:
    """Digest the content of a value."""
    walk = Walk()
    walk.visit("value", value)
    return "" if walk.unseen else digest_bytes(repr(sorted(walk.marks.items())).encode())


def combine(found: Look) -> str:
    """Digest all that a look has seen, the same in every process.

    Caches count as nothing, for what they hold follows from the rest. It says nothing of what has
    no content that could be seen: see `Look.unseen`.
    """
    return digest_bytes(repr(sorted(found.marks.items())).encode())


def list_unseen(found: Look) -> list[str]:
    """Name what has no content that could be seen, caches aside."""
    return sorted(name for name in found.unseen if not name.startswith(_CACHE))


def identity(
    function: Callable[[Any], Any], found: Look | None = None, unwatched: tuple[str, ...] = ()
) -> str:
    """Name a function by its content, so that two estimates are known to be of the same one."""
    found = look(function) if found is None else found
    if found.unseen or unwatched:
        return secrets.token_hex(8)
    facts = (getattr(function, "__qualname__", ""), sorted(found.marks.items()))
    return digest_bytes(repr(facts).encode())


def same_function(first: Callable[..., Any], second: Callable[..., Any]) -> bool:
    """Tell whether two functions do the same, as far as their code shows."""
    if first is second:  # with itself, now: see `list_changes` for the same one at two times
        return True
    ours, theirs = look(first), look(second)
    return ours.marks == theirs.marks and not strangers(ours, theirs)


def strangers(first: Look, second: Look) -> list[str]:
    """List what has no digest and is not the same object in two functions."""
    names = first.unseen.keys() | second.unseen.keys()
    missing = object()
    return sorted(
        name
        for name in names
        if first.unseen.get(name, missing) is not second.unseen.get(name, name)
        and not name.startswith(_CACHE)
    )


def list_changes(
    before: Mapping[str, str], now: Mapping[str, str], unwatched: tuple[str, ...] = ()
) -> list[str]:
    """List what is no longer what it was."""
    return sorted(
        name
        for name in before.keys() | now.keys()
        if before.get(name) != now.get(name)
        and not ((name in before) != (name in now) and _is_installed(before, now, name))
        and not any(_is_within(name, each) for each in unwatched)
    )


def _is_installed(before: Mapping[str, str], now: Mapping[str, str], name: str) -> bool:
    return (before.get(name) or now.get(name) or "").startswith("=")


def _is_within(name: str, outer: str) -> bool:
    plain = name.removeprefix("the code of ").removeprefix("the class ")
    return outer in (name, plain) or plain.startswith((f"{outer}.", f"{outer}["))
