"""Exact laws of sparse vector on integers, by summing over the threshold's noise.

An oracle for the tests: it knows the rule "yes if answer + noise >= threshold + its noise", the
laws of the noise, and nothing of the library.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

FAR = 90.0  # noise beyond so many scales has a mass below 1e-39


def one_sided(scale):
    """Support and mass of geometric noise."""
    at = np.arange(math.ceil(FAR * scale) + 1)
    return at, -np.expm1(-1 / scale) * np.exp(-at / scale)


def two_sided(scale):
    """Support and mass of discrete Laplace noise."""
    reach = math.ceil(FAR * scale) + 1
    at = np.arange(-reach, reach + 1)
    return at, np.tanh(1 / (2 * scale)) * np.exp(-np.abs(at) / scale)


def one_sided_tail(scale):
    """P(noise >= m)."""
    return lambda m: np.exp(-np.maximum(m, 0) / scale)


def two_sided_tail(scale):
    """P(noise >= m)."""
    q = math.exp(-1 / scale)

    def tail(m):
        above = np.exp(-np.maximum(m, 1) / scale) / (1 + q)
        below = 1 - np.exp(-np.maximum(1 - m, 1) / scale) / (1 + q)
        return np.where(m >= 1, above, below)

    return tail


def log_law(
    answers,
    *,
    positives,
    bar,
    query_tail,
    gaps=None,
    threshold=0,
    query_mass=None,
    values=None,
    value_mass=None,
):
    """Give the log probability of every output, as a dict.

    An output is a string of no (0) and yes (1) that ends at the last yes; with `gaps`, each yes is
    told with its gap, up to that many steps; with `values`, with one of these values, too.
    """
    at, mass = bar
    found = {}

    def valued(index, left, told, weight):
        """Go on after a yes that was told, with each of the values if there are any."""
        if values is None:
            walk(index + 1, left - 1, told, weight)
            return
        *before, yes = told
        for value in values:
            chance = value_mass(value - answers[index])
            walk(index + 1, left - 1, (*before, (yes, value)), weight * chance)

    def walk(index, left, told, weight):
        if index == len(answers) or not left:
            found[told] = math.log(weight.sum()) if weight.sum() > 0 else -math.inf
            return
        need = threshold + at - answers[index]
        yes = query_tail(need)
        walk(index + 1, left, (*told, 0), weight * (1 - yes))
        if gaps is None:
            valued(index, left, (*told, 1), weight * yes)
            return
        for gap in range(gaps):
            valued(index, left, (*told, (1, gap)), weight * query_mass(need + gap))

    walk(0, positives, (), mass)
    return found


def largest_loss(vectors, shifts, law, least=-60.0):
    """Largest loss between neighbours, both directions; outputs rarer than exp(least) are left."""
    worst = -math.inf
    laws = {}

    def known(answers):
        if answers not in laws:
            laws[answers] = law(answers)
        return laws[answers]

    for answers, shift in itertools.product(vectors, shifts):
        other = tuple(a + s for a, s in zip(answers, shift, strict=True))
        one, two = known(tuple(answers)), known(other)
        for told in one:
            if max(one[told], two[told]) > least:
                worst = max(worst, abs(one[told] - two[told]))
    return worst
