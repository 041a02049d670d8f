"""Several nodes of one network: the preferred one first, the others when it fails, never one of another chain."""

import base64
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from chains.base import ContradictionError, ProviderError, WrongChainError
from chains.evm.nodes import evm_providers
from chains.net import providers as net_providers
from chains.net.budget import BudgetSpentError, budget, charge
from chains.net.http import RateLimitedError, _patience_s
from chains.net.json_rpc import JsonRpc
from chains.net.node import CONTRADICTION_S
from chains.net.node import MEASURED_S as HEAD_KEPT_S
from chains.net.providers import STUCK_S, RpcProviders
from chains.net.usage import MEASURED_S, Kind, Usage
from core.logs import counters
from devstack.supervise.ports import free_port
from tests.chains.conftest import CATALOGUE
from tests.peers.json_rpc_node import JsonRpcNode, Raw, Refusal

ETHEREUM = CATALOGUE.networks["ethereum"]


def answering(result: object, *, chain_id: str = "0x1") -> JsonRpcNode:
    return JsonRpcNode({"eth_chainId": chain_id, "eth_blockNumber": result})


def providers(*urls: str) -> RpcProviders:
    return evm_providers(ETHEREUM, urls, timeout_s=1.0)


def paused(seconds: float) -> Callable[[], str]:
    """Return an answer that comes after a pause."""

    def answer() -> str:
        time.sleep(seconds)
        return "0x1"

    return answer


def head(nodes: RpcProviders) -> str:
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


@pytest.mark.parametrize("second_reading", [False, True])
def test_questions_go_round_all_nodes(second: JsonRpcNode, *, second_reading: bool) -> None:
    with answering("0x1") as first, answering("0x3") as third:
        trio = providers(first.url, second.url, third.url)
        answers, last = [], ""
        for _ in range(4):
            answers.append(
                trio.attempt(lambda rpc: rpc.call("eth_blockNumber", [], str), second=second_reading, last=last)
            )
            last = trio.answered_by
    assert answers == (["0x2", "0x3", "0x2", "0x3"] if second_reading else ["0x1", "0x2", "0x3", "0x1"])


def test_the_answering_node_is_known_and_another_can_be_asked(second: JsonRpcNode) -> None:
    with answering("0x1") as first:
        both = providers(first.url, second.url)
        assert both.answered_by == ""
        assert head(both) == "0x1"
        mark = both.answered_by
        assert both.attempt(lambda rpc: rpc.call("eth_blockNumber", [], str), but_by=mark) == "0x2"
        assert both.answered_by not in {"", mark}

        assert both.attempt(lambda rpc: rpc.call("eth_blockNumber", [], str), last=mark) == "0x2"

        second.answers["eth_blockNumber"] = Raw(status=500)
        assert both.attempt(lambda rpc: rpc.call("eth_blockNumber", [], str), last=mark) == "0x1"
        with pytest.raises(ProviderError):
            both.attempt(lambda rpc: rpc.call("eth_blockNumber", [], str), but_by=mark)
        assert both.answered_by == ""

        alone = providers(first.url)
        assert alone.attempt(lambda rpc: rpc.call("eth_blockNumber", [], str), but_by=mark) == "0x1"


def test_a_node_that_is_down_is_passed_over(second: JsonRpcNode) -> None:
    assert head(providers(f"http://127.0.0.1:{free_port()}", second.url)) == "0x2"


def test_a_node_that_failed_is_asked_last_for_a_while(second: JsonRpcNode) -> None:
    with answering(Raw(status=502)) as first:
        nodes = providers(first.url, second.url)
        head(nodes)
        asked = len(first.asked)

        assert head(nodes) == "0x2"
        assert len(first.asked) == asked


def test_a_node_that_refuses_one_method_by_its_status_keeps_its_place(second: JsonRpcNode) -> None:
    with answering(Raw(status=403)) as first:
        nodes = providers(first.url, second.url)
        assert [head(nodes), head(nodes)] == ["0x2", "0x2"]
        assert first.asked.count("eth_blockNumber") == 2
        first.answers["eth_blockNumber"] = "0x1"
        assert head(nodes) == "0x1"


