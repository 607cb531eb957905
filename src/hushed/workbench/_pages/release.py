"""The page of a release: the one step that costs; it pays once, whatever is clicked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from threading import Event
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from hushed._web.composer import edit_fields
from hushed._web.messages import say_error
from hushed._web.question import read_question
from hushed._web.rendering import Fields
from hushed.errors import HushedError, ParameterError
from hushed.ledger._notes import write_note
from hushed.tables._prepared import Prepared
from hushed.workbench._bench import Workbench
from hushed.workbench._describing import Descriptions
from hushed.workbench._drafts import Draft, Result
from hushed.workbench._pages.question import begin_fields
from hushed.workbench._releases import Releases, Standing
from hushed.workbench._views.addresses import write_segment
from hushed.workbench._views.composer import read_held
from hushed.workbench._views.pricing import Live, price_question
from hushed.workbench._views.question import Described, Question
from hushed.workbench._views.releases import Offer, describe_offer, find_price

PREFIX = "release."


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A question that can be released: planned by the engine, and priced; no row is read."""

    described: Described
    question: Question
    live: Live
    prepared: Prepared

    @property
    def terms(self) -> dict[str, Any]:
        """Terms of the release."""
        asked = self.question.terms
        epsilon = self.prepared.guarantee.epsilon
        return {"epsilon": epsilon, "delta": asked.delta, "noise": asked.noise}

    def offer(self, bench: Workbench) -> Offer:
        """Describe the question with its price."""
        if self.live.quote is None:
            raise ParameterError("the question has no price yet")
        budget, quote = self.described.budget, self.live.quote
        price = find_price(bench.ledger(), budget, self.question, quote)
        return describe_offer(self.described, self.question, quote, price)


@dataclass(frozen=True, slots=True)
class _Pages:
    """What the handlers of this page share."""

    bench: Workbench
    tables: Descriptions
    releases: Releases

    def plan(self, draft: Draft) -> Planned:
        """Plan the question of a draft, with all that no row decides."""
        fields = begin_fields(draft)
        described = self.tables.ask(draft, fields)
        if not described.budget:
            raise ParameterError(
                "the table has no budget, so that nothing would count what is released: choose one "
                "on the page Data"
            )
        question = read_question(described, fields)
        live = price_question(question, fields, read_held(fields), None)
        if live.errors or question.table is None or live.epsilon is None:
            reason = next(iter(live.errors.values()), "add a statistic")
            raise ParameterError(f"the question is not complete: {reason}")
        terms = question.terms
        prepared = question.table.prepare(
            epsilon=live.epsilon, delta=terms.delta, noise=terms.noise
        )
        return Planned(described=described, question=question, live=live, prepared=prepared)

    def claim(self, draft: Draft, digest: str) -> Draft:
        """Give a question its request id: the same one whenever the same is asked by this draft."""
        known = draft.part(PREFIX)
        if known.get("digest") == digest:
            return draft
        if known.get("digest"):
            self.bench.drafts.renew_request(draft.id)
        return self.bench.drafts.change(draft.id, known | {"digest": digest}, prefix=PREFIX)

    def look(self, draft: Draft, described: Described) -> Standing:
        """Say where the release of a draft stands; where its answer lies is noted."""
        found = self.releases.look(self.bench.ledger(), described.budget, draft.request)
        if found.state == "answered" and found.entry is not None:
            self.note(draft, described, found.entry.number)
        return found

    def note(self, draft: Draft, described: Described, number: int) -> None:
        """Note where the answer of a draft lies, once, and what it is about."""
        budget = described.budget
        result = Result(
            budget=budget,
            number=number,
            key=draft.request,
            data=self.bench.name_data(budget),  # for one data set; a draft has the question's name
            source=described.source,
            place=described.place,
            **described.reading.as_arguments(),
        )
        known = self.bench.drafts.get(draft.id).results
        if all(each.entry != result.entry for each in known):
            self.bench.drafts.add_result(draft.id, result)
            self.bench.drafts.add_event(draft.id, "released", f"entry {number} of {budget}")

    def note_price(self, draft: Draft, planned: Planned, offer: Offer) -> None:
        """Note for the history which price was told, once for a question."""
        told = f"price of {offer_note(planned)}: epsilon {offer.cost}"
        self.bench.drafts.add_event(draft.id, "price", f"{told} of {planned.described.budget}")

    def start(self, draft: Draft, planned: Planned, note: str) -> None:
        """Pay and read the rows, in a thread; under the key of the draft this happens once."""
        asked, ledger, budget = (
            planned.question.table,
            self.bench.ledger(),
            planned.described.budget,
        )
        if asked is None:
            raise ParameterError("nothing is asked")
        terms, key = planned.terms, draft.request

        def release(stop: Event) -> object:
            paid: dict[str, Any] = {"ledger": ledger, "budget": budget, "note": note, "key": key}
            answer = asked.release(**terms, **paid, stop=stop)
            if answer.entry is not None:  # also for somebody who does not wait
                self.note(draft, planned.described, answer.entry)
            return answer

        self.releases.start(budget, key, release)


