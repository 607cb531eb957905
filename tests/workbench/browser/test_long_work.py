"""Functions, audits, comparisons and checks, as somebody with a browser sees them."""

import json

import pytest
from tests.served import find_faults, scrolls_sideways

import hushed as hs

pytestmark = pytest.mark.browser

CODE = '''
import time


def mean(rows):
    """Mean of the fees."""
    time.sleep(0.02)
    return rows.mean()


def takes_hours(rows):
    time.sleep(0.5)
    return rows.mean()


def fails_on_public_rows(rows):
    raise ValueError("no fee is negative")


def fails_on_private_rows(rows):
    if (rows == 77.0).any():
        raise ValueError("there is a 77")
    return rows.mean()
'''


@pytest.fixture
def folder(tmp_path):
    """Code, private rows and a budget."""
    (tmp_path / "fees.py").write_text(CODE)
    (tmp_path / "private.csv").write_text("fee\n" + "\n".join(map(str, range(50, 90))) + "\n")
    with hs.Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as book:
        book.open_budget("fees", hs.Guarantee(epsilon=3.0, gamma=0.5))
    return tmp_path


def fill(page, **fields):
    """Fill in a form as a person does."""
    for name, value in fields.items():
        control = page.locator(f"main [name='{name}']").first
        if control.evaluate("each => each.tagName") == "SELECT":
            control.select_option(value)
        elif control.get_attribute("type") == "radio":
            page.locator(f"[name='{name}'][value='{value}']").check()
        else:
            for fold in control.locator("xpath=ancestor::details[not(@open)]").all():
                fold.locator("summary").first.click()
            control.fill(value)


def begin(page, served, path):
    """Begin a draft."""
    page.goto(f"{served.url}/{path}")
    page.get_by_role("button", name="Begin").click()
    page.wait_for_url(f"**/{path}/*")
    return page.url


def sample(page, function="mean", **more):
    """Fill in the form of a function, and run it."""
    range_ = {"population": "range", "low": "0", "high": "100", "rows": "40"}
    fill(page, function=f"fees.py:{function}", **range_, data="private.csv", **more)
    page.get_by_role("button", name="Run the code and sample").click()


def test_a_function_is_sampled_watched_priced_and_released(serve_process, open_page, folder):
    """Every step by its button; the answer is in the ledger once, and on a reloaded page."""
    served = serve_process(folder)
    page, _ = open_page(served)
    address = begin(page, served, "functions")
    assert page.get_by_text("This runs code in").is_visible()
    sample(page)
    page.get_by_role("heading", name="Error and privacy loss").wait_for()
    assert "symmetric=" not in page.locator("#state .notice").inner_text()  # as the form calls it
    assert page.get_by_text("On this page symmetric is a tick").is_visible()
    assert "112 of 112 pairs" in page.locator("#state svg").first.get_attribute("aria-label")
    assert not find_faults(page)
    page.get_by_label("Largest error").last.fill("4")
    page.get_by_text("within 4 of the one without noise").wait_for()
    epsilon = page.locator("#epsilon").input_value()
    page.get_by_role("link", name="Check the price").click()
    assert not find_faults(page)
    page.get_by_label("What it is for").fill("the yearly report")
    page.get_by_role("button", name=f"Read the rows and pay {epsilon}").dblclick()
    page.get_by_role("heading", name="What came of it").wait_for()
    told = page.locator("#state strong").first.text_content()
    assert not find_faults(page)
    page.reload()
    assert page.locator("#state strong").first.text_content() == told
    page.go_back()
    page.goto(f"{address}/pay")
    assert page.locator("#state strong").first.text_content() == told
    with page.expect_download() as got:
        page.get_by_role("link", name="Certificate (JSON)").click()
    certificate = json.loads(got.value.path().read_text())
    with hs.Ledger(f"sqlite:///{folder / 'ledger.db'}") as book:
        (entry,) = book.entries("fees")
    assert entry.guarantee.epsilon == certificate["guarantee"]["epsilon"]
    assert entry.note == "the yearly report"


