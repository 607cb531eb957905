"""Sampling measures what it says: right pairs, right norm, right position, right record."""

import dataclasses
import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hushed as hs
from hushed.errors import BadFunction, BadRows, ParameterError, RandomFunction, TooFewPairs

UNIT = hs.populations.Uniform(low=0, high=1)
BOX = hs.populations.Uniform(low=[0, 0, 0], high=[1, 1, 1])


def mean(rows):
    return rows.mean(axis=0)


def sample(f=mean, population=UNIT, **settings):
    return hs.sample_sensitivity(f, population, **({"rows": 20, "workers": 1} | settings))


def by_hand(f, population, n, pairs, seed, *, symmetric=False):
    """Movements of the same pairs, from separate copies and with no shared memory."""
    from hushed._functions._streams import streams

    found = []
    for rng in streams(seed, 0, pairs):
        table = population.draw(rng, n + 1)
        position = n - 1 if symmetric else int(rng.random() * n)
        first, second = table[:n].copy(), table[:n].copy()
        second[position] = table[n]
        found.append(np.atleast_1d(np.asarray(f(first), float) - np.asarray(f(second), float)))
    return np.array(found)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize(
    ("norm", "measure"),
    [
        ("l1", lambda d: np.abs(d).sum()),
        ("l2", lambda d: math.hypot(*d)),
        ("sup", lambda d: np.abs(d).max()),
        ("range", lambda d: d.max() - d.min()),
    ],
)
def test_movements_are_those_of_separate_copies(norm, measure, symmetric):
    """Draws equal a plain recomputation from copied tables, for every norm."""
    ordered = lambda r: r.mean(axis=0) + r[0] ** 2 + r[-1] ** 2  # noqa: E731
    f = (lambda r: (r**2).mean(axis=0) + r.max(axis=0)) if symmetric else ordered
    s = sample(f, BOX, norm=norm, seed=4, symmetric=symmetric)
    expected = [measure(d) for d in by_hand(f, BOX, 20, s.pairs, 4, symmetric=symmetric)]
    assert s.draws == pytest.approx(np.sort(expected), rel=1e-12)
    assert s.value == s.draws[s.rank - 1]


@pytest.mark.parametrize("view", [lambda r: r[0], lambda r: r, lambda r: r[-2:], lambda r: r.T])
def test_functions_that_return_views_are_measured_right(view):
    """An answer that shares memory with the rows does not follow them to the neighbour."""
    s = sample(view, BOX, seed=1)
    expected = [np.abs(d).sum() for d in by_hand(view, BOX, 20, s.pairs, 1)]
    assert s.draws == pytest.approx(np.sort(expected), rel=1e-12)
    assert s.draws[-1] > 0


@pytest.mark.slow
def test_the_replaced_position_is_random_unless_symmetric():
    """The first row moves in about 1 of n pairs; declared symmetric, only the last ever moves."""
    first = sample(lambda r: r[0], rows=5, pairs=1000, seed=0)
    moved = np.count_nonzero(first.draws)
    assert abs(moved - 200) < 5 * math.sqrt(1000 * 0.2 * 0.8)
    lasts = []
    sample(lambda r: lasts.append(r[:-1].copy()) or r.sum(), rows=5, pairs=50, symmetric=True)
    # What remembers is then tried: on eight of them, twice as often, and on 1 + 16 new pairs.
    trials = lasts[-166:-66]
    assert all(np.array_equal(a, b) for a, b in zip(trials[::2], trials[1::2], strict=True))


def test_a_function_that_minds_the_order_is_not_symmetric():
    """Reordering the rows of a few tables shows a wrong declaration, also in batch mode."""
    for f, batch in ((lambda r: r[0] * 100 + r[-1], False), (lambda t: t[:, 0], True)):
        with pytest.raises(BadFunction, match="reordering"):
            sample(f, rows=9, symmetric=True, batch=batch)


