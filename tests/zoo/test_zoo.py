"""The zoo's truths against enumeration, other quadratures, brackets and published numbers."""

import itertools
import math
import pickle
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
from scipy import integrate, stats

from hushed import zoo
from hushed.errors import NotFound, ParameterError
from hushed.guarantee import Guarantee
from hushed.zoo import (
    _counts,
    _curves,
    _events,
    _flags,
    _gaussian,
    _laplace,
    _local,
    _quadrature,
    _selection,
    _sparse_vector,
)

ALL = zoo.specimens(0.1)
NAMES = [s.name for s in ALL]


def cell_law(loss, step):
    """Law of one Laplace loss on a grid, each cell's mass at its upper and at its lower end."""
    n = round(loss / step)
    # The loss is L - 2u with u = x/b, and P(0 < u <= t) = P(0 < noise <= t) for t up to L.
    upper, lower = np.zeros(2 * n + 1), np.zeros(2 * n + 1)
    grid = np.linspace(0, loss, 2 * n + 1)  # u-cells of half a step, twice as many
    cells = np.diff(stats.laplace.cdf(grid))
    for k, chance in enumerate(cells):
        upper[2 * n - k] += chance
        lower[2 * n - k - 1] += chance
    for law in (upper, lower):
        law[2 * n] += 0.5
        law[0] += 0.5 * math.exp(-loss)
    return lower, upper


@pytest.mark.parametrize("count", [2, 3, 10])
@pytest.mark.parametrize("share", [-0.3, 0.0, 0.2, 0.7])
def test_product_of_laplace_lies_between_two_grids(count, share):
    """The curve of several draws lies between those of the loss rounded down and up."""
    loss, cells = 0.4, 400
    lower, upper = cell_law(loss, loss / cells)
    epsilon = share * count * loss
    found = []
    for law in (lower, upper):
        total = law
        for _ in range(count - 1):
            total = np.convolve(total, law)
        at = np.linspace(-count * loss, count * loss, total.size)
        found.append(float((total * np.maximum(-np.expm1(epsilon - at), 0)).sum()))
    value = _laplace.prefix_sums(loss, count).delta(epsilon)
    assert found[0] - 1e-12 <= value <= found[1] + 1e-12
    assert found[1] - found[0] < 0.01 * count * loss


def test_product_of_one_is_the_closed_form():
    """One draw gives the closed form on both sides of its range, and twenty integrate to it."""
    for epsilon in (-0.7, -0.2, 0.0, 0.3, 0.39, 0.5):
        one = _laplace.laplace_parallel(0.4, draws=1).delta(epsilon)
        assert one == pytest.approx(_laplace.laplace(0.4).delta(epsilon), abs=1e-14)
    # Far below the range nothing can be excused: delta = 1 - exp(epsilon), by splines of order 20.
    twenty = _laplace.laplace_parallel(0.1, draws=20).delta(-0.2)
    assert twenty == pytest.approx(-math.expm1(-0.2), abs=1e-12)


@pytest.mark.parametrize("epsilon", [-1.5, -0.4, 0.0, 0.4, 0.99, 1.0])
def test_laplace_curve_is_the_integral_of_densities(epsilon):
    """The closed form is the integral of the positive part of the densities' difference."""
    loss = 1.0

    def over(x):
        return max(stats.laplace.pdf(x) - math.exp(epsilon) * stats.laplace.pdf(x - loss), 0)

    kink = [0, loss, (loss - epsilon) / 2]
    value = sum(
        integrate.quad(over, a, b, epsabs=1e-13)[0]
        for a, b in itertools.pairwise([-60, *sorted(kink), 60])
    )
    assert _laplace.laplace(loss).delta(epsilon) == pytest.approx(value, abs=1e-9)


def test_copies_of_a_discrete_pair_by_enumeration():
    """Joining two halves gives what enumerating all products gives."""
    rng = np.random.default_rng(5)
    p, q = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3))
    for epsilon in (0.0, 0.3, 1.0):
        whole = sum(
            max(math.prod(p[list(o)]) - math.exp(epsilon) * math.prod(q[list(o)]), 0)
            for o in itertools.product(range(3), repeat=6)
        )
        assert _curves.sum_of_losses_delta(p, q, 6, epsilon) == pytest.approx(whole, abs=1e-14)


