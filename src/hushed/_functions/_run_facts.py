"""What decides the results of trials, in plain values: by these facts a kept run is known again.

Whatever is not known to be without effect is among them. A fact too many only costs that a run is
made again; one too few would mix the results of two different functions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hushed._functions._environment import facts, version
from hushed._functions._fingerprints import combine, list_unseen, look
from hushed._functions._settings import settings
from hushed.errors import ParameterError

_PLAIN = (str, int, float, bool, type(None))
_NAMED = 3
_OURS = Path(__file__).resolve().parents[1]


def describe_content(what: str, value: Any) -> str:
    """Digest a function, or another thing, and all that it uses.

    Code counts without file, line and name; data by content; installed code by its name.
    """
    found = look(value)
    unseen = list_unseen(found)
    if unseen:
        named = ", ".join(name or "itself" for name in unseen[:_NAMED])
        raise ParameterError(
            f"{what} cannot be kept under its content: of {named} nobody can tell whether it is "
            "the same in another run. Make it inside the function, or leave keep out",
            parameter="keep",
        )
    return combine(found)


def describe_record(what: str, record: Any, **instead: Any) -> dict[str, Any]:
    """Describe each field of one of our records: a new field is among the facts by itself."""
    return {
        each.name: instead[each.name]
        if each.name in instead
        else describe_value(what, getattr(record, each.name))
        for each in fields(record)
    }


def describe_value(what: str, value: Any) -> Any:
    """Describe a value: as it is, field by field, or by its content."""
    if type(value) in _PLAIN:
        return repr(value) if type(value) is float else value
    if type(value) in (tuple, list) and all(type(each) in _PLAIN for each in value):
        return [describe_value(what, each) for each in value]
    if is_dataclass(value) and type(value).__module__.startswith("hushed.sensitivity."):
        return describe_record(what, value)
    return describe_content(what, value)


def describe_here(packages: Iterable[str]) -> dict[str, Any]:
    """Describe what answers depend on here: packages in use, processor, BLAS, our own code.

    What those packages use in turn is not followed, beyond NumPy and SciPy.
    """
    used = {*packages, "numpy"} - {"hushed"}
    found = facts({*used, "scipy"})
    blas = {name for name in found if name.startswith("blas of ")}
    kept = {name: told for name, told in found.items() if name not in blas}
    kept |= {name: found[name] for name in blas if name.removeprefix("blas of ") in used}
    kept["python"] = ".".join(found["python"].split(".")[:2])
    return {
        "computer": dict(sorted(kept.items())),
        "settings": settings(used),
        "hushed": [version("hushed"), digest_sources(_OURS)],
    }


@cache
def digest_sources(*roots: Path) -> str:
    """Digest the source code of packages, each by its folder."""
    found = hashlib.sha256()
    for root in roots:
        for path in sorted(root.rglob("*.py")):
            found.update(path.relative_to(root.parent).as_posix().encode())
            found.update(path.read_bytes())
    return found.hexdigest()
