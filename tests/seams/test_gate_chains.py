"""A chain lets private rows through the same gate as a release."""

import numpy as np
import pandas as pd
import pytest

import hushed as hs
from hushed import measurements as m
from hushed import transformations as t
from hushed.errors import (
    BadRows,
    ParameterError,
    PrivateRowsAsPopulation,
    SpaceMismatch,
    ZeroSensitivity,
)
from hushed.spaces import CHANGE_ONE, SYMMETRIC, Cell, Column, Space, Table

UNIT = hs.populations.Uniform(low=0, high=1)


def mean(rows):
    return float(np.mean(rows))


def sampled(f=mean, population=UNIT, rows=20, **settings):
    return hs.sample_sensitivity(f, population, rows=rows, pairs=40, workers=1, **settings)


def test_private_rows_as_population():
    """Refused unless it was said, and then the guarantee is marked."""
    private = np.random.default_rng(3).random(40)
    public = hs.populations.PublicTable(private[::-1], promise="table")
    chain = t.from_sensitivity(mean, sampled(population=public, rows=40)) >> m.laplace(1.0)
    with pytest.raises(PrivateRowsAsPopulation, match="data_dependent=True"):
        chain(private)
    said = sampled(population=public, rows=40, data_dependent=True)
    marked = t.from_sensitivity(mean, said) >> m.laplace(1.0)
    assert marked(private) is not None
    assert marked.guarantee(1).data_dependent


def test_types_are_those_that_were_sampled():
    """Small integers do not wrap around where doubles were sampled."""
    wide = hs.populations.Uniform(low=0, high=255)
    f = lambda rows: float(np.abs(rows - 50).sum())  # noqa: E731
    chain = t.from_sensitivity(f, sampled(f, wide))
    codes = np.arange(20, dtype=np.uint8)
    assert float(chain(codes)) == np.abs(np.arange(20.0) - 50).sum()
    small = hs.populations.Simulator(lambda rng, n: rng.integers(0, 255, n).astype(np.uint8))
    with pytest.raises(BadRows, match="without loss"):
        t.from_sensitivity(f, sampled(f, small))(codes.astype(float))


@pytest.mark.parametrize(
    "data", [[0.5] * 20, pd.DataFrame({"x": [0.5] * 20}), np.full((20, 2), 0.5), np.full(19, 0.5)]
)
def test_container_columns_and_number_of_rows(data):
    """Another table than was sampled is refused."""
    with pytest.raises(BadRows):
        t.from_sensitivity(mean, sampled())(data)


def test_stacked_answers_and_shapes_are_checked(assert_silent):
    """An answer of another shape on the private rows is refused, without that shape."""
    f = lambda rows: rows[rows > 0.5] if rows[0] == 0.25 else rows.mean()  # noqa: E731
    chain = t.from_sensitivity(f, sampled(f))
    with pytest.raises(hs.errors.BadFunction, match="shape") as caught:
        chain(np.append(0.25, np.linspace(0, 1, 19)))
    assert "10" not in str(caught.value)


def test_a_failure_is_told_by_its_type(assert_silent):
    """As in a release; a sampled step and a proven one alike."""

    def f(rows):
        if rows[0] == 0.25:
            raise KeyError("Wilhelmina-Quux")
        return rows.mean()

    odd = np.append(0.25, np.linspace(0, 1, 19))
    known = hs.proven_sensitivity(0.05, argument="a mean of 20")
    for step in (t.from_sensitivity(f, sampled(f)), t.from_sensitivity(f, known, source=SPACE)):
        with pytest.raises(hs.errors.BadFunction, match="raised KeyError on the private") as caught:
            step(odd)
        assert_silent(caught.value)


