"""What a stop leaves behind, wherever in the beginning or the end of a private call it comes."""

import subprocess
import sys
from itertools import count

from hushed._functions import _silence
from hushed._functions._silence import silence

_STOPPED = {"call", "c_return"}  # where Python looks for signals: a call begins, or has returned


def stop_at(number):
    """Begin and end a private call, and stop it at one place; tell whether there was such a one."""
    seen = 0

    def look(frame, event, _):
        nonlocal seen
        if event in _STOPPED and frame.f_code.co_filename == _silence.__file__:
            seen += 1
            if seen == number:
                raise KeyboardInterrupt

    sys.setprofile(look)
    try:
        with silence():
            pass
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return seen >= number


def list_heard():
    """Name the places that do not ask who speaks."""
    places = [(owner, name, getattr(owner, name)) for owner, name, _ in _silence._ASKED]
    return [
        f"{owner.__name__}.{name}"
        for owner, name, what in places
        if getattr(what, "__module__", "") != _silence.__name__
    ]


def check_every_stop():
    """After a stop at each place in turn the program is heard, and its next private call is not."""
    for number in count(1):
        if not stop_at(number):
            assert number > 100
            return
        assert not _silence._is_unheard(), number
        with silence():
            assert list_heard() == [], number
            assert isinstance(sys.stdout, _silence._Quiet), number
            assert isinstance(sys.stderr, _silence._Quiet), number


def test_no_stop_lets_the_next_private_call_be_heard():
    """A stop while one call ended left places half put back, at which the next one was heard."""
    code = f"import runpy; runpy.run_path({__file__!r})['check_every_stop'](); print('quiet')"
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert told.stdout == "quiet\n", told.stderr
