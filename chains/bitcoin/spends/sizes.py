"""Computes the size of one of our transactions before it is signed. Used by chains.bitcoin.spends.

Sizes count in virtual bytes, of which a witness byte is a quarter (BIP-141). Our own coins are of one kind, and our
signatures are never longer than assumed here, so that a fee is never too small for its size.
"""

from collections.abc import Iterable
from typing import Final

from chains.bitcoin.scripts import KEY_HASH_BYTES
from chains.bitcoin.transactions import BASE_WEIGHT, INPUT_BYTES_MIN, OUTPUT_BYTES_MIN, compact

# The most bytes of a signature and its key, with the count of both and the length of each.
WITNESS_BYTES: Final = 1 + 1 + 71 + 1 + 33
INPUT_WEIGHT: Final = BASE_WEIGHT * INPUT_BYTES_MIN + WITNESS_BYTES
# The size that spending one of our coins adds, and that of making one.
INPUT_VBYTES: Final = -(-INPUT_WEIGHT // BASE_WEIGHT)
CHANGE_VBYTES: Final = OUTPUT_BYTES_MIN + KEY_HASH_BYTES
# The version, the lock, and the marker of witnesses.
FRAME_WEIGHT: Final = BASE_WEIGHT * (4 + 4) + 2
# The largest transaction that nodes relay.
VBYTES_MAX: Final = 400_000 // BASE_WEIGHT
# The largest of version 3 (BIP-431).
TRUC_VBYTES_MAX: Final = 10_000

# An output is dust if it is worth less than this many satoshi for each byte of making and spending it.
DUST_RATE: Final = 3
_SEGWIT_SPEND_BYTES: Final = 41 + 107 // BASE_WEIGHT
_OLDER_SPEND_BYTES: Final = 148
_VERSIONS: Final = frozenset({0x00, *range(0x51, 0x61)})


def vsize(*, inputs: int, scripts: Iterable[bytes], change: int = 0) -> int:
    """Return the virtual bytes of a transaction that spends `inputs` of our coins, pays scripts and gives change."""
    paid = [output_bytes(script) for script in scripts]
    outputs = len(paid) + change
    counted = len(compact(inputs)) + len(compact(outputs)) + sum(paid) + change * CHANGE_VBYTES
    return -(-(FRAME_WEIGHT + BASE_WEIGHT * counted + inputs * INPUT_WEIGHT) // BASE_WEIGHT)


def output_bytes(script: bytes) -> int:
    """Return the bytes of an output."""
    return OUTPUT_BYTES_MIN + len(script)


def dust_units(script: bytes) -> int:
    """Return the smallest output to a script that nodes relay, in satoshi."""
    spend_bytes = _SEGWIT_SPEND_BYTES if script[0] in _VERSIONS else _OLDER_SPEND_BYTES
    return DUST_RATE * (output_bytes(script) + spend_bytes)
