"""Finds the fate of a spend: in a block and with which effect, waiting, or overtaken for good.

Called by chains.evm.spends.spender.
Each node reports the fate on its own chain; then the answers are compared. A verdict that releases money (no effect,
dead) takes two providers, where there are two: a lie must not pay a merchant twice. So does an effect other than the
intended one, which stops the coin's payouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from chains.base import UNITS_MAX, ProviderError, check_count, witnesses_needed
from chains.evm import wire
from chains.evm.scan.block import ERC20_TOPICS, TRANSFER_TOPIC
from chains.evm.spends.library import eth, spelled
from chains.net.json_rpc import JsonRpc, NoResultError, Rpc
from chains.one_transfer import living, only_output
from chains.spending import Fate, FateKind, Intent, Output, OutputFate
from core.catalogue.catalogue import Pair

if TYPE_CHECKING:
    from web3.types import LogReceipt, TxReceipt

REVERTED: Final = "the transaction was reverted"
OUT_OF_GAS: Final = "the transaction ran out of gas"
NO_TRANSFER: Final = "the token did not make the transfer"
OTHER_TRANSFER: Final = "the token moved something else than was asked for"


def testimony(node: JsonRpc, intent: Intent, *, slot: int, txids: Sequence[str], depth: int) -> Fate:
    """Return a spend's fate on one node's chain; see chains.family.Spender. ProviderError if the node cannot answer."""
    inclusion = _inclusion(node, intent, txids)
    if inclusion is not None:
        return inclusion
    if not _is_slot_used(node, intent.wallet.address, slot, depth):
        return Fate(kind=FateKind.WAITING)
    # Our attempt may have been included between the two questions.
    return _inclusion(node, intent, txids) or Fate(kind=FateKind.DEAD, cause="claim_used")


def judge(fates: Sequence[Fate], providers: int, *, is_fee_one: bool) -> Fate:
    """Return a spend's fate from all nodes' answers. Raises ProviderError if they contradict each other.

    is_fee_one: all nodes report the same fee. On rollups some leave out the cost of data, and the higher fee counts.
    """
    needed = witnesses_needed(providers)
    verdict = living(fates, needed=needed, is_fee_one=is_fee_one)
    if verdict is None and len(fates) < needed:
        raise ProviderError("one provider alone says that another transaction took the spend's place")
    return verdict or Fate(kind=FateKind.DEAD, cause="claim_used")


def _inclusion(node: JsonRpc, intent: Intent, txids: Sequence[str]) -> Fate | None:
    fates = [fate for txid in txids if (fate := _proved(node, intent, txid)) is not None]
    if len(fates) > 1:
        raise ProviderError("two transactions with one nonce are included")
    return fates[0] if fates else None


def _proved(node: JsonRpc, intent: Intent, txid: str) -> Fate | None:
    try:
        receipt = eth(node).get_transaction_receipt(txid)  # type: ignore[arg-type]
    except NoResultError:
        return None
    if receipt.get("blockNumber") is None:
        return None
    if receipt["transactionHash"].to_0x_hex() != txid:
        raise ProviderError("a receipt of another transaction")
    height, block_hash = receipt["blockNumber"], receipt["blockHash"].to_0x_hex()
    header = node.call_or_none("eth_getBlockByNumber", [hex(height), False], wire.Header)
    if header is None or wire.block(header, height).hash != block_hash:
        return None
    output = effect_of(receipt, sender=intent.wallet.address, pair=intent.pair, output=only_output(intent))
    if output.problem == REVERTED and receipt["gasUsed"] == eth(node).get_transaction(txid)["gas"]:  # type: ignore[arg-type]
        output = OutputFate(effect="none", problem=OUT_OF_GAS)
    return Fate(
        kind=FateKind.INCLUDED,
        txid=txid,
        height=height,
        block_hash=block_hash,
        outputs=(output,),
        fee_units=fee_of(receipt),
    )


def fee_of(receipt: TxReceipt) -> int:
    """Return the fee that the chain took for a transaction, in wei."""
    # web3 does not parse the fee that rollups add.
    return receipt["gasUsed"] * receipt["effectiveGasPrice"] + wire.quantity(str(receipt.get("l1Fee") or "0x0"))


def effect_of(receipt: TxReceipt, *, sender: str, pair: Pair | None, output: Output) -> OutputFate:
    """Return the effect of a transaction that was to make a transfer."""
    if receipt["status"] != wire.SUCCESS:
        return OutputFate(effect="none", problem=REVERTED)
    contract = None if pair is None else pair.contract
    if contract is None:
        return OutputFate(effect="exact")
    return _of_logs(receipt["logs"], wire.address(sender), output, wire.address(contract))


def _of_logs(logs: Sequence[LogReceipt], sender: str, output: Output, contract: str) -> OutputFate:
    """Return the effect by a token's logs. Any other transfer from the sender than the intended one is "other"."""
    recipient = wire.address(output.recipient)
    moved = [_transfer(log) for log in logs if _is_transfer(log, contract)]
    sent = [each for each in moved if each[0] == sender]
    if not sent:
        return OutputFate(effect="none", problem=NO_TRANSFER)
    if sent == [(sender, recipient, output.units)]:
        return OutputFate(effect="exact")
    left = sum(units or 0 for _, _, units in sent) - sum(units or 0 for _, to, units in moved if to == sender)
    arrived = sum(units or 0 for _, to, units in moved if to == recipient)
    return OutputFate(
        effect="other",
        left_units=max(0, min(left, UNITS_MAX)),
        arrived_units=min(arrived, UNITS_MAX),
        problem=OTHER_TRANSFER,
    )


def _is_transfer(log: LogReceipt, contract: str) -> bool:
    return (
        not log.get("removed")
        and log["address"].lower() == contract
        and len(log["topics"]) == ERC20_TOPICS
        and log["topics"][0].to_0x_hex() == TRANSFER_TOPIC
    )


def _transfer(log: LogReceipt) -> tuple[str | None, str | None, int | None]:
    """Return sender, recipient and units of a transfer's log; None for a value that no honest token writes.

    Not parsed by web3, which leaves out a log that it cannot decode; here that is another effect.
    """
    sender, recipient = (wire.topic_address(topic.to_0x_hex()) for topic in log["topics"][1:])
    return sender, recipient, int.from_bytes(log["data"]) if len(log["data"]) == wire.WORD_BYTES else None


def _is_slot_used(node: JsonRpc, sender: str, slot: int, depth: int) -> bool:
    """Return True if the nonce was used `depth` blocks deep. A node without old states raises ProviderError."""
    if nonce(node, sender) <= slot:
        return False
    height = eth(node).block_number - depth + 1
    return height >= 0 and nonce(node, sender, height) > slot


def nonce(node: Rpc, sender: str, at: Any = "latest") -> int:
    """Return the number of a sender's transactions on a node's chain, up to a height or a tag."""
    return check_count(eth(node).get_transaction_count(spelled(sender), at))
