"""Sends whatever leaves one of our wallets: quote, commit signed bytes, give them to the nodes. No actor; used by some.

The bytes are committed before any node sees them, so that whatever dies in between, what may be on its way is known.
They are never changed and never forgotten: actors.signer.watch sends them again until the chain tells their fate.

    start(ctx, network, purpose="sweep", intent=..., within=take)

What the fate of a spend means for whatever it was made for is registered by purpose with models.spends.hooks; only a
process that has imported that registration follows such spends.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, cast
from uuid import UUID

import structlog

from actors.context import Context
from actors.signer.held_keys import keys
from actors.signer.intents import coin_of
from chains import registry
from chains.base import ForeignKeyError, ProviderError
from chains.family import CoinSpender, CounterSpender, Spender
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
from models.spends import coins, signing
from models.spends import reads as spend_reads
from models.spends import rows as spends
from models.spends import tracking as spend_tracking
from models.spends.coins import Outpoint
from models.spends.hooks import hooks_of
from models.spends.outputs import OutputRow
from models.spends.reads import Promised
from models.spends.rows import AttemptRow, Purpose, SpendRow
from models.treasury import own_addresses as treasury

log = structlog.get_logger()


# A spend is quoted so often before it waits, where others sign for its sender all the time.
QUOTES_MAX: Final = 6
# A draft chooses among so many coins, the most valuable: anybody may send us as many small ones as he pays for.
COINS_MAX: Final = 1_400


class SigningStoppedError(ProviderError):
    """Nothing is signed for this network: rows of what was signed before may be lost. See models.spends.signing."""


class _OvertakenError(Exception):
    """Another worker signed for the same sender since the quote, which therefore counted too much."""


class _DeclinedError(Exception):
    """What should have happened together with the spend did not; nothing of it is kept."""


def hot_wallet(network: Network) -> KeyRef:
    """Return the wallet that pays merchants' recipients, and write down that it is ours.

    Raises KeystoreError where another wallet's address was written down before: this signer has the wrong keys.
    """
    address = _address(network, None)
    if not treasury.pin_hot(network.code, address):
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


def spender_of(ctx: Context, network: Network) -> Spender:
    """Return the network's spender. LookupError if it has none."""
    return registry.spender(network, ctx.settings)


def freeze_for(network: str, error: ForeignKeyError) -> None:
    """Freeze a network on which others may sign for a wallet of ours, until an operator lifts it."""
    log.critical("signing.foreign_key", network=network, problem=str(error))
    with transaction():
        freezes.freeze("network", network, reason=str(error), frozen_by=freezes.SIGNER)


def counting(network: Network, spender: Spender) -> CounterSpender | None:
    """Return a spender as one whose claims are counters; None where its family claims otherwise."""
    return cast("CounterSpender", spender) if traits_of(network).claim == "counter" else None


def holding(network: Network, spender: Spender) -> CoinSpender | None:
    """Return a spender as one whose claims are coins; None where its family claims otherwise."""
    return cast("CoinSpender", spender) if traits_of(network).claim == "coins" else None


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
    """Sign a spend, commit it, then give it to the nodes; return its id once it is committed.

    within: called with the id in the committing transaction, before the bytes are made; whatever belongs to the spend
    is written there. False, or anything that it raises, rolls back and nothing was signed; False returns None.
    payout_ids: which payout each output pays, where they are payouts'.
    slot: instead of the sender's next one. draft: where the caller has made it, and knows that the sender can pay it.
    Raises what Spender.draft raises, and nothing is written then; a failure to send raises nothing, since the spend is
    under way by then. Not to be called inside a transaction.
    """
    if in_transaction():
        raise RuntimeError("no network inside a transaction")
    if intent.wallet.address != _address(network, intent.wallet.ordinal):
        raise ValueError("a spend is signed with its sender's key")
    spender = spender_of(ctx, network)

    def attempt() -> SpendRow:
        before = _promised(network, intent)
        drafted = _drafted(ctx, network, spender, intent, before) if draft is None else draft
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
    """Return a draft with what the chain has not counted yet, if that is its claim.

    Raises SigningStoppedError if the chain has used our next slot, which stops the network: what was signed there is
    known to no row, and whether it paid what is to be paid now, the scan has to find out.
    """
    counter, sender = counting(network, spender), draft.intent.wallet.address
    if counter is None:
        return draft
    ours = spends.next_slot(network.code, sender)
    used = counter.next_counter(sender, ours=ours)
    if used <= ours:
        return replace(draft, claim=Counter(at_least=ours))
    reason = beyond(sender, used, ours)
    with transaction():
        signing.stop(network.code, reason=reason, sender=sender)
    raise SigningStoppedError(reason)


def beyond(sender: str, told: int, ours: int) -> str:
    """Return in words that transactions of a sender exist which no row knows."""
    return f"the next slot of {sender} is {told} by its chain and {ours} by our rows"


def _unless_overtaken(attempt: Callable[[], SpendRow], sender: str) -> SpendRow:
    for _ in range(QUOTES_MAX):
        with contextlib.suppress(_OvertakenError):
            return attempt()
    raise InsufficientCoinError(f"others sign for {sender} all the time: what is left of its balance is not known")


def _promised(network: Network, intent: Intent) -> Promised:
    contract = None if intent.pair is None else intent.pair.contract
    return spend_reads.promised(network.code, intent.wallet.address, contract)


