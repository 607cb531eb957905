"""What is declared of a function or a population is tried on the very thing it is used for."""

import math
import os
import subprocess
import sys
import threading
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import qmc
from tests.seams.keeping import Shelf, by_decorator, by_first_row, by_first_rows

import hushed as hs
from hushed._functions._loading import read_function
from hushed.errors import BadFunction, BadRows
from hushed.sensitivity import _independence, _memory
from hushed.sensitivity._declarations import check_source
from hushed.sensitivity._independence import check_independence

UNIT = hs.populations.Uniform(low=0, high=1)


def sample(f, population=UNIT, **settings):
    wanted = {"rows": 101, "pairs": 60, "workers": 1} | settings
    return hs.sample_sensitivity(f, population, **wanted)


PALINDROMES = {
    "trapezoid": np.trapezoid,
    "total variation": lambda r: np.abs(np.diff(r)).sum(),
    "autocovariance": lambda r: (r[1:] * r[:-1]).mean(),
    "ends trimmed": lambda r: r[5:-5].mean(),
    "middle row": lambda r: r[50],
    "valid convolution": lambda r: np.convolve(r, [1, 2, 1], "valid").max(),
    "below a large offset": lambda r: 1e7 + r[0],
    "in a vector": lambda r: np.array([r.sum(), r[1:-1].sum()]),
    "far below its size": lambda r: 1e5 * r.max() + 1e-2 * r[0],
}


@pytest.mark.parametrize("case", PALINDROMES)
@pytest.mark.parametrize("seed", range(3))
def test_order_is_tried_by_shuffling_and_swapping(case, seed):
    """Functions that reversing the rows leaves alone are not symmetric."""
    with pytest.raises(BadFunction, match="reordering the rows"):
        sample(PALINDROMES[case], symmetric=True, seed=seed)


SYMMETRIC = {
    "mean": np.mean,
    "median": np.median,
    "std": np.std,
    "mean of large numbers": lambda r: (r + 1e6).mean(),
    "sorted": lambda r: np.sort(r)[[3, 50, 97]],
    "histogram": lambda r: np.histogram(r, 10, (0, 1))[0],
    "sum of squares by BLAS": lambda r: r @ r,
}


@pytest.mark.parametrize("case", SYMMETRIC)
def test_symmetric_functions_pass(case):
    """Rounding of sums in another order is let pass, if it is small."""
    assert sample(SYMMETRIC[case], symmetric=True).value > 0


def test_rounding_that_is_not_small_is_refused():
    """A mean of numbers near 1e9 moves by its rounding when shuffled; the words say what to do."""
    with pytest.raises(BadFunction, match="common part off the answer"):
        sample(lambda r: sum((r + 1e9).tolist()), symmetric=True)


@pytest.mark.parametrize("held", ["list", "pandas", "polars", "records", "stack"])
def test_order_is_tried_in_every_container(held):
    """Lists, frames, records and stacks of tables are shuffled as they are."""
    numbers = np.random.default_rng(0).random(500)
    frames = {
        "list": (numbers.tolist(), lambda r: r[1] + r[-2]),
        "pandas": (pd.DataFrame({"x": numbers}), lambda r: r["x"].iloc[1] + r["x"].iloc[-2]),
        "polars": (pl.DataFrame({"x": numbers}), lambda r: r["x"][1] + r["x"][-2]),
        "records": (numbers.view([("x", "f8")]), lambda r: r["x"][1] + r["x"][-2]),
        "stack": (numbers, lambda t: t[:, 1] + t[:, -2]),
    }
    table, f = frames[held]
    with pytest.raises(BadFunction, match="reordering"):
        sample(
            f,
            hs.populations.PublicTable(table, promise="table"),
            symmetric=True,
            batch=held == "stack",
        )


@pytest.mark.slow
def test_the_order_is_tried_on_streams_of_its_own():
    """Declared or not, the trials draw the same tables; only the position differs."""
    plain, declared = [], []
    sample(lambda r: plain.append(r[0]) or r.sum(), seed=5)
    sample(lambda r: declared.append(r[0]) or r.sum(), seed=5, symmetric=True)
    assert len(set(plain) & set(declared)) > 40  # of 60 pairs


