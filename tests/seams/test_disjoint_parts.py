"""Releases on disjoint parts: each part is a table, and fails by itself."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import hushed as hs


@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize("protect", ["record", "everyone", "simultaneous"])
def test_a_shared_sampled_sensitivity_fails_once_for_each_part(parts, protect):
    """One of 20 tables fails: gamma covers the share of draws in which any part does."""
    failing = sum(0 in drawn for drawn in product(range(20), repeat=parts))
    true = Fraction(failing, 20**parts)
    shared = hs.Guarantee(
        epsilon=1.0, gamma=0.05, protect=protect, estimates=(("sha256:same", 0.05),)
    )
    found = hs.parallel([shared] * parts, membership="public").guarantee
    assert true <= Fraction(str(found.gamma)) <= Fraction(parts, 20)
    again = hs.compose([found, shared], delta=0.0).guarantee
    assert Fraction(str(again.gamma)) >= true


def test_the_smallest_possible_level_of_parts_is_bounded_from_below():
    """The lower end of the bracket is that of a part, which is proven; not its rounded level."""
    rule = hs.proven_sensitivity(1.0, "l2", argument="test", neighbours="add-remove")
    part = hs.Gaussian(rule, epsilon=0.7, delta=1e-5)
    found = hs.parallel([part, part])
    assert found.exact.low <= part.loss.epsilon_bracket(found.delta).low
    assert found.exact.high == found.epsilon == 0.7


def test_what_counts_gamma_once_says_for_which_tables(tmp_path):
    """A shared estimate counts once for one table: said wherever such a sum is printed."""
    shared = hs.Guarantee(epsilon=0.1, gamma=0.05, estimates=(("sha256:same", 0.05),))
    limit = hs.Guarantee(epsilon=1.0, gamma=0.1)
    assert "the same table" in hs.compose([shared] * 2, delta=0.0).explain()
    with hs.Ledger(f"sqlite:///{tmp_path / 'ledger'}") as ledger:
        ledger.open_budget("clinic", limit)
        ledger.charge("clinic", shared)
        assert "the same table" in ledger.balance("clinic").explain()
        ledger.open_budget("counts", hs.Guarantee(epsilon=1.0))
        assert "the same table" not in ledger.balance("counts").explain()
    proven = [hs.Guarantee(epsilon=0.1)] * 2
    assert "the same table" not in hs.compose(proven, delta=0.0).explain()


def test_what_counts_gamma_once_says_that_the_order_of_rows_counts(tmp_path):
    """Blocks are dealt by position: the same rows in another order are another event."""
    box = hs.populations.Uniform(low=0, high=1)
    average = hs.Blockwise(np.max, rows=5)
    s = hs.sample_sensitivity(average, box, rows=20, gamma=0.05, symmetric=True, seed=1)
    mechanism = hs.Laplace(s, epsilon=0.1)
    rows = np.random.default_rng(2).random(20)
    together = hs.compose([mechanism] * 2)
    assert together.guarantee.gamma == 0.05
    told = [together.explain(), hs.compose([mechanism]).explain()]
    released = [hs.release(average, rows[::step], mechanism) for step in (1, -1)]
    study = hs.certify_study([hs.certify(each) for each in released])
    told.append(hs.plots.certificate_page(study))
    with hs.Ledger(f"sqlite:///{tmp_path / 'ledger'}") as ledger:
        ledger.open_budget("clinic", hs.Guarantee(epsilon=1.0, gamma=0.1))
        ledger.charge("clinic", mechanism.guarantee)
        told.append(ledger.balance("clinic").explain())
        told.append(hs.plots.certificate_page(hs.certify_budget(ledger, "clinic")))
    order = "its rows in the same order (for a symmetric function that is no average over blocks"
    assert [order in " ".join(each.split()) for each in told] == [True, False, True, True, True]


def test_what_counts_gamma_of_people_once_says_that_the_order_of_their_rows_counts(tmp_path):
    """People come in a random order; the rows of each of them keep theirs."""
    shared = hs.Guarantee(epsilon=0.1, gamma=0.05, unit="user", estimates=(("sha256:same", 0.05),))
    order = "the rows of each person in the same order"
    assert order in hs.compose([shared] * 2, delta=0.0).explain()
    with hs.Ledger(f"sqlite:///{tmp_path / 'ledger'}") as ledger:
        ledger.open_budget("clinic", hs.Guarantee(epsilon=1.0, gamma=0.1, unit="user"))
        assert order in ledger.balance("clinic").explain()
        assert "no average over blocks" in ledger.balance("clinic").explain()
