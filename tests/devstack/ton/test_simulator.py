"""The simulated TON chain: every transaction is in one block, which a walk over the shards finds; its file keeps it."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from chains.ton import boc, messages, transactions
from chains.ton.cells import Cell
from chains.ton.credits import coin_credit
from chains.ton.slices import Builder
from chains.ton.transactions import Transaction
from chains.ton.transfers import comment
from devstack.ton.answers import Fault, Reach, answer
from devstack.ton.blocks import WHOLE, halves, is_within, parent
from devstack.ton.sending import sent_by
from devstack.ton.server import BODY_BYTES_MAX, Server
from devstack.ton.simulator import FAUCET, Simulator
from tests.chains.ton.running import shared_engine
from tests.chains.ton.world import TON, Wallet, coin, issuer

IDENTITY = "F6OpKZKqvqeFp6CQmFomXNMfMj2EnaUSOXN+Mh+wVWk="
LOW, HIGH = "0:" + "01" * 32, "0:" + "f1" * 32
YEAR_S = 365 * 86_400

Place = tuple[int, str, int]


@pytest.fixture
def chain() -> Simulator:
    return Simulator(shared_engine(), IDENTITY)


def ask(chain: Simulator, method: str, **asked: object) -> Any:
    return answer(chain, method, dict(asked))


def order(wallet: Wallet, chain: Simulator, *cells: Cell) -> str:
    """Return a wallet's message as a node takes it."""
    return boc.write_base64(wallet.order_at(chain.now(), *cells))


def place(block: dict[str, Any]) -> Place:
    return int(block["workchain"]), str(block["shard"]), int(block["seqno"])


def tops(chain: Simulator, seqno: int) -> list[dict[str, Any]]:
    return list(ask(chain, "shards", seqno=seqno)["shards"])


def between(chain: Simulator, seqno: int) -> list[Place]:
    """Return the blocks of shards that a block of the masterchain adds, as a reader of the chain collects them."""
    seen = {place(block) for block in tops(chain, seqno - 1)}
    ahead, added = [place(block) for block in tops(chain, seqno)], list[Place]()
    while ahead:
        at = ahead.pop()
        if at not in seen and at[2]:
            seen.add(at)
            added.append(at)
            workchain, shard, number = at
            header = ask(chain, "getBlockHeader", workchain=workchain, shard=shard, seqno=number)
            ahead += [place(block) for block in header["prev_blocks"]]
    return added


def read_block(chain: Simulator, at: Place, count: int) -> Iterator[Transaction]:
    """Return all transactions of a block, page by page."""
    workchain, shard, seqno = at
    after: dict[str, object] = {}
    while True:
        asked = {"workchain": workchain, "shard": shard, "seqno": seqno, "count": count, **after}
        page = ask(chain, "getBlockTransactionsExt", **asked)
        read = [transactions.read(boc.read_base64(each["data"])) for each in page["transactions"]]
        yield from read
        if not page["incomplete"]:
            return
        after = {"after_hash": read[-1].address[2:], "after_lt": str(read[-1].lt)}


def walked(chain: Simulator, *, count: int = 2) -> list[Transaction]:
    """Return what a reader finds in all blocks."""
    return [
        transaction
        for seqno in range(1, chain.head.id.seqno + 1)
        for at in between(chain, seqno)
        for transaction in read_block(chain, at, count)
    ]


def ids(read: list[Transaction]) -> list[str]:
    return sorted(each.hash.hex() for each in read)


def all_ids(chain: Simulator) -> list[str]:
    return sorted(each.transaction.hash.hex() for ran in chain.ran.values() for each in ran)


