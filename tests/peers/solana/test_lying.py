"""A provider of the simulated chain lies as the tests of the gateway expect it to."""

from __future__ import annotations

from typing import Any

import pytest

from chains.net.http import RateLimitedError
from chains.net.json_rpc import JsonRpc, RpcError
from devstack.solana.blocks import Included
from devstack.solana.buyer import new_address
from devstack.solana.transactions import read_transaction
from tests.peers.json_rpc_node import Raw
from tests.peers.solana.chain import BUYER, SOL, Solana
from tests.peers.solana.forwarder import FORWARDER, forwarded
from tests.peers.solana.lying import LyingSolana

ASKED = {"transactionDetails": "accounts", "maxSupportedTransactionVersion": 255, "rewards": False}


def names(block: Any) -> list[str]:
    return [key["pubkey"] for one in block["transactions"] for key in one["transaction"]["accountKeys"]]


def paid(block: Any, address: str) -> int:
    (one,) = block["transactions"]
    place = names(block).index(address)
    return int(one["meta"]["postBalances"][place]) - int(one["meta"]["preBalances"][place])


def test_it_hides_alters_lags_prunes_and_loses() -> None:
    solana, to = Solana(), new_address()
    signature = solana.send(solana.transfer(to, SOL))
    slot = solana.mine()
    solana.mine(2)
    with LyingSolana(solana.chain) as node:
        rpc = JsonRpc(node.url, timeout_s=5)

        def block() -> Any:
            return rpc.call("getBlock", [slot, ASKED], dict[str, Any])

        def code() -> int:
            with pytest.raises(RpcError) as caught:
                block()
            return caught.value.code

        assert paid(block(), to) == SOL
        node.hide(to)
        assert block()["transactions"] == []
        assert rpc.call_or_none("getTransaction", [signature, ASKED], dict[str, Any]) is None
        assert rpc.call("getSignatureStatuses", [[signature]], dict[str, Any])["value"] == [None]
        assert rpc.call("getSignaturesForAddress", [to], list[Any]) == []
        node.lies.clear()
        node.alter_amounts(3)
        assert paid(block(), to) == 3 * SOL
        assert paid(block(), BUYER.address) == -3 * SOL - 5_000
        node.lies.clear()
        node.lose(slot)
        assert code() == -32007
        assert rpc.call("getBlocks", [slot, slot + 1], list[int]) == [slot + 1]
        for refusal in (-32001, -32004, -32007, -32009):
            node.prune(slot + 1, refusal)
            assert code() == refusal
        node.prune(0)
        node.lag(2)
        assert rpc.call("getSlot", [], int) == slot - 1
        assert code() == -32004
        assert (
            rpc.call("getSignatureStatuses", [[signature]], dict[str, Any])["value"][0]["confirmationStatus"]
            == "processed"
        )
        node.failure = Raw(status=429)
        with pytest.raises(RateLimitedError):
            block()


def test_it_shows_a_transaction_that_no_other_node_has() -> None:
    solana, to = Solana(), new_address()
    solana.send(solana.transfer(to, SOL))
    slot = solana.settle() - 1
    (true,) = solana.block(slot)["transactions"]
    signed = read_transaction(solana.transfer(to, 2 * SOL))
    outcome, _ = solana.chain.engine.simulate(signed, checks_signatures=True)
    invented = Included(signed=signed, outcome=outcome)
    with LyingSolana(solana.chain) as node:
        rpc = JsonRpc(node.url, timeout_s=5)
        node.invent(slot, invented)

        block = rpc.call("getBlock", [slot, ASKED], dict[str, Any])
        assert block["transactions"][0] == true
        assert paid(block | {"transactions": block["transactions"][1:]}, to) == 2 * SOL
        (status,) = rpc.call("getSignatureStatuses", [[signed.signature]], dict[str, Any])["value"]
        assert status["slot"] == slot
        assert rpc.call("getTransaction", [signed.signature, {"encoding": "json"}], dict[str, Any])["slot"] == slot
        node.be_honest()
        assert rpc.call("getBlock", [slot, ASKED], dict[str, Any])["transactions"] == [true]


def test_a_program_passes_a_payment_on_and_may_undo_it() -> None:
    solana, to = Solana(), new_address()
    make, move = solana.token_calls(to, 7)
    signature = solana.send(solana.signed([make, forwarded(move), forwarded(BUYER.coin(to, SOL))]))
    undone = solana.send(solana.signed([forwarded(BUYER.coin(to, SOL), fails=True)]), skipPreflight=True)
    solana.settle()

    one = solana.included(signature)
    programs = [
        one["transaction"]["message"]["accountKeys"][call["programIdIndex"]]
        for call in one["transaction"]["message"]["instructions"]
    ]
    assert programs[1:] == [str(FORWARDER)] * 2
    assert [inner["index"] for inner in one["meta"]["innerInstructions"]] == [0, 1, 2]
    assert solana.included(undone)["meta"]["err"] == {"InstructionError": [0, {"Custom": 1}]}
    assert (solana.balance(to), solana.token_balance(to)) == (SOL, 7)
