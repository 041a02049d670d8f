"""Derives bitcoin addresses from the root secret and signs for them. Made by chains.keys, for the signer and the cli.

As BIP-84 says: each account's addresses pay a public key's hash, in a witness program.
"""

import functools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from chains.bitcoin.descriptors import account_descriptor
from chains.bitcoin.scripts import CHAINS
from chains.family import DEPOSITS, HOT
from chains.hd import HdDeriver, Scheme
from core.addresses import bech32

# How BIP-44 numbers coins: the main chain's, and that of all others.
_COINS: Final[Mapping[str, int]] = MappingProxyType({"main": 0, "regtest": 1})
# How public keys of accounts begin when they are written: xpub, tpub.
_PUBLIC_VERSIONS: Final[Mapping[str, bytes]] = MappingProxyType(
    {"main": bytes.fromhex("0488b21e"), "regtest": bytes.fromhex("043587cf")}
)


class BitcoinDeriver(HdDeriver):
    """One wallet's bitcoin addresses, as chains.family.Deriver.

    Signatures are in DER, without the byte that says what was hashed: deterministic (RFC 6979, counted on until they
    are short, as nodes' own wallets do) and with the smaller s, so that none is longer than 70 bytes.
    """

    __slots__ = ("_descriptors",)

    def __init__(self, seed: bytes, chain: str) -> None:
        from embit import bip32  # noqa: PLC0415 - chain libraries are loaded only where needed

        super().__init__(seed, _scheme(chain))
        root, version = bip32.HDKey.from_seed(seed), _PUBLIC_VERSIONS[chain]
        self._descriptors = tuple(
            account_descriptor(root, _account(chain, account), version) for account in (DEPOSITS, HOT)
        )

    def descriptors(self) -> Sequence[str]:
        """Return what watches the deposit addresses, and what the hot wallet's."""
        return self._descriptors


@functools.cache
def _scheme(chain: str) -> Scheme:
    """Return where an account's addresses are, those of change left out, and how one is written."""

    def address(public: bytes) -> str:
        from embit.hashes import hash160  # noqa: PLC0415 - has the older hash where the system's library lacks it

        program = bytes(hash160(public))
        return bech32.encoder(CHAINS[chain].prefix, 0, len(program))(program)

    return Scheme(path=_account(chain, "{account}") + "/0", address=address, sign=_sign)


def _account(chain: str, account: object) -> str:
    """Return where BIP-84 keeps an account: purpose / coin / account."""
    return f"m/84h/{_COINS[chain]}h/{account}h"


def _sign(message: bytes, private_key: bytes) -> bytes:
    from embit.ec import PrivateKey  # noqa: PLC0415 - chain libraries are loaded only where needed

    return bytes(PrivateKey(private_key).sign(message).serialize())
