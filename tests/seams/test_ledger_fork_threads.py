"""Threads and forks: nothing hangs, nothing is overspent, no connection is shared with a child."""

import copy
import gc
import os
import pickle
import random
import signal
import sys
import threading
import time
import warnings
from contextlib import contextmanager, suppress

import pytest

import hushed as hs
from hushed.errors import LedgerUnavailable, Overspent
from hushed.ledger import _forks as forks
from hushed.ledger._files import Identity

G = hs.Guarantee
SMALL = G(epsilon=2.0**-30)
LONGEST = 60.0  # seconds after which a child counts as hung

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/budget.db"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def book(url):
    with hs.Ledger(url) as found:
        found.open_budget("b", G(epsilon=1.0), method="basic")
        yield found


@contextmanager
def spending(*books, threads=2):
    """Charge from other threads while the test goes on; counts what was acknowledged."""
    told, problems, ended = [], [], threading.Event()

    def spend(each):
        try:
            while not ended.is_set():
                told.append(each.charge("b", SMALL).number)
        except Exception as problem:
            problems.append(problem)

    running = [threading.Thread(target=spend, args=(each,)) for each in books * threads]
    for each in running:
        each.start()
    while len(told) < 10 and not problems:
        time.sleep(0.01)
    yield told
    ended.set()
    for each in running:
        each.join()
    assert problems == []


def in_child(job):
    """Exit code of a job in a forked child; fails if it hangs."""
    # Connections of engines, which other tests left in cycles, must not be collected in a child.
    gc.disable()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(int(LONGEST))
            code = job() or 0
        finally:
            os._exit(code)
    gc.enable()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.slow
def test_children_forked_while_threads_charge_do_not_hang(book, url):
    """All children charge the ledger that they inherit, and one of their own."""

    def job():
        book.charge("b", SMALL)
        with hs.Ledger(url) as own:
            own.charge("b", SMALL)
            assert len(own.entries("b")) <= own.balance("b").entries
        book.charge("b", SMALL)

    with spending(book) as told:
        codes = [in_child(job) for _ in range(4)]
    assert codes == [0] * 4
    assert len(book.entries("b")) == len(told) + 3 * 4
    assert sorted(told) == sorted(set(told))


@pytest.mark.slow
def test_grandchildren_and_closing_children(book):
    """A child that closes what it inherited, and forks again, harms nobody."""

    def job():
        book.close()
        book.charge("b", SMALL)
        return in_child(lambda: book.charge("b", SMALL) and 0)

    book.charge("b", SMALL)
    with spending(book, threads=1) as told:
        assert [in_child(job) for _ in range(3)] == [0] * 3
    assert book.balance("b").entries == len(told) + 7


def files_in_child(folder):
    """How many files of a folder a forked child holds open."""

    def job():
        held = []
        for each in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                held.append(os.readlink(f"/proc/self/fd/{each}"))
        return sum(each.startswith(f"{folder}/") for each in held)

    return in_child(job)


@pytest.mark.slow
def test_no_file_is_open_while_a_child_is_made(tmp_path):
    """A descriptor of the database in a child would be one without a lock."""
    with hs.Ledger(f"sqlite:///{tmp_path}/budget.db") as book:
        book.open_budget("b", G(epsilon=1.0))
        with spending(book) as _:
            assert [files_in_child(tmp_path) for _ in range(6)] == [0] * 6


def test_a_ledger_that_was_dropped_leaves_no_file_to_a_child(tmp_path):
    """Its connections lie in a reference cycle until the garbage collector runs."""
    gc.disable()
    try:
        book = hs.Ledger(f"sqlite:///{tmp_path}/budget.db")
        book.open_budget("b", G(epsilon=1.0))
        del book
        assert files_in_child(tmp_path) == 0
    finally:
        gc.enable()


