"""A budget of a wrong limit is retired by an entry of its chain, if nothing was charged to it."""

import multiprocessing

import pytest
from typer.testing import CliRunner

import hushed as hs
from hushed.cli import app
from hushed.errors import NotFound, Overspent, ParameterError
from hushed.ledger._running import RETIRED

PART = hs.Guarantee(epsilon=0.1)
METHODS = {
    "adaptive": {},
    "basic": {},
    "zcdp": {"limit": {"delta": 1e-6}},
    "renyi": {"limit": {"delta": 1e-6}, "order": 8.0},
    "gaussian": {"limit": {"delta": 1e-6}},
    "pld": {"limit": {"delta": 1e-6}},
}


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'l.db'}"


@pytest.mark.parametrize("method", METHODS)
def test_it_takes_no_charge_and_the_chain_goes_on(url, method):
    """By every rule; in another handle, and after opening anew, too."""
    terms = dict(METHODS[method])
    limit = hs.Guarantee(epsilon=3.0, gamma=0.1, **terms.pop("limit", {}))
    with hs.Ledger(url) as book, hs.Ledger(url) as other:
        book.open_budget("b", limit, method=method, **terms)
        assert other.balance("b").epsilon_left > 0  # what it remembers is of before
        entry = book.retire_budget("b", "the limit was wrong")
        assert (entry.number, entry.guarantee.epsilon, entry.note) == (1, 0, "the limit was wrong")
        for handle in (book, other):
            with pytest.raises(Overspent, match="retired"):
                handle.charge("b", PART)
            with pytest.raises(Overspent, match="retired"):
                handle.quote("b", PART)
            found = handle.balance("b")
            assert found.retired
            assert (found.epsilon_left, found.delta_left, found.gamma_left) == (0, 0, 0)
            assert found.spent.epsilon == 0 or method == "pld" or found.spent.delta > 0
            assert "is retired" in found.explain()
        assert len(book.entries("b")) == 1
        head = book.verify("b")
    with hs.Ledger(url) as again:
        assert again.verify("b", head) == head
        with pytest.raises(Overspent, match="retired"):
            again.charge("b", PART)
        with pytest.raises(ParameterError, match="already"):
            again.retire_budget("b")
        with pytest.raises(ParameterError, match="a limit is not changed"):
            again.open_budget("b", limit)


@pytest.mark.parametrize("said", [RETIRED, "another question"])
def test_the_words_alone_end_a_budget_and_a_charge_of_nothing_does_not(url, said):
    """Entries that were written before they stated a cost without end are still read."""
    with hs.Ledger(url) as book:
        book.open_budget("b", hs.Guarantee(epsilon=1.0))
        book.charge("b", hs.Guarantee(epsilon=0.0), question=said)
        assert book.balance("b").retired == (said == RETIRED)


def test_what_was_charged_stays_open(url):
    """A handle that remembers an empty budget learns of the charge under the lock."""
    with hs.Ledger(url) as book, hs.Ledger(url) as other:
        book.open_budget("b", hs.Guarantee(epsilon=1.0))
        assert book.balance("b").entries == 0
        other.charge("b", PART)
        with pytest.raises(ParameterError, match="has 1 charge, and stays as it is"):
            book.retire_budget("b")
        book.charge("b", PART)
        assert book.balance("b").entries == 2
        with pytest.raises(NotFound):
            book.retire_budget("nobody")


def spend(url, start, found):
    """Charge until it is refused."""
    with hs.Ledger(url) as book:
        book.balance("b")
        start.wait()
        try:
            found.put(book.charge("b", hs.Guarantee(epsilon=0.1)).number)
        except Overspent:
            found.put(0)


@pytest.mark.slow
def test_either_the_charge_is_first_or_it_is_refused(url):
    """Never both: another process charges at the same moment."""
    context = multiprocessing.get_context("spawn")
    start, found = context.Barrier(3), context.Queue()
    with hs.Ledger(url) as book:
        book.open_budget("b", hs.Guarantee(epsilon=1.0))
        workers = [context.Process(target=spend, args=(url, start, found)) for _ in range(2)]
        for each in workers:
            each.start()
        start.wait()
        try:
            book.retire_budget("b")
            retired = True
        except ParameterError:
            retired = False
        numbers = sorted(found.get(timeout=60) for _ in workers)
        for each in workers:
            each.join()
        assert numbers == ([0, 0] if retired else [1, 2])
        assert len(book.entries("b")) == (1 if retired else 2)
        assert book.verify("b")


def test_the_command(url):
    run = CliRunner().invoke
    assert run(app, ["ledger", "open", url, "b", "--epsilon", "30"]).exit_code == 0
    ended = run(app, ["ledger", "retire", url, "b", "--note", "3 was meant"])
    assert ended.exit_code == 0, ended.stderr
    assert "The budget is retired" in ended.stdout
    assert "3 was meant" in run(app, ["ledger", "show", url]).stdout
    refused = run(app, ["ledger", "charge", url, "b", "--epsilon", "1"])
    assert refused.exit_code == 1
    assert "is retired" in refused.stderr
    again = run(app, ["ledger", "open", url, "b", "--epsilon", "3"])
    assert again.exit_code == 2
    assert "hushed ledger retire" in again.stderr


def test_the_history_says_that_it_was_retired_and_counts_no_charge(url):
    """In the ledger and in the report of the budget, which said "after charge 1"."""
    with hs.Ledger(url) as book:
        book.open_budget("b", hs.Guarantee(epsilon=3.0))
        book.retire_budget("b", "the limit was wrong")
        report = hs.certify_budget(book, "b").subject
        for history in (book.history("b"), report.history):
            opened, ended = history
            assert "when it was opened: 0 %" in str(opened)
            assert "when it was retired: the limit was wrong: 0 %" in str(ended)
            assert "after charge" not in str(ended)
            assert ended.number == 0
