"""Reads whole blocks of bitcoin, and finds payments to us and spends of our coins. Built by chains.registry for actors.

It needs neither a transaction index nor a wallet of the node, and a pruned node serves as well. It asks for a block by
the hash at its height; the block proves the rest itself: docs/decisions/bitcoin.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from chains.base import (
    Block,
    BlockScan,
    ChainError,
    Cost,
    DisagreementError,
    NotYetError,
    Ours,
    Place,
    ProviderError,
    Recorded,
    Sightings,
    Snapshot,
)
from chains.bitcoin import coins
from chains.bitcoin.blocks import Blocks
from chains.bitcoin.departures import read_departure
from chains.bitcoin.mempool import Pools
from chains.bitcoin.nodes import hash_at, lacking
from chains.bitcoin.scan import Matcher
from chains.bitcoin.spends import fees
from chains.net.at_once import majority
from chains.net.json_rpc import JsonRpc
from chains.net.providers import RpcProviders
from chains.net.reader import NodesReader
from chains.net.usage import Kind
from chains.spending import Departure
from core.catalogue.catalogue import Network, Pair
from core.catalogue.families import bitcoin_parameters

# Nearer to the head than this, blocks are read one by one.
CATCH_UP_FROM: Final = 12
# The most that is read at once while the head is far away: blocks, or their size.
RANGE_BLOCKS_MAX: Final = 64
RANGE_BYTES_MAX: Final = 8 * 1024 * 1024


class BitcoinReader(NodesReader[JsonRpc]):
    """Reads one network of bitcoin, as chains.family.Reader, MempoolReader and DepartureReader."""

    def __init__(self, network: Network, pairs: Iterable[Pair], providers: RpcProviders) -> None:
        super().__init__(providers)
        self._network = network
        self._chain = bitcoin_parameters(network).chain
        # The coin is tracked whether or not it is offered.
        self._currency = network.gas_currency
        self._offered = tuple(pair.currency for pair in pairs)
        self._blocks = Blocks(network)
        self._pools = Pools(providers, self._currency, self._chain)

    def lacking(self) -> Sequence[Sequence[str] | ProviderError]:
        """Return the features that each provider lacks."""
        return self._providers.apiece(lacking)

    def scan(self, after: int, head: int, ours: Ours, *, whole: bool = False, upon: str = "") -> Sequence[BlockScan]:
        """Return the scan of the next block, or of many while the head is far away. No block is ever left out."""
        del whole
        is_far = head - after > CATCH_UP_FROM
        last = min(head, after + RANGE_BLOCKS_MAX) if is_far else after + 1
        try:
            return self._marked(
                self._providers.attempt(lambda node: self._range(node, after + 1, last, ours, upon), kind=Kind.BLOCKS)
            )
        except NotYetError:
            return ()

    def reread(self, height: int, ours: Ours, *, but_by: str = "") -> BlockScan | None:
        """Return a block as another provider has it, or None if the chain is not there yet."""
        try:
            block = self._providers.attempt(
                lambda node: self._blocks.proved(node, height), second=True, but_by=but_by, kind=Kind.BLOCKS
            )
        except NotYetError:
            return None
        return Matcher(self._currency, self._chain).match(block, ours)

    def final_height(self) -> None:
        """Return None: on this chain only depth makes a block final."""
        return

    def locate(self, txid: str) -> int | None:
        """Return the height of a transaction that has an unspent output; None for all others."""
        heights = self._providers.answers(lambda node: coins.locate(node, txid))
        return max((height for height in heights if height is not None), default=None)

    def snapshot(self, places: Sequence[Place], *, height: int, block_hash: str, witnesses: int = 1) -> Snapshot:
        """Return the unspent ones of the places' coins, at the nodes' tip; nodes report no older block."""
        del height, block_hash
        snapshots = self._providers.answers(lambda node: coins.snapshot(node, places), decides=majority())
        best = max(snapshots, key=snapshots.count)
        same = snapshots.count(best)
        is_apart = len({one.block_hash for one in snapshots}) == len(set(snapshots))
        # Two providers that report different coins at one block are both not believed.
        if same < min(witnesses, self.providers) or (2 * same <= len(snapshots) and (witnesses > 1 or not is_apart)):
            if is_apart:
                raise NotYetError("providers stand at different blocks")
            raise DisagreementError("providers tell different coins of one block")
        return best

    def costs(self, *, cap_units: int) -> Mapping[str, Cost]:
        """Return the present cost of a payout, and of one more coin in it."""
        return dict.fromkeys(self._offered, fees.costs(self._providers, self._network, cap_units=cap_units))

    def departure(self, txid: str, block: Block, *, sender: str = "") -> Departure | None:
        """Return a transaction of a block that spent our coins; the signer of it had our keys.

        Its fee is the one that most providers report. Raises DisagreementError without a majority.
        """
        del sender  # Its bytes name one.
        departures = self._providers.answers(
            lambda node: read_departure(node, self._blocks.proved(node, block.height), txid, block, self._chain)
        )
        best = max(departures, key=departures.count)
        if 2 * departures.count(best) <= len(departures):
            raise DisagreementError(f"providers do not agree on what {txid} paid for its place")
        return best

    def sightings(self, ours: Ours, known: Mapping[str, bool]) -> Sightings:
        """Return transfers to us that wait in providers' pools; see chains.family."""
        return self._pools.sightings(ours, known)

    def _header(self, node: JsonRpc, height: int) -> Block:
        return self._blocks.header(node, height)

    def _shown(self, node: JsonRpc, height: int) -> Block:
        """Return a block whose coinbase proves its height, which its header alone does not."""
        return self._blocks.proved(node, height).block

    def _has(self, node: JsonRpc, recorded: Recorded) -> bool:
        return coins.is_same(node, recorded, self._chain)

    def _hash(self, node: JsonRpc, height: int) -> str:
        return hash_at(node, height)

    def _range(self, node: JsonRpc, first: int, last: int, ours: Ours, upon: str) -> Sequence[BlockScan]:
        """Return consecutive blocks, up to the first that the node does not prove; at least one, or raise."""
        matcher = Matcher(self._currency, self._chain)
        scans: list[BlockScan] = []
        size = 0
        for height in range(first, last + 1):
            try:
                proved = self._blocks.proved(node, height)
            except ChainError:
                if scans:
                    break
                raise
            if not scans:
                self._upright(node, proved.block, upon)
            elif proved.block.parent_hash != scans[-1].block.hash:
                break
            scans.append(matcher.match(proved, ours))
            size += proved.size
            if size >= RANGE_BYTES_MAX:
                break
        return scans
