"""Ethereum and its kin: finds transfers to us, block by block. Built by chains.registry for actors.polling.

A block costs two calls (its transactions, its Transfer logs), and one more for each transaction that pays us: only a
receipt proves success, and only its own order of logs stays the same when a reorg includes the transaction elsewhere.
Coin that a contract passes on is in neither transactions nor logs; this scan does not see it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from chains import evm_wire as wire
from chains.base import NATIVE, Block, BlockScan, Matcher, ProviderError, Transfer
from chains.evm_fees import gas_price
from chains.providers import Providers
from chains.rpc import RpcError
from core.catalogue import Network, Pair

# keccak256("Transfer(address,address,uint256)"), of ERC-20 and ERC-721 alike.
TRANSFER_TOPIC: Final = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
# ERC-20 indexes sender and recipient; ERC-721 the token's number too.
ERC20_TOPICS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A transfer as the block tells it, before its receipt has proved it."""

    txid: str
    currency: str
    units: int
    sender: str
    recipient: str
    log: wire.Log | None


class EvmAdapter:
    """One EVM network, as chains.base.ChainAdapter."""

    def __init__(self, network: Network, pairs: Iterable[Pair], providers: Providers) -> None:
        offered = tuple(pairs)
        self._providers = providers
        self._finality_tag = network.finality_tag
        # Where the coin itself is not offered (base, arbitrum), its transfers are nobody's deposit.
        self._native = next((pair.currency for pair in offered if pair.contract is None), None)
        self._tokens = {pair.contract.lower(): pair.currency for pair in offered if pair.contract is not None}

    def head(self) -> int:
        """Return the height of the newest block."""
        return wire.quantity(self._providers.call("eth_blockNumber", [], str))

    def block(self, height: int) -> Block | None:
        """Return a header, or None where the node has no such block yet."""
        header = self._providers.call_or_none("eth_getBlockByNumber", [hex(height), False], wire.Header)
        return None if header is None else wire.block(header, height)

    def scan_block(self, height: int, matcher: Matcher) -> BlockScan | None:
        """Return a block with its proved transfers to us, or None where the node has no such block yet."""
        full = self._providers.call_or_none("eth_getBlockByNumber", [hex(height), True], wire.FullBlock)
        if full is None:
            return None
        block = wire.block(full, height)
        candidates = [*self._native_transfers(full.transactions), *self._token_transfers(self._logs(block), block)]
        ours = frozenset(matcher({candidate.recipient for candidate in candidates})) if candidates else frozenset()
        matched = [candidate for candidate in candidates if candidate.recipient in ours]
        return BlockScan(block=block, transfers=tuple(self._prove(matched, block)))

    def final_height(self) -> int | None:
        """Return the newest final height; None where the chain has no such tag or its node does not know it."""
        if self._finality_tag is None:
            return None
        try:
            header = self._providers.call_or_none("eth_getBlockByNumber", [self._finality_tag, False], wire.Header)
        except RpcError:
            return None
        return None if header is None else wire.quantity(header.number)

    def transfer_fee(self, pair: Pair) -> int:
        """Return what one transfer costs now, in wei; what a rollup adds for its data is not in it."""
        if pair.transfer_gas is None:
            raise ValueError(f"{pair.currency} on {pair.network} has no gas figure")
        return pair.transfer_gas * gas_price(self._providers).expected_wei

    def _logs(self, block: Block) -> Sequence[wire.Log]:
        if not self._tokens:
            return ()
        # By hash, so that the logs are of this very block even when a reorg comes between the two calls.
        wanted = {"blockHash": block.hash, "address": list(self._tokens), "topics": [TRANSFER_TOPIC]}
        return self._providers.call("eth_getLogs", [wanted], list[wire.Log])

    def _native_transfers(self, transactions: Iterable[wire.Transaction]) -> Iterator[_Candidate]:
        if self._native is None:
            return
        for transaction in transactions:
            units = wire.quantity(transaction.value)
            if transaction.to is None or units == 0:
                continue
            yield _Candidate(
                txid=wire.block_or_tx_hash(transaction.hash),
                currency=self._native,
                units=units,
                sender=wire.address(transaction.sender),
                recipient=wire.address(transaction.to),
                log=None,
            )

    def _token_transfers(self, logs: Iterable[wire.Log], block: Block) -> Iterator[_Candidate]:
        for log in logs:
            if wire.block_or_tx_hash(log.block_hash) != block.hash:
                raise ProviderError(f"a log of another block than {block.height}")
            candidate = None if log.removed else self._token_transfer(log)
            if candidate is not None:
                yield candidate

    def _token_transfer(self, log: wire.Log) -> _Candidate | None:
        """Read a log as an ERC-20 transfer of an offered token; None for every other shape."""
        currency = self._tokens.get(wire.address(log.address))
        amount = wire.data(log.data)
        if currency is None or len(log.topics) != ERC20_TOPICS or log.topics[0].lower() != TRANSFER_TOPIC:
            return None
        if len(amount) < wire.WORD_BYTES:
            raise ProviderError("a Transfer log was cut short")
        sender, recipient = wire.topic_address(log.topics[1]), wire.topic_address(log.topics[2])
        units = int.from_bytes(amount, "big")
        if sender is None or recipient is None or units == 0 or len(amount) > wire.WORD_BYTES:
            return None
        return _Candidate(
            txid=wire.block_or_tx_hash(log.transaction_hash),
            currency=currency,
            units=units,
            sender=sender,
            recipient=recipient,
            log=log,
        )

    def _prove(self, matched: Sequence[_Candidate], block: Block) -> Iterator[Transfer]:
        receipts = {txid: self._receipt(txid, block) for txid in dict.fromkeys(found.txid for found in matched)}
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

    def _receipt(self, txid: str, block: Block) -> wire.Receipt:
        receipt = self._providers.call("eth_getTransactionReceipt", [txid], wire.Receipt)
        if wire.block_or_tx_hash(receipt.transaction_hash) != txid:
            raise ProviderError("a receipt of another transaction")
        if wire.block_or_tx_hash(receipt.block_hash) != block.hash:
            raise ProviderError(f"a receipt of another block than {block.height}")
        return receipt


def _ordinal(candidate: _Candidate, receipt: wire.Receipt) -> str | None:
    """Return where a transfer stands in its transaction; None where the transaction failed and moved nothing."""
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
