"""Curves cover the noise that is drawn: discrete, on its grid. One policy, everywhere."""

import math

import mpmath
import pytest

import hushed as hs
from hushed import privacy_loss
from hushed.accounting._filters import filter_cost, privacy_filters
from hushed.errors import Overspent
from hushed.measurements import gaussian as gaussian_step
from hushed.measurements import laplace as laplace_step
from hushed.privacy_loss._families import LaplacePLD
from hushed.privacy_loss._gaussian import GaussianPLD
from hushed.spaces import ABSOLUTE, PRIVACY_PROFILE, Numbers, Space

UNIT = hs.proven_sensitivity(1.0, "l2", argument="test")


def masses(law, reach):
    """PrivacyLossDistribution on the whole numbers from -reach to reach, in mpmath, by summing."""
    weights = [law(mpmath.mpf(k)) for k in range(-reach, reach + 1)]
    whole = mpmath.fsum(weights)
    return [weight / whole for weight in weights]


def discrete_delta(law, moved, epsilon, reach):
    """Delta of integer noise for answers ``moved`` steps apart, summed outcome by outcome."""
    p = masses(law, reach)
    q = [p[i - moved] if 0 <= i - moved < len(p) else mpmath.mpf(0) for i in range(len(p))]
    odds = mpmath.exp(epsilon)
    return mpmath.fsum(max(mpmath.mpf(0), a - odds * b) for a, b in zip(q, p, strict=True) if a)


def continuous_gaussian(ratio, epsilon):
    """Delta of continuous Gaussian noise, by quadrature of the densities."""
    cut = epsilon / ratio + ratio / 2  # the density at `ratio` exceeds the other beyond this

    def gap(x):
        return mpmath.npdf(x - ratio) - mpmath.exp(epsilon) * mpmath.npdf(x)

    return mpmath.quad(gap, [cut, cut + 3, cut + 8, cut + 20])


@pytest.mark.slow  # of the lemma alone: no code of ours takes part
@pytest.mark.parametrize("epsilon", ["0", "1", "2.5"])
@pytest.mark.parametrize(("s", "moved"), [(3, 1), (3, 3), (16, 40)])
def test_the_lemma_on_gaussian_noise(s, moved, epsilon):
    """Noise of any s: delta is at most exp(k) d(e - 2k) and two tails, k = (R^2 + 1) / (8 s^2)."""
    with mpmath.workdps(40):
        e, ratio, tail = mpmath.mpf(epsilon), mpmath.mpf(moved) / s, 9
        real = discrete_delta(lambda k: mpmath.exp(-(k**2) / (2 * s**2)), moved, e, 14 * s + moved)
        k = ((tail + ratio) ** 2 + 1) / (8 * mpmath.mpf(s) ** 2)
        bound = mpmath.exp(k) * continuous_gaussian(ratio, e - 2 * k) + 2 * mpmath.exp(-40.5)
        assert real <= bound


@pytest.mark.slow  # of the lemma alone, too
@pytest.mark.parametrize("epsilon", ["0", "0.7", "-0.4"])
@pytest.mark.parametrize(("t", "moved"), [(3, 1), (4, 6), (20, 33)])
def test_the_lemma_on_laplace_noise(t, moved, epsilon):
    """Noise of scale t: the level moves by ``(exp(2/t) - 1)**2 / 15`` at most."""
    with mpmath.workdps(40):
        e, bound = mpmath.mpf(epsilon), mpmath.mpf(moved) / t
        real = discrete_delta(lambda k: mpmath.exp(-abs(k) / t), moved, e, 60 * t + moved)
        if e >= bound:
            assert real < mpmath.mpf(10) ** -20  # what the sum leaves out
            return
        shift = mpmath.expm1(mpmath.mpf(2) / t) ** 2 / 15
        level = e - shift
        curve = -mpmath.expm1(level) if level <= -bound else -mpmath.expm1(-(bound - level) / 2)
        assert real <= curve + mpmath.mpf(10) ** -20


