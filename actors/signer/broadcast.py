"""Sends approved payouts, each as exactly one transfer, and follows them to their end. Runs in the signer process.

Rung by the scheduler and by whoever approves. One step per network at a time: first what is under way, then what is
new. A payout is judged twice: before the quote, and again under its lock in the transaction that commits the signed
bytes, where nothing can change any more.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

import structlog

from actors.context import Context
from actors.network_ticks import network_tick
from actors.queue.isolated import isolated
from actors.signer import limits as signer_policy
from actors.signer import recovery
from actors.signer import spend as spending
from actors.signer import watch as spend_watch
from actors.signer.limits import LimitReachedError, NoRateError
from actors.signer.spend import SigningStoppedError
from chains import registry
from chains.base import InsufficientCoinError, Intent, KeyRef, Output, ProviderError, SpendRefusedError
from chains.family import Reader
from chains.keystore import KeystoreError
from chains.net.budget import BudgetSpentError, budget
from core.catalogue.catalogue import Network
from core.invoices.states import ForbiddenTransitionError
from core.logs.checkpoints import reached
from core.money import PrecisionLostError
from models.db.base import transaction
from models.outcomes import endings as payout_endings
from models.outcomes import spends as payout_spends
from models.payouts import freezes
from models.payouts import queue as payout_queue
from models.payouts import rows as payouts
from models.payouts import rules as payout_rules
from models.payouts.rows import PayoutRow
from models.spends import reads as spend_reads
from models.spends import rows as spends
from models.spends import signing

log = structlog.get_logger()

TAKEN_PER_STEP: Final = 20
# Until something is tried again that failed for a reason outside of the payout.
PAUSE_S: Final = 5
PAUSE_SHORT_OF_COIN_S: Final = 15
PAUSE_LIMIT_S: Final = 60
PAUSE_ALARM_S: Final = 60

REFUSED: Final = "The network refuses this transfer."
BLOCKED: Final = "A compliance check blocks this address."


class _UnsoundError(Exception):
    """What the signer finds contradicts what the payout says: nothing is signed, and somebody has to look."""


@network_tick("broadcast", queue="signer")
def broadcast(ctx: Context, network: Network, _chain: Reader) -> bool:
    """Take a network's spends and payouts a step further; return whether more of these may be due."""
    # Half for each, so that many under way keep nothing new from its turn.
    seconds, requests = ctx.settings.rpc_step_s / 2, ctx.settings.rpc_step_requests // 2
    with budget(seconds=seconds, requests=requests):
        may_sign = recovery.advance(ctx, network)
        spend_watch.advance(ctx, network)
    with budget(seconds=seconds, requests=requests):
        # What could not be taken up waits for its own time.
        return may_sign and _take_up(ctx, network) > 0


def _take_up(ctx: Context, network: Network) -> int:
    """Send what is due, as much as nodes keep of one sender; return how many payouts are approved no more."""
    due = payout_queue.due(network, limit=TAKEN_PER_STEP)
    if not due:
        return 0
    try:
        wallet = spending.hot_wallet(network)
    except KeystoreError as error:
        log.critical("signing.keystore_failed", network=network.code, problem=str(error))
        return 0
    if not recovery.check_pools(network, spending.spender_of(ctx, network), wallet.address):
        return 0
    room = spending.WAITING_MAX - spend_reads.waiting_of(network.code, wallet.address)
    return sum(bool(isolated(payout_id, _pay, ctx, network, wallet, payout_id)) for payout_id in due[: max(0, room)])


def _pay(ctx: Context, network: Network, wallet: KeyRef, payout_id: UUID) -> bool:
    """Make one approved payout a spend, or note why it has to wait; return whether it is approved no more."""
    payout = payout_queue.read(payout_id)
    if payout is None or payout.status != "approved":
        return False
    try:
        return _judge_and_sign(ctx, network, wallet, payout)
    except SpendRefusedError as error:
        return _refused(ctx, payout_id, str(error))
    except InsufficientCoinError as error:
        _postponed(payout_id, PAUSE_SHORT_OF_COIN_S, payout_queue.SHORT_OF_COIN, error)
    except BudgetSpentError:
        # The step is over; it says nothing about the payout.
        return False
    except ProviderError as error:
        _postponed(payout_id, PAUSE_S, _why(error), error)
    except NoRateError as error:
        _postponed(payout_id, PAUSE_S, "the coin has no rate", error)
    except LimitReachedError as error:
        _postponed(payout_id, PAUSE_LIMIT_S, _limit(ctx, payout, error), error)
    except _UnsoundError as error:
        log.critical("payout.unsound", payout=str(payout_id), problem=str(error))
        payout_queue.postpone(payout_id, seconds=PAUSE_ALARM_S, reason=str(error))
    return False


def _judge_and_sign(ctx: Context, network: Network, wallet: KeyRef, payout: PayoutRow) -> bool:
    intent = _intent(ctx, network, wallet, payout)
    # Before any node is asked: what may not leave anyway costs no requests.
    if freezes.is_frozen(payout.merchant_id, network.code, payout.currency):
        payout_queue.postpone(payout.id, seconds=PAUSE_S, reason="frozen")
        return False
    signer_policy.check(ctx.settings, _cents(ctx, payout), merchant_id=payout.merchant_id)
    if _is_blocked(ctx, network, payout):
        return _fail(ctx, payout.id, BLOCKED)
    return _sign(ctx, network, wallet, payout.id, intent)


