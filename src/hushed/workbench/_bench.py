"""What every page is given: the workspace, its drafts, its ledger, and a way to show a template."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment

from hushed._web.balances import Gauge, describe_gauge
from hushed._web.rendering import make_environment
from hushed.errors import HushedError, NotFound, ParameterError
from hushed.ledger import Ledger
from hushed.workbench._drafts import Draft, Drafts
from hushed.workbench._privates import Private, find_privates
from hushed.workbench._tables import Tables
from hushed.workbench._views.addresses import write_segment
from hushed.workbench._views.data import DataView, describe_data
from hushed.workbench._workspace import Workspace


@dataclass(slots=True, kw_only=True)
class Workbench:
    """A workspace that is open.

    Parameters
    ----------
    workspace : Workspace
        The folder.
    root : str
        What every address begins with: empty, or ``/practice``.
    drafts : Drafts
        What was typed.
    secrets : dict of str to str
        Passwords of databases by the id of their draft; in memory only.
    """

    workspace: Workspace
    root: str = ""
    drafts: Drafts = field(init=False)
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    tables: Tables = field(default_factory=Tables, repr=False)
    _ledger: Ledger | None = field(default=None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self.drafts = Drafts(self.workspace.hidden / "drafts.db")

    def ledger(self, *, create: bool = False) -> Ledger:
        """Open the one ledger of this process; NotFound if there is none to open."""
        with self._lock:
            if self._ledger is None:
                self._ledger = Ledger(self.workspace.ledger, create=create, timeout=10)
            return self._ledger

    def require_writable(self) -> None:
        """Refuse, before anything is read or charged, what could not be written down."""
        problem = self.drafts.find_problem()
        if problem:
            raise ParameterError(
                f"{problem}. A release could not be noted, so nothing was read or charged: make "
                "the folder writable"
            )

    def describe(self, draft: Draft) -> DataView:
        """Read what the page Data says of a draft's table."""
        try:
            ledger = self.ledger()
        except HushedError:
            ledger = None
        return describe_data(
            self.workspace,
            draft.part("data."),
            password=self.secrets.get(draft.id, ""),
            ledger=ledger,
            opener=self.tables.open,
            others=self.list_privates(draft.id),
        )

    def list_privates(self, but: str = "") -> tuple[Private, ...]:
        """List the files that drafts call private, but for those of one draft."""
        drafts = [each for each in self.drafts.list() if each.id != but]
        return find_privates(self.workspace, drafts)

    def name_data(self, name: str) -> str:
        """Name a data set, or what it is for, for certificates: they say if people are made up."""
        if not self.workspace.practice:
            return name
        return f"{name} (practice: made-up people)" if name else "practice: made-up people"

    def close(self) -> None:
        """Close the ledger; the next use opens it again."""
        with self._lock:
            if self._ledger is not None:
                self._ledger.close()
                self._ledger = None

    def gauges(self) -> tuple[tuple[Gauge, ...], str]:
        """Where every budget stands; or why that cannot be told."""
        try:
            ledger = self.ledger()
            return tuple(describe_gauge(ledger.balance(each.name)) for each in ledger.budgets()), ""
        except NotFound:
            return (), ""
        except HushedError as error:
            return (), str(error)

    def find_lock(self) -> str:
        """Say why the ledger takes no charges; nothing if it does, or cannot be asked."""
        try:
            return self.ledger()._find_write_problem()
        except HushedError:
            return ""

    def show(
        self, request: Request, template: str, status: int = 200, /, **found: Any
    ) -> HTMLResponse:
        """Show a template: a page, or a part of one."""
        gauges, problem = self.gauges() if template.startswith("page_") else ((), "")
        wanted = found.get("budget", "")
        context = {
            "bench": self,
            "root": self.root,
            "workspace": self.workspace,
            "gauges": [each for each in gauges if wanted in ("", each.name)],
            "ledger_problem": problem,
            "ledger_lock": self.find_lock() if template.startswith("page_") else "",
            "read_only": self.drafts.find_problem() if template.startswith("page_") else "",
            "static": "/static",
            "place": self.workspace.name,
            "theme": self._find_theme(),
            "path": request.url.path.removeprefix(self.root),
            "active": "",
            **found,
        }
        text = _environment().get_template(template).render(context)
        return HTMLResponse(text, status_code=status)

    def _find_theme(self) -> str:
        """Read how pages look; the page that says that drafts cannot be read is shown, too."""
        try:
            return self.drafts.setting("theme", "system")
        except HushedError:
            return "system"

    def go(self, path: str) -> RedirectResponse:
        """Go to a page of this workspace after something was done."""
        return RedirectResponse(self.root + path, status_code=303)


_TURNS = itertools.count(1)


async def take_turn() -> int:
    """Count a request as it arrives: of two that write the same page, the later one holds."""
    return next(_TURNS)


Turn = Annotated[int, Depends(take_turn)]


ADDRESSES = {
    "table": "/tables/{}/data",
    "function": "/functions/{}",
    "audit": "/audits/{}",
    "population": "/populations/{}",
    "comparison": "/routes/{}",
}


@lru_cache(maxsize=1)
def _environment() -> Environment:
    made = make_environment("hushed.workbench")
    made.filters |= {
        "segment": write_segment,
        "address": lambda draft: ADDRESSES[draft.kind].format(draft.id),
    }
    return made
