"""Sample and aggregate: a promise for every table and every function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from os import PathLike
from typing import Any, ClassVar, Literal, get_args

from hushed._functions._limits import Limits
from hushed._ground.calls import called_as
from hushed._ground.checks import (
    read_epsilon,
    require_one_of,
    require_probability,
)
from hushed._ground.notebook import Card, Shown, card_of_facts
from hushed._ground.printing import format_up
from hushed._rows._parts import check_rows
from hushed.blocks._averaging import Mean, VectorMean
from hushed.blocks._choosing import Choice
from hushed.blocks._options import (
    advise_fewer,
    build_aggregation,
    check_options,
    check_user,
    choose_blocks,
    describe,
    find_ends,
    list_candidates,
    read_options,
)
from hushed.blocks._parts import check_sendable, split_rows
from hushed.blocks._simulation import Simulation, simulate
from hushed.blocks._stable import Stable
from hushed.engines._choice import Workers, opens_engine
from hushed.errors import BadRows, ParameterError
from hushed.guarantee import Guarantee, Neighbours, RowUnit
from hushed.populations import Population
from hushed.privacy_loss import PrivacyProfile
from hushed.runs import Keep
from hushed.statistics._candidates import Spacing

Aggregate = Literal["exponential", "votes", "stable", "mean", "vector"]

_CHOICES = {  # aggregates that choose a value, and what their error counts
    "exponential": " blocks from their median",
    "votes": " votes below the most",
    "stable": " blocks or more can answer otherwise and leave the label",
}


@called_as("hs.Blocks(low=0, high=100, epsilon=1.0)")
@dataclass(frozen=True, slots=True, repr=False)
class Blocks(Shown):
    """Deal the rows to blocks, ask a function about each, and release what most of them say.

    The promise holds for every function and every table: one row is in one block, and so changes
    one answer. The function is called once for each block, in a process of its own.

    Parameters
    ----------
    candidates : sequence of float, or of labels, optional
        Public values to choose from, ascending; for ``"votes"`` and ``"stable"`` the labels that
        the function may answer with, as texts, numbers or truth values.
    low, high : float, optional
        Public range of the answer, instead of candidates: 101 of them. For ``aggregate="mean"`` the
        range that answers are moved into.
    spacing : {"even", "geometric"}, optional
        How candidates of a range are spaced: even by default, geometric if `low` is above 0. With
        ``"geometric"`` from 0 on they are 0 and numbers from a millionth of `high` on: for an
        answer of unknown size.
    epsilon : float, default 1
        Privacy loss, in nats; finite, above 0. It stands for its shortest decimal.
    delta : float, optional
        Slack, for ``aggregate="vector"`` and ``"stable"``; in (0, 1).
    blocks : int, optional
        Number of blocks; by default as many as `beta` asks for. More of them tell less each, and
        together they hide better. Choose it without the private rows: see `simulate`.
    prior : sequence of float, optional
        Public weight of each candidate, 0 or more, as `hushed.public_prior` makes it: a guess,
        which costs accuracy where it is wrong and no privacy. A candidate of weight 0 is left out.
    aggregate : {"exponential", "votes", "stable", "mean", "vector"}, default "exponential"
        How the answers become one. ``"exponential"``: a candidate near the middle of them, by the
        exponential mechanism on ranks. ``"votes"``: the label that most blocks answer, drawn by
        the exponential mechanism. ``"stable"``: that label as it is, or None where few blocks
        could make it another one; the number of labels costs nothing. ``"mean"``: their mean, with
        Laplace noise. ``"vector"``: the mean of vectors, with Gaussian noise.
    centre : sequence of float, optional
        Public centre of the ball that vectors are moved into; its length is that of the answer.
    radius : float, optional
        Public radius of that ball, above 0.
    beta : float, default 0.05
        Probability with which an answer that says nothing is accepted; in (0, 1). Fewer blocks than
        it asks for are refused.
    neighbours : {"replace-one", "add-remove"}, default "replace-one"
        Whether the number of rows is public, and a neighbour has one row replaced, or it is
        private, too, and a neighbour has one row more or less.
    unit : {"row", "person"}, default "row"
        Whether each row is declared to be one person.
    user : str or int, optional
        Column that says whose a row is, by its name, or its position in an array or in tuples.
        Then a neighbour differs in all rows of one user. Rows of nobody are left out, and so are
        those whose user is no number, text, bytes, date, time, UUID, address, member of an
        enumeration, or tuple of these.
    limits : Limits, optional
        Processor time, memory and disk that one call may use: see `hushed.blocks.Limits`.

    Raises
    ------
    ParameterError
        If a parameter cannot be used, or the blocks are too few to say anything.

    Notes
    -----
    Nissim, Raskhodnikova and Smith, *Smooth Sensitivity and Sampling in Private Data Analysis*,
    STOC 2007, section 4, with the exponential mechanism for the last step. Proof: docs/blocks.md.
    A call that fails, takes too long or answers with anything but what is asked for says nothing:
    its answer counts as the lowest candidate, as no vote, or as the centre.

    Examples
    --------
    >>> mechanism = Blocks(low=-1, high=1, epsilon=1.0)
    >>> mechanism.blocks, round(mechanism.accuracy(0.05), 1)
    (31, 15.2)
    """

    name: ClassVar[Literal["blocks"]] = "blocks"

    candidates: Sequence[Any] | None = None
    _: KW_ONLY
    low: float | None = None
    high: float | None = None
    spacing: Spacing | None = None
    epsilon: float = 1.0
    delta: float | None = None
    blocks: int | None = None
    prior: Sequence[float] | None = None
    aggregate: Aggregate = "exponential"
    centre: Sequence[float] | None = None
    radius: float | None = None
    beta: float = 0.05
    neighbours: Neighbours = "replace-one"
    unit: RowUnit = "row"
    user: str | int | None = None
    limits: Limits = field(default_factory=Limits)

    def _card(self) -> Card:
        promise, drawn = self.guarantee, self.aggregation
        slack = f", delta {format_up(promise.delta)}" if promise.delta else ""
        _, _, values, error = drawn.describe_draw()
        choice = self.aggregate in _CHOICES
        chosen = f"one of {values} public values" if choice else "the mean of their answers"
        unit = _CHOICES[self.aggregate] if choice else ", in the unit of the answer"
        return card_of_facts(
            "Blocks mechanism",
            (
                ("promise", f"epsilon {format_up(promise.epsilon)}{slack}, for every table"),
                ("neighbours", f"{promise.neighbours}, one {promise.unit}"),
                ("blocks of the rows", str(self.blocks)),
                ("released", chosen),
                (
                    ("told in 95 %, where", f"{format_up(error, 4)}{unit}")
                    if self.aggregate == "stable"
                    else ("error of the draw, 95 %", f"at most {format_up(error, 4)}{unit}")
                ),
            ),
        )

    def __post_init__(self) -> None:
        require_one_of("aggregate", self.aggregate, get_args(Aggregate))
        require_one_of("neighbours", self.neighbours, get_args(Neighbours))
        require_one_of("unit", self.unit, get_args(RowUnit))
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        object.__setattr__(self, "beta", require_probability("beta", self.beta))
        if not isinstance(self.limits, Limits):
            raise ParameterError(
                f"limits must be a hs.blocks.Limits, got {type(self.limits).__name__}",
                parameter="limits",
            )
        check_user(self.user, self.unit)
        check_options(self)
        for name, value in read_options(self).items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "blocks", choose_blocks(self))

    @property
    def values(self) -> tuple[Any, ...]:
        """What is chosen from; empty where the answers are averaged."""
        if self.candidates is not None:
            return tuple(self.candidates)
        if self.aggregate != "exponential":
            return ()
        return list_candidates(*find_ends(self), self.spacing or "even")

    @property
    def aggregation(self) -> Choice | Stable | Mean | VectorMean:
        """What is drawn from the answers of the blocks."""
        return build_aggregation(self, self.blocks or 1)

    @property
    def labelled(self) -> bool:
        """Whether the function answers with labels."""
        return self.aggregate in ("votes", "stable")

    @property
    def even(self) -> bool:
        """Whether the number of rows is public, so that all blocks have nearly the same size."""
        return self.neighbours == "replace-one" and self.user is None

    @property
    def parameters(self) -> dict[str, float | int | bool | str]:
        """What a certificate says of it."""
        return describe(self)

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level.

        The average over splits, and over the coins of a function that tosses some, is below the
        same curve as each single one: hockey-stick divergences are jointly convex.
        """
        return self.aggregation.loss

    @property
    def guarantee(self) -> Guarantee:
        """What a draw promises, for every pair of neighbours."""
        return Guarantee(
            epsilon=self.epsilon,
            delta=self.aggregation.delta,
            neighbours=self.neighbours,
            unit="row" if self.user is None else "user",
        )

    def accuracy(self, beta: float = 0.05) -> float:
        """How far the draw may miss what the blocks say, but with probability beta.

        What it counts depends on `aggregate`: blocks where one answer is chosen, and units of the
        answer where answers are averaged.

        Parameters
        ----------
        beta : float, default 0.05
            Probability; in (0, 1).

        Returns
        -------
        float
            ``"exponential"``: a number of blocks, and no distance. Sorted, the answers of the B
            blocks have ranks 1 to B, and the drawn candidate lies between those of ranks
            ``B/2 - a`` and ``B/2 + a``, each moved to the nearest candidate, whatever the prior is
            worth; from B/2 on it says nothing. ``"votes"``: votes, by which the drawn label may be
            behind the one with most of them. ``"stable"``: the blocks that must be free to answer
            otherwise, so that a refusal is unlikely. ``"mean"``: the error of the noise, in the
            units of the answer; ``"vector"``: the same, in each coordinate. A candidate without
            weight is none here. How far the answers of blocks are from that of the whole table is
            another matter: `simulate` tells the whole error, in the units of the answer.

        Examples
        --------
        >>> ranks = Blocks(low=-1, high=1, epsilon=1.0, blocks=100)
        >>> round(ranks.accuracy(0.05), 1)  # between the answers of ranks 35 and 66, of 100
        15.2
        >>> mean = Blocks(low=-1, high=1, epsilon=1.0, blocks=100, aggregate="mean")
        >>> round(mean.accuracy(0.05), 3)  # in the units of the answer, which lies in [-1, 1]
        0.06
        """
        require_probability("beta", beta)
        return self.aggregation.accuracy(beta)

    def check(self, rows: Any) -> None:
        """Refuse a table by its public size and by its types; no value is looked at.

        Parameters
        ----------
        rows : array, list or frame
            The table.

        Raises
        ------
        BadRows
            If it is none, has no such user column, or its number of rows is public and below that
            of the blocks.
        """
        check_rows(rows, self.user)
        check_sendable(rows)
        if self.even and len(rows) < (self.blocks or 1):
            raise BadRows(
                f"{self.blocks} blocks need as many rows, the table has {len(rows)}. "
                + advise_fewer(self, len(rows))
            )

    def split(self, rows: Any) -> list[Any]:
        """Deal rows to the blocks, by randomness of the operating system.

        Parameters
        ----------
        rows : array, list or frame
            The table; private, if the rows are.

        Returns
        -------
        list
            One table for each block; they share no row. Of nearly equal size where the number of
            rows is public, otherwise of random sizes, and perhaps empty.
        """
        self.check(rows)
        return split_rows(rows, self.blocks or 1, self.user, even=self.even)

    @opens_engine
    def simulate(
        self,
        f: Callable[[Any], Any],
        population: Population,
        rows: int,
        *,
        trials: int = 10,
        seed: int = 0,
        isolated: bool = True,
        workers: Workers = 1,
        progress: bool = False,
        keep: str | PathLike[str] | Keep | None = None,
    ) -> Simulation:
        """Try it on tables of a public population, and tell the errors.

        Parameters
        ----------
        f : callable
            The function.
        population : Population
            Public source of rows, such as `hushed.populations.PublicTable`. With `user` a public
            table with that column, or a source which, asked for a number of users, gives all
            their rows, as for `hushed.sample_sensitivity`.
        rows : int
            Rows of each table; with `user` its users, each with all rows.
        trials : int, default 10
            Tables; the function is called for each of them, and for each of its blocks.
        seed : int, default 0
            Seed of the tables and of the noise, which is not the noise of a release.
        isolated : bool, default True
            Call the function in processes of its own, as a release does. In this process it is
            quicker, but what it keeps from call to call, or takes too long for, is not seen.
        workers : int, str, Engine or distributed.Client, default 1
            Worker processes, or a cluster, among which the tables are shared out; see
            `hushed.engines.engine_of`. Each asks about one block at a time; with 1, which is this
            process, as many blocks are asked about at once as there are cores. A release has no
            such argument: private rows stay on this machine.
        progress : bool, default False
            Show a progress bar in a terminal or a notebook. A release has none: how
            long each block takes depends on its rows.
        keep : str, path or hushed.runs.Keep, optional
            Folder, or address of an object store, in which what is found on each table is kept: the
            same call goes on where an earlier one was interrupted.

        Returns
        -------
        Simulation
            Errors against the function on the whole table, and the share of calls that failed.
            Nothing is charged, and no private row is seen.
        """
        return simulate(
            self,
            f,
            population,
            rows,
            trials=trials,
            seed=seed,
            isolated=isolated,
            workers=workers,
            progress=progress,
            keep=keep,
        )
