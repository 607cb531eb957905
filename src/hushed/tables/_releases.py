"""From a query to its plan, and from the plan to a noisy answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol

from hushed import noise
from hushed.errors import ParameterError, QueryFailed
from hushed.releasing._keeping import Payment, write_failure
from hushed.releasing._release import default_note
from hushed.tables import _engine as engine
from hushed.tables._answers import Answer, evaluate, rank_errors
from hushed.tables._drawing import drawn, named
from hushed.tables._expressions import Kind
from hushed.tables._measurements import influence, measurements
from hushed.tables._plan import NoiseName, NormalNoise, Plan, gaussian_numbers, lay, noise_dims
from hushed.tables._remarks import present_rows, remarks
from hushed.tables._requests import Aggregate, Derive, Filter, Keys, Limits
from hushed.tables._scan import Key, Prepared, Scan, name_keys, prepare, scan
from hushed.tables._stored import read_answer, write_answer

_MOST_AGGREGATES = 100


class Asked(Protocol):
    """A query, as it is planned and answered."""

    @property
    def connection(self) -> engine.Connection:
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
        raise ParameterError(
            "nothing is asked",
            parameter="count",
            hint="add .count(), .sum(...) or another aggregate",
        )
    if len(query.aggregates) > _MOST_AGGREGATES:
        raise ParameterError(f"one query has at most {_MOST_AGGREGATES} aggregates: ask several")
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


def _rehearsed(query: Asked, plan: Plan, what: Scan, beta: float, clock: engine.Clock) -> Prepared:
    """Do all that no row decides, before anything is charged.

    The engine plans the very queries that will run. Then noise is drawn and an answer made up for
    one group of nothing: what a grid, a scale or an error bar would refuse is refused now.
    """
    ready = prepare(what, int(noise.uniform_integers(1 << 63)), clock)
    nothing = [
        [[0] * part.measurement.feature.bins]
        if part.measurement.role in ("bins", "rank") and part.measurement.feature
        else [0]
        for part in plan.parts
    ]
    for part in plan.parts:
        if isinstance(part.noise, NormalNoise):
            part.noise.grid(noise_dims())
    if plan.selection is not None:
        named(plan.selection, ["0" * 32], [0])
    _answer(query, plan, [("",) * len(query.keys.columns)], nothing, beta)
    return ready


def _answered(
    query: Asked, plan: Plan, ready: Prepared, beta: float, clock: engine.Clock
) -> Answer:
    """Run the scan, draw, and put the answer together; what is exact ends here."""
    cells = scan(ready, clock)
    keys, values = list(cells.keys), [list(column) for column in cells.values]
    if plan.selection is not None and cells.users is not None:
        chosen = named(plan.selection, [key[0] for key in keys], cells.users)
        place = {key[0]: i for i, key in enumerate(keys)}
        names = name_keys(ready, chosen, clock)
        ordered = sorted(chosen, key=lambda name: names[name])
        values = [[column[place[name]] for name in ordered] for column in values]
        keys = [names[name] for name in ordered]
        _require_few(plan, len(keys), QueryFailed, "so many keys were named")
    return _answer(query, plan, keys, values, beta)


def _answer(
    query: Asked, plan: Plan, keys: Sequence[Key], values: Sequence[list[Any]], beta: float
) -> Answer:
    """Draw noise on exact cells, and say what they come to."""
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
        remarks=(
            *query.connection.remarks,
            *remarks(query.aggregates, plan.parts, noisy, beta),
        ),
        level=1 - beta,
        guarantee=plan.guarantee,
        unit=plan.unit,
    )


def released(
    query: Asked,
    plan: Plan,
    what: Scan,
    *,
    beta: float,
    clock: engine.Clock,
    charge: Callable[[], Payment],
    known: bool,
) -> Answer:
    """Plan, charge, ask and draw, while no other thread asks the same table.

    What was answered under the caller's key before (`known`) is read again, and nothing asked. An
    answer is stored before it is shown; so is a failure, which may tell of the rows, but not the
    loss of the connection, or that the user stopped it: then the same key asks again, at no cost.
    """
    if known:
        paid = charge()
        if paid.kept is not None:
            return _stored(paid, paid.kept)
    answer, failed, lost, stopped = None, "", False, False
    with engine.held(query.connection, clock):
        ready = _rehearsed(query, plan, what, beta, clock)
        paid = charge()
        if paid.kept is not None:  # another process was faster
            return _stored(paid, paid.kept)
        try:
            answer = _answered(query, plan, ready, beta, clock)
        except KeyboardInterrupt:
            failed, stopped = "stopped; nothing was released", True
        except QueryFailed as error:
            failed, lost = str(error), isinstance(error, engine.ConnectionLost)
        except Exception as error:  # whatever it is, its own text may quote a private value
            failed = f"{query.connection.engine} did not answer ({type(error).__name__})"
    if answer is not None:
        return answer if paid.number is None else _stored(paid, paid.keep(write_answer(answer)))
    stays = "count the budget as spent" if paid.ledger is None else "the charge stays"
    if stopped or (lost and paid.key is not None):
        again = "" if paid.key is None else f": ask again under the key {paid.key!r}, at no cost"
        raise (KeyboardInterrupt if stopped else QueryFailed)(f"{failed}; {stays}{again}")
    failure = QueryFailed(f"{failed}; {stays}")
    if paid.number is not None and not lost:
        _stored(paid, paid.keep(write_failure(failure)))
    raise failure


def _stored(paid: Payment, text: str) -> Answer:
    """Answer as it is stored; a stored failure is raised."""
    return replace(read_answer(text), entry=paid.number)
