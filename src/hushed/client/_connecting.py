"""Connect to a team server."""

from __future__ import annotations

import os
from importlib.util import find_spec

from hushed._ground.calls import called_as
from hushed.client._client import Client
from hushed.client._pending import pending_folder
from hushed.client._sending import Line, Send, check_url, open_line
from hushed.errors import MissingExtra, ParameterError
from hushed.statements import key_id

_NEEDED = ("cryptography", "duckdb", "ibis", "urllib3")


@called_as('hs.connect("https://stats.example.org", token)')
def connect(
    url: str, token: str | None = None, *, key: bytes | None = None, send: Send | None = None
) -> Client:
    """Connect to a team server. Experimental.

    Parameters
    ----------
    url : str
        Its address; ``http`` on this computer only.
    token : str, optional
        The token that the steward gave you; by default the environment variable ``HUSHED_TOKEN``.
    key : bytes, optional
        Public key of the server, in PEM, which came another way. Without it, the one that the
        server names is taken: then a certificate shows that the server signed it, and no more.
    send : callable, optional
        How to send, for tests and for networks of your own.

    Returns
    -------
    Client
        The server.

    Raises
    ------
    ParameterError
        If the address is not safe, there is no token, or the key is no public key.
    MissingExtra
        If the extra ``hushed[client]`` is not installed.
    Refusal
        If the token does not count.
    LedgerUnavailable
        If the server was not reached, or what answers there is none.
    """
    if any(find_spec(each) is None for each in _NEEDED):
        raise MissingExtra("the client of a server", "client")
    place = check_url(url)
    if key is not None:
        _require_key(key)
    shown = token or os.environ.get("HUSHED_TOKEN", "")
    if not shown or not shown.isascii() or not shown.isprintable():
        raise ParameterError("a token is needed: give it, or set HUSHED_TOKEN", parameter="token")
    line = Line(send=send or open_line(place), token=shown)
    who = line.read("/v1/me", "id")["id"]
    named = _read_key(line) if key is None else key
    return Client(url=place, line=line, key=named, pending=pending_folder(place, who))


def _require_key(key: object) -> None:
    """Refuse what is no public key, before anything is asked and paid."""
    if not isinstance(key, bytes):
        raise ParameterError(
            "key is the content of the file of the public key, as in "
            f"key=Path('stats.pub').read_bytes(), got {type(key).__name__}"
        )
    key_id(key)


def _read_key(line: Line) -> bytes:
    """Read the key that the server names."""
    found = line.read("/v1/keys", "keys")["keys"]
    try:
        return str(found[0]["pem"]).encode()
    except (TypeError, LookupError):
        raise ParameterError("the server names no key of its certificates: give key") from None
