"""Which rows each trial of the sampler sees: fresh ones, or a part of a public table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hushed._ground.decimals import decimal_of
from hushed._ground.printing import format_up
from hushed._rows import _containers as containers
from hushed._rows._bundles import Bundles
from hushed._rows._ranges import Range, is_within
from hushed.errors import BadRows, ParameterError, TooFewRows
from hushed.populations import Population, PublicTable, Users
from hushed.populations._user_source import count_rows_each
from hushed.sensitivity._neighbourhood import Neighbourhood
from hushed.sensitivity._ranks import Calibration, Rank, choose_rank

Route = Literal["independent", "disjoint", "given-the-rest", "resampled"]

_TOGETHER = 2**16  # rows
_DEALING = 14  # key of the stream that shuffles a public table, apart from those of trials


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Rows for every trial, as a function of the seed and the number of the trial.

    Parameters
    ----------
    population : Population
        Source of rows.
    route : {"independent", "disjoint", "given-the-rest", "resampled"}
        ``"independent"``: each trial asks the population. A public table is shuffled once, by the
        seed; with ``"disjoint"`` each trial then gets rows that no other one gets. With
        ``"given-the-rest"`` only the two rows exchanged are its own; the others are drawn from the
        rows that no pair uses, each at most once if there are enough. ``"resampled"``: all are
        drawn from the whole table with replacement.
    rows : int
        Rows in the table that the function sees.
    count : int
        Rows drawn for a trial: ``rows``, then those that take the place of some.
    public_rows, tables : int
        Rows of the public table, and how many disjoint trials they would make; 0 for any other
        population.
    pairs : int
        Trials.
    dealt : ndarray of int
        Positions in the public table, shuffled; empty where none are dealt.
    ranges : tuple of Range
        What the population says of its rows, if nothing but its word speaks for that.
    together : int
        Trials of single pairs that are drawn from one stream: tables of people, of which one by
        itself takes longer to draw.
    """

    population: Population
    route: Route
    rows: int
    count: int
    public_rows: int = 0
    tables: int = 0
    pairs: int = 0
    dealt: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    ranges: tuple[Range, ...] = ()
    together: int = 1

    @property
    def rest(self) -> bool:
        """Whether only the rows exchanged are a trial's own, so that the others are given."""
        return self.route == "given-the-rest"

    def draw(self, rng: np.random.Generator, first: int, trials: int = 1) -> Any:
        """Draw the rows of consecutive trials.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness of the first of them; consumed.
        first : int
            Number of the first trial. Those beyond the last one get rows of others.
        trials : int, default 1
            How many.

        Returns
        -------
        array, list or frame
            ``count`` rows for each, one after the other.

        Raises
        ------
        BadRows
            If they leave the ranges.
        """
        count = self.count * trials
        if self.route == "independent" or not isinstance(self.population, PublicTable):
            drawn = self.population.draw(rng, count)
            if self.ranges and not is_within(drawn, self.ranges):
                raise BadRows(
                    "the population gave rows outside of the range that it states as its support"
                )
            return drawn
        return containers.take(self.population.frame, self._choose(rng, first, trials))

    def draw_people(self, rng: np.random.Generator, first: int) -> Iterator[Bundles]:
        """Hand out the tables of the trials that are drawn together.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness of all of them; consumed.
        first : int
            Number of the first of them.

        Returns
        -------
        iterator of Bundles
            ``count`` users for each.
        """
        source: Any = self.population
        if isinstance(source, PublicTable):
            chosen = self._choose(rng, first, self.together)
            lines = chosen.reshape(-1, self.count)
            return containers.take_tables(source.frame, lines)
        users: Users = source.population  # no other source is asked for tables together
        return users.draw_tables(rng, self.count, self.together)

    def _choose(self, rng: np.random.Generator, first: int, trials: int) -> NDArray[np.int64]:
        """Choose rows of a public table for consecutive trials."""
        count = self.count * trials
        if self.route == "resampled":
            return rng.integers(self.public_rows, size=count)
        if self.route == "disjoint":
            start = first * self.count
            return self.dealt.take(np.arange(start, start + count), mode="wrap")
        each = [self._given_the_rest(rng, first + i) for i in range(trials)]
        return each[0] if trials == 1 else np.concatenate(each)

    def _given_the_rest(self, rng: np.random.Generator, trial: int) -> NDArray[np.int64]:
        """Rows of the rest, of which the replaced one is never seen, then the trial's own two."""
        own = 2 * (trial % self.pairs)
        rest = self.dealt[2 * self.pairs :]
        others = rng.choice(rest, size=self.rows, replace=len(rest) < self.rows)
        return np.concatenate([others, self.dealt[own : own + 2]])


