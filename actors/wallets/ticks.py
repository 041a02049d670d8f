"""Credits held deposits of unblocked wallets that the unblocking call left over. Notified by the scheduler."""

from __future__ import annotations

from typing import Final

from actors.context import context
from actors.queue.broker import doorbell, ring
from actors.queue.isolated import isolated
from models.wallets import rows as wallets
from models.wallets import settlement as wallet_settlement

WALLETS_PER_STEP: Final = 20


@doorbell(queue="maintenance")
def credit_unblocked_wallets() -> None:
    """Credit one portion for each of some wallets; notify itself again if a step succeeded and a wallet is left."""
    ctx = context()
    stepped = [
        isolated(wallet_id, wallet_settlement.credit_held, ctx.catalogue, wallet_id)
        for wallet_id in wallets.credit_due(WALLETS_PER_STEP)
    ]
    if any(stepped) and wallets.credit_due(1):
        ring("credit_unblocked_wallets")
