"""Reads transactions as bytes: keys, version, price, memos. Used by the whole simulator."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

from solders.message import MessageV0, MessageV1, VersionedMessage, from_bytes_versioned
from solders.pubkey import Pubkey
from solders.transaction import Legacy, VersionedTransaction

from devstack.solana.programs import MEMO, price_of

SIZE_MAX: Final = 1_232
# A transaction of version 1 may be longer.
V1_SIZE_MAX: Final = 4_096
V1: Final = 1
LEGACY: Final = "legacy"
_TYPE: Final = "solana_transaction::versioned::VersionedTransaction"


class MalformedError(ValueError):
    """Bytes or a text that cannot be decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The addresses that a transaction takes from lookup tables."""

    writable: tuple[Pubkey, ...] = ()
    readonly: tuple[Pubkey, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Signed:
    """A transaction as received."""

    raw: bytes
    transaction: VersionedTransaction

    @property
    def message(self) -> VersionedMessage:
        """Return the signed part."""
        return self.transaction.message

    @functools.cached_property
    def signature(self) -> str:
        """Return the first signature, which is the transaction's id."""
        return str(self.transaction.signatures[0])

    @functools.cached_property
    def version(self) -> int | str:
        """Return its version, as nodes show it."""
        version = self.transaction.version()
        return LEGACY if version == Legacy.Legacy else int(str(version))

    @property
    def blockhash(self) -> str:
        """Return the hash of the block from which its life counts."""
        return str(self.message.recent_blockhash)

    @functools.cached_property
    def price(self) -> int:
        """Return the offered price of a compute unit, in millionths of a lamport."""
        if isinstance(self.message, MessageV1):
            fee, limit = self.message.config.priority_fee or 0, self.message.config.compute_unit_limit or 200_000
            return fee * 1_000_000 // limit
        prices = [price_of(program, data) for program, data in self._calls()]
        return next((price for price in prices if price is not None), 0)

    @functools.cached_property
    def memo(self) -> str | None:
        """Return its memos as nodes list them."""
        texts = [data.decode(errors="replace") for program, data in self._calls() if program == MEMO]
        return "; ".join(f"[{len(text.encode())}] {text}" for text in texts) or None

    def is_writable(self, place: int) -> bool:
        """Return True if it may change the account at this place of its own keys."""
        header = self.message.header
        signers, keys = header.num_required_signatures, len(self.message.account_keys)
        if place < signers:
            return place < signers - header.num_readonly_signed_accounts
        return place < keys - header.num_readonly_unsigned_accounts

    def _calls(self) -> list[tuple[Pubkey, bytes]]:
        keys = self.message.account_keys
        return [(keys[one.program_id_index], bytes(one.data)) for one in self.message.instructions]


def read_transaction(raw: bytes) -> Signed:
    """Return a transaction. Raises MalformedError."""
    try:
        transaction = VersionedTransaction.from_bytes(raw)
        transaction.sanitize()
    except Exception as error:
        raise MalformedError(f"failed to deserialize {_TYPE}: {error}") from error
    if bytes(transaction) != raw:
        raise MalformedError(f"failed to deserialize {_TYPE}: trailing bytes")
    signed = Signed(raw=raw, transaction=transaction)
    size_max = V1_SIZE_MAX if signed.version == V1 else SIZE_MAX
    if len(raw) > size_max:
        raise MalformedError(f"decoded {_TYPE} too large: {len(raw)} bytes (max: {size_max} bytes)")
    return signed


def read_message(raw: bytes) -> VersionedMessage:
    """Return the part of a transaction that is signed. Raises MalformedError."""
    try:
        return from_bytes_versioned(raw)
    except Exception as error:
        raise MalformedError(f"failed to deserialize solana_message::versions::VersionedMessage: {error}") from error


def lookups_of(message: VersionedMessage) -> list[tuple[Pubkey, bytes, bytes]]:
    """Return each lookup table with the places of writable and readonly addresses in it."""
    if not isinstance(message, MessageV0):
        return []
    return [
        (one.account_key, bytes(one.writable_indexes), bytes(one.readonly_indexes))
        for one in message.address_table_lookups
    ]
