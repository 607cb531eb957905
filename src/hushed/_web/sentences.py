"""What a privacy loss means, in one sentence."""

from __future__ import annotations

from decimal import Decimal

from hushed._ground.printing import format_up
from hushed.risk import belief


def say_meaning(epsilon: float, delta: float, unit: str) -> str:
    """Say what an epsilon means for somebody in the table."""
    sure = format_up(float(Decimal(repr(belief(epsilon))) * 100), 3)
    who = "Ada is" if unit == "user" else "a row is"
    rare = ", but for rare cases, which delta limits" if delta else ""
    return (
        f"Someone who gives even odds that {who} in the table could become at most {sure} % sure"
        f"{rare}."
    )
