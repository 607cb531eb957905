"""What a privacy loss means, in one sentence."""

from __future__ import annotations

from decimal import Decimal

from hushed._ground.printing import format_up
from hushed.risk import belief


def say_meaning(epsilon: float, delta: float, unit: str) -> str:
    """Say what an epsilon means for somebody in the table."""
    sure = format_up(float(Decimal(repr(belief(epsilon))) * 100), 3)
    who = "a certain person is" if unit == "user" else "a certain row is"
    rare = ", but for rare cases, which delta limits" if delta else ""
    return (
        f"Someone who thinks it as likely as not (50 %) that {who} in the table could become at "
        f"most {sure} % sure{rare}."
    )
