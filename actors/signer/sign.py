"""Starts spends from our wallets: quote, commit the signed bytes, send them to the nodes. No actor; actors use it.

The bytes are committed before any node sees them, so that a crash in between never loses a transaction that may be on
its way. They are never changed or deleted: actors.signer.follow_up sends them again until the chain shows their fate.

    start(ctx, network, purpose="sweep", intent=..., within=take)

Each purpose registers with models.spends.hooks how a spend's fate affects its payout, sweep or funding; only a process
that has imported the registration follows such spends.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog

from actors.context import Context
from actors.signer.held_keys import keys
from actors.signer.intents import coin_of
from actors.signer.spenders import beyond, counting, spender_of
from chains import registry
from chains.base import ChainError, ForeignKeyError, ProviderError
from chains.family import Spender
from chains.keystore import KeystoreError
from chains.spending import (
    Attempt,
    Coin,
    Coins,
    Counter,
    Draft,
    InsufficientCoinError,
    Intent,
    KeyRef,
    Purse,
    Scanned,
    Sending,
    Window,
)
from core.catalogue.catalogue import Network
from core.catalogue.families import traits_of
from core.ids import uuid7
from core.logs.checkpoints import reached
from models.db.base import app_now, in_transaction, repeat_on_deadlock, transaction
from models.deposits import cursors
from models.deposits.cursors import Cursor
from models.payouts import freezes
from models.spends import coins, signing_stops
from models.spends import reads as spend_reads
from models.spends import rows as spends
from models.spends import tracking as spend_tracking
from models.spends.coins import Outpoint
from models.spends.hooks import hooks_of
from models.spends.outputs import OutputRow
from models.spends.reads import Promised
from models.spends.rows import AttemptRow, Purpose, SpendRow
from models.treasury import addresses

log = structlog.get_logger()


# The number of quotes before a spend waits, if other workers keep signing for its sender.
QUOTES_MAX: Final = 6
# A draft chooses among this many coins, the most valuable: anyone can send us many small ones.
COINS_MAX: Final = 1_400


class SigningStoppedError(ProviderError):
    """Signing is stopped for this network: rows of signed spends may be lost. See models.spends.signing_stops."""


class WalletBusyError(ProviderError):
    """As many of the wallet's spends are in no block as may be. Nothing was signed; ask again after the next block."""


class _OvertakenError(Exception):
    """Another worker signed for the sender since the quote, which therefore assumed too high a balance."""


class _DeclinedError(Exception):
    """The caller's `within` declined the spend; the transaction rolls back."""


def hot_wallet(network: Network) -> KeyRef:
    """Return the hot wallet, which pays payouts, and record its address as ours.

    Raises KeystoreError if another address was recorded before: this signer has the wrong keys.
    """
    address = _address(network, None)
    if not addresses.pin_hot(network.code, address):
        raise KeystoreError(f"the hot wallet of {network.code} is not of this keystore")
    return KeyRef(address=address, ordinal=None)


def deposit_wallet(network: Network, ordinal: int) -> KeyRef:
    """Return the wallet of a deposit address."""
    return KeyRef(address=_address(network, ordinal), ordinal=ordinal)


def _address(network: Network, ordinal: int | None) -> str:
    if ordinal is None:
        return keys().hot_address(network)
    (address,) = keys().deposit_addresses(network, (ordinal,))
    return address


def freeze_for(network: str, error: ForeignKeyError) -> None:
    """Freeze a network on which others may sign for our wallet, until an operator lifts the freeze."""
    log.critical("signing.foreign_key", network=network, problem=str(error))
    with transaction():
        freezes.freeze("network", network, reason=str(error), frozen_by=freezes.SIGNER)


