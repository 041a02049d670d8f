"""How a node writes blocks, transactions and receipts in JSON. Used by cli.embedded.eth_tester_rpc."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def as_hex(value: bytes) -> str:
    """Write bytes."""
    return "0x" + value.hex()


def block_json(block: Any, *, full: bool) -> Json:
    """Write a block, with its transactions or their ids."""
    header = block.header
    found = [transaction_json(transaction, block, index) for index, transaction in enumerate(block.transactions)]
    return {
        "number": hex(header.block_number),
        "hash": as_hex(header.hash),
        "parentHash": as_hex(header.parent_hash),
        "timestamp": hex(header.timestamp),
        "logsBloom": as_hex(header.bloom.to_bytes(256, "big")),
        "stateRoot": as_hex(header.state_root),
        "receiptsRoot": as_hex(header.receipt_root),
        "transactionsRoot": as_hex(header.transaction_root),
        "miner": as_hex(header.coinbase),
        "gasLimit": hex(header.gas_limit),
        "gasUsed": hex(header.gas_used),
        "baseFeePerGas": hex(header.base_fee_per_gas),
        "transactions": found if full else [transaction["hash"] for transaction in found],
    }


def transaction_json(transaction: Any, block: Any | None, index: int | None) -> Json:
    """Write a transaction; without a block it is one that waits."""
    return {
        "hash": as_hex(transaction.hash),
        "from": as_hex(transaction.sender),
        "to": as_hex(transaction.to) if transaction.to else None,
        "value": hex(transaction.value),
        "nonce": hex(transaction.nonce),
        "gas": hex(transaction.gas),
        "maxFeePerGas": hex(transaction.max_fee_per_gas),
        "maxPriorityFeePerGas": hex(transaction.max_priority_fee_per_gas),
        "input": as_hex(transaction.data),
        "blockHash": None if block is None else as_hex(block.hash),
        "blockNumber": None if block is None else hex(block.number),
        "transactionIndex": None if index is None else hex(index),
    }


def receipts_json(block: Any, receipts: list[Any]) -> list[Json]:
    """Write all receipts of a block: gas and places of logs count through it."""
    written = []
    gas_before = logs_before = 0
    for index, (transaction, receipt) in enumerate(zip(block.transactions, receipts, strict=True)):
        tip = min(transaction.max_priority_fee_per_gas, transaction.max_fee_per_gas - block.header.base_fee_per_gas)
        place = {
            "transactionHash": as_hex(transaction.hash),
            "transactionIndex": hex(index),
            "blockHash": as_hex(block.hash),
            "blockNumber": hex(block.number),
        }
        written.append(
            {
                **place,
                "from": as_hex(transaction.sender),
                "to": as_hex(transaction.to) if transaction.to else None,
                "status": hex(int.from_bytes(receipt.state_root, "big")),
                "cumulativeGasUsed": hex(receipt.gas_used),
                "gasUsed": hex(receipt.gas_used - gas_before),
                "effectiveGasPrice": hex(block.header.base_fee_per_gas + tip),
                "logs": [
                    {
                        **place,
                        "address": as_hex(log.address),
                        "topics": [as_hex(topic.to_bytes(32, "big")) for topic in log.topics],
                        "data": as_hex(log.data),
                        "logIndex": hex(logs_before + number),
                        "removed": False,
                    }
                    for number, log in enumerate(receipt.logs)
                ],
            }
        )
        gas_before = receipt.gas_used
        logs_before += len(receipt.logs)
    return written


def matches(log: Json, wanted: Json) -> bool:
    """Return whether a log is what eth_getLogs was asked for: addresses, and topics by place."""
    addresses = wanted.get("address")
    if addresses is not None:
        accepted = [addresses] if isinstance(addresses, str) else addresses
        if log["address"] not in {address.lower() for address in accepted}:
            return False
    for place, topic in enumerate(wanted.get("topics") or []):
        if topic is None:
            continue
        options = [topic] if isinstance(topic, str) else topic
        if place >= len(log["topics"]) or log["topics"][place] not in {option.lower() for option in options}:
            return False
    return True
