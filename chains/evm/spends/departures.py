"""Reads a whole transaction that one of our keys signed, so that it can be followed like a recorded spend.

Called by chains.evm.reader for transactions that the scan found leaving our addresses without a row. Its signed bytes
are encoded again and have to give the transaction's id and the sender, so no node can invent one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, Final

from chains.base import AbsentError, Block, NotYetError, ProviderError
from chains.evm import wire
from chains.evm.spends import fate
from chains.evm.spends.library import account, calldata, eth, rlp_list, spelled
from chains.evm.spends.terms import gas_offer
from chains.evm.spends.tx import EIP155_V, TRANSFER
from chains.net.json_rpc import NoResultError, Rpc
from chains.spending import Departure, Output
from core.addresses.evm import keccak256
from core.catalogue.catalogue import Pair

# The signed price fields, by kind of transaction: legacy, with an access list, with a tip.
PRICES: Final = {0: ("gasPrice",), 1: ("gasPrice",), 2: ("maxPriorityFeePerGas", "maxFeePerGas")}
# A selector and two words.
TRANSFER_BYTES: Final = 4 + 2 * wire.WORD_BYTES


def read(node: Rpc, txid: str, block: Block, tokens: Mapping[str, Pair], *, chain_id: int) -> Departure | None:
    """Return a transaction of a block; None if its bytes do not prove who signed it, or that it is for this chain.

    Our addresses are the same on every EVM network, so that a node could show what we signed for another one.

    Raises ProviderError if the node has it in no block or in another one, and AbsentError if the node has the very
    block without it.
    """
    try:
        body: Mapping[str, Any] = eth(node).get_transaction(txid)  # type: ignore[arg-type]
    except NoResultError:
        raise _lack(node, block) from None
    raw = encode(body)
    if "0x" + keccak256(raw).hex() != txid or _signer(raw) != body["from"] or _chain_of(body) != chain_id:
        return None
    receipt = eth(node).get_transaction_receipt(txid)  # type: ignore[arg-type]
    if receipt["blockHash"].to_0x_hex() != block.hash:
        raise ProviderError(f"a receipt of another block than {block.height}")
    sender = body["from"].lower()
    pair, output, is_transfer = _moved(body, tokens)
    effect = fate.effect_of(receipt, sender=sender, pair=pair, output=output).effect
    price, tip = body.get("maxFeePerGas") or body.get("gasPrice") or 0, body.get("maxPriorityFeePerGas")
    return Departure(
        txid=txid,
        sender=sender,
        pair=pair,
        outputs=(output,),
        is_transfer=is_transfer,
        slot=body["nonce"],
        raw=raw,
        offer=gas_offer(gas_limit=body["gas"], price_units=price, tip_units=price if tip is None else tip),
        failed=frozenset() if effect != "none" else frozenset({0}),
        fee_units=fate.fee_of(receipt),
        height=block.height,
        block_hash=block.hash,
    )


def _lack(node: Rpc, block: Block) -> NotYetError:
    """Return the error for a node that lacks a transaction of a block: without the block it may lag."""
    header = node.call_or_none("eth_getBlockByNumber", [hex(block.height), False], wire.Header)
    is_same = header is not None and wire.block(header, block.height).hash == block.hash
    return (AbsentError if is_same else NotYetError)(f"no such transaction in block {block.height}")


def height_of(node: Rpc, sender: str, slot: int, low: int, high: int) -> int:
    """Return the block above `low`, at most `high`, in which a sender used a slot, by bisecting his nonces.

    Raises ProviderError if he had not used it by then, or if the node has no state of such old blocks.
    """
    if fate.nonce(node, sender, high) <= slot:
        raise ProviderError(f"{sender} had not used slot {slot} by block {high}")
    between = range(low + 1, high)
    return low + 1 + bisect_right(between, slot, key=lambda height: fate.nonce(node, sender, height))


def _moved(body: Mapping[str, Any], tokens: Mapping[str, Pair]) -> tuple[Pair | None, Output, bool]:
    """Return the coin and the output of a transaction, and whether it is a plain transfer."""
    to, call = body.get("to"), bytes(body["input"])
    recipient = (to or "0x" + "00" * 20).lower()
    pair = tokens.get(recipient)
    if pair is not None and body["value"] == 0 and len(call) == TRANSFER_BYTES:
        payee, units = "0x" + call[16:36].hex(), int.from_bytes(call[36:])
        if "0x" + call.hex() == calldata(TRANSFER, spelled(payee), units):
            return pair, Output(recipient=payee, units=units), True
    return None, Output(recipient=recipient, units=body["value"]), not call and to is not None


def _signer(raw: bytes) -> str:
    try:
        return str(account().recover_transaction(raw))
    except Exception:  # noqa: BLE001 - on invalid bytes the library may raise anything
        return ""


def _chain_of(body: Mapping[str, Any]) -> int | None:
    """Return the id of the chain that a transaction is signed for; None if any chain would take it."""
    if body.get("type"):
        return int(body.get("chainId") or 0)
    return (body["v"] - EIP155_V) // 2 if body["v"] >= EIP155_V else None


def encode(body: Mapping[str, Any]) -> bytes:
    """Encode a transaction's signed bytes again; empty for an unknown kind.

    body: as web3 returns it.
    """
    kind = body.get("type") or 0
    if kind not in PRICES:
        return b""
    to = bytes.fromhex((body.get("to") or "0x")[2:])
    prices = [body.get(name) or 0 for name in PRICES[kind]]
    terms = [body["nonce"], *prices, body["gas"], to, body["value"], bytes(body["input"])]
    signature = [int.from_bytes(body[part]) for part in ("r", "s")]
    if kind == 0:
        return rlp_list([*terms, body["v"], *signature])
    access = [
        [bytes.fromhex(each["address"][2:]), [bytes.fromhex(key[2:]) for key in each["storageKeys"]]]
        for each in body.get("accessList") or ()
    ]
    parity = body.get("yParity") or body["v"]
    return bytes([kind]) + rlp_list([body.get("chainId") or 0, *terms, access, parity, *signature])
