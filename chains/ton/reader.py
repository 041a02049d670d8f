"""Finds transfers to us on TON, master block by master block. Built by chains.registry for actors.

A block of the masterchain is final. It adds blocks of shards, whose transactions are read from one node, so that the
reader notices a node that contradicts itself and asks the next. Heights are the numbers of master blocks.
"""

from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise, takewhile
from statistics import median_low
from typing import Final

from chains.base import (
    CHARGE,
    AbsentError,
    Agreement,
    Block,
    BlockScan,
    ContradictionError,
    Cost,
    DisagreementError,
    NotYetError,
    Ours,
    Place,
    ProviderError,
    Recorded,
    Snapshot,
)
from chains.net import several
from chains.net.at_once import majority
from chains.net.providers import Providers
from chains.net.reader import FinalReader, is_same
from chains.net.usage import Kind
from chains.one_transfer import departed_and_included
from chains.spending import Departure
from chains.ton import accounts, nodes, wire
from chains.ton.jettons import JETTONS, Jetton
from chains.ton.nodes import LackedError, Toncenter, ToncenterError
from chains.ton.scan import block as scan_block
from chains.ton.scan import departures, shards
from chains.ton.scan.block import Read, Seen, assets_of, matched, transactions_of, transfers_of
from chains.ton.scan.departures import Offered
from chains.ton.spends import fees
from chains.ton.wire import BlockId
from core.catalogue.catalogue import Pair

# Master blocks of one step to a node.
AT_ONCE: Final = 8
# The master blocks whose shards are kept, so that the next step does not ask for them again.
KEPT_MAX: Final = 64
# States of this many master blocks have to be kept, those of a minute.
STATES_MIN: Final = 150
_ANYONE: Final = "0:" + "00" * 32


