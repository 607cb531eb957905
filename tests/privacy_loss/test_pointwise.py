"""The loss at one output against densities of scipy, and against its law."""

import math

import numpy as np
import pytest
from scipy import stats

import hushed as hs
from hushed.errors import ParameterError

at_output = hs.privacy_loss.at_output


@pytest.mark.parametrize(("noise", "law"), [("laplace", stats.laplace), ("gaussian", stats.norm)])
@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_one_number(noise, law, scale):
    """It is the difference of the logarithms of two densities, at every output of an array."""
    outputs = np.linspace(-9, 9, 37).reshape(1, 37)
    found = at_output(outputs, 1.0, -0.5, noise=noise, scale=scale)
    wanted = law.logpdf(outputs, 1.0, scale) - law.logpdf(outputs, -0.5, scale)
    assert found.shape == (1, 37)
    assert found == pytest.approx(wanted, abs=1e-12)
    assert at_output(outputs, -0.5, 1.0, noise=noise, scale=scale) == pytest.approx(-found)
    assert type(at_output(2, 1.0, -0.5, noise=noise, scale=scale)) is float


@pytest.mark.parametrize(("noise", "law"), [("laplace", stats.laplace), ("gaussian", stats.norm)])
def test_several_numbers(noise, law):
    """Losses of the coordinates add up."""
    here, there = np.array([0.0, 1.0, 4.0]), np.array([0.5, 1.0, 2.0])
    outputs = np.random.default_rng(1).normal(size=(5, 3))
    wanted = (law.logpdf(outputs, here, 2.0) - law.logpdf(outputs, there, 2.0)).sum(axis=-1)
    assert at_output(outputs, here, there, noise=noise, scale=2.0) == pytest.approx(wanted)
    one = at_output(outputs[2], here, there, noise=noise, scale=2.0)
    assert one == pytest.approx(wanted[2])


def test_far_out_nothing_cancels():
    """At an output of 1e9 the loss of a small shift keeps its digits."""
    found = at_output(1e9, 1e-3, 0.0, noise="gaussian", scale=1.0)
    assert found == pytest.approx(1e-3 * (1e9 - 0.0005), rel=1e-12)


@pytest.mark.parametrize("output", [1e9, 1e17, 1e300, -1e17])
@pytest.mark.parametrize("shift", [1.0, 1e-3])
def test_far_out_laplace_noise_keeps_its_loss(output, shift):
    """It is the shift beside the scale, though no double tells the distances of 1e17 apart."""
    found = at_output([output, 0.0], [0.0, 0.0], [shift, 0.0], noise="laplace", scale=2.0)
    assert found == -math.copysign(shift / 2.0, output)


def test_chosen_candidates():
    """The exponential mechanism: chances with weights that are written out."""
    here, there, scale = [1.0, 0.0, -2.0], [0.0, 0.5, -2.0], 0.75
    chances = [[math.exp(u / scale) for u in scores] for scores in (here, there)]
    wanted = [
        math.log(a / sum(chances[0])) - math.log(b / sum(chances[1]))
        for a, b in zip(*chances, strict=True)
    ]
    assert at_output([0, 1, 2], here, there, noise="exponential", scale=scale) == pytest.approx(
        wanted
    )
    assert at_output(1, [0.0, 2000.0], [0.0, 0.0], noise="exponential", scale=1.0) == (
        pytest.approx(math.log(2))
    )


def test_the_law_of_the_loss_is_that_of_the_profile():
    """Over draws it exceeds a level as often as the exact law says; 5.5 standard deviations."""
    rng, draws = np.random.default_rng(2), 200_000
    loss = at_output(rng.laplace(size=draws), 0.0, 1.0, noise="laplace", scale=1.0)
    assert np.abs(loss).max() <= 1 + 1e-12
    exceeds = hs.risk.loss_exceeds(0.4, 1.0)
    assert np.mean(np.abs(loss) > 0.4) == pytest.approx(exceeds, abs=5.5 * 0.5 / math.sqrt(draws))
    assert loss.mean() == pytest.approx(math.exp(-1), abs=5.5 * loss.std() / math.sqrt(draws))


@pytest.mark.parametrize(
    ("arguments", "changes", "message"),
    [
        ((0, 0, 1), {"noise": "cauchy"}, "noise"),
        ((0, 0, 1), {"scale": 0}, "scale"),
        ((0, 0, 1), {"scale": True}, "scale"),
        ((0, 0, 1), {"scale": "2"}, "scale"),
        ((0, 0, 1), {"scale": np.True_}, "scale"),
        ((-1.7e308, 1e308, 1e308), {"noise": "gaussian"}, "no double"),
        ((1, [0, -1e300], [0, -1e300]), {"noise": "exponential", "scale": 1e-9}, "no double"),
        ((math.nan, 0, 1), {}, "output must be finite"),
        ((0, math.inf, 1), {}, "here must be finite"),
        (([0, 0], [0, 1], 1), {}, "shapes"),
        (([0, 0, 0], [0, 1], [1, 1]), {}, "2 numbers in its last axis"),
        ((2, [0, 1], [1, 1]), {"noise": "exponential"}, "from 0 to 1"),
        ((0.5, [0, 1], [1, 1]), {"noise": "exponential"}, "from 0 to 1"),
        ((0, 0, 1), {"noise": "exponential"}, "scores of all candidates"),
    ],
)
def test_what_is_refused(arguments, changes, message):
    """Unknown noise, scales that are none, and shapes that do not fit."""
    with pytest.raises(ParameterError, match=message):
        at_output(*arguments, **{"noise": "laplace", "scale": 1.0} | changes)
