"""What one node says about a deposit that another one showed: the same, or something else.

Called by chains.evm.adapter.
The transaction itself is asked for anew; nothing that the first node said is taken over but the claim.
"""

from chains.base import NATIVE, Claim, ProviderError
from chains.evm.nodes import wire
from chains.evm.nodes.rpc import Rpc
from chains.evm.scan.block import TRANSFER_TOPIC
from chains.evm.scan.internal import balance


def is_same(node: Rpc, claim: Claim, contract: str | None) -> bool:
    """Return whether a node tells the same of a deposit. Raises ProviderError where it cannot tell at all."""
    header = node.call_or_none("eth_getBlockByNumber", [hex(claim.height), False], wire.Header)
    if header is None:
        raise ProviderError(f"block {claim.height} is not there yet")
    block = wire.block(header, claim.height)
    if block.hash != claim.block_hash:
        return False
    if contract is None and claim.ordinal != NATIVE:
        before = balance(node, claim.recipient, block.parent_hash)
        return balance(node, claim.recipient, block.hash) - before >= claim.units
    receipt = node.call_or_none("eth_getTransactionReceipt", [claim.txid], wire.Receipt)
    if receipt is None or wire.block_or_tx_hash(receipt.block_hash) != claim.block_hash:
        return False
    if wire.block_or_tx_hash(receipt.transaction_hash) != claim.txid or wire.quantity(receipt.status) != wire.SUCCESS:
        return False
    return _pays_coin(node, claim) if contract is None else _pays_token(receipt, claim, contract)


def _pays_coin(node: Rpc, claim: Claim) -> bool:
    found = node.call_or_none("eth_getTransactionByHash", [claim.txid], wire.Transaction)
    return (
        found is not None
        and found.to is not None
        and found.block_hash is not None
        and wire.block_or_tx_hash(found.hash) == claim.txid
        and wire.block_or_tx_hash(found.block_hash) == claim.block_hash
        and wire.address(found.to) == claim.recipient
        and wire.quantity(found.value) == claim.units
    )


def _pays_token(receipt: wire.Receipt, claim: Claim, contract: str) -> bool:
    place = int(claim.ordinal)
    if place >= len(receipt.logs):
        return False
    log = receipt.logs[place]
    return (
        wire.address(log.address) == contract
        and len(log.topics) == 3  # noqa: PLR2004 - Transfer, sender, recipient
        and log.topics[0].lower() == TRANSFER_TOPIC
        and wire.topic_address(log.topics[2]) == claim.recipient
        and int.from_bytes(wire.data(log.data), "big") == claim.units
    )
