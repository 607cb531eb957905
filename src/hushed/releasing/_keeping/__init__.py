"""Answers that are paid for once: charged under a caller's key, stored before they are shown."""

from hushed.releasing._keeping.answers import (
    raise_failure,
    read_release,
    write_failure,
    write_release,
)
from hushed.releasing._keeping.payments import Charges, Payment, check_ledger, explain_stops, pay
from hushed.releasing._keeping.questions import question_of

__all__ = [
    "Charges",
    "Payment",
    "check_ledger",
    "explain_stops",
    "pay",
    "question_of",
    "raise_failure",
    "read_release",
    "write_failure",
    "write_release",
]
