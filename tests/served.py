"""A workbench, in a thread or as a process of its own, and a browser that looks at it.

Every page that a test looks at is watched: no request may leave this computer, the console may hold
no error, and no content policy may be broken. axe finds what keeps people from using it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
_PATIENCE = 120_000  # milliseconds that a busy machine may take
_ADDRESS = re.compile(r"(http://127\.0\.0\.1:(\d+)/)\?key=\S+")


@dataclass(slots=True)
class Housed:
    """A workbench that runs in a thread of this process, which has loaded it already.

    ``key_address`` opens it, once; ``url`` is where its pages are.
    """

    folder: Path
    key_address: str = ""
    url: str = ""
    _server: Any = None
    _thread: Any = None

    def start(self) -> None:
        """Serve as the command does."""
        import uvicorn

        from hushed.workbench._app import create_app
        from hushed.workbench._serving import configure_server, open_port

        listening = open_port(0)
        app = create_app(self.folder, port=listening.getsockname()[1])
        self.key_address, self.url = app.address, f"http://127.0.0.1:{app.port}"
        self._server = uvicorn.Server(configure_server(app))
        self._thread = Thread(target=self._server.run, args=([listening],), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop it, and what it started on public rows."""
        from hushed.workbench._jobs import stop_public_jobs
        from hushed.workbench._workspace import open_workspace, practice_of

        self._server.should_exit = True
        self._thread.join(60)
        assert not self._thread.is_alive()
        workspace = open_workspace(self.folder, None)
        for each in (workspace, practice_of(workspace)):
            stop_public_jobs(each.hidden / "jobs")


@dataclass(slots=True)
class Served:
    """A workbench that runs in a process of its own, as the command starts it.

    ``key_address`` opens it, once; ``url`` is where its pages are; ``log`` has what it says.
    """

    folder: Path
    log: Path
    process: Any = None
    key_address: str = ""
    url: str = ""
    port: int = 0

    def start(self) -> None:
        """Start it, on the port that it had before."""
        known = ["--port", str(self.port)] if self.port else []
        words = ["workbench", str(self.folder), "--no-browser", *known]
        with self.log.open("w") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "hushed", *words],
                stdout=said,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        while (found := _ADDRESS.search(self.log.read_text())) is None:
            if self.process.poll() is not None:
                pytest.fail(f"the workbench did not start: {self.log.read_text()}")
            time.sleep(0.02)
        self.key_address, self.url = found[0], found[1].rstrip("/")
        self.port = int(found[2])

    def kill(self) -> None:
        """Kill it, as a computer does that is switched off."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """Stop it as Ctrl-C does."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()

    def restart(self) -> None:
        """Kill it, and start it again."""
        self.kill()
        self.start()


@dataclass(slots=True)
class Watch:
    """What went wrong on a page, but for what a test brings about on purpose."""

    allowed: list[str] = field(default_factory=list)
    found: list[str] = field(default_factory=list)

    def allow(self, *words: str) -> None:
        """Let words in a message of the console pass from here on: those of a stopped server."""
        self.allowed += words

    def note(self, text: str) -> None:
        """Note what went wrong."""
        if not any(each in text for each in self.allowed):
            self.found.append(text)

    def check(self) -> None:
        """Nothing must have gone wrong."""
        assert not self.found, self.found


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """One browser for all tests."""
    api = pytest.importorskip("playwright.sync_api")
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}; make browser installs it")
    with api.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Any]:
    """Serve folders from this process; all are stopped in the end."""
    running: list[Housed] = []

    def start(folder: Path = tmp_path) -> Housed:
        served = Housed(folder)
        served.start()
        running.append(served)
        return served

    yield start
    for each in running:
        each.stop()


@pytest.fixture
def serve_process(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Serve folders from processes that can be killed; each takes seconds to start."""
    running: list[Served] = []

    def start(folder: Path = tmp_path, *, now: bool = True) -> Served:
        served = Served(folder, tmp_path_factory.mktemp("workbench") / "log")
        running.append(served)
        if now:
            served.start()
        return served

    yield start
    for each in running:
        if each.process is not None:
            each.stop()


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Any]:
    """Open pages of a workbench in a browser that knows nothing; what goes wrong fails the test.

    ``open_page(served, width=390)`` gives the page and its watch; further words are those of
    Playwright for a new context, such as ``color_scheme="dark"``.
    """
    contexts, watches = [], []

    def start(served: Housed | Served, *, width: int = 1280, height: int = 900, **more: Any) -> Any:
        context = chromium.new_context(viewport={"width": width, "height": height}, **more)
        contexts.append(context)
        context.set_default_timeout(_PATIENCE)
        page, watch = context.new_page(), Watch()
        watches.append(watch)
        watch_page(page, watch)
        page.goto(served.key_address)
        return page, watch

    yield start
    for each in contexts:
        each.close()
    for watch in watches:
        watch.check()


def watch_page(page: Any, watch: Watch) -> None:
    """Note requests to elsewhere, errors, and broken content policies."""

    def see(request: Any) -> None:
        if not re.match(r"(http://127\.0\.0\.1:\d+/|data:|blob:)", request.url):
            watch.note(f"a request left this computer: {request.url}")

    page.on("request", see)
    page.on("pageerror", lambda error: watch.note(f"an error of the page: {error}"))
    page.on(
        "console",
        lambda told: watch.note(f"the console: {told.text}") if told.type == "error" else None,
    )
    page.add_init_script(
        "document.addEventListener('securitypolicyviolation', (event) => console.error("
        "'content policy: ' + event.violatedDirective + ' ' + event.blockedURI))"
    )


def find_faults(page: Any) -> list[str]:
    """List what axe finds, and controls without a name or a role that a keyboard cannot reach."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page.wait_for_load_state()
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{each['id']} ({each['impact']}): {node['html'][:200]}"
        for each in found
        for node in each["nodes"]
    ]


def scrolls_sideways(page: Any) -> list[str]:
    """List what makes a page wider than its window; nothing if it is not."""
    page.wait_for_load_state()  # without its style sheet every page is too wide
    found: list[str] = page.evaluate(
        """() => {
            const wide = document.documentElement.clientWidth;
            if (document.documentElement.scrollWidth <= wide) return [];
            const all = [...document.querySelectorAll("*")].filter(
                (each) => each.getBoundingClientRect().right > wide + 0.5);
            return ["wider than " + wide, ...all.map((each) => each.outerHTML.slice(0, 120))];
        }"""
    )
    return found


def list_unreadable(page: Any) -> list[str]:
    """List words in pictures that are smaller than 11 pixels, or stick out of their picture."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("figure.picture text")].filter((each) => {
            const frame = each.ownerSVGElement.getBoundingClientRect();
            const place = each.getBoundingClientRect();
            if (!place.width) return false;
            const size = parseFloat(getComputedStyle(each).fontSize) * each.getScreenCTM().a;
            return size < 11 || place.left < frame.left - 1 || place.right > frame.right + 1;
        }).map((each) => each.textContent)"""
    )
    return found