@pytest.mark.slow
def test_every_container_gives_the_same_movements():
    """Arrays, lists, pandas and Polars frames of one public table agree."""
    numbers = np.random.default_rng(0).random((50, 2))
    frames = {
        "array": (numbers, lambda r: r[:, 0].mean() + r[0, 1]),
        "list": (numbers.tolist(), lambda r: np.mean([x for x, _ in r]) + r[0][1]),
        "pandas": (pd.DataFrame(numbers, columns=["x", "y"]), lambda r: r["x"].mean() + r["y"][0]),
        "polars": (pl.DataFrame(numbers, schema=["x", "y"]), lambda r: r["x"].mean() + r["y"][0]),
    }
    found = {
        kind: sample(f, hs.populations.PublicTable(frame, promise="table"), seed=2, pairs=120).draws
        for kind, (frame, f) in frames.items()
    }
    for kind in frames:
        assert found[kind] == pytest.approx(found["array"], rel=1e-9, abs=1e-15), kind


@pytest.mark.slow
@pytest.mark.parametrize(
    "population", [BOX, hs.populations.Simulator(lambda g, n: g.random((n, 3)))]
)
def test_batches_measure_pairs(population):
    """With batch=True movements have the law of single pairs, and n + 1 rows make each pair."""
    one = sample(lambda r: r.mean(axis=0), population, pairs=3000, seed=1)
    many = sample(lambda t: t.mean(axis=1), population, pairs=3000, seed=1, batch=True)
    assert many.draws.shape == (3000,)
    assert many.sampling.shape == (3,)
    from scipy import stats

    assert stats.ks_2samp(one.draws, many.draws, method="asymp").pvalue > 1e-6
    assert (many.draws > 0).all()


@pytest.mark.slow
def test_batch_with_positions():
    """In batch mode too the position is random, or the last if declared symmetric."""
    moved = np.count_nonzero(sample(lambda t: t[:, 0], rows=5, pairs=1000, batch=True).draws)
    assert abs(moved - 200) < 5 * math.sqrt(1000 * 0.2 * 0.8)
    seen = []
    sample(
        lambda t: seen.append(t[:, :-1].copy()) or t.sum(axis=1),
        rows=5,
        pairs=100,
        batch=True,
        symmetric=True,
    )
    assert np.array_equal(seen[-6], seen[-5])  # what remembers is then asked four times more


def test_simultaneous_takes_the_largest_of_all_replacements():
    """Each draw is the maximum over n positions, each with its own fresh row."""
    from hushed._functions._streams import streams

    f = lambda r: (r**2).sum() + r[0]  # noqa: E731
    s = sample(f, rows=6, protect="simultaneous", seed=3, gamma=0.2)
    expected = []
    for rng in streams(3, 0, s.pairs):
        table = UNIT.draw(rng, 12)
        moves = []
        for i in range(6):
            other = table[:6].copy()
            other[i] = table[6 + i]
            moves.append(abs(f(table[:6]) - f(other)))
        expected.append(max(moves))
    assert s.draws == pytest.approx(np.sort(expected), rel=1e-12)
    assert s.gamma == 0.2


def test_everyone_divides_gamma_by_the_rows():
    """Pairs and rank are those of gamma / n, and the promise is that of gamma."""
    s = sample(rows=10, protect="everyone", gamma=0.1, calibration="marginal")
    assert (s.pairs, s.rank, s.gamma) == (99, 99, 0.1)
    assert s.guarantee(1).protect == "everyone"
    alone = sample(rows=10, protect="everyone", pairs=99, calibration="marginal")
    assert Fraction(alone.gamma) >= 10 * Fraction(1, 100)
    assert alone.gamma == pytest.approx(0.1)
    with pytest.raises(ParameterError, match="all 10 records"):
        sample(rows=10, protect="everyone", pairs=5, calibration="marginal")


