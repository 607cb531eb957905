"""The ledger: what it charges, what it refuses, and what it does with files it should not trust."""

import json
import math
import multiprocessing
import os
import pickle
import re
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
import psycopg
import pyarrow as pa
import pytest

import hushed as hs
from hushed import privacy_loss
from hushed.accounting._filters import Cost, gaussian_capacity, privacy_filters
from hushed.errors import (
    BudgetExists,
    DamagedLedger,
    HushedError,
    KeyInUse,
    LedgerUnavailable,
    NewerLedger,
    NotALedger,
    NotFound,
    Overspent,
    ParameterError,
)
from hushed.ledger import _migrations as migrations
from hushed.ledger import _rows as rows
from hushed.ledger import _store as store
from hushed.ledger._accounts import new_budget
from hushed.ledger._doubles import from_units, to_units
from hushed.ledger._entries import Budget, digest, write_budget, write_entry
from hushed.ledger._exact import LossSum
from hushed.ledger._laws import read_law, write_law
from hushed.ledger._requests import next_entry
from hushed.ledger._running import costs_of, start_balance
from hushed.ledger._together import Charge, charge_together

G = hs.Guarantee
PLACES = {"sqlite": "", "postgr": "public."}  # before the name of a table, in statements by hand


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, path):
    if request.param == "sqlite":
        return f"sqlite:///{path}"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def ledger(url):
    with hs.Ledger(url) as found:
        yield found


@pytest.fixture
def plain(path):
    with hs.Ledger(f"sqlite:///{path}") as found:
        yield found


def fill(book, name, promise, **known):
    """Charge until refused; how often it went through, and the refusal."""
    number = 0
    while True:
        try:
            book.charge(name, promise, **known)
        except Overspent as refusal:
            return number, refusal
        number += 1


# What is charged


def test_a_zero_below_zero_is_charged_as_zero(postgres_url):
    """It was told as damage: the server takes entries of one form only."""
    with hs.Ledger(postgres_url) as book:
        book.open_budget("study", G(epsilon=1.0, delta=1e-6))
        entry = book.charge("study", G(epsilon=0.5, delta=-0.0, gamma=-0.0))
        assert book.entries("study") == (entry,)


@pytest.mark.slow_cases("postgresql")
def test_a_budget_is_used_up_and_stays_used_up(ledger, url):
    """Charges add up, the next one is refused, and another reader of the file sees the same."""
    ledger.open_budget("study", G(epsilon=1.0), note="2026")
    first = ledger.charge("study", G(epsilon=0.75), "counts")
    assert (first.number, first.note, first.budget) == (1, "counts", "study")
    with pytest.raises(Overspent, match="Nothing was charged") as caught:
        ledger.charge("study", G(epsilon=0.5))
    assert caught.value.epsilon_left == 0.25
    assert caught.value.budget == "study"
    assert "0.25" in str(caught.value)
    assert "scale 4" in str(caught.value)
    ledger.charge("study", G(epsilon=0.25))
    with hs.Ledger(url, create=False) as other:
        balance = other.balance("study")
        assert balance.entries == 2
        assert balance.spent.epsilon == 1.0
        assert balance.epsilon_left == 0.0
        assert balance.used == 1.0
        assert [e.guarantee.epsilon for e in other.entries("study")] == [0.75, 0.25]
        assert other.budgets()[0].note == "2026"
        with pytest.raises(Overspent):
            other.charge("study", G(epsilon=1e-300))


def test_sums_are_exact_and_no_rounding_helps_the_spender(plain):
    """Eleven doubles nearest to 1/11 are above 1: the last does not fit, what is left does."""
    plain.open_budget("parts", G(epsilon=1.0))
    number, refusal = fill(plain, "parts", G(epsilon=1 / 11))
    assert number == 10
    left = refusal.epsilon_left
    assert Fraction(repr(left)) == 1 - 10 * Fraction(repr(1 / 11))
    plain.charge("parts", G(epsilon=left))
    total = sum(Fraction(repr(e.guarantee.epsilon)) for e in plain.entries("parts"))
    assert total == 1
    with pytest.raises(Overspent):
        plain.charge("parts", G(epsilon=2.0**-50))


def test_charges_far_below_the_last_place_still_add_up(plain):
    """A sum of doubles would forget 1e-17 after 1; an exact one refuses at the limit."""
    plain.open_budget("dust", G(epsilon=1.0))
    plain.charge("dust", G(epsilon=1.0 - 2.0**-53))
    number, _ = fill(plain, "dust", G(epsilon=1e-17))
    assert number == 10


def test_a_level_beyond_the_budget_is_refused_whatever_law_is_told(plain):
    """What is promised is charged, unless a law keeps just that."""
    plain.open_budget("b", G(epsilon=2.0, delta=1e-6), method="pld")
    with pytest.raises(Overspent):
        plain.charge("b", G(epsilon=1e308), loss=privacy_loss.laplace(0.1))
    assert plain.balance("b").epsilon_left == 2.0


@lru_cache
def most_laplace(size, limit, delta):
    """How many Laplace releases keep a limit by composition of the loss itself."""
    law, number = privacy_loss.laplace(size), math.ceil(limit / size)
    while law.compose(number + 1).delta(limit) <= delta:
        number += 1
    return number


@pytest.mark.slow_cases("renyi")
@pytest.mark.slow
@pytest.mark.parametrize("method", ["adaptive", "zcdp", "renyi", "gaussian", "pld"])
def test_many_small_charges_cost_what_the_rule_says(plain, method):
    """The number of Laplace releases that fit is right by composition of the loss itself."""
    limit = G(epsilon=0.5, delta=1e-3)
    plain.open_budget("b", limit, method=method)
    law = privacy_loss.laplace(0.02)
    number, refusal = fill(plain, "b", G(epsilon=0.02), loss=law)
    most = most_laplace(0.02, 0.5, 1e-3)
    assert number == most if method == "pld" else 0.4 * most < number <= most
    assert number > 25  # what basic composition allows
    assert hs.compose(plain.entries("b"), delta=1e-3).epsilon <= 0.5
    assert plain.balance("b").spent.epsilon <= 0.5
    if refusal.epsilon_left > 0:
        plain.charge("b", G(epsilon=refusal.epsilon_left))


@pytest.mark.parametrize(
    ("law", "number", "limit"),
    [
        (privacy_loss.laplace(1.0), 1, (1.2, 1e-6)),
        (privacy_loss.laplace(0.3), 4, (1.5, 1e-5)),
        (privacy_loss.gaussian(0.2), 3, (2.0, 1e-6)),
        (privacy_loss.approximate(0.5, 1e-7), 2, (1.5, 1e-5)),
    ],
)
def test_headroom_is_within_the_limit(law, number, limit):
    """History, one Gaussian release of the headroom, and the reserve keep the limit together."""
    kept = LossSum(*limit, *privacy_filters(*limit, method="pld"))
    for _ in range(number):
        kept.add(G(epsilon=1.0), law, Cost(amount=math.inf, delta=0.0))
    squares, reserve = kept._find_headroom()
    follower = privacy_loss.gaussian(math.sqrt(squares))
    joint = privacy_loss.compose([law.compose(number), follower])
    assert joint.delta_bracket(limit[0]).low + float(reserve) <= limit[1]
    wide = privacy_loss.gaussian(math.sqrt(float(squares) + gaussian_capacity(*limit)))
    assert privacy_loss.compose([law.compose(number), wide]).delta(limit[0]) > limit[1]


