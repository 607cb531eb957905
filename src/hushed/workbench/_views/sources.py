"""What files of code define, by reading them: nothing is run to list them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from hushed._ground.printing import brief
from hushed.workbench._views.reading import Words

_LARGEST = 2**20
POPULATIONS = ("file", "range", "normal", "simulator")


@dataclass(frozen=True, slots=True, kw_only=True)
class Defined:
    """A function that a file defines.

    Parameters
    ----------
    spec : str
        ``FILE.py:NAME``.
    takes : str
        Its parameters.
    says : str
        The first line of its docstring; empty without one.
    """

    spec: str
    takes: str
    says: str


def list_functions(folder: Path, files: list[str]) -> tuple[list[Defined], dict[str, str]]:
    """List the functions at the top of files, and why a file could not be read."""
    found: list[Defined] = []
    problems: dict[str, str] = {}
    for name in files:
        try:
            path = folder / name
            if path.stat().st_size > _LARGEST:
                problems[name] = "it is larger than 1 MB"
                continue
            tree = ast.parse(path.read_text(encoding="utf-8-sig"))
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError) as cause:
            problems[name] = brief(
                getattr(cause, "msg", None) or str(cause) or "it is not readable"
            )
            continue
        found += [
            Defined(
                spec=f"{name}:{each.name}",
                takes=", ".join(one.arg for one in (*each.args.posonlyargs, *each.args.args)),
                says=(ast.get_docstring(each) or "").partition("\n")[0],
            )
            for each in tree.body
            if isinstance(each, ast.FunctionDef) and not each.name.startswith("_")
        ]
    return found, problems


def as_argument(path: str) -> str:
    """Write a name of a file or function so that no command takes it for an option."""
    return f"./{path}"


def read_population(form: Words, tables: list[str], functions: list[Defined]) -> str:
    """Read where public rows come from, as commands are told."""
    kind = form.choose("population", POPULATIONS)
    if kind == "file":
        needed = "Choose the file with the public rows."
        return as_argument(form.choose("population_file", tables, needed=needed))
    if kind == "simulator":
        specs = [each.spec for each in functions]
        needed = "Choose the function that draws rows."
        return as_argument(form.choose("simulator", specs, needed=needed))
    first, second = ("low", "high") if kind == "range" else ("mean", "std")
    one = form.say_number(first)
    other = form.say_number(second, above=0.0 if kind == "normal" else float("-inf"))
    if kind == "range" and not {first, second} & set(form.errors) and float(one) >= float(other):
        form.refuse(second, "the highest value must be above the lowest one")
    return f"{'uniform' if kind == 'range' else 'normal'}:{one},{other}"
