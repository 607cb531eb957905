"""Asking a table: from the example to the certificate, and a charge that is made once."""

import json
import random
import re
import shlex
import statistics
import subprocess
import sys
import time

import pytest
from tests.served import find_faults, scrolls_sideways

import hushed as hs
from hushed._ground.printing import format_up
from hushed.workbench._drafts import Drafts

pytestmark = pytest.mark.browser

PATIENCE = 60_000  # ms; for machines that are busy
LIMIT = hs.Guarantee(epsilon=3.0, delta=1e-5, neighbours="add-remove", unit="user")
DATA = {
    "where": "file",
    "file": "stays.csv",
    "protect": "person",
    "user": "patient",
    "max_rows": "5",
    "rows": "3000",
    "budget": "stays",
    "col.0.name": "patient",
    "col.1.name": "ward",
    "col.1.kind": "string",
    "col.1.keys": "A\nB\nC",
    "col.2.name": "cost",
    "col.2.kind": "float",
    "col.2.low": "0",
    "col.2.high": "5000",
}
QUESTION = {
    "group": "ward",
    "keys": "public",
    "stat.1.kind": "count",
    "stat.2.kind": "mean",
    "stat.2.column": "cost",
    "error_of": "mean_cost",
    "epsilon": "0.9",
    "moved": "epsilon",
}


@pytest.fixture
def folder(tmp_path):
    """Private rows and a budget."""
    draw = random.Random(5)
    rows = [
        f"{draw.randrange(900)},{draw.choice('ABC')},{draw.random() * 4000:.2f}"
        for _ in range(3000)
    ]
    (tmp_path / "stays.csv").write_text("patient,ward,cost\n" + "\n".join(rows) + "\n")
    with hs.Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as book:
        book.open_budget("stays", LIMIT)
    return tmp_path


def draft_of(folder, **question):
    """Make a draft that is described and asked."""
    fields = {f"data.{name}": text for name, text in DATA.items()}
    fields |= {f"question.{name}": text for name, text in (QUESTION | question).items()}
    return Drafts(folder / ".hushed" / "drafts.db").create("table", "Stays", fields)


def table_of(folder):
    """The same question by the library."""
    table = hs.table(folder / "stays.csv", user="patient", types={"cost": "float"})
    table = table.bound_contributions(max_rows_per_user=5).group_by("ward", keys=list("ABC"))
    return table.count().mean("cost", low=0, high=5000)


def count_entries(folder):
    with hs.Ledger(f"sqlite:///{folder / 'ledger.db'}") as book:
        return len(book.entries("stays"))


def settled(page):
    """Wait until nothing is asked of the server."""
    page.wait_for_load_state()
    page.wait_for_timeout(250)
    page.wait_for_function("() => !document.querySelector('.htmx-request')", timeout=PATIENCE)


@pytest.mark.parametrize("way", ["mouse", "keyboard", "phone"])
def test_a_newcomer_comes_from_the_example_to_a_certificate(serve, open_page, tmp_path, way):
    """At most twelve actions; the certificate is checked by the library."""
    page, _ = open_page(serve(), width=390 if way == "phone" else 1280)
    actions = 0

    def press(name, ends=".*"):
        nonlocal actions
        button = page.get_by_role("button", name=name).first
        if way == "keyboard":
            for _ in range(200):
                if button.evaluate("each => each === document.activeElement"):
                    break
                page.keyboard.press("Tab")
            page.keyboard.press("Enter")
        else:
            button.click()
        actions += 1
        page.wait_for_url(re.compile(ends), timeout=PATIENCE)  # a release waits on another page
        settled(page)
        assert find_faults(page) == []
        assert not scrolls_sideways(page)

    press("Try it on the example clinic")
    press("Go on to the question")
    says(page, "#preview").to_contain_text("The public table, not your data", timeout=PATIENCE)
    press("Check the price")
    press("Read the rows and pay", "/answers/")
    files = {}
    for name in ("Certificate for programs (JSON)", "Certificate to print"):
        with page.expect_download() as saved:
            page.get_by_role("button", name=name).click()
        actions += 1
        files[name] = saved.value.path().read_text()
    assert actions <= 12
    certificate = hs.Statement.from_json(files["Certificate for programs (JSON)"])
    assert hs.verify(certificate).reproduced
    assert certificate.digest in files["Certificate to print"]  # both are the same certificate
    assert "made-up people" in certificate.data
    assert "made-up people" in files["Certificate to print"]


