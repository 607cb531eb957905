"""Functions that keep answers under a part of the rows; new processes load this file alone."""

import functools
from typing import ClassVar

import numpy as np


class Shelf:
    """Keeps answers in its class."""

    kept: ClassVar = {}

    def __call__(self, rows):
        return self.kept.setdefault(rows[0], rows.mean())


def by_first_row():
    """Keep answers in a closure, under the first row."""
    kept = {}
    return lambda rows: kept.setdefault(rows[0], rows.mean())


def by_first_rows():
    """The same for stacked tables."""
    kept = {}
    return lambda stack: np.array([kept.setdefault(rows[0], rows.mean()) for rows in stack])


class Key:
    """Rows that pass for equal if they begin alike."""

    def __init__(self, rows):
        self.rows = rows

    def __hash__(self):
        return hash(self.rows[0])

    def __eq__(self, other):
        return self.rows[0] == other.rows[0]


def by_decorator():
    """Keep answers in a cache of functools."""
    mean = functools.lru_cache(None)(lambda key: key.rows.mean())
    return lambda rows: mean(Key(rows))
