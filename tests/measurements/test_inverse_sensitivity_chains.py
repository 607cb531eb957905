"""Statistics at the end of a chain: exact losses on every small table, and what is refused."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import hushed as hs
from hushed import measurements as m
from hushed import noise
from hushed import transformations as t
from hushed.errors import BadRows, ParameterError, SpaceMismatch
from hushed.spaces import (
    CHANGE_ONE,
    PRIVACY_PROFILE,
    PURE,
    SYMMETRIC,
    USERS,
    ZCDP,
    Cell,
    Column,
    Space,
    Table,
)

EPSILON = 0.7
VALUES = (0.0, 2.0, 3.0, 9.0)
WARDS = ("a", "b", "c")
OFFERED = (0.0, 1.0, 2.5, 4.0, 9.0)
ANY = Space(domain=Column(cell=Cell(low=0, high=9)), metric=SYMMETRIC)
FOUR = Space(domain=Column(cell=Cell(low=0, high=9), size=4), metric=CHANGE_ONE)
TEXTS = Space(domain=Column(cell=Cell(type="string")), metric=SYMMETRIC)
CASES = {
    "quantile": (ANY, hs.statistics.quantile(0.3, low=0, high=9), OFFERED),
    "maximum": (ANY, hs.statistics.maximum(low=0, high=9), OFFERED),
    "sized median": (FOUR, hs.statistics.median(rows=4, low=0, high=9), OFFERED),
    "sized mean": (FOUR, hs.statistics.trimmed_mean(0.0, rows=4, low=0, high=9), OFFERED),
    "mode": (TEXTS, hs.statistics.mode(WARDS), None),
}


@pytest.fixture
def drawn(monkeypatch):
    """Everything that is handed to the drawing of a choice; the first candidate is taken."""
    calls = []

    def select(scores, *, width, epsilon):
        calls.append((np.asarray(scores, float).tolist(), width, epsilon))
        return 0

    monkeypatch.setattr(noise, "select", select)
    return calls


def log_law(call):
    """Logarithms of the chances of the candidates, by the definition of the exponential choice."""
    scores, width, epsilon = call
    powers = np.array(scores) * epsilon / width
    return powers - np.logaddexp.reduce(powers)


def distance(one, other, metric):
    """Rows added and removed, or rows replaced, from one sorted table to another."""
    values = set(one) | set(other)
    up = sum(max(one.count(v) - other.count(v), 0) for v in values)
    down = sum(max(other.count(v) - one.count(v), 0) for v in values)
    return up + down if metric == SYMMETRIC else max(up, down)


@pytest.mark.parametrize("name", CASES)
def test_no_two_small_tables_lose_more_than_the_map_says(name, drawn):
    """At every distance up to 8, what is drawn with after the whole chain; one row can cost it."""
    space, statistic, offered = CASES[name]
    identity = t.clip(0, 9) if space != TEXTS else t.map_rows(str, Cell(type="string"))
    step = m.inverse_sensitivity(statistic, epsilon=EPSILON, candidates=offered)
    chain = space >> identity >> step
    values = WARDS if space == TEXTS else VALUES
    sizes = [4] if space == FOUR else range(5)
    tables = [r for n in sizes for r in itertools.combinations_with_replacement(values, n)]
    for rows in tables:
        chain(list(rows))
    laws = dict(zip(tables, map(log_law, drawn), strict=True))
    worst = {}
    for one, other in itertools.combinations(tables, 2):
        far = distance(one, other, space.metric)
        lost = float(np.abs(laws[one] - laws[other]).max())
        assert lost <= chain.map(far) * (1 + 1e-12)
        worst[far] = max(worst.get(far, 0.0), lost)
    assert 0.5 * EPSILON < worst[1] <= EPSILON * (1 + 1e-12)
    assert max(worst.values()) > EPSILON  # several rows do cost more than one


def test_rows_add_up_as_decimals():
    """Epsilon 0.1 for three rows is 0.3, where doubles would give more; of users, too."""
    step = m.inverse_sensitivity(hs.statistics.median(low=0, high=9), epsilon=0.1)
    chain = ANY >> step
    assert [chain.map(d) for d in (0, 1, 2, 3)] == [0.0, 0.1, 0.2, 0.3]
    assert chain.guarantee(2).epsilon == 0.2
    assert (chain.guarantee().neighbours, chain.guarantee().unit) == ("add-remove", "row")
    table = Table.of({"who": Cell(type="string"), "age": Cell(low=0, high=9)}, key="who")
    users = Space(domain=table, metric=USERS) >> t.limit_rows(3) >> t.select("age") >> step
    assert (users.guarantee(1).epsilon, users.guarantee(1).unit) == (0.3, "user")
    sized = m.inverse_sensitivity(hs.statistics.median(rows=4, low=0, high=9), epsilon=0.1)
    assert (FOUR >> sized).guarantee(2).neighbours == "replace-one"


def test_the_law_and_the_record_are_those_of_a_release(drawn):
    """The same scores are drawn with as by hs.release, and the same curve is charged."""
    statistic = hs.statistics.median(low=0, high=9)
    mechanism = hs.InverseSensitivity(statistic, epsilon=EPSILON)
    chain = ANY >> m.inverse_sensitivity(statistic, epsilon=EPSILON)
    rows = [0.5, 3.0, 3.0, 8.25, 9.0]
    released = hs.release(statistic, rows, mechanism).value
    assert chain(rows) == released
    assert drawn[0] == drawn[1]
    assert chain.guarantee() == mechanism.guarantee
    curve = chain.map(1, PRIVACY_PROFILE)
    assert [curve.delta(e) for e in (0, 0.2, 0.5, 0.7)] == [
        mechanism.loss.delta(e) for e in (0, 0.2, 0.5, 0.7)
    ]
    assert Fraction(repr(chain.map(2, ZCDP))) == Fraction("1.4") ** 2 / 8
    assert chain.map(2, PURE) == 1.4


def test_candidates_and_a_prior_reach_the_draw():
    """A candidate of no weight is never drawn, and every other one can be."""
    step = m.inverse_sensitivity(
        hs.statistics.median(low=0, high=9), epsilon=1e-9, candidates=OFFERED, prior=[0, 1, 1, 0, 1]
    )
    found = {(ANY >> step)([1.0, 2.0]) for _ in range(300)}
    assert found == {1.0, 2.5, 9.0}


def test_it_works_in_compositions_and_in_disjoint_parts():
    """Losses add up, and of disjoint parts one row costs that of one part."""
    table = Table.of({"ward": Cell(type="string"), "age": Cell(low=0, high=9)})
    visits = Space(domain=table, metric=SYMMETRIC)
    median = t.select("age") >> m.inverse_sensitivity(
        hs.statistics.median(low=0, high=9), epsilon=0.4
    )
    parts = visits >> t.group_by("ward", ["a", "b"]) >> m.parallel(median)
    both = m.compose([visits >> median, parts])
    assert (parts.map(1), both.map(1)) == (0.4, 0.8)
    assert 0.8 <= parts.map(2) < 0.8 + 1e-12
    answer = both({"ward": ["a", "b", "b"], "age": [1.0, 2.0, 3.0]})
    assert 0 <= answer[0] <= 9
    assert sorted(answer[1]) == ["a", "b"]


MEDIAN = m.inverse_sensitivity(hs.statistics.median(low=0, high=9), epsilon=1.0)
SIZED = m.inverse_sensitivity(hs.statistics.median(rows=4, low=0, high=9), epsilon=1.0)
MISFITS = {
    "texts": (TEXTS, MEDIAN, r"put cast\('float'\) >> impute\(value\) before it"),
    "a table": (
        Space(domain=Table.of({"age": Cell()}), metric=SYMMETRIC),
        MEDIAN,
        r"put select\(column\) before it",
    ),
    "missing values": (
        Space(domain=Column(cell=Cell(missing=True)), metric=SYMMETRIC),
        MEDIAN,
        r"put impute\(value\) before it",
    ),
    "replaced rows": (FOUR, MEDIAN, r"put to_symmetric\(\) before it"),
    "a private size": (ANY, SIZED, r"put resize\(4\) before it"),
    "another size": (
        Space(domain=Column(cell=Cell(), size=5), metric=CHANGE_ONE),
        SIZED,
        r"put resize\(4\) before it",
    ),
    "rows added": (
        Space(domain=FOUR.domain, metric=SYMMETRIC),
        SIZED,
        r"put to_change_one\(\) before it",
    ),
    "an answer": (ANY >> t.count(), MEDIAN, "takes a column of numbers"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_what_does_not_fit_is_refused_with_what_would(name):
    """The message names a step, and with that step the chain is built."""
    left, step, text = MISFITS[name]
    with pytest.raises(SpaceMismatch, match=text):
        left >> step


def test_the_advised_steps_lead_to_a_chain():
    """What the messages advise is taken, and counts rows as it should."""
    assert (FOUR >> t.to_symmetric() >> MEDIAN).map(1) == 2.0  # one replaced: two rows
    assert (ANY >> t.resize(4, fill=0.0) >> SIZED).map(1) == 1.0
    sized = Space(domain=FOUR.domain, metric=SYMMETRIC)
    assert (sized >> t.to_change_one() >> SIZED).map(2) == 1.0


def test_bad_parameters_and_mechanisms_are_refused():
    """The mechanism checks its parameters at once; a mechanism itself is no step."""
    with pytest.raises(ParameterError, match="epsilon"):
        m.inverse_sensitivity(hs.statistics.median(low=0, high=9), epsilon=0)
    with pytest.raises(ParameterError, match="takes a statistic"):
        m.inverse_sensitivity(np.median, epsilon=1.0)
    with pytest.raises(SpaceMismatch, match="inverse_sensitivity"):
        (
            ANY
            >> t.clip(0, 5)
            >> hs.InverseSensitivity(hs.statistics.median(low=0, high=9), epsilon=1.0)
        )


def test_private_rows_pass_the_same_gate():
    """A row out of its declared bounds is refused, and not shown."""
    with pytest.raises(BadRows, match="out of bounds") as refused:
        (ANY >> MEDIAN)([1.0, 77.125])
    assert "77" not in str(refused.value)
    with pytest.raises(BadRows, match="number of rows"):
        (FOUR >> SIZED)([1.0, 2.0])


def test_opendp_has_none_of_it():
    """Its scores count ranks, not rows that must change, so it is refused by name."""
    pytest.importorskip("opendp")
    with pytest.raises(ParameterError, match="no equivalent of inverse_sensitivity"):
        m.to_opendp(ANY >> MEDIAN)
