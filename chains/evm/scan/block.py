"""Reads one block from one node, and refuses an incomplete one.

Called by chains.evm.reader and chains.evm.scan.range.
A node that leaves out logs loses a sale silently. So if the header's bloom filter admits logs that the node does not
show, the reader fetches the receipts of the whole block, whose logs have to fill the filter again.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from chains.base import NATIVE, Block, BlockScan, ContradictionError, MissingLogsError, ProviderError, Transfer
from chains.evm import wire
from chains.evm.scan import bloom
from chains.evm.scan.receipts import ReceiptBook, Receipts
from chains.net.http import TooMuchError, TooSlowError
from chains.net.json_rpc import Rpc, RpcError
from core.catalogue.catalogue import Pair

# Given the recipients of blocks, returns those that are ours.
Matcher = Callable[[Collection[str]], Collection[str]]

# keccak256("Transfer(address,address,uint256)"), of ERC-20 and ERC-721 alike.
TRANSFER_TOPIC: Final = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
# ERC-20 indexes sender and recipient; ERC-721 the token's number too.
ERC20_TOPICS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A transfer as the block shows it, before its receipt proves it."""

    txid: str
    currency: str
    units: int
    sender: str
    recipient: str
    log: wire.Log | None


class Assets:
    """The money of a network: its coin, if that is offered, and the pinned contracts."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        offered = tuple(pairs)
        # Where the coin itself is not offered (base, arbitrum), its transfers are not deposits.
        self.native = next((pair.currency for pair in offered if pair.contract is None), None)
        self.tokens = {pair.contract.lower(): pair.currency for pair in offered if pair.contract is not None}
        self.contracts = {currency: contract for contract, currency in self.tokens.items()}

    def native_transfers(self, transactions: Iterable[wire.Transaction]) -> Iterator[Candidate]:
        """Read transactions as transfers of the coin."""
        if self.native is None:
            return
        for transaction in transactions:
            units = wire.quantity(transaction.value)
            if transaction.to is None or units == 0:
                continue
            yield Candidate(
                txid=wire.block_or_tx_hash(transaction.hash),
                currency=self.native,
                units=units,
                sender=wire.address(transaction.sender),
                recipient=wire.address(transaction.to),
                log=None,
            )

    def is_ours(self, log: wire.Log) -> bool:
        """Return True if a pinned contract wrote a log under the Transfer topic, as we ask nodes for."""
        return wire.address(log.address) in self.tokens and bool(log.topics) and log.topics[0].lower() == TRANSFER_TOPIC

    def token_transfers(self, logs: Iterable[wire.Log]) -> Iterator[Candidate]:
        """Read logs as ERC-20 transfers of offered tokens, leaving out every other shape."""
        for log in logs:
            candidate = None if log.removed else self._token_transfer(log)
            if candidate is not None:
                yield candidate

    def _token_transfer(self, log: wire.Log) -> Candidate | None:
        currency = self.tokens.get(wire.address(log.address))
        amount = wire.data(log.data)
        if currency is None or len(log.topics) != ERC20_TOPICS or log.topics[0].lower() != TRANSFER_TOPIC:
            return None
        if len(amount) < wire.WORD_BYTES:
            raise ProviderError("a Transfer log was cut short")
        sender, recipient = wire.topic_address(log.topics[1]), wire.topic_address(log.topics[2])
        units = int.from_bytes(amount, "big")
        if sender is None or recipient is None or units == 0 or len(amount) > wire.WORD_BYTES:
            return None
        return Candidate(
            txid=wire.block_or_tx_hash(log.transaction_hash),
            currency=currency,
            units=units,
            sender=sender,
            recipient=recipient,
            log=log,
        )


class BlockReader:
    """Reads blocks from one node. strict: missing logs have to be proved. thorough: read all from receipts.

    book: the receipts that nodes have shown before; without one none is kept for the next reading.
    """

    def __init__(
        self,
        node: Rpc,
        assets: Assets,
        *,
        book: ReceiptBook | None = None,
        strict: bool = True,
        thorough: bool = False,
    ) -> None:
        self._node = node
        self._assets = assets
        self._book = book or ReceiptBook()
        self._strict = strict
        self._thorough = thorough

    def full_block(self, height: int) -> wire.FullBlock | None:
        """Return a block with all its transactions, or None if the node has no such block yet."""
        full = self._node.call_or_none("eth_getBlockByNumber", [hex(height), True], wire.FullBlock)
        if full is not None:
            check_transactions(full, wire.block(full, height))
        return full

    def logs_of(self, block: Block) -> Sequence[wire.Log]:
        """Ask for the block's Transfer logs of pinned contracts. Raises ContradictionError for logs of another block.

        Such a list counts for nothing where lists of providers are compared: it cannot be read.
        """
        if not self._assets.tokens:
            return ()
        # By hash, so that the logs are of this very block even when a reorg comes between the two calls.
        logs = self.ask_logs({"blockHash": block.hash})
        if not are_of(block, logs):
            raise ContradictionError(f"a log of another block than {block.height}")
        return logs

    def ask_logs(self, where: Mapping[str, str]) -> Sequence[wire.Log]:
        """Ask for Transfer logs of pinned contracts in one block or in a range."""
        wanted = {**where, "address": list(self._assets.tokens), "topics": [TRANSFER_TOPIC]}
        return self._node.call("eth_getLogs", [wanted], list[wire.Log])

    def read(self, full: wire.FullBlock, height: int, matcher: Matcher, logs: Sequence[wire.Log]) -> BlockScan:
        """Return the proved transfers to us in a block, given the logs that the node shows of this very block."""
        block = wire.block(full, height)
        receipts = self._checked_receipts(full, block, logs)
        if receipts is not None and self._thorough:
            logs = [log for receipt in receipts.values() for log in receipt.logs if self._assets.is_ours(log)]
        candidates = [
            *self._assets.native_transfers(full.transactions),
            *self._assets.token_transfers(logs),
        ]
        ours = frozenset(matcher({transfer.recipient for transfer in candidates})) if candidates else frozenset()
        matched = [transfer for transfer in candidates if transfer.recipient in ours]
        return BlockScan(
            block=block, transfers=tuple(self.prove(matched, block, logs, receipts or {})), sent=sent_in(full)
        )

    def prove(
        self, matched: Sequence[Candidate], block: Block, logs: Sequence[wire.Log], known: Receipts
    ) -> Iterator[Transfer]:
        """Turn candidates into transfers by their receipts. Raises ProviderError if a receipt contradicts one."""
        wanted = dict.fromkeys(c.txid for c in matched)
        if not wanted:
            return
        asked = self._book.collect(self._node, block, [txid for txid in wanted if txid not in known])
        receipts = {txid: known[txid] if txid in known else asked[txid] for txid in wanted}
        shown = Counter(wire.block_or_tx_hash(log.transaction_hash) for log in logs if self._assets.is_ours(log))
        for txid, receipt in receipts.items():
            if sum(self._assets.is_ours(log) for log in receipt.logs) > shown[txid]:
                raise ProviderError(f"the logs of block {block.height} lack some that a receipt has")
        for candidate in matched:
            ordinal = _ordinal(candidate, receipts[candidate.txid])
            if ordinal is not None:
                yield Transfer(
                    txid=candidate.txid,
                    ordinal=ordinal,
                    currency=candidate.currency,
                    units=candidate.units,
                    sender=candidate.sender,
                    recipient=candidate.recipient,
                )

    def _checked_receipts(self, full: wire.FullBlock, block: Block, logs: Sequence[wire.Log]) -> Receipts | None:
        """Return the whole block's receipts if they are needed, checked against header and logs."""
        silent = self._silent_contracts(bloom.of_header(full), logs)
        if not self._thorough and not (silent and self._strict):
            return None
        receipts = self._receipts_of(block)
        check_receipts(full, block, receipts)
        proved = {_place(log) for receipt in receipts for log in receipt.logs if self._assets.is_ours(log)}
        shown = {_place(log) for log in logs if self._assets.is_ours(log) and not log.removed}
        # The node may show logs that are not proved: each transfer to us needs its own receipt anyway.
        if not self._thorough and proved - shown:
            raise ProviderError(f"the logs of block {block.height} were cut: {len(shown)} of {len(proved)}")
        return {wire.block_or_tx_hash(receipt.transaction_hash): receipt for receipt in receipts}

    def _receipts_of(self, block: Block) -> Sequence[wire.Receipt]:
        """Return the receipts of a whole block. Raises MissingLogsError if the node refuses, or has too many.

        A block that was too large is not asked for again: all nodes' attempts together may outlast a step.
        """
        problem = self._book.excess(self._node, block)
        if not problem:
            try:
                return self._node.call("eth_getBlockReceipts", [hex(block.height)], list[wire.Receipt])
            except RpcError as error:
                problem = str(error)
            except (TooMuchError, TooSlowError) as error:
                problem = str(error)
                self._book.note_excess(self._node, block, problem)
        raise MissingLogsError(f"block {block.height} may hold more than its logs show: {problem}")

    def _silent_contracts(self, admitted: int, logs: Iterable[wire.Log]) -> Collection[str]:
        logging = {wire.address(log.address) for log in logs}
        return [
            contract
            for contract in self._assets.tokens
            if contract not in logging and bloom.may_hold(admitted, contract, TRANSFER_TOPIC)
        ]


