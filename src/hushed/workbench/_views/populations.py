"""Does the population fit? A check that reads the private rows, and costs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import hushed as hs
from hushed._ground.printing import format_down, format_up
from hushed.fitting import PopulationCheck
from hushed.workbench._views.functions import FRAMES, read_header
from hushed.workbench._views.reading import Words
from hushed.workbench._views.sources import Defined, as_argument, read_population


def read_check(
    typed: Mapping[str, str], tables: list[str], functions: list[Defined]
) -> tuple[list[str], dict[str, str]]:
    """Read what is to be checked: the words of the command, and problems by field."""
    form = Words(typed)
    data = form.choose("data", tables, needed="Choose the file with the private rows.")
    source = read_population(form, tables, functions)
    if data and form.text("population_file") == data:
        form.refuse(
            "population_file",
            "These are the private rows, which never contradict themselves: choose public ones.",
        )
    words = ["check-population", as_argument(data), "--population", source]
    words += ["--epsilon", form.say_number("epsilon", above=0.0)]
    words += ["--tests", form.choose("tests", ("pairs", "marginals"))]
    words += ["--frame", form.choose("frame", FRAMES), *read_header(form)]
    words += ["--unit", "person"] if form.is_ticked("person") else []
    return words, form.errors


def write_check(words: list[str], *, ledger: str, budget: str, note: str, key: str) -> list[str]:
    """Write the command that checks, and pays for it."""
    paid = [*words, "--ledger", ledger, "--budget", budget, "--key", key, "--json"]
    return paid + (["--note", note] if note else [])


def guarantee_of(typed: Mapping[str, str]) -> hs.Guarantee | None:
    """Say what a check promises; nothing while its epsilon is none."""
    form = Words(typed)
    given = form.say_number("epsilon", above=0.0)
    return None if form.errors else hs.Guarantee(epsilon=float(given))


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A check, ready to be shown.

    Parameters
    ----------
    verdict : {"contradicted", "not contradicted"}
        The verdict.
    paragraphs : tuple of str
        The words of the library.
    statistic : float
        Noisy statistic of the private table.
    deviations : tuple of float
        Those of public tables.
    facts : tuple of (str, str)
        Numbers, as the library rounds them.
    """

    verdict: str
    paragraphs: tuple[str, ...]
    statistic: float
    deviations: tuple[float, ...]
    facts: tuple[tuple[str, str], ...]


def describe_check(found: Mapping[str, Any]) -> Compared:
    """Describe what a check printed."""
    own = {name: each for name, each in found.items() if name not in ("verdict", "entry")}
    check = PopulationCheck.from_json(json.dumps(own))
    return Compared(
        verdict=check.verdict,
        paragraphs=tuple(check.explain().split("\n")),
        statistic=check.statistic,
        deviations=check.deviations,
        facts=(
            ("p-value", format_up(check.p_value, 3)),
            ("contradicted at or below", format_down(check.level, 3)),
            ("difference that would be found", format_up(check.caught, 3)),
            ("total variation at least", format_down(check.tv_at_least, 3)),
            ("privacy loss (epsilon)", format_up(check.guarantee.epsilon)),
        ),
    )
