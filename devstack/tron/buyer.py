"""Pays from a key like any wallet: builds, signs and sends transactions as bytes. Used by devstack.tron.chain."""

from __future__ import annotations

import secrets
from typing import Final

import msgspec
from eth_keys.datatypes import PrivateKey

from chains.base import ProviderError
from chains.net.rest import RestNode
from core.addresses.evm import keccak256
from core.catalogue.catalogue import Pair
from devstack.tron import wire

LIFE_MS: Final = 600_000
FEE_LIMIT: Final = 100_000_000
WORD_BYTES: Final = 32


class _RawHeader(msgspec.Struct):
    timestamp: int = 0


class _Header(msgspec.Struct):
    raw_data: _RawHeader


class _Block(msgspec.Struct):
    id: str = msgspec.field(name="blockID")
    header: _Header = msgspec.field(name="block_header")


class _Taken(msgspec.Struct):
    result: bool = False
    code: str = ""
    txid: str = ""


class Buyer:
    """A wallet of one key in hex."""

    def __init__(self, key: str) -> None:
        self._key = PrivateKey(bytes.fromhex(key.removeprefix("0x")))
        self._raw = self._key.public_key.to_canonical_address()
        self.address = wire.shown(self._raw)

    def pay(self, node: RestNode, pair: Pair, *, to: str, units: int) -> str:
        """Send TRX or a token, and return the transaction's id. Raises ProviderError."""
        recipient = wire.raw_of(to)
        if pair.contract is None:
            return self._send(node, wire.transfer(self._raw, recipient, units))
        data = calldata("transfer(address,uint256)", recipient, units)
        return self._send(node, wire.call(self._raw, wire.raw_of(pair.contract), data), fee_limit=FEE_LIMIT)

    def sign(self, raw: bytes) -> bytes:
        """Return the signed transaction of these raw bytes."""
        digest = bytes.fromhex(wire.read_raw(raw).txid)
        return wire.field(1, raw) + wire.field(2, self._key.sign_msg_hash(digest).to_bytes())

    def _send(self, node: RestNode, contract: bytes, *, fee_limit: int = 0) -> str:
        solid = node.ask("walletsolidity/getnowblock", {}, _Block)
        now_ms = node.ask("wallet/getnowblock", {}, _Block).header.raw_data.timestamp
        raw = wire.raw_data(
            contract, block_id=solid.id, now_ms=now_ms, expiration_ms=now_ms + LIFE_MS, fee_limit=fee_limit
        )
        answer = node.ask("wallet/broadcasthex", {"transaction": self.sign(raw).hex()}, _Taken)
        if not answer.result:
            raise ProviderError(f"the payment was not taken: {answer.code}")
        return answer.txid


def calldata(signature: str, *words: bytes | int) -> bytes:
    """Return the data of a call whose arguments are single words: addresses in bytes, and numbers."""
    encoded = (word if isinstance(word, bytes) else word.to_bytes(WORD_BYTES, "big") for word in words)
    return keccak256(signature.encode())[:4] + b"".join(word.rjust(WORD_BYTES, b"\0") for word in encoded)


def new_address() -> str:
    """Return a new address whose key is discarded: receiving needs none."""
    return wire.shown(secrets.token_bytes(wire.ADDRESS_BYTES))
