"""The command ``hushed cost``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushed._ground.numerals import read_number
from hushed._ground.printing import flat, format_down, format_up, money_above, money_below
from hushed.cli._options import JsonOption, PlotOption
from hushed.cli._outcome import REFUSED, finish, print_line, print_note, print_notes, print_table
from hushed.cli._written import check_figure
from hushed.errors import ParameterError

if TYPE_CHECKING:
    from hushed.cost import CostModel, Need, Plan


_BASES = ("exact", "loss", "published")


def cost(
    *,
    error: Annotated[float | None, typer.Option(help="Tolerated absolute error.")] = None,
    beta: Annotated[
        float | None,
        typer.Option(help="Chance of a larger error; left out, the error is a mean."),
    ] = None,
    sensitivity: Annotated[
        float | None,
        typer.Option(help="How far one record moves the answer; left out, 1 is assumed."),
    ] = None,
    need: Annotated[
        list[str] | None,
        typer.Option(help="A further release: NAME:ERROR[:BETA[:SENSITIVITY]]. Repeatable."),
    ] = None,
    budget: Annotated[float | None, typer.Option(help="Largest worst-case cost.")] = None,
    per_person: Annotated[
        float | None, typer.Option(help="Full compensation per person, E.")
    ] = None,
    people: Annotated[int, typer.Option(help="People in the rows.")] = 1,
    rate: Annotated[float, typer.Option(help="c in E exp(-c/epsilon) + a.")] = 1.0,
    floor: Annotated[float, typer.Option(help="a in E exp(-c/epsilon) + a.")] = 0.0,
    delta: Annotated[float, typer.Option(help="Joint slack; above 0 allows Gaussian noise.")] = 0.0,
    epsilon0: Annotated[
        float | None, typer.Option(help="Price this level instead of a tolerated error.")
    ] = None,
    basis: Annotated[str, typer.Option(help="exact, loss or published.")] = "exact",
    plot: PlotOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the level for a tolerated error and a budget, or price a level."""
    from hushed import cost as costs  # noqa: PLC0415

    with finish(json=as_json) as result:
        check_figure(plot)
        if basis not in _BASES:
            raise ParameterError(f"--basis must be one of {_BASES}, got {basis!r}")
        model = None
        if per_person is not None:
            model = costs.CostModel(per_person=per_person, people=people, rate=rate, floor=floor)
        needs = [_need(text) for text in need or []]
        if error is not None:
            moved = 1.0 if sensitivity is None else sensitivity
            needs.insert(0, costs.Need(error=error, beta=beta, sensitivity=moved))
        if epsilon0 is not None and needs:
            raise ParameterError("give --epsilon0 or tolerated errors, not both")
        if epsilon0 is not None:
            if model is None:
                raise ParameterError("pricing a level needs --per-person and --people")
            _price(model, epsilon0, result, basis=basis, budget=budget, plot=plot, quiet=as_json)
        elif needs:
            found = costs.plan(needs, budget=budget, model=model, delta=delta)
            _note_assumed(need or [], one=error is not None and sensitivity is None)
            _show_plan(found, model, plot, result, quiet=as_json)
        else:
            raise ParameterError("give --error (or --need), or --epsilon0 to price a level")


def _note_assumed(needs: Sequence[str], *, one: bool) -> None:
    """Say for which releases nobody stated how far one record moves the answer."""
    if one:
        print_note(_ASSUMED.format("the answer", "--sensitivity"))
    for name, *rest in (text.split(":") for text in needs):
        if len(rest) < 3 or not rest[2]:
            print_note(_ASSUMED.format(flat(name), "--need NAME:ERROR:BETA:SENSITIVITY"))


def _need(text: str) -> Need:
    """Read ``NAME:ERROR[:BETA[:SENSITIVITY]]``; an empty BETA means the mean error."""
    from hushed.cost import Need as OneNeed  # noqa: PLC0415

    name, *rest = text.split(":")
    try:
        numbers = [read_number(part.strip()) if part else None for part in rest]
    except ValueError as problem:
        raise ParameterError(f"--need {text!r}: ERROR, BETA, SENSITIVITY are numbers") from problem
    if not 1 <= len(numbers) <= 3 or numbers[0] is None:
        raise ParameterError(f"--need must look like NAME:ERROR[:BETA[:SENSITIVITY]], got {text!r}")
    moved = numbers[2] if len(numbers) > 2 and numbers[2] is not None else 1.0
    return OneNeed(
        name=name,
        error=numbers[0],
        beta=numbers[1] if len(numbers) > 1 else None,
        sensitivity=moved,
    )