@pytest.mark.slow_cases("NoisyHist2-10.0", "RNM2-0.1", "SVT4-0.1725")
@pytest.mark.parametrize(
    ("name", "epsilon"),
    [
        ("RNM1", 0.0946),
        ("RNM2", 0.1),
        ("RNM3", 0.25),
        ("RNM4", math.inf),
        ("NoisyHist1", 0.1),
        ("NoisyHist2", 10.0),
        ("SVT1", 0.0885),
        ("SVT3", 0.5),
        ("SVT4", 0.1725),
        ("SVT5", math.inf),
        ("SVT6", 0.42),
        ("PrefixSum", 1.0),
        ("LaplaceParallel", 0.1),
        ("OneTimeRappor", 0.8007),
        ("Rappor", 0.4001),
    ],
)
def test_published_losses(name, epsilon):
    """The losses of the published tables at a claim of 0.1 come out to their printed digits."""
    specimen = zoo.find(name)
    assert specimen.epsilon == pytest.approx(epsilon, abs=5e-5)


def test_noisy_max_with_ten_answers():
    """With ten answers the Laplace index is 0.0999, still below its claim."""
    assert _selection.noisy_max_index(0.1, 10).epsilon == pytest.approx(0.0999, abs=5e-5)


@pytest.mark.slow
def test_masses_of_infinite_losses():
    """The exponential value shows its infinity on 2.8e-7, no query noise on 1 - exp(-e0/2)."""
    value = zoo.find("RNM4")
    mass = (-math.expm1(-0.05)) ** 5
    assert mass == pytest.approx(2.8e-7, rel=0.02)
    assert mass < value.delta(40.0) < 1.001 * mass
    for epsilon in (100.0, 300.0):
        assert value.delta(epsilon) == pytest.approx(mass, rel=1e-9)
    none = zoo.find("SVT5")
    for epsilon in (0.0, 0.1, 5.0):
        assert none.delta(epsilon) == pytest.approx(-math.expm1(-0.05), abs=1e-12)


@pytest.mark.parametrize("law", ["laplace", "exponential"])
def test_index_probabilities_add_up_and_match_two_answers(law):
    """Probabilities add to one, and for two answers equal the law of the noises' difference."""
    for rows in (np.array([1.0, 0.0, 2.0, 1.5]), np.array([0.3, 1.0])):
        assert _selection.index_probabilities(rows, 3.0, law).sum() == pytest.approx(1, abs=1e-12)
    first = _selection.index_probabilities(np.array([1.0, 0.0]), 3.0, law)[0]
    t = 1 / 3
    if law == "exponential":  # the difference of two exponentials is Laplace
        assert first == pytest.approx(1 - math.exp(-t) / 2, abs=1e-12)
    else:  # of two Laplace: tail (2 + t) exp(-t) / 4
        assert first == pytest.approx(1 - (2 + t) * math.exp(-t) / 4, abs=1e-12)


@pytest.mark.parametrize("law", ["laplace", "exponential"])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.2])
def test_value_curve_is_the_integral_of_densities(law, epsilon):
    """The best half line reaches the whole positive part of the densities' difference."""
    specimen = _selection.noisy_max_value(0.1, 5, law)
    noise = stats.laplace(scale=20) if law == "laplace" else stats.expon(scale=20)

    def density(t, x):
        return 5 * noise.pdf(t - x) * noise.cdf(t - x) ** 4

    grid = np.concatenate(
        [np.linspace(-400, 0, 40001), np.linspace(0, 3, 60001)[1:], np.linspace(3, 800, 80001)[1:]]
    )
    over = np.maximum(density(grid, 1) - math.exp(epsilon) * density(grid, 2), 0)
    assert specimen.delta(epsilon) == pytest.approx(np.trapezoid(over, grid), rel=2e-4)


