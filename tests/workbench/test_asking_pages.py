"""The pages of a question and its release, without a browser."""

import json
import re
import time
from html import unescape

import pytest
from fastapi.testclient import TestClient

import hushed as hs
from hushed.workbench import create_app
from hushed.workbench._drafts import Drafts

PORT = 8123
DATA = {
    "where": "file",
    "file": "stays.csv",
    "protect": "row",
    "rows": "30",
    "budget": "stays",
    "col.0.name": "cost",
    "col.0.kind": "float",
    "col.0.low": "0",
    "col.0.high": "100",
}


@pytest.fixture
def asked(tmp_path):
    """A client, the draft of a described table, and the drafts."""
    (tmp_path / "stays.csv").write_text("cost\n" + "5\n" * 30)
    with hs.Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as book:
        book.open_budget("stays", hs.Guarantee(epsilon=1.0, neighbours="add-remove", unit="row"))
    app = create_app(tmp_path, port=PORT)
    base = f"http://127.0.0.1:{PORT}"
    own = {"origin": base, "sec-fetch-site": "same-origin"}
    drafts = Drafts(tmp_path / ".hushed" / "drafts.db")
    draft = drafts.create("table", "<b>Stays</b>", {f"data.{k}": v for k, v in DATA.items()})
    with TestClient(app, base_url=base, headers=own) as client:
        client.get(app.address)
        yield client, draft, drafts


FORM = {"stat.1.kind": "sum", "stat.1.column": "cost", "epsilon": "0.5", "moved": "epsilon"}
PART = {"hx-request": "true"}


@pytest.mark.slow
def test_a_column_that_is_to_be_chosen_next_is_no_mistake_yet(asked):
    """It is one when the price is checked."""
    client, draft, _ = asked
    address = f"/tables/{draft.id}/question"
    chosen = FORM | {"stat.1.column": ""}
    calm = client.post(f"{address}/edit", data=chosen, headers=PART).text
    assert "Next: choose the column of the sum." in calm
    assert "aria-invalid" not in calm
    refused = client.post(address, data=chosen)
    assert refused.status_code == 422
    assert 'id="stat.1.column-error">choose the column of the sum' in refused.text


@pytest.mark.slow
def test_without_a_known_error_no_number_stands_for_one(asked):
    """That of another statistic, say; and what helps is said in words of the page."""
    client, draft, drafts = asked
    address = f"/tables/{draft.id}/question"
    fields = {f"data.{k}": v for k, v in (DATA | {"rows": ""}).items()}
    draft = drafts.create("table", "Means", fields)
    address = f"/tables/{draft.id}/question"
    asked_for = FORM | {"stat.1.kind": "mean", "error": "15"}
    page = client.post(f"{address}/edit", data=asked_for, headers=PART).text
    assert "say under More about how many rows a group has" in page
    assert re.search(r'<input id="error" name="error" type="text" value=""', page)
    client.post(address, data=asked_for)
    release = client.get(f"/tables/{draft.id}/release").text
    assert "such as 100, under More" in release
    assert "rows=100" not in release


@pytest.mark.slow
def test_a_changed_form_is_written_down_and_its_errors_stand_at_their_fields(asked):
    """A killed server loses nothing; what was said stays while a field is wrong."""
    client, draft, drafts = asked
    address = f"/tables/{draft.id}/question"
    good = client.post(f"{address}/live", data=FORM, headers=PART)
    assert (good.status_code, good.headers["hx-trigger"]) == (200, "priced")
    assert "error within 599.2" in good.text  # 100 / 0.5 * log(20), rounded up
    bad = client.post(f"{address}/live", data=FORM | {"stat.1.low": "<i>"}, headers=PART)
    assert bad.headers["hx-reswap"] == "none"
    assert "lowest: this must be a number" in bad.text
    assert "The numbers are of what was typed before" in bad.text
    assert "<i>" not in bad.text
    assert drafts.get(draft.id).part("question.")["stat.1.low"] == "<i>"
    gaussian = client.post(f"{address}/live", data=FORM | {"noise": "gaussian"}, headers=PART)
    assert ">Take it</button>" in gaussian.text  # of the usual delta, and only while there is none
    assert ">Take it</button>" not in good.text
    page = client.get(address).text
    assert 'aria-invalid="true"' in page
    assert "<b>Stays" not in page


@pytest.mark.slow
def test_a_form_that_is_not_whole_goes_no_further(asked):
    """The page comes again with its errors, and nothing is charged."""
    client, draft, _ = asked
    address = f"/tables/{draft.id}"
    found = client.post(f"{address}/question", data=FORM | {"epsilon": "much"})
    assert (found.status_code, "must be a number" in found.text) == (422, True)
    refused = client.get(f"{address}/release")
    assert (refused.status_code, "not complete" in refused.text) == (422, True)


