"""Certificates with one field altered: what is refused, and which honest ones must not be."""

import copy
import json
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from sklearn import linear_model

import hushed as hs
import hushed.sklearn as hushed_sklearn
from hushed.errors import ParameterError
from hushed.releasing import certify
from hushed.releasing._verification import say_missing
from hushed.statements._verification import check_alone


@pytest.mark.slow
def test_no_error_bar_of_a_mean_is_narrowed_by_its_number_of_rows():
    """Fewer than one row was taken for a clipped mean, whose bar nothing follows."""
    rows = pa.table({"x": [float(i % 50) for i in range(200)]})
    record = json.loads(
        hs.certify(hs.table(rows).mean("x", low=0, high=50).release(epsilon=1)).record
    )
    (value,) = record["values"]["mean_x"]
    for present in (0, -1, -(10**20), 0.5, 1e-300):
        forged = record | {
            "present": {"mean_x": [present]},
            "low": {"mean_x": [value - 1e-4]},
            "high": {"mean_x": [value + 1e-4]},
        }
        with pytest.raises(ParameterError, match="error bar of mean_x"):
            hs.Statement(record=json.dumps(forged))
    whole = record | {
        "present": {"mean_x": [0]},
        "low": {"mean_x": [0.0]},
        "high": {"mean_x": [50.0]},
    }
    assert hs.verify(hs.Statement(record=json.dumps(whole))).reproduced


def test_no_error_bar_is_lost_in_the_rounding_of_a_huge_number():
    """Doubles at 1e27 are further apart than any error bar, and the bar was compared as one."""
    asked = hs.table(pa.table({"x": [1.0, 2.0]})).count(name="n").sum("x", low=0, high=2, name="s")
    record = json.loads(hs.certify(asked.release(epsilon=1)).record)
    for name in ("n", "s"):
        for value in (10**27, -(10**27), 1e27):
            forged = copy.deepcopy(record)
            for column in ("values", "low", "high"):
                forged[column][name] = [value if column == "values" else float(value)]
            with pytest.raises(ParameterError, match=f"error bar of {name}"):
                hs.Statement(record=json.dumps(forged))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mean", "variance"])
@pytest.mark.parametrize(
    ("low", "high"),
    [(0.1, 0.3), (-7.0, -1.0), (1e6, 1e6 + 1e-3), (1e17, 1e17 + 64), (1 / 3, 2 / 3)],
)
def test_an_honest_answer_is_certified_wherever_its_column_lies(kind, low, high):
    """Ends and middles of a range are rounded; with few rows, noise moves answers to the ends."""
    table = hs.table(pa.table({"x": [low, high, high]}))
    for epsilon in [0.5] * 12 + [5.0] * 12:
        answer = getattr(table, kind)("x", low=low, high=high).release(epsilon=epsilon)
        known = hs.certify(answer)
        assert hs.Statement.from_json(known.to_json()) == known


def median_released(mechanism):
    rows = np.linspace(0, 1, 200)
    return hs.release(mechanism.statistic, rows, mechanism)


@pytest.mark.slow
def test_no_value_is_certified_that_its_own_certificate_rules_out():
    """A median beyond the public range, a mode that is no category, a block's mean outside."""
    median = hs.statistics.median(rows=200, low=0, high=1)
    kinds = hs.statistics.mode(["a", "b"], rows=60)
    mode = hs.release(kinds, ["a"] * 60, hs.InverseSensitivity(kinds, epsilon=20))
    blocks = hs.Blocks(low=0, high=1, epsilon=8.0, blocks=10)
    asked = hs.release(lambda rows: 0.5, np.linspace(0, 1, 40), blocks)
    for released, others in (
        (median_released(hs.InverseSensitivity(median, epsilon=2)), (-0.5, 1.5, 1e308, "a", True)),
        (median_released(hs.Smooth(median, epsilon=2)), (-0.5, 1.5, 1e308)),
        (mode, ("c", 0, "", 1.0)),
        (asked, (-1e-9, 1.5, "a")),
    ):
        record = json.loads(hs.certify(released).record)
        for other in others:
            kind = type(other).__name__
            with pytest.raises(ParameterError, match="range"):
                hs.Statement(record=json.dumps(record | {"value": other, "kind": kind}))


