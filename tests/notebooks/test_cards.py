"""What a notebook shows of a value: words, small pictures, no script, nothing from a network."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import nbformat
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hushed as hs
from hushed._ground.notebook import Card, draw_bound, render_card
from hushed.spaces import SYMMETRIC, Cell, Space, Table

pytestmark = pytest.mark.slow  # one of each kind takes seconds to make

HOSTILE = "<script>alert('x')</script>&\u202e"
EMPTY = ("br", "rect", "path", "circle")  # written as <rect .../>


class Reader(HTMLParser):
    """Tags in order, and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.tags, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(html):
    reader = Reader()
    reader.feed(html)
    assert reader.open == []
    return reader


def draw(rng, count):
    return rng.uniform(size=count)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """One of each kind that a user meets."""
    population = hs.populations.Simulator(draw)
    sensitivity = hs.sample_sensitivity(np.mean, population, rows=20, gamma=0.2)
    laplace = hs.Laplace(sensitivity, epsilon=1.0)
    release = hs.release(np.mean, np.linspace(0, 1, 20), laplace)
    rows = pa.table({"g": ["a", HOSTILE, "a"], "x": [1.0, 2.0, 3.0]})
    query = hs.table(rows).group_by("g", keys=["a", HOSTILE]).count().mean("x", low=0, high=9)
    with hs.Ledger(f"sqlite:///{tmp_path_factory.mktemp('cards') / 'b.db'}") as book:
        book.open_budget("b", hs.Guarantee(epsilon=9.0, neighbours="add-remove"))
        answer = query.release(epsilon=1.0, ledger=book, budget="b")
        balance = book.balance("b")
    visits = Space(domain=Table.of({HOSTILE: Cell(low=0, high=9)}), metric=SYMMETRIC)
    total = visits >> hs.transformations.select(HOSTILE) >> hs.transformations.sum_of()
    statistic = hs.statistics.median(rows=100, low=0, high=1)
    pair = (np.zeros(1), np.ones(1))
    audited = hs.audit(noisy_sum, [pair], claim=hs.Guarantee(epsilon=1.0), samples=2000)
    return {
        "sensitivity": sensitivity,
        "mechanism": laplace,
        "statistic's mechanism": hs.InverseSensitivity(statistic, epsilon=1.0),
        "release": release,
        "certificate": release.certificate,
        "table": hs.table(rows),
        "query": query,
        "question": hs.Query.of(query),
        "quote": query.quote(epsilon=1.0, rows=100),
        "quoted errors": query.quote_for(errors={"count": 20}, rows=100),
        "answer": answer,
        "balance": balance,
        "ledger": book,
        "public table": hs.populations.PublicTable(pd.DataFrame({"x": [1.0], HOSTILE: ["a"]})),
        "composition": hs.compose([hs.Guarantee(epsilon=1.0)] * 3),
        "comparison": hs.compare(statistic, population, epsilon=1.0, trials=20),
        "audit": audited,
        "estimate": hs.estimate_privacy(noisy_sum, pair, [0.5, 1.0], samples=2000),
        "verification": hs.verify(release.certificate, f=np.mean, population=population),
        "statement": hs.certify(answer),
        "checked statement": hs.verify(hs.certify(answer)),
        "prepared": query.prepare(epsilon=1.0),
        "space": visits,
        "transformation": total,
        "measurement": total >> hs.measurements.laplace(18.0),
    }


def noisy_sum(rows, rng):
    return rows.sum() + rng.laplace(0, 2)


