"""Derives TON addresses from the root secret and signs for them. Made by chains.keys, for the signer and the cli."""

from typing import Final

from chains.slip10 import Ed25519Deriver, Ed25519Scheme
from chains.ton.wallet import wallet_state

COIN: Final = 607


class TonDeriver(Ed25519Deriver):
    """One wallet's TON addresses, as chains.family.Deriver. A signature has 64 bytes and is over a cell's hash.

    Test networks have other addresses for the same keys.
    """

    __slots__ = ()

    def __init__(self, seed: bytes, *, is_test: bool) -> None:
        super().__init__(seed, _scheme(is_test=is_test))


def _scheme(*, is_test: bool) -> Ed25519Scheme:
    return Ed25519Scheme(coin=COIN, address=lambda key: wallet_state(key, is_test=is_test).address)