def _sign(ctx: Context, network: Network, wallet: KeyRef, payout_id: UUID, intent: Intent) -> bool:
    spend_id = spending.start(
        ctx, network, purpose="payout", intent=intent, payout_id=payout_id,
        within=lambda spend_id: _take(ctx, network, wallet, payout_id, intent, spend_id),
    )  # fmt: skip
    if spend_id is None:
        payout_queue.postpone(payout_id, seconds=PAUSE_S, reason="frozen")
    reached("broadcast.paid")
    return spend_id is not None


def _limit(ctx: Context, payout: PayoutRow, error: LimitReachedError) -> str:
    """Say which limit a payout waits for, and where a rate of the signer's own is to blame, that."""
    blamed = signer_policy.blamed_rate(ctx, payout.currency)
    return f"the signer's limit: {error}" + (f" ({blamed})" if blamed else "")


def _why(error: ProviderError) -> str:
    if isinstance(error, SigningStoppedError):
        return signing.waiting_reason(str(error))
    return "the network does not answer, or not as it must"


def _postponed(payout_id: UUID, seconds: int, reason: str, error: Exception) -> None:
    log.warning("payout.postponed", payout=str(payout_id), reason=reason, error=str(error))
    payout_queue.postpone(payout_id, seconds=seconds, reason=reason)


def _refused(ctx: Context, payout_id: UUID, problem: str) -> bool:
    """Try again later, and after half an hour give the money back: nothing was signed that could still take effect."""
    log.warning("payout.refused", payout=str(payout_id), problem=problem)
    return payout_queue.refuse(payout_id, reason=problem) and _fail(ctx, payout_id, REFUSED)


def _fail(ctx: Context, payout_id: UUID, error: str) -> bool:
    """End a payout for which nothing is signed: an approved one without a spend, or whose spends are provably dead.

    False where somebody cancelled it meanwhile, and while its network is frozen.
    """
    try:
        with transaction():
            payout = payout_queue.read(payout_id)
            if payout is not None and freezes.is_network_frozen(payout.network):
                return False
            # Judged after it, under its locks: whoever signed meanwhile makes all of this undone.
            after = payout_endings.end(ctx.catalogue, payout_id, "failed", error=error)
            if after is not None and spends.of_payout(payout_id) is not None:
                raise _UnsoundError("an approved payout has a spend")
    except ForbiddenTransitionError:
        return False
    reached("broadcast.failed")
    return after is not None


def _intent(ctx: Context, network: Network, wallet: KeyRef, payout: PayoutRow) -> Intent:
    """Return what a payout says, and nothing but the payout's row. Raises SpendRefusedError."""
    pair = ctx.catalogue.pair(payout.currency, network.code)
    if pair is None:
        raise SpendRefusedError(f"{payout.currency} is not offered on {network.code} any more")
    try:
        units = pair.from_ledger(payout.to_units, ctx.catalogue.scale(payout.currency))
    except PrecisionLostError as error:
        raise SpendRefusedError(str(error)) from error
    return Intent(wallet=wallet, pair=pair, outputs=(Output(recipient=payout.address, units=units, memo=payout.memo),))


def _cents(ctx: Context, payout: PayoutRow) -> int:
    """Return what leaves with a payout, in US cents. Raises NoRateError."""
    return signer_policy.usd_cents(ctx.catalogue, signer_policy.market(ctx), payout.currency, payout.to_units)


def _is_blocked(ctx: Context, network: Network, payout: PayoutRow) -> bool:
    """Return whether the operator or the network's oracle forbids an address. ProviderError if the oracle is silent."""
    if ctx.deny_list.blocks(payout.address):
        return True
    screener = registry.screener(network, ctx.settings)
    if screener is None:
        return False
    known = payout_queue.verdict(network.code, payout.address)
    if known is None:
        known = screener.is_sanctioned(payout.address)
        payout_queue.store_verdict(network.code, payout.address, is_sanctioned=known)
    return known


def _take(ctx: Context, network: Network, wallet: KeyRef, payout_id: UUID, intent: Intent, spend_id: UUID) -> bool:
    """Take a payout for the spend that is signed next in the same transaction; False if it is not to be paid now."""
    payout = payouts.lock(payout_id)
    if payout is None or payout.status != "approved":
        return False
    if freezes.is_frozen(payout.merchant_id, network.code, payout.currency):
        return False
    if not payout_queue.is_here(network, payout_id):
        # A reorg put what it sends back into a newer block.
        return False
    if _intent(ctx, network, wallet, payout) != intent:
        raise _UnsoundError("the payout changed while it was quoted")
    if not payout_queue.is_held(payout):
        raise _UnsoundError("the ledger does not hold its money")
    if payout_rules.is_internal(network.family, payout.address) or payout.address == wallet.address:
        raise _UnsoundError("the address is the gateway's own")
    cents = _cents(ctx, payout)
    signer_policy.allow(ctx.settings, network.code, cents, merchant_id=payout.merchant_id, spend_id=spend_id)
    payout_queue.take(payout_id)
    reached("broadcast.judged")
    return payout_spends.begin(ctx.catalogue, payout)