def test_a_node_that_refuses_every_method_by_its_status_rests(second: JsonRpcNode) -> None:
    with answering("0x1") as first:
        nodes = providers(first.url, second.url)
        head(nodes)
        first.answers |= dict.fromkeys(first.answers, Raw(status=403))
        assert [head(nodes) for _ in range(3)] == ["0x2"] * 3
        # Once for the method, once for the chain that it serves.
        assert first.asked[2:] == ["eth_blockNumber", "eth_chainId"]


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


def test_null_is_an_answer_and_asks_no_other_node(second: JsonRpcNode) -> None:
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


# Health -----------------------------------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def _by_hand(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


def preferred(nodes: RpcProviders, kind: Kind = Kind.SMALL) -> int:
    """Return the number of the node that answers a question of a kind."""
    return nodes._ranked(kind)[0].number


def test_each_failure_doubles_the_rest_and_success_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(Raw(status=502)) as first, answering("0x2") as second:
        nodes = providers(first.url, second.url)
        sick = nodes._nodes[0]
        clock, rests = _by_hand(monkeypatch), []
        for _ in range(12):
            with pytest.raises(ProviderError):
                sick.ask(lambda rpc: rpc.call("eth_blockNumber", [], str))
            rests.append(round(sick.rests_until - clock.now))
        first.answers["eth_blockNumber"] = "0x1"
        sick.ask(lambda rpc: rpc.call("eth_blockNumber", [], str))

        assert rests == [5, 10, 20, 40, 80, 160, 300, 300, 300, 300, 300, 300]
        assert sick._failures == 0


def test_a_node_behind_the_others_is_not_preferred() -> None:
    with answering("0x10") as late, answering("0x64") as current:
        nodes = providers(late.url, current.url)
        assert nodes.head() == 100
        assert preferred(nodes) == 1

        late.answers["eth_blockNumber"] = "0x64"
        nodes._looked_at = float("-inf")
        nodes.head()
        assert preferred(nodes) == 0


def test_a_block_or_two_behind_is_not_behind() -> None:
    with answering("0x62") as late, answering("0x64") as current:
        assert providers(late.url, current.url).head() == 98


def test_an_invented_head_of_one_of_three_is_not_followed() -> None:
    with answering("0x63") as first, answering("0x64") as second, answering("0xffffff") as boaster:
        nodes = providers(first.url, second.url, boaster.url)
        assert nodes.head() == 99
        assert preferred(nodes) == 0


def test_a_node_whose_head_went_back_is_not_preferred_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering("0x64") as first, answering("0x64") as second:
        nodes = providers(first.url, second.url)
        nodes.head()
        first.answers["eth_blockNumber"], second.answers["eth_blockNumber"] = "0x50", "0x50"
        second.answers["eth_blockNumber"] = "0x64"
        nodes._nodes[0].head = 100
        nodes._nodes[0].ask_head(2)
        first.answers["eth_blockNumber"] = "0x64"
        nodes._nodes[0].ask_head(2)
        assert preferred(nodes) == 1

        clock = _by_hand(monkeypatch)
        clock.now = nodes._nodes[0].unsteady_until + 1
        assert preferred(nodes) == 0


def fetch(nodes: RpcProviders, **how: Any) -> str:
    """Ask for a block."""
    return nodes.attempt(lambda rpc: rpc.call("eth_getBlock", [], str), kind=Kind.BLOCKS, **how)


def test_a_node_that_is_slow_at_blocks_is_asked_last_for_blocks_alone() -> None:
    with answering("0x64") as slow, answering("0x64") as fast:
        slow.answers["eth_getBlock"], fast.answers["eth_getBlock"] = paused(0.4), "0x1"
        nodes = evm_providers(ETHEREUM, [slow.url, fast.url], timeout_s=5.0)
        nodes.head()
        fetch(nodes)
        assert preferred(nodes, Kind.BLOCKS) == 0, "nothing is known of the other"

        fetch(nodes, second=True)
        assert preferred(nodes, Kind.BLOCKS) == 1
        assert preferred(nodes, Kind.HEAD) == preferred(nodes, Kind.SMALL) == 0
        slow.asked.clear()
        fetch(nodes)
        assert slow.asked == []


