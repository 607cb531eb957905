"""The Bernstein mechanism: a private function on the unit cube."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from hushed._ground.calls import called_as
from hushed._ground.checks import read_epsilon, require_count, require_probability
from hushed._ground.exact import moved_by_rounding
from hushed._ground.numeric import COARSE, round_up
from hushed._ground.printing import name_count
from hushed._ground.read_only import make_again
from hushed._ground.tensors import fetch
from hushed._ground.types import Floats
from hushed.errors import BadFunction, ParameterError
from hushed.mechanisms._arguments import (
    finite_values,
    require_movement,
)
from hushed.mechanisms._calibrated import Calibrated
from hushed.mechanisms._laplace import LaplaceNoise, exponential_tail
from hushed.privacy_loss import PrivacyProfile, laplace
from hushed.spaces import Norm, SensitivityBound

_MOST_ORDER = 64  # the operator is applied as often, and noise grows up to twofold each time
_MOST_POINTS = 10_000_000


@called_as("hs.Bernstein(sup_sensitivity, epsilon=1.0)")
@dataclass(frozen=True, slots=True)
class Bernstein(Calibrated):
    """Release a function on [0, 1]^dims as a noisy Bernstein polynomial.

    Parameters
    ----------
    sensitivity : SensitivityBound
        Sup-norm sensitivity of the function's values on the lattice; above 0.
    epsilon : float
        Privacy loss, in nats; finite, above 0. It stands for its shortest decimal: 0.1 is one
        tenth.
    lattice : int, default 10
        Number k of intervals along each axis; 1 or more.
    dims : int, default 1
        Dimension l of the cube; 1 or more.
    order : int, default 1
        Order h of the iterated operator ``I - (I - B)^h``; 1 or more. Higher orders follow smooth
        functions more closely and amplify the noise.

    Raises
    ------
    WrongNorm, ZeroSensitivity, ParameterError
        If a parameter cannot be used.

    Notes
    -----
    Alda and Rubinstein, *The Bernstein Mechanism*, AAAI 2017: Laplace noise of scale
    ``sensitivity (k+1)^l / epsilon`` on each of the ``(k+1)^l`` lattice values; all that follows
    is post-processing.
    """

    law: ClassVar[type[LaplaceNoise]] = LaplaceNoise
    name: ClassVar[str] = "bernstein"
    norms: ClassVar[tuple[Norm, ...]] = ("sup",)
    outcome: ClassVar[str] = "noise moves the released function by at most {error} anywhere"

    sensitivity: SensitivityBound
    _: KW_ONLY
    epsilon: float
    lattice: int = 10
    dims: int = 1
    order: int = 1

    def __post_init__(self) -> None:
        require_movement(self.sensitivity, "Bernstein", *self.norms)
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        _check_lattice(self.lattice, self.dims)
        for name in ("lattice", "dims", "order"):
            object.__setattr__(self, name, require_count(name, getattr(self, name)))
        if self.order > _MOST_ORDER:
            raise ParameterError(
                f"order must be at most {_MOST_ORDER}, got {self.order}", parameter="order"
            )

    @classmethod
    def _answers_of(cls, function: Any, parameters: Mapping[str, Any]) -> Any:
        """Evaluate learners of functions on the lattice."""
        lattice, dims = int(parameters.get("lattice", 10)), int(parameters.get("dims", 1))
        return numbers_of(function, lattice=lattice, dims=dims)

    def _guess(self, error: float, beta: float, dims: int = 1) -> float:  # noqa: ARG002
        amplified = _amplification(self.lattice, self.dims, self.order)
        return self.total * exponential_tail(beta, self.points) * amplified / error

    @property
    def noise(self) -> LaplaceNoise:
        """Law of the noise on the lattice values."""
        return LaplaceNoise(self.total, self.epsilon)

    def _values_of(self, shape: tuple[int, ...] | None) -> int:
        if shape is not None and math.prod(shape) != self.points:
            raise ParameterError(
                f"Bernstein with lattice={self.lattice} and dims={self.dims} releases "
                f"{self.points} lattice values, the sampled answers have {math.prod(shape)}; "
                "use the lattice of hs.on_lattice"
            )
        return self.points

    def _check_function(self, function: Any) -> None:
        """Refuse values on one lattice as coefficients on another of as many points."""
        if not isinstance(function, OnLattice):
            return
        ours, theirs = (self.lattice, self.dims), (function.lattice, function.dims)
        if ours != theirs:
            raise ParameterError(
                f"Bernstein has lattice={ours[0]} and dims={ours[1]}, and the function was put on "
                f"lattice={theirs[0]} and dims={theirs[1]}: give both the same"
            )

    @property
    def points(self) -> int:
        """Number of lattice points, ``(lattice + 1) ** dims``."""
        return int((self.lattice + 1) ** self.dims)

    @property
    def scale(self) -> float:
        """Scale of the Laplace noise on each lattice value, in the units of the function."""
        return self.total / self.epsilon

    @property
    def total(self) -> float:
        """Sensitivity of all lattice values together, in the l1 norm, rounded up."""
        return math.nextafter(self.sensitivity.value * self.points, math.inf)

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level: that of Laplace noise on all lattice values together."""
        return laplace(self.epsilon)

    def accuracy(self, beta: float = 0.05, dims: int | None = None) -> float:
        """Distance to the noise-free polynomial, exceeded anywhere with probability at most beta.

        Largest lattice noise at level beta times the norm of the iterated operator. The distance
        from the noise-free polynomial to the function itself depends on the function and is not
        counted.
        """
        require_probability("beta", beta)
        if dims not in (None, self.dims):
            raise ParameterError(f"the mechanism has {self.dims} dimensions, got dims={dims}")
        largest = self.noise.error(beta, self.points)
        return largest * _amplification(self.lattice, self.dims, self.order)

    def draw(self, function: Callable[[Floats], ArrayLike] | ArrayLike) -> BernsteinPolynomial:
        """Release a function.

        Parameters
        ----------
        function : callable or array, shape (lattice + 1,) * dims
            The exact function: called with an array of points, shape (points,) for ``dims=1``
            and (points, dims) otherwise, it gives one value for each; or its lattice values.

        Returns
        -------
        BernsteinPolynomial
            The private function; evaluates arrays of points.
        """
        values = function
        if callable(function):
            values = _lattice_values(function, self.lattice, self.dims)
        numbers = finite_values(values)  # type: ignore[arg-type]
        if numbers.size != self.points:
            raise ParameterError(  # how many there are is private
                f"expected {self.points} lattice values, (lattice + 1) ** dims"
            )
        table = np.reshape(self.noise.draw(numbers.ravel()), (self.lattice + 1,) * self.dims)
        return BernsteinPolynomial(_sharpen(table, self.lattice, self.order))


