"""``python -m papers``: output, files, exit codes, and the numbers of the papers."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import hushed
import papers
from hushed.errors import NotFound
from papers import Reproduction, Verdict
from papers.__main__ import main, summary
from papers.dbb20 import budget

RUN = "from papers.__main__ import main; sys.exit(main())"
ROOT = Path(__file__).resolve().parents[2]


def process(code, *arguments, folder):
    """The command in a process of its own, which runs some code first."""
    path = os.pathsep.join((str(Path(hushed.__file__).parents[1]), str(ROOT)))
    return subprocess.run(
        [sys.executable, "-c", f"{code}\n{RUN}", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )


@pytest.mark.slow
def test_one_figure_as_text(tmp_path, capsys):
    """The verdict is printed, progress goes to standard error, the files are there."""
    assert main(["dbb20", "8", "--quick", "--out", str(tmp_path)]) == 0
    done = capsys.readouterr()
    assert "Verdict: agrees." in done.out
    assert "37,805.86 at ε = 0.274115" in done.out
    assert "point 3 of 3" in done.err
    assert "point 3 of 3" not in done.out
    folder = tmp_path / "dbb20-quick"
    assert (folder / "figure-8.svg").is_file()
    last = done.out.splitlines()[-1]
    assert last == f"1 verdict: 1 agrees, 0 do not. Files are in {folder}"


@pytest.mark.slow
def test_one_figure_as_json_twice(tmp_path, capsys):
    """One JSON object with the verdict; the second time the figure is reused."""
    for reused in (False, True):
        assert main(["dbb20", "illustration", "--out", str(tmp_path), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        (figure,) = found["figures"]
        assert (figure["paper"], found["quick"]) == ("dbb20", False)
        assert figure["figure"] == "illustration"
        assert figure["verdict"]["agrees"] is True
        assert figure["reused"] is reused
        assert all(Path(file).is_file() for file in figure["files"])
        assert len(figure["files"]) == 4
        assert found["summary"] == {"agrees": 1, "disagrees": 0, "no claim": 0}


@pytest.mark.slow
def test_a_disagreeing_figure_is_still_done(tmp_path, capsys):
    """A verdict against the paper is a result, not a failure: exit code 0."""
    assert main(["dbb20", "11", "--out", str(tmp_path), "--json"]) == 0
    figure = json.loads(capsys.readouterr().out)["figures"][0]
    assert figure["verdict"]["word"] == "disagrees"


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
    assert summary(finished(*words)) == f"{line}. Files are in out/ra17"


@pytest.mark.parametrize("words", [["nobody"], ["ra17", "99"], ["theorem", "15"]])
@pytest.mark.parametrize("option", ["--json", "--list"])
def test_unknown_names_are_bad_use(tmp_path, capsys, words, option):
    """Exit code 2, and a message that lists what there is; nothing is run."""
    assert main([*words, "--out", str(tmp_path), option]) == 2
    done = capsys.readouterr()
    assert "figure-2" in done.err or "dbb20" in done.err
    if option == "--json":
        error = json.loads(done.out)["error"]
        assert error["type"] == "NotFound"
        assert error["message"] in done.err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_stopped_run_says_how_to_go_on(tmp_path, capsys):
    """Ctrl-C ends with 130 and keeps what is finished."""
    real, calls = budget.BUDGET.measure, []

    def stopping(settings, point, effort):
        calls.append(point)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(settings, point, effort)

    object.__setattr__(budget.BUDGET, "measure", stopping)
    try:
        command = ["dbb20", "8", "--out", str(tmp_path)]
        assert main(command) == 130
        assert "run the same command again" in capsys.readouterr().err
        assert main(command) == 0
        assert "1 of 3 points were kept" in capsys.readouterr().err
        assert len(calls) == 4
    finally:
        object.__setattr__(budget.BUDGET, "measure", real)


@pytest.mark.parametrize(
    ("paper", "name", "figures"),
    [
        ("ra17", "figure 5", ["figure-5"]),
        ("ra17", "Fig. 5", ["figure-5"]),
        ("ra17", "5", ["figure-5"]),
        ("ra17", "table 1", ["table-1"]),
        ("ra17", "algorithm 1", ["figure-1", "figure-4", "figure-5", "figure-9"]),
        ("ra17", "Algorithm 2", ["figure-6", "figure-7"]),
        ("ra17", "theorem 15", ["table-1", "figure-1", "figure-3"]),
        ("ra17", "corollary 22", ["table-1"]),
        ("dbb20", "theorem 3.1", ["figure-9", "figure-10", "figure-11"]),
        ("dbb20", "figure 12", ["figure-9", "figure-10", "figure-11"]),
        ("ra17", "8", ["figure-8"]),
        ("ra17", "footnote 2", ["figure-8"]),
        ("dbb20", "3", ["figure-1", "figure-2"]),
        ("dbb20", "7", ["figure-5", "figure-6"]),
        ("dbb20", "1", ["figure-1"]),
        ("lo19", "algorithm 2", ["unknown-n", "unknown-s"]),
    ],
)
def test_the_numbers_of_the_paper_are_names(paper, name, figures):
    """A figure, table, algorithm or theorem is found under its number, however it is spelt."""
    assert [each.figure for each in papers.find_all(paper, name)] == figures


def test_the_list_names_everything_and_runs_nothing(tmp_path, capsys, monkeypatch):
    """Each figure of each paper stands in the list, with what it is about."""
    monkeypatch.chdir(tmp_path)
    assert main(["--list"]) == 0
    shown = capsys.readouterr().out
    for paper in papers.PAPERS:
        for each in papers.experiments(paper):
            assert f"  {each.figure} " in shown
            assert each.title in shown
            assert ", ".join(each.runs) in shown
    assert main(["ra17", "algorithm", "2", "--list"]) == 0
    shown = capsys.readouterr().out
    assert "figure-6" in shown
    assert "figure-5" not in shown
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_several_figures_are_run_under_one_number(tmp_path, capsys):
    """The number of a theorem runs every figure that is about it."""
    assert main(["dbb20", "lemma", "5.2.1", "--out", str(tmp_path)]) == 0
    assert "1 verdict" in capsys.readouterr().out
    assert main(["dbb20", "section 5.3", "--out", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["figures"]
    assert [(each["figure"], each["reused"]) for each in found] == [
        ("figure-8", True),
        ("illustration", False),
    ]


@pytest.mark.parametrize(
    ("paper", "package"), [("ra17", "sklearn"), ("dbb20", "statsmodels"), ("lo19", "altair")]
)
@pytest.mark.slow
def test_a_missing_package_is_named_with_what_to_install(tmp_path, paper, package):
    """Exit code 2 before anything is run or written, and the group to install."""
    missing = f"import sys; sys.modules[{package!r}] = None"
    done = process(missing, paper, "--quick", folder=tmp_path)
    assert done.returncode == 2, done.stderr
    assert package in done.stderr
    assert "--group papers" in done.stderr
    assert not list(tmp_path.iterdir())


def test_the_papers_are_not_installed_with_the_library():
    """Neither the package nor its command can see them."""
    assert not (Path(hushed.__file__).parent / "papers").exists()
    with pytest.raises(ModuleNotFoundError):
        __import__("hushed.papers")
    from hushed.cli import COMMANDS

    assert "reproduce" not in COMMANDS


def test_a_ledger_is_never_written_over(tmp_path):
    """A ledger that has the name of a result file stays as it is."""
    folder = tmp_path / "dbb20"
    folder.mkdir()
    with hushed.Ledger(f"sqlite:///{folder}/figure-8.csv") as ledger:
        ledger.open_budget("b", hushed.Guarantee(epsilon=1.0))
    before = (folder / "figure-8.csv").read_bytes()
    assert main(["dbb20", "8", "--out", str(tmp_path)]) == 2
    assert (folder / "figure-8.csv").read_bytes() == before


def test_unknown_papers_are_refused():
    """The error names the papers that there are."""
    with pytest.raises(NotFound, match="ra17, dbb20, lo19"):
        papers.experiments("xx99")
