"""Audit any mechanism: a certified verdict on its claim, and estimates kept apart from it."""

from hushed.auditing._claims import Claim, Renyi, ZeroConcentrated
from hushed.auditing._declared import SensitivityCheck, check_sensitivity
from hushed.auditing._examine import audit
from hushed.auditing._mechanisms import Command, Raised
from hushed.auditing._pairs import Pair, extreme_pairs, pattern_pairs
from hushed.auditing._populations import PopulationPairs
from hushed.auditing._report import AuditReport, Witness

__all__ = [
    "AuditReport",
    "Claim",
    "Command",
    "Pair",
    "PopulationPairs",
    "Raised",
    "Renyi",
    "SensitivityCheck",
    "Witness",
    "ZeroConcentrated",
    "audit",
    "check_sensitivity",
    "extreme_pairs",
    "pattern_pairs",
]
