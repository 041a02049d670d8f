"""Follows every spend under way to its end: asks for its fate, sends its bytes again, offers more when it is stuck.

No actor; called by actors.signer.broadcast, one step per network at a time, for the spends of every purpose. Each spend
is a step of its own, so that a broken one does not delay the others. Only the chain's proof releases a held amount.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Final, assert_never
from uuid import UUID

import structlog

from actors.context import Context
from actors.queue.isolated import isolated
from actors.signer import limits, refusals
from actors.signer.funding import fund
from actors.signer.intents import as_meant, case_of, nothing_of, wallet_of
from actors.signer.replacing import replaced
from actors.signer.sign import SigningStoppedError, give, hot_wallet, new_attempt, sign, start
from actors.signer.spenders import counting, spender_of
from chains import registry
from chains.base import ProviderError
from chains.family import Spender
from chains.net.budget import BudgetSpentError
from chains.spending import (
    Coins,
    Draft,
    Fate,
    FateKind,
    FeeTooHighError,
    Fund,
    InsufficientCoinError,
    Offer,
    SpendRefusedError,
    UnderfundedError,
)
from core.catalogue.catalogue import Network
from core.catalogue.families import traits_of
from core.logs.checkpoints import reached
from core.money import rescale_down
from core.rates.pricing import CENTS
from models.db.base import app_now, transaction
from models.db.clock import FUTURE_MAX_S
from models.outcomes import payout_hooks
from models.payouts import freezes
from models.payouts import queue as payout_queue
from models.spends import held_coins
from models.spends import reads as spend_reads
from models.spends import rows as spends
from models.spends import tracking as spend_tracking
from models.spends.hooks import hooks_of
from models.spends.outputs import Moved
from models.spends.rows import AttemptRow, Inclusion, Movement, SpendRow
from models.spends.tracking import Cause
from models.treasury import sweeps

log = structlog.get_logger()

# The modules whose spends are followed; each has registered its hooks when it was imported.
FOLLOWED: Final = (payout_hooks, sweeps)

WATCHED_PER_STEP: Final = 50
# After this many requests in a row that no provider answered, the step ends.
SILENCES_MAX: Final = 3
# Bytes that stay outside of blocks are given to the nodes again after this long, in blocks and in seconds.
RESEND_BLOCKS: Final = 2
RESEND_MIN_S: Final = 5
RESEND_MAX_S: Final = 60
# A sender's lowest slot is stuck if no spend of the sender moved for at least this long.
PATIENCE_MIN_S: Final = 60
LOOK_MAX_S: Final = 15
LOOK_CONFIRMED_MAX_S: Final = 60
LOOK_UNKNOWN_S: Final = 60
# Outputs on their way to their recipients are looked for after this part of the time since the last one arrived.
LOOK_UNDELIVERED_PARTS: Final = 4
LOOK_UNDELIVERED_MAX_S: Final = 60
# Why a payout stays sent that only one provider shows as included.
ALONE: Final = "one provider alone tells that it was included"


def advance(ctx: Context, network: Network) -> None:
    """Check each due spend of a network."""
    for spend_id in spend_reads.replaced(network.code, limit=WATCHED_PER_STEP):
        isolated(spend_id, _reopen, spend_id)
    silences = 0
    for spend in spends.to_watch(network.code, limit=WATCHED_PER_STEP):
        if silences >= SILENCES_MAX:
            break
        is_known = isolated(spend.id, _advance_one, ctx, network, spend)
        silences = 0 if is_known else silences + 1
        spends.check_later(spend.id, seconds=_look_again_s(network, spend))


def _reopen(spend_id: UUID) -> bool:
    with transaction():
        spend_tracking.reopen(spend_id)
    return True


def _look_again_s(network: Network, spend: SpendRow) -> int:
    blocks_s = network.block_time_ms // 1000
    if hooks_of(spend.purpose) is None:
        return LOOK_UNKNOWN_S
    if spend.state == "confirmed":
        return max(1, min(LOOK_CONFIRMED_MAX_S, blocks_s * 4))
    return max(1, min(LOOK_MAX_S, blocks_s), _undelivered_s(spend))


def _undelivered_s(spend: SpendRow) -> int:
    """Return the pause for a spend whose open outputs are all on their way to their recipients; 0 for others.

    The longer they are, the less does it matter when they are seen to arrive.
    """
    waiting = [output.effect for output in spend.outputs if output.state == "open"]
    if spend.mined_at is None or not waiting or any(waiting):
        return 0
    waits_s = (app_now() - spend.mined_at).total_seconds() / LOOK_UNDELIVERED_PARTS
    return int(min(LOOK_UNDELIVERED_MAX_S, waits_s))


def _advance_one(ctx: Context, network: Network, spend: SpendRow) -> bool:
    """Apply one spend's fate on the chain; return False if no provider answered, or the step may ask no more."""
    if hooks_of(spend.purpose) is None:
        log.error("spend.purpose_unknown", spend=str(spend.id), purpose=spend.purpose)
        return True
    spender, attempts = spender_of(ctx, network), spends.attempts_of(spend.id)
    try:
        fate = _sound(network, spend, spender.fate(case_of(network, spend, attempts)))
        reached("watch.told")
        match fate.kind:
            case FateKind.INCLUDED:
                _included(ctx, network, spend, as_meant(network, spend, fate, attempts))
            case FateKind.DEAD:
                _dead(ctx, spend, attempts, "expired" if fate.cause == "expired" else "claim_used")
            case FateKind.WAITING:
                _waiting(ctx, network, spender, spend, attempts)
            case _:
                assert_never(fate.kind)
    except SigningStoppedError:
        # Its fate is known; the signer offers more for it once signing for the network resumes.
        return True
    except BudgetSpentError:
        return False
    except (ProviderError, SpendRefusedError) as error:
        log.warning("spend.provider_failed", spend=str(spend.id), network=network.code, error=repr(error))
        return False
    return True


