"""The pages of a server in a real browser: to decide, to sign in, hostile texts, everybody."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.served import find_faults, scrolls_sideways
from tests.server.conftest import CANARY

from hushed.server._setup import invite
from hushed.server._tokens import Scope

pytestmark = pytest.mark.browser

NASTY = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>\u202etxt.exe " + "y" * 300


def confirm(page: Any) -> None:
    """Press the main button by its keys, which need the scripts of the page."""
    page.wait_for_load_state()
    page.keyboard.press("Control+Enter")


def ask(page: Any, house: Any, epsilon: float, note: str = "") -> str:
    """Price a count and ask it; the id of the request."""
    page.goto(f"{house.url}/datasets/stays/question")
    page.locator("#epsilon").fill(str(epsilon))
    confirm(page)
    page.get_by_label("What is it for").fill(note)
    confirm(page)
    page.wait_for_url(re.compile(r"/requests/[0-9a-f-]{36}$"))
    return str(page.url).rpartition("/")[2]


def press(page: Any, name: str) -> None:
    """Go by Tab to a control, and press it."""
    for _ in range(60):
        page.keyboard.press("Tab")
        here = "document.activeElement.textContent.trim().replace(/\\s+/g, ' ')"
        if page.evaluate(here).startswith(name):
            page.keyboard.press("Enter")
            return
    pytest.fail(f"no Tab comes to {name}")


def test_a_steward_approves_and_declines_by_keyboard(house, enter):
    """Approving charges the request of who asked; declining charges nothing, and says why."""
    ana, _ = enter("ana")
    dear = ask(ana, house, 0.3, "for the annual report")
    other = ask(ana, house, 0.25, "again")
    ana.get_by_text("A steward has to approve this first").wait_for()
    sam, _ = enter("sam", "steward")
    sam.get_by_text("for the annual report").wait_for()
    assert house.charges == 0
    press(sam, "Decline, with a reason: the request of ana for epsilon 0.25")
    sam.keyboard.press("Tab")
    sam.keyboard.type("ask for fewer groups")
    sam.keyboard.press("Enter")
    sam.get_by_text("declined by sam: ask for fewer groups").wait_for()
    assert house.charges == 0
    press(sam, "Approve the request of ana for epsilon 0.3")
    sam.get_by_text("Nothing to decide.").wait_for()
    (entry,) = house.desk.ledger.entries("stays")
    assert (entry.key, entry.guarantee.epsilon) == (dear, 0.3)
    assert entry.note == "by ana: for the annual report"
    ana.goto(f"{house.url}/requests/{dear}")
    ana.get_by_text("The answer is stored").wait_for()
    ana.goto(f"{house.url}/requests/{other}")
    ana.get_by_text("ask for fewer groups").wait_for()


def test_of_two_stewards_who_click_at_once_one_wins_and_the_other_sees_why(house, enter):
    ana, _ = enter("ana")
    ask(ana, house, 0.3)
    pages = []
    for name in ("sam", "sue"):
        page, watch = enter(name, "steward")
        watch.allow("409")
        page.get_by_role("button", name="Approve").wait_for()
        pages.append(page)
    forms = "() => document.querySelector('form[action$=approve]').requestSubmit()"
    for page in pages:  # neither waits for the other
        page.evaluate(f"() => setTimeout({forms}, 50)")
    for page in pages:
        page.get_by_text("Nothing to decide.").wait_for()
    refused = [page for page in pages if page.get_by_role("alert").count()]
    assert len(refused) == 1
    told = refused[0].get_by_role("alert").inner_text()
    assert re.search(r"waits no more: (sam|sue) approved it", told)
    assert house.charges == 1


def test_a_steward_without_a_share_finds_no_way_to_an_answer_or_a_row(house, enter):
    """All that is linked from page to page is looked at, and what an analyst's addresses show."""
    ana, _ = enter("ana")
    made = ask(ana, house, 0.1)
    ana.get_by_text("The answer is stored").wait_for()
    mine = house.desk.ledger.answer("stays", 1)
    number = re.search(r'"values": \{"count": \[(-?\d+)', mine)
    sam, watch = enter("sam", "steward")
    watch.allow("403", "404")
    seen, left = set(), [f"{house.url}/approvals"]
    while left:
        address = left.pop()
        seen.add(address)
        sam.goto(address)
        text = sam.inner_text("main")
        assert CANARY not in text, address
        assert not re.search(r"count \[|error bars", text), address
        links = sam.locator("a[href]").evaluate_all("found => found.map((each) => each.href)")
        left += [each for each in {*links} - seen - {*left} if "#" not in each]
    assert f"{house.url}/requests/{made}" in seen
    assert len(seen) > 6
    for path in ("files/json", "files/csv", "files/certificate", "files/page"):
        found = sam.request.get(f"{house.url}/requests/{made}/{path}")
        assert found.status == 403, path
    sam.goto(f"{house.url}/datasets/stays/question")
    sam.get_by_text("That was not done").wait_for()
    assert number is not None


