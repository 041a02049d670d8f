"""Declares how waiting payouts are approved and cancelled."""

from __future__ import annotations

from typing import Any, Final

from actors.queue.call_specs import APPROVE_PAYOUT, CANCEL_PAYOUT
from api.endpoints import PAYOUT_KEYS, Actor, Endpoint
from api.routes.payouts.calls import EXAMPLE
from core.payouts.schemas import Payout, PayoutLookup

_EXAMPLE: Final[dict[str, Any]] = EXAMPLE | {"approval_required": True, "updated_at": "2025-11-24T15:04:00.000Z"}

ENDPOINTS: Final = (
    Endpoint(
        path="/v1/payout/approve",
        name="approvePayout",
        tag="Payouts",
        summary="Approve a payout",
        description=(
            "Finds the payout by uuid, or else by order_id. Needed for a refund to another address"
            " than the payer's, and for every payout of a merchant with co-signing. The approver is"
            " the key that signs the request. It must differ from the key that made the payout, and"
            " from earlier approvers. With co-signing, a payout that waits for approval first becomes"
            " awaiting_cosign and needs a second approval."
        ),
        rights=PAYOUT_KEYS,
        request=PayoutLookup,
        result=Payout,
        actor=Actor(spec=APPROVE_PAYOUT),
        examples={"request": {"uuid": EXAMPLE["uuid"]}, "result": _EXAMPLE},
    ),
    Endpoint(
        path="/v1/payout/cancel",
        name="cancelPayout",
        tag="Payouts",
        summary="Cancel a payout",
        description=(
            "Finds the payout by uuid, or else by order_id. Only while it waits for approval or for a"
            " co-signature. The held amount becomes available again. Its order_id cannot be used"
            " again."
        ),
        rights=PAYOUT_KEYS,
        request=PayoutLookup,
        result=Payout,
        actor=Actor(spec=CANCEL_PAYOUT),
        examples={
            "request": {"order_id": "payout-77"},
            "result": _EXAMPLE | {"status": "cancel", "is_final": True},
        },
    ),
)
