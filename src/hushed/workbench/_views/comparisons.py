"""Which promise at what price: the ways to release one answer, side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import hushed as hs
from hushed._web.svg import Bar, Picture, draw_bars
from hushed.workbench._jobs import KEPT
from hushed.workbench._views.functions import FRAMES, read_gamma, read_header
from hushed.workbench._views.reading import Words
from hushed.workbench._views.sources import Defined, as_argument, read_population

STATISTICS = (
    "median",
    "quantile",
    "minimum",
    "maximum",
    "mean",
    "trimmed-mean",
    "interquartile-range",
)


def read_comparison(
    typed: Mapping[str, str], tables: list[str], functions: list[Defined]
) -> tuple[list[str], dict[str, str]]:
    """Read what is to be compared: the words of the command, and problems by field."""
    form = Words(typed)
    of_rows = form.choose("of", ("statistic", "function")) == "function"
    if of_rows:
        specs = [each.spec for each in functions]
        asked = as_argument(form.choose("function", specs, needed="Choose the function."))
    else:
        asked = form.choose("statistic", STATISTICS)
    words = ["compare", asked, "--population", read_population(form, tables, functions)]
    words += ["--rows", form.say_whole("rows", least=2, most=10**9)]
    held = form.choose("held", ("epsilon", "error"))
    words += [f"--{held}", form.say_number(held, above=0.0)]
    if form.text("delta"):
        words += ["--delta", form.say_number("delta", above=0.0)]
    words += ["--gamma", read_gamma(form)]
    words += _read_range(form, needed=not of_rows)
    if asked == "quantile":
        words += ["--q", form.say_number("q", above=0.0, needed="Give the share of rows below it.")]
    if asked == "trimmed-mean":
        words += ["--trim", form.say_number("trim", above=0.0, needed="Give the share cut off.")]
    if of_rows:
        words += ["--frame", form.choose("frame", FRAMES)]
    elif form.text("column"):
        words += [f"--column={form.say_text('column')}"]
    words += read_header(form)
    words += ["--trials", form.say_whole("trials", least=2, most=10_000, default="100")]
    words += ["--workers", form.say_whole("workers", least=1, most=256, default="1")]
    return [*words, "--keep", KEPT, "--json"], form.errors


def _read_range(form: Words, *, needed: bool) -> list[str]:
    """Read the public range of the values, or of the answers of a function, which may have none."""
    if not needed and not form.text("least") + form.text("most"):
        return []
    low = form.say_number("least", needed="Give the lowest value, from a public source.")
    high = form.say_number("most", needed="Give the highest value, from a public source.")
    return [f"--low={low}", f"--high={high}"]


def read_compared(found: Mapping[str, Any]) -> hs.Comparison:
    """Read the comparison that a command printed."""
    return hs.Comparison.from_json(json.dumps(found["comparison"]))


_OF_FUNCTIONS = ("function", "frame", "header", "simulator", "rows", "one_in")


def goes_on(compared: hs.Comparison, typed: Mapping[str, str]) -> str:
    """Name the page that has the recommended way, or one of the ways: "tables" or "functions"."""
    page, way = "tables", "table query"
    if typed.get("of") == "function":
        page, way = "functions", "sampled"
    return page if any(each.name.startswith(way) for each in compared.routes) else ""


def begin_function(compared: hs.Comparison, typed: Mapping[str, str]) -> dict[str, str]:
    """Fill in the form of a function as it was compared."""
    known = [*_OF_FUNCTIONS, *(f"population{each}" for each in ("", "_file"))]
    known += ["low", "high", "mean", "std"]
    law = "gaussian" if compared.recommended.endswith("Gaussian") else "laplace"
    return {each: typed.get(each, "") for each in known} | {"mechanism": law}


def list_cells(compared: hs.Comparison) -> list[tuple[str, ...]]:
    """List the routes as cells of text, the names of the columns first, as the library does."""
    return [tuple(line) for line in compared.list_lines()]


def draw_routes(compared: hs.Comparison) -> Picture | None:
    """Draw the price of each route; nothing where none applies."""
    if not compared.routes:
        return None
    what = "Error in 95 % of releases" if compared.error is None else "Smallest epsilon"
    if compared.labels and compared.error is None:
        what = "Share of other labels"
    bars = [Bar(name=each.name, value=compared.price(each)) for each in compared.routes]
    first = compared.routes[0].name
    return draw_bars(
        bars,
        sentence=f"{what} of {len(bars)} ways to release the answer; {first} has the smallest.",
        table=tuple(list_cells(compared)),
    )
