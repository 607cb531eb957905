"""The pages of the house: start, data, ledger, history, settings."""

from __future__ import annotations

import html
import os
import re
import sys
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

import hushed as hs
from hushed._ground.printing import shown
from hushed._web.messages import Typed
from hushed._web.svg import WIDTH, Axis, Bar, draw_axes, draw_bars
from hushed.workbench._bench import _environment
from hushed.workbench._views.addresses import read_segment, write_segment

ROW = {
    "where": "file",
    "file": "stays.csv",
    "protect": "row",
    "col.2.name": "cost",
    "col.2.kind": "float",
    "col.2.low": "0",
    "col.2.high": "5000",
}


def read(text: str) -> str:
    """Text of a page, without its tags."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", text)))


def describe(browser: TestClient, **more: str) -> tuple[str, str]:
    """Fill in the page Data of a new draft; its address, and what it says."""
    page = str(browser.post("/tables").url)
    return page, browser.post(f"{page}/live", data=ROW | more).text


@pytest.mark.slow
def test_a_practice_workspace_is_ready_to_be_asked(browser: TestClient, folder: Path) -> None:
    """One button makes made-up tables, budgets and a draft, apart from the folder's own."""
    page = browser.post("/practice/begin")
    assert "protected is each person, with all rows" in read(page.text)
    assert "PRACTICE" in page.text
    assert "There are no drafts" in browser.get("/history").text
    assert "No budget" in browser.get("/ledger").text
    assert not (folder / "ledger.db").exists()


@pytest.mark.slow
def test_no_row_is_shown_or_used_before_a_release(visitor: TestClient) -> None:
    """Names of columns are shown, and of the cells none; kinds and bounds are not guessed."""
    page = str(visitor.post("/tables").url)
    said = visitor.post(f"{page}/live", data={"where": "file", "file": "stays.csv"}).text
    assert "ward" in said
    assert "424242" not in said
    assert "P1" not in said
    kinds = re.findall(r'<select[^>]*aria-label="Kind of .*?</select>', said, re.DOTALL)
    assert len(kinds) == 3
    assert not any(re.search(r'value="[a-z]+" selected', each) for each in kinds)


@pytest.mark.slow
def test_kinds_of_columns_are_told_in_words(browser: TestClient) -> None:
    """Whoever writes no program reads what a kind is; its name in queries stands beside it."""
    _, said = describe(browser)
    for kind in ("whole number (int)", "number (float)", "text (string)", "true or false (bool)"):
        assert f">{kind}</option>" in said
    assert re.search(r'<option value="float" selected>number', said)


@pytest.mark.slow
def test_what_is_typed_survives_a_restart(browser: TestClient, folder: Path) -> None:
    """A second server on the folder shows the form as it was typed, wrong fields too."""
    page, _ = describe(browser, **{"col.2.high": "abc", "name": "Costs"})
    from hushed.workbench import create_app

    app = create_app(folder, port=8000)
    with TestClient(app, base_url="http://127.0.0.1:8000") as other:
        other.get(app.address)
        found = other.get(page).text
    assert 'value="abc"' in found
    assert 'value="Costs"' in found


@pytest.mark.slow_cases("typed0-col.2.high-must be a number")
@pytest.mark.parametrize(
    ("typed", "field", "said"),
    [
        ({"col.2.high": "abc"}, "col.2.high", "must be a number"),
        ({"col.2.high": "-1"}, "col.2.high", "swapped"),
        ({"col.2.high": ""}, "col.2.low", None),
        ({"protect": "person", "user": "nobody"}, "user", "choose the column"),
        ({"protect": "person", "user": "patient", "max_rows": "0"}, "max_rows", "1 or more"),
        ({"rows": "many"}, "rows", "whole number"),
        ({"file": "missing.csv"}, "file", "no file"),
        ({"public": "stays.csv"}, "public", "private table itself"),
        ({"budget": "nothing"}, "budget", "there is no"),
    ],
)
def test_an_error_stands_at_its_field(
    visitor: TestClient, typed: dict[str, str], field: str, said: str | None
) -> None:
    """What is wrong is told where it was typed, and tied to the field for screen readers."""
    _, found = describe(visitor, **typed)
    if said is None:
        assert f'id="{field}-error"' not in found  # half filled in: told when one goes on
        return
    error = re.search(rf'id="{re.escape(field)}-error">([^<]*)<', found)
    assert error is not None
    assert said in html.unescape(error[1])
    control = re.search(rf'id="{re.escape(field)}" [^>]*>', found)
    assert control is not None
    assert 'aria-invalid="true"' in control[0]
    assert f"{field}-error" in control[0]


