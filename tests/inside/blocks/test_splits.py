"""The whole law of a release on small tables: every split, a nasty function, every neighbour."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pytest

import hushed as hs
from hushed.blocks._parts import split_rows

VALUES, EPSILON = (0, 1, 2), 1.0
KINDS = ["exponential", "votes"]


def nasty(part):
    """Answer with what depends on everything in the part, its size too; an empty one has one."""
    return float((7 * len(part) + 5 * sum(part) + 3 * len(set(part))) % 3)


def splits(rows, blocks, relation):
    """Give every split with equal probability, by the numbers that are drawn."""
    if relation == "replace-one":
        for order in permutations(range(len(rows))):
            yield split_rows(list(rows), blocks, even=True, draw=lambda *_, o=order: np.array(o))
        return
    for labels in product(range(blocks), repeat=len(rows)):

        def draw(bound, count, labels=labels):
            return np.array(labels) if bound == blocks else np.arange(count)

        yield split_rows(list(rows), blocks, even=False, draw=draw)


def law_of(rows, blocks, relation, drawn, function):
    """Average the exact law of the choice over all splits."""
    laws = []
    for parts in splits(rows, blocks, relation):
        answers = np.array([function(part) for part in parts], dtype=float)
        weights = np.exp(EPSILON * drawn.scores(answers) / 2)
        laws.append(weights / weights.sum())
    return np.mean(laws, axis=0)


def list_neighbours(relation):
    """Give pairs of small tables."""
    if relation == "add-remove":
        tables = [t for n in range(4) for t in product((0, 1, 5), repeat=n)]
        return [(t, t[:i] + t[i + 1 :]) for t in tables for i in range(len(t))]
    tables = list(combinations_with_replacement((0, 1, 5), 4))
    return [(t, (new, *t[1:])) for t in tables for new in (0, 1, 5)]


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_neighbour_loses_more_than_epsilon_over_all_splits(kind, relation):
    """Parts may be empty, and the function may count its rows."""
    drawn = hs.Blocks(VALUES, epsilon=EPSILON, aggregate=kind).aggregation
    laws, worst = {}, 0.0
    for pair in list_neighbours(relation):
        for rows in pair:
            if rows not in laws:
                laws[rows] = np.log(law_of(rows, 3, relation, drawn, nasty))
        worst = max(worst, float(np.abs(laws[pair[0]] - laws[pair[1]]).max()))
    assert 0.1 * EPSILON < worst <= EPSILON


def test_a_function_that_keeps_rows_between_calls_breaks_it():
    """The same enumeration sees it: so calls must share nothing."""
    drawn = hs.Blocks(VALUES, epsilon=EPSILON, aggregate="votes").aggregation

    def release(rows):
        kept = []

        def remembering(part):
            kept.extend(part)
            return 2.0 * (5 in kept)

        answers = np.array([remembering(part) for part in [[row] for row in rows]])
        weights = np.exp(EPSILON * drawn.scores(answers) / 2)
        return weights / weights.sum()

    one, other = release((5, 0, 0, 0, 0, 0)), release((0, 0, 0, 0, 0, 0))
    assert np.abs(np.log(one / other)).max() > 2 * EPSILON


def test_users_move_together():
    """However many rows a user has, one part changes; so nobody's number of rows matters."""
    drawn = hs.Blocks(VALUES, epsilon=EPSILON, aggregate="votes").aggregation
    with_user = [("a", 1), ("b", 0), ("a", 5), ("a", 5), ("c", 1)]
    without = [row for row in with_user if row[0] != "a"]

    def law(rows):
        users = list(dict.fromkeys(row[0] for row in rows))
        laws = []
        for labels in product(range(3), repeat=len(users)):

            def draw(bound, count, labels=labels):
                return np.array(labels) if bound == 3 else np.arange(count)

            parts = split_rows(rows, 3, 0, even=False, draw=draw)
            answers = np.array([nasty([row[1] for row in part]) for part in parts])
            weights = np.exp(EPSILON * drawn.scores(answers) / 2)
            laws.append(weights / weights.sum())
        return np.mean(laws, axis=0)

    worst = np.abs(np.log(law(with_user) / law(without))).max()
    assert 0.05 < worst <= EPSILON
    assert math.isfinite(worst)
