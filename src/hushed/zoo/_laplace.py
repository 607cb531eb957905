"""Laplace noise: on one value, on bins, with the wrong scale, many times over."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed.guarantee import Guarantee
from hushed.zoo._curves import laplace_product_delta, laplace_truth
from hushed.zoo._draws import Noise, Noisy, every_row, first
from hushed.zoo._events import compare
from hushed.zoo._record import Specimen

_SNIPER = "Bichsel, Steffen, Bogunovic, Vechev, *DP-Sniper*, IEEE S&P 2021"
_SPLINES = "losses of independent Laplace draws add; their convolution is a sum of B-splines"


def laplace(epsilon: float = 0.1) -> Specimen:
    """One value with Laplace noise, which is private.

    Outputs of shape ``(size,)``; the loss equals the claim.
    """
    return Specimen(
        name="Laplace",
        aliases=("LaplaceMechanism",),
        mechanism=Noisy(first, Noise("laplace", 1 / epsilon)),
        claim=Guarantee(epsilon=epsilon),
        relation="every-answer",
        pairs=((np.array([1.0]), np.array([0.0])),),
        private=True,
        epsilon=epsilon,
        supremum=epsilon,
        delta=laplace_truth(epsilon).delta,
        event=compare(">=", 1.0),
        output="value, shape (size,)",
        source="Dwork, McSherry, Nissim, Smith, TCC 2006",
        argument="the optimal events are half lines",
    )


def histogram(epsilon: float = 0.1, k: int = 5) -> Specimen:
    """Histogram with Laplace noise of scale ``1/epsilon``, which is private when one bin moves.

    Outputs of shape ``(size, k)``; the loss equals the claim.
    """
    return _histogram("histogram", ("NoisyHist1",), epsilon, 1 / epsilon, k)


def histogram_wrong_scale(epsilon: float = 0.1, k: int = 5) -> Specimen:
    """Histogram with Laplace noise of scale ``epsilon``, which is not private for epsilon below 1.

    Outputs of shape ``(size, k)``; the loss is ``1/epsilon``.
    """
    aliases = ("histogram_eps", "NoisyHist2")
    return _histogram("histogram, wrong scale", aliases, epsilon, epsilon, k)


def laplace_parallel(epsilon: float = 0.1, draws: int = 20) -> Specimen:
    """One value released many times with enough noise for all of them, which is private.

    Outputs of shape ``(size, draws)``; the loss equals the claim.
    """
    scale = draws / epsilon
    return Specimen(
        name="Laplace, in parallel",
        aliases=("LaplaceParallel",),
        mechanism=Noisy(first, Noise("laplace", scale), columns=draws),
        claim=Guarantee(epsilon=epsilon),
        relation="every-answer",
        pairs=((np.array([1.0]), np.array([0.0])),),
        private=True,
        epsilon=epsilon,
        supremum=epsilon,
        delta=partial(laplace_product_delta, 1 / scale, draws),
        event=compare(">", draws / 2, of=partial(np.sum, axis=1)),
        output="values, shape (size, draws)",
        source=_SNIPER,
        argument=_SPLINES,
    )


def prefix_sums(epsilon: float = 0.1, k: int = 10) -> Specimen:
    """Noisy answers as running sums that claim the loss of one, which is not private.

    Outputs are running sums of shape ``(size, k)``; differencing shows k independent noisy answers,
    so the loss is ``k epsilon`` on all ones against all zeros.
    """
    truth = laplace_truth(epsilon, draws=k)
    return Specimen(
        name="prefix sums",
        aliases=("PrefixSum",),
        mechanism=Noisy(every_row, Noise("laplace", 1 / epsilon), after=partial(np.cumsum, axis=1)),
        claim=Guarantee(epsilon=epsilon),
        relation="every-answer",
        pairs=((np.ones(k), np.zeros(k)),),
        private=False,
        epsilon=truth.epsilon,
        supremum=truth.epsilon,
        delta=truth.delta,
        event=compare(">", k / 2, of=_increments_above_half),
        output="running sums, shape (size, k)",
        source=_SNIPER,
        argument=_SPLINES,
    )


def _histogram(
    name: str, aliases: tuple[str, ...], epsilon: float, scale: float, k: int
) -> Specimen:
    rows = np.ones(k)
    rows[0] = 2.0
    loss = 1 / scale
    return Specimen(
        name=name,
        aliases=aliases,
        mechanism=Noisy(every_row, Noise("laplace", scale)),
        claim=Guarantee(epsilon=epsilon, neighbours="add-remove"),
        relation="one-answer",
        pairs=((rows, np.ones(k)),),
        private=loss <= epsilon * (1 + 1e-12),
        epsilon=loss,
        supremum=loss,
        delta=laplace_truth(loss).delta,
        event=compare(">=", 2.0, of=_first_bin),
        output="bins, shape (size, k)",
        source="Dwork et al., TCC 2006; audited by Ding et al., CCS 2018",
        argument="only the bin that moved is informative; its optimal events are half lines",
    )


def _first_bin(outputs: NDArray[Any], /) -> NDArray[Any]:
    return np.asarray(outputs[:, 0])


def _increments_above_half(outputs: NDArray[Any], /) -> NDArray[Any]:
    """Count the differences between neighbouring sums that are above 1/2."""
    return np.asarray((np.diff(outputs, axis=1, prepend=0.0) > 0.5).sum(axis=1))
