"""Asks what one node says about a deposit that another one showed: the same, or something else.

Called by chains.evm.reader.
The transaction itself is asked for anew; nothing that the first node said is taken over but the sighting.
"""

from chains.base import NATIVE, ProviderError, Sighting
from chains.evm import wire
from chains.evm.scan.block import TRANSFER_TOPIC
from chains.evm.scan.internal import balance
from chains.net.json_rpc import Rpc


def is_same(node: Rpc, sighting: Sighting, contract: str | None) -> bool:
    """Return whether a node tells the same of a deposit. Raises ProviderError if it cannot tell at all."""
    header = node.call_or_none("eth_getBlockByNumber", [hex(sighting.height), False], wire.Header)
    if header is None:
        raise ProviderError(f"block {sighting.height} is not there yet")
    block = wire.block(header, sighting.height)
    if block.hash != sighting.block_hash:
        return False
    if contract is None and sighting.ordinal != NATIVE:
        before = balance(node, sighting.recipient, block.parent_hash)
        return balance(node, sighting.recipient, block.hash) - before >= sighting.units
    receipt = node.call_or_none("eth_getTransactionReceipt", [sighting.txid], wire.Receipt)
    if receipt is None or wire.block_or_tx_hash(receipt.block_hash) != sighting.block_hash:
        return False
    is_success = wire.quantity(receipt.status) == wire.SUCCESS
    if wire.block_or_tx_hash(receipt.transaction_hash) != sighting.txid or not is_success:
        return False
    return _pays_coin(node, sighting) if contract is None else _pays_token(receipt, sighting, contract)


def _pays_coin(node: Rpc, sighting: Sighting) -> bool:
    found = node.call_or_none("eth_getTransactionByHash", [sighting.txid], wire.Transaction)
    return (
        found is not None
        and found.to is not None
        and found.block_hash is not None
        and wire.block_or_tx_hash(found.hash) == sighting.txid
        and wire.block_or_tx_hash(found.block_hash) == sighting.block_hash
        and wire.address(found.to) == sighting.recipient
        and wire.quantity(found.value) == sighting.units
    )


def _pays_token(receipt: wire.Receipt, sighting: Sighting, contract: str) -> bool:
    place = int(sighting.ordinal)
    if place >= len(receipt.logs):
        return False
    log = receipt.logs[place]
    return (
        wire.address(log.address) == contract
        and len(log.topics) == 3  # noqa: PLR2004 - Transfer, sender, recipient
        and log.topics[0].lower() == TRANSFER_TOPIC
        and wire.topic_address(log.topics[2]) == sighting.recipient
        and int.from_bytes(wire.data(log.data), "big") == sighting.units
    )
