"""One node with a path for each query: every answer that is malformed or too late is a ProviderError."""

import msgspec
import pytest

from chains.base import ProviderError
from chains.net.budget import BudgetSpentError, budget
from chains.net.http import RateLimitedError
from chains.net.rest import RestError, RestNode
from tests.chains.net.rest_peer import RestPeer
from tests.peers.json_rpc_node import Answer, Raw


class HeadAnswer(msgspec.Struct):
    """An answer of which every field may be left out."""

    height: int = 0


def ask(answer: Answer) -> HeadAnswer:
    with RestPeer({"wallet/head": answer}) as peer:
        return RestNode(peer.url, timeout_s=5).ask("wallet/head", {}, HeadAnswer)


def test_an_answer_is_an_answer() -> None:
    assert ask({"height": 7, "other": 1}).height == 7


def test_a_question_arrives_below_the_nodes_own_path_with_its_query_and_its_header() -> None:
    with RestPeer({"wallet/echo": lambda question: question}) as peer:
        node = RestNode(peer.url + "?net=main#X-Api-Key=abc", timeout_s=5)

        assert node.ask("wallet/echo", {"height": 7}, HeadAnswer).height == 7
        assert peer.path == "/v3/secret-key/wallet/echo?net=main"
        assert peer.headers["X-Api-Key"] == "abc"


@pytest.mark.parametrize("field", ["Error", "error"])
def test_a_refusal_is_no_answer_though_every_field_may_be_left_out(field: str) -> None:
    with pytest.raises(RestError, match="wallet/head: no such thing"):
        ask({field: "no such thing"})


def test_a_refusal_does_not_repeat_the_nodes_key() -> None:
    with RestPeer({"wallet/head": {"Error": "no such key: bluebicycle"}}) as peer:
        node = RestNode(peer.url + "#X-Api-Key=bluebicycle", timeout_s=5)
        with pytest.raises(RestError) as caught:
            node.ask("wallet/head", {}, HeadAnswer)

    assert caught.value.text == "no such key: ***"


@pytest.mark.parametrize(
    "answer",
    [
        Raw(b"<html>"),
        Raw(b""),
        Raw(b"[" * 100_000),
        Raw(b'{"height": "7"}'),
        Raw(b'{"height": "\xff"}'),
        Raw(b"{}", status=503),
        [],
        None,
    ],
    ids=repr,
)
def test_rubbish_is_no_answer(answer: Answer) -> None:
    with pytest.raises(ProviderError) as caught:
        ask(answer)
    assert "secret-key" not in str(caught.value)


def test_a_node_that_asks_for_patience_is_given_it() -> None:
    with pytest.raises(RateLimitedError) as caught:
        ask(Raw(b"", status=429, retry_after="7"))
    assert caught.value.retry_after_s == 7


def test_questions_are_paid_for_of_the_steps_budget() -> None:
    with RestPeer({"wallet/head": {}}) as peer, budget(seconds=5, requests=2):
        node = RestNode(peer.url, timeout_s=5)
        node.ask("wallet/head", {}, HeadAnswer)
        node.ask("wallet/head", {}, HeadAnswer)
        with pytest.raises(BudgetSpentError):
            node.ask("wallet/head", {}, HeadAnswer)
