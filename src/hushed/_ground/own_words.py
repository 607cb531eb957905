"""Whether an error has the words of the code that reads rows, or those of code that it called."""

from __future__ import annotations

import os
from typing import TypeGuard

from hushed.errors import HushedError

_READERS = ("_functions", "_ground", "_rows", "spaces")  # packages that read rows and answers


def is_own(error: BaseException) -> TypeGuard[HushedError]:
    """Whether an error was raised by the packages that read rows, and no other Python code did it.

    Their words hold no private value. A function, an answer or a cell may raise the same class of
    error, or call what raises it, with a value in its text. Code whose file name was forged to be
    one of these is not told from them: somebody who writes that can write rows elsewhere, too.
    """
    if not isinstance(error, HushedError):
        return False
    trace = error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_PLACES):
            return False
        trace = trace.tb_next
    return True


# As this code was loaded, by whatever way the path was written.
_HOME = os.path.dirname(os.path.dirname(is_own.__code__.co_filename))
_PLACES = tuple(f"{_HOME}{os.sep}{each}{os.sep}" for each in _READERS)
