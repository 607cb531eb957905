"""Pairs and ranks against the published tables, exact arithmetic and independent tails."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from hushed.errors import ParameterError, TooFewPairs
from hushed.sensitivity import choose_rank

GAMMAS = ["0.5", "0.33", "0.2", "0.1", "0.05", "0.01", "0.001"]
CALIBRATIONS = ["dkw", "marginal", "training-conditional"]


def needed(calibration, gamma):
    return choose_rank(calibration, gamma=Fraction(gamma)).pairs


@pytest.mark.slow_cases("0.1-500-489", "0.1-100-None")
@pytest.mark.parametrize(
    ("gamma", "tables", "rank"), [("0.1", 500, 489), ("0.05", 2000, 497), ("0.1", 100, None)]
)
def test_pairs_that_share_public_rows_would_need_a_higher_rank(gamma, tables, rank):
    """By Hoeffding's inequality with so many disjoint tables; where those are few, no rank does.

    Disjoint or simulated tables need the rank of a binomial tail.
    """
    paid = np.linspace(0, float(Fraction(gamma)), 2001)

    def chance(k):
        shared = np.exp(-2 * tables * paid**2)
        return float((shared + stats.binom.sf(k - 1, 500, 1 - float(gamma) + paid)).min())

    enough = [k for k in range(1, 501) if chance(k) <= 0.05]
    assert (enough[0] if enough else None) == rank
    alone = next(k for k in range(501) if stats.binom.sf(k - 1, 500, 1 - float(gamma)) <= 0.05)
    assert alone == {"0.1": 462, "0.05": 484}[gamma]


@pytest.mark.parametrize(
    ("calibration", "pairs"),
    [
        ("dkw", [8, 20, 61, 285, 1305, 41971, 5486187]),
        ("marginal", [1, 3, 4, 9, 19, 99, 999]),
        ("training-conditional", [4, 8, 18, 46, 112, 760, 10228]),
    ],
)
def test_reference_numbers_of_pairs(calibration, pairs):
    """The smallest numbers of pairs, k = m, for seven gammas."""
    found = [choose_rank(calibration, gamma=Fraction(g)) for g in GAMMAS]
    assert [r.pairs for r in found] == pairs
    assert [r.rank for r in found] == pairs


def test_published_rho():
    """Rubinstein and Alda's rho for a given gamma, to the digits printed."""
    expected = [0.08396822, 0.04613996, 0.023533, 0.009744612, 0.00418287, 0.0006361227, 4.786e-05]
    digits = [8, 8, 6, 9, 8, 10, 8]
    found = [choose_rank("dkw", gamma=Fraction(g)).sampling_error for g in GAMMAS]
    assert [round(rho, d) for rho, d in zip(found, digits, strict=True)] == expected


@pytest.mark.parametrize(
    ("pairs", "ranks"),
    [
        (1500, {"dkw": 1496, "training-conditional": 1452, "marginal": 1426}),
        (50000, {"dkw": 47961, "training-conditional": 47680, "marginal": 47501}),
    ],
)
def test_reference_ranks_for_pairs_and_gamma(pairs, ranks):
    """The rank kept at gamma = 0.05 for 1,500 and 50,000 pairs."""
    for calibration, rank in ranks.items():
        assert choose_rank(calibration, gamma=Fraction("0.05"), pairs=pairs).rank == rank


def test_reference_split_at_1500_pairs():
    """The best share of pairs left out at m = 1500, gamma = 0.05 is near 0.0474."""
    found = choose_rank("training-conditional", gamma=Fraction("0.05"), pairs=1500)
    assert found.tail_mass == pytest.approx(0.0474, abs=5e-5)


def test_published_gamma_for_pairs_alone():
    """1,500 pairs support gamma 0.04689906 under DKW, rounded up, and one pair none at all."""
    reached = choose_rank("dkw", pairs=1500)
    assert round(reached.gamma, 8) == 0.04689906
    assert reached.rank == 1500
    shares = np.linspace(1e-5, 0.4, 400_001)
    best = (shares + np.sqrt(np.log(1 / shares) / 3000)).min()
    assert best - 1e-9 < reached.gamma <= best + 1e-9
    with mpmath.workdps(40):
        rho = mpmath.mpf(reached.sampling_error)
        assert reached.gamma >= rho + mpmath.sqrt(mpmath.log(1 / rho) / 3000)
    with pytest.raises(ParameterError, match="pairs=1"):
        choose_rank("dkw", pairs=1)


def test_everyone_needs_the_stated_pairs():
    """Gamma 0.05 for 1,000 people at once: 19,999 pairs, 270,127, or 2.8 billion."""
    level = Fraction("0.05") / 1000
    assert choose_rank("marginal", gamma=level).pairs == 19999
    assert choose_rank("training-conditional", gamma=level).pairs == 270127
    assert 2.7e9 < choose_rank("dkw", gamma=level).pairs < 2.9e9


def test_the_double_that_goes_wrong():
    """At gamma = 0.18 and m = 149 the rank is 123; in doubles it would be 124."""
    assert choose_rank("marginal", gamma=Fraction("0.18"), pairs=149).rank == 123
    assert math.ceil((1 - 0.18) * 150) == 124  # what the exact arithmetic is for


