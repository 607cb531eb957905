"""What everybody may ask: whether the server lives, and the keys of its certificates."""

from __future__ import annotations

import base64
from dataclasses import asdict

from fastapi import APIRouter, Response

from hushed.errors import HushedError
from hushed.ledger._together import reading
from hushed.server._desk import Desk
from hushed.server._keys import PublicKey
from hushed.server._problems import Problem, document
from hushed.server._schema import require_version
from hushed.server._shown import ShownHealth, ShownKey, ShownKeys, tell


def make_router(desk: Desk) -> APIRouter:
    """Make the routes of everybody."""
    router = APIRouter(tags=["health"])
    known = ShownKeys(keys=[_show_key(each) for each in desk.keys])

    @router.get("/livez", responses=document(known=False))
    async def alive() -> ShownHealth:
        """Say that the process answers; the database is not asked."""
        return ShownHealth(status="alive")

    @router.get(
        "/readyz",
        response_model=ShownHealth,
        responses=document("ledger_unavailable", known=False),
    )
    def ready() -> Response:
        """Say that the ledger answers, too."""
        return tell_ready(desk)

    @router.get("/v1/keys", responses=document(known=False))
    async def keys() -> ShownKeys:
        """Give the public keys of certificates; compare their digests over another way.

        The first one signs now; the others signed before, and check what they have signed.
        """
        return known

    return router


def _show_key(found: PublicKey) -> ShownKey:
    """Show a key as a JSON Web Key, too."""
    from cryptography.hazmat.primitives.serialization import load_pem_public_key  # noqa: PLC0415

    raw = load_pem_public_key(found.pem.encode()).public_bytes_raw()  # type: ignore[union-attr]
    x = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    return ShownKey(x=x, **asdict(found))


def tell_ready(desk: Desk) -> Response:
    """Say that the ledger answers, if it does."""
    try:
        with reading(desk.ledger) as connection:
            desk.check_mark(connection)  # else nothing is charged
            require_version(connection)
    except HushedError:
        raise Problem("ledger_unavailable") from None
    return tell(ShownHealth(status="ready"))
