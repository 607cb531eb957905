"""Audit any mechanism: a certified verdict on its claim, and estimates kept apart from it."""

from hushed.auditing._audit import audit
from hushed.auditing._claims import Claim, Renyi, ZeroConcentrated
from hushed.auditing._declared_bounds import SensitivityTest, test_sensitivity
from hushed.auditing._estimating import PrivacyEstimate, estimate_privacy
from hushed.auditing._pairs import Pair, Relation, extreme_pairs
from hushed.auditing._population import PopulationPairs
from hushed.auditing._programs import Command, Raised
from hushed.auditing._report import AuditReport, Witness
from hushed.auditing._sensitivity import SensitivityCheck, check_sensitivity

__all__ = [
    "AuditReport",
    "Claim",
    "Command",
    "Pair",
    "PopulationPairs",
    "PrivacyEstimate",
    "Raised",
    "Relation",
    "Renyi",
    "SensitivityCheck",
    "SensitivityTest",
    "Witness",
    "ZeroConcentrated",
    "audit",
    "check_sensitivity",
    "estimate_privacy",
    "extreme_pairs",
    "test_sensitivity",
]
