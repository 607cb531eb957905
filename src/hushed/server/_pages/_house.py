"""What every page is given, and what a refusal looks like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlsplit

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment

from hushed._ground.printing import format_down, format_up
from hushed._web.balances import describe_gauge
from hushed._web.rendering import make_environment
from hushed._web.sentences import say_query
from hushed.server._desk import Desk
from hushed.server._pages._visitors import SESSION, Visitors
from hushed.server._pages._words import STATES, say_delta
from hushed.server._people import Caller
from hushed.server._problems import Problem
from hushed.server._seen import find_requests
from hushed.server._sessions import PAGES


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """The pages of a server."""

    desk: Desk
    visitors: Visitors

    @property
    def root(self) -> str:
        """What every address begins with, as browsers see it."""
        return self.desk.settings.server.path + PAGES

    def show(
        self, request: Request, template: str, status: int = 200, /, **found: Any
    ) -> HTMLResponse:
        """Show a template: a page, or a part of one."""
        caller: Caller | None = getattr(request.state, "caller", None)
        keeps = caller is not None and caller.role == "steward" and template.startswith("page_")
        context = {
            "root": self.root,
            "static": f"{self.root}/static",
            "place": urlsplit(self.desk.settings.server.address).netloc,
            "caller": caller,
            "waiting": self._count_waiting(caller) if keeps and caller is not None else 0,
            "active": "",
            **found,
        }
        text = _environment().get_template(template).render(context)
        return HTMLResponse(text, status_code=status)

    def _count_waiting(self, caller: Caller) -> int:
        found, _ = find_requests(self.desk, caller, cursor="", most=100, state="pending")
        return len(found)

    def go(self, path: str) -> RedirectResponse:
        """Go to a page after something was done."""
        return RedirectResponse(self.root + path, status_code=303)

    def refuse(self, request: Request, problem: Problem) -> HTMLResponse:
        """Show a refusal; who has no session is told how to sign in."""
        if problem.code == "not_authenticated":
            answer = self.show(
                request,
                "page_enter.html",
                401,
                problem=None,
                ended=request.scope[SESSION] is not None,
                # A link from elsewhere brings no cookie; one from this page does.
                again=_path(request) if _is_from_elsewhere(request) else "",
            )
            if request.scope[SESSION] is not None:
                answer.headers["set-cookie"] = self.visitors.write_cookie("")
            return answer
        template = "part_problem.html" if "hx-request" in request.headers else "page_problem.html"
        return self.show(request, template, problem.status, **say_problem(problem))

    def gauge(self, budget: str, *most: float) -> Any:
        """Say where a budget stands; the largest epsilon is within the most of a request, too."""
        return describe_gauge(self.desk.ledger.balance(budget), *most)


def say_problem(problem: Problem) -> Mapping[str, str]:
    """Say a refusal as the API does."""
    return {"said": problem.title, "detail": problem.detail}


def _is_from_elsewhere(request: Request) -> bool:
    return request.method == "GET" and request.headers.get("sec-fetch-site") == "cross-site"


def _path(request: Request) -> str:
    return quote(request.scope["path"].removeprefix(PAGES))


@lru_cache(maxsize=1)
def _environment() -> Environment:
    made = make_environment("hushed.server._pages")
    made.filters |= {
        "segment": lambda name: quote(str(name), safe=""),
        "state": STATES.__getitem__,
        "words": say_query,
        "delta": say_delta,
        "left": lambda epsilon: format_down(epsilon, 4),
        "bound": lambda error: format_up(error, 4),
    }
    return made
