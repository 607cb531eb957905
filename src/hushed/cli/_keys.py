"""The commands ``hushed keys``: keys to sign certificates with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from hushed._ground.printing import name_missing, plain_path
from hushed.cli._options import JsonOption
from hushed.cli._outcome import finish, print_line, print_note
from hushed.errors import NotFound, ParameterError
from hushed.statements import key_id, make_key, public_key

_LARGEST = 100_000  # bytes of a file with a key
KeyArgument = Annotated[
    Path, typer.Argument(metavar="KEY", help="File of the key; the public one ends in .pub.")
]


def new(key: KeyArgument, json: JsonOption = False) -> None:
    """Make a key: a private file, which only you can read, and a public one beside it."""
    public_file = key.with_name(key.name + ".pub")
    with finish(json=json, stopped="stopped; a file of the key may have been made") as result:
        for each in (key, public_file):
            if each.exists() or each.is_symlink():
                raise ParameterError(f"{plain_path(each)} exists: a key is never written over")
        if not key.parent.is_dir():
            raise NotFound(f"there is no folder {plain_path(key.parent)}")
        private, public = make_key()
        _write_new(key, private, 0o600)
        try:
            _write_new(public_file, public, 0o644)
        except BaseException:  # half of a pair would be in the way of the next try
            key.unlink()
            raise
        result.update(key=str(key), public=str(public_file), keyid=key_id(public))
        if not json:
            print_line(f"key {key_id(public)}")
            print_note(
                f"private: {key} (keep it where only you can read it); public: {public_file}"
            )


def show(key: KeyArgument, json: JsonOption = False) -> None:
    """Show the public key of a file, and its digest, to be compared over another way."""
    with finish(json=json, stopped="stopped") as result:
        found = read_key(key)
        public = public_key(found) if b"PRIVATE KEY" in found else found
        result.update(keyid=key_id(public), public=public.decode())
        if not json:
            print_line(f"key {key_id(public)}\n{public.decode().strip()}")


def read_key(path: Path) -> bytes:
    """Read the file of a key; a private one that others may read or change is remarked on."""
    if not path.is_file():
        raise NotFound(f"there is no file {name_missing(path)}")
    if path.stat().st_size > _LARGEST:
        raise ParameterError(f"{plain_path(path)} is too large for a key")
    found = path.read_bytes().removeprefix(b"\xef\xbb\xbf")  # which editors may write
    if b"PRIVATE KEY" in found and os.name == "posix" and path.stat().st_mode & 0o077:
        print_note(
            f"others may read or change the private key: chmod 600 {plain_path(path)}; whoever "
            "has read it can sign as you"
        )
    return found


def _write_new(path: Path, content: bytes, mode: int) -> None:
    """Write a file that does not exist yet, and that from the start only its owner may change."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(content)
    except BaseException:
        path.unlink()
        raise


keys = typer.Typer(
    no_args_is_help=True,
    help="Keys to sign certificates with: make one, show its public part.",
    pretty_exceptions_show_locals=False,
    add_completion=False,
)
keys.command("new")(new)
keys.command("show")(show)
