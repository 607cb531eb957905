"""Composition methods against published tables, exact sums and each other."""

import math
from dataclasses import dataclass

import mpmath
import pytest

from hushed import InverseSensitivity, privacy_loss, release
from hushed.accounting import (
    advanced_epsilon,
    at_risk_epsilon,
    compose,
    epsilon_for_advantage,
    optimal_epsilon,
    parallel,
)
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.privacy_loss import PrivacyProfile
from hushed.statistics import median

METHODS = ["basic", "advanced", "optimal", "zcdp", "renyi", "pld", "at-risk"]

# epsilon0, releases: basic, advanced, Theorem 3.1 at the cost optimum, exact
TABLE = {
    (0.1, 10): (1.00, 1.623, 1.591, 0.990),
    (0.1, 300): (30.0, 11.466, 10.504, 8.160),
    (0.5, 100): (50.0, 56.429, 41.932, 28.502),
    (1.0, 300): (300.0, 598.6, 354.3, 167.27),
}


@dataclass(frozen=True)
class Mechanism:
    """What a mechanism shows to the accountant."""

    guarantee: Guarantee
    loss: PrivacyProfile


@dataclass(frozen=True)
class Certificate:
    """What a certificate shows to the accountant."""

    guarantee: Guarantee


def published_optimum(epsilon0):
    """Root of the published scalar cost condition, in mpmath."""
    return float(
        mpmath.findroot(
            lambda e: 1 / e - 1 / epsilon0 - mpmath.log(1 + mpmath.expm1(e) / e**2),
            (0.3 * epsilon0, 0.8 * epsilon0),
            solver="anderson",
        )
    )


class TestTable:
    @pytest.mark.parametrize("case", TABLE)
    def test_reference_values(self, case):
        """Basic, advanced, Theorem 3.1 and exact composition equal the reference table."""
        epsilon0, count = case
        basic, advanced, at_risk, exact = TABLE[case]
        items = [privacy_loss.laplace(epsilon0)] * count
        digits = {"abs": 5.1e-4} if advanced < 100 else {"abs": 5.1e-2}

        def epsilon(method, **options):
            return compose(items, delta=1e-5, method=method, **options).epsilon

        assert epsilon("basic") == pytest.approx(basic, rel=1e-12)
        assert epsilon("advanced") == pytest.approx(advanced, **digits)
        level = published_optimum(epsilon0)
        assert epsilon("at-risk", confidence_levels=[level] * count) == pytest.approx(
            at_risk, **digits
        )
        found = compose(items, delta=1e-5)
        assert found.epsilon == pytest.approx(exact, rel=3e-4)
        assert found.exact.low <= exact * (1 + 1e-3)
        assert found.exact.relative_gap <= 2e-4

    @pytest.mark.parametrize("case", TABLE)
    @pytest.mark.parametrize("method", METHODS)
    def test_no_method_is_below_the_exact_value(self, case, method):
        """Every method is at least the proven lower end of the exact value."""
        found = compose([privacy_loss.laplace(case[0])] * case[1], delta=1e-5, method=method)
        assert found.epsilon >= found.exact.low
        assert not any("not a guarantee" in text for text in found.warnings)

    @pytest.mark.parametrize("epsilon0", [1e-6, 0.01, 0.3, 1.0, 3.0])
    def test_no_level_makes_the_published_mean_too_small(self, epsilon0):
        """Whatever the level, half of the runs lose at most what Theorem 3.1 says."""
        count, middle = 2000, 0.5
        losses = count * (epsilon0 - 1 + math.exp(-epsilon0))  # Laplace's mean loss
        for share in (0.0, 0.3, 3**-0.5, 0.9, 1.0):
            levels = [share * epsilon0] * count
            items = [privacy_loss.laplace(epsilon0)] * count
            found = compose(items, delta=middle, method="at-risk", confidence_levels=levels)
            swing = epsilon0 * math.sqrt(2 * count * math.log(1 / middle))
            assert found.epsilon - swing >= 1.2 * losses * (1 - 1e-9)
            assert found.epsilon >= found.exact.low

    def test_theorem_without_its_own_confidence_may_be_too_small(self):
        """A confidence of 1 in a small level is no theorem: the exact composition is larger."""
        loose = at_risk_epsilon(3.0, 0.01, 1000, 0.5, confidence=1.0)
        assert loose < privacy_loss.laplace(3.0).compose(1000).epsilon_bracket(0.5).low

    def test_theorem_without_confidence_is_advanced_composition(self):
        """With confidence 0, Theorem 3.1 is Dwork and Roth's Theorem 3.20."""
        wanted = compose([Guarantee(epsilon=0.2)] * 50, delta=1e-6, method="advanced").epsilon
        assert at_risk_epsilon(0.2, 0.1, 50, 1e-6, confidence=0.0) == pytest.approx(wanted)


