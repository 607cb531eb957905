"""Addresses of databases, whose passwords are kept apart."""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from hushed.errors import ParameterError

_SECRET = ("pass", "pwd", "token", "secret")


def split_password(address: str) -> tuple[str, str]:
    """Take the password out of an address."""
    try:
        parts = urlsplit(address)
        secret = unquote(parts.password or "")
    except ValueError:
        raise ParameterError("this is no address: postgresql://USER@HOST/DATABASE") from None
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
