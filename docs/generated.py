"""Pages that follow from the source: modules, papers, commands, decisions, and the changelog.

A hook of MkDocs. The pages exist while the site is built and nowhere else, so a new module has its
page the moment it has a name. The picture of the layers stands on a page of its own, for those who
read it without the site: ``python docs/generated.py`` draws it again.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

from command_pages import command_pages, command_titles
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "hushed"

# No name of Python that users call.
INTERNAL = frozenset({"cli"})

HOUSE = ROOT / "docs" / "architecture.md"
LAYERS = re.compile(
    r"(?<=<!-- layers: written by docs/generated.py -->\n).*?(?=<!-- end of layers -->)", re.S
)

# Pages that stand beside the documentation, where people look for them.
BESIDE = {"changelog.md": "CHANGELOG.md", "security.md": "SECURITY.md"}

# In the search of the site these come behind the pages that are written for readers: what is made
# from docstrings, and records of the past. By its words alone hushed.client is first for "median".
# A word in a title counts a thousand times as much as one in a text, so it takes a small number.
BEHIND = ("reference/", "decisions/", "changelog.md", "mutants.md")
AMONG_THE_FIRST = ("reference/statistics.md", "reference/tables.md")
BOOST = 1e-4

# What a program printed; a line with words far apart is one of a table.
OUTPUT = re.compile(r'(?<=<span class="filename">output</span>)<pre>.*?</pre>', re.S)
PROSE = re.compile(r"^(?!.*\S {2,}\S).+$", re.M)

# Pages that may come with other parts of the library: shown once they exist.
OPTIONAL = {
    "How to": (
        ("Share a budget in a team", "how-to/share-a-budget.md"),
        ("Query a table", "how-to/query-a-table.md"),
    ),
    "In depth": (
        ("Figures of the papers", "reproduce.md"),
        ("Ledger", "ledger.md"),
        ("Transformations", "transformations.md"),
        ("Tables", "tables.md"),
    ),
}


def public_modules() -> list[str]:
    """Names of the public modules below ``hushed``, sorted."""
    found = {p.stem for p in PACKAGE.glob("*.py")} | {
        p.parent.name for p in PACKAGE.glob("*/__init__.py")
    }
    return sorted(name for name in found - INTERNAL if not name.startswith("_"))


def first_line(module: str) -> str:
    """First line of a module's docstring, without its full stop."""
    package = PACKAGE / module / "__init__.py"
    source = package if package.is_file() else PACKAGE / f"{module}.py"
    docstring = ast.get_docstring(ast.parse(source.read_text())) or ""
    return docstring.splitlines()[0].rstrip(".")


def layers() -> list[list[str]]:
    """Give the packages of each layer, the highest first, as the import contract has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    found = next(each["layers"] for each in contracts if each["type"] == "layers")
    return [re.split(r"\s*[|:]\s*", layer) for layer in found]


def picture() -> str:
    """Markdown of the picture of the layers: one line for each package, from its docstring."""
    floors = layers()
    rows = [
        f"| {len(floors) - above if first else ''} | `{module}` | {first_line(module)} |"
        for above, found in enumerate(floors)
        for first, module in ((not i, module) for i, module in enumerate(found))
    ]
    return "\n".join(["| layer | package | what it is for |", "|--:|---|---|", *rows]) + "\n"


def with_picture(page: str) -> str:
    """Give a page with its picture of the layers drawn anew."""
    drawn, places = LAYERS.subn(lambda _: f"\n{picture()}\n", page)
    if places != 1:
        raise ValueError("the page has no place for the picture of the layers, or two")
    return drawn


def reference_page(module: str) -> str:
    """Markdown of the page of one module; mkdocstrings fills it from the docstrings."""
    return f"# hushed.{module}\n\n::: hushed.{module}\n"


def reference_index() -> str:
    """Markdown of the list of modules."""
    rows = [f"| [`hushed.{m}`]({m}.md) | {first_line(m)} |" for m in public_modules()]
    head = (
        "# Reference\n\n"
        "Made from the docstrings. `import hushed as hs` gives the names that most need\n"
        "(`hs.release`, `hs.Laplace`, ...); each is described on the page of its module.\n\n"
        "| module | what it is for |\n|---|---|\n"
    )
    rows.append(
        "| [`papers`](papers.md) | The figures of the papers; beside the library, not in it |"
    )
    return head + "\n".join(rows) + "\n"


def decision_title(page: Path) -> str:
    """Heading of a decision record: its number and sentence."""
    found = re.search(r"^# (.+)$", page.read_text(), re.MULTILINE)
    return found.group(1) if found else page.stem


def decision_pages() -> list[Path]:
    """List the records of decisions, by number."""
    return sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))


def decisions_index() -> str:
    """Markdown of the list of decisions."""
    rows = [f"* [{decision_title(p)}]({p.name})" for p in decision_pages()]
    head = "# Decisions\n\nLasting choices, why they were made, and what they cost.\n\n"
    return head + "\n".join(rows) + "\n"


def page_beside(source: str) -> str:
    """Markdown of a file beside the documentation, with its links as the site has them."""
    return (ROOT / source).read_text().replace("](docs/", "](")


def section(config: MkDocsConfig, title: str) -> list[object]:
    """Give the list of pages below a title of the navigation, to be added to."""
    named = (entry for entry in config.nav if isinstance(entry, dict))
    return next(entry[title] for entry in named if title in entry)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Enter generated and optional pages into the navigation."""
    for title, pages in OPTIONAL.items():
        found = [{t: path} for t, path in pages if (ROOT / "docs" / path).is_file()]
        section(config, title).extend(found)
    decisions = [{decision_title(p): f"decisions/{p.name}"} for p in decision_pages()]
    section(config, "Decisions").extend(["decisions/index.md", *decisions])
    section(config, "Command line").extend(
        ["commands/index.md", *({title: path} for title, path in command_titles().items())]
    )
    modules = [{f"hushed.{m}": f"reference/{m}.md"} for m in public_modules()]
    modules.append({"papers": "reference/papers.md"})
    section(config, "Reference").extend(["reference/index.md", *modules])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to those on disk."""
    pages = {f"reference/{m}.md": reference_page(m) for m in public_modules()}
    pages |= {"reference/index.md": reference_index(), "decisions/index.md": decisions_index()}
    pages["reference/papers.md"] = "# papers\n\n::: papers\n"
    pages |= command_pages() | {page: page_beside(source) for page, source in BESIDE.items()}
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Mark the pages that come last in the search."""
    source = page.file.src_uri
    if source.startswith(BEHIND) and source not in AMONG_THE_FIRST:
        page.meta.setdefault("search", {"boost": BOOST})
    return markdown


def on_page_content(html: str, **_: object) -> str:
    """Let long sentences in what a program printed go over several lines, but no tables."""

    def fold(block: re.Match[str]) -> str:
        head, opened, rest = block[0].partition("<code>")
        text, closed, tail = rest.partition("</code>")
        return head + opened + PROSE.sub(r'<span class="prose">\g<0></span>', text) + closed + tail

    return OUTPUT.sub(fold, html)


if __name__ == "__main__":
    HOUSE.write_text(with_picture(HOUSE.read_text()))
