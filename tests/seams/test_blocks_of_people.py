"""Blocks of people hold whole people, with all of their rows, wherever they are cut."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hushed as hs

PEOPLE, BLOCK = 12, 4
SIZES = [1, 7, 2, 1, 5, 3, 1, 1, 4, 2, 6, 1]  # rows of each: 34


def make_array(rows):
    """The rows as an array of numbers."""
    return np.array(rows, dtype=float)


def make_frame(rows):
    """The rows as a pandas frame, whose people have names."""
    frame = pd.DataFrame(rows, columns=["who", "cost"])
    return frame.assign(who="nr " + frame["who"].astype(str))


def make_polars(rows):
    """The same in Polars."""
    return pl.from_pandas(make_frame(rows))


KINDS = {
    "array": (make_array, 0),
    "list": (lambda rows: list(map(tuple, rows)), 0),
    "pandas": (make_frame, "who"),
    "polars": (make_polars, "who"),
}


def read(rows):
    """Columns of people and of costs, of any kind of table."""
    if isinstance(rows, list):
        return np.array(rows, dtype=float).reshape(-1, 2).T
    if isinstance(rows, np.ndarray):
        return rows.T
    return rows["who"].to_numpy().astype(float), rows["cost"].to_numpy().astype(float)


def census(rows):
    """People, rows and the last person's number of a block."""
    who, _ = read(rows)
    return np.array([len(np.unique(who)), len(who), who.max()], dtype=float)


def costs_of(rng, sizes):
    """Rows of people with so many rows each, in a random order."""
    whose = np.repeat(np.arange(len(sizes)), sizes)
    return [(int(each), float(rng.random())) for each in rng.permutation(whose)]


@pytest.mark.parametrize("kind", [*KINDS, "locked array"])
def test_every_block_has_its_number_of_people_with_all_of_their_rows(kind):
    """A block of four people was cut as four rows, so that people were in several blocks."""
    make, user = KINDS[kind.removeprefix("locked ")]
    rows = costs_of(np.random.default_rng(1), SIZES)
    table = make(rows)
    if kind == "locked array":
        table.flags.writeable = False
    blocks = []

    def note(part):
        who, costs = read(part)
        blocks.append((sorted(set(who.tolist())), sorted(costs.tolist())))
        return 0.0

    hs.Blockwise(note, rows=BLOCK, user=user)(table)
    assert [who for who, _ in blocks] == [[0, 1, 2, 3]] * (PEOPLE // BLOCK)
    assert sorted(cost for _, costs in blocks for cost in costs) == sorted(c for _, c in rows)


@pytest.mark.slow_cases("pandas")
@pytest.mark.parametrize("kind", KINDS)
def test_a_release_averages_blocks_of_people(kind):
    """The gate, too: nearly without noise it tells how many people and rows a block has."""
    make, user = KINDS[kind]

    def draw(rng, count):
        return make(costs_of(rng, rng.integers(1, 9, size=count)))

    blocks = hs.Blockwise(census, rows=BLOCK, user=user)
    public = hs.populations.Simulator(draw)
    s = hs.sample_sensitivity(
        blocks, public, rows=PEOPLE, user=user, gamma=0.5, calibration="marginal", workers=1
    )
    private = make(costs_of(np.random.default_rng(2), SIZES))
    released = hs.release(blocks, private, hs.Laplace(s, epsilon=1e7))
    wanted = [BLOCK, sum(SIZES) / (PEOPLE // BLOCK), BLOCK - 1]
    np.testing.assert_allclose(released.value, wanted, atol=1e-3)


def test_another_person_moves_one_block_alone():
    """Whoever has many rows is in one block with all of them: the others answer as before."""
    rng = np.random.default_rng(3)
    owners = np.repeat(np.arange(PEOPLE), SIZES)
    table = np.column_stack([owners, rng.random(len(owners))])
    for person, rows in ((1, 1), (6, 30)):
        new = np.column_stack([np.full(rows, float(person)), np.full(rows, 100.0)])
        neighbour = np.concatenate([table[owners < person], new, table[owners > person]])
        answers = []
        for each in (table, neighbour):
            seen = []
            hs.Blockwise(lambda part, seen=seen: seen.append(part.tobytes()) or 0.0,
                         rows=BLOCK, user=0)(each)  # fmt: skip
            answers.append(seen)
        assert sum(a != b for a, b in zip(*answers, strict=True)) == 1
