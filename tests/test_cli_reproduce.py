"""``hushed reproduce``: output, files, exit codes."""

import json
from dataclasses import dataclass

import pytest
from typer.testing import CliRunner

from hushed.cli import app
from hushed.cli.reproducing import _summary
from hushed.papers import Reproduction, Verdict

runner = CliRunner()


def test_one_figure_as_text(tmp_path):
    """The verdict is printed, progress goes to standard error, the files are there."""
    done = runner.invoke(app, ["reproduce", "dbb20", "8", "--quick", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "Verdict: agrees." in done.stdout
    assert "37,805.86 at ε = 0.274115" in done.stdout
    assert "point 3 of 3" in done.stderr
    assert "point 3 of 3" not in done.stdout
    assert (tmp_path / "dbb20-quick" / "figure-8.svg").is_file()
    folder = tmp_path / "dbb20-quick"
    last = done.stdout.splitlines()[-1]
    assert last == f"1 verdict: 1 agrees, 0 do not. Files are in {folder}"


def test_one_figure_as_json_twice(tmp_path):
    """One JSON object with the verdict; the second time the figure is reused."""
    command = ["reproduce", "dbb20", "illustration", "--out", str(tmp_path), "--json"]
    for reused in (False, True):
        done = runner.invoke(app, command)
        assert done.exit_code == 0, done.output
        told = json.loads(done.stdout)
        (figure,) = told["figures"]
        assert (told["paper"], told["quick"], figure["figure"]) == ("dbb20", False, "illustration")
        assert figure["verdict"]["agrees"] is True
        assert figure["reused"] is reused
        assert len(figure["files"]) == 4
        assert told["summary"] == {"agrees": 1, "disagrees": 0, "no claim": 0}


def test_a_disagreeing_figure_is_still_done(tmp_path):
    """A verdict against the paper is a result, not a failure: exit code 0."""
    done = runner.invoke(app, ["reproduce", "dbb20", "11", "--out", str(tmp_path), "--json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["figures"][0]["verdict"]["word"] == "disagrees"


@dataclass(frozen=True)
class Named:
    figure: str


def finished(*words):
    """Figures a, b, c ... of those verdicts."""
    agrees = {"agrees": True, "disagrees": False, "no claim": None}
    return [
        Reproduction(
            experiment=Named(figure=name),
            verdict=Verdict(claim="", criterion="", measured="", agrees=agrees[word], better=""),
            folder="out/ra17",
            seconds=1.0,
            reused=False,
        )
        for name, word in zip("abcdefghij", words, strict=False)
    ]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ["agrees", "disagrees", "agrees", "no claim", "disagrees", "no claim"],
            "4 verdicts: 2 agree, 2 do not (b, e); 2 figures without a claim",
        ),
        (["disagrees"], "1 verdict: 0 agree, 1 does not (a)"),
        (["agrees", "no claim"], "1 verdict: 1 agrees, 0 do not; 1 figure without a claim"),
        (["no claim"], "0 verdicts; 1 figure without a claim"),
    ],
)
def test_the_last_line_counts(words, line):
    """Every figure is counted once, under its own verdict; those against the paper are named."""
    assert _summary(finished(*words)) == f"{line}. Files are in out/ra17"


@pytest.mark.parametrize("words", [["nobody"], ["ra17", "99"]])
def test_unknown_names_are_bad_use(tmp_path, words):
    """Exit code 2, and a message that lists what there is."""
    done = runner.invoke(app, ["reproduce", *words, "--out", str(tmp_path), "--json"])
    assert done.exit_code == 2
    told = json.loads(done.stdout)["error"]
    assert told["type"] == "NotFound"
    assert "figure-2" in told["message"] or "dbb20" in told["message"]
    assert not list(tmp_path.iterdir())


def test_a_stopped_run_says_how_to_go_on(tmp_path, monkeypatch):
    """Ctrl-C ends with 130 and keeps what is finished."""
    from hushed.papers.dbb20 import budget

    real, calls = budget.BUDGET.measure, []

    def stopping(settings, point, effort):
        calls.append(point)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(settings, point, effort)

    object.__setattr__(budget.BUDGET, "measure", stopping)
    try:
        command = ["reproduce", "dbb20", "8", "--out", str(tmp_path)]
        first = runner.invoke(app, command)
        assert first.exit_code == 130
        assert "run the same command again" in first.stderr
        second = runner.invoke(app, command)
        assert second.exit_code == 0
        assert "1 of 3 points were kept" in second.stderr
        assert len(calls) == 4
    finally:
        object.__setattr__(budget.BUDGET, "measure", real)