def test_exponential_mean_agrees_with_theory():
    """The kept movement lies where log(1/gamma)/(lambda n) says, by the exact beta law."""
    from scipy import stats

    n, rate, m = 50, 2.0, 2000
    s = sample(np.mean, hs.populations.Exponential(rate=rate), rows=n, pairs=m, gamma=0.05)
    assert s.value == pytest.approx(math.log(1 / 0.05) / (rate * n), rel=0.15)
    low, high = stats.beta.ppf([5e-7, 1 - 5e-7], s.rank, m - s.rank + 1)
    assert -math.log1p(-low) / (rate * n) < s.value < -math.log1p(-high) / (rate * n)
    whole = stats.kstest(s.draws, stats.expon(scale=1 / (rate * n)).cdf)
    assert whole.pvalue > 1e-6


@pytest.mark.parametrize("d", [1, 2, 8])
def test_sampled_never_exceeds_global(d):
    """Rubinstein and Alda's Proposition 18: for the mean over [0, 1]^d the bound is d / n."""
    cube = hs.populations.Uniform(low=[0] * d, high=[1] * d)
    s = sample(mean, cube, rows=30, pairs=500)
    assert 0 < s.draws[-1] <= d / 30 * (1 + 1e-12)


@pytest.mark.parametrize(
    "settings",
    [
        {"rows": 0},
        {"rows": 1},
        {"rows": -5},
        {"rows": 2.5},
        {"rows": "20"},
        {"rows": True},
        {"rows": float("nan")},
        {"gamma": 0},
        {"gamma": 1},
        {"gamma": -0.1},
        {"gamma": float("nan")},
        {"pairs": 0},
        {"pairs": -1},
        {"pairs": 10.0},
        {"pairs": True},
        {"norm": "l3"},
        {"protect": "nobody"},
        {"calibration": "bootstrap"},
        {"seed": -1},
        {"seed": "x"},
        {"workers": 0},
        {"distance": 0},
        {"distance": 20},
        {"distance": 1.0},
        {"distance": 2, "protect": "everyone"},
        {"distance": 2, "neighbours": "add-remove"},
        {"neighbours": "replace"},
        {"position": "first"},
        {"position": "worst", "protect": "everyone"},
        {"rows": [19, 20]},
        {"rows": [], "neighbours": "add-remove"},
        {"rows": [1, 2], "neighbours": "add-remove"},
        {"values": [0.0]},
        {"monotone": True},
        {"protect": "table"},
        {"protect": "table", "values": [0.0], "monotone": True},
        {"protect": "table", "values": []},
        {"protect": "table", "values": [float("nan")]},
        {"protect": "table", "values": [[0.0, 1.0]]},
        {"protect": "table", "values": ["a"]},
        {"protect": "table", "values": [0.0], "data_dependent": True},
        {"protect": "table", "monotone": True, "norm": "range"},
    ],
)
def test_bad_settings_never_call_the_function(settings):
    """A parameter out of range is refused before the function is called more than to probe."""
    calls = []

    def counting(rows):
        calls.append(1)
        return rows.mean()

    with pytest.raises(ParameterError):
        sample(counting, **settings)
    assert len(calls) <= 3


def test_one_row_says_why():
    """A table of one row has no neighbour that shares rows with it."""
    with pytest.raises(ParameterError, match="2 or more, got 1"):
        sample(rows=1)


def test_too_few_rows_for_rows_that_are_added_have_another_way():
    """Neither blocks nor a given rest are possible there: fewer rows, a simulator, the table."""
    rows = hs.populations.PublicTable(np.arange(100.0))
    with pytest.raises(hs.errors.TooFewRows) as few:
        hs.sample_sensitivity(
            np.mean, rows, rows=61, gamma=0.1, neighbours="add-remove", symmetric=True
        )
    for way in ("tables of fewer rows", "a simulator", "--promise table on the command line"):
        assert way in str(few.value)


def test_too_few_pairs_says_how_many():
    """The message holds the number that suffices; it works."""
    with pytest.raises(TooFewPairs, match="at least 112 sampled pairs"):
        sample(pairs=111, gamma=0.05)
    assert sample(pairs=112, gamma=0.05).pairs == 112


