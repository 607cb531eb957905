"""What is told to whoever asks when something is refused: RFC 9457, a fixed list of codes.

No text of an engine, a driver or an exception that was not foreseen ever leaves.
"""

from __future__ import annotations

from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from hushed._ground.printing import flat
from hushed.errors import (
    DamagedLedger,
    HushedError,
    LedgerUnavailable,
    NewerLedger,
    NotFound,
    ParameterError,
)

if TYPE_CHECKING:
    from hushed.server._log import Log

MEDIA = "application/problem+json"
_LONGEST = 600

# Code: status, and what it means. A detail may follow where it says nothing of the rows.
CODES = {
    "bad_request": (400, "The request cannot be read."),
    "no_key": (400, "The header Idempotency-Key is missing: a name of your own for the request."),
    "not_authenticated": (
        401,
        "No token that counts was shown: it is missing, unknown, expired, stopped, or not for use "
        "from here. Ask your steward for another one.",
    ),
    "forbidden": (403, "This token may not do that."),
    "foreign_page": (
        403,
        "This does not come from a page of this server. Nothing was done. Open the page at the "
        "address of the server, and send it from there.",
    ),
    "four_eyes": (
        403,
        "Somebody else has to approve this: you asked it, or made the token it was asked with, or "
        "your own token was not made at the machine.",
    ),
    "not_found": (404, "There is no such thing here."),
    "method_not_allowed": (405, "This is not done with this address."),
    "too_slow": (408, "The body of the request took too long to arrive."),
    "budget_exceeded": (
        409,
        "The budget of the data set has no room for this. Nothing was charged.",
    ),
    "quota_exceeded": (409, "Your share of the budget has no room for this. Nothing was charged."),
    "day_exceeded": (
        409,
        "Your share has a limit for each day, and no room for this today. Nothing was charged.",
    ),
    "room_exceeded": (
        409,
        "What you asked takes all the room on the disk that one person may take here. Nothing was "
        "charged.",
    ),
    "no_gamma": (409, "The gamma that this function costs cannot be paid. Nothing was charged."),
    "dataset_changed": (
        409,
        "The data set is not as it was when it was described. Ask your steward to look at "
        "it. Nothing was charged.",
    ),
    "function_changed": (
        409,
        "The function is not as it was when it was sampled, or looked at. Ask your steward to "
        "look at it. Nothing was charged.",
    ),
    "not_ready": (409, "There is no answer yet."),
    "failed": (409, "This failed after the charge, which stays."),
    "not_pending": (409, "This request waits for no approval. What was charged stays charged."),
    "conflict": (409, "This does not fit what is there."),
    "answer_deleted": (
        410,
        "The answer was deleted: this server keeps answers for a time. What was charged stays "
        "charged.",
    ),
    "too_large": (413, "The request is too large."),
    "wrong_host": (421, "The server does not answer to this name."),
    "bad_query": (422, "The query cannot be asked. Nothing was charged."),
    "bad_value": (422, "A value cannot be used."),
    "key_reused": (422, "This key belongs to another request of yours: choose another one."),
    "too_many": (429, "Too many requests; wait a little."),
    "too_many_open": (429, "Too many of your requests wait for answers; wait for some of them."),
    "unforeseen": (500, "Something failed that was not foreseen."),
    "busy": (503, "The queue is full; try again. Nothing was charged."),
    "dataset_unavailable": (503, "The data set cannot be asked now. Nothing was charged."),
    "ledger_unavailable": (
        503,
        "The ledger cannot be used now. Nothing was charged, unless the charge was just being "
        "written: your requests (GET /v1/requests) list it then. Ask again under the same key: "
        "you pay once.",
    ),
}

# The same to a steward, who has no share, and looks after data sets and functions.
_TO_STEWARDS = {
    "quota_exceeded": "The share of who asked has no room for this. Nothing was charged.",
    "day_exceeded": (
        "The share of who asked has a limit for each day, and no room for this today. Nothing was "
        "charged."
    ),
    "dataset_changed": (
        "The data set is not as it was when it was described: hushed serve check says more, at the "
        "machine. Nothing was charged."
    ),
    "function_changed": (
        "The function is not as it was when it was sampled, or looked at: hushed serve check says "
        "more, at the machine. Nothing was charged."
    ),
}
_WORDS_TO_STEWARDS = {
    "your share": "the share of who asked",
    "ask a steward for a new cap": "give a new cap of another size, without setting it aside",
}


