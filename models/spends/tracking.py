"""Applies the chain's answers to spends: states, gas, losses, and the hooks of each purpose.

Each function makes one change in the caller's transaction, and is safe to run twice. Called by actors.signer.follow_up.
Locks: the spend first, then the rows that its hooks lock (invoice, payout, debt, balances).
"""

from __future__ import annotations

from typing import Final, Literal
from uuid import UUID

import structlog

from core.catalogue.catalogue import Catalogue, Network
from models.deposits.cursors import BLOCKS_SETTLED
from models.payouts import freezes
from models.spends import bookings, held_coins, movements, outputs, seen, signing_stops, unexplained
from models.spends import reads as spend_reads
from models.spends import rows as spends
from models.spends.hooks import Hooks, hooks_of
from models.spends.outputs import Ending, OutputRow
from models.spends.rows import Inclusion, SpendRow

log = structlog.get_logger()

# Past maturity no block should leave a chain. If one does, the signer sends the same bytes again. That costs nothing,
# while a sweep lost unseen leaves the hot wallet with less than the books show.
WATCHED_ON_BLOCKS: Final = 32
Cause = Literal["expired", "claim_used"]
# An attempt's last error if nodes call its claim used.
CLAIM_USED: Final = "claim_used"
# The final `problem` of a confirmed spend that can never be included again.
LOST: Final = "a reorg took it, and another transaction used its slot"
EXPIRED: Final = "a reorg took it, and it expired"

# The final `problem` of a failed spend whose slot a void attempt used up.
VOIDED: Final = "a reorg took it, and its slot was used up by nothing"
CONTRADICTED: Final = "nodes call a transaction dead that the scan has seen in a block: ask nodes with a whole history"
COIN_USED: Final = "nodes call a coin spent that no scanned block spends: the rows may have gone back"
UNSEEN: Final = "a slot was used by a transaction that no scan has shown: sluice rescan finds it"


def note_sent(catalogue: Catalogue, spend_id: UUID) -> None:
    """Note that a node took a spend's bytes."""
    spend = spends.lock(spend_id)
    if spend is not None and spends.mark_sent(spend_id):
        _hooks(spend).on_sent(catalogue, _reread(spend_id))


def note_mined(catalogue: Catalogue, spend_id: UUID, inclusion: Inclusion) -> None:
    """Record the block that now includes a spend, and what the spend did there."""
    spend = spends.lock(spend_id)
    if spend is None or not spends.mark_mined(spend, inclusion):
        return
    after = _reread(spend_id)
    movements.note(catalogue, after, inclusion.movements)
    if spend.state == "confirmed":
        log.critical("spend.confirmed_changed_block", **_names(after), txid=inclusion.txid, height=inclusion.height)
    if any(each.state == "failed" and each.effect != "none" for each in after.outputs):
        log.critical("spend.failed_took_effect", **_names(after), txid=inclusion.txid, height=inclusion.height)
    if any(each.effect == "other" for each in inclusion.outputs):
        _stop_coin(after)
    _hooks(after).on_mined(catalogue, after)


def note_taken_out(catalogue: Catalogue, spend_id: UUID) -> None:
    """Record that a spend is no longer in a block."""
    spend = spends.lock(spend_id)
    if spend is None or not spends.take_out(spend_id):
        return
    after = _reread(spend_id)
    if spend.state == "confirmed":
        log.critical("spend.confirmed_left_chain", **_names(spend), txid=spend.mined_txid)
    elif spend.state == "failed":
        log.critical("spend.failed_left_chain", **_names(spend), txid=spend.mined_txid)
    else:
        log.warning("spend.left_chain", **_names(spend), txid=spend.mined_txid)
    _hooks(after).on_taken_out(catalogue, after)


def reopen(spend_id: UUID) -> None:
    """Follow a settled spend again, because its block left the chain or its slot is empty.

    The signer sends a confirmed spend again. For a failed one it only uses up the slot, since the amount was returned.
    """
    spend = spends.lock(spend_id)
    if spend is not None and spends.reopen(spend_id):
        log.critical("spend.settled_left_chain", **_names(spend), state=spend.state, txid=spend.mined_txid)


def ripen(catalogue: Catalogue, spend_id: UUID) -> SpendRow | None:
    """End one output of a spend deep enough in scanned blocks, or settle the spend.

    Return the changed spend, None if nothing changed. An exact effect counts at the network's confirmations; a missing
    or another effect at maturity, since the held amount is then returned and no reorg may make the transfer succeed
    after all. If one does, that effect counts like any other. An output stays open while an operator has to decide
    about it and while nothing may be returned. One output per call: each may lock an invoice and balances, which other
    processes lock in another order.
    """
    spend = spends.lock(spend_id)
    ripe = None if spend is None else _ripe(catalogue, spend)
    if spend is None or ripe is None:
        return None
    return _settle(catalogue, spend) if ripe == "settled" else _end(catalogue, spend, *ripe)