BATCHES = {
    "divided by the tables": lambda t: t.mean(axis=1) / t.shape[0],
    "batch norm": lambda t: t.mean(axis=1) / (1 + t.std()),
    "softmax over axis 0": lambda t: np.exp(t[:, 0]) / np.exp(t[:, 0]).sum(),
    "ranked among the tables": lambda t: np.argsort(np.argsort(t.mean(axis=1))) / len(t),
    "the first table is special": lambda t: t.mean(axis=1) * np.r_[2.0, np.ones(len(t) - 1)],
    "the last table is special": lambda t: t.mean(axis=1) * np.r_[np.ones(len(t) - 1), 2.0],
    "the second table is special": lambda t: (
        t.mean(axis=1) * np.where(np.arange(len(t)) == 1, 2.0, 1.0)
    ),
    "squeezed": lambda t: t.squeeze().mean(axis=-1),
    "cumulated": lambda t: np.cumsum(t.mean(axis=1)),
    "a little": lambda t: t.mean(axis=1) + 1e-6 * t.mean(),
}


@pytest.mark.parametrize("case", BATCHES)
def test_each_table_of_a_block_is_asked_alone(case):
    """An answer that depends on the tables beside it is refused."""
    with pytest.raises(BadFunction, match=r"depends on the tables beside it|shape"):
        sample(BATCHES[case], rows=50, batch=True)


class Own:
    """A population of the user's."""

    def draw(self, rng, count):
        seen.append(count)
        return rng.random(count)

    def describe(self):
        return {"kind": "own"}


seen = []


def test_a_population_of_ones_own_is_asked_table_by_table():
    """As without batch: rows of one call may have more in common than rows of two."""
    seen.clear()
    sample(lambda t: t.max(axis=1), population=Own(), rows=9, pairs=50, batch=True)
    assert set(seen) == {10}


def test_blocks_are_tried_as_they_are_sampled():
    """Tables of a block lie apart from each other; a single one does not."""
    with pytest.raises(BadFunction, match="depends on the tables beside it"):
        sample(lambda t: t.mean(axis=1) * (1 + t.flags.c_contiguous), rows=50, batch=True)


@pytest.mark.parametrize(
    "f",
    [
        lambda t: t.mean(axis=1),
        lambda t: np.einsum("tr,tr->t", t, t),
        lambda t: t @ np.ones(50),  # one product for the block rounds unlike one for a table
        lambda t: np.sort(t, axis=1)[:, [3, 40]],
        lambda t: (t + 1e6).sum(axis=1),
    ],
)
def test_honest_batches_pass(f):
    """Rounding of a block is let pass, if it is small."""
    assert sample(f, rows=50, batch=True).value > 0


class Keeper:
    """A population of one's own that keeps a generator."""

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def draw(self, rng, count):
        return self.rng.random(count)

    def describe(self):
        return {"kind": "keeper"}


def frame(rng, count):
    return pd.DataFrame({"x": rng.random(count), "y": np.random.default_rng(3).random(count)})


SAME = {
    "ignores rng": lambda rng, n: np.random.default_rng(0).lognormal(0, 1, n),
    "one column ignores it": lambda rng, n: np.column_stack(
        [rng.random(n), np.random.default_rng(0).random(n)]
    ),
    "one of many columns": lambda rng, n: np.column_stack(
        [rng.random((n, 200)), np.random.default_rng(0).random(n)]
    ),
    "one column of a frame": frame,
    "list": lambda rng, n: np.random.default_rng(0).random(n).tolist(),
    "list of records": lambda rng, n: [{"x": i * 0.37 % 1} for i in range(n)],
    "texts": lambda rng, n: np.array(["ab", "c"] * n)[:n],
    "few seeds": lambda rng, n: np.random.default_rng(int(rng.integers(2))).random(n),
}
OTHER = {
    "global generator": lambda rng, n: np.random.rand(n),
    "fresh entropy": lambda rng, n: np.random.default_rng().random(n),
    "now and then": lambda rng, n: rng.random(n) + (np.random.rand() < 0.9) * np.random.rand(),
}


@pytest.mark.parametrize("case", SAME)
@pytest.mark.parametrize("own", [False, True])
def test_a_population_that_does_not_use_its_generator_is_refused(case, own):
    """Pairs of one table are no pairs; the message says where to take randomness from."""
    made = hs.populations.Simulator(SAME[case])
    population = Wrapped(made) if own else made
    with pytest.raises(BadRows, match=r"from unequal generators|from two generators"):
        sample(len, population)


