"""The key that signs certificates, and those that signed before it.

The private key lies in the folder, beside a list of the public keys that count no more for what is
signed now. The ledger says which key counts: so a change that was cut off is ended by whoever
opens the server next, or was none.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hushed._ground.printing import plain_path
from hushed.errors import DamagedLedger, NotFound, ParameterError
from hushed.ledger._rows import run
from hushed.server._disk import replace_file, replace_text, sync_folder
from hushed.statements import key_id, public_key

if TYPE_CHECKING:
    from hushed.ledger._rows import Transaction

KEY_FILE = "server.key"
PUBLIC = f"{KEY_FILE}.pub"
NEXT = f"{KEY_FILE}.next"  # the private key that is about to count
FORMER = "server.keys"  # public ones


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicKey:
    """A public key of certificates, and when it signed."""

    kid: str
    pem: str
    valid_from: str
    valid_until: str | None = None  # it signs still


def read_key(folder: Path) -> bytes:
    """Read the key that signs certificates."""
    try:
        return (folder / KEY_FILE).read_bytes()
    except OSError as error:
        raise NotFound(
            f"{plain_path(folder / KEY_FILE)}, which signs certificates, cannot be read "
            f"({error.strerror})"
        ) from None


def name_key(private: bytes) -> str:
    """Name a private key by the digest of its public one."""
    return key_id(public_key(private))


def find_key(folder: Path, keyid: str) -> bytes:
    """Find the key that counts; a change that was cut off is ended. Any other key, if none does."""
    key = read_key(folder)
    if name_key(key) == keyid:
        return key
    with suppress(OSError, ParameterError):  # another process may be faster
        made = (folder / NEXT).read_bytes()
        if name_key(made) == keyid:
            with suppress(OSError):
                install_key(folder)
            return made
    return read_key(folder)


def install_key(folder: Path) -> None:
    """Put the next key in its place: the public one first, for then the change is not ended yet."""
    made = (folder / NEXT).read_bytes()
    replace_file(folder / PUBLIC, public_key(made))
    (folder / PUBLIC).chmod(0o644)
    (folder / NEXT).replace(folder / KEY_FILE)
    sync_folder(folder)


def read_former(folder: Path, current: str) -> tuple[PublicKey, ...]:
    """Read the keys that signed before, the newest last."""
    try:
        found = json.loads((folder / FORMER).read_text(encoding="ascii"))
        known = tuple(PublicKey(**each) for each in found)
        named = [key_id(each.pem.encode()) for each in known]
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, TypeError):
        named, known = [""], ()
    if named != [each.kid for each in known]:
        raise DamagedLedger(
            f"{plain_path(folder / FORMER)}, the list of the keys that signed before, cannot be "
            "read: put it back from a copy"
        )
    return tuple(each for each in known if each.kid != current)


def write_former(folder: Path, former: tuple[PublicKey, ...]) -> None:
    """Write them, all of them or nothing; on the disk when this returns."""
    replace_text(folder / FORMER, json.dumps([asdict(each) for each in former], indent=1) + "\n")


def list_keys(connection: Transaction, folder: Path, private: bytes) -> tuple[PublicKey, ...]:
    """List the key that signs now, and then those that signed before, the newest first."""
    public = public_key(private).decode()
    former = read_former(folder, key_id(public.encode()))
    begun = former[-1].valid_until if former else None
    now_is = PublicKey(
        kid=key_id(public.encode()), pem=public, valid_from=begun or _made_at(connection)
    )
    return (now_is, *reversed(former))


def _made_at(connection: Transaction) -> str:
    """Say when the server was made: the first event of its trail."""
    statement = "SELECT body FROM @.hushed_s_audit WHERE number = 1"
    row = run(connection, statement, {}).fetchone()
    return "" if row is None else str(json.loads(row[0])["at"])
