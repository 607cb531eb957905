"""Figures from results; they compute nothing."""

from hushed.plots._certificates import certificate_page, movement_figure
from hushed.plots._figures import COLOURS, check_suffix, save_figure

__all__ = ["COLOURS", "certificate_page", "check_suffix", "movement_figure", "save_figure"]
