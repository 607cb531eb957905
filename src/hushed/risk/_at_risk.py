"""Privacy at risk: the published confidence in a stronger level, and the exact numbers.

A Laplace mechanism calibrated to ``epsilon0`` is said to keep a stronger level ``epsilon`` with
some confidence (Dandekar, Basu and Bressan, *Differential Privacy at Risk*, PoPETs 2021). The
published confidence compares two draws of noise; it is not a statement about the privacy loss, and
for ``epsilon0 > log 3`` its risk falls below the delta that is needed. Everything here that
decides uses the exact quantities of one coordinate that moves by its full sensitivity. For delta
that is the worst case: an l1 movement spread over several coordinates needs no more (see
`hushed.mechanisms.Laplace`). For the probability that the loss exceeds a level no such order is
claimed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hushed import privacy_loss
from hushed._ground.calls import called_as
from hushed._ground.checks import require_least
from hushed._ground.decimals import lower_double, read, upper_double
from hushed._ground.notebook import Card, Shown, card_of_facts
from hushed._ground.numeric import ARITHMETIC, round_up
from hushed._ground.printing import format_exactly, format_up
from hushed.risk._published import check_levels, published_confidence, read_rate


@called_as("hs.risk.delta(0.5, 1.0)")
def delta(epsilon: float, epsilon0: float) -> float:
    """Exact delta at a stronger level: what (epsilon, delta)-privacy of the mechanism needs.

    Parameters
    ----------
    epsilon : float
        Stronger level, in nats; in [0, epsilon0].
    epsilon0 : float
        Level that the noise was calibrated to, in nats; above 0, finite.

    Returns
    -------
    float
        ``1 - exp(-(epsilon0 - epsilon)/2)``, rounded up.

    Raises
    ------
    ParameterError
        If a number is out of range or NaN.
    """
    epsilon, epsilon0 = check_levels(epsilon, epsilon0)
    return privacy_loss.laplace(epsilon0).delta(epsilon)


@called_as("hs.risk.epsilon(0.01, 1.0)")
def epsilon(delta: float, epsilon0: float) -> float:
    """Exact stronger level at a delta; the inverse of `delta`.

    Parameters
    ----------
    delta : float
        Slack; in [0, 1].
    epsilon0 : float
        Level that the noise was calibrated to, in nats; above 0, finite.

    Returns
    -------
    float
        Smallest level, in nats, rounded up; 0 where ``delta`` is large enough.

    Raises
    ------
    ParameterError
        If a number is out of range or NaN.
    """
    _, epsilon0 = check_levels(0.0, epsilon0)
    return privacy_loss.laplace(epsilon0).epsilon(delta)


@called_as("hs.risk.loss_exceeds(0.5, 1.0)")
def loss_exceeds(epsilon: float, epsilon0: float) -> float:
    """Exact probability that the privacy loss leaves ``[-epsilon, epsilon]``.

    Parameters
    ----------
    epsilon : float
        Stronger level, in nats; in [0, epsilon0].
    epsilon0 : float
        Level that the noise was calibrated to, in nats; above 0, finite.

    Returns
    -------
    float
        ``1 - exp(-epsilon0/2) sinh(epsilon/2)`` below ``epsilon0`` and 0 at it.

    Raises
    ------
    ParameterError
        If a number is out of range or NaN.

    Notes
    -----
    This is the risk in the sense of probabilistic differential privacy (Machanavajjhala, Kifer,
    Abowd, Gehrke and Vilhuber, ICDE 2008). Half of all outputs lose the full ``epsilon0``.
    """
    epsilon, epsilon0 = check_levels(epsilon, epsilon0)
    if epsilon == epsilon0:
        return 0.0
    low, high = lower_double(epsilon), upper_double(epsilon0)
    kept = 0.5 * (math.exp((low - high) / 2) - math.exp(-(low + high) / 2))
    return round_up(1.0 - kept, ceiling=1.0)


@called_as("hs.risk.crossing(1.0)")
def crossing(epsilon0: float) -> float | None:
    """Level from which on the published risk is below the exact delta.

    Parameters
    ----------
    epsilon0 : float
        Level that the noise was calibrated to, in nats; above 0, finite.

    Returns
    -------
    float or None
        Level in [0, epsilon0), in nats: above it and below ``epsilon0`` the published risk
        over-promises. None when ``epsilon0 <= log 3``, where it never does.

    Raises
    ------
    ParameterError
        If ``epsilon0`` is out of range or NaN.

    Notes
    -----
    With ``x = exp(-epsilon/2)`` and ``y = exp(-epsilon0/2)`` the risk is ``(x^2 - y^2)/(1 - y^2)``
    and delta is ``1 - y/x``; they cross, besides at ``x = y``, where ``x (x + y) = 1 - y^2``.
    """
    _, epsilon0 = check_levels(0.0, epsilon0)
    if epsilon0 <= math.log(3.0):
        return None
    y = math.exp(-epsilon0 / 2)
    x = (math.sqrt(y * y + 4 * (1 - y * y)) - y) / 2
    found = max(0.0, -2 * math.log(min(x, 1.0)))
    return found if found < epsilon0 else None


@called_as("hs.risk.belief(1.0, prior=0.1)")
def belief(epsilon: float, prior: float = 0.5) -> float:
    """Largest probability that somebody who knows all other records comes to give to a fact.

    Parameters
    ----------
    epsilon : float
        Level of the release, in nats; 0 or more. For a fact about a record that is surely there,
        that of replaced records: a promise for one more or less gives twice its epsilon.
    prior : float, default 0.5
        Probability given to the fact, about one record, before the release; in (0, 1).

    Returns
    -------
    float
        ``prior e^epsilon / (1 - prior + prior e^epsilon)``, rounded up.

    Raises
    ------
    ParameterError
        If a number is out of range or NaN.

    Notes
    -----
    Bayes' rule with the likelihood ratio bounded by ``e^epsilon``: Wasserman and Zhou, *A
    Statistical Framework for Differential Privacy*, JASA 105, 2010. Whoever does not know the other
    records may learn more: the answer tells of all together, and thereby of people like them.
    """
    epsilon, prior = read("epsilon", epsilon, up=True), read_rate("prior", prior, up=True)
    require_least("epsilon", epsilon)
    wide = upper_double(epsilon)
    return round_up(prior / (prior + (1.0 - prior) * math.exp(-wide)), ARITHMETIC, ceiling=1.0)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Assessment(Shown):
    """Every number there is about one stronger level.

    Parameters
    ----------
    epsilon : float
        Stronger level, in nats.
    epsilon0 : float
        Level that the noise was calibrated to, in nats.
    dims : int
        Coordinates of the answer; the exact numbers are those of a record that moves one
        coordinate by the full sensitivity, for delta the worst case.
    published_confidence : float
        Theorem 4.1 of Dandekar, Basu and Bressan.
    published_risk : float
        One minus it.
    delta : float
        Exact delta: use this one to decide.
    loss_exceeds : float
        Exact probability that the loss leaves the level.
    warnings : tuple of str
        Why the published number may over-promise, with the numbers.
    """

    epsilon: float
    epsilon0: float
    dims: int
    published_confidence: float
    published_risk: float
    delta: float
    loss_exceeds: float
    warnings: tuple[str, ...]

    def _card(self) -> Card:
        several = "" if self.dims == 1 else f", {self.dims} numbers"
        return card_of_facts(
            f"Risk of level {format_exactly(self.epsilon)} nats",
            (
                (
                    "noise is calibrated to",
                    f"epsilon {format_exactly(self.epsilon0)} nats{several}",
                ),
                ("exact delta, to decide by", format_up(self.delta, 4)),
                ("loss leaves the level", f"with probability {format_up(self.loss_exceeds, 4)}"),
                ("published risk", f"a probability of {format_up(self.published_risk, 4)}"),
                *(("warning", each) for each in self.warnings),
            ),
        )

    def _brief(self) -> str:
        return (
            f"Assessment of epsilon {format_exactly(self.epsilon)} of "
            f"{format_exactly(self.epsilon0)} nats: "
            f"exact delta {format_up(self.delta, 4)}, published risk "
            f"{format_up(self.published_risk, 4)}"
        )


@called_as("hs.risk.assess(0.5, 1.0)")
def assess(epsilon: float, epsilon0: float, *, dims: int = 1) -> Assessment:
    """Assess one stronger level: published and exact numbers, side by side.

    Parameters
    ----------
    epsilon : float
        Stronger level, in nats; in [0, epsilon0].
    epsilon0 : float
        Level that the noise was calibrated to, in nats; above 0, finite.
    dims : int, default 1
        Number of coordinates of the answer.

    Returns
    -------
    Assessment
        The numbers, and warnings where the published one over-promises.

    Raises
    ------
    ParameterError
        If a number is out of range or NaN.
    """
    epsilon, epsilon0 = check_levels(epsilon, epsilon0)
    confidence = published_confidence(epsilon, epsilon0, dims)
    needed, beyond = delta(epsilon, epsilon0), loss_exceeds(epsilon, epsilon0)
    published = 1.0 - confidence
    warnings = []
    if published < needed * (1 - 1e-12):
        warnings.append(
            f"the published risk {format_up(published, 4)} is below the exact delta "
            f"{format_up(needed, 4)}: a release "
            f"certified by it would promise more than it keeps"
        )
    if published < beyond:
        warnings.append(
            f"the published risk {format_up(published, 4)} is not the probability of losing "
            f"more than {format_exactly(epsilon)}: that is {format_up(beyond, 4)}"
        )
    return Assessment(
        epsilon=epsilon,
        epsilon0=epsilon0,
        dims=dims,
        published_confidence=confidence,
        published_risk=published,
        delta=needed,
        loss_exceeds=beyond,
        warnings=tuple(warnings),
    )
