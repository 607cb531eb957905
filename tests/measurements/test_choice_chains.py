"""Top k and noisy max at the end of a chain: exact losses on small tables, what is refused."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.mechanisms.test_noisy_max import law as list_logs

import hushed as hs
from hushed import measurements as m
from hushed import transformations as t
from hushed.errors import ParameterError, SpaceMismatch
from hushed.measurements import _choosing as choosing
from hushed.mechanisms import _noisy_max, _top_k
from hushed.spaces import (
    ABSOLUTE,
    CHANGE_ONE,
    L1,
    L2,
    ONE_SIDED,
    PRIVACY_PROFILE,
    SUP,
    SYMMETRIC,
    USERS,
    ZCDP,
    Cell,
    Column,
    Numbers,
    Space,
    Table,
)

KEYS = ("a", "b", "c")
ADDED = Space(domain=Column(cell=Cell(type="string")), metric=SYMMETRIC)
REPLACED = Space(domain=Column(cell=Cell(type="string"), size=4), metric=CHANGE_ONE)
ROUNDED = 2.0**-18  # more than the grids of the choices add, relatively
CASES = {
    "one-sided": (ADDED, t.histogram(KEYS, norm="one-sided"), range(5), 1),
    "sup": (ADDED, t.histogram(KEYS, norm="sup"), range(5), 2),
    "l1": (ADDED, t.histogram(KEYS, norm="l1"), range(5), 1),
    "replaced": (REPLACED, t.histogram(KEYS, norm="sup"), (4,), 2),
}


def list_tables(sizes):
    return [r for n in sizes for r in itertools.combinations_with_replacement(KEYS, n)]


def distance(one, other, space):
    up = sum(max(one.count(key) - other.count(key), 0) for key in KEYS)
    down = sum(max(other.count(key) - one.count(key), 0) for key in KEYS)
    return up + down if space is ADDED else max(up, down)


@pytest.fixture
def chosen(monkeypatch):
    """Steps, places and rates that a joint choice is drawn with; the first ones are taken."""
    calls = []

    def select_top(steps, *, k, rate):
        calls.append(([int(each) for each in steps], k, rate))
        return np.arange(k)

    monkeypatch.setattr(choosing, "select_top", select_top)
    monkeypatch.setattr(_top_k, "select_top", select_top)
    return calls


def log_law(call):
    """Logarithms of the chances of all choices, by the definition of the joint mechanism."""
    steps, k, rate = call
    ordered = sorted(steps, reverse=True)
    with mpmath.workdps(30):
        powers = [
            -mpmath.mpf(rate.numerator)
            / rate.denominator
            * max(ordered[place] - steps[index] for place, index in enumerate(choice))
            for choice in itertools.permutations(range(len(steps)), k)
        ]
        total = mpmath.log(mpmath.fsum(map(mpmath.exp, powers)))
        return np.array([float(power - total) for power in powers])


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("name", CASES)
def test_no_two_small_tables_lose_more_by_top_k_than_the_map_says(name, k, chosen):
    """All tables of up to four rows, at every distance; the losses lie in a range of epsilon."""
    space, counts, sizes, _ = CASES[name]
    chain = space >> t.map_rows(str, Cell(type="string")) >> counts >> m.top_k(k, 3.0)
    tables = list_tables(sizes)
    for rows in tables:
        chain(list(rows))
    laws = dict(zip(tables, map(log_law, chosen), strict=True))
    stated, worst = {}, {}
    for far in range(1, 9):
        epsilon, profile = chain.map(far), chain.map(far, PRIVACY_PROFILE)
        stated[far] = epsilon, [(each, profile.delta(each)) for each in (0.0, 0.4 * epsilon)]
    for one, other in itertools.permutations(tables, 2):
        far = distance(one, other, space)
        moved = laws[one] - laws[other]
        epsilon, deltas = stated[far]
        assert np.abs(moved).max() <= epsilon * (1 + 1e-12)
        assert moved.max() - moved.min() <= epsilon * (1 + 1e-12)
        for level, allowed in deltas:
            delta = np.maximum(np.exp(laws[one]) - math.exp(level) * np.exp(laws[other]), 0).sum()
            assert delta <= allowed + 1e-12
        worst[far] = max(worst.get(far, 0.0), float(moved.max() - moved.min()))
    ways = CASES[name][3] * (1 if k == 1 else 2)
    if k == 1:  # the exponential mechanism, all of whose range is reached
        reached = 1.0 if name == "replaced" else 1.0 / CASES[name][3]
        assert worst[1] == pytest.approx(ways / 3.0 * reached, rel=1e-6)
    else:
        assert worst[1] > 0.2 * ways / 3.0
    assert worst[3] > worst[1]


@pytest.mark.parametrize("name", CASES)
def test_no_two_small_tables_lose_more_by_noisy_max_than_the_map_says(name, monkeypatch):
    """Index and gap, on a grid as coarse as the noise; at every distance up to four."""
    monkeypatch.setattr(choosing, "NOISY_MAX_BITS", 1)
    calls = []

    def add_noise(steps, scale):
        calls.append((tuple(int(each) for each in steps), float(scale)))
        return steps

    monkeypatch.setattr(_noisy_max, "add_noise", add_noise)
    space, counts, sizes, ways = CASES[name]
    chain = space >> counts >> m.noisy_max(2.0)  # a grid of 1
    tables = list_tables(sizes)
    for rows in tables:
        chain(list(rows))
    laws = {}
    for rows, (steps, scale) in zip(tables, calls, strict=True):
        assert scale == 2.0
        laws[rows] = list_logs(steps, scale)
    worst = {}
    for one, other in itertools.combinations(tables, 2):
        far = distance(one, other, space)
        if far > 4:
            continue
        lost = float(np.abs(laws[one] - laws[other]).max())
        # On so coarse a grid rounding costs a whole step, but in the sup norm, which says so.
        assert lost <= chain.map(far) * (1 + 1e-9)
        assert lost <= ways * far / 2.0 * (1 + 1e-9)
        worst[far] = max(worst.get(far, 0.0), lost)
    assert worst[1] > 0.4 * ways / 2.0
    assert worst[3] > worst[1]


@pytest.mark.parametrize("bits", [0, 3])
@pytest.mark.parametrize("metric", [SUP, ONE_SIDED, L1])
def test_scores_beside_a_step_lose_no_more(metric, bits, monkeypatch):
    """Real scores, which a coarse grid rounds apart: moves at all distances are counted in it."""
    monkeypatch.setattr(choosing, "NOISY_MAX_BITS", bits)
    monkeypatch.setattr(choosing, "TOP_K_BITS", bits)
    space = Space(domain=Numbers(dims=2), metric=metric)
    rng = np.random.default_rng(5)
    winner, best = space >> m.noisy_max(1.0), space >> m.top_k(1, 1.0)
    size = {SUP: 2, ONE_SIDED: 1, L1: 1}[metric]
    nearest = 0.0
    for _ in range(1000):
        one = rng.integers(-4, 4, 2) / 2 + rng.choice([0, -(2.0**-30)], 2)
        moved = rng.uniform(-1, 1, 2)
        rise, fall = max(0.0, *moved), max(0.0, *-moved)
        far = {SUP: max(rise, fall), ONE_SIDED: rise + fall, L1: float(np.abs(moved).sum())}[metric]
        steps = [np.floor(x * 2.0**bits) / 2.0**bits for x in (one, one + moved)]
        apart = float(np.ptp(steps[1] - steps[0]))  # what noise and choice see moves so far
        assert apart <= winner.map(far) * (1 + 1e-12)
        assert apart <= best.map(far) * (1 + 1e-12)
        nearest = max(nearest, apart / winner.map(far))
    assert nearest > 0.6
    assert winner.map(1000.0) == pytest.approx(size * 1000.0, rel=2e-3)


def test_maps_at_all_distances():
    """Nothing at 0, without bound at infinity, and growing in between; k = 1 pays half."""
    space = Space(domain=Numbers(dims=4), metric=SUP)
    for step, factor in ((m.noisy_max(2.0), 1), (m.top_k(1, 2.0), 1), (m.top_k(3, 2.0), 2)):
        chain = space >> step
        assert (chain.map(0), chain.map(math.inf)) == (0, math.inf)
        found = [chain.map(d) for d in (1e-300, 0.1, 1.0, 7.0, 1e300)]
        assert found == sorted(found)
        assert found[2] == pytest.approx(factor, rel=ROUNDED)
        assert Fraction(found[2]) >= factor
        assert found[3] == pytest.approx(7 * factor, rel=ROUNDED)
    assert (space >> m.top_k(3, 2.0)).map(1.0, ZCDP) == pytest.approx(0.5, rel=ROUNDED)  # 2**2 / 8
    assert (space >> m.noisy_max(2.0)).map(1.0, ZCDP) == pytest.approx(math.tanh(0.5), rel=ROUNDED)


def test_the_choice_is_that_of_a_release(chosen):
    """At the scale of the mechanism the same is drawn with, but for what the sensitivity adds."""
    counts = ADDED >> t.histogram(KEYS, norm="sup")
    rows = ["b"] * 7 + ["a"] * 3
    mechanism = hs.TopK(2, m.chain_sensitivity(counts), epsilon=0.5)
    released = hs.release(counts, rows, mechanism)
    (counts >> m.top_k(2, mechanism.scale))(rows)
    (steps, k, rate), (others, again, other_rate) = chosen
    assert k == again == 2
    assert released.value.tolist() == [0, 1]
    one, other = Fraction(2) ** mechanism.grid / rate, Fraction(other_rate)
    grid = Fraction(2) ** (math.frexp(mechanism.scale)[1] - 1 - 30)
    assert float(grid / other) == pytest.approx(float(one), rel=1e-12)
    assert [each * 2.0**mechanism.grid for each in steps] == [each * float(grid) for each in others]
    assert (counts >> m.top_k(2, mechanism.scale)).map(1) == pytest.approx(0.5, rel=1e-6)


def test_it_is_drawn_and_read_backwards():
    """Far ahead, candidates win; the smallest scale for a target is found; users pay for rows."""
    counts = ADDED >> t.histogram(KEYS, norm="one-sided")
    rows = ["c"] * 900 + ["a"] * 400
    assert (counts >> m.top_k(2, 0.5))(rows).tolist() == [2, 0]
    won = (counts >> m.noisy_max(0.5))(rows)
    assert (won.index, round(won.gap, -2)) == (2, 500.0)
    scale = m.smallest_scale(lambda b: counts >> m.top_k(2, b), d_in=1, target=0.5)
    assert scale == pytest.approx(4.0, rel=ROUNDED)
    assert m.largest_distance(counts >> m.noisy_max(2.0), target=1.51) == 3
    table = Table.of({"who": Cell(type="string"), "ward": Cell(type="string")}, key="who")
    users = Space(domain=table, metric=USERS) >> t.limit_rows(3) >> t.select("ward")
    promise = (users >> t.histogram(KEYS, norm="one-sided") >> m.noisy_max(2.0)).guarantee()
    assert (promise.unit, promise.epsilon) == ("user", pytest.approx(1.5, rel=ROUNDED))
    both = m.compose([counts >> m.noisy_max(2.0), counts >> m.top_k(1, 2.0)])
    assert both.map(1) == pytest.approx(1.0, rel=ROUNDED)
    parts = Space(
        domain=Table.of({"w": Cell(type="string"), "v": Cell(type="string")}), metric=SYMMETRIC
    )
    inner = t.select("v") >> t.histogram(KEYS, norm="one-sided") >> m.top_k(1, 2.0)
    told = parts >> t.group_by("w", ["x", "y"]) >> m.parallel(inner)
    assert told.map(1) == pytest.approx(0.5, rel=ROUNDED)
    assert sorted(told({"w": ["x", "y"], "v": ["a", "b"]})) == ["x", "y"]


MISFITS = {
    "a column": (ADDED, "takes scores in the sup norm"),
    "counts in l2": (ADDED >> t.histogram(KEYS, norm="l2"), "counts with norm='one-sided'"),
    "one number": (Space(domain=Numbers(), metric=ABSOLUTE), "takes scores in the sup norm"),
    "answers in l2": (Space(domain=Numbers(dims=3), metric=L2), "one-sided distance or the l1"),
}


@pytest.mark.parametrize("step", [m.top_k(2, 1.0), m.noisy_max(1.0)])
@pytest.mark.parametrize("name", MISFITS)
def test_a_metric_that_does_not_fit_is_refused(name, step):
    """The message names the step, what it takes and what gives it."""
    left, text = MISFITS[name]
    with pytest.raises(SpaceMismatch, match=f"{step.name} takes .*{text}|{step.name}.*{text}"):
        left >> step


def test_bad_parameters_are_refused():
    """More places than candidates, a single candidate, bad scales; mechanisms are no steps."""
    counts = ADDED >> t.histogram(KEYS, norm="one-sided")
    with pytest.raises(SpaceMismatch, match="4 to 1048576 scores for k=4"):
        counts >> m.top_k(4, 1.0)
    with pytest.raises(SpaceMismatch, match="two scores or more"):
        ADDED >> t.histogram(["a"], norm="one-sided") >> m.noisy_max(1.0)
    for bad in (0, -1.0, math.inf, math.nan, True, "1"):
        with pytest.raises(ParameterError, match="scale must be"):
            m.top_k(1, bad)
        with pytest.raises(ParameterError, match="scale must be"):
            m.noisy_max(bad)
    for bad in (0, 1.5, True, 1 << 20):
        with pytest.raises(ParameterError, match="k must be"):
            m.top_k(bad, 1.0)
    mechanism = hs.NoisyMax(m.chain_sensitivity(counts), epsilon=1.0)
    with pytest.raises(SpaceMismatch, match="top_k or noisy_max"):
        counts >> mechanism
    pytest.importorskip("opendp")
    for step in (m.top_k(2, 1.0), m.noisy_max(1.0)):
        with pytest.raises(ParameterError, match=f"no equivalent of {step.name}"):
            m.to_opendp(ADDED >> t.histogram(KEYS, norm="l1") >> step)


def test_extreme_scales_are_drawn():
    """The smallest and the largest double lay grids beyond the doubles, and draw all the same."""
    space = Space(domain=Numbers(dims=3), metric=SUP)
    scores = np.array([-1e300, 1e308, 3.0])
    for scale in (5e-324, 1e-300, 1e300, 1.7e308):
        winner = (space >> m.noisy_max(scale))(scores)
        assert 0 <= winner.index < 3
        assert math.isfinite(winner.gap)
        assert len(set((space >> m.top_k(2, scale))(scores).tolist())) == 2
    assert (space >> m.noisy_max(1e-300))(scores).index == 1