def test_what_fits_after_many_laws_keeps_the_limit_as_it_is_added_up():
    """Laws are rounded up after 256 others: a charge that is taken is never beyond the limit then.

    Its answer, if it was not stored, would be refused under its key as one that nobody paid for.
    """
    limit = G(epsilon=1.0, delta=1e-6)
    running = start_balance(new_budget("b", limit, method="pld"))

    def charge(size: float) -> bool:
        promise, law = G(epsilon=size), privacy_loss.laplace(size)
        costs = costs_of(running.budget, promise, law)
        fits = running.fits(promise, law, costs)
        if fits:
            running.add(next_entry(running, promise, "", write_law(law), costs))
        return fits

    assert all(charge(1e-6 * (1 + i / 1000)) for i in range(300))
    promise, law = G(epsilon=0.3), privacy_loss.laplace(0.3)
    own = costs_of(running.budget, promise, law)
    ((family, count),), cost = running.exact._as_counted(promise, law, own[0])
    wide = G(epsilon=family.bound)
    assert (count, family.bound > 0.3) == (1, True)
    assert cost.amount >= costs_of(running.budget, wide, None)[0].amount > own[0].amount
    sizes = [1.0, 0.9999, 0.999, 0.99, 0.9, 0.5, 0.1]
    assert any(charge(size) for size in sizes)
    assert running.keeps_limit()
    assert running.exact.spent() <= 1.0


@pytest.mark.slow
def test_exact_composition_of_a_mixture_is_that_of_the_accountant(plain):
    """Laplace, Gaussian, bounded range and bare promises: the balance is `hs.compose`'s."""
    plain.open_budget("mix", G(epsilon=3.0, delta=1e-4), method="pld")
    for i in range(8):
        plain.charge("mix", G(epsilon=0.2), loss=privacy_loss.laplace(0.2))
        wide = privacy_loss.gaussian(0.1 + i / 100)
        plain.charge("mix", G(epsilon=wide.epsilon(1e-9), delta=1e-9), loss=wide)
        plain.charge("mix", G(epsilon=0.1), loss=privacy_loss.bounded_range(0.1))
        plain.charge("mix", G(epsilon=0.05, delta=1e-7))
    spent = plain.balance("mix").spent
    expected = hs.compose(plain.entries("mix"), delta=1e-4)
    assert spent.epsilon == pytest.approx(expected.epsilon, rel=1e-3)
    assert spent.epsilon >= expected.exact.low


@pytest.mark.slow_cases("pld")
@pytest.mark.parametrize("method", ["adaptive", "pld", "zcdp"])
def test_one_charge_too_many_is_refused_whatever_was_remembered(path, method):
    """A fresh process, which folds everything anew, refuses and grants the same charges."""
    address = f"sqlite:///{path}"
    with hs.Ledger(address) as book:
        book.open_budget("b", G(epsilon=1.0, delta=1e-5), method=method)
        for size in np.random.default_rng(5).uniform(0.05, 0.3, 16).tolist():
            try:
                book.charge("b", G(epsilon=size), loss=privacy_loss.laplace(size))
            except Overspent:
                with hs.Ledger(address) as fresh, pytest.raises(Overspent):
                    fresh.charge("b", G(epsilon=size), loss=privacy_loss.laplace(size))
        fresh = hs.Ledger(address)
        assert fresh.balance("b").spent == book.balance("b").spent
        fresh.close()


@pytest.mark.slow_cases("postgresql")
def test_gamma_is_spent_once_for_each_estimate(ledger):
    """The same sampled sensitivity twice costs its gamma once; another one adds."""
    ledger.open_budget("g", G(epsilon=10.0, gamma=0.1))
    first = G(epsilon=0.1, gamma=0.0625, estimates=(("one", 0.0625),))
    ledger.charge("g", first)
    ledger.charge("g", first)
    assert ledger.balance("g").spent.gamma == 0.0625
    with pytest.raises(Overspent, match="sample with a smaller gamma"):
        ledger.charge("g", G(epsilon=0.1, gamma=0.0625, estimates=(("two", 0.0625),)))
    ledger.open_budget("none", G(epsilon=10.0))
    with pytest.raises(Overspent, match="open another one whose limit has a gamma"):
        ledger.charge("none", first)
    ledger.charge("g", G(epsilon=0.1, gamma=0.03125))
    with pytest.raises(Overspent):  # stated by hand: an event of its own each time
        ledger.charge("g", G(epsilon=0.1, gamma=0.03125))
    balance = ledger.balance("g")
    assert balance.spent.gamma == 0.09375
    assert 0.1 - 0.09375 - 1e-17 < balance.gamma_left <= Fraction(0.1) - Fraction(3, 32)
    union = hs.union_gamma([e.guarantee for e in ledger.entries("g")])
    assert math.nextafter(union, 0) <= balance.spent.gamma <= union


def test_a_quote_charges_nothing(ledger):
    """The balance after a charge is told beforehand, and the charge then leads there."""
    ledger.open_budget("q", G(epsilon=1.0, delta=1e-6))
    ledger.charge("q", G(epsilon=0.25))
    quoted = ledger.quote("q", G(epsilon=0.5), loss=privacy_loss.laplace(0.5))
    assert ledger.balance("q").entries == 1
    ledger.charge("q", G(epsilon=0.5), loss=privacy_loss.laplace(0.5))
    assert ledger.balance("q") == quoted
    with pytest.raises(Overspent):
        ledger.quote("q", G(epsilon=0.5))


def test_a_release_is_charged_with_its_law_and_says_so(plain):
    """The entry holds the mechanism's loss; the certificate names the budget and its terms."""
    data = np.random.default_rng(3).random(30)
    s = hs.proven_sensitivity(1 / 30, argument="mean of values in [0, 1]")
    plain.open_budget("r", G(epsilon=1.0, delta=1e-6), method="pld")
    m = hs.Laplace(s, epsilon=0.25)
    released = hs.release(lambda r: r.mean(), data, m, plain, budget="r", note="mean")
    (entry,) = plain.entries("r")
    assert entry.loss.family == m.loss.family
    assert entry.guarantee == m.guarantee
    words = released.certificate.explain()
    assert "charge 1 of the budget 'r'" in words
    assert "does not depend on the answers before" in words.replace("\n", " ")
    again = hs.Certificate.from_json(released.certificate.to_json())
    assert again == released.certificate
    with pytest.raises(Overspent):
        hs.release(lambda r: 1 / 0, data, hs.Laplace(s, epsilon=2.0), plain, budget="r")
    with pytest.raises(HushedError):
        hs.release(lambda r: 1 / 0, data, m, plain, budget="r")
    assert plain.balance("r").entries == 2  # the failed query stays charged


def test_history_and_export(plain):
    """The share used grows to the present one; the export's chain can be checked by hand."""
    import hashlib

    plain.open_budget("h", G(epsilon=1.0))
    for _ in range(5):
        plain.charge("h", G(epsilon=0.125), "é\n")
    moments = plain.history("h")
    assert [m.number for m in moments] == [0, 1, 2, 3, 4, 5]
    assert [m.used for m in moments] == [0, 0.125, 0.25, 0.375, 0.5, 0.625]
    assert [m.number for m in plain.history("h", points=2)] == [0, 3, 5]
    (told,) = json.loads(plain.export("h"))["budgets"]
    link = ""
    for record, claimed in [(told["budget"], told["digest"])] + [
        ({k: v for k, v in e.items() if k != "digest"}, e["digest"]) for e in told["entries"]
    ]:
        body = json.dumps(record, sort_keys=True, separators=(",", ":"))
        link = hashlib.sha256(f"{link}\n{body}".encode()).hexdigest()
        assert link == claimed
    assert len(told["entries"]) == 5


