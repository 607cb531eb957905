"""Three ways to a private fit: sampled sensitivity, blocks, and noise in the objective."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from hushed._functions._calls import answer
from hushed._ground.checks import is_real, require_positive
from hushed._ground.decimals import decimal_of
from hushed._ground.printing import name_count
from hushed._ground.progress import tell_note
from hushed._ground.types import Floats
from hushed.blocks import Blocks, Simulation
from hushed.blocks._tried import note_trial
from hushed.errors import BadRows, ParameterError, TooFewRows
from hushed.mechanisms import Gaussian, Laplace
from hushed.mechanisms._objective_draw import MOST_ROWS, ObjectiveDraw
from hushed.populations import PublicTable
from hushed.releasing import Release
from hushed.releasing._release import release_labelled
from hushed.sensitivity import Blockwise, proven_sensitivity, sample_sensitivity
from hushed.sensitivity._ranks import choose_rank
from hushed.sklearn._examples import Scheme
from hushed.sklearn._families import Examples, Family, Fitted
from hushed.sklearn._labels import label_numbers
from hushed.sklearn._needed import linear_model
from hushed.sklearn._public_rows import read_population

Told = tuple[Release, Floats]  # what was released, and the numbers of the attributes in order


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a fit was asked for: options of the estimator, and what follows of them."""

    options: Any  # the PrivateEstimator
    estimator: Any  # a copy without chance
    family: Family
    scheme: Scheme
    rows: int
    names: tuple[str, ...] = ()  # of the features


def release_sampled(order: Order, table: Floats) -> Told:
    """Sample how far the attributes move, and release them with noise for that."""
    asked, f = order.options, make_sampled(order)
    if asked.neighbours != "replace-one":
        raise ParameterError(
            "the sampled route is for tables of a public number of rows, which stands on the "
            "certificate: with neighbours='add-remove', where it is private, use "
            "route='objective' or 'blocks'",
            parameter="neighbours",
        )
    population = read_population(asked.population, order.scheme)
    _try_out(order, population)
    s = _sample(order, f, population)
    if asked.delta:
        gaussian = Gaussian(s, epsilon=asked.epsilon, delta=asked.delta)
        return _tell(_release(order, f, table, gaussian))
    return _tell(_release(order, f, table, Laplace(s, epsilon=asked.epsilon)))


def make_sampled(order: Order) -> Any:
    """Make the function whose movements are sampled."""
    rows = order.options.block_rows
    return _function(order) if rows is None else Blockwise(_function(order), rows=rows)


def _sample(order: Order, f: Any, population: Any) -> Any:
    """Sample; too few public rows are told in the options of an estimator."""
    asked = order.options
    try:
        return sample_sensitivity(
            f,
            population,
            rows=order.rows,
            norm="l2" if asked.delta else "l1",
            gamma=asked.gamma,
            calibration=asked.calibration,
            unit=asked.unit,
            seed=asked.seed,
            workers=asked.workers,
            progress=asked.progress,
        )
    except TooFewRows as few:
        raise TooFewRows(
            given=few.given,
            needed=few.needed,
            gamma=few.gamma,
            supported=few.supported,
            advice=_advise(order, few),
        ) from None