def busy(chain: Simulator) -> Wallet:
    """Let a wallet pay addresses of many shards while these split, merge and make several blocks for one above."""
    wallet = Wallet("hot")
    chain.give(wallet.address, 100 * TON)
    chain.mine()
    payments = [coin(f"0:{number * 16 + 3:02x}{'00' * 31}", TON // 10).message() for number in range(16)]
    ask(chain, "sendBoc", boc=order(wallet, chain, *payments))
    chain.mine()
    left, right = halves(WHOLE)
    chain.split(WHOLE)
    chain.mine(between=3)
    chain.split(right)
    ask(chain, "sendBoc", boc=order(wallet, chain, *payments))
    chain.mine(2, between=2)
    chain.merge(*halves(right))
    chain.mine()
    chain.merge(left, right)
    chain.settle()
    chain.mine()
    return wallet


def test_a_walk_over_the_shards_finds_every_transaction_once(chain: Simulator) -> None:
    busy(chain)
    read = walked(chain)
    assert len(read) == 1 + 2 * (1 + 16)
    assert ids(read) == all_ids(chain)
    assert ids(walked(chain, count=256)) == all_ids(chain)
    assert max(len(tops(chain, seqno)) for seqno in range(chain.head.id.seqno)) == 3
    assert len(between(chain, 3)) == 6


def test_every_transaction_is_in_a_shard_of_its_account(chain: Simulator) -> None:
    busy(chain)
    for (shard, _), block in chain.blocks.items():
        assert all(is_within(shard, each.transaction.address) for each in block.ran)


def test_headers_show_splits_and_merges(chain: Simulator) -> None:
    busy(chain)
    headers = [
        ask(chain, "getBlockHeader", workchain=at[0], shard=at[1], seqno=at[2])
        for seqno in range(1, chain.head.id.seqno + 1)
        for at in between(chain, seqno)
    ]
    assert sum(header["after_split"] for header in headers) == 4
    merged = [header for header in headers if header["after_merge"]]
    assert [len(header["prev_blocks"]) for header in merged] == [2, 2]
    assert all(len(header["prev_blocks"]) == 1 for header in headers if not header["after_merge"])


def test_shards_are_numbers_of_the_main_net(chain: Simulator) -> None:
    # A shard of a quarter, as toncenter shows it.
    assert halves(WHOLE) == (1 << 62, 3 << 62)
    assert parent(halves(1 << 62)[0]) == parent(halves(1 << 62)[1]) == 1 << 62
    assert (is_within(1 << 62, LOW), is_within(1 << 62, HIGH), is_within(3 << 62, HIGH)) == (True, False, True)
    chain.mine()
    assert [block["shard"] for block in tops(chain, 1)] == ["-9223372036854775808"]
    chain.split(WHOLE)
    chain.mine()
    assert [block["shard"] for block in tops(chain, 2)] == ["4611686018427387904", "-4611686018427387904"]


def test_a_shard_that_is_not_there_neither_splits_nor_merges(chain: Simulator) -> None:
    with pytest.raises(LookupError):
        chain.split(1 << 62)
    with pytest.raises(LookupError):
        chain.merge(*halves(WHOLE))
    chain.mine()
    chain.split(WHOLE)
    # Before the first block of its own.
    with pytest.raises(LookupError):
        chain.split(1 << 62)
    with pytest.raises(LookupError):
        chain.merge(3 << 62, 1 << 62)


def test_a_message_arrives_in_a_later_block_and_may_come_back(chain: Simulator) -> None:
    wallet = Wallet("hot")
    chain.give(wallet.address, 5 * TON)
    chain.mine()
    ask(chain, "sendBoc", boc=order(wallet, chain, coin(HIGH, TON, bounce=True).message()))
    begin = chain.mine()
    assert (chain.settle() - begin, chain.is_quiet) == (2, True)
    seqnos = {
        each.address: (each.incoming.kind, each.incoming.bounced, seqno)
        for seqno in range(begin, begin + 3)
        for at in between(chain, seqno)
        for each in read_block(chain, at, 9)
    }
    assert seqnos == {HIGH: ("internal", False, begin + 1), wallet.address: ("internal", True, begin + 2)}


def test_a_message_is_taken_once_and_refused_with_the_words_of_a_node(chain: Simulator) -> None:
    wallet = Wallet("hot")
    chain.give(wallet.address, 5 * TON)
    chain.mine()
    sent = order(wallet, chain, coin(HIGH, 7).message())
    named = ask(chain, "sendBocReturnHash", boc=sent)
    message = messages.read(boc.read_base64(sent))
    assert base64.b64decode(named["hash_norm"]) == message.normalized_hash != message.cell.hash
    # Again before it is in a block: nodes take it, and include it once.
    ask(chain, "sendBoc", boc=sent)
    chain.settle()
    with pytest.raises(Fault, match="LITE_SERVER_UNKNOWN: cannot apply external message") as caught:
        ask(chain, "sendBoc", boc=sent)
    assert caught.value.code == 500
    assert [each.incoming.units for each in walked(chain) if each.address == HIGH] == [7]


def test_a_message_that_is_no_longer_accepted_leaves_no_trace(chain: Simulator) -> None:
    wallet = Wallet("hot")
    chain.give(wallet.address, 5 * TON)
    chain.mine()
    ask(chain, "sendBoc", boc=order(wallet, chain, coin(HIGH, 7).message()))
    chain.advance(YEAR_S)
    chain.settle()
    assert HIGH not in {each.address for each in walked(chain)}
    assert chain.head.time > chain.masters[1].time + YEAR_S - 9


def test_old_states_are_answered(chain: Simulator) -> None:
    chain.give(HIGH, 5)
    before = chain.mine()
    chain.give(HIGH, 6 * TON)
    chain.mine(2)
    states = [ask(chain, "getAddressInformation", address=HIGH, seqno=seqno) for seqno in (0, before, before + 1)]
    assert [state["balance"] for state in states] == ["0", "5", str(5 + 6 * TON)]
    now = ask(chain, "getAddressInformation", address=HIGH)
    assert (now["balance"], now["state"], now["block_id"]["seqno"]) == (str(5 + 6 * TON), "uninitialized", 3)


def test_an_account_s_transactions_are_paged_from_the_newest(chain: Simulator) -> None:
    for units in range(1, 6):
        chain.give(HIGH, units)
        chain.mine()
    first = ask(chain, "getTransactions", address=HIGH, limit=2)
    assert [each["in_msg"]["value"] for each in first] == ["5", "4"]
    last = first[-1]["transaction_id"]
    rest = ask(chain, "getTransactions", address=HIGH, lt=last["lt"], hash=last["hash"])
    assert [each["in_msg"]["value"] for each in rest] == ["4", "3", "2", "1"]
    above = ask(chain, "getTransactions", address=HIGH, to_lt=rest[1]["transaction_id"]["lt"])
    assert [each["in_msg"]["value"] for each in above] == ["5", "4"]
    assert ask(chain, "getTransactions", address=LOW) == []


def test_a_comment_is_shown_as_its_text(chain: Simulator) -> None:
    bodies = [
        comment('{"long": "' + "text " * 100),
        Builder().uint(7, 32).end(),
        Builder().uint(0, 32).uint(0xFF, 8).end(),
    ]
    for body in bodies:
        chain.act(
            "message", {"boc": boc.write_base64(sent_by(LOW, messages.internal(HIGH, 5, bounce=False, body=body)))}
        )
        chain.mine()
    shown = [each["in_msg"] for each in ask(chain, "getTransactions", address=HIGH)]
    assert [each["msg_data"]["@type"] for each in shown] == ["msg.dataRaw", "msg.dataRaw", "msg.dataText"]
    assert [each["message"] for each in shown] == ["AAAAAP8=", "AAAABw==", '{"long": "' + "text " * 100]


def test_jettons_arrive_over_the_chain(chain: Simulator) -> None:
    hot, admin = Wallet("hot"), Wallet("admin")
    for wallet in (hot, admin):
        chain.give(wallet.address, 9 * TON)
    chain.mine()
    usd = issuer(admin)
    ask(chain, "sendBoc", boc=boc.write_base64(admin.order_at(chain.now(), usd.mint(hot.address, 500))))
    chain.settle()
    ask(chain, "sendBoc", boc=order(hot, chain, usd.transfer(hot, HIGH, 200).message()))
    chain.settle()
    wallet = ask(chain, "getAddressInformation", address=usd.jetton.wallet(HIGH))
    assert (wallet["state"], boc.read_base64(wallet["code"])) == ("active", usd.jetton.wallet_code)


def test_a_killed_chain_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "chain.jsonl"
    first = Simulator(shared_engine(), IDENTITY, path=path)
    wallet = busy(first)
    first.advance(1_000)
    ask(first, "sendBoc", boc=order(wallet, first, coin(HIGH, TON).message()))
    # The message that the wallet sends is on its way, and a shard about to split.
    first.mine()
    first.split(WHOLE)
    first.give(LOW, 3)
    first.act("jettons", {"address": LOW, "units": 4})
    again = Simulator(shared_engine(), IDENTITY, path=path)

    assert (again.masters, again.blocks) == (first.masters, first.blocks)
    assert (again.shards, again.is_quiet, again.now() - first.now() <= 1) == (first.shards, False, True)
    again.settle()
    assert ids(walked(again)) == all_ids(again)
    assert again.account(HIGH, again.head.id.seqno).units == TON
    assert again.account(LOW, again.head.id.seqno).units == 3
    again.mine(2)
    again.reorg(2, [(sent_by(FAUCET, coin(LOW, 7).message()), 1)])
    other = Simulator(shared_engine(), IDENTITY, path=path)
    assert (other.head, other.account(LOW, other.head.id.seqno).units) == (again.head, 10)


def test_a_test_may_take_final_blocks_back(chain: Simulator) -> None:
    chain.give(LOW, 5)
    kept = chain.mine()
    gone = [chain.give(HIGH, 6), chain.mine(3)][1]
    before = chain.masters[kept + 1 :]
    chain.reorg(3, [(sent_by(FAUCET, coin(HIGH, 9).message()), 1)])
    assert (chain.head.id.seqno, {*before}.isdisjoint(chain.masters)) == (gone, True)
    assert [chain.account(HIGH, seqno).units for seqno in range(kept, kept + 4)] == [0, 0, 9, 9]
    assert (chain.account(LOW, gone).units, ids(walked(chain))) == (5, all_ids(chain))
    with pytest.raises(LookupError):
        chain.reorg(gone + 1)


def test_a_node_may_be_behind_or_have_a_short_history(chain: Simulator) -> None:
    chain.give(HIGH, 5)
    old = chain.mine()
    chain.give(HIGH, 6)
    new = chain.mine()
    (top,) = tops(chain, new)
    behind, short = Reach(behind=1), Reach(first_seqno=new)

    def answered(method: str, reach: Reach, **asked: object) -> Any:
        return answer(chain, method, dict(asked), reach)

    assert answered("getMasterchainInfo", behind)["last"]["seqno"] == old
    assert answered("getAddressInformation", behind, address=HIGH)["balance"] == "5"
    assert len(answered("getTransactions", behind, address=HIGH)) == 1
    for method, asked in (
        ("shards", {"seqno": new}),
        ("getBlockHeader", {"workchain": 0, "shard": top["shard"], "seqno": top["seqno"]}),
        ("getBlockTransactionsExt", {"workchain": 0, "shard": top["shard"], "seqno": top["seqno"]}),
    ):
        with pytest.raises(Fault, match="NOTREADY"):
            answered(method, behind, **asked)
    assert answered("getAddressInformation", short, address=HIGH)["balance"] == "11"
    with pytest.raises(Fault, match="pruned"):
        answered("getAddressInformation", short, address=HIGH, seqno=old)


def test_messages_from_outside_may_be_forgotten(chain: Simulator) -> None:
    wallet = Wallet("hot")
    chain.give(wallet.address, 5 * TON)
    chain.mine()
    ask(chain, "sendBoc", boc=order(wallet, chain, coin(HIGH, 7).message()))
    assert len(chain.forget_waiting()) == 1
    chain.settle()
    assert HIGH not in {each.address for each in walked(chain)}


def test_a_development_chain_is_moved_by_questions(chain: Simulator) -> None:
    ask(chain, "developmentAct", act="coin", arguments={"address": HIGH, "units": 5})
    assert ask(chain, "developmentMine", count=2)["seqno"] == 2
    assert ask(chain, "getAddressInformation", address=HIGH)["balance"] == "5"
    later = chain.now() + YEAR_S
    ask(chain, "developmentAdvance", to_s=later)
    assert chain.head.time >= later
    with pytest.raises(Fault, match="KeyError"):
        ask(chain, "developmentAct", act="nothing", arguments={})


@pytest.mark.parametrize(
    ("method", "asked", "code"),
    [
        ("getBlockHeader", {"workchain": -1, "shard": "0", "seqno": 9}, 500),
        ("getBlockHeader", {"workchain": 0, "shard": str(-(1 << 63)), "seqno": 9}, 500),
        ("shards", {"seqno": -1}, 500),
        ("shards", {}, 422),
        ("getAddressInformation", {"address": "nowhere"}, 422),
        ("sendBoc", {"boc": "te6c"}, 422),
        ("sendBoc", {"boc": boc.write_base64(coin(HIGH, 1).message())}, 422),
        ("getEverything", {}, 404),
    ],
)
def test_questions_without_an_answer_are_refused(
    method: str, asked: dict[str, object], code: int, chain: Simulator
) -> None:
    with pytest.raises(Fault) as caught:
        ask(chain, method, **asked)
    assert caught.value.code == code


def test_blocks_of_the_masterchain_name_their_parents_and_the_chain(chain: Simulator) -> None:
    chain.mine(2)
    info = ask(chain, "getMasterchainInfo")
    assert (info["init"]["root_hash"], info["last"]["seqno"]) == (IDENTITY, 2)
    header = ask(chain, "getBlockHeader", workchain=-1, shard="-9223372036854775808", seqno=2)
    before = ask(chain, "getBlockHeader", workchain=-1, shard="-9223372036854775808", seqno=1)
    assert header["prev_blocks"] == [before["id"]]
    page = ask(chain, "getBlockTransactionsExt", workchain=-1, shard="-9223372036854775808", seqno=2)
    assert (page["transactions"], page["incomplete"]) == ([], False)
    assert ask(chain, "getConfigAll")["config"]["bytes"].startswith("te6c")


def test_it_is_served_over_http(chain: Simulator) -> None:
    chain.give(HIGH, TON)
    chain.mine()
    with Server(chain) as server, urllib3.PoolManager() as pool:
        threading.Thread(target=server.serve_forever, daemon=True).start()

        def post(body: bytes) -> tuple[int, Any]:
            answered = pool.request("POST", f"{server.url}/api/v2/jsonRPC", body=body)
            return answered.status, json.loads(answered.data) if answered.data.startswith(b"{") else None

        question = {"jsonrpc": "2.0", "id": 7, "method": "getAddressInformation", "params": {"address": HIGH}}
        status, document = post(json.dumps(question).encode())
        assert (status, document["ok"], document["id"], document["result"]["balance"]) == (200, True, 7, str(TON))
        status, document = post(json.dumps(question | {"method": "shards", "params": {"seqno": 9}}).encode())
        assert (status, document["ok"], document["id"]) == (500, False, 7)
        assert document["error"] == "LITE_SERVER_NOTREADY: block is not applied"
        for rubbish in (b"rubbish", b"[]", b"{}"):
            assert post(rubbish)[0] == 422
        assert post(b"x" * (BODY_BYTES_MAX + 1))[0] == 413
        server.shutdown()


def test_coin_from_nowhere_is_a_payment(chain: Simulator) -> None:
    chain.give(HIGH, TON)
    chain.mine()
    (transaction,) = walked(chain)
    credit = coin_credit(transaction, [])
    assert credit is not None
    assert (credit.sender, credit.units) == (FAUCET, TON)