@pytest.mark.slow
def test_a_budget_for_other_people_is_refused_at_its_field(
    browser: TestClient, folder: Path
) -> None:
    """A budget that protects people does not take promises about rows."""
    with hs.Ledger(f"sqlite:///{folder / 'ledger.db'}") as ledger:
        people = hs.Guarantee(epsilon=1, neighbours="add-remove", unit="user")
        ledger.open_budget("people", people)
    _, found = describe(browser, budget="people")
    assert 'id="budget-error"' in found
    _, found = describe(browser, budget="people", protect="person", user="patient", max_rows="2")
    assert 'id="budget-error"' not in found


@pytest.mark.slow
def test_a_changed_file_has_to_be_looked_at_again(browser: TestClient, folder: Path) -> None:
    """A file that changed since it was described stops the draft until it is confirmed."""
    page, found = describe(browser)
    assert "1 column can be asked about" in read(found)
    (folder / "stays.csv").write_text("patient,ward,cost\nP1,A,1\n")
    assert "changed since you described it" in browser.get(page).text
    assert browser.post(page, data=ROW | {"mark": "1:1"}).status_code == 422
    kept = browser.post(f"{page}/keep", data=ROW)
    assert "1 column can be asked about" in read(kept.text)


@pytest.mark.slow
def test_a_password_is_kept_in_memory_only(browser: TestClient, folder: Path) -> None:
    """Typed into its field or into the address, it is in no file and on no page."""
    page = str(browser.post("/tables").url)
    places = {"where": "database", "place": "stays"}
    secret = "canary-4711"
    for typed in (
        {"address": "postgresql://ada@127.0.0.1:9/clinic", "password": secret},
        {"address": f"postgresql://ada:{secret}@127.0.0.1:9/clinic"},
        {"address": f"postgresql://ada@127.0.0.1:9/clinic?password={secret}"},
    ):
        found = browser.post(f"{page}/live", data=places | typed).text
        assert secret not in found + browser.get(page).text
        assert "postgresql://ada@127.0.0.1:9/clinic" in found
    kept = [each.read_bytes() for each in folder.rglob("*") if each.is_file()]
    assert kept
    assert not any(secret.encode() in each for each in kept)


@pytest.mark.slow
def test_a_public_table_suggests_and_says_so(browser: TestClient, folder: Path) -> None:
    """Kinds, bounds and keys come from the public rows; what was typed stays."""
    (folder / "public.csv").write_text("patient,ward,cost\nQ1,C,3.5\nQ2,D,99\n")
    page, _ = describe(browser, public="public.csv")
    names = {"col.0.name": "patient", "col.1.name": "ward"}
    found = browser.post(f"{page}/suggest", data=ROW | names | {"public": "public.csv"}).text
    assert "from public.csv" in found
    assert re.search(r"<textarea[^>]*>C\nD</textarea>", found)
    assert 'value="5000"' in found  # typed
    assert "99" not in re.findall(r'id="col.2.high"[^>]*value="([^"]*)"', found)
    page, _ = describe(browser, public="public.csv")
    by_people = ROW | names | {"public": "public.csv", "protect": "person", "user": "patient"}
    found = browser.post(f"{page}/suggest", data=by_people).text
    assert re.search(r"<textarea[^>]*>C\nD</textarea>", found)
    assert "Q1" not in found  # whose row it is


