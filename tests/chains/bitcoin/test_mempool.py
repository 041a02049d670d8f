"""Waiting transactions in one pool and in several: seen, replaced, lost, read in portions, soon by two providers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from chains.base import ProviderError, Sighting
from chains.bitcoin import mempool
from chains.bitcoin.transactions import TxOutput, read_hex
from chains.net.http import REPLY_BYTES_MAX
from chains.net.json_rpc import JsonRpc
from devstack.bitcoin.node import BitcoinNode
from tests.chains.bitcoin.conftest import OURS, THEIRS, Books, Chain, bitcoin_reader
from tests.peers.json_rpc_node import JsonRpcNode, Refusal


def look(chain: Chain, known: dict[str, bool] | None = None) -> list[tuple[str, str, int, bool]]:
    return [plain(one) for one in chain.reader.sightings(chain.books, known or {}).seen]


def plain(one: Sighting) -> tuple[str, str, int, bool]:
    return one.transfer.txid, one.transfer.ordinal, one.transfer.units, one.is_soon


def test_each_output_to_us_of_a_waiting_transaction_is_seen(chain: Chain) -> None:
    spent = chain.node.coins[0][:2]
    txid = chain.node.pay((OURS, 50_000), (THEIRS, 1_000), (OURS, 60_000))
    chain.node.pay((THEIRS, 70_000))

    sightings = chain.reader.sightings(chain.books, {})
    assert [plain(one) for one in sightings.seen] == [(txid, "0", 50_000, True), (txid, "2", 60_000, True)]
    assert (sightings.gone, sightings.is_more) == (frozenset(), False)
    assert {one.spends for one in sightings.seen} == {(spent,)}
    assert sightings.seen[0].transfer.recipient == OURS
    chain.node.mine()
    assert chain.scan().transfers == tuple(one.transfer for one in sightings.seen)


def test_a_sighting_is_reported_until_it_is_recorded(chain: Chain) -> None:
    txid = chain.node.pay((OURS, 50_000))

    assert look(chain) == look(chain) == [(txid, "0", 50_000, True)]
    assert look(chain, {txid: True}) == []


def test_a_changed_sighting_is_reported_again(chain: Chain) -> None:
    txid = chain.node.pay((OURS, 50_000))

    assert look(chain, {txid: False}) == [(txid, "0", 50_000, True)]


def test_a_transaction_for_others_is_not_fetched_again(chain: Chain) -> None:
    chain.node.pay((THEIRS, 50_000))
    chain.reader.sightings(chain.books, {})
    asked = len(chain.books.asked)

    chain.reader.sightings(chain.books, {})
    assert len(chain.books.asked) == asked == 1
    # A transaction that left the pool is forgotten.
    assert any(chain.reader._pools._passed.values())
    chain.node.mine()
    chain.reader.sightings(chain.books, {})
    assert not any(chain.reader._pools._passed.values())


def test_mined_and_replaced_transactions_are_gone(chain: Chain) -> None:
    mined = chain.node.pay((OURS, 50_000))
    chain.node.mine()
    coins = list(chain.node.coins)
    before = chain.node.pay((OURS, 60_000))
    chain.node.coins = coins
    after = chain.node.pay((THEIRS, 60_000), (OURS, 1_000), fee_units=9_000)

    sightings = chain.reader.sightings(chain.books, {mined: True, before: True})
    assert sightings.gone == {mined, before}
    assert [plain(one) for one in sightings.seen] == [(after, "1", 1_000, True)]


def test_nothing_is_gone_while_a_provider_cannot_be_asked(chain: Chain) -> None:
    txid = chain.node.pay((OURS, 50_000))
    with JsonRpcNode({"getblockhash": Refusal(-28, "Loading block index")}) as silent:
        reader = bitcoin_reader(chain.node.url, silent.url)
        sightings = reader.sightings(chain.books, {"11" * 32: True})

    assert [plain(one) for one in sightings.seen] == [(txid, "0", 50_000, False)]
    assert sightings.gone == frozenset()


def test_pools_are_asked_at_once_each_first_for_other_transactions(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mempool, "FETCHED_AT_ONCE", 1)
    txids = [chain.node.pay((OURS, 50_000 + number)) for number in range(2)]
    both, fetched = threading.Barrier(2), list[str]()

    def show(txid: str) -> object:
        fetched.append(txid)
        if len(fetched) <= len(txids):
            both.wait(10)
        return chain.node.ask("getrawtransaction", txid)

    answers = {
        "getblockhash": lambda _height: chain.reader.identify()[0],
        "getrawmempool": txids,
        "getrawtransaction": show,
        "getmempoolentry": ENTRY,
        "estimatesmartfee": {"feerate": 0.00005000, "blocks": 6},
    }
    with JsonRpcNode(answers) as one, JsonRpcNode(answers) as other:
        sightings = bitcoin_reader(one.url, other.url).sightings(Books(), {})
    assert {plain(each)[0] for each in sightings.seen} == set(txids) == set(fetched[:2])


def test_no_pool_at_all_is_an_error() -> None:
    with (
        JsonRpcNode({"getblockhash": Refusal(-28, "Loading block index")}) as silent,
        pytest.raises(ProviderError, match="Loading"),
    ):
        bitcoin_reader(silent.url).sightings(Books(), {})


def test_a_flood_is_looked_through_in_portions(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mempool, "PORTION", 2)
    for number in range(5):
        chain.node.pay((OURS if number == 2 else THEIRS, 50_000))

    known: dict[str, bool] = {}
    is_more = []
    while True:
        sightings = chain.reader.sightings(chain.books, known)
        known |= {one.transfer.txid: one.is_soon for one in sightings.seen}
        is_more.append(sightings.is_more)
        if not sightings.is_more:
            break
    assert len(known) == 1
    assert is_more == [True, True, False]
    # Two recipients, and the buyer's change.
    assert max(chain.books.asked) <= 3


def test_known_sightings_are_asked_about_in_turn(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mempool, "KNOWN_ASKED", 2)
    txids = {chain.node.pay((OURS, 50_000 + number)) for number in range(5)}

    txids_seen = {one[0] for _ in range(3) for one in look(chain, dict.fromkeys(txids, False))}
    assert txids_seen == txids


# How soon -------------------------------------------------------------------------------------------------------


def test_with_two_providers_it_takes_both(chain: Chain, bitcoind: Callable[[], BitcoinNode]) -> None:
    url = bitcoind().url
    other = JsonRpc(url, timeout_s=30)
    for height in range(1, chain.node.height() + 1):
        block = chain.node.ask("getblock", chain.node.ask("getblockhash", height), 0)
        assert other.call_or_none("submitblock", [block], str) is None
    reader = bitcoin_reader(chain.node.url, url)
    raw = chain.node.signed((OURS, 50_000))
    txid = chain.node.send(raw)

    assert [plain(one) for one in reader.sightings(chain.books, {}).seen] == [(txid, "0", 50_000, False)]
    assert reader.sightings(chain.books, {txid: False}).seen == ()
    other.call("sendrawtransaction", [raw], str)
    assert [plain(one) for one in reader.sightings(chain.books, {txid: False}).seen] == [(txid, "0", 50_000, True)]
    chain.node.mine()
    assert reader.sightings(chain.books, {txid: True}).gone == frozenset()


ENTRY = {"vsize": 100, "ancestorsize": 200, "fees": {"base": 0.00000500, "ancestor": 0.00001000}}


@pytest.fixture
def scripted(chain: Chain) -> Iterator[tuple[JsonRpcNode, str]]:
    """A node whose pool shows a test's answers; its transaction is a real one."""
    raw = chain.node.signed((OURS, 50_000))
    txid = chain.node.send(raw)
    answers = {
        "getblockhash": lambda _height: chain.reader.identify()[0],
        "getrawmempool": [txid],
        "getrawtransaction": raw,
        "getmempoolentry": ENTRY,
        "estimatesmartfee": {"feerate": 0.00005000, "blocks": 6},
        "getmempoolinfo": {"mempoolminfee": 0.00001000, "minrelaytxfee": 0.00001000},
    }
    with JsonRpcNode(answers) as node:
        yield node, txid