def _sound(network: Network, spend: SpendRow, fate: Fate) -> Fate:
    """Return the fate if it is possible on this kind of chain. Raises ProviderError otherwise."""
    if traits_of(network).always_has_effect and any(each.effect != "exact" for each in fate.outputs):
        # No included transaction ever fails and frees the coins that it spent.
        raise ProviderError("a transaction of coins is said to have had no effect, or another")
    if fate.fee_units < 0 and not spend.payer:
        # Only the hot wallet, as the payer of a sweep, gets more than its fee out of an account that is closed.
        raise ProviderError(f"a fee of {fate.fee_units} units is reported")
    return fate


def _included(ctx: Context, network: Network, spend: SpendRow, fate: Fate) -> None:
    inclusion = _inclusion(fate)
    if _knows_less(spend, inclusion):
        return
    is_noted = spends.is_noted(spend, inclusion)
    if not is_noted:
        with transaction():
            spend_tracking.note_mined(ctx.catalogue, spend.id, inclusion)
    reached("watch.mined")
    if not _is_believed(ctx, spend, fate) or not refusals.is_traced(ctx, network, spend.id):
        return
    if not is_noted or spend_tracking.is_ripe(ctx.catalogue, spend):
        _ripen(ctx, spend)
    reached("watch.ripe")


def _knows_less(spend: SpendRow, inclusion: Inclusion) -> bool:
    """Return True if a look at the same transaction does not show the end of an output that an earlier one showed."""
    pairs = zip(spend.outputs, inclusion.outputs, strict=True)
    return spend.mined_txid == inclusion.txid and any(
        output.effect is not None and moved.effect is None for output, moved in pairs
    )


def _ripen(ctx: Context, spend: SpendRow) -> None:
    """End the ripe outputs of a spend, each in its own transaction."""
    for _ in spend.outputs:
        with transaction():
            after = spend_tracking.ripen(ctx.catalogue, spend.id)
            reached("watch.ended")
        if after is None:
            return


def _inclusion(fate: Fate) -> Inclusion:
    return Inclusion(
        txid=fate.txid,
        height=fate.height,
        block_hash=fate.block_hash,
        outputs=tuple(
            Moved(
                output.effect,
                output.left_units if output.effect == "other" else None,
                output.arrived_units if output.effect == "other" else None,
                problem=output.problem,
            )
            for output in fate.outputs
        ),
        fee_units=fate.fee_units,
        movements=tuple(Movement(each.address, each.currency, each.units) for each in fate.movements),
    )