def test_a_sampling_outlives_a_killed_server_and_a_closed_page(serve_process, open_page, folder):
    """It goes on; if its process is killed, too, it is continued where it was."""
    served = serve_process(folder)
    page, _ = open_page(served)
    address = begin(page, served, "functions")
    sample(page, one_in="200")
    page.locator("#state svg").wait_for()
    page.context.close()
    served.restart()
    page, _ = open_page(served)
    page.goto(address)
    assert page.get_by_role("button", name="Stop").is_visible()
    page.locator("#state svg").wait_for()
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("Stopped. What was finished is kept").wait_for()
    kept = page.locator("progress").get_attribute("value")
    assert int(kept) > 0
    page.get_by_role("button", name="Go on sampling").click()
    page.get_by_role("button", name="Stop").wait_for()
    now = page.locator("progress").get_attribute("value")
    assert int(now) >= int(kept)
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("Stopped. What was finished is kept").wait_for()


def test_errors_of_functions_are_told_where_they_may_be(serve_process, open_page, folder):
    """On public rows in full; on private rows only that it failed, and that the charge stays."""
    served = serve_process(folder)
    page, watch = open_page(served)
    watch.allow("status of 422")  # the form with its errors
    begin(page, served, "functions")
    page.get_by_role("button", name="Run the code and sample").click()
    page.locator("#function:focus").wait_for()
    assert page.get_by_text("Choose the function.").is_visible()
    assert not find_faults(page)
    sample(page, "fails_on_public_rows")
    page.get_by_text("no fee is negative").wait_for()
    sample(page, "fails_on_private_rows")
    page.get_by_role("heading", name="Error and privacy loss").wait_for()
    page.get_by_role("link", name="Check the price").click()
    page.get_by_role("button", name="Read the rows and pay").click()
    page.get_by_text("The charge stays.", exact=True).wait_for()
    assert "there is a 77" not in page.content()
    assert not find_faults(page)


def test_a_broken_mechanism_of_the_zoo_is_caught(serve_process, open_page, folder):
    """With its witness; a right one is never called private."""
    served = serve_process(folder)
    page, _ = open_page(served)
    begin(page, served, "audits")
    fill(page, specimen="histogram, wrong scale")
    page.get_by_role("button", name="Run the audit").click()
    page.get_by_text("the mechanism does not keep its word").wait_for()
    assert "times in" in page.locator("#state svg").first.get_attribute("aria-label")
    assert not find_faults(page)
    fill(page, specimen="Laplace")
    page.get_by_role("button", name="Run the audit").click()
    page.get_by_text("Not refuted, which is not private").wait_for()
    assert not find_faults(page)


def test_ways_to_release_are_compared_and_a_population_is_checked(serve_process, open_page, folder):
    """The first costs nothing; the second says its price, and pays once."""
    served = serve_process(folder)
    page, _ = open_page(served, width=390)
    begin(page, served, "routes")
    known = {"population": "range", "low": "0", "high": "100", "rows": "40"}
    fill(page, least="0", most="100", trials="5", **known)
    page.get_by_role("button", name="Compare").click()
    page.get_by_text("Recommended:").wait_for()
    assert not scrolls_sideways(page)
    assert not find_faults(page)
    begin(page, served, "populations")
    fill(page, data="private.csv", population="range", low="0", high="100", epsilon="1")
    page.get_by_role("button", name="Check the price").click()
    page.get_by_role("button", name="Read the rows and pay 1").dblclick()
    page.get_by_role("heading", name="What came of it").wait_for()
    assert page.get_by_text("p-value").is_visible()
    assert not scrolls_sideways(page)
    assert not find_faults(page)
    with hs.Ledger(f"sqlite:///{folder / 'ledger.db'}") as book:
        assert len(book.entries("fees")) == 1


def test_five_hundred_updates_do_not_fill_the_tab(serve_process, open_page, folder):
    """Memory and nodes stay within a fifth of what they are after the first updates.

    What is sampled takes hours, so that it is not done before the last update on any machine.
    """
    served = serve_process(folder)
    page, _ = open_page(served)
    address = begin(page, served, "functions")
    sample(page, "takes_hours", one_in="2000")
    page.locator("#state svg").wait_for()
    tools = page.context.new_cdp_session(page)
    update = (
        "async ([url, count]) => { for (let i = 0; i < count; i++) "
        "await htmx.ajax('GET', url, {target: '#state', swap: 'outerHTML'}); }"
    )

    def measure(count):
        page.evaluate(update, [f"{address}/state", count])
        for _ in range(3):
            tools.send("HeapProfiler.collectGarbage")
        used = tools.send("Runtime.getHeapUsage")["usedSize"]
        return used, tools.send("Memory.getDOMCounters")["nodes"]

    first, nodes = measure(50)
    last, nodes_after = measure(500)
    assert last < 1.2 * first
    assert nodes_after < 1.2 * nodes + 500
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("Stopped. What was finished is kept").wait_for()
