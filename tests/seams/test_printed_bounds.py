"""Ranges, bounds and remedies are printed as they are, or rounded to the side that holds."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import hushed as hs
from hushed import transformations as t
from hushed._web.answers import _cells
from hushed._web.svg import Bar
from hushed.blocks import _simulation
from hushed.cli import app
from hushed.client._questions import ServedQuote
from hushed.comparing import _recommending
from hushed.errors import ParameterError, SpaceMismatch
from hushed.server._pages._asking import _begin
from hushed.server._pages._house import _environment
from hushed.spaces import SYMMETRIC, Cell, Column, Space

END = 1234567.8  # six digits of it are more than it is


def test_a_certificate_names_the_range_that_rows_are_moved_into():
    """And no other one: it is what the bound is proven for."""
    mean = hs.statistics.mean(rows=100, low=0, high=END)
    assert hs.global_sensitivity(mean).argument.endswith("moved into [0, 1234567.8]")
    law = hs.posterior.normal_mean([0.0, 1e6], std=1000.4567891, low=0, high=END, epsilon=1.0)
    named = "normal mean of standard deviation 1000.4567891, rows moved into [0, 1234567.8]"
    assert named in law.sensitivity.argument


def test_a_comparison_names_the_range_that_was_asked():
    """The title is what is quoted."""
    median = hs.statistics.median(rows=50, low=0, high=END)
    population = hs.populations.Uniform(low=0, high=END)
    made = hs.compare(median, population, epsilon=1.0, trials=10)
    assert made.asked == "median of 50 rows in [0, 1234567.8]"


def test_the_step_that_is_named_as_a_remedy_is_one():
    """A range that is nearly right is refused again."""
    some = Space(domain=Column(cell=Cell()), metric=SYMMETRIC) >> t.impute(0.0)
    bounded = Space(domain=Column(cell=Cell(low=0, high=END)), metric=SYMMETRIC)
    with pytest.raises(SpaceMismatch, match=r"put clip\(0, 1234567.8\) between") as refused:
        some >> (bounded >> t.sum_of())
    assert "float in [0, 1234567.8]" in str(refused.value)
    assert some >> t.clip(0, END) >> (bounded >> t.sum_of())


@pytest.mark.parametrize("gamma", [0.05, 0.03, 0.07, 0.011])
def test_a_divergence_that_is_called_tolerated_is_taken(gamma):
    """It was rounded to the nearest, and refused again with the same words."""
    uniform = hs.populations.Uniform(low=0, high=1)
    known = hs.sample_sensitivity(np.mean, uniform, rows=100, gamma=gamma, symmetric=True)
    with pytest.raises(ParameterError, match="tolerates tau below") as refused:
        known.shifted(1.0)
    tau = float(str(refused.value).rpartition(" ")[2])
    assert known.shifted(tau * (1 - 1e-9)).gamma < 1


@pytest.mark.slow
def test_blocks_without_a_prior_speak_of_none():
    """With a large beta few blocks are enough, and the draw may be anywhere."""
    rows = np.linspace(0, 1, 60)
    plain = hs.Blocks([0.0, 0.5, 1.0], epsilon=1.0, beta=0.6)
    words = hs.release(np.mean, rows, plain).certificate.explain()
    assert "it lies in the range, and no more is known. How far" in words
    guessed = hs.Blocks([0.0, 0.5, 1.0], epsilon=1.0, beta=0.6, prior=[1, 1, 1])
    words = hs.release(np.mean, rows, guessed).certificate.explain()
    assert "no more is known, if the prior is wrong. How far" in words


def test_a_refusal_of_few_blocks_states_no_chance_that_is_smaller():
    """12 blocks for two candidates say nothing with a chance of 0.047, though 15 are asked for."""
    drawn = hs.Blocks([0, 1], epsilon=1.0, blocks=12, beta=0.1).aggregation
    assert drawn.chances(np.zeros(12))[1] < 0.05
    with pytest.raises(ParameterError, match=r"could be likelier than 0\.05, which takes 15"):
        hs.Blocks([0, 1], epsilon=1.0, blocks=12)


def test_calls_that_failed_are_not_none():
    """One of 3,100 was 0.0 %."""
    told = dict.fromkeys(("error_50", "error_95", "error_of_blocks"), 0.1)
    counts = dict.fromkeys(("trials", "rows", "blocks"), 100)
    made = _simulation.Simulation(**told, **counts, failed=1 / 3100, calls=3100, isolated=True)
    assert "; 0.0323 % of the calls failed" in str(made)


def test_an_error_of_a_served_function_is_not_printed_smaller():
    """Nor is more left of a share than there is."""
    bound = _environment().filters["bound"]
    assert float(bound(12.34449)) >= 12.34449
    left = {"epsilon": 0.12345678, "delta": 0.0}
    quote = ServedQuote(
        epsilon=1.0, delta=0.0, errors={}, words="", fits=True, left=left, left_after=None
    )
    assert float(re.search(r"epsilon (\S+) is left", str(quote))[1]) <= left["epsilon"]


def test_a_form_begins_with_an_epsilon_that_may_be_asked():
    """It was rounded to the nearest, above the most that a data set allows."""
    told = SimpleNamespace(max_epsilon=0.0123456789, user=None)
    assert 0 < float(_begin(told)["epsilon"]) <= told.max_epsilon


def test_ends_of_error_bars_below_a_picture_are_not_inside_of_it():
    """Six digits of a number of seven are many away."""
    _, low, high = _cells(Bar(name="all", value=1234570.5, low=1234567.6, high=1234573.4))
    assert float(low) <= 1234567.6
    assert float(high) >= 1234573.4


def test_one_line_of_a_search_prints_no_promise_smaller():
    """And the threshold as it is."""
    shown = repr(hs.AboveThreshold(END, epsilon=1.0000004, sensitivity=1.0000004))
    assert "threshold=1234567.8, epsilon=1.00001, sensitivity=1.00001" in shown


def test_a_route_that_is_not_recommended_is_below_the_ratio_that_is_named():
    """1.996 times is not 2 times, from which on a weaker promise is recommended."""
    mine, its = (
        SimpleNamespace(name=name, price=price, promise="all")
        for name, price in (("a", 1.996), ("b", 1))
    )
    asked = SimpleNamespace(error=None, worth=2.0, labels=False, price=lambda route: route.price)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_recommending, "rank_promise", lambda *_: 0)
        told = _recommending._say_other(its, mine, asked)
    assert "1.99 times smaller. It would be recommended only if the error is more than 2" in told


def test_a_budget_of_which_something_is_left_is_not_used_up(tmp_path):
    """The words of its picture said 100 %."""
    with hs.Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
        ledger.open_budget("b", hs.Guarantee(epsilon=1.0))
        ledger.charge("b", hs.Guarantee(epsilon=0.996))
        pictures = ledger.balance("b")._card().pictures + ledger._card().pictures
    assert len(pictures) == 2
    assert all("99.6 % of the budget is used" in each for each in pictures)


def test_an_event_that_was_missed_once_did_not_always_happen():
    """Counts are told, and no share that is rounded to all of them."""

    def nearly_always(data, rng, size):
        return data[0] * (rng.random(size) < 0.9998)

    claim = hs.Guarantee(epsilon=0.5)
    pairs = [([1.0], [0.0])]
    report = hs.audit(nearly_always, pairs, claim=claim, samples=20_000, batch=True, workers=1)
    seen = report.witness.counts
    told = hs.certify(report).explain()
    assert f"that happened in {seen.hits:,} of {seen.samples:,} runs on one input" in told
    assert f"and in {seen.other_hits:,} of {seen.other_samples:,} on its neighbour" in told


def test_what_a_level_costs_is_not_nothing():
    """Less than half a cent was 0.00, in the table and in the warning below it."""
    asked = ["--people", "1", "--per-person", "0.0049", "--epsilon0", "10"]
    result = CliRunner().invoke(app, ["cost", *asked])
    told = result.stdout + result.stderr
    assert "Worst-case cost at epsilon0 = 10: 0.01" in told
    assert "weighted by that probability the cost is 0.01 of 0.01" in " ".join(told.split())
