"""The rows of a scan, for Ibis: those that the filters and the contribution bounds keep.

Everything here works row by row, or on the rows of one user at a time. Which rows of a user the
contribution bounds keep depends on the rows of that user and on a secret key only: the rows are
ordered by a keyed hash of the user and of the columns that the query uses, then by these columns,
so rows that still tie are equal. So for every key, adding or removing a user leaves the rows of all
others as they were. No guarantee depends on how random the order is.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hushed._ground.types import ColumnType
from hushed.errors import ParameterError
from hushed.tables import _engine as engine
from hushed.tables._engine import operations
from hushed.tables._joins import Join, JoinUsers
from hushed.tables._measurements import Measurement, UnitContribution
from hushed.tables._query import Query, Step, added_columns, needed_columns
from hushed.tables._requests import Derive, Filter, Keys
from hushed.tables._translation import find_arithmetic, translate

_MOST_STEPS = 50  # nested selects take Ibis a time that grows with the square of their number
TOO_LONG = (
    "the query is too long to be compiled: derive fewer columns in one query "
    f"(conditions, derived columns and operations in them: about {_MOST_STEPS})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What the engine has to do."""

    connection: engine.Connection  # the table
    query: Query  # what is asked
    contribution: UnitContribution  # what one unit of privacy contributes at most
    measured: tuple[Measurement, ...]  # what is counted and added up
    copy: engine.Copy | None = None  # the bounded rows, if they are copied


def key_names(scan: Scan) -> list[str]:
    """Name the columns of the keys."""
    return [f"k{i}" for i in range(len(scan.query.keys.columns))]


def bound_rows(scan: Scan, secret: int, columns: Sequence[str]) -> Any:
    """Select users, keys and columns of the filtered rows, within the contribution bounds.

    The columns are called w0, w1 and so on, in their order.
    """
    return _bound_contributions(scan, select_rows(scan, secret, columns), secret)


def select_rows(scan: Scan, secret: int, columns: Sequence[str]) -> Any:
    """Select users, keys and columns of the filtered rows, and nothing else."""
    rows, places = _apply_steps(scan, secret, columns)
    if not filters_groups(scan):
        rows = keep_known_keys(rows, scan.query.keys, places)
    picked = [
        rows[places[column]].name(f"k{i}") for i, column in enumerate(scan.query.keys.columns)
    ]
    if scan.query.user is not None:
        rows = rows.filter(rows[places[scan.query.user]].notnull())
        picked.append(rows[places[scan.query.user]].name("user"))
    picked += [rows[places[each]].name(f"w{i}") for i, each in enumerate(columns)]
    return rows.select(*picked) if picked else rows


def digest_selection(query: Query) -> str:
    """Digest what decides which rows the contribution bounds keep, besides the secret key."""
    facts = query.facts()
    chosen = {name: facts[name] for name in ("user", "steps", "keys", "contribution_bounds")}
    return hashlib.sha256(repr(chosen).encode()).hexdigest()


def _apply_steps(scan: Scan, secret: int, columns: Sequence[str]) -> tuple[Any, dict[str, str]]:
    """Apply filters and derived columns in order; also give the new name of each column.

    The columns that the query needs get names of our own from the start: an engine may ignore the
    case of names, and then confuse two columns.
    """
    needed = {scan.query.user, *scan.query.keys.columns, *columns}
    steps: list[Step] = []
    for step in reversed(scan.query.steps):
        keeps = _keeps_rows(step)
        if not keeps or needed & set(added_columns(step)):
            steps.insert(0, step)
            needed |= needed_columns(step)
    _require_short(steps)
    stored = [name for name in scan.connection.casts if name in needed]
    places = {name: f"c{i}" for i, name in enumerate(stored)}
    rows = engine.normalise_columns(scan.connection, places)
    for i, step in enumerate(steps):
        if isinstance(step, Derive):
            rows = translate(step.value, rows, f"d{i}", places)
            places[step.name] = f"d{i}"
            continue
        if isinstance(step, Join):
            rows = _join_public(rows, step, f"p{i}_", places)
            continue
        if isinstance(step, JoinUsers):
            rows = _join_users(scan, rows, step, secret, f"q{i}_", places)
            continue
        rows = translate(step.condition, rows, "condition", places)
        rows = rows.filter(rows["condition"]).drop("condition")
    return rows, places


def _keeps_rows(step: Step) -> bool:
    """Whether a step only adds columns."""
    if isinstance(step, JoinUsers):
        return step.default is not None
    return isinstance(step, Derive) or (isinstance(step, Join) and step.keeps_all)


def _join_public(rows: Any, step: Join, prefix: str, places: dict[str, str]) -> Any:
    """Add the columns of a public table; a row meets one row of it at most."""
    held = [(step.keys, step.type), *((each.values, each.type) for each in step.columns)]
    known = operations.constant_rows(held)
    defaults = {each.name: (each.type, each.default) for each in step.columns}
    return _meet(rows, known, (places[step.on], prefix), places, defaults, kept=step.keeps_all)


