"""The pages of a server without a browser: who is let in, what a form may do, what nobody sees."""

from __future__ import annotations

import html
import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from starlette.testclient import TestClient
from tests.server.conftest import CANARY, ORIGIN, make_folder, open_team
from tests.workbench.browser.test_house import NASTY

from hushed.server import _seen, _sessions
from hushed.server._config import ServerSettings
from hushed.server._pages import _requests
from hushed.server._setup import invite
from hushed.server._tokens import Scope
from hushed.tables import Answer

OWN = {"origin": ORIGIN, "sec-fetch-site": "same-origin"}
COUNT = {"stat.1.kind": "count", "max_rows": "1", "held": "epsilon"}
PAGES = ("start", "approvals", "requests", "datasets", "datasets/stays", "people", "trail")


@dataclass(kw_only=True)
class Browser:
    """A browser of its own, with what it sends by itself."""

    team: Any
    client: TestClient

    def get(self, path: str, **rest: Any) -> Any:
        return self.client.get(f"/pages/{path}", **rest)

    def post(self, path: str, data: Any = None, headers: Any = OWN, **rest: Any) -> Any:
        return self.client.post(f"/pages/{path}", data=data or {}, headers=headers, **rest)

    def price(self, epsilon: float, **more: str) -> Any:
        fields = COUNT | {"epsilon": str(epsilon)} | more
        return self.post("datasets/stays/question", fields)

    def ask(self, epsilon: float, note: str = "") -> str:
        found = self.price(epsilon)
        made = self.post("datasets/stays/requests", read_offer(found.text) | {"note": note})
        assert made.status_code == 200, made.text
        return str(made.url).rpartition("/")[2]


def read_offer(page: str) -> dict[str, str]:
    """What the page of a price sends on."""
    found = dict(re.findall(r'name="(key|body)" value="([^"]*)"', page))
    return {name: html.unescape(text) for name, text in found.items()}


def price_of(page: str, request: str) -> str:
    form = page[page.index(f"/requests/{request}/approve") :]
    return re.search(r'name="price" value="([^"]+)"', form)[1]


def door(team: Any, name: str, role: str = "analyst", **scope: Any) -> str:
    address = invite(team.folder, name, role, [], days=1, scope=Scope(use="door", **scope))
    assert address.startswith(f"{ORIGIN}/pages/enter#hsh_")
    return address.partition("#")[2]


def stranger(team: Any) -> Browser:
    client = TestClient(team.client.app, base_url=ORIGIN, raise_server_exceptions=False)
    return Browser(team=team, client=client)


def enter(team: Any, name: str, role: str = "analyst", **scope: Any) -> Browser:
    browser = stranger(team)
    found = browser.post("enter", {"key": door(team, name, role, **scope)}, follow_redirects=False)
    assert (found.status_code, found.headers["location"]) == (303, "/pages/start")
    return browser


@pytest.fixture
def team(tmp_path):
    """Above epsilon 0.2 a steward is asked."""
    tokens = make_folder(tmp_path, stays="approve_above = 0.2")
    yield from open_team(tmp_path / "stats", tokens)


def test_the_escapes_of_a_cookie_are_not_undone(quiet, monkeypatch):
    """Those of 12 kB took Python 3.11 a second, from whoever reaches the server."""
    monkeypatch.delattr("http.cookies._unquote")
    sent = f'hushed-8642="{chr(92)}"' + f'{chr(92)}"' * 5000 + '"; a={"b": 1}'
    found = quiet.client.get("/pages/datasets", headers={"cookie": sent})
    assert found.status_code == 401
    assert found.headers["set-cookie"].startswith("hushed-8642=;")


def test_nobody_sees_a_page_without_a_session(quiet):
    """Tokens of the API are none, and what does not exist looks like what does."""
    browser = stranger(quiet)
    bodies = set()
    for path in (*PAGES, "requests/none", "datasets/none", "datasets/stays/question"):
        for headers in ({}, {"authorization": f"Bearer {quiet.sam}"}):
            found = browser.get(path, headers=headers)
            assert found.status_code == 401, path
            assert "hushed serve invite NAME --page" in found.text
            bodies.add(found.text)
    assert len(bodies) == 1
    browser.client.cookies.set("hushed-8642", quiet.sam)
    assert browser.get("people").status_code == 401
    assert browser.client.get("/", follow_redirects=False).headers["location"] == "/pages/start"


