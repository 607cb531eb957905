"""Write the gallery of docs/reproduce.md: ``python -m papers.gallery``, after full runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import papers

DOCS = Path(__file__).resolve().parents[1] / "docs"
MARK = "<!-- gallery: written by papers/gallery.py -->\n"
TITLES = {
    "ra17": "Rubinstein and Aldà, *Pain-Free Random Differential Privacy* (ra17)",
    "dbb20": "Dandekar, Basu and Bressan, *Differential Privacy at Risk* (dbb20)",
    "lo19": "Liu and Oh, *Minimax Rates of Estimating Approximate Differential Privacy* (lo19)",
}


# What a reader of the page does not see; the page's own text describes each picture.
UNSEEN = (
    r' (?:class|role|pointer-events|aria-[a-z]+)="[^"]*"',
    r"<!-- a figure of hushed -->",
    r' (?:opacity|stroke-opacity|fill-opacity)="1"',
    r'<path(?: d="(?:M0,0h0v0h0Z)?")? display="none"/>|<path d="(?:M0,0h0v0h0Z)?"/>',
)
FONT = ' font-family="sans-serif"'
SHORTER = {
    ' stroke="#DDDDDD" stroke-width="1"/>': ' stroke="#DDD"/>',
    ' stroke="#888" stroke-width="1"/>': ' stroke="#888"/>',
    ' x2="0"': "",
    ' y2="0"': "",
    ' transform="translate(0,0)"': "",
}


def light(svg: str) -> str:
    """Drop what is not seen and round coordinates to a tenth of a pixel; text stays as it is."""
    for pattern in UNSEEN:
        svg = re.sub(pattern, "", svg)
    for long, short in SHORTER.items():
        svg = svg.replace(long, short)
    if FONT in svg:  # said once, all texts inherit it
        svg = svg.replace(FONT, "").replace("<svg", f"<svg{FONT}", 1)
    return re.sub(r'(?<= d=")[^"]*|(?<= transform=")[^"]*', lambda path: rounded(path[0]), svg)


def rounded(path: str) -> str:
    """Round the numbers of a path or a transformation."""
    return re.sub(r"-?\d+\.\d{2,}", lambda found: f"{float(found[0]):.1f}", path)


def section(paper: str, figure: str, folder: Path) -> str:
    """One figure with its verdict; the picture goes to docs/figures."""
    stem = folder / paper / figure
    verdict = json.loads(stem.with_suffix(".json").read_text())["verdict"]
    picture = DOCS / "figures" / f"{paper}-{figure}.svg"
    picture.parent.mkdir(exist_ok=True)
    picture.write_text(light(stem.with_suffix(".svg").read_text()))
    title = papers.find(paper, figure).title
    found = papers.Verdict(**{**verdict, "notes": tuple(verdict["notes"])})
    lines = (re.sub(r"^(\w[\w ]*):", r"**\1:**", x) for x in found.text().splitlines())
    items = "\n".join(f"- {line}" for line in lines)
    return f"### {paper} {figure}: {title}\n\n![{title}](figures/{picture.name})\n\n{items}\n"


def main(folder: Path) -> None:
    """Replace everything below the mark."""
    page = DOCS / "reproduce.md"
    head = page.read_text().split(MARK)[0]
    parts = [head + MARK]
    for paper in papers.PAPERS:
        parts.append(f"## {TITLES[paper]}\n")
        parts += [section(paper, each.figure, folder) for each in papers.experiments(paper)]
    page.write_text("\n".join(parts))


if __name__ == "__main__":
    main(Path("reproduced"))