@pytest.mark.parametrize("low", [0.0, -3.0, 2.0])
def test_no_value_between_public_ones_is_certified(low):
    """It was chosen from those that follow from the range: no other number of it is an answer."""
    median = hs.statistics.median(rows=200, low=low, high=7.0)
    rows = np.linspace(low, 7.0, 200)
    blocks = hs.Blocks(low=low, high=7.0, epsilon=30.0, blocks=3)
    for released in (
        hs.release(median, rows, hs.InverseSensitivity(median, epsilon=2)),
        hs.release(lambda rows: 5.0, rows, blocks),
    ):
        record = json.loads(hs.certify(released).record)
        for factor in (1 - 1e-12, 1 + 1e-12):  # another mathematical library
            hs.Statement(record=json.dumps(record | {"value": released.value * factor}))
        for factor in (1 - 1e-4, 1 + 1e-4):
            with pytest.raises(ParameterError, match="public values"):
                hs.Statement(record=json.dumps(record | {"value": released.value * factor}))


@pytest.mark.slow
def test_the_share_of_a_candidate_is_that_of_all():
    """Nobody states another weight than default candidates have."""
    median = hs.statistics.median(rows=200, low=0, high=1)
    known = json.loads(
        median_released(hs.InverseSensitivity(median, epsilon=2)).certificate.to_json()
    )
    known["mechanism"]["parameters"]["least"] = -1.0
    with pytest.raises(ParameterError, match="least"):
        hs.Certificate.from_json(json.dumps(known))


@pytest.mark.slow
def test_a_check_of_no_level_is_refused_in_words():
    """It divided by it."""
    rows = np.linspace(0, 1, 300)
    box = hs.populations.Uniform(low=0, high=1)
    record = json.loads(hs.certify(hs.check_population(rows, box, epsilon=1, tables=99)).record)
    for level in (0.0, 0, -0.0, -1):
        with pytest.raises(ParameterError):
            hs.Statement(record=json.dumps(record | {"level": level}))


@pytest.mark.slow
def test_an_audit_states_a_relation_and_a_weight_that_there_are():
    """Whatever the claim: what no audit of hushed writes is not certified."""
    with pytest.raises(ParameterError, match="neighbours"):
        hs.ZeroConcentrated(rho=0.1, neighbours="none")
    with pytest.raises(ParameterError, match="neighbours"):
        hs.Renyi(order=2, epsilon=1, neighbours={"a": 1})
    report = hs.audit(
        lambda rows, rng, size: rows[0] + rng.laplace(scale=1.0, size=size),
        [([1.0], [0.0])],
        claim=hs.ZeroConcentrated(rho=2.0),
        samples=400,
        batch=True,
        workers=1,
    )
    record = json.loads(hs.certify(report).record)
    for weight in (True, "1", [], -1.0, 10**400):
        with pytest.raises(ParameterError):
            hs.Statement(record=json.dumps(record | {"weight": weight}))


def outsider(released):
    return hs.certify(released).explain().rpartition("\n\n")[2]


@pytest.mark.slow
def test_what_is_told_without_any_limit_is_named():
    """The number of rows where one is replaced; a population only where there is one."""
    rows = np.linspace(0, 1, 50)
    box = hs.populations.Uniform(low=0, high=1)
    moved = hs.sample_sensitivity(np.mean, box, rows=50, gamma=0.05, workers=1)
    sampled = outsider(hs.release(np.mean, rows, hs.Laplace(moved, epsilon=1)))
    assert "the public population and the number of rows" in sampled
    stated = hs.proven_sensitivity(0.02, argument="mean of 50 values in [0, 1]")
    told = outsider(hs.release(np.mean, rows, hs.Laplace(stated, epsilon=1)))
    assert "the number of rows" in told
    assert "population" not in told
    assert "rests on the reason" in told
    found = hs.find_bound(rows, epsilon=1, users=np.arange(50) % 7, neighbours="add-remove")
    told = outsider(found)
    assert not [each for each in ("population", "number of", "rests on") if each in told]
    assert "knows the rows of all others" in told


