"""Reads the JSON of TRON's nodes: only the fields that we use, and strict hex. Used by the TRON modules.

Nodes leave out zeros and empty values, so almost every field has a default. Required fields have none.
"""

import functools
import hashlib
import re
from datetime import UTC, datetime
from typing import Annotated, Final, NoReturn

import msgspec

from chains.base import COUNT_MAX, Block, ContradictionError, NotYetError, ProviderError
from core.addresses import base58

SUCCESS: Final = "SUCCESS"
TRANSFER: Final = "TransferContract"
TRIGGER: Final = "TriggerSmartContract"
CREATE: Final = "CreateSmartContract"
# A balance or a fee, in sun.
Sun = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Height = Annotated[int, msgspec.Meta(ge=0, le=COUNT_MAX)]
WORD_BYTES: Final = 32
ADDRESS_BYTES: Final = 21
# The first byte of each address.
PREFIX: Final = b"\x41"
# The kinds of internal transactions that bring TRX to an existing address: a call, or a contract's self-destruction.
PAYMENTS: Final = frozenset({"call", "suicide"})
# The hash of Transfer(address,address,uint256).
TRANSFER_TOPIC: Final = "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
TOKEN_TOPICS: Final = 3

_HASH: Final = re.compile("[0-9a-f]{64}")
_ADDRESS: Final = re.compile("41[0-9a-f]{40}")
_CONTRACT: Final = re.compile("(?:41)?([0-9a-f]{40})")
_DATA: Final = re.compile("(?:[0-9a-f]{2})*")
_ADDRESS_TOPIC: Final = re.compile("[0-9a-f]{24}([0-9a-f]{40})")
# The first digits of a block's id, which are its number.
_NUMBER_DIGITS: Final = 16
_VARINT_BITS: Final = 0x7F


class RawHeader(msgspec.Struct):
    """The part of a block's header that its witness signs. Nodes leave out every field of the first block's."""

    number: int = 0
    parent_hash: str = msgspec.field(default="0" * 64, name="parentHash")
    timestamp: int = 0
    tx_root: str = msgspec.field(default="", name="txTrieRoot")
    witness_id: int = 0
    witness_address: str = ""
    version: int = 0
    state_root: str = msgspec.field(default="", name="accountStateRoot")


class BlockHeader(msgspec.Struct):
    """A block's header."""

    raw_data: RawHeader


class Header(msgspec.Struct, kw_only=True):
    """A block without its transactions. An empty id means that the block does not exist yet."""

    id: str = msgspec.field(default="", name="blockID")
    header: BlockHeader | None = msgspec.field(default=None, name="block_header")


class Value(msgspec.Struct):
    """The fields of a contract that a transfer has. In contracts of other types the amount is not TRX."""

    owner_address: str = ""
    to_address: str = ""
    amount: int = 0


class Parameter(msgspec.Struct):
    """The wrapper of a contract's value."""

    value: Value


class Contract(msgspec.Struct):
    """The action of a transaction; each has exactly one."""

    type: str
    parameter: Parameter


class RawData(msgspec.Struct):
    """The signed part of a transaction."""

    contract: list[Contract]


class Ret(msgspec.Struct):
    """The result of a transaction."""

    contract_ret: str = msgspec.field(default="", name="contractRet")


class Transaction(msgspec.Struct):
    """A transaction in its block."""

    id: str = msgspec.field(name="txID")
    raw_data: RawData
    raw_data_hex: str = ""
    ret: list[Ret] = []
    signature: list[str] = []

    @property
    def is_success(self) -> bool:
        """Return True if the transaction was carried out."""
        return [each.contract_ret for each in self.ret] == [SUCCESS]


class FullBlock(Header, kw_only=True):
    """A block with its transactions."""

    transactions: list[Transaction] = []


class Log(msgspec.Struct):
    """An event. The address of its contract has no prefix."""

    address: str
    topics: list[str] = []
    data: str = ""


class CallValue(msgspec.Struct):
    """The value of an internal call: TRX, or TRC-10 if it names a token."""

    # May be negative in a refused staking.
    units: int = msgspec.field(default=0, name="callValue")
    token: str | int = msgspec.field(default="", name="tokenId")


class Internal(msgspec.Struct):
    """An internal transaction, made by a contract."""

    caller_address: str
    to_address: str = msgspec.field(default="", name="transferTo_address")
    values: list[CallValue] = msgspec.field(default_factory=list, name="callValueInfo")
    # Its kind, which most nodes write in hexadecimal digits.
    note: str = ""
    rejected: bool = False

    @property
    def is_payment(self) -> bool:
        """Return True if its TRX reached the address that it names.

        Staking names the address that it serves, with the staked amount; that address never receives the amount.
        """
        return words(self.note) in PAYMENTS and not self.rejected


