"""Files that drafts call private: none of them is taken as public rows."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hushed._ground.printing import shown
from hushed.errors import HushedError, ParameterError
from hushed.workbench._drafts import Draft
from hushed.workbench._marks import is_copy
from hushed.workbench._workspace import Workspace, find_table

_FIELDS = {"table": "data.file", "function": "do.data", "population": "do.data"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Private:
    """A file that a draft calls private."""

    path: Path
    draft: str  # name of the draft


def find_privates(workspace: Workspace, drafts: Iterable[Draft]) -> tuple[Private, ...]:
    """Find the private files of drafts; those that are gone are left out."""
    found: dict[Path, Private] = {}
    for draft in drafts:
        name = draft.fields.get(_FIELDS.get(draft.kind, ""), "")
        if name and draft.fields.get("data.where") != "database":
            with suppress(HushedError, OSError):
                path = find_table(workspace, name)
                found.setdefault(path, Private(path=path, draft=draft.name))
    return tuple(found.values())


def require_public(path: Path, own: str | Path | None, others: Iterable[Private]) -> None:
    """Refuse a file as public that is a private one, under whatever name."""
    if own is not None and is_copy(path, own):
        raise ParameterError(
            "this is the private table itself, or a copy of it; pick a public one, or none"
        )
    for each in others:
        if is_copy(path, each.path):
            raise ParameterError(
                f"these are the rows of {shown(each.path.name)}, which the draft "
                f"{shown(each.draft)} calls private; pick other rows, or delete that draft if they "
                "are public"
            )
