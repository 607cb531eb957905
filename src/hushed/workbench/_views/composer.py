"""What the page of a question shows: the choices of each control, and the rows of the form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self, get_args

from hushed._web.composer import Choices, QuestionForm, pair_up
from hushed._web.statistics import GROUPABLE
from hushed._web.svg import Picture
from hushed.workbench._drafts import Draft
from hushed.workbench._views.besides import BESIDE, Offered, can_join
from hushed.workbench._views.joins import FIELDS as JOIN
from hushed.workbench._views.joins import describe_joined
from hushed.workbench._views.preview import MADE_UP, PUBLIC
from hushed.workbench._views.pricing import Held, Live
from hushed.workbench._views.question import Described, Question
from hushed.workbench._views.releases import Price

PREFIX = "question."
_NOT_KEPT = ("action", "moved", "delta_offer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Composer(QuestionForm):
    """The page of a question."""

    draft: Draft
    live: Live
    held: Held
    described: Described
    question: Question
    problem: str = ""
    curve: Picture | None = None
    price: Price | None = None
    price_problem: str = ""
    largest_error: str = ""
    list_files: Callable[[], tuple[str, ...]] = tuple  # that may be public
    waiting: str = ""  # what is to be chosen next

    def wait_for_columns(self) -> Self:
        """Ask calmly for the column of a statistic that was just chosen: it is no mistake yet."""
        typed, errors = self.form.fields, self.live.errors
        columns = {f"stat.{each}.column" for each in self.statistics}
        new = [name for name in errors if name in columns and not typed.get(name)]
        if not new:
            return self
        left = {name: text for name, text in errors.items() if name not in new}
        return replace(
            self,
            form=replace(self.form, errors=left),
            live=replace(self.live, errors=left),
            waiting="Next: " + "; ".join(errors[name] for name in new) + ".",
        )

    @property
    def joinable(self) -> Choices:
        """Files whose columns can be added."""
        return (("", "no file"), *pair_up(self.list_files()))

    @property
    def join_keys(self) -> Choices:
        """Columns by which a file can be joined."""
        known = (self.described.base or self.described).columns(GROUPABLE)
        return (("", "the column that both have"), *pair_up(known))

    @property
    def join_words(self) -> str:
        """Which columns were added."""
        return describe_joined(self.described)

    @property
    def by_people(self) -> bool:
        """Whether columns of another private table can be added."""
        return can_join(self.described)

    @property
    def offered(self) -> tuple[tuple[Offered, bool], ...]:
        """Columns of the other private table, and whether each is added."""
        beside, fields = self.described.beside, self.form.fields
        chosen = () if beside is None else beside.list_chosen(fields)
        return () if beside is None else tuple((each, each in chosen) for each in beside.columns)

    @property
    def beside_warnings(self) -> tuple[str, ...]:
        """What the library warns of at the other private table."""
        beside = self.described.beside
        return () if beside is None else beside.warnings

    @property
    def beside_slots(self) -> list[str]:
        """Fields of the other private table that have a place for an error."""
        chosen = [each.at for each, ticked in self.offered if ticked]
        parts = [f"{at}.{part}" for at in chosen for part in ("keys", "rest")]
        return [BESIDE, f"{BESIDE}.user", *parts] if self.by_people else []

    @property
    def live_url(self) -> str:
        """Where a changed form goes."""
        return f"{self.url}/live"

    @property
    def price_url(self) -> str:
        """Where the budget is asked."""
        return f"{self.url}/price"

    @property
    def preview_url(self) -> str:
        """Where a preview is drawn."""
        return f"{self.url}/preview"

    @property
    def preview_headline(self) -> str:
        """What a preview is of."""
        return MADE_UP if self.described.example is None else PUBLIC

    @property
    def slots(self) -> list[str]:
        """Fields that have a place for an error on the page."""
        found = [
            *JOIN,
            *self.beside_slots,
            "group",
            "where_text",
            "error",
            "epsilon",
            *self.more_slots,
        ]
        if self.form.fields.get("group"):
            found += ["group2", "keys"]
        rows = [f"where.{n}" for n in self.conditions] + [f"stat.{n}" for n in self.statistics]
        return found + [name for row in rows for name in self.slots_of(row)]

    @property
    def key_choices(self) -> Choices:
        """How keys are known."""
        return (("public", "public, from Data"), ("private", "found privately, needs delta"))

    def error_of(self, prefix: str) -> str:
        """Say the error of a statistic."""
        said = (each.error for each in self.live.statistics if each.prefix == prefix)
        return next(said, "")


def read_held(fields: Mapping[str, str]) -> Held:
    """Read which slider or field was moved last; the epsilon, if that was not told."""
    moved = fields.get("moved", "")
    return moved if moved in get_args(Held) else "epsilon"  # type: ignore[return-value]


def settle_fields(fields: Mapping[str, str], live: Live, held: Held) -> dict[str, str]:
    """Give what is written down: the numbers as they are shown, whichever slider was moved."""
    found = {name: text for name, text in fields.items() if name not in _NOT_KEPT}
    found |= {"epsilon": live.sliders.epsilon, "error": live.sliders.error}
    found["moved"] = "error" if held.startswith("error") else "epsilon"
    if live.sliders.error_of:
        found["error_of"] = live.sliders.error_of
    return found
