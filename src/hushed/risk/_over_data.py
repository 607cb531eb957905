"""The probability over data and noise that a release loses more than a level."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed._ground.calls import called_as
from hushed._ground.checks import require_least
from hushed._ground.decimals import decimal_of, read, stated_above, upper_double
from hushed._ground.notebook import Card, Shown
from hushed._ground.numeric import ARITHMETIC, round_up
from hushed._ground.printing import format_down, format_up
from hushed._ground.types import Floats
from hushed.errors import ParameterError
from hushed.risk._at_risk import loss_exceeds
from hushed.risk._published import combined_confidence
from hushed.spaces import PRIVACY_PROFILE, PURE, ZCDP

_MOST_LEVELS = 2000  # movements whose loss is computed; between them, that of the larger one


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DataRisk(Shown):
    """How much a release loses over a random pair of tables and the noise.

    An average over the population is no differential privacy: people whose rows move the answer
    more than most lose more than it says.

    Parameters
    ----------
    epsilon : float
        Level, in nats.
    delta : float
        Bound on the mean, over the pair, of the delta that the release needs at this level, with
        `confidence`; rounded up.
    mean_delta : float
        The mean over the sampled pairs alone, rounded up. The noise was made for these pairs, so
        that it is no estimate of the mean over others: of few pairs it is far too small.
    exceeds : float or None
        Bound on the probability, over the pair and the noise, that the loss leaves
        ``[-epsilon, epsilon]``, with `confidence`; rounded up. None for Laplace noise on several
        numbers, where it depends on the direction of the movement.
    mean_exceeds : float or None
        The same for `exceeds`.
    confidence : float
        Probability, over the sampling, of both bounds.
    pairs : int
        Sampled pairs.
    published : float or None
        Confidence as published, from Theorem 6 of Dandekar, Basu and Bressan; None for other
        mechanisms than Laplace and for levels above the calibrated one.
    """

    epsilon: float
    delta: float
    mean_delta: float
    exceeds: float | None
    mean_exceeds: float | None
    confidence: float
    pairs: int
    published: float | None

    def _card(self) -> Card:
        sure = f"at most, with confidence {format_down(self.confidence, 4)}"
        facts = [
            ("mean delta over the data", f"{format_up(self.delta, 4)} {sure}"),
            (
                "of the sampled pairs",
                f"{format_up(self.mean_delta, 4)}, of {self.pairs} pairs, for which the noise was "
                "made: of others it may be larger",
            ),
        ]
        if self.exceeds is not None:
            facts.append(
                ("loss leaves the level", f"probability {format_up(self.exceeds, 4)} {sure}")
            )
        if self.published is not None:
            facts.append(("published confidence", format_down(self.published, 4)))
        facts.append(("differential privacy", "no: an average over the population"))
        title = f"Risk of level {format_up(self.epsilon)} nats, over the data"
        return Card(title=title, text=self.explain(), facts=tuple(facts))

    def _brief(self) -> str:
        return (
            f"Risk of level {format_up(self.epsilon)} nats over the data: mean delta "
            f"{format_up(self.delta, 4)} at most, with confidence "
            f"{format_down(self.confidence, 4)}; no differential privacy"
        )

    def explain(self) -> str:
        """Say in words what was found, and what it is not.

        Returns
        -------
        str
            Three or four sentences.
        """
        known = (
            ""
            if self.exceeds is None
            else f"The loss of a random pair is beyond {format_up(self.epsilon)} with probability "
            f"at most {format_up(self.exceeds, 4)}, over the pair and the noise. "
        )
        return (
            f"{known}On average over the pairs the release needs a delta of at most "
            f"{format_up(self.delta, 4)} at epsilon {format_up(self.epsilon)}. Both hold with "
            f"confidence {format_down(self.confidence)}, from {self.pairs} sampled pairs. "
            "This is an average over the population and no differential privacy: people whose "
            "rows move the answer more than most lose more."
        )


@called_as("hs.risk.over_data(hs.Laplace(sampled, epsilon=1.0), 0.5)")
def over_data(
    mechanism: Any, epsilon: float, *, confidence: float = 0.95, rho: float = 0.01
) -> DataRisk:
    """Bound the risk of a level over data and noise, from the sampled movements.

    Parameters
    ----------
    mechanism : hs.Laplace or hs.Gaussian
        Calibrated to a sampled sensitivity.
    epsilon : float
        Level, in nats; 0 or more.
    confidence : float, default 0.95
        Probability, over the sampling, that the bounds hold; in [0.5, 1).
    rho : float, default 0.01
        Accuracy asked of the empirical distribution in the published number; in (0, 1).

    Returns
    -------
    DataRisk
        Bounds, means, and the published number.

    Raises
    ------
    ParameterError
        If the sensitivity is proven, shifted or from a population made from the private rows, the
        mechanism is none, or a number is out of range.

    Notes
    -----
    Let ``h(g)`` be what is lost where the answer moves by ``g``; it grows with ``g`` and is at
    most 1. By the one-sided inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's constant,
    the distribution function of the movement is nowhere more than ``e = sqrt(log(1/(1-c))/(2 m))``
    below the empirical one, with probability ``c``. So ``E h(G)`` is at most the mean of ``h`` over
    the sampled movements, with mass ``e`` of the smallest ones moved to where ``h`` is 1. This is
    the exact form of what Dandekar, Basu and Bressan, PoPETs 2021, leave to future work. The
    probability that a loss leaves a level is that of the continuous laws. The pairs of a public
    table are those that its promise is about; given that, they are independent, too.
    """
    level = read("epsilon", epsilon, up=False)
    require_least("epsilon", level)
    confidence = read("confidence", confidence, up=True)
    if not 0.5 <= confidence < 1:
        raise ParameterError(
            f"confidence must be at least 0.5 and below 1, got {confidence}", parameter="confidence"
        )
    sampling = _read_sampling(mechanism)
    dims = math.prod(sampling.shape)
    moved, counts = _merge(sampling.draws)
    pairs = sampling.pairs
    slack = math.sqrt(-math.log(float(1 - decimal_of(confidence))) / (2 * pairs))
    slack = min(1.0, round_up(slack))

    def bound(lost: Callable[[float], float]) -> tuple[float, ...]:
        found = np.array([lost(each) for each in moved.tolist()])
        below = np.maximum(np.cumsum(counts) - slack * pairs, 0)
        kept = math.fsum(np.diff(below, prepend=0) * found) / pairs
        mean = math.fsum(counts * found) / pairs
        return tuple(round_up(each, ARITHMETIC, ceiling=1.0) for each in (kept + slack, mean))

    delta, mean_delta = bound(lambda g: _delta(mechanism, g, dims, level))
    exceeds = _exceeds(mechanism, dims, level)
    beyond, mean_beyond = bound(exceeds) if exceeds else (None, None)
    return DataRisk(
        epsilon=level,
        delta=delta,
        mean_delta=mean_delta,
        exceeds=beyond,
        mean_exceeds=mean_beyond,
        confidence=confidence,
        pairs=pairs,
        published=_published(mechanism, sampling, level, rho, dims),
    )


def _read_sampling(mechanism: Any) -> Any:
    """Read the sampling behind a mechanism; refuse what the inequality does not hold for."""
    sampling = getattr(getattr(mechanism, "sensitivity", None), "sampling", None)
    if sampling is None or getattr(mechanism, "name", None) not in ("laplace", "gaussian"):
        raise ParameterError(
            "the risk over data is for hs.Laplace or hs.Gaussian with a sensitivity of "
            f"hs.sample_sensitivity, got {type(mechanism).__name__} without one or another one",
            parameter="mechanism",
        )
    if sampling.data_dependent:
        raise ParameterError(
            "the movements were drawn from a population made from the private rows, so that bounds "
            "and means of them tell of these: sample from a public one",
            parameter="mechanism",
        )
    if sampling.shift:
        raise ParameterError(
            "the movements were sampled from another population than a shifted sensitivity is "
            "for: use the original one",
            parameter="mechanism",
        )
    return sampling


def _merge(draws: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Count each movement, upwards; where they are very many, neighbours become the larger one."""
    values, counts = np.unique(draws, return_counts=True)
    if values.size > _MOST_LEVELS:
        ends = np.linspace(0, values.size, _MOST_LEVELS + 1).astype(int)
        counts = np.add.reduceat(counts, ends[:-1])
        values = values[ends[1:] - 1]
    return values, counts


