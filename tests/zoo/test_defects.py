"""Each faulty/fixed pair: the faulty one breaks its claim on its pair of rows, the fixed one not.

Simulations draw 40,000 outputs a side under fixed seeds. With the thresholds below, the chance
that a right mechanism is called wrong anywhere in this file is under 1e-6 (33 pairs, one-sided
normal tail at 5.5 standard errors: 2e-8 each).
"""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from hushed import zoo

PAIRS = zoo.defects.twins(1.0)
IDS = [faulty.name.removesuffix(" (faulty)") for faulty, _ in PAIRS]
DRAWS = 40_000
ROUNDED = next(t for t, i in zip(PAIRS, IDS, strict=True) if i.endswith("mean rounded"))


def excess(specimen, event, seed):
    """Estimate of P(E) - exp(eps) Q(E) and its standard error, never below that of one count."""
    rows, neighbour = specimen.pairs[0]
    rng = np.random.default_rng(seed)
    p = float(event(specimen.mechanism(rows, rng, DRAWS)).mean())
    q = float(event(specimen.mechanism(neighbour, rng, DRAWS)).mean())
    factor = math.exp(specimen.claim.epsilon)
    variance = p * (1 - p) + factor**2 * q * (1 - q)
    return p - factor * q, math.sqrt(max(variance, factor**2 / DRAWS) / DRAWS)


def test_there_are_enough_and_they_are_named():
    """At least fifteen defects, each with a name of its own, a source and a reason."""
    assert len(PAIRS) >= 15
    assert len(set(IDS)) == len(PAIRS)
    for faulty, corrected in PAIRS:
        assert faulty.source
        assert faulty.argument
        assert faulty.claim == corrected.claim
        assert faulty.private is False
        assert corrected.private is True


def test_reports_are_cited_for_most():
    """At least fifteen cite a public report or a paper; the rest say that they are a class."""
    cited = [f for f, _ in PAIRS if re.search(r"issue|pull request|\d{4}", f.source)]
    assert len(cited) >= 15
    for faulty, _ in PAIRS:
        assert faulty in cited or faulty.source.startswith("defect class")


@pytest.mark.parametrize(("faulty", "corrected"), PAIRS, ids=IDS)
def test_truths_of_pairs(faulty, corrected):
    """The exact loss or curve of the faulty one breaks the claim; the corrected one keeps it."""
    assert faulty.violates() is True
    assert corrected.violates() in (False, None)
    if faulty.delta is not None:
        assert faulty.delta(faulty.claim.epsilon) > faulty.claim.delta


@pytest.mark.parametrize(("faulty", "corrected"), PAIRS, ids=IDS)
def test_event_shows_the_defect_and_spares_the_correction(faulty, corrected):
    """The event exceeds the claim by 5.5 standard errors on the faulty one only."""
    found, error = excess(faulty, faulty.event, seed=11)
    assert found - faulty.claim.delta > 5.5 * error
    found, error = excess(corrected, faulty.event, seed=12)
    assert found - corrected.claim.delta < 5.5 * error


@pytest.mark.parametrize(("faulty", "corrected"), PAIRS, ids=IDS)
def test_events_stay_below_the_curves(faulty, corrected):
    """The event of either does not exceed the stated divergence of the pair."""
    for specimen in (faulty, corrected):
        if specimen.delta is None:
            continue
        found, error = excess(specimen, specimen.event, seed=13)
        assert found < specimen.delta(specimen.claim.epsilon) + 5.5 * error


@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_other_claims(epsilon):
    """The faulty are as faulty, and the fixed as right, at smaller claims."""
    for faulty, corrected in zoo.defects.twins(epsilon):
        assert faulty.violates() is True
        assert corrected.violates() in (False, None)


