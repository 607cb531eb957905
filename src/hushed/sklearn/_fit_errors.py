"""What noise in the objective does to the attributes of a fit, measured on public rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushed._ground.notebook import Card, Shown
from hushed._ground.numeric import kept_to
from hushed._ground.printing import format_up
from hushed._ground.progress import show_progress
from hushed._ground.types import Floats
from hushed.sklearn._examples import Scheme
from hushed.sklearn._families import Family, Linear
from hushed.sklearn._routes import Order, make_objective, restore, scale_for_objective

FEWEST_TRIALS = 20


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FitErrors(Shown):
    """How far private fits of public rows are from the same fit without noise.

    Parameters
    ----------
    error_50, error_95 : dict of str to float
        For each attribute the largest error among its numbers that half, and 95 %, of the fits
        kept to, in the units of the attribute.
    size : dict of str to float
        Largest absolute number of each attribute without noise.
    stated : float
        What the certificate states for every table: with probability 95 % no coefficient, of
        features and labels as they are scaled, is off by more.
    met : float
        What 95 % of the fits kept to of the same.
    rows, trials : int
        Public rows, and fits that were drawn.
    penalty, asked_penalty : float
        Penalty of the fits, with noise and without, and that of the estimator: at a small epsilon
        it is raised.
    """

    error_50: dict[str, float]
    error_95: dict[str, float]
    size: dict[str, float]
    stated: float
    met: float
    rows: int
    trials: int
    penalty: float
    asked_penalty: float

    def _card(self) -> Card:
        lines = [("attribute", "error in 50 % of fits", "in 95 %", "largest without noise")]
        for name, error in self.error_95.items():
            three = self.error_50[name], error, self.size[name]
            half, most, whole = (format_up(each, 3) for each in three)
            lines.append((name, half, most, whole))
        words = (
            f"Measured with {self.trials} fits of {self.rows} public rows. The certificate states "
            f"{format_up(self.stated, 3)} for every table, in units of scaled features and labels; "
            f"these rows kept to {format_up(self.met, 3)} of the same."
        )
        if self.penalty != self.asked_penalty:
            words += (
                " All fits, that without noise, too, have a penalty of "
                f"{format_up(self.penalty, 4)} in place of {format_up(self.asked_penalty, 4)}: at "
                "this epsilon a smaller one is not allowed."
            )
        title = "Errors of a private fit, on public rows"
        width = max(len(name) for name, *_ in lines) + 2
        text = [f"{a:<{width}}{b:<23}{c:<12}{d}" for a, b, c, d in lines]
        return Card(title=title, text="\n".join([title, *text, words]), lines=tuple(lines))


def measure_errors(order: Order, table: Floats, trials: int) -> FitErrors:
    """Fit public rows often, and compare with the same fit without noise."""
    mechanism = make_objective(order)
    rows = scale_for_objective(order, mechanism, table)
    exact = mechanism.fit(rows)
    drawn = []
    with show_progress("fitting public rows", trials, shown=order.options.progress) as report:
        for _ in range(trials):
            drawn.append(mechanism.draw(rows))
            if report is not None:
                report(1)
    away = np.abs(np.array(drawn) - exact).max(axis=1)

    def read(numbers: Floats) -> dict[str, Floats]:
        whole = restore(numbers, mechanism, order.scheme)
        return unscale(order.family, order.scheme, whole)

    fitted, found = read(exact), [read(each) for each in drawn]
    off = {
        name: np.array([np.abs(each[name] - value).max() for each in found])
        for name, value in fitted.items()
    }
    return FitErrors(
        error_50={name: kept_to(each, 0.5) for name, each in off.items()},
        error_95={name: kept_to(each, 0.95) for name, each in off.items()},
        size={name: float(np.abs(value).max()) for name, value in fitted.items()},
        stated=mechanism.accuracy(),
        met=kept_to(away, 0.95),
        rows=len(rows),
        trials=trials,
        penalty=mechanism.used_penalty,
        asked_penalty=mechanism.penalty,
    )


def unscale(family: Family, scheme: Scheme, numbers: Floats) -> dict[str, Floats]:
    """Give the attributes, of a linear model for features in their own units."""
    values = family.split(numbers)
    if isinstance(family, Linear) and scheme.middle is not None and scheme.half is not None:
        values["coef_"] = values["coef_"] / np.array(scheme.half)
        moved = values["coef_"] @ np.array(scheme.middle)
        values["intercept_"] = values.get("intercept_", np.zeros(np.shape(moved))) - moved
    return values
