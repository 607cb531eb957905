"""The page of a certificate prints on two sides at most, however much it has to tell."""

import re

import numpy as np
import pyarrow as pa
import pytest
from tests.served import scrolls_sideways

import hushed as hs
from hushed.plots import certificate_page, comparison_page

pytestmark = pytest.mark.browser

LONG = "a remark that goes on and on, "


def mean(rows):
    return rows.mean()


def noisy(rows, rng, size):
    return rows[0] + rng.laplace(size=size)


def charge_everything(book):
    """Charge one of each kind that tells much: long remarks, many questions, many groups."""
    charged = {"ledger": book, "budget": "rows", "note": LONG * 10}
    box, private = hs.populations.Uniform(low=0, high=1), np.linspace(0, 1, 1200)
    small = hs.sample_sensitivity(mean, box, rows=5, gamma=0.1)
    hs.check_population(private, box, epsilon=0.3, tables=99, **charged)
    hs.check_movement(mean, private, small, epsilon=0.3, **charged)
    search = hs.AboveThreshold(50, 0.5, positives=40, values=0.2, **charged)
    for number in range(300):
        if search.left:  # noise may find some of them sooner
            search.ask(10_000 if number % 10 == 0 else 0)
    hs.release(mean, np.full(5, 0.5), hs.Laplace(small, epsilon=1), book, budget="rows")