def _advise(order: Order, few: TooFewRows) -> str:
    """Say what an estimator takes in place of what is advised of a function."""
    asked = order.options
    head = few.advice.partition(": give more")[0]
    need = choose_rank("marginal", gamma=decimal_of(asked.gamma)).pairs
    most = min(order.rows, few.given // need - 1)
    size = max((each for each in range(2, most + 1) if order.rows % each == 0), default=0)
    ways = ["give more public rows"]
    if few.supported is not None:
        ways.append(f"accept gamma={few.supported}")
    if size == order.rows:  # enough without blocks
        ways.append("take calibration='marginal', of whose gamma an unlucky sample is a part")
    elif size:
        ways.append(
            f"fit blocks, whose fits are averaged: calibration='marginal', block_rows={size}"
        )
    other = "'objective' or 'blocks', which need" if _has_proof(order) else "'blocks', which needs"
    ways.append(f"take route={other} no public rows")
    return f"{head}: {', or '.join(ways)}"


def _has_proof(order: Order) -> bool:
    """Whether noise in its objective may be proven: of a model of these kinds, without points."""
    kinds = (linear_model.LogisticRegression, linear_model.Ridge)
    return type(order.estimator) in kinds and order.options.points is None


def _try_out(order: Order, population: Any) -> None:
    """Fit once on public rows, where it is told why a fit fails."""
    asked, told = order.options, replace(_function(order), tells=True)
    size = order.rows if asked.block_rows is None else asked.block_rows
    try:
        table = population.draw(np.random.default_rng(asked.seed), size)
    except Exception:  # which sampling tells, in its own words
        return
    answer(told, table, private=False)


def release_blocks(order: Order, table: Floats) -> Told:
    """Fit on blocks of the rows, and release the mean of their attributes."""
    mechanism = make_blocks(order)
    rows, count = len(table), mechanism.blocks or 1
    each = f"blocks of about {rows // count} rows" if mechanism.even else "blocks of the rows"
    tell_note(
        f"route='blocks' makes {count} {each}, and each is fitted by itself: how far such fits are "
        "from one of all rows is told beforehand by error_on(X, y) of public rows, and never after"
    )
    # Of blocks, one that fails is silent, and not a fit of zeros.
    f = replace(_function(order), tells=True)
    note_trial(f)
    return _tell(_release(order, f, table, mechanism))


def try_blocks(order: Order, table: Floats, trials: int) -> Simulation:
    """Deal public rows to blocks often, and compare with the fit of all of them."""
    return make_blocks(order).simulate(
        replace(_function(order), tells=True),
        PublicTable(table),
        len(table),
        trials=trials,
        seed=order.options.seed,
        isolated=False,
        progress=order.options.progress,
    )


def make_blocks(order: Order) -> Blocks:
    """Make the mechanism that fits blocks of the rows; refuse a centre of another length."""
    asked = order.options
    size = order.family.size
    centre = np.zeros(size) if asked.centre is None else np.ravel(asked.centre)
    if centre.size != size:  # else every block fails, after the charge
        names = " and ".join(order.family.shapes)
        raise ParameterError(
            f"centre must be a list of {name_count(size, 'number')}, those of {names} one after "
            f"the other, got {centre.size}",
            parameter="centre",
        )
    return Blocks(
        aggregate="vector",
        centre=centre.tolist(),
        radius=asked.radius,
        epsilon=asked.epsilon,
        delta=asked.delta,
        blocks=asked.blocks,
        neighbours=asked.neighbours,
        unit=asked.unit,
    )


def release_objective(order: Order, table: Floats) -> Told:
    """Fit with noise in the objective; what is released is the coefficients, scaled."""
    mechanism = make_objective(order)
    rows = scale_for_objective(order, mechanism, table)
    name = type(order.options.estimator).__name__
    examples = Examples(estimator=name, scheme=order.scheme, columns=order.names)
    found = _release(order, examples, rows, mechanism)
    with np.errstate(all="ignore"):  # it is paid for, whatever the caller makes an error of
        return found, restore(found.value, mechanism, order.scheme)


def scale_for_objective(order: Order, mechanism: ObjectiveDraw, table: Floats) -> Floats:
    """Make the rows that the objective is about: with a constant, labels in [-1, 1]."""
    scheme = order.scheme
    if len(table) > mechanism.rows:
        raise BadRows(f"the objective route takes at most {mechanism.rows} rows")
    if scheme.span is not None:
        low, high = scheme.span
        table[:, -1] = (table[:, -1] - (low / 2 + high / 2)) / (high / 2 - low / 2)
    elif len(scheme.classes) == 2:
        table[:, -1] = 2 * table[:, -1] - 1
    ones = [np.ones((len(table), 1))] if mechanism.intercept else []
    rows = np.hstack([table[:, :-1], *ones, table[:, -1:]])
    if not len(rows) and order.options.neighbours == "add-remove":
        # That there is no row is private. One of zeros, whose gradient is 0, stands for none.
        rows = np.zeros((1, rows.shape[1]))
    return rows


def make_objective(order: Order) -> ObjectiveDraw:
    """Make the mechanism of a regularised fit; refuse a fit that the proof is not about."""
    asked, scheme = order.options, order.scheme
    if asked.delta:
        raise ParameterError("the objective route promises delta = 0", parameter="delta")
    private = asked.neighbours == "add-remove"
    facts: dict[str, Any] = {
        "epsilon": asked.epsilon,
        "features": scheme.features,
        "rows": MOST_ROWS if private else max(order.rows, 1),
        "clip": math.sqrt(scheme.features) if asked.clip is None else asked.clip,
        "intercept": bool(order.estimator.fit_intercept),
        **_read_loss(order),
    }
    loosest = proven_sensitivity(1e300, neighbours=asked.neighbours, argument="any")
    bound = ObjectiveDraw(loosest, **facts).gradient_bound(asked.neighbours)
    s = proven_sensitivity(
        bound,
        neighbours=asked.neighbours,
        unit=asked.unit,
        argument="the gradients of the sum of losses over neighbouring tables differ by at most "
        "this, at any coefficients: the slope of the loss is bounded, each feature is scaled from "
        "its public range to [-1, 1], and each row is shortened to the l1 length clip",
    )
    return ObjectiveDraw(s, **facts)


def _read_loss(order: Order) -> dict[str, Any]:
    """Read loss and penalty of an estimator; refuse another objective."""
    own, scheme, asked = order.estimator, order.scheme, order.options
    if type(own) is linear_model.LogisticRegression:
        if getattr(own, "penalty", "l2") not in ("l2", "deprecated") or getattr(
            own, "l1_ratio", None
        ) not in (None, 0, 0.0):
            raise _refuse_objective("an l2 penalty")
        if own.class_weight is not None or own.intercept_scaling != 1:
            raise _refuse_objective("no weights of classes, and no scale of the intercept")
        if not is_real(own.C) or not 0 < own.C < math.inf:
            raise _refuse_objective("a finite C above 0")
        many = len(scheme.classes)
        return {
            "family": "logistic" if many == 2 else "softmax",
            "classes": max(many, 2),
            "penalty": 1 / own.C,
        }
    if type(own) is linear_model.Ridge:
        if not is_real(own.alpha) or not 0 < own.alpha < math.inf or own.positive:
            raise _refuse_objective("one alpha above 0, and coefficients of either sign")
        low, high = cast("tuple[float, float]", scheme.span)  # named, or the fit was refused
        cutoff = 1.0
        if asked.cutoff is not None:
            cutoff = require_positive("cutoff", asked.cutoff) / (high / 2 - low / 2)
        return {"family": "huber", "penalty": float(own.alpha), "cutoff": cutoff}
    raise ParameterError(
        f"the objective route is proven for LogisticRegression and Ridge, got {type(own).__name__}"
        ": use route='sampled' or 'blocks'",
        parameter="route",
    )


def _refuse_objective(wanted: str) -> ParameterError:
    return ParameterError(f"the objective route is proven for {wanted}", parameter="estimator")


def restore(numbers: Any, mechanism: ObjectiveDraw, scheme: Scheme) -> Floats:
    """Give coefficients, then intercepts, as those of a fit on encoded rows; labels as given."""
    p, k = mechanism.shape
    found = np.reshape(numbers, (k, p))
    weights, starts = found[:, : scheme.features], found[:, scheme.features :]
    if scheme.span is not None:
        low, high = scheme.span
        weights = weights * (high / 2 - low / 2)
        starts = starts * (high / 2 - low / 2) + (low / 2 + high / 2)
    return np.concatenate([weights.ravel(), starts.ravel()])


def _function(order: Order) -> Fitted:
    return Fitted(
        estimator=order.estimator, family=order.family, scheme=order.scheme, columns=order.names
    )


def _tell(found: Release) -> Told:
    return found, np.array(found.value, dtype=np.float64, ndmin=1)  # of the model's own


def _release(order: Order, f: Any, table: Floats, mechanism: Any) -> Release:
    asked = order.options
    return release_labelled(
        f,
        table,
        mechanism,
        asked.ledger,
        budget=asked.budget,
        note=asked.note,
        key=asked.key,
        labels=label_numbers(
            order.family, order.scheme, order.names, objective=asked.route == "objective"
        ),
    )


ROUTES = {
    "sampled": release_sampled,
    "blocks": release_blocks,
    "objective": release_objective,
}
