"""Laws that rows are drawn from: uniform, normal, exponential."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hushed._ground.calls import called_as
from hushed._ground.checks import read_array
from hushed._ground.printing import as_given
from hushed._ground.types import Floats
from hushed._rows._ranges import Range
from hushed.errors import ParameterError
from hushed.populations._shown import ShownPopulation


@called_as("hs.populations.Uniform(0, 100)")
@dataclass(frozen=True, slots=True)
class Uniform(ShownPopulation):
    """Rows uniform on a box; scalars give an array of scalars, lists one column for each entry.

    Parameters
    ----------
    low, high : float or sequence of float, shape (columns,)
        Ends of the range of each column; finite, ``low <= high``.

    Raises
    ------
    ParameterError
        If an end is not finite, the ends cross or the shapes differ.

    Examples
    --------
    >>> import numpy as np
    >>> Uniform(low=[0, 0], high=[1, 10]).draw(np.random.default_rng(0), 3).shape
    (3, 2)
    """

    low: ArrayLike
    high: ArrayLike
    _box: tuple[Floats, Floats] = field(init=False, repr=False, compare=False)
    _top: Floats | None = field(init=False, repr=False, compare=False)
    _unit: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        low, high = _columns(self.low, "low"), _columns(self.high, "high")
        if low.shape != high.shape:
            raise ParameterError(f"low has shape {low.shape} but high has shape {high.shape}")
        if not np.all(low <= high):
            raise ParameterError(f"low must not exceed high, got low={low} and high={high}")
        with np.errstate(over="ignore"):
            span = high - low
        if not np.all(np.isfinite(span)):
            raise ParameterError(f"high - low must be finite, got low={low} and high={high}")
        object.__setattr__(self, "low", _freeze(low))
        object.__setattr__(self, "high", _freeze(high))
        object.__setattr__(self, "_box", (low, span))
        beyond = np.any((1 - 2.0**-53) * span + low > high)  # rounding may leave the box
        object.__setattr__(self, "_top", high if beyond else None)
        object.__setattr__(self, "_unit", bool(np.all(low == 0) and np.all(high == 1)))

    @called_as("population.draw(np.random.default_rng(1), 100)")
    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Draw rows.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness; consumed.
        count : int
            Number of rows.

        Returns
        -------
        ndarray of float, shape (count,) or (count, columns)
            Independent uniform rows.
        """
        low, span = self._box
        drawn = rng.random((count, *low.shape))
        if not self._unit:
            drawn *= span
            drawn += low
        if self._top is not None:
            np.minimum(drawn, self._top, out=drawn)
        return drawn

    def support(self) -> tuple[Range, ...]:
        """Range of each column.

        Returns
        -------
        tuple of Range
            The box.
        """
        low = self._box[0]
        return ranges_of(low, np.asarray(self.high, dtype=np.float64))

    def describe(self) -> dict[str, Any]:
        """Describe the source.

        Returns
        -------
        dict
            Kind and ends.
        """
        return {"kind": "uniform", "low": _plain(self.low), "high": _plain(self.high)}


@called_as("hs.populations.Normal(mean=50, std=10)")
@dataclass(frozen=True, slots=True)
class Normal(ShownPopulation):
    """Rows with independent normal columns.

    Parameters
    ----------
    mean : float or sequence of float, shape (columns,)
        Centre of each column; finite.
    std : float or sequence of float, shape (columns,)
        Standard deviation (not variance) of each column; finite, 0 or more.

    Raises
    ------
    ParameterError
        If a number is not finite, a deviation negative, or the shapes differ.
    """

    mean: ArrayLike = 0.0
    std: ArrayLike = 1.0

    def __post_init__(self) -> None:
        mean, std = _columns(self.mean, "mean"), _columns(self.std, "std")
        if std.shape not in {mean.shape, ()}:
            raise ParameterError(f"mean has shape {mean.shape} but std has shape {std.shape}")
        if np.any(std < 0):
            raise ParameterError(f"std must be 0 or more, got {std}", parameter="std")
        object.__setattr__(self, "mean", _freeze(mean))
        object.__setattr__(self, "std", _freeze(std))

    @called_as("population.draw(np.random.default_rng(1), 100)")
    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Draw rows.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness; consumed.
        count : int
            Number of rows.

        Returns
        -------
        ndarray of float, shape (count,) or (count, columns)
            Independent normal rows.
        """
        mean = np.asarray(self.mean, dtype=np.float64)
        drawn = rng.standard_normal((count, *mean.shape))
        drawn *= np.asarray(self.std, dtype=np.float64)
        drawn += mean
        return drawn

    def describe(self) -> dict[str, Any]:
        """Describe the source.

        Returns
        -------
        dict
            Kind, mean and standard deviation.
        """
        return {"kind": "normal", "mean": _plain(self.mean), "std": _plain(self.std)}


@called_as("hs.populations.Exponential(rate=0.1)")
@dataclass(frozen=True, slots=True)
class Exponential(ShownPopulation):
    """Rows with independent exponential columns.

    Parameters
    ----------
    rate : float or sequence of float, shape (columns,)
        Rate lambda of each column (the mean is 1 / rate); finite, above 0.

    Raises
    ------
    ParameterError
        If a rate is not finite or not above 0.
    """

    rate: ArrayLike = 1.0

    def __post_init__(self) -> None:
        rate = _columns(self.rate, "rate")
        if not np.all(rate > 0):
            raise ParameterError(f"rate must be above 0, got {rate}", parameter="rate")
        object.__setattr__(self, "rate", _freeze(rate))

    @called_as("population.draw(np.random.default_rng(1), 100)")
    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Draw rows.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness; consumed.
        count : int
            Number of rows.

        Returns
        -------
        ndarray of float, shape (count,) or (count, columns)
            Independent exponential rows.
        """
        rate = np.asarray(self.rate, dtype=np.float64)
        drawn = rng.standard_exponential((count, *rate.shape))
        drawn /= rate
        return drawn

    def support(self) -> tuple[Range, ...]:
        """Range of each column.

        Returns
        -------
        tuple of Range
            From 0 upwards.
        """
        low = np.zeros_like(np.asarray(self.rate, dtype=np.float64))
        return ranges_of(low, low + math.inf)

    def describe(self) -> dict[str, Any]:
        """Describe the source.

        Returns
        -------
        dict
            Kind and rate.
        """
        return {"kind": "exponential", "rate": _plain(self.rate)}


def ranges_of(low: Floats, high: Floats) -> tuple[Range, ...]:
    names = [""] if low.ndim == 0 else [str(place) for place in range(low.size)]
    ends = zip(names, low.ravel().tolist(), high.ravel().tolist(), strict=True)
    return tuple(Range(column=name, low=least, high=most) for name, least, most in ends)


def _columns(value: ArrayLike, name: str) -> Floats:
    numbers = read_array(name, value)
    if numbers.ndim > 1 or numbers.size == 0 or not np.all(np.isfinite(numbers)):
        raise ParameterError(
            f"{name} must be a finite number or a list of them that is not empty, got "
            f"{as_given(value)}",
            parameter=name,
        )
    return numbers


def _freeze(numbers: Floats) -> ArrayLike:
    """Numbers that nobody can change afterwards, so that what is drawn stays what is described."""
    return tuple(numbers.tolist()) if numbers.ndim else float(numbers)


def _plain(value: ArrayLike) -> Any:
    return np.asarray(value, dtype=np.float64).tolist()