def test_a_joint_delta_that_the_releases_use_up_is_refused():
    """Two releases of 1e-6 leave nothing of 2e-6 for the advanced theorem, and some of 2.1e-6."""
    promises = [Guarantee(epsilon=0.1, delta=1e-6)] * 2
    with pytest.raises(ParameterError, match="above the sum of the releases' own, 2e-06"):
        compose(promises, delta=2e-6, method="advanced")
    assert compose(promises, delta=2.1e-6, method="advanced").epsilon > 0.2


def test_what_has_no_guarantee_yet_is_told_where_it_is():
    """A chain promises for a distance, so its guarantee is a method: no attribute is missed."""

    class Chain:
        def guarantee(self, distance=1):
            return Guarantee(epsilon=0.5 * distance)

    with pytest.raises(ParameterError, match=r"of a chain its guarantee\(\)"):
        compose([Chain()])
    assert compose([Chain().guarantee(2)], delta=0.0).epsilon == pytest.approx(1.0)
    with pytest.raises(ParameterError, match=r"must be a mechanism, a release, .* got object"):
        compose([object()])


def test_a_release_is_composed_by_its_certificate():
    """As the certificate alone is; the answer of a query says its guarantee itself."""
    chosen = InverseSensitivity(median(rows=9, low=0, high=9), epsilon=0.5)
    made = release(chosen.statistic, list(range(9)), chosen)
    total = compose([made, made.certificate], delta=0.0)
    assert total.epsilon == pytest.approx(1.0)


class TestOptimal:
    @pytest.mark.parametrize(
        ("epsilon", "delta", "count", "joint"),
        [(0.1, 0.0, 20, 1e-6), (0.5, 1e-4, 7, 0.01), (0.01, 1e-9, 500, 1e-5), (2.0, 0.0, 3, 0.3)],
    )
    def test_kairouz_oh_viswanath(self, epsilon, delta, count, joint):
        """The joint delta at the returned level is the wanted one, by an exact binomial sum."""
        level = optimal_epsilon(epsilon, delta, count, joint)

        def exact(e):
            with mpmath.workdps(50):
                p = 1 / (1 + mpmath.exp(-epsilon))
                total = mpmath.fsum(
                    mpmath.binomial(count, j)
                    * p**j
                    * (1 - p) ** (count - j)
                    * max(1 - mpmath.exp(e - (2 * j - count) * mpmath.mpf(epsilon)), 0)
                    for j in range(count + 1)
                )
                return 1 - (1 - mpmath.mpf(delta)) ** count * (1 - total)

        assert exact(level) <= joint
        assert exact(level * (1 - 1e-6)) > joint

    def test_promises_that_surely_fail_have_no_level(self):
        """A delta of 1 is in its range: the answer is that no level is enough, and no error."""
        assert optimal_epsilon(1.0, 1.0, 2, 0.5) == math.inf
        assert optimal_epsilon(1.0, 1.0, 2, 1.0) == 0.0

    def test_equals_the_loss_distribution_of_bare_promises(self):
        """Bare equal promises: the loss distribution of the worst pair is the optimal theorem."""
        items = [Guarantee(epsilon=0.1, delta=1e-9)] * 300
        best = compose(items, delta=1e-5, method="optimal")
        bracket = compose(items, delta=1e-5).exact
        assert bracket.low <= best.epsilon * (1 + 1e-9)
        assert best.epsilon <= bracket.high * (1 + 1e-9)

    def test_unequal_promises(self):
        """The bound for unequal promises lies between the exact value and the sum."""
        items = [Guarantee(epsilon=0.05 * (1 + i % 3), delta=1e-8) for i in range(90)]
        found = compose(items, delta=1e-5, method="optimal")
        assert "3.5" in found.theorem
        assert found.exact.low <= found.epsilon <= sum(g.epsilon for g in items)

    @pytest.mark.parametrize(
        "call",
        [
            lambda: optimal_epsilon(-1.0, 0.0, 3, 0.1),
            lambda: optimal_epsilon(math.nan, 0.0, 3, 0.1),
            lambda: optimal_epsilon(1.0, 1.5, 3, 0.1),
            lambda: optimal_epsilon(1.0, 0.0, 0, 0.1),
            lambda: advanced_epsilon([0.1, -0.1], 1e-6),
            lambda: advanced_epsilon([0.1], 0.0),
            lambda: at_risk_epsilon(1.0, 2.0, 3, 1e-6, confidence=0.5),
            lambda: at_risk_epsilon(1.0, 0.5, 3, 0.0, confidence=0.5),
            lambda: at_risk_epsilon(1.0, 0.5, 3, 1.5, confidence=0.5),
        ],
    )
    def test_bad_input_of_theorems(self, call):
        """Negative levels, NaN and slacks out of range are refused."""
        with pytest.raises(ParameterError):
            call()


