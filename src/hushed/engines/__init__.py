"""Where work runs: processes of this machine, or those of a cluster; the answer is the same."""

from hushed.engines._choice import engine_of
from hushed.engines._dask import Dask
from hushed.engines._errors import rebuild
from hushed.engines._protocol import Done, Engine, Lacks, Outcome, Raised, Span, Task
from hushed.engines._ray import Ray
from hushed.engines._spark import Spark
from hushed.engines._worker import run_span

__all__ = [
    "Dask",
    "Done",
    "Engine",
    "Lacks",
    "Outcome",
    "Raised",
    "Ray",
    "Span",
    "Spark",
    "Task",
    "engine_of",
    "rebuild",
    "run_span",
]