def is_soon(node: JsonRpcNode) -> bool:
    (seen,) = bitcoin_reader(node.url).sightings(Books(), {}).seen
    return seen.is_soon


@pytest.mark.parametrize(
    ("base", "ancestor", "soon"),
    [
        (0.00000500, 0.00001000, True),
        (0.00000499, 0.00001000, False),
        # A parent that pays too little holds it up; one that pays much does not bring it in.
        (0.00000500, 0.00000999, False),
        (0.00000400, 0.00010000, False),
    ],
)
def test_soon_needs_the_rate_alone_and_with_all_ancestors(
    scripted: tuple[JsonRpcNode, str], base: float, ancestor: float, *, soon: bool
) -> None:
    node, _ = scripted
    node.answers["getmempoolentry"] = ENTRY | {"fees": {"base": base, "ancestor": ancestor}}

    assert is_soon(node) == soon


def test_soon_is_one_of_the_next_six_blocks(scripted: tuple[JsonRpcNode, str]) -> None:
    node, _ = scripted
    node.answers["estimatesmartfee"] = lambda blocks: {"feerate": 0.00005 if blocks == 6 else 0.9}

    assert is_soon(node)


@pytest.mark.parametrize(
    ("least", "relay", "soon"), [(0.00005, 0.00001, True), (0.00001, 0.00005, True), (0.00006, 0.00001, False)]
)
def test_without_an_estimate_the_pools_minimum_counts(
    scripted: tuple[JsonRpcNode, str], least: float, relay: float, *, soon: bool
) -> None:
    node, _ = scripted
    node.answers["estimatesmartfee"] = {"errors": ["Insufficient data or no feerate found"], "blocks": 0}
    node.answers["getmempoolinfo"] = {"mempoolminfee": least, "minrelaytxfee": relay}

    assert is_soon(node) == soon


