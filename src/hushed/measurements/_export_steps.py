"""One step of ours in OpenDP: which of its constructors asks the same, and what it refuses."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from hushed._ground.numeric import finite_above
from hushed.errors import ParameterError
from hushed.measurements._export_spaces import Place, aligned, begin, beyond, trusted
from hushed.spaces import Column, Domain, Space, Table
from hushed.transformations._chain import Transformation

_TRUSTED = ("", "select", "map_rows", "filter_rows")  # what OpenDP cannot check
_LEVEL_ERROR = Fraction(1, 1 << 19)
_NONE = {
    "group_by": "it knows disjoint parts in frames only",
    "each": "it knows disjoint parts in frames only",
    "limit_rows": "it knows users in frames only",
    "stack": "it has no rows that are vectors",
    "clip_norm": "it has no rows that are vectors",
    "vector_sum": "it has no rows that are vectors",
    "quantile_scores": "its scores are distances in units of their own, for its noisy max alone: "
    "put exponential(scale) behind them",
}


def named(step: Transformation) -> str:
    """Name the constructor of a step."""
    head, bracket, _ = step.name.partition("(")
    return head if bracket and head.isidentifier() else ""


def check_step(step: Transformation) -> None:
    """Refuse a step that has no equivalent in OpenDP, whatever it is told to trust."""
    name = named(step)
    if name in _NONE:
        raise ParameterError(f"OpenDP has no equivalent of {step.name}: {_NONE[name]}")
    if name in _TRUSTED or name == "to_change_one":
        return
    if isinstance(step.source.domain, Table):
        raise ParameterError(f"OpenDP has no {name} of a table: select a column before it")
    if name not in _ROWS:
        raise ParameterError(f"OpenDP has no equivalent of {step.name}; there are {tuple(_ROWS)}")


def step_behind(dp: Any, place: Place, step: Transformation) -> Place:
    """Put one step of ours behind a chain in OpenDP."""
    check_step(step)
    name = named(step)
    if name in _TRUSTED:
        place = aligned(dp, place, step.source)
        if len(step.settings) == 2 and step.settings[0] == "opendp":
            return _part(dp, place, step)
        return place.behind(_own(dp, place, step))
    if name == "to_change_one":
        return aligned(dp, place, step.target)
    if name in _ROWS:  # OpenDP's take rows added and removed only
        found = _symmetric(dp, place, step)
        for make in _ROWS[name](dp, step):
            found = found.behind(beyond(dp, step, make, found.domain, found.metric))
        return _with_bounds(dp, found, step)
    raise ParameterError(f"OpenDP has no equivalent of {step.name}; there are {tuple(_ROWS)}")


def _symmetric(dp: Any, place: Place, step: Transformation) -> Place:
    if not repr(place.metric).startswith("ChangeOne"):
        return place
    make = dp.t.make_metric_unbounded
    return place.behind(beyond(dp, step, make, place.domain, place.metric))


def _with_bounds(dp: Any, place: Place, step: Transformation) -> Place:
    """Say again that a column has bounds, where OpenDP forgot: no row moves."""
    column = step.target.domain
    if not isinstance(column, Column) or column.cell.low is None or column.cell.missing:
        return place
    if place.domain.element_domain.bounds is not None:
        return place
    bounds = column.cell.low, column.cell.high
    return place.behind(beyond(dp, step, dp.t.make_clamp, place.domain, place.metric, bounds))


Maker = Callable[..., Any]


def _cast(dp: Any, step: Transformation) -> list[Maker]:
    old, new = _cell(step.source), _cell(step.target)
    if old.type == new.type:
        return []
    if (old.type, new.type) == ("string", "float"):
        return [lambda *space: dp.t.make_cast_inherent(*space, TOA="f64")]
    if new.type == "string" and old.type in ("int", "bool"):
        return [lambda *space: dp.t.make_cast_default(*space, TOA="String")]
    if (old.type, new.type) == ("bool", "int"):
        return [lambda *space: dp.t.make_cast_default(*space, TOA="i64")]
    if new.type == "float" and old.type in ("int", "bool"):
        return [  # every integer has a double here, so that the constant is never put in
            lambda *space: dp.t.make_cast_default(*space, TOA="f64"),
            lambda *space: dp.t.make_impute_constant(*space, 0.0),
        ]
    how = "cuts floats off at the point, instead of rounding them"
    if new.type == "string":
        how = "writes floats in another way"
    raise ParameterError(f"OpenDP has no equivalent of {step.name} of floats: it {how}")


def _histogram(dp: Any, step: Transformation) -> list[Maker]:
    bins, norm = step.settings
    metrics = {"l1": "L1Distance<i64>", "l2": "L2Distance<f64>"}
    if norm not in metrics:
        raise ParameterError(f"OpenDP counts in the l1 or l2 norm, not in norm={norm!r}")
    kind = _cell(step.source).type
    makers: list[Maker] = []
    read = bool if kind == "bool" else int
    categories = [read(x) if isinstance(x, int | np.integer | np.bool_) else x for x in bins]
    if kind == "float":
        edges = [float(x) for x in bins]
        makers = [lambda *space: dp.t.make_find_bin(*space, edges)]
        categories = list(range(1, len(edges)))
    return [
        *makers,
        lambda *space: dp.t.make_count_by_categories(
            *space, categories, null_category=False, MO=metrics[norm], TOA="i64"
        ),
    ]


def _resize(dp: Any, step: Transformation) -> list[Maker]:
    size, fill = step.settings
    constant = float(fill) if _cell(step.source).type == "float" else fill
    return [lambda *space: dp.t.make_resize(*space, size, constant)]


def _drop(dp: Any, step: Transformation) -> list[Maker]:
    return [dp.t.make_drop_null] if _cell(step.source).missing else []


def _impute(dp: Any, step: Transformation) -> list[Maker]:
    if not _cell(step.source).missing:
        return []
    value = step.settings[0]
    constant = value if isinstance(value, str) else float(value)
    return [lambda *space: dp.t.make_impute_constant(*space, constant)]


def _clip(dp: Any, step: Transformation) -> list[Maker]:
    cell = _cell(step.target)
    return [lambda *space: dp.t.make_clamp(*space, (cell.low, cell.high))]


_ROWS: dict[str, Callable[[Any, Transformation], list[Maker]]] = {
    "clip": _clip,
    "impute": _impute,
    "cast": _cast,
    "drop_missing": _drop,
    "resize": _resize,
    "to_symmetric": lambda _dp, _step: [],
    "count": lambda dp, _step: [lambda *space: dp.t.make_count(*space, TO="i64")],
    "sum_of": lambda dp, _step: [dp.t.make_sum],
    "mean": lambda dp, step: [_whole_table(step, dp.t.make_mean)],
    "variance": lambda dp, step: [
        _whole_table(step, lambda *space: dp.t.make_variance(*space, ddof=0))
    ],
    "histogram": _histogram,
}


def _whole_table(step: Transformation, make: Maker) -> Maker:
    """Refuse a mean that rests on a least number of rows."""
    least = step.settings[0] if step.settings else getattr(step.source.domain, "least", None)
    if least is not None:
        raise ParameterError(
            f"OpenDP has no equivalent of {step.name} of at least {least} rows: it knows their "
            "number or nothing; put resize(size, fill) before it"
        )
    return make


def _cell(space: Space) -> Any:
    if not isinstance(space.domain, Column):
        raise ParameterError(f"OpenDP takes columns, not {space.domain}: select one first")
    return space.domain.cell


def _part(dp: Any, place: Place, step: Transformation) -> Place:
    """Put what came from OpenDP back; ordered rows are then counted in any order."""
    found: Place = beyond(dp, step, place.behind, step.settings[1])
    if repr(found.metric) in ("HammingDistance()", "InsertDeleteDistance()"):
        make = dp.t.make_unordered
        found = found.behind(beyond(dp, step, make, found.domain, found.metric))
    return found


def _own(dp: Any, place: Place, step: Transformation) -> Any:
    """Give a function over as it is, with our map."""
    if step.map(1).terms:
        raise ParameterError(
            f"OpenDP has no equivalent of {step.name}: its sensitivity was sampled, and OpenDP has "
            "no place for gamma"
        )
    end = begin(dp, step.target)
    whole = "f64" not in repr(end.metric)

    def moved(distance: Any) -> Any:
        bound = step.map(distance).value
        return math.ceil(bound) if whole else bound

    def function(data: Any) -> Any:
        return _plain(step.function(step.source.domain.check(data)), step.target.domain)

    make = dp.t.make_user_transformation
    return trusted(
        dp,
        step.name,
        lambda: make(place.domain, place.metric, end.domain, end.metric, function, moved),
    )


def _plain(value: Any, domain: Domain) -> Any:
    return value if isinstance(domain, Table) else np.asarray(value).tolist()


def scored(dp: Any, place: Place, step: Transformation, scale: float, choose: Maker) -> Any:
    """Put quantile scores and the choice among them behind a chain in OpenDP.

    Notes
    -----
    OpenDP's scores are ours, negated and in units of ``1 / d`` for the denominator d that it
    finds for the level; so is its scale.
    """
    cell = _cell(step.source)
    points, alpha = step.settings
    if list(points) != sorted(points):
        raise ParameterError("OpenDP takes candidates in ascending order only")
    if cell.type == "int" and not all(point.is_integer() for point in points):
        raise ParameterError("OpenDP takes whole candidates only for a column of integers")
    candidates = [int(point) for point in points] if cell.type == "int" else list(points)
    place = _symmetric(dp, place, step)
    if cell.missing:  # missing rows count on neither side of a candidate
        place = place.behind(beyond(dp, step, dp.t.make_drop_null, place.domain, place.metric))
    make = dp.t.make_quantile_score_candidates
    made = beyond(dp, step, make, place.domain, place.metric, candidates, alpha)
    whole, level = _level(made, place.domain.size, candidates[0], alpha)
    if abs(level - Fraction(alpha)) > _LEVEL_ERROR:
        raise ParameterError(
            f"OpenDP would take the level {float(level):g} in place of {alpha}: without a public "
            "number of rows give a multiple of 1/10000"
        )
    place = place.behind(made)
    wide = finite_above(Fraction(scale) * whole)
    return place, beyond(dp, step, choose, place.domain, place.metric, wide, True)


def _level(made: Any, size: int | None, point: Any, alpha: float) -> tuple[int, Fraction]:
    """Find by which number OpenDP multiplies scores, and the level that it rounded to.

    One row below a candidate and one above it score ``d - n`` and ``n`` for a level ``n / d``;
    with a public number of rows, one replaced row moves a score by d.
    """
    if size is not None:
        whole = made.map(2)
        return whole, Fraction(math.floor(Fraction(alpha) * whole), whole)
    away = type(point)(max(1, abs(point)))
    below, above = made([point - away])[0], made([point + away])[0]
    return below + above, Fraction(above, below + above)
