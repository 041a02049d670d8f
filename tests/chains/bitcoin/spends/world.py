"""Provides a spender on a real bitcoin chain behind any number of providers, each honest until a test changes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from chains.bitcoin.nodes import bitcoin_providers
from chains.bitcoin.spends.spender import BitcoinSpender
from chains.bitcoin.transactions import Tx, read
from chains.bitcoin.treasurer import BitcoinTreasurer
from chains.spending import Attempt, Case, Coin, Coins, Draft, Fate, Intent, KeyRef, Purse
from tests.chains.bitcoin.spends.samples import CAP, KEYS, NETWORK, WALLET
from tests.peers.bitcoind.hand_mined import HandMined
from tests.peers.lying_rpc import LyingRpc


@dataclass
class World:
    node: HandMined
    providers: list[LyingRpc]
    spender: BitcoinSpender
    treasurer: BitcoinTreasurer
    coins: list[Coin] = field(default_factory=list)

    def fund(self, *units: int, keys: tuple[KeyRef, ...] = (WALLET,)) -> list[Coin]:
        """Give the wallet confirmed coins, at its addresses in turn."""
        owners = [keys[place % len(keys)] for place in range(len(units))]
        txid = self.node.pay(
            *((key.address, each) for key, each in zip(owners, units, strict=True)), fee_units=100 * len(units) + 1_000
        )
        self.node.mine()
        made = [
            Coin(txid=txid, vout=vout, units=each, key=key, depth=1)
            for vout, (key, each) in enumerate(zip(owners, units, strict=True))
        ]
        self.coins += made
        return made

    def draft(self, wanted: Intent, *, cap: int = CAP) -> Draft:
        return self.spender.draft(wanted, Purse(coins=tuple(self.coins)), cap_units=cap)

    def dearer(self, before: Draft, *free: Coin, cap: int = CAP) -> Draft:
        return self.spender.dearer(before, Purse(coins=free), cap_units=cap)

    def sign(self, draft: Draft) -> Attempt:
        return self.spender.sign(draft, counter=None, keys=KEYS.keyring())

    def accepted(self, attempt: Attempt) -> Mapping[str, Any]:
        """Return what the node itself thinks of bytes."""
        (answer,) = self.node.ask("testmempoolaccept", [attempt.raw.hex()], 0)
        verdict: Mapping[str, Any] = answer
        return verdict

    def include(self, *raws: bytes) -> int:
        """Have the chain itself take transactions and nothing else, without any provider; return the height."""
        made = self.node.ask("generateblock", WALLET.address, [raw.hex() for raw in raws])
        assert made["hash"]
        return self.node.height()

    def case(self, draft: Draft, *attempts: Attempt, seen: Mapping[str, int], depth: int = 3) -> Case:
        """Return a spend as its rows describe it. seen: the heights of scanned transactions that spend its coins."""
        assert isinstance(draft.claim, Coins)
        spent_by = {
            each.outpoint: (txid, height)
            for txid, height in seen.items()
            for each in self.transaction(txid, height).inputs
            if each.outpoint in draft.claim.outpoints
        }
        txids = tuple(attempt.txid for attempt in attempts)
        return Case(intent=draft.intent, claim=draft.claim, txids=txids, depth=depth, spent_by=spent_by)

    def fate(self, draft: Draft, *attempts: Attempt, seen: Mapping[str, int], depth: int = 3) -> Fate:
        """Return what became of a spend."""
        return self.spender.fate(self.case(draft, *attempts, seen=seen, depth=depth))

    def transaction(self, txid: str, height: int) -> Tx:
        block = self.node.ask("getblock", self.node.ask("getblockhash", height), 2)
        return read(bytes.fromhex(next(tx["hex"] for tx in block["tx"] if tx["txid"] == txid)))


def deeper(draft: Draft, **terms: int) -> Draft:
    """Return a draft with other terms."""
    return replace(draft, offer=replace(draft.offer, terms={**draft.offer.terms, **terms}))


@contextmanager
def world(node: HandMined, *, providers: int = 1, join_sat_vb: int = 5) -> Iterator[World]:
    """Start this many providers for a chain, and a spender that uses them."""
    with ExitStack() as stack:
        peers = [stack.enter_context(LyingRpc(node.url, key=f"provider-{number}")) for number in range(providers)]
        nodes = bitcoin_providers(NETWORK, [peer.url for peer in peers], timeout_s=10)
        treasurer = BitcoinTreasurer(NETWORK, nodes, join_sat_vb=join_sat_vb)
        yield World(node, peers, BitcoinSpender(NETWORK, nodes), treasurer)
