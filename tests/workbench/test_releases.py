"""One charge whatever is clicked, what a page says of it, and the files of an answer."""

import csv
import io
import json
import shlex
import sys
import threading

import pyarrow as pa
import pytest

import hushed as hs
from hushed._web.answers import draw_answer, list_answer
from hushed.errors import MissingExtra, NotFound, QueryFailed
from hushed.ledger._failures import write_failure
from hushed.ledger._notes import read_note, write_note
from hushed.plots import certificate_page
from hushed.workbench._releases import Releases
from hushed.workbench._views.exports import (
    Source,
    Stored,
    write_file,
    write_question,
)

ROWS = pa.table({"patient": [1, 1, 2], "ward": ["=cmd", "B", "=cmd"], "cost": [10.0, 30.0, 70.0]})
LIMIT = hs.Guarantee(epsilon=3.0, delta=1e-5, neighbours="add-remove", unit="user")
KEY = "workbench-1"


@pytest.fixture
def ledger(tmp_path):
    with hs.Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as found:
        found.open_budget("stays", LIMIT)
        yield found


@pytest.fixture
def query():
    table = hs.table(ROWS, user="patient").bound_contributions(max_rows_per_user=2)
    return (
        table.group_by("ward", keys=["=cmd", "B"])
        .count()
        .histogram("cost", low=0, high=100, bins=2)
    )


def wait(releases, ledger, key=KEY):
    for thread in threading.enumerate():
        if thread.name == "hushed release":
            thread.join(20)
    return releases.look(ledger, "stays", key)


def test_two_clicks_and_another_server_pay_once(ledger, query):
    """The second click finds the release under way; another server finds the stored answer."""
    calls = []

    def release(_=None):
        calls.append(1)
        return query.release(epsilon=0.5, ledger=ledger, budget="stays", key=KEY)

    gate = threading.Event()

    def late(_):
        gate.wait(20)
        return release()

    first, second = Releases(), Releases()
    first.start("stays", KEY, late)
    first.start("stays", KEY, late)
    assert first.look(ledger, "stays", KEY).state == "waiting"
    assert (first.wait_for(KEY).state, second.wait_for(KEY)) == ("waiting", None)
    gate.set()
    found = wait(first, ledger)
    assert (found.state, found.entry.number, len(calls)) == ("answered", 1, 1)
    second.start("stays", KEY, release)
    assert wait(second, ledger).entry == found.entry
    assert ledger.balance("stays").entries == 1


@pytest.mark.slow
def test_a_server_that_was_killed_after_the_charge_says_that_it_is_paid(ledger, query):
    """To read the rows again costs nothing more, and there is never a second entry."""
    prepared = query.prepare(epsilon=0.5)
    ledger.charge(
        "stays", prepared.guarantee, "x", loss=prepared.loss, key=KEY, question=prepared.digest
    )
    releases = Releases()
    assert releases.look(ledger, "stays", KEY).state == "paid"
    again = lambda _: query.release(epsilon=0.5, ledger=ledger, budget="stays", key=KEY)  # noqa: E731
    releases.start("stays", KEY, again)
    found = wait(releases, ledger)
    assert (found.state, found.entry.number) == ("answered", 1)
    assert ledger.balance("stays").entries == 1


def test_a_refusal_charges_nothing_and_is_told(ledger, query):
    """A price that does not fit, and a name of no release, leave the ledger as it was."""
    releases = Releases()
    assert releases.look(ledger, "stays", KEY).state == "ready"
    dear = lambda _: query.release(epsilon=5, ledger=ledger, budget="stays", key=KEY)  # noqa: E731
    releases.start("stays", KEY, dear)
    found = wait(releases, ledger)
    assert (found.state, found.overspent, found.entry) == ("refused", True, None)
    assert "does not fit" in found.message


@pytest.mark.slow
def test_a_reading_that_is_stopped_stays_paid_and_is_read_again_for_nothing(ledger, query):
    """Stopped before the charge, it is free; after it, the page can read the rows again."""
    releases, begun = Releases(), threading.Event()

    def release(charged):
        def read(stop):
            if charged:
                paid = query.prepare(epsilon=0.5)
                more = {"loss": paid.loss, "key": KEY, "question": paid.digest}
                ledger.charge("stays", paid.guarantee, "x", **more)
            begun.set()
            stop.wait(20)
            raise KeyboardInterrupt("stopped; ask again under a key")

        return read

    for charged, state in ((False, "refused"), (True, "paid")):
        begun.clear()
        releases.start("stays", KEY, release(charged))
        begun.wait(20)
        releases.stop(KEY)
        assert releases.wait_for(KEY) is None or releases.wait_for(KEY).stopping
        found = wait(releases, ledger)
        assert (found.state, "You stopped" in found.message) == (state, True)
        assert ("Nothing was charged" in found.message) == (not charged)
    again = lambda stop: query.release(  # noqa: E731
        epsilon=0.5, ledger=ledger, budget="stays", key=KEY, stop=stop
    )
    releases.start("stays", KEY, again)
    assert wait(releases, ledger).state == "answered"
    assert ledger.balance("stays").entries == 1


