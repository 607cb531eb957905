"""Whatever can be audited, as one thing: draw so many outputs on these rows."""

from __future__ import annotations

import copy
import inspect
import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from hushed.auditing._generators import carried_generator
from hushed.errors import BadFunction, ParameterError

__all__ = ["BatchRaised", "Command", "Raised", "Source", "source"]

Kind = Literal["batch", "scalar"]


@dataclass(frozen=True, slots=True)
class Raised:
    """The outcome of a run that ended in an exception.

    Parameters
    ----------
    name : str
        Type of the exception, or the exit status of a command.
    reason : str, default ""
        What else is known: its message, or the last line of a command's errors. No part of the
        outcome: two runs that raised the same type are alike.
    """

    name: str
    reason: str = field(default="", repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Command:
    """A program under audit: it reads one line for each run and answers with one line.

    Parameters
    ----------
    arguments : sequence of str
        The program and its arguments; no shell is involved.
    timeout : float, default 600
        Seconds after which a bunch of runs is given up.

    Raises
    ------
    ParameterError
        If there are no arguments.

    Notes
    -----
    A line read is one JSON object ``{"rows": ..., "seed": ...}``; the seed is a fresh 63-bit
    number that the program may use or ignore. A line written is one JSON value; what is no JSON
    counts as text. A program has to flush each line: if it ends early, the run after the last
    complete line is the one that failed, and the rest is run again in a new process.
    """

    arguments: Sequence[str]
    timeout: float = 600.0

    def __post_init__(self) -> None:
        if isinstance(self.arguments, str) or not self.arguments:
            raise ParameterError("a command is a list of its program and arguments, not empty")

    def draw(self, rows: Any, rng: np.random.Generator, size: int) -> list[Any]:
        """Run the program ``size`` times on the rows.

        Parameters
        ----------
        rows : array or list
            What JSON can hold.
        rng : numpy.random.Generator
            Source of the seeds.
        size : int
            Runs.

        Returns
        -------
        list
            What each run wrote, or `Raised` with the exit status.

        Raises
        ------
        BadFunction
            If the program cannot be started, takes too long, or answers with too many lines.
        """
        plain = rows.tolist() if isinstance(rows, np.ndarray) else rows
        outputs: list[Any] = []
        while len(outputs) < size:
            wanted = size - len(outputs)
            seeds = rng.integers(2**63 - 1, size=wanted).tolist()
            lines = [json.dumps({"rows": plain, "seed": seed}) for seed in seeds]
            answers, status, errors = self._bunch("\n".join(lines) + "\n")
            if len(answers) > wanted:
                raise BadFunction(f"the command wrote {len(answers)} lines for {wanted} runs")
            outputs += [_parsed(line) for line in answers]
            if len(answers) < wanted:
                outputs.append(Raised(f"exit status {status}", errors))
        return outputs

    def _bunch(self, text: str) -> tuple[list[str], int, str]:
        try:
            done = subprocess.run(  # noqa: S603
                list(self.arguments),
                input=text,
                capture_output=True,
                text=True,
                timeout=self.timeout,
                check=False,
            )
        except OSError as cause:
            raise BadFunction(f"the command cannot be started: {cause}") from cause
        except subprocess.TimeoutExpired as cause:
            raise BadFunction(
                f"the command took more than {self.timeout:g} seconds; it must end when its "
                "input ends"
            ) from cause
        complete = done.stdout.split("\n")[:-1]
        return complete, done.returncode, (done.stderr.strip().splitlines() or [""])[-1]


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return line


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A mechanism in the one form that the audit calls.

    Parameters
    ----------
    call : callable
        Function of (rows, rng, size) for a batch; of (rows, rng) or (rows) otherwise.
    kind : {"batch", "scalar"}
        Whether one call gives many outputs.
    takes_rng : bool
        Whether it takes a generator; otherwise it is trusted to draw its own fresh entropy.
    """

    call: Callable[..., Any]
    kind: Kind
    takes_rng: bool

    def draw(self, rows: Any, rng: np.random.Generator, size: int) -> Any:
        """Draw independent outputs.

        Parameters
        ----------
        rows : object
            What the mechanism is run on; arrays are handed over read-only.
        rng : numpy.random.Generator
            Source of randomness.
        size : int
            Outputs to draw.

        Returns
        -------
        ndarray, shape (size, ...), or list of length size
            Outputs; a run that raised gives `Raised`.

        Raises
        ------
        BadFunction
            If the mechanism changes its rows, or a batch raises or has the wrong length.
        """
        given = _locked(rows)
        if self.kind == "batch":
            return self._batch(given, rng, size)
        return [self._one(given, rng) for _ in range(size)]

    def _one(self, rows: Any, rng: np.random.Generator) -> Any:
        try:
            return self.call(rows, rng) if self.takes_rng else self.call(rows)
        except BadFunction:
            raise
        except (Exception, SystemExit) as cause:
            _refuse_changes(cause)
            return Raised(type(cause).__name__, str(cause))

    def _batch(self, rows: Any, rng: np.random.Generator, size: int) -> Any:
        try:
            outputs = self.call(rows, rng, size)
        except BadFunction:
            raise
        except (Exception, SystemExit) as cause:
            _refuse_changes(cause)
            if size == 1:
                return [Raised(type(cause).__name__, str(cause))]
            raise BatchRaised(type(cause).__name__, size) from cause
        if not isinstance(outputs, np.ndarray | list | tuple) or np.ndim(outputs) == 0:
            raise BadFunction(
                f"a batch mechanism must return an array or a list of {size} outputs, got "
                f"{type(outputs).__name__}"
            )
        if len(outputs) != size:
            raise BadFunction(
                f"a batch mechanism asked for {size} outputs returned {len(outputs)}; the first "
                "axis must be the run"
            )
        return outputs if isinstance(outputs, np.ndarray) else list(outputs)

    def one_at_a_time(self) -> Source:
        """Batch mechanism called with a size of 1, so that a run that raises is one outcome.

        Returns
        -------
        Source
            A scalar mechanism with the same outputs.
        """
        call = self.call

        def single(rows: Any, rng: np.random.Generator) -> Any:
            return call(rows, rng, 1)[0]

        return Source(call=single, kind="scalar", takes_rng=True)


class BatchRaised(BadFunction):
    """A batch mechanism raised somewhere among many runs."""

    def __init__(self, name: str, size: int) -> None:
        super().__init__(
            f"the batch mechanism raised {name} among {size} runs, and which of them failed cannot "
            "be told; return None for a run that fails, or audit it with batch=False"
        )
        self.name = name
        self.size = size

    def __reduce__(self) -> tuple[object, ...]:
        """Rebuild from the arguments, so that the error survives a trip between processes."""
        return (BatchRaised, (self.name, self.size))


def _refuse_changes(cause: BaseException) -> None:
    if isinstance(cause, ValueError) and "read-only" in str(cause):
        raise BadFunction(
            "the mechanism changes the rows it is given; let it work on a copy"
        ) from cause


def _locked(rows: Any) -> Any:
    if isinstance(rows, np.ndarray):
        view = rows.view()
        view.flags.writeable = False
        return view
    return copy.deepcopy(rows)


def source(mechanism: Any, *, batch: bool, workers: int | None) -> Source:
    """Bring a mechanism into the form that the audit calls.

    Parameters
    ----------
    mechanism : callable, Command, object with a method draw, or OpenDP measurement
        ``mechanism(rows, rng)`` or ``mechanism(rows)``; with ``batch``
        ``mechanism(rows, rng, size)``. A mechanism of this library is run as
        ``mechanism.draw(rows)``, so that the rows are the exact answer.
    batch : bool
        Whether one call gives many outputs.
    workers : int or None
        Worker processes that will be used.

    Returns
    -------
    Source
        The mechanism.

    Raises
    ------
    BadFunction
        If it cannot be called so, or carries the state of a random generator.
    """
    if isinstance(mechanism, Command):
        return Source(call=mechanism.draw, kind="batch", takes_rng=True)
    draw = getattr(mechanism, "draw", None)
    if callable(draw) and not callable(mechanism):
        return Source(call=draw, kind="scalar", takes_rng=False)
    if not callable(mechanism):
        raise BadFunction(
            f"expected a mechanism (rows, rng) -> output, a Command or an object with a method "
            f"draw, got {type(mechanism).__name__}"
        )
    if type(mechanism).__module__.partition(".")[0] == "opendp":
        return Source(call=mechanism, kind="scalar", takes_rng=False)
    found = carried_generator(mechanism)
    if found and workers != 1:
        raise BadFunction(
            f"the mechanism carries a random generator ({found}); every worker would get a copy "
            "and repeat the same numbers. Take the generator as second argument: "
            "mechanism(rows, rng), or use workers=1"
        )
    return _called(mechanism, batch=batch)


def _called(mechanism: Callable[..., Any], *, batch: bool) -> Source:
    wanted = _positional(mechanism)
    if batch:
        if wanted is not None and not wanted[0] <= 3 <= wanted[1]:
            raise BadFunction("with batch=True a mechanism takes (rows, rng, size)")
        return Source(call=mechanism, kind="batch", takes_rng=True)
    if wanted is None or wanted[0] <= 1 == wanted[1]:
        return Source(call=mechanism, kind="scalar", takes_rng=False)
    if wanted[0] <= 2 <= wanted[1]:
        return Source(call=mechanism, kind="scalar", takes_rng=True)
    hint = "; say batch=True if the third is a size" if wanted[0] == 3 else ""
    raise BadFunction(
        f"a mechanism takes (rows, rng) or (rows), this one needs {wanted[0]} arguments{hint}"
    )


def _positional(function: Callable[..., Any]) -> tuple[int, int] | None:
    """Fewest and most positional arguments; None if Python cannot tell."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        most = 10
    else:
        most = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    least = sum(
        p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
        for p in parameters
    )
    return least, most