def test_marginal_is_the_smallest_rank_by_brute_force():
    """For every m up to 60 and many gammas, k is the smallest with k/(m+1) at least 1 - gamma."""
    for m in range(1, 61):
        for percent in (1, 2, 5, 10, 18, 25, 33, 50, 90, 99):
            gamma = Fraction(percent, 100)
            valid = [k for k in range(1, m + 1) if Fraction(k, m + 1) >= 1 - gamma]
            if valid:
                assert choose_rank("marginal", gamma=gamma, pairs=m).rank == valid[0]
            else:
                with pytest.raises(TooFewPairs):
                    choose_rank("marginal", gamma=gamma, pairs=m)


def covered(m, k, q):
    """Exact q Pr(Binomial(m, q) <= k - 1): what a split at the covered share q proves."""
    below = sum(math.comb(m, j) * q**j * (1 - q) ** (m - j) for j in range(k))
    return q * below


@pytest.mark.slow_cases("5")
@pytest.mark.parametrize("percent", [5, 10, 20, 33, 50, 80])
def test_conditional_split_holds_in_exact_arithmetic(percent):
    """For small m the recorded split proves 1 - gamma in rational numbers."""
    gamma = Fraction(percent, 100)
    least = needed("training-conditional", gamma)
    for m in range(least, least + 40, 3):
        found = choose_rank("training-conditional", gamma=gamma, pairs=m)
        q = 1 - Fraction(found.tail_mass)
        assert covered(m, found.rank, q) >= 1 - gamma
        assert float(1 - covered(m, found.rank, q) / q) == pytest.approx(
            found.sampling_error, abs=1e-12
        )


@pytest.mark.parametrize(
    ("m", "gamma"), [(30, 0.2), (46, 0.1), (200, 0.05), (1500, 0.05), (761, 0.01)]
)
def test_conditional_rank_is_the_smallest(m, gamma):
    """No split whatsoever supports the next smaller rank, by SciPy's binomial on a fine grid."""
    found = choose_rank("training-conditional", gamma=Fraction(str(gamma)), pairs=m)
    q = np.linspace(1 - gamma, 1, 20001)
    at = lambda k: (q * stats.binom.cdf(k - 1, m, q)).max()  # noqa: E731
    assert at(found.rank) >= 1 - gamma
    assert at(found.rank - 1) < 1 - gamma
    tail = stats.beta.sf(1 - found.tail_mass, found.rank, m - found.rank + 1)
    assert tail == pytest.approx(1 - found.sampling_error, abs=1e-9)


def test_conditional_pairs_alone_reach_the_best_gamma():
    """With k = m the smallest gamma is 1 - max q (1 - q^m), by a 40-digit search, rounded up."""
    for m in (1, 2, 5, 112, 1500):
        found = choose_rank("training-conditional", pairs=m)
        with mpmath.workdps(40):
            left, right = mpmath.mpf(0), mpmath.mpf(1)
            for _ in range(300):
                a, b = (2 * left + right) / 3, (left + 2 * right) / 3
                left, right = (left, b) if a - a ** (m + 1) > b - b ** (m + 1) else (a, right)
            exact = 1 - left * (1 - left**m)
        assert found.rank == m
        assert found.gamma >= exact
        assert found.gamma - exact < 3e-15


def test_marginal_pairs_alone_round_up():
    """M pairs support 1/(m+1), never a hair less."""
    for m in (1, 2, 6, 48, 10**6 + 2):
        gamma = choose_rank("marginal", pairs=m).gamma
        assert 0 <= Fraction(gamma) - Fraction(1, m + 1) < Fraction(1, 2**52)


@pytest.mark.slow_cases("training-conditional-0.05")
@pytest.mark.parametrize("gamma", ["0.5", "0.33", "0.18", "0.123", "0.05", "0.015", "0.01"])
@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_the_number_in_the_error_works_and_one_fewer_does_not(calibration, gamma):
    """TooFewPairs names the smallest number of pairs that suffices."""
    least = needed(calibration, gamma)
    if least == 1:
        return
    with pytest.raises(TooFewPairs) as caught:
        choose_rank(calibration, gamma=Fraction(gamma), pairs=least - 1)
    assert caught.value.needed == least
    assert caught.value.given == least - 1
    assert f"at least {least} sampled pairs" in str(caught.value)
    assert choose_rank(calibration, gamma=Fraction(gamma), pairs=least).rank == least


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_dkw_bound_is_never_below_the_exact_ranks(calibration):
    """All ranks at m = 5000 cover 1 - gamma by the exact marginal law k / (m + 1)."""
    for gamma in ("0.5", "0.2", "0.1", "0.05", "0.03"):
        found = choose_rank(calibration, gamma=Fraction(gamma), pairs=5000)
        assert Fraction(found.rank, 5001) >= 1 - Fraction(gamma)


@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"gamma": Fraction(0)},
        {"gamma": Fraction(1)},
        {"gamma": Fraction(-1, 2)},
        {"pairs": 0},
        {"pairs": -3, "gamma": Fraction(1, 2)},
    ],
)
def test_bad_wishes(calibration, wanted):
    """Neither gamma nor pairs, or one out of range, is refused."""
    with pytest.raises(ParameterError):
        choose_rank(calibration, **wanted)


def test_unknown_calibration():
    """The message lists the calibrations that there are."""
    with pytest.raises(ParameterError, match=r"training-conditional.*marginal.*dkw"):
        choose_rank("bootstrap", pairs=3)


def test_too_few_pairs_survives_a_trip_between_processes():
    """The error keeps its numbers through pickle."""
    import pickle

    error = TooFewPairs(given=3, needed=9, gamma=0.1, calibration="marginal")
    again = pickle.loads(pickle.dumps(error))
    assert (again.given, again.needed, again.gamma, str(again)) == (3, 9, 0.1, str(error))
