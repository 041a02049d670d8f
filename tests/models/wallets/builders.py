"""Makes static wallets for tests that need a database; chains are those of tests.models.builders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from core.ids import uuid7
from models.db.base import column, one, transaction
from models.deposits import rows as deposits
from models.wallets import deposits as wallet_deposits
from models.wallets import rows as wallets
from models.wallets import settlement as wallet_settlement
from models.wallets.rows import WalletRow
from tests.models.builders import CATALOGUE, Chain, assert_sound, merchant
from tests.models.invoices.builders import address


def new_wallet(merchant_id: UUID, **columns: Any) -> WalletRow:
    """Return a wallet for USDT on ethereum, with an address of the pool."""
    ordinal, pooled = address()
    fields = {"currency": "USDT", "network": "ethereum", "order_id": "", "fee_ppm": 15_000, "request_id": ""} | columns
    return WalletRow(id=uuid7(), merchant_id=merchant_id, address_ordinal=ordinal, address=pooled, **fields)


def wallet(merchant_id: UUID | None = None, **columns: Any) -> WalletRow:
    """Create a wallet, of a new merchant by default."""
    with transaction():
        made = wallets.create(new_wallet(merchant_id or merchant(), **columns), family="evm", probed=["ethereum"])
    assert made is not None
    return made


def reread(wallet_id: UUID) -> WalletRow:
    """Return a wallet as it is now."""
    with transaction():
        stored = wallets.lock(wallet_id)
    assert stored is not None
    return stored


def settled(of: WalletRow) -> bool:
    """Settle a wallet and check the invariants; return True if a webhook was queued."""
    is_queued = queues(lambda: wallet_settlement.settle(CATALOGUE, of.id))
    assert_sound()
    return is_queued


def received(chain: Chain, to: WalletRow, units: int, **more: Any) -> deposits.Deposit:
    """Pay a wallet, confirm the deposit and settle."""
    deposit = chain.pay_and_confirm(to, units, **more)
    settled(to)
    return deposit


def queues(step: Callable[[], object]) -> bool:
    """Run work and return True if it queued a webhook."""
    before = one("SELECT count(*) FROM webhook_deliveries")
    step()
    return one("SELECT count(*) FROM webhook_deliveries") != before


def set_blocked(of: WalletRow, *, is_blocked: bool) -> WalletRow:
    with transaction():
        return wallets.set_blocked(of, is_blocked=is_blocked)


def statuses(of: WalletRow) -> list[str]:
    """Return the statuses of a wallet's deposits, oldest first."""
    return [deposit.status for deposit in reversed(wallet_deposits.page(of.id, limit=200, offset=0))]


def deposit_of(of: WalletRow) -> deposits.Deposit:
    """Return a wallet's only deposit."""
    (stored,) = wallet_deposits.page(of.id, limit=2, offset=0)
    return stored


def bodies(of: WalletRow) -> list[str]:
    """Return the webhook bodies of a wallet's deposits."""
    return column("SELECT body FROM webhook_deliveries WHERE object_id = %s ORDER BY id", (of.id,))
