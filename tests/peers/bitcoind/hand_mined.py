"""Drives a running bitcoin node for tests: blocks only on request, and a rich buyer that pays."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from embit import ec, script
from embit.networks import NETWORKS
from embit.transaction import Transaction, TransactionInput, TransactionOutput

from chains.base import ProviderError
from chains.bitcoin.transactions import read_hex, sized
from chains.net.json_rpc import JsonRpc

BUYER = ec.PrivateKey(b"\x07" * 32)
BUYER_SCRIPT = script.p2wpkh(BUYER.get_public_key())
BUYER_ADDRESS = BUYER_SCRIPT.address(NETWORKS["regtest"])
# Paid by blocks without another recipient.
MINER_ADDRESS = script.p2wpkh(ec.PrivateKey(b"\x08" * 32).get_public_key()).address(NETWORKS["regtest"])
COINBASE_DEPTH = 100
FEE_UNITS = 2_000
# Any that says: this one may be replaced.
REPLACEABLE = 0xFFFFFFFD
# Of secp256k1: as many points as there are.
CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
# As (txid, vout, units).
BuyersCoin = tuple[str, int, int]


class HandMined:
    """A chain that mines on request. The buyer's coins are rewards, each of which pays once."""

    def __init__(self, url: str, *, coins: int = 20) -> None:
        self.url = url
        self.rpc = JsonRpc(url, timeout_s=30)
        self.ask("generatetoaddress", coins, BUYER_ADDRESS)
        self.coins = [self._reward(height) for height in range(1, coins + 1)]
        self.ask("generatetoaddress", COINBASE_DEPTH, MINER_ADDRESS)
        # The coin that each of the buyer's transactions spends.
        self._paid: dict[str, BuyersCoin] = {}

    def ask(self, method: str, *params: object) -> Any:
        return self.rpc.call_or_none(method, params, object)

    def mine(self, blocks: int = 1) -> int:
        """Make blocks, the first of which holds what waits; return the height."""
        self.ask("generatetoaddress", blocks, MINER_ADDRESS)
        return self.height()

    def height(self) -> int:
        return int(self.ask("getblockcount"))

    def send(self, raw: str) -> str:
        """Put a transaction into the pool; returns its id."""
        # No cap on what it may offer: a test's fees are its own affair.
        return str(self.ask("sendrawtransaction", raw, 0))

    def pay(self, *outputs: tuple[str | bytes, int], fee_units: int = FEE_UNITS) -> str:
        """Send from the buyer to addresses, or scripts, in one transaction; returns its id."""
        return self.send(self.signed(*outputs, fee_units=fee_units))

    def signed(self, *outputs: tuple[str | bytes, int], fee_units: int = FEE_UNITS) -> str:
        """Return the bytes that pay so, of the buyer's next coin, with what is left given back; in hex."""
        spent = self.coins.pop(0)
        rest = spent[2] - fee_units - sum(paid for _, paid in outputs)
        tx = signed_by_buyer([spent], (*outputs, (BUYER_SCRIPT.data, rest)))
        self.coins.append((tx.txid().hex(), len(outputs), rest))
        self._paid[tx.txid().hex()] = spent
        return str(tx.serialize().hex())

    def reorg(self, depth: int, *again: tuple[str, int]) -> None:
        """Replace the last blocks.

        Raw transactions are included again, each at its offset. The buyer's other transactions are gone for ever, since
        their coins are spent in another way; transactions of others wait again.
        """
        self.ask("invalidateblock", self.ask("getblockhash", self.height() - depth + 1))
        back = {read_hex(raw).txid for raw, _ in again}
        lost = [txid for txid in self.waiting() if txid in self._paid and txid not in back]
        again += tuple((self.instead(txid), 0) for txid in lost)
        for offset in range(depth):
            self._replace([raw for raw, place in again if place == offset])

    def take_back(self) -> None:
        """Replace the last block by an empty one; its transactions wait again."""
        self.ask("invalidateblock", self.ask("getbestblockhash"))
        self._replace([])

    def _replace(self, raws: list[str]) -> None:
        # Paid to another, lest a block be the one that was left.
        other = script.p2wpkh(ec.PrivateKey(secrets.token_bytes(32)).get_public_key()).address(NETWORKS["regtest"])
        self.ask("generateblock", other, raws)

    def waiting(self) -> list[str]:
        return list(self.ask("getrawmempool"))

    def instead(self, txid: str, *outputs: tuple[str | bytes, int], fee_units: int = FEE_UNITS) -> str:
        """Return what spends the coin of one of the buyer's transactions in another way: for the buyer alone, if so."""
        self.coins = [coin for coin in self.coins if coin[0] != txid]
        self.coins.insert(0, self._paid[txid])
        return self.signed(*outputs, fee_units=fee_units)

    def two_ids_of(self, output: tuple[str, int]) -> tuple[str, str]:
        """Return two forms of one payment out of a coin of the older kind, in hex: each as good, and of another id."""
        older = script.p2pkh(BUYER.get_public_key())
        units = output[1] + FEE_UNITS
        spent = read_hex(made := self.signed((older.data, units))).txid
        self.ask("generateblock", MINER_ADDRESS, [made])
        tx = Transaction(
            vin=[TransactionInput(bytes.fromhex(spent), 0, sequence=REPLACEABLE)],
            vout=[TransactionOutput(output[1], script_of(output[0]))],
        )
        signature = BUYER.sign(tx.sighash_legacy(0, older)).serialize()
        split = 5 + signature[3]
        r, s = signature[2 : split - 1], int.from_bytes(signature[split + 1 :], "big")
        collected = []
        # The other number that solves the equation is as good; nodes pass on the smaller, and blocks may have both.
        for number in (s, CURVE_ORDER - s):
            number_bytes = number.to_bytes(number.bit_length() // 8 + 1, "big")
            body = r + bytes([2, len(number_bytes)]) + number_bytes
            whole = bytes([0x30, len(body)]) + body + b"\x01"
            tx.vin[0].script_sig = script.Script(sized(whole) + sized(BUYER.get_public_key().sec()))
            collected.append(str(tx.serialize().hex()))
        return collected[0], collected[1]

    def _reward(self, height: int) -> BuyersCoin:
        block = self.ask("getblock", self.ask("getblockhash", height), 2)
        first = block["tx"][0]
        return first["txid"], 0, round(first["vout"][0]["value"] * 10**8)


def signed_by_buyer(
    spent: Sequence[BuyersCoin],
    outputs: Sequence[tuple[str | bytes, int]],
    *,
    sequence: int = REPLACEABLE,
    version: int = 1,
) -> Transaction:
    """Return what spends coins of the buyer for addresses, or scripts, as it is sent."""
    tx = Transaction(
        # Of the first version, whose sequences are no times.
        version=version,
        vin=[TransactionInput(bytes.fromhex(txid), vout, sequence=sequence) for txid, vout, _ in spent],
        vout=[TransactionOutput(units, script_of(to)) for to, units in outputs],
    )
    public = BUYER.get_public_key().sec()
    for place, (_, _, units) in enumerate(spent):
        digest = tx.sighash_segwit(place, script.p2pkh_from_p2wpkh(BUYER_SCRIPT), units)
        tx.vin[place].witness = script.Witness([BUYER.sign(digest).serialize() + b"\x01", public])
    return tx


def script_of(to: str | bytes) -> script.Script:
    """Return what an output to an address of regtest, or to a script, holds."""
    if isinstance(to, bytes):
        return script.Script(to)
    if not to.startswith("bcrt1"):
        raise ProviderError(f"{to} is no address of regtest's")
    return script.address_to_scriptpubkey(to)