def test_methods_are_not_compared_with_each_other() -> None:
    slow, fast = Usage(), Usage()
    slow.note(Kind.BLOCKS, "logs", 3.0)
    fast.note(Kind.BLOCKS, "header", 0.01)
    fast.note(Kind.SMALL, "logs", 0.01)
    assert not slow.is_slow(Kind.BLOCKS, [fast])
    fast.note(Kind.BLOCKS, "logs", 0.01)
    assert slow.is_slow(Kind.BLOCKS, [fast])
    assert not fast.is_slow(Kind.BLOCKS, [slow])


def test_a_measure_of_long_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, slow, fast = _by_hand(monkeypatch), Usage(), Usage()
    slow.note(Kind.HEAD, "head", 3.0)
    clock.now += MEASURED_S + 1
    fast.note(Kind.HEAD, "head", 0.01)
    assert not slow.is_slow(Kind.HEAD, [fast])


def test_an_immediate_failure_makes_no_node_slow() -> None:
    with answering(Raw(status=502)) as broken, answering("0x2") as honest:
        nodes = providers(broken.url, honest.url)
        head(nodes)
        assert "eth_blockNumber" not in nodes._nodes[0].usage.latencies(Kind.SMALL)
        assert "eth_blockNumber" in nodes._nodes[1].usage.latencies(Kind.SMALL)


def test_patience_is_given_as_long_as_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(Raw(status=429, retry_after="30")) as only:
        nodes = providers(only.url)
        with pytest.raises(RateLimitedError):
            head(nodes)
        only.answers["eth_blockNumber"] = "0x1"
        asked = len(only.asked)
        with pytest.raises(RateLimitedError, match=r"again in (29|30) s"):
            head(nodes)
        assert len(only.asked) == asked

        clock = _by_hand(monkeypatch)
        clock.now = nodes._nodes[0].barred_until + 1
        assert head(nodes) == "0x1"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        ("0", 1.0),
        ("100000", 120.0),
        (None, 5.0),
        ("soon", 5.0),
        ("-3", 5.0),
        ("٣", 5.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 1.0),
        ("Wed, 21 Oct 2055 07:28:00 GMT", 120.0),
    ],
)
def test_any_retry_after_is_bounded(text: str | None, seconds: float) -> None:
    assert _patience_s(text) == seconds


def test_a_wrong_chain_is_asked_for_nothing_but_its_number_until_it_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering("0x1", chain_id="0x38") as node:
        nodes = providers(node.url)
        for _ in range(3):
            with pytest.raises(WrongChainError):
                head(nodes)
        assert node.asked == ["eth_chainId"]

        clock = _by_hand(monkeypatch)
        clock.now = nodes._nodes[0]._refused_until + 1
        with pytest.raises(WrongChainError):
            head(nodes)
        node.answers["eth_chainId"] = "0x1"
        clock.now = nodes._nodes[0]._refused_until + 1
        assert head(nodes) == "0x1"


def test_a_right_chain_is_verified_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering("0x1") as node:
        nodes = providers(node.url)
        head(nodes)
        node.answers["eth_chainId"] = "0x38"
        later = time.monotonic() + 601
        _by_hand(monkeypatch).now = later
        with pytest.raises(WrongChainError):
            head(nodes)


def test_the_same_address_twice_is_one_provider() -> None:
    assert providers("http://127.0.0.1:1/a", "http://127.0.0.1:1/a/", "http://127.0.0.1:1/b").count == 2


def test_the_same_address_with_another_key_is_one_provider() -> None:
    with answering("0x1") as node:
        first, second = (node.url.replace("://", f"://{user}@") for user in ("first", "second"))
        three = providers(first, f"{second}/", f"{node.url}#X-Api-Key=third")

        assert three.count == 1
        assert head(three) == "0x1"
        assert node.headers["Authorization"] == "Basic " + base64.b64encode(b"first:").decode()
        assert "X-Api-Key" not in node.headers


