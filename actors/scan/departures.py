"""Finds unexplained departures in scanned blocks. No actor; used by the actors that scan."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import cast

import structlog

from actors.context import Context
from actors.scan.reading import NOTHING, Left, Reading
from chains.base import WITNESSES_MIN, Block, BlockScan, DisownedError
from chains.family import CounterReader, InclusionReader, Reader
from chains.spending import Departure
from core.catalogue.catalogue import Network
from core.catalogue.families import claim_of, traits_of
from models.spends import coins, seen, unexplained, unread_departures
from models.spends.unexplained import Part, UnexplainedRow
from models.treasury import addresses

log = structlog.get_logger()


def left_in(ctx: Context, network: Network, chain: Reader, scans: Iterable[BlockScan]) -> dict[str, Left]:
    """Return the departures in these blocks by block hash, known by a row or not. Raises ChainError.

    Raises DisownedError if no provider proves a transaction that the reader of its block showed: that provider rests,
    so that the block is read from another one.
    Empty where counters do not show them: there note() finds departures by itself, and recovery reads them later.
    Called outside of transactions, since nodes are asked about each unexplained departure. The signer commits bytes
    before it sends them, so that every transaction that it signed has its row before it is in a block.
    """
    if not traits_of(network).notes_departures_by_counter:
        return {}
    counting, read = cast("CounterReader", chain), list(scans)
    ours = unexplained.own(network.code, network.family, {sender for scan in read for sender, _ in scan.sent})
    sent = {txid: scan for scan in read for sender, txid in scan.sent if sender in ours}
    without_row = unexplained.without_row(network.code, sent)
    by_block: dict[str, Left] = {}
    for txid in sorted(sent.keys() - without_row):
        left = by_block.get(sent[txid].block.hash, NOTHING)
        by_block[sent[txid].block.hash] = left._replace(known=(*left.known, txid))
    for txid in sorted(without_row):
        block = sent[txid].block
        departure = _departure(network, counting, txid, sent[txid], ours)
        if departure is None:
            continue
        new = noted(ctx, network, departure, ours[departure.sender])
        left = by_block.get(block.hash, NOTHING)
        by_block[block.hash] = left._replace(unexplained=(*left.unexplained, new))
    return by_block


def _departure(
    network: Network, chain: CounterReader, txid: str, scan: BlockScan, ours: Collection[str]
) -> Departure | None:
    """Return a transaction that our key signed; None if that is unproven, as for an unknown kind of transaction."""
    try:
        departure = chain.departure(txid, scan.block)
        if departure is not None and departure.sender not in ours and chain.providers > 1:
            raise DisownedError("another key signed the transaction")
    except DisownedError as error:
        log.warning("departure.disowned", network=network.code, txid=txid, problem=str(error))
        chain.distrust(scan.read_by, str(error))
        raise
    if departure is None or departure.sender not in ours:
        log.error("departure.contradicted", network=network.code, txid=txid)
        return None
    return departure


def note(reading: Reading) -> int:
    """Record a block's departures: the included attempts, and those without a row, which stop the signing.

    Records no deposits.
    """
    network, block = reading.network, reading.scan.block
    if traits_of(network).notes_departures_by_counter:
        for departure in reading.left.unexplained:
            unexplained.note(departure)
        seen.note(network.code, reading.left.known, height=block.height, block_hash=block.hash)
        if _is_compared(reading):
            _take_back_lacking(reading)
        return 0
    takers = _takers(network, reading.scan)
    claim = claim_of(network)
    unread_departures.note(network.code, claim, takers, height=block.height, block_hash=block.hash)
    if _is_compared(reading):
        _take_back_lacking(reading)
    else:
        seen.note(network.code, takers, height=block.height, block_hash=block.hash)
    return 0


def lacking_in(network: Network, chain: Reader, scan: BlockScan) -> tuple[str, ...]:
    """Return a block's noted attempts that two providers lack, and more than show them.

    scan: the second reading; if it lacks one, every provider is asked. Otherwise a provider that hides an included
    payout could alone have it called dead. Called outside of transactions. Raises ChainError.
    """
    if not _compares(network, chain):
        return ()
    block, shown = scan.block, {txid for _, txid in scan.sent}
    lacked = seen.lacked(network.code, height=block.height, block_hash=block.hash, shown=shown)
    if not lacked:
        return ()
    return denied(network, cast("InclusionReader", chain), block, lacked)


def denied(network: Network, chain: InclusionReader, block: Block, txids: Collection[str]) -> tuple[str, ...]:
    """Return the noted attempts among these that two providers lack in a block, and more than show them.

    The others are disputed and still count as included.
    """
    lacking = []
    for txid, voices in chain.inclusions(block, txids).items():
        if voices.other >= WITNESSES_MIN and voices.other > voices.same:
            lacking.append(txid)
            continue
        log.error(
            "rescan.attempt_disputed", network=network.code, height=block.height, txid=txid,
            shown_by=voices.same, lacked_by=voices.other,
        )  # fmt: skip
    return tuple(lacking)


def _is_compared(reading: Reading) -> bool:
    """Return whether another provider's reading of a block is compared with the first one.

    By senders it adds no attempt. Where senders count, one that it adds keeps its number from another spend; if it is
    invented, it is judged once its time is over.
    """
    return reading.is_late and _compares(reading.network, reading.chain)


def _compares(network: Network, chain: Reader) -> bool:
    """Return whether the second reading of a block judges the attempts that the first one showed.

    No spend dies against an included attempt, so one provider that invents an inclusion would keep a spend whose window
    is over, and the stop of its network, for ever. It takes two, as for deposits. Elsewhere one provider is enough:
    blocks of coins prove themselves, and a spend whose slot does not end dies only of another transaction in it with
    our signature.
    """
    return chain.providers > 1 and traits_of(network).spends_expire


def _take_back_lacking(reading: Reading) -> None:
    """Take back the notes of attempts that their block lacks by the word of two providers."""
    take_back_seen(reading.network, reading.lacking, reading.scan.block)


def take_back_seen(network: Network, txids: Collection[str], block: Block) -> int:
    """Take back the notes of attempts in a block, in the caller's transaction; return how many there were."""
    taken = seen.take_back(network.code, txids, height=block.height, block_hash=block.hash)
    for txid in taken:
        log.error("rescan.attempt_missing", network=network.code, height=block.height, txid=txid)
    return len(taken)