def is_ripe(catalogue: Catalogue, spend: SpendRow) -> bool:
    """Return True if ripen() would change this spend, as it was read.

    Saves a lock: the watch checks a spend with every block, and mostly has nothing to do. ripen() checks again under
    its own lock.
    """
    return _ripe(catalogue, spend) is not None


def _ripe(catalogue: Catalogue, spend: SpendRow) -> tuple[OutputRow, Ending] | Literal["settled"] | None:
    """Return the next output to end with its ending, or "settled"; None if the spend has to wait."""
    if spend.mined_height is None or spend.mined_hash is None or spend.settled_at is not None:
        return None
    network, depth = catalogue.networks[spend.network], _depth(spend)
    if spend.state in {"confirmed", "failed"}:
        if any(output.effect is None for output in spend.outputs):
            return None
        return "settled" if depth >= _settled_depth(network, spend) else None
    for output in spend.outputs if spend.state == "mined" else ():
        ending = _ending(network, spend, output, depth)
        if ending is not None:
            return output, ending
    return None


def _ending(network: Network, spend: SpendRow, output: OutputRow, depth: int) -> Ending | None:
    """Return the ending of an output at this depth; None while it stays open, or is on its way to its recipient."""
    if output.state != "open" or output.effect is None:
        return None
    if output.effect == "exact":
        return "confirmed" if depth >= network.confirmations else None
    if depth < network.maturity:
        return None
    if output.effect == "none":
        return "failed" if _hooks(spend).may_fail(spend) else None
    # An output without a payout was adopted together with one that has a payout. It is lost, whatever it moved.
    is_by_hand = _hooks(spend).is_settled_by_hand and output.payout_id is not None
    return None if is_by_hand else "confirmed"


def _settled_depth(network: Network, spend: SpendRow) -> int:
    """Return the depth from which an ended spend is no longer watched.

    For a failed one that paid after all this is earlier, so that its merchant is charged early.
    """
    if spend.state == "confirmed":
        return network.maturity + WATCHED_ON_BLOCKS
    return network.confirmations if spend.is_success else network.maturity


def settle_by_hand(catalogue: Catalogue, spend_id: UUID, place: int, *, is_paid: bool) -> SpendRow | None:
    """End an output that moved another amount, as an operator decides, and book the loss.

    Return the changed spend; None if the output does not wait for an operator or is less deep than maturity. The caller
    ends the payout.
    """
    spend = spends.lock(spend_id)
    if spend is None or spend.state != "mined" or spend.mined_height is None:
        return None
    output = next((each for each in spend.outputs if each.place == place), None)
    if output is None or (output.state, output.effect) != ("open", "other"):
        return None
    if _depth(spend) < catalogue.networks[spend.network].maturity:
        return None
    return _finish(
        catalogue, spend, output, "confirmed" if is_paid else "failed", owed_units=output.token_units * is_paid
    )


def bury(catalogue: Catalogue, spend_id: UUID, *, attempts: int, cause: Cause = "claim_used") -> SpendRow | None:
    """End a spend that can never be included: it expired, or another transaction used its claim.

    Return the changed spend, None if nothing changed. attempts: the number of attempts that the chain was asked about;
    if another was made meanwhile, nothing changes.
    The spend's purpose may then be served by a new spend. Confirmed outputs stay confirmed, without a block: merchants
    were already notified of them, and an operator has to look.
    """
    spend = spends.lock(spend_id)
    if spend is None or not spend.is_waiting or spend.attempts != attempts or is_seen_alive(spend):
        return None
    if cause == "claim_used" and not _is_lost_to_another(spend):
        return None
    if cause == "expired":
        if not spends.are_all_over(spend.id, depth=_end_depth(catalogue, spend)):
            # The scan has not passed the end of its window yet and may still find it.
            return None
        log.info("spend.expired", **_names(spend))
    return _bury(catalogue, spend, cause)


def _end_depth(catalogue: Catalogue, spend: SpendRow) -> int:
    """Return the depth of the block that has to be past a spend's end: no reorg may bring back a slot's time."""
    return 1 if spend.slot is None else catalogue.networks[spend.network].maturity


def is_seen_alive(spend: SpendRow) -> bool:
    """Return True if a scanned block includes a spend that nodes call dead.

    Stop its network then, in the caller's transaction: those nodes have forgotten the spend, and may have forgotten
    others.
    """
    block = seen.block_of(spend.id)
    if block is None:
        return False
    if signing_stops.stop(spend.network, reason=CONTRADICTED, sender=""):
        log.critical("spend.death_contradicted", **_names(spend), txid=block.txid, height=block.height)
    return True


