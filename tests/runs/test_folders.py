"""Where runs are kept: who may write there, what is found there, and what a full disk does."""

import os
import resource
import stat
import warnings

import numpy as np
import pytest

import hushed as hs
from hushed.runs._records import read_records, write_record

UNIT = hs.populations.Uniform(low=0, high=1)
POSIX = pytest.mark.skipif(os.name != "posix", reason="who may write is said otherwise there")
ROOT = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid(), reason="needs root")


def sample(keep, f=np.mean, pairs=100, **named):
    return hs.sample_sensitivity(f, UNIT, rows=5, pairs=pairs, workers=1, keep=keep, **named)


def draws(sensitivity):
    return sensitivity.sampling.draws.tobytes()


def never(rows):
    raise AssertionError("a function was asked")


@pytest.fixture
def kept(tmp_path):
    return tmp_path / "kept"


@pytest.fixture
def part(kept):
    """Give the one file of a finished run."""
    sample(kept)
    (found,) = kept.glob("*/*/*.part")
    return found


def beside(part, first, values):
    """Write a record into a file of another writer."""
    part.with_name("another.part").write_bytes(write_record(first, np.array(values)))


@POSIX
def test_nobody_else_may_read_what_is_kept(kept):
    """Folders are made for their owner alone, and so are files, whatever the umask is."""
    before = os.umask(0)
    try:
        sample(kept)
    finally:
        os.umask(before)
    for each in (kept, *kept.rglob("*")):
        expected = 0o700 if each.is_dir() else 0o600
        assert stat.S_IMODE(each.stat().st_mode) == expected, each


@POSIX
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
@pytest.mark.parametrize("below", [False, True])
def test_a_folder_in_which_others_may_write_is_refused(kept, part, mode, below):
    """A forged movement would make a wrong sensitivity, so nothing is read there."""
    (part.parent if below else kept).chmod(mode)
    with pytest.raises(hs.errors.ParameterError, match="others may write") as refused:
        sample(kept, np.mean if below else never)
    assert refused.value.parameter == "keep"


@POSIX
@ROOT
def test_a_folder_of_somebody_else_is_refused(kept):
    """Its owner could write into it."""
    kept.mkdir(mode=0o700)
    os.chown(kept, 12345, 12345)
    with pytest.raises(hs.errors.ParameterError, match="belongs to somebody else"):
        sample(kept, never)


@POSIX
def test_what_is_private_is_kept_only_if_asked_and_for_one_reader(kept):
    """Movements of a population made from private rows need both: the word, and the folder."""
    named = {"data_dependent": True}
    with pytest.raises(hs.errors.ParameterError, match="private=True"):
        sample(kept, never, **named)
    assert not kept.exists()
    kept.mkdir(mode=0o755)
    asked = hs.runs.Keep(kept, private=True)
    with pytest.raises(hs.errors.ParameterError, match="others may read"):
        sample(asked, never, **named)
    kept.chmod(0o700)
    assert draws(sample(asked, **named)) == draws(sample(None, **named))
    (run,) = hs.runs.list_runs(kept)
    assert run.done


@pytest.mark.parametrize("keep", ["", "  ", 7, True, ["kept"]])
def test_what_is_no_place_is_refused(keep):
    """A folder is named by a text or a path."""
    with pytest.raises(hs.errors.ParameterError, match="keep must be a folder"):
        sample(keep, never)


def test_a_place_that_cannot_be_written_is_refused_before_anything_runs(tmp_path):
    """A file where the folder should be, or a folder in which nothing can be made."""
    file = tmp_path / "file"
    file.touch()
    for place in (file, file / "kept", "/proc/kept"):
        with pytest.raises(hs.errors.ParameterError, match="is no folder"):
            sample(place, never)


def test_results_that_contradict_each_other_are_refused(kept, part):
    """The message names the trial and both files, and says what to do."""
    beside(part, 41, [[0.25, 0.5]])
    with pytest.raises(hs.errors.DamagedRun, match="different results for trial 41") as refused:
        sample(kept)
    assert part.name in str(refused.value)
    assert "another.part" in str(refused.value)
    assert "hushed runs remove" in str(refused.value)
    (run,) = hs.runs.list_runs(kept)
    assert hs.runs.remove_runs(kept, [run.key[:8]]) == [run.key]
    assert draws(sample(kept)) == draws(sample(None))


@pytest.mark.parametrize("value", [float("nan"), -1e-300, -float("inf")])
def test_a_movement_that_cannot_be_is_refused(kept, part, value):
    """No movement is negative or undefined, whoever wrote it."""
    beside(part, 500, [[value, 1.0]])
    with pytest.raises(hs.errors.DamagedRun, match="no trial can have, in trials 500 to 500"):
        sample(kept)


def test_results_of_another_shape_are_refused(kept, part):
    """A trial has two numbers: how far the function moved, and how large its answers were."""
    beside(part, 500, [[0.1, 0.2, 0.3]])
    with pytest.raises(hs.errors.DamagedRun, match="another shape"):
        sample(kept)