@pytest.mark.slow
def test_flag_probabilities_against_plain_quadrature():
    """Three flags of a sparse vector have the probability that a plain double loop integrates."""
    law = _flags.FlagLaw(threshold=0.5, threshold_scale=2.0, query_scale=3.0, cutoff=2)
    rows = np.array([1.0, 0.0, 2.0])
    bar, query = stats.laplace(scale=2.0), stats.laplace(scale=3.0)
    outcomes, chances = _flags.enumerate_flags(rows, law)
    for outcome, chance in zip(outcomes, chances, strict=True):

        def integrand(z, outcome=outcome):
            value = bar.pdf(z)
            for x, flag in zip(rows, outcome, strict=True):
                tail = query.sf(0.5 + z - x)
                value *= {1: tail, 0: 1 - tail, -1: 1.0}[int(flag)]
            return value

        kinks = [-80, -0.5, 0, 0.5, 1.5, 80]
        plain = sum(
            integrate.quad(integrand, a, b, epsabs=1e-12)[0] for a, b in itertools.pairwise(kinks)
        )
        assert chance == pytest.approx(plain, abs=1e-9)
    assert chances.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", ["SVT1", "SVT4", "SVT6"])
def test_no_pattern_loses_more_than_the_stated_pair(name):
    """Of the eight patterns, both ways, none loses more than the pair of the record."""
    specimen = zoo.find(name)
    law, one = specimen.mechanism.keywords["law"], np.ones(10)
    first = np.r_[1.0, np.zeros(9)]
    top = np.r_[np.ones(5), np.zeros(5)]
    moves = [first, -first, 2 * first - 1, 1 - 2 * first, 2 * top - 1, one, -one]
    pairs = [(one, one + m) for m in moves] + [(top, 1 - top)]
    losses = []
    for pair in pairs:
        p, q = (_flags.enumerate_flags(x, law)[1] for x in pair)
        losses += [float(np.log(p / q).max()), float(np.log(q / p).max())]
    assert max(losses) == pytest.approx(specimen.epsilon, rel=1e-12)


def test_fresh_thresholds_multiply():
    """With a fresh threshold, a yes at once makes the rest a run of its own."""
    law = _flags.FlagLaw(
        threshold=1.0, threshold_scale=40.0, query_scale=80.0, cutoff=2, fresh=True
    )
    rows = np.array([2.0, 0.0, 1.0])
    one = _flags.FlagLaw(threshold=1.0, threshold_scale=40.0, query_scale=80.0, cutoff=1)
    whole, first, rest = (
        dict(zip(map(tuple, outcomes.tolist()), chances, strict=True))
        for outcomes, chances in (
            _flags.enumerate_flags(rows, law),
            _flags.enumerate_flags(rows[:1], one),
            _flags.enumerate_flags(rows[1:], one),
        )
    )
    assert whole[(1, 0, 1)] == pytest.approx(first[(1,)] * rest[(0, 1)], rel=1e-12)
    assert sum(whole.values()) == pytest.approx(1, abs=1e-12)


def test_shown_value_of_one_query():
    """With one query, the density of the shown value is noise times a distribution function."""
    law = _flags.FlagLaw(
        threshold=1.0, threshold_scale=2.0, query_scale=1.5, cutoff=1, value_scale=0.0
    )
    grid, density, none = _flags.value_densities(np.array([1.0]), law, kinks=(1.0,))
    noise, bar = stats.laplace(scale=1.5), stats.laplace(scale=2.0)
    mean, _ = integrate.quad(
        lambda v: noise.pdf(v - 1) * bar.cdf(v - 1), -120, 120, points=[1.0], limit=400
    )
    assert float((grid.weights * density[0]).sum()) == pytest.approx(mean, abs=1e-9)
    assert none == pytest.approx(1 - mean, abs=1e-9)


@pytest.mark.slow
def test_shown_value_curve_does_not_depend_on_the_panels():
    """Doubling the panels eight times over moves the curve of the shown value by less than 2e-6."""
    specimen = zoo.find("SVT3")
    law = specimen.mechanism.keywords["law"]
    for epsilon in (0.0, 0.2):
        fine = [
            _flags.value_densities(rows, law, kinks=(1.0, 2.0), per_scale=128)
            for rows in specimen.pairs[0]
        ]
        (grid, p, p_none), (_, q, q_none) = fine
        over = (grid.weights * np.maximum(p - math.exp(epsilon) * q, 0)).sum()
        over += max(0, p_none - math.exp(epsilon) * q_none)
        assert specimen.delta(epsilon) == pytest.approx(over, abs=2e-6)


