"""The page of a certificate over HTTP: for whom the certificate is, and harmless in a browser."""

from __future__ import annotations

import pytest
from tests.server.conftest import make_folder, open_team
from tests.server.test_pages import enter

from hushed.plots import certificate_page
from hushed.statements import public_key

pytestmark = pytest.mark.slow
HTML = {"accept": "text/html"}


def test_it_is_the_page_that_the_command_makes(team):
    """By `Accept`; anything else is the JSON, as before, also where it is named first."""
    made = team.ask(team.ana, "one").json()["id"]
    path = f"/v1/requests/{made}/certificate"
    signed = team.send("GET", path, team.ana).text
    found = team.send("GET", path, team.ana, headers=HTML)
    assert found.status_code == 200
    assert found.text == certificate_page(signed, key=public_key(team.desk.key))
    assert found.headers["content-type"] == "text/html; charset=utf-8"
    for accept in ("*/*", "application/json", "application/json, text/html;q=0.5", "text/csv", ""):
        other = team.send("GET", path, team.ana, headers={"accept": accept})
        assert (other.text, other.headers["content-type"]) == (signed, "application/json")
    browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    assert team.send("GET", path, team.ana, headers=browser).text == found.text
    assert f"requests/{made}/files/page" in enter(team, "ana").get(f"requests/{made}").text


def test_it_runs_nothing_and_is_saved(team):
    """A download, sandboxed, whose type nobody guesses and that nobody keeps."""
    made = team.ask(team.ana, "one").json()["id"]
    found = team.send("GET", f"/v1/requests/{made}/certificate", team.ana, headers=HTML)
    assert found.headers["content-disposition"].startswith('attachment; filename="certificate-')
    assert found.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert found.headers["x-content-type-options"] == "nosniff"
    page = enter(team, "ana").get(f"requests/{made}/files/page")
    for each in ("content-security-policy", "x-content-type-options", "cache-control"):
        assert found.headers[each] == page.headers[each]


def test_it_is_for_nobody_else(tmp_path):
    """Who may not read the certificate reads no page of it, with the same words."""
    tokens = make_folder(tmp_path, settings="answer_grid = 3600.0")
    for team in open_team(tmp_path / "stats", tokens):
        waits = team.ask(team.ana, "one", wait=0).json()["id"]
        path = f"/v1/requests/{waits}/certificate"
        for token, code in ((team.ana, 409), (team.bo, 404), (team.sam, 403), (None, 401)):
            plain = team.send("GET", path, token)
            page = team.send("GET", path, token, headers=HTML)
            assert (plain.status_code, page.status_code) == (code, code)
            assert plain.json() | {"request_id": ""} == page.json() | {"request_id": ""}
