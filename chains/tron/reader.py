"""Finds transfers to us on TRON, block by block. Built by chains.registry for actors.

A block is read from one node, so that the reader notices a node that contradicts itself and asks the next. The chain
itself names its final block: the solidified head, some nineteen blocks back.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import median_low
from typing import Final

from chains.base import (
    Agreement,
    Block,
    BlockScan,
    Cost,
    DisagreementError,
    NotYetError,
    Ours,
    Place,
    ProviderError,
    Recorded,
    Snapshot,
    witnesses_needed,
)
from chains.net.at_once import majority
from chains.net.reader import NodesReader
from chains.net.rest import RestError, RestNode
from chains.net.usage import Kind
from chains.one_transfer import departed
from chains.spending import Departure
from chains.tron import accounts, nodes, scan, wire
from chains.tron.nodes import TronProviders
from chains.tron.outcomes import OutcomeBook
from chains.tron.spends import departures, fees
from core.catalogue.catalogue import Network, Pair
from core.catalogue.families import tron_parameters

# Attempts to read a snapshot, which has to fit between two blocks.
SNAPSHOTS_MAX: Final = 4


class TronReader(NodesReader[RestNode]):
    """Reads one TRON network, as chains.family.InclusionReader."""

    # A deposit is looked up in its whole block, which may be as large as any that the scan reads.
    _witness_kind = Kind.BLOCKS

    def __init__(self, network: Network, pairs: Iterable[Pair], providers: TronProviders) -> None:
        super().__init__(providers)
        self._parameters = tron_parameters(network)
        self._pairs = tuple(pairs)
        self._assets = scan.assets_of(self._pairs)
        self._book = OutcomeBook()

    def lacking(self) -> Sequence[Sequence[str] | ProviderError]:
        """Return the features that each provider lacks, with the consequences."""
        return self._providers.apiece(_lacking)

    def scan(self, after: int, head: int, ours: Ours, *, whole: bool = False, upon: str = "") -> Sequence[BlockScan]:
        """Return the scan of the next block; see chains.family."""
        del head, whole
        try:
            return self._marked(
                [self._providers.attempt(lambda node: self._read(node, after + 1, ours, upon), kind=Kind.BLOCKS)]
            )
        except NotYetError:
            return ()

    def reread(self, height: int, ours: Ours, *, but_by: str = "") -> BlockScan | None:
        """Return a block as another provider reports it, or None if that one does not have it yet."""
        try:
            return self._providers.attempt(
                lambda node: self._read(node, height, ours), second=True, but_by=but_by, kind=Kind.BLOCKS
            )
        except NotYetError:
            return None

    def final_height(self) -> int | None:
        """Return the median of the nodes' solidified heights, the lower of two; None if too few answer."""
        blocks = [
            answer for answer in self._providers.everyone(nodes.solid, decides=majority()) if isinstance(answer, Block)
        ]
        if len(blocks) < witnesses_needed(self.providers):
            return None
        return median_low(block.height for block in blocks)

    def locate(self, txid: str) -> int | None:
        """Return the height that most nodes report for a transaction, or None if no node knows it."""
        answers = self._providers.everyone(
            lambda node: node.ask("wallet/gettransactioninfobyid", {"value": txid}, wire.Info)
        )
        heights = Counter(info.height for info in answers if isinstance(info, wire.Info) and info.id == txid)
        return max(heights, key=lambda height: (heights[height], height), default=None)

    def departure(self, txid: str, block: Block, *, sender: str = "") -> Departure | None:
        """Return a transaction that one of our keys signed; see chains.family."""
        del sender  # Its bytes name one.
        answers = self._providers.everyone(lambda node: departures.read(node, txid, block, self._pairs))
        return departed(answers)

    def inclusions(self, block: Block, txids: Collection[str]) -> Mapping[str, Agreement]:
        """Count the providers whose block has each transaction; see chains.family."""
        answers = self._providers.everyone(lambda node: departures.listed(node, block), kind=Kind.BLOCKS)
        blocks = [answer for answer in answers if not isinstance(answer, ProviderError)]
        return {txid: Agreement.of([txid in listed for listed in blocks]) for txid in txids}

    def snapshot(self, places: Sequence[Place], *, height: int, block_hash: str, witnesses: int = 1) -> Snapshot:
        """Return balances after the newest irreversible block; nodes keep none of other blocks."""
        del height, block_hash
        snapshots = self._providers.answers(lambda node: _snapshot(node, places), decides=majority())
        [(most, count), *others] = Counter(
            (each.height, each.block_hash, each.units) for each in snapshots
        ).most_common()
        if count >= min(witnesses, self.providers) and 2 * count > len(snapshots):
            return Snapshot(height=most[0], block_hash=most[1], units=most[2])
        if any(other[0] == most[0] for other, _ in others):
            raise DisagreementError("providers tell of different balances after one block")
        raise NotYetError("too few providers tell of balances after the same block")

    def costs(self, *, cap_units: int) -> Mapping[str, Cost]:
        """Return the present cost of moving each coin, in sun, without staking, to a recipient new to the coin."""
        prices = fees.agreed_prices(self._providers, self._providers.answers(accounts.prices))
        return {pair.currency: fees.cost(pair, prices, self._parameters, cap_units) for pair in self._pairs}

    def _read(self, node: RestNode, height: int, ours: Ours, upon: str = "") -> BlockScan:
        read = scan.read(node, height, self._assets, ours.addresses, self._book)
        if read is None:
            # Another node may have it.
            raise NotYetError(f"no block {height} yet")
        self._upright(node, self._witnessed(read.block), upon)
        return read

    def _header(self, node: RestNode, height: int) -> Block:
        return wire.block(nodes.header(node, height), height)

    def _has(self, node: RestNode, recorded: Recorded) -> bool:
        read = scan.read(node, recorded.height, self._assets, lambda seen: {recorded.recipient} & set(seen), self._book)
        if read is None:
            raise NotYetError(f"no block {recorded.height} yet")
        return read.block.hash == recorded.block_hash and any(
            (each.txid, each.ordinal, each.currency, each.units, each.recipient)
            == (recorded.txid, recorded.ordinal, recorded.currency, recorded.units, recorded.recipient)
            for each in read.transfers
        )


def _snapshot(node: RestNode, places: Sequence[Place]) -> Snapshot:
    """Return one node's balances, all after the same block. Raises NotYetError if blocks come too fast."""
    before = nodes.solid(node)
    for _ in range(SNAPSHOTS_MAX):
        units = tuple(accounts.balance(node, place.address, place.pair, accounts.SOLID) for place in places)
        after = nodes.solid(node)
        if after.hash == before.hash:
            return Snapshot(height=after.height, block_hash=after.hash, units=units)
        before = after
    raise NotYetError("the chain goes on faster than balances are told")


def _lacking(node: RestNode) -> list[str]:
    """Return the features that a node lacks."""
    lines = []
    try:
        nodes.solid(node)
    except RestError:
        lines.append("lacks walletsolidity: what is final is not known")
    try:
        head = {"num": nodes.DIALECT.head(node)}
        infos = node.ask("wallet/gettransactioninfobyblocknum", head, list[wire.Info])
    except RestError:
        return [*lines, "lacks wallet/gettransactioninfobyblocknum: no block can be read"]
    # Some nodes are configured not to store outcomes and return an empty list.
    if not infos and node.ask("wallet/getblockbynum", head, wire.FullBlock).transactions:
        lines.append("keeps no outcomes: no block can be read, nor what became of a payout")
    return lines
