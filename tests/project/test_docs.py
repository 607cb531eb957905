"""Every code block on every page runs, and what it prints is what the page says.

A fence says what its block is:

* ``python``: runs after those before it on the page, in one process with the example files;
* ``python title="NAME.py"``, ``json title="NAME.json"``: a file for the commands of the page;
* ``text title="output"``: what the block or command before it prints, ``...`` for what varies;
* ``pycon``: a dialogue, compared line by line;
* ``console``: ``$ hushed ...``, ``$ python FILE`` and ``$ python -m papers ...``, run and compared
  with what follows them; a comment ``# exit code N`` names a code other than 0;
* ``sh``: setting up, and commands that take long; checked by name, not run;
* ``text``: formulas and layouts.

Calls, names and commands in the running text exist, and take the arguments that are shown.

A page that holds the comment ``<!-- slow -->`` is left to the slow tests.
"""

import ast
import contextlib
import doctest
import importlib
import inspect
import os
import pkgutil
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
import warnings
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pytest
import typer
from tests.commands import ended

import hushed
import papers
from hushed.cli import COMMANDS, EXAMPLES, load
from papers.__main__ import main as papers_main
from papers.__main__ import parser as papers_parser

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "papers/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAPERS = ["-m", "papers"]
KINDS = {"python", "file", "output", "pycon", "console", "sh", "text"}
LENIENT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    kind: str
    text: str
    title: str = ""


def parsed(text):
    """Blocks of a page, in order."""
    found = []
    for heading, body in FENCE.findall(text):
        language, _, rest = heading.partition(" ")
        titled = re.fullmatch(r'title="([^"]+)"', rest)
        title = titled.group(1) if titled else ""
        kind = language + f" {rest}" * bool(rest and not titled)
        if language in {"python", "json", "toml", "csv"} and title:
            kind = "file"
        if language == "text" and title == "output":
            kind = "output"
        found.append(Block(kind, body, title))
    return found


def blocks(page, *kinds):
    return [b for b in parsed(page.read_text()) if b.kind in kinds]


def pages_with(*kinds, default=PAGES):
    """Give the pages with such blocks, as parameters of a test; slow those not run by default."""
    chosen = [p for p in PAGES if blocks(p, *kinds)]
    return [
        pytest.param(
            p,
            id=str(p.relative_to(ROOT)),
            marks=[pytest.mark.slow]
            if "<!-- slow -->" in p.read_text() or p not in default
            else [],
        )
        for p in chosen
    ]


def commands(text):
    """Commands of a console block, the exit code each should have, and the output shown.

    A backslash at the end of a line joins it with the next one, as in a shell.
    """
    found = []
    for line in re.sub(r" \\\n *", " ", text).splitlines():
        if line.startswith("$ "):
            code = re.search(r"# exit code (\d+)$", line)
            found.append((line[2:], int(code.group(1)) if code else 0, []))
        else:
            assert found, f"output before any command: {line}"
            found[-1][2].append(line)
    return [(command, code, "\n".join(shown).strip()) for command, code, shown in found]


def same_output(wanted, got):
    got = "\n".join(line.rstrip() for line in got.strip().splitlines())
    return doctest.OutputChecker().check_output(wanted.strip() + "\n", got + "\n", LENIENT)


@pytest.fixture
def folder(tmp_path):
    """Give a folder with the example files, as a reader has who works in examples/."""
    for example in (ROOT / "examples").iterdir():
        if example.is_file():
            shutil.copy(example, tmp_path)
    return tmp_path


