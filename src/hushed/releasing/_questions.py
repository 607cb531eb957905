"""What a release asks, as a digest that is the same in another process."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from hushed._functions._fingerprints import look
from hushed.mechanisms import Mechanism
from hushed.releasing._mechanisms import Admitted, admit_mechanism


def question_of(
    function: Callable[[Any], Any], mechanism: Mechanism | Admitted, outside: str = "clamp"
) -> str:
    """Digest what a release asks; the same for the same script in another process."""
    read = admit_mechanism(mechanism)
    sensitivity = read.sensitivity
    sampling = sensitivity.sampling
    public = sampling is not None and not sampling.data_dependent
    movements = sensitivity.draws.tobytes() if public else b""
    facts = {
        "function": sorted((look(function).marks if sampling is None else sampling.state).items()),
        "mechanism": [read.name, read.parameters],
        "sensitivity": [sensitivity.value, sensitivity.norm, sensitivity.neighbours],
        "proof": [sensitivity.unit, sensitivity.argument],
        "movements": hashlib.sha256(movements).hexdigest(),
        "rows": None if sampling is None else [sampling.rows, sampling.seed],
        "population": None if sampling is None or not public else sampling.population,
        "outside": outside,
        "promise": [*_list_promise(read), sensitivity.person],
    }
    if read.stated:  # its name and parameters do not say how it draws
        facts["drawing"] = sorted(look(type(read.mechanism).draw).marks.items())
    text = json.dumps(facts, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


def _list_promise(mechanism: Admitted) -> list[Any]:
    """List whom a release promises something, beyond what sensitivity and parameters say."""
    promise, sampling = mechanism.guarantee, mechanism.sensitivity.sampling
    whom = [promise.gamma, promise.protect, promise.distance, promise.marginal]
    if sampling is None:
        return whom
    return [*whom, sampling.position, sampling.sizes, repr(sampling.user), sampling.symmetric]