def test_a_minority_rests_and_a_tie_blames_no_node() -> None:
    with answering("0x1") as first, answering("0x2") as second, answering("0x2") as third:
        three = providers(first.url, second.url, third.url)
        assert three.compare(lambda rpc: rpc.call("eth_blockNumber", [], str), "0x2") == (2, 1)
        assert preferred(three) == 1
        assert three._nodes[0].rests_until - time.monotonic() > CONTRADICTION_S - 5, "longer than a step waits"
        two = providers(first.url, second.url)
        assert two.compare(lambda rpc: rpc.call("eth_blockNumber", [], str), "0x2") == (1, 1)
        assert [node.rests_until for node in two._nodes] == [0.0, 0.0]


def test_if_each_node_has_another_block_no_majority_exists() -> None:
    """The first has the expected block, which may be a replaced one: the others are no liars, and no majority."""
    with answering("0x1") as first, answering("0x2") as second, answering("0x3") as third:
        three = providers(first.url, second.url, third.url)
        assert three.compare(lambda rpc: rpc.call("eth_blockNumber", [], str), "0x1") == (1, 1)
        assert [node.rests_until for node in three._nodes] == [0.0, 0.0, 0.0]


def test_who_makes_its_head_up_silences_nobody_but_who_is_stuck_has_no_voice() -> None:
    with answering("0x64") as honest, answering(hex(10**9)) as boaster:
        nodes = providers(honest.url, boaster.url)

        def compared(expected: str = "0x64") -> tuple[int, int]:
            return nodes.compare(lambda rpc: rpc.call("eth_blockNumber", [], str), expected)

        for _ in range(2):
            nodes._looked_at = float("-inf")
            nodes.head()
        assert compared() == (1, 1)

        nodes._nodes[0]._head_since -= STUCK_S
        assert compared() == (0, 1)
        honest.answers["eth_blockNumber"] = "0x65"
        nodes._looked_at = float("-inf")
        nodes.head()
        assert compared("0x65") == (1, 1), "it moves again"


def test_a_node_that_contradicts_itself_rests_and_the_next_is_asked() -> None:
    def strict(rpc: JsonRpc) -> str:
        header = rpc.call("eth_blockNumber", [], str)
        if header == "0x1":
            raise ContradictionError("it says two things")
        return header

    with answering("0x1") as first, answering("0x2") as second, structlog.testing.capture_logs() as logs:
        nodes = providers(first.url, second.url)
        assert nodes.attempt(strict) == "0x2"
        assert preferred(nodes) == 1
        assert nodes._nodes[0].rests_until - time.monotonic() > CONTRADICTION_S - 5
    (header,) = logs
    assert (header["event"], header["network"], header["provider"]) == ("provider.contradicted", "ethereum", 1)


def test_a_second_reading_asks_the_usual_node_last(second: JsonRpcNode) -> None:
    with answering("0x1") as first:
        nodes = providers(first.url, second.url)
        assert nodes.attempt(lambda rpc: rpc.call("eth_blockNumber", [], str), second=True) == "0x2"


# Budgets ----------------------------------------------------------------------------------------------------


def test_a_budget_ends_the_questions_and_blames_no_node() -> None:
    with answering("0x1") as node:
        nodes = providers(node.url)
        with budget(seconds=10, requests=3):
            head(nodes)
            head(nodes)
            with pytest.raises(BudgetSpentError):
                head(nodes)
        assert len(node.asked) == 3
        assert nodes._nodes[0].rests_until == 0
        assert head(nodes) == "0x1"


def test_a_budget_cuts_a_slow_answer_short_and_blames_no_node() -> None:
    with answering(Raw(b"{}", pause_s=60)) as node:
        nodes = evm_providers(ETHEREUM, [node.url], timeout_s=60)
        began = time.monotonic()
        with budget(seconds=0.3, requests=100), pytest.raises(BudgetSpentError):
            head(nodes)
        assert time.monotonic() - began < 30
        assert nodes._nodes[0].rests_until == 0


def keep_asking(question: Callable[[], str]) -> None:
    while True:
        question()


def test_a_step_whose_time_one_slow_node_used_up_counts_against_it(second: JsonRpcNode) -> None:
    with answering("0x1") as first:
        first.answers["eth_getBlock"] = paused(0.35)
        nodes = evm_providers(ETHEREUM, [first.url, second.url], timeout_s=60)
        with budget(seconds=0.8, requests=100), pytest.raises(BudgetSpentError):
            keep_asking(lambda: fetch(nodes))
        assert preferred(nodes, Kind.BLOCKS) == 1
        assert nodes._nodes[0].rests_until == 0


