"""The commands ``hushed risk``, ``hushed cost`` and ``hushed compose``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushed.cli.outcome import REFUSED, finish, note, say
from hushed.errors import ParameterError

if TYPE_CHECKING:
    from hushed.accounting import Composition
    from hushed.cost import CostModel, Need, Plan
    from hushed.privacy_loss import LossCurve

__all__ = ["compose", "cost", "read_release", "register", "risk"]

_BASES = ("exact", "loss", "published")
_METHODS = ("basic", "advanced", "optimal", "zcdp", "renyi", "loss-distribution", "at-risk")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
PlotFile = Annotated[
    Path | None, typer.Option("--plot", help="Write a figure: .svg, .png or .html.")
]


def _print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def _notes(warnings: Sequence[str]) -> None:
    for text in warnings:
        note(text)


def _wrote(path: Path) -> None:
    note(f"written to {path}")


def risk(
    *,
    epsilon0: Annotated[float, typer.Option(help="Level the noise was calibrated to, in nats.")],
    epsilon: Annotated[float | None, typer.Option(help="Stronger level to assess.")] = None,
    confidence: Annotated[
        float | None, typer.Option(help="Confidence to find the stronger level for.")
    ] = None,
    dims: Annotated[int, typer.Option(help="Coordinates of the answer.")] = 1,
    plot: PlotFile = None,
    as_json: Json = False,
) -> None:
    """Show how likely a stronger level is: as published, and exactly."""
    from hushed import risk as risks  # noqa: PLC0415

    with finish(json=as_json) as result:
        if confidence is not None and epsilon is not None:
            raise ParameterError("give --epsilon or --confidence, not both")
        record = result
        record.update(epsilon0=epsilon0, dims=dims)
        if confidence is not None:
            levels = [risks.published_epsilon(confidence, epsilon0, dims)]
            record["confidence"] = confidence
            record["published_epsilon"] = levels[0]
            record["exact_epsilon"] = risks.epsilon(1.0 - confidence, epsilon0)
        elif epsilon is not None:
            levels = [epsilon]
        else:
            levels = [epsilon0 * i / 10 for i in range(11)]
        found = [risks.assess(level, epsilon0, dims=dims) for level in levels]
        record["levels"] = [asdict(one) for one in found]
        record["over_promises_from"] = risks.crossing(epsilon0) if dims == 1 else None
        if plot is not None:
            from hushed.plots import pricing, save_figure  # noqa: PLC0415

            save_figure(pricing.risk_against_level([epsilon0], dims=[dims]), plot)
            _wrote(plot)
        if as_json:
            return
        _print_table(
            f"Laplace mechanism at epsilon0 = {epsilon0:g}, {dims} coordinate(s)",
            ["level", "published risk", "exact delta", "exact Pr(|loss| > level)"],
            [
                [f"{one.epsilon:.6g}"]
                + [f"{x:.6g}" for x in (one.published_risk, one.delta, one.loss_exceeds)]
                for one in found
            ],
        )
        if confidence is not None:
            say(
                f"Confidence {confidence:g}: published level {levels[0]:.6g}; the level that holds "
                f"with delta {1 - confidence:.6g} is {record['exact_epsilon']:.6g}."
            )
        if len(found) == 1:
            _notes(found[0].warnings)
        elif record["over_promises_from"] is not None:
            _notes(
                [
                    f"above level {record['over_promises_from']:.6g} the published risk is below "
                    "the exact delta; decide by the exact one"
                ]
            )


def cost(
    *,
    error: Annotated[float | None, typer.Option(help="Tolerated absolute error.")] = None,
    beta: Annotated[
        float | None,
        typer.Option(help="Chance of a larger error; left out, the error is a mean."),
    ] = None,
    sensitivity: Annotated[float, typer.Option(help="How far one record moves the answer.")] = 1.0,
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
    plot: PlotFile = None,
    as_json: Json = False,
) -> None:
    """Find the level for a tolerated error and a budget, or price a level."""
    from hushed import cost as costs  # noqa: PLC0415

    with finish(json=as_json) as result:
        if basis not in _BASES:
            raise ParameterError(f"--basis must be one of {_BASES}, got {basis!r}")
        model = None
        if per_person is not None:
            model = costs.CostModel(per_person=per_person, people=people, rate=rate, floor=floor)
        needs = [_need(text) for text in need or []]
        if error is not None:
            needs.insert(0, costs.Need(error=error, beta=beta, sensitivity=sensitivity))
        if epsilon0 is not None and needs:
            raise ParameterError("give --epsilon0 or tolerated errors, not both")
        if epsilon0 is not None:
            if model is None:
                raise ParameterError("pricing a level needs --per-person and --people")
            _price(model, epsilon0, result, basis=basis, budget=budget, plot=plot, quiet=as_json)
        elif needs:
            found = costs.plan(needs, budget=budget, model=model, delta=delta)
            _show_plan(found, model, plot, result, quiet=as_json)
        else:
            raise ParameterError("give --error (or --need), or --epsilon0 to price a level")


def _need(text: str) -> Need:
    """Read ``NAME:ERROR[:BETA[:SENSITIVITY]]``; an empty BETA means the mean error."""
    from hushed.cost import Need as OneNeed  # noqa: PLC0415

    name, *rest = text.split(":")
    try:
        numbers = [float(part) if part else None for part in rest]
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
        from hushed.plots import pricing, save_figure  # noqa: PLC0415

        save_figure(pricing.cost_against_level(model, epsilon0), plot)
        _wrote(plot)
    if quiet:
        return
    _print_table(
        f"Worst-case cost at epsilon0 = {epsilon0:g}: {model.cost(epsilon0):,.2f}",
        ["basis", "cheapest level", "confidence", "cost", "saving"],
        [
            [
                name,
                f"{x.epsilon:.6f}",
                f"{x.confidence:.4f}",
                f"{x.budget:,.2f}",
                f"{x.saving:,.2f}",
            ]
            for name, x in found.items()
        ],
    )
    if budget is not None:
        allowed = record["levels_within_budget"]
        say(
            f"A budget of {budget:,.2f} allows levels from {allowed['low']:.5f} to "
            f"{allowed['high']:.5f} ({basis} basis); without any risk, epsilon0 up to "
            f"{record['epsilon_within_budget']:.6g}."
        )
    _notes(found[basis].warnings)


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
        from hushed.plots import pricing, save_figure  # noqa: PLC0415

        save_figure(pricing.cost_against_level(model, found.epsilon), plot)
        _wrote(plot)
    record.update(asdict(found), exit_code=REFUSED if found.feasible is False else 0)
    if quiet:
        return
    _print_table(
        f"epsilon = {found.epsilon:.6g}, delta = {found.delta:g}",
        ["release", "mechanism", "scale", "epsilon", "tolerated error"],
        [
            [c.need.name, c.mechanism, f"{c.scale:.6g}", f"{c.epsilon:.6g}", c.need.accuracy()]
            for c in found.choices
        ],
    )
    if found.feasible is False:
        found.require()
    if found.cost is not None:
        within = "" if found.budget is None else f", within the budget of {found.budget:,.2f}"
        say(f"Worst case: {found.cost:,.2f}{within}.")
    elif found.budget is not None:
        say(f"The budget of {found.budget:,.2f} is enough if you {found.remedies[0]}.")
    say("For the report:")
    say(f"  {found.sentence}")


def read_release(text: str) -> tuple[LossCurve | Any, int]:
    """Read ``KIND:NUMBER[,NUMBER][xCOUNT]``.

    Parameters
    ----------
    text : str
        As typed.

    Returns
    -------
    curve : LossCurve or Guarantee
        One release.
    count : int
        How often it is made.

    Raises
    ------
    ParameterError
        If the text cannot be read.
    """
    from hushed import privacy_loss  # noqa: PLC0415
    from hushed.guarantee import Guarantee  # noqa: PLC0415

    kind, _, rest = text.partition(":")
    numbers, _, times = rest.partition("x")
    try:
        values = [float(part) for part in numbers.split(",")]
        count = int(times) if times else 1
    except ValueError as problem:
        raise ParameterError(
            f"a release looks like laplace:0.1 or gaussian:0.05x200, got {text!r}"
        ) from problem
    one: dict[str, Callable[[float], LossCurve]] = {
        "laplace": privacy_loss.laplace,
        "gaussian": privacy_loss.gaussian,
        "range": privacy_loss.bounded_range,
    }
    if len(values) > 2 or (kind in one and len(values) > 1) or not 1 <= count <= 10**6:
        raise ParameterError(f"too many numbers, or a count outside 1 to 1000000, in {text!r}")
    if kind in one:
        return one[kind](values[0]), count
    if kind == "guarantee":
        return Guarantee(epsilon=values[0], delta=values[1] if len(values) > 1 else 0.0), count
    whole = int(values[1]) if len(values) > 1 else None
    if kind == "response":
        return privacy_loss.randomised_response(values[0], whole or 2), count
    if kind == "discrete-laplace":
        return privacy_loss.discrete_laplace(values[0], 1 if whole is None else whole), count
    if kind == "discrete-gaussian":
        return privacy_loss.discrete_gaussian(values[0], 1 if whole is None else whole), count
    raise ParameterError(
        f"unknown release {kind!r}; use {', '.join(one)}, response, discrete-laplace, "
        "discrete-gaussian or guarantee"
    )


def compose(
    releases: Annotated[
        list[str],
        typer.Argument(
            help="laplace:EPSILON0, gaussian:RATIO, range:EPSILON, response:EPSILON[,CATEGORIES], "
            "discrete-laplace:SCALE[,SENSITIVITY], discrete-gaussian:SIGMA[,SENSITIVITY] or "
            "guarantee:EPSILON[,DELTA]; xCOUNT repeats."
        ),
    ],
    delta: Annotated[float, typer.Option(help="Joint delta.")] = 1e-6,
    method: Annotated[str, typer.Option(help=", ".join((*_METHODS, "all")))] = "loss-distribution",
    plot: PlotFile = None,
    as_json: Json = False,
) -> None:
    """Say what several releases on the same rows promise together."""
    from hushed import accounting  # noqa: PLC0415

    with finish(json=as_json) as result:
        if method not in (*_METHODS, "all"):
            raise ParameterError(f"--method must be one of {(*_METHODS, 'all')}, got {method!r}")
        items = [one for text in releases for one in _repeat(read_release(text))]
        found: list[Composition] = []
        skipped: list[str] = []
        for name in _METHODS if method == "all" else (method,):
            try:
                found.append(accounting.compose(items, delta=delta, method=name))  # type: ignore[arg-type]
            except ParameterError as problem:
                if method != "all" or name == "loss-distribution":
                    raise
                skipped.append(f"{name}: {problem}")
        if plot is not None:
            from hushed import privacy_loss  # noqa: PLC0415
            from hushed.plots import pricing, save_figure  # noqa: PLC0415

            curves = [
                x
                if isinstance(x, privacy_loss.LossCurve)
                else privacy_loss.approximate(x.epsilon, x.delta)
                for x in items
            ]
            save_figure(
                pricing.tradeoff_curve({"all releases": privacy_loss.compose(curves)}), plot
            )
            _wrote(plot)
        records = [{**asdict(one), "looseness": one.looseness} for one in found]
        result.update({"results": records, "skipped": skipped} if method == "all" else records[0])
        if as_json:
            return
        _print_table(
            f"{len(items)} releases at delta = {delta:g}",
            ["method", "epsilon", "delta", "above the smallest possible"],
            [
                [one.method, f"{one.epsilon:.6g}", f"{one.delta:g}", f"{100 * one.looseness:.3g} %"]
                for one in found
            ],
        )
        exact = found[-1].exact
        say(f"Smallest possible epsilon: between {exact.low:.8g} and {exact.high:.8g}.")
        for one in found:
            say(f"{one.method}: {one.theorem}.")
            _notes([f"{one.method}: {text}" for text in one.warnings])
        _notes([f"left out {text}" for text in skipped])


def _repeat(one: tuple[Any, int]) -> list[Any]:
    return [one[0]] * one[1]


def register(app: typer.Typer) -> None:
    """Add the three commands to the application.

    Parameters
    ----------
    app : typer.Typer
        Application to add them to.
    """
    app.command("risk")(risk)
    app.command("cost")(cost)
    app.command("compose")(compose)
