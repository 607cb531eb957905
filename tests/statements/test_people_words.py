"""Where each row was declared to be one person, a certificate speaks of people throughout."""

import json

import numpy as np
import pytest

import hushed as hs

ROWS = np.linspace(0, 1, 40)


def released(unit, note="one"):
    mean = hs.statistics.mean(low=0, high=1, rows=40, unit=unit)
    return hs.certify(
        hs.release(mean, ROWS, hs.Laplace(hs.global_sensitivity(mean), epsilon=0.5)), note=note
    )


def test_a_release_for_people_ends_with_people():
    told = released("person").explain()
    assert "About one person, of whom the table holds one row: somebody who knows" in told
    assert "which of two persons is in the table" in told
    assert "About one row" not in told
    assert "About one row" in released("row").explain()
    known = released("person").subject.certificate
    assert "; one person, replace-one" in repr(known)
    mean = hs.statistics.mean(low=0, high=1, rows=40, unit="person")
    assert "one person" in hs.global_sensitivity(mean)._repr_html_()


@pytest.mark.parametrize(
    ("units", "whom"), [(["person"] * 2, "person"), (["person", "row"], "row")]
)
def test_a_study_speaks_of_people_if_all_of_its_parts_do(units, whom):
    """Studies from before do not say it, and are about rows, as they were told."""
    parts = [released(unit, str(number)) for number, unit in enumerate(units)]
    study = hs.certify_study(parts, delta=1e-6)
    told = study.explain()
    assert ("the row of one person replaced" in told) == (whom == "person")
    assert f"replace-one, one {whom}" in study._repr_html_()
    assert hs.verify(study).agreement == "bits"
    record = json.loads(study.record)
    for each in record["parts"]:
        each.pop("person", None)
    old = hs.Statement(record=json.dumps(record))
    assert "with one row replaced" in old.explain()


def test_a_verification_speaks_of_a_trial_only_where_a_function_was_tried():
    told = hs.verify(released("row"))
    assert "tried just before" not in str(told.unchecked)
    names = hs.verify(
        hs.release(np.mean, ROWS, hs.Laplace(_sampled(), epsilon=1)).certificate, np.mean
    )
    assert "sampling." not in names.explain()
    assert "asked again just before the release" in names.explain()


@pytest.mark.parametrize("unit", ["person", "row"])
def test_a_check_of_a_population_speaks_of_people_as_it_was_told(unit):
    """It spoke of one row, beside a release that spoke of one person."""
    box = hs.populations.Uniform(low=0, high=1)
    found = hs.certify(hs.check_population(ROWS, box, epsilon=1, tables=99, unit=unit))
    told, who = found.explain(), "person" if unit == "person" else "row"
    assert f"About one {who}" in told
    assert ("the row of one person" in told) == (unit == "person")
    assert f"replace-one, one {who}" in found._repr_html_()
    assert ("the number of people" in told) == (unit == "person")


def test_whether_rows_are_people_is_always_said_not_to_be_checked():
    """Nobody can follow it: whoever wrote the record may have written that, too."""
    box = hs.populations.Uniform(low=0, high=1)
    check = hs.certify(hs.check_population(ROWS, box, epsilon=1, tables=99))
    movement = hs.certify(hs.check_movement(np.mean, ROWS, _sampled(rows=5), epsilon=1))
    search = hs.AboveThreshold(100, epsilon=1.0)
    search.ask(5)
    study = hs.certify_study([released("row"), released("row", "two")])
    for known, places in (
        (check, lambda record: [record["certificate"]]),
        (movement, lambda record: [record["certificate"]]),
        (hs.certify(search), lambda record: [record["certificate"]]),
        (study, lambda record: record["parts"]),
    ):
        record = json.loads(known.record)
        for each in places(record):
            each["person"] = True
        found = hs.verify(hs.Statement(record=json.dumps(record)))
        assert found.reproduced
        assert any("each row is one person" in each for each in found.unchecked), known.kind
        if known.kind != "study":
            assert any("not changed since" in each for each in found.unchecked), known.kind


@pytest.mark.parametrize(
    ("unit", "one", "many"), [("person", "person", "people"), ("row", "row", "rows")]
)
def test_what_a_gamma_says_nothing_of_is_a_person(unit, one, many):
    made = hs.release(np.mean, ROWS, hs.Laplace(_sampled(unit), epsilon=1))
    told = hs.certify(made).explain()
    assert f"of {many} that are drawn from the public population; of a {one} that is" in told


def _sampled(unit="row", rows=40):
    box = hs.populations.Uniform(low=0, high=1)
    return hs.sample_sensitivity(np.mean, box, rows=rows, gamma=0.2, workers=1, unit=unit)