def test_a_failure_after_the_charge_is_told_by_every_server(ledger, query):
    """The stored failure is the answer, also after a restart."""
    entry = ledger.charge("stays", query.quote(epsilon=0.5).guarantee, "x", key=KEY)
    ledger.keep_answer("stays", entry, write_failure(QueryFailed("the engine gave up")))
    found = Releases().look(ledger, "stays", KEY)
    assert (found.state, found.message) == ("failed", "the engine gave up")


def test_a_text_that_is_not_of_the_library_is_not_shown(ledger):
    """It may quote a private value."""
    releases = Releases()

    def fail(_):
        raise RuntimeError("424242")

    releases.start("stays", KEY, fail)
    found = wait(releases, ledger)
    assert (found.state, "424242" in found.message) == ("refused", False)
    assert "RuntimeError" in found.message


@pytest.mark.parametrize(
    ("actor", "note", "read"),
    [
        ("Ana", "report: 2024", ("Ana", "report: 2024")),
        ("", "report: 2024", ("", "report: 2024")),
        ("A: b\n", "", ("A, b", "")),
        ("Ana", "by Bo: x", ("Ana", "by Bo: x")),
    ],
)
def test_a_note_says_who_asked_and_is_read_again(actor, note, read):
    """A name cannot end early, and cannot break the line."""
    assert read_note(write_note(actor, note)) == read


@pytest.fixture
def stored(ledger, query):
    answer = query.release(
        epsilon=0.5, ledger=ledger, budget="stays", note=write_note("Ana", "why")
    )
    return Stored(answer=answer, budget="stays", number=1, actor="Ana", note="why", data="Stays")


@pytest.mark.slow
def test_files_of_an_answer_hold_it_and_name_no_path(ledger, stored):
    """Table, certificate and report agree with the answer; none tells where the table lies."""
    source = Source(address="postgresql://lovelace:s3cret@db/clinic9", place="stays").without_path()
    files = {
        kind: write_file(kind, stored, ledger, source)
        for kind in ("csv", "json", "certificate", "report", "python", "notebook", "command")
    }
    for file in files.values():
        assert not any(word in file.content for word in (b"s3cret", b"clinic9", b"lovelace"))
        assert file.name.replace("-", "").replace(".", "").isalnum()
    assert hs.Answer.from_json(files["json"].content.decode()).values == stored.answer.values
    lines = list(csv.DictReader(io.StringIO(files["csv"].content.decode())))
    assert [int(line["count"]) for line in lines] == list(stored.answer.values["count"])
    assert [line["ward"] for line in lines] == ["'=cmd", "B"]  # no formula of a spreadsheet
    statement = hs.Statement.from_json(files["certificate"].content.decode())
    assert (statement.actor, statement.data, statement.entry.number) == ("Ana", "Stays", 1)
    assert hs.Answer.from_json(statement.record).values == stored.answer.values
    assert b"<script" not in files["report"].content
    with pytest.raises(NotFound):
        write_file("exe", stored, ledger, source)


def test_the_report_of_an_answer_needs_no_library_that_draws(ledger, stored, monkeypatch):
    """The extra of the workbench is enough for it; only a page with a picture needs more."""
    for name in ("altair", "vl_convert"):
        monkeypatch.setitem(sys.modules, name, None)
    page = write_file("report", stored, ledger, Source(address="x.csv")).content.decode()
    assert "Ana" in page
    report = hs.certify_budget(ledger, "stays")
    with pytest.raises(MissingExtra, match="plot"):
        certificate_page(report)


@pytest.mark.slow
def test_exports_ask_the_same_question(stored, tmp_path, monkeypatch):
    """Program, notebook and command, with the path that was asked for."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stays.csv").write_text("patient,ward,cost\n1,B,10\n2,B,20\n")
    asked = stored.answer.asked.query
    asked = hs.Query.from_json(asked.to_json().replace('"patient": "int"', '"patient": "string"'))
    terms = {"epsilon": 0.5, "delta": 0.0, "noise": "laplace"}
    source = Source(address=str(tmp_path / "stays.csv"))

    def text(kind):
        return write_question(kind, asked, source, terms, name="q").content.decode()

    found, notebook = {}, {}
    exec(text("python"), found)
    assert hs.Query.of(found["query"]).aggregates == asked.aggregates
    for cell in json.loads(text("notebook"))["cells"][1:3]:
        exec(cell["source"], notebook)
    assert hs.Query.of(notebook["query"]) == hs.Query.of(found["query"])
    words = shlex.split(text("command"))
    assert words[:3] == ["hushed", "query", str(tmp_path / "stays.csv")]


def test_a_histogram_is_drawn_with_its_edges_and_whole_numbers_are_whole(stored):
    """One picture for each group, and one of the counts; all numbers stand in their tables."""
    pictures = draw_answer(stored.answer)
    assert len(pictures) == 3
    assert [row[0] for row in pictures[1].table] == ["group", "0 to 50", "50 to 100"]
    assert pictures[0].table[1][1] == str(stored.answer.values["count"][0])
    heads = ("ward", "count [noise alone]", "histogram_cost [noise alone]")
    assert list_answer(stored.answer)[0] == heads
    assert all(picture.sentence for picture in pictures)