def ran(arguments, folder):
    """Run Python in a folder, with the very package that the tests import."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(hushed.__file__).parent.parent)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def shown_by(script, monkeypatch):
    """What a script prints, run as Python runs one, but where hushed is loaded already."""
    monkeypatch.chdir(script.parent)
    monkeypatch.setattr(sys, "argv", [str(script)])
    monkeypatch.syspath_prepend(script.parent)
    loaded = set(sys.modules)
    with redirect_stdout(StringIO()) as out, warnings.catch_warnings():
        warnings.simplefilter("error", hushed.errors.HushedWarning)
        try:
            runpy.run_path(str(script), run_name="__main__")
        finally:  # files of one folder are no modules of the next
            for name in set(sys.modules) - loaded:
                if str(script.parent) in str(getattr(sys.modules[name], "__file__", "")):
                    del sys.modules[name]
    return out.getvalue()


@pytest.mark.parametrize("page", pages_with("python"))
def test_python_blocks_run(page, folder, monkeypatch):
    """The Python blocks of a page run in order, and print what the page shows below them."""
    every = blocks(page, "python", "output", "console")
    pieces = [b for b in every if b.kind == "python"]
    shown = {
        sum(1 for b in every[: i + 1] if b.kind == "python") - 1: after.text
        for i, (before, after) in enumerate(pairwise(every))
        if before.kind == "python" and after.kind == "output"
    }
    mark = "\x1e"
    script = folder / "page.py"
    script.write_text(f"print({mark!r})\n".join(b.text for b in pieces))
    printed = shown_by(script, monkeypatch).split(mark + "\n")
    assert len(printed) == len(pieces)
    for index, wanted in shown.items():
        assert same_output(wanted, printed[index]), f"{wanted}\n--- but it was\n{printed[index]}"


@pytest.mark.parametrize("page", pages_with("pycon"))
def test_dialogues_give_what_is_shown(page):
    """The dialogues of a page, in order, answer as the page says."""
    parser, names = doctest.DocTestParser(), {}
    runner = doctest.DocTestRunner(optionflags=doctest.FAIL_FAST)
    for block in blocks(page, "pycon"):
        test = parser.get_doctest(block.text, names, page.name, str(page), 0)
        with warnings.catch_warnings():
            warnings.simplefilter("error", hushed.errors.HushedWarning)
            runner.run(test, clear_globs=False)
        names = test.globs
    result = runner.summarize(verbose=False)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("page", pages_with("console", default=[ROOT / "README.md"]))
def test_commands_run(page, folder):
    """The commands of a page run in order, with the exit code and the output that it shows."""
    for block in blocks(page, "file"):
        (folder / block.title).write_text(block.text)
    for block in blocks(page, "console"):
        for command, code, shown in commands(block.text):
            program, *arguments = shlex.split(command, comments=True)
            assert program in {"hushed", "python"}, command
            if program == "hushed":  # without the second of a new process
                done = ended(*arguments, cwd=folder)
            elif arguments[:2] == PAPERS:
                done = ended(*arguments[2:], cwd=folder, program=papers_main)
            else:
                done = ran(arguments, folder)
            assert done.returncode == code, (command, done.stdout, done.stderr)
            got = done.stdout + done.stderr
            assert not shown or same_output(shown, got), f"{shown}\n--- but it was\n{got}"


@pytest.mark.parametrize("page", pages_with("file"))
def test_files_of_a_page_are_used_by_it(page):
    """A block that is a file is named in a command, so it is not left out of the tests."""
    used = " ".join(b.text for b in blocks(page, "console"))
    for block in blocks(page, "file"):
        assert block.title in used


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_block_escapes(page):
    """Every block is of a known kind, and no command or dialogue stands outside of one."""
    text = page.read_text()
    assert {b.kind for b in parsed(text)} <= KINDS
    assert len(re.findall(r"^\s*(?:```|~~~)", text, re.MULTILINE)) == 2 * len(parsed(text))
    code = r"^(?: {4,}|\t)?(?:>>> |\$ )|^(?: {4,}|\t)(?:hushed|make|pip|python|import|from) "
    assert not re.findall(code, FENCE.sub("", text), re.MULTILINE)


@pytest.mark.parametrize("page", pages_with("sh"))
def test_set_up_names_what_exists(page):
    """Commands that set something up name targets and extras that exist."""
    makefile = (ROOT / "Makefile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    for block in blocks(page, "sh"):
        for line in block.text.splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["make"]:
                assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE), line
            elif words[:2] == ["pip", "install"]:
                asked = re.findall(r"\[(.*?)\]", line)
                assert {e for each in asked for e in each.split(",")} <= set(extras), line
                groups = re.findall(r"--group (\S+)", line)
                assert set(groups) <= set(project["dependency-groups"]), line
            elif words[:3] == ["python", *PAPERS]:
                assert not wrong_commands([shlex.join(words)]), line
            elif words[:1] == ["hushed"]:
                assert words[1] in COMMANDS
            else:
                raise AssertionError(f"not a command to set up: {line}")


def spans(page):
    """Code in the running text of a page."""
    return re.findall(r"`([^`\n]+)`", FENCE.sub("", page.read_text()))


def named(path):
    """What ``import hushed as hs`` lets one write as hs.PATH, or a module inside."""
    with contextlib.suppress(ModuleNotFoundError):
        return importlib.import_module(f"hushed.{path}")
    found = hushed
    for name in path.split("."):
        found = getattr(found, name)
    return found


def wrong_names(texts):
    """Dotted names that are not there."""
    found = []
    for text in texts:
        for name in re.findall(r"(?<![\w/.:])(?:hs|hushed)\.((?:[A-Za-z_]\w*\.?)+)", text):
            try:
                named(name.rstrip("."))
            except AttributeError:
                found.append(name)
    return found


def callables():
    """Public functions, classes and their methods, by name."""
    found = {}
    for info in pkgutil.iter_modules(hushed.__path__):
        module = importlib.import_module(f"hushed.{info.name}")
        for name in getattr(module, "__all__", ()):
            here = getattr(module, name)
            found.setdefault(name, []).append(here)
            if inspect.isclass(here):
                for method, value in inspect.getmembers(here, inspect.isfunction):
                    if not value.__module__.startswith("pydantic."):  # nor those of its models
                        found.setdefault(method, []).append(getattr(here, method))
    return found


def takes(target, call):
    """Whether a call of this form fits the signature; dots stand for any arguments."""
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return True
    arguments = [a for a in call.args if not (isinstance(a, ast.Constant) and a.value is ...)]
    keywords = {k.arg: k.value for k in call.keywords if k.arg}
    of_self = inspect.isfunction(target) and next(iter(signature.parameters), "") == "self"
    try:
        signature.bind_partial(*([None] if of_self else []), *arguments, **keywords)
    except TypeError:
        return False
    return True


def wrong_calls(texts, known):
    """Calls of public names with arguments that they do not take."""
    found = []
    for text in texts:
        try:
            tree = ast.parse(text, mode="eval")
        except (SyntaxError, ValueError):
            continue
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name | ast.Attribute):
                name = call.func.id if isinstance(call.func, ast.Name) else call.func.attr
                if name in known and not any(takes(target, call) for target in known[name]):
                    found.append(text)
    return found


def names_papers(words):
    """Whether the command of the papers takes these words, and they name something."""
    try:
        asked = papers_parser().parse_args(words)
        every = papers.PAPERS if asked.paper is None else [asked.paper]
        return all(papers.find_all(p, " ".join(asked.name)) for p in every if asked.name) and all(
            papers.experiments(p) for p in every
        )
    except (SystemExit, hushed.errors.NotFound):
        return False


def wrong_commands(texts):
    """Commands and options that the command line has not."""
    found = []
    for text in texts:
        words = re.split(r"[\s=]+", text)
        if words[:3] == ["python", *PAPERS] and not names_papers(shlex.split(text)[3:]):
            found.append(text)
        if words[0] != "hushed" or len(words) < 2 or not re.fullmatch(r"[a-z]+", words[1]):
            continue
        if words[1] not in COMMANDS:
            found.append(text)
            continue
        command = typer.main.get_command(load(words[1]))
        for each in words[2:]:
            command = getattr(command, "commands", {}).get(each, command)
        options = {option for p in command.params for option in (*p.opts, *p.secondary_opts)}
        if not {w for w in words if w.startswith("--")} <= options | {"--help"}:
            found.append(text)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_code_in_the_text_is_right(page):
    """Names exist, calls take these arguments, commands have these options."""
    texts = spans(page)
    assert not wrong_names(texts)
    assert not wrong_calls(texts, callables())
    assert not wrong_commands(texts)


class TestTheRunnerItself:
    """A page that says something false is caught."""

    def test_a_false_output_is_caught(self):
        """Output is compared, with dots for what varies."""
        assert same_output("epsilon 0.5\n...\nend", "epsilon 0.5\nanything\nend\n")
        assert not same_output("epsilon 0.5", "epsilon 0.6\n")

    def test_kinds_are_told_apart(self):
        """Titles make files and outputs; an unknown option is not a known kind."""
        text = (
            '```python title="a.py"\nx\n```\n```text title="output"\ny\n```\n'
            "```python norun\nz\n```\n"
        )
        assert [b.kind for b in parsed(text)] == ["file", "output", "python norun"]
        assert "python norun" not in KINDS

    def test_what_fails_in_the_text_is_caught(self):
        """A function in a module of its name, positions that are keywords, unknown options."""
        assert wrong_names(["hs.audit.Command([])", "hs.zoo", "hushed.nothing"]) == [
            "audit.Command",
            "nothing",
        ]
        texts = ["PopulationPairs(population, rows, count)", "Guarantee(epsilon=1)", "mean('x')"]
        assert wrong_calls(texts, callables()) == texts[:1]
        commands = ["hushed audit --claims 1", "hushed ledger show --plot", "hushed nobody"]
        assert wrong_commands(commands) == [commands[0], commands[2]]
        commands = [f"python -m papers {words}" for words in ("ra17 10", "ra17 5 --fast", "ra17 5")]
        assert wrong_commands(commands) == commands[:2]

    def test_commands_carry_code_and_output(self):
        """The comment names the exit code, the lines below are the output."""
        assert commands("$ hushed risk  # exit code 2\nwrong\n$ hushed cost\n") == [
            ("hushed risk  # exit code 2", 2, "wrong"),
            ("hushed cost", 0, ""),
        ]

    def test_a_command_goes_on_after_a_backslash(self):
        """It is one command, as a shell would run it."""
        text = "$ hushed risk \\\n    --epsilon 1  # exit code 2\nwrong\n"
        assert commands(text) == [("hushed risk --epsilon 1  # exit code 2", 2, "wrong")]


def test_readme_measures_what_it_releases():
    """The sensitivity and release commands of README sample in the same way."""
    lines = [
        shlex.split(command, comments=True)
        for block in blocks(ROOT / "README.md", "console")
        for command, _, _ in commands(block.text)
    ]
    measured, released = (
        next(words for words in lines if words[:2] == ["hushed", name])
        for name in ("sensitivity", "release")
    )
    for option in ("--population", "--gamma", "--seed", "--pairs", "--protect", "--calibration"):
        assert value_of(option, measured) == value_of(option, released)
    assert ("--symmetric" in measured) == ("--symmetric" in released)
    rows = (ROOT / "examples" / "clinic-private.csv").read_text().splitlines()
    assert int(value_of("--rows", measured)) == len(rows) - 1


def value_of(option, words):
    return words[words.index(option) + 1] if option in words else None


def test_links_lead_somewhere():
    """Every link of README to a file of the project is to one that exists.

    The links among the pages of the site are checked when it is built.
    """
    beside = re.findall(r"\]\(([^):]+)\)", (ROOT / "papers" / "README.md").read_text())
    assert beside
    assert all((ROOT / "papers" / target).is_file() for target in beside)
    targets = re.findall(r"\]\(([^):]+)\)", (ROOT / "README.md").read_text())
    assert {"docs/pricing.md", "docs/estimators.md", "docs/noise/README.md"} <= set(targets)
    assert all((ROOT / target).is_file() for target in targets)


def missing_tests(texts):
    """Tests that are named and do not exist."""
    found = []
    for text in texts:
        if not re.fullmatch(r"tests/[\w/]+\.py(::\w+)*", text):
            continue
        path, *names = text.split("::")
        source = (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).is_file() else ""
        if not source or not all(
            re.search(rf"^ *(?:def|class) {name}\b", source, re.MULTILINE) for name in names
        ):
            found.append(text)
    return found


def test_tests_that_are_named_exist():
    """A page that names a test names one that is there."""
    texts = [text for page in PAGES for text in spans(page)]
    missing = missing_tests(texts)
    assert missing == []
    assert missing_tests(["tests/project/test_docs.py::nobody", "tests/nothing.py"]) == [
        "tests/project/test_docs.py::nobody",
        "tests/nothing.py",
    ]


def test_every_command_is_documented():
    """Each command of the command line appears in README or docs, and has a help text."""
    text = "\n".join(page.read_text() for page in PAGES)
    for name, (_, shown) in COMMANDS.items():
        loaded = load(name)
        group = f"{name} " if isinstance(loaded.info.help, str) else ""
        for command in loaded.registered_commands:
            assert f"hushed {group}{command.name}" in text
            assert command.callback.__doc__
        told = loaded.info.help if group else loaded.registered_commands[0].callback.__doc__
        assert told.partition("\n")[0] == shown


def test_examples_of_the_help_are_shown_and_run_on_a_page():
    """Every command has an example in its help, and a page runs it word for word."""
    shown = {
        command.partition("  #")[0]
        for page in PAGES
        for block in parsed(page.read_text())
        if block.kind == "console"
        for command, _, _ in commands(block.text)
    }
    # One runs until it is stopped; one compares what it has sampled with another process, where
    # warnings are no errors; the others need a server that runs: tests start what they need.
    serving = {
        "workbench",
        "serve add-function",
        "serve remove-function",
        "serve move",
        "serve restore",
        "serve rotate-key",
        "serve waiting",
        "serve approve",
        "serve decline",
    }
    shown |= {EXAMPLES[each] for each in serving} & {
        line.partition("  #")[0].strip()
        for page in PAGES
        for block in parsed(page.read_text())
        if block.kind == "sh"
        for line in block.text.splitlines()
    }
    groups = {"keys", "ledger", "runs", "serve"}
    below = {f"{name} {each.name}" for name in groups for each in load(name).registered_commands}
    assert {*COMMANDS, *below} - groups == set(EXAMPLES)
    assert set(EXAMPLES.values()) <= shown
