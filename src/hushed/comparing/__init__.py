"""Every way to release a statistic or a function: its promise, its error on public rows, its calls.

Private rows are never seen here: tables are drawn from a public population.
"""

from hushed.comparing._compare import compare
from hushed.comparing._record import ComparedRoute, Comparison, LeftOut

__all__ = ["ComparedRoute", "Comparison", "LeftOut", "compare"]
