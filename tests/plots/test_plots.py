"""Figures and pages made from certificates."""

from xml.etree import ElementTree as ET

import altair as alt
import numpy as np
import pytest
import vl_convert

import hushed as hs
from hushed.errors import ParameterError
from hushed.plots import certificate_page, movement_figure, save_figure
from hushed.releasing import certify

BOX = hs.populations.Uniform(low=0, high=1)


def mean(rows):
    return rows.mean()


@pytest.fixture(scope="module")
def certificate():
    s = hs.sample_sensitivity(mean, BOX, rows=50, gamma=0.05)
    return certify(hs.Laplace(s, epsilon=1.0), values=1)


def test_figure_shows_the_kept_movement(certificate):
    """The rule stands at the sensitivity, the curve ends at a share of one, axes are labelled."""
    figure = movement_figure(certificate).to_dict()
    curve, rule, _ = figure["layer"]
    assert rule["data"]["values"][0]["movement"] == certificate.sensitivity
    assert curve["data"]["values"][-1]["share"] == 1
    assert "l1" in curve["encoding"]["x"]["title"]
    assert curve["encoding"]["y"]["title"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<")]
)
def test_figures_are_written(certificate, tmp_path, suffix, start):
    """Each format starts as it must; HTML needs no network."""
    path = tmp_path / f"figure.{suffix}"
    save_figure(movement_figure(certificate), path)
    content = path.read_bytes()
    assert content.lstrip().startswith(start)
    assert b'src="http' not in content


def test_other_suffix_is_refused(certificate, tmp_path):
    """A format that cannot be written is an error that names those that can."""
    with pytest.raises(hs.errors.ParameterError, match="svg"):
        save_figure(movement_figure(certificate), tmp_path / "figure.pdf")


def test_page_escapes_and_warns():
    """A hostile population name stays text, and a nominal certificate opens with the warning."""
    table = hs.populations.PublicTable(np.linspace(0, 1, 40), name="<script>alert(1)</script>")
    s = hs.sample_sensitivity(mean, table, rows=40, gamma=0.05, data_dependent=True)
    page = certificate_page(certify(hs.Laplace(s, epsilon=1.0), values=1))
    assert "<script>" not in page
    assert "NOT A PRIVACY GUARANTEE" in page
    assert "<svg" not in page


def test_proven_sensitivity_has_no_figure():
    """There are no movements to draw for a proven sensitivity; the page has its argument."""
    s = hs.proven_sensitivity(0.02, "l1", argument="mean of fifty values in [0, 1]")
    certificate = certify(hs.Laplace(s, epsilon=1.0), values=1)
    with pytest.raises(hs.errors.ParameterError, match="proven"):
        movement_figure(certificate)
    assert "mean of fifty values" in certificate_page(certificate)


PEOPLE = hs.populations.Users(hs.populations.Uniform(low=0, high=1), sizes=2)
CHANGES = [
    ({}, "20 rows from", "replace-one, one row"),
    ({"distance": 3}, "pairs of 20 rows from", "replace-one, 3 rows at once"),
    ({"user": 0}, "20 people from", "replace-one, one user"),
    ({"user": 0, "distance": 2}, "20 people from", "replace-one, 2 users at once"),
    (
        {"rows": range(18, 23), "neighbours": "add-remove"},
        "tables of 18 to 22 rows from",
        "add-remove, one row",
    ),
]


TABLE = np.linspace(0.0, 1.0, 40)
AGAIN = hs.populations.PublicTable(TABLE, promise="table")
LIMITS = [
    (AGAIN, "nothing is promised of the law behind the 40 public rows"),
    (hs.populations.Contaminated(AGAIN, hs.populations.Exponential(), share=0.1), "the 40 public"),
    (hs.populations.PublicTable(TABLE, promise="given-the-rest"), "a weaker promise, given the"),
    (hs.populations.Exponential(), ""),
]


@pytest.mark.parametrize(("public", "said"), LIMITS, ids=["table", "mixture", "rest", "law"])
def test_a_figure_of_movements_says_what_the_promise_is_not_about(public, said):
    """Its certificate says so in capitals; a figure is shown without it."""
    s = hs.sample_sensitivity(np.mean, public, rows=5, gamma=0.3, workers=1)
    made = certify(hs.Laplace(s, epsilon=1.0), values=1)
    told = movement_figure(made).to_dict()["title"]["subtitle"]
    assert isinstance(told, list) == bool(said)
    assert said in told[-1]


@pytest.mark.slow_cases("change0-20 rows from-replace-one, one row")
@pytest.mark.parametrize(("change", "drawn", "differ"), CHANGES)
def test_pages_and_figures_say_what_was_drawn_and_what_neighbours_differ_in(change, drawn, differ):
    """People are no rows, several at once are not one, and several sizes are not the largest."""
    public = PEOPLE if "user" in change else hs.populations.Uniform(low=0, high=1)
    settings = {"rows": 20, "gamma": 0.5, "calibration": "marginal"} | change
    s = hs.sample_sensitivity(np.mean, public, **settings)
    made = certify(hs.Laplace(s, epsilon=1.0), values=1)
    assert drawn in movement_figure(made).to_dict()["title"]["subtitle"]
    assert differ in certificate_page(made)
    pairs = "pairs of tables" in made.explain()
    assert pairs == (s.neighbours == "replace-one")


def test_texts_of_an_svg_leave_room_for_wider_fonts(tmp_path):
    """Each is drawn at the size asked, with a seventh more room beside it than it was laid out."""
    told = ' <text font-size="12px"'
    chart = alt.Chart(alt.Data(values=[{"a": told, "b": 1}])).mark_bar().encode(x="b:Q", y="a:N")
    chart = chart.configure_axis(labelLimit=2000)
    drawn = ET.fromstring(save_figure(chart, tmp_path / "a.svg").read_text())
    plain = ET.fromstring(vl_convert.vegalite_to_svg(chart.to_dict()))
    larger = float(drawn.get("width")) / float(plain.get("width"))
    assert 1.15 < larger < 1.18
    assert drawn.get("viewBox") == plain.get("viewBox")
    texts, before = ([each for each in svg.iter() if each.tag.endswith("}text")] for svg in
                     (drawn, plain))  # fmt: skip
    assert told.strip() in [each.text for each in texts]
    for one, other in zip(texts, before, strict=True):
        size, old = (float(each.get("font-size").removesuffix("px")) for each in (one, other))
        assert size * larger == pytest.approx(old, rel=0.01)
        assert one.get("transform") == other.get("transform")


@pytest.mark.parametrize(
    "draw",
    [
        hs.plots.answer_figure,
        hs.plots.audit_figure,
        lambda given: hs.plots.budget_figure(given, "b"),
        hs.plots.certificate_page,
        hs.plots.comparison_figure,
        hs.plots.comparison_page,
        hs.plots.error_figure,
        hs.plots.moved_figure,
        hs.plots.movement_figure,
        hs.plots.population_figure,
    ],
)
def test_what_is_not_drawn_is_named(draw):
    """Such as a sensitivity in place of a certificate."""
    given = hs.proven_sensitivity(1.0, argument="a count")
    with pytest.raises(ParameterError, match=r"got .*Sensitivity"):
        draw(given)
