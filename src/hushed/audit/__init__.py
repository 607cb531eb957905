"""Audit any mechanism: a certified verdict on its claim, and estimates kept apart from it."""

from hushed.audit.claims import Claim, Renyi, ZeroConcentrated
from hushed.audit.examine import audit
from hushed.audit.mechanisms import Command, Raised
from hushed.audit.pairs import Pair, extreme_pairs, pattern_pairs
from hushed.audit.report import AuditReport, Witness

__all__ = [
    "AuditReport",
    "Claim",
    "Command",
    "Pair",
    "Raised",
    "Renyi",
    "Witness",
    "ZeroConcentrated",
    "audit",
    "extreme_pairs",
    "pattern_pairs",
]
