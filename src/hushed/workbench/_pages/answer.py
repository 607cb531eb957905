"""The page of an answer: as the ledger stores it, read again for nothing, and its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from hushed._web.answers import describe_answer
from hushed._web.rendering import download
from hushed.errors import NotFound, ParameterError
from hushed.ledger import Entry, Ledger
from hushed.ledger._notes import read_note
from hushed.statements._kinds import read_record
from hushed.tables import Answer
from hushed.workbench._bench import Workbench
from hushed.workbench._drafts import Draft, Result
from hushed.workbench._views.addresses import read_segment
from hushed.workbench._views.exports import Source, Stored, write_file


@dataclass(frozen=True, slots=True)
class _Pages:
    """What the handlers of this page share."""

    bench: Workbench

    def find(self, budget: str, number: int) -> tuple[Entry, str, Draft | None]:
        """Find an entry, what is stored for it, and the draft that asked."""
        ledger = self.bench.ledger()
        entry = next((e for e in ledger.entries(budget) if e.number == number), None)
        text = None if entry is None else ledger.answer(budget, number)
        if entry is None or text is None:
            raise NotFound("the ledger stores no answer under this number")
        found = (
            draft
            for draft in self.bench.drafts.list()
            if any((e.budget, e.number) == (budget, number) for e in draft.results)
        )
        return entry, text, next(found, None)

    def find_source(self, result: Result | None) -> Source:
        """Find where the table lay when it was asked; nothing if that is not known any more."""
        if result is None or not result.source:
            return Source(address="table.csv").without_path()
        return Source(
            address=result.source,
            place=result.place,
            header=result.header,
            newlines_in_values=result.newlines_in_values,
        )

    def store(self, entry: Entry, answer: Answer, result: Result | None) -> Stored:
        """Gather what a certificate says of an answer: of the data set as it was called then."""
        actor, note = read_note(entry.note)
        data = "" if result is None else result.data
        return Stored(
            answer=answer,
            budget=entry.budget,
            number=entry.number,
            actor=actor,
            note=note,
            data=data,
        )


def make_router(bench: Workbench) -> APIRouter:
    """Make the routes of the page."""
    router = APIRouter(prefix="/answers/{segment}/{number:int}")
    pages = _Pages(bench)

    @router.get("")
    def show(request: Request, number: int, segment: str) -> Response:
        budget = read_segment(segment)
        entry, text, draft = pages.find(budget, number)
        actor, note = read_note(entry.note)
        told = {"entry": entry, "draft": draft, "actor": actor, "note": note, "active": "tables"}
        try:
            answer = Answer.from_json(text)
        except ParameterError:
            return show_record(request, entry, told)
        return bench.show(
            request,
            "page_answer.html",
            answer=describe_answer(answer),
            budget=budget,
            **told,
        )

    def show_record(request: Request, entry: Entry, told: Mapping[str, object]) -> Response:
        """Show an answer of another kind, as its certificate reads it."""
        reading = read_record(_certify(bench.ledger(), entry))
        return bench.show(
            request, "page_answer_record.html", reading=reading, budget=entry.budget, **told
        )

    @router.get("/files/{kind}")
    def save(number: int, kind: str, segment: str, path: str = "") -> Response:
        entry, text, draft = pages.find(read_segment(segment), number)
        result = find_result(draft, entry)
        stored = pages.store(entry, Answer.from_json(text), result)
        source = pages.find_source(result)
        shown = source if path == "yes" else source.without_path()
        file = write_file(kind, stored, bench.ledger(), shown)
        return download(file.name, file.content, file.kind)

    return router


def find_result(draft: Draft | None, entry: Entry) -> Result | None:
    """Find what a draft noted of its answer."""
    noted = () if draft is None else draft.results
    return next((each for each in noted if each.entry == (entry.budget, entry.number)), None)


def _certify(ledger: Ledger, entry: Entry) -> str:
    from hushed.statements import certify  # noqa: PLC0415

    return certify(entry.number, ledger=ledger, budget=entry.budget).record
