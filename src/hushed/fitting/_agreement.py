"""Whether the numbers of a stored check agree with each other; nothing is drawn or counted."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from hushed._ground.decimals import decimal_of
from hushed.errors import ParameterError
from hushed.fitting._movement import ARGUMENT, law_of
from hushed.fitting._moving_report import MovementCheck
from hushed.fitting._report import PopulationCheck, argument_of, judge
from hushed.mechanisms import Laplace
from hushed.releasing import Certificate
from hushed.releasing._consistency import rebuild_mechanism

_MOST_PAIRS = 10_000_000  # more take too long to be worked out again
_TABLE = "public table"
_CLOSE = 1e-6


def check_agreement(check: PopulationCheck | MovementCheck) -> None:
    """Refuse a check whose verdict and bounds do not follow from what was drawn."""
    groups: tuple[Callable[[Any], dict[str, bool]], ...]
    if isinstance(check, PopulationCheck):
        groups = (_sizes_of_population, _rules_of_population)
    else:
        groups = (_sizes_of_movement, _rules_of_movement)
    for rules in groups:  # nothing is worked out from sizes that make no sense
        for what, holds in rules(check).items():
            if not holds:
                raise ParameterError(f"the check contradicts itself: {what} does not follow")


def _sizes_of_population(check: PopulationCheck) -> dict[str, bool]:
    drawn, known, said = check.deviations, check.certificate, check.population
    tables = said.get("kind") == _TABLE and said.get("promise") != "table"
    return {
        "rows": check.rows >= 2,
        "public_rows": check.public_rows >= 1,
        "functions": 1 <= len(check.columns) <= check.functions,
        "level": 0 < check.level < 1,
        "deviations": list(drawn) == sorted(drawn)
        and check.level > 0
        and len(drawn) + 1 >= 1 / decimal_of(check.level),
        "null": (check.null == "simulated") != tables,
        "user": said.get("user", check.user) == check.user,
        "certificate": _is_laplace(known, float(check.public_rows), argument_of(check.user))
        and known.guarantee.unit == ("row" if check.user is None else "user"),
    }


def _rules_of_population(check: PopulationCheck) -> dict[str, bool]:
    asked: dict[str, Any] = {
        "level": check.level,
        "rows": check.rows,
        "public_rows": check.public_rows,
    }
    noisy, null, mechanism = check.statistic, check.deviations, _laplace_of(check.certificate)
    # How many deviations are bounded apart from each other is not told; fewer give a larger bound.
    again = judge(noisy, null, mechanism, **asked, bounds=check.functions)
    most = judge(noisy, null, mechanism, **asked, bounds=len(check.columns))["tv_at_least"]
    least = again.pop("tv_at_least")
    return {name: _near(getattr(check, name), value) for name, value in again.items()} | {
        "tv_at_least": least * (1 - _CLOSE) <= check.tv_at_least <= min(1.0, most * (1 + _CLOSE))
    }


def _sizes_of_movement(check: MovementCheck) -> dict[str, bool]:
    return {
        "pairs": 1 <= check.pairs <= _MOST_PAIRS,
        "rows": check.rows >= 1,
        "bound": check.bound > 0,
        "gamma": 0 < check.gamma < 1,
        "confidence": 0 < check.confidence < 1,
        "certificate": _is_laplace(check.certificate, 1.0, ARGUMENT)
        and check.certificate.guarantee.unit == "row",
    }


def _rules_of_movement(check: MovementCheck) -> dict[str, bool]:
    law, chance = law_of(_laplace_of(check.certificate), check.pairs), 1 - check.confidence
    return {
        "p_value": _near(check.p_value, min(1.0, law.at_least(check.moved, check.gamma))),
        "share_at_most": _near(check.share_at_most, law.share_at_most(check.moved, chance)),
        "share_at_least": _near(check.share_at_least, law.share_at_least(check.moved, chance)),
    }


def _is_laplace(known: Certificate, moved: float, argument: str) -> bool:
    """Whether a certificate is the one that a check of hushed writes."""
    made = known.mechanism
    return (
        (made.name, made.stated, made.values, known.sampling) == ("laplace", False, 1, None)
        and known.sensitivity == moved
        and known.neighbours == "replace-one"
        and known.argument == argument
    )


def _laplace_of(known: Certificate) -> Laplace:
    found: Laplace = rebuild_mechanism(known).mechanism
    return found


def _near(one: float, other: float) -> bool:
    """Whether two chances agree, up to what mathematical libraries differ by."""
    return 0 <= one <= 1 and math.isclose(one, other, rel_tol=_CLOSE, abs_tol=1e-12)
