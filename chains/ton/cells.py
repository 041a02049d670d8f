"""Builds cells with their hashes. Used by every module of chains.ton; chains.ton.boc reads and writes them.

A cell has up to 1,023 bits and four references, and is identified by a hash over both. Exotic cells point to code in a
library or prove a part of a tree. A transaction may carry them in a payer's message, so that they are hashed by their
rules instead of refused: one hash for each level below which branches are pruned.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from chains.base import ProviderError

BITS_MAX: Final = 1023
REFS_MAX: Final = 4
DEPTH_MAX: Final = 1024
HASH_BYTES: Final = 32
DEPTH_BYTES: Final = 2

PRUNED: Final = 1
LIBRARY: Final = 2
PROOF: Final = 3
UPDATE: Final = 4

_EXOTIC: Final = 8
_LEVEL: Final = 32
_MASK_MAX: Final = 7
_BYTE: Final = 8
# The type of an exotic cell, then a hash and a depth for each proved tree.
_PROVED_BITS: Final = (HASH_BYTES + DEPTH_BYTES) * _BYTE


class CellError(ProviderError):
    """Bytes or cells do not have the form that the chain gives them."""


class Cell:
    """A cell, immutable. Equal cells have the same hash.

    data: the bits; if they fill no whole byte, followed by a one and zeros. mask: the levels of its pruned branches.
    lower: hash and depth for each of these levels but the highest.
    """

    __slots__ = ("bits", "data", "depth", "hash", "is_exotic", "lower", "mask", "refs")

    def __init__(self, data: bytes, bits: int, refs: "tuple[Cell, ...]" = (), *, is_exotic: bool = False) -> None:
        """Compute the hash. Raises CellError if no such cell can exist."""
        self.data, self.bits, self.refs, self.is_exotic = data, bits, refs, is_exotic
        self.mask, self.lower = 0, ()
        if is_exotic or any(ref.mask for ref in refs):
            self.mask, levels = _levels(self)
            *lower, (self.hash, self.depth) = levels
            self.lower = tuple(lower)
            return
        depth = 0
        # The usual cell, kept in one piece: a block has tens of thousands of them.
        parts = [bytes((len(refs), bits // _BYTE + (bits + 7) // _BYTE)), data]
        for ref in refs:
            parts.append(ref.depth.to_bytes(2, "big"))
            depth = depth if ref.depth < depth else ref.depth + 1
        parts += [ref.hash for ref in refs]
        if depth > DEPTH_MAX:
            raise CellError("a tree of cells is too deep")
        self.hash, self.depth = sha256(b"".join(parts)).digest(), depth

    lower: tuple[tuple[bytes, int], ...]
    hash: bytes
    depth: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        return f"Cell({self.hash.hex()})"

    def at(self, level: int) -> tuple[bytes, int]:
        """Return the hash and the depth at a level, at which branches of higher levels count as pruned."""
        index = (self.mask & ((1 << level) - 1)).bit_count()
        return self.lower[index] if index < len(self.lower) else (self.hash, self.depth)


def _levels(cell: Cell) -> tuple[int, list[tuple[bytes, int]]]:
    """Return the mask of a cell with levels, and hash and depth for each level, by the rules of its kind."""
    kind = _kind(cell)
    if kind == PRUNED:
        return _pruned(cell)
    shift = 1 if kind in {PROOF, UPDATE} else 0
    mask = 0
    for ref in cell.refs:
        mask |= ref.mask
    mask >>= shift
    hashed = list[tuple[bytes, int]]()
    for level in range(mask.bit_length() + 1):
        if level == 0 or mask >> (level - 1) & 1:
            hashed.append(_at_level(cell, mask, level, shift, hashed))
    return mask, hashed


def _at_level(cell: Cell, mask: int, level: int, shift: int, before: Sequence[tuple[bytes, int]]) -> tuple[bytes, int]:
    refs = [ref.at(level + shift) for ref in cell.refs]
    depth = 1 + max((ref_depth for _, ref_depth in refs), default=-1)
    if depth > DEPTH_MAX:
        raise CellError("a tree of cells is too deep")
    # From the second level on, the hash of the level below replaces the data.
    body = before[-1][0] if before else cell.data
    parts = [_descriptors(cell, mask & ((1 << level) - 1)), body]
    parts += [ref_depth.to_bytes(DEPTH_BYTES, "big") for _, ref_depth in refs]
    parts += [ref_hash for ref_hash, _ in refs]
    return sha256(b"".join(parts)).digest(), depth


def _pruned(cell: Cell) -> tuple[int, list[tuple[bytes, int]]]:
    """Return what a pruned branch replaces, level by level, and its own hash for the highest."""
    mask = cell.data[1] if cell.bits >= 2 * _BYTE else 0
    count = mask.bit_count()
    if not 1 <= mask <= _MASK_MAX or cell.refs or cell.bits != 2 * _BYTE + count * _PROVED_BITS:
        raise CellError("a pruned branch of another form")
    depths_at = 2 + count * HASH_BYTES
    replaced = [
        (cell.data[2 + index * HASH_BYTES :][:HASH_BYTES], _depth(cell.data, depths_at + index * DEPTH_BYTES))
        for index in range(count)
    ]
    own = sha256(_descriptors(cell, mask) + cell.data).digest()
    return mask, [*replaced, (own, 0)]


def _kind(cell: Cell) -> int:
    """Return the kind of an exotic cell, 0 for an ordinary one. Raises CellError if it breaks the kind's rules."""
    if not cell.is_exotic:
        return 0
    kind = cell.data[0] if cell.bits >= _BYTE else 0
    match kind, len(cell.refs), cell.bits - _BYTE:
        case (1, _, _) | (2, 0, 256):
            return kind
        case (3, 1, 272) | (4, 2, 544):
            _check_proved(cell)
            return kind
        case _:
            raise CellError(f"no exotic cell of kind {kind} has this form")


def _check_proved(cell: Cell) -> None:
    """Raise CellError if a proof names other trees than those that it refers to."""
    count = len(cell.refs)
    for index, ref in enumerate(cell.refs):
        named = cell.data[1 + index * HASH_BYTES :][:HASH_BYTES]
        depth = _depth(cell.data, 1 + count * HASH_BYTES + index * DEPTH_BYTES)
        if (named, depth) != ref.at(0):
            raise CellError("a proof of another tree")


def _descriptors(cell: Cell, mask: int) -> bytes:
    first = len(cell.refs) + _EXOTIC * cell.is_exotic + _LEVEL * mask
    return bytes((first, cell.bits // _BYTE + (cell.bits + 7) // _BYTE))


def _depth(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + DEPTH_BYTES], "big")
