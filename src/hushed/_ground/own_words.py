"""Whether the words of an error are the library's own, or those of code that it called."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeGuard

from hushed.errors import HushedError

_HOME = f"{Path(__file__).parents[1]}{os.sep}"


def is_own(error: BaseException) -> TypeGuard[HushedError]:
    """Whether an error was raised by code of this library that no other code had called.

    Its words hold no private value. A function, an answer or a cell may raise the same class of
    error, or call what raises it, with a value in its text.
    """
    if not isinstance(error, HushedError):
        return False
    trace = error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_HOME):
            return False
        trace = trace.tb_next
    return True