def test_rounded_mean_moves_too_far_and_exactly():
    """One row within its bounds moves the rounded sum of squared deviations by over 400."""
    rows, neighbour = ROUNDED[0].pairs[0]
    assert (rows != neighbour).sum() == 1
    for x in (rows, neighbour):
        assert ((x >= 2.0**50) & (x <= 2.0**50 + 1)).all()
    wrong, right = (
        abs(each.mechanism.statistic(rows) - each.mechanism.statistic(neighbour))
        for each in ROUNDED
    )
    assert wrong > 400
    assert right == pytest.approx(1023 / 1024, rel=1e-12)


def test_corrected_deviations_on_many_neighbours():
    """The corrected sum of squared deviations stays within its sensitivity on random tables."""
    rng = np.random.default_rng(8)
    deviations = ROUNDED[1].mechanism.statistic
    offset = 2.0**50
    for _ in range(200):
        rows = offset + rng.integers(0, 5, 1024) / 4
        other = rows.copy()
        other[rng.integers(1024)] = offset + rng.integers(0, 5) / 4
        assert abs(deviations(rows) - deviations(other)) <= 1023 / 1024 * (1 + 1e-9)


def test_narrow_count_wraps():
    """In eight bits, 127 and one more is -128."""
    narrow = zoo.find("count: integer overflow (faulty)").mechanism.statistic
    assert narrow(np.ones(127)) == 127
    assert narrow(np.ones(128)) == -128


@pytest.mark.slow
def test_monotone_factor_loses_what_theory_says():
    """Counts (3, 3) against (2, 4) lose 1.434 at epsilon = 1 without the factor 2."""
    faulty = zoo.find("exponential mechanism, monotone factor under replacement (faulty)", 0.999999)
    assert faulty.epsilon == pytest.approx(1.434, abs=1e-3)


