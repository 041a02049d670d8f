"""Catches up: reads many blocks at once while the scan is far behind the head. Called by chains.evm.reader.

Where the coin is offered, every block is still read in full, several at a time; only the logs come by range. Where only
tokens are, blocks that hold nothing for us are skipped: their headers are not read, so such a range must lie deeper
than any reorg, and every provider must show the same logs for it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from chains.base import Block, BlockScan, ChainError, MissingLogsError, NotYetError, ProviderError
from chains.evm import wire
from chains.evm.scan.block import Assets, BlockReader, Candidate, Matcher, are_of
from chains.evm.scan.receipts import ReceiptBook
from chains.net import several
from chains.net.json_rpc import JsonRpc, Rpc
from chains.net.providers import RpcProviders
from chains.net.usage import Kind

LogsByBlock = Mapping[int, Sequence[wire.Log]]

RANGE_START: Final = 64
RANGE_MAX: Final = 2_000
# Full blocks are megabytes on busy chains: one portion of them is held in memory at a time.
FULL_BLOCKS_MAX: Final = 64
# Blocks this deep are no longer replaced.
SETTLED_DEPTH: Final = 256


class RangeSize:
    """How many blocks one request for logs may span: halved when a node finds it too much, grown by success."""

    def __init__(self) -> None:
        self.blocks = RANGE_START

    def shrink(self) -> None:
        """Ask for less next time."""
        self.blocks = max(1, self.blocks // 2)

    def grow(self) -> None:
        """Ask for more next time."""
        self.blocks = min(RANGE_MAX, self.blocks + self.blocks // 2 + 1)


class RangeScanner:
    """Reads ranges of one network."""

    def __init__(
        self, providers: RpcProviders, assets: Assets, book: ReceiptBook, witnessed: Callable[[Block], Block]
    ) -> None:
        """Take what returns a block whose header is believed, or raises ProviderError."""
        self._providers = providers
        self._witnessed = witnessed
        self._assets = assets
        self._book = book
        self.size = RangeSize()

    def scan(self, first: int, head: int, matcher: Matcher, *, whole: bool = False) -> Sequence[BlockScan]:
        """Return scans from `first` on: consecutive ones, or with gaps if nothing was for us. Never none.

        whole: without gaps, whatever it costs.

        Raises ChainError; the range is smaller then next time.
        """
        last = min(first + self.size.blocks - 1, head)
        # A head that one node invents must not make the newest blocks look settled.
        settled = min(head, self._providers.agreed_head() or head) - SETTLED_DEPTH
        is_sparse = not whole and self._assets.native is None and last <= settled
        if not is_sparse:
            last = min(last, first + FULL_BLOCKS_MAX - 1)
        read = self._sparse if is_sparse else self._dense
        try:
            scans = read(first, last, matcher)
        except ChainError:
            # Too many results, too slow or too long: a smaller range may pass.
            self.size.shrink()
            raise
        self.size.grow()
        return scans

    def _dense(self, first: int, last: int, matcher: Matcher) -> Sequence[BlockScan]:
        """Read every block; if no node proves that it left nothing out, read on without proof from the first.

        One by one these blocks might never be caught up with. Their deposits need witnesses, where there may be any.
        """
        unproved: list[BlockScan] = []

        def ask(node: JsonRpc) -> Sequence[BlockScan]:
            mark = self._providers.answered_by
            blocks, logs = self._fetch(node, first, last)
            try:
                return self._read(node, blocks, logs, matcher, strict=True)
            except MissingLogsError:
                self._compare(logs, first, last)
                scans = self._read(node, blocks, logs, matcher, strict=False)
                unproved[:] = unproved or [replace(scan, read_by=mark) for scan in scans]
                raise

        try:
            return self._providers.attempt(ask, kind=Kind.BLOCKS)
        except MissingLogsError:
            return [replace(scan, is_proved=self._providers.count == 1) for scan in unproved]

    def _fetch(self, node: JsonRpc, first: int, last: int) -> tuple[dict[int, wire.FullBlock], LogsByBlock]:
        reader = BlockReader(node, self._assets)
        logs = self._logs_by_block(reader, first, last)
        fetched = several.fetch(partial(_full_block, reader), range(first, last + 1))
        if fetched.failure is not None:
            raise fetched.failure
        return fetched.answers, logs

    def _read(
        self, node: JsonRpc, blocks: Mapping[int, wire.FullBlock], logs: LogsByBlock, matcher: Matcher, *, strict: bool
    ) -> Sequence[BlockScan]:
        reader = BlockReader(node, self._assets, book=self._book, strict=strict)
        for height, full in blocks.items():
            _check_logs(self._witnessed(wire.block(full, height)), logs.get(height, ()))
        ours = _asked_once(self._assets, blocks.values(), logs.values(), matcher)
        return [reader.read(full, height, ours, logs.get(height, ())) for height, full in blocks.items()]

    def _sparse(self, first: int, last: int, matcher: Matcher) -> Sequence[BlockScan]:
        return self._providers.attempt(lambda node: self._sparse_range(node, first, last, matcher), kind=Kind.BLOCKS)

    def _sparse_range(self, node: JsonRpc, first: int, last: int, matcher: Matcher) -> Sequence[BlockScan]:
        reader = BlockReader(node, self._assets, book=self._book)
        logs = self._logs_by_block(reader, first, last)
        self._compare(logs, first, last)
        touched = {
            height: {
                address for transfer in self._candidates(shown) for address in (transfer.sender, transfer.recipient)
            }
            for height, shown in logs.items()
        }
        ours = frozenset(matcher(frozenset().union(*touched.values()))) if touched else frozenset()
        heights = [height for height, addresses in touched.items() if addresses & ours]
        return [self._sparse_block(node, reader, height, ours, logs) for height in sorted({first, last, *heights})]

    def _sparse_block(
        self,
        node: Rpc,
        reader: BlockReader,
        height: int,
        ours: frozenset[str],
        logs: LogsByBlock,
    ) -> BlockScan:
        header = node.call_or_none("eth_getBlockByNumber", [hex(height), False], wire.Header)
        if header is None:
            raise NotYetError(f"block {height} is not there")
        block, shown = self._witnessed(wire.block(header, height)), logs.get(height, [])
        _check_logs(block, shown)
        matched = [transfer for transfer in self._candidates(shown) if transfer.recipient in ours]
        sent = tuple((transfer.sender, transfer.txid) for transfer in self._candidates(shown))
        return BlockScan(block=block, transfers=tuple(reader.prove(matched, block, shown, {})), sent=sent)

    def _candidates(self, logs: Iterable[wire.Log]) -> Iterator[Candidate]:
        return self._assets.token_transfers(logs)

    def _logs_by_block(self, reader: BlockReader, first: int, last: int) -> LogsByBlock:
        by_height: defaultdict[int, list[wire.Log]] = defaultdict(list)
        if not self._assets.tokens:
            return by_height
        for log in reader.ask_logs({"fromBlock": hex(first), "toBlock": hex(last)}):
            height = wire.quantity(log.block_number or "")
            if not first <= height <= last:
                raise ProviderError(f"a log of block {height} among those of {first} to {last}")
            by_height[height].append(log)
        return by_height

    def _compare(self, logs: LogsByBlock, first: int, last: int) -> None:
        """Refuse a range whose logs another provider shows more of. No header proves here that none was cut."""
        if self._providers.count == 1:
            return
        shown = sum(len(of_block) for of_block in logs.values())
        wanted = {"fromBlock": hex(first), "toBlock": hex(last)}
        for other in self._providers.everyone(
            lambda node: len(BlockReader(node, self._assets).ask_logs(wanted)), kind=Kind.BLOCKS
        ):
            if isinstance(other, int) and other > shown:
                raise ProviderError(f"the logs of blocks {first} to {last} were cut: {shown} of {other}")


def _check_logs(block: Block, logs: Iterable[wire.Log]) -> None:
    """Refuse logs of another block. A reorg between two questions explains them, so that the node keeps its rank."""
    if not are_of(block, logs):
        raise ProviderError(f"a log of another block than {block.height}")


def _full_block(reader: BlockReader, height: int) -> wire.FullBlock:
    full = reader.full_block(height)
    if full is None:
        raise NotYetError(f"block {height} is not there")
    return full


def _asked_once(
    assets: Assets, blocks: Iterable[wire.FullBlock], logs: Iterable[Sequence[wire.Log]], matcher: Matcher
) -> Matcher:
    """Match the recipients of all blocks in one question, and answer each block's from that."""
    recipients = {
        *(transfer.recipient for full in blocks for transfer in assets.native_transfers(full.transactions)),
        *(transfer.recipient for shown in logs for transfer in assets.token_transfers(shown)),
    }
    ours = frozenset(matcher(recipients)) if recipients else frozenset()
    return lambda seen: ours & set(seen)
