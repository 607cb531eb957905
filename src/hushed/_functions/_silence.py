"""What a function says while it sees private rows is dropped, in its own threads alone.

Standard output and error, warnings and log records belong to the whole process. So nothing is
redirected: while a private call runs, the places where a thread hands such a thing over first ask
who it is. A thread in a private call, and any thread that it started, is not heard; others
are. No lock is held while a function runs, so that functions may wait for each other.

A function hears itself: the warnings that it collects, and the log records for which it attaches a
handler, reach it as they do where it is sampled. Otherwise it would be another function there.
"""

from __future__ import annotations

import _thread
import io
import logging
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from hushed._functions._garbage import collect, count_collections
from hushed._ground.forks import do_in_forked_children


class _Here(threading.local):
    """The private call that the present thread is in, the outermost one.

    With it come the lists in which the thread collects warnings: the catching object and its list.
    """

    call: object = None

    def __init__(self) -> None:
        self.caught: list[tuple[object, list[Any]]] = []


_HERE = _Here()
_STREAMS = ("stdout", "stderr", "__stdout__", "__stderr__")
_TOLD = (1, 2)  # numbers of their files


def _is_unheard() -> bool:
    """Whether the present thread is in a private call, or was started by one."""
    if _HERE.call is not None:
        return True
    return bool(_WATCH.started) and threading.current_thread() in _WATCH.started


def _collected() -> list[tuple[object, list[Any]]]:
    """Give the lists in which an unheard thread, or the one that started it, collects warnings."""
    if _HERE.call is not None:
        return _HERE.caught
    return _WATCH.started.get(threading.current_thread(), _HERE.caught)


class _Quiet:
    """A stream that drops what unheard threads write, and hands all else on.

    Parameters
    ----------
    stream : file
        Where it goes.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: Any) -> Any:
        """Write, or say that it was written."""
        return len(text) if _is_unheard() else self._stream.write(text)

    def writelines(self, lines: Any) -> None:
        """Write several."""
        if not _is_unheard():
            self._stream.writelines(lines)

    @property
    def buffer(self) -> Any:
        """The stream of bytes below, as quiet as this one."""
        return _Quiet(self._stream.buffer)

    @property
    def raw(self) -> Any:
        """The stream of bytes below that."""
        return _Quiet(self._stream.raw)

    def fileno(self) -> int:
        """Tell the number of the file, to those who are heard."""
        return int(self._below("fileno"))

    def detach(self) -> Any:
        """Hand out the stream of bytes, to those who are heard."""
        return self._below("detach")

    def close(self) -> None:
        """Close it, for those who are heard: it is not theirs alone."""
        if not _is_unheard():
            self._stream.close()

    def isatty(self) -> bool:
        """Whether a person reads along."""
        return not _is_unheard() and bool(self._stream.isatty())

    def _below(self, name: str) -> Any:
        if _is_unheard():
            raise io.UnsupportedOperation("not while private rows are seen")
        return getattr(self._stream, name)()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._stream)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *raised: object) -> None:
        if not _is_unheard():
            self._stream.__exit__(*raised)


def _dropped(old: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Write to a stream, but for what unheard threads say: they may have kept the stream."""

    def write(text: Any, /) -> Any:
        return len(text) if _is_unheard() else old(text)

    return write


