"""Sends approved payouts, each as exactly one transfer, and follows them to their end. Runs in the signer process.

Notified by the scheduler and by the code that approves payouts. One step per network at a time: first the spends under
way, then new payouts. A payout is checked twice: before the quote, and again under its lock in the transaction that
commits the signed bytes, where nothing can change it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

import structlog

from actors.context import Context
from actors.network_ticks import network_tick
from actors.queue.isolated import isolated
from actors.signer import batches, follow_up, limits, mempools, readiness, refusals, sign, spenders
from actors.signer.batches import Search
from actors.signer.limits import FeeRisenError, LimitReachedError, NoRateError
from actors.signer.refusals import OwnRefusalError
from actors.signer.sign import SigningStoppedError, WalletBusyError
from chains import registry
from chains.base import ChainError, ForeignKeyError, ProviderError
from chains.family import Reader
from chains.keystore import KeystoreError
from chains.net.budget import BudgetSpentError, budget
from chains.spending import (
    CoinsTooSmallError,
    FeeTooHighError,
    InsufficientCoinError,
    Intent,
    KeyRef,
    Output,
    SpendRefusedError,
)
from core.catalogue.catalogue import Network, Pair
from core.catalogue.families import Traits, traits_of
from core.invoices.states import ForbiddenTransitionError
from core.logs.checkpoints import reached
from core.money import PrecisionLostError
from core.payouts.states import WaitingFor
from models.db.base import repeat_on_deadlock, transaction
from models.outcomes import disowned, endings, payout_hooks, reversals
from models.payouts import freezes, order_checks, withdrawals
from models.payouts import queue as payout_queue
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from models.refunds import rows as refunds
from models.spends import matching, signing_stops
from models.spends import reads as spend_reads
from models.spends import rows as spends

log = structlog.get_logger()

TAKEN_PER_STEP: Final = 20
# The pauses before a payout is tried again that failed for a reason outside of it.
PAUSE_S: Final = 5
PAUSE_SHORT_OF_COIN_S: Final = 15
# Of a payout for which providers fail in every batch; and once they answered in the same step about others.
PAUSE_ALONE_S: Final = 30
PAUSE_AT_FAULT_S: Final = 300
PAUSE_LIMIT_S: Final = 60
PAUSE_ALARM_S: Final = 60

UNANSWERED: Final = "the network does not answer, or not as it must"
REFUSED: Final = "The network refuses this transfer."
BLOCKED: Final = "A compliance check blocks this address."


class _UnsoundError(Exception):
    """The signer found a contradiction to the payout's row: nothing is signed, and an operator has to look."""


class _MayRepeatError(Exception):
    """A written-off transaction may have paid the payout; an operator has to look."""


# Errors that keep back one payout or a whole batch, and are no failure of the step.
REASONS: Final = (
    SpendRefusedError, ChainError, NoRateError, LimitReachedError, FeeRisenError, _MayRepeatError, _UnsoundError,
)  # fmt: skip


class _Ready(NamedTuple):
    """The output of an approved payout, made from its row alone."""

    payout_id: UUID
    pair: Pair
    output: Output


@network_tick("broadcast", queue="signer")
def broadcast(ctx: Context, network: Network, _chain: Reader) -> bool:
    """Take a network's spends and payouts a step further; return whether more of these may be due."""
    # Half of the budget for each, so that many spends under way do not delay new payouts.
    seconds, requests = ctx.settings.rpc_step_s / 2, ctx.settings.rpc_step_requests // 2
    with budget(seconds=seconds, requests=requests):
        may_sign = readiness.may_sign(network)
        follow_up.advance(ctx, network)
    with budget(seconds=seconds, requests=requests):
        # A payout that could not be sent waits until its own retry time.
        return may_sign and _take_up(ctx, network) > 0


def _take_up(ctx: Context, network: Network) -> int:
    """Send due payouts, up to the number of transactions that nodes keep of one sender.

    Returns the number of payouts that are no longer approved.
    """
    doubted = signing_stops.doubted_coins(ctx.catalogue, ctx.available, but=network.code)
    if doubted:
        payout_queue.explain_doubted(network.code, doubted)
    payout_queue.explain_immature(network)
    due = payout_queue.due(network, limit=max(TAKEN_PER_STEP, traits_of(network).outputs_max), doubted=doubted)
    if not due:
        return 0
    try:
        wallet = sign.hot_wallet(network)
    except KeystoreError as error:
        log.critical("signing.keystore_failed", network=network.code, problem=str(error))
        return 0
    if not mempools.check(network, spenders.spender_of(ctx, network), wallet.address):
        return 0
    traits = traits_of(network)
    room = traits.in_flight_max - spend_reads.waiting_of(network.code, wallet.address)
    ready = batches.split(network, _gathered(due, traits))[: max(0, room)]
    return sum(_pay_isolated(ctx, network, wallet, batch) for batch in ready)