@dataclass(frozen=True, slots=True, eq=False)
class BernsteinPolynomial:
    """A polynomial on the unit cube in the Bernstein basis.

    Parameters
    ----------
    coefficients : ndarray of float, shape (k + 1,) * l
        One coefficient for each lattice point.
    """

    coefficients: Floats

    def __post_init__(self) -> None:
        released = np.array(self.coefficients)
        released.flags.writeable = False
        object.__setattr__(self, "coefficients", released)

    def __reduce__(self) -> tuple[object, ...]:
        return make_again(self)

    def __call__(self, points: ArrayLike) -> Floats:
        """Evaluate at points of the cube."""
        at = np.asarray(points, dtype=np.float64)
        dims = self.coefficients.ndim
        if dims == 1 and (at.ndim == 0 or at.shape[-1] != 1 or at.ndim == 1):
            at = at[..., None]
        if at.shape[-1] != dims:
            raise ParameterError(f"points need {dims} coordinates each, got shape {at.shape}")
        if not np.all((at >= 0) & (at <= 1)):
            raise ParameterError("points must lie in the unit cube [0, 1]^l", parameter="points")
        flat = at.reshape(-1, dims)
        k = self.coefficients.shape[0] - 1
        value = np.tensordot(_basis(flat[:, 0], k), self.coefficients, axes=(1, 0))
        for axis in range(1, dims):
            value = np.einsum("pk,pk...->p...", _basis(flat[:, axis], k), value)
        return np.asarray(value.reshape(at.shape[:-1]))


@called_as("hs.lattice_points(10)")
def lattice_points(lattice: int, dims: int = 1) -> Floats:
    """Give the points of the lattice {0, 1/k, ..., 1}^l, the last coordinate running fastest.

    Parameters
    ----------
    lattice : int
        Number k of intervals along each axis.
    dims : int, default 1
        Dimension l.

    Returns
    -------
    ndarray of float, shape (k + 1,) for ``dims=1``, else ((k + 1) ** l, l)
        Coordinates.
    """
    _check_lattice(lattice, dims)
    axis = np.arange(lattice + 1) / lattice
    if dims == 1:
        return axis
    return np.stack(np.meshgrid(*[axis] * dims, indexing="ij"), axis=-1).reshape(-1, dims)


@dataclass(frozen=True, slots=True)
class OnLattice:
    """A function of rows that gives the lattice values of the function it learned."""

    # Takes rows, gives a function on [0, 1]^dims.
    learn: Callable[[Any], Callable[[Floats], ArrayLike]]
    # As for `Bernstein`.
    lattice: int
    dims: int

    def __call__(self, rows: Any) -> Floats:
        """Learn from rows and evaluate on the lattice."""
        return _lattice_values(self.learn(rows), self.lattice, self.dims)


