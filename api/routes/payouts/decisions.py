"""Declares how waiting payouts are approved and cancelled."""

from __future__ import annotations

from typing import Any, Final

from api.endpoints import PAYOUT_KEYS, Actor, Endpoint
from api.routes.payouts.calls import EXAMPLE
from core import errors
from core.payouts.schemas import Payout, PayoutLookup

_EXAMPLE: Final[dict[str, Any]] = EXAMPLE | {"approval_required": True, "updated_at": "2025-11-24T15:04:00.000Z"}

ENDPOINTS: Final = (
    Endpoint(
        path="/v1/payout/approve",
        name="approvePayout",
        tag="Payouts",
        summary="Approve a payout",
        description=(
            "By uuid, or else by order_id. For payouts that wait for it: a refund to another address than the payer's,"
            " and every payout of a merchant with co-signing. Who approves is the key that signs, and has to be another"
            " one than made the payout or approved it before. With co-signing, one that waits for approval goes to"
            " awaiting_cosign first and needs a second approval."
        ),
        rights=PAYOUT_KEYS,
        request=PayoutLookup,
        result=Payout,
        actor=Actor(name="approve_payout", queue="payouts"),
        errors=(
            errors.PayoutBadUuid,
            errors.PayoutNoLookup,
            errors.PayoutNotFound,
            errors.PayoutNotPending,
            errors.PayoutApproverIsCreator,
            errors.ComplianceAddressBlocked,
            errors.PayoutFrozen,
        ),
        examples={"request": {"uuid": EXAMPLE["uuid"]}, "result": _EXAMPLE},
    ),
    Endpoint(
        path="/v1/payout/cancel",
        name="cancelPayout",
        tag="Payouts",
        summary="Cancel a payout",
        description=(
            "By uuid, or else by order_id. Only while it waits for approval or for a co-signature; what it held is"
            " available again. Its order_id stays taken."
        ),
        rights=PAYOUT_KEYS,
        request=PayoutLookup,
        result=Payout,
        actor=Actor(name="cancel_payout", queue="payouts"),
        errors=(
            errors.PayoutBadUuid,
            errors.PayoutNoLookup,
            errors.PayoutNotFound,
            errors.PayoutNotPending,
            errors.PayoutFrozen,
        ),
        examples={
            "request": {"order_id": "payout-77"},
            "result": _EXAMPLE | {"status": "cancel", "is_final": True},
        },
    ),
)