def test_fifty_moves_of_both_sliders_never_disagree_with_the_library(serve, open_page, folder):
    """The error is that of quote, and epsilon that of quote_for, to the last digit."""
    draft, table = draft_of(folder), table_of(folder)
    served = serve(folder)
    page, _ = open_page(served)
    page.goto(f"{served.url}/tables/{draft.id}/question")
    settled(page)
    draw = random.Random(7)
    for _ in range(50):
        if draw.random() < 0.5:
            typed = f"{draw.uniform(0.05, 2):.3g}"
            quote = table.quote(epsilon=float(typed), rows=1000)
            move(page, "epsilon", typed, "error", format_up(quote.accuracy("mean_cost")))
        else:
            typed = f"{draw.uniform(400, 2400):.4g}"
            found = table.quote_for(errors={"mean_cost": float(typed)}, rows=1000)
            move(page, "error", typed, "epsilon", repr(found.epsilon))


def move(page, field, typed, other, wanted):
    """Type a number, and wait until the other field says what is wanted."""
    page.fill(f"#{field}", typed)
    says(page, f"#{other}").to_have_value(wanted, timeout=PATIENCE)


def says(page, selector):
    """Expect something of a part of the page, as soon as it is there."""
    from playwright.sync_api import expect

    return expect(page.locator(selector))


def test_arrows_move_a_slider_and_the_other_one_follows(serve, open_page, folder):
    """By keyboard alone; the field beside each tells the exact number."""
    draft, table = draft_of(folder), table_of(folder)
    served = serve(folder)
    page, _ = open_page(served)
    page.goto(f"{served.url}/tables/{draft.id}/question")
    settled(page)
    page.focus("#epsilon-slider")
    page.keyboard.press("Home")
    quote = table.quote(epsilon=0.01, rows=1000)
    says(page, "#error").to_have_value(format_up(quote.accuracy("mean_cost")), timeout=PATIENCE)
    assert page.input_value("#epsilon") == "0.01"
    assert page.evaluate("document.activeElement.id") == "epsilon-slider"
    page.keyboard.press("End")
    says(page, "#epsilon").to_have_value("3.0", timeout=PATIENCE)
    says(page, "#price").to_contain_text("with this question 100 %", timeout=PATIENCE)


def test_what_is_changed_before_an_answer_came_is_not_lost(serve, open_page, folder):
    """A second choice, and a text, while the page that the first choice asked for is under way."""
    draft = draft_of(folder)
    served = serve(folder)
    page, _ = open_page(served)
    page.goto(f"{served.url}/tables/{draft.id}/question")
    settled(page)
    held = []

    def hold(route):
        held.append(route)

    page.route("**/edit", hold, times=1)
    page.select_option("[id='stat.1.kind']", "sum")
    page.select_option("[id='stat.2.kind']", "variance")
    page.fill("[id='stat.2.weight']", "3")
    page.wait_for_timeout(400)  # what was typed is told before the page comes
    says(page, "#progress").to_have_text("computing")
    assert page.locator("#live p.old").count() == 2  # grey, and still there
    held[0].continue_()
    says(page, "[id='stat.1.column']").to_be_visible(timeout=PATIENCE)
    settled(page)
    assert page.locator(".old").count() == 0
    for there in ("as it is", "as it was written down"):
        found = [page.input_value(f"[id='{name}']") for name in ("stat.1.kind", "stat.2.kind")]
        assert [*found, page.input_value("[id='stat.2.weight']")] == ["sum", "variance", "3"], there
        settled(page)
        page.reload()


