"""Half a guarantee, a curve without a relation and probabilities that lack mass promise nothing."""

import math

import numpy as np
import pytest

import hushed as hs
from hushed import privacy_loss
from hushed.errors import ParameterError
from hushed.measurements._losses import epsilon_at, restated
from hushed.spaces import PRIVACY_PROFILE, PURE, ZCDP

P, Q = [0.5, 0.5, 0.0], [0.25, 0.25, 0.5]
LAPLACE = hs.Laplace(hs.proven_sensitivity(1.0, argument="test"), epsilon=0.5)


class Halved:
    """A mechanism of somebody else, whose curve is one-sided."""

    guarantee = LAPLACE.guarantee

    def __init__(self, loss):
        self.loss = loss


def half_curves():
    """One-sided curves, alone and inside of every kind of composition."""
    half = privacy_loss.one_sided(P, Q)
    return {
        "alone": half,
        "repeated": half.compose(3),
        "joined": privacy_loss.compose([LAPLACE.loss, half]),
        "with Gaussian": privacy_loss.compose([privacy_loss.gaussian(0.1), half.compose(2)]),
        "that loses nothing": privacy_loss.one_sided([0.5, 0.5], [0.5, 0.5]).compose(2),
        "that loses everything": privacy_loss.one_sided([1.0, 0.0], [0.0, 1.0]),
    }


@pytest.mark.parametrize("kind", list(half_curves()))
def test_half_a_guarantee_makes_none(kind, tmp_path):
    """Compose, ledgers and measurements refuse it, however it was composed."""
    half = half_curves()[kind]
    assert half.one_sided
    for use in (
        lambda: hs.compose([half]),
        lambda: hs.compose([half], neighbours="replace-one"),
        lambda: hs.compose([LAPLACE, half], neighbours="replace-one", method="renyi"),
        lambda: hs.compose([Halved(half), LAPLACE]),
        lambda: restated({PRIVACY_PROFILE: half}, PRIVACY_PROFILE),
        lambda: restated({PRIVACY_PROFILE: half}, ZCDP),
        lambda: epsilon_at({PRIVACY_PROFILE: half}, 0.1),
        lambda: epsilon_at({PRIVACY_PROFILE: half, PURE: 1.0}, 0.0),
    ):
        with pytest.raises(ParameterError, match="one-sided"):
            use()
    with hs.Ledger(f"sqlite:///{tmp_path}/a.db") as ledger:
        for method in ("pld", "basic", "zcdp"):
            ledger.open_budget(method, hs.Guarantee(epsilon=5.0, delta=0.1), method=method)
            with pytest.raises(ParameterError, match="one of two neighbours"):
                ledger.charge(method, hs.Guarantee(epsilon=1.0, delta=0.01), loss=half)
            assert ledger.balance(method).entries == 0


def test_the_larger_of_both_directions_is_taken():
    """`pair` of the same probabilities is no half, and loses everything with probability 1/2."""
    whole = privacy_loss.pair(P, Q)
    assert not whole.one_sided
    found = hs.compose([whole], delta=0.6, neighbours="add-remove")
    assert found.guarantee.neighbours == "add-remove"
    with pytest.raises(ParameterError, match="cannot be reached"):
        hs.compose([whole], delta=1e-6, neighbours="add-remove")


def test_a_curve_does_not_say_between_whom_it_holds():
    """Without a relation there are numbers and no guarantee; with promises one has to be given."""
    curves = [privacy_loss.laplace(0.1), privacy_loss.gaussian(0.1)]
    bare = hs.compose(curves)
    assert bare.guarantee is None
    assert "relation: the curves' own" in bare.explain()
    assert "replace-one" not in bare.explain()
    for neighbours in ("replace-one", "add-remove"):
        for unit in ("row", "user"):
            told = hs.compose(curves, neighbours=neighbours, unit=unit)
            assert (told.guarantee.neighbours, told.guarantee.unit) == (neighbours, unit)
            assert (told.epsilon, told.guarantee.epsilon) == (bare.epsilon, bare.epsilon)
    with pytest.raises(ParameterError, match="give neighbours="):
        hs.compose([LAPLACE, *curves])
    joined = hs.compose([LAPLACE, *curves], neighbours="replace-one")
    assert joined.guarantee.neighbours == "replace-one"
    with pytest.raises(ParameterError, match="different neighbour relations"):
        hs.compose([LAPLACE, *curves], neighbours="add-remove")
    with pytest.raises(ParameterError, match="different neighbour relations"):
        hs.compose([LAPLACE], neighbours="add-remove")


@pytest.mark.parametrize("lacking", [9e-10, 1e-12, 1e-14])
def test_missing_mass_is_an_infinite_loss(lacking):
    """What p lacks to 1 is lost for good, in both directions, as if the outcome were written."""
    short, full = [0.5, 0.5 - lacking], [0.5, 0.5]
    for p, q in ((short, full), (full, short)):
        found = privacy_loss.pair(p, q)
        assert lacking * (1 - 1e-2) <= found.infinite <= lacking * (1 + 1e-2)
        assert found.epsilon(lacking / 2) == math.inf
        assert found.delta(50.0) >= lacking * (1 - 1e-2)
    assert privacy_loss.one_sided(short, full).infinite > 0
    assert privacy_loss.one_sided(full, short).infinite == 0


@pytest.mark.parametrize("number", [3, 7, 49, 1000])
def test_rounding_is_no_missing_mass(number):
    """Probabilities that sum to 1 but for the last digits lose nothing for good."""
    p = np.full(number, 1 / number)
    q = np.arange(1.0, number + 1)
    q /= q.sum()
    assert privacy_loss.pair(p, q).infinite == 0


@pytest.mark.parametrize("more", [1e-9, 1e-14])
def test_too_much_mass_is_refused(more):
    """It would make the other law look closer than it is."""
    with pytest.raises(ParameterError, match="sum to 1"):
        privacy_loss.pair([0.5, 0.5], [0.5, 0.5 + more])


def test_the_largest_loss_of_a_pair_is_rounded_up():
    """log(p / q) lies between two doubles: the pure promise is the upper one."""
    for p in (0.75, 0.6, 0.9, 2 / 3):
        found = privacy_loss.pair([p, 1 - p], [1 - p, p]).epsilon(0.0)
        assert math.exp(found) >= p / (1 - p) * (1 - 1e-15)
        assert found > math.log(p / (1 - p))
        assert found == pytest.approx(math.log(p / (1 - p)), rel=1e-15)
