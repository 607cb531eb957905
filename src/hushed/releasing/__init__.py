"""Releases and their certificates: what was promised, and whether it holds."""

from hushed.releasing._above_threshold import AboveThreshold
from hushed.releasing._certificate import Certificate, MechanismRecord, SamplingRecord
from hushed.releasing._certifying import certify
from hushed.releasing._find_bound import find_bound
from hushed.releasing._release import Release, release
from hushed.releasing._stated_error import StatedError
from hushed.releasing._transcript import Crossing, Transcript
from hushed.releasing._verification import verify
from hushed.releasing._verification_record import Verification
from hushed.releasing._words import explain_certificate

__all__ = [
    "AboveThreshold",
    "Certificate",
    "Crossing",
    "MechanismRecord",
    "Release",
    "SamplingRecord",
    "StatedError",
    "Transcript",
    "Verification",
    "certify",
    "explain_certificate",
    "find_bound",
    "release",
    "verify",
]
