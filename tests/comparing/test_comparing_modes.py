"""A mode compared: the routes that choose by the numbers of rows, with exact laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

import hushed as hs
from hushed.cli._next_command import Compared, next_command
from hushed.cli._records import Source
from hushed.cli._statistic_options import Described
from hushed.comparing._mode_routes import _measure, chances_of_top, chances_of_winner
from hushed.comparing._simulated import Table

VOTES = ["a"] * 300 + ["b"] * 100
SAME = hs.populations.Simulator(lambda _, n: VOTES[:n])


def test_each_route_releases_as_it_is_written():
    """Under both changes of a table, with the promise that was stated."""
    for rows in (400, None):
        s = hs.statistics.mode(["a", "b"], rows=rows)
        found = {each.name: each for each in hs.compare(s, SAME, rows=400, trials=2).routes}
        for name in ("top k", "noisy max"):
            release = hs.release(s, VOTES, eval(found[name].how, {"hs": hs, "s": s}))
            assert release.chosen == ("a",)
            assert release.certificate.guarantee == found[name].guarantee
        assert found["table query"].guarantee.neighbours == "add-remove"


def test_inverse_sensitivity_has_the_chances_of_its_mechanism():
    """Those that it tells of a public table, by rows that would have to change."""
    drawn = np.array(["a", "b", "c"])[np.random.default_rng(4).integers(0, 3, 40)]
    for rows in (40, None):
        s = hs.statistics.mode(["a", "b", "c"], rows=rows)
        made = hs.InverseSensitivity(s, epsilon=0.7)
        found = _measure(s, made, Table(drawn, np.random.default_rng(0)))
        lengths = s.lengths(drawn, s.categories)
        assert found == pytest.approx([*lengths, *made.chances_on(drawn)])


def test_the_winner_has_its_exact_chances():
    """Of two categories the closed form; of four the integral; the top is e times less likely."""
    counts = np.array([20.0, 17, 17, 3])
    law = stats.laplace(scale=2.0)

    def density(x, place):
        others = np.delete(counts, place)
        return law.pdf(x - counts[place]) * np.prod(law.cdf(x - others))

    wanted = [
        integrate.quad(density, -60, 100, (place,), points=[3, 17, 20], limit=200)[0]
        for place in range(4)
    ]
    assert chances_of_winner(2.0, counts) == pytest.approx(wanted, rel=5e-4)
    for lead in (0.0, 1.0, 9.0, 60.0):
        u = lead / 2
        wanted = np.exp(-u) * (u + 2) / 4
        assert chances_of_winner(2.0, np.array([5.0 - lead, 5]))[0] == pytest.approx(wanted, 5e-4)
        odds = chances_of_top(2.0, np.array([5.0 - lead, 5]))
        assert odds[0] / odds[1] == pytest.approx(np.exp(-u))
    assert chances_of_winner(2.0, np.array([0.0, 1e9])).tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("top k", "statistic mode PRIVATE.csv {} --column vote --mechanism top-k --k 1"),
        ("noisy max", "statistic mode PRIVATE.csv {} --column vote --mechanism noisy-max"),
        ("table query", "query PRIVATE.csv --type vote=string --by vote --keys a,b --top-k 1"),
    ],
)
def test_a_command_releases_each(way, words):
    """It is the next one where the route is recommended."""
    described = Described(category=["a", "b"], column="vote")
    told = Compared(asked="mode", public=Source(population="f"), described=described, unit="row")
    found = hs.compare(hs.statistics.mode(["a", "b"], rows=400), SAME, trials=2)
    wanted = f"hushed {words.format('--category a --category b')} --epsilon 1"
    assert next_command(told, replace(found, recommended=way)) == wanted
    for keys in (["1", "2"], ["a ", "b"]):  # the type of numbers is not known; blanks are refused
        other = replace(told, described=Described(category=keys, column="vote"))
        command = next_command(other, replace(found, recommended=way))
        assert (command == "") == (way == "table query")
