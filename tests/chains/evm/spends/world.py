"""Provides a spender on a real chain behind any number of providers, each honest until a test changes it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from chains.base import Place
from chains.evm.nodes import evm_providers
from chains.evm.reader import EvmReader
from chains.evm.spends.spender import EvmSpender
from chains.evm.treasurer import EvmTreasurer
from chains.spending import Attempt, Case, Counter, Draft, Fate, Intent, KeyRef, Offer, Output, Purse
from core.catalogue.catalogue import Catalogue, Pair, load_catalogue
from devstack.evm.tokens import install_token
from tests.chains.conftest import CATALOGUE, OURS
from tests.peers.anvil import BUYER, BUYER_KEY, HandMined
from tests.peers.lying_rpc import LyingRpc
from tests.peers.raw_keyring import RawKeyring

GWEI = 10**9
ETHER = 10**18
CAP = 100 * GWEI
HOT, HOT_KEY = BUYER, BUYER_KEY
WALLET = KeyRef(address=HOT, ordinal=None)
# A node's error code for a transfer that a token does not allow.
REVERT_CODE = 3


@dataclass
class World:
    node: HandMined
    providers: list[LyingRpc]
    spender: EvmSpender
    reader: EvmReader
    treasurer: EvmTreasurer
    network: str = "ethereum"

    def intent(self, units: int, *, currency: str | None = "USDT", to: str = OURS) -> Intent:
        pair = None if currency is None else CATALOGUE.pairs[currency, self.network]
        return Intent(wallet=WALLET, pair=pair, outputs=(Output(recipient=to, units=units),))

    def token(self, *, code: str = "token", units: int = 10**12) -> None:
        install_token(self.node.rpc, CATALOGUE.pairs["USDT", self.network], balances={HOT: units}, code=code)

    def sign(self, intent: Intent, *, offer: Offer | None = None, slot: int | None = None) -> Attempt:
        draft = Draft(intent=intent, claim=Counter(at_least=0), offer=offer or self.quote(intent))
        counter = self.spender.next_counter(HOT, ours=0) if slot is None else slot
        return self.spender.sign(draft, counter=counter, keys=RawKeyring(HOT_KEY))

    def quote(self, intent: Intent, *, cap: int = CAP, **promised: int) -> Offer:
        """Return what would be offered for a transfer. promised: by coin, to spends that are in no block."""
        return self.spender.draft(intent, Purse(promised=promised), cap_units=cap).offer

    def dearer(self, intent: Intent, before: Offer) -> Offer:
        """Return what would be offered in place of another offer."""
        draft = Draft(intent=intent, claim=Counter(at_least=0), offer=before)
        return self.spender.dearer(draft, Purse(), cap_units=CAP).offer

    def balance_at(self, address: str, pair: Pair | None, block_hash: str, *, witnesses: int = 1) -> int:
        """Return what one place holds after a block, by the providers' word."""
        place = Place(address=address, pair=pair)
        return self.reader.snapshot([place], height=0, block_hash=block_hash, witnesses=witnesses).units[0]

    def include(self, attempt: Attempt) -> None:
        """Have the chain itself take it, without any provider."""
        self.node.ask("eth_sendRawTransaction", "0x" + attempt.raw.hex())
        self.node.mine()

    def fate(self, intent: Intent, *attempts: Attempt, slot: int = 0, depth: int = 3) -> Fate:
        txids = tuple(one.txid for one in attempts)
        return self.spender.fate(Case(intent=intent, claim=Counter(at_least=slot), txids=txids, depth=depth))


@contextmanager
def world(
    node: HandMined, *, providers: int = 1, network: str = "ethereum", catalogue: Catalogue = CATALOGUE
) -> Iterator[World]:
    """Start this many providers for a chain, and a spender that uses them."""
    with ExitStack() as stack:
        peers = [stack.enter_context(LyingRpc(node.url, key=f"provider-{number}")) for number in range(providers)]
        known = catalogue.networks[network]
        nodes = evm_providers(known, [peer.url for peer in peers], timeout_s=10)
        reader, treasurer = EvmReader(known, catalogue.pairs_on(network), nodes), EvmTreasurer(known, nodes)
        yield World(node, peers, EvmSpender(known, nodes), reader, treasurer, network)


def rolled_up() -> Catalogue:
    """The catalogue whose rollups have their fee oracles."""
    return load_catalogue("production")
