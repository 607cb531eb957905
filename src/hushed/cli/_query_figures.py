"""Figures of a query on the command line: its answer, or its error against epsilon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import hushed as hs
from hushed.cli._outcome import finish, print_note
from hushed.cli._written import check_figure, check_targets
from hushed.errors import ParameterError

_ENDS = (0.05, 5.0)  # of epsilon, in nats; further where the query's own is beyond
_NUMBERS = ("count", "users", "sum", "mean", "variance")


def check_plot(
    path: Path | None, save: Path | None, request: hs.Table, inputs: Sequence[Path], *, quote: bool
) -> None:
    """Check the file of a figure, and that there is something to draw, before a charge."""
    if path is None:
        return
    check_figure(path)
    check_targets({"--save": save, "--plot": path}, inputs, force=True)
    drawn = [
        each
        for each in request.aggregates
        if each.kind in _NUMBERS or (each.kind == "quantiles" and len(each.probabilities) == 1)
    ]
    if request.aggregates and not drawn and not quote:  # one that asks nothing is refused later
        raise ParameterError("--plot draws counts, sums, means, variances and single quantiles")


def draw_errors(
    path: Path | None,
    request: hs.Table,
    terms: Mapping[str, Any],
    rows: int | None,
) -> None:
    """Draw the error of a query against epsilon, around the epsilon that is asked for."""
    if path is None:
        return
    from hushed.plots import error_figure, save_figure  # noqa: PLC0415

    epsilon = terms["epsilon"]
    taken = {name: terms[name] for name in ("delta", "noise", "rows_per_user")}
    ends = (min(_ENDS[0], epsilon / 10), max(_ENDS[1], epsilon * 10))
    figure = error_figure(request, epsilon=ends, terms={**taken, "rows": rows}, asked_at=epsilon)
    save_figure(figure, path)
    print_note(f"figure written to {path}")


def draw_answer(path: Path | None, answer: hs.Answer | None, kept: str = "") -> None:
    """Draw an answer after it was printed: a failure now loses no answer."""
    if path is None or answer is None:
        return
    from hushed.plots import answer_figure, save_figure  # noqa: PLC0415

    stopped = "stopped; what was printed stands, the figure may be missing"
    with finish(json=False, stopped=stopped, kept=kept):
        save_figure(answer_figure(answer), path)
        print_note(f"figure written to {path}")
