"""The ledger against a plain model in memory, whatever is done in whatever order."""

import shutil
import tempfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import hushed as hs
from hushed.errors import NotFound, Overspent, ParameterError

NAMES = st.sampled_from(["a", "b"])
LEVELS = st.sampled_from([0.0, 0.0, 0.1, 0.1, 0.3, 1.0, 1e-9, 2.0**-60])
DELTAS = st.sampled_from([0.0, 0.0, 0.0, 1e-6, 2e-6])
ESTIMATES = st.sampled_from([(), (), (("one", 0.03),), (("two", 0.04),), (("one", 0.05),)])


def decimal(value):
    """What a float stands for."""
    return Fraction(Decimal(str(value)))


class Model:
    """What a budget of sums is: four numbers, exact."""

    def __init__(self, limit):
        self.limit, self.charges = limit, []

    def sums(self, charges):
        gammas = {}
        for promise in charges:
            for name, gamma in promise.estimates:
                gammas[name] = max(gammas.get(name, 0), decimal(gamma))
        return (
            sum(decimal(promise.epsilon) for promise in charges),
            sum(decimal(promise.delta) for promise in charges),
            sum(gammas.values()),
        )

    def fits(self, promise):
        limit = [decimal(each) for each in (self.limit.epsilon, self.limit.delta, self.limit.gamma)]
        after = self.sums([*self.charges, promise])
        return all(spent <= most for spent, most in zip(after, limit, strict=True))


class LedgerMachine(RuleBasedStateMachine):
    """Opens, charges, quotes, reopens; two ledgers on one file take turns."""

    @initialize()
    def begin(self):
        self.folder = Path(tempfile.mkdtemp())
        self.url = f"sqlite:///{self.folder}/model.db"
        self.books = [hs.Ledger(self.url), hs.Ledger(self.url)]
        self.models = {}

    def teardown(self):
        for book in self.books:
            book.close()
        shutil.rmtree(self.folder)

    @rule(name=NAMES, epsilon=st.sampled_from([1.0, 3.0]), which=st.integers(0, 1))
    def open(self, name, epsilon, which):
        limit = hs.Guarantee(epsilon=epsilon, delta=3e-6, gamma=0.08)
        if name in self.models:
            with pytest.raises(ParameterError):
                self.books[which].open_budget(name, limit, method="basic")
        else:
            self.books[which].open_budget(name, limit, method="basic")
            self.models[name] = Model(limit)

    @rule(name=NAMES, level=LEVELS, delta=DELTAS, estimates=ESTIMATES, which=st.integers(0, 1))
    def charge(self, name, level, delta, estimates, which):
        gamma = sum(g for _, g in estimates)
        promise = hs.Guarantee(epsilon=level, delta=delta, gamma=gamma, estimates=estimates)
        book = self.books[which]
        if name not in self.models:
            with pytest.raises(NotFound):
                book.charge(name, promise)
            return
        model = self.models[name]
        fits = model.fits(promise)
        try:
            entry = book.charge(name, promise)
        except Overspent:
            assert not fits
        else:
            assert fits
            model.charges.append(promise)
            assert entry.number == len(model.charges)

    @precondition(lambda self: self.models)
    @rule(which=st.integers(0, 1), data=st.data())
    def charge_what_is_left(self, which, data):
        name = data.draw(st.sampled_from(sorted(self.models)))
        left = self.books[which].balance(name).epsilon_left
        if left > 0:
            promise = hs.Guarantee(epsilon=left)
            self.books[which].charge(name, promise)
            self.models[name].charges.append(promise)

    @rule(which=st.integers(0, 1))
    def reopen(self, which):
        self.books[which].close()
        self.books[which] = hs.Ledger(self.url, create=False)

    @invariant()
    def same(self):
        for name, model in getattr(self, "models", {}).items():
            for book in self.books:
                balance = book.balance(name)
                epsilon, delta, gamma = model.sums(model.charges)
                assert balance.entries == len(model.charges)
                assert decimal(balance.epsilon_left) <= decimal(model.limit.epsilon) - epsilon
                spent = decimal(balance.spent.epsilon)
                assert epsilon <= spent <= epsilon * (1 + Fraction(1, 2**52))
                assert delta <= decimal(balance.spent.delta)
                spent = decimal(balance.spent.gamma)
                assert gamma <= spent <= gamma * (1 + Fraction(1, 2**50))
        if getattr(self, "models", None):
            name = min(self.models)
            found = [entry.guarantee for entry in self.books[0].entries(name)]
            assert found == self.models[name].charges


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)
