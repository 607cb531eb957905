"""Under which name the runs of an audit are kept, and which mechanisms can be kept at all."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from hushed._functions._fingerprints import look
from hushed._functions._run_facts import describe_content, describe_here
from hushed._ground.types import Floats
from hushed.auditing._mechanisms import Source, find_carried_generator
from hushed.auditing._outputs import Encoder
from hushed.auditing._pairs import Pair
from hushed.auditing._programs import Command
from hushed.errors import BadFunction, ParameterError
from hushed.runs._journal import Keep, Run, check_place

Place = str | PathLike[str] | Keep

# How outputs and counts are written: runs that were kept in another way are made anew.
_ENCODING = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """What the runs of one mechanism have in common, wherever they are kept.

    Parameters
    ----------
    place : str, path or Keep
        Where.
    mechanism : dict
        What decides its outputs, besides rows and generator.
    name : str
        What to call it.
    private : bool
        Whether its outputs are private.
    """

    place: Place
    mechanism: dict[str, Any]
    name: str
    private: bool

    def describe_run(
        self,
        *,
        stage: str,
        pair: Pair,
        seed: int,
        chunks: int,
        size: int,
        encoder: Encoder,
        counted: tuple[Any, Floats] | None,
    ) -> Run:
        """Describe one stage on one pair: outputs, or their counts in bins of a score."""
        facts = {
            "kind": "audit",
            "mechanism": self.mechanism,
            "stage": stage,
            "pair": [describe_content("the pair", each) for each in (pair.rows, pair.neighbour)],
            "seed": seed,
            "size": size,
            "encoder": [encoder.width, encoder.objects, encoder.form, _ENCODING],
            "counted": None if counted is None else describe_content("the event", counted),
        }
        columns = (size, encoder.columns) if counted is None else (len(counted[1]) + 2,)
        return Run(
            facts=facts,
            name=f"audit of {self.name}, {stage}, {pair.name}",
            trials=chunks,
            shape=(2, *columns),
            private=self.private,
            check=lambda found: counted is None or bool((found >= 0).all()),
        )


def check_keepable(place: Place, mechanism: Any, *, private: bool) -> None:
    """Refuse what could not be kept, before anything is run."""
    check_place(place, private=private)
    if isinstance(mechanism, Command):
        raise ParameterError(
            "the runs of a program cannot be kept: nobody sees here whether it is still the same "
            "program; leave keep out",
            parameter="keep",
        )
    found = find_carried_generator(mechanism)
    if found:
        raise _refuse(f"the mechanism carries a random generator ({found})")


@contextmanager
def refuse_global_generators() -> Iterator[None]:
    """Refuse a mechanism that draws from the generators that Python and NumPy have for all.

    A program that seeds them draws, when it goes on, the numbers that it kept once more, so that
    stages of an audit would no longer be independent.
    """
    before = _read_states()
    yield
    if _read_states() != before:
        raise _refuse("the mechanism draws from the global generator of Python or NumPy")


def describe_mechanism(place: Place, source: Source, name: str, *, private: bool) -> Keeping:
    """Describe a mechanism, after its first runs."""
    facts = {
        "content": describe_content("the mechanism", source.call),
        "kind": source.kind,
        "takes_rng": source.takes_rng,
        "here": describe_here(look(source.call).packages),
    }
    return Keeping(place=place, mechanism=facts, name=name, private=private)


def _refuse(what: str) -> BadFunction:
    return BadFunction(
        f"{what}: a run that goes on would draw the numbers again that are kept, and the audit "
        "takes them for independent. Take the generator as second argument: mechanism(rows, rng)",
        parameter="keep",
        hint="or leave keep out",
    )


def _read_states() -> tuple[Any, ...]:
    name, words, *rest = np.random.get_state(legacy=True)  # noqa: NPY002
    return random.getstate(), name, np.asarray(words).tobytes(), *rest