def test_an_address_opens_one_session_and_no_api(team):
    """Of nine that try at once one is let in; neither address nor session is a token."""
    key = door(team, "sam", "steward")
    assert team.send("GET", "/v1/me", key).status_code == 401

    def try_it(_: int) -> Any:
        return stranger(team).post("enter", {"key": key}, follow_redirects=False)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(try_it, range(9)))
    assert sorted(each.status_code for each in found) == [303] + [401] * 8
    cookie = next(each.headers["set-cookie"] for each in found if each.status_code == 303)
    session = re.match(
        r"hushed-8642=([^;]+); Path=/; Max-Age=28800; HttpOnly; SameSite=Strict$", cookie
    )
    assert session is not None
    assert session[1] != key
    assert team.send("GET", "/v1/me", session[1]).status_code == 401
    logged = team.logged.getvalue()
    assert key not in logged
    assert session[1] not in logged
    events = team.send("GET", "/v1/audit?most=1000", team.sam).json()["items"]
    assert [each["action"] for each in events][-1] == "signed in"
    assert key.rpartition("_")[0] not in str(events)


@pytest.mark.slow
def test_a_session_ends(team, monkeypatch):
    """By its time, by signing out, by a steward, and with its person; requests go on waiting."""
    monkeypatch.setattr(_sessions, "LIFE", timedelta(hours=8) - timedelta(days=1))
    assert enter(team, "ana").get("requests").status_code == 401
    monkeypatch.undo()
    bo, sam = enter(team, "bo"), enter(team, "sam", "steward")
    made = bo.ask(0.3)
    assert bo.post("leave").status_code == 200
    assert bo.get("requests").status_code == 401
    seen = sam.get("approvals").text
    approved = sam.post(f"requests/{made}/approve", {"price": price_of(seen, made)})
    assert approved.status_code == 200
    assert team.charges() == 1
    ana = enter(team, "ana")
    other = ana.ask(0.3)
    session = re.findall(r"/tokens/([0-9a-f]{12})/revoke", sam.get("people").text)
    assert len(session) == 5  # tokens of three people, and two sessions
    for each in session[:2]:
        assert sam.post(f"tokens/{each}/revoke").status_code == 200
    assert ana.get("requests").status_code == 401
    told = sam.get(f"requests/{other}").text
    assert "declined: who asked was let out, or the token was revoked" in told
    bo = enter(team, "bo")
    person, cookies = team.person("bo"), dict(bo.client.cookies)
    sam.post(f"people/{person}/active", {"active": "no"})
    assert bo.get("requests").status_code == 401
    sam.post(f"people/{person}/active", {"active": "yes"})
    bo.client.cookies.update(cookies)  # the refusal took it
    assert bo.get("requests").status_code == 401


