"""Compare private rows with a public population, privately."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from hushed._functions._gate import Outside, admit_rows
from hushed._functions._trials import seed_from
from hushed._ground.calls import called_as
from hushed._ground.checks import read_count, require_one_of, require_probability
from hushed._ground.decimals import decimal_of
from hushed._ground.printing import as_given
from hushed._rows._containers import Layout, as_table, container, take_plain
from hushed._rows._people import bundle_rows, count_units
from hushed._rows._ranges import Range
from hushed.errors import BadRows, ParameterError, PrivateRowsAsPopulation
from hushed.fitting._charging import charge_and_store
from hushed.fitting._public import PublicSide, largest_deviation, prepare_public
from hushed.fitting._report import PopulationCheck, argument_of, judge
from hushed.fitting._tests import Tests
from hushed.guarantee import RowUnit
from hushed.ledger._notes import choose_note
from hushed.ledger._payments import Charges, check_ledger
from hushed.mechanisms import Laplace
from hushed.populations import Population, by_user, description
from hushed.populations._users import column_of_users
from hushed.releasing import Certificate
from hushed.sensitivity import proven_sensitivity
from hushed.sensitivity._declarations import check_source


@dataclass(frozen=True, slots=True, kw_only=True)
class _Like:
    """What the gate asks: a private table becomes one as the population gives."""

    layout: Layout
    rows: int
    given: Any
    support: tuple[Range, ...]
    shape: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    batch: bool = False
    data_dependent: bool = False
    locked: bool = False
    user: str | int | None = None
    neighbours: str = "replace-one"
    limit: float = math.inf
    state: None = None
    unwatched: tuple[str, ...] = ()


@called_as("hs.check_population(rows, population, epsilon=1.0)")
def check_population(
    rows: Any,
    population: Population,
    *,
    epsilon: float,
    tests: Tests = "pairs",
    level: float = 0.05,
    tables: int = 999,
    outside: Outside = "clamp",
    unit: RowUnit = "row",
    user: str | int | None = None,
    seed: int | np.random.Generator | None = 0,
    ledger: Charges | None = None,
    budget: str | None = None,
    note: str = "",
    key: str | None = None,
) -> PopulationCheck:
    """Test whether private rows contradict a public population.

    The statistic is the largest difference, over many public test functions of one row, between the
    share of private rows and of public rows for which it holds: "is at most this threshold" for
    each column of numbers, "is one of these categories" for each other one, and products for two
    columns. It gets Laplace noise, and is compared with tables of the population that are treated
    in the same way. The budget is charged before the private rows are looked at.

    Parameters
    ----------
    rows : array, list or frame
        The private rows, in the container of the population. Their number is public.
    population : Population
        Public source of rows. A simulator gives an exact p-value, and so does a `PublicTable` that
        is large enough to be cut into tables of as many rows as the private one: about 40 times
        its rows at level 0.05. With fewer public rows they are drawn with replacement, the p-value
        is not exact, and the report says so.
    epsilon : float
        Privacy loss of the check, in nats; finite, above 0. It stands for its shortest decimal.
    tests : {"pairs", "marginals"}, default "pairs"
        Whether products for two columns are tested, too.
    level : float, default 0.05
        Largest p-value that contradicts; in (0, 1). The lower bound of the total variation holds
        with probability ``1 - level``.
    tables : int, default 999
        Tables of the population to compare with; fewer if a public table has no more.
    outside : {"clamp", "allow"}, default "clamp"
        As for `hushed.release`: by default private rows are moved into the population's range
        first, because it is such rows that a release shows to a function.
    unit : {"row", "person"}, default "row"
        ``"person"`` declares that each row is one person.
    user : str or int, optional
        Column that says whose a row is: what is compared, and protected, are users with all their
        rows, each summed up by the number of rows, by the least, median and largest of each column
        of numbers, and by the most frequent and the number of texts. The number of users is public.
    seed : int, numpy.random.Generator or None, default 0
        Seed of the public tables; the noise has none.
    ledger : Ledger or Charges, optional
        Where to charge before private rows are looked at.
    budget : str, optional
        Name of the budget in the ledger; required with one.
    note : str, default ""
        Remark for the ledger.
    key : str, optional
        A name of your own for this check, which needs a `Ledger`: asking the same again under it
        tells the stored one, at no cost.

    Returns
    -------
    PopulationCheck
        With p-value and verdict, what would have been caught, and a lower bound on the total
        variation.

    Raises
    ------
    BadRows
        If the private rows are not of the population's kind, or a public column holds neither
        numbers nor times nor texts; nothing is charged.
    PrivateRowsAsPopulation
        If the public table was made of the very private rows; a copy of them is not noticed.
    Overspent
        If it does not fit into the budget.
    ParameterError
        If a parameter cannot be used; nothing is charged.

    Notes
    -----
    The promise is for replaced rows, so that their number is public: noise and null depend on it.
    A "not contradicted" certifies nothing (docs/population.md): gamma can break by a difference of
    laws that no test of so many rows can see. The p-value assumes independent private rows; the
    privacy assumes nothing.

    Examples
    --------
    >>> import numpy as np
    >>> import hushed as hs
    >>> private = np.random.default_rng(1).normal(size=1000)
    >>> hs.check_population(private, hs.populations.Normal(mean=2), epsilon=1.0).verdict
    'contradicted'
    """
    require_one_of("tests", tests, get_args(Tests))
    level, tables = _check_level(level, tables)
    _check_unit(unit, user)
    check_ledger(ledger, budget, key)
    rows, given = as_table(rows), population
    _check_population(population, user)
    count = _count(rows, user)
    population = population if user is None else by_user(population, user)
    described, seed = description(population), seed_from(seed)
    check_source(population, max(count, 20), seed=seed)
    public = prepare_public(population, count, tests=tests, tables=tables, level=level, seed=seed)
    bound = proven_sensitivity(
        float(public.rows),
        unit=unit if user is None else "user",
        argument=argument_of(user),
    )
    plan = _Plan(
        public=public,
        mechanism=Laplace(bound, epsilon=epsilon),
        rows=count,
        person=bound.person,
        level=level,
        population=described,
        user=user,
    )
    like = _Like(layout=public.layout, rows=count, given=given, support=public.support, user=user)
    try:
        held = admit_rows(rows, like, outside=outside)
    except PrivateRowsAsPopulation:
        raise PrivateRowsAsPopulation(
            "the public population holds the private rows, which never contradict themselves: give "
            "public rows, a range or a simulator"
        ) from None
    text, number = charge_and_store(
        lambda certificate: plan.look(held, certificate),
        plan.mechanism,
        ledger,
        budget=budget,
        note=choose_note(note, "check_population: does the public population fit"),
        key=key,
        question=plan.digest(outside),
    )
    return replace(PopulationCheck.from_json(text), entry=number)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """All that is public of a check."""

    public: PublicSide
    mechanism: Laplace
    rows: int
    person: bool
    level: float
    population: dict[str, Any]
    user: str | int | None

    def look(self, held: Any, certificate: Certificate) -> str:
        """Count, draw the noise, and write down what was found."""
        public = self.public
        held = held if self.user is None else bundle_rows(held, self.user)
        statistic = largest_deviation(
            public.tests.count(held), self.rows, public.counts, public.rows
        )
        # The same code for private and public tables: under the null they are exchangeable.
        noisy = [self._draw(each) for each in (statistic, *public.deviations.tolist())]
        return self._report(noisy[0], sorted(noisy[1:]), certificate).to_json()

    def _draw(self, statistic: int) -> float:
        drawn = self.mechanism.draw(np.array(float(statistic)))
        return float(drawn) / (self.rows * self.public.rows)

    def _report(self, noisy: float, null: list[float], certificate: Certificate) -> PopulationCheck:
        public = self.public
        return PopulationCheck(
            **judge(
                noisy,
                null,
                self.mechanism,
                level=self.level,
                rows=self.rows,
                public_rows=public.rows,
                bounds=public.tests.bounds,
            ),
            statistic=noisy,
            level=self.level,
            null=public.null,
            rows=self.rows,
            public_rows=public.rows,
            functions=public.tests.size,
            columns=public.tests.names,
            deviations=tuple(null),
            population=self.population,
            certificate=certificate,
            user=self.user,
        )

    def digest(self, outside: Outside) -> str:
        """Digest what is asked; the same for the same script in another process."""
        public, guarantee = self.public, self.mechanism.guarantee
        counted = hashlib.sha256(public.counts.tobytes() + public.deviations.tobytes())
        facts = ["check_population", counted.hexdigest(), public.rows, self.rows, public.null]
        asked: list[Any] = [guarantee.epsilon, self.level, self.person, outside]
        asked += [] if self.user is None else [self.user]
        return hashlib.sha256(json.dumps([facts, asked, self.population]).encode()).hexdigest()


def _check_level(level: float, tables: int) -> tuple[float, int]:
    level = require_probability("level", level)
    least = math.ceil(1 / decimal_of(level)) - 1
    tables = read_count("tables", tables, 1, 10**6)
    if tables < least:
        raise ParameterError(
            f"tables must be {least} or more for a level of {level:g}, got {tables}: the smallest "
            "p-value is 1 / (tables + 1)",
            parameter="tables",
        )
    return level, tables


def _check_unit(unit: object, user: object) -> None:
    if not isinstance(unit, str) or unit not in get_args(RowUnit):
        raise ParameterError(
            f"unit must be one of {get_args(RowUnit)}, "
            f"got {as_given(unit)}; for users with several rows "
            "name their column, user=",
            parameter="unit",
        )
    if user is not None and unit != "row":
        raise ParameterError(
            "unit='person' declares that each row is one person: it does not go with user=",
            parameter="unit",
        )
    if user is not None and type(user) not in (str, int):
        raise ParameterError(
            f"user must be the name or the position of a column, got {as_given(user)}",
            parameter="user",
        )


def _check_population(population: object, user: object) -> None:
    named = column_of_users(population)
    if user is None and named is not None:
        raise ParameterError(f"the population draws users: say user={named!r}", parameter="user")


def _count(rows: Any, user: str | int | None) -> int:
    """Count the private rows, or users; their number is public."""
    container(rows)
    count = count_units(take_plain(rows), user)
    if count < 2:
        units = "rows" if user is None else "users"
        raise BadRows(f"the private table must have 2 {units} or more")
    return count
