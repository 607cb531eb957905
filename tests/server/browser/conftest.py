"""A team server in a thread, and browsers that look at it as one of its people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.served import chromium, open_page  # noqa: F401
from tests.server.conftest import make_folder, shared_workers
from tests.server.functions import copy_place

from hushed.server._app import make_app, open_desk
from hushed.server._desk import Desk
from hushed.server._log import Log
from hushed.server._serving import listen
from hushed.server._setup import invite
from hushed.server._tokens import Scope


@dataclass(kw_only=True)
class House:
    """A server whose pages a browser opens; above epsilon 0.2 a steward is asked."""

    folder: Path
    url: str
    desk: Desk
    key_address: str = ""  # of whoever looks next

    def door(self, name: str, role: str) -> str:
        return invite(self.folder, name, role, [], days=1, scope=Scope(use="door"))

    @property
    def charges(self) -> int:
        return len(self.desk.ledger.entries("stays"))


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """A server without functions."""
    make_folder(tmp_path, stays="approve_above = 0.2")
    yield from serve(tmp_path)


@pytest.fixture
def house_of_functions(tmp_path: Path) -> Iterator[House]:
    """A server with registered functions."""
    copy_place(tmp_path, stays="approve_above = 0.2")
    yield from serve(tmp_path)


def serve(tmp_path: Path) -> Iterator[House]:
    """Serve as the command does, from this process."""
    import uvicorn

    listening = listen("127.0.0.1:0")
    host, port = listening.getsockname()
    file = tmp_path / "stats" / "hushed.toml"
    file.write_text(file.read_text().replace("127.0.0.1:8642", f"{host}:{port}"))
    with (tmp_path / "log").open("w") as log:
        desk = open_desk(tmp_path / "stats", Log(log), shared_workers())
        config = uvicorn.Config(
            make_app(desk), access_log=False, log_config=None, proxy_headers=False, ws="none"
        )
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        yield House(folder=tmp_path / "stats", url=f"http://{host}:{port}/pages", desk=desk)
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture
def enter(house: House, open_page: Any) -> Any:  # noqa: F811
    """Sign in as somebody in a browser of their own: the page, and its watch."""
    return sign_in(house, open_page)


@pytest.fixture
def enter_functions(house_of_functions: House, open_page: Any) -> Any:  # noqa: F811
    """The same where there are functions."""
    return sign_in(house_of_functions, open_page)


def sign_in(house: House, open_page: Any) -> Any:  # noqa: F811
    """Give what signs people in."""

    def start(name: str, role: str = "analyst", **more: Any) -> Any:
        house.key_address = house.door(name, role)
        page, watch = open_page(house, **more)
        page.get_by_role("button", name="Sign in").press("Enter")
        page.get_by_role("button", name="Sign out").wait_for()
        return page, watch

    return start
