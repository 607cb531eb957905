"""The pages about the code name packages, files and functions that are there, in the right order.

A file is named by its path from the root or below ``src/hushed``; ``FILE:NAME`` is what the file
defines by that name. ``NAME`` in a path stands for what a contributor will call it.
"""

import ast
import importlib
import importlib.util
import os
import pkgutil
import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import hushed
import hushed as hs
import papers

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(hushed.__file__).resolve().parent
HOUSE = ROOT / "docs" / "architecture.md"
PAGES = [ROOT / "CONTRIBUTING.md", HOUSE, ROOT / "docs" / "glossary.md"]
FILE = re.compile(r"(\.?[\w-][\w./-]*?\.(?:py|md|toml|yml)|\.?[\w.-]+(?:/[\w.-]+)*/)(?::([\w.]+))?")


@pytest.fixture(scope="module")
def generated():
    """Give the functions that draw the picture of the layers."""
    spec = importlib.util.spec_from_file_location("generated", ROOT / "docs" / "generated.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def defined(path):
    """Classes, functions, their members, and other names of a file."""
    found = set()

    def visit(body, prefix):
        for node in body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                found.add(prefix + node.name)
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}.")
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            found.update(prefix + each.id for each in targets if isinstance(each, ast.Name))

    visit(ast.parse(path.read_text()).body, "")
    return found


def named_files(text):
    """Files and folders in the code of a text, and what of them is named."""
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))
    return [found.groups() for found in map(FILE.fullmatch, spans) if found]


def located(path):
    """Find a path from the root, or below the library; None if it is not there."""
    parts = Path(path).parts
    if "NAME" in Path(path).stem:  # what a contributor adds: its folder is there
        parts = parts[:-1]
    places = (base.joinpath(*parts) for base in (ROOT, SOURCE))
    return next((place for place in places if place.exists()), None)


def missing(text):
    """Say what a text names and is not there."""
    found = []
    for path, name in named_files(text):
        place = located(path)
        if place is None or (name and name not in defined(place)):
            found.append(f"{path}:{name}" if name else path)
    return found


def walks():
    """Give the functions of each walk, by its heading, in the order of its table."""
    part = HOUSE.read_text().partition("## Four walks")[2].partition("\n## ")[0]
    sections = re.split(r"^### ", part, flags=re.M)[1:]
    return {
        section.splitlines()[0]: [
            step
            for row in re.findall(r"^\| (`.*?) \|", section, re.M)
            for step in re.findall(r"`([^`]+)`", row)
        ]
        for section in sections
    }


def calls(work):
    """Run something, and give the functions of the library that are called, in order."""
    found, before = [], sys.getprofile()

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(SOURCE)):
            found.append(f"{os.path.relpath(code.co_filename, SOURCE)}:{code.co_qualname}")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return found


def first_out_of_order(steps, called):
    """Give the first step that is not called after those before it; None if all are."""
    rest = iter(called)
    return next((step for step in steps if step not in rest), None)


def noisy_sum(rows, rng):
    return sum(rows) + rng.laplace()


@pytest.fixture
def budgets(tmp_path):
    """Give a ledger with a budget for releases and one for queries."""
    with hs.Ledger(f"sqlite:///{tmp_path / 'budgets.db'}") as ledger:
        ledger.open_budget("releases", hs.Guarantee(epsilon=2.0, gamma=0.1))
        ledger.open_budget("queries", hs.Guarantee(epsilon=2.0, neighbours="add-remove"))
        yield ledger


@pytest.fixture
def sampled():
    """Give a function, its private rows and its mechanism."""

    def mean(rows):
        return rows.mean()

    s = hs.sample_sensitivity(mean, hs.populations.Uniform(low=0, high=1), rows=50, gamma=0.1)
    return mean, np.linspace(0, 1, 50), hs.Laplace(s, epsilon=1.0)


@pytest.fixture
def examples(budgets, sampled):
    """Give what each walk runs, by its heading."""
    mean, rows, laplace = sampled
    stays = pa.table({"ward": ["a", "b"] * 2, "cost": [1.0, 2.0] * 2})

    def query():
        asked = hs.table(stays).group_by("ward", keys=["a", "b"])
        asked.mean("cost", low=0, high=200).release(epsilon=1.0, ledger=budgets, budget="queries")

    def audit():
        pair = ([0.0], [1.0])
        claim = hs.Guarantee(epsilon=1.0)
        hs.audit(noisy_sum, [pair], claim=claim, samples=400, workers=1).explain()

    return {
        "A private table is released": lambda: hs.release(
            mean, rows, laplace, budgets, budget="releases"
        ),
        "A table is queried": query,
        "A budget is charged": lambda: budgets.charge(
            "releases", laplace.guarantee, loss=laplace.loss
        ),
        "A mechanism is audited": audit,
    }


