"""What became of a spend: in a block and with what effect, waiting, or overtaken for good.

Called by chains.evm.spends.spender.
One node at a time tells a fate that its own chain proves; then the voices are held against each other. A verdict that
releases money (no effect, dead) takes two voices where there are two providers: a lie must not pay a merchant twice. So
does another effect than the one that was asked for, which stops the coin's payouts.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mode
from typing import Final, NamedTuple

from chains.base import Effect, Fate, FateKind, Intent, ProviderError
from chains.evm.nodes import wire
from chains.evm.nodes.rpc import JsonRpc
from chains.evm.scan.block import ERC20_TOPICS, TRANSFER_TOPIC

REVERTED: Final = "the transaction was reverted"
OUT_OF_GAS: Final = "the transaction ran out of gas"
NO_TRANSFER: Final = "the token did not make the transfer"
OTHER_TRANSFER: Final = "the token moved something else than was asked for"
# What a token's amount may be at most; sums of a hostile one's logs are cut to it.
WORD_MAX: Final = 2**256 - 1
# So many voices, where there are so many providers, take a hold back.
WITNESSES_MIN: Final = 2


class PaidReceipt(wire.Receipt, kw_only=True, rename="camel"):
    """What became of a transaction, and what the chain took for it."""

    gas_used: str
    effective_gas_price: str
    # What a rollup took for posting the data.
    l1_fee: str | None = None


class _Terms(wire.Transaction, kw_only=True):
    gas: str


class _Effect(NamedTuple):
    """What one receipt shows; units are told where something else was moved."""

    name: Effect
    problem: str = ""
    left_units: int = 0
    arrived_units: int = 0


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
        raise ProviderError("one provider alone says that a spend has not its effect")
    fees = (fate.fee_units for fate in included if replace(fate, fee_units=0) == verdict)
    return replace(verdict, fee_units=mode(sorted(fees, reverse=True)), is_witnessed=count >= needed)


def _inclusion(node: JsonRpc, case: Case) -> Fate | None:
    found = [fate for txid in case.txids if (fate := _proved(node, case.intent, txid)) is not None]
    if len(found) > 1:
        raise ProviderError("two transactions with one nonce are included")
    return found[0] if found else None


def _proved(node: JsonRpc, intent: Intent, txid: str) -> Fate | None:
    receipt = node.call_or_none("eth_getTransactionReceipt", [txid], PaidReceipt)
    if receipt is None or receipt.block_number is None:
        return None
    if wire.block_or_tx_hash(receipt.transaction_hash) != txid:
        raise ProviderError("a receipt of another transaction")
    height = wire.quantity(receipt.block_number)
    header = node.call_or_none("eth_getBlockByNumber", [hex(height), False], wire.Header)
    block_hash = wire.block_or_tx_hash(receipt.block_hash)
    if header is None or wire.block(header, height).hash != block_hash:
        return None
    effect = _effect(node, intent, txid, receipt)
    return Fate(
        kind=FateKind.INCLUDED,
        txid=txid,
        height=height,
        block_hash=block_hash,
        effect=effect.name,
        left_units=effect.left_units,
        arrived_units=effect.arrived_units,
        fee_units=fee_of(receipt),
        problem=effect.problem,
    )


def fee_of(receipt: PaidReceipt) -> int:
    """Return what the chain took for a transaction, in wei."""
    gas = wire.quantity(receipt.gas_used) * wire.quantity(receipt.effective_gas_price)
    return gas + wire.quantity(receipt.l1_fee or "0x0")


def moved_anything(receipt: PaidReceipt, intent: Intent) -> bool:
    """Whether a transaction that was to make a transfer moved anything by it, exactly that or something else."""
    contract = None if intent.pair is None else intent.pair.contract
    return wire.quantity(receipt.status) == wire.SUCCESS and (
        contract is None or _of_logs(receipt.logs, intent, wire.address(contract)).name != "none"
    )


def _effect(node: JsonRpc, intent: Intent, txid: str, receipt: PaidReceipt) -> _Effect:
    if wire.quantity(receipt.status) != wire.SUCCESS:
        terms = node.call("eth_getTransactionByHash", [txid], _Terms)
        return _Effect("none", OUT_OF_GAS if wire.quantity(receipt.gas_used) == wire.quantity(terms.gas) else REVERTED)
    contract = None if intent.pair is None else intent.pair.contract
    return _Effect("exact") if contract is None else _of_logs(receipt.logs, intent, wire.address(contract))


def _of_logs(logs: Sequence[wire.Log], intent: Intent, contract: str) -> _Effect:
    """Return what a token's logs show: any transfer from the sender but the one asked for is another effect."""
    sender, recipient = wire.address(intent.sender), wire.address(intent.recipient)
    moved = [_transfer(log) for log in logs if _is_transfer(log, contract)]
    sent = [each for each in moved if each[0] == sender]
    if not sent:
        return _Effect("none", NO_TRANSFER)
    if sent == [(sender, recipient, intent.units)]:
        return _Effect("exact")
    left = sum(units or 0 for _, _, units in sent) - sum(units or 0 for _, to, units in moved if to == sender)
    arrived = sum(units or 0 for _, to, units in moved if to == recipient)
    return _Effect(
        "other", OTHER_TRANSFER, left_units=max(0, min(left, WORD_MAX)), arrived_units=min(arrived, WORD_MAX)
    )


def _is_transfer(log: wire.Log, contract: str) -> bool:
    return (
        not log.removed
        and wire.address(log.address) == contract
        and len(log.topics) == ERC20_TOPICS
        and log.topics[0].lower() == TRANSFER_TOPIC
    )


def _transfer(log: wire.Log) -> tuple[str | None, str | None, int | None]:
    """Return sender, recipient and units of a transfer's log; None for what no honest token writes there."""
    units = wire.data(log.data)
    return (
        wire.topic_address(log.topics[1]),
        wire.topic_address(log.topics[2]),
        int.from_bytes(units) if len(units) == wire.WORD_BYTES else None,
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