def _is_believed(ctx: Context, spend: SpendRow, fate: Fate) -> bool:
    """Return whether a spend may end by its fate. One provider alone never confirms a large payout."""
    if spend.purpose != "payout" or spend.state == "confirmed":
        return True
    is_believed = fate.is_witnessed or not _is_large(ctx, spend)
    if spend.state == "failed":
        return is_believed
    pairs = zip(spend.outputs, fate.outputs, strict=True)
    waiting = [
        (each.payout_id, output) for each, output in pairs if each.payout_id is not None and each.state == "open"
    ]
    for payout_id, output in waiting:
        if not is_believed:
            log.warning("payout.awaits_witness", payout=str(payout_id), network=spend.network)
            payout_queue.explain(payout_id, reason=ALONE)
        elif output.effect == "exact":
            payout_queue.explain(payout_id, reason="")
    return is_believed


def _is_large(ctx: Context, spend: SpendRow) -> bool:
    """Return whether a spend is worth as much as a deposit that needs witnesses; True without a rate."""
    units = rescale_down(spend.token_units, spend.decimals, ctx.catalogue.scale(spend.currency))
    try:
        cents = limits.usd_cents(ctx.catalogue, limits.market(ctx), spend.currency, units)
    except limits.NoRateError:
        return True
    return cents >= ctx.settings.quorum_usd * CENTS


def _dead(ctx: Context, spend: SpendRow, attempts: list[AttemptRow], cause: Cause) -> None:
    if spend.mined_txid is not None:
        # A spend that was seen in a block is given up only after another look, which asks the chain again.
        with transaction():
            if not spend_tracking.is_seen_alive(spend):
                spend_tracking.note_taken_out(ctx.catalogue, spend.id)
        return
    with transaction():
        spend_tracking.bury(ctx.catalogue, spend.id, attempts=len(attempts), cause=cause)
    reached("watch.buried")