def test_the_decimal_that_was_written_counts():
    """gamma=0.18 means 18/100: rank 123 of 149, not 124."""
    assert sample(gamma=0.18, pairs=149, calibration="marginal").rank == 123


def test_defaults():
    """Without gamma and pairs gamma is 0.05; with pairs alone it is what they support."""
    assert sample().gamma == 0.05
    alone = sample(pairs=112)
    assert alone.gamma < 0.05
    assert alone.rank == 112
    assert alone.sampling.requested_gamma is None


def changing_shape(rows):
    return np.zeros(1 + int(rows[0] > 0.9))


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda r: 1 / 0, BadFunction, "ZeroDivisionError"),
        (lambda r: float("nan"), BadFunction, "NaN"),
        (lambda r: np.nan if r[0] > 0.9 else 0.0, BadFunction, "NaN"),
        (lambda r: float("inf") if r[0] > 0.9 else 0.0, BadFunction, "infinity"),
        (changing_shape, BadFunction, "changes shape"),
        (lambda r: "0.5", BadFunction, "str"),
        (lambda r: "0.5" if r[0] > 0.9 else 0.5, BadFunction, "str"),
        (lambda r: None, BadFunction, "NoneType"),
        (lambda r: {1}, BadFunction, "set"),
        (lambda r: np.ma.masked_greater(r, 0.5), BadFunction, "masked"),
        (lambda r: lambda x: x, BadFunction, "on_lattice"),
        (lambda r: np.random.default_rng().random(), RandomFunction, "fixed_seed"),
        ("mean", BadFunction, "str"),
    ],
)
def test_bad_functions(function, error, words):
    """Failures on any of the drawn tables, also rare ones, are clear errors."""
    with pytest.raises(error, match=words):
        sample(function, pairs=300, symmetric=False, rows=3)


def test_rare_mutation_is_refused():
    """A function that changes its rows on some tables only meets read-only memory there."""

    def rarely(rows):
        if rows[0] > 0.9:
            rows[0] = 0
        return rows.mean()

    with pytest.raises(BadFunction, match="changes the rows"):
        sample(rarely, pairs=300, rows=3)


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda rng, n: rng.random(n - 1), "asked for 21 rows and gave 20"),
        (lambda rng, n: rng.random((n, 1 + rng.integers(2)))[:, :], "different columns"),
        (
            lambda rng, n: rng.random(n) if rng.random() < 0.5 else rng.integers(2, size=n),
            "different",
        ),
        (lambda rng, n: rng.random(), "must be"),
        (lambda rng, n: None, "NoneType"),
        (lambda rng, n: 1 / 0, "ZeroDivisionError"),
        (lambda rng: 1, "TypeError"),
    ],
)
def test_bad_populations(draw, words, batch):
    """A wrong count, changing columns, no table or an exception of the source is named."""
    f = (lambda t: t.reshape(len(t), -1).mean(axis=1)) if batch else np.mean
    with pytest.raises(BadRows, match=words):
        sample(f, hs.populations.Simulator(draw), pairs=100, batch=batch)


def test_frames_with_changing_columns_are_refused():
    """A frame that gains a column at some draws is found out."""

    def draw(rng, n):
        frame = pd.DataFrame({"x": rng.random(n)})
        return frame if rng.random() < 0.5 else frame.assign(y=1.0)

    with pytest.raises(BadRows, match="different columns"):
        sample(lambda r: r["x"].mean(), hs.populations.Simulator(draw), pairs=50)


def test_what_is_no_population_is_refused():
    """An array is no source of rows; the message says what is."""
    for bad in (np.zeros(100), None, lambda rng, n: rng.random(n)):
        with pytest.raises(ParameterError, match="population"):
            sample(population=bad)


def test_batch_functions_must_answer_for_each_table():
    """One answer for all tables, or a list for batch mode, is refused with the shapes."""
    with pytest.raises(BadFunction, match="one answer of shape"):
        sample(lambda t: t.mean(keepdims=True).ravel(), batch=True, pairs=50)
    lists = hs.populations.Simulator(lambda rng, n: rng.random(n).tolist())
    with pytest.raises(ParameterError, match="NumPy arrays"):
        sample(lambda t: t.mean(axis=1), lists, batch=True)


