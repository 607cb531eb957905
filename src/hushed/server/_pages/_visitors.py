"""Who looks at a page: the session of a cookie, and whether a form is one of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes, urlsplit

from fastapi import Request
from starlette.datastructures import Headers

from hushed._web import is_own_page
from hushed.server._callers import Callers, require_keeper, require_role
from hushed.server._config import ServerSettings
from hushed.server._people import Caller, Role
from hushed.server._problems import Problem
from hushed.server._sessions import LIFE, PAGES

if TYPE_CHECKING:
    from starlette.types import Scope

_SAFE = ("GET", "HEAD")
SESSION = "hushed_session"  # under which its cookie stands in the scope of a request
_UNTOLD = (  # a text browser says neither, nor does it keep forms of others from using its cookie
    "Whatever sent it does not say which page it comes from, as the browsers of 2023 and later do "
    "by Sec-Fetch-Site and Origin: take one of those, or ask over the API with a token, which "
    "hushed serve invite NAME prints"
)
_FOREIGN = (
    "It says that it comes from another address than {own}, where the pages of this server are: "
    "open them there. If they are served at another address, whoever runs the server writes it as "
    "public_url into hushed.toml"
)
_FORM = "application/x-www-form-urlencoded"


def is_page(path: str) -> bool:
    """Whether an address is one of a page."""
    return path == PAGES or path.startswith(f"{PAGES}/")


def check_page(settings: ServerSettings, scope: Scope, headers: Headers) -> None:
    """Refuse what would change something and was not sent by a page of ours."""
    host = headers["host"].lower()
    public = urlsplit(settings.address)
    own = f"{public.scheme}://{public.netloc}".lower()
    own = own if public.netloc.lower() == host else f"http://{host}"
    if scope["method"] not in _SAFE and not is_own_page(headers, own):
        sites, origins = headers.getlist("sec-fetch-site"), headers.getlist("origin")
        if origins not in ([], [own]):
            raise Problem("foreign_page", _FOREIGN.format(own=own))
        raise Problem("foreign_page", "" if sites else _UNTOLD)


def check_form(headers: Headers, body: bytes) -> None:
    """Refuse a body that is no form, or holds what no database stores."""
    if headers.get("content-type", "").partition(";")[0].strip() != _FORM:
        raise Problem("bad_request", f"a form of a page is of the type {_FORM}")
    if b"\0" in unquote_to_bytes(body):
        raise Problem("bad_request", "a form holds no NUL")


def name_cookie(settings: ServerSettings) -> str:
    """Name the cookie of a session.

    Browsers take the first name over TLS alone, and from no other host; without TLS they keep
    cookies apart by host, and not by port.
    """
    return "__Host-hushed" if settings.secure else f"hushed-{settings.port}"


class Visitors:
    """Finds the caller of a page by its cookie; what the caller may is decided as for the API."""

    def __init__(self, callers: Callers, settings: ServerSettings) -> None:
        self._callers = callers
        self.count_failure = callers.count_failure
        self._secure = settings.secure
        self._cookie = name_cookie(settings)

    def find(self, request: Request) -> Caller:
        """Find who looks, or refuse."""
        text = request.scope[SESSION]
        if text is None:  # nobody guesses: it is no failure
            raise Problem("not_authenticated")
        caller = self._callers.admit(request.scope, text, "page")
        request.state.caller = caller  # for the page of a refusal
        return caller

    def of_role(self, *roles: Role, quote_only: bool = False) -> Callable[..., Caller]:
        """Make a dependency that lets in people of some roles."""

        def find(request: Request) -> Caller:
            return require_role(self.find(request), *roles, quote_only=quote_only)

        return find

    def keeper(self) -> Callable[..., Caller]:
        """Make a dependency that lets in stewards who keep people and shares."""

        def find(request: Request) -> Caller:
            return require_keeper(self.find(request))

        return find

    def write_cookie(self, text: str) -> str:
        """Write the header that gives a browser its session; without a text, that takes it."""
        age = int(LIFE.total_seconds()) if text else 0
        secure = "; Secure" if self._secure else ""
        return f"{self._cookie}={text}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}"
