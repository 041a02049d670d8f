"""Tells for whose sake a token refuses a transfer: its recipient's, or our own wallet's. No actor; used by the signer.

Issuers freeze holders and pause tokens. Where even the least leaves our wallet for nobody whom a token could know, no
payout of that coin can leave, and none is to fail for it: the coin is frozen until an operator lifts that.
"""

from __future__ import annotations

from typing import Final, cast
from uuid import UUID

import structlog

from actors.context import Context
from actors.signer import spend as spending
from actors.signer.intents import intent_of
from chains.base import ProviderError
from chains.family import TokenSpender
from chains.spending import InsufficientCoinError, Intent, Output, SpendRefusedError
from core.catalogue.catalogue import Network, Pair
from core.payouts.states import WaitingFor
from models.db.base import transaction
from models.payouts import freezes
from models.payouts import queue as payout_queue
from models.spends import rows as spends
from models.spends.rows import SpendRow

log = structlog.get_logger()

# The last deposit address that there is. It is ours and never handed out, so that no list of an issuer has it.
NEUTRAL_ORDINAL: Final = 2**31 - 1
# The least that a token can move: neither what the wallet lacks nor what a token calls too much refuses it.
NEUTRAL_UNITS: Final = 1
REASON: Final = "the token refuses whatever leaves the hot wallet: its issuer has frozen the wallet or paused the token"
# Why payouts wait that had no effect in a block: until it lies deep enough, and until providers agree.
OWN: Final = "the token refused the hot wallet; it is signed anew once that lies deep enough"
UNTRACED: Final = "the transfer had no effect, and providers do not agree whether the token refuses the hot wallet"


class OwnRefusalError(Exception):
    """The token refuses whatever leaves our wallet. Its coin is frozen on this network."""


def traced(ctx: Context, network: Network, pair: Pair, error: Exception) -> Exception:
    """Return what keeps a payout back that was not signed, having frozen its coin if our own wallet is refused.

    The error itself if it is no refusal, or the recipient's; what failed if nodes do not tell whose it is. Not to be
    called inside a transaction.
    """
    if not isinstance(error, SpendRefusedError):
        return error
    try:
        is_own = is_own_refusal(ctx, network, pair)
    except ProviderError as failure:
        return failure
    if not is_own:
        return error
    freeze(network, pair.currency, problem=str(error))
    return OwnRefusalError(str(error))


def is_traced(ctx: Context, network: Network, spend_id: UUID) -> bool:
    """Return whether a payout's spend in a block may end: one without effect only once it is known who is refused.

    That is tried as soon as the block is seen, and noted with it. If it is our own wallet, the coin is frozen.
    """
    spend = spends.find(spend_id)
    if spend is None or (spend.purpose, spend.state, spend.effect) != ("payout", "mined", "none"):
        return True
    pair = intent_of(spend).pair
    if pair is None or spend.is_own_refusal is not None:
        return True
    try:
        is_own = is_own_refusal(ctx, network, pair)
    except InsufficientCoinError:
        # The wallet is empty, which is why.
        is_own = False
    except ProviderError as failure:
        log.warning("spend.refusal_untraced", spend=str(spend.id), network=network.code, error=str(failure))
        _explain(spend, UNTRACED, "network")
        return False
    if not spends.note_refusal(spend, is_own=is_own):
        return False
    if is_own:
        freeze(network, pair.currency, problem=spend.problem)
    _explain(spend, OWN if is_own else "", "freeze")
    return True


def _explain(spend: SpendRow, reason: str, waiting_for: WaitingFor) -> None:
    for payout_id in filter(None, (output.payout_id for output in spend.outputs)):
        payout_queue.explain(payout_id, reason=reason, waiting_for=waiting_for)


def is_own_refusal(ctx: Context, network: Network, pair: Pair) -> bool:
    """Return whether a token lets nothing leave the hot wallet. Raises ProviderError where too few nodes tell it."""
    if pair.contract is None:
        # Nobody but its recipient refuses the gas coin.
        return False
    neutral = spending.deposit_wallet(network, NEUTRAL_ORDINAL).address
    least = (Output(recipient=neutral, units=NEUTRAL_UNITS),)
    spender = cast("TokenSpender", spending.spender_of(ctx, network))
    return spender.refuses(Intent(wallet=spending.hot_wallet(network), pair=pair, outputs=least))


def freeze(network: Network, currency: str, *, problem: str) -> None:
    """Freeze the payouts of a coin that cannot leave the hot wallet, until an operator lifts it."""
    log.critical("payouts.coin_refused", network=network.code, currency=currency, problem=problem)
    with transaction():
        freezes.freeze("coin", freezes.coin(currency, network.code), reason=REASON, frozen_by=freezes.REFUSAL)
