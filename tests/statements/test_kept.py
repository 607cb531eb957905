"""Certificates that were written before a field was added are still what this version reads."""

from __future__ import annotations

from pathlib import Path

import pytest

import hushed as hs

KEPT = sorted(Path(__file__).with_name("kept").glob("*.json"))


@pytest.mark.parametrize("file", KEPT, ids=lambda file: file.stem)
def test_a_certificate_of_before_is_verified(file):
    """A field that is added later stands only where it says something: old files have none."""
    assert hs.verify(file).reproduced
    assert json_of(file) == file.read_text()


def json_of(file):
    return hs.statements.Statement.from_json(file.read_text()).to_json()


def test_there_are_some():
    assert [each.stem for each in KEPT] == ["above-threshold", "median"]
