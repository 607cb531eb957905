"""What workers of another kind measured is on the certificate, and `verify` speaks of it."""

import json
from dataclasses import replace

import numpy as np
import pytest

import hushed as hs
from hushed.engines import Done, run_span
from hushed.releasing import certify

UNIT = hs.populations.Uniform(low=0, high=1)
PAIRS = 300  # more than the 201 that a certificate keeps
NOTED = "it rounds otherwise than the process that sent the work (blas A at the sender, B there)"


class Elsewhere:
    """Workers that add a unit in the last place, and say that they differ."""

    name = "elsewhere"

    def __init__(self, on_other_bits="note", units=1, only=lambda trial: True):
        self.on_other_bits, self.units, self.only = on_other_bits, units, only

    def slots(self):
        return 1

    def map_spans(self, task, spans):
        for span in spans:
            found = run_span(task.payload, task.digest, task.seed, *span)
            assert isinstance(found, Done), found
            moved = np.array([self.units * self.only(trial) for trial in range(*span)])
            values = found.values.copy()
            values[..., 0] += moved * np.spacing(values[..., 0])
            yield span, replace(found, values=values, note=NOTED)


def mean(rows):
    return rows.mean()


def sample(workers, **settings):
    asked = {"rows": 8, "pairs": PAIRS} | settings
    if not hasattr(workers, "on_other_bits"):
        return hs.sample_sensitivity(mean, UNIT, workers=workers, **asked)
    with pytest.warns(UserWarning, match="trials ran where it rounds otherwise"):
        return hs.sample_sensitivity(mean, UNIT, workers=workers, **asked)


def certificate(s):
    return certify(hs.Laplace(s, epsilon=1.0), values=1)


def test_a_certificate_counts_what_was_measured_elsewhere():
    """All but the first trials, which this process ran; the count is there after JSON, too."""
    known = certificate(sample(Elsewhere()))
    again = hs.Certificate.from_json(known.to_json())
    ((note, count),) = again.sampling.elsewhere.items()
    assert note == NOTED
    assert PAIRS - 5 <= count < PAIRS
    assert f"{count} of the {PAIRS} movements were measured by a worker process" in again.explain()
    assert NOTED in again.explain()
    assert certificate(sample(1)).sampling.elsewhere == {}


def test_verify_takes_it_for_the_reason_of_rounding():
    """One process does not find the bits, calls it rounding, and names the workers."""
    found = hs.verify(certificate(sample(Elsewhere())), mean, workers=1)
    assert found.agreement == "rounding"
    assert found.differing > 100
    assert "measured then by a worker" in found.explain()
    assert NOTED in found.explain()
    assert "alike in all that is recorded" not in found.explain()


def test_movements_that_are_not_on_the_certificate_may_have_moved():
    """Only draws between the kept ranks differ: the name of the estimate does, and nothing else."""
    s = sample(1)
    plain, draws = certificate(s), s.draws
    between = np.setdiff1d(draws, plain.sampling.movements)[5]
    place = _trial_of(between)
    moved = Elsewhere(only=lambda trial: trial == place)
    known = certificate(sample(moved))
    assert known.sampling.movements == plain.sampling.movements
    assert known.guarantee.estimates != plain.guarantee.estimates
    found = hs.verify(known, mean, workers=1)
    assert found.agreement == "rounding"
    forged = json.loads(known.to_json())
    forged["sampling"]["elsewhere"] = {}
    assert hs.verify(json.dumps(forged), mean, workers=1).agreement == "different"


def _trial_of(movement):
    """Number of the trial that gives a movement."""
    seen = {}

    class Watching(Elsewhere):
        def map_spans(self, task, spans):
            for span, outcome in super().map_spans(task, spans):
                seen.update(zip(range(*span), outcome.values[..., 0], strict=True))
                yield span, outcome

    sample(Watching(units=0))
    (found,) = [trial for trial, value in seen.items() if value == movement]
    return found


def test_what_is_kept_with_other_bits_is_noted_when_it_is_found_again(tmp_path):
    """Resumed, the certificate still counts it; a call that allows no other bits starts anew."""
    first = sample(Elsewhere(), keep=tmp_path)
    assert sample(1, keep=tmp_path).sampling.elsewhere == {}
    assert sorted(run.kept for run in hs.runs.list_runs(tmp_path)) == [PAIRS, PAIRS]
    longer = sample(Elsewhere(), keep=tmp_path, pairs=PAIRS + 50)
    assert sum(longer.sampling.elsewhere.values()) >= PAIRS + 45 - 5
    again = sample(Elsewhere(), keep=tmp_path)
    assert again.sampling.elsewhere == first.sampling.elsewhere
    assert np.array_equal(again.draws, first.draws)


def test_counts_that_no_sampler_writes_are_refused():
    """None, and more than there are."""
    for count in (0, -1, PAIRS + 1):
        loaded = json.loads(certificate(sample(1)).to_json())
        loaded["sampling"]["elsewhere"] = {"x": count}
        with pytest.raises(hs.errors.ParameterError, match="elsewhere"):
            hs.Certificate.from_json(json.dumps(loaded))


def test_of_private_populations_nothing_is_told():
    """Whether bits differ there follows from private rows."""
    with pytest.warns(UserWarning, match="private|nominal|trials ran"):
        s = hs.sample_sensitivity(
            mean, UNIT, rows=8, pairs=PAIRS, workers=Elsewhere(), data_dependent=True
        )
    assert s.sampling.elsewhere
    assert certificate(s).sampling.elsewhere == {}
