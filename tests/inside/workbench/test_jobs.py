"""Jobs: commands in processes of their own, which outlive whoever started them."""

import json
import os
import signal
import time

import pytest

from hushed.errors import NotFound, ParameterError
from hushed.workbench._jobs import (
    KEPT,
    is_paid,
    list_jobs,
    new_job,
    read_job,
    start_job,
    stop_job,
    stop_public_jobs,
)

SLOW = """
import time
def mean(rows):
    time.sleep(0.05)
    return rows.mean()
def broken(rows):
    raise ValueError("no such rows")
"""


@pytest.fixture
def workspace(tmp_path):
    """A folder with a function that takes its time; what is left running is stopped."""
    (tmp_path / "slow.py").write_text(SLOW)
    yield tmp_path
    for each in list_jobs(tmp_path / "jobs"):
        stop_job(tmp_path / "jobs", each.job.id)


def sampling(function="mean", gamma="0.05"):
    """Words of a sampling that keeps its trials."""
    source = ["--population", "uniform:0,1", "--rows", "10", "--gamma", gamma]
    more = ["--workers", "1", "--keep", KEPT, "--json"]
    return ["sensitivity", f"./slow.py:{function}", *source, *more]


def wait(home, identity, until):
    """Wait until a job is as wanted; the test runner ends what never is."""
    while not until(read_job(home, identity)):
        time.sleep(0.05)
    return read_job(home, identity)


def over(state):
    return state.status != "running"


def has_kept(home, state):
    return any(p.stat().st_size for p in (home / state.job.id / "kept").rglob("*.part"))


@pytest.mark.slow
def test_a_killed_job_is_interrupted_and_goes_on_where_it_was(workspace):
    """What was kept is told, and the same job finds the same as one that was not killed."""
    home, job = workspace / "jobs", new_job("sensitivity", "d", sampling())
    assert start_job(home, workspace, job).status == "running"
    wait(home, job.id, lambda state: has_kept(home, state))
    os.killpg(json.loads((home / job.id / "process").read_text())["pid"], signal.SIGKILL)
    assert wait(home, job.id, over).status == "interrupted"
    start_job(home, workspace, job)
    again = wait(home, job.id, over)
    assert again.status == "done"
    other = new_job("sensitivity", "d", sampling())
    start_job(home, workspace, other)
    whole = wait(home, other.id, over)
    assert again.result["sensitivity"] == whole.result["sensitivity"]


@pytest.mark.slow
def test_a_job_is_stopped_and_says_what_is_kept(workspace):
    """It stops as by Ctrl-C; and it is not run twice at once under one id."""
    home, job = workspace / "jobs", new_job("sensitivity", "d", sampling(gamma="0.01"))
    start_job(home, workspace, job)
    wait(home, job.id, lambda state: has_kept(home, state))
    before = (home / job.id / "process").read_text()
    assert start_job(home, workspace, job).status == "running"
    assert (home / job.id / "process").read_text() == before
    stopped = stop_job(home, job.id)
    assert stopped.status == "stopped"
    assert "of 760 trials are kept" in stopped.problem


@pytest.mark.slow
def test_a_job_that_is_stopped_before_it_can_say_so_is_stopped(workspace):
    """Not interrupted; and it can be started again."""
    home, job = workspace / "jobs", new_job("sensitivity", "d", sampling(gamma="0.01"))
    start_job(home, workspace, job)
    assert stop_job(home, job.id).status == "stopped"
    assert start_job(home, workspace, job).status == "running"
    stop_job(home, job.id)


@pytest.mark.slow
def test_all_but_what_is_paid_for_is_stopped(workspace):
    """A server that ends takes public work with it; a release comes to its end."""
    home, public = workspace / "jobs", new_job("sensitivity", "d", sampling(gamma="0.01"))
    start_job(home, workspace, public)
    stop_public_jobs(home, "another draft")
    assert read_job(home, public.id).status == "running"
    stop_public_jobs(home)
    assert read_job(home, public.id).status == "stopped"
    assert is_paid(new_job("release", "d", ["release", "x.csv", "--ledger", "sqlite:///l.db"]))
    assert not is_paid(public)


@pytest.mark.slow
def test_a_failure_is_told_in_the_words_of_the_command(workspace):
    """The text of an error on public rows is told in full; a job that failed does not run again."""
    home, job = workspace / "jobs", new_job("sensitivity", "d", sampling("broken"))
    start_job(home, workspace, job)
    failed = wait(home, job.id, over)
    assert failed.status == "failed"
    assert "no such rows" in failed.problem
    assert start_job(home, workspace, job).status == "failed"
    assert [each.job.id for each in list_jobs(home, "d")] == [job.id]
    assert not list_jobs(home, "another draft")


@pytest.mark.slow
def test_jobs_of_one_second_are_listed_from_the_last_to_the_first(workspace):
    """A page shows the last job of a draft, also where the one before took no second."""
    home, jobs = workspace / "jobs", [new_job("trial", "d", ["--version"]) for _ in range(6)]
    for each in jobs:
        start_job(home, workspace, each)
    assert [each.job.id for each in list_jobs(home, "d")] == [each.id for each in reversed(jobs)]


def test_names_of_jobs_lead_nowhere_else(tmp_path):
    """Only 32 hexadecimal digits name a job."""
    for name in ("../x", "a" * 31, "A" * 32, ""):
        with pytest.raises(ParameterError):
            read_job(tmp_path, name)
    with pytest.raises(NotFound):
        read_job(tmp_path, "a" * 32)
