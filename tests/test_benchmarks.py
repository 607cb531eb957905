"""The comparison with other libraries: what it writes, and that a broken peer stops nothing."""

import importlib
import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def peers(monkeypatch):
    """Give the modules of the comparison; they stand beside the package, not in it."""
    monkeypatch.syspath_prepend(str(ROOT))
    names = ("cases", "table", "__main__", "with_hushed")
    return {name: importlib.import_module(f"benchmarks.peers.{name}") for name in names}


def script(folder, name, text):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


class TestBrokenPeers:
    def test_each_way_to_break_is_told(self, peers, tmp_path, monkeypatch):
        """A crash, an answer that is none, silence, and a missing interpreter give a reason."""
        main = peers["__main__"]
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
        main = peers["__main__"]
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
        outcome = peers["__main__"].Outcome
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
