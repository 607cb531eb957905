"""A certificate in plain words: what was promised, to whom, and what is assumed."""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Decimal, localcontext
from typing import TYPE_CHECKING

from hushed.decimals import decimal_of, stated_above, upper_double
from hushed.guarantee import shown_above, shown_below
from hushed.privacy_loss.rounding import round_up

if TYPE_CHECKING:
    from hushed.certificate.record import Certificate, SamplingRecord

__all__ = ["explained", "flat"]


def explained(certificate: Certificate) -> str:
    """Explain a certificate.

    Parameters
    ----------
    certificate : Certificate
        What to explain.

    Returns
    -------
    str
        Paragraphs separated by blank lines.
    """
    parts = [
        _promise(certificate),
        _accuracy(certificate),
        _reach(certificate),
        _assumptions(certificate),
    ]
    if certificate.charged:
        parts.append(f"What it was charged to: {flat(certificate.charged)}")
    if certificate.guarantee.data_dependent:
        parts.insert(0, _warning())
    return "\n\n".join(parts)


def flat(text: object) -> str:
    """Show what a stranger may have written, in one line.

    Parameters
    ----------
    text : object
        Anything; its text is shown.

    Returns
    -------
    str
        Without line ends and other characters that are not printed, or that turn the direction of
        the text: each is a space, so that no words look like a paragraph of their own.
    """
    return "".join(each if each.isprintable() else " " for each in str(text))


def _warning() -> str:
    return (
        "WARNING: NOT A PRIVACY GUARANTEE. The population was made from the private rows, as the "
        "caller admitted. The sensitivity itself then leaks about them, and the numbers below are "
        "nominal: they say what would hold had the population been public."
    )


def _promise(certificate: Certificate) -> str:
    g = certificate.guarantee
    factor = round_up(math.exp(upper_double(g.epsilon))) if g.epsilon < 700 else math.inf
    whose = "one person's row" if g.unit == "row" else "all rows of one user"
    pair = {
        "replace-one": f"with {whose} replaced by {'another row' if g.unit == 'row' else 'others'}",
        "add-remove": f"with {whose} added or removed",
    }[g.neighbours]
    slack = f", up to a slack of {shown_above(g.delta, 3)}" if g.delta else ""
    covered = "" if g.gamma else " This holds for every such pair of tables."
    return (
        f"What is promised: epsilon = {shown_above(g.epsilon)}, "
        f"delta = {shown_above(g.delta)}, gamma = {shown_above(g.gamma)}. Whatever is "
        f"concluded from the released answer would have been "
        f"concluded with nearly the same probability from the table {pair}: no probability "
        f"changes by more than a factor e^epsilon = {shown_above(factor, 4)}{slack}.{covered}"
    )


def _accuracy(certificate: Certificate) -> str:
    m = certificate.mechanism
    error = shown_above(m.accuracy, 4)
    if m.name == "exponential":
        what = f"the chosen candidate's score is within {error} of the best of {m.values}"
    elif m.name == "bernstein":
        what = f"noise moves the released function by at most {error} anywhere"
    elif m.values == 1:
        what = f"the released number is within {error} of the exact answer"
    else:
        what = f"all {m.values} released numbers are within {error} of the exact ones"
    return (
        f"How exact the answer is: {m.name} noise of scale {shown_below(m.scale, 4)}, on a grid of "
        f"2^{m.grid}. With probability 95 % {what}."
    )


def _reach(certificate: Certificate) -> str:
    sampling = certificate.sampling
    moved = shown_above(certificate.sensitivity)
    if sampling is None:
        return (
            f"Whom it protects: everyone in the table, whatever the rows. The answer was stated "
            f"to move by at most {moved} in the {certificate.norm} norm, "
            f"because: {flat(certificate.argument)}. This reason stands as it "
            "was given: nothing was sampled to check it."
        )
    n, gamma = sampling.rows, certificate.guarantee.gamma
    kept = (
        f"the answer's movement was measured on {sampling.pairs} "
        f"{'tables' if sampling.protect == 'simultaneous' else 'pairs of tables'} drawn from "
        f"{_source(sampling)}, and the noise covers number {sampling.rank} of them "
        f"counted from the smallest: {moved} in the {certificate.norm} norm"
    )
    return f"Whom it protects: {kept}. {_gamma_words(sampling, n, gamma)}"


def _gamma_words(sampling: SamplingRecord, n: int, gamma: float) -> str:
    limits = (
        "Replacements worse than what the population yields, and adding or removing a row, are "
        "not covered."
    )
    if sampling.protect != "record":
        detail = (
            "each table's largest movement over all rows was taken"
            if sampling.protect == "simultaneous"
            else "each single pair was held to gamma / n"
        )
        return (
            f"With probability at least {_complement(gamma)} over the table, the replacements and "
            f"the sampler, the promise holds at once for all {n} people of the table, each "
            f"replaced by a fresh draw from the population ({detail}). {limits}"
        )
    return (
        f"The promise is per record: it fails for a given record with probability at most "
        f"{shown_above(gamma)}. Among the {n} people of the table, up to "
        f"{shown_above(stated_above(decimal_of(gamma) * n), 4)} on average may "
        f"be outside it, and those are the unusual ones, whose rows move the answer most. "
        f"protect='everyone' covers all at once, at the price of more pairs and more noise. "
        f"{limits}"
    )


def _complement(gamma: float) -> str:
    """One minus the gamma that is printed, rounded down."""
    with localcontext(rounding=ROUND_FLOOR):
        return str(1 - Decimal(shown_above(gamma)))


def _assumptions(certificate: Certificate) -> str:
    sampling = certificate.sampling
    lines = [
        "the number of released values does not depend on the rows",
        "the released answer is the function's only output: not its running time, its messages or "
        "whether it fails",
        "the function and all settings were chosen without looking at the private rows",
    ]
    if sampling is not None:
        lines = [
            "the private rows are independent draws from the population that was sampled"
            if not sampling.shift
            else f"the private rows are independent draws from a distribution Q with "
            f"KL(P || Q) of at most {shown_below(sampling.shift)} per row from the sampled P",
            "the population is public"
            if sampling.population_is_public
            else "the population was made from the private rows, so none of this protects them",
            "the sampler's seed was fixed in advance: trying several and keeping the smallest "
            "sensitivity voids gamma",
            "the function is deterministic",
            *lines,
        ]
        if sampling.symmetric:
            lines.append("the order of the rows does not change the answer, as declared")
        elif sampling.protect != "simultaneous":
            lines.append("the record in question sits at a random position of the table")
    return "What is assumed:\n" + "\n".join(f"  - {line}" for line in lines)


def _source(sampling: SamplingRecord) -> str:
    population = sampling.population
    if not sampling.population_is_public:
        return f"a population made from the private rows ({flat(population.get('kind', 'custom'))})"
    kind = flat(population.get("kind", "custom"))
    if kind == "public table" and {"name", "rows"} <= set(population):
        return f"the public table {population['name']!r} of {flat(population['rows'])} rows"
    if kind == "simulator" and "name" in population:
        return f"the simulator {population['name']!r}"
    details = ", ".join(f"{flat(k)} {flat(v)}" for k, v in population.items() if k != "kind")
    return f"the {kind} population" + (f" ({details})" if details else "")
