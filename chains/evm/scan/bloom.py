"""Reads the bloom filter of logs in a block's header: a log that it denies is certainly absent.

Used by chains.evm.scan.block.
"""

import functools
from collections.abc import Iterable
from typing import Final

from chains.base import ProviderError
from chains.evm import wire
from core.addresses.evm import keccak256

BLOOM_BYTES: Final = 256
BIT_MASK: Final = BLOOM_BYTES * 8 - 1
EVERYTHING: Final = (1 << BLOOM_BYTES * 8) - 1


@functools.lru_cache(maxsize=16_384)
def mask(item: str) -> int:
    """Return the bits that an address or a topic sets."""
    digest = keccak256(wire.data(item))
    bits = (int.from_bytes(digest[at : at + 2], "big") & BIT_MASK for at in (0, 2, 4))
    return functools.reduce(lambda bits_set, bit: bits_set | 1 << bit, bits, 0)


def of_header(header: wire.Header) -> int:
    """Return a header's filter; one that admits everything if the header has none."""
    if header.logs_bloom is None:
        return EVERYTHING
    filter_bytes = wire.data(header.logs_bloom)
    if len(filter_bytes) != BLOOM_BYTES:
        raise ProviderError("a bloom filter of another length")
    return int.from_bytes(filter_bytes, "big")


def of_logs(logs: Iterable[wire.Log]) -> int:
    """Return the filter that these logs make."""
    bloom = 0
    for log in logs:
        bloom |= mask(log.address.lower())
        for topic in log.topics:
            bloom |= mask(topic.lower())
    return bloom


def may_hold(bloom: int, *items: str) -> bool:
    """Return whether there may be a log with all of these."""
    return all(bloom & (bits := mask(item)) == bits for item in items)