LAWS = {
    "laplace": privacy_loss.laplace(0.1),
    "gaussian": privacy_loss.gaussian(1 / 3),
    "range": privacy_loss.bounded_range(0.7),
    "finite": privacy_loss.randomised_response(0.3, 4),
    "lossy": privacy_loss.approximate(0.2, 1e-7),
    "discrete": privacy_loss.discrete_gaussian(3.0, 2),
    "mixture": privacy_loss.compose(
        [privacy_loss.laplace(0.1), privacy_loss.laplace(0.1), privacy_loss.gaussian(0.2)]
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_laws_come_back_bit_for_bit(name):
    """A law written as text is the same law when read."""
    written = json.loads(json.dumps(write_law(LAWS[name])))
    assert read_law(written).parts == LAWS[name].parts


def test_laws_too_long_to_write_are_left_out():
    """Then the guarantee alone is charged."""
    assert write_law(privacy_loss.discrete_gaussian(500.0)) is None


def test_the_numbers_of_an_overspending_survive_a_trip():
    """The error crosses processes with what it carries."""
    error = pickle.loads(pickle.dumps(Overspent("no", "study", 0.5)))
    assert (str(error), error.budget, error.epsilon_left) == ("no", "study", 0.5)


# What is refused


@pytest.mark.parametrize(
    ("promise", "message"),
    [
        (G(epsilon=0.1, neighbours="add-remove"), "neighbours"),
        (G(epsilon=0.1, data_dependent=True), "data_dependent"),
        (G(epsilon=0.1, gamma=0.01), "one record at a time"),
        (0.1, "Guarantee"),
        (None, "Guarantee"),
    ],
)
def test_promises_of_another_kind_are_refused(plain, promise, message):
    """Another relation, nominal numbers, fewer people protected, or no promise at all."""
    plain.open_budget("b", G(epsilon=1.0, gamma=0.1, protect="everyone"))
    with pytest.raises(ParameterError, match=message):
        plain.charge("b", promise)
    assert plain.balance("b").entries == 0
    plain.charge("b", G(epsilon=0.1, gamma=0.01, protect="simultaneous"))


def test_every_mismatch_is_named_with_the_budget_that_would_do(plain):
    """One message tells all that differs, and what to open, in Python and on the command line."""
    plain.open_budget("rows", G(epsilon=1.0))
    plain.open_budget("all", G(epsilon=1.0, gamma=0.1, protect="everyone", neighbours="add-remove"))
    with pytest.raises(ParameterError) as both:
        plain.charge("rows", G(epsilon=0.1, neighbours="add-remove", unit="user"))
    text = str(both.value)
    assert "is for replace-one neighbours, the charge for add-remove" in text
    assert "protects one row, the charge one user" in text
    assert (
        "neighbours='add-remove', unit='user' in its limit "
        "(hushed ledger open LEDGER NAME --epsilon EPSILON --neighbours add-remove " in text
    )
    assert "add-remove --unit user). Nothing was charged" in text
    assert "query tables" not in text  # without user=COLUMN it would still be for add-remove
    with pytest.raises(ParameterError) as more:
        plain.charge("all", G(epsilon=0.1, gamma=0.05, data_dependent=True))
    for part in ("neighbours", "one record at a time", "nominal", "data_dependent=True"):
        assert part in str(more.value)
    followed = G(epsilon=1.0, neighbours="add-remove", unit="user")
    plain.open_budget("users", followed)
    plain.charge("users", replace(followed, epsilon=0.1))  # the advice works
    assert plain.balance("rows").entries == plain.balance("all").entries == 0


def test_a_law_of_another_release_is_refused(plain):
    """A law that does not keep the guarantee beside it is a mistake of the caller."""
    plain.open_budget("b", G(epsilon=1.0))
    with pytest.raises(ParameterError, match="same release"):
        plain.charge("b", G(epsilon=0.1), loss=privacy_loss.laplace(0.2))
    with pytest.raises(ParameterError, match="PrivacyProfile"):
        plain.charge("b", G(epsilon=0.1), loss="laplace")


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 201, 7, "nul\x00"])
def test_names_are_plain_texts(plain, name):
    """A budget's name can be printed on one line."""
    with pytest.raises(ParameterError, match="printable"):
        plain.open_budget(name, G(epsilon=1.0))


ALIKE = {
    "cafe\u0301": "café",
    "caf\u00e9\u034f": "café",
    "a\u3164": "a",
    "\u2800a": "a",
    "heart\ufe0f": "heart",
    " a": "a",
    "a ": "a",
    "a  b": "a b",
    "\u212b": "Å",
    " ": "",
}


@pytest.mark.parametrize("name", ALIKE)
def test_a_new_name_that_looks_like_another_one_is_refused(plain, name):
    """As a budget it would have a limit of its own, as a key a price; the way out is named."""
    limit = hs.Guarantee(epsilon=1.0)
    plain.open_budget("b", limit)
    for use in (
        lambda: plain.open_budget(name, limit),
        lambda: plain.charge("b", limit, key=name),
        lambda: charge_together(
            plain, ["b"], Charge(guarantee=limit, key=name), lambda *_: pytest.fail("written")
        ),
    ):
        with pytest.raises(ParameterError, match="normal form NFC") as refused:
            use()
        assert str(refused.value).endswith(f"Write {ALIKE[name]!r}") or not ALIKE[name]
    assert [each.name for each in plain.budgets()] == ["b"]
    assert plain.balance("b").entries == 0
    if ALIKE[name]:
        plain.open_budget(ALIKE[name], limit)
        assert plain.charge("b", limit, key=ALIKE[name]).number == 1


@pytest.mark.parametrize("name", ALIKE)
def test_an_old_name_that_looks_like_another_one_stays_in_use(plain, name, monkeypatch):
    """A ledger from before is charged, read and checked as it was."""
    limit = hs.Guarantee(epsilon=1.0)
    with monkeypatch.context() as before:
        for module in ("_accounts", "_requests"):
            before.setattr(f"hushed.ledger.{module}.check_new", lambda *_: None)
        plain.open_budget(name, limit)
        paid = plain.charge(name, hs.Guarantee(epsilon=0.5), key=name)
    with hs.Ledger(plain._store.url) as again:
        assert again.charge(name, hs.Guarantee(epsilon=0.5), key=name) == paid
        assert again.keep_answer(name, paid, "{}") == again.answer(name, name) == "{}"
        assert again.charge(name, hs.Guarantee(epsilon=0.5), key="new").number == 2
        assert again.verify(name).startswith("2:")


