"""One wanted release: its tolerated error, and how far its answer moves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hushed._ground.calls import called_as
from hushed._ground.decimals import decimal_of, read, stated_below
from hushed._ground.notebook import Card, Shown, card_of_facts
from hushed._ground.printing import flat, format_down, format_up
from hushed.accounting import joined
from hushed.cost._model import epsilon_for_error
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
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
        Coordinates of the answer that must all keep the error; of a sampled sensitivity all that
        the function answers with.
    name : str, default "the answer"
        What to call it in the report.

    Raises
    ------
    ParameterError
        If a number is out of range or NaN, or a sensitivity is in a norm, or of a number of
        coordinates, that does not fit.
    """

    error: float
    beta: float | None = None
    sensitivity: float | Sensitivity = 1.0
    dims: int = 1
    name: str = "the answer"

    def _card(self) -> Card:
        unit = "in the unit of the answer"
        facts = [("error", f"{self.accuracy()}, {unit}")]
        facts += [("numbers", str(self.dims))] if self.dims > 1 else []
        facts += [("sensitivity", f"{format_up(movement_of(self))}, {unit} ({known_how(self)})")]
        return card_of_facts(f"Need of {flat(self.name)}", facts)

    def __post_init__(self) -> None:
        numbers = [("error", False), *[("beta", False)] * (self.beta is not None)]
        if isinstance(self.sensitivity, Sensitivity):
            _require_fit(self.sensitivity, self.dims)
        else:
            numbers.append(("sensitivity", True))
        for name, up in numbers:
            object.__setattr__(self, name, read(name, getattr(self, name), up=up))
        if math.isinf(self.error) or math.isinf(movement_of(self)):
            raise ParameterError("error and sensitivity must be finite")
        level = epsilon_for_error(
            self.error, sensitivity=movement_of(self), beta=self.beta, dims=self.dims
        )
        if not 1e-300 < level < 1e300 or self.error < 1e-300:
            raise ParameterError(
                f"an error of {self.error!r} at a sensitivity of {movement_of(self)!r} needs a "
                "level that doubles cannot hold: use another unit"
            )

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


def movement_of(need: Need) -> float:
    """How far the answer can move, as a number."""
    given = need.sensitivity
    return given.value if isinstance(given, Sensitivity) else given


def known_how(need: Need) -> str:
    """Say how the sensitivity is known."""
    if not isinstance(need.sensitivity, Sensitivity):
        return "assumed"
    return "proven" if need.sensitivity.sampling is None else "sampled"


def unit_of(need: Need) -> str:
    """Name what moves the answer: a person by a number, or where each row is declared to be one."""
    given = need.sensitivity
    return "person" if not isinstance(given, Sensitivity) or given.person else given.unit


def _require_fit(given: Sensitivity, dims: int) -> None:
    """Refuse a movement of other coordinates, or one that does not bound the sum of theirs."""
    if given.sampling is not None and math.prod(given.sampling.shape) != dims:
        met = math.prod(given.sampling.shape)
        raise ParameterError(
            f"the sampled function answers with {met} {'number' if met == 1 else 'numbers'}, and "
            f"dims is {dims}: give dims={met}",
            parameter="dims",
        )
    if given.norm != "l1" and (dims != 1 or given.norm == "range"):
        raise ParameterError(
            f"a plan needs a sensitivity in the norm 'l1', got one in {given.norm!r}: measure it, "
            "or prove it, with norm='l1'",
            parameter="sensitivity",
        )


def join_promises(needs: Sequence[Need]) -> Guarantee:
    """Join what the sensitivities say of gamma and of neighbours; epsilon is not theirs."""
    told = [n.sensitivity.guarantee(0.0) for n in needs if isinstance(n.sensitivity, Sensitivity)]
    return joined(told or [Guarantee(epsilon=0.0)], 0.0, 0.0)
