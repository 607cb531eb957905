"""Privacy at risk: published tables, exact quantities by simulation, and where they part."""

import math

import numpy as np
import pytest
from scipy import integrate, special

from hushed import risk
from hushed.errors import ParameterError

TABLE = {
    (0.5, 1.0): (0.6224593312, 0.5395961958, 0.5192833390, 0.5036665430),
    (0.2, 0.7): (0.3600793705, 0.3015570520, 0.2926152997, 0.2869741621),
    (1.5, 2.5): (0.8463418058, 0.7475968060, 0.6959479968, 0.6229724535),
}


class TestPublished:
    @pytest.mark.parametrize("pair", TABLE)
    def test_reference_table(self, pair):
        """Confidence for 1, 2, 3 and 10 dimensions equals the reference table to 10 digits."""
        for dims, wanted in zip((1, 2, 3, 10), TABLE[pair], strict=True):
            assert risk.published_confidence(*pair, dims) == pytest.approx(wanted, abs=5.1e-11)

    @pytest.mark.parametrize("dims", [1, 2, 5, 40])
    def test_bessel_density(self, dims):
        """The mixture of Gamma distributions equals the integral of the Bessel density."""

        def density(t):
            log = (1.5 - dims) * math.log(2) + (dims - 0.5) * math.log(t) - special.gammaln(dims)
            return math.exp(log - t) * special.kve(dims - 0.5, t) / math.sqrt(math.pi)

        low = integrate.quad(density, 0, 0.8, epsabs=1e-13)[0]
        high = integrate.quad(density, 0, 2.0, epsabs=1e-13)[0]
        assert risk.published_confidence(0.8, 2.0, dims) == pytest.approx(low / high, rel=1e-9)

    @pytest.mark.parametrize("dims", [1, 3, 10])
    @pytest.mark.parametrize("confidence", [0.0, 1e-9, 0.3, 0.95, 1.0])
    def test_inverse(self, dims, confidence):
        """The level has at least the confidence, and the next number below it has not."""
        level = risk.published_epsilon(confidence, 1.7, dims)
        assert risk.published_confidence(level, 1.7, dims) >= confidence
        if level > 0:
            below = math.nextafter(level, 0.0)
            assert risk.published_confidence(below, 1.7, dims) < confidence

    def test_closed_inverse(self):
        """For one dimension the inverse is the published closed form."""
        wanted = math.log(1 / (1 - 0.4 * (1 - math.exp(-1.3))))
        assert risk.published_epsilon(0.4, 1.3) == pytest.approx(wanted, rel=1e-14)


class TestExact:
    @pytest.mark.parametrize(
        ("pair", "published", "delta", "beyond"),
        [
            ((0.5, 1.0), 0.3775, 0.2212, 0.8468),
            ((0.9, 1.0), 0.0612, 0.0488, 0.7178),
            ((1.9, 2.0), 0.0165, 0.0488, 0.5955),
        ],
    )
    def test_reference_table(self, pair, published, delta, beyond):
        """Published risk, exact delta and exact tail equal the reference table."""
        assert 1 - risk.published_confidence(*pair) == pytest.approx(published, abs=5e-5)
        assert risk.delta(*pair) == pytest.approx(delta, abs=5e-5)
        assert risk.loss_exceeds(*pair) == pytest.approx(beyond, abs=5e-5)

    def test_simulation(self):
        """200,000 simulated losses agree with both exact quantities within 5 standard errors."""
        rng = np.random.default_rng(3)
        y = rng.laplace(0, 1 / 2.0, 200_000)
        losses = (np.abs(y - 1) - np.abs(y)) * 2.0
        outside = (np.abs(losses) > 1.2).mean()
        assert abs(outside - risk.loss_exceeds(1.2, 2.0)) < 5 * 0.5 / math.sqrt(200_000)
        hits = np.maximum(1 - np.exp(1.2 - losses), 0)
        assert abs(hits.mean() - risk.delta(1.2, 2.0)) < 5 * hits.std() / math.sqrt(200_000)

    def test_edges(self):
        """At the full level nothing is left over; at zero almost everything is."""
        assert risk.delta(1.0, 1.0) == 0.0
        assert risk.loss_exceeds(1.0, 1.0) == 0.0
        assert risk.loss_exceeds(0.0, 1.0) == 1.0
        assert risk.published_confidence(0.0, 1.0, 7) == 0.0
        assert risk.published_confidence(1.0, 1.0, 7) == 1.0

    def test_epsilon_inverts_delta(self):
        """The exact level at a delta brings the delta back."""
        assert risk.epsilon(risk.delta(0.8, 2.0), 2.0) == pytest.approx(0.8, rel=1e-12)


