"""The papers behind hushed: every figure as data, a picture and a computed verdict.

Run them with ``python -m papers`` from the root of the repository; nothing here is installed.
"""

from papers.experiment import Effort, Experiment, Point, Row, Settings, Verdict
from papers.reproduction import (
    PAPERS,
    Reproduction,
    experiments,
    find,
    find_all,
    reproduce,
)

__all__ = [
    "PAPERS",
    "Effort",
    "Experiment",
    "Point",
    "Reproduction",
    "Row",
    "Settings",
    "Verdict",
    "experiments",
    "find",
    "find_all",
    "reproduce",
]
