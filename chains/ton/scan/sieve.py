"""Looks at a transaction's bytes without building its cells: whose account it is of, and who may get jettons by it.

Called by chains.ton.scan.block for each transaction of a block. Only those that concern us are read cell by cell
afterwards, so that a wrong look costs a lookup at most, and never credits anything. Bytes of an unusual form are read
whole here.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from chains.ton import boc, transactions
from chains.ton.boc import EXOTIC, HAS_HASHES, HAS_INDEX, REFS, SIZE
from chains.ton.cells import CellError
from chains.ton.jettons import Jetton
from chains.ton.slices import ACCOUNT_BITS

_ACCOUNTS: Final = (1 << ACCOUNT_BITS) - 1
_BYTE: Final = 8
# The size, the number of roots and the root's index that nodes write.
_COUNTS_AT: Final = 6
# The first byte of a transaction: the tag, and four bits of the account.
_TAG: Final = 0b0111
_ACCOUNT_BYTES: Final = 33
# The first bits of the cell with a transaction's messages, and of a message from outside.
_HAS_INCOMING: Final = 0x80
_FROM_OUTSIDE: Final = 0b10


class Look(NamedTuple):
    """The part of a transaction that its bytes show at once. owners: who may get jettons by it."""

    account: int
    is_external: bool
    owners: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Sample:
    """The end of the data from which a jetton's wallets begin, which is the same for all owners.

    begin: the number of bytes before it. shift: the bits between the owner's and the end of these bytes.
    """

    end: bytes
    begin: int
    shift: int


class Sieve:
    """Looks at transactions for some jettons."""

    def __init__(self, jettons: Iterable[Jetton]) -> None:
        self._samples = tuple(map(_sample, jettons))

    def look(self, raw: bytes) -> Look:
        """Return the account, kind and owners in a transaction's bytes. Raises CellError for other bytes."""
        if len(raw) > boc.BYTES_MAX:
            raise CellError("a transaction of more bytes than any has")
        owners = tuple(owner for sample in self._samples for owner in _owners(raw, sample))
        if len(owners) > 1:
            owners = tuple(dict.fromkeys(owners))
        try:
            return Look(*_root(raw), owners)
        except (_UnusualError, IndexError):
            read = transactions.read(boc.read(raw))
            account = int(read.address.partition(":")[2], 16)
            return Look(account, read.incoming.kind == "in", owners)


class _UnusualError(Exception):
    """The bytes have a form that nodes do not write."""


def _root(raw: bytes) -> tuple[int, bool]:
    """Return the account, and whether the message came from outside."""
    size, offset = raw[4] & SIZE, raw[5]
    root_at = _COUNTS_AT + 3 * size + offset
    cells = int.from_bytes(raw[_COUNTS_AT : _COUNTS_AT + size], "big")
    begin = root_at + size + (cells * offset if raw[4] & HAS_INDEX else 0)
    if any(raw[root_at : root_at + size]):
        raise _UnusualError
    head = int.from_bytes(raw[begin + 2 : begin + 2 + _ACCOUNT_BYTES], "big")
    if head >> ACCOUNT_BITS + 4 != _TAG:
        raise _UnusualError
    messages = _nth(raw, begin, size, _first_ref(raw, begin, size))
    if not raw[messages + 2] & _HAS_INCOMING:
        raise _UnusualError
    incoming = _nth(raw, begin, size, _first_ref(raw, messages, size))
    return head >> 4 & _ACCOUNTS, raw[incoming + 2] >> 6 == _FROM_OUTSIDE


def _first_ref(raw: bytes, at: int, size: int) -> int:
    """Return the index of the first cell that a cell refers to."""
    first = raw[at]
    if not first & REFS or first & (EXOTIC | HAS_HASHES):
        raise _UnusualError
    at += 2 + (raw[at + 1] + 1 >> 1)
    return int.from_bytes(raw[at : at + size], "big")


def _nth(raw: bytes, at: int, size: int, index: int) -> int:
    """Return where a cell begins, by its index."""
    for _ in range(index):
        first = raw[at]
        if first & HAS_HASHES:
            raise _UnusualError
        at += 2 + (raw[at + 1] + 1 >> 1) + (first & REFS) * size
    return at


def _owners(raw: bytes, sample: _Sample) -> Iterator[str]:
    at = raw.find(sample.end)
    while at >= 0:
        before = int.from_bytes(raw[max(0, at - sample.begin) : at + 1], "big")
        yield f"0:{before >> sample.shift & _ACCOUNTS:064x}"
        at = raw.find(sample.end, at + 1)


def _sample(jetton: Jetton) -> _Sample:
    """Return the part of a first state's data that all owners share, found by two owners who share nothing."""
    one, other = (jetton.state(f"0:{digit * 64}").data for digit in ("0", "f"))
    bits = int.from_bytes(one.data, "big") ^ int.from_bytes(other.data, "big")
    # The owner's lowest bit, counted from the end, and the whole bytes behind it.
    last = (bits & -bits).bit_length() - 1
    length = last // _BYTE
    begin = len(one.data) - length
    return _Sample(end=one.data[begin:], begin=begin, shift=last - length * _BYTE + _BYTE)
