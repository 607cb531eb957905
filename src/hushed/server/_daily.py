"""The most that a person may have charged in a day, counted in the row of the share.

Days are those of UTC. A share remembers the last day on which something was charged, and never goes
back to an earlier one: a clock that is set back goes on with that day, and fills nothing again. One
that leaps ahead begins a new day, once, and when it is right again that day lasts until it comes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hushed._ground.decimals import decimal_of, stated_below, total_of
from hushed._ground.printing import format_down, format_up
from hushed.errors import ParameterError
from hushed.ledger._rows import run
from hushed.ledger._together import entry_within
from hushed.server._problems import Problem
from hushed.server._schema import fetch_all

if TYPE_CHECKING:
    from hushed.ledger._rows import Transaction
    from hushed.server._people import Grant

LARGEST = 1000  # epsilon of a day
NONE_LEFT = "used up, or ended by a restoration of the ledger with a loss; more after that day"


@dataclass(frozen=True, slots=True, kw_only=True)
class Daily:
    """The most of a day, and what was charged on the last one."""

    most: float  # epsilon
    day: str
    spent: Fraction

    def today(self) -> str:
        """Give the day that counts now: that of the clock, but never an earlier one."""
        return max(self.day, _today())

    def left(self) -> float:
        """Give the epsilon that is left of the day that counts now."""
        spent = self.spent if self.today() == self.day else Fraction(0)
        return stated_below(max(Fraction(0), decimal_of(self.most) - spent))

    def say(self) -> str:
        """Say how much is left of which day."""
        left, most = format_down(self.left(), 4), format_up(self.most, 4)
        told = f"{left} of {most} left of {self.today()} (UTC)"
        return told if self.left() > 0.0 else f"{told}, {NONE_LEFT}"


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def read_daily(row: dict[str, Any]) -> Daily | None:
    """Read the limit of a share from its row; None if it has none."""
    if row["per_day"] is None:
        return None
    return Daily(most=float(row["per_day"]), day=row["day"], spent=Fraction(row["day_spent"]))


def check_per_day(per_day: float) -> None:
    """Refuse what is no limit."""
    if not 0 < per_day <= LARGEST:
        raise ParameterError(
            f"a limit by the day is an epsilon above 0 and at most {LARGEST}", parameter="per_day"
        )


def count_daily(
    connection: Transaction, person: str, grant: Grant, epsilon: float, at: str
) -> None:
    """Count a charge on its day, in its transaction, or refuse it.

    Whoever charges has the trail by then: nobody else counts at the same time.
    """
    daily = grant.daily
    if daily is None:
        return
    day = max(daily.day, at[:10])
    spent = daily.spent if day == daily.day else Fraction(0)
    if spent + decimal_of(epsilon) > decimal_of(daily.most):
        raise refuse_daily(daily, epsilon)
    changed = Daily(most=daily.most, day=day, spent=spent + decimal_of(epsilon))
    _write(connection, person, grant, changed)


def refuse_daily(daily: Daily, epsilon: float) -> Problem:
    """Say what was asked, and what is left of which day."""
    return Problem("day_exceeded", f"Asked was epsilon {format_up(epsilon)}; {daily.say()}.")


def limit_daily(connection: Transaction, person: str, grant: Grant, per_day: float) -> bool:
    """Set the limit of a share, in a transaction that has the trail; False if it is as it was.

    What was charged today counts. Whoever sets it has looked at the clock: a day that lies ahead
    ends here, with what was spent of it.
    """
    known, today = grant.daily, _today()
    if known is not None and known.most == per_day and known.day <= today:
        return False
    spent = _charged_since(connection, person, grant.dataset, today)
    if known is not None and known.day >= today:
        spent = max(spent, known.spent)
    _write(connection, person, grant, Daily(most=per_day, day=today, spent=spent))
    return True


def _charged_since(connection: Transaction, person: str, dataset: str, day: str) -> Fraction:
    """Add up what somebody was charged since a day began, of whichever share."""
    found = fetch_all(
        connection,
        "SELECT quota, quota_entry FROM @.hushed_s_requests WHERE person = :person "
        "AND dataset = :dataset AND charged_at >= :day",
        person=person,
        dataset=dataset,
        day=day,
    )
    entries = (entry_within(connection, each["quota"], each["quota_entry"]) for each in found)
    return total_of(each.guarantee.epsilon for each in entries)


def _write(connection: Transaction, person: str, grant: Grant, daily: Daily) -> None:
    values = {"person": person, "dataset": grant.dataset, "budget": grant.budget}
    values |= {"most": repr(daily.most), "day": daily.day, "spent": str(daily.spent)}
    run(
        connection,
        "UPDATE @.hushed_s_grants SET per_day = :most, day = :day, day_spent = :spent "
        "WHERE person = :person AND dataset = :dataset AND budget = :budget",
        values,
    )


def end_days(connection: Transaction) -> int:
    """Leave nothing of today to those who have a limit: what was charged today may be lost.

    Gives the number of shares that are in use, and have such a limit.
    """
    run(
        connection,
        "UPDATE @.hushed_s_grants SET day_spent = per_day, "
        "day = CASE WHEN day > :today THEN day ELSE :today END WHERE per_day IS NOT NULL",
        {"today": _today()},
    )
    statement = (
        "SELECT count(*) AS ended FROM @.hushed_s_grants "
        "WHERE per_day IS NOT NULL AND ended IS NULL"
    )
    return int(fetch_all(connection, statement)[0]["ended"])
