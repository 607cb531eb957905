"""From a query to its plan, and from the plan to a noisy answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, Protocol

from hushed import noise
from hushed.errors import ParameterError, QueryFailed
from hushed.release import default_note
from hushed.tables.answers import Answer, evaluate, rank_errors
from hushed.tables.drawing import drawn, named
from hushed.tables.engine import Connection, require_alive
from hushed.tables.expressions import Kind
from hushed.tables.measurements import influence, measurements
from hushed.tables.plan import NoiseName, Plan, gaussian_numbers, lay, noise_dims
from hushed.tables.remarks import present_rows, remarks
from hushed.tables.requests import Aggregate, Derive, Filter, Keys, Limits
from hushed.tables.scan import Scan, name_keys, require_short, scan

__all__ = ["Asked", "answered", "described", "planned", "require_ready"]


class Asked(Protocol):
    """A query, as it is planned and answered."""

    @property
    def connection(self) -> Connection:
        """Where the rows are."""

    @property
    def user(self) -> str | None:
        """Column of the user."""

    @property
    def columns(self) -> Mapping[str, Kind]:
        """Kind of each column."""

    @property
    def steps(self) -> tuple[Filter | Derive, ...]:
        """Filters and derived columns."""

    @property
    def keys(self) -> Keys:
        """The grouping."""

    @property
    def limits(self) -> Limits:
        """What of one user counts."""

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """What is asked."""

    @property
    def unit(self) -> Literal["user", "row"]:
        """Whom the promise protects."""


def planned(
    query: Asked, *, epsilon: float, delta: float, noise_name: NoiseName
) -> tuple[Plan, Scan]:
    """Lay out the noise and the scan of a query; nothing is read."""
    if not query.aggregates:
        raise ParameterError("nothing is asked: add .count(), .sum(...) or another aggregate")
    touched = influence(query.keys, query.limits, by_user=query.user is not None)
    measured = tuple(
        part for each in query.aggregates for part in measurements(each, touched, query.columns)
    )
    plan = lay(
        query.aggregates,
        measured,
        touched=touched,
        unit=query.unit,
        private_keys=query.keys.private,
        epsilon=epsilon,
        delta=delta,
        noise_name=noise_name,
    )
    if query.keys.values is not None:
        groups = math.prod(map(len, query.keys.values))
        _require_few(plan, groups, ParameterError, "ask for fewer keys, bins or aggregates")
    what = Scan(
        connection=query.connection,
        user=query.user,
        steps=query.steps,
        keys=query.keys,
        limits=query.limits,
        touched=touched,
        measured=measured,
    )
    return plan, what


def _require_few(
    plan: Plan, groups: int, problem: type[ParameterError | QueryFailed], advice: str
) -> None:
    """Refuse more numbers with Gaussian noise than its curve is proved for, all together."""
    found = gaussian_numbers(plan.parts, groups)
    if found > noise_dims():
        raise problem(
            f"a query releases at most {noise_dims()} numbers with Gaussian noise, this one "
            f"{found}: {advice}"
        )


def described(query: Asked) -> str:
    """Say in public names what is asked: a remark for the ledger. No constant, no key, no row."""
    asked = ", ".join(
        each.kind if each.column is None else f"{each.kind}({each.column})"
        for each in query.aggregates
    )
    filtered = " of filtered rows" if any(isinstance(s, Filter) for s in query.steps) else ""
    grouped = f" by {', '.join(query.keys.columns)}" if query.keys.columns else ""
    return default_note(f"query: {asked}{filtered}{grouped}")


def require_ready(what: Scan) -> None:
    """Refuse, before anything is charged, what cannot be asked or will not be answered."""
    require_short(what)
    require_alive(what.connection)


def answered(query: Asked, plan: Plan, what: Scan, beta: float) -> Answer:
    """Run the scan, draw, and put the answer together; what is exact ends here."""
    secret = int(noise.uniform_integers(1 << 63))
    cells = scan(what, secret)
    keys, values = list(cells.keys), [list(column) for column in cells.values]
    if plan.selection is not None and cells.users is not None:
        chosen = named(plan.selection, [key[0] for key in keys], cells.users)
        place = {key[0]: i for i, key in enumerate(keys)}
        names = name_keys(what, secret, chosen)
        ordered = sorted(chosen, key=lambda name: names[name])
        values = [[column[place[name]] for name in ordered] for column in values]
        keys = [names[name] for name in ordered]
        _require_few(plan, len(keys), QueryFailed, "so many keys were named")
    noisy = [drawn(part, column) for part, column in zip(plan.parts, values, strict=True)]
    found, low, high = evaluate(query.aggregates, plan.parts, noisy, beta)
    columns = query.keys.columns
    return Answer(
        keys={name: tuple(key[i] for key in keys) for i, name in enumerate(columns)},
        values=found,
        low=low,
        high=high,
        rank_error=rank_errors(query.aggregates, plan.parts, beta),
        present=present_rows(query.aggregates, plan.parts, noisy),
        remarks=remarks(query.aggregates, plan.parts, noisy, beta),
        level=1 - beta,
        guarantee=plan.guarantee,
        unit=plan.unit,
    )
