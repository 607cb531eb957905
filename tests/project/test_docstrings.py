"""The docstrings of what users may use pass the checks of numpydoc listed in pyproject.toml."""

import importlib
import importlib.util
import inspect
import re
import sys
import tomllib
import types
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
from numpydoc.validate import validate

import hushed

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CHECKS = frozenset(PROJECT["tool"]["numpydoc_validation"]["checks"])

SPECIMEN = '''
from dataclasses import dataclass


def scale(rows, factor):
    """Scale rows

    Parameters
    ----------
    rows
        What to scale.
    """
    return [row * factor for row in rows]


class Scale:
    """A scale."""

    def by(self, factor):
        """Scale by a factor."""
        return factor

    def to(self, size):
        """Scale to a size.

        Parameters
        ----------
        size : int
            The size.

        Returns
        -------
        int
            The size.
        """
        return size


class Doubling(Scale):
    """One that leaves what a method takes and gives to its base, where that says so."""

    def by(self, factor):
        """Scale by twice a factor."""
        return 2 * factor

    def to(self, size):
        """Scale to twice a size."""
        return 2 * size


@dataclass
class Base:
    """A base.

    Parameters
    ----------
    told : int
        Told here.
    """

    told: int


@dataclass
class Silent(Base):
    """One with a field of its own."""

    untold: int


@dataclass
class Telling(Base):
    """One that leaves the fields of its base to the base.

    Parameters
    ----------
    own : int
        Told here.
    """

    own: int
'''


def documented():
    """Name the packages that have a page of reference."""
    spec = importlib.util.spec_from_file_location("generated", ROOT / "docs" / "generated.py")
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    return [f"hushed.{name}" for name in pages.public_modules()] + ["papers"]


def on_the_face(package, names):
    """Give the classes and functions of a package, each class with its methods, by their paths."""
    found = {}
    for name in names:
        value = getattr(package, name)
        if inspect.isfunction(value):
            found[f"{package.__name__}.{name}"] = value
        elif inspect.isclass(value):
            found |= {f"{package.__name__}.{name}": value} | methods(package, name, value)
    return found


def methods(package, name, value):
    """Give the public methods and properties of a class, those of our own base classes too."""
    ours = (
        each
        for each in inspect.classify_class_attrs(value)
        if not each.name.startswith("_") and each.kind != "data"
        if each.defining_class.__module__.split(".")[0] == package.__name__.split(".")[0]
    )
    return {f"{package.__name__}.{name}.{each.name}": each.object for each in ours}


def takes_what_a_base_takes(value):
    """Tell a class whose parameters stand in the docstring of its base, or that is a protocol."""
    return inspect.isclass(value) and (
        getattr(value, "_is_protocol", False) or "__init__" not in vars(value)
    )


def fields_of_bases(value):
    """Name the fields that a dataclass has from others, whose docstrings say what they are."""
    bases = value.__mro__[1:] if inspect.isclass(value) else ()
    return {each.name for base in bases if is_dataclass(base) for each in fields(base)}


def is_told_by_a_base(path):
    """Tell a method that overrides one whose docstring says what it takes and gives."""
    owner, _, method = path.rpartition(".")
    home, _, kind = owner.rpartition(".")
    bases = getattr(getattr(sys.modules.get(home), kind, None), "__mro__", ())[1:]
    over = [vars(base).get(method) for base in bases]
    return any(
        re.search(r"\n *(Parameters|Returns)\n", getattr(each, "__doc__", None) or "")
        for each in over
    )


def findings(path, value):
    """List what numpydoc finds in one docstring; PR01: parameters that are not documented."""
    left_out = {"PR01"} if takes_what_a_base_takes(value) else set()
    left_out |= {"PR01", "RT01"} if is_told_by_a_base(path) else set()
    told = validate(path)["errors"]
    elsewhere = fields_of_bases(value)
    return [
        f"{path}: {code} {text}"
        for code, text in told
        if code in CHECKS - left_out
        and not (code == "PR01" and set(re.findall(r"'(\w+)'", text)) <= elsewhere)
    ]


@pytest.mark.parametrize("name", documented())
def test_docstrings_of_a_documented_package_are_whole(name):
    """Every class, method and function on a page of reference says what it takes and gives."""
    importlib.import_module(name)
    package = sys.modules[name]
    face = on_the_face(package, package.__all__)
    assert not [line for path, value in face.items() for line in findings(path, value)]


def test_docstrings_of_the_names_of_hushed_are_whole():
    """Every name that `import hushed` gives has a whole docstring, or is a package with one."""
    for name in hushed.__all__:
        value = getattr(hushed, name)
        assert value.__doc__, name
        if not isinstance(value, types.ModuleType):
            home = sys.modules[value.__module__]
            face = on_the_face(home, [name])
            assert face, name
            assert not [line for path, each in face.items() for line in findings(path, each)]


def test_bad_docstrings_are_found(monkeypatch, tmp_path):
    """A full stop, a type, parameters and Returns are missed; what a base says is not."""
    (tmp_path / "specimen.py").write_text(SPECIMEN)
    monkeypatch.syspath_prepend(tmp_path)
    face = on_the_face(
        importlib.import_module("specimen"),
        ["scale", "Scale", "Doubling", "Base", "Silent", "Telling"],
    )
    told = [line for path, value in face.items() for line in findings(path, value)]
    wanted = {"scale:": {"SS03", "PR01", "PR04", "RT01"}, "Scale.by:": {"PR01", "RT01"}}
    wanted |= {"Scale.to:": set(), "Doubling.by:": {"PR01", "RT01"}, "Doubling.to:": set()}
    wanted |= {"Base:": set(), "Silent:": {"PR01"}, "Telling:": set()}
    for name, codes in wanted.items():
        assert {line.split()[1] for line in told if f"specimen.{name}" in line} == codes