def are_of(block: Block, logs: Iterable[wire.Log]) -> bool:
    """Return True if all logs name a block by its hash."""
    return all(wire.block_or_tx_hash(log.block_hash) == block.hash for log in logs)


def places(logs: Iterable[wire.Log]) -> frozenset[tuple[str, int]]:
    """Return the places of logs: transaction and position in the block."""
    return frozenset(_place(log) for log in logs if not log.removed)


def sent_in(full: wire.FullBlock) -> tuple[tuple[str, str], ...]:
    """Return (sender, txid) of a block's transactions."""
    return tuple((wire.address(each.sender), wire.block_or_tx_hash(each.hash)) for each in full.transactions)


def check_transactions(full: wire.FullBlock, block: Block) -> None:
    """Refuse a block whose transactions have gaps, foreign ones or doubles, or are missing although gas was used."""
    if not full.transactions and wire.quantity(full.gas_used or "0x0") > 0:
        raise ProviderError(f"block {block.height} has lost its transactions")
    if len({transaction.hash for transaction in full.transactions}) != len(full.transactions):
        raise ProviderError(f"block {block.height} names a transaction twice")
    for place, transaction in enumerate(full.transactions):
        if transaction.index is not None and wire.quantity(transaction.index) != place:
            raise ProviderError(f"block {block.height} lacks its transaction {place}")
        if transaction.block_hash is not None and wire.block_or_tx_hash(transaction.block_hash) != block.hash:
            raise ProviderError(f"block {block.height} holds a transaction of another block")


