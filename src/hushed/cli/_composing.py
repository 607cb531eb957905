"""The command ``hushed compose``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from hushed import accounting, privacy_loss
from hushed._ground.numerals import read_number, read_whole
from hushed._ground.printing import format_down, format_up, percent_up, suggest
from hushed.accounting import Composition, Method
from hushed.accounting._joint import FIXED
from hushed.cli._options import JsonOption, PlotOption
from hushed.cli._outcome import finish, print_line, print_note, print_notes, print_table
from hushed.cli._written import check_figure
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee, Neighbours
from hushed.privacy_loss import PrivacyProfile

Membership = Literal["private", "public"]

_METHODS: tuple[Method, ...] = get_args(Method)
_WHOLE = ("response", "discrete-laplace", "discrete-gaussian")


def read_release(text: str) -> tuple[PrivacyProfile | Guarantee, int]:
    """Read ``KIND:NUMBER[,NUMBER][xCOUNT]``."""
    kind, _, rest = text.partition(":")
    numbers, _, times = rest.partition("x")
    try:
        values = [read_number(part.strip()) for part in numbers.split(",")]
        count = read_whole(times) if times else 1
    except ValueError as problem:
        raise ParameterError(
            f"a release looks like laplace:0.1 or gaussian:0.05x200, got {text!r}"
        ) from problem
    one: dict[str, Callable[[float], PrivacyProfile]] = {
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
    if kind in _WHOLE and len(values) > 1 and not values[1].is_integer():
        raise ParameterError(f"the second number must be whole, got {text!r}")
    whole = int(values[1]) if kind in _WHOLE and len(values) > 1 else None
    if kind == "response":
        return privacy_loss.randomised_response(values[0], 2 if whole is None else whole), count
    if kind == "discrete-laplace":
        return privacy_loss.discrete_laplace(values[0], 1 if whole is None else whole), count
    if kind == "discrete-gaussian":
        return privacy_loss.discrete_gaussian(values[0], 1 if whole is None else whole), count
    known = [*one, *_WHOLE, "guarantee"]
    near = suggest(kind, known)
    raise ParameterError(f"unknown release {kind!r}{near or ';'} there are {', '.join(known)}")


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
    method: Annotated[str, typer.Option(help=", ".join((*_METHODS, "all")))] = "pld",
    disjoint: Annotated[
        bool,
        typer.Option(
            "--parallel",
            help="The releases are on disjoint parts of the rows: the largest counts, not the sum.",
        ),
    ] = False,
    neighbours: Annotated[
        Neighbours | None,
        typer.Option(
            help="The relation that the releases are for; without it no promise is made. With "
            "--parallel add-remove, if left out."
        ),
    ] = None,
    membership: Annotated[
        Membership,
        typer.Option(help="With --parallel: whether a row's part may depend on the row."),
    ] = "private",
    plot: PlotOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what several releases on the same rows promise together."""
    with finish(json=as_json) as result:
        methods = _METHODS if method == "all" else tuple(x for x in _METHODS if x == method)
        if not methods:
            raise ParameterError(f"--method must be one of {(*_METHODS, 'all')}, got {method!r}")
        check_figure(plot)
        pieces = [read_release(text) for text in releases]
        items = [_for(neighbours, one) for one, count in pieces for _ in range(count)]
        if disjoint:
            if method != "pld" or plot is not None:
                raise ParameterError("--parallel goes with neither --method nor --plot")
            _parallel(items, (neighbours or "add-remove", membership), delta, result, quiet=as_json)
            return
        found, skipped = _compose(items, delta, methods, neighbours)
        if plot is not None:
            _plot(items, plot)
        records = [{**asdict(one), "relative_gap": one.relative_gap} for one in found]
        result.update({"results": records, "skipped": skipped} if method == "all" else records[0])
        if not as_json:
            number = "1 release" if len(items) == 1 else f"{len(items)} releases"
            _print_all(f"{number} at delta = {format_up(delta)}", found, neighbours)
            print_notes([f"left out {text}" for text in skipped])


def _compose(
    items: Sequence[PrivacyProfile | Guarantee],
    delta: float,
    methods: Sequence[Method],
    neighbours: Neighbours | None,
) -> tuple[list[Composition], list[str]]:
    """Compose by each method that applies, and say why the others do not; one alone must."""
    found: list[Composition] = []
    skipped: list[str] = []
    for name in methods:
        try:
            one = accounting.compose(
                items,
                delta=delta,
                method=name,
                neighbours=neighbours or "replace-one",
            )
            found.append(one if neighbours else replace(one, guarantee=None))
        except ParameterError as problem:
            if len(methods) == 1 or name == "pld":
                raise
            skipped.append(f"{name}: {problem}")
    return found, skipped


def _plot(items: Sequence[PrivacyProfile | Guarantee], path: Path) -> None:
    """Draw the privacy profile of all releases together."""
    from hushed.plots import _pricing as pricing  # noqa: PLC0415
    from hushed.plots import save_figure  # noqa: PLC0415

    curves = [
        x if isinstance(x, PrivacyProfile) else privacy_loss.approximate(x.epsilon, x.delta)
        for x in items
    ]
    save_figure(pricing.tradeoff_curve({"all releases": privacy_loss.compose(curves)}), path)
    print_note(f"written to {path}")


def _print_all(title: str, found: Sequence[Composition], neighbours: Neighbours | None) -> None:
    print_table(
        title,
        ["method", "epsilon", "delta", "above the smallest possible"],
        [
            [
                one.method,
                format_up(one.epsilon),
                format_up(one.delta),
                f"{percent_up(one.relative_gap)} %",
            ]
            for one in found
        ],
    )
    exact = found[-1].exact
    print_line(
        f"Smallest possible epsilon: between {format_down(exact.low, 8)} and "
        f"{format_up(exact.high, 8)}."
    )
    print_line(
        f"Neighbours: {neighbours}."
        if neighbours
        else "Neighbours: the releases' own; --neighbours makes it a promise."
    )
    if found[-1].releases > 1:
        print_line(FIXED)
    for one in found:
        print_line(f"{one.method}: {one.theorem}.")
        print_notes([f"{one.method}: {text}" for text in one.warnings])


def _for(
    neighbours: Neighbours | None, release: PrivacyProfile | Guarantee
) -> PrivacyProfile | Guarantee:
    """State a guarantee typed in for the relation that was asked for."""
    if neighbours is None or not isinstance(release, Guarantee):
        return release
    return replace(release, neighbours=neighbours)


def _parallel(
    items: Sequence[PrivacyProfile | Guarantee],
    relation: tuple[Neighbours, Membership],
    delta: float,
    result: dict[str, Any],
    *,
    quiet: bool,
) -> None:
    """Join the releases as if each were on rows of its own."""
    from hushed import accounting  # noqa: PLC0415

    neighbours, membership = relation
    parts = []
    for one in items:
        pure = one.epsilon if isinstance(one, Guarantee) else one.epsilon(0.0)
        slack = one.delta if isinstance(one, Guarantee) else 0.0
        if pure == math.inf and not isinstance(one, Guarantee):
            pure, slack = one.epsilon(delta), delta
        parts.append(Guarantee(epsilon=pure, delta=slack, neighbours=neighbours))
    found = accounting.parallel(parts, membership=membership)
    result.update(asdict(found))
    if not quiet:
        print_line(
            f"Together: epsilon = {format_up(found.epsilon)}, delta = {format_up(found.delta)}."
        )
        if found.releases > 1:
            print_line(FIXED)
        print_line(f"parallel: {found.theorem}.")
