"""A law is charged instead of its guarantee only if it surely keeps it, of however many parts."""

import contextlib
import math
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import hushed as hs
from hushed import privacy_loss
from hushed.cli import app
from hushed.errors import DamagedLedger, Overspent, ParameterError
from hushed.ledger._entries import digest, write_budget, write_entry

G = hs.Guarantee


@pytest.fixture
def book(tmp_path):
    with hs.Ledger(f"sqlite:///{tmp_path}/budget.db") as found:
        found.open_budget("b", G(epsilon=100.0, delta=1e-3), method="basic")
        yield found


LAPLACE = privacy_loss.laplace(0.5)
OTHER = {
    "ten releases, one paid for": (G(epsilon=0.5), LAPLACE.compose(10)),
    "fifty for next to nothing": (G(epsilon=0.001), privacy_loss.laplace(5).compose(10)),
    "two kinds": (
        G(epsilon=1.0, delta=1e-9),
        privacy_loss.compose([LAPLACE, privacy_loss.gaussian(0.5)]),
    ),
    "an infinite part": (
        G(epsilon=50.0),
        privacy_loss.compose([LAPLACE, privacy_loss.approximate(0.1, 1e-6)]),
    ),
    "just too small an epsilon": (
        G(epsilon=0.999 * LAPLACE.compose(100).epsilon(1e-6), delta=1e-6),
        LAPLACE.compose(100),
    ),
    "just too small a delta": (
        G(epsilon=LAPLACE.compose(100).epsilon(1e-6), delta=0.99e-6),
        LAPLACE.compose(100),
    ),
    "far too small a delta among tiny ones": (
        G(epsilon=1.0, delta=4e-21),
        privacy_loss.gaussian(0.11998842199829451),  # delta 9e-19 at epsilon 1
    ),
    "one too many": (G(epsilon=5.0), LAPLACE.compose(11)),
    "many parts": (
        G(epsilon=1.0),
        privacy_loss.compose([privacy_loss.laplace(0.1 + i / 1000) for i in range(20)]),
    ),
}


@pytest.mark.parametrize("name", OTHER)
def test_a_composed_law_of_another_release_is_refused(book, name):
    """What the parts keep together is what must be promised."""
    promise, law = OTHER[name]
    for verb in (book.charge, book.quote):
        with pytest.raises(ParameterError, match="not of the same release"):
            verb("b", promise, loss=law)
    assert book.balance("b").entries == 0


@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-4])
@pytest.mark.parametrize(
    "law",
    [
        LAPLACE.compose(10),
        privacy_loss.laplace(0.1).compose(3),
        privacy_loss.laplace(1e-3).compose(20_000),
        privacy_loss.compose([LAPLACE, privacy_loss.gaussian(0.5)]),
        privacy_loss.compose([privacy_loss.laplace(0.1 + i / 1000) for i in range(20)]),
        privacy_loss.compose([privacy_loss.randomised_response(0.3, 4), LAPLACE]),
    ],
    ids=str,
)
def test_the_promise_of_a_composed_law_is_taken(book, law, delta):
    """Found by this library as the smallest epsilon, or by adding up: both are explained."""
    level = law.epsilon(delta)
    if math.isfinite(level):
        book.charge("b", G(epsilon=level, delta=delta), loss=law)
        added = sum(count * family.supremum for family, count in law.parts)
        if math.isfinite(added) and added < 100 - level:
            book.charge("b", G(epsilon=added), loss=law)
    assert book.balance("b").entries >= (1 if math.isfinite(level) else 0)


SHORT = {
    "one part of ten": (G(epsilon=5.0), LAPLACE),
    "one Gaussian of ten": (
        G(epsilon=privacy_loss.gaussian(0.3).compose(10).epsilon(1e-6), delta=1e-6),
        privacy_loss.gaussian(0.3),
    ),
    "a little less": (G(epsilon=0.501), LAPLACE),
    "without its delta": (G(epsilon=0.5, delta=1e-2), LAPLACE),
}


@pytest.mark.slow_cases("one Gaussian of ten-pld")
@pytest.mark.parametrize("method", ["adaptive", "basic", "zcdp", "renyi", "gaussian", "pld"])
@pytest.mark.parametrize("name", SHORT)
def test_a_law_that_keeps_less_than_its_promise_pays_for_nothing(tmp_path, name, method):
    """The promise is charged as if no law had been told: the larger of both."""
    promise, law = SHORT[name]
    with hs.Ledger(f"sqlite:///{tmp_path}/budget.db") as book:
        for budget, loss in (("told", law), ("alone", None)):
            book.open_budget(budget, G(epsilon=99.0, delta=0.1), method=method)
            previewed = book.quote(budget, promise, loss=loss)
            entry = book.charge(budget, promise, loss=loss, key="k", question="q")
            assert book.charge(budget, promise, loss=loss, key="k", question="q") == entry
            assert entry.law is None
            assert book.balance(budget).spent == previewed.spent
        assert book.balance("told").spent == book.balance("alone").spent
    own = G(epsilon=law.epsilon(promise.delta), delta=promise.delta)
    with hs.Ledger(f"sqlite:///{tmp_path}/other.db") as book:
        book.open_budget("b", G(epsilon=9.0, delta=0.1), method=method)
        assert book.charge("b", own, loss=law).law is not None


