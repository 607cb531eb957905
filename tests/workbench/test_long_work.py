"""Functions, audits, comparisons and checks over HTTP: forms, errors at fields, paying once."""

import html
import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hushed as hs
from hushed.errors import ParameterError, TooFewRows
from hushed.workbench._bench import Workbench
from hushed.workbench._jobs import list_jobs
from hushed.workbench._payments import split_ledger
from hushed.workbench._views.charges import offer_budget
from hushed.workbench._views.functions import read_sampling, tell_trial, write_trial
from hushed.workbench._views.sources import Defined
from hushed.workbench._works import name_fields
from hushed.workbench._workspace import Workspace

CODE = '''
def mean(rows):
    """Mean <b>of</b> the "costs"."""
    return rows.mean()


def fails_on_private_rows(rows):
    if (rows == 424242.0).any():
        raise ValueError("there is a 424242")
    return rows.mean()
'''
RANGE = {"population": "range", "low": "0", "high": "500000"}
PATHS = ("functions", "audits", "routes", "populations")


def begin(browser, path):
    """Address of a new draft."""
    return browser.post(f"/{path}/new", data={"draft-name": "<i>mine</i>"}).url.path


def find_errors(page):
    """Names of the fields at which an error stands."""
    return set(re.findall(r'class="error" id="([^"]+)-error"', page.text))


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
def test_pages_of_long_work_show_what_was_typed_and_run_nothing(browser, folder, path):
    """A list, a form with its errors, a draft that is kept; hostile names are only names."""
    (folder / "costs.py").write_text(CODE)
    (folder / '"><img src=x onerror=alert(1)>.py').write_text(CODE)
    assert browser.get(f"/{path}").status_code == 200
    address = begin(browser, path)
    page = browser.post(f"{address}/run", data={"rows": "ten", "epsilon": "<b>"})
    assert page.status_code == 422
    assert find_errors(page)
    assert "<b>" not in page.text
    assert "<i>mine" not in page.text
    assert "<img" not in page.text
    saved = browser.post(f"{address}/draft", data={"draft-name": "A new name", "rows": "77"})
    assert saved.status_code == 204
    again = browser.get(address).text
    assert "A new name" in again
    assert path == "populations" or 'value="77"' in again
    assert not (folder / ".hushed" / "jobs").exists()


@pytest.mark.slow
def test_every_draft_of_long_work_is_in_the_history(browser):
    """With a way to its page."""
    addresses = [begin(browser, path) for path in PATHS]
    page = browser.get("/history")
    assert page.status_code == 200
    assert all(f'href="{each}"' in page.text for each in addresses)


@pytest.mark.slow
def test_drafts_of_one_kind_are_not_shown_as_another(browser):
    """Nor is one that is not there; and there is no result before there is one."""
    address = begin(browser, "audits")
    assert browser.get(address.replace("audits", "functions")).status_code == 404
    assert browser.get("/functions/" + "a" * 32).status_code == 404
    assert browser.get(f"{address}/result.json").status_code == 404


@pytest.mark.slow
def test_nothing_is_paid_for_what_was_not_sampled(browser, folder):
    """The page that pays says what is missing, and starts nothing."""
    (folder / "costs.py").write_text(CODE)
    address = begin(browser, "functions")
    page = browser.get(f"{address}/pay")
    assert page.status_code == 422
    assert "not sampled yet" in page.text
    assert browser.post(f"{address}/pay", data={"request": "x"}).status_code == 422
    assert not (folder / ".hushed" / "jobs").exists()


def wait(browser, address):
    """Wait until the work is over; the test runner ends what never is."""
    while "hx-refresh" not in browser.get(f"{address}/state").headers:
        time.sleep(0.1)


def test_advice_for_few_public_rows_is_in_words_of_the_page():
    """It names the field, and neither options of a command nor Python."""
    rows = np.arange(4000.0)
    with pytest.raises(TooFewRows) as refused:
        hs.sample_sensitivity(np.mean, hs.populations.PublicTable(rows), rows=100)
    told = name_fields(str(refused.value))
    assert "over blocks of 25 rows, with 25 as Rows in a block" in told
    assert not re.search(r"--|hs\.|calibration, which|promise=|larger gamma", told)


