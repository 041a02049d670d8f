"""Moves money from a merchant's balance to its owner's personal wallet. Called by actors.merchants.transfers.

The wallet is the owner's account of kind `personal`, one for each coin, shared by all of the owner's merchants.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from core.catalogue.catalogue import Catalogue
from core.errors import PersonalInsufficient, TransferNoPersonalWallet
from core.ids import uuid7
from core.texts.render import coin_text
from models.db.base import value
from models.db.table import BY_DATABASE, Table, Units
from models.ledger import ledger
from models.ledger.ledger import AVAILABLE, PERSONAL, Account, InsufficientFundsError


class TransferRow(Table, table="personal_transfers"):
    """A transfer as stored; balance_units is the personal balance right after it."""

    id: UUID
    merchant_id: UUID
    owner_id: UUID
    order_id: str | None
    currency: str
    units: Units
    balance_units: Units
    created_by: str
    created_at: datetime = BY_DATABASE


def find_by_order(merchant_id: UUID, order_id: str) -> TransferRow | None:
    """Return a merchant's transfer of an order_id."""
    return TransferRow.first("merchant_id = %s AND order_id = %s", (merchant_id, order_id))


def transfer(merchant_id: UUID, order_id: str | None, currency: str, units: int, *, created_by: str) -> TransferRow:
    """Move what is available to the owner's personal wallet and write the row, all in the caller's transaction.

    Raises PersonalInsufficient, and TransferNoPersonalWallet for a merchant without an owner.
    """
    owner_id = value("SELECT owner_id FROM merchants WHERE id = %s", (merchant_id,))
    if owner_id is None:
        raise TransferNoPersonalWallet
    transfer_id, wallet = uuid7(), Account(owner_id, PERSONAL, currency)
    try:
        ledger.post(
            f"transfer:{transfer_id}", [ledger.Transfer(Account(merchant_id, AVAILABLE, currency), wallet, units)]
        )
    except InsufficientFundsError as error:
        raise PersonalInsufficient from error
    # Exact: the wallet's balance row is locked since it was changed.
    new = TransferRow(
        id=transfer_id, merchant_id=merchant_id, owner_id=owner_id, order_id=order_id, currency=currency, units=units,
        balance_units=ledger.balance(wallet), created_by=created_by,
    )  # fmt: skip
    return TransferRow.store_all([new])[0]


def to_personal(catalogue: Catalogue, shown: TransferRow) -> dict[str, Any]:
    """Return the answer to a transfer; its balance is the one right after it, also if the answer is repeated."""
    return {
        "currency": shown.currency,
        "amount": coin_text(catalogue, shown.currency, shown.units),
        "direction": "to_personal",
        "personal_balance": coin_text(catalogue, shown.currency, shown.balance_units),
    }
