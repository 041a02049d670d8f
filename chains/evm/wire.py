"""Reads the JSON of EVM nodes: only the fields that we read, and strict hex. Used by the EVM modules.

Decoded by hand, at a twentieth of what web3 takes for a block and its logs: docs/decisions/evm.md.
"""

import re
from datetime import UTC, datetime
from typing import Final, NoReturn

import msgspec

from chains.base import Block, ContradictionError, ProviderError, check_count
from chains.evm.headers import HeaderFields, hash_of

WORD_BYTES: Final = 32
SUCCESS: Final = 1

_QUANTITY: Final = re.compile("0x[0-9a-fA-F]{1,64}")
_HASH: Final = re.compile("0x[0-9a-fA-F]{64}")
_ADDRESS: Final = re.compile("0x[0-9a-fA-F]{40}")
_DATA: Final = re.compile("0x(?:[0-9a-fA-F]{2})*")
_ADDRESS_TOPIC: Final = re.compile("0x0{24}([0-9a-fA-F]{40})")


class Header(HeaderFields, rename="camel", kw_only=True):
    """A block as eth_getBlockByNumber gives it. A pending one has no hash and is refused by type.

    A node that leaves fields out proves nothing.
    """

    number: str
    hash: str
    parent_hash: str
    timestamp: str


class Transaction(msgspec.Struct, rename={"sender": "from", "block_hash": "blockHash", "index": "transactionIndex"}):
    """A transaction; `to` is null when it creates a contract, the place is null before it has one."""

    hash: str
    sender: str
    value: str
    to: str | None = None
    block_hash: str | None = None
    index: str | None = None


class FullBlock(Header, kw_only=True):
    """A block with its transactions."""

    transactions: list[Transaction]


class Log(msgspec.Struct, rename="camel"):
    """An event. log_index counts within the block."""

    address: str
    topics: list[str]
    data: str
    block_hash: str
    transaction_hash: str
    log_index: str
    removed: bool = False
    block_number: str | None = None


class Receipt(msgspec.Struct, rename="camel"):
    """The outcome of a transaction."""

    transaction_hash: str
    block_hash: str
    status: str
    logs: list[Log]
    block_number: str | None = None


def quantity(text: str) -> int:
    """Read a number."""
    if not _QUANTITY.fullmatch(text):
        _refuse("a number", text)
    return int(text, 16)


def height(text: str) -> int:
    """Read a block's number. Raises ContradictionError if no chain is so long."""
    return check_count(quantity(text))


def block_or_tx_hash(text: str) -> str:
    """Read a hash, in lower case."""
    return text.lower() if _HASH.fullmatch(text) else _refuse("a hash", text)


def address(text: str) -> str:
    """Read an address, in its stored form."""
    return text.lower() if _ADDRESS.fullmatch(text) else _refuse("an address", text)


def data(text: str) -> bytes:
    """Read bytes of any length."""
    return bytes.fromhex(text[2:]) if _DATA.fullmatch(text) else _refuse("bytes", text)


def topic_address(text: str) -> str | None:
    """Read the address in a topic; None for a word that is no address, which no honest token writes there."""
    match = _ADDRESS_TOPIC.fullmatch(text) or (None if _HASH.fullmatch(text) else _refuse("a topic", text))
    return "0x" + match[1].lower() if match else None


def block(header: Header, height: int) -> Block:
    """Read a header that was asked for by its height."""
    if quantity(header.number) != height:
        raise ContradictionError(f"asked for block {height}, got {quantity(header.number)}")
    block_hash = block_or_tx_hash(header.hash)
    return Block(
        height=height,
        hash=block_hash,
        parent_height=height - 1,
        parent_hash=block_or_tx_hash(header.parent_hash),
        time=_time(header.timestamp),
        is_proved=proved_hash(header) == block_hash,
    )


def proved_hash(header: Header) -> str | None:
    """Return the hash that a header's fields have; None if they have none."""
    return hash_of(header, parent_hash=header.parent_hash, number=header.number, timestamp=header.timestamp)


def _time(text: str) -> datetime:
    try:
        return datetime.fromtimestamp(quantity(text), UTC)
    except (ValueError, OverflowError, OSError):
        _refuse("a time", text)


def _refuse(wanted: str, text: str) -> NoReturn:
    raise ProviderError(f"not {wanted}: {text[:80]!r}")
