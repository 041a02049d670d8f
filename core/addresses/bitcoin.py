"""Reads and shows bitcoin addresses: P2PKH and P2SH in base58, P2WPKH, P2WSH and P2TR in bech32.

Stored as they are shown, bech32 in lower case. Each chain has its own prefix and versions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol

from core.addresses import base58, bech32
from core.addresses.bech32 import Segwit
from core.addresses.errors import AddressError, ForeignAddressError, nobody

_HASH_BYTES: Final = 20
_SCRIPT_HASH_BYTES: Final = 32
_TAPROOT_VERSION: Final = 1
# Of base58: scripts' hashes; the other versions are public keys' hashes.
_SCRIPT_VERSIONS: Final = frozenset({0x05, 0xC4})
# The smallest output that nodes relay, at their default of three satoshi for each byte of making and spending it. By
# the bytes of a witness program: 31 or 43 to make it, 67 to spend it. Of base58: 34 or 32, and 148.
_WITNESS_DUST: Final = MappingProxyType({_HASH_BYTES: 3 * (31 + 67), _SCRIPT_HASH_BYTES: 3 * (43 + 67)})
_KEY_DUST: Final = 3 * (34 + 148)
_SCRIPT_DUST: Final = 3 * (32 + 148)
# The field of secp256k1, in which a taproot program is a coordinate.
_FIELD: Final = 2**256 - 2**32 - 977
_CURVE_B: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chain:
    """The beginnings of a chain's addresses."""

    prefix: str
    # Of base58: public keys' hashes and scripts' hashes.
    versions: frozenset[int]


_CHAINS: Final[Mapping[str, _Chain]] = MappingProxyType(
    {
        "main": _Chain(prefix="bc", versions=frozenset({0x00, 0x05})),
        # signet writes as the test chains do.
        "test": _Chain(prefix="tb", versions=frozenset({0x6F, 0xC4})),
        "regtest": _Chain(prefix="bcrt", versions=frozenset({0x6F, 0xC4})),
    }
)


class Parameters(Protocol):
    """The part of core.catalogue.families's parameters that bitcoin addresses need."""

    @property
    def chain(self) -> str:
        """Return the name of the chain."""


def parse(text: str, parameters: Parameters) -> str:
    """Return the stored form of an address. Raises AddressError; ForeignAddressError for another chain of bitcoin."""
    chain, known = _CHAINS[parameters.chain], _CHAINS.values()
    if (segwit := bech32.decode(text)) is not None and segwit.prefix in {each.prefix for each in known}:
        if segwit.prefix != chain.prefix:
            raise _foreign()
        _check_witness(segwit)
        return text.lower()
    if (payload := _payload(text)) is not None:
        if payload[0] not in chain.versions:
            raise _foreign()
        if not any(payload[1:]):
            raise nobody()
        return text
    raise AddressError("The address is no bitcoin address, or it is misspelt: its checksum is wrong.")


def display(address: str, parameters: Parameters) -> str:  # noqa: ARG001 - it is stored as it is shown
    """Return the shown form of a stored address."""
    return address


def smallest_units(address: str) -> int:
    """Return the smallest payment to a stored address that nodes relay, in satoshi."""
    segwit = bech32.decode(address)
    if segwit is not None:
        return _WITNESS_DUST[len(segwit.program)]
    payload = base58.decode_checked(address) or b"\0"
    return _SCRIPT_DUST if payload[0] in _SCRIPT_VERSIONS else _KEY_DUST


def stored(text: str) -> str | None:
    """Return the stored form of an address of any chain of bitcoin; None for another text."""
    segwit = bech32.decode(text)
    if segwit is not None and segwit.prefix in {chain.prefix for chain in _CHAINS.values()}:
        return text.lower()
    return None if _payload(text) is None else text


def _payload(text: str) -> bytes | None:
    """Return the version and the hash in a base58 address of any chain; None for another text."""
    payload = base58.decode_checked(text)
    if payload is None or len(payload) != 1 + _HASH_BYTES:
        return None
    return payload if any(payload[0] in chain.versions for chain in _CHAINS.values()) else None


def _check_witness(segwit: Segwit) -> None:
    """Refuse witness programs that no wallet uses yet: the next miner could take coin sent there."""
    size = len(segwit.program)
    is_hash = segwit.version == 0 and size in {_HASH_BYTES, _SCRIPT_HASH_BYTES}
    is_taproot = segwit.version == _TAPROOT_VERSION and size == _SCRIPT_HASH_BYTES
    if not is_hash and not is_taproot:
        raise AddressError("The address is of a kind that is not known yet.")
    if not any(segwit.program) or (is_taproot and not _is_on_curve(int.from_bytes(segwit.program, "big"))):
        raise nobody()


def _is_on_curve(x: int) -> bool:
    """Return True if a coordinate is a public key's: only then can a signature for it exist."""
    square = (pow(x, 3, _FIELD) + _CURVE_B) % _FIELD
    return x < _FIELD and pow(square, (_FIELD - 1) // 2, _FIELD) == 1


def _foreign() -> ForeignAddressError:
    return ForeignAddressError("The address is one of another network of bitcoin.")
