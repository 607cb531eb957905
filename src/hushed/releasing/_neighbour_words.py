"""Which neighbours a sampled promise is about, and which it is not, in plain words."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING

from hushed._ground.decimals import decimal_of, stated_above
from hushed._ground.printing import format_up, own_decimals

if TYPE_CHECKING:
    from hushed.releasing._certificate import SamplingRecord


# One row then changes one row of the table that is released from: else it may change them all.
ROWS_ALONE = (
    "no private row was made from those of others, as by filling missing cells with a mean, by "
    "ranks, or by a scaler that was fitted to all rows"
)


def describe_reach(sampling: SamplingRecord, gamma: float, rows: str) -> str:
    """Say for whom the promise holds, and with which probability."""
    if sampling.protect == "table":
        return f"{_sizes(sampling)}{_of_table(sampling, gamma)}"
    return f"{_sizes(sampling)}{_of_draws(sampling, gamma, rows)} {_limits(sampling)}"


def name_units(sampling: SamplingRecord) -> tuple[str, str, str]:
    """Name one and many of what a pair differs in, and the one that a promise is about."""
    return ("row", "rows", "record") if sampling.user is None else ("person", "people", "person")


def name_average(sampling: SamplingRecord | None) -> str:
    """Name what noise is added to where a function was averaged over blocks; otherwise empty."""
    if sampling is None or sampling.blocks == 1:
        return ""
    size = sampling.rows // sampling.blocks
    return f"the average over blocks of {size} {name_units(sampling)[size > 1]}"


def doubt_average(sampling: SamplingRecord) -> str:
    """Say what no certificate knows of such an average: how far off it is by itself."""
    of = "all rows" if sampling.user is None else "all people"
    return f"how far that is from the function's answer on {of} is not known here"


def name_trials(sampling: SamplingRecord) -> str:
    """Name what was drawn for each trial: a pair, or a table that has several neighbours."""
    return "tables" if sampling.reach().whole or sampling.sizes else "pairs"


def describe_change(sampling: SamplingRecord) -> str:
    """Say in what the two tables of the promise differ, where it is not one replaced row."""
    if sampling.protect == "table":
        new = "any row within the public range" if sampling.monotone else "one of the given rows"
        return {
            "replace-one": f"with one row replaced by {new}",
            "add-remove": f"with {new} added or one row removed",
        }[sampling.neighbours]
    whose = "" if sampling.user is None else "all rows of "
    return f"with {whose}{sampling.distance} {name_units(sampling)[1]} at once replaced by others"


def list_numbers(sizes: tuple[int, ...]) -> str:
    """Write numbers of rows down."""
    if len(sizes) > 4 and sizes == tuple(range(sizes[0], sizes[-1] + 1)):
        return f"{sizes[0]} to {sizes[-1]}"
    return " or ".join(map(str, sizes))


def _sizes(sampling: SamplingRecord) -> str:
    if sampling.neighbours != "add-remove":
        return ""
    numbers = list_numbers(sampling.sizes)
    one, many, _ = name_units(sampling)
    return (
        f"THE PROMISE IS FOR TABLES OF {numbers} {many.upper()}, each against tables of one {one} "
        f"more or one {one} less. For a private table of any other number of {many} nothing is "
        "promised. Which number it has was not checked, and no check may depend on it: the number "
        "is private. "
    )


def _of_table(sampling: SamplingRecord, gamma: float) -> str:
    values = len(sampling.values)
    given = (
        "any row within the public range (the ends of each column were tried, which is enough for "
        "an answer that is monotone in each cell, as was declared)"
        if sampling.monotone
        else f"one of the {values} rows that were given"
    )
    change = {
        "replace-one": f"in which any one row is replaced by {given}",
        "add-remove": f"from which any one row is removed, or to which {given} is added",
    }[sampling.neighbours]
    return (
        f"With probability at least {complement(gamma)} over the table and the sampler, the "
        f"promise holds at once for all tables {change}. Not covered are other new rows, and a "
        "second changed row, for a neighbour of the table need not be as typical as the table "
        "itself: there is no group privacy."
    )


def _of_draws(sampling: SamplingRecord, gamma: float, rows: str) -> str:
    n, sure = sampling.rows, complement(gamma)
    one, _, record = name_units(sampling)
    added = sampling.neighbours == "add-remove"
    if sampling.protect != "record":
        held = f", and each block held to gamma / {sampling.blocks}" * (sampling.blocks > 1)
        detail = (
            f"each table's largest movement over all {name_units(sampling)[1]} was taken{held}"
            if sampling.protect == "simultaneous"
            else "each single pair was held to gamma / n"
        )
        whom = (
            f"for all {rows} of the table, each removed, and for a fresh draw from the population "
            "that is added"
            if added
            else f"for all {n} {rows} of the table, each replaced by a fresh draw from the "
            "population"
        )
        return (
            f"With probability at least {sure} over the table, the "
            f"{f'added {one}' if added else 'replacements'} and the sampler, the promise holds at "
            f"once {whom} ({detail})."
        )
    if sampling.position == "worst":
        whom = f"removed {one}, and wherever a fresh draw is added"
        if not added:
            whom = f"replaced {one}"
        return (
            f"With probability at least {sure} over the table, one fresh draw from the population "
            f"and the sampler, the promise holds at once for every {whom}, at whatever place it "
            "stands."
        )
    if sampling.distance > 1:
        return (
            f"The promise is for {sampling.distance} {rows} at once: for {sampling.distance} given "
            "ones, all replaced by fresh draws from the population, it fails with probability at "
            f"most {format_up(gamma)}."
        )
    everyone = " protect='everyone' covers all at once, at the price of more pairs and more noise."
    if sampling.route == "given-the-rest":  # then there is no such promise
        everyone = ""
    return (
        f"The promise is per {record}: it fails for a given {record} with probability at most "
        f"{format_up(gamma)}. Among the {n} {rows} of the table, up to "
        f"{format_up(stated_above(decimal_of(gamma) * n), 4)} on average may "
        f"be outside it, and those are the unusual ones, which move the answer most.{everyone}"
    )


def _limits(sampling: SamplingRecord) -> str:
    one, many, _ = name_units(sampling)
    if sampling.neighbours == "add-remove":
        return (
            f"Added {many} worse than what the population yields, and replaced {many}, are not "
            "covered."
        )
    if sampling.distance > 1:
        return (
            f"Replacements worse than what the population yields, fewer or more replaced {many}, "
            f"and adding or removing a {one}, are not covered."
        )
    return (
        f"Replacements worse than what the population yields, and adding or removing a {one}, are "
        "not covered."
    )


def complement(gamma: float) -> str:
    """One minus the gamma that is printed, rounded down."""
    with own_decimals(28, ROUND_FLOOR):
        return str(1 - Decimal(format_up(gamma)))
