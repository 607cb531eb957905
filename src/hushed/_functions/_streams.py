"""Random numbers of trials: every trial has a stream that follows from the seed and its number.

Or every block of so many trials has one, where they are drawn together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence

# Fraction of the period between two trials: the golden ratio, so that streams stay far apart.
_STRIDE = 0x9E3779B97F4A7C15F39CC0605CEDC835
_PERIOD = 2**128
_SPAWNED = 17  # key of the seeds that generators of trials spawn


class _Seeds(ISpawnableSeedSequence):
    """The seeds that the generator of a trial spawns: they follow from the trial, not from others.

    NumPy counts what was spawned beside the state of a generator, so that it would go on from one
    trial to the next, and begin anew wherever a run is cut into spans.
    """

    def __init__(self, seed: int) -> None:
        self._own = np.random.SeedSequence(seed)
        self.trial = self.spawned = 0

    @property
    def entropy(self) -> Any:
        return self._own.entropy

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        return self._own.generate_state(n_words, dtype)

    def spawn(self, n_children: int) -> Any:
        first, self.spawned = self.spawned, self.spawned + n_children
        return [
            np.random.SeedSequence(self.entropy, spawn_key=(_SPAWNED, self.trial, number))
            for number in range(first, self.spawned)
        ]


class Streams:
    """The generators of consecutive trials; `trial` is the number of the last one handed out.

    Parameters
    ----------
    seed : int
        Seed of the whole run.
    start, stop : int
        First trial, and one past the last.
    """

    __slots__ = ("_bits", "_generator", "_left", "_seed", "_seeds", "_state", "_stride", "trial")

    def __init__(self, seed: int, start: int, stop: int) -> None:
        self._seeds = _Seeds(seed)
        seeds: Any = self._seeds
        bits = np.random.PCG64DXSM(seeds)
        bits.advance(start * _STRIDE % _PERIOD)
        self._state: Any = bits.state
        self._stride = _stride(bits)
        self._bits, self._generator = bits, np.random.Generator(bits)
        self.trial, self._left = start - 1, stop - start
        self._seed = seed

    def __iter__(self) -> Streams:
        """Return itself."""
        return self

    def __next__(self) -> np.random.Generator:
        """Move the generator to the stream of the next trial."""
        if self._left <= 0:
            raise StopIteration
        self._left -= 1
        self.trial += 1
        self._seeds.trial, self._seeds.spawned = self.trial, 0
        self._bits.state = self._state
        multiplier, increment = self._stride
        inner = self._state["state"]
        inner["state"] = (multiplier * inner["state"] + increment) % _PERIOD
        return self._generator

    def cut(self, size: int) -> Iterator[tuple[np.random.Generator, int, int, int]]:
        """Cut the trials that are left into blocks of which each has one stream.

        Gives for each block its generator, its first trial, which may be an earlier one, and the
        first of those asked for with the one past the last.
        """
        first, stop = self.trial + 1, self.trial + 1 + self._left
        blocks = Streams(self._seed, first // size, -(-stop // size))
        for generator in blocks:
            begin = blocks.trial * size
            yield generator, begin, max(first, begin), min(stop, begin + size)


def streams(seed: int, start: int, stop: int) -> Streams:
    """Move one generator through the streams of the trials from ``start`` up to ``stop``."""
    return Streams(seed, start, stop)


def _stride(bits: np.random.PCG64DXSM) -> tuple[int, int]:
    """Multiplier and increment of one stride, which is an affine map of the 128-bit state.

    Computing the next state this way costs a tenth of asking the generator to advance. The map is
    measured on the generator itself at two states, so no constant of its algorithm is repeated.
    """
    kept: Any = bits.state
    images = []
    for start in (0, 1):
        moved: Any = {**kept, "state": {**kept["state"], "state": start}}
        bits.state = moved
        bits.advance(_STRIDE)
        images.append(int(bits.state["state"]["state"]))
    bits.state = kept
    return (images[1] - images[0]) % _PERIOD, images[0]
