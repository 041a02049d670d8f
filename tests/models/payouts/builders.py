"""Sets balances, network fees and rates for tests of payouts, in the ledger's units; USDT is one whole."""

from __future__ import annotations

from decimal import Decimal
from typing import Final
from uuid import UUID

from core.ids import uuid7
from core.rates.consensus import Rate
from models.db.base import app_now, rows, transaction
from models.ledger import ledger
from models.ledger.ledger import AVAILABLE, DEBT, EQUITY, GATEWAY, Account, Transfer
from models.rates import rates
from tests.models.builders import endpoint, merchant

USDT: Final = 10**18
# The chain's fee for a transfer of USDT; FEE is what a payout is charged, rounded up to six digits.
CHAIN_FEE: Final = 12 * USDT // 10 - 7
FEE: Final = 12 * USDT // 10
RECIPIENT: Final = "0x52908400098527886E0F7030069857D2E4169EE7"


def fund(merchant_id: UUID, units: int, *, currency: str = "USDT", kind: str = AVAILABLE) -> None:
    """Credit a merchant against a debt of another, so that the books are even without a deposit."""
    _lend(Account(merchant_id, kind, currency), units)


def rich_shop(units: int = 100 * USDT) -> UUID:
    """Make a merchant with money and an endpoint."""
    merchant_id = merchant()
    endpoint(merchant_id)
    fund(merchant_id, units)
    return merchant_id


def stock(units: int, *, currency: str, kind: str = EQUITY) -> None:
    """Give the gateway a balance of its own in a coin."""
    _lend(Account(GATEWAY, kind, currency), units)


def _lend(credit: Account, units: int) -> None:
    with transaction():
        ledger.post(f"test:{uuid7()}", [Transfer(Account(uuid7(), DEBT, credit.currency), credit, units)])


def lend(merchant_id: UUID, units: int, currency: str = "USDT") -> None:
    """Make a merchant owe the gateway; a negative sum repays."""
    debt, equity = Account(merchant_id, DEBT, currency), Account(GATEWAY, EQUITY, currency)
    leg = Transfer(debt, equity, units) if units > 0 else Transfer(equity, debt, -units)
    with transaction():
        ledger.post(f"loan:{uuid7()}", [leg])


def charge(currency: str = "USDT", network: str = "ethereum", units: int = CHAIN_FEE) -> None:
    """Set a network fee."""
    rates.store_network_fee(currency, network, units, gas_units=0)


def trade(**usd: str) -> None:
    """Set the rates of coins."""
    now = app_now()
    rates.store_rates(
        {coin: Rate(usd=Decimal(price), as_of=now, agreed_at=now, sources=("test",)) for coin, price in usd.items()}
    )


def events_of(payout_id: UUID) -> list[str]:
    """Return the events that a payout has emitted, oldest first."""
    stored = rows("SELECT event FROM webhook_deliveries WHERE object_id = %s ORDER BY id", (payout_id,))
    return [event for (event,) in stored]
