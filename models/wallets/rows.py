"""Keeps static wallets: permanent addresses of a merchant, each its own for ever. Rows and reads.

Written by actors.wallets.calls (create, block) and, for what an unblocked one still owes, by models.wallets.settlement.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from core.addresses.addresses import stored_form
from models.addresses.rows import AddressOwner
from models.db.base import column, execute
from models.db.table import BY_DATABASE, Big, Table
from models.deposits import probes


class WalletRow(Table, table="wallets w"):
    """A wallet as stored; its address in the form in which it is matched."""

    id: UUID
    merchant_id: UUID
    currency: str
    network: str
    # Empty where the merchant gave none.
    order_id: str
    address_ordinal: Big
    address: str
    fee_ppm: int
    blocked_at: datetime | None = None
    # Unblocked, with deposits that it held back still to be credited.
    is_credit_due: bool = BY_DATABASE
    created_at: datetime = BY_DATABASE
    # The X-Request-Id of the call that created it.
    request_id: str

    @property
    def is_blocked(self) -> bool:
        """Return whether what comes to it waits in suspense."""
        return self.blocked_at is not None


def create(new: WalletRow, *, family: str, probed: Collection[str]) -> WalletRow | None:
    """Write a wallet and that the address is its own, in an open transaction; None if there is such a wallet.

    probed: the networks on which coin may come that shows in the balance alone, a contract having passed it on.
    """
    stored = new.stored("ON CONFLICT (merchant_id, currency, network, order_id) DO NOTHING")
    if stored is not None:
        AddressOwner(family=family, ordinal=new.address_ordinal, owner_kind="wallet", owner_id=new.id).write()
        probes.watch_wallet(probed, new.address)
    return stored


def find(merchant_id: UUID, *, wallet_id: UUID) -> WalletRow | None:
    """Return a merchant's wallet; another merchant's is as absent as a missing one."""
    return WalletRow.first("w.id = %s AND w.merchant_id = %s", (wallet_id, merchant_id))


def find_by_address(merchant_id: UUID, text: str) -> WalletRow | None:
    """Return a merchant's wallet by its address, in any spelling that its network has."""
    spellings = [text, stored_form(text) or text]
    return WalletRow.first("w.address = ANY(%s) AND w.merchant_id = %s", (spellings, merchant_id))


def find_by_order(merchant_id: UUID, currency: str, network: str, order_id: str) -> WalletRow | None:
    """Return the wallet that a merchant has for a coin, a network and an order_id ('' for none)."""
    return WalletRow.first(
        "(w.merchant_id, w.currency, w.network, w.order_id) = (%s, %s, %s, %s)",
        (merchant_id, currency, network, order_id),
    )


def lock(wallet_id: UUID) -> WalletRow | None:
    """Lock a wallet until the transaction ends."""
    return WalletRow.first("w.id = %s FOR UPDATE", (wallet_id,))


def set_blocked(wallet: WalletRow, *, is_blocked: bool) -> WalletRow:
    """Block or unblock a wallet and return it; safe to run twice. From now on no step sees it otherwise."""
    changed = WalletRow.rows_of(
        "UPDATE wallets w SET blocked_at = CASE WHEN %s THEN COALESCE(blocked_at, app_now()) END,"
        " is_credit_due = NOT %s AND (is_credit_due OR blocked_at IS NOT NULL)"
        f" WHERE w.id = %s RETURNING {WalletRow.LIST}",
        (is_blocked, is_blocked, wallet.id),
    )
    if not changed:
        raise LookupError(f"wallet {wallet.id} vanished")
    return changed[0]


def credit_due(limit: int) -> list[UUID]:
    """Return unblocked wallets that still hold deposits back."""
    return column("SELECT id FROM wallets WHERE is_credit_due ORDER BY id LIMIT %s", (limit,))


def note_credit_due(wallet_id: UUID) -> None:
    """Note that a wallet has deposits to credit again; a blocked one holds them back."""
    execute("UPDATE wallets SET is_credit_due = true WHERE id = %s AND blocked_at IS NULL", (wallet_id,))


def end_credit_due(wallet_id: UUID) -> None:
    """Note that a locked wallet holds nothing back."""
    execute("UPDATE wallets SET is_credit_due = false WHERE id = %s", (wallet_id,))
