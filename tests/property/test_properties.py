"""Properties that hold for any input that Hypothesis can think of."""

import json
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, example, given, settings

import hushed as hs
from hushed._rows._containers import is_same
from hushed._rows._variations import variations
from hushed.errors import HushedError, ParameterError, TooFewPairs
from hushed.releasing import certify
from hushed.sensitivity import choose_rank
from hushed.spaces import size

UNIT = hs.populations.Uniform(low=0, high=1)
CALIBRATIONS = st.sampled_from(["marginal", "training-conditional", "dkw"])
LEVELS = st.integers(1, 999).map(lambda n: Fraction(n, 1000))
FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)
MODERATE = st.floats(1e-6, 1e6)


@given(CALIBRATIONS, LEVELS, st.integers(1, 3000))
@example("marginal", Fraction(18, 100), 149)
def test_any_rank_covers_marginally(calibration, gamma, m):
    """Every rank given out satisfies k/(m+1) >= 1 - gamma exactly, or the number named suffices."""
    try:
        found = choose_rank(calibration, gamma=gamma, pairs=m)
    except TooFewPairs as short:
        if short.needed <= m:
            pytest.fail(f"{short.needed} pairs are said to be needed, {m} were given")
        found = choose_rank(calibration, gamma=gamma, pairs=short.needed)
    assert found.rank <= found.pairs
    assert Fraction(found.rank, found.pairs + 1) >= 1 - gamma
    assert (1 - Fraction(found.tail_mass)) * (
        1 - Fraction(found.sampling_error)
    ) >= 1 - gamma - Fraction(1, 10**12)


@given(CALIBRATIONS, LEVELS, LEVELS)
def test_less_gamma_never_needs_fewer_pairs(calibration, first, second):
    """The number of pairs falls as gamma grows."""
    small, large = sorted((first, second))
    pairs = [choose_rank(calibration, gamma=g).pairs for g in (small, large)]
    assert pairs[0] >= pairs[1]


@given(CALIBRATIONS, st.integers(9, 5000))
def test_the_gamma_of_pairs_alone_is_supported_by_them(calibration, m):
    """Asking for the gamma that m pairs reach works with m pairs."""
    reached = choose_rank(calibration, pairs=m).gamma
    assert choose_rank(calibration, gamma=Fraction(str(reached)), pairs=m).rank <= m


@given(st.lists(st.lists(FINITE, min_size=2, max_size=2), min_size=4, max_size=9), st.data())
def test_variations_restore_the_table(rows, data):
    """Whatever is swapped, base and table survive and each variation differs as asked."""
    table = np.array(rows)
    n = len(rows) - 1
    swaps = data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.just(n)), max_size=5))
    seen = [view.copy() for view in variations(table, n, swaps)]
    assert is_same(table, np.array(rows))
    for (position, source), view in zip(swaps, seen[1:], strict=True):
        expected = np.array(rows)[:n]
        expected[position] = rows[source]
        assert is_same(view, expected)


@given(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=6), st.floats(-1e50, 1e50))
def test_norms_are_ordered(vector, shift):
    """Sup <= l2 <= l1, range <= 2 sup, and a common shift has no range."""
    v = np.array(vector)
    l1, l2, sup, spread = (float(size(v, norm)) for norm in ("l1", "l2", "sup", "range"))
    assert sup <= l2 * (1 + 1e-15)
    assert l2 <= l1 * (1 + 1e-14)
    assert spread <= 2 * sup
    assert size(np.full(3, shift), "range") == 0


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 0.3)), max_size=12))
def test_union_gamma_never_rounds_down(promises):
    """The sum over distinct estimates, in rational numbers, is a lower bound."""
    guarantees, worst = [], {}
    for name, gamma in promises:
        guarantees.append(hs.Guarantee(epsilon=1, gamma=gamma, estimates=((str(name), gamma),)))
        worst[name] = max(worst.get(name, 0), Fraction(str(gamma)))
    total = hs.union_gamma(guarantees)
    assert Fraction(str(total)) >= sum(worst.values())
    assert total <= float(sum(worst.values())) * (1 + 1e-15) + 5e-324


