"""Threads that charge at the same moment are written in one transaction, and each is told its own.

The first takes a turn alone and is held back; those who come meanwhile are written together.
"""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from hushed import Guarantee, Ledger
from hushed.errors import KeyInUse, LedgerUnavailable, Overspent
from hushed.ledger import _line
from hushed.ledger._line import Line
from hushed.ledger._rows import run
from hushed.ledger._running import DoesNotFit
from hushed.ledger._store import InDoubt
from hushed.ledger._together import (
    Charge,
    Wish,
    charge_many,
    charge_together,
    reading,
    writing,
)

TENTH = Guarantee(epsilon=0.1)
NAMES = ("a", "b", "c", "d", "e")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path):
    with Ledger(f"sqlite:///{path}") as book:
        book.open_budget("stays", Guarantee(epsilon=1.0))
        for name in NAMES:
            book.open_budget(f"stays/{name}", Guarantee(epsilon=0.3))
        with writing(book) as connection:
            run(connection, "CREATE TABLE rows_of_mine (name TEXT PRIMARY KEY)", {})
        yield book


def insert(name):
    def within(connection, entries):
        run(connection, "INSERT INTO rows_of_mine VALUES (:name)", {"name": name})

    return within


def mine(ledger):
    with reading(ledger) as connection:
        return [row[0] for row in run(connection, "SELECT name FROM rows_of_mine ORDER BY 1", {})]


def all_at_once(ledger, works):
    """Let each of these wait in a line behind the first, in this order; what came of each."""
    found = {}

    def do(name, work):
        try:
            found[name] = work()
        except BaseException as error:
            found[name] = error

    line = ledger._store.line
    threads = [threading.Thread(target=do, args=each) for each in works.items()]
    with ledger._store.spending():  # the first waits for this, with the turn
        for number, each in enumerate(threads):
            each.start()
            until = time.monotonic() + 20
            while line._turn is None or len(line._places) < number:
                assert time.monotonic() < until
                time.sleep(0.001)
    for each in threads:
        each.join(30)
    assert not any(each.is_alive() for each in threads)
    return found


def spend(ledger, name, within=None, promise=TENTH, before=None):
    charge = Charge(guarantee=promise, key=name)
    budgets = ("stays", f"stays/{name[0]}")
    return lambda: charge_together(ledger, budgets, charge, within or insert(name), before)


def is_whole(ledger, kept):
    """Whether these are charged to both of their budgets, each once, and nothing else is."""
    keys = [each.key for each in ledger.entries("stays")]
    own = [each.key for name in NAMES for each in ledger.entries(f"stays/{name}")]
    with Ledger(ledger._store.url, create=False) as fresh:  # and nothing is only remembered
        same = fresh.balance("stays") == ledger.balance("stays")
        assert fresh.verify("stays").startswith(f"{len(kept)}:")
    return same and sorted(keys) == sorted(own) == mine(ledger) == sorted(kept)


def test_all_who_wait_are_written_by_one_transaction(ledger, monkeypatch):
    """One synchronisation of the disk is for all of them; what they share is looked at once."""
    begun, looked, spending = [], [], ledger._store.spending
    before = looked.append

    def counted():
        begun.append(1)
        return spending()

    monkeypatch.setattr(ledger._store, "spending", counted)
    works = {name: spend(ledger, name, before=before) for name in NAMES}
    found = all_at_once(ledger, works)
    assert [found[name][0].number for name in NAMES] == [1, 2, 3, 4, 5]
    assert [found[name][1].number for name in NAMES] == [1] * 5
    assert len(begun) == 3  # of the test itself, of the first, and of the others
    assert len(looked) == 2
    assert is_whole(ledger, NAMES)


def test_who_is_refused_takes_nothing_of_the_others_back(ledger):
    """In the middle of others: too dear, a key in use, a failure of the caller and of the file."""

    def fails(connection, entries):
        insert("lost")(connection, entries)
        raise RuntimeError("stop")

    works = {
        "a": spend(ledger, "a"),
        "dear": spend(ledger, "d dear", promise=Guarantee(epsilon=0.35)),
        "b": spend(ledger, "b"),
        "again": spend(ledger, "b"),
        "fails": spend(ledger, "c fails", within=fails),
        "twice": spend(ledger, "c twice", within=insert("b")),
        "nowhere": lambda: charge_together(
            ledger, ("none",), Charge(guarantee=TENTH, key="x"), insert("x")
        ),
        "e": spend(ledger, "e"),
    }
    found = all_at_once(ledger, works)
    assert [found[name][0].number for name in ("a", "b", "e")] == [1, 2, 3]
    assert isinstance(found["dear"], Overspent)
    assert found["dear"].budget == "stays/d"
    assert isinstance(found["again"], KeyInUse)
    assert type(found["fails"]) is RuntimeError
    assert isinstance(found["twice"], LedgerUnavailable)
    assert "UNIQUE" in str(found["twice"])
    assert "no budget 'none'" in str(found["nowhere"])
    assert is_whole(ledger, ("a", "b", "e"))
    spend(ledger, "c later")()
    assert is_whole(ledger, ("a", "b", "c later", "e"))


