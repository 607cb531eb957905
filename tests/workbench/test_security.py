"""W14: a workbench answers one browser on this computer, and pages of its own."""

from __future__ import annotations

import os
import re
import socket
import webbrowser
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from hushed.errors import ParameterError
from hushed.workbench import create_app, serve_workbench
from hushed.workbench._peers import Peers
from hushed.workbench._security import check_peer
from hushed.workbench._serving import configure_server, open_browser

OWN = {"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"}
PLACES = ("/", "/ledger", "/settings", "/static/htmx.min.js", "/practice/", "/nothing")


@pytest.mark.slow_cases("/", "/ledger")
@pytest.mark.parametrize("place", PLACES)
def test_nothing_is_shown_without_the_key(outsider: TestClient, place: str) -> None:
    """A outsider gets no page, no static file, and not even whether a page exists."""
    answer = outsider.get(place)
    assert answer.status_code == 403
    assert "Open it with the address that the terminal shows" in answer.text


@pytest.mark.parametrize("key", ["", "?key=", "?key=wrong", "?key=a&key=b"])
def test_a_wrong_key_opens_nothing(outsider: TestClient, key: str) -> None:
    """A wrong key gives no cookie."""
    answer = outsider.get("/" + key)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_the_key_works_once_and_leaves_the_address(stranger: TestClient) -> None:
    """The key becomes a cookie of this port for one browser; a second one is refused."""
    first = stranger.get(stranger.app.address, follow_redirects=False)
    assert (first.status_code, first.headers["location"]) == (303, "/")
    cookie = first.headers["set-cookie"]
    assert cookie.startswith("hushed-8000=")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert stranger.app.address.partition("key=")[2] not in cookie
    assert stranger.get("/").status_code == 200
    again = stranger.get(stranger.app.address, follow_redirects=False)
    assert (again.status_code, again.headers["location"]) == (303, "/")
    stranger.cookies.clear()
    assert stranger.get(stranger.app.address).status_code == 403


@pytest.mark.slow
def test_a_file_that_opens_the_workbench_leads_past_the_strict_cookie(stranger: TestClient) -> None:
    """A redirect that began at a file has no strict cookie: a page of ours goes on."""
    elsewhere = {"sec-fetch-site": "cross-site"}
    first = stranger.get(stranger.app.address, headers=elsewhere, follow_redirects=False)
    assert first.status_code == 200
    assert 'content="0; url=/"' in first.text
    assert first.headers["set-cookie"].startswith("hushed-8000=")
    assert stranger.get("/").status_code == 200


@pytest.mark.parametrize("new", [False, True], ids=["127.0.0.1", "::ffff:127.0.0.1"])
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux tells who asks")
def test_another_user_of_the_computer_is_refused_even_with_the_cookie(new: bool) -> None:
    """The kernel's own list says who asks; a connection of ours is taken."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.socket(socket.AF_INET6 if new else socket.AF_INET) as caller,
    ):
        port = listening.getsockname()[1]
        caller.connect(("::ffff:127.0.0.1" if new else "127.0.0.1", port))
        accepted, client = listening.accept()
        with accepted:
            scope = {"type": "http", "client": client, "server": ("127.0.0.1", port)}
            assert check_peer(Peers(), scope) is None
            other = check_peer(Peers(frozenset({os.geteuid() + 1})), scope)
            assert other is not None
            assert other.status_code == 403
            assert b"another user of this computer" in bytes(other.body)


def test_no_header_says_who_asks(folder: Path) -> None:
    """The server takes the other end of a connection as it is: not as a proxy would tell it."""
    app = create_app(folder, port=8000)
    settings = configure_server(app)
    settings.load()
    assert settings.loaded_app is app


def test_the_key_stands_in_no_argument_but_in_a_file_for_this_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The browser is given the name of a file; without a place for it, nothing is opened."""
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    place = tmp_path / ".hushed" / "open-8000.html"
    for _ in range(2):  # one that a killed workbench has left is written anew
        open_browser(place, "http://127.0.0.1:8000/?key=secret")
    assert opened == [place.as_uri()] * 2
    assert 'content="0; url=http://127.0.0.1:8000/?key=secret"' in place.read_text()
    assert (place.stat().st_mode & 0o777, place.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    open_browser(place / "no-folder" / "open.html", "http://127.0.0.1:8000/?key=secret")
    assert len(opened) == 2


@pytest.mark.slow
def test_a_prefetch_does_not_use_the_key_up(stranger: TestClient) -> None:
    """A browser that looks at the address in advance does not take the key from its user."""
    early = stranger.get(stranger.app.address, headers={"sec-purpose": "prefetch;prerender"})
    assert early.status_code == 403
    assert stranger.get(stranger.app.address).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8000", "127.0.0.1", "127.0.0.1:8001", "10.0.0.1:8000", ""],
)
def test_a_foreign_host_is_refused(visitor: TestClient, host: str) -> None:
    """A name that somebody else points at this computer reaches nothing, cookie or not."""
    answer = visitor.get("/", headers={"host": host})
    assert answer.status_code == 421


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8000", "localhost:8000", "LOCALHOST:8000", "[::1]:8000"]
)
def test_the_names_of_this_computer_are_taken(visitor: TestClient, host: str) -> None:
    """A visitor may call this computer by any of its own names."""
    cookie = "; ".join(f"{each.name}={each.value}" for each in visitor.cookies.jar)
    assert visitor.get("/", headers={"host": host, "cookie": cookie}).status_code == 200