@pytest.mark.slow
def test_13_a_form_of_another_page_does_nothing(team):
    """Threat 13: a browser that is signed in does nothing that a page of elsewhere asks for."""
    ana, sam = enter(team, "ana"), enter(team, "sam", "steward")
    made = ana.ask(0.3)
    price = price_of(sam.get("approvals").text, made)
    person = team.person("bo")
    forms = [
        (f"requests/{made}/approve", {"price": price}),
        (f"requests/{made}/decline", {"reason": "no"}),
        (f"people/{person}/tokens", {"use": "api", "days": "30"}),
        (f"people/{person}/active", {"active": "no"}),
        ("people", {"name": "eve", "role": "steward"}),
        ("datasets/stays/shares", {"person": person, "epsilon": "1"}),
        ("enter", {"key": door(team, "bo")}),
        ("leave", {}),
    ]
    foreign = [
        {},
        {"origin": ORIGIN},
        {"sec-fetch-site": "same-origin"},
        {"origin": "https://evil.example", "sec-fetch-site": "cross-site"},
        {"origin": "https://evil.example"},  # as of a browser before 2023
        {"origin": "null", "sec-fetch-site": "same-origin"},
        {"origin": "http://127.0.0.1:8643", "sec-fetch-site": "same-site"},
        {"origin": "http://localhost:8642", "sec-fetch-site": "same-origin"},
        {"origin": "https://127.0.0.1:8642", "sec-fetch-site": "same-origin"},
        {"origin": ORIGIN, "sec-fetch-site": "none"},
    ]
    before = team.desk.ledger.entries("stays"), sam.get("people").text, sam.get("trail").text
    for path, fields in forms:
        for headers in foreign:
            found = sam.post(path, fields, headers)
            assert (found.status_code, "set-cookie" in found.headers) == (403, False), path
            # A text browser says neither: it is told what to take in its place.
            told = "hushed serve invite NAME prints" in found.text
            foreign_origin = headers.get("origin", ORIGIN) != ORIGIN
            assert told == ("sec-fetch-site" not in headers and not foreign_origin)
            assert (f"another address than {ORIGIN}" in found.text) == foreign_origin
            assert "Nothing was done. Open the page at the address of the server" in found.text
    as_json = sam.client.post(f"/pages/requests/{made}/approve", json={"price": price}, headers=OWN)
    assert as_json.status_code == 400
    with_cookie = sam.client.post(f"/v1/requests/{made}/approve")  # no cookie opens the API
    assert with_cookie.status_code == 401
    after = team.desk.ledger.entries("stays"), sam.get("people").text, sam.get("trail").text
    assert after == before
    for host in ("evil.example", "127.0.0.1", "127.0.0.1:8643"):
        assert sam.get("approvals", headers={"host": host}).status_code == 421
    assert sam.post(f"requests/{made}/approve", {"price": price}).status_code == 200
    assert team.charges() == 1


@pytest.mark.slow
def test_14_texts_of_people_run_nowhere(team):
    """Threat 14: notes, reasons, names of columns and what is typed are escaped on each page."""
    ana, sam = enter(team, "ana"), enter(team, "sam", "steward")
    for text in NASTY:
        short = text.replace("\n", " ")[:400]
        made = ana.ask(0.21, short)
        shown = [sam.get("approvals").text, ana.get(f"requests/{made}").text]
        reason = {"reason": short.strip()}
        shown.append(sam.post(f"requests/{made}/decline", reason).text)
        shown += [each.get(f"requests/{made}").text for each in (ana, sam)]
        shown += [each.get("requests").text for each in (ana, sam)]
        typed = {"where.1.column": text, "where.1.value": text, "stat.2.kind": text, "group": text}
        shown.append(ana.price(0.1, **typed).text)
        shown.append(ana.price(0.1, where_text=text).text)
        shown.append(sam.post("people", {"name": text, "role": text}).text)
        shown.append(ana.get(f"requests/{made}", params={"said": text}).text)
        for page in shown:
            assert "<img" not in page
            assert "<script>" not in page
            assert "onerror=alert(1)>" not in page.replace("&gt;", "")
        assert not any("\u202e" in page for page in shown[:7])
    assert team.charges() == 0


@pytest.mark.slow
def test_keys_of_data_subjects_run_nowhere(team, monkeypatch):
    """A key that was found in the rows reaches the page as text, and files that are never run."""
    key = "<script>alert(1)</script>=cmd"

    class Hostile(Answer):
        @classmethod
        def from_json(cls, text):
            return replace(Answer.from_json(text), keys={"ward": (key, "=B")})

    ana = enter(team, "ana")
    offer = read_offer(ana.price(0.1, group="ward").text)
    made = str(ana.post("datasets/stays/requests", offer).url).rpartition("/")[2]
    wait_for(ana, made)
    monkeypatch.setattr(_requests, "Answer", Hostile)
    monkeypatch.setattr(_seen, "Answer", Hostile)
    page = ana.get(f"requests/{made}").text
    assert key not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;=cmd") >= 2  # table and picture
    file = ana.get(f"requests/{made}/files/csv")
    assert '\n"\'=B",' in file.text
    assert file.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert file.headers["content-disposition"].startswith("attachment;")


def wait_for(browser: Browser, request: str) -> Any:
    future = browser.team.desk.queue.find(request)
    if future is not None:
        future.result(20)
    return browser.get(f"requests/{request}")