def test_a_budget_is_not_overspent_by_those_who_are_written_together(ledger):
    """Three tenths, and five who want one each: who comes later finds the earlier ones counted."""
    works = {number: spend(ledger, f"a{number}") for number in range(5)}
    found = all_at_once(ledger, works)
    refused = [number for number in works if isinstance(found[number], Overspent)]
    assert refused == [3, 4]
    assert "3 charges so far" in str(found[4])
    assert is_whole(ledger, ("a0", "a1", "a2"))


def refuse_all(path, statement):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute(
        "CREATE TABLE debts (x REFERENCES hushed_budgets (name) DEFERRABLE INITIALLY DEFERRED)"
    )
    other.execute(f"CREATE TRIGGER owe AFTER INSERT ON rows_of_mine {statement}")
    return other


@pytest.mark.parametrize(
    "statement",
    [
        "WHEN NEW.name = 'c' BEGIN INSERT INTO debts VALUES ('?'); END",  # refused by the commit
        "WHEN NEW.name = 'c' BEGIN SELECT RAISE(ROLLBACK, 'gone'); END",  # and before it
    ],
)
def test_a_transaction_that_is_lost_is_lost_for_all_who_are_in_it(ledger, path, statement):
    """Nobody is told that it is charged; who was refused for what others took is not told that."""
    other = refuse_all(path, statement)
    works = {name: spend(ledger, name) for name in ("a", "b", "c", "d")}
    works["dear"] = spend(ledger, "b dear", promise=Guarantee(epsilon=0.25))
    found = all_at_once(ledger, works)
    assert found["a"][0].number == 1  # alone, before the others
    for name in ("b", "c", "d", "dear"):
        assert isinstance(found[name], LedgerUnavailable)
        assert "nothing was charged" in str(found[name])
    assert is_whole(ledger, ("a",))
    other.execute("DROP TRIGGER owe")
    other.close()
    assert spend(ledger, "b dear", promise=Guarantee(epsilon=0.25))()[0].number == 2
    assert is_whole(ledger, ("a", "b dear"))


def test_who_is_in_doubt_looks_for_the_own_charge(ledger, monkeypatch):
    """The connection is lost in the commit, which was made: all hear of it, but who was refused."""
    spending, armed = ledger._store.spending, []

    @contextmanager
    def lost():
        with spending() as connection:
            yield connection
        if armed:
            armed.clear()
            raise InDoubt("lost")

    monkeypatch.setattr(ledger._store, "spending", lost)
    works = {"a": spend(ledger, "a", within=lambda *_: armed.append(1)), "b": spend(ledger, "b")}
    works["c"] = spend(ledger, "c", within=lambda *told: armed.append(insert("c")(*told)))
    works["dear"] = spend(ledger, "d dear", promise=Guarantee(epsilon=0.35))
    found = all_at_once(ledger, works)
    assert [found[name][0].number for name in "abc"] == [1, 2, 3]
    assert isinstance(found["dear"], Overspent)  # for the others were committed
    assert ledger.balance("stays").entries == 3
    assert mine(ledger) == ["b", "c"]


def test_whoever_writes_for_others_and_is_stopped_leaves_them_in_doubt(ledger):
    """They are not told that nothing was charged: this thread may have been stopped too late."""

    def stopped(connection, entries):
        raise KeyboardInterrupt

    works = {"a": spend(ledger, "a"), "b": spend(ledger, "b"), "c": spend(ledger, "c")}
    works["stopped"] = spend(ledger, "d stopped", within=stopped)
    found = all_at_once(ledger, works)
    assert found["a"][0].number == 1
    assert isinstance(found["b"], KeyboardInterrupt)  # in the thread that wrote
    for name in ("c", "stopped"):
        assert isinstance(found[name], LedgerUnavailable)
        assert "may have been made" in str(found[name])
    assert is_whole(ledger, ("a",))
    spend(ledger, "b")()
    assert is_whole(ledger, ("a", "b"))


def test_whoever_waits_too_long_gives_up_the_place(path, ledger):
    """Others behind are not kept waiting, and nothing is charged afterwards."""
    with Ledger(f"sqlite:///{path}", create=False, timeout=0.3) as book:
        go_on, begun = threading.Event(), threading.Event()

        def slow(connection, entries):
            begun.set()
            assert go_on.wait(20)

        first = threading.Thread(target=spend(book, "a", within=slow))
        first.start()
        assert begun.wait(20)
        with pytest.raises(LedgerUnavailable, match="locked by another thread"):
            spend(book, "b")()
        go_on.set()
        first.join(20)
        assert [each.key for each in book.entries("stays")] == ["a"]
        assert spend(book, "c")()[0].number == 2


