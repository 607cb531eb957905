"""Audit any mechanism: a certified verdict on its claim, and estimates kept apart from it."""

from hushed.audit.claims import Claim, Renyi, ZeroConcentrated
from hushed.audit.declared import SensitivityCheck, check_sensitivity
from hushed.audit.examine import audit
from hushed.audit.mechanisms import Command, Raised
from hushed.audit.pairs import Pair, extreme_pairs, pattern_pairs
from hushed.audit.populations import PopulationPairs
from hushed.audit.report import AuditReport, Witness

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