@pytest.mark.slow
def test_the_private_table_suggests_nothing_for_itself(browser: TestClient) -> None:
    """It is not offered as public, and a request that names it is refused before a row is read."""
    page, said = describe(browser)
    choices = re.findall(r'<select[^>]*name="public".*?</select>', said, re.DOTALL)
    assert len(choices) == 1
    assert "stays.csv" not in choices[0]
    own = ROW | {"col.1.name": "ward", "public": "stays.csv", "col.2.low": "", "col.2.high": ""}
    said = browser.post(f"{page}/suggest", data=own).text
    assert "is the private table itself" in said
    assert "424242" not in said
    assert "from stays.csv" not in said


@pytest.mark.slow
def test_a_budget_that_is_opened_for_a_table_is_chosen_there(browser: TestClient) -> None:
    """Opening goes back to the page it was asked from, with all that was typed."""
    page, said = describe(browser)
    link = re.search(r'href="([^"]*/ledger/open[^"]*)"', said)
    assert link is not None
    form = browser.get(html.unescape(link[1])).text
    hidden = re.search(r'type="hidden" name="table" value="([^"]*)"', form)
    assert hidden is not None
    typed = {"name": "wards", "unit": "row", "neighbours": "add-remove", "epsilon": "1"}
    back = browser.post("/ledger/open", data=typed | {"table": hidden[1]})
    assert str(back.url) == page
    assert re.search(r'<option value="wards" selected', back.text)
    assert 'value="5000"' in back.text
    other = browser.post("/ledger/open", data=typed | {"name": "b", "table": "../settings"})
    assert str(other.url).endswith("/ledger")


@pytest.mark.slow
def test_the_ledger_opens_a_budget_once_and_never_changes_it(
    browser: TestClient, folder: Path
) -> None:
    """A second budget of the same name is refused at its field, and the first one stays."""
    form = {"name": "stays", "unit": "row", "neighbours": "add-remove", "epsilon": "1"}
    assert "0 of 1 used" in browser.post("/ledger/open", data=form).text
    second = browser.post("/ledger/open", data=form | {"epsilon": "9"})
    assert second.status_code == 422
    assert 'id="name-error"' in second.text
    with hs.Ledger(f"sqlite:///{folder / 'ledger.db'}") as ledger:
        assert [each.limit.epsilon for each in ledger.budgets()] == [1.0]


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"epsilon": "0"}, "epsilon"),
        ({"epsilon": "-1"}, "epsilon"),
        ({"delta": "2"}, "delta"),
        ({"gamma": "1"}, "gamma"),
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"unit": "dog"}, "unit"),
        ({"epsilon": "nan"}, "epsilon"),
    ],
)
def test_a_wrong_limit_opens_nothing(
    visitor: TestClient, typed: dict[str, str], field: str
) -> None:
    """What is wrong with a limit is told at its field, and no budget is made."""
    form = {"name": "stays", "unit": "row", "neighbours": "add-remove", "epsilon": "1"}
    found = visitor.post("/ledger/open", data=form | typed)
    assert found.status_code == 422
    assert f'id="{field}-error"' in found.text
    assert "No budget" in visitor.get("/ledger").text


@pytest.mark.slow
def test_the_ledger_tells_who_spent_what_and_when(browser: TestClient, folder: Path) -> None:
    """A budget's page adds its entries up by person and by day."""
    with hs.Ledger(f"sqlite:///{folder / 'ledger.db'}") as ledger:
        ledger.open_budget("stays/2024", hs.Guarantee(epsilon=3))
        for person, epsilon in (("ada", 0.5), ("bo", 0.25), ("ada", 0.125)):
            ledger.charge("stays/2024", hs.Guarantee(epsilon=epsilon), f"by {person}: a count")
    found = read(browser.get(f"/ledger/{write_segment('stays/2024')}").text)
    assert "ada 2 epsilon 0.625" in found
    assert "bo 1 epsilon 0.25" in found
    assert "3 epsilon 0.875" in found  # of the one day


