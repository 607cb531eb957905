"""A parameter that is refused deep in the library is called by its option on the command line."""

import ast
import importlib
import re
from pathlib import Path

import pytest
import typer
from typer.core import TyperOption
from typer.testing import CliRunner

import hushed.cli
from hushed.cli import COMMANDS, app, load
from hushed.cli._spelling import _OTHER_WORDS

SENSITIVITY = ["sensitivity", "f.py:f", "--population", "uniform:0,1"]
COST = ["cost", "--beta", "0.05", "--budget", "300000"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a function."""
    (tmp_path / "f.py").write_text("def f(rows):\n    return rows.mean()\n")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([*SENSITIVITY, "--rows", "9", "--gamma", "2"], "--gamma must be a number in (0, 1)"),
        ([*SENSITIVITY, "--rows", "1"], "--rows must be an integer of 2 or more"),
        ([*SENSITIVITY, "--rows", "9", "--pairs", "0"], "--pairs must be 1 or more"),
        ([*SENSITIVITY, "--rows", "9", "--seed", "-1"], "--seed must be an integer of 0 or more"),
        ([*COST, "--error", "-2", "--per-person", "5500", "--people", "100"], "--error must be"),
        ([*COST, "--error", "2", "--per-person", "5500", "--people", "0"], "--people must be"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_the_option_is_named(arguments, told):
    """The message begins with the option as it is typed."""
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert told in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["query", "x.csv", "--group-by", "ward"], "; did you mean '--by'?"),
        (["query", "x.csv", "--filter=a > 1"], "; did you mean '--where'?"),
        (["statistic", "mode", "x.csv", "--method", "x"], "; did you mean '--mechanism'?"),
        (["query", "x.csv", "--epsillon", "1"], "; did you mean '--epsilon'"),
        (["query", "x.csv", "--rows", "5"], "; did you mean '--max-rows-per-user'?"),
        (["certify", "--key", "annual"], "; did you mean '--entry'?"),
        (["compose", "--filter", "1"], "No such option: --filter"),  # has no --where to mean
        (["query", "x.csv", "--count", "--qqq"], "No such option: --qqq "),
        (["query", "x.csv", "--noise", "no"], "'--noise': 'no' is not one of 'laplace'"),
    ],
)
def test_words_of_other_tools_lead_to_the_option(arguments, told):
    """That of SQL, or one that is misspelt; a command without it does not name it."""
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert told in done.stderr
    assert ("--where" in done.stderr) == ("--where" in told)


def test_other_words_lead_to_options_that_exist():
    """Each option is that of some command."""
    assert set(_OTHER_WORDS) <= set().union(*(each for _, _, each in options_of_commands()))


OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
FOREIGN = {"--nthreads", "--nworkers", "--address"}  # of Dask and Ray
OF_OTHERS = {("_keeping", "--keep"), ("_verifying", "--out"), ("__init__", "--version")}
# The command that puts a copy of the ledger of a server back.
OF_OTHERS |= {("_safekeeping", "--accept-loss")}
# The command that makes a page of a certificate that is there.
OF_OTHERS |= {("_certifying", "--key")}
# The command whose charges a budget is opened for.
OF_OTHERS |= {("_ledgers", "--user")}
# The command that a comparison leads to.
OF_OTHERS |= {
    ("_next_command", each)
    for each in (
        *("--mechanism", "--noise", "--type", "--median", "--quantile", "--mean"),
        *("--aggregate", "--candidate", "--k", "--by", "--keys", "--top-k"),
    )
}
FOLDER = Path(hushed.cli.__file__).parent


def options_of_commands():
    """Options of each command and of those in its group, by the module that it stands in."""
    found = []
    for name, (module, _) in COMMANDS.items():
        command = typer.main.get_command(load(name))
        for each in (command, *getattr(command, "commands", {}).values()):
            options = [o for p in each.params for o in (*p.opts, *p.secondary_opts)]
            found.append(
                (
                    f"_{module}",
                    {p.name for p in each.params if isinstance(p, TyperOption)},
                    {*options, "--help"},
                )
            )
    return found


def imports(module):
    """Modules of the command line that one needs, and theirs; itself among them."""
    found, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name in found or not (FOLDER / f"{name}.py").exists():
            continue
        found.add(name)
        text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
        waiting += re.findall(r"from hushed\.cli\.(\w+) import", text)
        waiting += re.findall(r"from hushed\.cli import (\w+)", text)
    return found


def words_in(path):
    """Texts of a module, without docstrings."""
    text = path.read_text(encoding="utf-8")
    if not OPTION.search(text):
        return
    tree = ast.parse(text)
    skipped = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from () if id(node) in skipped else OPTION.findall(node.value)


@pytest.mark.slow
def test_every_option_that_is_named_exists():
    """In words of the command line: of a command that can say them; elsewhere, of any."""
    commands = options_of_commands()
    may_say = {module: imports(module) for module, _, _ in commands}
    everywhere = set().union(*(options for _, _, options in commands))
    checked, unknown = 0, set()
    for path in FOLDER.parent.rglob("*.py"):
        known = everywhere
        if path.parent == FOLDER and path.stem != "__init__":
            theirs = [opts for module, _, opts in commands if path.stem in may_say[module]]
            known = set().union(*theirs) or everywhere
        named = set(words_in(path))
        unknown |= {(path.stem, each) for each in named - known - FOREIGN}
        checked += len(named)
    assert unknown == OF_OTHERS
    assert checked > 200


def test_every_hint_is_for_a_parameter_and_names_options_of_its_command():
    """A hint takes the place of one in Python, for the command that runs."""
    commands = options_of_commands()
    for module in sorted({module for module, _, _ in commands} | {"_spelling"}):
        hints = getattr(importlib.import_module(f"hushed.cli.{module}"), "_HINTS", {})
        for name, hint in hints.items():
            taking = [
                options
                for owner, parameters, options in commands
                if name in parameters and module in (owner, "_spelling")
            ]
            assert taking, f"no command of {module} has a parameter {name}"
            said = hint if isinstance(hint, str) else hint("types={'cost': 'float'}")
            assert isinstance(hint, str) or "cost=float" in said
            for options in taking:
                assert set(OPTION.findall(said)) <= options, (module, name, said)
