"""Statistics at the end of a chain, whose mechanisms lose a known amount for each row."""

from __future__ import annotations

from collections.abc import Sequence

from hushed._ground.calls import called_as
from hushed.measurements._losses import losses_of
from hushed.measurements._record import Measurement
from hushed.mechanisms import InverseSensitivity, ProposeTest, Smooth, StableMode
from hushed.mechanisms._on_statistic import Tested
from hushed.mechanisms._registry import StatisticMechanism
from hushed.mechanisms._smooth import HeavyNoise
from hushed.spaces import PRIVACY_PROFILE, PURE, Space
from hushed.statistics import Mode, Numeric, Statistic
from hushed.transformations._chain import Step
from hushed.transformations._matching import refuse, take_column


@called_as(
    "hs.measurements.inverse_sensitivity(hs.statistics.median(low=0, high=100), epsilon=1.0)"
)
def inverse_sensitivity(
    statistic: Statistic,
    *,
    epsilon: float,
    candidates: Sequence[float] | None = None,
    prior: Sequence[float] | None = None,
) -> Step[Measurement]:
    """Release a statistic by its inverse sensitivity, as `hushed.InverseSensitivity` does.

    Parameters
    ----------
    statistic : Statistic
        From `hushed.statistics`. Without ``rows`` it takes a column under rows added or removed;
        with ``rows=N`` a column of N rows under rows replaced.
    epsilon : float
        Privacy loss for each row that differs, in nats; finite, above 0. It stands for its
        shortest decimal.
    candidates, prior : sequence of float, optional
        As the mechanism takes them.

    Returns
    -------
    Step
        From a column of numbers without missing values to one of the candidates; of a mode, from
        any column to one of its categories. A distance of d rows loses ``d epsilon``, and no more
        at any point of the curve than losses in a range of that width.

    Raises
    ------
    ParameterError
        If the mechanism refuses a parameter.

    Notes
    -----
    One row moves each length by at most 1, so d rows move it by at most d, some up and some down,
    and the losses of all candidates lie within ``2 d (epsilon / 2)``. Lengths are whole numbers,
    which the grid of the draw does not move. Proof: docs/worst-case.md.
    """
    return end_in(
        InverseSensitivity(statistic, epsilon=epsilon, candidates=candidates, prior=prior)
    )


@called_as("hs.measurements.smooth(hs.statistics.median(rows=1000, low=0, high=100), epsilon=1.0)")
def smooth(
    statistic: Numeric,
    *,
    epsilon: float,
    noise: HeavyNoise = "lomax",
    tail: int | None = None,
    smoothing: float | None = None,
) -> Step[Measurement]:
    """Release a statistic with noise for its smooth sensitivity, as `hushed.Smooth` does.

    Parameters
    ----------
    statistic : Quantile, TrimmedMean or InterquartileRange
        From `hushed.statistics`. Without ``rows`` it takes a column under rows added or removed;
        with ``rows=N`` a column of N rows under rows replaced.
    epsilon : float
        Privacy loss for each row that differs, in nats; finite, above 0. It stands for its
        shortest decimal.
    noise : {"lomax", "t2"}, default "lomax"
        As the mechanism takes it.
    tail : int, optional
        As the mechanism takes it.
    smoothing : float, optional
        As the mechanism takes it.

    Returns
    -------
    Step
        From a column of numbers without missing values to a number in the range of the statistic.
        A distance of d rows loses ``d epsilon``.

    Raises
    ------
    ParameterError
        If the mechanism refuses a parameter.

    Notes
    -----
    Two tables of a space at distance d are joined by d steps of one row, through tables of the
    same space, and each step is pure epsilon whatever the rows are. Proof: docs/worst-case.md.
    """
    return end_in(Smooth(statistic, epsilon=epsilon, noise=noise, tail=tail, smoothing=smoothing))