class TestPicture:
    def test_it_is_drawn_from_the_contract(self, generated):
        """The page holds the picture as the import contract and the docstrings have it now."""
        page = HOUSE.read_text()
        assert generated.with_picture(page) == page, "run: python docs/generated.py"

    def test_every_package_is_in_it_with_its_own_words(self):
        """What can be imported below hushed has one line, with the first words of its docstring."""
        there = {info.name for info in pkgutil.iter_modules(hushed.__path__)} - {"__main__"}
        lines = dict(re.findall(r"^\| *\d* *\| `(\w+)` \| (.+) \|$", HOUSE.read_text(), re.M))
        assert set(lines) == there
        for name, said in lines.items():
            words = importlib.import_module(f"hushed.{name}").__doc__
            assert words.splitlines()[0].rstrip(".") == said

    def test_a_package_that_is_left_out_is_noticed(self, generated):
        """Without one line the picture is another one, and so it is with a line out of place."""
        page = HOUSE.read_text()
        lines = page.splitlines(keepends=True)
        at = next(i for i, line in enumerate(lines) if "| `ledger` |" in line)
        without = "".join(lines[:at] + lines[at + 1 :])
        moved = "".join([*lines[: at - 1], lines[at], lines[at - 1], *lines[at + 1 :]])
        for wrong in (without, moved):
            assert generated.with_picture(wrong) == page != wrong

    def test_layers_are_those_that_the_linter_reads(self, generated):
        """The highest layer holds the command, the lowest the errors, no package stands twice."""
        floors = generated.layers()
        names = [name for floor in floors for name in floor]
        assert floors[-1] == ["errors"]
        assert names.index("cli") < names.index("releasing") < names.index("noise")
        assert len(names) == len(set(names))


class TestNames:
    @pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
    def test_what_a_page_names_is_there(self, page):
        """Each file is there, and defines what the page says it does."""
        text = page.read_text()
        assert len(named_files(text)) > 5
        assert not missing(text)

    def test_a_wrong_name_is_noticed(self):
        """A file, a folder, a function or a method that is not there is found in a text."""
        right = ["ledger/_running.py:RunningBalance.check", "src/hushed/mechanisms/_NAME.py"]
        right += ["docs/noise/", "CONTRIBUTING.md", ".ci/", "ledger/_migrations.py:MIGRATIONS"]
        wrong = ["ledger/_running.py:Running.chek", "ledger/tally.py", "nowhere/"]
        wrong += ["nowhere/_NAME.py", "docs/none.md", "noise/_grid.py:Laplace"]
        assert missing(" ".join(f"`{each}`" for each in right)) == []
        assert missing(" ".join(f"`{each}`" for each in [*right, *wrong])) == wrong

    @pytest.mark.parametrize("paper", papers.PAPERS)
    def test_the_glossary_has_every_number_of_the_papers(self, paper):
        """Each figure, and each statement that an experiment is about, stands under its paper."""
        part = PAGES[-1].read_text().partition(f"### {paper.upper()}\n")[2].partition("\n### ")[0]
        experiments = papers.experiments(paper)
        wanted = {name for each in experiments for name in (each.figure, *each.runs)}
        assert len(wanted) >= len(experiments) >= 5
        assert not [name for name in wanted if name not in part]

    def test_newcomers_are_led_to_the_page(self):
        """README, CONTRIBUTING and the list of pages link to it and to the glossary."""
        for page in ("README.md", "CONTRIBUTING.md", "docs/index.md", "mkdocs.yml"):
            text = (ROOT / page).read_text()
            assert "architecture.md" in text
            assert "glossary.md" in text

    def test_every_question_has_an_answer(self):
        """Ten tasks or more, and for each at least one function to start from."""
        part = HOUSE.read_text().partition("## Where do I find")[2]
        rows = re.findall(r"^\| (\w.*?\?) \| (.+) \|$", part, re.M)
        assert len(rows) >= 10
        for question, answer in rows:
            assert any(name for _, name in named_files(answer)), question


class TestWalks:
    @pytest.mark.filterwarnings("ignore:fetch_arrow_:DeprecationWarning")
    def test_functions_are_called_in_this_order(self, examples):
        """Each walk, run: its functions are called one after the other as its table lists them."""
        found = walks()
        assert set(found) == set(examples)
        for heading, steps in found.items():
            assert len(steps) > 10
            assert first_out_of_order(steps, calls(examples[heading])) is None, heading

    def test_a_wrong_order_is_noticed(self, examples):
        """Two steps that changed places, or one that is never called, are found."""
        steps = walks()["A budget is charged"]
        called = calls(examples["A budget is charged"])
        swapped = [*steps[:-2], steps[-1], steps[-2]]
        assert first_out_of_order(swapped, called) == steps[-2]
        absent = "ledger/_store.py:Store.backup"
        assert first_out_of_order([steps[0], absent], called) == absent
