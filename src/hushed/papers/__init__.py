"""The papers behind this library: every figure as data, a picture and a computed verdict."""

from hushed.papers.experiment import Effort, Experiment, Point, Row, Settings, Verdict
from hushed.papers.reproduction import PAPERS, Reproduction, experiments, find, reproduce

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
    "reproduce",
]
