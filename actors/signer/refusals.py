"""Finds out whether a token refuses a transfer because of its recipient or our wallet. No actor; used by the signer.

Issuers freeze holders and pause tokens. If a token refuses even the smallest transfer from our wallet to an address it
cannot know, no payout of that coin can leave. None is to fail for that: the coin is frozen until an operator lifts the
freeze.
"""

from __future__ import annotations

from typing import Final, cast
from uuid import UUID

import structlog

from actors.context import Context
from actors.signer import sign, spenders
from actors.signer.intents import intent_of
from chains.base import ChainError, ProviderError
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

# The last possible deposit address. It is ours and never handed out, so that no issuer lists it.
NEUTRAL_ORDINAL: Final = 2**31 - 1
# The smallest transfer: it fails neither for a low balance nor for a token's upper limit.
NEUTRAL_UNITS: Final = 1
REASON: Final = "the token refuses whatever leaves the hot wallet: its issuer has frozen the wallet or paused the token"
# Why payouts without effect in a block wait: until the block is deep enough, and until providers agree.
OWN: Final = "the token refused the hot wallet; it is signed anew once that lies deep enough"
UNTRACED: Final = "the transfer had no effect, and providers do not agree whether the token refuses the hot wallet"


class OwnRefusalError(Exception):
    """The token refuses every transfer from our wallet. Its coin is frozen on this network."""


def traced(ctx: Context, network: Network, pair: Pair, error: Exception) -> Exception:
    """Return the error that keeps an unsigned payout back; freeze its coin if the token refuses our wallet.

    Returns the given error if it is no refusal or concerns the recipient; the ChainError if the nodes do not show
    whom the token refuses. Not to be called inside a transaction.
    """
    if not isinstance(error, SpendRefusedError):
        return error
    try:
        is_own = is_own_refusal(ctx, network, pair)
    except ChainError as failure:
        return failure
    if not is_own:
        return error
    freeze(network, pair.currency, problem=str(error))
    return OwnRefusalError(str(error))


def is_traced(ctx: Context, network: Network, spend_id: UUID) -> bool:
    """Return whether a payout's included spend may end.

    A spend without effect may end only once it is known whether the token refuses the recipient or our wallet. That is
    tested as soon as the block is seen, and noted with the spend. If the token refuses our wallet, the coin is frozen.
    Outputs that are still on their way do not count.
    """
    spend = spends.find(spend_id)
    if spend is None or (spend.purpose, spend.state) != ("payout", "mined"):
        return True
    if {output.effect for output in spend.outputs} - {None} != {"none"}:
        return True
    pair = intent_of(spend).pair
    if pair is None or spend.is_own_refusal is not None:
        return True
    try:
        is_own = is_own_refusal(ctx, network, pair)
    except InsufficientCoinError:
        # The transfer had no effect because the wallet is empty.
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
    """Return whether a token refuses every transfer from the hot wallet.

    Raises ChainError if too few nodes answer.
    """
    if pair.contract is None:
        # The gas coin has no issuer: only a recipient can refuse it.
        return False
    neutral = sign.deposit_wallet(network, NEUTRAL_ORDINAL).address
    least = (Output(recipient=neutral, units=NEUTRAL_UNITS),)
    spender = cast("TokenSpender", spenders.spender_of(ctx, network))
    return spender.refuses(Intent(wallet=sign.hot_wallet(network), pair=pair, outputs=least))


def freeze(network: Network, currency: str, *, problem: str) -> None:
    """Freeze a coin's payouts, which cannot leave the hot wallet, until an operator lifts the freeze."""
    log.critical("payouts.coin_refused", network=network.code, currency=currency, problem=problem)
    with transaction():
        freezes.freeze("coin", freezes.coin(currency, network.code), reason=REASON, frozen_by=freezes.REFUSAL)
