"""Every promise of the sampler over 10,000 samplers: covered, and not with one rank lower."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, optimize, stats

import hushed as hs
from hushed._functions._streams import streams
from hushed.sensitivity import Design, choose_rank
from hushed.sensitivity._neighbourhood import Neighbourhood
from hushed.sensitivity._pairs import BlockTrial

pytestmark = pytest.mark.slow

SAMPLERS, FALSE_ALARM = 10_000, 1e-6
LEVELS = [("0.05", 19), ("0.1", 9), ("0.25", 3)]
ROWS, VALUES, LAW = 5, (0.0, 1.0, 4.0), hs.populations.Exponential(rate=1.0)

FUNCTIONS = {
    "asymmetric": lambda t: t.mean(axis=-1) + 3 * t[..., 0],
    "heavy tail": lambda t: np.exp(2 * t).mean(axis=-1),
    "largest": lambda t: t.max(axis=-1),
    "ties": lambda t: np.floor(t).sum(axis=-1),
}
REACHES = {
    "record": Neighbourhood(rows=ROWS),
    "three rows": Neighbourhood(rows=ROWS, distance=3),
    "worst place": Neighbourhood(rows=ROWS, position="worst"),
    "simultaneous": Neighbourhood(rows=ROWS, protect="simultaneous"),
    "table": Neighbourhood(rows=ROWS, protect="table", values=len(VALUES)),
    "add-remove": Neighbourhood(rows=ROWS, neighbours="add-remove", sizes=(ROWS,)),
    "sizes": Neighbourhood(rows=6, neighbours="add-remove", sizes=(4, 5, 6)),
    "add-remove, worst": Neighbourhood(
        rows=ROWS, neighbours="add-remove", sizes=(ROWS,), position="worst"
    ),
}


def sampled(f, reach, pairs, seed):
    """Movements of the sampler, in the order in which they were drawn."""
    at_once = 2000
    design = Design(population=LAW, route="independent", rows=reach.size, count=reach.drawn)
    trial = BlockTrial(
        function=f,
        design=design,
        norm="l1",
        reach=reach,
        values=np.array(VALUES if reach.values else ()),
        symmetric=False,
        at_once=at_once,
        like=("array", np.dtype(float), ()),
        shape=(),
        fresh=False,
        private=False,
    )
    return trial(streams(seed, 0, -(-pairs // at_once)))[..., 0].ravel()[:pairs]


def set_place(tables, places, rows):
    changed = tables.copy()
    changed[np.arange(len(tables)), places] = rows
    return changed


def without(tables, place):
    return np.delete(tables, place, axis=1)


def real(name, f, rng, runs, rows=ROWS):
    """Movements of private tables, by plain code that knows what the promise says."""
    x = rng.exponential(size=(runs, rows))
    z, own = rng.exponential(size=runs), rng.exponential(size=(runs, rows))
    every, some = range(rows), rng.integers(rows, size=runs)
    if name == "record":
        others = [set_place(x, some, z)]
    elif name == "three rows":
        y, chosen = x.copy(), rng.permuted(np.tile(np.arange(rows), (runs, 1)), axis=1)
        for k in range(3):
            y[np.arange(runs), chosen[:, k]] = own[:, k]
        others = [y]
    elif name == "worst place":
        others = [set_place(x, i, z) for i in every]
    elif name == "simultaneous":
        others = [set_place(x, i, own[:, i]) for i in every]
    elif name == "table":
        others = [set_place(x, i, v) for i in every for v in VALUES]
    elif name == "add-remove, worst":
        others = [np.insert(x, i, z, axis=1) for i in range(rows + 1)]
        others += [without(x, i) for i in every]
    else:
        at, gone = rng.integers(rows + 1, size=runs), rng.integers(rows, size=runs)
        others = [
            np.array([np.insert(t, i, v) for t, i, v in zip(x, at, z, strict=True)]),
            np.array([np.delete(t, i) for t, i in zip(x, gone, strict=True)]),
        ]
    return np.max([np.abs(f(x) - f(y)) for y in others], axis=0)


def is_sharp(movements):
    """Whether the movements hardly ever coincide, so that gamma is met with equality."""
    return np.unique(movements).size > 0.999 * movements.size


def test_most_laws_have_no_ties():
    """The test below looks for equality, and for the failure of a lower rank, in many cases."""
    tried = [(name, kind) for name in REACHES for kind in FUNCTIONS]
    drawn = {(name, kind): sampled(FUNCTIONS[kind], REACHES[name], 4000, 9) for name, kind in tried}
    sharp = [each for each, movements in drawn.items() if is_sharp(movements)]
    assert len(sharp) >= 19
    assert {name for name, _ in sharp} == {*REACHES}


@pytest.mark.parametrize("kind", FUNCTIONS)
@pytest.mark.parametrize("name", REACHES)
def test_every_promise_is_covered_and_one_rank_lower_is_not(name, kind):
    """Failures are those of Binomial(10,000, gamma) at most; at one rank lower they are more."""
    f, rng = FUNCTIONS[kind], np.random.default_rng(41)
    most = max(pairs for _, pairs in LEVELS)
    drawn = sampled(f, REACHES[name], SAMPLERS * most, 11).reshape(SAMPLERS, most)
    for rows in REACHES[name].sizes or (ROWS,):
        moved = real(name, f, rng, SAMPLERS, rows)
        for gamma, pairs in LEVELS:
            rank = choose_rank("marginal", gamma=Fraction(gamma), pairs=pairs).rank
            kept = np.sort(drawn[:, :pairs], axis=1)
            failed = int((moved > kept[:, rank - 1]).sum())
            assert stats.binom.sf(failed - 1, SAMPLERS, float(gamma)) > FALSE_ALARM
            if is_sharp(drawn) and name != "sizes":  # no ties: with equality
                assert stats.binom.cdf(failed, SAMPLERS, float(gamma)) > FALSE_ALARM
                lower = int((moved > kept[:, rank - 2]).sum())
                assert stats.binom.sf(lower - 1, SAMPLERS, float(gamma)) < FALSE_ALARM


MOVEMENTS = {
    "a mean": (lambda t: t.mean(axis=-1), {}, 0.2496, lambda g: math.exp(-12 * g)),
    "a mean, three rows": (
        lambda t: t.mean(axis=-1),
        {"distance": 3},
        0.4140,
        lambda g: (
            2
            * integrate.quad(
                lambda y: stats.gamma.sf(12 * g + y, 3) * stats.gamma.pdf(y, 3), 0, 80
            )[0]
        ),
    ),
    "the first row adds, any place": (
        FUNCTIONS["asymmetric"],
        {},
        1.5750,
        lambda g: 11 / 12 * math.exp(-12 * g) + math.exp(-12 * g / 37) / 12,
    ),
    "the first row adds, worst place": (
        FUNCTIONS["asymmetric"],
        {"position": "worst"},
        9.2368,
        lambda g: math.exp(-12 * g / 37),
    ),
}


@pytest.mark.parametrize("name", MOVEMENTS)
def test_movements_of_twelve_rows_have_their_exact_quantiles(name):
    """A twentieth of the movements exceeds the quantile, and more a tenth less, as the law says.

    Two rows differ by an exponential number, three pairs of them by the difference of two Gamma
    numbers. Three times the bound of one row at a third of gamma is 1.024, for three rows.
    """
    f, options, wanted, chance = MOVEMENTS[name]
    assert optimize.brentq(lambda g: chance(g) - 0.05, 0.01, 20) == pytest.approx(wanted, abs=5e-5)
    movements = sampled(f, Neighbourhood(rows=12, **options), SAMPLERS, 15)
    for at in (wanted, 0.9 * wanted):
        above = int((movements > at).sum())
        assert stats.binomtest(above, SAMPLERS, chance(at)).pvalue > FALSE_ALARM
    assert 3 * math.log(3 / 0.05) / 12 == pytest.approx(1.0236, abs=5e-5)


def test_tables_of_several_sizes_need_the_whole_rank():
    """The largest movement over all sizes is exceeded with gamma, and more at one rank lower."""
    f, rng = FUNCTIONS["largest"], np.random.default_rng(43)
    drawn = sampled(f, REACHES["sizes"], SAMPLERS * 9, 12).reshape(SAMPLERS, 9)
    fresh = sampled(f, REACHES["sizes"], SAMPLERS, 13)
    kept = np.sort(drawn, axis=1)
    low, high = (int((fresh > kept[:, k]).sum()) for k in (7, 8))
    assert stats.binom.sf(high - 1, SAMPLERS, 0.1) > FALSE_ALARM
    assert stats.binom.sf(low - 1, SAMPLERS, 0.1) < FALSE_ALARM
    moved = [real("sizes", f, rng, SAMPLERS, n) for n in (4, 5, 6)]
    assert all((each > kept[:, 8]).mean() < 0.1 for each in moved)


def test_only_tables_of_a_sampled_size_are_covered_where_rows_are_added():
    """A function that one row more than the sampled size moves: never covered, unless sampled."""
    jump = lambda t: (np.full(t.shape[0], t.shape[-1]) > ROWS + 1) * 1.0  # noqa: E731
    kept = {
        sizes: sampled(
            jump, Neighbourhood(rows=sizes[-1], neighbours="add-remove", sizes=sizes), 200, 17
        )
        for sizes in ((ROWS,), (ROWS, ROWS + 1))
    }
    moved = real("add-remove", jump, np.random.default_rng(53), 1000, ROWS + 1)
    coverage = [float((moved <= found.max()).mean()) for found in kept.values()]
    assert coverage == [0.0, 1.0]
    assert real("add-remove", jump, np.random.default_rng(53), 1000).max() == 0.0


def test_one_place_may_be_left_out_unless_the_worst_is_taken():
    """The first row, which the function adds on its own, fails more often than gamma allows."""
    f, rng = FUNCTIONS["asymmetric"], np.random.default_rng(47)
    x, z = rng.exponential(size=(SAMPLERS, ROWS)), rng.exponential(size=SAMPLERS)
    moved = np.abs(f(x) - f(set_place(x, 0, z)))
    failed = {}
    for name in ("record", "worst place"):
        kept = sampled(f, REACHES[name], SAMPLERS * 3, 14).reshape(SAMPLERS, 3).max(axis=1)
        failed[name] = int((moved > kept).sum())
    assert stats.binom.sf(failed["record"] - 1, SAMPLERS, 0.25) < FALSE_ALARM
    assert stats.binom.sf(failed["worst place"] - 1, SAMPLERS, 0.25) > FALSE_ALARM
