"""What a check of a population found, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from hushed._ground.calls import called_as, given_by
from hushed._ground.decimals import decimal_of
from hushed._ground.notebook import Shown
from hushed._ground.printing import flat, format_down, format_up
from hushed.errors import ParameterError
from hushed.fitting._charging import read_fields, write_fields
from hushed.fitting._public import Null
from hushed.guarantee import Guarantee
from hushed.mechanisms import Laplace
from hushed.releasing import Certificate

Verdict = Literal["contradicted", "not contradicted"]

CAUGHT_CHANCE = 0.925
_ARGUMENT = (
    "a replaced {0} changes each number of {0}s by at most 1, and so the largest of their absolute "
    "distances from public numbers, all times the number of public {0}s (docs/population.md)"
)
_ORIGINS = {
    "simulated": "exact: the tables are drawn from the population",
    "disjoint": "exact: the tables are parts of the public table that share no {}",
    "resampled": "only nearly exact: the public table is too small for tables that share no {}, "
    "so that they are drawn from it with replacement",
}


@given_by("hs.check_population(rows, population, epsilon=1.0)")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PopulationCheck(Shown):
    """Whether private rows contradict a public population.

    Everything in it may be published.

    Parameters
    ----------
    p_value : float
        Share of tables of the population, the private one counted among them, whose noisy
        statistic is at least that of the private table.
    statistic : float
        Largest difference between the share of private rows and of public rows for which a test
        function holds, with noise; may be negative.
    caught : float
        Smallest difference of these shares, for any test function, that is found with probability
        `caught_chance` or more; 1 if none is. Rounded up.
    caught_chance : float
        The probability, over private rows and noise.
    tv_at_least : float
        Lower bound of the total variation distance between the population and what the private rows
        are drawn from, which holds with probability `confidence`; 0 if nothing is known.
    confidence : float
        Probability of the lower bound.
    level : float
        Largest p-value that contradicts.
    null : {"simulated", "disjoint", "resampled"}
        Where the tables that it was compared with come from; with ``"resampled"`` the p-value is
        not exact.
    rows, public_rows : int
        Rows of the private table, and public rows behind the shares; users with a `user`.
    functions : int
        Number of test functions.
    columns : tuple of str
        Columns that were tested.
    deviations : tuple of float
        Noisy statistics of the tables of the null, sorted upwards.
    population : dict
        Description of the population.
    certificate : Certificate
        What the check itself promises.
    entry : int, optional
        Number of the charge in a ledger.
    user : str or int, optional
        The column of users, if users with all their rows were compared, and not rows.
    """

    schema: ClassVar[str] = "hushed population check 1"

    p_value: float
    statistic: float
    caught: float
    caught_chance: float
    tv_at_least: float
    confidence: float
    level: float
    null: Null
    rows: int
    public_rows: int
    functions: int
    columns: tuple[str, ...]
    deviations: tuple[float, ...] = field(repr=False)
    population: dict[str, Any] = field(repr=False)
    certificate: Certificate = field(repr=False)
    entry: int | None = None
    user: str | int | None = None

    @property
    def verdict(self) -> Verdict:
        """``"contradicted"`` if the p-value is the level or less."""
        return "contradicted" if self.p_value <= self.level else "not contradicted"

    @property
    def guarantee(self) -> Guarantee:
        """What the check itself costs."""
        return self.certificate.guarantee

    def explain(self) -> str:
        """Say in words what was found, and what it does not say.

        Returns
        -------
        str
            A few lines of text.
        """
        told = f"{self.verdict} ({_describe_p(self.p_value)}"
        if self.verdict == "not contradicted":
            told += f"); {describe_power(self)}"
        elif self.tv_at_least > 0:
            sure = format_down(self.confidence)
            told += (
                f", total variation at least {format_down(self.tv_at_least, 3)} with confidence "
                f"{sure})"
            )
        else:
            told += "; how large the total variation is remains open)"
        name = flat(self.population.get("name") or self.population.get("kind", "population"))
        whole, unit = len(self.deviations), "row" if self.user is None else "user"
        origin = _ORIGINS[self.null].format(unit)
        return "\n".join(
            [
                told,
                _ADVICE[self.verdict],
                f"Compared with {whole} tables of {self.rows} {unit}s of {name!r}, by "
                f"{self.functions} test functions; {origin}.",
                f"This check costs epsilon = {format_up(self.guarantee.epsilon)}, for "
                f"{self.guarantee.neighbours} neighbours"
                f"{', of all rows of a user' * (unit == 'user')}.",
            ]
        )

    def to_json(self) -> str:
        """Write the check as JSON.

        Returns
        -------
        str
            One object; `from_json` reads it.
        """
        return write_fields(self)

    @classmethod
    @called_as("hs.PopulationCheck.from_json(check.to_json())")
    def from_json(cls, text: str) -> PopulationCheck:
        """Read what `to_json` wrote.

        Parameters
        ----------
        text : str
            JSON.

        Returns
        -------
        PopulationCheck
            Equal to the one that was written.

        Raises
        ------
        ParameterError
            If it is something else.
        """
        try:
            record = read_fields(text, cls)
            for name in ("columns", "deviations"):
                record[name] = tuple(record[name])
            return cls(**record)
        except (KeyError, TypeError, ValueError):
            raise ParameterError("the text is not a population check of this version") from None


def describe_power(check: PopulationCheck) -> str:
    """Say which deviation would have been found, and how surely."""
    units = "rows" if check.user is None else "users"
    if check.caught >= 1:
        return f"with so few {units} and so much noise, no deviation would surely have been caught"
    return (
        f"would have caught, with probability {check.caught_chance:g} or more, a share of {units} "
        f"that is off by {format_up(check.caught, 3)}"
    )


def _describe_p(p: float) -> str:
    return f"p = {format_up(p, 3)}"


_ADVICE = {
    "contradicted": "Do not rely on a gamma that was sampled from this population: take another "
    "one, or a promise for every table (hs.Blocks, hs.InverseSensitivity, hs.Smooth).",
    "not contradicted": "This does not certify the population: no test can see a difference that "
    "is small, and a small one may break gamma. What else speaks for it has to be said by you.",
}


def argument_of(user: str | int | None) -> str:
    """Say why the statistic moves no further, for rows or for users."""
    return _ARGUMENT.format("row" if user is None else "user")


def judge(
    noisy: float,
    null: Sequence[float],
    mechanism: Laplace,
    *,
    level: float,
    rows: int,
    public_rows: int,
    bounds: int,
) -> dict[str, Any]:
    """Work out what a noisy statistic says among those of the null, which are sorted upwards."""

    def noise(beta: float) -> float:
        """Distance in shares that the noise exceeds with this chance, half to each side."""
        return mechanism.accuracy(beta) / (rows * public_rows)

    chance = level / 3
    # So many of the null may reach the private one before the p-value leaves the level.
    allowed = math.floor(decimal_of(level) * (len(null) + 1)) - 1
    return {
        "p_value": (1 + sum(each >= noisy for each in null)) / (len(null) + 1),
        "caught": smallest_caught(null[-1 - allowed], noise(0.05), rows),
        "caught_chance": CAUGHT_CHANCE,
        "tv_at_least": bound_variation(
            noisy,
            noise(min(2 * chance, 0.999)),
            rows=rows,
            public_rows=public_rows,
            bounds=bounds,
            chance=chance,
        ),
        "confidence": 1 - level,
    }


def smallest_caught(critical: float, noise: float, rows: int) -> float:
    """Smallest deviation found with probability 0.925: 0.05 and 0.025 are for rows and noise.

    Notes
    -----
    ``critical + noise + sqrt(log(20) / (2 n))``, by Hoeffding's inequality, one-sided.
    """
    return min(1.0, math.nextafter(critical + noise + math.sqrt(math.log(20) / (2 * rows)), 2.0))


def bound_variation(
    statistic: float, noise: float, *, rows: int, public_rows: int, bounds: int, chance: float
) -> float:
    """Bound the total variation distance from below; ``noise`` is not exceeded but by ``chance``.

    Notes
    -----
    ``E_Q g - E_P g`` is at most the distance for every g in [0, 1]. Of ``bounds`` functions none is
    off by ``sqrt(log(2 bounds / chance) / (2 n))`` or more, except with probability ``chance``.
    """
    spread = math.log(2 * bounds / chance) / 2
    found = statistic - noise - math.sqrt(spread / rows) - math.sqrt(spread / public_rows)
    return max(0.0, found - 1e-12)
