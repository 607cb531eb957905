"""Assertions for test suites: they fail where they must, and say why."""

import inspect
import math

import numpy as np
import pytest

import hushed as hs
from hushed.errors import ParameterError
from hushed.testing import assert_private, assert_sensitivity

UNIT = hs.populations.Uniform(low=0, high=1)
PAIRS = [(np.zeros(4), np.array([1.0, 0, 0, 0]))]


def noisy_sum(scale):
    def mechanism(rows, rng, size):
        return rows.sum() + rng.laplace(scale=scale, size=size)

    return mechanism


def test_a_right_mechanism_passes_and_tells_what_it_would_have_caught():
    """Laplace noise of scale 1 for a sum of shares."""
    report = assert_private(
        noisy_sum(1.0), PAIRS, claim=1.0, batch=True, bits=False, samples=20_000
    )
    assert report.verdict == "not refuted"
    assert report.claim == hs.Guarantee(epsilon=1.0)
    assert 1.0 < report.minimum_detectable < 2.0


def test_a_broken_mechanism_fails_with_event_frequencies_and_epsilon():
    """Half of the noise: the message has all that is needed to see why."""
    with pytest.raises(AssertionError) as failure:
        assert_private(noisy_sum(0.5), PAIRS, claim=1.0, batch=True, samples=20_000, bits=False)
    text = str(failure.value)
    assert "VIOLATED" in text
    assert "event:" in text
    assert "times in" in text
    assert "epsilon is at least 1." in text
    assert "probability at most 0.001" in text


@pytest.mark.slow
def test_the_rate_of_false_alarms_is_that_of_the_confidence():
    """15 audits of a mechanism that loses all it claims, at confidence 0.9: few alarms."""
    alarms = 0
    for seed in range(15):
        try:
            assert_private(
                noisy_sum(1.0), PAIRS, claim=1.0, batch=True, samples=2000, confidence=0.9,
                seed=seed, bits=False,
            )  # fmt: skip
        except AssertionError:
            alarms += 1
    assert alarms <= 7  # of Binomial(15, 0.1) exceeded once in 10,000


def test_a_bound_that_is_too_small_fails_with_the_pair():
    """The witness is public, and printed."""
    found = assert_sensitivity(np.mean, 0.25, UNIT, rows=4)
    assert found.verdict == "not refuted"
    with pytest.raises(AssertionError, match="neighbour: array") as failure:
        assert_sensitivity(np.mean, 0.2, UNIT, rows=4)
    assert "no false alarm" in str(failure.value)
    with pytest.raises(AssertionError, match=r"at most 0\.001"):
        assert_sensitivity(np.mean, 0.1, UNIT, rows=4, gamma=0.1)


def test_a_share_of_pairs_may_move_farther():
    """A quarter of pairs moves a sum by more than a half."""
    assert assert_sensitivity(np.sum, 0.5, UNIT, rows=3, gamma=0.3).violations > 0


@pytest.mark.parametrize("claim", [np.float32(1), np.int64(1)])
def test_numbers_of_numpy_are_claims(claim):
    """As numbers of Python are."""
    found = assert_private(
        noisy_sum(2.0), PAIRS, claim=claim, batch=True, samples=1_000, bits=False
    )
    assert found.claim == hs.Guarantee(epsilon=1.0)


def test_mistakes_are_no_failures_of_the_mechanism():
    """A test that was set up wrongly ends with the library's own error."""
    with pytest.raises(ParameterError):
        assert_private(noisy_sum(1.0), PAIRS, claim=math.inf, batch=True)
    for truth in (True, np.True_):
        with pytest.raises(ParameterError, match="claim must be an epsilon"):
            assert_private(noisy_sum(1.0), PAIRS, claim=truth, batch=True)
    for pairs in (UNIT, 5, noisy_sum(1.0)):
        with pytest.raises(ParameterError, match=r"list of \(rows, neighbour\).*PopulationPairs"):
            assert_private(noisy_sum(1.0), pairs, claim=1.0, batch=True)
    with pytest.raises(ParameterError):
        assert_sensitivity(np.mean, -1.0, UNIT, rows=4)
    with pytest.raises(ParameterError, match="an epsilon, such as"):
        assert_private(noisy_sum(1.0), PAIRS, claim="1.0", batch=True)
    with pytest.raises(ParameterError, match=r"PublicTable\(rows\)"):
        assert_sensitivity(np.mean, 1.0, np.zeros(9), rows=4)


@pytest.mark.slow
def test_a_mechanism_of_diffprivlib_is_tested_as_documented():
    """IBM's Laplace mechanism keeps epsilon = 1 and not a tenth of it."""
    mechanisms = pytest.importorskip("diffprivlib.mechanisms")

    def release(rows):
        return mechanisms.Laplace(epsilon=1.0, sensitivity=1.0).randomise(float(rows.sum()))

    assert_private(release, PAIRS, claim=1.0, samples=20_000, bits=False)
    with pytest.raises(AssertionError):
        assert_private(release, PAIRS, claim=0.1, samples=20_000, bits=False)


@pytest.mark.slow
def test_a_measurement_of_opendp_is_tested_as_documented():
    """OpenDP's Laplace noise keeps epsilon = 1 and not a tenth of it."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    noise = space >> dp.m.then_laplace(scale=1.0)

    def release(rows):
        return noise(float(rows.sum()))

    assert_private(release, PAIRS, claim=1.0, samples=3_000, bits=False)
    with pytest.raises(AssertionError):
        assert_private(release, PAIRS, claim=0.1, samples=3_000, bits=False)


def test_the_assertion_and_the_audit_take_their_arguments_alike():
    """One order for both, and the claim by name: neither call can be taken for the other."""
    first = [list(inspect.signature(each).parameters)[:3] for each in (hs.audit, assert_private)]
    assert first == [["mechanism", "pairs", "claim"]] * 2
    for each in (hs.audit, assert_private):
        with pytest.raises((TypeError, ParameterError), match=r"takes 2 .*arguments"):
            each(noisy_sum(1.0), PAIRS, 1.0)
