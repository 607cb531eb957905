"""Metrics between data, measures of privacy loss, spaces, and distances that carry their gamma."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np

from hushed._ground.calls import called_as
from hushed._ground.checks import plain_number
from hushed._ground.notebook import Card, Shown
from hushed._ground.printing import as_given
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee, Neighbours, Unit, union_gamma
from hushed.spaces._domains import Domain, Groups, Numbers, Table

MetricName = Literal[
    "symmetric", "change-one", "absolute", "l1", "l2", "sup", "one-sided", "discrete"
]
MeasureName = Literal["pure", "loss-curve", "zcdp", "renyi"]


@called_as('hs.spaces.Metric(name="symmetric")')
@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """How far apart two members of a domain are.

    Parameters
    ----------
    name : {"symmetric", "change-one", "absolute", "l1", "l2", "sup", "one-sided", "discrete"}
        ``symmetric``: rows added plus rows removed, in any order; summed over the parts of
        grouped rows. ``change-one``: rows replaced, among tables of the same number of rows.
        ``absolute``, ``l1``, ``l2``, ``sup``: size of the difference of two answers.
        ``one-sided``: largest rise of a coordinate plus largest fall of one, so the sup norm if
        all move in one direction. It is the shortest way from one answer to the other in steps of
        one direction each, and lies between the sup norm and both twice that and the l1 norm.
        ``discrete``: 0 if equal, else 1.
    unit : {"row", "user"}, default "row"
        What is added, removed or replaced: one row, or all rows with one key.

    Raises
    ------
    ParameterError
        If a name is unknown.
    """

    name: MetricName
    unit: Unit = "row"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or self.name not in get_args(MetricName):
            raise ParameterError(
                f"a metric must be one of {get_args(MetricName)}, got {as_given(self.name)}"
            )
        known = isinstance(self.unit, str) and self.unit in ("row", "user")
        if not known or (self.unit == "user" and not self.of_rows):
            raise ParameterError(
                f"unit must be 'row', or 'user' for rows, got {as_given(self.unit)}",
                parameter="unit",
            )

    @property
    def of_rows(self) -> bool:
        """Whether it counts rows, in integers."""
        return self.name in ("symmetric", "change-one")

    def __str__(self) -> str:
        """Words for messages."""
        counted = {"symmetric": "added or removed", "change-one": "replaced"}
        if self.name in counted:
            return f"{self.unit}s {counted[self.name]}"
        return f"the {self.name} distance"


SYMMETRIC = Metric(name="symmetric")
CHANGE_ONE = Metric(name="change-one")
USERS = Metric(name="symmetric", unit="user")  # all rows of one key added or removed
ABSOLUTE = Metric(name="absolute")
L1 = Metric(name="l1")
L2 = Metric(name="l2")
SUP = Metric(name="sup")
ONE_SIDED = Metric(name="one-sided")
DISCRETE = Metric(name="discrete")


@called_as('hs.spaces.Measure(name="pure")')
@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """In which terms a privacy loss is stated.

    Parameters
    ----------
    name : {"pure", "loss-curve", "zcdp", "renyi"}
        ``pure``: epsilon, the largest loss. ``loss-curve``: delta at every epsilon. ``zcdp``:
        rho, with Renyi divergences of at most ``rho order``. ``renyi``: the divergence at every
        order.

    Raises
    ------
    ParameterError
        If the name is unknown.

    Notes
    -----
    Dwork, McSherry, Nissim, Smith, TCC 2006; Bun and Steinke, TCC 2016; Mironov, CSF 2017.
    """

    name: MeasureName

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or self.name not in get_args(MeasureName):
            raise ParameterError(
                f"a measure must be one of {get_args(MeasureName)}, got {as_given(self.name)}"
            )

    def __str__(self) -> str:
        """Words for messages."""
        return self.name

    @property
    def constant(self) -> str:
        """Name of the constant in `hushed.spaces`, for whoever types it."""
        return "PRIVACY_PROFILE" if self.name == "loss-curve" else self.name.upper()


PURE = Measure(name="pure")
PRIVACY_PROFILE = Measure(name="loss-curve")
ZCDP = Measure(name="zcdp")
RENYI = Measure(name="renyi")


@called_as("hs.spaces.Distance(2)")
@dataclass(frozen=True, slots=True)
class Distance:
    """How far apart two things are at most, and with which probability that may fail.

    Parameters
    ----------
    value : float
        Bound on the distance; 0 or more, may be infinite. An integer between tables.
    terms : tuple of Guarantee, default ()
        What the sampled sensitivities on the way promise (their epsilon is 0): they carry gamma,
        and whom it is about.

    Raises
    ------
    ParameterError
        If the value is NaN or negative.
    """

    value: float
    terms: tuple[Guarantee, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", plain_number(self.value))
        if not _is_distance(self.value):
            given = as_given(self.value)
            raise ParameterError(f"a distance must be a number of 0 or more, got {given}")

    @property
    def gamma(self) -> float:
        """Probability that the bound fails for a pair of neighbours; 0 if it is proven."""
        return union_gamma(self.terms)


@called_as('hs.spaces.Space(domain=domain, metric=hs.spaces.Metric(name="change-one"))')
@dataclass(frozen=True, slots=True, kw_only=True)
class Space(Shown):
    """A domain with a metric on it.

    Parameters
    ----------
    domain : Domain
        What a member looks like.
    metric : Metric
        How far apart two members are.

    Raises
    ------
    ParameterError
        If the metric does not fit the domain.
    """

    domain: Domain
    metric: Metric

    def __post_init__(self) -> None:
        rows = not isinstance(self.domain, Numbers)
        if self.metric.name != "discrete" and self.metric.of_rows != rows:
            raise ParameterError(f"{self.metric} does not measure {self.domain}")
        if isinstance(self.domain, Groups) and self.metric.name != "symmetric":
            raise ParameterError("groups are compared by rows added or removed, over all groups")
        single = isinstance(self.domain, Numbers) and self.domain.dims is None
        if self.metric.name == "absolute" and not single:
            raise ParameterError(f"the absolute distance compares numbers, not {self.domain}")
        keyed = isinstance(self.domain, Table) and self.domain.key is not None
        if self.metric.unit == "user" and not keyed:
            raise ParameterError(
                "users can be counted only in a table with a key column: Table.of(..., key=COLUMN)"
            )
        if self.metric == USERS and self.domain.size is not None:
            raise ParameterError(
                "a user more or less changes the number of rows, so that no two tables of "
                f"{self.domain.size} rows differ by one: leave size out of the table, or count "
                "users replaced, by Metric(name='change-one', unit='user')",
                parameter="size",
            )

    @property
    def neighbours(self) -> Neighbours | None:
        """Relation that tables at the smallest distance are in; None between answers."""
        if not self.metric.of_rows:
            return None
        sized = self.domain.size is not None and self.metric.unit == "row"
        return "replace-one" if self.metric.name == "change-one" or sized else "add-remove"

    def __str__(self) -> str:
        """Words for messages."""
        return f"{self.domain} under {self.metric}"

    def _card(self) -> Card:
        facts = (("rows", str(self.domain)), ("compared by", str(self.metric)))
        return Card(title="Space", text=str(self), facts=facts, words="")


def _is_distance(value: Any) -> bool:
    real = isinstance(value, Real | Decimal | np.number) and not isinstance(value, bool)
    return real and bool(value >= 0)
