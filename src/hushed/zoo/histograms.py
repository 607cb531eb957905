"""Laplace noise: on one value, on bins, with the wrong scale, many times over."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.zoo.curves import laplace_delta, laplace_product_delta
from hushed.zoo.events import at_least, total_above
from hushed.zoo.record import Rows, Specimen

__all__ = [
    "histogram",
    "histogram_wrong_scale",
    "laplace",
    "laplace_parallel",
    "prefix_sums",
]


def laplace(epsilon: float = 0.1) -> Specimen:
    """One value with Laplace noise, which is private.

    Parameters
    ----------
    epsilon : float, default 0.1
        Claimed epsilon; above 0.

    Returns
    -------
    Specimen
        Outputs of shape ``(size,)``; the loss equals the claim.
    """
    return Specimen(
        name="Laplace",
        aliases=("LaplaceMechanism",),
        mechanism=partial(_add_to_first, scale=1 / epsilon),
        claim=Guarantee(epsilon=epsilon),
        relation="every-answer",
        pairs=((np.array([1.0]), np.array([0.0])),),
        private=True,
        epsilon=epsilon,
        supremum=epsilon,
        delta=partial(laplace_delta, epsilon),
        event=partial(at_least, bound=1.0),
        event_words="the value is at least 1",
        output="value, shape (size,)",
        source="Dwork, McSherry, Nissim, Smith, TCC 2006",
        argument="the optimal events are half lines",
    )


def histogram(epsilon: float = 0.1, k: int = 5) -> Specimen:
    """Bins with Laplace noise of scale ``1/epsilon``, which is private when one bin moves.

    Parameters
    ----------
    epsilon : float, default 0.1
        Claimed epsilon; above 0.
    k : int, default 5
        Number of bins.

    Returns
    -------
    Specimen
        Outputs of shape ``(size, k)``; the loss equals the claim.
    """
    return _histogram("histogram", ("NoisyHist1",), epsilon, 1 / epsilon, k)


def histogram_wrong_scale(epsilon: float = 0.1, k: int = 5) -> Specimen:
    """Bins with Laplace noise of scale ``epsilon``, which is not private for epsilon below 1.

    Parameters
    ----------
    epsilon : float, default 0.1
        Claimed epsilon; above 0 and below 1.
    k : int, default 5
        Number of bins.

    Returns
    -------
    Specimen
        Outputs of shape ``(size, k)``; the loss is ``1/epsilon``.

    Raises
    ------
    ParameterError
        If epsilon is 1 or more, where the claim holds.
    """
    if epsilon >= 1:
        raise ParameterError(f"the wrong scale violates the claim below epsilon = 1, got {epsilon}")
    return _histogram(
        "histogram, wrong scale", ("histogram_eps", "NoisyHist2"), epsilon, epsilon, k
    )


def laplace_parallel(epsilon: float = 0.1, draws: int = 20) -> Specimen:
    """One value released many times with enough noise for all of them, which is private.

    Parameters
    ----------
    epsilon : float, default 0.1
        Claimed epsilon; above 0.
    draws : int, default 20
        Number of releases, each with scale ``draws/epsilon``.

    Returns
    -------
    Specimen
        Outputs of shape ``(size, draws)``; the loss equals the claim.
    """
    scale = draws / epsilon
    return Specimen(
        name="Laplace, in parallel",
        aliases=("LaplaceParallel",),
        mechanism=partial(_repeat, scale=scale, draws=draws),
        claim=Guarantee(epsilon=epsilon),
        relation="every-answer",
        pairs=((np.array([1.0]), np.array([0.0])),),
        private=True,
        epsilon=epsilon,
        supremum=epsilon,
        delta=partial(laplace_product_delta, 1 / scale, draws),
        event=partial(total_above, bound=draws / 2),
        event_words="the average is above 1/2",
        output="values, shape (size, draws)",
        source="Bichsel, Steffen, Bogunovic, Vechev, *DP-Sniper*, IEEE S&P 2021",
        argument="losses of independent Laplace draws add; their convolution is a sum of B-splines",
    )


def prefix_sums(epsilon: float = 0.1, k: int = 10) -> Specimen:
    """Noisy answers as running sums that claim the loss of one, which is not private.

    Parameters
    ----------
    epsilon : float, default 0.1
        Claimed epsilon; above 0.
    k : int, default 10
        Number of answers; 2 or more.

    Returns
    -------
    Specimen
        Outputs are running sums of shape ``(size, k)``; differencing shows k independent noisy
        answers, so the loss is ``k epsilon`` on all ones against all zeros.

    Raises
    ------
    ParameterError
        If k is below 2.
    """
    if k < 2:
        raise ParameterError(f"k must be 2 or more, got {k}")
    return Specimen(
        name="prefix sums",
        aliases=("PrefixSum",),
        mechanism=partial(_running_sums, scale=1 / epsilon),
        claim=Guarantee(epsilon=epsilon),
        relation="every-answer",
        pairs=((np.ones(k), np.zeros(k)),),
        private=False,
        epsilon=k * epsilon,
        supremum=k * epsilon,
        delta=partial(laplace_product_delta, epsilon, k),
        event=partial(_increments_above, bound=0.5),
        event_words="most of the differences between neighbouring sums are above 1/2",
        output="running sums, shape (size, k)",
        source="Bichsel, Steffen, Bogunovic, Vechev, *DP-Sniper*, IEEE S&P 2021",
        argument="losses of independent Laplace draws add; their convolution is a sum of B-splines",
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
        mechanism=partial(_add_to_each, scale=scale),
        claim=Guarantee(epsilon=epsilon, neighbours="add-remove"),
        relation="one-answer",
        pairs=((rows, np.ones(k)),),
        private=loss <= epsilon * (1 + 1e-12),
        epsilon=loss,
        supremum=loss,
        delta=partial(laplace_delta, loss),
        event=_first_at_least_two,
        event_words="the first bin is at least 2",
        output="bins, shape (size, k)",
        source="Dwork et al., TCC 2006; audited by Ding et al., CCS 2018",
        argument="only the bin that moved is informative; its optimal events are half lines",
    )


def _add_to_first(
    rows: Rows, rng: np.random.Generator, size: int, /, *, scale: float
) -> NDArray[np.float64]:
    return np.asarray(rows[0] + rng.laplace(scale=scale, size=size))


def _add_to_each(
    rows: Rows, rng: np.random.Generator, size: int, /, *, scale: float
) -> NDArray[np.float64]:
    return np.asarray(rows + rng.laplace(scale=scale, size=(size, rows.size)))


def _repeat(
    rows: Rows, rng: np.random.Generator, size: int, /, *, scale: float, draws: int
) -> NDArray[np.float64]:
    return np.asarray(rows[0] + rng.laplace(scale=scale, size=(size, draws)))


def _running_sums(
    rows: Rows, rng: np.random.Generator, size: int, /, *, scale: float
) -> NDArray[np.float64]:
    return np.cumsum(_add_to_each(rows, rng, size, scale=scale), axis=1)


def _first_at_least_two(outputs: NDArray[np.float64], /) -> NDArray[np.bool_]:
    return np.asarray(outputs[:, 0] >= 2)


def _increments_above(outputs: NDArray[np.float64], /, *, bound: float) -> NDArray[np.bool_]:
    steps = np.diff(outputs, axis=1, prepend=0.0)
    return np.asarray((steps > bound).sum(axis=1) > outputs.shape[1] / 2)
