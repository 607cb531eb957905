"""What every mechanism asks of its parameters, in one place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushed._ground.exact import moved_by_rounding
from hushed._ground.numeric import first_true
from hushed._ground.printing import as_given
from hushed.errors import ParameterError, WrongNorm, ZeroSensitivity
from hushed.spaces import Norm, SensitivityBound
from hushed.statistics import Mode, Numeric

_LEAST_EPSILON, _LARGEST_EPSILON = 2.0**-200, 1e300


def require_movement(movement: SensitivityBound, mechanism: str, *norms: Norm) -> None:
    """Refuse a sensitivity in the wrong norm, or of size zero."""
    if not hasattr(movement, "norm"):
        raise ParameterError(
            f"{mechanism} takes a sensitivity from hs.sample_sensitivity or "
            f"hs.proven_sensitivity, got {type(movement).__name__}{_other_door(movement)}"
        )
    if movement.norm not in norms:
        wanted = " or ".join(repr(norm) for norm in norms)
        raise WrongNorm(
            f"{mechanism} needs a sensitivity in the norm {wanted}, got {as_given(movement.norm)}; "
            f"sample it with norm={norms[0]!r}, or use {_mechanisms_for(movement.norm)}"
        )
    if movement.value == 0 and getattr(movement, "sampling", None) is None:
        raise ZeroSensitivity(
            "the sensitivity was stated to be 0: the answer would be the same on every table, and "
            "releasing the exact answer is refused; state a bound above 0"
        )
    if movement.value == 0:
        raise ZeroSensitivity(
            "the sensitivity is 0: the pairs it rests on did not move the function, so there is "
            "nothing to calibrate noise to, and releasing the exact answer is refused; "
            "the function may ignore its rows, round its answer, or react to rarer rows than the "
            "population yields"
        )


def _other_door(given: object) -> str:
    """Say what takes a statistic, if that was given."""
    if isinstance(given, Mode):
        return (
            "; a mode is released by hs.InverseSensitivity or hs.StableMode, or chosen here by the "
            "numbers of rows, with hs.global_sensitivity(s)"
        )
    if isinstance(given, Numeric):
        return (
            "; such a statistic is released by hs.InverseSensitivity or hs.Smooth, or here with "
            "hs.global_sensitivity(s)"
        )
    return ""


def _mechanisms_for(norm: Norm) -> str:
    """Name the mechanisms that take a norm."""
    from hushed.mechanisms._registry import MECHANISMS  # noqa: PLC0415  (they import this module)

    return " or ".join(kind.__name__ for kind in MECHANISMS.values() if norm in kind.norms)


def require_monotone(monotone: bool, sensitivity: SensitivityBound) -> None:
    """Refuse the declaration where a replaced record may raise one score and lower another."""
    if not isinstance(monotone, bool):
        raise ParameterError(
            f"monotone must be True or False, got {as_given(monotone)}", parameter="monotone"
        )
    if monotone and (sensitivity.norm != "sup" or sensitivity.neighbours != "add-remove"):
        raise ParameterError(
            "monotone=True holds for a sup-norm sensitivity under add-remove neighbours only, "
            f"got norm {sensitivity.norm!r} under {sensitivity.neighbours!r}; replacing a record "
            "can raise one score and lower another",
            parameter="monotone",
        )


def count_directions(norm: Norm, *, monotone: bool) -> int:
    """How many times its bound the scores move apart: one may rise while another falls.

    The range of the movements is bounded as such; in the sup norm it is twice the bound, unless all
    scores move one way.
    """
    return 2 if norm == "sup" and not monotone else 1


def bound_spread(distance: int, norm: Norm, *, monotone: bool) -> int:
    """Bound how far scores move apart that are rounded down to whole steps.

    In the sup norm a score on the grid moves by whole steps, ``distance`` at most. Rounding down
    moves two scores apart by less than one step, which a bound on the range has to hold as well.
    """
    return count_directions(norm, monotone=monotone) * distance + (norm != "sup")


def finite_values(value: ArrayLike) -> NDArray[np.float64]:
    """Read an answer as finite doubles, without ever showing it."""
    try:
        numbers = np.asarray(value)
    except Exception:  # its text may hold the answer
        numbers = np.empty(0)
    if numbers.dtype.kind not in "biuf" or numbers.size == 0:
        raise ParameterError("the answer must be one number or an array of numbers")
    if moved_by_rounding(value, numbers):
        raise ParameterError(
            "the answer holds integers beyond 2**53, or long doubles: reading them as doubles "
            "would move them by more than the sensitivity says; divide them by a constant"
        )
    numbers = numbers.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ParameterError("the answer holds NaN or infinity; it must be finite")
    return numbers


def smallest_epsilon(guess: float, accuracy: Callable[[float], float], error: float) -> float:
    """Smallest epsilon, up to rounding, whose accuracy is at most a wanted error.

    Epsilon at least ``guess`` with ``accuracy(epsilon) <= error``.
    """
    guess = min(max(guess, _LEAST_EPSILON), _LARGEST_EPSILON)
    step = 2.0**-52
    while not accuracy(guess * (1 + step)) <= error:
        step *= 2
        if step > 1:
            raise ParameterError(f"no epsilon reaches an error of {error}; ask for a larger error")
    found = first_true(
        lambda step: accuracy(guess * (1 + step)) <= error, step / 2, step, tolerance=2.0**-20
    )
    return guess * (1 + found)