def _delta(mechanism: Any, moved: float, dims: int, level: float) -> float:
    return float(mechanism.noise.loss(moved, dims)[PRIVACY_PROFILE].delta(level))


def _exceeds(mechanism: Any, dims: int, level: float) -> Callable[[float], float] | None:
    """Probability that the loss leaves the level at a movement; None if its direction matters."""
    law = mechanism.noise
    if mechanism.name == "laplace" and dims == 1:
        return lambda g: _laplace_exceeds(upper_double(law.loss(g)[PURE]), level)
    if mechanism.name == "laplace":
        return None
    return lambda g: _gaussian_exceeds(law.loss(g, dims)[ZCDP], level)


def _laplace_exceeds(most: float, level: float) -> float:
    return loss_exceeds(level, most) if most > level else 0.0


def _gaussian_exceeds(rho: float, level: float) -> float:
    """As the loss is normal with mean rho and variance 2 rho."""
    from scipy import special  # noqa: PLC0415

    if rho <= 0:
        return 0.0
    spread = math.sqrt(2 * rho)
    beyond = special.ndtr((rho - level) / spread) + special.ndtr((-level - rho) / spread)
    return round_up(float(beyond), ARITHMETIC, ceiling=1.0)


def _published(mechanism: Any, sampling: Any, level: float, rho: float, dims: int) -> float | None:
    if mechanism.name != "laplace" or level > mechanism.epsilon:
        return None
    share = min(sampling.rank / sampling.pairs, 1 - 2**-53)
    return combined_confidence(
        level,
        stated_above(decimal_of(mechanism.epsilon)),
        share=share,
        rho=rho,
        samples=sampling.pairs,
        dims=dims,
    )
