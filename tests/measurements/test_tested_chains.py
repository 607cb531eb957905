"""Stable mode and propose-test at the end of a chain: exact losses of several rows."""

import math

import numpy as np
import pytest
from tests.mechanisms.test_propose_test import CASES, divergence
from tests.mechanisms.test_propose_test import graph as list_tables
from tests.mechanisms.test_stable_mode import KEYS, exceeds, graph, rows_of

import hushed as hs
from hushed import measurements as m
from hushed import noise
from hushed import transformations as t
from hushed.errors import BadRows, ParameterError, SpaceMismatch
from hushed.mechanisms._stability import DistanceTest
from hushed.spaces import (
    CHANGE_ONE,
    PRIVACY_PROFILE,
    PURE,
    SYMMETRIC,
    USERS,
    Cell,
    Column,
    Space,
    Table,
)

TEXTS = Space(domain=Column(cell=Cell(type="string")), metric=SYMMETRIC)
SIX = Space(domain=Column(cell=Cell(type="string"), size=6), metric=CHANGE_ONE)
ANY = Space(domain=Column(cell=Cell(low=0, high=9)), metric=SYMMETRIC)
FIVE = Space(domain=Column(cell=Cell(low=0, high=9), size=5), metric=CHANGE_ONE)
MODE = hs.statistics.mode(KEYS)
WINNER = m.stable_mode(MODE, epsilon=1.0, delta=0.05)
MEDIAN = hs.statistics.median(low=0, high=9)
MIDDLE = m.propose_test(MEDIAN, bound=0.4, epsilon=1.0, delta=0.02)


@pytest.fixture
def tested(monkeypatch):
    """What is compared with the noise of a test, and with which noise; every table passes it.

    The noise of an answer is none.
    """
    calls = []

    def passes(self, distance):
        calls.append((int(distance), self.threshold, float(self.level)))
        return True

    monkeypatch.setattr(DistanceTest, "passes", passes)
    monkeypatch.setattr(noise, "discrete_laplace", lambda scale: 0)
    return calls


def chance_of(call):
    """Probability that a table passes, by summing over the noise."""
    distance, bar, level = call
    return exceeds(level, bar - distance)


@pytest.mark.slow_cases("2.0-0.3-True", "1.0-0.05-True")
@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.05), (0.5, 0.01), (2.0, 0.3)])
def test_the_mode_of_several_rows_loses_delta_to_the_last_digit(tested, private, epsilon, delta):
    """All tables, all distances up to 5: never more than the map says, and at each all of it."""
    s = hs.statistics.mode(KEYS, rows=None if private else 6)
    first = (TEXTS if private else SIX) >> t.map_rows(str, Cell(type="string"))
    chain = first >> m.stable_mode(s, epsilon=epsilon, delta=delta)
    counts, modes, apart = graph(private)
    told = [chain(rows_of(each)) for each in counts]
    assert told == [KEYS[mode] for mode in modes]
    chance = np.array([chance_of(call) for call in tested])
    for rows in range(1, 6):
        stated = chain.map(rows).delta(rows * epsilon)
        kept, grown = math.exp(rows * epsilon), 0.0
        for i, j in zip(*np.nonzero(apart == rows), strict=True):
            refused = max(0.0, (1 - chance[i]) - kept * (1 - chance[j]))
            shared = chance[j] if modes[i] == modes[j] else 0.0
            grown = max(grown, refused + max(0.0, chance[i] - kept * shared))
        assert grown <= stated * (1 + 1e-9)
        wanted = exceeds(epsilon, tested[0][1] - rows + 1)
        if private or rows < 5:  # six rows that are replaced hold no greater distance from a jump
            assert grown == pytest.approx(wanted, rel=1e-9)
        if rows > 1:  # for one row it is delta as it was asked for
            assert stated == pytest.approx(max(wanted, delta), rel=1e-9)
        # Group privacy of any mechanism whatever allows more.
        any_other = delta * sum(math.exp(i * epsilon) for i in range(rows))
        assert stated <= any_other * (1 + 1e-9)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("bound", [0.4, 2.5])
