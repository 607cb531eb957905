"""Tests that drive a browser are run where one is installed: elsewhere each of them is skipped."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ASKS = {"chromium", "open_page"}  # fixtures, which skip a test where no browser is


def drives(path):
    """List tests of a file that ask for a browser, and whether each is marked so."""
    if not any(each in path.read_text() for each in ASKS):
        return
    tree = ast.parse(path.read_text())
    whole = any(
        isinstance(each, ast.Assign) and "mark.browser" in ast.unparse(each) for each in tree.body
    )
    for each in ast.walk(tree):
        if isinstance(each, ast.FunctionDef) and each.name.startswith("test_"):
            marked = whole or any("mark.browser" in ast.unparse(d) for d in each.decorator_list)
            if ASKS & {argument.arg for argument in each.args.args}:
                yield each.name, marked


def test_each_test_in_a_browser_is_run_by_make_browser():
    """Those of the site were among the slow ones, which are run before a browser is installed."""
    recipe = (ROOT / "Makefile").read_text().partition("\nbrowser:")[2].partition("\n\n")[0]
    folders = re.findall(r"-m browser --no-skips (\S+)", recipe)
    found = [
        (path.relative_to(ROOT), name, marked)
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for name, marked in drives(path)
    ]
    assert len(found) > 20
    assert [each[:2] for each in found if not each[2]] == []
    assert {
        path for path, *_ in found if not any(path.is_relative_to(folder) for folder in folders)
    } == set()
