"""Checks of a population, and of movements, as kinds of records: what they found, at what cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hushed._ground.printing import flat, format_down, format_up
from hushed.fitting import MovementCheck, PopulationCheck
from hushed.fitting._agreement import check_agreement
from hushed.guarantee import Guarantee
from hushed.releasing._neighbour_words import ROWS_ALONE
from hushed.statements._readings import Kind, Reading, Table
from hushed.statements._releases import find_loss
from hushed.statements._words import IF_PEOPLE, describe_outsider, describe_promise, name_unit

_ASSUMED = (
    "The p-value and the bounds take the private rows for independent draws; the promise does not. "
    "The number of private rows is public. The population and all settings were chosen without "
    "looking at the private rows; how long the check took was told to nobody outside; "
    f"{ROWS_ALONE}."
)
_NOT_CHANGED = ("that these numbers were released, and not changed since",)
_RESTS = "the function keeping nothing of one pair of tables for another"


def _read_population(text: str) -> Reading:
    """Read a population check, and judge again what was drawn."""
    check = PopulationCheck.from_json(text)
    check_agreement(check)
    name = flat(check.population.get("name") or check.population.get("kind", "population"))
    person = check.certificate.person
    unit = "people" if person else "rows" if check.user is None else "users"
    return _read(
        check,
        title="a check of a population",
        rows=(
            ("population", name),
            ("compared with", f"{len(check.deviations)} tables, {check.null}"),
            (f"private {unit}", str(check.rows)),
            ("columns", ", ".join(filter(None, map(flat, check.columns))) or "one, without a name"),
        ),
        found=(
            ("verdict", check.verdict),
            ("p-value", format_up(check.p_value, 3)),
            ("largest difference, with noise", f"{check.statistic:.4g}"),
            ("caught", f"{format_up(check.caught, 3)} or more"),
            ("total variation", f"{format_down(check.tv_at_least, 3)} at least"),
        ),
        outsider=describe_outsider(
            check.guarantee,
            f"the population, the columns, the number of {unit} and the settings",
            person=person,
        ),
    )


def _read_movement(text: str) -> Reading:
    """Read a movement check, and work out its bounds again."""
    check = MovementCheck.from_json(text)
    check_agreement(check)
    return _read(
        check,
        title="a check of movements",
        rows=(
            ("sampled sensitivity", format_up(check.bound)),
            ("gamma it allows", format_up(check.gamma)),
            ("pairs of tables", f"{check.pairs}, of {check.rows} rows each"),
        ),
        found=(
            ("verdict", check.verdict),
            ("p-value", format_up(check.p_value, 3)),
            ("pairs that moved further, with noise", f"{check.moved:.4g}"),
            ("share, at least", format_down(check.share_at_least, 3)),
            ("share, at most", format_up(check.share_at_most, 3)),
        ),
        outsider=describe_outsider(
            check.guarantee,
            "the function, the population, the number of rows and the settings",
            _RESTS,
            person=check.certificate.person,
        ),
    )


def _read(
    check: PopulationCheck | MovementCheck,
    *,
    title: str,
    rows: tuple[tuple[str, str], ...],
    found: tuple[tuple[str, str], ...],
    outsider: str,
) -> Reading:
    """Put what both have in common into words."""
    promise, (verdict, *rest) = check.guarantee, check.explain().split("\n")
    reason, person = check.certificate.argument, check.certificate.person
    return Reading(
        title=title,
        subject=check,
        guarantee=promise,
        loss=find_loss(check.certificate),
        facts={"verdict": check.verdict},
        rows=(*_list_promise(promise, person=person), *rows, ("noise", "Laplace")),
        tables=(Table(name="What was released", lines=tuple(zip(*found, strict=True))),),
        short=f"{check.verdict}, p = {format_up(check.p_value, 3)}",
        outsider=outsider,
        paragraphs=(
            ("Verdict", f"{verdict[:1].upper()}{verdict[1:].rstrip('.')}."),
            ("How to read it", " ".join(rest[:-1])),
            ("What is promised", describe_promise(promise, person=person)),
            ("Why it holds", f"{reason[:1].upper()}{reason[1:]}."),
            ("What is assumed", _ASSUMED),
        ),
    )


def _list_promise(promise: Guarantee, *, person: bool) -> tuple[tuple[str, str], ...]:
    return (
        ("epsilon", format_up(promise.epsilon)),
        ("delta", format_up(promise.delta)),
        ("neighbours", f"{promise.neighbours}, {name_unit(promise, person=person)}"),
    )


def _write(check: Any) -> str:
    """Write a check as a ledger stores it: its number there stands beside the record."""
    return str(replace(check, entry=None).to_json())


POPULATION_CHECKS = Kind(
    name="population-check",
    schema=PopulationCheck.schema,
    takes=(PopulationCheck,),
    write=_write,
    read=_read_population,
    charged=True,
    write_again=lambda reading: _write(reading.subject),
    checked="digests; p-value, verdict, and what would have been caught follow from the noisy "
    "statistics",
    unchecked=(
        "that the private rows were compared with this population, and the noise was drawn",
        "how many of the test functions are bounded apart from each other: the bound of the total "
        "variation is that of as many as there are columns or more, and of no more than there are "
        "functions",
        IF_PEOPLE,
    ),
    without_ledger=_NOT_CHANGED,
)
MOVEMENT_CHECKS = Kind(
    name="movement-check",
    schema=MovementCheck.schema,
    takes=(MovementCheck,),
    write=_write,
    read=_read_movement,
    charged=True,
    write_again=lambda reading: _write(reading.subject),
    checked="digests; p-value, verdict and both bounds follow from the noisy number of pairs",
    unchecked=(
        "that these pairs were made of the private rows, and the noise was drawn",
        "sampled sensitivity, number of rows and gamma: the certificate of the release has them",
        IF_PEOPLE,
    ),
    without_ledger=_NOT_CHANGED,
)
