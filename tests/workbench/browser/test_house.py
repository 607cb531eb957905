"""The house around the pages in a real browser: keyboard, lost server, hostile names."""

from __future__ import annotations

import csv
import webbrowser
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from tests.served import find_faults, list_unreadable, scrolls_sideways

import hushed as hs
from hushed.workbench._serving import open_browser

pytestmark = pytest.mark.browser

PRACTICE = "Try it on the example clinic"
# All that has the focus by Tab, and what it is called: of what is shown and not disabled.
CONTROLS = """() => [...document.querySelectorAll(
    "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")]
  .filter((each) => each.checkVisibility() && !each.disabled && !(each.type === "radio" &&
    !each.checked && document.querySelector(`[name="${each.name}"]:checked`)))
  .map((each, number) => (each.dataset.number = number))"""

NAMELESS = """() => [...document.querySelectorAll("[data-number]")].filter((each) => !(
    each.textContent.trim() || each.getAttribute("aria-label") ||
    [...(each.labels || [])].some((label) => label.textContent.trim())))
  .map((each) => each.outerHTML)"""


@pytest.fixture
def clinic(tmp_path):
    """A folder with a table and a budget that was charged."""
    (tmp_path / "stays.csv").write_text("patient,ward,cost\nP1,A,10\nP2,B,20\n")
    with hs.Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as book:
        limit = hs.Guarantee(epsilon=3.0, neighbours="add-remove")
        book.open_budget("stays", limit)
        half = hs.Guarantee(epsilon=0.5, neighbours="add-remove")
        book.charge("stays", half, "by ada: a count", key="one")
    return tmp_path


def list_states(page: Any, url: str) -> Any:
    """Go through the pages of the house in each of their states; the name of each is given."""
    for path in ("/", "/tables", "/ledger", "/ledger/stays", "/ledger/open", "/history"):
        page.goto(url + path)
        yield path
    for path in ("/settings", "/help", "/nothing"):
        page.goto(url + path)
        yield path
    page.goto(f"{url}/ledger/open")
    page.get_by_role("button", name="Open the budget").click()
    page.locator("#name:focus").wait_for()
    yield "a refused budget"
    page.goto(f"{url}/ledger")
    page.get_by_role("button", name="Verify the chain").click()
    yield "a verified ledger"
    page.goto(f"{url}/tables")
    page.get_by_role("button", name="Begin a question").click()
    yield "an empty form"
    page.get_by_label("File", exact=True).select_option("stays.csv")
    page.get_by_label("one row", exact=True).check()
    page.get_by_label("Kind of cost").select_option("float")
    page.get_by_label("Lower bound of cost").fill("9")
    page.get_by_label("Upper bound of cost").fill("1")
    page.keyboard.press("Tab")
    page.locator(".error").wait_for()
    page.get_by_label("Kind of ward").select_option("string")
    page.locator("textarea[id='col.1.keys']").wait_for(state="attached")
    yield "a form with an error"
    page.goto(url + "/")
    page.get_by_role("button", name=PRACTICE).click()
    page.get_by_label("Kind of ward").wait_for()
    yield "a practice form"
    yield from list_questions(page)


def list_questions(page: Any) -> Any:
    """Ask for bounds that are found privately, and for the most frequent keys."""
    page.get_by_role("button", name="Go on to the question").click()
    said = {"sum": "its error depends on the bounds", "top_k": "of the best one"}
    for kind, column in (("sum", "cost"), ("top_k", "ward")):
        choose(page, "stat.1.kind", kind)
        choose(page, "stat.1.column", column)
        if kind == "sum":
            choose(page, "stat.1.search", "both")
        page.get_by_text(said[kind]).first.wait_for()
        page.locator("#preview svg, #preview table").first.wait_for(state="attached")
        yield f"a question of kind {kind}"


def choose(page: Any, field: str, option: str) -> None:
    """Choose, and wait until the server has said what belongs to the choice."""
    page.locator(f"[id='{field}']").select_option(option)
    chosen = page.locator(f"[id='{field}'] option[value='{option}'][selected]")
    chosen.wait_for(state="attached")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_every_state_can_be_used_by_everybody(clinic, serve, open_page, width, scheme):
    """W3: on every page and state axe finds nothing, and Tab comes by every control, with a name.

    The order is that of reading, and nothing scrolls sideways on a phone.
    """
    served = serve(clinic)
    page, watch = open_page(served, width=width, color_scheme=scheme)
    watch.allow("404", "422")
    seen = []
    for state in list_states(page, served.url):
        assert find_faults(page) == [], state
        assert not scrolls_sideways(page), state
        assert list_unreadable(page) == [], state
        numbers = page.evaluate(CONTROLS)
        assert press_tab(page, len(numbers)) == numbers, state
        assert page.evaluate(NAMELESS) == [], state
        seen.append(state)
    assert len(seen) == 16


