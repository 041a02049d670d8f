"""Turns addresses into the scripts that outputs carry, and back. Used by all of chains.bitcoin.

Both ways go through core.addresses, whose decoders check prefix, version and length: what cannot be paid to has no
script here. docs/decisions/bitcoin.md says which kinds are read.
"""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from core.addresses import base58, bech32
from core.addresses.bech32 import Segwit

# Opcodes that scripts of the known kinds are made of.
_DUP, _HASH160, _EQUAL, _EQUALVERIFY, _CHECKSIG = 0x76, 0xA9, 0x87, 0x88, 0xAC
_ONE: Final = 0x51
_HASH_BYTES: Final = 20
_KEY: Final = 32
_TO_KEY: Final = (bytes([_DUP, _HASH160, _HASH_BYTES]), bytes([_EQUALVERIFY, _CHECKSIG]))
_TO_SCRIPT: Final = (bytes([_HASH160, _HASH_BYTES]), bytes([_EQUAL]))
_SEGWIT_SIZES: Final = frozenset({(0, _HASH_BYTES), (0, _KEY), (1, _KEY)})

KEY_HASH: Final = bytes([0, _HASH_BYTES])
"""How the scripts of the addresses that are given out begin (P2WPKH); twenty bytes of hash follow."""
KEY_HASH_BYTES: Final = len(KEY_HASH) + _HASH_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """How addresses of one chain are written."""

    prefix: str
    # Of base58: a public key's hash, a script's hash.
    key_version: int
    script_version: int


CHAINS: Final[Mapping[str, Chain]] = MappingProxyType(
    {
        "main": Chain(prefix="bc", key_version=0x00, script_version=0x05),
        "regtest": Chain(prefix="bcrt", key_version=0x6F, script_version=0xC4),
    }
)


def script_of(address: str, chain: str) -> bytes:
    """Return the script that pays a stored address. ValueError for one of another chain, or of no known kind."""
    known = CHAINS[chain]
    segwit = bech32.decode(address)
    if segwit is not None and segwit.prefix == known.prefix and (segwit.version, len(segwit.program)) in _SEGWIT_SIZES:
        version = segwit.version and _ONE + segwit.version - 1
        return bytes([version, len(segwit.program)]) + segwit.program
    payload = base58.decode_checked(address) or b""
    frame = {known.key_version: _TO_KEY, known.script_version: _TO_SCRIPT}.get(payload[0] if payload else -1)
    if frame is None or len(payload) != 1 + _HASH_BYTES:
        raise ValueError(f"{address} is no address of this chain")
    return frame[0] + payload[1:] + frame[1]


def address_of(script: bytes, chain: str) -> str | None:
    """Return the stored form of the address that a script pays; None for a script of no known kind."""
    known = CHAINS[chain]
    if (segwit := _program(script, known.prefix)) is not None:
        return bech32.encode(segwit)
    for version, (head, tail) in ((known.key_version, _TO_KEY), (known.script_version, _TO_SCRIPT)):
        if len(script) == len(head) + _HASH_BYTES + len(tail) and script.startswith(head) and script.endswith(tail):
            return base58.encode_checked(bytes([version]) + script[len(head) : len(head) + _HASH_BYTES])
    return None


def key_hash_address(script: bytes, chain: str) -> str:
    """Return the address of a script that begins as KEY_HASH says."""
    return _key_hashes(chain)(script[len(KEY_HASH) :])


def key_hash_addresses(scripts: Iterable[bytes], chain: str) -> list[str]:
    """Return the addresses of many such scripts, in a fraction of the time for each."""
    return _key_hashes(chain).many([script[len(KEY_HASH) :] for script in scripts])


@functools.cache
def _key_hashes(chain: str) -> bech32.Encoder:
    return bech32.encoder(CHAINS[chain].prefix, 0, _HASH_BYTES)


def _program(script: bytes, prefix: str) -> Segwit | None:
    if len(script) < len(KEY_HASH) or script[1] != len(script) - len(KEY_HASH):
        return None
    version = script[0] and script[0] - _ONE + 1
    if (version, script[1]) not in _SEGWIT_SIZES:
        return None
    return Segwit(prefix=prefix, version=version, program=script[len(KEY_HASH) :])
