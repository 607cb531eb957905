"""Charges whose laws lie near the ends of the doubles: refused or taken, never a stray error."""

import sqlite3
import threading

import mpmath
import pytest

import hushed as hs
from hushed import privacy_loss
from hushed.errors import HushedError, LedgerUnavailable, Overspent, ParameterError
from hushed.measurements import exponential
from hushed.privacy_loss import gaussian_delta
from hushed.spaces import PURE, SUP, Numbers, Space

G = hs.Guarantee
METHODS = ("basic", "zcdp", "renyi", "gaussian", "adaptive", "pld")
HUGE = {
    "laplace": lambda: privacy_loss.laplace(1e308).compose(3),
    "gaussian": lambda: privacy_loss.gaussian(1e200),
    "bounded range": lambda: privacy_loss.bounded_range(1e308),
    "response": lambda: privacy_loss.randomised_response(1.7e308).compose(5),
    "mixed": lambda: privacy_loss.compose(
        [privacy_loss.laplace(1.7e308), privacy_loss.gaussian(1e160), privacy_loss.laplace(1e308)]
    ),
}
TINY = {
    "laplace": lambda: privacy_loss.laplace(1e-300),
    "gaussian": lambda: privacy_loss.gaussian(1e-200),
    "bounded range": lambda: privacy_loss.bounded_range(1e-308),
    "response": lambda: privacy_loss.randomised_response(1e-300).compose(7),
}


@pytest.fixture
def ledger(tmp_path):
    with hs.Ledger(f"sqlite:///{tmp_path / 'budget.db'}") as found:
        yield found


@pytest.mark.parametrize("law", HUGE)
@pytest.mark.parametrize("method", METHODS)
def test_huge_losses_are_refused(ledger, method, law):
    """A loss near the top of the doubles is an overspent budget, and nothing is charged."""
    ledger.open_budget("b", G(epsilon=1.0, delta=1e-6), method=method)
    loss = HUGE[law]()
    asked = min(loss.supremum, 1e308)
    for epsilon in (asked, 2.0):
        with pytest.raises((Overspent, ParameterError)):
            ledger.charge("b", G(epsilon=epsilon, delta=0.0), loss=loss)
        with pytest.raises((Overspent, ParameterError)):
            ledger.quote("b", G(epsilon=epsilon, delta=0.0), loss=loss)
    assert ledger.balance("b").entries == 0


@pytest.mark.slow_cases(
    "pld-bounded range0",
    "pld-bounded range1",
    "pld-gaussian0",
    "zcdp-bounded range0",
)
@pytest.mark.parametrize("law", [*HUGE, *TINY])
@pytest.mark.parametrize("method", METHODS)
def test_the_budget_lives_on(ledger, method, law):
    """Whatever a budget took or refused, its balance is read and a charge that fits is taken."""
    ledger.open_budget("b", G(epsilon=1.0, delta=1e-6), method=method)
    loss = {**HUGE, **TINY}[law]()
    own = [G(epsilon=loss.supremum)] if loss.supremum < 1 else []
    rounded = (G(epsilon=0.25), G(epsilon=0.25, delta=1e-9), G(epsilon=0.0, delta=1e-9))
    for promise in (*rounded, *own):
        try:
            ledger.charge("b", promise, loss=loss)
        except HushedError:
            continue
    ledger.charge("b", G(epsilon=0.01))
    balance = ledger.balance("b")
    assert balance.entries >= 1
    assert 0.009 <= balance.spent.epsilon <= 1.0


@pytest.mark.slow
def test_levels_without_a_law(ledger):
    """Promises alone are taken from the smallest level on, and refused up to the largest."""
    ledger.open_budget("b", G(epsilon=1.0, delta=1e-6), method="pld")
    for epsilon in (5e-324, 1e-300, 1e-100):
        ledger.charge("b", G(epsilon=epsilon))
    for epsilon in (1e150, 1.7e308):
        with pytest.raises(Overspent):
            ledger.charge("b", G(epsilon=epsilon))
    assert ledger.balance("b").spent.epsilon < 1e-9


@pytest.mark.parametrize("epsilon", [1e-300, 1e300])
@pytest.mark.parametrize("method", ["zcdp", "renyi", "gaussian", "adaptive"])
def test_limits_out_of_reach(ledger, method, epsilon):
    """A limit whose capacity doubles cannot find is refused by name."""
    with pytest.raises(ParameterError, match="too small or too large"):
        ledger.open_budget("b", G(epsilon=epsilon, delta=1e-6), method=method)


@pytest.mark.parametrize("power", [5, 70, 100, 150, 200, 900])
def test_huge_gaussian_at_half(power):
    """At ``ratio**2 / 2`` delta is a half less what the far tail takes, however large they are."""
    ratio = 2.0 ** min(power, 500)
    found = float(gaussian_delta(ratio, ratio * ratio / 2))
    curve = privacy_loss.gaussian(ratio).delta(ratio * ratio / 2)
    assert curve >= found  # release noise on its grid: as good as nothing, from 2**40 on
    with mpmath.workdps(40):
        tail = mpmath.npdf(0) / ratio if ratio > 100 else None
    if tail is None:
        assert 0.48 < found < 0.5
        assert curve == pytest.approx(found, rel=1e-12)
    else:
        assert 0.5 - 2 * float(tail) <= found <= 0.5 + 1e-15


def test_composing_what_doubles_cannot():
    """Composed losses near the ends of the doubles are refused in our words."""
    for bound in (1e-300, 1e300):
        with pytest.raises(ParameterError, match="cannot be composed"):
            privacy_loss.laplace(bound).compose(3).delta(bound)


def test_huge_distances_of_scores():
    """An exponential mechanism with hardly any noise has a loss, if a huge one."""
    space = Space(domain=Numbers(dims=2), metric=SUP)
    chain = (space >> exponential(1e-200)).to(PURE)
    assert 1.99e200 <= chain.map(1.0) <= 2.01e200


@pytest.mark.slow
def test_more_threads_than_connections(tmp_path):
    """Where another process keeps the file and threads queue up, each is refused in our words."""
    path, found = tmp_path / "budget.db", []
    with hs.Ledger(f"sqlite:///{path}", timeout=1.0) as ledger:
        for i in range(24):
            ledger.open_budget(f"b{i}", G(epsilon=1.0), method="basic")

        def charge(i):
            try:
                found.append(ledger.charge(f"b{i}", G(epsilon=1.0)))
            except Exception as error:
                found.append(error)

        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        threads = [threading.Thread(target=charge, args=(i,)) for i in range(24)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        other.execute("ROLLBACK")
        other.close()
        assert {type(each) for each in found} == {LedgerUnavailable}
        assert ledger.charge("b0", G(epsilon=1.0)).number == 1