def test_certificates_print_on_two_sides(chromium, tmp_path):
    """A4, as a browser prints it; the record itself is data, and not printed."""
    keys = [f"a group with a long name {i}" for i in range(200)]
    query = hs.table(pa.table({"a": keys})).group_by("a", keys=keys).count()
    known = [hs.certify(query.release(epsilon=1), data=LONG * 5, actor="Ada", note=LONG * 10)]
    with hs.Ledger(f"sqlite:///{tmp_path / 'l.db'}") as book:
        book.open_budget("rows", hs.Guarantee(epsilon=30, gamma=0.5))
        charge_everything(book)
        entries = range(1, book.balance("rows").entries + 1)
        known += [hs.certify(i, ledger=book, budget="rows", data=LONG * 5) for i in entries]
        known.append(hs.certify_budget(book, "rows", actor="Ada"))
    claim = hs.Guarantee(epsilon=1, delta=1e-6)
    pairs = [hs.auditing.Pair(rows=[1.0], neighbour=[0.0], name=LONG * 3)]
    audited = hs.audit(noisy, pairs, claim=claim, samples=20_000, batch=True, workers=1)
    known.append(hs.certify(audited, data=LONG * 5, actor="Ada", note=LONG * 10))
    page = chromium.new_page()
    sides = {}
    for each in known:
        page.set_content(certificate_page(each))
        printed = page.pdf(format="A4")
        sides[each.kind] = len(re.findall(rb"/Type\s*/Page\b", printed))
    page.close()
    kinds = {
        "audit",
        "answer",
        "population-check",
        "movement-check",
        "above-threshold",
        "release",
        "budget",
    }
    assert set(sides) == kinds
    assert all(1 <= count <= 2 for count in sides.values()), sides


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages with what is wide: a picture, a table of many columns, a list."""
    box = hs.populations.Uniform(low=0, high=1)
    small = hs.sample_sensitivity(mean, box, rows=5, gamma=0.1)
    with hs.Ledger(f"sqlite:///{tmp_path_factory.mktemp('pages') / 'l.db'}") as book:
        book.open_budget("rows", hs.Guarantee(epsilon=30, gamma=0.5))
        laplace = hs.Laplace(small, epsilon=1)
        released = hs.release(mean, np.full(5, 0.5), laplace, book, budget="rows", note=LONG * 10)
        known = [hs.certify(released), hs.certify_budget(book, "rows")]
    median = hs.statistics.median(rows=100, low=0, high=1)
    compared = hs.compare(median, box, epsilon=1.0, trials=20)
    return [*map(certificate_page, known), comparison_page(compared)]


WIDE = """() => [...document.querySelectorAll("td, th, figure, p")].filter((each) =>
    !each.closest(".scroll") && each.getBoundingClientRect().right > innerWidth)
  .map((each) => each.textContent.slice(0, 60))"""

SMALL = """() => [...document.querySelectorAll("svg text")].filter((each) => {
    const to = each.getScreenCTM(), size = parseFloat(getComputedStyle(each).fontSize);
    return each.getBBox().width && size * Math.hypot(to.a, to.b) < 8;
  }).map((each) => each.textContent)"""


def test_pages_are_read_on_a_telephone(chromium, pages):
    """The words stay in the window; a table and a picture move by themselves, and can be read."""
    page = chromium.new_page(viewport={"width": 390, "height": 844})
    for each in pages:
        page.set_content(each)
        assert not scrolls_sideways(page), page.title()
        assert page.evaluate(WIDE) == [], page.title()
        assert page.evaluate(SMALL) == [], page.title()
    page.close()


SIZES = """() => ["body", "footer"].map((each) =>
    parseFloat(getComputedStyle(document.querySelector(each)).fontSize))"""

GAPS = """() => [...document.querySelectorAll("h2 + p")].map((each) => {
    const range = document.createRange(), text = each.firstChild;
    const first = text.data.search(/\\S/);
    range.setStart(text, first); range.setEnd(text, first + 1);
    return range.getBoundingClientRect().top - each.getBoundingClientRect().top;})"""


def test_what_is_printed_has_one_size_and_no_empty_lines(chromium, pages):
    """The foot was larger than the text and went over to a second side; lists began a line late."""
    page = chromium.new_page()
    page.emulate_media(media="print")
    for each in pages:
        page.set_content(each)
        body, foot = page.evaluate(SIZES)
        assert foot < body, page.title()
        assert max(page.evaluate(GAPS)) < body, page.title()
        tall = page.locator("svg").first.bounding_box()["height"]
        assert tall > 200, page.title()
    page.close()


FAINT = """() => {
  const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((each) => each / 255)
    .map((c) => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + [.2126, .7152, .0722][i] * c, 0);
  const back = (each) => { const own = getComputedStyle(each).backgroundColor;
    return own.endsWith(", 0)") && each.parentElement ? back(each.parentElement) : own; };
  return [...document.querySelectorAll("body *")].filter((each) => {
    const own = [...each.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    const style = getComputedStyle(each), least = own ? 4.5 : 3;
    const drawn = each.matches("svg path[stroke]:not([stroke='#ddd'])") ? style.stroke : "none";
    const ink = each.closest("svg") ? (own ? style.fill : drawn) : (own ? style.color : "none");
    if (ink === "none" || ink.endsWith(", 0)")) return false;
    const [a, b] = [light(ink), light(back(each))].sort((x, y) => y - x);
    return (a + .05) / (b + .05) < least;
  }).map((each) => each.textContent.slice(0, 40) || each.outerHTML.slice(0, 120)); }"""

BACK = "() => getComputedStyle(document.body).backgroundColor"


def test_pages_are_dark_where_the_reader_wants_it_and_light_on_paper(chromium, pages):
    """A white page was shown in the dark; words, lines and pictures can be read on the dark one."""
    page = chromium.new_page(color_scheme="dark")
    for each in pages:
        page.emulate_media(media="screen")
        page.set_content(each)
        assert page.evaluate(BACK) == "rgb(20, 25, 29)"
        assert page.evaluate(FAINT) == [], page.title()
        page.emulate_media(media="print")
        assert page.evaluate(BACK) == "rgb(255, 255, 255)"
    page.close()


def test_a_picture_of_a_line_leaves_room_for_words_and_indents_stay(chromium, tmp_path):
    """A gauge squeezed the words of a ledger, and what is indented in a query began at the left."""
    with hs.Ledger(f"sqlite:///{tmp_path / 'l.db'}") as book:
        book.open_budget("rows", hs.Guarantee(epsilon=30, neighbours="add-remove"))
        card = book._repr_html_()
    query = hs.Query.of(hs.table(pa.table({"a": [1]})).count())._repr_html_()
    page = chromium.new_page(viewport={"width": 900, "height": 600})
    page.set_content(f"<!doctype html><body>{card}{query}")
    heights = page.locator(".rows td, .rows th").evaluate_all(
        "all => all.map((each) => each.getClientRects()[0].height)"
    )
    assert max(heights) < 30  # one line
    left = """(each) => [...each.firstChild.data.matchAll(/\\n *\\S/g)].map((found) => {
        const range = document.createRange(), end = found.index + found[0].length;
        range.setStart(each.firstChild, end - 1); range.setEnd(each.firstChild, end);
        return range.getBoundingClientRect().left;})"""
    places = page.locator(".hushed-card p").last.evaluate(left)
    assert places[0] == places[2] < places[1]


def test_a_report_and_a_study_of_many_long_notes_print_on_two_sides(chromium, tmp_path):
    """Sixty charges, each with a note of its own of 900 letters; paper shows how each begins."""
    notes = [f"number {i}: {LONG * 30}" for i in range(60)]
    with hs.Ledger(f"sqlite:///{tmp_path / 'l.db'}") as book:
        book.open_budget("rows", hs.Guarantee(epsilon=99), note=LONG * 30)
        for number, note in enumerate(notes):
            book.charge("rows", hs.Guarantee(epsilon=1 + number / 1000), note=note)
        report = hs.certify_budget(book, "rows", data=LONG * 10, actor="Ada", note=LONG * 30)
    count = hs.table(pa.table({"a": ["x"] * 5})).count()
    parts = [hs.certify(count.release(epsilon=1), data=LONG * 20, note=each) for each in notes[:40]]
    study = hs.certify_study(parts, data=LONG * 10, note=LONG * 30, actor="Ada")
    page = chromium.new_page()
    for each in (report, study):
        page.emulate_media(media="print")
        page.set_content(certificate_page(each))
        assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))) <= 2
        shown = page.inner_text("table.released")
        assert "number 30: a remark" in shown
        assert LONG.strip() not in shown
        page.emulate_media(media="screen")
        assert LONG.strip() in page.inner_text("table.released")
    page.close()
