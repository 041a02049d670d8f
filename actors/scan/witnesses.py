"""Asks witnesses about deposits, top-ups and charges that need them. Notified by the scheduler, network by network.

A deposit or a top-up is agreed on if at least two providers report the same transfer, and more do so than report
another. Until then it waits, a deposit is shown as awaiting_quorum, and providers are asked again ever more rarely; the
scan goes on meanwhile. If the others agree on another transfer in a deposit's place, that transfer replaces it.
"""

from __future__ import annotations

from typing import Final, cast
from uuid import UUID

import structlog

from actors.context import Context
from actors.network_ticks import network_tick
from actors.scan import totals
from actors.scan.reading import Matching
from actors.scan.record import doubt, settle_owners, take_transfer
from actors.scan.totals import Backing, is_denied, is_firm, recorded
from chains.base import CHARGE, NATIVE, WITNESSES_MIN, Agreement, BlockScan, ChainError, Recorded, Transfer
from chains.family import HiddenReader, Reader
from chains.net.budget import PartSpentError, part
from core.catalogue.catalogue import Catalogue, Network
from core.catalogue.families import traits_of
from models.db.base import repeat_on_deadlock, transaction
from models.deposits import cursors, probes, witnesses
from models.deposits.rows import Deposit, OwnerKind
from models.outcomes import reversals
from models.treasury import charges, topup_doubts
from models.treasury.charges import ChargeRow
from models.treasury.rows import Topup

log = structlog.get_logger()

ASKED_PER_STEP: Final = 50
# The part of a step that the questions about one deposit may take.
ASKED_SHARE: Final = 0.25


@network_tick("quorum")
def seek_second_opinions(ctx: Context, network: Network, chain: Reader) -> None:
    """Ask witnesses about a network's due deposits, top-ups and charges, and settle the agreed deposits."""
    witnesses.forget_hours()
    code = network.code
    due = witnesses.due(code, confirmations=network.confirmations, limit=ASKED_PER_STEP)
    seconds = ctx.settings.rpc_step_s * ASKED_SHARE
    for asked in due:
        try:
            with part(seconds=seconds):
                concerned = _settled(ctx, network, chain, asked)
        except PartSpentError as error:
            # It is asked about again later, so that the others have their turn.
            witnesses.put_off(asked, str(error))
            continue
        settle_owners(ctx, concerned)
    for topup in topup_doubts.due(code, limit=ASKED_PER_STEP):
        _judge(ctx.catalogue, chain, topup)
    for charge in charges.due(code, limit=ASKED_PER_STEP) if traits_of(network).has_charges else ():
        _weigh(chain, charge)


def _settled(ctx: Context, network: Network, chain: Reader, asked: Deposit) -> set[tuple[OwnerKind, UUID]]:
    """Agree on a deposit, replace it, or ask again later; return the owners to settle.

    A hidden deposit is confirmed by the balance of its address, and so is one that shares it with hidden ones.
    """
    if probes.is_hidden(asked):
        return _judged(ctx, network, chain, asked, *totals.compared(ctx, network, chain, asked))
    answer = chain.second_opinion(recorded(ctx.catalogue, asked, units=asked.amount_units))
    if is_firm(answer):
        is_shared = totals.shares(network, asked)
        backing = totals.compared(ctx, network, chain, asked) if is_shared else (totals.Backing.own(asked), answer)
        return _judged(ctx, network, chain, asked, *backing)
    if is_denied(answer):
        concerned = _corrected(ctx, network, chain, asked) or _unlisted(ctx, network, chain, asked)
        if concerned:
            return concerned
    witnesses.put_off(asked, _problem(answer, chain, asked))
    return set()


def _judged(
    ctx: Context, network: Network, chain: Reader, asked: Deposit, backing: Backing | None, answer: Agreement
) -> set[tuple[OwnerKind, UUID]]:
    """Agree on a deposit that is deep enough, take it back, or ask again later; return the owner to settle.

    backing: the block in which providers confirm the deposit, or after which they compared its total.
    """
    if backing is None or not (is_firm(answer) or is_denied(answer)):
        witnesses.put_off(asked, _problem(answer, chain, asked))
        return set()
    if not _is_deep(network, chain, asked, backing.height):
        return set()
    if is_firm(answer):
        is_ended = repeat_on_deadlock(totals.agree, network, asked, backing)
    else:
        is_ended = _take_back(ctx, network, asked, backing)
    if is_ended:
        return {(asked.owner_kind, asked.owner_id)}
    witnesses.put_off(asked, "its block or the deposits of its address have changed meanwhile")
    return set()


def _unlisted(ctx: Context, network: Network, chain: Reader, asked: Deposit) -> set[tuple[OwnerKind, UUID]]:
    """Take back an invented payment of coin, which would hold up hidden coin; return its owner.

    Providers that lag or have forgotten the transaction do not deny it: their block lists it.
    """
    if asked.ordinal != NATIVE or not traits_of(network).has_hidden_transfers:
        return set()
    # The trait means that the family's reader is one.
    shown = recorded(ctx.catalogue, asked, units=asked.amount_units)
    if not is_denied(cast("HiddenReader", chain).listing(shown)):
        return set()
    is_ended = _take_back(ctx, network, asked, Backing.own(asked))
    return {(asked.owner_kind, asked.owner_id)} if is_ended else set()