def _pay_isolated(ctx: Context, network: Network, wallet: KeyRef, batch: Sequence[UUID]) -> int:
    """Pay a batch; if it fails, pay each payout alone, so that a broken one does not delay the others."""
    gone = isolated(batch[0], _pay, ctx, network, wallet, batch)
    if gone is None and len(batch) > 1:
        return sum(isolated(alone, _pay, ctx, network, wallet, [alone]) or 0 for alone in batch)
    return gone or 0


def _gathered(due: Sequence[UUID], traits: Traits) -> Sequence[Sequence[UUID]]:
    """Split due payouts into batches, each paid by one spend."""
    if traits.outputs_max == 1:
        return [[payout_id] for payout_id in due]
    return payout_queue.gathered(due, traits)


def _pay(ctx: Context, network: Network, wallet: KeyRef, batch: Sequence[UUID]) -> int:
    """Pay approved payouts of one coin with one spend, or note why one has to wait.

    Returns the number of payouts that are no longer approved.
    """
    judged, search = [_judged(ctx, network, payout_id) for payout_id in batch], Search()
    ready = [each for each in judged if isinstance(each, _Ready)]
    gone = _sign(ctx, network, wallet, ready, search)
    for payout_id in search.alone:
        # At fault if providers answered about others.
        pause_s = PAUSE_AT_FAULT_S if search.is_signed else PAUSE_ALONE_S
        payout_queue.postpone(payout_id, seconds=pause_s, reason=UNANSWERED, waiting_for="network")
    return sum(each is True for each in judged) + gone


def _judged(ctx: Context, network: Network, payout_id: UUID) -> _Ready | bool:
    """Return the output that a payout needs now; otherwise whether it is no longer approved."""
    payout = payout_queue.read(payout_id)
    if payout is None or payout.status != "approved":
        return False
    if refunds.is_lost(payout):
        # A reorg took the refunded deposit while bytes that are dead now might still have arrived.
        return repeat_on_deadlock(reversals.stop_lost, ctx.catalogue, payout_id)
    if withdrawals.revoked_voice(payout):
        return disowned.cancel(ctx.catalogue, payout_id)
    try:
        _check_repeat(ctx, payout)
        ready = _ready(ctx, network, payout)
        # Before any node is asked: a payout that may not leave anyway costs no requests.
        if freezes.is_frozen(payout.merchant_id, network.code, payout.currency, way=payout.way):
            payout_queue.postpone(payout.id, seconds=PAUSE_S, reason="frozen", waiting_for="freeze")
            return False
        limits.check(
            ctx.settings,
            _cents(ctx, payout),
            merchant_id=payout.merchant_id,
            carried_cents=limits.carried_cents(ctx, payout),
        )
        return _fail(ctx, payout.id, BLOCKED) if _is_blocked(ctx, network, payout) else ready
    except REASONS as error:
        return _put_off(ctx, payout_id, error)


def _sign(ctx: Context, network: Network, wallet: KeyRef, batch: Sequence[_Ready], search: Search) -> int:
    """Sign one spend for a batch; drop payouts that cannot be taken and draft the others again.

    Returns the number of payouts that are no longer approved. search: the tries of this step.
    """
    if not batch:
        return 0
    # The payout that the committing transaction is checking: an error raised there concerns it alone.
    at_hand: list[_Ready] = []

    def take(spend_id: UUID) -> bool:
        for place, each in enumerate(batch):
            at_hand[:] = [each]
            if not _take(ctx, network, wallet, each, spend_id, place):
                return False
        at_hand.clear()
        return True

    intent = Intent(wallet=wallet, pair=batch[0].pair, outputs=tuple(each.output for each in batch))
    payout_ids = [each.payout_id for each in batch]
    try:
        spend_id = sign.start(ctx, network, purpose="payout", intent=intent, payout_ids=payout_ids, within=take)
    except REASONS as error:
        if not at_hand and search.halves(error, batch):
            # The error does not name its payout: halving the batch finds it.
            half = len(batch) // 2
            return sum(_sign(ctx, network, wallet, part, search) for part in (batch[:half], batch[half:]))
        dropped = at_hand or batch
        gone = _drop(ctx, network, dropped, error, search, is_theirs=bool(at_hand))
    else:
        dropped, gone = ((), len(batch)) if spend_id is not None else (at_hand, 0)
        for each in dropped:
            payout_queue.postpone(each.payout_id, seconds=PAUSE_S, reason="frozen", waiting_for="freeze")
        reached("broadcast.paid")
        if spend_id is not None:
            search.note_signed(network, len(batch))
            return gone
    return gone + _sign(ctx, network, wallet, [each for each in batch if each not in dropped], search)


