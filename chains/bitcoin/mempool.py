"""Reads transactions that wait for a block from the nodes' pools. Called by chains.bitcoin.reader.

Pools differ, anybody can fill one, and one provider's pool proves nothing. So each pool is read in its own portions, a
transaction that does not pay us is not fetched again while it waits there, and `is_soon` takes two providers.
"""

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from chains.base import Ours, ProviderError, Sighting, Sightings, Transfer, witnesses_needed
from chains.bitcoin import wire
from chains.bitcoin.scripts import KEY_HASH, KEY_HASH_BYTES, key_hash_address
from chains.bitcoin.transactions import Tx, TxOutput, read_hex
from chains.net.json_rpc import BATCH_MAX, JsonRpc, RpcError
from chains.net.providers import RpcProviders

# Transactions fetched from one provider at a time, and in one answer: as many as fit if each has the largest size that
# nodes relay. A byte weighs at least one unit, so none has more bytes than that.
PORTION: Final = 200
FETCHED_AT_ONCE: Final = 25
RAW_BYTES_MAX: Final = 400_000
# The number of known transactions that are checked at a time, in turn.
KNOWN_ASKED: Final = 200
SOON_BLOCKS: Final = 6
KVB: Final = 1_000


class _Look(NamedTuple):
    """The contents of one provider's pool, and whether a part is left for the next time."""

    waiting: frozenset[str]
    is_more: bool


class _Fetching:
    """Shares out transactions between pools that are asked at once, so that each is fetched from one of them."""

    def __init__(self) -> None:
        self.fetched: dict[str, Tx] = {}
        self._taken: set[str] = set()
        self._lock = threading.Lock()

    def take(self, wanted: Sequence[str]) -> Sequence[str]:
        """Return the transactions to fetch next, first those that no other pool is being asked for."""
        with self._lock:
            part = sorted((txid for txid in wanted if txid not in self.fetched), key=self._taken.__contains__)
            part = part[:FETCHED_AT_ONCE]
            self._taken.update(part)
        return part


class Pools:
    """The pools of one network's providers. A race between threads costs at most a superfluous question."""

    def __init__(self, providers: RpcProviders, currency: str, chain: str) -> None:
        self._providers, self._currency, self._chain = providers, currency, chain
        # By provider: waiting transactions that do not pay us, or that the provider refused to show.
        self._passed: dict[JsonRpc, set[str]] = {}
        self._turn = 0

    def sightings(self, ours: Ours, known: Mapping[str, bool]) -> Sightings:
        """Return sightings; see chains.family.MempoolReader. Raises ProviderError if no provider answers."""
        fetching = _Fetching()
        answers = self._providers.everyone(lambda node: self._look(node, known, fetching))
        looks = [answer for answer in answers if isinstance(answer, _Look)]
        if not looks:
            raise next((one for one in answers if isinstance(one, ProviderError)), ProviderError("no pool can be seen"))
        fetched, waiting = fetching.fetched, frozenset[str]().union(*(look.waiting for look in looks))
        asked = self._asked(known, waiting)
        new = self._transfers(fetched, ours)
        soon = self._soon([*new, *asked], known)
        # If fewer answer than `is_soon` takes, a transaction that they lack may wait at the others.
        is_enough = len(looks) >= witnesses_needed(self._providers.count)
        unseen = frozenset(known.keys() - waiting) if is_enough else frozenset[str]()
        changed = self._fetched([txid for txid in asked if (txid in soon) != known[txid]])
        shown = {**{txid: fetched[txid] for txid in new}, **changed}
        transfers = {**new, **self._transfers(changed, ours)}
        return Sightings(
            seen=tuple(
                _sighting(transfer, shown[txid], is_soon=txid in soon)
                for txid, of_tx in transfers.items()
                for transfer in of_tx
            ),
            unseen=unseen,
            # A pool that did not answer may hold a transaction that the others lost.
            gone=unseen if len(looks) == self._providers.count else frozenset(),
            is_more=any(look.is_more for look in looks),
        )

    def _look(self, node: JsonRpc, known: Mapping[str, bool], fetching: _Fetching) -> _Look:
        """Fetch a portion of one pool's new transactions; those that another pool showed already are not new."""
        waiting = frozenset(node.call("getrawmempool", [], list[str]))
        # Forget transactions that left the pool, so that the set is never larger than the pool.
        passed = self._passed[node] = self._passed.get(node, set()) & waiting
        new = [txid for txid in waiting if txid not in passed and txid not in known and txid not in fetching.fetched]
        portion = new[:PORTION]
        while part := fetching.take(portion):
            fetched = dict(_fetch(node, part))
            fetching.fetched.update(fetched)
            passed.update(txid for txid in part if txid not in fetched)
            portion = [txid for txid in portion if txid not in part]
        return _Look(waiting, len(new) > PORTION)

    def _asked(self, known: Mapping[str, bool], waiting: Collection[str]) -> Sequence[str]:
        """Return the known transactions to check this time: all, or the next ones in turn."""
        there = sorted(txid for txid in known if txid in waiting)
        if len(there) <= KNOWN_ASKED:
            return there
        first = self._turn % len(there)
        self._turn = first + KNOWN_ASKED
        return [*there, *there][first : first + KNOWN_ASKED]

    def _transfers(self, fetched: Mapping[str, Tx], ours: Ours) -> dict[str, list[Transfer]]:
        """Return the transfers to us of some transactions, and mark the other transactions as passed."""
        paid = {txid: list(self._paid(tx)) for txid, tx in fetched.items()}
        seen = {address for outputs in paid.values() for _, _, address in outputs}
        mine = frozenset(ours.addresses(seen)) if seen else frozenset()
        transfers = {
            txid: [self._transfer(txid, *one) for one in outputs if one[2] in mine] for txid, outputs in paid.items()
        }
        strangers = {txid for txid, of_tx in transfers.items() if not of_tx}
        for passed in self._passed.values():
            passed.update(strangers)
        return {txid: of_tx for txid, of_tx in transfers.items() if of_tx}

    def _paid(self, tx: Tx) -> Iterator[tuple[int, TxOutput, str]]:
        for vout, output in enumerate(tx.outputs):
            if output.units and len(output.script) == KEY_HASH_BYTES and output.script.startswith(KEY_HASH):
                yield vout, output, key_hash_address(output.script, self._chain)

    def _transfer(self, txid: str, vout: int, output: TxOutput, recipient: str) -> Transfer:
        return Transfer(
            txid=txid, ordinal=str(vout), currency=self._currency, units=output.units, sender="", recipient=recipient
        )

    def _soon(self, txids: Sequence[str], known: Mapping[str, bool]) -> frozenset[str]:
        """Return the transactions that enough providers have, with a fee for one of the next blocks.

        A silent provider denies nothing: a transaction that was soon stays so while the silent ones could make it so.
        """
        if not txids:
            return frozenset()
        answers = [
            one for one in self._providers.everyone(lambda node: _soon(node, txids)) if isinstance(one, frozenset)
        ]
        needed, silent = witnesses_needed(self._providers.count), self._providers.count - len(answers)
        voices = {txid: sum(txid in soon for soon in answers) for txid in txids}
        return frozenset(txid for txid, count in voices.items() if count + (silent if known.get(txid) else 0) >= needed)

    def _fetched(self, txids: Sequence[str]) -> dict[str, Tx]:
        """Return transactions from any pool that has them."""
        fetched: dict[str, Tx] = {}
        for _ in self._providers.everyone(lambda node: fetched.update(_fetch(node, txids))) if txids else ():
            pass
        return fetched


