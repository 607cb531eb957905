"""A run that was interrupted goes on where it stopped, and finds what it would have found."""

import pickle
import shutil

import numpy as np
import pytest

import hushed as hs

UNIT = hs.populations.Uniform(low=0, high=1)
PAIRS = 200


def make_function(log, fails_at=None, wrong=KeyboardInterrupt):
    """Mean that notes each call in a file, and fails at one of them."""
    log = str(log)

    def mean(rows):
        with open(log, "ab") as file:
            file.write(b".")
            if fails_at is not None and file.tell() == fails_at:
                raise wrong
        return rows.mean()

    return mean


def means(tables):
    return tables.mean(axis=1)


def count_calls(log):
    """Calls since the last time that they were counted."""
    calls = log.stat().st_size if log.exists() else 0
    log.unlink(missing_ok=True)
    return calls


def sample(f, keep=None, pairs=PAIRS, **named):
    return hs.sample_sensitivity(
        f, UNIT, **{"rows": 5, "pairs": pairs, "workers": 1, "keep": keep} | named
    )


def draws(sensitivity):
    return sensitivity.sampling.draws.tobytes()


@pytest.fixture
def log(tmp_path):
    return tmp_path / "calls"


@pytest.fixture
def kept(tmp_path):
    return tmp_path / "kept"


@pytest.fixture(params=[KeyboardInterrupt, ZeroDivisionError])
def stopped(request, tmp_path, kept, log):
    """Give a folder in which an interrupted run was kept.

    It stops as the function itself reads a file that makes it stop, which then is no more.
    """
    trap = tmp_path / "trap"
    trap.touch()

    def mean(rows, trap=str(trap), log=str(log), wrong=request.param):
        with open(log, "ab") as file:
            file.write(b".")
            try:
                with open(trap):
                    if file.tell() == 300:
                        raise wrong
            except FileNotFoundError:
                pass
        return rows.mean()

    with pytest.raises((KeyboardInterrupt, hs.errors.BadFunction)) as raised:
        sample(mean, kept)
    trap.unlink()
    count_calls(log)
    return mean, raised.value


def test_an_interrupted_run_goes_on(stopped, kept, log):
    """Every movement is that of a run in one go, and what was kept is not asked again."""
    f, error = stopped
    expected = draws(sample(f))
    alone = count_calls(log)
    (run,) = hs.runs.list_runs(kept)
    assert 0 < run.kept < run.trials == PAIRS
    assert any(f"{run.kept} of 200 trials are kept in {kept}" in note for note in error.__notes__)
    assert draws(sample(f, kept)) == expected
    assert count_calls(log) <= alone - 2 * run.kept + 4  # two trials are tried again
    (run,) = hs.runs.list_runs(kept)
    assert run.done


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("fewer", [150, 200])
def test_a_longer_run_uses_a_shorter_one(kept, log, batch, fewer):
    """More pairs cost only those that are new; fewer cost none but what is tried."""
    f = make_function(log)
    if batch:

        def f(tables, log=str(log)):
            with open(log, "ab") as file:
                file.write(b"." * len(tables))
            return tables.mean(axis=1)

    rows, more = (500, 650) if batch else (5, 400)
    fewer = 520 if batch else fewer  # four blocks of 130 tables
    sample(f, kept, fewer, rows=rows, batch=batch)
    count_calls(log)
    expected = draws(sample(f, None, more, rows=rows, batch=batch))
    alone = count_calls(log)
    assert draws(sample(f, kept, more, rows=rows, batch=batch)) == expected
    assert count_calls(log) <= alone - fewer
    assert draws(sample(f, kept, fewer, rows=rows, batch=batch)) == draws(
        sample(f, None, fewer, rows=rows, batch=batch)
    )
    assert len(hs.runs.list_runs(kept)) == 1


