"""Waiting transactions that spend our coins, reported by the pools of one, two or three providers."""

from __future__ import annotations

from typing import Any

import pytest

from chains.base import NotYetError, ProviderError
from chains.bitcoin.spends import waiting
from tests.chains.bitcoin.spends.samples import COIN, intent
from tests.chains.bitcoin.spends.world import World
from tests.peers.json_rpc_node import Refusal

ASK = "gettxspendingprevout"
INVENTED = "ab" * 32
OLD_NODE = Refusal(-32601, "Method not found")


def tip(world: World) -> str:
    return str(world.node.ask("getbestblockhash"))


def ask(
    world: World, *, cautious: bool = False, block_hash: str | None = None, up_s: int | None = None
) -> frozenset[str]:
    outpoints = [(coin.txid, coin.vout) for coin in world.coins]
    return world.spender.waiting_spends(outpoints, block_hash=block_hash or tip(world), cautious=cautious, up_s=up_s)


def invents(peers: list[dict[str, Any]], _params: object) -> list[dict[str, Any]]:
    return [*peers[:-1], peers[-1] | {"spendingtxid": INVENTED}]


def hides(peers: list[dict[str, Any]], _params: object) -> list[dict[str, Any]]:
    return [{"txid": one["txid"], "vout": one["vout"]} for one in peers]


def waits(world: World) -> str:
    """Let one of three coins be spent by what waits; return its id."""
    world.fund(COIN, COIN, COIN)
    attempt = world.sign(world.draft(intent(1_000_000)))
    world.spender.send(attempt.raw)
    return attempt.txid


def test_a_waiting_transaction_shows_until_its_block(pair: World, monkeypatch: pytest.MonkeyPatch) -> None:
    txid, scanned = waits(pair), tip(pair)
    assert ask(pair) == ask(pair, cautious=True) == {txid}
    monkeypatch.setattr(waiting, "PORTION", 2)
    before = pair.providers[0].asked.count(ASK)
    assert ask(pair) == {txid}
    assert pair.providers[0].asked.count(ASK) == before + 2

    pair.node.mine()
    assert ask(pair) == frozenset()
    outpoints = [(coin.txid, coin.vout) for coin in pair.coins]
    assert pair.spender.waiting_spends(outpoints, block_hash=None, cautious=False) == frozenset()
    # The pool has it no more, and the scan has not seen the block.
    with pytest.raises(NotYetError):
        ask(pair, block_hash=scanned)


def test_one_word_is_enough_that_something_waits_and_later_it_takes_two(trio: World) -> None:
    txid, liar = waits(trio), trio.providers[0]
    liar.lies[ASK] = invents
    assert ask(trio, cautious=True) == {txid, INVENTED}
    assert ask(trio) == {txid}
    liar.lies[ASK] = hides
    assert ask(trio) == ask(trio, cautious=True) == {txid}
    # A provider at another tip counts while one is enough, and not after.
    liar.lies |= {ASK: invents, "getbestblockhash": "cd" * 32}
    assert ask(trio, cautious=True) == {txid, INVENTED}
    assert ask(trio) == {txid}


@pytest.mark.parametrize(
    ("method", "lie"),
    [
        (ASK, OLD_NODE),
        (ASK, lambda answer, _: answer[1:]),
        (ASK, lambda answer, _: answer[::-1]),
        (ASK, lambda answer, _: [one | {"spendingtxid": "AB" * 32} for one in answer]),
        (ASK, lambda answer, _: [one | {"spendingtxid": 7} for one in answer]),
        (ASK, lambda answer, _: [one | {"vout": str(one["vout"])} for one in answer]),
        ("getbestblockhash", "no hash"),
        ("getmempoolinfo", {"loaded": False}),
    ],
)
def test_failing_providers_do_not_count_and_without_any_nothing_is_known(pair: World, method: str, lie: object) -> None:
    txid = waits(pair)
    pair.providers[0].lies[method] = lie
    assert ask(pair) == {txid}
    with pytest.raises(NotYetError, match="1 of the nodes"):
        ask(pair, cautious=True)
    pair.providers[1].lies[method] = lie
    with pytest.raises(ProviderError):
        ask(pair)


def test_without_coins_no_provider_is_asked(alone: World) -> None:
    before = len(alone.providers[0].asked)
    assert alone.spender.waiting_spends([], block_hash="", cautious=True) == frozenset()
    assert len(alone.providers[0].asked) == before


def test_the_one_provider_there_is_has_the_only_word(alone: World) -> None:
    waits(alone)
    alone.providers[0].lies[ASK] = invents
    assert INVENTED in ask(alone) & ask(alone, cautious=True)


def test_a_transaction_mined_during_the_query_is_not_gone(alone: World) -> None:
    waits(alone)
    scanned = tip(alone)

    def mines(peers: list[dict[str, Any]], params: object) -> list[dict[str, Any]]:
        alone.node.mine()
        return hides(peers, params)

    alone.providers[0].lies[ASK] = mines
    with pytest.raises(NotYetError):
        ask(alone, block_hash=scanned)


def test_a_provider_at_another_tip_stops_payouts_only_for_a_time(pair: World) -> None:
    txid = waits(pair)
    pair.providers[0].lies |= {ASK: invents, "getbestblockhash": "cd" * 32}
    assert ask(pair) == {txid}


def test_a_young_nodes_empty_pool_proves_nothing(pair: World) -> None:
    """Its pool may have started empty. Transactions that it has do count."""
    txid = waits(pair)
    young, other = (each.lies for each in pair.providers)
    young |= {ASK: hides, "uptime": 99}
    other |= {ASK: hides, "uptime": 100}
    assert ask(pair, cautious=True) == ask(pair, cautious=True, up_s=99) == frozenset()
    with pytest.raises(NotYetError, match=r"1 of the nodes .* have run for 100 s"):
        ask(pair, cautious=True, up_s=100)
    assert ask(pair, up_s=100) == frozenset()

    # Who does not say how long it has run counts; who says nonsense has no word.
    young["uptime"] = OLD_NODE
    assert ask(pair, cautious=True, up_s=100) == frozenset()
    young["uptime"] = "long"
    with pytest.raises(NotYetError, match="1 of the nodes"):
        ask(pair, cautious=True, up_s=100)
    young |= {ASK: lambda answer, _: answer, "uptime": 0}
    other["uptime"] = 200
    with pytest.raises(NotYetError):
        ask(pair, cautious=True, up_s=100)
    assert ask(pair, cautious=True, up_s=0) == {txid}
