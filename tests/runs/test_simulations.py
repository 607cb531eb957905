"""Simulations are kept as samplings are, and their tables can be shared out among workers."""

import threading

import numpy as np
import pytest

import hushed as hs

PEOPLE = hs.populations.Normal(mean=5.0, std=2.0)
MADE = hs.Blocks(np.linspace(0, 10, 101), epsilon=2.0)
MEDIAN = hs.statistics.median(rows=60, low=0, high=10)


def kept(folder):
    return {run.name: run.kept for run in hs.runs.list_runs(folder)}


class Asked:
    """A function that counts in a file how often it was asked, whichever process asks."""

    def __init__(self, file):
        self.file = str(file)

    def __call__(self, rows):
        with open(self.file, "a") as file:
            file.write(".")
        return float(np.mean(rows))


def count(file):
    """Calls since the last count."""
    found = len(file.read_text())
    file.write_text("")
    return found


def test_a_simulation_of_blocks_goes_on(tmp_path):
    """More tables of the same run cost the new ones alone, and the first and last kept, again."""
    file, folder = tmp_path / "calls", tmp_path / "kept"
    f, settings = Asked(file), {"isolated": False}
    whole = MADE.simulate(f, PEOPLE, 40, trials=6, **settings)
    a_table = count(file) // 6
    first = MADE.simulate(f, PEOPLE, 40, trials=4, keep=folder, **settings)
    count(file)
    assert MADE.simulate(f, PEOPLE, 40, trials=6, keep=folder, **settings) == whole
    assert count(file) == 4 * a_table
    assert list(kept(folder).values()) == [6]
    assert MADE.simulate(f, PEOPLE, 40, trials=4, keep=folder, **settings) == first
    MADE.simulate(f, PEOPLE, 40, trials=4, seed=1, keep=folder, **settings)
    assert sorted(run.kept for run in hs.runs.list_runs(folder)) == [4, 6]


@pytest.mark.slow
def test_tables_are_shared_out_among_processes(tmp_path):
    """Workers of this machine, each with processes of its own for the calls: the same record."""

    def side(rows):
        if len(rows) < 20 and rows[0] > 5:
            raise ValueError
        return "above" if np.median(rows) > 5 else "below"

    vote = hs.Blocks(["above", "below"], aggregate="votes", epsilon=5.0, beta=0.2)
    here = vote.simulate(side, PEOPLE, 20, trials=3)
    assert vote.blocks < 10
    assert 0 < here.failed < 1
    for _ in range(2):
        found = vote.simulate(side, PEOPLE, 20, trials=3, workers=2, keep=tmp_path)
        assert found == here


@pytest.mark.slow
def test_a_comparison_goes_on(tmp_path):
    """All routes of a statistic, and of a function, find what they find alone; twice."""

    def spread(rows):
        return rows.max() - rows.mean()

    for asked, more in ((MEDIAN, {"delta": 1e-6}), (spread, {"rows": 60, "low": 0, "high": 10})):
        alone = hs.compare(asked, PEOPLE, trials=4, gamma=0.4, **more)
        for _ in range(2):
            found = hs.compare(asked, PEOPLE, trials=4, gamma=0.4, keep=tmp_path, **more)
            assert str(found) == str(alone)
    names = kept(tmp_path)
    assert any("comparison of quantile" in name for name in names)
    assert any(name.startswith("sensitivity of") for name in names)


def test_a_comparison_that_was_kept_is_not_measured_again(tmp_path):
    """But for the first and the last table of each run."""
    file = tmp_path / "calls"
    f, asked = Asked(file), {"rows": 30, "trials": 40, "gamma": 0.3, "workers": 1}
    hs.compare(f, PEOPLE, keep=tmp_path / "kept", **asked)
    once = count(file)
    hs.compare(f, PEOPLE, keep=tmp_path / "kept", **asked)
    assert count(file) < once / 2


def test_what_a_function_reads_elsewhere_is_noticed(tmp_path):
    """A comparison goes on with other data in a file: the first trial tells."""
    data = tmp_path / "data"
    data.write_text("1")

    def scaled(rows):
        return float(np.mean(rows)) * float(data.read_text())

    asked = {"rows": 30, "trials": 10, "gamma": 0.3, "workers": 1, "keep": tmp_path / "kept"}
    hs.compare(scaled, PEOPLE, **asked)
    data.write_text("2")
    with pytest.raises(hs.errors.DamagedRun, match="no longer gives what is kept of trial 0"):
        hs.compare(scaled, PEOPLE, **asked)


def test_what_cannot_be_known_again_is_refused_as_such(tmp_path):
    """It is no reason to leave a route out."""
    lock = threading.Lock()

    def locked(rows):
        with lock:
            return rows.mean()

    with pytest.raises(hs.errors.ParameterError, match="lock nobody can tell"):
        hs.compare(locked, PEOPLE, rows=30, trials=10, keep=tmp_path)


@pytest.mark.slow
def test_a_test_of_a_declared_bound_goes_on(tmp_path):
    """Longer tests cost the new pairs, two that are kept, and the worst one again."""
    file, folder = tmp_path / "calls", tmp_path / "kept"
    f = Asked(file)
    table = hs.populations.PublicTable(np.random.default_rng(0).random(3000), name="known")
    for source in (PEOPLE, table):
        alone = hs.test_sensitivity(f, source, 5, bound=0.3, pairs=300)
        assert count(file) == 2 * 300 + 2
        hs.test_sensitivity(f, source, 5, bound=0.3, pairs=200, keep=folder)
        count(file)
        found = hs.test_sensitivity(f, source, 5, bound=0.3, pairs=300, keep=folder)
        assert found.to_dict() == alone.to_dict()
        assert count(file) == 2 * (100 + 2) + 2