class Wrapped:
    """A population class of the caller's own."""

    def __init__(self, inside):
        self.inside = inside

    def draw(self, rng, count):
        return self.inside.draw(rng, count)

    def describe(self):
        return {"kind": "wrapped"}


@pytest.mark.parametrize("case", OTHER)
def test_a_population_with_randomness_of_its_own_is_refused(case):
    """Equal generators must give equal rows, or nothing can be measured again.

    In one of a hundred cases two draws of the last one are equal; then its rows have too much in
    common.
    """
    often = "|rows of one draw of the population are more alike" * (case == "now and then")
    with pytest.raises(BadRows, match=f"unequal rows from equal generators{often}"):
        sample(len, hs.populations.Simulator(OTHER[case]))
    with pytest.raises(BadRows, match="unequal rows from equal generators"):
        sample(len, Keeper())


HONEST = {
    "constant": lambda rng, n: np.ones(n),
    "rare ones": lambda rng, n: (rng.random(n) < 0.01).astype(int),
    "nothing known": lambda rng, n: np.full(n, np.nan),
    "counting": lambda rng, n: np.column_stack([np.arange(n), rng.random(n)]),
    "constant column": lambda rng, n: pd.DataFrame({"x": rng.random(n), "country": "NL"}),
    "objects": lambda rng, n: [{"x": v, "tags": {"a", "b"}} for v in rng.random(n)],
    "missing": lambda rng, n: np.where(rng.random(n) < 0.5, np.nan, 1.0),
    "coins": lambda rng, n: rng.integers(2, size=n),
    "texts": lambda rng, n: rng.choice(np.array(["yes", "no"]), n),
    "permuted": lambda rng, n: pl.DataFrame({"x": rng.random(n), "d": rng.choice(["u", "v"], n)}),
}


@pytest.mark.slow_cases(
    "2-constant column",
    "3-constant column",
    "3-objects",
    "50-constant column",
    "50-objects",
)
@pytest.mark.parametrize("case", HONEST)
@pytest.mark.parametrize("rows", [2, 3, 50])
def test_honest_simulators_pass(case, rows):
    """Laws of few values repeat themselves; so they may, but not sixteen times over."""
    for seed in range(5):
        s = sample(len, hs.populations.Simulator(HONEST[case]), rows=rows, pairs=10, seed=seed)
        assert (s.pairs, s.value) == (10, 0)  # nothing was refused; the number of rows never moves


def test_rows_without_a_column_are_refused_in_words():
    """All tables of a number of rows are equal, so that nothing is drawn."""
    empty = hs.populations.Simulator(lambda rng, count: pd.DataFrame(index=range(count)))
    with pytest.raises(BadRows, match="without a column"):
        hs.sample_sensitivity(len, empty, rows=12, pairs=20)


def test_a_simulator_may_spawn_its_generators():
    """No two trials repeat a table, however a run is cut into pieces."""
    population = hs.populations.Simulator(lambda rng, n: rng.spawn(1)[0].random(n))
    draws = sample(np.mean, population).sampling.draws
    assert len(set(draws.tolist())) == 60