def doubt_coins(spend_id: UUID, number: int, *, is_first: bool) -> bool:
    """Stop a network whose nodes call an attempt's coins spent, if no scanned block spends them.

    is_first: no node was given any attempt of this spend before, so none of our transactions can have spent the coins.
    Otherwise the scan has to have reached the head since an earlier refusal, so that blocks made meanwhile are known.
    Return True if the network is stopped. Call before the refusal is noted.
    """
    spend = spends.lock(spend_id)
    if spend is None or not spend.is_waiting or not held_coins.are_all_unspent(spend_id, number):
        return False
    if not is_first and not spends.is_refused_since(spend_id, number, error=CLAIM_USED):
        return False
    if signing_stops.stop(spend.network, reason=COIN_USED, sender=""):
        log.critical("spend.coin_used_unseen", **_names(spend))
    return True


def _is_lost_to_another(spend: SpendRow) -> bool:
    """Return True if another transaction used a spend's claim for good.

    For a slot, only once the scan has shown the transaction that used it.
    """
    if spend.slot is None:
        return _is_robbed(spend)
    user = unexplained.user_of_slot(spend)
    if user is None:
        # Only our key can have signed the transaction in this slot. Until the scan shows it, it may be one that paid
        # for this spend.
        if signing_stops.stop(spend.network, reason=UNSEEN, sender=spend.sender):
            log.critical("spend.slot_used_unseen", **_names(spend))
        return False
    if unexplained.may_be(user, spend):
        # The same transfer: it becomes an attempt of this spend (models.recovery.adoption).
        return False
    if spend.state not in {"confirmed", "failed"}:
        log.error("spend.slot_lost", **_names(spend), txid=user.txid)
    return True


def _is_robbed(spend: SpendRow) -> bool:
    """Return True if other transactions took coins of a spend; False until all of those are known."""
    for txid in held_coins.taken_from(spend.id):
        user = unexplained.find(spend.network, txid)
        if user is None and not spends.is_attempt(spend.network, txid):
            return False
        if user is not None and user.is_open and unexplained.may_be(user, spend):
            return False
    # Who else has this key?
    log.critical("spend.claim_used_by_other", **_names(spend), state=spend.state)
    return True


def _bury(catalogue: Catalogue, spend: SpendRow, cause: Cause) -> SpendRow:
    """End the open outputs of a spend that can never be included, and reverse the bookings of its other outputs."""
    held_coins.release(spend.id)
    gone = [output for output in spend.outputs if output.state == "open"]
    for output in gone:
        outputs.end(output, "dead")
    after = _reread(spend.id)
    if spend.state not in {"confirmed", "failed"}:
        after = _close(after, booked_fee_units=0)
    if after.state != "dead":
        # Bookings of outputs that had ended before are reversed as after a reorg.
        spends.reopen(spend.id)
        after = _lose(catalogue, _reread(spend.id), cause)
    for output in after.outputs:
        if output.place in {each.place for each in gone}:
            _hooks(after).on_dead(catalogue, after, output)
    if cause == "expired":
        spends.give_back_slot(spend)
    return after


def note_bumped(catalogue: Catalogue, spend_id: UUID) -> None:
    """Run a spend's hooks for another attempt, in the transaction that writes the attempt."""
    after = _reread(spend_id)
    _hooks(after).on_bumped(catalogue, after)


def _depth(spend: SpendRow) -> int:
    """Return the depth of an included spend: the number of scanned blocks from its own on."""
    depth = spend_reads.depth(
        spend.network,
        height=spend.mined_height or 0,
        block_hash=spend.mined_hash or "",
        settled_blocks=BLOCKS_SETTLED,
    )
    # While a provider is the only one, it may name an old block, which would be deep at once. Except after a reorg, a
    # spend cannot be in a block that was scanned before it was signed.
    return min(depth, depth + (spend.mined_height or 0) - 1 - (spend.signed_height or 0))


def _end(catalogue: Catalogue, spend: SpendRow, output: OutputRow, ending: Ending) -> SpendRow:
    after = _finish(catalogue, spend, output, ending, owed_units=bookings.owed_units(spend, output))
    hooks = _hooks(after)
    (hooks.on_confirmed if ending == "confirmed" else hooks.on_failed)(catalogue, after, after.outputs[output.place])
    return after


def _finish(catalogue: Catalogue, spend: SpendRow, output: OutputRow, ending: Ending, *, owed_units: int) -> SpendRow:
    """End an output and book its loss; with the last one, end the spend and book its gas."""
    lost = bookings.lost_units(catalogue, spend, output, owed=owed_units)
    if not outputs.end(output, ending, lost_units=lost):
        raise LookupError(f"output {output.place} of spend {spend.id} vanished while it was locked")
    bookings.book_loss(spend, f"spend:{spend.id}:loss{f':{output.place}' if output.place else ''}", lost)
    after = _reread(spend.id)
    if any(each.state == "open" for each in after.outputs):
        return after
    fee = bookings.ledger_fee(catalogue, spend)
    bookings.book_gas(catalogue, spend, f"spend:{spend.id}:gas", fee)
    return _close(after, booked_fee_units=fee)