@pytest.mark.slow
def test_a_page_asks_once_and_shows_what_the_api_shows(team):
    """The same form again is the same request; the files are those of the API, byte by byte."""
    ana = enter(team, "ana")
    offer = read_offer(ana.price(0.1).text) | {"note": "for me"}
    urls = {str(ana.post("datasets/stays/requests", offer).url) for _ in range(3)}
    assert len(urls) == 1
    assert team.charges() == 1
    made = urls.pop().rpartition("/")[2]
    assert "The answer is stored" in wait_for(ana, made).text
    assert ana.get(f"requests/{made}/files/json").text == team.answer(team.ana, made).text
    signed = team.send("GET", f"/v1/requests/{made}/certificate", team.ana).text
    assert ana.get(f"requests/{made}/files/certificate").text == signed
    again = ana.post("datasets/stays/requests", offer | {"note": "another"})
    assert str(again.url).rpartition("/")[2] == made  # a note is no part of the question
    more = offer | {"body": offer["body"].replace('"epsilon": 0.1', '"epsilon": 0.2')}
    other = ana.post("datasets/stays/requests", more)
    assert (other.status_code, "belongs to another request of yours" in other.text) == (422, True)
    dear = offer | {"body": offer["body"].replace('"epsilon": 0.1', '"epsilon": 5.0')}
    key = {"key": "00000000-0000-4000-8000-000000000000"}
    assert "at most epsilon 1.0" in ana.post("datasets/stays/requests", dear | key).text
    for wrong in ({"body": "{"}, {"body": "[]"}, {"body": '{"a": NaN}'}, {"key": "one"}):
        assert 400 <= ana.post("datasets/stays/requests", offer | key | wrong).status_code < 500
    assert team.charges() == 1


@pytest.mark.slow
def test_permissions_are_those_of_the_api(team):
    """404 for what one may not see, 403 for what one may not do; nothing is decided twice."""
    ana, bo, sam = enter(team, "ana"), enter(team, "bo"), enter(team, "sam", "steward")
    made = ana.ask(0.1)
    wait_for(ana, made)
    places = (f"requests/{made}", f"requests/{made}/files/json", f"requests/{made}/state")
    for path in places:
        missing = path.replace(made[:8], "00000000")
        assert bo.get(path).status_code == bo.get(missing).status_code == 404
        assert bo.get(path).text.replace(path, "") == bo.get(missing).text.replace(missing, "")
    for path in ("approvals", "people", "trail", "datasets/stays/entries"):
        assert ana.get(path).status_code == 403, path
    for path in ("json", "csv", "certificate", "page"):
        assert sam.get(f"requests/{made}/files/{path}").status_code == 403
    assert "is for ana alone" in sam.get(f"requests/{made}").text
    assert sam.get("datasets/stays/question").status_code == 403
    assert sam.post("datasets/stays/requests", {}).status_code == 403
    narrow = enter(team, "sam", "steward", datasets=("other",))
    for path in ("people", "trail", "datasets/stays/entries"):
        assert narrow.get(path).status_code == 403, path
    assert narrow.get(f"requests/{made}").status_code == 404
    assert narrow.post(f"requests/{made}/approve").status_code == 404
    own = enter(team, "sam", "steward", datasets=("stays",))
    for path in ("datasets", "datasets/stays"):  # the API tells it where no budget stands
        assert ("<meter" in own.get(path).text, "<meter" in sam.get(path).text) == (False, True)
    prices = enter(team, "ana", quote_only=True)
    priced = prices.price(0.1)
    assert "Your session is for prices alone" in priced.text
    assert prices.get("requests").status_code == 403
    assert (
        prices.post("datasets/stays/requests", read_offer(ana.price(0.1).text)).status_code == 403
    )
    away = enter(team, "ana", addresses=())
    assert away.get("requests").status_code == 200
    assert CANARY not in sam.get("datasets/stays").text