@pytest.mark.slow
def test_a_ledger_that_cannot_be_used_stops_releases_only(
    browser: TestClient, folder: Path
) -> None:
    """Every page says what is wrong, and the page Data still describes."""
    (folder / "ledger.db").write_bytes(b"no ledger, but a letter to grandmother" * 9)
    page, found = describe(browser)
    assert "1 column can be asked about" in read(found)
    assert "Asking is possible, releasing is not" in browser.get(page).text
    assert browser.get("/ledger").status_code == 200


@pytest.mark.slow
def test_verify_backup_and_export_say_what_they_found(browser: TestClient, folder: Path) -> None:
    """The chain's last link is shown, a copy can be opened, an export is a download."""
    url = f"sqlite:///{folder / 'ledger.db'}"
    with hs.Ledger(url) as ledger:
        ledger.open_budget("stays", hs.Guarantee(epsilon=3))
        ledger.charge("stays", hs.Guarantee(epsilon=1), "a count")
        anchor = ledger.verify("stays")
        assert anchor in browser.post("/ledger/verify").text
        said = browser.post("/ledger/backup").text
        copied = re.search(r"ledger-copy-[\d-]+\.db", said)
        assert copied is not None
        with hs.Ledger(f"sqlite:///{folder / copied[0]}", create=False) as copy:
            assert copy.verify("stays") == anchor
        export = browser.get("/ledger/export")
        assert export.text == ledger.export()
    assert export.headers["content-disposition"].startswith("attachment")
    assert "sandbox" in export.headers["content-security-policy"]


def test_a_draft_is_copied_and_deleted_from_the_history(visitor: TestClient) -> None:
    """A copy holds the form; deleting one leaves the other."""
    page, _ = describe(visitor, name="Costs by ward")
    identity = page.split("/")[-2]
    copy = visitor.post(f"/drafts/{identity}/copy")
    assert 'value="Costs by ward (copy)"' in copy.text
    assert 'value="5000"' in copy.text
    visitor.post(f"/drafts/{identity}/delete")
    found = visitor.get("/history").text
    assert "Costs by ward (copy)" in found
    assert visitor.get(page).status_code == 404
    assert "Costs by ward" not in visitor.get("/history?text=nothing").text


HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "\"'><script>alert(1)</script>",
    "a\nb\rc",
    "\u202egnp.exe",
    "{{ 7 * 7 }}",
    "x" * 10_000,
]


@pytest.mark.slow_cases("1")
@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE, ids=map(str, range(len(HOSTILE))))
def test_hostile_names_are_shown_as_text(browser: TestClient, folder: Path, name: str) -> None:
    """W8: names of drafts, columns and budgets, and notes, are text on every page."""
    page, found = describe(browser, name=name, **{"col.2.name": name, "search": name})
    with hs.Ledger(f"sqlite:///{folder / 'ledger.db'}") as ledger:
        ledger.open_budget("stays", hs.Guarantee(epsilon=3), note=name)
        ledger.charge("stays", hs.Guarantee(epsilon=1), name)
    places = ("/", "/tables", "/history", "/ledger", "/ledger/stays", page)
    for each in [found, *(browser.get(place).text for place in places)]:
        assert "<img" not in each
        assert "<script>" not in each
        assert "49" not in re.findall(r"<li>([^<]*)", each)
    shown = [browser.get(place).text for place in ("/history", "/ledger/stays")]
    assert not any("\u202e" in each for each in shown)
    assert not any("x" * 400 in each for each in shown)


def test_the_settings_name_the_ledger_as_a_command_takes_it(
    browser: TestClient, folder: Path
) -> None:
    """With every slash of the path: the line is copied."""
    assert f"<dd>sqlite:///{folder.resolve() / 'ledger.db'}</dd>" in browser.get("/settings").text


