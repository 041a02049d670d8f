"""Finds transfers to us on Ethereum and its kin, block by block. Built by chains.registry for actors.

A block costs two calls (its transactions, its Transfer logs), and one more for each transaction that pays us: only a
receipt proves success, and only its own order of logs stays the same when a reorg includes the transaction elsewhere.
All calls for a block go to one node, so that the reader notices a node that contradicts itself and asks the next. Coin
that a contract passes on is in neither transactions nor logs: balances show it, traces name it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median_low
from typing import Final

import structlog

from chains.base import (
    WITNESSES_MIN,
    Agreement,
    Balance,
    Block,
    BlockScan,
    ContradictionError,
    Cost,
    MissingLogsError,
    NotYetError,
    Ours,
    Place,
    ProviderError,
    Recorded,
    Snapshot,
    Total,
    Transfer,
    witnesses_needed,
)
from chains.evm import wire
from chains.evm.scan import internal, methods, witness
from chains.evm.scan.block import TRANSFER_TOPIC, Assets, BlockReader, Matcher, places
from chains.evm.scan.range import RangeScanner
from chains.evm.scan.receipts import ReceiptBook
from chains.evm.spends import balances, departures, fate
from chains.evm.spends.gas import todays_price
from chains.net.at_once import majority
from chains.net.json_rpc import JsonRpc, RpcError
from chains.net.providers import RpcProviders
from chains.net.reader import NodesReader
from chains.net.usage import Kind
from chains.one_transfer import departed_and_included
from chains.spending import Departure
from core.catalogue.catalogue import Network, Pair
from core.catalogue.families import evm_parameters

__all__ = ["TRANSFER_TOPIC", "EvmReader"]

log = structlog.get_logger()

# Nearer to the head than this, blocks are read one by one.
CATCH_UP_FROM: Final = 24


class EvmReader(NodesReader[JsonRpc]):
    """Reads one EVM network, as chains.family.Reader, HiddenReader and CounterReader."""

    _providers: RpcProviders

    def __init__(self, network: Network, pairs: Iterable[Pair], providers: RpcProviders) -> None:
        super().__init__(providers)
        self._network = network
        self._chain_id = int(network.chain_identity)
        self._finality_tag = network.finality_tag
        self._pairs = tuple(pairs)
        self._assets = Assets(self._pairs)
        self._tokens = {pair.contract.lower(): pair for pair in self._pairs if pair.contract is not None}
        self._book = ReceiptBook()
        self._ranges = RangeScanner(providers, self._assets, self._book, self._witnessed)

    def lacking(self) -> Sequence[Sequence[str] | ProviderError]:
        """Return the methods of the scan that each provider lacks, with the consequences."""
        has_coin = self._assets.native is not None
        return self._providers.apiece(
            lambda node: methods.lacking(node, finality_tag=self._finality_tag, is_coin_offered=has_coin)
        )

    def scan(self, after: int, head: int, ours: Ours, *, whole: bool = False, upon: str = "") -> Sequence[BlockScan]:
        """Return the scan of the next block, or of many while the head is far away; see chains.family.

        If a range fails, the next block alone is read at once: some nodes refuse ranges, and all refuse some.
        """
        first = after + 1
        if head - first >= CATCH_UP_FROM and self._ranges.size.blocks > 1:
            try:
                scans = self._ranges.scan(first, head, ours.addresses, whole=whole)
                if _is_upon(scans, after, upon):
                    return self._ended(scans)
            except ProviderError as error:
                log.info("range.refused", blocks_next=self._ranges.size.blocks, problem=str(error))
        else:
            self._ranges.size.grow()
        scan = self._block_scan(first, ours.addresses, thorough=False, upon=upon)
        return () if scan is None else self._ended([scan])

    def reread(
        self, height: int, ours: Ours, *, but_by: str = "", last: str = "", block_hash: str = ""
    ) -> BlockScan | None:
        """Return a block read from all its receipts, or None if the chain is not there yet; see chains.family."""
        scan = self._block_scan(height, ours.addresses, thorough=True, but_by=but_by, last=last, block_hash=block_hash)
        return None if scan is None else self._ended([scan])[0]

    def final_height(self) -> int | None:
        """Return the newest final height that nodes agree on; None if too few report one.

        It is the median, the lower of two: a single node can neither hold back all money nor release it.
        """
        tag = self._finality_tag
        if tag is None:
            return None

        def height(node: JsonRpc) -> int | None:
            header = node.call_or_none("eth_getBlockByNumber", [tag, False], wire.Header)
            return None if header is None else wire.height(header.number)

        answers = self._providers.everyone(height, decides=majority(lambda answer: answer is not None))
        heights = [answer for answer in answers if isinstance(answer, int)]
        return median_low(heights) if len(heights) >= witnesses_needed(self.providers) else None

    def snapshot(self, places: Sequence[Place], *, height: int, block_hash: str, witnesses: int = 1) -> Snapshot:
        """Return balances after the named block, which nodes of these networks keep."""
        units = (balances.at_block(self._providers, place, block_hash, witnesses=witnesses) for place in places)
        return Snapshot(height=height, block_hash=block_hash, units=tuple(units))

    def costs(self, *, cap_units: int) -> Mapping[str, Cost]:
        """Return the present cost of moving each coin, in wei, without a rollup's fee for data."""
        price_wei = min(todays_price(self._providers, self._network).expected_wei, cap_units)
        return {pair.currency: self._cost(pair, price_wei) for pair in self._pairs}

    def _cost(self, pair: Pair, price_wei: int) -> Cost:
        """Return a coin's costs. Its sweep, or the gas for a token's, goes to a plain address, as no payout need."""
        parameters = evm_parameters(self._network)
        payout_gas, coin_gas = parameters.transfer_gas[pair.currency], parameters.coin_gas
        sweep_gas = coin_gas if pair.contract is None else payout_gas + coin_gas
        return Cost(payout_units=payout_gas * price_wei, sweep_units=sweep_gas * price_wei)

    def locate(self, txid: str) -> int | None:
        """Return the height at which a transaction is included, or None if no node knows it."""

        def height(node: JsonRpc) -> int | None:
            receipt = node.call_or_none("eth_getTransactionReceipt", [txid], wire.Receipt)
            return wire.height(receipt.block_number) if receipt and receipt.block_number else None

        return max((answer for answer in self._providers.everyone(height) if isinstance(answer, int)), default=None)

    def departure(self, txid: str, block: Block, *, sender: str = "") -> Departure | None:
        """Return a transaction that one of our keys signed; see chains.family."""
        del sender  # Its bytes name one.
        answers = self._providers.everyone(
            lambda node: departures.read(node, txid, block, self._tokens, chain_id=self._chain_id)
        )
        return departed_and_included(answers)

    def used_counters(self, sender: str, height: int) -> int:
        """Return the number of nonces that a sender used up to a block, the median of all nodes' answers."""
        return median_low(self._providers.answers(lambda node: fate.nonce(node, sender, height)))

    def counter_heights(self, sender: str, counter: int, low: int, high: int) -> Sequence[int]:
        """Return the blocks in which nodes say that a sender used a nonce, the median first."""
        return self._heights(lambda node: departures.height_of(node, sender, counter, low, high))

    def balance(self, address: str, block_hash: str, *, last: str = "") -> Balance:
        """Return an address's coin after a block."""
        units = self._providers.attempt(lambda node: internal.balance(node, address, block_hash), last=last)
        return Balance(units=units, read_by=self._providers.answered_by)

    def coverage(self, total: Total) -> Agreement:
        """Count the providers whose balance covers a total, and those whose balance or block contradicts it."""
        return self._opinion(lambda node: witness.covers(node, total))

    def listing(self, recorded: Recorded) -> Agreement:
        """Count the providers whose block lists a payment of coin, and those whose block does not."""
        return self._opinion(lambda node: witness.is_listed(node, recorded), kind=Kind.BLOCKS)

    def internal_transfers(self, block: Block, recipient: str) -> tuple[Transfer, ...]:
        """Return the coin that contracts passed on to an address in a block; empty if no node traces."""
        currency = self._assets.native
        if currency is None:
            return ()
        try:
            return self._providers.attempt(
                lambda node: internal.internal_transfers(node, block, recipient, currency), kind=Kind.BLOCKS
            )
        except RpcError:
            return ()

    def _header(self, node: JsonRpc, height: int) -> Block:
        header = node.call_or_none("eth_getBlockByNumber", [hex(height), False], wire.Header)
        if header is None:
            raise NotYetError(f"block {height} is not there yet")
        return wire.block(header, height)

    def _has(self, node: JsonRpc, recorded: Recorded) -> bool:
        return witness.is_same(node, recorded, self._assets.contracts.get(recorded.currency))

    def _ended(self, scans: Iterable[BlockScan]) -> tuple[BlockScan, ...]:
        """Return scans with the mark of their provider, and drop the receipts that they took."""
        marked = self._marked(scans)
        for scan in marked:
            self._book.drop(scan.block.hash)
        return marked

    def _block_scan(
        self,
        height: int,
        matcher: Matcher,
        *,
        thorough: bool,
        but_by: str = "",
        last: str = "",
        upon: str = "",
        block_hash: str = "",
    ) -> BlockScan | None:
        def asked(*, strict: bool, thorough_: bool) -> BlockScan:
            return self._providers.attempt(
                lambda node: self._scan(
                    node, height, matcher, upon, block_hash=block_hash, strict=strict, thorough=thorough_
                ),
                second=thorough,
                but_by=but_by,
                last=last,
                kind=Kind.BLOCKS,
            )

        try:
            return asked(strict=True, thorough_=thorough)
        except NotYetError:
            return None
        except MissingLogsError:
            # No node proves the block: read the logs that most nodes show.
            return asked(strict=False, thorough_=False)

    def _scan(
        self,
        node: JsonRpc,
        height: int,
        matcher: Matcher,
        upon: str,
        *,
        block_hash: str,
        strict: bool,
        thorough: bool,
    ) -> BlockScan:
        reader = BlockReader(node, self._assets, book=self._book, strict=strict, thorough=thorough)
        full = reader.full_block(height)
        if full is None:
            raise NotYetError(f"block {height} is not there yet")
        block = self._witnessed(wire.block(full, height))
        if block_hash not in {"", block.hash}:
            raise ContradictionError(f"another block {height} than the scanned one")
        self._upright(node, block, upon)
        logs = () if thorough else reader.logs_of(block)
        scan = reader.read(full, height, matcher, logs)
        return scan if strict else replace(scan, is_proved=self._is_borne_out(block, logs))

    def _is_borne_out(self, block: Block, logs: Sequence[wire.Log]) -> bool:
        """Return True if a second provider shows the same logs of a block, or there is none.

        Raises ProviderError if more providers show others, or as many show more of them: each of those that matter has
        to bring its own receipt.
        """
        if self.providers == 1 or not self._assets.tokens:
            return True
        answers = self._providers.everyone(
            lambda node: places(BlockReader(node, self._assets).logs_of(block)), kind=Kind.BLOCKS
        )
        voices = Counter(answer for answer in answers if isinstance(answer, frozenset))
        mine = places(logs)
        # The provider that showed them may have been left out of this question for its silence.
        same = max(1, voices.pop(mine, 0))
        if any((count, len(other)) > (same, len(mine)) for other, count in voices.items()):
            raise ProviderError(f"other providers show other logs of block {block.height}")
        if same < WITNESSES_MIN:
            log.warning("block.not_proved", network=self._network.code, height=block.height, block_hash=block.hash)
        return same >= WITNESSES_MIN


def _is_upon(scans: Sequence[BlockScan], after: int, upon: str) -> bool:
    """Return True if the first block that was read names `upon` as its parent, or is not the next one."""
    above = [scan.block for scan in scans[:1] if scan.block.parent_height == after]
    return not upon or all(block.parent_hash == upon for block in above)
