"""Asks providers whether an address's balance covers its deposits together. Used by actors.scan.witnesses.

No transaction shows coin that contracts pass on, and other deposits may explain a balance that has grown by its sum.
After one block the balance has to cover all that counts at the address, the asked deposit included, less our spends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self, cast

from actors.context import Context
from chains.base import WITNESSES_MIN, Agreement, Block, Recorded, Total, Transfer
from chains.family import HiddenReader, Reader
from core.catalogue.catalogue import Catalogue, Network
from core.catalogue.families import traits_of
from models.db.base import transaction
from models.deposits import cursors, probes, witnesses
from models.deposits.probes import Counted
from models.deposits.rows import Deposit
from models.outcomes import reversals
from models.treasury import addresses
from models.treasury.rows import Topup


class _Books(NamedTuple):
    """The other deposits of an address, in ledger units, and the sum of our spends there, in token units."""

    counted: Counted
    moved_units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Backing:
    """A block in which providers confirm a deposit, or after which a balance covers it.

    books: the books of the address that were compared; None if no balance was asked for.
    """

    height: int
    block_hash: str
    books: _Books | None = None

    @classmethod
    def own(cls, asked: Deposit) -> Self:
        """Return the deposit's own block, without a balance."""
        return cls(height=asked.block_height, block_hash=asked.block_hash)


def is_firm(answer: Agreement) -> bool:
    """Return True if enough providers agree."""
    return answer.same >= WITNESSES_MIN and answer.same > answer.other


def is_denied(answer: Agreement) -> bool:
    """Return True if enough providers contradict."""
    return answer.other >= WITNESSES_MIN and answer.other > answer.same


def recorded(catalogue: Catalogue, asked: Deposit | Topup, *, units: int) -> Recorded:
    """Return a deposit or top-up in the form in which providers are asked for it."""
    pair = catalogue.pairs[asked.currency, asked.network]
    return Recorded(
        txid=asked.txid,
        ordinal=asked.ordinal,
        currency=asked.currency,
        units=pair.from_ledger(units, catalogue.scale(asked.currency)),
        recipient=asked.address,
        height=asked.block_height,
        block_hash=asked.block_hash,
    )


def shown(block: Block, transfer: Transfer) -> Recorded:
    """Return a block's transfer in the form in which providers are asked for it."""
    return Recorded(
        txid=transfer.txid,
        ordinal=transfer.ordinal,
        currency=transfer.currency,
        units=transfer.units,
        recipient=transfer.recipient,
        height=block.height,
        block_hash=block.hash,
    )


def shares(network: Network, asked: Deposit) -> bool:
    """Return True if a hidden deposit that counts may have used the coin of a payment that was recorded later."""
    return traits_of(network).has_hidden_transfers and probes.is_later(asked)


def compared(ctx: Context, network: Network, chain: Reader, asked: Deposit) -> tuple[Backing | None, Agreement]:
    """Return the last block after which providers compared their balance with a deposit's total, and their answer.

    The first block after which enough of them cover the total ends the questions. None if nothing can be compared.
    """
    backing, answer = None, Agreement(same=0, other=0, problem="own spends of its address are under way")
    if addresses.is_in_motion(network.code, [asked.address]):
        return None, answer
    for height, block_hash in _blocks(network, asked):
        backing = Backing(height=height, block_hash=block_hash, books=_books(asked, height))
        # The trait has_hidden_transfers means that the family's reader is one.
        answer = cast("HiddenReader", chain).coverage(_total(ctx.catalogue, asked, backing))
        if is_firm(answer):
            break
    return backing, answer


def _blocks(network: Network, asked: Deposit) -> list[tuple[int, str]]:
    """Return the blocks after which the balance is asked for.

    Nodes forget the balance after a deposit's own block, and one provider dated it. The newest block that is as deep as
    a credit serves then.
    """
    own, cursor = (asked.block_height, asked.block_hash), cursors.read(network.code)
    if cursor is None:
        return [own]
    deep = cursors.kept_at_or_below(network.code, cursor.height - max(network.confirmations, asked.depth_min) + 1)
    later = [deep] if deep is not None and deep[0] > asked.block_height else []
    # A transaction's own block is certain; its balance is compared as late as possible.
    return [own, *later] if probes.is_hidden(asked) else later or [own]


def _books(asked: Deposit, height: int) -> _Books:
    moved = addresses.moved_native_units(asked.network, asked.address, asked.currency, height=height)
    return _Books(probes.counted(asked, height=height), moved)


def _total(catalogue: Catalogue, asked: Deposit, backing: Backing) -> Total:
    pair, scale = catalogue.pairs[asked.currency, asked.network], catalogue.scale(asked.currency)
    counted, moved = cast("_Books", backing.books)
    certain_units = counted.certain_units + asked.amount_units
    return Total(
        address=asked.address,
        units=pair.from_ledger(certain_units + counted.waiting_units, scale) + moved,
        certain_units=pair.from_ledger(certain_units, scale) + moved,
        height=backing.height,
        block_hash=backing.block_hash,
    )


def agree(network: Network, asked: Deposit, backing: Backing) -> bool:
    """Agree on a deposit; False if its life is over, or if the address's books have changed since they were compared.

    Takes the cursor's lock, as every step does that records deposits: two cannot use the same coin. A hidden deposit is
    dated to the block after which its coin was witnessed.
    """
    with transaction():
        if backing.books is None:
            return witnesses.agree(asked)
        if not _is_unchanged(network, asked, backing) or not witnesses.agree(asked):
            return False
        if probes.is_hidden(asked) and backing.height > asked.block_height:
            witnesses.date_later(asked, height=backing.height, block_hash=backing.block_hash)
            # Otherwise a probe would find its coin again in the blocks below.
            probes.rise(network.code, asked.address, kind=asked.owner_kind, height=backing.height)
        return True


def take_back(catalogue: Catalogue, network: Network, asked: Deposit, backing: Backing) -> bool:
    """Take back a deposit that providers deny; False as with agree(). Its address is probed again from its block on."""
    with transaction():
        is_ended = _is_unchanged(network, asked, backing) and reversals.outvote(catalogue, asked)
        if is_ended:
            witnesses.deny(asked)
        return is_ended


def _is_unchanged(network: Network, asked: Deposit, backing: Backing) -> bool:
    return (
        cursors.is_scanned(network.code, height=backing.height, block_hash=backing.block_hash)
        and not addresses.is_in_motion(network.code, [asked.address])
        and (backing.books is None or _books(asked, backing.height) == backing.books)
    )