@pytest.mark.slow
def test_four_eyes_hold_on_pages(team):
    """Who made the address with which something was asked does not approve it, nor another one
    whom they let in; what a page says is what the API decides.
    """
    sam = enter(team, "sam", "steward")
    path = f"people/{team.person('ana')}/tokens"
    given = sam.post(path, {"use": "door"}).text
    key = re.search(r'id="fresh">[^#]+#(hsh_[^<]+)<', given)[1]
    posed = stranger(team)
    posed.post("enter", {"key": html.unescape(key)})
    made = posed.ask(0.3)
    page = sam.get("approvals").text
    assert "Somebody else has to approve this" in page
    assert f"/requests/{made}/approve" not in page
    sue = enter(team, "sue", "steward")
    other_eyes = sue.get("approvals").text
    found = sam.post(f"requests/{made}/approve", {"price": price_of(other_eyes, made)})
    assert (found.status_code, team.charges()) == (403, 0)
    second = sam.post(f"people/{team.person('sue')}/tokens", {"use": "door"}).text
    posing = stranger(team)
    posing.post("enter", {"key": re.search(r'id="fresh">[^#]+#(hsh_[^<]+)<', second)[1]})
    refused = posing.post(f"requests/{made}/approve", {"price": price_of(other_eyes, made)})
    assert (refused.status_code, team.charges()) == (403, 0)
    seen = sue.get("approvals").text
    assert sue.post(f"requests/{made}/approve", {"price": price_of(seen, made)}).status_code == 200
    assert team.charges() == 1


@pytest.mark.slow
def test_a_share_is_set_aside_on_a_page_and_charged_alone(team):
    """No more than there is; what waits then stands in the share, and is charged to it."""
    sam = enter(team, "sam", "steward")
    given = {"person": team.person("bo"), "epsilon": "0.9", "reserve": "yes"}
    found = sam.post("datasets/stays/shares", given)
    assert (found.status_code, team.charges()) == (200, 1)
    left = team.desk.ledger.balance("stays").epsilon_left
    over = sam.post("datasets/stays/shares", given | {"person": team.person("ana")})
    assert (over.status_code, team.charges()) == (409, 1)
    assert "less than that is left of the budget" in over.text
    bo = enter(team, "bo")
    made = bo.ask(0.3)
    waiting = sam.get("approvals").text
    assert "share of bo" in waiting
    assert "budget 'stays'" not in html.unescape(waiting)
    sam.post(f"requests/{made}/approve", {"price": price_of(waiting, made)})
    assert len(team.desk.ledger.entries("stays/bo/2")) == 1
    assert team.desk.ledger.balance("stays").epsilon_left == left
    sam.post("datasets/stays/shares", given)  # the same again
    raised = sam.post("datasets/stays/shares", given | {"epsilon": "1.5", "reserve": ""}).text
    assert len(team.desk.ledger.entries("stays/bo/3")) == 0
    assert '<td data-label="Spent of earlier shares" class="number">epsilon 0.3</td>' in raised
    assert "more than the budget, which binds all the same" in raised
    people = sam.get("people").text
    assert "0.3 spent of earlier shares" in people
    assert f"<code>{team.ana.split('_')[1]}</code>" in people
    assert f'<td data-label="Made">{datetime.now(UTC).date().isoformat()}</td>' in people
    assert team.desk.ledger.entries("stays/bo/2")[0].note == "by bo: no note given"


@pytest.mark.slow
def test_a_price_that_was_changed_is_shown_before_the_button_works(team):
    """Neither a click on an old page nor one without the tick charges another price."""
    from hushed.ledger._rows import run
    from hushed.ledger._together import writing

    ana, sam = enter(team, "ana"), enter(team, "sam", "steward")
    made = ana.ask(0.3)
    price = price_of(sam.get("approvals").text, made)
    found = sam.post(f"requests/{made}/approve", {"price": price[::-1]})
    assert found.status_code == 409
    assert "the price was changed since you looked" in found.text
    with writing(team.desk.ledger) as connection:
        run(connection, "UPDATE @.hushed_s_requests SET question = 'other'", {})
    page = sam.get("approvals").text
    assert "The price was changed since this was asked" in page
    assert re.search(r'type="checkbox" id="seen-[^"]+" required', page)
    assert team.charges() == 0


