"""Finds the transfers to us in the blocks that one block of the masterchain adds. Called by chains.ton.reader.

Each transaction is looked at, and read cell by cell only if its account is ours, or the jetton wallet of one of our
addresses. Money from an address whose key is ours is part of a spend and no transfer.
"""

import base64
import binascii
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from chains.base import NATIVE, Block, BlockScan, Charge, ContradictionError, Ours, Transfer
from chains.ton import boc, nodes, transactions, wire
from chains.ton.cells import CellError
from chains.ton.credits import (
    CoinCredit,
    JettonCredit,
    charge_units,
    coin_credit,
    is_departure,
    jetton_credit,
    mark_of,
)
from chains.ton.jettons import JETTONS, Jetton
from chains.ton.nodes import Toncenter
from chains.ton.scan.sieve import Sieve
from chains.ton.slices import NO_ADDRESS
from chains.ton.transactions import Transaction
from chains.ton.wire import BlockId
from core.addresses import ton
from core.catalogue.catalogue import Pair

# The ordinal of jettons: they have a transaction of their own.
JETTONS_ORDINAL: Final = "jettons"
# The most that an account owes besides the coin of the message: rent of many years. More is a provider's invention.
CHARGE_UNITS_MAX: Final = 10 * 10**9
# Pages of one block of a shard.
PAGES_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Assets:
    """The coins to look for."""

    # None if the network's own coin is not offered.
    native: str | None
    # By master, for the jettons whose wallets are known.
    currencies: Mapping[str, str]
    jettons: tuple[Jetton, ...]
    sieve: Sieve


class Seen(NamedTuple):
    """A transaction of a block by its bytes. txid: as the node names it; owners: who may get jettons by it."""

    account: str
    txid: str
    is_external: bool
    owners: tuple[str, ...]
    raw: bytes


@dataclass(frozen=True, slots=True)
class Read:
    """A block of the masterchain as one node shows it, with the transactions of the blocks that it adds."""

    block: Block
    seen: Sequence[Seen] = field(repr=False)


def assets_of(pairs: Iterable[Pair], jettons: Mapping[str, Jetton] = JETTONS) -> Assets:
    """Return the offered coins. Raises ValueError for a jetton whose wallets are not known."""
    known = tuple(pairs)
    native = next((pair.currency for pair in known if pair.contract is None), None)
    currencies = {ton.stored(pair.contract) or "": pair.currency for pair in known if pair.contract is not None}
    if unknown := currencies.keys() - jettons.keys():
        raise ValueError(f"the wallets of jettons are not known: {', '.join(sorted(unknown))}")
    offered = tuple(jettons[master] for master in currencies)
    return Assets(native, currencies, offered, Sieve(offered))


def transactions_of(node: Toncenter, block: BlockId, assets: Assets) -> Sequence[Seen]:
    """Return all transactions of a shard's block, page by page. Raises ContradictionError if they are out of order."""
    seen, last, prefix = list[Seen](), (-1, -1), block.prefix
    for _ in range(PAGES_MAX):
        page = nodes.page(node, block, after=None if last[0] < 0 else (f"{last[0]:064x}", last[1]))
        for entry in page.transactions:
            raw = _bytes(entry.data)
            look = assets.sieve.look(raw)
            place = look.account, wire.number(entry.transaction_id.lt)
            if place <= last or not wire.is_within(look.account, prefix):
                raise ContradictionError(f"transactions of another shard, or out of order, in block {block.seqno}")
            last = place
            account = f"{wire.BASECHAIN}:{look.account:064x}"
            seen.append(Seen(account, entry.transaction_id.hash, look.is_external, look.owners, raw))
        if not page.incomplete:
            return seen
        if not page.transactions:
            break
    raise ContradictionError(f"block {block.seqno} of shard {block.shard} has no last page")


def matched(reads: Collection[Read], assets: Assets, ours: Ours) -> list[BlockScan]:
    """Return the scans of blocks, after asking once which of all accounts are ours, and once which of the payers."""
    mine = set(ours.addresses({name for read in reads for seen in read.seen for name in (seen.account, *seen.owners)}))
    concerned = [[seen for seen in read.seen if _concerns(seen, mine, assets)] for read in reads]
    scans = [
        _scan(read, [_whole(seen) for seen in each], assets, mine, ours.hot)
        for read, each in zip(reads, concerned, strict=True)
    ]
    payers = {transfer.sender for scan in scans for transfer in scan.transfers} - {NO_ADDRESS}
    own = ours.keys(payers) if payers else ()
    return [_without_own(scan, own) for scan in scans]