def test_a_populations_own_memory_is_left_alone():
    """Views and read-only arrays of a source are copied before a row is replaced."""
    store = np.random.default_rng(0).random(5000)
    kept = store.copy()
    locked = store.copy()
    locked.flags.writeable = False

    class Window:
        def __init__(self, memory):
            self.memory = memory

        def draw(self, rng, count):
            start = rng.integers(self.memory.size - count)
            return self.memory[start : start + count]

        def describe(self):
            return {"kind": "window"}

    for batch, f in ((False, np.mean), (True, lambda t: t.mean(axis=1))):
        one = sample(f, Window(store), rows=10, batch=batch, pairs=40)
        two = sample(f, Window(locked), rows=10, batch=batch, pairs=40)
        assert np.array_equal(one.draws, two.draws)
        assert one.draws[-1] > 0
    assert np.array_equal(store, kept)


def test_single_numbers_have_no_range():
    """One number has no largest minus smallest change: its range sensitivity is 0."""
    assert sample(np.mean, norm="range").value == 0


def test_infinite_movement_is_refused():
    """Answers whose difference overflows make no sensitivity."""
    huge = lambda r: math.copysign(1.7e308, r[0] - 0.5)  # noqa: E731
    with pytest.raises(ParameterError, match="finite"):
        sample(huge, rows=2, pairs=60)


def test_draws_cannot_be_changed():
    """The kept movements are sorted and read-only."""
    s = sample()
    assert (np.diff(s.draws) >= 0).all()
    with pytest.raises(ValueError, match="read-only"):
        s.draws[0] = 0


@pytest.mark.parametrize(
    ("protect", "involved"), [("record", 21), ("everyone", 40), ("simultaneous", 40)]
)
@pytest.mark.parametrize("tau", [1e-300, 1e-12, 1e-6, 3e-5, 1e-4])
def test_shift_adds_at_least_pinsker(protect, involved, tau):
    """Proposition 8: gamma grows by sqrt(r tau / 2), r = n + 1 or 2 n, never rounded down."""
    s = sample(protect=protect, gamma=0.5, calibration="marginal")
    shifted = s.shifted(tau)
    step = Fraction(shifted.gamma) - Fraction(s.gamma)
    assert step**2 * 2 >= involved * Fraction(tau)
    assert float(step) == pytest.approx(math.sqrt(involved * tau / 2), rel=1e-9, abs=3e-16)
    assert shifted.value == s.value
    assert shifted.guarantee(1).gamma == shifted.gamma


def test_shifts_that_cannot_be_are_refused():
    """Negative or NaN tau, too far, twice, or of a proven sensitivity."""
    s = sample()
    assert s.shifted(0.0).gamma == s.gamma
    for tau in (-1e-9, float("nan"), float("inf"), 1.0):
        with pytest.raises(ParameterError, match="tau"):
            s.shifted(tau)
    with pytest.raises(ParameterError, match="already shifted"):
        s.shifted(1e-6).shifted(1e-6)
    with pytest.raises(ParameterError, match="proven"):
        hs.proven_sensitivity(1.0, argument="x").shifted(0.1)


def test_the_tolerated_tau_in_the_error_is_tolerated():
    """The bound in the message separates what works from what does not."""
    s = sample(gamma=0.2)
    with pytest.raises(ParameterError) as caught:
        s.shifted(1.0)
    limit = float(str(caught.value).rsplit(" ", 1)[1])
    assert s.shifted(limit * 0.99).gamma < 1
    with pytest.raises(ParameterError):
        s.shifted(limit * 1.01)


