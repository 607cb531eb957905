"""Functions of a user's own file, loaded by its path and their name."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hushed._ground.printing import plain_path, suggest_path
from hushed.errors import NotFound, ParameterError


def read_function(spec: str) -> Any:
    """Load what ``FILE.py:NAME`` names."""
    file, colon, name = spec.rpartition(":")
    if not colon or not name:
        raise ParameterError(f"expected FILE.py:NAME, got {plain_path(spec)}")
    path = Path(file)
    if not path.is_file():
        nearby = sorted(p.name for p in path.parent.glob("*.py")) if path.parent.is_dir() else []
        there = f"; Python files there: {', '.join(nearby)}" if nearby else ""
        raise NotFound(f"there is no file {plain_path(file)}{there}{suggest_path(file)}")
    module = _module(path)
    if not hasattr(module, name):
        names = sorted(
            key
            for key, value in vars(module).items()
            if not key.startswith("_")
            and not isinstance(value, ModuleType)
            and getattr(value, "__module__", module.__name__) == module.__name__
        )
        raise NotFound(
            f"{path.name} defines no {name!r}; it defines {', '.join(names) or 'nothing'}"
        )
    return getattr(module, name)


def _module(path: Path) -> ModuleType:
    import cloudpickle  # noqa: PLC0415

    name = f"hushed_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise ParameterError(f"{path.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as cause:
        raise ParameterError(
            f"{path.name} failed when it was loaded: {type(cause).__name__}: {cause}"
        ) from cause
    cloudpickle.register_pickle_by_value(module)
    return module
