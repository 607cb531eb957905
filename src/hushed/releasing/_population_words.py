"""A certificate in plain words: the population, how it was drawn from, and its ranges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hushed._ground.printing import flat, format_exactly
from hushed.populations._fitted import CHECK, MISFIT, count_table_rows, find_model
from hushed.releasing._neighbour_words import name_trials, name_units

if TYPE_CHECKING:
    from hushed.releasing._certificate import Certificate, SamplingRecord

_LAWS = ("uniform", "normal", "exponential")
_ENCODED = "encoded for the fit"
_WHAT_COLUMNS = (
    "columns are told by their places from 0, first the features in the order of the fit, each "
    "scaled from its public range to [-1, 1] where it has one, and last the label, if there is "
    "one, of a classifier by the place of its class"
)
_SHOWN_SIZES = 8  # numbers of rows of a person that are listed


def name_exchanged(sampling: SamplingRecord) -> str:
    """Say what was exchanged in a pair."""
    return name_units(sampling)[1]


def describe_route(sampling: SamplingRecord, size: int) -> list[str]:
    """How the rows were drawn, and which law the promise is therefore about; no full stops."""
    words, units = [], name_exchanged(sampling)
    if sampling.user is not None:
        words.append(
            f"People were told apart by the column {flat(repr(sampling.user))}, of which the "
            "function was given nothing but numbers, in a random order: one who is there under "
            "two names is protected as two"
        )
        if sampling.reach().is_reordered(symmetric=sampling.symmetric):
            words.append(
                "Each release puts them into another order, and may fail for others: gamma counts "
                "for each release anew"
            )
    if sampling.blocks > 1:
        words.append(
            f"The released answer is the average of the function over {sampling.blocks} blocks of "
            f"{size} {name_units(sampling)[size > 1]}, dealt in a random order that "
            f"is public: {'a record' if sampling.user is None else 'a person'} is in one block only"
        )
    if not sampling.population_is_public:
        return words
    known = sampling.public_rows
    if sampling.route == "independent":
        if again := count_table_rows(sampling.population):
            words.append(
                f"NOTHING IS PROMISED OF THE LAW BEHIND THE {again} PUBLIC ROWS: the population "
                "draws from these rows with replacement. For rows that come from that law, and are "
                "no copies of them, no gamma is established"
            )
    elif sampling.route == "disjoint":
        words.append(
            f"The {known} public {units} were shuffled and dealt, so that no two "
            f"{name_trials(sampling)} share a "
            f"{name_units(sampling)[0]} (they make {sampling.tables} at most): the promise is "
            f"about the law that the public {units} come from, not about these {units}"
        )
    elif sampling.route == "given-the-rest":
        rest, repeats = known - 2 * sampling.pairs, known - 2 * sampling.pairs < size
        words += [
            f"THE PROMISE IS A WEAKER ONE, given the rest: the two {units} exchanged in a pair "
            f"were its own, but the other {size - 1} were drawn from the same {rest} public "
            f"{units} for every pair, {'with' if repeats else 'without'} repetition. So it is over "
            f"the replaced {'record' if sampling.user is None else 'person'} and its replacement "
            "(fresh draws of the population) that the answer of such a table moves so far at most",
            f"Nothing is promised for a table whose other {units} look different"
            + (", e.g. without the repetitions that resampling makes" if repeats else ""),
        ]
    else:
        words.append(
            f"THE PROMISE IS ABOUT THE {known} PUBLIC {units.upper()} ONLY: all {units} were drawn "
            f"from them with replacement. For {units} that come from the law behind them, and are "
            "no copies of them, no gamma is established"
        )
    return words


def say_limits(sampling: SamplingRecord) -> str:
    """Say beside a picture what the promise is not about; nothing if it has no such limit."""
    if not sampling.population_is_public:
        return ""
    if sampling.route == "given-the-rest":
        units = name_exchanged(sampling)
        return f"a weaker promise, given the rest: none if other {units} look different"
    again = count_table_rows(sampling.population)
    if sampling.route == "disjoint" or not again:
        return ""
    return f"nothing is promised of the law behind the {again} public rows, drawn again and again"


def describe_range(certificate: Certificate) -> str:
    """Say what was done with rows outside of the population's range."""
    sampling = certificate.sampling
    if sampling is None or certificate.outside == "no range":
        return "The population has no stated range: nothing was done with private rows unlike it."
    ranges = _ranges(sampling.support) or "the range of the population"
    if is_encoded(sampling.population) and sampling.support:
        ranges = f"{ranges}: {_WHAT_COLUMNS}"
    if certificate.outside == "allow":
        return (
            f"Private rows outside of {ranges} were let pass, as the caller asked: a table that "
            "holds such rows is not covered."
        )
    return (
        f"Each private row was clamped to {ranges}, by itself; what was still missing then "
        "became an end of the range, where the population has none missing."
    )