@pytest.mark.slow
def test_the_function_of_the_example_clinic_is_sampled_at_one_click(browser, folder):
    """Its draft is there once, filled in, and there are public rows enough."""
    for _ in range(2):
        browser.post("/practice/begin")
    found = re.findall(r'href="(/practice/functions/\w+)"', browser.get("/practice/functions").text)
    assert len(found) == 1
    page = browser.get(found[0]).text
    typed = dict(re.findall(r'name="(rows|one_in)"[^>]*value="(\d+)"', page))
    assert typed == {"rows": "400", "one_in": "20"}
    assert html.unescape(page).count(" selected>fees.py:trimmed_mean") == 1
    public = folder / ".hushed" / "practice" / "public-fees.csv"
    assert len(public.read_text().splitlines()) > 112 * 401  # pairs of tables of 400 rows


def test_a_budget_of_another_kind_is_told_in_a_few_words(tmp_path):
    """Not in options of a command; one that is full is told with its numbers."""
    with hs.Ledger(f"sqlite:///{tmp_path / 'l.db'}") as book:
        people = hs.Guarantee(epsilon=3.0, neighbours="add-remove", unit="user")
        book.open_budget("stays", people)
        other = offer_budget(book, "stays", hs.Guarantee(epsilon=1.0))
        full = offer_budget(book, "stays", replace(people, epsilon=9.0))
    assert not other.fits
    assert "one person with all rows is added or removed, and not one row is" in other.sentence
    assert "--" not in other.sentence
    assert "9" in full.sentence
    assert "another" not in full.sentence.split(":")[0]


COMPARED = RANGE | {"epsilon": "1", "trials": "5", "rows": "40", "least": "0", "most": "500000"}


@pytest.mark.slow
def test_a_compared_function_leads_to_its_own_page_and_command(browser, folder):
    """What was typed is there; the command says the rest."""
    (folder / "costs.py").write_text(CODE)
    address = begin(browser, "routes")
    assert browser.post(f"{address}/function").url.path == address  # nothing is found yet
    typed = COMPARED | {"of": "function", "function": "costs.py:mean", "one_in": "10"}
    typed |= {"least": "", "most": ""}  # without a range of its answer, it can only be sampled
    browser.post(f"{address}/run", data=typed)
    wait(browser, address)
    page = html.unescape(browser.get(address).text)
    assert "hushed release PRIVATE.csv ./costs.py:mean --population uniform:0" in page
    assert f'action="{address}/function"' in page
    made = browser.post(f"{address}/function")
    assert made.url.path.startswith("/functions/")
    kept = html.unescape(made.text)
    assert re.search(r'<option value="[^"]+" selected>costs.py:mean', kept)
    assert all(f'value="{each}"' in kept for each in ("40", "10", "500000"))


@pytest.mark.slow
def test_a_compared_statistic_leads_to_a_command_and_to_a_question(browser, folder):
    """Of several columns one is asked for by the name of its field, not of an option."""
    rows = "\n".join(f"{each},{each % 7}" for each in range(100))
    (folder / "public.csv").write_text(f"age,nights\n{rows}\n")
    address = begin(browser, "routes")
    typed = COMPARED | {"population": "file", "population_file": "public.csv", "most": "99"}
    for column in ("", "age"):
        browser.post(f"{address}/run", data=typed | {"column": column})
        wait(browser, address)
        page = html.unescape(browser.get(address).text)
        assert ("by the field Column of the public file" in page) == (not column)
        assert "by --column" not in page
    told = list_jobs(folder / ".hushed" / "jobs")[0].result["next"]
    assert told in page
    assert re.match(r"hushed (statistic median|query) PRIVATE\.csv .*\bage\b.* --epsilon 1$", told)
    assert 'action="/tables"' in page


@pytest.mark.slow
def test_an_audit_gives_a_report_and_a_certificate(browser):
    """The certificate is verified as any other; before the audit there is none."""
    address = begin(browser, "audits")
    files = [f"{address}/{name}" for name in ("report.html", "certificate.json")]
    assert [browser.get(each).status_code for each in files] == [404, 404]
    typed = {
        "of": "zoo",
        "specimen": "histogram, wrong scale",
        "effort": "quick",
        "confidence": "0.95",
    }
    page = browser.post(f"{address}/run", data=typed)
    assert not find_errors(page)
    wait(browser, address)
    shown, (report, certificate) = browser.get(address).text, map(browser.get, files)
    assert all(f'href="{each}"' in shown for each in files)
    assert hs.verify(hs.Statement.from_json(certificate.text)).reproduced
    assert "violated" in report.text


def pay(browser, address, request="", budget="costs"):
    """Agree to a price, by default to the one that the page shows."""
    page = browser.get(f"{address}/pay").text
    request = request or html.unescape(re.search(r'name="request" value="([^"]+)"', page)[1])
    offer = "".join(re.findall(r'name="offer" value="([^"]+)"', page))
    terms = {"request": request, "budget": budget, "note": "a note", "actor": "Ada"}
    browser.post(f"{address}/pay", data=terms | {"offer": offer})
    wait(browser, f"{address}/pay")
    return request