def _join_users(
    scan: Scan, rows: Any, step: JoinUsers, secret: int, prefix: str, places: dict[str, str]
) -> Any:
    """Add the columns of another private table; a row meets one row of its own user at most."""
    chosen = [step.user, *(name for name, _ in step.columns if name != step.user)]
    names = {name: f"j{i}" for i, name in enumerate(chosen)}
    known = engine.normalise_columns(scan.connection.others[step.table], names)
    known = known.filter(known["j0"].notnull())
    columns = [known[name] for name in names.values()]
    known = _keep_first(scan.connection.engine, known, "j0", (secret ^ 3, columns, columns), 1)
    known = known.select(
        known["j0"], *(known[names[n]].name(f"j{i + 1}") for i, (n, _) in enumerate(step.columns))
    )
    values = step.default or (None,) * len(step.columns)
    added = zip(step.columns, values, strict=True)
    defaults = {name: (kind, value) for (name, kind), value in added}
    own = places[str(scan.query.user)]
    return _meet(rows, known, (own, prefix), places, defaults, kept=step.default is not None)


def _meet(
    rows: Any,
    known: Any,
    named: tuple[str, str],
    places: dict[str, str],
    added: Mapping[str, tuple[ColumnType, Any]],
    *,
    kept: bool,
) -> Any:
    """Join rows with others, of which each key, j0, has one row: add j1, j2 and so on.

    `named` are the column that meets the key, and the prefix of the new columns.
    """
    key, prefix = named
    joined = rows.join(known, [rows[key] == known["j0"]], how="left" if kept else "inner")
    picked = [joined[name] for name in rows.columns]
    for i, (name, (kind, default)) in enumerate(added.items()):
        value = joined[f"j{i + 1}"]
        if kept:
            stated = operations.constant(default, kind)
            value = operations.cases((joined["j0"].isnull(), stated), otherwise=value)
        places[name] = f"{prefix}{i}"
        picked.append(value.name(places[name]))
    return operations.materialise(joined.select(*picked))


def _require_short(steps: Sequence[Step]) -> None:
    """Refuse at once a query that the engine would refuse after minutes."""
    trees = [_tree(each) for each in steps if isinstance(each, Filter | Derive)]
    if len(steps) + sum(len(find_arithmetic(each)) for each in trees) > _MOST_STEPS:
        raise ParameterError(TOO_LONG)


def _tree(step: Filter | Derive) -> ast.expr:
    return step.value.tree if isinstance(step, Derive) else step.condition.tree


def keep_known_keys(rows: Any, keys: Keys, places: Mapping[str, str]) -> Any:
    """Drop rows, or groups, whose key is missing or is not a public key."""
    for i, column in enumerate(keys.columns):
        if keys.values is None:
            rows = rows.filter(rows[places[column]].notnull())
        else:
            known = operations.constant_table(keys.values[i], keys.types[i])
            name = f"constant{i}"  # Ibis could not tell two columns with the same keys apart
            known = known.select(known["constant"].name(name))
            rows = rows.semi_join(known, rows[places[column]] == known[name])
    return rows


def filters_groups(scan: Scan) -> bool:
    """Whether public keys filter the groups, which are fewer than the rows.

    With contribution bounds they filter the rows: else other rows of a user could use up the bound.
    """
    return scan.query.user is None and not scan.query.keys.selected


def _bound_contributions(scan: Scan, rows: Any, secret: int) -> Any:
    """Apply the contribution bounds to each user, in the order of a keyed hash."""
    if scan.query.user is None:
        return rows
    keys = key_names(scan)
    rest = [name for name in rows.columns if name not in (*keys, "user")]
    who = scan.connection.engine
    bounds, contribution = scan.query.contribution_bounds, scan.contribution
    if keys and bounds.max_groups_per_user is not None:
        columns = [rows[name] for name in ("user", *keys)]
        order = [operations.keyed_hash(who, secret ^ 1, columns)]
        rank = operations.dense_rank([rows["user"]], [*order, *(rows[k] for k in keys)])
        rows = _keep_ranked(rows, rank, contribution.groups)
    if bounds.max_rows_per_user is not None:
        columns = [rows[name] for name in (*keys, *rest)]
        by = (secret ^ 2, [rows["user"], *columns], columns)
        rows = _keep_first(who, rows, "user", by, bounds.max_rows_per_user)
    return rows


def _keep_first(
    who: engine.Dialect,
    rows: Any,
    user: str,
    by: tuple[int, Sequence[Any], Sequence[Any]],
    limit: int,
) -> Any:
    """Keep the first rows of each user by the hash of some columns under a key, then by others.

    An engine may rank the rows of small hashes first. Where they hold as many of a user as are
    kept, these are the first ones of all, whatever counts as small; other users are ranked whole.
    """
    secret, hashed, ties = by
    rows = rows.mutate(hash=operations.keyed_hash(who, secret, hashed))
    names = ["hash", *(each.get_name() for each in ties)]
    kept = [name for name in rows.columns if name != "hash"]

    def rank(some: Any) -> Any:
        place = operations.row_rank([some[user]], [some[name] for name in names])
        ranked = some.mutate(place=place)
        return ranked.filter(ranked["place"] < limit)

    if not who.ranks_small_first:
        return rank(rows).select(*kept)
    small = rank(rows.filter(rows["hash"] < operations.small_hash(rows, user, limit)))
    whole = small.filter(small["place"] == limit - 1).select(whole=small[user])
    first = small.semi_join(whole, small[user] == whole["whole"])
    others = rank(rows.anti_join(whole, rows[user] == whole["whole"]))
    return first.union(others).select(*kept)


def _keep_ranked(rows: Any, rank: Any, limit: int) -> Any:
    ranked = rows.mutate(place=rank)
    return ranked.filter(ranked["place"] < limit).drop("place")
