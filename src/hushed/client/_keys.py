"""The public keys of a server: the one that signs its certificates, and those before it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hushed.client._sending import Line
from hushed.errors import ParameterError
from hushed.statements import key_id


def read_keys(line: Line) -> tuple[bytes, ...]:
    """Read the keys that the server names: the one that signs now comes first."""
    found = line.read("/v1/keys", "keys")["keys"]
    try:
        known = tuple(str(each["pem"]).encode() for each in found)
    except (TypeError, LookupError):
        known = ()
    if not known:
        raise ParameterError("the server names no key of its certificates: give key")
    return known


def check_keys(key: bytes | Sequence[bytes]) -> tuple[bytes, ...]:
    """Refuse what is no public key, before anything is asked and paid."""
    known = (
        (key,) if isinstance(key, bytes) else tuple(key) if isinstance(key, list | tuple) else ()
    )
    if not known or not all(isinstance(each, bytes) for each in known):
        raise ParameterError(
            "key is the content of the file of the public key, as in "
            "key=Path('stats.pub').read_bytes(), or a list of them where the server had another "
            f"one before; got {type(key).__name__}"
        )
    for each in known:
        key_id(each)
    return known


def find_signer(envelope: str, known: Sequence[bytes]) -> bytes | None:
    """Find which key an envelope says that it was signed with; whether it was is checked after."""
    try:
        named = {str(each["keyid"]) for each in json.loads(envelope)["signatures"]}
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return next((each for each in known if key_id(each) in named), None)