def _drafted(ctx: Context, network: Network, spender: Spender, intent: Intent, promised: Promised) -> Draft:
    """Return what can be signed now, if the sender can pay for it beside all that it has promised already.

    Raises what Spender.draft raises. What waits in no block is not yet gone from the balance that nodes tell.
    """
    currency = network.gas_currency if intent.pair is None else intent.pair.currency
    spoken_for = {currency: promised.token_units, network.gas_currency: promised.native_units + promised.gas_units}
    is_coins = traits_of(network).claim == "coins"
    purse = Purse(
        next_counter=spends.next_slot(network.code, intent.wallet.address),
        coins=free_coins(network, currency) if is_coins else (),
        # The coins that a spend holds are what it has promised, and are not among the free ones.
        promised={} if is_coins else spoken_for,
        scanned=scanned(network),
    )
    return spender.draft(intent, purse, cap_units=registry.fee_cap_units(network, ctx.settings))


def scanned(network: Network) -> Scanned | None:
    """Return the last block that the scan has recorded; None before its first."""
    cursor = cursors.read(network.code)
    return None if cursor is None else scanned_at(cursor)


def scanned_at(cursor: Cursor) -> Scanned:
    """Return a recorded block for a draft, its time no later than the clock's.

    A node that answers alone shows the scan its blocks too, and no hash denies a time of a century to come.
    """
    return Scanned(height=cursor.height, time=min(cursor.block_time, app_now()))


def free_coins(network: Network, currency: str) -> tuple[Coin, ...]:
    """Return coins that may be spent now, the most valuable first. Of networks whose claim is coins.

    What others sent has to be mature: a payout hangs for good on a coin that a reorg unmakes.
    """
    found = coins.free(network.code, network.family, currency, limit=COINS_MAX, depth=network.maturity)
    return tuple(map(coin_of, found))


def free_outpoints(network: Network) -> list[Outpoint]:
    """Return which coins of the gas currency the next spend may be made of, as free_coins does."""
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
        # The balance of the quote is spoken for by nobody else only while nothing new was promised from it.
        if not _promised(network, intent).txids <= before.txids:
            raise _OvertakenError
        new = _row(ctx, network, intent, spend_id=spend_id, purpose=purpose, slot=slot)
        attempt = sign(network, spender, draft, counter=slot)
        claimed = draft.claim.outpoints if isinstance(draft.claim, Coins) else ()
        outputs = _outputs(intent, spend_id, payout_ids)
        if not spends.insert(new, outputs, new_attempt(new, attempt, draft), claimed=claimed):
            # Another worker was faster, or a block has spent one.
            raise _OvertakenError
        reached("spending.signed")
    return new


def _lock_wallet(network: Network, draft: Draft, slot: int | None) -> int | None:
    """Let others who sign for a wallet wait until the transaction ends; return the slot of what is to be signed."""
    sender = draft.intent.wallet.address
    if not isinstance(draft.claim, Counter):
        # Of an account that counts nothing this is the lock alone.
        spends.raise_slot(network.code, sender, 0)
        return None
    if slot is None:
        return spends.take_slot(network.code, sender, at_least=draft.claim.at_least)
    spends.lock_account(network.code, sender)
    return slot


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
    """Sign with the keys of the draft's wallet. No network is used. Commit the bytes before all else.

    Called in the transaction that commits them. Raises SigningStoppedError.
    """
    obstacle = signing.obstacle(network.code)
    if obstacle:
        raise SigningStoppedError(obstacle)
    return spender.sign(draft, counter=counter, keys=keys().deriver(network).keyring())


def new_attempt(
    spend: SpendRow, attempt: Attempt, draft: Draft, *, number: int = 0, is_void: bool = False
) -> AttemptRow:
    """Return an attempt's row, with its end where its claim has one."""
    window = draft.claim if isinstance(draft.claim, Window) else None
    return AttemptRow(
        spend_id=spend.id,
        number=number,
        network=spend.network,
        txid=attempt.txid,
        mark=attempt.mark,
        raw=attempt.raw,
        ceiling_units=draft.offer.ceiling_units,
        terms=dict(draft.offer.terms),
        expires_at=None if window is None else window.ends_at,
        expires_height=None if window is None else window.last_height,
        is_void=is_void,
    )


def give(ctx: Context, network: Network, spend: SpendRow, attempts: list[AttemptRow]) -> None:
    """Give committed bytes to the nodes, the dearest first, and note what they answered.

    Nothing is raised for what the nodes say: whatever they do with them, the bytes are sent again until their fate is
    known. A freeze holds them back. What a failed spend moves was given back: only what uses up its slot goes out.
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
            if problem == spend_tracking.CLAIM_USED and traits_of(network).claim == "coins":
                is_first = len(attempts) == 1 and attempt.seconds_silent is None
                spend_tracking.doubt_coins(spend.id, attempt.number, is_first=is_first)
            spends.note_tried(spend.id, attempt.number, error=problem)
        if not problem:
            repeat_on_deadlock(_note_sent, ctx, spend.id)
        reached("spending.noted")
        if not problem:
            # Older ones offer less than what is taken now.
            return
        log.warning("spend.not_taken", spend=str(spend.id), network=network.code, problem=problem)


def _given(spender: Spender, attempt: AttemptRow) -> str:
    """Return what nodes have against bytes; nothing if one took them."""
    try:
        sending = spender.send(attempt.raw)
    except ProviderError as error:
        return repr(error)
    return "" if sending is Sending.TAKEN else sending.value


def _note_sent(ctx: Context, spend_id: UUID) -> None:
    with transaction():
        spend_tracking.note_sent(ctx.catalogue, spend_id)
