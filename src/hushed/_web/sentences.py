"""What a privacy loss means, in one sentence."""

from __future__ import annotations

from hushed._ground.printing import percent_up
from hushed.risk import belief


def say_meaning(epsilon: float, delta: float, unit: str) -> str:
    """Say what an epsilon means for somebody in the table."""
    sure = percent_up(belief(epsilon))
    who = "a certain person is" if unit == "user" else "a certain row is"
    rare = ", but for rare cases, which delta limits" if delta else ""
    return (
        f"Someone who thinks it as likely as not (50 %) that {who} in the table could become at "
        f"most {sure} % sure{rare}."
    )
