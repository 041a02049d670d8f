"""A question to several nodes is put to all of them at once, in threads that are bounded and end with it."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from chains.base import ProviderError
from chains.evm.nodes import evm_providers
from chains.net import at_once, threads
from chains.net import budget as net_budget
from chains.net.at_once import majority
from chains.net.budget import BudgetSpentError, budget
from chains.net.json_rpc import JsonRpc
from chains.net.node import CONTRADICTION_S
from chains.net.providers import RpcProviders
from chains.net.usage import Kind
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
        def reply(*_: object) -> object:
            try:
                self._barrier.wait(WAIT_S)
            except threading.BrokenBarrierError:
                return Raw(status=500)
            return answer

        return reply


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


def test_answers_are_in_the_operators_order(three: tuple[JsonRpcNode, ...]) -> None:
    """The first node answers after the others have."""
    semaphore = threading.Semaphore(0)

    def last() -> str:
        for _ in range(2):
            semaphore.acquire(timeout=WAIT_S)
        return "0x1"

    def early(answer: str) -> Callable[[], str]:
        def answered() -> str:
            semaphore.release()
            return answer

        return answered

    for node, answer in zip(three, (last, early("0x2"), early("0x3")), strict=True):
        node.answers["eth_blockNumber"] = answer
    assert ask(of(three)) == ["0x1", "0x2", "0x3"]


def test_a_failure_takes_its_nodes_place_and_the_others_count(three: tuple[JsonRpcNode, ...]) -> None:
    three[0].answers["eth_blockNumber"] = Raw(status=500)
    failed, *answers = of(three).everyone(lambda node: node.call("eth_blockNumber", [], str))
    assert isinstance(failed, ProviderError)
    assert answers == ["0x64", "0x64"]


def test_our_error_in_another_thread_is_raised_to_the_caller(three: tuple[JsonRpcNode, ...]) -> None:
    caller, mistakes = threading.current_thread(), iter([LookupError()])

    def mistaken(_node: object) -> str:
        if threading.current_thread() is not caller:
            for mistake in mistakes:
                raise mistake
        return ""

    with pytest.raises(LookupError):
        of(three).everyone(mistaken)
    ended()


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


# Slow nodes -------------------------------------------------------------------------------------------------


class Slow:
    """An answer that comes once a test lets it."""

    def __init__(self, answer: object) -> None:
        self.answer, self.asked, self.let = answer, threading.Semaphore(0), threading.Event()

    def __call__(self, *_: object) -> object:
        self.asked.release()
        self.let.wait(WAIT_S)
        return self.answer

    def end(self) -> None:
        """Answer, and wait until the threads of all questions have ended."""
        self.let.set()
        ended()


@pytest.fixture
def slow(three: tuple[JsonRpcNode, ...]) -> Iterator[Slow]:
    """Let the operator's first node be slow."""
    made = Slow("0x64")
    three[0].answers["eth_blockNumber"] = made
    yield made
    made.end()


def of_slow(three: tuple[JsonRpcNode, ...]) -> RpcProviders:
    """Return the providers, of which the first is known to be slow."""
    nodes = of(three)
    for kind in Kind:
        nodes._nodes[0].usage.note(kind, "eth_blockNumber", 3.0)
    return nodes


def block(node: JsonRpc) -> str:
    return node.call("eth_blockNumber", [], str)


DECIDED: dict[str, tuple[Callable[[RpcProviders], object], object]] = {
    "answers": (lambda nodes: nodes.answers(block, decides=majority()), ["0x64"] * 2),
    "common head": (lambda nodes: nodes.common_head(ask=True), 100),
    "compare": (lambda nodes: nodes.compare(block, "0x64"), (2, 0)),
    "head": (lambda nodes: nodes.head(), 100),
}


@pytest.mark.parametrize("question", DECIDED)
def test_a_slow_node_is_not_waited_for_where_two_of_three_agree(
    three: tuple[JsonRpcNode, ...], slow: Slow, question: str
) -> None:
    asked, expected = DECIDED[question]
    assert asked(of_slow(three)) == expected
    assert slow.asked.acquire(timeout=WAIT_S), "it was asked as well"


@pytest.mark.parametrize("question", ["answers", "common head", "compare"])
def test_a_slow_node_is_waited_for_where_two_of_three_disagree(
    three: tuple[JsonRpcNode, ...], slow: Slow, question: str
) -> None:
    nodes = of_slow(three)

    def late() -> str:
        # Once the third has answered, and was heard.
        while not nodes._nodes[2].usage.is_answering:
            slow.asked.acquire(timeout=0.01)
        return "0x64"

    three[0].answers["eth_blockNumber"], three[1].answers["eth_blockNumber"] = late, "0x1"
    expected = {"answers": ["0x64", "0x1", "0x64"], "common head": 100, "compare": (2, 1)}
    assert DECIDED[question][0](nodes) == expected[question]


def test_heads_are_known_by_what_slow_nodes_told_within_the_last_minute(
    three: tuple[JsonRpcNode, ...], slow: Slow
) -> None:
    """One of three is quick: the others gave their heads before, and are not waited for now."""
    three[1].answers["eth_blockNumber"] = slow
    nodes = of_slow(three)
    nodes._nodes[1].usage.note(Kind.HEAD, "eth_blockNumber", 3.0)
    slow.let.set()
    assert nodes.head() == 100
    ended()
    slow.let.clear()
    three[2].answers["eth_blockNumber"] = "0x65"
    nodes._looked_at = float("-inf")
    assert nodes.head() == 101
    assert nodes.common_head() == 100