class TestOverPromise:
    def test_crossing_at_two(self):
        """At epsilon0 = 2 the published risk is too low exactly on (0.539, 2)."""
        start = risk.crossing(2.0)
        assert start == pytest.approx(0.539, abs=6e-4)
        for level in np.linspace(0.01, 1.99, 199):
            below = 1 - risk.published_confidence(level, 2.0) < risk.delta(level, 2.0)
            assert below == (level > start)

    @pytest.mark.parametrize("epsilon0", [1e-3, 0.5, 1.0, 1.0986])
    def test_never_up_to_log_three(self, epsilon0):
        """Up to epsilon0 = log 3 the published risk is never below the exact delta."""
        assert risk.crossing(epsilon0) is None
        for share in np.linspace(0.01, 0.99, 50):
            level = share * epsilon0
            assert 1 - risk.published_confidence(level, epsilon0) >= risk.delta(level, epsilon0) * (
                1 - 1e-9
            )

    def test_assessment_warns_with_the_numbers(self):
        """The warning names both numbers where the published risk is too low, else is silent."""
        assert any(
            "0.01647" in text and "0.04878" in text for text in risk.assess(1.9, 2.0).warnings
        )
        assert not any("promise more" in text for text in risk.assess(0.5, 1.0).warnings)


class TestSampling:
    def test_samples_give_the_accuracy(self):
        """The number of samples reaches the accuracy and one fewer does not."""
        n = risk.samples_for_accuracy(0.95, rho=0.02)
        assert risk.data_confidence(0.999999, rho=0.02, samples=n) >= 0.95 * 0.999998
        assert 1 - 2 * math.exp(-2 * 0.02**2 * (n - 1)) < 0.95

    def test_combined_is_the_product(self):
        """Theorem 6 at eta = 1 is the product of the two cases; a larger eta lowers it."""
        options = {"share": 0.95, "rho": 0.02, "samples": 10_000}
        both = risk.combined_confidence(0.5, 1.0, **options)
        assert both == pytest.approx(0.6224593312 * 0.95 * (1 - 2 * math.exp(-8)), rel=1e-9)
        assert risk.combined_confidence(0.5, 1.0, eta=1.2, **options) < both

    def test_too_few_samples_give_no_confidence(self):
        """A vacuous accuracy is 0, never negative."""
        assert risk.data_confidence(0.9, rho=0.01, samples=10) == 0.0


@pytest.mark.parametrize("prior", [0.01, 0.5, 0.9])
def test_belief_is_reached_by_randomised_response(prior):
    """The bound on belief is the posterior after randomised response, and never exceeds 1."""
    posterior = prior * math.exp(0.8) / (prior * math.exp(0.8) + 1 - prior)
    assert risk.belief(0.8, prior) == pytest.approx(posterior, rel=1e-12)
    assert risk.belief(1e6, prior) == 1.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: risk.delta(1.1, 1.0),
        lambda: risk.published_confidence(2.0, 1.0),
        lambda: risk.loss_exceeds(-0.1, 1.0),
        lambda: risk.delta(math.nan, 1.0),
        lambda: risk.delta(0.5, math.inf),
        lambda: risk.published_confidence(0.5, 1.0, 0),
        lambda: risk.published_epsilon(1.5, 1.0),
        lambda: risk.data_confidence(0.5, rho=0.0, samples=5),
        lambda: risk.combined_confidence(0.5, 1.0, share=0.9, rho=0.1, samples=9, eta=0.0),
        lambda: risk.belief(-1.0),
    ],
)
def test_bad_input_is_refused(call):
    """Levels above epsilon0, negative numbers and NaN are refused."""
    with pytest.raises(ParameterError):
        call()


def test_a_level_is_printed_as_it_is():
    """Rounded to the calibrated one, it would be a level that is never left."""
    found = risk.assess(0.999999999, 1.0)
    assert "Risk of level 0.999999999 nats" in str(found)
    assert f"losing more than 0.999999999: that is {found.loss_exceeds:.3f}" in str(found)
    assert "Assessment of epsilon 0.999999999 of 1 nats" in repr(found)