@pytest.mark.parametrize("epsilon", [1e15, 1e17, 1.7e308])
def test_no_factor_is_written_with_hundreds_of_digits(epsilon):
    """And none is smaller than it is."""
    from hushed.releasing._factor_words import describe_factor

    told = describe_factor(hs.Guarantee(epsilon=epsilon), "it", "with one row replaced")
    exponent = float(told.partition("10^(")[2].partition(")")[0])
    assert math.log(10) * exponent >= epsilon
    assert len(told) < 400


@pytest.mark.slow
def test_what_a_verification_cannot_notice_is_said_not_to_be_checked():
    """Each field that may be altered without a word, while the sampling comes out bit for bit."""
    box = hs.populations.Uniform(low=0, high=1)
    moved = hs.sample_sensitivity(np.mean, box, rows=50, gamma=0.2, workers=1)
    released = hs.release(np.mean, np.linspace(0, 1, 50), hs.Laplace(moved, epsilon=1))
    record = json.loads(hs.certify(released).record)
    for place, field, value, told in (
        (record["certificate"], "charged", "a budget that never ends", "terms of a budget"),
        (record["certificate"], "person", True, "each row is one person"),
        (record["certificate"], "confirmed", "", "tried just before the release"),
        (record["certificate"]["sampling"], "function", "census", "name of the function"),
        (record, "value", 0.25, "not changed since"),
    ):
        kept, place[field] = place[field], value
        check = hs.verify(hs.Statement(record=json.dumps(record)), np.mean, workers=1)
        assert check.reproduced, field
        assert any(told in each for each in check.unchecked)
        place[field] = kept


def test_no_proof_for_rows_is_said_to_hold_for_users():
    """With the unit altered it "held for every user", by an argument about rows, and verified."""
    rows = np.linspace(1, 9, 60).reshape(-1, 1)
    fit = hushed_sklearn.PrivateEstimator(
        linear_model.Ridge(), epsilon=1.0, route="objective", bounds=(0, 9), labels=(0, 9)
    ).fit(rows, rows[:, 0])
    users = hs.find_bound(rows[:, 0], epsilon=1.0, users=np.arange(60) % 7).certificate
    for known in (hs.find_bound(rows[:, 0], epsilon=1.0).certificate, fit.certificate_, users):
        assert hs.verify(known).reproduced
        record = json.loads(known.to_json())
        record["guarantee"]["unit"] = "row" if known is users else "user"
        with pytest.raises(ParameterError, match="its proof is for another"):
            hs.Certificate.from_json(json.dumps(record))


@pytest.mark.parametrize("declared", ["symmetric", "monotone", "batch", "update"])
def test_what_was_declared_of_a_function_is_said_not_to_be_checked(declared):
    """It may be written into a certificate, and is tried on a few tables alone."""
    box = hs.populations.Uniform(low=0, high=1)
    options = {
        "symmetric": {"symmetric": True},
        "monotone": {"protect": "table", "values": [0.0, 1.0]},
        "batch": {"batch": True},
        "update": {"update": lambda old, rows, places, new: old + (new - rows[places]) / 9},
    }[declared]
    f = {"batch": lambda stack: stack.mean(axis=1)}.get(declared, np.mean)
    moved = hs.sample_sensitivity(f, box, rows=9, gamma=0.2, workers=1, seed=1, **options)
    record = json.loads(
        hs.release(f, np.linspace(0, 1, 9), hs.Laplace(moved, epsilon=1)).certificate.to_json()
    )
    if declared == "monotone":
        assert not record["sampling"]["monotone"]  # given rows become the ends of the range
        record["sampling"]["monotone"] = True
    known = hs.Certificate.from_json(json.dumps(record))
    found = hs.verify(known, f, update=options.get("update"), workers=1)
    assert found.reproduced
    assert any(f"declared: {declared}" in each for each in found.unchecked)
    assert f"declared: {declared}" in found.explain()
    assert "as declared (tried on" in known.explain()