def test_heads_are_known_once_one_is_new_and_two_are_recent(three: tuple[JsonRpcNode, ...]) -> None:
    nodes = of(three)
    nodes._nodes[0].ask_head(0)
    assert not nodes._are_heads_known([100], 2)
    nodes._nodes[1].ask_head(0)
    assert nodes._are_heads_known([100, ProviderError()], 1)
    assert not nodes._are_heads_known([ProviderError()], 2)


def test_a_slow_node_that_contradicts_the_others_rests_though_it_was_not_waited_for(
    three: tuple[JsonRpcNode, ...], slow: Slow
) -> None:
    slow.answer = "0x9000"
    nodes = of_slow(three)
    assert nodes.compare(block, "0x64") == (2, 0)
    assert nodes._nodes[0].rests_until == 0.0
    slow.end()
    assert nodes._nodes[0].rests_until - time.monotonic() > CONTRADICTION_S - 5


def test_a_node_that_has_not_answered_yet_is_slow_already(three: tuple[JsonRpcNode, ...], slow: Slow) -> None:
    nodes = of(three)
    asked = threading.Thread(target=nodes._nodes[0].ask, args=(block,))
    asked.start()
    assert slow.asked.acquire(timeout=WAIT_S)
    nodes._nodes[1].ask(block)
    [(call, (kind, method, began))] = nodes._nodes[0].usage._under_way.items()
    assert not nodes._is_slow(nodes._nodes[0], kind=Kind.SMALL)
    nodes._nodes[0].usage._under_way[call] = kind, method, began - 5.0
    assert nodes._is_slow(nodes._nodes[0], kind=Kind.SMALL)
    slow.end()
    asked.join()
    assert nodes._nodes[0].usage._under_way == {}


def test_a_node_is_waited_for_until_it_is_known_to_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of three decide; the third answers once it was asked whether it is slow."""
    asked, over = threading.Event(), threading.Event()

    def third() -> str:
        asked.wait(WAIT_S)
        return "same"

    def is_slow(_node: str) -> bool:
        asked.set()
        return False

    questions = {"one": lambda: "same", "two": lambda: "same", "three": third}
    monkeypatch.setattr(at_once, "PATIENCE_S", WAIT_S)
    assert len(at_once.ask_until(questions, majority(), is_slow=is_slow)) == 3
    monkeypatch.setattr(at_once, "PATIENCE_S", 0.0)
    questions["three"] = lambda: "same" if over.wait(WAIT_S) else ""
    assert len(at_once.ask_until(questions, majority(), is_slow=lambda _node: False)) == 2
    over.set()
    ended()


def test_a_late_question_that_has_nothing_left_to_ask_with_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    over, errors = threading.Event(), list[object]()
    monkeypatch.setattr(threading, "excepthook", errors.append)
    monkeypatch.setattr(at_once, "PATIENCE_S", 0.0)

    def late() -> str:
        over.wait(WAIT_S)
        raise BudgetSpentError("the step has taken long enough")

    questions = {"one": lambda: "same", "two": lambda: "same", "three": late}
    assert len(at_once.ask_until(questions, majority(), is_slow=lambda node: node == "three")) == 2
    over.set()
    ended()
    assert errors == []


def test_a_question_that_found_no_thread_is_asked_last_and_only_if_it_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = threads.start
    monkeypatch.setattr(threads, "start", lambda lane, work: lane != "three" and start(lane, work))
    last = list[str]()
    questions = {"one": lambda: "a", "two": lambda: "a", "three": lambda: last.append("asked") or "b"}
    assert at_once.ask_until(questions, majority(), is_slow=lambda _node: True) == {"one": "a", "two": "a"}
    assert last == []
    ended()
    questions["two"] = lambda: "b"
    assert at_once.ask_until(questions, majority(), is_slow=lambda _node: True) == {
        "one": "a",
        "two": "b",
        "three": "b",
    }
    assert last == ["asked"]
    ended()


def test_who_was_not_waited_for_has_not_used_up_the_step(
    three: tuple[JsonRpcNode, ...], slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(net_budget, "SLOW_FROM_S", 0.0)
    nodes = of_slow(three)
    for node in nodes._nodes:
        node._verified_until = float("inf")
    with budget(seconds=60, requests=100):
        nodes.answers(lambda node: node.call("eth_blockNumber", [], str), decides=majority())
        spent = net_budget._current.get()
        slow.end()
    assert nodes._nodes[0].usage.is_answering
    calls = [nodes._nodes[number].usage in (spent.slow_s if spent else {}) for number in range(3)]
    assert calls == [False, True, True]


@pytest.mark.parametrize(
    ("answers", "pending", "is_decided"),
    [
        (["a", "a"], 1, True),
        (["a", "a"], 2, False),
        (["a", "b"], 1, False),
        (["a", ProviderError()], 1, False),
        (["a", ProviderError()], 0, True),
        (["dead", "dead"], 1, False),
        ([], 3, False),
    ],
)
def test_more_than_half_decide(answers: list[object], pending: int, *, is_decided: bool) -> None:
    assert majority(lambda answer: answer != "dead")(answers, pending) == is_decided
