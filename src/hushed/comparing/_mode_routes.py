"""The routes of a mode that draw a category: each table is counted once for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from hushed._ground.printing import format_exactly
from hushed._ground.types import Floats, Integers
from hushed.comparing._laws import Chosen
from hushed.comparing._offers import Offer, Plan, Priced, say_promise, say_unit
from hushed.comparing._question import Question
from hushed.comparing._simulated import Table
from hushed.mechanisms import InverseSensitivity, NoisyMax, TopK
from hushed.mechanisms._inverse import WIDTH
from hushed.sensitivity import global_sensitivity
from hushed.statistics import Mode
from hushed.statistics._lengths import mode_lengths

_FAR = 30.0  # scales that the noise exceeds with a chance below 1e-13
_CELLS = 16  # for each scale


Drawn = TopK | NoisyMax | InverseSensitivity


def offer_top(mode: Mode, question: Question) -> Offer:
    """Choose the category by the exponential mechanism on the numbers of rows."""
    moved = global_sensitivity(mode, "range")
    how = 'hs.TopK(1, hs.global_sensitivity(s, "range"), epsilon={epsilon})'
    return _offer(mode, lambda e: TopK(1, moved, epsilon=e), how, say_promise(question))


def offer_winner(mode: Mode, question: Question) -> Offer:
    """Choose the category with the largest noisy number of rows, which tells its lead, too."""
    moved = global_sensitivity(mode, "range")
    how = 'hs.NoisyMax(hs.global_sensitivity(s, "range"), epsilon={epsilon})'
    return _offer(mode, lambda e: NoisyMax(moved, epsilon=e), how, say_promise(question))


def offer_nearest(mode: Mode, question: Question) -> Offer:
    """Choose by how many rows must change before a category is the mode."""
    how = "hs.InverseSensitivity(s, epsilon={epsilon})"
    return _offer(mode, lambda e: InverseSensitivity(mode, epsilon=e), how, say_promise(question))


def offer_top_key(mode: Mode, question: Question) -> Offer:
    """Choose the key with the most rows in a table query: there a row is added or removed."""
    moved = global_sensitivity(replace(mode, rows=None), "range")
    how = "hs.table(...).top_k(COLUMN, k=1, keys=[...]).release(epsilon={epsilon})"
    promise = f"every table, one {say_unit(question)} more or less"
    return _offer(mode, lambda e: TopK(1, moved, epsilon=e), how, promise)


def _offer(mode: Mode, make: Callable[[float], Drawn], how: str, promise: str) -> Offer:
    """Offer a choice; its error counts the rows that a category lags behind."""

    def plan(epsilon: float) -> Plan:
        made = make(epsilon)
        written = how.format(epsilon=format_exactly(epsilon))

        def price(drawn: Floats) -> Priced:
            return Priced(guarantee=made.guarantee, errors=Chosen.of_rows(drawn), how=written)

        return Plan(measure=partial(_measure, mode, made), price=price)

    return Offer(promise=promise, at=plan)


def _measure(mode: Mode, made: Drawn, table: Table) -> Floats:
    counts = table.once("counts", lambda: mode.count(table.rows))
    lags = table.once("lags", lambda: mode_lengths(counts, replace=mode.rows is not None))
    if isinstance(made, InverseSensitivity):
        chances = chances_of_top(WIDTH / made.epsilon, -lags)
    elif isinstance(made, TopK):
        chances = chances_of_top(made.scale, counts)
    else:
        chances = chances_of_winner(made.scale, counts)
    return np.concatenate([lags, chances])


def chances_of_top(scale: float, scores: Integers) -> Floats:
    """Chance of each category: ``scale`` rows less make it e times less likely."""
    weights: Floats = np.exp((scores - scores.max()) / scale)
    weights /= weights.sum()
    return weights


def chances_of_winner(scale: float, counts: Integers) -> Floats:
    """Chance that each category has the largest number of rows after Laplace noise.

    Notes
    -----
    Let F_i be the distribution functions of the noisy numbers, and G their product, that of the
    largest one. It is that of category i with probability ``integral of (log F_i)' G``. In a short
    cell G grows by a probability, of which i gets the share by which log F_i grows of what log G
    does. So the chances add up to 1; those of two categories are known, and met to 0.05 %.
    """
    behind, place, alike = np.unique(
        (counts - counts.max()) / scale, return_inverse=True, return_counts=True
    )
    near = behind > -_FAR
    end = _FAR + np.log(counts.size)
    edges = np.linspace(-_FAR, end, int((_FAR + end) * _CELLS))
    logs = _log_below(edges - behind[near, None])
    product = alike[near] @ logs
    grown = np.diff(product)
    mass = -np.expm1(-grown) * np.exp(product[1:])
    chances = np.zeros(behind.size)
    chances[near] = np.diff(logs) @ (mass / grown)
    found: Floats = chances[place]
    found /= found.sum()
    return found


def _log_below(x: Floats) -> Floats:
    """Logarithm of the distribution function of Laplace noise of scale 1."""
    return np.where(x < 0, x - np.log(2), np.log1p(-np.exp(-np.abs(x)) / 2))
