"""Several budgets, and rows of a caller's own, are charged together or not at all."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import partial

import pytest
from tests.postgres import postgres, postgres_url  # noqa: F401

from hushed import Guarantee, Ledger, privacy_loss
from hushed.errors import Overspent, ParameterError
from hushed.ledger import _rows as rows
from hushed.ledger import _store
from hushed.ledger._exact import LossSum
from hushed.ledger._rows import run
from hushed.ledger._running import RunningBalance
from hushed.ledger._together import Charge, charge_together, reading, writing

TENTH = Guarantee(epsilon=0.1)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def ledger(request, tmp_path):
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
    with Ledger(url) as book:
        book.open_budget("stays", Guarantee(epsilon=1.0))
        book.open_budget("stays/ana", Guarantee(epsilon=0.3))
        book.open_budget("ana/stays", Guarantee(epsilon=5.0))
        with writing(book) as connection:
            run(connection, "CREATE TABLE @.rows_of_mine (name TEXT PRIMARY KEY)", {})
        yield book


def insert(name):
    def within(connection, entries):
        run(connection, "INSERT INTO @.rows_of_mine VALUES (:name)", {"name": name})

    return within


def mine(ledger):
    with reading(ledger) as connection:
        found = run(connection, "SELECT name FROM @.rows_of_mine ORDER BY name", {})
        return [row[0] for row in found.fetchall()]


def spend(ledger, name, budgets=("stays", "stays/ana")):
    charge = Charge(guarantee=TENTH, key=name)
    return charge_together(ledger, budgets, charge, insert(name))


def counts(ledger):
    return [len(ledger.entries(each)) for each in ("stays", "stays/ana")]


def test_all_or_nothing(ledger):
    """A tenth fits three times into three tenths; the fourth time no budget and no row moves."""
    for name in ("a", "b", "c"):
        one, other = spend(ledger, name)
        assert (one.budget, other.budget) == ("stays", "stays/ana")
    with pytest.raises(Overspent) as refused:
        spend(ledger, "d")
    assert refused.value.budget == "stays/ana"
    assert counts(ledger) == [3, 3]
    assert mine(ledger) == ["a", "b", "c"]
    with Ledger(ledger._store.url, create=False) as fresh:  # and nothing was only remembered
        assert fresh.balance("stays").epsilon_left == ledger.balance("stays").epsilon_left
        assert fresh.verify("stays").startswith("3:")


def test_a_failure_of_the_caller_takes_the_charges_back(ledger):
    """What the caller raises undoes the charges; the next ones go on from what is there."""

    def fails(connection, entries):
        insert("lost")(connection, entries)
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        charge_together(ledger, ("stays", "stays/ana"), Charge(guarantee=TENTH, key="x"), fails)
    assert counts(ledger) == [0, 0]
    assert mine(ledger) == []
    spend(ledger, "x")
    assert counts(ledger) == [1, 1]


def test_a_key_is_used_once(ledger):
    spend(ledger, "a")
    with pytest.raises(ParameterError, match="in use"):
        spend(ledger, "a")
    with pytest.raises(ParameterError, match="once"):
        spend(ledger, "b", ("stays", "stays"))
    assert counts(ledger) == [1, 1]


def test_many_at_once_in_both_orders(ledger):
    """Spenders that name the budgets in other orders do not wait for each other for ever."""
    kept = []

    def work(name, budgets):
        try:
            spend(ledger, name, budgets)
            kept.append(name)
        except Overspent:
            pass

    orders = [("stays", "ana/stays"), ("ana/stays", "stays")]
    threads = [threading.Thread(target=work, args=(f"t{i}", orders[i % 2])) for i in range(20)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert not any(each.is_alive() for each in threads)
    assert len(kept) == 10  # ten times 0.1 fits into 1.0
    assert sorted(kept) == mine(ledger)
    assert len(ledger.entries("ana/stays")) == 10


def test_a_law_below_its_promise_is_charged_by_the_promise(ledger):
    """As that of one part of a release: it makes no budget cheaper than no law does."""
    limit, promise = Guarantee(epsilon=3.0, delta=1e-6), Guarantee(epsilon=0.5)
    laws = {"part": 0.05, "a little less": 0.499, "own": 0.5, "none": None}
    for name, size in laws.items():
        loss = None if size is None else privacy_loss.laplace(size)
        for side in ("all", "ana"):
            ledger.open_budget(f"{name}/{side}", limit, method="zcdp")
        charge = Charge(guarantee=promise, loss=loss, key="k", question="q")
        for entry in charge_together(ledger, (f"{name}/all", f"{name}/ana"), charge, insert(name)):
            assert (entry.law is not None) == (name == "own")
    spent = {
        name: {ledger.balance(f"{name}/{side}").epsilon_left for side in ("all", "ana")}
        for name in laws
    }
    assert spent["part"] == spent["a little less"] == spent["none"]
    assert min(spent["own"]) > max(spent["none"])  # its law alone says less than its promise does
    with Ledger(ledger._store.url, create=False) as fresh:  # as it is read again
        assert {fresh.balance(f"part/{side}").epsilon_left for side in ("all", "ana")} == spent[
            "part"
        ]


def test_a_price_reads_no_entry_again(tmp_path, monkeypatch):
    """What a charge would leave is worked out on a copy: what is known of the budget stays."""
    read = []
    entries_after = rows.entries_after

    def count(*args):
        for each in entries_after(*args):
            read.append(each.number)
            yield each

    monkeypatch.setattr(rows, "entries_after", count)
    for method in ("adaptive", "pld"):
        with Ledger(f"sqlite:///{tmp_path / method}") as book:
            book.open_budget("b", Guarantee(epsilon=1.0, delta=1e-6), method=method)
            loss = privacy_loss.gaussian(0.01)
            promise = Guarantee(epsilon=0.1, delta=1e-7)
            for _ in range(3):
                book.charge("b", promise, loss=loss)
            before = book.balance("b")
            read.clear()
            after = [book.quote("b", promise, loss=loss) for _ in range(2)]
            assert after[0] == after[1] != before == book.balance("b")
            assert read == []
            book.charge("b", promise, loss=loss)
            assert book.balance("b") == after[0]


@pytest.mark.parametrize("together", [False, True])
def test_nobody_waits_for_what_is_composed(tmp_path, monkeypatch, together):
    """Exact sums of hundreds of laws take seconds; the lock is held for what is written alone."""
    held, composed = [], []
    spending, delta = _store.Store.spending, LossSum._delta

    @contextmanager
    def hold(store):
        with spending(store) as connection:
            held.append(1)
            try:
                yield connection
            finally:
                held.clear()

    def compose(self, *args):
        composed.append(bool(held))
        return delta(self, *args)

    def charge(book, number):
        size = 0.2 + number / 100
        charge_b(book, Guarantee(epsilon=size), privacy_loss.laplace(size), together=together)

    monkeypatch.setattr(_store.Store, "spending", hold)
    monkeypatch.setattr(LossSum, "_delta", compose)
    with Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as book:
        book.open_budget("b", Guarantee(epsilon=1.0, delta=1e-3), method="pld")
        with pytest.raises(Overspent, match="Ask for epsilon") as refused:
            list(map(partial(charge, book), range(20)))
        assert 2 < len(book.entries("b")) < 10
        left = refused.value.epsilon_left
        book.charge("b", Guarantee(epsilon=left))  # what is advised is taken
    assert len(composed) > 5
    assert not any(composed)


@pytest.mark.parametrize("together", [False, True])
def test_what_was_composed_ahead_counts_for_nothing_behind_another_charge(
    tmp_path, monkeypatch, together
):
    """A charge that fits, and does not any more once another process has charged."""
    address, spending = f"sqlite:///{tmp_path / 'ledger.db'}", _store.Store.spending
    with Ledger(address) as book, Ledger(address) as other:
        book.open_budget("b", Guarantee(epsilon=1.0, delta=1e-3), method="pld")
        book.charge("b", Guarantee(epsilon=0.5), loss=privacy_loss.laplace(0.5))
        other.charge("b", Guarantee(epsilon=0.3), loss=privacy_loss.laplace(0.3))

        def come_first(store):
            if store is book._store:
                monkeypatch.setattr(_store.Store, "spending", spending)
                other.charge("b", Guarantee(epsilon=0.15), loss=privacy_loss.laplace(0.15))
            return spending(store)

        small = Guarantee(epsilon=0.203)  # by adding up it would not fit at all
        assert book.quote("b", small).used < 1
        monkeypatch.setattr(_store.Store, "spending", come_first)
        with pytest.raises(Overspent):
            charge_b(book, small, None, together=together)
        assert len(book.entries("b")) == 3


def charge_b(book, promise, loss, *, together):
    """Charge a budget by itself, or as one of several."""
    if together:
        wish = Charge(guarantee=promise, loss=loss, key=f"{promise.epsilon:.9f}")
        charge_together(book, ["b"], wish, lambda *_: None)
    else:
        book.charge("b", promise, loss=loss)


def test_more_threads_than_connections_open_no_connection_again(tmp_path, monkeypatch):
    """A connection that is opened for each use costs ten times the use."""
    opened, connect_file = [], _store.connect_file
    monkeypatch.setattr(
        _store, "connect_file", lambda *args: opened.append(1) or connect_file(*args)
    )
    with Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as book:
        together = threading.Barrier(12)

        def look():
            for _ in range(5):
                together.wait(20)
                with reading(book):
                    together.wait(20)

        threads = [threading.Thread(target=look) for _ in range(12)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(opened) == 12


def test_where_a_budget_stands_is_worked_out_once_after_each_charge(tmp_path, monkeypatch):
    """To look again costs no search for what is left; whoever else charges is seen at once."""
    worked, balance = [], RunningBalance.balance
    monkeypatch.setattr(RunningBalance, "balance", lambda self: worked.append(1) or balance(self))
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    with Ledger(url) as book, Ledger(url) as other:
        book.open_budget("b", Guarantee(epsilon=1.0))
        assert book.balance("b") == book.balance("b")
        assert len(worked) == 1
        other.charge("b", TENTH)
        assert book.balance("b").entries == 1
        assert book.balance("b").epsilon_left == pytest.approx(0.9)
        assert len(worked) == 2