def _takers(network: Network, scan: BlockScan) -> dict[str, str]:
    """Return the sender of each transaction that took from us, '' if the chain names none.

    If several of our keys signed one, the deposit address is its sender, and the hot wallet only pays its fee.
    """
    if traits_of(network).spends_coins:
        return {coin.by_txid: "" for coin in scan.spent}
    ours = unexplained.own(network.code, network.family, {sender for sender, _ in scan.sent})
    signers = [(sender, txid) for sender, txid in scan.sent if sender in ours]
    return {txid: sender for sender, txid in sorted(signers, key=lambda signer: ours[signer[0]] is not None)}


def concerns(reading: Reading) -> bool:
    """Return whether a block has departures, or senders that have to be checked."""
    is_watched = traits_of(reading.network).notes_departures_by_sender and bool(reading.scan.sent)
    return any(reading.left) or is_watched or bool(reading.lacking)


def take_back(network: Network) -> None:
    """Undo note() for blocks above the cursor."""
    unexplained.take_out(network.code)


def noted(ctx: Context, network: Network, departure: Departure, key_ordinal: int | None) -> UnexplainedRow:
    """Return the row of an unexplained departure, and log it. key_ordinal: of the key that signed it."""
    pair = departure.pair or ctx.catalogue.pair(network.gas_currency, network.code)
    spent = coins.ours(network.code, departure.spends)
    parts = _parts(network, departure)
    log.critical(
        "departure.unexplained", network=network.code, txid=departure.txid,
        sender=departure.sender, slot=departure.slot, height=departure.height,
    )  # fmt: skip
    return UnexplainedRow(
        network=network.code,
        txid=departure.txid,
        claim=claim_of(network),
        sender=departure.sender,
        key_ordinal=key_ordinal,
        slot=departure.slot,
        currency=network.gas_currency if departure.pair is None else departure.pair.currency,
        contract=None if departure.pair is None else departure.pair.contract,
        decimals=ctx.catalogue.scale(network.gas_currency) if pair is None else pair.decimals,
        # A transaction with inputs of others as well was not asked for by any of our rows.
        is_transfer=departure.is_transfer and len(spent) == len(departure.spends),
        raw=departure.raw,
        ceiling_units=departure.offer.ceiling_units,
        terms=dict(departure.offer.terms),
        is_success=any(part.has_effect for part in parts),
        chain_fee_units=departure.fee_units,
        payer=departure.payer,
        block_height=departure.height,
        block_hash=departure.block_hash,
        outputs=[part.to_json() for part in parts],
        spends=[list(coin) for coin in sorted(spent)],
        expires_at=None if departure.window is None else departure.window.ends_at,
        expires_height=None if departure.window is None else departure.window.last_height,
        expires_block=None if departure.window is None else departure.window.last_block,
        mark=departure.mark,
    )


def _parts(network: Network, departure: Departure) -> list[Part]:
    """Return a transaction's outputs; for one that spends coins, without change to the hot wallet.

    If all outputs go to the hot wallet, they are returned: the transaction joins our coins.
    """
    parts = [
        Part(output.recipient, output.units, has_effect=place not in departure.failed, memo=output.memo)
        for place, output in enumerate(departure.outputs)
    ]
    if not departure.spends:
        return parts
    hot = addresses.address(network.code, "hot")
    return [part for part in parts if part.recipient != hot] or parts
