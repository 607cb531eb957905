"""From the errors that are wanted to the smallest epsilon that keeps them, and to weights."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, Any, Literal, get_args

from hushed._ground.checks import is_real, require_one_of
from hushed._ground.notebook import Shown
from hushed._ground.numeric import first_true_near
from hushed._ground.printing import (
    Spelling,
    as_given,
    flat,
    format_up,
    own_decimals,
    shown,
    spell_argument,
)
from hushed.errors import NotFeasible, NotFound, ParameterError
from hushed.tables._left_out import LeftOut
from hushed.tables._plan import GaussianNoise, Part, Plan
from hushed.tables._query import Query
from hushed.tables._quotes import Quote
from hushed.tables._wanted import no_output

if TYPE_CHECKING:
    from hushed.tables._table import Table

Share = Literal["weights", "solve"]
_LEAST, _MOST = 1e-9, 1e3  # nats; more than that promises nothing
_TOLERANCE = 1e-4  # of epsilon
_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class QuotedErrors(Shown):
    """The smallest epsilon that keeps some errors, and its price. Made by `Table.quote_for`.

    Parameters
    ----------
    table : Table
        The query to be released: with the weights that were chosen, where they were.
    quote : Quote
        Its price on these terms: every error that was asked for is kept.
    errors : mapping of str to float
        What was asked for, by output.
    binding : tuple of str
        Outputs whose error a slightly smaller epsilon would not keep.
    """

    table: Table
    quote: Quote
    errors: Mapping[str, float]
    binding: tuple[str, ...]

    def _brief(self) -> str:
        kept = ", ".join(
            f"{flat(name)} within {format_up(error)}" for name, error in self.errors.items()
        )
        return f"{self.quote._brief()}; the least for {kept}"

    @property
    def epsilon(self) -> float:
        """Privacy loss of the whole query, in nats."""
        return self.quote.epsilon

    @property
    def delta(self) -> float:
        """Slack of the whole query; 0 where its promise is pure."""
        return self.quote.delta

    @property
    def weights(self) -> Mapping[str, float]:
        """Weight of each output."""
        return {each.name: each.weight for each in self.table.aggregates}

    def explain(self, spell: Spelling = spell_argument, *, distances: bool = True) -> str:
        """Explain the price, and what decides it.

        Parameters
        ----------
        spell : callable, default as in Python
            Words for an argument that is advised, from its name and its value.
        distances : bool, default True
            Whether to show how far one user or row moves each number.

        Returns
        -------
        str
            Plain text.
        """
        wanted = ", ".join(
            f"{shown(name)} within {format_up(error, 4)}" for name, error in self.errors.items()
        )
        binding = " and ".join(map(shown, self.binding))
        decides = "decides" if len(self.binding) == 1 else "decide"
        return (
            f"the smallest epsilon for {wanted}; {binding} {decides}\n"
            f"{self.quote.explain(spell, distances=distances)}"
        )


@dataclass(frozen=True, slots=True)
class Prices:
    """How a query is planned and quoted on some terms, at any epsilon."""

    plan: Callable[[Query, float], Plan]
    quote: Callable[[Query, Plan], Quote]  # of the outputs of a query, by a plan that has them
    left_out: LeftOut | None = None  # what every error includes, whatever epsilon is

    def find_misses(self, query: Query, errors: Mapping[str, float], epsilon: float) -> list[str]:
        """List the outputs whose error the quote at an epsilon does not keep."""
        asked = tuple(each for each in query.aggregates if each.name in errors)
        quote = self.quote(replace(query, aggregates=asked), self.plan(query, epsilon))
        return [name for name, most in errors.items() if not (quote.accuracy(name) or 0.0) <= most]

    def keeps(self, query: Query, errors: Mapping[str, float], epsilon: float) -> bool:
        """Whether the quote at an epsilon keeps all errors; one that is refused keeps none."""
        try:
            return not self.find_misses(query, errors, epsilon)
        except ParameterError:  # too small or too large for the noise
            return False


def find_epsilon(query: Query, errors: Mapping[str, float], prices: Prices) -> float:
    """Find the smallest epsilon whose quote keeps the errors; it keeps them at the result."""
    found = first_true_near(
        lambda epsilon: prices.keeps(query, errors, epsilon),
        1.0,
        least=_LEAST,
        most=_MOST,
        tolerance=_TOLERANCE,
    )
    wanted = ", ".join(f"{shown(name)} within {format_up(most)}" for name, most in errors.items())
    if math.isinf(found):
        raise NotFeasible(f"no epsilon up to {_MOST:g} keeps {wanted}: {_advise(prices.left_out)}")
    if not _find_binding(query, errors, prices, found):
        raise ParameterError(
            f"every epsilon from {_LEAST:g} on keeps {wanted}: ask for a smaller error",
            parameter="errors",
        )
    return found


def _advise(left_out: LeftOut | None) -> str:
    """Say what else to ask for: what is left out is part of an error, and no noise."""
    if left_out is None or not left_out.rows:
        return "ask for larger errors, fewer outputs, or smaller contribution bounds"
    return (
        f"by the public guess, contribution bounds leave out up to {left_out} "
        f"at any epsilon. Ask for larger errors, or try other bounds"
    )


def _find_binding(
    query: Query, errors: Mapping[str, float], prices: Prices, epsilon: float
) -> tuple[str, ...]:
    """List the outputs whose error is lost just below an epsilon; none if that one is refused."""
    if epsilon <= _LEAST:
        return ()
    try:
        return tuple(prices.find_misses(query, errors, epsilon * (1 - 2 * _TOLERANCE)))
    except ParameterError:
        return ()


def solve_errors(
    query: Query, errors: Mapping[str, float], prices: Prices, share: Share
) -> tuple[Query, float, tuple[str, ...]]:
    """Find the query with its weights, the epsilon that keeps the errors, and what binds."""
    require_one_of("share", share, get_args(Share))
    wanted = _read_errors(query, errors, prices)
    if share == "solve":
        query = _choose_weights(query, wanted, prices)
    found = find_epsilon(query, wanted, prices)
    binding = _find_binding(query, wanted, prices, found)
    rounded = _round_up(found)
    return query, rounded if prices.keeps(query, wanted, rounded) else found, binding


def _round_up(epsilon: float) -> float:
    """Round up to a few digits, which people can read out."""
    with own_decimals():
        exact = Decimal(repr(epsilon))
        unit = Decimal(1).scaleb(exact.adjusted() + 1 - _DIGITS)
        return float(exact.quantize(unit, rounding=ROUND_CEILING))


def _read_errors(query: Query, errors: Any, prices: Prices) -> dict[str, float]:
    """Check that each error is a number, of an output that has one."""
    if not isinstance(errors, Mapping) or not errors:
        raise ParameterError("errors names outputs and their errors, such as {'count': 50}")
    quote = _quote_somewhere(query, prices)
    known = {each.name: each for each in query.aggregates}
    for name, most in errors.items():
        if name not in known:
            raise NotFound(no_output(name, known))
        if not is_real(most) or not 0 < most <= sys.float_info.max:  # integers may be larger
            raise ParameterError(
                f"the error of {shown(name)} must be a finite number above 0, got {as_given(most)}",
                parameter="errors",
            )
        if known[name].search:
            raise ParameterError(
                f"the error of {shown(name)} depends on the bound that the search will find: give "
                "both bounds, or name another output",
                parameter="errors",
            )
        if quote.accuracy(name) is None:
            raise ParameterError(
                f"the error of {shown(name)} depends on the number of rows of a group",
                parameter="rows",
                hint="give a public guess of it, such as rows=100",
            )
    return {name: float(most) for name, most in errors.items()}


def _quote_somewhere(query: Query, prices: Prices) -> Quote:
    """Quote at one of a few epsilons, some of which may be too small or too large for the noise."""
    refused = None
    for epsilon in (1.0, 100.0, 0.01):
        try:
            return prices.quote(query, prices.plan(query, epsilon))
        except ParameterError as error:
            refused = refused or error
    raise refused or ParameterError("nothing was quoted")


def _choose_weights(query: Query, errors: Mapping[str, float], prices: Prices) -> Query:
    """Choose the weights with which the smallest epsilon keeps the errors.

    Notes
    -----
    With Laplace noise, and for choices, the error of an output depends on its own part of epsilon
    alone, so it needs the part that it has in a query of its own, and epsilon is least where each
    has what it needs. Gaussian parts have ``sigma / sensitivity = m / sqrt(t)``, with one
    multiplier m and shares t that add up to 1. An output needs ``sum (sensitivity / sigma)**2`` of
    what it has in a query of its own; m is largest, and the part of epsilon of all of them
    smallest, where the shares are proportional to that. The sum of the weights stays, and with it
    the share of partition selection.
    """
    missing = [each.name for each in query.aggregates if each.name not in errors]
    if missing:
        raise ParameterError(
            f"share='solve' chooses all weights: name an error for {', '.join(map(shown, missing))}"
            ", too, or leave share out",
            parameter="errors",
        )
    if len(query.aggregates) == 1:
        return query
    needed, vector = {}, {}
    for name, most in errors.items():
        alone = _ask_alone(query, name)
        epsilon = find_epsilon(alone, {name: most}, prices)
        parts = _parts_of(prices.plan(alone, epsilon), name)
        gaussian = [part.noise for part in parts if isinstance(part.noise, GaussianNoise)]
        if gaussian:
            vector[name] = math.fsum((e.bound / e.sigma) ** 2 for e in gaussian)
        else:
            needed[name] = epsilon * math.fsum(part.share for part in parts)
    if not needed:
        return _weigh(query, vector)
    if vector:
        together = _weigh(query, vector)
        epsilon = find_epsilon(together, {name: errors[name] for name in vector}, prices)
        plan = prices.plan(together, epsilon)
        share = math.fsum(part.share for name in vector for part in _parts_of(plan, name))
        whole = math.fsum(vector.values())
        needed |= {name: epsilon * share * own / whole for name, own in vector.items()}
    return _weigh(query, needed)


def _ask_alone(query: Query, name: str) -> Query:
    """Ask for one output; where it is a choice, for a number, too: Gaussian noise needs one."""
    others = [each for each in query.aggregates if each.kind != "quantiles" and each.name != name]
    asked = [each for each in query.aggregates if each.name == name]
    beside = others[:1] if asked[0].kind == "quantiles" else []
    return replace(query, aggregates=(*asked, *beside))


def _parts_of(plan: Plan, name: str) -> list[Part]:
    return [part for part in plan.parts if part.measurement.output == name]


def _weigh(query: Query, needed: Mapping[str, float]) -> Query:
    """Give outputs weights in proportion to what they need; the sum of their weights stays."""
    before = math.fsum(each.weight for each in query.aggregates if each.name in needed)
    whole = math.fsum(needed.values())
    weights = {name: before * own / whole for name, own in needed.items()}
    return replace(
        query,
        aggregates=tuple(
            replace(each, weight=float(f"{weights[each.name]:.{_DIGITS}g}"))
            if each.name in weights
            else each
            for each in query.aggregates
        ),
    )
