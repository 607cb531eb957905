"""What a release asks, as a digest that is the same in another process."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from hushed._functions._fingerprints import look
from hushed.mechanisms._calibration import Mechanism, parameters


def question_of(
    function: Callable[[Any], Any], mechanism: Mechanism, outside: str = "clamp"
) -> str:
    """Digest what a release asks; the same for the same script in another process."""
    sensitivity: Any = mechanism.sensitivity
    sampling = sensitivity.sampling
    public = sampling is not None and not sampling.data_dependent
    movements = sensitivity.draws.tobytes() if public else b""
    facts = {
        "function": sorted((look(function).marks if sampling is None else sampling.state).items()),
        "mechanism": parameters(mechanism),
        "sensitivity": [sensitivity.value, sensitivity.norm, sensitivity.neighbours],
        "proof": [sensitivity.unit, sensitivity.argument],
        "movements": hashlib.sha256(movements).hexdigest(),
        "rows": None if sampling is None else [sampling.rows, sampling.seed],
        "population": sampling.population if public else None,
        "outside": outside,
    }
    text = json.dumps(facts, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()
