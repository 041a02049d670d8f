"""Joins many coins into one when that is cheap, so that later payouts need few. Called by actors.treasury.sweep.

The family's treasurer decides whether a join is cheap; this module decides whether there are many coins, and lets
payouts come first.
"""

from __future__ import annotations

from typing import Final

import structlog

from actors.context import Context
from actors.signer import sign
from chains import registry
from chains.spending import Coin, Coins, InsufficientCoinError, KeyRef, SpendRefusedError, Sweep
from core.catalogue.catalogue import Network
from models.payouts import freezes
from models.payouts import queue as payout_queue
from models.spends import reads as spend_reads

log = structlog.get_logger()

# Up to this number of free coins, none are joined.
COINS_FEW: Final = 50


def join(ctx: Context, network: Network, hot: KeyRef) -> bool:
    """Join coins if there are many, one transaction at a time; return whether one was signed.

    Not while payouts are due, which may want the same coins. Raises FeeTooHighError and ChainError.
    """
    code, currency = network.code, network.gas_currency
    free = sign.free_coins(network, currency)
    if len(free) <= COINS_FEW or currency in freezes.frozen_coins(code) or payout_queue.is_any_due(network):
        return False
    if spend_reads.waiting_of(code, hot.address, "join") or not sign.has_room(network, hot.address):
        return False
    treasurer, cap_units = registry.coin_treasurer(network, ctx.settings), registry.fee_cap_units(network, ctx.settings)
    try:
        step = treasurer.join(free, hot, cap_units=cap_units, scanned=sign.scanned(network))
        return isinstance(step, Sweep) and _start(ctx, network, step, free)
    except (InsufficientCoinError, SpendRefusedError) as error:
        log.warning("join.refused", network=code, reason=str(error))
    return False


def _start(ctx: Context, network: Network, step: Sweep, free: tuple[Coin, ...]) -> bool:
    draft = step.draft
    if not isinstance(draft.claim, Coins) or not set(draft.claim.outpoints) <= {(one.txid, one.vout) for one in free}:
        raise ValueError("a join claims other coins than it was offered")
    spend_id = sign.start(ctx, network, purpose="join", intent=draft.intent, draft=draft)
    log.info("join.started", network=network.code, coins=len(draft.claim.coins), spend=str(spend_id))
    return spend_id is not None
