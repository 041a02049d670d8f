"""Several nodes of one network: the preferred one first, the others when it fails, never one of another chain."""

from collections.abc import Iterator

import pytest
import structlog

from chains.base import ProviderError, WrongChainError
from chains.providers import Providers
from cli.embedded.ports import free_port
from tests.chains.conftest import CATALOGUE
from tests.peers.json_rpc_node import JsonRpcNode, Raw, Refusal

ETHEREUM = CATALOGUE.networks["ethereum"]


def answering(result: object, *, chain_id: str = "0x1") -> JsonRpcNode:
    return JsonRpcNode({"eth_chainId": chain_id, "eth_blockNumber": result})


def providers(*urls: str) -> Providers:
    return Providers(ETHEREUM, urls, timeout_s=1.0)


def head(nodes: Providers) -> str:
    return nodes.call("eth_blockNumber", [], str)


@pytest.fixture
def second() -> Iterator[JsonRpcNode]:
    with answering("0x2") as node:
        yield node


def test_the_preferred_node_is_asked(second: JsonRpcNode) -> None:
    with answering("0x1") as first:
        assert head(providers(first.url, second.url)) == "0x1"
    assert second.asked == []


@pytest.mark.parametrize(
    "failure",
    [Raw(b"<html>"), Raw(status=429), Raw(b"{}", pause_s=1.5), Refusal(-32005, "limit exceeded"), 7],
    ids=["html", "429", "silence", "refusal", "wrong type"],
)
def test_the_next_node_answers_for_one_that_fails(second: JsonRpcNode, failure: object) -> None:
    with answering(failure) as first:
        assert head(providers(first.url, second.url)) == "0x2"


def test_a_node_that_is_down_is_passed_over(second: JsonRpcNode) -> None:
    assert head(providers(f"http://127.0.0.1:{free_port()}", second.url)) == "0x2"


def test_a_node_that_failed_is_asked_last_for_a_while(second: JsonRpcNode) -> None:
    with answering(Raw(status=502)) as first:
        nodes = providers(first.url, second.url)
        head(nodes)
        asked = len(first.asked)

        assert head(nodes) == "0x2"
        assert len(first.asked) == asked


def test_a_node_that_only_refused_keeps_its_place(second: JsonRpcNode) -> None:
    with answering(Refusal(-32000, "unknown block")) as first:
        nodes = providers(first.url, second.url)
        head(nodes)
        first.answers["eth_blockNumber"] = "0x1"

        assert head(nodes) == "0x1"


def test_resting_nodes_are_asked_when_no_other_is_left() -> None:
    with answering(Raw(status=502)) as only:
        nodes = providers(only.url)
        with pytest.raises(ProviderError, match="502"):
            head(nodes)
        only.answers["eth_blockNumber"] = "0x1"

        assert head(nodes) == "0x1"


def test_null_is_an_answer_and_asks_nobody_else(second: JsonRpcNode) -> None:
    with answering(None) as first:
        assert providers(first.url, second.url).call_or_none("eth_blockNumber", [], str) is None
    assert second.asked == []


def test_a_node_of_another_chain_is_refused() -> None:
    with answering("0x1", chain_id="0x38") as wrong, pytest.raises(WrongChainError, match="chain 56"):
        head(providers(wrong.url))
    assert wrong.asked == ["eth_chainId"]


def test_a_node_of_another_chain_is_passed_over(second: JsonRpcNode) -> None:
    with answering("0x1", chain_id="0x38") as wrong:
        assert head(providers(wrong.url, second.url)) == "0x2"


def test_a_node_names_its_chain_once() -> None:
    with answering("0x1") as node:
        nodes = providers(node.url)
        head(nodes)
        head(nodes)

        assert node.asked == ["eth_chainId", "eth_blockNumber", "eth_blockNumber"]


def test_a_node_that_was_lost_names_its_chain_again() -> None:
    with answering("0x1") as node:
        nodes = providers(node.url)
        head(nodes)
        node.answers["eth_blockNumber"] = Raw(status=502)
        with pytest.raises(ProviderError):
            head(nodes)
        node.answers |= {"eth_blockNumber": "0x1", "eth_chainId": "0x38"}

        with pytest.raises(WrongChainError):
            head(nodes)


def test_a_network_without_nodes_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="no provider"):
        providers()


def test_a_failure_is_logged_without_the_nodes_address() -> None:
    with answering(Raw(status=502)) as node, structlog.testing.capture_logs() as logs, pytest.raises(ProviderError):
        head(providers(node.url))

    assert [entry["event"] for entry in logs] == ["provider_failed"]
    assert "secret-key" not in repr(logs)