def press_tab(page: Any, times: int) -> list[int]:
    """Go on by Tab from the first control; where each step comes to."""
    here = "Number(document.activeElement.dataset.number)"
    page.evaluate("document.querySelector('.skip').focus()")
    reached = [page.evaluate(here)]
    for _ in range(times - 1):
        page.keyboard.press("Tab")
        reached.append(page.evaluate(here))
    return reached


def test_a_form_is_filled_in_and_sent_by_keyboard_alone(clinic, serve, open_page):
    """Ctrl+Enter presses the main button; the first field with an error gets the focus."""
    served = serve(clinic)
    page, watch = open_page(served)
    watch.allow("422")
    page.goto(f"{served.url}/ledger/open")
    page.keyboard.press("Control+Enter")
    page.locator("#name:focus").wait_for()
    page.keyboard.type("fees")
    page.locator("#epsilon").focus()
    page.keyboard.type("2")
    page.keyboard.press("Control+Enter")
    page.get_by_role("link", name="fees", exact=True).wait_for()
    # What asked may be replaced before it asks: then the request is told at the document.
    asked = "new CustomEvent('htmx:before:request', {detail: {ctx: {}}})"
    page.evaluate(f"document.dispatchEvent({asked})")


def test_what_is_typed_keeps_the_focus_while_the_form_changes(clinic, serve, open_page):
    """The form answers each change, and the field that one went on to stays where one types."""
    served = serve(clinic)
    page, _ = open_page(served)
    page.get_by_role("button", name=PRACTICE).click()
    fold = page.locator("details", has_text="Public keys of age")
    fold.locator("summary").click()
    assert fold.evaluate("each => each.open")
    page.get_by_label("Upper bound of nights").fill("-1")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    here = page.evaluate("document.activeElement.id")
    assert here == "col.4.kind"
    page.get_by_text("the bounds are swapped").wait_for()
    assert page.evaluate("document.activeElement.id") == here
    assert fold.evaluate("each => each.open")  # and what was opened stays open
    page.get_by_label("Upper bound of nights").fill("31")
    page.keyboard.press("Tab")
    page.get_by_text("the bounds are swapped").wait_for(state="detached")


def test_what_is_typed_before_the_scripts_are_there_is_told_to_the_server(clinic, serve, open_page):
    """On a slow computer the page can be filled in before it can send anything."""
    page, _ = open_page(serve(clinic))
    page.get_by_role("button", name=PRACTICE).click()
    page.get_by_label("Upper bound of cost").wait_for()
    held = []
    page.route("**/static/*.js", lambda asked, _: held.append(asked))
    page.reload(wait_until="commit")
    page.get_by_label("Upper bound of cost").fill("1234.5")
    with page.expect_response(lambda each: each.url.endswith("/live"), timeout=20_000) as told:
        while len(held) < 2:
            page.wait_for_timeout(50)
        for each in held:
            each.continue_()
    assert "1234.5" in str(told.value.request.post_data)


def test_a_stopped_server_is_told_and_a_restarted_one_has_the_form(
    clinic, serve_process, open_page, monkeypatch
):
    """W7: the banner comes by itself; after a restart the form is as it was typed.

    The second time the workbench is opened by its file, as a browser is that is opened for you.
    """
    served = serve_process(clinic)
    page, watch = open_page(served)
    page.get_by_role("button", name=PRACTICE).click()
    with page.expect_response(lambda each: each.url.endswith("/live")):
        page.get_by_label("Upper bound of cost").fill("1234.5")
        page.keyboard.press("Tab")
    form = page.url
    watch.allow("ERR_CONNECTION", "403", "Failed to fetch")  # refused, or reset by the kill
    banner = page.get_by_role("alert").filter(has_text="The workbench has stopped")
    assert not banner.is_visible()
    served.kill()
    banner.wait_for(timeout=10_000)
    assert page.get_by_label("Upper bound of cost").input_value() == "1234.5"
    served.start()
    page.context.clear_cookies()
    watch.allow("file://")
    monkeypatch.setattr(webbrowser, "open", page.goto)
    open_browser(clinic / ".hushed" / "open.html", served.key_address)
    page.wait_for_url(f"{served.url}/")
    page.get_by_role("link", name="Ask a table").first.wait_for()
    page.goto(form)
    assert page.get_by_label("Upper bound of cost").input_value() == "1234.5"
    page.wait_for_timeout(1500)
    assert not banner.is_visible()