def _mute_function(old: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that does nothing in unheard threads."""

    def function(*given: Any, **named: Any) -> Any:
        return None if _is_unheard() else old(*given, **named)

    return function


def _written(old: Callable[..., Any]) -> Callable[..., Any]:
    """Write to a file by its number, but for what unheard threads say."""

    def write(number: Any, content: Any, /) -> Any:
        if number in _TOLD and _is_unheard():
            return memoryview(content).nbytes
        return old(number, content)

    return write


def _warned(old: Callable[..., Any]) -> Callable[..., Any]:
    """Show a warning; one of an unheard thread to that thread, if it collects warnings."""

    def show(warning: Any, *given: Any) -> Any:
        if not _is_unheard():
            return old(warning, *given)
        for _, log in _collected()[-1:]:
            log.append(warning)
        return None

    return show


def _catching(old: Callable[..., Any]) -> Callable[..., Any]:
    """Begin to catch warnings, and remember where an unheard thread collects them."""

    def enter(catcher: Any) -> Any:
        log = old(catcher)
        if log is not None and _is_unheard():
            _collected().append((catcher, log))
        return log

    return enter


def _caught(old: Callable[..., Any]) -> Callable[..., Any]:
    """End it."""

    def leave(catcher: Any, *raised: Any) -> Any:
        if _is_unheard():
            lists = _collected()
            lists[:] = [each for each in lists if each[0] is not catcher]
        return old(catcher, *raised)

    return leave


def _attaching(old: Callable[..., Any]) -> Callable[..., Any]:
    """Attach a handler of log records, and remember it if the thread is unheard."""

    def attach(logger: Any, handler: Any) -> Any:
        if _is_unheard():
            _WATCH.handlers.add(handler)
        return old(logger, handler)

    return attach


def _logged(old: Callable[..., Any]) -> Callable[..., Any]:
    """Log a record; one of an unheard thread to handlers that unheard threads attached."""

    def handle(logger: Any, record: Any) -> Any:
        if not _is_unheard():
            return old(logger, record)
        if _WATCH.handlers and not logger.disabled:
            passed = logger.filter(record)
            record = passed if isinstance(passed, logging.LogRecord) else record
            at = logger if passed else None
            while at is not None:
                for handler in at.handlers:
                    if handler in _WATCH.handlers and record.levelno >= handler.level:
                        handler.handle(record)
                at = at.parent if at.propagate else None
        return None

    return handle


def _handled(old: Callable[..., Any]) -> Callable[..., Any]:
    """Handle a record, also of loggers that go around `_logged`."""

    def handle(handler: Any, record: Any) -> Any:
        dropped = _is_unheard() and handler not in _WATCH.handlers
        return None if dropped else old(handler, record)

    return handle


def _noted(old: Callable[..., Any]) -> Callable[..., Any]:
    """Start a thread, and remember it if the one that starts it is unheard."""

    def start(thread: threading.Thread, *given: Any, **named: Any) -> Any:
        if _is_unheard():
            _WATCH.note(thread, _collected())
        return old(thread, *given, **named)

    return start


class _Started:
    """Stands for a thread of which Python makes no object, while it runs."""

    def is_alive(self) -> bool:
        """Whether it runs: it alone holds this object."""
        return True


def _noted_below(old: Callable[..., Any]) -> Callable[..., Any]:
    """Start a thread without an object, which is as unheard as the one that starts it."""

    def start(function: Callable[..., Any], *given: Any) -> Any:
        if not _is_unheard():
            return old(function, *given)
        mark, collected = _Started(), _collected()
        _WATCH.note(mark, collected)

        def unheard(*inner: Any, **named: Any) -> Any:
            _HERE.call, _HERE.caught = mark, collected
            return function(*inner, **named)

        return old(unheard, *given)

    return start


_ASKED: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
    (os, "write", _written),
    (threading, "excepthook", _mute_function),
    (sys, "unraisablehook", _mute_function),
    (sys, "displayhook", _mute_function),
    # Below `showwarning`, which `catch_warnings` of any thread puts back.
    (warnings, "_showwarnmsg" if hasattr(warnings, "_showwarnmsg") else "showwarning", _warned),
    (warnings.catch_warnings, "__enter__", _catching),
    (warnings.catch_warnings, "__exit__", _caught),
    (logging.Logger, "addHandler", _attaching),
    (logging.Logger, "handle", _logged),
    (logging.Handler, "handle", _handled),
    (threading.Thread, "start", _noted),
    (_thread, "start_new_thread", _noted_below),
    (_thread, "start_new", _noted_below),
)


def _list_displays() -> list[tuple[Any, str, Callable[..., Any]]]:
    """List what hands displays to a notebook, where IPython is loaded: they are no prints."""
    base = getattr(sys.modules.get("IPython.core.displaypub"), "DisplayPublisher", None)
    found = [] if base is None else [base]
    for kind in found:
        found += kind.__subclasses__()
    return [(kind, "publish", _mute_function) for kind in found if "publish" in vars(kind)]


class _Watch:
    """Listens at the places named above while any thread is in a private call."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.calls: set[object] = set()
        # By private calls; with the lists in which these collect warnings.
        self.started: weakref.WeakKeyDictionary[
            threading.Thread | _Started, list[tuple[object, list[Any]]]
        ] = weakref.WeakKeyDictionary()
        self.handlers: weakref.WeakSet[logging.Handler] = weakref.WeakSet()  # attached by them
        self.undo: list[tuple[Any, str, Any, Any]] = []
        self.streams: list[tuple[Any, Any]] = []  # and what they write with meanwhile
        self.hooks: tuple[Any, Any] = None, None  # of threads that begin

    def enter(self, call: object) -> None:
        with self.lock:
            self.calls.add(call)
            for name in _STREAMS:
                stream = getattr(sys, name)
                if stream is not None and not isinstance(stream, _Quiet):
                    self._mute(stream)
                    setattr(sys, name, _Quiet(stream))
            if not self.undo:
                self.hooks = threading.gettrace(), threading.getprofile()
            # A stop may have come while an earlier call ended: some listen still, and others not.
            kept = {(o, name) for o, name, _, new in self.undo if getattr(o, name) is new}
            for owner, name, make in (*_ASKED, *_list_displays()):
                if (owner, name) not in kept:
                    self._replace(owner, name, make)

    def leave(self, call: object) -> None:
        with self.lock:
            self.calls.discard(call)
            # A thread that outlives the call which started it is not heard afterwards either.
            if self.calls or any(thread.is_alive() for thread in list(self.started)):
                return
            for name in _STREAMS:
                stream = getattr(sys, name)
                if isinstance(stream, _Quiet):
                    setattr(sys, name, stream._stream)
            for stream, write in self.streams:
                if getattr(stream, "__dict__", {}).get("write") is write:
                    del stream.write
            self.streams.clear()
            for owner, name, old, new in reversed(self.undo):
                if getattr(owner, name) is new:
                    setattr(owner, name, old)
            self.undo.clear()
            self.handlers.clear()
            # They would speak of all threads that begin later.
            if threading.gettrace() is not self.hooks[0]:
                threading.settrace(self.hooks[0])
            if threading.getprofile() is not self.hooks[1]:
                threading.setprofile(self.hooks[1])

    def note(
        self, thread: threading.Thread | _Started, collected: list[tuple[object, list[Any]]]
    ) -> None:
        with self.lock:
            self.started[thread] = collected

    def _mute(self, stream: Any) -> None:
        """Let a stream itself ask who writes, if it can be made to and nobody else did so."""
        if "write" not in getattr(stream, "__dict__", {"write": None}):
            with suppress(Exception):  # it takes no attributes
                stream.write = write = _dropped(stream.write)
                self.streams.append((stream, write))

    def _replace(
        self, owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]
    ) -> None:
        old = getattr(owner, name)
        new = make(old)
        self.undo.append((owner, name, old, new))  # first: a stop leaves nothing that stays
        setattr(owner, name, new)


_WATCH = _Watch()


def _reset_after_fork() -> None:
    """After a fork: the lock may have been held, and the other threads are gone."""
    _WATCH.lock = threading.Lock()
    _WATCH.calls = set() if _HERE.call is None else {_HERE.call}


do_in_forked_children(_reset_after_fork)


@contextmanager
def silence() -> Iterator[None]:
    """Drop what the present thread, and those it starts, print, warn and log.

    A copy of the process that comes back from within ends here: it would answer a second time.
    """
    if _HERE.call is not None:  # within another one, which lasts longer
        yield
        return
    call, process, collections = object(), os.getpid(), count_collections()
    tracing, profiling = sys.gettrace(), sys.getprofile()
    try:
        try:
            _WATCH.enter(call)
            _HERE.call, _HERE.caught = call, []
            yield
        finally:
            if os.getpid() != process:
                os._exit(1)
            if sys.gettrace() is not tracing:  # it would speak of all that follows
                sys.settrace(tracing)
            if sys.getprofile() is not profiling:
                sys.setprofile(profiling)
            collect(collections)
    finally:  # whatever stops it: else nothing would be heard of the program any more
        _HERE.call = None
        _WATCH.leave(call)