def test_the_blur_is_that_of_the_lemma_on_the_grid():
    """For s of 2^45 and 2^20 coordinates, whatever the ratio; none at the end of a Laplace loss."""
    for ratio in (1e-6, 0.3, 4.0, 30.0):
        with mpmath.workdps(40):
            moved = min(mpmath.mpf(2) ** 20, (mpmath.mpf(ratio) * 2**45) ** 2)
            least = moved * ((40 + mpmath.mpf(ratio)) ** 2 + 1) / (8 * mpmath.mpf(2) ** 90)
        assert least <= GaussianPLD(ratio).blur <= 1.001 * least
        assert GaussianPLD(ratio, 1000).blur >= 1000 * least
    assert 2 * LaplacePLD(1.0).blur >= math.expm1(2 * 2.0**-45) ** 2 / 15
    assert privacy_loss.laplace(0.1).delta(0.1) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "epsilon", "own", "delta"), [(1000, 0.5, 1e-10, 1e-12), (1, 20.0, 1e-3, 1e-20)]
)
def test_compose_and_ledger_say_the_same(tmp_path, number, epsilon, own, delta):
    """What `compose` promises, an exact ledger takes, and `hs.Gaussian` can be built for."""
    release = hs.Gaussian(UNIT, epsilon=epsilon, delta=own)
    joint = hs.compose([release] * number, delta=delta)
    exact = privacy_loss.gaussian(math.sqrt(number) / release.scale)
    assert joint.epsilon >= exact.epsilon(delta) * (1 - 1e-9)
    ledger = hs.Ledger(f"sqlite:///{tmp_path}/a.db")
    limit = hs.Guarantee(epsilon=joint.epsilon * (1 + 1e-9), delta=delta)
    ledger.open_budget("b", limit, method="pld")
    law = release.loss.compose(number)
    ledger.charge("b", joint.guarantee, loss=law)
    with pytest.raises(Overspent):
        ledger.charge("b", joint.guarantee, loss=law)
    ledger.close()
    alone = hs.Gaussian(UNIT, epsilon=joint.epsilon, delta=delta)
    assert alone.guarantee.delta == delta


@pytest.mark.slow
def test_measurements_count_the_same_as_mechanisms():
    """A chain's curve at the same ratio is the mechanism's, to the grid; nothing is set aside."""
    number = Space(domain=Numbers(), metric=ABSOLUTE)
    for step, curve in ((gaussian_step(2.0), privacy_loss.gaussian(0.5)),):
        found = (number >> step).map(1.0, PRIVACY_PROFILE)
        for delta in (1e-3, 1e-12, 1e-40):
            assert found.epsilon(delta) == pytest.approx(curve.epsilon(delta), rel=1e-9)
            assert found.epsilon(delta) >= curve.epsilon(delta) * (1 - 1e-15)
    found = (number >> laplace_step(2.0)).map(1.0, PRIVACY_PROFILE)
    assert found.delta(0.2) == pytest.approx(privacy_loss.laplace(0.5).delta(0.2), rel=1e-9)


def test_repeats_count_every_release():
    """Merged Gaussian releases remember how many they were: in curves and in sums of ratios."""
    once, often = privacy_loss.gaussian(0.01), privacy_loss.gaussian(0.01).compose(10**6)
    assert often.family.releases == 10**6
    assert often.family.blur >= 10**6 * once.family.blur
    (found,) = privacy_filters(1.0, 1e-6, method="gaussian")
    promise = hs.Guarantee(epsilon=9.0, delta=1e-6)
    assert filter_cost(found, promise, often).delta >= 4e6 * once.family.blur


def test_many_releases_pay_for_their_grids_in_epsilon_and_delta():
    """The curve of ten million lies above the continuous one by what their grids may cost."""
    ratio, count, level = 1e-3, 10**7, 14.0
    reach = (40 + ratio) ** 2 + 1
    blur = count * reach * mpmath.mpf(2) ** -73
    with mpmath.workdps(40):
        r = mpmath.mpf(ratio) * mpmath.sqrt(count)

        def continuous(e):
            return mpmath.ncdf(r / 2 - e / r) - mpmath.exp(e) * mpmath.ncdf(-r / 2 - e / r)

        owed = continuous(level - 2 * blur) * (1 + blur)
        assert owed > continuous(level) * (1 + 1e-12)  # not what rounding would give
        found = hs.privacy_loss.gaussian(ratio).compose(count).delta(level)
        assert owed <= found <= owed * (1 + 1e-9)


def test_a_filter_charges_what_the_grid_may_cost():
    """Of a Gaussian release its squared ratio, and 4 k of delta for the grid."""
    (found,) = privacy_filters(1.0, 1e-6, method="gaussian")
    release = hs.Gaussian(
        hs.proven_sensitivity(1.0, "l2", argument="test"), epsilon=0.1, delta=1e-9
    )
    cost = filter_cost(found, release.guarantee, release.loss)
    assert cost.amount >= (1 / release.scale) ** 2
    assert cost.delta >= 4 * 1601 * 2.0**-73
