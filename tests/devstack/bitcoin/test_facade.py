"""Our own node answers as a real one does, and what it knows outlives a kill."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import urllib3

from chains.base import ProviderError
from chains.bitcoin.transactions import TxOutput, read_hex
from chains.net.json_rpc import JsonRpc, RpcError
from devstack.bitcoin.facade.blocks import GENESIS, make_block, read_block
from devstack.bitcoin.facade.faults import RefusedError
from devstack.bitcoin.facade.state import State
from devstack.bitcoin.node import BitcoinNode
from tests.devstack.waiting import wait_for
from tests.peers.bitcoind.hand_mined import BUYER_ADDRESS, BUYER_SCRIPT, MINER_ADDRESS, HandMined

Start = Callable[[], BitcoinNode]


@pytest.fixture(params=["regtest", "bitcoind"])
def node(request: pytest.FixtureRequest) -> BitcoinNode:
    """Our own node, and a real one."""
    start: Start = request.getfixturevalue(request.param)
    return start()


def answer_or_refusal(call: Callable[[], object]) -> object:
    """Return what is answered, or the code and the first word of a refusal."""
    try:
        return call()
    except RpcError as refusal:
        return refusal.code, refusal.text.replace(",", " ").split()[0]


def test_both_refuse_alike(node: BitcoinNode) -> None:
    chain = HandMined(node.url, coins=6)
    paid = chain.signed((BUYER_ADDRESS, 5_000))
    included = chain.send(paid)
    chain.mine()
    forged = bytearray.fromhex(chain.signed((BUYER_ADDRESS, 6_000)))
    forged[-60] ^= 1
    reward = chain.ask("getblock", chain.ask("getblockhash", 50), 2)["tx"][0]
    chain.coins.insert(0, (reward["txid"], 0, round(reward["vout"][0]["value"] * 10**8)))
    unripe = chain.signed()
    generous = chain.signed(fee_units=10**8)

    assert [
        answer_or_refusal(lambda: chain.send(paid)),
        answer_or_refusal(lambda: chain.send(forged.hex())),
        answer_or_refusal(lambda: chain.send(chain.signed((BUYER_ADDRESS, 6_000), fee_units=10))),
        answer_or_refusal(lambda: chain.ask("sendrawtransaction", generous)),
        answer_or_refusal(lambda: chain.ask("sendrawtransaction", "00")),
        answer_or_refusal(lambda: chain.ask("getblockhash", 9_999)),
        answer_or_refusal(lambda: chain.ask("getblockheader", "aa" * 32)),
        answer_or_refusal(lambda: chain.ask("getrawtransaction", "aa" * 32)),
        answer_or_refusal(lambda: chain.ask("getmempoolentry", "aa" * 32)),
        answer_or_refusal(lambda: chain.ask("no such thing")),
        answer_or_refusal(lambda: chain.ask("gettxout", "aa" * 32, 0)),
        answer_or_refusal(lambda: chain.ask("gettxout", reward["txid"], 1)),
        answer_or_refusal(lambda: chain.ask("estimatesmartfee", 2).keys() & {"feerate", "errors"}),
    ] == [
        (-27, "Transaction"), (-26, "mempool-script-verify-flag-failed"), (-26, "min"), (-25, "Fee"), (-22, "TX"),
        (-8, "Block"), (-5, "Block"), (-5, "No"), (-5, "Transaction"), (-32601, "Method"), None, None,
        {"errors"},
    ]  # fmt: skip
    # Not the miner's, whose scripts the buyer's key would not open: one after the other is asked.
    assert answer_or_refusal(lambda: chain.send(unripe)) == (-26, "bad-txns-premature-spend-of-coinbase")
    assert chain.ask("gettxout", included, 0)["bestblock"] == chain.ask("getbestblockhash")


def test_both_show_a_block_alike(node: BitcoinNode) -> None:
    chain = HandMined(node.url, coins=2)
    raw = chain.signed((BUYER_ADDRESS, 5_000))
    txid = chain.send(raw)
    height = chain.mine()
    block_hash = chain.ask("getblockhash", height)
    shown = chain.ask("getblock", block_hash, 3)

    assert read_block(bytes.fromhex(chain.ask("getblock", block_hash, 0))).header.hash == block_hash
    assert (shown["hash"], shown["height"], shown["confirmations"], shown["nTx"]) == (block_hash, height, 1, 2)
    assert shown["previousblockhash"] == chain.ask("getblockhash", height - 1)
    assert chain.ask("getblock", block_hash, 1)["tx"][1] == txid
    paid = shown["tx"][1]
    assert (paid["txid"], paid["hex"], paid["vsize"], paid["fee"]) == (txid, raw, read_hex(raw).vsize, 0.00002)
    assert (paid["vout"][0]["value"], paid["vout"][0]["scriptPubKey"]["address"]) == (0.00005, BUYER_ADDRESS)
    assert (paid["vin"][0]["prevout"]["value"], paid["vin"][0]["vout"]) == (50, 0)
    assert shown["tx"][0]["vin"][0].keys() >= {"coinbase", "sequence"}
    assert chain.ask("getrawtransaction", txid, 1, block_hash)["confirmations"] == 1


def test_both_replace_only_by_higher_fees(node: BitcoinNode) -> None:
    chain = HandMined(node.url, coins=3)
    coin = chain.coins[0]

    def offered(units: int, fee_units: int) -> str:
        chain.coins.insert(0, coin)
        return chain.signed((BUYER_ADDRESS, units), fee_units=fee_units)

    first = chain.send(offered(5_000, 1_000))
    assert answer_or_refusal(lambda: chain.send(offered(5_001, 1_000))) == (-26, "insufficient")
    assert answer_or_refusal(lambda: chain.send(offered(5_002, 1_050))) == (-26, "insufficient")
    second = chain.send(offered(5_003, 2_000))

    assert chain.waiting() == [second]
    entry = chain.ask("getmempoolentry", second)
    assert (entry["fees"]["base"], entry["ancestorcount"], entry["descendantcount"]) == (0.00002, 1, 1)
    assert answer_or_refusal(lambda: chain.ask("getmempoolentry", first)) == (-5, "Transaction")
    # A block may still include the replaced transaction.
    chain.ask("generateblock", MINER_ADDRESS, [offered(5_000, 1_000)])
    assert chain.waiting() == []
    assert answer_or_refusal(lambda: chain.send(offered(5_003, 2_000))) == (-25, "bad-txns-inputs-missingorspent")


def test_both_show_the_spender_of_a_waiting_coin(node: BitcoinNode) -> None:
    chain = HandMined(node.url, coins=2)
    asked = [{"txid": txid, "vout": vout} for txid, vout, _ in chain.coins[:2]]
    paid = chain.pay((BUYER_ADDRESS, 5_000))

    assert chain.ask("gettxspendingprevout", asked) == [asked[0] | {"spendingtxid": paid}, asked[1]]
    chain.mine()
    assert chain.ask("gettxspendingprevout", asked) == asked
    refused: list[object] = [[], [{"txid": "aa", "vout": 0}], [{"txid": "aa" * 32, "vout": -1}]]
    assert [answer_or_refusal(partial(chain.ask, "gettxspendingprevout", one)) for one in refused] == [
        (-8, "Invalid"), (-8, "txid"), (-8, "Invalid"),
    ]  # fmt: skip


def test_both_end_a_chain_of_waiting_ones_at_twenty_five(node: BitcoinNode) -> None:
    chain = HandMined(node.url, coins=1)
    sent = [chain.pay((BUYER_ADDRESS, 5_000)) for _ in range(25)]

    assert answer_or_refusal(lambda: chain.pay((BUYER_ADDRESS, 5_000))) == (-26, "too-long-mempool-chain")
    chain.mine()
    tx = chain.ask("getblock", chain.ask("getbestblockhash"), 1)["tx"]
    assert tx[1:] == sent


def test_both_return_reorged_transactions_to_the_pool_and_accept_a_block_again(node: BitcoinNode) -> None:
    chain = HandMined(node.url, coins=2)
    txid = chain.pay((BUYER_ADDRESS, 5_000))
    height = chain.mine()
    left = chain.ask("getblockhash", height)
    chain.ask("invalidateblock", left)
    assert (chain.height(), chain.waiting()) == (height - 1, [txid])
    assert chain.ask("getblockheader", left)["confirmations"] == -1

    chain.ask("reconsiderblock", left)
    assert (chain.ask("getbestblockhash"), chain.waiting()) == (left, [])

    chain.mine(2)
    newest = chain.ask("getbestblockhash")
    chain.ask("invalidateblock", left)
    # It becomes valid again together with a lower block, and with a higher one.
    between = chain.ask("getblockheader", newest)["previousblockhash"]
    chain.ask("reconsiderblock", between)
    assert chain.ask("getbestblockhash") == newest
    chain.ask("invalidateblock", between)
    assert chain.ask("getbestblockhash") == left


def test_both_follow_a_clock_that_is_moved(node: BitcoinNode) -> None:
    chain, week_s = HandMined(node.url, coins=1), 7 * 86_400
    target_s = int(time.time()) + week_s
    chain.ask("setmocktime", target_s)
    chain.mine(3)
    chain.pay((BUYER_ADDRESS, 5_000))
    chain.mine(3)

    assert chain.ask("getblockheader", chain.ask("getbestblockhash"))["time"] >= target_s
    assert chain.waiting() == []


def test_blocks_outlive_a_kill_and_a_file_that_was_cut_off(regtest: Start) -> None:
    node = regtest()
    chain = HandMined(node.url, coins=2)
    chain.mine(3)
    chain.reorg(2)
    tip = chain.ask("getbestblockhash")
    for rubbish in (b"", b"B\xff\x00\x00\x00cut"):
        os.kill(int(node.pid or 0), signal.SIGKILL)
        wait_for(lambda: node.child is not None and node.child.exit_code() is not None)
        with (node._folder / "facade" / "blocks.bin").open("ab") as file:
            file.write(rubbish)
        node.start()
        # Records behind the rubbish are read at the next start.
        assert chain.ask("getbestblockhash") == tip
        chain.mine()
        tip = chain.ask("getbestblockhash")
    os.kill(int(node.pid or 0), signal.SIGKILL)
    wait_for(lambda: node.child is not None and node.child.exit_code() is not None)
    node.start()
    assert chain.ask("getbestblockhash") == tip

    chain.pay((BUYER_ADDRESS, 5_000))
    assert chain.mine() == 102 + 3 + 2 + 1


def test_a_block_that_breaks_the_rules_is_refused_by_the_engine(tmp_path: Path) -> None:
    state = State(tmp_path)
    script = bytes(BUYER_SCRIPT.data)
    genesis = read_block(GENESIS).header
    reward = TxOutput(units=50 * 10**8 + 1, script=script)
    greedy = make_block(previous=genesis.hash, height=1, time=genesis.time + 1, paid=(reward,), txs=(), mark=b"mark")

    with pytest.raises(RefusedError, match="the engine refuses"):
        state._stand_on(greedy)
    assert state.view.height == 0
    state.mine(script)
    assert state.view.height == 1
    state.close()


def test_calls_without_the_password_are_refused(regtest: Start) -> None:
    node = regtest()
    with pytest.raises(ProviderError, match="401"):
        JsonRpc(node.url.replace("sluice:", "sluice:not"), timeout_s=5).call("getblockcount", [], int)


def test_the_older_form_refuses_by_http_and_calls_can_be_batched(regtest: Start) -> None:
    node = regtest()
    login, _, address = node.url.removeprefix("http://").partition("@")
    headers = urllib3.make_headers(basic_auth=login)

    def post(content: object) -> tuple[int, Any]:
        answer = urllib3.request("POST", f"http://{address}", body=msgspec.json.encode(content), headers=headers)
        return answer.status, msgspec.json.decode(answer.data)

    refused = {"id": 1, "method": "getblockhash", "params": [7]}
    assert post(refused)[0] == 500
    assert post({"id": 1, "method": "nothing", "params": []})[0] == 404
    assert post(7)[0] == 400
    status, answers = post([refused, {"id": 2, "method": "getblockcount", "params": []}])
    assert status == 200
    assert [(one["id"], one["result"]) for one in answers] == [(1, None), (2, 0)]