def read_asked(**typed):
    """Read the form of a function; every field but these is as it begins."""
    functions = [Defined(spec="costs.py:mean", takes="rows", says="")]
    return read_sampling(RANGE | {"function": "costs.py:mean"} | typed, [], functions)


def test_rows_may_be_added_or_removed_for_several_numbers_of_them():
    """Each is an argument; blocks go with rows that are replaced."""
    words, errors = read_asked(neighbours="add-remove", rows="900, 1000 1100")
    assert not errors
    told = " ".join(words)
    assert "--neighbours add-remove --rows 900 --rows 1000 --rows 1100" in told
    for wrong in ("", "900, many", "1", " ".join(["5"] * 21)):
        assert set(read_asked(neighbours="add-remove", rows=wrong)[1]) == {"rows"}
    _, errors = read_asked(neighbours="add-remove", rows="900", block_rows="30")
    assert set(errors) == {"block_rows"}
    assert "--neighbours" not in read_asked(rows="900")[0]
    assert set(read_asked(rows="900, 1000")[1]) == {"rows"}


def test_a_trial_keeps_nothing_and_its_time_is_shared_by_the_workers(monkeypatch):
    """It is told for the same command, whatever the number of workers."""
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    (one, _), (four, _) = (read_asked(rows="9", workers=each) for each in ("1", "16"))
    trial = write_trial(one)
    assert trial == write_trial(four)
    assert "--keep" not in trial
    assert trial[-2:] == ["--json", "--trial"]
    found = {"seconds": 480.0, "pairs": 112, "calls": 292, "seconds_per_call": 1.6438}
    assert "about 8 min: 112 pairs of tables, about 292 calls of 1.7 s" in tell_trial(found, one)
    assert "about 2 min with 16 worker processes" in tell_trial(found, four)


@pytest.mark.slow
def test_a_trial_says_how_long_it_will_take_or_what_is_wrong(browser, folder):
    """Of what stands in the form; of another form it says nothing."""
    (folder / "costs.py").write_text(CODE + "\n\ndef broken(rows):\n    return rows.nothing\n")
    address = begin(browser, "functions")

    def ask(**more):
        typed = RANGE | {"function": "costs.py:mean", "rows": "2", "neighbours": "add-remove"}
        browser.post(f"{address}/trial", data=typed | more)
        while "hx-get" in browser.get(f"{address}/trial").text:
            time.sleep(0.1)
        return browser.get(address).text

    assert "112 pairs of tables, about 438 calls" in ask()
    assert browser.get(address).status_code == 200
    browser.post(f"{address}/draft", data=RANGE | {"function": "costs.py:mean", "rows": "3"})
    assert "It may take" not in browser.get(address).text
    assert "nothing" in ask(function="costs.py:broken")
    assert browser.post(f"{address}/trial", data={"rows": "none"}).status_code == 422


@pytest.mark.slow
def test_rows_added_or_removed_are_paid_from_a_budget_for_them(browser, folder, sampled):
    """The page says for which tables the promise is; the number of private rows is not checked."""
    with hs.Ledger(f"sqlite:///{folder / 'ledger.db'}") as book:
        book.open_budget("apart", hs.Guarantee(epsilon=3.0, gamma=0.5, neighbours="add-remove"))
    address = sampled("mean", neighbours="add-remove", rows="3, 40")
    page = html.unescape(browser.get(address).text)
    assert "everybody whose row may be there or not" in page
    assert "for a table of exactly 3 or 40 rows; of any other number nothing" in page
    pay(browser, address, budget="apart")
    certificate = browser.get(f"{address}/answer.json").json()["certificate"]
    assert certificate["guarantee"]["neighbours"] == "add-remove"
    with hs.Ledger(f"sqlite:///{folder / 'ledger.db'}") as book:
        assert [len(book.entries(each)) for each in ("costs", "apart")] == [0, 1]


@pytest.fixture
def sampled(browser, folder):
    """Address of the draft of a function that was sampled for two private rows."""
    (folder / "costs.py").write_text(CODE)
    (folder / "private.csv").write_text("cost\n10.5\n424242\n")
    with hs.Ledger(f"sqlite:///{folder / 'ledger.db'}") as book:
        book.open_budget("costs", hs.Guarantee(epsilon=3.0, gamma=0.5))

    def sample(function, **more):
        address = begin(browser, "functions")
        typed = {"function": f"costs.py:{function}", "rows": "2", "data": "private.csv"}
        browser.post(f"{address}/run", data={**RANGE, **typed, "one_in": "20", **more})
        wait(browser, address)
        return address

    return sample


