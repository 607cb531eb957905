"""From the draft of a table to its description, remembered until the draft or the file changes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace

from hushed._web.fields import Form
from hushed.errors import HushedError, ParameterError
from hushed.workbench._bench import Workbench
from hushed.workbench._drafts import Draft
from hushed.workbench._marks import mark_source
from hushed.workbench._privates import require_public
from hushed.workbench._tables import is_lost
from hushed.workbench._views.besides import BESIDE, can_join, join_private, list_beside
from hushed.workbench._views.data import find_public, find_source
from hushed.workbench._views.joins import ENDINGS, FIELDS, join_public
from hushed.workbench._views.question import Described
from hushed.workbench._workspace import find_file

PREFIX = "data."
_MOST = 16


class Descriptions:
    """The descriptions of a workspace that were read last."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._lock = threading.Lock()
        self._known: OrderedDict[object, Described] = OrderedDict()

    def ask(self, draft: Draft, fields: Mapping[str, str]) -> Described:
        """Describe the table with the columns that a question adds: private ones, then public."""
        described, name = self._ask_beside(self.read(draft), draft, fields), fields.get("join", "")
        if not name or described.problems:
            return described
        form, bench = Form(draft.part(PREFIX)), self._bench
        try:
            path = find_file(bench.workspace, name, ENDINGS)
            key = (*(fields.get(each, "") for each in FIELDS), draft.id, mark_source(path))
            with self._lock:
                found = self._known.get(key)
            if found is not None and found.base is described:
                return found
            own = find_source(bench.workspace, form, "") if form.text("file") else None
            require_public(path, own, bench.list_privates(draft.id))
        except HushedError as error:
            return replace(described, problems={"join": error.message})
        found = join_public(described, fields, path)
        self._keep(key, found)
        return found

    def _ask_beside(
        self, described: Described, draft: Draft, fields: Mapping[str, str]
    ) -> Described:
        """Add columns of another private table of the same people."""
        if not (fields.get(BESIDE, "").strip() and can_join(described)):
            return described
        key = (draft.id, *list_beside(fields))
        with self._lock:
            found = self._known.get(key)
        if found is None or found.beside is None or found.beside.described is not described:
            found = join_private(described, fields)
            self._keep(key, found)
        return found

    def read(self, draft: Draft) -> Described:
        """Describe the table of a draft.

        Raises
        ------
        ParameterError
            If something of the page Data is missing or wrong.
        """
        fields = draft.part(PREFIX)
        password = self._bench.secrets.get(draft.id, "")
        form = Form(fields)
        source = find_source(self._bench.workspace, form, password)
        marks = [] if source is None else [mark_source(source)]
        if fields.get("public"):
            with form.at("public"):
                marks.append(mark_source(find_public(self._bench.workspace, form)))
        key = (draft.id, tuple(sorted(fields.items())), password, *marks)
        with self._lock:
            found = self._known.get(key)
        if found is None or is_lost(found.table):
            view = self._bench.describe(draft)
            if view.described is None:
                reason = next(iter(view.errors.values()), "say first what the table is")
                raise ParameterError(f"the page Data is not complete: {reason}")
            found = view.described
            self._keep(key, found)
        return found

    def _keep(self, key: object, found: Described) -> None:
        with self._lock:
            self._known[key] = found
            while len(self._known) > _MOST:
                self._known.popitem(last=False)
