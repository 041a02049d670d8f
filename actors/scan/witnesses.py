"""Asks other providers for what one alone is not believed for. Rung by the scheduler, network by network.

A deposit, or what came to the hot wallet, is agreed on when two providers at least tell the same of it, and more do so
than tell something else. Until then it waits, a deposit is shown as awaiting_quorum, and it is asked about again ever
more rarely; the scan goes on meanwhile.
"""

from __future__ import annotations

from typing import Final

import structlog

from actors.context import Context
from actors.network_ticks import network_tick
from actors.scan.intake import settle_owners
from chains.base import Agreement, Recorded
from chains.family import Reader
from core.catalogue.catalogue import Catalogue, Network
from models.deposits import witnesses as quorum
from models.deposits.rows import Deposit
from models.treasury import own_addresses as treasury
from models.treasury import topup_doubts
from models.treasury.rows import Topup

log = structlog.get_logger()

ASKED_PER_STEP: Final = 50
WITNESSES_MIN: Final = 2


@network_tick("quorum")
def seek_second_opinions(ctx: Context, network: Network, chain: Reader) -> None:
    """Ask about the deposits and top-ups of a network that are due, and settle the deposits that are agreed on."""
    quorum.forget_hours()
    code = network.code
    due = quorum.due(code, limit=ASKED_PER_STEP)
    hot = treasury.address(code, "hot")
    agreed = [asked for asked in due if _is_agreed(ctx.catalogue, chain, asked)]
    if hot is not None:
        for topup in topup_doubts.due(code, limit=ASKED_PER_STEP):
            _judge(ctx.catalogue, chain, topup, hot)
    settle_owners(ctx, {(asked.owner_kind, asked.owner_id) for asked in agreed})


def _is_agreed(catalogue: Catalogue, chain: Reader, asked: Deposit) -> bool:
    problem = _objection(catalogue, chain, asked, units=asked.amount_units, recipient=asked.address)
    if problem:
        quorum.put_off(asked, problem)
        return False
    return quorum.agree(asked)


def _judge(catalogue: Catalogue, chain: Reader, asked: Topup, hot: str) -> None:
    problem = _objection(catalogue, chain, asked, units=asked.units, recipient=hot)
    if problem:
        topup_doubts.put_off(asked, problem)
    else:
        topup_doubts.agree(asked)


def _objection(catalogue: Catalogue, chain: Reader, asked: Deposit | Topup, *, units: int, recipient: str) -> str:
    """Return what stands against what one provider showed; nothing if enough others tell the same."""
    pair = catalogue.pairs[asked.currency, asked.network]
    answer = chain.second_opinion(
        Recorded(
            txid=asked.txid,
            ordinal=asked.ordinal,
            currency=asked.currency,
            units=pair.from_ledger(units, catalogue.scale(asked.currency)),
            recipient=recipient,
            height=asked.block_height,
            block_hash=asked.block_hash,
        )
    )
    if answer.same >= WITNESSES_MIN and answer.same > answer.other:
        return ""
    problem = _problem(answer, chain.providers)
    log.warning("deposit.awaits_witness", network=asked.network, txid=asked.txid, problem=problem)
    return problem


def _problem(answer: Agreement, providers: int) -> str:
    told = f"{answer.same} of {providers} providers agree, {answer.other} tell otherwise"
    return f"{told}; {answer.problem}" if answer.problem else told
