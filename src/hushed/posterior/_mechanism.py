"""The posterior sampler: candidates, a prior, log likelihoods of bounded range, one exact draw."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from hushed._functions._calls import call_privately
from hushed._ground.calls import called_as
from hushed._ground.checks import (
    is_whole,
    read_epsilon,
    require_one_of,
    require_positive,
    require_within,
)
from hushed._ground.notebook import Card, Shown, card_of_facts
from hushed._ground.numeric import round_up
from hushed._ground.printing import as_given, format_up
from hushed._ground.types import Floats
from hushed._ground.weak_promises import NOMINAL
from hushed._rows._parts import check_rows
from hushed.errors import BadFunction, ParameterError
from hushed.guarantee import Guarantee, Neighbours, RowUnit
from hushed.mechanisms._arguments import require_movement
from hushed.mechanisms._posterior_draw import PosteriorDraw
from hushed.posterior._candidates import (
    choose_step,
    compute_offsets,
    digest_points,
    read_points,
    read_weights,
)
from hushed.posterior._range import score_rows
from hushed.posterior._scores import BITS, LogLikelihood, SummedScores
from hushed.posterior._trying import check_made_answers, check_public_answers
from hushed.privacy_loss import PrivacyProfile
from hushed.sensitivity import Blockwise, Sensitivity, proven_sensitivity
from hushed.statistics._priors import remember

_LEAST, _MOST = 1e-100, 1e100
# Half a step, and half an ulp of a value that is 2**38 steps from the best one: 2**-15 of a step.
_ROUNDED = 1 + 2.0**-14


@called_as("hs.Posterior(log_likelihood, candidates, epsilon=1.0, clip=2.0)")
@dataclass(frozen=True, slots=True, repr=False)
class Posterior(Shown):
    """Draw one value of a parameter from its posterior, tempered so that a draw costs epsilon.

    The odds of a candidate are ``prior * exp(weight * log likelihood of all rows)``. The weight is
    epsilon over the range of what one row can change in the log likelihoods; at weight 1 it would
    be the posterior itself. One draw is no posterior mean: it has the spread of the tempered
    posterior, which for small weights is wider by about ``1 / sqrt(weight)``.

    Parameters
    ----------
    log_likelihood : callable
        ``log_likelihood(row, candidates)``: for a table of one row, of the kind that the rows are,
        one number for each candidate. It is called for each row by itself, so that rows must be
        independent given the parameter. Up to a constant that may depend on the row.
    candidates : array of float, shape (k,) or (k, d)
        Public values of the parameter: a grid.
    epsilon : float
        Privacy loss of a draw, in nats. Several draws cost so much each.
    prior : sequence of float, optional
        Public weight of each candidate, above 0; even by default.
    clip : float, optional
        How far a row's log likelihood may lie below that of its best candidate: what is below is
        moved up. Then the promise holds for every table and every function that keeps nothing of a
        row for another, and the range is 2 `clip` for a replaced row, `clip` for one that is
        added or removed.
    sensitivity : Sensitivity, optional
        Instead of `clip`: `hushed.proven_sensitivity` in the norm ``"range"``, for likelihoods of
        a range that you can prove, or what `hushed.sample_likelihood_range` has measured.
    neighbours : {"replace-one", "add-remove"}, default "replace-one"
        How two tables differ; a sensitivity brings its own.
    unit : {"row", "person"}, default "row"
        Whether each row is declared to be one person; a sensitivity brings its own.
    user : str or int, optional
        Column that says whose a row is. The log likelihoods of a user are added, then clipped, so
        that the promise is for all rows of one user.
    public_rows : array, list or frame, optional
        Public rows like the private ones, on which the function is tried: the first thousand, of
        which it may fail on none. Without them rows of numbers and texts are made up for the
        columns of a table when it is released, and the function may not fail on all of them: a
        row on which it fails counts alike for all candidates, and nobody hears of it. Nothing is
        made up for lists.

    Raises
    ------
    ParameterError
        If a parameter cannot be used.
    WrongNorm, ZeroSensitivity
        If the sensitivity is not in the norm ``"range"``, or is 0.
    BadFunction
        If the function fails on public rows.

    Notes
    -----
    Dimitrakakis, Nelson, Mitrokotsa and Rubinstein, *Robust and Private Bayesian Inference*, ALT
    2014; Wang, Fienberg and Smola, *Privacy for Free*, ICML 2015, whose weights are half as large.
    Proofs: docs/posterior.md.

    Examples
    --------
    >>> import numpy as np
    >>> def coin(row, p):
    ...     return np.where(row == 1, np.log(p), np.log1p(-p))
    >>> grid = np.arange(1, 10) / 10
    >>> mechanism = Posterior(coin, grid, epsilon=1.0, clip=np.log(9))
    >>> round(mechanism.weight, 4)
    0.2276
    """

    name: ClassVar[Literal["posterior"]] = "posterior"

    log_likelihood: LogLikelihood
    candidates: Any
    _: KW_ONLY
    epsilon: float
    prior: Sequence[float] | None = None
    clip: float | None = None
    sensitivity: Sensitivity | None = None
    neighbours: Neighbours = "replace-one"
    unit: RowUnit = "row"
    user: str | int | None = None
    public_rows: Any = field(default=None, repr=False, compare=False)
    # What the candidates were read from, so that a release can refuse its rows; not in a pickle.
    given: Any = field(init=False, repr=False, compare=False)

    def _card(self) -> Card:
        function = getattr(self.log_likelihood, "__qualname__", type(self.log_likelihood).__name__)
        return card_of_facts(
            "Posterior mechanism",
            (
                ("promise", f"epsilon {format_up(self.epsilon)}"),
                ("neighbours", f"{self.neighbours}, one {self.unit}"),
                ("released", f"one draw, of {len(self.candidates)} candidates"),
                ("log likelihood", function),
                ("weight of the rows", f"{self.weight:.6g}: how far epsilon tempers the posterior"),
                *((("remark", NOMINAL),) if self.guarantee.data_dependent else ()),
            ),
        )

    def __post_init__(self) -> None:
        if not callable(self.log_likelihood):
            raise ParameterError("log_likelihood must be a function of a row and the candidates")
        _check_arguments(self.log_likelihood)
        object.__setattr__(self, "given", remember((), self.candidates))
        object.__setattr__(self, "candidates", read_points(self.candidates))
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        if self.prior is not None:
            weights = read_weights(self.prior, len(self.candidates))
            object.__setattr__(self, "prior", remember(weights.tolist(), self.prior))
        require_one_of("neighbours", self.neighbours, ("replace-one", "add-remove"))
        require_one_of("unit", self.unit, ("row", "person"))
        _check_user(self)
        if (self.clip is None) == (self.sensitivity is None):
            raise ParameterError(
                "give clip=, so that the promise holds for every table, or a sensitivity= that is "
                "proven or from hs.sample_likelihood_range: one of the two",
                parameter="clip",
            )
        if self.clip is not None:
            require_within("clip", require_positive("clip", self.clip), _LEAST, _MOST)
            object.__setattr__(self, "clip", float(self.clip))
        else:
            _check_sensitivity(self)
        self.mechanism.noise.drawn()  # whatever it refuses
        if self.public_rows is not None:
            check_public_answers(self.log_likelihood, self.candidates, self.public_rows)

    @property
    def scores(self) -> Callable[[Any], Floats]:
        """Function of the rows whose answer the draw is made from; `hushed.verify` takes it."""
        if self.sensitivity is not None and self.sensitivity.sampling is not None:
            batch = self.sensitivity.sampling.batch
            return score_rows(self.log_likelihood, self.candidates, batch=batch)
        return SummedScores(
            function=self.log_likelihood,
            points=self.candidates,
            step=self._step,
            most=0 if self.clip is None else self._count_steps(self.clip),
            user=self.user,
        )

    @property
    def mechanism(self) -> PosteriorDraw:
        """The draw, on a sensitivity of the scores."""
        weights = None if self.prior is None else np.array(self.prior)
        moved = self._bound_scores()
        count = len(self.candidates)
        offsets = np.zeros(count)
        if weights is not None:
            step = choose_step(moved.value, BITS) if moved.sampling else self._step
            offsets = compute_offsets(weights, moved.value, self.epsilon, step)
        return PosteriorDraw(
            moved,
            epsilon=self.epsilon,
            fingerprint=digest_points(self.candidates, weights),
            least=1 / count if weights is None else float(weights.min() / weights.sum()),
            prior=weights is not None,
            points=self.candidates,
            offsets=offsets,
        )

    @property
    def weight(self) -> float:
        """Weight of the log likelihood of the rows: 1 would be the posterior itself."""
        moved = self._bound_scores()
        rows = moved.sampling.rows if moved.sampling else 1
        return self.epsilon / (moved.value * rows)

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level: the losses of all candidates lie in a range of epsilon."""
        return self.mechanism.loss

    @property
    def guarantee(self) -> Guarantee:
        """What a draw promises."""
        return self.mechanism.guarantee

    def accuracy(self, beta: float = 0.05) -> float:
        """How far the log likelihood of the drawn value is below the best one at most.

        Parameters
        ----------
        beta : float, default 0.05
            Probability with which it may be farther; in (0, 1).

        Returns
        -------
        float
            Of log likelihoods as clipped; of their mean over rows, if the range was sampled. It
            holds for every prior, and says little where the prior has very small weights.
        """
        return self.mechanism.accuracy(beta, len(self.candidates))

    def chances_on(self, public_rows: Any) -> Floats:
        """Probability with which each candidate is drawn on a public table.

        Parameters
        ----------
        public_rows : array, list or frame
            A public table like the private one: what comes out is about these rows.

        Returns
        -------
        ndarray of float
            One number for each candidate, as doubles compute it; together they are 1.

        Raises
        ------
        BadFunction
            If the function gives no log likelihoods for some rows, which would count alike for all
            candidates in a release.
        """
        self.check(public_rows)
        asked = SummedScores(self.log_likelihood, self.candidates, 1.0, 1)
        failed, reason = asked.count_failures(public_rows)
        if failed:
            raise BadFunction(f"{failed} of {len(public_rows)} rows say nothing: {reason}")
        return self.mechanism.compute_chances(self._score(public_rows))

    def check(self, rows: Any) -> None:
        """Refuse a table by its types and columns; no value is looked at.

        Parameters
        ----------
        rows : array, list or frame
            The table.

        Raises
        ------
        BadRows
            If it is none, or has no such user column.
        """
        check_rows(rows, self.user)

    def check_function(self, rows: Any) -> None:
        """Refuse a function that fails on every row that is made up for the columns of a table.

        Parameters
        ----------
        rows : array, list or frame
            The table; no value is looked at, and no type of a column.

        Raises
        ------
        BadFunction
            If it fails on all of them. Nothing is made up where public rows were given, for lists,
            and for functions that take many rows at once, which were sampled.
        """
        if self.public_rows is None and not self._stacked:
            check_made_answers(self.log_likelihood, self.candidates, rows)

    def draw(self, rows: Any) -> Any:
        """Draw a candidate, by randomness of the operating system.

        Parameters
        ----------
        rows : array, list or frame
            The table. `hushed.release` charges and certifies, too.

        Returns
        -------
        float or ndarray of float
            One of the candidates.

        Raises
        ------
        BadFunction
            If the function fails on a row, and there is no ``clip``; without its words, for they
            may hold a private value.
        """
        self.check(rows)
        return self.mechanism.draw(call_privately(self._score, rows))

    def _score(self, rows: Any) -> Floats:
        """Scores of a table, as a stack of one where the function takes stacks."""
        if self._stacked:
            return np.asarray(self.scores(np.asarray(rows)[None])[0])
        return self.scores(rows)

    @property
    def _stacked(self) -> bool:
        """Whether the function takes stacks of rows, as it was sampled with."""
        sampling = self.sensitivity.sampling if self.sensitivity else None
        return sampling is not None and sampling.batch

    @property
    def _step(self) -> float:
        moved = self.clip if self.sensitivity is None else self.sensitivity.value
        return choose_step(float(moved or 1.0), BITS)

    def _count_steps(self, clip: float) -> int:
        """Count the steps of a clip, rounded up: the range counts as many."""
        return math.ceil(clip / self._step)

    def _bound_scores(self) -> Sensitivity:
        """Bound how far a neighbour moves the scores apart; rounding to steps is counted."""
        given = self.sensitivity
        if given is None:
            return self._bound_clipped(self._count_steps(self.clip or 0.0))
        if given.sampling is not None:
            return given
        ways = 2 if given.neighbours == "replace-one" else 1
        return proven_sensitivity(
            round_up(given.value + ways * self._step * _ROUNDED, 2.0**-52),
            "range",
            neighbours=given.neighbours,
            unit="person" if given.person else given.unit,
            argument=f"{given.argument}; rounded to multiples of 2^{round(math.log2(self._step))}",
        )

    def _bound_clipped(self, steps: int) -> Sensitivity:
        ways = 2 if self.neighbours == "replace-one" else 1
        whose = "row" if self.user is None else "user"
        return proven_sensitivity(
            ways * steps * self._step,
            "range",
            neighbours=self.neighbours,
            unit=self.unit if self.user is None else "user",
            argument=f"the log likelihood of each {whose} by itself was moved up to within "
            f"{steps * self._step!r} of its best candidate, and a {whose} counts at most {ways} "
            f"time{'s' * (ways > 1)} that",
        )