def _close(spend: SpendRow, *, booked_fee_units: int) -> SpendRow:
    """End a spend whose outputs have all ended.

    Confirmed if any output was confirmed, else failed if any failed, else dead.
    """
    states = {output.state for output in spend.outputs}
    ending: Ending = "confirmed" if "confirmed" in states else "failed" if "failed" in states else "dead"
    return _reread(spend.id, is_changed=spends.finish(spend, ending, booked_fee_units=booked_fee_units))


def _settle(catalogue: Catalogue, spend: SpendRow) -> SpendRow:
    """Correct the bookings of an ended spend: after a reorg another attempt may be included, at another price."""
    fee = bookings.ledger_fee(catalogue, spend)
    for output in spend.outputs:
        owed = bookings.owed_units(spend, output)
        outputs.note_lost(output, bookings.lost_units(catalogue, spend, output, owed=owed))
    after = _reread(spend.id, is_changed=spends.settle(spend.id, booked_fee_units=fee))
    if spend.slot is None:
        held_coins.release_unspent(spend.id)
    bookings.book_gas(catalogue, spend, f"spend:{spend.id}:gas-{_settled(spend)}", fee - spend.booked_fee_units)
    bookings.book_loss(spend, f"spend:{spend.id}:loss-{_settled(spend)}", after.lost_units - spend.lost_units)
    for output in after.outputs:
        if output.state == "failed":
            _hooks(after).on_failed_anew(catalogue, after, output)
        elif output.state == "confirmed" and output.effect == "none":
            log.critical("spend.confirmed_lost_effect", **_names(spend), txid=spend.mined_txid, place=output.place)
            _hooks(after).on_undone(catalogue, after, output)
    return after


def _settled(spend: SpendRow) -> str:
    """Return the ledger reference of this settlement, unique per reopening."""
    return f"settled:{spend.reopened}" if spend.reopened else "settled"


def _lose(catalogue: Catalogue, spend: SpendRow, cause: Cause) -> SpendRow:
    """Reverse the gas and the losses of an ended spend that no block will ever include: the chain took nothing."""
    ended = [output for output in spend.outputs if output.state != "dead"]
    problem = LOST if cause == "claim_used" else EXPIRED
    for output in ended:
        outputs.note_lost(output, 0, problem=problem)
    after = _reread(spend.id, is_changed=spends.settle(spend.id, booked_fee_units=0, problem=problem))
    bookings.book_gas(catalogue, spend, f"spend:{spend.id}:gas-{_settled(spend)}", -spend.booked_fee_units)
    bookings.book_loss(spend, f"spend:{spend.id}:loss-{_settled(spend)}", -spend.lost_units)
    if cause == "claim_used":
        # Who else has this key?
        log.critical("spend.slot_used_by_other", **_names(spend), state=spend.state)
    else:
        log.critical("spend.ended_expired", **_names(spend), state=spend.state)
    hooks = _hooks(after)
    for output in ended:
        (hooks.on_failed_anew if output.state == "failed" else hooks.on_undone)(
            catalogue, after, after.outputs[output.place]
        )
    return after


def _stop_coin(spend: SpendRow) -> None:
    """Freeze the payouts of a coin on a network, because a transfer moved another amount. An operator has to look."""
    detail = (
        f"{spend.currency} on {spend.network}: of {spend.token_units} units that a {spend.purpose} was to move,"
        f" {spend.left_units} left and {spend.arrived_units} arrived by transaction {spend.mined_txid}"
    )
    freezes.freeze("coin", freezes.coin(spend.currency, spend.network), reason=detail, frozen_by=freezes.SIGNER)
    log.critical("spend.moved_otherwise", **_names(spend), detail=detail)


def _hooks(spend: SpendRow) -> Hooks:
    hooks = hooks_of(spend.purpose)
    if hooks is None:
        raise LookupError(f"nobody knows here what a {spend.purpose} is for")
    return hooks


def _reread(spend_id: UUID, *, is_changed: bool = True) -> SpendRow:
    """Return a locked spend after its change.

    Raises LookupError if nothing changed: the spend was locked when read, so no other process can have changed it.
    """
    spend = spends.find(spend_id)
    if spend is None or not is_changed:
        raise LookupError(f"spend {spend_id} vanished while it was locked")
    return spend


def _names(spend: SpendRow) -> dict[str, object]:
    return {
        "spend": str(spend.id), "network": spend.network, "purpose": spend.purpose, "sender": spend.sender,
        "slot": spend.slot,
    }  # fmt: skip