def test_a_revoked_session_leads_to_the_sign_in_line_at_the_next_click(house, enter):
    ana, watch = enter("ana")
    watch.allow("401")
    sam, _ = enter("sam", "steward")
    sam.get_by_role("link", name="People").click()
    sam.get_by_role("button", name="Revoke the session of the pages of ana").click()
    sam.get_by_role("button", name="Revoke the session of the pages of ana").wait_for(
        state="detached"
    )
    ana.get_by_role("link", name="My requests").click()
    ana.get_by_text("Your session has ended.").wait_for()
    ana.get_by_text("hushed serve invite NAME --page").wait_for()
    assert ana.context.cookies() == []
    ana.reload()
    ana.get_by_role("heading", name="Sign in").wait_for()


def test_an_address_opens_once_and_leaves_no_trace(house, enter, open_page):
    """Its key is sent in the body of a form alone: no address, log, link or history has it."""
    sent = []
    house.key_address = house.door("ana", "analyst")
    key = house.key_address.partition("#")[2]
    page, _ = open_page(house)
    page.on("request", lambda each: sent.append((each.url, each.headers)))
    page.wait_for_function("() => document.getElementById('key').value.length > 60")
    assert page.url == f"{house.url}/enter"
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out").wait_for()
    assert sent
    assert not any(key in f"{url} {headers}" for url, headers in sent)
    log = (house.folder.parent / "log").read_text()
    assert "signed in" in log
    assert key not in log
    other, watch = open_page(house)
    watch.allow("401")
    other.get_by_role("button", name="Sign in").click()
    other.get_by_text("This address does not count").wait_for()
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert page.evaluate("document.cookie") == ""


def list_states(house: Any, enter: Any, **more: Any) -> Any:
    """Every page in each of its states, as analyst and as steward."""
    ana, watch = enter("ana", **more)
    watch.allow("404", "422")
    for path in ("datasets", "datasets/stays", "requests", "nothing"):
        ana.goto(f"{house.url}/{path}")
        yield ana, path
    ana.goto(f"{house.url}/datasets/stays/question")
    yield ana, "a question"
    ana.get_by_role("button", name="+ statistic").click()
    ana.locator("[id='stat.2.kind']").select_option("quantiles")
    ana.locator("[id='stat.2.column']").select_option("cost")
    ana.locator("[id='stat.2.probabilities']").wait_for()
    ana.get_by_label("One answer for each").select_option("ward")
    ana.get_by_label("Its keys are").wait_for()
    ana.locator("#epsilon").fill("many")
    confirm(ana)
    ana.locator("#epsilon[aria-invalid]").wait_for()
    yield ana, "a question with an error"
    ana.locator("#epsilon").fill("0.1")
    confirm(ana)
    ana.get_by_label("What is it for").wait_for()
    yield ana, "a price"
    ana.get_by_label("What is it for").fill("groups")
    confirm(ana)
    ana.get_by_text("The answer is stored").wait_for()
    yield ana, "an answer"
    ask(ana, house, 0.3, "first")
    yield ana, "a request that waits"
    ask(ana, house, 0.45, "does not fit when the other one is charged")
    sam, watch = enter("sam", "steward", **more)
    watch.allow("404", "409", "422")
    yield sam, "approvals"
    sam.get_by_role("button", name="Approve the request of ana for epsilon 0.3").click()
    sam.get_by_text("Does not fit the share of ana").wait_for()
    yield sam, "approvals, of which one does not fit"
    for path in ("requests", "datasets", "datasets/stays", "datasets/stays/entries", "trail"):
        sam.goto(f"{house.url}/{path}")
        yield sam, f"{path} of a steward"
    sam.goto(f"{house.url}/people")
    sam.get_by_label("Name", exact=True).fill("no such name!")
    sam.get_by_role("button", name="Let in", exact=True).click()
    sam.locator("#name[aria-invalid]").wait_for()
    yield sam, "people with an error"
    sam.get_by_text("New token or address for bo").click()
    sam.get_by_role("button", name="Make an address for the pages").locator("visible=true").click()
    sam.locator("#fresh").wait_for()
    yield sam, "people with a new address"
    sam.get_by_role("button", name="Sign out").click()
    yield sam, "signed out"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_every_state_can_be_used_by_everybody(house, enter, width, scheme):
    """Axe finds nothing on any page or state, and nothing scrolls sideways on a phone.

    W4: all that was looked at is watched; no request left this computer, no policy was broken.
    """
    seen = []
    for page, state in list_states(house, enter, width=width, color_scheme=scheme):
        assert find_faults(page) == [], state
        assert not scrolls_sideways(page), state
        seen.append(state)
    assert len(seen) == 19


