"""What waits for approval: a steward approves or declines it, and its asker takes it back."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel, ConfigDict, Field, StrictStr

from hushed.server._approving import approve, cancel, decline, why_not
from hushed.server._callers import Callers
from hushed.server._desk import Desk
from hushed.server._people import Caller
from hushed.server._problems import document
from hushed.server._routes.asking import RequestId
from hushed.server._seen import require_visible, show_request
from hushed.server._shown import ShownOutlook, ShownRequest


class Declined(BaseModel):
    """Why a request is declined; its asker reads it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reason: Annotated[StrictStr, Field(min_length=1, max_length=500)]


def make_router(desk: Desk, callers: Callers) -> APIRouter:
    """Make the routes of approvals. Where a steward's token is narrowed, so is what it approves."""
    router = APIRouter(prefix="/v1", tags=["approving"])
    steward, analyst = callers.of_role("steward"), callers.of_role("analyst")

    @router.post(
        "/requests/{request}/approve",
        responses=document(
            *("forbidden", "four_eyes", "not_found", "not_pending", "conflict", "bad_query"),
            *("budget_exceeded", "quota_exceeded", "day_exceeded", "busy", "dataset_changed"),
            *("dataset_unavailable", "function_changed", "no_gamma"),
        ),
    )
    def agree(request: RequestId, caller: Annotated[Caller, Depends(steward)]) -> ShownRequest:
        """Approve a request: it is charged now, to its asker, and answered."""
        return show_request(desk, approve(desk, caller, request))

    @router.get(
        "/requests/{request}/outlook",
        responses=document("forbidden", "not_found", "busy"),
    )
    def look_ahead(request: RequestId, caller: Annotated[Caller, Depends(steward)]) -> ShownOutlook:
        """Say whether it could be approved now, at the price that it has now; nothing is done."""
        return ShownOutlook(why_not=why_not(desk, caller, request))

    @router.post(
        "/requests/{request}/decline",
        responses=document("forbidden", "not_found", "not_pending"),
    )
    def refuse(
        request: RequestId, why: Declined, caller: Annotated[Caller, Depends(steward)]
    ) -> ShownRequest:
        """Decline a request; nothing was charged."""
        return show_request(desk, decline(desk, caller, request, why.reason))

    @router.delete(
        "/requests/{request}",
        status_code=204,
        responses=document("forbidden", "not_found", "not_pending"),
    )
    def take_back(request: RequestId, caller: Annotated[Caller, Depends(analyst)]) -> Response:
        """Take back a request of yours that waits for approval; what is charged stays."""
        cancel(desk, require_visible(desk, caller, request), caller)
        return Response(status_code=204)

    return router