@pytest.mark.slow
def test_appearance_is_kept(browser: TestClient, folder: Path) -> None:
    """The colours that were chosen hold on every page; what is none is not taken."""
    browser.post("/settings", data={"theme": "dark"})
    assert 'data-theme="dark"' in browser.get("/history").text
    browser.post("/settings", data={"theme": '"><script>'})
    assert 'data-theme="dark"' in browser.get("/").text


def test_the_vendored_file_is_the_one_that_the_licence_names() -> None:
    """The digest beside the licence is that of the file."""
    import hashlib

    from hushed._web.rendering import STATIC as static

    digest = hashlib.sha256((static / "htmx.min.js").read_bytes()).hexdigest()
    assert digest in (static / "LICENSES").read_text()
    assert "4.0.1" in (static / "htmx.min.js").read_text()


def test_the_first_page_is_small(visitor: TestClient) -> None:
    """W13: the first page with all it loads is below 150 kB."""
    first = visitor.get("/").text
    files = re.findall(r'(?:src|href)="(/static/[^"]+)"', first)
    assert len(files) == 5
    total = len(first.encode()) + sum(len(visitor.get(each).content) for each in files)
    assert total < 150_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "public", ["stays.csv", "other/../stays.csv", "again.csv", "sub\\twin.csv"]
)
def test_the_private_table_suggests_nothing(browser: TestClient, folder: Path, public: str) -> None:
    """By whatever name it is called public: its keys and bounds would be answers without noise."""
    (folder / "again.csv").hardlink_to(folder / "stays.csv")
    (folder / "sub").mkdir()
    (folder / "sub" / "twin.csv").hardlink_to(folder / "stays.csv")
    page, _ = describe(browser)
    empty = {"col.0.name": "patient", "col.1.name": "ward", "col.2.name": "cost"}
    kinds = {f"col.{each}.{part}": "" for each in range(3) for part in ("kind", "low", "high")}
    found = browser.post(f"{page}/suggest", data=ROW | kinds | empty | {"public": public})
    assert 'id="public-error"' in found.text
    assert "424242" not in found.text
    assert not re.search(r"<textarea[^>]*>A\nB</textarea>", found.text)
    told = browser.post(page, data=ROW | {"public": public})
    assert (told.status_code, 'id="public-error"' in told.text) == (422, True)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_file_whose_name_is_no_text_breaks_no_page(browser: TestClient, folder: Path) -> None:
    """Names in an older encoding are left out of the lists."""
    for ending in (b".csv", b".py"):
        Path(os.fsdecode(bytes(folder) + b"/caf\xe9" + ending)).write_text("cost\n1\n")
    page = browser.get(str(browser.post("/tables").url))
    assert (page.status_code, "stays.csv" in page.text, "caf" in page.text) == (200, True, False)
    work = browser.post("/functions/new", data={})
    assert (work.status_code, "stays.csv" in work.text) == (200, True)


@pytest.mark.slow
def test_damaged_records_of_the_workbench_are_told(browser: TestClient, folder: Path) -> None:
    """A damaged job leaves the others usable; damaged drafts are told on a page."""
    damaged = folder / ".hushed" / "jobs" / ("a" * 32)
    damaged.mkdir(parents=True)
    (damaged / "job.json").write_text("{}")
    work = browser.post("/functions/new", data={})
    assert work.status_code == 200
    (folder / ".hushed" / "drafts.db").write_bytes(b"garbage" * 1000)
    told = browser.get("/history")
    assert (told.status_code, "rafts cannot be written" in told.text) == (422, True)


@pytest.mark.slow
def test_what_is_not_shown_while_a_table_cannot_be_opened_is_not_lost(
    browser: TestClient, folder: Path
) -> None:
    """A database that waits for its password, or a file that is away, has its description later."""
    page, _ = describe(browser, rows="30", **{"col.2.high": "4321"})
    (folder / "stays.csv").rename(folder / "away.csv")
    away = browser.post(f"{page}/live", data={"where": "file", "file": "stays.csv"}).text
    assert "Who is protected" not in away
    (folder / "away.csv").rename(folder / "stays.csv")
    back = browser.get(page).text
    assert 'value="4321"' in back
    assert re.search(r'id="rows"[^>]*value="30"', back)