_ASSUMED = "assumed: one record moves {} by at most 1, as it does a count; {} says otherwise"
_SAID = {"exact": "nominal", "loss": "average", "published": "nominal"}  # by basis
_EXPLAINED = (
    "average: what is paid on average is at most this. nominal: what the formula gives with a "
    "confidence that is no chance of the loss; nobody pays or saves that on average, so decide by "
    "the row of the basis loss."
)


def _price(
    model: CostModel,
    epsilon0: float,
    record: dict[str, Any],
    *,
    basis: str,
    budget: float | None,
    plot: Path | None,
    quiet: bool,
) -> None:
    """Optimum of every basis, and what a budget allows on the chosen one."""
    found = {name: model.optimum(epsilon0, basis=name) for name in _BASES}  # type: ignore[arg-type]
    record.update(
        epsilon0=epsilon0,
        basis=basis,
        baseline=model.cost(epsilon0),
        optimum={**asdict(found[basis]), "saving": found[basis].saving},
        bases={name: {"epsilon": x.epsilon, "cost": x.budget} for name, x in found.items()},
    )
    if budget is not None:
        allowed = model.levels_within(budget, epsilon0, basis=basis)  # type: ignore[arg-type]
        record["levels_within_budget"] = asdict(allowed)
        record["epsilon_within_budget"] = model.epsilon_within(budget)
    if plot is not None:
        from hushed.plots import _pricing as pricing  # noqa: PLC0415
        from hushed.plots import save_figure  # noqa: PLC0415

        save_figure(pricing.cost_against_level(model, epsilon0), plot)
        print_note(f"written to {plot}")
    if quiet:
        return
    print_table(
        f"Worst-case cost at epsilon0 = {format_up(epsilon0)}: {money_above(model.cost(epsilon0))}",
        ["basis", "cheapest level", "confidence", "cost", "saving", "that is"],
        [
            [
                name,
                format_up(x.epsilon),
                format_down(x.confidence, 4),
                money_above(x.budget),
                money_below(x.saving),
                _SAID[name],
            ]
            for name, x in found.items()
        ],
    )
    print_line(_EXPLAINED)
    if budget is not None:
        allowed = record["levels_within_budget"]
        print_line(
            f"A budget of {money_below(budget)} allows levels from {format_up(allowed['low'])} "
            "to "
            f"{format_down(allowed['high'])} ({basis} basis); without any risk, epsilon0 up to "
            f"{format_down(record['epsilon_within_budget'])}."
        )
    print_notes(found[basis].warnings)


def _show_plan(
    found: Plan,
    model: CostModel | None,
    plot: Path | None,
    record: dict[str, Any],
    *,
    quiet: bool,
) -> None:
    """Print the plan; an infeasible one is printed as such and exits with 1."""
    if plot is not None:
        if model is None:
            raise ParameterError("a figure of the cost needs --per-person and --people")
        from hushed.plots import _pricing as pricing  # noqa: PLC0415
        from hushed.plots import save_figure  # noqa: PLC0415

        save_figure(pricing.cost_against_level(model, found.epsilon), plot)
        print_note(f"written to {plot}")
    record.update(asdict(found), exit_code=REFUSED if found.feasible is False else 0)
    if quiet:
        return
    from hushed.cost._need import known_how, movement_of  # noqa: PLC0415

    print_table(
        f"epsilon = {format_up(found.epsilon)}, delta = {format_up(found.delta)}",
        ["release", "sensitivity", "mechanism", "scale", "epsilon", "tolerated error"],
        [
            [
                c.need.name,
                f"{format_up(movement_of(c.need))} ({known_how(c.need)})",
                c.mechanism,
                format_down(c.scale),
                format_up(c.epsilon),
                c.need.accuracy(),
            ]
            for c in found.choices
        ],
    )
    if found.feasible is False:
        found.require()
    if found.cost is not None:
        within = (
            "" if found.budget is None else f", within the budget of {money_below(found.budget)}"
        )
        how = "Cost in name, for delta is no chance of the loss" if found.delta else "Worst case"
        print_line(f"{how}: {money_above(found.cost)}{within}.")
    elif found.budget is not None:
        print_line(
            f"The budget of {money_below(found.budget)} is enough if you {found.remedies[0]}."
        )
    print_line("For a proposal:")
    print_line(f"  {found.sentence}")
