"""What all reproduced figures share: records, streams, files on disk, and going on after a stop."""

import csv
import json
import math
import re
from pathlib import Path

import pytest

import papers
from hushed.errors import NotFound, ParameterError
from hushed.plots import save_figure
from papers import Effort, Experiment, Verdict, charts, reproduction
from papers.store import RunStore, run_digest


def toy(measured, *, slope=2.0, agrees=True):
    """An experiment of three points that notes what it measured."""

    def measure(settings, point, effort):
        measured.append(point["x"])
        return [{"x": point["x"], "y": point["x"] * settings["slope"], "by": "line"}]

    return Experiment(
        paper="toy",
        figure="figure-1",
        title="A line",
        settings=lambda quick: {"slope": slope, "quick": quick},
        points=lambda settings: [{"x": x} for x in range(1, 4)],
        measure=measure,
        plot=lambda rows: charts.lines(
            rows, x="x", y="y", by="by", labels=("x (unit)", "y (unit)", "series"),
            title="A line", caption="made up",
        ),
        verdict=lambda rows: Verdict(
            claim="y is 2 x", criterion="the last y is 6", agrees=agrees,
            measured=f"last y {rows[-1]['y']:g}", better="nothing", notes=("a note",),
        ),
    )  # fmt: skip


@pytest.fixture
def installed(monkeypatch):
    """Put one experiment in the place of a paper's figures."""

    def put(experiment):
        monkeypatch.setattr(reproduction, "experiments", lambda paper: (experiment,))
        return lambda **options: list(papers.reproduce("toy", **options))

    return put


def test_streams_depend_on_seed_and_purpose_alone():
    """Equal words give equal numbers; another word or seed gives others."""
    effort = Effort(seed=3)
    first = effort.stream("a", 1).random(3).tolist()
    assert effort.stream("a", 1).random(3).tolist() == first
    assert effort.stream("a", 2).random(3).tolist() != first
    assert Effort(seed=4).stream("a", 1).random(3).tolist() != first
    assert effort.seed_for("a", 1) == Effort(seed=3, workers=2).seed_for("a", 1)


def test_a_verdict_says_all_of_its_parts():
    """The text holds claim, criterion, measurement, word, better method and notes."""
    for agrees, word in ((True, "agrees"), (False, "disagrees"), (None, "no claim")):
        verdict = Verdict(
            claim="c1", criterion="c2", measured="m3", agrees=agrees, better="b4", notes=("n5",)
        )
        assert verdict.word == word
        assert all(part in verdict.text() for part in ("c1", "c2", "m3", f"{word}.", "b4", "n5"))


def test_equal_points_are_refused():
    """Two points with one key would overwrite each other on disk."""
    experiment = toy([])
    twice = Experiment(
        **{n: getattr(experiment, n) for n in Experiment.__slots__ if n != "points"},
        points=lambda settings: [{"x": 1}, {"x": 1}],
    )
    with pytest.raises(ParameterError, match="twice"):
        twice.run()


@pytest.mark.slow
def test_a_run_writes_data_pictures_verdict_and_manifest(tmp_path, installed):
    """Each of the five files is there and says what was measured."""
    (found,) = installed(toy([]))(out=tmp_path)
    folder = tmp_path / "toy"
    assert found.folder == folder
    assert {p.name for p in folder.iterdir()} == {
        f"figure-1{end}" for end in (".csv", ".svg", ".png", ".txt", ".json")
    }
    with (folder / "figure-1.csv").open() as stream:
        assert [float(row["y"]) for row in csv.DictReader(stream)] == [2, 4, 6]
    assert "last y 6" in (folder / "figure-1.txt").read_text()
    assert (folder / "figure-1.svg").read_text().startswith("<svg")
    assert (folder / "figure-1.png").read_bytes()[:4] == b"\x89PNG"
    manifest = json.loads((folder / "figure-1.json").read_text())
    assert manifest["settings"] == {"slope": 2.0, "quick": False}
    assert manifest["verdict"]["agrees"] is True


@pytest.mark.slow
def test_a_finished_figure_is_not_run_again(tmp_path, installed):
    """A second run measures nothing and gives the same verdict."""
    measured = []
    run = installed(toy(measured))
    (first,) = run(out=tmp_path)
    (second,) = run(out=tmp_path)
    assert measured == [1, 2, 3]
    assert (first.reused, second.reused) == (False, True)
    assert second.verdict == first.verdict
    assert second.seconds == 0


@pytest.mark.slow
@pytest.mark.slow_cases("seed")
@pytest.mark.parametrize(
    "change",
    [
        "seed",
        "code",
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("settings", "file", "gone")),
    ],
)
def test_whatever_changes_the_result_makes_it_run_again(tmp_path, installed, monkeypatch, change):
    """Another seed, other settings, an edited or missing file, other code: none is reused."""
    measured = []
    run = installed(toy(measured))
    run(out=tmp_path)
    options = {}
    if change == "seed":
        options = {"seed": 1}
    elif change == "settings":
        run = installed(toy(measured, slope=3.0))
    elif change == "file":
        (tmp_path / "toy" / "figure-1.csv").write_text("x,y\n1,7\n")
    elif change == "gone":
        (tmp_path / "toy" / "figure-1.svg").unlink()
    else:
        monkeypatch.setattr("papers.store.digest_sources", lambda *_: "edited")
    (again,) = run(out=tmp_path, **options)
    assert not again.reused
    assert measured == [1, 2, 3] * 2


