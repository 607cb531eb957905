"""A workbench without a network: a browser that knows the address, and one that does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from starlette.testclient import TestClient

from hushed.workbench import create_app

PORT = 8000
ORIGIN = f"http://127.0.0.1:{PORT}"
OWN = {"origin": ORIGIN, "sec-fetch-site": "same-origin"}


def make_folder(place: Path) -> Path:
    """A folder with one small private table in it."""
    place.mkdir()
    (place / "stays.csv").write_text("patient,ward,cost\nP1,A,10.5\nP2,B,424242\n")
    return place


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of this test's own."""
    return make_folder(tmp_path / "clinic")


@pytest.fixture
def stranger(folder: Path) -> Iterator[TestClient]:
    """A browser without the key; the app is its attribute ``app``."""
    with TestClient(create_app(folder, port=PORT), base_url=ORIGIN) as client:
        yield client


@pytest.fixture
def browser(stranger: TestClient) -> TestClient:
    """A browser that was let in."""
    assert stranger.get(stranger.app.address).status_code == 200
    stranger.headers.update(OWN)
    return stranger


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    """A browser that was let in, shared by tests that leave no budget behind."""
    app = create_app(make_folder(tmp_path_factory.mktemp("shared") / "clinic"), port=PORT)
    client = TestClient(app, base_url=ORIGIN)
    assert client.get(app.address).status_code == 200
    client.headers.update(OWN)
    return client


@pytest.fixture(scope="module")
def outsider(visitor: TestClient) -> TestClient:
    """A browser without the key, which is used up."""
    return TestClient(visitor.app, base_url=ORIGIN)