def test_hostile_notes_names_and_reasons_run_nothing(house, enter):
    """W8: what analysts and stewards write is text on the pages of the other, on a phone, too."""
    ana, _ = enter("ana", width=390)
    made = ask(ana, house, 0.3, NASTY)
    other = ask(ana, house, 0.25, NASTY)
    dialogs = []
    sam, _ = enter("sam", "steward", width=390)
    for page in (ana, sam):
        page.on("dialog", lambda each: (dialogs.append(each.message), each.dismiss()))
    sam.get_by_text("Decline, with a reason").first.click()
    sam.get_by_label("Reason, which ana reads").first.fill(NASTY)
    sam.get_by_role("button", name="Decline", exact=True).first.click()
    sam.get_by_text("declined by sam").wait_for()
    sam.get_by_role("button", name="Approve").click()
    sam.get_by_text("Nothing to decide.").wait_for()
    paths = ("requests", f"requests/{made}", f"requests/{other}")
    places = [(ana, paths), (sam, (*paths, "approvals", "datasets/stays/entries", "trail"))]
    for page, shown in places:
        for path in shown:
            page.goto(f"{house.url}/{path}")
            page.locator("main h1").wait_for()
            assert page.locator("img, main script").count() == 0, path
            assert "\u202e" not in page.content(), path
            assert not scrolls_sideways(page), path
    assert dialogs == []


def test_everything_works_without_scripts(house, open_page):
    """A browser that runs none signs in, adds a statistic, prices, asks and reads."""
    house.key_address = house.door("ana", "analyst")
    page, watch = open_page(house, java_script_enabled=False)
    watch.allow("422")
    page.locator("#key").fill(house.key_address.partition("#")[2])
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="stays").click()
    page.get_by_role("link", name="Ask a question").click()
    page.get_by_role("button", name="+ statistic").click()
    page.locator("[id='stat.2.kind']").select_option("mean")
    page.get_by_role("button", name="Check the price").click()
    page.locator("[id='stat.2.column']").select_option("cost")
    page.get_by_role("button", name="Check the price").click()
    page.get_by_role("button", name="Change the question").click()
    assert page.locator("[id='stat.2.column']").input_value() == "cost"
    page.get_by_role("button", name="Check the price").click()
    page.get_by_label("What is it for").press("Enter")  # no field pays
    assert house.charges == 0
    page.get_by_role("button", name="Read the rows and pay epsilon 0.1").click()
    page.wait_for_url(re.compile(r"/requests/[0-9a-f-]{36}$"))
    while page.get_by_role("link", name="Look again").count():
        page.get_by_role("link", name="Look again").click()
    page.get_by_text("The answer is stored").wait_for()
    assert house.charges == 1


def test_another_page_of_this_computer_cannot_act_for_somebody_who_is_signed_in(house, enter):
    """W14: a form of another port, where the browser sends the strict cookie along, is refused."""
    ana, _ = enter("ana")
    made = ask(ana, house, 0.3)
    sam, watch = enter("sam", "steward")
    watch.allow("403")
    trap = f"{house.url}/requests/{made}/approve"

    def show_trap(route: Any) -> None:
        form = f"<form method=post action='{trap}'><button>Win a prize</button></form>"
        route.fulfill(content_type="text/html", body=form)

    sam.route("http://127.0.0.1:9/*", show_trap)
    sam.goto("http://127.0.0.1:9/")
    with sam.expect_navigation():
        sam.get_by_role("button", name="Win a prize").click()
    assert "does not come from a page of this server" in sam.content()
    assert house.charges == 0
    sam.goto(f"{house.url}/approvals")
    sam.get_by_role("button", name="Approve").wait_for()


@pytest.fixture(autouse=True)
def sue(house):
    """A second steward, whose tokens are made at the machine, too."""
    invite(house.folder, "sue", "steward", [], days=1, scope=Scope())
