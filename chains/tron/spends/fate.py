"""Finds the fate of a TRON spend: in a block and with which effect, waiting, or expired for good.

Called by chains.tron.spends.spender.
Each node reports the fate on its own chain; then the answers are compared. "No effect" takes two providers where there
are two, and "expired" takes all of them: a lie, or a node that dropped old transactions, must not pay a merchant twice.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from chains.base import UNITS_MAX, ProviderError, witnesses_needed
from chains.net.rest import RestNode
from chains.one_transfer import living, only_output
from chains.spending import Case, Fate, FateKind, Intent, Output, OutputFate, Window
from chains.tron import accounts, nodes, scan, wire
from core.catalogue.catalogue import Pair

PROBLEMS: Final = {
    "REVERT": "the contract reverted the transfer",
    "OUT_OF_ENERGY": "the transfer ran out of energy",
    "OUT_OF_TIME": "the transfer took too long",
}
FAILED: Final = "the transfer failed"
NO_TRANSFER: Final = "the token did not make the transfer"
OTHER_TRANSFER: Final = "the token moved something else than was asked for"


def testimony(node: RestNode, case: Case) -> Fate:
    """Return a spend's fate on one node's chain. Raises ProviderError if the node cannot answer."""
    inclusion = _inclusion(node, case, accounts.NEWEST)
    if inclusion is not None:
        return inclusion
    if not isinstance(case.claim, Window) or case.claim.ends_at is None:
        raise ValueError("a TRON transaction expires")
    # The irreversible chain is asked after its clock has passed the end: nothing can be included later.
    if not _is_past(node, case.claim.ends_at):
        return Fate(kind=FateKind.WAITING)
    return _inclusion(node, case, accounts.SOLID) or Fate(kind=FateKind.DEAD, cause="expired")


def judge(fates: Sequence[Fate], providers: int) -> Fate:
    """Return a spend's fate from all nodes' answers. Raises ProviderError if they contradict each other."""
    verdict = living(fates, needed=witnesses_needed(providers))
    if verdict is None and len(fates) < providers:
        # A silent provider may have the transaction: others drop old ones, or never kept them.
        raise ProviderError("not every provider says that a spend has expired")
    return verdict or Fate(kind=FateKind.DEAD, cause="expired")


def effect_of(
    info: wire.Info, *, is_success: bool, result: str, sender: str, pair: Pair | None, output: Output
) -> OutputFate:
    """Return the effect of a transaction that was to make a transfer. result: the result in its block."""
    if not is_success or info.result:
        return OutputFate(effect="none", problem=PROBLEMS.get(info.receipt.result or result, FAILED))
    contract = None if pair is None else pair.contract
    if contract is None:
        return OutputFate(effect="exact")
    if info.receipt.result != wire.SUCCESS:
        raise ProviderError("a call without the outcome of one")
    token = wire.asked(contract)[2:]
    moved = [transfer for log in info.log if wire.contract(log.address) == token and (transfer := scan.moved_by(log))]
    sent = [each for each in moved if each[0] == sender]
    if not sent:
        return OutputFate(effect="none", problem=NO_TRANSFER)
    if sent == [(sender, output.recipient, output.units)]:
        return OutputFate(effect="exact")
    left = sum(units for _, _, units in sent) - sum(units for _, to, units in moved if to == sender)
    arrived = sum(units for source, to, units in sent if to == output.recipient)
    return OutputFate(
        effect="other",
        left_units=min(max(left, 0), UNITS_MAX),
        arrived_units=min(arrived, UNITS_MAX),
        problem=OTHER_TRANSFER,
    )


def info_of(node: RestNode, txid: str, where: str) -> wire.Info | None:
    """Return the outcome of a transaction; None if the node has it in no block."""
    info = node.ask(f"{where}/gettransactioninfobyid", {"value": txid}, wire.Info)
    if not info.id:
        return None
    if info.id != txid:
        raise ProviderError("the outcome of another transaction")
    return info


def included_in(node: RestNode, txid: str, height: int) -> tuple[wire.Transaction, str] | None:
    """Return a transaction in the block of a height, with the block's id; None if the block lacks it."""
    full = node.ask("wallet/getblockbynum", {"num": height}, wire.FullBlock)
    block = wire.block(full, height)
    tx = next((each for each in full.transactions if each.id == txid), None)
    return None if tx is None else (tx, block.hash)


def _inclusion(node: RestNode, case: Case, where: str) -> Fate | None:
    fates = [fate for txid in case.txids if (fate := _proved(node, case.intent, txid, where)) is not None]
    if len(fates) > 1:
        raise ProviderError("two transactions of one spend are included")
    return fates[0] if fates else None


def _proved(node: RestNode, intent: Intent, txid: str, where: str) -> Fate | None:
    info = info_of(node, txid, where)
    if info is None:
        return None
    stands = included_in(node, txid, info.height)
    if stands is None:
        # The node knows it, so it is not dead; a reorg may have come in between.
        raise ProviderError("a node tells the outcome of a transaction that its block has not")
    transaction, block_hash = stands
    output = effect_of(
        info,
        is_success=transaction.is_success,
        result="".join(each.contract_ret for each in transaction.ret),
        sender=intent.wallet.address,
        pair=intent.pair,
        output=only_output(intent),
    )
    return Fate(
        kind=FateKind.INCLUDED,
        txid=txid,
        height=info.height,
        block_hash=block_hash,
        outputs=(output,),
        fee_units=info.fee,
    )


def _is_past(node: RestNode, ends_at: datetime) -> bool:
    return nodes.solid(node).time > ends_at
