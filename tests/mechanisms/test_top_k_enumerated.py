"""Top k on all small tables: the exact law of the draw itself, and its exact privacy loss.

What is drawn is found out by handing the draw every ticket, coin and place that it can get, and no
formula of the mechanism is used for that. The law by the definition is then written down once more,
in rationals, and so is that of choosing one after the other.
"""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.noise.test_exact import Recorded

import hushed as hs
from hushed.noise import _joint as joint

EPSILON = 1.0
FINE = Fraction(1, 1 << 50)  # far above what 64 digits of a coin leave open
KEYS = 4


def mechanism(k, neighbours):
    moved = hs.proven_sensitivity(1.0, "sup", neighbours=neighbours, argument="one row, one key")
    return hs.TopK(k, moved, epsilon=EPSILON, monotone=neighbours == "add-remove")


class Driven:
    """The randomness of a draw, written down: a ticket, then the places; coins are noted."""

    def __init__(self, monkeypatch):
        self.accept = joint._accept
        self.level, self.bounds, self.answers, self.coin = None, [], [], None
        monkeypatch.setattr(joint, "uniform_integers", self.give)
        monkeypatch.setattr(joint, "_accept", self.note)

    def give(self, bound):
        self.bounds.append(bound)
        number = len(self.bounds) - 1
        return np.int64(self.answers[number] if number < len(self.answers) else 0)

    def note(self, words, ladder, level, *rest):
        self.level, self.coin = level, lambda words: self.accept(words, ladder, level, *rest)
        return True

    def run(self, made, scores, *answers):
        self.bounds, self.answers = [], answers
        return tuple(made.draw(scores).tolist())


def first_where(holds, end):
    """Smallest number below the end for which something holds that stays true."""
    low, high = 0, end
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def list_levels(driven, made, scores):
    """Tickets of each level, one of them, and the share of coins that accept it."""
    driven.run(made, scores, 0)
    tickets, begin = driven.bounds[0], 0
    while begin < tickets:
        driven.run(made, scores, begin)
        level, coin = driven.level, driven.coin

        def is_later(ticket, level=level):
            driven.run(made, scores, ticket)
            return driven.level > level

        end = first_where(is_later, tickets)
        refused = first_where(lambda word, coin=coin: not coin(Recorded([word], rest=0)), 1 << 64)
        yield end - begin, begin, Fraction(refused, 1 << 64)
        begin = end


def list_choices(driven, made, scores, ticket):
    """All choices after a ticket, with their exact probabilities."""
    found, waiting = {}, [()]
    while waiting:
        places = waiting.pop()
        chosen = driven.run(made, scores, ticket, *places)
        bounds = driven.bounds[1:]
        if len(places) < len(bounds):
            waiting += [(*places, place) for place in range(bounds[len(places)])]
        else:
            found[chosen] = found.get(chosen, 0) + 1 / Fraction(math.prod(map(int, bounds)))
    return found


def law_drawn(driven, made, scores):
    """Probability of every choice, of the draw itself; coins are read to 64 digits."""
    weights = {}
    for shares, ticket, accepted in list_levels(driven, made, np.array(scores, dtype=float)):
        for chosen, chance in list_choices(
            driven, made, np.array(scores, dtype=float), ticket
        ).items():
            weights[chosen] = weights.get(chosen, 0) + shares * accepted * chance
    return {chosen: weight / sum(weights.values()) for chosen, weight in weights.items()}


def law_stated(scores, k, base):
    """The law by its definition: a choice is worth what its worst place falls short by.

    A choice falls short by the least t with which it holds, place by place, as many points as the
    best ones do. ``base`` is the price of a point, rational.
    """
    best = sorted(scores, reverse=True)[:k]
    weights = {}
    for chosen in itertools.permutations(range(len(scores)), k):
        short = 0
        while any(scores[i] + short < b for i, b in zip(chosen, best, strict=True)):
            short += 1
        weights[chosen] = base**short
    return {chosen: weight / sum(weights.values()) for chosen, weight in weights.items()}


