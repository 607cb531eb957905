"""The published answer: noisy values with error bars, and what is said about them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

from hushed._ground.calls import called_as, given_by
from hushed._ground.notebook import Card, Shown, draw_interval
from hushed._ground.printing import flat, format_down, format_up, name_count, own_decimals, shown
from hushed._ground.read_only import ReadOnly, make_again, read_state
from hushed._ground.weak_promises import epsilon_warnings
from hushed.errors import DamagedLedger, MissingExtra, NotFound, ParameterError
from hushed.guarantee import Guarantee
from hushed.tables._format import format_table, list_lines, list_places, name_places
from hushed.tables._ladders import Candidates
from hushed.tables._layout import make_arrow, render, write_new
from hushed.tables._left_out import LeftOut, advise_bars, describe_bars, leaves_out
from hushed.tables._plan import NoiseName
from hushed.tables._question import Query
from hushed.tables._wanted import no_output


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an answer was asked by, and on which terms; its guarantee says the rest of them.

    Parameters
    ----------
    query : Query
        The question.
    noise : {"laplace", "gaussian"}
        The noise of counts and sums.
    beta : float
        Probability that an error bar does not hold.
    left_out : LeftOut, optional
        Rows and users that contribution bounds leave out at most, by a public guess. The error bars
        include them. None without a guess.
    """

    query: Query
    noise: NoiseName
    beta: float
    left_out: LeftOut | None = None


_MAPPINGS = (
    *("keys", "values", "low", "high", "rank_error", "shortfall", "candidates"),
    *("bounds", "edges", "probabilities", "present"),
)