def test_double_clicks_reloads_ways_back_and_two_windows_pay_once(serve, open_page, folder):
    """Every way shows the same answer, and the ledger has one entry."""
    draft = draft_of(folder)
    served = serve(folder)
    page, _ = open_page(served)
    address = f"{served.url}/tables/{draft.id}/release"
    page.goto(address)
    other = page.context.new_page()
    other.goto(address)
    page.get_by_label("Your name").fill("Bernd")
    page.keyboard.press("Enter")  # to go on to the next field, as he thinks
    settled(page)
    assert page.url == address
    assert count_entries(folder) == 0
    page.get_by_role("button", name="Read the rows and pay").dblclick()
    page.wait_for_url(re.compile("/answers/stays/1"), timeout=PATIENCE)
    shown = page.locator("main table").first.inner_text()
    page.reload()
    assert page.locator("main table").first.inner_text() == shown
    other.get_by_role("button", name="Read the rows and pay").click()
    other.wait_for_url(re.compile("/answers/stays/1"), timeout=PATIENCE)
    assert other.locator("main table").first.inner_text() == shown
    page.go_back()
    page.goto(address)
    page.wait_for_url(re.compile("/answers/stays/1"), timeout=PATIENCE)
    assert count_entries(folder) == 1


def test_a_question_that_was_changed_in_another_window_is_not_paid_for(serve, open_page, folder):
    """The page that is old says so, and nothing is charged."""
    draft = draft_of(folder)
    served = serve(folder)
    page, watch = open_page(served)
    watch.allow("422")
    page.goto(f"{served.url}/tables/{draft.id}/release")
    other = page.context.new_page()
    other.goto(f"{served.url}/tables/{draft.id}/question")
    settled(other)
    wanted = format_up(table_of(folder).quote(epsilon=0.5, rows=1000).accuracy("mean_cost"))
    move(other, "epsilon", "0.5", "error", wanted)
    page.get_by_role("button", name="Read the rows and pay").click()
    assert "changed in another window" in page.locator("main").inner_text()
    assert count_entries(folder) == 0


SLOW = """
import sys, time
from hushed.tables import _prepared
how, first = _prepared._attempt, _prepared.release_query
def late(*given):
    print("reading", flush=True)
    time.sleep(2)
    return how(*given)
def early(*given, **more):
    print("asked", flush=True)
    if PLACE == "before":
        time.sleep(2)
    return first(*given, **more)
_prepared._attempt = late
from hushed.tables import _table
_table.release_query = early
from hushed.cli import app
app(["workbench", sys.argv[1], "--no-browser"])
"""


@pytest.mark.parametrize("place", ["before", "reading", "answered"])
def test_a_server_that_is_killed_never_makes_a_second_entry(
    serve_process, open_page, folder, place
):
    """Killed before the charge, after it, and after the answer: asked again, there is one entry."""
    draft = draft_of(folder)
    served = serve_process(folder, now=False)
    slow = SLOW.replace("PLACE", repr(place))
    process = subprocess.Popen(
        [sys.executable, "-c", slow, str(folder)], stdout=subprocess.PIPE, text=True
    )
    line = process.stdout.readline()
    served.key_address = re.search(r"http\S+", line)[0]
    base = served.key_address.split("/?")[0]
    page, watch = open_page(served)
    watch.allow("ERR_CONNECTION", "Failed to fetch", "Failed to load")
    page.goto(f"{base}/tables/{draft.id}/release")
    page.get_by_role("button", name="Read the rows and pay").click()
    wanted = {"before": "asked", "reading": "reading"}.get(place)
    if wanted:
        for line in process.stdout:
            if wanted in line:
                break
    else:
        page.wait_for_url(re.compile("/answers/stays/1"), timeout=PATIENCE)
    process.kill()
    process.communicate()
    assert count_entries(folder) == (0 if place == "before" else 1)
    served.start()
    page.goto(served.key_address)
    page.goto(f"{served.url}/tables/{draft.id}/release")
    if place == "reading":
        assert "paid already" in page.locator("main").inner_text()
    if place != "answered":
        page.get_by_role("button", name=re.compile("Read the rows")).click()
    page.wait_for_url(re.compile("/answers/stays/1"), timeout=PATIENCE)
    assert count_entries(folder) == 1