def law_peeled(scores, k, base):
    """One after the other, each by its share among those that are left."""
    found = {}
    for chosen in itertools.permutations(range(len(scores)), k):
        left, chance = set(range(len(scores))), Fraction(1)
        for i in chosen:
            chance *= base ** -scores[i] / sum(base ** -scores[j] for j in left)
            left.remove(i)
        found[chosen] = chance
    return found


def tables(rows, keys=KEYS):
    """Counts of all tables of at most so many rows."""
    return [c for c in itertools.product(range(rows + 1), repeat=keys) if sum(c) <= rows]


def neighbours_of(counts, kind):
    """One row less; or, among the tables of as many rows, one row with another key."""
    for i in range(len(counts)):
        less = tuple(c - (j == i) for j, c in enumerate(counts))
        if counts[i] and kind == "add-remove":
            yield less
        elif counts[i]:
            yield from (tuple(c + (j == to) for j, c in enumerate(less)) for to in range(len(less)))


def ratio(one, other):
    """Largest ratio of two probabilities of one choice, either way."""
    assert one.keys() == other.keys()
    return max(max(one[c] / other[c], other[c] / one[c]) for c in one)


def worst_ratio(laws, kind):
    return max(ratio(laws[t], laws[o]) for t in laws for o in neighbours_of(t, kind) if o in laws)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["add-remove", "replace-one"])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_draw_itself_loses_epsilon_at_most(monkeypatch, k, kind):
    """On all tables of up to 3 rows over four keys, ties among them; and it is the stated law."""
    driven, made = Driven(monkeypatch), mechanism(k, kind)
    laws = {counts: law_drawn(driven, made, counts) for counts in tables(3)}
    worst = worst_ratio(laws, kind)
    with mpmath.workdps(40):
        most = mpmath.exp(mpmath.mpf(EPSILON))
        assert worst.numerator / mpmath.mpf(worst.denominator) <= most * (1 + mpmath.mpf(2) ** -50)
        price = mpmath.exp(-mpmath.mpf(2**30) * made.rate.numerator / made.rate.denominator)
        base = Fraction(int(mpmath.ldexp(price, 100)), 1 << 100)  # 30 more digits than are compared
    assert worst > Fraction(13, 10)  # no choice among four hides everything: e**0.26
    for counts, law in laws.items():
        stated = law_stated(counts, k, base)
        assert all(abs(law[chosen] - stated[chosen]) < FINE for chosen in stated)


@pytest.mark.parametrize("base", [Fraction(1, 2), Fraction(9, 10), Fraction(1, 50)])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_stated_law_in_rationals(k, base):
    """All tables of up to 4 rows over four keys: a row changes no chance by more than the price.

    A point of each place costs ``base``: of counts one row moves a loss by 1, either way, where the
    first place is not common to all choices. A replaced row moves it by 2.
    """
    laws = {counts: law_stated(counts, k, base) for counts in tables(4)}
    places = 1 if k == 1 else 2
    assert worst_ratio(laws, "add-remove") < base**-places
    assert worst_ratio(laws, "replace-one") < base ** (-2 * places)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_price_is_what_half_of_the_places_may_move_by(k):
    """With so many rows that nothing else is likely, nearly all of epsilon is lost, and no more."""
    base, far = Fraction(1, 50), 40
    one = law_stated((far, far, far, 0), k, base)
    assert {c: p for c, p in one.items() if p > Fraction(1, 100)}.keys() == {
        c for c in one if 3 not in c
    }
    first, second = (law_stated(c, k, base) for c in ((far, far, 0, 0), (far - 1, far, 0, 0)))
    most = base ** -(1 if k == 1 else 2)
    assert base ** Fraction(1, 1) * most < ratio(first, second) < most


@pytest.mark.parametrize("base", [Fraction(1, 2), Fraction(9, 10), Fraction(1, 50)])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_one_after_the_other_costs_each_choice(k, base):
    """Peeling with the price of a k-th of epsilon keeps epsilon, for counts and replaced rows."""
    laws = {counts: law_peeled(counts, k, base) for counts in tables(4)}
    assert worst_ratio(laws, "add-remove") < base**-k
    assert worst_ratio(laws, "replace-one") < base ** (-2 * k)
    assert worst_ratio(laws, "replace-one") > base ** -Fraction(1, 2)