def test_numeric_sparse_vector_without_values_is_its_flags():
    """Integrating the values out cannot raise the curve, and far out only the losses count."""
    specimen = zoo.find("NumericalSVT")
    keywords = specimen.delta.keywords
    for epsilon in (0.0, 0.02, 0.05):
        flags_only = _curves.discrete_delta(keywords["p"], keywords["q"], epsilon)
        assert flags_only <= specimen.delta(epsilon) + 1e-12
    assert specimen.delta(specimen.epsilon) == pytest.approx(0, abs=1e-12)
    assert specimen.delta(specimen.epsilon * 0.97) > 0


def test_rappor_by_enumerating_the_differing_bits():
    """The loss and curve of RAPPOR equal those over all 256 settings of eight bits."""
    # The permanent step keeps a bit with 5/8; then a 0 is reported as 1 with 0.45, a 1 with 0.55.
    reported = [0.625 * 0.45 + 0.375 * 0.55, 0.375 * 0.45 + 0.625 * 0.55]
    zero, one = ((1 - chance, chance) for chance in reported)
    p, q = [], []
    for bits in itertools.product((0, 1), repeat=8):
        own = [one[b] for b in bits[:4]] + [zero[b] for b in bits[4:]]
        other = [zero[b] for b in bits[:4]] + [one[b] for b in bits[4:]]
        p.append(math.prod(own))
        q.append(math.prod(other))
    p, q = np.array(p), np.array(q)
    specimen = _local.rappor()
    assert specimen.epsilon == pytest.approx(np.log(p / q).max(), rel=1e-12)
    for epsilon in (0.0, 0.1, 0.3):
        over = np.maximum(p - math.exp(epsilon) * q, 0).sum()
        assert specimen.delta(epsilon) == pytest.approx(over, abs=1e-12)


def test_daily_reports_never_lose_more_than_the_filter():
    """The loss grows with the days towards that of the permanent filter."""
    losses = [_local.daily_rappor(days).epsilon for days in (2, 7, 60, 900)]
    assert losses == sorted(losses)
    assert losses[-1] == pytest.approx(
        _local.daily_rappor(claim_permanent=True).claim.epsilon, rel=0.01
    )


def test_bloom_filters_of_the_pair_do_not_overlap():
    """The pair of RAPPOR differs in all eight of its bits."""
    rows, neighbour = _local.rappor().pairs[0]
    own, other = (_local.bloom_bits(int(x[0]), 4, 20) for x in (rows, neighbour))
    assert own.sum() == other.sum() == 4
    assert not (own & other).any()


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("least", [-3, 0, 1, 4])
def test_geometric_tail_by_summing(epsilon, least):
    """The tail of two-sided geometric noise is the sum of its terms."""
    z = np.arange(-2000, 2001)
    law = np.exp(-epsilon * np.abs(z))
    tail = _counts.count_above_threshold(epsilon, 0.4, threshold=least + 1).delta(0.0)
    assert tail == pytest.approx(law[z >= least].sum() / law.sum(), rel=1e-10)


def test_truncated_geometric_at_every_neighbouring_count():
    """No neighbouring counts lose more than the claim, and the leak shows up as delta."""
    for x in range(5):
        for a, b in ((x, x + 1), (x + 1, x)):
            p, q = (_counts._clipped_law(v, 0.1, 5, 0.0) for v in (a, b))
            assert p.sum() == pytest.approx(1)
            assert np.log(p / q).max() <= 0.1 + 1e-12
    assert _counts.leaky_geometric(0.1).delta(0.1) == pytest.approx(0.01, abs=1e-12)


def test_strict_comparison_is_a_whole_factor():
    """At one threshold, a non-strict comparison leaks e^epsilon times as often as a strict one."""
    strict = _counts.count_above_threshold(1.0, strict=True, threshold=5).delta(0.0)
    loose = _counts.count_above_threshold(1.0, strict=False, threshold=5).delta(0.0)
    assert loose / strict == pytest.approx(math.e)
    bar = _counts.release_threshold(1.0, 0.01)
    at, under = (_counts.count_above_threshold(1.0, threshold=b).delta(0.0) for b in (bar, bar - 1))
    assert at <= 0.01 < under