def test_disjoint_parts_of_a_public_table_go_on(kept):
    """The rows of a trial are those of the longer run, whatever was dealt for the shorter one."""
    public = hs.populations.PublicTable(np.random.default_rng(1).random(400))
    for pairs in (30, 60):
        found = hs.sample_sensitivity(np.mean, public, rows=5, pairs=pairs, keep=kept)
        alone = hs.sample_sensitivity(np.mean, public, rows=5, pairs=pairs)
        assert draws(found) == draws(alone)
    (run,) = hs.runs.list_runs(kept)
    assert run.kept == 60


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("promise", ["population", "given-the-rest", "table"])
def test_public_tables_are_never_mixed_up(kept, promise, batch):
    """Runs of several lengths, kept in one folder, find what each of them finds alone."""
    public = hs.populations.PublicTable(np.random.default_rng(1).random(900), promise=promise)
    f = (lambda tables: tables.mean(axis=1)) if batch else np.mean
    for pairs in (59, 100, 80):
        named = {"rows": 5, "pairs": pairs, "batch": batch}
        found = hs.sample_sensitivity(f, public, keep=kept, **named)
        assert draws(found) == draws(hs.sample_sensitivity(f, public, **named))


def test_the_last_block_of_a_public_table_is_not_taken_for_a_longer_run(kept):
    """Behind its last pair a block has rows of the first ones, where a longer run has its own."""
    public = hs.populations.PublicTable(np.random.default_rng(1).random(501 * 200))
    for pairs in (150, 200):  # in blocks of 130
        named = {"rows": 500, "pairs": pairs, "batch": True}
        found = hs.sample_sensitivity(means, public, keep=kept, **named)
        assert draws(found) == draws(hs.sample_sensitivity(means, public, **named))


def test_worker_processes_go_on_as_one_process(kept, log):
    """What one process kept, two use, and the other way round."""
    f = make_function(log)
    sample(f, kept, 100)
    found = draws(sample(f, kept, 300, workers=2))
    count_calls(log)
    assert found == draws(sample(f, None, 300))
    count_calls(log)
    assert found == draws(sample(f, kept, 300))
    assert count_calls(log) < 100


def test_two_runs_at_once_share_a_folder(kept, log):
    """Each writes a file of its own; a third finds all of them, and nothing twice."""
    f = make_function(log)
    sample(f, kept, 100)
    (first,) = kept.glob("*/*/*.part")
    aside = kept.parent / first.name
    first.rename(aside)
    sample(f, kept, 150)  # as if it had begun before the first had written anything
    shutil.move(aside, first)
    (run,) = hs.runs.list_runs(kept)
    assert run.kept == 150
    assert len(list(kept.glob("*/*/*.part"))) == 2
    assert draws(sample(f, kept, 200)) == draws(sample(f, None, 200))


def test_a_torn_tail_is_run_again(kept, log):
    """Half a record at the end of a file costs its trials, and nothing else."""
    f = make_function(log)
    expected = draws(sample(f, kept))
    (part,) = kept.glob("*/*/*.part")
    part.write_bytes(part.read_bytes()[:-7])
    (run,) = hs.runs.list_runs(kept)
    assert run.kept < PAIRS
    assert run.unreadable > 0
    assert draws(sample(f, kept)) == expected


@pytest.mark.slow
def test_a_function_with_a_cache_is_known_again(kept):
    """What a cache of `functools` holds is no part of the function."""
    from functools import lru_cache

    @lru_cache
    def weigh(place):
        return 1 / (1 + place)

    def weighted(rows):
        return sum(weigh(i) * x for i, x in enumerate(rows)) / len(rows)

    sample(weighted, kept, 100)
    assert draws(sample(weighted, kept, 200)) == draws(sample(weighted, None, 200))
    assert len(hs.runs.list_runs(kept)) == 1


def test_a_verification_runs_what_the_sampling_kept(kept, log):
    """It goes on with its own trials only: those that it is to verify are no evidence."""
    f = make_function(log)
    s = sample(f, kept)
    released = hs.release(f, np.linspace(0, 1, 5), hs.Laplace(s, epsilon=1.0))
    count_calls(log)
    assert hs.verify(released.certificate, f, workers=1, keep=kept).reproduced
    assert count_calls(log) > 2 * PAIRS
    assert hs.verify(released.certificate, f, workers=1, keep=kept).reproduced
    assert count_calls(log) < PAIRS
    assert len(hs.runs.list_runs(kept)) == 2


def test_the_place_of_a_run_survives_pickling():
    """A `Keep` can be sent anywhere."""
    keep = hs.runs.Keep("here", private=True)
    assert pickle.loads(pickle.dumps(keep)) == keep