@pytest.mark.slow
def test_what_waits_may_be_taken_back_or_end_by_itself(team, monkeypatch):
    from hushed.server import _approving

    ana, sam = enter(team, "ana"), enter(team, "sam", "steward")
    assert "Nothing to decide." in sam.get("approvals").text
    first, second = ana.ask(0.3), ana.ask(0.25)
    assert ana.post(f"requests/{first}/cancel").status_code == 200
    late = sam.post(f"requests/{first}/approve", {"price": ""})
    assert late.status_code == 409
    assert "ana took it back" in late.text
    monkeypatch.setattr(_approving, "DAYS", 0)
    _approving.expire(team.desk)
    assert "waited too long" in ana.get(f"requests/{second}").text
    late = sam.post(f"requests/{second}/decline", {"reason": "no"})
    assert (late.status_code, "it waited too long" in late.text) == (409, True)
    assert sam.post(f"requests/{second}/decline", {"reason": " "}).status_code == 422
    assert team.charges() == 0


@pytest.mark.slow
def test_a_budget_that_was_used_meanwhile_is_told_and_the_request_goes_on_waiting(team):
    ana, bo, sam = enter(team, "ana"), enter(team, "bo"), enter(team, "sam", "steward")
    first, second = ana.ask(0.5), bo.ask(0.55)
    seen = sam.get("approvals").text
    prices = price_of(seen, first), price_of(seen, second)
    assert sam.post(f"requests/{first}/approve", {"price": prices[0]}).status_code == 200
    found = sam.post(f"requests/{second}/approve", {"price": prices[1]})
    assert found.status_code == 409
    assert "The request of bo goes on waiting" in found.text
    said = "Does not fit the budget 'stays': epsilon 0.55 is asked, and 0.5 is left."
    assert said in html.unescape(found.text)
    assert team.charges() == 1


@pytest.mark.slow
def test_behind_a_proxy_the_cookie_is_secure_and_the_origin_is_the_public_one(tmp_path):
    tokens = make_folder(tmp_path)
    file = tmp_path / "stats" / "hushed.toml"
    public = 'behind_proxy = true\npublic_url = "https://stats.example.org/hushed"'
    file.write_text(file.read_text().replace("behind_proxy = false", public))
    for team in open_team(tmp_path / "stats", tokens):
        scope = Scope(use="door")
        address = invite(team.folder, "ana", "analyst", [], days=1, scope=scope)
        assert address.startswith("https://stats.example.org/hushed/pages/enter#hsh_")
        client = TestClient(team.client.app, base_url="https://stats.example.org")
        own = {"origin": "https://stats.example.org", "sec-fetch-site": "same-origin"}
        key = {"key": address.partition("#")[2]}
        plain = own | {"origin": "http://stats.example.org"}
        assert client.post("/pages/enter", data=key, headers=plain).status_code == 403
        found = client.post("/pages/enter", data=key, headers=own, follow_redirects=False)
        assert found.headers["location"] == "/hushed/pages/start"
        cookie = found.headers["set-cookie"]
        assert cookie.startswith("__Host-hushed=hsh_")
        assert cookie.endswith("; HttpOnly; SameSite=Strict; Secure")
        page = client.get("/pages/requests").text
        assert 'href="/hushed/pages/datasets"' in page
        assert 'href="/hushed/pages/static/hushed.css"' in page
        made = team.ask(team.ana, "one", wait=0)  # a proxy takes the path away, and adds none
        assert made.headers["location"] == f"/hushed/v1/requests/{made.json()['id']}"


@pytest.mark.parametrize("more", ["?a=b", "/hushed#x", "a@stats.example.org"])
def test_a_public_address_is_a_name_and_perhaps_a_path(more):
    with pytest.raises(ValueError, match="https://NAME or https://NAME/PATH, and nothing more"):
        ServerSettings(public_url=f"https://{more}")
    assert ServerSettings(public_url="https://stats.example.org/").path == ""
    assert ServerSettings(public_url="https://stats.example.org/a/b/").path == "/a/b"
    assert ServerSettings().path == ""


def test_a_door_is_old_after_a_day_and_guesses_are_counted(team, monkeypatch):
    from hushed.ledger._rows import run
    from hushed.ledger._together import writing

    key = door(team, "ana")
    old = (datetime.now(UTC) - timedelta(seconds=1)).isoformat(timespec="seconds")
    with writing(team.desk.ledger) as connection:
        run(connection, "UPDATE @.hushed_s_tokens SET expires = :at", {"at": old})
    codes = [stranger(team).post("enter", {"key": key}).status_code for _ in range(12)]
    assert codes == [401] * 10 + [429] * 2
    assert stranger(team).post("enter", {"key": door(team, "ana")}).status_code == 200


