"""Certificate pages, audit pages and figures: each number is that of the object, on its side."""

import dataclasses
import json
import re
from datetime import datetime
from decimal import Decimal
from html.parser import HTMLParser

import numpy as np
import pytest

import hushed as hs
from hushed import auditing, cost
from hushed.errors import ParameterError
from hushed.plots import audit_figure, certificate_page, movement_figure, save_figure
from hushed.plots._audits import audit_page
from hushed.plots._pricing import cost_against_level
from hushed.releasing import certify

UNIT = hs.populations.Uniform(low=0, high=1)
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&\x1b[31m\x00\u202e\ud800"


def mean(rows):
    return rows.mean()


def sampled(**kept):
    """A certificate of a sampled sensitivity, with numbers that no few digits hold."""
    kept = {"rows": 12, "gamma": 1 / 7, "workers": 1, "seed": 3} | kept
    function = hs.Blockwise(mean, rows=4) if kept.pop("blocks", False) else mean
    s = hs.sample_sensitivity(function, UNIT, **kept)
    return s, certify(hs.Laplace(s, epsilon=1.00000049), values=1)


def proven(norm):
    return hs.proven_sensitivity(1 / 3, norm, argument="test")


CERTIFICATES = {
    "laplace": lambda: sampled()[1],
    "person": lambda: sampled(unit="person")[1],
    "everyone": lambda: sampled(protect="everyone", gamma=0.3)[1],
    "simultaneous": lambda: sampled(protect="simultaneous")[1],
    "blocks": lambda: sampled(blocks=True)[1],
    "gaussian": lambda: certify(
        hs.Gaussian(proven("l2"), epsilon=0.70000001, delta=1.0000007e-6), values=3
    ),
    "exponential": lambda: certify(hs.Exponential(proven("sup"), epsilon=2 / 3), values=5),
    "bernstein": lambda: certify(
        hs.Bernstein(proven("sup"), epsilon=1 / 3, lattice=3, dims=1), values=4
    ),
}


class Cells(HTMLParser):
    """Reads the cells of a table and the text of an HTML page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.cells, self.text = [""], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag in ("th", "td"):
            self.cells.append("")

    def handle_endtag(self, tag):
        self.tags.append(f"/{tag}")

    def handle_data(self, data):
        self.text.append(data)
        if self.tags[-1] in ("th", "td"):
            self.cells[-1] += data

    @property
    def rows(self):
        return dict(zip(self.cells[::2], self.cells[1::2], strict=True))


def decimal(value):
    return Decimal(repr(value))


def is_close(shown, value):
    """Six digits of it, no fewer."""
    return abs(shown - decimal(value)) <= abs(decimal(value)) * Decimal("1.1e-5")


@pytest.mark.parametrize("name", CERTIFICATES)
def test_the_table_of_a_page_holds_the_numbers_of_the_certificate(name):
    """Promises and errors are not printed smaller than they are, the scale not larger."""
    certificate = CERTIFICATES[name]()
    rows = Cells(certificate_page(certificate)).rows
    promise, made = certificate.guarantee, certificate.mechanism
    said = {
        "epsilon": (rows["epsilon"], promise.epsilon, 1),
        "delta": (rows["delta"], promise.delta, 1),
        "gamma": (rows["gamma"].split(" ")[0], promise.gamma, 1),
        "scale": (rows["mechanism"].rpartition(" ")[2], made.scale, -1),
        "accuracy": (rows["accuracy at 95 %"].partition(",")[0], made.accuracy, 1),
        "sensitivity": (rows["sensitivity"].split(" ")[0], certificate.sensitivity, 1),
    }
    for label, (shown, value, side) in said.items():
        assert (Decimal(shown) - decimal(value)) * side >= 0, label
        assert is_close(Decimal(shown), value), label
    assert rows["sensitivity"].endswith(f" ({certificate.norm})")
    assert rows["mechanism"].startswith(made.name)
    assert rows["gamma"].endswith(f"({promise.protect})")
    assert rows["neighbours"].startswith(promise.neighbours)
    assert rows["neighbours"].endswith("one person" if certificate.person else "one row")
    made_at = datetime.fromisoformat(certificate.created)
    assert rows["created"] == f"{made_at:%Y-%m-%d %H:%M} UTC"


@pytest.mark.parametrize("name", CERTIFICATES)
def test_the_record_on_a_page_is_the_certificate(name):
    """What the page ends with reads back as the same certificate."""
    certificate = CERTIFICATES[name]()
    text = "".join(Cells(certificate_page(certificate)).text)
    record = text[text.index("The certificate itself") :].partition("\n")[2]
    assert hs.Certificate.from_json(record) == certificate


@pytest.mark.parametrize("kept", [{}, {"gamma": 0.01}, {"protect": "simultaneous"},
                                  {"blocks": True}], ids=str)  # fmt: skip
def test_the_curve_of_movements_is_that_of_the_draws(kept):
    """At each point the share of draws that move at most so far, also where few are kept."""
    s, certificate = sampled(**kept)
    spec = movement_figure(certificate).to_dict()
    curve, rule, text = (layer["data"]["values"] for layer in spec["layer"])
    assert len(curve) == min(201, s.pairs)
    for point in curve:
        exact = np.mean(s.draws <= point["movement"])
        assert point["share"] == pytest.approx(exact, abs=1e-12)
    assert rule[0]["movement"] == text[0]["movement"] == s.value
    assert text[0]["label"] == f"kept: number {s.rank} of {s.pairs}"
    noun = "tables" if kept.get("protect") == "simultaneous" else "pairs"
    assert spec["layer"][0]["encoding"]["y"]["title"] == f"share of sampled {noun}"
    assert f"{s.pairs} {noun} of {4 if 'blocks' in kept else 12} rows" in spec["title"]["subtitle"]
    shown = re.search(r"gamma = (\S+),", spec["title"]["subtitle"])[1]
    assert Decimal(shown) >= decimal(s.gamma)


def answer(rows, rng, size):
    """Randomised response of twice the level that is claimed."""
    likely = 1 / (1 + np.exp(-2.0))
    return (rng.random(size) < (likely if rows[0] else 1 - likely)).astype(float)


@pytest.mark.slow
@pytest.mark.parametrize("claim", [hs.Guarantee(epsilon=1.0, delta=0.05), hs.Guarantee(epsilon=3)])
def test_the_picture_of_an_audit_shows_the_numbers_of_its_report(claim):
    """The claim, the certified bounds, the estimate, and how often the event was seen."""
    report = hs.audit(answer, [([1.0], [0.0])], claim=claim, samples=4000, batch=True, workers=1)
    page = audit_page(report, name="m.py:<answer>")
    assert "m.py:&lt;answer&gt;" in page
    assert f"<td>{report.to_dict()['claim']}</td>" in page
    above, below = audit_figure(report).to_dict()["vconcat"]
    curve, certified, claimed = (layer["data"]["values"] for layer in above["layer"])
    found = [(each["epsilon"], each["delta"]) for each in (*certified, *claimed)]
    assert found == [
        (report.epsilon_low, claim.delta),
        (claim.epsilon, report.delta_low),
        (claim.epsilon, claim.delta),
    ]
    assert [each["epsilon"] for each in curve] == report.estimate.epsilon.tolist()
    assert [each["delta"] for each in curve] == report.estimate.values.tolist()
    assert len({each["what"] for each in (*curve, *certified, *claimed)}) == 3
    bars, dots, rule = (layer["data"]["values"] for layer in below["layer"])
    seen = report.witness.counts
    event = rule[0]["at"]
    assert 0 < event < len(bars)
    for drawn, hits, runs in ((bars, seen.hits, seen.samples), (dots, seen.other_hits,
                                                               seen.other_samples)):  # fmt: skip
        assert sum(each["share"] for each in drawn) == pytest.approx(1)
        inside = sum(each["share"] for each in drawn if each["from"] >= event)
        assert inside == pytest.approx(hits / runs)
    assert {each["what"] for each in bars} == {report.witness.likelier}
    assert {each["what"] for each in dots} == {"rows", "neighbour"} - {report.witness.likelier}
    for panel in (above, below):  # told apart by shape, too
        shapes = [layer["encoding"].get("shape") for layer in panel["layer"]]
        assert len(set(shapes[0]["scale"]["range"])) == len(shapes[0]["scale"]["domain"])
    assert page.count("<svg") == 1
    record = json.loads(
        "".join(Cells(page).text[Cells(page).text.index("The record itself") + 1 :])
    )
    assert record["certified"]["epsilon_low"] == report.epsilon_low


@pytest.mark.slow
def test_the_picture_of_costs_shows_no_cost_below_it():
    """The least cost is printed rounded up, at its level."""
    model = cost.CostModel(per_person=100.0, people=7)
    spec = cost_against_level(model, 0.7).to_dict()
    (points,) = (layer for layer in spec["layer"] if layer["mark"]["type"] == "circle")
    assert len(points["data"]["values"]) == 3
    for row in points["data"]["values"]:
        basis, money, level = re.fullmatch(r"(\w+): (\S+) at ε = (\S+)", row["series"]).groups()
        best = model.optimum(0.7, basis=basis)
        assert (row["x"], row["y"]) == (best.epsilon, best.budget)
        assert 0 <= Decimal(money.replace(",", "")) - decimal(best.budget) <= Decimal("0.01")
        assert 0 <= Decimal(level) - decimal(best.epsilon) <= decimal(best.epsilon) / 1000


@pytest.mark.slow_cases("html")
@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["html", "svg", "png"])
def test_no_name_runs_or_stops_a_program(suffix, tmp_path):
    """A stranger's name is text in every figure: it runs no script and ends no process."""
    _, certificate = sampled()
    certificate = dataclasses.replace(
        certificate, sampling=dataclasses.replace(certificate.sampling, function=HOSTILE)
    )
    path = save_figure(movement_figure(certificate), tmp_path / f"figure.{suffix}")
    content = path.read_bytes()
    plain = save_figure(movement_figure(sampled()[1]), tmp_path / f"plain.{suffix}").read_bytes()
    assert b"<script>alert" not in content
    assert content.count(b"<script") == plain.count(b"<script")
    assert content.count(b"<img") == plain.count(b"<img")
    assert b"\x1b[31m" not in content


@pytest.mark.slow
def test_no_name_runs_or_stops_a_page():
    """The page of a certificate holds a stranger's name as text; one that is no text has none."""
    _, certificate = sampled()
    name = HOSTILE.removesuffix("\ud800")
    certificate = dataclasses.replace(
        certificate,
        created=name,
        charged=name,
        sampling=dataclasses.replace(certificate.sampling, function=name),
    )
    with pytest.raises(ParameterError, match="surrogates"):
        certificate_page(dataclasses.replace(certificate, created=HOSTILE))
    page = certificate_page(certificate)
    page.encode()
    assert "\x1b" not in page
    assert not {"script", "img"} & set(Cells(page).tags)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 19.0, 20.0, 25.0, 100.0])
def test_a_sequential_audit_tells_epsilons_from_deltas(epsilon):
    """Beside the claim: epsilons up to beyond it at its delta, and deltas at its epsilon."""
    epsilons, deltas = auditing._sequential.make_grid(epsilon, 0.01)
    start = int(np.flatnonzero(np.diff(epsilons) < 0)[-1]) + 1
    assert max(epsilons[1:start]) > epsilon
    assert set(deltas[1:start]) == {0.01}
    assert set(epsilons[start:]) == {epsilon}
    assert np.all(np.diff(deltas[start:]) > 0)