@called_as("hs.on_lattice(f, lattice=10)")
def on_lattice(
    f: Callable[[Any], Callable[[Floats], ArrayLike]], *, lattice: int = 10, dims: int = 1
) -> OnLattice:
    """Turn a learner of functions into one that returns numbers, for sampling and release.

    Parameters
    ----------
    f : callable
        Takes rows, gives a function on [0, 1]^dims that evaluates arrays of points.
    lattice : int, default 10
        Number of intervals along each axis, as in the mechanism.
    dims : int, default 1
        Dimension of the cube.

    Returns
    -------
    OnLattice
        Takes rows, gives the values on `lattice_points`.

    Examples
    --------
    >>> line = on_lattice(lambda rows: lambda x: x * rows.mean(), lattice=2)
    >>> line(np.array([1.0, 3.0]))
    array([0., 1., 2.])
    """
    _check_lattice(lattice, dims)
    return OnLattice(f, lattice, dims)


def numbers_of(function: Any, *, lattice: int, dims: int) -> Any:
    """Evaluate what a function of rows returns on the lattice, if that is a function itself."""
    if not callable(function):
        return function
    learn: Callable[[Any], Any] = function

    @functools.wraps(learn)
    def values(rows: Any) -> Any:
        learned = learn(rows)
        if not callable(learned):
            return learned
        return on_lattice(lambda _: learned, lattice=lattice, dims=dims)(rows)

    return values


def _check_lattice(lattice: int, dims: int) -> None:
    lattice, dims = require_count("lattice", lattice), require_count("dims", dims)
    # The power itself may have more digits than fit into memory.
    if dims > 64 or (lattice + 1) ** dims > _MOST_POINTS:
        raise ParameterError(
            f"lattice={lattice} in {dims} dimensions has more than {_MOST_POINTS} points; use a "
            "coarser lattice"
        )


def _lattice_values(function: Callable[[Floats], ArrayLike], lattice: int, dims: int) -> Floats:
    if not callable(function):
        raise BadFunction(f"expected a function on [0, 1]^{dims}, got {type(function).__name__}")
    points = lattice_points(lattice, dims)
    raw = fetch(function(points))
    read = np.asarray(raw)
    if moved_by_rounding(raw, read):
        raise BadFunction("the function gave integers beyond 2**53, or long doubles: divide them")
    values = read.astype(np.float64)
    if values.size != len(points):
        raise BadFunction(
            f"called with {name_count(len(points), 'point')}, the function gave "
            f"{name_count(values.size, 'value')}; "
            "it must evaluate an array of points"
        )
    return values.ravel()


def _basis(at: Floats, k: int) -> Floats:
    """Bernstein basis C(k, v) x^v (1-x)^(k-v), shape (points, k + 1), by the stable recurrence."""
    basis = np.zeros((at.size, k + 1))
    basis[:, 0] = 1.0
    x = at[:, None]
    for degree in range(1, k + 1):
        lower = basis[:, :degree].copy()
        basis[:, :degree] = (1 - x) * lower
        basis[:, 1 : degree + 1] += x * lower
    return basis


@lru_cache(maxsize=16)
def _operator(k: int) -> Floats:
    """Matrix of the Bernstein operator on lattice values along one axis."""
    return _basis(np.arange(k + 1) / k, k)


def _apply_operator(table: Floats, k: int) -> Floats:
    """Bernstein operator on lattice values in every dimension."""
    for axis in range(table.ndim):
        table = np.moveaxis(np.tensordot(_operator(k), table, axes=(1, axis)), 0, axis)
    return table


def _sharpen(table: Floats, k: int, order: int) -> Floats:
    """Coefficients whose polynomial is I - (I - B)^h of the table: sum of (I - B)^j, j < h."""
    total, rest = table.copy(), table
    for _ in range(order - 1):
        rest = rest - _apply_operator(rest, k)
        total += rest
    return total


@lru_cache(maxsize=64)
def _amplification(k: int, dims: int, order: int) -> float:
    """Bound on how much the sup norm of noise grows from lattice to polynomial.

    The polynomial is a convex combination of its coefficients. In one dimension the largest
    absolute row sum of the matrix is exact; in more, 2^h - 1 bounds the sum of powers of I - B.
    """
    if order == 1:
        return 1.0
    if dims > 1:
        return float(2**order - 1)
    columns = np.stack([_sharpen(row, k, order) for row in np.eye(k + 1)])
    return round_up(float(np.abs(columns).sum(axis=0).max()), COARSE)