def _check_arguments(log_likelihood: LogLikelihood) -> None:
    """Refuse what takes no two arguments: it would fail on every row, and nobody would hear it."""
    try:
        asked = inspect.signature(log_likelihood)
    except (TypeError, ValueError):  # built in: it tells no arguments
        return
    try:
        asked.bind(None, None)
    except TypeError as cause:
        raise ParameterError(
            f"log_likelihood is called with a row and all candidates, and takes {asked}"
        ) from cause


def _check_user(mechanism: Posterior) -> None:
    user = mechanism.user
    if user is None:
        return
    if not (isinstance(user, str) or is_whole(user)):
        raise ParameterError(
            f"user must be the name of a column or its position, got {as_given(user)}",
            parameter="user",
        )
    if mechanism.unit == "person":
        raise ParameterError(
            "each row is one person, or user= says whose it is: not both", parameter="unit"
        )


def _check_sensitivity(mechanism: Posterior) -> None:
    """Refuse a sensitivity that is about something else than rows of this likelihood."""
    given: Any = mechanism.sensitivity
    if not isinstance(given, Sensitivity):
        raise ParameterError(
            "sensitivity must be from hs.proven_sensitivity or hs.sample_likelihood_range, got "
            f"{type(given).__name__}",
            parameter="sensitivity",
        )
    if mechanism.user is not None or given.unit == "user":
        raise ParameterError(
            "for users with several rows give clip= and user=: their log likelihoods are added "
            "and then clipped",
            parameter="user",
        )
    if given.statistic is not None or given.chain:
        raise ParameterError(
            "the sensitivity is that of a statistic or a chain, and bounds no log likelihood: "
            "state what you can prove of it with hs.proven_sensitivity",
            parameter="sensitivity",
        )
    require_movement(given, "Posterior", "range")
    if not _LEAST <= given.value <= _MOST:
        raise ParameterError("the range is too small or too large for doubles")
    if given.sampling is not None and type(given.sampling.called) is not Blockwise:
        raise ParameterError(
            "a range that was sampled must be from hs.sample_likelihood_range",
            parameter="sensitivity",
        )
    object.__setattr__(mechanism, "neighbours", given.neighbours)
    object.__setattr__(mechanism, "unit", "person" if given.person else "row")