def _fetch(node: JsonRpc, txids: Iterable[str]) -> Iterator[tuple[str, Tx]]:
    """Yield the transactions that a node still has and whose bytes hash to their ids."""
    wanted = list(txids)
    for start in range(0, len(wanted), FETCHED_AT_ONCE):
        part = wanted[start : start + FETCHED_AT_ONCE]
        shown = node.batch("getrawtransaction", [[txid] for txid in part], str)
        for txid, text in zip(part, shown, strict=True):
            if isinstance(text, str) and (tx := _read_tx(text)) is not None and tx.txid == txid:
                yield txid, tx


def _read_tx(text: str) -> Tx | None:
    """Return the transaction that a node shows; None for invalid bytes, which do not spoil the other ones."""
    try:
        return None if len(text) > 2 * RAW_BYTES_MAX else read_hex(text)
    except ProviderError:
        return None


def _soon(node: JsonRpc, txids: Sequence[str]) -> frozenset[str]:
    """Return the transactions in a node's pool that offer the node's estimate for the next few blocks."""
    target = _target(node)
    soon = set()
    for start in range(0, len(txids), BATCH_MAX):
        part = txids[start : start + BATCH_MAX]
        entries = node.batch("getmempoolentry", [[txid] for txid in part], wire.PoolEntry)
        soon |= {
            txid
            for txid, entry in zip(part, entries, strict=True)
            if entry is not None and not isinstance(entry, RpcError) and _rate(entry) >= target
        }
    return frozenset(soon)


def _rate(entry: wire.PoolEntry) -> Decimal:
    """Return a transaction's rate, in base units for a thousand bytes: alone or with its ancestors, the lower.

    A parent that pays too little holds it up, and a parent that pays more does not bring it in.
    """
    alone = Decimal(wire.units_of(entry.fees.base)) / entry.vsize
    whole = Decimal(wire.units_of(entry.fees.ancestor)) / entry.ancestorsize
    return KVB * min(alone, whole)


def _target(node: JsonRpc) -> int:
    """Return the rate for one of the next blocks, or the least that the node takes if it has no estimate."""
    estimate = node.call("estimatesmartfee", [SOON_BLOCKS], wire.Estimate).feerate
    if estimate is not None and not (estimate.is_signed() or estimate.is_zero()):
        return wire.units_of(estimate)
    floor = node.call("getmempoolinfo", [], wire.PoolFloor)
    return max(wire.units_of(floor.mempoolminfee), wire.units_of(floor.minrelaytxfee))


def _sighting(transfer: Transfer, tx: Tx, *, is_soon: bool) -> Sighting:
    return Sighting(transfer=transfer, spends=tuple(one.outpoint for one in tx.inputs), is_soon=is_soon)