@pytest.mark.slow_cases("postgresql")
def test_a_budget_that_others_open_at_the_same_moment_exists(url):
    """One of eight opens it, and the others are told that it exists, whatever the database."""
    books = [hs.Ledger(url) for _ in range(8)]
    start, told = threading.Barrier(8), []

    def open_all(book):
        for name in map(str, range(4)):
            start.wait()
            try:
                book.open_budget(name, G(epsilon=1.0))
            except ParameterError as error:
                told.append((name, type(error)))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(open_all, books))
    assert sorted(told) == [(name, BudgetExists) for name in "0123" for _ in range(7)]
    for book in books:
        assert len(book.budgets()) == 4
        book.close()


def test_limits_are_checked_and_never_changed(plain):
    """A limit is finite, opened once, and not the guarantee of a sampled release."""
    plain.open_budget("b", G(epsilon=1.0))
    for again in (2.0, 1.0):
        with pytest.raises(BudgetExists, match="already"):
            plain.open_budget("b", G(epsilon=again))
    assert issubclass(BudgetExists, ParameterError)
    assert plain.balance("b").budget.limit.epsilon == 1.0
    with pytest.raises(ParameterError, match="finite"):
        plain.open_budget("c", G(epsilon=math.inf))
    with pytest.raises(ParameterError, match="by hand"):
        plain.open_budget("c", G(epsilon=1.0, gamma=0.1, estimates=(("x", 0.1),)))
    with pytest.raises(ParameterError, match="Guarantee"):
        plain.open_budget("c", 1.0)
    with pytest.raises(Overspent):
        plain.charge("b", G(epsilon=math.inf))
    with pytest.raises(Overspent):
        plain.charge("b", G(epsilon=0.1, delta=1e-300))
    assert [each.name for each in plain.budgets()] == ["b"]


def test_what_is_not_there_is_said(plain, tmp_path):
    """A budget, a file or a folder that does not exist is not made by asking for it."""
    for ask in (plain.balance, plain.entries, plain.history, plain.export):
        with pytest.raises(NotFound, match="open it first"):
            ask("nothing")
    with pytest.raises(NotFound):
        plain.charge("nothing", G(epsilon=0.1))
    with pytest.raises(NotFound, match="no file"):
        hs.Ledger(f"sqlite:///{tmp_path}/other.db", create=False)
    with pytest.raises(NotFound, match="no folder"):
        hs.Ledger(f"sqlite:///{tmp_path}/nowhere/other.db")
    assert not (tmp_path / "other.db").exists()


@pytest.mark.parametrize(
    "address",
    ["budget.db", "sqlite://", "sqlite:///:memory:", "sqlite:///a.db?mode=ro", "mysql://x/y", ""],
)
def test_other_addresses_are_refused(address):
    """A ledger lies in a file or on a server; one in memory would forget."""
    with pytest.raises(ParameterError, match="address"):
        hs.Ledger(address)


def test_the_name_of_a_file_is_answered_with_its_address():
    """A plain name is shown as it should be written; what may hold a password is not shown."""
    with pytest.raises(ParameterError, match=r"got 'steward.db'; for a file sqlite:///steward.db$"):
        hs.Ledger("steward.db")
    for secret in ("mysql://me:pass@host/x", "me:pass@host/x", "pass@host"):
        with pytest.raises(ParameterError, match=r"got another one$"):
            hs.Ledger(secret)


def test_a_server_that_is_not_there_is_said():
    """A refused connection is no ledger error that could be mistaken for an overspending."""
    with pytest.raises(LedgerUnavailable, match="cannot be used now"):
        hs.Ledger("postgresql://nobody:secretword@127.0.0.1:1/none")


# Files that are not to be trusted


def edit(path, *statements, guards=False):
    """Change a file behind the ledger's back; with the guards of the tables taken off."""
    with sqlite3.connect(path) as found:
        if not guards:
            for (name,) in found.execute(
                "SELECT name FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall():
                found.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            found.execute(statement)
    found.close()


DAMAGE = {
    "an entry changed": "UPDATE hushed_entries SET body = replace(body, 'note', 'nope') "
    "WHERE number = 2",
    "an entry cheaper": "UPDATE hushed_entries SET body = replace(body, '0x1.0', '0x0.0') "
    "WHERE number = 2",
    "an entry lost": "DELETE FROM hushed_entries WHERE number = 2",
    "the last one lost": "DELETE FROM hushed_entries WHERE number = 4",
    "all lost": "DELETE FROM hushed_entries",
    "two swapped": "UPDATE hushed_entries SET number = 5 - number WHERE number IN (2, 3)",
    "one added": "INSERT INTO hushed_entries SELECT budget, 5, body, digest FROM hushed_entries "
    "WHERE number = 4",
    "the limit raised": "UPDATE hushed_budgets SET body = replace(body, 'p+0', 'p+9')",
    "the head set back": "UPDATE hushed_heads SET entries = 3",
    "no JSON": "UPDATE hushed_entries SET body = 'x' WHERE number = 1",
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_ledger_is_refused(path, name):
    """Whatever is changed, lost or added: neither a balance nor a charge, but a clear message."""
    with hs.Ledger(f"sqlite:///{path}") as book:
        book.open_budget("b", G(epsilon=1.0))
        for _ in range(4):
            book.charge("b", G(epsilon=0.0625))
    statements = [DAMAGE[name]]
    if name == "two swapped":
        statements = [
            "UPDATE hushed_entries SET number = -number WHERE number IN (2, 3)",
            "UPDATE hushed_entries SET number = 5 + number WHERE number < 0",
        ]
    edit(path, *statements)
    book = hs.Ledger(f"sqlite:///{path}")
    with pytest.raises(DamagedLedger):
        book.balance("b")
    with pytest.raises(DamagedLedger):
        book.charge("b", G(epsilon=0.0625))
    with pytest.raises(DamagedLedger):
        book.entries("b")
    book.close()


def test_an_older_copy_under_a_running_ledger_is_noticed(path, tmp_path):
    """Whoever puts back a copy gives back what was spent; a running ledger sees it."""
    with hs.Ledger(f"sqlite:///{path}") as book:
        book.open_budget("b", G(epsilon=1.0))
        book.charge("b", G(epsilon=0.5))
        edit(path, "DELETE FROM hushed_entries", "UPDATE hushed_heads SET entries = 0")
        with pytest.raises(DamagedLedger, match="copy"):
            book.charge("b", G(epsilon=0.5))


def test_damaged_pages_are_refused(path):
    """Overwritten bytes of an SQLite file are found when it is opened."""
    with hs.Ledger(f"sqlite:///{path}") as book:
        book.open_budget("b", G(epsilon=1.0))
        for _ in range(30):
            book.charge("b", G(epsilon=0.001), "x" * 500)
    content = bytearray(path.read_bytes())
    for page in range(1, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = os.urandom(64)
    path.write_bytes(content)
    with pytest.raises(DamagedLedger):
        hs.Ledger(f"sqlite:///{path}").balance("b")


def test_files_that_are_no_ledger_are_left_alone(tmp_path):
    """A text, another database, a folder: refused, and not a byte changed."""
    text, other = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("private " * 100)
    with sqlite3.connect(other) as found:
        found.execute("CREATE TABLE patients (name TEXT)")
    found.close()
    for each in (text, other):
        before = each.read_bytes()
        with pytest.raises(NotALedger, match="nothing was changed"):
            hs.Ledger(f"sqlite:///{each}")
        assert each.read_bytes() == before
    with pytest.raises(NotALedger):
        hs.Ledger(f"sqlite:///{tmp_path}")
    broken = tmp_path / "broken.db"
    broken.write_bytes(other.read_bytes()[:100] + os.urandom(5000))
    with pytest.raises(HushedError):
        hs.Ledger(f"sqlite:///{broken}")


def test_a_newer_ledger_is_refused(ledger, url):
    """Tables of a version that this library does not know are not touched."""
    ledger.open_budget("b", G(epsilon=1.0))
    with ledger._store.writing() as connection:
        place = PLACES[url[:6]]
        connection.exec_driver_sql(f"INSERT INTO {place}hushed_migrations VALUES (99, 'new', 'x')")
    with pytest.raises(NewerLedger, match="update hushed"):
        hs.Ledger(url)


def test_a_migration_that_fails_leaves_the_old_version(url, monkeypatch):
    """Step and record commit together, or neither."""
    hs.Ledger(url).close()
    broken = migrations.Migration(
        version=2,
        name="broken",
        statements=lambda _: ["CREATE TABLE hushed_half (x INTEGER)", "SELECT broken FROM nowhere"],
    )
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "MIGRATIONS", (migrations.MIGRATIONS[0], broken))
        patch.setattr(store, "MIGRATIONS", migrations.MIGRATIONS)
        with pytest.raises(LedgerUnavailable):
            hs.Ledger(url)
    found = store.Store(store._address(url), 10.0)
    with found.reading() as connection:
        from sqlalchemy import inspect

        assert migrations.read_version(connection) == 1
        assert not inspect(connection).has_table("hushed_half")
    found.close()
    with hs.Ledger(url) as book:
        assert book.budgets() == ()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE hushed_entries SET body = ''",
        "DELETE FROM hushed_entries",
        "UPDATE hushed_budgets SET body = ''",
        "DELETE FROM hushed_heads",
        "UPDATE hushed_heads SET entries = entries + 2",
        "UPDATE hushed_heads SET entries = entries - 1",
        "DELETE FROM hushed_migrations",
    ],
)
def test_the_database_itself_refuses_changes(ledger, url, statement):
    """Rows are added and never changed, even by someone with a database client."""
    ledger.open_budget("b", G(epsilon=1.0))
    ledger.charge("b", G(epsilon=0.5))
    refused = pytest.raises(DamagedLedger, match="refused by the ledger itself")
    with refused, ledger._store.writing() as connection:
        connection.exec_driver_sql(statement.replace("hushed_", f"{PLACES[url[:6]]}hushed_"))
    assert ledger.balance("b").entries == 1