@given(st.floats(0, 1e-3), st.integers(2, 10**6))
def test_shift_never_rounds_down(tau, rows):
    """Gamma' - gamma is at least sqrt((n + 1) tau / 2), compared by squares in rational numbers."""
    from dataclasses import replace

    s = hs.sample_sensitivity(np.mean, UNIT, rows=2, gamma=0.25, calibration="marginal", workers=1)
    s = replace(s, sampling=replace(s.sampling, rows=rows))
    assume((rows + 1) * tau / 2 < 0.5)
    step = Fraction(s.shifted(tau).gamma) - Fraction(s.gamma)
    assert step >= 0
    assert 2 * step**2 >= (rows + 1) * Fraction(tau)


@given(MODERATE, MODERATE, st.floats(1e-9, 0.9), st.integers(1, 50))
def test_laplace_accuracy_inverts(sensitivity, error, beta, dims):
    """for_accuracy reaches the error from above, wherever it gives a mechanism at all."""
    s = hs.proven_sensitivity(sensitivity, argument="x")
    try:
        m = hs.Laplace.for_accuracy(s, error=error, beta=beta, dims=dims)
    except ParameterError:
        assume(False)
    assert m.accuracy(beta, dims) <= error
    assert hs.Laplace(s, epsilon=m.epsilon * (1 - 1e-6)).accuracy(beta, dims) > error


@pytest.mark.slow
@given(st.floats(1e-3, 10), st.floats(1e-12, 0.5), MODERATE)
def test_gaussian_scale_grows_with_caution(epsilon, delta, sensitivity):
    """Less epsilon or delta means more noise, and the scale is proportional to the sensitivity."""
    s = hs.proven_sensitivity(sensitivity, "l2", argument="x")
    scale = hs.Gaussian(s, epsilon=epsilon, delta=delta).scale
    assert hs.Gaussian(s, epsilon=epsilon / 2, delta=delta).scale > scale
    assert hs.Gaussian(s, epsilon=epsilon, delta=delta / 2).scale > scale
    one = hs.Gaussian(hs.proven_sensitivity(1, "l2", argument="x"), epsilon=epsilon, delta=delta)
    assert scale == pytest.approx(one.scale * sensitivity, rel=1e-14)


@pytest.mark.slow
@given(
    st.integers(2, 30),
    st.sampled_from(["record", "everyone", "simultaneous"]),
    st.sampled_from(["marginal", "training-conditional"]),
    st.floats(0.3, 0.9),
    st.integers(0, 2**140),
    st.booleans(),
    st.floats(1e-3, 1e3),
)
def test_any_certificate_survives_json_and_verifies(
    n, protect, calibration, gamma, seed, symmetric, epsilon
):
    """For any settings the JSON round trip is exact and verification reproduces."""
    f = lambda rows: rows.std()  # noqa: E731
    s = hs.sample_sensitivity(
        f, UNIT, rows=n, protect=protect, calibration=calibration, gamma=gamma, seed=seed,
        symmetric=symmetric, workers=1,
    )  # fmt: skip
    c = certify(hs.Laplace(s, epsilon=epsilon), values=1)
    assert hs.Certificate.from_json(c.to_json()) == c
    assert hs.verify(c.to_json(), f, workers=1).reproduced


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=200)
@given(st.data())
def test_tampering_never_fails_raw(data):
    """Any value anywhere in a certificate is read, or refused by a HushedError."""
    loaded = json.loads(TEXT)
    place, key = loaded, data.draw(st.sampled_from(sorted(loaded)))
    while isinstance(place[key], dict) and place[key] and data.draw(st.booleans()):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place)))
    place[key] = data.draw(JSON)
    try:
        c = hs.Certificate.from_json(json.dumps(loaded))
    except HushedError:
        return
    assert c.explain()
    assert hs.Certificate.from_json(c.to_json()).to_json() == c.to_json()


def _text():
    s = hs.sample_sensitivity(np.mean, UNIT, rows=5, workers=1)
    return certify(hs.Laplace(s, epsilon=1.0), values=1).to_json()


TEXT = _text()


@given(st.integers(1, 12), st.integers(1, 3), st.data())
def test_bernstein_stays_within_its_coefficients(k, dims, data):
    """The polynomial is a convex combination of its coefficients everywhere on the cube."""
    from hushed.mechanisms import BernsteinPolynomial

    seed = data.draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    coefficients = rng.standard_normal((k + 1,) * dims)
    values = BernsteinPolynomial(coefficients)(rng.random((30, dims)))
    assert values.max() <= coefficients.max() + 1e-12
    assert values.min() >= coefficients.min() - 1e-12
    ones = BernsteinPolynomial(np.ones((k + 1,) * dims))(rng.random((30, dims)))
    assert ones == pytest.approx(np.ones(30), abs=1e-12)
