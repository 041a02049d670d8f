"""Reckons how large a transaction of ours will be, before it is signed. Used by chains.bitcoin.spends.

Sizes count in virtual bytes, of which a witness byte is a quarter (BIP-141). Our own coins are of one kind, and no
signature of ours is longer than what is reckoned with here, so that a fee is never too small for its size.
"""

from collections.abc import Iterable
from typing import Final

from chains.bitcoin.scripts import KEY_HASH_BYTES
from chains.bitcoin.transactions import BASE_WEIGHT, INPUT_BYTES_MIN, OUTPUT_BYTES_MIN, compact

# What a signature and its key take at most, with the count of both and the length of each.
WITNESS_BYTES: Final = 1 + 1 + 71 + 1 + 33
INPUT_WEIGHT: Final = BASE_WEIGHT * INPUT_BYTES_MIN + WITNESS_BYTES
# What spending one of our coins adds, and what making one does.
INPUT_VBYTES: Final = -(-INPUT_WEIGHT // BASE_WEIGHT)
CHANGE_VBYTES: Final = OUTPUT_BYTES_MIN + KEY_HASH_BYTES
# Version and lock, and the mark that witnesses follow.
FRAME_WEIGHT: Final = BASE_WEIGHT * (4 + 4) + 2
# Nodes pass on nothing that is larger.
VBYTES_MAX: Final = 400_000 // BASE_WEIGHT
# Nor of version 3 (BIP-431).
TRUC_VBYTES_MAX: Final = 10_000

# What nodes call dust is worth less than three satoshi for each byte that it takes to make and to spend it.
DUST_RATE: Final = 3
_SEGWIT_SPEND_BYTES: Final = 41 + 107 // BASE_WEIGHT
_OLDER_SPEND_BYTES: Final = 148
_VERSIONS: Final = frozenset({0x00, *range(0x51, 0x61)})


def vsize(*, inputs: int, scripts: Iterable[bytes], change: int = 0) -> int:
    """Return the virtual bytes of a transaction that spends so many of our coins, pays scripts and gives change."""
    paid = [output_bytes(script) for script in scripts]
    outputs = len(paid) + change
    counted = len(compact(inputs)) + len(compact(outputs)) + sum(paid) + change * CHANGE_VBYTES
    return -(-(FRAME_WEIGHT + BASE_WEIGHT * counted + inputs * INPUT_WEIGHT) // BASE_WEIGHT)


def output_bytes(script: bytes) -> int:
    """Return the bytes of an output."""
    return OUTPUT_BYTES_MIN + len(script)


def dust_units(script: bytes) -> int:
    """Return the least that an output of a kind has to bring for nodes to pass it on."""
    spend_bytes = _SEGWIT_SPEND_BYTES if script[0] in _VERSIONS else _OLDER_SPEND_BYTES
    return DUST_RATE * (output_bytes(script) + spend_bytes)
