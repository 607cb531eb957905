"""What noise in the objective does to the attributes of a fit, measured on public rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushed._ground.notebook import Card, Shown
from hushed._ground.numeric import kept_to
from hushed._ground.printing import format_up
from hushed._ground.progress import show_progress
from hushed._ground.types import Floats
from hushed.sklearn._families import Linear
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
    stated_as : dict of str to float
        The same as `stated`, for each attribute in its units.
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
    stated_as: dict[str, float]

    def _card(self) -> Card:
        lines = [("attribute", "error in 50 % of fits", "in 95 %", "certified", "size of the fit")]
        for name, error in self.error_95.items():
            told = self.error_50[name], error, self.stated_as[name], self.size[name]
            half, most, bound, whole = (format_up(each, 3) for each in told)
            lines.append((name, half, most, bound, whole))
        words = (
            f"Measured with {self.trials} fits of {self.rows} public rows, in the units of the "
            "attributes. Certified is the error that the certificate states, with probability "
            "95 %, for every table: most tables keep far below."
        )
        if self.penalty != self.asked_penalty:
            words += (
                " All fits, that without noise, too, have a penalty of "
                f"{format_up(self.penalty, 4)} in place of {format_up(self.asked_penalty, 4)}: at "
                "this epsilon a smaller one is not allowed."
            )
        title = "Errors of a private fit, on public rows"
        width = max(len(name) for name, *_ in lines) + 2
        text = [f"{a:<{width}}{b:<23}{c:<12}{d:<12}{e}" for a, b, c, d, e in lines]
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
        return unscale(order, whole)

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
        stated_as=_state(order, mechanism.accuracy(), tuple(fitted)),
    )


def _state(order: Order, stated: float, names: tuple[str, ...]) -> dict[str, float]:
    """Give a bound on all scaled coefficients as one on each attribute, in its own units.

    An intercept is told at the zero of all features: from the middle of their ranges it is away
    by so much of each coefficient.
    """
    scheme = order.scheme
    if scheme.span is not None:
        stated *= scheme.span[1] / 2 - scheme.span[0] / 2
    half, middle = (np.ones(1), np.zeros(1))
    if scheme.half is not None and scheme.middle is not None:
        half, middle = np.array(scheme.half), np.array(scheme.middle)
    moved = float((np.abs(middle) / half).sum())
    own = 1.0 if order.estimator.fit_intercept else 0.0
    known = {"coef_": stated / float(half.min()), "intercept_": stated * (own + moved)}
    return {name: known[name] for name in names}


def unscale(order: Order, numbers: Floats) -> dict[str, Floats]:
    """Give the attributes, of a linear model for features in their own units."""
    scheme, values = order.scheme, order.family.split(numbers)
    if isinstance(order.family, Linear):
        values.setdefault("intercept_", np.zeros(values["coef_"].shape[:-1]))
        if scheme.middle is not None and scheme.half is not None:
            values["coef_"] = values["coef_"] / np.array(scheme.half)
            values["intercept_"] = values["intercept_"] - values["coef_"] @ np.array(scheme.middle)
    return values
