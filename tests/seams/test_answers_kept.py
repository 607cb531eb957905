"""An answer is never paid twice, nor paid and lost: stored with its entry before it is shown."""

import functools
import json
import multiprocessing
import os
import shlex
import sqlite3
import subprocess
import sys
import threading
import time

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import hushed as hs
from hushed.cli import app
from hushed.cli._release_words import read_again
from hushed.errors import (
    BadFunction,
    DamagedLedger,
    KeyInUse,
    LedgerUnavailable,
    NotFound,
    Overspent,
    ParameterError,
    QueryFailed,
)
from hushed.ledger import _answers, _payments
from hushed.releasing._questions import question_of

G = hs.Guarantee
ROWS = np.random.default_rng(3).random(40)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, path):
    if request.param == "sqlite":
        return f"sqlite:///{path}"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def book(url):
    with hs.Ledger(url) as found:
        found.open_budget("b", G(epsilon=4.0, delta=1e-4, gamma=0.2), method="basic")
        yield found


def mean(rows):
    return rows.mean()


def mechanism(epsilon=0.5, value=1 / 40):
    return hs.Laplace(hs.proven_sensitivity(value, argument="mean in [0, 1]"), epsilon=epsilon)


# The entry and its key


@pytest.mark.slow_cases("postgresql")
def test_categories_of_a_set_ask_the_same_in_every_process(book):
    """Python orders the strings of a set anew in each process; their order is no question.

    Eight letters are in order by accident in one process of 40,320.
    """
    told = []
    for given in (set("abcdefgh"), list("abcdefgh"), frozenset("hgfedcba")):
        mode = hs.statistics.Mode(categories=given, rows=9)
        asked = hs.InverseSensitivity(mode, epsilon=1.0)
        told.append(hs.release(mode, list("aaaaabbbh"), asked, book, budget="b", key="k"))
    assert told[0] == told[1] == told[2]
    assert len(book.entries("b")) == 1


def test_what_is_no_entry_keeps_no_answer(book):
    """As the failed charge of somebody who went on."""
    with pytest.raises(ParameterError, match="an entry comes from charge"):
        book.keep_answer("b", None, "7")


def test_a_key_pays_once(book, url):
    """The same question under the same key is the same entry, for any ledger on the file."""
    first = book.charge("b", G(epsilon=0.5), "one", key="k", question="q")
    assert book.charge("b", G(epsilon=0.5), "again", key="k", question="q") == first
    with hs.Ledger(url) as other:
        again = other.charge("b", G(epsilon=0.5), key="k", question="q")
        assert (again, again.terms) == (first, first.terms)
        assert other.balance("b").entries == 1
    assert [(e.key, e.question) for e in book.entries("b")] == [("k", "q")]


@pytest.mark.parametrize(
    ("promise", "question"),
    [
        (G(epsilon=0.5), "other"),
        (G(epsilon=0.5), ""),
        (G(epsilon=0.75), "q"),  # or one would charge little and then release much
        (G(epsilon=0.5, delta=1e-9), "q"),
        (G(epsilon=0.5, gamma=0.05, estimates=(("draws.code", 0.05),)), "q"),
    ],
)
def test_another_question_or_price_under_a_key_is_refused(book, promise, question):
    """Nothing is charged, and the message says what to do."""
    book.charge("b", G(epsilon=0.5), "mean age", key="k", question="q")
    with pytest.raises(KeyInUse, match=r"'mean age'.*Nothing was charged; .*another key"):
        book.charge("b", promise, key="k", question=question)
    with pytest.raises(KeyInUse):
        book.charge("b", G(epsilon=0.5), loss=hs.privacy_loss.laplace(0.5), key="k", question="q")
    assert book.balance("b").entries == 1
    assert issubclass(KeyInUse, ParameterError)


def test_a_key_in_use_is_told_even_when_the_budget_is_used_up(book):
    """Asking again costs nothing, so that nothing has to be left."""
    first = book.charge("b", G(epsilon=4.0), key="all", question="q")
    assert book.charge("b", G(epsilon=4.0), key="all", question="q") == first
    with pytest.raises(Overspent):
        book.charge("b", G(epsilon=4.0), key="more", question="q")