def start(
    ctx: Context,
    network: Network,
    *,
    purpose: Purpose,
    intent: Intent,
    within: Callable[[UUID], bool] | None = None,
    payout_ids: Sequence[UUID] = (),
    slot: int | None = None,
    draft: Draft | None = None,
) -> UUID | None:
    """Sign a spend, commit it, then send it to the nodes; return its id once it is committed.

    within: called with the id in the committing transaction, before the bytes are made; the caller writes there the
    rows that belong to the spend. If it returns False or raises, the transaction rolls back and nothing was signed;
    after False, None is returned.
    payout_ids: the payout that each output pays, for payouts. slot: used instead of the sender's next one, before which
    others wait, so that it needs no room.
    draft: a draft that the caller made and knows the sender can pay.
    Raises the errors of Spender.draft and WalletBusyError, and then writes nothing; a failure to send raises nothing,
    since the spend is under way by then. Not to be called inside a transaction.
    """
    if in_transaction():
        raise RuntimeError("no network inside a transaction")
    if intent.wallet.address != _address(network, intent.wallet.ordinal):
        raise ValueError("a spend is signed with its sender's key")
    spender = spender_of(ctx, network)

    def attempt() -> SpendRow:
        before = _promised(network, intent)
        # Asked after that: a spend signed since then is one that the quote does not know.
        if slot is None:
            _check_room(network, intent.wallet.address)
        drafted = draft or _drafted(ctx, network, spender, intent, before, payout_ids)
        if slot is None:
            drafted = _counted(network, spender, drafted)
        reached("spending.quoted")
        return repeat_on_deadlock(
            _commit, ctx, network, spender, purpose=purpose, draft=drafted, within=within, payout_ids=payout_ids,
            slot=slot, before=before,
        )  # fmt: skip

    try:
        spend = _unless_overtaken(attempt, intent.wallet.address)
    except _DeclinedError:
        return None
    reached("spending.committed")
    give(ctx, network, spend, spends.attempts_of(spend.id))
    return spend.id


def _counted(network: Network, spender: Spender, draft: Draft) -> Draft:
    """Return a draft that claims our next slot, if its claim is a counter.

    Raises SigningStoppedError if the chain has used that slot, which stops signing for the network: no row knows the
    transaction that used it, and the scan has to find out whether it already paid this order.
    """
    counter, sender = counting(network, spender), draft.intent.wallet.address
    if counter is None:
        return draft
    ours = spends.next_slot(network.code, sender)
    used = counter.next_counter(sender, ours=ours)
    if used <= ours:
        return replace(draft, claim=Counter(at_least=ours, ends_at=_end_of(draft)))
    reason = beyond(sender, used, ours)
    with transaction():
        signing_stops.stop(network.code, reason=reason, sender=sender)
    raise SigningStoppedError(reason)


def has_room(network: Network, wallet: str) -> bool:
    """Return whether another spend of a wallet may wait for a block, whatever those that wait are for."""
    return spend_reads.waiting_of(network.code, wallet) < traits_of(network).in_flight_max


def _check_room(network: Network, wallet: str) -> None:
    """Refuse to sign for a wallet without room. Raises WalletBusyError."""
    if not has_room(network, wallet):
        raise WalletBusyError(f"{wallet} has as many spends in no block as may wait at once")


def _end_of(draft: Draft) -> datetime | None:
    return None if isinstance(draft.claim, Coins) else draft.claim.ends_at


def _unless_overtaken(attempt: Callable[[], SpendRow], sender: str) -> SpendRow:
    for _ in range(QUOTES_MAX):
        with contextlib.suppress(_OvertakenError):
            return attempt()
    raise InsufficientCoinError(f"others sign for {sender} all the time: what is left of its balance is not known")


def _promised(network: Network, intent: Intent) -> Promised:
    contract = None if intent.pair is None else intent.pair.contract
    return spend_reads.promised(network.code, intent.wallet.address, contract)


def _drafted(
    ctx: Context, network: Network, spender: Spender, intent: Intent, promised: Promised, payout_ids: Sequence[UUID]
) -> Draft:
    """Draft a spend that the sender can pay in addition to its spends under way.

    Raises the errors of Spender.draft. Spends that wait for a block are still part of the balance that nodes report.
    """
    currency = network.gas_currency if intent.pair is None else intent.pair.currency
    spoken_for = {currency: promised.token_units, network.gas_currency: promised.native_units + promised.gas_units}
    spends_coins = traits_of(network).spends_coins
    purse = Purse(
        next_counter=spends.next_slot(network.code, intent.wallet.address),
        coins=free_coins(network, currency) if spends_coins else (),
        # Coins held by a spend are promised already, and are not among the free ones.
        promised={} if spends_coins else spoken_for,
        scanned=scanned(network),
        expired=spend_reads.dead_of(payout_ids) if traits_of(network).has_windows else 0,
    )
    return spender.draft(intent, purse, cap_units=registry.fee_cap_units(network, ctx.settings))