@pytest.mark.slow
@pytest.mark.parametrize("known", [False, True], ids=["new", "with-drafts"])
def test_a_folder_for_reading_only_shows_its_pages_and_releases_nothing(
    browser: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch, *, known: bool
) -> None:
    """Every page says why nothing is kept; a release is refused before a row is read."""
    hidden = folder / ".hushed"
    page = ""
    if known:  # the superuser may write everywhere: what the system says is said in its place
        budget = {"name": "stays", "unit": "row", "neighbours": "add-remove", "epsilon": "1"}
        browser.post("/ledger/open", data=budget)
        page, _ = describe(browser, budget="stays", name="the stays of May")
        opening = os.open

        def refuse(path: str | Path, flags: int, *more: int) -> int:
            if flags & (os.O_RDWR | os.O_WRONLY) and str(path).startswith(str(hidden)):
                raise PermissionError(13, "Permission denied", str(path))
            return opening(path, flags, *more)

        monkeypatch.setattr(os, "open", refuse)
    else:
        hidden.write_text("a file where the folder would be")
    for place in ("/", "/history", "/ledger", "/tables", "/functions", "/settings"):
        shown_page = browser.get(place)
        assert shown_page.status_code == 200, place
        assert "This folder is for reading only" in shown_page.text, place
    if not known:
        assert browser.post("/tables").status_code == 422
        return
    assert "the stays of May" in browser.get("/history").text
    asked = page.replace("/data", "/question")
    sum_of = {"stat.1.kind": "sum", "stat.1.column": "cost", "epsilon": "0.5", "moved": "epsilon"}
    told = browser.post(f"{asked}/live", data=sum_of, headers={"hx-request": "true"})
    assert (told.status_code, "error within" in told.text) == (200, True)
    for send in (browser.get, browser.post):
        refused = send(page.replace("/data", "/release"))
        assert refused.status_code == 422
        assert "nothing was read or charged" in refused.text
    assert hs.Ledger(f"sqlite:///{folder / 'ledger.db'}").entries("stays") == ()


@pytest.mark.slow
def test_what_turns_the_direction_of_writing_is_spelled_out(
    browser: TestClient, folder: Path
) -> None:
    """On every page that shows a note; a field gives it back as it was typed."""
    odd = "for A\u202eda\x1b[2J"
    limit = hs.Guarantee(epsilon=3.0, neighbours="add-remove")
    with hs.Ledger(f"sqlite:///{folder / 'ledger.db'}") as book:
        book.open_budget("stays", limit)
        query = hs.table(pa.table({"x": [1.0]})).count()
        query.release(epsilon=0.5, ledger=book, budget="stays", note=odd)
    for place in ("/", "/ledger/stays", "/answers/stays/1", "/history"):
        assert not {"\u202e", "\x1b"} & set(browser.get(place).text), place
    assert "for A\\u202eda\\x1b[2J" in browser.get("/answers/stays/1").text
    page = browser.post("/functions/new", data={"draft-name": "a\u202eb"})
    assert 'value="a\u202eb"' in page.text
    assert "<title>a\\u202eb" in page.text


PRINTABLE = st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), min_size=1, max_size=200)


@given(st.one_of(PRINTABLE, st.sampled_from([".", "..", "a/b", "~b3Blbg", "open", "a%2Fb", "a "])))
def test_a_name_is_one_part_of_an_address_and_comes_back(name: str) -> None:
    """Nothing in it ends a path, climbs, is decoded on the way, or is another page's name."""
    segment = write_segment(name)
    assert re.fullmatch(r"[A-Za-z0-9._~-]+", segment)
    assert segment not in (".", "..", "open", "verify", "backup", "export")
    assert read_segment(segment) == name


