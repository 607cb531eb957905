"""Every exception that hushed raises on purpose; all inherit `HushedError`.

A message says what was met, what is allowed and what to do. No message ever shows a private
value: functions that run on private rows report the type of a failure, never its text. A hint
that names an argument of Python stands in a field of its own, so that the command line can name its
option instead.

The command line ends with 1 for every `Refusal` and with 2 for all else::

    HushedError
     |- Refusal                   what was asked for is well-formed, and cannot be had
     |   |- AwaitingApproval
     |   |- BadFunction
     |   |   `- RandomFunction
     |   |- EngineUnavailable
     |   |- MissingExtra
     |   |- NotFeasible
     |   |- Overspent
     |   |- PrivateRowsAsPopulation
     |   |- QueryFailed
     |   |- TooFewRows
     |   |- WorkerLost
     |   |- ZeroSensitivity
     |   |- DamagedLedger
     |   |- DamagedRun
     |   |- LedgerUnavailable
     |   |- NewerLedger
     |   `- NotALedger
     |- ParameterError            bad use: also a ValueError
     |   |- BudgetExists
     |   |- DoesNotHold            1 of verify
     |   |- KeyInUse
     |   |- SpaceMismatch
     |   |- TooFewPairs
     |   |- TooFewSamples
     |   `- WrongNorm
     |- BadRows                   bad use: also a ValueError
     `- NotFound                  bad use: a file, or a name in it, is not there

What is done, but should be known, is a warning, at the line that called the library; the
same line gives it once, as Python's filters say::

    HushedWarning                also a UserWarning
     `- PlacesLeftOut
"""

from __future__ import annotations

from functools import partial

__all__ = [
    "AwaitingApproval",
    "BadFunction",
    "BadRows",
    "BudgetExists",
    "DamagedLedger",
    "DamagedRun",
    "DoesNotHold",
    "EngineUnavailable",
    "HushedError",
    "HushedWarning",
    "KeyInUse",
    "LedgerUnavailable",
    "MissingExtra",
    "NewerLedger",
    "NotALedger",
    "NotFeasible",
    "NotFound",
    "Overspent",
    "ParameterError",
    "PlacesLeftOut",
    "PrivateRowsAsPopulation",
    "QueryFailed",
    "RandomFunction",
    "Refusal",
    "SpaceMismatch",
    "TooFewPairs",
    "TooFewRows",
    "TooFewSamples",
    "WorkerLost",
    "WrongNorm",
    "ZeroSensitivity",
]

_HEAD, _TAIL = 2000, 1000  # of a message with a name of a megabyte in it


class HushedError(Exception):
    """Anything that hushed refuses to do, or could not do.

    Parameters
    ----------
    *args : object
        The message; it needs no words of Python.
    parameter : str, optional
        Name of the parameter that is wrong, or that helps, as the caller of the function wrote it.
    hint : str, default ""
        What to write instead, in Python; it follows the message in ``str(error)``.
    """

    def __init__(self, *args: object, parameter: str | None = None, hint: str = "") -> None:
        super().__init__(*args)
        self.parameter = parameter
        self.hint = hint

    @property
    def message(self) -> str:
        """What went wrong, without the hint; what makes it very long is left out."""
        text = str(self.args[0]) if self.args else ""
        left_out = len(text) - _HEAD - _TAIL
        if left_out <= _TAIL:
            return text
        return f"{text[:_HEAD]}... ({left_out} characters left out) ...{text[-_TAIL:]}"

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class _OfFields(HushedError):
    """An error that is made of its attributes, which survive a trip between processes."""

    def __reduce__(self) -> tuple[object, ...]:
        left_out = {"parameter", "hint", "__notes__"}
        given = {name: value for name, value in vars(self).items() if name not in left_out}
        return partial(type(self), **given), ()


class Refusal(HushedError):
    """What was asked for is well-formed, and cannot be had."""


class ParameterError(HushedError, ValueError):
    """A parameter lies outside the range in which the promise holds."""


class DoesNotHold(ParameterError):
    """A certificate contradicts itself, or no signature on it fits: somebody changed it.

    Also one of another version of hushed, where it names this one. What is no certificate at all is
    a plain `ParameterError`.
    """


class WrongNorm(ParameterError):
    """A sensitivity was measured in a norm that the mechanism cannot use."""


class TooFewPairs(ParameterError, _OfFields):
    """The wanted gamma needs more sampled pairs than were given.

    Parameters
    ----------
    given : int
        Pairs asked for.
    needed : int
        Smallest number of pairs that suffices.
    gamma : float
        The wanted share of pairs outside the promise.
    calibration : str
        How the rank was to be chosen.
    shared : int, default 1
        Records among which the caller's gamma was divided.
    """

    def __init__(
        self, *, given: int, needed: int, gamma: float, calibration: str, shared: int = 1
    ) -> None:
        part = f" divided into {shared} parts" if shared > 1 else ""
        super().__init__(
            f"gamma={gamma}{part} needs at least {needed} sampled pairs under the "
            f"{calibration!r} calibration, got {given}; draw more pairs or accept a larger gamma"
        )
        self.shared = shared
        self.given = given
        self.needed = needed
        self.gamma = gamma
        self.calibration = calibration