def is_stale(draft: Draft, planned: Planned, fields: Mapping[str, str]) -> bool:
    """Whether the form was made for another question, or budget, than the draft has now."""
    shown = tuple(fields.get(name, "") for name in ("request", "digest", "budget"))
    return shown != (draft.request, planned.prepared.digest, planned.described.budget)


def make_router(bench: Workbench) -> APIRouter:
    """Make the routes of the page."""
    router = APIRouter(prefix="/tables/{identity}/release")
    pages = _Pages(bench, Descriptions(bench), Releases())

    @router.get("")
    def show(request: Request, identity: str) -> Response:
        draft = bench.drafts.get(identity)
        waiting = pages.releases.wait_for(draft.request)
        if waiting is not None:  # the table is busy, and is not asked
            told = {"draft": draft, "standing": waiting, "active": "tables"}
            told["budget"] = draft.part("data.").get("budget", "")
            return bench.show(request, "page_release_waiting.html", **told)
        try:
            bench.require_writable()
            planned = pages.plan(draft)
            known = draft.part(PREFIX).get("digest")
            draft = pages.claim(draft, planned.prepared.digest)
            standing = pages.look(draft, planned.described)
            if standing.state == "answered" and standing.entry is not None:
                return bench.go(answer_path(standing))
            offer = planned.offer(bench)
            if known != planned.prepared.digest:
                pages.note_price(draft, planned, offer)
        except HushedError as error:
            told = {"draft": draft, "message": say_error(error), "active": "tables"}
            told["budget"] = draft.part("data.").get("budget", "")
            return bench.show(request, "page_release_refused.html", 422, **told)
        return bench.show(
            request,
            "page_release.html",
            draft=draft,
            standing=standing,
            offer=offer,
            digest=planned.prepared.digest,
            typed=draft.part(PREFIX),
            actor=bench.drafts.setting("actor", ""),
            active="tables",
            budget=planned.described.budget,
        )

    @router.post("")
    def pay(identity: str, fields: Fields) -> Response:
        draft = bench.drafts.get(identity)
        if pages.releases.wait_for(draft.request) is not None:
            return bench.go(f"/tables/{identity}/release")
        bench.require_writable()
        planned = pages.plan(draft)
        if is_stale(draft, planned, fields):
            raise ParameterError(
                "the question was changed in another window since this page was shown: nothing was "
                "charged; go back, and look at the price again"
            )
        actor, note = fields.get("actor", ""), fields.get("note", "")
        bench.drafts.change_setting("actor", actor)
        typed = draft.part(PREFIX) | {"note": note}
        draft = bench.drafts.change(identity, typed, prefix=PREFIX)
        if pages.look(draft, planned.described).state in ("ready", "refused", "paid"):
            pages.start(draft, planned, write_note(actor, note or offer_note(planned)))
        return bench.go(f"/tables/{identity}/release")

    _add_parts(router, pages)
    return router


def _add_parts(router: APIRouter, pages: _Pages) -> None:
    """Add what a waiting page asks, and the way to a new question."""
    bench = pages.bench

    @router.get("/state")
    def wait(request: Request, identity: str) -> Response:
        draft = bench.drafts.get(identity)
        described = pages.tables.read(draft)
        standing = pages.look(draft, described)
        told = {"draft": draft, "standing": standing, "budget": described.budget}
        answer = bench.show(request, "part_release_waiting.html", **told)
        if standing.state != "waiting":
            answer.headers["HX-Redirect"] = f"{bench.root}/tables/{identity}/release"
        return answer

    @router.post("/stop")
    def stop(identity: str) -> Response:
        pages.releases.stop(bench.drafts.get(identity).request)
        return bench.go(f"/tables/{identity}/release")

    @router.post("/again")
    def copy(identity: str, fields: Fields) -> Response:
        draft = bench.drafts.copy(identity)
        typed = draft.part("question.")
        if fields.get("action") == "add-stat":
            bench.drafts.change(draft.id, edit_fields(typed, "add-stat"), prefix="question.")
        return bench.go(f"/tables/{draft.id}/question")


def answer_path(standing: Standing) -> str:
    """Give the page of an answer."""
    if standing.entry is None:
        raise ParameterError("there is no answer yet")
    return f"/answers/{write_segment(standing.entry.budget)}/{standing.entry.number}"


def offer_note(planned: Planned) -> str:
    """Give the note of somebody who writes none: what is asked."""
    return ", ".join(planned.question.labels.values())
