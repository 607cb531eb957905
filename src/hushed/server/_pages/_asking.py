"""A question: composed, priced, and asked; the same body goes the same way as over the API."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response
from pydantic import ValidationError

from hushed._ground.printing import format_down
from hushed._web.composer import Choices, QuestionForm, Typed, edit_fields
from hushed._web.fields import Form
from hushed._web.question import read_question
from hushed._web.rendering import Fields
from hushed._web.sentences import say_meaning
from hushed.errors import HushedError
from hushed.server._guard import check_json
from hushed.server._judging import Ask, AskQuote
from hushed.server._life import take
from hushed.server._pages._deferred import know
from hushed.server._pages._house import House
from hushed.server._pages._words import read_key, split_words
from hushed.server._people import Caller
from hushed.server._problems import Problem
from hushed.server._routes.asking import DatasetId
from hushed.server._seen import show_dataset, show_quote
from hushed.server._sessions import PAGES
from hushed.server._shown import ShownDataset, ShownQuote
from hushed.server._values import say_value

_MOST_ROWS = 50  # each is written out with all of its choices; a question has fewer
_SHOWN_HERE = ("bad_query", "bad_value", "too_many", "dataset_changed", "dataset_unavailable")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskForm(QuestionForm):
    """The form of a question to a data set."""

    told: ShownDataset
    problem: str = ""

    @property
    def held(self) -> str:
        """Which of privacy loss and error is chosen."""
        return "error" if self.form.fields.get("held") == "error" else "epsilon"

    @property
    def outputs(self) -> Choices:
        """Statistics whose error can be chosen."""
        return tuple(self.question.labels.items())


def make_router(house: House) -> APIRouter:
    """Make the routes of questions."""
    router = APIRouter(prefix=f"{PAGES}/datasets/{{dataset}}")
    desk = house.desk
    asker = house.visitors.of_role("analyst", quote_only=True)  # a token for prices sees them
    payer = house.visitors.of_role("analyst")

    def compose(told: ShownDataset, fields: Mapping[str, str], problem: str = "") -> AskForm:
        _require_few_rows(fields)
        described = know(told)
        question = read_question(described, fields)
        first = fields.get("action") == "add-stat"
        return AskForm(
            told=told,
            form=Typed(fields=fields, errors={} if first else question.errors),
            url=f"{house.root}/datasets/{told.id}/question",
            described=described,
            question=question,
            problem=problem,
        )

    def show(request: Request, view: AskForm, status: int = 200) -> Response:
        part = "hx-request" in request.headers
        template = "part_question.html" if part else "page_question.html"
        return house.show(request, template, status, active="datasets", view=view)

    @router.get("/question")
    def begin(
        request: Request, dataset: DatasetId, caller: Annotated[Caller, Depends(asker)]
    ) -> Response:
        told = show_dataset(desk, caller, dataset)
        return show(request, compose(told, _begin(told)))

    @router.post("/question/edit")
    def edit(
        request: Request,
        dataset: DatasetId,
        fields: Fields,
        caller: Annotated[Caller, Depends(asker)],
    ) -> Response:
        """Add or remove a row, or show what belongs to a choice; nothing is judged."""
        told = show_dataset(desk, caller, dataset)
        changed = edit_fields(fields, fields.get("action", ""))
        view = compose(told, changed)
        return show(request, _without_errors(view))

    @router.post("/question")
    def check(
        request: Request,
        dataset: DatasetId,
        fields: Fields,
        caller: Annotated[Caller, Depends(asker)],
    ) -> Response:
        told = show_dataset(desk, caller, dataset)
        view = compose(told, fields)
        wanted = _read_price(view)
        if wanted is None:
            return show(request, view, 422)
        try:
            quote = show_quote(desk, caller, dataset, wanted)
        except Problem as problem:
            if problem.code not in _SHOWN_HERE:
                raise
            said = problem.tell(caller.role).said
            return show(request, compose(told, fields, said), problem.status)
        return house.show(
            request,
            "page_price.html",
            active="datasets",
            view=view,
            quote=quote,
            **_offer(wanted, quote),
            may_pay=not caller.scope.quote_only,
        )

    @router.post("/requests")
    def pay(
        dataset: DatasetId, fields: Fields, caller: Annotated[Caller, Depends(payer)]
    ) -> Response:
        """Ask: under the key of the page it is paid once, however often it is sent."""
        made = take(desk, caller, dataset, read_key(fields), _read_body(fields))
        return house.go(f"/requests/{made.id}")

    return router


def _require_few_rows(fields: Mapping[str, str]) -> None:
    rows = Form(fields)
    if max(len(rows.numbered(part)) for part in ("stat", "where")) > _MOST_ROWS:
        raise Problem("bad_query", f"a form has at most {_MOST_ROWS} statistics, and conditions")


def _begin(told: ShownDataset) -> dict[str, str]:
    """Fill in a new form."""
    fields = {"stat.1.kind": "count", "epsilon": format_down(min(0.1, told.max_epsilon))}
    return fields if told.user is None else fields | {"max_rows": str(told.max_rows_per_user or 1)}


def _without_errors(view: AskForm) -> AskForm:
    """Say nothing of what was not filled in yet."""
    return AskForm(
        told=view.told,
        form=Typed(fields=view.form.fields, errors={}),
        url=view.url,
        described=view.described,
        question=view.question,
    )


def _read_price(view: AskForm) -> AskQuote | None:
    """Read what price is asked for; None if a field needs another look, where it is told."""
    form = Form(view.form.fields, dict(view.question.errors))
    asked, terms = view.question.table, view.question.terms
    if not view.question.labels and not form.errors:
        form.refuse("stat", "add a statistic")
    told: dict[str, Any] = {"delta": terms.delta, "noise": terms.noise, "rows": terms.rows}
    if view.held == "error":
        error, output = form.number("error"), form.text("error_of")
        if error is None:
            form.refuse("error", "give the largest error that you can use")
        told["errors"] = {output or next(iter(view.question.labels), ""): error}
    else:
        told["epsilon"] = form.number("epsilon")
        if told["epsilon"] is None:
            form.refuse("epsilon", "give the privacy loss, such as 0.1")
    found = None
    if asked is not None and not form.errors:
        try:
            found = AskQuote.model_validate({"query": asked.write(), **told})
        except ValidationError as error:
            first = error.errors()[0]
            place = str(first["loc"][0])
            at = {"errors": "error"}.get(place, place)
            at = at if at in ("epsilon", "error", "delta", "rows") else "stat"
            form.refuse(at, say_value(first))
        except HushedError as error:
            form.refuse("stat", error.message)
    errors: Any = view.form.errors
    errors |= form.errors
    return found


def _offer(wanted: AskQuote, quote: ShownQuote) -> dict[str, Any]:
    """Say what is going to be asked, as a body of the API, and what it means."""
    errors, why = split_words(quote.words)
    body = wanted.model_dump(mode="json", include={"query", "delta", "noise"})
    return {
        "query": wanted.query,
        "body": json.dumps(body | {"epsilon": quote.epsilon}),
        "errors": errors,
        "why": why,
        "key": str(uuid.uuid4()),
        "meaning": say_meaning(quote.epsilon, quote.delta, quote.unit),
    }


def _read_body(fields: Mapping[str, str]) -> Ask:
    """Read what the page of the price has written, as strictly as the API reads it."""
    body = fields.get("body", "").encode()
    check_json(body)
    told = json.loads(body)
    try:
        return Ask.model_validate({**told, "note": fields.get("note", "").strip()})
    except (ValidationError, TypeError):
        raise Problem("bad_query", "the page of the price was changed: price it again") from None