@given_by("table.count().release(epsilon=1.0)")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Answer(Shown):
    """The noisy answer of a query, which may be published: one row for each group.

    Its mappings are read-only: a copy, ``dict(answer.values)``, may be changed.

    Parameters
    ----------
    keys : mapping of str to tuple
        Value of each grouping column, row by row.
    values : mapping of str to tuple
        Noisy value of each output, row by row; a histogram is a list, several quantiles too. A top
        has one row for each chosen key, with its place: 1 is meant for the most.
    low, high : mapping of str to tuple
        Ends of the error bars. The probability that noise moves a value out of them is at most
        ``1 - level``, for each value by itself. They do not include the effects of clipping and of
        rounding to steps; those of contribution bounds only where a public guess of the rows of
        each user was given. None for quantiles and a top: see `rank_error` and `shortfall`.
    rank_error : mapping of str to float
        For quantiles: ranks by which the answer may miss, where every value counts as the candidate
        nearest to it. It holds for all quantiles of an output and group together, except with
        probability ``1 - level``.
    shortfall : mapping of str to float
        For a top: rows, or users, by which a chosen key may fall short of the best one for its
        place. It holds for all places together, except with probability ``1 - level``.
    candidates : mapping of str to Candidates
        For quantiles: how many values they were chosen from, and how far apart these are.
    bounds : mapping of str to (float, float)
        For outputs with a bound that was searched: the two ends that values were clipped to.
    edges : mapping of str to tuple
        For histograms: the edges of the bins, one more than bins.
    probabilities : mapping of str to tuple
        For quantiles: which ones, in the order of the values.
    present : mapping of str to tuple
        For means and variances: noisy number of rows with a value, row by row. It is measured
        anyway, at no further cost.
    warnings : tuple of str
        What the noisy numbers say about a column, such as that most of its cells are missing; and
        warnings about views.
    level : float
        Confidence of each error bar.
    guarantee : Guarantee
        What is guaranteed, and was charged.
    unit : str
        What the guarantee protects: one ``user`` with all rows, or one ``row``.
    entry : int, optional
        Number of the charge in the ledger; ``ledger.answer`` finds the stored answer by it. None if
        it is not stored.
    asked : Asked, optional
        What was asked, and on which terms; a certificate needs it.
    """

    keys: Mapping[str, tuple[Any, ...]]
    values: Mapping[str, tuple[Any, ...]]
    low: Mapping[str, tuple[Any, ...]]
    high: Mapping[str, tuple[Any, ...]]
    rank_error: Mapping[str, float]
    shortfall: Mapping[str, float]
    candidates: Mapping[str, Candidates]
    bounds: Mapping[str, tuple[float, float]]
    edges: Mapping[str, tuple[float, ...]]
    probabilities: Mapping[str, tuple[float, ...]]
    present: Mapping[str, tuple[float, ...]]
    warnings: tuple[str, ...]
    level: float
    guarantee: Guarantee
    unit: str
    entry: int | None = None
    asked: Asked | None = None
    takes_guess: ClassVar[bool] = True  # whether a public guess may be given when it is asked

    def __post_init__(self) -> None:
        for each in _MAPPINGS:
            given: Any = getattr(self, each)
            if not isinstance(given, Mapping):
                raise ParameterError(f"{each} must be a dict, got {type(given).__name__}")
            object.__setattr__(self, each, ReadOnly(given))

    def __reduce__(self) -> tuple[Any, ...]:
        return make_again(self)

    def __setstate__(self, state: Sequence[Any]) -> None:
        """Read one that was pickled before its mappings were read-only."""
        read_state(self, state)
        self.__post_init__()

    def _card(self) -> Card:
        lines = list_lines(self)
        return Card(
            title="Answer",
            text=str(self),
            words=self.explain(),
            facts=tuple(name_places(self)),
            lines=tuple(map(tuple, lines)),
            pictures=_draw_errors(self),
        )

    def _brief(self) -> str:
        rows = f" in {len(self)} rows" if self.keys else ""
        epsilon = format_up(self.guarantee.epsilon)
        return f"Answer: {', '.join(self.values)}{rows}; epsilon {epsilon}"

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def __str__(self) -> str:
        table = format_table(list_lines(self))
        return "\n".join([table, *list_places(self), "", self.explain()])

    @property
    def certificate(self) -> str:
        """An answer has none by itself: `hushed.certify` makes it.

        Raises
        ------
        AttributeError
            Always, with words on how to get one.
        """
        raise AttributeError("an answer has no certificate by itself: hs.certify(answer) makes it")

    @called_as('answer.value("count")')
    def value(self, name: str) -> Any:
        """Value of an output of a query without groups.

        Parameters
        ----------
        name : str
            Name of the output.

        Returns
        -------
        int, float or list
            The noisy value.

        Raises
        ------
        NotFound
            If there is no such output.
        ParameterError
            If there are several groups.
        """
        if name not in self.values:
            raise NotFound(no_output(name, self.values))
        if self.keys:
            raise ParameterError("the answer has groups; use rows() or to_dict()")
        return self.values[name][0]

    def rows(self) -> list[dict[str, Any]]:
        """Give one dictionary for each group, with the columns of `to_dict`.

        Returns
        -------
        list of dict
            In the order of the keys.
        """
        columns = self.to_dict()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_dict(self) -> dict[str, list[Any]]:
        """Give the columns by name: keys, ``NAME``, ``NAME_low``, ``NAME_high``, ``NAME_rows``.

        Returns
        -------
        dict of str to list
            Plain Python values. Means and variances come with `present` as ``NAME_rows``.
        """
        found = {name: list(column) for name, column in self.keys.items()}
        for name, column in self.values.items():
            found[name] = list(column)
            if name not in (*self.rank_error, *self.shortfall):
                found[f"{name}_low"] = list(self.low[name])
                found[f"{name}_high"] = list(self.high[name])
            if name in self.present:
                found[f"{name}_rows"] = list(self.present[name])
        return found

    def to_arrow(self) -> Any:
        """Give the answer as an Arrow table, for other programs.

        Returns
        -------
        pyarrow.Table
            One row for each group: the keys; ``NAME``, ``NAME_low``, ``NAME_high``; ``NAME_rows``
            of means and variances. Each of several quantiles has a column of its own, such as
            ``NAME_0.25``, unless one is asked for twice. A histogram has lists, with its edges as
            ``NAME_edges``. Whole numbers are whole. The metadata has under ``hushed`` what is
            guaranteed, as JSON.
        """
        return make_arrow(self)

    def to_pandas(self) -> Any:
        """Give the columns of `to_arrow` as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            Needs pandas, which hushed itself does without.

        Raises
        ------
        MissingExtra
            If pandas is not installed.
        """
        try:
            import pandas  # noqa: F401, PLC0415  (Arrow would say it in other words)
        except ImportError:
            raise MissingExtra("a pandas frame", "pandas") from None
        return make_arrow(self).to_pandas()

    def to_polars(self) -> Any:
        """Give the columns of `to_arrow` as a Polars frame.

        Returns
        -------
        polars.DataFrame
            Needs Polars, which hushed itself does without.

        Raises
        ------
        MissingExtra
            If Polars is not installed.
        """
        try:
            import polars as pl  # noqa: PLC0415
        except ImportError:
            raise MissingExtra("a Polars frame", "polars") from None
        return pl.from_arrow(make_arrow(self))

    @called_as('answer.to_csv("answer.csv")')
    def to_csv(self, path: str | Path) -> None:
        """Write the columns of `to_arrow` to a new CSV file; lists as JSON.

        Parameters
        ----------
        path : str or path
            The file, which must not exist.

        Raises
        ------
        ParameterError
            If it exists: an answer that was paid for is never written over.
        NotFound
            If it cannot be written there.
        """
        write_new(path, render(self, ".csv"))

    @called_as('answer.to_parquet("answer.parquet")')
    def to_parquet(self, path: str | Path) -> None:
        """Write the table of `to_arrow`, with its metadata, to a new Parquet file.

        Parameters
        ----------
        path : str or path
            The file, which must not exist.

        Raises
        ------
        ParameterError
            If it exists: an answer that was paid for is never written over.
        NotFound
            If it cannot be written there.
        """
        write_new(path, render(self, ".parquet"))

    def to_json(self) -> str:
        """Write the answer as JSON, every number exact, as a ledger stores it.

        Returns
        -------
        str
            One object; `from_json` reads it again.
        """
        from hushed.tables._storage import write_answer  # noqa: PLC0415  (it makes answers, too)

        return write_answer(self)

    @classmethod
    @called_as("hs.Answer.from_json(answer.to_json())")
    def from_json(cls, text: str) -> Answer:
        """Read an answer that `to_json` wrote, or that a ledger stored.

        Parameters
        ----------
        text : str
            The object.

        Returns
        -------
        Answer
            The same answer, without `entry`, which the ledger knows.

        Raises
        ------
        ParameterError
            If it is no answer.
        QueryFailed
            If what was stored is that the query failed.
        """
        from hushed.tables._storage import read_answer  # noqa: PLC0415  (it makes answers, too)

        try:
            return read_answer(text)
        except DamagedLedger:
            raise ParameterError("this is no answer that to_json of this version wrote") from None

    def explain(self) -> str:
        """Explain the guarantee and the error bars in a few lines.

        Returns
        -------
        str
            Plain text.
        """
        g = self.guarantee
        delta = f", delta {format_up(g.delta)}" if g.delta else ""
        groups = "1 group" if len(self) == 1 else f"{len(self)} groups"
        asked = None if self.asked is None else self.asked.query.user
        whom = f"{self.unit} (all rows with one value of {shown(asked)})" if asked else self.unit
        promise = f"epsilon {format_up(g.epsilon)}{delta} for adding or removing one {whom}"
        grouped = self.keys and not self.shortfall
        lines = [f"{promise}; {groups}." if grouped else f"{promise}."]
        if set(self.values) - set(self.rank_error) - set(self.shortfall):
            chance = f"Each error bar holds with probability {percent(self.level)}"
            lines[0] += f" {chance} {describe_bars(self)}"
        lines += advise_bars(self)
        kept = " of the rows that contribution bounds keep" if leaves_out(self, "") else ""
        for name, error in self.rank_error.items():
            lines.append(
                f"{shown(name)}: at most {name_count(format_up(error, 4), 'rank')} "
                f"(rows in order of the value) "
                f"from the quantile{kept}, with probability {percent(self.level)}; every value "
                f"counts as the nearest of {self.candidates[name]}."
            )
        lines += [
            f"{shown(name)}: each key counts at most {format_up(most, 4)} less than the best one "
            f"for its place, with probability {percent(self.level)}."
            for name, most in self.shortfall.items()
        ]
        lines += [
            f"{shown(name)}: values were clipped to [{low:.17g}, {high:.17g}]; the search for "
            "these bounds leaves a few rows beyond them, as a rule."
            for name, (low, high) in self.bounds.items()
        ]
        return "\n".join(
            [*lines, *map(flat, self.warnings), *epsilon_warnings(g.epsilon, self.unit)]
        )


def percent(level: float) -> str:
    """Format a confidence level: 0.95 as "95 %", rounded down, and never as 100 %."""
    level = min(level, math.nextafter(1.0, 0.0))
    with own_decimals():
        return f"{format_down(float(Decimal(repr(level)) * 100))} %"


def _draw_errors(answer: Answer) -> tuple[str, ...]:
    """Draw the error bars of the first output that has numbers, one for each group."""
    for name, column in answer.values.items():
        bars = list(zip(answer.low[name], column, answer.high[name], strict=True))
        if all(isinstance(each, int | float) for bar in bars for each in bar):
            ends = (min([0, *(bar[0] for bar in bars)]), max([0, *(bar[2] for bar in bars)]))
            return tuple(draw_interval(*bar, ends) for bar in bars)
    return ()
