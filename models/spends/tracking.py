"""Moves a spend on by what its chain tells, with the gas that was taken and with what hangs on it.

Each function is one change in the caller's transaction; a change that was made before is none. Called by
actors.signer.watch. Locks: the spend first, then whatever its hooks lock (invoice, payout, debt, balances).
"""

from __future__ import annotations

from typing import Final, Literal
from uuid import UUID

import structlog

from core.catalogue.catalogue import Catalogue, Network
from core.money import rescale_down
from models.deposits.cursors import BLOCKS_SETTLED
from models.ledger import ledger
from models.ledger.ledger import CUSTODY, EQUITY, GAS, GATEWAY, Account, Transfer
from models.payouts import freezes
from models.spends import reads as spend_reads
from models.spends import rows as spends
from models.spends import signing
from models.spends import unknown as unknown_spends
from models.spends.hooks import Hooks, hooks_of
from models.spends.rows import Inclusion, SpendRow

log = structlog.get_logger()

# Past maturity no block should leave a chain. Where one does, the same bytes are sent again: that costs nothing, while
# a sweep that is lost unseen leaves the hot wallet short of what the books say.
WATCHED_ON_BLOCKS: Final = 32
# What a confirmed spend says for good whose slot another transaction has after all.
LOST: Final = "a reorg took it, and another transaction used its slot"


# What used up the slot of a failed spend says for good.
VOIDED: Final = "a reorg took it, and its slot was used up by nothing"
UNSEEN: Final = "a slot was used by a transaction that no scan has shown: sluice rescan finds it"


def note_sent(catalogue: Catalogue, spend_id: UUID) -> None:
    """Note that a node took a spend's bytes."""
    spend = spends.lock(spend_id)
    if spend is not None and spends.mark_sent(spend_id):
        _hooks(spend).on_sent(catalogue, _reread(spend_id))


def note_mined(catalogue: Catalogue, spend_id: UUID, found: Inclusion) -> None:
    """Note the block that a spend stands in now."""
    spend = spends.lock(spend_id)
    if spend is None or not spends.mark_mined(spend, found):
        return
    after = _reread(spend_id)
    if spend.state == "confirmed":
        log.critical("spend.confirmed_changed_block", **_names(after), txid=found.txid, height=found.height)
    if spend.state == "failed" and found.effect != "none":
        log.critical("spend.failed_took_effect", **_names(after), txid=found.txid, height=found.height)
    if found.effect == "other":
        _stop_coin(after)
    _hooks(after).on_mined(catalogue, after)


def note_taken_out(catalogue: Catalogue, spend_id: UUID) -> None:
    """Note that a spend is in no block any more."""
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
    """Follow a settled spend again, as its block left the chain or its slot is empty.

    A confirmed one is sent again. Of a failed one only that its slot is used up: what it moves was given back.
    """
    spend = spends.lock(spend_id)
    if spend is not None and spends.reopen(spend_id):
        log.critical("spend.settled_left_chain", **_names(spend), state=spend.state, txid=spend.mined_txid)


def ripen(catalogue: Catalogue, spend_id: UUID) -> SpendRow | None:
    """End a spend that lies deep enough in what was scanned; None if nothing changed.

    Its effect counts at the network's confirmations. That it has none, or another one, counts at maturity: what was
    held is given back then, and no reorg may make the transfer succeed after all; where one does, it counts like any
    effect. Where that waits for somebody who says what it means, and while nothing may be given back, the spend stays
    as it is.
    """
    spend = spends.lock(spend_id)
    if spend is None or spend.mined_height is None or spend.mined_hash is None or spend.settled_at is not None:
        return None
    network, depth = catalogue.networks[spend.network], _depth(spend)
    if spend.state in {"confirmed", "failed"}:
        return _settle(catalogue, spend) if depth >= _settled_depth(network, spend) else None
    if spend.state == "mined" and spend.is_success and depth >= network.confirmations:
        return _end(catalogue, spend, is_success=True)
    if spend.state == "mined" and spend.effect == "none" and depth >= network.maturity:
        return _end(catalogue, spend, is_success=False) if _hooks(spend).may_fail(spend) else None
    if spend.state == "mined" and spend.effect == "other" and depth >= network.maturity:
        return None if _hooks(spend).is_settled_by_hand else _end(catalogue, spend, is_success=True)
    return None


def _settled_depth(network: Network, spend: SpendRow) -> int:
    """Return how deep a spend that ended lies when it is watched no more; what a failed one paid is charged early."""
    if spend.state == "confirmed":
        return network.maturity + WATCHED_ON_BLOCKS
    return network.confirmations if spend.is_success else network.maturity


