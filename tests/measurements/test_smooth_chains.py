"""Smooth noise at the end of a chain: losses of its densities on small tables, what is refused."""

import itertools

import numpy as np
import pytest

import hushed as hs
from hushed import measurements as m
from hushed import noise
from hushed import transformations as t
from hushed.errors import BadRows, ParameterError, SpaceMismatch
from hushed.spaces import CHANGE_ONE, PRIVACY_PROFILE, SYMMETRIC, ZCDP, Cell, Column, Space

EPSILON = 0.7
VALUES = (0.0, 2.0, 3.0, 9.0)
ANY = Space(domain=Column(cell=Cell(low=0, high=9)), metric=SYMMETRIC)
FOUR = Space(domain=Column(cell=Cell(low=0, high=9), size=4), metric=CHANGE_ONE)
CASES = {
    "median": (ANY, hs.statistics.median(low=0, high=9)),
    "sized mean": (FOUR, hs.statistics.trimmed_mean(0.0, rows=4, low=0, high=9)),
}
POINTS = np.concatenate([np.linspace(-30, 40, 1401), [-1e9, 1e9]])
MEDIAN = m.smooth(hs.statistics.median(low=0, high=9), epsilon=EPSILON)


@pytest.fixture
def drawn(monkeypatch):
    """Logarithms of the densities that each noise is drawn with, by their definition."""
    laws = []

    def lomax(value, *, scale, tail, low, high):
        far = np.abs(POINTS - float(value)) / float(scale)
        laws.append(-np.log(float(scale)) - (tail + 1) * np.log1p(far))
        return low

    def student(value, *, scale, low, high):
        far = (POINTS - float(value)) / float(scale)
        laws.append(-np.log(float(scale)) - 1.5 * np.log1p(far * far / 2))
        return low

    monkeypatch.setattr(noise, "add_lomax", lomax)
    monkeypatch.setattr(noise, "add_student", student)
    return laws


def distance(one, other, metric):
    """Rows added and removed, or rows replaced, from one table to another."""
    values = set(one) | set(other)
    up = sum(max(one.count(v) - other.count(v), 0) for v in values)
    down = sum(max(other.count(v) - one.count(v), 0) for v in values)
    return up + down if metric == SYMMETRIC else max(up, down)


@pytest.mark.parametrize("law", ["lomax", "t2"])
@pytest.mark.parametrize("name", CASES)
def test_no_two_small_tables_lose_more_than_the_map_says(name, law, drawn):
    """At every distance, after the whole chain; one row costs at least half of its epsilon."""
    space, statistic = CASES[name]
    chain = space >> t.clip(0, 9) >> m.smooth(statistic, epsilon=EPSILON, noise=law)
    sizes = [4] if space == FOUR else range(5)
    tables = [r for n in sizes for r in itertools.combinations_with_replacement(VALUES, n)]
    for rows in tables:
        chain(list(rows))
    worst = {}
    for (one, its), (other, their) in itertools.combinations(zip(tables, drawn, strict=True), 2):
        far = distance(one, other, space.metric)
        lost = float(np.abs(its - their).max())
        assert lost <= chain.map(far) * (1 + 1e-9)
        worst[far] = max(worst.get(far, 0.0), lost)
    assert 0.5 * EPSILON < worst[1] <= EPSILON * (1 + 1e-9)
    assert max(worst.values()) > EPSILON  # several rows do cost more than one


def test_rows_add_up_as_decimals_in_every_measure():
    """Epsilon 0.1 for three rows is 0.3, where doubles would give more."""
    chain = ANY >> m.smooth(hs.statistics.median(low=0, high=9), epsilon=0.1)
    assert [chain.map(d) for d in (0, 1, 2, 3)] == [0.0, 0.1, 0.2, 0.3]
    assert chain.guarantee(2).neighbours == "add-remove"
    three = hs.privacy_loss.randomised_response(0.3)
    assert chain.map(3, PRIVACY_PROFILE).delta(0.1) == pytest.approx(three.delta(0.1), rel=1e-9)
    assert chain.map(3, ZCDP) == pytest.approx(0.3 * np.tanh(0.15), rel=1e-9)
    assert m.compose([chain, chain]).map(1) == 0.2


def test_the_noise_is_that_of_a_release(drawn):
    """The same density as by hs.release, with its smoothing and its tail."""
    statistic = hs.statistics.median(low=0, high=9)
    given = {"epsilon": EPSILON, "tail": 3, "smoothing": 0.1}
    rows = [0.5, 3.0, 3.0, 8.25, 9.0]
    (ANY >> m.smooth(statistic, **given))(rows)
    hs.release(statistic, rows, hs.Smooth(statistic, **given))
    assert np.array_equal(drawn[0], drawn[1])


def test_what_cannot_be_smoothed_is_refused():
    """Parameters, columns of another size or relation, rows out of bounds, and OpenDP."""
    with pytest.raises(ParameterError, match="takes a statistic of numbers"):
        m.smooth(hs.statistics.mode(["a", "b"]), epsilon=1.0)
    with pytest.raises(ParameterError, match="smoothing"):
        m.smooth(hs.statistics.median(low=0, high=9), epsilon=1.0, smoothing=1.0)
    with pytest.raises(SpaceMismatch, match="smooth"):
        FOUR >> MEDIAN
    with pytest.raises(BadRows, match="out of bounds") as refused:
        (ANY >> MEDIAN)([1.0, 77.125])
    assert "77" not in str(refused.value)
    pytest.importorskip("opendp")
    with pytest.raises(ParameterError, match="no equivalent of smooth"):
        m.to_opendp(ANY >> MEDIAN)