@pytest.mark.parametrize("key", ["", "7", "a\nb", "x" * 201, 7, "nul\x00", "\ud800"])
def test_keys_are_plain_texts_and_no_numbers(book, key):
    """A number is that of an entry."""
    with pytest.raises(ParameterError, match="key"):
        book.charge("b", G(epsilon=0.5), key=key)
    assert book.balance("b").entries == 0


def test_keys_are_for_one_budget(book):
    """The same key in another budget is another one."""
    book.open_budget("c", G(epsilon=1.0))
    book.charge("b", G(epsilon=0.5), key="k", question="q")
    assert book.charge("c", G(epsilon=0.25), key="k", question="r").number == 1


def test_key_and_question_are_in_the_chain(tmp_path):
    """Changed by hand they are noticed, as everything else of an entry."""
    with hs.Ledger(f"sqlite:///{tmp_path}/x.db") as found:
        found.open_budget("b", G(epsilon=1.0))
        found.charge("b", G(epsilon=0.5), key="mine", question="q")
    with sqlite3.connect(tmp_path / "x.db") as raw:
        raw.execute("DROP TRIGGER hushed_entries_update")
        raw.execute("UPDATE hushed_entries SET body = replace(body, 'mine', 'ours')")
    raw.close()
    with hs.Ledger(f"sqlite:///{tmp_path}/x.db") as found, pytest.raises(DamagedLedger):
        found.charge("b", G(epsilon=0.5), key="ours", question="q")


def _charge_under(url, key, begin):
    begin.wait()
    with hs.Ledger(url) as found:
        entry = found.charge("b", G(epsilon=3.0), key=key, question="q")
        os._exit(0 if entry.number == 1 else 1)


@pytest.mark.slow_cases("postgresql")
def test_processes_with_one_key_pay_once(book, url):
    """Four start together; the budget takes it once, and all get that entry."""
    context = multiprocessing.get_context("fork")
    begin = context.Event()
    children = [context.Process(target=_charge_under, args=(url, "k", begin)) for _ in range(4)]
    for each in children:
        each.start()
    begin.set()
    for each in children:
        each.join()
    assert [each.exitcode for each in children] == [0] * 4
    assert book.balance("b").entries == 1


# The answer


def test_the_first_answer_stays(book, url):
    """What is stored is never replaced, and read by key or number at no cost."""
    entry = book.charge("b", G(epsilon=0.5), key="k")
    assert book.answer("b", "k") is None
    assert book.keep_answer("b", entry, "first é") == "first é"
    with hs.Ledger(url) as other:
        assert other.keep_answer("b", entry, "second") == "first é"
        assert other.answer("b", "k") == other.answer("b", 1) == "first é"
        assert [other.answer("b", each) for each in ("other", 2, 0, -1, 2**70)] == [None] * 5
        with pytest.raises(NotFound):
            other.answer("nothing", 1)
    assert book.balance("b").entries == 1
    assert json.loads(book.export("b"))["budgets"][0]["answers"] == {"1": "first é"}


def test_answers_are_stored_for_entries_of_this_ledger_alone(book, tmp_path):
    """An entry of another ledger or budget, or one made up, is refused."""
    with hs.Ledger(f"sqlite:///{tmp_path}/other.db") as other:
        other.open_budget("b", G(epsilon=1.0))
        foreign = other.charge("b", G(epsilon=0.5))
    book.charge("b", G(epsilon=0.5))
    book.open_budget("c", G(epsilon=1.0))
    own = book.charge("c", G(epsilon=0.5))
    for name, entry in (("b", foreign), ("b", own)):
        with pytest.raises(ParameterError, match="does not belong to budget"):
            book.keep_answer(name, entry, "x")
    for text in (7, "nul\x00", "\ud800"):
        with pytest.raises(ParameterError, match="text"):
            book.keep_answer("c", own, text)


