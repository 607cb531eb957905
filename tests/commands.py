"""Commands as a shell would run them, without the second that a new process takes to load."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import pytest

from hushed.cli import main

__all__ = ["ended"]


def ended(
    *words: object,
    cwd: Path,
    stdout: Path | int | None = None,
    encoding: str = "utf-8",
    program: Callable[[], object] = main,
) -> SimpleNamespace:
    """Run a command in this process, which has loaded what a new one would load for a second.

    Another program than hushed reads `sys.argv`, too, and may give its exit code.

    The output is a file that is closed at the end, as Python closes standard output: what could
    not be written, and was not dropped, fails there.
    """
    error = cwd / "standard-error"
    with (
        pytest.MonkeyPatch.context() as patch,
        open(stdout or cwd / "standard-output", "w", encoding=encoding) as out,
        error.open("w", encoding="utf-8") as err,
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        patch.chdir(cwd)
        patch.setattr(sys, "argv", ["hushed", *map(str, words)])
        kept = signal.getsignal(signal.SIGTERM)
        try:
            with pytest.raises(SystemExit) as end:
                sys.exit(program())
        finally:
            signal.signal(signal.SIGTERM, kept)
    told = "" if stdout else Path(out.name).read_text(encoding)
    return SimpleNamespace(returncode=end.value.code, stdout=told, stderr=error.read_text("utf-8"))
