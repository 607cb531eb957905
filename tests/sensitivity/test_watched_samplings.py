"""A sampling is watched from another place by what it keeps."""

import numpy as np
import pytest

import hushed as hs
from hushed.errors import ParameterError
from hushed.runs import list_runs
from hushed.sensitivity import read_movements

AGES = hs.populations.Uniform(low=0, high=100)


def sample(folder, **asked):
    return hs.sample_sensitivity(np.mean, AGES, rows=20, workers=1, keep=folder, **asked)


@pytest.mark.parametrize("pairs", [40, 300])
def test_all_movements_of_a_finished_sampling_are_read(tmp_path, pairs):
    """They are those of the record, also where a shorter run was made longer."""
    sample(tmp_path, pairs=40)
    draws = sample(tmp_path, pairs=pairs).draws
    (run,) = list_runs(tmp_path)
    assert read_movements(tmp_path, run.key).tolist() == draws.tolist()


def test_movements_of_an_interrupted_sampling_are_read(tmp_path):
    """Those that were found until then are among those of the whole run, and no others."""
    calls = 0

    def stops(rows):
        nonlocal calls
        calls += 1
        if calls > 60:
            raise KeyboardInterrupt
        return rows.mean()

    with pytest.raises(KeyboardInterrupt):
        hs.sample_sensitivity(stops, AGES, rows=20, workers=1, keep=tmp_path, pairs=100)
    (run,) = list_runs(tmp_path)
    found = read_movements(tmp_path, run.key)
    assert 0 < len(found) < 100
    assert set(found) <= set(sample(None, pairs=100).draws)


def test_what_is_no_sampling_has_no_movements(tmp_path):
    """Runs of an audit are refused."""
    hs.audit(
        lambda rows, rng: rows.sum() + rng.laplace(),
        [(np.zeros(2), np.array([0.0, 1.0]))],
        claim=hs.Guarantee(epsilon=1.0),
        samples=2000,
        workers=1,
        keep=tmp_path,
    )
    with pytest.raises(ParameterError, match="no sampling"):
        read_movements(tmp_path, list_runs(tmp_path)[0].key)
