"""The commands of the main job: sensitivity and release."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import hushed as hs
from hushed._functions._loading import read_function
from hushed._ground.printing import format_up, tell_seconds
from hushed._rows._people import count_units
from hushed.cli._calibration import Target
from hushed.cli._delivery import deliver
from hushed.cli._inputs import check_named, find_user, in_blocks
from hushed.cli._open_ledger import open_named
from hushed.cli._options import (
    DataArgument,
    DependentOption,
    FunctionArgument,
    JsonOption,
    KeepPrivateOption,
    OutsideOption,
    TrialOption,
    option,
)
from hushed.cli._outcome import finish, print_line, print_notes
from hushed.cli._panels import NOISE
from hushed.cli._private_tables import read_table_like
from hushed.cli._records import Account, Output, Sampling, Source, take_records
from hushed.cli._tables import check_columns
from hushed.cli._written import inputs_of
from hushed.errors import BadRows, ParameterError
from hushed.guarantee import Neighbours
from hushed.spaces import Norm


@take_records
def sensitivity(
    function: FunctionArgument,
    public: Source,
    asked: Sampling,
    norm: Annotated[Norm, option("Norm of the movement.", NOISE)] = "l1",
    trial: TrialOption = False,
    json: JsonOption = False,
) -> None:
    """Measure how far a function moves between neighbouring tables."""
    with finish(json=json) as result:
        source, columns = public.read(asked.user)
        whose = find_user(asked.user, public.frame, columns, source)
        f = in_blocks(read_function(function), asked.block_rows, whose)
        rows = _read_rows(asked.rows)
        if trial:
            _tell_time(
                asked.expect(f, source, rows=rows, norm=norm, user=whose), result, quiet=json
            )
            return
        s = asked.measure(f, source, rows=rows, norm=norm, user=whose)
        remarks = s.explain().split("\n\n")[1:]
        result.update(_describe(s, asked), population=source.describe(), remarks=remarks)
        if not json:
            print_line(
                f"sensitivity {format_up(s.value)} in the {s.norm} norm: "
                f"number {s.rank} of {s.pairs} sampled movements, counted from the smallest; "
                f"gamma = {format_up(s.gamma)} ({asked.protect}, {asked.calibration})"
            )
            print_notes(remarks)


def _tell_time(found: Any, result: dict[str, Any], *, quiet: bool) -> None:
    result.update(asdict(found))
    if not quiet:
        print_line(
            f"about {tell_seconds(found.seconds)} on one processor: {found.pairs:,} pairs, about "
            f"{found.calls:,} calls, of {found.seconds_per_call:.2g} s each"
        )


def _read_rows(rows: list[int] | None) -> int | list[int]:
    """Read a number of rows, or several."""
    if not rows:
        raise ParameterError("give the number of rows of the private table", parameter="rows")
    return rows[0] if len(rows) == 1 else rows


def _count_rows(rows: list[int] | None, private: int, neighbours: Neighbours) -> int | list[int]:
    """Choose the number of rows to sample for: the private one where it is public.

    Who says the number there, too, gets no other one.
    """
    if neighbours == "add-remove":
        if not rows:
            raise ParameterError(
                "with --neighbours add-remove the number of rows is private: give public numbers "
                "that the promise is to be for, each with --rows",
                parameter="rows",
            )
        return _read_rows(rows)
    if rows and _read_rows(rows) != private:
        raise BadRows(
            f"the table has {private} rows, and --rows says {', '.join(map(str, rows))}: what was "
            "sampled for that number does not hold for this table"
        )
    return private


def _describe(s: hs.Sensitivity, asked: Sampling) -> dict[str, Any]:
    return {
        "sensitivity": s.value,
        "norm": s.norm,
        "gamma": s.gamma,
        "pairs": s.pairs,
        "rank": s.rank,
        "route": s.sampling.design.route if s.sampling else "",
        "shape": list(s.sampling.shape) if s.sampling else [],
        "calibration": asked.calibration,
        "protect": asked.protect,
        "rows": _read_rows(asked.rows),
        "neighbours": asked.neighbours,
        "distance": asked.distance,
        "position": asked.position,
        "unit": asked.unit if asked.user is None else "user",
        "seed": asked.seed,
        "block_rows": asked.block_rows,
        "estimates": [list(each) for each in s.guarantee(1.0).estimates],
    }


@take_records
def release(
    data: DataArgument,
    function: FunctionArgument,
    public: Source,
    target: Target,
    asked: Sampling,
    account: Account,
    output: Output,
    data_dependent: DependentOption = False,
    outside: OutsideOption = "clamp",
    keep_private: KeepPrivateOption = False,
) -> None:
    """Release a private answer and its certificate."""
    with deliver(inputs_of(data, function, public.population), account, output) as delivery:
        target.check()
        with open_named(account.ledger, account.budget) as charged:
            source, columns = public.read(
                asked.user,
                private=None if data_dependent else data,
                admission=", or admit it by --data-dependent, which marks the certificate",
            )
            check_named(asked.user, source)
            table = read_table_like(
                data, source, public.frame, header=public.header, columns=columns, user=asked.user
            )
            check_columns(columns, table.columns)
            whose = find_user(asked.user, public.frame, columns or table.columns, source)
            f = in_blocks(target.numeric(read_function(function)), asked.block_rows, whose)
            sampled = asked.measure(
                f,
                source,
                rows=_count_rows(asked.rows, count_units(table.rows, whose), asked.neighbours),
                norm=target.measured,
                user=whose,
                data_dependent=data_dependent,
                keep_private=keep_private,
            )
            delivery.released = hs.release(
                f, table.rows, target.calibrate(sampled), outside=outside, **account.charge(charged)
            )
