"""Pages of certificates of every kind: nothing runs on them, and long ones are cut, not lost."""

import re
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa

import hushed as hs
from hushed.cli._release_words import describe_release
from hushed.plots import certificate_page

HOSTILE = "</table><script>alert(1)</script>\x1b[31m<img src=x onerror=alert(1)>"


class Tags(HTMLParser):
    """Tags and text of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = set(), ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.text += data


def test_no_name_runs_on_the_page_of_an_answer():
    """Neither of a column, a key, a condition, nor of the person who released it."""
    rows = pa.table({HOSTILE[:40]: ["<b>", "x"], "n": [1, 2]})
    query = hs.table(rows).filter("n > 0").group_by(HOSTILE[:40], keys=["<b>", HOSTILE])
    known = hs.certify(query.count().release(epsilon=1), data=HOSTILE, note=HOSTILE, actor=HOSTILE)
    page = certificate_page(known)
    found = Tags(page)
    assert not {"script", "img", "b"} & found.tags
    assert "\x1b" not in page
    assert "src=" not in page.replace("src=x", "")
    assert "alert(1)" in found.text


def test_a_page_holds_the_certificate_and_is_for_a_board():
    """The record reads back; the line for outsiders, the value and the digest are shown."""
    known = hs.certify(hs.table(pa.table({"a": [1]})).count().release(epsilon=1), data="Clinic")
    text = Tags(certificate_page(known)).text
    record = text[text.index("The certificate itself") :].partition("\n")[2]
    assert hs.Statement.from_json(record) == known
    assert "What an outsider could still learn" in text
    assert "at most 73.2 %" in text
    assert known.record_digest in text


def test_long_tables_are_cut_on_the_page_and_whole_in_the_file():
    """So that it prints on two sides."""
    keys = [f"k{i}" for i in range(200)]
    query = hs.table(pa.table({"a": keys})).group_by("a", keys=keys).count()
    known = hs.certify(query.release(epsilon=1))
    page = certificate_page(known).partition("The certificate itself")[0]
    assert page.count("<tr>") < 60
    assert "176 more lines are in the file" in page
    assert len(known.subject) == 200


def test_a_long_cell_of_a_report_opens_to_the_whole_text(tmp_path):
    """Its beginning is shown, and printed; the note and the numbers of all groups are there."""
    keys = [f"ward-{i:02}" for i in range(30)]
    note = "asked by the board on the third of May, " * 4
    query = hs.table(pa.table({"a": keys})).group_by("a", keys=keys).count()
    with hs.Ledger(f"sqlite:///{tmp_path / 'b.db'}") as ledger:
        ledger.open_budget("study", hs.Guarantee(epsilon=2.0, neighbours="add-remove"))
        answer = query.release(epsilon=1.0, ledger=ledger, budget="study", note=note)
        page = certificate_page(hs.certify_budget(ledger, "study"))
    cells = [each.partition("</details>")[0] for each in page.split('<details class="cell">')[1:]]
    (first, whole), (start, groups) = (each.split("</summary>") for each in cells)
    assert len(first) < 100 < len(whole)
    assert whole.split() == note.split()
    assert start.endswith(" ...")
    for row in answer.rows():
        assert f"{row['a']} {row['count']}" in groups


def list_long_numbers(page):
    """List numbers of more than eight digits that a page shows; its record is not looked at."""
    text = Tags(page).text.partition("The certificate itself")[0]
    return re.findall(r"(?<![\w.])\d+\.\d{8,}|(?<![\w.])\d\.\d{7,}(?:e-?\d+)?", text)


def test_no_page_shows_sixteen_digits():
    """A sensitivity read 9.92089539544395, a released sum 55.77608586664161; the file has both."""
    third = hs.proven_sensitivity(1 / 3, argument="each row is in [0, 1/3]")
    released = hs.release(np.sum, np.full(9, 0.2), hs.Laplace(third, epsilon=1.0))
    found = hs.find_bound(np.linspace(0, 9, 200), epsilon=1.0)
    for each in (released, found):
        known = hs.certify(each)
        for page in (certificate_page(known), certificate_page(each.certificate)):
            assert list_long_numbers(page) == []
    assert "0.333334 (l1)" in Tags(certificate_page(released.certificate)).text
    assert str(released.value) in hs.certify(released).to_json()


def test_a_large_number_is_written_out():
    """To the unit, as in the answer of a query; six digits of a sum of pay were too few."""
    one = hs.proven_sensitivity(1.0, argument="each row is in [0, 1]")
    released = hs.release(np.sum, np.full(9, 1234567.25), hs.Laplace(one, epsilon=1.0))
    assert f"{released.value:.0f}" in Tags(certificate_page(hs.certify(released))).text


def test_times_and_counts_read_as_elsewhere_on_the_page():
    """To the minute, and with commas: one page had 35000 beside 35,000."""
    one = hs.proven_sensitivity(1.0, argument="each row is in [0, 1]")
    page = certificate_page(
        hs.release(np.sum, np.ones(9), hs.Laplace(one, epsilon=1.0)).certificate
    )
    shown = Tags(page).text.partition("The certificate itself")[0]
    assert re.search(r"created\d{4}-\d\d-\d\d \d\d:\d\d UTC", shown)
    pair = hs.auditing.Pair(rows=[1.0], neighbour=[0.0], name="a row")
    report = hs.audit(noisy, [pair], claim=hs.Guarantee(epsilon=1.0), samples=20_000, batch=True)
    text = Tags(certificate_page(hs.certify(report))).text.partition("The certificate itself")[0]
    runs = f"{report.witness.counts.samples:,}"
    # Two in the table, two for outsiders, two in the evidence, and how many of all were these.
    assert text.count(runs) == 7
    assert runs.replace(",", "") not in text
    assert "the other one" not in text


def noisy(rows, rng, size):
    """A sum with noise."""
    return rows[0] + rng.laplace(size=size)


def test_places_of_candidates_are_called_that():
    """One page said "2 numbers: 1, 2" of the two best wards, as if they were measured."""
    one = hs.proven_sensitivity(1.0, norm="range", argument="each row counts once")
    rows = np.arange(9.0)
    for made, head in (
        (hs.TopK(2, one, epsilon=1.0), "chosen candidates, the best first, counted from 0"),
        (hs.Exponential(one, epsilon=1.0), "chosen candidate, counted from 0"),
        (hs.NoisyMax(one, epsilon=1.0), "chosen candidate, counted from 0gap"),
    ):
        released = hs.release(lambda data: data[:3], rows, made)
        assert head in Tags(certificate_page(hs.certify(released))).text
        assert head.removesuffix("gap") in str(released)
        told = describe_release(released.value, released.certificate)
        assert f"({head.removesuffix('gap')})" in told.partition("\n")[0]


def test_all_bins_of_a_histogram_and_their_error_are_on_the_page():
    """On paper, too: of 30 bins the last ones were cut off, and with them their error."""
    whole = hs.table(pa.table({"n": [5.0] * 1000, "ward": ["a"] * 1000}))
    for table in (whole, whole.group_by("ward", keys=["a", "b", "c"])):
        query = table.histogram("n", low=0, high=30, bins=30)
        page = certificate_page(hs.certify(query.release(epsilon=0.01)))
        for line in page.partition('class="released"')[2].split("<tr>")[2:5]:
            cell = line.rpartition("<td>")[2].partition("</td>")[0]
            assert len(cell.split()) == 30 + len(("(within", "N)"))
            assert cell.endswith(")")