def test_classic_constant_fails_only_well_above_one():
    """The classic constant holds at 1 and up to 3.5, and fails at the default of 8."""
    for delta in (0.05, 1e-3, 1e-5):
        for epsilon in (0.5, 1.0, 2.0, 3.5):
            assert _gaussian.classic_gaussian(epsilon, delta).private
    broken = _gaussian.classic_gaussian()
    assert not broken.private
    sigma = math.sqrt(2 * math.log(25)) / 8
    cut = 0.5 + 8 * sigma**2
    mass = stats.norm.sf((cut - 1) / sigma) - math.exp(8) * stats.norm.sf(cut / sigma)
    assert broken.delta(8.0) == pytest.approx(mass, rel=1e-9)
    assert mass > 0.11


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.25])
def test_subsampled_laplace_is_the_integral_of_densities(epsilon):
    """The amplified curve is the integral of the mixture's excess over its part."""
    specimen = _gaussian.subsampled_laplace(1.0, 0.2)

    def over(x):
        own = 0.8 * stats.laplace.pdf(x) + 0.2 * stats.laplace.pdf(x - 1)
        return max(own - math.exp(epsilon) * stats.laplace.pdf(x), 0)

    value = sum(
        integrate.quad(over, a, b, limit=300, epsabs=1e-12)[0]
        for a, b in itertools.pairwise([-50, 0, 0.5, 1, 50])
    )
    assert specimen.delta(epsilon) == pytest.approx(value, abs=1e-7)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("rate", [0.2, 0.9])
def test_subsampled_gaussian_claims_the_larger_direction(epsilon, rate):
    """The claimed delta is the larger of both directions' integrals of densities."""
    if epsilon == 0:
        epsilon = 1e-9
    specimen = _gaussian.subsampled_gaussian(1.0, rate, epsilon)
    grid = np.linspace(-12, 13, 500_001)
    part = stats.norm.pdf(grid)
    whole = (1 - rate) * part + rate * stats.norm.pdf(grid - 1)
    both = [
        float(np.trapezoid(np.maximum(a - math.exp(epsilon) * b, 0), grid))
        for a, b in ((whole, part), (part, whole))
    ]
    assert specimen.delta(epsilon) == pytest.approx(both[0], abs=1e-8)
    assert _gaussian._unsampled_gaussian_delta(epsilon, ratio=1.0, rate=rate) == pytest.approx(
        both[1], abs=1e-8
    )
    assert specimen.claim.delta == pytest.approx(max(both), abs=1e-8)


@pytest.mark.slow_cases("sparse vector, shows the value")
@pytest.mark.parametrize("specimen", ALL, ids=NAMES)
def test_record_and_curve_agree(specimen):
    """Verdict, loss and curve of a specimen tell one story."""
    assert specimen.violates() is (not specimen.private)
    if specimen.delta is None:
        return
    grid = np.linspace(0, 2, 9)
    values = [specimen.delta(float(e)) for e in grid]
    assert all(0 <= v <= 1 for v in values)
    assert all(a >= b - 1e-9 for a, b in itertools.pairwise(values))
    if specimen.epsilon is not None and math.isfinite(specimen.epsilon):
        assert specimen.delta(specimen.epsilon) <= 1e-9
        assert specimen.delta(0.5 * specimen.epsilon) > 0


@pytest.mark.parametrize("specimen", ALL, ids=NAMES)
def test_mechanisms_are_seeded_vectorised_and_portable(specimen):
    """A batch has its size, repeats under its seed, differs under another, and survives a trip."""
    there = pickle.loads(cloudpickle.dumps(specimen))
    for rows in specimen.pairs[0]:
        before = rows.copy()
        outputs = specimen.mechanism(rows, np.random.default_rng(3), 500)
        again = there.mechanism(rows, np.random.default_rng(3), 500)
        assert len(outputs) == 500
        np.testing.assert_array_equal(outputs, again)
        np.testing.assert_array_equal(rows, before)
        if specimen.event is not None:
            assert specimen.event(outputs).shape == (500,)
            assert specimen.event(outputs).dtype == np.bool_