def transfers_of(transaction: Transaction, assets: Assets, *, hot: str | None = None) -> Iterator[Transfer]:
    """Yield the transfers to any recipient that a transaction brings: of coin, or of jettons."""
    coin = coin_credit(transaction, assets.jettons, hot=hot)
    if coin is not None and assets.native is not None:
        yield _transfer(transaction, coin, assets.native, NATIVE, mark="")
    jettons = jetton_credit(transaction, assets.jettons)
    if jettons is not None:
        currency, mark = assets.currencies[jettons.jetton.master], mark_of(jettons.query_id)
        yield _transfer(transaction, jettons, currency, JETTONS_ORDINAL, mark=mark)


def departure_id(transaction: Transaction) -> str:
    """Return the id by which a departure is known: of the request from outside, else the transaction's own."""
    message = transaction.incoming
    return (message.normalized_hash if message.kind == "in" else transaction.hash).hex()


def departed(seen: Seen, txid: str) -> Transaction | None:
    """Return the transaction that a departure is, by its id, or by the one that the scan gives others; else None."""
    is_named = wire.hashed(seen.txid) == txid
    if not seen.is_external and not is_named:
        return None
    try:
        transaction = _whole(seen)
    except CellError:
        if is_named:
            raise
        # A stranger's request, in a form that is not known here.
        return None
    return transaction if txid in {departure_id(transaction), transaction.hash.hex()} else None


def read_whole(raw: bytes) -> Transaction:
    """Return a transaction, whose hash is its id. Raises CellError."""
    return transactions.read(boc.read(raw), workchain=wire.BASECHAIN)


def _scan(
    read: Read, whole: Sequence[Transaction], assets: Assets, mine: Collection[str], hot: str | None
) -> BlockScan:
    transfers = [
        transfer
        for transaction in whole
        for transfer in transfers_of(transaction, assets, hot=hot)
        if transfer.recipient in mine
    ]
    ours = [transaction for transaction in whole if transaction.address in mine]
    return BlockScan(
        block=read.block,
        transfers=tuple(transfers),
        sent=tuple(_sent(read, ours)),
        charges=tuple(_charges(ours, assets, hot)),
    )


def _without_own(scan: BlockScan, own: Collection[str]) -> BlockScan:
    """Return a scan without the money that our own addresses sent."""
    return replace(scan, transfers=tuple(each for each in scan.transfers if each.sender not in own))


def _charges(ours: Iterable[Transaction], assets: Assets, hot: str | None) -> Iterator[Charge]:
    """Yield the coin that our addresses lost besides their spends, or that came without being a payment."""
    for transaction in ours:
        credit = coin_credit(transaction, assets.jettons, hot=hot)
        units = charge_units(transaction, 0 if credit is None else credit.units)
        if units > transaction.incoming.units + CHARGE_UNITS_MAX:
            raise ContradictionError(f"no account is charged {units} units")
        if units:
            yield Charge(txid=transaction.hash.hex(), address=transaction.address, units=units)


def _sent(read: Read, ours: Collection[Transaction]) -> Iterator[tuple[str, str]]:
    """Yield the account and the id of each departure of our addresses, and of each request of all others.

    Addresses without an owner are among the others: if one sends, its key has been used by another.
    """
    yield from ((each.address, departure_id(each)) for each in ours if is_departure(each))
    known = {each.address for each in ours}
    yield from ((seen.account, wire.hashed(seen.txid)) for seen in read.seen if _is_other(seen, known))


def _is_other(seen: Seen, known: Collection[str]) -> bool:
    return seen.is_external and seen.account not in known


def _concerns(seen: Seen, mine: Collection[str], assets: Assets) -> bool:
    """Return True if a transaction is of one of our addresses, or of the jetton wallet of one that its bytes name."""
    if seen.account in mine:
        return True
    owners = [owner for owner in seen.owners if owner in mine]
    return any(jetton.wallet(owner) == seen.account for owner in owners for jetton in assets.jettons)


def _whole(seen: Seen) -> Transaction:
    transaction = read_whole(seen.raw)
    if transaction.address != seen.account:
        raise ContradictionError("a transaction of another account than its bytes show")
    return transaction


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ContradictionError("a transaction that is not bytes in base64") from None


def _transfer(
    transaction: Transaction, credit: CoinCredit | JettonCredit, currency: str, ordinal: str, *, mark: str
) -> Transfer:
    return Transfer(
        txid=transaction.hash.hex(),
        ordinal=ordinal,
        currency=currency,
        units=credit.units,
        sender=credit.sender,
        recipient=credit.recipient,
        mark=mark,
    )
