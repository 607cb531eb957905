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
_OTHERS = {"user": "the rows of all others", "row": "all other rows"}
_ONE = {"user": "one person with all rows", "row": "one row"}


def describe_promise(promise: Guarantee) -> str:
    """Say what is promised."""
    if promise.data_dependent:
        return (
            f"Epsilon = {format_up(promise.epsilon)}, delta = {format_up(promise.delta)}, gamma = "
            f"{format_up(promise.gamma)} in name only: the numbers were made from the private "
            "rows, and no privacy guarantee is proved."
        )
    gamma = f", gamma = {format_up(promise.gamma)}" if promise.gamma else ""
    return (
        f"Epsilon = {format_up(promise.epsilon)}, delta = {format_up(promise.delta)}{gamma}. "
        f"{describe_factor(promise, 'what was released', f'with {_change(promise)}')}"
    )


def assume_same_person(promise: Guarantee, columns: Iterable[str] = ()) -> str:
    """Say that a promise of several releases is for one person in all; name their columns."""
    if promise.unit != "user":
        return ""
    named = sorted({flat(each) for each in columns})
    told = f" (here {', '.join(named)})" if len(named) > 1 else ""
    return f"{_SAME_PERSON}{told}."


def describe_outsider(promise: Guarantee, public: str, rests: str = "") -> str:
    """Say what an outsider could still learn, who knows everything but the one in question.

    `rests` names what was stated and not proven, and without which there is no limit.
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
            f"{_name_draws(promise)}."
        )
    return (
        f"About {_whom(promise)}: somebody who knows {_OTHERS[promise.unit]}, and for whom it is "
        f"even odds {_question(promise)}, guesses right with a probability of at most {sure} %, "
        f"in place of 50 %.{fails} About everybody together: what the numbers say, and whatever "
        "follows from that for people like those in the table, whether they are in it or not. "
        f"Without any limit: {public}, and that this was asked. Other releases from the same rows "
        "add to it."
    )


def _name_draws(promise: Guarantee) -> str:
    """Name what a gamma is a probability over, and what it says nothing of.

    Over the sampler for every calibration: some part of it is the chance of an unlucky sample.
    """
    if _is_given(promise):
        return (
            "the sampler, and of tables that are drawn from the public population; of new rows "
            "that were not given nothing is promised"
        )
    one, many = ("person", "people") if promise.unit == "user" else ("row", "rows")
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


def _whom(promise: Guarantee) -> str:
    if promise.distance > 1:
        return name_changed(promise.unit, promise.distance)
    return _ONE[promise.unit]


def _change(promise: Guarantee) -> str:
    if _is_given(promise):
        return {
            "replace-one": f"{_whom(promise)} replaced by a new one among those given",
            "add-remove": f"{_whom(promise)} removed, or a new one among those given added",
        }[promise.neighbours]
    done = "replaced" if promise.neighbours == "replace-one" else "added or removed"
    return f"{_whom(promise)} {done}"


def _question(promise: Guarantee) -> str:
    if _is_given(promise):
        pair = (
            "whether it or a new one among those given is",
            "whether it, or a new one among those given, is",
        )
    elif promise.distance > 1:
        pair = ("which of two possibilities is", "whether they are")
    elif promise.unit == "user":
        pair = ("which of two persons is", "whether that person is")
    else:
        pair = ("which of two rows is", "whether that row is")
    return f"{pair[promise.neighbours == 'add-remove']} in the table"