@given(st.text("~abAB01_-./%= ", max_size=12))
def test_a_part_of_an_address_has_one_name_or_none(segment: str) -> None:
    """What no name is written as is refused: no two addresses lead to one budget."""
    try:
        name = read_segment(segment)
    except hs.errors.NotFound:
        return
    assert write_segment(name) == segment


NAMES = [
    "stays/2024",
    "..",
    ".",
    "a?b",
    "a#b",
    "100 %",
    "%2e%2e",
    " a  b ",
    "Bücher",
    "open",
    "~YQ",
]


@pytest.mark.slow
def test_every_link_to_a_budget_leads_to_it(
    browser: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it is called, also by an older version: from the header, the start, each page."""
    monkeypatch.setattr("hushed.ledger._accounts.check_new", lambda *_: None)
    limit = hs.Guarantee(epsilon=3.0, neighbours="add-remove", unit="row")
    query = hs.table(pa.table({"x": [1.0]})).count()
    with hs.Ledger(f"sqlite:///{folder / 'ledger.db'}") as book:
        for name in NAMES[1:]:
            book.open_budget(name, limit)
            query.release(epsilon=0.5, ledger=book, budget=name)
    opened = {"name": NAMES[0], "unit": "row", "neighbours": "add-remove", "epsilon": "3"}
    assert browser.post("/ledger/open", data=opened).status_code == 200
    places = ("/", "/ledger", "/history")
    links = {
        html.unescape(each)
        for place in places
        for each in re.findall(r'href="(/(?:ledger|answers)/[^"]+)"', browser.get(place).text)
    }
    found, reports = set(), []
    for link in sorted(links - {"/ledger/open", "/ledger/export"}):
        page = browser.get(link)
        assert page.status_code == 200, link
        found |= {html.unescape(each) for each in re.findall("<h1>Budget (.*?)</h1>", page.text)}
        for report in re.findall(r'href="([^"]+/report\.(?:html|json))"', page.text):
            reports.append(browser.get(html.unescape(report)))
            assert reports[-1].headers["content-disposition"].startswith("attachment")
    assert found == {shown(name) for name in NAMES}
    assert len(reports) == 2 * (len(NAMES) - 1)
    for page, record in zip(reports[::2], reports[1::2], strict=True):
        known = hs.Statement.from_json(record.text)
        assert known.kind == "budget"
        assert known.record_digest in page.text
    assert sum(each.startswith("/answers/") for each in links) == len(NAMES) - 1
    _, said = describe(browser, budget=" a  b ", **{"col.0.name": "patient"})
    assert "there is no budget" not in said
    assert "budget-error" not in said


def test_whatever_a_template_shows_is_spelled_out() -> None:
    """Also what is no text, as a path, beside markup; and all of it is escaped."""
    shown = _environment().from_string(
        "{{ a }}{% set b %}<i>{{ a }}</i>{% endset %}{{ b }}{{ 1.5 }}"
    )
    for held in ("x\u202e<b>", Path("x\u202e<b>")):
        told = "x\\u202e&lt;b&gt;"
        assert shown.render(a=held) == f"{told}<i>{told}</i>1.5"
    assert shown.render(a=Typed("\u202e<b>")).startswith("\u202e&lt;b&gt;<i>")


def test_a_long_title_and_a_name_of_a_bar_have_room_in_their_picture():
    """A title is written from the right end where its middle would put it beyond; names keep."""
    axis = partial(Axis, low=0, high=1, ticks=())
    for title in ("cost", "x" * 40, "x" * 47):
        shapes = draw_axes(axis(title=title), axis(title="y"), WIDTH, 190)
        (drawn,) = [each for each in shapes if each.text == title]
        half = {"middle": 0.5, "end": 0.0}[drawn.anchor]
        assert drawn.x + half * 7 * len(title) <= WIDTH
    bars = [Bar(name="blocks, public guess", value=1.0), Bar(name="smooth", value=2.0)]
    words = [each.text for each in draw_bars(bars, sentence="").shapes]
    assert {"blocks, public guess", "smooth"} <= set(words)
