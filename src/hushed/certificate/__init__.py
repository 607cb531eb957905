"""Certificates: what was promised, in JSON and in words, and whether it can be reproduced."""

from hushed.certificate.record import Certificate, MechanismRecord, SamplingRecord, certify
from hushed.certificate.verification import Verification, verify
from hushed.certificate.words import explained

__all__ = [
    "Certificate",
    "MechanismRecord",
    "SamplingRecord",
    "Verification",
    "certify",
    "explained",
    "verify",
]
