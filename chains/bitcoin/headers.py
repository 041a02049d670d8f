"""Checks the proof of work of headers, and that it asks for its parent's work. Called by blocks and block.

So a node can lag behind, but to invent a block it has to mine one.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from chains.base import Block, ProviderError
from chains.bitcoin.transactions import NOWHERE, double_sha256, id_text

HEADER_BYTES: Final = 80
# Blocks after which the main chain's difficulty follows the time they took, by this factor at most.
RETARGET_BLOCKS: Final = 2016
RETARGET_FACTOR: Final = 4
# The target of the main chain's first blocks, and the least work of today's blocks as a multiple of theirs: about a
# tenth of the real one. An attacker who extends an old block would have to mine each block with that work.
EASIEST_EVER: Final = 0xFFFF << 208
WORK_MIN: Final = 10**13
_MANTISSA_BYTES: Final = 3
_SIGN: Final = 0x800000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of a chain's headers."""

    # The easiest accepted target.
    target_max: int
    # Whether the target ever changes.
    retargets: bool
    # The height from which on the first transaction of a block names its height (BIP-34).
    names_height_from: int


RULES: Final[Mapping[str, Rules]] = MappingProxyType(
    {
        "main": Rules(target_max=EASIEST_EVER // WORK_MIN, retargets=True, names_height_from=227_931),
        "regtest": Rules(target_max=0x7FFFFF << 232, retargets=False, names_height_from=1),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A block's header. bits: the target of its work, in its short form."""

    hash: str
    parent_hash: str
    merkle_root: bytes
    time: datetime
    bits: int

    def at(self, height: int) -> Block:
        """Return the header as the block of a height."""
        return Block(
            height=height, hash=self.hash, parent_height=height - 1, parent_hash=self.parent_hash, time=self.time
        )


def read_header(raw: bytes, wanted: str, rules: Rules) -> Header:
    """Return a header, checked for its hash and its work. Raises ProviderError."""
    if len(raw) != HEADER_BYTES:
        raise ProviderError(f"a header of {len(raw)} bytes")
    digest = double_sha256(raw)
    if id_text(digest) != wanted:
        raise ProviderError(f"a header of another block than {wanted}")
    time_s, bits = struct.unpack_from("<II", raw, 68)
    if int.from_bytes(digest, "little") > target_of(bits, rules):
        raise ProviderError(f"block {wanted} lacks the work that it asks for")
    return Header(
        hash=wanted,
        parent_hash=id_text(raw[4:36]),
        merkle_root=raw[36:68],
        time=datetime.fromtimestamp(time_s, UTC),
        bits=bits,
    )


def target_of(bits: int, rules: Rules) -> int:
    """Return the target of a short form. Raises ProviderError if it is invalid or too easy."""
    size, mantissa = bits >> 24, bits & 0xFFFFFF
    target = mantissa << 8 * (size - _MANTISSA_BYTES) if size > _MANTISSA_BYTES else mantissa >> 8 * (3 - size)
    if mantissa & _SIGN or not 0 < target <= rules.target_max:
        raise ProviderError(f"no work is asked for by {bits:08x}")
    return target


def check_follows(header: Header, height: int, parent_bits: int, rules: Rules) -> None:
    """Refuse a header whose target may not follow its parent's. Raises ProviderError."""
    if header.bits == parent_bits:
        return
    before, now = target_of(parent_bits, rules), target_of(header.bits, rules)
    is_retarget = rules.retargets and height % RETARGET_BLOCKS == 0
    # The short form rounds down, so that a fourth may be a little less.
    if not is_retarget or not before <= (now + (now >> 12)) * RETARGET_FACTOR or now > before * RETARGET_FACTOR:
        raise ProviderError(f"block {height} asks for another work than its parent")


def is_first(header: Header) -> bool:
    """Return True if a header has no parent."""
    return header.parent_hash == NOWHERE
