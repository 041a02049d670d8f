"""Payouts for tests of the API that care for who may see and decide them, not for the books behind them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from models.db.base import transaction
from models.ledger.ledger import AVAILABLE, CUSTODY, GATEWAY, Account, Transfer, post
from models.payouts.rows import PayoutRow
from tests.models.builders import USDT
from tests.models.payouts.held import payout


def credit(merchant_id: UUID, units: int, currency: str = "USDT", network: str = "ethereum") -> None:
    """Credit a merchant with this available amount, without a deposit."""
    custody, available = Account(GATEWAY, CUSTODY, currency, network), Account(merchant_id, AVAILABLE, currency)
    with transaction():
        post(f"test:{merchant_id}:{currency}", [Transfer(custody, available, units)])


def held_payout(merchant_id: UUID, **columns: Any) -> PayoutRow:
    """Return a payout of 10 USDT that is pending, unless columns say otherwise, with just the money for it."""
    credit(merchant_id, 11 * USDT)
    return payout(merchant_id, **columns)
