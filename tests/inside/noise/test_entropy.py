"""Where the words come from: never seeded, never shared, never used twice."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import hushed.noise
from hushed.noise import _entropy as entropy
from hushed.noise import _grid as grid
from hushed.noise import _integers as integers
from hushed.noise import _selection as selection

FORKED = """
import os
from hushed.noise._entropy import operating_system_words
source = operating_system_words()
while source._ahead < 2**16:  # in the middle of a long draw
    source.take(3)
source.take(3)  # there are words left that a careless fork would share
reader, writer = os.pipe()
children = []
for child in range(2):
    children.append(os.fork())
    if children[-1] == 0:
        os.write(writer, source.take(500).tobytes())
        os._exit(0)
for child in children:
    os.waitpid(child, 0)
mine = source.take(500).tolist()
data = os.read(reader, 8000)
theirs = [int.from_bytes(data[i:i + 8], "little") for i in range(0, len(data), 8)]
print(len(mine) + len(theirs), len({*mine, *theirs}))
"""

# Without the process check, the children must repeat words.
CARELESS = """
import hushed.noise._entropy as entropy
entropy.os.getpid = lambda: 1
"""


ONE = np.ones(3)
CALLS = [
    lambda: hushed.noise.add_laplace(ONE, sensitivity=1.0, epsilon=1.0),
    lambda: hushed.noise.add_gaussian(ONE, sensitivity=1.0, sigma=1.0),
    lambda: hushed.noise.discrete_laplace(1.0, 3),
    lambda: hushed.noise.discrete_gaussian(1.0, 100),
    lambda: hushed.noise.uniform_integers(3, 3),
    lambda: hushed.noise.bernoulli(0.5),
    lambda: hushed.noise.bernoulli_exp(0.5),
    lambda: hushed.noise.select(ONE, width=1.0, epsilon=1.0),
]


def run(script: str) -> list[int]:
    """Run a script in a fresh interpreter and read two numbers."""
    path = str(Path(hushed.noise.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return [int(number) for number in done.stdout.split()]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forked_children_share_no_words() -> None:
    """Parent and two children draw 1500 words, all different (a chance repeat: 2**-43)."""
    drawn, different = run(FORKED)
    assert drawn == different == 1500


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_the_fork_test_sees_a_shared_block() -> None:
    """With the defences taken out, the same script finds repeated words."""
    drawn, different = run(CARELESS + FORKED)
    assert drawn == 1500
    assert different == 500


def test_threads_share_no_words() -> None:
    """Four threads draw 40000 words in small pieces, all different (a chance repeat: 2**-34)."""
    drawn: list[list[int]] = [[] for _ in range(4)]

    def draw(mine: list[int]) -> None:
        words = entropy.operating_system_words()
        for _ in range(2500):
            mine += words.take(3).tolist()
            mine.append(entropy.operating_system_words().word())

    threads = [threading.Thread(target=draw, args=(mine,)) for mine in drawn]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({word for mine in drawn for word in mine}) == 40000


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this system")
def test_a_signal_handler_shares_no_words() -> None:
    """A handler that draws in the middle of a draw gets words of its own."""
    handled: list[int] = []
    words = entropy.operating_system_words()

    def handler(number: int, frame: object) -> None:
        handled.append(words.word())

    previous = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        drawn = []
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            drawn.append(words.word())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert len(handled) > 10
    assert len({*drawn, *handled}) == len(drawn) + len(handled)


def test_every_byte_is_handed_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fed with numbered words, small and large requests never see a number twice."""
    position = 0

    def numbered(count: int) -> bytes:
        nonlocal position
        block = np.arange(position, position + count // 8, dtype=np.uint64)
        position += count // 8
        return block.tobytes()

    monkeypatch.setattr(entropy.os, "urandom", numbered)
    source = entropy.OperatingSystemWords()
    seen: list[int] = []
    for count in [1, 7, 8191, 8192, 3, 20000, 0, 5000, 5000, 1]:
        taken = source.take(count)
        assert taken.shape == (count,)
        seen += taken.tolist()
        seen.append(source.word())
    assert len(set(seen)) == len(seen)
    assert max(seen) < position


def test_nothing_in_the_package_takes_a_seed() -> None:
    """No public function has a parameter that could fix the randomness of a release."""
    forbidden = {"seed", "rng", "generator", "random_state", "words", "source", "key"}
    for name in hushed.noise.__all__:
        member = getattr(hushed.noise, name)
        if callable(member):
            assert not forbidden & set(inspect.signature(member).parameters), name


def test_public_functions_draw_from_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every public sampler asks for a source of its own, and for nothing else."""

    class NoSource(Exception):
        pass

    def refuse() -> None:
        raise NoSource

    for module in (grid, integers, selection):
        monkeypatch.setattr(module, "operating_system_words", refuse)
    for call in CALLS:
        with pytest.raises(NoSource):
            call()


def test_nothing_is_read_ahead_for_another_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is copied between two draws uses no word twice: each draw reads its own.

    The copies differ in what the operating system gives them from then on, and in nothing else.
    """
    reads = 0
    real = os.urandom

    def counted(count: int) -> bytes:
        nonlocal reads
        reads += 1
        return real(count)

    monkeypatch.setattr(entropy.os, "urandom", counted)
    for call in (*CALLS, *CALLS):
        reads = 0
        call()
        assert reads > 0
    given = np.zeros(40)
    answers = []
    for copy in range(2):  # both go on from here with entropy that the other one does not see
        stream = np.random.default_rng(copy)
        monkeypatch.setattr(entropy.os, "urandom", stream.bytes)
        answers.append(hushed.noise.add_laplace(given, sensitivity=1.0, epsilon=1.0))
    assert not np.any(answers[0] == answers[1])
