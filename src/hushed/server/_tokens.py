"""Tokens: how they are written, and what is kept of them."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
import secrets
import zlib
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, get_args

from hushed.errors import ParameterError

LONGEST_DAYS = 90
DOOR_DAYS = 1  # that an address counts which opens the pages once
# What opens: the API; or, once, the pages, for a session; or the pages while a session lasts.
Use = Literal["api", "door", "page"]
_FORM = re.compile(r"hsh_([0-9a-f]{12})_([A-Za-z0-9_-]{43})_([0-9a-f]{8})")
_NOBODY = hashlib.sha256(secrets.token_bytes(32)).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a token may do of what its person may do: it only narrows."""

    datasets: tuple[str, ...] | None = None  # None: all that the person may
    quote_only: bool = False
    addresses: tuple[str, ...] = ()  # networks to come from; empty: any
    use: Use = "api"

    def __post_init__(self) -> None:
        if self.use not in get_args(Use):
            raise ParameterError(f"a token is for one of {get_args(Use)}", parameter="use")
        for each in self.addresses:
            try:
                ipaddress.ip_network(each)
            except ValueError:
                raise ParameterError(
                    f"{each!r} is no address or network such as 10.0.0.0/8", parameter="addresses"
                ) from None

    def allows_dataset(self, dataset: str) -> bool:
        """Whether a data set may be seen."""
        return self.datasets is None or dataset in self.datasets

    def allows_address(self, address: str) -> bool:
        """Whether somebody may come from an address."""
        if not self.addresses:
            return True
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in ipaddress.ip_network(each) for each in self.addresses)

    def below(self, maker: Scope) -> Scope:
        """Give what a token may do that is made with another one: from no other addresses.

        Whoever holds a token that counts from some networks could else make one that counts from
        all.
        """
        if not maker.addresses:
            return self
        if not self.addresses:
            return replace(self, addresses=maker.addresses)
        if all(any(_is_part(each, of) for of in maker.addresses) for each in self.addresses):
            return self
        raise ParameterError(
            f"your own token counts from {', '.join(maker.addresses)} alone, and so does each that "
            "you make: name addresses among these, or leave them out",
            parameter="addresses",
        )

    def to_json(self) -> str:
        """Write as JSON."""
        datasets = None if self.datasets is None else list(self.datasets)
        told: dict[str, Any] = {"datasets": datasets, "quote_only": self.quote_only}
        told |= {"addresses": list(self.addresses), "use": self.use}
        return json.dumps(told, sort_keys=True)

    @classmethod
    @lru_cache(maxsize=1024)  # it is read with every request
    def from_json(cls, text: str) -> Scope:
        """Read what `to_json` wrote."""
        told = json.loads(text)
        datasets = told["datasets"]
        return cls(
            datasets=None if datasets is None else tuple(datasets),
            quote_only=bool(told["quote_only"]),
            addresses=tuple(told["addresses"]),
            use=told.get("use", "api"),  # there was no other before
        )


def _is_part(network: str, of: str) -> bool:
    """Whether all addresses of a network are among those of another one."""
    inner, outer = ipaddress.ip_network(network), ipaddress.ip_network(of)
    same = inner.version == outer.version
    return same and inner[0] in outer and inner[-1] in outer


def make_token() -> tuple[str, str, str]:
    """Make a token: its id, the text that is shown once, and what is kept.

    The secret has 256 random bits, so that a fast hash keeps it: nobody can try them all. The
    checksum lets programs that look for leaked secrets know a token from other text.
    """
    identity, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    body = f"hsh_{identity}_{secret}"
    return identity, f"{body}_{_checksum(body)}", hash_secret(secret)


def split_token(text: str) -> tuple[str, str] | None:
    """Split a token into id and secret; None if it is none."""
    found = _FORM.fullmatch(text)
    if found is None or _checksum(text[: -len("_00000000")]) != found[3]:
        return None
    return found[1], found[2]


def hash_secret(secret: str) -> str:
    """Hash the secret of a token: all that is kept of it."""
    return hashlib.sha256(f"hushed token\n{secret}".encode()).hexdigest()


def is_secret(secret: str, kept: str | None) -> bool:
    """Whether a secret is the one that is kept; the work is the same where none is."""
    same = secrets.compare_digest(hash_secret(secret), _NOBODY if kept is None else kept)
    return same and kept is not None


def _checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"
