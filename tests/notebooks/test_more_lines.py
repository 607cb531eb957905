"""Records that a person meets in passing: one line, words and a card; no address, no long lists."""

import re

import numpy as np
import pytest

import hushed as hs
from hushed import zoo

MOVED = hs.proven_sensitivity(1.0, argument="by assumption")


def likelihood(row, candidates):
    """Score candidates by their distance to a row."""
    return -np.abs(row - candidates)


def draw(rng, count):
    """Draw numbers."""
    return rng.uniform(size=count)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """One of each."""
    median = hs.statistics.median(rows=50, low=0, high=1)
    public = hs.populations.Simulator(draw)
    compared = hs.compare(median, public, epsilon=1.0, trials=20)
    with hs.Ledger(f"sqlite:///{tmp_path_factory.mktemp('lines') / 'b.db'}") as book:
        book.open_budget("b", hs.Guarantee(epsilon=9.0))
        hs.release(np.sum, np.ones(3), hs.Laplace(MOVED, epsilon=1.0), book, budget="b")
        entry = next(iter(book.entries("b")))
    return {
        "blocks": hs.Blocks(np.linspace(0, 100, 1001).tolist(), epsilon=1.0),
        "votes": hs.Blocks(["a", "b", "c"], aggregate="votes", epsilon=1.0),
        "mean of blocks": hs.Blocks(aggregate="mean", low=0, high=1, epsilon=1.0, blocks=40),
        "posterior": hs.Posterior(likelihood, np.arange(500.0), epsilon=1.0, clip=3.0),
        "sensitivity": MOVED,
        "route": compared.routes[0],
        "left out": compared.left_out[0],
        "entry": entry,
        "loss": hs.privacy_loss.compose([hs.privacy_loss.laplace(0.1)] * 5),
        "normal loss": hs.privacy_loss.gaussian(0.3),
        "discrete loss": hs.privacy_loss.pair([0.2, 0.8], [0.3, 0.7]),
        "specimen": zoo.specimens()[0],
    }


KINDS = (
    *("blocks", "votes", "mean of blocks", "posterior", "sensitivity", "route", "left out"),
    *("entry", "loss", "normal loss", "discrete loss", "specimen"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_a_line_words_and_a_card(kind, shown):
    """What stands for it in a list, in a terminal and in a notebook."""
    value = shown[kind]
    line = repr(value)
    assert line.startswith("<")
    assert len(line) <= 242
    for text in (line, str(value), value._repr_html_()):
        assert " at 0x" not in text
        assert "Guarantee(" not in text
        assert len(text) < 4000


def test_a_step_shows_no_address():
    """It is called by its name."""
    assert repr(hs.transformations.clip(0, 1)) == "Step(name='clip')"


def test_a_sensitivity_says_its_gamma_in_its_line():
    """Without which the number means little."""
    assert "gamma 0" in repr(MOVED)


def test_cards_show_few_digits_and_plain_times(shown):
    """A value had sixteen digits, and a time those of a microsecond."""
    one = hs.release(np.sum, np.full(9, 0.2), hs.Laplace(MOVED, epsilon=1.0))
    assert re.search(r"<td>-?\d+(\.\d{1,9})?(e-\d+)?</td>", one._repr_html_())
    assert str(one.value) not in one._repr_html_().partition("<details>")[0]
    assert re.search(r"<td>\d{4}-\d\d-\d\d \d\d:\d\d UTC</td>", shown["entry"]._repr_html_())