def test_an_invalid_rate_makes_nothing_soon_and_hides_no_other(scripted: tuple[JsonRpcNode, str], chain: Chain) -> None:
    node, txid = scripted
    for rate in ("NaN", "sNaN", "Infinity", "1e999999"):
        node.answers["estimatesmartfee"] = {"feerate": rate, "blocks": 6}
        for urls in ((node.url,), (node.url, chain.node.url)):
            (seen,) = bitcoin_reader(*urls).sightings(Books(), {}).seen
            assert plain(seen) == (txid, "0", 50_000, False)

    # One of nothing or less is no estimate.
    for least in (-1, 0, "-1e999999"):
        node.answers["estimatesmartfee"] = {"feerate": least, "blocks": 6}
        assert is_soon(node)


def test_a_transaction_that_left_the_pool_is_not_soon(scripted: tuple[JsonRpcNode, str]) -> None:
    node, _ = scripted
    node.answers["getmempoolentry"] = Refusal(-5, "Transaction not in mempool")

    assert not is_soon(node)


def test_a_provider_that_does_not_answer_denies_nothing(scripted: tuple[JsonRpcNode, str], chain: Chain) -> None:
    """Or its timeout moves the price of every buyer who waits for a block."""
    node, txid = scripted
    reader = bitcoin_reader(node.url, chain.node.url)
    assert reader.sightings(Books(), {txid: True}).seen == ()
    node.answers["estimatesmartfee"] = Refusal(-28, "Loading block index")
    assert reader.sightings(Books(), {txid: True}).seen == ()
    assert reader.sightings(Books(), {txid: False}).seen == ()
    (seen,) = reader.sightings(Books(), {}).seen
    assert not seen.is_soon

    node.answers["estimatesmartfee"] = {"feerate": 0.9, "blocks": 6}
    assert [plain(one)[-1] for one in reader.sightings(Books(), {txid: True}).seen] == [False]


def test_a_pool_that_cannot_be_seen_may_hold_the_transaction(scripted: tuple[JsonRpcNode, str], chain: Chain) -> None:
    node, txid = scripted
    reader = bitcoin_reader(node.url, chain.node.url)
    chain.node.mine()
    node.answers["getrawmempool"] = Refusal(-28, "Loading block index")
    assert reader.sightings(Books(), {txid: True}).unseen == frozenset()
    node.answers["getrawmempool"] = []

    assert reader.sightings(Books(), {txid: True}).unseen == {txid}


def test_bytes_of_another_transaction_are_no_sighting(scripted: tuple[JsonRpcNode, str]) -> None:
    node, _ = scripted
    node.answers["getrawmempool"] = ["11" * 32]

    assert bitcoin_reader(node.url).sightings(Books(), {}).seen == ()


@pytest.mark.parametrize("shown", ["", "00", "no digits", "ff" * 100])
def test_an_invalid_transaction_hides_no_other(scripted: tuple[JsonRpcNode, str], shown: str) -> None:
    node, txid = scripted
    raw, broken = node.answers["getrawtransaction"], "11" * 32
    node.answers["getrawmempool"] = [broken, txid]
    node.answers["getrawtransaction"] = lambda asked: shown if asked == broken else raw

    (seen,) = bitcoin_reader(node.url).sightings(Books(), {}).seen
    assert seen.transfer.txid == txid


def test_an_oversized_transaction_is_no_sighting_and_the_largest_valid_one_fits(
    scripted: tuple[JsonRpcNode, str], chain: Chain
) -> None:
    node, txid = scripted
    ours = read_hex(chain.node.ask("getrawtransaction", txid))
    filler = TxOutput(units=0, script=b"\x6a".ljust(mempool.RAW_BYTES_MAX, b"\0"))
    giant = replace(ours, outputs=(*ours.outputs, filler))
    node.answers["getrawmempool"] = [giant.txid]
    node.answers["getrawtransaction"] = giant.raw.hex()

    assert bitcoin_reader(node.url).sightings(Books(), {}).seen == ()
    assert mempool.FETCHED_AT_ONCE * 2 * mempool.RAW_BYTES_MAX < REPLY_BYTES_MAX // 2


def test_a_provider_that_names_and_does_not_show_hides_nothing_of_another(
    scripted: tuple[JsonRpcNode, str], chain: Chain
) -> None:
    node, txid = scripted
    node.answers["getrawtransaction"] = Refusal(-5, "No such mempool transaction")
    reader = bitcoin_reader(node.url, chain.node.url)

    assert reader.sightings(Books(), {}).seen[0].transfer.txid == txid
    assert reader.sightings(Books(), {}).seen[0].transfer.txid == txid