@pytest.mark.parametrize(
    "statement", ["UPDATE hushed_answers SET body = ''", "DELETE FROM hushed_answers"]
)
def test_the_database_itself_keeps_answers(book, statement):
    """As for entries: rows are added and never changed."""
    book.keep_answer("b", book.charge("b", G(epsilon=0.5)), "x")
    place = "public." if book._store.url.startswith("postgr") else ""
    with pytest.raises(DamagedLedger), book._store.writing() as connection:
        connection.exec_driver_sql(statement.replace("hushed_", f"{place}hushed_"))
    assert book.answer("b", 1) == "x"


def test_a_changed_answer_is_noticed(path):
    """Its digest covers the text and the digest of its entry."""
    with hs.Ledger(f"sqlite:///{path}") as book:
        book.open_budget("b", G(epsilon=1.0))
        book.keep_answer("b", book.charge("b", G(epsilon=0.5)), "12")
    with sqlite3.connect(path) as raw:
        raw.execute("DROP TRIGGER hushed_answers_update")
        raw.execute("UPDATE hushed_answers SET body = '13'")
    raw.close()
    with hs.Ledger(f"sqlite:///{path}") as book, pytest.raises(DamagedLedger, match="answer"):
        book.answer("b", 1)


# Releases


def test_a_release_under_a_key_is_evaluated_and_paid_once(book, tmp_path):
    """The second asking tells the same value and certificate; the function does not run."""
    calls = tmp_path / "calls"  # a counter beside the function would be part of the question

    def counted(rows):
        with calls.open("a") as file:
            file.write("x")
        return rows.mean()

    first = hs.release(counted, ROWS, mechanism(), book, budget="b", key="k")
    assert hs.release(counted, ROWS, mechanism(), book, budget="b", key="k") == first
    assert (calls.read_text(), first.entry, book.balance("b").entries) == ("x", 1, 1)
    for other in (
        lambda: hs.release(lambda r: r.mean() + 1, ROWS, mechanism(), book, budget="b", key="k"),
        lambda: hs.release(counted, ROWS, mechanism(0.25), book, budget="b", key="k"),
        lambda: hs.release(counted, ROWS, mechanism(0.5, 1 / 20), book, budget="b", key="k"),
    ):
        with pytest.raises(KeyInUse):
            other()
    assert book.balance("b").entries == 1


def test_without_a_key_every_release_is_new_and_stored(book):
    """Two of the same are two charges and two answers, read by number."""
    told = [hs.release(mean, ROWS, mechanism(), book, budget="b") for _ in range(2)]
    assert [each.entry for each in told] == [1, 2]
    for each in told:
        assert json.loads(book.answer("b", each.entry))["value"] == each.value


def lattice(rows):
    return lambda x: x * rows.mean()


