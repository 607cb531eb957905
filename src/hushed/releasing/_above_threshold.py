"""Sparse vector: many private answers are compared with a threshold, and few found above are paid.

The object holds a secret, its noisy threshold, and a count of what is left. So it exists once: it
is not copied, not pickled, and not used by a forked child. Proof: docs/noise/sparse-vector.md.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from numbers import Rational
from threading import RLock
from typing import Any, NoReturn

import numpy as np

from hushed._functions._silence import silence
from hushed._ground.calls import called_as
from hushed._ground.forks import do_in_forked_children
from hushed._ground.printing import format_exactly, format_up
from hushed.errors import ParameterError, Refusal
from hushed.guarantee import Guarantee, Neighbours, RowUnit, Unit
from hushed.ledger._notes import choose_note
from hushed.ledger._payments import Charges, check_ledger, explain_stops, pay
from hushed.mechanisms._sparse_vector import SparseVector, round_down, to_double
from hushed.noise import discrete_exponential
from hushed.releasing._certificate import Certificate
from hushed.releasing._certifying import certify
from hushed.releasing._transcript import Crossing, Transcript, write_transcript
from hushed.sensitivity import Sensitivity, proven_sensitivity


class _Process:
    """Marks this process; a forked child gets another mark."""

    mark = object()


def _in_child() -> None:
    _Process.mark = object()


do_in_forked_children(_in_child)

_BELOW = Crossing(above=False)
_PLAIN = {int, float, np.float64, np.int64}  # no code of anybody else's runs as they are read


@called_as("hs.AboveThreshold(100, epsilon=1.0)")
class AboveThreshold:
    """Ask which private answers lie above a threshold; only those found above cost budget.

    The whole epsilon is charged when the object is made. Then any number of questions may be asked,
    each chosen after the answers before it, until `positives` of them were found above.

    Parameters
    ----------
    threshold : float
        What the answers are compared with; public, finite.
    epsilon : float
        Privacy loss of all answers together, in nats; finite, above 0. It stands for its shortest
        decimal.
    sensitivity : float or Sensitivity, default 1
        How far any of the answers moves between neighbours, as computed: your statement, for every
        question that you are going to ask. A `proven_sensitivity` carries its argument into the
        certificate. A sampled one is refused: its gamma speaks of one function.
    positives : int, default 1
        How many answers may be found above.
    monotone : bool, default False
        State that all questions of this object move the same way: for any two neighbours, all
        answers rise or stay, or all fall or stay. So do counts of rows under add-remove. It halves
        the noise.
    values : float, default 0
        Part of epsilon that pays for a noisy value of each answer found above.
    neighbours : {"replace-one", "add-remove"}, optional
        Relation that a `sensitivity` given as a number refers to; by default ``"replace-one"``.
    unit : {"row", "user", "person"}, optional
        What is replaced, added or removed, for such a number; by default ``"row"``.
    ledger : Ledger or Charges, optional
        Where to charge the whole epsilon, before anything is asked.
    budget : str, optional
        Name of the budget in the ledger; required with one.
    note : str, default ""
        Remark for the ledger.

    Raises
    ------
    Overspent
        If it does not fit into the budget.
    ParameterError, WrongNorm, ZeroSensitivity
        If a parameter cannot be used; nothing is charged.

    Notes
    -----
    Threshold and answers get one-sided noise, which has half the variance of Laplace noise at the
    same epsilon; proof in docs/noise/sparse-vector.md. It is safe to ask from several threads.
    There is one object for each charge: it cannot be copied or pickled, and a forked child refuses
    to ask. A ledger stores what was told when the search ends: with the last of the `positives`, or
    with `close`. If the program stops before, the charge stays and the object is lost. What was
    asked, and how long it took, is not hidden from who asks.

    Examples
    --------
    >>> search = AboveThreshold(threshold=100, epsilon=1.0)
    >>> bool(search.ask(10_000)), search.left
    (True, 0)
    """

    __slots__ = (
        "_asked",
        "_asking",
        "_bar",
        "_certificate",
        "_ended",
        "_found",
        "_left",
        "_lock",
        "_paid",
        "_place",
        "_plan",
        "_scales",
    )

    def __init__(
        self,
        threshold: float,
        epsilon: float,
        sensitivity: float | Sensitivity = 1,
        positives: int = 1,
        monotone: bool = False,
        *,
        values: float = 0.0,
        neighbours: Neighbours | None = None,
        unit: Unit | RowUnit | None = None,
        ledger: Charges | None = None,
        budget: str | None = None,
        note: str = "",
    ) -> None:
        plan = SparseVector(
            _read_sensitivity(sensitivity, neighbours, unit, monotone=monotone),
            epsilon=epsilon,
            threshold=threshold,
            positives=positives,
            monotone=monotone,
            values=values,
        )
        check_ledger(ledger, budget)
        certificate = certify(plan, values=1)
        certificate.to_json()  # what is refused, or cannot be written, is unpaid
        remark = choose_note(note, f"AboveThreshold: at most {plan.positives} found above")
        with explain_stops(ledger, budget):
            paid = pay(ledger, budget, plan.guarantee, remark, loss=plan.loss)
        self._plan = plan
        self._certificate = replace(certificate, charged=paid.terms) if paid.terms else certificate
        self._paid = paid
        self._scales = (plan.scales.query, plan.scales.value, plan.grid)
        exact = round_down(Fraction(plan.threshold), plan.grid)
        self._bar = exact + discrete_exponential(plan.scales.threshold)
        self._left, self._asking, self._ended = plan.positives, False, False
        self._asked, self._found = 0, dict[int, Crossing]()
        self._lock = RLock()
        self._place = (os.getpid(), _Process.mark)

    @property
    def certificate(self) -> Certificate:
        """What all answers together promise, and on whose word; holds no private value."""
        return self._certificate

    @property
    def guarantee(self) -> Guarantee:
        """What all answers together promise."""
        return self._plan.guarantee

    @property
    def entry(self) -> int | None:
        """Number of the charge in a `Ledger`; None without one."""
        return self._paid.number

    @property
    def left(self) -> int:
        """How many answers may still be found above; at 0 nothing more is answered."""
        return self._left

    @property
    def transcript(self) -> Transcript:
        """What was told so far, which may be published; `hushed.certify` takes it from here."""
        with self._lock:
            return Transcript(
                asked=self._count(), found=dict(self._found), certificate=self._certificate
            )

    def close(self) -> None:
        """End the search: nothing more is answered, and the ledger stores what was told.

        The charge stays as it is. A search that has ended is left as it is.

        Raises
        ------
        Refusal
            If it was made in another process.
        DamagedLedger, LedgerUnavailable
            If the charge is not in the ledger any more.
        """
        self._check_place()
        with self._lock:
            if self._asking:
                raise Refusal("a question is being answered in this thread: close when it is done")
            self._left = 0
            self._store()

    @called_as("above.accuracy(100)")
    def accuracy(self, questions: int, beta: float = 0.05) -> float:
        """Distance from the threshold from which on all answers are right except with chance beta.

        Parameters
        ----------
        questions : int
            How many are asked.
        beta : float, default 0.05
            Probability; in (0, 1).

        Returns
        -------
        float
            With ``s1`` and ``s2`` the scales of the noise on threshold and answers, the larger one
            of ``s1 log(2 / beta)`` and ``s2 log(2 questions / beta)``, plus one grid step. It
            speaks of the questions up to the last one found above.
        """
        return self._plan.accuracy(beta, questions)

    @called_as("above.ask(105)")
    def ask(self, answer: float) -> Crossing:
        """Compare one private answer with the threshold.

        Parameters
        ----------
        answer : float
            The exact answer to your question on the private rows: an integer, a float or a
            Fraction; finite. It is never shown.

        Returns
        -------
        Crossing
            True or false, and for a true one the gap, and the value if it is paid for.

        Raises
        ------
        ParameterError
            If the answer is no finite number; nothing is spent. That it is none is told to who
            asks: make sure that it does not depend on the rows.
        Refusal
            If all `positives` were found, the search was closed, or it is asked in another
            process than the one that made the object.
        DamagedLedger, LedgerUnavailable
            If it was the last one to be found, and the charge is not in the ledger any more.
        """
        self._check_place()
        query_scale, value_scale, grid = self._scales
        steps = round_down(_read_answer(answer), grid)
        with self._lock:
            self._check_turn()
            self._asking = True
            try:
                gap = steps + discrete_exponential(query_scale) - self._bar
                noise = _draw_laplace(value_scale) if value_scale and gap >= 0 else 0
                self._check_place()  # a fork in between would answer twice
                number = self._count() + 1
                if gap < 0:
                    self._asked = number
                    return _BELOW
                self._left -= 1  # first: it counts, whatever stops this thread from telling it
                value = to_double(steps + noise, grid) if value_scale else None
                found = Crossing(above=True, gap=to_double(gap, grid), value=value)
                self._found[number] = found
                if not self._left:
                    self._store()
            finally:
                self._asking = False
        return found

    def _count(self) -> int:
        """Count the questions that were answered."""
        return max(self._asked, next(reversed(self._found), 0))

    def _store(self) -> None:
        """Store what was told with its charge, once."""
        if not self._ended:
            self._paid.keep(write_transcript(self.transcript))
            self._ended = True

    def _check_turn(self) -> None:
        if self._asking:
            raise Refusal("a question is being answered in this thread: ask when it is done")
        if not self._left and len(self._found) < self._plan.positives:
            raise Refusal(
                "the search was closed, or stopped at its last answer, and nothing more is "
                "answered; make another hs.AboveThreshold, which is charged anew"
            )
        if not self._left:
            raise Refusal(
                f"all {self._plan.positives} answers above the threshold were found, and nothing "
                "more is answered; make another hs.AboveThreshold, which is charged anew"
            )

    def _check_place(self) -> None:
        if self._place != (os.getpid(), _Process.mark):
            raise Refusal(
                "this AboveThreshold was made in another process, which may be asking it, too; "
                "ask there, or make one here, which is charged anew"
            )

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(
            "an AboveThreshold cannot be copied or pickled: its copy would spend the same charge a "
            "second time; ask it where it was made"
        )

    def __repr__(self) -> str:
        plan = self._plan
        return (
            f"AboveThreshold(threshold={format_exactly(plan.threshold)}, "
            f"epsilon={format_up(plan.epsilon)}, "
            f"sensitivity={format_up(plan.sensitivity.value)}, positives={plan.positives}, "
            f"left={self._left})"
        )


def _draw_laplace(scale: Fraction) -> int:
    """Draw discrete Laplace noise of any size: the difference of two one-sided draws."""
    return discrete_exponential(scale) - discrete_exponential(scale)


def _read_answer(answer: Any) -> Rational:
    """Read a private answer exactly; it is not shown, nor what failed on it."""
    if type(answer) in _PLAIN:
        return _read_exactly(answer)
    refused = ParameterError(
        "the answer cannot be read as a number; nothing was spent", parameter="answer"
    )
    with silence(), suppress(Exception):  # its text may show the answer
        try:
            return _read_exactly(answer)
        except ParameterError as problem:
            refused = problem.with_traceback(None)
    raise refused


def _read_exactly(answer: Any) -> Rational:
    """Read it; a number of a class of somebody else may do anything then."""
    if isinstance(answer, float | np.floating):
        if math.isfinite(answer):
            return Fraction(*map(int, answer.as_integer_ratio()))
        raise ParameterError("the answer must be finite; nothing was spent", parameter="answer")
    if isinstance(answer, bool) or not isinstance(answer, Rational | np.integer):
        raise ParameterError(
            f"the answer must be one finite number, got {type(answer).__name__}; nothing was spent",
            parameter="answer",
        )
    return Fraction(int(answer.numerator), int(answer.denominator))


def _read_sensitivity(
    given: float | Sensitivity,
    neighbours: Neighbours | None,
    unit: Unit | RowUnit | None,
    *,
    monotone: bool,
) -> Sensitivity:
    """Read a sensitivity, and write down on whose word it stands."""
    same = "; who asked stated, too, that all answers move the same way" * (monotone is True)
    if isinstance(given, Sensitivity):
        if neighbours is not None or unit is not None:
            raise ParameterError(
                "the sensitivity says of itself which neighbours and which unit it is for; leave "
                "out neighbours and unit"
            )
        if given.sampling is not None:
            return given
        if given.statistic is not None or given.chain:  # of which nothing says that it is asked
            same = f"; who asked stated that this bounds every answer{same}"
        return replace(given, statistic=None, chain="", argument=given.argument + same)
    if hasattr(given, "norm"):
        raise ParameterError(
            f"sensitivity must be a number or a hs.proven_sensitivity, got {type(given).__name__}"
        )
    stated = "who asked stated that every answer moves by no more"
    return proven_sensitivity(
        given,
        neighbours=neighbours or "replace-one",
        unit=unit or "row",
        argument=stated + same,
    )
