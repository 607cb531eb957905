"""Count privately how often tables made of private rows move further than was sampled."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hushed._functions._gate import Outside, admit_rows, answer_private_rows
from hushed._functions._trials import seed_from
from hushed._ground.calls import called_as
from hushed._ground.checks import require_probability
from hushed._ground.types import Floats, Integers
from hushed._rows import _containers as containers
from hushed._rows._containers import as_table
from hushed._rows._owned import copy_rows
from hushed.errors import BadFunction, BadRows, ParameterError
from hushed.fitting._charging import charge_and_store
from hushed.fitting._moving_report import MovementCheck, NoisyCount
from hushed.ledger._notes import choose_note
from hushed.ledger._payments import Charges, check_ledger
from hushed.mechanisms import Laplace
from hushed.populations._fitted import count_table_rows
from hushed.populations._sources import Promise
from hushed.releasing import Certificate
from hushed.sensitivity import Sensitivity, proven_sensitivity
from hushed.sensitivity._designs import Route
from hushed.sensitivity._record import Sampling
from hushed.spaces import size

_PROMISES: dict[Route, Promise] = {"given-the-rest": "given-the-rest", "resampled": "table"}

ARGUMENT = (
    "each private row is in one pair of tables at most, so that a replaced row changes the number "
    "of pairs that move further by at most 1, if the function keeps nothing of one pair for "
    "another (docs/population.md)"
)


@called_as("hs.check_movement(f, rows, of_fewer_rows, epsilon=1.0)")
def check_movement(
    f: Callable[[Any], Any],
    rows: Any,
    sensitivity: Sensitivity,
    *,
    epsilon: float,
    confidence: float = 0.95,
    outside: Outside = "clamp",
    seed: int | np.random.Generator | None = 0,
    ledger: Charges | None = None,
    budget: str | None = None,
    note: str = "",
    key: str | None = None,
) -> MovementCheck:
    """Count privately how often a function moves further on private rows than was sampled.

    The private rows are cut into ``len(rows) // (sensitivity.sampling.rows + 1)`` parts. Each makes
    a pair of neighbouring tables, as the sampler does, and the pairs that move further than the
    sampled sensitivity are counted. The count is released with Laplace noise. So the sensitivity
    has to be sampled for tables that are much smaller than the private one, and what is found
    speaks of tables of that size only.

    Parameters
    ----------
    f : callable
        The function that was sampled.
    rows : array, list or frame
        The private rows, in the sampled container. Their number is public.
    sensitivity : Sensitivity
        From `hushed.sample_sensitivity` with ``protect="record"``, for few rows.
    epsilon : float
        Privacy loss of the check, in nats; finite, above 0. It stands for its shortest decimal.
    confidence : float, default 0.95
        Of the upper bound for the share of pairs, and of the lower one; in (0, 1).
    outside : {"clamp", "allow"}, default "clamp"
        As for `hushed.release`.
    seed : int, numpy.random.Generator or None, default 0
        Seed of the parts, which must not depend on the private rows; the noise has none.
    ledger : Ledger or Charges, optional
        Where to charge before private rows are looked at.
    budget : str, optional
        Name of the budget in the ledger; required with one.
    note : str, default ""
        Remark for the ledger.
    key : str, optional
        A name of your own for this check, as for `hushed.check_population`.

    Returns
    -------
    MovementCheck
        The noisy count, and confidence bounds for the share of pairs.

    Raises
    ------
    BadFunction
        If the function is not the sampled one, no longer answers as it did, or carries the private
        rows with it; nothing is charged.
    BadRows
        If there are too few private rows for one pair, or they are not of the sampled kind.
    Overspent
        If it does not fit into the budget.
    ParameterError
        If a parameter cannot be used; nothing is charged.

    Notes
    -----
    A pair on which the function fails counts as one that moves further. The confidence bounds
    assume independent private rows; the privacy does not, but, as for a release, a function that
    remembers between calls.

    Examples
    --------
    >>> import numpy as np
    >>> import hushed as hs
    >>> s = hs.sample_sensitivity(np.mean, hs.populations.Uniform(low=0, high=1), rows=10)
    >>> private = np.random.default_rng(1).uniform(size=5500)
    >>> found = hs.check_movement(np.mean, private, s, epsilon=1.0)
    >>> found.pairs, found.verdict
    (500, 'not contradicted')
    """
    confidence = require_probability("confidence", confidence)
    sampling = _check_sensitivity(sensitivity)
    check_ledger(ledger, budget, key)
    rows = as_table(rows)
    containers.container(rows)
    size = len(containers.take_plain(rows))
    pairs = _count_pairs(rows, size, sampling)
    counted = proven_sensitivity(
        1.0, unit="person" if sensitivity.person else "row", argument=ARGUMENT
    )
    mechanism = Laplace(counted, epsilon=epsilon)
    sampled = replace(sampling, rows=size)
    held = admit_rows(rows, sampled, function=f, outside=outside)
    sampling.confirm(f)
    parts, swapped = _choose_parts(size, pairs, sampling, seed := seed_from(seed))
    count = _Count(
        function=f, sampling=sampling, bound=sensitivity.value, parts=parts, swapped=swapped
    )

    def look(certificate: Certificate) -> str:
        noisy = float(mechanism.draw(np.array(float(count.of(held)))))
        return _report(
            noisy, mechanism, count, sensitivity.gamma, confidence, certificate
        ).to_json()

    asked = [sensitivity.fingerprint, sensitivity.gamma, mechanism.epsilon, counted.person]
    asked += [confidence, outside, size, seed]
    text, number = charge_and_store(
        look,
        mechanism,
        ledger,
        budget=budget,
        note=choose_note(note, "check_movement: how often pairs move further than sampled"),
        key=key,
        question=hashlib.sha256(json.dumps(["check_movement", *asked]).encode()).hexdigest(),
    )
    return replace(MovementCheck.from_json(text), entry=number)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Count:
    """Counts the pairs that move further than a bound.

    Parameters
    ----------
    function : callable
        The user's function.
    sampling : Sampling
        How its movements were sampled.
    bound : float
        The sampled sensitivity.
    parts : ndarray of int, shape (pairs, rows + 1)
        Places of the private rows of each pair; the last one takes the place of another.
    swapped : ndarray of int, shape (pairs,)
        Whose place it takes in each pair.
    """

    function: Callable[[Any], Any]
    sampling: Sampling
    bound: float
    parts: Integers
    swapped: Integers

    def of(self, rows: Any) -> int:
        """Count them in a private table; a pair on which the function fails is one of them."""
        pairs = zip(self.parts, self.swapped.tolist(), strict=True)
        return sum(not self._moves_little(rows, part, place) for part, place in pairs)

    def _moves_little(self, rows: Any, part: Integers, place: int) -> bool:
        other = part[:-1].copy()
        other[place] = part[-1]
        try:
            first, second = (self._answer(rows, each) for each in (part[:-1], other))
        except BadFunction:
            return False
        moved = first - second
        if not moved.shape:
            return abs(float(moved)) <= self.bound or self.sampling.norm == "range"
        return float(size(moved.ravel(), self.sampling.norm)) <= self.bound

    def _answer(self, rows: Any, places: Integers) -> Floats:
        table = copy_rows(containers.take(rows, places), private=True)
        return answer_private_rows(self.function, table, self.sampling)


def _check_sensitivity(sensitivity: Sensitivity) -> Sampling:
    """Refuse what is not about one replaced row of a table."""
    sampling = sensitivity.sampling if isinstance(sensitivity, Sensitivity) else None
    if sampling is None:
        raise ParameterError(
            "check_movement takes a sampled sensitivity, from hs.sample_sensitivity: a proven one "
            "needs no population",
            parameter="sensitivity",
        )
    others = {
        "protect='record'": sampling.protect == "record",
        "neighbours='replace-one'": sensitivity.neighbours == "replace-one",
        "single rows, without user=": sensitivity.unit == "row",
        "position='random', as the pairs of private rows are": sampling.position == "random",
        "one replaced row": sampling.design.rest or sampling.design.count == sampling.rows + 1,
        "a function that is no hs.Blockwise (take the one inside it)": sampling.blocks == 1,
        "calibration='training-conditional' or 'dkw', for a marginal gamma is no share of pairs": (
            sampling.calibration != "marginal"
        ),
        "no population made from private rows": not sampling.data_dependent,
    }
    if wrong := [name for name, holds in others.items() if not holds]:
        raise ParameterError(
            f"check_movement compares single pairs: sample the sensitivity with {wrong[0]}",
            parameter="sensitivity",
        )
    return sampling


def _count_pairs(rows: Any, size: int, sampling: Sampling) -> int:
    """Count the pairs that a private table makes; its number of rows is public."""
    containers.container(rows)
    pairs = size // (sampling.rows + 1)
    if not pairs:
        raise BadRows(
            f"the sensitivity was sampled for {sampling.rows} rows, so that a pair takes "
            f"{sampling.rows + 1}, and the private table has {size}: sample it for much "
            "smaller tables"
        )
    return pairs


def _choose_parts(
    rows: int, pairs: int, sampling: Sampling, seed: int
) -> tuple[Integers, Integers]:
    """Deal the rows of a table to pairs by a public seed, and say which row of each is replaced."""
    rng = np.random.default_rng(seed)
    parts = rng.permutation(rows)[: pairs * (sampling.rows + 1)].reshape(pairs, -1)
    if sampling.symmetric:
        return parts, np.full(pairs, sampling.rows - 1)
    return parts, rng.integers(sampling.rows, size=pairs)


def law_of(mechanism: Laplace, pairs: int) -> NoisyCount:
    """Give the law of the noisy count of so many pairs."""
    grid = mechanism.noise.grid(1)
    step = math.ldexp(1.0, grid.exponent)
    return NoisyCount(pairs=pairs, scale=grid.scale * step, step=step)


def _report(
    noisy: float,
    mechanism: Laplace,
    count: _Count,
    gamma: float,
    confidence: float,
    certificate: Certificate,
) -> MovementCheck:
    pairs, chance = len(count.parts), 1 - confidence
    law = law_of(mechanism, pairs)
    return MovementCheck(
        moved=noisy,
        pairs=pairs,
        rows=count.sampling.rows,
        bound=count.bound,
        gamma=gamma,
        p_value=min(1.0, law.at_least(noisy, gamma)),
        share_at_most=law.share_at_most(noisy, chance),
        share_at_least=law.share_at_least(noisy, chance),
        confidence=confidence,
        certificate=certificate,
        promise=_promise_of(count.sampling),
    )


def _promise_of(sampling: Sampling) -> Promise:
    """Say what was promised something of; a mixture may draw from public rows again and again."""
    again = count_table_rows(sampling.population) and sampling.design.route == "independent"
    return "table" if again else _PROMISES.get(sampling.design.route, "population")