@pytest.mark.parametrize(("epsilon", "split", "delta"), [(1.0, 0.5, 0.02), (2.0, 0.3, 0.001)])
def test_no_small_tables_lose_more_than_several_rows_may(
    tested, name, bound, epsilon, split, delta
):
    """All tables, all distances up to 4; where the bound is far too small nearly all is lost."""
    s, f, sizes, private = CASES[name]
    bound = bound / 3 if name == "mean" else bound
    space = ANY if private else FIVE
    step = m.propose_test(s, bound=bound, epsilon=epsilon, delta=delta, split=split)
    chain = space >> t.clip(0, 9) >> step
    tables, apart = list_tables(sizes, private)
    answers = [chain(list(map(float, table))) for table in tables]
    assert answers == pytest.approx([float(f(table)) for table in tables], abs=1e-9)
    laws = list(zip(map(chance_of, tested), answers, strict=True))
    scale = bound / (epsilon * (1 - split))
    for rows in range(1, 5):
        stated = chain.map(rows).delta(rows * epsilon)
        pairs = zip(*np.nonzero(apart == rows), strict=True)
        worst = max(divergence(laws[i], laws[j], rows * epsilon, scale) for i, j in pairs)
        assert worst <= stated * (1 + 1e-9)
        if bound <= 0.4 and rows < 3:
            assert worst > 0.8 * exceeds(epsilon * split, tested[0][1] - rows + 1)


@pytest.mark.parametrize("step", [WINNER, MIDDLE])
def test_one_row_is_promised_what_a_release_promises(step):
    """The same guarantee and the same curve as of the mechanism; nothing is lost at distance 0."""
    chain = (TEXTS if step is WINNER else ANY) >> step
    mechanism = chain.settings[1]
    assert chain.guarantee(1, delta=mechanism.delta) == mechanism.guarantee
    curve = chain.map(1)
    assert [curve.delta(e) for e in (0, 0.3, 1.0, 2.0)] == [
        mechanism.loss.delta(e) for e in (0, 0.3, 1.0, 2.0)
    ]
    assert chain.map(0).delta(0) == 0
    deltas = [chain.map(rows).delta(rows * 1.0) for rows in range(1, 40)]
    assert deltas == sorted(deltas)
    assert deltas[-1] == 1 or deltas[-1] > 1 - 1e-6
    assert chain.map(10**6).delta(5.0) == 1
    with pytest.raises(
        ParameterError, match="says nothing in terms of PURE: ask for PRIVACY_PROFILE of"
    ):
        chain.map(1, PURE)


def test_users_with_several_rows_pay_for_them():
    """Three rows of one user: three times epsilon, and delta for three rows."""
    table = Table.of({"who": Cell(type="string"), "ward": Cell(type="string")}, key="who")
    users = Space(domain=table, metric=USERS) >> t.limit_rows(3) >> t.select("ward") >> WINNER
    rows = TEXTS >> WINNER
    assert users.map(1).delta(3.0) == rows.map(3).delta(3.0) > rows.map(1).delta(3.0)
    promise = users.guarantee(1, delta=rows.map(3).delta(3.0))
    assert promise.unit == "user"
    assert promise.epsilon == pytest.approx(3.0, rel=1e-12)


def test_the_noise_is_that_of_a_release(tested):
    """The same distance is tested, with the same noise, and the same answer comes out."""
    s = hs.statistics.median(low=0, high=9)
    given = {"bound": 1.5, "epsilon": 1.0, "delta": 0.01, "split": 0.25}
    rows = [0.5, 3.0, 3.0, 8.25, 9.0]
    chained = (ANY >> m.propose_test(s, **given))(rows)
    assert chained == hs.release(s, rows, hs.ProposeTest(s, **given)).value
    votes = ["a", "b", "b", "c", "b"]
    told = (TEXTS >> m.stable_mode(MODE, epsilon=0.5, delta=0.1))(votes)
    assert told == hs.release(MODE, votes, hs.StableMode(MODE, epsilon=0.5, delta=0.1)).value
    assert tested[0] == tested[1] != tested[2] == tested[3]


