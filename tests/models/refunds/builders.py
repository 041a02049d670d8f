"""Writes refunds as their actors do, and ends them as the broadcast ends payouts."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from core.ids import uuid7
from core.money import round_down
from core.payouts.states import PayoutStatus
from models.db.base import column, execute, transaction
from models.deposits import rows as deposits
from models.deposits.rows import Deposit
from models.invoices import resolution
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from models.ledger.ledger import SUSPENSE, Account
from models.outcomes import endings
from models.outcomes.endings import Ending
from models.payouts import rows as payouts
from models.payouts.order_checks import step
from models.payouts.rows import PayoutRow
from models.refunds import rows as refunds
from models.wallets import rows as wallets
from models.wallets.rows import WalletRow
from tests.models.builders import CATALOGUE, USDT, Chain, assert_sound
from tests.models.invoices.builders import PRICE, expired, invoice, paid
from tests.models.ledger.figures import net_of
from tests.models.payouts.held import as_signed
from tests.models.spends import by_hand
from tests.models.treasury.builders import spend

ADDRESS = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc"
FEE = USDT // 10


def new_refund(merchant_id: UUID, **columns: Any) -> PayoutRow:
    """Return a refund of 1 USDT on ethereum that costs FEE and was approved."""
    refund_id = uuid7()
    return PayoutRow(
        **{
            "id": refund_id,
            "merchant_id": merchant_id,
            "order_id": f"refund:{refund_id}",
            "kind": "refund",
            "currency": "USDT",
            "network": "ethereum",
            "address": ADDRESS,
            "amount_units": USDT,
            "fee_units": FEE,
            "to_units": columns.get("amount_units", USDT),
            "is_fee_on_top": True,
            "status": "approved",
            "created_by": "pk_test",
        }
        | columns
    )


def refund(of: InvoiceRow, units: int, **columns: Any) -> PayoutRow:
    """Refund a credited payment from available."""
    with transaction():
        locked = invoices.lock(of.id)
        assert locked is not None
        new = new_refund(of.merchant_id, invoice_id=of.id, amount_units=units, **columns)
        return refunds.pay(CATALOGUE, new, is_rest=False)


def send_back(of: InvoiceRow | WalletRow, *, stray: bool = False, **columns: Any) -> PayoutRow:
    """Send back what an invoice or wallet has in suspense: all of its own coin, all strays, or one coin's."""
    with transaction():
        if isinstance(of, wallets.WalletRow):
            wallets.lock(of.id)
            owner: dict[str, Any] = {"wallet_id": of.id, "kind": "wallet_refund"}
        else:
            invoices.lock(of.id)
            owner = {"invoice_id": of.id, "kind": "stray" if stray else "resolve"}
        taken = _waiting(of.id, stray=stray)
        currency, network = taken[0].currency, taken[0].network
        held_units = round_down(sum(d.amount_units for d in taken), step(CATALOGUE, currency))
        method = {"currency": currency, "network": network, "funded_from": "suspense"}
        new = new_refund(of.merchant_id, **owner, **method, amount_units=held_units - FEE, **columns)
        return refunds.send_back(CATALOGUE, new, taken)


def _waiting(owner_id: UUID, *, stray: bool) -> list[Deposit]:
    deposits_there = deposits.of_owner(owner_id)
    return [
        d
        for d in deposits_there
        if d.status == "confirmed" and not d.refund_id and (d.stray_reason is not None) == stray
    ]


def move(refund_: PayoutRow, *path: PayoutStatus) -> PayoutRow:
    """Take a refund through statuses that book nothing."""
    for status in path:
        with transaction():
            before = payouts.lock(refund_.id)
            assert before is not None
            assert payouts.move(CATALOGUE, before, status) is not None
        as_signed(refund_)
    return reread(refund_)


def short(chain: Chain, shop: UUID, units: int = PRICE // 2) -> InvoiceRow:
    """Return an invoice that was paid too little when it expired."""
    mine = invoice(shop)
    paid(chain, mine, units)
    return expired(chain, mine)


def accept(of: InvoiceRow, txid: str | None = None) -> InvoiceRow:
    with transaction():
        locked = invoices.lock(of.id)
        assert locked is not None
        if txid is None:
            resolution.accept_payment(CATALOGUE, locked)
        else:
            resolution.accept_stray(CATALOGUE, locked, txid)
    return invoices.reread(of.id)


def signed(refund_: PayoutRow) -> PayoutRow:
    """Have an approved refund signed, without sending it."""
    pair = CATALOGUE.pairs[refund_.currency, refund_.network]
    spend(
        purpose="payout",
        payout_id=refund_.id,
        network=refund_.network,
        recipient=refund_.address,
        currency=refund_.currency,
        decimals=pair.decimals,
        token_units=pair.from_ledger(refund_.to_units, CATALOGUE.scale(refund_.currency)),
    )
    return move(refund_, "broadcasting")


def sent(refund_: PayoutRow) -> PayoutRow:
    """Have an approved refund signed and sent."""
    return move(signed(refund_), "sent")


def end(refund_: PayoutRow, ending: Ending, *, kept_units: int = 0) -> PayoutRow:
    """End a refund as the chain or an operator decided, and check the invariants."""
    if ending != "cancelled" and reread(refund_).status == "approved":
        sent(refund_)
    with transaction():
        by_hand.change("state = %s", by_hand.OF_PAYOUT, (ending, refund_.id))
        endings.end(CATALOGUE, refund_.id, ending, txid="0xrefund", kept_units=kept_units)
    as_signed(refund_)
    assert_sound()
    return reread(refund_)


def reread(refund_: PayoutRow) -> PayoutRow:
    """Return a refund as it is now."""
    payout = payouts.find(refund_.merchant_id, refund_.id)
    assert payout is not None
    return payout


def suspense(merchant_id: UUID, currency: str = "USDT") -> int:
    """Return a merchant's balance in suspense."""
    return net_of(Account(merchant_id, SUSPENSE, currency))


def fees(units: int = FEE) -> None:
    """Set the network fee of every coin on every network, in that coin."""
    for currency, network in CATALOGUE.pairs:
        execute(
            "INSERT INTO network_fees (currency, network, units, gas_units, quoted_at)"
            " VALUES (%s, %s, %s, 0, app_now())"
            " ON CONFLICT (network, currency) DO UPDATE SET units = EXCLUDED.units",
            (currency, network, units * 10 ** CATALOGUE.scale(currency) // USDT),
        )


def payout_events(of: PayoutRow) -> list[str]:
    """Return a payout's events in the order in which they were written."""
    return column("SELECT event FROM webhook_deliveries WHERE object_id = %s ORDER BY id", (of.id,))
