"""Programs under audit: they are given a line for each run, and write one.

What is read of a line is the value that JSON has in it, and how it was written: readers of JSON
drop blanks, digits, escapes and keys that stand twice; who gets the line does not.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

from hushed._ground.calls import called_as
from hushed.errors import BadFunction, ParameterError

NUMBER = re.compile(r"([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)")


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


@called_as('hs.auditing.Command(["python", "mechanism.py"])')
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
    number that the program may use or ignore. A line written is one JSON value; what is not JSON,
    or has a key twice, counts as text. How it is written, as blanks and digits, is a part of the
    output. A program has to flush each line: if it ends early, the run after the last complete
    line is the one that failed, and the rest is run again in a new process.
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
            answers, status, errors = self._run_batch("\n".join(lines) + "\n")
            if len(answers) > wanted:
                raise BadFunction(f"the command wrote {len(answers)} lines for {wanted} runs")
            outputs += [parse_line(line) for line in answers]
            if len(answers) < wanted:
                outputs.append(Raised(f"exit status {status}", errors))
        return outputs

    def _run_batch(self, text: str) -> tuple[list[str], int, str]:
        try:
            done = subprocess.run(  # noqa: S603
                list(self.arguments),
                input=text.encode(),
                capture_output=True,
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
        # Whatever the bytes are: ends of lines are not put in order, and none is dropped.
        told, errors = (
            each.decode("utf-8", "surrogateescape") for each in (done.stdout, done.stderr)
        )
        return told.split("\n")[:-1], done.returncode, (errors.strip().splitlines() or [""])[-1]


@dataclass(frozen=True, slots=True)
class Written:
    """A value, and what its line is without the numbers."""

    value: Any
    form: str


class _Twice(ValueError):
    """A key stands twice in an object."""


def parse_line(line: str) -> Any:
    """Read a line as JSON; one that is none is a text, and so is one that has a key twice."""
    try:
        value = json.loads(
            line, object_pairs_hook=_make_object, parse_float=_read_number, parse_int=_read_integer
        )
        plain = json.dumps(value, default=float)
    except (ValueError, RecursionError):  # brackets a thousand deep are text, too
        return line
    form = NUMBER.sub("#", line)
    return value if form == NUMBER.sub("#", plain) else Written(value, form)


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise _Twice
    return dict(pairs)


def _read_integer(digits: str) -> int | float:
    return -0.0 if digits == "-0" else int(digits)


def _read_number(digits: str) -> float | Decimal:
    """Read a double that is written as Python does; of others all digits."""
    number = float(digits)
    if repr(number) == digits:
        return number
    try:
        return Decimal(digits)
    except InvalidOperation:  # an exponent beyond all decimals
        return number
