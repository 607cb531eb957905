"""Whole outputs that are rare among numbers: events of their own, told in words."""

import numpy as np
import pytest

from hushed.auditing import Raised, audit
from hushed.auditing._naming import write_number
from hushed.auditing._outputs import choose_encoder
from hushed.auditing._scores.histogram import _describe_bits, _describe_intervals
from hushed.guarantee import Guarantee

ONE = Guarantee(epsilon=1.0)
PAIR = [([0.0], [1.0])]


def judged(mechanism, samples=20_000, **options):
    return audit(mechanism, PAIR, claim=ONE, samples=samples, workers=1, **options)


def seldom(outcome, share=0.02):
    """A grid answer with noise, and seldom, on the neighbour alone, something else."""

    def mechanism(rows, rng):
        if rows[0] and rng.random() < share:
            if isinstance(outcome, Exception):
                raise outcome
            return outcome
        return round((rows[0] + rng.laplace()) * 1024) / 1024

    return mechanism


@pytest.mark.slow_cases(
    "nan-the output is NaN-True",
    "outcome0-the run failed with ValueError-True",
    "nan-the output is NaN-False",
    "outcome0-the run failed with ValueError-False",
    "0-the output is 0-False",
    "None-the output is None-False",
)
@pytest.mark.parametrize("bits", [True, False])
@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (ValueError("rare"), "the run failed with ValueError"),
        (None, "the output is None"),
        (float("nan"), "the output is NaN"),
        (0, "the output is 0"),
    ],
)
def test_a_rare_outcome_is_the_event(bits, outcome, told):
    """It was told as a sum of log ratios, and with bits as a low bit, mixed with zeros."""
    found = judged(seldom(outcome, 0.01), bits=bits)
    assert found.verdict == "violated"
    assert found.witness.event == told
    assert "low bits" not in found.explain()


def test_an_exact_answer_among_continuous_ones_is_found():
    """In one of a thousand runs; no quantile of the others is near it."""

    def leaks(rows, rng, size):
        return np.where(rng.random(size) < 1e-3, rows[0], rows[0] + rng.laplace(size=size))

    for seed in range(3):
        found = judged(leaks, 200_000, batch=True, bits=False, seed=seed)
        assert found.verdict == "violated"
        assert found.witness.event in ("the output is 0", "the output is 1")


@pytest.mark.slow
def test_outputs_that_repeat_alike_accuse_nobody():
    """A value with the ratio that is claimed: violated in at most one of twenty audits."""

    def tight(rows, rng, size):
        share = 3e-3 * np.exp(-rows[0])
        return np.where(rng.random(size) < share, 7.25, rng.normal(size=size))

    verdicts = [judged(tight, 5_000, batch=True, bits=False, seed=k).verdict for k in range(20)]
    assert verdicts.count("violated") <= 4  # more than 4 of 20 at one in twenty: 0.003


def test_what_is_no_number_is_no_event_of_bits():
    """Nor is infinity; a zero is said to be one."""
    edges, name = np.array([-4.0, 2000.0]), "the exponent of the lowest set bit of the output"
    for inside, told in (
        ([False, False, True, False], "the output is 0"),
        ([False, True, False, False], f"{name} lies in [-4, 2000)"),
        ([False, True, True, False], f"{name} lies in [-4, 2000) or the output is 0"),
        ([False, False, False, True], "the output is infinite or no number"),
    ):
        assert _describe_bits(name, edges, np.array(inside)) == told


def test_an_interval_of_one_double_is_its_number():
    edges = np.array([0.0, 5e-324, 2.0])
    assert _describe_intervals(edges, np.array([0, 1, 0, 0, 0], dtype=bool)) == "is 0"
    both = _describe_intervals(edges, np.array([0, 1, 0, 1, 1], dtype=bool))
    assert both == "lies in [2, inf] or is 0 or NaN"
    assert [write_number(each) for each in (-5e-324, 0.1, 3.0)] == ["-0", "0.1", "3"]


def test_a_failure_is_named_though_no_first_run_failed():
    """Names are learnt from a few outputs; those of Python's exceptions are known."""
    from hushed.auditing._naming import name_outputs, say_outputs

    encoder = choose_encoder([[1.5, 2.5]])
    rows = encoder.encode([Raised("KeyError"), Raised("exit status 3"), Raised("Own"), None, 0.0])
    names = name_outputs(encoder, rows)
    assert say_outputs(names) == (
        "the output is None or 0.0, or the run failed with KeyError or exit status 3 or "
        "another exception"
    )


def test_a_report_shows_a_short_pair_and_which_runs_judged():
    found = judged(seldom(None), 2_000, bits=False)
    assert "pair: pair 1, [0.0] and [1.0]; event" in str(found)
    judges = f"{found.witness.counts.samples:,}"
    assert f" {judges} of them judged the event; the others came before" in str(found)


@pytest.mark.parametrize("private", [True, False])
def test_inputs_of_a_claim_from_private_rows_are_not_shown(private):
    """Its pairs may be those rows; of others they are the caller's."""
    claim = Guarantee(epsilon=1.0, data_dependent=private)
    how = {"claim": claim, "samples": 400, "workers": 1, "batch": True, "seed": 1}
    found = audit(lambda rows, rng, size: rows[0] + rng.laplace(size=size), PAIR, **how)
    assert ("[0.0] and [1.0]" in found.explain()) != private
    assert "pair: pair 1" in found.explain()


def test_a_function_that_says_no_module_is_audited():
    """As one that was made by `exec` in a namespace of its own; it was an error of Python."""
    made = {}
    exec("def answer(rows, rng): return rows[0] + rng.laplace()", made)
    made["answer"].__module__ = None
    assert judged(made["answer"], samples=300, bits=False).verdict == "not refuted"
