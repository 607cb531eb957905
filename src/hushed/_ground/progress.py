"""Progress of public work: a bar in a terminal, a line that is written anew in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from hushed._ground.notebook import Card, draw_gauge, render_card
from hushed._ground.printing import as_given
from hushed.errors import ParameterError

_PAUSE = 0.25  # seconds between two looks of a line in a notebook
_LONG = 5.0  # seconds that are worth a word


Report = Callable[[int], None]
"""Takes how many more steps are done."""

Words = Callable[[str], None]
"""Takes words on how far work is."""


@dataclass(frozen=True, slots=True)
class Stages:
    """One line for several pieces of work, one after the other."""

    begin: Callable[[str, int], Report]  # what is done, and in how many steps


@contextmanager
def show_progress(what: str, total: int, *, shown: bool | Stages) -> Iterator[Report | None]:
    """Show how much is done and how long the rest may take: of public work only.

    How long each step takes depends on its rows. In a terminal it is shown on standard error, in a
    notebook below the cell; it goes when the work is done. Elsewhere nothing is shown.
    """
    if isinstance(shown, Stages):
        yield shown.begin(what, total)
        return
    with show_stages(shown) as stages:
        yield stages.begin(what, total) if stages else None


@contextmanager
def show_stages(shown: bool | Words) -> Iterator[Stages | None]:
    """Show several pieces of work as `show_progress` does one; a function is given words on them.

    What is yielded says nothing where nothing is shown.
    """
    if callable(shown):
        yield Stages(partial(_tell, shown))
    elif shown and _in_notebook():
        line = _Line()
        try:
            yield Stages(line.begin)
        finally:
            line.clear()
    elif shown and _is_terminal():
        from rich.progress import Progress  # noqa: PLC0415

        with Progress(console=_console(), transient=True) as bar:
            task = bar.add_task("", visible=False)

            def begin(what: str, total: int) -> Report:
                bar.reset(task, description=what, total=total, visible=True)
                return lambda finished: bar.advance(task, finished)

            yield Stages(begin)
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


def _tell(say: Words, what: str, total: int) -> Report:
    """Make what tells from time to time how far one piece of work is, if it takes long."""
    done, start = 0, time.monotonic()
    told = start

    def report(finished: int) -> None:
        nonlocal done, told
        done += finished
        now = time.monotonic()
        # The first steps say little: workers may have to be started for them.
        if now - told >= _LONG and (done >= total / 20 or now - start >= 4 * _LONG):
            told = now
            say(say_done(what, done, total, told - start))

    return report


def say_done(what: str, done: int, total: int, passed: float) -> str:
    """Say how many steps are done, and how long the others take if they take as long."""
    text = f"{what}: {done:,} of {total:,}"
    return f"{text}, about {passed * (total - done) / done:,.0f} s left" if done else text


def read_progress(progress: object) -> bool | Words:
    """Read whether progress is shown, or the function that takes words on it."""
    if callable(progress):
        return progress
    if progress is not None and not isinstance(progress, bool):
        raise ParameterError(
            "progress must be True, False or a function that takes words, got "
            f"{as_given(progress)}",
            parameter="progress",
        )
    return bool(progress)


@contextmanager
def show_words(progress: bool | Words) -> Iterator[tuple[Words, Words]]:
    """Choose what takes words on how far work is, and what takes remarks that stay true.

    With True a terminal or a notebook shows them. A notebook shows how far it is in one line, which
    goes when the work is done.
    """
    if progress is True and _in_notebook():
        line = _Line()
        try:
            yield line.show, _say
        finally:
            line.clear()
        return
    words = progress if callable(progress) else _say if progress and _is_terminal() else _ignore
    yield words, words


def tell_or_show(say: Words) -> bool | Words:
    """Show progress in a terminal; elsewhere say it in words, for whoever reads them."""
    return True if _is_terminal() else say


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)  # noqa: T201


def _ignore(_: str) -> None:
    pass


def tell_wait(words: str, seconds: float) -> None:
    """Tell beforehand of work that takes long, and on the way says nothing: on standard error.

    In a terminal or a notebook, from some seconds on; what fails here stops nothing, for what
    follows may be paid already.
    """
    if seconds >= _LONG:
        tell_note(words)


def tell_note(words: str) -> None:
    """Tell something that stops nothing: on standard error, in a terminal or a notebook."""
    with suppress(Exception):
        if _in_notebook() or _is_terminal():
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

    def __init__(self) -> None:
        self._display: Any = None
        self._begin("", 0)

    def begin(self, what: str, total: int) -> Report:
        """Begin a piece of work, in place of the one before."""
        self._begin(what, total)
        self._put(self._look())
        return self._advance

    def show(self, words: str) -> None:
        """Show words in place of those before."""
        self._put({"text/plain": words})

    def clear(self) -> None:
        if self._display is not None:
            self._put({"text/plain": "", "text/html": ""})

    def _begin(self, what: str, total: int) -> None:
        self._what, self._total, self._done = what, total, 0
        self._start = self._shown = time.monotonic()

    def _advance(self, finished: int) -> None:
        self._done += finished
        if time.monotonic() - self._shown >= _PAUSE:
            self._shown = time.monotonic()
            self._put(self._look())

    def _put(self, look: dict[str, str]) -> None:
        if self._display is not None:
            self._display.update(look, raw=True)
            return
        from IPython.display import display  # noqa: PLC0415

        show: Any = display  # it has no types
        self._display = show(look, raw=True, display_id=True)

    def _look(self) -> dict[str, str]:
        passed = time.monotonic() - self._start
        text = say_done(self._what, self._done, self._total, passed)
        bar = draw_gauge(self._done / max(self._total, 1), text)
        card = Card(title=text, text=text, words="", pictures=(bar,))
        return {"text/plain": text, "text/html": render_card(card)}
