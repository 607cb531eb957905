"""Where a chain starts and how far it has been built in OpenDP: domains, metrics, refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hushed.errors import BadRows, ParameterError
from hushed.spaces import Column, Domain, Numbers, Space, Table
from hushed.transformations._chain import Transformation

_TYPES = {"float": "f64", "int": "i64", "string": "String", "bool": "bool"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """How far a chain has been built."""

    built: Any = None  # what there is; None at the start
    # What it gives.
    domain: Any
    metric: Any

    def behind(self, made: Any) -> Place:
        """Put a transformation behind."""
        built = made if self.built is None else self.built >> made
        return Place(built=built, domain=made.output_domain, metric=made.output_metric)

    def closed(self, made: Any) -> Any:
        """Put a measurement behind."""
        return made if self.built is None else self.built >> made

    def fresh(self) -> Place:
        """Start a chain of its own here."""
        return replace(self, built=None)


def begin(dp: Any, space: Space) -> Place:
    """Say in OpenDP where a chain starts."""
    return Place(domain=_domain(dp, space.domain), metric=_metric(dp, space))


def _domain(dp: Any, domain: Domain) -> Any:
    if isinstance(domain, Table):
        return trusted(dp, domain, lambda: dp.user_domain(str(domain), _member(domain)))
    if isinstance(domain, Numbers):
        nan = {"nan": False} if domain.type == "float" else {}
        atom = dp.atom_domain(T=_TYPES[domain.type], **nan)
        return atom if domain.dims is None else dp.vector_domain(atom, size=domain.dims)
    if not isinstance(domain, Column):
        raise ParameterError(
            f"OpenDP has no equivalent of {domain}: a chain can start at a column, a table or "
            "answers"
        )
    cell = domain.cell
    if cell.type == "string" and cell.missing:
        raise ParameterError(
            "OpenDP's columns of strings that may be missing cannot be given rows from Python: "
            "declare Cell(type='string') and put a string of your own in place of what is missing"
        )
    bounds = None if cell.low is None else (cell.low, cell.high)
    nan = {"nan": cell.missing} if cell.type == "float" else {}
    atom = dp.atom_domain(T=_TYPES[cell.type], bounds=bounds, **nan)
    return dp.vector_domain(atom, size=domain.size)


def _member(table: Table) -> Callable[[Any], bool]:
    def lies(data: Any) -> bool:
        try:
            table.check(data)
        except BadRows:
            return False
        return True

    return lies


def _metric(dp: Any, space: Space) -> Any:
    name = space.metric.name
    if space.metric.unit == "user":
        raise ParameterError("OpenDP knows users in frames only: a chain can start at rows")
    if space.metric.of_rows:
        return dp.symmetric_distance() if name == "symmetric" else dp.change_one_distance()
    if name == "one-sided":
        raise ParameterError(
            "OpenDP has no equivalent of the one-sided distance: its LInfDistance(monotonic) is "
            "infinite for two rows that move answers both ways; use norm='sup'"
        )
    kind = "int" if isinstance(space.domain, Numbers) and space.domain.type == "int" else "float"
    makers = {
        "absolute": lambda: dp.absolute_distance(T=_TYPES[kind]),
        "l1": lambda: dp.l1_distance(T=_TYPES[kind]),
        "l2": lambda: dp.l2_distance(T="f64"),
        "sup": lambda: dp.linf_distance(T=_TYPES[kind]),
    }
    if name not in makers:
        raise ParameterError(f"OpenDP measures no such answers by {space.metric}")
    return makers[name]()


def aligned(dp: Any, place: Place, space: Space) -> Place:
    """Count rows as a space does."""
    bounded = repr(place.metric).startswith("ChangeOne")
    if not space.metric.of_rows or bounded == (space.metric.name == "change-one"):
        return place
    make = dp.t.make_metric_unbounded if bounded else dp.t.make_metric_bounded
    return place.behind(beyond(dp, space, make, place.domain, place.metric))


class NotTrusted(ParameterError):
    """What OpenDP takes on the word of its user alone, who has not given it."""


def trusted(dp: Any, what: Any, make: Callable[[], Any]) -> Any:
    """Make something of a function that OpenDP cannot check."""
    try:
        return make()
    except dp.OpenDPException as cause:
        raise NotTrusted(
            f"OpenDP cannot check {what} and takes it only on your word: call "
            'opendp.prelude.enable_features("honest-but-curious") first'
        ) from cause


def beyond(dp: Any, what: Any, make: Callable[..., Any], *given: Any) -> Any:
    """Call a constructor of OpenDP and say which step it refused."""
    try:
        return make(*given)
    except (dp.OpenDPException, TypeError, ValueError) as cause:
        problem = " ".join(str(cause).strip().splitlines()[-1:])
        where = f" on {what.source}" if isinstance(what, Transformation) else ""
        named_as = getattr(what, "name", str(what))
        raise ParameterError(f"OpenDP refuses {named_as}{where}: {problem}") from cause
