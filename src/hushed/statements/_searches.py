"""What a sparse vector has told, as one kind of record."""

from __future__ import annotations

from typing import Any

from hushed._ground.printing import format_exactly, format_number, format_up
from hushed.releasing import AboveThreshold, Transcript
from hushed.releasing._transcript import SCHEMA, read_transcript, write_transcript
from hushed.statements._readings import Kind, Reading, Table
from hushed.statements._releases import find_loss, split_paragraph
from hushed.statements._words import IF_PEOPLE, describe_outsider, name_unit

_RESTS = "the word of who asked, on how far each answer moves"
_SAME_WAY = ", and that all of them move the same way"


def _read(text: str) -> Reading:
    """Read what was told, which must fit the parameters on its certificate."""
    told = read_transcript(text)
    known = told.certificate
    promise, made = known.guarantee, dict[str, Any](known.mechanism.parameters)
    left, bar = int(made["positives"]) - len(told.found), format_exactly(made["threshold"])
    ends = "It ends with the last one that may be found"
    if left:
        ends = f"It could have gone on until {left} more {'was' if left == 1 else 'were'} found"
    return Reading(
        title="answers above a threshold",
        subject=told,
        guarantee=promise,
        loss=find_loss(known),
        facts={"asked": told.asked, "found": len(told.found), "left": left},
        rows=(
            ("epsilon", f"{format_up(promise.epsilon)}, for all answers together"),
            ("delta", format_up(promise.delta)),
            ("neighbours", f"{promise.neighbours}, {name_unit(promise, person=known.person)}"),
            ("threshold", bar),
            ("sensitivity", f"{format_up(known.sensitivity)} of each answer, as stated"),
            ("questions answered", str(told.asked)),
            ("found above", f"{len(told.found)} of at most {made['positives']}"),
        ),
        tables=(_list_found(told),),
        short=f"{len(told.found)} of {told.asked} answers above {bar}",
        outsider=describe_outsider(
            promise,
            "the questions, their number and the threshold",
            _RESTS + _SAME_WAY * bool(made["monotone"]),
            person=known.person,
        ),
        paragraphs=(
            (
                "What was told",
                "Each question was answered by whether its answer, with noise, reaches the "
                "threshold, with noise; of those that do, by how much. All questions that are not "
                f"listed were found below, at no cost. {ends}.",
            ),
            *(split_paragraph(each) for each in known.explain().split("\n\n")),
        ),
    )


def _list_found(told: Transcript) -> Table:
    lines: list[tuple[str, ...]] = [("question", "gap to the threshold", "value")]
    for number, each in told.found.items():
        told_of = (each.gap, each.value)
        cells = ("not paid for" if one is None else format_number(one) for one in told_of)
        lines.append((str(number), *cells))
    if len(lines) == 1:
        lines.append(("none was found above", "", ""))
    return Table(name="What was found above", lines=tuple(lines))


def _write(search: AboveThreshold | Transcript) -> str:
    return write_transcript(search.transcript if isinstance(search, AboveThreshold) else search)


SEARCHES = Kind(
    name="above-threshold",
    schema=SCHEMA,
    takes=(AboveThreshold, Transcript),
    write=_write,
    read=_read,
    charged=True,
    write_again=lambda reading: _write(reading.subject),
    checked="digests; what was told fits the number of questions, what may be found, and the grid",
    unchecked=(
        "what was asked: the questions are known by their numbers",
        "that every answer moves by no more than was stated, for the unit that is named, and the "
        "noise was drawn",
        IF_PEOPLE,
    ),
    without_ledger=("that these are all answers, for this threshold, and not changed since",),
)
