"""Declares the endpoints of refunds: of credited payments, and of a blocked static wallet's deposits."""

from __future__ import annotations

from typing import Any, Final

from actors.queue.call_specs import REFUND_BLOCKED_WALLET, REFUND_PAYMENT
from api.endpoints import PAYOUT_KEYS, Actor, Endpoint
from api.routes.payouts.calls import EXAMPLE as PAYOUT_EXAMPLE
from core.refunds.schemas import BlockedRefund, CreateRefund, PaymentRefund, WalletRefunds

EXAMPLE: Final[dict[str, Any]] = {
    "uuid": "0190b3c6-9a02-7e31-8b4d-6c7d8e9f0a1b",
    "payment_uuid": "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d",
    "status": "process",
    "amount": "10",
    "currency": "USDT",
    "network": "ethereum",
    "address": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
    "txid": "",
    "approval_required": False,
    "is_final": False,
    "created_at": "2025-11-24T15:00:00.000Z",
}

ENDPOINTS: Final = (
    Endpoint(
        path="/v1/payment/refund",
        name="refundPayment",
        tag="Refunds",
        summary="Refund a payment",
        description=(
            "Refunds a credited payment, or a part of it, from the available balance. The recipient"
            " gets exactly the amount; you pay the network fee on top, and the gateway's fee is not"
            " returned. A refund to the payer's address is sent at once, to any other address after"
            " POST /v1/payout/approve. A repeat with the same payment, address and amount returns the"
            " existing refund."
        ),
        rights=PAYOUT_KEYS,
        request=CreateRefund,
        result=PaymentRefund,
        actor=Actor(spec=REFUND_PAYMENT),
        creates=True,
        examples={"request": {"order_id": "order-1042", "amount": "10"}, "result": EXAMPLE},
    ),
    Endpoint(
        path="/v1/wallet/blocked-address-refund",
        name="refundBlockedWallet",
        tag="Static wallets",
        summary="Refund the deposits of a blocked wallet",
        description=(
            "Refunds deposits that were confirmed and not credited, less the network fee, without a"
            " gateway fee. Makes one payout for each coin; a coin that is worth no more than its fee"
            " stays. Handles the 1000 largest deposits in one call."
        ),
        rights=PAYOUT_KEYS,
        request=BlockedRefund,
        result=WalletRefunds,
        actor=Actor(spec=REFUND_BLOCKED_WALLET),
        creates=True,
        examples={
            "request": {
                "uuid": "0190b3c6-6b1f-7d40-8c2a-5e4d3c2b1a09",
                "refund_address": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
            },
            "result": {
                "payouts": [
                    PAYOUT_EXAMPLE
                    | {
                        "uuid": "0190b3c6-9a02-7e31-8b4d-6c7d8e9f0a1b",
                        "order_id": "refund:0190b3c6-9a02-7e31-8b4d-6c7d8e9f0a1b",
                        "address": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
                    }
                ]
            },
        },
    ),
)
