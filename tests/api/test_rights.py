"""The kinds of keys by endpoint, as a table: a new endpoint must be listed where its money goes.

Moving money out, or redirecting it, needs a payout key, which reaches nothing else but the endpoints that show it.
"""

from __future__ import annotations

from typing import Final

from api.endpoints import ANY_KEY, PAYMENT_KEYS, PAYOUT_KEYS, PUBLIC, Rights
from api.routes import ENDPOINTS

TELLS: Final = {"/v1/balance", "/v1/exchange-rate/list", "/v1/batch/info", "/v1/webhooks/deliveries"}
# Accepting a short payment needs no right to pay out; refunding it does. The action decides.
BY_ACTION: Final = {"/v1/payment/resolve"}
MOVES_OUT: Final = (
    "/v1/payout", "/v1/refund", "/v1/payment/refund", "/v1/transfer", "/v1/wallet/blocked-address-refund",
    "/v1/ip-allowlist", "/v1/auto-withdraw", "/v1/split",
)  # fmt: skip


def expected(path: str) -> Rights:
    if path in TELLS | BY_ACTION:
        return ANY_KEY
    return PAYOUT_KEYS if path.startswith(MOVES_OUT) else PAYMENT_KEYS


def test_every_endpoint_is_reached_by_the_keys_that_it_is_for() -> None:
    signed = [endpoint for endpoint in ENDPOINTS if endpoint.rights is not PUBLIC]

    assert {endpoint.path: endpoint.rights for endpoint in signed} == {
        endpoint.path: expected(endpoint.path) for endpoint in signed
    }
