"""Several measurements in one: on the same rows, or on disjoint parts of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from hushed import privacy_loss
from hushed._ground.calls import called_as
from hushed._ground.checks import read_list
from hushed._ground.numeric import LIBRARY, round_down, round_up
from hushed.errors import ParameterError
from hushed.measurements._losses import Loss, added, restated
from hushed.measurements._record import Measurement
from hushed.spaces import (
    PRIVACY_PROFILE,
    PURE,
    RENYI,
    SYMMETRIC,
    ZCDP,
    Distance,
    Groups,
    Measure,
    Space,
)
from hushed.transformations._chain import Step, joined_spaces
from hushed.transformations._grouping import worst_split
from hushed.transformations._matching import take_domain

_MOST = 10**4  # each takes part in every later step
_MEASURES = (PURE, ZCDP, RENYI, PRIVACY_PROFILE)


@called_as("hs.measurements.compose([measurement, measurement])")
def compose(measurements: Sequence[Measurement]) -> Measurement:
    """Release several answers from the same rows.

    Parameters
    ----------
    measurements : sequence of Measurement
        All on one space; at least one, ten thousand at most.

    Returns
    -------
    Measurement
        Releases a tuple of answers. In every measure that all of them know, losses add up
        (curves by convolution); the measure of the first is stated by default.

    Raises
    ------
    ParameterError
        If there is none.
    SpaceMismatch
        If their sources differ.
    """
    parts = tuple(read_list("measurements", measurements, of="[first, second]", most=_MOST))
    if not parts or not all(isinstance(part, Measurement) for part in parts):
        raise ParameterError("there is nothing to compose: give a list of measurements")
    head = parts[0]
    for part in parts[1:]:
        joined_spaces(head.name, head.source, part.name, part.source)

    def known(d_in: Distance) -> dict[Measure, Loss]:
        losses = [part.known(d_in) for part in parts]
        found: dict[Measure, Loss] = {}
        for measure in _MEASURES:
            stated = [_stated(loss, measure) for loss in losses]
            present = [loss for loss in stated if loss is not None]
            if len(present) == len(parts):
                found[measure] = added(present, measure)
        return found

    return Measurement(
        name=f"({', '.join(part.name for part in parts)})",
        source=head.source,
        measure=head.measure,
        draw=lambda data: tuple(part.draw(data) for part in parts),
        known=known,
        relation=lambda d_in: Distance(
            d_in.value, tuple(term for part in parts for term in part.relation(d_in).terms)
        ),
        settings=("compose", parts),
        raw=any(part.raw for part in parts),
    )


def _stated(known: Any, measure: Measure) -> Loss | None:
    try:
        return restated(known, measure)
    except ParameterError:
        return None


@called_as("hs.measurements.parallel(hs.measurements.laplace(2.0))")
def parallel(step: Step[Any]) -> Step[Measurement]:
    """Release an answer from each of several disjoint parts.

    Parameters
    ----------
    step : Step
        From a table to a released answer, such as ``count() >> laplace(1.0)``.

    Returns
    -------
    Step
        From groups to a dict of answers by key. One row added or removed touches one part, so
        the loss is that of one part; for more rows the worst way to spread them counts.

    Notes
    -----
    McSherry, *Privacy Integrated Queries*, SIGMOD 2009, Theorem 4. One replaced row may leave one
    part and enter another: `group_by` counts it twice.
    """

    def build(space: Space) -> Measurement:
        groups = take_domain(space, Groups, "parallel", "groups", "group_by(column, keys)")
        inner = Space(domain=groups.table, metric=SYMMETRIC) >> step
        if not isinstance(inner, Measurement):
            raise ParameterError(f"parallel takes a step that releases, got {step.name}")
        return Measurement(
            name=f"parallel({inner.name})",
            source=space,
            measure=inner.measure,
            draw=lambda data: {key: inner.draw(data[key]) for key in groups.keys},
            known=lambda d_in: _split(inner, int(d_in.value), len(groups.keys)),
            relation=inner.relation,
            raw=inner.raw,
        )

    return Step(f"parallel({step.name})", build)


def _split(inner: Measurement, rows: int, parts: int) -> dict[Measure, Loss]:
    """Bound the loss over all ways to spread rows; of a curve, where nothing else is known."""
    known = [inner.known(Distance(share)) for share in range(rows + 1)]
    found: dict[Measure, Loss] = {}
    if rows <= 1:
        return dict(known[rows])
    for measure in (PURE, ZCDP):
        if all(measure in each for each in known):
            found[measure] = worst_split(_amount(known, measure), rows, parts)
    curve = _stated(known[1], PRIVACY_PROFILE)
    if not found and curve is not None:
        return {PRIVACY_PROFILE: privacy_loss.profile(lambda level: _group(curve, level, rows))}
    if any(_stated(each, RENYI) is not None for each in known):
        bounds = [restated(each, RENYI) for each in known]
        found[RENYI] = lambda order: worst_split(
            lambda share: _at(bounds[share], order), rows, parts
        )
    return found


def _group(curve: Any, level: float, rows: int) -> float:
    """Bound delta where several rows differ, by that of one.

    Each of them adds ``level / rows``, and what was lost before it grows by that: group privacy.
    """
    share = round_down(level / rows)
    grown = rows if not share else math.expm1(level) / math.expm1(share)
    return round_up(curve.delta(share) * grown, LIBRARY, ceiling=1.0)


def _amount(known: Sequence[Any], measure: Measure) -> Callable[[int], float]:
    return lambda share: float(known[share][measure])


def _at(bound: Any, order: float) -> float:
    return float(bound(order))
