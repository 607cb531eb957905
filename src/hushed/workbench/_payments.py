"""Long work that reads private rows: a page that says what it costs, and pays once."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from sqlalchemy.engine import make_url

from hushed._ground.printing import tell_seconds
from hushed._web.rendering import Fields, download
from hushed.errors import HushedError, NotFound, ParameterError
from hushed.guarantee import Guarantee
from hushed.ledger._notes import write_note
from hushed.workbench._bench import Workbench
from hushed.workbench._drafts import Draft, Result
from hushed.workbench._jobs import JobState, new_job, read_job, start_job, stop_job
from hushed.workbench._releases import find_entry
from hushed.workbench._views.charges import Offer, list_offers
from hushed.workbench._works import Work, find_draft, home_of, write_json

_PAY = "pay."


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """What a page that pays is about.

    Parameters
    ----------
    promise : Guarantee
        What is promised, and to be charged.
    sentences : tuple of str
        What is asked, and what it promises.
    price : str
        What is paid, in a word or two.
    command : callable
        From budget, remark and key to the words of the command.
    kept : str
        Job whose trials the command goes on with; its own where empty.
    """

    promise: Guarantee
    sentences: tuple[str, ...]
    price: str
    command: Callable[[str, str, str], list[str]]
    kept: str = ""

    @property
    def digest(self) -> str:
        """Name what is offered: another price, or other rows, have another one."""
        told = [self.command("", "", ""), *self.sentences, self.price]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def read_offers(bench: Workbench, promise: Guarantee) -> tuple[tuple[Offer, ...], str]:
    """Ask what would be left of every budget; or say why that cannot be told."""
    try:
        return list_offers(bench.ledger(), promise), ""
    except NotFound:
        return (), ""
    except HushedError as error:
        return (), error.message


def name_payment(draft: Draft) -> str:
    """Name the job that pays for the request of a draft, the same one however often it is asked."""
    return hashlib.sha256(draft.request.encode()).hexdigest()[:32]


def find_payment(bench: Workbench, draft: Draft) -> JobState | None:
    """Find the job of the request of a draft."""
    try:
        return read_job(home_of(bench), name_payment(draft))
    except NotFound:
        return None


def pay_by_job(bench: Workbench, draft: Draft, words: list[str], *, kept: str = "") -> JobState:
    """Start the job that pays, at most once for a request."""
    job = new_job("pay", draft.id, words, identity=name_payment(draft), kept=kept)
    return start_job(home_of(bench), bench.workspace.folder, job, secret=split_ledger(bench)[1])


def address_of(bench: Workbench) -> str:
    """Give the address of the ledger without its password, as another process finds it."""
    return split_ledger(bench)[0]


def split_ledger(bench: Workbench) -> tuple[str, dict[str, str]]:
    """Take the password out of an address: command lines are seen by everybody on a computer."""
    given = bench.workspace.ledger
    if given.startswith("sqlite:///"):
        path = given.removeprefix("sqlite:///")
        return f"sqlite:///{os.path.abspath(path)}", {}
    url = make_url(given)
    if "sslpassword" in url.query:
        raise ParameterError(
            "the address of the ledger has an sslpassword, which the command that pays would show "
            "to other users of this computer; use a key file without one, and start again"
        )
    asked = url.query.get("password", "")
    secret = url.password or (asked if isinstance(asked, str) else asked[-1])
    if not secret:
        return given, {}
    # `set(password=None)` would keep it
    bare = url._replace(password=None).difference_update_query(["password"])
    return bare.render_as_string(hide_password=False), {"PGPASSWORD": str(secret)}


Prepare = Callable[[Draft], Payment]
Tell = Callable[[JobState], dict[str, Any]]


def make_pay_router(bench: Workbench, work: Work, prepare: Prepare, tell: Tell) -> APIRouter:
    """Make the routes of the page that pays."""
    router = APIRouter(prefix=f"/{work.path}/{{identity}}")
    _add_showing(router, bench, work, prepare, tell)
    _add_paying(router, bench, work, prepare)
    _add_files(router, bench, work)
    return router


def _add_showing(
    router: APIRouter, bench: Workbench, work: Work, prepare: Prepare, tell: Tell
) -> None:
    def describe(draft: Draft, state: JobState | None) -> dict[str, Any]:
        if state is not None and state.status == "done":
            draft = _note_result(bench, draft, state)
        return {
            "work": work,
            "draft": draft,
            "state": state,
            "address": f"{bench.root}/{work.path}/{draft.id}",
            "time": "" if state is None else tell_seconds(state.seconds),
            "charged": state is not None and _is_charged(bench, draft, state),
            **(tell(state) if state is not None and state.status == "done" else {}),
        }

    @router.get("/pay")
    def show(request: Request, identity: str) -> Response:
        draft = find_draft(bench, work, identity)
        state, found = find_payment(bench, draft), dict[str, Any]()
        if state is None:
            found["payment"] = payment = prepare(draft)
            found["offers"], found["problem"] = read_offers(bench, payment.promise)
            found["typed"] = draft.part(_PAY)
        found |= describe(draft, state)
        return bench.show(request, "page_pay.html", active=work.path, **found)

    @router.get("/pay/state")
    def tell_state(request: Request, identity: str) -> Response:
        draft = find_draft(bench, work, identity)
        found = describe(draft, find_payment(bench, draft))
        answer = bench.show(request, "part_pay.html", **found)
        if found["state"] is None or found["state"].status != "running":
            answer.headers["HX-Refresh"] = "true"
        return answer


def _add_files(router: APIRouter, bench: Workbench, work: Work) -> None:
    def find_result(identity: str) -> dict[str, Any]:
        state = find_payment(bench, find_draft(bench, work, identity))
        if state is None or state.status != "done":
            raise NotFound("there is no answer yet")
        return state.result

    @router.get("/certificate.json")
    def save_certificate(identity: str) -> Response:
        found = find_result(identity).get("certificate", {})
        return download("certificate.json", write_json(found), "application/json")

    @router.get("/answer.json")
    def save_answer(identity: str) -> Response:
        return download("answer.json", write_json(find_result(identity)), "application/json")


def _add_paying(router: APIRouter, bench: Workbench, work: Work, prepare: Prepare) -> None:
    @router.post("/pay")
    def pay(identity: str, fields: Fields) -> Response:
        draft = find_draft(bench, work, identity)
        if fields.get("request") != draft.request:  # a page of an earlier release, still open
            return bench.go(f"/{work.path}/{draft.id}/pay")
        state = find_payment(bench, draft)
        bench.require_writable()
        if state is None:
            payment, typed = prepare(draft), _read_terms(fields)
            if fields.get("offer") != payment.digest:
                raise ParameterError(
                    "the price or what is asked was changed in another window since this page was "
                    "shown: nothing was charged; go back, and look at the price again"
                )
            bench.drafts.change(draft.id, typed, prefix=_PAY)
            remark = write_note(typed["actor"], bench.name_data(typed["note"]))
            words = payment.command(typed["budget"], remark, draft.request)
            pay_by_job(bench, draft, words, kept=payment.kept)
        elif state.status in ("interrupted", "stopped"):
            pay_by_job(bench, draft, list(state.job.words), kept=state.job.kept)
        return bench.go(f"/{work.path}/{draft.id}/pay")

    @router.post("/pay/stop")
    def stop(identity: str) -> Response:
        draft = find_draft(bench, work, identity)
        if find_payment(bench, draft) is not None:
            stop_job(home_of(bench), name_payment(draft))
        return bench.go(f"/{work.path}/{draft.id}/pay")

    @router.post("/again")
    def ask_again(identity: str) -> Response:
        draft = find_draft(bench, work, identity)
        state = find_payment(bench, draft)
        if state is not None and state.status != "running":
            bench.drafts.renew_request(draft.id)
        return bench.go(f"/{work.path}/{draft.id}")


def _read_terms(fields: Mapping[str, str]) -> dict[str, str]:
    said = {name: fields.get(name, "").strip() for name in ("note", "actor")}
    return said | {"budget": fields.get("budget", "")}


def _word_after(state: JobState, option: str) -> str:
    words = state.job.words
    return words[words.index(option) + 1] if option in words else ""


def _is_charged(bench: Workbench, draft: Draft, state: JobState) -> bool:
    """Whether the ledger holds the charge of a request; not known counts as charged."""
    try:
        return find_entry(bench.ledger(), _word_after(state, "--budget"), draft.request) is not None
    except NotFound:
        return False
    except HushedError:
        return True


def _note_result(bench: Workbench, draft: Draft, state: JobState) -> Draft:
    """Note where an answer lies, once."""
    entry = state.result.get("entry")
    if not isinstance(entry, int) or any(each.key == draft.request for each in draft.results):
        return draft
    budget = _word_after(state, "--budget")
    bench.drafts.add_event(draft.id, "released", f"entry {entry} of {budget}")
    return bench.drafts.add_result(draft.id, Result(budget=budget, number=entry, key=draft.request))
