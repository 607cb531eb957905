"""The token of a client: given, in a file of its own, or in the environment; never in a text."""

from __future__ import annotations

import os
import re
import stat
import zlib
from pathlib import Path

from hushed._ground.printing import name_missing, plain_path
from hushed.errors import NotFound, ParameterError

_LONGEST = 4096  # bytes of the file that are read
_BEGIN = "hsh_"  # of every token
_TOKEN = re.compile(f"{_BEGIN}[0-9A-Za-z]{{12}}_")
_WHOLE = re.compile(rf"({_BEGIN}[0-9a-f]{{12}}_[A-Za-z0-9_-]{{43}})_([0-9a-f]{{8}})")
NOT_WHOLE = (
    "What was given is no whole token: one is hsh_ and 65 more characters, without blanks and "
    "quotation marks, and the last 8 are a checksum, which does not fit. Copy it again."
)


def is_whole(token: str) -> bool:
    """Whether this may be a token as it was shown: nothing is cut off, added or mistyped."""
    found = _WHOLE.fullmatch(token)
    return found is not None and f"{zlib.crc32(found[1].encode()):08x}" == found[2]


def find_token(token: str | None, token_file: str | Path | None) -> str:
    """Find the token: the one that is given, in a file or not, before those of the environment."""
    if token and token_file is not None:
        raise ParameterError("give token or token_file, and not both", parameter="token_file")
    if not token and token_file is None:
        token = os.environ.get("HUSHED_TOKEN")
        token_file = os.environ.get("HUSHED_TOKEN_FILE") or None
    if not token and token_file is not None:
        token = _read_token(token_file)
    token = (token or "").strip()  # a file that was read ends in a new line
    if not token or not token.isascii() or not token.isprintable():
        raise ParameterError(
            "a token is needed. A steward gets it for you, by hushed serve invite NAME at the "
            "machine of the server; it begins with hsh_. Set the environment variable HUSHED_TOKEN "
            "to it, or HUSHED_TOKEN_FILE to a file of it that only you may read; in Python, "
            "token= and token_file= do the same",
            parameter="token",
        )
    return token


def _read_token(named: str | Path) -> str:
    """Read a file that only its owner may read, as it was when it was opened."""
    if _TOKEN.search(str(named)):  # which no message may show
        raise ParameterError(
            "token_file is the name of a file, and this is a token: give it as token",
            parameter="token_file",
        )
    path = Path(named)
    try:
        path = path.expanduser()
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            content = file.read(_LONGEST) if stat.S_ISREG(found.st_mode) else b""
    except (OSError, RuntimeError, ValueError) as error:  # no such home; a zero byte in its name
        why = getattr(error, "strerror", None) or "there is no such place"
        raise NotFound(
            f"the token cannot be read ({why}) of the file {name_missing(path)}"
        ) from None
    if os.name == "posix" and found.st_mode & 0o077:
        raise ParameterError(
            f"others may read or change the token in {plain_path(path)}: chmod 600 it, and "
            "ask your steward for another token if somebody may have read it",
            parameter="token_file",
        )
    text = content.decode("utf-8-sig", errors="replace").strip()
    if not text.startswith(_BEGIN) or not text.isascii() or len(text.split()) != 1:
        raise ParameterError(
            f"{plain_path(path)} holds no token, or more than one", parameter="token_file"
        )
    return text
