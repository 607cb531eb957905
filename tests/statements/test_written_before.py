"""Certificates that were written before are read, and written again the same."""

import json
import threading
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import hushed as hs
from hushed import transformations as t
from hushed.spaces import SYMMETRIC, Cell, Column, Space

KEPT = sorted((Path(__file__).parent / "written_before").glob("*.json"))


def test_there_are_some():
    assert len(KEPT) == 16


@pytest.mark.parametrize("file", KEPT, ids=[each.stem for each in KEPT])
def test_a_certificate_that_somebody_has_is_verified(file):
    """A field that is new, and written though it is empty, made all of them be refused.

    If this fails, write what is new only where there is some; these files stay as they are.
    """
    assert hs.verify(file).reproduced
    again = hs.statements.Statement.from_json(file.read_text())
    assert json.loads(again.to_json()) == json.loads(file.read_text())


def test_steps_are_written_where_there_are_some():
    median = hs.statistics.median(low=0, high=100)
    made = hs.Smooth(median, epsilon=1.0)
    space = Space(domain=Column(cell=Cell(low=0, high=100)), metric=SYMMETRIC)
    told = {
        "chain": hs.release(space >> t.clip(0, 50), [1.0, 2.0], made),
        "no chain": hs.release(median, [1.0, 2.0], made),
    }
    for name, released in told.items():
        certificate = hs.certify(released)
        written = json.loads(certificate.to_json())["record"]["certificate"]
        assert ("chain" in written) == (name == "chain")
        assert hs.verify(certificate.to_json()).reproduced


@pytest.fixture(scope="module")
def sampled():
    box = hs.populations.Uniform(low=0, high=1)
    moved = hs.sample_sensitivity(np.mean, box, rows=9, gamma=0.2, workers=1)
    return hs.release(np.mean, np.linspace(0, 1, 9), hs.Laplace(moved, epsilon=1.0))


def test_what_some_versions_wrote_empty_is_read_and_not_written(sampled):
    """Names of numbers, and the noise of values that are told, came to a certificate later."""
    known = hs.certify(sampled)
    told = json.loads(known.record)
    assert told["certificate"]["sampling"].keys().isdisjoint({"names", "asked_anew"})
    assert "value_scale" not in told["certificate"]["mechanism"]
    told["certificate"]["sampling"]["names"] = []
    told["certificate"]["mechanism"]["value_scale"] = None
    with_empty = hs.Statement(record=json.dumps(told))
    assert with_empty.guarantee == known.guarantee
    assert hs.verify(with_empty, np.mean, workers=1).reproduced
    for wrong in ({"names": ["a", "a"]}, {"named": []}):
        forged = json.loads(known.record)
        forged["certificate"]["sampling"] |= wrong
        with pytest.raises(hs.errors.ParameterError):
            hs.Statement(record=json.dumps(forged))


def test_that_nothing_could_be_asked_in_a_new_process_is_written():
    """A lock cannot be sent to one; False is no empty field."""
    lock = threading.Lock()

    def locked(rows):
        with lock:
            return rows.mean()

    box = hs.populations.Uniform(low=0, high=1)
    moved = hs.sample_sensitivity(locked, box, rows=9, gamma=0.2, workers=1)
    known = hs.certify(hs.release(locked, np.linspace(0, 1, 9), hs.Laplace(moved, epsilon=1.0)))
    assert json.loads(known.record)["certificate"]["sampling"]["asked_anew"] is False
    assert hs.verify(known.to_json(), locked, workers=1).reproduced


def test_what_was_pickled_before_a_field_came_is_read(sampled):
    """Some came between others: what followed was read as the field before it."""
    known = sampled.certificate
    box = hs.populations.Uniform(low=0, high=1)
    moved = hs.sample_sensitivity(np.mean, box, rows=9, gamma=0.2, workers=1).sampling
    median = hs.statistics.median(rows=50, low=0, high=1)
    compared = hs.compare(median, box, rows=50, epsilon=1.0, trials=20, workers=1)
    for record, later in (
        (known.sampling, ("names", "asked_anew")),
        (known.sampling, ("asked_anew",)),
        (known.mechanism, ("value_scale",)),
        (moved, ("names", "asked_anew")),
        (moved, ("asked_anew",)),
        (compared, ("labels",)),
        (compared.routes[0], ("labels",)),
    ):
        names = [each.name for each in fields(record)]
        again = object.__new__(type(record))
        again.__setstate__([getattr(record, name) for name in names if name not in later])
        assert [getattr(again, name) for name in names] == [getattr(record, n) for n in names]
        with pytest.raises(hs.errors.ParameterError, match="another version"):
            again.__setstate__([*names, "one more"])
