"""Answers of another shape than web3 expects are refused before web3 reads them leniently."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chains.base import ProviderError
from chains.evm.spends.library import ask_contract, calldata, eth, spelled
from chains.net.json_rpc import JsonRpc, NoResultError, RpcError
from tests.chains.conftest import OURS, THEIRS
from tests.peers.json_rpc_node import JsonRpcNode, Refusal

WORD = "0x" + "11" * 32
Question = Callable[[Any], object]
NO_NUMBERS = ("1", "0x", "0x_1", "0x1_0", "-0x1", " 0x1", "0x1\n", "0X1", "0x" + "f" * 65, 1, 1.5, True, [], {})
LOG = {"address": OURS, "topics": [WORD], "data": "0x00"}
RECEIPT = {
    "transactionHash": WORD, "blockHash": WORD, "blockNumber": "0x1", "status": "0x1", "gasUsed": "0x5208",
    "effectiveGasPrice": "0x7", "logs": [LOG], "extra": [1],
}  # fmt: skip


@pytest.fixture
def node() -> Iterator[JsonRpcNode]:
    with JsonRpcNode({}, key="secret-key") as node:
        yield node


def client(node: JsonRpcNode) -> JsonRpc:
    return JsonRpc(node.url, timeout_s=5)


@pytest.mark.parametrize("answer", NO_NUMBERS)
@pytest.mark.parametrize(
    ("method", "question"),
    [
        ("eth_getBalance", lambda chain: chain.get_balance(spelled(OURS))),
        ("eth_getTransactionCount", lambda chain: chain.get_transaction_count(spelled(OURS))),
        ("eth_estimateGas", lambda chain: chain.estimate_gas({"to": spelled(OURS)})),
        ("eth_gasPrice", lambda chain: chain.gas_price),
        ("eth_blockNumber", lambda chain: chain.block_number),
    ],
)
def test_a_number_is_strict_hex_or_refused(node: JsonRpcNode, method: str, question: Question, answer: object) -> None:
    node.answers[method] = answer
    with pytest.raises(ProviderError, match=f"{method}: not the shape"):
        question(eth(client(node)))


@pytest.mark.parametrize(
    "change",
    [
        {"gasUsed": "21000"}, {"status": 1}, {"effectiveGasPrice": None}, {"blockHash": "0x11"},
        {"transactionHash": WORD + "11"}, {"l1Fee": "7"}, {"logs": None}, {"logs": [LOG | {"address": "0x11"}]},
        {"logs": [LOG | {"topics": ["0x11"]}]}, {"logs": [LOG | {"data": "0x1"}]}, {"logs": [LOG | {"removed": 1}]},
    ],
)  # fmt: skip
def test_a_receipt_is_whole_or_refused(node: JsonRpcNode, change: dict[str, Any]) -> None:
    node.answers["eth_getTransactionReceipt"] = RECEIPT | change
    with pytest.raises(ProviderError, match="not the shape"):
        eth(client(node)).get_transaction_receipt(spelled_hash())

    node.answers["eth_getTransactionReceipt"] = RECEIPT
    receipt = eth(client(node)).get_transaction_receipt(spelled_hash())
    assert (receipt["gasUsed"], receipt["logs"][0]["address"].lower(), "extra" in receipt) == (21_000, OURS, False)


def test_null_is_told_from_every_answer_and_a_refusal_keeps_its_words(node: JsonRpcNode) -> None:
    node.answers |= {"eth_getTransactionReceipt": None, "eth_call": Refusal(3, "execution reverted: no")}
    with pytest.raises(NoResultError):
        eth(client(node)).get_transaction_receipt(spelled_hash())
    with pytest.raises(RpcError, match=r"no \(3\)") as refused:
        ask_contract(client(node), THEIRS, calldata("balanceOf(address)", spelled(OURS)))
    assert "secret" not in str(refused.value)


def test_one_question_is_one_request(node: JsonRpcNode) -> None:
    collected: list[object] = []
    node.answers["eth_call"] = lambda *params: collected.append(params) or "0x" + "0" * 63 + "5"
    data = calldata("balanceOf(address)", spelled(OURS))

    assert ask_contract(client(node), THEIRS, data, {"blockHash": WORD}) == 5
    assert node.asked == ["eth_call"]
    assert collected == [({"to": spelled(THEIRS), "data": data}, {"blockHash": WORD})]


def spelled_hash() -> Any:
    return WORD
