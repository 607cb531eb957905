"""The parameters of blocks: read, checked, and described for a certificate."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from hushed._ground.checks import (
    is_whole,
    read_array,
    require_count,
    require_one_of,
    require_positive,
)
from hushed._ground.printing import as_given, name_count
from hushed.blocks._averaging import Mean, VectorMean
from hushed.blocks._choosing import Choice, Ranks, Votes, read_numbers
from hushed.blocks._stable import Stable
from hushed.errors import ParameterError
from hushed.mechanisms._inverse import read_prior
from hushed.mechanisms._stability import read_delta
from hushed.statistics._candidates import Spacing, space_candidates
from hushed.statistics._mode import read_categories
from hushed.statistics._priors import remember
from hushed.statistics._values import check_range

if TYPE_CHECKING:
    from hushed.blocks._mechanism import Blocks

CANDIDATES = 101
_MOST_BLOCKS = 1_000_000
# Which parameters belong to which way of putting the answers together.
_OPTIONS = {
    "exponential": {"candidates", "low", "high", "spacing", "prior"},
    "votes": {"candidates", "prior"},
    "stable": {"candidates", "delta"},
    "mean": {"low", "high"},
    "vector": {"centre", "radius", "delta"},
}


def check_user(user: Any, unit: str) -> None:
    if user is None:
        return
    if not (isinstance(user, str) or is_whole(user)):
        raise ParameterError(
            f"user must be the name of a column or its position, got {as_given(user)}",
            parameter="user",
        )
    if unit == "person":
        raise ParameterError(
            "each row is one person, or user= says whose it is: not both", parameter="unit"
        )


def check_options(mechanism: Blocks) -> None:
    """Refuse what belongs to another way of putting the answers together."""
    every = set().union(*_OPTIONS.values())
    taken = _OPTIONS[mechanism.aggregate]
    for name in sorted(every - taken):
        if getattr(mechanism, name) is not None:
            raise ParameterError(
                f"aggregate={mechanism.aggregate!r} takes {', '.join(sorted(taken))}: leave {name} "
                "out",
                parameter=name,
            )


def read_options(mechanism: Blocks) -> dict[str, Any]:
    """Read the parameters of one way of putting the answers together."""
    if mechanism.aggregate == "mean":
        return dict(zip(("low", "high"), _read_ends(mechanism), strict=True))
    if mechanism.aggregate == "vector":
        return _read_ball(mechanism)
    if mechanism.labelled:
        if mechanism.candidates is None:
            raise ParameterError(
                "votes are for public labels: give them as candidates", parameter="candidates"
            )
        found: dict[str, Any] = {"candidates": read_categories(mechanism.candidates, "candidates")}
        if mechanism.aggregate == "stable":
            found["delta"] = _read_slack(mechanism.delta)
    else:
        found = _read_candidates(mechanism)
    if mechanism.prior is not None:
        values = found.get("candidates") or list_candidates(
            found["low"], found["high"], found["spacing"]
        )
        found["prior"] = read_prior(mechanism.prior, len(values), mechanism.epsilon)
    return found


def _read_slack(delta: Any) -> float:
    if delta is None:
        raise ParameterError(
            "aggregate='stable' needs delta: the chance that a label is told though one block "
            "could change it",
            parameter="delta",
        )
    return read_delta(delta)


def _read_candidates(mechanism: Blocks) -> dict[str, Any]:
    if mechanism.candidates is None:
        low, high = _read_ends(mechanism)
        return {"low": low, "high": high, "spacing": _read_spacing(mechanism.spacing, low)}
    if mechanism.low is not None or mechanism.high is not None:
        raise ParameterError("give candidates, or low and high: not both", parameter="candidates")
    if mechanism.spacing is not None:
        raise ParameterError("spacing is for low and high, not for candidates", parameter="spacing")
    return {"candidates": read_numbers(mechanism.candidates)}


def _read_spacing(given: Any, low: float) -> Spacing:
    """Space evenly by default: only a range above 0 says of what size the answer may be."""
    if given is None:
        return "geometric" if low > 0 else "even"
    require_one_of("spacing", given, get_args(Spacing))
    if given == "geometric" and low < 0:
        raise ParameterError(
            f"spacing 'geometric' is for ranges from 0 or more on, low is {low:g}; use 'even'",
            parameter="spacing",
        )
    return "even" if given == "even" else "geometric"


def list_candidates(low: float, high: float, spacing: Spacing) -> tuple[float, ...]:
    return tuple(np.unique(space_candidates(low, high, CANDIDATES, spacing)).tolist())


def _describe_origin(mechanism: Blocks) -> str:
    """Say where the candidates come from."""
    if mechanism.labelled:
        return "labels"
    return mechanism.spacing or "given"


def find_ends(mechanism: Blocks) -> tuple[float, float]:
    return float(mechanism.low or 0.0), float(mechanism.high or 0.0)


def _read_ends(mechanism: Blocks) -> tuple[float, float]:
    if mechanism.low is None or mechanism.high is None:
        what = "low and high" if mechanism.aggregate == "mean" else "candidates, or low and high"
        raise ParameterError(
            f"give {what}: the public range of the answer, from what it means and not from the rows"
        )
    return check_range(mechanism.low, mechanism.high)


def _read_ball(mechanism: Blocks) -> dict[str, Any]:
    missing = [name for name in ("centre", "radius", "delta") if getattr(mechanism, name) is None]
    if missing:
        raise ParameterError(f"aggregate='vector' needs {', '.join(missing)}")
    centre = read_array("centre", mechanism.centre)
    if centre.ndim != 1 or not centre.size or not np.isfinite(centre).all():
        raise ParameterError("centre must be a list of finite numbers", parameter="centre")
    radius = require_positive("radius", mechanism.radius)
    check_range(0.0, radius)
    held = remember(centre.tolist(), mechanism.centre)
    return {"centre": held, "radius": radius, "delta": read_delta(mechanism.delta)}


def build_aggregation(mechanism: Blocks, blocks: int) -> Choice | Stable | Mean | VectorMean:
    epsilon = mechanism.epsilon
    if mechanism.aggregate == "mean":
        return Mean(*find_ends(mechanism), epsilon, blocks)
    if mechanism.aggregate == "vector":
        centre, radius = tuple(mechanism.centre or ()), float(mechanism.radius or 0.0)
        return VectorMean(centre, radius, epsilon, float(mechanism.delta or 0.0), blocks)
    if mechanism.aggregate == "stable":
        return Stable(mechanism.values, epsilon, float(mechanism.delta or 0.0))
    prior = None if mechanism.prior is None else tuple(mechanism.prior)
    kind = Votes if mechanism.aggregate == "votes" else Ranks
    return kind(mechanism.values, epsilon, prior)


def choose_blocks(mechanism: Blocks) -> int:
    """Choose the number of blocks, or refuse one that is too small to say anything."""
    drawn = build_aggregation(mechanism, 1)
    least = drawn.least_blocks(mechanism.beta)
    if mechanism.blocks is None:
        found = max(least, drawn.usual_blocks(mechanism.beta))
    else:
        found = require_count("blocks", mechanism.blocks)
    if found > _MOST_BLOCKS:
        raise ParameterError(
            f"{found} blocks are more than {_MOST_BLOCKS}: ask for a larger epsilon",
            parameter="blocks",
        )
    if found < least:
        raise ParameterError(
            f"{name_count(found, 'block')} would be too few for epsilon = "
            f"{mechanism.epsilon:g}: an answer that says "
            f"nothing could be likelier than {mechanism.beta:g}, which takes "
            f"{name_count(least, 'block')}. " + advise_fewer(mechanism, found),
            parameter="blocks",
        )
    return found


def advise_fewer(mechanism: Blocks, blocks: int) -> str:
    """Say what makes so many blocks enough, for this way of putting the answers together."""
    surer = "a prior" if mechanism.prior is None else "a prior that is surer"
    cure = {
        "exponential": f"fewer candidates, or {surer}",
        "votes": f"fewer labels, or {surer}",
        "stable": "a larger delta",
        "mean": "another aggregate",
        "vector": "a larger delta",
    }[mechanism.aggregate]
    drawn, grid = build_aggregation(mechanism, 1), range(1, 100)
    if drawn.least_blocks(mechanism.beta) <= blocks:
        return f"Say blocks={blocks}, which is enough"
    enough = bisect_left(grid, True, key=lambda share: drawn.least_blocks(share / 100) <= blocks)
    if enough == len(grid):
        return f"Ask for a larger epsilon, or for {cure}"
    return (
        f"Ask for a larger epsilon, for {cure}, or accept it more often: with "
        f"beta={grid[enough] / 100:g}, {name_count(blocks, 'block')} would be enough"
    )


def describe(mechanism: Blocks) -> dict[str, float | int | bool | str]:
    """Describe it in the plain values that a certificate states."""
    drawn, limits = mechanism.aggregation, mechanism.limits
    stated: dict[str, Any] = {
        "aggregate": mechanism.aggregate,
        "epsilon": mechanism.epsilon,
        "blocks": mechanism.blocks,
        "beta": mechanism.beta,
        **asdict(limits),
    }
    if mechanism.user is not None:
        stated["user"] = str(mechanism.user)
    if isinstance(drawn, Choice):
        stated |= {
            "spacing": _describe_origin(mechanism),
            "candidates": len(mechanism.values),
            "prior": mechanism.prior is not None,
            "least": drawn.least,
            "fingerprint": _digest((mechanism.values, mechanism.prior)),
        }
    if isinstance(drawn, Stable):
        stated |= {
            "delta": drawn.delta,
            "spacing": _describe_origin(mechanism),
            "candidates": len(mechanism.values),
            "fingerprint": _digest(mechanism.values),
        }
    if isinstance(drawn, VectorMean):
        stated |= {
            "delta": drawn.delta,
            "radius": drawn.radius,
            "dims": len(drawn.centre),
            "fingerprint": _digest(drawn.centre),
        }
    if mechanism.low is not None and mechanism.high is not None:
        stated |= {"low": mechanism.low, "high": mechanism.high}
    return stated


def _digest(public: object) -> str:
    return hashlib.sha256(repr(public).encode()).hexdigest()