@pytest.mark.parametrize("other", ['a={"b": 1}', "a b=c", 'a="' + '\\"' * 5000 + '"', "=;;;"])
def test_cookies_of_other_programs_keep_nobody_out(visitor, monkeypatch, other):
    """They are not read: one that is no cookie hid ours, and long escapes took a second."""
    monkeypatch.delattr("http.cookies._unquote")
    own = "; ".join(f"{each.name}={each.value}" for each in visitor.cookies.jar)
    for sent in (f"{other}; {own}", f"{own}; {other}"):
        assert visitor.get("/", headers={"cookie": sent}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:8001"},
        {"origin": "http://localhost:8000"},
        {"origin": "https://127.0.0.1:8000"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
    ],
)
def test_a_form_of_another_page_changes_nothing(
    visitor: TestClient, headers: dict[str, str]
) -> None:
    """Only our own pages may send forms, although the visitor would send the cookie along."""
    before = visitor.get("/tables").text
    assert visitor.post("/tables", headers=headers).status_code == 403
    assert visitor.get("/tables").text == before


@pytest.mark.parametrize("missing", ["origin", "sec-fetch-site"])
def test_a_form_without_an_origin_changes_nothing(browser: TestClient, missing: str) -> None:
    """A request that does not say where it comes from is not one of ours."""
    del browser.headers[missing]
    assert browser.post("/tables").status_code == 403
    browser.headers.update(OWN)
    assert browser.post("/tables").status_code == 200


@pytest.mark.slow
def test_a_body_is_at_most_a_megabyte_however_it_is_sent(visitor: TestClient) -> None:
    """A long body is refused by its stated length, and by what is counted if none is stated."""

    def send(length: int) -> int:
        form = {"content-type": "application/x-www-form-urlencoded"}
        chunks = (b"x" * 100_000 for _ in range(length // 100_000))
        return int(visitor.post("/settings", content=chunks, headers=form).status_code)

    assert visitor.post("/settings", data={"theme": "x" * 1_000_001}).status_code == 413
    assert visitor.post("/settings", data={"theme": "x" * 900_000}).status_code == 200
    assert send(1_100_000) == 413
    assert send(1_000_000) == 200


@pytest.mark.parametrize("place", [*PLACES, "/ledger/missing"])
def test_every_answer_has_the_headers(visitor: TestClient, place: str) -> None:
    """Pages, files and errors alike may load nothing but our own files, and are kept nowhere."""
    headers = visitor.get(place).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] in ("no-referrer", "same-origin")
    assert headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in headers


OUTSIDE = [
    "../outside.csv",
    "..\\outside.csv",
    "/etc/passwd",
    "sub/../../outside.csv",
    "link.csv",
    "folderlink/outside.csv",
    "pipe.csv",
    ".hushed/drafts.db",
    ".hidden.csv",
    "stays.csv\0.csv",
    "file:///etc/passwd",
]


@pytest.mark.slow
def test_no_name_of_a_file_leads_out_of_the_folder(browser: TestClient, folder: Path) -> None:
    """Neither ``..`` nor links nor devices are opened; nothing of what they hold is shown."""
    outside = folder.parent / "outside.csv"
    outside.write_text("secret_name,b\n1,2\n")
    (folder / "link.csv").symlink_to(outside)
    (folder / "folderlink").symlink_to(folder.parent)
    (folder / ".hidden.csv").write_text("secret_name,b\n")
    os.mkfifo(folder / "pipe.csv")
    page = browser.post("/tables")
    assert not re.findall(r'<option value="[^"]*(?:link|pipe|hidden)', page.text)
    for name in OUTSIDE:
        said = browser.post(f"{page.url}/live", data={"where": "file", "file": name})
        assert "secret_name" not in said.text, name
        assert 'id="file-error"' in said.text, name
        assert "Who is protected" not in said.text, name


def test_a_file_of_the_folder_is_opened(visitor: TestClient) -> None:
    """The check of names lets through what it should."""
    page = visitor.post("/tables")
    said = visitor.post(f"{page.url}/live", data={"where": "file", "file": "stays.csv"})
    assert "Who is protected" in said.text
    assert "file-error" not in said.text


def test_only_this_computer_is_served(folder: Path) -> None:
    """Another host, or a port that is none, is refused before anything listens."""
    with pytest.raises(ParameterError, match="one person on this computer"):
        serve_workbench(folder, host="0.0.0.0")
    for port in (-1, 65536, True, 1.5):
        with pytest.raises(ParameterError, match="whole number from 0 to 65535"):
            serve_workbench(folder, port=port)
