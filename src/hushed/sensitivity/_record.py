"""How far an answer can move between neighbours, and how that is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from hushed._ground.calls import called_as
from hushed._ground.checks import require_one_of
from hushed._ground.decimals import read
from hushed._ground.notebook import Card, Shown, draw_histogram
from hushed._ground.printing import flat, format_down, format_up, name_changed
from hushed._ground.read_only import read_state
from hushed._ground.tensors import Precision
from hushed._ground.weak_promises import NOMINAL
from hushed._rows._containers import Layout
from hushed._rows._ranges import Range
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee, Neighbours, Protect, Unit
from hushed.sensitivity._canary import Agreement, confirm
from hushed.sensitivity._designs import Design
from hushed.sensitivity._neighbourhood import Neighbourhood, Position
from hushed.sensitivity._origin import (
    check_origin,
    compute_fingerprint,
    describe_rank,
    shift_gamma,
)
from hushed.sensitivity._ranks import Calibration
from hushed.sensitivity._remarks import (
    Movements,
    describe_model,
    describe_places,
    describe_resolution,
    list_remarks,
)
from hushed.sensitivity._values import Row
from hushed.spaces import NORMS, Norm
from hushed.statistics import Statistic

# Rows drawn at once in batch mode: about what fits the second-level cache.
BATCH_ROWS = 2**16
MOST_BATCH_ROWS = 2**26


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SamplingFacts:
    """What may be told of a sampling whatever the population was made from.

    A certificate takes over these fields as they are, without asking for each; so none may hold
    anything that was computed from the rows of a population.

    Parameters
    ----------
    function : str
        Name of the sampled function.
    calibration : {"training-conditional", "marginal", "dkw"}
        How the rank was chosen.
    norm : {"l1", "l2", "sup", "range"}
        Norm in which the movements were measured.
    pairs, rank : int
        Movements drawn, and the one kept, counted from the smallest.
    gamma : float
        Probability that the real pair (or, for ``everyone`` and ``simultaneous``, any pair of
        the table) moves further, any shift included; in (0, 1).
    tail_mass, sampling_error : float
        The two parts of the per-trial gamma: pairs beyond the bound, and the risk of the sampler.
    requested_gamma, asked_pairs : float and int, optional
        What the caller asked for; None where it followed from the other.
    protect : {"record", "everyone", "simultaneous", "table"}
        Whom gamma is about.
    rows : int
        Rows in the private table, and in each sampled one unless blocks are averaged; users where
        `user` is not None. Where one is added or removed, the largest of ``sizes``.
    neighbours : {"replace-one", "add-remove"}
        Relation between the tables of a pair.
    distance : int
        Rows that are replaced at once.
    position : {"random", "worst"}
        Where a row is replaced, added or removed.
    sizes : tuple of int
        Numbers of rows that the promise is for, where a row is added or removed; else empty.
    monotone : bool
        As declared by the caller.
    seed : int
        Seed of the sampler.
    symmetric, batch : bool
        As declared by the caller.
    batch_rows : int
        Rows that are drawn and handed to the function at once, about, if ``batch`` is True: other
        blocks give other draws.
    dtype : {"float64", "float32", "float16", "bfloat16"}
        Coarsest type of floating-point numbers that the function answered in; whole numbers are
        read exactly, and count as ``"float64"``.
    updated : bool
        Whether neighbours were answered by an update of the caller's, and not evaluated.
    blocks : int
        Blocks of the private table, whose answers are averaged; 1 if it is taken whole.
    shift : float
        Kullback-Leibler divergence per row, in nats, that ``gamma`` was enlarged for.
    shape : tuple of int
        Shape of the answer.
    unwatched : tuple of str
        What the function used that has no digest, or changed by itself while it was sampled.
    asked_anew : bool, optional
        Where there is something of that kind, whether the function was asked of neighbours in a new
        process, which shows what it keeps under a part of the rows. False if it could not be: none
        starts, or it cannot be sent there, fails or does not end there, or is another function
        there. None where nothing is unwatched, and of a sampling from before this was noted.
    unsearched : tuple of str
        Kinds of objects of the function, the population or the update of answers, as
        ``"polars.LazyFrame"``, that were not searched for the private rows.
    user : str or int, optional
        Column that says whose a row is; then a pair differs in all rows of one user. None if it
        differs in one row.
    """

    function: str
    calibration: Calibration
    norm: Norm
    pairs: int
    rank: int
    gamma: float
    tail_mass: float
    sampling_error: float
    requested_gamma: float | None
    asked_pairs: int | None
    protect: Protect
    rows: int
    neighbours: Neighbours = "replace-one"
    distance: int = 1
    position: Position = "random"
    sizes: tuple[int, ...] = ()
    monotone: bool = False
    seed: int
    symmetric: bool
    batch: bool
    batch_rows: int = BATCH_ROWS
    dtype: Precision = "float64"
    updated: bool = False
    blocks: int
    shift: float
    shape: tuple[int, ...]
    unwatched: tuple[str, ...]
    asked_anew: bool | None = None
    unsearched: tuple[str, ...] = ()
    user: str | int | None = None

    def __repr__(self) -> str:
        what = "users" if self.user is not None else "rows"
        return (
            f"<{type(self).__name__} of {flat(self.function)}: number {self.rank} of {self.pairs} "
            f"movements, gamma {format_up(self.gamma)} ({self.protect}), {self.rows} {what}>"
        )

    def reach(self) -> Neighbourhood:
        """Which neighbours were compared.

        Returns
        -------
        Neighbourhood
            With everything that follows from it; it does not know how many values were given.
        """
        return Neighbourhood(
            rows=self.rows,
            blocks=self.blocks,
            neighbours=self.neighbours,
            distance=self.distance,
            position=self.position,
            protect=self.protect,
            sizes=self.sizes,
            user=self.user,
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Sampling(SamplingFacts):
    """Where a sampled sensitivity comes from: enough to draw it again.

    Its other fields are those of `SamplingFacts`.

    Parameters
    ----------
    population : dict
        Description of the public source.
    source : object
        The population itself; not compared, not printed.
    given : object
        As the caller handed it in, before rows were put together by user, and with it an update
        of answers; not compared, not printed.
    called : callable
        The function itself; not compared, not printed.
    data_dependent : bool
        True if the caller said that the population was made from the private rows.
    layout : Layout
        Container and columns of the sampled tables.
    identity : str
        Name of the function by its content; see `hushed._functions._fingerprints.identity`.
    draws : ndarray of float, shape (pairs,)
        Movements, sorted upwards.
    names : tuple of str
        Names that the function gave its numbers on every drawn table, in their order; empty if it
        gave none.
    answer : ndarray of float
        What the function answered on the first drawn table.
    table : str
        Digest of that table.
    largest : float
        Largest absolute number in the answers on the drawn tables.
    environment : dict of str to str
        What the last bits of an answer depended on; see `hushed._functions._environment.facts`.
    state : dict of str to str
        Digests of the code and the data that the function used; see `look`.
    settings : dict of str to str
        How Python and libraries were set; see `hushed._functions._settings.settings`.
    elsewhere : dict of str to int
        How many movements were measured by workers that differ from this process, by what differs.
    design : Design
        Which rows each trial saw; not compared, not printed.
    locked : bool
        Whether the function was given arrays that it cannot write to.
    limit : float
        Largest absolute number that doubles can average exactly enough; private averages are
        held to it. Infinite if nothing is averaged.
    support : tuple of Range
        Ranges that the population keeps to, one for each column that has one.
    values : tuple of tuple
        Cells of the rows that took every place in turn; empty unless ``protect`` is ``"table"``.
    """

    population: dict[str, Any]
    source: Any = field(repr=False, compare=False)
    given: Any = field(repr=False, compare=False)
    called: Any = field(repr=False, compare=False)
    data_dependent: bool
    layout: Layout
    identity: str
    draws: NDArray[np.float64] = field(repr=False, compare=False)
    names: tuple[str, ...] = ()
    answer: NDArray[np.float64] = field(repr=False, compare=False)
    table: str = field(repr=False, compare=False)
    largest: float
    environment: dict[str, str] = field(repr=False, compare=False)
    state: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    settings: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    elsewhere: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    design: Design = field(repr=False, compare=False)
    locked: bool = False
    limit: float = math.inf
    support: tuple[Range, ...] = ()
    values: tuple[Row, ...] = ()

    def __setstate__(self, state: Sequence[Any]) -> None:
        """Read one that a team server has kept since before the last fields came."""
        read_state(self, state, "names", "asked_anew")

    def confirm(self, function: Callable[[Any], Any]) -> Agreement:
        """Ask a function the first sampled table again; see `hushed.sensitivity._canary.confirm`.

        Parameters
        ----------
        function : callable
            The function to be evaluated on private rows.

        Returns
        -------
        Agreement
            How well it agrees with what was sampled.
        """
        return confirm(function, self)


@called_as('hs.proven_sensitivity(1.0, argument="one row changes a count by 1")')
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Sensitivity(Shown):
    """How far an answer can move between neighbouring tables.

    Parameters
    ----------
    value : float
        Largest movement, in the units of the answer; finite, 0 or more.
    norm : {"l1", "l2", "sup", "range"}
        Norm in which the movement is measured.
    neighbours : {"replace-one", "add-remove"}
        Relation between the two tables.
    unit : {"row", "user"}, default "row"
        What is replaced, added or removed between them: one row, or all rows of one user.
    argument : str
        Why the value holds, in words.
    sampling : Sampling, optional
        How it was sampled; None for a proven one.
    person : bool, default False
        True if the caller declared that each row is one person. Words then speak of people; the
        promise is the same.
    statistic : Statistic, optional
        The statistic whose global sensitivity it is: nothing else is released with it.
    chain : str, default ""
        The chain whose movement it is, as `hushed.measurements.chain_sensitivity` names it: nothing
        else is released with it.
    """

    value: float
    norm: Norm
    neighbours: Neighbours = "replace-one"
    unit: Unit = "row"
    argument: str
    sampling: Sampling | None = field(default=None, repr=False)
    person: bool = False
    statistic: Statistic | None = field(default=None, repr=False)
    chain: str = field(default="", repr=False)

    def __setstate__(self, state: Sequence[Any]) -> None:
        """Read one that a team server has kept since a version that knew of no chain, too."""
        read_state(self, state)

    def _card(self) -> Card:
        draws, sampled = self.draws, self.sampling is not None
        distance = 1 if self.sampling is None else self.sampling.distance
        changed = name_changed("person" if self.person else self.unit, distance)
        label = f"{draws.size} sampled movements; {self.value:.6g} is kept"
        return Card(
            title=f"Sensitivity {format_up(self.value)}",
            text=self.explain(),
            facts=(
                ("neighbours", f"{self.neighbours}, {changed}"),
                ("norm", str(self.norm)),
                ("gamma", format_up(self.gamma)),
            ),
            pictures=(draw_histogram(draws.tolist(), self.value, label),) if sampled else (),
        )

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and self.value >= 0):
            raise ParameterError(
                f"a sensitivity must be a finite number of 0 or more, got {self.value}"
            )
        require_one_of("norm", self.norm, NORMS)
        require_one_of("unit", self.unit, get_args(Unit))
        check_origin(self)
        if self.person and self.unit != "row":
            raise ParameterError("each row is one person, or a user has several: not both")

    @property
    def gamma(self) -> float:
        """Probability that the real pair moves further; 0 if proven."""
        return self.sampling.gamma if self.sampling else 0.0

    @property
    def pairs(self) -> int | None:
        """Number of sampled pairs; None if proven."""
        return self.sampling.pairs if self.sampling else None

    @property
    def rank(self) -> int | None:
        """One-based rank of the kept movement; None if proven."""
        return self.sampling.rank if self.sampling else None

    @property
    def draws(self) -> NDArray[np.float64]:
        """Sampled movements, sorted upwards, shape (pairs,); empty if proven."""
        return self.sampling.draws if self.sampling else np.empty(0)

    @property
    def calls(self) -> int:
        """Tables that the function was asked about to measure it, checks aside; 0 if proven."""
        if self.sampling is None:
            return 0
        reach = replace(self.sampling.reach(), values=len(self.sampling.values))
        if self.sampling.updated:  # the table, and the neighbour that moves furthest
            return self.sampling.pairs * (2 if reach.whole else 1)
        return self.sampling.pairs * reach.count_calls(symmetric=self.sampling.symmetric)

    @property
    def fingerprint(self) -> str:
        """Name of the estimate: equal for equal draws of one function, whose gamma is spent once.

        A name for the draws and one for the function, joined by a dot. Two functions may agree on
        every sampled pair and still fail on different pairs, so that their gammas add.
        """
        return compute_fingerprint(self) if self.sampling else ""

    @called_as("sensitivity.guarantee(1.0)")
    def guarantee(self, epsilon: float, delta: float = 0.0) -> Guarantee:
        """Promise of a mechanism calibrated to this sensitivity.

        Parameters
        ----------
        epsilon : float
            Privacy loss of the mechanism when the answer moves by ``value``, in nats.
        delta : float, default 0
            Its slack.

        Returns
        -------
        Guarantee
            With the gamma of this sensitivity and the estimate it comes from. Without the estimate
            where a release puts users into a new random order: gamma then counts each time, unless
            the function is ``symmetric``, and no average over blocks.
        """
        if self.sampling is None:
            return Guarantee(
                epsilon=epsilon, delta=delta, neighbours=self.neighbours, unit=self.unit
            )
        once = not self.sampling.reach().is_reordered(symmetric=self.sampling.symmetric)
        return Guarantee(
            epsilon=epsilon,
            delta=delta,
            gamma=self.gamma,
            neighbours=self.neighbours,
            unit=self.unit,
            protect=self.sampling.protect,
            distance=self.sampling.distance,
            data_dependent=self.sampling.data_dependent,
            estimates=((self.fingerprint, self.gamma),) if once else (),
            marginal=self.sampling.calibration == "marginal",
        )

    def explain(self) -> str:
        """Say what was kept, and what speaks against relying on it.

        Returns
        -------
        str
            What was kept, and what its rank and gamma mean; then one paragraph for each remark:
            that no pair moves the answer, or few do, that a much larger movement was seen, that
            whole places of the table may be left out, or that the answers are too coarse to tell
            so small a movement. The first remark says that a population was made from the private
            rows, or that a fitted model is not the law of the rows that it was fitted to.
        """
        size = f"Sensitivity {format_up(self.value)} in the {self.norm} norm"
        sampling = self.sampling
        if sampling is None:
            return f"{size}, for {self.neighbours} neighbours, proven: {flat(self.argument)}."
        pairs = sampling.pairs
        seen = Movements(known=sampling.draws, ranks=np.arange(pairs), pairs=pairs, kept=self.value)
        remarks = [
            *((NOMINAL,) if sampling.data_dependent else ()),
            *describe_model(sampling.population),
            *list_remarks(seen),
            *describe_places(sampling.reach(), self.gamma, symmetric=sampling.symmetric),
        ]
        if not sampling.data_dependent:  # else the size of the answers may be private
            undivided = self.value * sampling.blocks
            remarks += describe_resolution(undivided, sampling.largest, sampling.dtype)
        whom = f"protect={sampling.protect!r}, {sampling.neighbours} neighbours"
        text = f"{size}: {self.argument}; gamma = {format_up(self.gamma)} ({whom})."
        plain = describe_rank(sampling)
        return "\n\n".join([f"{text} {plain}", *(f"{each}." for each in remarks)])

    @called_as("sensitivity.shifted(0.1)")
    def shifted(self, tau: float) -> Sensitivity:
        """Carry a sampled sensitivity to private rows drawn from a nearby distribution.

        Parameters
        ----------
        tau : float
            Bound on the Kullback-Leibler divergence KL(P || Q), in nats, of the sampled
            population P from the distribution Q of one private row; 0 or more.

        Returns
        -------
        Sensitivity
            The same value with gamma enlarged by ``sqrt(r tau / 2)``, rounded up, where r is
            the number of random rows that the promise is about: those of the table, and fresh ones
            (n + 1 for one record, n for ``protect="table"``, 2 n for all records).

        Raises
        ------
        ParameterError
            If tau is negative or NaN, the sensitivity is proven (nothing to carry) or already
            shifted, or gamma would reach 1.

        Notes
        -----
        Pinsker's inequality; Rubinstein and Alda, ICML 2017, Proposition 8.
        """
        if self.sampling is None:
            raise ParameterError("a proven sensitivity holds for every population: no shift needed")
        tau = read("tau", tau, up=True)
        if not 0 <= tau < math.inf:
            raise ParameterError(f"tau must be 0 or more and finite, got {tau}", parameter="tau")
        if self.sampling.shift:
            raise ParameterError(
                f"the sensitivity is already shifted by tau={self.sampling.shift}; shift the "
                "original one, by a bound on the divergence from the population that was sampled"
            )
        involved = self.sampling.reach().involved
        gamma = shift_gamma(self.gamma, tau, involved)
        if not gamma < 1:
            raise ParameterError(
                f"tau={tau} over {involved} rows makes gamma reach {gamma:.3g}: nothing is left "
                f"of the promise; gamma={self.gamma} tolerates tau below "
                f"{format_down(2 * (1 - self.gamma) ** 2 / involved, 3)}"
            )
        return replace(self, sampling=replace(self.sampling, gamma=gamma, shift=tau))