FORMS = {
    "number": (mean, mechanism()),
    "array": (
        lambda r: np.outer([1.0, -0.0], [r.mean(), r.min(), r.max()]),
        hs.Laplace(hs.proven_sensitivity(9.0, argument="a"), epsilon=0.5),
    ),
    "gaussian": (
        lambda r: r[:2],
        hs.Gaussian(hs.proven_sensitivity(1.0, "l2", argument="a"), epsilon=0.5, delta=1e-6),
    ),
    "choice": (
        lambda r: r[:5],
        hs.Exponential(hs.proven_sensitivity(1.0, "sup", argument="a"), epsilon=0.5),
    ),
    "polynomial": (
        hs.on_lattice(lattice, lattice=3, dims=1),
        hs.Bernstein(hs.proven_sensitivity(1.0, "sup", argument="a"), epsilon=0.5, lattice=3),
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_answers_of_every_form_come_back_bit_for_bit(book, url, name):
    """Numbers, arrays, choices and polynomials, in another ledger on the same file."""
    function, chosen = FORMS[name]
    first = hs.release(function, ROWS, chosen, book, budget="b", key="k")
    with hs.Ledger(url) as other:
        again = hs.release(function, ROWS, chosen, other, budget="b", key="k")
    assert type(again.value) is type(first.value)
    assert again.certificate == first.certificate
    ours, theirs = (getattr(each.value, "coefficients", each.value) for each in (first, again))
    assert np.shape(ours) == np.shape(theirs)
    assert np.asarray(ours).tobytes() == np.asarray(theirs).tobytes()


def test_a_failure_on_the_private_rows_is_told_again(book, tmp_path):
    """It is an answer: stored, and the function does not run a second time."""
    calls = tmp_path / "calls"

    def broken(rows):
        with calls.open("a") as file:
            file.write("x")
        raise ValueError(rows[0])

    told = []
    for _ in range(2):
        with pytest.raises(BadFunction) as caught:
            hs.release(broken, ROWS, mechanism(), book, budget="b", key="k")
        told.append(str(caught.value))
    assert told[0] == told[1]
    assert "the charge stays" in told[0]
    assert str(ROWS[0]) not in book.answer("b", "k")
    assert (calls.read_text(), book.balance("b").entries) == ("x", 1)


SCRIPT = """
import os, sys
import numpy as np
import hushed as hs

WEIGHTS = {"a": 1.0, "b": np.arange(3.0)}

def scaled(rows):
    return rows.mean() * WEIGHTS["a"] * (1 if "x" in {"x", "y", "z"} else 2)

def mean(rows):
    return scaled(rows) + 1e-9

s = hs.sample_sensitivity(mean, hs.populations.Uniform(low=0, high=1), rows=40, gamma=0.1, seed=5)
def told(name, entry, text):
    os._exit(9)
with hs.Ledger(sys.argv[1]) as book:
    if sys.argv[2] == "crash":
        book.keep_answer = told
    released = hs.release(mean, np.full(40, 0.5), hs.Laplace(s, epsilon=1.0), book, budget="b",
                          key="monday")
    print(released.value.hex(), book.balance("b").entries)
"""


@pytest.mark.slow
def test_a_crash_before_the_answer_is_stored_is_repeated_at_no_cost(book, url, tmp_path):
    """Killed between charge and answer; run again, twice, the script pays nothing more."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    def run(how):
        return subprocess.run(
            [sys.executable, str(script), url, how], capture_output=True, text=True, check=False
        )

    assert run("crash").returncode == 9
    assert (book.balance("b").entries, book.answer("b", "monday")) == (1, None)
    first, second = run("fine"), run("fine")
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    assert first.stdout.endswith(" 1\n")


def test_two_who_draw_under_one_key_show_one_answer(book, url, tmp_path):
    """Both charge nothing more and both draw; what is stored first is shown by both."""
    met = tmp_path / "met"
    met.mkdir()

    def slow(rows):  # they meet in a folder: a barrier's count would be part of the question
        (met / str(threading.get_ident())).touch()
        ends = time.monotonic() + 60
        while len(list(met.iterdir())) < 2 and time.monotonic() < ends:
            time.sleep(0.01)  # until both are past the look for a stored answer
        return rows.mean()

    found = []

    def ask():
        with hs.Ledger(url) as own:
            found.append(hs.release(slow, ROWS, mechanism(), own, budget="b", key="k"))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(list(met.iterdir())) == 2
    assert found[0] == found[1]
    assert book.balance("b").entries == 1


class Forgetful(hs.Ledger):
    """A ledger whose disk is full once the charge is made."""

    def keep_answer(self, name, entry, text):
        raise LedgerUnavailable("disk full")


def test_an_answer_that_cannot_be_stored(path):
    """Under a key it is not shown, and asked again for nothing; without one it is shown."""
    with Forgetful(f"sqlite:///{path}") as full:
        full.open_budget("b", G(epsilon=1.0))
        with pytest.raises(LedgerUnavailable, match="Ask again under the key 'k'"):
            hs.release(mean, ROWS, mechanism(), full, budget="b", key="k")
        with pytest.warns(UserWarning, match="could not be stored"):
            assert hs.release(mean, ROWS, mechanism(), full, budget="b").entry == 2
    with hs.Ledger(f"sqlite:///{path}") as book:
        hs.release(mean, ROWS, mechanism(), book, budget="b", key="k")
        assert book.balance("b").entries == 2


def test_an_answer_that_is_too_long_for_a_ledger(path, monkeypatch):
    """Under a key that it is too long is the answer, each time; without one it is shown."""
    for module in (_answers, _payments):
        monkeypatch.setattr(module, "LONGEST_ANSWER", 300)
    with hs.Ledger(f"sqlite:///{path}") as book:
        book.open_budget("b", G(epsilon=1.0))
        entry = book.charge("b", G(epsilon=0.125), key="by hand")
        with pytest.raises(ParameterError, match="at most 300 characters, and this one has 301"):
            book.keep_answer("b", entry, "x" * 301)
        assert book.keep_answer("b", entry, "x" * 300) == "x" * 300
        for _ in range(2):
            with pytest.raises(QueryFailed, match="300 characters of a ledger, and is not shown"):
                hs.release(mean, ROWS, mechanism(), book, budget="b", key="k")
        with pytest.warns(UserWarning, match="shown, but not stored"):
            assert hs.release(mean, ROWS, mechanism(0.125), book, budget="b").value
        assert book.balance("b").entries == 3


def test_nothing_is_shown_if_the_file_is_gone_since_the_charge(path, tmp_path):
    """The charge went with it; whoever spends in its place does not know of it."""
    with hs.Ledger(f"sqlite:///{path}") as book:
        book.open_budget("b", G(epsilon=1.0))

        def unlucky(rows):
            path.rename(tmp_path / "gone.db")
            return rows.mean()

        with pytest.raises(LedgerUnavailable, match="was deleted"):
            hs.release(unlucky, ROWS, mechanism(), book, budget="b")


@pytest.mark.parametrize("name", [None, 1.5, b"k"])
def test_answers_are_read_by_key_or_number(book, name):
    """Anything else is bad use."""
    with pytest.raises(ParameterError, match="key or a number"):
        book.answer("b", name)


def test_ledgers_that_keep_nothing_are_charged_as_before(ledger):
    """A key needs a ledger that keeps answers; refused before anything is charged."""
    assert hs.release(mean, ROWS, mechanism(), ledger, budget="b").entry is None
    with pytest.raises(ParameterError, match="keeps no answers"):
        hs.release(mean, ROWS, mechanism(), ledger, budget="b", key="k")
    with pytest.raises(ParameterError, match="no ledger"):
        hs.release(mean, ROWS, mechanism(), key="k")
    assert len(ledger.log) == 1


class Halfway:
    """Takes answers and keys, tells none again; its entries have no number."""

    def __init__(self):
        self.charged = 0

    def charge(self, budget, guarantee, note="", *, loss=None, key=None, question=""):
        self.charged += 1
        return object()

    def keep_answer(self, budget, entry, text):
        return text


class Telling(Halfway):
    """Tells answers by their keys."""

    def answer(self, budget, name):
        assert name == "k"


def test_ledgers_that_keep_half_are_refused_or_answered():
    """Nothing is charged and then lost: refused before, or shown without being stored."""
    half, telling = Halfway(), Telling()
    with pytest.raises(ParameterError, match="keeps no answers"):
        hs.release(mean, ROWS, mechanism(), half, budget="b", key="k")
    assert half.charged == 0
    assert hs.release(mean, ROWS, mechanism(), half, budget="b").entry is None
    assert hs.release(mean, ROWS, mechanism(), telling, budget="b", key="k").entry is None
    assert (half.charged, telling.charged) == (1, 1)


def in_the_meantime(book, act, key=None):
    """Release a mean, while somebody does something between the charge and the answer."""

    def function(rows):
        act()
        return rows.mean()

    return hs.release(function, ROWS, mechanism(), book, budget="b", key=key)


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("in_place", [True, False])
def test_a_backup_put_back_before_the_answer_is_stored_shows_nothing(tmp_path, key, in_place):
    """The charge is gone with the former file, and it is told that there was one."""
    copy = tmp_path / "copy.db"
    with hs.Ledger(f"sqlite:///{tmp_path}/x.db") as book:
        book.open_budget("b", G(epsilon=4.0))
        book.backup(copy)

        def put_back():
            if not in_place:
                os.replace(copy, tmp_path / "x.db")
                return
            with sqlite3.connect(copy) as source, sqlite3.connect(tmp_path / "x.db") as target:
                source.backup(target)
            source.close()
            target.close()

        with pytest.raises((LedgerUnavailable, DamagedLedger), match="not shown") as caught:
            in_the_meantime(book, put_back, key)
    assert "Nothing was charged" not in str(caught.value)


@pytest.mark.filterwarnings("error")
def test_an_answer_is_shown_where_warnings_are_errors(tmp_path, capsys):
    """It was paid for, and nobody can ask again without a key: the warning is printed instead."""
    with hs.Ledger(f"sqlite:///{tmp_path}/x.db", timeout=0.1) as book:
        book.open_budget("b", G(epsilon=4.0))
        busy = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
        told = in_the_meantime(book, lambda: busy.execute("BEGIN IMMEDIATE"))
        busy.close()
    assert isinstance(told.value, float)
    assert "the answer is shown, but could not be stored" in capsys.readouterr().err


class Keyless(Halfway):
    """Stores answers, and yet knows no keys."""

    def charge(self, budget, guarantee, note="", *, loss=None):
        self.charged += 1


@pytest.mark.parametrize("key", [None, "k"])
def test_a_ledger_that_stores_answers_without_keys_is_refused_in_words(key):
    """By releases and queries alike, before anything is charged."""
    keyless = Keyless()
    rows = hs.table(pl.DataFrame({"x": [1.0, 2.0]})).count()
    for ask in (
        lambda **named: hs.release(mean, ROWS, mechanism(), **named),
        lambda **named: rows.release(epsilon=0.5, **named),
    ):
        with pytest.raises(ParameterError, match=r"take key= and question=|keeps no answers"):
            ask(ledger=keyless, budget="b", key=key)
    assert keyless.charged == 0


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("moment", ["before", "charged", "storing", "stored"])
def test_a_stop_at_any_moment_says_how_to_go_on(book, monkeypatch, moment, key):
    """What may have been charged, and where its answer is: Ctrl-C around the charge, too."""
    book.open_budget("t", G(epsilon=4.0, neighbours="add-remove"))
    charge, keep = book.charge, book.keep_answer

    def stopped(*arguments, **named):
        method, done = (keep, moment == "stored") if "keep" in named else (charge, True)
        named.pop("keep", None)
        if done and moment != "before":
            method(*arguments, **named)
        raise KeyboardInterrupt

    if moment in ("before", "charged"):
        monkeypatch.setattr(book, "charge", stopped)
    else:
        monkeypatch.setattr(book, "keep_answer", functools.partial(stopped, keep=True))
    ask = {"ledger": book, "budget": "t", "key": key}
    rows = hs.table(pl.DataFrame({"x": [1.0, 2.0]})).count()
    said = "under the key 'k'" if key else r"last entry of budget 't'.*ledger\.answer"
    with pytest.raises(KeyboardInterrupt, match=f"may have been charged: .*{said}"):
        rows.release(epsilon=0.5, **ask)
    monkeypatch.undo()
    stored = book.answer("t", 1)
    assert (stored is not None) is (moment == "stored")
    assert book.balance("t").entries == (moment != "before")
    again = rows.release(epsilon=0.5, **ask)
    if key and stored:
        assert book.answer("t", again.entry) == stored
    assert book.balance("t").entries == (1 if key or moment == "before" else 2)


def test_a_stop_within_the_function_tells_the_key(book, tmp_path, press_ctrl_c):
    """Asked again under it, the function runs, and nothing more is charged."""
    pressed = tmp_path / "pressed"
    pressed.touch()

    def perhaps():
        if pressed.exists():
            press_ctrl_c()

    with pytest.raises(KeyboardInterrupt, match="stays: ask again under the key 'k', at no cost"):
        in_the_meantime(book, perhaps, "k")
    assert book.answer("b", "k") is None
    pressed.unlink()
    assert in_the_meantime(book, perhaps, "k").entry == 1
    assert book.balance("b").entries == 1


def test_a_stop_of_a_release_says_so_as_well(book, monkeypatch):
    """Between the charge and the call of the function."""

    def stopped(*arguments, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(book, "charge", stopped)
    with pytest.raises(KeyboardInterrupt, match="may have been charged: look at the last entry"):
        hs.release(mean, ROWS, mechanism(), book, budget="b")
    with pytest.raises(KeyboardInterrupt, match="ask again under the key 'k'"):
        hs.release(mean, ROWS, mechanism(), book, budget="b", key="k")


@pytest.mark.parametrize("name", ["\ud800", "", ["b"], None, 5, "a\n", "b" * 201])
def test_names_that_no_budget_has(book, name):
    """Refused with words by whatever takes the name of a budget."""
    for act in (book.balance, lambda n: book.answer(n, 1), lambda n: book.quote(n, G(epsilon=0.1))):
        with pytest.raises(ParameterError, match="name is 1 to 200"):
            act(name)


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[2J\x1b]0;pwned\x07\u202eanswer",
        json.dumps({"schema": "hushed failure", "error": "QueryFailed", "message": "\x1b]0;\x07"}),
        '{"x": NaN}',
        "[" * 100_000,
        "7" * 5000,
    ],
)
def test_whatever_was_stored_is_told_plainly(path, text):
    """Texts of who may append: nothing steers the terminal, and the JSON is JSON."""
    url = f"sqlite:///{path}"
    with hs.Ledger(url) as book:
        book.open_budget("b", G(epsilon=1.0))
        book.keep_answer("b", book.charge("b", G(epsilon=0.5)), text)
    told = CliRunner().invoke(app, ["ledger", "answer", url, "b", "1"])
    assert told.exit_code == 0
    assert "".join(told.stdout.split("\n")).isprintable()
    again = CliRunner().invoke(app, ["ledger", "answer", url, "b", "1", "--json"])
    assert again.exit_code == 0
    found = json.loads(again.stdout, parse_constant=pytest.fail)
    assert found.get("answer", text) == text


def test_numbers_that_no_entry_has(path):
    """Longer than Python reads."""
    url = f"sqlite:///{path}"
    with hs.Ledger(url) as book:
        book.open_budget("b", G(epsilon=1.0))
    told = CliRunner().invoke(app, ["ledger", "answer", url, "b", "9" * 5000])
    assert told.exit_code == 2


@pytest.mark.parametrize("key", ["-march", "--json", "may"])
def test_the_command_that_is_told_reads_the_answer(path, key):
    """Also for a key that could pass for an option, and after a query."""
    url = f"sqlite:///{path}"
    with hs.Ledger(url) as book:
        book.open_budget("b", G(epsilon=1.0))
        book.keep_answer("b", book.charge("b", G(epsilon=0.5), key=key), "7.5")
    words = shlex.split(read_again(url, "b", key).partition("hushed ")[2])
    assert CliRunner().invoke(app, words).stdout == "7.5\n"


# What a question is


def outer(scale):
    def inner(rows):
        return rows.mean() * scale

    return inner


class Scaled:
    __slots__ = ("inner",)

    def __init__(self, inner):
        self.inner = inner

    def __call__(self, rows):
        return self.inner(rows)


QUESTIONS = {
    "code": (lambda r: r.mean(), lambda r: r.max()),
    "constant": (lambda r: r.mean() * 2, lambda r: r.mean() * 3),
    "nested": (lambda r: (lambda x: x * 2)(r.mean()), lambda r: (lambda x: x * 3)(r.mean())),
    "closure": (outer(1.0), outer(2.0)),
    "partial": (
        functools.partial(lambda r, k: r.mean() * k, k=1),
        functools.partial(lambda r, k: r.mean() * k, k=2),
    ),
    "slots": (Scaled(lambda r: r.mean()), Scaled(lambda r: r.max())),
    "default": (lambda r, k=1: r.mean() * k, lambda r, k=2: r.mean() * k),
    "method": (Scaled(lambda r: r.mean()).__call__, Scaled(lambda r: r.max()).__call__),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_functions_that_differ_ask_different_questions(name):
    """By code, constants, closures, arguments or attributes."""
    one, other = QUESTIONS[name]
    assert question_of(one, mechanism()) == question_of(one, mechanism())
    assert question_of(one, mechanism()) != question_of(other, mechanism())


# On the command line


def run(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments])


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text("def mean(rows):\n    return rows.mean()\n")
    random = np.random.default_rng(0)
    for name, many in (("private", 30), ("public", 2000)):
        lines = "\n".join(f"{x:.9f}" for x in random.random(many))
        (tmp_path / f"{name}.csv").write_text(f"x\n{lines}\n")
    assert (
        run("ledger", "open", "sqlite:///e.db", "b", "--epsilon", 2, "--gamma", 0.3).exit_code == 0
    )
    return [
        "release",
        "private.csv",
        "f.py:mean",
        "--population",
        "public.csv",
        "--gamma",
        0.1,
        "--epsilon",
        0.5,
        "--ledger",
        "sqlite:///e.db",
        "--budget",
        "b",
    ]


@pytest.mark.slow
def test_a_release_on_the_command_line_is_read_again(study):
    """By key or number, as words or JSON; asked again under its key it is the same."""
    paid = run(*study, "--key", "monday", "--json")
    stored = run(*study, "--key", "monday", "--json")
    first = json.loads(paid.stdout)
    assert json.loads(stored.stdout) == first
    told = "under the key 'monday': to the same question it is given again, and nothing is charged"
    assert (told in paid.stderr, told in " ".join(stored.stderr.split())) == (False, True)
    assert first["entry"] == 1
    for name in ("monday", 1):
        told = run("ledger", "answer", "sqlite:///e.db", "b", name)
        assert told.exit_code == 0
        words = f"released: {first['value']}\nerror: at most "
        assert told.stdout.startswith(words)
        record = json.loads(run("ledger", "answer", "sqlite:///e.db", "b", name, "--json").stdout)
        assert record["value"] == first["value"]
    (budget,) = json.loads(run("ledger", "show", "sqlite:///e.db", "--json").stdout)["budgets"]
    assert (budget["entries"], budget["charges"][0]["key"]) == (1, "monday")
    assert "[key monday]" in run("ledger", "show", "sqlite:///e.db").stdout
    refused = run(*study[:-6], "--epsilon", 0.25, *study[-4:], "--key", "monday")
    assert "KeyInUse" in refused.stderr
    for name in ("tuesday", 2):
        missing = run("ledger", "answer", "sqlite:///e.db", "b", name)
        assert missing.exit_code == 2
        assert "no answer is stored" in missing.stderr


def test_a_key_needs_a_ledger(study):
    """Told before anything is sampled."""
    refused = run(*study[:-4], "--key", "monday")
    assert refused.exit_code == 2
    assert "--ledger URL" in refused.stderr


def test_a_stored_failure_is_told_on_the_command_line(tmp_path, monkeypatch):
    """It is read as what it was: a failure on the private rows."""
    monkeypatch.chdir(tmp_path)
    with hs.Ledger("sqlite:///e.db") as book:
        book.open_budget("b", G(epsilon=1.0))
        with pytest.raises(BadFunction):
            hs.release(lambda r: 1 / 0, ROWS, mechanism(), book, budget="b", key="k")
        book.keep_answer("b", book.charge("b", G(epsilon=0.1), key="t"), "plain words")
    told = run("ledger", "answer", "sqlite:///e.db", "b", "k")
    assert told.exit_code == 0
    assert told.stdout.startswith("BadFunction: the function raised ZeroDivisionError")
    assert run("ledger", "answer", "sqlite:///e.db", "b", "t").stdout == "plain words\n"


def test_what_nobody_could_read_again_is_refused_before_the_charge(tmp_path):
    """Half of a pair of surrogates, in whatever the certificate shows."""
    half = "\ud800"
    mode = hs.statistics.mode([half, "b"], rows=3)
    proven = hs.Laplace(hs.proven_sensitivity(1.0, argument=f"x{half}"), epsilon=1.0)
    with hs.Ledger(f"sqlite:///{tmp_path}/b.db") as book:
        book.open_budget("b", hs.Guarantee(epsilon=9.0))
        for f, rows, asked in (
            (mode, ["b"] * 3, hs.InverseSensitivity(mode, epsilon=1.0)),
            (np.mean, np.zeros(3), proven),
        ):
            with pytest.raises(ParameterError, match="nobody could read it again"):
                hs.release(f, rows, asked, book, budget="b")
        assert not book.entries("b")
