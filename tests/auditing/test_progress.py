"""What an audit says on its way."""

import sys

import numpy as np
import pytest

import hushed as hs
from hushed.auditing import audit

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