def test_in_compositions_and_in_disjoint_parts():
    """Curves add up; of disjoint parts one row costs that of one part, two that of a group."""
    table = Table.of({"ward": Cell(type="string"), "vote": Cell(type="string")})
    space = Space(domain=table, metric=SYMMETRIC)
    winner = t.select("vote") >> WINNER
    parts = space >> t.group_by("ward", ["a", "b"]) >> m.parallel(winner)
    both = m.compose([space >> winner, parts])
    assert parts.map(1).delta(1.0) == pytest.approx(0.05)
    assert both.map(1).delta(2.0) == pytest.approx(1 - 0.95**2)
    # Two rows in one part lose what `parts` at most may, and one row in each what two parts do.
    apart = hs.privacy_loss.compose([(TEXTS >> WINNER).map(1)] * 2)
    for level in (0.5, 1.0, 2.0, 3.0):
        stated = parts.map(2).delta(level)
        assert stated >= max((TEXTS >> WINNER).map(2).delta(level), apart.delta(level))
    assert parts.map(2).delta(2.0) == pytest.approx(0.05 * (1 + math.e), rel=1e-6)
    assert parts.map(2).delta(1e4) >= 0.05


MISFITS = {
    "replaced rows": (SIX, WINNER, r"stable_mode takes .*put to_symmetric\(\) before it"),
    "a table": (
        Space(domain=Table.of({"age": Cell()}), metric=SYMMETRIC),
        MIDDLE,
        r"propose_test takes .*put select\(column\) before it",
    ),
    "texts": (TEXTS, MIDDLE, r"put cast\('float'\) >> impute\(value\) before it"),
    "an answer": (ANY >> t.count(), MIDDLE, "propose_test takes a column of numbers"),
    "counts": (TEXTS >> t.histogram(KEYS), WINNER, "stable_mode takes a column"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_what_does_not_fit_is_refused_with_what_would(name):
    """The message names the step, and what to put before it."""
    left, step, text = MISFITS[name]
    with pytest.raises(SpaceMismatch, match=text):
        left >> step


def test_bad_parameters_rows_and_opendp_are_refused():
    """The mechanism checks its parameters at once; a row out of bounds is not shown."""
    with pytest.raises(ParameterError, match="delta"):
        m.stable_mode(MODE, epsilon=1.0, delta=0)
    with pytest.raises(ParameterError, match="bound"):
        m.propose_test(MEDIAN, bound=10, epsilon=1.0, delta=1e-6)
    with pytest.raises(ParameterError, match="StableMode takes"):
        m.stable_mode(MEDIAN, epsilon=1.0, delta=1e-6)
    with pytest.raises(SpaceMismatch, match="stable_mode or propose_test"):
        ANY >> t.clip(0, 5) >> hs.ProposeTest(MEDIAN, bound=1, epsilon=1.0, delta=1e-6)
    with pytest.raises(BadRows, match="out of bounds") as refused:
        (ANY >> MIDDLE)([1.0, 77.125])
    assert "77" not in str(refused.value)
    pytest.importorskip("opendp")
    for chain, name in ((TEXTS >> WINNER, "stable_mode"), (ANY >> MIDDLE, "propose_test")):
        with pytest.raises(ParameterError, match=f"no equivalent of {name}"):
            m.to_opendp(chain)


def test_a_curve_is_stated_in_other_terms_only_where_it_can():
    """Asked for its own terms it gives the curve; there is no rho where delta is lost."""
    chain = TEXTS >> WINNER
    assert chain.map(2, PRIVACY_PROFILE).delta(2.0) == chain.map(2).delta(2.0)
    with pytest.raises(ParameterError, match="ZCDP"):
        chain.map(1, hs.spaces.ZCDP)
