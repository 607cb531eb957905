"""What a worker must have: the same Python, the same hushed, and the packages the work names.

It is asked before any of the work is loaded: code that another Python made ends the process.
"""

from __future__ import annotations

import hashlib
import pickletools
import sys
from collections.abc import Mapping
from functools import cache
from importlib import metadata, util
from pathlib import Path

_PYTHON, _HUSHED = "python", "hushed"
_IMPORT = "cloudpickle.cloudpickle.subimport"  # called with the name of a module that is held
_THERE = "installed"  # of a module that belongs to no distribution
_PIP = ""  # no module: names of those that pip knows by another one, as sklearn=scikit-learn


def read_requirements(content: bytes) -> dict[str, str]:
    """List what a pickle needs where it is loaded, with versions here."""
    found = {_PYTHON: _read_python(), _HUSHED: digest_source(), "numpy": _read_version("numpy")}
    names = {name.partition(".")[0] for name in _read_modules(content)}
    for name in sorted(names - {"__main__", "__mp_main__", _HUSHED} - sys.stdlib_module_names):
        found.setdefault(name, _read_version(name))
    asked = [name for name in found if name not in (_PYTHON, _HUSHED) and found[name] != _THERE]
    others = [(name, _name_distribution(name)) for name in asked]
    found[_PIP] = " ".join(f"{name}={known}" for name, known in others if known != name)
    return found


def _name_distribution(module: str) -> str:
    """Name what pip installs for a module: scikit-learn for sklearn."""
    try:
        metadata.version(module)
    except metadata.PackageNotFoundError:
        return metadata.packages_distributions().get(module, [module])[0]
    return module


def _read_modules(content: bytes) -> set[str]:
    """List the modules that a pickle imports.

    What travels by its code names its module, too, and does not need it.
    """
    found: set[str] = set()
    pushed: list[str] = ["", ""]  # strings and names of globals, in order; other things are ""
    memo: list[str] = []
    for code, arg, _ in pickletools.genops(content):
        if code.name == "MEMOIZE":
            memo.append(pushed[-1])
        elif code.name in ("BINGET", "LONG_BINGET"):
            pushed.append(memo[arg] if isinstance(arg, int) and arg < len(memo) else "")
        elif code.name == "STACK_GLOBAL":
            found.add(pushed[-2])
            pushed.append(f"{pushed[-2]}.{pushed[-1]}")
        elif code.name == "GLOBAL":
            found.add(str(arg).partition(" ")[0])
            pushed.append(str(arg).replace(" ", "."))
        else:
            if code.name == "TUPLE1" and pushed[-2] == _IMPORT:
                found.add(pushed[-1])
            pushed.append(arg if isinstance(arg, str) else "")
    return found & sys.modules.keys()


def find_lacks(wanted: Mapping[str, str]) -> str:
    """Say in words what is not here, or differs; empty if all is as wanted."""
    python = wanted.get(_PYTHON, _read_python())
    if python != _read_python():
        return f"it runs Python {_read_python()}, and the work comes from Python {python}"
    if wanted.get(_HUSHED, digest_source()) != digest_source():
        return (
            f"its hushed ({_read_version(_HUSHED)}) has other source code than the one here: "
            "install the same on both"
        )
    missing, other = [], []
    for name in wanted.keys() - {_PYTHON, _HUSHED, _PIP}:
        here = _read_version(name)
        if not here:
            missing.append(name)
        elif here != wanted[name]:
            other.append(f"{name} {here} where {wanted[name]} is wanted")
    called = dict(each.split("=") for each in wanted.get(_PIP, "").split())
    asked = sorted(wanted.keys() - {_PYTHON, _HUSHED, _PIP})
    lines = [f"{called.get(e, e)}=={wanted[e]}" for e in asked if wanted[e] != _THERE]
    said = []
    if missing:
        said.append(f"it has no module {', '.join(sorted(missing))}")
    if other:
        said.append(f"it has {', '.join(sorted(other))}")
    if said and lines:
        said.append(f"there: pip install {' '.join(lines)}")
    return "; ".join(said)


def _read_python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _read_version(name: str) -> str:
    """Version of a package; a word if it is there and has none, nothing if it is not."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
    module = sys.modules.get(name)
    if module is None:
        try:
            if util.find_spec(name) is None:
                return ""
        except (ImportError, ValueError):
            return ""
    return str(getattr(module, "__version__", _THERE))


@cache
def digest_source() -> str:
    """Digest the source code of this library."""
    root = Path(__file__).resolve().parent.parent
    found = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        found.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]