def test_flag_codes():
    """After the last yes everything is -1, and values stand where a yes stands."""
    numeric = zoo.find("NumericalSVT")
    outputs = numeric.mechanism(np.ones(5), np.random.default_rng(0), 2000)
    marks, values = outputs[:, :5], outputs[:, 5:]
    assert set(np.unique(marks)) == {-1.0, 0.0, 1.0}
    assert ((values != 0) == (marks == 1)).all()
    stopped = (np.cumsum(marks == 1, axis=1) - (marks == 1)) >= 2
    assert ((marks == -1) == stopped).all()


def test_running_integral_is_exact_for_polynomials():
    """Running integrals of a cubic match its antiderivative at every point."""
    rule = _quadrature.composite(np.array([-1.0, 0.5, 2.0]), 6)
    np.testing.assert_allclose(rule.running(rule.at**3), (rule.at**4 - 1) / 4, atol=1e-13)


def test_events_on_sequences():
    """Only listed sequences are members, whatever follows them."""
    members = np.array([[0, 1, -1], [0, 0, 0]], dtype=np.int8)
    outputs = np.array([[0, 1, -1, 9.0], [0, 0, 0, 9.0], [1, -1, -1, 0.0]])
    assert _events.flags_among(outputs, members=members).tolist() == [True, True, False]


@pytest.mark.slow
def test_names_are_unique_and_found_in_any_case():
    """Names and aliases lead to one specimen each; a wrong name is answered with near ones."""
    seen = [n for s in ALL for n in {x.casefold() for x in (s.name, *s.aliases)}]
    assert len(seen) == len(set(seen))
    assert zoo.find("svt4").name == "sparse vector, too little noise"
    assert zoo.find("Laplace: scale epsilon for 1/epsilon (faulty)").private is False
    with pytest.raises(NotFound, match="svt4"):
        zoo.find("SVT44")


def test_records_that_contradict_themselves_are_refused():
    """A private record may not lose more than it claims, and NaN is no truth."""
    good = _laplace.laplace(0.1)
    parts = {
        "name": "x",
        "mechanism": good.mechanism,
        "claim": Guarantee(epsilon=0.1),
        "relation": "every-answer",
        "pairs": good.pairs,
        "private": True,
        "output": "",
        "source": "",
        "argument": "",
    }
    zoo.Specimen(**parts, epsilon=0.1)
    for change in (
        {"epsilon": 0.11},
        {"epsilon": math.nan},
        {"pairs": ()},
        {"relation": "far"},
        {"epsilon": 0.05, "supremum": 0.04},
    ):
        with pytest.raises(ParameterError):
            zoo.Specimen(**{**parts, **change})


@pytest.mark.parametrize(
    "call",
    [
        lambda: _sparse_vector.sparse_vector(1, k=17),
        lambda: _local.rappor(hashes=8, bits=8),
        lambda: _gaussian.classic_gaussian(math.nan),
        lambda: zoo.specimens(1.0),
        lambda: zoo.specimens(math.nan),
        lambda: zoo.defects.twins(2.0),
    ],
)
def test_parameters_outside_their_range_are_refused(call):
    """Parameters at which the stated verdict would be false are refused."""
    with pytest.raises(ParameterError):
        call()


@pytest.mark.slow
def test_the_page_on_audits_tells_what_missed_mechanisms_lose():
    """Each of its table is a broken one, with its claim and its true loss on its own pair."""
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text()
    rows = page.partition("| missed | claimed | loses | certified |")[2].partition("\n\n")[0]
    told = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows.splitlines()[2:]]
    assert len(told) == 5
    for name, claimed, loses, _ in told:
        specimen = zoo.find(name.partition(" (")[0])
        assert not specimen.private
        assert claimed.startswith(f"{specimen.claim.epsilon:g}")
        if "delta" in claimed:
            assert claimed.endswith(f"delta {specimen.claim.delta:g}")
            assert loses == f"delta {specimen.delta(specimen.claim.epsilon):.2g} at 8"
        else:
            assert float(loses) == pytest.approx(specimen.epsilon, rel=0.01)
    broken = [each for each in zoo.specimens(0.1) if not each.private]
    assert f"of the {len(broken)} broken ones are caught" in page