def _drop(
    ctx: Context, network: Network, dropped: Sequence[_Ready], error: Exception, search: Search, *, is_theirs: bool
) -> int:
    """Put off payouts that cannot be signed now; return how many are no longer approved.

    is_theirs: whether the error concerns them alone, instead of their spend.
    """
    search.note(network, error, [each.payout_id for each in dropped])
    cause = error if is_theirs else refusals.traced(ctx, network, dropped[0].pair, error)
    return sum(_put_off(ctx, each.payout_id, cause) for each in dropped)


def _put_off(ctx: Context, payout_id: UUID, error: Exception) -> bool:
    """Note why a payout waits, or end it; return whether it is no longer approved."""
    match error:
        case SpendRefusedError():
            return _refused(ctx, payout_id, str(error))
        case OwnRefusalError():
            log.warning("payout.postponed", payout=str(payout_id), reason="frozen", error=str(error))
            payout_queue.keep(payout_id, seconds=PAUSE_S, reason="frozen")
        case InsufficientCoinError():
            _postponed(payout_id, PAUSE_SHORT_OF_COIN_S, payout_queue.SHORT_OF_COIN, error, "liquidity")
        case BudgetSpentError() | WalletBusyError():
            # The step's requests are used up, or another spend came first; the payout is not at fault.
            pass
        case ForeignKeyError():
            _frozen(payout_id, error)
        case ProviderError():
            _postponed(payout_id, PAUSE_S, _why(error), error, _kind(error))
        case NoRateError():
            _postponed(payout_id, PAUSE_S, "the coin has no rate", error, "limit")
        case LimitReachedError():
            _postponed(payout_id, PAUSE_LIMIT_S, _limit(ctx, payout_id, error), error, "limit")
        case FeeRisenError():
            _postponed(payout_id, PAUSE_LIMIT_S, payout_queue.FEE_RISEN, error, "fee")
        case _:
            _alarm(payout_id, error)
    return False


def _alarm(payout_id: UUID, error: Exception) -> None:
    """Log that an operator has to look at a payout, and let it wait for that."""
    if isinstance(error, _MayRepeatError):
        log.error("payout.may_repeat", payout=str(payout_id), problem=str(error))
    else:
        log.critical("payout.unsound", payout=str(payout_id), problem=str(error))
    payout_queue.postpone(payout_id, seconds=PAUSE_ALARM_S, reason=str(error), waiting_for="freeze")


def _frozen(payout_id: UUID, error: ForeignKeyError) -> None:
    """Freeze a payout's network, where others may sign for our wallet; the payout waits for an operator."""
    payout = payout_queue.read(payout_id)
    if payout is None:
        raise LookupError(f"payout {payout_id} vanished while it was judged")
    sign.freeze_for(payout.network, error)
    _postponed(payout_id, PAUSE_ALARM_S, "frozen", error, "freeze")


def _limit(ctx: Context, payout_id: UUID, error: LimitReachedError) -> str:
    """Describe the limit that a payout waits for, and the signer's own rate if that is the cause."""
    payout = payout_queue.read(payout_id)
    blamed = None if payout is None else limits.blamed_rate(ctx, payout.currency)
    return f"the signer's limit: {error}" + (f" ({blamed})" if blamed else "")


def _why(error: ProviderError) -> str:
    if isinstance(error, SigningStoppedError):
        return signing_stops.waiting_reason(str(error))
    if isinstance(error, CoinsTooSmallError):
        return payout_queue.COINS_TOO_SMALL
    if isinstance(error, FeeTooHighError):
        return "the network's fee is above the cap"
    return UNANSWERED


def _kind(error: ProviderError) -> WaitingFor:
    return "fee" if isinstance(error, FeeTooHighError) else "network"


