"""What everybody may ask: whether the server lives, and the keys of its certificates."""

from __future__ import annotations

import base64

from fastapi import APIRouter, Response

from hushed.errors import HushedError
from hushed.ledger._together import reading
from hushed.server._desk import Desk
from hushed.server._problems import Problem, document
from hushed.server._schema import require_version
from hushed.server._shown import ShownHealth, ShownKey, ShownKeys, tell
from hushed.statements import key_id, public_key


def make_router(desk: Desk) -> APIRouter:
    """Make the routes of everybody."""
    router = APIRouter(tags=["health"])
    public = public_key(desk.key)

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
        """Give the public key of certificates; compare its digest over another way."""
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
            load_pem_public_key,
        )

        raw = load_pem_public_key(public).public_bytes_raw()  # type: ignore[union-attr]
        x = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
        return ShownKeys(keys=[ShownKey(kid=key_id(public), x=x, pem=public.decode())])

    return router


def tell_ready(desk: Desk) -> Response:
    """Say that the ledger answers, if it does."""
    try:
        with reading(desk.ledger) as connection:
            desk.check_mark(connection)  # else nothing is charged
            require_version(connection)
    except HushedError:
        raise Problem("ledger_unavailable") from None
    return tell(ShownHealth(status="ready"))
