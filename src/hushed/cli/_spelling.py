"""How arguments of Python are spelled as options of the command that runs.

Names are taken from the command's own options. An error carries the name of its parameter and a
hint in Python; the hint on the command line stands here, or with the command.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from hushed._ground.numerals import read_number, read_whole
from hushed._ground.printing import brief, suggest
from hushed.errors import HushedError, ParameterError

Hint = str | Callable[[str], str]
"""What an error advises on the command line: words, or a function of the advice in Python."""

_HINTS: dict[str, Hint] = {  # of options that several commands share
    "budget": "give --budget NAME",
    "data_dependent": "--data-dependent admits it, and marks the result",
    "key": "read its answer again by 'hushed ledger answer', or take another --key",
    "ledger": "give --ledger URL",
    "workers": "use --workers 1",
}

_OTHER_WORDS = {  # by option: words of SQL and of other tools, without their dashes
    "--by": "group-by groupby group groups",
    "--where": "filter having condition",
    "--mean": "avg average",
    "--quantile": "percentile percentiles quantiles",
    "--histogram": "bins hist",
    "--count-users": "distinct count-distinct users",
    "--user": "id person unit privacy-unit user-id",
    "--low": "bounds clip range",
    "--epsilon": "eps privacy-budget loss",
    "--error": "accuracy precision",
    "--max-rows-per-user": "max-rows max-contributions rows",
    "--max-groups-per-user": "max-groups max-partitions",
    "--entry": "key number",
    "--keys": "partitions categories values",
    "--quote": "price dry-run estimate",
    "--ledger": "db database",
    "--out": "output certificate",
    "--mechanism": "method",
    "--note": "comment label",
    "--plot": "figure chart",
}
_CERTIFY = "write the answer by --out answer.json, then 'hushed certify answer.json' makes the page"
_NOT_ASKED = {  # by command: what it finds out itself, and another command asks
    "query": {"html": _CERTIFY, "certificate": _CERTIFY},
    "statistic": {
        "rows": "leave it out, for the rows of the file are counted; their number is public "
        "unless --private-count is given"
    },
}
_WRONG_USE: type[Exception] = typer.BadParameter.__mro__[1]

_options: ContextVar[Mapping[str, TyperOption] | None] = ContextVar("options", default=None)


_READERS: dict[type, Callable[[str], float]] = {float: read_number, int: read_whole}


class SpellingCommand(TyperCommand):
    """A command whose errors name its options, and whose numbers are read by our readers."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        for each in self.params:
            _read_strictly(each)

    def get_params(self, ctx: Any) -> Any:
        """Options, those of help among them."""
        return hide_types_of_flags(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options; of one that there is not, say which one was meant."""
        try:
            self._refuse_twice(ctx, args)
            return super().parse_args(ctx, args)
        except _WRONG_USE as wrong:
            self._suggest(wrong, str(ctx.info_name))
            raise

    def _refuse_twice(self, ctx: Any, args: list[str]) -> None:
        """Refuse an option that takes one value, and is given two: the first would be dropped."""
        _, _, order = self.make_parser(ctx).parse_args(args=[*args])
        for each in self.params:
            if isinstance(each, TyperOption) and not each.multiple and order.count(each) > 1:
                raise typer.BadParameter("it takes one value, and is given twice", ctx, each)

    def _suggest(self, wrong: Any, command: str) -> None:
        wrong.message = str(wrong.message).removeprefix("Value error, ")  # words of a parser
        given = getattr(wrong, "option_name", None)
        if given is None:
            return
        own = [name for each in self.params for name in each.opts]
        word = given.lstrip("-")
        meant = [each for each in own if word in _OTHER_WORDS.get(each, "").split()]
        if given in own:  # its value is missing
            return
        if word in _NOT_ASKED.get(command, {}):
            wrong.message += f"; {_NOT_ASKED[command][word]}"
        elif meant:
            wrong.message += f"; did you mean {meant[0]!r}?"
        else:
            wrong.message += _suggest_near(word, own)
        wrong.possibilities = None

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        known = {each.name: each for each in self.params if isinstance(each, TyperOption)}
        before = _options.set({name: each for name, each in known.items() if name})
        try:
            return super().invoke(ctx)
        finally:
            _options.reset(before)


class PlainGroup(TyperGroup):
    """A group of commands whose help shows no type for a flag."""

    def get_params(self, ctx: Any) -> Any:
        """Options, those of help among them."""
        return hide_types_of_flags(super().get_params(ctx))


def hide_types_of_flags(parameters: Any) -> Any:
    """Leave out ``<bool>`` after options that take no value; the same parameters."""
    for each in parameters:
        if getattr(each, "is_bool_flag", False):
            each.display_type_rich = _no_type
    return parameters


def _no_type(ctx: Any) -> None:
    """Say no type; a help page leaves the place empty."""


def _suggest_near(word: str, known: Sequence[str]) -> str:
    """Ask whether an option was meant that is nearly the same, dashes aside."""
    names = {each.lstrip("-"): each for each in known}
    return re.sub(r"'(.+?)'", lambda found: repr(names[found[1]]), suggest(word, names))


def _read_strictly(parameter: Any) -> None:
    """Refuse of a parameter what becomes a number, and is not written as one."""
    convert = parameter.process_value

    def process(context: Any, given: Any) -> Any:
        found = convert(context, given)
        both = zip(given, found, strict=True) if isinstance(found, list) else [(given, found)]
        for text, value in both:
            if isinstance(text, str) and type(value) in _READERS:
                try:
                    _READERS[type(value)](text)
                except ValueError as error:
                    raise typer.BadParameter(
                        f"{brief(text)}: {error}", param=parameter, ctx=context
                    ) from None
        return found

    parameter.process_value = process


def describe_error(error: HushedError, hints: Mapping[str, Hint]) -> str:
    """Message of an error in the words of the command line."""
    name, message, hint = error.parameter or "", error.message, error.hint
    option = _find_option(name)
    if option is None:
        return str(error)
    if hint:  # that names the option
        said = (_HINTS | dict(hints)).get(name, f"see {option.opts[0]}")
        return f"{message}; {said if isinstance(said, str) else said(hint)}"
    if not isinstance(error, ParameterError):
        return message
    said = message.removeprefix(f"{name} ")
    return f"{option.opts[0]} {said}" if said != message else f"{option.opts[0]}: {message}"


def spell_option(name: str, value: object) -> str:
    """Spell an argument as an option; one that the command does not have stays as in Python."""
    option = _find_option(name)
    if option is None:
        return f"{name}={value!r}"
    if isinstance(value, bool):
        names = option.opts if value else option.secondary_opts
        return names[0] if names else f"no {option.opts[0]}"
    if isinstance(value, Mapping):
        value = ",".join(f"{key}:{each}" for key, each in value.items())
    return f"{option.opts[0]} {value}"


def _find_option(name: str) -> TyperOption | None:
    """Option of the command that runs whose argument in Python has a name."""
    return (_options.get() or {}).get(name)