def _postponed(payout_id: UUID, seconds: int, reason: str, error: Exception, waiting_for: WaitingFor) -> None:
    log.warning("payout.postponed", payout=str(payout_id), reason=reason, error=str(error))
    payout_queue.postpone(payout_id, seconds=seconds, reason=reason, waiting_for=waiting_for)


def _refused(ctx: Context, payout_id: UUID, problem: str) -> bool:
    """Postpone a refused payout; after half an hour fail it and give the money back.

    Nothing was signed for it that could still take effect.
    """
    log.warning("payout.refused", payout=str(payout_id), problem=problem)
    return payout_queue.refuse(payout_id, reason=problem) and _fail(ctx, payout_id, REFUSED)


def _fail(ctx: Context, payout_id: UUID, error: str) -> bool:
    """Fail an approved payout without a spend, or whose spends are provably dead.

    False if it was cancelled meanwhile, and while its network is frozen.
    """
    try:
        with transaction():
            payout = payout_queue.read(payout_id)
            if payout is not None and freezes.is_network_frozen(payout.network):
                return False
            # Checked last, under the ending's locks: if a spend was signed meanwhile, the transaction rolls back.
            after = endings.end(ctx.catalogue, payout_id, "failed", error=error)
            if after is not None and spends.of_payout(payout_id) is not None:
                raise _UnsoundError("an approved payout has a spend")
    except ForbiddenTransitionError:
        return False
    reached("broadcast.failed")
    return after is not None


def _check_repeat(ctx: Context, payout: PayoutRow) -> None:
    """Refuse what may repeat an order whose transaction was written off lately. Raises _MayRepeatError."""
    txids = matching.written_off(ctx.catalogue, payout)
    if txids:
        raise _MayRepeatError(f"the written-off transaction {txids[0]} may have paid it: adopt that, or release this")


def _ready(ctx: Context, network: Network, payout: PayoutRow) -> _Ready:
    """Make a payout's output from its row alone. Raises SpendRefusedError."""
    pair = ctx.catalogue.pair(payout.currency, network.code)
    if pair is None:
        raise SpendRefusedError(f"{payout.currency} is not offered on {network.code} any more")
    try:
        units = pair.from_ledger(payout.to_units, ctx.catalogue.scale(payout.currency))
    except PrecisionLostError as error:
        raise SpendRefusedError(str(error)) from error
    output = Output(recipient=payout.address, units=units, memo=payout.memo)
    return _Ready(payout_id=payout.id, pair=pair, output=output)


def _cents(ctx: Context, payout: PayoutRow) -> int:
    """Return the worth of a payout's output in US cents. Raises NoRateError."""
    return limits.usd_cents(ctx.catalogue, limits.market(ctx), payout.currency, payout.to_units)


def _is_blocked(ctx: Context, network: Network, payout: PayoutRow) -> bool:
    """Return whether the operator or the network's oracle blocks a payout's address.

    Raises ChainError if the oracle does not answer.
    """
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


def _take(ctx: Context, network: Network, wallet: KeyRef, ready: _Ready, spend_id: UUID, place: int) -> bool:
    """Take a payout for the spend that the same transaction signs next; False if it must not be paid now."""
    payout = payouts.lock(ready.payout_id)
    if payout is None or payout.status != "approved":
        return False
    if freezes.is_frozen(payout.merchant_id, network.code, payout.currency, way=payout.way):
        return False
    if payout.currency in signing_stops.doubted_coins(ctx.catalogue, ctx.available, but=network.code):
        # Another network was stopped meanwhile.
        return False
    if refunds.is_lost(payout) or not payout_queue.is_here(network, payout.id):
        # A reorg took the deposit that the payout refunds, or moved it into a newer block.
        return False
    if withdrawals.revoked_voice(payout):
        return False
    if _ready(ctx, network, payout) != ready:
        raise _UnsoundError("the payout changed while it was quoted")
    if not payout_queue.is_held(payout):
        raise _UnsoundError("the ledger does not hold its money")
    if order_checks.is_internal(network.family, payout.address) or payout.address == wallet.address:
        raise _UnsoundError("the address is the gateway's own")
    cents = _cents(ctx, payout)
    limits.allow(
        ctx.settings,
        network.code,
        cents,
        merchant_id=payout.merchant_id,
        spend_id=spend_id,
        place=place,
        carried_cents=limits.carried_cents(ctx, payout),
    )
    payout_queue.take(payout.id)
    reached("broadcast.judged")
    return payout_hooks.begin(ctx.catalogue, payout)
