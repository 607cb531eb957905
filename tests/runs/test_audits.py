"""An audit that was interrupted goes on, and says what it would have said."""

import dataclasses
import random

import numpy as np
import pytest
from scipy import stats

import hushed as hs
from hushed.auditing import Command

CLAIM = hs.Guarantee(epsilon=1.0)
PAIR = [([1.0] * 4, [0.0] + [1.0] * 3)]


def make_mechanism(log, scale=1.0):
    """Noisy sum that notes each call in a file, and stops the program while a file is there."""
    log, trap = str(log), f"{log}-trap"

    def noisy_sum(rows, rng, size):
        with open(log, "ab") as file:
            file.write(b".")
            try:
                with open(trap) as stop:
                    if file.tell() == int(stop.read()):
                        raise KeyboardInterrupt
            except FileNotFoundError:
                pass
        return np.sum(rows) + rng.laplace(scale=scale, size=size)

    return noisy_sum


def judge(mechanism, keep=None, **named):
    named = {"claim": CLAIM, "samples": 20_000, "workers": 1, "batch": True} | named
    report = hs.audit(mechanism, PAIR, keep=keep, **named)
    return dataclasses.replace(report, seconds=0.0).to_dict()


@pytest.fixture
def log(tmp_path):
    return tmp_path / "calls"


@pytest.mark.parametrize("sequential", [False, True])
def test_an_interrupted_audit_goes_on(tmp_path, log, sequential):
    """The report is the same, and the runs that were kept are not made again."""
    f, kept, named = make_mechanism(log), tmp_path / "kept", {"sequential": sequential}
    named["samples"] = 60_000 if sequential else 20_000
    expected = judge(f, **named)
    alone = log.stat().st_size
    (tmp_path / "calls-trap").write_text(str(2 * alone))
    with pytest.raises(KeyboardInterrupt) as stopped:
        judge(f, kept, **named)
    (tmp_path / "calls-trap").unlink()
    assert any("trials are kept in" in note for note in stopped.value.__notes__)
    log.unlink()
    told = []
    assert judge(f, kept, progress=told.append, **named) == expected
    assert log.stat().st_size < alone
    assert any("resuming" in words for words in told)
    assert all("audit of " in run.name for run in hs.runs.list_runs(kept))


def test_an_estimate_goes_on(tmp_path, log):
    """The second call draws the first runs alone, by which it knows how outputs look."""
    f, kept = make_mechanism(log), tmp_path / "kept"
    named = {"samples": 5000, "workers": 1, "batch": True}
    alone = hs.estimate_privacy(f, PAIR[0], 1.0, **named)
    calls = log.stat().st_size
    found = [hs.estimate_privacy(f, PAIR[0], 1.0, keep=kept, **named) for _ in range(2)]
    assert [float(each.delta) for each in found] == [float(alone.delta)] * 2
    assert log.stat().st_size < 3 * calls


@pytest.mark.slow
def test_another_mechanism_uses_nothing(tmp_path, log):
    """Scale, claim aside, seed, pairs and number of runs are part of what is kept."""
    kept = tmp_path / "kept"
    for scale, named in (
        (1.0, {}),
        (3.0, {}),
        (1.0, {"seed": 1}),
        (1.0, {"samples": 24_000}),
        (1.0, {"batch": False, "samples": 2000}),
    ):
        f = make_mechanism(log, scale)
        if "batch" in named:

            def f(rows, rng, scale=scale):
                return sum(rows) + rng.laplace(scale=scale)

        assert judge(f, kept, **named) == judge(f, **named)


OWN = np.random.default_rng(0)


@pytest.mark.parametrize(
    "seeded",
    [
        lambda rows, rng: sum(rows) + OWN.laplace(),
        lambda rows, rng: sum(rows) + np.random.laplace(),
        lambda rows, rng: sum(rows) + random.gauss(0, 1),
        lambda rows, rng: sum(rows) + stats.laplace.rvs(),
    ],
)
def test_a_generator_that_a_second_run_would_repeat_is_refused(tmp_path, seeded):
    """Seeded by the program, it would draw the numbers again that are kept."""
    with pytest.raises(hs.errors.BadFunction, match="generator") as refused:
        judge(seeded, tmp_path / "kept", batch=False, samples=2000)
    assert refused.value.parameter == "keep"
    assert hs.runs.list_runs(tmp_path / "kept") == []


def test_a_program_is_not_kept(tmp_path):
    """Nobody sees whether it is still the same one."""
    with pytest.raises(hs.errors.ParameterError, match="runs of a program cannot be kept"):
        judge(Command(["cat"]), tmp_path / "kept", batch=False)


def test_a_claim_about_private_data_asks_for_a_private_folder(tmp_path, log):
    """As for a sampling: the word, and a folder for one reader."""
    claim = hs.Guarantee(epsilon=1.0, data_dependent=True)
    with pytest.raises(hs.errors.ParameterError, match="private=True"):
        judge(make_mechanism(log), tmp_path / "kept", claim=claim)
    assert not (tmp_path / "kept").exists()
    assert not log.exists()
