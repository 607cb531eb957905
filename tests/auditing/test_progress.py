"""What an audit says on its way."""

import json
import sys

import numpy as np
import pytest

import hushed as hs
from hushed.auditing import audit
from hushed.auditing._storage import read_report, write_report

PAIR = [([0], [1])]
HOW = {"claim": hs.Guarantee(epsilon=1.0), "samples": 1_000, "workers": 1, "bits": False}


def noisy(rows, rng):
    return round(rows[0] + rng.laplace())


class Terminal:
    """Standard error that says that it is a terminal."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass

    def isatty(self):
        return True


@pytest.mark.slow
def test_true_shows_it_in_a_terminal_and_nowhere_else(monkeypatch, capsys):
    """As for a sampling; a function is given the words."""
    heard = []
    audit(noisy, PAIR, progress=heard.append, **HOW)
    assert any("% of the runs made" in each for each in heard)
    audit(noisy, PAIR, progress=True, **HOW)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys, "stderr", Terminal())
    audit(noisy, PAIR, progress=True, **HOW)
    assert sys.stderr.text.count("% of the runs made") == len(heard)
    sys.stderr.text = ""
    audit(noisy, PAIR, progress=False, **HOW)
    assert sys.stderr.text == ""


@pytest.mark.parametrize("wrong", ["yes", 1, np.True_])
def test_what_takes_no_words_is_refused_before_the_first_run(wrong):
    """It failed in the middle of the audit, as what cannot be called."""
    with pytest.raises(hs.errors.ParameterError, match="progress must be True, False or a func"):
        audit(noisy, PAIR, progress=wrong, **HOW)


@pytest.mark.parametrize("batch", [False, True])
def test_runs_that_fail_are_told(batch):
    """They count as outcomes; but a wrapper that fails half of the time is a mistake."""

    def failing(rows, rng, size=None):
        if rng.random() < 0.5:
            raise ValueError("a secret")
        return noisy(rows, rng) if size is None else np.array([noisy(rows, rng)] * size)

    heard = []
    audit(failing, PAIR, batch=batch, progress=heard.append, **HOW)
    told = [each for each in heard if "ended in ValueError: a run that fails is an outcome" in each]
    assert len(told) == 1
    assert "secret" not in "".join(heard)
    heard.clear()
    audit(noisy, PAIR, progress=heard.append, **HOW)
    assert not any("ended in" in each for each in heard)


class TestRunsThatFailed:
    """They are counted, all of them: in the report, its record, and its certificate."""

    @staticmethod
    def count_failures(failed):
        """Make a mechanism that fails in three of ten runs, and says how often it did."""

        def failing(rows, rng):
            if rng.random() < 0.3:
                failed.append(1)
                raise ValueError("a secret")
            return noisy(rows, rng)

        return failing

    @pytest.mark.parametrize("sequential", [False, True])
    def test_the_report_counts_them(self, sequential):
        """As many as the mechanism itself has counted, but those of the first runs."""
        failed = []
        terms = HOW | {"samples": 2_000, "seed": 5, "claim": hs.Guarantee(epsilon=3.0)}
        report = audit(self.count_failures(failed), PAIR, sequential=sequential, **terms)
        tried = len(failed) - report.failed
        assert (
            0 < tried < 200
        )  # runs from which it learned what comes out, at most 32 and 3 times 64
        assert 0.99 < report.made / (2 * report.samples) <= 1  # whole chunks
        said = f"Failed runs. {report.failed:,} of {report.made:,} runs on both inputs"
        assert said in report.explain()
        assert report.to_dict()["failed"] == {"runs": report.made, "failed": report.failed}
        assert "secret" not in report.to_json()
        found = hs.certify(report)
        assert said.partition(". ")[2] in found.explain()
        assert hs.Statement.from_json(found.to_json()).subject.failed == report.failed

    def test_a_record_with_other_counts_is_refused(self):
        """More failures than runs, or runs than were asked for."""
        terms = HOW | {"claim": hs.Guarantee(epsilon=3.0)}
        report = audit(self.count_failures([]), PAIR, **terms)
        text = write_report(report)
        assert read_report(text).failed == report.failed > 0
        for wrong in ({"runs": 2_001, "failed": 5}, {"runs": 9, "failed": 10}, {"runs": 9}):
            record = json.dumps(json.loads(text) | {"failed": wrong})
            with pytest.raises(hs.errors.ParameterError):
                read_report(record)

    def test_nothing_is_said_where_none_failed(self):
        report = audit(noisy, PAIR, **HOW)
        assert "Failed" not in report.explain()
        assert (report.failed, report.made) == (0, 0)
        assert "failed" not in report.to_dict()
