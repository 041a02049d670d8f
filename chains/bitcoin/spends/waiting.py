"""Asks the nodes' pools for waiting transactions that spend our coins. Called by chains.bitcoin.spends.spender.

A pool proves nothing: a node may invent transactions or hide them. For "nothing waits" a node counts only if its newest
block is the scan's, since a newer block may have taken the transaction out of its pool unseen by the scan; and only if
it has run for long enough, since it may have started with an empty pool.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from chains.base import NotYetError, ProviderError, witnesses_needed
from chains.bitcoin import wire
from chains.net.http import RefusedError
from chains.net.json_rpc import JsonRpc
from chains.net.providers import Providers

# Coins in one question.
PORTION: Final = 1_000

Outpoint = tuple[str, int]


class _Spender(msgspec.Struct):
    """The answer of gettxspendingprevout for a coin; without an id if no waiting transaction spends it."""

    txid: str
    vout: int
    spendingtxid: str | None = None


class _Pool(msgspec.Struct):
    """Whether a node that has just started has reloaded its pool, as getmempoolinfo returns it."""

    loaded: bool = True


class _Look(NamedTuple):
    """One node's transactions that spend some coins, its newest block after that, and whether it ran long enough."""

    spenders: frozenset[str]
    tip: str
    is_old: bool


def waiting_spends(
    providers: Providers[JsonRpc],
    outpoints: Sequence[Outpoint],
    *,
    block_hash: str | None,
    cautious: bool,
    up_s: int | None = None,
) -> frozenset[str]:
    """Return the waiting transactions that spend some coins; see chains.family.CoinSpender."""
    if not outpoints:
        return frozenset()
    looks = providers.answers(lambda node: _look(node, outpoints, up_s))
    # Normally "something waits" takes two nodes. If cautious, one is enough for that, and "nothing waits" takes two.
    level = [look for look in looks if block_hash in {None, look.tip} and look.is_old]
    needed = witnesses_needed(providers.count) if cautious else 1
    if len(level) < needed:
        since = "" if up_s is None else f" and have run for {up_s} s"
        raise NotYetError(f"{len(level)} of the nodes that tell of their pools stand at block {block_hash}{since}")
    if cautious:
        return frozenset[str]().union(*(look.spenders for look in looks))
    known = Counter(txid for look in level for txid in look.spenders)
    return frozenset(txid for txid, nodes in known.items() if nodes >= witnesses_needed(len(level)))


def _has_run(node: JsonRpc, up_s: int | None) -> bool:
    """Return True if a node has run for `up_s` seconds, or does not report it: hosted nodes refuse the question."""
    if up_s is None:
        return True
    try:
        return node.call("uptime", [], int) >= up_s
    except RefusedError:
        return True


def _look(node: JsonRpc, outpoints: Sequence[Outpoint], up_s: int | None) -> _Look:
    if not node.call("getmempoolinfo", [], _Pool).loaded:
        raise NotYetError("the node has not read its pool back yet")
    spenders: set[str] = set()
    for start in range(0, len(outpoints), PORTION):
        part = outpoints[start : start + PORTION]
        asked = [{"txid": txid, "vout": vout} for txid, vout in part]
        answers = node.call("gettxspendingprevout", [asked], list[_Spender])
        if [(one.txid, one.vout) for one in answers] != list(part):
            raise ProviderError("gettxspendingprevout: not an answer for each coin")
        spenders |= {wire.id_of(one.spendingtxid) for one in answers if one.spendingtxid is not None}
    # Asked last: a transaction that a block took out of the pool meanwhile is in this block, or below.
    tip = wire.id_of(node.call("getbestblockhash", [], str))
    return _Look(frozenset(spenders), tip, _has_run(node, up_s))