def scanned(network: Network) -> Scanned | None:
    """Return the last block that the scan has recorded; None before its first."""
    cursor = cursors.read(network.code)
    return None if cursor is None else scanned_at(cursor)


def scanned_at(cursor: Cursor) -> Scanned:
    """Return a recorded block for a draft, its time no later than our clock's.

    The scan too may have its blocks from a node that answers alone, whose block time may lie a century ahead.
    """
    return Scanned(height=cursor.height, time=min(cursor.block_time, app_now()), count=cursor.block_count)


def free_coins(network: Network, currency: str) -> tuple[Coin, ...]:
    """Return the coins that may be spent now, the most valuable first. For networks that spend coins.

    Coins that others sent have to be mature: a payout that spends a coin which a reorg removes never confirms.
    """
    rows = coins.free(network.code, network.family, currency, limit=COINS_MAX, depth=network.maturity)
    return tuple(map(coin_of, rows))


def free_outpoints(network: Network) -> list[Outpoint]:
    """Return the outpoints of the gas coins that the next spend may use, chosen as by free_coins."""
    return coins.free_outpoints(network.code, network.gas_currency, limit=COINS_MAX, depth=network.maturity)


def _commit(
    ctx: Context,
    network: Network,
    spender: Spender,
    *,
    purpose: Purpose,
    draft: Draft,
    within: Callable[[UUID], bool] | None,
    payout_ids: Sequence[UUID],
    slot: int | None,
    before: Promised,
) -> SpendRow:
    spend_id, intent = uuid7(), draft.intent
    with transaction():
        if within is not None and not within(spend_id):
            raise _DeclinedError
        reached("spending.taken")
        slot = _lock_wallet(network, draft, slot)
        # The quote is valid only if no other spend was promised from the same balance since.
        if not _promised(network, intent).txids <= before.txids:
            raise _OvertakenError
        new = _row(ctx, network, intent, spend_id=spend_id, purpose=purpose, slot=slot)
        attempt = sign(network, spender, draft, counter=slot)
        claimed = draft.claim.outpoints if isinstance(draft.claim, Coins) else ()
        outputs = _outputs(intent, spend_id, payout_ids)
        if not spends.insert(new, outputs, new_attempt(new, attempt, draft), claimed=claimed):
            # Another worker claimed first, or a block has spent a coin.
            raise _OvertakenError
        reached("spending.signed")
    return new


def _lock_wallet(network: Network, draft: Draft, slot: int | None) -> int | None:
    """Lock a wallet against other signing until the transaction ends; return the slot of the new spend."""
    sender = draft.intent.wallet.address
    if not isinstance(draft.claim, Counter):
        # For accounts without slots this only takes the locks, in one order: others promise from the payer's balance.
        payer = draft.intent.payer
        for wallet in sorted({sender} if payer is None else {sender, payer.address}):
            spends.raise_slot(network.code, wallet, 0)
        return None
    if slot is not None:
        spends.lock_account(network.code, sender)
        return slot
    if draft.claim.ends_at is None:
        return spends.take_slot(network.code, sender, at_least=draft.claim.at_least)
    if (taken := spends.take_slot(network.code, sender, at_least=0)) != draft.claim.at_least:
        # Another spend took the slot since the quote, or gave an earlier one back.
        raise _OvertakenError
    return taken


def _row(
    ctx: Context, network: Network, intent: Intent, *, spend_id: UUID, purpose: Purpose, slot: int | None
) -> SpendRow:
    pair = intent.pair
    native = ctx.catalogue.pair(network.gas_currency, network.code)
    native_decimals = ctx.catalogue.scale(network.gas_currency) if native is None else native.decimals
    return SpendRow(
        id=spend_id,
        network=network.code,
        purpose=purpose,
        sender=intent.wallet.address,
        payer="" if intent.payer is None else intent.payer.address,
        key_ordinal=intent.wallet.ordinal,
        currency=network.gas_currency if pair is None else pair.currency,
        contract=None if pair is None else pair.contract,
        decimals=native_decimals if pair is None else pair.decimals,
        token_units=intent.units,
        slot=slot,
    )


