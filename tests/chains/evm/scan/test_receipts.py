"""Receipts: one question for many, side by side where a node has no such method, and kept until the block is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from chains.base import Block, ProviderError
from chains.evm.scan import receipts
from chains.evm.scan.receipts import SINGLY_MAX, ReceiptBook
from chains.net.budget import BudgetSpentError, budget
from chains.net.http import RateLimitedError
from chains.net.json_rpc import JsonRpc
from tests.peers.json_rpc_node import JsonRpcNode, Raw, Refusal

HASH = "0x" + "bb" * 32
BLOCK = Block(height=7, hash=HASH, parent_height=6, parent_hash="0x" + "aa" * 32, time=datetime(2026, 1, 1, tzinfo=UTC))
MISSING = Refusal(-32601, "no such method")


def ids(count: int) -> list[str]:
    return [f"0x{number:064x}" for number in range(count)]


def receipt(txid: str, block_hash: str = HASH) -> dict[str, Any]:
    return {"transactionHash": txid, "blockHash": block_hash, "status": "0x1", "logs": []}


def node(whole: Callable[..., object] | object = MISSING, single: Callable[..., object] = receipt) -> JsonRpcNode:
    return JsonRpcNode({"eth_getBlockReceipts": whole, "eth_getTransactionReceipt": single})


def test_many_are_asked_for_at_once() -> None:
    wanted = ids(SINGLY_MAX + 1)
    with node([receipt(txid) for txid in wanted]) as peer:
        by_txid = ReceiptBook().collect(JsonRpc(peer.url, timeout_s=5), BLOCK, wanted)

    assert (list(by_txid), peer.asked) == (wanted, ["eth_getBlockReceipts"])


def test_a_few_are_asked_for_singly() -> None:
    with node() as peer:
        by_txid = ReceiptBook().collect(JsonRpc(peer.url, timeout_s=5), BLOCK, ids(SINGLY_MAX))

    assert len(by_txid) == SINGLY_MAX
    assert peer.asked == ["eth_getTransactionReceipt"] * SINGLY_MAX


@pytest.mark.parametrize(
    "whole",
    [MISSING, None, Raw(b"{"), [receipt(txid, "0x" + "cc" * 32) for txid in ids(9)], [receipt(ids(9)[0])]],
    ids=["refused", "null", "garbage", "another block's", "cut"],
)
def test_receipts_missing_from_the_block_are_asked_for_singly(whole: object) -> None:
    with node(whole) as peer:
        by_txid = ReceiptBook().collect(JsonRpc(peer.url, timeout_s=5), BLOCK, ids(9))

    assert list(by_txid) == ids(9)
    assert all(one.block_hash == HASH for one in by_txid.values())


def test_known_receipts_are_not_asked_for_again_after_an_interrupted_step() -> None:
    book, steps = ReceiptBook(), 0
    with node() as peer:
        rpc = JsonRpc(peer.url, timeout_s=5)
        while True:
            steps += 1
            try:
                with budget(seconds=10, requests=10):
                    by_txid = book.collect(rpc, BLOCK, ids(30))
                break
            except BudgetSpentError:
                assert steps < 6, "nothing is kept"

    assert list(by_txid) == ids(30)
    assert peer.asked.count("eth_getTransactionReceipt") == 30


def test_one_nodes_receipts_do_not_serve_another() -> None:
    book = ReceiptBook()
    with node() as first, node() as second:
        for peer in (first, second):
            book.collect(JsonRpc(peer.url, timeout_s=5), BLOCK, ids(2))

    assert (len(first.asked), len(second.asked)) == (2, 2)


@pytest.mark.parametrize(
    "lie",
    [lambda _txid: receipt("0x" + "ee" * 32), lambda txid: receipt(txid, "0x" + "cc" * 32), lambda _txid: None],
    ids=["of another transaction", "of another block", "none"],
)
def test_a_receipt_of_something_else_is_refused_and_not_kept(lie: Callable[[str], object]) -> None:
    book = ReceiptBook()
    with node(single=lie) as peer:
        rpc = JsonRpc(peer.url, timeout_s=5)
        with pytest.raises(ProviderError):
            book.collect(rpc, BLOCK, ids(1))
        peer.answers["eth_getTransactionReceipt"] = receipt

        assert list(book.collect(rpc, BLOCK, ids(1))) == ids(1)


def test_a_node_that_asks_for_patience_gets_it() -> None:
    with node(Raw(status=429)) as peer, pytest.raises(RateLimitedError):
        ReceiptBook().collect(JsonRpc(peer.url, timeout_s=5), BLOCK, ids(9))
    assert peer.asked == ["eth_getBlockReceipts"]


def test_cached_receipts_are_bounded_and_cover_the_present_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipts, "WEIGHT_KEPT", 3)
    book = ReceiptBook()
    with node() as peer:
        rpc = JsonRpc(peer.url, timeout_s=5)
        for number in range(5):
            block = Block(
                height=number, hash=HASH, parent_height=number - 1, parent_hash=f"0x{number}", time=BLOCK.time
            )
            by_txid = book.collect(rpc, block, ids(5))
    assert len(by_txid) == 5
    with node(single=lambda txid: receipt(txid, f"0x{int(txid, 16) // 2:064x}")) as peer:
        rpc = JsonRpc(peer.url, timeout_s=5)
        for number in range(5):
            block = Block(
                height=number, hash=f"0x{number:064x}", parent_height=number - 1, parent_hash="0x", time=BLOCK.time
            )
            book.collect(rpc, block, ids(10)[2 * number : 2 * number + 2])
    assert sum(map(len, book._kept.values())) <= 3


def test_receipts_are_weighed_by_their_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """One payment may bring tens of thousands of logs of other contracts."""
    monkeypatch.setattr(receipts, "WEIGHT_KEPT", 20)
    log = {"address": "0x", "topics": [], "blockHash": HASH, "transactionHash": HASH, "logIndex": "0x0"}
    book = ReceiptBook()

    def long(txid: str) -> dict[str, Any]:
        return receipt(txid, f"0x{int(txid, 16):064x}") | {"logs": [log | {"data": "0x" + "00" * 128}] * 4}

    with node(single=long) as peer:
        rpc = JsonRpc(peer.url, timeout_s=5)
        for txid in ids(5):
            book.collect(rpc, replace(BLOCK, hash=txid), [txid])
    assert [block_hash for _, block_hash in book._kept] == ids(5)[-2:]


def test_receipts_of_a_block_are_kept_until_it_is_read_to_its_end() -> None:
    book = ReceiptBook()
    with node() as peer:
        rpc = JsonRpc(peer.url, timeout_s=5)
        book.collect(rpc, BLOCK, ids(2))
        book.drop("0x" + "cc" * 32)
        assert len(book._kept[rpc, HASH]) == 2
        book.drop(HASH)
    assert (dict(book._kept), book._weights.total()) == ({}, 0)