def _ranges(support: tuple[tuple[str, float | None, float | None, bool], ...]) -> str:
    def interval(low: float | None, high: float | None) -> str:
        left = "(-infinity" if low is None else f"[{format_exactly(low)}"
        return f"{left}, {'infinity)' if high is None else f'{format_exactly(high)}]'}"

    if len({each[1:3] for each in support}) == 1:
        named = interval(*support[0][1:3])
        return (
            named if len(support) == 1 and not support[0][0] else f"{named} in {_columns(support)}"
        )
    few = ", ".join(f"{interval(low, high)} in {name!r}" for name, low, high, _ in support[:8])
    return few + (f" and {len(support) - 8} more columns" if len(support) > 8 else "")


def _columns(support: tuple[tuple[str, float | None, float | None, bool], ...]) -> str:
    if len(support) > 8:
        return f"{len(support)} columns"
    return "column" + "s" * (len(support) > 1) + " " + ", ".join(repr(each[0]) for each in support)


def describe_comparison(sampling: SamplingRecord) -> str:
    """Say what of the private rows would have been noticed in the population."""
    if sampling.population.get("kind") not in _LAWS:
        return (
            " (the private table itself and views of it would have been noticed; values were not "
            "compared, so a copy, or rows made from the private ones, would not)"
        )
    return " (nothing was compared: whatever it was made from looks the same)"


def describe_drawing(sampling: SamplingRecord) -> list[str]:
    """Tell what the private rows are drawn from, then what that asks of a public table."""
    units = name_exchanged(sampling)
    if sampling.population_is_public and (model := find_model(sampling.population)):
        return [
            f"the population that was sampled, a model that was fitted to public rows "
            f"({flat(model)}), and not the law of those rows: {MISFIT} (to ask private rows "
            f"whether they contradict it: {CHECK})"
        ]
    if not sampling.population_is_public:
        return ["the population that was sampled"]
    if sampling.route == "independent":
        again = count_table_rows(sampling.population)
        drawn = f", where rows are drawn from {again} public ones, each as likely as the other"
        return [f"the population that was sampled{drawn * bool(again)}"]
    if sampling.route == "resampled":
        return [f"the {units} of the public table, each as likely as the other"]
    law = f"the law that the public {units} were drawn from"
    one = "record" if sampling.user is None else "person"
    given = f"{law}, for the {one} and its replacement; the others look like public {units}"
    return [
        given if sampling.route == "given-the-rest" else law,
        f"the public {units} are independent draws from that law, and all of them are there: none "
        "was left out for being equal to another",
        "no person of the private table is in the public one",
        f"the function was chosen without looking at these public {units}: one that was fitted to "
        "them, as a model that is judged, may move less on them than on others of that law",
    ]


def describe_trust(sampling: SamplingRecord) -> list[str]:
    """Say what is believed of rows that a program of the caller's draws."""
    if not sampling.population_is_public or _is_ours(sampling.population):
        return []
    units = "rows" if sampling.user is None else "people"
    return [
        f"the population draws {units} that are independent of each other, as its author says "
        "(tried on some of its tables, where weak dependences show little, and some kinds never)"
    ]


