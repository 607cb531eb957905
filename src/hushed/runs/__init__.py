"""Runs of hours, kept as they go: what was finished is not run again.

Functions that run many trials take ``keep``, a folder or the address of an object store. See the
page on scale for what is kept and what it costs.
"""

from hushed.runs._journal import Keep
from hushed.runs._listing import KeptRun, list_runs, remove_runs

__all__ = ["Keep", "KeptRun", "list_runs", "remove_runs"]