def test_settings_and_version_are_in_the_name_of_a_run(monkeypatch):
    """The digest tells settings, seeds and versions apart."""
    experiment = toy([])
    one = run_digest(experiment, {"a": 1}, 0)
    assert run_digest(experiment, {"a": 1}, 0) == one
    assert run_digest(experiment, {"a": 2}, 0) != one
    assert run_digest(experiment, {"a": 1}, 1) != one
    monkeypatch.setattr("papers.store.version", lambda _: "9.9")
    assert run_digest(experiment, {"a": 1}, 0) != one


@pytest.mark.slow
def test_an_interrupted_figure_goes_on_where_it_stopped(tmp_path, installed):
    """Points finished before Ctrl-C are kept, and the result is that of an undisturbed run."""
    measured = []
    experiment = toy(measured)

    def stopping(settings, point, effort):
        if point["x"] == 3 and measured.count(2) == 1 and 3 not in measured:
            measured.append(3)
            raise KeyboardInterrupt
        return experiment.measure(settings, point, effort)

    fields = {n: getattr(experiment, n) for n in Experiment.__slots__ if n != "measure"}
    run = installed(Experiment(**fields, measure=stopping))
    with pytest.raises(KeyboardInterrupt):
        run(out=tmp_path)
    assert not (tmp_path / "toy" / "figure-1.json").exists()
    progress = []
    (found,) = run(out=tmp_path, report=progress.append)
    assert measured == [1, 2, 3, 3]  # 1 and 2 are not measured twice
    assert "2 of 3 points were kept" in progress[0]
    assert "last y 6" in found.verdict.measured
    run(out=tmp_path / "undisturbed")
    for name in ("figure-1.csv", "figure-1.txt"):
        there = (tmp_path / "undisturbed" / "toy" / name).read_text()
        assert (tmp_path / "toy" / name).read_text() == there
    assert not list((tmp_path / "toy").glob("*.points.jsonl"))


def test_a_line_that_was_cut_off_spoils_no_other(tmp_path):
    """After half a line, later points are still read; points of another run are not."""
    store = RunStore(folder=tmp_path, figure="f", run="this")
    store.append_point("a", [{"x": 1}])
    with store.path(".points.jsonl").open("a") as journal:
        journal.write('{"run": "this", "point": "b", "ro')
    store.append_point("c", [{"x": 3}])
    RunStore(folder=tmp_path, figure="f", run="other").append_point("d", [{"x": 4}])
    assert store.load_points() == {"a": [{"x": 1}], "c": [{"x": 3}]}


def test_a_broken_manifest_counts_as_not_finished(tmp_path):
    """A manifest that is not JSON, or holds something else, is no proof of anything."""
    store = RunStore(folder=tmp_path, figure="f", run="r")
    assert store.load_verdict() is None
    for text in ("{", "[]", '{"run": "r"}', '{"run": "r", "files": {"gone.csv": "0"}}'):
        store.path(".json").write_text(text)
        assert store.load_verdict() is None


@pytest.mark.slow
def test_quick_and_full_runs_stand_side_by_side(tmp_path, installed):
    """A quick run never replaces a full one."""
    run = installed(toy([]))
    run(out=tmp_path)
    (found,) = run(out=tmp_path, quick=True)
    assert found.folder.name == "toy-quick"
    assert (
        json.loads((tmp_path / "toy" / "figure-1.json").read_text())["settings"]["quick"] is False
    )


def test_every_figure_of_the_papers_is_there():
    """The figures that the papers have, under their numbers or names."""
    names = {paper: {e.figure for e in papers.experiments(paper)} for paper in papers.PAPERS}
    assert names["ra17"] == {f"figure-{i}" for i in range(1, 10)} | {
        "table-1", "svm", "kde",
    }  # fmt: skip
    assert names["dbb20"] == {f"figure-{i}" for i in (1, 2, 4, 5, 6, 8, 9, 10, 11)} | {
        "illustration"
    }
    assert names["lo19"] == {"known-n", "known-s", "unknown-n", "unknown-s", "audit"}
    assert papers.find("ra17", "2") is papers.find("ra17", "figure-2")


@pytest.mark.parametrize(
    ("paper", "figure", "told"), [("xx", "1", "ra17"), ("ra17", "10", "table-1")]
)
def test_unknown_names_are_refused_with_a_list(paper, figure, told):
    """The error names what there is."""
    with pytest.raises(NotFound, match=told):
        papers.find(paper, figure)


