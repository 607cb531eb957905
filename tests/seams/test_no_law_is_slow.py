"""No law, however often it counts and whatever else was charged, stops or slows the others."""

import json
import math
import sys
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import psycopg
import pytest

import hushed as hs
from hushed import privacy_loss
from hushed.accounting._filters import Cost, privacy_filters
from hushed.errors import Overspent, ParameterError
from hushed.ledger._entries import digest, write_entry
from hushed.ledger._exact import LossSum
from hushed.privacy_loss._composition import window

G = hs.Guarantee
FREE = Cost(amount=0.0, delta=0.0)
FILTERS = privacy_filters(1.0, 1e-6, method="pld")


def calls_of(function):
    """Calls that a function makes: work, whatever the machine does besides."""
    number = 0

    def count(*_):
        nonlocal number
        number += 1

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return number


@pytest.mark.slow
@pytest.mark.slow_cases("1024.0", "1.0")
@pytest.mark.parametrize("size", [1.0, 1024.0, 1e6])
def test_a_law_that_counts_ten_million_times_is_soon_composed(size):
    """Where a step of the grid fades all that is beyond it, no step costs a turn of its own."""
    privacy_loss.laplace(1.0).compose(2).epsilon(1e-6)  # what is imported later is
    law = privacy_loss.laplace(size).compose(10**7)
    found = []
    assert calls_of(lambda: found.append((law.delta_bracket(1.0), law.epsilon(1e-6)))) < 300_000
    (bracket, epsilon) = found[0]
    assert bracket.high == 1.0
    mean = 10**7 * (size - 1 + math.exp(-size))  # of the loss: two atoms and what is between
    assert 0.99 * mean < epsilon <= 10**7 * size


@pytest.mark.slow_cases("promises")
@pytest.mark.parametrize("law", [hs.privacy_loss.laplace, None], ids=["laws", "promises"])
def test_many_different_laws_are_counted_as_few(law):
    """Rounded up, ever coarser, and never down: neither in number nor in size."""
    sums, levels = LossSum(1.0, 1e-6, *FILTERS), [10 ** (-4 + 3 * i / 6000) for i in range(6000)]
    for each in levels:
        sums.add(G(epsilon=each), law and law(each), FREE)
    assert len(sums.counts) < 900
    assert sum(sums.counts.values()) == len(levels)
    largest = sum(family.supremum * count for family, count in sums.counts.items())
    assert sum(levels) <= largest < 1.2 * sum(levels)


@pytest.mark.slow
def test_laws_of_all_sizes_are_counted_as_few():
    """Pairs of an epsilon and a delta from all over the doubles; infinite masses only grow."""
    sums = LossSum(1.0, 1e-6, *FILTERS)
    for i in range(3000):
        sums.add(G(epsilon=2.0 ** (i % 600 - 300), delta=2.0 ** -(1 + i % 1001)), None, FREE)
    assert len(sums.counts) < 1800
    lost = math.fsum(min(family.infinite, 1.0) * n for family, n in sums.counts.items())
    assert lost >= math.fsum(2.0 ** -(1 + i % 1001) for i in range(3000))


@pytest.mark.slow_cases("1e+30-100000", "1e+90-100")
@pytest.mark.parametrize(("bound", "count"), [(1e90, 100), (1e30, 10**5), (1e99, 999_999_999)])
def test_a_law_beyond_all_doubles_stops_nobody(postgres, postgres_url, bound, count):
    """What cannot be composed is everything: balances are read, charges are refused with words."""
    with hs.Ledger(postgres_url) as book:
        book.open_budget("b", G(epsilon=1.0, delta=1e-6), method="pld")
        mine = book.charge("b", G(epsilon=0.25), loss=privacy_loss.laplace(0.25))
        record = json.loads(write_entry(replace(mine, number=2)))
        record["guarantee"]["epsilon"] = "inf"
        record["law"] = [{"law": "laplace", "bound": bound.hex(), "count": count}]
        text = json.dumps(record, sort_keys=True, separators=(",", ":"))
        with psycopg.connect(postgres_url, autocommit=True) as login:
            link = digest(mine.digest, text)
            login.execute("SELECT hushed_append('b', 2, %s, %s)", (text, link))
        assert book.balance("b").epsilon_left == 0.0
        with pytest.raises(Overspent):
            book.charge("b", G(epsilon=0.01))


@pytest.mark.slow
def test_a_used_up_budget_is_soon_read(tmp_path):
    """Nothing fits: that is asked once, and not once more for each smaller epsilon."""
    with hs.Ledger(f"sqlite:///{tmp_path}/budget.db") as book:
        book.open_budget("b", G(epsilon=1.0, delta=1e-6), method="pld")
        book.charge("b", G(epsilon=1.0), loss=privacy_loss.laplace(1.0))
        book.charge("b", G(epsilon=0.0, delta=1e-6))
        book.balance("b")  # what is imported later is
        assert calls_of(lambda: book.balance("b")) < 10_000
        assert book.balance("b").epsilon_left == 0.0


@pytest.mark.parametrize("law", [privacy_loss.laplace, privacy_loss.approximate])
@pytest.mark.parametrize("number", [10**9, 10**12, 10**14])
def test_more_losses_than_any_grid_has_room_for_are_bounded_without_one(law, number):
    """Soon and from above; so many small losses are those of one Gaussian release."""
    many = law(0.5 / math.sqrt(number)).compose(10**7).compose(number // 10**7)
    normal = NormalDist()
    limit = normal.cdf(-1.75) - math.exp(1.0) * normal.cdf(-2.25)
    assert many.delta_bracket(1.0).low <= limit <= many.delta_bracket(1.0).high < 3 * limit
    smallest = privacy_loss.gaussian(0.5).epsilon(1e-6)
    assert 0.99 * smallest < many.epsilon(1e-6) < 1.1 * smallest


def test_a_window_that_leaves_the_doubles_has_no_answer():
    """What is not a number is above nothing, and would be taken for an epsilon of 0."""
    number = 10**12
    many = privacy_loss.bounded_range(5e-7).compose(10**7).compose(number // 10**7)
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(ParameterError):
        window(many.parts, 0.0, 2**20)
