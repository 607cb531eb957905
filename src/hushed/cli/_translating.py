"""Words of Python in our own sentences, in the words of the command line.

Arguments become options of the command that runs, and names of functions become commands. What
stands in quotes is somebody's text, and stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from hushed.cli._spelling import find_option, spell_option

if TYPE_CHECKING:
    from hushed.comparing import Comparison

_SIMPLE = r"'[^']*'|True|False|-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|[A-Z]{3,}"
_ARGUMENT = re.compile(rf"\b([a-z_]\w*)=({_SIMPLE})(?=[\s,;:)]|\.(?:\s|$)|$)")
_PHRASE = re.compile(
    # A call, with one call inside it and calls behind it; then a name; an argument; a quotation.
    r"(?:\bkeep=)?\bhs\.(?P<call>\w+(?:\.\w+)*)\((?P<given>(?:[^()]|\([^()]*\))*)\)(?P<behind>(?:\.\w+\([^()]*\))*)"
    r"|\bhs\.(?P<name>\w+(?:\.\w+)*)"
    rf"|(?<![\w'\"])(?P<argument>{_ARGUMENT.pattern})"
    r"|(?<!\w)'[^']*'|\"[^\"]*\""  # an apostrophe begins none
)
_COMMANDS = {  # by name in Python; what is not here is for the file of the function, or for Python
    "Blocks": "hushed blocks",
    "Gaussian": "hushed release --mechanism gaussian",
    "InverseSensitivity": "hushed statistic --mechanism inverse",
    "Laplace": "hushed release --mechanism laplace",
    "Exponential": "hushed release --mechanism exponential",
    "ProposeTest": "hushed statistic --mechanism propose-test",
    "Smooth": "hushed statistic --mechanism smooth",
    "StableMode": "hushed statistic mode --mechanism stable-mode",
    "certify": "hushed certify",
    "compare": "hushed compare",
    "find_bound": "hushed find-bound",
    "proven_sensitivity": "hs.proven_sensitivity in Python",
    "release": "hushed release",
    "runs.list_runs": "hushed runs list",
    "sample_sensitivity": "hushed sensitivity",
    "statistics": "hushed statistic",
    "table": "hushed query",
    "test_sensitivity": "hushed test-sensitivity",
}
_OPTIONS = {  # by function: an option, and of which argument
    "Blockwise": ("block_rows", "rows"),
    "runs.Keep": ("keep_private", "private"),
}
_TRUTHS = {"True": True, "False": False}


def translate(text: str) -> str:
    """Put a sentence of ours into the words of the command that runs."""
    return _PHRASE.sub(_translate_one, text)


def translate_comparison(found: Comparison) -> Comparison:
    """Put what a comparison advises into words of the command line."""
    left_out = tuple(replace(each, reason=translate(each.reason)) for each in found.left_out)
    return replace(found, advice=translate(found.advice), left_out=left_out)


def _translate_one(found: re.Match[str]) -> str:
    call, name = found["call"], found["name"]
    if call is not None:
        return _translate_call(found[0], call, found["given"], found["behind"])
    if name is not None:
        return _COMMANDS.get(name, found[0])
    if found["argument"] is not None:
        return _spell(found["argument"])
    return found[0]


def _translate_call(text: str, name: str, given: str, behind: str) -> str:
    """Translate a call: into an option of this command, or into another command."""
    arguments = dict(_ARGUMENT.findall(f"{given},{behind}"))
    option, argument = _OPTIONS.get(name, ("", ""))
    if name == "Blockwise" and find_option(option) is None and argument in arguments:
        return f"hushed release --block-rows {arguments[argument]}"
    if find_option(option) is not None and argument in arguments:
        return _spell(f"{option}={arguments[argument]}")
    if name not in _COMMANDS or name == "proven_sensitivity":
        return text
    pairs = (
        f"--{key.replace('_', '-')} {value.strip(chr(39))}" for key, value in arguments.items()
    )
    return " ".join([_COMMANDS[name], *pairs])


def _spell(argument: str) -> str:
    """Spell an argument as an option, if this command has it."""
    name, _, value = argument.partition("=")
    if find_option(name) is None:
        return argument
    return spell_option(name, _TRUTHS.get(value, value.strip("'")))
