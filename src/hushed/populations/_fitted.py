"""A model of a public table, from which any number of independent rows is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from hushed._ground.calls import called_as, given_by
from hushed._ground.checks import is_whole, require_one_of
from hushed._ground.notebook import Card, Shown, card_of_facts
from hushed._ground.types import Floats, Integers
from hushed._rows import _containers as containers
from hushed._rows._digest import digest
from hushed._rows._ranges import Range
from hushed.errors import BadRows, ParameterError
from hushed.populations._sources import PublicTable, description

Model = Literal["gaussian-copula", "independent"]

_LEAST = 10
# Measured on 2026-11-28 as docs/population.md says: the share of pairs of real rows that moved on.
MISFIT = (
    "on real tables a gamma of 0.05 for the model was one of 0.05 to 0.09 for rows like the public "
    "ones, and of up to 0.16 with single public tables"
)
CHECK = "hs.check_population(rows, population, epsilon=1.0), which sees coarse misfits alone"


@given_by("hs.populations.fitted(hs.populations.PublicTable(public))")
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Fitted(Shown):
    """Rows of a model that was fitted to a public table; see `fitted`.

    Parameters
    ----------
    table : PublicTable
        What the model was fitted to.
    model : {"gaussian-copula", "independent"}
        Which one.
    """

    table: PublicTable
    model: Model
    _order: Integers = field(init=False, repr=False)
    _root: Floats = field(init=False, repr=False)
    _digest: str = field(init=False, repr=False)

    def _card(self) -> Card:
        return card_of_facts(
            f"Model of {self.table.name}",
            (
                ("model", self.model),
                ("fitted to", f"{len(self.table.frame):,} public rows"),
                ("gamma is about", "rows of this model, and not the law of the public rows"),
                ("measured", MISFIT),
                ("to ask private rows", CHECK),
            ),
        )

    def _brief(self) -> str:
        return f"Model of {self.table.name}: {self.model}, of {len(self.table.frame):,} public rows"

    def __post_init__(self) -> None:
        from scipy import special  # noqa: PLC0415

        columns = _split(self.table.frame)
        order = np.stack([_order(each) for each in columns])
        scores = np.empty(order.shape)
        places = special.ndtri((np.arange(order.shape[1]) + 0.5) / order.shape[1])
        np.put_along_axis(scores, order, places[None, :], axis=1)
        related = np.eye(len(columns))
        if self.model == "gaussian-copula" and len(columns) > 1:
            related = np.corrcoef(scores)
        values, vectors = np.linalg.eigh(related)
        object.__setattr__(self, "_digest", digest(self.table.frame))
        object.__setattr__(self, "_order", order)
        object.__setattr__(self, "_root", vectors * np.sqrt(np.maximum(values, 0)))

    @called_as("population.draw(np.random.default_rng(1), 100)")
    def draw(self, rng: np.random.Generator, count: int) -> Any:
        """Draw rows.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness; consumed.
        count : int
            Number of rows.

        Returns
        -------
        array or frame
            Independent rows, in the container of the public table; each cell is one of its column.
        """
        from scipy import special  # noqa: PLC0415

        drawn = rng.standard_normal((count, len(self._root))) @ self._root.T
        known = self._order.shape[1]
        ranks = np.minimum((special.ndtr(drawn) * known).astype(np.int64), known - 1)
        places = np.take_along_axis(self._order.T, ranks, axis=0)
        return _combine(self.table.frame, places)

    def parts(self) -> tuple[PublicTable, ...]:
        """Name the populations that it is made of.

        Returns
        -------
        tuple of PublicTable
            The table.
        """
        return (self.table,)

    def support(self) -> tuple[Range, ...]:
        """Range of each column that the public table was given bounds for.

        Returns
        -------
        tuple of Range
            Those of the table.
        """
        return self.table.support()

    def describe(self) -> dict[str, Any]:
        """Describe the source.

        Returns
        -------
        dict
            Kind, model, and the public table with its digest.

        Raises
        ------
        BadRows
            If the table has changed since the model was fitted to it.
        """
        told = description(self.table)
        if told["sha256"] != self._digest:
            raise BadRows(
                "the public table has changed since the model was fitted to it, and the model "
                "draws its cells: fit it again, hs.populations.fitted(table)"
            )
        return {"kind": "fitted", "model": self.model, "table": told}


def find_model(told: Mapping[str, Any]) -> str:
    """Name the model that rows are drawn from, by what the population said of itself; or empty."""
    if told.get("kind") == "fitted":
        return str(told.get("model", "unknown"))
    return next(filter(None, map(find_model, _list_parts(told))), "")


def count_table_rows(told: Mapping[str, Any]) -> int:
    """Count the public rows that a population draws from again and again; 0 if from none.

    A model is fitted to its rows, and draws others.
    """
    if told.get("kind") == "public table":
        known = told.get("rows")
        return known if is_whole(known) else 0
    return 0 if told.get("kind") == "fitted" else sum(map(count_table_rows, _list_parts(told)))


def _list_parts(told: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """List what the parts of a mixture, or of a law of people, say of themselves."""
    parts = [told.get(name) for name in ("base", "outliers", "rows")]
    return [each for each in parts if isinstance(each, Mapping)]


@called_as("hs.populations.fitted(hs.populations.PublicTable(public))")
def fitted(table: PublicTable, model: Model = "gaussian-copula") -> Fitted:
    """Fit a model to a public table, to draw any number of rows from it.

    Each column keeps its own law, that of the public rows; the model says how columns hang
    together. A sensitivity that is sampled from it promises something for rows of this model, and
    not for those that the public table comes from: how well the model fits is your statement, which
    `hushed.check_population` may contradict. On real tables a gamma of 0.05 for the model was one
    of 0.05 to 0.09 for rows like the public ones (docs/population.md).

    Parameters
    ----------
    table : PublicTable
        Rows that are public, as you say by making a `PublicTable` of them. Never private rows:
        what is drawn would tell of them, and no noise would be between.
    model : {"gaussian-copula", "independent"}, default "gaussian-copula"
        ``"gaussian-copula"``: ranks of columns hang together as those of a normal law with the
        correlations of the public rows. ``"independent"``: not at all.

    Returns
    -------
    Fitted
        A population. A release whose private rows are those of the table is refused.

    Raises
    ------
    BadRows
        If the table has fewer than 10 rows, or is a list.
    ParameterError
        If it is no `PublicTable`.

    Notes
    -----
    Every cell is one that the column has in the public table, so that types, categories and missing
    cells stay; nothing between or beyond them is drawn. Ties are put in the order of the table, and
    columns that are no numbers in that of their texts.

    Examples
    --------
    >>> import numpy as np
    >>> import hushed as hs
    >>> public = np.random.default_rng(1).multivariate_normal([0, 5], [[1, 0.8], [0.8, 1]], 500)
    >>> model = fitted(hs.populations.PublicTable(public))
    >>> rows = model.draw(np.random.default_rng(2), 10_000)
    >>> bool(0.7 < np.corrcoef(rows.T)[0, 1] < 0.9)
    True
    """
    if not isinstance(table, PublicTable):
        raise ParameterError(
            "a model is fitted to public rows alone: say that they are by "
            f"hs.populations.PublicTable(rows); got {type(table).__name__}",
            parameter="table",
        )
    require_one_of("model", model, ("gaussian-copula", "independent"))
    if containers.container(table.frame) == "list" or len(table.frame) < _LEAST:
        raise BadRows(
            f"a model is fitted to an array or a frame of {_LEAST} rows or more, got "
            f"{containers.layout(table.frame)} and {len(table.frame)} rows"
        )
    return Fitted(table, model)


def _split(frame: Any) -> list[Any]:
    """Take a table apart into its columns."""
    held = containers.container(frame)
    if held == "pandas":
        return [frame.iloc[:, place].tolist() for place in range(frame.shape[1])]
    if held == "polars":
        return [column.to_list() for column in frame.get_columns()]
    if frame.dtype.names:
        raise BadRows("a model is fitted to a plain array or a frame, not to a structured array")
    return [frame] if frame.ndim == 1 else list(frame.reshape(len(frame), -1).T)


def _order(column: Any) -> Integers:
    """Places of the cells from the smallest; missing ones come last, texts by their letters."""
    try:
        return np.argsort(np.asarray(column, dtype=np.float64), kind="stable")
    except (TypeError, ValueError):
        return np.argsort(np.array([str(each) for each in column]), kind="stable")


def _combine(frame: Any, places: Integers) -> Any:
    """Make rows of cells, each column from places of its own."""
    held = containers.container(frame)
    if held == "array":
        if frame.ndim == 1:
            return frame[places[:, 0]]
        flat = frame.reshape(len(frame), -1)
        return np.take_along_axis(flat, places, axis=0).reshape(len(places), *frame.shape[1:])
    if held == "polars":
        columns = frame.get_columns()
        return type(frame)([each[places[:, i]] for i, each in enumerate(columns)])
    made = frame.take(places[:, 0]).reset_index(drop=True)
    for i in range(1, frame.shape[1]):
        made.isetitem(i, frame.iloc[:, i].take(places[:, i]).reset_index(drop=True))
    return made