SPACE = Space(domain=Column(cell=Cell(low=0, high=1), size=20), metric=CHANGE_ONE)
BEFORE = {
    "map_rows": SPACE >> t.map_rows(lambda v: v * 1e6, Cell(low=0, high=1e6)),
    "clip": SPACE >> t.clip(0, 0.5),
    "impute": SPACE >> t.impute(0.5),
    "resize": Space(domain=Column(cell=Cell(low=0, high=1)), metric=SYMMETRIC) >> t.resize(20, 0.5),
    "declared": t.declared(
        lambda rows: rows * 1e6,
        source=SPACE,
        target=Space(domain=Column(cell=Cell(), size=20), metric=CHANGE_ONE),
        stability=1,
        argument="row by row",
    ),
    "two relations": Space(domain=SPACE.domain, metric=SYMMETRIC)
    >> t.to_change_one()
    >> t.clip(0, 0.5),
}


@pytest.mark.parametrize("name", BEFORE)
@pytest.mark.parametrize(
    "way", ["one by one", "with the noise", "later", "behind a relation", "composed", "afterwards"]
)
def test_no_step_comes_before_what_was_sampled(name, way):
    """However the chain is put together, the function sees the rows that were sampled."""
    first = BEFORE[name]
    step = t.from_sensitivity(mean, sampled(), source=first.target)
    again = first.target >> t.to_symmetric() >> t.to_change_one()
    same = {"source": step.target, "target": step.target, "stability": 1, "argument": "same"}
    after = {
        "one by one": step,
        "with the noise": step >> m.laplace(1.0),
        "behind a relation": again >> step,
        "composed": m.compose(
            [step >> m.laplace(1.0), first.target >> t.count() >> m.laplace(1.0)]
        ),
        "afterwards": step >> m.laplace(1.0) >> abs,
        "later": step >> t.declared(lambda x: x, **same),
    }[way]
    with pytest.raises(SpaceMismatch, match="sample the composed function instead"):
        first >> after


def test_the_composed_function_is_the_way(ledger):
    """What the message advises works: the steps are sampled with the function."""
    step = SPACE >> t.map_rows(lambda v: v * 1e6, Cell(low=0, high=1e6))
    f = lambda rows: mean(step(rows))  # noqa: E731
    s = sampled(f)
    assert s.value > 1000
    chain = t.from_sensitivity(f, s) >> m.laplace(s.value)
    assert chain(np.full(20, 0.5)) != 0
    assert chain.guarantee(1).gamma == s.gamma


def test_the_relation_alone_may_change_before():
    """Rows added and removed at a public size are rows replaced: the same rows."""
    first = Space(domain=SPACE.domain, metric=SYMMETRIC) >> t.to_change_one()
    chain = first >> t.from_sensitivity(mean, sampled(), source=first.target)
    assert float(chain(np.full(20, 0.5))) == 0.5


def test_columns_by_name_are_no_source():
    """No population gives a mapping of arrays."""
    table = Space(domain=Table.of({"x": Cell(low=0, high=1)}, size=20), metric=CHANGE_ONE)
    with pytest.raises(ParameterError, match="columns by name"):
        t.from_sensitivity(mean, sampled(), source=table)


def test_rows_outside_of_the_range_are_clamped():
    """As in a release, unless the caller lets them pass."""
    s, odd = sampled(), np.append(np.full(19, 0.5), 1e9)
    assert float(t.from_sensitivity(mean, s)(odd)) == pytest.approx(0.525)
    assert float(t.from_sensitivity(mean, s, outside="allow")(odd)) > 1e6
    with pytest.raises(ParameterError, match="outside"):
        t.from_sensitivity(mean, s, outside="ignore")


def test_no_movement_is_no_licence_for_any_noise():
    """As in a release: a chain stated epsilon 0 for noise of any scale."""
    f = lambda rows: 3.0  # noqa: E731
    s = sampled(f)
    with pytest.raises(ZeroSensitivity):
        t.from_sensitivity(f, s)
    proven = hs.proven_sensitivity(0.0, argument="a constant")
    assert t.from_sensitivity(f, proven).map(1).value == 0


@pytest.mark.parametrize(("answer", "dims"), [(np.ptp, 1), (np.sort, None), (np.sort, 3)])
def test_the_length_of_answers_is_checked_before_private_rows_are_seen(answer, dims):
    """It is known from the sampling."""
    s = sampled(answer)
    with pytest.raises(ParameterError, match="dims"):
        t.from_sensitivity(answer, s, dims=dims)