class TooFewRows(Refusal, _OfFields):
    """A public table has too few rows for the wanted gamma.

    Parameters
    ----------
    given : int
        Rows of the public table.
    needed : int
        Rows that would be enough.
    gamma : float
        The wanted gamma.
    supported : float, optional
        Smallest gamma that the given rows support at this size and calibration; None if none.
    advice : str
        What was needed, and what to do.
    """

    def __init__(
        self, *, given: int, needed: int, gamma: float, supported: float | None, advice: str
    ) -> None:
        super().__init__(advice)
        self.given = given
        self.needed = needed
        self.gamma = gamma
        self.supported = supported
        self.advice = advice


class TooFewSamples(ParameterError, _OfFields):
    """No outcome of an audit of this size could contradict the claim.

    Parameters
    ----------
    given : int
        Samples per table that were asked for.
    needed : int
        Samples per table from which on the clearest violation would be seen.
    claim : str
        The claim under audit, in words.
    """

    def __init__(self, *, given: int, needed: int, claim: str) -> None:
        super().__init__(
            f"{given} samples on each side of a pair cannot contradict {claim}, whatever they "
            f"show: give at least {needed}"
        )
        self.given = given
        self.needed = needed
        self.claim = claim


class ZeroSensitivity(Refusal):
    """No sampled pair moved the function, so no noise could be calibrated."""


class BadFunction(Refusal):
    """The user's function raised, or returned something that cannot be released."""


class RandomFunction(BadFunction):
    """The user's function gave two answers on the same rows."""


class BadRows(HushedError, ValueError):
    """The rows do not have the size, columns or cells that the job needs."""


class PrivateRowsAsPopulation(Refusal):
    """The private rows were handed in as the public population."""


class SpaceMismatch(ParameterError):
    """Two steps were chained whose spaces do not fit."""


class NotFeasible(Refusal):
    """No choice of epsilon meets the wanted error and the wanted budget at once."""


class NotFound(HushedError):
    """A file, or a name in it, is not there."""


class WorkerLost(Refusal):
    """Worker processes died repeatedly on the same piece of work."""


class AwaitingApproval(Refusal):
    """A question to a team server waits for a steward's approval; nothing is charged yet."""


class EngineUnavailable(Refusal):
    """The database is not there; no private row was read."""


class MissingExtra(Refusal, _OfFields):
    """What was asked for needs packages that are not installed; nothing was read or charged.

    Parameters
    ----------
    what : str
        What needs them, as the subject of a sentence.
    extra : str
        The extra of hushed that has them.
    otherwise : str, default ""
        What else is needed, or could be done.
    """

    def __init__(self, what: str, extra: str, otherwise: str = "") -> None:
        more = f"; {otherwise}" if otherwise else ""
        super().__init__(
            f"{what} needs packages that are not installed: pip install 'hushed[{extra}]'{more}"
        )
        self.what = what
        self.extra = extra
        self.otherwise = otherwise


class QueryFailed(Refusal):
    """The database did not finish a query on the private rows; no private value is shown."""


class Overspent(Refusal):
    """A charge does not fit into what is left of a budget; nothing was charged.

    Parameters
    ----------
    message : str
        What was asked, what is left and what that would buy.
    budget : str, default ""
        Name of the budget.
    epsilon_left : float, default 0
        Largest epsilon that could still be charged at delta = 0, in nats; rounded down.
    """

    def __init__(self, message: str, budget: str = "", epsilon_left: float = 0.0) -> None:
        super().__init__(message, budget, epsilon_left)
        self.budget = budget
        self.epsilon_left = epsilon_left


class BudgetExists(ParameterError):
    """A budget of this name was opened already: by another program, perhaps; it is unchanged."""


class KeyInUse(ParameterError):
    """A key of the caller already belongs to another question; nothing was charged."""


class NotALedger(Refusal):
    """A file or address holds something else than a ledger."""


class DamagedLedger(Refusal):
    """What a ledger holds is not what was written to it; it is not used any more."""


class DamagedRun(Refusal):
    """What was kept of a run contradicts itself, or what the function says; nothing of it is used.

    See `hushed.runs`.
    """


class NewerLedger(Refusal):
    """A ledger was written by a newer version than this one."""


class LedgerUnavailable(Refusal):
    """A ledger cannot be reached, read or written now."""


class HushedWarning(UserWarning):
    """Whatever hushed warns of; to be filtered with `warnings.filterwarnings`."""


class PlacesLeftOut(HushedWarning):
    """A gamma is an average over the places of a table, and whole places may be left out.

    See `hushed.sample_sensitivity`: ``symmetric`` and ``position``.
    """
