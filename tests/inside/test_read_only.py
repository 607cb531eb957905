"""Released values cannot be changed by mistake, nor can copies that came out of a file."""

import copy
import json
import pickle
from dataclasses import asdict, fields, replace

import numpy as np
import pandas as pd
import pytest

import hushed as hs
from hushed.mechanisms._bernstein import BernsteinPolynomial


def copies(record):
    """It, and what copies and files make of it."""
    yield record
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        yield pickle.loads(pickle.dumps(record, protocol))
    yield copy.deepcopy(record)
    yield copy.copy(record)
    yield replace(record)


def test_an_array_stays_read_only_on_its_way_through_a_file():
    """Arithmetic in place would change what is certified."""
    proven = hs.proven_sensitivity(1.0, neighbours="replace-one", argument="each row counts once")
    found = hs.release(lambda rows: rows[:2], np.ones(30), hs.Laplace(proven, epsilon=1.0))
    for each in copies(found):
        assert each.value.tolist() == found.value.tolist()
        with pytest.raises(ValueError, match="read-only"):
            each.value += 1
    for each in copies(BernsteinPolynomial(np.ones(3))):
        with pytest.raises(ValueError, match="read-only"):
            each.coefficients[0] = 2


def test_the_mappings_of_an_answer_are_read_only_and_dicts_still():
    """Of JSON, of dataclasses, and of whoever makes a copy."""
    table = hs.table(pd.DataFrame({"x": [1.0, 2.0, 3.0]}))
    answer = table.count().mean("x", low=0, high=5).release(epsilon=1.0)
    for each in copies(answer):
        assert each == answer
        for change in (
            lambda values: values.update(count=(0,)),
            lambda values: values.pop("count"),
            lambda values: values.clear(),
            lambda values: values.__setitem__("count", (0,)),
            lambda values: values.__delitem__("count"),
            lambda values: values.setdefault("other", ()),
            lambda values: values.__ior__({"count": (0,)}),
        ):
            with pytest.raises(TypeError, match="read-only"):
                change(each.values)
        assert hs.certify(each).subject.values == answer.values
    assert json.loads(json.dumps(answer.values))["count"] == list(answer.values["count"])
    assert asdict(answer)["values"] == dict(answer.values)
    own = dict(answer.values) | {"count": (0,)}
    assert own["count"] == (0,)


def as_kept(record, lacking=0):
    """Read it as a pickle of an earlier version holds it: its fields in order, without the last."""
    kept = [getattr(record, each.name) for each in fields(record)]
    read = object.__new__(type(record))
    read.__setstate__(kept[: len(kept) - lacking])
    return read


def test_what_an_earlier_version_has_pickled_is_read():
    """Certificates lacked labels, and fitted estimators are kept with theirs."""
    proven = hs.proven_sensitivity(1.0, neighbours="replace-one", argument="each row counts once")
    found = hs.release(lambda rows: rows[:2], np.ones(30), hs.Laplace(proven, epsilon=1.0))
    for lacking in (1, 2):  # labels, and the chain before it
        known = as_kept(found.certificate, lacking)
        assert known == found.certificate
        assert known.to_json() == found.certificate.to_json()
        assert str(replace(found, certificate=known)) == str(found)
    with pytest.raises(ValueError, match="read-only"):
        as_kept(replace(found, value=np.ones(2))).value[0] = 2
    table = hs.table(pd.DataFrame({"x": [1.0, 2.0, 3.0]}))
    answer = table.count().release(epsilon=1.0)
    kept = [getattr(answer, each.name) for each in fields(answer)]
    plain = [dict(each) if isinstance(each, dict) else each for each in kept]
    read = object.__new__(hs.Answer)
    read.__setstate__(plain)
    assert read == answer
    with pytest.raises(TypeError, match="read-only"):
        read.values["count"] = (0,)


def test_a_pickle_of_a_later_version_is_refused():
    """What it says beyond what is known here may be what its promise depends on."""
    proven = hs.proven_sensitivity(1.0, argument="each row counts once")
    kept = [getattr(proven, each.name) for each in fields(proven)]
    for state in ([*kept, "more"], kept[:1]):
        with pytest.raises(hs.errors.ParameterError, match="pickled by another version"):
            object.__new__(hs.Sensitivity).__setstate__(state)
