"""Looks into the pools of what waits for a block. Called by chains.bitcoin.reader.

Pools differ, anybody can fill one, and what one provider tells of its own proves nothing. So each is looked through in
portions of its own, what was found to be none of ours is not fetched again while it waits there, and how soon something
may be mined takes two.
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

# Transactions fetched of one provider at a time, and in one answer: as many as fit, each of the largest that nodes pass
# on. No byte weighs less than one, so that none has more of them.
PORTION: Final = 200
FETCHED_AT_ONCE: Final = 25
RAW_BYTES_MAX: Final = 400_000
# Of those that are known, so many are asked about at a time, in turn.
KNOWN_ASKED: Final = 200
SOON_BLOCKS: Final = 6
KVB: Final = 1_000


class _Look(NamedTuple):
    """What one provider's pool holds, and whether some of it was left for the next time."""

    waiting: frozenset[str]
    is_more: bool


class _Fetching:
    """Shares transactions out between the pools that are asked at once: each is fetched of one, if that one has it."""

    def __init__(self) -> None:
        self.found: dict[str, Tx] = {}
        self._taken: set[str] = set()
        self._lock = threading.Lock()

    def take(self, wanted: Sequence[str]) -> Sequence[str]:
        """Return what to fetch next of some transactions: first what no other pool is being asked for."""
        with self._lock:
            part = sorted((txid for txid in wanted if txid not in self.found), key=self._taken.__contains__)
            part = part[:FETCHED_AT_ONCE]
            self._taken.update(part)
        return part


class Pools:
    """The pools of one network's providers. Threads may race on what is kept; the worst is a question too many."""

    def __init__(self, providers: RpcProviders, currency: str, chain: str) -> None:
        self._providers, self._currency, self._chain = providers, currency, chain
        # By provider: what waits there and has nothing for us, or was refused when it was asked for.
        self._passed: dict[JsonRpc, set[str]] = {}
        self._turn = 0

    def sightings(self, ours: Ours, known: Mapping[str, bool]) -> Sightings:
        """Return what chains.family.MempoolReader says. Raises ProviderError where no provider tells."""
        fetching = _Fetching()
        answers = self._providers.everyone(lambda node: self._look(node, known, fetching))
        looks = [answer for answer in answers if isinstance(answer, _Look)]
        if not looks:
            raise next((one for one in answers if isinstance(one, ProviderError)), ProviderError("no pool can be seen"))
        found, waiting = fetching.found, frozenset[str]().union(*(look.waiting for look in looks))
        asked = self._asked(known, waiting)
        new = self._transfers(found, ours)
        soon = self._soon([*new, *asked], known)
        # Where fewer answered than it takes to be soon, a transaction that they lack may wait at the others.
        is_enough = len(looks) >= witnesses_needed(self._providers.count)
        unseen = frozenset(known.keys() - waiting) if is_enough else frozenset[str]()
        changed = self._fetched([txid for txid in asked if (txid in soon) != known[txid]])
        told = {**{txid: found[txid] for txid in new}, **changed}
        transfers = {**new, **self._transfers(changed, ours)}
        return Sightings(
            seen=tuple(
                _sighting(transfer, told[txid], is_soon=txid in soon)
                for txid, of_tx in transfers.items()
                for transfer in of_tx
            ),
            unseen=unseen,
            # A pool that was not seen may hold what the others lost.
            gone=unseen if len(looks) == self._providers.count else frozenset(),
            is_more=any(look.is_more for look in looks),
        )

    def _look(self, node: JsonRpc, known: Mapping[str, bool], fetching: _Fetching) -> _Look:
        """Fetch a portion of what is new in one pool; what another pool showed already is new in none."""
        waiting = frozenset(node.call("getrawmempool", [], list[str]))
        # Whatever left the pool is forgotten, so that what is kept is no more than what waits.
        passed = self._passed[node] = self._passed.get(node, set()) & waiting
        new = [txid for txid in waiting if txid not in passed and txid not in known and txid not in fetching.found]
        portion = new[:PORTION]
        while part := fetching.take(portion):
            fetched = dict(_fetch(node, part))
            fetching.found.update(fetched)
            passed.update(txid for txid in part if txid not in fetched)
            portion = [txid for txid in portion if txid not in part]
        return _Look(waiting, len(new) > PORTION)

    def _asked(self, known: Mapping[str, bool], waiting: Collection[str]) -> Sequence[str]:
        """Return those of the known that are asked about this time: all, or each in its turn."""
        there = sorted(txid for txid in known if txid in waiting)
        if len(there) <= KNOWN_ASKED:
            return there
        first = self._turn % len(there)
        self._turn = first + KNOWN_ASKED
        return [*there, *there][first : first + KNOWN_ASKED]

    def _transfers(self, found: Mapping[str, Tx], ours: Ours) -> dict[str, list[Transfer]]:
        """Return what of some transactions is for us, and note of the others that nothing is."""
        paid = {txid: list(self._paid(tx)) for txid, tx in found.items()}
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
        """Return those that enough providers have, with a fee for one of the next blocks.

        A provider that does not answer denies nothing: a transaction that was soon stays so as long as it could be.
        """
        if not txids:
            return frozenset()
        told = [one for one in self._providers.everyone(lambda node: _soon(node, txids)) if isinstance(one, frozenset)]
        needed, silent = witnesses_needed(self._providers.count), self._providers.count - len(told)
        voices = {txid: sum(txid in soon for soon in told) for txid in txids}
        return frozenset(txid for txid, count in voices.items() if count + (silent if known.get(txid) else 0) >= needed)

    def _fetched(self, txids: Sequence[str]) -> dict[str, Tx]:
        """Return transactions from whichever pool has them."""
        found: dict[str, Tx] = {}
        for _ in self._providers.everyone(lambda node: found.update(_fetch(node, txids))) if txids else ():
            pass
        return found


