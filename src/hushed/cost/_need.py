"""One wanted release: its tolerated error, and how far its answer moves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hushed._ground.calls import called_as
from hushed._ground.decimals import decimal_of, read, stated_below
from hushed._ground.notebook import Card, Shown, card_of_facts
from hushed._ground.printing import flat, format_down, format_up
from hushed.cost._model import epsilon_for_error
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee, union_gamma
from hushed.sensitivity import Sensitivity


@called_as("hs.cost.Need(error=5.0)")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Need(Shown):
    """One release that somebody wants, with the error they can live with.

    Parameters
    ----------
    error : float
        Tolerated absolute error; above 0, in the unit of the answer.
    beta : float, optional
        Probability with which the error may be larger; in (0, 1). Left out, ``error`` is the mean
        absolute error.
    sensitivity : float or Sensitivity, default 1
        How far the answer can move between neighbours, in the L1 norm (1 for a count). A number
        is assumed to be right. That of `hushed.proven_sensitivity` is proven, and that of
        `hushed.sample_sensitivity` brings its gamma into the plan.
    dims : int, default 1
        Coordinates of the answer that must all keep the error.
    name : str, default "the answer"
        What to call it in the report.

    Raises
    ------
    ParameterError
        If a number is out of range or NaN, or a sensitivity is in a norm that does not fit.
    """

    error: float
    beta: float | None = None
    sensitivity: float | Sensitivity = 1.0
    dims: int = 1
    name: str = "the answer"

    def _card(self) -> Card:
        moved = (
            f"by {format_up(self.moves)} at most, in the unit of the answer ({self.known_how()})"
        )
        facts = [("error", f"{self.accuracy()}, in the unit of the answer")]
        facts += [("numbers", str(self.dims))] if self.dims > 1 else []
        return card_of_facts(f"Need of {flat(self.name)}", [*facts, ("one person moves it", moved)])

    def __post_init__(self) -> None:
        numbers = [("error", False), *[("beta", False)] * (self.beta is not None)]
        if isinstance(self.sensitivity, Sensitivity):
            _require_norm(self.sensitivity, self.dims)
        else:
            numbers.append(("sensitivity", True))
        for name, up in numbers:
            object.__setattr__(self, name, read(name, getattr(self, name), up=up))
        if math.isinf(self.error) or math.isinf(self.moves):
            raise ParameterError("error and sensitivity must be finite")
        level = epsilon_for_error(
            self.error, sensitivity=self.moves, beta=self.beta, dims=self.dims
        )
        if not 1e-300 < level < 1e300 or self.error < 1e-300:
            raise ParameterError(
                f"an error of {self.error!r} at a sensitivity of {self.moves!r} needs a "
                "level that doubles cannot hold: use another unit"
            )

    @property
    def moves(self) -> float:
        """How far the answer can move, as a number."""
        given = self.sensitivity
        return given.value if isinstance(given, Sensitivity) else given

    def known_how(self) -> str:
        """Say how the sensitivity is known.

        Returns
        -------
        str
            ``"assumed"``, ``"proven"`` or ``"sampled"``.
        """
        if not isinstance(self.sensitivity, Sensitivity):
            return "assumed"
        return "proven" if self.sensitivity.sampling is None else "sampled"

    def accuracy(self) -> str:
        """Say the tolerated error in words.

        Returns
        -------
        str
            A clause without a full stop.
        """
        sampling = getattr(self.sensitivity, "sampling", None)
        average = sampling is not None and sampling.blocks > 1
        exact = "the exact average over blocks" if average else "the exact answer"
        if self.beta is None:
            return f"off by {format_up(self.error)} on average" + f" from {exact}" * average
        all_of = "every coordinate " if self.dims > 1 else ""
        kept = format_down(stated_below(1 - decimal_of(self.beta)), 4)
        return f"{all_of}within {format_up(self.error)} of {exact} with probability {kept}"


def _require_norm(given: Sensitivity, dims: int) -> None:
    """Refuse a movement that does not bound the sum of those of the coordinates."""
    if given.norm != "l1" and (dims != 1 or given.norm == "range"):
        raise ParameterError(
            f"a plan needs a sensitivity in the norm 'l1', got one in {given.norm!r}: measure it, "
            "or prove it, with norm='l1'",
            parameter="sensitivity",
        )


def join_promises(needs: Sequence[Need]) -> Guarantee:
    """Join what the sensitivities say of gamma and of neighbours; epsilon is not theirs."""
    told = [n.sensitivity.guarantee(0.0) for n in needs if isinstance(n.sensitivity, Sensitivity)]
    if not told:
        return Guarantee(epsilon=0.0)
    if len({(g.neighbours, g.unit, g.distance) for g in told}) > 1:
        raise ParameterError(
            "the sensitivities of a plan are for different neighbours: plan the releases of each "
            "relation by themselves",
            parameter="needs",
        )
    if len({g.protect for g in told if g.gamma}) > 1:
        raise ParameterError(
            "the sensitivities of a plan differ in protect=, so that their gammas are about "
            "different events: sample all with the same protect=",
            parameter="needs",
        )
    gamma = union_gamma(told)
    if gamma >= 1:
        raise ParameterError(
            f"the gammas of the sensitivities add up to {gamma}, and nothing is promised: sample "
            "with smaller ones",
            parameter="needs",
        )
    one = told[0]
    return Guarantee(
        epsilon=0.0,
        gamma=gamma,
        neighbours=one.neighbours,
        unit=one.unit,
        distance=one.distance,
        protect=next((g.protect for g in told if g.gamma), "record"),
        estimates=tuple(sorted({each for g in told for each in g.estimates})),
        data_dependent=any(g.data_dependent for g in told),
    )