@pytest.mark.slow
def test_a_description_that_is_gone_leads_back_to_the_data(asked):
    """Also from a page that is open."""
    client, draft, drafts = asked
    drafts.change(draft.id, {"where": "file"}, prefix="data.")
    address = f"/tables/{draft.id}/question"
    assert client.get(address, follow_redirects=False).headers["location"].endswith("/data")
    live = client.post(f"{address}/live", data=FORM, headers=PART)
    assert live.headers["hx-redirect"].endswith(f"/tables/{draft.id}/data")


@pytest.mark.slow
def test_a_form_of_another_question_charges_nothing(asked):
    """Its request id and digest are those of the page that was shown."""
    client, draft, drafts = asked
    address = f"/tables/{draft.id}/release"
    drafts.change(draft.id, FORM, prefix="question.")
    hidden = dict(re.findall(r'name="(request|digest)" value="([^"]+)"', client.get(address).text))
    drafts.change(draft.id, FORM | {"epsilon": "0.7"}, prefix="question.")
    stale = client.post(address, data=hidden)
    assert (stale.status_code, "changed in another window" in stale.text) == (422, True)
    again = dict(re.findall(r'name="(request|digest)" value="([^"]+)"', client.get(address).text))
    assert again["digest"] != hidden["digest"]
    assert again["request"] != hidden["request"]
    history = client.get("/history").text  # each price once, however often it was looked at
    assert (history.count("epsilon 0.5 of stays"), history.count("epsilon 0.7 of stays")) == (1, 1)


@pytest.mark.slow
def test_a_budget_that_was_changed_in_another_window_is_not_charged(asked, tmp_path):
    """The page names one budget; an open page of it never charges another."""
    client, draft, drafts = asked
    with hs.Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as book:
        book.open_budget("other", hs.Guarantee(epsilon=1.0, neighbours="add-remove", unit="row"))
    address = f"/tables/{draft.id}/release"
    drafts.change(draft.id, FORM, prefix="question.")
    shown = client.get(address).text
    hidden = dict(re.findall(r'name="(request|digest|budget)" value="([^"]+)"', shown))
    drafts.change(draft.id, DATA | {"budget": "other"}, prefix="data.")
    stale = client.post(address, data=hidden, follow_redirects=False)
    assert (stale.status_code, "changed in another window" in stale.text) == (422, True)
    page = client.get(address).text
    assert dict(re.findall(r'name="(budget)" value="([^"]+)"', page)) == {"budget": "other"}


@pytest.mark.slow
def test_files_of_an_answer_name_the_data_that_were_asked(asked, tmp_path):
    """A draft that is given another name and another table changes nothing of what it found."""
    client, draft, drafts = asked
    address = f"/tables/{draft.id}/release"
    drafts.change(draft.id, FORM, prefix="question.", name="Stays of May")
    shown = client.get(address).text
    client.post(
        address, data=dict(re.findall(r'name="(request|digest|budget)" value="([^"]+)"', shown))
    )
    while "/answers/" not in str(client.get(address).url):
        time.sleep(0.05)
    (tmp_path / "others.csv").write_text("cost\n" + "7\n" * 30)
    drafts.change(draft.id, DATA | {"file": "others.csv"}, prefix="data.", name="Others")
    files = {
        kind: client.get(f"/answers/stays/1/files/{kind}?path=yes").text
        for kind in ("certificate", "report", "python")
    }
    assert not [kind for kind, text in files.items() if "thers" in text]
    assert json.loads(files["certificate"])["data"] == "stays"  # the name of its budget
    assert "Stays of May" not in files["report"]  # which is the name of a question
    assert "stays.csv" in files["python"]


def test_a_request_that_is_late_writes_nothing(tmp_path):
    """Of two requests for one page the one that arrived last holds, however long each takes."""
    drafts = Drafts(tmp_path / ".hushed" / "drafts.db")
    draft = drafts.create("table", "Stays")
    drafts.change(draft.id, {"noise": "gaussian"}, prefix="question.", turn=7)
    drafts.change(draft.id, {"noise": "laplace"}, prefix="question.", turn=6)
    drafts.change(draft.id, {"file": "stays.csv"}, prefix="data.", turn=5)
    wanted = {"question.noise": "gaussian", "data.file": "stays.csv"}
    assert drafts.get(draft.id).fields == wanted
    drafts.change(draft.id, {"noise": "laplace"}, prefix="question.")
    assert drafts.get(draft.id).fields == wanted | {"question.noise": "laplace"}


@pytest.mark.slow
def test_the_name_of_a_budget_is_told_from_the_sentence_around_it(asked):
    """It read "Used of the budget stays: 0", where stays is a name."""
    client, draft, _ = asked
    count = {"stat.1.kind": "count", "epsilon": "0.5", "moved": "epsilon"}
    found = client.post(f"/tables/{draft.id}/question", data=count)
    assert "Used of the budget 'stays': 0, then 0.5 of 1." in unescape(found.text)
    described = client.post(f"/tables/{draft.id}/data/live", data=DATA, headers=PART)
    assert "charged to the budget 'stays'." in unescape(described.text)