def _fetch(node: JsonRpc, txids: Iterable[str]) -> Iterator[tuple[str, Tx]]:
    """Return those of some transactions that a node still has and shows as what they are."""
    wanted = list(txids)
    for start in range(0, len(wanted), FETCHED_AT_ONCE):
        part = wanted[start : start + FETCHED_AT_ONCE]
        shown = node.batch("getrawtransaction", [[txid] for txid in part], str)
        for txid, text in zip(part, shown, strict=True):
            if isinstance(text, str) and (tx := _told(text)) is not None and tx.txid == txid:
                yield txid, tx


def _told(text: str) -> Tx | None:
    """Return the transaction that a node shows; None for bytes that are none in a pool, which hide no other one."""
    try:
        return None if len(text) > 2 * RAW_BYTES_MAX else read_hex(text)
    except ProviderError:
        return None


def _soon(node: JsonRpc, txids: Sequence[str]) -> frozenset[str]:
    """Return those in a node's pool that offer what it thinks the next few blocks take."""
    target = _target(node)
    found = set()
    for start in range(0, len(txids), BATCH_MAX):
        part = txids[start : start + BATCH_MAX]
        entries = node.batch("getmempoolentry", [[txid] for txid in part], wire.PoolEntry)
        found |= {
            txid
            for txid, entry in zip(part, entries, strict=True)
            if entry is not None and not isinstance(entry, RpcError) and _rate(entry) >= target
        }
    return frozenset(found)


def _rate(entry: wire.PoolEntry) -> Decimal:
    """Return what a transaction offers, in base units for a thousand bytes, alone or with all that it stands upon.

    The lower of both: a parent that pays too little holds it up, and one that pays more does not bring it in.
    """
    alone = Decimal(wire.units_of(entry.fees.base)) / entry.vsize
    whole = Decimal(wire.units_of(entry.fees.ancestor)) / entry.ancestorsize
    return KVB * min(alone, whole)


def _target(node: JsonRpc) -> int:
    """Return the rate for one of the next blocks, or the least that the node takes where it has seen too little."""
    estimate = node.call("estimatesmartfee", [SOON_BLOCKS], wire.Estimate).feerate
    if estimate is not None and not (estimate.is_signed() or estimate.is_zero()):
        return wire.units_of(estimate)
    floor = node.call("getmempoolinfo", [], wire.PoolFloor)
    return max(wire.units_of(floor.mempoolminfee), wire.units_of(floor.minrelaytxfee))


def _sighting(transfer: Transfer, tx: Tx, *, is_soon: bool) -> Sighting:
    return Sighting(transfer=transfer, spends=tuple(one.outpoint for one in tx.inputs), is_soon=is_soon)
