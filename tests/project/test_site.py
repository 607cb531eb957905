"""The site builds without a warning, needs no network, and has a page for each public module."""

import importlib.util
import json
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
import typer
from tests.served import chromium as chromium  # a fixture
from tests.served import scrolls_sideways

import hushed
from hushed import cli

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def generated():
    """Give the hook that makes pages from the source."""
    spec = importlib.util.spec_from_file_location("generated", ROOT / "docs" / "generated.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def built(folder, settings=ROOT / "mkdocs.yml"):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(settings)]
    return subprocess.run(
        [*command, "-d", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site once."""
    folder = tmp_path_factory.mktemp("site")
    done = built(folder)
    assert done.returncode == 0, done.stderr
    return folder


class Requests(HTMLParser):
    """Collect what a browser fetches by itself when it shows a page."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        fetched = {"stylesheet", "preconnect", "preload", "icon", "prefetch", "dns-prefetch"}
        if tag == "link" and fetched & set((named.get("rel") or "").split()):
            self.found.append(named.get("href"))
        if tag in {"script", "img", "iframe", "source", "video", "audio", "embed"}:
            self.found.append(named.get("src"))
        style = named.get("style") or ""
        self.found += re.findall(r"url\(([^)]+)\)", style)


def requested(page):
    parser = Requests()
    parser.feed(page)
    return [target for target in parser.found if target]


def remote(target):
    return bool(re.match(r"\s*[\"']?(?:[a-z]+:)?//", target))


class TestReader:
    def test_a_font_from_elsewhere_is_seen(self):
        """The reader of pages sees what would go over a network, and only that."""
        page = '<link rel="stylesheet" href="https://a/b.css"><script src="//c/d.js"></script>'
        page += '<img src="own.png"><a href="https://e">link</a>'
        assert [t for t in requested(page) if remote(t)] == ["https://a/b.css", "//c/d.js"]


class TestPages:
    def test_every_public_module_has_one(self, generated):
        """What is importable below hushed is public here, or internal by its name or by a list."""
        found = {info.name for info in pkgutil.iter_modules(hushed.__path__)}
        there = {name for name in found if not name.startswith("_")}
        assert len(there) > 20
        assert set(generated.public_modules()) == there - generated.INTERNAL
        assert there >= generated.INTERNAL

    def test_the_list_says_what_each_is_for(self, generated):
        """The first line of a module's docstring stands beside its link."""
        assert "| [`hushed.risk`](risk.md) | Privacy at risk: " in generated.reference_index()
        assert "::: hushed.risk" in generated.reference_page("risk")

    def test_every_decision_is_listed(self, generated):
        """Records are listed by number, with their sentence."""
        listed = re.findall(r"\((\d{4})-", generated.decisions_index())
        assert listed == sorted(listed)
        assert len(listed) == len(list((ROOT / "docs" / "decisions").glob("0*.md")))

    def test_every_command_has_one_with_all_its_options_and_its_example(self, generated):
        """A page of a command shows what ``--help`` shows, and each command of a group."""
        pages = generated.command_pages()
        assert set(generated.command_titles().values()) == set(pages) - {"commands/index.md"}
        for name in cli.COMMANDS:
            assert f"[`hushed {name}`]({name}.md)" in pages["commands/index.md"]
            found = typer.main.get_command(cli.load(name))
            for called, command in getattr(found, "commands", {"": found}).items():
                page = pages[f"commands/{name}.md"]
                shown = (
                    page.partition(f"## {called}\n")[2].partition("\n## ")[0] if called else page
                )
                named = (each for each in command.params if each.opts[0].startswith("--"))
                for option in named:
                    assert option.hidden or f"`{option.opts[0]}" in shown, (name, option.name)
                example = cli.EXAMPLES[f"{name} {called}".strip()]
                assert shlex.split(example) == shlex.split(
                    shown.partition("\nFor example:")[2].split("```")[1][5:].replace("\\\n", "")
                )

    def test_no_name_of_an_option_is_broken_and_columns_have_names(self, generated):
        """On a telephone it read "--sensitivi" and "ty"; the head of every table was empty."""
        page = generated.command_pages()["commands/cost.md"]
        assert "`--sensitivity`{ .whole } `<float>`{ .whole }" in page
        assert "| option | meaning |" in page
        assert not any("| | |" in each for each in generated.command_pages().values())
        assert "white-space: nowrap" in (ROOT / "docs" / "assets" / "pages.css").read_text()
        assert "extra_css: [assets/pages.css]" in (ROOT / "mkdocs.yml").read_text()

    def test_the_changelog_and_how_to_report_a_defect_are_pages(self, generated):
        """What stands beside the documentation is on the site, with links that hold there."""
        assert generated.page_beside("CHANGELOG.md").startswith("# Changelog\n")
        assert "[The threat model](threat-model.md)" in generated.page_beside("SECURITY.md")


@pytest.mark.slow
class TestSite:
    def test_nothing_is_fetched(self, site):
        """No page, style or script of the site asks another machine for anything."""
        pages = list(site.rglob("*.html"))
        assert len(pages) > 30
        for page in pages:
            assert not [t for t in requested(page.read_text()) if remote(t)], page
        for style in site.rglob("*.css"):
            targets = re.findall(r"url\(([^)]+)\)", style.read_text())
            assert not [t for t in targets if remote(t)], style

    def test_reference_shows_docstrings(self, site):
        """A parameter's words from a docstring are on the page of its module, or of the papers."""
        page = (site / "reference" / "papers.html").read_text()
        assert "Use the small settings." in re.sub(r"\s+", " ", page)
        page = (site / "reference" / "sensitivity.html").read_text()
        assert "Rows in the private table, or users in it" in re.sub(r"\s+", " ", page)

    def test_a_broken_link_fails_the_build(self, tmp_path):
        """Strict means strict: one bad link and nothing is published."""
        docs = tmp_path / "docs"
        docs.mkdir()
        (docs / "index.md").write_text("# a\n\n[b](missing.md)\n")
        strict = "validation: { links: { not_found: warn } }\n"
        (tmp_path / "mkdocs.yml").write_text("site_name: a\ntheme: mkdocs\n" + strict)
        done = built(tmp_path / "out", tmp_path / "mkdocs.yml")
        assert done.returncode != 0
        assert "missing.md" in done.stderr


@pytest.mark.browser
@pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")
def test_search_works_on_pages_opened_from_a_folder(site):
    """In a real browser without a server, a word that the reference has is found."""
    page = (site / "how-to" / "people.html").as_uri() + "?q=laplace"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=8000"]
    shown = subprocess.run(
        ["chromium", *options, "--dump-dom", page], capture_output=True, text=True, check=True
    )
    assert re.search(r"[1-9]\d* matching documents", shown.stdout)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
@pytest.mark.parametrize("word", ["median", "quantile"])
def test_search_shows_pages_for_readers_first(site, word):
    """The client of a server has a method of that name, whose title is that word."""
    asked = ["node", ROOT / "tests" / "project" / "search.js", site, word]
    shown = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    found = [each.partition("#")[0] for each in json.loads(shown)]
    assert set(found[:3]) == {"reference/statistics.html", "reference/tables.html", "tables.html"}
    made = ("reference/", "decisions/", "changelog", "mutants")
    behind = [each.startswith(made) for each in found[3:]]
    assert behind == sorted(behind)
    assert "reference/client.html" in found[-sum(behind) :]


# What makes a page hard to read: sentences that go out of sight, and pictures that were shrunk.
CUT = r"""() => [...document.querySelectorAll(".highlight")]
  .filter((each) => each.querySelector(":scope > .filename")?.textContent === "output")
  .map((each) => each.querySelector("code"))
  .filter((code) => code.scrollWidth > code.clientWidth + 1 &&
    !code.innerText.split("\n").some((line) => /\S {2,}\S/.test(line)))
  .map((code) => code.innerText.slice(0, 80))"""

SHRUNK = """() => [...document.querySelectorAll("article p > img")].filter((each) =>
    each.getBoundingClientRect().width < (each.src.endsWith(".svg") ? 0.99 : 0.65)
      * each.naturalWidth).map((each) => each.src)"""


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_are_read_without_going_sideways(site, chromium, width):
    """Sentences that a program printed are folded, and words of pictures keep their size."""
    page = chromium.new_page(viewport={"width": width, "height": 900})
    made = ("reference", "decisions", "commands")  # many, from one mould: one of each
    pages = [each for each in sorted(site.rglob("*.html")) if each.parent.name not in made]
    pages = [each for each in pages if each.name != "404.html"]
    pages += [sorted((site / each).glob("*.html"))[1] for each in made]
    assert len(pages) > 60
    seen = 0
    for each in pages:
        page.goto(each.as_uri())
        assert not scrolls_sideways(page), each
        assert page.evaluate(CUT) == [], each
        assert page.evaluate(SHRUNK) == [], each
        seen += page.locator(".prose").count()
    assert seen > 100
    page.close()


@pytest.mark.browser
def test_long_commands_and_the_first_picture_are_seen_whole(site, chromium):
    """In a window of a desktop; commands go on in the next line."""
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    page.goto((site / "ledger.html").as_uri())
    wide = "(all) => all.filter((each) => each.scrollWidth > each.clientWidth + 1).length"
    assert page.locator(".language-console code").count() > 0
    assert page.locator(".language-console code").evaluate_all(wide) == 0
    page.goto((site / "index.html").as_uri())
    assert page.locator("p:has(> img)").evaluate_all(wide) == 0  # the mark that is kept was cut off
    page.close()