def test_many_quick_questions_are_no_overrun(second: JsonRpcNode) -> None:
    with answering("0x1") as first:
        nodes = providers(first.url, second.url)
        with budget(seconds=0.5, requests=100_000), pytest.raises(BudgetSpentError):
            keep_asking(lambda: head(nodes))
        assert preferred(nodes) == 0


def test_a_step_that_had_asked_enough_is_no_overrun() -> None:
    usage = Usage()
    with budget(seconds=60, requests=1):
        charge(usage, 50)
    assert not usage.has_overrun
    with budget(seconds=0.0, requests=1):
        charge(usage, 50)
    assert usage.has_overrun


def test_a_network_without_nodes_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="no provider"):
        providers()


def test_a_failure_is_logged_without_the_nodes_address(monkeypatch: pytest.MonkeyPatch) -> None:
    # The module's own may be bound already to what a command line of this process has configured.
    monkeypatch.setattr(net_providers, "log", structlog.get_logger())
    with answering(Raw(status=502)) as node, structlog.testing.capture_logs() as logs, pytest.raises(ProviderError):
        head(providers(node.url))

    assert [(entry["event"], entry["provider"], entry["call"]) for entry in logs] == [
        ("provider.failed", 1, "eth_blockNumber")
    ]
    assert "secret-key" not in repr(logs)


def test_every_node_says_which_chain_it_serves_in_the_operators_order() -> None:
    down = f"http://127.0.0.1:{free_port()}"
    with answering("0x1", chain_id="0x38") as wrong, answering("0x1") as right:
        nodes = providers(wrong.url, down, right.url)
        head(nodes)
        identities = nodes.identities()

    assert [identities[0], identities[2]] == ["56", "1"]
    assert isinstance(identities[1], ProviderError)


def test_a_query_to_each_node_is_answered_in_the_operators_order() -> None:
    with answering("0x1", chain_id="0x38") as wrong, answering("0x2") as right, answering(Raw(status=429)) as barred:
        nodes = providers(wrong.url, barred.url, right.url)
        head(nodes)
        answers = nodes.apiece(lambda rpc: rpc.call("eth_blockNumber", [], str))

    assert isinstance(answers[0], WrongChainError)
    assert isinstance(answers[1], RateLimitedError)
    assert answers[2] == "0x2"


def test_nodes_that_named_their_head_within_a_minute_are_counted(
    second: JsonRpcNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = providers(f"http://127.0.0.1:{free_port()}", second.url)
    assert nodes.answering == 0
    nodes.head()
    assert (nodes.answering, nodes.count) == (1, 2)

    later = time.monotonic() + HEAD_KEPT_S + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert nodes.answering == 0


@pytest.mark.parametrize(
    ("failure", "failures"),
    [("0x1", 0), (Refusal(-32602, "no"), 0), (Raw(status=502), 1), (Raw(status=429), 1), (7, 1)],
    ids=["answer", "refusal", "502", "429", "wrong type"],
)
def test_requests_and_failures_are_counted_by_provider(second: JsonRpcNode, failure: object, failures: int) -> None:
    with answering(failure) as first, contextlib.suppress(ProviderError):
        head(providers(first.url, second.url))

    counted = {(name, labels): numbers[0] for (name, labels), numbers in counters.snapshot().items()}
    assert counted["sluice_provider_requests", ("ethereum", "1")] == len(first.asked)
    assert counted.get(("sluice_provider_requests", ("ethereum", "2")), 0) == len(second.asked)
    assert counted.get(("sluice_provider_failures", ("ethereum", "1")), 0) == failures
    assert ("sluice_provider_failures", ("ethereum", "2")) not in counted


def test_a_contradiction_counts_as_a_failure(second: JsonRpcNode) -> None:
    def contradict(_rpc: object) -> str:
        raise ContradictionError("ethereum: two answers")

    with pytest.raises(ContradictionError):
        providers(second.url).attempt(contradict)

    assert counters.snapshot()["sluice_provider_failures", ("ethereum", "1")] == [1]
