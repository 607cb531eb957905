"""Strings of PostgreSQL, as the bytes that it stores.

A database of another encoding than UTF-8 takes bytes for which UTF-8 has no character, and refuses
to send them as text. One cell would decide whether a query fails, after its charge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hushed.tables._engine.dialect import builtin_function

_ASCII = 128
_CONVERT = (
    "SELECT convert_from(held, getdatabaseencoding()) "
    "FROM unnest(%s::bytea[]) WITH ORDINALITY AS sent (held, place) ORDER BY place"
)


def send_text(text: Any) -> Any:
    """Give the stored bytes of a string."""
    encoding = builtin_function("getdatabaseencoding", (), "string")()
    return builtin_function("convert_to", ("string", "string"), "binary")(text, encoding)


def sha256(text: Any) -> Any:
    """Give SHA-256 of the stored bytes."""
    return builtin_function("encode", ("binary", "string"), "string")(
        builtin_function("sha256", ("binary",), "binary")(send_text(text)), "hex"
    )


def read_texts(driver: Any, held: Sequence[bytes]) -> dict[bytes, str]:
    """Read strings from stored bytes, as the server converts them to UTF-8.

    Where it refuses a text, each byte of it that is no ASCII is written as a character of private
    use, U+EF80 to U+EFFF: different texts stay different.
    """
    import psycopg.errors  # noqa: PLC0415

    if driver.info.parameter_status("server_encoding") == "UTF8" or all(map(bytes.isascii, held)):
        return {each: each.decode() for each in held}
    try:
        with driver.transaction():
            found = driver.execute(_CONVERT, [list(held)]).fetchall()
            return {each: text for each, (text,) in zip(held, found, strict=True)}
    except (psycopg.errors.UntranslatableCharacter, psycopg.errors.CharacterNotInRepertoire):
        if len(held) == 1:
            return {held[0]: "".join(chr(b if b < _ASCII else 0xEF00 + b) for b in held[0])}
    half = len(held) // 2
    return read_texts(driver, held[:half]) | read_texts(driver, held[half:])
