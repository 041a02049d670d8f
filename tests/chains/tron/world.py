"""A simulated chain over HTTP, with the family's reader and spender. Support for the tests in this folder."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from chains.base import BlockScan
from chains.family import DEPOSITS, HOT
from chains.keys import Keys
from chains.spending import Attempt, Case, Draft, Intent, KeyRef, Output, Purse
from chains.tron.keys import TronDeriver
from chains.tron.nodes import TronProviders, tron_providers
from chains.tron.reader import TronReader
from chains.tron.spends.spender import TronSpender
from chains.tron.treasurer import TronTreasurer
from core.catalogue.catalogue import Pair, load_catalogue
from tests.peers.ours import Finds
from tests.peers.tron.chain import NETWORK, TRX, Tron

CATALOGUE = load_catalogue("development")
PAIRS = tuple(CATALOGUE.pairs_on("tron"))
USDT_PAIR = CATALOGUE.pairs["USDT", "tron"]
CAP = 100 * TRX
DERIVER = TronDeriver(Keys(" ".join(["abandon"] * 11 + ["about"]))._seed)
KEYRING = DERIVER.keyring()
HOT_KEY = KeyRef(address=DERIVER.address(HOT, 0), ordinal=None)
OURS = KeyRef(address=DERIVER.address(DEPOSITS, 0), ordinal=0)
THEIRS = DERIVER.address(DEPOSITS, 77)


@dataclass
class World:
    tron: Tron
    providers: TronProviders
    reader: TronReader
    spender: TronSpender
    treasurer: TronTreasurer

    def scan(self, height: int | None = None, ours: Collection[str] = (OURS.address, HOT_KEY.address)) -> BlockScan:
        at = self.tron.chain.head.height if height is None else height
        (block_scan,) = self.reader.scan(at - 1, at, Finds(lambda seen: set(ours) & set(seen)))
        return block_scan

    def transfers(self) -> list[tuple[str, str, int, str]]:
        """Mine the waiting transactions, and return what the scan of the block finds."""
        self.tron.mine()
        return [(each.ordinal, each.currency, each.units, each.recipient) for each in self.scan().transfers]

    def drafted(self, intent: Intent, *, cap: int = CAP, **promised: int) -> Draft:
        return self.spender.draft(intent, Purse(promised=promised), cap_units=cap)

    def signed(self, intent: Intent) -> tuple[Draft, Attempt]:
        draft = self.drafted(intent)
        return draft, self.spender.sign(draft, counter=None, keys=KEYRING)


def world(tron: Tron, urls: Sequence[str] = ()) -> World:
    providers = tron_providers(NETWORK, urls or [tron.url], timeout_s=5)
    return World(
        tron,
        providers,
        TronReader(NETWORK, PAIRS, providers),
        TronSpender(NETWORK, providers),
        TronTreasurer(providers),
    )


def payment(units: int, *, pair: Pair | None = None, to: str = THEIRS, wallet: KeyRef = HOT_KEY) -> Intent:
    return Intent(wallet=wallet, pair=pair, outputs=(Output(recipient=to, units=units),))


def case(draft: Draft, *attempts: Attempt) -> Case:
    return Case(intent=draft.intent, claim=draft.claim, txids=tuple(one.txid for one in attempts), depth=4)
