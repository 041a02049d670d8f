"""Makes invoices with addresses for tests that need a database, and brings them to their ends."""

from __future__ import annotations

from datetime import datetime
from itertools import count
from typing import Any, Final
from uuid import UUID, uuid4

from core.addresses.evm import checksum_evm
from core.ids import uuid7
from core.rates.pricing import RATE_DIGITS
from models.db.base import column, execute
from models.invoices import creations, quoting, settlement
from models.invoices import rows as invoices
from models.invoices.creations import Creation
from models.invoices.rows import InvoiceRow
from models.invoices.shown import Shown
from tests.models.builders import CATALOGUE, USDT, Chain, assert_sound, merchant

PRICE: Final = 10 * USDT
FIXED_FEE: Final = 3 * USDT // 10
_ordinals = count(1)


def address(family: str = "evm") -> tuple[int, str]:
    """Add an address to the pool, past its signatures; return (ordinal, address in the stored form)."""
    ordinal = next(_ordinals)
    pooled = f"0x{uuid4().hex}{ordinal:08x}"
    execute("INSERT INTO pool_addresses (family, ordinal, address) VALUES (%s, %s, %s)", (family, ordinal, pooled))
    return ordinal, pooled


def new_invoice(merchant_id: UUID, **columns: Any) -> InvoiceRow:
    """Return an invoice over 10 USD that is paid with 10 USDT on ethereum; it has an address of the pool."""
    ordinal, pooled = address()
    return InvoiceRow(
        **{
            "id": uuid7(),
            "merchant_id": merchant_id,
            "order_id": None,
            "status": "check",
            "is_multi": False,
            "price_currency": "USD",
            "price_units": 1000,
            "pay_currency": "USDT",
            "network": "ethereum",
            "payer_units": PRICE,
            "generation": 1,
            "address_ordinal": ordinal,
            "address": checksum_evm(pooled),
            "required_confirmations": CATALOGUE.networks["ethereum"].confirmations,
            "accuracy_ppm": 0,
            "subtract_percent": 0,
            "fee_ppm": 15_000,
            "fee_fixed_usd_cents": 30,
            "fee_fixed_units": FIXED_FEE,
            "theme": "light",
            "is_payment_multiple": False,
        }
        | columns
    )


def agnostic_invoice(merchant_id: UUID, **columns: Any) -> InvoiceRow:
    """Return an invoice over 10 USD whose buyer chooses the coin."""
    return InvoiceRow(
        **{
            "id": uuid7(),
            "merchant_id": merchant_id,
            "order_id": None,
            "status": "select",
            "is_multi": True,
            "price_currency": "USD",
            "price_units": 1000,
            "accuracy_ppm": 0,
            "subtract_percent": 0,
            "fee_ppm": 15_000,
            "fee_fixed_usd_cents": 30,
            "theme": "light",
            "is_payment_multiple": False,
        }
        | columns
    )


def creation(new: InvoiceRow, **arguments: Any) -> Creation:
    """Return the creation of an invoice, with a call of its own by default."""
    return Creation(
        invoice=new,
        **{
            "call_id": uuid7(),
            "idem_key": None,
            "fingerprint": b"f",
            "terms_version": 1,
            "lifetime_s": 3600,
            "quote_s": 900,
            "family": "evm" if new.pay_currency else "",
            "response": '{"uuid":"' + str(new.id) + '"',
        }
        | arguments,
    )


def create(new: InvoiceRow, **arguments: Any) -> tuple[str, str | None]:
    """Run the creating statement; return (outcome, answer)."""
    return creations.create(creation(new, **arguments))


def invoice(merchant_id: UUID | None = None, *, lifetime_s: int = 3600, **columns: Any) -> InvoiceRow:
    """Create an invoice, of a merchant of its own unless one is given, and return it as stored."""
    new = new_invoice(merchant_id or merchant(), **columns)
    outcome, _ = create(new, lifetime_s=lifetime_s)
    assert outcome == "created", outcome
    return invoices.reread(new.id)


def requote(of: InvoiceRow, payer_units: int, *, valid_from: datetime, fee_fixed_units: int = FIXED_FEE) -> None:
    """Put a new generation in force."""
    execute(
        "UPDATE invoices SET generation = generation + 1, payer_units = %s, fee_fixed_units = %s WHERE id = %s",
        (payer_units, fee_fixed_units, of.id),
    )
    execute(
        "INSERT INTO quotes (invoice_id, generation, payer_units, fee_fixed_units, valid_from, rate_expires_at)"
        " SELECT id, generation, payer_units, fee_fixed_units, %s, rate_expires_at FROM invoices WHERE id = %s",
        (valid_from, of.id),
    )


def keep_rates(**usd: int | None) -> None:
    """Keep rates of coins from now on, without end; None means that a rate is unknown."""
    for currency, price in usd.items():
        # A row that a trigger wrote in the last seconds comes into force only after this one.
        execute("DELETE FROM kept_rates WHERE (currency, network) = (%s, '') AND starts_at > app_now()", (currency,))
        execute(
            "INSERT INTO kept_rates (currency, network, minute, starts_at, stale_at, figure)"
            " SELECT %s, '', date_trunc('minute', now), now, CASE WHEN %s THEN 'infinity' ELSE now END, %s"
            " FROM app_now() AS now ON CONFLICT (currency, network, minute) DO UPDATE SET"
            " starts_at = EXCLUDED.starts_at, stale_at = EXCLUDED.stale_at, figure = EXCLUDED.figure",
            (currency, price is not None, (price or 0) * 10**RATE_DIGITS),
        )


def shown(of: InvoiceRow) -> Shown:
    """Return an invoice at the quote that is in force now."""
    return quoting.seen_one(CATALOGUE, invoices.reread(of.id))


def seen(of: InvoiceRow) -> InvoiceRow:
    """Return the row of an invoice at the quote that is in force now."""
    return shown(of).invoice


def settled(of: InvoiceRow) -> InvoiceRow:
    """Settle an invoice, check the invariants and return it."""
    settlement.settle(CATALOGUE, of.id)
    assert_sound()
    return invoices.reread(of.id)


def paid(chain: Chain, to: InvoiceRow, units: int | None = None) -> InvoiceRow:
    """Pay an invoice, by default its whole price, confirm the deposit and settle."""
    chain.pay_and_confirm(to, to.payer_units or 0 if units is None else units)
    return settled(to)


def expired(chain: Chain, of: InvoiceRow) -> InvoiceRow:
    """Scan past an invoice's expiry and settle."""
    chain.pass_by(of.expires_at)
    return settled(of)


def in_state(chain: Chain, shop: UUID, state: str) -> InvoiceRow:
    """Return an invoice that is paid, expired, or waits to be paid."""
    made = invoice(shop)
    if state == "paid":
        return paid(chain, made)
    return expired(chain, made) if state == "expired" else made


def events(of: InvoiceRow) -> list[str]:
    """Return an invoice's events in the order in which they were written."""
    return column("SELECT event FROM webhook_deliveries WHERE object_id = %s ORDER BY id", (of.id,))
