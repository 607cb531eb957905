"""Where work runs: processes of this machine, or those of a cluster; the answer is the same."""

from hushed.engines._choice import Workers, engine_of, open_engine
from hushed.engines._errors import rebuild
from hushed.engines._local import Local
from hushed.engines._protocol import Done, Engine, Lacks, Outcome, Raised, Span, Task
from hushed.engines._worker import Work, pack, run_span

__all__ = [
    "Done",
    "Engine",
    "Lacks",
    "Local",
    "Outcome",
    "Raised",
    "Span",
    "Task",
    "Work",
    "Workers",
    "engine_of",
    "open_engine",
    "pack",
    "rebuild",
    "run_span",
]
