"""Run every benchmark of this folder: ``python -m benchmarks [NAME ...] [FOLDER]``.

A folder is for benchmarks that write files.
The comparison with other libraries is a command of its own: ``python -m benchmarks.peers``.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path


def main(names: list[str]) -> None:
    folder = str(Path(__file__).parent)
    found = sorted(m.name for m in pkgutil.iter_modules([folder]) if not m.ispkg)
    named = [name for name in names if name in found or not Path(name).is_dir()]
    for name in named or found:
        if name not in found:
            sys.exit(f"no benchmark {name!r}; there are {', '.join(found)}")
        print(f"\n== {name}")
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
