"""Declares the endpoint that moves money to the owner's personal wallet."""

from __future__ import annotations

from typing import Final

from actors.queue.call_specs import TRANSFER_TO_PERSONAL
from api.endpoints import PAYOUT_KEYS, Actor, Endpoint
from core.merchants.transfer_schemas import ToPersonal, Transferred

ENDPOINTS: Final = (
    Endpoint(
        path="/v1/transfer/to-personal",
        name="transferToPersonal",
        tag="Balance",
        summary="Transfer to the personal wallet",
        description=(
            "Moves an available amount to the personal wallet of the merchant's owner, which all of"
            " the owner's merchants share. A repeat of an order_id moves nothing and gets the first"
            " answer, even if other fields differ. The same holds for an identical request with the"
            " same signature, whatever its Idempotency-Key: to move the same amount twice within a"
            " second, use two order_ids. Refused while payouts of the merchant are frozen, and while"
            " it owes the gateway in any coin."
        ),
        rights=PAYOUT_KEYS,
        request=ToPersonal,
        result=Transferred,
        actor=Actor(spec=TRANSFER_TO_PERSONAL),
        creates=True,
        dedupes_signature=True,
        examples={
            "request": {"amount": "25.5", "currency": "USDT", "order_id": "transfer-12"},
            "result": {
                "currency": "USDT",
                "amount": "25.5",
                "direction": "to_personal",
                "personal_balance": "125.5",
            },
        },
    ),
)