class Receipt(msgspec.Struct):
    """The receipt of a transaction. Only calls have a result."""

    result: str = ""


class Info(msgspec.Struct):
    """The outcome of a transaction. An empty id means that the node does not know it."""

    id: str = ""
    height: Height = msgspec.field(default=0, name="blockNumber")
    fee: Sun = 0
    receipt: Receipt = msgspec.field(default_factory=Receipt)
    log: list[Log] = []
    internal: list[Internal] = msgspec.field(default_factory=list, name="internal_transactions")
    result: str = ""


def words(text: str) -> str:
    """Return a node's text, which most nodes write in hexadecimal digits."""
    try:
        return bytes.fromhex(text).decode(errors="replace")
    except ValueError:
        return text


def stored(text: str) -> str:
    """Return the stored form of an address in hexadecimal digits."""
    return _spelled(text.lower()) if _ADDRESS.fullmatch(text.lower()) else _refuse("an address", text)


@functools.lru_cache(maxsize=65_536)
def _spelled(digits: str) -> str:
    """Return the stored form. Cached, since busy addresses recur."""
    return base58.encode_checked(bytes.fromhex(digits))


def raw_address(address: str) -> bytes:
    """Return the 21 bytes of an address in its stored form. Raises ValueError if it is invalid."""
    raw = base58.decode_checked(address)
    if raw is None:
        raise ValueError(f"no address: {address}")
    return raw


def asked(address: str) -> str:
    """Return a stored address in the form that requests to nodes use."""
    return raw_address(address).hex()


def word(address: str) -> str:
    """Return a stored address as an argument of a contract: its last 20 bytes in a word."""
    return raw_address(address)[1:].hex().rjust(2 * WORD_BYTES, "0")


def contract(text: str) -> str:
    """Return the address of a log's contract, without the prefix that only some nodes write."""
    match = _CONTRACT.fullmatch(text.lower())
    return match[1] if match else _refuse("a contract's address", text)


def topic_address(text: str) -> str | None:
    """Return the address in a topic; None if it is not one, which no honest token writes there."""
    match = _ADDRESS_TOPIC.fullmatch(text.lower())
    return _spelled(PREFIX.hex() + match[1]) if match else None


def a_hash(text: str) -> str:
    """Read a hash."""
    return text.lower() if _HASH.fullmatch(text.lower()) else _refuse("a hash", text)


def data(text: str) -> bytes:
    """Read bytes of any length."""
    return bytes.fromhex(text) if _DATA.fullmatch(text.lower()) else _refuse("bytes", text)


def block(header: Header, height: int) -> Block:
    """Return a header that was asked for by its height; its id holds the height too. NotYetError if it is missing."""
    if not header.id or header.header is None:
        raise NotYetError(f"no block {height} yet")
    raw, block_hash = header.header.raw_data, a_hash(header.id)
    if raw.number != height or int(block_hash[:_NUMBER_DIGITS], 16) != height:
        raise ContradictionError(f"asked for block {height}, got {raw.number}")
    return Block(
        height=height,
        hash=block_hash,
        parent_height=height - 1,
        parent_hash=a_hash(raw.parent_hash),
        time=moment(raw.timestamp),
        is_proved=_is_proved(raw, block_hash),
    )


def _is_proved(raw: RawHeader, block_id: str) -> bool:
    """Return True if a block's id is the hash of its header, whose first bytes the height replaces."""
    try:
        message = (
            _field(1, raw.timestamp)
            + _field(2, bytes.fromhex(raw.tx_root))
            + _field(3, bytes.fromhex(raw.parent_hash))
            + _field(7, raw.number)
            + _field(8, raw.witness_id)
            + _field(9, bytes.fromhex(raw.witness_address))
            + _field(10, raw.version)
            + _field(11, bytes.fromhex(raw.state_root))
        )
    except ValueError:
        return False
    return hashlib.sha256(message).hexdigest()[_NUMBER_DIGITS:] == block_id[_NUMBER_DIGITS:]


def _field(number: int, value: int | bytes) -> bytes:
    """Return a field of a protobuf message; no bytes for zero or empty. Raises ValueError for a negative number."""
    if not value:
        return b""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    if value < 0:
        raise ValueError("less than zero")
    raw = bytearray()
    while value > _VARINT_BITS:
        raw.append(value & _VARINT_BITS | 0x80)
        value >>= 7
    return bytes([*raw, value])


def newest(header: Header) -> Block:
    """Return a header that was asked for as the newest one."""
    return block(header, 0 if header.header is None else header.header.raw_data.number)


def moment(milliseconds: int) -> datetime:
    """Read a time."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        _refuse("a time", str(milliseconds))


def _refuse(wanted: str, text: str) -> NoReturn:
    raise ProviderError(f"not {wanted}: {text[:80]!r}")