def settle_by_hand(catalogue: Catalogue, spend_id: UUID, *, is_paid: bool) -> SpendRow | None:
    """End a payout's spend that moved something else, as somebody says; book gas and loss.

    None unless it waits for that, as deep as failures count. What hangs on it is for the caller to end.
    """
    spend = spends.lock(spend_id)
    if spend is None or spend.state != "mined" or spend.effect != "other" or spend.mined_height is None:
        return None
    if _depth(spend) < catalogue.networks[spend.network].maturity:
        return None
    return _finish(catalogue, spend, "confirmed" if is_paid else "failed", owed_units=spend.token_units * is_paid)


def bury(catalogue: Catalogue, spend_id: UUID, *, attempts: int) -> SpendRow | None:
    """End a spend whose slot another transaction used for good; None if nothing changed.

    attempts: of how many of them the chain was asked; of one that was made meanwhile it said nothing.
    Nothing of it can ever be included, so that whatever it was made for may be done anew. One that was confirmed stays
    so, without a block: what was told of it cannot be taken back, and an operator has to look.
    """
    spend = spends.lock(spend_id)
    if spend is None or not spend.is_waiting or spend.attempts != attempts:
        return None
    user = unknown_spends.user_of_slot(spend)
    if user is None:
        # Only our key can have signed what has the slot. Until the scan shows it, it may be what paid for this.
        if signing.stop(spend.network, reason=UNSEEN, sender=spend.sender):
            log.critical("spend.slot_used_unseen", **_names(spend))
        return None
    if (user.recipient, user.contract, user.token_units) == (spend.recipient, spend.contract, spend.token_units):
        # The same transfer: it becomes an attempt of this spend (models.treasury.adoption).
        return None
    if spend.state in {"confirmed", "failed"}:
        return _lose(catalogue, spend)
    after = _reread(spend_id, is_changed=spends.finish(spend, "dead", booked_fee_units=0))
    log.error("spend.slot_lost", **_names(spend), txid=user.txid)
    _hooks(after).on_dead(catalogue, after)
    return after


def note_bumped(catalogue: Catalogue, spend_id: UUID) -> None:
    """Run a spend's hooks for another attempt, in the transaction that writes the attempt."""
    after = _reread(spend_id)
    _hooks(after).on_bumped(catalogue, after)


def _depth(spend: SpendRow) -> int:
    """Return how deep a spend that is in a block lies in what was scanned."""
    depth = spend_reads.depth(
        spend.network,
        height=spend.mined_height or 0,
        block_hash=spend.mined_hash or "",
        settled_blocks=BLOCKS_SETTLED,
    )
    # A provider that is alone for a moment may name an old block, which is deep at once.
    return min(depth, spend_reads.scanned_since(spend.id))


def _end(catalogue: Catalogue, spend: SpendRow, *, is_success: bool) -> SpendRow:
    after = _finish(catalogue, spend, "confirmed" if is_success else "failed", owed_units=_owed_units(spend))
    hooks = _hooks(after)
    (hooks.on_confirmed if is_success else hooks.on_failed)(catalogue, after)
    return after


def _finish(
    catalogue: Catalogue, spend: SpendRow, state: Literal["confirmed", "failed"], *, owed_units: int
) -> SpendRow:
    fee, lost = _ledger_fee(catalogue, spend), _lost_units(catalogue, spend, owed_units)
    after = _reread(spend.id, is_changed=spends.finish(spend, state, booked_fee_units=fee, lost_units=lost))
    _book_gas(catalogue, spend, f"spend:{spend.id}:gas", fee)
    _book_loss(spend, f"spend:{spend.id}:loss", lost)
    return after


def _settle(catalogue: Catalogue, spend: SpendRow) -> SpendRow:
    """Close the books of a spend that ended: a reorg may have let another attempt win, at another price."""
    fee, lost = _ledger_fee(catalogue, spend), _lost_units(catalogue, spend, _owed_units(spend))
    after = _reread(spend.id, is_changed=spends.settle(spend.id, booked_fee_units=fee, lost_units=lost))
    _book_gas(catalogue, spend, f"spend:{spend.id}:gas-{_settled(spend)}", fee - spend.booked_fee_units)
    _book_loss(spend, f"spend:{spend.id}:loss-{_settled(spend)}", lost - spend.lost_units)
    if spend.state == "failed":
        _hooks(after).on_failed_anew(catalogue, after)
    elif spend.effect == "none":
        log.critical("spend.confirmed_lost_effect", **_names(spend), txid=spend.mined_txid)
        _hooks(after).on_undone(catalogue, after)
    return after


def _settled(spend: SpendRow) -> str:
    """Return how what is booked when a spend is settled is named: each time in another way."""
    return f"settled:{spend.reopened}" if spend.reopened else "settled"


