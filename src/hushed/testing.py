"""Assertions for test suites: a mechanism is as private, and a bound as true, as declared."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any

import numpy as np

from hushed._ground.calls import called_as
from hushed._ground.decimals import decimal_of
from hushed._ground.printing import as_given, format_up
from hushed.auditing import (
    AuditReport,
    Claim,
    PopulationPairs,
    Relation,
    SensitivityTest,
    audit,
    test_sensitivity,
)
from hushed.engines._choice import Workers
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee, Neighbours
from hushed.populations import Population
from hushed.spaces import Norm, SensitivityBound

__all__ = ["assert_private", "assert_sensitivity"]


@called_as(
    "hs.testing.assert_private(mechanism, [([0.0], [1.0])], claim=hs.Guarantee(epsilon=1.0))"
)
def assert_private(
    mechanism: Any,
    pairs: str | PopulationPairs | Iterable[Any],
    *,
    claim: Claim | float,
    samples: int = 50_000,
    confidence: float = 0.999,
    batch: bool = False,
    relation: Relation | None = None,
    answers: int = 5,
    bits: bool = True,
    seed: int | np.random.Generator | None = 0,
    workers: Workers = 1,
) -> AuditReport:
    """Fail a test if an audit certifies that a mechanism breaks its claim.

    Parameters
    ----------
    mechanism : callable, Command, object with a method draw, or OpenDP measurement
        As `hushed.audit` takes it: ``mechanism(rows, rng) -> output``, or with ``batch``
        ``mechanism(rows, rng, size) -> outputs``, which is many times faster.
    pairs : str, PopulationPairs, or iterable of Pair or (rows, neighbour)
        What to run it on; see `hushed.audit`.
    claim : Guarantee, ZeroConcentrated, Renyi or float
        What the mechanism promises; a number is an epsilon for one replaced row.
    samples : int, default 50_000
        Runs on each side of the pairs, all in all.
    confidence : float, default 0.999
        A right mechanism fails with probability at most one minus this, each time that the audit
        runs with a fresh seed. With a fixed seed, and a mechanism that takes its randomness from
        `rng`, a test that has passed will pass again.
    batch : bool, default False
        Whether one call gives many outputs.
    relation : {"replace-one", "add-remove", "answers"}, optional
        How two inputs of a pair may differ; see `hushed.audit`.
    answers : int, default 5
        Length of the vectors of a named family of pairs.
    bits : bool, default True
        Whether events may look at the bit patterns of doubles.
    seed : int, Generator or None, default 0
        Seed of the audit; None for fresh entropy.
    workers : int, str, Engine or distributed.Client, optional
        As for `hushed.audit`.

    Returns
    -------
    AuditReport
        Of a test that passed: what the audit would have caught. Passing proves no privacy.

    Raises
    ------
    AssertionError
        If the claim is violated; the message has the event, how often it was seen, the certified
        epsilon and the rate of false alarms.

    Examples
    --------
    >>> def noisy_count(rows, rng, size):
    ...     return sum(rows) + rng.laplace(scale=0.5, size=size)  # twice too little
    >>> assert_private(noisy_count, [([0, 1], [1, 1])], claim=1.0, batch=True, samples=5_000)
    Traceback (most recent call last):
    ...
    AssertionError: VIOLATED: the claim ...
    """
    __tracebackhide__ = True  # pytest then shows the line of the test
    report = audit(
        mechanism,
        pairs,
        claim=_read_claim(claim),
        samples=samples,
        confidence=confidence,
        batch=batch,
        relation=relation,
        answers=answers,
        bits=bits,
        seed=seed,
        workers=workers,
    )
    if report.verdict == "violated":
        raise AssertionError(report.explain())
    return report


@called_as("hs.testing.assert_sensitivity(f, 1.0, population, rows=100)")
def assert_sensitivity(
    f: Callable[[Any], Any],
    bound: float | SensitivityBound,
    population: Population,
    *,
    rows: int,
    gamma: float | None = None,
    pairs: int = 300,
    confidence: float = 0.999,
    norm: Norm = "l1",
    neighbours: Neighbours = "replace-one",
    user: str | int | None = None,
    symmetric: bool = False,
    tolerance: float = 1e-9,
    seed: int | None = 0,
) -> SensitivityTest:
    """Fail a test if pairs of a population refute a declared sensitivity.

    Parameters
    ----------
    f : callable
        ``f(rows)``; gives a number or an array of numbers.
    bound : float or sensitivity
        What is declared; a sensitivity brings its norm, its neighbours and its gamma along.
    population : Population
        Public source of rows.
    rows : int
        Rows of a table, or with ``user`` its users; 2 or more.
    gamma : float, optional
        Share of pairs that may move farther, in [0, 1). By default that of a sensitivity, and 0
        for a number.
    pairs : int, default 300
        Pairs to draw.
    confidence : float, default 0.999
        With gamma above 0 a right bound fails with probability at most one minus this, for a fresh
        seed. With gamma 0 a failure is a fact: the pair moves farther.
    norm : {"l1", "l2", "sup", "range"}, default "l1"
        Norm of the movement.
    neighbours : {"replace-one", "add-remove"}, default "replace-one"
        How two tables differ.
    user : str or int, optional
        Column that says whose a row is: then two tables differ in all rows of one user.
    symmetric : bool, default False
        True if the order of the rows has no effect; tried on a few orders.
    tolerance : float, default 1e-9
        Share of the bound that rounding may exceed it by.
    seed : int or None, default 0
        Seed of the pairs; None for fresh entropy.

    Returns
    -------
    SensitivityTest
        Of a test that passed; it proves no bound.

    Raises
    ------
    AssertionError
        If the bound is refuted; the message names the worst pair.

    Examples
    --------
    >>> from hushed.populations import Uniform
    >>> found = assert_sensitivity(lambda rows: rows.mean(), 2.0, Uniform(low=0, high=100), rows=50)
    >>> found.verdict, found.violations
    ('not refuted', 0)
    """
    __tracebackhide__ = True
    found = test_sensitivity(
        f,
        population,
        rows,
        bound=bound,
        gamma=gamma,
        pairs=pairs,
        confidence=confidence,
        norm=norm,
        neighbours=neighbours,
        user=user,
        symmetric=symmetric,
        tolerance=tolerance,
        seed=seed,
    )
    if found.verdict == "refuted":
        alarms = (
            _describe_alarms(confidence) if found.gamma else "A pair is a fact: no false alarm."
        )
        raise AssertionError(
            f"{found.explain()}\n\nrows: {found.worst.rows!r}\nneighbour: "
            f"{found.worst.neighbour!r}\n\n{alarms}"
        )
    return found


def _read_claim(claim: Claim | float) -> Claim:
    """Read a number as an epsilon."""
    if isinstance(claim, str | bool | np.bool_):
        raise ParameterError(
            f"claim must be an epsilon, such as 1.0, or a guarantee, got {as_given(claim)}",
            parameter="claim",
        )
    return Guarantee(epsilon=float(claim)) if isinstance(claim, int | float | Real) else claim


def _describe_alarms(confidence: float) -> str:
    return (
        f"With a fresh seed a right one fails this assertion with probability at most "
        f"{format_up(float(1 - decimal_of(confidence)), 3)}."
    )
