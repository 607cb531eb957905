"""The tree of errors, their fields, and what the command line makes of them."""

import pickle
import re

import pytest
import typer
from typer.testing import CliRunner

import hushed as hs
from hushed import errors
from hushed.cli._outcome import finish
from hushed.cli._spelling import SpellingCommand

NOT_FROM_A_MESSAGE = {
    "MissingExtra": {"what": "a figure", "extra": "plot"},
    "TooFewPairs": {"given": 1, "needed": 2, "gamma": 0.1, "calibration": "dkw"},
    "TooFewRows": {"given": 1, "needed": 2, "gamma": 0.1, "supported": None, "advice": "more"},
    "TooFewSamples": {"given": 1, "needed": 2, "claim": "it"},
}
WARNINGS = {"HushedWarning", "PlacesLeftOut"}  # never raised by the library


def made(name):
    """An error of a name."""
    kind = getattr(errors, name)
    return kind(**NOT_FROM_A_MESSAGE[name]) if name in NOT_FROM_A_MESSAGE else kind("words")


def ended(error, *options, **settings):
    """How a command with two options ends that raises an error."""
    app = typer.Typer()

    @app.command(cls=SpellingCommand)
    def ask(types: str = typer.Option("", "--type"), workers: int = 1):
        with finish(json=False, **settings):
            raise error

    return CliRunner().invoke(app, options)


def test_the_tree_in_the_docstring_is_the_tree():
    """Each name stands under its base class; refusals stand together."""
    above, found = [], {}
    for line in errors.__doc__.splitlines():
        match = re.match(r"    ((?:[ |]|`-|- )*)([A-Z]\w+)", line)
        if match:
            depth = len(match[1]) // 4
            above[depth:] = [match[2]]
            found[match[2]] = above[depth - 1] if depth else "Exception"
    bases = {name: getattr(errors, name).__bases__[0] for name in errors.__all__}
    known = {name: base.__name__ for name, base in bases.items() if base is not UserWarning}
    assert found == known | {"HushedWarning": "Exception"}  # the top of its tree
    assert issubclass(errors.HushedWarning, UserWarning)


@pytest.mark.parametrize("name", sorted(set(errors.__all__) - WARNINGS))
def test_a_refusal_ends_with_1_and_all_else_with_2(name):
    """Whatever its name is."""
    code = 1 if issubclass(getattr(errors, name), errors.Refusal) else 2
    assert ended(made(name)).exit_code == code


def test_fields_stay_when_an_error_travels_between_processes():
    """The parameter, and the hint after the message."""
    error = errors.ParameterError("no good", parameter="types", hint="give types={}")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == "no good; give types={}"
    assert (again.message, again.parameter, again.hint) == ("no good", "types", "give types={}")
    left = errors.Overspent("too much", "clinic", 0.5)
    assert str(pickle.loads(pickle.dumps(left))) == "too much"
    assert (left.budget, left.epsilon_left) == ("clinic", 0.5)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (errors.ParameterError("must be", parameter="types"), "--type: must be"),
        (errors.ParameterError("types must be", parameter="types"), "--type must be"),
        (errors.ParameterError("no good", parameter="types", hint="types={}"), "no good; own"),
        (errors.BadFunction("it fails", parameter="workers", hint="workers=1"),
         "it fails; use --workers 1"),
        (errors.BadFunction("it fails", parameter="workers"), "it fails"),
        (errors.ParameterError("elsewhere", parameter="other", hint="other=1"),
         "elsewhere; other=1"),
    ],
)  # fmt: skip
def test_a_command_names_its_options(error, words):
    """In place of parameters, with hints of its own; a parameter it lacks stays as it is."""
    told = ended(error, hints={"types": "own"}).stderr.strip()
    assert told == f"{type(error).__name__}: {words}"


def test_a_name_of_a_megabyte_is_not_told_in_full():
    """What was met and what to do stay; the middle of a very long message is left out."""
    name = "n" * 2**20
    with pytest.raises(errors.ParameterError) as raised:
        hs.proven_sensitivity(1.0, name, argument="stated")
    told = str(raised.value)
    assert len(told) < 4000
    assert told.startswith("norm must be one of")
    assert told.endswith("got a text of 1048576 characters")
    told = str(errors.BadRows(f"met {name}, do this"))
    assert len(told) < 4000
    assert "characters left out" in told
    assert str(errors.BadRows("a" * 3999)) == "a" * 3999
