"""Pays bitcoin like a wallet with one key, and makes addresses of strangers. Used by devstack.bitcoin.chain.

The node finds the buyer's coins by their script: no wallet of a node is needed.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

import msgspec
from embit import ec, script
from embit.transaction import Transaction, TransactionInput, TransactionOutput

from chains.base import ProviderError
from chains.bitcoin.scripts import KEY_HASH, address_of, script_of
from chains.net.json_rpc import JsonRpc, RpcError

CHAIN: Final = "regtest"
KEY_HASH_BYTES: Final = 20
# Far more than a node requires, and little compared with the buyer's balance.
FEE_UNITS: Final = 2_000
# A smaller rest would be dust.
CHANGE_UNITS_MIN: Final = 1_000
REWARD_DEPTH: Final = 100
# Marks a transaction as replaceable by one with a higher fee.
REPLACEABLE: Final = 0xFFFFFFFD
ALL_SIGNED: Final = b"\x01"
PLACES: Final = 8
# The number of coins that are tried, one after the other, for one payment.
CHOICES_MAX: Final = 3
# RPC_VERIFY_REJECTED: here, the mempool has a transaction that spends the coin.
REJECTED: Final = -26


class Unspent(msgspec.Struct):
    """A coin, as a node returns it; the amount is in whole coins."""

    txid: str
    vout: int
    amount: Decimal
    confirmations: int
    coinbase: bool

    @property
    def units(self) -> int:
        """Return the coin's amount in base units."""
        return int(self.amount.scaleb(PLACES))


class _ScanResult(msgspec.Struct):
    unspents: list[Unspent]


class Buyer:
    """One key, 32 bytes in hex, and its address on regtest."""

    def __init__(self, key: str) -> None:
        self._key = ec.PrivateKey(bytes.fromhex(key.removeprefix("0x")))
        self._script = script.p2wpkh(self._key.get_public_key())
        self.address = str(address_of(self._script.data, CHAIN))

    def pay(self, rpc: JsonRpc, outputs: Sequence[tuple[str, int]]) -> str:
        """Send to addresses, and return the transaction's id. Raises ProviderError.

        If another process with the same key spends the chosen coin first, the buyer takes another coin.
        """
        needed = sum(units for _, units in outputs) + FEE_UNITS + CHANGE_UNITS_MIN
        for left in reversed(range(CHOICES_MAX)):
            raw = self.signed(self._coin(rpc, needed), outputs)
            try:
                return rpc.call("sendrawtransaction", [raw.hex()], str)
            except RpcError as error:
                if error.code != REJECTED or not left:
                    raise
        raise AssertionError("the last choice is returned or raised")

    def signed(self, coin: Unspent, outputs: Sequence[tuple[str, int]]) -> bytes:
        """Return a signed transaction that pays the outputs from a coin, with the change to the buyer."""
        rest = coin.units - FEE_UNITS - sum(units for _, units in outputs)
        paid = [(script_of(address, CHAIN), units) for address, units in outputs]
        tx = Transaction(
            vin=[TransactionInput(bytes.fromhex(coin.txid), coin.vout, sequence=REPLACEABLE)],
            vout=[TransactionOutput(units, script.Script(to)) for to, units in (*paid, (self._script.data, rest))],
        )
        digest = tx.sighash_segwit(0, script.p2pkh_from_p2wpkh(self._script), coin.units)
        signature = self._key.sign(digest).serialize() + ALL_SIGNED
        tx.vin[0].witness = script.Witness([signature, self._key.get_public_key().sec()])
        return bytes(tx.serialize())

    def _coin(self, rpc: JsonRpc, units: int) -> Unspent:
        """Return the smallest unspent coin of at least this amount."""
        fitting = [
            coin
            for coin in unspents(rpc, self.address)
            if coin.units >= units and (not coin.coinbase or coin.confirmations > REWARD_DEPTH)
        ]
        for coin in sorted(fitting, key=lambda coin: coin.units):
            if rpc.call_or_none("gettxout", [coin.txid, coin.vout, True], object) is not None:
                return coin
        raise ProviderError("the buyer has no such coin now")


def unspents(rpc: JsonRpc, address: str) -> list[Unspent]:
    """Return the coins at an address, by blocks alone. Raises ProviderError."""
    return rpc.call("scantxoutset", ["start", [f"addr({address})"]], _ScanResult).unspents


def new_address() -> str:
    """Return a new address whose key is discarded: receiving needs none."""
    return str(address_of(KEY_HASH + secrets.token_bytes(KEY_HASH_BYTES), CHAIN))
