"""Pays from a key like any wallet: builds, signs and sends messages. Used by devstack.ton.chain and tests."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from chains.ton import boc, messages, requests
from chains.ton.cells import Cell
from chains.ton.slices import Slice
from chains.ton.transfers import CoinTransfer, JettonTransfer
from chains.ton.wallet import wallet_id, wallet_state
from core.addresses import ton
from core.catalogue.catalogue import Pair
from devstack.ton import jettons

LIFE_S: Final = 90
# For the run of two jetton wallets, and the rent of a new one; the rest comes back.
GAS_UNITS: Final = 60_000_000

Ask = Callable[..., Any]


class Buyer:
    """A wallet of one key in hex."""

    def __init__(self, key: str) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(key.removeprefix("0x")))
        self.state = wallet_state(self._key.public_key().public_bytes_raw(), is_test=True)
        self.address = self.state.address

    def pay(self, ask: Ask, pair: Pair, *, to: str, units: int) -> str:
        """Send coin or jettons, and return the message's id. Raises ProviderError."""
        recipient = ton.stored(to)
        if recipient is None:
            raise ValueError(f"no address: {to}")
        made = self.coin(recipient, units) if pair.contract is None else self.jettons(recipient, units)
        account = ask("getAddressInformation", address=self.address)
        message = self.sign([made], seqno=seqno_in(account["data"]), now=int(account["sync_utime"]))
        ask("sendBoc", boc=boc.write_base64(message))
        return messages.read(message).normalized_hash.hex()

    def seqno(self, ask: Ask) -> int:
        """Return the number of the next request. Raises ProviderError."""
        return seqno_in(ask("getAddressInformation", address=self.address)["data"])

    def coin(self, to: str, units: int, *, bounce: bool = False, memo: str = "") -> Cell:
        """Return the message that brings coin."""
        return CoinTransfer(recipient=to, units=units, bounce=bounce, memo=memo).message()

    def jettons(self, to: str, units: int, *, forward_units: int = 1, memo: str = "") -> Cell:
        """Return the message with which our wallet of jettons sends them."""
        return JettonTransfer(
            jetton_wallet=jettons.wallet(self.address),
            gas_units=GAS_UNITS,
            query_id=0,
            units=units,
            recipient=to,
            excess_to=self.address,
            forward_units=forward_units,
            memo=memo,
        ).message()

    def sign(self, sent: Sequence[Cell], *, seqno: int, now: int) -> Cell:
        """Return the message from outside that has the wallet send these; the first brings the wallet's code."""
        made = requests.request(wallet_id(is_test=True), seqno=seqno, valid_until=now + LIFE_S, messages=sent).cell()
        body = requests.signed(made, self._key.sign(made.hash))
        return messages.external(self.address, body, None if seqno else self.state)


def seqno_in(data: str) -> int:
    """Return the number of the next request, from a wallet's data in base64; 0 without any."""
    if not data:
        return 0
    parts = Slice(boc.read_base64(data))
    parts.bit()
    return parts.uint(32)


def new_address() -> str:
    """Return a new address whose key is discarded: receiving needs none."""
    return f"0:{secrets.token_hex(32)}"
