"""Finds the transfers to us in one block: TRX by transfer, TRX that contracts pass on, and tokens by their logs.

Called by chains.tron.reader. A block costs two calls to one node, whose answers are compared: exactly one outcome for
each transaction, or the block is refused. TRC-10 and the text of calls do not count.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from chains.base import NATIVE, BlockScan, ProviderError, Transfer
from chains.net.rest import RestNode
from chains.tron import transactions, wire
from chains.tron.outcomes import OutcomeBook
from core.catalogue.catalogue import Pair

INTERNAL: Final = "internal:"
# The kinds that run contracts: a call, and a contract's creation, whose constructor may pay any address.
RUNNING: Final = frozenset({wire.TRIGGER, wire.CREATE})

Transactions = Mapping[str, wire.Transaction]
"""The transactions of a block by their ids, in its order."""


@dataclass(frozen=True, slots=True)
class Assets:
    """The coins to look for."""

    # None if TRX is not offered.
    native: str | None
    # By contract, in the form of logs.
    tokens: Mapping[str, str]


def assets_of(pairs: Iterable[Pair]) -> Assets:
    """Return the offered coins."""
    known = tuple(pairs)
    native = next((pair.currency for pair in known if pair.contract is None), None)
    tokens = {wire.asked(pair.contract)[2:]: pair.currency for pair in known if pair.contract is not None}
    return Assets(native, tokens)


def read(
    node: RestNode,
    height: int,
    assets: Assets,
    ours: Callable[[Collection[str]], Collection[str]],
    book: OutcomeBook,
) -> BlockScan | None:
    """Return the scan of a block, or None if the node has no such block yet."""
    full = node.ask("wallet/getblockbynum", {"num": height}, wire.FullBlock)
    if not full.id:
        return None
    block = wire.block(full, height)
    by_id = {wire.a_hash(transaction.id): transaction for transaction in full.transactions}
    if len(by_id) != len(full.transactions):
        raise ProviderError(f"block {height} has a transaction twice")
    running = {txid: _contract(transaction).type in RUNNING for txid, transaction in by_id.items()}
    infos = book.collect(node, block, running)
    outcomes = _outcomes(by_id.keys(), infos, height)
    candidates = list(_transfers(by_id, outcomes, assets))
    mine = set(ours({transfer.recipient for transfer in candidates}))
    transfers = tuple(transfer for transfer in candidates if transfer.recipient in mine)
    _prove(by_id, transfers)
    return BlockScan(block=block, transfers=transfers, sent=tuple(_sent(by_id)))


def _outcomes(txids: Collection[str], infos: list[wire.Info], height: int) -> dict[str, wire.Info]:
    """Return each transaction's outcome. Raises ProviderError unless there is exactly one for each."""
    outcomes = {wire.a_hash(info.id): info for info in infos}
    if len(outcomes) != len(infos) or outcomes.keys() != txids:
        raise ProviderError(f"block {height} has other outcomes than transactions")
    if any(info.height != height for info in infos):
        raise ProviderError(f"an outcome of another block than {height}")
    return outcomes


def _transfers(by_id: Transactions, outcomes: Mapping[str, wire.Info], assets: Assets) -> Iterator[Transfer]:
    """Yield all transfers that took effect, to any recipient, in the block's order."""
    for txid, transaction in by_id.items():
        if not transaction.is_success:
            continue
        contract, info = _contract(transaction), outcomes[txid]
        if contract.type == wire.TRANSFER and assets.native is not None:
            yield _plain(txid, contract.parameter.value, assets.native)
        if info.receipt.result != wire.SUCCESS or info.result:
            continue
        yield from _tokens(txid, info, assets)
        if assets.native is not None:
            yield from _internal(txid, info, assets.native)


def _plain(txid: str, value: wire.Value, currency: str) -> Transfer:
    return Transfer(
        txid=txid,
        ordinal=NATIVE,
        currency=currency,
        units=value.amount,
        sender=wire.stored(value.owner_address),
        recipient=wire.stored(value.to_address),
    )


def _tokens(txid: str, info: wire.Info, assets: Assets) -> Iterator[Transfer]:
    for place, log in enumerate(info.log):
        currency = assets.tokens.get(wire.contract(log.address))
        moved = None if currency is None else moved_by(log)
        if currency is not None and moved is not None and moved[2]:
            sender, recipient, units = moved
            yield Transfer(
                txid=txid,
                ordinal=str(place),
                currency=currency,
                units=units,
                sender=sender,
                recipient=recipient,
            )


def moved_by(log: wire.Log) -> tuple[str, str, int] | None:
    """Return sender, recipient and units of a token's transfer; None for an event of another shape."""
    if len(log.topics) != wire.TOKEN_TOPICS or log.topics[0].lower() != wire.TRANSFER_TOPIC:
        return None
    sender, recipient, amount = *map(wire.topic_address, log.topics[1:]), wire.data(log.data)
    if len(amount) < wire.WORD_BYTES:
        raise ProviderError("a Transfer log was cut short")
    if sender is None or recipient is None or len(amount) > wire.WORD_BYTES:
        return None
    return sender, recipient, int.from_bytes(amount, "big")


def _internal(txid: str, info: wire.Info, currency: str) -> Iterator[Transfer]:
    for place, call in enumerate(info.internal):
        units = sum(value.units for value in call.values if not value.token)
        if units <= 0 or not call.is_payment:
            continue
        yield Transfer(
            txid=txid,
            ordinal=f"{INTERNAL}{place}",
            currency=currency,
            units=units,
            sender=wire.stored(call.caller_address),
            recipient=wire.stored(call.to_address),
        )


def _prove(by_id: Transactions, transfers: Collection[Transfer]) -> None:
    """Check the transfers to us against the signed bytes: these hash to the id and make the same transfer."""
    for transfer in transfers:
        raw = wire.data(by_id[transfer.txid].raw_data_hex)
        if transfer.ordinal == NATIVE:
            signed = transactions.read(raw)
            if signed is None or (signed.txid, signed.kind, signed.owner, signed.to, signed.units) != (
                transfer.txid,
                wire.TRANSFER,
                transfer.sender,
                transfer.recipient,
                transfer.units,
            ):
                raise ProviderError("a transfer says something else than what was signed")
        elif transactions.txid_of(raw) != transfer.txid:
            raise ProviderError("a transaction's id is not its hash")
        elif transactions.kind_of(raw) not in RUNNING:
            raise ProviderError("what runs no contract has its logs")
        if not transfer.units:
            raise ProviderError("nothing is moved")


def _sent(by_id: Transactions) -> Iterator[tuple[str, str]]:
    """Yield the signer of each transaction, with its id. Shielded ones have none."""
    for txid, transaction in by_id.items():
        owner = _contract(transaction).parameter.value.owner_address
        if owner:
            yield wire.stored(owner), txid


def _contract(transaction: wire.Transaction) -> wire.Contract:
    if len(transaction.raw_data.contract) != 1:
        raise ProviderError("a transaction of several contracts")
    return transaction.raw_data.contract[0]
