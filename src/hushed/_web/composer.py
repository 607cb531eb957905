"""The form of a question: the choices of each control, and the rows of the form."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hushed._ground.printing import shown
from hushed._web.fields import Form
from hushed._web.question import OPERATORS, Known, Question, guess_rows, offer_delta
from hushed._web.statistics import (
    GROUPABLE,
    KINDS,
    NUMERIC,
    PLACES,
    SEARCHABLE,
    SEARCHES,
    WITHOUT_COLUMN,
    list_fields,
    list_kinds,
)

_MORE = ("noise", "delta", "rows", "max_rows", "max_groups")
_ACTION = re.compile(r"(remove-where|remove-stat)-(\d{1,3})")
_WORDS = {"==": "is", "!=": "is not"}

Choices = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """The fields of the page, what is wrong with them, and which of these comes first."""

    fields: Mapping[str, str]
    errors: Mapping[str, str]
    first: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionForm:
    """A question as it is composed, on a page whose address is ``url``."""

    form: Typed
    url: str
    described: Known[Any]
    question: Question[Any]

    @property
    def edit_url(self) -> str:
        """Where a row is added or removed."""
        return f"{self.url}/edit"

    @property
    def empty(self) -> bool:
        """Whether nothing is asked yet."""
        return not self.question.labels and not self.question.errors

    @property
    def groups(self) -> Choices:
        """Columns to group by."""
        return (("", "all rows together"), *pair_up(self.described.columns(GROUPABLE)))

    @property
    def second_groups(self) -> Choices:
        """Columns to group by further."""
        first = self.form.fields.get("group", "")
        others = tuple(each for each in self.described.columns(GROUPABLE) if each != first)
        return (("", "nothing else"), *pair_up(others))

    @property
    def columns(self) -> Choices:
        """Columns for a condition."""
        return (("", "column"), *pair_up(tuple(self.described.kinds)))

    @property
    def numeric(self) -> Choices:
        """Columns for a statistic."""
        return (("", "column"), *pair_up(self.described.columns(NUMERIC)))

    @property
    def operators(self) -> Choices:
        """Comparisons."""
        return tuple((each, _WORDS.get(each, each)) for each in OPERATORS)

    @property
    def kinds(self) -> Choices:
        """Statistics."""
        offered = [pair for pair in KINDS.items() if pair[0] != "count_users" or self.by_user]
        return (("", "choose a statistic"), *offered)

    @property
    def keyed(self) -> Choices:
        """Columns whose most frequent keys can be asked for."""
        known = tuple(each for each in self.described.columns(GROUPABLE) if self._has_keys(each))
        return (("", "column with public keys"), *pair_up(known))

    def _has_keys(self, column: str) -> bool:
        return bool(self.described.keys.get(column))

    @property
    def searches(self) -> Choices:
        """How bounds are known."""
        return tuple(SEARCHES.items())

    @property
    def counted(self) -> Choices:
        """What is counted to find the most frequent keys."""
        return (("rows", "most rows"), ("users", "most people"))[: 2 if self.by_user else 1]

    def keyed_besides(self, column: str) -> Choices:
        """Columns whose keys can be taken together with those of a column."""
        return (("", "nothing else"), *(each for each in self.keyed[1:] if each[0] != column))

    def places(self, name: str) -> str:
        """Say how many of the most frequent keys are asked for where nothing is said."""
        fields = self.form.fields
        columns = {fields.get(f"{name}.{part}", "") for part in ("column", "column2")} - {""}
        keys = [len(self.described.keys.get(each, ())) for each in columns]
        return str(min(int(PLACES), math.prod(keys))) if keys and all(keys) else PLACES

    def has(self, field: str) -> bool:
        """Whether a statistic has a field."""
        return field in self.slots_of(field.rpartition(".")[0])

    @property
    def noises(self) -> Choices:
        """Kinds of noise."""
        return (("laplace", "Laplace"), ("gaussian", "Gaussian, needs delta"))

    @property
    def key_choices(self) -> Choices:
        """How keys are known."""
        return (("public", "public"), ("private", "found privately, needs delta"))

    @property
    def key_words(self) -> str:
        """The public keys of the groups, in words."""
        fields = self.form.fields
        if fields.get("keys") == "private" or not fields.get("group"):
            return ""
        columns = [c for c in (fields.get("group"), fields.get("group2")) if c]
        return "; ".join(
            f"{shown(c)}: {_list_keys(self.described.keys.get(c, ()))}" for c in columns
        )

    @property
    def conditions(self) -> list[str]:
        """Rows of conditions."""
        return Form(self.form.fields).numbered("where")

    @property
    def statistics(self) -> list[str]:
        """Rows of statistics."""
        return Form(self.form.fields).numbered("stat")

    @property
    def by_user(self) -> bool:
        """Whether people are protected, with all of their rows."""
        return self.described.table.user is not None

    @property
    def unit(self) -> str:
        """Who is protected, in one word."""
        return "person" if self.by_user else "row"

    @property
    def rows(self) -> str:
        """Public guess of the rows of a group."""
        found = guess_rows(self.described, self.form.fields)
        return "" if found is None else str(found)

    @property
    def max_rows(self) -> str:
        """Rows of one person that count, from the data page."""
        return str(self.described.max_rows_per_user or "")

    @property
    def bounded(self) -> bool:
        """Whether a statistic has bounds."""
        kinds = list_kinds(Form(self.form.fields))
        return any(kind not in ("", *WITHOUT_COLUMN, "top_k") for kind in kinds)

    @property
    def searched(self) -> bool:
        """Whether a bound is found privately."""
        fields = self.form.fields
        searching = [n for n in self.statistics if fields.get(f"stat.{n}.search")]
        return any(fields.get(f"stat.{n}.kind") in SEARCHABLE for n in searching)

    @property
    def more_open(self) -> bool:
        """Whether the part More is open: something is said there, or wrong."""
        said = any(self.form.fields.get(name) for name in _MORE if name != "noise")
        wrong = any(self.form.errors.get(name) for name in _MORE)
        return said or wrong or self.form.fields.get("noise") == "gaussian"

    @property
    def more_slots(self) -> list[str]:
        """Fields of the part More."""
        return [*_MORE] if self.by_user else [*_MORE[:3]]

    def slots_of(self, row: str) -> list[str]:
        """List the fields of a condition or a statistic."""
        if row.startswith("where"):
            return [f"{row}.{part}" for part in ("column", "op", "value")]
        fields = self.form.fields
        return list_fields(row, fields.get(f"{row}.kind", ""), fields.get(f"{row}.search", ""))

    def limit(self, column: str, side: int) -> str:
        """Give a bound of a column, from the data page."""
        return self.described.limits.get(column, ("", ""))[side]

    def error_of(self, prefix: str) -> str:  # noqa: ARG002
        """Say the error of a statistic; nothing until the price was asked."""
        return ""

    @property
    def delta_offer(self) -> str:
        """A usual delta, where one is needed and none is given."""
        fields = self.form.fields
        if fields.get("delta", "").strip():
            return ""
        needed = fields.get("noise") == "gaussian" or (
            fields.get("keys") == "private" and bool(fields.get("group"))
        )
        return offer_delta(self.described) if needed else ""


def pair_up(names: tuple[str, ...]) -> Choices:
    return tuple((name, shown(name)) for name in names)


def _list_keys(keys: tuple[object, ...]) -> str:
    most = 12
    listed = ", ".join(shown(str(each)) for each in keys[:most])
    return f"{listed} and {len(keys) - most} more" if len(keys) > most else listed or "none"


def edit_fields(fields: Mapping[str, str], action: str) -> dict[str, str]:
    """Add or remove a row of the form, or take the largest epsilon that fits."""
    found = dict(fields)
    removed = _ACTION.fullmatch(action)
    if removed:
        prefix = f"{removed[1].removeprefix('remove-')}.{removed[2]}."
        return {name: text for name, text in found.items() if not name.startswith(prefix)}
    if action in ("add-where", "add-stat"):
        part = action.removeprefix("add-")
        last = max(map(int, Form(found).numbered(part)), default=0)
        found[f"{part}.{last + 1}.{'column' if part == 'where' else 'kind'}"] = ""
    if action.startswith("largest-"):
        found |= {"epsilon": action.removeprefix("largest-"), "moved": "epsilon"}
    if action == "use-delta":
        found["delta"] = fields.get("delta_offer", "")
    found.pop("delta_offer", None)
    return found
