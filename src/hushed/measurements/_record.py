"""Measurements: a random answer, and what it loses when its input moves by a distance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from hushed._functions._calls import call_privately
from hushed._functions._gate import read_rows
from hushed._functions._row_functions import refuse_carrying_steps
from hushed._ground.decimals import read
from hushed._ground.notebook import Card, Shown
from hushed._ground.printing import format_up
from hushed.accounting import joined
from hushed.errors import ParameterError, SpaceMismatch
from hushed.guarantee import Guarantee
from hushed.measurements._losses import Loss, epsilon_at, restated
from hushed.spaces import Distance, Measure, Space
from hushed.transformations._chain import (
    Step,
    Transformation,
    but_for,
    distance_in,
    joined_spaces,
    least_distance,
    neighbours_at,
    require_raw,
)

Known = Callable[[Distance], Mapping[Measure, Loss]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Measurement(Shown):
    """A random function of data, and its privacy loss.

    Parameters
    ----------
    name : str
        What it does.
    source : Space
        What it takes.
    measure : Measure
        In which terms `map` states the loss.
    draw : callable
        Checked member of the source domain in, released answer out; the noise comes from
        `hushed.noise`.
    known : callable
        Distance of inputs in; out comes what is known of the loss, by measure. Never decreasing.
    relation : callable
        Distance of inputs in, distance out, with the gammas of sampled sensitivities on the way.
    first : Transformation, optional
        What is done before the noise.
    settings : tuple, default ()
        What follows ``first``: name and public settings, as the constructor took them; the parts
        of a composition; for a function of the answer, the settings before it and the function.
    raw : bool, default False
        True if it must be given the very rows that were sampled: no step may change them before.
    """

    name: str
    source: Space
    measure: Measure
    draw: Callable[[Any], Any] = field(repr=False)
    known: Known = field(repr=False)
    relation: Callable[[Distance], Distance] = field(default=lambda d_in: d_in, repr=False)
    first: Transformation | None = field(default=None, repr=False)
    settings: tuple[Any, ...] = ()
    raw: bool = False

    def __call__(self, data: Any) -> Any:
        """Check that data lies in the source domain, and release an answer."""
        refuse_carrying_steps(self.draw, data)
        return self.draw(read_rows(self.source.domain.check, data))

    def map(self, d_in: float | Distance, measure: Measure | None = None) -> Loss:
        """Carry a distance of inputs to a privacy loss.

        Parameters
        ----------
        d_in : int, float or Distance
            Bound on the distance of two inputs.
        measure : Measure, optional
            Terms of the loss; by default those of the measurement.

        Returns
        -------
        float, PrivacyProfile or callable
            Epsilon for ``PURE``, rho for ``ZCDP``, a curve for ``PRIVACY_PROFILE``, for ``RENYI`` a
            function of the order; rounded up.

        Raises
        ------
        ParameterError
            If the distance is none, or the loss cannot be stated in these terms.
        """
        found = self.known(distance_in(self.source, d_in))
        return restated(found, self.measure if measure is None else measure)

    def guarantee(self, d_in: int = 1, *, delta: float = 0.0) -> Guarantee:
        """State what a draw promises to neighbours.

        Parameters
        ----------
        d_in : int, default 1
            How far neighbours are apart under the source metric: rows of one person.
        delta : float, default 0
            Slack; in [0, 1].

        Returns
        -------
        Guarantee
            With the smallest epsilon that is known to hold, rounded up; for rows or for users, as
            the source metric counts them.

        Raises
        ------
        ParameterError
            If the source holds answers instead of rows, no two tables are that far apart, or the
            chain leads from users to a sensitivity that was sampled for rows.
        """
        space = self.source
        neighbours = neighbours_at(space, d_in)
        distance = distance_in(space, d_in)
        delta = read("delta", delta, up=False)
        epsilon = epsilon_at(self.known(distance), delta)
        terms = self.relation(distance).terms
        if terms and space.metric.unit == "user":
            raise ParameterError(
                "the chain carries a sensitivity that was sampled for one replaced row: its gamma "
                "says nothing of a user; count rows, or prove the sensitivity"
            )
        own = Guarantee(epsilon=epsilon, delta=delta, neighbours=neighbours, unit=space.metric.unit)
        return joined([own, *terms], epsilon, delta) if terms else own

    def after(self, first: Transformation) -> Measurement:
        """Do a transformation before.

        Parameters
        ----------
        first : Transformation
            Gives what this measurement takes.

        Returns
        -------
        Measurement
            Both in one.

        Raises
        ------
        SpaceMismatch
            If the spaces do not fit.
        """
        joined_spaces(first.name, first.target, self.name, self.source)
        if self.raw:
            require_raw(first, self.name)
        return replace(
            self,
            name=f"{first.name} >> {self.name}",
            source=first.source,
            draw=lambda data: self.draw(first.function(data)),
            known=lambda d_in: self.known(first.relation(d_in)),
            relation=lambda d_in: self.relation(first.relation(d_in)),
            first=first if self.first is None else first >> self.first,
            raw=first.raw or self.raw,
        )

    def __rrshift__(self, left: Any) -> Measurement:
        """Chain behind a transformation."""
        return self.after(left) if isinstance(left, Transformation) else NotImplemented

    def __rshift__(self, function: Any) -> Measurement:
        """Apply a function of the released answer alone: postprocessing costs nothing."""
        if isinstance(function, Step):
            raise SpaceMismatch(
                f"noise ends the chain: {function.name} takes data, and {self.name} gives a "
                f"released answer. Put {function.name} before the noise, or chain a plain function "
                "of the answer, such as lambda x: max(x, 0.0)"
            )
        if not callable(function):
            return NotImplemented
        called = getattr(function, "__name__", type(function).__name__)
        return replace(
            self,
            name=f"{self.name} >> {called}",
            draw=lambda data: call_privately(function, self.draw(data)),
            settings=("then", self.settings, function),
        )

    def to(self, measure: Measure) -> Measurement:
        """State losses in the terms of another measure.

        Parameters
        ----------
        measure : Measure
            The terms.

        Returns
        -------
        Measurement
            The same release.
        """
        return replace(self, measure=measure)

    def __str__(self) -> str:
        """Name, source and measure."""
        return f"{self.name}: from {self.source}, loss in terms of {self.measure}"

    def _card(self) -> Card:
        facts = [("steps", self.name), ("takes", str(self.source)), ("measure", str(self.measure))]
        with suppress(Exception):  # a map may be a function of the caller
            least = least_distance(self.source)
            if isinstance(lost := self.map(least), float):
                at = f"at a distance of {least} ({self.source.metric})"
                at += but_for(self.relation(distance_in(self.source, least)))
                facts.append(("loses at most", f"{format_up(lost)}, {at}"))
        return Card(title="Measurement", text=str(self), facts=tuple(facts), words="")
