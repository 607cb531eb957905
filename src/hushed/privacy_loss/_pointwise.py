"""The privacy loss at one output: how much likelier it is on one table than on another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from hushed._ground.calls import called_as
from hushed._ground.checks import read_array, require_one_of, require_positive
from hushed._ground.printing import name_count
from hushed._ground.types import Floats
from hushed.errors import ParameterError

Noise = Literal["laplace", "gaussian", "exponential"]


@called_as('hs.privacy_loss.at_output([0.3], [0.0], [1.0], noise="laplace", scale=2.0)')
def at_output(
    output: ArrayLike, here: ArrayLike, there: ArrayLike, *, noise: Noise, scale: float
) -> Any:
    """Compute the privacy loss at an output, for two tables whose answers are known.

    Parameters
    ----------
    output : float, int or array_like
        What was, or may be, released. With answers that are single numbers an array of any shape;
        with answers of d numbers of shape (d,) or (..., d). With ``noise="exponential"`` the index
        of the chosen candidate, or an array of such.
    here, there : float or array_like, shape (d,)
        The answers on the one and on the other table, without noise; with ``noise="exponential"``
        the scores of all candidates. Give made-up or public tables: the loss tells their answers.
    noise : {"laplace", "gaussian", "exponential"}
        Law of the noise.
    scale : float
        Its scale b, its standard deviation, or the temperature; finite, above 0.

    Returns
    -------
    float or ndarray of float
        ``log(density of the output here / density there)`` in nats, to double precision, for the
        continuous law without its grid. Above 0 where the output speaks for ``here``; the tables
        swapped change its sign.

    Raises
    ------
    ParameterError
        If the noise is unknown, the scale is not above 0, a number is not finite, shapes differ, or
        numbers are so large that the loss has no double.

    Notes
    -----
    The pointwise loss of Gaboardi's lectures, and of Dwork and Roth, 2014, Section 2.3.1. A
    mechanism is epsilon-DP if and only if it stays within ``[-epsilon, epsilon]`` for all outputs
    and neighbours; `PrivacyProfile` has its law.
    """
    require_one_of("noise", noise, tuple(_LAWS))
    width = require_positive("scale", scale)
    one, other = _read("here", here), _read("there", there)
    if one.shape != other.shape or one.ndim > 1 or not one.size:
        raise ParameterError(
            "here and there must be two numbers, or two lists of numbers of one length, got shapes "
            f"{one.shape} and {other.shape}"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        found = _LAWS[noise](_read("output", output), one, other, width)
    if np.isnan(found).any():
        raise ParameterError(
            f"the numbers are too large beside scale={width:g}: their loss has no double"
        )
    return float(found) if found.ndim == 0 else found


def _laplace(output: Floats, here: Floats, there: Floats, scale: float) -> Floats:
    # Beyond both answers the loss stays as it is, and far out no double tells them apart.
    _check_length(output, here)
    between = np.clip(output, np.minimum(here, there), np.maximum(here, there))
    return _add_up((np.abs(between - there) - np.abs(between - here)) / scale, here)


def _gaussian(output: Floats, here: Floats, there: Floats, scale: float) -> Floats:
    # The difference of two squares as a product: nothing cancels far out.
    _check_length(output, here)
    return _add_up(
        (here - there) / scale * ((output - here) + (output - there)) / (2 * scale), here
    )


def _exponential(output: Floats, here: Floats, there: Floats, scale: float) -> Floats:
    if here.ndim != 1:
        raise ParameterError("here and there must be the scores of all candidates, got one number")
    index = output.astype(np.int64)
    if (index != output).any() or (index < 0).any() or (index >= len(here)).any():
        raise ParameterError(
            f"output must be the index of a candidate, from 0 to {len(here) - 1}",
            parameter="output",
        )
    return np.asarray((_log_chances(here, scale) - _log_chances(there, scale))[index])


def _log_chances(scores: Floats, scale: float) -> Floats:
    weights = (scores - scores.max()) / scale
    return np.asarray(weights - np.log(np.exp(weights).sum()))


def _add_up(loss: Floats, here: Floats) -> Floats:
    """Add the losses of the coordinates, which have noise of their own each."""
    return np.asarray(loss.sum(axis=-1) if here.ndim else loss)


def _check_length(output: Floats, here: Floats) -> None:
    """Refuse outputs of another number of coordinates."""
    if here.ndim and output.shape[-1:] != here.shape:
        raise ParameterError(
            f"output must have {name_count(len(here), 'number')} in its last axis, as here and "
            f"there, got shape {output.shape}",
            parameter="output",
        )


def _read(name: str, value: ArrayLike) -> Floats:
    read = read_array(name, value)
    if not np.isfinite(read).all():
        raise ParameterError(f"{name} must be finite", parameter=name)
    return read


_LAWS: dict[str, Callable[[Floats, Floats, Floats, float], Floats]] = {
    "laplace": _laplace,
    "gaussian": _gaussian,
    "exponential": _exponential,
}