def test_one_never_has_finer_bits():
    """Two million textbook draws from 1 are all multiples of 2^-53, and many from 0 are not."""
    faulty, corrected = zoo.defects.naive_laplace(1.0)
    rng = np.random.default_rng(21)
    from_one = faulty.mechanism(np.array([1.0]), rng, 2_000_000)
    assert not faulty.event(from_one).any()
    from_zero = faulty.mechanism(np.array([0.0]), rng, 100_000)
    assert faulty.event(from_zero).mean() > 0.19
    for centre in (0.0, 1.0):
        assert not faulty.event(corrected.mechanism(np.array([centre]), rng, 100_000)).any()


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.9, 1.0])
def test_grid_curve_by_summing(epsilon):
    """The curve on a grid of 2^-20 is within the grid's error of the continuous one."""
    _, corrected = zoo.defects.naive_laplace(1.0)
    continuous = max(0.0, 1 - math.exp((epsilon - 1) / 2))
    assert corrected.delta(epsilon) == pytest.approx(continuous, abs=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_private_size_by_summing(epsilon):
    """Two half lines reach the whole positive part of the densities' difference."""
    faulty = zoo.find("mean: private number of rows treated as public (faulty)", 0.5)
    grid = np.linspace(-120, 120, 4_800_001)
    p = np.exp(-np.abs(grid - 1) / 2) / 4
    q = np.exp(-np.abs(grid - 0.5)) / 2
    over = np.maximum(p - math.exp(epsilon) * q, 0)
    assert faulty.delta(epsilon) == pytest.approx(float(np.trapezoid(over, grid)), abs=1e-6)


def test_clipped_noise_by_summing():
    """Clipped noise of width 3 shows its end with the mass of the tail."""
    faulty = zoo.find("count: noise clipped in place of the output (faulty)", 0.5)
    tail = math.exp(-0.5 * 3) / (1 + math.exp(-0.5))
    assert faulty.delta(50.0) == pytest.approx(tail, rel=1e-12)
    z = np.arange(-3000, 3001)
    law = np.exp(-0.5 * np.abs(z))
    law /= law.sum()
    p = np.array([law[np.clip(z, -3, 3) == v].sum() for v in range(-3, 5)])
    q = np.array([law[np.clip(z, -3, 3) + 1 == v].sum() for v in range(-3, 5)])
    for epsilon in (0.0, 0.5):
        over = np.maximum(p - math.exp(epsilon) * q, 0).sum()
        assert faulty.delta(epsilon) == pytest.approx(over, abs=1e-12)


def test_the_page_lists_every_specimen_and_pair():
    """The documentation's tables hold every name with its loss and source."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "zoo.md").read_text()
    lines = page.splitlines()
    named = [(s.name, s) for s in zoo.specimens(0.1)]
    named += [(name, faulty) for name, (faulty, _) in zip(IDS, PAIRS, strict=True)]
    for name, specimen in named:
        rows = [line for line in lines if line.startswith(f"| {name} |")]
        loss = "infinite" if math.isinf(specimen.epsilon) else f"{specimen.epsilon:.4g}"
        assert any(f"| {loss} |" in row and specimen.source in row for row in rows), name


@pytest.mark.parametrize("claim", [0.1, 0.5, 0.999999])
def test_the_misread_smoothing_loses_what_a_search_finds(claim):
    """Over all scales and shifts that its smooth bound allows: 1.5015 at a claim of 1."""
    faulty = zoo.find("median: smoothing without its brackets (faulty)", claim)
    least, y = 6 / claim, np.concatenate([-np.logspace(7, -3, 20_000), np.logspace(-3, 7, 20_000)])
    found = 0.0
    for wider in np.linspace(-1.5 * claim, 1.5 * claim, 61):
        other = least * math.exp(wider)
        for moved in (0, 0.5, 1):  # in shares of the smaller of the two smooth sensitivities
            shift = moved * min(1, math.exp(wider))
            first, second = least / (least**2 + y**2), other / (other**2 + (y - shift) ** 2)
            found = max(found, float(np.abs(np.log(first / second)).max()))
    assert found == pytest.approx(faulty.supremum, rel=1e-6)
    assert claim < 0.9 or faulty.supremum == pytest.approx(1.5015, abs=1e-4)
    assert zoo.find("median: smoothing without its brackets (corrected)").supremum is None


@pytest.mark.slow_cases("0.0")
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 1.4])
def test_cauchy_noise_of_two_scales_by_summing(epsilon):
    """The curve of the misread smoothing is the integral of what exceeds; no loss is above 1.5."""
    faulty = zoo.find("median: smoothing without its brackets (faulty)", 0.999999)
    rng = np.random.default_rng(5)
    narrow, wide = (
        np.median(np.abs(faulty.mechanism(rows, rng, 200_000) - 2)) for rows in faulty.pairs[0]
    )
    assert math.log(wide / narrow) == pytest.approx(1.5, abs=0.02)
    # In exact scales: 6 times the smooth sensitivities 3 r^3 and 3 r^2, or 2 r and 2.
    r = math.exp(-1.5)
    narrow, wide = 6 * max(2 * r, 3 * r**3), 6 * max(2, 3 * r**2)
    angles = (np.arange(2_000_000) + 0.5) / 2_000_000 * math.pi - math.pi / 2
    y = narrow * np.tan(angles)  # even steps of the narrow law
    ratio = wide / narrow * (narrow**2 + y**2) / (wide**2 + y**2)  # wide to narrow
    over = np.maximum(1 - math.exp(epsilon) * ratio, 0).mean()
    assert faulty.delta(epsilon) == pytest.approx(float(over), abs=1e-5)
    assert 1 / ratio.min() == pytest.approx(math.exp(1.5), rel=1e-4)


def test_the_noise_of_monotone_answers_loses_half_as_much_again():
    """With halves of epsilon = 1 the loss is e1 + 2 e2 = 1.5, and 1 with twice the noise."""
    faulty, corrected = zoo.defects.twins(1.0)[-1]
    assert faulty.name == "sparse vector: noise of monotone answers (faulty)"
    assert (faulty.epsilon, corrected.epsilon) == pytest.approx((1.5, 1.0), rel=1e-12)
