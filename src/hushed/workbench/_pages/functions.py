"""The page of functions: sample, watch, price, release."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from hushed._web.rendering import Fields
from hushed.errors import ParameterError
from hushed.releasing import Certificate
from hushed.workbench._bench import Workbench
from hushed.workbench._drafts import Draft
from hushed.workbench._jobs import JobState, folder_of_trials
from hushed.workbench._pages.trials import describe_trial, make_trial_router
from hushed.workbench._payments import Payment, address_of, make_pay_router, read_offers
from hushed.workbench._views.functions import (
    Priced,
    count_pairs,
    price_release,
    read_sampling,
    watch_sampling,
    write_release,
)
from hushed.workbench._views.samples import draw_movements
from hushed.workbench._works import (
    FORM,
    Work,
    find_draft,
    find_job,
    home_of,
    look_around,
    make_work_router,
)

_PRICE = "price."


def _show(bench: Workbench, draft: Draft, state: JobState | None) -> dict[str, Any]:
    typed = draft.part(FORM)
    found: dict[str, Any] = {"pairs": count_pairs(typed), "watched": None, "priced": None}
    words, _ = WORK.read(typed, look_around(bench))
    found |= describe_trial(bench, draft, words)
    if state is None:
        return found
    found["watched"] = watched = watch_sampling(state, folder_of_trials(home_of(bench), state.job))
    found["picture"] = draw_movements(watched)
    if state.status == "done":
        prices = draft.part(_PRICE)
        priced, errors = price_release(state.result, prices, mechanism=_mechanism_of(typed))
        found |= {"priced": priced, "price_errors": errors, "prices": prices}
        found |= {"mechanism": _mechanism_of(typed)}
        found["offers"], found["problem"] = (
            ((), "") if priced is None else read_offers(bench, priced.guarantee)
        )
    return found


def _mechanism_of(typed: Mapping[str, str]) -> str:
    return typed.get("mechanism", "") or "laplace"


WORK = Work(
    path="functions",
    kind="function",
    job="sensitivity",
    title="Make a function private",
    name="A function",
    empty="Nothing here yet. Put a Python file with a function of the rows into the folder, and a "
    "file with public rows like the private ones.",
    words_of=read_sampling,
    show=_show,
)


def make_router(bench: Workbench) -> APIRouter:
    """Make the routes of the page."""
    router = APIRouter()

    @router.post("/functions/{identity}/price")
    def price(request: Request, identity: str, fields: Fields) -> Response:
        draft = find_draft(bench, WORK, identity)
        draft = bench.drafts.change(draft.id, fields, prefix=_PRICE)
        state = find_job(bench, draft, WORK.job)
        if request.headers.get("hx-request") != "true":
            return bench.go(f"/functions/{draft.id}#price")
        address = f"{bench.root}/functions/{draft.id}"
        found = _show(bench, draft, state)
        return bench.show(request, "part_price.html", draft=draft, address=address, **found)

    router.include_router(make_trial_router(bench, WORK))
    router.include_router(make_work_router(bench, WORK))
    router.include_router(make_pay_router(bench, WORK, _Preparing(bench), _tell))
    return router


class _Preparing:
    """From the draft of a sampled function to what its release pays."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    def __call__(self, draft: Draft) -> Payment:
        state, typed = find_job(self._bench, draft, WORK.job), draft.part(FORM)
        files = look_around(self._bench)
        words, errors = WORK.read(typed, files)
        if state is None or state.status != "done" or errors or list(state.job.words) != words:
            raise ParameterError(
                "the form has changed since the function was sampled, or it is not sampled yet: go "
                "back, and sample it as it is"
            )
        data, mechanism = typed.get("data", ""), _mechanism_of(typed)
        if data not in files.tables:
            raise ParameterError("choose the file with the private rows: go back, and name it")
        priced, problems = price_release(state.result, draft.part(_PRICE), mechanism=mechanism)
        if priced is None:
            raise ParameterError(next(iter(problems.values()), "choose epsilon or the error"))
        return self._offer(state, priced, data, mechanism)

    def _offer(self, state: JobState, priced: Priced, data: str, mechanism: str) -> Payment:
        function = state.job.words[1].removeprefix("./")

        def write(budget: str, note: str, key: str) -> list[str]:
            charge = (address_of(self._bench), budget, note, key)
            return write_release(
                state.job.words, priced, data=data, mechanism=mechanism, charge=charge
            )

        return Payment(
            promise=priced.guarantee,
            sentences=(
                f"{function} is evaluated on the rows of {data}, and its answer is released with "
                f"noise ({mechanism}).",
                priced.promise,
                priced.exactness,
            ),
            price=priced.epsilon,
            command=write,
            kept=state.job.id,
        )


def _tell(state: JobState) -> dict[str, Any]:
    """Tell the answer, and the words of its certificate."""
    certificate = Certificate.from_json(json.dumps(state.result["certificate"]))
    value = state.result["value"]
    shown = [f"{each!r}" for each in value] if isinstance(value, list) else [f"{value!r}"]
    return {"values": shown, "paragraphs": certificate.explain().split("\n\n"), "told": None}