def count_needed(route: Route, pairs: int, count: int) -> int:
    """Count the rows that a public table must have for so many trials of ``count`` rows each."""
    if route == "given-the-rest":  # two of its own for each trial, and a rest
        return 2 * pairs + 1
    return pairs * count if route == "disjoint" else 1


def choose_design(
    population: Population,
    reach: Neighbourhood,
    *,
    rank: Rank,
    gamma: float,
    calibration: Calibration,
    seed: int,
    nominal: bool,
) -> Design:
    """Choose the rows of every trial, so that the rank keeps what it promises.

    Parameters
    ----------
    population : Population
        Source of rows.
    reach : Neighbourhood
        Which neighbours a trial compares.
    rank : Rank
        Trials to make.
    gamma : float
        Gamma of the whole promise.
    calibration : {"training-conditional", "marginal", "dkw"}
        How the rank was chosen.
    seed : int
        Seed of the sampler.
    nominal : bool
        The population was made from the private rows, so that nothing is promised: a table is
        drawn from with replacement, whatever it says.

    Returns
    -------
    Design
        Rows for every trial.

    Raises
    ------
    TooFewRows
        If the public table does not hold rows of their own for that many trials.
    ParameterError
        If more than one replaced record is to be protected, while the rest is given.

    Notes
    -----
    Tables of different rows of independent draws are independent draws: everything then holds as
    with a simulator. Sharing rows between them proves nothing more: by Hoeffding's inequality for
    U-statistics, a correction of the rank that pays for it is never met where disjoint tables
    are too few.
    """
    size, count = reach.size, reach.drawn
    plain = Design(
        population=population,
        route="independent",
        rows=size,
        count=count,
        together=_count_together(population, reach),
    )
    if not isinstance(population, PublicTable):
        return plain
    known, pairs = len(population.frame), rank.pairs
    table = replace(plain, route="resampled", public_rows=known, tables=known // count)
    if nominal or population.promise == "table":
        return table
    given = population.promise == "given-the-rest"
    if given and not is_given_the_rest(reach):
        raise ParameterError(
            "promise='given-the-rest' is about one replaced record among given others: with "
            "protect='record', position='random', distance=1 and neighbours='replace-one' alone"
        )
    needed = count_needed("given-the-rest" if given else "disjoint", pairs, count)
    if known < needed:
        ask = _Ask(reach=reach, pairs=pairs, calibration=calibration)
        supported = ask.supported((known - 1) // 2 if given else known // count)
        raise TooFewRows(
            given=known,
            needed=needed,
            gamma=gamma,
            supported=supported,
            advice=ask.advice(known, needed, count, gamma, supported, given=given),
        )
    key = np.random.SeedSequence(seed, spawn_key=(_DEALING,))
    dealt = np.random.Generator(np.random.PCG64DXSM(key)).permutation(known)
    if given:
        return replace(
            table, route="given-the-rest", count=size + 2, pairs=pairs, dealt=dealt, together=1
        )
    return replace(table, route="disjoint", pairs=pairs, dealt=dealt[:needed])


def _count_together(population: Population, reach: Neighbourhood) -> int:
    """Count the trials that are drawn from one stream."""
    each = count_rows_each(population) if reach.swapped and not reach.whole else None
    return 1 if each is None else max(1, int(_TOGETHER // (each * reach.drawn)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    """What was asked of a public table that has too few rows, or users, for it."""

    reach: Neighbourhood
    pairs: int
    calibration: Calibration

    def supported(self, pairs: int) -> float | None:
        """Smallest gamma of the whole promise that so many trials support."""
        if pairs < 1:
            return None
        try:
            gamma = choose_rank(self.calibration, pairs=pairs).gamma * self.reach.parts
        except ParameterError:
            return None
        stated = float(format_up(gamma, 3))  # one that can be asked for as it is printed
        return stated if stated < 1 else None

    def advice(
        self,
        known: int,
        needed: int,
        count: int,
        gamma: float,
        supported: float | None,
        *,
        given: bool,
    ) -> str:
        """Say what was needed, what the rows support, and what to do."""
        units = "rows" if self.reach.user is None else "users"
        each = f"{2 if given else count} {units} of their own"
        whole = f" and a {units[:-1]} for the rest" if given else ""
        level = "no gamma below 1" if supported is None else f"gamma={supported}"
        ways = [f"give more public {units}"]
        if supported is not None:
            ways.append("accept a larger gamma")
        per = 2 if given else count
        possible = (known - (needed - per * self.pairs)) // per
        other = replace(self, calibration="marginal").supported(possible)
        if self.calibration != "marginal" and other is not None and other <= gamma:
            ways.append(
                "choose calibration='marginal' (--calibration marginal on the command line), "
                "which needs fewer pairs, and of whose gamma an unlucky sample is a part"
            )
        if not given:
            ways += self._other_promises(known, gamma)
        return (
            f"gamma={gamma:.6g} for {self.reach.protect!r} takes {self.pairs} pairs of "
            f"{each}{whole} under the {self.calibration!r} calibration: {needed} public {units}. "
            f"The public table has {known}, which support {level}: {', or '.join(ways)}"
        )

    def _other_promises(self, known: int, gamma: float) -> list[str]:
        ways = []
        reach = self.reach
        if is_given_the_rest(replace(reach, protect="record")) and not reach.whole:
            ways += self._blocks(known) or self._marginal_blocks(known, gamma)
        if is_given_the_rest(reach) and known > 2 * self.pairs:
            ways.append(_accept("given-the-rest"))
        return ways or [
            f"ask for tables of fewer {'rows' if reach.user is None else 'users'}",
            "draw from a simulator",
            _accept("table"),
        ]

    def _marginal_blocks(self, known: int, gamma: float) -> list[str]:
        """Say which blocks the public rows are enough for under the other calibration."""
        if self.calibration == "marginal" or self.reach.parts > 1:
            return []
        pairs = choose_rank("marginal", gamma=decimal_of(gamma)).pairs
        found = replace(self, calibration="marginal", pairs=pairs)._blocks(known)
        return [f"{each} and calibration='marginal' (--calibration marginal)" for each in found]

    def _blocks(self, known: int) -> list[str]:
        """Say which blocks the public rows are enough for; without some rows, if few sizes fit."""
        rows, user = self.reach.rows, self.reach.user
        by, units = ("", "rows") if user is None else (f", user={user!r}", "users")
        most = min(rows, known // self.pairs - 1)
        fitting = max((d for d in _divisors(rows) if 1 < d <= most), default=0)
        sizes = [(fitting, "")] if fitting else []
        if 2 * max(fitting, 1) < most < rows:
            even = rows // -(-rows // most)  # one block more, of as many rows as there are for each
            most = min(most, even, key=lambda size: (rows % size, -size))
            left = rows % most
            sizes.append(
                (most, f" (of {rows - left} {units}: leave {left} out, whichever they are)")
            )
        return [
            f"release the average over blocks of {size} {units}{which}, hs.Blockwise(f, "
            f"rows={size}{by}) (--block-rows {size} on the command line)"
            for size, which in sizes
        ]


def is_given_the_rest(reach: Neighbourhood) -> bool:
    """Whether a promise may be given the rest: it is about one replaced record."""
    return reach.swapped and not reach.whole and reach.protect == "record"


def _accept(promise: str) -> str:
    """Advise a weaker promise, and say where it is asked for."""
    return (
        f"accept the weaker promise of PublicTable(..., promise={promise!r}) "
        f"(--promise {promise} on the command line)"
    )


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0] if number < 1_000_000 else []