class Problem(Exception):
    """A refusal, for the one who asked."""

    def __init__(
        self,
        code: str,
        detail: str = "",
        *,
        wait: int | None = None,
        allow: str = "",
        why: str = "",
    ) -> None:
        super().__init__(code)
        self.code = code
        self.status, self.title = CODES[code]
        self.detail = flat(detail)[:_LONGEST]
        self.wait = wait
        self.allow = allow
        self.why = why[:_LONGEST]  # for the log, and for nobody who asks

    def tell(self, role: str) -> Problem:
        """Say it to a steward in other words, where it names a share, or a steward."""
        if role == "steward":
            self.title = _TO_STEWARDS.get(self.code, self.title)
            for words, others in _WORDS_TO_STEWARDS.items():
                self.detail = self.detail.replace(words, others)
        return self

    @property
    def said(self) -> str:
        """All of it, in words."""
        return f"{self.title} {self.detail}".strip()

    @property
    def headers(self) -> dict[str, str]:
        """Say in headers when to come again, how to sign in, or what is done with this address."""
        found = {} if self.wait is None else {"retry-after": str(self.wait)}
        if self.status == 401:
            found["www-authenticate"] = "Bearer"
        return found | ({"allow": self.allow} if self.allow else {})

    def to_dict(self, request: str = "") -> dict[str, Any]:
        """Give the body."""
        told = {"type": "about:blank", "title": self.title, "status": self.status}
        told |= {"code": self.code}
        if self.detail:
            told["detail"] = self.detail
        return told | ({"request_id": request} if request else {})


def problem_of(error: HushedError, log: Log) -> Problem:
    """Say in a fixed text what the library refused; a mistake of the caller in its own words.

    What is no such mistake is named in the log: it may have passed before anybody looks.
    """
    found = _find_problem(error)
    if found.status >= 500:
        log(found.code.replace("_", " "), **name_cause(error))
    return found


def _find_problem(error: HushedError) -> Problem:
    if isinstance(error, LedgerUnavailable | DamagedLedger | NewerLedger):
        return Problem("ledger_unavailable", wait=5)
    if isinstance(error, NotFound):
        return Problem("not_found")
    if isinstance(error, ParameterError):
        return Problem("bad_value", error.message)
    return Problem("unforeseen")


def name_cause(error: BaseException) -> dict[str, str]:
    """Name for the log what was the matter, where, and what the driver calls it; no text of it."""
    cause = getattr(error.__context__, "orig", error.__context__)  # what the driver raised
    called = getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or ""
    frames = extract_tb(error.__traceback__)
    at = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    found = {"error": type(error).__name__, "place": at, "called": str(called)}
    if cause is not None:
        found["cause"] = type(cause).__name__
    return found


class ProblemBody(BaseModel):
    """A refusal."""

    model_config = ConfigDict(extra="forbid", title="Problem")

    type: str = "about:blank"
    title: str
    status: Annotated[int, Field(ge=400, le=599)]
    code: str = Field(json_schema_extra={"enum": [*sorted(CODES)]})
    detail: str = ""
    request_id: str = ""


def document(*codes: str, known: bool = True) -> dict[int | str, dict[str, Any]]:
    """Describe refusals for OpenAPI, by their status; those of tokens where somebody is known."""
    found: dict[int | str, dict[str, Any]] = {}
    always: tuple[str, ...] = ("bad_request", "too_slow", "too_large", "wrong_host", "unforeseen")
    if known:
        always += ("not_authenticated", "bad_value", "too_many", "forbidden", "ledger_unavailable")
    for code in sorted({*codes, *always}):
        status, _ = CODES[code]
        before = found.get(status, {}).get("description", "")
        told = f"{before}, `{code}`" if before else f"`{code}`"
        schema = {"$ref": "#/components/schemas/Problem"}
        found[status] = {"description": told, "content": {MEDIA: {"schema": schema}}}
    return found
