"""Connect to a team server."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from hushed._ground.calls import called_as
from hushed.client._client import Client
from hushed.client._keys import check_keys, read_keys
from hushed.client._pending import pending_folder
from hushed.client._sending import Line, Send, check_url, open_line
from hushed.client._tokens import NOT_WHOLE, find_token, is_whole
from hushed.errors import MissingExtra, NotFound, Refusal

_NEEDED = ("cryptography", "duckdb", "ibis", "urllib3")


@called_as('hs.connect("https://stats.example.org", token)')
def connect(
    url: str,
    token: str | None = None,
    *,
    token_file: str | Path | None = None,
    key: bytes | Sequence[bytes] | None = None,
    send: Send | None = None,
) -> Client:
    """Connect to a team server. Experimental.

    Parameters
    ----------
    url : str
        Its address; ``http`` on this computer only.
    token : str, optional
        The token that the steward gave you; by default the environment variable ``HUSHED_TOKEN``.
    token_file : str or Path, optional
        In place of it, a file that holds the token and that nobody but you may read
        (``chmod 600``); by default the one that ``HUSHED_TOKEN_FILE`` names, if there is no
        ``HUSHED_TOKEN``.
    key : bytes or list of bytes, optional
        Public key of the server, in PEM, which came another way; where the server had another one
        before, both, the newest first. Without it, those that the server names are taken: then a
        certificate shows that the server signed it, and no more.
    send : callable, optional
        How to send, for tests and for networks of your own.

    Returns
    -------
    Client
        The server.

    Raises
    ------
    ParameterError
        If the address is not safe, there is no token, others may read its file, or the key is no
        public key.
    NotFound
        If the file of the token cannot be read, or there is no server at that path.
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
    given = None if key is None else check_keys(key)
    shown = find_token(token, token_file)
    line = Line(send=send or open_line(place), token=shown)
    try:
        who = line.read("/v1/me", "id")["id"]
    except NotFound:
        raise NotFound(
            "there is no team server at this address: give it as the steward told it, without "
            "/v1 or /pages"
        ) from None
    except Refusal as refused:
        if is_whole(shown):
            raise
        raise type(refused)(f"{refused.message} {NOT_WHOLE}") from None
    now_is, *former = read_keys(line) if given is None else given
    return Client(
        url=place,
        line=line,
        key=now_is,
        former=tuple(former),
        pinned=given is not None,
        pending=pending_folder(place, who),
    )
