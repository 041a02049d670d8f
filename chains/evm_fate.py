"""What became of a spend: in a block and with what effect, waiting, or overtaken for good. Called by chains.evm_spend.

One node at a time tells a fate that its own chain proves; then the voices are held against each other. A verdict that
releases money (failed, dead) takes two voices where there are two providers: a lie must not pay a merchant twice.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mode
from typing import Final

from chains import evm_wire as wire
from chains.base import Fate, FateKind, Intent, ProviderError
from chains.evm_block import ERC20_TOPICS, TRANSFER_TOPIC
from chains.rpc import JsonRpc

REVERTED: Final = "the transaction was reverted"
OUT_OF_GAS: Final = "the transaction ran out of gas"
NO_TRANSFER: Final = "the token did not make the transfer"
# So many voices, where there are so many providers, take a hold back.
WITNESSES_MIN: Final = 2


class _Receipt(wire.Receipt, kw_only=True, rename="camel"):
    gas_used: str
    effective_gas_price: str
    # What a rollup took for posting the data.
    l1_fee: str | None = None


class _Terms(wire.Transaction, kw_only=True):
    gas: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is to be found out; see chains.base.Spender.fate."""

    intent: Intent
    claim: int
    txids: tuple[str, ...]
    depth: int


def testimony(node: JsonRpc, case: Case) -> Fate:
    """Return a spend's fate on one node's chain. Raises ProviderError where the node cannot tell."""
    found = _inclusion(node, case)
    if found is not None:
        return found
    if not _is_claim_gone(node, case):
        return Fate(kind=FateKind.WAITING)
    # Ours may have come in between the two questions.
    return _inclusion(node, case) or Fate(kind=FateKind.DEAD)


def judge(fates: Sequence[Fate], providers: int) -> Fate:
    """Return what holds of what nodes tell. Raises ProviderError where they contradict each other."""
    needed = witnesses(providers)
    included = [fate for fate in fates if fate.kind is FateKind.INCLUDED]
    if included:
        return _included(included, len(fates), needed)
    if any(fate.kind is FateKind.WAITING for fate in fates):
        return Fate(kind=FateKind.WAITING)
    if len(fates) < needed:
        raise ProviderError("one provider alone says that another transaction took the spend's place")
    return Fate(kind=FateKind.DEAD)


def witnesses(providers: int) -> int:
    """Return how many voices it takes to believe what would cost us money, were it a lie."""
    return min(WITNESSES_MIN, providers)


def _included(included: Sequence[Fate], voices: int, needed: int) -> Fate:
    # Of the fee nodes may tell different things: some leave out what a rollup adds.
    [(verdict, count), *others] = Counter(replace(fate, fee_units=0) for fate in included).most_common()
    if 2 * count <= voices:
        if others:
            raise ProviderError("providers disagree about what became of a spend")
        return Fate(kind=FateKind.WAITING)
    if not verdict.is_success and count < needed:
        raise ProviderError("one provider alone says that a spend failed")
    fees = (fate.fee_units for fate in included if replace(fate, fee_units=0) == verdict)
    return replace(verdict, fee_units=mode(sorted(fees, reverse=True)))


def _inclusion(node: JsonRpc, case: Case) -> Fate | None:
    found = [fate for txid in case.txids if (fate := _proved(node, case.intent, txid)) is not None]
    if len(found) > 1:
        raise ProviderError("two transactions with one nonce are included")
    return found[0] if found else None


def _proved(node: JsonRpc, intent: Intent, txid: str) -> Fate | None:
    receipt = node.call_or_none("eth_getTransactionReceipt", [txid], _Receipt)
    if receipt is None or receipt.block_number is None:
        return None
    if wire.block_or_tx_hash(receipt.transaction_hash) != txid:
        raise ProviderError("a receipt of another transaction")
    height = wire.quantity(receipt.block_number)
    header = node.call_or_none("eth_getBlockByNumber", [hex(height), False], wire.Header)
    block_hash = wire.block_or_tx_hash(receipt.block_hash)
    if header is None or wire.block(header, height).hash != block_hash:
        return None
    problem = _problem(node, intent, txid, receipt)
    fee = wire.quantity(receipt.gas_used) * wire.quantity(receipt.effective_gas_price)
    return Fate(
        kind=FateKind.INCLUDED,
        txid=txid,
        height=height,
        block_hash=block_hash,
        is_success=not problem,
        fee_units=fee + wire.quantity(receipt.l1_fee or "0x0"),
        problem=problem,
    )


def _problem(node: JsonRpc, intent: Intent, txid: str, receipt: _Receipt) -> str:
    if wire.quantity(receipt.status) != wire.SUCCESS:
        terms = node.call("eth_getTransactionByHash", [txid], _Terms)
        return OUT_OF_GAS if wire.quantity(receipt.gas_used) == wire.quantity(terms.gas) else REVERTED
    contract = None if intent.pair is None else intent.pair.contract
    if contract is None:
        return ""
    moved = any(_is_transfer(log, intent, wire.address(contract)) for log in receipt.logs)
    return "" if moved else NO_TRANSFER


def _is_transfer(log: wire.Log, intent: Intent, contract: str) -> bool:
    return (
        not log.removed
        and wire.address(log.address) == contract
        and len(log.topics) == ERC20_TOPICS
        and log.topics[0].lower() == TRANSFER_TOPIC
        and wire.topic_address(log.topics[1]) == wire.address(intent.sender)
        and wire.topic_address(log.topics[2]) == wire.address(intent.recipient)
        and wire.data(log.data) == intent.units.to_bytes(wire.WORD_BYTES, "big")
    )


def _is_claim_gone(node: JsonRpc, case: Case) -> bool:
    """Whether the nonce was used up deeply enough. A node that has forgotten its old states cannot tell."""
    if nonce(node, case.intent.sender) <= case.claim:
        return False
    height = wire.quantity(node.call("eth_blockNumber", [], str)) - case.depth + 1
    return height >= 0 and nonce(node, case.intent.sender, hex(height)) > case.claim


def nonce(node: JsonRpc, sender: str, at: str = "latest") -> int:
    """Return how many transactions of a sender a node's chain includes, up to a height in hex or a tag."""
    return wire.quantity(node.call("eth_getTransactionCount", [sender, at], str))
