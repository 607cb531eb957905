"""Figures from results; they compute nothing."""

from hushed.plots._answers import answer_figure
from hushed.plots._audits import audit_figure
from hushed.plots._certificates import certificate_page, movement_figure
from hushed.plots._comparisons import comparison_figure, comparison_page
from hushed.plots._errors import error_figure
from hushed.plots._figures import COLOURS, check_suffix, save_figure
from hushed.plots._fits import moved_figure, population_figure
from hushed.plots._ledgers import budget_figure

__all__ = [
    "COLOURS",
    "answer_figure",
    "audit_figure",
    "budget_figure",
    "certificate_page",
    "check_suffix",
    "comparison_figure",
    "comparison_page",
    "error_figure",
    "moved_figure",
    "movement_figure",
    "population_figure",
    "save_figure",
]
