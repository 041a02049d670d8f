"""Payments and wallets whose money can be sent back, and requests that do so, for tests over HTTP."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from falcon import testing

from core.ids import uuid7
from models.db import base
from models.ledger.ledger import AVAILABLE
from tests.api.live import Live
from tests.api.rows import UNIT, add_deposit
from tests.models.payouts.builders import charge, fund

PAYER: Final = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
ELSEWHERE: Final = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"
ELSEWHERE_IS_OURS: Final = (
    f"INSERT INTO pool_addresses (family, ordinal, address) VALUES ('evm', 999999, '{ELSEWHERE.lower()}')"
)

Case = Callable[[Live], testing.Result]
Make = Callable[[Live], dict[str, Any]]


def paid_payment(live: Live, *, merchant: UUID | None = None, payer: str = PAYER, **columns: Any) -> dict[str, Any]:
    """Write a payment of 10 USDT that was credited; return how to name it."""
    owner = live.shop if merchant is None else merchant
    row = {"status": "paid", "is_final": True, "payer_address": payer, "confirmed_units": 10 * UNIT} | columns
    invoice_id = live.invoice(**row)
    deposit = {"currency": "USDT", "amount_units": 10 * UNIT, "stray_reason": None, "sender": PAYER.lower()}
    add_deposit(owner, invoice_id, **deposit, status="credited", txid=f"0x{invoice_id}")  # type: ignore[arg-type]
    return {"uuid": invoice_id}


def short_payment(live: Live, units: int = 5 * UNIT, payer: str = PAYER) -> dict[str, Any]:
    """Write an open wrong_amount whose money waits in suspense; return how to ask for it back."""
    invoice_id = live.invoice(status="wrong_amount", payer_address=payer, confirmed_units=units, detected_units=units)
    deposit = {"currency": "USDT", "amount_units": units, "stray_reason": None, "sender": PAYER.lower()}
    add_deposit(live.shop, invoice_id, **deposit, txid=f"0x{invoice_id}")  # type: ignore[arg-type]
    return {"uuid": invoice_id, "action": "refund"}


def blocked_wallet(live: Live, units: int = 5 * UNIT) -> dict[str, Any]:
    """Create a blocked wallet that holds USDT; return how to ask for it back."""
    made = live.post("/v1/wallet", {"currency": "USDT", "network": "ethereum"}).json["result"]
    live.post("/v1/wallet/block", {"address": made["address"]})
    deposit = {"currency": "USDT", "amount_units": units, "stray_reason": None, "txid": f"0x{uuid7()}"}
    add_deposit(live.shop, made["uuid"], owner_kind="wallet", **deposit)
    return {"uuid": made["uuid"], "refund_address": ELSEWHERE}


def sending_back(
    path: str,
    make: Make,
    *,
    sql: str = "SELECT 1",
    fee: int | None = UNIT,
    funds: int = 100,
    kind: str = AVAILABLE,
    denied: str | None = None,
    **body: Any,
) -> Case:
    """Ask for money back, of a merchant with some USDT, after some SQL; denied is on the operator's list."""

    def case(live: Live) -> testing.Result:
        if funds:
            fund(live.shop, funds * UNIT, kind=kind)
        if fee is not None:
            charge(units=fee)
        wanted = make(live) | body
        base.execute(sql)
        if denied is not None:
            with tempfile.NamedTemporaryFile("w", encoding="utf-8") as listed:
                listed.write(denied)
                listed.flush()
                live.configure(DENY_LIST=listed.name)
        return live.post(path, wanted)

    return case
