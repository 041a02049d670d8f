"""Asks one node to confirm a deposit that another one showed, or the balance that covers deposits.

Called by chains.evm.reader.
The transaction itself is asked for again; only the recorded deposit is taken over from the first node.
"""

from chains.base import ProviderError, Recorded, Total
from chains.evm import wire
from chains.evm.scan.block import TRANSFER_TOPIC, check_transactions
from chains.evm.scan.internal import balance
from chains.net.json_rpc import Rpc


def is_same(node: Rpc, recorded: Recorded, contract: str | None) -> bool:
    """Return True if a node confirms a deposit. Raises ProviderError if it cannot answer."""
    if not _has_block(node, recorded.height, recorded.block_hash):
        return False
    receipt = node.call_or_none("eth_getTransactionReceipt", [recorded.txid], wire.Receipt)
    if receipt is None or wire.block_or_tx_hash(receipt.block_hash) != recorded.block_hash:
        return False
    is_success = wire.quantity(receipt.status) == wire.SUCCESS
    if wire.block_or_tx_hash(receipt.transaction_hash) != recorded.txid or not is_success:
        return False
    return _pays_coin(node, recorded) if contract is None else _pays_token(receipt, recorded, contract)


def covers(node: Rpc, total: Total) -> bool:
    """Return True if a node's balance covers a total. Raises ProviderError if it cannot answer."""
    if not _has_block(node, total.height, total.block_hash):
        return False
    units = balance(node, total.address, total.block_hash)
    if total.certain_units <= units < total.units:
        raise ProviderError("a payment that waits for witnesses may have used the balance")
    return units >= total.units


def is_listed(node: Rpc, recorded: Recorded) -> bool:
    """Return True if a node's block lists a payment of coin, and no receipt shows that it failed.

    Raises ProviderError if it lacks the block. A block's own list is complete, though a node may have forgotten the
    transaction or not have indexed it yet.
    """
    full = node.call_or_none("eth_getBlockByNumber", [hex(recorded.height), True], wire.FullBlock)
    block = None if full is None else wire.block(full, recorded.height)
    if full is None or block is None or block.hash != recorded.block_hash:
        raise ProviderError(f"no such block {recorded.height}")
    check_transactions(full, block)
    return any(_is_payment(each, recorded) for each in full.transactions) and not _has_failed(node, recorded)


def _has_block(node: Rpc, height: int, block_hash: str) -> bool:
    header = node.call_or_none("eth_getBlockByNumber", [hex(height), False], wire.Header)
    if header is None:
        raise ProviderError(f"block {height} is not there yet")
    return wire.block(header, height).hash == block_hash


def _pays_coin(node: Rpc, recorded: Recorded) -> bool:
    tx = node.call_or_none("eth_getTransactionByHash", [recorded.txid], wire.Transaction)
    return (
        tx is not None
        and tx.block_hash is not None
        and wire.block_or_tx_hash(tx.block_hash) == recorded.block_hash
        and _is_payment(tx, recorded)
    )


def _is_payment(tx: wire.Transaction, recorded: Recorded) -> bool:
    return (
        tx.to is not None
        and wire.block_or_tx_hash(tx.hash) == recorded.txid
        and wire.address(tx.to) == recorded.recipient
        and wire.quantity(tx.value) == recorded.units
    )


def _has_failed(node: Rpc, recorded: Recorded) -> bool:
    receipt = node.call_or_none("eth_getTransactionReceipt", [recorded.txid], wire.Receipt)
    return (
        receipt is not None
        and wire.block_or_tx_hash(receipt.transaction_hash) == recorded.txid
        and wire.block_or_tx_hash(receipt.block_hash) == recorded.block_hash
        and wire.quantity(receipt.status) != wire.SUCCESS
    )


def _pays_token(receipt: wire.Receipt, recorded: Recorded, contract: str) -> bool:
    place = int(recorded.ordinal)
    if place >= len(receipt.logs):
        return False
    log = receipt.logs[place]
    return (
        wire.address(log.address) == contract
        and len(log.topics) == 3  # noqa: PLR2004 - Transfer, sender, recipient
        and log.topics[0].lower() == TRANSFER_TOPIC
        and wire.topic_address(log.topics[2]) == recorded.recipient
        and int.from_bytes(wire.data(log.data), "big") == recorded.units
    )
