"""Confirms and credits the deposits of static wallets, as models.invoices.settlement does for invoices.

Called by actors.scan.follow after a block, by actors.wallets.calls on unblocking and by actors.wallets.ticks for the
deposits that this left. Every deposit has a transaction of its own, so that a step over many holds no lock for long,
and is reported once. Safe to run any number of times.

A wallet takes every coin of the catalogue, over every served network of its family, in any amount. Only the amounts
that actors.scan.record calls dust remain in suspense for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from core.catalogue.catalogue import Catalogue
from models.db.base import repeat_on_deadlock, transaction
from models.deposits import crediting
from models.deposits import rows as deposits
from models.deposits.rows import Deposit
from models.wallets import deposits as wallet_deposits
from models.wallets import rows as wallets
from models.wallets import views as wallet_views
from models.wallets.rows import WalletRow
from models.webhooks import outbox

# Deposits of one wallet that one step advances; the rest follows with the next block or notification.
DEPOSITS_PER_STEP: Final = 100

EVENT: Final = "wallet.paid"


def settle(catalogue: Catalogue, wallet_id: UUID) -> None:
    """Confirm what is deep enough, and credit it unless the wallet is blocked."""
    _advance_all(catalogue, wallet_id, deposits.pending_due(catalogue, wallet_id, limit=DEPOSITS_PER_STEP))


def credit_held(catalogue: Catalogue, wallet_id: UUID) -> bool:
    """Credit some deposits that an unblocked wallet held back; always True, since callers check for failure."""
    _advance_all(catalogue, wallet_id, deposits.credit_due(wallet_id, limit=DEPOSITS_PER_STEP))
    with transaction():
        # Locked first: a deposit that a block held back in between must not be forgotten.
        wallet = wallets.lock(wallet_id)
        if wallet is not None and not deposits.credit_due(wallet_id, limit=1):
            wallets.end_credit_due(wallet_id)
    return True


def _advance_all(catalogue: Catalogue, wallet_id: UUID, due: Sequence[Deposit]) -> None:
    for deposit in due:
        repeat_on_deadlock(_advance, catalogue, wallet_id, deposit.id)


def _advance(catalogue: Catalogue, wallet_id: UUID, deposit_id: UUID) -> None:
    """Bring one deposit as far as its chain and its wallet allow."""
    with transaction():
        wallet = wallets.lock(wallet_id)
        deposit = wallet_deposits.find(wallet_id, deposit_id)
        if wallet is None or deposit is None or not _is_confirmed(catalogue, wallet, deposit):
            return
        if deposit.refund_id is None and deposit.stray_reason is None and not wallet.is_blocked:
            _credit(catalogue, wallet, deposit)


def _is_confirmed(catalogue: Catalogue, wallet: WalletRow, deposit: Deposit) -> bool:
    """Return whether a locked deposit waits in suspense; books it there when it is deep enough now."""
    if deposit.status != "pending":
        return deposit.status == "confirmed"
    needed = max(catalogue.networks[deposit.network].confirmations, deposit.depth_min)
    if deposit.depth < needed or not deposits.confirm(deposit.id):
        return False
    crediting.book_confirmed(deposit, wallet.merchant_id)
    return True


def _credit(catalogue: Catalogue, wallet: WalletRow, deposit: Deposit) -> None:
    """Credit a confirmed deposit to the merchant, less only the percent fee, and write its webhook."""
    split = crediting.credit(catalogue, deposit, wallet.merchant_id, fee_ppm=wallet.fee_ppm, fee_fixed_due_units=0)
    if split is None or not wallet_deposits.mark_announced(deposit.id):
        return
    body = msgspec.json.encode(wallet_views.webhook(catalogue, wallet, deposit)).decode()
    outbox.emit(wallet.merchant_id, EVENT, wallet.id, body, request_id=wallet.request_id)