# Threads, processes, connections


@pytest.mark.slow_cases("postgresql")
def test_threads_share_a_budget_and_never_overspend(ledger):
    """Eight threads want sixteen units each of forty: forty get one."""
    ledger.open_budget("b", G(epsilon=40.0))
    won = []

    def spend():
        for _ in range(16):
            try:
                won.append(ledger.charge("b", G(epsilon=1.0)).number)
            except Overspent:
                return

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(won) == list(range(1, 41))
    assert ledger.balance("b").spent.epsilon == 40.0


def test_ledgers_of_one_process_see_each_other(url):
    """Two open ledgers take turns; neither works from what it remembers alone."""
    with hs.Ledger(url) as one, hs.Ledger(url) as two:
        one.open_budget("b", G(epsilon=1.0))
        for each in (one, two, one, two):
            each.charge("b", G(epsilon=0.25))
        for each in (one, two):
            with pytest.raises(Overspent):
                each.charge("b", G(epsilon=0.25))


def test_readers_see_one_moment(url):
    """A charge that commits between a reader's look at the head and at the entries is not seen."""
    with hs.Ledger(url) as one, hs.Ledger(url) as two:
        budget = one.open_budget("b", G(epsilon=1.0))
        one.charge("b", G(epsilon=0.25))
        with one._store.reading() as connection:
            head = rows.head_of(connection, "b")
            two.charge("b", G(epsilon=0.25))
            seen = list(rows.entries_after(connection, "b", (0, budget.digest), head))
        assert len(seen) == 1
        assert one.balance("b").entries == 2


def test_a_forked_child_gets_connections_of_its_own(plain):
    """A child that inherits an open ledger can charge it, and the parent sees the charge."""
    plain.open_budget("b", G(epsilon=1.0))
    plain.charge("b", G(epsilon=0.5))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            plain.charge("b", G(epsilon=0.25))
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert plain.balance("b").epsilon_left == 0.25


def test_a_busy_file_is_told_and_nothing_charged(path):
    """Another writer that does not let go ends in a message, not in a wait for ever."""
    with hs.Ledger(f"sqlite:///{path}", timeout=0.2) as book:
        book.open_budget("b", G(epsilon=1.0))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerUnavailable, match="locked"):
            book.charge("b", G(epsilon=0.5))
        other.execute("ROLLBACK")
        other.close()
        assert book.balance("b").entries == 0


def test_threads_that_wait_to_write_leave_their_connections_to_readers(plain):
    """There are 15: more writers than that wait for one of them, and others read meanwhile."""
    for number in range(20):
        plain.open_budget(f"b{number}", G(epsilon=1.0))
    with ThreadPoolExecutor(20) as pool:
        with plain._store.spending():
            made = [pool.submit(plain.charge, f"b{i}", G(epsilon=0.5)) for i in range(20)]
            time.sleep(0.2)
            assert plain._store.engine().pool.checkedout() == 1
            assert len(plain.budgets()) == 20
        assert [each.result().number for each in made] == [1] * 20


def test_a_thread_that_does_not_end_its_writing_is_told(path):
    """Whoever waits for it is refused after the time that the ledger was given."""
    with hs.Ledger(f"sqlite:///{path}", timeout=0.2) as book:
        book.open_budget("b", G(epsilon=1.0))
        with (
            book._store.spending(),
            ThreadPoolExecutor(1) as pool,
            pytest.raises(LedgerUnavailable, match="locked by another thread"),
        ):
            pool.submit(book.charge, "b", G(epsilon=0.5)).result()
        assert book.charge("b", G(epsilon=0.5)).number == 1


def test_a_commit_that_fails_charges_nothing_and_locks_nobody_out(plain, path):
    """SQLite refuses at the commit and leaves the transaction open: it is undone, and said so."""
    plain.open_budget("b", G(epsilon=1.0))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute(
        "CREATE TABLE debts (x REFERENCES hushed_budgets (name) DEFERRABLE INITIALLY DEFERRED)"
    )
    other.execute(
        "CREATE TRIGGER owe AFTER INSERT ON hushed_entries BEGIN INSERT INTO debts VALUES ('?'); "
        "END"
    )
    with pytest.raises(LedgerUnavailable, match=r"nothing was charged.*FOREIGN KEY"):
        plain.charge("b", G(epsilon=0.75))
    other.execute("DROP TRIGGER owe")  # waits for no one
    other.close()
    assert plain.balance("b").entries == 0
    assert plain.charge("b", G(epsilon=0.75)).number == 1


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DROP TABLE hushed_heads", "no such table"),
        ("DELETE FROM hushed_heads", "there is no budget"),
        (
            "CREATE TRIGGER t BEFORE INSERT ON hushed_entries BEGIN SELECT RAISE(ABORT, 'x'); END",
            "x",
        ),
    ],
)
def test_what_sqlite_refuses_in_a_charge_is_told_and_undone(plain, path, statement, message):
    """No error of the driver gets out, and none leaves the file locked."""
    plain.open_budget("b", G(epsilon=1.0))
    plain.charge("b", G(epsilon=0.25))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("DROP TRIGGER hushed_heads_delete")
    other.execute(statement)
    with pytest.raises((LedgerUnavailable, NotFound), match=message):
        plain.charge("b", G(epsilon=0.25))
    other.execute("BEGIN IMMEDIATE")
    assert other.execute("SELECT COUNT(*) FROM hushed_entries").fetchone() == (1,)
    other.close()


