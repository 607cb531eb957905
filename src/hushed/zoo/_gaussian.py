"""Gaussian noise with the classic constant, and mechanisms on a Poisson sample of the rows."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from hushed.guarantee import Guarantee
from hushed.zoo._curves import gaussian_delta, laplace_delta, subsampled_epsilon
from hushed.zoo._draws import Noise, Noisy, draw_sampled_count, first
from hushed.zoo._events import compare
from hushed.zoo._record import Curve, Specimen


def classic_gaussian(epsilon: float = 8.0, delta: float = 0.05) -> Specimen:
    """Gaussian noise with the classic constant, proved for epsilon below 1 only.

    Outputs of shape ``(size,)``. Whether the claim holds is decided by the exact curve: it happens
    to hold a good way above 1 and fails at the defaults, where the true delta is 0.110 and not
    0.05.
    """
    deviation = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    curve = partial(gaussian_delta, ratio=1 / deviation)
    return Specimen(
        name="Gaussian, classic constant" + (" above 1" if epsilon >= 1 else ""),
        mechanism=Noisy(first, Noise("normal", deviation)),
        claim=Guarantee(epsilon=epsilon, delta=delta),
        relation="every-answer",
        pairs=((np.array([1.0]), np.array([0.0])),),
        private=curve(epsilon) <= delta,
        epsilon=math.inf,
        supremum=math.inf,
        delta=curve,
        event=compare(">", 0.5 + epsilon * deviation**2),
        output="value, shape (size,)",
        source=(
            "Dwork and Roth 2014, Theorem 3.22 (epsilon below 1); "
            "Balle and Wang, ICML 2018, Theorem 8"
        ),
        argument="the optimal events are half lines",
    )


def subsampled_laplace(
    epsilon: float = 1.0, rate: float = 0.2, *, claim: float | None = None
) -> Specimen:
    """Count of a Poisson sample with Laplace noise.

    Outputs of shape ``(size,)``; the pair is one row against none, for add-remove neighbours.
    """
    true = math.log1p(rate * math.expm1(epsilon))
    return Specimen(
        name="Laplace on a Poisson sample" + ("" if claim is None else ", own claim"),
        mechanism=partial(draw_sampled_count, rate=rate, noise=Noise("laplace", 1 / epsilon)),
        claim=Guarantee(epsilon=true if claim is None else claim, neighbours="add-remove"),
        relation="one-row",
        pairs=((np.ones(1), np.ones(0)),),
        private=claim is None or true <= claim,
        epsilon=true,
        supremum=true,
        delta=partial(_sampled_delta, part=partial(laplace_delta, epsilon), rate=rate),
        event=compare(">=", 1.0),
        output="value, shape (size,)",
        source="Balle, Barthe, Gaboardi, NeurIPS 2018, Theorems 2 and 8",
        argument="a mixture against one of its parts: rate times a Laplace curve",
    )


def subsampled_gaussian(
    deviation: float = 1.0, rate: float = 0.2, epsilon: float = 0.5
) -> Specimen:
    """Count of a Poisson sample with Gaussian noise, claiming its own exact delta.

    Outputs of shape ``(size,)``; the pair is one row against none, for add-remove neighbours.
    """
    curve = partial(_sampled_delta, part=partial(gaussian_delta, ratio=1 / deviation), rate=rate)
    other = _unsampled_gaussian_delta(epsilon, ratio=1 / deviation, rate=rate)
    inner = subsampled_epsilon(epsilon, rate)
    return Specimen(
        name="Gaussian on a Poisson sample",
        aliases=("subsampled Gaussian",),
        mechanism=partial(draw_sampled_count, rate=rate, noise=Noise("normal", deviation)),
        claim=Guarantee(epsilon=epsilon, delta=max(curve(epsilon), other), neighbours="add-remove"),
        relation="one-row",
        pairs=((np.ones(1), np.ones(0)),),
        private=True,
        epsilon=math.inf,
        supremum=math.inf,
        delta=curve,
        event=compare(">", 0.5 + inner * deviation**2),
        output="value, shape (size,)",
        source="Balle, Barthe, Gaboardi, NeurIPS 2018, Theorem 2; Balle and Wang, ICML 2018",
        argument=(
            "a mixture against one of its parts: rate times a Gaussian curve; the other direction "
            "is a multiple of a Gaussian curve as well, and the claim is the larger"
        ),
    )


def _sampled_delta(epsilon: float, *, part: Curve, rate: float) -> float:
    return rate * part(subsampled_epsilon(epsilon, rate))


def _unsampled_gaussian_delta(epsilon: float, *, ratio: float, rate: float) -> float:
    """Divergence of the part from the mixture: ``(1 - c)`` times a Gaussian curve."""
    kept = math.exp(epsilon) * (1 - rate)
    if kept >= 1:
        return 0.0
    inner = epsilon + math.log(rate / (1 - kept))
    if inner >= 0:
        return (1 - kept) * gaussian_delta(inner, ratio=ratio)
    # delta(-e) = 1 - exp(-e) + exp(-e) delta(e), as Gaussian pairs look the same both ways.
    turned = gaussian_delta(-inner, ratio=ratio)
    return (1 - kept) * (-math.expm1(inner) + math.exp(inner) * turned)
