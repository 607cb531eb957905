"""Mechanisms with known verdicts, right and broken, each with the pair that shows its truth.

The zoo is what an auditor is tested on. Its randomness is seeded and not floating-point safe: no
mechanism here may touch private rows. Truths are about the mechanism over the real numbers; only
"Laplace on doubles" and its correction are stated for the doubles that come out. An audit that
looks at the last bits may rightly refute any specimen with continuous noise.
"""

from hushed.zoo import defects
from hushed.zoo._catalogue import find, specimens
from hushed.zoo._record import BatchMechanism, Curve, Event, Pair, Relation, Rows, Specimen

__all__ = [
    "BatchMechanism",
    "Curve",
    "Event",
    "Pair",
    "Relation",
    "Rows",
    "Specimen",
    "defects",
    "find",
    "specimens",
]
