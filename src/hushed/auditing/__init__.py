"""Audit any mechanism: a certified verdict on its claim, and estimates kept apart from it."""

from hushed.auditing._audit import audit
from hushed.auditing._claims import Claim, Renyi, ZeroConcentrated
from hushed.auditing._mechanisms import Command, Raised
from hushed.auditing._pairs import Pair, Relation, extreme_pairs
from hushed.auditing._population import PopulationPairs
from hushed.auditing._report import AuditReport, Witness
from hushed.auditing._sensitivity import SensitivityCheck, check_sensitivity

__all__ = [
    "AuditReport",
    "Claim",
    "Command",
    "Pair",
    "PopulationPairs",
    "Raised",
    "Relation",
    "Renyi",
    "SensitivityCheck",
    "Witness",
    "ZeroConcentrated",
    "audit",
    "check_sensitivity",
    "extreme_pairs",
]