class TestInputs:
    def test_mechanism_certificate_and_bare_promise(self):
        """A mechanism's curve is used; of certificates and promises only (epsilon, delta)."""
        promise = Guarantee(epsilon=0.1)
        mechanism = Mechanism(promise, privacy_loss.laplace(0.1))
        by_curve = compose([mechanism] * 100).epsilon
        bare = compose([promise] * 100).epsilon
        assert by_curve == compose([privacy_loss.laplace(0.1)] * 100).epsilon
        assert compose([Certificate(promise)] * 100).epsilon == bare
        assert by_curve < bare

    def test_anything_else_is_refused(self):
        """A number is not a release."""
        with pytest.raises(ParameterError, match="got float"):
            compose([1.0])
        with pytest.raises(ParameterError, match="nothing to compose"):
            compose([])

    def test_gamma_is_carried_once_per_estimate(self):
        """A reused sampled sensitivity counts once; another one adds."""
        one = Guarantee(epsilon=0.1, gamma=0.05, estimates=(("a", 0.05),))
        other = Guarantee(epsilon=0.1, gamma=0.02, estimates=(("b", 0.02),))
        joint = compose([one] * 5 + [other]).guarantee
        assert joint.gamma == pytest.approx(0.07, abs=1e-15)
        assert dict(joint.estimates) == {"a": 0.05, "b": 0.02}
        again = compose([joint, one], delta=1e-5).guarantee
        assert again.gamma == pytest.approx(0.07, abs=1e-15)

    def test_gamma_stated_by_hand_is_never_forgotten(self):
        """Composing twice never loses a gamma that has no fingerprint."""
        by_hand = Guarantee(epsilon=0.1, gamma=0.03)
        sampled = Guarantee(epsilon=0.1, gamma=0.05, estimates=(("a", 0.05),))
        joint = compose([by_hand, sampled]).guarantee
        assert joint.gamma >= 0.08 - 1e-15
        assert compose([joint, by_hand], delta=1e-5).guarantee.gamma >= 0.11 - 1e-15

    def test_scope_and_origin_are_carried(self):
        """The weakest scope and any data-dependence are carried along."""
        strong = Guarantee(epsilon=0.1, gamma=0.01, protect="everyone", data_dependent=True)
        weak = Guarantee(epsilon=0.1, gamma=0.01, protect="record")
        sure = Guarantee(epsilon=0.1)
        assert compose([strong, weak]).guarantee.protect == "record"
        assert compose([strong, sure]).guarantee.protect == "everyone"
        assert compose([strong, weak]).guarantee.data_dependent
        assert not compose([weak, sure]).guarantee.data_dependent

    @pytest.mark.parametrize(
        ("items", "options", "message"),
        [
            (
                [Guarantee(epsilon=1.0), Guarantee(epsilon=1.0, neighbours="add-remove")],
                {},
                "neigh",
            ),
            ([Guarantee(epsilon=1.0, gamma=0.6)] * 2, {}, "gammas add up"),
            ([privacy_loss.gaussian(1.0)], {"delta": 0.0}, "above 0"),
            ([Guarantee(epsilon=1.0, delta=1e-3)], {"delta": 1e-6}, "larger delta"),
            ([Guarantee(epsilon=1.0)], {"delta": 2.0}, "delta must"),
            ([Guarantee(epsilon=1.0)], {"delta": math.nan}, "delta must"),
            ([Guarantee(epsilon=1.0)], {"method": "magic"}, "method must"),
            ([privacy_loss.gaussian(1.0)], {"method": "at-risk"}, "Laplace"),
            ([privacy_loss.gaussian(1.0)], {"method": "optimal"}, "pld"),
            ([privacy_loss.laplace(1.0)], {"method": "at-risk", "confidence_levels": [2.0]}, "lie"),
        ],
    )
    def test_refusals(self, items, options, message):
        """What cannot be joined is refused with a message that says why."""
        with pytest.raises(ParameterError, match=message):
            compose(items, **options)

    def test_pure_composition_is_the_sum(self):
        """At delta = 0 the loss distribution gives the sum of the largest losses."""
        found = compose([privacy_loss.laplace(0.3), privacy_loss.randomised_response(0.4)], delta=0)
        assert found.epsilon == pytest.approx(0.7, rel=1e-12)
        assert found.delta == 0.0

    def test_explanation_names_theorem_and_bracket(self):
        """The explanation names the source and the exact bracket."""
        text = compose([privacy_loss.laplace(0.1)] * 3, method="renyi").explain()
        assert "Mironov" in text
        assert "smallest possible" in text


