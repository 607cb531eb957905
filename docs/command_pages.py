"""Pages of the command line: one for each command, with its usage, an example and every option.

They follow from what ``--help`` says, so that neither can say what the other does not.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import typer

from hushed import cli

_ARGUMENTS = "Arguments"
_REST = "Other options"  # those without a panel of their own


def command_pages() -> dict[str, str]:
    """Give the Markdown of every page, by its path below the folder of the site."""
    pages = {f"commands/{name}.md": command_page(name) for name in cli.COMMANDS}
    return {"commands/index.md": commands_index(), **pages}


def command_titles() -> dict[str, str]:
    """Give the path of the page of each command by its title."""
    return {f"hushed {name}": f"commands/{name}.md" for name in cli.COMMANDS}


def commands_index() -> str:
    """Markdown of the list of commands."""
    rows = [
        f"| [`hushed {name}`]({name}.md) | {said} |" for name, (_, said) in cli.COMMANDS.items()
    ]
    head = (
        "# Command line\n\n"
        "`hushed COMMAND -h` says the same in a terminal, and `hushed --install-completion` makes\n"
        "the tabulator complete names and options.\n\n"
        "| command | what it does |\n|---|---|\n"
    )
    return head + "\n".join(rows) + "\n"


def command_page(name: str) -> str:
    """Markdown of the page of one command, or of a group of them."""
    found = typer.main.get_command(cli.load(name))
    below: dict[str, Any] = getattr(found, "commands", {})
    lines = [f"# hushed {name}", "", cli.COMMANDS[name][1], ""]
    if not below:
        lines += _describe(name, found)
    for each, command in below.items():
        lines += [
            f"## {each}",
            "",
            _plain(command.help or ""),
            "",
            *_describe(f"{name} {each}", command),
        ]
    return "\n".join([*lines, cli.exit_codes(name), ""])


def _describe(called: str, command: Any) -> Iterator[str]:
    """Usage, example and options of one command, line by line."""
    context = command.context_class(command, info_name=f"hushed {called}")
    yield from ["```text", command.get_usage(context).removeprefix("Usage: "), "```", ""]
    if called in cli.EXAMPLES:
        yield from ["For example:", "", "```text", _fold(cli.EXAMPLES[called]), "```", ""]
    shown = [each for each in command.params if not each.hidden and each.get_help_record(context)]
    for panel in dict.fromkeys(_panel(each) for each in shown):
        kind = "argument" if panel == _ARGUMENTS else "option"
        yield from [f"**{panel}**", "", f"| {kind} | meaning |", "|---|---|"]
        for option in (each for each in shown if _panel(each) == panel):
            written, said = option.get_help_record(context)
            yield f"| {_write_words(written)} | {_plain(said)} |"
        yield ""


def _panel(option: Any) -> str:
    if option.param_type_name == "argument":
        return _ARGUMENTS
    return option.rich_help_panel or _REST


def _write_words(written: str) -> str:
    """Write an option word by word; no word is broken but those that list choices."""
    return " ".join(
        f"`{each}`" + ("" if "|" in each else "{ .whole }") if each != "/" else each
        for each in written.split()
    )


def _fold(command: str) -> str:
    """Break a long command before its options, as a terminal takes it."""
    lines = [""]
    for word in (shlex.quote(each) if " " in each else each for each in shlex.split(command)):
        if len(lines[-1]) + len(word) > 70 and word.startswith("--"):
            lines[-1] += " \\"
            lines.append(" ")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Write on one line, and keep what reads as a tag, emphasis or a cell's end from being one."""
    return re.sub(r"([*_|\[])", r"\\\1", " ".join(text.split())).replace("<", "&lt;")