def test_proven_sensitivities():
    """A proof has gamma 0, no draws, and needs words and a finite number."""
    s = hs.proven_sensitivity(2, "sup", neighbours="add-remove", argument="a count")
    assert (s.gamma, s.pairs, s.rank, s.draws.size, s.fingerprint) == (0, None, None, 0, "")
    assert s.guarantee(1.5) == hs.Guarantee(epsilon=1.5, neighbours="add-remove")
    for value in (-1, float("nan"), float("inf")):
        with pytest.raises(ParameterError, match="finite"):
            hs.proven_sensitivity(value, argument="x")
    with pytest.raises(ParameterError, match="bool"):
        hs.proven_sensitivity(True, argument="x")
    with pytest.raises(ParameterError, match="argument"):
        hs.proven_sensitivity(1.0, argument="  ")
    with pytest.raises(ParameterError, match="norm"):
        hs.proven_sensitivity(1.0, "l7", argument="x")


def test_numpy_scalars_are_as_good_as_python_ones():
    """Settings read from arrays give the same sensitivity, promise and certificate."""
    plain = sample(rows=20, pairs=150, gamma=0.05)
    scalars = sample(
        rows=np.int64(20), pairs=np.int32(150), gamma=np.float64(0.05), seed=np.uint8(0)
    )
    assert scalars == plain
    assert scalars.guarantee(1.0) == plain.guarantee(1.0)
    assert type(scalars.sampling.rows) is int
    assert type(scalars.sampling.asked_pairs) is int


@pytest.mark.parametrize("seed", range(3))
def test_records_with_dates_texts_and_nan(seed):
    """Object and structured arrays go through sampling; NaN cells are no mutation."""

    def records(rng, n):
        table = np.zeros(n, dtype=[("x", "f8"), ("who", "U4")])
        table["x"] = rng.random(n)
        table["x"][0] = np.nan
        return table

    s = sample(lambda r: np.nanmean(r["x"]), hs.populations.Simulator(records), seed=seed)
    assert s.value > 0


def test_failures_of_a_declared_private_population_stay_silent(assert_silent):
    """With data_dependent=True neither function nor population may show a value."""
    private = np.random.default_rng(0).random(30)
    private[3] = 987654.321

    def failing(rows):
        if (rows > 9e5).any():
            raise ValueError(f"bad value {rows.max()} of Wilhelmina")
        return rows.mean()

    source = hs.populations.PublicTable(private)
    with pytest.raises(BadFunction) as caught:
        sample(failing, source, data_dependent=True, rows=30)
    assert_silent(caught.value)

    def bad_draw(rng, n):
        raise ValueError(f"bad value {private.max()} of Wilhelmina")

    with pytest.raises(BadRows) as caught:
        sample(mean, hs.populations.Simulator(bad_draw), data_dependent=True)
    assert_silent(caught.value)


def first_row(rows):
    return float(rows[0])


def test_the_largest_answer_of_all_tables_is_kept():
    """Rounding is judged by the largest answer that was seen, not by the first or a usual one."""
    found = hs.sample_sensitivity(first_row, UNIT, rows=3, pairs=200, workers=1, seed=4)
    assert abs(float(found.sampling.answer)) < 0.9
    assert 0.95 < found.sampling.largest <= 1


def test_tables_too_large_to_be_stacked_come_alone():
    """A batch function is given one large table at a time, and is measured all the same."""
    rows, pairs = 70_000, 19
    options = {"rows": rows, "pairs": pairs, "workers": 1, "seed": 2, "calibration": "marginal"}
    stacked = hs.sample_sensitivity(lambda t: t.mean(axis=1), UNIT, batch=True, **options)
    assert stacked.pairs == pairs
    assert 0 < stacked.value < 1 / rows


def test_a_sensitivity_that_a_server_has_kept_is_read():
    """A pickle of the version that knew of no chain has one field less."""
    known = hs.proven_sensitivity(2.0, "sup", argument="a count")
    kept = [getattr(known, each.name) for each in dataclasses.fields(known)][:-1]
    read = object.__new__(hs.Sensitivity)
    read.__setstate__(kept)
    assert read == known
    assert read.chain == ""
    assert pickle.loads(pickle.dumps(read)) == known
