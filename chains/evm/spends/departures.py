"""Reads a transaction that one of our keys signed, whole, so that it can be followed like those that we know.

Called by chains.evm.adapter for what a scan found leaving our addresses without a row of ours. Nobody but us can have
signed it: the bytes are put together again and have to give the transaction's id and the sender, so no node can make
one up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from chains.base import Departure, Intent, ProviderError
from chains.evm.nodes import wire
from chains.evm.spends import fate as evm_fate
from chains.evm.spends.tx import TRANSFER_SELECTOR, WORD_DIGITS, account
from core.catalogue.addresses import keccak256

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chains.base import Block
    from chains.evm.nodes.rpc import Rpc
    from core.catalogue.catalogue import Pair

LEGACY: Final = 0
ACCESS_LISTED: Final = 1
TIPPED: Final = 2
_SHORT_MAX: Final = 55
_STRING: Final = 0x80
_LIST: Final = 0xC0


def read(node: Rpc, txid: str, block: Block, tokens: Mapping[str, Pair]) -> Departure | None:
    """Return a transaction that stands in a block; None where its bytes do not prove who signed it.

    Raises ProviderError where the node has it in no block, or in another one.
    """
    body = node.call("eth_getTransactionByHash", [txid], wire.SignedTransaction)
    raw = encode(body)
    sender = wire.address(body.sender)
    if "0x" + keccak256(raw).hex() != txid or _signer(raw) != sender:
        return None
    receipt = node.call("eth_getTransactionReceipt", [txid], evm_fate.PaidReceipt)
    if wire.block_or_tx_hash(receipt.block_hash) != block.hash:
        raise ProviderError(f"a receipt of another block than {block.height}")
    intent, is_transfer = _intent(body, tokens)
    price = wire.quantity(body.max_fee_per_gas or body.gas_price or "0x0")
    return Departure(
        txid=txid,
        intent=intent,
        is_transfer=is_transfer,
        claim=wire.quantity(body.nonce),
        raw=raw,
        gas_limit=wire.quantity(body.gas),
        price_units=price,
        tip_units=wire.quantity(body.max_priority_fee_per_gas or hex(price)),
        is_success=evm_fate.moved_anything(receipt, intent),
        fee_units=evm_fate.fee_of(receipt),
        height=block.height,
        block_hash=block.hash,
    )


def height_of(node: Rpc, sender: str, slot: int, low: int, high: int) -> int:
    """Return the block above `low`, at most `high`, in which a sender used a slot: by his counts at blocks between.

    Raises ProviderError where the node's chain has not used it by then, or where the node has no state of such blocks.
    """
    if used_slots(node, sender, high) <= slot:
        raise ProviderError(f"{sender} had not used slot {slot} by block {high}")
    while high - low > 1:
        middle = (low + high) // 2
        if used_slots(node, sender, middle) > slot:
            high = middle
        else:
            low = middle
    return high


def used_slots(node: Rpc, sender: str, height: int) -> int:
    """Return how many slots a sender has used up to a block. Raises ProviderError where the node has no state of it."""
    return wire.quantity(node.call("eth_getTransactionCount", [sender, hex(height)], str))


def _intent(body: wire.SignedTransaction, tokens: Mapping[str, Pair]) -> tuple[Intent, bool]:
    """Return what a transaction moves, and whether it is a transfer and nothing else."""
    sender, recipient = wire.address(body.sender), wire.address(body.to or "0x" + "00" * 20)
    value, call = wire.quantity(body.value), body.input.lower().removeprefix("0x")
    pair = tokens.get(recipient)
    is_call = call[:8] == TRANSFER_SELECTOR and len(call) == len(TRANSFER_SELECTOR) + 2 * WORD_DIGITS
    if pair is not None and value == 0 and is_call and not int(call[8:32], 16):
        units = int(call[-WORD_DIGITS:], 16)
        return Intent(sender=sender, recipient="0x" + call[32:72], pair=pair, units=units), True
    return Intent(sender=sender, recipient=recipient, pair=None, units=value), not call and body.to is not None


def _signer(raw: bytes) -> str:
    try:
        return wire.address(str(account().recover_transaction(raw)))
    except Exception:  # noqa: BLE001 - of bytes that nobody signed the library may think anything
        return ""


def encode(body: wire.SignedTransaction) -> bytes:
    """Put a transaction's signed bytes together again; empty for a kind that we do not know."""
    kind = wire.quantity(body.type or "0x0")
    terms = [_number(body.gas), wire.data(body.to or "0x"), _number(body.value), wire.data(body.input)]
    signature = [_number(body.r), _number(body.s)]
    if kind == LEGACY:
        return _list([_number(body.nonce), _number(body.gas_price), *terms, _number(body.v), *signature])
    chain, parity = _number(body.chain_id), _number(body.y_parity or body.v)
    access = [[wire.data(e.address), [wire.data(key) for key in e.storage_keys]] for e in body.access_list or ()]
    if kind == ACCESS_LISTED:
        prices = [_number(body.gas_price)]
    elif kind == TIPPED:
        prices = [_number(body.max_priority_fee_per_gas), _number(body.max_fee_per_gas)]
    else:
        return b""
    return bytes([kind]) + _list([chain, _number(body.nonce), *prices, *terms, access, parity, *signature])


def _number(text: str | None) -> bytes:
    value = wire.quantity(text or "0x0")
    return value.to_bytes((value.bit_length() + 7) // 8, "big")


def _list(items: list[object]) -> bytes:
    body = b"".join(_list(item) if isinstance(item, list) else _string(item) for item in items)
    return _head(len(body), _LIST) + body


def _string(item: object) -> bytes:
    if not isinstance(item, bytes):
        raise TypeError("only bytes are encoded")
    return item if len(item) == 1 and item[0] < _STRING else _head(len(item), _STRING) + item


def _head(length: int, base: int) -> bytes:
    if length <= _SHORT_MAX:
        return bytes([base + length])
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([base + _SHORT_MAX + len(size)]) + size