@pytest.mark.slow_cases("postgresql")
def test_a_fork_in_the_midst_of_a_transaction_is_refused_in_the_child(book, url):
    """The forking thread itself reads the ledger: the child is told, and does not hang."""

    def job():
        for use in (lambda: book.charge("b", SMALL), lambda: hs.Ledger(url)):
            with pytest.raises(LedgerUnavailable, match="forked while a ledger was in use"):
                use()

    book.charge("b", SMALL)
    forks._LONGEST, kept = 0.2, forks._LONGEST
    try:
        with book._store.reading():
            assert in_child(job) == 0
    finally:
        forks._LONGEST = kept
    assert book.charge("b", SMALL).number == 2  # the parent goes on


@pytest.mark.slow_cases("postgresql")
def test_a_signal_in_the_midst_of_charging_may_ask_the_ledger(book):
    """A handler that reads a balance of another budget neither hangs nor breaks a charge."""
    book.open_budget("other", G(epsilon=1.0))
    seen = []

    def handler(number, frame):
        with warnings.catch_warnings():
            try:
                seen.append(book.balance("other").entries)
            except LedgerUnavailable:
                seen.append(-1)
        # The next one comes after this one has ended, however slow the machine is.
        signal.setitimer(signal.ITIMER_REAL, 0.01 if waiting else 0)

    waiting = True
    kept = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        numbers = [book.charge("b", SMALL).number for _ in range(100)]
    finally:
        waiting = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, kept)
    assert numbers == list(range(1, 101))
    assert seen


def race(url, ends, handles):
    """Eight threads charge, read, store and ask again under keys until a moment; what they saw."""
    told, problems = [], []

    def work(seed):
        chosen = random.Random(seed)
        own = handles[seed % len(handles)]
        try:
            while time.monotonic() < ends:
                key = f"k{chosen.randrange(40)}" if chosen.random() < 0.5 else None
                entry = own.charge("b", G(epsilon=2.0**-7), key=key, question="q")
                kept = own.keep_answer("b", entry, f"{seed}")
                assert own.answer("b", entry.number) == kept
                told.append((entry.number, kept))
        except Overspent:  # ends the work of a thread
            pass
        except Exception as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert problems == []
    return told


@pytest.mark.slow
def test_eight_threads_share_a_ledger(book, url):
    """With one handle and with three: no overspending, and one answer for each entry."""
    with hs.Ledger(url) as second, hs.Ledger(url) as third:
        told = race(url, time.monotonic() + 2, [book, second, third])
    answers = dict(told)
    assert all(answers[number] == text for number, text in told)
    assert book.balance("b").entries == len(answers) <= 128
    assert len({e.key for e in book.entries("b") if e.key}) == len(
        [e.key for e in book.entries("b") if e.key]
    )


def charge_once(url):
    """What a process that was told the address does."""
    with hs.Ledger(url, create=False) as ledger:
        return ledger.charge("plan", SMALL).number


def test_a_ledger_is_not_pickled_and_says_what_to_do(tmp_path):
    """Another process is given its address; a copy would hold a lock that guards nothing."""
    url = f"sqlite:///{tmp_path}/budget.db"
    with hs.Ledger(url) as ledger:
        ledger.open_budget("plan", G(epsilon=1.0))
        for send in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="open it there"):
                send(ledger)
        with pytest.raises(TypeError, match="open it there"):
            pickle.dumps({"held": [ledger]})
        assert charge_once(url) == 1
        assert ledger.charge("plan", SMALL).number == 2


def test_a_connection_is_known_while_others_are_made(tmp_path):
    """Listing a set to which another thread adds is an error, and no refusal of the ledger's."""
    address = f"file:{tmp_path}/a.db?mode=rwc"
    found = Identity(file=(1, 1), log=None, index=None)
    ends, failed, before = threading.Event(), [], sys.getswitchinterval()

    def work():
        try:
            while not ends.is_set():
                forks.share_index(forks.connect_file(address, 1.0), found)
        except RuntimeError as error:
            failed.append(error)

    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=work) for _ in range(8)]
    try:
        for each in threads:
            each.start()
        ends.wait(1.0)
    finally:
        ends.set()
        for each in threads:
            each.join()
        sys.setswitchinterval(before)
    assert failed == []