@pytest.mark.parametrize(
    "value", [0.0, -0.0, 5e-324, 2.2e-308, 0.1, 1.0, 1e300, 1.7976931348623157e308]
)
def test_a_decimal_is_a_whole_number_of_units(value):
    """Sums count decimals without rounding, from the smallest to the largest."""
    exact = Fraction(Decimal(str(value)))
    assert to_units(value) == exact * 10**324
    assert from_units(to_units(value) + to_units(0.1)) == exact + Fraction(1, 10)


def test_every_commit_reaches_the_disk(ledger):
    """Write-ahead log with full synchronisation; on PostgreSQL no asynchronous commit."""
    with ledger._store.spending() as connection:
        if ledger._store.sqlite:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
            assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)
            assert connection.in_transaction
        else:
            assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"


class Cut:
    """Cuts the connection of a PostgreSQL ledger at a chosen moment of a charge."""

    def __init__(self, book, url, when):
        self.book, self.url, self.when, self.armed = book, url, when, True

    def __call__(self, connection):
        if not self.armed:
            return
        self.armed = False
        raw = connection.connection.driver_connection
        if self.when == "after":  # the commit arrives, its answer does not
            raw.commit()
            raw.execute("SELECT 1")  # a new transaction, so that there is something to fail
        with psycopg.connect(self.url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", (raw.info.backend_pid,))


@pytest.mark.slow_cases("after")
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_connection_lost_in_the_commit_is_charged_or_refused(postgres_url, when):
    """Afterwards the ledger is asked what became of it: never both, never neither."""
    from sqlalchemy import event

    with hs.Ledger(postgres_url) as book:
        book.open_budget("b", G(epsilon=1.0))
        book.balance("b")
        event.listen(book._store.engine(), "commit", Cut(book, postgres_url, when))
        if when == "after":
            assert book.charge("b", G(epsilon=0.5)).number == 1
        else:
            with pytest.raises(LedgerUnavailable, match="nothing was charged"):
                book.charge("b", G(epsilon=0.5))
        assert book.balance("b").entries == (1 if when == "after" else 0)
        book.charge("b", G(epsilon=0.5))


@pytest.mark.slow
def test_a_connection_lost_before_the_charge_costs_nothing(postgres_url):
    """A server that dropped an idle connection is asked again."""
    with hs.Ledger(postgres_url) as book:
        book.open_budget("b", G(epsilon=1.0))
        book.charge("b", G(epsilon=0.25))
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        book.charge("b", G(epsilon=0.25))
        assert book.balance("b").entries == 2


def _open_and_charge(url, wait):
    wait.wait()
    with hs.Ledger(url) as book:
        book.charge("b", G(epsilon=0.125))


@pytest.mark.slow
def test_processes_share_a_budget(url):
    """Three processes charge one unit each, starting together."""
    with hs.Ledger(url) as book:
        book.open_budget("b", G(epsilon=0.375))
        context = multiprocessing.get_context("fork")
        start = context.Event()
        children = [context.Process(target=_open_and_charge, args=(url, start)) for _ in range(3)]
        for each in children:
            each.start()
        start.set()
        for each in children:
            each.join()
        assert [each.exitcode for each in children] == [0, 0, 0]
        assert book.balance("b").epsilon_left == 0.0


# Whom a budget protects


class TestUnits:
    def test_rows_and_users_do_not_share_a_budget(self, ledger):
        """Neither goes into a budget for the other, by a charge or a quote; the way out is told."""
        ledger.open_budget("rows", G(epsilon=1.0, neighbours="add-remove"))
        ledger.open_budget("users", G(epsilon=1.0, neighbours="add-remove", unit="user"))
        for name, other in [("rows", "user"), ("users", "row")]:
            promise = G(epsilon=0.25, neighbours="add-remove", unit=other)
            for verb in (ledger.charge, ledger.quote):
                with pytest.raises(
                    ParameterError,
                    match=f"another budget with neighbours='add-remove', unit='{other}'",
                ):
                    verb(name, promise)
            assert ledger.balance(name).entries == 0

    def test_the_unit_is_kept_and_told(self, ledger, url):
        """Budget, entries, balance, terms and a joint promise are for users, after reopening."""
        limit = G(epsilon=1.0, neighbours="add-remove", unit="user")
        for method in ("basic", "pld"):
            ledger.open_budget(method, limit, method=method)
            terms = ledger.charge(method, replace(limit, epsilon=0.25)).terms
            assert "for one user" in terms
        with hs.Ledger(url) as again:
            balance = again.balance("basic")
            assert (balance.budget.limit, balance.spent.unit) == (limit, "user")
            assert again.balance("pld").epsilon_left == 0.75
            assert "unit user" in balance.explain()
            (entry,) = again.entries("basic")
            assert hs.compose([entry, entry], delta=0).guarantee.unit == "user"

    def test_two_tables_of_one_budget(self, plain):
        """The same rows asked by user and by row do not add up to a small sum."""
        visits = pa.table({"who": [1] * 1000 + [2], "x": [1.0] * 1001})
        plain.open_budget("b", G(epsilon=1.0, neighbours="add-remove"))
        hs.table(visits).count().release(epsilon=0.1, ledger=plain, budget="b")
        with pytest.raises(ParameterError, match="protects one row, the charge one user"):
            hs.table(visits, user="who").count_users().release(
                epsilon=0.1, ledger=plain, budget="b"
            )
        assert plain.balance("b").entries == 1


@pytest.mark.parametrize(
    ("method", "delta", "said"),
    [
        ("adaptive", 1e-6, "Half of the limit's delta is set aside for the charges' own deltas"),
        ("zcdp", 1e-6, "A share of the limit's delta is set aside"),
        ("basic", 1e-6, ""),
        ("adaptive", 0.0, ""),
    ],
)
def test_a_balance_says_why_a_part_of_delta_is_left(plain, method, delta, said):
    """A new budget has all of its delta left, unless it says where the rest is."""
    plain.open_budget("b", G(epsilon=1.0, delta=delta), method=method)
    balance = plain.balance("b")
    assert (balance.delta_left < 0.9 * delta) == bool(said)
    assert ("set aside" in balance.explain()) == bool(said)
    assert said in balance.explain()


@pytest.mark.parametrize("ask", ["entries", "history"])
def test_a_budget_that_is_named_by_a_list_is_named_wrongly(plain, ask):
    """It was said that the ledger cannot be used now, and to try again."""
    plain.open_budget("b", G(epsilon=1.0))
    with pytest.raises(ParameterError, match="named by a text, such as 'study', got something"):
        getattr(plain, ask)(["b"])


def test_balances_print_on_the_safe_side(plain):
    """What is promised and spent is not printed smaller than it is, what is left not larger."""
    limit = G(epsilon=2.0000004, delta=1.0000004e-6, gamma=0.30000004)
    plain.open_budget("b", limit, method="basic")
    terms = plain.charge("b", G(epsilon=1.0000001, delta=1.23456749e-7, gamma=0.12345674)).terms
    assert "epsilon = 2.00001, delta = 1.00001e-06, gamma = 0.300001" in terms
    first, second, third, _ = plain.balance("b").explain().splitlines()
    assert "epsilon 2.00001, delta 1.00001e-06, gamma 0.300001," in first
    assert "epsilon 1.00001 at delta 1.23457e-07, gamma 0.123457; 50.0 % used" in second
    assert "Left: epsilon 1 in" in third  # of 1.0000003
    assert "delta 8.76543e-07 and gamma 0.176543 for" in third
    with pytest.raises(
        Overspent, match=r"of epsilon 1.00001, delta 0 does not fit into epsilon 2,"
    ):
        plain.charge("b", G(epsilon=1.0000004))


@pytest.mark.parametrize(
    ("method", "charged", "asked", "part"),
    [
        (
            "adaptive",
            (1.0, 1e-7),
            (1.0, 4.5e-7),
            "its delta is too large, its epsilon would fit",
        ),
        ("adaptive", (2.0, 0.0), (2.0, 1e-7), "its epsilon is too large"),
        ("adaptive", (2.0, 0.0), (2.0, 6e-7), "its epsilon and its delta are too large"),
        ("basic", (1.0, 0.0), (1.0, 2e-6), "its delta is too large, its epsilon would fit"),
        (
            "gaussian",
            (0.1, 0.0),
            (0.1, 6e-7),
            "its delta is too large, its epsilon would fit",
        ),
        ("pld", (1.0, 0.0), (1.0, 2e-6), "its delta is too large, its epsilon would fit"),
        ("pld", (2.9, 0.0), (2.9, 0.0), "its epsilon is too large"),
        ("pld", (2.9, 0.0), (2.9, 2e-6), "its epsilon and its delta are too large"),
    ],
)
def test_the_part_that_does_not_fit_is_told(plain, method, charged, asked, part):
    """Epsilon, delta or both; and if delta, how much is set aside and how to choose it."""
    plain.open_budget("b", G(epsilon=3.0, delta=1e-6), method=method)
    plain.charge("b", G(epsilon=charged[0], delta=charged[1]))
    with pytest.raises(Overspent) as refused:
        plain.charge("b", G(epsilon=asked[0], delta=asked[1]))
    text = str(refused.value)
    assert part in text
    assert "(1 charge so far" in text
    assert text.endswith("Nothing was charged")
    at_fault = "delta is too" in part or "delta are too" in part
    assert ("Half of the limit's delta" in text) == (method == "adaptive" and at_fault)
    assert ("--slack" in text) == (method == "gaussian")
    assert plain.balance("b").entries == 1


@pytest.mark.parametrize("method", ["adaptive", "basic", "gaussian", "pld"])
def test_a_refusal_says_which_epsilon_would_fit_and_it_does(plain, method):
    """Once, and as the option of the command; where nothing is left, nothing is offered."""
    plain.open_budget("b", G(epsilon=3.0, delta=1e-6), method=method)
    plain.charge("b", G(epsilon=0.3))
    with pytest.raises(Overspent) as refused:
        plain.charge("b", G(epsilon=5.0))
    text = str(refused.value)
    assert text.count("does not fit") == 1
    offered = re.search(r"Ask for epsilon (\S+) at most \(--epsilon \1\)\. Nothing was", text)
    plain.charge("b", G(epsilon=float(offered[1])))
    assert plain.balance("b").entries == 2


def test_parts_that_fit_only_one_by_one(plain):
    """One rule would take the epsilon, another the delta, and none both: said so."""
    plain.open_budget("b", G(epsilon=3.0, delta=1e-6))
    for _ in range(58):
        plain.charge("b", G(epsilon=0.05))
    with pytest.raises(Overspent, match="would fit one by one, but not together"):
        plain.charge("b", G(epsilon=0.2, delta=4e-7))
    plain.quote("b", G(epsilon=0.2))
    plain.quote("b", G(epsilon=0.0, delta=4e-7))


@pytest.mark.parametrize("delta", [1e-6, 3e-7, 1e-5, 0.1])
def test_half_of_delta_is_exactly_half(plain, delta):
    """What is set aside for own deltas can be charged to the last place, and no more."""
    plain.open_budget("whole", G(epsilon=3.0, delta=delta))
    plain.charge("whole", G(epsilon=1.0, delta=delta / 2))
    assert plain.balance("whole").delta_left == 0.0
    plain.open_budget("over", G(epsilon=3.0, delta=delta))
    with pytest.raises(Overspent):
        plain.charge("over", G(epsilon=1.0, delta=math.nextafter(delta / 2, 1.0)))


def test_delta_can_be_charged_up_to_its_limit(plain):
    """Two halves of the limit fit, and leave nothing to any charge that has a delta."""
    plain.open_budget("b", G(epsilon=1.0, delta=1e-6), method="basic")
    for _ in range(2):
        plain.charge("b", G(epsilon=0.1, delta=5e-7))
    assert plain.balance("b").delta_left == 0.0
    with pytest.raises(Overspent):
        plain.charge("b", G(epsilon=0.1, delta=1e-15))
    plain.charge("b", G(epsilon=0.1))


@pytest.mark.slow_cases("pld")
@pytest.mark.parametrize("method", ["adaptive", "pld"])
def test_the_delta_that_is_left_can_be_charged(plain, method):
    """Where the epsilons are used up, no delta is said to be left that nothing can bring."""
    plain.open_budget("b", G(epsilon=1.0, delta=1e-6), method=method)
    mechanism = hs.Gaussian(
        hs.proven_sensitivity(1.0, "l2", argument="one row in [0, 1]"), epsilon=0.4, delta=1e-8
    )
    fill(plain, "b", mechanism.guarantee, loss=mechanism.loss)
    left = plain.balance("b").delta_left
    assert left < 9e-7
    if left > 0:
        plain.quote("b", G(epsilon=0.0, delta=left))
    with pytest.raises(Overspent):
        plain.quote("b", G(epsilon=0.0, delta=2.1 * left + 1e-12))


def test_a_budget_keeps_the_sums_that_it_was_opened_with(plain):
    """Shares of delta that are written down stand, whatever another version would choose."""
    limit = G(epsilon=3.0, delta=1e-6)
    half = 5e-7 * (1 - 2.0**-50)
    filters = tuple(
        replace(each, slack=half) if each.name == "basic" else each
        for each in privacy_filters(3.0, 1e-6)
    )
    budget = Budget(
        name="b", limit=limit, method="adaptive", filters=filters, note="", opened="2026-01-01"
    )
    budget = replace(budget, digest=digest("", write_budget(budget)))
    with plain._store.writing() as connection:
        rows.insert_budget(connection, budget)
    with pytest.raises(Overspent, match="its delta is too large"):
        plain.charge("b", G(epsilon=1.0, delta=5e-7))
    plain.charge("b", G(epsilon=1.0, delta=half))
    assert plain.budgets() == (budget,)
    assert plain.entries("b")[0].digest == digest(budget.digest, write_entry(plain.entries("b")[0]))


@pytest.mark.parametrize(("size", "number"), [(0.05, 20), (0.1, 10), (0.2, 5)])
def test_a_round_number_of_equal_charges_fits(plain, size, number):
    """A float stands for its decimal: twenty charges of 0.05 fit into 1 exactly, and no more."""
    plain.open_budget("b", G(epsilon=1.0))
    assert fill(plain, "b", G(epsilon=size))[0] == number
    assert plain.balance("b").epsilon_left == 0.0


def test_the_part_that_is_used_up_is_told(plain):
    """Gamma may be full while epsilon is not: said, with what may still go on."""
    plain.open_budget("b", G(epsilon=1.25, delta=1e-6, gamma=0.05), method="basic")
    estimate = {"gamma": 0.05, "estimates": (("e", 0.05),)}
    plain.charge("b", G(epsilon=0.5, **estimate))
    plain.charge("b", G(epsilon=0.5, **estimate))
    balance = plain.balance("b")
    found = (balance.epsilon_used, balance.delta_used, balance.gamma_used, balance.used)
    assert found == (0.8, 0.0, 1.0, 1.0)
    assert "100.0 % used, by gamma (of epsilon 80.0 %)." in balance.explain()
    assert "one that is paid for brings no more gamma" in balance.explain()
    plain.charge("b", G(epsilon=0.1, delta=1e-6, **estimate))  # as said
    assert "one without may go on" in plain.balance("b").explain()
    plain.open_budget("c", G(epsilon=1.0, delta=1e-6), method="basic")
    plain.charge("c", G(epsilon=0.1, delta=1e-6))
    assert "100.0 % used, by delta (of epsilon 10.0 %)" in plain.balance("c").explain()


@pytest.mark.parametrize("method", ["basic", "adaptive", "zcdp", "pld"])
@pytest.mark.parametrize("number", [1, Fraction(1, 3), np.float32(0.1), np.int64(1)], ids=str)
def test_real_numbers_of_any_type_are_charged(plain, number, method):
    """Limits and charges may be whole numbers, fractions or NumPy's; they are kept as doubles."""
    plain.open_budget("b", G(epsilon=4, delta=Fraction(1, 10)), method=method)
    plain.charge("b", G(epsilon=number, delta=0))
    (entry,) = plain.entries("b")
    assert entry.guarantee.epsilon >= number
    assert plain.balance("b").entries == 1


def test_a_query_that_forgot_its_user_hears_of_the_column_before_a_weaker_budget(plain):
    plain.open_budget("people", G(epsilon=1.0, neighbours="add-remove", unit="user"))
    with pytest.raises(ParameterError) as refused:
        plain.charge("people", G(epsilon=0.1, neighbours="add-remove"))
    text = str(refused.value)
    assert text.index("user='COLUMN' (--user COLUMN)") < text.lower().index("open another budget")
    assert text.count("--user COLUMN") == 1  # it was said twice


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_budget_of_people_says_that_a_release_of_rows_promises_less(plain, neighbours):
    """Before another budget is named: its promise is weaker, and no part of one total."""
    plain.open_budget("people", G(epsilon=1.0, neighbours="add-remove", unit="user"))
    with pytest.raises(ParameterError) as refused:
        plain.charge("people", G(epsilon=0.1, neighbours=neighbours))
    text = str(refused.value)
    assert text.index("this release protects rows, which says less") < text.lower().index(
        "open another budget"
    )
    assert "Two budgets do not add up to one total" in text


@pytest.mark.parametrize("end", ["", "\nsalt", "\nsalt 12", "\nsalt " + "g" * 32])
def test_a_question_is_read_as_it_was_asked(ledger, end):
    """A server writes digits behind it; one that seems to have some is refused."""
    ledger.open_budget("b", G(epsilon=1.0))
    asked = f"how many{end}"
    first = ledger.charge("b", G(epsilon=0.1), key="k", question=asked)
    assert ledger.charge("b", G(epsilon=0.1), key="k", question=asked) == first
    assert ledger.entries("b")[0].question == asked
    with pytest.raises(ParameterError, match="does not end in a line"):
        ledger.charge("b", G(epsilon=0.1), question=f"{asked}\nsalt {'0a' * 16}")
    assert len(ledger.entries("b")) == 1


def test_a_key_in_use_says_what_differs(plain):
    plain.open_budget("b", G(epsilon=1.0))
    plain.charge("b", G(epsilon=0.1), key="k", question="one")
    with pytest.raises(KeyInUse, match=r"epsilon was 0\.1 and is 0\.2"):
        plain.charge("b", G(epsilon=0.2), key="k", question="one")
    with pytest.raises(
        KeyInUse,
        match=r"the price is the same.*rows_per_user.*To that of a function belong its code",
    ):
        plain.charge("b", G(epsilon=0.1), key="k", question="two")


@pytest.mark.parametrize(("unit", "distance", "scale"), [("row", 1, "0.5"), ("user", 5, "2.5")])
def test_what_is_left_buys_a_count_for_all_replaced_at_once(tmp_path, unit, distance, scale):
    """Noise for one row would lose five times as much where five are replaced."""
    limit = hs.Guarantee(epsilon=2.0, unit=unit, distance=distance)
    with hs.Ledger(f"sqlite:///{tmp_path}/l.db") as ledger:
        ledger.open_budget("b", limit)
        told = f"a count of {unit}s with Laplace noise of scale {scale})"
        assert told in ledger.balance("b").explain()
        with pytest.raises(Overspent) as refused:
            ledger.charge("b", replace(limit, epsilon=3.0))
        assert told in str(refused.value)


@pytest.mark.parametrize(
    ("method", "epsilon", "delta", "most"),
    [("renyi", 10.0, 0.4, 10.0), ("gaussian", 1.0, 1e-6, 1.0), ("pld", 1.0, 0.01, 0.4)],
)
def test_a_full_budget_has_spent_no_more_than_its_limit(tmp_path, method, epsilon, delta, most):
    """The epsilon of a sum is rounded up, and the sum keeps the limit."""
    with hs.Ledger(f"sqlite:///{tmp_path}/l.db") as ledger:
        ledger.open_budget("b", hs.Guarantee(epsilon=epsilon, delta=delta), method=method)
        for _ in range(6):
            if (left := ledger.balance("b").epsilon_left) > 1e-6:
                ledger.charge("b", hs.Guarantee(epsilon=min(most, left)))
        balance = ledger.balance("b")
        assert 0.99 * epsilon < balance.spent.epsilon <= epsilon
        assert balance.spent.delta <= delta
        assert "not kept" not in balance.explain()


@pytest.mark.parametrize("method", ["basic", "adaptive", "zcdp", "pld"])
@pytest.mark.parametrize("most", [100.0, math.inf])
def test_a_balance_tells_of_what_was_charged_beyond_the_limit(tmp_path, monkeypatch, method, most):
    """A program of somebody else may write such an entry; its epsilon was told as the limit."""
    with hs.Ledger(f"sqlite:///{tmp_path}/l.db") as ledger:
        ledger.open_budget("b", hs.Guarantee(epsilon=2.0, delta=1e-6), method=method)
        with monkeypatch.context() as patch:
            patch.setattr("hushed.ledger._running.RunningBalance.takes", lambda *_: True)
            ledger.charge("b", hs.Guarantee(epsilon=most))
        balance = ledger.balance("b")
        assert balance.spent.epsilon >= 0.99 * most  # by pld at the delta of the limit
        assert balance.epsilon_left == 0
        assert "The limit is not kept" in balance.explain()