def test_a_forged_first_or_last_trial_is_found(kept, part):
    """The function is asked about both again, and must give what is kept."""
    true = np.concatenate([each.values for each in read_records(part.read_bytes(), "")[0]])
    for trial in (0, 99):
        values = true.copy()
        values[trial] = values[trial] / 2
        part.write_bytes(write_record(0, values))
        with pytest.raises(hs.errors.DamagedRun, match=f"no longer gives .* trial {trial}:"):
            sample(kept)


def test_a_function_that_reads_something_else_by_now_is_found(kept, tmp_path):
    """A file that it reads is not seen by looking at the function, but by asking it."""
    weight = tmp_path / "weight"
    weight.write_text("1")

    def weighted(rows, weight=str(weight)):
        with open(weight) as file:
            return float(file.read()) * rows.mean()

    sample(kept, weighted, 50)
    weight.write_text("2")
    with pytest.raises(hs.errors.DamagedRun, match="no longer gives"):
        sample(kept, weighted)


@POSIX
def test_a_link_is_not_followed(kept, part, tmp_path):
    """It may lead to what somebody else can write."""
    part.rename(tmp_path / "elsewhere")
    part.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(hs.errors.DamagedRun, match="is a link"):
        sample(kept)


def test_what_a_run_says_of_itself_may_be_lost(kept, part):
    """The facts are for those who read them: the name of the folder decides."""
    for text in ("", "{", "[" * 100_000, '{"trials": "many"}'):
        (part.parent / "run.json").write_text(text)
        assert hs.runs.list_runs(kept)[0].name == "?"
        assert draws(sample(kept, pairs=100)) == draws(sample(None))
        (part.parent / "run.json").unlink()
        assert hs.runs.list_runs(kept) == []
        sample(kept, pairs=101)
        (run,) = hs.runs.list_runs(kept)
        assert (run.name, run.kept, run.trials) == ("sensitivity of mean", 101, 101)
        for each in kept.glob("*/*/*.part"):
            each.unlink()
        sample(kept)


@POSIX
def test_a_full_disk_ends_the_keeping_and_not_the_run(kept):
    """A warning says so once; what fitted is kept, and half a record does no harm."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    sample(kept, pairs=50)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, limit[1]))
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = sample(kept, pairs=1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert draws(found) == draws(sample(None, pairs=1000))
    (words,) = [str(each.message) for each in told]
    assert "took no more of it" in words
    assert "the run goes on" in words
    (run,) = hs.runs.list_runs(kept)
    assert 50 <= run.kept < run.trials == 1000
    assert draws(sample(kept, pairs=1000)) == draws(found)
    assert hs.runs.list_runs(kept)[0].done


def test_a_run_that_is_not_there_is_not_removed(kept, part):
    """A key that names none, or is too short to be meant, removes nothing."""
    (run,) = hs.runs.list_runs(kept)
    for wrong in ("0" * 64, run.key[:7], "", "../.."):
        with pytest.raises(hs.errors.NotFound, match="names no run"):
            hs.runs.remove_runs(kept, [run.key, wrong])
    assert len(hs.runs.list_runs(kept)) == 1
    assert hs.runs.remove_runs(kept) == [run.key]
    assert list(kept.iterdir()) == []


def test_a_finished_run_opens_no_file(kept, part):
    """Where everything is kept, nothing is written."""
    before = sorted(kept.rglob("*"))
    sample(kept)
    assert sorted(kept.rglob("*")) == before


@pytest.mark.parametrize("place", ["my/myproject", "ab/zzz", f"xy/{'0' * 64}"])
def test_what_is_no_run_is_neither_listed_nor_removed(kept, part, place):
    """Folders of other programs are left alone, though they hold a run.json, too."""
    other = kept / place
    other.mkdir(parents=True)
    (other / "run.json").write_text("{}")
    assert [each.key for each in hs.runs.list_runs(kept)] == [part.parent.name]
    assert hs.runs.remove_runs(kept) == [part.parent.name]
    assert (other / "run.json").exists()


@pytest.mark.parametrize(
    "told", ['"trials": 1e999, "name": "x"', '"trials": -1, "name": "\\u001b[31m\\n"']
)
def test_a_list_survives_what_a_stranger_wrote(kept, part, told):
    """A run that says what cannot be of itself is listed, in letters that steer no terminal."""
    part.with_name("run.json").write_text(f'{{{told}, "begun": "", "facts": {{}}}}')
    (found,) = hs.runs.list_runs(kept)
    assert (found.key, found.trials, found.kept) == (part.parent.name, 0, 100)
    assert found.name.isprintable()


@POSIX
def test_a_pipe_is_no_file_of_a_run(kept, part):
    """Reading does not wait for whoever might write into a pipe."""
    os.mkfifo(part.with_name("another.part"), 0o600)
    with pytest.raises(hs.errors.DamagedRun, match="no plain file"):
        sample(kept)
    with pytest.raises(hs.errors.DamagedRun, match="no plain file"):
        hs.runs.list_runs(kept)