def _outputs(intent: Intent, spend_id: UUID, payout_ids: Sequence[UUID]) -> list[OutputRow]:
    return [
        OutputRow(
            spend_id=spend_id,
            place=place,
            payout_id=payout_ids[place] if payout_ids else None,
            recipient=output.recipient,
            token_units=output.units,
            memo=output.memo,
        )
        for place, output in enumerate(intent.outputs)
    ]


def sign(network: Network, spender: Spender, draft: Draft, *, counter: int | None) -> Attempt:
    """Sign a draft with its wallet's keys, without network access.

    Called in the transaction that commits the bytes, before anything else is done with them. Raises
    SigningStoppedError, and ValueError for a number that ends too late or never.
    """
    obstacle = signing_stops.obstacle(network.code)
    if obstacle:
        raise SigningStoppedError(obstacle)
    _check_end(network, draft)
    return spender.sign(draft, counter=counter, keys=keys().deriver(network).keyring())


def _check_end(network: Network, draft: Draft) -> None:
    """Refuse a number that could still be used when signing resumes after a stop, which waits for window_s."""
    traits = traits_of(network)
    if not traits.counters_end:
        return
    ends_at = _end_of(draft)
    if ends_at is None or ends_at > app_now() + timedelta(seconds=traits.window_s):
        raise ValueError(f"a number of {draft.intent.wallet.address} ends at {ends_at}, which is too late")


def new_attempt(
    spend: SpendRow, attempt: Attempt, draft: Draft, *, number: int = 0, is_void: bool = False
) -> AttemptRow:
    """Return an attempt's row, with the end of its claim."""
    window = draft.claim if isinstance(draft.claim, Window) else None
    return AttemptRow(
        spend_id=spend.id,
        number=number,
        network=spend.network,
        txid=attempt.txid,
        mark=attempt.mark,
        raw=attempt.raw,
        ceiling_units=draft.offer.ceiling_units,
        gain_units=draft.offer.gain_units,
        terms=dict(draft.offer.terms),
        expires_at=_end_of(draft),
        expires_height=None if window is None else window.last_height,
        expires_block=None if window is None else window.last_block,
        is_void=is_void,
    )


def give(ctx: Context, network: Network, spend: SpendRow, attempts: list[AttemptRow]) -> None:
    """Send committed bytes to the nodes, the dearest first, and note the answers.

    No answer of a node raises: the bytes are sent again until their fate is known. A freeze holds them back. The money
    of a failed spend was given back: only an attempt that moves nothing and uses up its slot is sent.
    """
    hooks = hooks_of(spend.purpose)
    if hooks is None or not hooks.may_send(spend):
        return
    spender = spender_of(ctx, network)
    for attempt in attempts:
        if attempt.is_over or (spend.state == "failed" and not attempt.is_void):
            continue
        problem = _given(spender, attempt)
        reached("spending.given")
        with transaction():
            if problem == spend_tracking.CLAIM_USED and traits_of(network).spends_coins:
                is_first = len(attempts) == 1 and attempt.seconds_silent is None
                spend_tracking.doubt_coins(spend.id, attempt.number, is_first=is_first)
            spends.note_tried(spend.id, attempt.number, error=problem)
        if not problem:
            repeat_on_deadlock(_note_sent, ctx, spend.id)
        reached("spending.noted")
        if not problem:
            # Older attempts offer less than the one that a node took now.
            return
        log.warning("spend.not_taken", spend=str(spend.id), network=network.code, problem=problem)


def _given(spender: Spender, attempt: AttemptRow) -> str:
    """Send bytes to the nodes; return their objection, '' if a node took them."""
    try:
        sending = spender.send(attempt.raw)
    except ChainError as error:
        # Nodes that were asked before may have it.
        return repr(error)
    return "" if sending is Sending.TAKEN else sending.value


def _note_sent(ctx: Context, spend_id: UUID) -> None:
    with transaction():
        spend_tracking.note_sent(ctx.catalogue, spend_id)
