"""Certificates of functions that were asked about blocks: they hold for every function."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from hushed import noise
from hushed._functions._fingerprints import look
from hushed._ground.checks import read_epsilon
from hushed._ground.printing import flat, format_down, format_up, name_count
from hushed.blocks import Blocks, Limits
from hushed.errors import HushedError, ParameterError
from hushed.guarantee import Guarantee
from hushed.mechanisms._inverse import WIDTH, rows_astray
from hushed.releasing._neighbour_words import ROWS_ALONE
from hushed.releasing._population_words import describe_search
from hushed.releasing._record_checks import (
    FINGERPRINT,
    Drawn,
    is_near,
    list_wrong_draw,
    list_wrong_types,
)
from hushed.transformations import Transformation

if TYPE_CHECKING:
    from hushed.releasing._certificate import Certificate

_MOST = 1_000_000  # candidates and dimensions of a certificate that anybody may have written
_LARGE = 1000.0  # an epsilon at which any number of candidates makes a mechanism
_STATED = ("fingerprint", "function")  # what no certificate contains, and what is only a name


def name_function(f: object) -> str:
    """Name a function for people; a chain by its steps."""
    if isinstance(f, Transformation):
        return flat(f.name)
    return flat(str(getattr(f, "__qualname__", type(f).__name__)))


def state_parameters(mechanism: Blocks, function: str) -> dict[str, float | int | bool | str]:
    """List what a certificate says of it."""
    return mechanism.parameters | {"function": function}


def describe_argument(mechanism: Blocks) -> str:
    """Say why one record moves little."""
    whose = "record" if mechanism.user is None else "user"
    return f"one {whose} is in one of {mechanism.blocks} blocks, and moves one answer"


def digest_blocks(mechanism: Blocks, f: Callable[[Any], Any]) -> str:
    """Digest what a release asks; the same for the same script in another process."""
    facts = {
        "function": sorted(look(f).marks.items()),
        "mechanism": state_parameters(mechanism, ""),
        "promise": [mechanism.neighbours, mechanism.unit, repr(mechanism.user)],
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def is_rebuilt_blocks(certificate: Certificate) -> bool:
    """Whether the certificate alone says all of candidates, prior and centre."""
    stated = certificate.mechanism.parameters
    return stated.get("spacing") in ("geometric", "even", "none") and not (
        stated.get("prior", False) or "radius" in stated
    )


def rebuild_blocks(certificate: Certificate) -> Blocks:
    """Build the mechanism again; with other candidates, or another centre, where they were given.

    With a prior, which has only a fingerprint, no more than names and types are those stated.
    """
    stated: dict[str, Any] = dict(certificate.mechanism.parameters)
    prior, spacing = stated.get("prior", False), stated.get("spacing", "none")
    options: dict[str, Any] = {
        name: stated[name] for name in ("aggregate", "epsilon", "blocks", "beta")
    }
    if "delta" in stated:
        options["delta"] = stated["delta"]
    if "radius" in stated:
        options["radius"] = stated["radius"]
        options["centre"] = [0.0] * _count(stated["dims"], 1)
    elif spacing in ("given", "labels"):
        options["candidates"] = range(_count(stated["candidates"], 2))
    else:
        options |= {"low": stated["low"], "high": stated["high"]}
        options["spacing"] = None if spacing == "none" else spacing  # a mean has no candidates
    if prior:
        options |= {"epsilon": _LARGE, "beta": 0.5}
    return Blocks(
        **options,
        neighbours=certificate.neighbours,
        unit="person" if certificate.person else "row",
        user=stated.get("user"),
        limits=Limits(**{each.name: stated[each.name] for each in fields(Limits)}),
    )


def _count(value: Any, least: int) -> int:
    if type(value) is not int or not least <= value <= _MOST:
        raise ParameterError("a number of candidates or dimensions is none")
    return value


def list_wrong_blocks(certificate: Certificate) -> list[str]:
    """List what does not follow from the parameters."""
    try:
        mechanism = rebuild_blocks(certificate)
        wanted = mechanism.aggregation.describe_draw()
        promise = mechanism.guarantee
        if certificate.mechanism.parameters.get("prior", False):
            wanted, promise = _of_prior(certificate)
        found = _of_parameters(certificate, mechanism)
    except (HushedError, KeyError, TypeError, ValueError, OverflowError) as problem:
        return [f"the parameters make no mechanism ({problem})"]
    return found or [
        *list_wrong_draw(certificate, wanted, "the parameters"),
        *_of_promise(certificate, mechanism, promise),
    ]


def _of_prior(certificate: Certificate) -> tuple[Drawn, Guarantee]:
    """Follow the numbers of a choice by a prior from what is stated of it."""
    stated = certificate.mechanism.parameters
    least, epsilon = float(stated["least"]), read_epsilon(stated["epsilon"])
    count = _count(stated["candidates"], 2)
    if not 0 < least <= 1 or not 0 < float(stated["beta"]) < 1:
        raise ParameterError("least and beta are no shares")
    promise = Guarantee(
        epsilon=epsilon,
        neighbours=certificate.neighbours,
        unit="user" if "user" in stated else "row",
    )
    scale, grid = noise.selection_scale(width=WIDTH, epsilon=epsilon)
    return (scale, grid, count, rows_astray(epsilon, least, 0.05)), promise


def _of_parameters(certificate: Certificate, mechanism: Blocks) -> list[str]:
    """Compare names and types of all that is stated, and what follows of it."""
    stated, fresh = certificate.mechanism.parameters, state_parameters(mechanism, "")
    found = list_wrong_types(stated, fresh)
    if set(stated) != set(fresh):
        return found
    if "fingerprint" in fresh and not FINGERPRINT.fullmatch(str(stated["fingerprint"])):
        found.append("mechanism.parameters.fingerprint is none")
    free = {*_STATED} if not is_rebuilt_blocks(certificate) else {"function"}
    if stated.get("prior", False):
        free |= {"epsilon", "beta", "blocks", "prior", "least"}
        if type(stated["blocks"]) is not int or stated["blocks"] < 1:
            found.append("mechanism.parameters.blocks must be 1 or more")
    return found or [
        f"mechanism.parameters.{name} does not follow ({value!r} does)"
        for name, value in fresh.items()
        if name not in free and stated[name] != value
    ]


def _of_promise(certificate: Certificate, mechanism: Blocks, promise: Guarantee) -> list[str]:
    """Compare the promise, and what it is said to rest on."""
    drawn = mechanism.aggregation
    argument = describe_argument(mechanism)
    rules = {
        "guarantee does not follow from the mechanism": certificate.guarantee == promise,
        "sensitivity, norm or argument are not those of the mechanism": is_near(
            certificate.sensitivity, drawn.movement
        )
        and (certificate.norm, certificate.argument) == (drawn.norm, argument),
        "mechanism.stated is for a mechanism of the caller's own": not certificate.mechanism.stated,
        "outside, confirmed, sampling and statistic are not those of blocks": (
            certificate.outside,
            certificate.confirmed,
            certificate.sampling,
            certificate.statistic,
        )
        == ("no range", "", None, None),
    }
    return [text for text, holds in rules.items() if not holds]


def explain_blocks_accuracy(certificate: Certificate) -> str:
    """Say how exact the answer is, as far as that is public."""
    record, stated = certificate.mechanism, certificate.mechanism.parameters
    blocks, accuracy = int(stated["blocks"]), float(record.accuracy or 0)
    lowest = math.ceil(blocks / 2 - accuracy)
    part = (
        " How far the answer of a block is from that of the whole table is not known here: "
        "blocks are smaller."
    )
    head = "How exact the answer is: the function was asked about "
    head += f"{name_count(blocks, 'block')} of the rows. "
    able = ", of those to which the prior gives a weight" if stated.get("prior") else ""
    if stated["aggregate"] == "votes":
        text = (
            f"Released was one of {record.values} public labels. With probability 95 % it has at "
            f"most {name_count(math.ceil(accuracy), 'vote')} "
            f"fewer than the label with most of them{able}"
        )
    elif stated["aggregate"] == "stable":
        text = (
            f"Released was which of {record.values} public labels had most votes, or None where a "
            "few other votes could have changed that. With probability 95 % it was told if any "
            f"{name_count(math.ceil(accuracy), 'block')} "
            f"could have answered otherwise and the same label won"
        )
    elif stated["aggregate"] == "exponential":
        text = f"Released was one of {record.values} public values. With probability 95 % " + (
            f"it lies between the answers number {lowest} and {blocks + 1 - lowest} of {blocks}, "
            f"in ascending order, each moved to the nearest of these values{able}"
            + (": anywhere among the answers of blocks, and no more is known" * (lowest == 1))
            if lowest > 0
            else "it lies in the range, and no more is known"
            + (", if the prior is wrong" if stated["prior"] else "")
        )
    else:
        text = (
            "Released was the mean of their answers, each moved into the public "
            + ("range" if stated["aggregate"] == "mean" else "ball")
            + f", with noise of scale {format_down(float(record.scale or 0), 4)}. With probability "
            f"95 % the noise is at most {format_up(accuracy, 4)}"
            + (" in each coordinate" if record.values > 1 else "")
        )
    return f"{head}{text}.{part}"


def explain_blocks_reach(certificate: Certificate) -> str:
    """Say whom the promise covers, and why."""
    stated = certificate.mechanism.parameters
    user = "user" in stated
    who = "user" if user else "person" if certificate.person else "row"
    whose = f"user, by the column {flat(str(stated['user']))!r}," if user else "row"
    return (
        f"Whom it protects: this holds for every table, every {who} and every function; no "
        f"population is assumed. Released was {_quote(str(stated['function']))}, asked about "
        f"{name_count(int(stated['blocks']), 'block')} "
        f"of the rows: each {whose} was put into one of them by chance "
        "alone, and so changes one answer, whatever the function does. A call that failed counts "
        f"as {name_silent(str(stated['aggregate']))}. The number of rows "
        + ("is public." if certificate.neighbours == "replace-one" and not user else "is private.")
    )


def _quote(name: str) -> str:
    """Show the name of a function, which may be any text: in quotes it cannot be a sentence."""
    return repr(flat(name))


def _size(count: Any) -> str:
    """Say how many bytes, in the largest unit that needs no fraction."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20)):
        if count % factor == 0:
            return f"{count // factor} {unit}"
    return f"{count} bytes"


def name_silent(aggregate: str) -> str:
    """Say what a call counts as that gave no answer."""
    ends = {
        "exponential": "the lowest candidate",
        "votes": "no vote",
        "stable": "no vote",
        "mean": "the low end",
    }
    return ends.get(aggregate, "the centre")


def explain_blocks_assumptions(certificate: Certificate) -> str:
    """Say what is assumed."""
    stated = certificate.mechanism.parameters
    lines = [
        "the function, the candidates, the number of blocks and all settings were chosen without "
        "looking at the private rows; so were the types of the columns, such as whole numbers",
        ROWS_ALONE,
        "calls tell each other nothing: each was in a fresh process and a folder of its own, with "
        f"{stated['cpu_seconds']:g} seconds of processor time, {stated['idle_seconds']:g} seconds "
        f"of waiting, {_size(stated['memory'])} of memory and {_size(stated['disk'])} on disk; "
        "what a call writes elsewhere, or sends over a network, is read by no other call",
        *([describe_search("what it", found)] if (found := certificate.unsearched) else []),
        "the released answer is the only output: not the running time, nor what a call does "
        "outside of its process",
    ]
    return "What is assumed:\n" + "\n".join(f"  - {line}" for line in lines)
