"""Progress of public work: a bar in a terminal, a line that is written anew in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from hushed._ground.notebook import Card, draw_gauge, render_card
from hushed._ground.printing import as_given
from hushed.errors import ParameterError

_PAUSE = 0.25  # seconds between two looks of a line in a notebook
_LONG = 5.0  # seconds that are worth a word


@contextmanager
def show_progress(what: str, total: int, *, shown: bool) -> Iterator[Callable[[int], None] | None]:
    """Show how much is done and how long the rest may take: of public work only.

    How long each step takes depends on its rows. In a terminal it is shown on standard error, in a
    notebook below the cell; it goes when the work is done. Elsewhere nothing is shown.
    """
    if shown and _in_notebook():
        line = _Line(what, total)
        try:
            yield line.advance
        finally:
            line.clear()
    elif shown and _is_terminal():
        from rich.progress import Progress  # noqa: PLC0415

        with Progress(console=_console(), transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda finished: bar.advance(task, finished)
    else:
        yield None


@contextmanager
def show_elapsed(what: str, limit: float | None, *, shown: bool) -> Iterator[None]:
    """Show that private work goes on, and for how long: not how much of it is done.

    Whoever waits can tell the time; a share that is done would tell of the rows. What is done
    within may be paid already, so nothing that fails here stops it.
    """
    clock: Any = None
    with suppress(Exception):
        if shown and (_in_notebook() or _is_terminal()):
            clock = _Clock(what if limit is None else f"{what}, for {limit:g} s at most")
    try:
        yield
    finally:
        with suppress(Exception):
            if clock is not None:
                clock.clear()


def _console() -> Any:
    """Give standard error, which falls silent where nobody reads it any more."""
    from rich.console import Console  # noqa: PLC0415

    class Terminal(Console):
        def on_broken_pipe(self) -> None:  # Rich would close standard output, and end the program
            self.quiet = True

    return Terminal(stderr=True)


def choose_words(progress: object) -> Callable[[str], None]:
    """Choose what takes words on how far work is: with True a terminal or a notebook shows them."""
    if callable(progress):
        return progress
    if progress is not None and not isinstance(progress, bool):
        raise ParameterError(
            "progress must be True, False or a function that takes words, got "
            f"{as_given(progress)}",
            parameter="progress",
        )
    return _say if progress and (_in_notebook() or _is_terminal()) else _ignore


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)  # noqa: T201


def _ignore(_: str) -> None:
    pass


def tell_wait(words: str, seconds: float) -> None:
    """Tell beforehand of work that takes long, and on the way says nothing: on standard error.

    In a terminal or a notebook, from some seconds on; what fails here stops nothing, for what
    follows may be paid already.
    """
    with suppress(Exception):
        if seconds >= _LONG and (_in_notebook() or _is_terminal()):
            _say(words)


def _is_terminal() -> bool:
    """Whether standard error is a terminal; it may be None, or something that only writes."""
    with suppress(Exception):
        return bool(sys.stderr.isatty())
    return False


def _in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this process."""
    known = getattr(sys.modules.get("IPython"), "get_ipython", None)  # it may be half imported
    shell = known() if known is not None else None
    return getattr(shell, "kernel", None) is not None


class _Clock:
    """The time that passes, in a terminal; a notebook shows when it began, and needs no thread."""

    def __init__(self, what: str) -> None:
        if _in_notebook():
            from IPython.display import display  # noqa: PLC0415

            show: Any = display  # it has no types
            text = f"{what}; since {time.strftime('%H:%M:%S')}"
            shown = show({"text/plain": text}, raw=True, display_id=True)
            self.clear = lambda: shown.update({"text/plain": ""}, raw=True)
            return
        from rich.progress import Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        bar = Progress(
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=_console(),
            transient=True,
            redirect_stdout=False,  # other threads print where they did before
            redirect_stderr=False,
        )
        bar.add_task(what, total=None)
        bar.start()
        self.clear = bar.stop


class _Line:
    """What a notebook shows of a run; a display that is replaced."""

    def __init__(self, what: str, total: int) -> None:
        from IPython.display import display  # noqa: PLC0415

        self._what, self._total, self._done = what, total, 0
        self._start = self._shown = time.monotonic()
        show: Any = display  # it has no types
        self._display = show(self._look(), raw=True, display_id=True)

    def advance(self, finished: int) -> None:
        self._done += finished
        if time.monotonic() - self._shown >= _PAUSE:
            self._shown = time.monotonic()
            self._display.update(self._look(), raw=True)

    def clear(self) -> None:
        self._display.update({"text/plain": "", "text/html": ""}, raw=True)

    def _look(self) -> dict[str, str]:
        text = f"{self._what}: {self._done:,} of {self._total:,}"
        if self._done:
            passed = time.monotonic() - self._start
            left = passed * (self._total - self._done) / self._done
            text += f", about {left:,.0f} s left"
        bar = draw_gauge(self._done / max(self._total, 1), text)
        card = Card(title=text, text=text, words="", pictures=(bar,))
        return {"text/plain": text, "text/html": render_card(card)}