def read_entries(folder):
    with hs.Ledger(f"sqlite:///{folder / 'ledger.db'}") as book:
        return book.entries("costs")


@pytest.mark.slow
def test_a_release_is_paid_once_however_often_it_is_asked(browser, folder, sampled):
    """Agreeing again, from an old page, too, shows the answer; asking something like it is new."""
    address = sampled("mean")
    request = pay(browser, address)
    answer = browser.get(f"{address}/answer.json").json()
    pay(browser, address, request)
    assert browser.get(f"{address}/answer.json").json() == answer
    (entry,) = read_entries(folder)
    assert entry.note == "by Ada: a note"
    assert entry.key == request
    browser.post(f"{address}/again")
    browser.post(f"{address}/pay", data={"request": request, "budget": "costs"})
    assert len(read_entries(folder)) == 1
    assert pay(browser, address) != request
    assert len(read_entries(folder)) == 2


@pytest.mark.slow
def test_a_failure_on_private_rows_tells_nothing_of_them(browser, folder, sampled):
    """The charge stays, which is said; the text of the function is not."""
    address = sampled("fails_on_private_rows")
    pay(browser, address)
    page = browser.get(f"{address}/pay").text
    assert "The charge stays." in page
    assert "424242" not in page
    assert not any(
        "424242" in each.read_text() for each in folder.rglob("jobs/*/*") if each.is_file()
    )
    assert len(read_entries(folder)) == 1


@pytest.mark.slow
def test_a_changed_table_or_form_is_refused_before_it_is_paid(browser, folder, sampled):
    """Another number of rows charges nothing; a changed form is sampled first."""
    address = sampled("mean")
    (folder / "private.csv").write_text("cost\n10.5\n20\n30\n")
    pay(browser, address)
    page = browser.get(f"{address}/pay").text
    assert "the table has 3 rows" in page
    assert "Nothing was charged." in page
    assert not read_entries(folder)
    browser.post(f"{address}/again")
    browser.post(f"{address}/draft", data={**RANGE, "function": "costs.py:mean", "rows": "3"})
    assert "The form has changed" in browser.get(f"{address}/pay").text


@pytest.mark.slow
def test_a_price_that_was_changed_in_another_window_is_not_paid(browser, folder, sampled):
    """The button says what is paid; a page of another price starts nothing."""
    address = sampled("mean")
    browser.post(f"{address}/price", data={"epsilon": "0.5", "moved": "epsilon"})
    old = dict(re.findall(r'name="(request|offer)" value="([^"]+)"', read_pay(browser, address)))
    browser.post(f"{address}/price", data={"epsilon": "2", "moved": "epsilon"})
    stale = browser.post(f"{address}/pay", data=old | {"budget": "costs"})
    assert (stale.status_code, "changed in another window" in stale.text) == (422, True)
    new = dict(re.findall(r'name="(request|offer)" value="([^"]+)"', read_pay(browser, address)))
    assert new["offer"] != old["offer"]
    browser.post(f"{address}/pay", data=new | {"budget": "costs"})
    wait(browser, f"{address}/pay")
    assert [each.guarantee.epsilon for each in read_entries(folder)] == [2.0]


def read_pay(browser, address):
    return browser.get(f"{address}/pay").text


@pytest.mark.parametrize("address", ["postgresql://u:{}@h/db", "postgresql://u@h/db?password={}"])
def test_a_password_of_the_ledger_is_in_no_command(address):
    """Command lines are seen by everybody on a computer, and are written down."""
    workspace = Workspace(folder=Path(), ledger=address.format("s%40cret"))
    bench = Workbench(workspace=workspace)
    assert split_ledger(bench) == ("postgresql://u@h/db", {"PGPASSWORD": "s@cret"})


def test_a_password_that_only_an_address_can_hold_is_refused():
    """There is no other way to hand it to the command that pays."""
    bench = Workbench(
        workspace=Workspace(folder=Path(), ledger="postgresql://u@h/db?sslpassword=secret")
    )
    with pytest.raises(ParameterError, match="key file") as refused:
        split_ledger(bench)
    assert "secret" not in str(refused.value)


@pytest.mark.slow
def test_a_check_of_a_population_asks_for_no_function(browser):
    """Its form said what "the function" is given, and there is none."""
    page = browser.get(begin(browser, "populations")).text
    assert "The rows are read as" in page
    assert "The function is given" not in page
    assert "The function is given" in browser.get(begin(browser, "functions")).text