def _lose(catalogue: Catalogue, spend: SpendRow) -> SpendRow:
    """Close the books of a spend that ended, is in no block and never will be: the chain took nothing for it."""
    after = _reread(spend.id, is_changed=spends.settle(spend.id, booked_fee_units=0, problem=LOST))
    _book_gas(catalogue, spend, f"spend:{spend.id}:gas-{_settled(spend)}", -spend.booked_fee_units)
    _book_loss(spend, f"spend:{spend.id}:loss-{_settled(spend)}", -spend.lost_units)
    # Who else has this key?
    log.critical("spend.slot_used_by_other", **_names(spend), state=spend.state)
    hooks = _hooks(after)
    (hooks.on_failed_anew if spend.state == "failed" else hooks.on_undone)(catalogue, after)
    return after


def _owed_units(spend: SpendRow) -> int:
    """Return what of a coin left custody by a spend that took effect, as the books of whatever it was made for say.

    In token units: a payout takes what was to arrive, one that failed nothing; between our own addresses only what did
    not arrive has left.
    """
    if spend.purpose == "payout":
        return 0 if spend.state == "failed" else spend.token_units
    return spend.arrived_units or 0


def _lost_units(catalogue: Catalogue, spend: SpendRow, owed_units: int) -> int:
    """Return what left beyond that, in the ledger's units; less than 0 if less did. Of another effect, or lost."""
    if spend.purpose == "lost":
        lost = _given_up(spend)
    elif spend.effect == "other":
        lost = (spend.left_units or 0) - owed_units
    elif spend.effect == "exact" and spend.purpose == "payout":
        lost = spend.token_units - owed_units
    else:
        return 0
    units = rescale_down(abs(lost), spend.decimals, catalogue.scale(spend.currency))
    return units if lost >= 0 else -units


def _given_up(spend: SpendRow) -> int:
    """Return what left our addresses by a transaction that was written off, in token units."""
    if spend.sender == spend.recipient:
        return 0
    return spend.token_units if spend.effect == "exact" else spend.left_units or 0


def _stop_coin(spend: SpendRow) -> None:
    """Freeze the payouts of a coin on a network: it does not move as it is told to. An operator has to look."""
    detail = (
        f"{spend.currency} on {spend.network}: of {spend.token_units} units that a {spend.purpose} was to move,"
        f" {spend.left_units} left and {spend.arrived_units} arrived by transaction {spend.mined_txid}"
    )
    freezes.freeze("coin", freezes.coin(spend.currency, spend.network), reason=detail, frozen_by=freezes.SIGNER)
    log.critical("spend.moved_otherwise", **_names(spend), detail=detail)


def _ledger_fee(catalogue: Catalogue, spend: SpendRow) -> int:
    """Return what the chain took, in the ledger's units of the gas coin."""
    currency = catalogue.networks[spend.network].gas_currency
    pair, units = catalogue.pair(currency, spend.network), spend.chain_fee_units or 0
    return units if pair is None else pair.to_ledger(units, catalogue.scale(currency))


def _book_gas(catalogue: Catalogue, spend: SpendRow, reference: str, units: int) -> None:
    """Book gas that left custody, or with a negative number gas that did not leave after all."""
    _book_out(reference, GAS, catalogue.networks[spend.network].gas_currency, spend.network, units)


def _book_loss(spend: SpendRow, reference: str, units: int) -> None:
    """Book what left custody uncharged; a negative number is what did not leave."""
    _book_out(reference, EQUITY, spend.currency, spend.network, units)


def _book_out(reference: str, kind: str, currency: str, network: str, units: int) -> None:
    own, custody = Account(GATEWAY, kind, currency), Account(GATEWAY, CUSTODY, currency, network)
    ledger.post(reference, [Transfer(own, custody, units) if units >= 0 else Transfer(custody, own, -units)])


def _hooks(spend: SpendRow) -> Hooks:
    hooks = hooks_of(spend.purpose)
    if hooks is None:
        raise LookupError(f"nobody knows here what a {spend.purpose} is for")
    return hooks


def _reread(spend_id: UUID, *, is_changed: bool = True) -> SpendRow:
    """Return a locked spend after its change, which nobody can have made before, because it was locked when read."""
    spend = spends.find(spend_id)
    if spend is None or not is_changed:
        raise LookupError(f"spend {spend_id} vanished while it was locked")
    return spend


def _names(spend: SpendRow) -> dict[str, object]:
    return {
        "spend": str(spend.id), "network": spend.network, "purpose": spend.purpose, "sender": spend.sender,
        "slot": spend.slot,
    }  # fmt: skip