def check_receipts(full: wire.FullBlock, block: Block, receipts: Sequence[wire.Receipt]) -> None:
    """Refuse receipts that are not those of the whole block.

    There may be more than the block admits to: Polygon's bridge writes logs that are in no filter.
    """
    if any(wire.block_or_tx_hash(receipt.block_hash) != block.hash for receipt in receipts):
        raise ProviderError(f"receipts of another block than {block.height}")
    have = {wire.block_or_tx_hash(receipt.transaction_hash) for receipt in receipts}
    if any(wire.block_or_tx_hash(transaction.hash) not in have for transaction in full.transactions):
        raise ProviderError(f"block {block.height} has transactions without receipt")
    if full.logs_bloom is None:
        return
    admitted = bloom.of_header(full)
    if admitted & ~bloom.of_logs(log for receipt in receipts for log in receipt.logs):
        raise ProviderError(f"the receipts of block {block.height} lack logs that its header knows of")


def _place(log: wire.Log) -> tuple[str, int]:
    return wire.block_or_tx_hash(log.transaction_hash), wire.quantity(log.log_index)


def _ordinal(candidate: Candidate, receipt: wire.Receipt) -> str | None:
    """Return a transfer's position in its transaction; None if the transaction failed and moved nothing."""
    succeeded = wire.quantity(receipt.status) == wire.SUCCESS
    if candidate.log is None:
        return NATIVE if succeeded else None
    places = [place for place, log in enumerate(receipt.logs) if _is_same(log, candidate.log)]
    if not succeeded or len(places) != 1:
        raise ProviderError("a log that its receipt does not have")
    return str(places[0])


def _is_same(one: wire.Log, other: wire.Log) -> bool:
    return (
        wire.quantity(one.log_index) == wire.quantity(other.log_index)
        and wire.address(one.address) == wire.address(other.address)
        and one.topics == other.topics
        and one.data == other.data
    )
