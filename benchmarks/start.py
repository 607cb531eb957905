"""Time until the library, and the command, can be used: as ratios to importing NumPy and SciPy.

Run with ``python -m benchmarks start``. Each line is a fresh process, in turns, so that all meet
the same machine; processor time, as most of a start is reading modules. The very first start, which
compiles the library, is left out. Predicted: the import costs twice that of NumPy and SciPy
together, and the version on the command line a tenth of a second more than Python itself.
Got: the import 0.03 of NumPy and SciPy, for names are loaded when they are first used; tables and
the ledger 0.6, the version 0.14, the help of a command with many options 1.0.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

STARTS = {
    "python alone": ["-c", "pass"],
    "import numpy, scipy.stats": ["-c", "import numpy, scipy.stats"],
    "import hushed": ["-c", "import hushed"],
    "hs.table, hs.Ledger": ["-c", "import hushed as hs; hs.table; hs.Ledger; hs.Query"],
    "hushed --version": ["-m", "hushed", "--version"],
    "hushed query -h": ["-m", "hushed", "query", "-h"],
}
PEER = "import numpy, scipy.stats"


def seconds(words: list[str]) -> float:
    """Processor time of one process that starts, does this and ends."""
    before = os.times()
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])  # of children


def main(quick: bool = False) -> None:
    """Print the medians, and what each is of the peer."""
    for words in STARTS.values():
        seconds(words)
    rounds = [
        {name: seconds(words) for name, words in STARTS.items()} for _ in range(2 + 9 * (not quick))
    ]
    middle = {name: statistics.median(each[name] for each in rounds) for name in STARTS}
    for name, found in middle.items():
        print(
            f"{name:28} {found:.2f} s of a processor, {found / middle[PEER]:.2f} of NumPy and SciPy"
        )
