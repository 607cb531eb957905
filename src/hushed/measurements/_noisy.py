"""Measurements that add noise to an answer, or choose by it.

Noise is drawn by `hushed.noise`, which rounds an answer to a public grid first. What that rounding
costs is counted exactly, at every distance and not only at the one the noise was made for: by the
law of the noise itself (`hushed.mechanisms`).
"""

from __future__ import annotations

import math

from hushed._ground.calls import called_as
from hushed._ground.checks import plain_number, require_one_of
from hushed._ground.printing import as_given
from hushed.errors import ParameterError
from hushed.measurements._losses import losses_of
from hushed.measurements._record import Measurement
from hushed.mechanisms._exponential import ExponentialChoice
from hushed.mechanisms._law import Law
from hushed.mechanisms._registry import LAWS
from hushed.spaces import Numbers, Space
from hushed.transformations._chain import Step
from hushed.transformations._matching import refuse


@called_as("hs.measurements.laplace(2.0)")
def laplace(scale: float) -> Step[Measurement]:
    """Add Laplace noise to every number of an answer.

    Parameters
    ----------
    scale : float
        Scale b of the noise, in the units of the answer; finite, above 0.

    Returns
    -------
    Step
        From one number, or a vector in the l1 norm, to a noisy one. A distance d loses
        ``epsilon = d / scale``, with what rounding to the grid adds, below ``dims 2**-45``.

    Raises
    ------
    ParameterError
        If the scale is not finite and above 0.

    Notes
    -----
    Dwork, McSherry, Nissim, Smith, TCC 2006.
    """
    return noisy("laplace", scale)


@called_as("hs.measurements.gaussian(2.0)")
def gaussian(scale: float) -> Step[Measurement]:
    """Add Gaussian noise to every number of an answer.

    Parameters
    ----------
    scale : float
        Standard deviation sigma of the noise, in the units of the answer; finite, above 0.

    Returns
    -------
    Step
        From one number, or a vector in the l2 norm, to a noisy one. A distance d loses
        ``rho = d**2 / (2 scale**2)``, and the curve of the Gaussian mechanism, with what the grid
        adds.

    Raises
    ------
    ParameterError
        If the scale is not finite and above 0.

    Notes
    -----
    Bun and Steinke, TCC 2016; for the discrete law that is drawn, Canonne, Kamath, Steinke,
    NeurIPS 2020, Theorem 14. Curve: Balle and Wang, ICML 2018.
    """
    return noisy("gaussian", scale)


@called_as("hs.measurements.exponential(2.0)")
def exponential(scale: float) -> Step[Measurement]:
    """Choose a candidate with probability proportional to ``exp(score / scale)``.

    Parameters
    ----------
    scale : float
        Temperature, in the units of the scores; finite, above 0.

    Returns
    -------
    Step
        From a vector of scores to the index of one. A distance d loses ``epsilon = 2 d / scale``
        in the sup norm, and ``d / scale`` in the one-sided distance or the l1 norm, with what
        rounding to the grid adds.

    Raises
    ------
    ParameterError
        If the scale is not finite and above 0.

    Notes
    -----
    McSherry and Talwar, FOCS 2007; curve: Dong, Durfee, Rogers, ICML 2020, for losses of bounded
    range. A candidate has weight ``exp(u_i / scale)``, so its chance changes by the factor
    ``exp((u_i - u'_i) / scale) Z' / Z``. The sum Z of weights changes by a factor between those of
    the largest rise and the largest fall of a score, so the loss is at most the largest minus the
    smallest change, over the scale (Durfee and Rogers, NeurIPS 2019): 2 d for scores that move by
    d in any direction. Where one row added moves all scores up, or all down, by at most 1
    (``norm="one-sided"``, as counts do), each row added or removed is one step that costs
    ``1 / scale``. A row added and another one removed may raise one score and lower another; those
    are two steps, and steps add up, because the one-sided distance is a norm. A replaced row is two
    steps as well: nothing is saved against the sup norm, and nothing lost. What is drawn is the
    exponential mechanism itself, not permute-and-flip.
    """
    return noisy("exponential", scale)


@called_as('hs.measurements.noisy("laplace", 2.0)')
def noisy(law: str, scale: float) -> Step[Measurement]:
    """Release an answer with the noise of a named law, or choose by it.

    Parameters
    ----------
    law : str
        Name of the law, as the mechanism is called in certificates: ``laplace``, ``gaussian``,
        ``exponential``.
    scale : float
        Scale of the noise, in the units of the answer; finite, above 0.

    Returns
    -------
    Step
        As `laplace`, `gaussian` or `exponential` give it.

    Raises
    ------
    ParameterError
        If the law is unknown, or the scale is not finite and above 0.
    """
    require_one_of("law", law, LAWS)
    scale = plain_number(scale)
    if isinstance(scale, bool) or not 0 < scale < math.inf:
        raise ParameterError(
            f"scale must be finite and above 0, got {as_given(scale)}", parameter="scale"
        )
    kind: type[Law] = LAWS[law]

    def build(space: Space) -> Measurement:
        dims = count_scores(law, space) if kind.selects else _count_numbers(kind, space)
        reach, made = kind.reach[space.metric.name], kind.of_scale(scale)
        made.loss(scale, dims)  # a grid that cannot be laid is refused now
        return Measurement(
            name=f"{law}({scale:g})",
            source=space,
            measure=kind.measure,
            draw=made.draw,
            known=lambda d_in: losses_of(made.loss(reach * d_in.value, dims)),
            settings=(law, scale),
        )

    return Step(law, build)


def _count_numbers(law: type[Law], space: Space) -> int:
    """Count the coordinates of an answer measured in a norm that the noise can use."""
    if not isinstance(space.domain, Numbers) or space.metric.name not in law.reach:
        norm = law.norms[0]
        raise refuse(
            law.name,
            space,
            f"one number, or a vector in the {norm} norm",
            f"an answer with norm={norm!r}",
        )
    return space.domain.dims or 1


def count_scores(step: str, space: Space) -> int:
    """Count the candidates of a vector of scores, in a distance that bounds how they move apart."""
    if not isinstance(space.domain, Numbers) or space.metric.name not in ExponentialChoice.reach:
        wanted = "scores in the sup norm, the one-sided distance or the l1 norm"
        fix = "quantile_scores(...), or counts with norm='one-sided',"
        raise refuse(step, space, wanted, fix)
    if space.domain.dims is None:
        raise refuse(step, space, "a vector of scores", "quantile_scores(...)")
    return space.domain.dims
