"""How a user's function ends the process is no verdict: its code would be taken for one."""

from __future__ import annotations

import atexit
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

_LEAVE = os._exit


@contextmanager
def exits_raise() -> Iterator[None]:
    """Let ``os._exit`` of a function that is run here end its run, not the command.

    Its code would else be the command's, and say something that nobody judged. A process forked
    by the function ends as it likes.
    """
    here = os.getpid()

    def refuse(status: int) -> NoReturn:
        if os.getpid() != here:
            _LEAVE(status)
        raise SystemExit(status)

    before, os._exit = os._exit, refuse
    try:
        yield
    finally:
        os._exit = before


@contextmanager
def exits_of_c_told(tell: Callable[[], None], code: int) -> Iterator[None]:
    """Let ``exit`` of C end the command with another code, and words before it.

    It runs what was given to ``atexit`` of C. Of that nothing may be left behind, for it would run
    after Python has ended; so this is done where a C library can take it back. ``_exit`` of C
    runs nothing at all.
    """
    here = os.getpid()

    def end() -> None:
        if os.getpid() == here:
            try:
                tell()
                sys.stdout.flush()
            finally:
                _LEAVE(code)

    remove = _run_at_exit(end)
    atexit.register(remove)
    try:
        yield
    finally:
        remove()
        atexit.unregister(remove)


def _run_at_exit(end: Callable[[], None]) -> Callable[[], None]:
    """Have C run something at its exit; gives what takes that back."""
    if platform.libc_ver()[0] != "glibc" and sys.platform != "darwin":
        return lambda: None
    try:
        import ctypes  # noqa: PLC0415
    except ImportError:
        return lambda: None
    library = ctypes.CDLL(None)
    waiting, own = [end], ctypes.create_string_buffer(1)  # an address that nobody else has

    def run(_: Any) -> None:
        while waiting:
            waiting.pop()()

    held = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(run)
    library.__cxa_atexit(held, None, own)

    def remove(_: Any = held) -> None:  # which must live until then
        waiting.clear()
        library.__cxa_finalize(own)  # runs it, for nothing

    return remove