def _take_back(ctx: Context, network: Network, asked: Deposit, backing: Backing) -> bool:
    is_ended = repeat_on_deadlock(totals.take_back, ctx.catalogue, network, asked, backing)
    if is_ended:
        log.error(
            "deposit.denied", network=asked.network, txid=asked.txid, ordinal=asked.ordinal, units=asked.amount_units
        )
    return is_ended


def _is_deep(network: Network, chain: Reader, asked: Deposit, height: int) -> bool:
    """Return whether two providers have the block of a deposit's last confirmation; if not, ask again later.

    height: of the block that has the deposit. Providers that agree on a payment's block may not agree on the blocks
    above it, which one alone may have invented.
    """
    last = height + max(network.confirmations, asked.depth_min) - 1
    kept = cursors.kept_at_or_above(network.code, last)
    if kept is None:
        witnesses.await_depth(asked)
        return False
    same = chain.agreement(*kept).same
    if same < WITNESSES_MIN:
        problem = f"{same} of {chain.providers} providers have the block of its last confirmation"
        log.warning("deposit.awaits_witness", network=asked.network, txid=asked.txid, problem=problem)
        witnesses.put_off(asked, problem)
    return same >= WITNESSES_MIN


def _corrected(ctx: Context, network: Network, chain: Reader, asked: Deposit) -> set[tuple[OwnerKind, UUID]]:
    """Replace a deposit by the transfer that other providers agree on; return the owners of both.

    Returns no owner if they agree on none. The false deposit would block the true transfer for ever: both have the same
    transaction and place.
    """
    ours = Matching(network)
    try:
        scan = chain.reread(asked.block_height, ours, but_by=cursors.read_by(network.code, asked.block_height))
    except ChainError:
        # Asked again later, so that the other due deposits have their turn.
        return set()
    if not isinstance(scan, BlockScan) or scan.block.hash != asked.block_hash:
        return set()
    place = (asked.txid, asked.ordinal)
    transfer = next((each for each in scan.transfers if (each.txid, each.ordinal) == place), None)
    if transfer is None or not is_firm(chain.second_opinion(totals.shown(scan.block, transfer))):
        return set()
    if not repeat_on_deadlock(_replace, ctx, network, chain, asked, scan, transfer, ours):
        return set()
    log.error(
        "deposit.outvoted", network=network.code, txid=asked.txid, ordinal=asked.ordinal,
        told_units=asked.amount_units, units=transfer.units,
    )  # fmt: skip
    return {(asked.owner_kind, asked.owner_id), *ours.of([transfer])}


def _replace(
    ctx: Context, network: Network, chain: Reader, asked: Deposit, scan: BlockScan, transfer: Transfer, ours: Matching
) -> bool:
    with transaction():
        return (
            cursors.is_scanned(network.code, height=scan.block.height, block_hash=scan.block.hash)
            and reversals.outvote(ctx.catalogue, asked)
            and _take_corrected(ctx, network, chain, scan, transfer, ours)
        )


def _take_corrected(
    ctx: Context, network: Network, chain: Reader, scan: BlockScan, transfer: Transfer, ours: Matching
) -> bool:
    """Record a corrected transfer. Coin needs witnesses whatever its sum: hidden deposits may have used the rest."""
    is_new = take_transfer(ctx, network, chain, scan.block, transfer, ours)
    if transfer.ordinal == NATIVE:
        doubt(network.code, transfer.txid, transfer.ordinal)
    return is_new


def _judge(catalogue: Catalogue, chain: Reader, asked: Topup) -> None:
    answer = chain.second_opinion(recorded(catalogue, asked, units=asked.units))
    if is_firm(answer):
        topup_doubts.agree(asked)
    else:
        topup_doubts.put_off(asked, _problem(answer, chain, asked))


def _weigh(chain: Reader, asked: ChargeRow) -> None:
    """Let a doubted charge count, or leave it out, by the word of two providers; else ask again later."""
    answer = chain.second_opinion(
        Recorded(
            txid=asked.txid,
            ordinal=CHARGE,
            currency=asked.currency,
            units=int(asked.units),
            recipient=asked.address,
            height=asked.block_height,
            block_hash=asked.block_hash,
        )
    )
    if is_firm(answer):
        charges.agree(asked)
    elif is_denied(answer):
        if charges.deny(asked):
            log.error("charge.denied", network=asked.network, txid=asked.txid, units=int(asked.units))
    else:
        problem = _voices(answer, chain)
        log.warning("charge.awaits_witness", network=asked.network, txid=asked.txid, problem=problem)
        charges.put_off(asked, problem)


def _problem(answer: Agreement, chain: Reader, asked: Deposit | Topup) -> str:
    """Describe why a deposit or top-up is not agreed on, and log it."""
    problem = _voices(answer, chain)
    log.warning("deposit.awaits_witness", network=asked.network, txid=asked.txid, problem=problem)
    return problem


def _voices(answer: Agreement, chain: Reader) -> str:
    voices = f"{answer.same} of {chain.providers} providers agree, {answer.other} tell otherwise"
    return f"{voices}; {answer.problem}" if answer.problem else voices