@called_as("hs.measurements.stable_mode(hs.statistics.mode(['a', 'b']), epsilon=1.0, delta=1e-6)")
def stable_mode(statistic: Mode, *, epsilon: float, delta: float) -> Step[Measurement]:
    """Tell the most frequent category as it is, or refuse, as `hushed.StableMode` does.

    Parameters
    ----------
    statistic : Mode
        From `hushed.statistics.mode`. Without ``rows`` it takes a column under rows added or
        removed; with ``rows=N`` a column of N rows under rows replaced.
    epsilon : float
        Privacy loss of the test for each row that differs, in nats; finite, above 0. It stands for
        its shortest decimal.
    delta : float
        Probability with which a category may be told though one row could change it; in (0, 1).

    Returns
    -------
    Step
        From any column to one of the categories, or to None if it was refused, which is an answer,
        too. One row loses (epsilon, delta), d rows ``d epsilon`` and the probability with which a
        table passes the test though d - 1 rows are all that can change: up to
        ``exp((d - 1) epsilon) delta``.

    Raises
    ------
    ParameterError
        If the mechanism refuses a parameter.

    Notes
    -----
    If d rows change the category, d - 1 at most can change and it stays the same, on either table:
    so each passes with that probability, and the other one does not tell its category. Elsewhere
    the test alone tells something, and loses epsilon for each row. Proof: docs/worst-case.md.

    Examples
    --------
    >>> from hushed import statistics
    >>> from hushed.spaces import SYMMETRIC, Cell, Column, Space
    >>> votes = Space(domain=Column(cell=Cell(type="string")), metric=SYMMETRIC)
    >>> winner = votes >> stable_mode(statistics.mode(["a", "b"]), epsilon=1.0, delta=1e-6)
    >>> winner(["a"] * 500 + ["b"] * 100)
    'a'
    >>> print(f"{winner.map(1).delta(1.0):.3g} {winner.map(2).delta(2.0):.3g}")
    1e-06 1.65e-06
    """
    return end_in(StableMode(statistic, epsilon=epsilon, delta=delta))


@called_as(
    "hs.measurements.propose_test(hs.statistics.median(low=0, high=100), bound=1.0, epsilon=1.0, "
    "delta=1e-6)"
)
def propose_test(
    statistic: Numeric, *, bound: float, epsilon: float, delta: float, split: float = 0.5
) -> Step[Measurement]:
    """Add noise for a bound that you propose, or refuse, as `hushed.ProposeTest` does.

    Parameters
    ----------
    statistic : Quantile, TrimmedMean or InterquartileRange
        From `hushed.statistics`. Without ``rows`` it takes a column under rows added or removed;
        with ``rows=N`` a column of N rows under rows replaced.
    bound : float
        How far one row moves the statistic at most, as you guess, without the private rows.
    epsilon : float
        Privacy loss of test and answer together for each row that differs, in nats; finite, above
        0. It stands for its shortest decimal.
    delta : float
        Probability with which a table may pass where the bound does not hold; in (0, 1).
    split : float, default 0.5
        Share of epsilon that pays for the test; in (0, 1).

    Returns
    -------
    Step
        From a column of numbers without missing values to a number in the range of the statistic,
        or to None if it was refused, which is an answer, too. One row loses (epsilon, delta), d
        rows ``d epsilon`` and the probability with which a table passes the test though d - 1
        changed rows would exceed the bound: up to ``exp((d - 1) split epsilon) delta``.

    Raises
    ------
    ParameterError
        If the mechanism refuses a parameter.

    Notes
    -----
    Either the bound holds at every one of d steps of one row, or d - 1 changed rows exceed it on
    both tables, and each passes with that probability. Proof: docs/worst-case.md.
    """
    return end_in(ProposeTest(statistic, bound=bound, epsilon=epsilon, delta=delta, split=split))


def end_in(mechanism: StatisticMechanism) -> Step[Measurement]:
    """Make a step of a mechanism on a statistic."""
    name = mechanism.name.replace("-", "_")

    def build(space: Space) -> Measurement:
        _check_column(name, mechanism.statistic, space)
        return Measurement(
            name=f"{name}({mechanism.statistic.kind}, epsilon={mechanism.epsilon:g})",
            source=space,
            measure=PRIVACY_PROFILE if isinstance(mechanism, Tested) else PURE,
            draw=mechanism.draw,
            known=lambda d_in: losses_of(mechanism.losses(d_in.value)),
            settings=(mechanism.name, mechanism),
        )

    return Step(name, build)


def _check_column(step: str, statistic: Statistic, space: Space) -> None:
    """Refuse a column of other cells, another public size or another relation of neighbours."""
    numeric = isinstance(statistic, Numeric)
    size = take_column(space, step, numeric=numeric, complete=numeric).size
    rows, metric = statistic.rows, space.metric.name
    if rows is None and metric != "symmetric":
        wanted = "rows added or removed, for a statistic without rows=NUMBER"
        raise refuse(step, space, wanted, "to_symmetric()")
    if rows is not None and (size != rows or metric != "change-one"):
        fix = "to_change_one()" if size == rows else f"resize({rows})"
        raise refuse(step, space, f"{rows} rows, of which some are replaced,", fix)