NASTY = [
    "<img src=x onerror=alert(1)>",
    "\"'><script>alert(1)</script>",
    "line\nend",
    "\u202etxt.exe",
    "y" * 10_000,
]


def test_hostile_names_run_nothing_and_break_no_page(tmp_path, serve, open_page):
    """W8: names of columns, files, budgets and drafts, keys and notes are text, and fit a phone."""
    with (tmp_path / "stays.csv").open("w", newline="") as lines:
        csv.writer(lines).writerow([each.replace("\n", " ") + "c" for each in NASTY])
    (tmp_path / "<img src=x onerror=alert(2)>.csv").write_text("a,b\n1,2\n")
    with hs.Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as book:
        for number, name in enumerate(NASTY):
            limit = hs.Guarantee(epsilon=1.0, neighbours="add-remove")
            shown = name.replace("\n", " ").replace("\u202e", "")[:200]
            book.open_budget(f"{number} {shown}"[:200], limit, note=name)
            book.charge(f"{number} {shown}"[:200], limit, f"by {name}: {name}"[:10_000])
    served = serve(tmp_path)
    page, watch = open_page(served, width=390)
    watch.allow("422")
    dialogs = []
    page.on("dialog", lambda each: (dialogs.append(each.message), each.dismiss()))
    page.goto(f"{served.url}/tables")
    page.get_by_role("button", name="Begin a question").click()
    page.get_by_label("File", exact=True).select_option("stays.csv")
    page.get_by_label("one row", exact=True).check()
    kinds = page.locator("select[id^='col.']")
    kinds.first.wait_for()
    assert kinds.count() == len(NASTY)
    kinds.first.select_option("string")
    page.locator("textarea").first.evaluate("each => each.closest('details').open = true")
    page.locator("textarea").first.fill("\n".join(NASTY[:2]))
    page.get_by_label("Name of this question").fill("<img src=x onerror=alert(3)>" + "z" * 9000)
    with page.expect_response(lambda each: each.url.endswith("/live")):
        page.keyboard.press("Tab")
    here = page.url
    budgets = [f"{served.url}/ledger"]
    page.goto(budgets[0])
    links = page.locator("main h2 a").evaluate_all("found => found.map((each) => each.href)")
    assert len(links) == len(NASTY)
    for place in [here, f"{served.url}/", f"{served.url}/history", *budgets, *links]:
        assert page.goto(place).status == 200, place
        assert page.locator("main img, main script, header img, option img").count() == 0, place
        assert not scrolls_sideways(page), place
    assert dialogs == []


class _Trap(BaseHTTPRequestHandler):
    """A page of another port, with a form that a click sends to the workbench."""

    target = ""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        form = f"<form method=post action='{self.target}'><button>Win a prize</button></form>"
        self.wfile.write(form.encode())

    def log_message(self, *_: object) -> None:
        pass


def test_another_page_of_this_computer_cannot_send_forms(clinic, serve, open_page):
    """W14: a page of another port, where the browser sends our cookie along, changes nothing."""
    served = serve(clinic)
    page, watch = open_page(served)
    watch.allow("403", "404")
    trap = HTTPServer(("127.0.0.1", 0), type("Trap", (_Trap,), {"target": f"{served.url}/tables"}))
    thread = Thread(target=trap.serve_forever)
    thread.start()
    try:
        page.goto(f"http://127.0.0.1:{trap.server_port}/")
        with page.expect_navigation():
            page.get_by_role("button", name="Win a prize").click()
    finally:
        trap.shutdown()
        thread.join()
        trap.server_close()
    assert "does not come from a page of the workbench" in page.content()
    page.goto(f"{served.url}/tables")
    page.get_by_text("There is no question yet").wait_for()
