"""Certificates that were written before are read, and written again the same."""

import json
from pathlib import Path

import pytest

import hushed as hs
from hushed import transformations as t
from hushed.spaces import SYMMETRIC, Cell, Column, Space

KEPT = sorted((Path(__file__).parent / "written_before").glob("*.json"))


def test_there_are_some():
    assert len(KEPT) == 12


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
