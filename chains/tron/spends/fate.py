"""Tells the outcome of a TRON spend: in a block and with what effect, waiting, or expired for good.

Called by chains.tron.spends.spender.
One node at a time tells a fate that its own chain proves; then the voices are held against each other. That it had no
effect takes two voices where there are two providers, that it expired every provider's: a lie, or a node that has
forgotten, must not pay a merchant twice.
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
    """Return a spend's fate on one node's chain. ProviderError if the node cannot tell."""
    found = _inclusion(node, case, accounts.NEWEST)
    if found is not None:
        return found
    if not isinstance(case.claim, Window) or case.claim.ends_at is None:
        raise ValueError("a TRON transaction expires")
    # What is irreversible is asked for after the clock was seen to be past the end: nothing can come in behind it.
    if not _is_past(node, case.claim.ends_at):
        return Fate(kind=FateKind.WAITING)
    return _inclusion(node, case, accounts.SOLID) or Fate(kind=FateKind.DEAD, cause="expired")


def judge(fates: Sequence[Fate], providers: int) -> Fate:
    """Return what holds of what nodes tell. Raises ProviderError if they contradict each other."""
    found = living(fates, needed=witnesses_needed(providers))
    if found is None and len(fates) < providers:
        # Whoever is silent may be the one that has it: others throw old transactions away, or never kept them.
        raise ProviderError("not every provider says that a spend has expired")
    return found or Fate(kind=FateKind.DEAD, cause="expired")


def effect_of(
    info: wire.Info, *, is_success: bool, result: str, sender: str, pair: Pair | None, output: Output
) -> OutputFate:
    """Return what a transaction that was to make a transfer did. result: what its block says of it."""
    if not is_success or info.result:
        return OutputFate(effect="none", problem=PROBLEMS.get(info.receipt.result or result, FAILED))
    contract = None if pair is None else pair.contract
    if contract is None:
        return OutputFate(effect="exact")
    if info.receipt.result != wire.SUCCESS:
        raise ProviderError("a call without the outcome of one")
    token = wire.asked(contract)[2:]
    moved = [found for log in info.log if wire.contract(log.address) == token and (found := scan.moved_by(log))]
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
    """Return what became of a transaction; None where the node has it in no block."""
    info = node.ask(f"{where}/gettransactioninfobyid", {"value": txid}, wire.Info)
    if not info.id:
        return None
    if info.id != txid:
        raise ProviderError("the outcome of another transaction")
    return info


def included_in(node: RestNode, txid: str, height: int) -> tuple[wire.Transaction, str] | None:
    """Return a transaction in the block of a height, with that block's id; None if the block has it not."""
    full = node.ask("wallet/getblockbynum", {"num": height}, wire.FullBlock)
    block = wire.block(full, height)
    found = next((each for each in full.transactions if each.id == txid), None)
    return None if found is None else (found, block.hash)


def _inclusion(node: RestNode, case: Case, where: str) -> Fate | None:
    found = [fate for txid in case.txids if (fate := _proved(node, case.intent, txid, where)) is not None]
    if len(found) > 1:
        raise ProviderError("two transactions of one spend are included")
    return found[0] if found else None


def _proved(node: RestNode, intent: Intent, txid: str, where: str) -> Fate | None:
    info = info_of(node, txid, where)
    if info is None:
        return None
    stands = included_in(node, txid, info.height)
    if stands is None:
        # It is known, so it is not dead; a reorg may have come in between.
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
