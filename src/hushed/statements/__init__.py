"""Certificates of whatever was released: an answer, a release, an audit, a study, a budget."""

from hushed.statements._certifying import certify, certify_budget, certify_study
from hushed.statements._signing import key_id, make_key, open_signed, public_key, sign
from hushed.statements._statement import LedgerEntry, Statement
from hushed.statements._verification import StatementCheck, verify

__all__ = [
    "LedgerEntry",
    "Statement",
    "StatementCheck",
    "certify",
    "certify_budget",
    "certify_study",
    "key_id",
    "make_key",
    "open_signed",
    "public_key",
    "sign",
    "verify",
]
