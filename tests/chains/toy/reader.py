"""Reads a toy chain, as chains.family.Reader: holes, several transfers a transaction, balances of the tip alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from statistics import median_low

from chains.base import (
    CHARGE,
    SKIPPED,
    Agreement,
    Block,
    BlockScan,
    Charge,
    Cost,
    DisagreementError,
    NotYetError,
    Ours,
    Place,
    ProviderError,
    Recorded,
    Sighting,
    Sightings,
    Skipped,
    Snapshot,
    SpentCoin,
    Transfer,
    witnesses_needed,
)
from chains.family import Wiring
from chains.net.budget import budget
from chains.spending import Departure, Offer, Output, Window
from core.catalogue.families import traits_of
from tests.chains.toy.chain import MINER, NATIVE, REWARD_DEPTH, WINDOW, ToyBlock, Tx, signers_of
from tests.chains.toy.nodes import ToyNode
from tests.chains.toy.providers import ToyProviders, block_at, checked

# Blocks that are read at once while the head is far.
RANGE = 16
# The fee from which a transaction counts as soon, and the number of transfers in one portion.
SOON_FEE = 500
POOL_PORTION = 500


class ToyReader:
    """The reader of one toy network. The kinds of claim differ in whether a transfer names its sender."""

    def __init__(self, wiring: Wiring, providers: ToyProviders, *, has_sender: bool) -> None:
        self._network, self._providers, self._has_sender = wiring.network, providers, has_sender
        # Currencies by what the chain calls them.
        self._pairs = {pair.contract or NATIVE: pair for pair in wiring.pairs}

    @property
    def providers(self) -> int:
        return len(self._providers.nodes)

    @property
    def answering(self) -> int:
        return self.providers

    def budget(self, *, seconds: float, requests: int) -> AbstractContextManager[None]:
        return budget(seconds=seconds, requests=requests)

    def identify(self) -> Sequence[str | ProviderError]:
        return [_named_by(self._providers, node) for node in self._providers.nodes]

    def lacking(self) -> Sequence[Sequence[str] | ProviderError]:
        return [() for _ in self._providers.nodes]

    def head(self) -> int:
        return self._providers.first(lambda node: checked(node.ask("head"), int))

    def block(self, height: int) -> Block | Skipped | None:
        try:
            return self._providers.first(lambda node: _block_of(node, height))
        except NotYetError:
            return None

    def scan(self, after: int, head: int, ours: Ours, *, whole: bool = False, upon: str = "") -> Sequence[BlockScan]:
        del whole, upon  # Nothing is ever left out.
        last = min(head, after + RANGE) if head - after > RANGE else head
        count = RANGE if head - after > RANGE else 1
        return self._providers.first(lambda node: self._scans(node, after, last, count, ours))

    def reread(self, height: int, ours: Ours, *, but_by: str = "") -> BlockScan | Skipped | None:
        del but_by
        try:
            return self._providers.first(lambda node: self._reread(node, height, ours), second=True)
        except NotYetError:
            return None

    def final_height(self) -> int | None:
        chosen = [one for one in self._providers.everyone(lambda node: node.ask("final")) if isinstance(one, int)]
        return median_low(chosen) if len(chosen) >= witnesses_needed(self.providers) else None

    def locate(self, txid: str) -> int | None:
        answers = self._providers.everyone(lambda node: node.ask("height_of", txid))
        return max((height for height in answers if isinstance(height, int)), default=None)

    def second_opinion(self, recorded: Recorded) -> Agreement:
        answers = self._providers.everyone(lambda node: self._is_same(node, recorded))
        problem = next((str(answer) for answer in answers if isinstance(answer, ProviderError)), "")
        return Agreement(same=answers.count(True), other=answers.count(False), problem=problem)

    def agreement(self, height: int, block_hash: str) -> Agreement:
        def hash_of(node: ToyNode) -> str:
            there = _block_of(node, height)
            return there.hash if isinstance(there, Block) else ""

        same, other = self._providers.compare(hash_of, block_hash)
        return Agreement(same=same, other=other)

    def inclusions(self, block: Block, txids: Collection[str]) -> Mapping[str, Agreement]:
        answers = self._providers.everyone(lambda node: block_at(node, block.height))
        known = [{tx.txid for tx in one.txs} for one in answers if isinstance(one, ToyBlock) and one.hash == block.hash]
        return {txid: Agreement.of([txid in listed for listed in known]) for txid in txids}

    def snapshot(self, places: Sequence[Place], *, height: int, block_hash: str, witnesses: int = 1) -> Snapshot:
        """Return what places hold after the newest block: nodes of this chain remember no older balances."""
        del height, block_hash
        answers = self._providers.everyone(lambda node: self._snapshot_of(node, places))
        known = [answer for answer in answers if isinstance(answer, Snapshot)]
        if not known:
            raise next(answer for answer in answers if isinstance(answer, ProviderError))
        best = max(known, key=known.count)
        same = known.count(best)
        if same < min(witnesses, self.providers) or len(known) >= 2 * same > witnesses > 1:
            raise DisagreementError("nodes tell different balances")
        return best

    def costs(self, *, cap_units: int) -> Mapping[str, Cost]:
        answers = self._providers.everyone(lambda node: checked(node.ask("fee"), int))
        fees = sorted(fee for fee in answers if isinstance(fee, int))
        if not fees:
            raise next(answer for answer in answers if isinstance(answer, ProviderError))
        fee = min(median_low(fees), cap_units)
        return {
            pair.currency: Cost(payout_units=fee, sweep_units=fee if pair.contract is None else 2 * fee)
            for pair in self._pairs.values()
        }

    def departure(self, txid: str, block: Block, *, sender: str = "") -> Departure | None:
        del sender  # One key signs it.
        return self._providers.first(lambda node: self._departure(node, txid, block))

    # Of accounts that count, as chains.family.CounterReader -------------------------------------------------

    def used_counters(self, sender: str, height: int) -> int:
        return self._providers.first(lambda node: checked(node.ask("counter", sender, height), int))

    def counter_heights(self, sender: str, counter: int, low: int, high: int) -> Sequence[int]:
        def used_in(node: ToyNode) -> int:
            heights = range(low + 1, high + 1)
            at_heights = (at for at in heights if checked(node.ask("counter", sender, at), int) > counter)
            height = next(at_heights, None)
            if height is None:
                raise ProviderError(f"{sender} had not used {counter} by block {high}")
            return height

        return [self._providers.first(used_in)]

    # Of what waits, as chains.family.MempoolReader ----------------------------------------------------------

    def sightings(self, ours: Ours, known: Mapping[str, bool]) -> Sightings:
        answers = self._providers.everyone(lambda node: checked(node.ask("pool"), dict))
        pools = [pool for pool in answers if isinstance(pool, dict)]
        if not pools:
            raise next(answer for answer in answers if isinstance(answer, ProviderError))
        waiting: dict[str, Tx] = {txid: tx for pool in pools for txid, tx in pool.items()}
        soon = {txid for txid, tx in waiting.items() if self._is_soon(tx, pools, was_soon=known.get(txid, False))}
        is_enough = len(pools) >= witnesses_needed(self.providers)
        unseen = frozenset(known.keys() - waiting.keys()) if is_enough else frozenset()
        changed = [tx for txid, tx in waiting.items() if txid in known and known[txid] != (txid in soon)]
        fresh = [tx for txid, tx in waiting.items() if txid not in known]
        mine = self._mine([*changed, *fresh], ours)
        # By whole transactions; a known one is not reported again.
        new = dict.fromkeys(seen.txid for seen in mine if seen.txid not in known)
        told_now = set(list(new)[:POOL_PORTION])
        portion = [seen for seen in mine if seen.txid in told_now]
        again = [seen for seen in mine if seen.txid in known]
        return Sightings(
            seen=tuple(
                Sighting(transfer=transfer, spends=waiting[transfer.txid].coins, is_soon=transfer.txid in soon)
                for transfer in [*again, *portion]
            ),
            unseen=unseen,
            gone=unseen if len(pools) == len(answers) else frozenset(),
            is_more=len(again) + len(portion) < len(mine),
        )

    def _mine(self, txs: Sequence[Tx], ours: Ours) -> list[Transfer]:
        seen = [transfer for tx in txs for transfer in self._transfers(frozenset(), tx)]
        mine = set(ours.addresses([transfer.recipient for transfer in seen])) if seen else set()
        return [transfer for transfer in seen if transfer.recipient in mine]

    def _is_soon(self, tx: Tx, pools: Sequence[Mapping[str, Tx]], *, was_soon: bool) -> bool:
        has_it = sum(tx.txid in pool for pool in pools) + (self.providers - len(pools) if was_soon else 0)
        return tx.fee >= SOON_FEE and has_it >= witnesses_needed(self.providers)

    # Within -------------------------------------------------------------------------------------------------

    def _departure(self, node: ToyNode, txid: str, block: Block) -> Departure | None:
        read_one = block_at(node, block.height)
        tx = None if read_one is None else next((tx for tx in read_one.txs if tx.txid == txid), None)
        if read_one is None or read_one.hash != block.hash or tx is None:
            raise ProviderError(f"{txid} is not in block {block.height}")
        if not signers_of(tx) or (tx.sender and signers_of(tx) != {tx.sender, tx.payer} - {""}):
            return None
        names = {name for _, name, _ in tx.outputs}
        window = _window_of(tx)
        return Departure(
            txid=txid, sender=tx.sender, pair=None if NATIVE in names else self._pairs[names.pop()],
            outputs=tuple(Output(recipient=recipient, units=units) for recipient, _, units in tx.outputs),
            is_transfer=len(names) <= 1, raw=tx.raw,
            offer=Offer(ceiling_units=tx.fee, terms={"fee_units": tx.fee}), fee_units=tx.cost, payer=tx.payer,
            height=block.height, block_hash=block.hash,
            failed=frozenset(place for failed, place in read_one.failed if failed == txid),
            slot=tx.counter if tx.counter >= 0 else None, spends=tx.coins, window=window,
            mark=self._marked(tx),
        )  # fmt: skip

    def _scans(self, node: ToyNode, after: int, last: int, count: int, ours: Ours) -> list[BlockScan]:
        blocks: list[ToyBlock] = []
        at = after
        for height in range(after + 1, last + 1):
            block = block_at(node, height)
            if block is None:
                continue
            if block.parent_height > at:
                raise ProviderError(f"a block between {at} and {height} is missing")
            blocks.append(block)
            at = height
            if len(blocks) == count:
                break
        return [self._scan(block, ours) for block in blocks]

    def _reread(self, node: ToyNode, height: int, ours: Ours) -> BlockScan | Skipped:
        block = block_at(node, height)
        if block is not None:
            return self._scan(block, ours)
        _block_of(node, height)
        return SKIPPED

    def _scan(self, block: ToyBlock, ours: Ours) -> BlockScan:
        seen = [transfer for tx in block.txs for transfer in self._transfers(block.failed, tx)]
        spent = {coin: tx.txid for tx in block.txs for coin in tx.coins}
        mine = set(ours.addresses([transfer.recipient for transfer in seen])) if seen else set()
        return BlockScan(
            block=_header(block),
            transfers=tuple(transfer for transfer in seen if transfer.recipient in mine),
            spent=tuple(
                SpentCoin(txid=txid, vout=vout, by_txid=spent[txid, vout])
                for txid, vout in (ours.coins(list(spent)) if spent else ())
            ),
            sent=tuple((who, tx.txid) for tx in block.txs for who in (tx.sender, tx.payer) if who)
            if self._has_sender
            else (),
            charges=tuple(
                Charge(txid=self._id_of(block, txid), address=address, units=units)
                for txid, address, units in block.charged
                if address in mine
            ),
        )

    def _id_of(self, block: ToyBlock, txid: str) -> str:
        """Return the id of the recipients' side of a transaction."""
        return next((self._marked(tx) or txid for tx in block.txs if tx.txid == txid), txid)

    def _transfers(self, failed: frozenset[tuple[str, int]], tx: Tx) -> Iterator[Transfer]:
        for place, (recipient, name, units) in enumerate(tx.outputs):
            pair = self._pairs.get(name)
            if pair is None or units == 0 or (tx.txid, place) in failed:
                continue
            yield Transfer(
                txid=tx.mark if self._marked(tx) else tx.txid, mark=self._marked(tx),
                ordinal=str(place), currency=pair.currency, units=units,
                sender=tx.sender if self._has_sender else "", recipient=recipient,
                depth_min=REWARD_DEPTH if tx.sender == MINER else 0,
            )  # fmt: skip

    def _marked(self, tx: Tx) -> str:
        """Return by what a transfer is known: where senders count, what comes of a message has another id than it."""
        return tx.mark if traits_of(self._network).claim == "counter" and not tx.is_from_outside else ""

    def _is_same(self, node: ToyNode, recorded: Recorded) -> bool:
        block = block_at(node, recorded.height)
        if block is None:
            _block_of(node, recorded.height)
            return False
        wanted = (recorded.txid, recorded.ordinal, recorded.currency, recorded.units, recorded.recipient)
        pairs = {
            (one.txid, one.ordinal, one.currency, one.units, one.recipient)
            for tx in block.txs
            for one in self._transfers(block.failed, tx)
        }
        charged = {(self._id_of(block, txid), CHARGE, *rest) for txid, *rest in block.charged}
        is_charged = (recorded.txid, recorded.ordinal, recorded.recipient, recorded.units) in charged
        return block.hash == recorded.block_hash and (wanted in pairs or is_charged)

    def _snapshot_of(self, node: ToyNode, places: Sequence[Place]) -> Snapshot:
        tip = block_at(node, checked(node.ask("head"), int))
        if tip is None:
            raise ProviderError("the node does not know its own tip")
        units = (self._at(node, place) for place in places)
        return Snapshot(height=tip.height, block_hash=tip.hash, units=tuple(units))

    def _at(self, node: ToyNode, place: Place) -> int:
        if traits_of(self._network).claim == "coins":
            return checked(node.ask("unspent", place.address, place.coins), int)
        return checked(node.ask("balance", place.address, (place.pair and place.pair.contract) or NATIVE), int)


def _window_of(tx: Tx) -> Window | None:
    if tx.until:
        return Window(reference="", ends_at=datetime.fromtimestamp(tx.until, UTC))
    return Window(reference=str(tx.reference), last_block=tx.reference + WINDOW) if tx.reference >= 0 else None


def _named_by(providers: ToyProviders, node: ToyNode) -> str | ProviderError:
    try:
        return providers.identity(node)
    except ProviderError as error:
        return error


def _block_of(node: ToyNode, height: int) -> Block | Skipped:
    """Return a header, or SKIPPED for a height below another block. Raises NotYetError above the node's head."""
    block = block_at(node, height)
    if block is not None:
        return _header(block)
    if height >= checked(node.ask("head"), int):
        raise NotYetError(f"block {height} is not there yet")
    return SKIPPED


def _header(block: ToyBlock) -> Block:
    return Block(
        height=block.height, hash=block.hash, parent_height=block.parent_height, parent_hash=block.parent_hash,
        time=block.time, count=block.count,
    )  # fmt: skip
