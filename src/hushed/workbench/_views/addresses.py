"""Addresses: of databases, whose passwords are kept apart, and of the pages of budgets."""

from __future__ import annotations

import base64
import binascii
import re
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from hushed.errors import NotFound, ParameterError

_SECRET = ("pass", "pwd", "token", "secret")


# Names that stand in an address as they are; not those of the other pages below /ledger.
_PLAIN = re.compile(r"(?!(?:open|export|verify|backup)\Z)[A-Za-z0-9][A-Za-z0-9_.-]*", re.ASCII)


def write_segment(name: str) -> str:
    """Write the name of a budget as one part of an address; no two names have the same."""
    if _PLAIN.fullmatch(name):
        return name
    return "~" + base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")


def read_segment(segment: str) -> str:
    """Read the name of a budget from its part of an address."""
    code = segment.removeprefix("~")
    try:
        padded = code + "=" * (-len(code) % 4)
        name = base64.urlsafe_b64decode(padded).decode() if segment != code else segment
        if write_segment(name) == segment:
            return name
    except (binascii.Error, ValueError):
        pass
    raise NotFound("there is no such budget; the page Ledger lists those that there are")


def split_password(address: str) -> tuple[str, str]:
    """Take the password out of an address."""
    try:
        parts = urlsplit(address)
        secret = unquote(parts.password or "")
    except ValueError:
        raise ParameterError("this is no address: postgresql://USER@HOST/DATABASE") from None
    if not parts.netloc and not parts.query:  # of a file; urlunsplit drops slashes before its path
        return address, ""
    user, at, place = parts.netloc.rpartition("@")
    asked = parse_qsl(parts.query, keep_blank_values=True)
    kept = [(name, text) for name, text in asked if not _is_secret(name)]
    hidden = [text for name, text in asked if _is_secret(name)]
    plain = parts._replace(netloc=f"{user.partition(':')[0]}{at}{place}", query=urlencode(kept))
    return urlunsplit(plain), secret or "".join(hidden[:1])


def with_password(address: str, password: str = "") -> str:
    """Put a password into an address; without one, it is an address that may be shown."""
    plain, _ = split_password(address)
    if not password:
        return plain
    parts = urlsplit(plain)
    user, _, place = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user}:{quote(password, safe='')}@{place}"))


def _is_secret(name: str) -> bool:
    return any(each in name.lower() for each in _SECRET)