def _is_ours(population: Mapping[str, Any]) -> bool:
    """Whether a population says that nothing of it is a program of the caller's."""
    kind = population.get("kind")
    if kind in ("contaminated", "users"):
        parts = [population.get(name) for name in ("base", "outliers", "rows")]
        known = [_is_ours(each) for each in parts if isinstance(each, Mapping)]
        law = kind == "contaminated" or isinstance(population.get("sizes"), list)
        return law and bool(known) and all(known)
    return kind in (*_LAWS, "public table", "fitted")


def describe_source(sampling: SamplingRecord) -> str:
    population = sampling.population
    if not sampling.population_is_public:
        return f"a population made from the private rows ({flat(population.get('kind', 'custom'))})"
    return _name_encoded(population) if is_encoded(population) else _name_source(population)


def _name_source(population: Mapping[str, Any]) -> str:
    """Name a public source by what it said of itself."""
    kind = flat(population.get("kind", "custom"))
    if kind == "users" and isinstance(population.get("rows"), dict):
        return f"a law of people ({_describe_people(population['rows'], population.get('sizes'))})"
    if kind == "contaminated" and {"base", "outliers", "share"} <= set(population):
        base, others = (_name_part(population[each]) for each in ("base", "outliers"))
        return f"a mixture of {base} and, with probability {flat(population['share'])}, {others}"
    if kind == "function" and "name" in population:
        return f"the function {flat(repr(population['name']))}"
    if kind == "public table" and {"name", "rows"} <= set(population):
        people = f"{flat(population['users'])} people with " if "users" in population else ""
        return f"the public table {population['name']!r} of {people}{flat(population['rows'])} rows"
    if kind == "simulator" and "name" in population:
        return f"the simulator {population['name']!r}"
    # In one order, whatever file it was read from: low before high, mean before std.
    details = ", ".join(
        f"{flat(k)} {flat(population[k])}"
        for k in sorted(population, key=lambda name: (name == "high", name))
        if k != "kind"
    )
    return f"the {kind} population" + (f" ({details})" if details else "")


def _name_part(part: object) -> str:
    """Name a population of a mixture; one that is made of others again is told as it is."""
    plain = isinstance(part, Mapping) and part.get("kind") not in ("contaminated", "users")
    return _name_source(part) if isinstance(part, Mapping) and plain else flat(part)


def is_encoded(population: Mapping[str, Any]) -> bool:
    """Whether rows of a population were encoded for a fit, as a private estimator does."""
    return any(f"{_ENCODED}: " in str(population.get(each)) for each in ("name", "kind"))


def _name_encoded(population: Mapping[str, Any]) -> str:
    """Name the public rows of an estimator; how they were encoded is no part of their name."""
    given, _, how = str(population.get("name") or population["kind"]).partition(_ENCODED)
    rows = population.get("rows")
    if isinstance(rows, dict):
        named = _name_source(rows)
    else:
        named = f"the public table {given.rstrip(', ')!r} of {flat(rows)} rows"
    return f"{named}, encoded for the fit ({flat(how).strip(': ')})"


def _describe_people(rows: Mapping[str, Any], sizes: object) -> str:
    """Say where the rows of one person come from, and how many there are."""
    nested = flat(rows) if rows.get("kind") == "users" else _name_source(rows)
    if sizes is None:
        return f"all rows of one come from {nested}"
    if not isinstance(sizes, list):
        return f"rows come from {nested}, their numbers from the function {flat(repr(sizes))}"
    shown = [
        f"{flat(each[0])} ({flat(each[1])})" if isinstance(each, list) and len(each) == 2 else "?"
        for each in sizes[:_SHOWN_SIZES]
    ]
    rest = ", ..." if len(sizes) > _SHOWN_SIZES else ""
    return (
        f"rows come from {nested}; how many one has, with the probability of it: "
        f"{', '.join(shown)}{rest}"
    )


def describe_search(what: str, kinds: tuple[str, ...]) -> str:
    """Say which objects were not searched for the private rows."""
    return (
        f"{what} holds was searched for the private rows, but for objects of these kinds, "
        f"which cannot be looked into: {plain_words(kinds)}. If the rows are in one of them, the "
        "promise does not hold"
    )


def plain_words(texts: tuple[str, ...]) -> str:
    """List texts that others wrote, in one line."""
    return ", ".join(each if each.isprintable() else repr(each) for each in texts)