def test_full_settings_are_as_published():
    """The sizes that the papers state are those of the full run."""
    svm = papers.find("ra17", "6").settings(False)
    assert (svm["dims"], svm["rows"], svm["m"], svm["gamma"]) == (2, 1000, 1500, 0.05)
    assert svm["repeats"] == 500
    wide = papers.find("ra17", "5").settings(False)
    assert (wide["rows"], wide["m"], wide["dims"][0], wide["dims"][-1]) == (1000, 1500, 8, 64)
    density = papers.find("ra17", "7").settings(False)
    assert (density["rows"], density["m"], density["repeats"]) == (5000, 50_000, 1000)
    assert papers.find("ra17", "4").settings(False)["repeats"] == 50
    assert papers.find("ra17", "9").settings(False)["rows"] == 500
    assert papers.find("dbb20", "10").settings(False)["epsilon0"] == 0.5


def test_charts_leave_out_what_a_logarithm_cannot_show_and_keep_the_order():
    """Zeros vanish on a logarithmic axis; series and panels keep their order; eight series fit."""
    rows = [
        {"x": 1 + i, "y": 0.0 if i == 0 else 1.0, "s": f"s{9 - j}"}
        for j in range(8)
        for i in (0, 1)
    ]
    chart = charts.lines(
        rows, x="x", y="y", by="s", labels=("x", "y", "s"), title="ε₀", caption="c", log="y"
    ).to_dict()
    kept = chart["data"]["values"]
    assert len(kept) == 8
    assert all(row["y"] > 0 for row in kept)
    scale = chart["layer"][0]["encoding"]["color"]["scale"]
    assert scale["domain"] == [f"s{9 - j}" for j in range(8)]
    assert len(set(scale["range"])) == 8
    assert chart["title"]["text"] == "ε0"


def test_colours_are_told_apart_in_grey_or_by_dash():
    """No two series look alike without colour: their dashes differ."""
    assert len({tuple(dash) for dash in charts.DASHES}) == 8
    assert len(set(charts.SHAPES)) == 8
    assert not any(math.isclose(a[0], 0) for a in charts.DASHES)


GALLERY = Path(__file__).resolve().parents[2] / "docs" / "reproduce.md"


def test_the_gallery_shows_every_figure_with_a_small_picture():
    """Each experiment has a section, a picture of at most 60 kB, and nothing else is there."""
    text = GALLERY.read_text(encoding="utf-8")
    every = [e for paper in papers.PAPERS for e in papers.experiments(paper)]
    assert re.findall(r"^### (\S+ \S+):", text, re.MULTILINE) == [e.name for e in every]
    pictures = {f"{e.paper}-{e.figure}.svg" for e in every}
    found = {path.name: path.stat().st_size for path in (GALLERY.parent / "figures").iterdir()}
    assert set(found) == pictures
    assert max(found.values()) <= 60_000
    assert all(f"](figures/{name})" in text for name in pictures)


@pytest.mark.slow_cases("ra17-3")
@pytest.mark.parametrize(
    ("paper", "figure"), [("ra17", "2"), ("ra17", "3"), ("ra17", "8"), ("dbb20", "8")]
)
def test_the_gallery_tells_the_verdict_of_the_code(paper, figure):
    """What the page says of a figure without randomness is what the code says today."""
    experiment = papers.find(paper, figure)
    text = GALLERY.read_text(encoding="utf-8")
    section = text.split(f"### {experiment.name}:")[1].split("\n### ")[0].replace("**", "")
    for line in experiment.verdict(experiment.run(quick=True)).text().splitlines():
        assert line in section


def test_each_picture_of_the_gallery_names_its_own_figure():
    """The caption of figure N of a paper says figure N."""
    for paper in papers.PAPERS:
        for each in papers.experiments(paper):
            kind, _, number = each.figure.partition("-")
            if number.isdecimal():
                picture = GALLERY.parent / "figures" / f"{paper}-{each.figure}.svg"
                told = picture.read_text(encoding="utf-8")
                assert f">{kind.capitalize()} {number} of " in told, each.name


@pytest.mark.slow
@pytest.mark.parametrize("panels", ["", "panel"])
def test_shapes_in_a_legend_are_whole(tmp_path, panels):
    """There is one legend, whose shapes differ and are not cut up by the dashes of lines."""
    rows = [
        {"x": i, "y": i * k, "by": f"series {k}", "panel": panel}
        for k in (1, 2, 3)
        for i in range(3)
        for panel in "ab"
    ]
    chart = charts.lines(
        rows, x="x", y="y", by="by", labels=("a", "b", "c"), title="t", caption="s", panels=panels
    )
    save_figure(chart, tmp_path / "f.svg")
    svg = (tmp_path / "f.svg").read_text(encoding="utf-8")
    symbols = re.findall(r'<g class="mark-symbol role-legend-symbol".*?<path([^>]*)>', svg)
    assert svg.count('role-legend-title"') == 1
    assert len(symbols) == 3
    assert len({re.search(r' d="([^"]*)"', each)[1] for each in symbols}) == 3
    assert not any("dasharray" in each for each in symbols)
