"""Nodes that accept connections and never answer stop no network whose other node does."""

import time
from collections.abc import Iterator

import pytest

from chains.base import ProviderError
from chains.evm.nodes import evm_providers
from chains.net import providers
from chains.net import usage as net_usage
from chains.net.budget import budget
from chains.net.providers import RpcProviders
from chains.net.usage import SILENCE_FORGOTTEN_S, SILENCE_MAX_S, SILENCE_S, Usage
from tests.chains.conftest import CATALOGUE
from tests.peers.json_rpc_node import JsonRpcNode, Raw

SILENT = Raw(b"{}", pause_s=30)
NETWORK = CATALOGUE.networks["ethereum"]


def answering(*, is_silent: bool) -> JsonRpcNode:
    return JsonRpcNode({"eth_chainId": SILENT if is_silent else "0x1", "eth_blockNumber": "0x64"})


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[JsonRpcNode, JsonRpcNode, JsonRpcNode, RpcProviders]]:
    """Two silent nodes, which the operator prefers, and an honest one; heads are compared at each step."""
    monkeypatch.setattr(providers, "HEADS_EVERY_S", 0.0)
    # However slow the machine, no rest ends within a test.
    monkeypatch.setattr(net_usage, "SILENCE_S", 600.0)
    monkeypatch.setattr(net_usage, "SILENCE_MAX_S", 600.0)
    with answering(is_silent=True) as one, answering(is_silent=True) as two, answering(is_silent=False) as honest:
        yield one, two, honest, evm_providers(NETWORK, [one.url, two.url, honest.url], timeout_s=0.5)


def ask(nodes: RpcProviders) -> str:
    return nodes.call("eth_blockNumber", [], str)


def step(nodes: RpcProviders) -> None:
    """Ask for all that a step of the scan does."""
    with budget(seconds=30.0, requests=100):
        assert nodes.head() == 100
        assert ask(nodes) == "0x64"
        assert nodes.compare(lambda rpc: rpc.call("eth_blockNumber", [], str), "0x64") == (1, 0)
        assert nodes.answers(lambda rpc: rpc.call("eth_blockNumber", [], str)) == ["0x64"]


def test_two_silent_nodes_of_three_cost_one_wait_each(
    three: tuple[JsonRpcNode, JsonRpcNode, JsonRpcNode, RpcProviders],
) -> None:
    one, two, _, nodes = three
    for _ in range(5):
        step(nodes)
    assert (one.asked, two.asked) == (["eth_chainId"], ["eth_chainId"])


def test_a_second_reading_waits_for_no_silent_node(
    three: tuple[JsonRpcNode, JsonRpcNode, JsonRpcNode, RpcProviders],
) -> None:
    one, two, _, nodes = three
    step(nodes)
    assert nodes.attempt(lambda rpc: rpc.call("eth_blockNumber", [], str), second=True) == "0x64"
    with pytest.raises(ProviderError, match="no other provider answers"):
        nodes.attempt(lambda rpc: rpc.call("eth_blockNumber", [], str), second=True, but_by=nodes.answered_by)
    assert (one.asked, two.asked) == (["eth_chainId"], ["eth_chainId"])


def test_silent_nodes_leave_time_within_the_first_step(
    three: tuple[JsonRpcNode, JsonRpcNode, JsonRpcNode, RpcProviders],
) -> None:
    one, two, honest, _ = three
    nodes = evm_providers(NETWORK, [one.url, two.url, honest.url], timeout_s=60)
    with budget(seconds=9.0, requests=100):
        assert ask(nodes) == "0x64"


def test_a_silent_node_that_answers_again_is_asked_again(
    three: tuple[JsonRpcNode, JsonRpcNode, JsonRpcNode, RpcProviders],
) -> None:
    one, _, _, nodes = three
    step(nodes)
    one.answers["eth_chainId"] = "0x1"
    nodes._nodes[0].usage._silent_until = 0.0
    nodes.head()
    assert not nodes._nodes[0].usage.is_silent
    nodes._nodes[0].rests_until = 0.0
    one.asked.clear()
    ask(nodes)
    assert one.asked == ["eth_blockNumber"]


def test_where_all_are_silent_the_last_that_answered_is_asked_first(
    three: tuple[JsonRpcNode, JsonRpcNode, JsonRpcNode, RpcProviders],
) -> None:
    one, two, _, nodes = three
    step(nodes)
    nodes._nodes[2].usage.note_silence()
    assert ask(nodes) == "0x64"
    assert (one.asked, two.asked) == (["eth_chainId"], ["eth_chainId"])


def test_each_silence_doubles_the_rest_up_to_a_minute_though_answers_come_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    usage, rests = Usage(), []
    for _ in range(20):
        usage.note_answer()
        usage.note_silence()
        rests.append(usage._silent_until - 100)
    assert rests[:5] == [5, 10, 20, 40, SILENCE_MAX_S]
    assert rests[-1] == SILENCE_MAX_S
    assert usage.is_silent
    usage.note_answer()
    assert not usage.is_silent
    now[0] += SILENCE_FORGOTTEN_S
    usage.note_silence()
    assert usage._silent_until - now[0] == SILENCE_S