def test_exports_run_and_ask_the_same_question(serve, open_page, folder):
    """Program, notebook and command, with the path that is ticked; none has it otherwise."""
    draft, table = draft_of(folder), table_of(folder)
    served = serve(folder)
    page, _ = open_page(served)
    page.goto(f"{served.url}/tables/{draft.id}/release")
    page.get_by_role("button", name="Read the rows and pay").click()
    page.wait_for_url(re.compile("/answers/stays/1"), timeout=PATIENCE)

    def save(name):
        with page.expect_download() as saved:
            page.get_by_role("button", name=name).click()
        return saved.value.path().read_text()

    names = ("Python", "Notebook", "Command")
    assert not any(str(folder) in save(name) for name in names)
    page.get_by_label("with the path").check()
    python, notebook, command = map(save, names)
    found, cells = {}, {}
    exec(python, found)
    assert hs.Query.of(found["query"]) == hs.Query.of(table)
    for cell in json.loads(notebook)["cells"][1:]:
        exec(cell["source"], cells)
    assert hs.Query.of(cells["query"]) == hs.Query.of(table)
    words = [sys.executable, "-m", *shlex.split(command), "--quote", "--save", "q.toml"]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    assert hs.Query.from_toml((folder / "q.toml").read_text()) == hs.Query.of(table)


def test_nothing_private_is_read_before_the_release(
    serve_process, open_page, folder, tmp_path_factory
):
    """Of the file no more than its first block is read; the rows are, at the release."""
    trace = tmp_path_factory.mktemp("trace") / "reads.txt"
    draft = draft_of(folder)
    rows = folder / "stays.csv"
    rows.write_text(rows.read_text() + "1,A,1.00\n" * 30_000)
    assert rows.stat().st_size > 200_000
    served = serve_process(folder)
    words = ["strace", "-f", "-y", "-e", "trace=read,pread64,mmap", "-o", str(trace)]
    tracer = subprocess.Popen([*words, "-p", str(served.process.pid)], stderr=subprocess.PIPE)
    tracer.stderr.readline()
    page, _ = open_page(served)
    page.goto(f"{served.url}/tables/{draft.id}/data")
    page.goto(f"{served.url}/tables/{draft.id}/question")
    settled(page)
    wanted = format_up(table_of(folder).quote(epsilon=0.5, rows=1000).accuracy("mean_cost"))
    move(page, "epsilon", "0.5", "error", wanted)
    says(page, "#preview").to_contain_text("Made-up rows", timeout=PATIENCE)
    says(page, "#price").to_contain_text("epsilon 0.5", timeout=PATIENCE)
    page.goto(f"{served.url}/tables/{draft.id}/release")
    before = sum_reads(trace, rows)
    page.get_by_role("button", name="Read the rows and pay").click()
    page.wait_for_url(re.compile("/answers/stays/1"), timeout=PATIENCE)
    tracer.terminate()
    tracer.communicate()
    assert all(place + size <= 65_536 for place, size in before)
    assert max(place + size for place, size in sum_reads(trace, rows)) > 200_000


