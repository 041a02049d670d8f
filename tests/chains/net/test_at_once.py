"""A question to several nodes is put to all of them at once, in threads that are bounded and end with it."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from chains.base import ProviderError
from chains.evm.nodes import evm_providers
from chains.net import threads
from chains.net.budget import BudgetSpentError, budget
from chains.net.providers import RpcProviders
from tests.chains.conftest import CATALOGUE
from tests.peers.json_rpc_node import JsonRpcNode, Raw

NETWORK = CATALOGUE.networks["ethereum"]
# Ends a test that fails.
WAIT_S = 10.0


class Meeting:
    """Makes answers that each node gives once all nodes were asked: asked in turn, none would answer."""

    def __init__(self, nodes: int) -> None:
        self._barrier = threading.Barrier(nodes)

    def __call__(self, answer: object) -> Callable[..., object]:
        def told(*_: object) -> object:
            try:
                self._barrier.wait(WAIT_S)
            except threading.BrokenBarrierError:
                return Raw(status=500)
            return answer

        return told


@pytest.fixture
def three() -> Iterator[tuple[JsonRpcNode, ...]]:
    with ExitStack() as stack:
        yield tuple(
            stack.enter_context(JsonRpcNode({"eth_chainId": "0x1", "eth_blockNumber": "0x64"})) for _ in range(3)
        )


def of(nodes: tuple[JsonRpcNode, ...]) -> RpcProviders:
    return evm_providers(NETWORK, [node.url for node in nodes], timeout_s=2 * WAIT_S)


def ask(nodes: RpcProviders) -> list[str]:
    return nodes.answers(lambda node: node.call("eth_blockNumber", [], str))


QUESTIONS: dict[str, Callable[[RpcProviders], object]] = {
    "head": lambda nodes: nodes.head(),
    "common head": lambda nodes: nodes.common_head(ask=True),
    "answers": lambda nodes: len(ask(nodes)),
    "everyone": lambda nodes: nodes.everyone(lambda node: node.call("eth_blockNumber", [], str)),
    "compare": lambda nodes: nodes.compare(lambda node: node.call("eth_blockNumber", [], str), "0x64"),
    "apiece": lambda nodes: nodes.apiece(lambda node: node.call("eth_blockNumber", [], str)),
    "identities": lambda nodes: nodes.identities(),
}
ANSWERS = {
    "head": 100,
    "common head": 100,
    "answers": 3,
    "everyone": ["0x64"] * 3,
    "compare": (3, 0),
    "apiece": ["0x64"] * 3,
    "identities": ["1"] * 3,
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_all_nodes_are_asked_before_the_first_has_answered(three: tuple[JsonRpcNode, ...], question: str) -> None:
    meeting = Meeting(3)
    for node in three:
        node.answers["eth_chainId"] = meeting("0x1")
    assert QUESTIONS[question](of(three)) == ANSWERS[question]


def test_answers_stand_in_the_operators_order(three: tuple[JsonRpcNode, ...]) -> None:
    """The first node answers after the others have."""
    told = threading.Semaphore(0)

    def last() -> str:
        for _ in range(2):
            told.acquire(timeout=WAIT_S)
        return "0x1"

    def early(answer: str) -> Callable[[], str]:
        def answered() -> str:
            told.release()
            return answer

        return answered

    for node, answer in zip(three, (last, early("0x2"), early("0x3")), strict=True):
        node.answers["eth_blockNumber"] = answer
    assert ask(of(three)) == ["0x1", "0x2", "0x3"]


def test_a_failure_stands_in_its_node_s_place_and_the_others_are_heard(three: tuple[JsonRpcNode, ...]) -> None:
    three[0].answers["eth_blockNumber"] = Raw(status=500)
    failed, *told = of(three).everyone(lambda node: node.call("eth_blockNumber", [], str))
    assert isinstance(failed, ProviderError)
    assert told == ["0x64", "0x64"]


def test_a_mistake_of_ours_in_another_thread_is_the_caller_s(three: tuple[JsonRpcNode, ...]) -> None:
    caller = threading.current_thread()

    def mistaken(_node: object) -> str:
        if threading.current_thread() is not caller:
            raise LookupError
        return ""

    with pytest.raises(LookupError):
        of(three).everyone(mistaken)


def test_a_spent_budget_ends_a_question_to_all(three: tuple[JsonRpcNode, ...]) -> None:
    nodes = of(three)
    ask(nodes)
    with budget(seconds=WAIT_S, requests=2), pytest.raises(BudgetSpentError):
        ask(nodes)
    assert [node.rests_until for node in nodes._nodes] == [0.0] * 3


# Threads ----------------------------------------------------------------------------------------------------


def running() -> int:
    return threads.lent.running.total()


def ended() -> None:
    for thread in threading.enumerate():
        if thread.name == "node":
            thread.join(WAIT_S)


def test_threads_end_with_their_question(three: tuple[JsonRpcNode, ...]) -> None:
    assert len(ask(of(three))) == 3
    ended()
    assert not [thread for thread in threading.enumerate() if thread.name == "node"]
    assert running() == 0
    assert not threads.lent.running, "no node is held"


def test_a_network_of_one_node_takes_no_thread(three: tuple[JsonRpcNode, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "start", lambda *_: pytest.fail("a thread"))
    assert ask(of(three[:1])) == ["0x64"]


@pytest.mark.parametrize("name", ["THREADS_MAX", "LANE_MAX"])
def test_where_no_thread_is_free_the_caller_asks_itself(
    three: tuple[JsonRpcNode, ...], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(threads, name, 0)
    assert ask(of(three)) == ["0x64"] * 3


def test_where_the_system_has_no_thread_the_caller_asks_itself(
    three: tuple[JsonRpcNode, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: object) -> None:
        raise RuntimeError("can't start new thread")

    nodes = of(three)
    ask(nodes)
    ended()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert nodes.everyone(lambda _node: "0x1") == ["0x1"] * 3
    assert running() == 0


def test_threads_are_bounded_by_lane_and_by_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "THREADS_MAX", 3)
    over = threading.Event()

    def work() -> None:
        over.wait(WAIT_S)

    assert [threads.start("one", work) for _ in range(3)] == [True, True, False]
    assert [threads.start(lane, work) for lane in ("two", "three")] == [True, False]
    over.set()
    ended()
    assert threads.start("three", work)
    ended()


def test_a_forked_process_counts_none_of_its_parents_threads() -> None:
    over = threading.Event()
    for _ in range(2):
        assert threads.start("lane", lambda: over.wait(WAIT_S))
    child = os.fork()
    if not child:
        os._exit(running())
    _, status = os.waitpid(child, 0)
    over.set()
    ended()
    assert os.waitstatus_to_exitcode(status) == 0


def test_no_thread_holds_up_the_end_of_the_process() -> None:
    over = threading.Event()
    threads.start("lane", lambda: over.wait(WAIT_S))
    assert [thread.daemon for thread in threading.enumerate() if thread.name == "node"] == [True]
    over.set()
    ended()