IN_ORDER = {
    "sorted": lambda rng, n: np.sort(rng.random(n)),
    "waiting times": lambda rng, n: np.cumsum(rng.exponential(size=n))[::-1],
    "two groups": lambda rng, n: np.repeat([0.0, 3.0], [n // 2, n - n // 2]) + rng.normal(size=n),
    "two spreads": lambda rng, n: np.repeat([50.0, 1], [n // 2, n - n // 2]) * rng.normal(size=n),
    "the only column": lambda rng, n: np.sort(rng.random(n))[:, None],
    "a sorted column": lambda rng, n: np.stack([np.sort(rng.random(n)), rng.random(n)], axis=1),
    "texts": lambda rng, n: sorted(rng.choice(["no", "yes"], n).tolist()),
}
IN_COMMON = {
    "an offset": lambda rng, n: 2 * rng.normal() + rng.normal(size=n),
    "a scale": lambda rng, n: rng.exponential() ** 4 * rng.normal(size=n),
    "an offset of the only column": lambda rng, n: rng.normal() + rng.normal(size=(n, 1)),
    "a walk": lambda rng, n: rng.permutation(np.cumsum(rng.normal(size=n))),
    "one of ten tables": lambda rng, n: np.random.default_rng(rng.integers(10)).normal(size=n),
    "a share": lambda rng, n: (rng.random(n) < rng.random()).astype(int),
}


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("case", IN_ORDER)
def test_rows_that_come_in_order_are_refused(case, symmetric):
    """The rows that are exchanged would all be large ones, or all of one group."""
    with pytest.raises(BadRows, match="in an order"):
        sample(len, hs.populations.Simulator(IN_ORDER[case]), rows=40, symmetric=symmetric)


TOO_EVEN = {
    "strata": lambda rng, n: rng.permutation((np.arange(n) + rng.random(n)) / n),
    "a Latin hypercube": lambda rng, n: qmc.LatinHypercube(2, rng=rng).random(n),
    "opposite pairs": lambda rng, n: np.abs(np.repeat(rng.random(n), 2)[:n] - np.arange(n) % 2),
}


@pytest.mark.parametrize("case", TOO_EVEN)
def test_rows_that_are_spread_too_evenly_are_refused(case):
    """Tables of such rows differ less than private ones, and so do the pairs made of them."""
    with pytest.raises(BadRows, match="evenly"):
        sample(len, hs.populations.Simulator(TOO_EVEN[case]), rows=201)


def test_independent_rows_are_never_too_even():
    """The chance of a refusal is 1e-13: none of these comes near it."""
    for seed in range(25):
        rng = np.random.default_rng(seed)
        for rows in (12, 13, 50, 400):
            for draw in (rng.random, rng.standard_cauchy):
                check_independence([[draw(rows)] for _ in range(16)])


def test_the_last_of_very_many_columns_is_looked_at(monkeypatch):
    """Of more columns than are looked at, those are chosen that are spread over all."""
    monkeypatch.setattr(_independence, "_MOST_COLUMNS", 40)
    rng = np.random.default_rng(0)
    tables = [list(rng.random((90, 60))) for _ in range(16)]
    _independence.check_independence(tables)
    for table in tables:
        table[-1] = 2 * rng.normal() + rng.normal(size=60)
    with pytest.raises(BadRows, match="more alike than rows of two"):
        _independence.check_independence(tables)


@pytest.mark.parametrize("case", IN_COMMON)
def test_rows_with_a_part_in_common_are_refused(case):
    """They are nearer to each other than a person of the population is to another one."""
    with pytest.raises(BadRows, match=r"in common|one table from two"):
        sample(len, hs.populations.Simulator(IN_COMMON[case]), rows=60)


FEW_ROWS = TOO_EVEN | {
    "half an offset": lambda rng, n: rng.normal() / 2 + rng.normal(size=n),
    "a scale": lambda rng, n: np.exp(rng.normal() / 2) * rng.normal(size=n),
    "groups of four": lambda rng, n: rng.permutation(np.repeat(rng.normal(size=n), 4)[:n]),
    "plus and minus": lambda rng, n: np.outer([1, -1], rng.normal(size=n)).T.ravel()[:n],
}


@pytest.mark.parametrize("case", FEW_ROWS)
def test_dependent_rows_of_small_tables_are_refused(case):
    """Twenty-one rows tell little of what they have in common: more such tables are compared."""
    with pytest.raises(BadRows, match=r"in common|evenly"):
        sample(len, hs.populations.Simulator(FEW_ROWS[case]), rows=21)


def test_rare_values_are_not_taken_for_a_part_in_common():
    """Three rare rows in one of many small tables: by chance, once in some thousand samplings."""
    rare = np.zeros((64, 20))
    rare[5, [3, 8, 11]] = 1.0
    check_independence([[each] for each in rare])
    with pytest.raises(BadRows, match="in common"):
        check_independence([[np.full(20, float(number))] for number in range(64)])


def test_the_certificate_says_that_independence_is_believed():
    """A test finds no weak dependence; of a law of ours, nothing is to be believed."""
    laws = (hs.populations.Uniform(0, 1), hs.populations.Simulator(lambda rng, n: rng.random(n)))
    texts = []
    for law in laws:
        s = sample(np.mean, law, rows=20, pairs=50)
        made = hs.release(np.mean, np.full(20, 0.5), hs.Laplace(s, epsilon=1))
        texts.append(made.certificate.explain())
    assert ["as its author says" in text for text in texts] == [False, True]


@pytest.mark.slow
def test_honest_coins_are_never_refused():
    """Three coins: of 300 seeds none is refused, whatever the chance of equal tables.

    A refusal of what happens to one seed in 44 is seen with 0.999; two tables are equal once in 8.
    """
    coins = hs.populations.Simulator(HONEST["coins"])
    for seed in range(300):
        check_source(coins, 2, seed=seed)
    s = sample(np.mean, coins, rows=2, pairs=2, calibration="marginal")
    assert s.value in (0, 0.5)  # one coin of two


def test_what_passed_symmetric_keeps_its_promise():
    """The real failure rate of a symmetric function stays at gamma (5 sigma)."""
    f, n, gamma = (lambda r: np.sort(r)[-3:].sum()), 30, 0.1
    s = sample(f, rows=n, gamma=gamma, pairs=None, symmetric=True)
    rng = np.random.default_rng(7)
    worse = 0
    for _ in range(3000):
        table = rng.random(n + 1)
        other = table[:n].copy()
        other[rng.integers(n)] = table[n]
        worse += abs(f(table[:n]) - f(other)) > s.value
    assert worse <= 3000 * gamma + 5 * math.sqrt(3000 * gamma * (1 - gamma))


class Warm:
    """Goes on from the last answer if the table is much like the last one."""

    def __init__(self, batch, part):
        self.batch, self.part, self.last = batch, part, None

    def __call__(self, given):
        tables = given if self.batch else given[None]
        answers = tables.max(axis=1)
        last = self.last
        if last is not None and last[0].shape == tables.shape:
            near = (last[0] != tables).sum(axis=1) <= 1
            answers = np.where(near, last[1] + self.part * (answers - last[1]), answers)
        self.last = tables.copy(), answers
        return answers if self.batch else answers[0]


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("part", [0.5, 0.0])
def test_neighbours_that_are_asked_in_turn_hide_no_movement(batch, part):
    """What remembers a table answers for its neighbour as if it had not moved."""
    with pytest.raises(BadFunction, match="asked before"):
        sample(Warm(batch, part), rows=5, batch=batch)


def by_address(rows):
    """Where an array lies."""
    return rows.ctypes.data


def by_file(folder, key):
    """Remember in files, which nothing that looks at a function sees."""

    def remember(rows, answer):
        kept = folder / str(key(rows))
        if not kept.exists():
            kept.write_text(repr(answer), encoding="utf-8")
        return float(kept.read_text(encoding="utf-8"))

    return remember


def by_dict(key):
    """Remember in a dictionary."""
    kept = {}
    return lambda rows, answer: kept.setdefault(key(rows), answer)


@pytest.mark.parametrize("where", ["dict", "file"])
@pytest.mark.parametrize("key", [id, by_address, lambda rows: id(rows.base)])
def test_a_cache_by_place_hides_no_movement(where, key, tmp_path):
    """Neighbours lie in one place one after the other, and the private rows in another one."""
    remember = by_dict(key) if where == "dict" else by_file(tmp_path, key)

    def cached(rows):
        mean = float(rows.mean())
        return remember(rows, mean) + mean / 1000

    with pytest.raises(BadFunction, match="asked before"):
        sample(cached, rows=20)


def test_a_memory_in_a_file_is_no_way_around(tmp_path):
    """What goes on from its last answer, kept where nobody looks."""
    kept = tmp_path / "last"

    def damped(rows):
        last = np.array([float(x) for x in kept.read_text().split()]) if kept.exists() else rows
        kept.write_text(" ".join(map(repr, rows.tolist())), encoding="utf-8")
        near = np.sum(last != rows) <= 1
        return float(last.max() + (rows.max() - last.max()) / 100) if near else float(rows.max())

    with pytest.raises(BadFunction, match="asked before"):
        sample(damped, rows=5)


@pytest.mark.slow
def test_what_is_kept_where_nobody_looks_is_named(monkeypatch):
    """Answers under the first row, in a module of an installed package: hardly anything moves."""
    monkeypatch.setattr(np.linalg, "shelf", Counter(), raising=False)

    def largest(rows):
        return np.linalg.shelf.setdefault(rows[0], float(rows.max()))

    s = sample(largest, rows=5, pairs=20, position="worst")
    text = hs.release(largest, np.full(5, 0.5), hs.Laplace(s, epsilon=1)).certificate.explain()
    assert "in modules of installed packages, in the subclasses" in text


@pytest.mark.slow
@pytest.mark.parametrize("batch", [False, True])
def test_what_only_counts_its_calls_passes(batch):
    """State that no answer depends on does no harm."""
    calls = []

    def counted(given):
        calls.append(len(given))
        return given.max(axis=1) if batch else given.max()

    assert sample(counted, rows=5, batch=batch).value > 0


SHARED = {
    "closure": (by_first_row(), {}),
    "class": (Shelf(), {}),
    "batch": (by_first_rows(), {"batch": True}),
    "decorator": (by_decorator(), {}),
    "all rows": (by_first_row(), {"protect": "simultaneous", "rows": 10}),
    "blocks": (hs.Blockwise(by_first_row(), rows=20), {"rows": 60}),
    "workers": (by_first_row(), {"workers": 2}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", SHARED)
def test_a_cache_under_what_neighbours_have_in_common_hides_no_movement(case):
    """In a new process, which never saw the other one, a neighbour gets another answer."""
    f, settings = SHARED[case]
    for _ in range(2):  # the second time it has kept all answers about the sampled tables
        with pytest.raises(BadFunction, match="in a new process"):
            sample(f, **settings)


@pytest.mark.slow
def test_rows_of_a_public_table_are_mixed_anew():
    """Those that are dealt are the same the second time, and their answers were kept."""
    table = hs.populations.PublicTable(np.random.default_rng(1).random(7000))
    kept = by_first_row()
    for _ in range(2):
        with pytest.raises(BadFunction, match="in a new process"):
            sample(kept, table)


@pytest.mark.slow
def test_a_cache_under_all_rows_passes():
    """It gives the answers that it would give without."""
    kept = {}
    s = sample(lambda rows: kept.setdefault(rows.tobytes(), rows.mean()))
    assert len(kept) > 60
    assert s.sampling.asked_anew is True
    assert s.value == sample(np.mean).value


@pytest.mark.slow
def test_what_a_function_says_in_a_new_process_is_not_heard(capfd):
    """It says it in this process, too, and would say it again."""
    kept, here = [], os.getpid()

    def speaks(rows):
        kept.append(0)
        if os.getpid() != here:
            os.write(2, b"there")
            print("there", flush=True)
        return rows.mean()

    sample(speaks)
    assert capfd.readouterr() == ("", "")


def test_what_cannot_be_asked_in_a_new_process_is_named():
    """A lock goes nowhere: the certificate says that it was not watched."""
    kept, lock = {}, threading.Lock()

    def locked(rows):
        with lock:
            return kept.setdefault(rows.tobytes(), rows.mean())

    found = sample(locked)
    assert set(found.sampling.unwatched) == {"kept", "lock"}
    assert found.sampling.asked_anew is False
    told = hs.release(locked, np.full(101, 0.5), hs.Laplace(found, epsilon=1)).certificate
    assert "nobody tried whether it keeps answers under a part of the rows" in told.explain()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["ends", "fails", "is another one"])
def test_what_goes_wrong_in_a_new_process_is_named(way):
    """As if nothing were kept, a cache under the first row hid how far it moves, unsaid."""
    kept, here = {}, os.getpid()

    def cached(rows):
        if os.getpid() != here:
            {"ends": lambda: os._exit(0), "fails": lambda: 1 / 0}.get(way, lambda: None)()
        return float(here != os.getpid()) + kept.setdefault(rows[0], rows.mean())

    assert sample(cached).sampling.asked_anew is False


@pytest.mark.slow
def test_a_process_that_ends_by_chance_is_started_again(tmp_path):
    """As one that the system ends where memory is short."""
    kept, here, noted = by_first_row(), os.getpid(), tmp_path / "ended"

    def cached(rows):
        if os.getpid() != here and not noted.exists():
            noted.touch()
            os._exit(9)
        return kept(rows)

    with pytest.raises(BadFunction, match="in a new process"):
        sample(cached)


@pytest.mark.slow
def test_what_does_not_end_in_a_new_process_is_named(monkeypatch):
    """As one that waits there for what only this process gives: the sampling never ended."""
    kept, here = {}, os.getpid()

    def waits(rows):
        if os.getpid() != here:
            threading.Event().wait()
        return kept.setdefault(rows[0], rows.mean())

    monkeypatch.setattr(_memory, "_TO_START", 5.0)
    assert sample(waits).sampling.asked_anew is False


def test_where_an_error_was_raised_is_named():
    """Its traceback holds the variables of the call, and so the rows."""
    stop = ValueError()

    def mean(rows):
        try:
            raise stop
        except ValueError:
            return rows.mean()

    assert set(sample(mean).sampling.unwatched) == {"stop.__traceback__"}


BY_TEXT = {
    "globals": 'globals()["kept"]',
    "code": 'eval("[kept][0]")',
    "the program": "__import__('__main__').kept",
    "its own module": "sys.modules[__name__].kept",
    "a module without a file": "__import__('stored').kept",
    "a module": "sys.modules['__main__'].kept",
}


@pytest.mark.slow
def test_a_cache_of_a_program_that_is_found_by_its_name_hides_no_movement(tmp_path):
    """What a program names by a text is sent along to the new process, empty as it was."""
    path = tmp_path / "program.py"
    functions = [
        f"def f{i}(rows): return {text}.setdefault(rows[0], rows.mean())\n"
        for i, text in enumerate(BY_TEXT.values())
    ]
    path.write_text(
        "import sys, types\n"
        "import hushed as hs\n"
        "kept = {}\n"
        "sys.modules['stored'] = types.ModuleType('stored')\n"
        "sys.modules['stored'].kept = {}\n" + "".join(functions) + "if __name__ == '__main__':\n"
        "    unit = hs.populations.Uniform(low=0, high=1)\n"
        f"    for i in range({len(BY_TEXT)}):\n"
        "        kept.clear()\n"
        "        try:\n"
        "            hs.sample_sensitivity(\n"
        "                globals()[f'f{i}'], unit, rows=20, gamma=0.3, workers=1)\n"
        "        except hs.errors.BadFunction as refused:\n"
        "            print('in a new process' in str(refused))\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, path], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["True"] * len(BY_TEXT), done.stderr


@pytest.mark.slow
def test_a_cache_of_a_file_of_the_command_line_hides_no_movement(tmp_path):
    """Its module is no module that a new process can import."""
    path = tmp_path / "cached.py"
    path.write_text(
        "import sys\n"
        "kept = {}\n"
        "def mean(rows):\n"
        "    return sys.modules[__name__].kept.setdefault(rows[0], rows.mean())\n"
    )
    with pytest.raises(BadFunction, match="in a new process"):
        sample(read_function(f"{path}:mean"))


def _shared(rng, count):
    return rng.normal(0, 100) + rng.normal(size=count)


def _in_wide_table(rng, count):
    table = rng.normal(size=(count, 40))
    table[:, 35] = _shared(rng, count)
    return table


def _in_subarray(rng, count):
    table = np.empty(count, dtype=[("a", "f8", (2,))])
    table["a"] = _shared(rng, count)[:, None]
    return table


def _in_dates(rng, count):
    days = _shared(rng, count).astype("timedelta64[D]") + np.datetime64("2000-01-01")
    return [{"day": day} for day in days.tolist()]


def _in_missing_cells(rng, count):
    cells = [None if rng.random() < 0.02 else int(each) for each in 100 * _shared(rng, count)]
    return pd.DataFrame({"x": pd.array(cells, dtype="Int64")})


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, count: [(each,) for each in _shared(rng, count).tolist()],
        lambda rng, count: [{"x": [each]} for each in _shared(rng, count).tolist()],
        _in_wide_table,
        _in_subarray,
        _in_dates,
        _in_missing_cells,
    ],
)
def test_a_part_in_common_is_found_wherever_it_stands(draw):
    """Lists of rows, the 36th column, cells of several values, dates and missing cells, too."""
    with pytest.raises(BadRows, match="in common"):
        check_source(hs.populations.Simulator(draw), 20, seed=0)


def test_rows_of_independent_cells_pass():
    def draw(rng, count):
        return [
            (i, [float(v)] * int(rng.integers(1, 4))) for i, v in enumerate(rng.normal(size=count))
        ]

    check_source(hs.populations.Simulator(draw), 20, seed=0)


def test_a_part_in_common_of_later_rows_of_users_is_found():
    """The first row of each user is drawn by itself, and the second is not."""

    def draw(rng, count):
        table = np.repeat(np.arange(float(count)), 2)[:, None].repeat(2, axis=1)
        table[::2, 1], table[1::2, 1] = rng.normal(size=count), _shared(rng, count)
        return table

    with pytest.raises(BadRows, match="in common"):
        hs.sample_sensitivity(
            len, hs.populations.Simulator(draw), rows=20, gamma=0.3, user=0, seed=0, workers=1
        )
