"""While a query runs, the time that passes is shown where somebody looks, and nothing else."""

import sys

import pytest

import hushed as hs
from hushed._ground.progress import show_progress


class Closed:
    """A terminal that was closed."""

    def isatty(self):
        return True

    def write(self, text):
        raise BrokenPipeError

    flush = write


@pytest.fixture
def visits(tmp_path):
    """Ten rows in a file."""
    path = tmp_path / "visits.csv"
    path.write_text("cost\n" + "7\n" * 10)
    return hs.table(path, types={"cost": "float"}).sum("cost", low=0, high=10)


@pytest.mark.parametrize(("terminal", "asked"), [(True, True), (True, False), (False, True)])
def test_a_terminal_shows_how_long_the_database_has_been_at_work(
    visits, monkeypatch, capsys, terminal, asked
):
    """On standard error, where it was asked for; standard output stays as it is."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    visits.release(epsilon=1.0, progress=asked)
    shown = capsys.readouterr()
    assert ("duckdb answers" in shown.err) == ("0:00:0" in shown.err) == (terminal and asked)
    assert shown.out == ""


def test_the_limit_of_the_time_is_shown(visits, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    visits.release(epsilon=1.0, progress=True, timeout=30)
    assert "duckdb answers, for 30 s at most" in capsys.readouterr().err


@pytest.mark.parametrize("stream", [None, Closed()], ids=["none", "closed"])
def test_an_answer_that_is_paid_for_needs_no_terminal(visits, monkeypatch, ledger, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    answer = visits.release(epsilon=1.0, ledger=ledger, budget="b", progress=True)
    assert -200 < answer.values["sum_cost"][0] < 340  # 70, and a chance below 1e-11 each side
    assert len(ledger.log) == 1


def test_public_work_goes_on_when_nobody_reads_its_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Closed())
    with show_progress("public work", 3, shown=True) as advance:
        advance(3)