def test_the_slip_on_the_command_line(tmp_path, monkeypatch):
    """A count behind the law, a promise for one release: refused, and nothing is charged."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        return CliRunner().invoke(app, ["ledger", *arguments])

    run("open", "sqlite:///b.db", "b", "--epsilon", "1")
    for level, law in (("0.001", "laplace:5x10"), ("0.5", "laplace:0.5x10")):
        refused = run("charge", "sqlite:///b.db", "b", "--epsilon", level, "--loss", law)
        assert refused.exit_code != 0
        assert "not of the same release" in refused.stderr
    assert run("charge", "sqlite:///b.db", "b", "--epsilon", "0.5", "--loss", "laplace:0.05x10")
    with hs.Ledger("sqlite:///b.db") as book:
        assert book.balance("b").entries == 1


UNBOUNDED = {
    "alone": (privacy_loss.gaussian(0.1), 9.0),
    "with another": (privacy_loss.compose([privacy_loss.gaussian(0.1), LAPLACE]), 9.0),
    "with many": (privacy_loss.compose([privacy_loss.gaussian(0.001), LAPLACE.compose(50)]), 30.0),
}


@pytest.mark.parametrize("name", UNBOUNDED)
@pytest.mark.filterwarnings("error")
def test_a_law_without_a_largest_loss_has_no_delta_of_0(book, name):
    """However small its delta is: below all doubles it is the smallest double; nothing warns."""
    law, epsilon = UNBOUNDED[name]
    with np.errstate(all="raise", under="ignore"):
        assert law.delta(epsilon) == 5e-324
    with pytest.raises(ParameterError, match="not of the same release"):
        book.charge("b", G(epsilon=epsilon), loss=law)
    assert book.charge("b", G(epsilon=epsilon, delta=1e-300), loss=law).number == 1


def test_an_infinite_loss_is_not_all_of_delta_below_the_largest_sum():
    """What else is lost beyond epsilon comes on top, even if no double tells it."""
    law = privacy_loss.compose([privacy_loss.approximate(0.5, 1e-6), privacy_loss.gaussian(0.001)])
    assert law.delta(30.0) > 1e-6
    assert law.delta(30.0) == pytest.approx(1e-6, rel=1e-12)


def write_by_hand(path, first, **forged):
    """Put an entry behind the first one, as whoever may write the file can."""
    body = write_entry(replace(first, number=2, **forged))
    link = digest(first.digest, body)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as hand:
        hand.execute("INSERT INTO hushed_entries VALUES ('b', 2, ?, ?)", (body, link))
        hand.execute("UPDATE hushed_heads SET entries = 2, digest = ?", (link,))


def many_parts(number, level):
    """Describe a law of so many different parts that add up to a level."""
    sizes = [level / number + (2 * i + 1 - number) * 1e-9 for i in range(number)]
    return [{"law": "laplace", "bound": size.hex(), "count": 1} for size in sizes]


FORGED = {"no law": None, "64 parts": many_parts(64, 0.89), "65 parts": many_parts(65, 0.89)}


@pytest.mark.slow_cases("no law-pld", "64 parts-pld")
@pytest.mark.parametrize("method", ["adaptive", "basic", "zcdp", "renyi", "gaussian", "pld"])
@pytest.mark.parametrize("law", FORGED)
def test_an_entry_that_states_too_small_a_cost_is_counted_by_its_promise(tmp_path, law, method):
    """Written by hand, in one process and in the next: nobody gets more out of the budget."""
    path = tmp_path / "l.db"
    with hs.Ledger(f"sqlite:///{path}") as honest:
        honest.open_budget("b", G(epsilon=1.0, delta=1e-6), method=method)
        first = honest.charge("b", G(epsilon=0.1))
        free = tuple(replace(each, amount=0.0) for each in first.costs)
        write_by_hand(path, first, guarantee=G(epsilon=0.9), costs=free, law=FORGED[law])
        with hs.Ledger(f"sqlite:///{path}") as later:
            for book in (honest, later):
                assert book.balance("b").used > 0.3
                with pytest.raises(Overspent):
                    book.charge("b", G(epsilon=0.95))
                with pytest.raises(DamagedLedger, match="smaller cost"):
                    book.verify("b")


NO_COSTS = {
    "none": lambda costs: (),
    "one more": lambda costs: (*costs, costs[0]),
    "an infinite delta": lambda costs: (replace(costs[0], delta=math.inf), *costs[1:]),
    "less than nothing": lambda costs: (replace(costs[0], delta=-1.0), *costs[1:]),
}


@pytest.mark.parametrize("odd", NO_COSTS)
def test_an_entry_whose_costs_are_none_is_refused_in_words(tmp_path, odd):
    """Written by hand: as damage, and by no error that nobody has foreseen."""
    path = tmp_path / "l.db"
    with hs.Ledger(f"sqlite:///{path}") as book:
        book.open_budget("b", G(epsilon=1.0, delta=1e-6))
        first = book.charge("b", G(epsilon=0.1))
        write_by_hand(path, first, costs=NO_COSTS[odd](first.costs))
        for ask in (
            book.balance,
            book.verify,
            book.history,
            lambda name: book.charge(name, G(epsilon=0.1)),
        ):
            with pytest.raises(DamagedLedger, match="cost"):
                ask("b")


NO_RULE = {
    "none": lambda rule: (),
    "an infinite capacity": lambda rule: (replace(rule[0], capacity=math.inf), *rule[1:]),
    "no number": lambda rule: (*rule[:-1], replace(rule[-1], slack=math.nan)),
    "an infinite share": lambda rule: (*rule[:-1], replace(rule[-1], conversion=math.inf)),
    "below 0": lambda rule: (replace(rule[0], order=-1.0), *rule[1:]),
}


@pytest.mark.parametrize("odd", NO_RULE)
def test_a_budget_whose_rule_is_none_is_refused_in_words(tmp_path, odd):
    """As damage, and by no error that nobody has foreseen; other budgets are charged."""
    path = tmp_path / "l.db"
    with hs.Ledger(f"sqlite:///{path}") as book:
        fine = book.open_budget("fine", G(epsilon=1.0, delta=1e-6))
    body = write_budget(replace(fine, name="b", filters=NO_RULE[odd](fine.filters)))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as hand:
        link = digest("", body)
        hand.execute("INSERT INTO hushed_budgets VALUES ('b', ?, ?)", (body, link))
        hand.execute("INSERT INTO hushed_heads VALUES ('b', 0, ?)", (link,))
    with hs.Ledger(f"sqlite:///{path}") as book:
        for ask in (book.balance, book.verify, lambda name: book.charge(name, G(epsilon=0.1))):
            with pytest.raises(DamagedLedger, match="stops no spending"):
                ask("b")
        assert book.charge("fine", G(epsilon=0.1)).number == 1


@pytest.mark.slow_cases("pld")
@pytest.mark.parametrize("method", ["basic", "zcdp", "pld"])
def test_a_law_of_too_many_parts_is_charged_by_its_promise(tmp_path, method):
    """Whoever wrote one by hand would let everybody else wait for minutes."""
    parts = [privacy_loss.laplace(0.001 + i / 1e6) for i in range(65)]
    for law, kept in (
        (privacy_loss.compose(parts[:64]), True),
        (privacy_loss.compose(parts), False),
    ):
        with hs.Ledger(f"sqlite:///{tmp_path}/{kept}.db") as book:
            book.open_budget("b", G(epsilon=1.0, delta=1e-6), method=method)
            promise = G(epsilon=law.supremum)
            previewed = book.quote("b", promise, loss=law)
            entry = book.charge("b", promise, loss=law, key="k", question="q")
            assert (entry.law is not None) == kept
            assert book.charge("b", promise, loss=law, key="k", question="q") == entry
            assert book.balance("b").spent == previewed.spent
            book.verify("b")
            book.open_budget("alone", G(epsilon=1.0, delta=1e-6), method=method)
            assert kept or book.charge("alone", promise).costs == entry.costs


@pytest.mark.parametrize(
    "at", ["2026", "....", "", "2026-11-29T20:57:48.0", "9999-12-31T23:59:59-23:59"]
)
def test_a_time_that_somebody_wrote_by_hand_stops_no_report(book, tmp_path, at):
    """An analyst of a server may append an entry of any time: others draw and certify as before."""
    first = book.charge("b", G(epsilon=0.5))
    forged = replace(first, number=2, at=at)
    body = write_entry(forged)
    link = digest(first.digest, body)
    with contextlib.closing(sqlite3.connect(tmp_path / "budget.db")) as file:
        file.execute("INSERT INTO hushed_entries VALUES ('b', 2, ?, ?)", (body, link))
        file.execute("UPDATE hushed_heads SET entries = 2, digest = ?", (link,))
        file.commit()
    assert book.balance("b").spent.epsilon == 1.0
    assert "2 charges" in str(hs.plots.budget_figure(book, "b").to_dict())
    assert "<svg" in hs.plots.certificate_page(hs.certify_budget(book, "b"))