def test_no_row_is_read_from_postgresql_before_the_release(
    serve_process, open_page, folder, postgres
):
    """W10 on a server: its own count of rows that were read. Killed in between, it asks again."""
    name = postgres.create_database()
    made = "CREATE TABLE stays AS SELECT 'P' || n % 900 AS patient, 'A' AS ward, n % 4000 AS cost"
    postgres.run(f"{made} FROM generate_series(1, 3000) n", "ANALYZE stays", database=name)
    started = count_reads(postgres, name)
    address = f"postgresql://{postgres.user}@{postgres.host}:{postgres.port}/{name}"
    draft = draft_of(folder, **{"stat.2.kind": "sum", "error_of": "sum_cost"})
    data = DATA | {"where": "database", "address": address, "place": "stays", "col.2.kind": "int"}
    drafts = Drafts(folder / ".hushed" / "drafts.db")
    drafts.change(draft.id, data, prefix="data.")
    served = serve_process(folder)
    page, watch = open_page(served)
    watch.allow("ERR_CONNECTION", "Failed to fetch", "403")
    page.goto(f"{served.url}/tables/{draft.id}/question")
    page.wait_for_url(re.compile("/data$"))
    page.get_by_label("Password").fill(postgres.password)
    page.get_by_label("Password").press("Tab")
    says(page, "#password-help").to_contain_text("one was given", timeout=PATIENCE)
    page.get_by_role("button", name="Go on to the question").click()
    says(page, "#preview").to_contain_text("Made-up rows", timeout=PATIENCE)
    says(page, "#price").to_contain_text("epsilon 0.9", timeout=PATIENCE)
    page.get_by_role("button", name="Check the price").click()
    page.get_by_role("button", name="Read the rows and pay").wait_for()
    assert count_reads(postgres, name) == started
    served.restart()  # the password was in memory alone: it is asked for again
    page.goto(served.key_address)
    page.goto(f"{served.url}/tables/{draft.id}/data")
    page.get_by_label("Password").fill(postgres.password)
    page.get_by_role("button", name="Go on to the question").click()
    page.goto(f"{served.url}/tables/{draft.id}/release")
    page.get_by_role("button", name="Read the rows and pay").click()
    page.wait_for_url(re.compile("/answers/stays/1"), timeout=PATIENCE)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Certificate for programs (JSON)").click()
    assert hs.verify(hs.Statement.from_json(saved.value.path().read_text())).reproduced
    assert count_reads(postgres, name) >= started + 3000
    kept = [path.read_bytes() for path in (folder / ".hushed").rglob("*") if path.is_file()]
    assert not any(postgres.password.encode() in each for each in [*kept, served.log.read_bytes()])


def count_reads(server, database):
    """Count the rows that were ever read, as the server tells once its sessions have told it."""
    time.sleep(1.5)  # a session tells at most once a second
    asked = "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables"
    return int(server.run(asked, database=database))


def sum_reads(trace, file):
    """List where each read of a file began, and how long it was."""
    found, at = [], 0
    for line in trace.read_text(errors="replace").splitlines():
        if str(file) not in line or "= " not in line:
            continue
        size = re.search(r"= (\d+)$", line)
        if size and "pread64" in line:
            found.append((int(re.search(r", (\d+)\) *= ", line)[1]), int(size[1])))
        elif size and "read(" in line:
            at = 0 if int(size[1]) == 0 else at
            found.append((at, int(size[1])))
            at += int(size[1])
        elif "mmap" in line:
            found.append((0, file.stat().st_size))
    return found


@pytest.mark.parametrize(
    ("extra", "most"),
    [
        ({}, 0.25),
        ({"keys": "private", "noise": "gaussian", "delta": "1e-6", "max_groups": "1"}, 0.9),
    ],
    ids=["laplace", "gaussian"],
)
def test_a_key_press_becomes_a_number_soon(serve, open_page, folder, extra, most):
    """The number is the library's. The times are printed: a busy machine has others."""
    draft = draft_of(folder, **extra)
    served = serve(folder)
    page, _ = open_page(served)
    page.goto(f"{served.url}/tables/{draft.id}/question")
    settled(page)
    times = []
    for i in range(30):
        before = page.input_value("#error")
        start = time.perf_counter()
        page.fill("#epsilon", f"{0.4 + 0.03 * i:.2f}")
        page.wait_for_function(
            "was => document.getElementById('error').value !== was", arg=before, timeout=PATIENCE
        )
        times.append(time.perf_counter() - start)
    times.sort()
    told = f"median {statistics.median(times):.3f} s, 95th percentile {times[28]:.3f} s"
    print(f"key press to number: {told}; wanted {most} s")
    if not extra:
        quote = table_of(folder).quote(epsilon=1.27, rows=1000)
        says(page, "#error").to_have_value(format_up(quote.accuracy("mean_cost")), timeout=PATIENCE)
    assert page.locator("#error-error").inner_text() == ""
