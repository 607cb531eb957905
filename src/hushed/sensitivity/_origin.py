"""Where a sensitivity comes from: sampled or proven, never both, and the name of its estimate."""

from __future__ import annotations

import hashlib
import json
import math
from fractions import Fraction
from typing import TYPE_CHECKING

from hushed._ground.decimals import decimal_of, stated_above, upper_double
from hushed._ground.numeric import round_up
from hushed._ground.printing import as_given
from hushed.errors import ParameterError
from hushed.populations._fitted import count_table_rows
from hushed.sensitivity._ranks import Calibration

if TYPE_CHECKING:
    from hushed.sensitivity._record import Sampling, Sensitivity

_SAMPLED = "sampled: movement"  # begins the argument of a sampled sensitivity


def check_origin(sensitivity: Sensitivity) -> None:
    """Refuse a value, a norm or an argument that is not that of the sampling, or of none."""
    sampling, argument = sensitivity.sampling, sensitivity.argument
    if sampling is None:
        if not is_proof(argument):
            raise ParameterError(
                "argument must say why the bound holds, and not that it was sampled, where there "
                f"is no sampling: use hs.proven_sensitivity with a proof; got {as_given(argument)}"
            )
        return
    if sensitivity.value != sampling.draws[sampling.rank - 1]:
        raise ParameterError(
            f"the sampled movement number {sampling.rank} is another one than "
            f"{sensitivity.value}: a value of your own needs a proof, hs.proven_sensitivity"
        )
    if sensitivity.unit != ("row" if sampling.user is None else "user"):
        raise ParameterError(
            "what is replaced in a sampled pair is one row, or all rows of one user where it was "
            f"sampled with user=; got unit={sensitivity.unit!r}",
            parameter="unit",
        )
    if (sensitivity.norm, sensitivity.neighbours) != (sampling.norm, sampling.neighbours):
        raise ParameterError(
            f"the movements were sampled in the norm {sampling.norm!r}, for "
            f"{sampling.neighbours} neighbours: sample again for others"
        )
    said = describe_sampling(sampling.rank, sampling.pairs, sampling.calibration, sampling.blocks)
    if argument != said:
        raise ParameterError(
            f"argument of a sampled sensitivity is {said!r}, got {as_given(argument)}"
        )


def is_proof(argument: object) -> bool:
    """Tell whether an argument may stand for a proof: it says something, and not of samples."""
    return isinstance(argument, str) and bool(argument.strip()) and _SAMPLED not in argument


def shift_gamma(gamma: float, tau: float, involved: int) -> float:
    """Enlarge a gamma for rows from a nearby distribution; see `Sensitivity.shifted`.

    Rounded up; may reach 1 or more.
    """
    if not tau:
        return gamma
    step = round_up(math.sqrt(involved * upper_double(tau) / 2))
    return stated_above(decimal_of(gamma) + Fraction(step))


def describe_sampling(rank: int, pairs: int, calibration: Calibration, blocks: int) -> str:
    """Say why a sampled sensitivity holds."""
    part = f", divided by {blocks} blocks" if blocks > 1 else ""
    return f"{_SAMPLED} {rank} of {pairs}, {calibration} calibration{part}"


_WEAKER: dict[str, str] = {
    "given-the-rest": (
        " THE PROMISE IS A WEAKER ONE, given the rest: all pairs share the rows that they do not "
        "exchange, and nothing is promised for a table whose other rows look different."
    ),
    "resampled": (
        " THE PROMISE IS ABOUT THE PUBLIC ROWS ONLY: tables were drawn from them with replacement, "
        "and for rows of the law behind them no gamma is established."
    ),
}


_MADE = (
    " NOTHING IS PROMISED OF THE LAW BEHIND THE {} PUBLIC ROWS that the population draws from with "
    "replacement: for rows that come from that law no gamma is established."
)


def describe_rank(sampling: Sampling) -> str:
    """Say in plain words what rank, calibration and gamma mean."""
    pairs = f"{sampling.pairs} pairs of neighbouring tables"
    if sampling.user is not None:
        pairs += ", which differ in all rows of one person,"
    if sampling.reach().whole:
        pairs = f"{sampling.pairs} tables, each with many neighbours of which the farthest counts,"
    whose = "the real pair"
    if sampling.protect != "record":
        whose = "any promised pair of the real table"
    counted = "and includes the risk that the sampled movements mislead"
    if sampling.calibration == "marginal":
        counted = "over the sampled movements and the real pair together"
    weaker = _WEAKER.get(sampling.design.route, "")
    again = count_table_rows(sampling.population)
    if again and sampling.design.route == "independent":
        weaker = _MADE.format(again)
    return (
        f"In plain words: the answer was computed on {pairs} drawn from the population, and the "
        f"movement that is kept is number {sampling.rank} of {sampling.pairs}, counted from the "
        f"smallest. Gamma bounds the probability that {whose} moves farther, {counted}"
        f" (calibration {sampling.calibration!r}).{weaker}"
    )


def compute_fingerprint(sensitivity: Sensitivity) -> str:
    sampling = sensitivity.sampling
    if sampling is None:
        return ""
    facts = [
        sensitivity.value.hex(),
        sensitivity.norm,
        sampling.calibration,
        sampling.rank,
        sampling.protect,
        sampling.rows,
        sampling.seed,
        sampling.population,
        sampling.shift,
        sampling.blocks,
        [sampling.neighbours, sampling.distance, sampling.position, sampling.sizes],
        sampling.values,
    ]
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    digest.update(sampling.draws.tobytes())
    return f"{digest.hexdigest()[:32]}.{sampling.identity}"
