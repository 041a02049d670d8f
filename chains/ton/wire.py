"""Reads the JSON of toncenter's interface, second version: only the fields that we use. Used by the TON modules.

A page of a block has megabytes, so its shapes hold as little as possible. Hashes and cells are bytes in base64, shards
signed numbers of 64 bits as texts.
"""

import base64
import binascii
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Final, NoReturn

import msgspec

from chains.base import COUNT_MAX, Block, ContradictionError, check_units
from core.addresses import ton

MASTERCHAIN: Final = -1
BASECHAIN: Final = 0
# The shard of all accounts, as this interface writes it.
WHOLE: Final = str(-(1 << 63))
HASH_BYTES: Final = 32

Seqno = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
Seconds = Annotated[int, msgspec.Meta(ge=0, le=COUNT_MAX)]
# The digits of a signed number of 64 bits.
NUMBER_CHARS_MAX: Final = 20
_SHARDS: Final = 1 << 64


class BlockId(msgspec.Struct, frozen=True, gc=False):
    """The id of a block. Equal ids are of one block."""

    workchain: int
    shard: str
    seqno: Seqno
    root_hash: str
    file_hash: str

    @property
    def prefix(self) -> int:
        """Return the shard as an unsigned number: the first bits of its accounts, a one, and zeros."""
        return number(self.shard) % _SHARDS


class MasterchainInfo(msgspec.Struct):
    """The newest block of the masterchain, and the state from which the chain began."""

    last: BlockId
    init: BlockId


class Shards(msgspec.Struct):
    """The newest block of each shard that a block of the masterchain names."""

    shards: list[BlockId]


class Header(msgspec.Struct):
    """The header of a block, of the masterchain or of a shard."""

    id: BlockId
    gen_utime: Seconds
    end_lt: str
    prev_blocks: list[BlockId]


class TransactionId(msgspec.Struct, frozen=True, gc=False):
    """The logical time and the hash of a transaction."""

    lt: str
    hash: str


class Entry(msgspec.Struct, gc=False):
    """A transaction: its cells, and its id as the node names it."""

    data: str
    transaction_id: TransactionId


class Page(msgspec.Struct):
    """Some of a block's transactions. incomplete: whether the block has more after them."""

    id: BlockId
    incomplete: bool
    transactions: list[Entry]


class Account(msgspec.Struct):
    """An account after a block of the masterchain. Code and data are empty without a contract."""

    balance: str | int
    code: str
    data: str
    last_transaction_id: TransactionId
    block_id: BlockId
    state: str

    @property
    def units(self) -> int:
        """Return the coin in base units. Nodes show -1 for an account that does not exist."""
        units = number(str(self.balance))
        return 0 if units == -1 else check_units(units)


class Config(msgspec.Struct):
    """A part of the chain's settings, as cells."""

    bytes: str


class ConfigInfo(msgspec.Struct):
    """The chain's settings."""

    config: Config


def covering_all(blocks: Iterable[BlockId]) -> tuple[BlockId, ...]:
    """Return the blocks of the basechain. Raises ContradictionError unless they cover each account exactly once."""
    tops = tuple(each for each in blocks if each.workchain == BASECHAIN)
    at = 0
    for low, size in sorted((_low(each.prefix), _size(each.prefix)) for each in tops):
        if low != at:
            raise ContradictionError("shards leave out accounts, or overlap")
        at += size
    if at != _SHARDS:
        raise ContradictionError("shards leave out accounts")
    return tops


def is_within(account: int, prefix: int) -> bool:
    """Return True if an account, a number of 256 bits, belongs to a shard."""
    return (account >> 192 ^ prefix) & -2 * (prefix & -prefix) == 0


def number_of(address: str) -> int:
    """Return an account of the basechain as a number of 256 bits."""
    return int(address.partition(":")[2], 16)


def covering(tops: Iterable[BlockId], address: str) -> BlockId:
    """Return the block of an account's shard, of blocks that cover all accounts."""
    account = number_of(address)
    return next(block for block in tops if is_within(account, block.prefix))


def block(header: Header, seqno: int) -> Block:
    """Return the header of a block of the masterchain. Its hash proves none of its fields."""
    identity = header.id
    if (identity.workchain, identity.shard, identity.seqno) != (MASTERCHAIN, WHOLE, seqno):
        raise ContradictionError(f"another block than master block {seqno}")
    parents = header.prev_blocks
    if len(parents) != 1 or (parents[0].workchain, parents[0].seqno) != (MASTERCHAIN, seqno - 1):
        raise ContradictionError(f"the parent of master block {seqno} is another than block {seqno - 1}")
    return Block(
        height=seqno,
        hash=hashed(identity.root_hash),
        parent_height=seqno - 1,
        parent_hash=hashed(parents[0].root_hash),
        time=moment(header.gen_utime),
        is_proved=False,
    )


def hashed(text: str) -> str:
    """Read a hash, and return it in our form, which is hexadecimal."""
    try:
        digest = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        digest = b""
    return digest.hex() if len(digest) == HASH_BYTES else _refuse("a hash", text)


def base64_of(digest: str) -> str:
    """Return a hash in the form that nodes take."""
    return base64.b64encode(bytes.fromhex(digest)).decode()


def number(text: str) -> int:
    """Read a signed number of 64 bits."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= NUMBER_CHARS_MAX):
        _refuse("a number", text)
    return int(text)


def address(text: str) -> str:
    """Read an address in any form."""
    return ton.stored(text) or _refuse("an address", text)


def moment(seconds: int) -> datetime:
    """Read a time."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        _refuse("a time", str(seconds))


def _low(prefix: int) -> int:
    """Return the first of the shard's accounts, by their first 64 bits."""
    return prefix & prefix - 1


def _size(prefix: int) -> int:
    """Return the number of the shard's accounts, by their first 64 bits."""
    if not prefix:
        raise ContradictionError("a shard of no accounts")
    return (prefix & -prefix) << 1


def _refuse(wanted: str, text: str) -> NoReturn:
    raise ContradictionError(f"not {wanted}: {text[:80]!r}")
