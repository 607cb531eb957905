"""What a promise means to those whom it protects, in the words of a certificate."""

from __future__ import annotations

import math
from collections.abc import Iterable

from hushed._ground.decimals import upper_double
from hushed._ground.numeric import round_up
from hushed._ground.printing import flat, format_up, name_changed, percent_up
from hushed.guarantee import Guarantee
from hushed.releasing._factor_words import describe_factor

_SAME_PERSON = (
    " A person has to be the same one in all of them, by whatever column each release knows people"
)
IF_PEOPLE = "whether each row is one person, if it says so"
_OTHERS = {
    "user": "the rows of all others",
    "row": "all other rows",
    "person": "the rows of all other people",
}
_ONE = {
    "user": "one person with all rows",
    "row": "one row",
    "person": "one person, of whom the table holds one row",
}


def describe_promise(promise: Guarantee, *, person: bool = False) -> str:
    """Say what is promised; `person` if each row was declared to be one person."""
    if promise.data_dependent:
        return (
            f"Epsilon = {format_up(promise.epsilon)}, delta = {format_up(promise.delta)}, gamma = "
            f"{format_up(promise.gamma)} in name only: the numbers were made from the private "
            "rows, and no privacy guarantee is proved."
        )
    gamma = f", gamma = {format_up(promise.gamma)}" if promise.gamma else ""
    return (
        f"Epsilon = {format_up(promise.epsilon)}, delta = {format_up(promise.delta)}{gamma}. "
        f"{describe_factor(promise, 'what was released', f'with {_change(promise, person)}')}"
    )


def assume_same_person(promise: Guarantee, columns: Iterable[str] = ()) -> str:
    """Say that a promise of several releases is for one person in all; name their columns."""
    if promise.unit != "user":
        return ""
    named = sorted({flat(each) for each in columns})
    told = f" (here {', '.join(named)})" if len(named) > 1 else ""
    return f"{_SAME_PERSON}{told}."


def describe_outsider(
    promise: Guarantee, public: str, rests: str = "", *, person: bool = False
) -> str:
    """Say what an outsider could still learn, who knows everything but the one in question.

    `rests` names what was stated and not proven, and without which there is no limit; `person`
    says that each row was declared to be one person.
    """
    if promise.data_dependent:
        return (
            "No limit is known: the numbers of this promise were made from the private rows, and "
            "hold only in name."
        )
    sure = percent_up(guess_right(promise))
    fails = f" That rests on {rests}: if it does not hold, there is no limit." if rests else ""
    if promise.gamma:
        fails += (
            f" This may fail with probability {format_up(promise.gamma)} (gamma), that of "
            f"{_name_draws(promise, person)}."
        )
    others = _OTHERS[_unit(promise, person)]
    return (
        f"About {_whom(promise, person)}: somebody who knows {others}, and for whom it is "
        f"even odds {_question(promise, person)}, guesses right with a probability of at most "
        f"{sure} %, in place of 50 %.{fails} About everybody together: what the numbers say, and "
        "whatever follows from that for people like those in the table, whether they are in it or "
        f"not. Without any limit: {public}, and that this was asked. Other releases from the same "
        "rows add to it."
    )


def _name_draws(promise: Guarantee, person: bool) -> str:
    """Name what a gamma is a probability over, and what it says nothing of.

    Over the sampler for every calibration: some part of it is the chance of an unlucky sample.
    """
    if _is_given(promise):
        return (
            "the sampler, and of tables that are drawn from the public population; of new rows "
            "that were not given nothing is promised"
        )
    people = _unit(promise, person) != "row"
    one, many = ("person", "people") if people else ("row", "rows")
    return (
        f"the sampler, and of {many} that are drawn from the public population; of a {one} that is "
        "unlike those nothing is promised"
    )


def _is_given(promise: Guarantee) -> bool:
    """Whether a promise is about given new rows only; one without gamma is about all."""
    return promise.protect == "table" and promise.gamma > 0


def guess_right(promise: Guarantee) -> float:
    """Bound the chance of a right guess at even odds, rounded up.

    Notes
    -----
    ``(e^epsilon + delta) / (1 + e^epsilon)``: with P and P' the laws of the release and A the
    answers on which the first table is guessed, it is ``(P(A) + 1 - P'(A)) / 2``, where
    ``P(A) <= e^epsilon P'(A) + delta`` and ``1 - P'(A) <= e^epsilon (1 - P(A)) + delta``.
    """
    epsilon = upper_double(promise.epsilon)
    if epsilon > 700:
        return 1.0
    factor = math.exp(epsilon)
    return min(1.0, round_up((factor + upper_double(promise.delta)) / (1 + factor), 16.0))


def name_unit(promise: Guarantee, *, person: bool) -> str:
    """Name what two neighbours differ in."""
    return name_changed(_unit(promise, person), promise.distance)


def _unit(promise: Guarantee, person: bool) -> str:
    return "person" if person and promise.unit == "row" else promise.unit


def _whom(promise: Guarantee, person: bool) -> str:
    if promise.distance > 1:
        return name_changed(_unit(promise, person), promise.distance)
    return _ONE[_unit(promise, person)]


def _change(promise: Guarantee, person: bool) -> str:
    alone = promise.distance == 1 and _unit(promise, person) == "person"
    whom = "the row of one person" if alone else _whom(promise, person)
    if _is_given(promise):
        return {
            "replace-one": f"{whom} replaced by a new one among those given",
            "add-remove": f"{whom} removed, or a new one among those given added",
        }[promise.neighbours]
    done = "replaced" if promise.neighbours == "replace-one" else "added or removed"
    return f"{whom} {done}"


def _question(promise: Guarantee, person: bool) -> str:
    if _is_given(promise):
        pair = (
            "whether it or a new one among those given is",
            "whether it, or a new one among those given, is",
        )
    elif promise.distance > 1:
        pair = ("which of two possibilities is", "whether they are")
    elif _unit(promise, person) != "row":
        pair = ("which of two persons is", "whether that person is")
    else:
        pair = ("which of two rows is", "whether that row is")
    return f"{pair[promise.neighbours == 'add-remove']} in the table"