@pytest.mark.parametrize("called", [False, True])
def test_whoever_is_stopped_while_it_waits_keeps_nobody_waiting(called, monkeypatch):
    """Not even if it is stopped at the very moment at which its turn has come."""
    line, done, go_on, begun = Line(), [], threading.Event(), threading.Event()

    def slow(works):
        begun.set()
        assert go_on.wait(20)
        done.extend(works)

    class Stopped:
        def __init__(self, work):
            self.work, self.done, self.called = work, False, self

        def set(self):
            pass

        def wait(self, seconds):
            if called:
                go_on.set()
                first.join(20)
            raise KeyboardInterrupt

    first = threading.Thread(target=line.join, args=("first", slow, 20))
    first.start()
    assert begun.wait(20)
    monkeypatch.setattr(_line, "_Place", Stopped)
    with pytest.raises(KeyboardInterrupt):
        line.join("stopped", done.extend, 20)
    monkeypatch.undo()
    go_on.set()
    first.join(20)
    line.join("last", done.extend, 20)
    assert done == ["first", "last"]
    assert line._turn is None
    assert not line._places


def test_nobody_is_kept_out_by_a_line_that_has_ended(ledger):
    """Many who come and go while others write: every one is written once, and the line ends."""
    kept, lost = [], []

    def work(name):
        for number in range(2):
            try:
                spend(ledger, f"{name}{number}")()
                kept.append(f"{name}{number}")
            except Overspent:
                lost.append(name)

    threads = [threading.Thread(target=work, args=(f"{name}{i}",)) for name in NAMES for i in "xy"]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert not any(each.is_alive() for each in threads)
    assert ledger._store.line._turn is None
    assert (len(kept), len(lost)) == (10, 10)  # a tenth of one each
    assert is_whole(ledger, kept)


class Stopping(deque):
    """A thread is stopped as it takes the third place out of the line."""

    taken = 0

    def popleft(self):
        self.taken += 1
        if self.taken == 4:  # the first turn takes one alone
            raise KeyboardInterrupt
        return super().popleft()


def test_a_thread_that_is_stopped_as_its_turn_begins_keeps_nobody_waiting():
    """Those whose work it had taken are called, and none is done twice."""
    line, held, done, ended = Line(), threading.Event(), [], []
    line._places = Stopping()

    def do(works):
        if "first" in works:
            held.wait(20)
        done.extend(works)

    def join(name):
        try:
            line.join(name, do, 1.0)
        except BaseException as error:
            ended.append(type(error))
        else:
            ended.append(None)

    threads = [
        threading.Thread(target=join, args=(name,), daemon=True)
        for name in ("first", "b", "c", "d")
    ]
    for each in threads:
        each.start()
        time.sleep(0.05)
    held.set()
    for each in threads:
        each.join(5)
    assert not any(each.is_alive() for each in threads)
    assert len(done) == len(set(done))
    assert KeyboardInterrupt in ended
    line.join("last", do, 5.0)
    assert done[-1] == "last"


@pytest.mark.parametrize("writers", [6])
def test_many_wishes_of_many_threads_and_another_process_charge_each_once(ledger, path, writers):
    """Some are refused after they were written, some are the same, and some do not fit any more."""
    for name in "xyz":
        ledger.open_budget(f"race/{name}", Guarantee(epsilon=3.05))
    ledger.open_budget("race", Guarantee(epsilon=7.05))
    told, looked = [], []

    def refuse(name):
        def within(connection, entries):
            insert(name)(connection, entries)
            raise KeyError(name)

        return within

    def wish(writer, turn, number):
        chosen = random.Random(f"{writer} {turn} {number}")
        key = chosen.choice([f"{writer} {turn} {number}", f"same {chosen.randrange(8)}"])
        within = refuse(key) if chosen.random() < 0.2 else insert(key)
        names = chosen.sample(["race", "race/x", "race/y", "race/z"], 2)
        before = chosen.choice([None, lambda _: looked.append(1)])
        charge = Charge(guarantee=TENTH, key=key)
        return Wish(charges=dict.fromkeys(names, charge), within=within, before=before)

    def write(writer, book):
        for turn in range(5):
            wishes = [wish(writer, turn, number) for number in range(7)]
            told.extend(zip(wishes, charge_many(book, wishes), strict=True))

    with Ledger(f"sqlite:///{path}") as other, ThreadPoolExecutor(writers) as pool:
        works = [pool.submit(write, each, (ledger, other)[each % 2]) for each in range(writers)]
        assert all(each.result() is None for each in works)
    made = [each for each, error in told if error is None]
    refused = [error for _, error in told if error is not None]
    kinds = {type(e.explain() if isinstance(e, DoesNotFit) else e) for e in refused}
    assert kinds <= {KeyError, KeyInUse, Overspent, LedgerUnavailable}
    assert {KeyError, Overspent} <= kinds
    assert mine(ledger) == sorted(next(iter(each.charges.values())).key for each in made)
    for name in ("race", "race/x", "race/y", "race/z"):
        keys = [each.charges[name].key for each in made if name in each.charges]
        entries = ledger.entries(name)
        assert sorted(each.key for each in entries) == sorted(keys)
        assert len(entries) <= (70 if name == "race" else 30)
        with Ledger(f"sqlite:///{path}", create=False) as fresh:
            assert fresh.verify(name).startswith(f"{len(keys)}:")
            assert fresh.balance(name) == ledger.balance(name)