def test_what_was_declared_of_scores_is_said_not_to_be_checked():
    """That all of them move the same way halves the noise, and nothing was tried."""
    scores = hs.proven_sensitivity(1.0, "sup", neighbours="add-remove", argument="counts of rows")
    for mechanism in (
        hs.Exponential(scores, epsilon=1, monotone=True),
        hs.NoisyMax(scores, epsilon=1, monotone=True),
        hs.TopK(2, scores, epsilon=1, monotone=True),
    ):
        known = certify(mechanism, values=3)
        assert any("move the same way" in each for each in hs.verify(known).unchecked)
    above = hs.AboveThreshold(9, epsilon=1.0, monotone=True, neighbours="add-remove")
    assert any("move the same way" in each for each in hs.verify(above.certificate).unchecked)


def test_no_fit_is_certified_for_classes_that_it_has_not():
    """Of two classes it "was for 30 classes" with one field altered, and verified."""
    rows = np.linspace(1, 9, 60).reshape(-1, 1)
    for model, options, others in (
        (linear_model.LogisticRegression(), {"labels": (0, 1)}, {"classes": 30, "cutoff": 2.0}),
        (linear_model.Ridge(), {"labels": (0, 9)}, {"classes": 3}),
    ):
        asked = {"epsilon": 1.0, "route": "objective", "bounds": (0, 9), **options}
        labels = rows[:, 0] if options["labels"] == (0, 9) else (rows[:, 0] > 5).astype(int)
        fit = hushed_sklearn.PrivateEstimator(model, **asked).fit(rows, labels)
        assert hs.verify(fit.certificate_).reproduced
        for name, other in others.items():
            record = json.loads(fit.certificate_.to_json())
            record["mechanism"]["parameters"][name] = other
            with pytest.raises(ParameterError, match=f"{name} is for family="):
                hs.Certificate.from_json(json.dumps(record))


@pytest.mark.slow
@pytest.mark.parametrize("wrapped", [True, False])
def test_without_the_function_all_that_nothing_follows_is_named(wrapped):
    """Labels, the name of the function, people: of a bare certificate nothing of it was said."""
    box = hs.populations.Uniform(low=0, high=1)
    moved = hs.sample_sensitivity(np.mean, box, rows=50, gamma=0.2, workers=1)
    released = hs.release(np.mean, np.linspace(0, 1, 50), hs.Laplace(moved, epsilon=1))
    known = replace(released.certificate, labels=("anything",), person=True)
    text = hs.certify(replace(released, certificate=known)) if wrapped else known
    told = check_alone(text.to_json(), say_missing(known), ledger=None, key=None).unchecked
    for each in ("its sampling", "what each number", "one person", "function, the terms", "tried"):
        assert any(each in line for line in told), each


def test_what_may_be_altered_of_blocks_is_said_not_to_be_checked():
    """Limits of the calls are told as those that were kept, and nothing follows from them."""
    blocks = hs.Blocks(low=0, high=1, epsilon=30.0, blocks=3)
    known = hs.release(np.mean, np.linspace(0, 1, 80), blocks).certificate
    for name, other, told in (
        ("cpu_seconds", 7.0, "within these limits"),
        ("idle_seconds", 7.0, "within these limits"),
        ("memory", 2**30, "within these limits"),
        ("disk", 2**20, "within these limits"),
        ("beta", 0.1, "beta"),
        ("function", "another", "the name of the function"),
    ):
        record = json.loads(known.to_json())
        assert record["mechanism"]["parameters"][name] != other
        record["mechanism"]["parameters"][name] = other
        found = hs.verify(json.dumps(record))
        assert not found.reproduced or any(told in each for each in found.unchecked), name