def test_the_api_makes_addresses_for_the_pages_too(team):
    """A day is the most that one counts, whatever is asked for."""
    path = f"/v1/people/{team.person('ana')}/tokens"
    asked = {"page": True, "days": 90, "datasets": ["other"]}
    made = team.send("POST", path, team.sam, json=asked).json()
    assert made["address"] == f"{ORIGIN}/pages/enter#{made['token']}"
    assert team.send("POST", path, team.sam, json={}).json()["address"] is None
    people = team.send("GET", "/v1/people", team.sam).json()["items"]
    known = {each["id"]: each for person in people for each in person["tokens"]}[made["id"]]
    life = datetime.fromisoformat(known["expires"]) - datetime.fromisoformat(known["made"])
    assert (known["use"], life <= timedelta(days=1)) == ("door", True)
    browser = stranger(team)
    assert browser.post("enter", {"key": made["token"]}).status_code == 200
    assert "You have no share of a data set" in browser.get("datasets").text  # it is narrowed


@pytest.mark.slow
def test_the_process_of_the_pages_parses_no_condition_and_names_no_file(team, monkeypatch):
    """What analysts write is judged elsewhere; where a data set lies is no text of a page."""
    ana, sam = enter(team, "ana"), enter(team, "sam", "steward")
    monkeypatch.setattr("hushed.tables._query.parse", Mock(side_effect=AssertionError))
    typed = {"where.1.column": "cost", "where.1.value": "3", "where_text": "ward == 'A'"}
    priced = ana.price(0.1, **typed)
    assert priced.status_code == 200
    steps = json.loads(read_offer(priced.text)["body"])["query"]["steps"]
    assert [each["filter"] for each in steps] == ["cost == 3", "ward == 'A'"]
    wrong = ana.price(0.1, where_text="(" * 400)
    assert (wrong.status_code, "The query cannot be asked" in wrong.text) == (422, True)
    (team.folder.parent / "stays.csv").write_text("gone\n")
    lying = replace(team.desk.datasets["stays"], stale=f"no table {team.folder}")
    monkeypatch.setitem(team.desk.datasets, "stays", lying)
    for browser in (ana, sam):
        page = browser.get("datasets/stays").text
        assert "Cannot be asked" in page
        assert str(team.folder) not in page


@pytest.mark.slow
def test_17_a_form_of_very_many_rows_is_not_written_out(team):
    """Each row of the form has all of its choices: a small body would be megabytes of page."""
    ana = enter(team, "ana")
    for part in ("stat.{}.kind", "where.{}.column"):
        fields = {part.format(i): "" for i in range(1, 51)} | {"max_rows": "1", "epsilon": "0.1"}
        for path in ("question", "question/edit"):
            assert "at most 50" not in ana.post(f"datasets/stays/{path}", fields).text
            found = ana.post(f"datasets/stays/{path}", fields | {part.format(51): ""})
            assert found.status_code == 422
            assert "at most 50" in found.text
            assert len(found.text) < 10_000


def test_a_link_from_elsewhere_goes_on_to_the_page(quiet):
    """A strict cookie is not sent along such a link: the refusal leads on, to a page of ours."""
    elsewhere = {"sec-fetch-site": "cross-site"}
    found = stranger(quiet).get("requests/abc", headers=elsewhere)
    assert found.status_code == 401
    assert '<a href="/pages/requests/abc">' in found.text
    odd = stranger(quiet).get('requests/"><img>', headers=elsewhere)
    assert "<img" not in odd.text


def test_limits_are_plain_numbers_and_long_names_of_fields_have_room(team):
    """It read "at most epsilon 1.0", and four lines of a word each above a field."""
    ana = enter(team, "ana")
    for page in ("datasets", "datasets/stays"):
        assert re.search(r"costs at most epsilon \d+(\.\d*[1-9])?[.;](?!\d)", ana.get(page).text), (
            page
        )
    form = ana.get("datasets/stays/question").text
    for field in ("max_rows", "max_groups"):
        assert re.search(rf'<div class="field">\s*<label for="{field}">', form), field
