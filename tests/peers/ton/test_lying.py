"""A provider of the simulated TON chain lies as the tests of the gateway expect it to."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from chains.base import ProviderError
from chains.net.http import RateLimitedError
from chains.ton import boc, transactions
from devstack.ton import jettons
from devstack.ton.blocks import WHOLE, Ran
from devstack.ton.client import Toncenter
from tests.peers.json_rpc_node import Raw
from tests.peers.ton.chain import TON, Ton
from tests.peers.ton.lying import LyingTon, altered

OWNER = "0:" + "a1" * 32


def test_it_hides_cuts_alters_lags_and_prunes() -> None:
    ton = Ton(between=1)
    ton.give(OWNER, TON)
    seqno = ton.mine()
    ton.mine(2)
    with LyingTon(ton.chain) as node:
        client = Toncenter(node.url, timeout_s=5)

        def page() -> list[Any]:
            shard = str(-(1 << 63))
            return list(client.ask("getBlockTransactionsExt", workchain=0, shard=shard, seqno=seqno)["transactions"])

        def brought(shown: Any) -> int:
            return transactions.read(boc.read_base64(shown["data"])).incoming.units

        assert [brought(one) for one in page()] == [TON]
        node.hide(OWNER)
        assert (page(), client.ask("getTransactions", address=OWNER)) == ([], [])
        node.lies.clear()
        node.cut()
        assert page() == []
        node.lies.clear()
        node.alter_amounts(3)
        (changed,) = page()
        assert brought(changed) == 3 * TON
        assert boc.read_base64(changed["data"]).hash == base64.b64decode(changed["transaction_id"]["hash"])
        node.be_honest()
        node.prune(seqno + 1)
        with pytest.raises(ProviderError, match="pruned"):
            client.ask("getAddressInformation", address=OWNER, seqno=seqno)
        node.lag(3)
        assert client.ask("getMasterchainInfo")["last"]["seqno"] == seqno - 1
        with pytest.raises(ProviderError, match="NOTREADY"):
            page()
        node.failure = Raw(status=429)
        with pytest.raises(RateLimitedError):
            page()
        assert node.asked.count("getMasterchainInfo") == 1


def test_it_leaves_a_shard_block_out() -> None:
    ton = Ton(between=3)
    seqno = ton.mine()
    (top,) = ton.ask("shards", seqno=seqno)["shards"]
    with LyingTon(ton.chain) as node:
        node.leave_out(WHOLE, top["seqno"] - 1)
        client = Toncenter(node.url, timeout_s=5)
        header = client.ask("getBlockHeader", workchain=0, shard=top["shard"], seqno=top["seqno"])
        assert [each["seqno"] for each in header["prev_blocks"]] == [top["seqno"] - 2]


def test_it_shows_a_transaction_that_no_other_node_has() -> None:
    ton = Ton(between=1)
    ton.give_tokens(OWNER, 5)
    seqno = ton.mine()
    (true,) = ton.chain.ran[jettons.wallet(OWNER)]
    cell = boc.read_base64(altered({"data": boc.write_base64(true.cell), "transaction_id": {}}, 2)["data"])
    invented = Ran(transactions.read(cell), cell)
    with LyingTon(ton.chain) as node:
        node.invent((WHOLE, seqno), invented)
        client = Toncenter(node.url, timeout_s=5)
        shown = client.ask("getBlockTransactionsExt", workchain=0, shard=str(-(1 << 63)), seqno=seqno)["transactions"]
        assert [boc.read_base64(one["data"]).hash for one in shown] == [true.cell.hash, cell.hash]
        assert len(client.ask("getTransactions", address=jettons.wallet(OWNER))) == 2