def _waiting(ctx: Context, network: Network, spender: Spender, spend: SpendRow, attempts: list[AttemptRow]) -> None:
    if spend.mined_txid is not None:
        with transaction():
            spend_tracking.note_taken_out(ctx.catalogue, spend.id)
        reached("watch.taken_out")
        give(ctx, network, spend, attempts)
        return
    if spend.state == "failed" and not attempts[0].is_void:
        _bump(ctx, network, spender, spend, attempts)
        return
    resend_s = max(RESEND_MIN_S, min(RESEND_MAX_S, RESEND_BLOCKS * network.block_time_ms // 1000))
    silent_s = attempts[0].seconds_silent
    # A time in the future was written before the clock was set back.
    if silent_s is None or not -FUTURE_MAX_S <= silent_s < resend_s:
        give(ctx, network, spend, attempts)
    if spend.is_waiting and spend_reads.is_stuck(spend, patience_s=_patience_s(network)):
        _unstick(ctx, network, spender, spend, attempts)


def _patience_s(network: Network) -> int:
    return max(PATIENCE_MIN_S, traits_of(network).patience_blocks * network.block_time_ms // 1000)


def _unstick(ctx: Context, network: Network, spender: Spender, spend: SpendRow, attempts: list[AttemptRow]) -> None:
    """Offer more for a stuck spend, or fill the slots before it that the chain has lost."""
    counter = counting(network, spender)
    if counter is None or spend.slot is None:
        _bump(ctx, network, spender, spend, attempts)
        return
    before = range(counter.next_counter(spend.sender, ours=spend.slot), spend.slot)
    settled = spends.settled_in(network.code, spend.sender, before)
    for spend_id in settled.values():
        _reopen(spend_id)
    lost = list(takewhile(lambda slot: slot in settled or spend_reads.is_gap(network.code, spend.sender, slot), before))
    for slot in lost:
        if slot not in settled:
            _fill(ctx, network, spend, slot)
    # If only settled spends seem lost, the node lags: they are in their blocks, and the price is the cause.
    if set(lost) <= settled.keys():
        _bump(ctx, network, spender, spend, attempts)


def _fill(ctx: Context, network: Network, spend: SpendRow, slot: int) -> None:
    """Fill an unused slot with an empty transfer to ourselves, so that the spends behind it can proceed."""
    intent = nothing_of(spend)
    log.warning("spend.slot_filled", spend=str(spend.id), network=network.code, slot=slot)
    start(ctx, network, purpose="filler", intent=intent, slot=slot)


def _bump(ctx: Context, network: Network, spender: Spender, spend: SpendRow, attempts: list[AttemptRow]) -> None:
    """Sign another attempt with the same claim at a higher price: the chain includes one of them at most.

    No attempt is added once the price reaches the cap or the family has no higher one. An attempt that the sender could
    not pay for is not signed: no node would take it. For a failed spend, the attempt is an empty transfer to ourselves.
    """
    before, is_void = replaced(network, spender, spend, attempts), spend.state == "failed"
    if before is None:
        return
    cap_units = registry.fee_cap_units(network, ctx.settings)
    try:
        draft = spender.dearer(before.draft, before.purse, cap_units=cap_units)
    except FeeTooHighError as error:
        log.warning("spend.stuck_at_cap", spend=str(spend.id), error=str(error))
        return
    except UnderfundedError as error:
        _unfunded(ctx, network, spend, error.offer, error.missing_units)
        return
    if draft is None:
        return
    further = _further(before.draft, draft) - before.outpoints
    reached("watch.priced")
    with transaction():
        hooks = hooks_of(spend.purpose)
        locked = spends.lock(spend.id)
        if hooks is None or locked is None or not _is_as_asked(locked, attempts) or not hooks.may_send(locked):
            return
        attempt = sign(network, spender, draft, counter=spend.slot)
        if further and not held_coins.hold(spend.id, further, number=len(attempts)):
            # Another spend claimed a coin first, or a block has spent one: the next step uses the coins free then.
            return
        if not spends.add_attempt(new_attempt(spend, attempt, draft, number=len(attempts), is_void=is_void)):
            raise LookupError(f"the last attempt of spend {spend.id} vanished while it was locked")
        spend_tracking.note_bumped(ctx.catalogue, spend.id)
        reached("watch.bump_signed")
    reached("watch.bumped")
    log.info("spend.bumped", spend=str(spend.id), network=network.code, txid=attempt.txid, attempt=len(attempts))
    give(ctx, network, spend, spends.attempts_of(spend.id)[:1])


def _is_as_asked(locked: SpendRow, attempts: list[AttemptRow]) -> bool:
    """Return whether a spend still waits with the attempts that it had when a higher offer was asked for."""
    return locked.is_waiting and locked.attempts == len(attempts)


def _further(before: Draft, draft: Draft) -> frozenset[tuple[str, int]]:
    """Return the coins that a dearer draft claims besides those of the attempt before.

    Raises ValueError if it does not claim all of these: transactions exclude each other only by a common coin.
    """
    if not isinstance(before.claim, Coins) or not isinstance(draft.claim, Coins):
        return frozenset()
    kept, claimed = frozenset(before.claim.outpoints), frozenset(draft.claim.outpoints)
    if not kept <= claimed:
        raise ValueError("a higher offer claims less than the one before")
    return claimed - kept


def _unfunded(ctx: Context, network: Network, spend: SpendRow, offer: Offer, missing_units: int) -> None:
    """Report a stuck spend that its sender cannot pay for.

    A deposit address is sent what the fee lacks, never any of the moved amount.
    """
    log.error(
        "spend.stuck_without_gas",
        spend=str(spend.id), network=network.code, sender=spend.sender, missing_units=missing_units,
    )  # fmt: skip
    if spend.payer or not traits_of(network).funds_addresses:
        # No single address pays for it: the spend waits until coins are free.
        return
    if freezes.is_network_frozen(network.code) or spend_reads.is_awaiting_gas(network.code, spend.sender):
        return
    treasurer = registry.treasurer(network, ctx.settings)
    step = treasurer.relief(wallet_of(spend), hot_wallet(network), offer=offer, missing_units=missing_units)
    if not isinstance(step, Fund):
        return
    try:
        fund(ctx, network, step)
    except InsufficientCoinError as error:
        log.warning("funding.hot_wallet_short", network=network.code, reason=str(error))
