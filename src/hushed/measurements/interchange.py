"""OpenDP's transformations and measurements in a chain of ours, and ours in OpenDP.

What comes from OpenDP keeps its own function, arithmetic and map: its proofs are trusted, only
membership in the source domain is checked before, which OpenDP does not do. What goes to OpenDP is
built anew from its constructors: it computes the same question in OpenDP's arithmetic, under
OpenDP's map and with OpenDP's noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hushed import privacy_loss
from hushed.errors import NotFound, ParameterError
from hushed.measurements.losses import CurveLoss, Loss
from hushed.measurements.record import Measurement
from hushed.spaces import (
    ABSOLUTE,
    CHANGE_ONE,
    L1,
    L2,
    LOSS_CURVE,
    PURE,
    SUP,
    SYMMETRIC,
    ZCDP,
    Cell,
    Column,
    Domain,
    Measure,
    Numbers,
    Space,
)
from hushed.transformations.chain import Transformation, guarded, linear

__all__ = ["from_opendp", "to_opendp"]

_METRICS = {
    "SymmetricDistance": SYMMETRIC,
    "ChangeOneDistance": CHANGE_ONE,
    "AbsoluteDistance": ABSOLUTE,
    "L1Distance": L1,
    "L2Distance": L2,
    "LInfDistance": SUP,
}
_MEASURES = {
    "MaxDivergence": PURE,
    "ZeroConcentratedDivergence": ZCDP,
    "Approximate(MaxDivergence)": LOSS_CURVE,
}
_KINDS = {"f64": "float", "f32": "float", "String": "text"} | {
    f"{sign}{bits}": "int" for sign in "iu" for bits in (8, 16, 32, 64)
}
_TYPES = {"float": "f64", "int": "i64", "text": "String"}


def from_opendp(thing: Any, *, dims: int | None = None) -> Transformation | Measurement:
    """Put an OpenDP transformation or measurement into a chain.

    Parameters
    ----------
    thing : opendp.Transformation or opendp.Measurement
        Between columns and answers of numbers or texts, under symmetric, change-one, absolute,
        L1, L2 or LInf distances; a measurement under max divergence, zero-concentrated
        divergence or approximate max divergence.
    dims : int, optional
        Length of a vector of answers, where OpenDP does not know it.

    Returns
    -------
    Transformation or Measurement
        With OpenDP's function and map.

    Raises
    ------
    ParameterError
        If a domain, metric or measure has no equivalent here.
    """
    source = _space(thing.input_domain, thing.input_metric, dims)
    whole = not _of_floats(thing.input_metric)
    called = guarded(lambda data: thing(data.tolist()))

    def bound(distance: float) -> Any:
        if math.isinf(distance):
            return math.inf
        return thing.map(math.ceil(distance) if whole else float(distance))

    if hasattr(thing, "output_measure"):
        measure = _measure(thing.output_measure)
        return Measurement(
            name="opendp measurement",
            source=source,
            measure=measure,
            draw=called,
            known=lambda d_in: _loss(bound(d_in.value), measure),
        )
    target = _space(thing.output_domain, thing.output_metric, dims)
    return Transformation(
        name="opendp transformation",
        source=source,
        target=target,
        function=lambda data: target.domain.check(called(data)),
        relation=linear(bound),
    )


def _of_floats(metric: Any) -> bool:
    return "f64" in repr(metric) or "f32" in repr(metric)


def _space(domain: Any, metric: Any, dims: int | None) -> Space:
    name = repr(metric).partition("(")[0]
    if name not in _METRICS:
        raise ParameterError(f"no equivalent of OpenDP's {metric!r}; there are {list(_METRICS)}")
    found = _METRICS[name]
    return Space(domain=_domain(domain, rows=found.of_rows, dims=dims), metric=found)


def _domain(domain: Any, *, rows: bool, dims: int | None) -> Domain:
    carrier = str(domain.carrier_type)
    listed = carrier.startswith("Vec<")
    kind = _KINDS.get(carrier.removeprefix("Vec<").removesuffix(">"))
    if kind is None or listed < rows:
        raise ParameterError(f"no equivalent of OpenDP's domain {domain!r}")
    if rows:
        atom = domain.element_domain
        bounds = None if kind == "text" else atom.bounds
        low, high = (None, None) if bounds is None else bounds
        missing = kind == "float" and bool(atom.nan)
        cell = Cell(kind=_kind(kind), low=low, high=high, missing=missing)
        return Column(cell=cell, size=domain.size)
    length = (domain.size or dims) if listed else None
    if listed and length is None:
        raise ParameterError("OpenDP does not know the length of the answers: give dims=")
    return Numbers(kind="int" if kind == "int" else "float", dims=length)


def _kind(name: str) -> Any:
    return name


def _measure(measure: Any) -> Measure:
    found = _MEASURES.get(repr(measure))
    if found is None:
        raise ParameterError(f"no equivalent of OpenDP's {measure!r}; there are {list(_MEASURES)}")
    return found


def _loss(loss: Any, measure: Measure) -> Mapping[Measure, Loss]:
    if measure != LOSS_CURVE:
        return {measure: float(loss)}
    epsilon, delta = loss if isinstance(loss, tuple) else (loss, 1.0)
    return {LOSS_CURVE: CurveLoss(curve=privacy_loss.approximate(float(epsilon), float(delta)))}


def to_opendp(chain: Transformation | Measurement) -> Any:
    """Build a chain anew in OpenDP.

    Parameters
    ----------
    chain : Transformation or Measurement
        From a column, by clip, impute, resize, to_change_one, to_symmetric, count, sum_of, mean,
        variance or histogram of texts and integers, to laplace or gaussian.

    Returns
    -------
    opendp.Transformation or opendp.Measurement
        The same question in OpenDP's arithmetic and under OpenDP's map.

    Raises
    ------
    NotFound
        If OpenDP is not installed.
    ParameterError
        If a step has no equivalent there; it is named.
    """
    dp = _opendp()
    first = chain.first if isinstance(chain, Measurement) else chain
    if first is None:
        raise ParameterError("only a chain that starts at a column can be exported")
    domain, metric = _start(dp, first.source)
    built: Any = None
    for step in first.steps or (first,):
        counted = not step.target.metric.of_rows or step.name.startswith("resize")
        if counted and repr(metric).startswith("ChangeOne"):  # these take symmetric distances
            built = _behind(built, dp.t.make_metric_unbounded(domain, metric))
            domain, metric = built.output_domain, built.output_metric
        built = _behind(built, _step(dp, step, domain, metric))
        domain, metric = built.output_domain, built.output_metric
    if isinstance(chain, Transformation):
        return built
    makers = {"laplace": dp.m.make_laplace, "gaussian": dp.m.make_gaussian}
    name, scale = chain.settings if len(chain.settings) == 2 else (chain.name, None)
    if name not in makers:
        raise ParameterError(f"OpenDP has no equivalent of {name}; there are {list(makers)}")
    return built >> makers[name](domain, metric, scale=scale)


def _behind(built: Any, made: Any) -> Any:
    return made if built is None else built >> made


def _opendp() -> Any:
    try:
        import opendp.prelude as dp  # noqa: PLC0415  (1.5 s)
    except ImportError:
        raise NotFound("OpenDP is not installed: pip install 'hushed[opendp]'") from None
    dp.enable_features("contrib")
    return dp


def _start(dp: Any, space: Space) -> tuple[Any, Any]:
    column = space.domain
    if not isinstance(column, Column) or (column.cell.kind == "text" and column.cell.missing):
        raise ParameterError(f"only a chain that starts at a column can be exported, not {space}")
    cell = column.cell
    bounds = None if cell.low is None else (cell.low, cell.high)
    nan = {"nan": cell.missing} if cell.kind == "float" else {}
    atom = dp.atom_domain(T=_TYPES[cell.kind], bounds=bounds, **nan)
    metrics = {"symmetric": dp.symmetric_distance, "change-one": dp.change_one_distance}
    return dp.vector_domain(atom, size=column.size), metrics[space.metric.name]()


def _step(dp: Any, step: Transformation, domain: Any, metric: Any) -> Any:
    name = step.name.partition("(")[0]
    makers: dict[str, Callable[..., Any]] = {
        "clip": lambda: dp.t.make_clamp(domain, metric, _bounds(step)),
        "impute": lambda: dp.t.make_impute_constant(domain, metric, step.settings[0]),
        "resize": lambda: _resize(dp, step, domain, metric),
        "to_change_one": lambda: dp.t.make_metric_bounded(domain, metric),
        "to_symmetric": lambda: dp.t.make_metric_unbounded(domain, metric),
        "count": lambda: dp.t.make_count(domain, metric, TO="i64"),
        "sum_of": lambda: dp.t.make_sum(domain, metric),
        "mean": lambda: dp.t.make_mean(domain, metric),
        "variance": lambda: dp.t.make_variance(domain, metric, ddof=0),
        "histogram": lambda: _histogram(dp, step, domain, metric),
    }
    if name not in makers:
        raise ParameterError(f"OpenDP has no equivalent of {step.name}; there are {list(makers)}")
    try:
        return makers[name]()
    except (dp.OpenDPException, TypeError) as cause:  # settings are public, no rows are involved
        problem = str(cause).strip().splitlines()[-1:]
        raise ParameterError(
            f"OpenDP refuses {step.name} on {step.source}: {' '.join(problem)}"
        ) from cause


def _bounds(step: Transformation) -> tuple[Any, Any]:
    column = step.target.domain
    if not isinstance(column, Column):
        raise ParameterError(f"{step.name} does not give a column")
    return column.cell.low, column.cell.high


def _resize(dp: Any, step: Transformation, domain: Any, metric: Any) -> Any:
    sized = dp.t.make_resize(domain, metric, *step.settings)
    return sized >> dp.t.make_metric_bounded(sized.output_domain, sized.output_metric)


def _histogram(dp: Any, step: Transformation, domain: Any, metric: Any) -> Any:
    bins, norm = step.settings
    column = step.source.domain
    metrics = {"l1": "L1Distance<i64>", "l2": "L2Distance<f64>"}
    if norm not in metrics or not isinstance(column, Column) or column.cell.kind == "float":
        raise ParameterError("OpenDP counts texts and integers only, in the l1 or l2 norm")
    categories = [int(x) if isinstance(x, np.integer) else x for x in bins]
    return dp.t.make_count_by_categories(
        domain, metric, categories, null_category=False, MO=metrics[norm], TOA="i64"
    )
