"""Run a benchmark by its name: ``python -m benchmarks NAME [OPTIONS]``.

Without a name it lists what there is; ``all`` runs every one but the comparison with other
libraries, which makes an environment of its own. ``--quick`` shows that a benchmark works; its
numbers say little. ``python -m benchmarks NAME --help`` has what was predicted and what was got.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib
import pkgutil
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
APART = "peers"


@cache
def first_lines() -> dict[str, str]:
    """What each benchmark is about, by name; read from its file, so that nothing is imported."""
    found = {}
    for module in sorted(pkgutil.iter_modules([str(FOLDER)]), key=lambda each: each.name):
        if not module.name.startswith("_"):
            file = f"{module.name}/__init__.py" if module.ispkg else f"{module.name}.py"
            text = ast.get_docstring(ast.parse((FOLDER / file).read_text()))
            found[module.name] = (text or "").partition("\n")[0]
    return found


def listing() -> str:
    lines = [f"  {name:16}{line}" for name, line in first_lines().items()]
    lines.append(f"  {'all':16}Every one of them but {APART}.")
    return "\n".join(["usage: python -m benchmarks NAME [--quick] [OPTIONS]", "", *lines])


def refusal(name: str) -> str:
    """Say that there is no such benchmark, and what there is."""
    close = difflib.get_close_matches(name, [*first_lines(), "all"], n=1)
    meant = f" Did you mean {close[0]}?" if close else ""
    return f"There is no benchmark {name!r}.{meant}\n\n{listing()}"


def run(name: str, words: Sequence[str]) -> None:
    """Run one benchmark with the options it has."""
    try:
        module = importlib.import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as error:
        sys.exit(
            f"{name} needs {error.name}, which is not installed here; `make bench` installs it."
        )
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="small and few: shows that it works")
    if hasattr(module, "add_options"):
        module.add_options(parser)
    options = vars(parser.parse_args(words))
    print(f"\n== {name}", flush=True)
    with warnings.catch_warnings():  # of what is measured, and not of what is promised
        warnings.filterwarnings("ignore", "the function was not declared symmetric")
        module.main(**options)


def main(words: Sequence[str]) -> None:
    """List the benchmarks, or run those that are named."""
    if not words or words[0] in ("-h", "--help"):
        print(f"{__doc__}\n{listing()}")
        return
    known = first_lines()
    name = next((word for word in words if not word.startswith("-")), None)
    if name is None:
        sys.exit(f"{' '.join(words)} needs a name before it.\n\n{listing()}")
    if name not in (*known, "all"):
        sys.exit(refusal(name))
    rest = list(words)
    rest.remove(name)
    for each in [each for each in known if each != APART] if name == "all" else [name]:
        run(each, rest)


if __name__ == "__main__":
    main(sys.argv[1:])