class TestUnits:
    def test_rows_and_users_are_not_joined(self):
        """Promises for users make one for users; with one for rows among them they are refused."""
        users = [Guarantee(epsilon=0.25, unit="user")] * 2
        joint = compose(users, method="basic")
        assert joint.guarantee == Guarantee(epsilon=joint.epsilon, unit="user")
        assert "unit user" in joint.explain()
        for mixed in ([*users, Guarantee(epsilon=0.25)], [Guarantee(epsilon=0.25), *users]):
            with pytest.raises(ParameterError, match="neither promise implies the other"):
                compose(mixed, delta=0)

    @pytest.mark.parametrize("membership", ["private", "public"])
    def test_disjoint_rows_are_not_disjoint_users(self, membership):
        """A user may have rows in every part, so the largest promise does not cover a user."""
        users = [Guarantee(epsilon=0.5, neighbours="add-remove", unit="user")] * 2
        with pytest.raises(ParameterError, match="rows of one user"):
            parallel(users, membership=membership)


class TestParallel:
    def test_largest_promise_holds_under_add_remove(self):
        """Disjoint parts cost the largest epsilon and delta, and all gammas."""
        parts = [
            Guarantee(epsilon=0.3, delta=1e-6, neighbours="add-remove"),
            Guarantee(epsilon=0.5, neighbours="add-remove"),
        ]
        found = parallel(parts).guarantee
        assert (found.epsilon, found.delta) == (0.5, 1e-6)
        assert found.neighbours == "add-remove"

    def test_replace_one_needs_public_membership(self):
        """A replaced row may change its part: refused unless membership is public."""
        parts = [Guarantee(epsilon=0.3), Guarantee(epsilon=0.5)]
        with pytest.raises(ParameterError, match="leave one part"):
            parallel(parts)
        assert parallel(parts, membership="public").epsilon == 0.5
        with pytest.raises(ParameterError):
            parallel([privacy_loss.laplace(1.0)])


class TestAdvantage:
    @pytest.mark.parametrize("releases", [1, 50])
    @pytest.mark.parametrize("advantage", [0.01, 0.1, 0.7])
    def test_gaussian_closed_form(self, releases, advantage):
        """For Gaussian noise the level solves 2 Phi(ratio sqrt(k)/2) - 1 = advantage."""
        from scipy import stats

        wanted = 2 * stats.norm.ppf((1 + advantage) / 2) / math.sqrt(releases)
        found = epsilon_for_advantage(advantage, releases=releases, family="gaussian")
        assert wanted * (1 - 2e-5) <= found <= wanted * (1 + 1e-12)

    def test_laplace_closed_form(self):
        """One Laplace release: the level is -2 log(1 - advantage)."""
        wanted = -2 * math.log(0.9)
        found = epsilon_for_advantage(0.1)
        assert wanted * (1 - 2e-5) <= found <= wanted

    def test_level_keeps_the_promise(self):
        """The joint advantage at the level is at most the wanted one, and nearly reaches it."""
        level = epsilon_for_advantage(0.2, releases=1000)
        reached = privacy_loss.laplace(level).compose(1000).advantage()
        assert 0.2 * (1 - 1e-3) < reached <= 0.2

    @pytest.mark.parametrize("bad", [0.0, 1.0, math.nan])
    def test_bad_input(self, bad):
        """Advantages outside (0, 1) are refused."""
        with pytest.raises(ParameterError):
            epsilon_for_advantage(bad)


@pytest.mark.parametrize("delta", [1e-6, 1e-15, 1e-20, 1e-300])
def test_the_sum_of_the_deltas_is_always_enough(delta):
    """It was refused: the chance of an infinite loss was rounded to a larger number."""
    together = float(f"{2 * delta:.1g}")
    assert compose([Guarantee(epsilon=0.5, delta=delta)] * 2, delta=together).epsilon == 1.0


class TestWhatAnAuthorStates:
    """A mechanism that states a promise and a law of two releases is not composed by the law."""

    @pytest.mark.parametrize("method", ["pld", "zcdp", "renyi"])
    def test_a_law_below_the_promise_counts_for_nothing(self, method):
        """As a budget does: the promise is composed alone."""
        promise = Guarantee(epsilon=1.0)
        slip = Mechanism(promise, privacy_loss.laplace(0.1))
        found = compose([slip] * 2, delta=1e-6, method=method)
        alone = compose([Certificate(promise)] * 2, delta=1e-6, method=method)
        assert found == alone
        assert found.epsilon > 1.9

    @pytest.mark.parametrize("verb", [compose, parallel])
    def test_a_law_beyond_the_promise_is_refused(self, verb):
        """Their sum, or the largest of them, would otherwise be that of the promise."""
        promise = Guarantee(epsilon=0.1, neighbours="add-remove")
        with pytest.raises(ParameterError, match="not of the same release"):
            verb([Mechanism(promise, privacy_loss.laplace(1.0))])