KINDS = (
    *("sensitivity", "mechanism", "statistic's mechanism", "release", "certificate", "quote"),
    *("quoted errors", "answer", "balance", "composition", "comparison", "audit", "estimate"),
    *("verification", "ledger", "public table", "table", "query", "question"),
    *("statement", "checked statement", "prepared", "space", "transformation", "measurement"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_card_is_small_and_asks_for_nothing(kind, shown):
    """No script, no address, no handler, every tag closed; the plain words come with it."""
    bundle = shown[kind]._repr_mimebundle_()
    page = read(bundle["text/html"])
    assert len(bundle["text/html"]) < 12_000
    assert {tag for tag, _ in page.tags}.isdisjoint({"script", "img", "link", "iframe", "a"})
    for tag, attributes in page.tags:
        assert not any(name.startswith(("on", "href", "src")) for name in attributes), tag
    assert "url(" not in bundle["text/html"]
    words = getattr(shown[kind], "explain", shown[kind].__str__)()
    if kind not in (
        "ledger",
        "public table",
        "table",
        "query",
        "release",
        "mechanism",
        "statistic's mechanism",
        "answer",
        "prepared",
    ):
        assert bundle["text/plain"] == words
    assert not bundle["text/plain"].startswith(type(shown[kind]).__name__ + "(")


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_terminal_shows_is_read_by_people(kind, shown):
    """One short line stands for it, without a place in memory; printed it is its words."""
    for line in (repr(shown[kind]), repr([shown[kind]])):
        assert len(line) < 400
        assert "\n" not in line
        assert not re.search(r" at 0x|hushed\.|\u202e", line)
    assert type(shown[kind]).__name__ + "(" not in str(shown[kind])
    if kind != "ledger":  # whose words ask the database
        assert str(shown[kind]) == shown[kind]._repr_mimebundle_()["text/plain"]


def test_many_groups_are_one_line_still():
    """As a list of answers or of questions shows them: no key and no value is spelled."""
    keys = [f"ward {number}" for number in range(200)]
    query = hs.table(pa.table({"ward": keys})).group_by("ward", keys=keys).count()
    assert repr(query.release(epsilon=1)) == "<Answer: count in 200 rows; epsilon 1>"
    assert repr(hs.Query.of(query)) == "<Query: count by ward>"


def test_names_from_tables_are_text(shown):
    """A key that looks like a script is shown as it is spelled, and turns no text around."""
    page = read(shown["answer"]._repr_html_())
    assert "<script>alert('x')</script>" in "".join(page.text)
    assert "\u202e" not in "".join(page.text)


def test_an_answer_has_a_row_and_an_error_bar_for_each_group(shown):
    """Two groups: two lines below the names, each with a drawing."""
    tags = [tag for tag, _ in read(shown["answer"]._repr_html_()).tags]
    assert (tags.count("tr"), tags.count("svg")) == (3, 2)


def test_a_certificate_has_its_facts_and_what_was_released_as_tables(shown):
    """What it is about stands in one table, a line for each group in the other one."""
    page = read(shown["statement"]._repr_html_())
    assert [a["class"] for tag, a in page.tags if tag == "table"] == ["facts", "rows"]
    text = "".join(page.text)
    assert text.index("digest of the record") < text.index("What an outsider could still learn")
    assert "Certificate of a private answer" in text
    assert "warning" in read(hs.certify(nearly_nothing())._repr_html_()).text


def nearly_nothing():
    """An answer whose epsilon promises next to nothing."""
    return hs.table(pa.table({"x": [1.0]})).count().release(epsilon=50.0)


def test_a_gauge_is_filled_as_far_as_the_budget_is_used(shown):
    """One of nine: a ninth of the width."""
    rects = [a for tag, a in read(shown["balance"]._repr_html_()).tags if tag == "rect"]
    outer, inner = (float(each["width"]) for each in rects)
    assert inner / (outer + 1) == pytest.approx(1 / 9, abs=0.01)


def test_a_ledger_shows_its_budgets_and_a_public_table_its_form(shown):
    """What is left of each budget, but no address; of a table no cell."""
    ledger, table = (shown[kind]._repr_mimebundle_() for kind in ("ledger", "public table"))
    words = "".join(read(ledger["text/html"]).text)
    assert "b1" in words
    assert "sqlite" not in words + ledger["text/plain"]
    assert "1 charge so far" in ledger["text/plain"]
    assert "columns: x, <script>" in table["text/plain"]


def test_cards_have_the_colours_of_figures(shown):
    """The first two of them, and none else."""
    drawn = "".join(shown[kind]._repr_html_() for kind in KINDS)
    assert set(re.findall(r"#[0-9A-Fa-f]{6}", drawn)) == set(hs.plots.COLOURS[:2])


def test_the_card_of_an_audit_shows_its_outcomes(shown):
    """A bar and a dot for each group, as high as its share; those of the event on the right."""
    report = shown["audit"]
    drawn = read(report._repr_html_()).tags
    groups = np.array([each for each in zip(*report.outcomes, strict=True) if any(each)])
    shares = groups / groups.sum(axis=0)
    heights = [float(a["height"]) for tag, a in drawn if tag == "rect" and "opacity" in a]
    wanted = 56 * shares / shares.max()
    assert heights == pytest.approx(wanted[:, 0], abs=0.06)
    dots = [60 - float(a["cy"]) for tag, a in drawn if tag == "circle"]
    assert dots == pytest.approx(wanted[:, 1], abs=0.06)
    (line,) = (a["d"] for tag, a in drawn if tag == "path" and "stroke-dasharray" in a)
    inside = round(float(line[1:].split()[0]) / 320 * len(groups))
    assert groups[inside:, 0].sum() == report.witness.counts.hits


@pytest.mark.parametrize(("certified", "claimed"), [(0.4, 0.5), (9.0, 0.5), (0.0, 1.0), (1, 0)])
def test_what_was_claimed_is_written_within_the_picture(certified, claimed):
    """It was cut at the edge, and touched the words of the next picture, which is now below."""
    drawn = draw_bound(certified, claimed, "")
    x, side, words = re.search(
        r'<text x="([0-9.]+)" y="42" text-anchor="(\w+)">([^<]+)', drawn
    ).groups()
    wide = 7 * len(words)  # a letter of this size is narrower
    left = float(x) - wide * {"start": 0, "middle": 0.5, "end": 1}[side]
    assert 0 <= left < left + wide <= 320
    assert "svg{display:block" in render_card(Card(title="", text="", pictures=(drawn, drawn)))


def test_a_public_table_without_a_name_is_not_called_twice():
    """Its card said "Public table public table"."""
    table = pd.DataFrame({"x": [1.0]})
    assert "<strong>Public table</strong>" in hs.populations.PublicTable(table)._repr_html_()
    named = hs.populations.PublicTable(table, name="pilot")
    assert "<strong>Public table pilot</strong>" in named._repr_html_()


def test_the_histogram_counts_every_movement(shown):
    """Heights are in proportion to counts, for counts that NumPy makes."""
    sensitivity = shown["sensitivity"]
    bars = [a for tag, a in read(sensitivity._repr_html_()).tags if tag == "rect"]
    counts, _ = np.histogram(sensitivity.draws, bins=40, range=(0, sensitivity.draws.max()))
    wanted = counts[counts > 0] / counts.max()
    drawn = np.array([float(each["height"]) for each in bars]) / 56
    np.testing.assert_allclose(drawn, wanted, atol=0.01)


def test_jupyter_shows_cards(tmp_path):
    """In a real kernel, the last value of a cell is shown as a card and as words."""
    code = (
        "import hushed as hs, pyarrow as pa\n"
        "hs.table(pa.table({'x': [1.0, 2.0]})).count().release(epsilon=1.0)"
    )
    (output,) = run_cell(code, tmp_path)
    assert output["data"]["text/html"].startswith('<div class="hushed-card">')
    assert "count" in output["data"]["text/plain"]


@pytest.mark.slow
def test_jupyter_shows_a_figure_without_a_network(tmp_path):
    """Drawn as SVG, with nothing to load; and it can still be changed and saved."""
    code = (
        "import hushed as hs, numpy as np\n"
        "mean = lambda rows: rows.mean()\n"
        "box = hs.populations.Uniform(low=0, high=1)\n"
        "s = hs.sample_sensitivity(mean, box, rows=20, gamma=0.5, workers=1, symmetric=True)\n"
        "known = hs.release(mean, np.full(20, 0.5), hs.Laplace(s, epsilon=1.0)).certificate\n"
        "figure = hs.plots.movement_figure(known).properties(width=300)\n"
        "hs.plots.save_figure(figure, 'm.html')\n"
        "figure"
    )
    (output,) = run_cell(code, tmp_path)
    assert set(output["data"]) == {"image/svg+xml", "text/plain"}
    assert "How far" in output["data"]["image/svg+xml"]
    assert "<script" not in output["data"]["image/svg+xml"]
    assert (tmp_path / "m.html").stat().st_size > 100_000


def test_an_exported_notebook_shows_cards(tmp_path):
    """The price and the answer, with its error bars drawn."""
    nbclient = pytest.importorskip("nbclient")
    (tmp_path / "rows.csv").write_text("age\n30\n40\n50\n")
    asked = hs.table(tmp_path / "rows.csv", types={"age": "int"}).count()
    query = hs.Query.of(asked.mean("age", low=0, high=99))
    text = query.to_notebook("rows.csv", epsilon=5.0)
    notebook = nbformat.reads(text, as_version=4)
    nbclient.NotebookClient(notebook, kernel_name="python3").execute(cwd=str(tmp_path))
    *_, price, answer = (cell["outputs"] for cell in notebook.cells[1:])
    assert "mean_age" in price[0]["data"]["text/html"]
    assert answer[0]["data"]["text/html"].count("<svg") == 1
    assert "count" in answer[0]["data"]["text/plain"]


def run_cell(code, folder):
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, kernel_name="python3").execute(cwd=str(folder))
    return notebook.cells[0].outputs


RECORDED = """
from IPython.display import DisplayHandle
seen, update = [], DisplayHandle.update
def record(self, shown, **options):
    seen.append(shown["text/plain"])
    return update(self, shown, **options)
DisplayHandle.update = record
"""
WATCHED = f"""
import time
import hushed as hs, numpy as np
{RECORDED}
def slow_mean(rows):
    time.sleep(0.01)
    return rows.mean()
draw = hs.populations.Simulator(lambda rng, count: rng.uniform(size=count))
sampling = {{"pairs": 100, "gamma": 0.5, "symmetric": True}}
found = hs.sample_sensitivity(slow_mean, draw, rows=5, progress=True, **sampling)
print("\\n".join(seen))
"""


def test_progress_is_shown_in_a_notebook_and_goes(tmp_path):
    """Counts go up to the end, with the time left; at last the line is empty."""
    line, printed = run_cell(WATCHED, tmp_path)
    assert line["data"] == {"text/plain": "", "text/html": ""}
    *seen, last = printed["text"].removesuffix("\n").split("\n")
    assert last == ""
    assert len(seen) >= 2
    counts = [int(each.split(": ")[1].split(" of 100")[0]) for each in seen]
    assert counts == sorted(counts)
    assert all(each.endswith(" s left") for each in seen)


WATCHED_ROUTES = """
import hushed as hs
from hushed._ground.notebook import Card, draw_bound, render_card
from IPython.display import DisplayHandle
from hushed._ground import progress
progress._PAUSE = 0.0
seen, update = [], DisplayHandle.update
def record(self, shown, **options):
    seen.append(shown["text/plain"])
    return update(self, shown, **options)
DisplayHandle.update = record
s = hs.statistics.median(rows=100, low=0, high=1)
draw = hs.populations.Uniform(low=0, high=1)
hs.compare(s, draw, epsilon=1.0, trials=5, workers=1, progress=True)
import numpy as np
sampled = hs.sample_sensitivity(np.mean, draw, rows=20, gamma=0.5, symmetric=True, workers=1)
released = hs.release(np.mean, np.full(20, 0.5), hs.Laplace(sampled, epsilon=1.0))
hs.verify(released.certificate, f=np.mean, population=draw, progress=True, workers=1)
print("\\n".join(seen))
"""


def test_comparing_and_verifying_show_progress_in_a_notebook(tmp_path):
    """Both count up, and clear their line at the end."""
    printed = next(each for each in run_cell(WATCHED_ROUTES, tmp_path) if "text" in each)["text"]
    lines = printed.removesuffix("\n").split("\n")
    tried = [each for each in lines if each.startswith("trying the ways on public tables: ")]
    assert tried[-1].startswith("trying the ways on public tables: 5 of 5, about 0 s left")
    assert any(each.startswith("measuring movement: ") for each in lines)
    assert lines.count("") == 2


WATCHED_QUERY = """
import hushed as hs
from IPython.display import DisplayHandle
update = DisplayHandle.update
def record(self, shown, **options):
    print(repr(shown["text/plain"]))
    return update(self, shown, **options)
DisplayHandle.update = record
import pandas as pd
rows = hs.table(pd.DataFrame({"cost": [1, 2, 3]})).sum("cost", low=0, high=10)
answer = rows.release(epsilon=1.0, progress=True)
"""


def test_a_query_shows_in_a_notebook_since_when_it_is_asked(tmp_path):
    """Not how much is done; and the line goes."""
    line, printed = run_cell(WATCHED_QUERY, tmp_path)
    assert line["data"] == {"text/plain": ""}
    assert printed["text"] == "''\n"


WATCHED_AUDIT = """
import time
import hushed as hs
from hushed.auditing import Pair
def slow_count(rows, rng):
    time.sleep({seconds})
    return rows[0] + float(rng.geometric(0.5) - rng.geometric(0.5))
pairs = [Pair(rows=[n], neighbour=[n + 1.0], name=str(n)) for n in (0.0, 5.0, 9.0)]
claim = hs.Guarantee(epsilon=1.5)
report = hs.audit(slow_count, pairs, claim=claim, samples={samples}, workers=1, progress={progress})
print("\\n".join(seen))
report
"""


def test_an_audit_shows_in_a_notebook_how_far_it_is(tmp_path):
    """With progress=True: the share of the runs and the time left; the card of the report last."""
    line, printed, card = run_cell(
        RECORDED + WATCHED_AUDIT.format(seconds=0.002, samples=2000, progress=True), tmp_path
    )
    assert line["data"]["text/plain"] == ""  # nothing stale is left
    *told, last = printed["text"].removesuffix("\n").split("\n")
    assert last == ""
    shares = [
        int(re.search(r"(\d+) % of the runs made, about \d+ s left", each).group(1))
        for each in told
    ]
    assert len(shares) >= 2
    assert shares == sorted(shares)
    assert "not refuted" in card["data"]["text/html"]
    quiet = run_cell(
        "seen = []" + WATCHED_AUDIT.format(seconds=0, samples=1000, progress=False), tmp_path
    )
    assert [each.output_type for each in quiet] == ["stream", "execute_result"]


def test_an_error_asked_for_is_that_of_all_numbers_which_were_sampled():
    """Of four numbers the certificate says no more than was asked; one number is told apart."""
    population = hs.populations.Uniform(low=0, high=1)

    def quartiles(rows):
        return np.quantile(rows, [0.2, 0.4, 0.6, 0.8])

    moves = hs.sample_sensitivity(quartiles, population, rows=20, gamma=0.2)
    chosen = hs.Laplace.for_accuracy(moves, error=0.5)
    released = hs.release(quartiles, np.linspace(0, 1, 20), chosen)
    assert 0.49 < released.certificate.mechanism.accuracy <= 0.5
    assert "all 4 together: at most 0.5" in chosen._repr_mimebundle_()["text/plain"]
    alone = hs.Laplace.for_accuracy(moves, error=0.5, dims=1)
    assert alone.epsilon < chosen.epsilon
    proven = hs.Laplace.for_accuracy(hs.proven_sensitivity(1.0, "l1", argument="one"), error=0.5)
    assert "together" not in proven._repr_mimebundle_()["text/plain"]


def test_a_card_says_what_the_error_of_a_mechanism_counts():
    """Rows, or units of a private number, are no error of the answer; a polynomial has a card."""
    median = hs.statistics.median(rows=1000, low=-3, high=3)
    for mechanism, words in (
        (hs.InverseSensitivity(median, epsilon=1.0), "changed rows"),
        (hs.Smooth(median, epsilon=1.0), "units of the private smooth sensitivity"),
        (hs.ProposeTest(median, bound=0.1, epsilon=1.0, delta=1e-6), "not refused"),
        (hs.StableMode(hs.statistics.mode(["a", "b"], rows=9), epsilon=1.0, delta=1e-6), "refuses"),
    ):
        text = mechanism._repr_mimebundle_()["text/plain"]
        assert words in text
        assert "error in 95 % of draws:" not in text
    bound = hs.proven_sensitivity(1.0, "sup", argument="all points")
    surface = hs.Bernstein(bound, epsilon=1.0, lattice=3, dims=2, order=1)
    assert "error in 95 % of draws" in surface._repr_mimebundle_()["text/plain"]


def test_a_private_table_shows_what_is_asked_and_no_row(shown):
    """Columns and public keys are there; what stands in the rows is not."""
    asked = shown["query"]._repr_mimebundle_()["text/plain"]
    assert "asked: count, mean(x) by g\n" in asked
    assert "protected is: one row\n" in asked
    assert asked.endswith("columns: g (string), x (float)")
    assert "asked: nothing yet" in shown["table"]._repr_mimebundle_()["text/plain"]
    rows = pa.table({"x": ["SECRET"]})
    assert "SECRET" not in hs.table(rows)._repr_html_()


@pytest.mark.parametrize(
    "make",
    [
        lambda epsilon: hs.Laplace(hs.proven_sensitivity(1.0, argument="a count"), epsilon=epsilon),
        lambda epsilon: hs.Smooth(hs.statistics.median(rows=9, low=0, high=1), epsilon=epsilon),
    ],
)
def test_a_mechanism_says_that_it_protects_hardly_anybody(make):
    """From the epsilon on at which a query says so, and in its words."""
    text = "keeps hardly anything private"
    assert text in make(1e4)._repr_mimebundle_()["text/plain"]
    assert text in make(10.0)._repr_html_()
    assert text not in make(9.9)._repr_mimebundle_()["text/plain"]


def test_the_card_of_a_histogram_names_the_edges_of_its_bins():
    """Its numbers mean nothing without them; they were in the printed answer alone."""
    rows = hs.table(pa.table({"cost": [5.0] * 50}))
    answer = rows.histogram("cost", low=0, high=20, bins=4).release(epsilon=1.0)
    card = answer._repr_html_().partition("<details>")[0]
    assert "<th>edges of the bins of histogram_cost</th><td>0 5 10 15 20</td>" in card
    assert "edges" not in rows.count().release(epsilon=1.0)._repr_html_()
