"""Which user of this computer asks: Linux tells it of each connection."""

from __future__ import annotations

import os
import socket
import sys
from collections import deque
from pathlib import Path

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_MOST_KNOWN = 64
_ESTABLISHED = "01"  # of other states the user is not told, or is told as root
End = tuple[str, int]
_MAPPED = f"{0:016X}{socket.htonl(0xFFFF):08X}"  # IPv6 writes ::ffff: before an old address


class Peers:
    """Who is at the other end of each connection: welcome, or another user of this computer."""

    def __init__(self, welcome: frozenset[int] | None = None) -> None:
        self._welcome = list_welcome() if welcome is None else welcome
        # The server makes one record of an address for each connection: the same record, not an
        # equal one, is the same connection.
        self._known: deque[tuple[End, bool]] = deque(maxlen=_MOST_KNOWN)

    def welcomes(self, client: End, server: End) -> bool:
        """Whether a request may be answered; also where nothing is told of who asks."""
        for known, verdict in self._known:
            if known is client:
                return verdict
        user = find_user(client, server) if self._welcome else None
        self._known.append((client, user is None or user in self._welcome))
        return self._known[-1][1]


def list_welcome() -> frozenset[int]:
    """List who may ask: this user, root, and who became root by sudo."""
    if not hasattr(os, "geteuid"):
        return frozenset()
    sudo = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    return frozenset({0, os.geteuid()} | ({int(sudo)} if sudo.isdecimal() else set()))


def find_user(client: End, server: End) -> int | None:
    """Find the number of the user at the other end of a connection; None where it is not told."""
    try:
        ends = _write_end(*client), _write_end(*server)
    except OSError:
        return None  # no address of the old kind: not a connection of ours
    for table in _TABLES:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            words = line.split()
            found = tuple(each.upper().removeprefix(_MAPPED) for each in words[1:3])
            if found == ends and words[3] == _ESTABLISHED:
                return int(words[7])
    return None


def _write_end(host: str, port: int) -> str:
    """Write one end of a connection as the kernel does: the address as a number of this machine."""
    number = int.from_bytes(socket.inet_aton(host), sys.byteorder)
    return f"{number:08X}:{port:04X}"