class TonReader(FinalReader[Toncenter]):
    """Reads one TON network, as chains.family.CounterReader and InclusionReader."""

    # A node is asked for the whole block of a deposit's shard.
    _witness_kind = Kind.BLOCKS

    def __init__(
        self, pairs: Iterable[Pair], providers: Providers[Toncenter], *, jettons: Mapping[str, Jetton] = JETTONS
    ) -> None:
        super().__init__(providers)
        self._pairs, self._jettons = tuple(pairs), jettons
        self._assets = assets_of(self._pairs, jettons)
        self._offered = Offered(pairs=self._pairs, jettons=jettons)
        self._searches = accounts.Searches()
        self._kept = OrderedDict[tuple[Toncenter, str], tuple[BlockId, ...]]()

    def lacking(self) -> Sequence[Sequence[str] | ProviderError]:
        """Return the features that each provider lacks."""
        return self._providers.apiece(_lacking)

    def costs(self, *, cap_units: int) -> Mapping[str, Cost]:
        """Return the present cost of moving each coin; of jettons, to a recipient without a wallet of them."""
        return fees.costs(self._providers, self._pairs, cap_units=cap_units)

    def snapshot(self, places: Sequence[Place], *, height: int, block_hash: str, witnesses: int = 1) -> Snapshot:
        """Return balances after a block; see chains.family."""
        shown = self._providers.answers(
            lambda node: accounts.balances(node, places, self._jettons, height=height, block_hash=block_hash),
            decides=majority(),
        )
        [(most, count), *_] = Counter(shown).most_common()
        if 2 * count <= len(shown):
            raise DisagreementError(f"providers show different balances after block {height}")
        if count < min(witnesses, self.providers):
            raise NotYetError("too few providers show the same balances")
        return Snapshot(height=height, block_hash=block_hash, units=most)

    def departure(self, txid: str, block: Block, *, sender: str = "") -> Departure | None:
        """Return a transaction that one of our keys signed; see chains.family."""
        del sender  # Its bytes name one.
        answers = self._providers.everyone(lambda node: self._departure(node, txid, block), kind=Kind.BLOCKS)
        return departed_and_included(answers)

    def inclusions(self, block: Block, txids: Collection[str]) -> Mapping[str, Agreement]:
        """Count the providers whose block has each transaction; see chains.family."""
        answers = self._providers.everyone(lambda node: self._included(node, block, txids), kind=Kind.BLOCKS)
        known = [answer for answer in answers if not isinstance(answer, ProviderError)]
        return {txid: Agreement.of([txid in included for included in known]) for txid in txids}

    def used_counters(self, sender: str, height: int) -> int:
        """Return a wallet's seqno after a block, the median of all nodes' answers."""
        return median_low(self._providers.answers(lambda node: accounts.seqno(node, sender, height, self._searches)))

    def counter_heights(self, sender: str, counter: int, low: int, high: int) -> Sequence[int]:
        """Return the blocks in which nodes say that a wallet took a request, the median first."""
        return self._heights(lambda node: accounts.height_of(node, sender, counter, low, high, self._searches))

    def locate(self, txid: str) -> None:
        """Return None: this interface has no index of transactions."""
        del txid

    def _next(self, node: Toncenter, after: int, head: int, ours: Ours, upon: str) -> list[BlockScan]:
        heights = range(after + 1, after + 1 + min(AT_ONCE, max(1, head - after)))
        reads = self._reads(node, heights)
        self._upright(node, reads[0].block, upon)
        return [self._dated(scan) for scan in matched(reads, self._assets, ours)]

    def _again(self, node: Toncenter, height: int, ours: Ours) -> BlockScan:
        [scan] = matched(self._reads(node, range(height, height + 1)), self._assets, ours)
        return self._dated(scan)

    def _reads(self, node: Toncenter, heights: Sequence[int]) -> list[Read]:
        """Return the master blocks that came, up to the first that did not, each upon the one before it."""
        fetched = several.fetch(partial(nodes.header, node), heights)
        blocks = [fetched.answers[height] for height in takewhile(fetched.answers.__contains__, heights)]
        if not blocks and fetched.failure is not None:
            raise fetched.failure
        for before, block in pairwise(blocks):
            if block.parent_hash != before.hash:
                raise ContradictionError(f"block {block.height} is not upon the block before it of the same provider")
        return self._with_transactions(node, blocks)

    def _with_transactions(self, node: Toncenter, blocks: Sequence[Block]) -> list[Read]:
        ends = [(blocks[0].parent_height, blocks[0].parent_hash), *((each.height, each.hash) for each in blocks)]
        tops = several.fetch(partial(self._tops, node), ends)
        if tops.failure is not None:
            raise _soon(node, tops.failure, blocks)
        added = [shards.added(node, tops.answers[before], tops.answers[after]) for before, after in pairwise(ends)]
        asked = dict.fromkeys(block for each in added for block in each)
        fetched = several.fetch(partial(transactions_of, node, assets=self._assets), asked)
        if fetched.failure is not None:
            raise _soon(node, fetched.failure, blocks)
        return [
            Read(block, [seen for each in between for seen in fetched.answers[each]])
            for block, between in zip(blocks, added, strict=True)
        ]

    def _tops(self, node: Toncenter, end: tuple[int, str]) -> tuple[BlockId, ...]:
        """Return the blocks of shards that a node's master block names, which never change."""
        height, block_hash = end
        kept = self._kept.get((node, block_hash))
        if kept is None:
            kept = self._kept[node, block_hash] = nodes.tops(node, height)
            while len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)
        return kept

    def _final(self, node: Toncenter) -> int:
        return nodes.head(node)

    def _header(self, node: Toncenter, height: int) -> Block:
        return nodes.header(node, height)

    def _has(self, node: Toncenter, recorded: Recorded) -> bool:
        """Return True if a node has a deposit or a charge in its block, by the account's transactions there.

        The id of a transaction is the hash of all that it does, so that it proves the units of a charge.
        """
        block = nodes.header(node, recorded.height)
        if block.hash != recorded.block_hash:
            return False
        account = self._account_of(recorded)
        at = (each for each in self._at(node, block, account) if each.account == account)
        theirs = (scan_block.read_whole(each.raw) for each in at)
        if recorded.ordinal == CHARGE:
            return any(each.hash.hex() == recorded.txid for each in theirs)
        return any(is_same(transfer, recorded) for each in theirs for transfer in transfers_of(each, self._assets))

    def _at(self, node: Toncenter, block: Block, account: str) -> Iterable[Seen]:
        """Yield the transactions of a master block in the shards of an account."""
        number = wire.number_of(account)
        for each in self._added(node, block):
            if wire.is_within(number, each.prefix):
                yield from transactions_of(node, each, self._assets)

    def _departure(self, node: Toncenter, txid: str, block: Block) -> Departure | None:
        for seen in self._all_in(node, block):
            transaction = scan_block.departed(seen, txid)
            if transaction is not None:
                key = departures.key_of(nodes.account(node, transaction.address).data)
                return departures.read(transaction, key, block, self._offered)
        raise AbsentError(f"none such in block {block.height}")

    def _included(self, node: Toncenter, block: Block, txids: Collection[str]) -> Collection[str]:
        """Return those of the transactions that a node has in a block."""
        there = list(self._all_in(node, block))
        return {txid for txid in txids if any(scan_block.departed(seen, txid) for seen in there)}

    def _all_in(self, node: Toncenter, block: Block) -> Iterator[Seen]:
        """Yield all transactions of a master block. Raises NotYetError if the node has another one."""
        if nodes.header(node, block.height).hash != block.hash:
            raise NotYetError(f"another block than {block.hash}")
        for each in self._added(node, block):
            yield from transactions_of(node, each, self._assets)

    def _added(self, node: Toncenter, block: Block) -> Sequence[BlockId]:
        """Return the blocks of shards that a master block adds."""
        before = self._tops(node, (block.parent_height, block.parent_hash))
        return shards.added(node, before, self._tops(node, (block.height, block.hash)))

    def _account_of(self, recorded: Recorded) -> str:
        """Return the account whose transaction brings a deposit: of jettons, the recipient's jetton wallet."""
        masters = [master for master, currency in self._assets.currencies.items() if currency == recorded.currency]
        return self._jettons[masters[0]].wallet(recorded.recipient) if masters else recorded.recipient


def _lacking(node: Toncenter) -> list[str]:
    """Return the features that a node lacks."""
    newest = nodes.head(node)
    try:
        for top in nodes.tops(node, newest):
            nodes.page(node, top)
    except ToncenterError as error:
        return [f"shows no transactions of blocks ({error.text}): no block can be read"]
    try:
        nodes.account(node, _ANYONE, seqno=max(1, newest - STATES_MIN))
    except LackedError:
        return ["keeps no states of old blocks: no balance is compared with it, and no departure is found by it"]
    return []


def _soon(node: Toncenter, failure: BaseException, blocks: Sequence[Block]) -> BaseException:
    """Return the failure to read a node's newest block: one that shows its header will have its shards soon."""
    is_soon = isinstance(failure, LackedError) and nodes.head(node) <= blocks[0].height
    return NotYetError(str(failure)) if is_soon else failure
