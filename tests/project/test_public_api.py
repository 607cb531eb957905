"""What is public is listed, sorted, importable and documented; and nothing else is."""

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

import hushed

MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(hushed.__path__, "hushed.")
    if "__main__" not in info.name
)


def defined_here(module):
    """Public names that a module defines itself, rather than imports."""
    found = set()
    for name, value in vars(module).items():
        if name.startswith("_") or isinstance(value, types.ModuleType):
            continue
        if getattr(value, "__module__", None) == module.__name__:
            found.add(name)
    return found


# What is private by name is reached by no user; what users may use of it, a package lists.
PUBLIC = [name for name in MODULES if "._" not in name]


@pytest.mark.parametrize("name", PUBLIC)
def test_all_lists_what_the_module_defines(name):
    """__all__ exists, holds every public class and function, and only names that exist."""
    module = importlib.import_module(name)
    listed = set(module.__all__)
    assert len(listed) == len(module.__all__)
    assert defined_here(module) <= listed
    for each in listed:
        assert hasattr(module, each), each


def test_the_package_lists_its_names_sorted():
    """hushed.__all__ is sorted as ruff sorts it, without doubles, and every name imports."""
    names = hushed.__all__
    assert names == sorted(names, key=lambda n: (not n.isupper(), n[0].islower(), n))
    assert len(set(names)) == len(names)
    for name in names:
        assert getattr(hushed, name) is not None


def test_type_checkers_see_what_is_loaded():
    """Each public name is imported statically from the module that it is loaded from."""
    tree = ast.parse(Path(hushed.__file__).read_text(encoding="utf-8"))
    (static,) = [each for each in tree.body if isinstance(each, ast.If)]
    seen = {
        alias.name: each.module.removeprefix("hushed").removeprefix(".") or alias.name
        for each in static.body
        if isinstance(each, ast.ImportFrom)
        for alias in each.names
    }
    assert seen == {name: hushed._HOME.get(name, name) for name in hushed.__all__}


def test_names_are_loaded_when_asked_for():
    """A bare import loads no NumPy, and no module hides a function."""
    code = (
        "import sys, hushed; assert 'numpy' not in sys.modules; "
        "import hushed.auditing, hushed.releasing; from hushed.auditing import Claim; "
        "assert hushed.audit is hushed.auditing.audit; "
        "assert hushed.release is hushed.releasing.release; "
        "from hushed.cli import app; assert 'hushed.cli._auditing' not in sys.modules; "
        "assert not {'sklearn', 'hushed.sklearn'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'releases'"):
        _ = hushed.releases


def test_a_command_that_asks_no_table_loads_none_of_their_code():
    """It is a seventh of the time that such a command takes to start."""
    code = (
        "import sys, hushed.cli._releasing, hushed.cli._statistics, hushed.cli._blocks; "
        "assert 'hushed.tables' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_fixed_names_are_there():
    """The names that other code relies on."""
    wanted = {
        "sample_sensitivity", "proven_sensitivity", "Laplace", "Gaussian", "Exponential",
        "Bernstein",
        "release", "verify", "Certificate", "Guarantee", "populations", "errors", "union_gamma",
    }  # fmt: skip
    assert wanted <= set(hushed.__all__)
    for name in ("Uniform", "Normal", "Exponential", "PublicTable", "Simulator"):
        assert name in hushed.populations.__all__


def shown_from_private(module):
    """Public classes and functions of a module that one of its private modules defines."""
    found = set()
    for name in module.__all__:
        value = getattr(module, name)
        home = getattr(value, "__module__", "")
        if home.startswith(f"{module.__name__}._") and hasattr(value, "__qualname__"):
            found.add(name)
    return found


@pytest.mark.parametrize("name", PUBLIC)
def test_public_things_are_documented(name):
    """Every public class, function and method has a docstring, and no **kwargs."""
    module = importlib.import_module(name)
    for each in (defined_here(module) & set(module.__all__)) | shown_from_private(module):
        value = getattr(module, each)
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        assert value.__doc__, each
        if inspect.isfunction(value):
            kinds = {p.kind for p in inspect.signature(value).parameters.values()}
            assert inspect.Parameter.VAR_KEYWORD not in kinds


def test_errors_inherit_one_class_and_pickle():
    """All that is raised on purpose is a HushedError, and all that is warned of a HushedWarning."""
    from hushed import errors

    for name in errors.__all__:
        assert issubclass(getattr(errors, name), (errors.HushedError, errors.HushedWarning))
