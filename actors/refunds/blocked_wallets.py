"""Refunds the held deposits of a blocked static wallet. The API calls it through the queue and waits."""

from __future__ import annotations

from uuid import UUID

from actors.context import context
from actors.queue.call_specs import REFUND_BLOCKED_WALLET
from actors.queue.caller import CallInfo, CallReply, call_actor, recorded
from actors.refunds import orders as refund_orders
from actors.refunds import uncredited
from actors.refunds.orders import Destination, Purpose
from core.errors import RefundNothingToRefund, WalletStaticNotFound
from core.refunds.schemas import BlockedRefund
from models.deposits import rows as deposits
from models.payouts import views as payout_views
from models.wallets import rows as wallets
from models.wallets.rows import WalletRow


@call_actor(REFUND_BLOCKED_WALLET, body=BlockedRefund)
def refund_blocked_wallet(info: CallInfo, wanted: BlockedRefund) -> CallReply:
    """Refund a blocked wallet's uncredited deposits, each coin by its own payout."""
    ctx = context()
    with recorded(info) as record:
        wallet = _locked(info, wanted)
        # Read under the lock: deposits that were credited while this waited for it are no longer held.
        waiting = deposits.largest_waiting(wallet.id, limit=uncredited.DEPOSITS_MAX) if wallet.is_blocked else []
        if not waiting:
            raise RefundNothingToRefund
        named = refund_orders.destination(ctx, network=wallet.network, address=wanted.refund_address, payer="")
        # The merchant named the address for these very coins: it needs no approval.
        to = Destination(address=named.address, is_payer=True)
        purpose = Purpose(kind="wallet_refund", wallet_id=wallet.id)
        written = uncredited.send_back(ctx, info.asker(), purpose, to, waiting)
        shown = [payout_views.payout(ctx.catalogue, refund) for refund in written]
        return record.store({"payouts": shown})


def _locked(info: CallInfo, wanted: BlockedRefund) -> WalletRow:
    if wanted.uuid is not None:
        known = wallets.find(info.merchant(), wallet_id=UUID(wanted.uuid))
    else:
        known = wallets.find_by_address(info.merchant(), wanted.address or "")
    wallet = None if known is None else wallets.lock(known.id)
    if wallet is None:
        raise WalletStaticNotFound
    return wallet
