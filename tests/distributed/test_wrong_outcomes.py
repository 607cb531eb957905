"""What an engine gives is taken for results only if it is like them."""

import numpy as np
import pytest

import hushed as hs
from hushed.engines import Done, Raised, run_span
from hushed.errors import WorkerLost

UNIT = hs.populations.Uniform(low=0, high=1)


class Wrong:
    """An engine in this process that changes what it gives."""

    name = "a wrong engine"

    def __init__(self, change):
        self.change = change

    def slots(self):
        return 2

    def map_spans(self, task, spans):
        for span in spans:
            found = run_span(task.payload, task.digest, task.seed, *span)
            yield span, self.change(found.values)


def sample(workers):
    return hs.sample_sensitivity(np.mean, UNIT, rows=5, pairs=50, workers=workers)


def test_right_outcomes_are_taken():
    """Unchanged, they are those of one process."""
    expected = sample(1).sampling.draws
    assert np.array_equal(sample(Wrong(lambda v: Done(v, 1.0))).sampling.draws, expected)


@pytest.mark.parametrize(
    "change",
    [
        lambda v: Done(v[:, :1], 1.0),
        lambda v: Done(np.concatenate([v, v], axis=1), 1.0),
        lambda v: Done(v.astype(int), 1.0),
        lambda v: Done(v * 1j, 1.0),
        lambda v: Done(v.astype(str), 1.0),
        lambda v: Done(v.tolist(), 1.0),
        lambda v: Done(None, 1.0),
        lambda v: Done(v[:-1], 1.0),
        lambda v: Done(np.concatenate([v, v]), 1.0),
        lambda v: Done(v * np.nan, 1.0),
        lambda v: Done(-1 - v, 1.0),
        lambda v: Done(-v, 1.0),
        lambda v: "done",
        lambda v: Raised(b"no pickle"),
    ],
)
def test_wrong_outcomes_are_refused(change):
    """Not fitted into the array of results, as NumPy would, nor a foreign error."""
    with pytest.raises(WorkerLost):
        sample(Wrong(change))
