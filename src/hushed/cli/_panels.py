"""Titles under which `--help` groups options."""

__all__ = [
    "AUDIT",
    "BOUNDS",
    "CLAIM",
    "LEDGER",
    "NOISE",
    "OUTPUT",
    "PAIRS",
    "QUERY",
    "ROWS",
    "SAMPLING",
    "STATISTICS",
    "TABLE",
]

AUDIT = "Audit"
BOUNDS = "Contribution bounds"
CLAIM = "Claim"
LEDGER = "Ledger"
NOISE = "Privacy and noise"
OUTPUT = "Output"
PAIRS = "Pairs of neighbouring inputs"
QUERY = "Rows and groups"
ROWS = "Rows and their population"
SAMPLING = "Sampling"
STATISTICS = "Statistics"
TABLE = "Table"
